"""az-export --card: the folder plays as its run does, and its README begins with what Hugging Face reads."""

import errno
import json
import os
import shlex
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.cli.export import main
from azpy.cli.match import main as match
from azpy.cli.train import main as train
from azpy.evaluators.onnx import network_id
from azpy.evaluators.torch import TorchEvaluator
from azpy.learning.export import to_onnx
from azpy.learning.learner import Learner
from azpy.runs.folder import RunFolder
from azpy.runs.reader import StoredRun
from azpy.serving.models import open_player
from azpy.settings import Settings
from azpy.system import made_with

WORKER = {"worker": "a-host:1", "since": 0, "silent": 0, "evaluations_per_second": 1}


def run_of(path: Path, game: str = "tic_tac_toe") -> Path:
    """A run folder with two checkpoints, figures, and a ladder of the newer one."""
    settings = Settings(game, network="1x8", match_c_puct=1.0)
    with RunFolder(path, asdict(settings), made_with=made_with()) as run:
        for iteration in (1, 2):
            learner = Learner(azpy.make_game("tic_tac_toe"), "1x8", seed=iteration)
            weights, optimizer = learner.model_arrays(), learner.optimizer_arrays()
            onnx = to_onnx(learner.averaged)
            run.save_checkpoint(iteration, model=weights, optimizer=optimizer, state={}, onnx=onnx)
            common = {"iteration": iteration, "seconds": 60.0 * iteration}
            run.append_metrics({"kind": "iteration", "games": 8, "positions": 60} | common)
            scored = {"score": iteration / 4, "low": 0.0, "high": 1.0, "simulations": 30}
            run.append_metrics({"kind": "match", "opponent": "random"} | scored | common)
            run.append_metrics({"kind": "worker", "games": 8} | WORKER | common)
        step = {"temperature": 0.0, "pairs": [0, 0, 1, 0, 0], "low": None, "high": None}
        steps = [step | {"simulations": 1, "elo": 0.0}, step | {"simulations": 100, "elo": 300.0}]
        run.replace("ladder.json", json.dumps({"network": f"{network_id(onnx):016x}", "iteration": 2, "steps": steps}))
    return path


