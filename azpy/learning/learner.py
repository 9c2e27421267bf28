"""Fits a network to positions of games.

On the CPU, torch's threads share a step: each computes the gradient of a part of the batch. They wait for each other
once a step. If torch divided each operation among them, they would wait in each operation. An MLP 3x256 on two cores
then takes 5 ms a step alone, and 130 ms beside four busy programs; by parts it takes 5 and 16 ms.

In a step for a board, nearly all the time goes into convolutions: drawing a batch by playing games again takes 0.2 of
30 ms in Connect Four, and 3 of 400 ms in Go (November 2026).
"""

import copy
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn, update_bn

from azpy.devices import BF16_FLAGS
from azpy.errors import DeviceError, ModelError, SettingsError, raised
from azpy.learning.losses import gradient, memory_format, policy_loss
from azpy.learning.network import (
    Network,
    grown,
    load_arrays,
    spec_of,
    to_arrays,
    torch_device,
    weights_from,
    weights_of_model,
)
from azpy.learning.own import answers, network_of, optimizer_of, outputs, unwrapped
from azpy.settings.run import is_own
from azpy.system import cpu_flags, keep_freed_memory, usable_cores

_AVERAGE_DECAY = 0.995  # the averaged weights cover about the last 200 steps; with mirror descent a tenth of all
_GRADIENT_NORM = 4.0
_WARM_UP_STEPS = 50
_MEASURED_ROWS = 256  # of one evaluation
_STATISTICS_ROWS = 512  # from which batch norm's statistics of the averaged network come
_LEAST_PART = 64  # rows: batch norm's statistics come from one part, and smaller parts make them coarse


@dataclass(frozen=True)
class Losses:
    """A step's losses: cross-entropy of the policy over the legal actions in nats, and squared error of the value.

    With three classes of the value, its cross-entropy in nats. The value's loss is the mean of the rows by their
    weights, so it says the same whatever the weights are. `heads` has the losses of further heads, by name, as the
    network's own `loss` gives them.
    """

    policy: float
    value: float
    heads: Mapping[str, float] = field(default_factory=dict)


