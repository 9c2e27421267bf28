"""A board that grows: a run for each size, each but the first begins with the network of the one before.

Each stage is a run folder of its own, so all that holds for a run holds for each: it goes on after a kill, it repeats
bit for bit, and its games stay. The last one is the run that was asked for.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from azpy.errors import ModelError, SettingsError
from azpy.games.names import make_game, name_of, with_side
from azpy.runs.folder import RunFolder
from azpy.runs.storage import numbered
from azpy.settings.run import FIXED_SETTINGS, Settings, is_own
from azpy.settings.toml import read_config
from azpy.system import made_with

_FORM = "--size-schedule takes sizes such as 7,9, each with a share of the run behind @ if wished: 7@0.3,9"
_LENGTHS = ("minutes", "iterations", "total_evaluations")
_NO_MATCHES = {"match_every": 2**32 - 1, "final_match_games": 2}


class Stage(NamedTuple):
    """One size of the board."""

    name: str  # the size, or the game of that size; empty without a schedule
    settings: Settings
    folder: str


def stages(settings: Settings, folder: str, schedule: str | None, supervised: bool = False) -> list[Stage]:
    """The runs that are left to do, the one that was asked for at the end.

    A stage is over once a later one has a checkpoint. The last run's config.toml is written before the first stage
    begins, so that a schedule keeps its settings as any run does.

    Args:
        settings: of the run that was asked for: its game has the last size, and its length is that of all stages.
        folder: of that run; the others lie beside it.
        schedule: sizes, ascending: numbers, or names of games, with a share of the run's length behind "@". Sizes
            without a share have equal parts of what is left. None: the run is all there is.
        supervised: whether the network first learns from games of files, which have one size.

    Raises:
        SettingsError: a schedule that is none, sizes that do not lead to the game, a network that has one size, or
            settings that do not go with a schedule.
        RunError: the last run's folder holds another run, or cannot be written.
    """
    if schedule is None:
        return [Stage("", settings, folder)]
    entries = [entry.strip() for entry in re.split(r",(?![^(]*\))", schedule)]
    names, given = zip(*map(_entry, entries), strict=True)
    shares = _shares(given)
    _refuse(settings, names, supervised)
    games = [*(_game(settings.game, name) for name in names[:-1]), settings.game]
    _check_sizes(settings, games, names)
    folder = str(Path(folder))  # without ./ and the / of a completed name
    plain = (re.sub(r"[^\w.]+", "-", name).strip("-") for name in names[:-1])
    folders = [*(f"{folder}-from-{name}" for name in plain), folder]
    stored = [read_config(file) if (file := Path(path, "config.toml")).exists() else {} for path in folders]
    lengths = _lengths(settings, shares, stored[-1])
    # The last run's config.toml names the stage before as its init.
    init = stored[0].get("init") if any(_is_same(settings.init, path) for path in folders) else settings.init
    found = list[Stage]()
    for name, game, length, path, so_far in zip(names, games, lengths, folders, stored, strict=True):
        init = so_far["init"] if _is_same(so_far.get("init"), init) else init  # as it was spelled at first
        changes: dict[str, Any] = {"game": game, "init": init, **length}
        if path != folder:  # the learning rate falls with the last size alone, and strength is measured there
            changes |= {"schedule": "constant", **_NO_MATCHES}
        found.append(Stage(name, replace(settings, **changes), path))
        init = path
    begun = max((number for number, path in enumerate(folders) if numbered(Path(path) / "checkpoints")), default=0)
    if begun + 1 < len(found):
        with RunFolder(folder, asdict(found[-1].settings), FIXED_SETTINGS, made_with()) as run:
            run.write_settings()
    return found[begun:]


def _is_same(one: str | None, other: str | None) -> bool:
    return None not in (one, other) and Path(str(one)).resolve() == Path(str(other)).resolve()


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


def _refuse(settings: Settings, names: Sequence[str], supervised: bool) -> None:
    """Refuses what does not go with a schedule."""
    if supervised:
        raise SettingsError("--supervised is for one size of the board: leave out --size-schedule")
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
    from azpy.learning.network import Network, to_arrays, weights_from  # torch takes seconds to load

    starts = [make_game(game) for game in games]
    last = starts[-1]
    if make_game(_game(settings.game, names[-1])).obs_shape != last.obs_shape:
        raise SettingsError(
            f"--size-schedule ends with {names[-1]}, and {settings.game} is played on {_size(last.obs_shape)}: "
            "end with its size"
        )
    shapes = [start.obs_shape for start in starts]
    if any(one[1] * one[2] >= other[1] * other[2] for one, other in pairwise(shapes)):
        raise SettingsError(f"the sizes of --size-schedule must grow, got {', '.join(map(_size, shapes))}")
    network = Network.of(last, settings.network)
    for game, start in zip(games, starts, strict=True):
        if ":" not in game and name_of(game) != name_of(settings.game):
            raise SettingsError(f"{game} and {settings.game} are two games: --size-schedule takes sizes of one game")
        try:
            weights_from(network, to_arrays(Network.of(start, settings.network)))
        except ModelError as error:
            raise SettingsError(
                f"{game} and {settings.game} need the same planes and the same kinds of actions: {error}"
            ) from error


def _size(shape: Sequence[int]) -> str:
    return f"{shape[1]}x{shape[2]}"


def _lengths(settings: Settings, shares: Sequence[float], stored: Mapping[str, Any]) -> list[dict[str, float]]:
    """The length of each stage; `stored` are the settings of the last run so far."""
    given = {name: value for name in _LENGTHS if (value := getattr(settings, name)) is not None}
    if not given:
        raise SettingsError("--size-schedule needs the run's length: give minutes, iterations or total_evaluations")
    found: list[dict[str, float]] = [{} for _ in shares]
    for name, value in given.items():
        if value == stored.get(name):
            raise SettingsError(
                f"{name} {value:g} is the last size's share, kept from the run so far: give --size-schedule the length "
                f"of all sizes once more, with --{name.replace('_', '-')}"
            )
        before: float = 0
        for number, length in enumerate(found):
            until = value * sum(shares[: number + 1]) if number + 1 < len(shares) else value
            until = until if name == "minutes" else round(until)
            length[name] = until - before
            before = until
        if any(length[name] <= 0 for length in found):
            raise SettingsError(f"--size-schedule has {len(shares)} sizes, too many for {value:g} {name}")
    return found
