"""Devices of OnnxEvaluator, on a machine that has none: what is asked of ONNX Runtime, and what a user is told."""

import importlib.metadata
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from azpy import devices as providers
from azpy.devices import BUCKETS, Device, chunks, misplaced, provider_options
from azpy.errors import DeviceError, MissingPackageError, ModelError, SettingsError, pip_install
from azpy.evaluators.onnx import OnnxEvaluator
from fake_onnxruntime import CPU, CUDA, TENSORRT, Session, answer, install

MODEL = b"any model"


def rows(count: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).random((count, 2, 3, 3), dtype=np.float32)


def options_of(session: Session, provider: str) -> dict[str, str]:
    options: dict[str, str] = dict(session.asked)[provider]
    return options


# The plan


def test_devices_by_name() -> None:
    assert Device.read("cpu") == Device("cpu")
    assert Device.read("cuda") == Device.read("cuda:0") == Device("cuda", 0)
    assert Device.read("tensorrt:3") == Device("tensorrt", 3)
    assert [str(device) for device in Device.read("auto").choices] == ["cuda:0", "webgpu", "cpu"]


@pytest.mark.parametrize(
    ("device", "precision", "text"),
    [
        ("cpu", "fp16", "precision fp16 needs a GPU: CPU has fp32"),
        ("auto", "fp16", "precision fp16 needs a GPU: CPU has fp32"),
        ("cuda", "int4", "precision int4 does not exist: CUDA has fp32, fp16"),
    ],
)
def test_a_precision_that_cannot_be_had_is_refused(
    device: str, precision: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = install(monkeypatch)
    with pytest.raises(SettingsError) as caught:
        OnnxEvaluator(MODEL, device, precision=precision)
    assert text in str(caught.value)
    assert machine.calls == []


@pytest.mark.parametrize("device", ["cuda", "tensorrt"])
def test_a_gpu_casts_no_observations_in_silence(device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, device, cache_dir=tmp_path)
    before = list(machine.batches)
    with pytest.raises(ModelError, match=r"takes observations float32 \[B, 2, 3, 3\], got float64 \[4, 2, 3, 3\]"):
        evaluator.evaluate_batch(rows(4).astype(np.float64))
    assert machine.batches == before


def test_batches_are_cut_into_buckets() -> None:
    assert [chunks(count, BUCKETS)[0][2] for count in (1, 8, 9, 128, 129, 512, 4000)] == [8, 8, 32, 128, 256, 512, 512]
    assert chunks(0, BUCKETS) == [(0, 0, 8)]
    assert chunks(5, BUCKETS) == [(0, 5, 8)]
    assert chunks(512, BUCKETS) == [(0, 512, 512)]
    assert chunks(1100, BUCKETS) == [(0, 512, 512), (512, 1024, 512), (1024, 1100, 128)]


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


def test_cuda_is_asked_for_strictly(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda:1")
    (session,) = machine.gpu_sessions
    assert [name for name, _ in session.asked] == [CUDA]  # with the CPU in the list it could not be refused
    assert options_of(session, CUDA) == {"device_id": "1", "cudnn_conv_algo_search": "HEURISTIC", "prefer_nhwc": "1"}
    assert session.options.config["session.intra_op.allow_spinning"] == "0"
    assert not session.falls_back
    assert machine.calls.index("preload") < len(machine.calls) - 1
    assert machine.calls[-2:] == ["preload", "session"]
    assert evaluator.device == "cuda:1"
    assert evaluator.description == "CUDA, GPU 1, fp32, batches of 8, 32, 128, 256, 512 rows"
    assert evaluator.notes == ()


@pytest.mark.parametrize("tells_nodes", [True, False])
@pytest.mark.parametrize("device", ["cuda", "tensorrt"])
def test_a_silent_fallback_is_an_error(
    device: str, tells_nodes: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine = install(monkeypatch, loading=(), tells_nodes=tells_nodes)
    with pytest.raises(DeviceError) as caught:
        OnnxEvaluator(MODEL, device, cache_dir=tmp_path)
    text = str(caught.value)
    assert "cannot be used: ONNX Runtime fell back to another provider; " in text
    assert pip_install(device) in text
    assert "\n" not in text
    assert not any(session.falls_back for session in machine.gpu_sessions)


def test_tensorrt_that_falls_back_to_cuda_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, loading=(CUDA,))
    with pytest.raises(DeviceError, match="TensorRT cannot be used: ONNX Runtime fell back to another provider"):
        OnnxEvaluator(MODEL, "tensorrt", cache_dir=tmp_path)


def test_tensorrt_that_leaves_every_node_to_cuda_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, nodes={CUDA: ["Conv"]})
    with pytest.raises(DeviceError, match="TensorRT took no node of the model"):
        OnnxEvaluator(MODEL, "tensorrt", cache_dir=tmp_path)


def test_a_model_with_shape_arithmetic_runs_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch, nodes={CUDA: ["Conv"], CPU: ["Shape", "Concat"]})
    assert OnnxEvaluator(MODEL, "cuda").device == "cuda:0"
    assert len(machine.gpu_sessions) == 1


