"""Training that diverges says so, saves no bad network, and goes on from the last good checkpoint."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from test_supervised import files  # noqa: F401  a fixture

from azpy.errors import RunError, SettingsError
from azpy.learning.learner import Learner
from azpy.runs.folder import RunFolder
from azpy.runs.reader import read_checkpoint
from azpy.settings import Settings
from azpy.training.events import Event, Fitted, Played, Started
from azpy.training.fitting import diverged
from azpy.training.trainer import Trainer

SMALL: dict[str, Any] = {"game": "tic_tac_toe", "network": "1x8", "simulations": 8, "slots": 8, "eval_batch": 2}
SMALL |= {"games_per_iteration": 8, "iterations": 3, "batch_size": 16, "match_every": 1000, "final_match_games": 2}
TOO_HIGH = 1e30  # the first steps take the weights beyond what a float can hold


def train(path: Path, *supervised: str, **changes: Any) -> list[Event]:
    with Trainer(Settings(**(SMALL | changes)), path, supervised) as trainer:
        return list(trainer.run())


def checkpoints(path: Path) -> list[str]:
    return sorted(folder.name for folder in (path / "checkpoints").iterdir())


def is_finite(path: Path) -> bool:
    found = read_checkpoint(path)
    return all(np.isfinite(array).all() for array in (*found.model.values(), *found.optimizer.values()))


def test_a_diverged_run_goes_on_from_the_last_good_checkpoint(tmp_path: Path) -> None:
    last = 2
    saved = [f"{iteration:06}" for iteration in range(1, last + 2)]
    train(tmp_path, iterations=last)
    for _ in range(2):  # another start with the same settings ends in the same way
        with pytest.raises(RunError) as caught:
            train(tmp_path, iterations=last + 1, learning_rate=TOO_HIGH)
        text = str(caught.value)
        losses = (
            r"(policy loss \S+, value loss \S+|the network's weights are not finite) "
            r"\((mean policy loss [0-9.]+ and value loss [0-9.]+ (before|so far), )?learning rate"
        )
        assert re.match(rf"training diverged in step [0-9]+ of [0-9]+ of iteration {last + 1}: {losses}", text), text
        good = f"{tmp_path}/checkpoints/{saved[-2]}"
        assert f"learning rate 1e+30). The last good checkpoint is {good}, and the same command goes on from it" in text
        assert f"add --learning-rate 2.5e+29, or less; if it diverges again, delete {good} too" in text
        assert checkpoints(tmp_path) == saved[:-1]
        assert is_finite(Path(good))
        for line in (tmp_path / "metrics.jsonl").read_text().splitlines():
            assert json.loads(line, parse_constant=pytest.fail)["iteration"] <= last + 1
    events = train(tmp_path, iterations=last + 1, learning_rate=1e-3)
    assert [event for event in events if isinstance(event, Played)] == []  # the games are there
    assert checkpoints(tmp_path) == saved
    assert is_finite(tmp_path / "checkpoints" / saved[-1])


def test_a_diverged_fit_to_imported_games_is_reported(tmp_path: Path, files: Path) -> None:  # noqa: F811
    chosen: dict[str, Any] = {"game": "go(size=5)", "iterations": 1}
    chosen |= {"supervised_passes": 1, "games_per_iteration": 2, "simulations": 2}
    with pytest.raises(RunError, match=r"of the fit to the imported games: .* No checkpoint was saved yet"):
        train(tmp_path / "run", str(files), learning_rate=TOO_HIGH, **chosen)
    assert checkpoints(tmp_path / "run") == []
    train(tmp_path / "run", **chosen)
    assert checkpoints(tmp_path / "run") == ["000000", "000001"]


def test_held_out_figures_that_are_not_finite_end_the_fit(
    tmp_path: Path,
    files: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {"policy_loss": float("inf"), "value_loss": 1.0, "move_match": 0.0}
    monkeypatch.setattr(Learner, "measure", lambda *_: found)
    with pytest.raises(RunError, match="held_out_policy_loss inf, held_out_value_loss 1, move_match 0"):
        train(tmp_path / "run", str(files), game="go(size=5)", supervised_held_out=0.5)


def spoil(run: Path, iteration: int, name: str) -> None:
    """Writes a checkpoint anew with one number that is not finite."""
    with RunFolder(run, {}) as folder:
        found = folder.load_checkpoint(iteration)
        model = dict(found.model)
        name = next(each for each in model if each.startswith(name) and each.endswith(".weight"))
        model[name] = model[name].copy()
        model[name].flat[-1] = np.nan
        folder.prune_checkpoints(lambda kept: kept != iteration)
        folder.save_checkpoint(iteration, model=model, optimizer=found.optimizer, state=found.state, onnx=found.onnx)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("three")
    train(path)
    return path


def test_a_run_begins_with_no_network_that_is_not_finite(three: Path, tmp_path: Path) -> None:
    path = shutil.copytree(three, tmp_path / "run")
    spoil(path, 3, "trunk")
    with pytest.raises(SettingsError, match=f"--init {path}: its weights are not finite: give an earlier checkpoint"):
        train(tmp_path / "other", init=str(path))


def test_a_checkpoint_with_infinite_answers_is_kept(
    three: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver may give such answers, and the network is sound."""
    path = shutil.copytree(three, tmp_path / "run")
    with monkeypatch.context() as broken:
        broken.setattr(Learner, "is_finite", lambda _: False)
        last = f"{path}/checkpoints/000003"
        why = f"the weights of {last}, or its outputs on cpu, are not finite: choose another --training-device"
        with pytest.raises(RunError, match=f"{why}.*delete the checkpoint to go on from the one before"):
            train(path)
    assert checkpoints(path) == ["000001", "000002", "000003"]
    assert isinstance(train(path)[0], Started)


def test_the_error_names_only_losses_that_were_measured() -> None:
    run = SimpleNamespace(settings=Settings(game="tic_tac_toe"), folder=SimpleNamespace(checkpoints=list))

    def said(step: Fitted, **options: bool) -> str:
        return str(diverged(cast(Any, run), step, "bad", **options)).partition(". No checkpoint was saved yet")[0]

    step, means = Fitted(2, 1, 9, 1.5, 0.25), "mean policy loss 1.5 and value loss 0.25"
    at = "training diverged in step 1 of 9 of iteration 2: bad"
    assert said(step) == f"{at} (learning rate 0.002)"
    assert said(step, after=True) == f"{at} ({means} so far, learning rate 0.002)"
    assert said(replace(step, taken=2)).endswith(f"({means} before, learning rate 0.002)")


def test_a_last_step_that_spoils_the_network_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loss is that of the network before the step."""
    set_statistics = Learner.set_statistics

    def spoilt(self: Learner, *given: Any, **options: Any) -> None:
        set_statistics(self, *given, **options)
        next(iter(self.network.parameters())).data.fill_(float("nan"))

    monkeypatch.setattr(Learner, "set_statistics", spoilt)
    with pytest.raises(RunError, match="of iteration 1: the network's weights are not finite"):
        train(tmp_path)
    assert checkpoints(tmp_path) == []
