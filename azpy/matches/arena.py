"""Matches between players: paired openings, both colors, many games in lock-step.

Each opening is played twice, with the players' seats exchanged and the same dice, so neither player is favoured. Every
move is searched with a fresh tree. Another program follows each game from its start, and loses the game where it breaks
the rules.
"""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.games.lines import roll
from azpy.matches.openings import Book, Opening, draw_at_random, mix
from azpy.matches.results import Fault, MatchResult, Pair
from azpy.settings.run import checked

MATCH_SLOTS = 128  # games in play: 64 rows a network, at which ONNX Runtime's CPU provider is at full speed
_FIRST_PAIRS = 4  # of a match that may run out of time
_SAFETY = 0.7  # of the time that is left, for the next group: what is cut off is lost


Answer = int | Fault | None  # an action, or the reason that a game is lost: None says that the player resigns


class Player(Protocol):
    """Anything that picks an action in each of many positions at once."""

    def select_actions(self, states: Sequence[_core.State], seed: int) -> Sequence[int] | NDArray[np.int64]:
        """One legal action a position; all positions are at a player's turn. Equal seeds give equal actions."""
        ...


class Follower(ABC):
    """A player that follows each game from its start, as another program does."""

    @abstractmethod
    def follow(self, games: Sequence["Board"]) -> Sequence[Answer]:
        """One answer a game; all games are at this player's turn. Actions are legal."""

    @abstractmethod
    def leave(self, game: "Board") -> Fault | None:
        """Hears that a game is over, which it may have never seen; says what was wrong with it, if anything."""

    @abstractmethod
    def close(self) -> None:
        """Ends what runs for it. It may play on after that."""


class RandomPlayer:
    """Picks evenly among the legal actions."""

    def select_actions(self, states: Sequence[_core.State], seed: int) -> list[int]:
        """See `Player`."""
        rng = np.random.default_rng(seed)
        return [draw_at_random(state, rng) for state in states]


class SearchPlayer:
    """Searches every position with `simulations` and plays the most visited action, without noise.

    With a `temperature` T above 0 it draws actions, see `softened`, so it plays weaker ones too.
    `evaluator` is anything with `evaluate_batch`, or one of azpy's own; None means one random rollout a leaf. Of the
    options of `Search`, `eval_batch` is 1 by default: many games in lock-step fill a batch, and 1 plays best.
    """

    def __init__(self, evaluator: Any, simulations: int, temperature: float = 0.0, **options: Any) -> None:
        self.evaluator, self._simulations = evaluator, checked("simulations", simulations)
        self._temperature = temperature
        self.options: dict[str, Any] = {"eval_batch": 1, "threads": None} | options

    def select_actions(self, states: Sequence[_core.State], seed: int) -> NDArray[np.int64]:
        """See `Player`."""
        evaluator = _core.RolloutEvaluator(seed) if self.evaluator is None else self.evaluator
        search = _core.VectorSearch(states, evaluator, seed=seed, **self.options)
        search.run(self._simulations)
        if self._temperature == 0 or self._simulations > 1:
            return search.select_actions(self._temperature)
        rng = np.random.default_rng(seed)
        policies = [softened(result, self._temperature) for result in search.results()]
        return np.array([rng.choice(len(policy), p=policy) for policy in policies])


def softened(result: _core.SearchResult, temperature: float) -> NDArray[np.float64]:
    """Probabilities [A] of the actions at a temperature T: their visits to the power 1/T, with the sum 1.

    A search of one simulation says nothing but what the network says: above 0 the prior takes the place of the visits.
    """
    if temperature == 0 or result.visits.sum() > 1:
        policy = result.policy(temperature).astype(np.float64)
    else:
        policy = np.zeros(len(result.policy()))
        policy[result.actions] = result.priors.astype(np.float64) ** (1 / temperature)
    return np.asarray(policy / policy.sum())


def mcts(simulations: int, c_puct: float = 1.5, **options: Any) -> SearchPlayer:
    """Plain Monte Carlo tree search: even priors, and one random rollout for a leaf's value; options as of `Search`."""
    return SearchPlayer(None, simulations, c_puct=c_puct, **options)


