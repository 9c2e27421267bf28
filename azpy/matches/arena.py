"""Matches between players: each opening from every seat, many games in lock-step.

The games of one opening, a round, have the same dice and deals. In a game of two players a round is a pair: the
players exchange their seats. With more players, A has each seat once, and copies of B have the others. In a game of one
player each plays alone. So no player is favoured. Every move is searched with a fresh tree. Another program follows
each game from its start, and loses the game where it breaks the rules.
"""

import math
import operator
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.errors import SettingsError
from azpy.game import players_of
from azpy.games.lines import roll
from azpy.matches.openings import Book, Opening, draw_at_random, mix
from azpy.matches.results import Fault, MatchResult, Round
from azpy.settings.run import checked

MATCH_SLOTS = 128  # games in play: 64 rows a network, at which ONNX Runtime's CPU provider is at full speed
_FIRST_GAMES = 8  # of a match that may run out of time
_SAFETY = 0.7  # share of the time left for the next group; a group that is cut off is lost


Answer = int | Fault | None  # an action, or why the game is lost; None: the player resigns


class Player(Protocol):
    """Anything that picks an action in each of many positions at once."""

    def select_actions(self, states: Sequence[_core.State], seed: int) -> Sequence[int] | NDArray[np.int64]:
        """Return a legal action for each position, the same ones for equal seeds.

        A player has the turn in all of them. The positions are copies, which may be played on.
        """
        ...


class Follower(ABC):
    """A player that follows each game from its start, as another program does."""

    @abstractmethod
    def follow(self, games: Sequence["Board"]) -> Sequence[Answer]:
        """Return one answer per game. This player has the turn in all of them. Actions are legal."""

    @abstractmethod
    def leave(self, game: "Board") -> Fault | None:
        """Take note that a game is over, perhaps one it never saw; return what was wrong with it, if anything."""

    @abstractmethod
    def close(self) -> None:
        """End what runs for it. It may play on after that."""


class RandomPlayer:
    """Picks evenly among the legal actions."""

    def select_actions(self, states: Sequence[_core.State], seed: int) -> list[int]:
        """See `Player`."""
        rng = np.random.default_rng(seed)
        return [draw_at_random(state, rng) for state in states]


class SearchPlayer:
    """Searches every position with `simulations` and plays the most visited action, without noise.

    With a `temperature` T above 0 it draws the action, so it sometimes plays weaker ones. The probability of an action
    is proportional to its visits to the power 1/T. With one simulation the priors replace the visits. An action that
    the search saw to win at once, as with `solver` and `lookahead`, is always played.
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
        if self._temperature == 0:
            return search.select_actions(0)
        rng = np.random.default_rng(seed)
        policies = [result._softened(self._temperature) for result in search.results()]
        return np.array([rng.choice(len(policy), p=policy) for policy in policies])


def mcts(simulations: int, c_puct: float = 1.5, **options: Any) -> SearchPlayer:
    """Plain Monte Carlo tree search: even priors, and one random rollout for a leaf's value; options as of `Search`."""
    return SearchPlayer(None, simulations, c_puct=c_puct, **options)


