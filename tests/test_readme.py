"""The programs of the README and of docs/python.md run as they are printed."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.cli.train import main as train
from azpy.runs.folder import RunFolder
from test_onnx import make_model

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_a_script_in_the_clone_finds_the_core() -> None:
    program = "import azpy; print(azpy.__file__, azpy.make_game('connect_four').num_actions)"
    command = [sys.executable, "-c", program]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=README.parent, env=clean, capture_output=True, text=True)
    assert done.stdout.split() == [str(README.parent / "azpy/__init__.py"), "7"], done.stderr


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_what_installs_az_train_installs_the_board_that_a_run_s_end_names() -> None:
    installs = {
        "Makefile": r'pip install "\$\$wheel\[(cpu,[a-z,]*)\]"',
        "README.md": r'pip install "\.\[([a-z,]*)\]"\n    az-train',
    }
    for name, pattern in installs.items():
        found = re.search(pattern, (README.parent / name).read_text(encoding="utf-8"))
        assert found is not None, name
        assert {"cpu", "train", "serve"} <= {*found[1].split(",")}, name


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_programs_run_one_after_another(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    text = (README.parent / page).read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(programs) > 4
    monkeypatch.chdir(tmp_path)  # they write files
    state = azpy.make_game("connect_four")
    model = make_model(shape=("batch", *state.obs_shape), actions=state.num_actions)
    with RunFolder("runs/connect_four", {"game": "connect_four"}) as run:
        run.save_checkpoint(1, model={}, optimizer={}, state={}, onnx=model)
    names: dict[str, Any] = {"__name__": "readme"}
    for program in programs:
        # Some need a run that was trained before, and one another package; tests/test_chess.py runs that.
        if not re.search(r"\.onnx|TorchEvaluator|chess\.syzygy", program):
            exec(compile(program, page, "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert names["run"].iteration == 1
    if page == "README.md":
        assert "1" in lines  # leave three
    else:
        assert "(64, 7)" in lines
        assert (tmp_path / "search.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_the_network_of_the_docs_is_trained_word_for_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (README.parent / "docs/own_network.md").read_text(encoding="utf-8")
    module, *others = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("columns.py").write_text(module + "\n\n" + others[0].replace("Counting", "Counted") + "\n\n" + others[1])
    names: dict[str, Any] = {"__name__": "docs"}
    for program in (module, *others):
        exec(compile(program, "docs/own_network.md", "exec"), names)
    assert Path("columns.onnx").exists()
    flags = ["--iterations", "1", "--games-per-iteration", "4", "--simulations", "4", "--final-match-games", "2"]
    flags += [
        "--freeze",
        "embed.*,place",
        "--gumbel-actions",
        "2",
        "--match-simulations",
        "4",
        "--match-lookahead",
        "0",
    ]
    for network, optimizer in (("columns:make", "adamw"), ("columns:Counted", "columns:adam")):
        flags += ["--network", network, "--optimizer", optimizer, "--out", network.partition(":")[2]]
        assert train(["connect_four", *flags, "--deterministic"]) == 0
    sys.modules.pop("columns")
