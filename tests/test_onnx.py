"""OnnxEvaluator: what is loaded fits, answers, and is told apart; what does not is refused in one line."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from azpy.errors import AzpyError, ModelError, SettingsError
from azpy.onnx import OnnxEvaluator


class Shape:
    """Stands for a game: two planes of 3 x 3, nine actions."""

    num_actions = 9
    obs_shape = (2, 3, 3)


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
        helper.make_node("MatMul", ["flat", "value"], ["column"]),
        helper.make_node("Tanh", ["column"], ["squashed"]),
        helper.make_node("Squeeze", ["squashed", "axis"], [values])
        if flat_values
        else helper.make_node("Identity", ["squashed"], [values]),
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


def test_answers_with_the_model_s_own_arithmetic(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(make_model())
    evaluator = OnnxEvaluator(path, game=Shape())
    observations = np.random.default_rng(0).random((5, 2, 3, 3), dtype=np.float32)
    logits, values = evaluator.evaluate_batch(observations)
    weights = {item.name: numpy_helper.to_array(item) for item in onnx.load(path).graph.initializer}
    flat = observations.reshape(5, -1)
    np.testing.assert_allclose(logits, flat @ weights["policy"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(values, np.tanh(flat @ weights["value"])[:, 0], rtol=1e-5, atol=1e-6)
    assert logits.dtype == values.dtype == np.float32
    assert (evaluator.obs_shape, evaluator.num_actions) == ((2, 3, 3), 9)


def test_a_row_has_the_same_bits_in_any_batch() -> None:
    evaluator = OnnxEvaluator(make_model())
    observations = np.random.default_rng(0).random((33, 2, 3, 3), dtype=np.float32)
    logits, values = evaluator.evaluate_batch(observations)
    for row in range(33):
        one_logits, one_value = evaluator.evaluate_batch(observations[row : row + 1])
        assert (one_logits[0] == logits[row]).all()
        assert one_value[0] == values[row]


def test_observations_of_another_shape_are_refused() -> None:
    evaluator = OnnxEvaluator(make_model())
    for shape in ((4, 3, 3, 3), (4, 18), (2, 3, 3)):
        with pytest.raises(ModelError, match=r"takes observations \[B, 2, 3, 3\], got \[") as caught:
            evaluator.evaluate_batch(np.zeros(shape, np.float32))
        assert str(list(shape)) in str(caught.value)


def test_it_is_known_whether_a_row_depends_on_its_batch() -> None:
    assert OnnxEvaluator(make_model()).row_exact
    model = onnx.load_from_string(make_model())
    # The sum over the batch, times almost nothing, is added to the logits.
    model.graph.node[1].output[0] = "alone"
    model.graph.initializer.append(numpy_helper.from_array(np.array([0], np.int64), "batch_axis"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(1e-5, np.float32), "little"))
    model.graph.node.extend(
        [
            helper.make_node("ReduceSum", ["alone", "batch_axis"], ["sum"]),
            helper.make_node("Mul", ["sum", "little"], ["small"]),
            helper.make_node("Add", ["alone", "small"], ["logits"]),
        ]
    )
    evaluator = OnnxEvaluator(bytes(model.SerializeToString()))
    assert not evaluator.row_exact
    assert not evaluator.fork().row_exact


def test_network_id_is_a_hash_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(make_model())
    same, other = OnnxEvaluator(path).network_id, OnnxEvaluator(make_model(weight=0.25)).network_id
    assert same == OnnxEvaluator(make_model()).network_id == OnnxEvaluator(path).fork().network_id
    assert same != other
    assert 0 < same < 2**64


def test_forks_answer_from_other_threads() -> None:
    evaluator = OnnxEvaluator(make_model())
    observations = np.random.default_rng(0).random((8, 2, 3, 3), dtype=np.float32)
    expected = evaluator.evaluate_batch(observations)[0]
    wrong: list[int] = []

    def work(fork: OnnxEvaluator) -> None:
        same = [(fork.evaluate_batch(observations)[0] == expected).all() for _ in range(200)]
        wrong.append(same.count(False))

    threads = [threading.Thread(target=work, args=(evaluator.fork(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (make_model(actions=7), "9"),
        (make_model(shape=("batch", 3, 3, 3)), "[3, 3, 3]"),
        (make_model(names=("x", "logits", "values")), "['x']"),
        (make_model(names=("observations", "p", "values")), "'p'"),
        (make_model(dtype=TensorProto.DOUBLE), "tensor(double)"),
        (make_model(shape=(4, 2, 3, 3)), "fixed batch of 4"),
        (make_model(flat_values=False), "values"),
        (make_model(weight=float("nan")), "NaN"),
        (make_model()[:-50], "no usable ONNX model"),
        (b"", "no usable ONNX model"),
        (b"\x00not a model", "no usable ONNX model"),
    ],
)
def test_a_model_that_cannot_play_the_game_is_refused_in_one_line(model: bytes, text: str) -> None:
    with pytest.raises(ModelError) as caught:
        OnnxEvaluator(model, game=Shape())
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_model_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nowhere\.onnx cannot be read: No such file"):
        OnnxEvaluator(tmp_path / "nowhere.onnx")
    with pytest.raises(ModelError, match="cannot be read"):
        OnnxEvaluator(tmp_path)
    assert issubclass(ModelError, ValueError)
    assert issubclass(ModelError, AzpyError)


@pytest.mark.parametrize("device", ["CPU", "", "gpu", "cpu:1", "cuda:", "cuda:-1", "cuda:one"])
def test_an_unknown_device_is_refused(device: str) -> None:
    with pytest.raises(SettingsError, match="device must be cpu, cuda, cuda:N, tensorrt, tensorrt:N or auto, got "):
        OnnxEvaluator(make_model(), device)


def test_without_onnxruntime_the_error_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        "import azpy\n"
        "try: azpy.OnnxEvaluator(b'')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == 'onnxruntime is not installed: pip install "azpy[cpu]"\n'


def test_a_model_with_its_weights_in_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its network_id would not tell other weights apart; ONNX Runtime would look for them in the current folder.
    monkeypatch.chdir(tmp_path)
    model = onnx.load_from_string(make_model())
    onnx.save(model, "model.onnx", save_as_external_data=True, location="weights", size_threshold=64)
    assert Path("weights").stat().st_size > 64
    with pytest.raises(
        ModelError, match=r"keeps its weights in another file, expected one file: .*external_data=False"
    ):
        OnnxEvaluator("model.onnx", game=Shape())
