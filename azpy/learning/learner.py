"""Fits a network to positions of games.

On the CPU, torch's threads share a step: each computes the gradient of a part of the batch. They wait for each other
once a step. If torch divided each operation among them, they would wait in each operation. An MLP 3x256 on two cores
then takes 5 ms a step alone, and 130 ms beside four busy programs; by parts it takes 5 and 16 ms.

In a step for a board, nearly all the time goes into convolutions: drawing a batch by playing games again takes 0.2 of
30 ms in Connect Four, and 3 of 400 ms in Go (November 2026, benches/fitting.py).
"""

import copy
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy.errors import DeviceError, ModelError, SettingsError, missing_to_train

try:
    import torch
    from torch import Tensor, nn
    from torch.optim import AdamW
    from torch.optim.swa_utils import get_ema_multi_avg_fn, update_bn
except ImportError as error:
    raise missing_to_train("torch") from error

from azpy.learning.network import Network, grown, load_arrays, spec_of, to_arrays, torch_device
from azpy.machine import cpu_flags, keep_freed_memory, usable_cores

__all__ = ["Learner", "Losses", "device_of", "has_bf16", "policy_loss", "seed_of", "use_threads"]

_MOMENTS = ("exp_avg", "exp_avg_sq")
_AVERAGE_DECAY = 0.995  # the averaged weights look back some 200 steps
_GRADIENT_NORM = 4.0
_WARM_UP_STEPS = 50
_BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}
_MEASURED_ROWS = 256  # of one evaluation
_STATISTICS_ROWS = 512  # from which batch norm's statistics of the averaged network come
_LEAST_PART = 64  # rows: batch norm's statistics come from one part, and smaller parts make them coarse


@dataclass(frozen=True)
class Losses:
    """A step's losses: cross-entropy of the policy over the legal actions in nats, and squared error of the value.

    The squared error is the mean of the rows by their weights, so it says the same whatever the weights are.
    """

    policy: float
    value: float


