"""Engines that take long to build: the old network plays on, the new one takes over, and nothing is left behind."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import azpy
from azpy.cli.progress import Display
from azpy.errors import DeviceError, ModelError
from azpy.evaluators.onnx import network_id
from azpy.learning.export import to_onnx
from azpy.runs.folder import RunFolder, read_checkpoint
from azpy.settings import Settings
from azpy.settings.toml import read_config
from azpy.training.events import BeingBuilt, Built, Event, Finished, Played, Saved, Started
from azpy.training.generations import Generations
from azpy.training.trainer import Trainer
from oracles import Batch

SMALL: dict[str, Any] = {
    "game": "tic_tac_toe",
    "network": "1x16",
    "device": "tensorrt",
    "eval_batch": 2,
    "simulations": 12,
    "slots": 8,
    "games_per_iteration": 100,  # more than can be ready when the next iteration begins
    "iterations": 3,
    "match_every": 100,
    "final_match_games": 2,
}


class Engines:
    """TensorRT as it is seen from a run: what is opened, when, and who is asked. Answers come from the CPU."""

    def __init__(self) -> None:
        self.opened: list[int] = []  # network ids, of those on TensorRT
        self.elsewhere: list[tuple[str, int]] = []  # (device, network id) of the others
        self.may_open = threading.Event()  # builds after the first wait for this
        self.may_open.set()
        self.fails: dict[int, Exception] = {}  # by number of the build
        self.dismissed = 0  # a network that must not be asked any more
        self.main = threading.current_thread()
        self.builders: list[str] = []


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    made = Engines()

    class Slow(azpy.OnnxEvaluator):
        def __init__(self, model: bytes, device: str, **options: Any) -> None:
            made.builders.append(threading.current_thread().name)
            if device.startswith("tensorrt"):
                number = len(made.opened)
                made.opened.append(network_id(model))
                if threading.current_thread() is not made.main:
                    assert made.may_open.wait(60)
                if number in made.fails:
                    raise made.fails[number]
                options["cache_dir"].mkdir(exist_ok=True)
                (options["cache_dir"] / f"azpy-{made.opened[-1]:016x}-fp32_sm90.engine").touch()
                (options["cache_dir"] / "sm90.timing").touch()
            else:
                made.elsewhere.append((device, network_id(model)))
            super().__init__(model, "cpu", **options)
            self.device = device

        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            if self.device.startswith("tensorrt"):  # elsewhere the untrained network plays matches
                assert self.network_id != made.dismissed, "a network was asked after another took over"
            return super().evaluate_batch(observations)

    monkeypatch.setattr("azpy.training.generations.OnnxEvaluator", Slow)
    monkeypatch.setattr("azpy.learning.learner._choose", lambda device: torch.device("cpu"))
    return made


def games_of(path: Path, iteration: int) -> list[azpy.GameRecord]:
    with RunFolder(path, read_config(path / "config.toml")) as run:
        return run.sealed.read(iteration)


def rows_of(path: Path, kind: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == kind]


def no_builder_is_left() -> bool:
    return not [thread for thread in threading.enumerate() if thread.name.startswith("azpy-engine")]


def test_the_old_network_plays_on_until_the_new_one_is_ready(tmp_path: Path, engines: Engines) -> None:
    engines.may_open.clear()
    events: list[Event] = []
    with Trainer(Settings(**SMALL), tmp_path) as trainer:
        for event in trainer.run():
            events.append(event)
            if isinstance(event, Played) and event.iteration == 2 and event.games >= 10:
                engines.may_open.set()  # not before some games of iteration 2 are there
            if isinstance(event, Built) and event.iteration == 1:
                engines.dismissed = engines.opened[0]
                engines.may_open.clear()  # the third is not ready before the second has played
            if isinstance(event, BeingBuilt) and event.waited_for and event.iteration == 2:
                engines.may_open.set()
    built = [event for event in events if isinstance(event, Built)]
    assert [(event.iteration, event.problem) for event in built] == [(1, None), (2, None), (3, None)]
    place = events.index(built[0])
    before = [event for event in events[:place] if isinstance(event, Played) and event.iteration == 2]
    assert before[-1].games >= 10
    assert isinstance(events[-1], Finished)
    first, second = engines.opened[:2]
    assert {int(network) for game in games_of(tmp_path, 1) for network in game.networks} == {first}
    games = [game.networks.tolist() for game in games_of(tmp_path, 2)]
    assert all(networks == sorted(networks, key=[first, second].index) for networks in games)
    assert sum(set(networks) == {first} for networks in games) >= 10
    assert second in {network for game in games_of(tmp_path, 3) for network in game.networks.tolist()}
    assert engines.builders[0] == threading.current_thread().name
    assert engines.builders[1].startswith("azpy-engine")
    assert not any("parity" in row for row in rows_of(tmp_path, "iteration"))
    rows = rows_of(tmp_path, "built")  # each network's, the last one's too
    assert [row["iteration"] for row in rows] == [1, 2, 3]
    assert all(row["parity"] < 1e-4 and row["build_seconds"] > 0 for row in rows)
    assert no_builder_is_left()


def test_a_build_as_long_as_an_iteration_is_waited_for_and_said(
    tmp_path: Path, engines: Engines, capsys: pytest.CaptureFixture[str]
) -> None:
    engines.may_open.clear()
    events: list[Event] = []
    with Trainer(Settings(**SMALL | {"iterations": 2}), tmp_path) as trainer:
        for event in trainer.run():
            events.append(event)
            if isinstance(event, BeingBuilt) and event.waited_for and event.iteration:
                engines.may_open.set()
    building = [(event.iteration, event.waited_for) for event in events if isinstance(event, BeingBuilt)]
    assert building[:4] == [(0, True), (1, False), (1, True), (2, False)]
    assert len(games_of(tmp_path, 2)) >= 100
    display = Display()
    for event in events:
        display.show(event)
    said = capsys.readouterr().out
    assert said.startswith("an engine for the network is being built")  # before anything else goes on
    assert "the network of iteration 1 plays from here on: its engine took " in said
    assert "in which the one before played on" in said


def test_a_build_that_fails_is_said_and_the_old_network_plays_on(
    tmp_path: Path, engines: Engines, capsys: pytest.CaptureFixture[str]
) -> None:
    engines.fails[1] = DeviceError("the GPU has no room")
    with Trainer(Settings(**SMALL), tmp_path) as trainer:
        events = list(trainer.run())
    built = [(event.iteration, event.problem) for event in events if isinstance(event, Built)]
    assert built == [(1, "the GPU has no room"), (2, None), (3, None)]
    assert [event.iteration for event in events if isinstance(event, Saved)] == [1, 2, 3]
    networks = [network for game in games_of(tmp_path, 2) for network in game.networks.tolist()]
    assert set(networks) == {engines.opened[0]}
    problems = [(row["iteration"], row.get("problem")) for row in rows_of(tmp_path, "built")]
    assert problems == [(1, "the GPU has no room"), (2, None), (3, None)]
    third = {network for game in games_of(tmp_path, 3) for network in game.networks.tolist()}
    assert third <= {engines.opened[0], engines.opened[2]}
    display = Display()
    for event in events:
        display.show(event)
    said = capsys.readouterr().out
    assert "warning: no engine for the network of iteration 1 after " in said
    assert "the one before plays on: the GPU has no room" in said


def test_a_network_without_an_engine_has_its_match_and_the_run_goes_on(tmp_path: Path, engines: Engines) -> None:
    engines.fails |= dict.fromkeys((2, 3), DeviceError("the GPU has no room"))  # that of iteration 2, twice
    with Trainer(Settings(**SMALL | {"iterations": 2}), tmp_path) as trainer:
        events = list(trainer.run())
    assert isinstance(events[-1], Finished)
    assert {row["iteration"] for row in rows_of(tmp_path, "match")} == {2}
    assert engines.elsewhere == [("cuda", engines.opened[2]), ("cuda", engines.opened[0])]  # and the untrained one
    with Trainer(Settings(**SMALL), tmp_path) as trainer:
        events = list(trainer.run())
    started = next(event for event in events if isinstance(event, Started))
    assert any("CUDA plays until another network has one: the GPU has no room" in text for text in started.notices)
    assert [(event.iteration, event.problem) for event in events if isinstance(event, Built)] == [(3, None)]
    assert {network for game in games_of(tmp_path, 3) for network in game.networks.tolist()} == {engines.opened[2]}


def test_a_network_without_an_engine_does_not_break_a_run_off_that_goes_on_elsewhere(
    tmp_path: Path, engines: Engines
) -> None:
    with Trainer(Settings(**SMALL | {"iterations": 1, "device": "cuda"}), tmp_path) as trainer:
        list(trainer.run())
    engines.fails[0] = DeviceError("the GPU has no room")
    with Trainer(Settings(**SMALL | {"iterations": 2}), tmp_path) as trainer:
        assert isinstance(list(trainer.run())[-1], Finished)


def test_earlier_networks_play_without_an_engine(tmp_path: Path, engines: Engines) -> None:
    changes = {"historical_share": 0.5, "games_per_iteration": 30}
    with Trainer(Settings(**SMALL | changes), tmp_path) as trainer:
        list(trainer.run())
    first = network_id(read_checkpoint(tmp_path / "checkpoints/000001").onnx)
    assert engines.elsewhere[0] == ("cuda", first)  # in iteration 3
    assert len(engines.opened) == 4


def test_engines_lie_in_the_run_and_go_with_their_networks(
    tmp_path: Path, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = tmp_path / "run"
    with Trainer(Settings(**SMALL | {"iterations": 5}), run) as trainer:
        list(trainer.run())
    newest = engines.opened[-1]
    left = {file.name for file in (run / "engines").iterdir()}
    assert {f"azpy-{newest:016x}-fp32_sm90.engine", "sm90.timing"} <= left
    assert len(left) <= 3  # and that of the one that played while it was built
    assert not (tmp_path / "cache").exists()
    with Trainer(Settings(**SMALL | {"iterations": 5}), run) as trainer:
        list(trainer.run())
    assert {file.name for file in (run / "engines").iterdir()} == {
        f"azpy-{newest:016x}-fp32_sm90.engine",
        "sm90.timing",
    }


def test_the_first_build_that_fails_ends_the_run(tmp_path: Path, engines: Engines) -> None:
    engines.fails[0] = DeviceError("the GPU has no room")
    with Trainer(Settings(**SMALL), tmp_path) as trainer, pytest.raises(DeviceError, match="no room"):
        list(trainer.run())
    assert no_builder_is_left()


def test_an_engine_that_says_something_else_ends_the_run(
    tmp_path: Path, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported: list[bytes] = []

    def stale(network: Any) -> bytes:
        exported.append(to_onnx(network))
        return exported[0]

    monkeypatch.setattr("azpy.training.generations._TENSORRT_TOLERANCE", 1e-4)
    monkeypatch.setattr("azpy.training.generations.to_onnx", stale)
    with Trainer(Settings(**SMALL), tmp_path) as trainer, pytest.raises(ModelError, match="differs from the network"):
        list(trainer.run())
    assert no_builder_is_left()


def test_a_run_that_ends_in_the_midst_of_a_build_leaves_nothing_behind(
    tmp_path: Path, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = Generations.close

    def wait_for_what_can_end_now(generations: Generations) -> None:
        engines.may_open.set()
        close(generations)

    monkeypatch.setattr(Generations, "close", wait_for_what_can_end_now)
    engines.may_open.clear()
    try:
        with Trainer(Settings(**SMALL), tmp_path) as trainer:
            for event in trainer.run():
                if isinstance(event, Saved):
                    break
            assert not no_builder_is_left()
        assert no_builder_is_left()
    finally:
        engines.may_open.set()
    with RunFolder(tmp_path, read_config(tmp_path / "config.toml")) as folder:
        assert folder.checkpoints() == [1]
    with Trainer(Settings(**SMALL), tmp_path) as trainer:  # and the same command goes on
        assert [event.iteration for event in trainer.run() if isinstance(event, Saved)] == [2, 3]


def test_other_devices_wait_for_their_model(tmp_path: Path, engines: Engines) -> None:
    with Trainer(Settings(**SMALL | {"device": "cuda", "iterations": 2}), tmp_path) as trainer:
        events = list(trainer.run())
    assert not [event for event in events if isinstance(event, (BeingBuilt, Built))]
    assert set(engines.builders) == {threading.current_thread().name}


def test_no_other_thread_writes_what_generations_hold(tmp_path: Path, engines: Engines, writers: set[str]) -> None:
    with Trainer(Settings(**SMALL | {"iterations": 2}), tmp_path) as trainer:
        list(trainer.run())
    assert writers == {threading.current_thread().name}
