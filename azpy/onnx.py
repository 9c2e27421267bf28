"""An evaluator that runs an ONNX model with ONNX Runtime, on the CPU or a GPU.

A model, trained by azpy or elsewhere, takes `observations` [B, C, H, W] float32 and gives `logits` [B, A] float32 (raw)
and `values` [B] float32 in [-1, 1] for the player to move; it is one file, weights included. Names may be others, the
policy may be priors, B may be fixed (`azpy/signature.py`). What is loaded is checked before it answers: names, ranks,
dtypes, the game's shapes, and some warm-up batches. A device that was asked for by name is used or refused, never
replaced. Knows nothing of torch, search or run folders.
"""

import contextlib
import copy
import hashlib
import io
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from azpy.errors import DeviceError, MissingPackageError, ModelError, SettingsError
from azpy.evaluator import CheckedEvaluator, first_line
from azpy.providers import (
    BUCKETS,
    Device,
    check_precision,
    chunks,
    default_cache_dir,
    driver_problem,
    library_problem,
    misplaced,
    parse_devices,
    provider_options,
    reinstall,
    remedy,
)
from azpy.signature import Signature, logits_of_priors, read_signature

__all__ = ["OnnxEvaluator", "import_onnxruntime", "network_id"]

# Making a session is not thread-safe and holds the GIL.
_SESSION_LOCK = threading.Lock()
# While one thread records a CUDA graph, others must not allocate or copy on a GPU: ONNX Runtime records in CUDA's
# global mode, "for now with a single thread" (onnxruntime/core/providers/cuda/cuda_graph.cc, 2026).
_GRAPH_LOCK = threading.Lock()

# Half precision sums to 1 as closely as this.
_PRIORS_ERROR = 0.01

_Answer = tuple[NDArray[np.float32], NDArray[np.float32]]


class _GameShape(Protocol):
    @property
    def num_actions(self) -> int: ...
    @property
    def obs_shape(self) -> tuple[int, int, int]: ...


