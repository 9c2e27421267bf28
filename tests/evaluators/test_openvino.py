"""OpenVINO: what is asked of it, with the CPU in its place, and its answers where its plugin finds an Intel CPU."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy.devices import Device
from azpy.errors import DeviceError, MissingPackageError
from azpy.evaluators import sessions
from azpy.evaluators.choice import half_precision, open_network
from azpy.evaluators.onnx import OnnxEvaluator, network_id
from azpy.evaluators.sessions import open_on_cpu
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.playing.replay_check import repeat_game
from azpy.runs.reader import StoredRun, read_checkpoint
from azpy.serving.models import open_player
from azpy.settings.run import combine
from azpy.training.events import Event, Started
from models import probe_model
from running import at_once
from training_runs import events_of, played

GAME = azpy.make_game("connect_four")
MODEL = probe_model(GAME.obs_shape, GAME.num_actions, layers=3, channels=16)
SMALL: dict[str, Any] = {
    "game": "connect_four",
    "network": "1x16",
    "device": "openvino",
    "simulations": 8,
    "slots": 16,
    "games_per_iteration": 16,
    "window_min": 64,
    "match_games": 2,
    "match_simulations": 8,
    "final_match_games": 2,
}


def rows(count: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).integers(0, 2, (count, *GAME.obs_shape)).astype(np.float32)


def train(path: Path, **changes: Any) -> list[Event]:
    return events_of(combine(SMALL, changes), path)


def has_bf16(monkeypatch: pytest.MonkeyPatch, flag: str = "amx_bf16") -> None:
    monkeypatch.setattr("azpy.devices.cpu_flags", lambda: {"avx2", flag})


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """OpenVINO's settings of each session that is opened; the CPU computes it."""
    asked = list[dict[str, Any]]()

    def open_session(ort: Any, data: bytes, device: Device, providers: list[tuple[str, dict[str, str]]]) -> Any:
        ((provider, options),) = providers
        assert (device.kind, provider) == ("openvino", "OpenVINOExecutionProvider")
        asked.append(json.loads(options["load_config"])["CPU"])
        return open_on_cpu(ort, data, 1, "the model")

    monkeypatch.setattr("azpy.evaluators.onnx.open_on_device", open_session)
    return asked


# With the CPU in its place


@pytest.mark.parametrize(("threads", "streams", "total"), [(1, 8, 8), (3, 2, 6), (8, 1, 8), (9, 1, 9)])
def test_forks_share_a_session_with_a_stream_for_each_batch_at_a_time(
    threads: int, streams: int, total: int, opened: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azpy.devices.usable_cores", lambda: 8)
    evaluator = OnnxEvaluator(MODEL, "openvino", precision="bf16", threads=threads)
    assert evaluator.description == f"OpenVINO, bf16, {threads} thread{'s' * (threads > 1)} per batch"
    assert (evaluator.device, evaluator.network_id) == ("openvino", network_id(MODEL, "bf16"))
    assert evaluator.fork()._runner is evaluator._runner
    (found,) = opened
    assert (found["NUM_STREAMS"], found["INFERENCE_NUM_THREADS"]) == (str(streams), str(total))
    assert (found["INFERENCE_PRECISION_HINT"], found["ENABLE_CPU_PINNING"]) == ("bf16", "NO")


def test_batches_are_not_padded(opened: list[dict[str, Any]]) -> None:
    evaluator, sizes = OnnxEvaluator(MODEL, "openvino", batch=64), list[int]()
    run = evaluator._runner._session.run

    class Counting:
        def run(self, names: list[str], feed: dict[str, NDArray[np.float32]]) -> Any:
            sizes.extend(len(each) for each in feed.values())
            return run(names, feed)

    evaluator._runner._session = Counting()
    for count in (1, 5, 64, 700):
        np.testing.assert_array_equal(
            evaluator.evaluate_batch(rows(count))[0], OnnxEvaluator(MODEL).evaluate_batch(rows(count))[0]
        )
    assert sizes == [1, 5, 64, 700]
    assert opened[0]["INFERENCE_PRECISION_HINT"] == "f32"


@pytest.mark.parametrize(("flag", "precision"), [("amx_bf16", "bf16"), ("avx512_bf16", "bf16"), ("avx512f", "fp32")])
def test_matches_and_servers_play_in_bf16_on_a_cpu_that_has_it(
    flag: str, precision: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, opened: list[dict[str, Any]]
) -> None:
    has_bf16(monkeypatch, flag)
    (tmp_path / "model.onnx").write_bytes(MODEL)
    evaluator = open_network(tmp_path / "model.onnx", Device("openvino"), game=GAME)
    assert evaluator.description == f"OpenVINO, {precision}, 1 thread per batch"
    assert Device("cpu").usual_precision == "fp32"
    # The levels of a player are those of its network in any precision.
    model = str(tmp_path / "model.onnx")
    served, on_cpu = (open_player(model, GAME.game, 8, Device(kind)) for kind in ("openvino", "cpu"))
    assert served.network == on_cpu.network == f"{network_id(MODEL):016x}"


def test_other_machines_need_not_have_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    has_bf16(monkeypatch)
    for changes, precision in (
        ({}, "bf16"),
        ({"workers": 2}, "bf16"),
        ({"workers": "folder:there"}, "fp32"),
        ({"precision": "fp32"}, "fp32"),
        ({"device": "cpu"}, "fp32"),
    ):
        settings = combine(SMALL, changes)
        assert half_precision(settings, settings.all_devices) == precision


def test_a_run_plays_in_bf16_once_it_passes_its_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, opened: list[dict[str, Any]]
) -> None:
    has_bf16(monkeypatch)
    (started,) = (event for event in train(tmp_path, iterations=1) if isinstance(event, Started))
    assert "OpenVINO, fp32, 1 thread per batch (bf16 once it passes its check)" in started.evaluator
    train(tmp_path, iterations=2)
    first = read_checkpoint(tmp_path / "checkpoints/000001").onnx
    assert played(tmp_path, 2) == {network_id(first, "bf16")}
    record = next(record for _, record in StoredRun(tmp_path).games([2]))
    comparison = repeat_game(StoredRun(tmp_path), record)
    assert (comparison.model, comparison.difference) == ("the model of checkpoint 1 in bf16", None)


