"""A model's arithmetic in fp16 or bf16, for GPUs whose ONNX Runtime provider has no option for that.

Nodes that gain by it take and give half precision; all others stay in float32, with casts between. Inputs and outputs
stay float32, and so does what stands behind the last matrix product before an output: a softmax, the tanh of a value.
Weights become half precision in the file. Compare the converted model with the model before it plays
(`azpy/evaluators/drift.py`). Knows nothing of devices, torch or search.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy.errors import MissingPackageError, ModelError
from azpy.evaluators.protocol import first_line

__all__ = ["to_half"]

_PRODUCTS = {"Conv", "Gemm", "MatMul"}
# Those that move numbers but do not change them, and those that CUDA has in bfloat16 too (docs/OperatorKernels.md of
# ONNX Runtime, 2026).
_MOVES = {"Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose"}
_MOVES |= {"Unsqueeze", "Shape"}
_BOTH = _PRODUCTS | _MOVES | {"Add", "Div", "Mul", "Relu", "Sub"}
_FP16 = _BOTH | {"AveragePool", "BatchNormalization", "Clip", "Elu", "GlobalAveragePool", "HardSigmoid", "HardSwish"}
_FP16 |= {"LeakyRelu", "MaxPool", "Pad", "PRelu", "ReduceMean", "Sigmoid", "Softplus", "Tanh"}
_OPS = {"fp16": _FP16, "bf16": _BOTH}
# Older convolutions take no bfloat16.
_BF16_OPSET = 22


def to_half(model: bytes, precision: str) -> bytes:
    """The model in half precision: the same input and outputs, the same bytes for the same arguments.

    Args:
        model: an ONNX model in float32, its weights included.
        precision: "fp16" or "bf16".

    Raises:
        ModelError: the model cannot be converted.
        MissingPackageError: the package onnx or onnxruntime is not installed.
    """
    try:
        import onnx
        import onnxruntime
        from onnx import version_converter
    except ImportError as error:
        raise MissingPackageError(f"{precision} needs {error.name}: pip install {error.name}") from error
    try:
        proto = onnx.load_from_string(model)
        opset = next(each.version for each in proto.opset_import if each.domain in {"", "ai.onnx"})
        if precision == "bf16" and opset < _BF16_OPSET:
            proto = version_converter.convert_version(proto, _BF16_OPSET)
        proto = onnx.shape_inference.infer_shapes(_folded(proto, onnx, onnxruntime), strict_mode=True)
        _convert(proto.graph, precision, onnx)
        onnx.checker.check_model(proto, full_check=True)
        data: bytes = proto.SerializeToString(deterministic=True)
    except Exception as error:  # neither package's exceptions share a base
        raise ModelError(f"the model cannot be converted to {precision}: {first_line(error)}") from error
    return data


def _folded(proto: Any, onnx: Any, ort: Any) -> Any:
    """The model with batch norm in the convolutions before it, and constants as weights: folded in float32."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "folded.onnx"
        options.optimized_model_filepath = str(path)
        ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(path)


def _convert(graph: Any, precision: str, onnx: Any) -> None:
    """Rewrites the graph; its tensors have known types."""
    half = onnx.TensorProto.FLOAT16 if precision == "fp16" else onnx.TensorProto.BFLOAT16
    single = onnx.TensorProto.FLOAT
    weights = {each.name: each for each in graph.initializer}
    typed = [*graph.input, *graph.value_info, *graph.output]
    floats = {each.name for each in typed if each.type.tensor_type.elem_type == single}
    floats |= {name for name, weight in weights.items() if weight.data_type == single}
    chosen = _chosen(graph, floats, _OPS[precision])
    wanted = {each.name for each in graph.output}  # in float32
    for node, in_half in zip(graph.node, chosen, strict=True):
        if not in_half:
            wanted |= set(_reads(node))

    def half_of(name: str) -> str:
        return f"{name}__{precision}"

    nodes, halves, made = [], set[str](), set[str]()
    for node, in_half in zip(graph.node, chosen, strict=True):
        if not in_half:
            nodes.append(node)
            continue
        for index, name in enumerate(node.input):
            if name not in floats:
                continue
            node.input[index] = half_of(name)
            if name in weights and name not in made:
                graph.initializer.append(_half_weight(weights[name], half_of(name), half, onnx))
            elif name not in weights and name not in halves | made:
                nodes.append(onnx.helper.make_node("Cast", [name], [half_of(name)], to=half))
            made.add(name)
        casts = []
        for index, name in enumerate(node.output):
            if name in floats:
                node.output[index] = half_of(name)
                halves.add(name)
                if name in wanted:
                    casts.append(onnx.helper.make_node("Cast", [half_of(name)], [name], to=single))
        nodes += [node, *casts]
    kept = [each for each in graph.initializer if each.name in wanted or each.name not in made]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept)


def _chosen(graph: Any, floats: set[str], ops: set[str]) -> list[bool]:
    """Which nodes compute in half precision: those that can, but for what follows the last product before an output."""
    outputs = {each.name for each in graph.output}
    needed: dict[str, bool] = {}  # whether a node in half precision reads a tensor
    chosen = []
    for node in reversed(graph.node):
        mine = [name for name in [*node.input, *node.output] if name in floats]
        can = node.op_type in ops and node.domain in {"", "ai.onnx"} and bool(mine)
        read_in_half = any(needed.get(name, False) for name in node.output) and not outputs & set(node.output)
        in_half = can and (node.op_type in _PRODUCTS or node.op_type == "Shape" or read_in_half)
        chosen.append(in_half)
        for name in _reads(node):
            needed[name] = needed.get(name, False) or in_half
    return chosen[::-1]


def _reads(node: Any) -> Iterator[str]:
    """Names that a node reads, its subgraphs included."""
    yield from node.input
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            for inner in graph.node:
                yield from _reads(inner)
            yield from (output.name for output in graph.output)


def _half_weight(weight: Any, name: str, half: int, onnx: Any) -> Any:
    array = onnx.numpy_helper.to_array(weight)
    if half == onnx.TensorProto.FLOAT16:
        with np.errstate(over="ignore"):  # the comparison with the model will show it
            return onnx.numpy_helper.from_array(array.astype(np.float16), name)
    return onnx.helper.make_tensor(name, half, array.shape, _bfloat16(array).tobytes(), raw=True)


def _bfloat16(array: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper half of each float32, rounded to the nearest, ties to even."""
    bits = array.astype("<f4").view("<u4").astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded).astype("<u2")