def play_match(
    book: Book,
    player_a: Player | Follower,
    player_b: Player | Follower,
    games: int,
    seed: int,
    seconds_left: Callable[[], float] = lambda: math.inf,
) -> MatchResult | None:
    """Plays an even number of games, half with A in seat 0; fewer if time runs out.

    Pairs are played in groups. The time of one group decides the size of the next one. A group that time cuts off does
    not count at all: counting its finished games alone would favour short games.

    `seed` fixes dice and players. `seconds_left` is the time left for the match. It is asked before every ply; 0 or
    less ends the match.

    Returns:
        A's result in the games that count; None if there are none.

    Raises:
        SettingsError: a game that is over before it begins.
    """
    pairs = list[Pair]()
    group = games // 2 if math.isinf(seconds_left()) else _FIRST_PAIRS
    while (begin := seconds_left()) > 0 and (group := min(group, games // 2 - len(pairs))) > 0:
        group_seed, first = mix(seed, len(pairs)) if pairs else seed, len(pairs)
        played = list(
            play_pairs(book, player_a, player_b, group, group_seed, first=first, may_go_on=lambda: seconds_left() > 0)
        )
        if len(played) < group:
            break
        pairs += played
        if math.isfinite(left := seconds_left()):
            group = min(len(pairs), int(_SAFETY * left * group / max(begin - left, 1e-9)))
    return MatchResult.of(pairs) if pairs else None


def play_pairs(
    book: Book,
    player_a: Player | Follower,
    player_b: Player | Follower,
    pairs: int,
    seed: int,
    slots: int = MATCH_SLOTS,
    *,
    first: int = 0,
    may_go_on: Callable[[], bool] = lambda: True,
    ended: Callable[[Sequence["Board"]], object] = lambda boards: None,
) -> Generator[Pair, None, None]:
    """Plays pairs of games, as many at a time as there are slots.

    Pair n begins with `book[first + n]`; `seed` fixes dice and players. The games depend on `slots`, the number of
    games in play at a time, only where a player is random or another program. `may_go_on` is asked before every ply;
    False ends the match at once. `ended` hears of games as soon as they are over, those of one ply at a time: some of
    them are not yielded if the match is stopped.

    Yields:
        Pairs in the order of their openings, so stopping early does not favour short games. The points are A's.
    """
    players = (player_a, player_b)
    waiting: deque[tuple[Board, Board]] = deque()
    begun = step = 0
    try:
        while (begun < pairs or waiting) and may_go_on():
            live = [board for pair in waiting for board in pair if not board.is_over]
            while begun < pairs and (len(live) + 2 <= slots or not live):
                opening, dice = book[first + begun], mix(seed, 1, begun)
                waiting.append((Board(2 * begun, opening, 0, dice), Board(2 * begun + 1, opening, 1, dice)))
                live += waiting[-1]
                begun += 1
            for board, answer in zip(live, _select(players, live, mix(seed, 2, step)), strict=True):
                board.answer(answer)
            over = [board for board in live if board.is_over]
            try:
                for board in over:
                    _leave(players, board)
            finally:  # also where Ctrl-C came while a program was asked
                if over:
                    ended(over)
            step += 1
            while waiting and all(board.is_over for board in waiting[0]):
                yield _pair(*waiting.popleft())
    finally:
        for player in players:
            if isinstance(player, Follower):
                player.close()


def _select(players: tuple[Player | Follower, Player | Follower], boards: Sequence["Board"], seed: int) -> list[Answer]:
    """What the player to move says on each board."""
    answers: list[Answer] = [None] * len(boards)
    for index, player in enumerate(players):
        due = [i for i, board in enumerate(boards) if board.mover == index]
        if not due:
            continue
        if isinstance(player, Follower):
            chosen = player.follow([boards[i] for i in due])
        else:
            states = [boards[i].state for i in due]
            chosen = [int(action) for action in player.select_actions(states, mix(seed, index))]
        for i, answer in zip(due, chosen, strict=True):
            answers[i] = answer
    return answers


def _leave(players: tuple[Player | Follower, Player | Follower], board: "Board") -> None:
    for index, player in enumerate(players):
        if isinstance(player, Follower) and (fault := player.leave(board)) is not None:
            board.faults[index].append(fault)


def _pair(one: "Board", other: "Board") -> Pair:
    a, b = (tuple(one.faults[index] + other.faults[index]) for index in (0, 1))
    return Pair((one.outcome(), other.outcome()), (tuple(one.actions), tuple(other.actions)), (a, b), one.start.key())


class Board:
    """One game: its position, and what was played.

    Attributes:
        number: of the game in its match.
        start: where the game begins: the usual start, or a position that a book sets up. Only look at it.
        opening: how many of the actions are of the opening.
        swapped: 1 where player A has seat 1, else 0.
        state: the position; only look at it.
        actions: from `start` on, the opening and the dice included.
        faults: of player A, and of player B.
        loser: the player that lost otherwise than by the rules, 0 for A and 1 for B; None for none.
    """

    def __init__(self, number: int, opening: Opening, swapped: int, dice: int) -> None:
        self.number, self.start, self.opening = number, opening.start, len(opening.actions)
        self.state, self.actions = opening.position.clone(), list(opening.actions)
        self.faults: tuple[list[Fault], list[Fault]] = ([], [])
        self.swapped, self._dice = swapped, np.random.default_rng(dice)
        self.loser: int | None = None

    @property
    def mover(self) -> int:
        """The player whose turn it is: 0 for A, 1 for B."""
        return self.state.turn ^ self.swapped

    @property
    def is_over(self) -> bool:
        """Whether the game is over, by its rules or because a player lost it otherwise."""
        return self.loser is not None or self.state.is_terminal

    def answer(self, answer: Answer) -> None:
        """Plays what the player to move answers, and rolls the dice; or ends the game."""
        if isinstance(answer, int):
            self.state.play(answer)
            self.actions += [answer, *roll(self.state, self._dice)]
            return
        self.loser = self.mover
        if answer is not None:
            self.faults[self.loser].append(answer)

    def outcome(self) -> float:
        """Player A's, of a game that is over, in [-1, 1]; -1 or 1 if a player lost it otherwise than by its rules."""
        if self.loser is not None:
            return 2.0 * self.loser - 1.0
        return float(self.state.outcome()) * (-1 if self.swapped else 1)
