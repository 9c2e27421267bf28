"""Workers at a shared folder: the same games and weights as without them, and nothing in the folder is believed."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from azpy.fleet import folder, guest
from azpy.fleet.guest import Guest
from azpy.fleet.place import Place
from azpy.training.events import Event
from azpy.training.trainer import Trainer
from test_fleet import hashes, settings, train

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
    (path / "folder").mkdir()
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
    assert [entry.name for entry in (place / "results").iterdir()] == []


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
