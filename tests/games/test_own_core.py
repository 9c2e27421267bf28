"""The example of a game in Rust in a crate of its own: built, installed, and the same game as its twin in Python.

Slow: a whole core is compiled. Nothing is written into the source tree, but for what Cargo keeps under target/.
"""

import gzip
import os
import shutil
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest
from test_own_game import TINY

import azpy
from azpy.web.program import missing
from running import Ended, ended

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "azpy" / "checks" / "template"
BUILDING = 3600  # seconds

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo"),
    pytest.mark.skipif(not EXAMPLE.exists(), reason="needs the source tree"),
]


def cargo_environment() -> dict[str, str]:
    bins = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # maturin
    return os.environ | {
        "PATH": bins,
        "CARGO_TARGET_DIR": str(REPOSITORY / "target" / "example"),  # what is compiled once stays
        "PYO3_PYTHON": sys.executable,
    }


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the build needs, and no more."""
    pytest.importorskip("maturin")
    folder = tmp_path_factory.mktemp("tree")
    for name in ("rust", "benches", "azpy"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("target", "__pycache__"))
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(REPOSITORY / name, folder / name)
    # The same versions of everything as azpy itself.
    shutil.copy(REPOSITORY / "Cargo.lock", folder / "azpy" / "checks" / "template" / "Cargo.lock")
    return folder


@pytest.fixture(scope="module")
def site(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    done = ended([*command, tree / "azpy" / "checks" / "template"], env=cargo_environment(), patience=BUILDING)
    assert done.code == 0, done.out + done.errors
    return folder


def python(site: Path, *arguments: str, core: str | None = None) -> Ended:
    environment = cargo_environment() | {"PYTHONPATH": os.pathsep.join([str(site), str(EXAMPLE), *sys.path])}
    if core is not None:
        environment["AZPY_CORE"] = core
    return ended([sys.executable, *arguments], env=environment, cwd=site, patience=BUILDING)


def said(site: Path, program: str) -> str:
    done = python(site, "-c", textwrap.dedent(program))
    assert done.code == 0, done.errors
    return done.out.strip()


def test_the_game_of_an_own_core_is_listed(site: Path) -> None:
    games = dict(azpy.list_games()) | {"hexapawn": {"width": 3, "height": 3}}
    assert said(site, "import azpy; print(sorted(azpy.list_games()))") == str(sorted(games))
    assert said(site, "import azpy; print(azpy.make_game('hexapawn', width=4).num_actions)") == "36"
    refused = python(site, "-c", "import azpy; azpy.make_game('hexapawn(height=2)')")
    assert "the width must be from 1 to 7 and the height from 3 to 8, got 3 x 2" in refused.errors
    own = python(site, "-c", "import azpy; azpy.make_game('hexapawn')", core="")
    assert 'unknown game "hexapawn"' in own.errors


def test_the_game_matches_its_python_twin_ply_by_ply(site: Path) -> None:
    program = """
        import random
        import azpy, numpy as np
        from hexapawn import Hexapawn

        plies = 0
        for seed in range(500):
            rng, rust, twin = random.Random(seed), azpy.make_game("hexapawn"), Hexapawn()
            while True:
                assert rust.turn == twin.turn() and str(rust) == str(twin)
                assert rust.key() % 2**19 == twin.key()  # above it is the size of the board
                if rust.is_terminal:
                    assert rust.outcome() == twin.outcome()
                    break
                assert rust.legal_actions() == twin.legal_actions()
                names = [twin.action_name(action) for action in twin.legal_actions()]
                assert [rust.action_name(action) for action in rust.legal_actions()] == names
                drawn = azpy.State(twin)
                assert rust.to_svg() == drawn.to_svg()
                for action in rust.legal_actions():
                    assert rust.touches(action) == drawn.touches(action) != []
                np.testing.assert_array_equal(rust.observation(), twin.encode())
                action = rng.choice(rust.legal_actions())
                rust.play(action)
                twin.play(action)
                plies += 1
        print(plies > 2000)
    """
    assert said(site, program) == "True"


def test_az_check_game_finds_nothing_wrong(site: Path) -> None:
    for spec in ("hexapawn", "hexapawn(width=4,height=4)", "hexapawn(width=1,height=5)"):
        done = python(site, "-m", "azpy", "check-game", spec, "--games", "20", "--seconds", "10")
        assert done.code == 0, done.out + done.errors
        assert "1 symmetries have inverses, and games follow 1 of them" in done.out


def test_a_page_without_a_server_plays_it_as_a_server_does(site: Path, tree: Path, tmp_path: Path) -> None:
    if lacks := missing(tree):
        pytest.skip(lacks)
    if shutil.which("node") is None:
        pytest.skip("needs node")
    crate = tree / "azpy" / "checks" / "template"
    program = f"""
        from pathlib import Path
        from pages import compare
        for game in ("hexapawn", "hexapawn(width=4)"):
            compare(game, 25, 1, Path({str(tmp_path)!r}, game), Path({str(crate)!r}))
    """
    assert said(site, program) == ""
    folder = tmp_path / "hexapawn"
    size = sum(len(gzip.compress(file.read_bytes(), 9)) for file in folder.rglob("*") if file.is_file())
    assert size < 350_000  # bytes that a visitor loads


def test_az_export_writes_the_page_of_a_run(site: Path, tree: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    if lacks := missing(tree):
        pytest.skip(lacks)
    assert python(site, "-m", "azpy", "train", "hexapawn", *TINY, "--out", str(tmp_path / "run")).code == 0
    export = ["-m", "azpy", "export", str(tmp_path / "run"), "--web", str(tmp_path / "page")]
    refused = python(site, *export)
    assert "hexapawn is a game of your own: give --crate PATH, the folder of its crate" in refused.errors
    done = python(site, *export, "--crate", str(tree / "azpy" / "checks" / "template"))
    assert done.code == 0, done.errors
    assert {"index.html", "player.json", "weights.safetensors"} <= {
        path.name for path in (tmp_path / "page").rglob("*")
    }


def test_the_unit_tests_of_the_crates_pass(tree: Path) -> None:
    """Those of the example, and those of azpy-py: both are linked with Python, so `cargo test` leaves them out."""
    environment = cargo_environment() | {"LD_LIBRARY_PATH": str(sysconfig.get_config_var("LIBDIR"))}
    for folder, arguments in ((tree / "azpy" / "checks" / "template", []), (tree, ["-p", "azpy-py", "--lib"])):
        done = ended(["cargo", "test", *arguments], cwd=folder, env=environment, patience=BUILDING)
        if "unable to find library -lpython" in done.errors or "cannot find -lpython" in done.errors:
            pytest.skip("this Python has no library to link with")
        assert done.code == 0, done.out + done.errors
        assert "test result: ok" in done.out
