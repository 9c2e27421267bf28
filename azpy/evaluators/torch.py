"""An evaluator that runs a torch module as it is: for networks that were never exported, in fp32, fp16 or bf16.

On the CPU in fp32, ONNX Runtime plays faster and needs no torch. This evaluator takes any module.
"""

import copy
import hashlib
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from azpy.errors import DeviceError, ModelError, SettingsError, missing_to_train
from azpy.evaluators.protocol import Answer, CheckedEvaluator, GameShape, first_line

try:
    import torch
    from torch import nn
except ImportError as error:
    raise missing_to_train("torch") from error

from azpy.games.names import is_python_class, make_position
from azpy.learning.network import Network, load_arrays, torch_device
from azpy.learning.own import answers, checked
from azpy.runs.folder import read_checkpoint
from azpy.runs.reader import StoredRun, checkpoint_at
from azpy.runs.storage import output
from azpy.settings.run import is_own

__all__ = ["TorchEvaluator", "export_onnx"]

_COMPARED_ROWS = 16

_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class TorchEvaluator(CheckedEvaluator):
    """Answers batches of observations from a torch module.

    The module is copied: training it further changes nothing here.

    Args:
        network: a module that maps observations [B, C, H, W] to (logits [B, A], values [B] or [B, 1]), with values in
            [-1, 1] for the player to move; or the path of a run folder, which stands for its newest checkpoint, or of
            a checkpoint in its run folder. Many convolutions are faster if the module was moved to
            `memory_format=torch.channels_last` before.
        device: "cpu", "cuda" or "cuda:1"; used or refused.
        precision: "fp32", "bf16", or on a GPU "fp16": of weights and arithmetic; answers are float32. Measure what a
            precision other than fp32 changes before you trust it.
        game: a `State`, or anything with `num_actions` and `obs_shape`, or a game's name as `azpy.make_game` takes it;
            the network must fit it. Needed if the module has no `num_actions` and `obs_shape` of its own, and for a run
            whose game is a Python class.

    Attributes:
        network_id: nonzero 64-bit hash of the module's structure and weights.
        obs_shape: (C, H, W).
        num_actions: A.
        device: where it runs: "cpu", "cuda:0", ...
        description: device and precision, in one line.

    Raises:
        ModelError: the module does not fit the game, or its answers have the wrong shapes.
        DeviceError: torch cannot use the device, or the device has no room.
        RunError: the checkpoint is damaged, or in no run folder.
        SettingsError: no such device, precision or game; or `game` does not name the Python class of the run.

    Example:
        >>> import azpy
        >>> from azpy.learning.network import Network
        >>> state = azpy.make_game("tic_tac_toe")
        >>> evaluator = TorchEvaluator(Network(state.obs_shape, state.num_actions, "1x16"))
        >>> logits, values = evaluator.evaluate_batch(state.observation()[None])
        >>> logits.shape, values.shape
        ((1, 9), (1,))
    """

    def __init__(
        self,
        network: nn.Module | str | os.PathLike[str],
        device: str = "cpu",
        *,
        precision: str = "fp32",
        game: GameShape | str | None = None,
    ) -> None:
        if precision not in _DTYPES:
            raise SettingsError(f"precision must be fp32, fp16 or bf16, got {precision!r}")
        target = torch_device(device)
        if precision == "fp16" and target.type == "cpu":
            # 5x64 at batch 64, a core with AVX512-BF16: fp32 5,300 positions/s, bf16 8,500, fp16 590 (November 2026).
            raise SettingsError('torch has no fast fp16 on the CPU: use precision="bf16" or "fp32"')
        shape: GameShape | None = make_position(game) if isinstance(game, str) else game
        if isinstance(network, nn.Module):
            self.name, module = type(network).__name__, network
        else:
            self.name, module = os.fspath(network), _load_checkpoint(Path(network), shape)
        self.obs_shape, self.num_actions = _shapes(module, shape)
        if shape is not None:
            self._check_fits(shape)
        self.network_id = _hash(module)
        self._dtype = _DTYPES[precision]
        try:
            self._module = copy.deepcopy(module).to(target, self._dtype).eval().requires_grad_(False)
        except (RuntimeError, AssertionError) as error:
            raise DeviceError(f"torch cannot use {device!r}: {first_line(error)}") from error
        self.device = str(target)
        tf32 = precision == "fp32" and target.type == "cuda" and torch.backends.cudnn.allow_tf32
        said = f"{precision} (TF32 in convolutions, torch's default)" if tf32 else precision
        self.description = f"torch {torch.__version__}, {self.device}, {said}"
        self._warm_up()

    def _evaluate(self, observations: NDArray[np.float32]) -> Answer:
        with torch.inference_mode():  # a thread's own state: entered in each call
            given = torch.from_numpy(np.ascontiguousarray(observations)).to(self.device, self._dtype)
            # Copies: a module may answer from memory that it writes to again.
            copies = (each.to("cpu", torch.float32, copy=True) for each in answers(self._module, given))
            first, second = (each.contiguous().numpy() for each in copies)
            return first, second

    def fork(self) -> Self:
        """An evaluator for another pipeline's thread; the weights are shared, as nothing writes to them."""
        return copy.copy(self)


