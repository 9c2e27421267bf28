"""Sound games, from which the planted games are made."""

import itertools
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


class Kalah(azpy.Game):
    """Six pits of four seeds a side, sown one by one; the last one in the own store gives another turn."""

    num_actions, obs_shape, max_plies = 6, (2, 1, 7), 400

    def __init__(self) -> None:
        self.sides = [[4] * 6 + [0], [4] * 6 + [0]]  # of players 0 and 1: six pits and the store
        self.player = self.last = 0

    def turn(self) -> int:
        return self.player if all(any(side[:6]) for side in self.sides) else azpy.TERMINAL

    def legal_actions(self) -> list[int]:
        return [pit for pit in range(6) if self.sides[self.player][pit]]

    def play(self, action: int) -> None:
        self.last = side = self.player
        seeds, self.sides[side][action], pit = self.sides[side][action], 0, action
        while seeds:
            pit += 1
            if pit == (7 if side == self.last else 6):
                side, pit = 1 - side, 0
            self.sides[side][pit] += 1
            seeds -= 1
        own, other = self.sides[self.last], self.sides[1 - self.last]
        if side == self.last and pit < 6 and own[pit] == 1 and other[5 - pit]:
            own[6] += 1 + other[5 - pit]
            own[pit] = other[5 - pit] = 0
        if (side, pit) != (self.last, 6):
            self.player = 1 - self.last

    def clone(self) -> Self:
        copy = type(self)()
        copy.sides, copy.player, copy.last = [list(side) for side in self.sides], self.player, self.last
        return copy

    def outcome(self) -> float:
        return self.lead(0)

    def lead(self, player: int) -> float:
        return float(np.sign(sum(self.sides[player]) - sum(self.sides[1 - player])))

    def encode(self) -> NDArray[np.float32]:
        return np.array([self.sides[self.player], self.sides[1 - self.player]], np.float32).reshape(2, 1, 7)

    def key(self) -> int:
        number = 2 * self.player + self.last
        for seeds in itertools.chain(*self.sides):
            number = 49 * number + seeds
        return number


HEAP = """
import sys
import numpy as np
import azpy

class Heap(azpy.Game):
    num_actions, obs_shape, max_plies = 2, (1, 1, 1), 20

    def __init__(self, heap=7, player=0):
        self.heap, self.player = heap, player
    def turn(self):
        return self.player if self.heap else azpy.TERMINAL
    def legal_actions(self):
        return [0, 1] if self.heap > 1 else [0]
    def play(self, action):
        self.heap -= action + 1
        self.player = 1 - self.player
    def clone(self):
        return Heap(self.heap, self.player)
    def outcome(self):
        return 1.0 if self.player == 1 else -1.0
    def encode(self):
        return np.full((1, 1, 1), self.heap / 20, np.float32)
    def key(self):
        return 2 * self.heap + self.player

class Broken(Heap):
    def __init__(self):
        raise RuntimeError("no board today")

class Flat(Heap):
    obs_shape = (9,)

class Method(Heap):
    def num_actions(self):
        return 2

called = []

class Quacks:  # all of a game, but no azpy.Game
    num_actions, obs_shape, max_plies = 2, (1, 1, 1), 20
    turn = legal_actions = play = clone = outcome = encode = key = Heap.turn
    def __init__(self):
        called.append("Quacks")

def make():
    called.append("make")

class Needy(Heap):
    def __init__(self):
        import not_there

class Uncopied(Heap):
    def clone(self):
        raise RuntimeError("no second board")
"""
