"""What loads what: the layers hold, and `import azpy` is light."""

import ast
import graphlib
import importlib.util
import re
import shutil
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import azpy
from azpy.errors import EXTRAS, pip_install
from running import ended, program

PACKAGE = Path(azpy.__file__).parent
REPOSITORY = Path(__file__).parents[2]
HEAVY = ("torch", "onnxruntime", "onnx", "safetensors", "rich", "jax", "matplotlib", "tensorboard", "pyspiel")


def python(text: str) -> str:
    done = program(text)
    assert done.code == 0, done.errors
    return done.out


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


@pytest.mark.skipif(not (REPOSITORY / "pyproject.toml").exists(), reason="needs the source tree")
def test_the_packages_that_errors_name_are_those_of_the_extras() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    del extras["dev"], extras["site"], extras["test"]
    assert {name: tuple(re.sub(r">=[\d.]+,?", "", one) for one in extras[name]) for name in extras} == EXTRAS
    packages = 'pip install "onnxruntime-gpu[cuda,cudnn]" "tensorrt-cu13<11" tensorboard'
    assert pip_install("tensorrt", "tensorboard") == packages


def test_only_the_modules_that_train_load_a_network_library() -> None:
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in PACKAGE.rglob("*.py")]
    training = re.compile(
        r"azpy\.(learning\.|evaluators\.torch$|training\.(certificate|comparison|fitting|generations|matches|rehearsal|sizing|supervised|train|trainer)$)|.*__init__$"
    )
    modules = [name for name in names if not training.match(name)]
    assert len(modules) > 50
    loaded = python(f"""
        import importlib, sys
        for module in {sorted(modules)}:
            importlib.import_module(module)
            assert not [name for name in {HEAVY} if name in sys.modules], module
        print("light")
    """)
    assert loaded == "light\n"


@pytest.mark.skipif(not (REPOSITORY / "rust").exists(), reason="needs the source tree")
@pytest.mark.parametrize("crate", ["core", "games", "py"])
def test_no_modules_of_a_crate_use_each_other_in_a_circle(crate: str) -> None:
    source = REPOSITORY / "rust" / crate / "src"
    files = {
        re.sub(r"/mod$", "", path.relative_to(source).with_suffix("").as_posix()): path for path in source.rglob("*.rs")
    }
    del files["lib"]
    uses: dict[str, set[str]] = {}
    for module, path in files.items():
        # Unit tests stand in their module and may use any other.
        code = re.sub(r"//.*", "", path.read_text(encoding="utf-8")).split("#[cfg(test)]\nmod tests")[0]
        folder = module.rpartition("/")[0]  # a parent may use its own files
        siblings = (name for name in re.findall(r"super::(\w+)", code) if f"{folder}/{name}" in files)
        uses.setdefault(module, set()).update(f"{folder}/{name}" for name in siblings)
        assert not re.search(r"crate::\{", code), f"{module} names several modules in one use: one a line, please"
        for used in re.findall(r"(?<!\$)crate::([\w:]+)", code):
            parts = used.rstrip(":").split("::")
            found = next((name for end in range(len(parts), 0, -1) if (name := "/".join(parts[:end])) in files), None)
            assert found, f"{module} uses {used}: name the file that has it"
            uses.setdefault(module, set()).add(found)
    assert len(uses) > 5
    graphlib.TopologicalSorter({module: used - {module} for module, used in uses.items()}).prepare()


def test_public_names_exist_and_private_ones_do_not() -> None:
    assert sorted(set(azpy.__all__)) == sorted(azpy.__all__)
    for name in azpy.__all__:
        needed = {"OnnxEvaluator": "onnxruntime", "TorchEvaluator": "torch", "export_onnx": "torch"}.get(name)
        if needed is not None and importlib.util.find_spec(needed) is None:
            continue
        assert hasattr(azpy, name)
    with pytest.raises(AttributeError, match="nonsense"):
        azpy.nonsense  # noqa: B018


@pytest.mark.skipif(importlib.util.find_spec("importlinter") is None, reason="needs import-linter")
@pytest.mark.skipif(not (REPOSITORY / "pyproject.toml").exists(), reason="needs the source tree")
def test_no_package_imports_one_above_it() -> None:
    done = program("from importlinter.cli import lint_imports_command; lint_imports_command()", cwd=REPOSITORY)
    assert done.code == 0, done


