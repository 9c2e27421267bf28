"""The rules of games are those of another program: actions, turns, boards and outcomes, ply by ply."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import azpy

pyspiel = pytest.importorskip("pyspiel")


def play_both(start: azpy.State, theirs: Any, seed: int, opening: Sequence[int] = ()) -> float:
    """Plays a game in both programs, at random after the actions of the opening; returns the outcome for player 0."""
    rng, position, state = random.Random(seed), start.clone(), theirs.new_initial_state()
    coming = list(opening)
    while not state.is_terminal():
        assert position.turn == state.current_player(), str(position)
        legal = position.legal_actions()
        assert legal == state.legal_actions(), str(position)
        assert [position.action_name(action) for action in legal] == [state.action_to_string(a) for a in legal]
        compare_boards(position, state)
        action = coming.pop(0) if coming else rng.choice(legal)
        position.play(action)
        state.apply_action(action)
    assert position.is_terminal, str(position)
    assert position.outcome() == state.returns()[0], str(position)
    return position.outcome()


def compare_boards(position: azpy.State, state: Any) -> None:
    player, size = position.turn, position.obs_shape[1]
    theirs = np.array(state.observation_tensor(player)).reshape(-1, size, size)
    if position.game.startswith("hex"):  # connected to both sides, left, right, neither; empty; x in the other order
        _, left, right, o, _, x, bottom, top, _ = theirs
        theirs = np.array([x + bottom + top, top, bottom, o + left + right, left, right, np.full_like(x, player)])
    else:  # the first of their planes shows empty cells
        theirs = theirs[1:]
    np.testing.assert_array_equal(position.observation()[: len(theirs)], theirs, err_msg=str(position))


@pytest.mark.parametrize("size", range(3, 14))
def test_hex_is_openspiels(size: int) -> None:
    start, theirs = azpy.make_game("hex", size=size), pyspiel.load_game(f"hex(board_size={size})")
    assert {play_both(start, theirs, seed) for seed in range(20)} == {-1, 1}


@pytest.mark.parametrize("size", range(3, 14))
def test_hex_with_swap_is_openspiels(size: int) -> None:
    try:
        theirs = pyspiel.load_game(f"hex(board_size={size},swap=True)")
    except pyspiel.SpielError:
        pytest.skip("this OpenSpiel has no swap")
    start, swap, rng = azpy.make_game("hex", size=size, swap=1), size * size, random.Random(size)
    swapped = {play_both(start, theirs, seed, (rng.randrange(swap), swap)) for seed in range(15)}
    assert swapped | {play_both(start, theirs, seed) for seed in range(5)} == {-1, 1}


def test_othello_is_openspiels() -> None:
    start, theirs = azpy.make_game("othello"), pyspiel.load_game("othello")
    assert {play_both(start, theirs, seed) for seed in range(100)} == {-1, 0, 1}
