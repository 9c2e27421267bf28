"""Nothing hangs and nothing is swallowed: a fault reaches the caller as itself."""

import asyncio
import collections
import gc
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy.errors import SettingsError
from many_players import Trio
from oracles import Batch, Constant, Countdown, DiceCountdown, Hashed
from running import PATIENCE, at_once, program


class Boom(Exception):  # noqa: N818
    """Raised on purpose."""


class FailsAt(Hashed):
    """Raises `error` at call k, from 0."""

    def __init__(self, num_actions: int, call: int, error: BaseException) -> None:
        super().__init__(num_actions)
        self.call, self.error = call, error

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
        if len(self.batches) >= self.call:
            raise self.error
        return super().evaluate_batch(observations)


STATE = azpy.make_game("connect_four")
Run = Callable[[Any, Any], object]  # (start, evaluator)


def search(start: Any, evaluator: Any) -> object:
    return azpy.Search(evaluator, simulations=2000, eval_batch=8).run(start)


def vector(threads: int) -> Run:
    def run(start: Any, evaluator: Any) -> None:
        azpy.VectorSearch([start] * 16, evaluator, threads=threads).run(500)

    return run


def self_play(threads: int, pipelines: int) -> Run:
    def run(start: Any, evaluator: Any) -> object:
        layout: dict[str, Any] = {"slots": 16, "threads": threads, "pipelines": pipelines}
        with azpy.SelfPlay(start, evaluator, **layout, simulations=50, games=50) as games:
            return list(games)

    return run


def engine(start: Any, evaluator: Any) -> object:
    with azpy.Engine(evaluator) as serving:
        return serving.submit(start).result(PATIENCE)


RUNS = {
    "search": search,
    "vector, 1 thread": vector(1),
    "vector, 8 threads": vector(8),
    "self-play, 1 thread": self_play(1, 1),
    "self-play, 8 threads": self_play(8, 2),
}
every_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


@every_run
@pytest.mark.parametrize("call", [0, 7])
@pytest.mark.parametrize("kind", [Boom, SystemExit, KeyboardInterrupt, MemoryError])
def test_an_evaluators_exception_reaches_the_caller_as_itself(run: Run, call: int, kind: type[BaseException]) -> None:
    error = kind("on purpose")
    with pytest.raises(kind) as caught:
        run(STATE, FailsAt(7, call, error))
    assert caught.value is error


def engine_awaited(start: Any, evaluator: Any) -> object:
    """asyncio takes no StopIteration as the exception of a future."""

    async def ask() -> object:
        with azpy.Engine(evaluator) as serving:
            return await asyncio.wait_for(asyncio.wrap_future(serving.submit(start)), PATIENCE)

    return asyncio.run(ask())


def one_after_another(start: Any, evaluator: Any) -> object:
    return list(map(azpy.Search(evaluator).run, [start] * 3))


def many_after_another(start: Any, evaluator: Any) -> object:
    return list(map(azpy.VectorSearch([start], evaluator).run, [10] * 3))


@pytest.mark.parametrize("fails", ["the evaluator", "the game"])
@pytest.mark.parametrize("run", [self_play(1, 1), one_after_another, many_after_another, engine_awaited])
def test_a_stop_iteration_ends_no_loop_around_a_run(run: Run, fails: str) -> None:
    class Ends(Countdown):
        def encode(self) -> NDArray[np.float32]:
            raise StopIteration("on purpose")

    start = Ends(12) if fails == "the game" else Countdown(12)
    evaluator = FailsAt(3, 1, StopIteration("on purpose")) if fails == "the evaluator" else Hashed(3)
    with pytest.raises(RuntimeError, match="the evaluator or the game raised StopIteration") as caught:
        run(start, evaluator)
    assert isinstance(caught.value.__cause__, StopIteration)
    assert caught.value.__cause__.args == ("on purpose",)


def test_sys_exit_in_an_evaluator_ends_the_program() -> None:
    said = program("""
        import sys, azpy
        class Exits:
            def evaluate_batch(self, observations):
                sys.exit(7)
        azpy.Search(Exits()).run(azpy.make_game("connect_four"))
        print("not reached")
    """)
    assert said == (7, "", "")


def test_a_search_is_as_good_as_new_after_a_fault() -> None:
    # Nothing stays in flight: the visits of the next search are those of a fresh one.
    evaluator = FailsAt(7, 9, Boom())
    failing = azpy.Search(evaluator, simulations=300, eval_batch=8)
    with pytest.raises(Boom):
        failing.run(STATE)
    evaluator.call = 1 << 30
    again, fresh = failing.run(STATE), azpy.Search(Hashed(7), simulations=300, eval_batch=8).run(STATE)
    assert again.visits.tolist() == fresh.visits.tolist()
    assert again.value == fresh.value