def test_only_commands_print() -> None:
    for path in set(PACKAGE.rglob("*.py")) - set((PACKAGE / "cli").glob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        printing = [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]
        assert not printing, f"{path.name} prints in lines {printing}"


def test_only_commands_change_the_state_of_the_whole_process() -> None:
    changes = re.compile(
        r"warnings\.(catch_warnings|filterwarnings|simplefilter|showwarning)|logging\.(disable|basicConfig)"
        r"|redirect_std|sys\.(stdout|stderr) =|sys\.path(\.(append|insert|extend)| ?\+?=|\[)"
        r"|os\.(chdir|dup2|putenv|umask)|os\.environ(\[[^]]*\] =|\.(setdefault|update))|signal\.signal|random\.seed"
    )
    for path in set(PACKAGE.rglob("*.py")) - set((PACKAGE / "cli").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        # Ray takes the handler, and gets it taken back.
        found = changes.findall(text.replace("signal.signal(signal.SIGTERM, at_sigterm)", ""))
        assert not found, f"{path.name} changes the whole process"


def test_only_one_module_names_system_differences() -> None:
    unshared = re.compile(
        r"\bimport (_winapi|fcntl|grp|msvcrt|multiprocessing|pty|pwd|resource|select|termios|tty)\b"
        r"|\bos\.(O_NO\w+|f?chown|fchmod|fork\w*|get(euid|loadavg|p?gid|uid)|killp?g?|mkfifo|nice|preadv?|pwritev?|readv|writev"
        r"|rename|replace|sched_\w+|set(_blocking|p?gid|sid|uid)|sysconf)\b"
        r"|\bsignal\.SIG(?!INT\b|TERM\b|_)|\bAF_UNIX\b|[\"']/(proc|sys)\b"
        r"|\b(pass_fds|preexec_fn|process_group|start_new_session)=|\.(rename|replace)\([^,\"']*\)$",
        re.MULTILINE,
    )
    for path in (*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "azpy_cli").glob("*.py")):
        found = unshared.search(path.read_text(encoding="utf-8"))
        assert (path.name == "system.py") == (found is not None), f"{path}: {found}, which belongs into azpy/system.py"


def test_no_module_reads_a_clock_that_can_be_set() -> None:
    wall = re.compile(r"\btime\.(?:time|time_ns|localtime|gmtime|strftime)\(|\bdatetime\b|\bSystemTime\b")
    for path in (*PACKAGE.rglob("*.py"), *(REPOSITORY / "rust").glob("*/src/**/*.rs")):
        found = wall.search(path.read_text())
        is_date = path.name == "notations.py"  # of a game that is saved
        assert found is None or is_date, f"{path}: {found}; take time.monotonic or Instant"


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="needs onnxruntime")
def test_importing_and_using_azpy_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a_game.py").write_text("from azpy import Game\nclass Nothing(Game): pass\n")
    python(f"""
        import contextlib, logging, os, sys, warnings
        import numpy, onnx, onnxruntime, torch
        import torch._dynamo  # an optimizer imports it, and so sympy, which adds a filter
        from onnxruntime import quantization

        def process():
            logs = logging.root.manager.disable, logging.root.level, list(logging.root.handlers)
            warned = list(warnings.filters), warnings.showwarning
            return logs, warned, list(sys.path), sys.stdout, sys.stderr, dict(os.environ), os.getcwd()

        os.chdir({str(tmp_path)!r})
        before = process()
        import azpy
        from azpy.evaluators.int8 import to_int8
        from azpy.learning.export import to_onnx
        from azpy.learning.learner import Learner
        from azpy.training import trainer
        state = azpy.make_game("tic_tac_toe")
        model = to_onnx(Learner(state, "1x8").averaged)
        to_int8(model, numpy.zeros((4, *state.obs_shape), numpy.float32))
        for evaluator in (azpy.OnnxEvaluator(model, "auto", game=state), azpy.UniformEvaluator()):
            azpy.Search(evaluator, simulations=10).run(state)
        with contextlib.suppress(ValueError):
            azpy.make_game("a_game:Nothing")
        for now, then in zip(process(), before):
            assert now == then, f"{{now}}, before {{then}}"
    """)


@pytest.mark.skipif(importlib.util.find_spec("maturin") is None, reason="needs maturin")
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
@pytest.mark.skipif(not (REPOSITORY / "Cargo.toml").exists(), reason="needs the source tree")
def test_the_source_package_has_the_pages_and_nothing_built(tmp_path: Path) -> None:
    done = ended([sys.executable, "-m", "maturin", "sdist", "--out", tmp_path], cwd=REPOSITORY)
    assert done.code == 0, done
    (archive,) = tmp_path.glob("azpy-*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\((?!https?:)([^):#]+)", readme)) | set(re.findall(r"benches/\w+\.py", readme))
    assert len(linked) > 4
    for folder in ("docs", "examples"):
        linked |= {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / folder).rglob("*.[mp][dy]")}
    assert linked - names == set()
    assert {"azpy_cli/__init__.py", "azpy/checks/template/src/lib.rs", "Makefile"} <= names
    built = re.compile(r"\.(so|whl|pyc)$|(^|/)(target|dist|__pycache__)/|^runs/")
    assert [name for name in names if built.search(name)] == []


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
@pytest.mark.skipif(not (REPOSITORY / "Cargo.toml").exists(), reason="needs the source tree")
@pytest.mark.parametrize("crate", ["azpy-core", "azpy-games", "azpy-net", "azpy-serve"])
def test_lower_crates_have_no_python_and_no_unsafe_code(crate: str) -> None:
    tree = ended(["cargo", "tree", "-p", crate, "--edges", "normal", "--prefix", "none"], cwd=REPOSITORY).out
    assert crate in tree
    assert "pyo3" not in tree
    assert "numpy" not in tree
    if crate != "azpy-games":
        assert "azpy-games" not in tree
    library = REPOSITORY / "rust" / crate.removeprefix("azpy-") / "src" / "lib.rs"
    assert "#![forbid(unsafe_code)]" in library.read_text(encoding="utf-8")
