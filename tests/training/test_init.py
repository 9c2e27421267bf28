"""A run begins with another run's network: weights are taken over, and a larger network begins as the smaller one."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
import torch
from safetensors.numpy import save
from torch.optim.swa_utils import AveragedModel

import azpy
import own_parts
from azpy.errors import ModelError, RunError, SettingsError, one_line
from azpy.evaluators.onnx import network_id
from azpy.learning.export import to_onnx
from azpy.learning.learner import Learner
from azpy.learning.network import Network, grown, load_arrays, spec_of, to_arrays, weights_from
from azpy.learning.own import network_of, unwrapped, weights_in
from azpy.matches.players import load_players, parse_player
from azpy.runs.reader import StoredRun, read_checkpoint
from azpy.training.events import Started
from azpy.training.trainer import Trainer
from networks import rows, trained
from training_runs import run, same_weights, settings

BOARD: tuple[tuple[int, int, int], int, Any] = ((3, 5, 4), 40, None)
BY_CELL: tuple[tuple[int, int, int], int, Any] = ((3, 5, 4), 60, tuple(range(20)))
FLAT: tuple[tuple[int, int, int], int, Any] = ((7, 1, 1), 5, None)


@pytest.mark.parametrize(
    ("game", "old_spec", "spec"),
    [
        *((game, "2x16", spec) for game in (BOARD, BY_CELL, FLAT) for spec in ("2x16", "5x16", "2x24", "4x40")),
        *((BOARD, old, spec) for old in ("2x16", "2x16+pool") for spec in ("2x16+pool", "5x16+pool", "4x56+pool")),
    ],
)
def test_a_larger_network_begins_as_the_smaller_one(
    game: tuple[tuple[int, int, int], int, Any], old_spec: str, spec: str
) -> None:
    shape, actions, cells = game
    old = trained(Network(shape, actions, old_spec, cells)).eval()
    new = Network(shape, actions, spec, cells).eval()
    new.load_state_dict(grown(old, new))
    observations = torch.from_numpy(rows(shape))
    for mine, theirs in zip(new(observations), old(observations), strict=True):
        assert (mine - theirs).abs().max() < 1e-6
    assert spec_of(to_arrays(new)) == spec
    # New channels can learn: their outputs are no zeros, and what reads them has a gradient.
    logits, values = new.train()(observations)
    (logits.square().sum() + values.square().sum()).backward()
    for name, parameter in new.named_parameters():
        known = dict(old.named_parameters()).get(name)
        if known is not None and parameter.ndim > 1 and known.shape[1] < parameter.shape[1]:
            assert parameter.grad is not None
            if name.startswith(("trunk.2.first", "policy.0", "value.0")):
                assert parameter.grad[: known.shape[0], known.shape[1] :].abs().sum() > 0, name


@pytest.mark.parametrize(("old_spec", "spec"), [*(("2x16", s) for s in ("1x16", "2x8", "3x8")), ("2x16+pool", "2x16")])
def test_a_smaller_network_cannot_begin_as_a_larger_one(old_spec: str, spec: str) -> None:
    old, new = (Network((3, 5, 4), 40, each) for each in (old_spec, spec))
    with pytest.raises(ModelError, match="fewer blocks or channels"):
        grown(old, new)


@pytest.mark.parametrize("name", ["x", "trunk.0.0.weight", "trunk.1.weight"])
def test_weights_of_another_module_have_no_spec(name: str) -> None:
    with pytest.raises(ModelError, match=f"do not belong to a network of azpy; found {name}"):
        spec_of({name: np.zeros(())})


def test_a_learner_begins_with_both_sets_of_weights() -> None:
    old, new = Learner(_Game, "1x16", seed=1), Learner(_Game, "2x16", seed=2)
    assert new.begin_with(old.model_arrays()) == "1x16"
    twin = Network.of(_Game, "2x16")
    load_arrays(twin, new.model_arrays())
    observations = torch.from_numpy(rows((3, 5, 4)))
    assert (twin.eval()(observations)[1] - old.averaged(observations)[1]).abs().max() < 1e-6
    for name, array in new.model_arrays().items():
        assert np.array_equal(array, to_arrays(new.network)[name])


class _Game:
    obs_shape, num_actions = (3, 5, 4), 40


def test_a_run_goes_on_from_another_run_s_network(tmp_path: Path) -> None:
    run(tmp_path / "first", iterations=1)
    changes = {"network": "2x24", "init": str(tmp_path / "first"), "iterations": 1, "deterministic": True}
    with Trainer(settings(**changes), tmp_path / "second") as trainer:
        (started, *_) = trainer.run()
    assert isinstance(started, Started)
    assert any(notice.startswith("the network begins as that of") for notice in started.notices)
    first = read_checkpoint(tmp_path / "first/checkpoints/000001").model
    games = run(tmp_path / "third", **changes)
    assert games
    # The folder of the first run is not needed once a checkpoint is there.
    (tmp_path / "first").rename(tmp_path / "moved")
    run(tmp_path / "third", **{**changes, "iterations": 2})
    with pytest.raises(RunError, match="run folder"):
        run(tmp_path / "fourth", **changes)
    assert not (tmp_path / "fourth").exists()
    assert first.keys() <= read_checkpoint(tmp_path / "third/checkpoints/000002").model.keys()


def test_a_run_without_games_keeps_its_first_network(tmp_path: Path) -> None:
    run(tmp_path / "first", iterations=1)
    changes = {"network": "2x24", "init": str(tmp_path / "first"), "iterations": 1, "deterministic": True}
    run(tmp_path / "straight", **changes)
    with Trainer(settings(**changes), tmp_path / "left") as trainer:
        next(iter(trainer.run()))
    run(tmp_path / "first", iterations=2)  # it has another network now
    run(tmp_path / "left", **changes)
    assert same_weights(tmp_path / "left", tmp_path / "straight", 1)
    for _, game in StoredRun(tmp_path / "left").games([1]):  # so az-replay finds it
        model = read_checkpoint(tmp_path / "left/checkpoints/000000").onnx
        assert game.networks.max() == network_id(model)


def test_the_network_of_another_game_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "first", iterations=1)
    with pytest.raises(SettingsError, match=r"--init .*do not fit this network"):
        run(tmp_path / "second", game="connect_four(width=4,height=4)", init=str(tmp_path / "first"), iterations=1)
    assert not (tmp_path / "second").exists()


OWN = {"network": "own_parts:make", "iterations": 1, "games_per_iteration": 4}


def own_network(seed: int, planes: int = 2) -> torch.nn.Module:
    torch.manual_seed(seed)
    return own_parts.make((planes, 3, 3), 9)


@pytest.mark.parametrize(
    ("spec", "suffix"), [*(("1x16", each) for each in ("pth.tar", "onnx")), ("own_parts:make", "safetensors")]
)
def test_a_run_begins_with_a_file_of_weights(tmp_path: Path, suffix: str, spec: str) -> None:
    game, file = azpy.make_game("tic_tac_toe"), tmp_path / f"weights.{suffix}"
    network = own_network(5) if spec == "own_parts:make" else trained(Network.of(game, spec))
    if suffix == "pth.tar":
        own_parts.save(network, file)
    elif suffix == "onnx":
        azpy.export_onnx(network, game, file)
    else:
        file.write_bytes(save(to_arrays(network)))
    with Trainer(settings(network=spec, init=str(file)), tmp_path / "run") as trainer:
        started = next(iter(trainer.run()))
    assert isinstance(started, Started)
    assert f"the network begins as that of {file}" in "\n".join(started.notices)
    begun = read_checkpoint(tmp_path / "run/checkpoints/000000").model
    for name, array in to_arrays(network).items():
        assert np.array_equal(begun[name], array) or name.endswith("num_batches_tracked"), name


def test_weights_that_do_not_fit_are_listed(tmp_path: Path) -> None:
    own_parts.save(own_network(5, planes=3), tmp_path / "weights.pt")
    azpy.export_onnx(own_network(5), azpy.make_game("tic_tac_toe"), tmp_path / "weights.onnx")
    for file, text in (
        ("weights.pt", r"--init .*do not fit this network: body.0.weight is \(4, 3, 3, 3\), expected \(4, 2, 3, 3\)$"),
        # A model for play has no further heads.
        ("weights.onnx", r"--init .*: stones.weight is missing, expected \(1, 36\); stones.bias is missing"),
        (
            "missing.pt",
            r"--init .*missing\.pt does not exist, expected a run folder, a checkpoint or a file of weights$",
        ),
    ):
        with pytest.raises((SettingsError, RunError), match=text):
            run(tmp_path / "run", **OWN, init=str(tmp_path / file))
    assert not (tmp_path / "run").exists()


WEIGHTS = {"body.weight": torch.zeros(2)}


@pytest.mark.parametrize(
    ("saved", "text"),
    [
        ({0: torch.zeros(2)}, "has a weight under 0, expected names in text"),
        ({"epoch": 3, "net": WEIGHTS}, r"has no tensor under 'epoch' \(int\), 'net' \(dict\)"),
        (torch.zeros(2), "holds a Tensor, expected weights by name"),
        ([WEIGHTS], "holds a list, expected weights by name"),
        (own_network(1), "holds a whole module or other Python objects, expected weights by name"),
        (pickle.dumps(Path("/"), protocol=2), "holds a whole module or other Python objects, expected weights by name"),
        (b"no weights", "is not a file of torch.save, expected weights by name"),
        (b"", "is not a file of torch.save, expected weights by name"),
        (b"PK\3\4", "cannot be read as weights: "),
    ],
)
def test_a_file_without_weights_is_refused(saved: Any, text: str, tmp_path: Path) -> None:
    if isinstance(saved, bytes):
        (tmp_path / "x.pt").write_bytes(saved)
    else:
        torch.save(saved, tmp_path / "x.pt")
    with pytest.raises(SettingsError, match=rf"x\.pt {text}.*torch\.save\(network\.state_dict\(\), ") as raised:
        weights_in(tmp_path / "x.pt")
    assert "\n" not in str(raised.value)
    assert "weights_only" not in str(raised.value)  # torch's advice is to run what the file holds
    assert one_line("\x1b[1mtold\x1b[0m in colours") == "told in colours"


@pytest.mark.parametrize("suffix", ["safetensors", "pt", "onnx"])
def test_an_unreadable_file_is_reported(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"folder.{suffix}").mkdir()
    for name, why in (("missing", "No such file or directory"), ("folder", "Is a directory")):
        with pytest.raises(SettingsError, match=rf"{name}\.{suffix} cannot be read: {why}$"):
            weights_in(tmp_path / f"{name}.{suffix}")


def test_a_weight_may_have_the_name_of_a_state_dict(tmp_path: Path) -> None:
    torch.save({"model": torch.ones(2), "state_dict": {"model": torch.zeros(2), "b": torch.ones(1)}}, tmp_path / "x.pt")
    torch.save({"model": torch.ones(2)}, tmp_path / "y.pt")
    assert weights_in(tmp_path / "x.pt").keys() == {"model", "b"}
    assert weights_in(tmp_path / "y.pt").keys() == {"model"}


@pytest.mark.parametrize("spec", ["own_parts:make", "1x8"])
def test_names_that_torch_s_wrappers_add_are_understood(spec: str) -> None:
    game: Any = azpy.make_game("tic_tac_toe")
    network, learner = network_of(game, spec), Learner(game, spec, seed=9)
    state, compiled = network.state_dict(), cast("torch.nn.Module", torch.compile(network, backend="eager"))
    fsdp = {f"_fsdp_wrapped_module.{name}": tensor for name, tensor in state.items()}
    for named in (
        torch.nn.DataParallel(network).state_dict(),  # and DistributedDataParallel
        compiled.state_dict(),
        AveragedModel(compiled).state_dict(),  # with a count of its own
        fsdp,
    ):
        assert not named.keys() & state.keys()
        learner.begin_with({name: tensor.numpy() for name, tensor in named.items()})
        assert all(np.array_equal(array, state[name]) for name, array in learner.model_arrays().items())


class Outer(torch.nn.Linear):
    """A network that has a part called `module`, as torch's wrappers do."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.module = torch.nn.Linear(2, 2)


