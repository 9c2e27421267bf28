"""config.toml: settings as a file with a comment for each.

A run writes the file into its folder; a user may write one by hand, with any of the settings. The table `made_with` of
a run's file names the version of azpy that wrote the file, and its format.
"""

import functools
import json
import os
import re
import shlex
import textwrap
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from azpy.errors import RunError, SettingsError, SettingsWarning, printable
from azpy.games.names import must_be_typed
from azpy.settings.run import ABOUT, GROUPS, checked, default_of, function_flags
from azpy.system import made_with, plain_text

_FORMAT = 1  # of the files that this version writes; a version refuses files with a higher number
_MADE_WITH = "made_with"  # the table of facts that are no settings
_COMMENT_WIDTH = 100


def parse_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The contents of a TOML file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no TOML.
        RunError: a newer version wrote it, in a format that this one does not know.
    """
    try:
        found = tomllib.loads(plain_text(Path(path).read_bytes()))
    except RecursionError as error:
        raise ValueError("brackets are nested too deeply") from error
    made = facts_of(found)
    number = made.get("format", _FORMAT)
    if not isinstance(number, int) or number > _FORMAT:
        raise RunError(
            f"{path} has format {number!r}, written by azpy {made.get('azpy', '?')}, expected a format up to "
            f"{_FORMAT}, as azpy {made_with()['azpy']} reads: install the newer azpy"
        )
    return found


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The settings of a file, by name.

    From the file of a run, it leaves out names that are no settings here, such as those of an earlier azpy, each with a
    `SettingsWarning`.

    Raises:
        SettingsError: no such file, or an entry that is no setting, of another type or out of range.
        RunError: see `parse_file`.
    """
    return read_run_config(path)[0]


def read_run_config(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """The settings and `facts_of` one file, with the errors of `read_config`."""
    try:
        given = parse_file(path)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error

    here, facts = made_with()["azpy"], facts_of(given)
    writer = facts.get("azpy", here)
    by = "" if writer == here else f" (azpy {writer} wrote the file)"
    written = given.pop(_MADE_WITH, None) is not None
    for name in [name for name in given if name not in ABOUT and written]:
        del given[name]
        text = f"{path}: {name} is not a setting of azpy {here} and is ignored{by}"
        warnings.warn(text, SettingsWarning, stacklevel=2)
    try:
        settings = {name: checked(name, value) for name, value in given.items()}
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None
    return settings, facts


def facts_of(parsed: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the file of a run says of its making besides the settings: versions, its own format, and the run's id."""
    table = parsed.get(_MADE_WITH)
    return table if isinstance(table, dict) else {}


def run_id_of(facts: Mapping[str, Any]) -> str | None:
    """The random id of a run; None for deterministic runs (equal runs have equal files) and old runs."""
    found = facts.get("run_id")
    return found if isinstance(found, str) else None


def repeat_command(folder: str | os.PathLike[str], game: str, flags: Sequence[str] = ()) -> str:
    """The command line that makes the run of a folder again, in a folder beside it.

    It names the run's `game` only if that must be typed, such as a Python class. `flags` are no settings.
    """
    path = path_argument(folder)
    named = [game] if must_be_typed(game) else []
    return shlex.join(["az-train", *named, "--config", f"{path}/config.toml", *flags, "--out", f"{path}-again"])


def path_argument(path: str | os.PathLike[str]) -> str:
    """A path as an argument that no command takes for a flag or a player's name; not quoted."""
    text = str(Path(path))
    return f"./{text}" if re.match(r"-|(random|mcts|uniform)(:|$)", text) else text


def to_toml(
    settings: Mapping[str, Any],
    made_with: Mapping[str, str | int],
    folder: str | os.PathLike[str],
    flags: Sequence[str] = (),
) -> str:
    """The text of config.toml in a run folder; `flags` as for `repeat_command`.

    `settings` are the values that the run uses, by name; None is left out. `made_with` are other facts that the run
    depends on, such as versions; "azpy" is the version that writes the file.
    """
    command = repeat_command(folder, str(settings.get("game", "")), [*function_flags(settings), *flags])
    command = printable(command)
    again = "The same run once more" if settings.get("deterministic") else "Another run with these settings"
    lines = [f"# The settings that this run used. {again}, in a new folder:", f"#   {command}"]
    for group in GROUPS:
        names = [name for name in settings if ABOUT[name].group == group]
        if names:
            lines += ["", f"# --- {group} ---"]
        for name in names:
            lines += ["", *_comment(name)]
            value = "none" if settings[name] is None and default_of(name) is not None else settings[name]
            lines.append(f"# {name} is not set" if value is None else _pair(name, value))
    lines += ["", "# --- what wrote this: no settings ---", "", f"[{_MADE_WITH}]"]
    lines += [_pair(name, value) for name, value in {"format": _FORMAT, **made_with}.items()]
    return "\n".join(lines) + "\n"


@functools.cache  # each run writes all of them at its start
def _comment(name: str) -> list[str]:
    """The help of a setting, then its unit, range, default and the default's source."""
    about, default = ABOUT[name], default_of(name)
    source = "default " + ("none" if default is None else json.dumps(default)) + f" ({about.source})"
    facts = ", ".join(filter(None, (about.unit, about.range, source)))
    wrap = functools.partial(textwrap.wrap, width=_COMMENT_WIDTH, initial_indent="# ", subsequent_indent="# ")
    return wrap(about.help) + wrap(facts)


def _pair(name: str, value: str | int | float | bool) -> str:
    """A JSON string is a TOML string, but for one character."""
    return f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
