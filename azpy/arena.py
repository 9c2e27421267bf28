"""Matches between players: paired random openings, both colours, all games in lock-step.

Each opening is played twice, with the players' seats exchanged and the same dice, so neither the opening nor the
luck of the first move favours anyone. Searches start from a fresh tree at every move. Knows nothing of training.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.errors import SettingsError
from azpy.positions import Position, is_terminal, turn_of

__all__ = ["MatchResult", "Player", "RandomPlayer", "SearchPlayer", "elo", "mcts", "play_match"]

_Z95 = 1.959964  # the 97.5 % point of the normal distribution
_OPENING_TRIES = 100


class Player(Protocol):
    """Anything that picks an action in each of many positions at once."""

    def select_actions(self, states: Sequence[Position], seed: int) -> Sequence[int] | NDArray[np.int64]:
        """One legal action a position; all positions are at a player's turn. Equal seeds give equal actions."""
        ...


class RandomPlayer:
    """Picks evenly among the legal actions."""

    def select_actions(self, states: Sequence[Position], seed: int) -> list[int]:
        """See `Player`."""
        rng = np.random.default_rng(seed)
        return [int(rng.choice(state.legal_actions())) for state in states]


class SearchPlayer:
    """Searches every position and plays the most visited action, without noise.

    Args:
        evaluator: anything with `evaluate_batch`, or one of azpy's own evaluators.
        simulations: a move.
        eval_batch: leaves of one tree in a call; with many games in lock-step, 1 fills a batch and plays best.
        c_puct: weight of the prior.
        fpu: value of an action not yet visited; see `Search`.
        threads: of the search; all cores if not given.
    """

    def __init__(
        self,
        evaluator: Any,
        simulations: int,
        *,
        eval_batch: int = 1,
        c_puct: float = 1.5,
        fpu: str | float = "zero",
        threads: int | None = None,
    ) -> None:
        if simulations < 1:
            raise SettingsError(f"simulations must be at least 1, got {simulations}")
        self._evaluator = evaluator
        self._simulations = simulations
        self._options: dict[str, Any] = {"eval_batch": eval_batch, "c_puct": c_puct, "fpu": fpu, "threads": threads}

    def select_actions(self, states: Sequence[Position], seed: int) -> NDArray[np.int64]:
        """See `Player`."""
        search = _core.VectorSearch(states, self._evaluator_for(seed), seed=seed, **self._options)
        search.run(self._simulations)
        return search.select_actions(0.0)

    def _evaluator_for(self, seed: int) -> Any:
        """What answers a move's leaves; players whose evaluator is random make a new one."""
        return self._evaluator


class _RolloutPlayer(SearchPlayer):
    def _evaluator_for(self, seed: int) -> Any:
        return _core.RolloutEvaluator(seed)


def mcts(simulations: int, c_puct: float = 1.5, threads: int | None = None) -> SearchPlayer:
    """Plain Monte Carlo tree search: even priors, and one random rollout for a leaf's value."""
    return _RolloutPlayer(None, simulations, c_puct=c_puct, threads=threads)


@dataclass(frozen=True)
class MatchResult:
    """What player A scored against player B.

    Attributes:
        wins: games A won.
        draws: games drawn.
        losses: games A lost.
        first: (wins, draws, losses) of the games in which A had seat 0.
    """

    wins: int
    draws: int
    losses: int
    first: tuple[int, int, int]

    @property
    def games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """A's share of the points in [0, 1]; a draw is half a point."""
        return (self.wins + 0.5 * self.draws) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the score (Wilson's, which treats a draw as half a win and so is a little wide)."""
        n, p = self.games, self.score
        centre = (p + _Z95**2 / (2 * n)) / (1 + _Z95**2 / n)
        half = _Z95 / (1 + _Z95**2 / n) * math.sqrt(p * (1 - p) / n + _Z95**2 / (4 * n * n))
        return max(0.0, centre - half), min(1.0, centre + half)

    @property
    def elo(self) -> float:
        """A's Elo minus B's; a clean sweep counts as half a point less, so that it stays finite."""
        return elo(min(max(self.score, 0.5 / self.games), 1 - 0.5 / self.games))

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.score:.3f} [{low:.3f}, {high:.3f}] (+{self.wins} ={self.draws} -{self.losses})"


