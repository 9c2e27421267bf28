"""Answers to queries beside searches of the test's own. transcripts/json.txt has conversations."""

from typing import Any

import numpy as np
import pytest

import azpy
from azpy.games.names import make_game
from azpy.serving.json_lines import JsonLines
from azpy.serving.models import TREES_MB, open_player, with_engines
from talks import JsonTalk


class Client(JsonTalk):
    """A program that asks one query after the other."""

    def ask(self, **fields: Any) -> dict[str, Any]:
        self.send(id="ask", **fields)
        return self.receive("ask")


def client_of(game: str, **players: str) -> Client:
    models = {name: open_player(text, game, 30) for name, text in (players or {"player": "uniform:30"}).items()}
    return Client(lambda talk: JsonLines(models, talk).run())


def expected(state: azpy.State, simulations: int, **options: Any) -> azpy.SearchResult:
    """The slow way: a search by itself, with the options of a player that is served."""
    served = open_player("uniform", state.game, 1)
    return azpy.Search(served.evaluator, **served.options).run(state, simulations, **options)


@pytest.mark.parametrize("game", ["connect_four", "chess", "go(size=7)", "othello(size=6)", "hex(size=5)", "wall_game"])
def test_answers_are_those_of_a_search(game: str) -> None:
    client, rng = client_of(game), np.random.default_rng(1)
    state, names, states = make_game(game), list[str](), []
    for _ in range(6):
        states.append(state.clone())
        action = int(rng.choice(state.legal_actions()))
        names.append(state.action_name(action))
        state.play(action)
    client.send(id="all", moves=names, analyzeTurns=[0, 2, 4, 5], simulations=40, includePolicy=True)
    answers = {answer["turnNumber"]: answer for answer in (client.receive("all") for _ in range(4))}
    assert set(answers) == {0, 2, 4, 5}
    for turn, answer in answers.items():
        result, position = expected(states[turn], 40), states[turn]
        visited = zip(result.actions, result.visits, strict=True)
        root, visits = answer["rootInfo"], {one["move"]: one["visits"] for one in answer["moveInfos"]}
        assert visits == {position.action_name(int(a)): int(n) for a, n in visited if n > 0}
        assert (root["visits"], root["player"], root["reused"]) == (40, position.turn, 0)
        assert root["value"] == pytest.approx(result.value, abs=1e-5)
        assert result.action is not None
        assert answer["move"] == answer["moveInfos"][0]["move"] == position.action_name(result.action)
        for order, one in enumerate(answer["moveInfos"]):
            assert one["order"] == order
            assert one["pv"][0] == one["move"]
            after = position.clone()
            for name in one["pv"]:
                after.play({after.action_name(a): a for a in after.legal_actions()}[name])
    client.close()


def test_a_query_of_katago_is_the_search_of_its_position() -> None:
    go, moves = client_of("go(size=7)"), [["W", "C3"], ["B", "D4"], ["B", "E5"]]
    for view in ("WHITE", "BLACK"):
        answer = go.ask(
            komi=6.5,
            initialStones=[["B", "B2"], ["W", "F6"]],
            moves=moves,
            maxVisits=25,
            overrideSettings={"reportAnalysisWinratesAs": view},
        )
        result = expected(azpy.parse_state("go(size=7,komi=6.5)", "(;SZ[7]AB[bf][dd][ec]AW[fb][ce]PL[W])"), 25)
        assert [one["visits"] for one in answer["moveInfos"]] == sorted(result.visits[result.visits > 0])[::-1]
        value = result.value if view == "WHITE" else -result.value  # White is to move: two moves of Black in a row
        assert answer["rootInfo"]["winrate"] == pytest.approx((1 + value) / 2, abs=1e-5)
    for allowed in (["C3", "E5"], None):
        answer = go.ask(moves=["D4"], simulations=40, **({"allowMoves": allowed} if allowed else {}))
        state = azpy.parse_state("go(size=7)", "D4")
        actions = [action for name in allowed for action in state.parse_actions(name)] if allowed else None
        result = expected(state, 40, actions=actions)
        assert answer["rootInfo"]["value"] == pytest.approx(result.value, abs=1e-5)
    go.close()


def test_players_share_the_memory_of_their_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[dict[str, Any]]()
    monkeypatch.setattr("azpy.serving.models.open_engine", lambda _, **options: given.append(options))
    served = open_player("uniform:2", "pig", 2)
    with_engines({"a": served, "b": served, "c": served}, 7)
    assert given == [{"max_requests": 7, "total_memory_mb": TREES_MB // 3}] * 3
