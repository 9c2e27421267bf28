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


class Line(azpy.Game):
    """Two in a row on a line of six cells; stones are put in turn, so the number of stones tells the player."""

    num_actions, obs_shape, max_plies = 6, (2, 1, 6), 6
    rows: tuple[tuple[int, ...], ...] = tuple((first, first + 1) for first in range(5))

    def __init__(self) -> None:
        self.cells: tuple[int, ...] = (-1,) * self.num_actions

    def player(self) -> int:
        return sum(cell >= 0 for cell in self.cells) % 2

    def winner(self) -> int:
        rows = [{self.cells[cell] for cell in row} for row in self.rows]
        return next((player for player in (0, 1) if {player} in rows), -1)

    def turn(self) -> int:
        return azpy.TERMINAL if self.winner() >= 0 or -1 not in self.cells else self.player()

    def legal_actions(self) -> list[int]:
        return [cell for cell, owner in enumerate(self.cells) if owner < 0]

    def play(self, action: int) -> None:
        self.cells = (*self.cells[:action], self.player(), *self.cells[action + 1 :])

    def clone(self) -> Self:
        copy = type(self)()
        copy.cells = self.cells
        return copy

    def outcome(self) -> float:
        return {-1: 0.0, 0: 1.0, 1: -1.0}[self.winner()]

    def encode(self) -> NDArray[np.float32]:
        return self.planes(self.player())

    def planes(self, player: int) -> NDArray[np.float32]:
        return np.array([[[cell == owner for cell in self.cells]] for owner in (player, 1 - player)], np.float32)

    def key(self) -> int:
        return sum((cell + 1) * 3**place for place, cell in enumerate(self.cells))


class TicTacToe(Line):
    """Full boards, and so draws, end with an action of player 0."""

    num_actions, obs_shape, max_plies = 9, (2, 1, 9), 9
    rows = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


class LongLine(Line):
    """Three in a row, of which four stones are enough to look at."""

    rows = tuple((first, first + 1, first + 2) for first in range(4))


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
