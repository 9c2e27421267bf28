"""The Wall Game: drawn starts, and models of the form that the original program has.

Its rules and planes are tested in rust/games/tests/all/wall_game.rs and wall_game_turns.rs.
"""

import functools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.errors import ModelError


def test_the_chance_turn_of_freestyle_is_a_draw_of_seeds() -> None:
    start = azpy.make_game("wall_game(variant=freestyle)")
    assert start.turn == azpy.CHANCE
    outcomes = start.chance_outcomes()
    assert len(outcomes) == 32_768
    assert sum(probability for _, probability in outcomes) == 1
    for seed in (0, 12_345, 32_767):
        drawn = start.clone()
        drawn.play(seed)
        assert drawn.key() == azpy.make_game(f"wall_game(variant=freestyle,seed={seed})").key()
    with pytest.raises(azpy.GameError, match="chance turn"):
        azpy.Search(azpy.UniformEvaluator(), simulations=10).run(start)


# Worked examples that count


# A model as the original program exports it


@functools.cache
def original_model(columns: int, rows: int, batch: int | None = None) -> bytes:
    """States [B, 9, C, R] -> Priors, softmaxed over all actions, and Values [B, 1], tanh."""
    pytest.importorskip("onnxruntime")
    helper = pytest.importorskip("onnx.helper")
    numpy_helper = pytest.importorskip("onnx.numpy_helper")
    rng, cells, actions = np.random.default_rng(1), 9 * columns * rows, 2 * columns * rows + 8
    nodes = [
        helper.make_node("Flatten", ["States"], ["flat"]),
        helper.make_node("MatMul", ["flat", "policy"], ["raw"]),
        helper.make_node("Softmax", ["raw"], ["Priors"], axis=1),
        helper.make_node("MatMul", ["flat", "value"], ["score"]),
        helper.make_node("Tanh", ["score"], ["Values"]),
    ]
    weights = {
        "policy": rng.normal(0, 0.3, (cells, actions)).astype(np.float32),
        "value": rng.normal(0, 0.1, (cells, 1)).astype(np.float32),
    }
    size: Any = batch or "batch"
    graph = helper.make_graph(
        nodes,
        "original",
        [helper.make_tensor_value_info("States", 1, [size, 9, columns, rows])],
        [
            helper.make_tensor_value_info("Priors", 1, [size, actions]),
            helper.make_tensor_value_info("Values", 1, [size, 1]),
        ],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def positions_of_a_game(state: azpy.State, seed: int) -> Iterator[azpy.State]:
    rng = random.Random(seed)
    while not state.is_terminal:
        yield state.clone()
        state.play(rng.choice(state.legal_actions()))


@pytest.mark.parametrize("batch", [None, 16])
def test_a_model_of_the_original_program_runs_unchanged(batch: int | None) -> None:
    model, state = original_model(5, 4, batch), azpy.make_game("wall_game(width=5,height=4)")
    evaluator = azpy.OnnxEvaluator(model, game=state)
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    search = azpy.Search(evaluator, simulations=8)
    for position in list(positions_of_a_game(state, seed=2))[:20]:
        rows = np.repeat(position.observation()[None], batch or 1, axis=0)
        priors, _ = session.run(["Priors", "Values"], {"States": rows})
        legal = position.legal_actions()
        result = search.run(position)
        np.testing.assert_allclose(result.priors, priors[0, legal] / priors[0, legal].sum(), rtol=1e-4, atol=1e-7)


def test_a_model_of_the_original_program_plays_matches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from azpy.cli.match import main

    path = tmp_path / "theirs.onnx"
    path.write_bytes(original_model(3, 3, 4))
    game = "wall_game(width=3,height=3)"
    assert main([str(path), "uniform:8", "--game", game, "--games", "4", "--simulations", "8"]) == 0
    assert "score of A" in capsys.readouterr().out
    with pytest.raises(ModelError, match="does not fit the game"):
        azpy.OnnxEvaluator(path, game=azpy.make_game("wall_game"))