# Games in Python.


class Faulty(DiceCountdown):
    """Raises in the method of `plan` once its clones have called that so often as the number there says."""

    def __init__(self, heap: int, player: int = 0, roll: int = 0, plan: tuple[str, list[int]] | None = None) -> None:
        super().__init__(heap, player, roll)
        self.plan = plan

    def clone(self) -> Self:
        return type(self)(self.heap, self.player, self.roll, self.plan)


def counted(name: str) -> Callable[..., Any]:
    original = getattr(Faulty, name)

    def method(game: Faulty, *given: Any) -> Any:
        if game.plan and game.plan[0] == name:
            game.plan[1][0] -= 1
            if game.plan[1][0] < 0:
                raise Boom(name)
        return original(game, *given)

    return method


METHODS = ["turn", "legal_actions", "chance_outcomes", "play", "clone", "outcome", "encode", "key"]
for each in METHODS:
    setattr(Faulty, each, counted(each))


@every_run
@pytest.mark.parametrize("calls", [0, 50])
@pytest.mark.parametrize("method", METHODS)
def test_an_exception_in_a_game_reaches_the_caller_as_itself(run: Run, method: str, calls: int) -> None:
    plan = (method, [calls])
    if method == "key":
        run = with_cache
    with pytest.raises(Boom, match=method):
        run(Faulty(12, roll=3, plan=plan), Hashed(3, network_id=5))


def test_an_exception_in_a_rollout_comes_as_itself() -> None:
    with pytest.raises(Boom):
        search(Faulty(9, roll=3, plan=("play", [24])), azpy.RolloutEvaluator())


@pytest.mark.parametrize("calls", [0, 1, 20])
@pytest.mark.parametrize("method", ["turn", "legal_actions", "play", "clone"])
def test_an_exception_in_a_look_ahead_comes_as_itself(method: str, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, original = list[int](), getattr(Countdown, method)

    def run(lookahead: int, most: int) -> None:
        def counted(state: Countdown, *arguments: int) -> object:
            made.append(1)
            if len(made) > most:
                raise Boom(method)
            return original(state, *arguments)

        made.clear()
        monkeypatch.setattr(Countdown, method, counted)
        azpy.Search(Hashed(3), simulations=1, solver=True, lookahead=lookahead).run(Countdown(15))

    run(0, 10_000)
    without = len(made)
    with pytest.raises(Boom, match=method):
        run(6, without + calls)  # a search without a look does not call it so often


def with_cache(start: Any, evaluator: Any) -> object:
    return azpy.Search(evaluator, simulations=2000, eval_batch=8, cache_positions=1000).run(start)


def broken(**methods: Any) -> azpy.Game:
    kind = type("Broken", (Countdown,), {name: staticmethod(method) for name, method in methods.items()})
    game = kind(9)
    assert isinstance(game, azpy.Game)
    return game


def rolling(outcomes: list[Any]) -> azpy.Game:
    return broken(turn=lambda: azpy.CHANCE, chance_outcomes=lambda: outcomes)


NO_ROLLS: list[list[Any]] = [[], [(0, 0.5)], [(0, -1.0), (1, 2.0)], [(0, float("nan"))], [0, 1]]
NONSENSE: dict[str, azpy.Game] = {
    "no legal action": broken(legal_actions=list),
    "actions out of order": broken(legal_actions=lambda: [1, 0]),
    "actions twice": broken(legal_actions=lambda: [0, 0]),
    "an action outside the policy": broken(legal_actions=lambda: [0, 3]),
    "a negative action": broken(legal_actions=lambda: [-1, 0]),
    "actions of another type": broken(legal_actions=lambda: ["a"]),
    "no list of actions": broken(legal_actions=lambda: None),
    "a turn that is none": broken(turn=lambda: 7),
    "a turn of another type": broken(turn=lambda: "me"),
    "a roll without outcomes": broken(turn=lambda: azpy.CHANCE),
    **{f"a roll of {outcomes}": rolling(outcomes) for outcomes in NO_ROLLS},
    "an observation of another shape": broken(encode=lambda: np.zeros((4, 2, 1), np.float32)),
    "no observation": broken(encode=lambda: None),
    "an observation that is not finite": broken(encode=lambda: np.full((4, 1, 1), np.nan, np.float32)),
    "a clone that is none": broken(clone=lambda: None),
    "an endless game": broken(play=lambda action: None, legal_actions=lambda: [0]),
}


@pytest.mark.parametrize("game", NONSENSE.values(), ids=NONSENSE)
def test_a_game_that_breaks_its_contract_is_an_error(game: azpy.Game) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError, OverflowError)):
        azpy.Search(Constant(3), simulations=5000).run(game)


