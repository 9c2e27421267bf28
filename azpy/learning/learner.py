"""Fitting the network to replayed positions: losses, AdamW, averaged weights, and their exact saving.

Two networks of one shape, on the CPU or a GPU: `network` takes the gradient steps, `averaged` follows it as a running
mean and is the one that is exported and plays. Everything random is keyed by (seed, step), so there is no generator
state to save. Knows nothing of games, files or ONNX.

On the CPU the threads of torch share a step of a convolutional network: each computes the gradient of its own part of
the batch. Torch would divide every operation among its threads, and they would wait for each other in every operation.
Where another program keeps a core busy, these waits are most of a step. Threads with a part each wait once a step.
"""

import copy
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from azpy.errors import DeviceError, ModelError, missing_to_train

try:
    import torch
    from torch import Tensor, nn
    from torch.optim.swa_utils import get_ema_multi_avg_fn
except ImportError as error:
    raise missing_to_train("torch") from error

from azpy.learning.network import Network, load_arrays, to_arrays, torch_device
from azpy.machine import usable_cores

__all__ = ["Batches", "Learner", "Losses", "policy_loss", "use_threads"]

_MOMENTS = ("exp_avg", "exp_avg_sq")
_AVERAGE_DECAY = 0.995  # the averaged weights look back some 200 steps
_GRADIENT_NORM = 4.0
_WARM_UP_STEPS = 50
_LEAST_PART = 64  # rows: batch norm's statistics come from a part alone, and smaller parts make them coarse


class Batches(Protocol):
    """What `ReplayBuffer` offers to learning."""

    def sample(
        self,
        rows: int,
        *,
        seed: int,
        root_value_weight: float = 0.0,
        symmetries: bool = True,
        surprise_weight: float = 0.0,
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32], NDArray[np.float32]]:
        """Draws observations [B, C, H, W], legal [B, A], policy targets [B, A], value targets [B] (player to move)."""
        ...


@dataclass(frozen=True)
class Losses:
    """Of one step.

    Attributes:
        policy: cross-entropy over the legal actions, in nats.
        value: squared error of the value.
    """

    policy: float
    value: float


