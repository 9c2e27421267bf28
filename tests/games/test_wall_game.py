"""The planes of the Wall Game against a slow reading, and models of the form that the original program has.

Its rules are tested in rust/games/tests/all/wall_game.rs and wall_game_turns.rs.
"""

import functools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy.errors import ModelError

Cell = tuple[int, int]


def lengths(walls: NDArray[np.float32], source: Cell) -> NDArray[np.float32]:
    """[C, R] of path lengths from a cell over the planes of walls [2, C, R], as shares of the cells; 1 without path."""
    _, columns, rows = walls.shape
    found, queue = {source: 0}, [source]
    for column, row in queue:
        steps = [((column, row), 0, (column + 1, row)), ((column, row), 1, (column, row + 1))]
        steps += [((column - 1, row), 0, (column - 1, row)), ((column, row - 1), 1, (column, row - 1))]
        for edge, kind, cell in steps:
            on_board = 0 <= cell[0] < columns and 0 <= cell[1] < rows
            if on_board and cell not in found and not walls[kind][edge]:
                found[cell] = found[column, row] + 1
                queue.append(cell)
    planes = np.ones((columns, rows), np.float32)
    for cell, length in found.items():
        planes[cell] = length / (columns * rows)
    return planes


@pytest.mark.parametrize("options", ["", ",variant=classic", ",immediate=1"])
def test_planes_say_what_the_text_of_a_position_says(options: str) -> None:
    start = azpy.make_game(f"wall_game(width=5,height=4{options})")
    for position in [position for seed in range(8) for position in positions_of_a_game(start, seed)]:
        planes, words = position.observation(), position.to_text().split()

        def cell(name: str) -> Cell:
            return "abcde".index(name[0]), 4 - int(name[1])

        (red_cat, blue_cat), (red_mouse, blue_mouse) = words[1:3], words[4:6]
        pieces = [red_cat, blue_mouse, blue_cat, red_mouse]
        if position.turn == 1:
            pieces = [blue_cat, red_mouse, red_cat, blue_mouse]
        for plane, piece in zip(planes, pieces, strict=False):
            np.testing.assert_array_equal(plane, lengths(planes[4:6], cell(piece)), err_msg=position.to_text())
        walls = [word for word in words if word[0] in ">^"]
        for word in walls:
            column, row = cell(word[1:])
            assert planes[5, column, row - 1] if word[0] == "^" else planes[4, column, row]
        assert planes[4:6].sum() == len(walls) + 4 + 5  # and the rim
        expected = ["second" in words, position.turn == 0, "classic" not in options]
        assert [set(plane.ravel().tolist()) for plane in planes[6:]] == [{float(one)} for one in expected]


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


def test_self_play_of_freestyle_draws_a_start_for_every_game() -> None:
    with azpy.SelfPlay(
        "wall_game(variant=freestyle)", azpy.UniformEvaluator(), slots=4, simulations=2, games=6, max_plies=30
    ) as games:
        records = list(games)
    starts = {int(record.actions[0]) for record in records}
    assert len(starts) == 6
    assert all(record.players[0] == -1 for record in records)
    buffer = azpy.ReplayBuffer("wall_game(variant=freestyle)")
    for record in records:
        buffer.add(record)
    assert buffer.sample(8, seed=1)[0].shape == (8, 9, 12, 10)


# Worked examples that count


@pytest.mark.parametrize(
    ("spec", "actions", "shape"),
    [
        ("wall_game", 136, (9, 8, 8)),
        ("wall_game(variant=classic)", 136, (9, 8, 8)),
        ("wall_game(variant=classic,classic_policy=1)", 132, (9, 8, 8)),
        ("wall_game(variant=freestyle)", 248, (9, 12, 10)),
        ("wall_game(width=5,height=3)", 38, (9, 5, 3)),
    ],
)
def test_the_policy_and_the_planes_have_the_sizes_of_the_original(
    spec: str, actions: int, shape: tuple[int, int, int]
) -> None:
    state = azpy.make_game(spec)
    assert (state.num_actions, state.obs_shape) == (actions, shape)


def test_equal_games_have_equal_names() -> None:
    assert azpy.make_game("wall_game", width=8, height=8).game == "wall_game"
    assert azpy.make_game("wall_game", width=9).game.startswith("wall_game(variant=standard,width=9,height=auto,")
    freestyle = azpy.make_game("wall_game", variant="freestyle")
    assert azpy.make_game("wall_game", variant="freestyle", width=12, height=10).game == freestyle.game


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
