"""A short real run of every built-in game beats a random player; but for chess, the untrained network does so less."""

from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.arena import RandomPlayer, SearchPlayer, play_match
from azpy.network import Network, to_onnx
from azpy.onnx import OnnxEvaluator
from azpy.positions import make_position
from azpy.presets import preset_of
from azpy.settings import Settings, match_search
from azpy.trainer import Trainer

SHORT: dict[str, Any] = {
    "network": "2x32",
    "simulations": 16,
    "gumbel_actions": 8,
    "games_per_iteration": 50,
    "window_min": 2_000,
    "match_every": 1_000_000,
    "match_games": 2,
    "final_match_games": 2,
}


def score(game: str, model: Path | bytes, simulations: int, opening_plies: int) -> float:
    """Against a random player; where search has some say, with the settings of matches."""
    evaluator = OnnxEvaluator(model, game=azpy.make_game(game))
    options = match_search(Settings) if simulations > 2 else {}
    player = SearchPlayer(evaluator, simulations, **options)
    return play_match(lambda: make_position(game), player, RandomPlayer(), 50, 1, opening_plies).score


# Game, evaluations of self-play in thousands, what else differs from its preset, simulations a move against the random
# player, the score to reach, and by how much at least it is above that of the untrained network. Two simulations find
# next to nothing: it is the network that plays. In chess it is the search: minutes teach a network too little.
RUNS = [
    ("tic_tac_toe", 60, {}, 2, 0.85, 0.05),
    ("connect_four", 500, {}, 2, 0.8, 0.05),
    ("hex(size=5)", 400, {}, 2, 0.9, 0.05),
    ("othello(size=6)", 400, {}, 2, 0.8, 0.05),
    ("breakthrough(width=5,height=6)", 300, {}, 2, 0.9, 0.05),
    ("gomoku(size=7,k=4)", 300, {}, 2, 0.9, 0.05),
    ("go(size=5,komi=7.5)", 500, {}, 2, 0.7, 0.05),
    ("chess(encoding=az18,max_plies=200)", 400, {"passes": 1.0}, 64, 0.6, -0.2),
    ("backgammon", 500, {"network": "2x64", "simulations": 8, "passes": 1.0}, 16, 0.75, 0.05),
    ("wall_game(width=4,height=4)", 500, {}, 2, 0.85, 0.05),
    ("pig", 100, {"network": "3x128"}, 2, 0.7, 0.05),
    ("dice_nim", 50, {"network": "3x128"}, 2, 0.55, 0.05),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "thousands", "changes", "simulations", "wanted", "gain"), RUNS, ids=[row[0] for row in RUNS]
)
def test_a_short_run_beats_a_random_player(
    game: str, thousands: int, changes: dict[str, Any], simulations: int, wanted: float, gain: float, tmp_path: Path
) -> None:
    settings = Settings(game, total_evaluations=1000 * thousands, **(preset_of(game) | SHORT | changes))
    with Trainer(settings, tmp_path) as trainer:
        for _ in trainer.run():
            pass
    start = azpy.make_game(game)
    first = to_onnx(Network(start.obs_shape, start.num_actions, settings.network))
    last = max(tmp_path.glob("checkpoints/*/model.onnx"))
    untrained, trained = (score(game, model, simulations, settings.match_opening_plies) for model in (first, last))
    print(f"{game}: {untrained:.3f} untrained, {trained:.3f} after {thousands},000 evaluations")
    assert trained >= wanted
    assert trained > untrained + gain
