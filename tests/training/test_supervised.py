"""Training begins from games of files, which test_game_files reads."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy._core import PLAYED_SMOOTHING, GameReader
from azpy.cli import replay, train
from azpy.errors import RunError
from azpy.fleet.examine import Examiner, RefusedError
from azpy.games.lines import replayed
from azpy.learning.learner import Learner
from azpy.runs.folder import RunFolder
from azpy.runs.games import SealedGames
from azpy.runs.imports import is_held_out
from azpy.runs.reader import StoredRun, read_checkpoint
from azpy.settings import Settings
from azpy.training.budget import Budget
from azpy.training.events import Event, Finished, Imported, Matched, Noticed
from azpy.training.fitting import Window
from azpy.training.trainer import Trainer
from game_texts import GO, LINE, selfplay, sgf_game
from running import az, ended


def test_rows_are_the_moves_and_the_outcome() -> None:
    actions = next(iter(GameReader(GO, sgf_game(LINE)))).actions
    assert actions is not None
    record = azpy.GameRecord.of_actions(GO, actions, 1.0)
    buffer = azpy.ReplayBuffer(GO)
    buffer.add(record)
    expected = {}
    for ply, (action, state) in enumerate(zip(actions, replayed(GO, actions), strict=False)):
        legal = np.isin(np.arange(26), state.legal_actions())
        policy = np.where(legal, PLAYED_SMOOTHING / legal.sum(), 0.0)
        policy[action] += 1 - PLAYED_SMOOTHING
        expected[state.observation().tobytes()] = (legal, policy, 1.0 if ply % 2 == 0 else -1.0)
    options: dict[str, Any] = {"root_value_weight": 0.5, "imported_value_weight": 0.25}
    *rows, weights = buffer.sample(200, seed=3, symmetries=False, **options)
    for observation, legal, policy, value in zip(*rows, strict=True):
        legal_then, policy_then, value_then = expected[observation.tobytes()]
        assert (legal == legal_then).all()
        assert np.allclose(policy, policy_then, atol=1e-7)
        assert value == value_then
    assert (weights == 0.25).all()
    assert len({row.tobytes() for row in rows[0]}) == len(actions)


def test_only_imported_games_have_a_smaller_weight() -> None:
    games = selfplay(2)
    buffer = azpy.ReplayBuffer(GO)
    buffer.extend([games[0], games[1].as_imported(game_id=9, seed=0)])
    own, other = set[bytes](), set[bytes]()
    for game, found in zip(games, (own, other), strict=True):
        for action, state in zip(game.actions.tolist(), replayed(GO, game.actions.tolist()), strict=False):
            del action
            found.add(state.observation().tobytes())
    plain = buffer.sample(300, seed=5, symmetries=False)
    *rows, weights = buffer.sample(300, seed=5, symmetries=False, imported_value_weight=0.125)
    assert all((one == two).all() for one, two in zip(plain[:3], rows[:3], strict=True))
    for observation, weight in zip(rows[0], weights, strict=True):
        if observation.tobytes() not in own & other:
            assert weight == (1.0 if observation.tobytes() in own else 0.125)


def test_self_play_pushes_imported_games_out_of_the_window() -> None:
    games = selfplay(6)
    positions = sum(game.positions for game in games)
    window = Window(Settings("go(size=5)", window_min=positions, window_share=1.0), GO)
    window.add([game.as_imported(game_id=index, seed=0) for index, game in enumerate(games)])
    shares = []
    for _ in range(4):
        *_, weights = window.buffer.sample(2_000, seed=0, imported_value_weight=0.01)
        shares.append(float((weights < 1).mean()))
        window.add(games[:3])
    assert shares[0] == 1
    assert 0.3 < shares[1] < 0.7
    assert shares[2:] == [0, 0]


def test_records_keep_that_they_are_imported() -> None:
    record = azpy.GameRecord.of_actions(GO, [12, 25, 25], 1.0, game_id=3, seed=4)
    back = azpy.GameRecord.from_bytes(record.to_bytes())
    assert (back.imported, back.outcome, back.positions, back.actions.tolist()) == (True, 1.0, 3, [12, 25, 25])
    with pytest.raises(ValueError, match="its outcome is marked as -1, but by the rules it is 1"):
        azpy.GameRecord.of_actions(GO, [12, 25, 25], -1.0)
    with pytest.raises(ValueError, match="an outcome is from -1 to 1, got"):
        azpy.GameRecord.of_actions(GO, [12], float("nan"))
    own = selfplay(1)[0]
    assert not own.imported
    again = own.as_imported(game_id=8, seed=2)
    assert again.imported
    assert (again.targets == own.targets).all()
    assert (again.flags == own.flags).all()


def test_a_worker_cannot_hand_in_an_imported_game() -> None:
    settings = Settings(game="go(size=5)")
    with pytest.raises(RefusedError, match="marked as imported"):
        Examiner(settings, GO).look_at(azpy.GameRecord.of_actions(GO, [12], 1.0))


def test_a_share_of_the_games_is_held_out_by_their_moves_alone() -> None:
    rng = np.random.default_rng(0)
    games = [azpy.GameRecord.of_actions(GO, (2 * rng.permutation(13)[:6]).tolist(), 1.0) for _ in range(400)]
    held = [is_held_out(game, 0.25) for game in games]
    assert 60 < sum(held) < 140
    others = [azpy.GameRecord.of_actions(GO, game.actions.tolist(), -1.0, game_id=5) for game in games]
    assert held == [is_held_out(game, 0.25) for game in others]
    assert not any(is_held_out(game, 0.0) for game in games)
    assert all(is_held_out(game, 1.0) for game in games)


FLAGS = ["--network", "1x8", "--iterations", "1", "--games-per-iteration", "4", "--simulations", "4", "--deterministic"]
FLAGS += ["--supervised-passes", "2", "--batch-size", "16", "--match-games", "2", "--final-match-games", "2"]
FLAGS += ["--match-simulations", "2", "--slots", "4", "--supervised-held-out", "0.3", "--window-min", "60"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with SGF games and a sealed file."""
    folder, other, rng = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("other"), random.Random(4)
    for number in range(12):
        points = rng.sample([a + b for a in "abcde" for b in "abcde"], 12)
        (folder / f"{number:02}.sgf").write_text(sgf_game("".join(points), rng.choice(["B+R", "W+R"])))
    with RunFolder(other / "run", {"game": "go(size=5)"}) as run:
        run.sealed.write(1, selfplay())
    (other / "run/games/000001.npz").rename(folder / "sealed.npz")
    return folder


