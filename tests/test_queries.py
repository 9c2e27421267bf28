"""Analysis queries with an engine that does what a test says: races, errors, and what is asked of the engine."""

import gc
import json
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy._core import Message
from azpy.games.names import make_game
from azpy.pending import Pending
from azpy.serving.limits import NO_LIMITS, Limits
from azpy.serving.models import Model, open_engine, open_model, open_player
from azpy.serving.queries import Analyst
from azpy.serving.track import Track
from test_onnx import make_model


class Engine:
    """Answers each request at once, after `meanwhile` was called with the keywords of the request."""

    def __init__(self, meanwhile: Callable[[dict[str, Any]], object] = lambda _: None) -> None:
        self._meanwhile, self.given = meanwhile, list[Pending]()

    def submit(self, state: azpy.State, simulations: int | None, **wanted: Any) -> Pending:
        pending = Pending(lambda: None)
        self.given.append(pending)
        self.result = azpy.Search(azpy.UniformEvaluator()).run(state, 5)
        self._meanwhile(wanted)
        return pending


class Asker(Analyst):
    """Is asked with dicts, and keeps the answers as dicts.

    Args:
        models, limits: see `Analyst`.

    Attributes:
        said: the answers.
    """

    def __init__(self, models: dict[str, Model], limits: Limits = NO_LIMITS) -> None:
        self.said = list[Any]()
        super().__init__(models, lambda answer: self.said.append(json.loads(answer.line)), limits)

    def ask(self, **fields: Any) -> None:
        self.take(Message(json.dumps(fields)))


def analyst_of(engine: Any, game: str = "tic_tac_toe", limits: Limits = NO_LIMITS) -> tuple[Asker, list[Any]]:
    asker = Asker({"main": Model(open_player("uniform", game, 9), engine)}, limits)
    return asker, asker.said


def test_reports_that_fail_are_not_said_and_the_answer_has_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise KeyError("no name")

    def report(wanted: dict[str, Any]) -> None:
        for _ in range(2):
            wanted["on_report"](engine.result)

    engine = Engine(report)
    analyst, said = analyst_of(engine)
    monkeypatch.setattr("azpy.serving.queries.chosen", fails)
    analyst.ask(id="1", reportDuringSearchEvery=1)
    assert said == []
    engine.given[0].set_result(engine.result)
    assert said == [{"id": "1", "turnNumber": 0, "error": "'no name'"}]
    assert not analyst.is_busy


