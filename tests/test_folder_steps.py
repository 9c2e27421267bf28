"""A head and one worker of a shared folder, each alone, step by step: leases, claims, refusals, damaged networks."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import azpy
from azpy.fleet.fleet import Lineup, PlayingNetwork
from azpy.fleet.folder import FolderFleet
from azpy.fleet.guest import Guest
from azpy.fleet.place import Place, as_object
from azpy.fleet.table import IdTable
from azpy.games.names import make_position
from test_fleet import settings
from test_folder import KEY, Head, quickly  # noqa: F401  a fixture


class Alone:
    """A head with one worker that claimed a task, on a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.now, self._beat = 0.0, 0
        chosen = settings(workers=f"folder:{path}", deterministic=False, historical_share=0.0)
        self.table = IdTable(deterministic=False, clock=lambda: self.now)
        self.table.ask(range(1000))
        start = make_position("tic_tac_toe")
        self.fleet = FolderFleet(chosen, start, self.table, str(path), lambda: self.now, lambda _: None)
        self.play()
        self.say()
        self.take(2.0)
        self.fleet._there.claim(self.fleet._there.names("open")[0], KEY)
        self.take(0.0)
        self.worker = self.fleet._workers[KEY]
        assert self.table.held(self.worker.name)

    def play(self) -> None:
        self.fleet.play(Lineup(PlayingNetwork([azpy.UniformEvaluator()])))

    def say(self, **facts: Any) -> None:
        self._beat += 1
        said = {"beat": self._beat, "epoch": self.fleet._epoch, "slots": 8, "lineup": 1, "in_hand": 3, "host": "h"}
        text = json.dumps(said | {"stats": {}, "pipelines": {}} | facts)
        self.fleet._there.write("workers", KEY, text.encode())

    def take(self, seconds: float) -> None:
        self.now += seconds
        self.fleet.take(9)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    head = Alone(tmp_path)
    yield head
    head.fleet.close()


def test_workers_keep_their_games_over_a_fit_that_is_longer_than_a_lease(alone: Alone) -> None:
    held = alone.table.held(alone.worker.name)
    alone.table._seconds.append(1.0)  # before a first game a lease is endless
    alone.fleet.pause()
    alone.now += alone.table.lease_seconds() + 1.0
    alone.play()
    alone.say()
    alone.take(1.0)
    assert alone.table.held(alone.worker.name) == held
    assert not alone.fleet.notices


def test_what_a_worker_claimed_before_it_ended_is_free_at_once(alone: Alone) -> None:
    there = alone.fleet._there
    for name in there.names("open"):
        assert there.claim(name, KEY)
    alone.say(ended="it was told to end")
    alone.take(2.0)
    assert alone.fleet._workers == {}
    assert alone.table.num_open == 1000
    assert alone.fleet.notices == ["worker 1 on h ended: it was told to end; its games are open again"]


def test_games_that_are_done_before_the_head_sees_the_claim_hold_up_nothing(alone: Alone) -> None:
    """Their ids counted as held for ever; so many of them, and the head gave out no task any more."""
    done = 0
    for _ in range(80):
        alone.say()
        alone.take(2.0)
        for name in alone.fleet._there.names("open"):
            ids = [game for part in alone.fleet._tasks[int(name.split("-")[1])].ids for game in part]
            done += sum(alone.table.accept(alone.worker.name, game, b"") for game in ids)
            assert alone.fleet._there.claim(name, KEY)
        alone.take(0.0)
    assert done > 200
    assert len(alone.fleet._desk._first) < 50  # nothing is kept for them either


@pytest.mark.parametrize("stats", [{"rows": 10**400}, {"rows": 1e308}, {str(number): 1 for number in range(65)}])
def test_totals_that_no_worker_can_have_are_not_believed(stats: dict[str, float], alone: Alone) -> None:
    alone.say(stats=stats)
    alone.take(2.0)
    assert alone.fleet.stats == {}


def test_names_of_totals_do_not_add_up(alone: Alone) -> None:
    for first in range(0, 640, 64):
        alone.say(stats={str(first + number): 1 for number in range(64)})
        alone.take(2.0)
    assert len(alone.fleet.stats) == 64


