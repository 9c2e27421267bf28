"""Matches between players: paired openings, both colours, many games in lock-step.

Each opening is played twice, with the players' seats exchanged and the same dice, so neither player is favoured. Every
move is searched with a fresh tree. Where both players search alike, all their trees share the rounds of one search.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.errors import SettingsError
from azpy.game import Game
from azpy.games.lines import roll
from azpy.matches.openings import Book, Opening, draw_at_random, mix
from azpy.matches.ratings import PAIR_SCORES, elo, pair_interval
from azpy.settings.run import checked

__all__ = ["MatchResult", "Pair", "Player", "RandomPlayer", "SearchPlayer", "mcts", "play_match", "play_pairs"]

_SLOTS = 128  # games in play: 64 rows a network, at which ONNX Runtime's CPU provider is at full speed
_FIRST_PAIRS = 4  # of a match that may run out of time
_SAFETY = 0.7  # of the time that is left, for the next group: what is cut off is lost


class Player(Protocol):
    """Anything that picks an action in each of many positions at once."""

    def select_actions(self, states: Sequence[_core.State], seed: int) -> Sequence[int] | NDArray[np.int64]:
        """One legal action a position; all positions are at a player's turn. Equal seeds give equal actions."""
        ...


class RandomPlayer:
    """Picks evenly among the legal actions."""

    def select_actions(self, states: Sequence[_core.State], seed: int) -> list[int]:
        """See `Player`."""
        rng = np.random.default_rng(seed)
        return [draw_at_random(state, rng) for state in states]


class SearchPlayer:
    """Searches every position with `simulations` and plays the most visited action, without noise.

    `evaluator` is anything with `evaluate_batch`, or one of azpy's own; None means one random rollout a leaf. Of the
    options of `Search`, `eval_batch` is 1 by default: many games in lock-step fill a batch, and 1 plays best.
    """

    def __init__(self, evaluator: Any, simulations: int, **options: Any) -> None:
        self._evaluator, self._simulations = evaluator, checked("simulations", simulations)
        self._options: dict[str, Any] = {"eval_batch": 1, "threads": None} | options

    def select_actions(self, states: Sequence[_core.State], seed: int) -> NDArray[np.int64]:
        """See `Player`."""
        return self.select_with(self, states, [0] * len(states), seed)

    def searches_like(self, other: "SearchPlayer") -> bool:
        """Whether the two differ in their evaluators alone, so that their trees can grow in one search."""
        return (self._simulations, self._options) == (other._simulations, other._options)

    def select_with(
        self, other: "SearchPlayer", states: Sequence[_core.State], movers: Sequence[int], seed: int
    ) -> NDArray[np.int64]:
        """Actions [B] of this player and of one that searches alike, in one search of positions [B].

        Each evaluator is called once a round. `movers` [B] says which player moves: 0 for this one, 1 for the other.
        """
        evaluators = [
            _core.RolloutEvaluator(mix(seed, index)) if player._evaluator is None else player._evaluator
            for index, player in enumerate((self, other))
        ]
        search = _core.VectorSearch(states, evaluators, networks=movers, seed=seed, **self._options)
        search.run(self._simulations)
        return search.select_actions(0.0)


def mcts(simulations: int, c_puct: float = 1.5, **options: Any) -> SearchPlayer:
    """Plain Monte Carlo tree search: even priors, and one random rollout for a leaf's value; options as of `Search`."""
    return SearchPlayer(None, simulations, c_puct=c_puct, **options)


@dataclass(frozen=True)
class Pair:
    """Two games of one opening."""

    points: tuple[float, float]  # of player A in seat 0, and in seat 1; each 1, 0.5 or 0
    actions: tuple[tuple[int, ...], tuple[int, ...]]  # of each game, the opening and the dice included

    @property
    def score(self) -> float:
        """A's share of the pair's two points, one of `ratings.PAIR_SCORES`."""
        return sum(self.points) / 2


@dataclass(frozen=True)
class MatchResult:
    """What player A scored against player B."""

    wins: int
    draws: int
    losses: int
    first: tuple[int, int, int]  # wins, draws and losses of the games in which A had seat 0
    pairs: tuple[int, ...]  # how many pairs had each of `ratings.PAIR_SCORES`
    distinct: int  # different games, by their actions
    repeated: int  # pairs that repeat an earlier one, action for action: the interval is narrower than it should be

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "MatchResult":
        """The result of one pair at least."""
        scores = [pair.score for pair in pairs]
        return cls(
            *_count([points for pair in pairs for points in pair.points]),
            first=_count([pair.points[0] for pair in pairs]),
            pairs=tuple(scores.count(score) for score in PAIR_SCORES),
            distinct=len({actions for pair in pairs for actions in pair.actions}),
            repeated=len(pairs) - len({pair.actions for pair in pairs}),
        )

    @property
    def games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses

    @property
    def second(self) -> tuple[int, int, int]:
        """(wins, draws, losses) of the games in which A had seat 1."""
        wins, draws, losses = self.first
        return self.wins - wins, self.draws - draws, self.losses - losses

    @property
    def score(self) -> float:
        """A's share of the points in [0, 1]; a draw is half a point."""
        return (self.wins + 0.5 * self.draws) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the score, from the pairs."""
        return pair_interval(self.pairs)

    @property
    def elo(self) -> float:
        """A's Elo minus B's; a clean sweep counts as half a point less, so that it stays finite."""
        return elo(min(max(self.score, 0.5 / self.games), 1 - 0.5 / self.games))

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95 % interval of A's Elo minus B's; infinite on the side of a clean sweep."""
        low, high = self.interval
        return elo(low), elo(high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.score:.3f} [{low:.3f}, {high:.3f}] (+{self.wins} ={self.draws} -{self.losses})"


