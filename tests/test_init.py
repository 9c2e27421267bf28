"""A run begins with another run's network: weights are taken over, and a larger network begins as the smaller one."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save

import azpy
import own_parts
from azpy.errors import ModelError, RunError, SettingsError
from azpy.evaluators.onnx import network_id
from azpy.learning.learner import Learner
from azpy.learning.network import Network, grown, load_arrays, spec_of, to_arrays
from azpy.runs.reader import StoredRun, read_checkpoint
from azpy.training.events import Started
from azpy.training.trainer import Trainer
from test_network import rows, trained
from test_trainer import run, same_weights, settings

BOARD: tuple[tuple[int, int, int], int, Any] = ((3, 5, 4), 40, None)
BY_CELL: tuple[tuple[int, int, int], int, Any] = ((3, 5, 4), 60, tuple(range(20)))
FLAT: tuple[tuple[int, int, int], int, Any] = ((7, 1, 1), 5, None)


@pytest.mark.parametrize("game", [BOARD, BY_CELL, FLAT])
@pytest.mark.parametrize("spec", ["2x16", "5x16", "2x24", "4x40"])
def test_a_larger_network_begins_as_the_smaller_one(game: tuple[tuple[int, int, int], int, Any], spec: str) -> None:
    shape, actions, cells = game
    old = trained(Network(shape, actions, "2x16", cells)).eval()
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


@pytest.mark.parametrize("old_spec", ["2x16", "2x16+pool"])
@pytest.mark.parametrize("spec", ["2x16+pool", "5x16+pool", "4x56+pool"])
def test_a_network_that_pools_begins_as_a_smaller_one(old_spec: str, spec: str) -> None:
    old, new = (trained(Network((3, 5, 4), 40, each)).eval() for each in (old_spec, spec))
    fresh = Network((3, 5, 4), 40, spec).eval()
    fresh.load_state_dict(grown(old, fresh))
    observations = torch.from_numpy(rows((3, 5, 4)))
    for mine, theirs in zip(fresh(observations), old(observations), strict=True):
        assert (mine - theirs).abs().max() < 1e-6
    assert spec_of(to_arrays(new)) == spec


@pytest.mark.parametrize(("old_spec", "spec"), [*(("2x16", s) for s in ("1x16", "2x8", "3x8")), ("2x16+pool", "2x16")])
def test_a_smaller_network_cannot_begin_as_a_larger_one(old_spec: str, spec: str) -> None:
    old, new = (Network((3, 5, 4), 40, each) for each in (old_spec, spec))
    with pytest.raises(ModelError, match="fewer blocks or channels"):
        grown(old, new)


def test_weights_of_anything_else_have_no_spec() -> None:
    with pytest.raises(ModelError, match="no network of azpy: they are x"):
        spec_of({"x": np.zeros(1)})


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


def test_a_run_that_ends_before_its_first_games_keeps_the_network_it_began_with(tmp_path: Path) -> None:
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
    with pytest.raises(SettingsError, match=r"--init .*another network"):
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
    (tmp_path / "text.pt").write_text("no weights")
    azpy.export_onnx(own_network(5), azpy.make_game("tic_tac_toe"), tmp_path / "weights.onnx")
    for file, text in (
        ("weights.pt", r"--init .*another network: body.0.weight is \(4, 3, 3, 3\), expected \(4, 2, 3, 3\)$"),
        # A model for play has no further heads.
        ("weights.onnx", r"--init .*: stones.weight is missing, expected \(1, 36\); stones.bias is missing"),
        ("text.pt", r"text.pt cannot be read"),
        ("weights.ckpt", r"weights.ckpt is neither a run folder"),
    ):
        with pytest.raises((SettingsError, RunError), match=text):
            run(tmp_path / "run", **OWN, init=str(tmp_path / file))
    (tmp_path / "evil.pt").write_bytes(pickle.dumps(Path("/"), protocol=2))
    with pytest.raises(SettingsError, match=r"evil.pt cannot be read"):
        run(tmp_path / "run", **OWN, init=str(tmp_path / "evil.pt"))
    assert not (tmp_path / "run").exists()
