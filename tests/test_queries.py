"""Analysis queries with an engine that does what a test says: races, errors, and what is asked of the engine."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import azpy
from azpy.games.names import make_position
from azpy.serving.limits import NO_LIMITS, Limits
from azpy.serving.models import Model, open_engine, open_player
from azpy.serving.pending import Pending
from azpy.serving.positions import Line
from azpy.serving.queries import Analyst
from azpy.serving.query import read_query
from azpy.serving.track import Track


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


def analyst_of(engine: Any, game: str = "tic_tac_toe", limits: Limits = NO_LIMITS) -> tuple[Analyst, list[Any]]:
    said = list[Any]()
    return Analyst({"main": Model(open_player("uniform", game, 9), engine)}, said.append, limits), said


def test_reports_that_fail_are_not_said_and_the_answer_has_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise KeyError("no name")

    def report(wanted: dict[str, Any]) -> None:
        for _ in range(2):
            wanted["on_report"](engine.result)

    engine = Engine(report)
    analyst, said = analyst_of(engine)
    monkeypatch.setattr("azpy.serving.queries._found", fails)
    analyst.take({"id": "1", "reportDuringSearchEvery": 1})
    assert said == []
    engine.given[0].set_result(engine.result)
    assert said == [{"id": "1", "turnNumber": 0, "error": "'no name'"}]
    assert not analyst.is_busy


@pytest.mark.parametrize("error", [KeyError("x"), IndexError("x"), TypeError("x"), azpy.CoreError("x")])
def test_any_error_of_a_query_is_said(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise error

    analyst, said = analyst_of(Engine(fails))
    analyst.take({"id": "1", "moves": ["a1"], "analyzeTurns": [0, 1]})
    assert [one["turnNumber"] for one in said] == [0, 1]
    monkeypatch.setattr("azpy.serving.queries.read_query", fails)
    analyst.take({"id": "2"})
    assert said[2:] == [{"id": "2", "error": str(error)}]
    assert not analyst.is_busy


def test_a_client_that_leaves_while_a_query_is_taken_has_no_search() -> None:
    engine = Engine(lambda _: analyst.close())
    analyst, said = analyst_of(engine)
    analyst.take({"id": "1", "moves": ["a1", "b1"], "analyzeTurns": [0, 1, 2]})
    assert [pending.cancelled() for pending in engine.given] == [True], "the other turns are not begun"
    assert said == []
    assert not analyst.is_busy


def test_players_of_one_name_have_games_of_their_own() -> None:
    served, said = open_player("uniform:9", "tic_tac_toe", 9), list[Any]()
    models = {name: Model(replace(served), open_engine(served)) for name in ("one", "two")}
    analyst = Analyst(models, said.append)
    for name in ("one", "two", "one"):
        analyst.take({"id": name, "model": name, "game": "mine"})
        analyst.wait()
    assert [answer["rootInfo"]["reused"] for answer in said] == [0, 0, 9]


def test_a_search_by_time_has_the_most_simulations_of_the_client() -> None:
    model, limits = Model(open_player("uniform", "tic_tac_toe", 800), Engine()), Limits(50, seconds=5.0)  # type: ignore[arg-type]
    for fields, expected in (
        ({}, (50, 5.0)),
        ({"seconds": 1}, (50, 1.0)),
        ({"simulations": 7}, (7, 5.0)),
    ):
        query = read_query({"id": "1", **fields}, model, limits)
        assert (query.simulations, query.seconds) == expected
    query = read_query({"id": "1", "seconds": 1}, model, NO_LIMITS)
    assert (query.simulations, query.seconds) == (None, 1.0)


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
            return game

    engine: Any = Engines()
    track, start = Track(engine), make_position("tic_tac_toe")
    with pytest.raises(KeyError):
        track.follow(start, [4, 0, 8])
    assert game.played == [4]
    game.fails = False
    for played in ([4, 1], [], [4, 0, 8], [2]):
        track.follow(start, played)
        assert game.played == played


def test_a_game_that_is_over_keeps_its_moves() -> None:
    line = Line(make_position("chess"))
    for name in ("f2f3", "e7e5", "g2g4", "d8h4"):
        line.play(name)
    line.go_on()
    assert line.state.is_terminal
    assert len(line.played) == 4
