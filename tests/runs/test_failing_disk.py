"""A run on a disk of which one operation fails: one line that names a file, and the same command goes on.

A full disk: test_crashes.py. AZPY_STEP=1 has each operation of a run fail, in place of each seventh.
"""

import os
import shutil
from pathlib import Path

import pytest
from test_crashes import check_game, check_run

from azpy.runs.folder import RunFolder
from starts import GAMES, Starts, command

pytestmark = pytest.mark.slow
STEP = int(os.environ.get("AZPY_STEP", "7"))
FAILS = """
import builtins
from pathlib import Path
from failing_disk import FailingDisk

class Disk(FailingDisk):
    def _fails(self, where):
        if fails := super()._fails(where):
            Path({log!r}).write_text(f"{{where}}")
        return fails

builtins.disk = Disk(Path({folder!r}), {number}).in_use()  # kept, and so in use
builtins.disk.__enter__()
"""
# Self-play that time cuts short: games in play are written down.
CUT = """
from azpy.training.budget import Budget
looks = iter(range(6))
Budget.may_play = lambda *_: next(looks, None) is not None
"""
RUNS: dict[str, tuple[bool, list[str], str]] = {  # whether it is deterministic, its flags, and code that it begins with
    "deterministic": (True, [], ""),
    "workers": (False, ["--workers", "1"], ""),
    "cut short": (False, ["--simulations", "30", "--games-per-iteration", "60"], CUT),
}


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
def test_a_run_on_a_failing_disk_says_so_and_goes_on(starts: Starts, tmp_path: Path, kind: str) -> None:
    deterministic, flags, begin = RUNS[kind]
    starts.finish(*command(GAMES[0], tmp_path / "straight", 1))
    number, codes, log = 0, list[int](), tmp_path / "failed"
    while True:
        path = tmp_path / f"run-{number}"
        arguments = [*command(GAMES[0], path, 1, deterministic), *flags]
        end = starts.run(*arguments, before=begin + FAILS.format(folder=str(path), log=str(log), number=number))
        if not log.exists():
            break
        log.unlink()
        codes.append(end.code)
        if end.code == 0:
            assert not end.errors, end
        else:
            assert (end.code, end.errors.count("\n")) == (2, 1), end
            assert end.errors.startswith("az-train: "), end
            assert str(path) in end.errors, end
            assert ".tmp-" not in end.errors, end
            assert "damaged" not in end.errors, end
        starts.finish(*arguments)
        if deterministic:
            assert check_run(path, 1) == check_run(tmp_path / "straight", 1)
        else:
            check_games(path)
        shutil.rmtree(path)
        number += STEP
    assert codes.count(2) > 3
