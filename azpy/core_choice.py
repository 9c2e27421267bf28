"""Which core azpy runs on: its own, or one that has games of one's own as well.

Rust has no stable ABI: a game compiled elsewhere cannot be handed to azpy's own core. So a package with a game in
Rust is a whole core with that game in it (`export_game!` in rust/own), and takes the place of `azpy._core` in this
process. It is found by its name, which begins with `azpy_with_`. AZPY_CORE names another one, or with nothing in it
azpy's own.

Importing this module makes the choice, before anything imports `azpy._core`.
"""

import glob
import importlib
import os
import sys
import warnings
from importlib.machinery import EXTENSION_SUFFIXES

_PREFIX = "azpy_with_"


def installed_cores() -> list[str]:
    """The modules on sys.path whose names say that they are cores.

    The folders are listed, nothing is imported. Entry points would say the same and take much longer to read: every
    installed package has a file of its own for them. A core is an extension module, or a package around one of its own
    name.
    """
    found = set[str]()
    for folder in sys.path:
        for file in glob.glob(f"{glob.escape(folder or '.')}/{_PREFIX}*"):  # noqa: PTH207  in a hurry
            name = os.path.basename(file).partition(".")[0]  # noqa: PTH119
            inside = os.path.join(glob.escape(file), f"{name}.*")  # noqa: PTH118
            if any(each.endswith(tuple(EXTENSION_SUFFIXES)) for each in (file, *glob.glob(inside))):  # noqa: PTH207
                found.add(name)
    return sorted(filter(str.isidentifier, found))


def _choose() -> None:
    asked = os.environ.get("AZPY_CORE")
    names = installed_cores() if asked is None else [asked] if asked else []
    if len(names) > 1:
        raise ImportError(
            f"{' and '.join(names)} are installed, but azpy uses only one core: uninstall all but one, name one in "
            "AZPY_CORE, or export their games from one crate"
        )
    if not names:
        return
    own = importlib.import_module("azpy._core")
    try:
        package = importlib.import_module(names[0])
    except Exception as error:  # whatever its code raises
        hint = "build it again or uninstall it; with an empty AZPY_CORE azpy runs on its own core"
        raise ImportError(f"the core {names[0]} cannot be loaded ({error}): {hint}") from error
    core = sys.modules.get(f"{names[0]}.{names[0]}", package)  # maturin puts the module into a package of its name
    version = getattr(core, "__version__", None)
    if version != own.__version__:
        text = f"the core {names[0]} was built with azpy {version}, but this is azpy {own.__version__}: build it again"
        if asked is not None:
            raise ImportError(text)
        warnings.warn(f"{text}. Its games are missing until then", RuntimeWarning, stacklevel=1)
        return
    sys.modules["azpy._core"] = core
    vars(sys.modules["azpy"])["_core"] = core


_choose()
