"""The network, its export, and the check between them."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from azpy.errors import ModelError, SettingsError
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.torch import TorchEvaluator
from azpy.learning.export import check_parity, to_onnx
from azpy.learning.network import Network, load_arrays, spec_of, to_arrays
from networks import rows, trained

SHAPES = [((2, 3, 3), 9, "2x16"), ((5, 1, 1), 3, "2x32"), ((3, 1, 4), 4, "1x16"), ((2, 3, 3), 9, "0x16")]
SHAPES.append(((3, 5, 4), 40, "3x16+pool"))


def test_an_untrained_network_is_nearly_uniform() -> None:
    logits, values = Network((2, 6, 7), 7, "5x64").eval()(torch.from_numpy(rows((2, 6, 7))))
    priors = torch.softmax(logits, dim=1)
    assert (priors - 1 / 7).abs().max() < 0.05
    assert values.abs().max() < 0.2


@pytest.mark.parametrize("spec", ["", "5x", "5x0", "-1x8", "5x64x2", "5.0x64", "5x64pool"])
def test_a_bad_network_spec_is_refused(spec: str) -> None:
    with pytest.raises(SettingsError, match="BLOCKSxCHANNELS"):
        Network((2, 3, 3), 9, spec)


def test_pooling_reaches_the_whole_board() -> None:
    far = torch.zeros(1, 2, 1, 40)
    far[0, :, 0, -1] = 5.0  # 39 cells from the first cell, and five convolutions reach five
    for spec, reached in (("2x16", False), ("2x16+pool", True)):
        trunk = trained(Network((2, 1, 40), 40, spec)).eval().trunk
        assert bool((trunk(far)[..., 0] != trunk(torch.zeros_like(far))[..., 0]).any()) == reached


@pytest.mark.parametrize(("shape", "spec"), [((2, 3, 3), "1x16+pool"), ((5, 1, 1), "2x32+pool")])
def test_pooling_needs_a_board_and_a_second_block(shape: tuple[int, int, int], spec: str) -> None:
    with pytest.raises(SettingsError, match="pool"):
        Network(shape, 9, spec)


@pytest.mark.parametrize(("shape", "actions", "spec"), SHAPES)
def test_the_exported_model_matches_the_network(shape: tuple[int, int, int], actions: int, spec: str) -> None:
    network = trained(Network(shape, actions, spec))
    logits, values = network(torch.from_numpy(rows(shape, 5)))
    assert (logits.shape, values.shape) == ((5, actions), (5,))
    assert values.abs().max() < 1
    evaluator = OnnxEvaluator(to_onnx(network))
    check_parity(network, evaluator, rows(shape), 1e-5)
    check_parity(network, evaluator, rows(shape, 1), 1e-5)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("shape", "actions", "spec"), SHAPES[:2])
def test_the_exported_graph_computes_with_no_shapes(
    shape: tuple[int, int, int], actions: int, spec: str, memory_format: torch.memory_format
) -> None:
    network: Any = Network(shape, actions, spec)
    graph = onnx.load_from_string(to_onnx(network.to(memory_format=memory_format))).graph
    assert not {"Shape", "Size", "Gather"} & {node.op_type for node in graph.node}  # a GPU would leave them to the CPU


def by_hand(network: Network, observations: NDArray[np.float32]) -> NDArray[np.float64]:
    """The logits of a network with a policy head by cell, from the planes behind its trunk: cell by cell."""
    with torch.no_grad():
        features = network.trunk(torch.from_numpy(observations)).double().numpy()
    head: Any = network.policy
    (mix, norm), _, last, _ = head
    each = last.weight.shape[0]
    count, _, _, width = features.shape
    logits = np.zeros((count, network.num_actions))
    for row in range(count):
        for group, cell in enumerate(network.action_cells or ()):
            x = features[row, :, cell // width, cell % width]
            x = mix.weight[:, :, 0, 0].detach().double().numpy() @ x + mix.bias.detach().numpy()
            x = (x - norm.running_mean.numpy()) / np.sqrt(norm.running_var.numpy() + norm.eps)
            x = np.maximum(x * norm.weight.detach().numpy() + norm.bias.detach().numpy(), 0)
            for action in range(each):
                weight, bias = last.weight[action, :, 0, 0].detach().numpy(), float(last.bias[action].detach())
                logits[row, group * each + action] = weight @ x + bias
    return logits


@pytest.mark.parametrize(("planes", "cells"), [(3, range(12)), (47, [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]), (3, [7])])
def test_one_policy_head_for_all_cells(planes: int, cells: Sequence[int]) -> None:
    network = trained(Network((planes, 3, 4), 5 * len(cells), "1x16", cells)).eval()
    observations = rows((planes, 3, 4), 4)
    expected = by_hand(network, observations)
    assert np.abs(network(torch.from_numpy(observations))[0].detach().numpy() - expected).max() < 1e-4
    assert np.abs(OnnxEvaluator(to_onnx(network)).evaluate_batch(observations)[0] - expected).max() < 1e-4
    # A CUDA graph cannot hold GatherND: its kernel reads the host's memory.
    assert "GatherND" not in {node.op_type for node in onnx.load_from_string(to_onnx(network)).graph.node}


def test_networks_with_other_cells_have_other_ids() -> None:
    one, other = (Network((3, 2, 2), 4, "1x8", cells) for cells in ((0, 1), (1, 0)))
    load_arrays(other, to_arrays(one))
    assert TorchEvaluator(one).network_id != TorchEvaluator(other).network_id


@pytest.mark.parametrize(
    ("shape", "cells"),
    [((3, 3, 4), range(11)), ((3, 3, 4), [12]), ((3, 3, 4), [-1]), ((3, 3, 4), []), ((12, 1, 1), [0])],
)
def test_action_cells_that_do_not_fit_are_refused(shape: tuple[int, int, int], cells: Sequence[int]) -> None:
    with pytest.raises(SettingsError, match="action_cells must be equal groups of the 60 actions"):
        Network(shape, 60, "1x16", cells)
    with pytest.raises(SettingsError, match="must be whole numbers"):
        Network((3, 3, 4), 60, "1x16", [0.5])  # type: ignore[list-item]


@pytest.mark.parametrize(("planes", "padded"), [(47, 48), (119, 128), (32, 32), (17, 17), (3, 3)])
def test_export_pads_planes_that_nearly_fill_a_block(planes: int, padded: int) -> None:
    network = trained(Network((planes, 4, 4), 5, "1x16"))
    model = onnx.load_from_string(to_onnx(network))
    onnx.checker.check_model(model, full_check=True)
    (weight,) = (one for one in model.graph.initializer if one.name == "trunk.0.0.weight")
    assert list(weight.dims) == [16, padded, 3, 3]
    assert ("Pad" in {node.op_type for node in model.graph.node}) == (padded > planes)
    evaluator = OnnxEvaluator(to_onnx(network))
    assert evaluator.obs_shape == (planes, 4, 4)
    check_parity(network, evaluator, rows((planes, 4, 4), 5), 1e-5)


def test_observations_of_another_shape_are_refused() -> None:
    with pytest.raises(ModelError, match=r"takes observations \[B, 2, 3, 3\], got \[4, 2, 3, 6\]"):
        Network((2, 3, 3), 9, "1x16")(torch.zeros(4, 2, 3, 6))


def test_a_module_without_an_onnx_form_is_refused() -> None:
    network = Network((2, 3, 3), 9, "1x16")
    network.trunk.append(nn.Softplus())
    with pytest.raises(ModelError, match=r"trunk\.3 is a Softplus, which azpy cannot write as ONNX"):
        to_onnx(network)


@pytest.mark.parametrize("cells", [None, (0, 1, 2)])
def test_the_export_is_the_same_however_weights_lie_in_memory(cells: tuple[int, ...] | None) -> None:
    """A process that trains has them channels last, one that reads a checkpoint does not."""
    network: Any = trained(Network((2, 3, 3), 9, "1x16", cells))
    found = set[bytes]()
    for memory_format in (torch.contiguous_format, torch.channels_last):
        network.train().to(memory_format=memory_format)
        found.add(to_onnx(network))
        assert network.training
    assert len(found) == 1


def test_onnx_runtime_folds_batch_norm_into_the_convolutions(tmp_path: Path) -> None:
    # Without this the model runs at half the speed.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(to_onnx(trained(Network((2, 6, 7), 7, "2x32"))), options)
    operators = {node.op_type for node in onnx.load(tmp_path / "optimized.onnx").graph.node}
    assert "Conv" in operators
    assert not operators & {"BatchNormalization", "Expand"}


def test_a_wrong_export_does_not_pass() -> None:
    network = trained(Network((2, 3, 3), 9, "1x16"))
    right = to_onnx(network)
    stale = trained(Network((2, 3, 3), 9, "1x16"), seed=3)
    with pytest.raises(ModelError, match="differs from the network by"):
        check_parity(stale, OnnxEvaluator(right), rows((2, 3, 3)))
    # One weight of one head, a little off.
    proto = onnx.load(io.BytesIO(right))
    slot = next(item for item in proto.graph.initializer if item.name == "policy.3.bias")
    bias = np.frombuffer(slot.raw_data, np.float32).copy()
    bias[4] += 0.01
    slot.raw_data = bias.tobytes()
    with pytest.raises(ModelError, match="differs from the network by"):
        check_parity(network, OnnxEvaluator(proto.SerializeToString()), rows((2, 3, 3)))
    assert check_parity(network, OnnxEvaluator(right), rows((2, 3, 3))) < 1e-5


def test_nan_is_the_largest_difference() -> None:
    class Broken:
        def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            return np.full((len(observations), 9), np.nan, np.float32), np.zeros(len(observations), np.float32)

    with pytest.raises(ModelError, match="inf"):
        check_parity(Network((2, 3, 3), 9, "1x16"), Broken(), rows((2, 3, 3)))


@pytest.mark.parametrize("smoothing", [0.0, 0.15])
@pytest.mark.parametrize(
    ("shape", "spec"), [((2, 3, 3), "1x16+wdl"), ((3, 3, 3), "2x16+pool+wdl"), ((5, 1, 1), "2x32+wdl")]
)
def test_three_classes_export_as_win_minus_loss(shape: tuple[int, int, int], spec: str, smoothing: float) -> None:
    network = trained(Network(shape, 9, spec)).eval()
    network.value_smoothing = smoothing
    model = OnnxEvaluator(to_onnx(network))
    observations = rows(shape)
    assert check_parity(network, model, observations) < 1e-5
    with torch.no_grad():
        win, _, loss = network(torch.from_numpy(observations))[1].softmax(1).unbind(1)
        expected = np.clip((win - loss).numpy() / (1 - 4 / 3 * smoothing), -1, 1)
        np.testing.assert_allclose(model.evaluate_batch(observations)[1], expected, atol=1e-5)
        assert np.abs(expected).max() > 0.01
        # What a softened sure win is learned as counts as a sure win.
        network.value[-1].weight.zero_()  # type: ignore[operator]
        targets = torch.tensor([1 - smoothing, 2 / 3 * smoothing + 1e-9, smoothing / 3 + 1e-9])
        network.value[-1].bias.copy_(targets.log())  # type: ignore[operator]
    values = OnnxEvaluator(to_onnx(network)).evaluate_batch(observations)[1]
    np.testing.assert_allclose(values, 1.0, atol=1e-5)
    assert spec_of(to_arrays(network)) == spec
