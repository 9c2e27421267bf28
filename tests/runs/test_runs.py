"""The run folder: a process killed, a disk full or a byte flipped at any moment loses nothing that was finished."""

import contextlib
import json
import os
import re
import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.errors import RunError
from azpy.runs import storage
from azpy.runs.folder import RunFolder
from azpy.runs.games import frame
from azpy.runs.reader import CHECKPOINT_FILES, StoredRun
from running import program

SETTINGS: dict[str, Any] = {"game": "tic_tac_toe", "network": "1x8", "minutes": None, "learning_rate": 0.002, "seed": 3}
SETTINGS |= {"deterministic": False}


ROW = {"kind": "iteration", "games": 6, "positions": 40, "seconds": 1.5}


def play(games: int, first: int = 0) -> list[azpy.GameRecord]:
    with azpy.SelfPlay(
        "tic_tac_toe", azpy.UniformEvaluator(), slots=4, simulations=8, seed=1, first_game=first, games=games
    ) as self_play:
        return list(self_play)


def folder(path: Path, **settings: Any) -> RunFolder:
    return RunFolder(
        path / "run", SETTINGS | settings, fixed={"game": "why", "network": "its weights are of that shape"}
    )


def save(run: RunFolder, iteration: int, value: float = 1.0) -> Path:
    arrays: dict[str, Any] = {"weight": np.full((3, 2), value, np.float32), "count": np.array(7, np.int64)}
    state = {"iteration": iteration}
    return run.save_checkpoint(iteration, model=arrays, optimizer=arrays, state=state, onnx=b"model" * 100)


def payloads(records: list[azpy.GameRecord]) -> list[bytes]:
    return [record.to_bytes() for record in records]


