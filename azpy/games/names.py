"""Games by name.

A *spec* is what a user types: `connect_four`, `connect_four(width=5,height=4)`, `module:Class` for a game written in
Python as an `azpy.Game`, or `open_spiel:quoridor(board_size=5)` for a game of OpenSpiel. Knows nothing of search,
networks or files.
"""

import ast
import importlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any

from azpy import _core
from azpy._core import State
from azpy.errors import SettingsError, did_you_mean, raised
from azpy.game import Game
from azpy.games.openspiel import PREFIX, open_spiel
from azpy.system import current_folder

# In a spec of OpenSpiel: games that are read from a file, and parameters that are paths.
_NAMES_FILES = "[en]fg_game|file|path|root"


def make_game(name: str, **parameters: int | float | str) -> State:
    """Return the start of a game.

    Args:
        name: a built-in game, with or without parameters, such as "connect_four(width=5, height=4)"; a game in Python
            as "module:Class", which imports the module; or "open_spiel:" and the name of an OpenSpiel game.
        parameters: parameters of a built-in game. They replace those in the name.

    Returns:
        A `State`.

    Raises:
        SettingsError: a ValueError: the game or parameter does not exist, the game refuses the board, the class cannot
            be imported or made or does not derive from `azpy.Game`, or azpy cannot search the OpenSpiel game.
        MissingPackageError: OpenSpiel is not installed.

    Example:
        >>> make_game("connect_four", width=5).num_actions
        5
        >>> make_game("go(size=9)").obs_shape[1:]
        (9, 9)
    """
    if ":" in name and parameters:
        raise SettingsError(f"game {name!r} takes no parameters, got {', '.join(parameters)}")
    if name.startswith(PREFIX):
        try:
            return open_spiel(name.removeprefix(PREFIX))
        except SettingsError as error:
            raise SettingsError(f"game {name!r}: {error}") from error
    if is_python_class(name):
        game = python_game(name)
        try:
            return State(game)
        except Exception as error:  # also what its `clone` raises
            raise SettingsError(f"game {name!r} is not an azpy.Game: {type(error).__name__}: {error}") from error
    try:
        return _core.make_game(name, **parameters)
    except ValueError as error:
        known, bare = _core.list_games(), name_of(name)
        what = f"game {name!r:.200}: {error}" if bare in known else f"unknown game {name!r:.200}{_near(bare, known)}"
        raise SettingsError(what) from error


def _near(name: str, known: Iterable[str]) -> str:
    """The end of the error for an unknown game: the classes in a file of this name, or the nearest known game."""
    file = Path(name.removesuffix(".py") + ".py")
    if classes := _classes_in(file):
        module = ".".join(file.with_suffix("").parts)
        return f"; to play the class {' or '.join(classes)} of {file}, give {module}:{classes[0]}"
    return f"{did_you_mean(name, known)} (az-train --list-games lists all games)"


def _classes_in(file: Path) -> list[str]:
    """The classes that a file in the current folder or below it defines; those that derive from a `Game` if any do.

    Read the file without running it: the user typed its name, and did not ask to run it.
    """
    if file.is_absolute() or ".." in file.parts:
        return []
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, ValueError, SyntaxError, RecursionError):
        return []
    classes = [one for one in body if isinstance(one, ast.ClassDef)]
    games = [one for one in classes if any(ast.unparse(base).endswith("Game") for base in one.bases)]
    return [one.name for one in games or classes]


def spec_of(game: str | type[Game]) -> str:
    """The spec of a game that is named, or given as its class.

    Raises:
        SettingsError: neither, or a class that cannot be imported by its name.
    """
    if isinstance(game, str):
        return game
    if not (isinstance(game, type) and issubclass(game, Game)):
        raise SettingsError(f"expected a game's name or a class that derives from azpy.Game, got {game!r}")
    if "." in game.__qualname__:
        raise SettingsError(
            f"{game.__qualname__} is defined inside a function or class: define it at the top of a module"
        )
    return f"{game.__module__}:{game.__qualname__}"


def name_of(spec: str) -> str:
    """The name in a spec, without the parameters."""
    return spec.partition("(")[0].strip()


def differ_in_size(one: str, other: str) -> bool:
    """Whether two games may differ by the size of their boards alone.

    Classes in Python may: they are not looked at, as that would import what nobody typed.
    """
    if ":" in one + other:
        return is_python_class(one) and is_python_class(other)
    if (name := name_of(one)) != name_of(other):
        return False
    sizes = {"size", "width", "height"} & _core.list_games().get(name, {}).keys()
    side = max(length for spec in (one, other) for length in make_game(spec).obs_shape[1:])
    same = set[str]()  # the two games on a square board with this side, if there is one
    for spec in (one, other):
        given = [pair.strip() for pair in spec.strip().partition("(")[2].removesuffix(")").split(",") if pair.strip()]
        kept = [pair for pair in given if pair.partition("=")[0].strip() not in sizes]
        try:
            same.add(make_game(f"{name}({','.join([*(f'{key}={side}' for key in sorted(sizes)), *kept])})").game)
        except SettingsError:
            return False
    return bool(sizes) and len(same) == 1


