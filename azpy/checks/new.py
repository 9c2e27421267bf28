"""A game to begin with: a folder with the files of `template`, under a name of the user's."""

import importlib.util
import keyword
import re
from pathlib import Path

from azpy import _core
from azpy.errors import SettingsError
from azpy.runs import storage

_TEMPLATE = Path(__file__).parent / "template"
_PYTHON = ("hexapawn.py", "test_hexapawn.py")
_RUST = ("Cargo.toml", "pyproject.toml", "src/lib.rs")
_SOURCES = Path(__file__).parents[2] / "rust"  # where azpy runs from its source tree
_REPOSITORY = "https://github.com/azpy/azpy"


def new_game(name: str, rust: bool = False) -> str:
    """Write a game in Python and its test into a new folder, and a crate with the same game in Rust on request.

    Args:
        name: of the folder and the module; the class has it in CamelCase.
        rust: whether to write the crate too.

    Returns:
        The game as commands take it, such as "my_game:MyGame".

    Raises:
        SettingsError: a name that cannot be a module's, or that another module or game has.
        RunError: the folder exists, or cannot be written.
    """
    if not re.fullmatch("[a-z][a-z0-9_]{0,49}", name) or keyword.iskeyword(name):
        raise SettingsError(f"game {name!r}: expected small letters, digits and _, such as my_game")
    found = importlib.util.find_spec(name)
    if name in _core.list_games() or (found is not None and found.origin is not None):  # a folder has no origin
        raise SettingsError(f"{name} is the name of a game or a Python module already: choose another one")
    class_name = "".join(word.capitalize() for word in name.split("_"))
    words = set(re.findall(r"\w+", "".join((_TEMPLATE / file).read_text(encoding="utf-8") for file in _RUST)))
    if keyword.iskeyword(class_name) or class_name in words - {"Hexapawn"}:
        raise SettingsError(f"{name} makes a class {class_name}, a word that the code needs: choose another name")
    with storage.output_folder(name) as folder:
        for file in (*_PYTHON, *(_RUST if rust else ())):
            text = (_TEMPLATE / file).read_text(encoding="utf-8")
            for crate in ("core", "own"):
                source = f'{{ git = "{_REPOSITORY}", tag = "v{_core.__version__}" }}'
                if (_SOURCES / crate).is_dir():
                    source = f'{{ path = "{(_SOURCES / crate).as_posix()}" }}'
                text = text.replace(f'{{ path = "../../../rust/{crate}" }}', source)
            path = folder / file.replace("hexapawn", name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.replace("hexapawn", name).replace("Hexapawn", class_name), encoding="utf-8")
    return f"{name}:{class_name}"