class Learner:
    """A network in training, and the running mean of its weights, which is exported and plays.

    Batches depend on the seed and the step alone, so there is no generator state to save.

    Args:
        game, spec: see `network_of`.
        learning_rate: the optimizer's, at its peak.
        weight_decay: the optimizer's.
        seed: fixes every batch, and the initial weights, which are the same on every device.
        device: where the steps are taken: "cpu", "cuda", "cuda:1", or "auto" for CUDA where torch can use it.
        precision: "fp32"; or "bf16", in which the network is computed. Weights, their gradients, batch norm's
            statistics and losses stay in float32. "auto" is bf16 where the device has instructions for it.
        optimizer: see `optimizer_of`.
        value_smoothing: s, of the targets of a value of three classes: a win is learned as 1 - s win, 2/3 s draw and
            1/3 s loss, a draw as s, 1 - 2 s and s.
        decisive_weight: how much a won or lost position counts in the value's loss as against a drawn one.
        freeze: patterns of names of parameters that are not trained, such as "trunk.*,value.*"; None: all are.

    Attributes:
        device: where the steps are taken.
        network: the network in training, on the device.
        precision: "fp32" or "bf16".
        steps: how many were taken so far.

    Raises:
        DeviceError: torch cannot use the device, or the device has no instructions for bf16.
        SettingsError: the network or the optimizer cannot be made, or `freeze` fits no parameter, or all.
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
        optimizer: str = "adamw",
        freeze: str | None = None,
        value_smoothing: float = 0.0,
        decisive_weight: float = 1.0,
    ) -> None:
        self._seed, self.steps, self._decisive = seed, 0, decisive_weight
        self._made_by = {"network": spec, "optimizer": optimizer}
        self.device, self.precision = device_of(device, precision)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network: Any = network_of(game, spec)  # torch's releases type `to` differently
        if value_smoothing and not network.three_classes:
            raise SettingsError("value_smoothing needs a win/draw/loss value, such as --network 5x64+wdl")
        network.value_smoothing = value_smoothing
        self._shape: tuple[int, ...] = tuple(game.obs_shape)
        self.network: nn.Module = network.to(self.device, memory_format=memory_format(network))
        self._running: nn.Module = copy.deepcopy(self.network).eval()
        _freeze(self.network, freeze)
        self._parameters = {name: each for name, each in self.network.named_parameters() if each.requires_grad}
        self._optimizer = optimizer_of(optimizer, list(self._parameters.items()), learning_rate, weight_decay)
        self._rates = [group["lr"] for group in self._optimizer.param_groups]

    def fit(
        self,
        batches: Any,
        steps: int,
        *,
        batch_size: int,
        schedule: Callable[[float], float] = lambda done: 1.0,
        magnet: Callable[[float], float] | None = None,
        **sampling: Any,
    ) -> Generator[Losses]:
        """Take gradient steps; yield the losses of each.

        Torch has fewer threads for the calling thread meanwhile: end or close the generator in the same thread. Then
        call `set_statistics` for the averaged network.

        Args:
            batches: a `ReplayBuffer`, or any object with its `sample`.
            steps: how many.
            batch_size: rows of a batch: two at least for a network that normalises over them (+conv).
            schedule: factor of the learning rate, given the share of these steps that is done.
            magnet: of `mirror_loss`, for the same argument; None: the policy's loss is the cross-entropy.
            sampling: options of `ReplayBuffer.sample`.
        """
        threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        parts = max(1, min(threads, batch_size // _LEAST_PART))
        # Each tensor once, also where a module of the user's has one under two names.
        states = [[*network.parameters(), *network.buffers()] for network in (self._running, self.network)]
        averaged = [[tensor.detach() for tensor in state if tensor.is_floating_point()] for state in states]
        average: Any = get_ema_multi_avg_fn  # torch gives it no types
        # Not `torch.manual_seed`: it notes the stack for each kind of device that is not here, a millisecond.
        seeds: list[Callable[[int], object]] = [torch.default_generator.manual_seed]
        if self.device.type == "cuda":
            seeds.append(torch.cuda.default_generators[self.device.index].manual_seed)
        elif self.device.type == "mps":
            seeds.append(torch.mps.manual_seed)
        else:
            keep_freed_memory()
        with _sharing(self.network, parts, bf16=self.precision == "bf16") as set_gradients:
            for index in range(steps):
                batch = batches.sample(batch_size, seed=seed_of(self._seed, self.steps), **sampling)
                warm_up = min(1.0, (self.steps + 1) / _WARM_UP_STEPS)
                for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
                    group["lr"] = rate * warm_up * schedule(index / steps)
                tensors = self._weighted([torch.from_numpy(array).to(self.device) for array in batch])
                with torch.random.fork_rng(devices=[]):  # for a user's dropout: the same in a run that goes on
                    for seed_torch in seeds:
                        seed_torch(seed_of(self._seed, self.steps))
                    with self._naming("network"):
                        losses = set_gradients(tensors, magnet and magnet(index / steps))
                nn.utils.clip_grad_norm_(self._parameters.values(), _GRADIENT_NORM)
                with self._naming("optimizer"):
                    self._optimizer.step()
                self.steps += 1
                # Early steps have a smaller decay, so that the mean forgets the initial weights quickly.
                most = _AVERAGE_DECAY if magnet is None else 1.0
                average(min(most, (1 + self.steps) / (10 + self.steps)))(*averaged, self.steps)
                yield losses

    @contextmanager
    def _naming(self, setting: str) -> Iterator[None]:
        """Have an error of the user's own code name the setting."""
        try:
            yield
        except Exception as error:
            if not is_own(spec := self._made_by[setting]):
                raise
            what = str(error) if isinstance(error, ModelError) else raised(error)
            raise SettingsError(f"{setting} {spec!r} cannot take a training step: {what}") from error

    def _weighted(self, batch: list[Tensor]) -> list[Tensor]:
        """The batch, with weights of its value targets by how decisive they are; the mean of these weights is 1."""
        if self._decisive == 1:
            return batch
        *rest, value = batch[:4]
        weights = 1 + (self._decisive - 1) * value.abs().reshape(len(value), -1).mean(1)
        weights /= weights.mean().clamp(min=1e-6)  # a batch of decisive games may have hardly any weight
        return [*rest, value, weights * batch[4] if len(batch) > 4 else weights]

    def class_shares(self, observations: NDArray[np.float32]) -> tuple[float, float, float]:
        """The mean probabilities that the averaged network gives to a win, a draw and a loss of the player to move."""
        with torch.no_grad():
            win, draw, loss = outputs(self._running, self._rows(observations))[1].float().softmax(1).mean(0).tolist()
        return win, draw, loss

    def set_statistics(self, batches: Any, *, batch_size: int, **sampling: Any) -> None:
        """Set batch norm's statistics of the averaged network to those of its own weights, on rows of the batches.

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
                yield self._rows(drawn[0])

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
                part = [self._rows(array[first : first + _MEASURED_ROWS]) for array in rows]
                observations, legal, policy, value = part
                logits, values = answers(self._running, observations)
                best = logits.float().masked_fill(~legal, -torch.inf).argmax(1)
                sums["policy_loss"] += policy_loss(logits.float(), legal, policy).item() * len(value)
                squares = nn.functional.mse_loss(values.float(), value, reduction="sum").item()
                sums["value_loss"] += squares * len(value) / value.numel()  # the mean of the players' numbers
                sums["move_match"] += (best == policy.argmax(1)).sum().item()
        return {name: total / count for name, total in sums.items()}

    def is_finite(self) -> bool:
        """Whether weights, statistics and the optimizer's state are finite, and the averaged network's answers too.

        The answers are those to an observation of zeros and to one of ones.
        """
        tensors = [*self.network.state_dict().values(), *self._running.state_dict().values()]
        kept = [value for state in self._optimizer.state.values() for value in state.values()]
        tensors += [value for value in kept if isinstance(value, Tensor)]
        rows = np.ones((2, *self._shape), np.float32)
        rows[0] = 0.0
        with torch.no_grad():
            tensors += answers(self._running, self._rows(rows))
        return all(bool(tensor.isfinite().all()) for tensor in tensors)

    def _rows(self, array: NDArray[Any]) -> Tensor:
        """An array of rows on the device, observations as the network takes them fastest."""
        rows = torch.from_numpy(array).to(self.device)
        return rows.contiguous(memory_format=memory_format(self._running)) if rows.ndim == 4 else rows

    @property
    def newest(self) -> nn.Module:
        """The network in training, on the CPU: a copy where the steps are taken elsewhere."""
        return self.network if self.device.type == "cpu" else copy.deepcopy(self.network).cpu()

    @property
    def averaged(self) -> nn.Module:
        """The network with averaged weights, on the CPU: a copy where the steps are taken elsewhere."""
        return self._running if self.device.type == "cpu" else copy.deepcopy(self._running).cpu()

    def model_arrays(self) -> dict[str, NDArray[Any]]:
        """The averaged weights: the model."""
        return to_arrays(self._running)

    def optimizer_arrays(self) -> dict[str, NDArray[Any]]:
        """The weights in training, the optimizer's state of each parameter, and the number of steps.

        Raises:
            ModelError: the optimizer keeps something that is neither a tensor nor a number.
        """
        arrays = {f"network.{name}": array for name, array in to_arrays(self.network).items()}
        for name, parameter in self._parameters.items():
            state = self._optimizer.state.get(parameter, {})
            for key, value in state.items():
                if key == "step" and "exp_avg" in state and value == self.steps:
                    continue  # `load` knows it
                if isinstance(value, Tensor):
                    arrays[f"{key}.{name}"] = value.detach().cpu().contiguous().numpy().copy()
                elif isinstance(value, int | float):
                    arrays[f"{key}.{name}"] = np.array(value, np.int64 if isinstance(value, int) else np.float64)
                elif value is not None:
                    raise ModelError(
                        f"optimizer {self._made_by['optimizer']!r} keeps {key}, a {type(value).__name__}: a checkpoint "
                        "holds tensors and numbers"
                    )
        arrays["steps"] = np.array(self.steps, np.int64)
        return arrays

    def begin_with(self, model: dict[str, NDArray[Any]]) -> str:
        """Take over the weights of another network before the first step.

        Args:
            model: what `model_arrays` returned there, or weights from elsewhere. A network of azpy's own may begin with
                a smaller one; any other network needs all weights by name.

        Returns:
            The other network in words: its spec, such as "5x64", or how many weights it has.

        Raises:
            ModelError: the other network is of another game, or has more blocks or channels, or has other weights.
        """
        mine: Any = self.network
        model = unwrapped(model, mine.state_dict())
        said = f"{len(model)} weights by name"
        if isinstance(mine, Network):
            said = spec_of(model, mine.num_values)
            other = mine.like(said)
            other.load_state_dict(weights_from(other, weights_of_model(other, model)))
            weights = grown(other, mine)
        else:
            weights = weights_from(mine, model)
        for network in (self.network, self._running):
            network.load_state_dict(weights)
        return said

    def load(self, model: dict[str, NDArray[Any]], optimizer: dict[str, NDArray[Any]]) -> None:
        """Continue from what `model_arrays` and `optimizer_arrays` returned.

        Raises:
            ModelError: the arrays are of another network.
        """
        load_arrays(self._running, model)
        parts = {name: array for name, array in optimizer.items() if name.startswith("network.")}
        load_arrays(self.network, {name.removeprefix("network."): array for name, array in parts.items()})
        if "steps" not in optimizer:
            raise ModelError("the saved optimizer does not fit this network")
        self.steps = int(optimizer["steps"])
        self._optimizer.state.clear()
        for full, array in optimizer.items():
            key, _, name = full.partition(".")
            if key in ("network", "steps") or name not in self._parameters:  # frozen by now
                continue
            parameter = self._parameters[name]
            state = self._optimizer.state.setdefault(parameter, {})
            if array.ndim == 0 and array.dtype in (np.int64, np.float64):
                state[key] = array.item()
            elif key == "step":
                state[key] = torch.from_numpy(array.copy()).to(self.device)
            else:
                like = torch.empty_like(parameter) if array.shape == parameter.shape else torch.empty(array.shape)
                state[key] = like.to(self.device).copy_(torch.from_numpy(array.copy()))
        for state in self._optimizer.state.values():
            if "exp_avg" in state:
                state.setdefault("step", torch.tensor(float(self.steps), device=self.device))


@contextmanager
def _sharing(
    network: nn.Module, count: int, *, bf16: bool
) -> Iterator[Callable[[Sequence[Tensor], float | None], Losses]]:
    """Let `count` threads compute a step's gradients together, each from its own part of the batch.

    Each thread has a network with the same weights in memory, but with its own gradients and batch norm statistics.
    `network` keeps the statistics of the first part: they are averaged over many steps, and all parts are drawn alike.

    Yields:
        A function that sets the gradients of `network` to those of the mean loss over a batch, with a magnet or None.
        Sums go by part, so the bits do not depend on which thread is faster.
    """
    networks = [network.train(), *(copy.deepcopy(network) for _ in range(count - 1))]
    for other in networks[1:]:
        for mine, shared in zip(other.parameters(), network.parameters(), strict=True):
            mine.data = shared.data

    def set_gradients(batch: Sequence[Tensor], magnet: float | None) -> Losses:
        rows = len(batch[0])
        cuts = pairwise(rows * part // count for part in range(count + 1))
        parts = [[tensor[begin:end] for tensor in batch] for begin, end in cuts]

        def share(network: nn.Module, part: Sequence[Tensor]) -> tuple[float, float, float, dict[str, float]]:
            return gradient(network, part, rows, bf16, magnet)

        running = [others.submit(share, *work) for work in zip(networks[1:], parts[1:], strict=True)]
        shares = [share(network, parts[0]), *(each.result() for each in running)]
        with torch.no_grad():
            for parameter, *rest in zip(*(each.parameters() for each in networks), strict=True):
                for other in rest:
                    if parameter.grad is None:
                        parameter.grad = other.grad
                    elif other.grad is not None:
                        parameter.grad += other.grad
        policy, value, weight, heads = zip(*shares, strict=True)
        named = {name: sum(part[name] for part in heads) for name in heads[0]}
        return Losses(sum(policy), sum(value) / sum(weight), named)

    threads = torch.get_num_threads()
    torch.set_num_threads(threads // count)  # torch keeps this number for each thread that calls it
    try:
        with ThreadPoolExecutor(max(1, count - 1), "azpy-fit", torch.set_num_threads, (threads // count,)) as others:
            yield set_gradients
    finally:
        torch.set_num_threads(threads)


def _freeze(network: nn.Module, patterns: str | None) -> None:
    """Keep the parameters whose names fit one of the patterns from being trained."""
    names = [name for name, _ in network.named_parameters()]
    for pattern in filter(None, map(str.strip, (patterns or "").split(","))):
        fitting = [name for name in names if fnmatchcase(name, pattern)]
        if not fitting:
            raise SettingsError(f"freeze {pattern!r} matches no parameter; the network has {', '.join(names)}")
        for name in fitting:
            network.get_parameter(name).requires_grad_(False)
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise SettingsError(
            f"freeze {patterns!r} leaves nothing to train" if patterns else "the network has no weights"
        )


def seed_of(*numbers: int) -> int:
    """The seed of a batch: of the run's seed, the step, and the part if it is for batch norm's statistics."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


