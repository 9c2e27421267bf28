"""Batches on a GPU, on a machine that has none: buckets, and sessions that are freed."""

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from azpy.devices import BUCKETS, chunks
from azpy.evaluators import sessions
from azpy.evaluators.onnx import OnnxEvaluator
from fake_onnxruntime import ACTIONS, Session, answer, gpu_on_the_cpu, install
from test_onnx import make_model, make_priors_model

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


def test_rows_that_differ_between_buckets_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert OnnxEvaluator(MODEL, "cuda").row_exact
    exact = Session.run

    def inexact(self: Session, names: list[str], feed: dict[str, Any]) -> list[Any]:
        logits, values = exact(self, names, feed)
        return [logits, values + np.float32(1e-6) * (len(values) == 256)]

    monkeypatch.setattr(Session, "run", inexact)
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


@pytest.mark.parametrize("named", ["other names, priors and values [B, 1]", "the usual names"])
def test_buckets_work_with_the_real_onnx_runtime(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls that a GPU gets, made on the CPU: names, shapes and copies are the real ones."""
    gpu_on_the_cpu(monkeypatch)
    model = make_model() if named == "the usual names" else make_priors_model()
    evaluator, on_gpu = OnnxEvaluator(model), OnnxEvaluator(model, "cuda", buckets=(4, 16))
    for count in (1, 4, 5, 16, 37):
        logits, values = on_gpu.evaluate_batch(rows(count, seed=count))
        expected_logits, expected_values = evaluator.evaluate_batch(rows(count, seed=count))
        np.testing.assert_array_equal(logits, expected_logits)
        np.testing.assert_array_equal(values, expected_values)
    kept = logits.copy()
    on_gpu.evaluate_batch(rows(37, seed=1))
    np.testing.assert_array_equal(logits, kept)


# Sessions


def test_old_sessions_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    evaluator = OnnxEvaluator(MODEL, "cuda")
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


def test_no_bucket_is_prepared_beyond_the_batches_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = install(monkeypatch)
    for batch, buckets in ((1, [8]), (8, [8]), (9, [8, 32]), (64, [8, 32, 128]), (5000, list(BUCKETS))):
        machine.batches.clear()
        evaluator = OnnxEvaluator(MODEL, "cuda", batch=batch)
        assert machine.batches[:-1] == buckets  # the last is the look at an empty board
        np.testing.assert_array_equal(evaluator.evaluate_batch(rows(700))[0], answer(rows(700))[0])


def test_sessions_of_webgpu_take_turns() -> None:
    """To run, to end and to be made: one at a time, for all sessions of the process."""
    alone = list[bool]()

    def others_wait() -> None:
        def look() -> None:
            free = sessions._SESSION_LOCK.acquire(blocking=False)
            alone.append(not free)
            if free:
                sessions._SESSION_LOCK.release()

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()

    class Native:
        def run(self, names: list[str], feed: dict[str, Any]) -> list[str]:
            others_wait()
            return names

        def __del__(self) -> None:
            others_wait()

    session = sessions._OneAtATime(Native())
    assert session.run(["logits"], {}) == ["logits"]
    del session
    gc.collect()
    assert alone == [True, True]
