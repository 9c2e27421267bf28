"""Devices of OnnxEvaluator, on a machine that has none: what is asked of ONNX Runtime, and what a user is told."""

import gc
import importlib.metadata
import sys
import types
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from azpy import devices as providers
from azpy.devices import Device, misplaced, provider_options
from azpy.errors import DeviceError, MissingPackageError, ModelError, SettingsError, pip_install
from azpy.evaluators import sessions
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.sessions import open_on_cpu
from models import make_model, make_priors_model
from running import at_once

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
MODEL = make_model()


def rows(count: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).random((count, 2, 3, 3), dtype=np.float32)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sessions that are opened on a GPU, for which the CPU stands in: all else is what a GPU gets."""
    opened = list[Any]()

    def open_session(ort: Any, data: bytes, *_: Any) -> Any:
        opened.append(open_on_cpu(ort, data, 1, "the model"))
        return opened[-1]

    monkeypatch.setattr("azpy.evaluators.onnx.open_on_device", open_session)
    return opened


# The plan


@pytest.mark.parametrize(
    ("device", "precision", "text"),
    [
        ("cpu", "fp16", "precision fp16 needs CUDA or TensorRT: CPU has fp32"),
        ("webgpu", "fp16", "precision fp16 needs CUDA or TensorRT: WebGPU has fp32"),
        ("auto", "fp16", "ONNX Runtime plays fp32 on CUDA, got precision 'fp16': use azpy.TorchEvaluator"),
        ("cuda:1", "fp16", "ONNX Runtime plays fp32 on CUDA, got precision 'fp16': use azpy.TorchEvaluator"),
        ("cuda", "int4", "precision int4 does not exist: CUDA has fp32, fp16"),
    ],
)
def test_an_unavailable_precision_is_refused(device: str, precision: str, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        OnnxEvaluator(b"which nobody opens", device, precision=precision)
    assert text in str(caught.value)


@pytest.mark.parametrize("buckets", [(), (0, 8), (8, 8), (32, 8)])
def test_buckets_must_ascend(buckets: tuple[int, ...]) -> None:
    with pytest.raises(SettingsError, match="buckets must be ascending"):
        OnnxEvaluator(MODEL, "cuda", buckets=buckets)


def test_shape_arithmetic_may_stay_on_the_cpu_and_nothing_else() -> None:
    cuda = Device("cuda")
    assert misplaced({CUDA: ["Conv"], CPU: ["Shape", "Concat"]}, cuda) is None
    assert misplaced({CUDA: ["Conv"], CPU: ["Shape", "NonZero", "Erf"]}, cuda) == (
        "CUDA cannot run Erf, NonZero of the model"
    )
    assert misplaced({CPU: ["Shape"]}, cuda) == "CUDA took no node of the model"
    assert misplaced({CUDA: ["Conv"]}, Device("tensorrt")) == "TensorRT took no node of the model"


# Strictness


def claim(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Has ONNX Runtime say that it offers providers, on a machine whose driver works."""
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [*names, CPU])
    monkeypatch.setattr("azpy.evaluators.sessions.driver_problem", lambda index=0: None)


