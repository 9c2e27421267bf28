"""An evaluator that runs an ONNX model with ONNX Runtime.

A model, trained by azpy or elsewhere, takes `observations` [B, C, H, W] float32 and gives `logits` [B, A] float32 (raw)
and `values` [B] float32 in [-1, 1] for the player to move, with B free; it is one file, weights included. What is
loaded is checked before it answers: names, ranks, dtypes, the game's shapes, and some warm-up batches. Knows nothing of
torch, search or run folders.
"""

import copy
import hashlib
import os
import threading
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from azpy.errors import MissingPackageError, ModelError, SettingsError

__all__ = ["OnnxEvaluator", "network_id"]

# Making a session is not thread-safe and holds the GIL.
_SESSION_LOCK = threading.Lock()
_OUTPUTS = ["logits", "values"]
_WARM_UP_ROWS = 2
_PROBE_BATCHES = (1, 2, 7)


class _GameShape(Protocol):
    @property
    def num_actions(self) -> int: ...
    @property
    def obs_shape(self) -> tuple[int, int, int]: ...


class OnnxEvaluator:
    """Answers batches of observations from an ONNX model on one device.

    Args:
        model: path of the model file, or its bytes.
        device: "cpu", the only device of this version.
        game: a `State`, or anything with `num_actions` and `obs_shape`; the model must fit it.
        threads: ONNX Runtime's own threads for one batch. With 1, several pipelines may share one session.

    Attributes:
        network_id: nonzero 64-bit hash of the model's bytes: the search's cache tells networks apart by it.
        obs_shape: (C, H, W) the model was made for.
        num_actions: A, the number of logits in a row.
        row_exact: whether a row got the same bits in batches of different sizes when the model was loaded; if not,
            what a search finds depends on which positions share a batch.

    Raises:
        ModelError: the model is missing, damaged, of another form, or does not fit the game.
        MissingPackageError: onnxruntime is not installed.

    Example:
        >>> evaluator = OnnxEvaluator("runs/c4/checkpoints/000010/model.onnx")  # doctest: +SKIP
        >>> logits, values = evaluator.evaluate_batch(observations)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes,
        device: str = "cpu",
        *,
        game: _GameShape | None = None,
        threads: int = 1,
    ) -> None:
        if device != "cpu":
            raise SettingsError(f'device {device!r} is not available: only "cpu" is in this version')
        if threads < 1:
            raise SettingsError(f"threads must be at least 1, got {threads}")
        self.name = "model" if isinstance(model, bytes) else os.fspath(model)
        data = _read(model)
        self.network_id: int = network_id(data)
        self._session = _open_session(data, threads, self.name)
        self.obs_shape, self.num_actions = _check_signature(self._session, self.name)
        if game is not None:
            self._check_fits(game)
        self._warm_up()
        self.row_exact: bool = self._probe_rows()

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Evaluates one batch; safe to call from several threads.

        Args:
            observations: [B, C, H, W] float32, seen by the player to move; not kept.

        Returns:
            Raw logits [B, A] float32, and values [B] float32 in [-1, 1] for the player to move.

        Raises:
            ModelError: observations of another shape than the model's.
        """
        if observations.shape[1:] != self.obs_shape:
            raise ModelError(
                f"{self.name} takes observations [B, {', '.join(map(str, self.obs_shape))}], "
                f"got {list(observations.shape)}"
            )
        # A plain run binds the caller's memory without a copy. IO binding, bound anew each batch as the memory
        # changes, costs more: 5.9 us against 3.7 us of overhead a call (November 2026, ONNX Runtime 1.31).
        logits, values = self._session.run(_OUTPUTS, {"observations": observations})
        return logits, values

    def fork(self) -> Self:
        """An evaluator for another pipeline's thread: it shares the session, which is thread-safe on the CPU."""
        return copy.copy(self)

    def __repr__(self) -> str:
        return f"OnnxEvaluator({self.name!r}, network_id={self.network_id:#018x})"

    def _check_fits(self, game: _GameShape) -> None:
        expected = (*(int(size) for size in game.obs_shape), int(game.num_actions))
        found = (*self.obs_shape, self.num_actions)
        if found != expected:
            raise ModelError(
                f"{self.name} does not fit the game: it takes observations {list(found[:3])} and gives "
                f"{found[3]} logits, expected {list(expected[:3])} and {expected[3]}"
            )

    def _warm_up(self) -> None:
        rows = np.zeros((_WARM_UP_ROWS, *self.obs_shape), np.float32)
        try:
            logits, values = self.evaluate_batch(rows)
        except Exception as error:  # onnxruntime's exceptions share no base
            raise ModelError(f"{self.name} cannot be run: {_first_line(error)}") from error
        if logits.shape != (_WARM_UP_ROWS, self.num_actions) or values.shape != (_WARM_UP_ROWS,):
            raise ModelError(
                f"{self.name} answers {_WARM_UP_ROWS} rows with logits {list(logits.shape)} and values "
                f"{list(values.shape)}, expected {[_WARM_UP_ROWS, self.num_actions]} and {[_WARM_UP_ROWS]}"
            )
        if not (np.isfinite(logits).all() and np.isfinite(values).all()):
            raise ModelError(f"{self.name} answers an empty board with NaN or infinity")

    def _probe_rows(self) -> bool:
        """Compares the bits of the same rows in batches of several sizes."""
        rows = np.random.default_rng(0).random((max(_PROBE_BATCHES), *self.obs_shape), np.float32)
        answers = [self._in_batches_of(size, rows) for size in _PROBE_BATCHES]
        return all(answer == answers[0] for answer in answers)

    def _in_batches_of(self, size: int, rows: NDArray[np.float32]) -> tuple[bytes, bytes]:
        parts = [self.evaluate_batch(rows[begin : begin + size]) for begin in range(0, len(rows), size)]
        return b"".join(logits.tobytes() for logits, _ in parts), b"".join(values.tobytes() for _, values in parts)