def games_of(start: _core.State, games: int | None, usual: int) -> int:
    """The games of player A in a match: as many as the user wants, else `usual` or a few more.

    Raises:
        SettingsError: a number that does not give each seat as many games.
    """
    seats = start.num_players
    if games is None:
        return -(-usual // seats) * seats
    if games < 1 or games % seats:
        how = "an even number" if seats == 2 else f"a multiple of {seats}" if seats > 2 else "at least 1"
        why = {1: "", 2: ": each opening is played twice"}.get(seats, ": each opening is played from each seat")
        raise SettingsError(f"games must be {how}, got {games}{why}")
    return games


def refuse_programs(start: _core.State) -> None:
    """Raise a `SettingsError` if other programs cannot play this game."""
    if start.hides:
        raise SettingsError(f"other programs cannot play {start.game}: the protocols would show what the game hides")
    if not start.zero_sum:
        raise SettingsError(
            f"other programs can only play zero-sum games of two players, and {start.game} has {players_of(start)}: "
            "gtp, uci and ugi only have wins, draws and losses"
        )


def play_match(
    book: Book,
    player_a: Player | Follower,
    player_b: Player | Follower,
    games: int,
    seed: int,
    seconds_left: Callable[[], float] = lambda: math.inf,
) -> MatchResult | None:
    """Play so many games of A or a few more, as many in each seat; fewer if time runs out.

    Rounds are played in groups. The time of one group decides the size of the next one. A group that time cuts off does
    not count at all: counting its finished games alone would favour short games.

    `seed` fixes dice and players. `seconds_left` is the time left for the match. It is asked before every ply; 0 or
    less ends the match.

    Returns:
        A's result in the games that count; None if there are none.

    Raises:
        SettingsError: a game that is over before it begins, or that a player cannot play.
    """
    players, rounds, seats = (player_a, player_b), list[Round](), book.start.num_players
    wanted = -(-games // seats)
    group = wanted if math.isinf(seconds_left()) else max(1, _FIRST_GAMES // seats)
    while (begin := seconds_left()) > 0 and (group := min(group, wanted - len(rounds))) > 0:
        group_seed, first = mix(seed, len(rounds)) if rounds else seed, len(rounds)
        played = list(play_rounds(book, players, group, group_seed, first=first, may_go_on=lambda: seconds_left() > 0))
        if len(played) < group:
            break
        rounds += played
        if math.isfinite(left := seconds_left()):
            group = min(len(rounds), int(_SAFETY * left * group / max(begin - left, 1e-9)))
    return MatchResult(tuple(rounds), book.start.zero_sum) if rounds else None


def play_rounds(
    book: Book,
    players: Sequence[Player | Follower],
    rounds: int,
    seed: int,
    slots: int = MATCH_SLOTS,
    *,
    first: int = 0,
    may_go_on: Callable[[], bool] = lambda: True,
    ended: Callable[[Sequence["Board"]], object] = lambda boards: None,
) -> Generator[Round, None, None]:
    """Play rounds of games, as many games at a time as there are slots.

    Round n begins with `book[first + n]`; `seed` fixes dice and players. The games depend on `slots`, the number of
    games in play at a time, only where a player is random or another program, or the game hides something. `may_go_on`
    is asked before every ply; False ends the match at once. `ended` hears of games as soon as they are over, those of
    one ply at a time: some of them are not yielded if the match is stopped. `players` are A and B; in a game of one
    player any number.

    Yields:
        Rounds in the order of their openings, so stopping early does not favour short games. The points are A's.

    Raises:
        SettingsError: as for `play_match`.
    """
    if any(isinstance(player, Follower) for player in players):
        refuse_programs(book.start)
    seatings = _seatings(len(players), book.start.num_players)
    waiting: deque[list[Board]] = deque()
    begun = step = 0
    try:
        while (begun < rounds or waiting) and may_go_on():
            live = [board for boards in waiting for board in boards if not board.is_over]
            while begun < rounds and (len(live) + len(seatings) <= slots or not live):
                opening, dice, number = book[first + begun], mix(seed, 1, begun), begun * len(seatings)
                waiting.append([Board(number + game, opening, seats, dice) for game, seats in enumerate(seatings)])
                live += waiting[-1]
                begun += 1
            for board, answer in zip(live, _select(players, live, mix(seed, 2, step)), strict=True):
                board.answer(answer)
            over = [board for board in live if board.is_over]
            try:
                for board, (index, player) in product(over, enumerate(players)):
                    if isinstance(player, Follower) and (fault := player.leave(board)) is not None:
                        board.faults[index].append(fault)
            finally:  # also after Ctrl-C during a program's move
                if over:
                    ended(over)
            step += 1
            while waiting and all(board.is_over for board in waiting[0]):
                yield _round(waiting.popleft(), len(players))
    finally:
        for player in players:
            if isinstance(player, Follower):
                player.close()


def _seatings(players: int, seats: int) -> list[tuple[int, ...]]:
    """Who has each seat in each game of a round, as numbers of players: A is 0, and B is 1."""
    if seats == 1:
        return [(player,) for player in range(players)]
    return [tuple(int(seat != own) for seat in range(seats)) for own in range(seats)]


def _select(players: Sequence[Player | Follower], boards: Sequence["Board"], seed: int) -> list[Answer]:
    """The answer of the player to move on each board."""
    answers: list[Answer] = [None] * len(boards)
    for index, player in enumerate(players):
        due = [i for i, board in enumerate(boards) if board.mover == index]
        if not due:
            continue
        if isinstance(player, Follower):
            chosen = player.follow([boards[i] for i in due])
        else:
            states = [boards[i].state for i in due]
            own = type(player) in (RandomPlayer, SearchPlayer)
            # A user's player may change the states it gets, so pass copies.
            given = states if own else [state.clone() for state in states]
            answered = player.select_actions(given, mix(seed, index))
            chosen = _core.listed(answered) if own else _actions(answered, states, "ABCDEFGH"[index % 8])
        for i, answer in zip(due, chosen, strict=True):
            answers[i] = answer
    return answers


def _actions(answers: Any, states: Sequence[_core.State], name: str) -> list[int]:
    """Check what the player with this name answers to the positions, and return the actions."""
    wanted = f"player {name}: select_actions must return a legal action for each of {len(states)} states"
    try:
        actions = list(answers) if isinstance(answers, Iterator) else _core.listed(answers)
    except TypeError:
        raise SettingsError(f"{wanted}, got {answers!r:.80}") from None
    if len(actions) != len(states):
        raise SettingsError(f"{wanted}, got {len(actions)} actions")
    for place, action in enumerate(actions):
        try:
            if isinstance(action, bool | np.bool_):  # a bool is an int in Python
                raise TypeError
            actions[place] = operator.index(action)
        except TypeError:
            raise SettingsError(f"{wanted}, got {action!r:.80}, which is not a whole number") from None
    for action, state in zip(actions, states, strict=True):
        if action not in (legal := state.legal_actions()):
            raise SettingsError(f"{wanted}, got {action!r:.80} where the legal actions are {legal!r:.200}")
    return actions


def _round(boards: Sequence["Board"], players: int) -> Round:
    """The results of the games of one opening."""
    each = [board.outcomes() for board in boards]
    if len(each[0]) == 1:
        outcomes = [tuple(score for (score,) in each)]
    else:
        outcomes = [(row[seat], *row[:seat], *row[seat + 1 :]) for seat, row in enumerate(each)]
    faults = [tuple(fault for board in boards for fault in board.faults[player]) for player in range(players)]
    actions = tuple(tuple(board.actions) for board in boards)
    return Round(tuple(outcomes), actions, tuple(faults), boards[0].start.key())


class Board:
    """One game: its position, and what was played.

    Attributes:
        number: of the game in its match.
        start: where the game begins: the usual start, or a position that a book sets up. Only look at it.
        opening: how many of the actions are of the opening.
        seats: the player of each seat, 0 for A and 1 for B.
        state: the position; only look at it.
        actions: from `start` on, the opening and the dice included.
        faults: what each player did wrong, by the player's number.
        loser: the player that forfeited, in a zero-sum game of two players; None if no player did.
    """

    def __init__(self, number: int, opening: Opening, seats: tuple[int, ...], dice: int) -> None:
        self.number, self.start, self.opening = number, opening.start, len(opening.actions)
        self.state, self.actions = opening.position.clone(), list(opening.actions)
        self.faults = defaultdict[int, list[Fault]](list)
        self.seats, self._dice = seats, np.random.default_rng(dice)
        self.loser: int | None = None

    @property
    def mover(self) -> int:
        """The player whose turn it is."""
        return self.seats[self.state.turn]

    @property
    def is_over(self) -> bool:
        """Whether the game is over, by its rules or because a player lost it otherwise."""
        return self.loser is not None or self.state.is_terminal

    def answer(self, answer: Answer) -> None:
        """Play what the player to move answers, and roll the dice; or end the game."""
        if isinstance(answer, int):
            self.state.play(answer)
            self.actions += [answer, *roll(self.state, self._dice)]
            return
        self.loser = self.mover
        if answer is not None:
            self.faults[self.loser].append(answer)

    def outcomes(self) -> tuple[float, ...]:
        """The outcome of each seat in a finished game, in [-1, 1]; -1 and 1 if a player forfeited it."""
        if self.loser is not None:
            return tuple(-1.0 if player == self.loser else 1.0 for player in self.seats)
        return self.state.outcomes()
