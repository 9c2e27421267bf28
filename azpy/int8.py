"""An int8 twin of a model for the CPU.

ONNX Runtime's static quantization: convolutions in int8, with a scale for each output channel and scales of
activations measured on positions; the heads' matrices, where rounding shows most and costs least, stay in fp32. A
network without convolutions is quantized whole. `azpy/parity.py` says whether it may play. Knows nothing of torch,
search or run folders.
"""

import contextlib
import io
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.errors import MissingPackageError, ModelError
from azpy.evaluator import first_line
from azpy.machine import cpu_flags
from azpy.onnx import OnnxEvaluator
from azpy.parity import Drift, drift, held_out

__all__ = ["has_int8", "to_int8", "twin_of"]

# Instructions that multiply 8-bit integers and add into 32 bits. Without them ONNX Runtime adds two products in 16
# bits, which overflows unless weights have 7 bits (its documentation of quantization, "reduce_range").
_INT8_FLAGS = {"avx512_vnni", "avx_vnni", "amx_int8", "asimddp"}
_CALIBRATION_ROWS = 512
_ROWS_AT_ONCE = 128
_MATRICES = {"Gemm", "MatMul"}


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
    positions, *_ = buffer.sample(_CALIBRATION_ROWS, seed=2 * seed)
    twin = to_int8(model, positions)
    return twin, drift(OnnxEvaluator(model), OnnxEvaluator(twin), *held_out(buffer, seed))


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
        raise MissingPackageError(f'{error.name} is not installed: pip install "azpy[train]"') from error

    class Positions(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self, name: str) -> None:
            self._batches: Iterator[dict[str, Any]] = iter(
                {name: observations[begin : begin + _ROWS_AT_ONCE]}
                for begin in range(0, len(observations), _ROWS_AT_ONCE)
            )

        def get_next(self) -> dict[str, Any] | None:
            return next(self._batches, None)

    with tempfile.TemporaryDirectory() as folder, _quiet():
        plain, twin = Path(folder) / "fp32.onnx", Path(folder) / "int8.onnx"
        try:
            # Folds batch norm into the convolutions.
            quant_pre_process(onnx.load_from_string(model), plain, skip_symbolic_shape=True)
            graph = onnx.load(plain).graph
            weights = {initializer.name for initializer in graph.initializer}
            given = next(each.name for each in graph.input if each.name not in weights)
            nodes = graph.node
            convolutions = any(node.op_type == "Conv" for node in nodes)
            quantization.quantize_static(
                plain,
                twin,
                Positions(given),
                quant_format=quantization.QuantFormat.QDQ,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                per_channel=True,
                reduce_range=not has_int8(),
                nodes_to_exclude=[node.name for node in nodes if convolutions and node.op_type in _MATRICES],
            )
            return twin.read_bytes()
        except Exception as error:  # neither package's exceptions share a base
            raise ModelError(f"the model cannot be quantized: {first_line(error)}") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nothing of what the quantizer prints and logs: it is about itself."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)
