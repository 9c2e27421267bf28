"""Which evaluator plays where, with torch's CUDA made up; test_gpu.py plays on a GPU."""

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

import azpy
from azpy.devices import CPU, Device
from azpy.errors import DeviceError, SettingsError
from azpy.evaluators import choice
from azpy.evaluators.choice import half_precision, open_generation, open_network
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.fleet import worker
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.runs.folder import RunFolder
from azpy.settings import Settings
from azpy.training.generations import Generations

START = azpy.make_game("tic_tac_toe")
MODEL = to_onnx(Network.of(START, "1x8"))


@pytest.fixture
def on_torch(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Device and precision of each evaluator of torch that is made; they all run on the CPU."""
    made = list[tuple[str, str]]()

    def of_model(model: bytes, settings: Settings, device: str, **options: Any) -> OnnxEvaluator:
        made.append((device, options["precision"]))
        evaluator = OnnxEvaluator(model, game=options["game"])
        evaluator.device = "cuda:0"
        return evaluator

    monkeypatch.setattr(choice, "torch_has_cuda", lambda: True)
    monkeypatch.setattr("azpy.evaluators.torch.evaluator_of_model", of_model)
    return made


def settings(**more: Any) -> Settings:
    return Settings("tic_tac_toe", network="1x8", **more)


def test_cuda_is_torch_s(on_torch: list[tuple[str, str]]) -> None:
    open_generation(MODEL, Device("cuda", 1), settings(), game=START, precision="fp16")
    open_generation(MODEL, CPU, settings(), game=START)
    assert on_torch == [("cuda:1", "fp16")]


def test_auto_takes_the_faster(on_torch: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    for on_gpu, on_cpu, device in ((500.0, 200.0, "cuda:0"), (500.0, 300.0, "cpu")):
        rates = iter((on_gpu, on_cpu))
        monkeypatch.setattr(choice, "rate", lambda *_, rates=rates: next(rates))
        monkeypatch.setattr(choice, "usable_cores", lambda: 2)
        found = open_generation(MODEL, Device("auto"), settings(), game=START, precision="fp16", batch=40)
        assert found.device == device
        assert f"CUDA answers 500 rows/s of this network, the CPU {2 * on_cpu:,.0f}, in batches of 40" in found.notes
    assert on_torch == [("cuda", "fp32")] * 2


def test_auto_goes_on_where_the_gpu_cannot_be_used(
    on_torch: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise DeviceError("cuda:0 has no room")

    monkeypatch.setattr("azpy.evaluators.torch.evaluator_of_model", full)
    found = open_generation(MODEL, Device("auto"), settings(), game=START)
    assert (found.device, found.notes[0]) == ("cpu", "cuda:0 has no room")


def test_auto_is_fp16_on_cuda_where_all_that_play_have_it(on_torch: list[tuple[str, str]]) -> None:
    assert half_precision(settings(), [Device("cuda", 0), Device("cuda", 1)]) == "fp16"
    assert half_precision(settings(), [CPU]) == "fp32"
    assert half_precision(settings(precision="fp32"), [Device("cuda")]) == "fp32"
    assert half_precision(settings(workers=2), [Device("cuda")]) == "fp16"
    assert half_precision(settings(workers="folder:shared"), [Device("cuda")]) == "fp32"
    own: dict[str, Any] = {"network": "mine:make", "device": "cuda"}
    assert half_precision(Settings("tic_tac_toe", **own), [Device("cuda")]) == "fp16"
    assert half_precision(Settings("tic_tac_toe", **own, workers=2), [Device("cuda")]) == "fp32"
    Settings("tic_tac_toe", **own, precision="fp16")
    with pytest.raises(SettingsError, match="workers play network mine:make by ONNX Runtime, which has no fp16"):
        Settings("tic_tac_toe", **own, precision="fp16", workers=2)


def test_a_run_that_goes_on_with_auto_plays_in_fp16_at_once(
    on_torch: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    buffer = azpy.ReplayBuffer("tic_tac_toe")
    with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), games=8, simulations=4) as play:
        buffer.extend(list(play))
    rates = iter((2.0, 1.0))
    monkeypatch.setattr(choice, "rate", lambda *_: next(rates))
    monkeypatch.setattr(choice, "usable_cores", lambda: 1)
    network = Network.of(START, "1x8").eval()
    generations = Generations(settings(device="auto"), START, cast("RunFolder", SimpleNamespace(path=tmp_path)))
    generations.model = to_onnx(network)
    generations.reopen(network, 1, buffer)
    assert generations.ready.precision == "fp16"
    assert on_torch == [("cuda", "fp32"), ("cuda:0", "fp32"), ("cuda:0", "fp16")]


def test_a_worker_runs_no_function_of_the_head_s(
    on_torch: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[Device]()
    monkeypatch.setattr(worker, "OnnxEvaluator", lambda model, device, **options: opened.append(device))
    theirs = Settings("tic_tac_toe", network="nobody_has_it:make", device="cuda")
    worker.open_lineup(theirs, START, hashlib.sha256(MODEL).hexdigest(), "fp32", MODEL)
    assert (opened, on_torch) == ([Device("cuda")], [])


def test_onnxruntime_plays_a_checkpoint_copied_from_its_run(
    on_torch: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.onnx").write_bytes(MODEL)
    (tmp_path / "manifest.json").write_text('{"model.onnx": ""}')
    opened = list[Device]()
    monkeypatch.setattr("azpy.evaluators.torch.torch_device", torch.device)
    monkeypatch.setattr("azpy.evaluators.torch._Slot", lambda *_: None)
    monkeypatch.setattr(choice, "OnnxEvaluator", lambda path, device, **options: opened.append(device))
    open_network(tmp_path / "model.onnx", Device("cuda"), game=START)
    assert opened == [Device("cuda")]
