"""Devices of ONNX models: their names, their options, and the reasons why one cannot be used.

This module does not load ONNX Runtime. Option names are those of its CUDA and TensorRT providers (1.24 to 1.31).
"""

import ctypes
import importlib.metadata
import importlib.util
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from azpy.errors import EXTRAS, SettingsError, pip_install
from azpy.system import cpu_flags, usable_cores

# Rows that a batch is padded to on a GPU: few shapes, so each is prepared once.
BUCKETS = (8, 32, 128, 256, 512)


class _Kind(NamedTuple):
    provider: str  # ONNX Runtime's name
    title: str  # for people
    plugin: str = ""  # the module of a package beside onnxruntime that holds the provider
    numbered: bool = False  # "cuda:1" is the second GPU
    half: str = ""  # what it can compute a float32 model in, besides float32. On CUDA torch has it


KINDS = {
    "cpu": _Kind("CPUExecutionProvider", "CPU"),
    "cuda": _Kind("CUDAExecutionProvider", "CUDA", numbered=True, half="fp16"),
    "tensorrt": _Kind("TensorrtExecutionProvider", "TensorRT", numbered=True, half="fp16"),
    "webgpu": _Kind("WebGpuExecutionProvider", "WebGPU", "onnxruntime_ep_webgpu"),
    "openvino": _Kind("OpenVINOExecutionProvider", "OpenVINO", "onnxruntime_ep_openvino", half="bf16"),
}
ON_CPU = ("cpu", "openvino")  # by ONNX Runtime
OWN = "azpy"  # the CPU by azpy's own code, without ONNX Runtime: see `azpy/evaluators/net.py`
_ALL = {**KINDS, OWN: _Kind("", "azpy's own code"), "auto": _Kind("", "auto")}
# What `auto` tries. Not TensorRT: it builds an engine for each network, which takes from seconds to minutes.
_AUTO = ("cuda", "webgpu", "cpu")
_NUMBERED = [kind for kind, about in KINDS.items() if about.numbered]
_NAMES = ", ".join(f"{kind}, {kind}:N" if about.numbered else kind for kind, about in KINDS.items())
_RUNTIMES = ("onnxruntime", "onnxruntime-gpu")
BF16_FLAGS = {"amx_bf16", "avx512_bf16"}
# A GPU provider leaves these to the CPU on purpose: they work on sizes, not on numbers.
_SHAPE_OPS = {"Shape", "Size", "Gather", "Concat", "Squeeze", "Unsqueeze", "Reshape", "Slice", "Cast", "Constant"}
_SHAPE_OPS |= {"ConstantOfShape", "Identity", "Expand", "Range", "Where", "Equal", "Add", "Sub", "Mul", "Div"}


@dataclass(frozen=True)
class Device:
    """Where a network runs: a provider and the number of its GPU."""

    kind: str  # "cpu", "cuda", "tensorrt", "webgpu", "openvino", "azpy" or "auto"
    index: int = 0  # which GPU, as CUDA counts them; 0 on others

    @classmethod
    def read(cls, text: "str | Device", trains: bool = False) -> "Device":
        """The device that a text names: a kind, or one that has a number, such as "cuda:1".

        Args:
            text: or a device, which is returned.
            trains: whether it is the device of a run, which "azpy" cannot train.

        Raises:
            SettingsError: another text, or something else.
        """
        if isinstance(text, Device):
            return text
        kind, colon, index = text.partition(":") if isinstance(text, str) else ("", "", "")
        known = _ALL.get(kind)
        has_number = bool(known and known.numbered and index.isascii() and index.isdigit())
        if known and (has_number or not colon) and not (trains and kind == OWN):
            return cls(kind, int(index or 0))
        names, what = (f"{_NAMES} or auto", " to train") if trains else (f"{_NAMES}, {OWN} or auto", "")
        raise SettingsError(f"device must be {names}{what}, got {text!r}")

    @property
    def choices(self) -> "tuple[Device, ...]":
        """The devices to try, best first; more than one only for "auto"."""
        return tuple(map(Device, _AUTO)) if self.kind == "auto" else (self,)

    @property
    def without_tensorrt(self) -> "Device":
        """The same GPU by CUDA in place of TensorRT; another device itself."""
        return Device("cuda", self.index) if self.kind == "tensorrt" else self

    @property
    def provider(self) -> str:
        """ONNX Runtime's name of the provider."""
        return _ALL[self.kind].provider

    @property
    def title(self) -> str:
        """The provider's name for people."""
        return _ALL[self.kind].title

    @property
    def plugin(self) -> str:
        """The module of the package that holds the provider; "" if ONNX Runtime itself holds it."""
        return _ALL[self.kind].plugin

    @property
    def extras(self) -> tuple[str, ...]:
        """The extras of azpy that bring the device: that of a plugin does not bring ONNX Runtime."""
        return ("cpu", self.kind) if self.plugin else (self.kind,)

    @property
    def on_cpu(self) -> bool:
        """Whether the network runs on the processor's cores, by ONNX Runtime."""
        return self.kind in ON_CPU

    @property
    def usual_precision(self) -> str:
        """In what commands play that do not check it: bf16 by OpenVINO on a CPU with instructions for it, else fp32."""
        return "bf16" if self.kind == "openvino" and BF16_FLAGS & cpu_flags() else "fp32"

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}" if _ALL[self.kind].numbered else self.kind


