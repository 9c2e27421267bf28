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
from azpy.cli.train import main
from azpy.playing import selfplay
from azpy.playing.benchmarks import measure_self_play
from azpy.playing.tuning import TUNED, Trial, tune
from azpy.settings import run as settings
from azpy.settings.run import MOST_LEAVES, Settings

START = azpy.make_game("connect_four")


class Device:
    """A device that takes `call` seconds a batch and `row` seconds a row, one batch after another."""

    def __init__(self, call: float, row: float, device: str = "cuda:0") -> None:
        self.call, self.row, self.device = call, row, device
        self.network_id: int | None = 17
        self.lock = threading.Lock()
        self.answered: list[int] = []  # rows, of copies too

    def fork(self) -> "Device":
        return self

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        rows = len(observations)
        with self.lock:
            self.answered.append(rows)
            if seconds := self.call + self.row * rows:
                time.sleep(seconds)
        return np.zeros((rows, 7), np.float32), np.zeros(rows, np.float32)


class Reckoned:
    """Stands in for `Play`: every batch is full, and nothing but the devices takes time, on a clock of its own."""

    now = 0.0

    def __init__(self, _start: Any, devices: Sequence[Device], *, slots: int, pipelines: int, **options: Any) -> None:
        self.rows = slots * options["eval_batch"] / pipelines
        self.batches_a_second = len(devices) / (devices[0].call + devices[0].row * self.rows)

    def run(self, seconds: float) -> dict[str, float]:
        seconds = max(seconds, 1 / self.batches_a_second)  # a batch at least
        Reckoned.now += seconds
        batches = seconds * self.batches_a_second
        return {"seconds": seconds, "batches": batches, "rows": batches * self.rows}

    def __enter__(self) -> "Reckoned":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def reckoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials are reckoned: on a busy machine a measurement is chance."""
    monkeypatch.setattr("azpy.playing.tuning.Play", Reckoned)


def tuned(device: Device, given: Collection[str] = (), seconds: float = 60.0, **chosen: Any) -> list[Trial]:
    run = Settings("connect_four", simulations=50, **chosen)
    return list(tune(START, [device], run, given, seconds, clock=lambda: Reckoned.now))


@pytest.mark.usefixtures("reckoned")
def test_a_device_with_costly_calls_gets_large_batches_of_many_slots() -> None:
    *tried, best = tuned(Device(0.02, 1e-6), games_per_iteration=300)
    assert best in tried
    assert best.slots == 300  # by far the most of a batch's time is the call, and more slots there cannot be
    alike = [trial for trial in tried if (trial.slots, trial.pipelines) == (300, best.pipelines)]
    assert {trial.eval_batch for trial in alike} == {1, 2, 4, MOST_LEAVES}
    assert best.eval_batch == MOST_LEAVES
    assert best.rate > 2 * min(trial.rate for trial in tried)


@pytest.mark.usefixtures("reckoned")
def test_with_few_games_an_iteration_the_batch_is_filled_from_each_tree() -> None:
    *tried, best = tuned(Device(0.02, 1e-6), games_per_iteration=16)
    assert max(trial.slots for trial in tried) <= 16
    assert best.eval_batch == MOST_LEAVES


@pytest.mark.usefixtures("reckoned")
def test_what_wins_nothing_is_not_taken() -> None:
    *tried, best = tuned(Device(0.0, 0.0002), games_per_iteration=512)  # rows cost all there is
    assert best.eval_batch == 1
    assert best.slots == min(trial.slots for trial in tried)
    *tried, best = tuned(Device(0.001, 0.001), games_per_iteration=2048)  # and from some size on nearly all
    assert min(trial.slots for trial in tried) < best.slots < max(trial.slots for trial in tried) < 2048
    assert best.rate * 1.03 >= max(trial.rate for trial in tried)


@pytest.mark.usefixtures("reckoned")
def test_what_is_taken_is_among_the_fastest_however_little_time_there_was() -> None:
    counts = []
    for seconds in (0.0, 0.5, 4.0):
        begin = Reckoned.now
        *tried, best = tuned(Device(0.01, 1e-5), seconds=seconds, games_per_iteration=512)
        assert best in tried
        assert best.rate * 1.03 >= max(trial.rate for trial in tried)
        counts.append(len(tried))
        assert Reckoned.now - begin < 2 * seconds + 1  # a trial that has begun is finished
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.usefixtures("reckoned")
def test_even_one_game_an_iteration_has_a_layout() -> None:
    for games in (1, 3):
        *_, best = tuned(Device(0.001, 0.0, "cpu"), games_per_iteration=games)
        assert best.pipelines <= best.slots <= games


@pytest.mark.usefixtures("reckoned")
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


def test_a_run_on_cuda_has_as_many_slots_as_games_an_iteration() -> None:
    def slots(**chosen: Any) -> int:
        return settings.combine({"game": "hex", "device": "cuda", **chosen}).slots

    assert slots(games_per_iteration=512) == 512
    assert slots(games_per_iteration=16) == 128
    assert slots(games_per_iteration=100_000) == 2048
    assert slots(games_per_iteration=512, slots=64) == 64
    assert slots(games_per_iteration=512, device="cpu") == 128
    assert slots(games_per_iteration=512, device="cuda", devices="0,1") == 512


def test_each_of_several_devices_has_its_pipelines() -> None:
    run = Settings("connect_four", simulations=50, games_per_iteration=64, device="cuda", devices="0,1")
    given = {"pipelines": 1, "threads": 1}
    run = dataclasses.replace(run, **given)  # type: ignore[arg-type]
    devices = [Device(0.001, 0.001), Device(0.001, 0.001)]
    *tried, _ = tune(START, devices, run, given, seconds=1.0)
    assert min(trial.slots for trial in tried) >= 2
    assert 0.5 < sum(devices[0].answered) / sum(devices[1].answered) < 2


def test_equal_positions_are_counted_row_by_row() -> None:
    """At the start of the games all trees look alike: were rows shared, batches would be small there."""
    device = Device(0.001, 0.0)
    given: dict[str, Any] = {"pipelines": 1, "threads": 1, "eval_batch": 1}
    run = Settings("connect_four", simulations=50, games_per_iteration=64, **given)
    for trial in tune(START, [device], run, given, seconds=0.1):
        answered = device.answered[:]
        device.answered.clear()
        assert not answered or sum(answered) > 0.9 * trial.slots * len(answered)  # the last repeats the best
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
    many = [(4, "cpu", None, 1), (5, "cpu", None, 1), (4, "cpu", 3, 3)]
    for pipelines, device, threads, expected in [*many, (3, "cpu", None, None), (4, "cuda:0", None, None)]:
        run = Settings("connect_four", pipelines=pipelines, threads=threads)
        assert selfplay.threads_of_trees(run, Device(0, 0, device)) == expected
    assert selfplay.threads_of_trees(Settings("connect_four", pipelines=4), azpy.UniformEvaluator()) is None


def test_a_network_on_the_cpu_gets_a_pipeline_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "usable_cores", lambda: 16)
    for given, expected in (
        ({}, 16),
        ({"slots": 6}, 6),
        ({"device": "auto", "devices": "0,1"}, 2),
        ({"pipelines": 3}, 3),
        ({"pipelines": "auto"}, 16),
    ):
        assert settings.combine({"game": "pig"}, given).pipelines == expected, given
    for problem, expected in (("no driver", 16), (None, 2)):
        monkeypatch.setattr(settings, "no_gpu", lambda problem=problem: problem)
        assert settings.combine({"game": "pig"}, {"device": "auto"}).pipelines == expected
    monkeypatch.setattr(settings, "usable_cores", lambda: 1)
    assert settings.combine({"game": "pig"}).pipelines == 2


def test_tuning_and_benchmarks_search_as_the_run_does(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Settings("connect_four", solver=True, c_puct_base=50.0, evaluations=9, full_search_share=0.25, simulations=5)
    asked: list[dict[str, Any]] = []

    class Noted(Reckoned):
        def __init__(self, start: Any, devices: Any, **options: Any) -> None:
            asked.append(options)
            super().__init__(start, devices if isinstance(devices, list) else [devices], **options)

        def run(self, seconds: float) -> dict[str, float]:
            done = super().run(seconds)
            return done | {"rows_capacity": 1, "simulations": 1, "seconds_evaluating": 1, "seconds_growing": 1}

    monkeypatch.setattr("azpy.playing.tuning.Play", Noted)
    monkeypatch.setattr("azpy.playing.benchmarks.Play", Noted)
    list(tune(START, [Device(0.001, 0.0)], run, seconds=1.0))
    tuned_with = len(asked)
    measure_self_play(START, Device(0.001, 0.0), run, seconds=0.001, repeats=1)
    assert len(asked) == tuned_with + 2
    for index, options in enumerate(asked):
        changed = {"eval_batch"} if index < tuned_with else set()
        wanted = {name: value for name, value in run.search_options().items() if name not in changed}
        assert wanted.items() <= options.items()