def device_of(device: str, precision: str) -> tuple[torch.device, str]:
    """The device and the precision that `Learner` takes for these words, and its errors."""
    if device == "auto":
        device = "mps" if torch.backends.mps.is_available() else "cpu"
        device = "cuda" if torch.version.cuda and torch.cuda.is_available() else device
    chosen = torch_device(device)
    if chosen.type == "cpu":
        has_bf16 = bool((BF16_FLAGS | {"bf16"}) & cpu_flags())  # that of ARM
    else:  # without instructions for bf16, bf16 is slower than fp32
        has_bf16 = chosen.type == "cuda" and bool(torch.cuda.get_device_capability(chosen) >= (8, 0))
    if precision == "auto":
        return chosen, "bf16" if has_bf16 else "fp32"
    if precision not in ("fp32", "bf16"):
        raise SettingsError(f"the precision of training must be fp32, bf16 or auto, got {precision!r}")
    if precision == "bf16" and not has_bf16:
        unit = "CPU" if chosen.type == "cpu" else "GPU"
        raise DeviceError(f"this {unit} does not support bf16: train with fp32 or auto")
    return chosen, precision


def use_threads(single: bool) -> int:
    """Let torch use every core this process may run on, or a single thread; return how many cores there are.

    Torch cuts a sum, such as a gradient, into as many parts as there are threads. Runs get the same bits only with the
    same number of threads, and every machine has one.
    """
    cores = usable_cores()
    torch.set_num_threads(1 if single else cores)
    return cores
