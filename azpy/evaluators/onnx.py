"""An evaluator that runs an ONNX model with ONNX Runtime, on the CPU or a GPU.

A model takes `observations` [B, C, H, W] float32 and gives raw `logits` [B, A] float32 and `values` [B] float32 in
[-1, 1] for the player to move. It is one file with its weights. `read_signature` says which other forms there are. A
model is checked before it answers. A device that is asked for by name is used or refused, never replaced.
"""

import copy
import hashlib
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.devices import BUCKETS, OWN, Device, check_precision, chunks, default_cache_dir, provider_options
from azpy.errors import DeviceError, MissingPackageError, ModelError, RunError, SettingsError
from azpy.evaluators.protocol import Answer, CheckedEvaluator, GameShape, first_line, rate
from azpy.evaluators.sessions import import_onnxruntime, open_on_cpu, open_on_device
from azpy.games.names import make_game
from azpy.runs.reader import checkpoint_at, read_model
from azpy.system import usable_cores

ANY_SIZE = b"policy.last.weight"  # in the bytes of a model of a network with +conv
_PRIORS_ERROR = 0.01  # half precision (TensorRT) sums to 1 as closely as this
# Smaller priors are raised to the smallest normal float32, because the logarithm of 0 is not finite.
_LEAST_PRIOR = np.finfo(np.float32).tiny
_MOST_PLAYERS = 6
_CPU_ROWS = 64


