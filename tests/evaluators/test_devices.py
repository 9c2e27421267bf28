"""Several devices, and what changes hands in a swap: who is asked, what it is called, and what is left of the old."""

import gc
import itertools
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy.devices import Device, devices_of
from azpy.errors import SettingsError
from azpy.fleet.fleet import Lineup
from azpy.settings.run import Settings, combine
from azpy.training.events import Started
from azpy.training.trainer import Trainer
from oracles import Batch, Hashed


class OnDevice(Hashed):
    """A network on one of several devices; knows its forks, and the threads that ask it."""

    def __init__(self, device: int, salt: int = 0, seconds: float = 0.0005) -> None:
        super().__init__(9, salt=salt, network_id=salt + 1)
        self.device, self.number, self.seconds = device, salt, seconds
        self.threads, self.forks = set[int](), list[OnDevice]()

    def fork(self) -> "OnDevice":
        self.forks.append(OnDevice(self.device, self.number, self.seconds))
        return self.forks[-1]

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
        self.threads.add(threading.get_ident())
        time.sleep(self.seconds)
        return super().evaluate_batch(observations)

    @property
    def all(self) -> list["OnDevice"]:
        return [self, *self.forks]


class Unforked(Hashed):
    """Not to be called twice at a time."""

    def __init__(self) -> None:
        super().__init__(9, network_id=1)
        self.busy, self.threads = False, set[int]()

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
        assert not self.busy
        self.busy = True
        self.threads.add(threading.get_ident())
        time.sleep(0.0005)
        self.busy = False
        return super().evaluate_batch(observations)


def games_of(evaluator: Any, count: int = 60, **settings: Any) -> list[bytes]:
    options = {"slots": 24, "simulations": 20, "games": count, "seed": 5, **settings}
    with azpy.SelfPlay("tic_tac_toe", evaluator, **options) as games:
        return [record.to_bytes() for record in sorted(games, key=lambda record: record.game_id)]


@pytest.mark.parametrize(("devices", "pipelines", "forks"), [(2, 4, [1, 1]), (2, 3, [1, 0]), (3, 3, [0, 0, 0])])
def test_each_device_is_asked_by_its_own_pipelines(devices: int, pipelines: int, forks: list[int]) -> None:
    evaluators = [OnDevice(device) for device in range(devices)]
    found = games_of(evaluators, pipelines=pipelines)
    assert [len(evaluator.forks) for evaluator in evaluators] == forks
    used = [one for evaluator in evaluators for one in evaluator.all]
    assert all(len(one.threads) == 1 for one in used)
    assert len(set.union(*(one.threads for one in used))) == pipelines
    assert found == games_of(OnDevice(0), pipelines=2)  # the same games as on one device


def test_without_forks_one_pipeline_asks_at_a_time() -> None:
    evaluators = (Unforked(), Unforked())
    assert games_of(evaluators, pipelines=5) == games_of(OnDevice(0))
    assert [len(evaluator.threads) for evaluator in evaluators] == [3, 2]


def test_a_swap_reaches_every_device() -> None:
    networks = [[OnDevice(device, salt) for device in range(2)] for salt in range(3)]
    with azpy.SelfPlay("tic_tac_toe", networks[0], slots=16, pipelines=4, simulations=10) as games:
        for network, following in itertools.pairwise(networks):
            while not all(one.batches for evaluator in network for one in evaluator.all):
                next(games)
            games.swap(following)
            asked = [len(one.batches) for evaluator in network for one in evaluator.all]
            for _ in range(30):
                next(games)
            assert asked == [len(one.batches) for evaluator in network for one in evaluator.all]
        assert [len(evaluator.forks) for evaluator in networks[2]] == [1, 1]


def test_a_bad_list_of_evaluators_is_refused() -> None:
    for given, text in (
        ([], "expected 1 to 2 evaluators in a list, a pipeline for each at least, got 0"),
        ([OnDevice(device) for device in range(3)], "a pipeline for each at least, got 3"),
        ([OnDevice(0), OnDevice(1, salt=1)], "the evaluators in a list must have the same network_id"),
    ):
        with pytest.raises(ValueError, match=text):
            azpy.SelfPlay("tic_tac_toe", given)
    with pytest.raises(TypeError, match="expected an evaluator"):
        azpy.SelfPlay("tic_tac_toe", [OnDevice(0), 3])
    with azpy.SelfPlay("tic_tac_toe", OnDevice(0), slots=4, games=8) as games:
        with pytest.raises(ValueError, match="the same network_id"):
            games.swap([OnDevice(0), OnDevice(1, salt=1)])
        assert len(list(games)) == 8


