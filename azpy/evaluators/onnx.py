"""An evaluator that runs an ONNX model with ONNX Runtime, on the CPU or a GPU.

A model takes `observations` [B, C, H, W] float32 and gives raw `logits` [B, A] float32 and `values` [B] float32 in
[-1, 1] for the player to move. It is one file with its weights. Other names, priors as the policy and a fixed B are
possible (`azpy/evaluators/signature.py`). A model is checked before it answers. A device that is asked for by name is
used or refused, never replaced.
"""

import copy
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.devices import (
    BUCKETS,
    Device,
    check_precision,
    chunks,
    default_cache_dir,
    parse_devices,
    provider_options,
)
from azpy.errors import DeviceError, MissingPackageError, ModelError, RunError, SettingsError
from azpy.evaluators.compact import ACTIONS, BYTES, LEGAL, Compact, compact_of, with_compact
from azpy.evaluators.fp16 import to_fp16
from azpy.evaluators.protocol import Answer, CheckedEvaluator, GameShape, first_line
from azpy.evaluators.sessions import import_onnxruntime, open_on_cpu, open_on_gpu
from azpy.evaluators.signature import Signature, logits_of_priors, read_signature
from azpy.games.names import make_position
from azpy.runs.reader import checkpoint_at, read_model

__all__ = ["OnnxEvaluator", "import_onnxruntime", "model_bytes", "network_id"]

# Half precision sums to 1 as closely as this.
_PRIORS_ERROR = 0.01


class OnnxEvaluator(CheckedEvaluator):
    """Answers batches of observations from an ONNX model on one device.

    Args:
        model: path of the model file, of a checkpoint's folder or of a run folder, which stands for its newest
            checkpoint; or the model's bytes, which the evaluator keeps as long as it lives, for `pickle`.
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
        compact: send planes as bytes and take back logits of the legal actions alone (azpy/evaluators/compact.py). If
            not given: on a GPU, as far as `game` says that it can be and is worth it, and the package onnx is there.
            True: on any device, as far as it can be. `evaluate_batch` then takes only observations that the game can
            have. Never in a subclass with an `evaluate_batch` of its own, which is asked for everything.
        batch: rows of the largest batches to come on the CPU; `row_exact` compares rows in batches of this size.
        policy_kind: "logits", or "priors": probabilities over all actions, of which search takes those of the legal
            actions, divided by their sum (if all of them are 0, each is as likely as another). If not given, the
            policy's name says it.

    A model whose batch is fixed gets its rows in batches of that size, padded; `buckets` do not count then.

    Attributes:
        network_id: nonzero 64-bit hash of the model's bytes, and of the precision if that is not fp32.
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
        self._given = {name: value for name, value in locals().items() if name not in {"self", "model"}}
        if not 1 <= threads <= _core.MOST_THREADS:
            raise SettingsError(f"threads must be at least 1, at most {_core.MOST_THREADS}; got {threads}")
        if not buckets or list(buckets) != sorted(set(buckets)) or buckets[0] < 1:
            raise SettingsError(f"buckets must be ascending numbers of rows, got {list(buckets)}")
        devices = parse_devices(device)
        for candidate in devices:
            check_precision(candidate, precision)
        if type(self).evaluate_batch is not OnnxEvaluator.evaluate_batch:
            compact = False  # a search would go past it, by evaluate_legal
        shape: GameShape | None = make_position(game) if isinstance(game, str) else game
        self.name, data = model_bytes(model)
        self._source = model if isinstance(model, bytes) else Path(self.name).absolute()
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
        self._open: Callable[[], _Runner] | None = None  # opens another session on a GPU
        for candidate in devices:
            if candidate.kind == "cpu":
                self._compact = compact_of(shape, self.signature, compact or False)
                if self._compact != Compact(self.obs_shape):
                    on_cpu = open_on_cpu(ort, with_compact(data, self.signature, self._compact), threads, self.name)
                self._runner = _Runner(on_cpu, self.signature, self._compact, None if fixed is None else buckets)
                kind = "int8" if b"DequantizeLinear" in data else "fp32"
                rows = "" if fixed is None else f" of {fixed} rows"
                said = f"CPU, {kind}, {threads} {'thread' if threads == 1 else 'threads'} a batch{rows}"
                break
            try:
                opened = self._on_gpu(ort, data, candidate, precision, buckets, cache, shape, compact, notes)
                self._runner, self._open = opened(), opened
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
        if self.signature.kind == "priors":
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
    ) -> "Callable[[], _Runner]":
        """Decides how batches travel to a GPU; returns what opens a session there."""
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
        self._compact = chosen

        def opened() -> _Runner:
            runner = _Runner(open_on_gpu(ort, data, device, providers), signature, chosen, buckets)
            try:
                for rows in buckets:  # the first run of a shape prepares it
                    runner.run(np.zeros((rows, *chosen.shape), chosen.dtype))
            except Exception as error:  # onnxruntime's exceptions share no base
                raise DeviceError(f"the GPU cannot run the model: {first_line(error)}") from error
            return runner

        return opened

    def input_buffer(self, rows: int) -> NDArray[Any] | None:
        """Memory for the observations of the next batch.

        Args:
            rows: B, of the batch.

        Returns:
            uint8 [B, C', H, W] where planes travel as bytes, else None: the caller uses its own memory.
        """
        return None if self._compact.divisors is None else np.empty((rows, *self._compact.shape), np.uint8)

    def evaluate_batch(self, observations: NDArray[Any]) -> Answer:
        """Answers as `Evaluator.evaluate_batch` says, also to what `input_buffer` gave, from several threads too.

        Raises:
            ModelError: observations of another shape than the network's or of another dtype, or, where planes travel as
                bytes, with numbers that the game's planes cannot have.
        """
        return self._evaluate(observations) if self._is_packed(observations) else super().evaluate_batch(observations)

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

    def _check_priors(self) -> None:
        """Refuses priors that are none: those of an empty board must sum to 1."""
        priors, _ = self._runner.run(np.zeros((1, *self._compact.shape), self._compact.dtype))
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

        On the CPU it shares the session, which is thread-safe there; on a GPU it opens a session, and so a stream, of
        its own.

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
        compact: how batches travel; the model's graph has it.
        buckets: rows of the batches that the session is given, ascending; None: as many as come.
    """

    def __init__(self, session: Any, signature: Signature, compact: Compact, buckets: Sequence[int] | None) -> None:
        self._session, self._signature, self._compact, self._buckets = session, signature, compact, buckets

    def run(self, observations: NDArray[Any], actions: NDArray[np.int32] | None = None) -> Answer:
        """Policy [B, A], or [B, L] of the given actions, and values [B] of any number of rows as they travel."""
        signature, compact = self._signature, self._compact
        feed = {signature.input if compact.divisors is None else BYTES: observations}
        if compact.legal_width is not None:
            nothing = np.zeros((len(observations), compact.legal_width), np.int32)
            feed[ACTIONS] = nothing if actions is None else actions
        names = [signature.policy if actions is None else LEGAL, signature.value]
        if self._buckets is None:
            policy, values = self._session.run(names, feed)
            return policy, values.reshape(-1)
        parts = []
        for begin, end, rows in chunks(len(observations), self._buckets):
            padded = {name: np.zeros((rows, *each.shape[1:]), each.dtype) for name, each in feed.items()}
            for name, each in feed.items():
                padded[name][: end - begin] = each[begin:end]
            policy, values = self._session.run(names, padded)
            parts.append((policy[: end - begin], values.reshape(-1)[: end - begin]))
        policies, all_values = zip(*parts, strict=True)
        return np.concatenate(policies), np.concatenate(all_values)


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
