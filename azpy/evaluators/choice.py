"""Which evaluator plays a network on a device.

On NVIDIA's GPUs torch plays wherever it is installed with CUDA: self-play of a 20x128 network was several times as fast
as with ONNX Runtime's CUDA (H100, November 2026). Elsewhere ONNX Runtime plays, and without it azpy's own code.
"""

import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any

from azpy.devices import OWN, parse_devices
from azpy.errors import MissingPackageError, SettingsError, SettingsWarning, pip_install
from azpy.evaluators.net import NetEvaluator
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.protocol import CheckedEvaluator, rate
from azpy.runs.reader import has_weights_alone
from azpy.system import usable_cores

_ROWS = 64  # of a batch that is timed, unless the largest to come is known
WEIGHTS = "model.safetensors"
_CHECKED = ("model.onnx", WEIGHTS)  # what a path of a checkpoint's model ends with


def open_network(path: str | os.PathLike[str], device: str = "cpu", *, game: Any, threads: int = 1) -> CheckedEvaluator:
    """The evaluator of a stored network.

    A `SettingsWarning` says so if azpy's own code takes the place of ONNX Runtime, which is not installed.

    Args:
        path: as `OnnxEvaluator` takes it.
        device: as for `OnnxEvaluator`, or "azpy".
        game: which the network must fit.
        threads: of ONNX Runtime for one batch on the CPU.

    Raises:
        MissingPackageError: a model file, which needs ONNX Runtime, and that is not installed.
        AzpyError: those of the evaluators.
    """
    kinds, stored = {each.kind for each in parse_devices(device)}, Path(path)
    if stored.name in _CHECKED and (stored.parent / "manifest.json").is_file():
        stored = stored.parent  # a checkpoint: its manifest vouches for the weights beside the model
    if kinds == {"cuda"} and stored.is_dir() and torch_has_cuda():
        from azpy.evaluators.torch import TorchEvaluator  # loads torch

        try:
            return TorchEvaluator(stored, device, game=game)
        except SettingsError:  # a network of the user's own, whose function is not imported here
            return OnnxEvaluator(path, device, game=game)
    if stored.is_dir() and has_weights_alone(stored):
        return NetEvaluator(stored, game=game)
    if kinds != {OWN} and ("cpu" not in kinds or importlib.util.find_spec("onnxruntime")):
        return OnnxEvaluator(path, device, game=game, threads=threads)
    install = pip_install("cpu")
    if stored.is_file():
        raise MissingPackageError(
            f"azpy's own code plays runs and their checkpoints, and {path} is a model file: {install}, and give "
            "another device than azpy"
        )
    evaluator = NetEvaluator(stored, game=game)
    if kinds != {OWN}:
        said = f"onnxruntime is not installed: azpy's own code computes the network, on one core a batch ({install})"
        warnings.warn(said, SettingsWarning, stacklevel=2)
    return evaluator


def open_model(
    model: bytes,
    device: str,
    *,
    game: Any,
    network: str,
    value_smoothing: float = 0.0,
    precision: str = "fp32",
    batch: int | None = None,
    threads: int = 1,
    cache_dir: str | os.PathLike[str] | None = None,
) -> CheckedEvaluator:
    """The evaluator of a model that a run has just made; `network` and `value_smoothing` are the run's settings.

    The other arguments are those of `OnnxEvaluator`. Its `network_id` is the same whichever evaluator plays.

    Raises:
        AzpyError: those of the evaluators.
    """
    options: dict[str, Any] = {"game": game, "precision": precision, "batch": batch}
    if parse_devices(device)[0].kind != "cuda" or not torch_has_cuda():
        return OnnxEvaluator(model, device, threads=threads, cache_dir=cache_dir, **options)
    from azpy.evaluators.torch import evaluator_of_model  # loads torch

    name = "cuda" if device == "auto" else device
    on_gpu = evaluator_of_model(model, network, name, value_smoothing=value_smoothing, **options)
    if device != "auto":
        return on_gpu
    on_cpu = OnnxEvaluator(model, threads=threads, **options)
    rows = batch or _ROWS
    cpu, gpu = (rate(each.evaluate_batch, rows, each.obs_shape) for each in (on_cpu, on_gpu))
    cpu *= max(1, usable_cores() // threads)
    chosen = on_gpu if gpu > cpu else on_cpu
    chosen.notes = (f"CUDA answers {gpu:,.0f} rows/s of this network, the CPU {cpu:,.0f}, in batches of {rows}",)
    return chosen


def torch_has_cuda() -> bool:
    """Whether torch is installed, with CUDA, and finds a GPU."""
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()
