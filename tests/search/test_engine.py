"""Requests that share batches: each gets what it would get alone, errors come as themselves, and nothing hangs."""

import asyncio
import gc
import queue
import textwrap
import threading
import time
import weakref
from concurrent.futures import CancelledError, Future, as_completed
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray
from test_engine_games import same
from test_faults import Boom

import azpy
from oracles import Batch, Countdown, Hashed, Held, after
from running import PATIENCE, at_once, program

STATE = azpy.make_game("connect_four")


def positions(count: int) -> list[azpy.State]:
    """Different ones, a few plies into the game."""
    return [after(STATE, *((number // 5 + 3 * ply) % 7 for ply in range(number % 5))) for number in range(count)]


@pytest.mark.parametrize(
    "options", [{}, {"eval_batch": 1}, {"root_noise": 0.25, "solver": True}, {"gumbel_actions": 4}]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_request_finds_what_a_search_of_its_own_finds(options: Any, threads: int) -> None:
    states = positions(40)
    sizes = [(0, 1, 30, 100, 250)[number % 5] for number in range(40)]
    with azpy.Engine(Hashed(7), max_batch=32, threads=threads, **options) as engine:
        futures = [
            engine.submit(state, size, seed=seed) for seed, (state, size) in enumerate(zip(states, sizes, strict=True))
        ]
        found = [future.result(PATIENCE) for future in futures]
    for seed, (state, size, result) in enumerate(zip(states, sizes, found, strict=True)):
        same(result, azpy.Search(Hashed(7), seed=seed, **options).run(state, size))


def test_batches_hold_what_waits_up_to_their_maximum() -> None:
    evaluator = Held()
    with azpy.Engine(evaluator, max_batch=16, eval_batch=1, cache_positions=0) as engine:
        first = engine.submit(STATE, 0)
        assert evaluator.asked.wait(PATIENCE)
        rest = [engine.submit(state, 0) for state in positions(35)]
        evaluator.leave.set()
        for future in [first, *rest]:
            future.result(PATIENCE)
        stats = engine.stats
    # The first one is held, and the others share batches: how many depends on when a thread looks at the queue.
    assert evaluator.batches[0] == 1
    assert (sum(evaluator.batches), max(evaluator.batches) <= 16, len(evaluator.batches) <= 5) == (36, True, True)
    assert (stats["requests"], stats["finished"], stats["open"], stats["left_over"]) == (36, 36, 0, 0)
    batches = len(evaluator.batches)
    assert (stats["batches"], stats["rows"], stats["fill"]) == (batches, 36, 36 / 16 / batches)
    assert 0 < stats["seconds_p50"] <= stats["seconds_p99"] < PATIENCE


def test_a_time_limit_ends_a_search_beside_others_that_go_on() -> None:
    with azpy.Engine(Hashed(7)) as engine:
        endless = [engine.submit(state, 2**32 - 1) for state in positions(20)]
        assert engine.submit(STATE, seconds=0.01).result(PATIENCE).stop == "seconds"
        assert engine.submit(STATE, seconds=0.0).result(PATIENCE).stats["evaluations"] == 1
        assert engine.submit(STATE, 10, seconds=1e15).result(PATIENCE).stop == "simulations"
        assert not any(future.done() for future in endless)
        engine.close(cancel=True)
    assert all(future.cancelled() for future in endless)


def test_a_cancelled_request_ends_and_the_others_go_on() -> None:
    with azpy.Engine(Hashed(7)) as engine:
        endless = [engine.submit(state, 2**32 - 1) for state in positions(3)]
        assert engine.submit(STATE, 100).result(PATIENCE).visits.sum() == 100
        assert all(future.cancel() for future in endless)
        assert set(as_completed(endless, PATIENCE)) == set(endless)
    assert (engine.stats["cancelled"], engine.stats["finished"]) == (3, 1)


async def until_done(request: Any) -> Any:
    return await request


def test_a_future_can_be_awaited_and_its_task_cancelled() -> None:
    async def ask(engine: azpy.Engine) -> int:
        request = engine.submit(STATE, 2**32 - 1)
        endless = asyncio.ensure_future(until_done(request))
        results = [await request for request in [engine.submit(STATE, 50, seed=n) for n in range(10)]]
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        assert request.cancelled()
        return sum(int(result.visits.sum()) for result in results)

    with azpy.Engine(Hashed(7)) as engine:
        assert asyncio.run(ask(engine)) == 500


@pytest.mark.parametrize(
    "way", ["a wrapped future", "a task", "a game's task", "a task of tasks", "the first of two", "the last of two"]
)
def test_close_sees_what_asyncio_has_just_cancelled(way: str) -> None:
    """The loop has no turn between the two calls, and has none while `close` waits."""

    async def cancel_and_close() -> Any:
        engine = azpy.Engine(azpy.UniformEvaluator(), simulations=1_000_000)
        request = engine.game(STATE).search() if "game" in way else engine.submit(STATE)
        waiting: asyncio.Future[Any] = asyncio.wrap_future(request)
        if "task" in way:
            waiting = asyncio.ensure_future(until_done(request))
        if way == "a task of tasks":
            waiting = asyncio.gather(waiting, until_done(waiting))
        waiters = [waiting]
        if "of two" in way:
            waiters.append(asyncio.wrap_future(request))
        await asyncio.sleep(0)
        waiters[-1 if way == "the last of two" else 0].cancel()
        other = asyncio.ensure_future(until_done(engine.submit(STATE, 100)))
        engine.close()
        return request, await other

    request, other = asyncio.run(cancel_and_close())
    assert request.cancelled()
    assert other.visits.sum() == 100


class Told(Exception):  # noqa: N818
    """Takes other arguments than it hands on."""

    def __init__(self, number: int, *, why: str) -> None:
        super().__init__(f"{number}: {why}")
        self.why = why


@pytest.mark.parametrize(
    "error",
    [
        Boom("on purpose"),
        SystemExit(3),
        KeyboardInterrupt(),
        Told(3, why="on purpose"),
        OSError(2, "gone", "file"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    ],
)
def test_an_evaluators_exception_ends_every_request_with_a_copy(error: BaseException) -> None:
    class Fails(Held):
        fail = True

        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            reply = super().evaluate_batch(observations)
            if self.fail:
                raise error
            return reply

    evaluator = Fails()
    with azpy.Engine(evaluator, max_batch=8, simulations=30) as engine:
        futures = [engine.submit(state) for state in positions(20)]
        evaluator.leave.set()
        found = [future.exception(PATIENCE) for future in futures]
        # Raising an exception adds to its traceback, so no two futures share one.
        assert len({id(each) for each in found}) == 20
        for each in found:
            assert (type(each), str(each), vars(each)) == (type(error), str(error), vars(error))
            assert each is not None
            assert each.args == error.args
            assert each.__traceback__ is not None
        evaluator.fail = False
        assert engine.submit(STATE).result(PATIENCE).visits.sum() == 30
        assert (engine.stats["failed"], engine.stats["finished"]) == (20, 1)


@pytest.mark.parametrize("method", ["turn", "encode", "legal_actions"])
def test_a_failing_game_fails_its_own_request_alone(method: str) -> None:
    def fail(game: Countdown) -> Any:
        if game.heap <= 17:
            raise Boom(method)
        return getattr(Countdown, method)(game)

    evaluator, fragile = Held(3), type("Countdown", (Countdown,), {method: fail})
    with azpy.Engine(evaluator, simulations=60) as engine:
        futures = [engine.submit((fragile if seed == 2 else Countdown)(20), seed=seed) for seed in range(6)]
        evaluator.leave.set()
        with pytest.raises(Boom, match=method):
            futures.pop(2).result(PATIENCE)
        twin = azpy.Search(Hashed(3), simulations=60).run(Countdown(20))
        for future in futures:
            same(future.result(PATIENCE), twin)


def test_only_a_result_keeps_its_tree() -> None:
    evaluator = Hashed(7)
    engine = azpy.Engine(evaluator, simulations=200)
    result = engine.submit(STATE).result(PATIENCE)
    twin = azpy.Search(Hashed(7), simulations=200).run(STATE)
    engine.close()
    np.testing.assert_array_equal(result.standard_errors, twin.standard_errors)
    assert result.principal_variations() == twin.principal_variations()
    assert result.to_svg() == twin.to_svg()
    kept = weakref.ref(evaluator)
    del engine, evaluator
    gc.collect()
    assert kept() is None, "the result holds the evaluator"


def test_a_full_engine_refuses_at_once() -> None:
    evaluator = Held()
    with azpy.Engine(evaluator, simulations=10, max_requests=3) as engine:
        futures = [engine.submit(state) for state in positions(3)]
        with pytest.raises(queue.Full, match="3 requests are already waiting"):
            engine.submit(STATE)
        evaluator.leave.set()
        for future in futures:
            future.result(PATIENCE)
        assert (engine.stats["requests"], engine.stats["finished"], engine.stats["open"]) == (3, 3, 0)
        assert engine.submit(STATE).result(PATIENCE).visits.sum() == 10


def test_a_bad_request_is_refused_at_once_and_alone() -> None:
    roll = after(azpy.make_game("pig"), 0)
    with azpy.Engine(azpy.UniformEvaluator(), simulations=20) as engine:
        with pytest.raises(azpy.GameError, match="chance"):
            engine.submit(roll)
        good = engine.submit(azpy.make_game("pig"))
        wrong: list[tuple[type[Exception], str, Any]] = [
            (ValueError, "simulations must be at least 0, got -1", lambda: engine.submit(roll, -1)),
            (ValueError, "seconds must be at least 0", lambda: engine.submit(roll, seconds=-1.0)),
            (TypeError, "expected an azpy.State", lambda: engine.submit("pig")),  # type: ignore[arg-type]
            (ValueError, "max_batch must be at least eval_batch", lambda: azpy.Engine(Hashed(7), max_batch=7)),
            (ValueError, "max_requests must be at least 1", lambda: azpy.Engine(Hashed(7), max_requests=0)),
            (TypeError, "did you mean .simulations.|eval_batch", lambda: azpy.Engine(Hashed(7), eval_batches=1)),  # type: ignore[call-arg]
        ]
        for kind, text, call in wrong:
            with pytest.raises(kind, match=text):
                call()
        assert good.result(PATIENCE).visits.sum() == 20
        assert engine.stats["requests"] == 1


def threads() -> int:
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.exists() else 0


def test_leaving_the_block_answers_all_and_leaves_no_thread() -> None:
    before = threads()
    with azpy.Engine(Hashed(7), simulations=100, threads=2) as engine:
        futures = [engine.submit(state) for state in positions(50)]
    assert all(future.done() and not future.cancelled() for future in futures)
    with pytest.raises(RuntimeError, match="closed"):
        engine.submit(STATE)
    engine.close()
    assert engine.stats["finished"] == 50
    assert engine.stats["rows"] > 0, "the counts outlive the models"
    until = time.monotonic() + PATIENCE  # the pool's threads end by themselves
    while threads() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threads() <= before


def test_an_exception_in_the_block_cancels_what_is_left() -> None:
    futures: list[Future[azpy.SearchResult]] = []

    def fail() -> None:
        with azpy.Engine(Hashed(7)) as engine:
            futures.extend(engine.submit(state, 2**32 - 1) for state in positions(5))
            raise Boom

    with pytest.raises(Boom):
        fail()
    assert all(future.cancelled() for future in futures)
    with pytest.raises(CancelledError):
        futures[0].result()


def test_an_engine_can_be_dropped_while_it_searches_python_games() -> None:
    said = begun("""
        import faulthandler
        from oracles import Countdown, Hashed
        faulthandler.dump_traceback_later(120, exit=True)
        future.cancel()
        for _ in range(20):
            engine = azpy.Engine(Hashed(3), max_batch=16)
            futures = [engine.submit(Countdown(14), 300, seed=seed) for seed in range(12)]
            del engine  # a thread that has a lock may wait for the GIL
            for each in futures:
                each.result()
        print("answered")
    """)
    assert said == (0, "answered\n", "")


def test_callbacks_may_ask_again_but_not_wait_for_the_end() -> None:
    said: list[Any] = []
    done = threading.Event()
    evaluator = Held()
    with azpy.Engine(evaluator, simulations=20) as engine:

        def again(future: Future[azpy.SearchResult]) -> None:
            said.append(int(future.result().visits.sum()))
            if len(said) < 4:
                engine.submit(STATE).add_done_callback(again)
                return
            try:
                engine.close()
            except RuntimeError as error:
                said.append(str(error))
            done.set()

        engine.submit(STATE).add_done_callback(again)
        evaluator.leave.set()
        assert done.wait(PATIENCE)
    assert said[:4] == [20] * 4
    assert "would wait for itself" in said[4]


class Slow(Countdown):
    """Lets other threads run while it is copied."""

    def clone(self) -> Self:
        time.sleep(0.001)
        return super().clone()


def test_many_threads_may_ask_first() -> None:
    for _ in range(5):
        with azpy.Engine(Hashed(3), simulations=5) as engine:
            asks = [lambda: int(engine.submit(Slow(12)).result(PATIENCE).visits.sum())] * 4
            assert at_once(*asks) == [5] * 4


BEGIN = """
import azpy, os, resource, signal, sys, threading, time
state = azpy.make_game("connect_four")
engine = azpy.Engine(azpy.RolloutEvaluator(1))
future = engine.submit(state, 2**32 - 1)
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
"""


def begun(text: str) -> tuple[int, str, str]:
    """What a program says that has an engine and a search that would never end."""
    return program(BEGIN + textwrap.dedent(text))


def test_finished_requests_leave_no_memory_behind() -> None:
    code, said, errors = begun("""
        def ask(times):
            for _ in range(times):
                for future in [engine.submit(state, 800, seed=seed) for seed in range(32)]:
                    future.result()
        future.cancel()
        ask(3)
        before = peak()
        ask(12)  # 384 trees of 180 KB each
        print(peak() - before)
    """)
    assert (code, errors) == (0, "")
    assert float(said) < 20


def test_games_dropped_in_a_search_leave_no_memory_behind() -> None:
    code, said, errors = begun("""
        def drop(times):
            for _ in range(times):
                heard = [threading.Event() for _ in range(8)]
                games = [engine.game(state) for _ in heard]
                for game in games:
                    game.search(10_000).result()  # a tree of 2 MB
                def search(game, one):
                    return game.search(2**32 - 1, on_report=lambda result: one.set())
                pending = [search(*each) for each in zip(games, heard)]
                assert all(one.wait(60) for one in heard)
                del games, game
                for one in pending:
                    one.cancel()
                while engine.stats["open"]:
                    time.sleep(0.001)
        future.cancel()
        drop(1)
        before = peak()
        drop(5)  # 40 trees
        print(peak() - before)
    """)
    assert (code, errors) == (0, "")
    assert float(said) < 60


def test_the_interpreter_ends_with_requests_under_way() -> None:
    assert begun("future.add_done_callback(lambda future: print(future.cancelled()))") == (0, "True\n", "")
    assert begun("del engine") == (0, "", "")


def test_ctrl_c_ends_a_wait() -> None:
    said = begun("""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
        for wait in (future.result, engine.close):
            try:
                wait()
            except KeyboardInterrupt:
                print("interrupted")
            threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
        try:
            time.sleep(1)
        except KeyboardInterrupt:
            print(future.cancelled())
    """)
    assert said == (0, "interrupted\ninterrupted\nTrue\n", "")
