"""A session on a GPU: fixed shapes at fixed addresses, memory that is kept from batch to batch, recorded graphs.

A batch is copied into memory on the device that was bound once for each of a few sizes (buckets), run, and its answers
are copied back into memory of the calling thread. Behind the rows of a batch lies what earlier ones left: it is
computed too, and not looked at. Knows nothing of how sessions are opened.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy.devices import chunks
from azpy.errors import DeviceError
from azpy.evaluators.compact import ACTIONS, BYTES, LEGAL, Form
from azpy.evaluators.pinned import Driver
from azpy.evaluators.protocol import first_line
from azpy.evaluators.signature import Signature

__all__ = ["OnGpu", "Turns", "open_driver"]

_Answer = tuple[NDArray[np.float32], NDArray[np.float32]]


class Turns:
    """Many at once, or one alone; who waits to be alone goes first. Whoever is inside already may enter again.

    While ONNX Runtime records a CUDA graph no other thread of the process may allocate or copy on a GPU: it records in
    CUDA's global mode, "for now with a single thread" (onnxruntime/core/providers/cuda/cuda_graph.cc, 2026). Recorded
    graphs may be replayed side by side, each in a session and stream of its own.
    """

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._inside = 0
        self._alone: int | None = None  # the thread that is
        self._waiting = 0  # to be alone
        self._to_free: list[Callable[[], object]] = []
        self._mine = threading.local()  # whether this thread is inside

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Beside others that share."""
        if getattr(self._mine, "inside", False):
            yield
            return
        with self._change:
            self._change.wait_for(lambda: self._alone is None and not self._waiting)
            self._inside += 1
        self._mine.inside = True
        try:
            yield
        finally:
            self._mine.inside = False
            with self._change:
                self._inside -= 1
                self._change.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """With nobody beside; not from inside of `shared`."""
        with self._change:
            self._waiting += 1
            try:
                self._change.wait_for(lambda: self._alone is None and not self._inside)
                self._alone = threading.get_ident()
            finally:
                self._waiting -= 1
                self._change.notify_all()
        self._mine.inside = True
        try:
            yield
        finally:
            self._mine.inside = False
            with self._change:
                self._alone = None
                to_free, self._to_free = self._to_free, []
                self._change.notify_all()
            for memory in to_free:
                self.free(memory)

    def free(self, memory: Callable[[], object]) -> None:
        """Calls what frees memory of a GPU: now, or, where another thread is alone, when that one is done.

        It waits for nobody: a garbage collection may run in any thread, also in one that is just waiting to be alone,
        or holds a lock that others inside wait for.
        """
        with self._change:
            if self._alone not in {None, threading.get_ident()}:
                self._to_free.append(memory)
                return
            self._inside += 1
        try:
            memory()
        finally:
            with self._change:
                self._inside -= 1
                self._change.notify_all()


_TURNS = Turns()


@cache
def _driver_of(index: int) -> Driver:
    return Driver(index, _TURNS.free)


def open_driver(index: int) -> tuple[Driver | None, str]:
    """The CUDA driver of a GPU, opened once, if it locks memory; or why not."""
    try:
        with _TURNS.shared():
            driver = _driver_of(index)
            driver.array((1,), np.uint8)
    except DeviceError as error:
        return None, str(error)
    return driver, ""


