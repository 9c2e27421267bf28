"""The rules of games are those of a second program, pgx: actions, boards and outcomes, and the superko of Go."""

import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from go_games import random_game

os.environ.setdefault("JAX_PLATFORMS", "cpu")


class Lazy:
    """A package that is imported when a test uses it: every process of pytest reads this file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(pytest.importorskip(self._name), name)


pgx, go, jax = Lazy("pgx"), Lazy("pgx.go"), Lazy("jax")

GAMES = 64
Game = Iterator[tuple[azpy.State, int]]  # positions and what is played there; the last is over


def plays(start: azpy.State, seed: int) -> Game:
    """A random game."""
    rng, state = random.Random(seed), start.clone()
    while not state.is_terminal:
        action = rng.choice(state.legal_actions())
        yield state, action
        state.play(action)
    yield state, -1


class Theirs:
    """Many games of pgx side by side; where one is over, steps change nothing."""

    def __init__(self, env: Any, games: int) -> None:
        self._keys = jax.random.split(jax.random.PRNGKey(0), games)
        self._step = jax.jit(jax.vmap(env.step))
        self.state = jax.jit(jax.vmap(env.init))(self._keys)
        self._rows, self._first = np.arange(games), np.asarray(self.state.current_player)  # they draw who begins

    def after(self, actions: NDArray[np.int32]) -> Any:
        return self._step(self.state, actions, self._keys)

    def planes(self) -> NDArray[np.bool_]:
        """[games, C, H, W]"""
        return np.moveaxis(np.asarray(self.state.observation), 3, 1)

    def over(self) -> NDArray[np.bool_]:
        return np.asarray(self.state.terminated)

    def outcomes(self) -> NDArray[np.float32]:
        """For the first player, where the last step ended a game."""
        return np.asarray(self.state.rewards[self._rows, self._first], np.float32)


def compare(env: Any, games: list[Game], planes: int = 2) -> tuple[int, int, set[float]]:
    """Returns the positions compared, the repeats met, and the outcomes.

    Two things are allowed. Where nothing is left to do but pass, our game may be over and theirs go on. And what they
    allow and we do not must bring back an earlier board: there such a game is lost at once.
    """
    theirs, turns = Theirs(env, len(games)), [next(game) for game in games]
    compared, repeats, outcomes = 0, 0, set[float]()
    while not (over := theirs.over()).all():
        seen, masks = theirs.planes(), np.asarray(theirs.state.legal_action_mask)
        actions, barred = np.zeros(len(games), np.int32), [list[int]() for _ in games]
        for row in np.flatnonzero(~over):
            (state, actions[row]), allowed = turns[row], np.flatnonzero(masks[row]).tolist()
            if state.is_terminal:
                actions[row] = state.num_actions - 1
                assert allowed == [actions[row]], str(state)
                continue
            legal = state.legal_actions()
            assert set(legal) <= set(allowed), str(state)
            barred[row] = sorted(set(allowed) - set(legal))
            np.testing.assert_array_equal(state.observation()[:planes], seen[row, :planes], err_msg=str(state))
            compared += 1
        for nth in range(max(map(len, barred))):
            tried = [row for row, each in enumerate(barred) if nth < len(each)]
            forbidden = actions.copy()
            forbidden[tried] = [barred[row][nth] for row in tried]
            assert np.asarray(theirs.after(forbidden)._x.is_psk)[tried].all()
            repeats += len(tried)
        theirs.state = theirs.after(actions)
        turns = [turn if turn[0].is_terminal else next(game) for turn, game in zip(turns, games, strict=True)]
        for row in np.flatnonzero(theirs.over() & ~over):
            assert turns[row][0].outcome() == theirs.outcomes()[row], str(turns[row][0])
            outcomes.add(turns[row][0].outcome())
    return compared, repeats, outcomes


@pytest.mark.parametrize(("game", "wanted"), [("tic_tac_toe", {-1, 0, 1}), ("connect_four", {-1, 1})])
def test_boards_and_outcomes_are_pgxs(game: str, wanted: set[float]) -> None:
    start = azpy.make_game(game)
    compared, _, outcomes = compare(pgx.make(game), [plays(start, seed) for seed in range(GAMES)])
    print(f"{game}: {compared} positions")
    assert wanted <= outcomes


@pytest.mark.parametrize(("size", "kos"), [(5, False), pytest.param(9, True, marks=pytest.mark.slow)])
def test_go_is_pgxs_but_for_repeats_which_lose_there(size: int, kos: bool) -> None:
    start, env = azpy.make_game("go", size=size), go.Go(size=size, komi=7.5)
    compared, repeats, outcomes = compare(env, [random_game(start, seed, kos) for seed in range(GAMES)], planes=16)
    print(f"go {size}: {compared} positions, {repeats} repeats")
    assert repeats > 0
    assert outcomes == {-1, 1}


def test_slides_points_and_ends_of_2048_are_pgxs() -> None:
    games, order = 16, (3, 0, 1, 2)  # their directions begin at the left
    theirs, rng = Theirs(pgx.make("2048"), games), random.Random(1)
    states = [azpy.make_game("game2048", target=32768) for _ in range(games)]
    compared = 0

    def show(row: int, board: NDArray[np.intp]) -> None:
        """Has the tiles come that their board has, and ours has not."""
        mine = shown(states[row])[0]
        for cell in np.flatnonzero(board != mine).tolist():
            states[row].play(4 + 2 * cell + int(board[cell]) - 1)
        np.testing.assert_array_equal(shown(states[row])[0], board)

    def shown(state: azpy.State) -> tuple[NDArray[np.intp], int]:
        """Logarithms of the tiles, and the score."""
        *rows, score = str(state).splitlines()
        tiles = np.array([int(tile) for tile in " ".join(rows).replace(".", "1").split()])
        return np.log2(tiles).astype(np.intp), int(score.split()[1])

    for row, board in enumerate(theirs.planes().argmax(1).reshape(games, 16)):
        show(row, board)
    while not (over := theirs.over()).all():
        masks, actions = np.asarray(theirs.state.legal_action_mask), np.zeros(games, np.int32)
        for row in np.flatnonzero(~over).tolist():
            allowed = np.flatnonzero(masks[row]).tolist()
            assert sorted(order[action] for action in allowed) == states[row].legal_actions(), str(states[row])
            actions[row] = rng.choice(allowed)
            compared += 1
        theirs.state = theirs.after(actions)
        boards, points = theirs.planes().argmax(1).reshape(games, 16), np.asarray(theirs.state.rewards)[:, 0]
        for row in np.flatnonzero(~over).tolist():
            before = shown(states[row])[1]
            states[row].play(order[actions[row]])
            show(row, boards[row])
            assert shown(states[row])[1] - before == points[row]
            assert states[row].is_terminal == theirs.over()[row]
    print(f"2048: {compared} positions")
    assert compared > 1000
