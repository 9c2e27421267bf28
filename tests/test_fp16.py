"""fp16 on CUDA: the converted model is one that ONNX takes, near the model, in float32 where it matters."""

import sys
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import azpy
from azpy.errors import MissingPackageError, ModelError
from azpy.evaluators.drift import drift
from azpy.evaluators.fp16 import _cast_once, to_fp16
from azpy.evaluators.onnx import OnnxEvaluator, network_id
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from fake_onnxruntime import CUDA, gpu_on_the_cpu
from models import probe_model
from test_onnx import make_priors_model
from test_torch_evaluator import positions


@cache
def network(game: str, spec: str = "3x32") -> bytes:
    """Ours, with batch norm that is not the identity."""
    torch.manual_seed(0)
    state = azpy.make_game(game)
    net = Network(state.obs_shape, state.num_actions, spec)
    for name, tensor in net.state_dict().items():
        if tensor.dtype == torch.float32:
            tensor.add_(0.1 * torch.rand_like(tensor) if "var" in name else 0.03 * torch.randn_like(tensor))
    return to_onnx(net)


def types_of(model: bytes) -> dict[str, int]:
    graph = onnx.shape_inference.infer_shapes(onnx.load_from_string(model), strict_mode=True).graph
    return {each.name: each.type.tensor_type.elem_type for each in (*graph.value_info, *graph.input, *graph.output)}


def types_by_operator(model: bytes) -> dict[str, set[int]]:
    """Of what nodes give."""
    types, found = types_of(model), dict[str, set[int]]()
    for node in onnx.load_from_string(model).graph.node:
        found.setdefault(node.op_type, set()).add(types[node.output[0]])
    return found


@pytest.mark.parametrize("game", ["connect_four", "chess", "pig"])
def test_the_trunk_is_in_fp16_and_the_last_layers_are_not(game: str) -> None:
    model = to_fp16(network(game))
    proto = onnx.load_from_string(model)
    onnx.checker.check_model(proto, full_check=True)
    assert model == to_fp16(network(game))
    types = types_of(model)
    assert {types[name] for name in ("observations", "logits", "values")} == {TensorProto.FLOAT}
    found = types_by_operator(model)
    assert found["Relu"] == {TensorProto.FLOAT16}
    assert found["Tanh"] == {TensorProto.FLOAT}  # the value's
    assert "BatchNormalization" not in found  # folded, in float32
    weights = {each.name: each.data_type for each in proto.graph.initializer}
    layers = [node for node in proto.graph.node if node.op_type in {"Conv", "Gemm", "MatMul"}]
    exact = [node for node in layers if weights[node.input[1]] == TensorProto.FLOAT]
    assert len(exact) == 2
    assert {types[node.output[0]] for node in exact} == {TensorProto.FLOAT}


def test_no_answer_is_rounded_to_fp16() -> None:
    rows = np.random.default_rng(0).random((64, *azpy.make_game("connect_four").obs_shape), np.float32)
    for answer in OnnxEvaluator(to_fp16(network("connect_four"))).evaluate_batch(rows):
        assert (answer != answer.astype(np.float16)).mean() > 0.9


@pytest.mark.parametrize("spec", ["2x16", "4x48"])
def test_fp16_is_near_fp32(spec: str) -> None:
    states = positions("connect_four", 300)
    observations = np.array([state.observation() for state in states])
    legal = np.zeros((300, 7), np.bool_)
    for row, state in zip(legal, states, strict=True):
        row[state.legal_actions()] = True
    model = network("connect_four", spec)
    plain, half = OnnxEvaluator(model), OnnxEvaluator(to_fp16(model))
    found = drift(plain, half, observations, legal)
    assert not found.too_far
    assert 0 < found.value < 2e-3
    assert 0 < found.policy < 1e-4


def test_models_of_others_are_taken() -> None:
    for model in (make_priors_model(), make_priors_model(batch=4), probe_model((2, 3, 3), 9)):
        half = to_fp16(model)
        assert onnx.load_from_string(half).graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT
        rows = np.random.default_rng(0).random((9, 2, 3, 3), np.float32)
        for found, expected in zip(
            OnnxEvaluator(half).evaluate_batch(rows), OnnxEvaluator(model).evaluate_batch(rows), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=3e-2, rtol=3e-2)


