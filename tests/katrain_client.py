"""A program of its own: KaTrain's engine and game, without its window, play a game with az-engine or az-serve.

    python katrain_client.py custom "az-engine ... --protocol json"
    python katrain_client.py remote ws://127.0.0.1:8000/ws

Prints one JSON object: the moves, and what KaTrain made of the answers.
"""

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