def test_a_file_and_its_name_are_on_the_device_once_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file reaches the device before it has its name, and the name before the write is done."""
    sizes, names, named = dict[int, int](), dict[int, list[str]](), list[Path]()  # on the device, by inode
    fsync = os.fsync

    def noted(fd: int) -> None:
        about = os.fstat(fd)
        sizes[about.st_ino] = about.st_size
        if stat.S_ISDIR(about.st_mode):
            names[about.st_ino] = os.listdir(fd)
        fsync(fd)

    def checked(move: Any) -> Any:
        def moved(source: Path, target: Path) -> None:
            files = [one for one in (source, *Path(source).rglob("*")) if one.is_file()]
            assert [sizes.get(one.stat().st_ino) for one in files] == [one.stat().st_size for one in files], target
            named.append(Path(target))
            move(source, target)

        return moved

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", checked(os.replace))
    monkeypatch.setattr(os, "rename", checked(os.rename))

    def written() -> set[str]:
        """The names of what was written meanwhile, all on the device."""
        found = {path.name for path in named}
        for path in named:
            on_device = names[path.parent.stat().st_ino]
            assert path.name in on_device
            assert not any(name.startswith(storage.TEMPORARY) for name in on_device)
        named.clear()
        return found

    with folder(tmp_path) as run:
        assert written() == {"config.toml", "journal.bin"}
        run.append(*play(2))
        run.seal(1)
        assert written() == {"000001.npz", "journal.bin"}
        save(run, 1)
        assert written() == {"000001"}
    with storage.output(tmp_path / "export") as file:
        file.write(b"text")
    assert written() == {"export"}


def test_sealing_moves_games_by_id_and_leaves_the_others(tmp_path: Path) -> None:
    games = sorted(play(8), key=lambda game: game.game_id)
    with folder(tmp_path) as run:
        run.append(*reversed(games))
        assert payloads(run.seal(1, range(2, 6))) == payloads(games[2:6])
    with folder(tmp_path) as run:
        assert payloads(run.journal) == payloads([*reversed(games[6:]), *reversed(games[:2])])
        assert run.sealed.iterations() == [1]
        assert payloads(run.sealed.read(1)) == payloads(games[2:6])
        run.seal(2)
        assert run.journal == []
    with np.load(tmp_path / "run/games/000001.npz", allow_pickle=False) as arrays:
        assert arrays["game_id"].tolist() == [game.game_id for game in games[2:6]]
        assert arrays["outcome"].tolist() == [game.outcome for game in games[2:6]]
        assert arrays["length"].tolist() == [len(game) for game in games[2:6]]


def test_games_that_are_sealed_leave_the_journal_at_the_start(tmp_path: Path) -> None:
    journal = tmp_path / "run/games/journal.bin"
    with folder(tmp_path) as run:
        for iteration, first in ((3, 8), (2, 0)):  # those of iteration 2 were lost, and are played again
            run.append(*play(4, first=first))
            before = journal.read_bytes()
            run.seal(iteration)
    journal.write_bytes(before)  # an end between sealing and clearing ...
    with folder(tmp_path) as run:
        assert run.journal == []
    journal.write_bytes(before)
    others = play(3, first=20)
    for game in others:  # ... with games that were kept after it
        with journal.open("ab") as file:
            file.write(frame(game))
        assert game.to_bytes() in journal.read_bytes()
    for _ in range(2):
        with folder(tmp_path) as run:
            assert payloads(run.journal) == payloads(others)
    with folder(tmp_path) as run:
        run.append(play(1, first=30)[0])
    with folder(tmp_path) as run:
        assert [game.game_id for game in run.journal] == [*(game.game_id for game in others), 30]


def two_iterations(path: Path, **settings: Any) -> Path:
    """A run with two sealed iterations, of other games for another path."""
    with RunFolder(path, SETTINGS | settings) as run:
        for iteration in (1, 2):
            run.append(*play(3, first=3 * (iteration - 1)))
            run.seal(iteration)
    return path / "games"


def test_a_missing_game_error_lists_the_games(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        run.append(*play(8))
        run.seal(1, {0, 1, 2, 6})
        run.seal(2, {4})
        with pytest.raises(RunError, match=r"run has no game 9: it has 8 games, from 0 to 7$"):
            StoredRun(run.path).find_game(9)
    (tmp_path / "run/games/journal.bin").unlink()
    with pytest.raises(RunError, match=r"run has no game 3: it has 5 games, from 0 to 6$"):
        StoredRun(tmp_path / "run").find_game(3)


def with_label(path: Path, label: str) -> None:
    """Writes sealed games with another label."""
    with np.load(path) as arrays:
        kept: dict[str, Any] = {name: arrays[name] for name in arrays.files if name != "label"}
    np.savez_compressed(path, **kept | {"label": np.array(label)})


@pytest.mark.parametrize("other", [{}, {"seed": 4}, {"game": "dice_nim"}, {"network": "2x8"}])
def test_sealed_games_of_another_iteration_or_run_are_refused(other: dict[str, Any], tmp_path: Path) -> None:
    games = two_iterations(tmp_path / "run")
    whose, theirs = ("iteration 1", games) if not other else ("iteration 2", two_iterations(tmp_path / "o", **other))
    shutil.copy(theirs / f"00000{whose[-1]}.npz", games / "000002.npz")
    names = ("game", "network", "seed", "deterministic")
    found, wanted = (", ".join(f"{name} {one[name]}" for name in names) for one in (SETTINGS | other, SETTINGS))
    text = (
        rf"000002\.npz holds the games of {whose} of the run with {found}, run_id \w+, expected those of iteration 2 "
    )
    text += rf"of the run with {wanted}, run_id \w+: restore the right file, or delete it to go on without its games"
    with RunFolder(tmp_path / "run", SETTINGS) as run:
        assert len(run.sealed.read(1)) == 3
        for read in (run.sealed.read, run.sealed.ids):
            with pytest.raises(RunError, match=text):
                read(2)
    with pytest.raises(RunError, match=text):
        list(StoredRun(tmp_path / "run").games([2]))


def test_sealed_games_of_other_versions_are_read(tmp_path: Path) -> None:
    games = two_iterations(tmp_path / "run")
    with_label(games / "000001.npz", '{"iteration": 1, "game": "tic_tac_toe", "komi_rule": "area"}')
    with_label(games / "000002.npz", '{"iteration": 2, "seed": 4, "komi_rule": "area"}')
    with RunFolder(tmp_path / "run", SETTINGS) as run:
        assert len(run.sealed.read(1)) == 3
        with pytest.raises(
            RunError, match=r"holds the games of iteration 2 of the run with seed 4, expected .* seed 3"
        ):
            run.sealed.read(2)


def test_free_runs_of_one_seed_are_told_apart(tmp_path: Path) -> None:
    games, theirs = two_iterations(tmp_path / "run"), two_iterations(tmp_path / "other")
    shutil.copy(theirs / "000002.npz", games / "000002.npz")
    with RunFolder(tmp_path / "run", SETTINGS) as run:
        assert len(run.sealed.read(1)) == 3  # as before: the run keeps its id
        run.write_settings()
        with pytest.raises(RunError, match=r"run_id [0-9a-f]{16}, expected .*, run_id [0-9a-f]{16}: restore the right"):
            run.sealed.read(2)
    assert len(list(StoredRun(tmp_path / "run").games([1]))) == 3
    config = tmp_path / "run/config.toml"
    config.write_text(re.sub(r"\nrun_id = .*", "", config.read_text()))
    assert len(list(StoredRun(tmp_path / "run").games([1, 2]))) == 6  # a run of an older version has none
    one, same = (two_iterations(tmp_path / name, deterministic=True) for name in ("a", "b"))
    assert (one / "000001.npz").read_bytes() == (same / "000001.npz").read_bytes()


@pytest.mark.parametrize("label", ["iteration 1 of the run with game tic_tac_toe", "7", "{"])
def test_sealed_games_with_a_wrong_label_are_damaged(label: str, tmp_path: Path) -> None:
    with_label(two_iterations(tmp_path / "run") / "000002.npz", label)
    with RunFolder(tmp_path / "run", SETTINGS) as run:
        assert len(run.sealed.read(1)) == 3
        for read in (run.sealed.read, run.sealed.ids):
            with pytest.raises(RunError, match=r"000002\.npz is damaged"):
                read(2)


@pytest.mark.parametrize("name", [*CHECKPOINT_FILES, storage.INT8_MODEL, "manifest.json"])
def test_a_checkpoint_that_lacks_a_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    """Other damage: test_corruption.py."""
    with folder(tmp_path) as run:
        path = save(run, 1)
        run.add_int8(1, b"int8" * 100)
        if name == storage.INT8_MODEL:
            (path / name).write_bytes(b"int9" * 100)
            with pytest.raises(RunError, match="checkpoints/000001 is damaged"):
                run.load_checkpoint(1)
        (path / name).unlink()
        with pytest.raises(RunError, match=f"{re.escape(name)} is missing"):
            run.load_checkpoint(1)


def test_a_checkpoint_is_whole_wherever_int8_writing_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = storage.write_atomically
    with folder(tmp_path) as run:
        save(run, 1)
        for writes in (0, 1, 2):
            left = [write] * writes

            def cut(path: Path, data: bytes, left: list[Any] = left) -> None:
                if not left:
                    raise KeyboardInterrupt
                left.pop()(path, data)

            monkeypatch.setattr(storage, "write_atomically", cut)
            with contextlib.suppress(KeyboardInterrupt):
                run.add_int8(1, b"int8")
            assert run.load_checkpoint(1).int8 == (b"int8" if writes == 2 else None)
        run.add_int8(7, b"int8")  # such a checkpoint was pruned meanwhile


def test_old_checkpoints_are_pruned_whole(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        for iteration in range(1, 6):
            save(run, iteration)
        run.prune_checkpoints(lambda iteration: iteration in (2, 5))
        assert run.checkpoints() == [2, 5]
        assert {entry.name for entry in (tmp_path / "run/checkpoints").iterdir()} == {"000002", "000005"}


def test_metrics_are_whole_lines_of_iterations_that_are_done(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        for iteration in (1, 2, 3):
            run.append_metrics(ROW | {"iteration": iteration, "loss": 0.5})
    path = tmp_path / "run/metrics.jsonl"
    with path.open("a") as file:
        file.write('{"iteration": 4, "lo')
    with folder(tmp_path) as run:
        run.trim_metrics(2)
        assert run.notices == ["dropped a torn line at the end of metrics.jsonl"]
        run.append_metrics(ROW | {"iteration": 3, "loss": 0.25})
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["iteration"], row["loss"]) for row in rows] == [(1, 0.5), (2, 0.5), (3, 0.25)]


def test_a_run_is_repeatable_if_one_player_collected_its_games(tmp_path: Path) -> None:
    with RunFolder(tmp_path, {"deterministic": True}) as run:
        run.append_metrics({"kind": "collected", "iteration": 1, "seconds": 50.0, "model": "mine"})
        run.append_metrics({"kind": "stopped_collecting", "iteration": 1, "seconds": 70.0})  # names no player
        assert run.is_repeatable()
        run.append_metrics({"kind": "collected", "iteration": 2, "seconds": 90.0, "model": "another"})
        assert not run.is_repeatable()


def test_time_and_collected_games_outlive_repeated_iterations(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        for iteration in (1, 2):
            run.append(play(1, first=iteration)[0])
            run.seal(iteration)
            run.append_metrics({"kind": "collected", "iteration": iteration, "seconds": 50.0, "model": "mine"})
        run.append_metrics(
            {"kind": "collected", "iteration": 3, "seconds": 60.0, "model": "mine"}
        )  # its games are gone
        run.append_metrics({"kind": "stopped_collecting", "iteration": 2, "seconds": 70.0, "evaluations": 9.0})
        for iteration, seconds in ((0, 5.0), (1, 8.0)):
            run.append_metrics(ROW | {"iteration": iteration + 1, "seconds": seconds - 1})
            run.append_metrics({"kind": "stopped", "iteration": iteration, "seconds": seconds})
        run.trim_metrics(0)
        rows = [(row["kind"], row["iteration"], row["seconds"]) for row in run.metrics()]
        collecting = [("collected", 1, 50.0), ("collected", 2, 50.0), ("stopped_collecting", 2, 70.0)]
        assert rows == [*collecting, ("stopped", 1, 8.0)]
        assert run.spent("seconds", "iteration", "match", "stopped") == 8.0
        assert run.spent("seconds", "collected", "stopped_collecting") == 70.0
        assert run.spent("evaluations", "stopped", "stopped_collecting") == 9.0  # older versions did not count them
        assert run.spent("seconds", "match") == 0.0


def test_every_change_of_a_setting_is_in_the_metrics_once(tmp_path: Path) -> None:
    with folder(tmp_path) as run:
        run.append(play(1)[0])
    for rate, written in ((0.001, False), (0.001, True), (0.002, True), (0.001, True), (0.001, True)):
        with folder(tmp_path, learning_rate=rate) as run:
            run.note_changes(4, 1.0)
            if written:  # else it was killed before
                run.write_settings()
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [row["changed"]["learning_rate"] for row in rows] == [[0.002, 0.001], [0.001, 0.002], [0.002, 0.001]]


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    script = f"from azpy.runs.folder import RunFolder; RunFolder({str(tmp_path / 'run')!r}, {{}})"
    with folder(tmp_path):
        assert "is in use by another process" in program(script).errors
    assert program(script) == (0, "", "")


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/thesis.txt").write_text("years of work")
    with pytest.raises(RunError, match="is not a run folder"):
        folder(tmp_path)
    assert [entry.name for entry in (tmp_path / "run").iterdir()] == ["thesis.txt"]
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="file"):
        RunFolder(tmp_path / "file", SETTINGS)


def test_another_run_s_folder_is_refused(tmp_path: Path) -> None:
    with folder(tmp_path):
        pass
    with folder(tmp_path, minutes=5.0, learning_rate=0.001) as run:
        assert "minutes =" not in (tmp_path / "run/config.toml").read_text()  # it may yet be refused
        run.write_settings()
    assert 'game = "tic_tac_toe"\n' in (tmp_path / "run/config.toml").read_text()
    assert "minutes = 5.0\n" in (tmp_path / "run/config.toml").read_text()
    with pytest.raises(RunError, match=r"network '1x8', now '2x8' \(its weights are of that shape\): choose"):
        folder(tmp_path, network="2x8")
    for text in ("game = ", "game = " + 20_000 * "["):
        (tmp_path / "run/config.toml").write_text(text)
        with pytest.raises(RunError, match=r"config\.toml is damaged"):
            folder(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RunError, match="Permission denied"):
        folder(tmp_path)
    tmp_path.chmod(0o700)


def test_nothing_is_pickled() -> None:
    sources = [path.read_text() for path in Path(azpy.__file__).parent.rglob("*.py")]
    assert len(sources) > 10
    # `pickle.dumps` alone is harmless: az-check-game compares positions by it.
    pickled = r"pickle\.loads?\(|pickle\.dump\(|Unpickler|from pickle"
    # An error may advise the user to save a state_dict.
    saved = r"torch\.(load\((?!.*weights_only=True)|save\((?!network\.state_dict\(\), 'weights\.pt'))"
    forbidden = re.compile(rf"{pickled}|{saved}|allow_pickle=True|joblib|import shelve")
    assert not [match for text in sources for match in forbidden.findall(text)]


def test_a_user_s_folder_with_a_temporary_name_is_kept(tmp_path: Path) -> None:
    mine = tmp_path / f"{storage.TEMPORARY}elo.json"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    with pytest.raises(
        RunError, match=rf"{mine} is a folder with a name that azpy needs to write elo.json: move it away"
    ):
        storage.write_atomically(tmp_path / "elo.json", b"{}")
    assert (mine / "thesis.txt").read_text() == "mine"
    assert not (tmp_path / "elo.json").exists()
