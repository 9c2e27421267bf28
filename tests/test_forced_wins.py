"""Wins that can be forced are found, by either player, in any order of turns."""

import pytest

import azpy
from oracles import Countdown, DiceCountdown, Position, Solver, turn_of

UNIFORM = azpy.UniformEvaluator()


def forced(games: list[Position]) -> list[tuple[Position, int]]:
    """Positions reachable from the given ones where exactly one action wins by force and the others lose."""
    solver, found, seen = Solver(), list[tuple[Position, int]](), set[int]()
    while games:
        position = games.pop()
        if position.key() in seen or turn_of(position) == azpy.TERMINAL:
            continue
        seen.add(position.key())
        chance = turn_of(position) == azpy.CHANCE
        actions = [o for o, _ in position.chance_outcomes()] if chance else position.legal_actions()
        for action in actions:
            games.append(position.clone())
            games[-1].play(action)
        if chance or len(actions) < 2:
            continue
        values = solver.actions(position)
        winning = [action for action, value in values.items() if value == 1]
        if len(winning) == 1 and sum(values.values()) == 1 - (len(values) - 1):
            found.append((position, winning[0]))
    return found


VARIANTS: dict[str, list[Position]] = {
    "plain": [Countdown(8, player) for player in (0, 1)],
    "double turns": [Countdown(10, player, turns=2) for player in (0, 1)],
    "passes": [Countdown(6, player, passes=1) for player in (0, 1)],
}


SEARCHES = [(400, 1), (400, 8), pytest.param(6400, 64, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("simulations", "eval_batch"), SEARCHES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_only_winning_action_is_chosen(variant: str, simulations: int, eval_batch: int) -> None:
    positions = forced(list(VARIANTS[variant]))
    assert {turn_of(position) for position, _ in positions} == {0, 1}
    for position, winning in positions:
        result = azpy.Search(UNIFORM, simulations=simulations, eval_batch=eval_batch).run(position)
        assert result.action == winning, f"{position.__dict__}: {result.visits}"
        others = [n for a, n in zip(result.actions, result.visits, strict=True) if a != winning]
        assert result.visits.max() >= 2 * max(others), f"{position.__dict__}: {result.visits}"


@pytest.mark.parametrize(("simulations", "eval_batch"), SEARCHES)
@pytest.mark.parametrize("player", [0, 1])
def test_a_win_in_hand_is_taken_before_the_dice_decide(player: int, simulations: int, eval_batch: int) -> None:
    for heap, roll in [(1, 1), (2, 2), (2, 3), (3, 3)]:
        position = DiceCountdown(heap, player, roll)
        result = azpy.Search(UNIFORM, simulations=simulations, eval_batch=eval_batch).run(position)
        assert result.action == heap - 1
        others = result.visits[:-1]
        assert result.visits.max() >= 2 * max(others, default=0)


@pytest.mark.parametrize("eval_batch", [1, 8])
@pytest.mark.parametrize(
    ("line", "expected"),
    [([2, 5, 2, 5, 2, 5], 2), ([2, 5, 2, 5, 2, 5, 0], 5), ([2, 0, 2, 5, 2], 2), ([0, 3, 6, 3, 6, 3], 3)],
    ids=["first wins", "second wins", "second blocks", "first blocks"],
)
def test_connect_four_is_won_or_blocked_in_one(line: list[int], expected: int, eval_batch: int) -> None:
    state = azpy.make_game("connect_four")
    for action in line:
        state.play(action)
    assert azpy.Search(UNIFORM, simulations=800, eval_batch=eval_batch).run(state).action == expected, str(state)
