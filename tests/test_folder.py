"""Workers at a shared folder: the same games and weights as without them, and nothing in the folder is believed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import azpy
from azpy.cli.worker import main as az_worker
from azpy.errors import RunError
from azpy.fleet import folder, guest
from azpy.fleet.fleet import Lineup, PlayingNetwork
from azpy.fleet.folder import FolderFleet, _Worker, digest_of_lineup
from azpy.fleet.guest import Guest
from azpy.fleet.place import MOST_SAID, Place, Pulse, Sign, as_object, seal, unseal
from azpy.fleet.table import ENDLESS, IdTable
from azpy.fleet.wire import pack, unpack
from azpy.games.names import make_position
from azpy.runs import storage
from azpy.runs.folder import RunFolder
from azpy.runs.reader import StoredRun
from azpy.training.events import Event
from azpy.training.trainer import Trainer
from starts import Starts, command
from test_fleet import hashes, middle, settings, train

KEY = "0123456789abcdef"


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((folder, "_WAIT"), (folder, "_LOOK_AT_WORKERS"), (guest, "_LOOK"), (guest, "_WAIT")):
        monkeypatch.setattr(module, name, 0.02)
    monkeypatch.setattr(guest, "_RESULT_SECONDS", 0.0)
    monkeypatch.setattr("azpy.fleet.place.BEAT", 0.05)


class Guests:
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
            self.said.append(Guest(str(place), None, layout, 60.0, lambda _: None, self.end.is_set).run())
        except Exception as error:
            self.said.append(str(error))

    def __enter__(self) -> "Guests":
        return self

    def __exit__(self, *_: object) -> None:
        self.end.set()
        self.join()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[str | None, str | None]:
    return hashes(train(tmp_path_factory.mktemp("straight")))


def with_folder(tmp_path: Path, **changes: Any) -> list[Event]:
    with Trainer(settings(workers=f"folder:{tmp_path / 'place'}", **changes), tmp_path / "run") as trainer:
        return list(trainer.run())


@pytest.mark.parametrize("count", [1, 2])
def test_workers_at_a_folder_give_the_same_games_and_weights(
    count: int, straight: tuple[str, str], tmp_path: Path
) -> None:
    with Guests(tmp_path / "place", count) as guests:
        assert hashes(with_folder(tmp_path)) == straight
        guests.join()
    assert guests.said == ["the run has ended"] * count


def rubbish(path: Path) -> Iterator[tuple[str, Path]]:
    """Things in the place of a file that do harm to a careless reader."""
    (path / "pipe").parent.mkdir(exist_ok=True)
    os.mkfifo(path / "pipe")
    (path / "link").symlink_to("/dev/zero")
    (path / "folder" / "in it").mkdir(parents=True)
    (path / "folder" / "file").touch()
    (path / "empty").touch()
    (path / "text").write_text("no result")
    with (path / "sparse").open("wb") as file:
        file.truncate(10 << 30)
    for entry in path.iterdir():
        yield entry.name, entry


def test_rubbish_in_the_place_of_results_and_signs_does_no_harm(straight: tuple[str, str], tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    Place(place, make=False).close()
    kept = tmp_path / "kept"
    kept.mkdir()
    for number, (_, entry) in enumerate(list(rubbish(kept))):
        entry.rename(place / "results" / f"{KEY}-{number:08d}")
    for number, (_, entry) in enumerate(list(rubbish(kept))):
        entry.rename(place / "workers" / f"{number:016x}")
    with Guests(place, 1):
        assert hashes(with_folder(tmp_path)) == straight
    assert not list((place / "results").glob(f"{KEY}*"))


def test_a_head_that_stops_in_the_middle_is_followed_by_another(straight: tuple[str, str], tmp_path: Path) -> None:
    with Guests(tmp_path / "place", 2) as guests:
        for iteration in (1, 3):
            with Trainer(settings(workers=f"folder:{tmp_path / 'place'}"), tmp_path / "run") as trainer:
                next(event for event in trainer.run() if middle(event, iteration))
        assert hashes(with_folder(tmp_path)) == straight
        guests.join()
    assert guests.said == ["the run has ended"] * 2


class Head:
    """A head with one fleet, whose worker is this test."""

    def __init__(self, path: Path, **changes: Any) -> None:
        chosen = settings(workers=f"folder:{path}", historical_share=0.0, **changes)
        self.table = IdTable(deterministic=chosen.deterministic)
        self.table.ask(range(10))
        self.table.lease("one that died", 10)
        self.table.release("one that died")
        self.fleet = FolderFleet(chosen, make_position("tic_tac_toe"), self.table, str(path), sleep=lambda _: None)
        self.fleet.play(Lineup(PlayingNetwork([azpy.UniformEvaluator()])))
        head = as_object(self.fleet._there.read("", "head", MOST_SAID))
        lineup = digest_of_lineup(self.fleet._desk.message)
        self.facts = {"epoch": head["epoch"], "run": head["run"], "lineup": lineup, "stats": {}, "pipelines": {}}
        self.facts |= {"row_exact": True, "answers": [None]}

    def send(self, number: int, games: list[azpy.GameRecord], key: str = KEY, **facts: Any) -> list[int]:
        """Puts a result into the folder; returns the games that the head accepts."""
        return self.sent(number, seal(pack(self.facts | facts, storage.frame(*games))), key)

    def sent(self, number: int, data: bytes, key: str = KEY) -> list[int]:
        self.fleet._there.write("results", f"{key}-{number:08d}", data)
        return [game.game_id for game in self.fleet.take(100)]


def games_of(**options: Any) -> list[azpy.GameRecord]:
    chosen = {"slots": 2, "simulations": 8, "games": 4, "seed": 0} | options
    with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), **chosen) as play:
        return sorted(play, key=lambda game: game.game_id)


def test_a_result_counts_once_and_stays_until_it_is_written_down(tmp_path: Path) -> None:
    head, games = Head(tmp_path), games_of()
    assert head.send(0, games[:2]) == [0, 1]
    assert (tmp_path / "results" / f"{KEY}-00000000").exists()
    assert head.send(1, games[:2]) == []  # once more
    assert not (tmp_path / "results" / f"{KEY}-00000000").exists()
    assert head.send(2, games[2:3], epoch="f" * 16) == [2]  # of the head before: it is still open
    assert head.send(3, games[3:], epoch="f" * 16, run="other") == []
    assert head.send(4, games[3:], lineup="other") == []
    assert head.fleet.notices == []
    assert head.send(5, games[3:]) == [3]
    head.fleet.close()


def test_a_result_stays_until_the_last_of_its_games_is_written_down(tmp_path: Path) -> None:
    """The caller has written a game down when it asks for the next one: not before."""
    head, games, taken, kept = Head(tmp_path), games_of(), list[int](), list[list[int]]()
    for number, part in enumerate((games[:2], games[2:])):
        data = seal(pack(head.facts, storage.frame(*part)))
        head.fleet._there.write("results", f"{KEY}-{number:08d}", data)
    for _ in range(5):
        taken += [game.game_id for game in head.fleet.take(1)]
        kept.append([int(path.name[-8:]) for path in sorted((tmp_path / "results").iterdir())])
    assert taken == [0, 1, 2, 3]
    assert kept == [[0, 1], [0, 1], [1], [1], []]
    head.fleet.close()


def test_a_head_that_dies_before_it_wrote_games_down_leaves_them_to_the_next_one(tmp_path: Path) -> None:
    first, games = Head(tmp_path), games_of()
    assert first.send(0, games[:2]) == [0, 1]
    first.fleet._sign._ended.set()  # no word more of it
    second = Head(tmp_path)
    assert [game.game_id for game in second.fleet.take(9)] == [0, 1]
    assert [game.game_id for game in second.fleet.rest()] == [0, 1]  # an interrupt came before they were written down
    second.fleet.close()
    assert len(list((tmp_path / "results").iterdir())) == 1
    third = Head(tmp_path)
    assert [game.game_id for game in third.fleet.take(9)] == [0, 1]
    third.fleet.close()  # the run has ended, and has them
    assert not list((tmp_path / "results").iterdir())


def test_what_is_damaged_is_dropped_and_what_is_wrong_ends_its_worker(tmp_path: Path) -> None:
    head, games = Head(tmp_path), games_of()
    whole = seal(pack(head.facts, storage.frame(*games)))
    for number, data in enumerate((whole[:-1], whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])):
        assert head.sent(number, data) == []
        assert "is damaged and was dropped: its seal does not hold" in head.fleet.notices.pop()
    assert head.send(2, games_of(seed=1), key="a" * 16) == []
    assert "is refused: game 0 is of seed 1, expected 0" in head.fleet.notices.pop()
    assert head.send(3, games, key="a" * 16) == []  # nothing more of it counts
    assert head.send(4, games, key="b" * 16, answers=["other"]) == []
    assert "is refused: its network gives other bits" in head.fleet.notices.pop()
    said = as_object((tmp_path / "head").read_bytes())
    assert sorted(said["refused"]) == ["a" * 16, "b" * 16]
    assert head.send(5, games, key="c" * 16) == [0, 1, 2, 3]  # and deaths count from here on
    assert head.send(6, games, key="d" * 16, row_exact=False) == []
    assert "is refused: its network's answer to a position depends on what else is in its batch" in (
        head.fleet.notices.pop()
    )
    head.fleet.close()


def test_a_result_counts_only_if_a_head_gave_the_game_to_a_worker(tmp_path: Path) -> None:
    head, made_up = Head(tmp_path, deterministic=False), games_of(games=2, first_game=ENDLESS - 2)[-1:]
    unasked = games_of(games=2, first_game=15)
    head.table.ask(range(10, 20))
    assert made_up[0].game_id == ENDLESS - 1
    assert head.send(0, made_up, key="a" * 16) == []
    assert f"is refused: game {ENDLESS - 1} was not given to any worker" in head.fleet.notices.pop()
    assert head.send(1, unasked, key="b" * 16) == []
    assert "is refused: game 15 was not given to any worker" in head.fleet.notices.pop()
    assert head.send(2, made_up, key="c" * 16, epoch="f" * 16) == []
    assert head.send(3, unasked, key="c" * 16, epoch="f" * 16) == [15, 16]  # a head before may have
    assert head.fleet.notices == []
    head.fleet.close()


def test_the_ids_of_a_silent_worker_are_open_again(tmp_path: Path) -> None:
    now = [0.0]
    head = Head(tmp_path)
    head.fleet._clock = lambda: now[0]
    head.fleet._workers[KEY] = worker = _Worker(KEY, "worker 1", Pulse(lambda: now[0]), is_here=True, slots=8)
    head.fleet.take(1)
    for name in head.fleet._there.names("open"):
        assert head.fleet._there.claim(name, KEY)
    head.fleet.take(1)
    assert head.table.held(worker.name) > 0
    assert head.fleet._there.names("taken") == []  # or the folder would fill up
    now[0] = 1000.0
    head.fleet.take(1)
    assert head.table.held(worker.name) == 0
    assert "gave no sign of life for 120 seconds" in head.fleet.notices[0]
    head.fleet.close()


def test_a_task_that_is_offered_to_a_worker_that_ends_is_free_for_others(tmp_path: Path) -> None:
    head = Head(tmp_path)
    fleet, keys = head.fleet, [letter * 16 for letter in "abc"]
    busy, idle, late = (
        _Worker(key, f"worker {key}", Pulse(), is_here=True, slots=8, idle=key != keys[0]) for key in keys
    )
    fleet._workers = {keys[0]: busy}
    fleet.take(1)
    while names := fleet._there.names("open"):
        for name in names:
            assert fleet._there.claim(name, keys[0])
        fleet.take(1)
    assert head.table.held(busy.name) == 10
    head.table._seconds.append(0.0)  # a game takes no time
    for worker, end in ((idle, fleet._forget), (late, fleet._refuse)):
        fleet._workers[worker.key] = worker
        fleet.take(1)
        (name,) = fleet._there.names("open")
        assert name.endswith(worker.key)
        assert head.table.held(worker.name) > 0
        end(worker, "it is bad")
        assert fleet._there.names("open") == []
        assert fleet._tasks == {}
        assert head.table.held(worker.name) == 0
    fleet.close()


def test_a_result_is_no_longer_than_the_head_takes(
    straight: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azpy.fleet.player.MOST_OF_A_PART", 1)  # one game in each result
    write, sizes = Place.write, list[int]()

    def noted(place: Place, part: str, name: str, data: bytes, **options: Any) -> None:
        if part == "results":
            _, frame = unpack(unseal(data), 1 << 20)
            sizes.append(len(storage.unframe(frame)))
        write(place, part, name, data, **options)

    monkeypatch.setattr(Place, "write", noted)
    with Guests(tmp_path / "place", 1):
        assert hashes(with_folder(tmp_path)) == straight
    assert set(sizes) == {1}


def test_a_worker_that_cannot_write_waits_and_goes_on(
    straight: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, claim, full = Place.write, Guest._claim, ["results", "workers", "results"]

    def filled(place: Place, part: str, name: str, data: bytes, **options: Any) -> None:
        if full and part == full[-1]:
            full.pop()
            raise OSError(28, "No space left on device")
        write(place, part, name, data, **options)

    def claimed(self: Guest, player: Any) -> None:
        assert not self._stuck  # it takes no more games while it holds some that it cannot send
        claim(self, player)

    monkeypatch.setattr(Place, "write", filled)
    monkeypatch.setattr(Guest, "_claim", claimed)
    with Guests(tmp_path / "place", 1) as guests:
        assert hashes(with_folder(tmp_path)) == straight
        guests.join()
    assert guests.said == ["the run has ended"]
    assert not full


@pytest.mark.parametrize("deterministic", [True, False])
def test_what_could_not_be_sent_before_the_network_changed_is_kept_where_it_may_count(
    deterministic: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, games = Guest(str(tmp_path), say=lambda _: None, sleep=lambda _: None), games_of()
    worker._head, worker._finished = {"settings": {"deterministic": deterministic}}, list(games)
    monkeypatch.setattr(worker, "_try_to_send", lambda: None)  # the disk is full
    player: Any = SimpleNamespace(play=lambda _: {}, in_hand=0)
    worker._play(player, {"number": 2, "network": {"sha256": None}, "opponents": []})
    assert worker._finished == ([] if deterministic else games)
    worker._sign.close()
    worker._place.close()


def test_a_head_whose_folder_another_one_took_ends(tmp_path: Path) -> None:
    first = Head(tmp_path)
    second = Head(tmp_path)
    first.fleet.pause()
    first.fleet._sign._write()
    with pytest.raises(RunError, match="another az-train has taken over"):
        first.fleet.take(1)
    second.fleet.take(1)
    first.fleet.close()
    second.fleet.close()


def test_a_folder_that_cannot_be_listed_is_one_error_and_the_next_start_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error was lost in an AttributeError of `close`."""
    names = Place.names

    def failing(place: Place, part: str) -> list[str]:
        if part == "taken":
            raise OSError(5, "Input/output error")
        return names(place, part)

    with monkeypatch.context() as patch:
        patch.setattr(Place, "names", failing)
        with (
            pytest.raises(RunError, match=f"{tmp_path / 'place'} cannot be used: Input/output error"),
            Trainer(settings(workers=f"folder:{tmp_path / 'place'}", iterations=1), tmp_path / "run") as trainer,
        ):
            list(trainer.run())
    with Guests(tmp_path / "place", 1):
        with_folder(tmp_path, iterations=1)


