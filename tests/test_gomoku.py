"""Gomoku is OpenSpiel's: actions, turns, boards and outcomes, ply by ply."""

import random
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import azpy


def compare(size: int, k: int, seed: int) -> tuple[float, int]:
    """Plays a game at random in both; returns the outcome for player 0 and the plies."""
    pyspiel = pytest.importorskip("pyspiel")
    if "gomoku" not in pyspiel.registered_names():
        pytest.skip("this OpenSpiel has no Gomoku")
    state = azpy.make_game("gomoku", size=size, k=k)
    theirs = pyspiel.load_game(f"gomoku(size={size},connect={k})").new_initial_state()
    rng, plies = random.Random(seed), 0
    while not state.is_terminal:
        player = state.turn
        assert (theirs.is_terminal(), theirs.current_player()) == (False, player)
        assert state.legal_actions() == theirs.legal_actions()
        planes = np.array(theirs.observation_tensor(0), np.float32).reshape(3, size, size)[:2]
        np.testing.assert_array_equal(state.observation(), planes if player == 0 else planes[::-1])
        action = rng.choice(state.legal_actions())
        row, column = map(int, theirs.action_to_string(action).split(","))
        assert state.action_name(action) == f"{'abcdefghijklmnopqrs'[column]}{size - row}"
        state.play(action)
        theirs.apply_action(action)
        plies += 1
    assert state.outcome() == theirs.returns()[0]
    return state.outcome(), plies


@pytest.mark.parametrize(
    ("size", "k", "games"), [(3, 3, 100), (4, 4, 100), (6, 4, 50), (9, 5, 20), (15, 5, 8), (19, 6, 2)]
)
def test_gomoku_is_openspiels(size: int, k: int, games: int) -> None:
    outcomes = {compare(size, k, seed)[0] for seed in range(games)}
    assert outcomes == {-1, 0, 1} if size == 4 else len(outcomes) > 0


@pytest.mark.slow
def test_gomoku_is_openspiels_in_many_games() -> None:
    positions = 0
    for size, k, games in ((3, 3, 500), (5, 4, 500), (7, 5, 300), (9, 5, 150), (15, 5, 60), (19, 5, 20)):
        positions += sum(compare(size, k, seed)[1] for seed in range(games))
    print(f"{positions:,} positions")


def test_a_position_is_written_read_and_drawn() -> None:
    state = azpy.parse_state("gomoku", "h8 i9 h9")
    assert state.to_text() == "/".join(["." * 15] * 6 + [".......xo......", ".......x......."] + ["." * 15] * 7) + " o"
    assert azpy.parse_state("gomoku", state.to_text()).key() == state.key()
    svg = ET.fromstring(state.to_svg())
    assert sum(circle.get("r") == "14" for circle in svg.iter("{http://www.w3.org/2000/svg}circle")) == 3
    texts = {text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert texts == {*"abcdefghijklmno", *map(str, range(1, 16))}
    assert state.render(color=True).count("\x1b[1;31m") == 2