class OnnxEvaluator(CheckedEvaluator):
    """An evaluator that runs an ONNX model on one device, with ONNX Runtime.

    The model maps `observations` float32 [B, C, H, W] to raw `logits` float32 [B, A] and `values` float32 [B] in
    [-1, 1], for the player to move.

    Args:
        model: the path of a model file, of a checkpoint's folder, or of a run folder, for its newest checkpoint; or
            the model's bytes, which the evaluator keeps for `pickle`.
        device: "cpu"; "cuda", "cuda:1", "tensorrt", "tensorrt:1" or "webgpu" for a GPU, or "openvino" for Intel's
            CPUs, which azpy uses or refuses; or "auto": the first of CUDA and WebGPU that answers more rows/s of this
            network than all cores of the CPU, in batches of `batch` rows, else the CPU. `notes` has the figures.
        game: a `State`, an object with `num_actions` and `obs_shape`, or a game's name; the model must fit it.
        threads: threads for one batch on the CPU. With 1, several pipelines can share one session.
        precision: "fp32"; on TensorRT also "fp16" (for fp16 on CUDA use `TorchEvaluator`), and with OpenVINO "bf16",
            which is fast on CPUs with instructions for it. On CUDA and TensorRT, fp32 includes TF32. Measure what
            another precision changes before you trust it (azpy/evaluators/drift.py).
        buckets: rows to which batches are padded on a GPU, ascending; azpy splits larger batches. Ignored for a model
            with a fixed batch.
        cache_dir: where TensorRT keeps its engines (default `~/.cache/azpy/tensorrt`). azpy never deletes them.
        batch: rows of the largest batches to come; azpy prepares no larger bucket. On the CPU, `row_exact` compares
            rows in batches of this size. None: all buckets, and 64.

    Attributes:
        network_id: a nonzero 64-bit hash of the model's bytes, and of the precision if that is not fp32.
        model_id: the same hash of the bytes alone.
        obs_shape: the shape (C, H, W) that the model takes.
        num_actions: the number A of logits in a row.
        signature: names and shapes of the model's input and outputs.
        device: where it runs: "cpu", "cuda:0", ...
        description: provider, precision and batches, in one line.
        notes: why "auto" chose or skipped a device, one line each.

    Raises:
        ModelError: the model is missing, damaged, of another form, or does not fit the game.
        DeviceError: you named a device that cannot be used.
        MissingPackageError: onnxruntime is not installed, or lacks the device.
        SettingsError: the device or game does not exist, or the device does not have this precision.

    Example:
        >>> evaluator = OnnxEvaluator("runs/c4", "cuda")  # doctest: +SKIP
        >>> logits, values = evaluator.evaluate_batch(observations)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes,
        device: str | Device = "cpu",
        *,
        game: GameShape | str | None = None,
        threads: int = 1,
        precision: str = "fp32",
        buckets: Sequence[int] = BUCKETS,
        cache_dir: str | os.PathLike[str] | None = None,
        batch: int | None = None,
    ) -> None:
        self._given = {name: value for name, value in locals().items() if name not in {"self", "model"}}
        if not 1 <= threads <= _core.MOST_THREADS:
            raise SettingsError(f"threads must be at least 1, at most {_core.MOST_THREADS}; got {threads}")
        if not buckets or list(buckets) != sorted(set(buckets)) or buckets[0] < 1:
            raise SettingsError(f"buckets must be ascending batch sizes, got {list(buckets)}")
        devices = Device.read(device).choices
        if devices[0].kind == OWN:
            raise SettingsError(
                f"device {OWN} belongs to azpy.NetEvaluator, which plays runs: give OnnxEvaluator another device"
            )
        for candidate in devices:
            check_precision(candidate, precision)
            if candidate.kind == "cuda" and precision != "fp32":
                raise SettingsError(
                    f"ONNX Runtime plays fp32 on CUDA, got precision {precision!r}: use azpy.TorchEvaluator (az-train "
                    "does, with a torch that has CUDA), or device tensorrt"
                )
        shape: GameShape | None = make_game(game) if isinstance(game, str) else game
        self.name, data = model_bytes(model)
        self._source = model if isinstance(model, bytes) else Path(self.name).absolute()
        self.network_id, self.model_id = network_id(data, precision), network_id(data)
        ort = import_onnxruntime(devices[-1])
        # The CPU looks at every model first: what is wrong with a model is not blamed on a device.
        session = open_on_cpu(ort, data, threads, self.name)
        self.signature = signature = read_signature(session, self.name)
        self.obs_shape, self.num_actions = signature.obs_shape, signature.num_actions
        self.num_values = signature.num_values
        if shape is not None:
            way = "; azpy.learning.export.for_board writes an fp32 model with +conv for another size of its game"
            self._check_fits(shape, way if ANY_SIZE in data else "")
        buckets = buckets if signature.batch is None else (signature.batch,)
        if batch is not None:
            buckets = buckets[: 1 + sum(rows < batch for rows in buckets)]
        batch = batch or _CPU_ROWS
        cache, notes = default_cache_dir() if cache_dir is None else Path(cache_dir), list[str]()
        fixed = None if signature.batch is None else buckets
        rows = "" if fixed is None else f" of {signature.batch} rows"
        on_threads = f"{threads} {'thread' if threads == 1 else 'threads'} per batch{rows}"
        self._runner, on_cores = _Runner(session, signature, fixed), 0.0
        self._batches = (batch,)
        self._open: Callable[[], _Runner] | None = None  # opens another session on a GPU
        for candidate in devices:
            if candidate.kind == "cpu":
                said = f"CPU, {'int8' if b'DequantizeLinear' in data else 'fp32'}, {on_threads}"
                break
            padded = fixed if candidate.on_cpu else buckets
            if len(devices) > 1 and candidate.plugin and not importlib.util.find_spec(candidate.plugin):
                continue  # the user did not install this optional plugin, so a notice would not help
            try:
                providers = self._providers(candidate, precision, buckets, cache, threads)
                opened = partial(_on_device, ort, data, candidate, providers, signature, padded)
                runner = opened()
            except (DeviceError, MissingPackageError) as error:
                if candidate is devices[-1]:
                    raise
                notes.append(str(error))
                continue
            if len(devices) > 1:
                cores = max(1, usable_cores() // threads)
                on_cores = on_cores or rate([self._runner.run], batch, self.obs_shape) * cores
                on_gpu = rate([runner.run], batch, self.obs_shape)
                found = f"{candidate.title} answers {on_gpu:,.0f} rows/s of this network, the CPU {on_cores:,.0f}"
                notes.append(f"{found}, in batches of {batch}")
                if on_gpu <= on_cores:
                    continue
            self._runner = runner
            self._open = None if candidate.plugin else opened  # a plugin's session is shared
            gpu = f", GPU {candidate.index}" if ":" in str(candidate) else ""
            said = f"{candidate.title}{gpu}, {precision}, "
            if candidate.on_cpu:
                said += on_threads
            else:
                self._batches = tuple(buckets)
                said += f"batches of {', '.join(map(str, buckets))} rows"
            break
        self.description, self.device, self.notes = said, str(candidate), tuple(notes)
        self._warm_up()
        if signature.kind == "priors":
            self._check_priors()

    def _providers(
        self, device: Device, precision: str, buckets: Sequence[int], cache_dir: Path, threads: int
    ) -> list[tuple[str, dict[str, str]]]:
        """The providers of a session. Makes the folder of TensorRT's engines."""
        if device.kind == "tensorrt":
            try:
                cache_dir.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                why = error.strerror or error
                raise DeviceError(f"TensorRT cannot keep its engines in {cache_dir}: {why}") from error
        inputs = {self.signature.input: self.obs_shape}
        return provider_options(device, self.network_id, inputs, buckets, cache_dir, precision, threads)

    def _evaluate(self, observations: NDArray[np.float32]) -> Answer:
        policy, values = self._runner.run(observations)
        if self.signature.kind == "priors":
            policy = logits_of_priors(policy, f"{self.signature.policy} of {self.name}")
        return policy, values

    def _check_priors(self) -> None:
        """Raise a ModelError unless the priors of the start position sum to 1."""
        priors, _ = self._runner.run(np.zeros((1, *self.obs_shape), np.float32))
        if abs(float(priors.sum()) - 1) > _PRIORS_ERROR:
            raise ModelError(
                f"{self.name}: {self.signature.policy} of the start position sum to {priors.sum():g}, expected "
                "probabilities that sum to 1: name the output 'logits' if it holds logits"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the path of the model's file or checkpoint, or the bytes that were given, and the arguments.

        The model is opened anew there, on the device of the same name.

        Raises:
            TypeError: in a subclass, whose arguments are not known here.
        """
        if type(self) is not OnnxEvaluator:
            name = type(self).__name__
            raise TypeError(f"{name} cannot be pickled: a subclass of OnnxEvaluator must define its own __reduce__")
        return _opened_again, (self._source, self._given, self.network_id)

    def __copy__(self) -> Self:
        """Another evaluator with the same session."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def fork(self) -> Self:
        """Return an evaluator for another thread.

        On CUDA and TensorRT it opens a session, and so a stream, of its own. On other devices it shares the session.

        Raises:
            DeviceError: the GPU has no room for another session.
        """
        other = copy.copy(self)
        if self._open is not None:
            other._runner = self._open()
        return other


def _opened_again(model: Path | bytes, given: Mapping[str, Any], network: int) -> OnnxEvaluator:
    """What `pickle` gives back.

    Raises:
        ModelError: the file holds another network by now.
    """
    evaluator = OnnxEvaluator(model, **given)
    if evaluator.network_id != network:
        raise ModelError(f"{evaluator.name} holds a different network now: it changed after the evaluator was pickled")
    return evaluator


@dataclass(frozen=True)
class Signature:
    """A model's input and outputs."""

    input: str  # name of the observations [B, C, H, W]
    policy: str  # name of the policy [B, A]
    value: str  # name of the values [B] or [B, 1]; of several players without a zero sum [B, P]
    kind: str  # what the policy holds: "logits", or "priors" that sum to 1 over all actions
    obs_shape: tuple[int, int, int]  # (C, H, W)
    num_actions: int  # A
    num_values: int  # of a row: 1, or P
    batch: int | None  # B, if the model takes no other


def read_signature(session: Any, model: str) -> Signature:
    """Finds a model's input, policy and value by their names, in any case of letters, and checks them.

    The input is "observations" or "States". The policy is "logits", else "Priors": probabilities over all actions, of
    which search takes those of the legal actions, divided by their sum (if all of them are 0, each is as likely as
    another). "values" are [B] or [B, 1]. Other outputs are ignored. A model whose batch is fixed gets its rows in
    batches of that size, padded. Errors call it `model`.

    Raises:
        ModelError: a name is missing, or a shape or type is wrong.
    """
    inputs, outputs = session.get_inputs(), session.get_outputs()
    taken, given = ({item.name.lower(): item for item in items} for items in (inputs, outputs))
    kind = "logits" if "logits" in given else "priors"
    found: list[Any] = [taken.get("observations", taken.get("states")), given.get(kind), given.get("values")]
    if None in found or len(inputs) > 1:
        came = f"{[item.name for item in inputs]} to {[item.name for item in outputs]}"
        raise ModelError(f"{model} maps {came}, expected ['observations'] to ['logits', 'values']: rename them")
    observations, policy, values = found
    for item, ranks in ((observations, (4,)), (policy, (2,)), (values, (1, 2))):
        if item.type != "tensor(float)":
            raise ModelError(f"{model}: {item.name} is {item.type}, expected tensor(float)")
        if len(item.shape) not in ranks:
            expected = " or ".join(map(str, ranks))
            raise ModelError(f"{model}: {item.name} has shape {item.shape}, expected {expected} dimensions")
    num_values = values.shape[1] if len(values.shape) == 2 else 1
    if num_values not in range(1, _MOST_PLAYERS + 1):
        raise ModelError(f"{model}: {values.name} has shape {values.shape}, expected one value a row, or one a player")
    batches = [item.shape[0] if isinstance(item.shape[0], int) else None for item in found]
    batch = batches[0]
    if any(other not in (batch, None) for other in batches) or (batch is not None and batch < 1):
        raise ModelError(
            f"{model}: input, policy and values have batch sizes {batches}, expected the same size, or a free one"
        )
    sizes = [*observations.shape[1:], policy.shape[1]]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ModelError(
            f"{model}: only the batch may be free, got {observations.name} [B, {sizes[:3]}], {policy.name} {sizes[3:]}"
        )
    return Signature(observations.name, policy.name, values.name, kind, tuple(sizes[:3]), sizes[3], num_values, batch)


def logits_of_priors(priors: NDArray[np.float32], what: str) -> NDArray[np.float32]:
    """Logits whose softmax over any set of actions is their priors divided by the sum of these.

    A prior of 0 counts as the smallest normal float32, 1.2e-38: next to any other it is 0 again, and where all of a set
    are 0 the softmax is even.

    Args:
        priors: [B, A] float32, at least 0.
        what: where they come from, for errors.

    Returns:
        [B, A] float32, all finite; NaN stays NaN.

    Raises:
        ModelError: a prior below 0.

    Example:
        >>> priors = np.array([[0.5, 0.25, 0.0, 0.25]], np.float32)
        >>> weights = np.exp(logits_of_priors(priors, "a model"))[0, 1:]  # the first action is not legal
        >>> (weights / weights.sum()).round(3).tolist()
        [0.5, 0.0, 0.5]
    """
    if (priors < 0).any():
        raise ModelError(
            f"{what} has a prior of {priors.min():g}, expected at least 0; name the output 'logits' if it holds logits"
        )
    return np.log(np.maximum(priors, _LEAST_PRIOR))


class _Runner:
    """A session, which any number of threads may run. It takes the caller's memory, and answers in memory of its own.

    `buckets` are batch sizes, ascending: each batch is padded to one of them. None: batches of any size.
    """

    def __init__(self, session: Any, signature: Signature, buckets: Sequence[int] | None) -> None:
        self._session, self._signature, self._buckets = session, signature, buckets

    def run(self, observations: NDArray[np.float32]) -> Answer:
        """Policy [B, A] and values [B] or [B, P] of any number of rows."""
        names, input_ = [self._signature.policy, self._signature.value], self._signature.input
        if self._buckets is None:
            policy, values = self._session.run(names, {input_: observations})
        else:
            parts = []
            for begin, end, rows in chunks(len(observations), self._buckets):
                padded = np.zeros((rows, *observations.shape[1:]), np.float32)
                padded[: end - begin] = observations[begin:end]
                parts.append([each[: end - begin] for each in self._session.run(names, {input_: padded})])
            policy, values = map(np.concatenate, zip(*parts, strict=True))
        return policy, values.reshape(-1) if self._signature.num_values == 1 else values


def _on_device(
    ort: Any,
    data: bytes,
    device: Device,
    providers: list[tuple[str, dict[str, str]]],
    signature: Signature,
    buckets: Sequence[int] | None,
) -> _Runner:
    """A session on another device than the CPU, with each bucket prepared."""
    runner = _Runner(open_on_device(ort, data, device, providers), signature, buckets)
    try:
        for rows in buckets or (1,):  # the first run of a shape prepares it
            runner.run(np.zeros((rows, *signature.obs_shape), np.float32))
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise DeviceError(f"{device.title} cannot run the model: {first_line(error)}") from error
    return runner


def network_id(model: bytes, precision: str = "fp32") -> int:
    """The nonzero 64-bit number by which searches, caches and game records tell models apart.

    A hash of the bytes; and of the precision where that is not theirs, for the answers are others then.
    """
    person = b"" if precision == "fp32" else precision.encode()
    return int.from_bytes(hashlib.blake2b(model, digest_size=8, person=person).digest(), "little") or 1


def model_bytes(model: str | os.PathLike[str] | bytes) -> tuple[str, bytes]:
    """A model's name for people, and its bytes; `model` is as `OnnxEvaluator` takes it.

    Raises:
        ModelError: it cannot be read.
    """
    if isinstance(model, bytes):
        return "model", model
    path = Path(model)
    try:
        if path.is_dir():
            folder = checkpoint_at(path)
            return str(folder), read_model(folder)
        return str(path), path.read_bytes()
    except (RunError, OSError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise ModelError(f"model {path} cannot be read: {why}") from error
