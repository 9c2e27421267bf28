"""Matches: fair by construction, counted right, and repeatable."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.errors import SettingsError
from azpy.games.names import make_game
from azpy.matches.arena import RandomPlayer, SearchPlayer, mcts, play_match, play_rounds
from azpy.matches.openings import Book
from azpy.matches.ratings import elo
from azpy.matches.results import MatchResult
from oracles import Countdown, Solver, pairs_of, whole_match

TICTACTOE = azpy.make_game("tic_tac_toe")


class FirstLegal:
    """Plays the lowest legal action, and notes what it saw."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def select_actions(self, states: Sequence[Any], seed: int) -> list[int]:
        self.seen += [(state.turn, state.key()) for state in states]
        return [state.legal_actions()[0] for state in states]


class Perfect:
    """Solves its game."""

    def __init__(self) -> None:
        self.solver = Solver()

    def select_actions(self, states: Sequence[Any], seed: int) -> list[int]:
        return [max(values, key=values.__getitem__) for values in map(self.solver.actions, states)]


def test_the_score_is_the_share_of_the_points() -> None:
    result = pairs_of(*[(1, 1)] * 40, *[(1, -1)] * 10)
    assert (result.games, result.wins, result.losses, result.score) == (100, 90, 10, 0.9)
    assert result.seats == ((50, 0, 0), (40, 0, 10))
    assert pairs_of((1, 0), (0, -1)).score == 0.5


def test_elo_is_the_logistic_model_s_and_stays_finite() -> None:
    assert pairs_of((1, 1), (1, -1)).elo == pytest.approx(elo(0.75))
    assert math.isfinite(pairs_of(*[(1, 1)] * 5).elo)
    assert pairs_of(*[(-1, -1)] * 5).elo == pytest.approx(-pairs_of(*[(1, 1)] * 5).elo)


def test_a_perfect_player_never_loses() -> None:
    result = whole_match(TICTACTOE, Perfect(), RandomPlayer(), games=100, seed=2, opening_plies=0)
    assert result.losses == 0
    assert result.score > 0.9
    mirrored = whole_match(TICTACTOE, RandomPlayer(), Perfect(), games=100, seed=2, opening_plies=0)
    assert mirrored.wins == 0


def test_search_beats_random_and_holds_perfect_play() -> None:
    few = whole_match(TICTACTOE, mcts(50), RandomPlayer(), games=60, seed=3, opening_plies=1)
    assert few.score > 0.8
    many = whole_match(TICTACTOE, mcts(3000), Perfect(), games=20, seed=3, opening_plies=0)
    assert many.score == 0.5
    uniform = SearchPlayer(azpy.UniformEvaluator(), 200)
    assert whole_match(TICTACTOE, uniform, RandomPlayer(), games=60, seed=3, opening_plies=1).score > 0.8


