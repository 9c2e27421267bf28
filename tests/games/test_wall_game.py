"""The Wall Game: drawn starts, and models of the form that the original program has.

Its rules and planes are tested in rust/games/tests/all/wall_game.rs and wall_game_turns.rs.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import azpy
from azpy.cli.match import main
from azpy.errors import ModelError
from models import make_priors_model
from oracles import after, random_positions


def test_the_chance_turn_of_freestyle_is_a_draw_of_seeds() -> None:
    start = azpy.make_game("wall_game(variant=freestyle)")
    assert start.turn == azpy.CHANCE
    outcomes = start.chance_outcomes()
    assert len(outcomes) == 32_768
    assert sum(probability for _, probability in outcomes) == 1
    for seed in (0, 12_345, 32_767):
        assert after(start, seed).key() == azpy.make_game(f"wall_game(variant=freestyle,seed={seed})").key()
    with pytest.raises(azpy.GameError, match="chance turn"):
        azpy.Search(azpy.UniformEvaluator(), simulations=10).run(start)


# A model as the original program exports it: States -> Priors, softmaxed over all actions, and Values [B, 1]


def original_model(columns: int, rows: int, batch: int | None = None) -> bytes:
    return make_priors_model(shape=("batch", 9, columns, rows), actions=2 * columns * rows + 8, batch=batch)


@pytest.mark.parametrize("batch", [None, 16])
def test_a_model_of_the_original_program_runs_unchanged(batch: int | None) -> None:
    model, state = original_model(5, 4, batch), azpy.make_game("wall_game(width=5,height=4)")
    evaluator = azpy.OnnxEvaluator(model, game=state)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    search = azpy.Search(evaluator, simulations=8)
    for _, position in random_positions(state, 20, seed=2, longest=30):
        rows = np.repeat(position.observation()[None], batch or 1, axis=0)
        priors, _ = session.run(["Priors", "Values"], {"States": rows})
        legal = position.legal_actions()
        result = search.run(position)
        np.testing.assert_allclose(result.priors, priors[0, legal] / priors[0, legal].sum(), rtol=1e-4, atol=1e-7)


def test_a_model_of_the_original_program_plays_matches(tmp_path: Path, printed: Any) -> None:
    path = tmp_path / "theirs.onnx"
    path.write_bytes(original_model(3, 3, 4))
    game = "wall_game(width=3,height=3)"
    assert "score of A" in printed(main, [str(path), "uniform:8", "--game", game, "--games", "4", "--simulations", "8"])
    with pytest.raises(ModelError, match="does not fit the game"):
        azpy.OnnxEvaluator(path, game=azpy.make_game("wall_game"))
