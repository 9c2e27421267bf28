"""The Wall Game against a slow reading of its rules, and with a model of the form that the original program has."""

import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy.errors import ModelError

Cell = tuple[int, int]
Edge = frozenset[Cell]
STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))
SIDES = ("red", "blue")


@dataclass
class Twin:
    """A position as dictionaries and sets. Walls are tried by building them and searching the board.

    Attributes:
        columns, rows: of the board.
        options: of the game, as `make_game` takes them.
        pieces: (player, "C" or "M") -> cell, row 0 at the top.
        walls: pairs of neighbours with a wall between.
        turns: that are over, of both players.
        behind: where the first action of this turn came from, if it was a step: the piece and its cell.
    """

    columns: int
    rows: int
    options: dict[str, Any]
    pieces: dict[tuple[int, str], Cell]
    walls: set[Edge] = field(default_factory=set)
    turns: int = 0
    second: bool = False
    behind: tuple[str, Cell] | None = None
    known: list[int] | None = None  # legal actions, once they are asked for

    @classmethod
    def start(cls, columns: int, rows: int, **options: Any) -> "Twin":
        corners = {
            (0, "C"): (0, 0),
            (0, "M"): (0, rows - 1),
            (1, "C"): (columns - 1, 0),
            (1, "M"): (columns - 1, rows - 1),
        }
        return cls(columns, rows, options, corners)

    @property
    def mover(self) -> int:
        return self.turns % 2

    @property
    def classic(self) -> bool:
        return self.options.get("variant") == "classic"

    @functools.cached_property
    def cells(self) -> list[Cell]:
        return [(column, row) for column in range(self.columns) for row in range(self.rows)]

    def edges(self) -> list[Edge | None]:
        """By number in the policy; None at the rim."""
        inside = set(self.cells)
        pairs = [(cell, (cell[0] + 1, cell[1])) for cell in self.cells]
        pairs += [(cell, (cell[0], cell[1] + 1)) for cell in self.cells]
        return [frozenset(pair) if pair[1] in inside else None for pair in pairs]

    def paths_from(self, source: Cell, walls: set[Edge]) -> dict[Cell, int]:
        lengths, queue = {source: 0}, [source]
        for cell in queue:
            for right, down in STEPS:
                other = (cell[0] + right, cell[1] + down)
                on_board = 0 <= other[0] < self.columns and 0 <= other[1] < self.rows
                if on_board and other not in lengths and frozenset((cell, other)) not in walls:
                    lengths[other] = lengths[cell] + 1
                    queue.append(other)
        return lengths

    def can_hunt(self, walls: set[Edge]) -> bool:
        return all(
            self.pieces[1 - player, "M"] in self.paths_from(self.pieces[player, "C"], walls) for player in (0, 1)
        )

    def target(self, number: int) -> tuple[str, Cell]:
        """The piece and the cell that a step leads to, on the board or not."""
        piece, step = divmod(number - 2 * self.columns * self.rows, 4)
        column, row = self.pieces[self.mover, "CM"[piece]]
        return "CM"[piece], (column + STEPS[step][0], row + STEPS[step][1])

    def legal(self) -> list[int]:
        if self.known is None:
            self.known = self.find_legal()
        return self.known

    def find_legal(self) -> list[int]:
        edges = self.edges()
        legal = [
            number
            for number, edge in enumerate(edges)
            if edge is not None and edge not in self.walls and self.can_hunt(self.walls | {edge})
        ]
        for number in range(len(edges), len(edges) + (4 if self.classic else 8)):
            piece, cell = self.target(number)
            passage = frozenset((self.pieces[self.mover, piece], cell))
            if cell in self.cells and passage not in self.walls and (piece, cell) != self.behind:
                legal.append(number)
        return legal

    def play(self, number: int) -> None:
        edges, behind, self.known = self.edges(), None, None
        if number < len(edges):
            edge = edges[number]
            assert edge is not None
            self.walls.add(edge)
        else:
            piece, cell = self.target(number)
            behind = (piece, self.pieces[self.mover, piece])
            self.pieces[self.mover, piece] = cell
        if self.second:
            self.turns, self.second, self.behind = self.turns + 1, False, None
        else:
            self.second, self.behind = True, behind
            if self.captured() is None and not self.legal():
                self.turns, self.second, self.behind, self.known = self.turns + 1, False, None, None

    def outcome(self) -> float | None:
        """For Red; None while the game goes on. A position read in mid-turn without an action has no winner."""
        captured = self.captured()
        if captured is not None:
            return captured
        return 0.0 if self.turns == 200 or not self.legal() else None

    def captured(self) -> float | None:
        """For Red; None if nobody has captured, or if a capture is not judged yet."""
        if not self.second or self.options.get("immediate"):
            last = self.mover if self.second else 1 - self.mover
            for player in (last, 1 - last):
                if self.pieces[player, "C"] == self.pieces[1 - player, "M"]:
                    away = self.paths_from(self.pieces[1, "C"], self.walls)[self.pieces[0, "M"]]
                    drawn = player == last == 0 and self.options.get("one_move_rule") and away <= 2
                    return 0.0 if drawn else 1.0 - 2 * player
        return None

    def planes(self) -> NDArray[np.float32]:
        planes = np.zeros((9, self.columns, self.rows), np.float32)
        sources = ((self.mover, "C"), (1 - self.mover, "M"), (1 - self.mover, "C"), (self.mover, "M"))
        for plane, source in enumerate(sources):
            lengths = self.paths_from(self.pieces[source], self.walls)
            for cell in self.cells:
                planes[plane][cell] = lengths[cell] / len(self.cells) if cell in lengths else 1
        for number, edge in enumerate(self.edges()):
            kind, place = divmod(number, len(self.cells))
            planes[4 + kind][self.cells[place]] = edge is None or edge in self.walls
        planes[6], planes[7], planes[8] = self.second, self.mover == 0, not self.classic
        return planes

    def cell_name(self, cell: Cell) -> str:
        return f"{'abcdefghijklmnopqrst'[cell[0]]}{self.rows - cell[1]}"

    def name(self, number: int) -> str:
        if number < 2 * len(self.cells):
            kind, cell = divmod(number, len(self.cells))
            column, row = self.cells[cell]
            return f"^{self.cell_name((column, row + 1))}" if kind else f">{self.cell_name((column, row))}"
        piece, cell_to = self.target(number)
        return piece + self.cell_name(cell_to)

    def text(self) -> str:
        """The position in the game's notation."""
        cats, mice = ([self.cell_name(self.pieces[player, piece]) for player in (0, 1)] for piece in "CM")
        walls = [
            self.name(number) for number, edge in enumerate(self.edges()) if edge is not None and edge in self.walls
        ]
        text = f"cats {' '.join(cats)} mice {' '.join(mice)} {' '.join(['walls', *walls] if walls else [])}"
        text = f"{text.strip()} turn {self.turns // 2 + 1} {SIDES[self.mover]}{' second' if self.second else ''}"
        return text + (f" not {self.behind[0]}{self.cell_name(self.behind[1])}" if self.behind else "")

    def state(self) -> azpy.State:
        start = azpy.make_game("wall_game", width=self.columns, height=self.rows, **self.options)
        return azpy.parse_state(start, self.text())