def is_python_class(spec: str) -> bool:
    """Whether a spec names a class written in Python, which takes an import, and so runs code, to make."""
    return ":" in spec and not spec.startswith(PREFIX)


def only_here(spec: str) -> bool:
    """Return whether a spec names a class or a function that other processes cannot import.

    It is of the main program, of a notebook, or of a module that was made in memory.
    """
    module, _, name = spec.partition(":")
    loaded = sys.modules.get(module)
    return bool(name) and (module == "__main__" or (loaded is not None and loaded.__spec__ is None))


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
        kind = " the Python class" if is_python_class(spec) else ""
        raise _untyped(f"{source}'s game is{kind}", spec, doing, how)


def refuse_untyped_function(name: str, spec: str, typed: str | None, source: object, doing: str) -> None:
    """Refuses a setting that names a function of the user's, `module:function`, if the user did not type it.

    Args:
        name: the setting.
        spec: its value in a file; others than `module:function` are fine.
        typed: its value on the command line; None for none.
        source: the file or folder, for the error.
        doing: what would call the function, for the error.

    Raises:
        SettingsError: a function that was not typed.
    """
    if ":" in spec and spec != typed:
        raise _untyped(f"{source}'s {name} is the Python function", spec, doing, f"--{name} {{}}")


def _untyped(what: str, spec: str, doing: str, how: str) -> SettingsError:
    shown = spec if spec.isprintable() else ascii(spec)
    named = spec.startswith(PREFIX)
    would = "open the files that it names" if named else f"import module {shown.partition(':')[0]}"
    return SettingsError(f"{what} {shown}, and {doing} would {would}: give {how.format(shown)} if you trust it")


def python_game(spec: str) -> Game:
    """An instance of the class that `module:Class` names, not looked at any further.

    The module is imported, which runs its code. Only a class that derives from `azpy.Game` is called.

    Raises:
        SettingsError: a class that cannot be imported or made, or one that does not derive from `azpy.Game`.
    """
    module_name, _, class_name = spec.partition(":")
    if not module_name or not class_name:
        raise SettingsError(f"game {spec!r}: expected module:Class, such as mygame:MyGame")
    if "(" in class_name:
        raise SettingsError(
            f"game {spec!r}: a class takes no parameters here: give {name_of(spec)}, "
            f"or in Python azpy.State({class_name})"
        )
    named = imported("game", spec)
    if isinstance(named, type) and issubclass(named, Game):
        if missing := sorted(named.__abstractmethods__):
            methods = f"method{'s' * (len(missing) > 1)} {', '.join(missing)}"
            raise SettingsError(
                f"game {spec!r}: class {class_name} does not have the {methods}, which a game needs "
                "(docs/start/own_game.md)"
            )
        try:
            return named()
        except Exception as error:  # the user's class can raise anything
            raise SettingsError(f"game {spec!r} cannot be made: {raised(error)}") from error
    what = "a class" if isinstance(named, type) else f"a {type(named).__name__}"
    raise SettingsError(
        f"game {spec!r} is not an azpy.Game: {class_name} is {what}, expected a class that derives from azpy.Game"
    )


def imported(what: str, spec: str) -> Any:
    """Return what `module:name` names. The module is imported, which runs its code.

    Args:
        what: what it is, for errors.
        spec: the text that the user typed.

    Raises:
        SettingsError: the module or name does not exist, or importing the module raises an error.
    """
    module_name, _, name = spec.partition(":")
    if "/" in module_name or module_name.startswith(".") or module_name.endswith(".py"):
        file = PurePath(module_name.removesuffix(".py"))
        there = f"in the folder {file.parent}, give {file.name}" if ".." in file.parts or file.is_absolute() else ""
        asked = there or f"give {'.'.join(file.parts)}"
        raise SettingsError(f"{what} {spec!r}: expected the name of a module, not its file: {asked}:{name}")
    try:
        module = importlib.import_module(module_name)
        if hasattr(module, name):
            return getattr(module, name)
    except Exception as error:  # the user's module can raise anything, and every error is about that file
        # Otherwise the module is there, and imports another one.
        if not isinstance(error, ModuleNotFoundError) or not f"{module_name}.".startswith(f"{error.name}."):
            raise SettingsError(f"{what} {spec!r} cannot be made: {raised(error)}") from error
        near = did_you_mean(module_name, (file.stem for file in Path().glob("*.py")))
        here = current_folder() or "(which was deleted)"
        raise SettingsError(
            f"{what} {spec!r}: no module {error.name}: Python looks in the current folder {here}, in those of "
            f"PYTHONPATH, and among its packages{near}"
        ) from error
    near = did_you_mean(name, (one for one, value in vars(module).items() if callable(value)))
    raise SettingsError(f"{what} {spec!r}: module {module_name} does not have {name!r}{near}")
