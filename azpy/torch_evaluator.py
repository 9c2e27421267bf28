"""An evaluator that runs a torch module: for networks that were never exported, and for fp16 and bf16.

ONNX Runtime plays faster on the CPU in fp32 and needs no torch; this evaluator takes any module, on any device that
torch knows as "cpu" or "cuda". Knows nothing of ONNX, search or training.
"""

import copy
import hashlib
import os
import tomllib
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from azpy.errors import DeviceError, MissingPackageError, ModelError, SettingsError
from azpy.evaluator import CheckedEvaluator, first_line

try:
    import torch
    from torch import nn
except ImportError as error:
    raise MissingPackageError('torch is not installed: pip install "azpy[train]"') from error

from azpy.network import Network, load_arrays, torch_device
from azpy.positions import make_position
from azpy.runs import read_checkpoint

__all__ = ["TorchEvaluator"]

_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class _GameShape(Protocol):
    @property
    def num_actions(self) -> int: ...
    @property
    def obs_shape(self) -> tuple[int, int, int]: ...


class TorchEvaluator(CheckedEvaluator):
    """Answers batches of observations from a torch module.

    The module is copied: training it further changes nothing here.

    Args:
        network: a module that maps observations [B, C, H, W] to (logits [B, A], values [B] or [B, 1]), with values in
            [-1, 1] for the player to move; or the path of a checkpoint in its run folder.
        device: "cpu", "cuda" or "cuda:1"; used or refused.
        precision: "fp32", "bf16", or on a GPU "fp16": of weights and arithmetic, answers are float32. Of anything but
            fp32, look at what it changes before you trust it.
        game: a `State`, or anything with `num_actions` and `obs_shape`; the network must fit it. Needed where the
            module has no `num_actions` and `obs_shape` of its own.
        channels_last: keep planes and weights in torch's channels-last format, the faster one for convolutions.

    Attributes:
        network_id: nonzero 64-bit hash of the module's structure and weights.
        obs_shape: (C, H, W).
        num_actions: A.
        row_exact: see `OnnxEvaluator`; often false here, as torch chooses kernels by the size of a batch.
        device: where it runs: "cpu", "cuda:0", ...
        description: device and precision, in one line.

    Raises:
        ModelError: a module that does not fit the game or answers in another form.
        DeviceError: torch cannot use the device.
        RunError: a damaged checkpoint.
        SettingsError: no such device, or a precision that it does not have.

    Example:
        >>> import azpy
        >>> from azpy.network import Network
        >>> state = azpy.make_game("tic_tac_toe")
        >>> evaluator = TorchEvaluator(Network(state.obs_shape, state.num_actions, "1x16"))
        >>> logits, values = evaluator.evaluate_batch(state.observation()[None])
        >>> logits.shape, values.shape
        ((1, 9), (1,))
    """

    _larger_batches = (8, 64)

    def __init__(
        self,
        network: nn.Module | str | os.PathLike[str],
        device: str = "cpu",
        *,
        precision: str = "fp32",
        game: _GameShape | None = None,
        channels_last: bool = True,
    ) -> None:
        if precision not in _DTYPES:
            raise SettingsError(f"precision must be fp32, fp16 or bf16, got {precision!r}")
        target = torch_device(device)
        if precision == "fp16" and target.type == "cpu":
            # 5x64 at batch 64, a core with AVX512-BF16: fp32 5,300 positions/s, bf16 8,500, fp16 590 (November 2026).
            raise SettingsError('torch has no fast fp16 on the CPU: use precision="bf16" or "fp32"')
        if isinstance(network, nn.Module):
            self.name, module = type(network).__name__, network
        else:
            self.name, module = os.fspath(network), _load_checkpoint(Path(network))
        self.obs_shape, self.num_actions = _shapes(module, game)
        self.network_id = _hash(module)
        self._dtype, self._device = _DTYPES[precision], target
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        untyped: Any = copy.deepcopy(module)  # torch's releases do not agree on how `to` is typed
        try:
            self._module = untyped.to(device=target, dtype=self._dtype, memory_format=self._format)
        except (RuntimeError, AssertionError) as error:
            raise DeviceError(f"torch cannot use {device!r}: {first_line(error)}") from error
        self._module.eval().requires_grad_(False)
        self.device = str(target)
        self.description = f"torch {torch.__version__}, {self.device}, {_precision_in_words(precision, target)}"
        if game is not None:
            self._check_fits(game)
        self._warm_up()
        self.row_exact = self._probe_rows()

    def _evaluate(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        with torch.inference_mode():  # a thread's own state: entered in each call
            rows = torch.from_numpy(np.ascontiguousarray(observations))
            rows = rows.to(device=self._device, dtype=self._dtype, memory_format=self._format)
            logits, values = self._module(rows)
            # A copy even where nothing is converted: what is handed out is never written again.
            return _to_numpy(logits), _to_numpy(values.reshape(-1))

    def fork(self) -> Self:
        """An evaluator for another pipeline's thread; the weights are shared, as nothing writes to them."""
        return copy.copy(self)

    def __repr__(self) -> str:
        return f"TorchEvaluator({self.name!r}, {self.device!r}, network_id={self.network_id:#018x})"


def _to_numpy(tensor: torch.Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.to(device="cpu", dtype=torch.float32).contiguous().numpy()
    return array


def _precision_in_words(precision: str, device: torch.device) -> str:
    if precision == "fp32" and device.type == "cuda" and torch.backends.cudnn.allow_tf32:
        return "fp32 (TF32 in convolutions, torch's default)"
    return precision


def _shapes(module: nn.Module, game: _GameShape | None) -> tuple[tuple[int, int, int], int]:
    """(C, H, W) and A: the module's own, or the game's."""
    source: Any = module if hasattr(module, "obs_shape") and hasattr(module, "num_actions") else game
    if source is None:
        raise SettingsError(f"{type(module).__name__} has no obs_shape and num_actions: give game=")
    planes, height, width = (int(size) for size in source.obs_shape)
    return (planes, height, width), int(source.num_actions)


def _hash(module: nn.Module) -> int:
    """Of the structure, and of every weight and statistic with its name, shape and dtype."""
    digest = hashlib.blake2b(repr(module).encode(), digest_size=8)
    for name, tensor in module.state_dict().items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        # Bytes, as numpy has no bfloat16.
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return int.from_bytes(digest.digest(), "little") or 1


def _load_checkpoint(path: Path) -> Network:
    """The network of a checkpoint, whose shape the run's config.toml tells."""
    if not path.is_dir():
        raise ModelError(f"{path} is no checkpoint folder, such as runs/connect_four/checkpoints/000010")
    config = path.resolve().parent.parent / "config.toml"
    try:
        settings = tomllib.loads(config.read_text("utf-8"))
        start, spec = make_position(settings["game"]), settings["network"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is in no run folder: {config} tells no game and network ({error})") from error
    network = Network(start.obs_shape, start.num_actions, spec)
    load_arrays(network, read_checkpoint(path).model)
    return network
