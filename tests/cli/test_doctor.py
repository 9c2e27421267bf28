"""az-doctor: it says what is there and what is not, whatever is missing, and what to do next."""

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import azpy
from azpy import doctor, system
from azpy.cli.doctor import main
from azpy.doctor import advice, usable
from azpy.errors import pip_install
from azpy.evaluators.onnx import OnnxEvaluator
from models import probe_model
from running import program

TO_TRAIN = pip_install("train")
GOOD: dict[str, Any] = {
    "azpy": "0.1.0",
    "python": "3.11.7",
    "system": "Linux x86_64",
    "packages": {"numpy": "2.4.6", "onnxruntime": "1.31.1", "onnxruntime-gpu": None, "torch": "2.15.0"}
    | {"safetensors": "0.8.0", "onnx": "1.23.2", "onnxruntime-ep-openvino": None},
    "broken": {},
    "conflict": None,
    "providers": {"cpu": None, "cuda": "CUDA cannot be used: no driver", "tensorrt": "TensorRT cannot be used: no"},
    "torch_gpu": "torch finds no GPU",
    "cpu": {"name": "Some CPU", "features": ["AVX2"], "cores": 8, "affinity": 8, "quota": None, "usable": 8},
    "memory": {"total": 2**34, "available": 2**33, "limit": None},
    "gpus": [],
    "environment": {},
    "speed": {"simulations_per_second": 1e6, "evaluations_per_second": 2e4},
}
AMX = {"cpu": {"name": "Intel(R) Xeon(R) Processor", "features": ["avx512f", "amx_bf16"]}}
WITH_OPENVINO = {"packages": {"onnxruntime-ep-openvino": "1.8.1"}, "providers": {"openvino": None}}
NO_RUNTIME = {"packages": {"onnxruntime": None}, "providers": {"cpu": "onnxruntime is not installed"}}
GPU = {"name": "Some GPU", "memory": "24 GiB", "driver": "580", "compute_capability": "8.9"}


def test_this_machine_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    assert f"azpy {azpy.__version__}, Python {sys.version.split()[0]}" in text
    assert f"numpy                 {np.__version__}" in text
    assert "  CPU                   works\n" in text
    assert "CUDA             " in text
    for word in ("cores", "memory", "GPU", "simulations/s", "evaluations/s"):
        assert word in text
    assert text.index("Speed of one thread:") < text.index("Next:")


def test_this_machine_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "--no-speed"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["usable"] is True
    assert found["packages"]["numpy"] == np.__version__
    assert found["providers"]["cpu"] is None
    assert set(found["providers"]) == {"cpu", "cuda", "tensorrt", "webgpu", "openvino"}
    assert found["speed"] is None
    assert found["advice"]
    assert 1 <= found["cpu"]["usable"] <= found["cpu"]["cores"]
    assert found["memory"]["total"] > 2**28


def test_it_reports_the_cores_that_settings_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "membership").write_text("0::/\n")
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    monkeypatch.setattr(system, "_CGROUPS", tmp_path)
    monkeypatch.setattr(system, "_MEMBERSHIP", tmp_path / "membership")
    found = doctor._cpu()
    assert (found["quota"], found["usable"]) == (1.0, system.usable_cores())


def test_the_speed_check_counts() -> None:
    speed = doctor._speed(has_runtime=True)
    assert set(speed) == {"simulations_per_second", "evaluations_per_second"}
    assert all(rate > 100 for rate in speed.values())
    assert set(doctor._speed(has_runtime=False)) == {"simulations_per_second"}


def test_it_works_with_neither_onnxruntime_nor_torch() -> None:
    text = """
import importlib.metadata, sys
for name in ("onnxruntime", "torch", "safetensors", "onnx"):
    sys.modules[name] = None  # importing it fails
known = importlib.metadata.version
def version(name):
    if name != "numpy":
        raise importlib.metadata.PackageNotFoundError(name)
    return known(name)
importlib.metadata.version = version
from azpy.cli.doctor import main
sys.exit(main(sys.argv[1:]))
"""
    done = program(text)
    assert done.code == 0, done.errors
    assert done.errors == ""
    assert "onnxruntime           not installed" in done.out
    assert "CPU                   no: onnxruntime is not installed: pip install onnxruntime" in done.out
    assert "simulations/s" in done.out
    assert "evaluations/s" not in done.out
    assert "for faster networks: pip install onnxruntime;" in done.out
    assert TO_TRAIN in done.out
    assert json.loads(program(text, "--json", "--no-speed").out)["packages"]["torch"] is None


