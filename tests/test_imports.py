"""What loads what: the layers hold, and `import azpy` is light."""

import ast
import importlib.util
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import azpy

PACKAGE = Path(azpy.__file__).parent
REPOSITORY = Path(__file__).parent.parent
HEAVY = ("torch", "onnxruntime", "onnx", "onnxscript", "safetensors", "rich", "jax")


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


def test_asking_for_the_onnx_evaluator_without_onnx_runtime_says_what_to_install() -> None:
    said = python("""
        import sys
        sys.modules["onnxruntime"] = None
        import azpy
        try:
            azpy.OnnxEvaluator("model.onnx")
        except Exception as error:
            print(type(error).__mro__, error)
    """)
    assert "azpy[cpu]" in said or "FileNotFound" in said or "model.onnx" in said


def test_public_names_exist_and_private_ones_do_not() -> None:
    assert sorted(set(azpy.__all__)) == sorted(azpy.__all__)
    for name in azpy.__all__:
        if name == "OnnxEvaluator" and importlib.util.find_spec("onnxruntime") is None:
            continue
        assert hasattr(azpy, name)
    with pytest.raises(AttributeError, match="nonsense"):
        azpy.nonsense  # noqa: B018


# Module -> what it must not import, at any depth of its own text. The packages of a layer are those above it.
NETWORKS = {"torch", "onnxruntime", "onnx", "onnxscript", "safetensors"}
FORBIDDEN: dict[str, set[str]] = {
    "__init__": NETWORKS,
    "game": {*NETWORKS, "rich", "argparse"},
    "evaluator": {*NETWORKS, "rich", "argparse"},
    "runs": {*NETWORKS - {"safetensors"}, "azpy.trainer", "azpy.arena", "azpy.cli"},
    "onnx": {"torch", "azpy.network", "azpy.trainer", "azpy.arena", "azpy.cli"},
    "network": {"onnxruntime", "azpy.onnx", "azpy.trainer", "azpy.arena", "azpy.cli"},
    "trainer": {"argparse", "azpy.cli"},
    "arena": {"argparse", "azpy.cli"},
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
    path = PACKAGE / f"{module}.py"
    if not path.exists():
        pytest.skip(f"azpy has no {module}.py")
    assert imports(path) & FORBIDDEN[module] == set()


def test_only_commands_print() -> None:
    for path in PACKAGE.glob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        printing = [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]
        assert not printing, f"{path.name} prints in lines {printing}"


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
