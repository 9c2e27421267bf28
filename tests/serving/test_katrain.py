"""KaTrain, a program for people who study Go, takes az-engine and az-serve for KataGo. Skipped without KaTrain.

The slow test plays 200 whole games; `AZPY_KATRAIN_GAMES` sets another number.
"""

import importlib.util
import json
import os
import sys

import pytest

import azpy
from running import ended
from served import serving
from talks import PATIENCE

pytestmark = pytest.mark.skipif(importlib.util.find_spec("katrain") is None, reason="pip install katrain")

ENGINE = f"exec {sys.executable} -c 'from azpy.cli.engine import main; main()' uniform:30"
GAMES = int(os.environ.get("AZPY_KATRAIN_GAMES", "200"))

# A program of its own: KaTrain's engine and game play games without KaTrain's window. It prints the moves, and what
# KaTrain made of the answers, as one JSON object a game. Some moves are KaTrain's own, by the policy, so that games
# differ.
CLIENT = r'''
import json
import os
import random
import sys

os.environ |= {"KIVY_NO_ARGS": "1", "KIVY_LOG_MODE": "PYTHON", "KIVY_NO_FILELOG": "1"}

from katrain.core.ai import generate_ai_move
from katrain.core.constants import AI_DEFAULT, AI_WEIGHTED, OUTPUT_ERROR
from katrain.core.engine import KataGoEngine
from katrain.core.game import Game
from katrain.core.remote_engine import RemoteKataGoEngine

SIZE, PLIES, GAMES = map(int, sys.argv[3:])


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
random.seed(GAMES)
for number in range(GAMES):
    game = Game(window, engine, game_properties={"SZ": SIZE, "KM": 7.5, "RU": "chinese"})
    moves = []
    while not game.end_result and len(moves) < PLIES:
        own = number and random.random() < 0.5
        move, node = generate_ai_move(game, AI_WEIGHTED if own else AI_DEFAULT, {})
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
    engine.on_new_game()
    print(json.dumps({"moves": moves, "over": bool(game.end_result), "errors": window.errors}), flush=True)
engine.shutdown(finish=True)
print(json.dumps(window.errors))
'''


@pytest.mark.parametrize(("size", "plies", "games"), [(7, 40, 0), pytest.param(5, 400, GAMES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("backend", ["custom", "remote"])  # az-engine and az-serve
def test_katrain_plays_games(backend: str, size: int, plies: int, games: int) -> None:
    """Their moves are legal here, and KaTrain understood every answer. No game is cut if many are played."""
    with serving(f"go(size={size})") as address:
        there = f"ws://{address}/ws" if backend == "remote" else f"{ENGINE} --game 'go(size={size})' --protocol json"
        numbers = [str(size), str(plies), str(games or 1)]
        done = ended([sys.executable, "-c", CLIENT, backend, there, *numbers], patience=PATIENCE * max(1, games))
    assert done.code == 0, done.errors[-2000:]
    *found, errors = map(json.loads, done.out.splitlines()[-(games or 1) - 1 :])
    assert errors == []
    assert len(found) == (games or 1)
    for game in found:
        assert game["errors"] == []
        assert game["over"] or not games
        state = azpy.make_game("go", size=size)
        assert len(game["moves"]) > 10 or games
        for one in game["moves"]:
            assert one["visits"] >= 30
            assert 0 < one["winrate"] < 1
            assert one["policy"] == size * size + 1
            assert one["candidate"]["pv"][0] == one["candidate"]["move"]
            assert one["candidate"]["pointsLost"] == pytest.approx(0, abs=100)
            # KaTrain itself refuses illegal moves, also beyond the number of plies where azpy's game ends.
            if not state.is_terminal:
                names = {state.action_name(action): action for action in state.legal_actions()}
                state.play(names[one["move"]])
