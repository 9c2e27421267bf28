import subprocess
import sys
from pathlib import Path

from hexapawn import Hexapawn

import azpy


def test_rules():
    command = [sys.executable, "-m", "azpy", "check-game", "hexapawn:Hexapawn", "--seconds", "10"]
    subprocess.run(command, cwd=Path(__file__).parent, check=True)


def test_first_moves():
    state = azpy.State(Hexapawn())
    assert [state.action_name(action) for action in state.legal_actions()] == ["a1-a2", "b1-b2", "c1-c2"]
