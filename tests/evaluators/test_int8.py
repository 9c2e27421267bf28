"""int8: the int8 model says nearly the same, plays only then, and a run with it is as reproducible as others."""

import itertools
import math
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import azpy
import training_runs
from azpy.cli.export import main as export
from azpy.errors import ModelError
from azpy.evaluators import drift as parity
from azpy.evaluators.drift import Drift, drift
from azpy.evaluators.int8 import times_as_fast, to_int8
from azpy.evaluators.onnx import OnnxEvaluator, network_id
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.playing.replay_check import repeat_game
from azpy.runs.reader import StoredRun, read_checkpoint, read_model
from azpy.settings import Settings
from azpy.training.events import Saved, Started
from training_runs import Instead, events_of, played

SMALL: dict[str, Any] = training_runs.SMALL | {"game": "connect_four(width=5,height=4)", "precision": "int8"}
# Each iteration's games are those of the model before.
SMALL |= {"deterministic": True, "simulations": 8, "games_per_iteration": 40, "match_games": 2, "final_match_games": 2}


def train(path: Path, **changes: Any) -> list[Any]:
    return events_of(Settings(**(SMALL | changes)), path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("runs") / "int8"
    train(path)
    return path


@pytest.fixture(scope="module")
def positions(trained: Path) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Observations and legal actions, half of them for calibration."""
    run = StoredRun(trained)
    buffer = azpy.ReplayBuffer(run.start, max_positions=10_000)
    for _, record in run.games(run.sealed_iterations()):
        buffer.add(record)
    observations, legal, *_ = buffer.sample(512, seed=1)
    return observations, legal


def test_an_int8_model_is_close_to_its_fp32_model(
    trained: Path, positions: tuple[NDArray[np.float32], NDArray[np.bool_]]
) -> None:
    observations, legal = positions
    model = read_checkpoint(trained / "checkpoints/000003").onnx
    int8 = to_int8(model, observations[:256])
    assert int8 == to_int8(model, observations[:256])
    plain, quantized = OnnxEvaluator(model), OnnxEvaluator(int8)
    assert "fp32" in plain.description
    assert "int8" in quantized.description
    assert quantized.row_exact
    found = drift(plain, quantized, observations[256:], legal[256:])
    assert not found.too_far
    assert found.policy > 0
    assert found.value > 0


def test_a_network_of_flat_features_has_an_int8_model(tmp_path: Path) -> None:
    train(tmp_path, game="pig(target=10)", network="2x32", iterations=1)
    assert read_checkpoint(tmp_path / "checkpoints/000001").int8 is not None


def test_the_last_layers_stay_exact() -> None:
    network = Network((47, 4, 4), 48, "1x16", range(16))
    rows = np.random.default_rng(0).random((64, 47, 4, 4), dtype=np.float32)
    graph = onnx.load_from_string(to_int8(to_onnx(network), rows)).graph
    weights = [node.input[1] for node in graph.node if node.op_type in {"Conv", "Gemm", "MatMul"}]
    quantized = [name for name in weights if "DequantizeLinear" in name]
    assert set(weights) - set(quantized) == {"policy.2.weight", "value.3.weight", "value.5.weight"}
    assert len(quantized) == 5


def test_heads_without_a_size_have_int8_convolutions_alone(caplog: pytest.LogCaptureFixture) -> None:
    """ONNX Runtime has no int8 form of the norm of means and maxima, and wrote two lines in each iteration."""
    game = azpy.make_game("go(size=5)")
    rows = np.random.default_rng(0).random((64, *game.obs_shape), dtype=np.float32)
    graph = onnx.load_from_string(to_int8(to_onnx(Network.of(game, "1x16+conv")), rows)).graph
    norms = [each.input[1] for each in graph.node if each.op_type == "BatchNormalization"]
    assert len(norms) == 2
    assert not [weight for weight in norms if "DequantizeLinear" in weight]
    assert not caplog.records


def test_drift_equals_a_slow_computation() -> None:
    rng = np.random.default_rng(0)
    shape = (50, 6)
    logits, others = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    values, other_values = (rng.uniform(-1, 1, 50).astype(np.float32) for _ in range(2))
    legal = rng.random(shape) < 0.6
    legal[:, 2] = True
    plain, other = (Mock(evaluate_batch=lambda _, it=it: it) for it in ((logits, values), (others, other_values)))
    found = drift(plain, other, np.zeros((50, 1, 1, 1), np.float32), legal)
    divergence, agreed = 0.0, 0
    for row in range(50):
        actions = np.flatnonzero(legal[row]).tolist()
        priors, others_ = ([math.exp(float(each[row, a])) for a in actions] for each in (logits, others))
        priors, others_ = ([p / sum(each) for p in each] for each in (priors, others_))
        divergence += sum(p * math.log(p / q) for p, q in zip(priors, others_, strict=True))
        agreed += priors.index(max(priors)) == others_.index(max(others_))
    assert found.policy == pytest.approx(divergence / 50, rel=1e-6)
    assert found.value == pytest.approx(math.sqrt(np.mean((values - other_values) ** 2)), rel=1e-6)
    assert found.agreement == agreed / 50


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"policy": 0.011}, "policies differ by 0.011 nats"),
        ({"value": 0.06}, "values differ by 0.06"),
        ({"agreement": 476 / 512}, "best actions agree in 92.97%, expected at least 93.00%"),
        ({"policy": math.nan}, "policies differ by nan"),
    ],
)
def test_the_gate_names_the_measure_that_fails(change: dict[str, float], words: str) -> None:
    good = Drift(policy=0.001, value=0.01, agreement=0.99)
    assert not good.too_far
    assert words in replace(good, **change).too_far


def test_int8_plays_from_iteration_2_and_games_repeat(trained: Path) -> None:
    run = StoredRun(trained)
    first, second = (read_checkpoint(trained / f"checkpoints/{n:06d}") for n in (1, 2))
    assert first.int8 is not None
    assert second.int8 is not None
    assert played(trained, 2) == {network_id(first.int8)}
    assert played(trained, 3) == {network_id(second.int8)}
    comparison = repeat_game(run, next(record for _, record in run.games([3])))
    assert comparison.difference is None
    assert comparison.model == "the int8 model of checkpoint 2"
    assert all(0 < row["int8_policy"] < Drift.MOST_POLICY for row in run.iterations())


def test_an_int8_model_that_is_too_far_does_not_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity.Drift, "MOST_POLICY", 0.0)
    events = train(tmp_path, iterations=2)
    advice = [event.advice or "" for event in events if isinstance(event, Saved)]
    assert all("playing in fp32: the int8 model differs too much from it: policies differ" in text for text in advice)
    assert not list(tmp_path.glob("checkpoints/*/model.int8.onnx"))
    assert played(tmp_path, 2) == {network_id(read_checkpoint(tmp_path / "checkpoints/000001").onnx)}


def test_a_deterministic_run_in_parts_is_the_run_in_one_go(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole")[-1]
    events_of(Settings(**SMALL), tmp_path / "parts", until=2)
    events = train(tmp_path / "parts")
    started = next(event for event in events if isinstance(event, Started))
    assert "int8" in started.evaluator.split(", and")[0]
    assert (events[-1].games_hash, events[-1].weights_hash) == (whole.games_hash, whole.weights_hash)


# A run with these settings differs each time. Its network likes many actions equally: int8 may choose others.
FREE: dict[str, Any] = {"deterministic": False, "games_per_iteration": 20, "passes": 1.0}


@pytest.fixture
def whatever_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """int8 passes its check in a run with `FREE`, whatever chance makes of the network."""
    monkeypatch.setattr(parity.Drift, "LEAST_AGREEMENT", 0.0)


def said(events: list[Any]) -> set[str]:
    return {event.advice or "" for event in events if isinstance(event, Saved)}


@pytest.mark.usefixtures("whatever_agrees")
def test_each_network_that_plays_on_has_its_int8_model(tmp_path: Path) -> None:
    # More games than may wait to be taken, so that each network plays some.
    events = train(tmp_path, **FREE | {"games_per_iteration": 150})
    first, second, last = (read_checkpoint(tmp_path / f"checkpoints/{n:06d}") for n in (1, 2, 3))
    assert first.int8 is not None
    assert second.int8 is not None
    assert last.int8 is None  # it plays no games
    assert not any("int8" in text for text in said(events))
    for row in StoredRun(tmp_path).iterations()[:2]:
        assert 0 < row["int8_policy"] < Drift.MOST_POLICY


@pytest.mark.usefixtures("whatever_agrees")
def test_a_missing_int8_model_is_made_when_the_run_resumes(tmp_path: Path) -> None:
    train(tmp_path, **FREE, iterations=1)
    checkpoint = tmp_path / "checkpoints/000001"
    assert read_checkpoint(checkpoint).int8 is None
    (checkpoint / "model.int8.onnx").write_bytes(b"half of")  # killed before the manifest had it
    assert read_model(checkpoint) == read_checkpoint(checkpoint).onnx
    events = train(tmp_path, **FREE, iterations=2)
    started = next(event for event in events if isinstance(event, Started))
    assert "int8" in started.evaluator.split(", and")[0]
    int8 = read_checkpoint(checkpoint).int8
    assert int8 is not None
    assert network_id(int8) in played(tmp_path, 2)


def test_the_reason_int8_does_not_play_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(model: bytes, observations: NDArray[np.float32]) -> bytes:
        raise ModelError("no space left in /nowhere")

    monkeypatch.setattr("azpy.training.generations.to_int8", fails)
    events = train(tmp_path, **FREE, iterations=2)
    expected = "playing in fp32: int8 is not possible for this network: no space left in /nowhere"
    assert any(expected in text for text in said(events))
    with pytest.raises(ModelError, match="no space left"):  # what chance decides is not a deterministic run
        train(tmp_path / "deterministic")


@pytest.mark.usefixtures("whatever_agrees")
def test_int8_is_timed_while_self_play_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plays, timed = list[Any](), list[bool]()

    class Watched(Instead):
        rests = False

        def __init__(self, play: azpy.SelfPlay) -> None:
            super().__init__(play)
            plays.append(self)

        def pause(self) -> None:
            self._play.pause()
            self.rests = True

        def resume(self) -> None:
            self.rests = False
            self._play.resume()

    def as_fast(*_: Any) -> float:
        # In the thread that would wake it.
        timed.append(threading.current_thread() is threading.main_thread() and all(play.rests for play in plays))
        return 2.0

    Watched.take_the_place_of_self_play(monkeypatch)
    monkeypatch.setattr("azpy.training.generations.times_as_fast", as_fast)
    train(tmp_path, **FREE, precision="auto", iterations=2)
    assert len(plays) == 1
    assert timed == [True]


@pytest.mark.parametrize(("times", "plays"), [(1.5, True), (1.05, False)])
@pytest.mark.usefixtures("whatever_agrees")
def test_auto_takes_int8_where_it_is_faster(
    times: float, plays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def as_fast(model: Any, int8: Any, observations: NDArray[np.float32]) -> float:
        assert "int8" in int8.description
        asked.append(len(observations))
        return times

    monkeypatch.setattr("azpy.training.generations.times_as_fast", as_fast)
    events = train(tmp_path, **FREE, precision="auto")
    assert asked == [8]  # rows as in self-play; once is enough to know
    assert (tmp_path / "checkpoints/000002/model.int8.onnx").exists() == plays
    assert not any("int8" in (event.advice or "") for event in events if isinstance(event, Saved))


def test_auto_is_fp32_where_games_must_be_equal_elsewhere(tmp_path: Path) -> None:
    events = train(tmp_path, precision="auto", iterations=2)
    assert not list(tmp_path.glob("checkpoints/*/model.int8.onnx"))
    assert events[-1].games_hash == train(tmp_path / "fp32", precision="fp32", iterations=2)[-1].games_hash


def test_timing_compares_both_models_on_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0

    class Slow:
        def __init__(self, *seconds: float) -> None:
            self.seconds, self.rows = itertools.cycle(seconds), set[int]()

        def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[Any, Any]:
            nonlocal now
            self.rows.add(len(observations))
            now += next(self.seconds)
            return observations, observations

    def timed(call: Callable[[], object], number: int) -> float:
        begin = now
        call()
        return now - begin

    monkeypatch.setattr("azpy.evaluators.int8.timeit", timed)
    model, int8 = Slow(0.3, 0.3, 70.0), Slow(0.1)  # whatever else the machine does now and then
    assert times_as_fast(cast(Any, model), cast(Any, int8), np.zeros((9, 1, 1, 1), np.float32)) == pytest.approx(3)
    assert model.rows == int8.rows == {9}


def test_an_int8_model_can_be_exported(trained: Path, tmp_path: Path, printed: Any) -> None:
    model, int8 = tmp_path / "plain.onnx", tmp_path / "int8.onnx"
    command = [str(trained), "--onnx", str(model), "--onnx-int8", str(int8), "--checkpoint", "2"]
    assert "the int8 model of checkpoint 2" in printed(export, command)
    rows = np.random.default_rng(0).random((64, *OnnxEvaluator(model).obs_shape), dtype=np.float32)
    logits, values = OnnxEvaluator(model).evaluate_batch(rows)
    int8_logits, int8_values = OnnxEvaluator(int8).evaluate_batch(rows)
    assert 0 < np.abs(logits - int8_logits).max() < 0.5
    assert 0 < np.abs(values - int8_values).max() < 0.2


def test_an_int8_model_that_is_too_far_is_not_exported(
    trained: Path, tmp_path: Path, one_line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parity.Drift, "LEAST_AGREEMENT", 1.1)
    said = one_line(export, [str(trained), "--onnx-int8", str(tmp_path / "int8.onnx")], "az-export: ")
    assert "differs too much from it: best actions agree in" in said
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_a_model_is_refused() -> None:
    with pytest.raises(ModelError, match="cannot be quantized"):
        to_int8(b"nonsense", np.zeros((4, 3, 6, 7), np.float32))
