"""A worker at a shared folder: it waits, goes on after trouble, begins anew, ends when told, and believes no damage."""

import signal
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_fleet import hashes
from test_folder import AtFolder, Workers, quickly, straight, with_folder

from azpy.cli.worker import main as az_worker
from azpy.errors import RunError
from azpy.fleet.channels import files, folder
from azpy.fleet.channels.files import SharedFolder
from azpy.fleet.channels.folder_worker import FolderWorker, _Connection
from running import program

__all__ = ["quickly", "straight"]  # fixtures of here too


def test_a_worker_goes_on_where_files_fail(
    straight: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some are not written or are damaged for once; no message is deleted, and no folder is synced."""
    read, write, delete, failed = SharedFolder.read, SharedFolder.write, SharedFolder.delete, Counter[str]()
    full, damaged = ["from", "workers", "from"], {part: [b"", b"another file"] for part in ("networks", "to")}

    def filled(self: SharedFolder, part: str, name: str, data: bytes, **options: Any) -> None:
        if full and part == full[-1]:
            full.pop()
            raise OSError(28, "No space left on device")
        write(self, part, name, data, **options)

    def spoilt(self: SharedFolder, part: str, name: str, most: int) -> bytes:
        return damaged[part].pop() if damaged.get(part) else read(self, part, name, most)

    def kept(self: SharedFolder, part: str, name: str) -> None:
        failed[part] += 1
        if part != "to" or any(damaged.values()):  # a message that waits for a network is there
            delete(self, part, name)

    def unsynced(path: Path) -> None:
        failed["sync"] += 1
        raise OSError(5, "Input/output error")

    for name, instead in {"write": filled, "read": spoilt, "delete": kept}.items():
        monkeypatch.setattr(SharedFolder, name, instead)
    monkeypatch.setattr(files, "sync_folder", unsynced)
    with Workers(tmp_path / "place", 1) as workers:
        assert hashes(with_folder(tmp_path)) == straight
        workers.join()
    assert workers.said == ["the run has ended"]
    assert (full, damaged) == ([], {"networks": [], "to": []})
    assert failed["to"] > 1
    assert failed["sync"] > 1


@pytest.mark.parametrize("slept", [True, False])
def test_a_worker_restarts_when_its_games_are_released(slept: bool, tmp_path: Path) -> None:
    """One that slept waited for a network that was deleted, and did not see that it was told to stop."""
    at = AtFolder(tmp_path, real=True)
    at.head.ask([range(10, 10000)], [])
    with Workers(tmp_path, 1) as workers:
        while not (at.head.members if slept else any(worker.games for worker in at.head.workers)):
            at.take()
        line = at.head.members[0]
        assert isinstance(line, folder.FolderLine)
        line._sent += 5 * slept  # messages that it has not read are gone
        at.head._end(at.head.members[0], "it did not finish a game in 60 seconds")
        while not any(worker.games and worker.name == "worker 2" for worker in at.head.workers):
            at.take()
        at.head.close()
        workers.join()
    assert workers.said == ["the run has ended"]


def test_a_worker_that_is_refused_ends_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.fleet.worker.digest_of_run", lambda _: "other rules")
    at = AtFolder(tmp_path, real=True)
    with Workers(tmp_path, 1) as workers:
        while not at.head.notices:
            at.take()
        workers.join()
    assert workers.said == ["az-train refused this worker: it plays a different run"]
    at.head.close()


def test_a_worker_stops_without_a_sign_of_its_head(tmp_path: Path) -> None:
    at = AtFolder(tmp_path)
    assert at.folder._heartbeat is not None
    at.folder._heartbeat.close()  # it counts no more
    now, seen = [0.0], list[int]()

    def sleep(seconds: float) -> None:
        now[0] += seconds
        seen.append(len(at.folder.files.names("workers")))

    worker = FolderWorker(str(tmp_path), None, {}, 5.0, lambda _: None, lambda: False, lambda: now[0], sleep)
    with pytest.raises(RunError, match=f"no sign of az-train at {tmp_path} for 5 seconds: start it again"):
        worker.run()
    assert set(seen) == {0}
    at.head.close()


def test_a_worker_waits_while_its_messages_are_unread(tmp_path: Path) -> None:
    place, waited = SharedFolder(tmp_path, make=True), list[int]()

    def sleep(_: float) -> None:
        waited.append(len(place.names("from")))
        for name in place.names("from")[:3]:
            place.delete("from", name)

    home: Any = SimpleNamespace(files=place, goes_on=lambda: True, say=print, clock=lambda: 0.0, sleep=sleep)
    line = _Connection(home, "f" * 16)
    for _ in range(9):
        line.send({"said": "games"}, b"")
    assert waited == [4, 4]
    line.close("it ends")
    said = place.said("workers", line.key)
    assert (said["ended"], said["epoch"]) == ("it ends", "f" * 16)


def test_an_incomplete_listing_loses_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, names, key = SharedFolder(tmp_path, make=True), SharedFolder.names, "f" * 16
    lacks = ["00000001", "00000000"]  # the second listing, and the first one

    def some(self: SharedFolder, part: str) -> list[str]:
        missing = lacks.pop() if lacks and part == "to" else "none"
        return [name for name in names(self, part) if not name.endswith(missing)]

    home: Any = SimpleNamespace(files=place, goes_on=lambda: True, say=print, clock=lambda: 0.0, sleep=lambda _: None)
    monkeypatch.setattr(SharedFolder, "names", some)
    monkeypatch.setattr("azpy.fleet.channels.folder_worker.new_name", lambda: key)
    for number in range(3):
        place.put("to", f"{key}-{number:08d}", {"do": "more", "number": number}, b"")
    line = _Connection(home, "f" * 16)
    got = [line.inbox.get(timeout=60)[0]["number"] for _ in range(3)]
    assert got == [0, 1, 2]
    line.close("it ends")


def test_a_stop_file_ends_the_workers(tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    workers = Workers(tmp_path, 1)
    workers.join()
    assert workers.said == [f"{tmp_path}/stop is there"]


@pytest.mark.parametrize("facts", [{"version": "0.0.9"}, {"protocol": 0}])
def test_a_worker_of_another_version_is_refused(facts: dict[str, Any], tmp_path: Path) -> None:
    at = AtFolder(tmp_path)
    assert at.folder._heartbeat is not None
    at.folder._heartbeat._facts |= facts
    workers = Workers(tmp_path, 1)
    workers.join()
    assert "install the same azpy" in workers.said[0]
    at.head.close()


# Processes


@pytest.mark.parametrize("comes", [True, False])
def test_a_worker_waits_for_the_folder(
    comes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, now = tmp_path / "place", [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if comes and now[0] > 5:
            place.mkdir()
            (place / "stop").touch()

    monkeypatch.setattr("azpy.cli.worker.time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    assert az_worker([str(place), "--patience", "10", "--pipelines", "auto"]) == (0 if comes else 2)
    said = capsys.readouterr()
    assert said.out.startswith(f"{place} does not exist yet: waiting for az-train --workers folder:{place}\n")
    assert ("ends: " in said.out) == comes == (now[0] < 6)
    assert ("does not exist after 10 seconds: give the folder that az-train --workers names" in said.err) != comes


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_a_waiting_worker_ends_on_a_signal(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: signal.raise_signal(number))
    monkeypatch.setattr("azpy.cli.worker.time", waiting)
    assert az_worker([str(tmp_path / "place")]) == 128 + number


ON_A_TERMINAL = """
import os, pty, sys

child, terminal = pty.fork()
if child == 0:
    os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), 2)
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[2], sys.argv[3]])
said = b""
while b"a worker waits at" not in said:
    said += os.read(terminal, 1 << 16)
os.close(terminal)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
WORKER = "import sys; from azpy.cli.worker import main; sys.exit(main(sys.argv[1:]))"


def test_a_terminal_that_closes_ends_a_worker(tmp_path: Path) -> None:
    """It could not print its last line, and ended with a traceback and exit code 1."""
    (tmp_path / "place").mkdir()
    done = program(ON_A_TERMINAL, tmp_path / "errors", WORKER, tmp_path / "place")
    assert (done.code, done.errors, (tmp_path / "errors").read_text()) == (129, "", "")
