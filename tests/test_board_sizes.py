"""A network with `+conv` has no weight of one board's size: it plays, learns and goes on at several sizes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import azpy
from azpy.cli.train import main as az_train
from azpy.cli.train import settings_from
from azpy.errors import ModelError, SettingsError
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.torch import TorchEvaluator
from azpy.games.names import with_side
from azpy.learning.export import check_parity, for_board, to_onnx
from azpy.learning.learner import Learner
from azpy.learning.network import Network, grown, load_arrays, spec_of, to_arrays
from azpy.matches.players import load_players, parse_player
from azpy.runs.folder import RunFolder
from azpy.runs.reader import StoredRun
from azpy.serving.models import open_player
from azpy.settings import Settings
from azpy.settings.toml import read_config
from azpy.training.events import Finished, Saved
from azpy.training.stages import stages
from azpy.training.trainer import Trainer
from test_network import trained

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


def positions(start: azpy.State, count: int = 24) -> list[azpy.State]:
    """Positions of random games at a player's turn."""
    rng, found = np.random.default_rng(0), list[azpy.State]()
    while len(found) < count:
        state = start.clone()
        while not state.is_terminal and len(found) < count:
            found.append(state.clone())
            state.play(int(rng.choice(state.legal_actions())))
    return found


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
        side = np.sqrt(height * width)
        return normed(norm, np.concatenate([mean, mean * (side - 14) / 10, np.max(each, axis=0)]))

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
def test_one_set_of_weights_answers_at_each_size_as_worked_out_by_hand(small: str, large: str) -> None:
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
def test_planes_say_the_same_on_each_board(small: str, large: str) -> None:
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


