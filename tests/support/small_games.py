"""Five small right games, written alike: one edit of this text makes wrong games of several of them."""

import hashlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import azpy


class Small(azpy.Game):
    """What the five have in common: a board, and two players who play in turn."""

    begin: Sequence[Any]

    def __init__(self) -> None:
        self.board, self.player = list(self.begin), 0

    def winner(self) -> int | None:
        raise NotImplementedError

    def is_over(self) -> bool:
        raise NotImplementedError

    def put(self, action: int) -> None:
        raise NotImplementedError

    def side(self, player: int) -> list[float]:
        raise NotImplementedError

    def turn(self) -> int:
        return azpy.TERMINAL if self.is_over() else self.player

    def legal_actions(self) -> list[int]:
        return list(range(self.num_actions))

    def play(self, action: int) -> None:
        self.put(action)
        self.player = 1 - self.player

    def clone(self) -> Self:
        copy = type(self)()
        copy.board, copy.player = list(self.board), self.player
        return copy

    def outcome(self) -> float:
        return {0: 1.0, 1: -1.0, None: 0.0}[self.winner()]

    def encode(self) -> NDArray[np.float32]:
        sides = [self.side(self.player), self.side(1 - self.player)]
        return np.array(sides, np.float32).reshape(self.obs_shape)

    def key(self) -> int:
        told = repr((self.board, self.player)).encode()
        return int.from_bytes(hashlib.blake2b(told, digest_size=16).digest())


class TicTacToe(Small):
    """Three in a row."""

    num_actions, obs_shape, max_plies = 9, (2, 3, 3), 9
    begin = (None,) * 9
    rows = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))

    def winner(self) -> int | None:
        rows = [{self.board[cell] for cell in row} for row in self.rows]
        return next((player for player in (0, 1) if {player} in rows), None)

    def is_over(self) -> bool:
        return self.winner() is not None or None not in self.board

    def legal_actions(self) -> list[int]:
        return [cell for cell in range(9) if self.board[cell] is None]

    def put(self, action: int) -> None:
        self.board[action] = self.player

    def side(self, player: int) -> list[float]:
        return [owner == player for owner in self.board]

    def __str__(self) -> str:
        cells = [".xo"[0 if owner is None else 1 + owner] for owner in self.board]
        return "\n".join(" ".join(cells[row : row + 3]) for row in (0, 3, 6))


class ConnectThree(TicTacToe):
    """Three in a row of 3 x 3 cells, where stones fall."""

    num_actions = 3

    def legal_actions(self) -> list[int]:
        return [column for column in range(3) if self.board[column] is None]

    def put(self, action: int) -> None:
        lowest = max(cell for cell in (action, action + 3, action + 6) if self.board[cell] is None)
        self.board[lowest] = self.player


class Nim(Small):
    """Take any number from one heap, and the last counter to win."""

    num_actions, obs_shape, max_plies = 9, (2, 3, 1), 6
    begin = (1, 2, 3)

    def winner(self) -> int | None:
        return 1 - self.player

    def is_over(self) -> bool:
        return not any(self.board)

    def legal_actions(self) -> list[int]:
        return [3 * heap + more for heap in range(3) for more in range(self.board[heap])]

    def put(self, action: int) -> None:
        self.board[action // 3] -= action % 3 + 1

    def side(self, player: int) -> list[float]:
        return self.board

    def __str__(self) -> str:
        return " ".join(map(str, self.board))


class Race(Small):
    """Throw a coin, then walk by 1 or 2, or stay and rest: at 3 or more you win. A draw after eight turns."""

    num_actions, obs_shape, max_plies = 2, (2, 3, 1), 16
    begin = (0, 0, 0, 0)  # where the two are, the roll, turns

    def winner(self) -> int | None:
        return 0 if self.board[0] >= 3 else 1 if self.board[1] >= 3 else None

    def is_over(self) -> bool:
        return self.winner() is not None or self.board[3] == 8

    def turn(self) -> int:
        return azpy.TERMINAL if self.is_over() else self.player if self.board[2] else azpy.CHANCE

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(0, 0.5), (1, 0.5)]

    def play(self, action: int) -> None:
        if self.board[2] == 0:
            self.board[2] = 1 + action
            return
        self.put(action)
        self.player = 1 - self.player

    def put(self, action: int) -> None:
        self.board[self.player] += self.board[2] if action else 0
        self.board[2:] = [0, self.board[3] + 1]

    def side(self, player: int) -> list[float]:
        return [self.board[player], self.board[2], self.board[3]]

    def __str__(self) -> str:
        return f"{self.board[0]} : {self.board[1]}, rolled {self.board[2]}"


class Poker(Small):
    """Kuhn poker: a card of three each, and one bet. Action 0 passes, 1 bets. Passing a bet loses half."""

    num_actions, obs_shape, max_plies = 2, (2, 6, 1), 4
    begin = ()  # the deal, then what was said
    deals = ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))

    def winner(self) -> int | None:
        first, second = self.deals[self.board[0]]
        if self.board[-2:] == [1, 0]:
            return 1 - len(self.board) % 2
        return 0 if first > second else 1

    def is_over(self) -> bool:
        return self.board[1:] in ([0, 0], [1, 0], [1, 1], [0, 1, 0], [0, 1, 1])

    def turn(self) -> int:
        return azpy.TERMINAL if self.is_over() else self.player if self.board else azpy.CHANCE

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(deal, 1 / 6) for deal in range(6)]

    def play(self, action: int) -> None:
        if not self.board:
            self.board = [action]
            return
        self.put(action)
        self.player = 1 - self.player

    def put(self, action: int) -> None:
        self.board.append(action)

    def outcome(self) -> float:
        stake = 1.0 if self.board[-2:] == [1, 1] else 0.5
        return stake if self.winner() == 0 else -stake

    def side(self, player: int) -> list[float]:
        said = [1.0 + each for each in self.board[1:]] + [0.0] * 3
        card = self.deals[self.board[0]][player] if player == self.player else -1
        return [*(card == each for each in range(3)), *said[:3]]

    def view_key(self, player: int) -> str | None:
        return f"{self.deals[self.board[0]][player] if self.board else ''} {self.board[1:]}"
