"""n simulations are n visits below a fresh root, whatever the batch; what comes out adds up."""

import functools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from oracles import Batch, Constant, Hashed, Position, after, game_starts, observation_of, random_positions


@functools.cache
def late_positions() -> list[Position]:
    """From each game an early position and a late one, where most simulations end in finished games."""
    positions = []
    for start in game_starts().values():
        found = [position for _, position in random_positions(start, 40, seed=5, longest=40)]
        shallowest, deepest = found[0], min(found, key=lambda position: len(position.legal_actions()))
        positions += [shallowest, deepest]
    return positions


@pytest.mark.parametrize("eval_batch", [1, 8])
def test_n_simulations_are_n_visits(eval_batch: int) -> None:
    for position in late_positions():
        evaluator = Hashed(position.num_actions)
        for simulations in (1, 7, 40):
            search = azpy.Search(evaluator, simulations=simulations, eval_batch=eval_batch, seed=simulations)
            check(position, evaluator, search.run(position), simulations)


def check(position: Position, evaluator: Any, result: azpy.SearchResult, simulations: int) -> None:
    assert result.visits.sum() == simulations
    stats = result.stats
    assert stats["simulations"] == simulations
    assert stats["evaluations"] + stats["cache_hits"] + stats["terminals"] == simulations + 1
    assert result.actions.tolist() == position.legal_actions()
    assert (np.abs(result.q) <= 1).all()
    assert abs(result.priors.sum() - 1) < 1e-5
    assert (result.q[result.visits == 0] == 0).all()
    # The root has its own evaluation and what went through its edges.
    _, own = evaluator.evaluate_batch(observation_of(position)[None])
    total = own[0] + (result.visits * result.q.astype(np.float64)).sum()
    assert result.value == pytest.approx(total / (1 + result.visits.sum()), abs=1e-5)
    best = np.lexsort((result.actions, -result.priors, -result.visits))[0]
    assert result.action == result.actions[best]
    assert result.principal_variation[0] == result.action


def test_a_finished_game_needs_no_evaluation() -> None:
    evaluator = Hashed(9)
    result = azpy.Search(evaluator, simulations=100).run(after(azpy.make_game("tic_tac_toe"), 0, 3, 1, 4, 2))
    assert (result.action, result.value, result.visits.tolist()) == (None, 1.0, [])
    assert result.policy().tolist() == [0.0] * 9
    assert evaluator.batches == []


def test_illegal_actions_get_no_visit_whatever_their_logits() -> None:
    class Illegal:
        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            occupied = observations.sum(axis=1).reshape(len(observations), 9)
            return (100 * occupied).astype(np.float32), np.zeros(len(observations), np.float32)

    for _, position in random_positions(azpy.make_game("tic_tac_toe"), 50, seed=4, longest=7):
        result = azpy.Search(Illegal(), simulations=100).run(position)
        assert result.actions.tolist() == position.legal_actions()
        assert result.visits.sum() == 100
        np.testing.assert_allclose(result.priors, 1 / len(result.actions), rtol=1e-6)
        assert (np.delete(result.policy(), result.actions) == 0).all()


@pytest.mark.parametrize("size", [1e4, 1e30])
def test_huge_logits_do_not_overflow(size: float) -> None:
    class Huge(Constant):
        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            logits, values = super().evaluate_batch(observations)
            logits[:, 3], logits[:, 5] = size, -size
            return logits, values

    result = azpy.Search(Huge(7), simulations=50).run(azpy.make_game("connect_four"))
    assert result.priors.tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert result.visits.sum() == 50


def test_running_again_adds_to_the_same_root() -> None:
    state = azpy.make_game("connect_four")
    search = azpy.Search(Hashed(7), simulations=70, eval_batch=1)
    search.run(state)
    again = search.run(simulations=30)
    assert again.visits.tolist() == azpy.Search(Hashed(7), eval_batch=1).run(state, 100).visits.tolist()


def test_many_trees_at_once_are_each_what_they_are_alone() -> None:
    start = azpy.make_game("connect_four")
    states = [position for _, position in random_positions(start, 40, seed=9, longest=40)]
    for eval_batch in (1, 8):
        evaluator = Hashed(7)
        vector = azpy.VectorSearch(states, evaluator, eval_batch=eval_batch)
        vector.run(100)
        assert len(evaluator.batches) < 40 * 100 / eval_batch / 4  # one call a round for all
        for state, result in zip(states, vector.results(), strict=True):
            alone = azpy.Search(Hashed(7), simulations=100, eval_batch=eval_batch).run(state)
            assert result.visits.tolist() == alone.visits.tolist()
            assert result.value == alone.value
    np.testing.assert_array_equal(vector.root_values(), [r.value for r in vector.results()])


def test_vector_searches_go_on_when_trees_come_and_go() -> None:
    start = azpy.make_game("tic_tac_toe")
    vector = azpy.VectorSearch([start] * 5, Hashed(9), eval_batch=4)
    vector.run(50)
    actions = vector.select_actions(0.0)
    vector.advance(actions)
    vector.replace(2, start)
    vector.run(50)
    for index, (state, result) in enumerate(zip(vector.states(), vector.results(), strict=True)):
        inherited = 0 if index == 2 else 50
        assert state.legal_actions() == result.actions.tolist()
        assert result.visits.sum() >= 50
        assert result.visits.sum() <= 50 + inherited
    assert vector.action_probabilities(1.0).shape == (5, 9)


def test_temperatures_are_finite_down_to_their_limit() -> None:
    result = azpy.Search(Hashed(7), simulations=1000).run(azpy.make_game("connect_four"))
    visits = np.zeros(7)
    visits[result.actions] = result.visits
    np.testing.assert_allclose(result.policy(1.0), visits / visits.sum(), rtol=1e-6)
    np.testing.assert_allclose(result.policy(0.5), visits**2 / (visits**2).sum(), rtol=1e-5)
    for temperature in (0.0, 1e-3, 1e-30, 1e6):
        policy = result.policy(temperature)
        assert np.isfinite(policy).all()
        assert policy.sum() == pytest.approx(1, abs=1e-5)
        if temperature < 1:
            assert policy.argmax() == result.action
            assert policy.max() > 0.999
    np.testing.assert_allclose(result.policy(1e6), 1 / 7, rtol=1e-3)
    with pytest.raises(ValueError, match="temperature"):
        result.policy(-1.0)


def test_root_noise_and_temperature_leave_the_priors_given_out() -> None:
    state = azpy.make_game("connect_four")

    def run(**options: Any) -> azpy.SearchResult:
        return azpy.Search(Hashed(7), simulations=200, eval_batch=1, **options).run(state)

    clean, warm, *noisy = run(), run(root_temperature=1.5), *(run(root_noise=(1.0, 0.5), seed=s) for s in (1, 2, 1))
    for result in (warm, *noisy):
        assert result.priors.tolist() == clean.priors.tolist()
        assert result.visits.tolist() != clean.visits.tolist()
        np.testing.assert_allclose(result.target, result.visits / 200, rtol=1e-6)
    assert noisy[0].visits.tolist() == noisy[2].visits.tolist() != noisy[1].visits.tolist()
