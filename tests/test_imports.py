"""What loads what: the layers hold, and `import azpy` is light."""

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import tomllib
from pathlib import Path

import pytest

import azpy
from azpy.errors import EXTRAS, pip_install

PACKAGE = Path(azpy.__file__).parent
REPOSITORY = Path(__file__).parent.parent
HEAVY = (
    "torch",
    "onnxruntime",
    "onnx",
    "onnxscript",
    "safetensors",
    "rich",
    "jax",
    "matplotlib",
    "tensorboard",
    "pyspiel",
)


def python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_azpy_loads_no_network_library() -> None:
    assert python(f"import sys, azpy; print([name for name in {HEAVY} if name in sys.modules])") == "[]\n"


def test_azpy_works_where_no_network_library_is_installed() -> None:
    visits = python(f"""
        import sys
        for name in {HEAVY}:
            sys.modules[name] = None  # importing it fails
        import azpy
        with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), slots=2, simulations=10, games=2) as games:
            assert len(list(games)) == 2
        print(azpy.Search(azpy.UniformEvaluator(), simulations=10).run(azpy.make_game("connect_four")).visits.sum())
    """)
    assert visits == "10\n"


def test_asking_for_the_onnx_evaluator_without_onnx_runtime_says_what_to_install(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"never looked at")
    said = python(f"""
        import sys
        sys.modules["onnxruntime"] = None
        import azpy
        try:
            azpy.OnnxEvaluator({str(model)!r})
        except ImportError as error:
            print(type(error).__name__, error)
    """)
    assert said == "MissingPackageError onnxruntime is not installed: pip install onnxruntime\n"


@pytest.mark.skipif(not (REPOSITORY / "pyproject.toml").exists(), reason="needs the source tree")
def test_the_packages_that_errors_name_are_those_of_the_extras() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    del extras["dev"]
    assert {name: tuple(re.sub(r">=[\d.]+,?", "", one) for one in extras[name]) for name in extras} == EXTRAS
    packages = 'pip install "onnxruntime-gpu[cuda,cudnn]" onnx "tensorrt-cu13<11" tensorboard'
    assert pip_install("tensorrt", "tensorboard") == packages


