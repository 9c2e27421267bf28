"""Which evaluator plays a network on a device, and the run that can play.

On NVIDIA's GPUs torch plays azpy's networks wherever it is installed with CUDA: self-play of a 20x128 network was
several times as fast as with ONNX Runtime's CUDA (H100, November 2026). Elsewhere ONNX Runtime plays, and without it
azpy's own code.
"""

import functools
import importlib.util
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from azpy.devices import CPU, OWN, Device
from azpy.errors import (
    DeviceError,
    MissingPackageError,
    ModelError,
    RunError,
    SettingsError,
    SettingsWarning,
    pip_install,
)
from azpy.evaluators.net import NetEvaluator
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.protocol import CheckedEvaluator, rate
from azpy.game import Game
from azpy.games.names import spec_of
from azpy.runs.reader import CHECKPOINT_FILES, StoredRun, boxed, has_weights_alone
from azpy.settings.run import Settings, is_own
from azpy.system import usable_cores

WEIGHTS = CHECKPOINT_FILES[0]
_ROWS = 64  # of a batch that is timed, unless the largest to come is known
_CHECKED = ("model.onnx", WEIGHTS)  # what a path of a checkpoint's model ends with


def open_network(
    path: str | os.PathLike[str], device: Device = CPU, *, game: Any, threads: int = 1
) -> CheckedEvaluator:
    """The evaluator of a stored network.

    A `SettingsWarning` says so if azpy's own code takes the place of ONNX Runtime, which is not installed.

    Args:
        path: as `OnnxEvaluator` takes it, or a player that azpy brings along.
        device: "azpy" or one for `OnnxEvaluator`.
        game: which the network must fit.
        threads: of ONNX Runtime for one batch on the CPU.

    Raises:
        MissingPackageError: a model file, which needs ONNX Runtime, and that is not installed.
        AzpyError: those of the evaluators.
    """
    kinds, stored = {each.kind for each in device.choices}, Path(path)
    if stored.name in _CHECKED and (stored.parent / "manifest.json").is_file():
        stored = stored.parent  # a checkpoint: its manifest vouches for the weights beside the model
    alone = stored.is_dir() and has_weights_alone(stored)
    if "cuda" in kinds and stored.is_dir() and torch_has_cuda():
        from azpy.evaluators.torch import TorchEvaluator  # loads torch

        try:
            on_gpu = TorchEvaluator(stored, str(device.choices[0]), game=game)
        except (SettingsError, RunError):  # a network of the user's own; a checkpoint without its run
            if alone:
                raise
        else:
            if device.kind != "auto":
                return on_gpu
            return _faster(on_gpu, open_network(path, game=game, threads=threads), threads, _ROWS)
    if alone:
        if not kinds & {OWN, "cpu"}:
            raise DeviceError(
                f"{path} has no ONNX model: play it on device cpu or azpy, or on cuda with a torch built for CUDA"
            )
        return NetEvaluator(stored, game=game)
    if kinds != {OWN} and ("cpu" not in kinds or importlib.util.find_spec("onnxruntime")):
        return OnnxEvaluator(path, device, game=game, threads=threads, precision=device.usual_precision)
    install = pip_install("cpu")
    if stored.is_file():
        raise MissingPackageError(
            f"device azpy plays run folders and checkpoints, and {path} is a model file: {install}, and give "
            "another device than azpy"
        )
    evaluator = NetEvaluator(stored, game=game)
    if kinds != {OWN}:
        said = f"onnxruntime is not installed: azpy's own code computes the network, on one core a batch ({install})"
        warnings.warn(said, SettingsWarning, stacklevel=2)
    return evaluator


