"""A network with `+conv` has no weight of one board's size: it plays, learns and goes on at several sizes."""

from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import azpy
from azpy.cli.train import main as az_train
from azpy.errors import ModelError, SettingsError
from azpy.evaluators.int8 import to_int8
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.torch import TorchEvaluator
from azpy.games.names import differ_in_size
from azpy.learning.export import check_parity, for_board, to_onnx
from azpy.learning.learner import Learner
from azpy.learning.network import Network, grown, load_arrays, spec_of, to_arrays
from azpy.matches.players import game_of, load_players, parse_player
from azpy.runs.folder import RunFolder
from azpy.runs.reader import StoredRun
from azpy.serving.models import open_player
from azpy.settings import Settings
from networks import trained
from oracles import random_positions

SIZES = [
    ("go(size=5)", "go(size=7)"),
    ("othello(size=4)", "othello(size=6)"),
    ("hex(size=3,swap=1)", "hex(size=5,swap=1)"),
    ("gomoku(size=5)", "gomoku(size=7)"),
    ("breakthrough(width=4,height=5)", "breakthrough(width=5,height=6)"),
    ("wall_game(width=4,height=4)", "wall_game(width=6,height=5)"),
    ("test_board_sizes:Small", "test_board_sizes:Large"),
]


class Large(azpy.Game):
    """Players take cells in turn, or pass; after 2 size turns who has more cells of the upper row wins."""

    size = 4

    def __init__(self) -> None:
        self.num_actions, self.obs_shape = self.size**2 + 1, (2, self.size, self.size)
        self.max_plies, self.policy_planes = 2 * self.size, [None, *range(self.size**2)]  # the pass comes first
        self.cells, self.plies = [0] * self.size**2, 0

    def turn(self) -> int:
        return azpy.TERMINAL if self.plies == self.max_plies else self.plies % 2

    def legal_actions(self) -> list[int]:
        return [0, *(cell + 1 for cell, owner in enumerate(self.cells) if not owner)]

    def play(self, action: int) -> None:
        if action:
            self.cells[action - 1] = 1 - 2 * (self.plies % 2)
        self.plies += 1

    def clone(self) -> "Large":
        copy = type(self)()
        copy.cells, copy.plies = list(self.cells), self.plies
        return copy

    def outcome(self) -> float:
        return float(np.sign(sum(self.cells[: self.size])))

    def encode(self) -> NDArray[np.float32]:
        own = (1 - 2 * (self.plies % 2)) * np.array(self.cells).reshape(self.size, self.size)
        return np.stack([own == 1, own == -1]).astype(np.float32)

    def key(self) -> int:
        return int("".join(str(owner + 1) for owner in self.cells), 3) * (self.max_plies + 1) + self.plies


class Small(Large):
    size = 3


