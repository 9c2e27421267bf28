"""A game in Python beside one in Rust of its name: never in one batch, its errors come first, and its positions go."""

import gc
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

import azpy
from oracles import Wrapped, after


class Boom(Exception):  # noqa: N818
    """Raised on purpose."""


class Named(Wrapped):
    """Tic-tac-toe in Python, which says that it is the one in Rust, and counts its positions that live."""

    game = "tic_tac_toe"
    alive: ClassVar[weakref.WeakSet["Named"]] = weakref.WeakSet()
    fails: ClassVar[str] = ""  # the method that does

    def __init__(self, state: azpy.State | None = None, rolls: list[int] | None = None) -> None:
        super().__init__(azpy.make_game("tic_tac_toe") if state is None else state, rolls)
        self.alive.add(self)

    def turn(self) -> int:
        if self.fails == "turn":
            raise Boom
        return super().turn()

    def play(self, action: int) -> None:
        if self.fails == "play":
            raise Boom
        super().play(action)


def test_a_namesake_in_rust_is_another_game() -> None:
    rust, python, uniform = azpy.make_game("tic_tac_toe"), azpy.State(Named()), azpy.UniformEvaluator()
    with pytest.raises(TypeError, match="all be of one game"):
        azpy.VectorSearch([rust, python], uniform)
    with pytest.raises(TypeError, match="all be of one game"):
        azpy.VectorSearch([rust] * 2, uniform).replace(0, python)
    with azpy.Engine(uniform, simulations=5) as engine:
        engine.submit(rust).result()
        with pytest.raises(TypeError, match="all be of one game"):
            engine.submit(python)
    search = azpy.Search(uniform, simulations=5)
    assert [int(search.run(state).visits.sum()) for state in (rust, python, rust)] == [5] * 3


def test_an_error_of_a_game_comes_before_wrong_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    start, roll = azpy.State(Named()), after(azpy.make_game("pig"), 0)
    with azpy.Engine(azpy.UniformEvaluator()) as engine:
        for ask in (engine.submit, lambda state, **given: engine.game(state).search(**given)):
            with pytest.raises(azpy.GameError, match="at a chance turn"):
                ask(roll, actions=[0])
        monkeypatch.setattr(Named, "fails", "turn")
        for ask in (engine.submit, lambda state, **given: engine.game(state).search(**given)):
            with pytest.raises(Boom):
                ask(start, actions=[3])


def test_an_action_that_failed_once_can_be_played_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    uniform = azpy.UniformEvaluator()
    search, many = azpy.Search(uniform, simulations=5), azpy.VectorSearch([Named()], uniform)
    search.run(Named())
    with azpy.Engine(uniform, simulations=5) as engine:
        game = engine.game(Named())
        calls: list[Callable[[], Any]] = [
            lambda: search.advance(4),
            lambda: many.advance([4]),
            lambda: game.play(4),
        ]
        for play in calls:
            with monkeypatch.context() as change:
                change.setattr(Named, "fails", "play")
                with pytest.raises(Boom):
                    play()
            play()
        assert game.search().result().visits.sum() == 5
        assert search.run(simulations=5).visits.sum() == 5


def test_positions_of_a_burst_of_requests_do_not_stay() -> None:
    def alive() -> int:
        gc.collect()
        return len(Named.alive)

    with azpy.Engine(azpy.UniformEvaluator(), simulations=20) as engine:
        engine.submit(Named()).result()
        before = alive()
        kept = [pending.result() for pending in [engine.submit(Named()) for _ in range(64)]]
        assert alive() <= before + len(kept) + 100  # a result has its root
        del kept
        engine.submit(Named()).result()
        engine.submit(Named()).result()
        assert alive() <= before + 20
