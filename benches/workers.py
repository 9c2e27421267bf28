"""How fast self-play is in worker processes, against the threads of one process on the same cores.

    python benches/workers.py [--game connect_four] [--network 4x32] [--workers 0,1,2,4] [--seconds 20] [--repeats 3]

0 workers: this process plays. Games go through the table of ids and into a journal, as in a run. The ways take turns;
medians of --repeats turns, with the least and the most. Each turn begins to count once a slot's worth of games is done.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from azpy.evaluators.onnx import OnnxEvaluator
from azpy.fleet.fleet import Lineup
from azpy.fleet.head import open_fleet
from azpy.fleet.table import ENDLESS
from azpy.games.names import make_game
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.runs.storage import Journal
from azpy.settings.run import combine
from azpy.system import usable_cores


def measure(workers: int, model: bytes, given: argparse.Namespace) -> tuple[float, float]:
    """Evaluations and positions a second."""
    chosen = {name: getattr(given, name) for name in ("game", "network", "slots", "simulations")}
    settings = combine(chosen | {"workers": workers})
    start = make_game(given.game)
    fleet = open_fleet(settings, start)
    fleet.ask([range(ENDLESS)], [])
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "journal.bin")
        try:
            evaluator = OnnxEvaluator(model, game=start, batch=settings.device_batch)
            fleet.play(Lineup([evaluator], model))

            def play(until: float, games: int) -> int:
                """Takes games until then, and so many at least; returns their positions."""
                positions = done = 0
                while time.monotonic() < until or done < games:
                    if found := fleet.take(1 << 20):
                        journal.append(*found)
                        done += len(found)
                        positions += sum(game.positions for game in found)
                return positions

            play(0.0, settings.slots)
            begin, before = time.monotonic(), fleet.stats["rows"]
            positions = play(begin + given.seconds, 1)
            seconds = time.monotonic() - begin
            return (fleet.stats["rows"] - before) / seconds, positions / seconds
        finally:
            fleet.close()


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--network", default="4x32")
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--slots", type=int, default=128)
    parser.add_argument("--workers", default="0,1,2,4")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    ways = [int(part) for part in given.workers.split(",")]
    model = to_onnx(Network.of(make_game(given.game), given.network))
    found: dict[int, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(given.repeats):
        for way in ways:
            found[way].append(measure(way, model, given))
    print(
        f"{given.game}, {given.network}, {given.simulations} simulations, {given.slots} slots, {usable_cores()} cores"
    )
    for way, figures in found.items():
        rows, positions = zip(*figures, strict=True)
        share = statistics.median(rows) / statistics.median(rows_of for rows_of, _ in found[ways[0]])
        print(
            f"{way} workers: {statistics.median(rows):9,.0f} evaluations/s ({min(rows):,.0f} to {max(rows):,.0f}), "
            f"{statistics.median(positions):7,.0f} positions/s, {share:.2f} of {ways[0]} workers"
        )


if __name__ == "__main__":
    main()
