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