BOOLS = [True, False, np.True_, np.array(False), np.array([True])]
NO_OUTCOMES = [2.0, float("nan"), float("inf"), None, "win", 1j, [1.0], *BOOLS]


@pytest.mark.parametrize("outcome", NO_OUTCOMES, ids=repr)
def test_an_outcome_must_be_a_number_in_its_range(outcome: Any) -> None:
    with pytest.raises(azpy.GameError) as caught:
        azpy.Search(Constant(3), simulations=400).run(broken(outcome=lambda: outcome))
    expected = "a number in [-1, 1]: 1.0 if player 0 won, -1.0 if player 0 lost, 0.0 for a draw"
    assert f"Broken.outcome() gave {outcome!r}, expected {expected}; az-check-game" in str(caught.value)


@pytest.mark.parametrize("outcome", [1, -1, 0, 0.5, np.float32(-1), np.int8(1), np.array(0.25)], ids=repr)
def test_numbers_of_any_kind_are_outcomes(outcome: Any) -> None:
    state = azpy.State(broken(outcome=lambda: outcome))
    while not state.is_terminal:
        state.play(state.legal_actions()[0])
    assert state.outcome() == float(outcome)


# Lists that come from users.


def given_by(name: str, given: Any, **more: Any) -> azpy.State:
    """A game of three players whose attribute is `given`, or whose method returns it."""
    value = (lambda *_: given) if callable(getattr(Trio, name, print)) else given
    return azpy.State(type("Given", (Trio,), {**more, name: value})())


def with_engine(actions: Any) -> object:
    with azpy.Engine(azpy.UniformEvaluator()) as engine:
        return engine.submit(BOARD, 2, actions=actions).result()


BOARD = azpy.make_game("tic_tac_toe")
SEARCH = azpy.Search(azpy.UniformEvaluator(), simulations=9)
GUMBEL = azpy.Search(azpy.UniformEvaluator(), simulations=9, gumbel_actions=2)
OVER = {"turn": lambda _: azpy.TERMINAL, "outcome": lambda _: (0, 1), "num_players": 2, "zero_sum": False}
CELLS = list(range(16))
# What takes a list, and a right one.
TAKES_LISTS: dict[str, tuple[Callable[[Any], object], list[int]]] = {
    "outcome": (lambda given: given_by("outcome", given, **OVER).outcome(), [0, 1]),
    "legal_actions": (lambda given: given_by("legal_actions", given).legal_actions(), [1, 2]),
    "touches": (lambda given: given_by("touches", given).touches(0), [1, 2]),
    "obs_shape": (lambda given: given_by("obs_shape", given), [3, 4, 5]),
    "action_cells": (lambda given: given_by("action_cells", given), CELLS),
    "policy_planes": (lambda given: given_by("policy_planes", given), CELLS),
    "Search.run": (lambda given: SEARCH.run(BOARD, actions=given), [1, 2]),
    "gumbel": (lambda given: GUMBEL.run(BOARD, gumbel=given), CELLS[:9]),
    "Engine.submit": (with_engine, [1, 2]),
    "VectorSearch.advance": (lambda given: azpy.VectorSearch([BOARD] * 2, Hashed(9)).advance(given), [1, 2]),
    "format_actions": (BOARD.format_actions, [1, 2]),
    "captured": (BOARD.captured, [1, 2]),
    "of_actions": (lambda given: azpy.GameRecord.of_actions(BOARD, given, 0.5), [1, 2]),
    "outcome of_actions": (lambda given: azpy.GameRecord.of_actions(given_by("x", 0, **OVER), [], given), [0, 1]),
}
LISTS: list[Callable[[list[int]], Any]] = [tuple, np.array, collections.deque]
NO_LISTS: list[Callable[[list[int]], Any]] = [
    dict.fromkeys,
    set,
    bytes,
    bytearray,
    lambda given: memoryview(bytes(given)),
    lambda given: "".join(map(str, given)),
    lambda given: collections.UserDict(dict.fromkeys(given, 1)),
    lambda given: dict(enumerate(given)).values(),
]


