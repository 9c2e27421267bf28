"""az-export: what it writes is what the records say, played again; and a file is whole or not there."""

import errno
import io
import json
import os
import re
import shutil
import stat
import subprocess
import tty
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.cli.export import main
from azpy.errors import RunError
from azpy.runs import exports
from azpy.runs.folder import RunFolder
from azpy.runs.games import SealedGames
from azpy.runs.imports import Filters, import_games
from azpy.runs.reader import StoredRun
from azpy.settings import Settings
from models import make_model
from oracles import Countdown
from records import GAMES, records, slow_samples, start_of
from running import az, ended
from training_runs import collect


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four iterations of ten games."""
    return collect(tmp_path_factory.mktemp("runs") / "run", "tic_tac_toe", 4, games_per_iteration=10).path


CHESS = azpy.make_game("chess", max_plies=40)
GO = azpy.make_game("go(size=5)")


def numbered(played: list[azpy.GameRecord]) -> list[tuple[int, azpy.GameRecord]]:
    return [(1, record) for record in played]


@pytest.mark.parametrize("game", GAMES)
def test_npz_equals_a_slow_replay(game: str, tmp_path: Path) -> None:
    played, start = records(GAMES[game], 6), azpy.State(start_of(GAMES[game]))
    rows = exports.to_npz(tmp_path / "x.npz", start, numbered(played))
    with np.load(tmp_path / "x.npz", allow_pickle=False) as file:
        found = dict(file)
    expected = [sample for record in played for sample in slow_samples(start, record, 0.0, symmetries=False)]
    assert rows == len(expected) > 6
    observations, legal, policies, values = (np.stack(column) for column in zip(*expected, strict=True))
    assert found["observations"].tobytes() == observations.astype(np.float32).tobytes()
    assert np.array_equal(found["legal"], legal)
    np.testing.assert_allclose(found["policy_targets"], policies, rtol=1e-6)
    assert np.array_equal(found["value_targets"], values)
    searched = [(record, ply) for record in played for ply in np.flatnonzero(record.flags & 1)]
    assert found["game_id"].tolist() == [record.game_id for record, _ in searched]
    assert found["ply"].tolist() == [ply for _, ply in searched]
    assert found["root_values"].tolist() == [record.root_values[ply] for record, ply in searched]
    shapes = {"observations": start.obs_shape, "legal": (start.num_actions,), "policy_targets": (start.num_actions,)}
    for name, dtype in (("observations", "f4"), ("legal", "?"), ("policy_targets", "f4"), ("value_targets", "f4"),
                        ("root_values", "f4"), ("game_id", "i8"), ("ply", "i4")):  # fmt: skip
        assert found[name].dtype == np.dtype(dtype)
        assert found[name].shape == (rows, *shapes.get(name, ()))


@pytest.mark.parametrize("game", GAMES)
def test_json_lines_hold_the_whole_record_with_names(game: str, tmp_path: Path) -> None:
    played, start = records(GAMES[game], 4), azpy.State(start_of(GAMES[game]))
    assert exports.to_jsonl(tmp_path / "x.jsonl", start, numbered(played)) == 4
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    for line, record in zip(map(json.loads, lines), played, strict=True):
        plies = line["plies"]
        search = [action for row in plies for action in row.get("search", [])]
        assert (line["game_id"], line["seed"], line["outcome"]) == (record.game_id, record.seed, record.outcome)
        assert [row["action"] for row in plies] == record.actions.tolist()
        assert [row["player"] for row in plies] == record.players.tolist()
        assert [row["searched"] for row in plies] == (record.flags & 1 > 0).tolist()
        assert (
            np.array([row.get("root_value", 0) for row in plies], np.float32).tobytes() == record.root_values.tobytes()
        )
        assert [int(row.get("network", "0"), 16) for row in plies] == record.networks.tolist()
        assert [action["action"] for action in search] == record.legal.tolist()
        assert [action["visits"] for action in search] == record.visits.tolist()
        assert np.array([action["prior"] for action in search], np.float32).tobytes() == record.priors.tobytes()
        state = start.clone()
        for row in plies:
            assert row["name"] == state.action_name(row["action"])
            state.play(row["action"])


def test_pgn_tags_hold_all_known_facts_of_a_game(tmp_path: Path) -> None:
    played = records(CHESS, 3, simulations=2)
    exports.to_pgn(tmp_path / "x.pgn", CHESS, numbered(played), 'a "run" \\')
    games = re.findall(r"((?:^\[.*\]\n)+)\n((?:^[^\[\n].*\n)+)", (tmp_path / "x.pgn").read_text(), re.MULTILINE)
    for (lines, moves), record in zip(games, played, strict=True):
        tags = dict(re.findall(r'^\[(\w+) "(.*)"\]$', lines, re.MULTILINE))
        assert list(tags)[:7] == ["Event", "Site", "Date", "Round", "White", "Black", "Result"]
        assert (tags["Event"], tags["Round"]) == (r"a \"run\" \\", f"1.{record.game_id}")
        assert (tags["TimeControl"], tags["Termination"]) == ("-", "unterminated" if record.capped else "normal")
        assert tags["Result"] == moves.split()[-1] == {1.0: "1-0", -1.0: "0-1", 0.0: "1/2-1/2"}[record.outcome]
        assert max(map(len, moves.splitlines())) <= 80


@pytest.mark.parametrize(
    ("name", "start", "text", "told"),
    [
        (
            "a.pgn",
            CHESS,
            '[Event "Cup"]\n[Site "?"]\n[White "Ann"]\n[Black "\u014cno"]\n[Date "2001.02.03"]\n[Result "0-1"]\n\n'
            "1. f3 e5 2. g4 Qh4# 0-1\n",
            ['[Event "Cup"]', '[White "Ann"]', '[Black "\u014cno"]', '[Date "2001.02.03"]', '[Site "?"]'],
        ),
        (
            "a.sgf",
            GO,
            "(;SZ[5]KM[7.5]PB[Ann]PW[\u014cno]DT[2001-02-03]EV[Cup]RE[B+R]"
            ";B[aa];W[bb];B[cc];W[dd];B[ee];W[ab];B[bc];W[cd];B[de];W[ae])",
            ["PB[Ann]", "PW[\u014cno]", "DT[2001-02-03]", "EV[Cup]"],
        ),
    ],
)
def test_imported_games_keep_their_players_and_dates(
    name: str, start: azpy.State, text: str, told: list[str], tmp_path: Path
) -> None:
    """Records have no names: an export had networks in their place."""
    (tmp_path / name).write_text(text)
    found, sealed = import_games([str(tmp_path / name)], start, 0, Filters()), SealedGames(tmp_path / "games", {})
    (tmp_path / "games").mkdir()
    sealed.write(0, found.records, found.tags)
    games = [(0, game) for game in sealed.read(0)]
    out, write = (tmp_path / "out", exports.to_sgf) if start is GO else (tmp_path / "x.pgn", exports.to_pgn)
    write(out, start, games, "a run", sealed.tags(0))
    written = (out / "000000.sgf" if start is GO else out).read_text()
    assert [one for one in told if one not in written] == []
    assert "network" not in written
    # A run's file keeps them on its way into another run; a stranger's may hold anything.
    sealed.write(1, found.records, [json.dumps({"Event": 3, "PB": None, "x": "y", "EV": 999 * "x"})])
    again = [import_games([str(sealed.path(number))], start, 0, Filters()).tags for number in (0, 1)]
    assert again == [found.tags, [json.dumps({"EV": 200 * "x"})]]
    sealed.write(1, found.records)
    assert sealed.tags(1) == {}


@pytest.mark.parametrize("names", [{}, {0: "", 1: " \n"}])
def test_an_action_without_a_name_goes_by_its_number(names: dict[int, str]) -> None:
    class Nameless(Countdown):
        def action_name(self, action: int) -> str:
            return names[action]

    start = azpy.State(Nameless(4))
    with azpy.SelfPlay(start, azpy.UniformEvaluator(), slots=2, simulations=8, games=1) as games:
        record = next(games)
    named = [ply["name"] for ply in exports.game_as_dict(start, record)["plies"]]
    assert named == [str(action) for action in record.actions]


def test_iterations_are_chosen(collected: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "x.jsonl"
    for chosen, expected in (("2", {2}), ("2-3", {2, 3}), ("1-4", {1, 2, 3, 4})):
        assert main([str(collected), "--jsonl", str(target), "--iterations", chosen]) == 0
        assert {json.loads(line)["iteration"] for line in target.read_text().splitlines()} == expected
    assert f"40 games to {target}" in capsys.readouterr().out


@pytest.mark.parametrize("write", ["npz", "jsonl"])
def test_a_failure_leaves_what_was_there(write: str, tmp_path: Path) -> None:
    class Breaks(Countdown):
        def play(self, action: int) -> None:
            if self.heap < 6:
                raise ValueError("the counters are gone")
            super().play(action)

        def clone(self) -> Any:
            return Breaks(self.heap, self.player)

    target = tmp_path / "x"
    target.write_text("before")
    with pytest.raises(ValueError, match="the counters are gone"):
        getattr(exports, f"to_{write}")(target, azpy.State(Breaks(12)), numbered(records(Countdown(12), 2)))
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]
    assert target.read_text() == "before"


def test_games_without_searches_are_counted_by_themselves(collected: Path, tmp_path: Path, printed: Any) -> None:
    run, npz = Path(shutil.copytree(collected, tmp_path / "run")), tmp_path / "x.npz"
    (run / "games/000001.npz").unlink()
    start, moves = StoredRun(run).start, [0, 3, 1, 4, 2]
    imported = [azpy.GameRecord.of_actions(start, moves, 1.0, game_id=game, seed=0) for game in range(10)]
    with RunFolder(run, {}) as folder:
        folder.sealed.write(1, imported)
    said = printed(main, [str(run), "--npz", str(npz)])
    with np.load(npz) as file:
        rows = len(file["ply"])
        assert len(set(file["game_id"].tolist())) == 30
    assert said == f"wrote {rows} positions of 30 games (10 others had no full searches) to {npz}\n"
    said = printed(main, [str(run), "--npz", str(npz), "--iterations", "2-4"])
    assert said == f"wrote {rows} positions of 30 games to {npz}\n"


@pytest.mark.parametrize("flag", ["--npz", "--jsonl", "--onnx"])
def test_a_pipe_is_written_into_and_stays_a_pipe(flag: str, with_models: Path, tmp_path: Path) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    given = [str(with_models), *(["--iterations", "1"] if flag != "--onnx" else [])]
    assert main([*given, flag, str(file)]) == 0
    assert file.stat().st_size < 60_000  # a pipe holds 64 KiB
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        assert main([*given, flag, str(pipe)]) == 0
        found = reader.read()
    assert pipe.is_fifo()
    if flag != "--npz":  # that one also says where its arrays lie
        assert found == file.read_bytes()
        return
    with np.load(io.BytesIO(found)) as one, np.load(file) as other:
        assert {name: one[name].tobytes() for name in one} == {name: other[name].tobytes() for name in other}


def test_a_replaced_file_keeps_its_link_mode_and_neighbours(with_models: Path, tmp_path: Path) -> None:
    folder, mine, link = tmp_path / "elsewhere", tmp_path / "mine", tmp_path / "x"
    folder.mkdir()
    file = folder / "file"
    link.symlink_to(file)
    mine.write_text("before")
    (folder / ".tmp-file").symlink_to(mine)  # a user's own: it is not written through
    for mode in (None, 0o600, 0o666):
        if mode is not None:
            file.write_text("before")
            file.chmod(mode)
        assert main([str(with_models), "--onnx", str(link)]) == 0
        assert link.is_symlink()
        assert file.read_bytes() == make_model(weight=2)
        assert mode in (None, stat.S_IMODE(file.stat().st_mode))
    assert mine.read_text() == "before"
    assert sorted(entry.name for entry in folder.iterdir()) == [".tmp-file", "file"]


def test_a_device_is_written_into_and_stays_a_device(with_models: Path, tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    try:
        (tmp_path / "terminal").symlink_to(os.ttyname(theirs))
        tty.setraw(theirs)
        os.set_blocking(ours, False)
        assert main([str(with_models), "--onnx", str(tmp_path / "terminal")]) == 0
        assert os.read(ours, 1 << 16) == make_model(weight=2)
        assert stat.S_ISCHR((tmp_path / "terminal").stat().st_mode)
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(
    ("flag", "target"), [("--jsonl", "/dev/stdout"), ("--npz", "/proc/self/fd/1"), ("--npz", "log")]
)
def test_a_file_that_stdout_appends_to_keeps_what_it_held(
    flag: str, target: str, collected: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_text("precious\n")
    with log.open("a") as appended:
        done = ended(az("export", collected, flag, target), cwd=tmp_path, stdout=appended)
    held, _, added = log.read_bytes().partition(b"\n")
    assert held == b"precious"
    assert done.errors.endswith(f" to {target}\n")
    if flag == "--jsonl":
        assert len([json.loads(line) for line in added.splitlines()]) == 40
    else:
        with np.load(io.BytesIO(added), allow_pickle=False) as arrays:
            assert len(arrays["ply"]) == len(arrays["observations"]) > 40


def test_a_closed_pipe_is_not_an_error(collected: Path) -> None:
    command = az("export", collected, "--npz", "/proc/self/fd/1")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 141


def test_a_full_disk_is_one_line_and_leaves_what_was_there(
    with_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_line: Any
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "x"
    target.write_text("before")
    monkeypatch.setattr(os, "fsync", full)
    one_line(main, [str(with_models), "--npz", str(target)], f"az-export: no space left on the device of {target}: ")
    assert target.read_text() == "before"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["run", "x"]


def test_a_game_against_the_rules_is_not_exported(tmp_path: Path) -> None:
    settings = Settings("tic_tac_toe")
    with RunFolder(tmp_path / "run", vars(settings)) as folder:
        folder.append(records("connect_four", 1)[0])
        folder.seal(1)
    assert main([str(tmp_path / "run"), "--npz", str(tmp_path / "x.npz")]) == 2
    assert not (tmp_path / "x.npz").exists()


@pytest.fixture
def with_models(collected: Path, tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(collected, tmp_path / "run"))
    with RunFolder(copy, vars(StoredRun(copy).settings)) as folder:
        for iteration in (1, 2):
            model = make_model(weight=iteration)
            folder.save_checkpoint(iteration, model={}, optimizer={}, state={}, onnx=model)
    return copy


def test_the_model_is_copied_after_a_look_at_the_manifest(with_models: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.onnx"
    assert main([str(with_models), "--onnx", str(target)]) == 0
    assert target.read_bytes() == make_model(weight=2)
    assert main([str(with_models), "--onnx", str(target), "--checkpoint", "1"]) == 0
    assert target.read_bytes() == make_model(weight=1)
    damaged = with_models / "checkpoints/000002/model.onnx"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\x99")
    assert main([str(with_models), "--onnx", str(target)]) == 2
    assert target.read_bytes() == make_model(weight=1)
    with pytest.raises(RunError, match=r"000002 is damaged: model\.onnx differs"):
        StoredRun(with_models).model(2)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run"], "nothing to write: give --npz, --jsonl, --pgn, --sgf, --onnx, --onnx-int8, --card or --web"),
        (["nowhere", "--npz", "x"], "nowhere does not exist"),
        (["run", "--npz", "x", "--iterations", "3-10"], "run has no sealed games of iteration 5: those from 1 to"),
        (["run", "--npz", "x", "--iterations", "4-3"], "takes a number or a range such as 3-10, got '4-3'"),
        (["run", "--npz", "x", "--iterations", "9" * 5_000], "--iterations takes a number or a range"),
        (["run", "--npz", "x", "--iterations", "all"], "--iterations takes a number or a range"),
        (["run", "--onnx", "x", "--iterations", "1"], "--iterations goes with --npz, --jsonl, --pgn and --sgf"),
        (["run", "--npz", "x", "--checkpoint", "1"], "--checkpoint goes with --onnx"),
        (["run", "--onnx", "x", "--crate", "."], "--crate goes with --web"),
        (["run", "--onnx", "x"], "run has no checkpoint yet"),
        (["run", "--onnx", "x", "--checkpoint", "3"], "run has no checkpoint 3: it has none"),
        (["run", "--npz", "no/x"], "cannot be used: No such file or directory"),
        (["run", "--npz", "."], ". is a folder, expected the name of a file to write"),
        (["run", "--npz", ""], "--npz: an empty text, expected a name"),
        (["run", "--onnx-int8", ""], "--onnx-int8: an empty text, expected a name"),
        (["run", "--jsonl", "loop"], "loop cannot be used: Too many levels of symbolic links"),
        (["run", "--sgf", "d", "--jsonl", "d/all.jsonl"], "--sgf is for games of go; these are of tic_tac_toe"),
        (["run", "--pgn", "x.pgn"], "--pgn is for games of chess; these are of tic_tac_toe"),
        *(
            (["run", one, "x", two, other], f"{one} and {two} both write {other}: give each its own file")
            for one, two, other in (
                ("--npz", "--pgn", "x"),
                ("--onnx", "--onnx-int8", "sub/../x"),
                ("--jsonl", "--onnx", "to-x"),
            )
        ),
        *(
            (["run", flag, target], f"{flag} {target} belongs to the run run: give another path")
            for flag, target in (
                ("--npz", "run/games/000001.npz"),
                ("--onnx", "run/checkpoints/000002/model.onnx"),
                ("--jsonl", "to-run/metrics.jsonl"),
                ("--pgn", "run/sub/../config.toml"),
                ("--sgf", "run/games"),
                ("--npz", "to-games"),
            )
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], text: str, collected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_line: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Path(shutil.copytree(collected, "run"))
    for folder in (run / "sub", Path("sub")):
        folder.mkdir()
    for link, target in {"loop": "loop", "to-x": "x", "to-run": "run", "to-games": "run/games/000001.npz"}.items():
        Path(link).symlink_to(target)
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    assert text in one_line(main, arguments, "az-export: ")
    assert not Path("x").exists()
    assert {file: file.read_bytes() for file in run.rglob("*") if file.is_file()} == before
