"""The players that an engine serves: what a user names, opened once."""

import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azpy import _core
from azpy.devices import CPU, Device
from azpy.errors import RequestError, SettingsError, warn_once
from azpy.games.names import differ_in_size, make_game, must_be_typed, refuse_untyped
from azpy.matches.arena import SearchPlayer
from azpy.matches.levels import FULL_STRENGTH, WARMEST, Ladder, ladder_of, plain_ladder
from azpy.matches.players import load_players, parse_player
from azpy.runs.reader import StoredRun
from azpy.settings.run import MOST_LEAVES

TREES_MB = 1024  # memory of all trees, where the other program does not say it: a search may have no other end


@dataclass(frozen=True)
class Player:
    """A player, ready to be searched with."""

    name: str
    start: _core.State  # where its game begins
    evaluator: Any
    simulations: int  # a move, where nothing else is asked for
    options: dict[str, Any]  # of `azpy.Engine`
    has_model: bool  # opened for boards of this size alone
    temperature: float = 0.0  # above 0 weaker actions are played too
    ladder: Ladder = field(default_factory=lambda: plain_ladder(FULL_STRENGTH, has_model=True))  # its levels
    seed: int | None = None  # of the draws where the temperature is above 0; None: other ones each time

    @property
    def network(self) -> str | None:
        """The hash of the model's bytes, if there is a model."""
        number = getattr(self.evaluator, "model_id", getattr(self.evaluator, "network_id", None))
        return f"{number:016x}" if isinstance(number, int) else None


@dataclass
class PlayerEngine:
    """A player and the engine that searches for it.

    Attributes:
        player: the player as it is now.
        engine: it searches with the player's evaluator.
        opened: opens the player anew, for `renew`; gives None if its model is the same file.
        options: of the engine, besides those of the player's search.
    """

    player: Player
    engine: _core.Engine
    opened: Callable[[], Player | None] = lambda: None
    options: Mapping[str, Any] = field(default_factory=dict)
    _renewing: threading.Lock = field(default_factory=threading.Lock)
    _before: list[_core.Engine] = field(default_factory=list)  # engines whose last searches go on

    @property
    def engines(self) -> list[_core.Engine]:
        """The engine, and those before it whose searches go on."""
        return [self.engine, *self._before]

    def renew(self) -> bool:
        """Load the player's newest checkpoint, if its network is another one; return whether it is.

        Searches under way end with the network that they began with.

        Raises:
            AzpyError: a model that cannot be loaded; the one before stays.
        """
        with self._renewing:
            player = self.opened()
            if player is None or (player.network or player.name) == (self.player.network or self.player.name):
                return False
            if player.options == self.player.options:
                self.engine.load("main", player.evaluator)
            else:  # a player of one-player games has a newer score to beat
                engine = open_engine(player, **self.options)
                before = self.engine
                self._before.append(before)
                self.engine = engine
                threading.Thread(target=self._end, args=(before,), name="azpy-engine-end", daemon=True).start()
            self.player = player
            return True

    def _end(self, engine: _core.Engine) -> None:
        """Close an engine once its searches have ended."""
        engine.close()
        self._before.remove(engine)

    def close(self) -> None:
        """Cancel all searches for the player, and close its engine."""
        for engine in self.engines:
            engine.close(cancel=True)


def open_engine(player: Player, **options: Any) -> _core.Engine:
    """An engine that searches for a player; `options` are of `azpy.Engine`, besides those of the player's search."""
    if player.start.hides:  # a hit of the cache, counted or just faster, would tell that a view came before
        options["cache_positions"] = 0
    return _core.Engine(player.evaluator, **{**player.options, **options})


