"""A small network as ONNX bytes, written without the onnx package: to see whether a provider loads and how fast it is.

The format is protobuf, of which five rules are enough here: a field is its number and wire type, then a varint or a
length and bytes. Field numbers are those of onnx.proto (IR version 10).
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["probe_model"]

_FLOAT, _INT64 = 1, 7  # TensorProto.DataType
_INT, _INTS = 2, 7  # AttributeProto.AttributeType
_OPSET, _IR_VERSION = 20, 10


def probe_model(
    obs_shape: tuple[int, int, int], num_actions: int, *, layers: int = 8, channels: int = 32, seed: int = 0
) -> bytes:
    """An untrained convolutional network in the form that `OnnxEvaluator` takes.

    Args:
        obs_shape: (C, H, W).
        num_actions: A.
        layers: 3x3 convolutions, each followed by a ReLU.
        channels: of each.
        seed: fixes the weights.
    """
    rng = np.random.default_rng(seed)
    planes, height, width = obs_shape
    cells = channels * height * width
    nodes, tensors = [], [_tensor("row", np.array([-1, cells])), _tensor("column", np.array([1]))]

    def weight(name: str, *shape: int) -> str:
        scale = np.sqrt(2 / np.prod(shape[1:]))
        tensors.append(_tensor(name, (rng.standard_normal(shape) * scale).astype(np.float32)))
        return name

    last = "observations"
    for layer in range(layers):
        inputs = [last, weight(f"conv{layer}", channels, channels if layer else planes, 3, 3)]
        nodes.append(_node("Conv", inputs, f"sum{layer}", _ints("pads", [1, 1, 1, 1])))
        nodes.append(_node("Relu", [f"sum{layer}"], f"relu{layer}"))
        last = f"relu{layer}"
    nodes += [
        _node("Reshape", [last, "row"], "flat"),
        _node("Gemm", ["flat", weight("policy", num_actions, cells)], "logits", _int("transB", 1)),
        _node("Gemm", ["flat", weight("value", 1, cells)], "score", _int("transB", 1)),
        _node("Tanh", ["score"], "squashed"),
        _node("Squeeze", ["squashed", "column"], "values"),
    ]
    graph = _join(_bytes(1, node) for node in nodes) + _text(2, "probe") + _join(_bytes(5, item) for item in tensors)
    graph += _bytes(11, _value("observations", ["batch", *obs_shape]))
    graph += _bytes(12, _value("logits", ["batch", num_actions])) + _bytes(12, _value("values", ["batch"]))
    return _number(1, _IR_VERSION) + _bytes(7, graph) + _bytes(8, _number(2, _OPSET))


def _node(operator: str, inputs: Iterable[str], output: str, attribute: bytes = b"") -> bytes:
    return _join(_text(1, name) for name in inputs) + _text(2, output) + _text(4, operator) + attribute


def _int(name: str, value: int) -> bytes:
    return _bytes(5, _text(1, name) + _number(3, value) + _number(20, _INT))


def _ints(name: str, values: Iterable[int]) -> bytes:
    return _bytes(5, _text(1, name) + _join(_number(8, value) for value in values) + _number(20, _INTS))


def _tensor(name: str, array: NDArray[np.float32] | NDArray[np.int64]) -> bytes:
    kind, stored = (_FLOAT, "<f4") if array.dtype == np.float32 else (_INT64, "<i8")
    sizes = _join(_number(1, size) for size in array.shape)
    return sizes + _number(2, kind) + _text(8, name) + _bytes(9, array.astype(stored).tobytes())


def _value(name: str, shape: Sequence[int | str]) -> bytes:
    sizes = _join(_bytes(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in shape)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, _FLOAT) + _bytes(2, sizes)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _join(parts: Iterable[bytes]) -> bytes:
    return b"".join(parts)
