"""Eight threads of Python at once, as they run side by side where Python has no global lock.

Each test is right under any interpreter. The forge runs them without the lock too, where they are worth the most.
"""

import functools
import sysconfig
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest

import azpy
from oracles import Countdown, Hashed
from running import PATIENCE, at_once, program

THREADS = 8
STATE = azpy.make_game("connect_four")
T = TypeVar("T")


def in_eight(work: Callable[[int], T]) -> list[T]:
    """What a function gives for each of the numbers 0 to 7, each from a thread of its own."""
    return at_once(*(functools.partial(work, number) for number in range(THREADS)))


def searched(number: int, start: azpy.State | Countdown) -> list[list[int]]:
    trees = azpy.VectorSearch([start] * 3, Hashed(start.num_actions), seed=number, root_noise=0.25, eval_batch=4)
    for _ in range(3):
        trees.run(60)
        trees.advance(trees.select_actions(0.0))
    trees.run(30)
    return [result.visits.tolist() for result in trees.results()]


def played(number: int, start: azpy.State | Countdown) -> list[bytes]:
    evaluator = Hashed(start.num_actions)
    with azpy.SelfPlay(start, evaluator, slots=3, seed=number, games=6, simulations=20) as games:
        return sorted(record.to_bytes() for record in games)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the lock")
def test_importing_azpy_keeps_the_gil_off() -> None:
    text = "import sys, azpy; print(sys._is_gil_enabled())"
    assert program(text, PYTHONWARNINGS="error") == (0, "False\n", "")


@pytest.mark.parametrize("start", [STATE, Countdown(20)])
@pytest.mark.parametrize("work", [searched, played])
def test_eight_threads_search_and_play_as_one_does(work: Callable[[int, Any], object], start: Any) -> None:
    assert in_eight(lambda number: work(number, start)) == [work(number, start) for number in range(THREADS)]


def test_eight_threads_share_out_the_games_of_one_self_play() -> None:
    with azpy.SelfPlay(STATE, Hashed(7), slots=8, games=40, simulations=20) as games:
        taken = in_eight(lambda _: [record.game_id for record in games])
    assert sorted(number for numbers in taken for number in numbers) == list(range(40))


def test_an_engine_answers_each_of_eight_threads() -> None:
    def ask(number: int) -> list[list[int]]:
        futures = [engine.submit(STATE, size, seed=number) for size in range(40, 50)]
        game = engine.game(STATE, seed=number)
        kept = game.search(50)
        game.play(int(kept.result(PATIENCE).visits.argmax()))
        return [future.result(PATIENCE).visits.tolist() for future in [*futures, kept]]

    with azpy.Engine(Hashed(7), max_batch=16) as engine:
        found = in_eight(ask)
    for number, visits in enumerate(found):
        sizes = [*range(40, 50), 50]
        twins = [azpy.Search(Hashed(7), simulations=size, seed=number).run(STATE) for size in sizes]
        assert visits == [twin.visits.tolist() for twin in twins]


def test_a_position_that_a_thread_changes_is_whole_or_busy() -> None:
    shared, positions = STATE.clone(), set[str]()
    line = [3, 3, 2, 2, 4, 5, 0, 1]
    walk = STATE.clone()
    for action in (None, *line):
        if action is not None:
            walk.play(action)
        positions.add(str(walk))

    def look(number: int) -> set[str]:
        if number == 0:
            for action in line:
                while True:
                    try:
                        shared.play(action)
                        break
                    except RuntimeError:  # somebody looks at it
                        continue
            return set()
        seen = set()
        for _ in range(200):
            try:
                copy = shared.clone()
            except RuntimeError:  # it is being changed
                continue
            seen.add(str(copy))
            np.testing.assert_array_equal(copy.observation(), copy.clone().observation())
        return seen

    assert set().union(*in_eight(look)) <= positions
    assert str(shared) == str(walk)
