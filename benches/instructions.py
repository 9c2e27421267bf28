"""Instructions that a game of self-play takes, with one build of azpy and with another, also on a busy machine.

    python benches/instructions.py BEFORE AFTER [GAME...]

BEFORE and AFTER are folders that hold a package `azpy` each, built as wheels are. valgrind counts the instructions of
two runs of each build, one with four times as many games; the difference leaves out what a run needs to start. Only the
thread that plays is counted: Python's waits for it, and takes more instructions the longer it waits. The evaluator is
the uniform one, so nothing is counted but search and games. Two runs of one build differ by about a thousandth.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Games in the shorter run.
GAMES = {
    "connect_four": 48,
    "othello": 16,
    "tic_tac_toe": 300,
    "backgammon": 8,
    "trictrac": 6,
    "pig": 48,
    "dice_nim": 300,
}
_USUAL = 16  # of another game
_PLAY = """
import sys, azpy
options = {"slots": 16, "simulations": 64, "seed": 1, "threads": 1, "pipelines": 1}
with azpy.SelfPlay(sys.argv[1], azpy.UniformEvaluator(), games=16 + int(sys.argv[2]), **options) as play:
    for _ in play: pass
"""


def instructions(folder: str, game: str, games: int) -> int:
    """What the playing thread of a process takes that plays so many games, and 16 more."""
    environment = {**os.environ, "PYTHONPATH": str(Path(folder).resolve()), "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryDirectory() as counts:
        valgrind = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={counts}/thread"]
        command = [*valgrind, sys.executable, "-c", _PLAY, game, str(games)]
        said = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False).stderr
        # Thread 1 is Python's. The other threads, of libraries, wait.
        threads = [file.read_text() for file in Path(counts).glob("thread-*") if file.name != "thread-01"]
    found = [int(number) for text in threads for number in re.findall(r"^totals: (\d+)", text, re.M)]
    if not found:
        raise SystemExit(f"valgrind counted nothing: {said[-2000:]}")
    return max(found)


def main() -> None:
    """Prints a row a game."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("games", nargs="*", metavar="GAME")
    given = parser.parse_args()
    print("| game | before | after | after / before |\n|---|---|---|---|")
    for game in given.games or GAMES:
        few = GAMES.get(game, _USUAL)
        before, after = (
            (instructions(folder, game, 4 * few) - instructions(folder, game, few)) / (3 * few)
            for folder in (given.before, given.after)
        )
        print(f"| {game} | {before:,.0f} | {after:,.0f} | {after / before:.3f} |", flush=True)


if __name__ == "__main__":
    main()