def network_id(model: bytes) -> int:
    """The nonzero 64-bit number by which searches, caches and game records tell models apart: a hash of the bytes."""
    return int.from_bytes(hashlib.blake2b(model, digest_size=8).digest(), "little") or 1


def _read(model: str | os.PathLike[str] | bytes) -> bytes:
    if isinstance(model, bytes):
        return model
    try:
        return Path(model).read_bytes()
    except OSError as error:
        raise ModelError(f"model {os.fspath(model)} cannot be read: {error.strerror or error}") from error


def _open_session(data: bytes, threads: int, name: str) -> Any:
    try:
        import onnxruntime as ort
    except ImportError as error:
        raise MissingPackageError('onnxruntime is not installed: pip install "azpy[cpu]"') from error
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors come as exceptions; nothing is printed beside them
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # spinning starves the search's threads
    # Weights in a second file would be looked for in the current folder, and two models with other weights could have
    # one network_id: they are looked for where nothing can be.
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", f"{os.devnull}/none")
    with _SESSION_LOCK:
        try:
            return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions share no base
            if "External data path" in str(error):
                raise ModelError(
                    f"{name} keeps its weights in another file, expected one file: torch.onnx.export(..., "
                    "external_data=False) writes one"
                ) from error
            raise ModelError(f"{name} is no usable ONNX model: {_first_line(error)}") from error


def _check_signature(session: Any, name: str) -> tuple[tuple[int, int, int], int]:
    """(C, H, W) and A, read from the model's declared inputs and outputs."""
    declared = {value.name: value for value in (*session.get_inputs(), *session.get_outputs())}
    inputs = [value.name for value in session.get_inputs()]
    outputs = [value.name for value in session.get_outputs()]
    if inputs != ["observations"] or not set(_OUTPUTS) <= set(outputs):
        raise ModelError(f"{name} maps {inputs} to {outputs}, expected ['observations'] to {_OUTPUTS}")
    for key, rank in (("observations", 4), ("logits", 2), ("values", 1)):
        value = declared[key]
        if value.type != "tensor(float)":
            raise ModelError(f"{name}: {key} is {value.type}, expected tensor(float)")
        if len(value.shape) != rank:
            raise ModelError(f"{name}: {key} has shape {value.shape}, expected {rank} dimensions")
        if isinstance(value.shape[0], int):
            raise ModelError(f"{name}: {key} has a fixed batch of {value.shape[0]}, expected a free first dimension")
    sizes = [*declared["observations"].shape[1:], declared["logits"].shape[1]]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ModelError(f"{name}: only the batch may be free, got observations [B, {sizes[:3]}], logits {sizes[3:]}")
    planes, height, width, actions = sizes
    return (planes, height, width), actions


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
