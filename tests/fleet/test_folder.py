"""Workers at a shared folder: the same games and weights as without them, and nothing in the folder is believed."""

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_fleet import hashes, middle, settings, straight, train
from test_head import AtHead, games_of

import azpy
from azpy.errors import RunError
from azpy.fleet.channels import files, folder, folder_worker
from azpy.fleet.channels.files import (
    MOST_SAID,
    Heartbeat,
    HeartbeatWatch,
    SharedFolder,
    new_name,
    with_checksum,
    without_checksum,
)
from azpy.fleet.channels.folder import Folder
from azpy.fleet.channels.folder_worker import FolderWorker
from azpy.fleet.fleet import Lineup
from azpy.fleet.wire import as_object, pack, unpack
from azpy.runs.games import frame
from azpy.runs.reader import StoredRun
from azpy.training.events import Event
from azpy.training.trainer import Trainer

__all__ = ["straight"]  # a fixture of here too
KEY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((folder, "_WAIT"), (folder, "_LOOK_AT_WORKERS"), (folder_worker, "_LOOK")):
        monkeypatch.setattr(module, name, 0.02)
    monkeypatch.setattr(files, "BEAT", 0.05)


class Workers:
    """Workers in threads of this process."""

    def __init__(self, place: Path, count: int) -> None:
        self.said, self.end = list[str](), threading.Event()
        place.mkdir(exist_ok=True)
        self._threads = [threading.Thread(target=self._work, args=(place,)) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _work(self, place: Path) -> None:
        layout = {"slots": 4, "pipelines": 1, "threads": 1}
        try:
            self.said.append(FolderWorker(str(place), None, layout, 60.0, lambda _: None, self.end.is_set).run())
        except Exception as error:
            self.said.append(str(error))

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.end.set()
        self.join()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()


def with_folder(tmp_path: Path, **changes: Any) -> list[Event]:
    with Trainer(settings(workers=f"folder:{tmp_path / 'place'}", **changes), tmp_path / "run") as trainer:
        return list(trainer.run())


def test_workers_end_with_a_run_that_the_clock_cuts_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They waited ten minutes for the next az-train."""
    monkeypatch.setattr("azpy.training.budget.Budget.may_play", lambda _, positions: positions == 0)
    monkeypatch.setattr("azpy.training.budget.Budget.is_over", lambda _, iteration: iteration > 0)
    with Workers(tmp_path / "place", 1) as workers:
        with_folder(tmp_path, iterations=None, minutes=1, deterministic=False)
        workers.join()
    assert workers.said == ["the run has ended"]
    assert StoredRun(tmp_path / "run").checkpoints()


def rubbish(path: Path) -> Iterator[Path]:
    """Things in the place of a file that do harm to a careless reader."""
    path.mkdir()
    os.mkfifo(path / "pipe")
    (path / "link").symlink_to("/dev/zero")
    (path / "folder" / "in it").mkdir(parents=True)
    (path / "folder" / "file").touch()
    (path / "empty").touch()
    (path / "text").write_text("no result")
    with (path / "sparse").open("wb") as file:
        file.truncate(10 << 30)
    yield from list(path.iterdir())


def test_junk_files_do_no_harm(straight: tuple[str, str], tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    SharedFolder(place, make=False)
    for number, entry in enumerate(rubbish(tmp_path / "first")):
        entry.rename(place / "from" / f"{KEY}-{number:08d}")
    for number, entry in enumerate(rubbish(tmp_path / "second")):
        entry.rename(place / "workers" / f"{number:016x}")
    with Workers(place, 1):
        assert hashes(with_folder(tmp_path)) == straight


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_head_stopped_twice_finishes_the_same_run(
    deterministic: bool, straight: tuple[str, str], tmp_path: Path
) -> None:
    chosen: dict[str, Any] = {"deterministic": deterministic}
    with Workers(tmp_path / "place", 2) as workers:
        for iteration in (1, 3):
            with Trainer(settings(workers=f"folder:{tmp_path / 'place'}", **chosen), tmp_path / "run") as trainer:
                next(event for event in trainer.run() if middle(event, iteration))
        events = with_folder(tmp_path, **chosen)
        workers.join()
    assert workers.said == ["the run has ended"] * 2
    if deterministic:
        assert hashes(events) == straight
    run = StoredRun(tmp_path / "run")
    games = [game.game_id for _, game in run.games(run.sealed_iterations())]
    assert len(set(games)) == len(games) == 4 * 30


def test_a_free_run_takes_games_that_a_dead_head_left_unread(tmp_path: Path) -> None:
    """Ids below the highest known one were never asked for again, and their games were deleted."""
    chosen: dict[str, Any] = {"deterministic": False, "games_per_iteration": 4}
    train(tmp_path / "run", **chosen, iterations=1)
    run = StoredRun(tmp_path / "run")
    known = {game.game_id for _, game in run.games(run.sealed_iterations())}
    missing = min(set(range(40)) - known)
    (left,) = games_of(games=1, first_game=missing)
    head = AtFolder(tmp_path / "other", deterministic=False, games_per_iteration=4)
    place = SharedFolder(tmp_path / "place", make=True)
    place.write("from", f"{KEY}-00000000", with_checksum(pack(head.facts, frame(left))))
    with Workers(tmp_path / "place", 1):
        with_folder(tmp_path, **chosen, iterations=3)
    found = {game.game_id: game.to_bytes() for _, game in run.games([2, 3])}
    assert found[missing] == left.to_bytes()
    head.head.close()


class AtFolder(AtHead):
    """A head at a folder, whose workers are this test, on a clock that moves while the head waits; or on a real one."""

    def __init__(self, path: Path, *, real: bool = False, **changes: Any) -> None:
        run, self.now = settings(workers=f"folder:{path}", **changes), 1000.0
        clock = time.monotonic if real else lambda: self.now
        self.folder = Folder(run, str(path), clock, time.sleep if real else self._sleep)
        super().__init__(run, self.folder, clock)
        self._sent = dict[str, int]()

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def comes(self, key: str = KEY, beat: int = 0, **facts: Any) -> list[int]:
        """A worker gives a heartbeat."""
        said = {"epoch": self.folder._epoch, "beat": beat, "host": "h"}
        self.folder.files.write("workers", key, json.dumps(said | facts).encode())
        self.now += 1.0
        return self.take()

    def send(self, games: list[azpy.GameRecord], key: str = KEY, **facts: Any) -> list[int]:
        """A worker sends a message; returns the games that the head gives to its caller."""
        return self.sent(with_checksum(pack(self.facts | facts, frame(*games) if games else b"")), key)

    def sent(self, data: bytes, key: str = KEY) -> list[int]:
        number = self._sent[key] = self._sent.get(key, -1) + 1
        self.folder.files.write("from", f"{key}-{number:08d}", data)
        return self.take()

    def take(self, most: int = 100) -> list[int]:
        self.now += 0.1
        return super().take(most)

    def passes(self, seconds: float) -> None:
        """So much time, in which the head looks."""
        for _ in range(int(seconds / 4)):
            self.now += 3.9
            self.take()

    def told(self, key: str = KEY) -> list[dict[str, Any]]:
        """What the head has said to a worker."""
        names = [name for name in self.folder.files.names("to") if name.startswith(key)]
        return [unpack(without_checksum(self.folder.files.read("to", name, MOST_SAID)), MOST_SAID)[0] for name in names]


@pytest.fixture
def at(tmp_path: Path) -> Iterator[AtFolder]:
    """A head with a worker that has games to play."""
    found = AtFolder(tmp_path)
    found.comes()
    found.send([])
    yield found
    found.head.close()


def test_a_message_counts_once_and_stays_until_written_down(at: AtFolder, tmp_path: Path) -> None:
    games = games_of()
    assert [message["do"] for message in at.told()] == ["begin", "play", "games"]
    assert at.send(games[:2]) == [0, 1]
    assert (tmp_path / "from" / f"{KEY}-00000001").exists()
    assert at.send(games[:2]) == []  # once more
    assert not (tmp_path / "from" / f"{KEY}-00000001").exists()
    assert at.send(games[2:], key="f" * 16) == [2, 3]  # of a worker that this head does not know
    assert at.head.notices == []


def test_a_head_that_dies_leaves_unwritten_games_to_the_next(tmp_path: Path) -> None:
    first, games = AtFolder(tmp_path), games_of()
    first.comes()
    first.send([])
    assert first.send(games[:2]) == [0, 1]
    assert first.folder._heartbeat is not None
    first.folder._heartbeat._ended.set()  # no word more of it
    second = AtFolder(tmp_path)
    assert second.take() == [0, 1]
    assert [game.game_id for game in second.head.finish()] == [0, 1]  # an interrupt came before they were written down
    second.head.close()
    assert len(list((tmp_path / "from").iterdir())) == 1
    third = AtFolder(tmp_path)
    assert third.take() == [0, 1]
    third.head.close()  # the run has ended, and has them
    assert not list((tmp_path / "from").iterdir())


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:]])
def test_a_damaged_message_ends_the_line_to_its_worker(damage: Any, at: AtFolder) -> None:
    games = games_of()
    assert at.head.table.num_open == 0
    assert at.sent(damage(with_checksum(pack(at.facts, frame(*games))))) == []
    assert "one of its messages is damaged: it has a wrong checksum" in at.head.notices[0]
    assert at.head.table.num_open == 10
    assert "is damaged" in at.told()[-1]["error"]
    assert at.sent(with_checksum(pack(at.facts, frame(*games)))) == []  # nothing more of it counts


def test_workers_of_a_free_run_hold_one_iteration_together(tmp_path: Path) -> None:
    """Two workers were leased ten iterations of 60 games, all searched by one network."""
    at = AtFolder(tmp_path, deterministic=False, games_per_iteration=60)
    at.head.ask([range(10, 10**6)], [])
    for number in range(2):
        at.comes(f"{number:016x}")
        at.send([], f"{number:016x}", slots=128)
    for _ in range(5):
        at.head._give_out()
    first, second = (at.head.table.held(f"worker {number}") for number in (1, 2))
    assert (first, second) == (60, 30)  # the first one was alone
    at.send(games_of(), "0" * 16, slots=128)
    for _ in range(5):
        at.take()
    assert (at.head.table.held("worker 1"), at.head.table.held("worker 2")) == (56, 30)  # until it has its part
    at.head.close()


def test_games_that_have_arrived_count_towards_the_iteration(tmp_path: Path) -> None:
    at = AtFolder(tmp_path, deterministic=False, games_per_iteration=6, slots=64)
    at.head.ask([range(10, 10**6)], [])
    at.comes()
    at.send([])
    assert at.head.table.held("worker 1") == 6
    at.folder.files.put("from", f"{KEY}-00000001", at.facts, frame(*games_of()))
    at.now += 1.0
    at.head._exchange(0.0)
    at.head._give_out()
    assert at.head.table.held("worker 1") == 2
    at.head.close()


def test_games_of_a_worker_that_is_refused_do_not_count_later(tmp_path: Path) -> None:
    at = AtFolder(tmp_path, deterministic=False)
    at.head.ask([range(10, 10**6)], [])
    at.comes()
    at.send([])
    assert at.send(games_of(games=1, first_game=5000)) == []
    assert "game 5000 was not given to any worker" in at.head.notices[0]
    assert at.send(games_of()) == []
    assert at.take() == []
    assert not list((tmp_path / "from").iterdir())
    at.head.close()


def test_one_disk_error_does_not_count_as_damage(at: AtFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, errors = SharedFolder.read, [OSError(116, "Stale file handle")] * 3

    def stale(self: SharedFolder, part: str, name: str, most: int) -> bytes:
        if part == "from" and errors:
            raise errors.pop()
        return read(self, part, name, most)

    monkeypatch.setattr(SharedFolder, "read", stale)
    assert at.send(games_of()) == []
    assert [at.take() for _ in range(3)] == [[], [], [0, 1, 2, 3]]
    assert at.head.notices == [f"{tmp_path} cannot be used, trying again: Stale file handle"]


def test_a_message_that_cannot_be_deleted_now_is_deleted_later(
    at: AtFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert at.send(games_of()) == [0, 1, 2, 3]
    with monkeypatch.context() as patch:
        patch.setattr(SharedFolder, "delete", lambda *_: None)
        assert at.take() == []
    assert list((tmp_path / "from").iterdir())
    assert at.take() == at.take() == []
    assert not list((tmp_path / "from").iterdir())


def test_a_message_that_contradicts_a_game_ends_one_start_alone(tmp_path: Path) -> None:
    (game,) = games_of(games=1)
    for number in range(2):
        at = AtFolder(tmp_path)
        at.head.ask([range(20, 30)], games_of(games=1, simulations=2))
        if number == 0:
            with pytest.raises(RunError, match="game 0 came twice with different bytes"):
                at.send([game], key="f" * 16)
        else:
            assert at.take() == []
        at.head.close()


def test_unreadable_files_count_as_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at, read = AtFolder(tmp_path), SharedFolder.read

    def refused(self: SharedFolder, part: str, name: str, most: int) -> bytes:
        if part == "from" and name.startswith(KEY):
            raise PermissionError(13, "Permission denied")
        return read(self, part, name, most)

    monkeypatch.setattr(SharedFolder, "read", refused)
    assert at.sent(b"x") == []
    assert at.send(games_of(), key="f" * 16) == [0, 1, 2, 3]
    at.head.close()


def test_the_ids_of_a_silent_worker_are_open_again(at: AtFolder) -> None:
    assert at.head.table.held("worker 1") == 10
    at.passes(116.0)
    at.comes(beat=1)
    at.passes(116.0)
    at.now += 1000.0  # nobody looks
    assert at.head.table.held("worker 1") == 10
    at.passes(16.0)
    assert at.head.table.held("worker 1") == 0
    assert at.head.notices == [
        "worker 1 on h ended: it gave no sign of life for 120 seconds; its games go to other workers"
    ]
    assert at.told()[-1] == {"do": "stop"}
    assert at.comes(beat=2) == []  # it wakes up, and is gone
    assert [worker.name for worker in at.head.members] == []
    assert at.send(games_of()) == [0, 1, 2, 3]  # what it has counts still


def test_workers_are_kept_while_the_folder_is_unreachable(tmp_path: Path) -> None:
    at = AtFolder(tmp_path / "place")
    at.comes()
    at.send([])
    at.send(games_of())
    assert at.head.table.lease_seconds() < 500
    (tmp_path / "place").rename(tmp_path / "away")
    at.passes(500.0)
    (tmp_path / "away").rename(tmp_path / "place")
    at.passes(4.0)  # the head may look before the worker gives a heartbeat
    at.now += 500.0  # it waits for a folder that hangs
    at.passes(4.0)
    at.comes(beat=1)
    assert at.head.table.held("worker 1") == 6
    (tmp_path / "place").rename(tmp_path / "away")
    with pytest.raises(RunError, match="cannot be used: No such file or directory"):
        at.passes(620.0)
    at.head.close()


@pytest.mark.parametrize(
    ("own", "how"), [(True, "failed"), (True, "damaged"), (False, "failed"), (False, "damaged"), (True, "told")]
)
def test_only_workers_with_counted_games_can_end_a_run(own: bool, how: str, tmp_path: Path) -> None:
    """Else anybody who can write in the folder could. Workers that are told to end do not count."""
    at, games, keys = AtFolder(tmp_path), games_of(), [f"{number:016x}" for number in range(4)]
    for number, key in enumerate(keys):
        at.comes(key)
        at.send([], key)
        at.send([games[number if own else 0]], key)
    ends = how != "told" and own
    with pytest.raises(RunError, match="3 workers ended") if ends else contextlib.nullcontext():
        for key in keys:
            if how == "damaged":
                at.sent(b"damage", key)
            else:
                at.comes(key, ended="ZeroDivisionError: it broke", failed=how == "failed")
    if how == "failed":
        assert "worker 1 on h ended: ZeroDivisionError: it broke; its games go to other workers" in at.head.notices
    at.head.close()


def test_a_missing_or_damaged_network_is_written_again(tmp_path: Path) -> None:
    at, model = AtFolder(tmp_path / "place"), b"network"
    network = tmp_path / "place" / "networks" / hashlib.sha256(model).hexdigest()
    at.head.play(Lineup([azpy.UniformEvaluator()], model))
    at.comes()
    spoilt: tuple[Callable[[Path], object], ...] = (
        lambda path: None,
        lambda path: path.symlink_to(tmp_path / "place" / "head"),
        lambda path: path.write_bytes(b"networ"),
        lambda path: path.write_bytes(b"networks"),
    )
    for number, make in enumerate(spoilt):
        network.unlink()
        make(network)
        at.comes(f"{number:016x}")
        assert not network.is_symlink()
        assert network.read_bytes() == model
    before = network.stat().st_ino
    at.comes("f" * 16)
    assert network.stat().st_ino == before  # it is written once for many workers
    at.head.close()


def test_a_head_ends_when_another_takes_its_folder(tmp_path: Path) -> None:
    first, second = AtFolder(tmp_path), AtFolder(tmp_path)
    assert not first.folder._is_mine()  # the thread of its heartbeat asks
    with pytest.raises(RunError, match=r"another az-train uses .* now: give"):
        first.take()
    second.take()
    first.head.close()
    second.head.close()


def test_folder_errors_are_retried(at: AtFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = SharedFolder.write
    monkeypatch.setattr(folder, "_SILENT_SECONDS", 1e9)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(SharedFolder, "write", full)
        at.head.pause()
        for _ in range(5):
            at.take()
        assert at.head.notices == [f"{tmp_path} cannot be used, trying again: No space left on device"]
        at.now += 700.0
        with pytest.raises(RunError, match="cannot be used: No space left"):
            at.take()
    assert SharedFolder.write is write
    at.take()
    assert at.told()[-1] == {"do": "pause"}  # it was kept


def test_a_folder_that_cannot_be_listed_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error was lost in an AttributeError of `close`."""
    names = SharedFolder.names

    def failing(self: SharedFolder, part: str) -> list[str]:
        if part == "networks":
            raise OSError(5, "Input/output error")
        return names(self, part)

    with monkeypatch.context() as patch:
        patch.setattr(SharedFolder, "names", failing)
        with pytest.raises(RunError, match=f"{tmp_path / 'place'} cannot be used: Input/output error"):
            with_folder(tmp_path, iterations=1)
    with Workers(tmp_path / "place", 1):
        with_folder(tmp_path, iterations=1)


def test_a_head_begins_with_messages_of_its_own(tmp_path: Path) -> None:
    place = SharedFolder(tmp_path, make=True)
    place.write("to", f"{KEY}-00000001", b"{}")
    place.write("workers", KEY, b"{}")
    place.write("networks", "0" * 64, b"half of one")
    at = AtFolder(tmp_path)
    assert [place.names(part) for part in ("to", "workers", "networks")] == [[], [], []]
    at.head.close()


def test_networks_that_no_worker_needs_are_deleted(tmp_path: Path) -> None:
    at = AtFolder(tmp_path)
    at.comes()
    for number in range(4):
        model = bytes([number])
        at.head.play(Lineup([azpy.UniformEvaluator()], model))
        at.take()
        assert hashlib.sha256(model).hexdigest() in at.folder.files.names("networks")
    assert len(at.folder.files.names("networks")) == 2  # some workers may still open the one before
    at.head.close()


# Files


def test_entries_that_are_not_files_are_not_left_open(tmp_path: Path) -> None:
    """A folder in the place of a heartbeat stayed open at each look, until no file could be opened."""
    place = SharedFolder(tmp_path / "place", make=True)
    entries = [*rubbish(tmp_path / "rubbish")]
    spare = os.dup(0)
    os.close(spare)
    for entry in entries:
        entry.rename(tmp_path / "place" / entry.name)
        assert place.said("", entry.name) == {}
        with pytest.raises(ValueError, match=r"not a regular file|has more than|Expecting"):
            as_object(place.read("", entry.name, MOST_SAID))
    assert os.dup(0) == spare
    os.close(spare)


def test_a_checksum_shows_damage_and_a_pulse_life() -> None:
    whole = with_checksum(b"data")
    assert without_checksum(whole) == b"data"
    for data in (whole[:-1], b"", whole[:20] + b"x" + whole[21:]):
        with pytest.raises(ValueError, match="it has a wrong checksum"):
            without_checksum(data)
    now = [0.0]
    pulse = HeartbeatWatch(lambda: now[0])
    for count, when, silent in ((1, 5.0, 0.0), (1, 7.0, 2.0), (2, 8.0, 0.0)):
        now[0] = when
        pulse.note(count)
        assert pulse.silent == silent
    assert new_name() != new_name()
    for text in (b"[]", b"{", b"[" * 10**5):
        with pytest.raises(ValueError, match=r"it is |Expecting"):
            as_object(text)


def test_the_first_heartbeat_comes_before_its_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count that came first saw the sign of the head before, and ended the new one."""

    class AtOnce(threading.Thread):
        def start(self) -> None:
            super().start()
            super().join()

    monkeypatch.setattr("azpy.fleet.channels.files.threading.Thread", AtOnce)
    monkeypatch.setattr(files, "BEAT", 0.0)
    place = SharedFolder(tmp_path, make=True)
    Heartbeat(place, "", "head", {"epoch": "new"}, lambda: False).begin()
    assert place.said("", "head")["epoch"] == "new"