def test_a_node_that_cuda_cannot_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, nodes={CUDA: ["Conv"], CPU: ["NonZero"]})
    with pytest.raises(DeviceError, match=r"^CUDA cannot be used: CUDA cannot run NonZero of the model$"):
        OnnxEvaluator(MODEL, "cuda")


@pytest.mark.parametrize("nodes", [{}, {CPU: ["Shape"]}])
def test_an_onnxruntime_that_does_not_tell_its_nodes_is_refused(
    nodes: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, nodes=nodes, tells_nodes=False)
    with pytest.raises(DeviceError, match="does not say which node runs where: install a newer one"):
        OnnxEvaluator(MODEL, "cuda")


def test_a_broken_model_is_not_blamed_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    for device in ("cuda", "tensorrt", "auto"):
        with pytest.raises(ModelError, match=r"^model is no usable ONNX model: not a protobuf$"):
            OnnxEvaluator(b"broken", device)


# What a user is told


def test_a_plugin_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    with pytest.raises(MissingPackageError) as caught:
        OnnxEvaluator(MODEL, "webgpu")
    package = "onnxruntime-ep-webgpu"
    assert str(caught.value) == f'WebGPU cannot be used: {package} is not installed: pip install "{package}"'


def test_without_a_gpu_package_the_error_says_which_one(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, available=(CPU,), installed=("onnxruntime",))
    with pytest.raises(MissingPackageError) as caught:
        OnnxEvaluator(MODEL, "cuda")
    assert 'pip uninstall -y onnxruntime, then pip install "onnxruntime-gpu[cuda,cudnn]" onnx' in str(caught.value)
    with pytest.raises(MissingPackageError, match=re.escape(pip_install("tensorrt"))):
        OnnxEvaluator(MODEL, "tensorrt")


@pytest.mark.parametrize("available", [(CPU,), (CUDA, CPU)])
def test_both_packages_at_once_are_named(available: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, available=available, loading=(), installed=("onnxruntime", "onnxruntime-gpu"))
    with pytest.raises((MissingPackageError, DeviceError)) as caught:
        OnnxEvaluator(MODEL, "cuda")
    assert "onnxruntime and onnxruntime-gpu are both installed and overwrite each other" in str(caught.value)
    assert "pip uninstall -y onnxruntime onnxruntime-gpu" in str(caught.value)


def test_what_removing_one_of_both_packages_leaves_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("changes", [{"loading": ()}, {"available": (CPU,), "installed": ("onnxruntime",)}])
def test_a_missing_driver_is_named_before_anything_to_install(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, **changes)
    monkeypatch.setattr("azpy.evaluators.sessions.driver_problem", lambda index=0: "there is no NVIDIA driver here")
    with pytest.raises(DeviceError, match=r"^CUDA cannot be used: there is no NVIDIA driver here$"):
        OnnxEvaluator(MODEL, "cuda")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    said = "Failed to load libcublasLt.so.13: cannot open shared object file\nPlease follow https://onnxruntime.ai/docs"
    install(monkeypatch, loading=(), preload_says=said)
    with pytest.raises(DeviceError, match=r"Failed to load libcublasLt.so.13: cannot open shared object file; check"):
        OnnxEvaluator(MODEL, "cuda")
    assert capsys.readouterr().out == ""


