"""Games by name, and one view of a position whether it is written in Rust or in Python.

A *spec* is what a user types: `connect_four`, `connect_four(width=5,height=4)`, `module:Class` for a game written in
Python as an `azpy.Game`, or `open_spiel:quoridor(board_size=5)` for a game of OpenSpiel. Knows nothing of search,
networks or files.
"""

import importlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.errors import SettingsError, did_you_mean
from azpy.game import Game
from azpy.games.openspiel import PREFIX, open_spiel

__all__ = [
    "Position",
    "board_of",
    "is_python_class",
    "is_terminal",
    "make_game",
    "make_position",
    "must_be_typed",
    "name_of",
    "observation_of",
    "picture_of",
    "python_game",
    "refuse_untyped",
    "replayed",
    "roll",
    "short_name_of",
    "turn_of",
]

# In a spec of OpenSpiel: games that are read from a file, and parameters that are paths.
_NAMES_FILES = "[en]fg_game|file|path|root"
Position = Any  # a `State`, or an `azpy.Game` written in Python


def make_position(spec: str) -> Position:
    """The start position of the game that `spec` names.

    Args:
        spec: `NAME`, `NAME(key=value,...)`, `module:Class` (looked up in the current directory first), or `open_spiel:`
            and a game of OpenSpiel.

    Returns:
        A `State`, or an instance of the Python class.

    Raises:
        SettingsError: no such game or parameter, a class that cannot be imported or made, or a game of OpenSpiel that
            azpy cannot search.
        MissingPackageError: a game of OpenSpiel where that is not installed.
    """
    if spec.startswith(PREFIX):
        try:
            return open_spiel(spec.removeprefix(PREFIX))
        except SettingsError as error:
            raise SettingsError(f"game {spec!r}: {error}") from error
    if is_python_class(spec):
        return _checked(python_game(spec), spec)
    try:
        return _core.make_game(spec)
    except ValueError as error:
        known = _core.list_games()
        name = spec.partition("(")[0].strip()
        near = "" if name in known else did_you_mean(name, known)
        raise SettingsError(f"game {spec!r}: {error}{near}") from error


def make_game(name: str, **parameters: int | float | str) -> _core.State:
    """The start of a game.

    Args:
        name: of a game in Rust, with parameters in it or without, as in "connect_four(width=5, height=4)"; or
            "module:Class", a game in Python (looked up in the current directory first); or "open_spiel:" and a game of
            OpenSpiel.
        parameters: of a game in Rust, in place of those in the name.

    Returns:
        A `State`; of the last two kinds an `azpy.Game`, which has the names of the games in Python: typed as the
        first, as nearly all are.

    Raises:
        ValueError: a game or parameter that does not exist, a board that the game refuses, or a class that cannot be
            imported or made, or does not derive from `azpy.Game`.
        MissingPackageError: a game of OpenSpiel where that is not installed.

    Example:
        >>> make_game("connect_four", width=5).num_actions
        5
    """
    if ":" not in name:
        return _core.make_game(name, **parameters)
    if parameters:
        raise SettingsError(f"game {name!r} takes no parameters beside its name, got {', '.join(parameters)}")
    return cast(_core.State, make_position(name))


def is_python_class(spec: str) -> bool:
    """Whether a spec names a class written in Python, which takes an import, and so runs code, to make."""
    return ":" in spec and not spec.startswith(PREFIX)


def must_be_typed(spec: str) -> bool:
    """Whether making the game runs code or opens files that the spec names, so that a user has to type it."""
    return is_python_class(spec) or (spec.startswith(PREFIX) and re.search(_NAMES_FILES, spec) is not None)


def refuse_untyped(spec: str, typed: str | None, source: object, doing: str, how: str) -> None:
    """Refuses a game that names code or files, if a file gives it and the user did not type it.

    The file may come from a stranger.

    Args:
        spec: the game that the file names.
        typed: the game that the user typed; None for none.
        source: the file or folder, for the error.
        doing: what would make the game, for the error.
        how: what the user gives to allow it, for the error.

    Raises:
        SettingsError: a game that must be typed and was not.
    """
    if must_be_typed(spec) and spec != typed:
        shown = spec if spec.isprintable() else ascii(spec)
        kind, would = "", "open the files that it names"
        if is_python_class(spec):
            kind, would = "the Python class ", f"import module {shown.partition(':')[0]}"
        raise SettingsError(
            f"{source}'s game is {kind}{shown}, and {doing} would {would}: give {how.format(shown)} if you trust it"
        )


