"""A board that grows: a run for each size, each but the first begins with the network of the one before.

Each stage is a run folder of its own, so all that holds for a run holds for each: it goes on after a kill, it repeats
bit for bit, and its games stay. The last one is the run that was asked for.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from azpy.errors import SettingsError
from azpy.games.names import make_game, with_side
from azpy.runs.storage import numbered
from azpy.settings.run import Settings, is_own

__all__ = ["Stage", "stages"]

_FORM = "--size-schedule takes sizes such as 7,9, each with a share of the run behind @ if wished: 7@0.3,9"
_LENGTHS = ("minutes", "iterations", "total_evaluations")
_NO_MATCHES = {"match_every": 2**32 - 1, "final_match_games": 2}


class Stage(NamedTuple):
    """One size of the board."""

    name: str  # the size, or the game of that size
    settings: Settings
    folder: str


def stages(settings: Settings, folder: str, schedule: str) -> list[Stage]:
    """The runs that are left to do, the one that was asked for at the end.

    A stage is over once a later one has a checkpoint.

    Args:
        settings: of the run that was asked for: its game has the last size, and its length is that of all stages.
        folder: of that run; the others lie beside it.
        schedule: sizes, ascending: numbers, or names of games, with a share of the run's length behind "@". Sizes
            without a share have equal parts of what is left.

    Raises:
        SettingsError: a schedule that is none, sizes that do not lead to the game, a network that has one size, or
            settings that do not go with a schedule.
    """
    entries = [entry.strip() for entry in re.split(r",(?![^(]*\))", schedule)]
    names, given = zip(*map(_entry, entries), strict=True)
    shares = _shares(given)
    _refuse(settings, names)
    games = [_game(settings.game, name) for name in names[:-1]]
    _check_sizes(settings, [*games, settings.game], names)
    lengths = _lengths(settings, shares)
    plain = (re.sub(r"[^\w.]+", "-", name).strip("-") for name in names[:-1])
    folders = [*(f"{folder}-from-{name}" for name in plain), folder]
    init = None if settings.init in folders else settings.init  # the run's own config.toml names the one before
    found = list[Stage]()
    for name, game, length, path in zip(names, [*games, settings.game], lengths, folders, strict=True):
        changes: dict[str, Any] = {"game": game, "init": init, **length}
        if path != folder:  # the learning rate falls with the last size alone, and strength is measured there
            changes |= {"schedule": "constant", **_NO_MATCHES}
        found.append(Stage(name, replace(settings, **changes), path))
        init = path
    begun = [number for number, stage in enumerate(found) if numbered(Path(stage.folder) / "checkpoints")]
    return found[max(begun, default=0) :]


def _entry(text: str) -> tuple[str, float | None]:
    name, mark, share = text.rpartition("@")
    try:
        part = float(share) if mark else None
    except ValueError:
        part = 0.0
    if not text or (mark and not name) or (part is not None and not 0 < part < 1):
        raise SettingsError(f"{_FORM}; got {text!r}")
    return (name if mark else text), part


def _shares(given: Sequence[float | None]) -> list[float]:
    """The share of each size, those without one included."""
    taken, without = sum(share or 0.0 for share in given), sum(share is None for share in given)
    if taken >= 1 if without else abs(taken - 1) > 1e-6:
        more = f", and {without} of the sizes have none" if without else ""
        raise SettingsError(f"the shares of --size-schedule must add up to 1, got {taken:g}{more}")
    return [(1 - taken) / without if share is None else share for share in given]


def _refuse(settings: Settings, names: Sequence[str]) -> None:
    """Refuses what does not go with a schedule."""
    if len(names) < 2:
        raise SettingsError(f"{_FORM}; got one size")
    if "+conv" not in settings.network or is_own(settings.network):
        dense = "4x48" if is_own(settings.network) else settings.network
        such = f"{dense.removesuffix('+wdl')}+conv{'+wdl' if dense.endswith('+wdl') else ''}"
        raise SettingsError(
            f"a network of {settings.network} has one board size: --size-schedule needs one with +conv, such as "
            f"--network {such}"
        )
    if str(settings.workers).startswith("folder:"):
        raise SettingsError(
            "the az-workers of a folder end with each size: train one size after the other, with --init and the run of "
            "the size before"
        )
    if settings.simulations_start is not None:
        raise SettingsError("simulations_start grows over one run, and --size-schedule makes several: leave one out")


def _game(game: str, name: str) -> str:
    return with_side(game, int(name)) if re.fullmatch(r"[0-9]{1,4}", name) else name


def _check_sizes(settings: Settings, games: Sequence[str], names: Sequence[str]) -> None:
    """Looks whether the games differ by their size alone, and the last one is that of the run."""
    last = make_game(settings.game)
    if make_game(_game(settings.game, names[-1])).obs_shape != last.obs_shape:
        raise SettingsError(
            f"--size-schedule ends with {names[-1]}, and {settings.game} is played on {_size(last.obs_shape)}: "
            "end with its size"
        )
    shapes = [make_game(game).obs_shape for game in games]
    areas = [shape[1] * shape[2] for shape in shapes]
    if any(one >= other for one, other in pairwise(areas)):
        raise SettingsError(f"the sizes of --size-schedule must grow, got {', '.join(map(_size, shapes))}")
    for game, shape in zip(games, shapes, strict=True):
        if shape[0] != shapes[-1][0]:
            raise SettingsError(
                f"{game} has {shape[0]} planes and {settings.game} {shapes[-1][0]}: games of different sizes need the "
                "same planes"
            )


def _size(shape: Sequence[int]) -> str:
    return f"{shape[1]}x{shape[2]}"


def _lengths(settings: Settings, shares: Sequence[float]) -> list[dict[str, float]]:
    """The length of each stage."""
    given = {name: value for name in _LENGTHS if (value := getattr(settings, name)) is not None}
    if not given:
        raise SettingsError("--size-schedule needs the run's length: give minutes, iterations or total_evaluations")
    found: list[dict[str, float]] = [{} for _ in shares]
    for name, value in given.items():
        before: float = 0
        for number, length in enumerate(found):
            until = value * sum(shares[: number + 1]) if number + 1 < len(shares) else value
            until = until if name == "minutes" else round(until)
            length[name] = until - before
            before = until
        if any(length[name] <= 0 for length in found):
            raise SettingsError(f"--size-schedule has {len(shares)} sizes, too many for {value:g} {name}")
    return found
