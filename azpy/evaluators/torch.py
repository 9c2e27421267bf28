"""An evaluator that runs a torch module: for networks that were never exported, and for NVIDIA's large GPUs.

On the CPU in fp32, ONNX Runtime plays faster and needs no torch. This evaluator takes any module. With `buckets`, as on
CUDA, each fork has memory of its own for a batch of each size, and on CUDA a stream and a graph for each size, so that
a batch is one copy to the device, one launch and one copy back. All but the stream and the graph is tested on the CPU.
"""

import contextlib
import copy
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from azpy._core import State
from azpy.devices import BUCKETS, chunks
from azpy.errors import DeviceError, ModelError, SettingsError, missing_to_train
from azpy.evaluators.protocol import Answer, CheckedEvaluator, GameShape, first_line

try:
    import torch
    from torch import Tensor, nn
    from torch.nn.utils.fusion import fuse_conv_bn_eval
except ImportError as error:
    raise missing_to_train("torch") from error

from azpy.game import Game, value_width
from azpy.games.names import make_game
from azpy.learning.network import Network, load_arrays, torch_device
from azpy.learning.own import answers, checked
from azpy.runs.reader import read_weights, stored_network
from azpy.runs.storage import output
from azpy.settings.run import Settings, is_own

_COMPARED_ROWS = 16
_WARM_UPS = 3
_FOLDED_ROWS, _FOLDED_ERROR = 3, 1e-3
_BUCKETS = (*BUCKETS, 1024, 2048)
_EIGHT = 8  # rows that a GPU's matrix units take at once
_CAPTURE = threading.Lock()  # torch captures one graph at a time