@pytest.mark.parametrize("taker", TAKES_LISTS)
def test_lists_of_numbers_refuse_dicts_sets_and_bytes(taker: str) -> None:
    take, right = TAKES_LISTS[taker]
    for made in LISTS:
        take(made(right))
    for made in NO_LISTS:
        with pytest.raises((TypeError, azpy.GameError, SettingsError)):
            pytest.fail(f"{made(right)!r} is taken for a list: {take(made(right))}")


def test_actions_that_are_named_twice_count_once() -> None:
    once, twice = (SEARCH.run(BOARD, actions=given) for given in ([1, 4], [4, 1, 4, 1, 4, 1, 4, 1, 4]))
    assert (once.actions.tolist(), once.visits.tolist()) == (twice.actions.tolist(), twice.visits.tolist())


def test_files_to_learn_from_are_a_path_or_a_list(tmp_path: Path) -> None:
    for given in (b"games", {"games": 1}, {"games"}, [1], [b"games"]):
        with pytest.raises(SettingsError, match="supervised must be a file or a list of files"):
            azpy.train("tic_tac_toe", supervised=given, out=str(tmp_path / "run"))  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [-1, 2**128, 1.5, None, "a"], ids=str)
def test_a_key_out_of_range_is_an_error_that_names_the_range(key: Any) -> None:
    with pytest.raises(azpy.GameError) as caught:
        with_cache(broken(key=lambda: key), Hashed(3, network_id=5))
    wrong, advice = str(caught.value).split("; ")
    assert wrong == f"Broken.key() gave {key!r}, expected a whole number in [0, 2**128)"
    assert advice == "az-check-game shows the line of play that leads there"
    with_cache(broken(key=lambda: 2**128 - 1), Hashed(3, network_id=5))


def test_missing_methods_are_named_when_a_game_is_made() -> None:
    class Half(azpy.Game):
        def turn(self) -> int:
            return 0

    with pytest.raises(TypeError, match="encode"):
        Half()  # type: ignore[abstract]


def test_an_attribute_in_the_place_of_a_method_is_named() -> None:
    class Property(Countdown):
        turn = property(Countdown.turn)

    class Value(Countdown):
        legal_actions = (0, 1)  # type: ignore[assignment]

    for game, name in ((Property(9), "Property.turn"), (Value(9), "Value.legal_actions")):
        with pytest.raises(TypeError, match=rf"{name} must be a method \(def .*\), not a property or a value"):
            azpy.State(game)


def test_an_action_that_is_not_a_number_is_named() -> None:
    state = azpy.make_game("connect_four")
    for action, text in (("4", "a str: '4'"), (4.0, "a float: 4.0"), (None, "a NoneType: None")):
        with pytest.raises(TypeError, match=f"expected a whole number, got {text}"):
            state.play(action)  # type: ignore[arg-type]


# Replies.


def replying(reply: Callable[[int], Any]) -> Any:
    class Replies:
        def evaluate_batch(self, observations: NDArray[np.float32]) -> Any:
            return reply(len(observations))

    return Replies()


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def with_one(array: Any, value: float) -> Any:
    array.flat[-1] = value
    return array


USELESS: dict[str, tuple[Callable[[int], Any], str]] = {
    "NaN logit": (lambda n: (with_one(zeros(n, 7), np.nan), zeros(n)), "(?i)nan"),
    "infinite logit": (lambda n: (with_one(zeros(n, 7), np.inf), zeros(n)), "inf"),
    "NaN value": (lambda n: (zeros(n, 7), with_one(zeros(n), np.nan)), "(?i)nan"),
    "infinite value": (lambda n: (zeros(n, 7), with_one(zeros(n), -np.inf)), "inf"),
    "value above 1": (lambda n: (zeros(n, 7), with_one(zeros(n), 1.5)), r"1\.5"),
    "value below -1": (lambda n: (zeros(n, 7), with_one(zeros(n), -1.5)), r"-1\.5"),
    "too many actions": (lambda n: (zeros(n, 8), zeros(n)), r"8\].*7\]"),
    "too few rows": (lambda n: (zeros(n - 1, 7), zeros(n)), "shape"),
    "too many rows": (lambda n: (zeros(n + 1, 7), zeros(n + 1)), "shape"),
    "flat logits": (lambda n: (zeros(n * 7), zeros(n)), "(?i)dimension|shape"),
    "two columns of values": (lambda n: (zeros(n, 7), zeros(n, 2)), "shape"),
    "too few values": (lambda n: (zeros(n, 7), zeros(n - 1)), "shape"),
    "float64 logits": (lambda n: (zeros(n, 7, dtype=np.float64), zeros(n)), "float64"),
    "float64 values": (lambda n: (zeros(n, 7), zeros(n, dtype=np.float64)), "float64"),
    "float16 logits": (lambda n: (zeros(n, 7, dtype=np.float16), zeros(n)), "float16"),
    "whole numbers": (lambda n: (zeros(n, 7, dtype=np.int64), zeros(n)), "int64"),
    "nothing": (lambda n: None, "None"),
    "logits alone": (lambda n: zeros(n, 7), "tuple"),
    "three arrays": (lambda n: (zeros(n, 7), zeros(n), zeros(n)), "3"),
    "lists": (lambda n: ([[0.0] * 7] * n, [0.0] * n), "list"),
}


