"""Writes a network as an ONNX model, and checks the model against the network."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from azpy.errors import ModelError, missing_to_train, raised
from azpy.learning.network import (
    ByCell,
    ConvPolicy,
    Network,
    Pool,
    Pooled,
    Residual,
    load_arrays,
    spec_of,
    to_arrays,
    weights_of_model,
)
from azpy.learning.own import answers, class_values, network_of, weights_of_onnx

try:
    import onnx
    import torch
    from onnx import helper, numpy_helper
    from torch import Tensor, nn
    from torch.onnx import symbolic_helper
except ImportError as error:
    raise missing_to_train(str(error.name)) from error

PARITY_TOLERANCE = 1e-4
# ONNX Runtime's blocked kernels take channels by 8 or 16. Other numbers of planes are slower: a 5x64 net loses a fifth
# of its speed with chess's 119 planes (November 2026). Where there are few planes, padding costs more than it saves.
_BLOCK = 16
_OPSET, _IR_VERSION = 20, 10


def to_onnx(network: nn.Module) -> bytes:
    """Write the network as an ONNX model in evaluation mode: equal weights give equal bytes.

    The model maps `observations` [B, C, H, W] float32 to raw `logits` [B, A] and `values` [B], with a free batch B. The
    values are [B, P] where they are one a player.
    Weights keep their `state_dict` names. A module of the user's, which has `obs_shape`, is traced by torch; further
    heads are left out.

    Raises:
        ModelError: the network holds a module that has no ONNX form.
    """
    return _written(network) if isinstance(network, Network) else _traced(network)


def for_board(model: bytes, game: Any) -> bytes:
    """A model of a network with `+conv`, as `to_onnx` writes it, for another board size of its game.

    Raises:
        ModelError: the model is of no such network, or of another game.
        SettingsError: the game has no policy planes.
    """
    spec = spec_of(weights_of_onnx(onnx.load_from_string(model)))
    if "+conv" not in spec:
        raise ModelError(f"the network {spec} fits one board size: train with +conv to play on others")
    return to_onnx(network_of_model(model, game, spec))


def network_of_model(model: bytes, game: Any, spec: str) -> Any:
    """The network that `to_onnx` wrote as a model, for this game.

    Args:
        model: of ONNX.
        game: a `State`; with `+conv` its board may have another size than the network's.
        spec: the network, as `network_of` takes it.

    Raises:
        ModelError: the weights are of another network.
        SettingsError: as `network_of` says.
    """
    arrays, network = weights_of_onnx(onnx.load_from_string(model)), cast("Any", network_of(game, spec))
    if isinstance(network, Network):
        load_arrays(network, weights_of_model(network, arrays))
        if "class_values" in arrays:
            network.value_smoothing = 0.75 * (1 - 1 / float(arrays["class_values"][0]))
        return network
    # A trace leaves further heads out, and has shared weights once and constants besides.
    named = {name: torch.from_numpy(arrays[name].copy()) for name in arrays.keys() & network.state_dict().keys()}
    network.load_state_dict(named, strict=False)
    return network


class _Player(nn.Module):
    """The outputs of a module that play: policy and value."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        return answers(self.network, observations)


def _rms_norm(graph: Any, x: Any, shape: Sequence[int], weight: Any, eps: float | None) -> Any:
    """Write `torch.nn.functional.rms_norm`, which torch's exporter does not know."""
    axes = graph.op("Constant", value_t=torch.arange(-len(shape), 0))
    means = graph.op("ReduceMean", graph.op("Mul", x, x), axes, keepdims_i=1)
    least = graph.op("Constant", value_t=torch.tensor(torch.finfo(torch.float32).eps if eps is None else eps))
    normed = graph.op("Div", x, graph.op("Sqrt", graph.op("Add", means, least)))
    return normed if symbolic_helper._is_none(weight) else graph.op("Mul", normed, weight)


cast("Any", torch.onnx).register_custom_op_symbolic(
    "aten::rms_norm", symbolic_helper.parse_args("v", "is", "v", "f")(_rms_norm), _OPSET
)


@contextmanager
def _without_graphs() -> Iterator[None]:
    """Keep torch's exporter from printing a network's whole graph to stdout where it fails (seen in 2.10 and 2.13)."""
    module: Any = torch._C
    names = "_jit_onnx_log", "_jit_set_onnx_log_enabled"
    # The exporter forgets the parentheses where it reads whether the log is on, which turns the log on.
    module._jit_set_onnx_log_enabled(False)
    kept = [getattr(module, name) for name in names]
    for name in names:
        setattr(module, name, lambda *_: None)
    try:
        yield
    finally:
        for name, function in zip(names, kept, strict=True):
            setattr(module, name, function)