CPU = Device("cpu")


def devices_of(device: str, numbers: str | None) -> tuple[Device, ...]:
    """The devices of a run, one for each group of its pipelines.

    Args:
        device: see `Device.read`.
        numbers: of several GPUs, such as "0,1". They are used or refused, so "auto" means CUDA then.

    Raises:
        SettingsError: no such device, no such list, a GPU twice, or a list for the CPU.

    Example:
        >>> devices_of("cuda", "0,1")
        (Device(kind='cuda', index=0), Device(kind='cuda', index=1))
    """
    first = Device.read(device, trains=True)
    if numbers is None:
        return (first,)
    kind = first.choices[0].kind
    given = numbers.split(",")
    if not all(number.isascii() and number.isdigit() and len(number) < 5 for number in given):
        raise SettingsError(f"devices must be numbers of GPUs, such as 0,1, got {numbers!r}")
    if len({int(number) for number in given}) < len(given):
        raise SettingsError(f"devices must name each GPU once, got {numbers!r}")
    if not _ALL[kind].numbered or ":" in device:
        raise SettingsError(f"devices {numbers} needs device {', '.join(_NUMBERED)} or auto, got {device!r}")
    return tuple(Device(kind, int(number)) for number in given)


def check_precision(device: Device, precision: str, more: Sequence[str] = ()) -> None:
    """Refuse a precision that a float32 model cannot have on a device; `more` are those that a run has besides.

    Raises:
        SettingsError: names those that it has.
    """
    has = list(filter(None, ("fp32", _ALL[device.kind].half)))
    if precision not in has:
        others = " or ".join(about.title for about in KINDS.values() if about.half == precision)
        needs = f"needs {others}" if others else "does not exist"
        raise SettingsError(f"precision {precision} {needs}: {device.title} has {', '.join((*has, *more))}")


