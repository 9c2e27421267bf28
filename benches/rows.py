"""Microseconds of one core that self-play takes for a row of a batch, with one build of azpy or with several in turn.

    python benches/rows.py FOLDER... [--games "connect_four;chess"] [--slots 256,2048] [--repeats 5]

A FOLDER holds a package `azpy`, built as wheels are. One pipeline on one thread plays with 16 simulations a move by
Gumbel's rule and without the cache. The network answers zeros, so only the work around it is counted: rules, trees,
planes, and the call itself. The figure is processor time of the pipeline's thread, of the same rounds with each build;
on a busy machine, bind the command to one core (`taskset -c 1`). A row of the table has each build's median.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

# Random plies before a game, at most, so that the slots are in all parts of their games: about the plies of one game.
GAMES = {"connect_four": 20, "othello": 50, "go(size=9)": 60, "hex": 60, "chess": 80, "wall_game": 40}
_ROWS = 200_000  # in the rounds that count
_BEFORE = 40  # rounds that do not: trees take their memory
_PLAY = """
import json, sys, threading, time
import numpy as np, azpy
game, slots, plies, rows, before = json.loads(sys.argv[1])
start, done = azpy.make_game(game), threading.Event()
class Zeros:
    network_id = 1
    def __init__(self):
        self.logits = np.zeros((slots, start.num_actions), np.float32)
        self.values, self.calls, self.rows = np.zeros(slots, np.float32), 0, 0
    def evaluate_batch(self, observations):
        count = len(observations)
        if self.calls == before:
            self.begin = time.thread_time()
        elif self.calls > before and self.rows >= rows and not done.is_set():
            self.spent = time.thread_time() - self.begin
            done.set()
        if self.calls >= before and not done.is_set():
            self.rows += count
        self.calls += 1
        return self.logits[:count], self.values[:count]
zeros = Zeros()
options = {"simulations": 16, "gumbel_actions": 8, "eval_batch": 1, "opening_plies": plies, "cache_positions": 0}
with azpy.SelfPlay(game, zeros, slots=slots, pipelines=1, threads=1, seed=1, **options) as play:
    while not done.is_set():
        play.take_finished(seconds=0.05)
print(json.dumps([1e6 * zeros.spent / zeros.rows, zeros.rows]))
"""


def measured(folder: str, game: str, slots: int) -> float:
    """Microseconds a row of one run."""
    environment = {**os.environ, "PYTHONPATH": str(Path(folder).resolve()), "OMP_NUM_THREADS": "1"}
    given = json.dumps([game, slots, GAMES.get(game, 40), _ROWS, _BEFORE])
    command = [sys.executable, "-c", _PLAY, given]
    said = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
    if said.returncode:
        raise SystemExit(f"{folder}: {game} with {slots} slots failed: {said.stderr[-2000:]}")
    return float(json.loads(said.stdout)[0])


def main() -> None:
    """Prints a row a game and number of slots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--games", default=";".join(GAMES), help="separated by semicolons")
    parser.add_argument("--slots", default="256,2048")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    print(f"| game | slots | {' | '.join(given.folders)} | last / first |\n|---|---|{'---|' * len(given.folders)}---|")
    for game in given.games.split(";"):
        for slots in map(int, given.slots.split(",")):
            turns = [[measured(folder, game, slots) for folder in given.folders] for _ in range(given.repeats)]
            found = [statistics.median(each) for each in zip(*turns, strict=True)]
            cells = " | ".join(f"{one:.2f}" for one in found)
            print(f"| {game} | {slots:,} | {cells} | {found[-1] / found[0]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
