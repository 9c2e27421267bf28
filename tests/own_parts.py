"""A network, an optimizer and their weights as a user writes them: `own_parts:make`, `own_parts:slow`."""

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


def save(network: nn.Module, path: Path) -> None:
    """Writes weights to a .pt file, as training programs do."""
    torch.save({"epoch": 3, "state_dict": network.state_dict()}, path)
