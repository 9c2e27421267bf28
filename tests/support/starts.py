"""Starts `az-train` many times over: torch is loaded once, in a process that forks for every start.

`python starts.py MODULE...` is that process, with these modules loaded. It reads one request a line and answers twice:
the pid, and then how it ended. Windows has no fork: there a start loads torch, and takes only arguments and a folder.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

TINY = [
    *("--network", "1x8", "--simulations", "4", "--eval-batch", "2", "--slots", "4", "--games-per-iteration", "6"),
    *("--batch-size", "16", "--passes", "1", "--match-every", "1000", "--final-match-games", "2"),
]
# Each start would import torch._dynamo otherwise, with its first optimizer: more than a second.
MODULES = ("torch._dynamo", "azpy.training.trainer")
GAMES = ("tic_tac_toe", "pig(target=15)", "dice_nim")


def command(game: str, path: Path, iterations: int, deterministic: bool = True) -> list[str]:
    """Arguments of a small run."""
    flags = ["--deterministic"] if deterministic else []
    openings = ["--match-opening-plies", "0"]  # some of the games are over after a few plies
    return [game, *TINY, *openings, *flags, "--iterations", str(iterations), "--out", str(path)]


@dataclass(frozen=True)
class End:
    """How a start ended: `code` is -9 if it was killed."""

    code: int
    output: str
    errors: str
    seconds: float


class Starts:
    """The process that forks, with `modules` loaded; every start is `az-train ARGUMENTS`."""

    def __init__(self, folder: Path, modules: tuple[str, ...] = MODULES) -> None:
        self._modules = modules
        self._files = [folder / "stdout", folder / "stderr"]

    def __enter__(self) -> Self:
        # A library's threads do not survive a fork: this one must have none.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, *self._modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._answer() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def run(
        self,
        *arguments: str,
        folder: Path | None = None,
        before: str = "",
        kill_after: float | None = None,
        kill_when: str | None = None,
        kill_with: signal.Signals | None = None,
        kill_at: int | None = None,
        largest_file: int | None = None,
        one_core: bool = False,
    ) -> End:
        """Starts and waits for the end.

        Args:
            arguments: of az-train.
            folder: the current folder of the start.
            before: code that the start executes first.
            kill_after: seconds until it is killed with SIGKILL.
            kill_when: it is killed with SIGKILL once it has printed this, and `kill_after` seconds more.
            kill_with: another signal in place of SIGKILL.
            kill_at: it kills itself at this step of writing files: halfway through a write, before a file is opened,
                synced, renamed or deleted.
            largest_file: bytes; the system lets it write no file that is larger.
            one_core: it may run on one core only.
        """
        request = {
            "arguments": arguments,
            "folder": str(folder or Path.cwd()),
            "before": before,
            "files": [str(path) for path in self._files],
            "kill_at": kill_at,
            "largest_file": largest_file,
            "one_core": one_core,
        }
        for path in self._files:
            path.write_text("")  # the start before wrote there
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        pid, begin = self._answer(), time.monotonic()
        while kill_when is not None and kill_when not in self._files[0].read_text():
            os.kill(pid, 0)  # an error if it has ended
            time.sleep(0.002)
        if kill_after is not None or kill_when is not None:
            time.sleep(kill_after or 0)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, kill_with or signal.SIGKILL)
        code = self._answer()
        output, errors = (path.read_text() for path in self._files)
        return End(code, output, errors, time.monotonic() - begin)

    def finish(self, *arguments: str, folder: Path | None = None, one_core: bool = False) -> End:
        """Starts, and sees to it that the run completes."""
        end = self.run(*arguments, folder=folder, one_core=one_core)
        assert end.code == 0, end.errors
        assert "done: " in end.output
        return end


def _serve() -> None:
    """Forks for every request."""
    import torch

    for name in sys.argv[1:]:
        importlib.import_module(name)
    if "azpy.learning.learner" in sys.modules:  # several threads take ten times the processor time
        vars(sys.modules["azpy.learning.learner"])["usable_cores"] = lambda: 1
    torch.set_num_threads(1)
    tasks = Path("/proc/self/task")
    assert not tasks.exists() or len(list(tasks.iterdir())) == 1
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if sys.platform == "win32":
            with contextlib.ExitStack() as stack:
                output, errors = (stack.enter_context(Path(path).open("wb")) for path in request["files"])
                train = [sys.executable, "-m", "azpy", "train", *request["arguments"]]
                started = subprocess.Popen(train, cwd=request["folder"], stdout=output, stderr=errors)
            print(json.dumps(started.pid), json.dumps(started.wait()), sep="\n", flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            os._exit(_child(request))
        print(json.dumps(pid), flush=True)
        _, status = os.waitpid(pid, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)
    os._exit(0)  # taking torch apart takes seconds


def _child(request: dict[str, Any]) -> int:
    for number, path in enumerate(request["files"], start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.chdir(request["folder"])
    exec(request["before"], {})
    from azpy.cli.train import main

    if request["kill_at"] is not None:
        _kill_at(request["kill_at"])
    if request["largest_file"] is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest_file"], resource.RLIM_INFINITY))
    if request["one_core"]:
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    try:
        return main(request["arguments"])
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _kill_at(last: int) -> None:
    """Kills this process at a step of writing files."""
    from azpy.runs import storage

    steps = 0

    def is_last() -> bool:
        nonlocal steps
        steps += 1
        return steps == last

    def step() -> None:
        if is_last():
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: Any) -> None:
        opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if opened or event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir"):
            step()

    fsync, append, write_synced = os.fsync, storage.append, storage.write_synced

    def synced(fd: Any) -> None:
        step()
        fsync(fd)

    def half_appended(file: Any, data: bytes) -> None:
        if is_last():
            file.write(data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        append(file, data)

    def half_written(path: Path, data: bytes) -> None:
        if is_last():
            path.write_bytes(data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        write_synced(path, data)

    os.fsync, storage.append, storage.write_synced = synced, half_appended, half_written
    sys.addaudithook(watch)


if __name__ == "__main__":
    _serve()
