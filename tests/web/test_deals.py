"""Games that hide something, on the wire and on the board: no byte tells what the person cannot know."""

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import ClientConnection, connect

import azpy
from azpy import _core
from azpy.cli.serve import main as az_serve
from azpy.serving.models import open_model
from azpy.web.page import write_page
from browser import Board, needs_browser
from models import make_model
from pages import ask_page, needs_node, served_by
from planted_games import SeenKuhn
from served import free_port, hiding, serving, site_of

pytest_plugins = ["browser"]


@pytest.fixture(params=["kuhn_poker", "leduc_poker"])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    with served_by(request.param) as model, site_of({"main": model}, renews=True) as address:
        yield request.param, address


class Wire:
    """A client of the WebSocket, and all bytes that it got since it was asked last."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self.heard = socket, list[str]()

    def ask(self, **message: Any) -> Any:
        self._socket.send(json.dumps({"id": "1", **message}))
        self.heard.append(str(self._socket.recv()))
        return json.loads(self.heard[-1])


def views(game: str, moves: list[str], side: int) -> Iterator[int]:
    """What the person knew at each of its turns in a game that is over."""
    state = azpy.make_game(game)
    for move in moves:
        if state.turn == side:
            yield _core.Walk(state).facts().views[side]
        state.play(state.parse_actions(move)[0])


@pytest.mark.parametrize("side", [0, 1])
def test_each_byte_of_a_websocket_follows_from_the_view(place: tuple[str, str], side: int) -> None:
    (game, address), rng = place, random.Random(1)
    known, seen = defaultdict[Any, set[str]](set), set[str]()
    with connect(f"ws://{address}/ws") as socket:
        for _ in range(400):
            wire, heard, sent = Wire(socket), list[str](), list[str]()
            said = wire.ask(action="deal", side=side)
            while said["result"] is None:
                # The server refuses requests that would look deeper, with the same text for every deal.
                for action in ("show", "write", "read"):
                    assert "hides something" in wire.ask(action=action, moves=[], nodes=[])["error"]
                wire.ask(moves=[], analyzeTurns=[0], includePolicy=True)
                wire.ask(action="query_models")
                wire.ask(action="play", move="?")
                heard.append(f"{sent} {wire.heard}")
                sent.append(rng.choice(said["actions"]))
                said = wire.ask(action="play", move=sent[-1])
            for view, text in itertools.zip_longest(views(game, said["moves"], side), heard):
                known[view].add(text)
            seen.add(" ".join(said["moves"][:2]))
    assert len(seen) == {"kuhn_poker": 6, "leduc_poker": 30}[game]
    assert all(len(texts) == 1 for texts in known.values())


@pytest.mark.parametrize("side", [0, 1])
def test_posts_and_pages_tell_a_view_and_no_more(place: tuple[str, str], side: int) -> None:
    game, address = place
    told: dict[str, set[bytes]] = defaultdict(set)
    with httpx.Client(base_url=f"http://{address}") as client:
        for number in range(120):
            said = client.post("/query", json={"id": "1", "action": "deal", "side": side})
            shown = f"{said.status_code} {[item for item in said.headers.items() if item[0] != 'date']}"
            told["deal"].add(shown.encode() + said.content)
            for path in ("/about", "/games", "/") if number % 20 == 0 else ():
                told[path].add(client.get(path).content)
        again = client.post("/query", json={"id": "1", "action": "play", "move": "raise"})
    cards = {"kuhn_poker": 3, "leduc_poker": 6}[game]
    # The second player also sees one of two actions of the first.
    assert {name: len(texts) for name, texts in told.items()} == dict.fromkeys(told, 1) | {"deal": cards * (1 + side)}
    assert "a POST cannot continue one" in again.json()["error"]


def test_a_player_that_draws_its_moves_has_no_levels(place: tuple[str, str]) -> None:
    answer = httpx.post(f"http://{place[1]}/query", json={"id": "1", "action": "query_models"}).json()
    assert [(model["hides"], model["levels"], model["ladder"]) for model in answer["models"]] == [(True, [], "")]


def test_figures_of_the_server_do_not_tell_a_card(tmp_path: Path) -> None:
    (tmp_path / "kuhn.onnx").write_bytes(make_model(shape=("batch", 11, 1, 1), actions=2))
    model = open_model(str(tmp_path / "kuhn.onnx"), "kuhn_poker", 1, shows_views=True)
    with site_of({"main": model}) as address, httpx.Client(base_url=f"http://{address}") as client:
        for number in range(1, 13):  # else a card that came before would be a hit of the cache
            client.post("/query", json={"id": "1", "action": "deal", "side": 1})
            shown = client.get("/metrics").text
            assert f'azpy_evaluations_total{{model="main"}} {number}.0\n' in shown
            assert 'azpy_cache_hits_total{model="main"} 0.0\n' in shown
    model.close()


def test_a_server_of_open_and_hidden_games_is_refused(one_line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    models = {"uniform:2": "kuhn_poker", "mcts:2": "tic_tac_toe"}
    monkeypatch.setattr("azpy.cli.serve.open_model", lambda player, **_: hiding(models[player]))
    said = one_line(az_serve, ["uniform:2", "--model", "b=mcts:2"], "az-serve: ")
    assert said == "az-serve: players of games that hide something need a server of their own: main\n"


class Failing(SeenKuhn):
    """Its error says what it hides."""

    def legal_actions(self) -> list[int]:
        assert len(self.said) != 1, self.cards
        return super().legal_actions()


def test_a_game_ends_before_its_error_is_told() -> None:
    with (
        served_by("test_deals:Failing") as model,
        site_of({"main": model}) as address,
        connect(f"ws://{address}/ws") as socket,
    ):
        wire = Wire(socket)
        wire.ask(action="deal")
        assert "(" in wire.ask(action="play", move="1")["error"]
        assert "no game is in play" in wire.ask(action="play", move="1")["error"]


@needs_browser
def test_the_board_shows_the_person_s_cards_alone(board: Board) -> None:
    with served_by("leduc_poker") as model, site_of({"main": model}, renews=True) as address:
        board.driver.get(f"http://{address}/")
        for _ in range(3):
            text = board.until(lambda: board.one("deal_actions").text and board.one("view").text)
            assert text.count("?") == 1
            while board.one("deal_status").text == "Your move.":
                assert board.one("view").text.count("?") == 1
                board.all("#deal_actions button")[-1].click()
                board.until(lambda: board.one("deal_status").text != "…")
            assert "?" not in board.one("view").text
            assert "Played: " in board.one("deal_played").text
            assert board.one("problem").text == ""
            board.script("document.getElementById('deal_side').value = '1'")
            board.one("deal_new").click()
        kept = board.script("return JSON.stringify([{...localStorage}, {...sessionStorage}, location.href])")
        assert "raise" not in kept
        board.driver.get("about:blank")


@needs_browser
def test_the_page_follows_the_server_to_another_game(board: Board) -> None:
    model, port = hiding("kuhn_poker"), free_port()
    with site_of({"main": model}, port=port) as address:
        board.driver.get(f"http://{address}/")
        board.until(lambda: board.one("view").text)
        # Keys for the moves of a board do nothing here.
        key = "new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true, cancelable: true})"
        assert board.script(f"return document.body.dispatchEvent({key})")
    board.until(lambda: board.one("problem_text").text.endswith("Start it again."))
    with site_of({"main": model}, port=port):
        board.until(lambda: board.one("connected").text == "connected")
        assert board.one("deal_status").text == "The game ended with the connection."
        board.one("deal_new").click()
        board.until(lambda: board.one("deal_status").text == "Your move.")
    model.close()
    board.until(lambda: board.one("problem_text").text.endswith("Start it again."))
    with serving("tic_tac_toe", port=port):
        board.until(lambda: board.one("main").is_displayed() and board.one("status").text == "Your move.")
        assert not board.one("deal").is_displayed()
        assert all("WebSocket" in error or "/about" in error for error in board.errors())
        board.driver.get("about:blank")


@needs_node
@pytest.mark.parametrize("side", [0, 1])
def test_messages_between_page_and_worker_tell_a_view(side: int, tmp_path: Path) -> None:
    known, shown = defaultdict[int, set[str]](set), set[str]()
    with served_by("kuhn_poker") as model:
        write_page(tmp_path / "page", model.player, None, b"")
    game = [{"id": "1", "action": "deal", "side": side}]
    game += [{"id": "1", "action": "play", "move": move} for move in ("check", "call")]
    answers = iter(one for (one,) in ask_page(tmp_path / "page", game * 200))
    for said in zip(answers, answers, answers, strict=True):
        (moves,) = (one["moves"] for one in said if one.get("result"))
        shown.add(" ".join(moves[:2]))
        # A check is refused where the other side has bet; the view is the same then.
        heard = [json.dumps(one) for one in said if "error" not in one]
        for view, text in zip(views("kuhn_poker", moves, side), heard, strict=False):
            known[view].add(text)
    assert len(shown) == 6
    assert len(known) >= 6
    assert all(len(texts) == 1 for texts in known.values())
