"""What workers cost and bring: `play` (the default), `head` and `wire`.

    python benches/workers.py [--game connect_four] [--network 4x32] [--workers 0,1,2,4] [--seconds 20] [--repeats 3]
    python benches/workers.py head [--games-of connect_four,go,chess] [--games 100] [--seconds 20] [--repeats 3]
    python benches/workers.py wire [--games-of connect_four,go,chess] [--games 100]

`play`: how fast self-play is in worker processes, against the threads of one process on the same cores.

0 workers: this process plays. Games go through the table of ids and into a journal, as in a run. The ways take turns;
medians of --repeats turns, with the least and the most. Each turn begins to count once a slot's worth of games is done.

`head`: how many games a second one head takes. Games that were played before come as messages, one game each, and go
the way of a run: message, frame, examination, table of ids, journal. The journal is synced after every 64 games. Beside
it stands one process that plays with the preset's network (untrained): its simulations a second, divided by the
simulations of a game of even priors. Both are also given for a second of one core's time, which other programs on the
machine change little.

`wire`: the bytes of a game of even priors with the preset's simulations, and of each preset's network.
"""

import argparse
import itertools
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import azpy
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.fleet.desk import Desk
from azpy.fleet.fleet import Fleet, Lineup, PlayingNetwork
from azpy.fleet.here import Here
from azpy.fleet.local import LocalFleet
from azpy.fleet.table import ENDLESS, IdTable
from azpy.fleet.wire import MOST_OF_A_WORKER, Unpacker, pack
from azpy.games.names import make_position
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.machine import usable_cores
from azpy.playing.selfplay import open_self_play
from azpy.runs.storage import Journal, frame
from azpy.settings import Settings
from azpy.settings.presets import PRESETS, preset_of
from azpy.settings.run import combine

TOGETHER = 64  # games between two syncs of the journal
MANY = 1000  # workers from which the games come


def measure(workers: int, model: bytes, given: argparse.Namespace) -> tuple[float, float]:
    """Evaluations and positions a second."""
    chosen: dict[str, Any] = {"game": given.game, "network": given.network, "slots": given.slots, "workers": workers}
    settings = combine(chosen | {"simulations": given.simulations})
    start, table = make_position(given.game), IdTable(deterministic=False)
    table.ask(range(ENDLESS))
    fleet: Fleet = (LocalFleet if workers else Here)(settings, start, table)
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "journal.bin")
        try:
            evaluator = OnnxEvaluator(model, game=start, batch=settings.device_batch)
            fleet.play(Lineup(PlayingNetwork([evaluator], model)))

            def play(until: float, games: int) -> int:
                """Takes games until then, and so many at least; returns their positions."""
                positions = done = 0
                found = list[azpy.GameRecord]()
                while time.monotonic() < until or done < games or not found:  # the totals are those of the last games
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


def preset(game: str) -> Settings:
    """The game's preset."""
    return combine(preset_of(game) | {"game": game})


def played(game: str, count: int) -> tuple[list[azpy.GameRecord], float]:
    """Games of even priors with the preset's settings, and the simulations of one."""
    settings = preset(game)
    with open_self_play(settings, make_position(game), [azpy.UniformEvaluator()], 0, count, resign_below=-1.0) as play:
        return list(play), play.stats["simulations"] / count


def messages(games: list[azpy.GameRecord]) -> list[tuple[str, bytes]]:
    """Each game as one of many workers sends it."""
    with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), slots=2, simulations=2, games=1) as play:
        list(play)
        totals = {"stats": dict(play.stats), "pipelines": dict(play.pipeline_stats[0])}
    message = {"said": "games", **totals}
    return [(f"worker {index % MANY}", pack(message, frame(game))) for index, game in enumerate(games)]


