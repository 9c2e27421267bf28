"""Sound games, from which the planted games are made."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

import azpy


class Nim(azpy.Game):
    """Take any number from one heap; who takes the last counter wins. Action 3 * heap + number - 1."""

    num_actions, obs_shape, max_plies = 9, (3, 1, 1), 6

    def __init__(self) -> None:
        self.heaps, self.player = [1, 2, 3], 0

    def turn(self) -> int:
        return self.player if any(self.heaps) else azpy.TERMINAL

    def legal_actions(self) -> list[int]:
        return [3 * heap + number for heap, size in enumerate(self.heaps) for number in range(size)]

    def play(self, action: int) -> None:
        self.heaps[action // 3] -= action % 3 + 1
        self.player = 1 - self.player

    def clone(self) -> Self:
        copy = type(self)()
        copy.heaps, copy.player = list(self.heaps), self.player
        return copy

    def outcome(self) -> float:
        return 1.0 if self.player == 1 else -1.0

    def encode(self) -> NDArray[np.float32]:
        return np.array(self.heaps, np.float32).reshape(3, 1, 1)

    def key(self) -> int:
        return ((self.heaps[0] * 4 + self.heaps[1]) * 4 + self.heaps[2]) * 2 + self.player


class Throws(azpy.Game):
    """Each throws a coin and may keep it or not; after two rounds more heads kept win."""

    num_actions, obs_shape, max_plies = 2, (4, 1, 1), 8

    def __init__(self) -> None:
        self.heads, self.thrown, self.turns = (0, 0), -1, 0

    def turn(self) -> int:
        if self.turns == 4:
            return azpy.TERMINAL
        return azpy.CHANCE if self.thrown < 0 else self.turns % 2

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(0, 0.25), (1, 0.75)]

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> None:
        if self.thrown < 0:
            self.thrown = action
            return
        kept = self.thrown if action else 0
        mine, theirs = self.heads
        self.heads = (mine + kept, theirs) if self.turns % 2 == 0 else (mine, theirs + kept)
        self.thrown, self.turns = -1, self.turns + 1

    def clone(self) -> Self:
        copy = type(self)()
        copy.heads, copy.thrown, copy.turns = self.heads, self.thrown, self.turns
        return copy

    def outcome(self) -> float:
        return float(np.sign(self.heads[0] - self.heads[1]))

    def encode(self) -> NDArray[np.float32]:
        mine, theirs = self.heads if self.turns % 2 == 0 else self.heads[::-1]
        return np.array([mine, theirs, self.thrown, self.turns], np.float32).reshape(4, 1, 1)

    def key(self) -> int:
        return ((self.heads[0] * 4 + self.heads[1]) * 4 + self.thrown + 1) * 8 + self.turns
