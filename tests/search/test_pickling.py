"""What can be pickled comes back the same, in a process of its own too; what cannot says why not, and what to do."""

import copy
import multiprocessing
import operator
import pickle
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy import _core
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.pending import Pending
from azpy.serving.queries import Session
from models import probe_model

START = azpy.make_game("tic_tac_toe")
BOARDS = np.stack([START.observation()] * 2)
COPIES: list[Callable[[Any], Any]] = [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy]
REFUSED = "cannot be pickled or copied: it belongs to the memory and the threads of this process. Make another one"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(probe_model(START.obs_shape, START.num_actions, layers=1, channels=4))
    return path


def a_game() -> azpy.GameRecord:
    return next(iter(azpy.SelfPlay(START, azpy.RolloutEvaluator(3), games=1, simulations=9)))


def visits(evaluator: Any) -> list[int]:
    return azpy.Search(evaluator, simulations=60).run(START).visits.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("copied", COPIES)
def test_records_and_evaluators_come_back_the_same(copied: Callable[[Any], Any], model: Path) -> None:
    record = a_game()
    assert copied(record).to_bytes() == record.to_bytes()
    assert copied([record, record])[0].actions.tolist() == record.actions.tolist()
    for evaluator in (azpy.UniformEvaluator(), azpy.RolloutEvaluator(5), azpy.RolloutEvaluator(2**64 - 1)):
        assert visits(copied(evaluator)) == visits(evaluator)
    assert visits(azpy.RolloutEvaluator(6)) != visits(azpy.RolloutEvaluator(5)), "the seed counts"
    network = OnnxEvaluator(model, game=START, batch=16)
    again = copied(network)
    assert (again.network_id, again.device, again._batches) == (network.network_id, "cpu", (16,))
    for one, other in zip(again.evaluate_batch(BOARDS), network.evaluate_batch(BOARDS), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_model_is_pickled_by_its_path_or_its_bytes(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    evaluator = OnnxEvaluator(Path(model.name))
    monkeypatch.chdir("/")
    data = pickle.dumps(evaluator)
    assert len(data) < len(model.read_bytes()) < len(pickle.dumps(OnnxEvaluator(model.read_bytes())))
    assert pickle.loads(data).network_id == evaluator.network_id
    assert copy.copy(evaluator)._runner is evaluator._runner, "a plain copy, and a fork, share the session"
    assert evaluator.fork()._runner is evaluator._runner
    from_bytes = pickle.dumps(OnnxEvaluator(model.read_bytes(), threads=2))
    model.write_bytes(probe_model(START.obs_shape, START.num_actions, layers=1, channels=4, seed=1))
    with pytest.raises(
        ValueError, match=r"model.onnx holds a different network now: it changed after the evaluator was pick"
    ):
        pickle.loads(data)
    model.unlink()
    with pytest.raises(ValueError, match=r"model .*model.onnx cannot be read: No such file"):
        pickle.loads(data)
    assert pickle.loads(from_bytes).network_id == evaluator.network_id


def test_a_subclass_of_onnx_evaluator_needs_a_reduce_method(model: Path) -> None:
    class Named(OnnxEvaluator):
        def __init__(self, name: str) -> None:
            super().__init__(model)

    named = Named("Ann")
    with pytest.raises(
        TypeError, match="Named cannot be pickled: a subclass of OnnxEvaluator must define its own __reduce__"
    ):
        pickle.dumps(named)
    assert type(named.fork()) is Named


def test_a_torch_evaluator_is_pickled_with_its_weights() -> None:
    pytest.importorskip("torch")
    from azpy.learning.network import Network

    network = azpy.TorchEvaluator(Network(START.obs_shape, START.num_actions, "1x8"))
    for copied in COPIES:
        again = copied(network)
        assert again.network_id == network.network_id
        for one, other in zip(again.evaluate_batch(BOARDS), network.evaluate_batch(BOARDS), strict=True):
            np.testing.assert_array_equal(one, other)


def test_processes_that_are_spawned_get_them(model: Path) -> None:
    record, network = a_game(), OnnxEvaluator(model, game="tic_tac_toe")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        sent: list[Future[Any]] = [
            processes.submit(operator.methodcaller("to_bytes"), record),
            processes.submit(operator.attrgetter("network_id"), network),
            processes.submit(operator.methodcaller("evaluate_batch", BOARDS), network),
            processes.submit(copy.copy, record),  # and back
            processes.submit(visits, azpy.RolloutEvaluator(7)),
        ]
        data, number, answer, returned, counts = [each.result(100) for each in sent]
        refused = processes.submit(id, azpy.Search(network))
        with pytest.raises(TypeError, match=f"azpy.Search {REFUSED}"):
            refused.result(100)
    assert data == returned.to_bytes() == record.to_bytes()
    assert number == network.network_id
    np.testing.assert_array_equal(answer[0], network.evaluate_batch(BOARDS)[0])
    assert counts == visits(azpy.RolloutEvaluator(7))


def test_objects_bound_to_a_process_refuse_to_pickle() -> None:
    search = azpy.Search(azpy.UniformEvaluator(), simulations=9)
    result = search.run(START)
    with azpy.Engine(azpy.UniformEvaluator()) as engine:
        found: list[Any] = [search, result, azpy.VectorSearch([START], azpy.UniformEvaluator())]
        found += [engine, engine.game(START), engine.submit(START, simulations=4)]
        found += [azpy.SelfPlay(START, azpy.UniformEvaluator(), games=1), azpy.ReplayBuffer(START)]
        found += [azpy.make_game("chess").read_variations("1. e4 e5"), _core.Walk(START), _core.Walk(START).facts()]
        found += [Session({}, print)]
        for one in found:
            for copied in (pickle.dumps, copy.copy, copy.deepcopy, lambda one: pickle.dumps([{"it": one}])):
                with pytest.raises(TypeError, match=rf"^azpy\.\S*{type(one).__name__} {REFUSED} where it is needed"):
                    copied(one)


def test_every_class_of_the_core_is_pickled_or_says_why_not() -> None:
    import copyreg

    classes = [one for one in (*vars(_core).values(), Pending) if isinstance(one, type)]
    assert len(classes) > 20
    for one in classes:
        own = issubclass(one, BaseException) or "__reduce__" in vars(one)
        assert own != (copyreg.dispatch_table.get(one) is _core.stays_here), one
    for kind in (azpy.CoreError, azpy.EvaluatorError, azpy.GameError):
        assert pickle.loads(pickle.dumps(kind("why"))).args == ("why",)
