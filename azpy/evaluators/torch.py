"""An evaluator that runs a torch module: for networks that were never exported, and for fp16 and bf16.

ONNX Runtime plays faster on the CPU in fp32 and needs no torch; this evaluator takes any module, on any device that
torch knows as "cpu" or "cuda". On a GPU each fork has a stream, memory on both sides, and CUDA graphs of its own.
Knows nothing of ONNX, search or training.
"""

import contextlib
import copy
import hashlib
import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from azpy.errors import DeviceError, ModelError, SettingsError, missing_to_train
from azpy.evaluators.protocol import CheckedEvaluator, first_line

try:
    import torch
    from torch import nn
except ImportError as error:
    raise missing_to_train("torch") from error

from azpy.devices import BUCKETS, chunks
from azpy.learning.network import Network, load_arrays, torch_device
from azpy.positions import is_python_class, make_position
from azpy.runs.folder import read_checkpoint
from azpy.runs.reader import StoredRun, checkpoint_at

__all__ = ["TorchEvaluator"]

_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
# Runs of a shape before it is recorded: libraries choose kernels and take workspaces in the first ones.
_RUNS_BEFORE_RECORDING = 3
# "Only one capture may be underway at a time in the process" (torch/cuda/graphs.py, 2.15).
_RECORDING = threading.Lock()
# Streams whose evaluators are gone, by GPU. torch has 32 a GPU and hands them out in turn, whoever still uses one; and
# graphs of one stream share a workspace of cuBLAS, which goes with the first of them (pytorch issue 193402, 2026): only
# the first user of a stream records.
_FREE_STREAMS: dict[torch.device, list[torch.cuda.Stream]] = {}
_STREAM_USERS: dict[int, list[object]] = {}
# Where more evaluators live than there are streams, those that share one take turns: what one of them did while
# another records would become part of the graph.
_STREAM_LOCKS: dict[int, threading.Lock] = {}

_cuda: Any = torch.cuda  # its Stream and Event are not typed

