"""Pages without a server, asked in node."""

import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pytest

from azpy import _core
from azpy.games.names import make_game
from azpy.serving.limits import CLIENT_LIMITS
from azpy.serving.models import PlayerEngine, open_model
from azpy.web.page import write_page
from running import ended
from served import hiding
from talks import Asker

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")


def served_by(game: str) -> AbstractContextManager[PlayerEngine]:
    """A player without a network, which draws its moves if the game hides something."""
    return closing(hiding(game) if make_game(game).hides else open_model("uniform:40", game, 40))


def files_of(folder: Path) -> Path:
    """The folder of a page's files, which is named by their content."""
    (found,) = (path.parent for path in folder.glob("*/player.json"))
    return found


def ask_page(folder: Path, queries: Sequence[object]) -> list[list[Any]]:
    """The answers of a page's program to each query, or list of queries asked at once, in node."""
    assert NODE is not None
    lines = "".join(json.dumps(query) + "\n" for query in queries)
    command = [NODE, str(Path(__file__).with_name("ask_page.mjs")), str(files_of(folder))]
    done = ended(command, lines)
    assert done.code == 0, done.errors
    return [json.loads(line) for line in done.out.splitlines()]


def ask_server(model: PlayerEngine, queries: list[dict[str, Any]]) -> list[list[Any]]:
    """The answers of a server to each query."""
    asker, answers = Asker({"main": model}, CLIENT_LIMITS), list[list[Any]]()
    for query in queries:
        asker.ask(**query)
        asker.wait()
        answers.append(list(asker.said))
        asker.said.clear()
    return answers


def queries_of(game: str, count: int, rng: Random) -> list[dict[str, Any]]:
    """Queries about the positions of random games, one after the other as the board asks them."""
    state, played, found = make_game(game), list[tuple[int, str]](), list[dict[str, Any]]()
    while len(found) < count:
        moves = [name for _, name in played]
        where = {"id": str(len(found)), "moves": moves}
        kind = rng.randrange(6)
        if kind == 0:
            found.append(where | {"action": "show"})
        elif kind == 1:
            turns = rng.sample(range(len(moves) + 1), min(len(moves) + 1, 2))
            found.append(where | {"analyzeTurns": turns, "simulations": rng.randrange(1, 30), "includePolicy": True})
        elif kind == 2:
            found.append(where | {"level": rng.choice(["beginner", "casual", "Full-Strength", "grandmaster"])})
        elif kind == 3:
            found.append(where | {"simulations": rng.choice([0, 1, 50]), "includeLcb": True, "avoidMoves": moves[:1]})
        else:
            found.append(where | {"game": rng.choice("ab"), "includeShortNames": True, "nonsense": 1})
        if state.turn == _core.TERMINAL or rng.random() < 0.1:  # another game, or a take-back
            played = played[: rng.randrange(len(played) + 1)]
            state = make_game(game)
            for action, _ in played:
                state.play(action)
        else:
            action = rng.choice(state.legal_actions() or [outcome for outcome, _ in state.chance_outcomes()])
            played.append((action, state.action_name(action)))
            state.play(action)
    return found


def views(game: str, side: int, moves: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What a person is told in a game that hides something: at each of its turns, and at the end."""
    state = make_game(game)
    for move in moves:
        names = {state.action_name(action): action for action in state.legal_actions()}
        if state.turn == side:
            yield {"view": state.render_view(side), "actions": [*names], "result": None}
        rolls = {state.action_name(outcome): outcome for outcome, _ in state.chance_outcomes()}
        state.play((names | rolls)[move])
    assert state.is_terminal
    yield {"view": str(state), "actions": [], "result": state.result_text()}


def deals_of(moves: Sequence[str], rng: Random) -> list[dict[str, Any]]:
    """Messages of games that hide something. Many of their moves are not legal then."""
    found = list[dict[str, Any]]()
    for number in range(40):
        found.append({"id": "deal", "action": "deal", "side": number % 2})
        found += [{"id": "play", "action": "play", "move": rng.choice(moves)} for _ in range(30)]
    return found


def check_deals(game: str, messages: list[dict[str, Any]], answers: list[list[Any]]) -> None:
    """Replays games that hide something, and holds what the person was told to the rules."""
    games = list[list[Any]]()
    for message, (answer,) in zip(messages, answers, strict=True):
        if message["action"] == "deal":
            games.append([])
        else:
            assert ("error" in answer) == (message["move"] not in games[-1][-1]["actions"]), (message, answer)
        if "error" not in answer:
            games[-1].append(answer)
    ended = [heard for heard in games if heard[-1]["result"] is not None]
    assert len(ended) > len(games) / 2
    for heard in ended:
        expected = [*views(game, heard[0]["side"], heard[-1]["moves"])]
        assert [{name: answer[name] for name in expected[0]} for answer in heard] == expected


def _turn(answer: dict[str, Any]) -> int:
    return int(answer.get("turnNumber", 0))


def compare(game: str, count: int, seed: int, folder: Path, crate: Path | None = None) -> None:
    with served_by(game) as model:
        write_page(folder, model.player, None, b"", crate)
        queries = queries_of(game, count, Random(seed))
        queries += [{"id": "version", "action": "query_models"}, {"id": "model", "model": "other"}, {"action": "show"}]
        for query, page, server in zip(queries, ask_page(folder, queries), ask_server(model, queries), strict=True):
            # The server searches several turns at once.
            assert sorted(page, key=_turn) == sorted(server, key=_turn), query
        if model.player.start.hides:  # each deal is another one, so the rules say what both must answer
            moves = sorted({move for query in queries for move in query.get("moves", [])})
            messages = deals_of(moves, Random(seed))
            for answers in (ask_page(folder, messages), ask_server(model, messages)):
                check_deals(game, messages, answers)


class Quiet(SimpleHTTPRequestHandler):
    """A static host that counts what it was asked for."""

    def __init__(self, asked: Counter[str], *arguments: Any, **options: Any) -> None:
        self.asked = asked
        super().__init__(*arguments, **options)

    def log_message(self, *_: object) -> None:
        self.asked[self.path] += 1


@contextmanager
def hosted(folder: Path, asked: Counter[str], kind: type[Quiet] | None = None) -> Iterator[ThreadingHTTPServer]:
    host = ThreadingHTTPServer(("127.0.0.1", 0), partial(kind or Quiet, asked, directory=str(folder)))
    threading.Thread(target=host.serve_forever, daemon=True).start()
    try:
        yield host
    finally:
        host.shutdown()
        host.server_close()