def test_no_text_has_pip_look_for_azpy_in_an_index() -> None:
    asks = re.compile(r"(pip install|install one of) \S*azpy\[")
    for path in (*PACKAGE.rglob("*.py"), *REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")):
        assert not asks.search(path.read_text(encoding="utf-8")), path


def test_only_the_modules_that_train_load_a_network_library() -> None:
    training = {"learner", "lineup", "network", "torch_evaluator", "trainer"}
    modules = [f"azpy.{path.stem}" for path in PACKAGE.glob("*.py") if path.stem not in {"__init__", *training}]
    modules += [f"azpy.cli.{path.stem}" for path in (PACKAGE / "cli").glob("*.py") if path.stem != "__init__"]
    assert len(modules) > 10
    loaded = python(f"""
        import importlib, sys
        for module in {sorted(modules)}:
            importlib.import_module(module)
            assert not [name for name in {HEAVY} if name in sys.modules], module
        print("light")
    """)
    assert loaded == "light\n"


def test_public_names_exist_and_private_ones_do_not() -> None:
    assert sorted(set(azpy.__all__)) == sorted(azpy.__all__)
    for name in azpy.__all__:
        needed = {"OnnxEvaluator": "onnxruntime", "TorchEvaluator": "torch"}.get(name)
        if needed is not None and importlib.util.find_spec(needed) is None:
            continue
        assert hasattr(azpy, name)
    with pytest.raises(AttributeError, match="nonsense"):
        azpy.nonsense  # noqa: B018


# Module -> what it must not import, at any depth of its own text. The packages of a layer are those above it.
NETWORKS = {"torch", "onnxruntime", "onnx", "onnxscript", "safetensors"}
ABOVE = {"azpy.trainer", "azpy.cli"}
SHOWING = {"rich", "argparse"}
FORBIDDEN: dict[str, set[str]] = {
    "__init__": {*NETWORKS, *SHOWING, *ABOVE, "azpy.arena"},
    "errors": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core"},
    "about": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core", "azpy.settings", "azpy.runs", "azpy.arena"},
    "settings": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core", "azpy.runs", "azpy.arena"},
    "config": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core", "azpy.runs", "azpy.arena"},
    "presets": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core", "azpy.runs", "azpy.arena"},
    "game": {*NETWORKS, *SHOWING, *ABOVE, "azpy.positions", "azpy.runs", "azpy.arena"},
    "core_choice": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core", "azpy.runs", "azpy.arena"},
    "games": {*NETWORKS, *SHOWING, *ABOVE, "azpy.positions", "azpy.runs", "azpy.arena"},
    "evaluator": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.arena"},
    "positions": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.arena"},
    "game_checks": {*NETWORKS, *SHOWING, *ABOVE, "subprocess", "azpy.perspective", "azpy.runs", "azpy.arena"},
    "state_checks": {*NETWORKS, *SHOWING, *ABOVE, "subprocess", "azpy.perspective", "azpy.runs", "azpy.arena"},
    "perspective": {*NETWORKS, *SHOWING, *ABOVE, "azpy._core", "azpy.positions", "azpy.runs", "azpy.arena"},
    "failing_lines": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.storage", "azpy.arena"},
    "check_game": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.storage", "azpy.arena"},
    "pondering": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy.runs", "azpy.arena"},
    "tuning": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.storage", "azpy.arena"},
    "budget": {*NETWORKS, *SHOWING, *ABOVE, "azpy._core", "azpy.runs", "azpy.arena"},
    "building": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core", "azpy.runs", "azpy.arena"},
    "resignation": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.storage", "azpy.arena"},
    "machine": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy.runs", "azpy.arena"},
    "advice": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core", "azpy.runs", "azpy.arena"},
    "timing": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core", "azpy.runs", "azpy.arena"},
    "benchmarks": {*NETWORKS, *SHOWING, *ABOVE, "azpy.onnx", "azpy.network", "azpy.runs", "azpy.arena"},
    "window": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.storage", "azpy.arena"},
    "storage": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.arena"},
    "runs": {*NETWORKS - {"safetensors"}, *SHOWING, *ABOVE, "azpy.arena"},
    "ratings": {*NETWORKS, *SHOWING, *ABOVE, "azpy._core", "azpy.positions", "azpy.runs", "azpy.arena"},
    "openings": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.arena"},
    "arena": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.players"},
    "query": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core", "azpy.runs", "azpy.arena"},
    "players": {*NETWORKS, *SHOWING, *ABOVE},
    "events": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs"},
    "providers": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core", "azpy.runs", "azpy.arena"},
    "signature": {*NETWORKS, *SHOWING, *ABOVE, "azpy._core", "azpy.runs", "azpy.arena"},
    "probe_model": {*NETWORKS, *SHOWING, *ABOVE, "azpy._core", "azpy.runs", "azpy.arena"},
    "doctor": {*NETWORKS, *SHOWING, *ABOVE, "azpy.network", "azpy.runs", "azpy.arena"},
    "torch_evaluator": {*NETWORKS - {"torch"}, *SHOWING, *ABOVE, "azpy.onnx", "azpy.arena"},
    "form": {*NETWORKS - {"onnx"}, *SHOWING, *ABOVE, "azpy._core", "azpy.onnx", "azpy.runs", "azpy.arena"},
    "half": {*NETWORKS - {"onnx", "onnxruntime"}, *SHOWING, *ABOVE, "azpy._core", "azpy.onnx", "azpy.runs"},
    "pinned": {*NETWORKS, *SHOWING, *ABOVE, "azpy._core", "azpy.onnx", "azpy.runs", "azpy.arena"},
    "gpu": {*NETWORKS, *SHOWING, *ABOVE, "azpy._core", "azpy.onnx", "azpy.sessions", "azpy.runs", "azpy.arena"},
    "sessions": {*NETWORKS - {"onnxruntime"}, *SHOWING, *ABOVE, "azpy._core", "azpy.onnx", "azpy.runs", "azpy.arena"},
    "parity": {*NETWORKS, *SHOWING, *ABOVE, "azpy.onnx", "azpy.runs", "azpy.arena"},
    "onnx": {*NETWORKS - {"onnxruntime"}, *SHOWING, *ABOVE, "azpy.network", "azpy.runs", "azpy.arena"},
    "network": {"onnxruntime", *SHOWING, *ABOVE, "azpy.onnx", "azpy.runs", "azpy.arena"},
    "learner": {*NETWORKS - {"torch"}, *SHOWING, *ABOVE, "azpy.onnx", "azpy.runs", "azpy.arena"},
    "selfplay": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.storage", "azpy.arena"},
    "stored": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.arena"},
    "exports": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.onnx", "azpy.arena"},
    "repeat": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.arena"},
    "collector": {*NETWORKS, *SHOWING, *ABOVE, "azpy.learner", "azpy.network", "azpy.arena"},
    "statistics": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.storage", "azpy.arena"},
    "alarms": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy._core", "azpy.runs", "azpy.storage", "azpy.arena"},
    "tree_picture": {*NETWORKS, *SHOWING, *ABOVE, "numpy", "azpy.runs", "azpy.arena"},
    "board": {*NETWORKS - {"torch"}, *SHOWING, *ABOVE, "azpy._core", "azpy.runs", "azpy.arena"},
    "report": {*NETWORKS, *SHOWING, *ABOVE, "azpy.runs", "azpy.storage", "azpy.arena"},
    "int8": {"torch", "onnxscript", "safetensors", *SHOWING, *ABOVE, "azpy.runs", "azpy.arena"},
    "lineup": {*NETWORKS, *SHOWING, *ABOVE, "azpy.learner", "azpy.window", "azpy.arena"},
    "trainer": {*SHOWING, "azpy.cli"},
    "comparison": {*NETWORKS, *SHOWING, "azpy.cli"},
}


def imports(path: Path) -> set[str]:
    """Absolute names of the modules that a file imports, and of their packages."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {".".join(parts[: n + 1]) for parts in (name.split(".") for name in found) for n in range(len(parts))}


@pytest.mark.parametrize("module", FORBIDDEN)
def test_no_module_imports_a_layer_above_it(module: str) -> None:
    assert imports(PACKAGE / f"{module}.py") & FORBIDDEN[module] == set()


def test_every_module_has_its_layer() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == FORBIDDEN.keys()


def test_only_commands_print() -> None:
    for path in PACKAGE.glob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        printing = [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]
        assert not printing, f"{path.name} prints in lines {printing}"


@pytest.mark.skipif(importlib.util.find_spec("maturin") is None, reason="needs maturin")
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
@pytest.mark.skipif(not (REPOSITORY / "Cargo.toml").exists(), reason="needs the source tree")
def test_the_source_package_holds_what_the_readme_points_to_and_nothing_built(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(tmp_path)]
    subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True)
    (archive,) = tmp_path.glob("azpy-*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([^):]+)\)", readme)) | set(re.findall(r"benches/\w+\.py", readme))
    assert len(linked) > 4
    for folder in ("docs", "examples"):
        linked |= {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / folder).rglob("*.[mp][dy]")}
    assert linked - names == set()
    assert {"azpy_cli/__init__.py", "examples/hexapawn/src/lib.rs", "Makefile"} <= names
    built = re.compile(r"\.(so|whl|pyc)$|(^|/)(target|dist|runs|__pycache__)/")
    assert [name for name in names if built.search(name)] == []


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
@pytest.mark.skipif(not (REPOSITORY / "Cargo.toml").exists(), reason="needs the source tree")
@pytest.mark.parametrize("crate", ["azpy-core", "azpy-games"])
def test_core_and_games_know_no_python_and_no_unsafe_code(crate: str) -> None:
    tree = subprocess.run(
        ["cargo", "tree", "-p", crate, "--edges", "normal", "--prefix", "none"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert crate in tree
    assert "pyo3" not in tree
    assert "numpy" not in tree
    if crate == "azpy-core":
        assert "azpy-games" not in tree
    else:
        assert "pyo3" not in tree
    library = REPOSITORY / "rust" / crate.removeprefix("azpy-") / "src" / "lib.rs"
    assert "#![forbid(unsafe_code)]" in library.read_text(encoding="utf-8")