class OnnxEvaluator(CheckedEvaluator):
    """Answers batches of observations from an ONNX model on one device.

    Args:
        model: path of the model file, or its bytes.
        device: "cpu"; "cuda", "cuda:1", "tensorrt" or "tensorrt:1" for a GPU, which is used or refused; or "auto": CUDA
            if it really loads, else the CPU, with the reason in `notes`.
        game: a `State`, or anything with `num_actions` and `obs_shape`; the model must fit it.
        threads: ONNX Runtime's own threads for one batch on the CPU. With 1, several pipelines may share one session.
        precision: "fp32"; on CUDA also "tf32"; on TensorRT also "fp16" and "bf16", and there even fp32 lets layers use
            TF32. Of anything but fp32 on the CPU or CUDA, look at what it changes before you trust it.
        buckets: rows that batches are padded to on a GPU, ascending; more rows are answered in several parts.
        cuda_graph: on CUDA, record each bucket's kernels once in each thread that calls, and replay them. Evaluators
            that do so take turns, as recording allows nothing beside it: forks do not overlap.
        cache_dir: where TensorRT keeps its engines, by default `~/.cache/azpy/tensorrt`. Each network gets files of its
            own; nothing is deleted.
        input: name of the model's one input. If not given: "observations" or "States", in any case of letters.
        policy: name of the output with the policy [B, A]. If not given: "logits", else "Priors".
        value: name of the output with the values [B] or [B, 1]. If not given: "values".
        policy_kind: "logits", or "priors": probabilities over all actions, of which search takes those of the legal
            actions, divided by their sum (if all of them are 0, each is as likely as another). If not given, the
            policy's name says it.

    A model whose batch is fixed gets its rows in batches of that size, padded; `buckets` do not count then.

    Attributes:
        network_id: nonzero 64-bit hash of the model's bytes: the search's cache tells networks apart by it.
        obs_shape: (C, H, W) the model was made for.
        num_actions: A, the number of logits in a row.
        signature: names and shapes of the model's input and outputs.
        row_exact: whether a row got the same bits in batches of different sizes when the model was loaded; if not,
            what a search finds depends on which positions share a batch.
        device: where it runs: "cpu", "cuda:0", ...
        description: provider, precision and batches, in one line.
        notes: why "auto" passed over a device, one line each.

    Raises:
        ModelError: the model is missing, damaged, of another form, or does not fit the game.
        DeviceError: the device was asked for by name and cannot be used.
        MissingPackageError: onnxruntime is not installed, or one without a GPU in it.
        SettingsError: no such device, or a precision that it does not have; or a policy of unknown kind.

    Example:
        >>> evaluator = OnnxEvaluator("runs/c4/checkpoints/000010/model.onnx", "cuda")  # doctest: +SKIP
        >>> logits, values = evaluator.evaluate_batch(observations)  # doctest: +SKIP
        >>> OnnxEvaluator("theirs.onnx", policy="p", value="v", policy_kind="priors")  # doctest: +SKIP
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes,
        device: str = "cpu",
        *,
        game: _GameShape | None = None,
        threads: int = 1,
        precision: str = "fp32",
        buckets: Sequence[int] = BUCKETS,
        cuda_graph: bool = False,
        cache_dir: str | os.PathLike[str] | None = None,
        input: str | None = None,  # noqa: A002 - what ONNX calls it
        policy: str | None = None,
        value: str | None = None,
        policy_kind: str | None = None,
    ) -> None:
        if threads < 1:
            raise SettingsError(f"threads must be at least 1, got {threads}")
        if not buckets or list(buckets) != sorted(set(buckets)) or buckets[0] < 1:
            raise SettingsError(f"buckets must be ascending numbers of rows, got {list(buckets)}")
        devices = parse_devices(device)
        for candidate in devices:
            check_precision(candidate, precision)
            if cuda_graph and candidate.kind != "cuda":
                raise SettingsError(f'cuda_graph needs device="cuda", got {device!r}')
        self.name = "model" if isinstance(model, bytes) else os.fspath(model)
        data = _read(model)
        self.network_id = network_id(data)
        ort = import_onnxruntime(devices[-1])
        # The CPU looks at every model first: what is wrong with a model is not blamed on a device.
        on_cpu = _open_on_cpu(ort, data, threads, self.name)
        named = {"input": input, "policy": policy, "value": value}
        self.signature = read_signature(on_cpu.get_inputs(), on_cpu.get_outputs(), self.name, named, policy_kind)
        self.obs_shape, self.num_actions = self.signature.obs_shape, self.signature.num_actions
        batch = self.signature.batch
        buckets = buckets if batch is None else (batch,)
        if game is not None:
            self._check_fits(game)
        cache = default_cache_dir() if cache_dir is None else Path(cache_dir)
        notes: list[str] = []
        for candidate in devices:
            if candidate.kind == "cpu":
                self._runner: _OnCpu | _OnGpu = _OnCpu(on_cpu, self.signature)
                kind = "int8" if b"DequantizeLinear" in data else "fp32"
                self.description = f"CPU, {kind}, {threads} {'thread' if threads == 1 else 'threads'} a batch"
                self.description += "" if batch is None else f" of {batch} rows"
                break
            providers = provider_options(
                candidate,
                precision,
                buckets,
                self.obs_shape,
                self.network_id,
                cache,
                ort.__version__,
                cuda_graph,
                self.signature.input,
            )
            open_session = partial(_open_on_gpu, ort, data, candidate, providers)
            memory = ("cuda", candidate.index)
            try:
                self._runner = _OnGpu(ort, open_session, memory, self.signature, buckets, cuda_graph)
            except (DeviceError, MissingPackageError) as error:
                if candidate is devices[-1]:
                    raise
                notes.append(str(error))
                continue
            graphs = ", CUDA graphs" if cuda_graph else ""
            rows = ", ".join(map(str, buckets))
            self.description = f"{candidate.title}, GPU {candidate.index}, {precision}, batches of {rows} rows{graphs}"
            break
        self.device = str(candidate)
        self.notes = tuple(notes)
        self._larger_batches = () if candidate.kind == "cpu" else buckets
        self._warm_up()
        self._check_priors()
        self.row_exact = self._probe_rows()

    def _evaluate(self, observations: NDArray[np.float32]) -> _Answer:
        policy, values = self._runner.run(observations)
        if self.signature.kind == "priors":
            policy = logits_of_priors(policy, f"{self.signature.policy} of {self.name}")
        return policy, values

    def _check_priors(self) -> None:
        """Refuses priors that are none: those of an empty board must sum to 1."""
        if self.signature.kind == "priors":
            priors, _ = self._runner.run(np.zeros((1, *self.obs_shape), np.float32))
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

    def __init__(self, session: Any, signature: Signature) -> None:
        self._session = session
        self._signature = signature

    def run(self, observations: NDArray[np.float32]) -> _Answer:
        """Policy [B, A] and values [B] of any number of rows."""
        batch = self._signature.batch
        if batch is None or batch == len(observations):
            return self._run(observations)
        policies = np.empty((len(observations), self._signature.num_actions), np.float32)
        values = np.empty(len(observations), np.float32)
        padded = np.zeros((batch, *self._signature.obs_shape), np.float32)
        for begin, end, _ in chunks(len(observations), (batch,)):
            padded[: end - begin] = observations[begin:end]
            answers = self._run(padded)
            policies[begin:end], values[begin:end] = (answer[: end - begin] for answer in answers)
        return policies, values

    def _run(self, observations: NDArray[np.float32]) -> _Answer:
        # A plain run binds the caller's memory without a copy. IO binding, bound anew each batch as the memory
        # changes, costs more: 5.9 us against 3.7 us of overhead a call (November 2026, ONNX Runtime 1.31).
        signature = self._signature
        policy, values = self._session.run([signature.policy, signature.value], {signature.input: observations})
        return policy, values.reshape(-1)

    def fork(self) -> "_OnCpu":
        return self


class _OnGpu:
    """A session of its own, with memory on the device for each bucket: fixed shapes at fixed addresses.

    Args:
        ort: the onnxruntime module.
        open_session: opens another session of the same model.
        memory: (device type, index) of the memory, as ONNX Runtime names it.
        signature: the model's input and outputs.
        buckets: rows of the batches, ascending.
        cuda_graph: whether the session records graphs: then each bucket has a graph's number.
    """

    def __init__(
        self,
        ort: Any,
        open_session: Callable[[], Any],
        memory: tuple[str, int],
        signature: Signature,
        buckets: Sequence[int],
        cuda_graph: bool,
    ) -> None:
        self._again = (ort, open_session, memory, signature, buckets, cuda_graph)
        self._num_actions = signature.num_actions
        self._buckets = tuple(buckets)
        # The buckets' memory holds one batch at a time.
        self._lock = _GRAPH_LOCK if cuda_graph else threading.Lock()
        with self._lock:
            session = open_session()
            try:
                self._lanes = {
                    rows: _Lane(ort, session, memory, rows, signature, number if cuda_graph else None)
                    for number, rows in enumerate(buckets, start=1)
                }
                for lane in self._lanes.values():  # the first run of a shape prepares it
                    lane.prepare()
            except Exception as error:  # onnxruntime's exceptions share no base
                raise DeviceError(f"the GPU cannot run the model: {first_line(error)}") from error

    def run(self, observations: NDArray[np.float32]) -> _Answer:
        rows = len(observations)
        policies = np.empty((rows, self._num_actions), np.float32)
        values = np.empty(rows, np.float32)
        with self._lock:
            for begin, end, bucket in chunks(rows, self._buckets):
                self._lanes[bucket].run(observations[begin:end], policies[begin:end], values[begin:end])
        return policies, values

    def fork(self) -> "_OnGpu":
        return _OnGpu(*self._again)


class _Lane:
    """One bucket: memory on the device for its rows and answers, bound once."""

    def __init__(
        self,
        ort: Any,
        session: Any,
        memory: tuple[str, int],
        rows: int,
        signature: Signature,
        graph: int | None,
    ) -> None:
        def allocate(*shape: int) -> Any:
            return ort.OrtValue.ortvalue_from_shape_and_type(shape, np.float32, *memory)

        self._session = session
        self._padded = np.zeros((rows, *signature.obs_shape), np.float32)
        self._observations = allocate(rows, *signature.obs_shape)
        self._policies = allocate(rows, signature.num_actions)
        self._values = allocate(rows, 1) if signature.column else allocate(rows)
        self._binding = session.io_binding()
        self._binding.bind_ortvalue_input(signature.input, self._observations)
        self._binding.bind_ortvalue_output(signature.policy, self._policies)
        self._binding.bind_ortvalue_output(signature.value, self._values)
        self._options = None
        if graph is not None:
            self._options = ort.RunOptions()
            self._options.add_run_config_entry("gpu_graph_id", str(graph))

    def prepare(self) -> None:
        self._observations.update_inplace(self._padded)
        self._session.run_with_iobinding(self._binding, self._options)

    def run(
        self, observations: NDArray[np.float32], policies: NDArray[np.float32], values: NDArray[np.float32]
    ) -> None:
        """Evaluates at most as many rows as the bucket has, into `policies` and `values`."""
        rows = len(observations)
        # What earlier batches left in the rows behind these is computed too, and not looked at.
        self._padded[:rows] = observations
        self._observations.update_inplace(self._padded)
        self._session.run_with_iobinding(self._binding, self._options)
        policies[:] = self._policies.numpy()[:rows]
        values[:] = self._values.numpy()[:rows].reshape(-1)


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


def import_onnxruntime(device: Device) -> Any:
    """The module onnxruntime.

    Raises:
        MissingPackageError: it is not installed, does not load or is damaged; the text says what to install for the
            device.
    """
    try:
        with warnings.catch_warnings():
            # A build for GPUs warns that libraries are missing which are only looked for later.
            warnings.simplefilter("ignore")
            import onnxruntime
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "onnxruntime":
            raise MissingPackageError(f'onnxruntime is not installed: pip install "azpy[{device.kind}]"') from error
        raise MissingPackageError(f"onnxruntime does not load: {first_line(error)}; {reinstall(device)}") from error
    if not hasattr(onnxruntime, "InferenceSession"):  # what is left when one of two packages in one folder is removed
        raise MissingPackageError(f"onnxruntime is damaged: {reinstall(device)}")
    return onnxruntime


def _session_options(ort: Any, threads: int) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors come as exceptions; nothing is printed beside them
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # spinning starves the search's threads
    # Weights in a second file would be looked for in the current folder, and two models with other weights could have
    # one network_id: they are looked for where nothing can be.
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", f"{os.devnull}/none")
    return options


def _open_on_cpu(ort: Any, data: bytes, threads: int, name: str) -> Any:
    with _SESSION_LOCK:
        try:
            return ort.InferenceSession(data, _session_options(ort, threads), providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions share no base
            if "External data path" in str(error):
                raise ModelError(
                    f"{name} keeps its weights in another file, expected one file: torch.onnx.export(..., "
                    "external_data=False) writes one"
                ) from error
            raise ModelError(f"{name} is no usable ONNX model: {first_line(error)}") from error


def _open_on_gpu(ort: Any, data: bytes, device: Device, providers: list[tuple[str, dict[str, str]]]) -> Any:
    """A session on exactly this device.

    ONNX Runtime falls back to the CPU in silence, whatever its list of available providers says. With
    `session.disable_cpu_ep_fallback` it refuses, but also where a GPU provider leaves the arithmetic of shapes to
    the CPU on purpose. So if it refuses, another session is asked which node went where.

    Raises:
        DeviceError: the provider does not load, or does not take the model.
        MissingPackageError: this onnxruntime has no such provider.
    """
    missing = _preload(ort)
    if device.provider not in ort.get_available_providers():
        driver = driver_problem(device.index)
        if driver is not None:  # no package helps where there is no driver
            raise DeviceError(f"{device.title} cannot be used: {driver}")
        why = missing or "ONNX Runtime does not offer it"
        raise MissingPackageError(f"{device.title} cannot be used: {why}; {remedy(device)}")
    if device.kind == "tensorrt":
        folder = Path(providers[0][1]["trt_engine_cache_path"])
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DeviceError(f"TensorRT cannot keep its engines in {folder}: {error.strerror or error}") from error

    def open_session(**config: str) -> Any:
        options = _session_options(ort, 1)
        for key, value in config.items():
            options.add_session_config_entry(f"session.{key}", value)
        # No fallback of the Python side either, neither now nor when a run fails.
        return ort.InferenceSession(data, options, providers=providers, enable_fallback=0)

    def refused(why: str, incomplete: bool = False) -> DeviceError:
        cause = driver_problem(device.index)
        if cause is None:
            library = library_problem(Path(ort.__file__ or ".").parent, device) or missing
            cause = f"{library or why}; {remedy(device)}" if library or incomplete else why
        return DeviceError(f"{device.title} cannot be used: {cause}")

    with _SESSION_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            session = open_session(disable_cpu_ep_fallback="1", record_ep_graph_assignment_info="1")
            strict = ""
        except Exception as error:  # onnxruntime's exceptions share no base
            strict = first_line(error)
        try:
            if strict:
                session = open_session(record_ep_graph_assignment_info="1")
            nodes = _nodes_by_provider(session)
        except Exception as error:
            raise refused(first_line(error)) from error
        if session.get_providers()[0] != device.provider:
            raise refused("ONNX Runtime fell back to another provider", incomplete=True)
        # An ONNX Runtime too old to say which node went where has only its refusal to offer.
        why = (misplaced(nodes, device) if nodes else strict) or ""
        if why:
            raise DeviceError(f"{device.title} cannot be used: {why}")
    return session


def _nodes_by_provider(session: Any) -> dict[str, list[str]]:
    """Operators that each provider was given; empty where ONNX Runtime is too old to say so."""
    nodes: dict[str, list[str]] = {}
    if hasattr(session, "get_provider_graph_assignment_info"):
        for part in session.get_provider_graph_assignment_info():
            nodes.setdefault(part.ep_name, []).extend(node.op_type for node in part.get_nodes())
    return nodes


@cache
def _preload(ort: Any) -> str:
    """Loads CUDA's libraries from where pip put them, once, before a provider looks for them.

    Returns:
        The first that was missing, in a line, or nothing.
    """
    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ort.preload_dlls()
    failed = [line for line in said.getvalue().splitlines() if line.startswith("Failed")]
    return failed[0] if failed else ""