def compare(state: azpy.State, twin: Twin) -> bool:
    """Whether the game goes on; both must say the same of everything."""
    outcome = twin.outcome()
    assert state.to_text() == twin.text()
    assert state.is_terminal == (outcome is not None), str(state)
    if outcome is not None:
        assert state.outcome() == outcome, str(state)
        return False
    legal = twin.legal()
    assert state.turn == twin.mover
    assert state.legal_actions() == legal, str(state)
    assert [state.action_name(action) for action in legal] == [twin.name(action) for action in legal]
    np.testing.assert_array_equal(state.observation(), twin.planes(), err_msg=str(state))
    return True


def play_both(state: azpy.State, twin: Twin, rng: random.Random, plies: int = 1000) -> int:
    """Compares the positions of a game, half of whose actions are steps; returns how many."""
    positions, turn, names = 0, state.clone(), list[int]()
    for _ in range(plies):
        positions += 1
        if not compare(state, twin):
            break
        legal = state.legal_actions()
        steps = [action for action in legal if action >= 2 * twin.columns * twin.rows]
        action = rng.choice(steps if steps and rng.random() < 0.5 else legal)
        names.append(action)
        second = twin.second
        twin.play(action)
        state.play(action)
        if second:
            check_turn(turn, names, state)
        if not twin.second:
            turn, names = state.clone(), []
    return positions


def check_turn(turn: azpy.State, actions: list[int], after: azpy.State) -> None:
    """A turn's name leads where its actions lead, and is put together from theirs."""
    if len(actions) != 2 or turn.is_terminal:
        return  # play_both began in mid-turn
    name = turn.format_actions(actions)
    assert azpy.parse_state(turn, name).key() == after.key()
    other, words = turn.clone(), list[str]()
    for action in actions:
        words.append(other.action_name(action))
        other.play(action)
    last = {word[0] if word[0] in "CM" else word: word for word in words}  # two steps of one piece: where it ends
    assert sorted(name.split(".")) == sorted(last.values())
    assert ["CM>^".index(word[0]) for word in name.split(".")] == sorted(
        "CM>^".index(word[0]) for word in last.values()
    )


def random_twin(columns: int, rows: int, rng: random.Random, **options: Any) -> Twin:
    """Pieces anywhere, walls that leave paths, any turn and action of it."""
    twin = Twin.start(columns, rows, **options)
    twin.pieces = {piece: rng.choice(twin.cells) for piece in twin.pieces}
    edges = [edge for edge in twin.edges() if edge is not None]
    for edge in rng.sample(edges, rng.randrange(len(edges))):
        if twin.can_hunt(twin.walls | {edge}):
            twin.walls.add(edge)
    twin.turns, twin.second = rng.randrange(200), rng.random() < 0.5
    return twin


