"""The programs of the README, of the pages and of the notebook run as they are printed."""

import doctest
import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import azpy
from azpy.__main__ import main as command_line
from azpy.cli.export import main as az_export
from azpy.cli.train import main as train
from azpy.errors import EXTRAS
from azpy.matches.ratings import round_interval
from azpy.runs.folder import RunFolder
from models import make_model
from running import ended
from training_runs import settings_from

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_a_script_in_the_clone_finds_the_core() -> None:
    text = "import azpy; print(azpy.__file__, azpy.make_game('connect_four').num_actions)"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = ended([sys.executable, "-c", text], cwd=README.parent, env=clean)
    assert done.out.split() == [str(README.parent / "azpy/__init__.py"), "7"], done.errors


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_the_links_of_the_pages_lead_somewhere() -> None:
    top = README.parent
    texts = {}
    for page in [*top.glob("*.md"), *top.glob("docs/**/*.md")]:
        texts[page.resolve()] = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    anchors = {page: re.findall(r"^#+ (.*)", text, re.M) for page, text in texts.items()}
    lost = []
    for page, text in texts.items():
        for place, anchor in re.findall(r"\]\((?!http)([^)#\s]*)#?([^)]*)\)", text):
            there = (page.parent / place).resolve() if place else page
            known = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in anchors.get(there, [])}
            if not there.exists() or (anchor and anchor not in known):
                lost.append(f"{page.name}: {place}#{anchor}")
    assert len(texts) > 15
    assert not lost


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_the_table_of_games_matches_the_games() -> None:
    page = (README.parent / "docs/reference/games.md").read_text(encoding="utf-8")
    row = r"^\| \[.*\) \| `(\w+)(?:\((.*?)\))?` \| (\d).*? \| (\d+) \| (\[.*\]) \| (\d|none) \|$"
    found = {name: rest for name, *rest in re.findall(row, page, re.MULTILINE)}
    assert found.keys() == azpy.list_games().keys()
    for name, defaults in azpy.list_games().items():
        state, text = azpy.make_game(name), ",".join(f"{key}={value}" for key, value in defaults.items())
        symmetries = str(state.num_symmetries) if state.num_symmetries > 1 else "none"
        players, actions, observation = state.num_players, state.num_actions, list(state.obs_shape)
        assert found[name] == [text, str(players), str(actions), str(observation), symmetries]


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_the_site_has_each_player_that_comes_along() -> None:
    page = (README.parent / "docs/start/live.md").read_text(encoding="utf-8")
    players = {player.name for player in (README.parent / "azpy/players").iterdir()}
    assert set(re.findall(r'src="(?:../)*players/(\w+)/index.html"', page)) == players


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_the_chart_of_the_first_page_has_figures_of_the_page_on_strength() -> None:
    page, strength = (README.parent / f"docs/{name}.md" for name in ("index", "explanation/strength"))
    rows = re.findall(r"^\|.*\|$", strength.read_text(encoding="utf-8"), re.MULTILINE)
    points = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', page.read_text(encoding="utf-8"))
    for x, y in points:
        minutes, score = round((float(x) - 50) / 16), f"{(240 - float(y)) / 220:.3f}"
        assert any(re.search(rf"\b{minutes}\b", row) and score in row for row in rows), (minutes, score)
    assert len(points) == 8


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_the_site_fails_on_lost_links_and_requests_to_other_hosts(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/index.html").write_text('<h2 id="here"></h2><a href="../#top">up</a><a href="/more/">here</a>')
    good = '<p id="top"><a href="more/#here">on</a><a href="https://example.org/">out</a><img src="a%20b.png">'
    (tmp_path / "a b.png").touch()
    command = [sys.executable, str(README.parent / "docs/site.py"), "check", str(tmp_path)]
    for bad in ("", '<a href="more/#gone">', '<a href="../../x.rs">', '<script src="https://example.org/x.js">'):
        (tmp_path / "index.html").write_text(good + bad)
        done = ended(command)
        assert (done.code, len(done.errors.splitlines())) == (bool(bad), bool(bad)), done.errors


LISTENED = Counter[str]()


def _stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that takes no time, and the packages that listen to it: `LISTENED` counts what they hear."""
    LISTENED.clear()

    def train(game: str, *, on_iteration: Any, **_: Any) -> Any:
        for iteration in (1, 2):
            on_iteration({"iteration": iteration, "explained_variance": 0.1, "policy_loss": 1.0})
        return azpy.load_run("runs/connect_four")

    class Pruned(Exception):  # noqa: N818
        pass

    class Study:
        def optimize(self, objective: Any, n_trials: int) -> None:
            for number in range(2):
                trial = SimpleNamespace(number=number, report=lambda value, step: None)
                trial.suggest_float = lambda name, low, high, log: low
                trial.should_prune = lambda number=number: number == 0
                try:
                    objective(trial)
                    LISTENED["finished"] += 1
                except Pruned:
                    LISTENED["pruned"] += 1

    def hears(name: str) -> Any:
        return lambda row, step: LISTENED.update({name: 1})

    played = azpy.match
    monkeypatch.setattr(azpy, "train", train, raising=False)
    monkeypatch.setattr(
        azpy, "match", lambda a, b, games, **more: played(a, b, games=2, simulations=2, **more), raising=False
    )
    pyplot = SimpleNamespace(plot=lambda curve: None, show=lambda: LISTENED.update(shown=1))
    packages = {
        "optuna": SimpleNamespace(TrialPruned=Pruned, create_study=lambda direction: Study()),
        "wandb": SimpleNamespace(init=lambda project: nullcontext(SimpleNamespace(log=hears("wandb")))),
        "mlflow": SimpleNamespace(start_run=nullcontext, log_metrics=hears("mlflow")),
        "IPython": SimpleNamespace(display=SimpleNamespace(clear_output=lambda wait: None)),
        "matplotlib": SimpleNamespace(pyplot=pyplot),
        "matplotlib.pyplot": pyplot,
    }
    for name, package in packages.items():
        monkeypatch.setitem(sys.modules, name, cast("Any", package))


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
@pytest.mark.skipif(shutil.which("node") is None, reason="pyright needs node")
def test_pyright_accepts_the_programs_of_the_pages(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    before = {  # what a page takes for granted
        "python": "import torch\nnetwork = torch.nn.Module()\n",
        "search": "import azpy\nstate = azpy.make_game('hex')\nevaluator = azpy.UniformEvaluator()\n",
    }
    for page in [README, *README.parent.glob("docs/**/*.md")]:
        programs = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        (tmp_path / f"page_{page.stem}.py").write_text(before.get(page.stem, "") + "\n".join(programs), "utf-8")
        if page == README:
            (tmp_path / "countdown.py").write_text(programs[0], "utf-8")
    for package in ("optuna", "wandb", "mlflow", "IPython", "matplotlib/pyplot", "torch"):
        stub = tmp_path / f"stubs/{package}.pyi"
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text("from typing import Any\ndef __getattr__(name: str) -> Any: ...\n", "utf-8")
    (tmp_path / "stubs/matplotlib/__init__.pyi").touch()
    config = {"include": ["page_*.py"], "extraPaths": [str(README.parent)], "stubPath": "stubs"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), "utf-8")
    done = ended([sys.executable, "-m", "pyright", "--pythonpath", sys.executable], cwd=tmp_path, patience=600)
    assert done.code == 0, done


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_the_image_has_one_debian_and_nothing_built() -> None:
    top = README.parent
    text = (top / "Dockerfile").read_text(encoding="utf-8")
    ((rust, debian),) = re.findall(r"^FROM rust:([\d.]+)-slim-(\w+) AS build$", text, re.MULTILINE)
    # The venv is copied, and its Python is Debian's.
    assert re.findall(r"^FROM debian:(\w+)-slim$", text, re.MULTILINE) == [debian]
    cargo = tomllib.loads((top / "Cargo.toml").read_text(encoding="utf-8"))
    assert rust == cargo["workspace"]["package"]["rust-version"]
    assert {*text.partition("ARG EXTRAS=")[2].split()[0].split(",")} == {"cpu", "train", "serve"} <= EXTRAS.keys()
    ignored = {line.removeprefix("**/") for line in (top / ".dockerignore").read_text(encoding="utf-8").split()}
    # What git leaves out is built here; lock files are small.
    of_git = {line.strip("/") for line in (top / ".gitignore").read_text(encoding="utf-8").split()}
    assert {".git", ".venv", "runs", "target"} <= ignored
    assert {name for name in of_git if {name, name.rpartition("/")[2]}.isdisjoint(ignored)} <= {
        "azpy/checks/template/Cargo.lock",
        "rust/fuzz/Cargo.lock",
    }


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_the_slurm_job_requeues_itself_after_sigterm_alone(tmp_path: Path) -> None:
    (job,) = re.findall(
        r"^```sh\n(#!/bin/bash\n.*?)^```", (README.parent / "docs/guides/cluster.md").read_text(), re.M | re.S
    )
    commands = {
        # The script sleeps once it waits.
        "az-train": 'until grep -q "State:.S" /proc/$PPID/status; do :; done\n'
        'trap "exit 143" TERM; if [ -n "$SIGNAL" ]; then kill -TERM $PPID; while :; do :; done; fi; exit $CODE',
        "scontrol": 'echo "scontrol $*"',
    }
    for name, script in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    here = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SCRATCH": "x", "SLURM_JOB_ID": "7"}
    for signal, code, said in (("", "0", ""), ("", "2", ""), ("1", "143", "scontrol requeue 7\n")):
        given = here | {"SIGNAL": signal, "CODE": code}
        assert ended(["bash", "-c", job], env=given) == (int(code), said, "")


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
@pytest.mark.parametrize("page", ["README.md", "docs/guides/python.md"])
def test_the_programs_run_one_after_another(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    text = (README.parent / page).read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(programs) >= 4
    monkeypatch.chdir(tmp_path)  # they write files
    state = azpy.make_game("connect_four")
    model = make_model(shape=("batch", *state.obs_shape), actions=state.num_actions)
    with RunFolder("runs/connect_four", {"game": "connect_four"}) as run:
        run.save_checkpoint(1, model={}, optimizer={}, state={}, onnx=model)
        row = {"kind": "match", "iteration": 1, "opponent": "random", "score": 0.5, "low": 0.4, "high": 0.6}
        run.append_metrics(row | {"seconds": 1.0})
    names: dict[str, Any] = {"__name__": "readme"}
    if page == "docs/guides/python.md":
        _stand_ins(monkeypatch)
    for program in programs:
        # Some need a run that was trained before, and one another package; tests/games/test_chess.py runs that.
        if not re.search(r"\.onnx|TorchEvaluator|NetEvaluator|chess\.syzygy", program):
            exec(compile(program, page, "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert names["run"].iteration == 1
    if page == "README.md":
        assert "1" in lines  # take two
    else:
        assert "(64, 7)" in lines
        assert (tmp_path / "search.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
@pytest.mark.parametrize(
    "page",
    [
        "guides/coming_from",
        "guides/how_long",
        "guides/troubleshooting",
        "explanation/search",
        "explanation/determinism",
    ],
)
def test_outputs_on_the_pages_are_real(
    page: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if page == "guides/coming_from":
        pytest.importorskip("pyspiel")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    countdown = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)[0]
    Path("countdown.py").write_text(countdown, "utf-8")
    model = make_model(shape=("batch", 2, 6, 7), actions=7)
    for run, game in (("connect_four", "connect_four"), ("new", "hex"), ("countdown-Countdown", "countdown:Countdown")):
        with RunFolder(f"runs/{run}", {"game": game, "network": "4x32", "seed": 0, "deterministic": False}) as folder:
            if run != "new":
                folder.save_checkpoint(1, model={}, optimizer={}, state={}, onnx=model)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    names: dict[str, Any] = {"__name__": page}
    text = (README.parent / f"docs/{page}.md").read_text("utf-8")
    shown = 0
    for kind, block in re.findall(r"^```(python|pycon|console)\n(.*?)^```", text, re.M | re.S):
        if kind == "python":
            exec(compile(block, page, "exec"), names)
        elif kind == "pycon":
            test = doctest.DocTestParser().get_doctest(block, names, page, None, 0)
            runner = doctest.DocTestRunner(optionflags=flags)
            assert runner.run(test, clear_globs=False).failed == 0, capsys.readouterr()
            names = test.globs
        else:
            for command, said in re.findall(r"^\$ az-(.*)\n((?:[^$].*\n)*)", block, re.M):
                monkeypatch.setattr(sys, "argv", ["az", *shlex.split(command)])
                assert command_line() == 2
                assert doctest.OutputChecker().check_output(said, capsys.readouterr().err, flags), command
        shown += 1
    lines = capsys.readouterr().out.splitlines()
    if page == "guides/troubleshooting":
        assert shown == 11
    elif page == "explanation/search":
        picture = README.parent / "docs/tree.svg"
        assert Path("tree.svg").read_text("utf-8") == picture.read_text("utf-8")
        assert names["result"].visits.tolist() == [45, 3, 3, 3, 3, 3]
    elif page == "explanation/determinism":
        assert lines == ["True False"]
    elif page == "guides/how_long":
        assert lines == ["(7, 22)"]
    else:
        assert lines[:4] + lines[-1:] == ["1", "1", "pile:2, take:1;", "[1, 0, 1]", "50"]
    sys.modules.pop("countdown", None)


@pytest.mark.filterwarnings("ignore:connect_four is a player that comes with azpy")
@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_the_cookbook_solves_its_problems(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.unpack_archive(README.parent / "tests/data/pool.zip")
    for run in ("connect_four", "enough"):
        shutil.copytree("pool", f"runs/{run}")
    ended = list[object]()
    _stand_ins(monkeypatch)
    listened, small = azpy.train, azpy.match

    def train(game: str, *, on_iteration: Any, out: str, **settings: Any) -> Any:
        if out != "runs/enough":
            return listened(game, on_iteration=on_iteration, out=out, **settings)
        ended.extend(on_iteration({"iteration": iteration}) for iteration in (9, 10))
        won = SimpleNamespace(interval=round_interval([0, 0, 0, 0, 20]))  # 40 games, all of them
        monkeypatch.setattr(azpy, "match", lambda *_, **__: won)
        ended.append(on_iteration({"iteration": 20}))
        monkeypatch.setattr(azpy, "match", small)
        return None

    monkeypatch.setattr(azpy, "train", train, raising=False)
    text, names = (README.parent / "docs/guides/cookbook.md").read_text("utf-8"), dict[str, Any]()
    assert text.count("\n## ") == 13
    for kind, block in re.findall(r"^```(python|sh)\n(.*?)^```", text, re.M | re.S):
        if kind == "python":
            exec(compile(block, "cookbook", "exec"), names)
        for name, line in re.findall(r"\baz-(train|export) ([^&\n]*)", block if kind == "sh" else ""):
            arguments = shlex.split(line)
            assert settings_from([*arguments, "--out", "runs/new"]) if name == "train" else az_export(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ended == [False, False, True]
    assert LISTENED == {"pruned": 1, "finished": 1, "wandb": 2, "mlflow": 2, "shown": 2}
    assert {"b2", "0.0"} < {*lines}
    assert [line.split(" by ")[1] for line in lines if line.startswith("player")] == ["3"]


@pytest.mark.slow
@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_the_notebook_runs(tmp_path: Path) -> None:
    pytest.importorskip("nbmake")
    shutil.copy(README.parent / "examples/own_game.ipynb", tmp_path)
    command = [sys.executable, "-m", "pytest", "--nbmake", "--nbmake-timeout=600", "own_game.ipynb"]
    done = ended(command, cwd=tmp_path, patience=1800)
    assert done.code == 0, done


@pytest.mark.skipif(not README.exists(), reason="needs the source tree")
def test_the_network_of_the_docs_can_be_trained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (README.parent / "docs/guides/own_network.md").read_text(encoding="utf-8")
    module, *others = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("columns.py").write_text(module + "\n\n" + others[0] + "\n\n" + others[1])
    names: dict[str, Any] = {"__name__": "docs"}
    for program in (module, *others):
        exec(compile(program, "docs/guides/own_network.md", "exec"), names)
    assert Path("columns.onnx").exists()
    flags = ["--iterations", "1", "--games-per-iteration", "4", "--simulations", "4", "--final-match-games", "2"]
    flags += ["--gumbel-actions", "2", "--match-simulations", "4", "--deterministic"]
    for network, optimizer, frozen in (("make", "adamw", "embed.*,place"), ("Counting", "columns:adam", "*.embed.*")):
        own = ["--network", f"columns:{network}", "--optimizer", optimizer, "--freeze", frozen, "--out", network]
        assert train(["connect_four", *flags, *own]) == 0
    sys.modules.pop("columns")
