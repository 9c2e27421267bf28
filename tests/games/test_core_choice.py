"""Which core azpy runs on: its own, one with games of one's own, or none of two."""

import importlib.machinery
import os
import sys
from pathlib import Path

import pytest

import azpy
from running import Ended, ended

# A core that is azpy's own under another name: what matters here is who is chosen.
FAKE = """
import azpy._core as own
globals().update({name: value for name, value in vars(own).items() if name != "__name__"})
__version__ = VERSION
"""
SAY = """
import azpy, azpy._core
from azpy import _core
print(_core.__name__, azpy._core is _core, len(azpy.list_games()))
"""


def core(folder: Path, name: str, version: str = azpy.__version__, text: str = FAKE) -> None:
    package = folder / f"azpy_with_{name}"
    package.mkdir()
    # As maturin lays out a package that has no Python.
    (package / "__init__.py").write_text(f"from .azpy_with_{name} import *\n")
    (package / f"azpy_with_{name}.py").write_text(text.replace("VERSION", repr(version)))
    # It is told apart from scripts by its extension module; this name is none that Python would load.
    (package / f"azpy_with_{name}.fake{importlib.machinery.EXTENSION_SUFFIXES[-1]}").touch()
    (folder / f"azpy_with_{name}-0.1.0.dist-info").mkdir()


def start(folder: Path, asked: str | None = None, text: str = SAY) -> Ended:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    environment.pop("AZPY_CORE", None)
    if asked is not None:
        environment["AZPY_CORE"] = asked
    return ended([sys.executable, "-c", text], env=environment)


def chosen(folder: Path, asked: str | None = None) -> str:
    done = start(folder, asked)
    assert done.code == 0, done.errors
    assert done.errors == ""
    return done.out.strip()


GAMES = len(azpy.list_games())


def test_azpy_runs_on_its_own_core_where_there_is_no_other(tmp_path: Path) -> None:
    assert chosen(tmp_path) == f"azpy._core True {GAMES}"


def test_an_installed_core_takes_its_place(tmp_path: Path) -> None:
    core(tmp_path, "one")
    assert chosen(tmp_path) == f"azpy_with_one.azpy_with_one True {GAMES}"
    assert chosen(tmp_path, "") == f"azpy._core True {GAMES}"
    assert chosen(tmp_path, "azpy_with_one") == f"azpy_with_one.azpy_with_one True {GAMES}"


def test_two_cores_are_refused_by_name_until_one_is_chosen(tmp_path: Path) -> None:
    core(tmp_path, "one")
    core(tmp_path, "two")
    done = start(tmp_path)
    assert done.code != 0
    last = done.errors.splitlines()[-1]
    assert last.startswith("ImportError: azpy_with_one and azpy_with_two are installed")
    assert chosen(tmp_path, "azpy_with_two") == f"azpy_with_two.azpy_with_two True {GAMES}"
    assert chosen(tmp_path, "") == f"azpy._core True {GAMES}"


def test_a_core_of_another_version_is_refused_with_a_notice(tmp_path: Path) -> None:
    core(tmp_path, "old", "0.0.1")
    done = start(tmp_path)
    assert done.out.startswith("azpy._core True")
    said = f"the core azpy_with_old was built with azpy 0.0.1, but this is azpy {azpy.__version__}: build it again"
    assert said in done.errors
    insisted = start(tmp_path, "azpy_with_old")
    assert insisted.code != 0
    assert insisted.errors.splitlines()[-1] == f"ImportError: {said}"


@pytest.mark.parametrize("error", ["ImportError", "RuntimeError"])
@pytest.mark.parametrize("asked", [None, "azpy_with_broken"])
def test_a_core_that_cannot_be_loaded_names_the_fix(tmp_path: Path, asked: str | None, error: str) -> None:
    core(tmp_path, "broken", text=f"raise {error}('undefined symbol')")
    done = start(tmp_path, asked)
    assert done.code == 1
    assert "the core azpy_with_broken cannot be loaded (undefined symbol)" in done.errors
    assert "with an empty AZPY_CORE azpy runs on its own core" in done.errors
    assert start(tmp_path, "").code == 0


def test_scripts_and_folders_with_such_names_are_not_cores(tmp_path: Path) -> None:
    (tmp_path / "azpy_with_sources/src").mkdir(parents=True)
    (tmp_path / "azpy_with_torch.py").write_text("raise SystemExit('not asked for')\n")
    (tmp_path / "azpy_with_notes").mkdir()
    (tmp_path / "azpy_with_notes/__init__.py").write_text("import azpy; azpy.make_game\n")
    assert chosen(tmp_path) == f"azpy._core True {GAMES}"
