"""A model's arithmetic in fp16, for CUDA, by ONNX Runtime's own converter.

Inputs, outputs, and each head from its last layer on stay in float32. Compare the converted model with the float32
model before it plays (`azpy/evaluators/drift.py`).
"""

import tempfile
from pathlib import Path
from typing import Any

from azpy.errors import MissingPackageError, ModelError
from azpy.evaluators.protocol import first_line

LAYERS = {"Conv", "Gemm", "MatMul"}


def to_fp16(model: bytes) -> bytes:
    """An ONNX model, its weights included, in fp16: the same float32 input and outputs, the same bytes each time.

    Raises:
        ModelError: the model cannot be converted.
        MissingPackageError: the package onnx or onnxruntime is not installed.
    """
    try:
        import onnx
        import onnxruntime
        from onnxruntime.quantization.onnx_model import ONNXModel
        from onnxruntime.transformers.float16 import convert_float_to_float16
    except ImportError as error:
        raise MissingPackageError(f"fp16 needs {error.name}: pip install {error.name}") from error
    try:
        with tempfile.TemporaryDirectory() as folder:
            options, path = onnxruntime.SessionOptions(), Path(folder) / "folded.onnx"
            # Folds batch norm into the convolutions, in float32.
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
            options.optimized_model_filepath = str(path)
            options.log_severity_level = 4
            onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            proto = onnx.load(path)
        for number, node in enumerate(proto.graph.node):
            node.name = node.name or f"node{number}"
        exact = [node.name for node in end_nodes(proto.graph)]
        proto = convert_float_to_float16(proto, keep_io_types=True, node_block_list=exact)
        _cast_once(proto.graph)
        _keep_float32(proto.graph, onnx)
        ONNXModel(proto).topological_sort()  # the converter puts its casts last
        onnx.checker.check_model(proto, full_check=True)
        data: bytes = proto.SerializeToString(deterministic=True)
    except Exception as error:  # neither package's exceptions share a base
        raise ModelError(f"the model cannot be converted to fp16: {first_line(error)}") from error
    return data


def _cast_once(graph: Any) -> None:
    """Takes out casts that are there already: the converter of 1.31 adds one for each reader."""
    made = set[str]()
    for node in list(graph.node):
        if node.op_type == "Cast" and node.output[0] in made:
            graph.node.remove(node)
        made.update(node.output)


def _keep_float32(graph: Any, onnx: Any) -> None:
    """Undoes casts to fp16 and back between two nodes in float32: they would only round."""
    casts = [node for node in graph.node if node.op_type == "Cast"]
    source = {cast.output[0]: cast.input[0] for cast in casts if cast.attribute[0].i == onnx.TensorProto.FLOAT16}
    for cast in casts:
        if cast.input[0] in source and cast.attribute[0].i == onnx.TensorProto.FLOAT:
            cast.CopyFrom(onnx.helper.make_node("Identity", [source[cast.input[0]]], cast.output, cast.name))


def end_nodes(graph: Any) -> list[Any]:
    """The last layer with weights before each output, and the nodes behind it."""
    made_by = {output: node for node in graph.node for output in node.output}
    found: dict[int, Any] = {}
    left = [output.name for output in graph.output]
    while left:
        node = made_by.get(left.pop())
        if node is None or id(node) in found:
            continue
        found[id(node)] = node
        if node.op_type not in LAYERS:
            left += node.input
    return list(found.values())
