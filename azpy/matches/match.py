"""`azpy.match`: a match from Python."""

import os
from typing import Any, cast

from azpy.errors import SettingsError
from azpy.game import Game
from azpy.games.names import make_game, spec_of
from azpy.matches.arena import Follower, Player, SearchPlayer, play_pairs
from azpy.matches.openings import Book
from azpy.matches.players import game_of, load_players, parse_player, settings_of, slots_for
from azpy.matches.results import MatchResult
from azpy.runs.reader import StoredRun
from azpy.settings.run import Settings, match_search


def match(
    a: Any,
    b: Any,
    *,
    game: str | type[Game] | None = None,
    games: int = 200,
    simulations: int = 100,
    device: str = "cpu",
    opening_plies: int | None = None,
    seed: int = 0,
) -> MatchResult:
    """Plays a match, as `az-match A B` does: pairs of games from the same openings, from both seats.

    Args:
        a: player A: a text or path as for `az-match`, a run, or an evaluator, which plays as a model does. Or an object
            with `select_actions(states, seed)`, which returns a legal action for each of the states.
        b: player B, likewise.
        game: a game's name, "module:Class", or a class of a game in Python; by default that of the run.
        games: an even number.
        simulations: a move, for players that do not say.
        device: where models in files run.
        opening_plies: random actions before each pair of games; by default the run's `match_opening_plies`, else 4.
        seed: fixes openings, dice and players.

    Returns:
        The result of A: `score`, `interval`, `elo`, `elo_interval`, `wins`, `draws`, `losses`.

    Raises:
        SettingsError: no such player or game, or an odd number of games.
        RunError, ModelError: a run or model that cannot be used.

    Example:
        >>> import azpy
        >>> azpy.match("mcts:200", "random", game="tic_tac_toe", games=20).score > 0.5
        True
    """
    if games < 2 or games % 2:
        raise SettingsError(f"games must be an even number, got {games}: each opening is played twice")
    runs = [one for one in (a, b) if isinstance(one, StoredRun)]
    if game is None and runs:
        game = runs[0].start and runs[0].settings.game  # `start` raises where the game's class was not named
    specs = [parse_player(os.fspath(one)) for one in (a, b) if isinstance(one, str | os.PathLike)]
    start = make_game(game_of(specs, None if game is None else spec_of(game), "game={!r}"))
    loaded = iter(load_players(specs, start, simulations, device=device))

    def player(one: Any) -> Player | Follower:
        if isinstance(one, str | os.PathLike):
            return next(loaded).player
        if isinstance(one, Follower) or hasattr(one, "select_actions"):
            return cast("Player | Follower", one)
        return SearchPlayer(one, simulations, **match_search(Settings))

    first, second = player(a), player(b)
    plies = (settings_of(specs) or Settings).match_opening_plies if opening_plies is None else opening_plies
    book = Book(start, plies, seed)
    return MatchResult.of(list(play_pairs(book, first, second, games // 2, seed, slots_for(first, second))))
