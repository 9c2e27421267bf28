"""KaTrain, a program for people who study Go, takes az-engine and az-serve for KataGo. Skipped without KaTrain."""

import importlib.util
import json
import subprocess
import sys

import pytest

import azpy
from served import serving
from talks import PATIENCE

pytestmark = pytest.mark.skipif(importlib.util.find_spec("katrain") is None, reason="pip install katrain")

# A program of its own: KaTrain's engine and game play a game without KaTrain's window. It prints the moves, and what
# KaTrain made of the answers, as one JSON object.
CLIENT = r'''
import json
import os
import sys

os.environ |= {"KIVY_NO_ARGS": "1", "KIVY_LOG_MODE": "PYTHON", "KIVY_NO_FILELOG": "1"}

from katrain.core.ai import generate_ai_move
from katrain.core.constants import AI_DEFAULT, OUTPUT_ERROR
from katrain.core.engine import KataGoEngine
from katrain.core.game import Game
from katrain.core.remote_engine import RemoteKataGoEngine

SIZE, PLIES = 7, 40


class Window:
    """What the engine and the game want of KaTrain's window."""

    controls = None
    pondering = False

    def __init__(self) -> None:
        self.errors: list[str] = []

    def log(self, message: object, level: int = 0) -> None:
        if level == OUTPUT_ERROR:
            self.errors.append(str(message))

    def config(self, name: str, default: object = None) -> object:
        return {"game/size": str(SIZE), "game/komi": 7.5, "game/rules": "chinese", "game/handicap": 0}.get(
            name, default
        )

    def __call__(self, *message: object, **more: object) -> None:
        self.errors.append(str(message))


window = Window()
engine = (RemoteKataGoEngine if sys.argv[1] == "remote" else KataGoEngine)(
    window,
    {
        "backend": sys.argv[1],
        "altcommand": sys.argv[2],
        "remote_url": sys.argv[2],
        "max_visits": 30,
        "fast_visits": 10,
        "max_time": 60.0,
        "wide_root_noise": 0.0,
        "_enable_ownership": True,
        "allow_recovery": False,
    },
)
game = Game(window, engine, game_properties={"SZ": SIZE, "KM": 7.5, "RU": "chinese"})
moves = []
for _ in range(PLIES):
    move, node = generate_ai_move(game, AI_DEFAULT, {})
    found = node.parent.analysis
    candidate = node.parent.candidate_moves[0]
    moves.append(
        {
            "move": move.gtp(),
            "visits": found["root"]["visits"],
            "winrate": node.parent.winrate,
            "score": node.parent.score,
            "policy": len(found["policy"]),
            "candidate": {name: candidate[name] for name in ("move", "visits", "pv", "pointsLost", "winrateLost")},
        }
    )
    if game.end_result:
        break
engine.shutdown(finish=True)
print(json.dumps({"moves": moves, "errors": window.errors, "sgf": game.root.sgf()}))
'''

COMMAND = f"exec {sys.executable} -c 'from azpy.cli.engine import main; main()' uniform:30 --game 'go(size=7)'"


def test_katrain_plays_a_game_with_the_engine() -> None:
    check_game("custom", f"{COMMAND} --protocol json")


def test_katrain_plays_a_game_with_the_server() -> None:
    with serving("go(size=7)") as address:
        check_game("remote", f"ws://{address}/ws")


def check_game(*arguments: str) -> None:
    """KaTrain plays a game; its moves are legal here, and it understood every answer."""
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False
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
