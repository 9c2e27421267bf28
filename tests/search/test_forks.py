"""In a fork of the process things work, or say that they do not: threads stay behind, and nothing may wait for them."""

import multiprocessing
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import azpy
from azpy._core import Message
from azpy.serving.models import PlayerEngine, open_engine, open_player
from azpy.serving.queries import Session
from oracles import Countdown, Hashed
from planted_games import SeenKuhn
from running import PATIENCE, program

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
STATE = azpy.make_game("connect_four")


def in_a_fork(work: Callable[[], Any]) -> Any:
    """What `work` gives in a fork of this process, or the exception that it raises; a fork that hangs is killed."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def answer() -> None:
        try:
            there.send(work())
        except BaseException as error:
            there.send(error)

    process = context.Process(target=answer)
    process.start()
    try:
        assert here.poll(PATIENCE), "the fork hangs"
        return here.recv()
    finally:
        process.kill()
        process.join()


def filled(game: Any) -> azpy.ReplayBuffer:
    buffer = azpy.ReplayBuffer(game)
    actions = (azpy.make_game(game) if isinstance(game, str) else game).num_actions
    with azpy.SelfPlay(game, Hashed(actions), slots=4, simulations=8, games=8) as games:
        for record in games:
            buffer.add(record)
    return buffer


@pytest.mark.parametrize("game", ["tic_tac_toe", Countdown(12), SeenKuhn()], ids=["tic_tac_toe", "python", "hidden"])
def test_a_fork_draws_the_batches_that_its_parent_draws(game: Any) -> None:
    buffer = filled(game)
    expected = buffer.sample(100, seed=3)  # the threads have been at work, and wait
    for mine, other in zip(expected, in_a_fork(lambda: buffer.sample(100, seed=3)), strict=True):
        np.testing.assert_array_equal(mine, other)
    with azpy.SelfPlay(game, azpy.UniformEvaluator(), slots=4, simulations=8, games=1, first_game=8) as games:
        record = next(games)

    def add() -> tuple[int, int]:
        buffer.add(record)
        return buffer.num_games, len(buffer.sample(64, seed=1)[3])

    assert in_a_fork(add) == (9, 64)
    assert buffer.num_games == 8


def test_a_buffer_in_use_at_the_fork_says_so() -> None:
    inside, leave = threading.Event(), threading.Event()

    class Held(Countdown):
        def play(self, action: int) -> None:
            if threading.current_thread().name == "adding":
                inside.set()
                leave.wait(PATIENCE)
            super().play(action)

    with azpy.SelfPlay(Held(12), Hashed(3), slots=2, simulations=4, games=1) as games:
        record = next(games)
    buffer = azpy.ReplayBuffer(Held(12))
    adding = threading.Thread(target=buffer.add, args=(record,), name="adding")
    adding.start()
    try:
        assert inside.wait(PATIENCE)
        error = in_a_fork(lambda: buffer.num_games)
    finally:
        leave.set()
        adding.join()
    assert isinstance(error, RuntimeError)
    assert "another thread was using this replay buffer when the process was forked" in str(error)
    assert buffer.num_games == 1


@pytest.mark.parametrize("evaluator", [azpy.RolloutEvaluator(1), Hashed(7)], ids=["rollout", "python"])
def test_a_fork_searches_as_its_parent_does(evaluator: Any) -> None:
    searches = [azpy.VectorSearch([STATE] * 100, evaluator, threads=2) for _ in range(2)]
    for search in searches:
        search.run(20)

    def more(search: azpy.VectorSearch) -> list[list[int]]:
        search.run(20)
        return [result.visits.tolist() for result in search.results()]

    assert in_a_fork(lambda: more(searches[0])) == more(searches[1])
    alone = azpy.Search(evaluator, simulations=50)
    alone.run(STATE)
    assert in_a_fork(lambda: alone.run().visits.sum()) == alone.run().visits.sum() == 100
    assert in_a_fork(lambda: azpy._core.random_playouts("tic_tac_toe", 5)) == azpy._core.random_playouts(
        "tic_tac_toe", 5
    )


def test_a_fork_needs_self_play_of_its_own() -> None:
    def own() -> int:
        with azpy.SelfPlay("tic_tac_toe", Hashed(9), slots=4, simulations=8, games=10) as play:
            return len(list(play))

    with azpy.SelfPlay("tic_tac_toe", Hashed(9), slots=4, simulations=8, games=300) as play:
        first = next(play)
        uses: list[Callable[[], object]] = [
            lambda: next(play),
            play.take_finished,
            play.pause,
            play.resume,
            lambda: play.swap(Hashed(9)),
            lambda: play.stats,
            lambda: play.pipeline_stats,
        ]
        for use in uses:
            error = in_a_fork(use)
            assert isinstance(error, RuntimeError)
            assert str(error) == (
                "this self-play's pipelines are in the process that was forked: create a SelfPlay in each process"
            )
        assert in_a_fork(play.close) is None
        assert in_a_fork(own) == 10
        ids = sorted(record.game_id for record in [first, *play])
    assert ids == list(range(300))


def test_a_fork_needs_an_engine_of_its_own() -> None:
    def own() -> int:
        with azpy.Engine(azpy.RolloutEvaluator(1)) as engine:
            return int(engine.submit(STATE, 10).result(PATIENCE).visits.sum())

    with azpy.Engine(Hashed(7)) as engine:
        engine.submit(STATE, 10).result(PATIENCE)
        error = in_a_fork(lambda: engine.submit(STATE))
        assert isinstance(error, RuntimeError)
        assert str(error) == (
            "this engine's threads are in the process that was forked: create an engine in each process"
        )
        assert in_a_fork(engine.close) is None
        assert in_a_fork(own) == 10
        assert engine.submit(STATE, 10).result(PATIENCE).visits.sum() == 10


def test_a_fork_ends_with_what_its_parent_had_going() -> None:
    said = program("""
        import azpy, os, sys, warnings
        warnings.simplefilter("ignore")
        play = azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), slots=4, simulations=8)
        search = azpy.VectorSearch([azpy.make_game("tic_tac_toe")] * 10, azpy.UniformEvaluator(), threads=2)
        search.run(10)
        buffer = azpy.ReplayBuffer("tic_tac_toe")
        buffer.add(next(play))
        pending = azpy.Engine(azpy.UniformEvaluator()).submit(azpy.make_game("connect_four"), 2**32 - 1)
        forks = []
        for _ in range(20):
            if (fork := os.fork()) == 0:
                sys.exit(3)
            forks.append(fork)
        print([os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) for fork in forks])
        next(play)
    """)
    assert said == (0, f"{[3] * 20}\n", "")


def test_a_fork_right_after_self_play_began_ends() -> None:
    said = program("""
        import os, azpy
        many = {"slots": 16, "pipelines": 16, "threads": 1, "simulations": 5}
        for _ in range(40):
            games = azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), **many)
            child = os.fork()  # while threads begin
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            games.close()
    """)
    assert said[0] == 0, said


def test_a_client_in_a_fork_hears_where_the_threads_are() -> None:
    served = open_player("uniform:3", "tic_tac_toe", 3)
    said = list[str]()
    with open_engine(served) as engine:
        session = Session({"main": PlayerEngine(served, engine)}, lambda reply: said.append(reply.line))

        def ask() -> list[str]:
            said.clear()
            for query in ('{"id": "1"}', '{"id": "2", "game": "g"}', '{"id": "3", "game": "g", "moves": ["a1"]}'):
                session.take(Message(query))
            session.wait()
            return said

        assert all("rootInfo" in line for line in ask())
        refused = in_a_fork(ask)
        assert len(refused) == 3
        assert all("forked" in line for line in refused)
        session.close()
