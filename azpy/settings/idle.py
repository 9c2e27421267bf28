"""Settings that a user gives and that cannot have an effect in the run: one line each, and the run begins."""

import warnings
from collections.abc import Collection, Mapping
from typing import Any

from azpy.errors import SettingsWarning
from azpy.settings.run import ABOUT, Settings, default_of

_SUPERVISED = tuple(name for name in ABOUT if name.startswith("supervised_"))
_TRAINS = ("init", "tensorboard", *(name for name, about in ABOUT.items() if about.group in ("learning", "matches")))
NO_MATCHES = 1_000_000  # as match_every: no run has so many iterations
_DEVICE = ("device", "devices", "precision")


def warn_of_idle(
    settings: Settings, given: Mapping[str, Any], *, supervised: bool, collects: bool = False, has_model: bool = True
) -> None:
    """Warn of each setting that was given, differs from its default, and does nothing.

    Args:
        settings: of the run.
        given: those that the user typed, by name.
        supervised: whether the run begins, or began, with imported games.
        collects: whether games are only collected.
        has_model: of a collection: whether a model plays.
    """
    for name, why in _idle(settings, {*given}, supervised, collects, has_model).items():
        warnings.warn(f"{name} {getattr(settings, name)} has no effect: {why}", SettingsWarning, stacklevel=2)


def _idle(
    settings: Settings, given: Collection[str], supervised: bool, collects: bool, has_model: bool
) -> dict[str, str]:
    """Return why each of the given settings has no effect, if it has none."""
    now = settings
    endless = now.iterations is None and now.minutes is None and now.total_evaluations is None
    rules: list[tuple[tuple[str, ...], bool, str]] = [
        (_TRAINS, collects, "--collect-only trains nothing; it counts once az-train learns from this folder"),
        (_DEVICE, collects and not has_model, "no network plays without --model"),
        (_SUPERVISED, not supervised, "it goes with --supervised"),
        (("window_min",), now.window_min > now.window_max, f"window_max is {now.window_max}"),
        (("match_games",), now.match_every >= (now.iterations or NO_MATCHES), "no match is played before the last"),
        (("final_match_games",), endless, "a run without an end has no last match"),
        (("fast_simulations",), now.full_search_share == 1, "all searches are full: give full_search_share below 1"),
        (("resign_plies", "resign_control"), now.resign_below == -1, "nobody resigns: give resign_below above -1"),
        (("temperature",), now.temperature_plies == 0, "temperature_plies is 0"),
        (("temperature_plies",), now.temperature == now.temperature_final, "temperature_final is the same"),
        (("virtual_loss", "in_flight_share"), now.eval_batch == 1, "eval_batch is 1, so no leaf is in flight"),
        (("slots",), now.deterministic and now.slots > now.games_per_iteration, "an iteration has fewer games"),
    ]
    found = dict[str, str]()
    for names, is_idle, why in rules:
        for name in names:
            if is_idle and name in given and getattr(settings, name) != default_of(name):
                found.setdefault(name, why)
    return found
