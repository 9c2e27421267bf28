"""What all tests rely on."""

import os
import signal
import sys
from collections.abc import Callable, Iterator

import pytest

from starts import Starts

# Tests import it themselves and have it as a plugin, for its fixtures.
pytest.register_assert_rewrite("browser")

# Threads of OpenMP that wait for work sleep. By default they spin, and take the cores from other tests.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# JAX compiles for longer than the compiled program runs.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

# A shell that starts this in the background ignores Ctrl-C, and nohup a terminal that closes: here and in every program
# that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # not on Windows
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starts]:
    """Starts of az-train; making it takes seconds, each start a fraction of one."""
    with Starts(tmp_path_factory.mktemp("starts")) as started:
        yield started


@pytest.fixture(scope="module", autouse=True)
def one_core() -> Iterator[None]:
    """Runs fit on one core: with networks this small, several threads take ten times the processor time."""
    with pytest.MonkeyPatch.context() as patched:
        if "azpy.learning.learner" in sys.modules:
            patched.setattr("azpy.learning.learner.usable_cores", lambda: 1)
        yield


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Torch begins every test with one thread."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[Callable[[list[str]], int], list[str]], str]:
    """Runs a command, which must end with 0, and gives what it prints."""

    def said(main: Callable[[list[str]], int], arguments: list[str]) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    return said


@pytest.fixture
def one_line(capsys: pytest.CaptureFixture[str]) -> Callable[[Callable[[list[str]], int], list[str], str], str]:
    """Runs a command with wrong arguments: it must end with 2 and one line with this begin, which comes back."""

    def said(main: Callable[[list[str]], int], arguments: list[str], begin: str) -> str:
        assert main(arguments) == 2
        output = capsys.readouterr()
        assert output.err.startswith(begin)
        assert output.err.count("\n") == 1
        return output.err

    return said