@pytest.mark.parametrize("error", [KeyError("x"), IndexError("x"), TypeError("x"), azpy.CoreError("x")])
def test_any_error_of_a_query_is_said(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise error

    analyst, said = analyst_of(Engine(fails))
    analyst.ask(id="1", moves=["a1"], analyzeTurns=[0, 1])
    assert [one["turnNumber"] for one in said] == [0, 1]
    monkeypatch.setattr(analyst, "_model", fails)
    analyst.ask(id="2")
    assert said[2:] == [{"id": "2", "error": str(error)}]
    assert not analyst.is_busy


def test_a_client_that_leaves_while_a_query_is_taken_has_no_search() -> None:
    engine = Engine(lambda _: analyst.close())
    analyst, said = analyst_of(engine)
    analyst.ask(id="1", moves=["a1", "b1"], analyzeTurns=[0, 1, 2])
    assert [pending.cancelled() for pending in engine.given] == [True], "the other turns are not begun"
    assert said == []
    assert not analyst.is_busy


def test_a_search_that_the_engine_cancels_is_answered() -> None:
    engine = Engine()
    analyst, said = analyst_of(engine)
    analyst.ask(id="1")
    assert said == []
    engine.given[0].cancel()
    assert said == [{"id": "1", "turnNumber": 0, "error": "the search was cancelled: the engine ends"}]
    assert not analyst.is_busy


def test_a_board_of_another_shape_is_refused_before_a_search(tmp_path: Path) -> None:
    start = make_game("go(size=5)")
    (tmp_path / "model.onnx").write_bytes(make_model(shape=("batch", *start.obs_shape), actions=start.num_actions))
    model = open_model(str(tmp_path / "model.onnx"), start.game, 5)
    try:
        analyst = Asker({"main": model})
        said = analyst.said
        for action in ({}, {"action": "show"}):
            analyst.ask(id="1", boardXSize=7, boardYSize=7, **action)
            assert said.pop()["error"].startswith(f"the network plays {start.game}, not go(size=7")
        assert model.engine.stats["requests"] == 0  # in a batch with others it would fail those too
        analyst.ask(id="2", boardXSize=5, boardYSize=5)
        analyst.wait()
        assert said.pop()["rootInfo"]["visits"] == 5
    finally:
        model.engine.close()


def test_an_answered_search_leaves_no_tree_behind() -> None:
    engine = Engine()
    analyst, _ = analyst_of(engine)
    gc.disable()  # memory must not wait for a collection of garbage
    try:
        analyst.ask(id="1", moves=[])
        pending = weakref.ref(engine.given[0])
        engine.given.pop().set_result(engine.result)
        assert pending() is None
    finally:
        gc.enable()


def test_a_client_that_leaves_takes_its_trees_along() -> None:
    with azpy.Engine(azpy.UniformEvaluator()) as engine:
        analyst, said = analyst_of(engine)
        for name in ("a", "b"):
            analyst.ask(id=name, game=name, simulations=3)
        analyst.wait()
        assert len(said) == 2
        trees = [weakref.ref(track) for track in analyst._games.values()]
        analyst.close()
        assert [tree() for tree in trees] == [None, None]


def test_players_of_one_name_have_games_of_their_own() -> None:
    served = open_player("uniform:9", "tic_tac_toe", 9)
    models = {name: Model(replace(served), open_engine(served)) for name in ("one", "two")}
    analyst = Asker(models)
    for name in ("one", "two", "one"):
        analyst.ask(id=name, model=name, game="mine")
        analyst.wait()
    assert [answer["rootInfo"]["reused"] for answer in analyst.said] == [0, 0, 9]


def test_a_game_that_cannot_be_followed_is_followed_the_next_time() -> None:
    class Game:
        def __init__(self) -> None:
            self.played, self.fails = list[int](), True

        def play(self, action: int) -> None:
            if self.fails and self.played:
                raise KeyError(action)
            self.played.append(action)

        def undo(self) -> None:
            self.played.pop()

    game: Any = Game()

    class Engines:
        def game(self, _: azpy.State) -> Any:
            game.played = []
            return game

    engine: Any = Engines()
    track, start = Track(engine), make_game("tic_tac_toe")
    with pytest.raises(KeyError):
        track.follow(start, [4, 0, 8])
    assert game.played == [4]
    game.fails = False
    for played in ([4, 1], [], [4, 0, 8], [2]):
        track.follow(start, played)
        assert game.played == played


def answers_to(player: str, game: str, *queries: dict[str, Any], limits: Limits = NO_LIMITS) -> list[Any]:
    """What a real engine answers to queries, each sent after the answer to the one before."""
    served = open_player(player, game, 60)
    with open_engine(served) as engine:
        analyst = Asker({"main": Model(served, engine)}, limits)
        for number, query in enumerate(queries):
            analyst.ask(**{"id": str(number), **query})
            analyst.wait()
    return analyst.said


def test_the_game_that_was_not_asked_for_longest_loses_its_tree() -> None:
    limits = Limits(games=2)
    asked = [{"game": name, "simulations": 9} for name in "abacab"]
    said = answers_to("uniform", "tic_tac_toe", *asked, limits=limits)
    assert [answer["rootInfo"]["reused"] for answer in said] == [0, 0, 9, 0, 18, 0]


def test_some_turns_of_a_query_can_be_ended() -> None:
    stopped = list[int]()

    class Slow(Engine):
        def submit(self, state: azpy.State, simulations: int | None, **wanted: Any) -> Pending:
            turn = len(self.given)
            self.given.append(Pending(lambda: stopped.append(turn)))
            return self.given[-1]

    analyst, said = analyst_of(Slow())
    analyst.ask(id="1", moves=["a1", "b1"], analyzeTurns=[0, 1, 2])
    for fields in (
        {"terminateId": "2"},
        {"terminateId": "1", "turnNumbers": [5]},
        {"terminateId": "1", "turnNumbers": [2, 0]},
    ):
        analyst.ask(id="end", action="terminate", **fields)
        assert said.pop() == {"id": "end", "action": "terminate", **fields}
    assert stopped == [0, 2]
    analyst.ask(id="end", action="terminate_all", turnNumbers=[1])
    assert stopped == [0, 2, 1]


def test_a_temperature_plays_other_moves_among_those_allowed() -> None:
    served = open_player("uniform", "tic_tac_toe", 60, temperature=10.0)
    with open_engine(served) as engine:
        analyst = Asker({"main": Model(served, engine)})
        for number in range(60):
            analyst.ask(id=str(number), allowMoves=["a1", "b2"])
            analyst.wait()
    assert {answer["move"] for answer in analyst.said} == {"a1", "b2"}