class Learner:
    """A network in training, and the running mean of its weights, which is exported and plays.

    Batches depend on the seed and the step alone, so there is no generator state to save.

    Args:
        game, spec: see `Network.of`.
        learning_rate: AdamW's, at its peak.
        weight_decay: AdamW's.
        seed: fixes every batch, and the initial weights, which are the same on every device.
        device: where the steps are taken: "cpu", "cuda", "cuda:1", or "auto" for CUDA where torch can use it.
        precision: "fp32"; or "bf16", in which the network is computed. Weights, their gradients, batch norm's
            statistics and losses stay in float32. "auto" is bf16 where the device has instructions for it.

    Attributes:
        device: where the steps are taken.
        network: the network in training, on the device.
        precision: "fp32" or "bf16".
        steps: how many were taken so far.

    Raises:
        DeviceError: torch cannot use the device, or the device has no instructions for bf16.
    """

    def __init__(
        self,
        game: Any,
        spec: str,
        *,
        learning_rate: float = 2e-3,
        weight_decay: float = 1e-4,
        seed: int = 0,
        device: str = "cpu",
        precision: str = "fp32",
    ) -> None:
        self._rate, self._seed, self.steps = learning_rate, seed, 0
        self.device, self.precision = device_of(device, precision)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network: Any = Network.of(game, spec)  # torch's releases type `to` differently
        self.network: Network = network.to(self.device, memory_format=torch.channels_last)
        self._running: Network = copy.deepcopy(self.network).eval()
        self._parameters = dict(self.network.named_parameters())
        self._optimizer = AdamW(self._parameters.values(), lr=learning_rate, weight_decay=weight_decay, fused=True)

    def fit(
        self,
        batches: Any,
        steps: int,
        *,
        batch_size: int,
        schedule: Callable[[float], float] = lambda done: 1.0,
        **sampling: Any,
    ) -> Generator[Losses]:
        """Takes gradient steps; yields the losses of each.

        Torch has fewer threads for the calling thread meanwhile: end or close the generator in the same thread. Then
        call `set_statistics` for the averaged network.

        Args:
            batches: a `ReplayBuffer`, or any object with its `sample`.
            steps: how many.
            batch_size: rows of a batch.
            schedule: factor of the learning rate, given the share of these steps that is done.
            sampling: options of `ReplayBuffer.sample`.
        """
        threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        parts = max(1, min(threads, batch_size // _LEAST_PART))
        states = [network.state_dict().values() for network in (self._running, self.network)]
        averaged = [[tensor for tensor in state if tensor.is_floating_point()] for state in states]
        average: Any = get_ema_multi_avg_fn  # torch gives it no types
        if self.device.type == "cpu":
            keep_freed_memory()
        with _sharing(self.network, parts, bf16=self.precision == "bf16") as set_gradients:
            for index in range(steps):
                batch = batches.sample(batch_size, seed=seed_of(self._seed, self.steps), **sampling)
                warm_up = min(1.0, (self.steps + 1) / _WARM_UP_STEPS)
                self._optimizer.param_groups[0]["lr"] = self._rate * warm_up * schedule(index / steps)
                losses = set_gradients([torch.from_numpy(array).to(self.device) for array in batch])
                nn.utils.clip_grad_norm_(self._parameters.values(), _GRADIENT_NORM)
                self._optimizer.step()
                self.steps += 1
                # Early steps have a smaller decay, so that the mean forgets the initial weights quickly.
                average(min(_AVERAGE_DECAY, (1 + self.steps) / (10 + self.steps)))(*averaged, self.steps)
                yield losses

    def set_statistics(self, batches: Any, *, batch_size: int, **sampling: Any) -> None:
        """Sets batch norm's statistics of the averaged network to those of its own weights, on rows of the batches.

        `fit` leaves the mean of the statistics that the steps had. The weights of the steps lie around their mean, the
        further the higher the learning rate, and their statistics do not fit the mean.

        Args:
            batches: a `ReplayBuffer`, or any object with its `sample`.
            batch_size: rows that are drawn at a time.
            sampling: options of `ReplayBuffer.sample`.
        """

        def observations() -> Iterator[Tensor]:
            for part in range(-(-_STATISTICS_ROWS // batch_size)):
                drawn = batches.sample(batch_size, seed=seed_of(self._seed, self.steps, part + 1), **sampling)
                yield torch.from_numpy(drawn[0]).to(self.device).contiguous(memory_format=torch.channels_last)

        update_bn(observations(), self._running)

    def measure(self, rows: Sequence[NDArray[Any]]) -> dict[str, float]:
        """How well the averaged network predicts rows that it did not learn from.

        Args:
            rows: observations, legal actions, policy targets and value targets, as `ReplayBuffer.sample` gives them.

        Returns:
            `policy_loss` in nats, `value_loss` as mean squared error, and `move_match`: the share of rows in which the
            network's first action is the target's.
        """
        sums = dict.fromkeys(("policy_loss", "value_loss", "move_match"), 0.0)
        count = len(rows[0])
        with torch.no_grad():
            for first in range(0, count, _MEASURED_ROWS):
                part = [torch.from_numpy(array[first : first + _MEASURED_ROWS]).to(self.device) for array in rows]
                observations, legal, policy, value = part
                logits, values = self._running(observations.contiguous(memory_format=torch.channels_last))
                best = logits.float().masked_fill(~legal, -torch.inf).argmax(1)
                sums["policy_loss"] += policy_loss(logits.float(), legal, policy).item() * len(value)
                sums["value_loss"] += nn.functional.mse_loss(values.float(), value, reduction="sum").item()
                sums["move_match"] += (best == policy.argmax(1)).sum().item()
        return {name: total / count for name, total in sums.items()}

    def is_finite(self) -> bool:
        """Whether weights, statistics and AdamW's moments are finite, and the averaged network's answers too.

        The answers are those to an observation of zeros and to one of ones.
        """
        tensors = [*self.network.state_dict().values(), *self._running.state_dict().values()]
        tensors += [state[moment] for state in self._optimizer.state.values() for moment in _MOMENTS]
        rows = torch.ones(2, *self.network.obs_shape, device=self.device)
        rows[0] = 0.0
        was_training = self._running.training
        with torch.no_grad():
            tensors += self._running.eval()(rows.contiguous(memory_format=torch.channels_last))
        self._running.train(was_training)
        return all(bool(tensor.isfinite().all()) for tensor in tensors)

    @property
    def averaged(self) -> Network:
        """The network with averaged weights, on the CPU: a copy where the steps are taken elsewhere."""
        return self._running if self.device.type == "cpu" else copy.deepcopy(self._running).cpu()

    def model_arrays(self) -> dict[str, NDArray[Any]]:
        """The averaged weights: the model."""
        return to_arrays(self._running)

    def optimizer_arrays(self) -> dict[str, NDArray[Any]]:
        """The weights in training, AdamW's moments and the number of steps."""
        arrays = {f"network.{name}": array for name, array in to_arrays(self.network).items()}
        for name, parameter in self._parameters.items():
            state = self._optimizer.state.get(parameter, {})
            for moment in _MOMENTS:
                tensor = state.get(moment, torch.zeros_like(parameter))
                arrays[f"{moment}.{name}"] = tensor.detach().cpu().contiguous().numpy().copy()
        arrays["steps"] = np.array(self.steps, np.int64)
        return arrays

    def begin_with(self, model: dict[str, NDArray[Any]]) -> str:
        """Takes over the weights of another run's network, which may be smaller, before the first step.

        Args:
            model: what `model_arrays` returned there.

        Returns:
            The other network's spec, such as "5x64".

        Raises:
            ModelError: the other network is of another game, or has more blocks or channels.
        """
        mine, spec = self.network, spec_of(model)
        other = Network(mine.obs_shape, mine.num_actions, spec, mine.action_cells)
        load_arrays(other, model)
        weights = grown(other, self._running)
        for network in (self.network, self._running):
            network.load_state_dict(weights)
        return spec

    def load(self, model: dict[str, NDArray[Any]], optimizer: dict[str, NDArray[Any]]) -> None:
        """Continues from what `model_arrays` and `optimizer_arrays` returned.

        Raises:
            ModelError: the arrays are of another network.
        """
        load_arrays(self._running, model)
        load_arrays(self.network, _with_prefix(optimizer, "network."))
        moments = {moment: _with_prefix(optimizer, f"{moment}.") for moment in _MOMENTS}
        if "steps" not in optimizer or any(self._parameters.keys() - part.keys() for part in moments.values()):
            raise ModelError("the saved optimizer is of another network")
        self.steps = int(optimizer["steps"])
        for name, parameter in self._parameters.items():
            state: dict[str, Tensor] = {"step": torch.tensor(float(self.steps), device=self.device)}
            for moment, arrays in moments.items():
                state[moment] = torch.empty_like(parameter).copy_(torch.from_numpy(arrays[name].copy()))
            self._optimizer.state[parameter] = state


@contextmanager
def _sharing(network: Network, count: int, *, bf16: bool) -> Iterator[Callable[[Sequence[Tensor]], Losses]]:
    """Lets `count` threads compute a step's gradients together, each from its own part of the batch.

    Each thread has a network with the same weights in memory, but with its own gradients and batch norm statistics.
    `network` keeps the statistics of the first part: they are averaged over many steps, and all parts are drawn alike.

    Yields:
        A function that sets the gradients of `network` to those of the mean loss over a batch. Sums go by part, so the
        bits do not depend on which thread is faster.
    """
    networks = [network.train(), *(copy.deepcopy(network) for _ in range(count - 1))]
    for other in networks[1:]:
        for mine, shared in zip(other.parameters(), network.parameters(), strict=True):
            mine.data = shared.data

    def set_gradients(batch: Sequence[Tensor]) -> Losses:
        rows = len(batch[0])
        cuts = pairwise(rows * part // count for part in range(count + 1))
        parts = [[tensor[begin:end] for tensor in batch] for begin, end in cuts]
        running = [others.submit(_gradient, *work, rows, bf16) for work in zip(networks[1:], parts[1:], strict=True)]
        shares = [_gradient(network, parts[0], rows, bf16), *(each.result() for each in running)]
        with torch.no_grad():
            for parameter, *rest in zip(*(each.parameters() for each in networks), strict=True):
                for other in rest:
                    parameter.grad += other.grad
        policy, value, weight = (sum(each) for each in zip(*shares, strict=True))
        return Losses(policy, value / weight)

    threads = torch.get_num_threads()
    torch.set_num_threads(threads // count)  # torch keeps this number for each thread that calls it
    try:
        with ThreadPoolExecutor(max(1, count - 1), "azpy-fit", torch.set_num_threads, (threads // count,)) as others:
            yield set_gradients
    finally:
        torch.set_num_threads(threads)


def _gradient(network: Network, batch: Sequence[Tensor], rows: int, bf16: bool) -> tuple[float, float, float]:
    """Sets a network's gradients to those of a batch's share of the mean losses over `rows`.

    A batch is observations [B, C, H, W], legal actions [B, A], policy targets [B, A], value targets [B]; and weights
    [B] of the value targets if these do not all count alike.

    Returns:
        The batch's share of the means over `rows`: of the policy's loss, of the value's loss times its weight, and of
        the weight.
    """
    observations, legal, policy, value, *weights = batch
    share = len(observations) / rows
    network.zero_grad()
    with torch.autocast(observations.device.type, torch.bfloat16, enabled=bf16):  # of this thread alone
        logits, values = network(observations.contiguous(memory_format=torch.channels_last))
    policy_part = policy_loss(logits.float(), legal, policy) * share
    weight: Tensor | float
    if weights:
        value_part = (weights[0] * (values.float() - value) ** 2).mean() * share
        weight = weights[0].mean() * share
    else:
        value_part, weight = nn.functional.mse_loss(values.float(), value) * share, share
    torch.autograd.backward(policy_part + value_part)
    return policy_part.item(), value_part.item(), float(weight)


def seed_of(*numbers: int) -> int:
    """The seed of a batch: of the run's seed, the step, and the part if it is for batch norm's statistics."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def device_of(device: str, precision: str) -> tuple[torch.device, str]:
    """The device and the precision that `Learner` takes for these words, and its errors."""
    chosen = _choose(device)
    return chosen, _choose_precision(precision, chosen)


def _choose(device: str) -> torch.device:
    if device == "auto":
        device = "cuda" if torch.version.cuda and torch.cuda.is_available() else "cpu"
    return torch_device(device)


def _choose_precision(precision: str, device: torch.device) -> str:
    if precision == "auto":
        return "bf16" if has_bf16(device) else "fp32"
    if precision == "bf16" and not has_bf16(device):
        raise DeviceError(
            f"this {'CPU' if device.type == 'cpu' else 'GPU'} has no instructions for bf16: train with fp32, or auto"
        )
    if precision not in ("fp32", "bf16"):
        raise SettingsError(f"the precision of training must be fp32, bf16 or auto, got {precision!r}")
    return precision


def has_bf16(device: torch.device) -> bool:
    """Whether a device has instructions for bf16: without them, bf16 is slower than fp32."""
    if device.type == "cpu":
        return bool(_BF16_FLAGS & cpu_flags())
    return bool(torch.cuda.get_device_capability(device) >= (8, 0))


def policy_loss(logits: Tensor, legal: Tensor, target: Tensor) -> Tensor:
    """The mean cross-entropy over the legal actions; illegal actions' logits get exactly no gradient.

    Takes raw logits [B, A], legal [B, A] bool, and target [B, A], which sums to 1 a row and is 0 where illegal.
    """
    # Finite, as 0 * -inf is NaN, and so low that exp gives exactly 0.
    masked = logits.masked_fill(~legal, -1e9)
    return -(target * torch.log_softmax(masked, dim=1)).sum(dim=1).mean()


def use_threads(single: bool) -> int:
    """Lets torch use every core this process may run on, or a single thread; returns how many cores there are.

    Torch cuts a sum, such as a gradient, into as many parts as there are threads. Runs get the same bits only with the
    same number of threads, and every machine has one.
    """
    cores = usable_cores()
    torch.set_num_threads(1 if single else cores)
    return cores


def _with_prefix(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
