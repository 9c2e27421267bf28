"""How strong a run is against programs that are not ours: one row of Markdown for each match.

    python benches/strength.py RUN [OPPONENT...] [--games 200] [--simulations 400] [--seed 0] [--device cpu]

RUN and OPPONENT are players as az-match names them. Without an OPPONENT the run meets those of its game:

- go: GNU Go, levels 1 and 10. othello: GRhino as it comes: level 3 of 5, a small opening book.
- backgammon: GNU Backgammon at 0 plies (`gnubg_ugi.py`). chess: Stockfish's lowest level.
- connect_four, hex: OpenSpiel's Monte Carlo tree search with 10,000 and 1,000 simulations (`openspiel_ugi.py`).

Debian's packages are gnugo, grhino, gnubg and stockfish. Score and interval are those of az-match, whose command is in
the row.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from azpy.errors import AzpyError
from azpy.matches.players import parse_player, settings_of

_HERE = os.path.relpath(Path(__file__).parent)
_GNUGO = "gtp:gnugo --mode gtp --level {} --chinese-rules --positional-superko --capture-all-dead"
_OPPONENTS = {
    "go": {f"GNU Go, level {level}": _GNUGO.format(level) for level in (1, 10)},
    "othello": {"GRhino, level 3": "gtp:gtp-rhino --level=3"},
    "chess": {"Stockfish, level 0, 100 nodes": "uci:stockfish?Skill Level=0&nodes=100"},
    "backgammon": {"GNU Backgammon, 0 plies": f"ugi:python {_HERE}/gnubg_ugi.py --plies 0"},
    **{
        game: {f"OpenSpiel's MCTS, {nodes:,}": f"ugi:python {_HERE}/openspiel_ugi.py --game {game}?nodes={nodes}"}
        for game, nodes in (("connect_four", 10_000), ("hex", 1000))
    },
}
_DICE = ["backgammon"]  # games that need no random openings
_POINTS = {"backgammon": 3}  # of an outcome of 1
_COLUMNS = ("opponent", "games", "simulations", "score", "points a game", "command")


def match(game: str, opponent: str, given: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The command of a match, and its result."""
    words = ["az-match", given.run, opponent, *(["--opening-plies", "0"] if game in _DICE else [])]
    for name, usual in (("games", 200), ("simulations", 100), ("seed", 0), ("device", "cpu")):
        if (value := getattr(given, name)) != usual:
            words += [f"--{name}", str(value)]
    command = [sys.executable, "-m", "azpy", "match", *words[1:], "--json"]
    # This Python goes first, and Debian's games are there even if the user's PATH lacks them.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), "/usr/games"])
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PATH": path})
    if done.returncode:
        raise SystemExit(done.returncode)
    return shlex.join(words), json.loads(done.stdout)


def row(opponent: str, command: str, facts: dict[str, Any], given: argparse.Namespace) -> str:
    score = f"{facts['score']:.3f} [{facts['low']:.3f}, {facts['high']:.3f}]"
    points = "-"
    if scale := _POINTS.get(facts["game"]):
        ends = [facts[name] for name in ("outcome", "outcome_low", "outcome_high")]
        low_to_high = "" if ends[1] is None else f" [{scale * ends[1]:+.2f}, {scale * ends[2]:+.2f}]"
        points = f"{scale * ends[0]:+.2f}{low_to_high}"
    return _line(opponent, facts["games"], given.simulations, score, points, f"`{command}`")


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", help="a player of az-match, as a rule a run folder")
    parser.add_argument("opponents", nargs="*", help="players of az-match (default: those of the run's game)")
    parser.add_argument("--games", type=int, default=200, help="an even number")
    parser.add_argument("--simulations", type=int, default=400, help="of the run, a move")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    try:
        settings = settings_of([parse_player(given.run)])
    except AzpyError as error:
        raise SystemExit(f"strength.py: {error}") from None
    game = "" if settings is None else settings.game
    opponents = {opponent: opponent for opponent in given.opponents} or _OPPONENTS.get(game)
    if opponents is None:
        raise SystemExit(f"strength.py: no opponents are known for {game or given.run}: name them")
    print(_line(*_COLUMNS), _line(*["---"] * len(_COLUMNS)), sep="\n", flush=True)
    for name, opponent in opponents.items():
        command, facts = match(game, opponent, given)
        print(row(name, command, facts, given), flush=True)
        for fault in facts["faults"][1]:
            print(f"strength.py: {name} {fault['text']} (transcript {fault['transcript']})", file=sys.stderr)


if __name__ == "__main__":
    main()