class OnGpu:
    """A session of its own, with memory on the device for each bucket.

    Args:
        ort: the onnxruntime module.
        open_session: opens another session of the same model.
        memory: (device type, index) of the memory, as ONNX Runtime names it.
        signature: the model's input and outputs.
        form: how batches travel; the model's graph has it.
        buckets: rows of the batches, ascending.
        cuda_graph: whether the session records graphs: then each bucket has a graph's number.
        driver: gives page-locked memory; None: batches go through pageable memory.

    Attributes:
        notes: why batches of some thread go through pageable memory although there is a driver; one line at most.

    Raises:
        DeviceError: the GPU cannot run the model.
    """

    def __init__(
        self,
        ort: Any,
        open_session: Callable[[], Any],
        memory: tuple[str, int],
        signature: Signature,
        form: Form,
        buckets: Sequence[int],
        cuda_graph: bool,
        driver: Driver | None,
    ) -> None:
        self._again = (ort, open_session, memory, signature, form, buckets, cuda_graph, driver)
        self._buckets = tuple(buckets)
        self._form, self._num_actions = form, signature.num_actions
        self._records = cuda_graph
        self._driver = driver
        self.notes: list[str] = []
        self._lock = threading.Lock()  # the device's memory holds one batch at a time
        self._thread = threading.local()  # its _Host, and whether it has recorded
        with _TURNS.shared():
            session = open_session()
        with _TURNS.alone() if cuda_graph else _TURNS.shared():
            try:
                self._lanes = {
                    rows: _Lane(ort, session, memory, rows, signature, form, number if cuda_graph else None)
                    for number, rows in enumerate(buckets, start=1)
                }
                self._prepare()
            except Exception as error:  # onnxruntime's exceptions share no base
                raise DeviceError(f"the GPU cannot run the model: {first_line(error)}") from error

    def __del__(self) -> None:
        # A session's end frees memory of the device, which would spoil another thread's recording.
        _TURNS.free(self.__dict__.clear)

    def _prepare(self) -> None:
        """The first run of a shape prepares it; where graphs are recorded, the first in each thread records it."""
        for lane in self._lanes.values():
            lane.prepare()
        self._thread.recorded = True

    def input_buffer(self, rows: int) -> NDArray[Any]:
        """Memory [rows, C', H, W] of this thread for its next batch, whose answers a later one overwrites."""
        return self._host(rows).lend(rows)

    def run(self, observations: NDArray[Any], actions: NDArray[np.int32] | None = None) -> _Answer:
        """Policy [B, A], or [B, L] of the given actions, and values [B] of any number of rows as they travel."""
        rows = len(observations)
        host = self._host(rows)
        with self._lock:
            if self._records and not getattr(self._thread, "recorded", False):
                with _TURNS.alone():
                    self._prepare()
            with _TURNS.shared():
                lent = host.take(observations, actions)
                policy = host.legal if actions is not None else host.policy()
                for begin, end, bucket in chunks(rows, self._buckets):
                    self._lanes[bucket].run(host, policy, begin, end)
        policy, values = policy[:rows], host.values[:rows]
        # Whoever asked for memory to fill reads the answer before the next batch; others may keep it.
        return (policy, values) if lent else (policy.copy(), values.copy())

    def _host(self, rows: int) -> "_Host":
        needed = max((begin + bucket for begin, _, bucket in chunks(rows, self._buckets)), default=1)
        host: _Host | None = getattr(self._thread, "host", None)
        if host is None or host.capacity < needed:
            with _TURNS.shared():
                self._thread.host = host = _Host(needed, self._form, self._num_actions, self._driver, self.notes)
        return host

    def fork(self) -> "OnGpu":
        """Another session of the same model."""
        return OnGpu(*self._again)