def test_one_of_two_workers_gets_a_task(tmp_path: Path) -> None:
    place = Place(tmp_path, make=True)
    for number in range(50):
        name, won = f"{KEY}-{number:08d}", list[str]()
        place.write("open", name, b"{}")
        ready = threading.Barrier(2)

        def claim(key: str, name: str = name, won: list[str] = won, ready: threading.Barrier = ready) -> None:
            ready.wait()
            if place.claim(name, key):
                won.append(key)

        threads = [threading.Thread(target=claim, args=(letter * 16,)) for letter in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert place.names("taken")[number] == f"{name}-{won[0]}"
    place.close()


def test_a_stop_file_ends_the_workers(tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    guests = Guests(tmp_path, 1)
    guests.join()
    assert guests.said == [f"{tmp_path}/stop is there"]


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
    assert az_worker([str(place), "--patience", "10"]) == (0 if comes else 2)
    said = capsys.readouterr()
    assert said.out.startswith(f"{place} is not there yet; az-train --workers folder:{place} makes it\n")
    assert ("ends: " in said.out) == comes == (now[0] < 6)
    assert ("is not there after 10 seconds: give the folder of az-train's --workers" in said.err) != comes


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_that_waits_for_its_folder_ends_when_it_is_told(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: signal.raise_signal(number))
    monkeypatch.setattr("azpy.cli.worker.time", waiting)
    assert az_worker([str(tmp_path / "place")]) == 128 + number


@contextlib.contextmanager
def az_workers(place: Path, count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many az-worker, each a process that plays few games at once."""
    layout = ["--slots", "4", "--pipelines", "1", "--threads", "1"]
    begin = [sys.executable, "-m", "azpy.cli.worker", str(place), *layout]
    found = [subprocess.Popen(begin, stdout=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield found
    finally:
        for process in found:
            process.kill()
            process.wait()


def kill_one_that_plays(fleet: FolderFleet, place: Path, processes: list[subprocess.Popen[bytes]]) -> str:
    """Kills a worker that has games in play; returns its name, or an empty text if there is none just now."""
    for worker in fleet._workers.values():
        if fleet._table.held(worker.name):
            pid = json.loads((place / "workers" / worker.key).read_bytes())["pid"]
            next(process for process in processes if process.pid == pid).kill()
            return worker.name
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_worker_that_is_killed_in_the_middle_of_a_task(
    deterministic: bool, straight: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A free run has each game once; a deterministic run has the same games and weights."""
    see_claims, place, killed = FolderFleet._see_claims, tmp_path / "place", ""

    def seen(fleet: FolderFleet) -> None:
        """Kills a worker when the head sees its claim: where workers are faster than the head, it rarely has games."""
        nonlocal killed
        see_claims(fleet)
        if not killed and fleet._desk.number >= 2:
            killed = kill_one_that_plays(fleet, place, processes)

    monkeypatch.setattr(FolderFleet, "_see_claims", seen)
    monkeypatch.setattr(folder, "_SILENT_SECONDS", 5.0)
    chosen = settings(workers=f"folder:{place}", deterministic=deterministic, historical_share=0.3 * deterministic)
    with az_workers(place, 2) as processes:
        with Trainer(chosen, tmp_path / "run") as trainer:
            events = list(trainer.run())
        assert killed, "no worker had a game in play"
        assert sorted(process.wait(60) for process in processes) == [-9, 0]  # the other one sees the run's end
    if deterministic:
        assert hashes(events) == straight
    run = StoredRun(tmp_path / "run")
    games = [game.game_id for _, game in run.games(run.sealed_iterations())]
    assert len(set(games)) == len(games) == 4 * 30


@pytest.mark.slow
def test_a_head_that_is_killed_is_followed_by_another(starts: Starts, tmp_path: Path) -> None:
    arguments = [*command("tic_tac_toe", tmp_path / "run", 3), "--games-per-iteration", "60"]
    with az_workers(tmp_path / "place", 2) as processes:
        arguments += ["--workers", f"folder:{tmp_path / 'place'}"]
        assert starts.run(*arguments, kill_when="iteration 1").code == -9
        assert "going on after iteration " in starts.finish(*arguments).output
        assert [process.wait(60) for process in processes] == [0, 0]
    starts.finish(*command("tic_tac_toe", tmp_path / "alone", 3), "--games-per-iteration", "60")
    found = []
    for name in ("run", "alone"):
        with RunFolder(tmp_path / name, {}) as run:
            found.append((run.games_hash(), run.weights_hash(3)))
    assert found[0] == found[1]


def test_the_first_write_of_a_sign_comes_before_its_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count that came first saw the sign of the head before, and ended the new one."""

    class AtOnce(threading.Thread):
        def start(self) -> None:
            super().start()
            super().join()

    monkeypatch.setattr("azpy.fleet.place.threading.Thread", AtOnce)
    monkeypatch.setattr("azpy.fleet.place.BEAT", 0.0)
    place = Place(tmp_path, make=True)
    sign = Sign(place, "", "head", lambda: False)
    sign.say(epoch="new")
    assert as_object(place.read("", "head", MOST_SAID))["epoch"] == "new"
    place.close()


def test_a_head_begins_with_tasks_of_its_own(tmp_path: Path) -> None:
    place, old = Place(tmp_path, make=True), "f" * 16
    place.write("open", f"{old}-00000001", b"{}")
    place.write("open", f"{old}-00000002-{KEY}", b"{}")
    place.write("taken", f"{old}-00000003-{KEY}", b"{}")
    place.write("networks", "0" * 64, b"half of one")
    head = Head(tmp_path)
    assert [place.names(part) for part in ("open", "taken", "networks")] == [[], [], []]
    head.fleet.close()
    place.close()
