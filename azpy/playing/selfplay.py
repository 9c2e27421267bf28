"""Self-play with a run's settings: of an iteration's games, or of one game again with the same bits."""

import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from azpy import _core
from azpy.errors import SettingsError
from azpy.machine import usable_cores
from azpy.settings import Settings

__all__ = [
    "EVENT_SECONDS",
    "ids_of_iteration",
    "known_ids",
    "on_devices",
    "open_self_play",
    "play_on",
    "player_of",
    "rates",
    "repeat",
    "take_rest",
    "threads_of_trees",
]

EVENT_SECONDS = 0.2  # how often a long stage reports


def ids_of_iteration(settings: Settings, next_game: int) -> range | None:
    """The ids of an iteration's games in a deterministic run, from `next_game` on; None in other runs."""
    return range(next_game, next_game + settings.games_per_iteration) if settings.deterministic else None


def known_ids(settings: Settings, next_game: int, journal: Iterable[_core.GameRecord]) -> set[int]:
    """The ids of the finished games of the iteration whose first id is `next_game`."""
    ids = ids_of_iteration(settings, next_game)
    return {record.game_id for record in journal if ids is None or record.game_id in ids}


def player_of(evaluators: Sequence[Any]) -> Any:
    """The argument of `SelfPlay`: the one evaluator, or a list with one for each device."""
    return evaluators[0] if len(evaluators) == 1 else list(evaluators)


def on_devices(evaluators: Sequence[Any]) -> str:
    """The first evaluator's description, and the devices of the others."""
    first, *others = evaluators
    more = f", and likewise on {', '.join(other.device for other in others)}" if others else ""
    return f"{first.description}{more}"


def open_self_play(
    settings: Settings,
    start: _core.State,
    evaluator: Any,
    next_game: int,
    known: Collection[int] = (),
    *,
    resign_below: float,
    opponents: Sequence[Any] = (),
) -> _core.SelfPlay:
    """Self-play without end, or of exactly one iteration's games in a deterministic run.

    Args:
        settings: of the run.
        start: where its games begin.
        evaluator: see `SelfPlay` and `player_of`.
        next_game: id of the iteration's first game.
        known: ids of the iteration's finished games. A deterministic run plays from the first missing one on.
        resign_below: the present threshold, see `Resignation`.
        opponents: evaluators of earlier networks; each plays one side of some games.

    Raises:
        SettingsError: settings that self-play refuses.
    """
    first, games = max([next_game, *(game + 1 for game in known)]), None
    if (ids := ids_of_iteration(settings, next_game)) is not None:
        first = next(game for game in ids if game not in known)
        games = ids.stop - first
    layout = {"first_game": first, "games": games, "slots": settings.slots, "pipelines": settings.all_pipelines}
    layout |= {"threads": threads_of_trees(settings, evaluator), "cache_positions": settings.cache_positions}
    share = settings.historical_share
    return _open(
        settings, start, evaluator, resign_below=resign_below, opponents=opponents, opponent_share=share, **layout
    )


def threads_of_trees(settings: Settings, evaluator: Any) -> int | None:
    """Threads that grow the trees: the setting, else one a core (None).

    Where each core has a pipeline whose network runs on it, each pipeline grows its own trees: other threads would take
    the core from another pipeline's network. With 256 slots and a 4x32 network on 2 cores, this raised 23,500
    evaluations/s to 25,300 (November 2026).
    """
    first = evaluator[0] if isinstance(evaluator, Sequence) else evaluator
    own_core = getattr(first, "device", None) == "cpu" and settings.pipelines >= usable_cores()
    return 1 if settings.threads is None and own_core else settings.threads


def repeat(
    settings: Settings, start: _core.State, evaluator: Any, game_id: int, opponents: Sequence[Any] = ()
) -> _core.GameRecord:
    """One game of a run again, by itself. No player resigns, so the game is at least as long as it was.

    A given opponent plays the same seat as before.

    Raises:
        SettingsError: settings that self-play refuses.
    """
    layout = {"first_game": game_id, "games": 1, "slots": 1, "pipelines": 1, "resign_below": -1.0}
    with _open(settings, start, evaluator, opponents=opponents, opponent_share=1.0, **layout) as play:
        return next(play)


def _open(settings: Settings, start: _core.State, evaluator: Any, **layout: Any) -> _core.SelfPlay:
    try:
        options: dict[str, Any] = settings.search_options() | {"seed": settings.seed} | layout
        return _core.SelfPlay(start, evaluator, **options)
    except (_core.GameError, _core.EvaluatorError):
        raise
    except OSError as error:  # of the threads that it is made of
        raise SettingsError(f"self-play cannot start: {error}; try fewer pipelines or threads") from error
    except (ValueError, OverflowError) as error:
        raise SettingsError(f"self-play cannot run with these settings: {error}") from error


def play_on(
    play: _core.SelfPlay,
    known: set[int],
    target: int,
    keep: Callable[..., object],
    may_go_on: Callable[[], bool],
) -> Iterator[dict[str, float]]:
    """Takes finished games until there are enough or, with one game at least, time is up.

    Args:
        play: running self-play.
        known: ids of the games so far; new ids are added.
        target: the number of games to reach.
        keep: called with new games, all that are finished at once.
        may_go_on: whether there is time for another game.

    Yields:
        The `rates` so far, now and then and when the target is reached.
    """
    before, begin, reported = dict(play.stats), time.monotonic(), 0.0
    while len(known) < target and (not known or may_go_on()):
        found = play.take_finished(target - len(known)) or [next(play)]
        # A deterministic run plays from the first missing game on, and so some games again.
        if not (new := [record for record in found if record.game_id not in known]):
            continue
        keep(*new)
        known |= {record.game_id for record in new}
        now = time.monotonic()
        if now - reported > EVENT_SECONDS or len(known) == target:
            reported = now
            yield rates(before, play.stats, now - begin)


def take_rest(play: _core.SelfPlay, known: Container[int], keep: Callable[..., object]) -> None:
    """Pauses self-play, and calls `keep` with the finished games whose ids are not known."""
    play.pause()
    if rest := [record for record in play.take_finished() if record.game_id not in known]:
        keep(*rest)


def rates(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Rates and shares of self-play between two readings of its totals; an evaluation is a row of a batch."""
    delta = {name: after[name] - before[name] for name in before}
    seconds = max(seconds, 1e-9)

    def share(part: str, *whole: str) -> float:
        return delta[part] / max(sum(delta[name] for name in whole), 1.0)

    return {
        "play_seconds": seconds,
        "evaluations": delta["rows"],
        "games_per_second": delta["games"] / seconds,
        "positions_per_second": delta["positions"] / seconds,
        "simulations_per_second": delta["simulations"] / seconds,
        "evaluations_per_second": delta["rows"] / seconds,
        "batch_rows": share("rows", "batches"),
        "batch_fill": share("rows", "rows_capacity"),
        "cache_hits": share("cache_hits", "evaluations", "cache_hits"),
        "fast_searches": share("fast_searches", "searches"),
        "opponent_games": share("opponent_games", "games"),
    }