def test_a_result_that_may_not_be_read_is_dropped_and_the_others_are_read(
    alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Place.read

    def refused(place: Place, part: str, name: str, most: int) -> bytes:
        if part == "results":
            raise PermissionError(13, "Permission denied")
        return read(place, part, name, most)

    alone.fleet._there.write("results", f"{KEY}-00000000", b"x")
    monkeypatch.setattr(Place, "read", refused)
    alone.take(2.0)
    assert len(alone.fleet.notices) == 1
    assert "is damaged and was dropped: [Errno 13] Permission denied" in alone.fleet.notices[0]
    alone.take(0.0)
    assert len(alone.fleet.notices) == 1


def test_a_head_gives_nothing_to_a_worker_that_it_refused(alone: Alone) -> None:
    alone.fleet._refuse(alone.worker, "it is bad")
    there = alone.fleet._there
    for name in there.names("open"):
        assert there.claim(name, KEY)
    for _ in range(3):
        alone.say(in_hand=0)
        alone.take(2.0)
        assert there.names("open") == []
    assert not alone.worker.is_here
    assert alone.table.held(alone.worker.name) == 0
    assert alone.table.num_open == 1000


def test_a_network_that_is_not_what_its_name_says_is_not_played(tmp_path: Path) -> None:
    worker, model, played = Guest(str(tmp_path), say=lambda _: None), b"the file of a network", list[bytes]()
    worker._head = {"settings": {"deterministic": False}}
    sha256 = hashlib.sha256(model).hexdigest()

    def play(lineup: dict[str, Any]) -> dict[str, Any]:
        played.append(worker._network(lineup["network"]["sha256"]))
        return {}

    player: Any = SimpleNamespace(play=play, in_hand=0)
    lineup = {"number": 1, "network": {"sha256": sha256}, "opponents": []}
    for wrong in (model[:-1], b"another network", b""):
        worker._place.write("networks", sha256, wrong)
        worker._play(player, lineup)
        assert played == []
        assert worker._lineup == {}  # it looks again
        assert worker._sign._facts["trouble"] == f"a network cannot be read: networks/{sha256} is damaged"
    worker._place.write("networks", sha256, model)
    worker._play(player, lineup)
    assert (played, worker._lineup, worker._sign._facts["trouble"]) == ([model], lineup, "")
    worker._sign.close()
    worker._place.close()


def test_a_worker_plays_for_no_head_that_may_be_dead(tmp_path: Path) -> None:
    head = Head(tmp_path)
    head.fleet._sign.close()  # it counts no more
    said = as_object((tmp_path / "head").read_bytes())
    worker = Guest(str(tmp_path), layout={"slots": 1, "pipelines": 1, "threads": 1}, say=lambda _: None)
    for _ in range(3):
        assert worker._look() == ""
        assert worker._player is None
    head.fleet._there.write("", "head", json.dumps(said | {"beat": said["beat"] + 1}).encode())
    assert worker._look() == ""
    assert worker._player is not None
    worker._player.close()
    worker._sign.close()
    worker._place.close()
    head.fleet.close()


def test_a_worker_whose_results_nobody_reads_plays_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, claimed = Guest(str(tmp_path), say=lambda _: None, sleep=lambda _: None), list[int]()
    worker._looked = worker._clock() + 1e9  # it looks at no head
    player: Any = SimpleNamespace(paused=False, in_hand=0, busy=False, totals=lambda: {"stats": {}, "pipelines": {}})
    worker._player = player
    monkeypatch.setattr(worker, "_claim", lambda _: claimed.append(len(worker._unread)))
    for number in range(6):
        worker._unread.append(name := f"{worker.key}-{number:08d}")
        worker._place.write("results", name, b"")
        worker._step()
    assert claimed == [1, 2, 3]
    worker._place.delete("results", worker._unread[0])
    worker._place.delete("results", worker._unread[1])
    worker._place.delete("results", worker._unread[2])
    worker._step()
    assert claimed == [1, 2, 3, 3]  # the head has read some
    worker._sign.close()
    worker._place.close()