def test_it_trains_and_lays_out_threads_as_on_the_cpu() -> None:
    ours, cpu = combine(SMALL), combine(SMALL, {"device": "cpu"})
    assert ours.training_device == cpu.training_device == "cpu"
    assert (ours.pipelines, ours.eval_batch) == (cpu.pipelines, cpu.eval_batch)


def test_a_cpu_of_another_maker_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    monkeypatch.setattr(sessions, "_register", lambda *_: None)
    monkeypatch.setattr(onnxruntime, "get_ep_devices", list)
    with pytest.raises(DeviceError) as caught:
        OnnxEvaluator(MODEL, "openvino")
    assert str(caught.value) == "OpenVINO cannot be used: onnxruntime-ep-openvino finds no Intel CPU here"


# With OpenVINO itself


@pytest.fixture(scope="module")
def openvino() -> OnnxEvaluator:
    try:
        return OnnxEvaluator(MODEL, "openvino", game=GAME)
    except (DeviceError, MissingPackageError) as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("game", "spec"),
    {"chess": "1x16", "go(size=9)": "2x16+conv", "hex": "2x16+pool", "pig": "2x64", "connect_four": "2x16+wdl"}.items(),
)
def test_networks_of_azpy_answer_as_on_the_cpu(game: str, spec: str, openvino: OnnxEvaluator) -> None:
    start = azpy.make_game(game)
    model = to_onnx(Network.of(start, spec))
    cpu, ours = OnnxEvaluator(model), OnnxEvaluator(model, openvino.device, game=start)
    for count in (1, 3, 64):
        batch = np.random.default_rng(count).integers(0, 2, (count, *start.obs_shape)).astype(np.float32)
        for one, other in zip(cpu.evaluate_batch(batch), ours.evaluate_batch(batch), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4, strict=True)


def test_forks_answer_at_the_same_time(openvino: OnnxEvaluator) -> None:
    expected, wrong = OnnxEvaluator(MODEL).evaluate_batch(rows(20))[0], list[float]()

    def work(fork: OnnxEvaluator) -> None:
        wrong.extend(float(np.abs(fork.evaluate_batch(rows(20))[0] - expected).max()) for _ in range(20))

    at_once(partial(work, openvino), partial(work, openvino.fork()))
    assert len(wrong) == 40
    assert max(wrong) < 1e-4


def test_two_pipelines_play_games(openvino: OnnxEvaluator) -> None:
    with azpy.SelfPlay("connect_four", openvino, slots=8, pipelines=2, simulations=8, games=8) as games:
        assert sorted(record.game_id for record in games) == list(range(8))


def test_a_run_plays_and_goes_on(openvino: OnnxEvaluator, tmp_path: Path) -> None:
    train(tmp_path, iterations=2)
    assert any(isinstance(event, Started) and "OpenVINO" in event.evaluator for event in train(tmp_path, iterations=3))
    found = azpy.OnnxEvaluator(tmp_path, openvino.device, precision="bf16").evaluate_batch(rows(64))
    exact = azpy.OnnxEvaluator(tmp_path).evaluate_batch(rows(64))
    for one, other in zip(exact, found, strict=True):
        np.testing.assert_allclose(one, other, atol=0.05)
