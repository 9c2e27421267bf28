"""Which settings a run gets: those given, else those of a file, the run so far, the game's preset, or the defaults.

Those that are given and that cannot have an effect are one line each, and the run begins.
"""

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from azpy.devices import driver_problem
from azpy.errors import RunError, SettingsError, SettingsWarning
from azpy.games.names import name_of, refuse_untyped, refuse_untyped_function
from azpy.settings.presets import preset_of
from azpy.settings.run import ABOUT, Settings, combine, default_of
from azpy.settings.toml import read_config

_SIZED = {"network", "simulations", "games_per_iteration", "slots"}  # if all of these are given, nothing is measured
_SUPERVISED = tuple(name for name in ABOUT if name.startswith("supervised_"))
_TRAINS = ("init", "tensorboard", *(name for name, about in ABOUT.items() if about.group in ("learning", "matches")))
NO_MATCHES = 1_000_000  # as match_every: no run has so many iterations
_DEVICE = ("device", "devices", "precision")
_TAKES_TURNS = ("cuda", "tensorrt")  # devices that answer several pipelines one after another
Sizing = Callable[[Settings, Mapping[str, Any]], tuple[dict[str, Any], str]]
Placing = Callable[[Settings], tuple[str, str]]
Piping = Callable[[Callable[[int], Settings]], tuple[int, str]]


def choose(
    typed: dict[str, Any],
    config: str | None = None,
    out: str | None = None,
    sizing: Sizing | None = None,
    placing: Placing | None = None,
    piping: Piping | None = None,
) -> tuple[Settings, str, str]:
    """The settings, the run folder, and a line on the settings from elsewhere; empty if all others are the defaults.

    Args:
        typed: settings by name, with "game" among them unless the file or the run names it.
        config: a TOML file with more settings.
        out: the run folder; runs/GAME without.
        sizing: gives a new run of a game without a preset its settings, from the defaults and those given, and a line.
        placing: gives the device that "auto" means for a run's network, and a line; it gets the settings as they
            would be on CUDA.
        piping: gives the pipelines that "auto" means for a new run on a GPU, and a line; it gets a function that gives
            the settings with a number of pipelines.

    Raises:
        SettingsError: a setting that is unknown or out of range, or no game.
        RunError: a run whose config.toml is damaged.
    """
    in_file = read_config(config) if config is not None else {}
    game = typed.get("game", in_file.get("game"))
    if out == "":
        raise SettingsError("--out is empty: give a folder, or leave it out for runs/GAME")
    out = out if out is not None or game is None else "runs/" + re.sub(r"\W+", "-", game).strip("-")
    so_far = _settings_so_far(Path(out)) if out is not None else {}
    now = in_file | typed
    preset = preset_of((so_far | now).get("game", ""), now)
    settings = combine(so_far or preset, now)
    source = config if "game" in in_file else out
    refuse_untyped(settings.game, typed.get("game"), source, "training", "GAME {} on the command line")
    for name in ("network", "optimizer"):
        source = config if name in in_file else out
        refuse_untyped_function(name, getattr(settings, name), typed.get(name), source, "training")
    placed, where = dict[str, Any](), ""
    if placing is not None and settings.all_devices[0].kind == "auto":
        placed["device"], where = placing(combine(so_far or preset, now, {"device": "cuda"}))
        settings = combine(so_far or preset, now, placed)
    elif placing is not None and "device" not in so_far | now and driver_problem() is None:
        where = "this machine has an NVIDIA GPU, but the run uses the CPU: --device auto takes the faster one"
    layers = so_far or preset, now
    if so_far:
        usual = {"game", *now, *(name for name in so_far if ABOUT[name].auto)}
        kept = {name: value for name, value in so_far.items() if value not in (preset.get(name), default_of(name))}
        said = listed({name: value for name, value in kept.items() if name not in usual})
        said = said and f"kept from {out}/config.toml: {said}"
    elif sizing is not None and not preset_of(settings.game) and not now.keys() >= _SIZED:
        found, why = sizing(settings, now)
        layers, said = (found, now), f"{why}; so {listed(found)}"
    else:
        said = listed({name: value for name, value in preset.items() if name not in now})
        said = said and f"preset for {name_of(settings.game)}: {said}"
        gone = {name: value for name, value in preset_of(settings.game).items() if name not in {*preset, *now}}
        said += f"; it leaves out {listed(gone)}" if gone else ""
    settings = combine(*layers, placed)
    is_auto = (so_far | now).get("pipelines", "auto") == "auto" and not settings.workers
    takes_turns = settings.all_devices[0].kind in _TAKES_TURNS and settings.pipelines > 1
    if piping is not None and is_auto and takes_turns:
        number, why = piping(lambda pipelines: combine(*layers, placed, {"pipelines": pipelines}))
        settings = combine(*layers, placed, {"pipelines": number})
        said = "; ".join(filter(None, (why, said)))
    if placed:  # it decides pipelines and batches on this machine; the run may continue on another
        settings = replace(settings, device="auto")
    return settings, str(out), "; ".join(filter(None, (where, said)))


def _settings_so_far(folder: Path) -> dict[str, Any]:
    """The settings of the run in the folder; empty if there is none."""
    config = folder / "config.toml"
    if config.exists() and not config.is_file():
        raise RunError(f"{config} is not a regular file: restore a good copy")
    try:
        return read_config(config) if config.exists() else {}
    except SettingsError as error:
        raise RunError(f"{error}; correct it, or restore a good copy of the file") from error


def listed(settings: Mapping[str, Any]) -> str:
    """Settings in a line."""
    return ", ".join(f"{name} {value}" for name, value in settings.items())


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
    now, every = settings, settings.match_every or NO_MATCHES
    endless = now.iterations is None and now.minutes is None and now.total_evaluations is None
    rules: list[tuple[tuple[str, ...], bool, str]] = [
        (_TRAINS, collects, "--collect-only trains nothing; it counts once az-train learns from this folder"),
        (_DEVICE, collects and not has_model, "no network plays without --model"),
        (_SUPERVISED, not supervised, "it goes with --supervised"),
        (("window_min",), now.window_min > now.window_max, f"window_max is {now.window_max}"),
        (("match_games",), every >= (now.iterations or NO_MATCHES), "match_every orders no match before the last"),
        (("final_match_games",), endless, "a run without --minutes or --iterations never reaches its last match"),
        (("fast_simulations",), now.full_search_share == 1, "all searches are full: give full_search_share below 1"),
        (("temperature",), now.temperature_plies == 0, "temperature_plies is 0"),
        (("temperature_plies",), now.temperature == now.temperature_final, "temperature_final is the same"),
        (("virtual_loss", "in_flight_share"), now.eval_batch == 1, "eval_batch is 1, so no leaf is in flight"),
        (("slots",), now.deterministic and now.slots > now.games_per_iteration, "an iteration has fewer games"),
    ]
    idle = dict[str, str]()  # the first matching rule counts
    for names, is_idle, why in rules:
        for name in names if is_idle else ():
            if name in given and getattr(settings, name) != default_of(name):
                idle.setdefault(name, why)
    for name, why in idle.items():
        warnings.warn(f"{name} {getattr(settings, name)} has no effect: {why}", SettingsWarning, stacklevel=2)