def _traced(network: Any) -> bytes:
    """Export a module of any kind with torch's exporter that needs only the package onnx."""
    # On the CPU; two rows, as a trace of one may take its batch for a constant.
    file: Any = io.BytesIO()  # torch's type hints allow only paths
    rows, was_training = torch.zeros(2, *network.obs_shape), network.training
    names = ("observations", "logits", "values")
    try:
        with _without_graphs():
            torch.onnx.export(
                _Player(network.eval()),
                (rows,),
                file,
                dynamo=False,
                input_names=names[:1],
                output_names=names[1:],
                dynamic_axes={name: {0: "batch"} for name in names},
                opset_version=_OPSET,
                # Weights keep their names and shapes: a later run may begin with them.
                training=torch.onnx.TrainingMode.PRESERVE,
                do_constant_folding=False,
            )
    except Exception as error:  # torch's exceptions have no common base class
        raise ModelError(f"torch cannot write this network as ONNX: {raised(error)}") from error
    finally:
        network.train(was_training)
    model = onnx.load_from_string(file.getvalue())
    if _has_a_fixed_batch(model):
        raise ModelError(
            "the network returns two rows for any batch: torch traced its forward, where len(x) and int(...) "
            "become constants; write x.shape[0] or flatten(1)"
        )
    model.ir_version = _IR_VERSION
    own = {weight.name: weight.name.removeprefix("network.") for weight in model.graph.initializer}
    for weight in model.graph.initializer:
        weight.name = own[weight.name]
    for node in model.graph.node:
        node.input[:] = [own.get(name, name) for name in node.input]
    return bytes(model.SerializeToString(deterministic=True))


def _has_a_fixed_batch(model: Any) -> bool:
    """Whether a model always returns the same number of rows, although its outputs declare a free batch."""
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    for output in copied.graph.output:
        output.type.tensor_type.ClearField("shape")
    shapes = [output.type.tensor_type.shape.dim for output in onnx.shape_inference.infer_shapes(copied).graph.output]
    return any(shape and shape[0].dim_value for shape in shapes)


def _written(network: Network) -> bytes:
    arrays = {name: array for name, array in to_arrays(network).items() if not name.endswith("num_batches_tracked")}
    graph = _Graph(arrays)
    x = "observations"
    own = network.own_planes
    padding = -(network.obs_shape[0] + own) % _BLOCK
    padding = padding if network.is_convolutional and 8 * padding <= network.obs_shape[0] + own else 0
    if added := padding + own:
        stem, ones = "trunk.0.0.weight", [graph.add("Constant", value_float=1.0)] if own else []
        x = graph.add("Pad", x, graph.add("Constant", value_ints=[0, 0, 0, 0, 0, added, 0, 0]), *ones)
        arrays[stem] = np.pad(arrays[stem], ((0, 0), (0, padding), (0, 0), (0, 0)))
    if own:
        arrays["plane_factors"] = np.pad(network.plane_factors.numpy(), ((0, padding), (0, 0), (0, 0)))
        x = graph.add("Mul", x, "plane_factors")
    x = graph.add_module("trunk", network.trunk, x)
    graph.add_module("policy", network.policy, x)
    graph.nodes[-1].output[0] = "logits"
    x = graph.add_module("value", network.value, x)
    if network.three_classes:
        arrays["class_values"] = np.array(class_values(network), np.float32)
        x = graph.add("Mul", graph.add("Softmax", x, axis=1), "class_values")
        x = graph.add("ReduceSum", x, graph.add("Constant", value_ints=[1]), keepdims=0)
        graph.add("Clip", x, *(graph.add("Constant", value_float=end) for end in (-1.0, 1.0)))
    elif network.num_values > 1:
        graph.add("Tanh", x)
    else:
        graph.add("Squeeze", graph.add("Tanh", x), graph.add("Constant", value_ints=[1]))
    graph.nodes[-1].output[0] = "values"
    each = () if network.num_values == 1 else (network.num_values,)
    shapes = {"observations": network.obs_shape, "logits": (network.num_actions,), "values": each}
    taken, *given = (helper.make_tensor_value_info(name, 1, ("batch", *shape)) for name, shape in shapes.items())
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    made = helper.make_graph(graph.nodes, "azpy", [taken], given, weights)
    opset = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(made, opset_imports=opset, ir_version=_IR_VERSION, producer_name="azpy")
    return bytes(model.SerializeToString(deterministic=True))


