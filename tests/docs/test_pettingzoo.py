"""The example of a PettingZoo environment keeps PettingZoo's contract, and pays what the game pays."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import azpy

pytest.importorskip("pettingzoo")
EXAMPLE = Path(__file__).parents[2] / "examples/pettingzoo_env.py"


@pytest.fixture(scope="module")
def env() -> Any:
    spec = importlib.util.spec_from_file_location("pettingzoo_env", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.env


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("game", ["tic_tac_toe", "peg_solitaire", "pig(target=10)", "many_players:Trio"])
def test_the_example_keeps_pettingzoo_s_contract(env: Any, game: str) -> None:
    api_test = pytest.importorskip("pettingzoo.test").api_test
    api_test(env(game), num_cycles=100)


def test_a_win_pays_the_winner_and_costs_the_other(env: Any) -> None:
    played = env("tic_tac_toe")
    played.reset()
    for action in (0, 3, 1, 4, 2):
        assert played.observe(played.agent_selection)["action_mask"][action] == 1
        played.step(action)
    assert played.rewards == {"player_0": 1.0, "player_1": -1.0}
    assert all(played.terminations.values())
    assert azpy.make_game("tic_tac_toe").num_actions == played.action_space("player_0").n