def test_what_a_provider_itself_says_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, open_error="CUDA failure 2: out of memory\nand more")
    with pytest.raises(DeviceError, match=r"^CUDA cannot be used: CUDA failure 2: out of memory$"):
        OnnxEvaluator(MODEL, "cuda")


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
    assert providers.driver_problem(2) == "there is no GPU 2: the driver counts 2, from 0"
    monkeypatch.setattr("ctypes.CDLL", lambda name: Driver(100, 0))
    assert providers.driver_problem() == "the NVIDIA driver finds no GPU (CUDA error 100)"

    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    assert "no NVIDIA driver" in (providers.driver_problem() or "")


# auto


def test_auto_takes_cuda_where_it_loads_and_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    monkeypatch.setattr("azpy.evaluators.onnx.usable_cores", lambda: 4)
    for on_gpu, device in ((500.0, "cuda:0"), (300.0, "cpu")):
        rates = iter((100.0, on_gpu))
        monkeypatch.setattr("azpy.evaluators.onnx.rate", lambda *_, rates=rates: next(rates))
        evaluator = OnnxEvaluator(MODEL, "auto")
        assert evaluator.device == device
        found = f"CUDA answers {on_gpu:,.0f} rows/s of this network, the CPU 400, in batches of 64"
        assert evaluator.notes == (found,)
    assert not any(TENSORRT in dict(session.asked) for session in machine.sessions)  # it would build an engine


@pytest.mark.parametrize("changes", [{"loading": ()}, {"available": (CPU,)}, {"open_error": "no room"}])
def test_auto_falls_back_to_the_cpu_and_says_why(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, **changes)
    evaluator = OnnxEvaluator(MODEL, "auto")
    assert evaluator.device == "cpu"
    assert evaluator.description == "CPU, fp32, 1 thread a batch"
    (cuda,) = evaluator.notes  # nobody who left WebGPU's plugin out need be told
    assert cuda.startswith("CUDA cannot be used: ")
    np.testing.assert_array_equal(evaluator.evaluate_batch(rows(3))[0], answer(rows(3))[0])
    assert evaluator.fork()._runner is evaluator._runner


def test_the_cpu_asks_nothing_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cpu", threads=3)
    assert machine.calls == ["session"]
    assert evaluator.fork()._runner is evaluator._runner
    assert evaluator.description == "CPU, fp32, 3 threads a batch"


# Options of providers


def planned(kind: str) -> dict[str, dict[str, str]]:
    return dict(provider_options(Device(kind, 2), 0x17, {"observations": (2, 3, 3)}, (8, 64, 256), Path("/cache")))


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


def test_tensorrt_s_engines_are_kept_by_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = install(monkeypatch)
    cache = tmp_path / "new" / "engines"
    one = OnnxEvaluator(MODEL, "tensorrt", buckets=(8, 64, 256), cache_dir=cache)
    other = OnnxEvaluator(b"other weights", "tensorrt:1", buckets=(8, 64, 256), cache_dir=cache)
    options = [options_of(session, TENSORRT) for session in machine.gpu_sessions]
    for evaluator, given in zip((one, other), options, strict=True):
        assert given["trt_engine_cache_prefix"] == f"azpy-{evaluator.network_id:016x}"  # the trainer finds them by it
        assert given["trt_engine_cache_path"] == given["trt_timing_cache_path"] == str(cache)
    assert cache.is_dir()
    assert {options["device_id"] for _, options in machine.gpu_sessions[1].asked} == {"1"}
    assert one.description == "TensorRT, GPU 0, fp32, batches of 8, 64, 256 rows"


def test_engines_that_cannot_be_kept_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch)
    (tmp_path / "file").write_text("")
    with pytest.raises(DeviceError, match=r"TensorRT cannot keep its engines in .*file"):
        OnnxEvaluator(MODEL, "tensorrt", cache_dir=tmp_path / "file")


def test_engines_are_kept_in_the_user_s_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert providers.default_cache_dir() == Path("/somewhere/azpy/tensorrt")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert providers.default_cache_dir() == Path.home() / ".cache/azpy/tensorrt"