class _Graph:
    """The nodes of a model so far, and its weights by name.

    Shapes are nodes, as quantization hides weights from the inference of shapes.
    """

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.nodes: list[Any] = []
        self._arrays = arrays

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name, **attributes))
        return name

    def add_module(self, name: str, module: nn.Module, x: str) -> str:
        """Add what a module named `name` computes from `x`; return the name of its output."""
        weights = [f"{name}.weight", f"{name}.bias"]
        match module:
            case nn.Sequential():
                for key, part in module.named_children():
                    x = self.add_module(f"{name}.{key}", part, x)
                return x
            case Residual():
                y = self.add_module(f"{name}.first", module.first, x)
                if module.pool is not None:
                    y = self.add("Add", y, self.add_module(f"{name}.pool", module.pool, x))
                y = self.add("Relu", y)
                y = self.add_module(f"{name}.second", module.second, y)
                return self.add("Relu", self.add("Add", x, y))
            case Pool():
                x = self.add("Relu", self.add_module(f"{name}.taken", module.taken, x))
                kinds = {"mean": (module.mean, "GlobalAveragePool"), "most": (module.most, "GlobalMaxPool")}
                parts = [
                    self.add_module(f"{name}.{key}", part, self.add("Flatten", self.add(kind, x)))
                    for key, (part, kind) in kinds.items()
                ]
                shape = self.add("Constant", value_ints=[-1, module.mean.out_features, 1, 1])
                return self.add("Reshape", self.add("Add", *parts), shape)
            case nn.Conv2d():
                return self.add("Conv", x, *weights, pads=[module.kernel_size[0] // 2] * 4)
            case nn.BatchNorm1d() | nn.BatchNorm2d():
                weights += [f"{name}.running_mean", f"{name}.running_var"]
                return self.add("BatchNormalization", x, *weights, epsilon=module.eps)
            case nn.Linear():
                return self.add("Gemm", x, *weights, transB=1)
            case nn.ReLU():
                return self.add("Relu", x)
            case nn.Flatten():
                return self.add("Flatten", x)
            case Pooled():
                means, most = (
                    self.add("Flatten", self.add(kind, x)) for kind in ("GlobalAveragePool", "GlobalMaxPool")
                )
                normed = self.add_module(f"{name}.norm", module.norm, self.add("Concat", means, most, axis=1))
                ends = (self.add("Constant", value_ints=[end]) for end in (0, module.norm.num_features // 2, 1))
                factor = self.add("Constant", value_float=module.factor)
                return self.add("Concat", normed, self.add("Mul", self.add("Slice", normed, *ends), factor), axis=1)
            case ConvPolicy():
                pooled = self.add_module(f"{name}.taken", module.taken, x)
                added = self.add_module(f"{name}.spread", module.spread, pooled)
                shape = self.add("Constant", value_ints=[-1, module.spread.out_features, 1, 1])
                x = self.add_module(f"{name}.first", module.first, x)
                x = self.add("Relu", self.add("Add", x, self.add("Reshape", added, shape)))
                x = self.add("Flatten", self.add_module(f"{name}.last", module.last, x))
                if module.free is not None:
                    x = self.add("Concat", x, self.add_module(f"{name}.free", module.free, pooled), axis=1)
                if module.is_ordered:
                    return x
                self._arrays[f"{name}.order"] = np.array(module.order, np.int64)
                return self.add("Gather", x, f"{name}.order", axis=1)
            case ByCell():
                # Faster than one Gather of single logits.
                x = self.add("Transpose", x, perm=[0, 2, 3, 1])
                x = self.add("Reshape", x, self.add("Constant", value_ints=[-1, module.area, module.planes]))
                self._arrays[f"{name}.cells"] = np.array(module.cells, np.int64)
                return self.add("Flatten", self.add("Gather", x, f"{name}.cells", axis=1))
        raise ModelError(f"{name} is a {type(module).__name__}, which azpy cannot write as ONNX")


def check_parity(
    network: nn.Module, evaluator: Any, observations: NDArray[np.float32], tolerance: float = PARITY_TOLERANCE
) -> float:
    """Return the largest difference between the answers of torch and of an evaluator.

    Differences of logits are relative to the largest logit, or to 1 if all logits are smaller.

    Args:
        network: compared in evaluation mode, in float32.
        evaluator: an `Evaluator`, usually of the exported model.
        observations: [B, C, H, W] float32.
        tolerance: the largest difference allowed.

    Raises:
        ModelError: the difference is larger, or an answer is NaN.
    """
    was_training = network.training
    with torch.no_grad():
        found = answers(network.eval(), torch.from_numpy(observations.copy()))
        logits, values = (part.float().numpy() for part in found)
    network.train(was_training)
    other_logits, other_values = evaluator.evaluate_batch(observations)
    scale = max(1.0, float(np.abs(logits).max(initial=0.0)))
    differences = [np.abs(logits - other_logits).max() / scale, np.abs(values - other_values).max()]
    difference = float(np.nan_to_num(np.max(differences), nan=np.inf))
    if difference > tolerance:
        raise ModelError(
            f"the exported model differs from the network by {difference:.2g}, expected at most {tolerance:.2g}"
        )
    return difference
