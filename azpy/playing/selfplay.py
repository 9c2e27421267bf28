"""Self-play as a run's settings say: of an iteration's games, or of one game once more.

What decides a game's bits stands in one place, so that games are repeated as they were played. Knows nothing of files.
"""

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
    """The ids that an iteration's games have in a deterministic run, from `next_game` on; None: any others."""
    return range(next_game, next_game + settings.games_per_iteration) if settings.deterministic else None


def known_ids(settings: Settings, next_game: int, journal: Iterable[_core.GameRecord]) -> set[int]:
    """The ids of those finished games that are of the iteration whose first id is `next_game`."""
    ids = ids_of_iteration(settings, next_game)
    return {record.game_id for record in journal if ids is None or record.game_id in ids}


def player_of(evaluators: Sequence[Any]) -> Any:
    """What `SelfPlay` is given: the one evaluator, or a list with one for each device."""
    return evaluators[0] if len(evaluators) == 1 else list(evaluators)


def on_devices(evaluators: Sequence[Any]) -> str:
    """What plays, in words: the first evaluator's description, and the devices of the others."""
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
    """Self-play without end, or, in a deterministic run, that of exactly one iteration's games.

    Args:
        settings: of the run.
        start: where its games begin.
        evaluator: see `SelfPlay` and `player_of`.
        next_game: id of the iteration's first game.
        known: ids of its games that are finished already. A deterministic run plays from the first missing one on.
        resign_below: the threshold by now, see `Resignation`.
        opponents: evaluators of earlier networks, each of which plays one side of some games.

    Raises:
        SettingsError: settings that self-play refuses.
    """
    first, games = max([next_game, *(game + 1 for game in known)]), None
    if (ids := ids_of_iteration(settings, next_game)) is not None:
        first = next(game for game in ids if game not in known)
        games = ids.stop - first
    return _open(
        settings,
        start,
        evaluator,
        resign_below=resign_below,
        opponents=opponents,
        opponent_share=settings.historical_share,
        first_game=first,
        games=games,
        slots=settings.slots,
        pipelines=settings.all_pipelines,
        threads=threads_of_trees(settings, evaluator),
        cache_positions=settings.cache_positions,
    )


def threads_of_trees(settings: Settings, evaluator: Any) -> int | None:
    """Threads that grow the trees: as the settings say, else one a core (None).

    Where each core has a pipeline whose network runs on it, each pipeline grows its own trees: threads beside it would
    take the core from another pipeline's network and give it back when the system likes. With 256 slots and a 4x32
    network on 2 cores that made 25,300 evaluations/s of 23,500, and the network alone 25,200 (November 2026).
    """
    first = evaluator[0] if isinstance(evaluator, Sequence) else evaluator
    own_core = getattr(first, "device", None) == "cpu" and settings.pipelines >= usable_cores()
    return 1 if settings.threads is None and own_core else settings.threads


def repeat(
    settings: Settings, start: _core.State, evaluator: Any, game_id: int, opponents: Sequence[Any] = ()
) -> _core.GameRecord:
    """One game of a run once more, by itself; nobody resigns, so that it is at least as long as it was.

    With an opponent, it has that one; the draws of a game are such that its seat is the same then.

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
    """Takes finished games until there are enough or, with one at least, time is up.

    Args:
        play: self-play that is going on.
        known: ids of the games there are already; those of the others are added.
        target: how many there shall be.
        keep: called with the games that are not known, all that are finished at once.
        may_go_on: whether there is time for another one.

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
    """Pauses self-play, and calls `keep` with the finished games that nobody has taken yet, but for known ids."""
    play.pause()
    if rest := [record for record in play.take_finished() if record.game_id not in known]:
        keep(*rest)


def rates(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Rates and shares of self-play between two readings of its totals; an evaluation is a row of a batch."""
    delta = {name: after[name] - before[name] for name in before}
    leaves = delta["evaluations"] + delta["cache_hits"]
    seconds = max(seconds, 1e-9)
    return {
        "play_seconds": seconds,
        "evaluations": delta["rows"],
        "games_per_second": delta["games"] / seconds,
        "positions_per_second": delta["positions"] / seconds,
        "simulations_per_second": delta["simulations"] / seconds,
        "evaluations_per_second": delta["rows"] / seconds,
        "batch_rows": delta["rows"] / max(delta["batches"], 1.0),
        "batch_fill": delta["rows"] / max(delta["rows_capacity"], 1.0),
        "cache_hits": delta["cache_hits"] / max(leaves, 1.0),
        "fast_searches": delta["fast_searches"] / max(delta["searches"], 1.0),
        "opponent_games": delta["opponent_games"] / max(delta["games"], 1.0),
    }
