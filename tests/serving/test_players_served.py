"""Games of one player and of several in az-engine and az-serve: values, results and turns of all players."""

import importlib
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.serving.models import open_model


def test_a_network_of_three_players_gives_three_values(tmp_path: Path) -> None:
    game = "many_players:Trio"
    start = azpy.make_game(game)
    (tmp_path / "model.onnx").write_bytes(to_onnx(Network.of(start, "1x16").eval()))
    model = open_model(str(tmp_path / "model.onnx"), game, 9)
    assert model.engine.submit(start).result().values.shape == (3,)
    model.engine.close()


@pytest.mark.parametrize(
    ("game", "option", "said"),
    [
        ("pig", "score_to_beat=0.5", "score_to_beat is for games of one player, but pig has 2 players: leave it out"),
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
