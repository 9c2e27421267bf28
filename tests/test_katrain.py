"""KaTrain, a program for people who study Go, takes az-engine and az-serve for KataGo. Skipped without KaTrain."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import azpy
from served import serving
from talks import PATIENCE

pytestmark = pytest.mark.skipif(importlib.util.find_spec("katrain") is None, reason="pip install katrain")

COMMAND = f"exec {sys.executable} -c 'from azpy.cli.engine import main; main()' uniform:30 --game 'go(size=7)'"


def test_katrain_plays_a_game_with_the_engine() -> None:
    check_game("custom", f"{COMMAND} --protocol json")


def test_katrain_plays_a_game_with_the_server() -> None:
    with serving("go(size=7)") as address:
        check_game("remote", f"ws://{address}/ws")


def check_game(*arguments: str) -> None:
    """KaTrain plays a game; its moves are legal here, and it understood every answer."""
    script = Path(__file__).parent / "katrain_client.py"
    done = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["errors"] == []
    state = azpy.make_game("go", size=7)
    assert len(found["moves"]) > 10
    for one in found["moves"]:
        assert one["visits"] >= 30
        assert 0 < one["winrate"] < 1
        assert one["policy"] == 50
        assert one["candidate"]["pv"][0] == one["candidate"]["move"]
        assert one["candidate"]["pointsLost"] == pytest.approx(0, abs=100)
        names = {state.action_name(action): action for action in state.legal_actions()}
        state.play(names[one["move"]])