_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class TorchEvaluator(CheckedEvaluator):
    """An evaluator that runs a torch module on one device.

    It copies the module: training the original changes nothing here. In the copy, azpy folds each batch norm into the
    convolution before it in an `nn.Sequential`, if the answers stay the same.

    Args:
        network: a module that maps observations [B, C, H, W] to (logits [B, A], values [B] or [B, 1]), with values in
            [-1, 1] for the player to move (in a game of P players without a zero sum: values [B, P], the player to
            move first). Or the path of a run folder, for its newest checkpoint, or of a checkpoint in its run folder.
        device: "cpu", "cuda", "cuda:1" or "mps" (Apple's), which azpy uses or refuses.
        precision: of weights and arithmetic: "fp32", "bf16", or on a GPU "fp16". Answers are float32. Measure what a
            precision other than fp32 changes before you trust it.
        game: a `State`, an `azpy.Game`, an object with `num_actions` and `obs_shape`, or a game's name; the network
            must fit it. Required for a module without `num_actions` and `obs_shape`, and for a run of a game in
            Python. A run with "+conv" also plays other board sizes.
        buckets: rows to which batches are padded, ascending; azpy splits larger batches. On CUDA each bucket has a
            CUDA graph; () means no graphs. None: 8 to 2,048 on CUDA, and no buckets elsewhere.

    Attributes:
        network_id: a nonzero 64-bit hash of the module's structure and weights.
        obs_shape: the shape (C, H, W) of an observation.
        num_actions: the number of actions A.
        device: where it runs: "cpu", "cuda:0", ...
        description: device and precision, in one line.

    Raises:
        ModelError: the module does not fit the game, its answers have wrong shapes, or no CUDA graph can hold it.
        DeviceError: torch cannot use the device, or the device is out of memory.
        RunError: the checkpoint is damaged, or outside a run folder.
        SettingsError: the device, precision or game does not exist, or `game` is not the Python class of the run.

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
        buckets: Sequence[int] | None = None,
    ) -> None:
        if precision not in _DTYPES:
            raise SettingsError(f"precision must be fp32, fp16 or bf16, got {precision!r}")
        target = torch_device(device)
        if precision == "fp16" and target.type == "cpu":
            # 5x64 at batch 64, a core with AVX512-BF16: fp32 5,300 positions/s, bf16 8,500, fp16 590 (November 2026).
            raise SettingsError('torch has no fast fp16 on the CPU: use precision="bf16" or "fp32"')
        shape: Any = make_game(game) if isinstance(game, str) else State(game) if isinstance(game, Game) else game
        if isinstance(network, nn.Module):
            self.name, module = type(network).__name__, network
        else:
            self.name, module = os.fspath(network), _load_checkpoint(Path(network), shape)
        self.obs_shape, self.num_actions = _shapes(module, shape)
        self.num_values = int(getattr(module, "num_values", value_width(shape)))
        if shape is not None:
            self._check_fits(shape)
        self.network_id = _hash(module)
        buckets = _BUCKETS if buckets is None and target.type == "cuda" else buckets or ()
        if list(buckets) != sorted(set(buckets)) or (buckets and buckets[0] < 1):
            raise SettingsError(f"buckets must be ascending batch sizes, got {list(buckets)}")
        # Modules of the user's may rely on the usual order of numbers.
        order = torch.channels_last if isinstance(module, Network) else torch.contiguous_format
        numbers: dict[str, Any] = {"dtype": _DTYPES[precision], "memory_format": order}
        try:
            folded: Any = _folded(module, self.obs_shape, self.num_values).to(target, **numbers).requires_grad_(False)
            if target.type == "cuda" and isinstance(module, Network) and module.is_convolutional:
                folded.trunk = _fused(folded.trunk, self.obs_shape[1:])
            self._forward = _Forward(folded, target, numbers)
        except (RuntimeError, AssertionError) as error:
            raise DeviceError(f"torch cannot use {device!r}: {first_line(error)}") from error
        self.device = str(target)
        self._slot: _Slot | None = None
        tf32 = precision == "fp32" and target.type == "cuda" and torch.backends.cudnn.allow_tf32
        said = f"{precision} (TF32 in convolutions, torch's default)" if tf32 else precision
        self.description = f"torch {torch.__version__}, {self.device}, {said}"
        self._warm_up()
        if buckets:
            self.description += f", batches of {', '.join(map(str, buckets))} rows"
            self._batches = buckets
            self._slot = self._new_slot()

    def _new_slot(self) -> "_Slot":
        try:
            return _Slot(self._forward, self.obs_shape, self._batches)
        except torch.OutOfMemoryError as error:
            raise DeviceError(
                f"{self.device} does not have enough memory for {self.name}: {first_line(error)}"
            ) from error
        except RuntimeError as error:
            raise ModelError(
                f"{self.name} cannot run as a CUDA graph: {first_line(error)}; buckets=() runs it without one"
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        """Memory, streams and graphs are of one evaluator and one process."""
        return vars(self) | {"_slot": self._slot is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._slot = self._new_slot() if state["_slot"] else None

    def _evaluate(self, observations: NDArray[Any]) -> Answer:
        given = torch.from_numpy(np.ascontiguousarray(observations))
        with torch.inference_mode():  # a thread's own state: entered in each call
            if self._slot is not None:
                return self._slot.run(given)
            # Copies: a module may answer from memory that it writes to again.
            copies = (each.to("cpu", copy=True) for each in self._forward(given.to(self.device)))
            first, second = (each.contiguous().numpy() for each in copies)
            return first, second

    def fork(self) -> Self:
        """Return an evaluator for another thread, with the same weights in memory."""
        return copy.copy(self)


class _Forward:
    """From observations to logits and values in float32, on the device."""

    def __init__(self, module: nn.Module, device: torch.device, numbers: dict[str, Any]) -> None:
        self.device, self._module, self._numbers = device, module, numbers

    def __call__(self, given: Tensor) -> tuple[Tensor, Tensor]:
        logits, values = answers(self._module, given.to(**self._numbers))
        return logits.float(), values.float()


class FusedTrunk(nn.Module):
    """The trunk of a folded residual network, in which cuDNN's convolutions also add bias and skip and take the ReLU.

    20x128 on 8 x 8 in fp16 on an H100, 2,048 rows: 3.0 ms in place of 6.5 (November 2026).
    """

    def __init__(self, trunk: nn.Sequential) -> None:
        super().__init__()
        parts: Any = trunk
        self._stem, self._blocks = parts[0][0], parts[2:]

    def forward(self, x: Tensor) -> Tensor:
        """Maps [B, C, H, W] to [B, channels, H, W], as the trunk does."""
        x = _convolved(x, self._stem)
        for block in self._blocks:
            y = _convolved(x, block.first[0]) if block.pool is None else torch.relu(block.first(x) + block.pool(x))
            x = _convolved(y, block.second[0], x)
        return x


def _convolved(x: Tensor, layer: Any, added: Tensor | None = None) -> Tensor:
    """ReLU of a 3x3 convolution, its bias, and what is added."""
    place = [1, 1], [1, 1], [1, 1], 1  # stride, padding, dilation, groups
    if added is None:
        return torch.cudnn_convolution_relu(x, layer.weight, layer.bias, *place)
    return torch.cudnn_convolution_add_relu(x, layer.weight, added, 1.0, layer.bias, *place)


def _fused(trunk: Any, board: Sequence[int]) -> Any:
    """The trunk in fewer passes, if batch norm is folded into it and this cuDNN has such kernels."""
    stem = trunk[0]
    if type(stem[1]) is not nn.Identity:
        return trunk
    made, weight = FusedTrunk(trunk), stem[0].weight
    rows = torch.zeros(1, weight.shape[1], *board, dtype=weight.dtype, device=weight.device)
    try:
        with torch.inference_mode():
            made(rows.to(memory_format=torch.channels_last))
    except RuntimeError:
        return trunk
    return made


class _Slot:
    """Memory of one pipeline for a batch of each size, ascending; on CUDA also a stream, and a graph for each size."""

    def __init__(self, forward: _Forward, obs_shape: tuple[int, int, int], buckets: Sequence[int]) -> None:
        self._forward, self._obs_shape, self._buckets = forward, obs_shape, buckets
        self._on_cuda = forward.device.type == "cuda"
        self._stream: Any = torch.cuda.Stream(forward.device) if self._on_cuda else None  # type: ignore[no-untyped-call]
        self._lock = threading.Lock()
        with torch.inference_mode(), self._on_stream():
            self._batches = {rows: self._prepared(rows) for rows in buckets}

    def run(self, observations: Tensor) -> Answer:
        """Logits [B, A] and values [B] or [B, P] of any number of rows."""
        parts = []
        with self._lock, self._on_stream():
            for begin, end, rows in chunks(len(observations), self._buckets):
                there, answer, back = self._batches[rows]
                # Straight from memory that is not page-locked: a copy into such memory first costs 10 % on an H100.
                there[: end - begin].copy_(observations[begin:end], non_blocking=True)
                if end - begin < rows:
                    there[end - begin :].zero_()  # for a module whose answers depend on other rows
                answer()
                if self._stream is not None:
                    self._stream.synchronize()
                parts.append([each[: end - begin].numpy().copy() for each in back])
        logits, values = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        return logits, values

    def _on_stream(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def _prepared(self, rows: int) -> tuple[Tensor, Callable[[], object], Sequence[Tensor]]:
        """Input on the device, what answers it, and outputs here."""
        there = torch.zeros((rows, *self._obs_shape), dtype=torch.float32, device=self._forward.device)
        back = [torch.empty_like(each, device="cpu", pin_memory=self._on_cuda) for each in self._forward(there)]

        def answer() -> None:
            for to, made in zip(back, self._forward(there), strict=True):
                to.copy_(made, non_blocking=True)

        for _ in range(_WARM_UPS):  # libraries choose kernels and take memory, which a graph must not hold
            answer()
        if self._stream is None:
            return there, answer, back
        self._stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with _CAPTURE, torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            answer()
        return there, graph.replay, back


def _folded(module: nn.Module, obs_shape: tuple[int, int, int], num_values: int) -> nn.Module:
    """A copy on the CPU, in which the batch norm right behind a convolution is part of it where that keeps answers."""
    plain, width = copy.deepcopy(module).to("cpu").eval(), cast("Any", num_values)
    plain.num_values = width
    folded = copy.deepcopy(plain)
    for part in [each for each in folded.modules() if type(each) is nn.Sequential]:
        for number, (first, second) in enumerate(pairwise(list(part))):
            if type(first) is nn.Conv2d and type(second) is nn.BatchNorm2d and second.track_running_stats:
                part[number], part[number + 1] = fuse_conv_bn_eval(first, second), nn.Identity()
    rows = np.random.default_rng(0).integers(0, 2, (_FOLDED_ROWS, *obs_shape)).astype(np.float32)
    try:
        with torch.no_grad():
            pairs = zip(*(answers(one, torch.from_numpy(rows)) for one in (plain, folded)), strict=True)
            same = all(torch.allclose(one, other, rtol=_FOLDED_ERROR, atol=_FOLDED_ERROR) for one, other in pairs)
    except Exception:  # the first batch that plays says what is wrong
        same = False
    return folded if same else plain


def export_onnx(module: nn.Module, game: GameShape | str, path: str | os.PathLike[str]) -> None:
    """Write a torch module as an ONNX model for `OnnxEvaluator`, and compare the answers of the two.

    Needs the extras cpu and train. Heads beyond policy and value are left out. Weights keep their `state_dict` names.

    Args:
        module: maps observations float32 [B, C, H, W] to (logits [B, A], values [B] or [B, 1] in [-1, 1]), all float32,
            on the CPU. In a game of P players without a zero sum, values are [B, P]. azpy writes it in evaluation
            mode, and restores its mode.
        game: a `State`, an object with `num_actions` and `obs_shape`, or a game's name.
        path: the file to write. azpy replaces it completely or not at all.

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
    shape: GameShape = make_game(game) if isinstance(game, str) else game
    was_training = module.training
    try:
        model, _ = exported(checked(module, shape), shape)
    finally:
        module.train(was_training)
    with output(path) as file:
        file.write(model)