class Cells(Small):
    """Its planes follow from its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.num_actions, self.policy_planes, self.action_cells = 9, None, list(range(9))


def positions(start: azpy.State, count: int = 24) -> list[azpy.State]:
    return [position for _, position in random_positions(start, count, seed=0, longest=40)]


def rows_of(start: azpy.State) -> NDArray[np.float32]:
    return np.stack([state.observation() for state in positions(start)])


def by_hand(network: Network, places: list[int | None], observation: NDArray[np.float32]) -> tuple[list[float], float]:
    """Logits and value of one position, from the planes behind the trunk: cell by cell, in float64."""
    head: Any = network.policy
    value: Any = network.value
    planes, height, width = observation.shape
    divisors, near = network.plane_divisors or [1] * planes, np.ones((3, height, width))
    for row in range(height):
        for column in range(width):
            near[1:, row, column] = 1 / (1 + min(row, height - 1 - row)), 1 / (1 + min(column, width - 1 - column))
    scales = [height * width / 64 if divisor == height * width else 1 for divisor in divisors]
    seen = np.concatenate([observation * np.reshape(scales, (-1, 1, 1)), near]).astype(np.float32)
    with torch.no_grad():
        features = network.trunk(torch.from_numpy(seen)[None])[0].double().numpy()
    cells = [features[:, row, column] for row in range(height) for column in range(width)]

    def array(tensor: Any) -> Any:
        return tensor.detach().double().numpy()

    def normed(norm: Any, x: Any) -> Any:
        x = (x - array(norm.running_mean)) / np.sqrt(array(norm.running_var) + norm.eps)
        return x * array(norm.weight) + array(norm.bias)

    def mixed(part: Any, x: Any) -> Any:
        conv, norm = part
        return normed(norm, array(conv.weight)[:, :, 0, 0] @ x + array(conv.bias))

    def pooled(part: Any, norm: Any) -> Any:
        each = [np.maximum(mixed(part, x), 0) for x in cells]
        mean = sum(each) / len(each)
        found = normed(norm, np.concatenate([mean, np.max(each, axis=0)]))
        return np.concatenate([found, found[: len(mean)] * (np.sqrt(height * width) - 14) / 10])

    def linear(part: Any, x: Any) -> Any:
        return array(part.weight) @ x + array(part.bias)

    board = pooled(head.taken[0], head.taken[2].norm)
    added, logits = linear(head.spread, board), dict[int, float]()
    for cell, x in enumerate(cells):
        x = np.maximum(mixed(head.first, x) + added, 0)
        for plane, logit in enumerate(array(head.last.weight)[:, :, 0, 0] @ x + array(head.last.bias)):
            logits[plane * height * width + cell] = float(logit)
    free = iter([] if head.free is None else linear(head.free, board).tolist())
    hidden = np.maximum(linear(value[3], pooled(value[0], value[2].norm)), 0)
    return [next(free) if place is None else logits[place] for place in places], float(
        np.tanh(linear(value[5], hidden)[0])
    )


@pytest.mark.parametrize(("small", "large"), SIZES)
def test_one_set_of_weights_answers_at_each_size(small: str, large: str) -> None:
    first, second = map(azpy.make_game, (small, large))
    network, larger = trained(Network.of(first, "2x8+pool+conv")).eval(), Network.of(second, "2x8+pool+conv").eval()
    load_arrays(larger, to_arrays(network))  # which refuses a weight of another shape, too many and too few
    for start, each in ((first, network), (second, larger)):
        observations = rows_of(start)
        evaluator = OnnxEvaluator(to_onnx(each), game=start)
        assert check_parity(each, evaluator, observations) < 1e-5
        for row in (0, len(observations) // 2):
            logits, values = evaluator.evaluate_batch(observations[row : row + 1])
            expected, value = by_hand(each, start.policy_planes or [], observations[row])
            scale = max(1.0, np.abs(expected).max())
            assert np.abs(logits[0] - expected).max() < 1e-4 * scale
            assert abs(values[0] - value) < 1e-4
    model = for_board(to_onnx(network), second)
    assert model == to_onnx(larger)
    assert spec_of(to_arrays(larger)) == "2x8+pool+conv"


@pytest.mark.parametrize("spec", [spec for pair in SIZES[:-1] for spec in pair] + ["chess"])
def test_the_place_of_an_action_is_where_it_changes_the_board(spec: str) -> None:
    start = azpy.make_game(spec)
    places, (_, height, width) = start.policy_planes or [], start.obs_shape
    placed = [place for place in places if place is not None]
    assert len(places) == start.num_actions
    assert len({*placed}) == len(placed)
    wall = spec.startswith("wall_game")
    for state in positions(start, 12):
        before = state.observation()
        for action in state.legal_actions():
            after, place = state.clone(), places[action]
            after.play(action)
            if place is None or after.is_terminal or spec == "chess":
                continue
            plane, cell = divmod(place, height * width)
            seen = after.observation()
            if wall:  # the walls to the right of a cell, then those below it
                changed = before[4 + plane] != seen[4 + plane]
            else:  # whose stones they are depends on the player to move
                stones = (0, 3) if spec.startswith("hex") else (0, 1)
                changed = before[list(stones)].sum(0) != seen[list(stones)].sum(0)
            assert changed.flat[cell], (state, state.action_name(action))


def test_actions_by_cell_give_their_planes() -> None:
    start = azpy.make_game("chess")
    cells, places = start.action_cells or [], start.policy_planes or []
    kinds = start.num_actions // len(cells)
    for action in range(0, start.num_actions, 97):
        assert places[action] == action % kinds * 64 + cells[action // kinds]
    assert azpy.make_game("connect_four").policy_planes is None


@pytest.mark.parametrize(("small", "large"), [pair for pair in SIZES if not pair[0].startswith("test")])
def test_planes_mean_the_same_on_each_board(small: str, large: str) -> None:
    """At the first cell of the start nothing tells the boards apart, as far as an action's neighbourhood goes."""
    seen = []
    for spec in (small, large):
        start = azpy.make_game(spec)
        network = Network.of(start, "1x8+conv")
        planes = start.observation() * network.plane_factors.numpy()[:-3]
        seen.append(set(np.unique(planes[4:] if "wall" in spec else planes).tolist()))
        if "wall" in spec:  # a path of one step is as long on each board
            assert sorted(np.unique(planes[:4]).tolist())[1] == pytest.approx(1 / 64)
    assert seen[0] == seen[1]
    assert seen[0] <= {0.0, 1.0}