def strange_model() -> bytes:
    """What a graph may hold beside layers: a branch that reads from outside, shapes, an output that is read again."""
    rng = np.random.default_rng(0)
    constants = {
        "kernel": rng.normal(size=(4, 2, 3, 3)).astype(np.float32) / 4,
        "matrix": rng.normal(size=(36, 9)).astype(np.float32) / 6,
        "column": rng.normal(size=(9, 1)).astype(np.float32) / 3,
        "rest": np.array([36]),
        "axis": np.array([1]),
        "yes": np.array(True),
    }

    def branch(operator: str) -> Any:
        output = helper.make_tensor_value_info(f"{operator}_out", TensorProto.FLOAT, ["batch", 4, 3, 3])
        return helper.make_graph([helper.make_node(operator, ["conv"], [f"{operator}_out"])], operator, [], [output])

    nodes = [
        helper.make_node("Conv", ["observations", "kernel"], ["conv"], pads=[1, 1, 1, 1]),
        helper.make_node("Shape", ["conv"], ["whole"], start=0, end=1),
        helper.make_node("If", ["yes"], ["either"], then_branch=branch("Abs"), else_branch=branch("Neg")),
        helper.make_node("Mul", ["either", "conv"], ["product"]),
        helper.make_node("Concat", ["whole", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["product", "shape"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["soft"]),
        helper.make_node("MatMul", ["soft", "column"], ["score"]),
        helper.make_node("Tanh", ["score"], ["values"]),
    ]
    graph = helper.make_graph(
        nodes,
        "strange",
        [helper.make_tensor_value_info("observations", TensorProto.FLOAT, ["batch", 2, 3, 3])],
        [
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 9]),
            helper.make_tensor_value_info("values", TensorProto.FLOAT, ["batch", 1]),
        ],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data


def test_branches_shapes_and_inner_outputs_are_kept() -> None:
    model = strange_model()
    half = to_fp16(model)
    assert types_by_operator(half)["MatMul"] == {TensorProto.FLOAT}  # the last layers
    assert types_by_operator(half)["Conv"] == {TensorProto.FLOAT16}
    rows = np.random.default_rng(0).random((9, 2, 3, 3), np.float32)
    plain, other = OnnxEvaluator(model).evaluate_batch(rows), OnnxEvaluator(half).evaluate_batch(rows)
    np.testing.assert_allclose(other[0], plain[0], atol=1e-2)
    np.testing.assert_allclose(other[1], plain[1], atol=1e-2)


def test_a_model_that_is_none_and_a_missing_package_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="cannot be converted to fp16"):
        to_fp16(b"nonsense")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPackageError, match="fp16 needs onnx: pip install onnx"):
        to_fp16(network("pig"))


def test_on_cuda_the_converted_model_is_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = gpu_on_the_cpu(monkeypatch)
    game = azpy.make_game("connect_four")
    model = network("connect_four")
    half = OnnxEvaluator(model, "cuda", game=game, precision="fp16", buckets=(4, 16))
    assert half.description == "CUDA, GPU 0, fp16, batches of 4, 16 rows"
    data, providers = opened[0]
    assert TensorProto.FLOAT16 in types_by_operator(data)["Conv"]
    assert dict(providers)[CUDA]["prefer_nhwc"] == "1"
    plain = OnnxEvaluator(model, "cuda", game=game)
    assert half.network_id == network_id(model, "fp16") != plain.network_id == network_id(model)
    rows = np.array([state.observation() for state in positions("connect_four", 50)])
    logits, values = plain.evaluate_batch(rows)
    other_logits, other_values = half.evaluate_batch(rows)
    np.testing.assert_allclose(other_logits, logits, atol=2e-2)
    np.testing.assert_allclose(other_values, values, atol=2e-3)
    assert not np.array_equal(other_logits, logits)


def test_what_overflows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_on_the_cpu(monkeypatch)
    proto = onnx.load_from_string(probe_model((2, 3, 3), 9, layers=2))
    bias = numpy_helper.from_array(np.full(32, 1e5, np.float32), "bias")
    proto.graph.initializer.append(bias)
    proto.graph.node[0].input.append("bias")
    model = proto.SerializeToString()
    assert OnnxEvaluator(model).row_exact in (True, False)
    with pytest.raises(ModelError, match="answers an empty board with NaN or infinity"):
        OnnxEvaluator(model, "cuda", precision="fp16")


def test_a_cast_that_two_nodes_read_stands_once() -> None:
    """ONNX Runtime 1.31's converter writes it for each reader, and no model has two results of one name."""
    casts = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT) for _ in range(2)]
    graph = helper.make_graph([*casts, helper.make_node("Add", ["y", "y"], ["z"])], "two", [], [])
    _cast_once(graph)
    assert [node.op_type for node in graph.node] == ["Cast", "Add"]
