"""Games of one player and of several in az-engine and az-serve: values, results and turns of all players."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from uci_talks import all_heard, talk

import azpy
from azpy._core import Message
from azpy.errors import SettingsError
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.serving.models import open_model
from azpy.serving.queries import Analyst

MOVES = ["0", "4", "8", "1", "5", "10"]  # of `Trio`: player 0 wins by 2


def answers(game: str, *queries: dict[str, Any]) -> list[dict[str, Any]]:
    """What is said to these queries, one answer each."""
    said = list[dict[str, Any]]()
    model = open_model("mcts:60", game, 60)
    analyst = Analyst({"main": model}, lambda reply: said.append(json.loads(reply.line)))
    for number, query in enumerate(queries, 1):
        analyst.take(Message(json.dumps({"id": f"{number}", **query})))
        analyst.wait()
        assert len(said) == number, said
    model.engine.close()
    return said


def test_queries_tell_the_values_of_three_players() -> None:
    about, begun, searched, over, shown = answers(
        "many_players:Colors",
        {"action": "query_models"},
        {"action": "show"},
        {"moves": MOVES, "simulations": 400},
        {"moves": [*MOVES, "2"]},
        {"action": "show", "moves": [*MOVES, "2"]},
    )
    (player,) = about["models"]
    assert (player["numPlayers"], player["sideNames"]) == (3, ["red", "blue", "green"])
    assert (begun["player"], begun["outcomes"], "outcome" in begun) == (0, None, False)
    root, best = searched["rootInfo"], searched["moveInfos"][0]
    assert (searched["move"], best["move"], best["value"], best["values"]) == ("2", "2", 1.0, [1.0, -0.5, -0.5])
    assert root["value"] == root["values"][root["player"]] > 0.5 > 0 > max(root["values"][1:])
    assert over["rootInfo"]["outcomes"] == shown["outcomes"] == [1.0, -0.5, -0.5]
    assert shown["result"] == "Red wins: red gets 1, blue gets -0.5, green gets -0.5"


def test_moves_may_name_each_of_the_players() -> None:
    named = [[number % 3, move] for number, move in enumerate(MOVES)]
    legal = {"moves": named, "allowMoves": [[0, "3"], [2, "6"]]}
    searched, wrong, unknown = answers("many_players:Trio", legal, {"moves": [[2, "0"]]}, {"moves": [[3, "0"]]})
    assert [move["move"] for move in searched["moveInfos"]] == ["3"]
    assert wrong["error"] == "moves[0]: '0': it is player 0"
    assert unknown["error"] == "moves[0]: expected a whole number from 0 to 2, got 3"


@pytest.mark.parametrize(
    ("game", "players", "moves", "said"),
    [
        ("many_players:Knapsack", 1, ["0", "1", "0", "1", "0", "1"], "Score -0.0385"),
        ("many_players:Together", 2, ["0", "4", "1", "5", "2"], "Each player gets 0.6875"),
    ],
)
def test_queries_know_one_player_and_two_without_a_zero_sum(
    game: str, players: int, moves: list[str], said: str
) -> None:
    about, searched, shown = answers(game, {"action": "query_models"}, {}, {"action": "show", "moves": moves})
    assert about["models"][0]["numPlayers"] == players
    assert len(searched["rootInfo"]["values"]) == len(searched["moveInfos"][0]["values"]) == players
    assert searched["rootInfo"]["values"][0] == searched["rootInfo"]["value"]
    assert (len(shown["outcomes"]), shown["result"]) == (players, said)


def test_two_players_with_a_zero_sum_are_told_as_before() -> None:
    about, searched, shown = answers("tic_tac_toe", {"action": "query_models"}, {}, {"action": "show"})
    assert "numPlayers" not in about["models"][0]
    assert "values" not in {*searched["rootInfo"], *searched["moveInfos"][0]}
    assert (shown["outcome"], "outcomes" in shown) == (None, False)


def test_ugi_tells_turns_clocks_and_results_of_three_players() -> None:
    engine = talk("mcts:30", "many_players:Colors", "ugi")
    engine.say("position startpos moves 0 4", "query p3turn", "query p1turn", "query result", "query outcomes")
    heard = [engine.hear("response") for _ in range(4)]
    assert heard == ["response true", "response false", "response none", "response none"]
    # The third player's clock counts: with the others' an hour would be searched.
    engine.say("go p1time 90000000 p2time 90000000 p3time 40 p3inc 1")
    assert len(engine.hear("info string values").split()) == 6
    engine.hear("bestmove")
    engine.say(f"position startpos moves {' '.join(MOVES)} 2", "query gameover", "query result", "query outcomes")
    heard = [engine.hear("response") for _ in range(3)]
    assert heard == ["response true", "response p1win", "response 1 -0.5 -0.5"]
    engine.close()


def test_ugi_refuses_what_one_player_does_not_have() -> None:
    heard = all_heard("mcts:9", "many_players:Knapsack", "ugi", "query result", "query p2turn", "go nodes 9", "quit")
    problem = "info string error: query: expected gameover, p1turn, outcomes"
    assert heard[:2] == [problem] * 2
    assert heard[-1].startswith("bestmove ")


def test_a_network_of_three_players_is_served_without_the_solver_of_two(tmp_path: Path) -> None:
    game = "many_players:Trio"
    start = azpy.make_game(game)
    (tmp_path / "model.onnx").write_bytes(to_onnx(Network.of(start, "1x16").eval()))
    model = open_model(str(tmp_path / "model.onnx"), game, 9)
    assert model.engine.submit(start).result().values.shape == (3,)
    model.engine.close()
    with pytest.raises(SettingsError, match=r"solver and lookahead are for games of one player, .* Trio has 3 players"):
        open_model(f"{tmp_path}/model.onnx?solver=true", game, 9)


@pytest.mark.parametrize(
    ("game", "option", "said"),
    [
        ("pig", "score_to_beat=0.5", "score_to_beat is for games of one player, and pig has 2 players: leave it out"),
        ("connect_four_for_three", "solver=true", "solver and lookahead are for games of one player"),
    ],
)
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("match", ["random"], ["--games", "2"]),
        ("engine", [], ["--protocol", "json"]),
        ("serve", [], ["--port", "0"]),
        ("serve", ["mcts:2"], ["--port", "0", "--model"]),
        ("play", [], ["--terminal"]),
    ],
)
def test_an_option_that_a_game_rules_out_is_refused_at_once(
    name: str, before: list[str], after: list[str], game: str, option: str, said: str, one_line: Any
) -> None:
    command, player = importlib.import_module(f"azpy.cli.{name}"), f"mcts:2?{option}"
    given = [*before, *after, f"other={player}"] if "--model" in after else [*before, player, *after]
    assert said in one_line(command.main, ["--game", game, *given], f"az-{name}: player 'mcts?{option}': ")