def test_both_games_of_a_pair_see_the_same_dice() -> None:
    class ByPosition:
        """Decides by the position alone: with the same dice both games of a pair are the same game."""

        def select_actions(self, states: Sequence[Any], seed: int) -> list[int]:
            return [state.legal_actions()[state.key() // 7 % len(state.legal_actions())] for state in states]

    result = whole_match(make_game("pig"), ByPosition(), ByPosition(), games=60, seed=4, opening_plies=0)
    wins, _, losses = result.seats[0]
    assert (wins, losses) == (result.losses - losses, result.wins - wins)
    assert min(wins, losses) > 0


@pytest.mark.parametrize("plies", [3, 4, 100])
def test_openings_of_a_short_game_are_shorter(plies: int) -> None:
    tiny = make_game("connect_four(width=2,height=2,k=2)")
    result = whole_match(tiny, RandomPlayer(), RandomPlayer(), games=4, opening_plies=plies)
    assert (result.wins, result.losses) == (2, 2)  # the first player cannot help winning
    player = FirstLegal()
    whole_match(TICTACTOE, player, RandomPlayer(), games=20, opening_plies=9)
    assert player.seen


def test_a_game_that_is_over_before_it_begins_has_no_match() -> None:
    with pytest.raises(SettingsError, match="over at its start"):
        whole_match(azpy.State(Countdown(0)), RandomPlayer(), RandomPlayer(), games=2)


def test_a_search_has_at_least_one_simulation() -> None:
    with pytest.raises(SettingsError, match="simulations must be at least 1, got 0"):
        mcts(0)


class Slow(FirstLegal):
    """Takes a second a position, by a clock of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0

    def select_actions(self, states: Sequence[Any], seed: int) -> list[int]:
        self.seconds += len(states)
        return super().select_actions(states, seed)


@pytest.mark.parametrize("seconds", [1, 40, 41, 100, 150, 400, 2000])
def test_a_match_ends_in_time_with_whole_pairs(seconds: int) -> None:
    player = Slow()
    book = Book(TICTACTOE, 1, 1)
    result = play_match(book, player, RandomPlayer(), 60, 1, lambda: seconds - player.seconds)
    longest = 5 * 8  # plies of a game times boards of the smallest group
    assert player.seconds < seconds + longest
    if seconds == 1:
        assert result is None
    elif seconds >= 100:
        assert result is not None
        assert result.games % 2 == 0
        assert result.games == 60 or result.games > seconds / 10
    assert (seconds == 2000) <= (result is not None and result.games == 60)


def test_a_group_of_games_that_time_cuts_off_does_not_count() -> None:
    def games(cut_off: int) -> int:
        """How many games count where time ends unforeseen."""
        player = Slow()

        def seconds_left() -> float:
            return 100_000 - player.seconds if player.seconds < cut_off else 0

        result = play_match(Book(TICTACTOE, 1, 1), player, RandomPlayer(), 60, 1, seconds_left)
        return 0 if result is None else result.games

    assert {games(cut_off) for cut_off in range(1, 120, 2)} == {0, 8, 16, 32}


def test_a_match_without_a_time_limit_is_one_group() -> None:
    players = FirstLegal(), mcts(20)
    book = Book(TICTACTOE, 1, 5)
    assert whole_match(TICTACTOE, *players, 12, 5, 1) == MatchResult(tuple(play_rounds(book, players, 6, 5)))


class Own:
    """A player of a user's, which answers what the test has it answer."""

    def __init__(self, answers: Callable[[list[int]], Any], plays: bool = False) -> None:
        self.answers, self.plays = answers, plays

    def select_actions(self, states: Sequence[azpy.State], seed: int) -> Any:
        first = [state.legal_actions()[0] for state in states]
        for state, action in zip(states, first, strict=True):
            if self.plays:
                state.play(action)
        return self.answers(first)


@pytest.mark.parametrize(
    ("answers", "got"),
    [
        (lambda first: first[:-1], "got 1 actions"),
        (lambda first: None, "got None"),
        (lambda first: "34", "got '34'"),
        (lambda first: {1, 2}, "got {1, 2}"),
        (lambda first: [1.5, 1], "got 1.5, which is not a whole number"),
        (lambda first: [1, True], "got True, which is not a whole number"),
        (lambda first: np.array([1, 1]) > 0, "got True, which"),
        (lambda first: np.array(3), r"got array\(3\)"),
        (lambda first: b"34", "got b'34'"),
        (lambda first: [first[0], -1], r"got -1 where the legal actions are \["),
        (lambda first: np.array([4000, first[1]]), r"got 4000 where the legal actions are \["),
        (lambda first: [None, 1], "got None, which"),
    ],
)
def test_select_actions_must_return_legal_actions(answers: Callable[[list[int]], Any], got: str) -> None:
    """int() took 1.5, "3" and True for actions, and zip() complained of the rest."""
    wanted = "player B: select_actions must return a legal action for each of 2 states, "
    with pytest.raises(SettingsError, match=wanted + got):
        azpy.match("random", Own(answers), game="othello", games=4, opening_plies=1)


@pytest.mark.parametrize("answers", [list, tuple, np.array, iter, lambda first: [*map(np.uint8, first)]])
def test_a_player_may_play_on_the_states_it_is_given(answers: Callable[[list[int]], Any]) -> None:
    games = [azpy.match("random", Own(answers, plays), game="tic_tac_toe", games=4) for plays in (True, False)]
    assert games[0].rounds == games[1].rounds
