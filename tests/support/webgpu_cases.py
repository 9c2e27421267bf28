"""Cases of tests/evaluators/test_webgpu.py: azpy on a WebGPU device."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy.errors import DeviceError
from azpy.evaluators.int8 import to_int8
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.runs.reader import StoredRun
from azpy.settings import Settings
from azpy.training.events import Started
from models import probe_model
from running import at_once, az, ended
from served import process
from training_runs import events_of

GAME = azpy.make_game("connect_four")
MODEL = probe_model(GAME.obs_shape, GAME.num_actions, layers=3, channels=16)
BUCKETS = (4, 16)


def rows(count: int, seed: int = 0, game: azpy.State = GAME) -> NDArray[np.float32]:
    return np.random.default_rng(seed).integers(0, 2, (count, *game.obs_shape)).astype(np.float32)


@pytest.fixture(scope="module")
def cpu() -> OnnxEvaluator:
    return OnnxEvaluator(MODEL, game=GAME)


@pytest.fixture(scope="module")
def webgpu() -> OnnxEvaluator:
    return OnnxEvaluator(MODEL, "webgpu", game=GAME, buckets=BUCKETS)


def assert_near(one: Any, other: Any, observations: NDArray[np.float32]) -> None:
    for ours, theirs in zip(one.evaluate_batch(observations), other.evaluate_batch(observations), strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


# The evaluator


@pytest.mark.parametrize(("game", "spec"), [("chess", "1x16"), ("go(size=9)", "2x16+pool"), ("pig", "2x64"),
                                            ("connect_four", "2x16+wdl")])  # fmt: skip
def test_networks_of_azpy_run_whole(game: str, spec: str) -> None:
    start = azpy.make_game(game)
    model = to_onnx(Network.of(start, spec))
    evaluator = OnnxEvaluator(model, "webgpu", game=start, buckets=(8,))
    assert_near(OnnxEvaluator(model), evaluator, rows(5, game=start))


def test_what_webgpu_cannot_run_is_refused() -> None:
    int8 = to_int8(to_onnx(Network.of(GAME, "1x16")), rows(64))
    with pytest.raises(DeviceError, match=r"^WebGPU cannot be used: WebGPU cannot run .*QuantizeLinear of the model$"):
        OnnxEvaluator(int8, "webgpu", buckets=BUCKETS)


def test_auto_compares_it_with_the_cpu() -> None:
    evaluator = OnnxEvaluator(MODEL, "auto", buckets=BUCKETS)
    assert any(note.startswith("WebGPU answers ") for note in evaluator.notes)
    assert evaluator.device in {"cpu", "webgpu"}


def test_forks_answer_at_the_same_time(cpu: OnnxEvaluator, webgpu: OnnxEvaluator) -> None:
    wrong = list[float]()

    def work(fork: OnnxEvaluator, seed: int) -> None:
        for turn in range(10):
            batch = rows(1 + (seed + turn) % 20, seed)
            ours, theirs = fork.evaluate_batch(batch)[0], cpu.evaluate_batch(batch)[0]
            wrong.append(float(np.abs(ours - theirs).max()))

    at_once(partial(work, webgpu, 0), partial(work, webgpu.fork(), 1))
    assert len(wrong) == 20
    assert max(wrong) < 1e-4


# Self-play


def test_two_pipelines_play_and_search(webgpu: OnnxEvaluator) -> None:
    options: dict[str, Any] = {"slots": 8, "pipelines": 2, "simulations": 8, "games": 8}
    with azpy.SelfPlay("connect_four", webgpu, **options) as games:
        assert sorted(record.game_id for record in games) == list(range(8))
    assert azpy.Search(webgpu, simulations=40).run(GAME).visits.sum() == 40


def test_networks_are_exchanged_in_the_midst_of_batches(webgpu: OnnxEvaluator) -> None:
    options: dict[str, Any] = {"slots": 12, "pipelines": 2, "simulations": 6, "games": 36}
    others = [probe_model(GAME.obs_shape, GAME.num_actions, layers=3, channels=16, seed=seed) for seed in (1, 2)]
    used, ids = set[int](), {webgpu.network_id}
    with azpy.SelfPlay("connect_four", webgpu, **options) as games:
        for taken, record in enumerate(games):
            used |= {int(network) for network in record.networks}
            if taken in {8, 20}:
                fresh = OnnxEvaluator(others.pop(), "webgpu", game=GAME, buckets=BUCKETS)
                ids.add(fresh.network_id)
                games.swap(fresh)
    assert taken == 35
    assert used <= ids
    assert len(used) == 3


SMALL: dict[str, Any] = {
    "game": "tic_tac_toe",
    "network": "1x16",
    "device": "webgpu",
    "simulations": 8,
    "slots": 16,
    "pipelines": 2,
    "games_per_iteration": 24,
    "match_every": 100,
    "match_games": 2,
    "final_match_games": 2,
    "match_simulations": 4,
}


@pytest.fixture
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults: Any = OnnxEvaluator.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "buckets", (8, 16))  # software computes all of a bucket


@pytest.mark.usefixtures("small_buckets")
def test_a_run_learns_on_it(tmp_path: Path) -> None:
    events = events_of(Settings(**SMALL, iterations=4, passes=4.0), tmp_path)
    assert "WebGPU, fp32" in next(event.evaluator for event in events if isinstance(event, Started))
    losses = [row["policy_loss"] for row in StoredRun(tmp_path).iterations()]
    assert losses[-1] < losses[0]
    start = azpy.make_game("tic_tac_toe")
    assert_near(OnnxEvaluator(tmp_path), OnnxEvaluator(tmp_path, "webgpu"), rows(9, game=start))


@pytest.mark.usefixtures("small_buckets")
def test_a_device_that_is_lost_ends_the_run_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from azpy.evaluators import onnx as module

    real, left, endless = module._Runner.run, [90], Settings(**SMALL, iterations=40)

    def lost(self: Any, observations: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("device was lost")
        return real(self, observations)

    with monkeypatch.context() as patched:
        patched.setattr(module._Runner, "run", lost)
        with pytest.raises(Exception, match="device was lost"):
            events_of(endless, tmp_path)
    before = StoredRun(tmp_path).iterations()
    events_of(Settings(**SMALL, iterations=len(before) + 1), tmp_path)
    assert StoredRun(tmp_path).iterations()[: len(before)] == before
    ids = [record.game_id for _, record in StoredRun(tmp_path).games(range(1, len(before) + 2))]
    assert len(ids) == len(set(ids))


# Programs


TRAIN = "tic_tac_toe --network 1x16 --device webgpu --simulations 8 --slots 16 --games-per-iteration 32"
TRAIN += " --match-every 100 --final-match-games 2 --match-simulations 4 --out"


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    words = [*TRAIN.split(), str(tmp_path)]
    with subprocess.Popen(az("train", *words, "--iterations", "1000"), stdout=subprocess.DEVNULL) as child:
        while not (tmp_path / "checkpoints/000002").is_dir() and child.poll() is None:
            time.sleep(0.1)
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    done = len(StoredRun(tmp_path).iterations())
    assert ended(az("train", *words, "--iterations", str(done + 2)), patience=600).code == 0
    assert [row["iteration"] for row in StoredRun(tmp_path).iterations()] == list(range(1, done + 3))


def test_workers_are_processes_with_devices_of_their_own(tmp_path: Path) -> None:
    words = [*TRAIN.split(), str(tmp_path), "--iterations", "2", "--workers", "2"]
    done = ended(az("train", *words), patience=600)
    assert done.code == 0, done.out + done.errors
    assert len(StoredRun(tmp_path).iterations()) == 2


def test_a_match_is_played_on_it(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(MODEL)
    words = [f"{model}?simulations=4", "random", "--game", "connect_four", "--games", "4", "--json"]
    done = ended(az("match", *words, "--device", "webgpu"), patience=600)
    assert done.code == 0, done.errors
    assert json.loads(done.out.splitlines()[-1])["device"] == "webgpu"


def test_it_serves(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(MODEL)
    with process(str(model), "--game", "connect_four", "--device", "webgpu") as (address, _):
        answers = [
            httpx.post(f"http://{address}/query", json={"id": str(n), "simulations": 20}, timeout=120) for n in range(3)
        ]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert all(sum(move["visits"] for move in answer.json()["moveInfos"]) >= 19 for answer in answers)


def test_the_doctor_finds_it() -> None:
    report = json.loads(ended(az("doctor", "--json", "--no-speed"), patience=600).out)
    assert report["providers"]["webgpu"] is None
    assert any(each["provider"] == "WebGpuExecutionProvider" for each in report["devices"])


def test_without_the_variable_there_is_no_device() -> None:
    some = {name: text for name, text in os.environ.items() if not name.startswith("ORT_WEBGPU")}
    script = "import sys, azpy; azpy.OnnxEvaluator(sys.stdin.buffer.read(), 'webgpu')"
    done = subprocess.run([sys.executable, "-c", script], input=MODEL, env=some, capture_output=True, check=False)
    assert b"WebGPU cannot be used: onnxruntime-ep-webgpu finds no GPU with a driver here" in done.stderr
