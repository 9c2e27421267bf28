"""2048 and Connect Four for three against plain twins of their rules.

rust/games/tests/all/exact.rs counts the positions and the solutions of peg solitaire.
"""

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy

LETTERS = "abcdefgh"


class Columns:
    """Connect Four for three."""

    def __init__(self, width: int, height: int, k: int) -> None:
        self.height, self.k, self.plies = height, k, 0
        self.columns: list[list[int]] = [[] for _ in range(width)]

    def owner(self, column: int, row: int) -> int | None:
        inside = 0 <= column < len(self.columns) and 0 <= row < len(self.columns[column])
        return self.columns[column][row] if inside else None

    def winner(self) -> int | None:
        places = itertools.product(range(len(self.columns)), range(self.height), ((1, 0), (0, 1), (1, 1), (1, -1)))
        for column, row, (right, up) in places:
            owners = {self.owner(column + step * right, row + step * up) for step in range(self.k)}
            if len(owners) == 1 and owners != {None}:
                return owners.pop()
        return None

    def turn(self) -> int:
        return self.plies % 3 if self.winner() is None and self.moves() else azpy.TERMINAL

    def moves(self) -> dict[str, float]:
        return {str(number + 1): 1 for number, column in enumerate(self.columns) if len(column) < self.height}

    def play(self, name: str) -> None:
        self.columns[int(name) - 1].append(self.plies % 3)
        self.plies += 1

    def outcomes(self) -> list[float]:
        winner = self.winner()
        return [0.0] * 3 if winner is None else [1.0 if player == winner else -0.5 for player in range(3)]

    def planes(self) -> NDArray[np.float32]:
        def plane(player: int) -> list[list[bool]]:
            rows = reversed(range(self.height))
            return [[self.owner(column, row) == player for column in range(len(self.columns))] for row in rows]

        return np.array([plane((self.plies + seat) % 3) for seat in range(3)], np.float32)

    def key(self) -> Any:
        return tuple(map(tuple, self.columns))


class Tiles:
    """2048."""

    def __init__(self, size: int, target: int) -> None:
        self.rows = [[0] * size for _ in range(size)]
        self.target, self.score, self.to_come = target, 0, 2

    def slid(self, name: str) -> tuple[list[list[int]], int]:
        """The rows after a slide, and what it scores."""
        rows, score = self.rows, 0
        rows = [list(row) for row in zip(*rows, strict=True)] if name in ("up", "down") else rows
        rows = [row[::-1] for row in rows] if name in ("right", "down") else rows
        slid = []
        for row in rows:
            tiles, line = [tile for tile in row if tile], list[int]()
            while tiles:
                tile = tiles.pop(0)
                if tiles and tiles[0] == tile:
                    tile += tiles.pop(0)
                    score += tile
                line.append(tile)
            slid.append(line + [0] * (len(row) - len(line)))
        slid = [row[::-1] for row in slid] if name in ("right", "down") else slid
        return [list(row) for row in zip(*slid, strict=True)] if name in ("up", "down") else slid, score

    def turn(self) -> int:
        if self.to_come:
            return azpy.CHANCE
        return 0 if self.moves() else azpy.TERMINAL

    def moves(self) -> dict[str, float]:
        if self.to_come:
            size = len(self.rows)
            empty = [(row, column) for row in range(size) for column in range(size) if not self.rows[row][column]]
            places = [f"{LETTERS[column]}{size - row}" for row, column in empty]
            return {
                f"{place}={2 + 2 * four}": (0.1 if four else 0.9) / len(empty) for place in places for four in (0, 1)
            }
        if any(self.target in row for row in self.rows):
            return {}
        return {name: 1 for name in ("up", "right", "down", "left") if self.slid(name)[0] != self.rows}

    def play(self, name: str) -> None:
        if self.to_come:
            place, tile = name.split("=")
            self.rows[len(self.rows) - int(place[1])][LETTERS.index(place[0])] = int(tile)
            self.to_come -= 1
            return
        self.rows, score = self.slid(name)
        self.score += score
        self.to_come = 0 if any(self.target in row for row in self.rows) else 1

    def worth(self) -> float:
        steps = round(math.log2(self.target)) - 1
        return min(2 * math.log(1 + self.score) / math.log(1 + steps * self.target) - 1, 1.0)

    def outcomes(self) -> list[float]:
        return [1.0 if any(self.target in row for row in self.rows) else self.worth()]

    def planes(self) -> NDArray[np.float32]:
        rows, powers = np.array(self.rows), range(1, round(math.log2(self.target)))
        return np.array([*(rows == 2**power for power in powers), np.full(rows.shape, self.worth())], np.float32)

    def key(self) -> Any:
        return tuple(map(tuple, self.rows)), self.score, self.to_come


def offered(state: azpy.State) -> dict[int, float]:
    return dict(state.chance_outcomes()) if state.turn == azpy.CHANCE else dict.fromkeys(state.legal_actions(), 1.0)


GAMES: list[tuple[str, Callable[[], Any], int]] = [
    ("connect_four_for_three", lambda: Columns(7, 6, 4), 8),
    ("connect_four_for_three(width=5,height=3,k=3)", lambda: Columns(5, 3, 3), 40),
    ("game2048", lambda: Tiles(4, 2048), 2),
    ("game2048(size=3,target=32)", lambda: Tiles(3, 32), 20),
]


@pytest.mark.parametrize(("game", "make", "games"), GAMES, ids=[game for game, _, _ in GAMES])
def test_random_games_are_those_of_a_plain_twin(game: str, make: Callable[[], Any], games: int) -> None:
    ends = set[Any]()
    for seed in range(games):
        state, twin, rng = azpy.make_game(game), make(), random.Random(seed)
        while True:
            assert state.turn == twin.turn(), str(state)
            if state.is_terminal:
                break
            named = {state.action_name(action): (action, chance) for action, chance in offered(state).items()}
            moves = twin.moves()
            assert {name: chance for name, (_, chance) in named.items()} == pytest.approx(moves, rel=1e-6), str(state)
            if state.turn != azpy.CHANCE:
                np.testing.assert_allclose(state.observation(), twin.planes(), rtol=1e-6, err_msg=str(state))
            name = rng.choices(list(moves), list(moves.values()))[0]
            state.play(named[name][0])
            twin.play(name)
        assert list(state.outcomes()) == pytest.approx(twin.outcomes(), rel=1e-6), str(state)
        ends.add(state.outcomes())
    assert len(ends) > 1
