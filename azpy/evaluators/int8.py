"""An int8 model for the CPU, made from a float32 model.

It uses ONNX Runtime's static quantization. Convolutions are in int8, with a scale for each output channel and scales of
activations measured on positions. Matrices and the last layer of each head stay in float32: rounding them changes most
and saves least. In a network without convolutions only the last layers stay. Check the int8 model before it plays
(`azpy/evaluators/drift.py`).
"""

import statistics
import tempfile
from functools import partial
from pathlib import Path
from timeit import timeit
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.errors import ModelError, missing_to_train
from azpy.evaluators.drift import Drift, drift, rows_to_compare
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.protocol import Evaluator, first_line
from azpy.system import cpu_flags

# Instructions that multiply 8-bit integers and add into 32 bits. Without them ONNX Runtime adds two products in 16
# bits, which overflows unless weights have 7 bits (its documentation of quantization, "reduce_range").
_INT8_FLAGS = {"avx512_vnni", "avx_vnni", "amx_int8", "asimddp"}
_CALIBRATION_ROWS = 512
_ROWS_AT_ONCE = 128
LEAST_TIMES_AS_FAST = 1.1  # a smaller gain does not justify the changes of int8
_TURNS = 15  # a tenth of a second for a net of 5x64 and batches of 128 rows in all
_MATRICES = {"Gemm", "MatMul"}
_LAYERS = {"Conv", *_MATRICES}
# The value of win, draw and loss is made by the first two; ONNX Runtime has no int8 form of the norms, and warns.
_EXACT = {"Softmax", "Mul", "LayerNormalization", "BatchNormalization"}
# Means vary little from position to position, and a norm in a head enlarges what int8 rounded.
_EXACT |= {"GlobalAveragePool", "Concat"}


def int8_of(model: bytes, buffer: _core.ReplayBuffer, seed: int) -> tuple[bytes, Drift]:
    """`to_int8` of a model on positions of its games, others for each seed, and its drift on other positions."""
    fp32 = OnnxEvaluator(model)  # refuses a model that would read other files, before the quantizer reads it
    int8 = to_int8(model, calibration(buffer, seed))
    return int8, drift(fp32, OnnxEvaluator(int8), *rows_to_compare(buffer, seed))


def calibration(buffer: _core.ReplayBuffer, seed: int) -> NDArray[np.float32]:
    """Positions of games for `to_int8`: observations [B, C, H, W], others for each seed."""
    observations, *_ = buffer.sample(_CALIBRATION_ROWS, seed=2 * seed)
    return observations


def times_as_fast(model: Evaluator, int8: Evaluator, observations: NDArray[np.float32]) -> float:
    """How many times as fast int8 is: the two take turns, and the medians of their times are compared.

    Nothing else may run meanwhile. `observations` [B, C, H, W] float32 have as many rows as batches will have.
    """
    calls = [partial(one.evaluate_batch, observations) for one in (model, int8)]
    slow, fast = zip(*([timeit(call, number=1) for call in calls] for _ in range(_TURNS)), strict=True)
    return float(statistics.median(slow) / statistics.median(fast))


def to_int8(model: bytes, observations: NDArray[np.float32]) -> bytes:
    """The model with int8 convolutions, for this machine's CPU: the same bytes for the same arguments.

    Args:
        model: an ONNX model in float32, as `export.to_onnx` or another program makes it.
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

    try:
        with tempfile.TemporaryDirectory() as folder:
            plain, int8 = Path(folder) / "fp32.onnx", Path(folder) / "int8.onnx"
            # Folds batch norm into the convolutions.
            quant_pre_process(onnx.load_from_string(model), plain, skip_symbolic_shape=True)
            graph = onnx.load(plain).graph
            weights = {initializer.name for initializer in graph.initializer}
            given = next(each.name for each in graph.input if each.name not in weights)
            batches = ({given: part} for part in np.array_split(observations, -(-len(observations) // _ROWS_AT_ONCE)))
            exact = {node.name for node in _end_nodes(graph) if node.op_type in _LAYERS}
            exact |= {node.name for node in graph.node if node.op_type in _EXACT}
            if any(node.op_type == "Conv" for node in graph.node):
                exact |= {node.name for node in graph.node if node.op_type in _MATRICES}
            quantization.quantize_static(
                plain,
                int8,
                SimpleNamespace(get_next=lambda: next(batches, None)),
                quant_format=quantization.QuantFormat.QDQ,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                per_channel=True,
                reduce_range=not _INT8_FLAGS & cpu_flags(),
                nodes_to_exclude=sorted(exact),
            )
            return int8.read_bytes()
    except OSError as error:
        raise ModelError(
            f"the model cannot be quantized: {error.strerror or error}; it takes space in {tempfile.gettempdir()}"
        ) from error
    except Exception as error:  # the exceptions of both packages have no common base class
        raise ModelError(f"the model cannot be quantized: {first_line(error)}") from error


def _end_nodes(graph: Any) -> list[Any]:
    """The last layer with weights before each output, and the nodes behind it."""
    made_by = {output: node for node in graph.node for output in node.output}
    found: dict[int, Any] = {}
    left = [output.name for output in graph.output]
    while left:
        node = made_by.get(left.pop())
        if node is None or id(node) in found:
            continue
        found[id(node)] = node
        if node.op_type not in _LAYERS:
            left += node.input
    return list(found.values())
