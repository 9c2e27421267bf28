"""Threads that use an engine at once: no request is lost, no lock waits for another, nothing stays that nobody has."""

import gc
import json
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import azpy
from azpy._core import Message
from azpy.serving import models
from azpy.serving.models import Player, PlayerEngine, open_engine
from azpy.serving.queries import Session
from oracles import Constant, Countdown, Hashed, Held
from running import PATIENCE, at_once, program

STATE = azpy.make_game("tic_tac_toe")


@pytest.mark.parametrize("of", ["engine", "game"])
def test_no_request_is_lost_beside_loads_and_a_close(of: str) -> None:
    def ask(search: Callable[[], Any]) -> list[Any]:
        asked = list[Any]()
        try:
            while True:
                asked.append(search())
        except RuntimeError:  # the engine is closed
            return asked

    def load(engine: azpy.Engine, times: int) -> list[Any]:
        for _ in range(times):
            engine.load("main", azpy.UniformEvaluator())
        engine.close()
        return []

    for trial in range(5):
        engine = azpy.Engine(azpy.UniformEvaluator(), simulations=2, max_requests=10**6)
        searches = [engine.game(STATE).search if of == "game" else partial(engine.submit, STATE) for _ in range(3)]
        found = at_once(partial(load, engine, 10 + trial), *(partial(ask, search) for search in searches))
        asked = [pending for each in found for pending in each]
        assert [pending.exception(0) for pending in asked] == [None] * len(asked)
        assert engine.stats["requests"] == engine.stats["finished"] == len(asked)


