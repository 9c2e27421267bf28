"""What the cache brings: self-play with caches of several sizes, and other ways to choose what makes room.

    python benches/cache.py [--games connect_four=600]

Self-play as ever, with tree reuse and one small untrained network a game; the games are the same whatever the cache.
First at each size: the share of the leaves that were found, simulations and evaluations a second, and the memory. A
network as small as this one is nearly free, so the share says more than the seconds. Then the positions that were asked
for are looked up again in tables of Python lists: the share that each rule finds, what a table without a bound would
find, and, where the network is exchanged in the middle, whether it helps to throw the older one's answers out first.
`cargo bench --bench cache` has the time that a look takes, and how often threads wait for each other.
"""

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import azpy
from azpy.learning.export import to_onnx
from azpy.learning.network import Network

LEGAL = {"connect_four": 7, "chess(encoding=az18)": 30, "go(size=7)": 35}  # actions of a position, about
GAMES = {"connect_four": 250, "chess(encoding=az18)": 16, "go(size=7)": 40}
SIZES = (0, 2**12, 2**14, 2**16, 2**18, 2**20)
ANSWER_BYTES = 64  # about, and 4 for each prior: `cargo bench --bench cache` says it exactly
Trace = list[list[int]]  # positions asked for, a batch at a time
Bucket = list[tuple[int, int]]  # (generation of the network, position), the last used one last


class Recorder:
    """Answers as another evaluator does, and notes what it was asked."""

    def __init__(self, evaluator: azpy.OnnxEvaluator) -> None:
        self.evaluator, self.network_id, self.trace = evaluator, evaluator.network_id, Trace()

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self.trace.append([hash(row.tobytes()) for row in observations])
        return self.evaluator.evaluate_batch(observations)


def play(game: str, evaluator: Any, cache_positions: int, games: int) -> tuple[float, dict[str, float]]:
    begin = time.perf_counter()
    settings: dict[str, Any] = {
        "slots": 64,
        "pipelines": 1,
        "simulations": 100,
        "eval_batch": 4,
        "max_plies": 100,
        "seed": 1,
    }
    with azpy.SelfPlay(game, evaluator, games=games, cache_positions=cache_positions, **settings) as playing:
        for _ in playing:
            pass
        return time.perf_counter() - begin, playing.stats


# Which of a full bucket makes room for a position of a generation: its place.
Rule = Callable[[Bucket, int, random.Random], int]
RULES: dict[str, tuple[int, Rule]] = {
    "1 way": (1, lambda bucket, generation, draw: 0),
    "2 ways, least recently used": (2, lambda bucket, generation, draw: 0),
    "4 ways, least recently used": (4, lambda bucket, generation, draw: 0),
    "8 ways, least recently used": (8, lambda bucket, generation, draw: 0),
    "4 ways, at random": (4, lambda bucket, generation, draw: draw.randrange(4)),
}
OLDER_FIRST: tuple[int, Rule] = (
    4,
    lambda bucket, generation, draw: next((i for i, (of, _) in enumerate(bucket) if of < generation), 0),
)


def found(trace: Trace, places: int, rule: tuple[int, Rule], swap_at: int | None = None) -> float:
    """The share of the positions that a table finds; the network is exchanged before batch `swap_at`."""
    ways, choose = rule
    buckets: list[Bucket] = [[] for _ in range(places // ways)]
    hits, draw = 0, random.Random(1)
    for number, batch in enumerate(trace):
        generation = int(swap_at is not None and number >= swap_at)
        missing = []
        for position in batch:
            bucket, entry = buckets[position % len(buckets)], (generation, position)
            if entry in bucket:
                hits += 1
                bucket.remove(entry)
                bucket.append(entry)
            else:
                missing.append(entry)
        for entry in missing:  # the whole batch is looked up before anything is stored
            bucket = buckets[entry[1] % len(buckets)]
            if len(bucket) == ways:
                del bucket[choose(bucket, generation, draw)]
            bucket.append(entry)
    return hits / sum(map(len, trace))


def measure(game: str, games: int) -> None:
    state = azpy.make_game(game)
    evaluator = azpy.OnnxEvaluator(to_onnx(Network.of(state, "1x8")))
    print(f"{game}, {games} games")
    for places in SIZES:
        seconds, stats = play(game, evaluator, places, games)
        leaves = stats["evaluations"] + stats["cache_hits"]
        print(
            f"  {places:>9,} positions: {stats['cache_hits'] / leaves:6.1%} of {leaves:,} leaves found, "
            f"{stats['simulations'] / seconds:9,.0f} simulations/s, {stats['rows'] / seconds:9,.0f} evaluations/s, "
            f"{places * (ANSWER_BYTES + 4 * LEGAL[game]) / 2**20:.1f} MiB when full",
            flush=True,
        )
    recorder = Recorder(evaluator)
    play(game, recorder, 0, games)
    trace, sizes = recorder.trace, SIZES[1:-1]
    asked = sum(map(len, trace))
    best = 1 - len(set().union(*trace)) / asked
    print(f"  of {asked:,} rows that were asked for, {best:.1%} are found without a bound, and with")
    print(f"  {'':<28}" + " ".join(f"{places:>9,}" for places in sizes))
    for name, rule in RULES.items():
        print(f"  {name:<28}" + " ".join(f"{found(trace, places, rule):9.1%}" for places in sizes), flush=True)
    print("  and where the network is exchanged in the middle, with 4 ways")
    for name, rule in (("least recently used", RULES["4 ways, least recently used"]), ("older first", OLDER_FIRST)):
        shares = (found(trace, places, rule, len(trace) // 2) for places in sizes)
        print(f"  {name:<28}" + " ".join(f"{share:9.1%}" for share in shares), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", nargs="*", metavar="GAME=NUMBER", help="which games, and how many of each")
    given = parser.parse_args()
    chosen = [text.rsplit("=", 1) for text in given.games or ()]
    for game, games in [(game, int(games)) for game, games in chosen] or GAMES.items():
        measure(game, games)


if __name__ == "__main__":
    main()
