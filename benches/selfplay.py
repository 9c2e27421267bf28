"""Self-play against what the network could do alone, everything taking turns in one run.

    python benches/selfplay.py [RUN] [--game connect_four] [--network 5x64] [--simulations 100] [--slots 256]
        [--seconds 10] [--repeats 5] [--no-int8] [--only NAME ...] [--json FILE]

With RUN, the last model of that run plays, else one with random weights. Each turn measures

- the network alone: as many threads as cores that do nothing but evaluate, in batches as large as self-play's, in fp32
  and in int8
- self-play with nothing but the network, and with tree reuse, the cache and int8, each on its own and all together

The first turn warms up; the rest give medians and ranges. "Efficiency" is evaluations a second over those of the
network alone in the same precision and turn, with the cache off: the two take turns by parts of a turn, as a machine's
speed changes within minutes. A simulation is a visit that a search adds: what a reused tree brings is on top and not
counted, and one that the cache answers counts like one that the network answers.
"""

import argparse
import contextlib
import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from azpy import ReplayBuffer, SelfPlay
from azpy._core import State
from azpy.evaluators.int8 import has_int8, int8_of
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.games.names import make_game
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.playing.benchmarks import Play, machine, measure_alone
from azpy.runs.reader import StoredRun
from azpy.settings import Settings
from azpy.system import usable_cores

CACHE = 200_000
PARTS = 3
ALONE = ": alone"
OFF: dict[str, Any] = {"tree_reuse": False, "cache_positions": 0}
# What is on, beside the network.
LEVERS: dict[str, tuple[str, dict[str, Any]]] = {
    "fp32": ("fp32", {}),
    "fp32, tree reuse": ("fp32", {"tree_reuse": True}),
    "fp32, cache": ("fp32", {"cache_positions": CACHE}),
    "int8": ("int8", {}),
    "int8, cache": ("int8", {"cache_positions": CACHE}),
    "fp32, tree reuse, cache": ("fp32", {"tree_reuse": True, "cache_positions": CACHE}),
    "int8, tree reuse, cache": ("int8", {"tree_reuse": True, "cache_positions": CACHE}),
}


def models(given: argparse.Namespace) -> tuple[State, str, dict[str, bytes]]:
    """Where games start, the network's size, and the model in each precision."""
    if given.run is not None:
        run = StoredRun(given.run)
        start, network, fp32 = run.start, run.settings.network, run.model(run.checkpoints()[-1])
    else:
        start, network = make_game(given.game), given.network
        fp32 = to_onnx(Network.of(start, network))
    found = {"fp32": fp32}
    if given.int8:
        # Positions to calibrate on: of games that the network plays here.
        buffer = ReplayBuffer(start)
        evaluator = OnnxEvaluator(fp32, game=start)
        with SelfPlay(start, evaluator, slots=32, simulations=16, games=64) as play:
            for record in play:
                buffer.add(record)
        found["int8"], _ = int8_of(fp32, buffer, seed=0)
    return start, network, found


def turns(given: argparse.Namespace, start: State, found: Mapping[str, bytes]) -> Iterator[Any]:
    """For each turn: what was done by name of what was measured."""
    cores = usable_cores()
    evaluators = {name: OnnxEvaluator(model, game=start) for name, model in found.items()}
    layout = {"slots": given.slots, "pipelines": cores, "threads": 1, "eval_batch": 1, "simulations": given.simulations}
    with contextlib.ExitStack() as stack:
        plays = {
            name: stack.enter_context(Play(start, evaluators[precision], **(layout | OFF | options)))
            for name, (precision, options) in LEVERS.items()
            if precision in evaluators and name in (given.only or LEVERS)
        }
        for turn in range(given.repeats + 1):
            done: dict[str, dict[str, float]] = {}
            for name, play in plays.items():
                precision, options = LEVERS[name]
                if "cache_positions" in options:
                    done[name] = play.run(given.seconds)
                    continue
                parts, rates = list[dict[str, float]](), list[float]()
                for _ in range(PARTS):
                    parts.append(play.run(given.seconds / PARTS))
                    rows = round(parts[0]["rows"] / parts[0]["batches"])
                    alone = [evaluators[precision]] * cores
                    rates.append(measure_alone(alone, rows, start.obs_shape, given.seconds / PARTS))
                done[name] = {what: sum(part[what] for part in parts) for what in parts[0]}
                rate = sum(rates) / PARTS
                done[f"{name}{ALONE}"] = {"rows": rate, "simulations": 0.0, "seconds": 1.0}
            if turn:
                yield done


def table(done: list[dict[str, dict[str, float]]]) -> list[dict[str, Any]]:
    """A row for each thing measured."""
    rows = []
    for name in done[0]:
        rates = {what: [turn[name][what] / turn[name]["seconds"] for turn in done] for what in ("rows", "simulations")}
        row: dict[str, Any] = {"name": name, "evaluations/s": rates["rows"], "simulations/s": rates["simulations"]}
        if name + ALONE in done[0]:
            alone = [turn[name + ALONE]["rows"] for turn in done]
            row["efficiency"] = [one / other for one, other in zip(rates["rows"], alone, strict=True)]
        if name in LEVERS:
            row["of fp32"] = [
                rate / (turn["fp32"]["simulations"] / turn["fp32"]["seconds"])
                for rate, turn in zip(rates["simulations"], done, strict=True)
            ]
            row["hits"] = [
                turn[name]["cache_hits"] / max(1.0, turn[name]["cache_hits"] + turn[name]["evaluations"])
                for turn in done
            ]
            row["growing"] = [
                turn[name]["seconds_growing"] / (turn[name]["seconds_growing"] + turn[name]["seconds_evaluating"])
                for turn in done
            ]
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--network", default="5x64")
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--slots", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--int8", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--only", nargs="+", choices=list(LEVERS), help="of self-play's rows; fp32 is always there")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    given.only = None if given.only is None else {"fp32", *given.only}
    Settings(given.game, network=given.network, slots=given.slots, simulations=given.simulations)  # in words, if bad
    start, network, found = models(given)
    on = machine()
    instructions = "with" if has_int8() else "without"
    print(f"{on['cpu']}, {on['cores']} cores, {instructions} int8 instructions", flush=True)
    model = given.run or f"{given.game}, random weights"
    print(f"{model}, {network}, {given.slots} slots, {given.simulations} simulations", flush=True)
    rows = table(list(turns(given, start, found)))
    names = ("evaluations/s", "simulations/s", "of fp32", "efficiency", "hits", "growing")
    shown = [name for name in names if any(name in row for row in rows)]
    print(f"{'':24}" + "".join(f"{name:>26}" for name in shown))
    for row in rows:
        cells = []
        for name in shown:
            if not any(row.get(name, ())):
                cells.append(f"{'':>26}")
                continue
            digits = ",.0f" if name.endswith("/s") else ".3f"
            middle, least, most = (format(of(row[name]), digits) for of in (statistics.median, min, max))
            cells.append(f"{f'{middle} ({least}..{most})':>26}")
        print(f"{row['name']:24}" + "".join(cells), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps({"machine": on, "rows": rows}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
