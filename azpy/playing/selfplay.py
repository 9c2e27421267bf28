"""Self-play with a run's settings: of an iteration's games, or of one game again with the same bits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from azpy import _core
from azpy.devices import ON_CPU, Device
from azpy.errors import SettingsError
from azpy.games.lines import random_games
from azpy.settings import Settings
from azpy.system import usable_cores

_FEW, _SECONDS = 4, 0.5  # random games, to see how long one is


def on_devices(evaluators: Sequence[Any]) -> str:
    """The first evaluator's description, and the devices of the others."""
    first, *others = evaluators
    more = f", also on {', '.join(other.device for other in others)}" if others else ""
    return f"{first.description}{more}"


def open_self_play(
    settings: Settings, start: _core.State, evaluators: Sequence[Any], *, on: Device | None = None, stagger: int = 0
) -> _core.SelfPlay:
    """Self-play with a run's settings, of the games that are admitted to it.

    Args:
        settings: of the run.
        start: where its games begin.
        evaluators: of the network, one a device.
        on: the network's first device, where the settings leave it to "auto"; None: that of the settings.
        stagger: plies over which the first games begin, one after another.

    Raises:
        SettingsError: settings that self-play refuses.
    """
    layout: dict[str, Any] = {"slots": settings.slots, "pipelines": settings.all_pipelines, "stagger": stagger}
    threads = threads_of_trees(settings, on or settings.all_devices[0])
    layout |= {"threads": threads, "cache_positions": settings.cache_positions}
    return _open(settings, start, evaluators, **layout)


def usual_plies(start: _core.State, settings: Settings) -> int:
    """The plies of a game, rolls counted, by a few random ones: 1 at least, and too few where rules are very slow."""
    games = random_games(start, _FEW, settings.max_plies or start.max_plies, _SECONDS)
    return max(1, sum(map(len, games)) // len(games))


def threads_of_trees(settings: Settings, on: Device | str) -> int | None:
    """Threads that grow the trees: the setting, else one a core (None).

    Where each core has a pipeline, each pipeline grows its own trees: other threads would take the core from another
    pipeline. With 256 slots and a 4x32 network on 2 cores, this raised 23,500 evaluations/s to 25,300 (November 2026).
    Two pipelines of a GPU take turns, so the one that grows trees uses all cores. `on` is the network's device.
    """
    fewest = usable_cores() if str(on) in ON_CPU else max(usable_cores(), 3)
    return 1 if settings.threads is None and settings.all_pipelines >= fewest else settings.threads


def repeat(settings: Settings, start: _core.State, evaluator: Any, record: _core.GameRecord) -> _core.GameRecord:
    """One game of a run again, by itself."""
    with _open(settings, start, evaluator, slots=1, pipelines=1) as play:
        if record.score_to_beat is not None:
            play.set_score_to_beat(record.score_to_beat)
        play.admit(record.game_id, 1)
        return next(play)


def check_options(settings: Settings, start: _core.State) -> None:
    """Refuse options that self-play of the game cannot have, before anything is made.

    Raises:
        SettingsError: such an option; the text names it.
    """
    _open(settings, start, _core.UniformEvaluator(), slots=1, pipelines=1).close()


def _open(settings: Settings, start: _core.State, evaluator: Any, **layout: Any) -> _core.SelfPlay:
    try:
        options: dict[str, Any] = settings.search_options() | {"seed": settings.seed, "games": 0} | layout
        return _core.SelfPlay(start, evaluator, **options)
    except (_core.GameError, _core.EvaluatorError):
        raise
    except OSError as error:  # of the threads that it is made of
        raise SettingsError(f"self-play cannot start: {error}; try fewer pipelines or threads") from error
    except (ValueError, OverflowError) as error:
        raise SettingsError(f"self-play cannot run with these settings: {error}") from error


def rates(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Rates and shares of self-play between two readings of its totals; an evaluation is a row of a batch.

    A total that is missing is 0.
    """
    delta = Counter[str]({name: total - before.get(name, 0.0) for name, total in after.items()})
    seconds = max(seconds, 1e-9)
    return {
        "play_seconds": seconds,
        "evaluations": delta["rows"],
        **{f"{name}_per_second": delta[name] / seconds for name in ("games", "positions", "simulations")},
        "evaluations_per_second": delta["rows"] / seconds,
        "batch_rows": delta["rows"] / max(delta["batches"], 1.0),
        "batch_fill": delta["rows"] / max(delta["rows_capacity"], 1.0),
        "cache_hits": delta["cache_hits"] / max(delta["evaluations"] + delta["cache_hits"], 1.0),
        "fast_searches": delta["fast_searches"] / max(delta["searches"], 1.0),
    }
