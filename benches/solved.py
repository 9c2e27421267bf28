"""How often a network and its searches give away the value of a solved position of Connect Four.

    python benches/solved.py PLAYER [PLAYER ...] --positions FILE [--simulations 16 100 800]
    python benches/solved.py --positions FILE [--count 10000] [--seed 0]       # makes the file alone

A PLAYER is one of az-match's: a run folder, a model file, `mcts`, each with options of its search after a `?`. An error
is a chosen action after which the position is worth less than before: a win becomes a draw or a loss, or a draw a loss.
The column `prior` is the network without a search: the legal action with the highest logit.

FILE holds solved positions. It is made if it is not there, in some ten minutes, and needs the solver
bitbully (`pip install bitbully`, AGPL; nothing else of azpy uses it). Equal seeds and counts give equal files. It has
two kinds of positions, as many of each, spread evenly over the plies:

- `random`: all plies at random.
- `games`: from games of Monte Carlo tree search with few rollouts, whose actions are drawn by visits.

Every position has an action that keeps the value and one that does not. The table has the share of errors for each
group. A share p of n positions has the standard error sqrt(p (1 - p) / n). All players meet the same positions, so
differences have smaller ones: the last row of each further player is its errors less those of the first player, with
the half-width of the 95 % interval.
"""

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import azpy
from azpy.games.lines import replayed
from azpy.matches.players import load_players, parse_player
from azpy.runs import storage

BANDS = ((10, 15), (16, 21), (22, 27), (28, 35))  # plies played before the position; the last one included
KINDS = ("random", "games")
_FORMAT = 1
_PER_GAME = 2  # positions of one game at most, so that they have little in common
_BATCH = 500  # positions of one search: a bound on memory


@dataclass(frozen=True)
class Position:
    """A solved position."""

    kind: str
    actions: tuple[int, ...]  # from the start
    values: tuple[int | None, ...]  # of each action for the player to move: 1, 0 or -1; None: not legal

    @property
    def keeping(self) -> set[int]:
        """The actions that keep the position's value."""
        best = max(value for value in self.values if value is not None)
        return {action for action, value in enumerate(self.values) if value == best}

    @property
    def can_err(self) -> bool:
        """Whether an action gives the value away."""
        return len({value for value in self.values if value is not None}) > 1


class Solver:
    """Values of all actions of a position, by bitbully."""

    def __init__(self) -> None:
        try:
            import bitbully.bitbully_core as core
        except ImportError as error:
            sys.exit(f"making solved positions needs a solver: pip install bitbully ({error})")
        self._core, self._solver = core, core.BitBullyCore()

    def values(self, actions: Sequence[int]) -> tuple[int | None, ...]:
        """See `Position.values`."""
        board = self._core.BoardCore()
        for action in actions:
            board.play(int(action))
        return tuple(self._value(board, action) for action in range(7))

    def _value(self, board: Any, action: int) -> int | None:
        if not board.isLegalMove(action):
            return None
        if board.canWin(action):
            return 1
        after = board.playMoveOnCopy(action)
        if not after.movesLeft():
            return 0
        if after.canWin():
            return -1
        score = self._solver.negamax(after, alpha=-1, beta=1, depth=0)
        return (score < 0) - (score > 0)


def random_lines(seed: int) -> Iterator[list[int]]:
    """Lines of random play, to the end of the game."""
    draw = random.Random(f"{seed} random")
    while True:
        position, line = azpy.make_game("connect_four"), list[int]()
        while not position.is_terminal:
            line.append(draw.choice(position.legal_actions()))
            position.play(line[-1])
        yield line


def game_lines(seed: int) -> Iterator[list[int]]:
    """Games of a weak but sensible player that tries out many openings."""
    first = 0
    while True:
        options: dict[str, Any] = {"simulations": 64, "eval_batch": 1, "temperature_plies": 42, "opening_plies": 4}
        rollouts = azpy.RolloutEvaluator(seed=seed + first)
        with azpy.SelfPlay(
            "connect_four", rollouts, games=256, first_game=first, seed=seed, slots=1, pipelines=1, threads=1, **options
        ) as games:
            yield from (record.actions.tolist() for record in sorted(games, key=lambda record: record.game_id))
        first += 256


def make(count: int, seed: int) -> list[Position]:
    """Solves positions until there are `count`, as many of each kind and band; the same ones for the same seed."""
    solver, found, seen = Solver(), list[Position](), set[int]()
    each = math.ceil(count / len(KINDS) / len(BANDS))
    for kind, lines in zip(KINDS, (random_lines(seed), game_lines(seed)), strict=True):
        missing = dict.fromkeys(BANDS, each)
        draw = random.Random(f"{seed} {kind} plies")
        while any(missing.values()):
            line = next(lines)
            bands = [band for band in BANDS if missing[band] and band[0] < len(line)]
            for band in draw.sample(bands, min(_PER_GAME, len(bands))):
                ply = draw.randint(band[0], min(band[1], len(line) - 1))
                key = replayed_to(line[:ply]).key()
                if key in seen:
                    continue
                seen.add(key)
                position = Position(kind, tuple(line[:ply]), solver.values(line[:ply]))
                if position.can_err:
                    found.append(position)
                    missing[band] -= 1
                    if len(found) % 250 == 0:
                        print(f"{len(found):,} of {each * len(KINDS) * len(BANDS):,} positions solved", file=sys.stderr)
    return found


