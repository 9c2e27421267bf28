"""Blokus against a plain twin: sets of cells, and pieces that are grown, not listed."""

import itertools
import random
from collections.abc import Iterable

import numpy as np
import pytest

import azpy

Cells = frozenset[tuple[int, int]]
EDGES = [(0, 1), (1, 0), (0, -1), (-1, 0)]
CORNERS = [(1, 1), (1, -1), (-1, -1), (-1, 1)]


def beside(cells: Iterable[tuple[int, int]], steps: list[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(row + down, column + right) for row, column in cells for down, right in steps}


def placed(cells: Iterable[tuple[int, int]]) -> Cells:
    """The same shape in the upper left corner."""
    rows, columns = zip(*cells, strict=True)
    return frozenset((row - min(rows), column - min(columns)) for row, column in zip(rows, columns, strict=True))


def positions_of(shape: Cells) -> frozenset[Cells]:
    found, cells = set[Cells](), list(shape)
    for _ in range(4):
        cells = [(column, -row) for row, column in cells]
        found |= {placed(cells), placed((row, -column) for row, column in cells)}
    return frozenset(found)


def pieces() -> list[frozenset[Cells]]:
    """All pieces of one to five cells, each as the set of its positions."""
    sizes = [{frozenset([(0, 0)])}]
    for _ in range(4):
        sizes.append({placed(shape | {cell}) for shape in sizes[-1] for cell in beside(shape, EDGES) - shape})
    return sorted({positions_of(shape) for shape in itertools.chain(*sizes)}, key=lambda piece: len(min(piece)))


PIECES = pieces()


class Twin:
    def __init__(self, players: int, size: int) -> None:
        self.size, self.players, self.mover = size, players, 0
        self.cells = [set[tuple[int, int]]() for _ in range(players)]
        self.left = [set(range(len(PIECES))) for _ in range(players)]
        self.last = [-1] * players

    def corners(self, player: int) -> set[tuple[int, int]]:
        last = self.size - 1
        if self.cells[player]:
            return beside(self.cells[player], CORNERS)
        if self.players == 2:
            near = 4 * last // 13
            return {(near, near), (last - near, last - near)}
        return {[(last, 0), (0, 0), (0, last), (last, last)][player]}

    def legal(self, player: int) -> dict[str, tuple[int, Cells]]:
        board = set(itertools.product(range(self.size), repeat=2))
        free = board.difference(*self.cells) - beside(self.cells[player], EDGES)
        corners, found = self.corners(player) & free, dict[str, tuple[int, Cells]]()
        for piece in self.left[player]:
            for shape, (row, column) in itertools.product(PIECES[piece], board):
                cells = frozenset((row + down, column + right) for down, right in shape)
                if cells <= free and cells & corners:
                    name = ",".join(f"{chr(97 + column)}{self.size - row}" for row, column in sorted(cells))
                    found[name] = piece, cells
        return found

    def play(self, piece: int, cells: Cells) -> bool:
        """Whether the game goes on."""
        self.cells[self.mover] |= cells
        self.left[self.mover].remove(piece)
        self.last[self.mover] = piece
        order = [(self.mover + step) % self.players for step in range(1, self.players + 1)]
        self.mover = next((player for player in order if self.legal(player)), -1)
        return self.mover >= 0

    def points(self) -> list[int]:
        bonus = [0 if left else 15 + 5 * (last == 0) for left, last in zip(self.left, self.last, strict=True)]
        return [len(cells) - 89 + more for cells, more in zip(self.cells, bonus, strict=True)]


def test_the_pieces_are_the_21_polyominoes() -> None:
    assert (len(PIECES), sum(map(len, PIECES))) == (21, 91)
    assert sum(len(next(iter(piece))) for piece in PIECES) == 89
    assert len(azpy.make_game("blokus(players=4)").legal_actions()) == 58
    start = azpy.make_game("blokus")
    assert {start.action_name(action) for action in start.legal_actions()} == Twin(2, 14).legal(0).keys()


@pytest.mark.parametrize(("players", "size"), [(2, 5), (2, 8), (4, 7)])
def test_games_are_those_of_the_twin(players: int, size: int) -> None:
    rng, position, twin = random.Random(size), azpy.make_game("blokus", players=players, size=size), Twin(players, size)
    while True:
        assert position.turn == twin.mover
        names, legal = {position.action_name(a): a for a in position.legal_actions()}, twin.legal(twin.mover)
        assert names.keys() == legal.keys(), str(position)
        planes = position.observation()
        for place in range(players):
            player = (twin.mover + place) % players
            assert set(zip(*np.nonzero(planes[place]), strict=True)) == twin.cells[player]
            left = planes[players + 21 * place :][:21]
            assert (left.min((1, 2)) == left.max((1, 2))).all()
            assert left[:, 0, 0].sum() == len(twin.left[player])
        free = {cell for cell in twin.corners(twin.mover) if min(cell) >= 0 and max(cell) < size}
        free -= beside(twin.cells[twin.mover], EDGES).union(*twin.cells)
        assert set(zip(*np.nonzero(planes[-1]), strict=True)) == free
        name = rng.choice(sorted(legal))
        position.play(names[name])
        if not twin.play(*legal[name]):
            break
    points = twin.points()
    winners = [player for player, own in enumerate(points) if own == max(points)]
    expected = np.zeros(players)
    if len(winners) == 1:
        expected = np.where(np.arange(players) == winners[0], 1.0, -1 / (players - 1))
    assert position.is_terminal
    np.testing.assert_allclose(position.outcomes(), expected)