def head(given: argparse.Namespace) -> None:
    """Measures and prints the part `head`."""
    for game in given.games_of.split(","):
        games, simulations = played(game, given.games)
        sent, start, settings = messages(games), make_position(game), preset(game)
        rates, core_rates = [], []
        for _ in range(given.repeats):
            with tempfile.TemporaryDirectory() as folder:
                journal, table = Journal(Path(folder) / "journal.bin"), IdTable(deterministic=False)
                desk = Desk(settings, start, table)
                desk.play(Lineup(PlayingNetwork([azpy.UniformEvaluator()])))
                table.ask(range(ENDLESS))
                for number in range(MANY):
                    desk.handed(f"worker {number}", table.lease(f"worker {number}", -(-len(games) // MANY)))
                begin, core = time.monotonic(), time.process_time()
                for first in range(0, len(sent), TOGETHER):
                    for name, data in itertools.islice(sent, first, first + TOGETHER):
                        for message, body in Unpacker(MOST_OF_A_WORKER).feed(data):
                            desk.tally(name).note(message)
                            desk.accept(name, body)
                    journal.append(*desk.take(TOGETHER))
                rates.append(len(journal.records) / (time.monotonic() - begin))
                core_rates.append(len(journal.records) / (time.process_time() - core))
        rate, core_rate = statistics.median(rates), statistics.median(core_rates)
        one, one_core = (each / simulations for each in speed_of_one(game, settings, given.seconds))
        size = sum(len(data) for _, data in sent) / len(sent)
        print(
            f"{game}: the head takes {rate:,.0f} games/s ({min(rates):,.0f} to {max(rates):,.0f}), {core_rate:,.0f} in "
            f"a second of a core; a message has {size:,.0f} bytes"
        )
        print(
            f"    a process on {usable_cores()} cores plays {one:.3g} games/s, {one_core:.3g} in a second of a core "
            f"({settings.network}, {settings.simulations} simulations): a head serves {core_rate / one_core:,.0f} cores"
        )


def speed_of_one(game: str, settings: Settings, seconds: float) -> tuple[float, float]:
    """Simulations of one process with the preset's network on the CPU: a second, and a second of one core's time."""
    start = make_position(game)
    evaluator = OnnxEvaluator(to_onnx(Network.of(start, settings.network)), game=start, batch=settings.device_batch)
    with open_self_play(settings, start, [evaluator], 0, ENDLESS, resign_below=-1.0) as play:
        play.take_finished(1, seconds=seconds / 4)
        begin, core, before = time.monotonic(), time.process_time(), play.stats["simulations"]
        time.sleep(seconds)
        done = play.stats["simulations"] - before
        return done / (time.monotonic() - begin), done / (time.process_time() - core)


def wire(given: argparse.Namespace) -> None:
    """Measures and prints the part `wire`."""
    for game in given.games_of.split(","):
        games, _ = played(game, given.games)
        sizes, plies = [len(record.to_bytes()) for record in games], sum(map(len, games))
        message = statistics.mean(len(data) for _, data in messages(games))
        print(
            f"{game}: {statistics.mean(sizes):,.0f} bytes a game ({min(sizes):,} to {max(sizes):,}), "
            f"{plies / len(games):.0f} plies, {sum(sizes) / plies:.0f} bytes a ply; as a message {message:,.0f} bytes"
        )
    for game in PRESETS:
        network = preset(game).network
        print(f"{game}: network {network}, {len(to_onnx(Network.of(make_position(game), network))):,} bytes")


def play(given: argparse.Namespace) -> None:
    """Measures and prints the part `play`."""
    ways = [int(part) for part in given.workers.split(",")]
    model = to_onnx(Network.of(make_position(given.game), given.network))
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


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("play", "head", "wire"), default="play")
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--games-of", default="connect_four,go,chess", help="games of the parts head and wire")
    parser.add_argument("--games", type=int, default=100, help="games played before, for head and wire")
    parser.add_argument("--network", default="4x32")
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--slots", type=int, default=128)
    parser.add_argument("--workers", default="0,1,2,4")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    {"play": play, "head": head, "wire": wire}[given.part](given)


if __name__ == "__main__":
    main()
