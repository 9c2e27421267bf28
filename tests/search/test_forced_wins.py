"""Wins that can be forced are found, by either player, in any order of turns."""

import pytest

import azpy
from oracles import VARIANTS, DiceCountdown, forced, turn_of

UNIFORM = azpy.UniformEvaluator()


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
