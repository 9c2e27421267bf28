"""Self-play that keeps a GPU busy, in some minutes: a row for each network and number of pipelines.

    python benches/gpu_rows.py [--device cuda] [--slots 2048] [--seconds 4] [--minutes 1] [--pipelines 2,4,16]
                               [--only zeros,go] [--json FILE]

Networks have random weights. Each plays with 2 pipelines, which share the threads that grow trees, with one a core,
which have a thread each, and with numbers between. A row has rows/s of self-play without the cache, the share of the
pipelines' time in the network, and the share of the time in which the GPU is busy, by NVML. `zeros` answers zeros at
once, so it shows what trees and rules of the Wall Game cost. Then az-train runs for some minutes with what `auto`
chooses.

A row that fails is named, and the next one follows.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from azpy.evaluators.choice import half_precision, open_generation
from azpy.evaluators.protocol import first_line
from azpy.games.names import make_game
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.playing.benchmarks import Zeros, machine, play_for
from azpy.playing.selfplay import open_self_play
from azpy.settings.run import Settings, combine
from azpy.system import usable_cores

# Game and network of a row; None: zeros.
ROWS: dict[str, tuple[str, str | None]] = {
    "zeros": ("wall_game", None),
    "wall_game": ("wall_game", "20x128"),
    "go": ("go(size=9)", "4x48"),
    "connect_four": ("connect_four", "4x32"),
    "chess": ("chess", "10x128"),
}
_TRAINED = ("go", "wall_game")
_SEARCH = {"simulations": 16, "gumbel_actions": 8, "eval_batch": 1, "cache_positions": 0, "opening_plies": 40}
_MANY = 2**40  # games


@contextlib.contextmanager
def busy_share(every: int = 200) -> Iterator[list[float]]:
    """Percent of the time in which the GPU computes, one number each so many milliseconds; empty without a driver."""
    query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", f"-lms={every}"]
    found = list[float]()
    with tempfile.TemporaryFile("w+") as said:
        try:
            asked = subprocess.Popen(query, stdout=said, stderr=subprocess.DEVNULL)
        except OSError:
            yield found
            return
        try:
            yield found
        finally:
            asked.terminate()
            asked.wait()
            said.seek(0)
            found += [float(line) for line in said if line.strip().replace(".", "", 1).isdigit()]


def measured(row: str, pipelines: int, given: argparse.Namespace) -> dict[str, Any]:
    """Rows/s, and shares of the time in percent."""
    game, network = ROWS[row]
    layout = {"game": game, "device": given.device, "slots": given.slots, "pipelines": pipelines}
    settings: Settings = combine(layout, _SEARCH, {} if network is None else {"network": given.network or network})
    start = make_game(game)
    evaluator: Any
    if network is None:
        evaluator = Zeros(start, settings.device_batch)
    else:
        model, device = to_onnx(Network.of(start, settings.network)), settings.all_devices[0]
        precision = half_precision(settings, settings.all_devices)
        options: dict[str, Any] = {"precision": precision, "batch": settings.device_batch}
        evaluator = open_generation(model, device, settings, game=start, **options)
    with open_self_play(settings, start, [evaluator]) as play:
        play.admit(0, _MANY)
        play_for(play, given.seconds / 2)
        with busy_share() as busy:
            found = play_for(play, given.seconds)
    return {
        "rows_per_second": found["evaluations_per_second"],
        "in_network": 100 * found["in_network"],
        "gpu_busy": statistics.mean(busy) if busy else None,
        "evaluator": getattr(evaluator, "description", "zeros"),
    }


def trained(game: str, given: argparse.Namespace) -> dict[str, Any]:
    """Figures of a run of some minutes, and the lines that it printed."""
    with tempfile.TemporaryDirectory() as folder, busy_share(1000) as busy:
        flags = ["--device", given.device, "--minutes", str(given.minutes), "--out", f"{folder}/run"]
        flags += ["--network", given.network or "20x128"] if game == "wall_game" or given.network else []
        command = [sys.executable, "-m", "azpy", "train", game, *flags]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        if said.returncode:
            raise RuntimeError(said.stderr.strip() or said.stdout.strip())
        lines = Path(folder, "run/metrics.jsonl").read_text().splitlines()
        rows = [row for row in map(json.loads, lines) if "share_evaluating" in row]
    if not rows:
        raise RuntimeError("no iteration ended: give more --minutes")
    names = [name for name in rows[-1] if name.startswith("share_")] + ["evaluations_per_second"]
    found: dict[str, Any] = {name: statistics.mean(row[name] for row in rows) for name in names}
    return found | {"iterations": len(rows), "gpu_busy": busy, "said": said.stdout.splitlines()[:4]}


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="as for az-train; cpu to try the script")
    parser.add_argument("--slots", type=int, default=2048)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--minutes", type=float, default=1.0, help="of each az-train; 0: none")
    parser.add_argument("--pipelines", help="separated by commas (default: 2, 4, 8 and one a core)")
    parser.add_argument("--network", help="in place of that of each row")
    parser.add_argument("--only", default=",".join(ROWS), help="rows, separated by commas")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    cores = usable_cores()
    few = [number for number in (2, 4, 8) if number < cores]
    numbers = [int(each) for each in given.pipelines.split(",")] if given.pipelines else [*few, cores]
    found: dict[str, Any] = {"machine": machine(), "settings": vars(given) | {"json": None}, "rows": {}}
    print(f"{found['machine']['cpu']}, {cores} cores; {given.slots} slots on {given.device}", flush=True)
    jobs = [
        (f"{row}, {number} pipelines", measured, (row, number)) for row in given.only.split(",") for number in numbers
    ]
    games = [game for game in _TRAINED if game in given.only.split(",")] if given.minutes else []
    jobs += [(f"az-train {game}", trained, (game,)) for game in games]
    for name, job, about in jobs:
        begin = time.monotonic()
        try:
            row = job(*about, given)
        except Exception as error:  # what is left is measured all the same
            print(f"{name}: left out: {first_line(error)}", flush=True)
            continue
        found["rows"][name] = row
        if given.json is not None:
            given.json.write_text(json.dumps(found, indent=2, default=str))
        busy = row["gpu_busy"]
        if isinstance(busy, list):
            busy = statistics.mean(busy) if busy else None
        rate = row.get("rows_per_second", row.get("evaluations_per_second"))
        said = "not known" if busy is None else f"{busy:.0f} %"
        more = ", ".join(f"{key} {row[key]:.2f}" for key in row if key.startswith("share_"))
        in_network = f"{row['in_network']:.0f} % in the network, " if "in_network" in row else ""
        print(f"{name}: {rate:,.0f} rows/s, {in_network}GPU busy {said}", end="", flush=True)
        print(f"; {more}" if more else "", f"({time.monotonic() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