class Learner:
    """A network being trained.

    Args:
        obs_shape: (C, H, W).
        num_actions: A.
        spec: see `Network`.
        action_cells: see `Network`.
        learning_rate: peak rate of AdamW.
        weight_decay: of AdamW.
        seed: fixes the initial weights and every batch; the weights are the same on every device.
        device: where the steps are taken: "cpu", "cuda", "cuda:1", or "auto" for CUDA where torch can use it.

    Attributes:
        device: where it is.
        network: takes the steps, there.
        steps: taken so far.

    Raises:
        DeviceError: torch cannot use the device.
    """

    def __init__(
        self,
        obs_shape: tuple[int, int, int],
        num_actions: int,
        spec: str,
        *,
        action_cells: Sequence[int] | None = None,
        learning_rate: float = 2e-3,
        weight_decay: float = 1e-4,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self._rate = learning_rate
        self._seed = seed
        self.steps = 0
        self.device = _choose(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = Network(obs_shape, num_actions, spec, action_cells)
        untyped: Any = network  # torch's releases do not agree on how `to` is typed
        self.network: Network = untyped.to(self.device, memory_format=torch.channels_last)
        self._running: Network = copy.deepcopy(self.network).eval()
        self._averaged_from = [_floating(self._running), _floating(self.network)]
        self._parameters = dict(self.network.named_parameters())
        self._optimizer = torch.optim.AdamW(
            self._parameters.values(), lr=learning_rate, weight_decay=weight_decay, fused=True
        )

    @classmethod
    def of(cls, game: Any, spec: str, **options: Any) -> Self:
        """A learner of an untrained network for a game.

        Args:
            game: any position of it, with `action_cells` or without.
            spec: see `Network`.
            options: as above.
        """
        cells = getattr(game, "action_cells", None)
        return cls(game.obs_shape, game.num_actions, spec, action_cells=cells, **options)

    def fit(
        self,
        batches: Batches,
        steps: int,
        *,
        batch_size: int,
        root_value_weight: float,
        symmetries: bool = True,
        surprise_weight: float = 0.0,
        schedule: Callable[[float], float] = lambda done: 1.0,
    ) -> Generator[Losses]:
        """Takes gradient steps; yields the losses of each.

        Args:
            batches: where training batches are drawn from.
            steps: how many.
            batch_size: rows of a batch.
            root_value_weight: share of the root's value in the value target; the rest is the outcome.
            symmetries: whether each row gets a symmetry of the game at random.
            surprise_weight: share of the rows drawn by how much search surprised the network, see `ReplayBuffer`.
            schedule: factor of the learning rate, given the share of these steps that is done.

        While it goes on, torch has fewer threads for the thread that calls it: end it, or close it, in the same thread.
        """
        with _Parts(self.network, self._parts_of(batch_size)) as parts:
            for index in range(steps):
                batch = batches.sample(
                    batch_size,
                    seed=self._batch_seed(),
                    root_value_weight=root_value_weight,
                    symmetries=symmetries,
                    surprise_weight=surprise_weight,
                )
                warm_up = min(1.0, (self.steps + 1) / _WARM_UP_STEPS)
                for group in self._optimizer.param_groups:
                    group["lr"] = self._rate * warm_up * schedule(index / steps)
                losses = parts.gradient([torch.from_numpy(array).to(self.device) for array in batch])
                nn.utils.clip_grad_norm_(self._parameters.values(), _GRADIENT_NORM)
                self._optimizer.step()
                self.steps += 1
                self._average()
                yield losses

    def _parts_of(self, batch_size: int) -> int:
        # Flat features have no convolutions: their steps are too short to be shared.
        shared = self.device.type == "cpu" and self.network.is_convolutional
        return max(1, min(torch.get_num_threads(), batch_size // _LEAST_PART)) if shared else 1

    def _batch_seed(self) -> int:
        return int(np.random.SeedSequence([self._seed, self.steps]).generate_state(1, np.uint64)[0])

    def _average(self) -> None:
        """A running mean that forgets its start quickly; batch norm's statistics are averaged with the weights."""
        decay = min(_AVERAGE_DECAY, (1 + self.steps) / (10 + self.steps))
        average: Any = get_ema_multi_avg_fn  # torch gives it no types
        average(decay)(*self._averaged_from, self.steps)

    @property
    def averaged(self) -> Network:
        """The network with averaged weights, on the CPU: a copy where the steps are taken elsewhere."""
        if self.device.type == "cpu":
            return self._running
        copied = copy.deepcopy(self._running)
        copied.cpu()
        return copied

    def model_arrays(self) -> dict[str, NDArray[Any]]:
        """The averaged weights: the model."""
        return to_arrays(self._running)

    def optimizer_arrays(self) -> dict[str, NDArray[Any]]:
        """The weights being trained and AdamW's moments: with the model, all that training needs to go on."""
        arrays = {f"network.{name}": array for name, array in to_arrays(self.network).items()}
        for name, parameter in self._parameters.items():
            state = self._optimizer.state.get(parameter, {})
            for moment in _MOMENTS:
                tensor = state.get(moment, torch.zeros_like(parameter))
                arrays[f"{moment}.{name}"] = tensor.detach().cpu().contiguous().numpy().copy()
        arrays["steps"] = np.array(self.steps, np.int64)
        return arrays

    def load(self, model: dict[str, NDArray[Any]], optimizer: dict[str, NDArray[Any]]) -> None:
        """Goes on from what `model_arrays` and `optimizer_arrays` gave.

        Raises:
            ModelError: they are of another network.
        """
        load_arrays(self._running, model)
        load_arrays(self.network, _with_prefix(optimizer, "network."))
        moments = {moment: _with_prefix(optimizer, f"{moment}.") for moment in _MOMENTS}
        if "steps" not in optimizer or any(set(part) != set(self._parameters) for part in moments.values()):
            raise ModelError("the saved optimizer is of another network")
        self.steps = int(optimizer["steps"])
        for name, parameter in self._parameters.items():
            state: dict[str, Tensor] = {"step": torch.tensor(float(self.steps), device=self.device)}
            for moment, arrays in moments.items():
                state[moment] = torch.empty_like(parameter).copy_(torch.from_numpy(arrays[name].copy()))
            self._optimizer.state[parameter] = state


class _Parts:
    """Threads that compute a step's gradient together, each from its own part of the batch.

    Each has a network of its own that shares the weights of `network`, but has its own gradients and its own running
    statistics of batch norm. Those of `network` come from the first part's rows: they are averaged over many steps, and
    the rows of all parts are drawn alike. The sums over parts are in the order of the parts, so the bits do not depend
    on which thread is faster.
    """

    def __init__(self, network: Network, count: int) -> None:
        network.train()
        self._networks = [network, *(_sharing_weights(network) for _ in range(count - 1))]
        self._threads = torch.get_num_threads()
        self._others: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        if (count := len(self._networks)) > 1:
            each = self._threads // count
            torch.set_num_threads(each)  # torch keeps this number for each thread that calls it
            self._others = ThreadPoolExecutor(count - 1, "azpy-fit", torch.set_num_threads, (each,))
        return self

    def __exit__(self, *_: object) -> None:
        if self._others is not None:
            torch.set_num_threads(self._threads)
            self._others.shutdown()

    def gradient(self, batch: Sequence[Tensor]) -> Losses:
        """Sets the gradients of the network to those of the mean loss over a batch; returns the losses.

        Args:
            batch: observations [B, C, H, W], legal [B, A], policy targets [B, A], value targets [B].
        """
        if self._others is None:
            return _gradient(self._networks[0], batch, 1.0)
        rows, count = len(batch[0]), len(self._networks)
        cuts = [rows * part // count for part in range(count + 1)]
        work = [
            (network, [tensor[a:b] for tensor in batch], (b - a) / rows)
            for network, a, b in zip(self._networks, cuts[:-1], cuts[1:], strict=True)
        ]
        running = [self._others.submit(_gradient, *mine) for mine in work[1:]]
        losses = [_gradient(*work[0]), *(future.result() for future in running)]
        with torch.no_grad():
            for parameter, *others in zip(*(network.parameters() for network in self._networks), strict=True):
                for other in others:
                    parameter.grad += other.grad
        return Losses(sum(loss.policy for loss in losses), sum(loss.value for loss in losses))


def _sharing_weights(network: Network) -> Network:
    """A copy whose weights are those of `network` in memory."""
    shared = copy.deepcopy(network)
    for mine, other in zip(shared.parameters(), network.parameters(), strict=True):
        mine.data = other.data
    return shared


def _gradient(network: Network, batch: Sequence[Tensor], share: float) -> Losses:
    """Sets a network's gradients to those of `share` times the mean losses over `batch`; returns these products."""
    rows, legal, policy, value = batch
    network.zero_grad()
    logits, values = network(rows.contiguous(memory_format=torch.channels_last))
    policy_part = policy_loss(logits, legal, policy) * share
    value_part = nn.functional.mse_loss(values, value) * share
    torch.autograd.backward(policy_part + value_part)
    return Losses(policy_part.item(), value_part.item())


def _floating(network: Network) -> list[Tensor]:
    """Weights and statistics: all but counters."""
    return [tensor for tensor in network.state_dict().values() if tensor.is_floating_point()]


def _choose(device: str) -> torch.device:
    try:
        return torch_device("cuda" if device == "auto" else device)
    except DeviceError:
        if device != "auto":
            raise
        return torch.device("cpu")


def policy_loss(logits: Tensor, legal: Tensor, target: Tensor) -> Tensor:
    """Mean cross-entropy over the legal actions; an illegal action's logit gets exactly no gradient.

    Args:
        logits: [B, A] raw.
        legal: [B, A] bool.
        target: [B, A], sums to 1 a row, 0 where illegal.
    """
    # Finite, as 0 * -inf is NaN, and so low that exp gives exactly 0.
    masked = logits.masked_fill(~legal, -1e9)
    return -(target * torch.log_softmax(masked, dim=1)).sum(dim=1).mean()


def use_threads(single: bool) -> int:
    """Lets torch use every core this process may run on, or a single thread; returns how many cores there are.

    Gradients are sums, and torch cuts a sum into as many parts as there are threads: only runs with equally many get
    the same bits. One is the number that every machine has.
    """
    cores = usable_cores()
    torch.set_num_threads(1 if single else cores)
    return cores


def _with_prefix(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
