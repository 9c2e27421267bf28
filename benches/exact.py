"""How often a network and its searches give value away in a game that is small enough to be solved from its start.

    python benches/exact.py RUN [--simulations 16 100] [--most 200000]

Each position that can be reached is solved by plain recursion, those before a roll too. An error is a chosen action
after which the position is worth less than before. Only positions count in which an action is an error. The column
`prior` is the network without a search: the legal action with the highest logit. `loss` is the mean of what is given
away, in points: a game's result is from -1 to 1.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import azpy
from azpy.matches.players import load_players, parse_player
from azpy.runs.reader import StoredRun
from solved import choices

_LEAST = 1e-9  # points: less is rounding


class Solved:
    """All positions below a start.

    Attributes:
        decisions: positions in which an action loses value, each with what its actions are worth to the player to move.
        count: of all positions.
    """

    def __init__(self, start: azpy.State, most: int) -> None:
        self.decisions: list[tuple[azpy.State, dict[int, float]]] = []
        self._values, self._most = dict[int, float](), most
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 4 * start.max_plies + 1000))
        self._value(start)
        self.count = len(self._values)

    def _value(self, state: azpy.State) -> float:
        """For player 0."""
        if (key := state.key()) not in self._values:
            if len(self._values) >= self._most:
                sys.exit(f"{state.game} has more than {self._most:,} positions: give a smaller game, or --most")
            self._values[key] = self._new(state)
        return self._values[key]

    def _new(self, state: azpy.State) -> float:
        if state.is_terminal:
            return state.outcome()
        if state.turn == azpy.CHANCE:
            return sum(chance * self._value(_after(state, outcome)) for outcome, chance in state.chance_outcomes())
        sign = 1.0 if state.turn == 0 else -1.0
        worth = {action: sign * self._value(_after(state, action)) for action in state.legal_actions()}
        best = max(worth.values())
        if best - min(worth.values()) > _LEAST:
            self.decisions.append((state, worth))
        return sign * best

    def errors(self, chosen: Sequence[int]) -> tuple[int, float]:
        """How many of these actions, one for each decision, are errors, and the mean loss in points."""
        lost = [max(worth.values()) - worth[action] for (_, worth), action in zip(self.decisions, chosen, strict=True)]
        return sum(loss > _LEAST for loss in lost), sum(lost) / max(1, len(lost))


def _after(state: azpy.State, action: int) -> azpy.State:
    after = state.clone()
    after.play(action)
    return after


def main() -> None:
    """Solves, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument("--simulations", type=int, nargs="*", default=[16, 100])
    parser.add_argument("--most", type=int, default=200_000, help="positions, more are refused")
    given = parser.parse_args()
    start = StoredRun(given.run).start
    solved = Solved(start, given.most)
    states = [state for state, _ in solved.decisions]
    print(f"{start.game}: {solved.count:,} positions, of which {len(states):,} have an action that loses value")
    spec = parse_player(given.run)
    first, *entrants = load_players([replace(spec, simulations=one) for one in (1, *given.simulations)], start, 1)
    chosen = {"prior": choices(None, states, first.network)}
    chosen |= {f"{one.simulations} simulations": choices(one.player, states) for one in entrants}
    for name, actions in chosen.items():
        errors, loss = solved.errors(actions)
        print(f"{name:>20}  {errors:,} errors ({errors / max(1, len(states)):.2%}), loss {loss:.5f}")


if __name__ == "__main__":
    main()
