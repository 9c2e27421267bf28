"""With one leaf at a time the search is textbook PUCT: its visits are those of other programs, to the last one."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from mctx_games import muzero_visits
from oracles import (
    Answers,
    Constant,
    Hashed,
    Position,
    Puct,
    Wrapped,
    after,
    all_positions,
    game_starts,
    observation_of,
    random_positions,
    replayed,
)

SETTINGS: list[dict[str, Any]] = [
    {},
    {"c_puct": 0.4, "fpu": "parent"},
    {"c_puct": 2.5, "fpu": 0.3},
    {"c_puct": 1.25, "c_puct_base": 100.0},
]
DICE = {"backgammon", "trictrac", "maedn", "pig", "dice_nim", "game2048", "countdown, dice"}
PLAIN = sorted(set(game_starts()) - DICE)


def settings_of(games: list[str]) -> list[Any]:
    """Each game with settings in turn, and with all others in the slow suite."""
    quick = dict(zip(games, itertools.cycle(map(str, SETTINGS)), strict=False))
    return [
        pytest.param(
            game, settings, marks=() if quick[game] == str(settings) else pytest.mark.slow, id=f"{game}-{settings}"
        )
        for game, settings in itertools.product(games, SETTINGS)
    ]


def visits(position: Position, evaluator: Any, simulations: int, **settings: Any) -> list[int]:
    search = azpy.Search(evaluator, simulations=simulations, eval_batch=1, **settings)
    return list(search.run(position).visits.tolist())


@pytest.mark.parametrize(("game", "settings"), settings_of(PLAIN))
def test_visits_equal_recursive_puct(game: str, settings: dict[str, Any]) -> None:
    evaluator = Hashed(game_starts()[game].num_actions)
    answers = Answers(evaluator)
    for index, (_, position) in enumerate(random_positions(game_starts()[game], 8, seed=1, longest=12)):
        for simulations in (0, 1, 2, 16, 100, 1000) if index == 0 else (37,):
            expected = Puct(answers, **settings).run(position, simulations)
            assert visits(position, evaluator, simulations, **settings) == expected, f"{position}, {simulations}"


@pytest.mark.parametrize(("game", "settings"), settings_of(sorted(DICE)))
def test_visits_equal_recursive_puct_when_its_dice_fall_the_same(game: str, settings: dict[str, Any]) -> None:
    evaluator = Hashed(game_starts()[game].num_actions)
    answers = Answers(evaluator)
    for seed, (_, position) in enumerate(random_positions(game_starts()[game], 8, seed=1, longest=12)):
        wrapped = Wrapped(position)
        for simulations in (16, 100, 1000) if seed == 0 else (37,):
            wrapped.rolls.clear()
            searched = visits(wrapped, evaluator, simulations, seed=seed, **settings)
            expected = Puct(answers, **settings, roll=replayed(wrapped.rolls)).run(position, simulations)
            assert searched == expected, f"{position}, {simulations}"
            assert visits(position, evaluator, simulations, seed=seed, **settings) == expected


@pytest.mark.parametrize("game", PLAIN)
def test_ties_go_to_the_lowest_action(game: str) -> None:
    answers = Answers(Constant(game_starts()[game].num_actions))  # every action alike until values tell them apart
    for _, position in random_positions(game_starts()[game], 4, seed=6, longest=12):
        assert visits(position, azpy.UniformEvaluator(), 300) == Puct(answers).run(position, 300)


def test_priors_are_the_softmax_over_legal_actions_alone() -> None:
    evaluator = Hashed(7)
    for _, position in random_positions(azpy.make_game("connect_four"), 50, seed=3, longest=30):
        result = azpy.Search(evaluator, simulations=5).run(position)
        logits, _ = evaluator.evaluate_batch(observation_of(position)[None])
        weights = np.exp(logits[0].astype(np.float64))[position.legal_actions()]
        assert result.actions.tolist() == position.legal_actions()
        np.testing.assert_allclose(result.priors, weights / weights.sum(), rtol=1e-6)


ROOTS = {"tic_tac_toe": 4520, "connect_four": 200}
SIMULATIONS = {"tic_tac_toe": 50, "connect_four": 100}
# Our own slow search is compared at every root; the others search as slowly, and take some roots here.
ALL = [pytest.param(game, 1, marks=pytest.mark.slow) for game in ROOTS]
SOME = [("connect_four", 8), *ALL]


@functools.cache
def roots(game: str) -> list[tuple[list[int], Position]]:
    """All of tic-tac-toe, some of Connect Four."""
    start = azpy.make_game(game)
    found = random_positions(start, 200, seed=11, longest=34)
    if game == "tic_tac_toe":
        found = [(line, position) for line, position in all_positions(start).values() if not position.is_terminal]
    assert len(found) == ROOTS[game]
    return found


@functools.cache
def all_visits(game: str) -> tuple[list[Position], list[list[int]], Answers]:
    """azpy's visits at each root, and the answers it was given."""
    positions = [position for _, position in roots(game)]
    evaluator = Hashed(positions[0].num_actions)
    search = azpy.VectorSearch(positions, evaluator, eval_batch=1)
    search.run(SIMULATIONS[game])
    return positions, [result.visits.tolist() for result in search.results()], Answers(evaluator)


@pytest.mark.parametrize("game", ROOTS)
def test_visits_equal_recursive_puct_at_every_root(game: str) -> None:
    positions, searched, answers = all_visits(game)
    for position, found in zip(positions, searched, strict=True):
        assert Puct(answers).run(position, SIMULATIONS[game]) == found, str(position)


@pytest.mark.parametrize(("game", "every"), SOME)
def test_visits_equal_those_of_openspiel(game: str, every: int) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    mcts = pytest.importorskip("open_spiel.python.algorithms.mcts")
    _, searched, answers = all_visits(game)
    start, theirs = azpy.make_game(game), pyspiel.load_game(game)

    class Evaluator(mcts.Evaluator):  # type: ignore[name-defined, misc]
        def answer(self, state: Any) -> tuple[dict[int, float], float]:
            return answers(after(start, *state.history()))

        def prior(self, state: Any) -> list[tuple[int, float]]:
            return list(self.answer(state)[0].items())

        def evaluate(self, state: Any) -> NDArray[np.float64]:
            _, value = self.answer(state)
            return np.array([value, -value] if state.current_player() == 0 else [-value, value])

    def score(child: Any, visits_of_parent: int, c_puct: float) -> float:
        # Theirs answers the outcome alone at a finished game.
        n = child.explore_count
        q = child.total_reward / n if n else 0.0
        return float(q + c_puct * np.sqrt(visits_of_parent) * child.prior / (1 + n))

    bot = mcts.MCTSBot(theirs, 1.5, SIMULATIONS[game] + 1, Evaluator(), solve=False, child_selection_fn=score)
    for (line, position), found in zip(roots(game)[::every], searched[::every], strict=True):
        state = theirs.new_initial_state()
        for action in line:
            state.apply_action(action)
        counts = {child.action: child.explore_count for child in bot.mcts_search(state).children}
        assert [counts[action] for action in position.legal_actions()] == found, str(position)


@pytest.mark.parametrize(("game", "every"), SOME)
def test_visits_equal_those_of_mctx(game: str, every: int) -> None:
    pytest.importorskip("mctx")
    positions, searched, answers = all_visits(game)
    positions, searched = positions[::every], searched[::every]
    counts = muzero_visits(positions, answers, SIMULATIONS[game])
    for position, theirs, found in zip(positions, counts.tolist(), searched, strict=True):
        assert [theirs[action] for action in position.legal_actions()] == found, str(position)
