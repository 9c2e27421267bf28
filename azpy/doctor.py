"""What this machine has for azpy: packages, providers that really load, cores, memory, a GPU, and how fast it is.

`examine` looks and returns plain data; `advice` turns that into what to do next. Works with nothing but numpy and the
core: whatever else is missing is a finding, not an error.
"""

import base64
import importlib
import os
import platform
import shutil
import subprocess
import tempfile
import timeit
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from azpy import _core
from azpy.devices import BF16_FLAGS, KINDS, ON_CPU, both_runtimes, installed_version
from azpy.errors import EXTRAS, AzpyError, pip_install
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.protocol import first_line
from azpy.system import allowed_cores, cpu_flags, cpu_name, cpu_quota, memory, usable_cores

_TRAINING = EXTRAS["train"]
_PLUGINS = {EXTRAS[kind][0]: about.plugin for kind, about in KINDS.items() if about.plugin}  # their modules
_PACKAGES = ("numpy", "onnxruntime", "onnxruntime-gpu", *_PLUGINS, *_TRAINING, "rich")
# Those that ONNX Runtime and torch choose kernels by.
_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "asimd")
_ENVIRONMENT = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "LD_LIBRARY_PATH")
_BATCH = 64
# An ONNX model for Connect Four with 8 layers of 32 channels. It is here as text because the extra `cpu` has no onnx;
# tests/cli/test_doctor.py makes the same model with onnx.
_MODEL = zlib.decompress(
    base64.b85decode(
        "c-ocJ&2F1O5CC8x{AF4<c+;khtX3Ai(Mw>lQQJdPS5+h~m6D!%!_FpH!r-vrSUKfUa_n2S8+PLaQbdD=R-W1UGy`Z&`1Jc3d<PSIYj2I$7+I"
        "HOejXQeco(sEzGW#bqO|yNb`nQR;_QL8ijtBzV9J&ps*-g5`9@aZ3p~%Jl;o?Zn6naiL?M-yivwF_;L7QPx{OZgq0E0bvH`nLZ9rO1l9KH^W"
        "(yp_Hmk=R=szIw6WjX;+=a(T)tKAWn9Cb;MPtHq+dQw!^SI~LJ+IBfT^{Bhu6wx6^SeBsdw$*X+q_YiH{#x??v2{KahEsd-nj0K+q|I53%C~"
        "u?<?rR+Qq()UfhBF|Nnn-jBp!-`$S^ErwU*z&n}UAmPCbZ920t51Q@CSG#W&DlAX^BYO6<Nv2c2z7kQM@$s0DT0$#I7w5ZWpmXm+iyat{{Cc"
        "P*l8k197{TZb(yoXH$^jVgaixlbAAk;QaE=oeK2-22$HYLu$R4ik1J4a~!5!az6RhP5J#x^E`2u)cM@dHz3@y+=Z4u>M6h;^&6I&M{Qe`ws7"
        "4BJZHRh@~~9a@HnZ<-T%SLEeJ{?~{4$%h88Z_4Nu7)YB&#ViKJRM@Sv+nBxu@p{lM^x3xF!)?ZNAH?%RJJ4h4?M-^3f@Hn?3;%9fW&"
    )
)


