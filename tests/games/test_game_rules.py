"""The rules of games are those of OpenSpiel: actions, turns, boards and outcomes, ply by ply."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy

pyspiel = pytest.importorskip("pyspiel")


def both(ours: str, theirs: str) -> tuple[azpy.State, Any]:
    try:
        return azpy.make_game(ours), pyspiel.load_game(theirs)
    except pyspiel.SpielError:
        pytest.skip(f"this OpenSpiel has no {theirs}")


def their_maedn(state: Any, seats: Sequence[int]) -> NDArray[np.float32]:
    """Their tensor in our order, without the clock: a seat's features, the mover's seat first, and the die."""
    mover, seen = state.current_player(), np.array(state.observation_tensor(state.current_player()), np.float32)
    ring, goals, home = seen[:160].reshape(40, 4), seen[160:224].reshape(4, 4, 4), seen[224:228]
    ours = np.zeros((4, 45), np.float32)
    for player, seat in enumerate(seats):
        place = (player - mover) % 4  # players come in a circle of four there
        parts = ring[:, player], goals[place][:, player], home[place : place + 1] / 4
        ours[(seat - seats[mover]) % 4] = np.concatenate(parts)
    return np.concatenate([ours.ravel(), seen[232:]])


@pytest.mark.parametrize(("players", "opposite"), [(2, True), (2, False), (3, True), (4, True)])
def test_maedn_is_openspiels(players: int, opposite: bool) -> None:
    ours = f"maedn(players={players},opposite={int(opposite)})"
    start, theirs = both(ours, f"maedn(players={players},twoPlayersOpposite={opposite})")
    assert (start.num_actions, start.num_players) == (theirs.num_distinct_actions(), players)
    assert start.zero_sum == (players == 2)
    seats, winners = [0, 2] if players == 2 and opposite else list(range(players)), set[int]()
    for seed in range(12):
        rng, position, state = random.Random(seed), start.clone(), theirs.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                assert position.turn == azpy.CHANCE
                assert position.chance_outcomes() == [(a, float(np.float32(p))) for a, p in state.chance_outcomes()]
                action = rng.randrange(6)
            else:
                assert position.turn == state.current_player(), str(position)
                assert position.legal_actions() == state.legal_actions(), str(position)
                planes = their_maedn(state, seats)
                np.testing.assert_array_equal(position.observation().ravel()[:-1], planes, err_msg=str(position))
                action = rng.choice(state.legal_actions())
            state.apply_action(action)
            position.play(action)
        assert position.is_terminal
        returns = np.array(state.returns()) / (players - 1)
        np.testing.assert_allclose(position.outcomes(), returns)
        winners.add(int(returns.argmax()))
    assert winners == set(range(players))


WIDTHS = (1, 2, 3, 4, 13, 12, 11, 10, 9, 10, 11, 12, 13, 4, 3, 2, 1)
STAR = [(row, 2 * place - width + 1) for row, width in enumerate(WIDTHS) for place in range(width)]
CELLS = [f"{'abcdefghijklm'[place]}{row + 1}" for row, width in enumerate(WIDTHS) for place in range(width)]
MIDDLES = np.array([column / 2 + 1j * (row - 8) * 3**0.5 / 2 for row, column in STAR])
# Clockwise from the upper right: rows and half columns.
STEPS = [(-1, 1), (0, 2), (1, 1), (1, -1), (0, -2), (-1, -1)]
POINTS = {2: (0, 3), 3: (0, 2, 4), 4: (0, 1, 3, 4), 6: (0, 1, 2, 3, 4, 5)}


def turned_back(point: int) -> NDArray[np.int64]:
    """The cell of each cell if the star is turned counterclockwise by so many points: by angles."""
    turned = MIDDLES * np.exp(-1j * np.pi / 3 * point)
    return np.asarray(np.abs(turned[:, None] - MIDDLES).argmin(1), np.int64)


class Star:
    """A game of OpenSpiel's Chinese Checkers, in our words."""

    def __init__(self, theirs: Any) -> None:
        self.state, self.points = theirs.new_initial_state(), POINTS[theirs.num_players()]
        self.turned = [turned_back(point) for point in self.points]

    def board(self) -> str:
        rows = self.state.to_string().replace(" ", "").split("\n")[: len(WIDTHS)]
        return "/".join(rows).translate(str.maketrans("123456", "xoyzvw"))

    def cells(self, player: int) -> list[int]:
        return [cell for cell, piece in enumerate(self.board().replace("/", "")) if piece == "xoyzvw"[player]]

    def rows_ahead(self, player: int) -> int:
        return sum(STAR[cell][0] for cell in self.turned[player][self.cells(player)])

    def moves(self) -> dict[int, tuple[int, str, float]]:
        """Our action -> their action, our name, and how good a greedy player finds it."""
        found, turned = dict[int, tuple[int, str, float]](), self.turned[self.state.current_player()]
        for action in self.state.legal_actions():
            name = self.state.action_to_string(action)
            if name == "Pass":
                found[726] = action, "pass", 0.0
                continue
            start, end = (int(cell) for cell in name.replace("=>", "->").split("->"))
            (row, column), (to, beside), length = STAR[turned[start]], STAR[turned[end]], 2 if "=>" in name else 1
            direction = STEPS.index(((to - row) // length, (beside - column) // length))
            good = to - row + (abs(column) - abs(beside)) / 10
            found[6 * int(turned[start]) + direction] = action, f"{CELLS[start]}-{CELLS[end]}", good
        return found

    def planes(self) -> NDArray[np.float32]:
        """The pieces: for each point of the star, that of the mover first, those that began there."""
        mover, planes = self.state.current_player(), np.zeros((6, 17, 17), np.float32)
        for player, point in enumerate(self.points):
            for cell in self.turned[mover][self.cells(player)].tolist():
                row, column = STAR[cell]
                planes[(point - self.points[mover]) % 6, row, 8 + (column + row - 8) // 2] = 1
        return planes


@pytest.mark.parametrize("players", [2, 3, 4, 6])
def test_chinese_checkers_is_openspiels(players: int) -> None:
    # Greedy play mostly ends before the limit; random play never does.
    for seed, turns in ((0, 100), (1, 10)):
        ours = f"chinese_checkers(players={players},max_turns={turns})"
        position, theirs = both(ours, f"chinese_checkers(players={players},max_moves={players * turns})")
        star, rng = Star(theirs), random.Random(seed)
        while not star.state.is_terminal():
            assert position.turn == star.state.current_player(), str(position)
            moves = star.moves()
            assert position.legal_actions() == sorted(moves), str(position)
            assert {position.action_name(a) for a in moves} == {name for _, name, _ in moves.values()}, str(position)
            np.testing.assert_array_equal(position.observation()[:6], star.planes(), err_msg=str(position))
            at_random = turns < 100 or rng.random() < 0.2
            action = max(moves, key=lambda action: (0 if at_random else moves[action][2]) + 1.5 * rng.random())
            star.state.apply_action(moves[action][0])
            position.play(action)
            assert str(position.to_text()).split()[0] == star.board()
        assert position.is_terminal
        expected = np.array(star.state.returns()) / (players - 1)
        if turns < 100 or not expected.any():  # at the limit the one who is farthest wins here
            ahead = [star.rows_ahead(player) for player in range(players)]
            first = [player for player in range(players) if ahead[player] == max(ahead)]
            expected = np.full(players, -1 / (players - 1)) if len(first) == 1 else np.zeros(players)
            expected[first] = 1.0 if len(first) == 1 else 0.0
        np.testing.assert_allclose(position.outcomes(), expected)