OPTIONS: list[dict[str, Any]] = [
    {},
    {"variant": "classic"},
    {"immediate": True},
    {"one_move_rule": True},
    {"variant": "classic", "immediate": True, "one_move_rule": True, "classic_policy": True},
]


def compare_games(options: dict[str, Any], boards: list[tuple[int, int, int]], plies: int, seed: int) -> int:
    """Games from the start and as many from random positions, of (columns, rows, games); returns the positions."""
    rng, positions = random.Random(seed), 0
    for columns, rows, games in boards:
        for _ in range(games):
            start = Twin.start(columns, rows, **options)
            positions += play_both(start.state(), start, rng, plies)
            drawn = random_twin(columns, rows, rng, **options)
            positions += play_both(drawn.state(), drawn, rng, plies)
    return positions


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_position_is_the_twins(options: dict[str, Any]) -> None:
    positions = compare_games(options, [(2, 2, 6), (3, 3, 8), (4, 3, 5), (3, 5, 3)], 1000, seed=1)
    positions += compare_games(options, [(8, 8, 1), (20, 3, 1)], 4, seed=2)
    assert positions > 400
    print(f"{positions} positions compared, none different")


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_position_of_many_games_is_the_twins(options: dict[str, Any]) -> None:
    positions = compare_games(options, [(2, 2, 50), (3, 3, 60), (4, 3, 40), (3, 5, 30), (5, 5, 8)], 1000, seed=3)
    positions += compare_games(options, [(8, 8, 3), (12, 10, 1), (20, 3, 2)], 8, seed=4)
    positions += compare_games(options, [(20, 20, 1)], 2, seed=5)
    print(f"{positions} positions compared, none different")


def freestyle_twin(state: azpy.State) -> Twin:
    """A freestyle position as its planes show it."""
    planes = state.observation()
    cells = [np.unravel_index(int(planes[plane].argmin()), planes[plane].shape) for plane in range(4)]
    red_cat, blue_mouse, blue_cat, red_mouse = ((int(cell[0]), int(cell[1])) for cell in cells)
    pieces = {(0, "C"): red_cat, (0, "M"): red_mouse, (1, "C"): blue_cat, (1, "M"): blue_mouse}
    twin = Twin(12, 10, {"variant": "freestyle"}, pieces)
    closed = planes[4:6].reshape(-1)
    twin.walls = {edge for number, edge in enumerate(twin.edges()) if edge is not None and closed[number]}
    return twin


def test_freestyle_is_the_twins_from_its_random_starts() -> None:
    rng, seen = random.Random(5), set()
    for seed in (0, 1, 2, 40_000, 2**64 - 1):
        state = azpy.make_game("wall_game", variant="freestyle", seed=seed)
        twin = freestyle_twin(state)
        assert twin.can_hunt(twin.walls)
        assert 4 <= len([wall for wall in twin.walls if min(cell[0] for cell in wall) < 6]) <= 20
        seen.add(state.key())
        play_both(state, twin, rng, 3)
    assert len(seen) == 5


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


def test_short_turns_are_read_by_parse_state_alone() -> None:
    start = azpy.make_game("wall_game")
    for line, turns in [("---", ""), ("Cb8 end_turn", "Cb8"), ("Cb8 ---", "Cb8")]:
        ended = azpy.parse_state(start, line)
        assert ended.turn == 1
        assert ended.key() == azpy.parse_state(start, f"{turns} end_turn").key()
        with pytest.raises(ValueError, match="no number of an action stands for"):
            start.parse_actions(line)
    both = azpy.parse_state(start, "--- Ch7 --- >e4 ---")
    assert both.to_text() == "cats a8 h7 mice a1 h1 walls >e4 turn 2 blue"
    # A search begins at the position.
    assert azpy.Search(azpy.UniformEvaluator(), simulations=20).run(both).action is not None
    won = azpy.parse_state("wall_game", "cats g1 b8 mice a1 h1 turn 3 red second")
    assert azpy.parse_state(won, "Ch1").outcome() == 1
    with pytest.raises(ValueError, match="the game is over"):
        azpy.parse_state(azpy.parse_state(won, "Ch1"), "---")


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
    given = azpy.OnnxEvaluator(model, input="States", policy="Priors", value="Values", policy_kind="priors")
    assert given.signature == evaluator.signature


def test_a_model_of_the_original_program_plays_matches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from azpy.cli.match import main

    path = tmp_path / "theirs.onnx"
    path.write_bytes(original_model(3, 3, 4))
    game = "wall_game(width=3,height=3)"
    assert main([str(path), "uniform:8", "--game", game, "--games", "4", "--simulations", "8"]) == 0
    assert "score of A" in capsys.readouterr().out
    with pytest.raises(ModelError, match="does not fit the game"):
        azpy.OnnxEvaluator(path, game=azpy.make_game("wall_game"))
