"""What the store of games costs, of Connect Four: the window as it grows, and the journal.

For each size of the window: milliseconds to take in the 256 new games of an iteration. Then games written to the
journal a second, by how many reach it at once.

    python benches/store.py --games 1000 10000 50000
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import azpy
from azpy.runs.storage import Journal

NEW, JOURNALED = 256, 1024
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--games", type=int, nargs="+", default=[1_000, 10_000, 50_000], help="in the window")
options = parser.parse_args()
games = max(*options.games, JOURNALED) + NEW
with azpy.SelfPlay("connect_four", azpy.UniformEvaluator(), slots=64, simulations=4, games=games) as play:
    played = list(play)
for count in options.games:
    window = azpy.ReplayBuffer("connect_four", max_positions=10**9)
    window.extend(played[:count])
    begin = time.perf_counter()
    window.resize(window.num_positions)
    window.extend(played[count : count + NEW])
    print(f"window of {count:,} games: {1000 * (time.perf_counter() - begin):.1f} ms for {NEW} new ones")
for together in (1, 8, 64):
    with TemporaryDirectory(dir=".") as folder:
        journal = Journal(Path(folder) / "journal.bin")
        begin = time.perf_counter()
        for first in range(0, JOURNALED, together):
            journal.append(*played[first : first + together])
        print(f"journal, {together} at once: {JOURNALED / (time.perf_counter() - begin):,.0f} games/s")