def export_onnx(module: nn.Module, game: GameShape | str, path: str | os.PathLike[str]) -> None:
    """Writes a torch module as the ONNX model that `OnnxEvaluator` plays, and compares the two.

    It needs the extras cpu and train, and no other package. The module's own heads beyond policy and value are left
    out. Weights keep their `state_dict` names.

    Args:
        module: maps observations [B, C, H, W] float32 to (logits [B, A], values [B] or [B, 1] in [-1, 1]), all float32;
            on the CPU. It is written in evaluation mode, and left in the mode that it has.
        game: a `State`, or anything with `num_actions` and `obs_shape`, or a game's name as `azpy.make_game` takes it.
        path: the file to write; replaced as a whole or not at all.

    Raises:
        ModelError: the module does not fit the game, cannot be written, or its model gives other numbers.
        RunError: the file cannot be written.
        MissingPackageError: onnx or onnxruntime is not installed.

    Example:
        >>> import azpy
        >>> from azpy.learning.network import Network
        >>> state = azpy.make_game("tic_tac_toe")
        >>> network = Network.of(state, "1x16")
        >>> azpy.export_onnx(network, state, "model.onnx")  # doctest: +SKIP
    """
    from azpy.evaluators.onnx import OnnxEvaluator
    from azpy.learning.export import check_parity, to_onnx

    shape: GameShape = make_position(game) if isinstance(game, str) else game
    was_training = module.training
    try:
        model = to_onnx(checked(module, shape))
        rows = np.random.default_rng(0).integers(0, 2, (_COMPARED_ROWS, *shape.obs_shape)).astype(np.float32)
        check_parity(module, OnnxEvaluator(model, game=shape), rows)
    finally:
        module.train(was_training)
    with output(path) as file:
        file.write(model)


def _shapes(module: nn.Module, game: GameShape | None) -> tuple[tuple[int, int, int], int]:
    """(C, H, W) and A: the module's own, or the game's."""
    source: Any = module if hasattr(module, "obs_shape") and hasattr(module, "num_actions") else game
    if source is None:
        raise SettingsError(f"{type(module).__name__} has no obs_shape and num_actions: give game=")
    planes, height, width = (int(size) for size in source.obs_shape)
    return (planes, height, width), int(source.num_actions)


def _hash(module: nn.Module) -> int:
    """Of the structure, and of every weight and statistic with its name, shape and dtype."""
    digest = hashlib.blake2b(repr(module).encode(), digest_size=8)
    if smoothing := getattr(module, "value_smoothing", 0.0):  # it scales the value of three classes
        digest.update(repr(smoothing).encode())
    for name, tensor in module.state_dict().items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        # Bytes, as numpy has no bfloat16.
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return int.from_bytes(digest.digest(), "little") or 1


def _load_checkpoint(path: Path, game: Any) -> Network:
    """The network of a checkpoint, whose shape the run's config.toml and the game tell."""
    if not path.is_dir():
        raise ModelError(f"{path} is no run folder or checkpoint folder, such as runs/connect_four")
    folder = checkpoint_at(path)
    run = StoredRun(folder.resolve().parent.parent)
    if is_own(run.settings.network):
        raise SettingsError(
            f"{path}'s network is made by {run.settings.network}, which is not imported here: give the module with the "
            f"weights of its model.safetensors and value_smoothing {run.settings.value_smoothing:g}, or use "
            "azpy.OnnxEvaluator"
        )
    start = game if game is not None and is_python_class(run.settings.game) else run.start
    network = Network.of(start, run.settings.network)
    network.value_smoothing = run.settings.value_smoothing
    load_arrays(network, read_checkpoint(folder).model)
    return network
