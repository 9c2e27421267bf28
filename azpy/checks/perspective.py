"""Signs that a game mixes up its players: outcomes or observations in the wrong player's view.

No test of one position shows whose view an outcome is in: a game may be lopsided, and a wrong sign everywhere is
another valid game. `alike.py` has the tests that are certain. These are warnings: each can also be right.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from azpy.checks.faults import Broken

_WINS = 20  # random games that one player has won while the other player won none
_CHANGES, _CELLS = 50, 4  # changes of turn that are looked at, and values in which the board must differ from the first
_MOST_FEATURES, _MOST_CHANGES = 64, 2000  # of observations, and changes of turn that are compared
_SWAPPED = 0.5  # of how far two features are from themselves when the turn changes, a pair that swaps is from the other
# What is seen must be far from chance (standard deviations) and strong (correlation). Of azpy's games, 17 of
# OpenSpiel's and Kalah, 200 random games each with 4 seeds, the strongest reversal was 2.9 and 0.29 (November 2026).
_SURE, _STRONG = 4.0, 0.4
_LEAST_GAMES = 20  # that either player is last in
_IN_PLACE = 0.9  # of the values of a board that is shown from one side, so many stay as they are when the turn changes


class Perspective:
    """What was seen of all players, position by position."""

    def __init__(self, num_players: int = 2, *, zero_sum: bool = True) -> None:
        self._players, self._zero_sum = num_players, zero_sum
        self._span = math.inf, -math.inf  # of the outcomes for player 0
        # For each random game: the player who moved last (-1: unknown), and the only player with the most, if any.
        self._winners: list[tuple[int, int | None]] = []
        self._tried = set[int]()  # of two players with a zero sum those who won where lines of play were tried
        self._first: NDArray[np.float32] | None = None
        self._low: dict[int, NDArray[np.float32]] = {}  # by player
        self._high: dict[int, NDArray[np.float32]] = {}
        self._last: tuple[int, NDArray[np.float32]] | None = None
        self._in_place: list[float] = []
        self._changes: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        # Of each game: who moved last, the features then and at the end, the outcome.
        self._games: list[tuple[int, NDArray[np.float64], NDArray[np.float64] | None, float]] = []

    def watch(self, turn: int, array: NDArray[np.float32]) -> None:
        """Record the observation [C, H, W] of the next player's turn in a game."""
        if self._first is None:
            self._first = array
        self._low[turn] = np.minimum(self._low.get(turn, array), array)
        self._high[turn] = np.maximum(self._high.get(turn, array), array)
        if self._last is not None and self._last[0] != turn and len(self._changes) < _MOST_CHANGES:
            before = self._last[1]
            self._changes.append((_features(before), _features(array)))
            placed = before != self._first
            if placed.sum() >= _CELLS:
                self._in_place.append(float((before == array)[placed].mean()))
        self._last = turn, array

    def end(
        self,
        outcome: float | Sequence[float] | None,
        final: NDArray[np.float32] | None = None,
        *,
        at_random: bool = True,
    ) -> None:
        """Record the end of a game.

        Args:
            outcome: as `State.outcome` gives it; None if the end was not reached.
            final: the observation at the end, if there is one.
            at_random: the game was played at random. Short lines of play, tried in turn, may all be won by one player.
        """
        (mover, last), self._last = self._last or (-1, None), None
        each: Sequence[float]
        if isinstance(outcome, Sequence):
            each = outcome
        elif outcome is not None and self._players == 1:
            each = (outcome,)
        elif outcome is not None and self._zero_sum:
            each = outcome, -outcome
            if last is not None:
                self._games.append((mover, _features(last), None if final is None else _features(final), outcome))
        else:
            return
        self._span = min(self._span[0], each[0]), max(self._span[1], each[0])
        winner, *others = (player for player, own in enumerate(each) if own == max(each))
        if at_random:
            self._winners.append((mover, None if others else winner))
        elif self._zero_sum and not others:
            self._tried.add(winner)

    def warnings(self, *, shared: bool = False) -> list[Broken]:
        """What may be wrong. `shared`: one observation was met at either player's turn."""
        found = list[Broken]()
        if not shared and self._sees_one_side():
            got = "the board stays the same when the turn changes, and nothing else shows whose turn it is"
            found.append(Broken("one-view", got, "planes of the player to move first, or a plane that shows the turn"))
        games, wins = len(self._winners), Counter(winner for _, winner in self._winners if winner is not None)
        is_won = self._players > 1 and bool(wins or self._tried)
        if games >= _WINS and self._span[0] == self._span[1] and not is_won:
            got = f"all {games} random games paid player 0 {self._span[0]:g}"
            found.append(Broken("one-score", got, "games with different outcomes"))
        for player in range(self._players):
            if games >= _WINS and self._low and player not in self._low:
                got = f"player {player} never moved in {games} random games: turn gave only {sorted(self._low)}"
                found.append(Broken("one-player", got, "moves of all players"))
            if wins.total() >= _WINS * max(1, self._players - 1) and not wins[player] and player not in self._tried:
                did = "won" if self._zero_sum else "alone had the highest outcome in"
                others = ", ".join(f"player {other} {did} {number}" for other, number in sorted(wins.items()))
                got = f"player {player} {did} none of {games} random games; {others}"
                if self._zero_sum:
                    got += "; all outcomes for player 0 are from {:g} to {:g}".format(*self._span)
                found.append(Broken("one-sided", got, "games that each player wins"))
        sides = self._sides() if self._zero_sum else self._ends()
        return found if sides is None else [*found, sides]

    def _ends(self) -> Broken | None:
        """Return wins that go with the last move in one seat only. If the last mover always wins, both show it."""
        decided = [(last, winner) for last, winner in self._winners if winner is not None]
        ends = {seat: [winner == seat for last, winner in decided if last == seat] for seat in self._low}
        shares = {seat: sum(won) / len(won) for seat, won in ends.items() if len(won) >= _LEAST_GAMES}
        if not shares or min(shares.values()) > 0 or max(shares.values()) < 1:
            return None
        always, never = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
        got = f"player {always} had the highest outcome in all {len(ends[always])} decided random games that it ended, "
        got += f"and player {never} in none of {len(ends[never])}"
        return Broken("sides", got, "outcomes of player 0 first, whoever moved last")

    def _sees_one_side(self) -> bool:
        if len(self._in_place) < _CHANGES or len(self._low) < 2:
            return False
        shows_turn = [
            ((self._high[one] < self._low[other]) | (self._high[other] < self._low[one])).any()
            for one, other in combinations(self._low, 2)
        ]
        return not all(shows_turn) and float(np.median(self._in_place)) > _IN_PLACE

    def _sides(self) -> Broken | None:
        """The strongest sign that what a player has counts otherwise when the other player is last to move.

        Two features of an observation that swap when the turn changes are those of the two players. Their difference,
        for player 0, goes with the outcome for player 0 in one way, whether player 0 or player 1 ends the game. Where
        the two ways are opposite, the outcome is probably in the view of the player who moved last or would be next. A
        game that treats its players alike cannot show this without a mistake; others could. Features are the sums of
        planes, and the single values where there are few.
        """
        if self._first is None or len(self._first) > _MOST_FEATURES or len(self._changes) < _CHANGES:
            return None
        planes, pairs, found = len(self._first), self._pairs(), list[tuple[float, float, float, float, str]]()
        moved = [(mover, last, outcome) for mover, last, _, outcome in self._games]
        for what, games in (("an action", moved), ("what would be the turn", list(self._viewed(pairs)))):
            for one, other in pairs:
                rows: tuple[list[tuple[float, float]], ...] = [], []
                for player, features, outcome in games:
                    rows[player].append((float(features[one] - features[other]) * (1 - 2 * player), outcome))
                (sure, first), (other_sure, second) = map(_correlation, rows)
                ways = ["better" if correlation > 0 else "worse" for correlation in (first, second)]
                named = f"plane {one}" if one < planes else f"value {one - planes} of the observation"
                got = f"the more player 0 has of {named}, against player 1, the {ways[0]} its outcome is in "
                got += f"{len(rows[0])} random games that end with {what} of player 0 (correlation {first:+.2f}), and "
                got += f"the {ways[1]} in {len(rows[1])} with that of player 1 ({second:+.2f})"
                found.append((min(sure, other_sure), min(abs(first), abs(second)), first, second, got))
        sure, strong, first, second, got = max(found, default=(0.0, 0.0, 0.0, 0.0, ""))
        if sure < _SURE or strong < _STRONG or first * second > 0:
            return None
        return Broken("sides", got, "the same sign, as both outcomes are for player 0")

    def _pairs(self) -> list[tuple[int, int]]:
        """The features that swap when the turn changes; a feature and its negative are two."""
        before, after = (np.array(each) for each in zip(*self._changes, strict=True))
        apart = np.array([np.abs(before[:, [feature]] - after).mean(0) for feature in range(before.shape[1])])
        own: NDArray[np.float64] = apart.diagonal()
        swapped, kept = apart + apart.T, own + own[:, None]
        live = before.std(0) > 0
        swapped[~live] = swapped[:, ~live] = np.inf
        np.fill_diagonal(swapped, np.inf)
        nearest, found = swapped.argmin(1), list[tuple[int, int]]()
        for one, other in enumerate(nearest.tolist()):
            mutual = swapped[other].min() >= swapped[one, other]
            # Of each pair and the one of its negatives, one is enough.
            if mutual and one < min(other, len(nearest) // 2) and swapped[one, other] < _SWAPPED * kept[one, other]:
                found.append((one, other))
        return found

    def _viewed(self, pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, NDArray[np.float64], float]]:
        """The games by whose view their last observation is in: not always that of the player who did not move last."""
        columns, swapped = ([each for both in pairs for each in both[::step]] for step in (1, -1))
        for mover, last, end, outcome in self._games:
            if end is not None:
                stays, changes = (np.abs(last[columns] - end[view]).sum() for view in (columns, swapped))
                if stays != changes:
                    yield mover if stays < changes else 1 - mover, end, outcome


def _features(array: NDArray[np.float32]) -> NDArray[np.float64]:
    """Sums of planes [C], single values where there are few, and the negatives of all."""
    parts = [array.sum((1, 2), dtype=np.float64)]
    if len(array) < array.size <= _MOST_FEATURES:
        parts.append(array.ravel().astype(np.float64))
    features = np.concatenate(parts)
    return np.concatenate([features, -features])


def _correlation(rows: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """How many standard deviations a correlation of two columns is from 0 (Fisher's z), and the correlation."""
    if len(rows) < _LEAST_GAMES or not np.std(rows, 0).all():
        return 0.0, 0.0
    found = float(np.clip(np.asarray(np.corrcoef(np.array(rows).T))[0, 1], -0.999, 0.999))
    return abs(math.atanh(found)) * math.sqrt(len(rows) - 3), found