def elo(score: float) -> float:
    """Elo difference at which the logistic model expects `score`.

    Example:
        >>> round(elo(0.75))
        191
    """
    return -400.0 * math.log10(1.0 / score - 1.0)


def play_match(
    game_factory: Callable[[], Position],
    player_a: Player,
    player_b: Player,
    games: int,
    seed: int = 0,
    opening_plies: int = 4,
) -> MatchResult:
    """Plays `games` games, half with A in seat 0.

    Args:
        game_factory: makes a start position.
        player_a: whose score is counted.
        player_b: the opponent.
        games: an even number.
        seed: fixes openings, dice and players.
        opening_plies: random actions at the start of each pair of games, dice not counted; fewer where so many end
            the game.

    Raises:
        SettingsError: an odd number of games, or a game that is over before it begins.
    """
    if games < 2 or games % 2:
        raise SettingsError(f"a match has an even number of games, got {games}")
    boards = [board for pair in range(games // 2) for board in _pair(game_factory, seed, pair, opening_plies)]
    ply = 0
    while live := [board for board in boards if not is_terminal(board.state)]:
        for seat, player in enumerate((player_a, player_b)):
            due = [board for board in live if turn_of(board.state) == (seat ^ board.swapped)]
            if due:
                actions = player.select_actions([board.state for board in due], _mix(seed, 2, ply, seat))
                for board, action in zip(due, actions, strict=True):
                    board.play(int(action))
        ply += 1
    points = [board.state.outcome() * (-1 if board.swapped else 1) for board in boards]
    return MatchResult(*_count(points), first=_count(points[0::2]))


class _Board:
    """One game: its position, whether A has seat 1, and its own dice."""

    def __init__(self, state: Position, swapped: int, dice: np.random.Generator) -> None:
        self.state = state
        self.swapped = swapped
        self._dice = dice
        self._roll()

    def play(self, action: int) -> None:
        self.state.play(action)
        self._roll()

    def _roll(self) -> None:
        while turn_of(self.state) == _core.CHANCE:
            outcomes, weights = zip(*self.state.chance_outcomes(), strict=True)
            probabilities = np.asarray(weights, np.float64)
            self.state.play(int(self._dice.choice(outcomes, p=probabilities / probabilities.sum())))


def _pair(game_factory: Callable[[], Position], seed: int, pair: int, plies: int) -> list[_Board]:
    """Two boards with the same opening and the same dice to come, A in seat 0 and in seat 1.

    Where no opening of `plies` leaves anything to play, those of half as many are tried.
    """
    for attempt in range(_OPENING_TRIES):
        rng = np.random.default_rng(_mix(seed, 0, pair, attempt))
        board = _Board(game_factory(), 0, rng)
        for _ in range(plies):
            if not is_terminal(board.state):
                board.play(int(rng.choice(board.state.legal_actions())))
        if not is_terminal(board.state):
            dice = _mix(seed, 1, pair, 0)
            return [_Board(board.state.clone(), swapped, np.random.default_rng(dice)) for swapped in (0, 1)]
    if plies:
        return _pair(game_factory, seed, pair, plies // 2)
    raise SettingsError("the game is over before it begins: there is nothing to play a match of")


def _mix(*keys: int) -> int:
    """A 63-bit seed for a stream of its own."""
    return int(np.random.SeedSequence(keys).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _count(points: Sequence[float]) -> tuple[int, int, int]:
    values = np.asarray(points)
    return int((values > 0).sum()), int((values == 0).sum()), int((values < 0).sum())
