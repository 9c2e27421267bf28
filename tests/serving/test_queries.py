"""Analysis queries of one client: errors, ends, and what stays of them."""

import gc
import threading
import weakref
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

import azpy
from azpy._core import Message
from azpy.errors import one_line
from azpy.games.names import make_game
from azpy.serving.models import PlayerEngine, open_engine, open_model, open_player
from azpy.serving.queries import Response, Session
from models import make_model
from oracles import Held
from running import assert_soon
from sound_games import Nim
from talks import PATIENCE, Asker, asker_of


class Odd(Nim):
    """Nim in which `meanwhile` is called where a name is asked for."""

    meanwhile: ClassVar[Callable[[], object]] = lambda: None

    def action_name(self, action: int) -> str:
        """See `azpy.Game`."""
        type(self).meanwhile()
        return str(action)


def fails(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


ERRORS = [KeyError("x"), IndexError("x"), TypeError("x"), azpy.CoreError("x")]


@pytest.mark.parametrize("error", ERRORS)
def test_any_error_of_a_game_is_reported_once(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    with asker_of(azpy.State(Odd())) as asker:
        monkeypatch.setattr(Odd, "legal_actions", fails(error))
        asker.ask(id="1", moves=["0"])
        asker.wait()
        assert asker.said == [{"id": "1", "error": one_line(error)}]
        monkeypatch.undo()
        asker.said.clear()
        asker.ask(id="2", simulations=3, reportDuringSearchEvery=0.001)
        asker.wait()
        assert asker.said[-1]["rootInfo"]["visits"] == 3


@pytest.mark.parametrize("error", ERRORS)
def test_any_error_of_an_evaluator_is_reported_once_a_turn(error: Exception) -> None:
    evaluator = type("Fails", (), {"evaluate_batch": fails(error)})()
    with asker_of(make_game("tic_tac_toe"), evaluator) as asker:
        asker.ask(id="1", moves=["a1"], analyzeTurns=[0, 1], reportDuringSearchEvery=0.001)
        asker.wait()
        assert sorted(one["turnNumber"] for one in asker.said) == [0, 1]
        assert {one["error"] for one in asker.said} == {one_line(error)}


def test_a_client_that_leaves_during_its_query_has_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    with asker_of(azpy.State(Odd())) as asker:
        monkeypatch.setattr(Odd, "meanwhile", asker.close)
        asker.ask(id="1", moves=["0", "0"], analyzeTurns=[0, 1, 2])
        asker.wait()
        assert asker.said == []
        assert not asker.is_busy


def test_ctrl_c_in_a_game_is_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with asker_of(azpy.State(Odd())) as asker:
        monkeypatch.setattr(Odd, "legal_actions", fails(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            asker.ask(id="1", moves=["0"])
        assert asker.said == []


def test_a_client_that_left_is_freed_and_has_nothing_done(monkeypatch: pytest.MonkeyPatch) -> None:
    served = open_player("uniform", "tic_tac_toe", 9)
    said, renewed = list[Response](), list[int]()
    with open_engine(served) as engine:
        model = PlayerEngine(served, engine)
        monkeypatch.setattr(PlayerEngine, "renew", lambda _: renewed.append(1))
        session = Session({"main": model}, said.append, renews=True)
        session.take(Message('{"id": "1", "game": "g"}'))
        session.wait()
        session.close()
        for message in ('{"id": "2"}', '{"id": "3", "action": "renew"}'):
            session.take(Message(message))
        assert (len(said), renewed) == (1, [])
        gone = weakref.ref(session)
        gc.disable()  # memory must not wait for a collection of garbage
        try:
            del session
            assert gone() is None
        finally:
            gc.enable()


def test_a_long_message_holds_up_no_answer_of_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    reached, goes_on = threading.Event(), threading.Event()

    def slow() -> None:
        if threading.current_thread() is taking:
            reached.set()
            assert goes_on.wait(PATIENCE)

    evaluator = Held(9)
    with asker_of(azpy.State(Odd()), evaluator) as one:
        other = Asker(one._models)
        taking = threading.Thread(target=one.ask, kwargs={"id": "b", "moves": ["0"]})
        monkeypatch.setattr(Odd, "meanwhile", slow)
        one.ask(id="a", simulations=100)
        taking.start()
        assert reached.wait(PATIENCE)
        evaluator.leave.set()  # the answer to `a` comes while the next message is taken
        other.ask(id="c", simulations=3)
        assert_soon(lambda: other.said)
        one._models["main"].engine.submit(azpy.State(Odd()), 3_000).result()  # told after the answer to `a`
        assert [answer["id"] for answer in one.said] == []
        goes_on.set()
        taking.join()
        one.wait()
        assert {answer["id"] for answer in one.said} == {"a", "b"}
        other.close()


def test_no_report_comes_after_the_answer_of_its_search() -> None:
    served = open_player("uniform", "connect_four", 9)
    models = {name: PlayerEngine(replace(served), open_engine(served)) for name in ("one", "two")}
    asker = Asker(models)
    for number in range(60):
        model = ("one", "two")[number % 2]
        asker.ask(id=str(number), model=model, simulations=20_000, reportDuringSearchEvery=0.05)
    asker.wait()
    answered = set[str]()
    for answer in asker.said:
        assert answer["id"] not in answered
        if not answer["isDuringSearch"]:
            answered.add(answer["id"])
    assert len(answered) == 60
    asker.close()
    for each in models.values():
        each.close()


def test_a_search_that_the_engine_cancels_is_answered() -> None:
    with asker_of(make_game("connect_four")) as asker:
        asker.ask(id="1", simulations=2**32 - 1)
        asker._models["main"].engine.close(cancel=True)
        asker.wait()
        assert asker.said == [
            {"id": "1", "turnNumber": 0, "error": "the search was cancelled, because the engine is closing"}
        ]


def test_a_query_to_a_full_engine_can_be_asked_again() -> None:
    served = open_player("uniform:9", "tic_tac_toe", 9)
    with open_engine(served, max_requests=1) as engine:
        asker = Asker({"main": PlayerEngine(served, engine)})
        for name in ("first", "second"):
            asker.ask(id=name, seconds=60)
        (refused,) = asker.said
        asker.close()
    assert (refused["id"], refused["retryAfter"]) == ("second", 1)
    assert "(max_requests)" in refused["error"]


def test_a_board_of_another_shape_is_refused_before_a_search(tmp_path: Path) -> None:
    start = make_game("go(size=5)")
    (tmp_path / "model.onnx").write_bytes(make_model(shape=("batch", *start.obs_shape), actions=start.num_actions))
    with closing(open_model(str(tmp_path / "model.onnx"), start.game, 5)) as model:
        session = Asker({"main": model})
        for action in ({}, {"action": "show"}):
            session.ask(id="1", boardXSize=7, boardYSize=7, **action)
            assert session.said.pop()["error"].startswith(f"the network plays {start.game}, not go(size=7")
        assert model.engine.stats["requests"] == 0  # in a batch with others it would fail those too
        session.ask(id="2", boardXSize=5, boardYSize=5)
        session.wait()
        assert session.said.pop()["rootInfo"]["visits"] == 5


def test_a_game_follows_the_positions_that_are_named() -> None:
    with azpy.Engine(azpy.UniformEvaluator(), simulations=9) as engine:
        start = make_game("tic_tac_toe")
        game = engine.game(start)
        for played, is_same in (([4, 0, 8], True), ([4, 1], True), ([], False), ([2], True)):
            before, game = game, game.follow(start, played)
            assert (game is before, game.num_played) == (is_same, len(played))
            assert game.state.key() == azpy.parse_state(start, " ".join(map(start.action_name, played))).key()
        with pytest.raises(ValueError, match=r"^illegal action 2; legal actions are"):
            game.follow(start, [2, 2])
        with pytest.raises(ValueError, match=r"^illegal action -1$"):
            game.follow(start, [2, -1])
        game.undo()
        game.play(4)
        assert game.follow(start, [4, 0]) is game
        assert game.follow(azpy.make_game("hex", size=3), [4]) is not game