@pytest.mark.parametrize("run", [search, self_play(8, 2), engine], ids=["search", "self-play", "engine"])
@pytest.mark.parametrize("fault", USELESS)
def test_a_bad_reply_of_an_evaluator_is_named(run: Run, fault: str) -> None:
    reply, text = USELESS[fault]
    with pytest.raises(azpy.EvaluatorError, match=text):
        run(STATE, replying(reply))


def test_an_object_without_evaluate_batch_is_refused() -> None:
    for nothing in (None, 3, object(), Hashed):
        with pytest.raises((TypeError, ValueError), match=r"evaluate_batch|evaluator"):
            azpy.Search(nothing).run(STATE)


def test_fortran_order_and_strides_mean_the_same_as_c_order() -> None:
    class Ordered(Hashed):
        order: Callable[[Any], Any]

        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            logits, values = super().evaluate_batch(observations)
            return self.order(logits), self.order(values)

    expected = azpy.Search(Hashed(7), simulations=200, eval_batch=8).run(STATE).visits.tolist()
    for order in (np.asfortranarray, lambda a: np.repeat(a, 2, axis=0)[::2], lambda a: np.flip(np.flip(a).copy())):
        evaluator = Ordered(7)
        evaluator.order = order
        assert azpy.Search(evaluator, simulations=200, eval_batch=8).run(STATE).visits.tolist() == expected


# Evaluators that misbehave.


def test_an_evaluator_may_keep_its_input_and_reuse_its_reply() -> None:
    class Hoards(Hashed):
        def __init__(self) -> None:
            super().__init__(7)
            self.kept = list[NDArray[np.float32]]()
            self.logits, self.values = np.zeros((64, 7), np.float32), np.zeros(64, np.float32)

        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            self.kept.append(observations)
            rows = len(observations)
            self.logits[:rows], self.values[:rows] = super().evaluate_batch(observations)
            return self.logits[:rows], self.values[:rows]  # the same memory for every reply

    evaluator = Hoards()
    result = azpy.Search(evaluator, simulations=500, eval_batch=8).run(STATE)
    assert result.visits.tolist() == azpy.Search(Hashed(7), simulations=500, eval_batch=8).run(STATE).visits.tolist()
    gc.collect()
    junk = [np.full(1000, 1.0, np.float32) for _ in range(1000)]
    for kept in evaluator.kept:  # what they hold now is not said, but it is memory of their own
        assert np.isfinite(kept).all()
        if kept.flags.writeable:
            kept.fill(0)
    del junk


def test_an_evaluator_may_search_itself() -> None:
    class Searches(Hashed):
        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            azpy.Search(azpy.UniformEvaluator(), simulations=20).run(STATE)
            vector = azpy.VectorSearch([STATE] * 3, Hashed(7), threads=2)
            vector.run(10)
            return super().evaluate_batch(observations)

    expected = azpy.Search(Hashed(7), simulations=100).run(STATE).visits.tolist()
    assert azpy.Search(Searches(7), simulations=100).run(STATE).visits.tolist() == expected


def test_an_evaluator_that_runs_its_own_search_again_is_refused() -> None:
    class Again(Hashed):
        search: azpy.Search

        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            self.search.run(STATE)
            return super().evaluate_batch(observations)

    evaluator = Again(7)
    evaluator.search = azpy.Search(evaluator, simulations=100)
    with pytest.raises(RuntimeError):
        evaluator.search.run(STATE)


