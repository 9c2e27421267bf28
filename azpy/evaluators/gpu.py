"""A session on a GPU, with memory on the device that is bound once for each of a few batch sizes (buckets).

A batch is padded to the next bucket. The rows behind it are computed too, and not looked at. This module does not open
sessions itself.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy.devices import chunks
from azpy.errors import DeviceError
from azpy.evaluators.compact import ACTIONS, BYTES, LEGAL, Compact
from azpy.evaluators.protocol import first_line
from azpy.evaluators.signature import Signature

__all__ = ["Answer", "OnGpu", "in_buckets"]

Answer = tuple[NDArray[np.float32], NDArray[np.float32]]


class OnGpu:
    """A session of its own, with memory on the device for each bucket.

    Args:
        ort: the onnxruntime module.
        open_session: opens another session of the same model.
        memory: (device type, index) of the memory, as ONNX Runtime names it.
        signature: the model's input and outputs.
        compact: how batches travel; the model's graph has it.
        buckets: rows of the batches, ascending.

    Raises:
        DeviceError: the GPU cannot run the model.
    """

    def __init__(
        self,
        ort: Any,
        open_session: Callable[[], Any],
        memory: tuple[str, int],
        signature: Signature,
        compact: Compact,
        buckets: Sequence[int],
    ) -> None:
        self._again = (ort, open_session, memory, signature, compact, buckets)
        self._buckets = tuple(buckets)
        self._lock = threading.Lock()  # the device's memory holds one batch at a time
        self._session = open_session()
        width = compact.legal_width or 0
        observations = signature.input if compact.divisors is None else BYTES
        inputs: dict[str, tuple[tuple[int, ...], Any]] = {observations: (compact.shape, compact.dtype)}
        outputs: dict[str, tuple[int, ...]] = {signature.policy: (signature.num_actions,)}
        outputs[signature.value] = (1,) if signature.column else ()
        if width:
            inputs[ACTIONS], outputs[LEGAL] = ((width,), np.int32), (width,)
        self._outputs = (signature.policy, LEGAL, signature.value)
        self._lanes: dict[int, tuple[Any, dict[str, Any], dict[str, Any]]] = {}  # binding, inputs and outputs

        def bound(bind: Callable[[str, Any], None], name: str, shape: tuple[int, ...], dtype: Any) -> Any:
            value = ort.OrtValue.ortvalue_from_shape_and_type(shape, dtype, *memory)
            bind(name, value)
            return value

        try:
            for rows in buckets:
                binding = self._session.io_binding()
                given = {
                    name: bound(binding.bind_ortvalue_input, name, (rows, *shape), dtype)
                    for name, (shape, dtype) in inputs.items()
                }
                answers = {
                    name: bound(binding.bind_ortvalue_output, name, (rows, *shape), np.float32)
                    for name, shape in outputs.items()
                }
                self._lanes[rows] = binding, given, answers
                # The first run of a shape prepares it. Zeros are actions too.
                self._run(rows, [np.zeros((rows, *shape), dtype) for shape, dtype in inputs.values()])
        except Exception as error:  # onnxruntime's exceptions share no base
            raise DeviceError(f"the GPU cannot run the model: {first_line(error)}") from error

    def run(self, observations: NDArray[Any], actions: NDArray[np.int32] | None = None) -> Answer:
        """Policy [B, A], or [B, L] of the given actions, and values [B] of any number of rows as they travel."""
        with self._lock:
            return in_buckets(self._run, [observations] if actions is None else [observations, actions], self._buckets)

    def _run(self, rows: int, inputs: Sequence[NDArray[Any]]) -> Answer:
        binding, given, answers = self._lanes[rows]
        for value, array in zip(given.values(), inputs, strict=False):
            value.update_inplace(array)
        self._session.run_with_iobinding(binding)
        policy, legal, values = self._outputs
        return answers[policy if len(inputs) == 1 else legal].numpy(), answers[values].numpy().reshape(-1)

    def fork(self) -> "OnGpu":
        """Another session of the same model."""
        return OnGpu(*self._again)


def in_buckets(
    run: Callable[[int, list[NDArray[Any]]], Answer], inputs: Sequence[NDArray[Any]], buckets: Sequence[int]
) -> Answer:
    """The answers to any number of rows, by batches of a few sizes, padded with zeros.

    Args:
        run: answers one batch; called with its rows and inputs.
        inputs: of all rows, [B, ...] each.
        buckets: rows of the batches, ascending.
    """
    policies, values = [], []
    for begin, end, rows in chunks(len(inputs[0]), buckets):
        padded = [np.zeros((rows, *each.shape[1:]), each.dtype) for each in inputs]
        for whole, each in zip(padded, inputs, strict=True):
            whole[: end - begin] = each[begin:end]
        policy, value = run(rows, padded)
        policies.append(policy[: end - begin].copy())  # the next part may be answered in the same memory
        values.append(value[: end - begin].copy())
    return np.concatenate(policies), np.concatenate(values)