def provider_options(
    device: Device,
    network_id: int,
    inputs: Mapping[str, Sequence[int]],
    buckets: Sequence[int],
    cache_dir: Path,
    precision: str = "fp32",
    threads: int = 1,
) -> list[tuple[str, dict[str, str]]]:
    """The `providers` of an `InferenceSession` on another device than the CPU.

    The CPU is never listed: with it in the list ONNX Runtime could not be told to refuse it.

    Args:
        device: another than the CPU.
        network_id: TensorRT's own file names do not depend on weights: an engine is found by this number.
        inputs: sizes of a row of each input, by its name: {"observations": (C, H, W)}.
        buckets: rows of the batches to come, ascending.
        cache_dir: of TensorRT's engines.
        precision: with "fp16" TensorRT may compute layers in it.
        threads: of OpenVINO for one batch.
    """
    if device.kind == "openvino":
        streams = max(1, usable_cores() // threads)  # batches at a time: all threads that play share the session
        config = {
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
            "NUM_STREAMS": str(streams),
            "INFERENCE_NUM_THREADS": str(streams * threads),
            "ENABLE_CPU_PINNING": "NO",  # the threads of two processes would share some cores, and leave others idle
        }
        return [(device.provider, {"load_config": json.dumps({"CPU": config})})]
    if device.plugin:
        return [(device.provider, {})]
    # The exhaustive search of kernels takes seconds a shape and may choose another kernel each time. TF32 and channels
    # last made self-play of a 20x128 network 5.6 times as fast on an H100 (1.31, November 2026).
    cuda = {"device_id": str(device.index), "cudnn_conv_algo_search": "HEURISTIC", "prefer_nhwc": "1"}
    if device.kind == "cuda":
        return [(device.provider, cuda)]
    tensorrt = {
        "device_id": str(device.index),
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": str(cache_dir),
        "trt_engine_cache_prefix": f"azpy-{network_id:016x}",
        # Times of kernels, by layer and GPU: another network of this size need not have them measured again.
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": str(cache_dir),
    }
    if precision == "fp16":
        tensorrt["trt_fp16_enable"] = "1"
    for name, rows in (("min", buckets[0]), ("opt", buckets[len(buckets) // 2]), ("max", buckets[-1])):
        shapes = (f"{input_}:" + "x".join(map(str, (rows, *sizes))) for input_, sizes in inputs.items())
        tensorrt[f"trt_profile_{name}_shapes"] = ",".join(shapes)
    # Nodes that TensorRT cannot take run on CUDA, on the same GPU.
    return [(device.provider, tensorrt), (KINDS["cuda"].provider, cuda)]


def default_cache_dir() -> Path:
    """Where TensorRT's engines are kept: `$XDG_CACHE_HOME/azpy/tensorrt`, by default below `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "azpy" / "tensorrt"


def chunks(rows: int, buckets: Sequence[int]) -> list[tuple[int, int, int]]:
    """How a batch is cut: (begin, end, bucket) of each part, at least one; each in the smallest bucket that holds it.

    Example:
        >>> chunks(600, BUCKETS)
        [(0, 512, 512), (512, 600, 128)]
    """
    most = buckets[-1]
    parts = [(begin, min(begin + most, rows)) for begin in range(0, max(rows, 1), most)]
    return [(begin, end, next(bucket for bucket in buckets if bucket >= end - begin)) for begin, end in parts]


def misplaced(nodes: Mapping[str, Iterable[str]], device: Device) -> str | None:
    """Why a session does not run on the device that was asked for, or None if it does.

    `nodes` are the operators of each provider, by the provider's name.
    """
    if not list(nodes.get(device.provider, ())):
        return f"{device.title} took no node of the model"
    foreign = sorted(set(nodes.get(KINDS["cpu"].provider, ())) - _SHAPE_OPS)
    return f"{device.title} cannot run {', '.join(foreign)} of the model" if foreign else None


def installed_version(package: str) -> str | None:
    """The version that pip knows of, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def both_runtimes() -> str | None:
    """A warning if onnxruntime and onnxruntime-gpu are both installed: they share one folder, the last one wins."""
    if not all(map(installed_version, _RUNTIMES)):
        return None
    text = f"onnxruntime and onnxruntime-gpu are both installed and overwrite each other: {reinstall(Device('cpu'))}"
    return f"{text}, or for a GPU {pip_install('cuda')}"


def reinstall(device: Device) -> str:
    """How to install ONNX Runtime from scratch."""
    return f"pip uninstall -y {' '.join(_RUNTIMES)}, then {pip_install(*device.extras)}"


def remedy(device: Device) -> str:
    """What to install so that a provider loads."""
    if device.plugin:
        driver = "" if device.on_cpu else ", and the GPU's driver"
        return f"check that {pip_install(device.kind)} brought its newest version{driver}"
    if both := both_runtimes():
        return both
    if installed_version("onnxruntime-gpu") is None:
        return (
            f"this onnxruntime is built for the CPU only: pip uninstall -y onnxruntime, then {pip_install(device.kind)}"
        )
    return f"check that {pip_install(device.kind)} brought its libraries, and the driver with nvidia-smi"


def driver_problem(index: int = 0) -> str | None:
    """Why the NVIDIA driver cannot use the GPU of this number, or None."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver found (libcuda.so.1 cannot be loaded)"
    count = ctypes.c_int(0)
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status:
        return f"the NVIDIA driver finds no GPU (CUDA error {status})"
    if index >= count.value:
        return f"GPU {index} does not exist: the driver reports {count.value}, numbered from 0"
    return None


def no_gpu() -> str | None:
    """Why "auto" is the CPU here, or None if there may be a GPU: says it without loading ONNX Runtime."""
    if importlib.util.find_spec(KINDS["webgpu"].plugin):
        return None
    if installed_version("onnxruntime-gpu") is None and installed_version("torch") is None:
        return f"neither torch nor onnxruntime-gpu nor {EXTRAS['webgpu'][0]} is installed"
    return driver_problem()