def open_generation(
    model: bytes,
    device: Device,
    settings: Settings,
    *,
    game: Any,
    precision: str = "fp32",
    batch: int | None = None,
    threads: int = 1,
    cache_dir: str | os.PathLike[str] | None = None,
) -> CheckedEvaluator:
    """The evaluator of a model that a run with these settings has made, a network of the user's own included.

    The other arguments are those of `OnnxEvaluator`. Its `network_id` is the same whichever evaluator plays.

    Raises:
        AzpyError: those of the evaluators.
    """
    options: dict[str, Any] = {"game": game, "precision": precision, "batch": batch}
    on_cpu: dict[str, Any] = {"threads": threads, "cache_dir": cache_dir}
    if device.choices[0].kind != "cuda" or not torch_has_cuda():
        return OnnxEvaluator(model, device, **on_cpu, **options)
    from azpy.evaluators.torch import evaluator_of_model  # loads torch

    if device.kind != "auto":
        return evaluator_of_model(model, settings, str(device), **options)
    options["precision"] = "fp32"  # which all have
    try:
        on_gpu = evaluator_of_model(model, settings, "cuda", **options)
    except (DeviceError, ModelError) as error:
        other = OnnxEvaluator(model, device, **on_cpu, **options)
        other.notes = (str(error), *other.notes)
        return other
    return _faster(on_gpu, OnnxEvaluator(model, **on_cpu, **options), threads, batch or _ROWS)


def _faster(on_gpu: CheckedEvaluator, on_cpu: CheckedEvaluator, threads: int, rows: int) -> CheckedEvaluator:
    """What `auto` takes: the one that answers more rows a second, on the CPU with all cores."""
    gpu, cpu = (rate([each.evaluate_batch], rows, each.obs_shape) for each in (on_gpu, on_cpu))
    cpu *= max(1, usable_cores() // threads)
    chosen = on_gpu if gpu > cpu else on_cpu
    chosen.notes = (f"CUDA answers {gpu:,.0f} rows/s of this network, the CPU {cpu:,.0f}, in batches of {rows}",)
    return chosen


def half_precision(settings: Settings, devices: Sequence[Device]) -> str:
    """In what a float32 model of a run plays once it has passed its check.

    For "auto" it is fp16 by torch on CUDA, and bf16 by OpenVINO on a CPU that has it. "auto" stays fp32 where other
    machines play too, which may not have these, and where worker processes play a network of the user's own on CUDA,
    by ONNX Runtime.
    """
    if settings.precision != "auto":
        return "fp32" if settings.precision == "int8" else settings.precision
    if isinstance(settings.workers, str):
        return "fp32"
    by_torch = all(device.kind == "cuda" for device in devices) and torch_has_cuda()
    if by_torch and not (settings.workers and is_own(settings.network)):
        return "fp16"
    return devices[0].usual_precision


def torch_has_cuda() -> bool:
    """Whether torch is installed, with CUDA, and finds a GPU."""
    try:
        import torch
    except (ImportError, OSError):  # OSError: one of its libraries does not load
        return False
    return torch.cuda.is_available()


class LoadedRun(StoredRun):
    """A run folder: its settings, its games, and its newest network to play with. The run may be in progress.

    Args:
        path: the run folder; or the name of a player that comes with azpy, such as "connect_four".
        game: the run's game, as its name or class. Required for a game in Python: loading it imports its module.

    Raises:
        RunError: `path` is not a run folder, or its config.toml is damaged.
        SettingsError: `game` is not the run's game.

    Example:
        >>> import azpy
        >>> run = azpy.load_run("runs/connect_four")  # doctest: +SKIP
        >>> azpy.Search(run.evaluator, simulations=400).run(run.start).action  # doctest: +SKIP
        3
    """

    def __init__(self, path: str | os.PathLike[str], game: str | type[Game] | None = None) -> None:
        super().__init__(boxed(path), None if game is None else spec_of(game))

    @functools.cached_property
    def evaluator(self) -> CheckedEvaluator:
        """The network of the newest checkpoint, on the CPU.

        For another device use `azpy.OnnxEvaluator(path, device)`; players that come with azpy have no ONNX model. If
        onnxruntime is not installed, azpy's own code computes the network, and warns with a `SettingsWarning`.

        Raises:
            ModelError: there is no checkpoint yet, it is damaged, or only ONNX Runtime can compute the network.
        """
        return open_network(self.path, game=self.start)

    def __repr__(self) -> str:
        return f"azpy.load_run({str(self.path)!r})"


load_run = LoadedRun