class _Host:
    """A thread's memory for batches and their answers.

    Attributes:
        capacity: rows that fit, with those of the last bucket.
        driver: copies to and from this memory, if it is page-locked.
        observations: [capacity, C', H, W].
        actions: [capacity, L] int32, where they go with a batch.
        legal: [capacity, L] float32, their logits.
        values: [capacity] float32.
    """

    def __init__(self, capacity: int, form: Form, num_actions: int, driver: Driver | None, notes: list[str]) -> None:
        self.capacity, self.driver = capacity, driver
        self._notes = notes
        width = form.legal_width or 0
        self.observations = self._array((capacity, *form.shape), form.dtype)
        self.actions = self._array((capacity, width), np.int32)
        self.legal = self._array((capacity, width), np.float32)
        self.values = self._array((capacity,), np.float32)
        self._policy_shape = (capacity, num_actions)
        self._policy: NDArray[np.float32] | None = None
        self._lent: NDArray[Any] | None = None

    def _array(self, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
        if self.driver is not None:
            try:
                return self.driver.array(shape, dtype)
            except DeviceError as error:  # as much is locked as may be: copies go the long way
                self.driver = None
                self._notes[:] = [f"batches travel through pageable memory: {error}"]
        return np.zeros(shape, dtype)

    def policy(self) -> NDArray[np.float32]:
        """[capacity, A] float32: made when all logits are asked for."""
        if self._policy is None:
            self._policy = self._array(self._policy_shape, np.float32)
        return self._policy

    def lend(self, rows: int) -> NDArray[Any]:
        self._lent = self.observations[:rows]
        return self._lent

    def take(self, observations: NDArray[Any], actions: NDArray[np.int32] | None) -> bool:
        """Has a batch in this memory; whether its observations were written there by whom the memory was lent."""
        lent = observations is self._lent
        if not lent:
            self.observations[: len(observations)] = observations
        if actions is not None:
            self.actions[: len(actions)] = actions
        return lent


class _Lane:
    """One bucket: memory on the device for its rows and answers, bound once."""

    def __init__(
        self,
        ort: Any,
        session: Any,
        memory: tuple[str, int],
        rows: int,
        signature: Signature,
        form: Form,
        graph: int | None,
    ) -> None:
        self._session, self._binding = session, session.io_binding()

        def bound(name: str, shape: tuple[int, ...], dtype: type[np.generic], *, output: bool) -> Any:
            value = ort.OrtValue.ortvalue_from_shape_and_type(shape, dtype, *memory)
            bind = self._binding.bind_ortvalue_output if output else self._binding.bind_ortvalue_input
            bind(name, value)
            return value

        name = signature.input if form.divisors is None else BYTES
        self._zeros = [np.zeros((rows, *form.shape), form.dtype)]
        self._inputs = [bound(name, (rows, *form.shape), form.dtype, output=False)]
        self._policy = bound(signature.policy, (rows, signature.num_actions), np.float32, output=True)
        self._values = bound(signature.value, (rows, 1) if signature.column else (rows,), np.float32, output=True)
        self._legal = None
        if form.legal_width is not None:
            self._zeros.append(np.zeros((rows, form.legal_width), np.int32))
            self._inputs.append(bound(ACTIONS, (rows, form.legal_width), np.int32, output=False))
            self._legal = bound(LEGAL, (rows, form.legal_width), np.float32, output=True)
        self._options = None
        if graph is not None:
            self._options = ort.RunOptions()
            self._options.add_run_config_entry("gpu_graph_id", str(graph))

    def prepare(self) -> None:
        # What lies behind the rows of a batch must be actions, so there is no moment without.
        for value, zeros in zip(self._inputs, self._zeros, strict=True):
            value.update_inplace(zeros)
        self._session.run_with_iobinding(self._binding, self._options)

    def run(self, host: _Host, policy: NDArray[np.float32], begin: int, end: int) -> None:
        """Evaluates rows, at most as many as the bucket has, into `policy` and `host.values`."""
        legal = policy is host.legal
        sources = [host.observations, host.actions] if legal else [host.observations]
        for value, source in zip(self._inputs, sources, strict=False):
            if host.driver is not None:
                host.driver.upload(value.data_ptr(), source[begin:end])
            else:
                value.update_inplace(source[begin : begin + len(self._zeros[0])])
        self._session.run_with_iobinding(self._binding, self._options)
        given: Any = self._legal if legal else self._policy
        for value, target in ((given, policy), (self._values, host.values)):
            if host.driver is not None:
                host.driver.download(target[begin:end], value.data_ptr())
            else:
                target[begin:end] = value.numpy()[: end - begin].reshape(target[begin:end].shape)