@pytest.mark.filterwarnings("ignore:Specified provider")
@pytest.mark.parametrize("device", ["cuda", "tensorrt"])
def test_a_silent_fallback_is_an_error(device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    claim(monkeypatch, TENSORRT, CUDA)
    with pytest.raises(DeviceError, match=r"cannot be used: ONNX Runtime fell back to another provider; ") as caught:
        OnnxEvaluator(MODEL, device, cache_dir=tmp_path)
    assert pip_install(device) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nodes_that_fall_back_to_the_cpu_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU stands in for the GPU, and its nodes are those that a GPU would have left to it."""
    claim(monkeypatch)
    with pytest.raises(DeviceError, match=r"^CPU cannot be used: CPU cannot run .*Flatten.* of the model$"):
        sessions.open_on_device(onnxruntime, MODEL, Device("cpu"), [(CPU, {})])
    monkeypatch.delattr(onnxruntime.InferenceSession.__bases__[0], "get_provider_graph_assignment_info")
    with pytest.raises(DeviceError, match="does not report where its nodes run: install a newer version"):
        sessions.open_on_device(onnxruntime, MODEL, Device("cpu"), [(CPU, {})])


def test_a_broken_model_is_not_blamed_on_the_device() -> None:
    for device in ("cuda", "tensorrt", "auto"):
        with pytest.raises(ModelError, match=r"^model is not a usable ONNX model: "):
            OnnxEvaluator(b"broken", device)


# What a user is told


@pytest.mark.parametrize("title", ["WebGPU", "OpenVINO"])
def test_a_plugin_that_is_not_installed_is_named(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, f"onnxruntime_ep_{title.lower()}", None)
    monkeypatch.setattr(sessions, "_register", sessions._register.__wrapped__)  # another test may have loaded it
    with pytest.raises(MissingPackageError) as caught:
        OnnxEvaluator(MODEL, title.lower())
    package = f"onnxruntime-ep-{title.lower()}"
    assert str(caught.value) == f'{title} cannot be used: {package} is not installed: pip install "{package}"'


def test_without_a_gpu_package_the_error_says_which_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    claim(monkeypatch)
    for installed, device, said in (
        ("onnxruntime", "cuda", 'pip uninstall -y onnxruntime, then pip install "onnxruntime-gpu[cuda,cudnn]"'),
        ("onnxruntime", "tensorrt", pip_install("tensorrt")),
        ("onnxruntime onnxruntime-gpu", "cuda", "pip uninstall -y onnxruntime onnxruntime-gpu"),
    ):
        monkeypatch.setattr("azpy.devices.installed_version", dict.fromkeys(installed.split(), "1.31.1").get)
        with pytest.raises(MissingPackageError) as caught:
            OnnxEvaluator(MODEL, device, cache_dir=tmp_path)
        assert said in str(caught.value)


def test_half_removed_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", types.ModuleType("onnxruntime"))  # a folder without its files
    with pytest.raises(MissingPackageError) as caught:
        OnnxEvaluator(MODEL)
    assert str(caught.value) == (
        "onnxruntime is damaged: pip uninstall -y onnxruntime onnxruntime-gpu, then pip install onnxruntime"
    )


def test_an_onnxruntime_that_does_not_load_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('libstdc++.so.6: version not found')")
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        MissingPackageError, match=r"^onnxruntime does not load: libstdc\+\+\.so\.6: version not found; pip"
    ):
        OnnxEvaluator(MODEL)


def test_installed_packages_are_read_from_their_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "onnxruntime":
            return "1.30.0"
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert providers.installed_version("onnxruntime") == "1.30.0"
    assert providers.both_runtimes() is None
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.30.0")
    assert "both installed" in (providers.both_runtimes() or "")


def test_a_missing_driver_is_named_before_anything_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.evaluators.sessions.driver_problem", lambda index=0: "no NVIDIA driver found")
    with pytest.raises(DeviceError, match=r"^CUDA cannot be used: no NVIDIA driver found$"):
        OnnxEvaluator(MODEL, "cuda")


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def preload() -> None:
        print("Failed to load libcublasLt.so.13: cannot open shared object file\nPlease follow https://onnxruntime.ai")

    claim(monkeypatch, CUDA)
    monkeypatch.setattr(onnxruntime, "preload_dlls", preload)
    monkeypatch.setattr(sessions, "_preload", sessions._preload.__wrapped__)
    with pytest.raises(DeviceError, match=r"Failed to load libcublasLt.so.13: cannot open shared object file; "):
        OnnxEvaluator(MODEL, "cuda")
    assert capsys.readouterr().out == ""


class Driver:
    """libcuda, as ctypes shows it."""

    def __init__(self, status: int, count: int) -> None:
        self.status, self.count = status, count

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return self.status

    def cuDeviceGetCount(self, pointer: Any) -> int:  # noqa: N802
        pointer._obj.value = self.count
        return 0


def test_the_driver_is_asked_for_its_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: Driver(0, 2))
    assert providers.driver_problem(1) is None
    assert providers.driver_problem(2) == "GPU 2 does not exist: the driver reports 2, numbered from 0"
    monkeypatch.setattr("ctypes.CDLL", lambda name: Driver(100, 0))
    assert providers.driver_problem() == "the NVIDIA driver finds no GPU (CUDA error 100)"

    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    assert "no NVIDIA driver" in (providers.driver_problem() or "")


# auto


def test_auto_takes_cuda_where_it_is_faster(monkeypatch: pytest.MonkeyPatch, gpu: list[Any]) -> None:
    monkeypatch.setattr("azpy.evaluators.onnx.usable_cores", lambda: 4)
    monkeypatch.setitem(sys.modules, "onnxruntime_ep_webgpu", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for on_gpu, device in ((500.0, "cuda:0"), (300.0, "cpu")):
        rates = iter((100.0, on_gpu))
        monkeypatch.setattr("azpy.evaluators.onnx.rate", lambda *_, rates=rates: next(rates))
        evaluator = OnnxEvaluator(MODEL, "auto", buckets=(4,))
        assert evaluator.device == device
        found = f"CUDA answers {on_gpu:,.0f} rows/s of this network, the CPU 400, in batches of 64"
        assert evaluator.notes == (found,)


def test_auto_falls_back_to_the_cpu_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # WebGPU's plugin
    evaluator = OnnxEvaluator(MODEL, "auto")
    assert evaluator.device == "cpu"
    assert evaluator.description == "CPU, fp32, 1 thread per batch"
    (cuda,) = evaluator.notes  # nobody who left WebGPU's plugin out need be told
    assert cuda.startswith("CUDA cannot be used: ")
    np.testing.assert_array_equal(evaluator.evaluate_batch(rows(3))[0], OnnxEvaluator(MODEL).evaluate_batch(rows(3))[0])
    assert evaluator.fork()._runner is evaluator._runner


# Options of providers


def planned(kind: str, precision: str = "fp32") -> dict[str, dict[str, str]]:
    inputs = {"observations": (2, 3, 3)}
    return dict(provider_options(Device(kind, 2), 0x17, inputs, (8, 64, 256), Path("/cache"), precision))


def test_options_of_cuda_and_tensorrt() -> None:
    cuda = {"device_id": "2", "cudnn_conv_algo_search": "HEURISTIC", "prefer_nhwc": "1"}
    assert planned("cuda") == {CUDA: cuda}
    both = planned("tensorrt")
    assert list(both) == [TENSORRT, CUDA]  # what TensorRT cannot take runs on the same GPU
    assert both[CUDA] == cuda
    assert both[TENSORRT] == {
        "device_id": "2",
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": "/cache",
        "trt_engine_cache_prefix": "azpy-0000000000000017",
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": "/cache",
        "trt_profile_min_shapes": "observations:8x2x3x3",
        "trt_profile_opt_shapes": "observations:64x2x3x3",
        "trt_profile_max_shapes": "observations:256x2x3x3",
    }
    half = planned("tensorrt", "fp16")[TENSORRT]
    assert half == both[TENSORRT] | {"trt_fp16_enable": "1"}


def test_an_unwritable_engine_cache_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeviceError, match=r"TensorRT cannot keep its engines in .*file"):
        OnnxEvaluator(MODEL, "tensorrt", cache_dir=tmp_path / "file")


def test_engines_are_kept_in_the_user_s_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert providers.default_cache_dir() == Path("/somewhere/azpy/tensorrt")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert providers.default_cache_dir() == Path.home() / ".cache/azpy/tensorrt"


# Batches and sessions


@pytest.mark.parametrize("named", ["other names, priors and values [B, 1]", "the usual names"])
def test_buckets_work_with_the_real_onnx_runtime(named: str, gpu: list[Any]) -> None:
    """The calls that a GPU gets, made on the CPU: names, shapes and copies are the real ones."""
    model = make_model() if named == "the usual names" else make_priors_model()
    evaluator, on_gpu = OnnxEvaluator(model), OnnxEvaluator(model, "cuda", buckets=(4, 16))
    for count in (0, 1, 4, 5, 16, 37):
        logits, values = on_gpu.evaluate_batch(rows(count, seed=count))
        expected_logits, expected_values = evaluator.evaluate_batch(rows(count, seed=count))
        np.testing.assert_array_equal(logits, expected_logits)
        np.testing.assert_array_equal(values, expected_values)
    kept = logits.copy()
    on_gpu.evaluate_batch(rows(37, seed=1))
    np.testing.assert_array_equal(logits, kept)


def test_no_bucket_is_prepared_beyond_the_batches_to_come(gpu: list[Any]) -> None:
    for batch, buckets in ((1, "4"), (4, "4"), (5, "4, 16"), (5000, "4, 16, 64")):
        evaluator = OnnxEvaluator(MODEL, "cuda:1", batch=batch, buckets=(4, 16, 64))
        assert evaluator.description == f"CUDA, GPU 1, fp32, batches of {buckets} rows"


def test_gpu_forks_have_their_own_sessions_and_free_them(gpu: list[Any]) -> None:
    evaluator = OnnxEvaluator(MODEL, "cuda", buckets=(8,))
    fork = evaluator.fork()
    assert (fork.network_id, fork.device, fork.row_exact) == (evaluator.network_id, "cuda:0", True)
    gone = [weakref.ref(session) for session in gpu]
    gpu.clear()
    assert len(gone) == 2
    expected = evaluator.evaluate_batch(rows(5))[0]
    del evaluator
    gc.collect()
    assert [session() is None for session in gone] == [True, False]
    np.testing.assert_array_equal(fork.evaluate_batch(rows(5))[0], expected)
    del fork
    gc.collect()
    assert [session() for session in gone] == [None, None]


def test_sessions_of_webgpu_take_turns() -> None:
    """To run, to end and to be made: one at a time, for all sessions of the process."""
    alone = list[bool]()

    def others_wait() -> None:
        def look() -> None:
            free = sessions._SESSION_LOCK.acquire(blocking=False)
            alone.append(not free)
            if free:
                sessions._SESSION_LOCK.release()

        at_once(look)

    class Native:
        def run(self, names: list[str], feed: dict[str, Any]) -> list[str]:
            others_wait()
            return names

        def __del__(self) -> None:
            others_wait()

    session = sessions._OneAtATime(Native())
    assert session.run(["logits"], {}) == ["logits"]
    del session
    gc.collect()
    assert alone == [True, True]