# Swaps under load


def test_no_old_network_is_used_after_a_swap_returns() -> None:
    gc.disable()  # what is let go of must not need looking for
    try:
        evaluators = [OnDevice(0), OnDevice(1)]
        with azpy.SelfPlay("tic_tac_toe", evaluators, slots=16, pipelines=4, simulations=10) as games:
            for salt in range(1, 6):
                next(games)
                held = [weakref.ref(one) for evaluator in evaluators for one in evaluator.all]
                assert len(held) == 4
                evaluators = [OnDevice(0, salt), OnDevice(1, salt)]
                games.swap(evaluators)
                assert [one() for one in held] == [None] * 4
    finally:
        gc.enable()


# The setting


@pytest.mark.parametrize(
    ("device", "devices", "names"),
    [
        ("cuda", "0,1", ("cuda:0", "cuda:1")),
        ("tensorrt", "3,1", ("tensorrt:3", "tensorrt:1")),
        ("auto", "1", ("cuda:1",)),
        ("cuda:1", None, ("cuda:1",)),
        ("auto", None, ("auto",)),
    ],
)
def test_devices_are_named(device: str, devices: str | None, names: tuple[str, ...]) -> None:
    settings = Settings("tic_tac_toe", device=device, devices=devices, slots=64, pipelines=2, eval_batch=3)
    assert settings.all_devices == devices_of(device, devices)
    assert tuple(map(str, settings.all_devices)) == names
    assert settings.training_device == names[0].replace("tensorrt", "cuda")
    assert settings.all_pipelines == 2 * len(names)
    assert settings.device_batch == 3 * 64 // (2 * len(names))


def test_each_device_needs_slots_and_counts_in_auto() -> None:
    with pytest.raises(SettingsError, match="slots must be at least the 6 pipelines, got 5"):
        Settings("tic_tac_toe", device="cuda", devices="0,1", pipelines=3, slots=5)
    one, two = (
        combine({"game": "tic_tac_toe", "device": "cuda", "devices": devices, "slots": 32}) for devices in ("0", "0,1")
    )
    assert (one.eval_batch, two.eval_batch) == (4, 8)
    assert one.device_batch == two.device_batch == 64


SMALL: dict[str, Any] = {"game": "tic_tac_toe", "network": "1x16", "device": "cuda", "devices": "0,1", "eval_batch": 2}
SMALL |= {"simulations": 12, "slots": 8, "iterations": 2, "match_every": 100, "final_match_games": 2}
SMALL |= {"games_per_iteration": 100}  # more than may wait to be fetched: each network plays


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The CPU under the names of GPUs: (device, evaluator) in the order of opening; and torch trains on the CPU."""
    found: list[tuple[str, Any]] = []

    class Pretends(azpy.OnnxEvaluator):
        asked = 0

        def __init__(self, model: Any, device: Device, **options: Any) -> None:
            super().__init__(model, "cpu", **options)
            self.device = str(device)
            found.append((self.device, self))

        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            self.asked += 1
            return super().evaluate_batch(observations)

    monkeypatch.setattr("azpy.evaluators.choice.OnnxEvaluator", Pretends)
    monkeypatch.setattr("azpy.learning.learner.torch_device", lambda device: __import__("torch").device("cpu"))
    return found


def test_a_run_plays_on_every_device_and_matches_on_the_first(
    tmp_path: Path, opened: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Trainer(Settings(**SMALL), tmp_path) as trainer:
        play, devices = trainer.fleet.play, list[list[str]]()

        def noted(lineup: Lineup) -> None:
            devices.append([str(device) for device in lineup.devices])
            play(lineup)

        monkeypatch.setattr(trainer.fleet, "play", noted)
        events = list(trainer.run())
    assert devices == [["cuda:0", "cuda:1"]] * 2  # without a network too: workers stay where they begin
    assert isinstance(events[0], Started)
    assert "also on cuda:1" in events[0].evaluator
    # The last is the untrained network.
    assert [device for device, _ in opened] == ["cuda:0", "cuda:1"] * 3 + ["cuda:0"] * 2
    # Neither the first network plays, which knows nothing, nor the last one.
    assert [evaluator.asked > 0 for _, evaluator in opened[1:6:2]] == [False, True, False]
    assert opened[2][1].asked > 0
