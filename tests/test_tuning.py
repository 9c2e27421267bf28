"""Trying layouts of self-play: what is fastest is found, what a user gave stays."""

import dataclasses
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy import selfplay, settings
from azpy.cli.train import main
from azpy.settings import Settings
from azpy.tuning import TUNED, Trial, tune

START = azpy.make_game("connect_four")


class Device:
    """One device for all pipelines: a batch takes `call` seconds and a row `row`, one batch after another."""

    def __init__(self, call: float, row: float, device: str = "cuda:0") -> None:
        self.call, self.row, self.device = call, row, device
        self.network_id: int | None = 17
        self.lock = threading.Lock()

    def fork(self) -> "Device":
        return self

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        rows = len(observations)
        with self.lock:
            time.sleep(self.call + self.row * rows)
        return np.zeros((rows, 7), np.float32), np.zeros(rows, np.float32)


def tuned(device: Device, given: Collection[str] = (), **chosen: Any) -> list[Trial]:
    run = Settings("connect_four", simulations=50, **chosen)
    return list(tune(START, [device], run, given, seconds=4.0))


def test_a_device_with_costly_calls_gets_large_batches_of_many_slots() -> None:
    *tried, best = tuned(Device(0.02, 1e-6), games_per_iteration=512)
    assert best in tried
    # By far the most of a batch's time is the call, and slots are there.
    assert best.slots > 128
    assert best.rate > 2 * min(trial.rate for trial in tried)


def test_with_few_games_an_iteration_the_batch_is_filled_from_each_tree() -> None:
    *tried, best = tuned(Device(0.02, 1e-6), games_per_iteration=16)
    assert max(trial.slots for trial in tried) <= 16
    assert best.eval_batch > 1


def test_what_wins_nothing_is_not_taken() -> None:
    """Rows cost all there is: few slots, one leaf at a time."""
    run = Settings("connect_four", simulations=50, games_per_iteration=512)
    *_, best = tune(START, [Device(0.0, 0.0002)], run, seconds=8.0)
    assert best.eval_batch == 1
    assert best.slots <= 256


def test_what_is_taken_is_among_the_fastest_however_little_time_there_was() -> None:
    for seconds in (0.0, 0.5, 4.0):
        run = Settings("connect_four", simulations=50, games_per_iteration=512)
        *tried, best = tune(START, [Device(0.01, 1e-5)], run, seconds=seconds)
        assert best in tried
        assert best.rate * 1.03 >= max(trial.rate for trial in tried)


def test_even_one_game_an_iteration_has_a_layout() -> None:
    for games in (1, 3):
        *_, best = tuned(Device(0.001, 0.0, "cpu"), games_per_iteration=games)
        assert best.pipelines <= best.slots <= games


def test_what_was_given_stays() -> None:
    given = {"slots": 24, "pipelines": 3, "eval_batch": 2, "threads": 1}
    assert {tuple(trial.settings().items()) for trial in tuned(Device(0.001, 0.0), set(given), **given)} == {
        tuple((name, given[name]) for name in TUNED)
    }
    for trial in tuned(Device(0.001, 0.0), {"pipelines"}, pipelines=3):
        assert trial.pipelines == 3
    for trial in tuned(Device(0.001, 0.0), {"slots"}, slots=5):
        assert trial.slots == 5
        assert trial.pipelines <= 5


def test_each_of_several_devices_has_its_pipelines() -> None:
    """Twice the devices answer twice as many rows, and no layout has fewer slots than pipelines on all of them."""
    run = Settings("connect_four", simulations=50, games_per_iteration=64, device="cuda", devices="0,1")
    given = {"pipelines": 1, "threads": 1}
    run = dataclasses.replace(run, **given)  # type: ignore[arg-type]
    *_, one = tuned(Device(0.001, 0.001), given, games_per_iteration=64, **given)
    *_, two = tune(START, [Device(0.001, 0.001), Device(0.001, 0.001)], run, given, seconds=4.0)
    assert two.rate > 1.4 * one.rate
    assert two.slots >= 2


def test_equal_positions_are_counted_row_by_row() -> None:
    """At the start of the games all trees look alike: were rows shared, batches would be small there."""
    device = Device(0.001, 0.0)
    given = {"pipelines": 1, "threads": 1, "eval_batch": 1}
    for trial in tuned(device, given, **given, games_per_iteration=64):
        assert trial.rows > 0.9 * trial.slots
    assert device.network_id == 17  # the evaluator itself is as it was


def test_a_training_run_uses_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def quick(
        start: azpy.State, evaluators: Sequence[azpy.Evaluator], run: Settings, given: Collection[str]
    ) -> Iterator[Trial]:
        return tune(start, evaluators, run, given, seconds=0.3)

    monkeypatch.setattr("azpy.cli.train.tune", quick)
    flags = ["--tune", "--slots", "6", "--network", "1x8", "--simulations", "8", "--games-per-iteration", "8"]
    run = ["--iterations", "1", "--final-match-games", "2", "--out", str(tmp_path / "run")]
    assert main(["tic_tac_toe", *flags, *run]) == 0
    said = capsys.readouterr().out
    taken = next(line for line in said.splitlines() if line.startswith("taken: ")).removeprefix("taken: ").split()
    config = (tmp_path / "run/config.toml").read_text()
    assert "slots = 6\n" in config
    for flag, value in zip(taken[::2], taken[1::2], strict=True):
        assert f"\n{flag.removeprefix('--').replace('-', '_')} = {value}\n" in config


@pytest.mark.parametrize("flag", ["--deterministic", "--collect-only"])
def test_what_must_not_depend_on_the_clock_is_not_tuned(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tic_tac_toe", "--tune", flag, "--iterations", "1"]) == 2
    assert capsys.readouterr().err.startswith("az-train: --tune is not for ")


def test_each_pipeline_grows_its_own_trees_where_its_network_runs_on_its_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfplay, "usable_cores", lambda: 4)
    for pipelines, device, threads, expected in (
        (4, "cpu", None, 1),
        (5, "cpu", None, 1),
        (3, "cpu", None, None),
        (4, "cuda:0", None, None),
        (4, "cpu", 3, 3),
    ):
        run = Settings("connect_four", pipelines=pipelines, threads=threads)
        assert selfplay.threads_of_trees(run, Device(0, 0, device)) == expected
    assert selfplay.threads_of_trees(Settings("connect_four", pipelines=4), azpy.UniformEvaluator()) is None


def test_a_network_on_the_cpu_gets_a_pipeline_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "usable_cores", lambda: 16)
    for given, expected in (
        ({}, 16),
        ({"slots": 6}, 6),
        ({"device": "cuda"}, 2),
        ({"device": "auto"}, 2),
        ({"pipelines": 3}, 3),
        ({"pipelines": "auto"}, 16),
    ):
        assert settings.combine({"game": "pig"}, given).pipelines == expected, given
    monkeypatch.setattr(settings, "usable_cores", lambda: 1)
    assert settings.combine({"game": "pig"}).pipelines == 2