def test_weights_are_unchanged_at_another_size() -> None:
    small, large = azpy.make_game("go(size=7)"), azpy.make_game("go(size=9)")
    old, new = Learner(small, "1x8+conv+wdl", seed=1), Learner(large, "1x8+conv+wdl", seed=2)
    trained(old.network)  # type: ignore[arg-type]
    load_arrays(old.averaged, to_arrays(old.network))
    arrays = old.model_arrays()
    assert new.begin_with(dict(reversed(arrays.items()))) == "1x8+conv+wdl"  # a file gives them in any order
    for name, array in old.model_arrays().items():
        assert np.array_equal(array, new.model_arrays()[name]), name
        assert np.array_equal(array, to_arrays(new.network)[name]), name
    bigger = Network.of(large, "2x16+pool+conv+wdl").eval()
    bigger.load_state_dict(grown(new.averaged, bigger))  # type: ignore[arg-type]
    observations = torch.from_numpy(rows_of(large))
    for mine, theirs in zip(bigger(observations), new.averaged(observations), strict=True):
        assert (mine - theirs).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("game", "spec", "text"),
    [
        ("connect_four", "1x8+conv", "does not define policy_planes and action_cells"),
        ("pig", "1x8+conv", "needs a board and actions on its cells"),
        ("hex(size=3)", "1x8+wdl+conv", r"\+pool, \+conv and \+wdl after it in this order"),
    ],
)
def test_games_and_specs_without_cells_are_refused(game: str, spec: str, text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        Network.of(azpy.make_game(game), spec)


def test_networks_of_other_kinds_cannot_be_grown() -> None:
    start = azpy.make_game("hex(size=4)")
    for one, other, kind in (
        ("1x8", "1x8+conv", r"heads for any board size \(\+conv\)"),
        ("1x8+conv", "1x8", r"heads for any board size \(\+conv\)"),
        ("1x8", "2x8+wdl", r"a win/draw/loss value \(\+wdl\)"),
        ("1x8+wdl", "2x8", r"a win/draw/loss value \(\+wdl\)"),
    ):
        with pytest.raises(ModelError, match=f"only one of them has {kind}"):
            grown(Network.of(start, one), Network.of(start, other))
    with pytest.raises(ModelError, match="fits one board size"):
        for_board(to_onnx(Network.of(start, "1x8")), start)


RUN: dict[str, Any] = {"network": "1x8+conv", "simulations": 4, "games_per_iteration": 12, "iterations": 3, "slots": 8}
RUN |= {"batch_size": 16, "passes": 1.0, "match_games": 2, "final_match_games": 2, "deterministic": True}
RUN |= {"match_simulations": 2, "match_opening_plies": 1, "opening_plies": 1}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two sizes, 3x3 and 4x4."""
    path = tmp_path_factory.mktemp("runs") / "hex"
    given = RUN | {"deterministic": False, "iterations": 1}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not False]
    first = f"{path}-from-3"
    assert az_train(["hex(size=3)", "--schedule", "constant", "--out", first, *flags]) == 0
    assert az_train(["hex(size=4)", "--init", first, "--out", str(path), *flags]) == 0
    return path


def test_a_run_begins_with_the_network_of_a_smaller_board(whole: Path) -> None:
    first, last = StoredRun(f"{whole}-from-3"), StoredRun(whole)
    assert {record.game for _, record in first.games([1])} == {"hex(size=3,swap=0)"}
    begun = azpy.OnnxEvaluator(whole / "checkpoints/000000/model.onnx", game=last.start)
    before = for_board((first.path / "checkpoints/000001/model.onnx").read_bytes(), last.start)
    assert begun.network_id == OnnxEvaluator(before, game=last.start).network_id


def test_a_run_plays_at_other_sizes(whole: Path) -> None:
    start = azpy.make_game("hex(size=5)")
    (entrant,) = load_players([parse_player(str(whole))], start, 4)
    network = TorchEvaluator(whole, game=start)
    served = open_player(str(whole), "hex(size=5)", 4)
    observations = rows_of(start)
    for evaluator in (entrant.network, served.evaluator):
        assert evaluator is not None
        for mine, theirs in zip(
            evaluator.evaluate_batch(observations), network.evaluate_batch(observations), strict=True
        ):
            assert np.abs(mine - theirs).max() < 1e-4
    with pytest.raises(ModelError, match="does not fit the game"):
        load_players([parse_player(str(whole))], azpy.make_game("othello"), 4)
    with pytest.raises(ModelError, match=r"azpy\.learning\.export\.for_board writes"):
        OnnxEvaluator(whole, game=start)
    with pytest.raises(SettingsError, match=r"plays hex\(size=4\), not hex\(size=4,swap=1\)"):
        open_player(str(whole), "hex(size=4,swap=1)", 4)


def test_runs_of_two_sizes_meet_on_the_board_that_is_typed(whole: Path) -> None:
    players = [f"{whole}-from-3", str(whole)]
    assert azpy.match(*players, game="hex(size=4)", games=2, simulations=2).games == 2
    specs = [parse_player(text) for text in players]
    with pytest.raises(SettingsError, match=r"give --game GAME with the size to play on"):
        game_of(specs, None, "--game {}")


def test_a_checkpoint_opens_with_its_game_however_it_is_given(whole: Path, tmp_path: Path) -> None:
    shape = SimpleNamespace(num_actions=16, obs_shape=(7, 4, 4))
    assert TorchEvaluator(whole, game=shape).network_id == TorchEvaluator(whole).network_id
    learner = Learner(azpy.State(Cells()), "1x8+conv")
    with RunFolder(tmp_path, asdict(Settings("test_board_sizes:Cells", **RUN))) as run:
        model, optimizer = learner.model_arrays(), learner.optimizer_arrays()
        run.save_checkpoint(1, model=model, optimizer=optimizer, state={}, onnx=to_onnx(learner.averaged))
    for game in (Cells(), azpy.State(Cells())):
        assert TorchEvaluator(tmp_path, game=game).num_actions == 9


def test_networks_of_two_boards_are_two_networks() -> None:
    first, second = (azpy.make_game(f"breakthrough(width={w},height={h})") for w, h in ((4, 9), (6, 6)))
    one, other = Network.of(first, "1x8+conv"), Network.of(second, "1x8+conv")
    other.load_state_dict(one.state_dict())
    assert TorchEvaluator(one).network_id != TorchEvaluator(other).network_id


def test_an_int8_model_of_another_size_is_refused_for_its_size(tmp_path: Path) -> None:
    small = azpy.make_game("hex(size=4)")
    (tmp_path / "q.onnx").write_bytes(to_int8(to_onnx(Network.of(small, "1x8+conv")), rows_of(small)))
    with pytest.raises(ModelError, match="does not fit the game"):
        load_players([parse_player(str(tmp_path / "q.onnx"))], azpy.make_game("hex(size=5)"), 4)


def test_sizes_of_one_game_differ_in_size_alone() -> None:
    assert differ_in_size("go", "go(size=7)")
    assert differ_in_size("gomoku(size=6, k=4)", "gomoku(k=4,size=8) ")
    assert not differ_in_size("gomoku(size=6,k=4)", "gomoku(size=6,k=3)")
    assert not differ_in_size("hex(size=4)", "gomoku(size=5)")
    assert not differ_in_size("nowhere:Game", "hex")
    assert differ_in_size("breakthrough(width=5,height=6)", "breakthrough")
    assert not differ_in_size("connect_four(width=12,height=4)", "connect_four")  # neither is on a board of 12x12
    assert not differ_in_size("breakthrough(width=3,height=12)", "breakthrough")
