"""What a person meets of a search's options: limits of time, memory and need, proofs, and names that are refused."""

import threading
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from oracles import Countdown, DiceCountdown, Hashed, Solver, after, random_positions, turn_of


def connect_four(*actions: int) -> azpy.State:
    state = azpy.make_game("connect_four")
    for action in actions:
        state.play(action)
    return state


class Slow:
    """Answers after a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.calls = seconds, 0

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        time.sleep(self.seconds)
        self.calls += 1
        return np.zeros((len(observations), 7), np.float32), np.zeros(len(observations), np.float32)


def test_a_time_limit_ends_the_search_and_it_says_so() -> None:
    search = azpy.Search(Slow(0.002), eval_batch=1)
    begin = time.monotonic()
    result = search.run(connect_four(), seconds=0.2)
    assert time.monotonic() - begin < 5  # far from for ever: there is no number of simulations
    assert result.stop == "seconds"
    assert 0 < result.visits.sum() < 200
    more = search.run(simulations=3)
    assert (more.stop, more.visits.sum()) == ("simulations", result.visits.sum() + 3)


def test_no_time_at_all_still_evaluates_the_root() -> None:
    evaluator = Slow(0.0)
    result = azpy.Search(evaluator, eval_batch=1).run(connect_four(), seconds=0.0)
    assert evaluator.calls == 1
    assert (result.visits.sum(), result.action, result.stop) == (0, 0, "seconds")
    both = azpy.Search(Slow(0.0), eval_batch=1).run(connect_four(), 10, seconds=60.0)
    assert (both.visits.sum(), both.stop) == (10, "simulations")


def test_many_trees_share_a_time_limit() -> None:
    search = azpy.VectorSearch([connect_four(column) for column in range(7)], Slow(0.002), eval_batch=1)
    search.run(2**32 - 1, seconds=0.1)
    assert {result.stop for result in search.results()} == {"seconds"}


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_time_limit_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds must be at least 0"):
        azpy.Search(azpy.UniformEvaluator()).run(connect_four(), seconds=seconds)


def test_gumbel_must_know_how_long_it_has() -> None:
    search = azpy.Search(azpy.UniformEvaluator(), gumbel_actions=4)
    with pytest.raises(ValueError, match="give simulations with seconds"):
        search.run(connect_four(), seconds=1.0)
    assert search.run(connect_four(), 20, seconds=60.0).visits.sum() == 20


def test_a_decided_search_stops_with_the_same_action() -> None:
    evaluator = Hashed(7)
    saved = 0
    for _, position in random_positions(connect_four(), 30, seed=4, longest=20):
        whole = azpy.Search(evaluator, simulations=100, eval_batch=1).run(position)
        short = azpy.Search(evaluator, simulations=100, eval_batch=1, early_stop=True).run(position)
        assert short.action == whole.action
        assert short.stop in {"decided", "simulations"}
        saved += int(whole.visits.sum() - short.visits.sum())
    assert saved > 100


def test_a_proven_win_ends_the_search() -> None:
    # Three in a row on the floor, open on both sides: whoever moves next is too late.
    state = connect_four(2, 2, 3, 3, 4)
    result = azpy.Search(azpy.UniformEvaluator(), simulations=100_000, solver=True).run(state)
    assert (result.stop, result.value, result.proof) == ("proven", -1.0, 2)
    assert len(result.principal_variation) == 2
    won = azpy.Search(azpy.UniformEvaluator(), simulations=100_000, solver=True).run(after(state, 0))
    assert (won.value, won.proof) == (1.0, 1)
    assert won.action in {1, 5}
    assert won.proofs[won.actions == won.action].tolist() == [0]
    assert won.principal_variation == [won.action]


@pytest.mark.parametrize("eval_batch", [1, 8])
@pytest.mark.parametrize("start", [Countdown(9), Countdown(8, 1, turns=2), DiceCountdown(5, roll=2)], ids=str)
def test_what_is_proven_is_what_a_plain_solver_finds(start: Any, eval_batch: int) -> None:
    solver, proven = Solver(), 0
    for _, position in random_positions(start, 12, seed=1, longest=4):
        search = azpy.Search(Hashed(3), simulations=20_000, eval_batch=eval_batch, solver=True)
        result = search.run(position)
        assert result.stop == "proven"
        sign = 1 if turn_of(position) == 0 else -1
        assert result.value == pytest.approx(sign * solver.value(position), abs=1e-6)
        exact = solver.actions(position)
        for action, proof, q in zip(result.actions, result.proofs, result.q, strict=True):
            if proof >= 0:
                proven += 1
                assert q == pytest.approx(exact[int(action)], abs=1e-6)
        assert result.action in solver.best(position)
    assert proven > 5


def test_a_memory_budget_holds_while_the_search_goes_on_and_the_root_moves() -> None:
    search = azpy.Search(azpy.RolloutEvaluator(1), simulations=5_000, max_memory_mb=0.25)
    result = search.run(connect_four())
    for _ in range(4):
        assert result.visits.sum() >= 5_000
        assert result.stats["unexpanded"] > 0
        assert result.stats["memory_bytes"] <= 0.25 * 2**20
        assert result.action is not None
        search.advance(result.action)
        result = search.run()
    free = azpy.Search(azpy.RolloutEvaluator(1), simulations=5_000).run(connect_four())
    assert free.stats["unexpanded"] == 0
    assert free.stats["memory_bytes"] > 0.25 * 2**20


def test_shaped_noise_temperature_and_forced_visits_leave_the_priors_clean() -> None:
    options: dict[str, Any] = {"root_noise": 0.5, "noise_shaped": True, "root_temperature": 1.5, "forced_visits": 2.0}
    evaluator = Hashed(7)
    plain = azpy.Search(evaluator, simulations=200, eval_batch=1).run(connect_four())
    found = azpy.Search(evaluator, simulations=200, eval_batch=1, **options).run(connect_four())
    assert found.priors.tolist() == plain.priors.tolist()
    assert found.visits.tolist() != plain.visits.tolist()
    np.testing.assert_allclose(plain.target, plain.visits / 200, rtol=1e-6)
    assert found.target.sum() == pytest.approx(1.0, abs=1e-6)
    assert not np.allclose(found.target, found.visits / 200, atol=1e-3)  # what was forced is gone


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"cpuct": 1.0}, TypeError, "did you mean 'c_puct'|did you mean \"c_puct\""),
        ({"banana": 1.0}, TypeError, "unexpected keyword argument"),
        ({"c_puct": "much"}, TypeError, "c_puct must be a number, got 'much'"),
        ({"solver": 3.5}, TypeError, "solver must be True or False"),
        ({"eval_batch": 0}, ValueError, "eval_batch must be at least 1, got 0"),
        ({"gumbel_actions": -1}, TypeError, "gumbel_actions must be a whole number"),
        ({"gumbel_actions": 4, "value_scale": -1.0}, ValueError, "value_scale must be a number >= 0"),
        ({"lcb": float("nan")}, ValueError, "lcb must be a number >= 0"),
        ({"root_temperature": 0.0}, ValueError, "root_temperature must be a number > 0"),
        ({"in_flight_share": 0.0}, ValueError, "in_flight_share must be more than 0"),
        ({"max_memory_mb": 0.0}, ValueError, "max_memory_mb must be a number > 0"),
        ({"c_puct_stdev": 2.0}, ValueError, "c_puct_stdev must be at most 1"),
    ],
    ids=str,
)
def test_options_that_are_none_are_refused_by_name(options: dict[str, Any], error: type[Exception], said: str) -> None:
    for make in (azpy.Search, lambda evaluator, **given: azpy.VectorSearch([connect_four()], evaluator, **given)):
        with pytest.raises(error, match=said):
            make(azpy.UniformEvaluator(), **options)
    with pytest.raises(error, match=said):
        azpy.SelfPlay("connect_four", azpy.UniformEvaluator(), **options)


def test_the_tree_grows_while_the_opponent_thinks() -> None:
    search = azpy.Search(azpy.RolloutEvaluator(1), simulations=200)
    action = search.run(connect_four()).action
    assert action is not None
    search.advance(action)
    with azpy.pondering(search):
        time.sleep(0.3)
    search.advance(3)
    inherited = int(search.run(simulations=0).visits.sum())
    alone = azpy.Search(azpy.RolloutEvaluator(1), simulations=200)
    alone.run(connect_four())
    alone.advance(action)
    alone.advance(3)
    assert inherited > 5 * max(1, int(alone.run(simulations=0).visits.sum()))


def test_an_error_while_pondering_comes_out_of_the_block() -> None:
    class Failing(Slow):
        def evaluate_batch(self, observations: NDArray[np.float32]) -> Any:
            if self.calls == 5:
                raise RuntimeError("the net is gone")
            return super().evaluate_batch(observations)

    search = azpy.Search(Failing(0.0), eval_batch=1)
    search.run(connect_four(), 1)
    with pytest.raises(RuntimeError, match="the net is gone"), azpy.pondering(search):
        time.sleep(0.2)
    assert not any(thread.name == "azpy-pondering" for thread in threading.enumerate())


def test_pondering_ends_by_itself_when_nothing_is_left_to_find_out() -> None:
    search = azpy.Search(azpy.UniformEvaluator(), solver=True)
    search.run(Countdown(6), 10)
    with azpy.pondering(search):
        time.sleep(0.2)
    assert search.run(simulations=0).stop == "proven"


def test_draws_for_a_search_without_gumbel_are_refused() -> None:
    search = azpy.Search(Hashed(7), root_noise=0.25)
    before = search.run(connect_four()).priors.tolist()
    with pytest.raises(ValueError, match="gumbel_actions"):
        search.run(gumbel=[0.0] * 7)
    assert search.run(simulations=0).priors.tolist() == before


@pytest.mark.parametrize(
    "option", [{"lcb": 1.0}, {"evaluations": 50}, {"forced_visits": 2.0}, {"root_temperature": 1.5}], ids=str
)
def test_what_gumbel_does_not_go_with_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="does not go with gumbel_actions"):
        azpy.Search(azpy.UniformEvaluator(), gumbel_actions=4, **option)


def test_many_gumbel_searches_can_be_looked_at_after_a_move() -> None:
    search = azpy.VectorSearch([connect_four()], Hashed(7), gumbel_actions=4)
    search.run(50)
    search.advance([3])
    assert search.action_probabilities().sum() == pytest.approx(1.0, abs=1e-5)
    assert search.results()[0].visits.sum() > 0


def test_pondering_with_gumbel_is_refused_at_once() -> None:
    search = azpy.Search(azpy.UniformEvaluator(), gumbel_actions=4)
    search.run(connect_four())
    with pytest.raises(ValueError, match="cannot ponder"), azpy.pondering(search):
        pytest.fail("the block was entered")


def test_self_play_with_every_option_makes_games_that_bear_out() -> None:
    for options in (
        {"solver": True, "forced_visits": 2.0, "noise_shaped": True, "root_temperature": 1.2, "c_puct_stdev": 0.85},
        {"gumbel_actions": 4, "solver": True},
        {"early_stop": True, "lcb": 1.0},
    ):
        buffer = azpy.ReplayBuffer("tic_tac_toe")
        with azpy.SelfPlay("tic_tac_toe", Hashed(9), slots=4, simulations=40, games=20, **options) as games:
            for record in games:
                buffer.add(record)
        assert buffer.num_games == 20
