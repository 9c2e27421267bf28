"""Breakthrough is OpenSpiel's, turned upside down: there the first player begins at the top."""

import random
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import azpy


def compare(width: int, height: int, seed: int) -> tuple[float, int]:
    """Plays a game at random in both; returns the outcome for player 0 and the plies."""
    pyspiel = pytest.importorskip("pyspiel")
    state = azpy.make_game("breakthrough", width=width, height=height)
    theirs = pyspiel.load_game(f"breakthrough(rows={height},columns={width})").new_initial_state()

    def turned(name: str) -> str:
        """Their name of an action as it is here: a7b6* is a2b3 on a board of eight rows."""
        return "".join(str(height + 1 - int(part)) if part.isdigit() else part for part in name.rstrip("*"))

    rng, plies = random.Random(seed), 0
    while not state.is_terminal:
        player = state.turn
        assert (theirs.is_terminal(), theirs.current_player()) == (False, player)
        legal = {turned(theirs.action_to_string(player, action)): action for action in theirs.legal_actions()}
        actions = {state.action_name(action): action for action in state.legal_actions()}
        assert legal.keys() == actions.keys()
        planes = np.array(theirs.observation_tensor(0), np.float32).reshape(3, height, width)[:2, ::-1]
        np.testing.assert_array_equal(state.observation()[:2], planes if player == 0 else planes[::-1])
        assert (state.observation()[2] == player).all()
        name = rng.choice(sorted(actions))
        state.play(actions[name])
        theirs.apply_action(legal[name])
        plies += 1
    assert theirs.is_terminal()
    assert state.outcome() == theirs.returns()[0]
    return state.outcome(), plies


BOARDS = [(8, 8), (3, 4), (4, 3), (5, 5), (5, 6), (6, 8), (7, 9), (2, 9)]


@pytest.mark.parametrize(("width", "height"), BOARDS)
def test_breakthrough_is_openspiels(width: int, height: int) -> None:
    assert {compare(width, height, seed)[0] for seed in range(20)} == {-1, 1}


@pytest.mark.slow
def test_breakthrough_is_openspiels_in_many_games() -> None:
    positions = sum(compare(width, height, seed)[1] for width, height in BOARDS for seed in range(200))
    print(f"{positions:,} positions")


def test_a_position_is_written_read_and_drawn() -> None:
    state = azpy.parse_state("breakthrough", "a2b3 h7g6")
    assert state.to_text() == "oooooooo/ooooooo./......o./......../......../.x....../.xxxxxxx/xxxxxxxx x"
    assert azpy.parse_state("breakthrough", state.to_text()).key() == state.key()
    svg = ET.fromstring(state.to_svg())
    assert sum(1 for _ in svg.iter("{http://www.w3.org/2000/svg}circle")) == 32
    texts = {text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert texts == {*"abcdefgh", *"12345678", "x (red) to move"}
    colored = state.render(color=True)
    assert (colored.count("\x1b[1;31m"), colored.count("\x1b[1;34m")) == (16, 16)
