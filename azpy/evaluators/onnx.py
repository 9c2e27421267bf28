"""An evaluator that runs an ONNX model with ONNX Runtime, on the CPU or a GPU.

A model takes `observations` [B, C, H, W] float32 and gives raw `logits` [B, A] float32 and `values` [B] float32 in
[-1, 1] for the player to move. It is one file with its weights. Other names, priors as the policy and a fixed B are
possible (`azpy/evaluators/signature.py`). A model is checked before it answers. A device that is asked for by name is
used or refused, never replaced.
"""

import copy
import hashlib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from azpy.devices import (
    BUCKETS,
    Device,
    check_precision,
    default_cache_dir,
    parse_devices,
    provider_options,
)
from azpy.errors import DeviceError, MissingPackageError, ModelError, RunError, SettingsError
from azpy.evaluators.compact import ACTIONS, BYTES, LEGAL, Compact, compact_of, with_compact
from azpy.evaluators.fp16 import to_fp16
from azpy.evaluators.gpu import Answer, OnGpu, in_buckets
from azpy.evaluators.protocol import CheckedEvaluator, GameShape
from azpy.evaluators.sessions import import_onnxruntime, open_on_cpu, open_on_gpu
from azpy.evaluators.signature import Signature, logits_of_priors, read_signature
from azpy.games.names import make_position
from azpy.machine import MOST_THREADS
from azpy.runs.reader import checkpoint_at, read_model

__all__ = ["OnnxEvaluator", "import_onnxruntime", "network_id"]

# Half precision sums to 1 as closely as this.
_PRIORS_ERROR = 0.01