def test_a_request_that_is_refused_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wide(Countdown):
        game, num_actions = "Countdown", 4  # the same name, and another size

    with azpy.Engine(azpy.UniformEvaluator(), simulations=2, max_requests=1) as engine:
        engine.submit(Countdown(3)).result(PATIENCE)
        with pytest.raises(TypeError, match="of one game and size"):
            engine.submit(Wide(3))
        with monkeypatch.context() as patched:
            patched.setattr("azpy.pending.Pending", lambda stop: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                engine.submit(Countdown(3))
        assert engine.submit(Countdown(3)).result(PATIENCE).visits.sum() == 2
        assert (engine.stats["requests"], engine.stats["open"]) == (2, 0)


def test_a_failing_network_stops_no_calls_of_a_game() -> None:
    """The lane that hands the failed search back, and a call that asks the game in Python, want the same locks."""
    text = """
        import threading, azpy
        from oracles import Countdown

        class Failing:
            def evaluate_batch(self, observations):
                raise ValueError("on purpose")

        with azpy.Engine(Failing(), simulations=3) as engine:
            game = engine.game(Countdown(20))
            def play():
                for _ in range(1000):
                    game.play(0)
                    game.undo()
            threads = [threading.Thread(target=play) for _ in range(2)]
            for thread in threads:
                thread.start()
            failed = 0
            while failed == 0 or any(thread.is_alive() for thread in threads):
                failed += isinstance(game.search().exception(), ValueError)
        print("failed", failed > 0)
    """
    assert program(text) == (0, "failed True\n", "")


def test_a_first_request_beside_a_load_meets_the_new_network() -> None:
    class Loading(Constant):
        """An engine asks for the network's name as it makes a model; in this moment another network comes."""

        engine: azpy.Engine | None = None

        @property
        def network_id(self) -> None:
            if self.engine is not None:
                engine, self.engine = self.engine, None
                engine.load("main", Constant(7, 0.5))

    old = Loading(7, -0.5)
    with azpy.Engine(old, simulations=1) as engine:
        old.engine = engine
        assert engine.submit(azpy.make_game("connect_four"), 0).result(PATIENCE).value > 0
        assert engine.submit(azpy.make_game("connect_four"), 0).result(PATIENCE).value > 0


class Circular(Constant):
    """An evaluator that knows who searches with it."""

    user: Any


def searched(evaluator: Circular) -> Any:
    search = azpy.Search(evaluator, simulations=5)
    search.run(STATE)
    return search


def searched_at_once(evaluator: Circular) -> Any:
    search = azpy.VectorSearch([STATE], evaluator)
    search.run(5)
    return search


def served(evaluator: Circular) -> Any:
    engine = azpy.Engine(evaluator, simulations=5)
    engine.submit(STATE).result(PATIENCE)
    return engine


def in_a_game(evaluator: Circular) -> Any:
    game = azpy.Engine(evaluator, simulations=5).game(STATE)
    game.search().result(PATIENCE)
    return game


@pytest.mark.parametrize("use", [searched, searched_at_once, served, in_a_game, azpy.Engine])
def test_a_search_that_its_evaluator_refers_to_is_freed(use: Callable[[Circular], Any]) -> None:
    def made() -> Circular:
        evaluator = Circular(9)
        evaluator.user = use(evaluator)
        return evaluator

    alive = weakref.WeakSet([made() for _ in range(5)])
    for _ in range(50):  # a lane may be about to lie down
        gc.collect()
        if not alive:
            return
    pytest.fail(f"{len(alive)} of 5 are alive")


def test_an_engine_that_only_its_evaluator_has_still_answers() -> None:
    class Waiting(Held):
        user: Any

    evaluator = Waiting()
    evaluator.user = azpy.Engine(evaluator, simulations=10)
    pending = evaluator.user.submit(azpy.make_game("connect_four"))
    leave = evaluator.leave
    del evaluator
    gc.collect()
    leave.set()
    assert pending.result(PATIENCE).visits.sum() == 10


def test_an_evaluator_that_serves_is_not_taken_for_garbage() -> None:
    """Nobody but its engine has it, which refers to it and is in use."""
    gone = list[str]()

    class Seen(Constant):
        engine: Any

        def __del__(self) -> None:
            gone.append("finalized")

    evaluator = Seen(9)
    evaluator.engine = engine = azpy.Engine(evaluator, simulations=3)
    del evaluator
    asked = list[Any]()

    def ask() -> None:
        for _ in range(300):
            asked.append(engine.submit(STATE))
            assert engine.stats["open"] >= 0

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        gc.collect()
    for thread in threads:
        thread.join(PATIENCE)
    assert {int(pending.result(PATIENCE).visits.sum()) for pending in asked} == {3}
    assert gone == []


def test_several_threads_read_one_tree() -> None:
    large = azpy.Search(azpy.UniformEvaluator(), simulations=6_000, lcb=1.0).run(azpy.make_game("go(size=9)"))
    many = azpy.VectorSearch([azpy.make_game("go(size=9)")] * 2, azpy.UniformEvaluator(), lcb=1.0)
    many.run(3_000)
    looks = (lambda: large.standard_errors, large.principal_variations, many.root_values, many.results)
    at_once(*(lambda look=look: [look() for _ in range(3)] for look in looks * 2))


def test_a_request_behind_a_ponder_that_just_begins_is_answered() -> None:
    """The ponder asks the game in Python whether it can be searched; meanwhile the next request comes."""
    slow = threading.local()

    class Slow(Countdown):
        def turn(self) -> int:
            time.sleep(getattr(slow, "seconds", 0.0))
            return super().turn()

    def call(method: Callable[[], Any], seconds: float) -> Any:
        slow.seconds = seconds
        return method()

    for _ in range(3):
        with azpy.Engine(azpy.UniformEvaluator(), simulations=10) as engine:
            game = engine.game(Slow(40))
            game.search().result(PATIENCE)
            _, searched = at_once(partial(call, game.ponder, 0.1), partial(call, game.search, 0.12))
            assert searched.result(PATIENCE).visits.sum() > 0


def test_games_of_other_parameters_share_a_cache_but_no_answer() -> None:
    evaluator = Hashed(26, network_id=7)
    with azpy.Engine(evaluator, simulations=20, cache_positions=10_000) as engine:
        for komi in (*range(40), 0):  # by then the first model has gone
            state = azpy.make_game(f"go(size=5,komi={komi})")
            found = engine.submit(state).result(PATIENCE)
            twin = azpy.Search(evaluator, simulations=20).run(state)
            np.testing.assert_array_equal(found.visits, twin.visits)
        assert found.stats["cache_hits"] > 0
        assert 0 < engine.stats["cache_fill"] < 0.2


@pytest.fixture
def unswitched() -> Iterator[None]:
    """The interpreter is not taken from a thread that does not give it away."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("unswitched")
def test_other_threads_go_on_while_a_large_tree_is_read() -> None:
    search = azpy.Search(azpy.UniformEvaluator(), simulations=30_000, lcb=1.0)
    large = search.run(azpy.make_game("go(size=9)"))
    many = azpy.VectorSearch([azpy.make_game("go(size=9)")], azpy.UniformEvaluator(), lcb=1.0)
    many.run(30_000)
    looks: dict[str, Callable[[], object]] = {
        "standard_errors": lambda: large.standard_errors,
        "results": many.results,
        "root_values": many.root_values,
        "action_probabilities": many.action_probabilities,
        "select_actions": many.select_actions,
    }
    turns, over = [0], threading.Event()

    def count() -> None:
        while not over.is_set():
            turns[0] += 1
            time.sleep(0)  # gives the interpreter away

    counter = threading.Thread(target=count)
    counter.start()
    stood_still = []
    for name, look in looks.items():
        before = turns[0]
        look()
        if turns[0] == before:
            stood_still.append(name)
    over.set()
    counter.join(PATIENCE)
    assert stood_still == []


def test_an_engine_whose_workers_cannot_start_leaves_no_thread() -> None:
    text = """
        import resource, time
        from pathlib import Path
        import azpy

        threads = lambda: len(list(Path("/proc/self/task").iterdir()))
        engine, before = azpy.Engine(azpy.UniformEvaluator(), threads=1024), threads()
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        room = used + 15 * 2**25  # seven stacks, and half of one for what threads need besides
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        try:
            engine.submit(azpy.make_game("tic_tac_toe"))
        except OSError:
            print("refused")
        for _ in range(1000):
            if threads() == before:
                print("no thread is left")
                break
            time.sleep(0.01)
    """
    _, said, errors = program(text, RUST_MIN_STACK=str(2**26))
    assert said == "refused\nno thread is left\n", errors


def test_a_player_is_renewed_by_one_thread_at_a_time() -> None:
    inside, most, numbers = [0], [0], iter(range(10**6))

    def opened() -> Player:
        inside[0] += 1
        for _ in range(20):
            most[0] = max(most[0], inside[0])
            time.sleep(0)
        inside[0] -= 1
        number = next(numbers)
        return Player(f"player {number}", STATE, Constant(9, number / 100), 1, {}, has_model=False)

    with azpy.Engine(azpy.UniformEvaluator()) as engine:
        model = PlayerEngine(opened(), engine, opened)
        at_once(*[lambda: [model.renew() for _ in range(20)]] * 4)
        assert (most, model.player.name) == ([1], "player 80")
        assert engine.submit(STATE, 0).result(PATIENCE).value == pytest.approx(0.8)


def test_a_replaced_engine_ends_after_its_last_search() -> None:
    scores, said = iter((0.1, 0.2, 0.3)), queue.Queue[Any]()

    def opened() -> Player:
        options, state = {"score_to_beat": next(scores)}, azpy.make_game("peg_solitaire")
        return Player(f"player {options}", state, azpy.UniformEvaluator(), 1, options, has_model=False)

    def ends() -> None:
        for thread in threading.enumerate():
            if thread.name == "azpy-engine-end":
                thread.join(PATIENCE)

    first = opened()
    model = PlayerEngine(first, open_engine(first), opened)
    old, session = model.engine, Session({"main": model}, lambda reply: said.put(json.loads(reply.line)))
    for query in ({"id": "long", "game": "g", "simulations": 10**9}, {"id": "own", "simulations": 10**9}):
        session.take(Message(json.dumps(query)))
    assert model.renew()
    assert model.engines == [model.engine, old]
    session.take(Message('{"id": "new", "game": "g", "simulations": 2}'))  # the game goes on in the new engine
    assert said.get(timeout=PATIENCE)["id"] == "new"
    session.take(Message('{"id": "end", "action": "terminate_all"}'))
    assert {said.get(timeout=PATIENCE)["id"] for _ in range(3)} == {"end", "long", "own"}
    ends()
    assert model.engines == [model.engine]
    with pytest.raises(RuntimeError, match="this engine is closed"):
        old.submit(first.start, 1)
    session.take(Message('{"id": "last", "simulations": 1000000000}'))
    assert model.renew()
    model.close()
    assert "the search was cancelled" in said.get(timeout=PATIENCE)["error"]
    ends()


def test_an_engine_that_cannot_be_opened_leaves_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    served = [Player(f"{number}", STATE, azpy.UniformEvaluator(), 1, {"c_puct": number}, False) for number in (1, 2)]
    with azpy.Engine(azpy.UniformEvaluator()) as engine:
        model = PlayerEngine(served[0], engine, lambda: served[1])
        monkeypatch.setattr(models, "open_engine", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            model.renew()
        assert (model.engines, model.player) == ([engine], served[0])


def test_a_query_finds_the_engine_that_came_meanwhile() -> None:
    served = Player("one", STATE, azpy.UniformEvaluator(), 1, {}, has_model=False)
    engines, said = [open_engine(served), open_engine(served)], queue.Queue[Any]()

    class Renewed(PlayerEngine):
        """Its engine is closed and replaced after a query has taken it."""

        def __getattribute__(self, name: str) -> Any:
            if name != "engine":
                return super().__getattribute__(name)
            asked.append(name)
            return engines[len(asked) > 2]  # when the query is read, and when it is begun

    asked = list[str]()
    model = Renewed(served, engines[1])
    session = Session({"main": model}, lambda reply: said.put(json.loads(reply.line)))
    engines[0].close()
    session.take(Message('{"id": "1"}'))
    assert "rootInfo" in said.get(timeout=PATIENCE)
    model.close()
    session.take(Message('{"id": "2"}'))
    assert "this engine is closed" in said.get(timeout=PATIENCE)["error"]