def play_match(
    game_factory: Callable[[], _core.State | Game],
    player_a: Player,
    player_b: Player,
    games: int,
    seed: int = 0,
    opening_plies: int = 4,
    seconds_left: Callable[[], float] = lambda: math.inf,
) -> MatchResult | None:
    """Plays an even number of games, half with A in seat 0, from random openings; fewer if time runs out.

    Where time is limited, pairs are played in groups. The time of one group decides the size of the next one. A group
    that time cuts off does not count at all: counting its finished games alone would favour short games.

    `game_factory` makes a start position, `seed` fixes openings, dice and players, and each pair of games begins with
    `opening_plies` random actions (see `Book`). `seconds_left` is the time left for the match. It is asked before every
    ply; 0 or less ends the match.

    Returns:
        A's result in the games that count; None if there are none.

    Raises:
        SettingsError: an odd number of games, or a game that is over before it begins.
    """
    if games < 2 or games % 2:
        raise SettingsError(f"a match has an even number of games, got {games}")
    book = Book(game_factory, opening_plies, seed)
    pairs = list[Pair]()
    group = games // 2 if math.isinf(seconds_left()) else _FIRST_PAIRS
    while (begin := seconds_left()) > 0 and (group := min(group, games // 2 - len(pairs))) > 0:
        options: dict[str, Any] = {"first": len(pairs), "may_go_on": lambda: seconds_left() > 0}
        group_seed = mix(seed, len(pairs)) if pairs else seed
        played = list(play_pairs(book, player_a, player_b, group, group_seed, **options))
        if len(played) < group:
            break
        pairs += played
        if math.isfinite(left := seconds_left()):
            group = min(len(pairs), int(_SAFETY * left * group / max(begin - left, 1e-9)))
    return MatchResult.of(pairs) if pairs else None


def play_pairs(
    book: Book,
    player_a: Player,
    player_b: Player,
    pairs: int,
    seed: int,
    slots: int = _SLOTS,
    *,
    first: int = 0,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Iterator[Pair]:
    """Plays pairs of games, as many at a time as there are slots.

    Pair n begins with `book[first + n]`; `seed` fixes dice and players. The games depend on `slots`, the number of
    games in play at a time, only where a player is random. `may_go_on` is asked before every ply; False ends the match
    at once.

    Yields:
        Pairs in the order of their openings, so stopping early does not favour short games. The points are A's.
    """
    players = (player_a, player_b)
    waiting: deque[tuple[_Board, _Board]] = deque()
    begun = step = 0
    while (begun < pairs or waiting) and may_go_on():
        live = [board for pair in waiting for board in pair if not board.state.is_terminal]
        while begun < pairs and (len(live) + 2 <= slots or not live):
            opening, dice = book[first + begun], mix(seed, 1, begun)
            waiting.append((_Board(opening, 0, dice), _Board(opening, 1, dice)))
            live += waiting[-1]
            begun += 1
        movers = [board.state.turn ^ board.swapped for board in live]
        actions = _select(players, [board.state for board in live], movers, mix(seed, 2, step))
        for board, action in zip(live, actions, strict=True):
            board.play(int(action))
        step += 1
        while waiting and all(board.state.is_terminal for board in waiting[0]):
            one, other = waiting.popleft()
            yield Pair((one.points(), other.points()), (tuple(one.actions), tuple(other.actions)))


def _select(
    players: tuple[Player, Player], states: Sequence[_core.State], movers: Sequence[int], seed: int
) -> NDArray[np.int64]:
    """The action of `players[movers[i]]` in each position i."""
    first, second = players
    if isinstance(first, SearchPlayer) and isinstance(second, SearchPlayer) and first.searches_like(second):
        return first.select_with(second, states, movers, seed)
    actions = np.empty(len(states), np.int64)
    for index, player in enumerate(players):
        due = [i for i, mover in enumerate(movers) if mover == index]
        if due:
            actions[due] = player.select_actions([states[i] for i in due], mix(seed, index))
    return actions


class _Board:
    """One game: its position, whether A has seat 1, its own dice, and what was played."""

    def __init__(self, opening: Opening, swapped: int, dice: int) -> None:
        self.state, self.actions = opening.position.clone(), list(opening.actions)
        self.swapped, self._dice = swapped, np.random.default_rng(dice)

    def play(self, action: int) -> None:
        self.state.play(action)
        self.actions += [action, *roll(self.state, self._dice)]

    def points(self) -> float:
        """Player A's."""
        outcome = self.state.outcome() * (-1 if self.swapped else 1)
        return 1.0 if outcome > 0 else 0.0 if outcome < 0 else 0.5


def _count(points: Sequence[float]) -> tuple[int, int, int]:
    return points.count(1.0), points.count(0.5), points.count(0.0)