def test_searches_in_threads_finish_beside_the_collector() -> None:
    done, stop = list[int](), threading.Event()

    def collect() -> None:
        while not stop.is_set():
            gc.collect()

    def work() -> None:
        for _ in range(3):
            vector = azpy.VectorSearch([STATE] * 8, Hashed(7), threads=2)
            vector.run(50)
            done.append(int(sum(result.visits.sum() for result in vector.results())))
            if len(done) == 12:
                stop.set()

    gc.freeze()  # the collections stay short, whatever other tests have imported
    at_once(collect, work, work, work, work)
    gc.unfreeze()
    assert done == [8 * 50] * 12


def test_self_play_left_in_the_middle_ends_at_once() -> None:
    for leave in ("close", "exit", "forget"):
        games = azpy.SelfPlay("connect_four", Hashed(7), slots=16, simulations=50)
        next(games)
        if leave == "close":
            games.close()
            with pytest.raises(StopIteration):
                next(games)
        elif leave == "exit":
            with games:
                pass
        del games
        gc.collect()


# Ctrl-C.

ENDLESS: dict[str, Callable[[], object]] = {
    "search": lambda: azpy.Search(azpy.UniformEvaluator(), simulations=10**9).run(STATE),
    "vector": lambda: azpy.VectorSearch([STATE] * 4, azpy.UniformEvaluator(), threads=2).run(10**9),
    "python evaluator": lambda: azpy.Search(Constant(7), simulations=10**9).run(STATE),
    "self-play": lambda: list(azpy.SelfPlay(STATE, azpy.UniformEvaluator(), slots=4, simulations=10**9)),
}


@pytest.mark.skipif(not hasattr(signal, "ITIMER_VIRTUAL"), reason="needs a timer of processor time")
@pytest.mark.parametrize("what", ENDLESS)
def test_ctrl_c_ends_a_search(what: str) -> None:
    """The handler is Ctrl-C's; the signal comes once the search has had the processor for a while."""
    before = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            ENDLESS[what]()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def test_many_pipelines_that_fail_at_once_do_not_hang() -> None:
    for _ in range(5):
        game = Faulty(12, roll=3, plan=("play", [400]))
        play = azpy.SelfPlay(game, Hashed(3), slots=8, pipelines=4, simulations=20)
        with play, pytest.raises(Boom):
            list(play)


def test_a_failed_game_leaves_no_answers_in_the_cache() -> None:
    class Cached(Hashed):
        network_id = 7

    expected = azpy.Search(Cached(3), simulations=0).run(DiceCountdown(9, roll=3)).value
    search = azpy.VectorSearch(
        [Faulty(8, roll=3), Faulty(9, roll=3, plan=("encode", [0]))], Cached(3), cache_positions=1000
    )
    with pytest.raises(Boom):
        search.run(0)
    search.replace(1, Faulty(9, roll=3))
    search.run(0)
    assert search.root_values()[1] == expected


def test_a_search_goes_on_after_an_exception_in_a_game() -> None:
    fuse = [40]
    search = azpy.Search(Hashed(3), simulations=100)
    with pytest.raises(Boom):
        search.run(Faulty(9, roll=3, plan=("turn", fuse)))
    fuse[0] = 10**9
    assert search.run().visits.sum() == 100
    fuse[0] = 0
    with pytest.raises(Boom):
        search.advance(0)


def test_self_play_that_is_collected_on_its_own_thread_ends() -> None:
    class Collecting(Hashed):
        calls = 0

        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            Collecting.calls += 1
            if Collecting.calls % 20 == 0:
                gc.collect()
            return super().evaluate_batch(observations)

    gc.freeze()  # the collections stay short, whatever other tests have imported
    for _ in range(3):
        play = azpy.SelfPlay("tic_tac_toe", Collecting(9), slots=8, pipelines=2, simulations=10)
        next(play)
        cycle: list[Any] = [play]
        cycle.append(cycle)
        del play, cycle
        time.sleep(0.1)
    gc.collect()
    gc.unfreeze()


def test_games_of_different_sizes_are_not_mixed() -> None:
    class Sized(Countdown):
        def __init__(self, actions: int) -> None:
            super().__init__(9)
            self.num_actions = actions

    with pytest.raises(TypeError, match="size"):
        azpy.VectorSearch([Sized(2), Sized(3)], azpy.UniformEvaluator())


@pytest.mark.parametrize("settings", [{"cache_positions": 2**63 + 1}, {"cache_positions": 10**12}])
def test_impossible_sizes_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at most"):
        azpy.Search(azpy.UniformEvaluator(), **settings).run(azpy.make_game("tic_tac_toe"))
