"""An int8 twin of a model for the CPU.

ONNX Runtime's static quantization: convolutions in int8, with a scale for each output channel and scales of
activations measured on positions; matrices and the last layer of each head, where rounding shows most and costs least,
stay in fp32. Of a network without convolutions only the last layers do. `azpy/evaluators/drift.py` says
whether it may play.
Knows nothing of search or run folders.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.errors import ModelError, missing_to_train
from azpy.evaluators.drift import Drift, drift, held_out
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.protocol import Evaluator, first_line
from azpy.machine import cpu_flags

__all__ = ["LEAST_TIMES_AS_FAST", "calibration", "has_int8", "times_as_fast", "to_int8", "twin_of"]

# Instructions that multiply 8-bit integers and add into 32 bits. Without them ONNX Runtime adds two products in 16
# bits, which overflows unless weights have 7 bits (its documentation of quantization, "reduce_range").
_INT8_FLAGS = {"avx512_vnni", "avx_vnni", "amx_int8", "asimddp"}
_CALIBRATION_ROWS = 512
_ROWS_AT_ONCE = 128
LEAST_TIMES_AS_FAST = 1.1  # less is not worth what int8 changes
_TURNS = 15  # a tenth of a second for a net of 5x64 and batches of 128 rows in all
_MATRICES = {"Gemm", "MatMul"}
_LAYERS = _MATRICES | {"Conv"}


def has_int8() -> bool:
    """Whether this CPU has instructions that make int8 several times as fast as fp32."""
    return bool(_INT8_FLAGS & cpu_flags())


def twin_of(model: bytes, buffer: _core.ReplayBuffer, seed: int) -> tuple[bytes, Drift]:
    """The int8 twin of a model, calibrated on positions of games, and how far it is from the model on others of them.

    Args:
        model: an ONNX model in float32.
        buffer: games as the model plays them.
        seed: which positions are drawn.

    Raises:
        ModelError: the model cannot be quantized.
        MissingPackageError: the package onnx or onnxruntime is not installed.
    """
    fp32 = OnnxEvaluator(model)  # refuses a model that would read other files, before the quantizer reads it
    twin = to_int8(model, calibration(buffer, seed))
    return twin, drift(fp32, OnnxEvaluator(twin), *held_out(buffer, seed))


def calibration(buffer: _core.ReplayBuffer, seed: int) -> NDArray[np.float32]:
    """Positions of games for `to_int8`: observations [B, C, H, W], others for each seed."""
    observations, *_ = buffer.sample(_CALIBRATION_ROWS, seed=2 * seed)
    return observations


def times_as_fast(model: Evaluator, twin: Evaluator, observations: NDArray[np.float32]) -> float:
    """The model's time for a batch over that of the twin: medians of some turns, one after the other.

    Args:
        model: in fp32.
        twin: in int8.
        observations: [B, C, H, W] float32, as many rows as batches will have.
    """
    took: dict[str, list[float]] = {"model": [], "twin": []}
    for _ in range(_TURNS):
        for name, evaluator in (("model", model), ("twin", twin)):
            begin = time.perf_counter()
            evaluator.evaluate_batch(observations)
            took[name].append(time.perf_counter() - begin)
    return statistics.median(took["model"]) / statistics.median(took["twin"])


def to_int8(model: bytes, observations: NDArray[np.float32]) -> bytes:
    """The model with int8 convolutions, for this machine's CPU: the same bytes for the same arguments.

    Args:
        model: an ONNX model in float32, as `network.to_onnx` or another program makes it.
        observations: [B, C, H, W] float32, positions as they come up in games; a few hundred are enough.

    Raises:
        ModelError: the model cannot be quantized.
        MissingPackageError: the package onnx or onnxruntime is not installed.
    """
    try:
        import onnx
        from onnxruntime import quantization
        from onnxruntime.quantization.shape_inference import quant_pre_process
    except ImportError as error:
        raise missing_to_train(str(error.name)) from error

    class Positions(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self, name: str) -> None:
            self._batches: Iterator[dict[str, Any]] = iter(
                {name: observations[begin : begin + _ROWS_AT_ONCE]}
                for begin in range(0, len(observations), _ROWS_AT_ONCE)
            )

        def get_next(self) -> dict[str, Any] | None:
            return next(self._batches, None)

    try:
        with tempfile.TemporaryDirectory() as folder:
            plain, twin = Path(folder) / "fp32.onnx", Path(folder) / "int8.onnx"
            # Folds batch norm into the convolutions.
            quant_pre_process(onnx.load_from_string(model), plain, skip_symbolic_shape=True)
            graph = onnx.load(plain).graph
            weights = {initializer.name for initializer in graph.initializer}
            given = next(each.name for each in graph.input if each.name not in weights)
            exact = _last_layers(graph)
            if any(node.op_type == "Conv" for node in graph.node):
                exact |= {node.name for node in graph.node if node.op_type in _MATRICES}
            quantization.quantize_static(
                plain,
                twin,
                Positions(given),
                quant_format=quantization.QuantFormat.QDQ,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                per_channel=True,
                reduce_range=not has_int8(),
                nodes_to_exclude=sorted(exact),
            )
            return twin.read_bytes()
    except OSError as error:
        raise ModelError(
            f"the model cannot be quantized: {error.strerror or error}; it takes space in {tempfile.gettempdir()}"
        ) from error
    except Exception as error:  # neither package's exceptions share a base
        raise ModelError(f"the model cannot be quantized: {first_line(error)}") from error


def _last_layers(graph: Any) -> set[str]:
    """Names of the layers with weights whose results, moved and squashed at most, are the answers."""
    made_by = {output: node for node in graph.node for output in node.output}
    found, left = set[str](), [output.name for output in graph.output]
    while left:
        node = made_by.get(left.pop())
        if node is None:
            continue
        if node.op_type in _LAYERS:
            found.add(node.name)
        else:
            left += node.input
    return found
