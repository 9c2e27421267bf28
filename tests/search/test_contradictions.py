"""A game in Python that contradicts itself or its contract is an error of that game, and never a panic."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_faults import self_play

import azpy
from oracles import DiceCountdown, Hashed

# What each method of a game may answer where it contradicts itself or its contract.
WRONG: dict[str, list[Any]] = {
    "turn": [0, 1, azpy.CHANCE, azpy.TERMINAL, 2, None, 0.5],
    "legal_actions": [[], [0], [1, 2], [2, 1], [0, 0], [9], [-1], None, [0.5]],
    "chance_outcomes": [[], [(0, 1.0)], [(0, 0.5)], [(1, 0.5), (0, 0.5)], [(0, float("nan"))], [(0, 2.0), (1, -1.0)]],
    "outcome": [1.0, -1.0, float("nan"), 2.0, None],
    "encode": [np.zeros((1, 1, 1), np.float32), np.zeros((2, 1, 1)), np.full((2, 1, 1), np.nan, np.float32), None],
    "key": [0, 1, -1, 2**128, 0.5],
}  # fmt: skip


class Lenient(DiceCountdown):
    """Plays whatever it is told."""

    def play(self, action: int) -> None:
        if self.roll == 0:
            self.roll = action + 1
        else:
            self.heap, self.player, self.roll = max(0, self.heap - action - 1), 1 - self.player, 0


def misbehaving(seed: int) -> azpy.Game:
    """A game of dice, of which one to three methods now and then answer otherwise."""
    fates = np.random.default_rng(seed)
    methods = fates.choice(list(WRONG), size=fates.integers(1, 4), replace=False).tolist()
    share, late = fates.choice([0.02, 0.2, 1.0]), fates.integers(0, 40)
    calls = 0

    def answer(name: str) -> Callable[[DiceCountdown], Any]:
        def method(game: DiceCountdown) -> Any:
            nonlocal calls
            calls += 1
            if calls > late and fates.random() < share:
                return WRONG[name][fates.integers(len(WRONG[name]))]
            return getattr(DiceCountdown, name)(game)

        return method

    bent = type("Bent", (Lenient,), {name: answer(name) for name in methods})
    return bent(12, roll=1)  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", [*range(50), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(50, 150))])
def test_a_game_that_contradicts_itself_is_an_error_of_the_game(seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    options: list[dict[str, Any]] = [{}, {"solver": True}, {"gumbel_actions": 3}, {"lcb": 1.0}, {"early_stop": True}]
    evaluator = Hashed(3, network_id=1)  # whose answers are cached by key
    given = options[seed % 5] | {"cache_positions": 100 * (seed % 3)}
    errors = []

    def tried(run: Callable[[], object]) -> None:
        try:
            run()
        except (azpy.GameError, ValueError) as error:  # a record that the rules do not bear out is a ValueError
            errors.append(error)

    def searched() -> None:
        search = azpy.Search(evaluator, simulations=40, eval_batch=4, **given)
        for _ in range(3):
            result = search.run(misbehaving(seed))
            result.to_svg()
            if result.action is not None:
                search.advance(result.action)
                search.run()

    def played() -> None:
        options = {"opening_plies": seed % 3, "tree_reuse": seed % 2 == 0} | given
        with azpy.SelfPlay(misbehaving(seed), evaluator, slots=4, simulations=12, games=6, **options) as games:
            list(games)

    def learned() -> None:
        with azpy.SelfPlay(DiceCountdown(12, roll=1), evaluator, slots=4, simulations=8, games=6) as games:
            records = list(games)
        bent = misbehaving(seed)
        type(bent).game = "DiceCountdown"
        buffer = azpy.ReplayBuffer(bent)
        for record in records:
            tried(lambda record=record: buffer.add(record))  # type: ignore[misc]
        if buffer.num_positions:
            buffer.sample(64, seed=seed)

    def asked() -> None:
        rng, state = np.random.default_rng(seed), azpy.State(misbehaving(seed))
        while not state.is_terminal:
            state.play(int(rng.choice(state.legal_actions() or [outcome for outcome, _ in state.chance_outcomes()])))
        state.outcome()

    for run in (searched, played, learned, asked):
        tried(run)
    for error in errors:
        if isinstance(error, azpy.GameError):
            assert "az-check-game" in str(error) or "max_plies" in str(error) or "chance turn" in str(error)
    assert "panicked" not in capfd.readouterr().err


def test_a_turn_that_changes_between_calls_is_named() -> None:
    class Wobbly(Lenient):
        asked = 0

        def turn(self) -> int:
            type(self).asked += 1
            return azpy.CHANCE if self.heap < 9 and self.asked % 3 == 0 else super().turn()

    text = r"Wobbly\.turn\(\) gave -?\d and then -?\d for the same position or its clone, expected.*az-check-game"
    with pytest.raises(azpy.GameError, match=text):
        self_play(1, 1)(Wobbly(12, roll=1), Hashed(3))
    state = azpy.State(Wobbly(8, roll=1))
    with pytest.raises(azpy.GameError, match=text):
        [state.turn for _ in range(3)]
