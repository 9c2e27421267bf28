"""Batches on a GPU, on a machine that has none: buckets, memory that is kept, recorded graphs, who waits for whom."""

import ctypes
import gc
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from azpy.devices import BUCKETS, chunks
from azpy.evaluators.compact import Form
from azpy.evaluators.gpu import OnGpu, Turns, _driver_of
from azpy.evaluators.onnx import OnnxEvaluator
from fake_onnxruntime import ACTIONS, CPU, Driver, Machine, Session, answer, install

MODEL = b"any model"


def rows(count: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).random((count, 2, 3, 3), dtype=np.float32)


# Buckets


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 32, 33, 200, 512, 513, 1100])
def test_padding_and_chunks_change_no_row(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda")
    evaluator.evaluate_batch(rows(512, seed=9) * 100)  # what earlier batches leave behind must not show
    machine.batches.clear()
    logits, values = evaluator.evaluate_batch(rows(count))
    expected_logits, expected_values = answer(rows(count))
    np.testing.assert_array_equal(logits, expected_logits)
    np.testing.assert_array_equal(values, expected_values)
    assert logits.shape == (count, ACTIONS)
    assert logits.dtype == values.dtype == np.float32
    assert machine.batches == [bucket for _, _, bucket in chunks(count, BUCKETS)]


def test_an_answer_is_not_changed_by_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda")
    logits, values = evaluator.evaluate_batch(rows(5))
    kept = logits.copy(), values.copy()
    evaluator.evaluate_batch(rows(5, seed=1))
    np.testing.assert_array_equal(logits, kept[0])
    np.testing.assert_array_equal(values, kept[1])


def test_every_bucket_is_prepared_before_the_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    OnnxEvaluator(MODEL, "cuda", buckets=(2, 4, 6))
    assert machine.batches[:3] == [2, 4, 6]
    assert sorted(shape for shape, _, _ in machine.memory if len(shape) == 4) == [(n, 2, 3, 3) for n in (2, 4, 6)]


def test_rows_that_differ_between_buckets_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert OnnxEvaluator(MODEL, "cuda").row_exact
    exact = Session.run_with_iobinding

    def inexact(self: Session, binding: Any, options: Any = None) -> None:
        exact(self, binding, options)
        binding.bound["values"].array[:] += np.float32(1e-6) * (len(binding.bound["values"].array) == 256)

    monkeypatch.setattr(Session, "run_with_iobinding", inexact)
    assert not OnnxEvaluator(MODEL, "cuda").row_exact


def test_a_fork_on_a_gpu_has_a_session_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda", buckets=(8,))
    before = len(machine.gpu_sessions)
    fork = evaluator.fork()
    assert len(machine.gpu_sessions) == before + 1
    assert (fork.network_id, fork.device, fork.row_exact) == (evaluator.network_id, "cuda:0", True)
    wrong: list[int] = []

    def work(mine: OnnxEvaluator, seed: int) -> None:
        expected = answer(rows(5, seed))[0]
        wrong.append(sum(not (mine.evaluate_batch(rows(5, seed))[0] == expected).all() for _ in range(100)))

    threads = [threading.Thread(target=work, args=(mine, n)) for n, mine in enumerate((evaluator, fork, evaluator))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [0, 0, 0]


@pytest.mark.parametrize("driver", [Driver(), None], ids=["locked", "pageable"])
def test_buckets_work_with_the_real_onnx_runtime(driver: Any) -> None:
    """The calls that a GPU gets, made on memory of the CPU: names, shapes and copies are the real ones."""
    import onnxruntime

    from test_onnx import make_model

    session = onnxruntime.InferenceSession(make_model(), providers=[CPU])
    evaluator = OnnxEvaluator(make_model())
    form = Form(evaluator.obs_shape)
    memory = ("cpu", 0)
    runner = OnGpu(onnxruntime, lambda: session, memory, evaluator.signature, form, (4, 16), True, driver)
    for count in (1, 4, 5, 16, 37):
        logits, values = runner.run(rows(count, seed=count))
        expected_logits, expected_values = evaluator.evaluate_batch(rows(count, seed=count))
        np.testing.assert_array_equal(logits, expected_logits)
        np.testing.assert_array_equal(values, expected_values)
    kept = logits.copy()
    runner.run(rows(37, seed=1))
    np.testing.assert_array_equal(logits, kept)


def test_a_bucket_s_memory_has_the_form_of_the_model() -> None:
    """Other names, priors, and values [B, 1], with the real ONNX Runtime on memory of the CPU."""
    import onnxruntime

    from test_onnx import make_priors_model

    model = make_priors_model(batch=4)
    evaluator = OnnxEvaluator(model)
    session = onnxruntime.InferenceSession(model, providers=[CPU])
    form = Form(evaluator.obs_shape)
    runner = OnGpu(onnxruntime, lambda: session, ("cpu", 0), evaluator.signature, form, (4,), False, None)
    for count in (1, 4, 11):
        priors, values = runner.run(rows(count, seed=count))
        logits, expected = evaluator.evaluate_batch(rows(count, seed=count))
        np.testing.assert_array_equal(np.log(priors), logits)
        np.testing.assert_array_equal(values, expected)


# Memory


@pytest.mark.parametrize("locks", [True, False])
def test_a_batch_in_lent_memory_is_answered_in_kept_memory(locks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    machine.driver.locks = locks
    evaluator = OnnxEvaluator(MODEL, "cuda", buckets=(8, 32))
    assert bool(evaluator.notes) != locks
    assert evaluator.input_buffer(70) is not None  # as large as it gets
    answers = []
    for count in (5, 32, 70, 1, 40):
        memory: Any = evaluator.input_buffer(count)
        assert memory.shape == (count, 2, 3, 3)
        memory[:] = rows(count, seed=count)
        logits, values = evaluator.evaluate_batch(memory)
        expected, expected_values = answer(rows(count, seed=count))
        np.testing.assert_array_equal(logits, expected)
        np.testing.assert_array_equal(values, expected_values)
        answers.append((memory.ctypes.data, logits.ctypes.data, values.ctypes.data))
    assert len(set(answers)) == 1  # nothing is made anew for a batch


def test_where_memory_is_not_locked_it_is_said_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    machine.driver.locks = False
    evaluator = OnnxEvaluator(MODEL, "cuda")
    (note,) = evaluator.notes
    assert note.startswith("batches travel through pageable memory: the CUDA driver refuses cuMemHostRegister")
    np.testing.assert_array_equal(evaluator.evaluate_batch(rows(600))[0], answer(rows(600))[0])


def test_where_memory_is_no_longer_locked_it_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda")
    assert list(evaluator.notes) == []
    machine.driver.locks = False
    np.testing.assert_array_equal(evaluator.evaluate_batch(rows(900))[0], answer(rows(900))[0])
    (note,) = evaluator.notes
    assert note.startswith("batches travel through pageable memory: the CUDA driver refuses cuMemHostRegister")


def test_only_the_rows_that_there_are_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda", buckets=(8, 32))
    machine.driver.copied.clear()
    evaluator.evaluate_batch(rows(37))
    assert machine.driver.copied == [32, 32, 32, 5, 5, 5]  # observations, logits and values of each part


def test_threads_that_share_an_evaluator_have_memory_each(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda", buckets=(8,))
    wrong: list[int] = []

    def work(seed: int) -> None:
        bad = 0
        for turn in range(100):
            memory: Any = evaluator.input_buffer(5)
            memory[:] = rows(5, 100 * seed + turn)
            time.sleep(0)
            logits, _ = evaluator.evaluate_batch(memory)
            time.sleep(0)
            bad += not (logits == answer(rows(5, 100 * seed + turn))[0]).all()
        wrong.append(bad)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [0, 0, 0]


def test_old_sessions_and_their_memory_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda", cuda_graph=True)
    fork = evaluator.fork()
    fork.evaluate_batch(rows(5))
    gone = [weakref.ref(session) for session in machine.gpu_sessions]
    machine.sessions.clear()
    assert len(gone) == 2
    del evaluator
    gc.collect()
    assert [session() is None for session in gone] == [True, False]
    np.testing.assert_array_equal(fork.evaluate_batch(rows(5))[0], answer(rows(5))[0])
    del fork
    gc.collect()
    assert [session() for session in gone] == [None, None]
    assert [memory() for memory in machine.driver.locked if memory() is not None] == []


# Recorded graphs


def in_threads(*jobs: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.daemon = True  # what hangs fails here and not at the end
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_a_thread_records_every_bucket_before_its_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda", buckets=(4, 16), cuda_graph=True)
    machine.graphs.clear()
    in_threads(lambda: evaluator.evaluate_batch(rows(3)))
    assert machine.graphs == ["1", "2", "1"]
    machine.graphs.clear()
    evaluator.evaluate_batch(rows(3))  # this thread had recorded them when the evaluator was made
    assert machine.graphs == ["1"]


class Watch:
    """Of sessions that run: which of them record, and which meet."""

    def __init__(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.recorded = set[tuple[int, int, str]]()
        self.running = list[bool]()  # of each run that is under way, whether it records
        self.beside = list[tuple[bool, int]]()
        self._lock = threading.Lock()
        run = Session.run_with_iobinding

        def watched(session: Session, binding: Any, options: Any = None) -> None:
            key = (id(session), threading.get_ident(), options.config["gpu_graph_id"])
            with self._lock:
                records = key not in self.recorded
                self.recorded.add(key)
                self.running.append(records)
                if records or any(self.running[:-1]):
                    self.beside.append((records, len(self.running) - 1))
            time.sleep(0.002)
            run(session, binding, options)
            with self._lock:
                self.running.remove(records)

        monkeypatch.setattr(Session, "run_with_iobinding", watched)


def test_nothing_runs_beside_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    watch = Watch(machine, monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda", buckets=(4, 8), cuda_graph=True)
    forks = [evaluator, evaluator.fork(), evaluator.fork()]

    def work(mine: OnnxEvaluator) -> Callable[[], None]:
        def job() -> None:
            for _ in range(10):
                mine.evaluate_batch(rows(5))
            # Another generation's session is opened and recorded while others play.
            fork = mine.fork()
            for _ in range(5):
                np.testing.assert_array_equal(fork.evaluate_batch(rows(5))[0], answer(rows(5))[0])

        return job

    in_threads(*(work(fork) for fork in forks))
    assert len(watch.recorded) > 12
    assert {beside for _, beside in watch.beside} == {0}


@pytest.mark.parametrize("cuda_graph", [True, False])
@pytest.mark.parametrize("pipelines", [2, 3])
def test_pipelines_overlap(pipelines: int, cuda_graph: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda", buckets=(8,), cuda_graph=cuda_graph)
    forks = [evaluator, *(evaluator.fork() for _ in range(pipelines - 1))]
    recorded = threading.Barrier(pipelines)
    inside = threading.Barrier(pipelines)
    plain, met = Session.run_with_iobinding, list[int]()

    def work(mine: OnnxEvaluator) -> Callable[[], None]:
        def job() -> None:
            mine.evaluate_batch(rows(5))
            if recorded.wait(20) == 0:
                monkeypatch.setattr(Session, "run_with_iobinding", lambda *_: met.append(inside.wait(20)))
            recorded.wait(20)
            mine.evaluate_batch(rows(5))

        return job

    in_threads(*(work(fork) for fork in forks))
    monkeypatch.setattr(Session, "run_with_iobinding", plain)
    assert sorted(met) == list(range(pipelines))


def test_turns_let_nobody_in_beside_who_is_alone() -> None:
    turns, inside, seen = Turns(), list[str](), list[list[str]]()

    def visit(name: str, enter: Any) -> None:
        for _ in range(50):
            with enter():
                inside.append(name)
                time.sleep(1e-4)
                seen.append(inside.copy())
                inside.remove(name)

    shared = [lambda name=name: visit(name, turns.shared) for name in "abc"]
    alone = [lambda name=name: visit(name, turns.alone) for name in "XY"]
    in_threads(*shared, *alone)
    assert len(seen) == 250
    assert all(len(names) == 1 for names in seen if set(names) & set("XY"))
    assert any(len(names) > 1 for names in seen)


@pytest.mark.parametrize("other", ["shared", "alone"])
def test_memory_is_freed_in_a_thread_that_waits_to_be_alone(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a garbage collection, which runs in whichever thread allocates; but never beside a recording."""
    machine, turns = install(monkeypatch), Turns()
    evaluators = [OnnxEvaluator(MODEL, "cuda")]
    gone = weakref.ref(machine.gpu_sessions[0])
    machine.sessions.clear()
    monkeypatch.setattr("azpy.evaluators.gpu._TURNS", turns)
    inside, collects, freed_beside = threading.Event(), threading.Event(), list[bool]()
    wait = turns._change.wait

    def collecting(timeout: float | None = None) -> bool:
        collects.set()
        evaluators.clear()
        return wait(timeout)

    def visit() -> None:
        with getattr(turns, other)():
            inside.set()
            assert collects.wait(20)
            time.sleep(0.05)
            freed_beside.append(gone() is None)

    def be_alone() -> None:
        assert inside.wait(20)
        monkeypatch.setattr(turns._change, "wait", collecting)
        with turns.alone():
            pass

    in_threads(visit, be_alone)
    assert freed_beside == [other == "shared"]
    assert gone() is None
    in_threads(lambda: turns.alone().__enter__())


class CudaLibrary:
    """Of the driver: notes what is called."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            self.called.append(name)
            if name == "cuMemHostUnregister":
                ctypes.string_at(arguments[0].value)  # it is mapped still
            return 0

        return call


def test_memory_is_not_unlocked_beside_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    library, turns = CudaLibrary(), Turns()
    monkeypatch.setattr("ctypes.CDLL", lambda name: library)
    monkeypatch.setattr("azpy.evaluators.gpu._TURNS", turns)
    driver = _driver_of.__wrapped__(0)
    for recording in (False, True):
        array = driver.array((3, 5), np.float32)
        view = array[1:]
        assert not array.any()
        library.called.clear()
        with turns.alone() if recording else nullcontext():
            del array
            assert library.called == []
            dropped = [view]
            del view
            in_threads(dropped.clear)
            assert ("cuMemHostUnregister" in library.called) != recording
        assert library.called.count("cuMemHostUnregister") == 1


def test_an_error_inside_gives_the_turn_back() -> None:
    turns = Turns()
    for enter in (turns.alone, turns.shared):
        with pytest.raises(ValueError, match="inside"), enter():
            raise ValueError("inside")
    with turns.alone(), turns.shared():  # who is alone may share, as when memory is freed meanwhile
        pass
    in_threads(lambda: turns.alone().__enter__())