@pytest.mark.parametrize("make", [Outer, lambda: torch.nn.Sequential(Outer())])
def test_a_network_with_a_wrapper_s_name_keeps_it(make: Callable[[], torch.nn.Module]) -> None:
    network = make()
    state, parallel = network.state_dict(), torch.nn.DataParallel(network)
    for named in (state, parallel.state_dict(), AveragedModel(parallel).state_dict()):
        found = unwrapped({name: tensor.numpy() for name, tensor in named.items()}, state)
        assert found.keys() == state.keys()
        assert all(np.array_equal(found[name], state[name]) for name in state)


@pytest.mark.parametrize("kind", [np.complex64, np.int8])
def test_weights_of_another_kind_of_number_are_refused(kind: Any) -> None:
    network = own_network(1)
    arrays = {name: array.astype(kind) for name, array in to_arrays(network).items() if array.ndim}
    with pytest.raises(ModelError, match=rf"body\.0\.bias is {kind.__name__} \(4,\), expected float32 \(4,\)"):
        weights_from(network, arrays)


def test_weights_beside_the_model_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game, model = azpy.make_game("go(size=5)"), tmp_path / "there/model.onnx"
    network = trained(Network.of(game, "1x8+conv"))
    model.parent.mkdir()
    onnx.save(
        onnx.load_from_string(to_onnx(network)), model, save_as_external_data=True, location="w", size_threshold=64
    )
    weights = (tmp_path / "there/w").read_bytes()
    (tmp_path / "w").write_bytes(np.full(len(weights) // 4, 0.125, np.float32).tobytes())  # no file of the model
    monkeypatch.chdir(tmp_path)
    learner = Learner(game, "1x8+conv")
    learner.begin_with(weights_in(model))
    for name, array in to_arrays(network).items():
        assert np.array_equal(learner.model_arrays()[name], array) or name.endswith("num_batches_tracked"), name
    # What plays reads no other file, for a board of another size neither.
    with pytest.raises(ModelError, match="keeps its weights in a separate file"):
        load_players([parse_player(str(model))], azpy.make_game("go(size=7)"), 2)
    model.with_name("w").unlink()
    with pytest.raises(SettingsError, match=r"model\.onnx cannot be read as weights: .*/there/w, but"):
        weights_in(model)


def test_bfloat16_weights_of_onnx_are_read(tmp_path: Path) -> None:
    weight = onnx.helper.make_tensor("w", onnx.TensorProto.BFLOAT16, [2], [0.5, -3.0])
    graph = onnx.helper.make_graph([], "g", [], [], [weight])
    (tmp_path / "x.onnx").write_bytes(onnx.helper.make_model(graph).SerializeToString())
    found = weights_in(tmp_path / "x.onnx")["w"]
    assert (str(found.dtype), found.tolist()) == ("float32", [0.5, -3.0])
