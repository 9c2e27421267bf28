"""A network, an optimizer and their weights as a user writes them: `own_parts:make`, `own_parts:slow`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


class Tiny(nn.Module):
    """Counts the stones beside what it has to do; drops numbers at random while it learns."""

    def __init__(self, shape: tuple[int, int, int], actions: int) -> None:
        super().__init__()
        planes, height, width = shape
        self.body = nn.Sequential(nn.Conv2d(planes, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.1))
        size = 4 * height * width
        self.policy, self.value, self.stones = nn.Linear(size, actions), nn.Linear(size, 1), nn.Linear(size, 1)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        flat = self.body(observations).flatten(1)
        return self.policy(flat), torch.tanh(self.value(flat)), {"stones": self.stones(flat)}

    def loss(self, name: str, output: Tensor, batch: Any) -> Tensor:
        assert name == "stones"
        target: Tensor = batch.observations.mean((1, 2, 3))
        return 0.5 * (output[:, 0] - target).square().mean()


def make(shape: tuple[int, int, int], actions: int) -> nn.Module:
    return Tiny(shape, actions)


def wrong(shape: tuple[int, int, int], actions: int) -> nn.Module:
    return Tiny(shape, actions + 1)


def slow(parameters: Any, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
    return torch.optim.RMSprop(parameters, learning_rate / 10, weight_decay=weight_decay, momentum=0.5)


class Normed(nn.Module):
    """A network with a part to choose."""

    def __init__(self, shape: tuple[int, int, int], actions: int, norm: nn.Module) -> None:
        super().__init__()
        self.body, self.norm = nn.Linear(shape[0] * shape[1] * shape[2], 8), norm
        self.policy, self.value = nn.Linear(8, actions), nn.Linear(8, 1)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        features = self.norm(self.body(observations.flatten(1)))
        return self.policy(features), torch.tanh(self.value(features))


class Call(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


RMS_NORMS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.RMSNorm(8),
    "eps": lambda: nn.RMSNorm(8, eps=0.5),
    "bare": lambda: nn.RMSNorm(8, elementwise_affine=False),
    "two": lambda: nn.Sequential(nn.Unflatten(1, (2, 4)), nn.RMSNorm((2, 4)), nn.Flatten()),
    "function": lambda: Call(lambda x: nn.functional.rms_norm(x, (8,))),
}


# By default torch.compile imports torch._inductor, which takes seconds.
compiled: Any = partial(torch.compile, backend="eager")


def compiled_whole(shape: tuple[int, int, int], actions: int) -> Any:
    return compiled(Normed(shape, actions, nn.Linear(8, 8)))


def compiled_in_place(shape: tuple[int, int, int], actions: int) -> nn.Module:
    network = Normed(shape, actions, nn.Linear(8, 8))
    network.compile(backend="eager")
    return network


def compiled_part(shape: tuple[int, int, int], actions: int) -> nn.Module:
    return Normed(shape, actions, compiled(nn.Linear(8, 8)))


def compiled_forward(shape: tuple[int, int, int], actions: int) -> nn.Module:
    class Compiled(Normed):
        forward = compiled(Normed.forward)

    return Compiled(shape, actions, nn.Linear(8, 8))


def script(shape: tuple[int, int, int], actions: int) -> Any:
    return torch.jit.script(Normed(shape, actions, nn.Linear(8, 8)))


def half(shape: tuple[int, int, int], actions: int) -> nn.Module:
    network = Tiny(shape, actions)
    network.body[1].running_mean = network.body[1].running_mean.bfloat16()
    return network


def unwritable(shape: tuple[int, int, int], actions: int) -> nn.Module:
    return Normed(shape, actions, Call(lambda x: torch.rot90(x.reshape(-1, 1, 2, 4), 2, (2, 3)).flatten(1)))


def unloadable(shape: tuple[int, int, int], actions: int) -> nn.Module:
    class Bag(nn.EmbeddingBag):  # torch writes a model that ONNX Runtime does not take
        def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
            return x + super().forward(torch.zeros(x.shape[0], 2, dtype=torch.long))

    return Normed(shape, actions, Bag(4, 8))


def untrainable(shape: tuple[int, int, int], actions: int) -> nn.Module:
    class Still(Normed):
        @torch.no_grad()
        def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
            return super().forward(observations)

    return Still(shape, actions, nn.Identity())


def deaf(shape: tuple[int, int, int], actions: int) -> nn.Module:
    class Deaf(Normed):
        def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
            logits, values = super().forward(observations)
            return logits, values.detach()

    return Deaf(shape, actions, nn.Identity())


def of_another(parameters: Any, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(nn.Linear(2, 2).parameters(), learning_rate)


def of_some(parameters: Any, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters[:-2], learning_rate)


def of_more(parameters: Any, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
    return torch.optim.SGD([*(each for _, each in parameters), nn.Parameter(torch.zeros(2))], learning_rate)


def closing(parameters: Any, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
    return torch.optim.LBFGS([each for _, each in parameters], learning_rate)


def capturable(parameters: Any, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, learning_rate, capturable=True)


class Plain(torch.optim.Optimizer):
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["seen"] = [1]


def without_rate(parameters: Any, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
    return Plain(parameters, {})


def listing(parameters: Any, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
    return Plain(parameters, {"lr": learning_rate})


RATES: list[list[float]] = []  # of each group of `noting`, at each step


class Noting(torch.optim.SGD):
    def step(self, closure: Any = None) -> Any:
        RATES.append([group["lr"] for group in self.param_groups])
        return super().step(closure)


def noting(parameters: Any, learning_rate: float, weight_decay: float) -> torch.optim.Optimizer:
    groups: list[dict[str, Any]] = [{"params": [parameters[0][1]], "lr": 2 * learning_rate}]
    return Noting([*groups, {"params": [each for _, each in parameters[1:]]}], learning_rate)


def save(network: nn.Module, path: Path) -> None:
    """Writes weights to a .pt file, as training programs do."""
    torch.save({"epoch": 3, "state_dict": network.state_dict()}, path)
