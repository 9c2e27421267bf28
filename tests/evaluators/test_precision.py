"""Reduced precision on a GPU in training: a generation plays in it if it says nearly what fp32 says, and only then."""

from pathlib import Path
from typing import Any, cast

import pytest
import torch

from azpy.errors import DeviceError, ModelError
from azpy.evaluators import drift as parity
from azpy.evaluators import onnx
from azpy.evaluators import torch as torch_evaluators
from azpy.evaluators.drift import Drift
from azpy.evaluators.onnx import OnnxEvaluator, network_id
from azpy.evaluators.sessions import open_on_cpu
from azpy.playing.replay_check import repeat_game
from azpy.runs.reader import StoredRun, read_checkpoint
from azpy.settings import Settings
from azpy.training.events import Noticed, Saved, Started
from azpy.training.trainer import Trainer
from training_runs import SMALL as BASE
from training_runs import events_of, played

SMALL: dict[str, Any] = BASE | {"game": "connect_four(width=5,height=4)", "device": "cuda", "precision": "fp16"}
SMALL |= {"simulations": 8, "games_per_iteration": 30, "iterations": 2, "match_games": 2, "final_match_games": 2}


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Precisions of torch's evaluators on CUDA, as they are made; they all run on the CPU."""
    made = list[str]()

    def of_model(model: bytes, settings: Settings, device: str, **options: Any) -> OnnxEvaluator:
        made.append(precision := options["precision"])
        evaluator = OnnxEvaluator(model, game=options["game"], batch=options["batch"])
        evaluator.network_id, evaluator.device = network_id(model, precision), "cuda:0"
        evaluator.description = f"CUDA, GPU 0, {precision}"
        return evaluator

    monkeypatch.setattr("azpy.learning.learner.torch_device", lambda device: torch.device("cpu"))
    monkeypatch.setattr("azpy.evaluators.choice.torch_has_cuda", lambda: True)
    monkeypatch.setattr("azpy.evaluators.torch.evaluator_of_model", of_model)
    return made


def train(path: Path, **changes: Any) -> list[Any]:
    return events_of(Settings(**(SMALL | changes)), path)


def test_each_generation_that_passes_plays_in_it(tmp_path: Path) -> None:
    with Trainer(Settings(**SMALL), tmp_path) as trainer:
        events = list(trainer.run())
        plays = [evaluator.network_id for evaluator in trainer._generations.ready.evaluators]
    started = next(event for event in events if isinstance(event, Started))
    assert "CUDA, GPU 0, fp32 (fp16 once it passes its check)" in started.evaluator
    first = read_checkpoint(tmp_path / "checkpoints/000001")
    assert "precision" not in first.state  # a run that goes on has the check again
    assert plays == [network_id(read_checkpoint(tmp_path / "checkpoints/000002").onnx, "fp16")]
    # Games of iteration 2 that were over before the network was fitted were all played by the one before.
    assert network_id(first.onnx) not in played(tmp_path, 2)
    for row in StoredRun(tmp_path).iterations():
        assert row["parity"] < 1e-4
        assert 0 <= row["fp16_policy"] < Drift.MOST_POLICY
        assert row["fp16_agreement"] > 0.95
    assert not any("plays" in (event.advice or "") for event in events if isinstance(event, Saved))


def test_a_failed_check_falls_back_to_fp32_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity.Drift, "MOST_POLICY", -1.0)
    events = train(tmp_path, games_per_iteration=100)  # more than may wait to be fetched
    advice = [event.advice or "" for event in events if isinstance(event, Saved)]
    assert len(advice) == 2
    assert all("playing in fp32: fp16 differs too much from it: policies differ by" in text for text in advice)
    first = read_checkpoint(tmp_path / "checkpoints/000001")
    assert network_id(first.onnx) in played(tmp_path, 2)
    assert network_id(first.onnx, "fp16") not in played(tmp_path, 2)