def replayed_to(actions: Sequence[int]) -> azpy.State:
    """The position after these actions."""
    *_, last = replayed(azpy.make_game("connect_four"), list(actions))
    return last


def positions_in(path: Path, count: int, seed: int) -> list[Position]:
    """The positions of a file, which is made if it is not there."""
    if not path.exists():
        made = [asdict(position) for position in make(count, seed)]
        text = json.dumps({"format": _FORMAT, "count": count, "seed": seed, "positions": made})
        storage.write_atomically(path, text.encode())
    data = json.loads(path.read_text(encoding="utf-8"))
    if (data["format"], data["count"], data["seed"]) != (_FORMAT, count, seed):
        sys.exit(f"{path} holds {data['count']} positions of seed {data['seed']}: give these, or another file")
    return [Position(one["kind"], tuple(one["actions"]), tuple(one["values"])) for one in data["positions"]]


def choices(player: Any, states: Sequence[azpy.State], network: Any = None) -> list[int]:
    """The action of each position: of a player that searches, or with `network` of its prior."""
    chosen = list[int]()
    for begin in range(0, len(states), _BATCH):
        part = states[begin : begin + _BATCH]
        if network is None:
            chosen += [int(action) for action in player.select_actions(part, begin)]
            continue
        logits, _ = network.evaluate_batch(np.stack([state.observation() for state in part]))
        for row, state in zip(logits, part, strict=True):
            legal = state.legal_actions()
            chosen.append(legal[int(row[legal].argmax())])
    return chosen


def errors(positions: Sequence[Position], chosen: Sequence[int]) -> np.ndarray:
    """`[N]`: 1 where the chosen action gives the value away, 0 elsewhere."""
    return np.array([action not in position.keeping for position, action in zip(positions, chosen, strict=True)], float)


def less(errors: np.ndarray, others: np.ndarray | None) -> str:
    """The difference of two shares of errors in the same positions, with the half-width of its 95 % interval."""
    if others is None:
        return ""
    differences = errors - others
    return f"{differences.mean():+.2%} ± {1.96 * differences.std(ddof=1) / math.sqrt(len(differences)):.2%}"


def groups(positions: Sequence[Position]) -> dict[str, list[int]]:
    """Indices of positions by kind and band of plies, and all of them."""
    found = {f"{kind}, plies {low} to {high}": list[int]() for kind in KINDS for low, high in BANDS}
    for index, position in enumerate(positions):
        low, high = next(band for band in BANDS if band[0] <= len(position.actions) <= band[1])
        found[f"{position.kind}, plies {low} to {high}"].append(index)
    kinds = {kind: [i for i, position in enumerate(positions) if position.kind == kind] for kind in KINDS}
    return found | kinds | {"all": list(range(len(positions)))}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("players", nargs="*", metavar="PLAYER")
    parser.add_argument("--positions", type=Path, required=True, metavar="FILE")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--simulations", type=int, nargs="*", default=[16, 100, 800])
    given = parser.parse_args()
    positions = positions_in(given.positions, given.count, given.seed)
    states = [replayed_to(position.actions) for position in positions]
    by_group = groups(positions)

    def form(*cells: str) -> str:
        return "  ".join(f"{cell:{'>15' if place else '24'}}" for place, cell in enumerate(cells))

    baseline = dict[str, np.ndarray]()
    for name in given.players:
        spec, columns, begin = parse_player(name), dict[str, list[int]](), time.perf_counter()
        specs = [replace(spec, simulations=simulations) for simulations in (1, *given.simulations)]
        (first, *entrants) = load_players(specs, states[0], 1)
        if first.network is not None:
            columns["prior"] = choices(None, states, first.network)
        for entrant in entrants:
            columns[f"{entrant.simulations} simulations"] = choices(entrant.player, states)
        print(f"{name}, {time.perf_counter() - begin:.0f} s")
        print(form("errors", "positions", *columns))
        wrong = {column: errors(positions, chosen) for column, chosen in columns.items()}
        for group, indices in by_group.items():
            print(form(group, f"{len(indices):,}", *(f"{each[indices].mean():.2%}" for each in wrong.values())))
        if baseline:
            cells = (less(each, baseline.get(column)) for column, each in wrong.items())
            print(form("less the first player", f"{len(positions):,}", *cells))
        baseline = baseline or wrong
        print()


if __name__ == "__main__":
    main()
