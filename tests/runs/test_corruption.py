"""Flipped bits and cut ends in every file of a run: refused by name in one line, put right and said, or harmless.

config.toml and metrics.jsonl are for people to read and edit and carry no checksum: there a flip may leave a file that
is in order. In config.toml it is then a changed setting, which is said; in metrics.jsonl it is another figure.
"""

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.errors import RunError
from azpy.runs.folder import RunFolder
from azpy.runs.games import sealed_in
from azpy.runs.reader import CHECKPOINT_FILES, StoredRun, read_metrics, read_model
from azpy.settings.run import FIXED_SETTINGS, Settings
from failing_disk import FailingDisk
from starts import GAMES, Starts, command

SETTINGS = asdict(Settings("tic_tac_toe", network="1x8", iterations=4, deterministic=True))
FLIPS, CUTS = 30, 6
FILES = [
    "config.toml",
    "metrics.jsonl",
    "games/journal.bin",
    "games/000002.npz",
    *(f"checkpoints/000002/{name}" for name in (*CHECKPOINT_FILES, "manifest.json")),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder as training leaves it, in the middle of its third iteration."""
    path = tmp_path_factory.mktemp("whole") / "run"
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {"weight": rng.random((9, 7), np.float32), "steps": np.array(7, np.int64)}
    with RunFolder(path, SETTINGS, FIXED_SETTINGS) as run:
        for iteration in (1, 2, 3):
            first = 6 * (iteration - 1)
            for game in azpy.SelfPlay(
                "tic_tac_toe", azpy.UniformEvaluator(), slots=2, simulations=8, seed=1, first_game=first, games=6
            ):
                run.append(game)
            if iteration < 3:
                run.seal(iteration)
                row = {"kind": "iteration", "iteration": iteration, "games": 6, "positions": 40, "seconds": 12.25}
                run.append_metrics(row)
                state = {"iteration": iteration, "next_game": first + 6, "budget": {"elapsed_seconds": 12.25}}
                run.save_checkpoint(iteration, model=arrays, optimizer=arrays, state=state, onnx=rng.bytes(3000))
        row = {"kind": "match", "iteration": 2, "opponent": "random", "score": 0.5, "low": 0.2, "high": 0.8}
        run.append_metrics(row | {"seconds": 13.5})
    return path


def damaged_copies(data: bytes, seed: int) -> Iterator[bytes]:
    """One bit flipped, or an end cut off."""
    rng = random.Random(seed)
    for _ in range(FLIPS):
        position = rng.randrange(len(data))
        yield data[:position] + bytes([data[position] ^ 1 << rng.randrange(8)]) + data[position + 1 :]
    for _ in range(CUTS):
        yield data[: rng.randrange(len(data))]


def read(path: Path) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    """Reads all that a start reads: (contents by kind, notices, changed settings)."""
    with RunFolder(path, SETTINGS, FIXED_SETTINGS) as run:
        checkpoint = run.load_checkpoint(run.checkpoints()[-1])
        contents: dict[str, Any] = {
            "model.safetensors": {name: array.tolist() for name, array in checkpoint.model.items()},
            "optimizer.safetensors": {name: array.tolist() for name, array in checkpoint.optimizer.items()},
            "state.json": checkpoint.state,
            "model.onnx": checkpoint.onnx,
            "journal.bin": [game.to_bytes() for game in run.journal],
            "000002.npz": [game.to_bytes() for game in run.sealed.read(2)],
        }
        run.trim_metrics(2)
        contents["metrics.jsonl"] = run.metrics()
        return contents, run.notices, run.changed


def read_or_refuse(path: Path) -> tuple[dict[str, Any], list[str], dict[str, Any]] | str:
    """What `read` gives, or the text of its refusal."""
    try:
        return read(path)
    except RunError as error:
        return str(error)


def outcomes(whole: Path, path: Path, file: str) -> Counter[str]:
    """What became of every damaged copy of one file; anything that is not in order is an error."""
    expected, _, _ = read(shutil.copytree(whole, path))
    data, metrics = (path / file).read_bytes(), (path / "metrics.jsonl").read_bytes()
    found = Counter[str]()
    for copy in damaged_copies(data, seed=len(file)):
        (path / "metrics.jsonl").write_bytes(metrics)
        (path / file).write_bytes(copy)
        result = read_or_refuse(path)
        if isinstance(result, str):
            assert "\n" not in result
            assert names(file, result), result
            assert any(advice in result for advice in ("delete", "restore", "choose another folder")), result
            found["refused"] += 1
            continue
        contents, notices, changed = result
        different = [kind for kind in expected if contents[kind] != expected[kind]]
        kept, there = contents["journal.bin"], expected["journal.bin"]
        assert set(different) <= {Path(file).name}
        if notices or changed:
            found["said"] += 1
        elif different == ["journal.bin"] and kept == there[: len(kept)]:
            found["shorter"] += 1  # cut exactly between two games
        else:
            found["another figure" if different else "harmless"] += 1
    (path / file).write_bytes(data)
    return found


def names(file: str, error: str) -> bool:
    """Whether an error says which file: for a checkpoint, a file that differs and the folder it is in."""
    if file.startswith("checkpoints/"):
        return "checkpoints/000002 is damaged" in error and (Path(file).name in error or "manifest.json" in error)
    if file == "config.toml" and "holds a run with" in error:
        return True  # a setting that is in order, and another
    return f"{file} is damaged" in error


# What may come of it besides a refusal.
MAY_BE: dict[str, set[str]] = {
    "config.toml": {"said", "harmless"},
    "games/journal.bin": {"said", "shorter"},
    "games/000002.npz": {"harmless"},
    "checkpoints/000002/manifest.json": {"harmless"},
    "metrics.jsonl": {"said", "another figure", "harmless"},
}


@pytest.mark.parametrize("file", FILES)
def test_damage_is_always_reported_as_damage(whole: Path, tmp_path: Path, file: str) -> None:
    found = outcomes(whole, tmp_path / "run", file)
    print(f"\n{file:42} {dict(found)}")
    assert found.total() == FLIPS + CUTS
    assert set(found) <= {"refused"} | MAY_BE.get(file, set())
    assert found["refused"] > 0
    if file == "games/000002.npz":  # such as a file time
        assert found["harmless"] < FLIPS / 4
    if file.endswith("manifest.json"):  # white space
        assert found["harmless"] < 10


USUAL: dict[str, dict[str, Any]] = {  # rows of metrics.jsonl, by kind
    "iteration": {"games": 6, "positions": 40, "seconds": 1.5},
    "match": {"opponent": "random", "score": 1, "low": 1, "high": 1, "seconds": 1.5},
    "worker": {"worker": "w", "since": 0, "seconds": 1.5, "silent": 0, "games": 1, "evaluations_per_second": 1},
    **{kind: {"seconds": 1.5} for kind in ("collected", "stopped", "stopped_collecting")},
    "settings": {"seconds": 1.5, "changed": {}},
    "imported": {"seconds": 1.5, "files": []},
}


def rows_to_refuse() -> Iterator[tuple[bytes, str]]:
    """A line of metrics.jsonl, and what is said of it."""
    yield from ((text, "") for text in (b"[]", b"null", b"{}", b"[" * 100_000, b"\xff\xfe", b"\0" * 50))
    for kind, usual in USUAL.items():
        row = {"kind": kind, "iteration": 1} | usual
        for name in row:
            if name != "files":
                yield json.dumps({key: value for key, value in row.items() if key != name}).encode(), ""
        for value in ("1e999", "NaN", '"1"', "[]", "1" + 400 * "0"):
            yield json.dumps(row).replace("1.5", value).encode(), "seconds is"
    row = {"kind": "iteration", "iteration": 1} | USUAL["iteration"]
    yield json.dumps(row | {"draws": "x"}).encode(), "draws is 'x'"
    yield json.dumps({"kind": "imported", "iteration": 1, "seconds": 1.5, "files": [7]}).encode(), r"files is \[7\]"


def test_rows_of_metrics_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    """They were traces of the report, or of a run that goes on."""
    path = tmp_path / "metrics.jsonl"
    usual = b"".join(json.dumps({"kind": kind, "iteration": 1} | row).encode() + b"\n" for kind, row in USUAL.items())
    path.write_bytes(usual)
    assert len(read_metrics(path)[0]) == len(USUAL)
    for line, said in rows_to_refuse():
        path.write_bytes(usual + line + b"\n")
        advice = f"damaged in line {len(USUAL) + 1}: {said}.*; correct that line, or delete it"
        with pytest.raises(RunError, match=advice):
            read_metrics(path)


@pytest.mark.parametrize("text", ["[]", "5", '"x"'])
def test_a_manifest_of_another_form_is_damage(text: str, whole: Path, tmp_path: Path) -> None:
    path = shutil.copytree(whole, tmp_path / "run")
    (path / "checkpoints/000002/manifest.json").write_text(text)
    said = r"is damaged: manifest\.json cannot be read \(it is not a table\)"
    with RunFolder(path, SETTINGS, FIXED_SETTINGS) as run, pytest.raises(RunError, match=said):
        run.add_int8(2, b"model")
    with pytest.raises(RunError, match=said):
        read_model(path / "checkpoints/000002")


def test_a_config_without_a_fixed_setting_is_damaged(whole: Path, tmp_path: Path) -> None:
    path = shutil.copytree(whole, tmp_path / "run")
    (path / "config.toml").write_text("")
    with pytest.raises(RunError, match=r"config\.toml is damaged: game is missing; correct it"):
        RunFolder(path, SETTINGS, FIXED_SETTINGS)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def edited(old: str, new: str) -> Callable[[Path], object]:
    """Has the first `old` of a text replaced by `new`."""
    return lambda path: path.write_text(path.read_text().replace(old, new, 1))


# File -> how it is damaged, what the error says, how a user follows its advice, what the next start says.
ADVICE: dict[str, tuple[Callable[[Path], object], str, Callable[[Path], object], str]] = {
    "config.toml": (
        edited("\npasses = ", "\npasses = -"),
        "config.toml: passes must be more than 0, got -1.0; correct it",
        edited("\npasses = -", "\npasses = "),
        "resuming after iteration 3",
    ),
    "games/journal.bin": (flip, "journal.bin is damaged at byte ", Path.unlink, "resuming after iteration 3"),
    "games/000003.npz": (flip, "000003.npz is damaged", Path.unlink, "continuing without the games of iteration 3"),
    "checkpoints/000003/model.onnx": (
        flip,
        "checkpoints/000003 is damaged: model.onnx differs",
        lambda path: shutil.rmtree(path.parent),
        "resuming after iteration 2",
    ),
    "metrics.jsonl": (
        edited('"kind": "iteration"', '"kind": iteration"'),
        "metrics.jsonl is damaged in line 1",
        lambda path: path.write_text(path.read_text().partition("\n")[2]),
        "continuing without the metrics of iteration 1",
    ),
}


def test_following_the_advice_of_an_error_makes_a_run_go_on(starts: Starts, tmp_path: Path) -> None:
    straight, arguments = tmp_path / "straight", command(GAMES[0], tmp_path / "run", 4)
    starts.finish(*command(GAMES[0], straight, 4))
    for file, (damage, said, repair, notice) in ADVICE.items():
        path = shutil.copytree(straight, tmp_path / "run")
        shutil.rmtree(path / "checkpoints/000004")
        with RunFolder(path, {}) as run:
            games = run.sealed.read(4)
            (path / "games/000004.npz").unlink()
            for game in games[:4]:
                run.append(game)
        damage(path / file)
        before = (path / file).read_bytes()
        end = starts.run(*arguments)
        assert (end.code, end.errors.count("\n")) == (2, 1), end.errors
        assert end.errors.startswith("az-train: ")
        assert said in end.errors
        assert (path / file).read_bytes() == before
        repair(path / file)
        end = starts.finish(*arguments)
        assert notice in end.output
        with RunFolder(path, {}) as run:
            rows = [json.dumps([row["kind"], row["iteration"], row.get("opponent")]) for row in run.metrics()]
            ids = [game.game_id for i in run.sealed.iterations() for game in run.sealed.read(i)]
        assert len(rows) == len(set(rows))
        assert len(ids) == len(set(ids))
        shutil.rmtree(path)


def change(path: Path) -> None:
    """All that a run does to its folder."""
    changed = SETTINGS | {"learning_rate": 0.1}
    with RunFolder(path, changed, FIXED_SETTINGS) as run:
        run.note_changes(2, 20.0)
        run.write_settings()
        run.trim_metrics(1)
        run.append_metrics({"kind": "stopped", "iteration": 2, "seconds": 21.0})
        run.append(*run.sealed.read(2)[:1])
        run.seal(3, [record.game_id for record in run.journal[:-1]])
        arrays: dict[str, Any] = {"weight": np.zeros(3, np.float32)}
        run.save_checkpoint(3, model=arrays, optimizer=arrays, state={"iteration": 3}, onnx=b"model")
        run.add_int8(3, b"int8")
        run.prune_checkpoints(lambda iteration: iteration != 1)
        run.replace("report.html", "page")
        assert (run.checkpoints(), run.newest_game(), run.is_repeatable()) == ([2, 3], 12, False)
        assert len(run.games_hash()) == len(run.weights_hash(3)) == 64
        assert run.spent("seconds", "iteration") == 12.25


def look(path: Path) -> None:
    """All that readers do."""
    run = StoredRun(path)
    assert run.iteration == 2
    assert len(list(run.games(run.sealed_iterations()))) == 12
    assert [run.find_game(game)[0] for game in (3, 13)] == [1, None]
    assert len(run.model(2)) == len(read_model(path / "checkpoints/000001")) == 3000
    assert len(sealed_in(path / "games/000001.npz", 1 << 20)) == 6


def spend(path: Path) -> None:
    """Makes a run folder."""
    with RunFolder(path, SETTINGS, FIXED_SETTINGS) as run:
        run.append_metrics({"kind": "stopped", "iteration": 0, "seconds": 1.0})


@pytest.mark.parametrize("use", [change, look, spend])
def test_disk_errors_name_the_fix_and_keep_existing_files(
    use: Callable[[Path], None], whole: Path, tmp_path: Path
) -> None:
    number, refused = 0, 0
    while True:
        path = tmp_path / str(number)
        if use is not spend:
            shutil.copytree(whole, path)
        disk = FailingDisk(path, number)
        try:
            with disk.in_use():
                use(path)
        except RunError as error:
            text, refused = str(error), refused + 1
            assert str(path) in text
            assert ".tmp-" not in text
            assert "damaged" not in text  # nobody should delete a file because the disk failed
            known = "the disk or its network failed: repair it and run again", "free some space and run again"
            assert text.endswith((*known, "another process")), text
        with RunFolder(path, SETTINGS, FIXED_SETTINGS) as run:  # the next start lacks nothing
            if use is not spend:
                sealed = [game for iteration in run.sealed.iterations() for game in run.sealed.read(iteration)]
                assert {game.game_id for game in (*sealed, *run.journal)} == {*range(18)}
                assert 2 in run.checkpoints()
                assert all(run.load_checkpoint(one).state["iteration"] == one for one in run.checkpoints())
        if number >= disk.count:
            break
        number += 1
    assert refused > (80 if use is change else 20)
    if use is change:  # some clean-up may fail and is done by the next start
        assert number - refused < 10


TEMPORARY: dict[str, Callable[[Path, Path], object]] = {  # makes something of this name; the other one is a folder
    "file": lambda path, _: path.touch(),
    "folder": lambda path, _: (path / "in it").mkdir(parents=True),
    "link to a folder": lambda path, other: path.symlink_to(other),
    "link to itself": lambda path, _: path.symlink_to(path),
    "link to nothing": lambda path, other: path.symlink_to(other / "nothing"),
    "pipe": lambda path, _: os.mkfifo(path),
}


@pytest.mark.parametrize("kind", TEMPORARY)
@pytest.mark.parametrize("where", [".tmp-config.toml", "games/.tmp-journal.bin", "checkpoints/.tmp-000003"])
def test_temporary_files_are_deleted(where: str, kind: str, whole: Path, tmp_path: Path) -> None:
    path, other = shutil.copytree(whole, tmp_path / "run"), tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    TEMPORARY[kind](path / where, other)
    with RunFolder(path, SETTINGS, FIXED_SETTINGS) as run:
        assert not os.path.lexists(path / where)
        run.write_settings()
    assert (other / "kept").exists()


def test_files_that_cannot_be_deleted_are_named(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shutil.copytree(whole, tmp_path / "run")
    entry = path / "games/.tmp-x"
    entry.touch()
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: Path("/proc/self/nothing").stat())
    with pytest.raises(RunError, match=rf"{entry} is left over from .*\(No such file or directory\): delete it and"):
        RunFolder(path, SETTINGS, FIXED_SETTINGS)
