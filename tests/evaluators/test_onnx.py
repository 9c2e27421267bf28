"""OnnxEvaluator: what is loaded fits, answers, and is told apart; what does not is refused in one line."""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

import azpy
from azpy.errors import AzpyError, ModelError, RunError, SettingsError
from azpy.evaluators.onnx import OnnxEvaluator, logits_of_priors
from azpy.runs.folder import RunFolder
from models import make_model, make_priors_model
from running import at_once, program

# Stands for a game: two planes of 3 x 3, nine actions.
SHAPE: Any = SimpleNamespace(num_actions=9, obs_shape=(2, 3, 3))


def priors_of(model: bytes, states: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The model's own arithmetic, in numpy."""
    weights = {item.name: numpy_helper.to_array(item) for item in onnx.load_from_string(model).graph.initializer}
    flat = states.reshape(len(states), -1).astype(np.float64)
    raw = flat @ weights["policy"]
    shares = np.exp(raw - raw.max(axis=1, keepdims=True)) * weights["mask"]
    return shares / shares.sum(axis=1, keepdims=True), np.tanh(flat @ weights["value"])[:, 0]


def renormalised(priors: NDArray[np.float64], legal: Sequence[int]) -> NDArray[np.float64]:
    """What search should make of priors over all actions."""
    mass = [float(priors[action]) for action in legal]
    return np.array([p / sum(mass) if sum(mass) > 0 else 1 / len(legal) for p in mass])


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(weights / weights.sum(), np.float64)


def test_answers_with_the_model_s_own_arithmetic(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(make_model())
    evaluator = OnnxEvaluator(path, game=SHAPE)
    observations = np.random.default_rng(0).random((5, 2, 3, 3), dtype=np.float32)
    logits, values = evaluator.evaluate_batch(observations)
    weights = {item.name: numpy_helper.to_array(item) for item in onnx.load(path).graph.initializer}
    flat = observations.reshape(5, -1)
    np.testing.assert_allclose(logits, flat @ weights["policy"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(values, np.tanh(flat @ weights["value"])[:, 0], rtol=1e-5, atol=1e-6)
    assert logits.dtype == values.dtype == np.float32
    assert (evaluator.obs_shape, evaluator.num_actions) == ((2, 3, 3), 9)


@pytest.mark.parametrize(
    ("observations", "got"),
    [
        (np.zeros((4, 3, 3, 3), np.float32), "float32 [4, 3, 3, 3]"),
        (np.zeros((2, 3, 3), np.float32), "float32 [2, 3, 3]"),
        (np.zeros((4, 2, 3, 3)), "float64 [4, 2, 3, 3]"),
        (np.zeros((4, 2, 3, 3), np.uint8), "uint8 [4, 2, 3, 3]"),
        (np.zeros((4, 2, 3, 3)).tolist(), "list, not a numpy array"),
    ],
)
def test_observations_of_another_form_are_refused(observations: Any, got: str) -> None:
    with pytest.raises(ModelError) as caught:
        OnnxEvaluator(make_model()).evaluate_batch(observations)
    assert str(caught.value) == f"model takes observations float32 [B, 2, 3, 3], got {got}"


@pytest.mark.parametrize(("differs_from", "first", "batch"), [(64, 0, 64), (65, 0, 200), (200, 0, 200), (41, 40, 64)])
def test_rows_that_differ_in_large_batches_are_noticed(
    differs_from: int, first: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a batch of so many rows those from the first on are others than alone."""
    exact = OnnxEvaluator._evaluate

    def rounded(self: OnnxEvaluator, observations: Any) -> Any:
        logits, values = exact(self, observations)
        if len(values) >= differs_from:
            values[first:] = np.nextafter(values[first:], np.float32(2))
        return logits, values

    monkeypatch.setattr(OnnxEvaluator, "_evaluate", rounded)
    assert not OnnxEvaluator(make_model(), batch=batch).row_exact
    assert OnnxEvaluator(make_model(), batch=differs_from - 1).row_exact


def test_network_id_is_a_hash_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(make_model())
    same, other = OnnxEvaluator(path).network_id, OnnxEvaluator(make_model(weight=0.25)).network_id
    assert same == OnnxEvaluator(make_model()).network_id == OnnxEvaluator(path).fork().network_id
    assert same != other
    assert 0 < same < 2**64


@pytest.mark.parametrize("fixed", [False, True])
def test_forks_answer_from_other_threads(fixed: bool) -> None:
    evaluator = OnnxEvaluator(make_priors_model(batch=4) if fixed else make_model())
    batches = [np.random.default_rng(seed).random((11, 2, 3, 3), dtype=np.float32) for seed in range(4)]
    expected = [evaluator.evaluate_batch(batch)[0] for batch in batches]

    def work(index: int, fork: OnnxEvaluator) -> bool:
        return all((fork.evaluate_batch(batches[index])[0] == expected[index]).all() for _ in range(100))

    assert all(at_once(*(partial(work, index, evaluator.fork()) for index in range(4))))


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (make_model(actions=7), "9"),
        (make_model(shape=("batch", 3, 3, 3)), "[3, 3, 3]"),
        (make_model(names=("x", "logits", "values")), "['x']"),
        (make_model(names=("observations", "p", "values")), "'p'"),
        (make_model(dtype=TensorProto.DOUBLE), "tensor(double)"),
        (make_priors_model(fixed_outputs=4), "batch sizes [None, 4, 4]"),
        (make_model(shape=("batch", 18)), "observations has shape ['batch', 18], expected 4 dimensions"),
        (make_model(shape=("batch", 2, "height", 3)), "may be free, got observations [B, [2, 'height', 3]]"),
        (make_priors_model(names=("States", "Priors", "v")), "['States'] to ['Priors', 'v']"),
        (make_priors_model(per_row=2), "it gives 2 numbers as the value of a position, expected 1"),
        (make_priors_model(per_row=7), "expected one value a row, or one a player"),
        (make_priors_model(softmax=False), "sum to"),
        (make_model(weight=float("nan")), "NaN"),
        (make_model()[:-50], "not a usable ONNX model"),
        (b"", "not a usable ONNX model"),
        (b"\x00not a model", "not a usable ONNX model"),
    ],
)
def test_models_that_do_not_fit_are_refused_in_one_line(model: bytes, text: str) -> None:
    with pytest.raises(ModelError) as caught:
        OnnxEvaluator(model, game=SHAPE)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_model_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nowhere\.onnx cannot be read: No such file"):
        OnnxEvaluator(tmp_path / "nowhere.onnx")
    with pytest.raises(ModelError, match="cannot be read"):
        OnnxEvaluator(tmp_path)
    assert issubclass(ModelError, ValueError)
    assert issubclass(ModelError, AzpyError)


def run_of(path: Path, *iterations: int) -> Path:
    """A run folder of tic_tac_toe; each iteration's model has that weight."""
    with RunFolder(path, {"game": "tic_tac_toe"}) as folder:
        for iteration in iterations:
            model = make_model(shape=("batch", *TIC_TAC_TOE.obs_shape), weight=iteration)
            folder.save_checkpoint(iteration, model={}, optimizer={}, state={}, onnx=model)
    return path


TIC_TAC_TOE = azpy.make_game("tic_tac_toe")


def test_a_run_folder_stands_for_its_newest_checkpoint(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 1, 12)
    first, newest = (run / f"checkpoints/{iteration:06d}" for iteration in (1, 12))
    evaluator = OnnxEvaluator(run, game="tic_tac_toe")
    assert evaluator.network_id == OnnxEvaluator(newest).network_id == OnnxEvaluator(newest / "model.onnx").network_id
    assert evaluator.network_id != OnnxEvaluator(first).network_id
    assert repr(str(newest)) in repr(evaluator)
    with pytest.raises(ModelError, match="does not fit the game"):
        OnnxEvaluator(run, game="connect_four(width=5)")
    with pytest.raises(SettingsError, match="unknown game"):
        OnnxEvaluator(run, game="chequers")
    (newest / "model.onnx").write_bytes(b"damaged")
    with pytest.raises(ModelError, match=r"cannot be read: .*000012 is damaged: model\.onnx differs"):
        OnnxEvaluator(run)
    with pytest.raises(ModelError, match=r"cannot be read: .* has no checkpoint yet"):
        OnnxEvaluator(run_of(tmp_path / "new"))


def test_a_run_is_loaded_in_one_call(tmp_path: Path) -> None:
    run = azpy.load_run(run_of(tmp_path / "run", 1, 12))
    assert (run.path, run.iteration, run.settings.game) == (tmp_path / "run", 12, "tic_tac_toe")
    assert run.start.to_text() == TIC_TAC_TOE.to_text()
    assert run.evaluator is run.evaluator
    assert run.evaluator.network_id == OnnxEvaluator(tmp_path / "run").network_id
    assert azpy.Search(run.evaluator, simulations=10).run(run.start).visits.sum() == 10
    with pytest.raises(RunError, match="is not a run folder: it has no config"):
        azpy.load_run(tmp_path)
    with pytest.raises(RunError, match="has no checkpoint yet"):
        azpy.load_run(run_of(tmp_path / "new")).iteration  # noqa: B018


def test_load_run_imports_onnxruntime_with_the_evaluator(tmp_path: Path) -> None:
    said = program(f"""
        import sys, azpy
        run = azpy.load_run({str(run_of(tmp_path / "run", 1))!r})
        print(run.start.turn, run.iteration, "onnxruntime" in sys.modules)
        run.evaluator
        print("onnxruntime" in sys.modules, "torch" in sys.modules)
    """)
    assert said == (0, "0 1 False\nTrue False\n", "")


@pytest.mark.parametrize("device", ["CPU", "", "gpu", "cpu:1", "cuda:", "cuda:-1", "cuda:one", None, 3])
def test_an_unknown_device_is_refused(device: Any) -> None:
    with pytest.raises(SettingsError, match=r"^device must be cpu, .*, webgpu, openvino, azpy or auto, got "):
        OnnxEvaluator(make_model(), device)


@pytest.mark.parametrize("place", ["weights", "../weights", "/absolute"])
def test_an_untrusted_model_reads_no_other_file(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    whole = onnx.load_from_string(make_model())
    onnx.save(whole, "model.onnx", save_as_external_data=True, location="weights", size_threshold=64)
    model = onnx.load("model.onnx", load_external_data=False)
    shutil.copy("weights", tmp_path / "weights")  # the bytes that the model asks for lie at each of these places
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = place.replace("/absolute", str(tmp_path / "weights"))
    with pytest.raises(ModelError, match="keeps its weights in a separate file"):
        OnnxEvaluator(model.SerializeToString(), game=SHAPE)


# Models of other forms


@pytest.mark.parametrize("flat_values", [False, True])
@pytest.mark.parametrize("names", [("States", "Priors", "Values"), ("states", "PRIORS", "values")])
def test_models_with_priors_answer_with_their_logits(names: tuple[str, str, str], flat_values: bool) -> None:
    model = make_priors_model(names=names, never=(2, 5), flat_values=flat_values)
    evaluator = OnnxEvaluator(model, game=SHAPE)
    assert evaluator.signature.kind == "priors"
    states = np.random.default_rng(0).random((5, 2, 3, 3), dtype=np.float32)
    logits, values = evaluator.evaluate_batch(states)
    priors, expected = priors_of(model, states)
    assert logits.shape == (5, 9)
    assert values.shape == (5,)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
    for row in range(5):
        for legal in ([0, 1, 3], [1, 2, 5, 8], list(range(9))):
            np.testing.assert_allclose(softmax(logits[row, legal]), renormalised(priors[row], legal), atol=1e-6)
        np.testing.assert_array_equal(softmax(logits[row, [2, 5]]), [0.5, 0.5])  # no mass at all


def test_small_priors_keep_their_ratios_and_zero_stays_finite() -> None:
    least = float(np.finfo(np.float32).tiny)
    priors = np.array([[1 - 1e-7, 4e-20, 1e-20, 0, least, least / 8, 0, 0]], np.float32)
    logits = logits_of_priors(priors, "a model")
    assert logits.dtype == np.float32
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(softmax(logits[0, [1, 2]]), [0.8, 0.2], rtol=1e-5)
    assert softmax(logits[0, [0, 3]]).tolist()[1] < 1e-37
    np.testing.assert_array_equal(softmax(logits[0, [3, 4, 5, 6, 7]]), [0.2] * 5)
    assert np.isnan(logits_of_priors(np.array([[np.nan, 1]], np.float32), "a model")[0, 0])
    with pytest.raises(ModelError, match=r"a model has a prior of -0\.25, .*name the output 'logits'"):
        logits_of_priors(np.array([[1.25, -0.25]], np.float32), "a model")


@pytest.mark.parametrize("batch", [1, 4, 256])
def test_a_model_of_a_fixed_batch_answers_any_number_of_rows(batch: int) -> None:
    model = make_priors_model(batch=batch)
    evaluator = OnnxEvaluator(model, game=SHAPE)
    assert evaluator.signature.batch == batch
    assert evaluator.description == f"CPU, fp32, 1 thread per batch of {batch} rows"
    for rows in (1, 3, 4, 5, 9, 300):
        states = np.random.default_rng(rows).random((rows, 2, 3, 3), dtype=np.float32)
        logits, values = evaluator.evaluate_batch(states)
        priors, expected = priors_of(model, states)
        np.testing.assert_allclose(np.exp(logits), priors, atol=1e-5)
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
