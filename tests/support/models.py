"""Untrained ONNX models for tests, made with onnx alone."""

from typing import Any

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


def _value_head(values: str, flat: bool) -> list[Any]:
    """The nodes that make values [B], or [B, 1] where they are not `flat`, of the weights "value"."""
    last = helper.make_node("Squeeze", ["squashed", "axis"], [values])
    return [
        helper.make_node("MatMul", ["flat", "value"], ["column"]),
        helper.make_node("Tanh", ["column"], ["squashed"]),
        last if flat else helper.make_node("Identity", ["squashed"], [values]),
    ]


def make_model(
    *,
    shape: tuple[Any, ...] = ("batch", 2, 3, 3),
    actions: int = 9,
    names: tuple[str, str, str] = ("observations", "logits", "values"),
    dtype: int = TensorProto.FLOAT,
    weight: float = 0.5,
    flat_values: bool = True,
) -> bytes:
    """A linear model: logits and value are weighted sums of the planes."""
    observations, logits, values = names
    cells = int(np.prod([size for size in shape[1:] if isinstance(size, int)]))
    rng = np.random.default_rng(1)
    policy = rng.normal(0, weight, (cells, actions)).astype(np.float32)
    value = rng.normal(0, weight, (cells, 1)).astype(np.float32)
    numpy_type = np.dtype(helper.tensor_dtype_to_np_dtype(dtype))
    initializers = [
        numpy_helper.from_array(policy.astype(numpy_type), "policy"),
        numpy_helper.from_array(value.astype(numpy_type), "value"),
        numpy_helper.from_array(np.array([1], np.int64), "axis"),
    ]
    nodes = [
        helper.make_node("Flatten", [observations], ["flat"]),
        helper.make_node("MatMul", ["flat", "policy"], [logits]),
        *_value_head(values, flat_values),
    ]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info(observations, dtype, shape)],
        [
            helper.make_tensor_value_info(logits, dtype, [shape[0], actions]),
            helper.make_tensor_value_info(values, dtype, [shape[0]] if flat_values else [shape[0], 1]),
        ],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return bytes(model.SerializeToString())


def make_priors_model(
    *,
    names: tuple[str, str, str] = ("States", "Priors", "Values"),
    shape: tuple[Any, ...] = ("batch", 2, 3, 3),
    actions: int = 9,
    batch: int | None = None,
    fixed_outputs: int | None = None,
    softmax: bool = True,
    never: tuple[int, ...] = (),
    flat_values: bool = False,
    per_row: int = 1,
    seed: int = 1,
) -> bytes:
    """A linear model of another form: priors over all actions, of which some are always 0, and values [B, 1]."""
    states, priors, values = names
    rows: Any = shape[0] if batch is None else batch
    answered: Any = fixed_outputs or rows
    rng = np.random.default_rng(seed)
    cells = int(np.prod(shape[1:]))
    mask = np.ones((1, actions), np.float32)
    mask[:, never] = 0
    initializers = [
        numpy_helper.from_array(rng.normal(0, 1, (cells, actions)).astype(np.float32), "policy"),
        numpy_helper.from_array(rng.normal(0, 1, (cells, per_row)).astype(np.float32), "value"),
        numpy_helper.from_array(mask, "mask"),
        numpy_helper.from_array(np.array([1], np.int64), "axis"),
    ]
    nodes = [
        helper.make_node("Flatten", [states], ["flat"]),
        helper.make_node("MatMul", ["flat", "policy"], ["raw"]),
        helper.make_node("Softmax" if softmax else "Exp", ["raw"], ["shares"]),
        helper.make_node("Mul", ["shares", "mask"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "axis"], ["sum"], keepdims=1),
        helper.make_node("Div", ["kept", "sum"], [priors])
        if softmax
        else helper.make_node("Identity", ["kept"], [priors]),
        *_value_head(values, flat_values),
    ]
    graph = helper.make_graph(
        nodes,
        "priors",
        [helper.make_tensor_value_info(states, TensorProto.FLOAT, [rows, *shape[1:]])],
        [
            helper.make_tensor_value_info(priors, TensorProto.FLOAT, [answered, actions]),
            helper.make_tensor_value_info(values, TensorProto.FLOAT, [answered] + ([] if flat_values else [per_row])),
        ],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return bytes(model.SerializeToString())
