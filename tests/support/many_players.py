"""Small games of another number of players than two, as a user writes them."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

import azpy

SIZE = 4
LINES = [
    [(row + step * down) * SIZE + column + step * right for step in range(3)]
    for row in range(SIZE)
    for column in range(SIZE)
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
    if row + 2 * down < SIZE and 0 <= column + 2 * right < SIZE
]


class Trio(azpy.Game):
    """Three players put stones on 4 x 4 cells in turn; who has three in a row first wins from the others."""

    num_actions, obs_shape, max_plies, num_players = SIZE * SIZE, (3, SIZE, SIZE), SIZE * SIZE, 3

    def __init__(self) -> None:
        self.cells, self.plies = [-1] * (SIZE * SIZE), 0

    def winner(self) -> int | None:
        """Who has three in a row."""
        owners = ({self.cells[cell] for cell in line} for line in LINES)
        return next((own.pop() for own in owners if len(own) == 1 and -1 not in own), None)

    def turn(self) -> int:
        over = self.winner() is not None or self.plies == SIZE * SIZE
        return azpy.TERMINAL if over else self.plies % self.num_players

    def legal_actions(self) -> list[int]:
        return [cell for cell, owner in enumerate(self.cells) if owner < 0]

    def play(self, action: int) -> None:
        self.cells[action] = self.plies % self.num_players
        self.plies += 1

    def clone(self) -> Self:
        other = type(self)()
        other.cells, other.plies = self.cells.copy(), self.plies
        return other

    def outcome(self) -> list[float]:
        winner = self.winner()
        return [0.0] * 3 if winner is None else [1.0 if player == winner else -0.5 for player in range(3)]

    def encode(self) -> NDArray[np.float32]:
        """Planes of the players, from the one to move on."""
        cells, planes = np.array(self.cells).reshape(SIZE, SIZE), range(self.obs_shape[0])
        return np.array([cells == (self.plies + seat) % self.num_players for seat in planes], np.float32)

    def key(self) -> int:
        return sum((owner + 1) << (2 * cell) for cell, owner in enumerate(self.cells))


class Colors(Trio):
    """`Trio` with names of the players, and with a board that can be clicked."""

    side_names = ("red", "blue", "green")

    def touches(self, action: int) -> list[int]:
        return [action]

    def __str__(self) -> str:
        rows = (self.cells[row : row + SIZE] for row in range(0, SIZE * SIZE, SIZE))
        return "\n".join(" ".join(".roy"[owner + 1] for owner in row) for row in rows)


class ByMover(Trio):
    """The mistake that is easily made: outcomes begin with the player who moved last."""

    def outcome(self) -> list[float]:
        """Of the wrong players."""
        right, last = super().outcome(), (self.plies - 1) % 3
        return [right[(last + seat) % 3] for seat in range(3)]


class Knapsack(azpy.Game):
    """One player takes things or leaves them; the score is what they are worth, and -1 if they are too heavy."""

    WEIGHTS, WORTHS, MOST = [5, 4, 3, 7, 6, 2], [10, 7, 6, 15, 11, 3], 14
    num_actions, obs_shape, max_plies, num_players = 2, (8, 1, 1), 6, 1

    def __init__(self) -> None:
        self.taken = list[int]()

    def turn(self) -> int:
        return azpy.TERMINAL if len(self.taken) == len(self.WEIGHTS) else 0

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> None:
        self.taken.append(action)

    def clone(self) -> Self:
        other = type(self)()
        other.taken = self.taken.copy()
        return other

    def outcome(self) -> float:
        weight = sum(heavy for heavy, taken in zip(self.WEIGHTS, self.taken, strict=True) if taken)
        worth = sum(worth for worth, taken in zip(self.WORTHS, self.taken, strict=True) if taken)
        return 2 * worth / sum(self.WORTHS) - 1 if weight <= self.MOST else -1.0

    def encode(self) -> NDArray[np.float32]:
        """What was taken, how many were looked at, and how much weight is left."""
        row = np.zeros(8, np.float32)
        row[: len(self.taken)] = [2 * taken - 1 for taken in self.taken]
        row[6] = len(self.taken) / 6
        row[7] = sum(heavy for heavy, taken in zip(self.WEIGHTS, self.taken, strict=False) if taken) / self.MOST
        return row.reshape(8, 1, 1)

    def key(self) -> int:
        return int("1" + "".join(map(str, self.taken)), 2)


class Together(Trio):
    """Two players without a zero sum: both get the same, the more the fewer stones it takes to have three in a row."""

    num_players, zero_sum = 2, False
    obs_shape = (2, SIZE, SIZE)

    def winner(self) -> int | None:
        """0 if there are three stones in a row, whoever's they are."""
        return 0 if any(all(self.cells[cell] >= 0 for cell in line) for line in LINES) else None

    def outcome(self) -> list[float]:
        return [1 - self.plies / 16, 1 - self.plies / 16]


class Toss(azpy.Game):
    """Each of three players adds a die to three times what it chooses; who has most wins, perhaps with others."""

    num_actions, obs_shape, max_plies, num_players = 3, (4, 1, 1), 6, 3

    def __init__(self) -> None:
        self.line = list[int]()

    def turn(self) -> int:
        player, is_rolled = divmod(len(self.line), 2)
        return azpy.TERMINAL if player == self.num_players else player if is_rolled else azpy.CHANCE

    def legal_actions(self) -> list[int]:
        return [0, 1, 2]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(face, 1 / 3) for face in range(3)]

    def play(self, action: int) -> None:
        self.line.append(action)

    def clone(self) -> Self:
        other = type(self)()
        other.line = self.line.copy()
        return other

    def totals(self) -> list[int]:
        """What the players have so far."""
        padded = self.line + [0] * (2 * self.num_players - len(self.line))
        return [die + 3 * chosen for die, chosen in zip(padded[::2], padded[1::2], strict=True)]

    def outcome(self) -> float | list[float]:
        return [1.0 if total == max(self.totals()) else -0.5 for total in self.totals()]

    def encode(self) -> NDArray[np.float32]:
        """The totals, and whose turn it is."""
        row = np.zeros(4, np.float32)
        row[: self.num_players] = np.array(self.totals()) / 8
        row[3] = len(self.line) / 6
        return row.reshape(4, 1, 1)

    def key(self) -> int:
        return int("1" + "".join(map(str, self.line)), 3)


class TossAlone(Toss):
    """One player: the score is the total, of 8."""

    num_players, max_plies = 1, 2

    def outcome(self) -> float:
        return self.totals()[0] / 4 - 1
