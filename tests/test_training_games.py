"""A short real run of every built-in game: its network beats a random player, the untrained one by much less."""

from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.arena import RandomPlayer, SearchPlayer, play_match
from azpy.network import Network, to_onnx
from azpy.onnx import OnnxEvaluator
from azpy.positions import make_position
from azpy.presets import preset_of
from azpy.settings import Settings
from azpy.trainer import Trainer

SHORT: dict[str, Any] = {
    "simulations": 40,
    "games_per_iteration": 50,
    "window_min": 2_000,
    "match_every": 1_000_000,
    "match_games": 2,
    "final_match_games": 2,
}


def score(game: str, model: Path | bytes, opening_plies: int) -> float:
    """Against a random player. With two simulations a move search finds next to nothing: the network plays."""
    player = SearchPlayer(OnnxEvaluator(model, game=azpy.make_game(game)), 2)
    return play_match(lambda: make_position(game), player, RandomPlayer(), 100, 1, opening_plies).score


# Game, evaluations of self-play in thousands, what else differs from its preset, and the score to reach.
RUNS = [
    ("tic_tac_toe", 60, {}, 0.85),
    ("connect_four", 300, {}, 0.9),
    ("hex(size=5)", 200, {"network": "3x32"}, 0.9),
    ("othello(size=6)", 400, {"network": "3x32"}, 0.8),
    ("breakthrough(width=5,height=6)", 300, {"network": "3x32"}, 0.9),
    ("gomoku(size=7,k=4)", 300, {"network": "3x32"}, 0.9),
    ("go(size=5,komi=7.5)", 300, {"network": "3x32"}, 0.8),
    ("chess(max_plies=200)", 150, {"network": "2x32", "simulations": 16, "gumbel_actions": 8}, 0.6),
    ("backgammon", 300, {"network": "2x128"}, 0.8),
    ("wall_game(width=5,height=5)", 300, {"network": "3x32"}, 0.8),
    ("pig", 100, {}, 0.7),
    ("dice_nim", 50, {}, 0.55),
]


@pytest.mark.slow
@pytest.mark.parametrize(("game", "thousands", "changes", "wanted"), RUNS, ids=[row[0] for row in RUNS])
def test_a_short_run_beats_a_random_player(
    game: str, thousands: int, changes: dict[str, Any], wanted: float, tmp_path: Path
) -> None:
    settings = Settings(game, total_evaluations=1000 * thousands, **(preset_of(game) | SHORT | changes))
    with Trainer(settings, tmp_path) as trainer:
        for _ in trainer.run():
            pass
    start = azpy.make_game(game)
    first = to_onnx(Network(start.obs_shape, start.num_actions, settings.network))
    last = max(tmp_path.glob("checkpoints/*/model.onnx"))
    untrained, trained = (score(game, model, settings.match_opening_plies) for model in (first, last))
    print(f"{game}: {untrained:.3f} untrained, {trained:.3f} after {thousands},000 evaluations")
    assert trained >= wanted
    assert trained > untrained + 0.05