def test_a_learner_goes_on_at_another_size_with_nothing_fresh() -> None:
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
        ("connect_four", "1x8+conv", r"does not say which action is on which cell \(policy_planes, action_cells\)"),
        ("pig", "1x8+conv", "needs a board and actions on its cells"),
        ("hex(size=3)", "1x8+wdl+conv", "BLOCKSxCHANNELS"),
    ],
)
def test_games_and_specs_without_cells_are_refused(game: str, spec: str, text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        Network.of(azpy.make_game(game), spec)


def test_a_batch_of_one_row_is_refused() -> None:
    learner = Learner(azpy.make_game("hex(size=3)"), "1x8+conv")
    with pytest.raises(SettingsError, match="batch_size must be at least 2"):
        next(learner.fit(None, 1, batch_size=1))


def test_other_networks_do_not_begin_as_one_of_any_size() -> None:
    start = azpy.make_game("hex(size=4)")
    for one, other in (("1x8", "1x8+conv"), ("1x8+conv", "1x8")):
        with pytest.raises(ModelError, match=r"only one has heads for any board size \(\+conv\)"):
            grown(Network.of(start, one), Network.of(start, other))
    with pytest.raises(ModelError, match="has one board size"):
        for_board(to_onnx(Network.of(start, "1x8")), start)


RUN: dict[str, Any] = {"network": "1x8+conv", "simulations": 4, "games_per_iteration": 12, "iterations": 3, "slots": 8}
RUN |= {"batch_size": 16, "passes": 1.0, "match_games": 2, "final_match_games": 2, "deterministic": True}
RUN |= {"match_simulations": 2, "match_opening_plies": 1, "opening_plies": 1}
SCHEDULE = "3@0.34,4"


def flags(**changes: Any) -> list[str]:
    given = RUN | changes
    words = {name: value for name, value in given.items() if value is not True}
    return ["--deterministic", *(f"--{name.replace('_', '-')}={value}" for name, value in words.items())]


def hash_of(path: Path) -> tuple[str, str]:
    with RunFolder(path, read_config(path / "config.toml")) as run:
        return run.games_hash(), run.weights_hash(run.checkpoints()[-1])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two sizes, 3x3 and 4x4."""
    path = tmp_path_factory.mktemp("runs") / "hex"
    assert az_train(["hex(size=4)", "--size-schedule", SCHEDULE, "--out", str(path), *flags()]) == 0
    return path


def test_a_schedule_is_a_run_for_each_size(whole: Path) -> None:
    first, last = StoredRun(f"{whole}-from-3"), StoredRun(whole)
    assert (first.settings.game, first.settings.iterations) == ("hex(size=3)", 1)
    assert (last.settings.game, last.settings.iterations) == ("hex(size=4)", 2)
    assert last.settings.init == f"{whole}-from-3"
    assert {record.game for _, record in first.games([1])} == {"hex(size=3,swap=0)"}
    begun = azpy.OnnxEvaluator(whole / "checkpoints/000000/model.onnx", game=last.start)
    before = for_board((first.path / "checkpoints/000001/model.onnx").read_bytes(), last.start)
    assert begun.network_id == OnnxEvaluator(before, game=last.start).network_id


@pytest.mark.parametrize("stop", [0, 1])
def test_a_schedule_goes_on_where_it_stopped(whole: Path, tmp_path: Path, stop: int) -> None:
    path = str(tmp_path / "parts")
    command = ["hex(size=4)", "--size-schedule", SCHEDULE, "--out", path, *flags()]
    asked, _ = settings_from(command)
    for number, stage in enumerate(stages(asked, path, SCHEDULE)):
        with Trainer(stage.settings, stage.folder) as trainer:
            for event in trainer.run():  # goes away before the first checkpoint of stage 0, or after that of stage 1
                if number == stop and (stop == 0 or isinstance(event, Saved)):
                    break
            else:
                continue
        break
    assert az_train([*command, f"--workers={stop}"]) == 0
    for end in ("", "-from-3"):
        assert hash_of(Path(path + end)) == hash_of(Path(f"{whole}{end}"))


@pytest.mark.parametrize("ends", [False, True])
def test_from_python_a_schedule_ends_where_it_is_told_to(tmp_path: Path, ends: bool) -> None:
    seen: list[Any] = []

    def on_iteration(row: dict[str, Any]) -> bool:
        seen.append(row["iteration"])
        return ends

    changes = RUN | {"deterministic": False, "learner_lag": 1, "iterations": 2}
    out = str(tmp_path / "run")
    run = azpy.train("hex(size=4)", out=out, size_schedule="3,4", on_iteration=on_iteration, **changes)
    assert (seen, str(run.path)) == (([1], f"{out}-from-3") if ends else ([1, 1], out))
    answered = run.evaluator.evaluate_batch(run.start.observation()[None])[0]
    assert answered.shape == (1, 9 if ends else 16)


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
    with pytest.raises(ModelError):
        load_players([parse_player(str(whole))], azpy.make_game("othello"), 4)


@pytest.mark.parametrize(
    ("schedule", "changes", "text"),
    [
        ("4", {}, "takes sizes such as 7,9.*; got one size"),
        ("3,,4", {}, "takes sizes such as 7,9.*; got ''"),
        ("3@x,4", {}, "takes sizes such as 7,9.*; got '3@x'"),
        ("3@0.5,4@0.6", {}, "must add up to 1, got 1.1"),
        ("3@0.5,4@0.5,5", {}, "must add up to 1, got 1, and 1 of the sizes have none"),
        ("3,5", {}, r"ends with 5, and hex\(size=4\) is played on 4x4"),
        ("4,3,4", {}, "must grow, got 4x4, 3x3, 4x4"),
        ("gomoku(size=3,k=3),4", {}, r"gomoku\(size=3,k=3\) has 2 planes and hex\(size=4\) 7"),
        ("3,4", {"network": "1x8"}, r"a network of 1x8 has one board size: .* --network 1x8\+conv$"),
        ("3,4", {"network": "1x8+wdl"}, r"such as --network 1x8\+conv\+wdl$"),
        ("3,4", {"iterations": None, "deterministic": False}, "needs the run's length"),
        ("3,4", {"iterations": 1}, "too many for 1 iterations"),
        ("3,4", {"simulations_start": 2}, "simulations_start grows over one run"),
        ("3,4", {"workers": "folder:there"}, "the az-workers of a folder end with each size"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(
    schedule: str, changes: dict[str, Any], text: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=text):
        stages(Settings("hex(size=4)", **RUN | changes), str(tmp_path / "run"), schedule)


def test_the_spec_of_another_size() -> None:
    assert with_side("go(size=9,komi=6.5)", 7) == "go(size=7,komi=6.5)"
    assert with_side("go", 7) == "go(size=7)"
    assert with_side("breakthrough(height=8)", 6) == "breakthrough(width=6,height=6)"
    for spec in ("chess", "test_board_sizes:Large"):
        with pytest.raises(SettingsError, match="has no size to choose: name the game of each size"):
            with_side(spec, 5)


def test_a_game_of_the_user_s_grows_by_the_names_of_its_sizes(tmp_path: Path) -> None:
    asked = Settings("test_board_sizes:Large", **RUN | {"iterations": 2})
    found = stages(asked, str(tmp_path / "run"), "test_board_sizes:Small,test_board_sizes:Large")
    for stage in found:
        with Trainer(stage.settings, stage.folder) as trainer:
            assert isinstance(list(trainer.run())[-1], Finished)
    assert [stage.settings.game for stage in found] == ["test_board_sizes:Small", "test_board_sizes:Large"]