@pytest.fixture(scope="module")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def run(made_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """It is the folder `run` of the current folder."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(made_run, "run"))


def played(path: Path) -> dict[str, Any]:
    """Who plays in a folder, and the visits of its searches in a game."""
    served = open_player(str(path), None, 40)
    state, visits = served.start.clone(), []
    while not state.is_terminal:
        result = azpy.Search(served.evaluator, simulations=served.simulations, **served.options).run(state)
        assert result.action is not None
        visits.append(result.visits.tolist())
        state.play(result.action)
    return {"network": served.network, "options": served.options, "levels": served.ladder, "visits": visits}


def test_the_folder_plays_as_its_run_does(run: Path) -> None:
    assert main(["run", "--card", "cards/xo"]) == 0
    card, linked = Path("cards/xo"), Path("linked")
    shutil.copytree(card, linked)
    for number, file in enumerate(sorted(each for each in linked.rglob("*") if each.is_file())):
        blob = Path(f"blob{number}").resolve()  # as in Hugging Face's cache, whose files are links
        file.rename(blob)
        file.symlink_to(blob)
    expected, torch_s = played(run), TorchEvaluator(run).network_id
    assert len(expected["visits"]) >= 5
    run.rename("elsewhere")
    assert played(card) == played(linked) == expected
    assert TorchEvaluator(card).network_id == torch_s
    assert azpy.load_run(card).settings == StoredRun("elsewhere").settings
    assert azpy.load_run(card).matches() == StoredRun("elsewhere").matches()
    assert not list(card.rglob("optimizer*"))


def test_a_card_folder_cannot_be_trained_in(run: Path, one_line: Any) -> None:
    assert main(["run", "--card", "xo"]) == 0
    before = sorted(Path("xo").rglob("*"))
    one_line(train, ["--out", "xo"], "az-train: xo/checkpoints/000002 was exported without its optimizer: give --init")
    assert sorted(Path("xo").rglob("*")) == before


def test_the_readme_of_a_card_describes_the_player(run: Path, printed: Any) -> None:
    said = printed(main, ["run", "--card", "xo", "--license", "cc-by-4.0"])
    assert said == "wrote the player of checkpoint 2 to xo\n"
    start, front, text = Path("xo/README.md").read_text().split("---\n", 2)
    assert start == ""
    fields = 'license: "cc-by-4.0"\nlibrary_name: azpy\npipeline_tag: reinforcement-learning\ntags:\n- azpy\n'
    assert front.startswith(fields)
    assert front.endswith('- "tic_tac_toe"\n')
    for fact in (
        "plays `tic_tac_toe`",
        "The network is `1x8`. The run was made with azpy 0.",
        "Iteration 2, 2.0 minutes, 16 games, 120 positions. Last matches: 0.50 [0.00, 1.00] against random.",
        "The network had 30 simulations a move.",
        "These levels were calibrated with this network.",
        "| full strength | 300 | 100 | 0 |",
        "    az-train --config xo/config.toml --init xo --out xo-further\n",
    ):
        assert fact in text
    (command,) = (line for line in text.splitlines() if line.startswith("    az-match"))
    assert match([*shlex.split(command)[1:], "--games", "2", "--simulations", "2"]) == 0
    files = {file.name: file.read_text() for file in Path("xo").iterdir() if file.is_file()}
    assert sorted(files) == ["README.md", "config.toml", "ladder.json", "metrics.jsonl"]
    assert not any("a-host" in content or str(Path.cwd()) in content for content in files.values())


def test_an_older_checkpoint_comes_with_what_was_known_of_it(run: Path) -> None:
    assert main(["run", "--card", "xo", "--checkpoint", "1"]) == 0
    text = Path("xo/README.md").read_text()
    assert 'license: "unknown"\n' in text
    assert "Iteration 1, 1.0 minutes, 8 games, 60 positions. Last matches: 0.25" in text
    assert "These levels were calibrated with the network of iteration 2." in text
    assert azpy.load_run("xo").evaluator.network_id == azpy.OnnxEvaluator("run/checkpoints/000001").network_id


def test_the_game_of_another_s_code_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_of(Path("run"), "oracles:Countdown")
    assert main(["run", "--card", "mine"]) == 0
    text = Path("mine/README.md").read_text()
    assert "    az-play mine --game oracles:Countdown\n" in text
    assert "azpy.load_run('mine', 'oracles:Countdown')" in text
    assert '- "Countdown"\n' in text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--card", "run"], "--card takes a folder outside of the run"),
        (["--card", "run/mine"], "--card takes a folder outside of the run"),
        (["--card", "."], ". exists: give a new folder"),
        (["--card", "two\nlines"], "--card takes a folder whose name can be printed"),
        (["--card", "run/config.toml"], "--card run/config.toml belongs to the run run"),
        (["--card", "xo", "--license", "All rights: none"], "--license takes a name such as apache-2.0 or cc-by-4.0"),
        (["--npz", "x", "--license", "mit"], "--license goes with --card"),
        (["--card", "xo", "--checkpoint", "3"], "run has no checkpoint 3: it has 1, 2"),
    ],
)
def test_a_card_that_cannot_be_written_is_one_line(arguments: list[str], text: str, run: Path, one_line: Any) -> None:
    assert text in one_line(main, ["run", *arguments], "az-export: ")
    assert [entry.name for entry in Path().iterdir()] == ["run"]


def test_a_full_disk_leaves_nothing_behind(run: Path, monkeypatch: pytest.MonkeyPatch, one_line: Any) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    one_line(main, ["run", "--card", "xo"], "az-export: no space left on the device of xo: ")
    assert [entry.name for entry in Path().iterdir()] == ["run"]
