"""What gathering many leaves of one tree costs in strength: the same network against itself, one leaf at a time.

    python benches/batching.py --model connect_four=RUN [--model "hex(size=7)=RUN"] [--out batching.jsonl]
        [--simulations 64 200 800] [--eval-batches 4 8 16 32] [--elo 35] [--table]

Both sides search equally many simulations with the settings of a match, from paired openings of random plies; one
gathers `eval_batch` leaves a round, the other a single one. Every way of gathering in WAYS is tried until the 95 %
interval of its Elo difference is within plus or minus --elo. Results go to a file as they come, a line for each lot
of pairs: the same command goes on where it was stopped, and a smaller --elo confirms what a larger one screened
(choose with --ways). `--table` prints what the file says and plays nothing. RUN is a run folder or a model file.
"""

import argparse
import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import azpy
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.games.names import make_position
from azpy.matches.arena import SearchPlayer, play_pairs
from azpy.matches.openings import Book
from azpy.matches.ratings import PAIR_SCORES, elo, pair_interval, pair_score
from azpy.settings.run import Settings, match_search

LOT = 20  # pairs between two lines of the file
MOST_PAIRS = 4000
MOST_KEPT = 2_000_000  # answers of the network
WAYS: dict[str, dict[str, Any]] = {
    "loss 0": {"virtual_loss": 0.0},
    "loss 0.5": {"virtual_loss": 0.5},
    "loss 1": {"virtual_loss": 1.0},
    "loss 3": {"virtual_loss": 3.0},
    "loss 1, collisions released": {"virtual_loss": 1.0, "max_collisions": 1},
    "loss 0, collisions released": {"virtual_loss": 0.0, "max_collisions": 1},
    "loss 1, a tenth in flight": {"virtual_loss": 1.0, "in_flight_share": 0.1},
    "loss 0, a tenth in flight": {"virtual_loss": 0.0, "in_flight_share": 0.1},
}


class Kept:
    """A network that answers a position once: both sides ask it, in games from the same openings."""

    def __init__(self, network: OnnxEvaluator) -> None:
        self._network = network
        self._answers: dict[bytes, tuple[NDArray[np.float32], np.float32]] = {}

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        keys = [hashlib.blake2b(row.data, digest_size=16).digest() for row in observations]
        new = list({key: row for row, key in enumerate(keys) if key not in self._answers}.values())
        if new:
            if len(self._answers) > MOST_KEPT:
                self._answers.clear()
                new = list(dict(zip(keys, range(len(keys)), strict=True)).values())
            logits, values = self._network.evaluate_batch(observations[new])
            self._answers.update((keys[row], found) for row, *found in zip(new, logits, values, strict=True))
        answers = [self._answers[key] for key in keys]
        return np.stack([logits for logits, _ in answers]), np.array([value for _, value in answers], np.float32)


Cell = tuple[str, int, int, int, str]  # game, network, simulations, eval batch, way


def read(path: Path) -> dict[Cell, list[int]]:
    """Pairs with each of `PAIR_SCORES`, from the batching side's view."""
    cells: dict[Cell, list[int]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        row = json.loads(line)
        cell = (row["game"], row["network"], row["simulations"], row["eval_batch"], row["way"])
        counts = cells.setdefault(cell, [0] * 5)
        counts[:] = [a + b for a, b in zip(counts, row["pairs"], strict=True)]
    return cells


def width(counts: list[int]) -> float:
    """Half of the 95 % interval of the Elo difference."""
    low, high = pair_interval(counts)
    return (elo(high) - elo(low)) / 2 if low > 0 and high < 1 else float("inf")


def play(game: str, network: Kept, cell: Cell, counts: list[int], goal: float) -> Iterator[list[int]]:
    """Lots of pairs until the interval is narrow enough; each lot has openings of its own seed."""
    _, _, simulations, eval_batch, way = cell
    options = match_search(Settings)
    many = SearchPlayer(network, simulations, eval_batch=eval_batch, **options, **WAYS[way])
    one = SearchPlayer(network, simulations, **options)
    while sum(counts) < 3 * LOT or (width(counts) > goal and sum(counts) < MOST_PAIRS):
        book = Book(lambda: make_position(game), 6, seed=sum(counts) // LOT)
        scores = [pair.score for pair in play_pairs(book, many, one, LOT, seed=1, slots=2 * LOT)]
        lot = [scores.count(score) for score in PAIR_SCORES]
        counts[:] = [a + b for a, b in zip(counts, lot, strict=True)]
        yield lot


def table(cells: dict[Cell, list[int]]) -> str:
    """Elo of gathering against one leaf at a time, with half the interval and the pairs played."""
    lines = ["| game | simulations | way | eval batch | Elo | pairs |", "|---|---|---|---|---|---|"]
    for (game, _, simulations, eval_batch, way), counts in sorted(cells.items()):
        low, high = pair_interval(counts)
        found = f"{elo(pair_score(counts)):+.0f} [{elo(low):+.0f}, {elo(high):+.0f}]"
        lines.append(f"| {game} | {simulations} | {way} | {eval_batch} | {found} | {sum(counts)} |")
    return "\n".join(lines)


def model_of(path: Path) -> Path:
    """The newest checkpoint's model of a run folder; a model file as it is."""
    return sorted(path.glob("checkpoints/*/model.onnx"))[-1] if path.is_dir() else path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", default=[], metavar="GAME=RUN", help="a game and who plays it")
    parser.add_argument("--out", type=Path, default=Path("batching.jsonl"))
    parser.add_argument("--simulations", type=int, nargs="+", default=[64, 200, 800])
    parser.add_argument("--eval-batches", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--elo", type=float, default=35.0, help="half of the 95 %% interval to reach")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    cells = read(given.out)
    if given.table:
        print(table(cells))
        return
    for text in given.model:
        game, _, path = text.rpartition("=")
        network = OnnxEvaluator(model_of(Path(path)), game=azpy.make_game(game), threads=2)
        if not network.row_exact:
            raise SystemExit(f"{path} answers a row differently in other batches: answers cannot be kept")
        kept = Kept(network)
        for simulations, eval_batch, way in itertools.product(given.simulations, given.eval_batches, given.ways):
            cell = (game, network.network_id, simulations, eval_batch, way)
            counts = cells.setdefault(cell, [0] * 5)
            for lot in play(game, kept, cell, counts, given.elo):
                row = dict(zip(("game", "network", "simulations", "eval_batch", "way"), cell, strict=True))
                line = json.dumps({**row, "pairs": lot})
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
            low, high = pair_interval(counts)
            found = f"{elo(pair_score(counts)):+.0f} [{elo(low):+.0f}, {elo(high):+.0f}]"
            print(f"{game}, {simulations} simulations, eval batch {eval_batch}, {way}: {found}", flush=True)


if __name__ == "__main__":
    main()
