"""Untrained ONNX models for tests, made with onnx alone."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def probe_model(
    obs_shape: tuple[int, int, int], num_actions: int, *, layers: int = 8, channels: int = 32, seed: int | None = 0
) -> bytes:
    """A convolutional network as `OnnxEvaluator` takes it: 3x3 convolutions with ReLU, and a layer for each head.

    Without a seed all weights are the same number, and the file is small.
    """
    rng = np.random.default_rng(seed)
    planes, height, width = obs_shape
    cells = channels * height * width
    constants = {"row": np.array([-1, cells]), "column": np.array([1])}
    nodes = []

    def weight(name: str, *shape: int) -> str:
        if seed is None:
            size = "x".join(map(str, shape))
            if size not in constants:
                constants[size] = np.array(shape)
                value = numpy_helper.from_array(np.array([1 / 256], np.float32))
                nodes.append(helper.make_node("ConstantOfShape", [size], [f"weights {size}"], value=value))
            return f"weights {size}"
        constants[name] = (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
        return name

    last = "observations"
    for layer in range(layers):
        kernel = weight(f"conv{layer}", channels, channels if layer else planes, 3, 3)
        nodes.append(helper.make_node("Conv", [last, kernel], [f"sum{layer}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"sum{layer}"], [f"relu{layer}"]))
        last = f"relu{layer}"
    nodes += [
        helper.make_node("Reshape", [last, "row"], ["flat"]),
        helper.make_node("Gemm", ["flat", weight("policy", num_actions, cells)], ["logits"], transB=1),
        helper.make_node("Gemm", ["flat", weight("value", 1, cells)], ["score"], transB=1),
        helper.make_node("Tanh", ["score"], ["squashed"]),
        helper.make_node("Squeeze", ["squashed", "column"], ["values"]),
    ]
    graph = helper.make_graph(
        nodes,
        "probe",
        [helper.make_tensor_value_info("observations", TensorProto.FLOAT, ["batch", *obs_shape])],
        [
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", num_actions]),
            helper.make_tensor_value_info("values", TensorProto.FLOAT, ["batch"]),
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    data: bytes = model.SerializeToString()
    return data