_Answer = tuple[NDArray[np.float32], NDArray[np.float32]]


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
            [-1, 1] for the player to move; or the path of a run folder, which stands for its newest checkpoint, or of
            a checkpoint in its run folder.
        device: "cpu", "cuda" or "cuda:1"; used or refused.
        precision: "fp32", "bf16", or on a GPU "fp16": of weights and arithmetic, answers are float32. Of anything but
            fp32, look at what it changes before you trust it.
        game: a `State`, or anything with `num_actions` and `obs_shape`, or a game's name as `azpy.make_game` takes it;
            the network must fit it. Needed where the module has no `num_actions` and `obs_shape` of its own, and of a
            run whose game is a Python class.
        channels_last: keep planes and weights in torch's channels-last format, the faster one for convolutions.
        buckets: rows that batches are padded to on a GPU, ascending; more rows are answered in several parts.
        cuda_graph: on a GPU, record each bucket's kernels once and replay them, so that Python launches one thing a
            batch and not each kernel. On by default: it brought NVIDIA's MLPerf entries 1.1 to 1.7 times the speed
            (PyTorch's blog, October 2021), the more the shorter the kernels. A module that waits for the GPU within
            `forward`, or decides by what it computes, cannot be recorded. Of more than 32 evaluators and forks on one
            GPU, as many as torch has streams, the later ones record nothing.

    Attributes:
        network_id: nonzero 64-bit hash of the module's structure and weights.
        obs_shape: (C, H, W).
        num_actions: A.
        row_exact: see `OnnxEvaluator`; often false here, as torch chooses kernels by the size of a batch.
        device: where it runs: "cpu", "cuda:0", ...
        description: device and precision, in one line.

    Raises:
        ModelError: a module that does not fit the game, answers in another form, or cannot be recorded.
        DeviceError: torch cannot use the device, or it has no room.
        RunError: a checkpoint that is damaged, or in no run folder.
        SettingsError: no such device, or a precision that it does not have; or no such game, or a run's Python class
            that `game` does not name.

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
        game: _GameShape | str | None = None,
        channels_last: bool = True,
        buckets: Sequence[int] = BUCKETS,
        cuda_graph: bool = True,
    ) -> None:
        if precision not in _DTYPES:
            raise SettingsError(f"precision must be fp32, fp16 or bf16, got {precision!r}")
        if not buckets or list(buckets) != sorted(set(buckets)) or buckets[0] < 1:
            raise SettingsError(f"buckets must be ascending numbers of rows, got {list(buckets)}")
        target = torch_device(device)
        if precision == "fp16" and target.type == "cpu":
            # 5x64 at batch 64, a core with AVX512-BF16: fp32 5,300 positions/s, bf16 8,500, fp16 590 (November 2026).
            raise SettingsError('torch has no fast fp16 on the CPU: use precision="bf16" or "fp32"')
        shape: _GameShape | None = make_position(game) if isinstance(game, str) else game
        if isinstance(network, nn.Module):
            self.name, module = type(network).__name__, network
        else:
            self.name, module = os.fspath(network), _load_checkpoint(Path(network), shape)
        self.obs_shape, self.num_actions = _shapes(module, shape)
        if shape is not None:
            self._check_fits(shape)
        self.network_id = _hash(module)
        placed = _place(module, target, _DTYPES[precision], channels_last, device)
        self.device = str(target)
        self.description = f"torch {torch.__version__}, {self.device}, {_precision_in_words(precision, target)}"
        if target.type == "cpu":
            self._runner: _OnCpu | _OnGpu = _OnCpu(placed, self.obs_shape)
            self._larger_batches = (8, 64)
        else:
            self._runner = _OnGpu(placed, target, self.obs_shape, buckets, cuda_graph, self.name)
            self._larger_batches = tuple(buckets)
            graphs = ", CUDA graphs" if self._runner.records else ""
            self.description += f", batches of {', '.join(map(str, buckets))} rows{graphs}"
        self._warm_up()
        self.row_exact = self._probe_rows()

    def _evaluate(self, observations: NDArray[np.float32]) -> _Answer:
        return self._runner.run(observations)

    def input_buffer(self, rows: int) -> NDArray[np.float32]:
        """Memory for the observations of the calling thread's next batch, which need no copy on their way from there.

        Args:
            rows: of that batch.

        Returns:
            Observations [rows, C, H, W] float32, C order, to be filled and given to `evaluate_batch`; page-locked for
            a GPU. The same memory again in the next call from this thread; other threads and forks have their own.
        """
        return self._runner.memory.array(rows)

    def fork(self) -> Self:
        """An evaluator for another pipeline's thread; the weights are shared, as nothing writes to them.

        Raises:
            DeviceError: the GPU has no room for another one's memory.
        """
        other = copy.copy(self)
        other._runner = self._runner.fork()
        return other

    def __repr__(self) -> str:
        return f"TorchEvaluator({self.name!r}, {self.device!r}, network_id={self.network_id:#018x})"


class _Memory:
    """Where observations come from: for each thread one block, as large as its largest batch.

    Args:
        obs_shape: (C, H, W).
        pinned: page-locked, so that a GPU reads it while the host goes on.
    """

    def __init__(self, obs_shape: tuple[int, int, int], pinned: bool) -> None:
        self._obs_shape, self._pinned = obs_shape, pinned
        self._mine = threading.local()  # two searches in two threads may share one evaluator

    def array(self, rows: int) -> NDArray[np.float32]:
        """[rows, C, H, W] of this thread's block."""
        if getattr(self._mine, "block", None) is None or len(self._mine.block) < rows:
            capacity = 1 << max(rows - 1, 0).bit_length()
            self._mine.block = torch.zeros((capacity, *self._obs_shape), pin_memory=self._pinned)
        self._mine.array = self._mine.block[:rows].numpy()
        array: NDArray[np.float32] = self._mine.array
        return array

    def tensor(self, observations: NDArray[np.float32]) -> torch.Tensor:
        """`observations` in this thread's block, where they may be already."""
        if observations is not getattr(self._mine, "array", None):
            self.array(len(observations))[:] = observations
        block: torch.Tensor = self._mine.block
        return block[: len(observations)]