@pytest.mark.parametrize(
    "error",
    [
        ModelError("returns NaN or infinity for the start position"),
        DeviceError("CUDA cannot be used: no kernel for it"),
    ],
)
def test_a_model_without_the_precision_plays_in_fp32(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = vars(torch_evaluators)["evaluator_of_model"]

    def fails(*given: Any, **options: Any) -> OnnxEvaluator:
        if options["precision"] == "fp16":
            raise error
        return cast("OnnxEvaluator", opened(*given, **options))

    monkeypatch.setattr(torch_evaluators, "evaluator_of_model", fails)
    events = train(tmp_path, iterations=1)
    (advice,) = (event.advice or "" for event in events if isinstance(event, Saved))
    assert f"playing in fp32: fp16 is not possible for this network: {error}" in advice
    started = next(event for event in train(tmp_path, iterations=2) if isinstance(event, Started))
    assert f"playing in fp32: fp16 is not possible for this network: {error}" in started.notices


def test_a_resumed_run_keeps_its_precision(tmp_path: Path) -> None:
    train(tmp_path, iterations=1)
    started = next(event for event in train(tmp_path) if isinstance(event, Started))
    assert "CUDA, GPU 0, fp16" in started.evaluator
    assert "once it passes" not in started.evaluator
    first = read_checkpoint(tmp_path / "checkpoints/000001").onnx
    assert played(tmp_path, 2) == {network_id(first, "fp16")}


def test_a_resumed_run_checks_precision_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path, iterations=1)
    monkeypatch.setattr(parity.Drift, "MOST_POLICY", -1.0)
    started = next(event for event in train(tmp_path) if isinstance(event, Started))
    assert "(fp16 once it passes its check)" in started.evaluator
    assert any("playing in fp32: fp16 differs too much from it" in notice for notice in started.notices)
    assert played(tmp_path, 2) == {network_id(read_checkpoint(tmp_path / "checkpoints/000001").onnx)}


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the engines that TensorRT builds, each with a file; the CPU computes the model."""
    names, defaults = list[str](), cast("Any", OnnxEvaluator.__init__).__kwdefaults__
    monkeypatch.setitem(defaults, "buckets", (4, 16))  # a CPU computes all of a bucket

    def build(ort: Any, data: bytes, device: Any, providers: list[Any]) -> Any:
        _, options = providers[0]
        names.append(options["trt_engine_cache_prefix"])
        folder = Path(options["trt_engine_cache_path"])
        folder.mkdir(exist_ok=True)
        (folder / f"{names[-1]}_sm90.engine").touch()
        (folder / "sm90.timing").touch()
        return open_on_cpu(ort, data, 1, "the model")

    monkeypatch.setattr(onnx, "open_on_device", build)
    return names


def test_tensorrt_engines_are_kept_in_the_run_and_pruned(tmp_path: Path, engines: list[str]) -> None:
    said, *_ = train(tmp_path, device="tensorrt", iterations=3)
    assert isinstance(said, Noticed)  # before the wait for an engine
    assert "TensorRT builds an engine for each network before it plays" in said.text
    left = {file.name for file in (tmp_path / "engines").iterdir()}
    newest = network_id(read_checkpoint(tmp_path / "checkpoints/000003").onnx, "fp16")
    assert f"{newest:016x}" in engines[-1]
    assert left == {f"{engines[-1]}_sm90.engine", "sm90.timing"}


def test_games_repeat_in_the_precision_they_were_played_in(tmp_path: Path, gpu: list[str]) -> None:
    train(tmp_path, iterations=1)
    train(tmp_path)
    for now in ("fp16", "fp32"):
        train(tmp_path, precision=now)  # has nothing to do but to change the setting
        gpu.clear()
        run = StoredRun(tmp_path)
        record = next(record for _, record in run.games([2]))
        assert run.settings.precision == now
        comparison = repeat_game(run, record)
        assert len(gpu) == 1  # none was opened only to see which it is
        assert comparison.model == "the model of checkpoint 1 in fp16"
        assert comparison.difference is None
        assert repeat_game(run, record, tmp_path / "checkpoints/000001/model.onnx").difference is None
