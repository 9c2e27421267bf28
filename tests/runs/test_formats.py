"""Stored runs are read, go on, and play; `tests/data/README.md` says what they are."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from azpy.cli.match import main as az_match
from azpy.cli.replay import main as az_replay
from azpy.cli.train import main as az_train
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.learning.export import check_parity
from azpy.learning.network import Network, grown, load_arrays, spec_of
from azpy.runs.imports import Filters, import_games
from azpy.runs.reader import StoredRun, check_rules, read_checkpoint

DATA = Path(__file__).parents[1] / "data"
# File -> the iterations that it has, and the format of its records.
RUNS = {"pig": ([0, 1, 2], 7), "pool": ([1, 2], 7)}


@pytest.fixture(params=RUNS)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """The name and a copy of each run."""
    with zipfile.ZipFile(DATA / f"{request.param}.zip") as archive:
        archive.extractall(tmp_path)
    return request.param, tmp_path / request.param


def test_each_format_has_a_small_test_file() -> None:
    files = sorted(DATA.glob("*.zip"))
    assert {file.stem for file in files} == RUNS.keys()
    assert all(file.stat().st_size < 120_000 for file in files)


def test_its_games_are_read_and_obey_the_rules(stored: tuple[str, Path]) -> None:
    name, path = stored
    iterations, record_format = RUNS[name]
    run = StoredRun(path)
    assert run.sealed_iterations() == iterations
    games = [record for _, record in run.games(iterations)]
    assert len(games) > 8
    check_rules(run.start, games)
    assert sum(record.positions for record in games) > 40
    for iteration in iterations:
        with np.load(path / f"games/{iteration:06d}.npz") as arrays:
            assert set(arrays["payload"][arrays["offsets"][:-1]]) == {record_format}


def test_its_games_are_learned_from_by_another_run(stored: tuple[str, Path]) -> None:
    name, path = stored
    start = StoredRun(path).start
    imported = import_games([str(path / "games")], start, 0, Filters())
    games = [record for _, record in StoredRun(path).games(RUNS[name][0])]
    assert imported.records
    assert len(imported.records) <= len(games)


def test_the_same_command_goes_on_with_it(stored: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    name, path = stored
    newest = RUNS[name][0][-1]
    before = {file.name: file.read_bytes() for file in path.glob("games/*.npz")}
    arguments = [StoredRun(path).settings.game, "--out", str(path), "--iterations", str(newest + 1)]
    assert az_train(arguments) == 0, capsys.readouterr()
    assert "resuming after iteration" in capsys.readouterr().out
    assert StoredRun(path).sealed_iterations() == [*RUNS[name][0], newest + 1]
    after = {file.name: file.read_bytes() for file in path.glob("games/*.npz")}
    assert before.items() <= after.items()
    old, new = (read_checkpoint(path / f"checkpoints/{iteration:06d}") for iteration in (newest, newest + 1))
    assert any(not np.array_equal(array, new.model[key]) for key, array in old.model.items())
    assert old.optimizer.keys() == new.optimizer.keys()


def test_its_network_plays_and_its_games_are_shown(stored: tuple[str, Path], printed: Any) -> None:
    name, path = stored
    checkpoint = path / f"checkpoints/{RUNS[name][0][-1]:06d}"
    run = StoredRun(path)
    assert az_match([str(checkpoint), "random", "--game", run.settings.game, "--games", "4", "--simulations", "4"]) == 0
    record = next(record for _, record in run.games([RUNS[name][0][-1]]))
    assert printed(az_replay, [str(path), str(record.game_id)])


def test_a_network_with_more_of_everything_begins_as_it(stored: tuple[str, Path], tmp_path: Path) -> None:
    name, path = stored
    run = StoredRun(path)
    checkpoint = read_checkpoint(path / f"checkpoints/{RUNS[name][0][-1]:06d}")
    spec = spec_of(checkpoint.model)
    assert spec == run.settings.network
    old = Network.of(run.start, spec)
    load_arrays(old, checkpoint.model)
    old.eval()
    blocks, _, channels = spec.removesuffix("+pool").partition("x")
    larger = f"{int(blocks) + 2}x{int(channels) + 4}{'+pool' if old.is_convolutional else ''}"
    new = Network.of(run.start, larger)
    new.load_state_dict(grown(old, new.eval()))
    rows = np.random.default_rng(1).integers(0, 2, (64, *run.start.obs_shape)).astype(np.float32)
    for mine, theirs in zip(new(torch.from_numpy(rows)), old(torch.from_numpy(rows)), strict=True):
        assert (mine - theirs).abs().max() < 1e-6
    # The exported model is that network too.
    check_parity(old, OnnxEvaluator(checkpoint.onnx, game=run.start), rows)
    # And a run goes on from it.
    out = tmp_path / "larger"
    flags: dict[str, Any] = {"network": larger, "init": path, "iterations": 1, "out": out}
    flags |= {"games-per-iteration": 8, "opening-plies": 0, "match-opening-plies": 0}
    flags |= {"simulations": 4, "final-match-games": 2, "match-simulations": 2}
    assert az_train([run.settings.game, *(f"--{key}={value}" for key, value in flags.items())]) == 0
    assert spec_of(read_checkpoint(out / "checkpoints/000001").model) == larger