def test_a_package_that_does_not_load_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["--no-speed"]) == 2
    assert "onnxruntime is installed but does not load" in capsys.readouterr().out


# What to do next

READY = "ready to train: az-train connect_four --minutes 5"


@pytest.mark.parametrize(
    ("changes", "works", "first", "is_ready"),
    [
        ({}, True, READY, True),
        ({"gpus": [GPU], "providers": {"cuda": None}, "torch_gpu": None}, True, f"{READY} --device cuda", True),
        ({"gpus": [GPU], "torch_gpu": None}, True, f"{READY} --device cuda", True),  # torch is enough
        (
            {"gpus": [GPU], "providers": {"cuda": None}},
            True,
            "training stays on the CPU: torch finds no GPU; --device auto may still play on the GPU",
            True,
        ),
        (
            {"gpus": [GPU]},
            True,
            "your GPU (Some GPU) is not used: torch finds no GPU; CUDA cannot be used: no driver",
            True,
        ),
        ({"conflict": "both are installed", "packages": {"onnxruntime-gpu": "1"}}, False, "both are installed", False),
        (NO_RUNTIME, True, "for faster networks: pip install onnxruntime;", False),
        (NO_RUNTIME | {"gpus": [GPU]}, True, 'for faster networks: pip install "onnxruntime-gpu[cuda,cudnn]";', False),
        (
            {"providers": {"cpu": "illegal instruction"}},
            False,
            "ONNX Runtime is installed but does not work: illegal instruction",
            False,
        ),
        (
            {"broken": {"torch": "undefined symbol"}},
            False,
            "torch is installed but does not load (undefined symbol)",
            False,
        ),
        ({"cpu": {"usable": 2}}, True, "azpy can use 2 of 8 cores", True),
        (AMX, True, 'this processor plays networks faster with OpenVINO: pip install "onnxruntime-ep-openvino"', True),
        (AMX | WITH_OPENVINO, True, f"{READY} --device openvino", True),
        ({"environment": {"OMP_NUM_THREADS": "1"}}, True, "OMP_NUM_THREADS=1 limits", True),
        ({"packages": {"safetensors": None}}, True, "to train, safetensors is missing", False),
        ({"packages": {"torch": None, "onnx": None}}, True, f"to train, torch, onnx are missing: {TO_TRAIN}", False),
    ],
    ids=range(16),
)
def test_advice_fits_what_was_found(changes: dict[str, Any], works: bool, first: str, is_ready: bool) -> None:
    found = GOOD | {name: GOOD[name] | one if isinstance(one, dict) else one for name, one in changes.items()}
    lines = advice(found)
    assert usable(found) == works
    assert lines[0].startswith(first)
    assert any(line.startswith(READY) for line in lines) == is_ready


@pytest.mark.parametrize(
    ("cuda", "available", "text"),
    [(None, False, "built for the CPU"), ("13.0", False, "torch finds no GPU"), ("13.0", True, None)],
)
def test_torch_is_asked_whether_it_has_a_gpu(
    cuda: str | None, available: bool, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch: Any = types.ModuleType("torch")
    torch.version = types.SimpleNamespace(cuda=cuda)
    torch.cuda = types.SimpleNamespace(is_available=lambda: available)
    torch.backends = types.SimpleNamespace(mps=types.SimpleNamespace(is_available=lambda: False))
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert doctor._torch_gpu(None) == "torch is not installed"
    found = doctor._torch_gpu("2.15.0")
    assert found is None if text is None else text in (found or "")


# Where it looks


def test_nvidia_smi_is_asked_for_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor._gpus() == []
    fake = tmp_path / "nvidia-smi"
    fake.write_text("#!/bin/sh\necho 'NVIDIA L4, 23034 MiB, 580.65, 8.9'\n")
    fake.chmod(0o755)
    assert doctor._gpus() == [
        {"name": "NVIDIA L4", "memory": "23034 MiB", "driver": "580.65", "compute_capability": "8.9"}
    ]
    fake.write_text("#!/bin/sh\necho 'no devices were found'; exit 6\n")
    assert doctor._gpus() == []


def test_the_test_model_equals_the_one_that_onnx_makes() -> None:
    state = azpy.make_game("connect_four")
    expected = probe_model(state.obs_shape, state.num_actions, seed=None)
    assert onnx.load_from_string(doctor._MODEL) == onnx.load_from_string(expected)
    onnx.checker.check_model(onnx.load_from_string(doctor._MODEL), full_check=True)
    assert OnnxEvaluator(doctor._MODEL, game=state).row_exact
