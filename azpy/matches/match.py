"""`azpy.match`: a match from Python."""

import os
from typing import Any, cast

from azpy.devices import Device
from azpy.game import Game
from azpy.games.names import make_game, spec_of
from azpy.matches.arena import Follower, Player, SearchPlayer, games_of, play_rounds
from azpy.matches.openings import Book
from azpy.matches.players import game_of, load_players, parse_player, settings_of, slots_for
from azpy.matches.results import MatchResult
from azpy.runs.reader import StoredRun
from azpy.settings.presets import usual_settings
from azpy.settings.run import Settings, match_search


def match(
    a: Any,
    b: Any,
    *,
    game: str | type[Game] | None = None,
    games: int | None = None,
    simulations: int = 100,
    device: str = "cpu",
    opening_plies: int | None = None,
    seed: int = 0,
) -> MatchResult:
    """Play a match, as the command `az-match A B` does.

    Each opening is played with A in every seat, and copies of B in the others. In a game of one player, each plays
    alone, with the same openings and dice.

    Args:
        a: player A: a text or path as for `az-match`, a run, or an evaluator, which plays as a model does. Or an object
            with `select_actions(states, seed)`, which returns a legal action for each state. The states are copies,
            which it may change.
        b: player B, likewise.
        game: a game's name, "module:Class", or a class of a game in Python (default: the game of the run).
        games: games of A, the same number in each seat (default: 200, or a few more).
        simulations: simulations per move, for players that do not name their own.
        device: the device of models in files.
        opening_plies: random actions before each round of games (default: the run's `match_opening_plies`, else 4).
        seed: the seed of openings, dice and players.

    Returns:
        The result of A, with `score` (0 to 1), its 95 % `interval`, `elo`, `elo_interval`, `wins`, `draws`, `losses`.
        In a game of one player, `outcome_of(0)` and `outcome_of(1)` are the mean scores of A and B, and `difference` is
        A's lead.

    Raises:
        SettingsError: a player or game does not exist, the seats cannot share the games evenly, or a player does not
            return an action for each state.
        RunError: a run cannot be used.
        ModelError: a model cannot be used.

    Example:
        >>> import azpy
        >>> azpy.match("mcts:200", "random", game="tic_tac_toe", games=20).score > 0.5
        True
    """
    runs = [one for one in (a, b) if isinstance(one, StoredRun)]
    if game is None and runs:
        game = runs[0].start and runs[0].settings.game  # `start` raises where the game's class was not named
    specs = [parse_player(os.fspath(one)) for one in (a, b) if isinstance(one, str | os.PathLike)]
    start = make_game(game_of(specs, None if game is None else spec_of(game), "game={!r}"))
    games = games_of(start, games, 200)
    loaded = iter(load_players(specs, start, simulations, device=Device.read(device)))

    def player(one: Any) -> Player | Follower:
        if isinstance(one, str | os.PathLike):
            return next(loaded).player
        if isinstance(one, Follower) or hasattr(one, "select_actions"):
            return cast("Player | Follower", one)
        return SearchPlayer(one, simulations, **match_search(usual_settings(start), start))

    players = player(a), player(b)
    plies = (settings_of(specs) or Settings).match_opening_plies if opening_plies is None else opening_plies
    rounds = play_rounds(Book(start, plies, seed), players, games // start.num_players, seed, slots_for(*players))
    return MatchResult(tuple(rounds), start.zero_sum)