def exported(module: nn.Module, game: GameShape) -> tuple[bytes, CheckedEvaluator]:
    """Return a module as an ONNX model and what plays it, after a comparison of the two; raise as `export_onnx`."""
    from azpy.evaluators.onnx import OnnxEvaluator
    from azpy.learning.export import check_parity, to_onnx

    model = to_onnx(module)
    evaluator = OnnxEvaluator(model, game=game)
    rows = np.random.default_rng(0).integers(0, 2, (_COMPARED_ROWS, *game.obs_shape)).astype(np.float32)
    check_parity(module, evaluator, rows)
    return model, evaluator


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


def evaluator_of_model(
    model: bytes, settings: Settings, device: str, *, game: Any, precision: str, batch: int | None
) -> TorchEvaluator:
    """The evaluator of a run's model, as `to_onnx` writes it, with the `network_id` that it has in ONNX Runtime.

    `batch` is the size of the largest batches to come; None: unknown. The others are as for `TorchEvaluator`.

    Raises:
        AzpyError: those of `TorchEvaluator`; or the model is of another network.
    """
    from azpy.evaluators.onnx import network_id
    from azpy.learning.export import network_of_model

    module = network_of_model(model, game, settings.network)
    module.value_smoothing = settings.value_smoothing
    # The last holds no row in vain: pipelines nearly always send full batches.
    last = () if batch is None else (-(-batch // _EIGHT) * _EIGHT,)
    buckets = (*(rows for rows in _BUCKETS if batch is None or rows < batch), *last)
    evaluator = TorchEvaluator(module, device, precision=precision, game=game, buckets=buckets)
    evaluator.network_id = network_id(model, precision)
    return evaluator


def _load_checkpoint(path: Path, game: Any) -> Network:
    """The network of a checkpoint, whose shape the run's config.toml and the game tell."""
    folder, settings, start = stored_network(path, game)
    if is_own(settings.network):
        raise SettingsError(
            f"{path}'s network is made by {settings.network}, which is not imported here: give the module with the "
            f"weights of its model.safetensors and value_smoothing {settings.value_smoothing:g}, or use "
            "azpy.OnnxEvaluator"
        )
    network = Network.of(start, settings.network)
    network.value_smoothing = settings.value_smoothing
    load_arrays(network, read_weights(folder))
    return network