class OnnxEvaluator(CheckedEvaluator):
    """Answers batches of observations from an ONNX model on one device.

    Args:
        model: path of the model file, of a checkpoint's folder or of a run folder, which stands for its newest
            checkpoint; or the model's bytes.
        device: "cpu"; "cuda", "cuda:1", "tensorrt" or "tensorrt:1" for a GPU, which is used or refused; or "auto": CUDA
            if it really loads, else the CPU, with the reason in `notes`.
        game: a `State`, or anything with `num_actions` and `obs_shape`, or a game's name as `azpy.make_game` takes it;
            the model must fit it.
        threads: ONNX Runtime's own threads for one batch on the CPU. With 1, several pipelines may share one session.
        precision: "fp32"; on a GPU also "fp16", on CUDA "tf32", on TensorRT "bf16". On TensorRT even fp32 lets layers
            use TF32. For fp16 on CUDA the model is converted in memory, which needs the package onnx. Measure what a
            precision other than fp32 changes before you trust it (azpy/evaluators/drift.py).
        buckets: rows that batches are padded to on a GPU, ascending; more rows are answered in several parts.
        cache_dir: where TensorRT keeps its engines, by default `~/.cache/azpy/tensorrt`. Each network, and each way in
            which batches travel to it, gets files of its own; nothing is deleted.
        input: name of the model's one input. If not given: "observations" or "States", in any case of letters.
        policy: name of the output with the policy [B, A]. If not given: "logits", else "Priors".
        value: name of the output with the values [B] or [B, 1]. If not given: "values".
        compact: send planes as bytes and take back logits of the legal actions alone, the same to the bit on the CPU
            (azpy/evaluators/compact.py says what holds on others). If not given: on a GPU, as far as `game` says that
            it can be and is worth it, and the package onnx is there. True: on any device, as far as it can be.
            `evaluate_batch` then takes only observations that the game can have.
            Never in a subclass with an `evaluate_batch` of its own, which is asked for everything.
        batch: rows of the largest batches to come on the CPU; `row_exact` compares rows in batches of this size.
        policy_kind: "logits", or "priors": probabilities over all actions, of which search takes those of the legal
            actions, divided by their sum (if all of them are 0, each is as likely as another). If not given, the
            policy's name says it.

    A model whose batch is fixed gets its rows in batches of that size, padded; `buckets` do not count then.

    Attributes:
        network_id: nonzero 64-bit hash of the model's bytes, and of the precision if that is not fp32: the search's
            cache tells networks apart by it.
        obs_shape: (C, H, W) the model was made for.
        num_actions: A, the number of logits in a row.
        signature: names and shapes of the model's input and outputs.
        legal_width: how many legal actions of a row `evaluate_legal` takes; None where it is not worth it.
        device: where it runs: "cpu", "cuda:0", ...
        description: provider, precision and batches, in one line.
        notes: why "auto" passed over a device, or why batches travel the slower way; one line each.

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
        device: str = "cpu",
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
        compact: bool | None = None,
        batch: int = 64,
    ) -> None:
        if not 1 <= threads <= MOST_THREADS:
            raise SettingsError(f"threads must be at least 1, at most {MOST_THREADS}; got {threads}")
        if not buckets or list(buckets) != sorted(set(buckets)) or buckets[0] < 1:
            raise SettingsError(f"buckets must be ascending numbers of rows, got {list(buckets)}")
        devices = parse_devices(device)
        for candidate in devices:
            check_precision(candidate, precision)
        if type(self).evaluate_batch is not OnnxEvaluator.evaluate_batch:
            compact = False  # a search would go past it, by evaluate_legal
        shape: GameShape | None = make_position(game) if isinstance(game, str) else game
        self.name, data = _read(model)
        self.network_id = network_id(data, precision)
        ort = import_onnxruntime(devices[-1])
        # The CPU looks at every model first: what is wrong with a model is not blamed on a device.
        on_cpu = open_on_cpu(ort, data, threads, self.name)
        named = {"input": input, "policy": policy, "value": value}
        self.signature = read_signature(on_cpu.get_inputs(), on_cpu.get_outputs(), self.name, named, policy_kind)
        self.obs_shape, self.num_actions = self.signature.obs_shape, self.signature.num_actions
        fixed = self.signature.batch
        buckets = buckets if fixed is None else (fixed,)
        if shape is not None:
            self._check_fits(shape)
        cache = default_cache_dir() if cache_dir is None else Path(cache_dir)
        notes: list[str] = []
        for candidate in devices:
            if candidate.kind == "cpu":
                self._compact = compact_of(shape, self.signature, compact or False)
                if self._compact != Compact(self.obs_shape):
                    on_cpu = open_on_cpu(ort, with_compact(data, self.signature, self._compact), threads, self.name)
                self._runner: _OnCpu | OnGpu = _OnCpu(on_cpu, self.signature, self._compact)
                kind = "int8" if b"DequantizeLinear" in data else "fp32"
                rows = "" if fixed is None else f" of {fixed} rows"
                said = f"CPU, {kind}, {threads} {'thread' if threads == 1 else 'threads'} a batch{rows}"
                break
            try:
                self._runner, self._compact = self._on_gpu(
                    ort, data, candidate, precision, buckets, cache, shape, compact, notes
                )
            except (DeviceError, MissingPackageError) as error:
                if candidate is devices[-1]:
                    raise
                notes.append(str(error))
                continue
            rows = ", ".join(map(str, buckets))
            said = f"{candidate.title}, GPU {candidate.index}, {precision}, batches of {rows} rows"
            break
        self.legal_width = self._compact.legal_width
        self.description = ", ".join(filter(None, (said, str(self._compact))))
        self.device = str(candidate)
        self.notes = tuple(notes)
        self._batches = (batch,) if candidate.kind == "cpu" else buckets
        self._warm_up()
        self._check_priors()

    def _on_gpu(
        self,
        ort: Any,
        data: bytes,
        device: Device,
        precision: str,
        buckets: Sequence[int],
        cache_dir: Path,
        game: GameShape | None,
        compact: bool | None,
        notes: list[str],
    ) -> tuple[OnGpu, Compact]:
        """A session on a GPU with its memory, and how batches travel."""
        if device.kind == "cuda" and precision == "fp16":
            data = to_fp16(data)
        signature, chosen = self.signature, compact_of(game, self.signature, compact)
        try:
            data = data if chosen == Compact(self.obs_shape) else with_compact(data, signature, chosen)
        except (MissingPackageError, ModelError) as error:
            if compact:
                raise
            notes.append(f"batches travel as float32: {error}")
            chosen = Compact(self.obs_shape)
        inputs: dict[str, Sequence[int]] = {signature.input if chosen.divisors is None else BYTES: chosen.shape}
        inputs |= {} if chosen.legal_width is None else {ACTIONS: (chosen.legal_width,)}
        ids = self.network_id, network_id(data)
        providers = provider_options(device, precision, buckets, inputs, *ids, cache_dir, ort.__version__)
        open_session = partial(open_on_gpu, ort, data, device, providers)
        return OnGpu(ort, open_session, ("cuda", device.index), signature, chosen, buckets), chosen

    def input_buffer(self, rows: int) -> NDArray[Any] | None:
        """Memory for the observations of the next batch.

        Args:
            rows: B, of the batch.

        Returns:
            uint8 [B, C', H, W] where planes travel as bytes, else None: the caller uses its own memory.
        """
        return None if self._compact.divisors is None else np.empty((rows, *self._compact.shape), np.uint8)

    def evaluate_batch(self, observations: NDArray[Any]) -> Answer:
        """Evaluates one batch; safe to call from several threads.

        Args:
            observations: [B, C, H, W] float32, seen by the player to move; not kept. Or what `input_buffer` gave.

        Returns:
            Raw logits [B, A] float32, and values [B] float32 in [-1, 1] for the player to move.

        Raises:
            ModelError: observations of another shape than the network's or of another dtype, or, where planes travel as
                bytes, with numbers that the game's planes cannot have.
        """
        if self._is_packed(observations):
            return self._evaluate(observations)
        return super().evaluate_batch(observations)

    def evaluate_legal(self, observations: NDArray[Any], actions: NDArray[np.int32]) -> Answer:
        """As `evaluate_batch`, but for the logits of some actions alone; only where `legal_width` is a number.

        Args:
            observations: as `evaluate_batch` takes them.
            actions: [B, L] int32, each in [0, A), L = `legal_width`.

        Returns:
            Raw logits [B, L] float32 of these actions, and values [B] float32.

        Raises:
            ModelError: arrays of another shape or dtype.
        """
        if not self._is_packed(observations):
            self._check_observations(observations)
        if actions.shape != (len(observations), self.legal_width) or actions.dtype != np.int32:
            raise ModelError(
                f"{self.name} takes actions int32 {[len(observations), self.legal_width]}, got {actions.dtype} "
                f"{list(actions.shape)}"
            )
        return self._evaluate(observations, actions)

    def _is_packed(self, observations: NDArray[Any]) -> bool:
        """Whether these are bytes as they travel."""
        if self._compact.divisors is None or not isinstance(observations, np.ndarray):
            return False
        return observations.dtype == np.uint8 and observations.shape[1:] == self._compact.shape

    def _evaluate(self, observations: NDArray[Any], actions: NDArray[np.int32] | None = None) -> Answer:
        if self._compact.divisors is not None and not self._is_packed(observations):
            observations = self._compact.packed(observations)
        policy, values = self._runner.run(observations, actions)
        if self.signature.kind == "priors":
            policy = logits_of_priors(policy, f"{self.signature.policy} of {self.name}")
        return policy, values

    def _some_rows(self, count: int) -> NDArray[np.float32]:
        return self._compact.random(count, seed=0)

    def _check_priors(self) -> None:
        """Refuses priors that are none: those of an empty board must sum to 1."""
        if self.signature.kind == "priors":
            priors, _ = self._runner.run(np.zeros((1, *self._compact.shape), self._compact.dtype))
            if abs(float(priors.sum()) - 1) > _PRIORS_ERROR:
                raise ModelError(
                    f"{self.name}: {self.signature.policy} of an empty board sum to {priors.sum():g}, expected "
                    'probabilities that sum to 1: logits need policy_kind="logits"'
                )

    def fork(self) -> Self:
        """An evaluator for another pipeline's thread.

        On the CPU it shares the session, which is thread-safe there; on a GPU it opens a session, and so a stream, of
        its own.

        Raises:
            DeviceError: the GPU has no room for another session.
        """
        other = copy.copy(self)
        other._runner = self._runner.fork()
        return other

    def __repr__(self) -> str:
        return f"OnnxEvaluator({self.name!r}, {self.device!r}, network_id={self.network_id:#018x})"


class _OnCpu:
    """A session that any number of threads may call."""

    def __init__(self, session: Any, signature: Signature, compact: Compact) -> None:
        self._session, self._signature, self._compact = session, signature, compact

    def run(self, observations: NDArray[Any], actions: NDArray[np.int32] | None = None) -> Answer:
        """Policy [B, A], or [B, L] of the given actions, and values [B] of any number of rows as they travel."""
        inputs = [observations] if actions is None else [observations, actions]
        fixed = self._signature.batch
        return self._run(len(observations), inputs) if fixed is None else in_buckets(self._run, inputs, (fixed,))

    def _run(self, rows: int, inputs: Sequence[NDArray[Any]]) -> Answer:
        # A plain run binds the caller's memory without a copy. IO binding, bound anew each batch as the memory
        # changes, costs more: 5.9 us against 3.7 us of overhead a call (November 2026, ONNX Runtime 1.31).
        signature, compact = self._signature, self._compact
        feed = {signature.input if compact.divisors is None else BYTES: inputs[0]}
        if compact.legal_width is not None:
            feed[ACTIONS] = inputs[1] if len(inputs) > 1 else np.zeros((rows, compact.legal_width), np.int32)
        names = [signature.policy if len(inputs) == 1 else LEGAL, signature.value]
        policy, values = self._session.run(names, feed)
        return policy, values.reshape(-1)

    def fork(self) -> "_OnCpu":
        return self


def network_id(model: bytes, precision: str = "fp32") -> int:
    """The nonzero 64-bit number by which searches, caches and game records tell models apart.

    A hash of the bytes; and of the precision where that is not theirs, for the answers are others then.
    """
    person = b"" if precision == "fp32" else precision.encode()
    return int.from_bytes(hashlib.blake2b(model, digest_size=8, person=person).digest(), "little") or 1


def _read(model: str | os.PathLike[str] | bytes) -> tuple[str, bytes]:
    """The model's name for people, and its bytes."""
    if isinstance(model, bytes):
        return "model", model
    try:
        path = Path(model)
        if path.is_dir():
            folder = checkpoint_at(path)
            return str(folder), read_model(folder)
        return str(path), path.read_bytes()
    except RunError as error:
        raise ModelError(f"model {os.fspath(model)} cannot be read: {error}") from error
    except OSError as error:
        raise ModelError(f"model {os.fspath(model)} cannot be read: {error.strerror or error}") from error