def examine(speed: bool = True) -> dict[str, Any]:
    """Looks at this machine.

    Args:
        speed: also measure, for a second or two.

    Returns:
        `python`, `system`, `packages` (versions by name, None if not installed), `broken` (packages that are
        installed and cannot be imported, with the reason), `conflict` (both onnxruntime packages at once, or
        None), `providers` (by device: None if it works, else the reason), `torch_gpu` (None if torch can train on a
        GPU, else the reason), `cpu`, `memory` (bytes), `gpus` (by nvidia-smi), `environment`, and `speed`.
    """
    packages = {name: installed_version(name) for name in _PACKAGES}
    report: dict[str, Any] = {
        "azpy": _core.__version__,
        "core": _core.__name__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": packages,
        "broken": _broken(packages),
        "conflict": both_runtimes(),
        "cpu": _cpu(),
        "memory": memory(),
        "gpus": _gpus(),
        "environment": {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
    }
    report["providers"] = {device: _try(device) for device in KINDS}
    report["torch_gpu"] = "torch does not load" if "torch" in report["broken"] else _torch_gpu(packages["torch"])
    report["speed"] = _speed(report["providers"]["cpu"] is None) if speed else None
    return report


def usable(report: dict[str, Any]) -> bool:
    """Whether what is installed works; what is not installed is no fault."""
    has_runtime = report["packages"]["onnxruntime"] or report["packages"]["onnxruntime-gpu"]
    return not report["broken"] and not report["conflict"] and (not has_runtime or report["providers"]["cpu"] is None)


def advice(report: dict[str, Any]) -> list[str]:
    """What to do next, most urgent first; one line each."""
    packages, providers, gpus = report["packages"], report["providers"], report["gpus"]
    has_runtime = packages["onnxruntime"] or packages["onnxruntime-gpu"]
    lines = [report["conflict"]] if report["conflict"] else []
    lines += [f"{name} is installed but does not load ({why}): reinstall it" for name, why in report["broken"].items()]
    if providers["cpu"] and has_runtime and not lines:
        lines.append(f"ONNX Runtime is installed but does not work: {providers['cpu']}")
    works = [kind for kind, why in providers.items() if why is None]
    trains_on_gpu = bool(gpus) and report["torch_gpu"] is None  # and torch plays there too
    if not has_runtime:
        kind = "cuda" if gpus else "cpu"
        lines.append(f"for faster networks: {pip_install(kind)}; until then azpy's own code computes them")
    elif gpus and not trains_on_gpu and not {*works} - {*ON_CPU} and not report["conflict"]:
        lines.append(f"your GPU ({gpus[0]['name']}) is not used: {report['torch_gpu']}; {providers['cuda']}")
    if providers["cuda"] is None and packages["torch"] and not trains_on_gpu:
        text = "--device auto may still play on the GPU"
        lines.append(f"training stays on the CPU: {report['torch_gpu']}; {text}")
    has_bf16 = "Intel" in report["cpu"]["name"] and bool(BF16_FLAGS & {*report["cpu"]["features"]})
    if has_runtime and has_bf16 and not gpus and not packages[EXTRAS["openvino"][0]]:
        lines.append(f"this processor plays networks faster with OpenVINO: {pip_install('openvino')}")
    missing = [name for name in _TRAINING if not packages[name]]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        lines.append(f"to train, {', '.join(missing)} {are} missing: {pip_install('train')}")
    cpu = report["cpu"]
    if cpu["usable"] < cpu["cores"]:
        lines.append(f"azpy can use {cpu['usable']} of {cpu['cores']} cores: the system limits this process")
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        if report["environment"].get(name):
            lines.append(f"{name}={report['environment'][name]} limits the threads that torch trains with")
    if not missing and providers["cpu"] is None and (usable(report) or not lines):
        on_gpu = "cuda" if trains_on_gpu else "auto" if {*works} & {"cuda", "webgpu"} else ""
        name = on_gpu or ("openvino" if has_bf16 and "openvino" in works else "")
        device = f" --device {name}" if name else ""
        lines.append(f"ready to train: az-train connect_four --minutes 5{device}")
    return lines


# Packages and providers


def _broken(packages: dict[str, str | None]) -> dict[str, str]:
    """Installed packages that cannot be imported."""
    found = {}
    for name, version in packages.items():
        if version is None:
            continue
        try:
            importlib.import_module(_PLUGINS.get(name, name.removesuffix("-gpu")))
        except Exception as error:  # a package may fail in any way
            found[name] = first_line(error)
    return found


def _torch_gpu(version: str | None) -> str | None:
    """Why torch cannot train on a GPU, or None."""
    if version is None:
        return "torch is not installed"
    torch = importlib.import_module("torch")
    if torch.backends.mps.is_available():
        return None
    if torch.version.cuda is None:
        return "this torch is built for the CPU, see https://pytorch.org"
    return None if torch.cuda.is_available() else "torch finds no GPU"


def _try(device: str) -> str | None:
    """Why a provider cannot be used, or None: a session of a small model is opened and run."""
    with tempfile.TemporaryDirectory(prefix="azpy-doctor-") as folder:
        try:
            OnnxEvaluator(_MODEL, device, buckets=(8, _BATCH), cache_dir=folder)
        except AzpyError as error:
            return str(error)
        except Exception as error:  # what a broken installation raises has no type in common
            return first_line(error)
    return None


# Cores and GPUs


def _cpu() -> dict[str, Any]:
    return {
        "name": cpu_name(),
        "features": [flag for flag in _FEATURES if flag in cpu_flags()],
        "cores": os.cpu_count() or 1,
        "affinity": allowed_cores(),
        "quota": cpu_quota(),
        "usable": usable_cores(),
    }


def _gpus() -> list[dict[str, str]]:
    """What nvidia-smi says; nothing where there is none."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    query = {"name": "name", "memory": "memory.total", "driver": "driver_version", "compute_capability": "compute_cap"}
    arguments = [command, f"--query-gpu={','.join(query.values())}", "--format=csv,noheader"]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=20, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return []
    rows = (line.split(",") for line in done.stdout.splitlines() if line)
    return [dict(zip(query, map(str.strip, row), strict=False)) for row in rows]


# Speed


def _speed(has_runtime: bool) -> dict[str, float]:
    """Rates of one thread: simulations of the search alone, and evaluations of a small network."""
    state = _core.make_game("connect_four")

    def simulate() -> int:
        return int(_core.Search(_core.UniformEvaluator(), simulations=2000).run(state).visits.sum())

    found = {"simulations_per_second": _rate(simulate)}
    if has_runtime:
        evaluator = OnnxEvaluator(_MODEL)
        rows = np.random.default_rng(0).random((_BATCH, *state.obs_shape), np.float32)
        found["evaluations_per_second"] = _rate(lambda: len(evaluator.evaluate_batch(rows)[1]))
    return found


def _rate(step: Callable[[], int]) -> float:
    """Units a second of a step that returns how many it did."""
    calls, seconds = timeit.Timer(step).autorange()
    return calls * step() / seconds
