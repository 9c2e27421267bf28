"""A short real run of every built-in game beats a random player, by more than the untrained network does."""

import json
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.games.names import make_game
from azpy.learning.export import to_onnx
from azpy.learning.learner import Learner
from azpy.matches.arena import RandomPlayer, SearchPlayer
from azpy.settings.presets import preset_of, usual_settings
from azpy.settings.run import Settings, match_search
from oracles import whole_match
from training_runs import events_of

SHORT: dict[str, Any] = {"network": "2x32", "simulations": 16, "gumbel_actions": 8, "games_per_iteration": 50}
SHORT |= {"window_min": 2_000, "match_every": 1_000_000, "match_games": 2, "final_match_games": 2}


# Game, evaluations of self-play in thousands, what else differs from its preset, simulations a move against the random
# player, the score to reach. Two simulations find next to nothing: it is the network that plays.
RUNS = [
    ("tic_tac_toe", 60, {}, 2, 0.85),
    ("connect_four", 500, {}, 2, 0.8),
    ("hex(size=5)", 400, {}, 2, 0.9),
    ("othello(size=6)", 400, {}, 2, 0.8),
    ("breakthrough(width=5,height=6)", 300, {}, 2, 0.9),
    ("gomoku(size=7,k=4)", 300, {}, 2, 0.9),
    ("go(size=5,komi=7.5)", 500, {}, 2, 0.7),
    ("backgammon", 500, {"network": "2x64", "simulations": 8, "passes": 1.0}, 16, 0.75),
    ("wall_game(width=4,height=4)", 500, {}, 2, 0.85),
    ("pig", 100, {"network": "3x128"}, 2, 0.7),
    ("dice_nim", 50, {"network": "3x128"}, 2, 0.55),
]


def train(game: str, thousands: int, changes: dict[str, Any], folder: Path) -> tuple[bytes, Path]:
    """The untrained model and that of a short run."""
    settings = Settings(game, total_evaluations=1000 * thousands, **(preset_of(game, SHORT) | SHORT | changes))
    events_of(settings, folder)
    start = azpy.make_game(game)
    untrained = Learner(start, settings.network, seed=settings.seed).averaged
    return to_onnx(untrained), max(folder.glob("checkpoints/*/model.onnx"))


def score(game: str, model: Path | bytes, simulations: int, **options: Any) -> float:
    """Of 100 games against a random player."""
    player = SearchPlayer(OnnxEvaluator(model, game=azpy.make_game(game)), simulations, **options)
    plies = usual_settings(azpy.make_game(game)).match_opening_plies
    return whole_match(make_game(game), player, RandomPlayer(), 100, seed=1, opening_plies=plies).score


@pytest.mark.slow
@pytest.mark.parametrize(("game", "thousands", "changes", "simulations", "wanted"), RUNS, ids=[run[0] for run in RUNS])
def test_a_short_run_beats_a_random_player(
    game: str, thousands: int, changes: dict[str, Any], simulations: int, wanted: float, tmp_path: Path
) -> None:
    untrained, trained = (score(game, model, simulations) for model in train(game, thousands, changes, tmp_path))
    print(f"{game}: {untrained:.3f} untrained, {trained:.3f} after {thousands},000 evaluations")
    assert trained >= wanted
    assert trained > untrained + 0.15


@pytest.mark.slow
def test_a_short_run_of_chess_learns_and_beats_random(tmp_path: Path) -> None:
    """Minutes teach a network too little of chess to show against a random player: the loss shows that it learns."""
    game = "chess(encoding=az18,max_plies=200)"
    small = {"games_per_iteration": 8, "passes": 2.0, "batch_size": 128}
    untrained, model = train(game, 400, small, tmp_path)
    start = azpy.make_game(game)
    before, after = (score(game, each, 64, **match_search(usual_settings(start), start)) for each in (untrained, model))
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [row["policy_loss"] for row in rows if row["kind"] == "iteration"]
    print(f"{game}: {before:.3f} untrained, {after:.3f} after 400,000 evaluations, policy losses {losses}")
    assert after >= 0.6
    assert losses[-1] < losses[0] - 0.1
