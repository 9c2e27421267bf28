"""Mirror descent: the loss of a game that hides something, against a slow twin, and what a step is."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from test_learner import FLAT, GAME, Planted

from azpy.learning.learner import Learner
from azpy.learning.losses import gradient, mirror_loss
from azpy.learning.network import to_arrays
from azpy.settings import Settings
from azpy.training.budget import Budget


def slow_loss(logits: Any, legal: Any, target: Any, magnet: float) -> float:
    total = 0.0
    for row in range(len(logits)):
        actions = [action for action, offered in enumerate(legal[row]) if offered]
        own = [float(logits[row, action]) for action in actions]
        # log target / (1 + magnet): the step's logits but for a constant
        step = [math.log(share) if (share := float(target[row, a])) > 0 else -math.inf for a in actions]
        step = [logit / (1 + magnet) for logit in step]
        step = [max(logit - max(step), -8.0) for logit in step]
        own_mean, step_mean = sum(own) / len(own), sum(step) / len(step)
        total += sum(((mine - own_mean) - (wanted - step_mean)) ** 2 for mine, wanted in zip(own, step, strict=True))
    return total / len(logits)


def rows_of(count: int, seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    legal = rng.random((count, 5)) < 0.6
    legal[np.arange(count), rng.integers(5, size=count)] = True
    weights = np.where(legal, rng.random((count, 5)) ** 9, 0.0)  # far below the floor, too
    weights[0] *= np.arange(5) == weights[0].argmax()  # and nothing at all
    return rng.normal(0, 3, (count, 5)), legal, weights / weights.sum(1, keepdims=True)


@pytest.mark.parametrize("magnet", [0.0, 0.02, 0.3])
def test_the_loss_is_that_of_a_slow_twin_and_leaves_illegal_actions_alone(magnet: float) -> None:
    logits, legal, target = rows_of(40, 3)
    tensor = torch.from_numpy(logits).requires_grad_()
    loss = mirror_loss(tensor, torch.from_numpy(legal), torch.from_numpy(target), magnet)
    assert loss.item() == pytest.approx(slow_loss(logits, legal, target, magnet), rel=1e-9)
    torch.autograd.backward(loss)
    assert tensor.grad is not None
    assert (tensor.grad[~torch.from_numpy(legal)] == 0).all()
    assert tensor.grad.isfinite().all()
    moved = torch.from_numpy(logits - logits[:, :1])
    again = mirror_loss(moved, torch.from_numpy(legal), torch.from_numpy(target), magnet)
    assert again.item() == pytest.approx(loss.item(), rel=1e-9)  # a constant on all logits of a row changes nothing


def test_the_least_loss_is_the_step_of_mirror_descent() -> None:
    """The policy proportional to (policy exp(payoff)) ** (1 / (1 + magnet)): Sokota et al. 2022, a uniform magnet."""
    policy, payoff, magnet = torch.tensor([[0.5, 0.3, 0.2]]).double(), torch.tensor([[0.4, -0.2, 1.0]]).double(), 0.3
    legal, target = torch.ones(1, 3, dtype=torch.bool), torch.softmax(policy.log() + payoff, 1)
    step = (policy.log() + payoff) / (1 + magnet)
    assert mirror_loss(step, legal, target, magnet).item() < 1e-20
    assert mirror_loss(step + torch.tensor([[0.1, 0.0, 0.0]]), legal, target, magnet).item() > 1e-3


def test_a_step_without_momentum_follows_the_newest_batch_and_the_mean_remembers_a_share_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("azpy.learning.learner._AVERAGE_DECAY", 0.9)  # reached after 80 steps
    trainee, name = Learner(FLAT, "1x16", learning_rate=1e-3, optimizer="adam", weight_decay=0.0), "policy.0.weight"
    steps = trainee.fit(Planted(FLAT), 200, batch_size=8, magnet=lambda done: 0.1, root_value_weight=0.0)
    mean = trainee.model_arrays()[name]
    for step in range(1, 201):
        next(steps)
        share = (1 + step) / (10 + step)  # not capped, as it is without a magnet
        mean = share * mean + (1 - share) * to_arrays(trainee.network)[name]
    steps.close()
    assert trainee.model_arrays()[name] == pytest.approx(mean, abs=1e-5)
    moments = trainee.optimizer_arrays()
    for name, parameter in trainee.network.named_parameters():  # the newest gradient alone
        assert parameter.grad is not None
        assert moments[f"exp_avg.{name}"] == pytest.approx(parameter.grad.numpy(), abs=1e-7)


def test_the_value_counts_half_beside_a_magnet() -> None:
    trainee = Learner(GAME, "1x16")
    batch = [torch.from_numpy(array) for array in Planted().sample(64, seed=1)]
    last, grads = [*trainee.network.parameters()][-1], list[torch.Tensor]()  # of the value's head
    for magnet in (None, 0.1):
        gradient(trainee.network, batch, 64, False, magnet)
        assert last.grad is not None
        grads.append(last.grad.clone())
    assert grads[0].abs().sum() > 0
    assert torch.allclose(grads[1], grads[0] / 2, atol=1e-7)


def test_the_magnet_and_the_linear_rate_fall_over_the_run() -> None:
    budget = Budget(Settings("tic_tac_toe", iterations=10, schedule="linear", deterministic=True), 0)
    assert [budget.magnet(done) for done in (0, 5, 10, 12)] == pytest.approx([0.3, math.sqrt(0.006), 0.02, 0.02])
    assert [budget.rate(done) for done in (0, 5, 10, 12)] == pytest.approx([1.0, 0.51, 0.02, 0.02])