def python_game(spec: str) -> Position:
    """An instance of the class that `module:Class` names, not looked at any further.

    The module is imported, which runs its code. Only a class that derives from `azpy.Game` is called.

    Raises:
        SettingsError: a class that cannot be imported or made, or one that does not derive from `azpy.Game`.
    """
    module_name, _, class_name = spec.partition(":")
    if not module_name or not class_name:
        raise SettingsError(f"game {spec!r}: expected module:Class, such as mygame:MyGame")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        named = getattr(importlib.import_module(module_name), class_name)
        if isinstance(named, type) and issubclass(named, Game):
            return named()
    except Exception as error:  # the user's own module: whatever it raises is about that file
        raise SettingsError(f"game {spec!r} cannot be made: {type(error).__name__}: {error}") from error
    what = "a class" if isinstance(named, type) else f"a {type(named).__name__}"
    raise SettingsError(
        f"game {spec!r} is no azpy.Game: {class_name} is {what}, expected a class that derives from azpy.Game"
    )


def _checked(game: Position, spec: str) -> Position:
    missing = [name for name in ("num_actions", "obs_shape", "max_plies", "turn", "play") if not hasattr(game, name)]
    if missing:
        raise SettingsError(f"game {spec!r} is no azpy.Game: it has no {missing[0]!r}")
    try:
        _core.random_playouts(game, 0)  # looks at its numbers and its shape, and plays nothing
    except Exception as error:  # also what its `clone` raises
        raise SettingsError(f"game {spec!r} is no azpy.Game: {type(error).__name__}: {error}") from error
    return game


def turn_of(position: Position) -> int:
    """0 or 1 for the player to move, `azpy.CHANCE` or `azpy.TERMINAL`."""
    turn = position.turn
    return cast(int, turn() if callable(turn) else turn)


def is_terminal(position: Position) -> bool:
    """True once the game is over."""
    return turn_of(position) == _core.TERMINAL


def replayed(start: Position, actions: Sequence[int]) -> Iterator[Position]:
    """The positions of a game: before each of its actions, and at last after all of them.

    Yields:
        One object that is played on between two of them: clone what is to be kept.

    Raises:
        ValueError: an action that the rules do not allow, from a game in Rust.
    """
    position = start.clone()
    yield position
    for action in actions:
        position.play(int(action))
        yield position


def roll(position: Position, rng: np.random.Generator) -> list[int]:
    """Takes the chance outcomes that are due, in place; returns them."""
    rolled = []
    while turn_of(position) == _core.CHANCE:
        outcomes, weights = zip(*position.chance_outcomes(), strict=True)
        probabilities = np.asarray(weights, np.float64)
        rolled.append(int(rng.choice(outcomes, p=probabilities / probabilities.sum())))
        position.play(rolled[-1])
    return rolled


def observation_of(position: Position) -> NDArray[np.float32]:
    """[C, H, W] float32, as seen by the player to move."""
    encode = getattr(position, "observation", None) or position.encode
    return np.asarray(encode(), dtype=np.float32)


def name_of(position: Position, action: int) -> str:
    """What a person calls an action or a roll at a position; its number where the game has no name for it."""
    try:
        return _writable(position.action_name(action)).strip() or str(action)
    except Exception:  # a game written in Python; many know no names of rolls
        return str(action)


def short_name_of(position: Position, action: int) -> str:
    """An action as people of the game write it in short, SAN in chess; elsewhere as `name_of`."""
    if isinstance(position, _core.State):
        return position.short_name(action)
    return name_of(position, action)  # a game written in Python


def board_of(position: Position, color: bool | None = False) -> str:
    """The position as a person sees it; where a game written in Python cannot show it, why not.

    Args:
        position: of any game.
        color: see `State.render`: None is where standard output is a terminal. Games written in Python have none.
    """
    if isinstance(position, _core.State):
        return position.render(color)
    try:
        return _writable(str(position))
    except Exception as error:  # what only people look at must not end a run
        return f"({type(error).__name__} while it was drawn: {_writable(error)})"


def picture_of(position: Position) -> str | None:
    """The position as an SVG document; None for a game written in Python, which has only its text."""
    return position.to_svg() if isinstance(position, _core.State) else None


def _writable(text: object) -> str:
    """As text that every file takes: half of a surrogate pair is none."""
    return str(text).encode("utf-8", "replace").decode()
