"""Rules and search beside OpenSpiel's C++, in one run, on one thread.

    python benches/openspiel.py [--games connect_four chess ...] [--turns 5] [--seconds 0.5] [--json FILE]

For each game, in turn and several times, each for --seconds of CPU time:

- random games a second, ours and OpenSpiel's (of its evaluator by random rollouts, from the start);
- simulations a second of searches of 800 from the start with one random game a leaf: ours, and its MCTSBot. It grows a
  leaf at its second visit, we do at the first, and its bindings take no other evaluator;
- ours with the uniform evaluator, which measures the search and the rules alone.

Prints medians with their ranges, and the medians of the ratios of one turn.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pyspiel

import azpy
from azpy._core import random_playouts

SIMULATIONS = 800
GAMES = {
    "connect_four": "connect_four",
    "go": "go(board_size=9,komi=7.5)",
    "chess": "chess",
    "othello": "othello",
    "backgammon": "backgammon",
    "hex": "hex",
    "breakthrough": "breakthrough",
    "gomoku": "gomoku",
    "wall_game": None,
}


def rate(work: Callable[[], int], seconds: float) -> float:
    """How much work is done in a second of this thread's time."""
    work()
    done, begin = 0, time.thread_time()
    while (spent := time.thread_time() - begin) < seconds:
        done += work()
    return done / spent


def ours(name: str) -> dict[str, Callable[[], int]]:
    state = azpy.make_game(name)
    if state.turn == azpy.CHANCE:
        state.play(state.chance_outcomes()[0][0])
    seeds = iter(range(10**9))

    def games() -> int:
        random_playouts(state, 20, next(seeds))
        return 20

    def search(evaluator: object) -> Callable[[], int]:
        def run() -> int:
            azpy.Search(evaluator, simulations=SIMULATIONS).run(state)
            return SIMULATIONS

        return run

    return {
        "random games": games,
        "search, a random game a leaf": search(azpy.RolloutEvaluator()),
        "search, uniform": search(azpy.UniformEvaluator()),
    }


def theirs(name: str) -> dict[str, Callable[[], int]]:
    game = pyspiel.load_game(name)
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    # Its first simulation asks the evaluator about the root: 20 random games, and nothing else to speak of.
    player = pyspiel.MCTSBot(game, pyspiel.RandomRolloutEvaluator(20, 1), 2.0, 1, 1000, False, 1, False)
    bot = pyspiel.MCTSBot(game, pyspiel.RandomRolloutEvaluator(1, 1), 2.0, SIMULATIONS, 1000, False, 1, False)

    def games() -> int:
        player.mcts_search(state)
        return 20

    def search() -> int:
        bot.mcts_search(state)
        return SIMULATIONS

    return {"random games": games, "search, a random game a leaf": search}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    everything = {}
    for name in given.games:
        work = {("azpy", kind): call for kind, call in ours(name).items()}
        if (other := GAMES[name]) is not None:
            work |= {("OpenSpiel", kind): call for kind, call in theirs(other).items()}
        runs: dict[tuple[str, str], list[float]] = {key: [] for key in work}
        for _ in range(given.turns):
            for key, call in work.items():
                runs[key].append(rate(call, given.seconds))
        for (who, kind), found in runs.items():
            text = f"{name:13} {kind:29} {who:10} {statistics.median(found):13,.0f}/s"
            text += f" [{min(found):,.0f} to {max(found):,.0f}]"
            against = runs.get(("OpenSpiel", kind))
            if who == "azpy" and against is not None:
                ratio = statistics.median(a / b for a, b in zip(found, against, strict=True))
                text += f", {ratio:.1f} times OpenSpiel"
            print(text, flush=True)
        everything[name] = {f"{who}: {kind}": found for (who, kind), found in runs.items()}
    if given.json is not None:
        given.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