def with_engines(models: Mapping[str, Player], most: int) -> dict[str, PlayerEngine]:
    """Players with an engine each, which takes so many requests at once. The memory of the trees is shared out."""
    options = {"max_requests": most, "total_memory_mb": max(1, TREES_MB // len(models))}
    return {name: PlayerEngine(player, open_engine(player, **options)) for name, player in models.items()}


def open_model(
    text: str,
    game: str | None,
    simulations: int,
    device: Device = CPU,
    temperature: float = 0.0,
    others: Iterable[str] = (),
    seed: int | None = None,
    shows_views: bool = False,
    **options: Any,
) -> PlayerEngine:
    """A player with its engine; see `open_player` and `open_engine`."""
    before: object = None

    def source() -> tuple[str, Path | None, Path | None]:
        spec = parse_player(text)
        return spec.kind, spec.run or (None if spec.model is None else spec.model.parent), spec.model

    *first, _ = source()

    def opened() -> Player | None:
        nonlocal before
        *where, path = source()
        # A folder that came since may have the name of a player that azpy brings along, and is another player.
        if where != first:
            return None
        # A model is written beside its place and renamed, so another one is another file.
        now = None if path is None else (path, path.stat().st_ino, path.stat().st_mtime_ns)
        if before is not None and now == before:
            return None
        player = open_player(text, game, simulations, device, temperature, others, seed, shows_views)
        before = now  # what cannot be opened is tried again
        return player

    player = opened()
    if player is None:  # never at first
        raise SettingsError(f"{text} cannot be opened")
    return PlayerEngine(player, open_engine(player, **options), opened, options)


def chosen(player: Player, state: _core.State, result: _core.SearchResult, temperature: float | None = None) -> int:
    """The action that a player plays at a position that was searched.

    At temperature 0 it is the search's own, else one drawn: with a seed always the same one. `temperature` is in place
    of the player's own.
    """
    seed = secrets.randbits(64) if player.seed is None else player.seed
    action = result._chosen(player.temperature if temperature is None else temperature, seed, state.key())
    if action is None:
        raise RequestError("the game is over, so there is no move to play")
    return action


def open_player(
    text: str,
    game: str | None,
    simulations: int,
    device: Device = CPU,
    temperature: float = 0.0,
    others: Iterable[str] = (),
    seed: int | None = None,
    shows_views: bool = False,
) -> Player:
    """The player that `text` names, see `az-match --help`.

    Args:
        text: mcts:N, uniform:N, a model file, a checkpoint folder or a run folder, with options of the search after ?.
        game: a game's name; None for that of the run, or for a player without one that of the first run among `others`.
        simulations: a move, where `text` does not say it.
        device: where a model runs.
        temperature: of the actions it plays, where `text` does not say it.
        others: the players beside which it is opened.
        seed: of its draws; None for other ones each time.
        shows_views: whether a person is shown no more than a view (`State.render_view`): else a game that hides
            something is refused.

    Raises:
        AzpyError: no such player or game, one that must be typed and was not, a model that does not fit the game, a
            stored ladder that cannot be read, or a temperature beyond `WARMEST`.
    """
    if not 0 <= temperature <= WARMEST:
        raise SettingsError(f"--temperature must be from 0 to {WARMEST:g}, got {temperature:g}")
    spec = parse_player(text)
    if device.kind != "cpu" and all(each.model is None for each in (spec, *map(parse_player, others))):
        warn_once(f"--device {device} has no effect: {text} does not use a network")
    specs = [spec] if game is not None or spec.run is not None else [spec, *map(parse_player, others)]
    run = next((each.run for each in specs if each.run is not None), None)
    settings = None if run is None else StoredRun(run).settings
    own = game if settings is None else settings.game
    if own is None:
        raise SettingsError(f"which game does {text!r} play? give --game")
    refuse_untyped(game or own, game, run, "the engine", "--game {}")
    start = make_game(game or own)
    if start.hides and not shows_views:
        raise SettingsError(
            f"{start.game} hides something from its players, and a protocol or a level would search its true position: "
            "az-play and az-serve play it, and az-match measures its players"
        )
    if start.hides and spec.model is None:
        raise SettingsError(f"{text} has no network to draw moves of {start.game} from: give a run or a model file")
    if start.hides and (temperature or seed is not None):
        raise SettingsError(f"--temperature and --seed: no effect on {start.game}, whose players draw: leave them out")
    if settings is not None and game not in (None, own):
        is_same = not must_be_typed(own) and make_game(own).game == start.game
        if not is_same and not ("+conv" in settings.network and differ_in_size(own, game)):
            raise SettingsError(f"{run} plays {own}, not {game}")
    (entrant,) = load_players([spec], start, simulations, device=device)
    player = entrant.player
    if not isinstance(player, SearchPlayer):
        raise SettingsError(f"{text} does not search: give a model, mcts:N or uniform:N")
    evaluator, options = player.evaluator, {**player.options, "eval_batch": MOST_LEAVES, **spec.search}
    del options["threads"]
    return Player(
        entrant.name,
        start,
        _core.RolloutEvaluator(1) if evaluator is None else evaluator,
        entrant.simulations or simulations,
        options,
        spec.model is not None,
        temperature if spec.temperature is None else spec.temperature,
        ladder_of(spec.run, entrant.simulations or simulations, spec.model is not None),
        seed,
    )