@pytest.fixture(scope="module")
def first_run(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("runs") / "run"
    begun(files, out)
    return out


@pytest.fixture
def ran(first_run: Path, tmp_path: Path) -> None:
    """There is a run that began with the files."""
    shutil.copytree(first_run, tmp_path / "run")


def trained(files: Path, out: Path, *more: str) -> str:
    done = ended(az("train", "go(size=5)", *FLAGS, "--out", out, "--supervised", files, *more))
    assert done.code == 0, done.errors
    return done.out


def rows_of(out: Path, kind: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == kind]


def hashes(text: str) -> str:
    return next(line for line in text.splitlines() if "the same for equal runs" in line)


@pytest.mark.slow
def test_a_run_begins_with_the_games_and_survives_a_kill(tmp_path: Path, files: Path) -> None:
    whole = trained(files, tmp_path / "whole")
    assert "games in 13 files" in whole
    assert "move match" in whole
    (row,) = rows_of(tmp_path / "whole", "imported")
    assert row["found"] == row["games"] + row["held_out"] + sum(count for count, _ in row["left_out"].values()) == 18
    measured = rows_of(tmp_path / "whole", "supervised")
    assert 1 <= len(measured) <= 10
    assert all(0 <= row["move_match"] <= 1 and row["held_out_policy_loss"] > 0 for row in measured)
    run = StoredRun(tmp_path / "whole")
    games = list(run.games([0]))
    assert [record.game_id for _, record in games] == list(range(row["games"] + row["held_out"]))
    assert next(run.games([1]))[1].game_id == len(games)
    assert run.checkpoints() == [0, 1]
    # Killed before the fit ended, and after its checkpoint: the same command gives the same run.
    for name, kept in (("early", False), ("late", True)):
        copy = tmp_path / name
        shutil.copytree(tmp_path / "whole", copy)
        for gone in [copy / "checkpoints/000001", *([] if kept else [copy / "checkpoints/000000"])]:
            for file in gone.iterdir():
                file.unlink()
            gone.rmdir()
        (copy / "games/000001.npz").unlink()
        again = trained(files, copy)
        assert hashes(again) == hashes(whole)
        assert ("move match" in again) is not kept
        assert len(rows_of(copy, "supervised")) == len(measured)
        assert len(rows_of(copy, "imported")) == 1


def begun(files: Path, out: Path, **changes: Any) -> list[Event]:
    options: dict[str, Any] = {"network": "1x8", "iterations": 1, "games_per_iteration": 4, "simulations": 4}
    options |= {"deterministic": True, "supervised_passes": 2.0, "batch_size": 16, "match_games": 2, "slots": 4}
    options |= {"final_match_games": 2, "match_simulations": 2, "match_every": 1000, "supervised_held_out": 0.3}
    with Trainer(Settings("go(size=5)", **(options | changes)), out, [str(files)]) as trainer:
        return list(trainer.run())


def test_the_fit_begins_with_the_network_of_init(tmp_path: Path, files: Path, first_run: Path) -> None:
    begun(files, tmp_path / "second", init=str(first_run))
    one, other = (read_checkpoint(run / "checkpoints/000000").model for run in (first_run, tmp_path / "second"))
    assert any(not np.array_equal(one[name], other[name]) for name in one)


def test_the_last_measurement_is_of_the_saved_network(tmp_path: Path, files: Path) -> None:
    begun(files, tmp_path / "run", supervised_passes=6.0, learning_rate=0.05)
    run, saved = StoredRun(tmp_path / "run"), read_checkpoint(tmp_path / "run/checkpoints/000000")
    measured = rows_of(tmp_path / "run", "supervised")
    assert len({row["steps"] for row in measured}) == len(measured) == 10
    unknown = azpy.ReplayBuffer(run.start, max_positions=10_000)
    unknown.extend(record for _, record in run.games([0]) if is_held_out(record, 0.3))
    learner = Learner(run.start, run.settings.network)
    learner.load(saved.model, saved.optimizer)
    found = learner.measure(unknown.sample(unknown.num_positions, seed=0, symmetries=False))
    assert measured[-1]["held_out_policy_loss"] == pytest.approx(found["policy_loss"], rel=1e-5)
    assert measured[-1]["held_out_value_loss"] == pytest.approx(found["value_loss"], rel=1e-5)


def test_a_fit_that_takes_all_the_time_is_measured(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()
    monkeypatch.setattr(Budget, "may_fit", lambda self: asked.append(1) or len(asked) < 3)  # type: ignore[func-returns-value]
    monkeypatch.setattr(Budget, "is_over", lambda self, iteration: bool(asked))
    events = begun(files, tmp_path / "run", supervised_passes=50.0)
    (notice,) = [event.text for event in events if isinstance(event, Noticed)]
    assert notice.startswith("the fit of the imported games ended after 3 of ")
    assert notice.endswith(" steps, as --minutes is over; a new --out with more --minutes fits them whole")
    assert len([event for event in events if isinstance(event, Matched)]) == 4
    assert isinstance(events[-1], Finished)
    assert events[-1].has_model
    assert "Last matches" in (tmp_path / "run/report.html").read_text()
    (last,) = rows_of(tmp_path / "run", "supervised")
    assert last["steps"] == 3
    assert last["move_match"] >= 0


@pytest.mark.usefixtures("ran")
def test_a_run_goes_on_without_the_files_and_knows_them(tmp_path: Path, files: Path) -> None:
    settings = StoredRun(tmp_path / "run").settings
    for given in ([], [f"{files}/"], [str(files)]):
        with Trainer(settings, tmp_path / "run", given) as trainer:
            assert trainer.folder.flags == ["--supervised", str(files)]
            list(trainer.run())
    command = (tmp_path / "run/config.toml").read_text().splitlines()
    assert any("az-train" in line and f"--supervised {files}" in line for line in command)


def test_skipped_games_are_noted_with_their_place(tmp_path: Path) -> None:
    folder, rng = tmp_path / "files", random.Random(7)
    folder.mkdir()
    for number in range(8):
        line = "".join(rng.sample([a + b for a in "abcde" for b in "abcde"], 12))
        (folder / f"{number}.sgf").write_text(sgf_game(line))
    (folder / "a.sgf").write_text("(;GM[1]SZ[5]KM[7.5];B[aa];W[aa])\n(;GM[1")
    (folder / "b.sgf").write_bytes(b"\0")
    for archive in ("c.zip", "d.tar.gz"):
        (folder / archive).touch()
    with Trainer(Settings("go(size=5)", network="1x8"), tmp_path / "run", [str(folder)]) as trainer:
        event = next(event for event in trainer.run() if isinstance(event, Imported))
    (row,) = rows_of(tmp_path / "run", "imported")
    assert (event.files, row["found"], row["games"] + row["held_out"]) == (12, 10, 8)
    firsts = {
        "an illegal move": (
            1,
            f"{folder}/a.sgf, line 1: move 2, W[aa], at A5, is illegal: the point has a stone already",
        ),
        "text that cannot be read": (1, f'{folder}/a.sgf, line 2: a value of GM lacks its closing ]: "[1"'),
        "a file that cannot be read": (3, f"{folder}/b.sgf is not text; expected SGF"),
    }
    assert event.left_out == firsts
    assert row["left_out"] == {words: [*first] for words, first in firsts.items()}


@pytest.mark.usefixtures("ran")
def test_an_imported_game_has_no_searches_to_repeat(tmp_path: Path, one_line: Any, printed: Any) -> None:
    run = StoredRun(tmp_path / "run")
    for _, record in run.games([0]):  # moves of SGF, and a sealed game with the searches of another run
        said = f"game {record.game_id} was imported, so it has no searches to repeat"
        assert said in one_line(replay.main, [str(run.path), str(record.game_id), "--check"], "az-replay: ")
        assert replay.main([str(run.path), str(record.game_id)]) == 0
    own = next(run.games([1]))[1].game_id
    assert "the same, bit for bit" in printed(replay.main, [str(run.path), str(own), "--check"])


@pytest.mark.usefixtures("ran")
def test_settings_of_an_import_cannot_change(tmp_path: Path, files: Path) -> None:
    for name, value in (("held_out", 0.1), ("passes", 3.0), ("min_rating", 1500), ("min_seconds", 0)):
        with pytest.raises(RunError, match=f"supervised_{name} .*games are imported and learned from once"):
            begun(files, tmp_path / "run", **{f"supervised_{name}": value})


@pytest.mark.usefixtures("ran")
def test_the_window_has_the_games_that_are_learned_from(tmp_path: Path) -> None:
    run = StoredRun(tmp_path / "run")
    games = [record for _, record in run.games([0])]
    known = [record for record in games if not is_held_out(record, 0.3)]
    assert 0 < len(known) < len(games)
    added, filled = Window(run.settings, run.start), Window(run.settings, run.start)
    added.add(games)
    filled.refill(0, [0], lambda _: games)
    assert added.buffer.num_games == filled.buffer.num_games == len(known)
    assert added.seen == 0  # imported games do not make the window grow
    own = [record for _, record in run.games([1])]  # games of self-play, whatever their moves
    added.add(own)
    assert added.buffer.num_games == len(known) + len(own)


def test_games_that_are_all_held_out_make_no_folder(tmp_path: Path, files: Path) -> None:
    with pytest.raises(
        RunError, match=r"all [0-9]+ imported games are held out: give more files, or a number below 1 as"
    ):
        begun(files, tmp_path / "run", supervised_held_out=1.0)
    assert not (tmp_path / "run").exists()


def test_outcomes_of_imported_games_count_little(tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit, weights = Learner.fit, []

    def noted(self: Learner, batches: Any, steps: int, **options: Any) -> Any:
        weights.append(options.get("imported_value_weight"))
        return fit(self, batches, steps, **options)

    monkeypatch.setattr(Learner, "fit", noted)
    begun(files, tmp_path / "run")
    with Trainer(
        Settings("go(size=5)", network="1x8", supervised_value_weight=0.5), tmp_path / "heavier", [str(files)]
    ) as run:
        next(event for event in run.run() if weights[2:])
    assert weights == [0.01, 0.01, 0.5], "before self-play, and in the iteration"


def test_an_import_that_is_killed_is_done_again(tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(self: SealedGames, iteration: int, records: Any, tags: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SealedGames, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            begun(files, tmp_path / "run")
    assert len(rows_of(tmp_path / "run", "imported")) == 1
    plain = shutil.copytree(tmp_path / "run", tmp_path / "plain")
    begun(files, tmp_path / "run")
    assert len(rows_of(tmp_path / "run", "imported")) == 1
    assert (tmp_path / "run/games/000000.npz").exists()
    with Trainer(StoredRun(plain).settings, plain) as trainer:  # without the files
        list(trainer.run())
        assert not trainer.folder.flags
    assert not rows_of(plain, "imported")


@pytest.mark.parametrize("gone", ["metrics.jsonl", "games/000000.npz"])
@pytest.mark.usefixtures("ran")
def test_a_run_that_lost_a_file_knows_its_imported_games(tmp_path: Path, files: Path, gone: str) -> None:
    (tmp_path / "run" / gone).unlink()
    for _ in range(2):
        begun(files, tmp_path / "run")
        with pytest.raises(RunError, match=f"began with --supervised {files}: give the same"):
            begun(tmp_path, tmp_path / "run")
    with Trainer(StoredRun(tmp_path / "run").settings, tmp_path / "run") as trainer:
        assert trainer.folder.flags == ["--supervised", str(files)]


def test_a_run_started_with_other_files_is_refused(
    tmp_path: Path, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = ["go(size=5)", *FLAGS, "--out", str(tmp_path / "plain")]
    assert train.main(plain) == 0
    assert train.main([*plain, "--supervised", str(files)]) == 2
    assert "began without --supervised" in capsys.readouterr().err
