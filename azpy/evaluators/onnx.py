"""An evaluator that runs an ONNX model with ONNX Runtime, on the CPU or a GPU.

A model takes `observations` [B, C, H, W] float32 and gives raw `logits` [B, A] float32 and `values` [B] float32 in
[-1, 1] for the player to move. It is one file with its weights. Other names, priors as the policy and a fixed B are
possible (`azpy/evaluators/signature.py`). A model is checked before it answers. A device that is asked for by name is
used or refused, never replaced.
"""

import copy
import hashlib
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.devices import (
    BUCKETS,
    OWN,
    Device,
    check_precision,
    chunks,
    default_cache_dir,
    provider_options,
)
from azpy.errors import DeviceError, MissingPackageError, ModelError, RunError, SettingsError
from azpy.evaluators.protocol import Answer, CheckedEvaluator, GameShape, first_line, rate
from azpy.evaluators.sessions import import_onnxruntime, open_on_cpu, open_on_gpu
from azpy.evaluators.signature import Signature, logits_of_priors, read_signature
from azpy.games.names import make_game
from azpy.runs.reader import checkpoint_at, read_model
from azpy.system import usable_cores

ANY_SIZE = b"policy.last.weight"  # in the bytes of a model of a network with +conv
# Half precision (TensorRT) sums to 1 as closely as this.
_PRIORS_ERROR = 0.01
_CPU_ROWS = 64


