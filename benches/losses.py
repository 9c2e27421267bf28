"""Lists the games that players lose against opponents that know nothing: each loss is a fault to explain.

    python benches/losses.py [PLAYER...] [--games 2000] [--simulations 200] [--minutes 60] [--seed 0] [--device cpu]

PLAYERs are players as az-match names them, by default those that azpy brings along. The opponents begin in half of the
games. One plays at random. The other is greedy: it takes a win in one ply, else one of the actions after which it has
the most men more than its opponent, so it flips discs in Othello and captures stones in Go. --minutes bounds the time
of each match.
"""

import argparse
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from azpy import State
from azpy.devices import CPU, Device
from azpy.games.names import make_game
from azpy.matches.arena import Board, RandomPlayer, play_rounds
from azpy.matches.openings import Book
from azpy.matches.players import game_of, load_players, parse_player
from azpy.runs.reader import names_in_box

_SLOTS = 32  # games in play: few, so that some are over when time is


class GreedyPlayer:
    """Takes the action that is best one ply ahead; see above."""

    def select_actions(self, states: Sequence[State], seed: int) -> list[int]:
        rng = np.random.default_rng(seed)
        return [self._best(state, rng) for state in states]

    def _best(self, state: State, rng: np.random.Generator) -> int:
        actions = state.legal_actions()
        worths = [_worth(state, action) for action in actions]
        return int(rng.choice([action for action, worth in zip(actions, worths, strict=True) if worth == max(worths)]))


def _worth(state: State, action: int) -> float:
    after = state.clone()
    after.play(action)
    if after.is_terminal:
        return float(np.inf) * after.outcomes()[state.turn] if after.outcomes()[state.turn] else 0.0
    marks = Counter(after.board().values())
    return float((marks["x"] - marks["o"]) * (1 - 2 * state.turn))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("players", nargs="*", default=names_in_box(), help="default: those that azpy brings along")
    parser.add_argument("--games", type=int, default=2000, help="of each match, an even number")
    parser.add_argument("--simulations", type=int, default=200, help="a move, for players without a number")
    parser.add_argument("--minutes", type=float, default=60.0, help="longest time of a match")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", type=Device.read, default=CPU)
    given = parser.parse_args()
    print("| player | opponent | games | won | drawn | lost |\n|---|---|---|---|---|---|", flush=True)
    for text in given.players:
        spec = parse_player(text)
        start = make_game(game_of([spec], None, ""))
        (entrant,) = load_players([spec], start, given.simulations, given.device)
        for name, opponent in (("random", RandomPlayer()), ("greedy", GreedyPlayer())):
            until, results = time.monotonic() + 60 * given.minutes, Counter[float]()

            def ended(boards: Sequence[Board], results: Counter[float] = results) -> None:
                for board in boards:
                    outcome = board.outcomes()[board.seats.index(0)]
                    results[outcome] += 1
                    if outcome < 0:
                        print(f"lost: {board.start.format_actions(board.actions)}", flush=True)

            players, rounds = (entrant.player, opponent), given.games // 2
            asked = {"may_go_on": lambda until=until: time.monotonic() < until, "ended": ended}
            for _ in play_rounds(Book(start, 0, 0), players, rounds, given.seed, _SLOTS, **asked):
                pass
            won, lost = (sum(n for outcome, n in results.items() if sign * outcome > 0) for sign in (1, -1))
            print(f"| {entrant} | {name} | {results.total()} | {won} | {results[0.0]} | {lost} |", flush=True)


if __name__ == "__main__":
    main()