class _OnCpu:
    """The module as it is, called by any number of threads."""

    def __init__(self, compute: "_Placed", obs_shape: tuple[int, int, int]) -> None:
        self._compute = compute
        self._obs_shape = obs_shape
        self.memory = _Memory(obs_shape, pinned=False)

    def run(self, observations: NDArray[np.float32]) -> _Answer:
        """Logits [B, A] and values [B] of any number of rows."""
        with torch.inference_mode():  # a thread's own state: entered in each call
            logits, values = self._compute(torch.from_numpy(np.ascontiguousarray(observations)))
            # Copies: a module may answer from memory that it writes to again.
            return logits.clone().numpy(), values.clone().numpy()

    def fork(self) -> "_OnCpu":
        return _OnCpu(self._compute, self._obs_shape)


class _OnGpu:
    """One thread's way to a GPU: a stream, and for each bucket memory at fixed addresses, and a graph.

    All of a batch is queued without waiting: parts are copied in, evaluated and copied out in the stream's order. Then
    the host sleeps until the last copy is done, with the GIL released.

    Args:
        compute: what answers.
        device: where it answers. On "cpu", for tests, nothing is queued or recorded and all else is the same.
        obs_shape: (C, H, W).
        buckets: rows of the batches, ascending.
        cuda_graph: whether kernels are recorded.
        name: of the model, for errors.

    Attributes:
        records: whether kernels are recorded, which takes a stream that nobody had before.
    """

    def __init__(
        self,
        compute: "_Placed",
        device: torch.device,
        obs_shape: tuple[int, int, int],
        buckets: Sequence[int],
        cuda_graph: bool,
        name: str,
    ) -> None:
        self._again = (compute, device, obs_shape, buckets, cuda_graph, name)
        self._buckets = tuple(buckets)
        self._lanes: dict[int, _Lane] = {}
        self._stream, self.records = None, False
        if device.type == "cuda":
            user = object()
            self._stream, is_first = _take_stream(device, user)
            # At once: a constructor that fails gives it back too.
            weakref.finalize(self, _give_back, device, self._stream, user, self._lanes).atexit = False
            self.records = cuda_graph and is_first
        pinned = self._stream is not None
        self.memory = _Memory(obs_shape, pinned)
        self._lock = threading.Lock()  # the memory of the lanes holds one batch at a time
        self._done: torch.cuda.Event | None = None
        if self._stream is not None:
            self._lock = _STREAM_LOCKS.setdefault(self._stream.cuda_stream, self._lock)
            # Sleeps rather than spins while it waits: the core has trees to grow.
            self._done = _cuda.Event(blocking=True)
        try:
            with _RECORDING, self._lock, torch.inference_mode():
                if self._stream is not None:  # the weights came by this one
                    self._stream.wait_stream(torch.cuda.current_stream(device))
                with self._use_stream():
                    for rows in reversed(self._buckets):
                        self._lanes[rows] = _Lane(compute, torch.zeros((rows, *obs_shape), device=device))
                    if self.records:
                        self._record(name)
        except torch.OutOfMemoryError as error:
            raise DeviceError(f"the GPU has no room for {name}: {first_line(error)}") from error
        except ModelError:
            raise
        except Exception as error:  # a module may raise anything
            raise ModelError(f"{name} cannot be run: {first_line(error)}") from error
        self._answers = self._host_memory(self._buckets[-1])

    def _record(self, name: str) -> None:
        # One pool for all, as they run at different times. The largest bucket comes first: what it needs in between is
        # enough for the others.
        pool = torch.cuda.graph_pool_handle()
        for lane in self._lanes.values():
            try:
                lane.record(self._stream, pool)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                raise ModelError(
                    f"{name} cannot be recorded as a CUDA graph: {first_line(error)}; cuda_graph=False runs it as it is"
                ) from error

    def _use_stream(self) -> contextlib.AbstractContextManager[object]:
        """Sets the GPU and the stream of this thread; both are a thread's own state."""
        return contextlib.nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def _host_memory(self, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Where answers arrive: logits [rows, A] and values [rows]."""
        lane = self._lanes[self._buckets[-1]]
        logits, values = (
            torch.empty((rows, *answer.shape[1:]), pin_memory=self._stream is not None) for answer in lane.answers
        )
        return logits, values

    def run(self, observations: NDArray[np.float32]) -> _Answer:
        """Logits [B, A] and values [B] of any number of rows."""
        rows = len(observations)
        with self._lock, torch.inference_mode(), self._use_stream():
            given = self.memory.tensor(observations)
            if len(self._answers[0]) < rows:
                self._answers = self._host_memory(1 << (rows - 1).bit_length())
            logits, values = (answer[:rows] for answer in self._answers)
            for begin, end, bucket in chunks(rows, self._buckets):
                lane = self._lanes[bucket]
                # What earlier batches left in the rows behind these is computed too, and not looked at.
                lane.observations[: end - begin].copy_(given[begin:end], non_blocking=True)
                lane.run()
                logits[begin:end].copy_(lane.answers[0][: end - begin], non_blocking=True)
                values[begin:end].copy_(lane.answers[1][: end - begin], non_blocking=True)
            if self._done is not None:
                self._done.record()
                self._done.synchronize()
            # Copies: the next batch arrives in the same memory.
            return logits.clone().numpy(), values.clone().numpy()

    def fork(self) -> "_OnGpu":
        return _OnGpu(*self._again)


class _Lane:
    """One bucket: observations at a fixed address, and answers to them, of which a graph leaves those at fixed ones.

    Args:
        compute: what answers.
        observations: [rows, C, H, W] float32, on the device.
    """

    def __init__(self, compute: "_Placed", observations: torch.Tensor) -> None:
        self.observations = observations
        self._compute = compute
        self._graph: torch.cuda.CUDAGraph | None = None
        for _ in range(_RUNS_BEFORE_RECORDING):
            self.run()

    def record(self, stream: torch.cuda.Stream | None, pool: Any) -> None:
        """Makes a graph of what `run` does, on the stream on which it will be replayed, with memory from `pool`."""
        graph = torch.cuda.CUDAGraph()
        # Other threads go on using the GPU meanwhile: only what this one does is looked at.
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            self.run()
        self._graph = graph

    def run(self) -> None:
        """Puts the answers to `observations` into `answers`."""
        if self._graph is None:
            self.answers = self._compute(self.observations)
        else:
            self._graph.replay()


def _take_stream(device: torch.device, user: object) -> tuple[torch.cuda.Stream, bool]:
    """A stream, and whether nobody else has it."""
    try:
        stream = _FREE_STREAMS.setdefault(device, []).pop()
    except IndexError:
        stream = _cuda.Stream(device)
    users = _STREAM_USERS.setdefault(stream.cuda_stream, [])
    users.append(user)
    return stream, users[0] is user


def _give_back(device: torch.device, stream: torch.cuda.Stream, user: object, lanes: dict[int, _Lane]) -> None:
    lanes.clear()  # the graphs first
    # No lock, which a collection in the thread that holds it would wait for: a list's methods are atomic.
    users = _STREAM_USERS[stream.cuda_stream]
    users.remove(user)
    if not users:
        _FREE_STREAMS[device].append(stream)


class _Placed:
    """A module on its device, between float32 in and float32 out."""

    def __init__(self, module: nn.Module, device: torch.device, dtype: torch.dtype, channels_last: bool) -> None:
        self._dtype = dtype
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        untyped: Any = copy.deepcopy(module)  # torch's releases do not agree on how `to` is typed
        self._module = untyped.to(device=device, dtype=dtype, memory_format=self._format)
        self._module.eval().requires_grad_(False)

    def __call__(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [B, A] and values [B] of observations [B, C, H, W], all float32 in C order, on the device."""
        logits, values = self._module(observations.to(dtype=self._dtype, memory_format=self._format))
        return logits.float().contiguous(), values.reshape(-1).float().contiguous()


def _place(module: nn.Module, device: torch.device, dtype: torch.dtype, channels_last: bool, name: str) -> _Placed:
    try:
        return _Placed(module, device, dtype, channels_last)
    except (RuntimeError, AssertionError) as error:
        raise DeviceError(f"torch cannot use {name!r}: {first_line(error)}") from error


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


def _load_checkpoint(path: Path, game: Any) -> Network:
    """The network of a checkpoint, whose shape the run's config.toml and the game tell."""
    if not path.is_dir():
        raise ModelError(f"{path} is no run folder or checkpoint folder, such as runs/connect_four")
    folder = checkpoint_at(path)
    run = StoredRun(folder.resolve().parent.parent)
    start = game if game is not None and is_python_class(run.settings.game) else run.start
    network = Network.of(start, run.settings.network)
    load_arrays(network, read_checkpoint(folder).model)
    return network