class OnnxEvaluator(CheckedEvaluator):
    """Answers batches of observations from an ONNX model on one device.

    Args:
        model: path of the model file, of a checkpoint's folder or of a run folder, which stands for its newest
            checkpoint; or the model's bytes, which the evaluator keeps as long as it lives, for `pickle`.
        device: "cpu"; "cuda", "cuda:1", "tensorrt", "tensorrt:1" or "webgpu" for a GPU, used or refused; or
            "auto": the first of CUDA and WebGPU that answers more rows/s of this network than all cores of the CPU,
            each in batches of `batch` rows; else the CPU. `notes` has the figures.
        game: a `State`, or anything with `num_actions` and `obs_shape`, or a game's name as `azpy.make_game` takes it;
            the model must fit it.
        threads: ONNX Runtime's own threads for one batch on the CPU. With 1, several pipelines may share one session.
        precision: "fp32"; on TensorRT also "fp16" (on CUDA `TorchEvaluator` has it). On CUDA and TensorRT even fp32
            lets layers use TF32. Measure what fp16 changes before you trust it (azpy/evaluators/drift.py).
        buckets: rows that batches are padded to on a GPU, ascending; more rows are answered in several parts.
        cache_dir: where TensorRT keeps its engines, by default `~/.cache/azpy/tensorrt`. Each network gets files of its
            own; nothing is deleted.
        input: name of the model's one input. If not given: "observations" or "States", in any case of letters.
        policy: name of the output with the policy [B, A]. If not given: "logits", else "Priors".
        value: name of the output with the values [B] or [B, 1]. If not given: "values".
        batch: rows of the largest batches to come: no bucket is prepared beyond the one that holds them. On the CPU
            `row_exact` compares rows in batches of this size. If not given: all buckets, and 64.
        policy_kind: "logits", or "priors": probabilities over all actions, of which search takes those of the legal
            actions, divided by their sum (if all of them are 0, each is as likely as another). If not given, the
            policy's name says it.

    A model whose batch is fixed gets its rows in batches of that size, padded; `buckets` do not count then.

    Attributes:
        network_id: nonzero 64-bit hash of the model's bytes, and of the precision if that is not fp32.
        obs_shape: (C, H, W) the model was made for.
        num_actions: A, the number of logits in a row.
        signature: names and shapes of the model's input and outputs.
        device: where it runs: "cpu", "cuda:0", ...
        description: provider, precision and batches, in one line.
        notes: why "auto" took or passed over a device; one line each.

    Raises:
        ModelError: the model is missing, damaged, of another form, or does not fit the game.
        DeviceError: the device was asked for by name and cannot be used.
        MissingPackageError: onnxruntime is not installed, or one without a GPU in it.
        SettingsError: no such device, or a precision that it does not have; or a policy of unknown kind; or no such
            game.

    Example:
        >>> evaluator = OnnxEvaluator("runs/c4", "cuda")  # doctest: +SKIP
        >>> logits, values = evaluator.evaluate_batch(observations)  # doctest: +SKIP
        >>> OnnxEvaluator("theirs.onnx", policy="p", value="v", policy_kind="priors")  # doctest: +SKIP
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
        input: str | None = None,  # noqa: A002 - what ONNX calls it
        policy: str | None = None,
        value: str | None = None,
        policy_kind: str | None = None,
        batch: int | None = None,
    ) -> None:
        self._given = {name: value for name, value in locals().items() if name not in {"self", "model"}}
        if not 1 <= threads <= _core.MOST_THREADS:
            raise SettingsError(f"threads must be at least 1, at most {_core.MOST_THREADS}; got {threads}")
        if not buckets or list(buckets) != sorted(set(buckets)) or buckets[0] < 1:
            raise SettingsError(f"buckets must be ascending numbers of rows, got {list(buckets)}")
        devices = Device.read(device).choices
        if devices[0].kind == OWN:
            raise SettingsError(f"device {OWN} is azpy.NetEvaluator's, which plays runs: give OnnxEvaluator another")
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
        self.network_id = network_id(data, precision)
        ort = import_onnxruntime(devices[-1])
        # The CPU looks at every model first: what is wrong with a model is not blamed on a device.
        on_cpu = open_on_cpu(ort, data, threads, self.name)
        named = {"input": input, "policy": policy, "value": value}
        self.signature = read_signature(on_cpu.get_inputs(), on_cpu.get_outputs(), self.name, named, policy_kind)
        self.obs_shape, self.num_actions = self.signature.obs_shape, self.signature.num_actions
        self.num_values = self.signature.num_values
        fixed = self.signature.batch
        buckets = buckets if fixed is None else (fixed,)
        if batch is not None:
            buckets = buckets[: 1 + sum(rows < batch for rows in buckets)]
        batch = batch or _CPU_ROWS
        if shape is not None:
            way = "; azpy.learning.export.for_board writes an fp32 model with +conv for another size of its game"
            self._check_fits(shape, way if ANY_SIZE in data else "")
        cache = default_cache_dir() if cache_dir is None else Path(cache_dir)
        notes: list[str] = []
        self._open: Callable[[], _Runner] | None = None  # opens another session on a GPU
        cpu, on_cores = _Runner(on_cpu, self.signature, None if fixed is None else buckets), 0.0
        for candidate in devices:
            if len(devices) > 1 and candidate.plugin and not importlib.util.find_spec(candidate.plugin):
                continue  # nobody who left it out need be told
            if candidate.kind == "cpu":
                self._runner, self._batches = cpu, (batch,)
                kind = "int8" if b"DequantizeLinear" in data else "fp32"
                rows = "" if fixed is None else f" of {fixed} rows"
                said = f"CPU, {kind}, {threads} {'thread' if threads == 1 else 'threads'} a batch{rows}"
                break
            try:
                opened = self._on_gpu(ort, data, candidate, precision, buckets, cache)
                runner = opened()
            except (DeviceError, MissingPackageError) as error:
                if candidate is devices[-1]:
                    raise
                notes.append(str(error))
                continue
            if len(devices) > 1:
                on_cores = on_cores or rate([cpu.run], batch, self.obs_shape) * max(1, usable_cores() // threads)
                on_gpu = rate([runner.run], batch, self.obs_shape)
                found = f"{candidate.title} answers {on_gpu:,.0f} rows/s of this network, the CPU {on_cores:,.0f}"
                notes.append(f"{found}, in batches of {batch}")
                if on_gpu <= on_cores:
                    continue
            self._runner, self._batches = runner, buckets
            self._open = None if candidate.kind == "webgpu" else opened  # its sessions run one at a time
            gpu = f", GPU {candidate.index}" if ":" in str(candidate) else ""
            said = f"{candidate.title}{gpu}, {precision}, batches of {', '.join(map(str, buckets))} rows"
            break
        self.description, self.device, self.notes = said, str(candidate), tuple(notes)
        self._warm_up()
        if self.signature.kind == "priors":
            self._check_priors()

    def _on_gpu(
        self, ort: Any, data: bytes, device: Device, precision: str, buckets: Sequence[int], cache_dir: Path
    ) -> "Callable[[], _Runner]":
        """What opens a session on a GPU."""
        providers = list[tuple[str, dict[str, str]]]()
        if not device.plugin:
            inputs = {self.signature.input: self.obs_shape}
            providers = provider_options(device, self.network_id, inputs, buckets, cache_dir, precision)
        if device.kind == "tensorrt":
            try:
                cache_dir.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                why = error.strerror or error
                raise DeviceError(f"TensorRT cannot keep its engines in {cache_dir}: {why}") from error

        signature = self.signature  # a fork does not keep the evaluator that it comes from

        def opened() -> _Runner:
            runner = _Runner(open_on_gpu(ort, data, device, providers), signature, buckets)
            try:
                for rows in buckets:  # the first run of a shape prepares it
                    runner.run(np.zeros((rows, *signature.obs_shape), np.float32))
            except Exception as error:  # onnxruntime's exceptions share no base
                raise DeviceError(f"{device.title} cannot run the model: {first_line(error)}") from error
            return runner

        return opened

    def _evaluate(self, observations: NDArray[np.float32]) -> Answer:
        policy, values = self._runner.run(observations)
        if self.signature.kind == "priors":
            policy = logits_of_priors(policy, f"{self.signature.policy} of {self.name}")
        return policy, values

    def _check_priors(self) -> None:
        """Refuses priors that are none: those of an empty board must sum to 1."""
        priors, _ = self._runner.run(np.zeros((1, *self.obs_shape), np.float32))
        if abs(float(priors.sum()) - 1) > _PRIORS_ERROR:
            raise ModelError(
                f"{self.name}: {self.signature.policy} of an empty board sum to {priors.sum():g}, expected "
                'probabilities that sum to 1: logits need policy_kind="logits"'
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the path of the model's file or checkpoint, or the bytes that were given, and the arguments.

        The model is opened anew there, on the device of the same name.

        Raises:
            TypeError: in a subclass, whose arguments are not known here.
        """
        if type(self) is not OnnxEvaluator:
            name = type(self).__name__
            raise TypeError(f"{name} cannot be pickled: a subclass of OnnxEvaluator needs a __reduce__ of its own")
        return _opened_again, (self._source, self._given, self.network_id)

    def __copy__(self) -> Self:
        """Another evaluator with the same session."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def fork(self) -> Self:
        """An evaluator for another pipeline's thread.

        On the CPU and on WebGPU it shares the session; on other GPUs it opens a session, and so a stream, of its own.

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
        raise ModelError(f"{evaluator.name} has another network by now than the one whose evaluator was pickled")
    return evaluator


class _Runner:
    """A session, which any number of threads may run.

    Args:
        session: of ONNX Runtime; it takes the caller's memory, and answers in memory of its own.
        signature: the model's input and outputs.
        buckets: rows of the batches that the session is given, ascending; None: as many as come.
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
