"""A run on a disk that fails once, or stays full: one line that names a file, and the same command goes on.

The failure comes from beneath Python (failing_disk.c), so no operation is left out, whoever makes it. AZPY_STEP=1 has
each operation of a run fail, in place of each seventh.
"""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from test_crashes import check_game, check_run

from azpy.runs.folder import RunFolder
from starts import GAMES, End, Starts, command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs LD_PRELOAD and a C compiler"),
]
HERE, STEP = Path(__file__).parents[1] / "support", int(os.environ.get("AZPY_STEP", "7"))
# Self-play that time cuts short: games in play are written down.
CUT = """
from azpy.training.budget import Budget
looks = iter(range(6))
Budget.may_play = lambda *_: next(looks, None) is not None
"""
RUNS: dict[str, tuple[bool, list[str], str]] = {  # whether it is deterministic, its flags, and code that it begins with
    "new": (True, [], ""),
    "fifth": (True, [], ""),
    "workers": (False, ["--workers", "1"], ""),
    "cut short": (False, ["--simulations", "30", "--games-per-iteration", "60"], CUT),
}


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starts]:
    """Starts of az-train above the C library's functions of failing_disk.c."""
    folder = tmp_path_factory.mktemp("failing")
    library = str(folder / "failing_disk.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, HERE / "failing_disk.c"], check=True)
    with patch.dict(os.environ, LD_PRELOAD=library), Starts(folder) as started:
        yield started


def fails_at(folder: Path, number: int, error: int, lasting: bool) -> str:
    """Code for a start: the operation with this number fails below `folder`; each is a line of the file `.ops`."""
    given = f"{os.fsencode(folder)!r}, {os.fsencode(folder.with_suffix('.ops'))!r}, {number}, {error}, {int(lasting)}"
    return f"import ctypes\nctypes.CDLL(None).fail_at({given})\n"


def failed(folder: Path) -> str:
    """The operation that failed, as failing_disk.c wrote it; empty if none did."""
    lines = folder.with_suffix(".ops").read_text().splitlines()
    return next((line for line in lines if line.endswith("FAILS")), "")


def check_end(end: End, folder: Path, error: int) -> None:
    """A start ended as if nothing had been, or with one line."""
    if end.code == 0:
        assert not end.errors, end
        return
    assert (end.code, end.errors.count("\n")) == (2, 1), end
    assert end.errors.startswith("az-train: "), end
    assert str(folder) in end.errors, end
    assert ".tmp-" not in end.errors, end
    assert "damaged" not in end.errors, end
    said = "no space left" if error == errno.ENOSPC else "the disk or its network failed: put that right, and run"
    assert said in end.errors, end


def check_games(path: Path) -> None:
    """Every game is there once and whole, and no game waits that was sealed."""
    with RunFolder(path, {}) as run:
        games = [game for iteration in run.sealed.iterations() for game in run.sealed.read(iteration)]
        games += run.journal
        ids = [game.game_id for game in games]
        assert len(ids) == len(set(ids)) > 0
        assert not {game.game_id for game in run.in_play()} & set(ids)
        assert run.notices == []
    for game in games:
        check_game(game)


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize(("error", "lasting"), [(errno.EIO, False), (errno.ENOSPC, True)])
def test_a_run_on_a_failing_disk_says_so_and_goes_on(
    starts: Starts, tmp_path: Path, kind: str, error: int, lasting: bool
) -> None:
    deterministic, flags, begin = RUNS[kind]
    iterations, before = 5 if kind == "fifth" else 1, tmp_path / "before"
    if deterministic:
        starts.finish(*command(GAMES[0], tmp_path / "straight", iterations))
        expected = check_run(tmp_path / "straight", iterations)
    if kind == "fifth":
        shutil.copytree(tmp_path / "straight", before)
        shutil.rmtree(before / "checkpoints/000005")
        shutil.copytree(before / "checkpoints/000003", before / "checkpoints/000002")  # the fifth deletes it
        (before / "games/000005.npz").unlink()
    number, ends = 0, list[int]()
    while True:
        path = tmp_path / f"run-{number}"
        if before.exists():
            shutil.copytree(before, path)
        arguments = command(GAMES[0], path, iterations, deterministic)
        end = starts.run(*arguments, *flags, before=begin + fails_at(path, number, error, lasting))
        if not (operation := failed(path)):
            break
        print(operation, end.code, end.errors.strip())
        check_end(end, path, error)
        ends.append(end.code)
        starts.finish(*arguments, *flags)
        if deterministic:
            assert check_run(path, iterations) == expected
        else:
            check_games(path)
        shutil.rmtree(path)
        number += STEP
    print(f"{kind}: {len(ends)} of {number - STEP + 1} operations failed, the run went on after {ends.count(0)}")
    assert 2 in ends
