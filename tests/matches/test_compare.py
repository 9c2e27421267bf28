"""az-compare: two settings trained over several seeds, and what goes on after an interruption."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_match import model

from azpy.cli.compare import main
from azpy.errors import SettingsError
from azpy.matches.ratings import mean_interval
from azpy.runs import storage
from azpy.runs.folder import RunFolder
from azpy.settings import Settings
from azpy.training.comparison import Comparison

COMMAND = ["tic_tac_toe", "passes=1", "passes=2", "--total-evaluations", "1000", "--games", "8", "--simulations", "3"]
COMMAND += ["--common", "match_lookahead=0"]  # the seeds' scores differ


class FakeTraining:
    """Leaves what a finished run leaves: a model of the seed, and the rows of metrics that are read."""

    def __init__(self) -> None:
        self.trained: list[str] = []
        self.opened = 0
        self.stop_at = 10**6  # the training that a signal ends
        self.stop_by: int = signal.SIGINT

    def __call__(self, settings: Settings, folder: Path, show: Callable[..., object]) -> None:
        self.opened += 1
        if (folder / "checkpoints/000001").exists():  # it is done
            return
        if len(self.trained) == self.stop_at:
            signal.raise_signal(self.stop_by)
        self.trained.append(folder.name)
        onnx = model(settings.seed + int(settings.passes), settings.game)
        with RunFolder(folder, asdict(settings)) as run:
            run.write_settings()
            run.save_checkpoint(1, model={}, optimizer={}, state={}, onnx=onnx)
            row = {"kind": "iteration", "iteration": 1, "games": 9, "positions": 50, "steps": 3, "evaluations": 1010}
            run.append_metrics(row | {"seconds": 61.2})


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeTraining:
    fake = FakeTraining()
    monkeypatch.setattr("azpy.training.comparison.train", fake)
    monkeypatch.chdir(tmp_path)
    return fake


def test_each_seed_trains_both_sides_and_gives_a_row(training: FakeTraining, printed: Any) -> None:
    report = json.loads(printed(main, [*COMMAND, "--seeds", "2", "--json"]))
    assert training.trained == ["passes=1-seed0", "passes=2-seed0", "passes=1-seed1", "passes=2-seed1"]
    scores = [row["score"] for row in report["seeds"]]
    assert [row["seed"] for row in report["seeds"]] == [0, 1]
    assert (report["n"], report["score"]) == (2, pytest.approx(np.mean(scores)))
    assert (report["low"], report["high"]) == (mean_interval(scores) or (None, None))
    assert report["seeds"][0]["evaluations"] == [1010, 1010]
    assert report["seeds"][0]["rows_fitted"] == [3 * 256, 3 * 256]
    assert report["seeds"][0]["seconds"] == [61, 61]
    lines = printed(main, [*COMMAND, "--seeds", "2"]).splitlines()
    assert "A and B differ in passes: 1.0 and 2.0" in lines
    assert lines[-1].startswith(f"score of A {report['score']:.3f} [")
    assert lines[-1].endswith("(95 % over n = 2 seeds, Student's t)")


def test_seeds_with_equal_scores_have_an_unknown_interval(
    training: FakeTraining, monkeypatch: pytest.MonkeyPatch, printed: Any
) -> None:
    row = {"score": 0.5, "low": 0.4, "high": 0.6, "evaluations": [1, 1], "rows_fitted": [1, 1]}
    monkeypatch.setattr(Comparison, "run", lambda _self, _a, _b, seed, _show: row | {"seed": seed})
    report = json.loads(printed(main, [*COMMAND, "--seeds", "2", "--json"]))
    assert (report["score"], report["low"], report["high"]) == (0.5, None, None)
    last = printed(main, [*COMMAND, "--seeds", "2"]).splitlines()[-1]
    assert last.startswith("score of A 0.500, n = 2, interval unknown")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[100, 100], [700, 700]], []),
        ([[100, 100], [700, 696]], []),  # below a hundredth
        ([[100, 100], [700, 500]], ["A had 1,400 rows fitted and B 1,000"]),
        ([[90, 100], [0, 1]], ["A had 180 evaluations of self-play and B 200", "A had 0 rows fitted and B 2"]),
    ],
)
def test_unequal_work_is_reported(
    rows: list[list[int]],
    said: list[str],
    training: FakeTraining,
    monkeypatch: pytest.MonkeyPatch,
    printed: Any,
) -> None:
    row = {"score": 0.5, "low": 0.4, "high": 0.6, "evaluations": rows[0], "rows_fitted": rows[1]}
    monkeypatch.setattr(Comparison, "run", lambda _self, _a, _b, seed, _show: row | {"seed": seed})
    lines = printed(main, [*COMMAND, "--seeds", "2"]).splitlines()
    found = [line for line in lines if line.startswith("unequal work: ")]
    assert [line.removeprefix("unequal work: ").partition(";")[0] for line in found] == said


def test_settings_without_effect_are_reported(training: FakeTraining, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([COMMAND[0], "fast_simulations=2", "passes=2", *COMMAND[3:], "--seeds", "1"]) == 0
    assert "az-compare: fast_simulations 2 has no effect: all searches are full" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stop_at", "stop_by"), [(0, signal.SIGINT), (1, signal.SIGTERM), (2, signal.SIGTERM), (3, signal.SIGINT)]
)
def test_the_same_command_finishes_after_an_interruption(
    stop_at: int, stop_by: int, training: FakeTraining, capsys: pytest.CaptureFixture[str], printed: Any
) -> None:
    command = [*COMMAND, "--seeds", "2", "--json", "--out"]
    whole = printed(main, [*command, "whole"])
    training.trained, training.stop_at, training.stop_by = [], stop_at, stop_by
    assert main([*command, "parts"]) == 128 + stop_by
    assert "Resume with: az-compare tic_tac_toe passes=1 passes=2" in "".join(capsys.readouterr())
    training.stop_at, training.opened = 10**6, 0
    assert printed(main, [*command, "parts"]) == whole
    assert len(training.trained) == len(set(training.trained)) == 4
    assert training.opened == 4 - stop_at // 2 * 2  # seeds whose matches were played are not looked at
    assert main([*command, "parts"]) == 0
    assert training.opened == 4 - stop_at // 2 * 2


def test_equal_time_and_equal_evaluations_have_their_own_runs(
    training: FakeTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = list[tuple[float | None, int | None]]()

    def train(settings: Settings, folder: Path, show: Callable[..., object]) -> None:
        lengths.append((settings.minutes, settings.total_evaluations))
        training(settings, folder, show)

    monkeypatch.setattr("azpy.training.comparison.train", train)
    timed = [word for word in COMMAND if word not in ("--total-evaluations", "1000")]
    for command in (COMMAND, [*timed, "--minutes", "1.5"], COMMAND, [*timed, "--minutes", "1.5"]):
        assert main([*command, "--seeds", "1", "--out", "both"]) == 0
    assert lengths == [(None, 1000)] * 2 + [(1.5, None)] * 2
    assert training.trained[2:] == ["passes=1-1.5min-seed0", "passes=2-1.5min-seed0"]
    rows = json.loads(Path("both/results.json").read_text())
    assert [(row.get("minutes"), row.get("total_evaluations")) for row in rows] == [(None, 1000), (1.5, None)]


def test_runs_are_shared_and_seeds_are_added(training: FakeTraining) -> None:
    assert main([*COMMAND, "--seeds", "1"]) == 0
    assert main([*COMMAND, "--seeds", "2"]) == 0
    assert training.trained[2:] == ["passes=1-seed1", "passes=2-seed1"]


def test_a_folder_with_other_settings_is_refused(training: FakeTraining, one_line: Any) -> None:
    assert main([*COMMAND, "--seeds", "1"]) == 0
    said = one_line(main, [*COMMAND, "--seeds", "1", "--common", "network=2x16"], "az-compare: ")
    assert "passes=1-seed0 was trained with network 2x32, not 2x16: give another folder as --out" in said
    assert len(training.trained) == 2


@pytest.mark.parametrize(
    "text", ["{}", "[5]", '[{"score": "x"}]', "[" * 10**5, '[{"score": 1%s, "low": 0, "high": 0}]' % (400 * "0"), "["]
)
def test_damaged_results_are_one_line(text: str, training: FakeTraining, one_line: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/results.json").write_text(text)
    said = one_line(main, [*COMMAND, "--seeds", "1", "--out", "out"], "az-compare: out/results.json cannot be read")
    assert said.rstrip().endswith("delete it, and az-compare plays the matches again")


def test_two_comparisons_in_a_folder_do_not_overlap(training: FakeTraining, one_line: Any, tmp_path: Path) -> None:
    """The last to write replaced the rows of the other."""
    held = storage.lock_folder(tmp_path / "out")
    one_line(main, [*COMMAND, "--out", "out"], "az-compare: out is in use by another process")
    os.close(held)
    assert main([*COMMAND, "--seeds", "1", "--out", "out"]) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["passes=1", "passes=1"], "A and B are the same settings"),
        (["passes=1", "pases=2"], "settings 'pases=2': pases: unknown setting; did you mean passes?"),
        (["passes=1", "passes=0"], "settings 'passes=0': passes must be more than 0, got 0"),
        (["passes=1", "seed=2"], "seed applies to the whole comparison"),
        (["", "passes=1", "--seeds", "0"], "seeds must be at least 1, got 0"),
        (["", "passes=1", "--games", "3"], "games must be an even number, got 3"),
        (["", "passes=1", "--common", "minutes=1"], "minutes applies to the whole comparison"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], text: str, training: FakeTraining, one_line: Any) -> None:
    assert text in one_line(main, ["tic_tac_toe", *arguments, "--total-evaluations", "10"], "az-compare: ")
    assert not training.trained


def test_a_name_of_many_settings_fits_a_folder(tmp_path: Path) -> None:
    comparison = Comparison(tmp_path, "tic_tac_toe", {"total_evaluations": 10}, {})
    names = [comparison.folder({f"setting_{n}": n for n in range(count)}, 0).name for count in (50, 51)]
    assert len(set(names)) == 2
    assert max(map(len, names)) < 200
    assert comparison.folder({}, 3).name == "preset-seed3"
    with pytest.raises(SettingsError, match="game applies"):
        comparison.settings({"game": "hex"}, 0)


def test_a_comparison_trains_and_plays(tmp_path: Path, printed: Any) -> None:
    """For real, as small as it can be."""
    pytest.importorskip("torch")
    common = "network=1x8&games_per_iteration=8&simulations=4&match_games=2&final_match_games=2"
    command = [*COMMAND, "--seeds", "1", "--common", common, "--out", str(tmp_path / "out")]
    command[4] = "100"
    assert "give more --seeds" in printed(main, command)
    rows = json.loads((tmp_path / "out/results.json").read_text())
    assert min(rows[0]["evaluations"]) >= 100
    assert rows[0]["rows_fitted"][0] <= rows[0]["rows_fitted"][1]
    assert (tmp_path / "out/passes=2-seed0/checkpoints").is_dir()
