"""The journal: a torn write, zeros after a power cut or a flipped byte costs no game before it."""

import errno
import inspect
import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from test_runs import folder, payloads, play

import azpy
from azpy.errors import RunError
from azpy.runs import storage
from azpy.runs.games import frame, read_journal, unframe


def appended(tmp_path: Path, *parts: Sequence[azpy.GameRecord]) -> tuple[Path, int]:
    """A journal to which these games were appended, and the byte at which the last of the parts begins."""
    journal, begin = tmp_path / "run/games/journal.bin", 0
    with folder(tmp_path) as run:
        for part in parts:
            begin = journal.stat().st_size
            run.append(*part)
    return journal, begin


def test_a_frame_is_taken_apart_as_it_was_made_or_refused() -> None:
    games = play(2)
    whole = frame(*games)
    assert unframe(whole) == [game.to_bytes() for game in games]
    flipped = (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in (0, 4, 8, len(whole) - 1))
    for damaged in (b"", whole[:-1], whole + b"\0", *flipped):
        with pytest.raises(ValueError, match="bytes has a wrong length or checksum"):
            unframe(damaged)


def test_games_torn_by_a_power_cut_are_dropped_together(tmp_path: Path) -> None:
    games = play(6)
    journal, begin = appended(tmp_path, games[:2], games[2:])
    data = journal.read_bytes()
    torn = [data[:end] for end in (begin + 5, begin + 13, len(data) - 1)]
    # Each block that the frame has bytes in, the first with the frame's length, and all from a block on.
    blocks = range(begin - begin % 512, len(data), 512)
    assert len(blocks) > 2
    for block in blocks:
        zeros, end = max(block, begin), min(block + 512, len(data))
        torn += [data[:zeros] + bytes(end - zeros) + data[end:], data[:zeros] + bytes(len(data) - zeros)]
        torn += [torn[-1] + bytes(4096)]
    for part in torn:
        journal.write_bytes(part)
        with folder(tmp_path) as run:
            assert payloads(run.journal) == payloads(games[:2])
            assert "torn game" in run.notices[0]
            run.append(games[2])
        with folder(tmp_path) as run:
            assert payloads(run.journal) == payloads(games[:3])
            assert run.notices == []


def test_zeros_before_other_games_are_damage(tmp_path: Path) -> None:
    games = play(3)
    journal, _ = appended(tmp_path, *([game] for game in games))
    second = 8 + 12 + len(games[0].to_bytes())
    data = journal.read_bytes()
    zeroed = data[:second] + bytes(12) + data[second + 12 :]
    journal.write_bytes(zeroed)
    with pytest.raises(RunError, match=rf"journal\.bin is damaged at byte {second}: zeros instead of a game's length"):
        folder(tmp_path)
    assert journal.read_bytes() == zeroed


def test_no_flipped_byte_of_a_frame_costs_the_games_after_it(tmp_path: Path) -> None:
    games = play(3)
    journal, _ = appended(tmp_path, *([game] for game in games))
    data = journal.read_bytes()
    for position in range(8 + 12 + len(games[0].to_bytes())):
        flipped = data[:position] + bytes([data[position] ^ 0x40]) + data[position + 1 :]
        journal.write_bytes(flipped)
        with pytest.raises(RunError, match=rf"journal\.bin is damaged at byte {0 if position < 8 else 8}.*delete it"):
            folder(tmp_path)
        assert journal.read_bytes() == flipped


@pytest.mark.parametrize("together", [1, 4])
def test_a_flipped_bit_in_the_last_frame_is_damage(tmp_path: Path, together: int) -> None:
    games = play(2 + together)
    journal, begin = appended(tmp_path, games[:2], games[2:])
    data = journal.read_bytes()
    for tail in (b"", bytes(100)):
        for position in range(begin, len(data), 7 if tail or together > 1 else 1):
            flipped = data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :] + tail
            journal.write_bytes(flipped)
            with pytest.raises(RunError, match=rf"journal\.bin is damaged at byte {begin}: .*delete it"):
                read_journal(journal)
    with pytest.raises(RunError, match="damaged"):
        folder(tmp_path)
    assert journal.read_bytes() == flipped


def test_a_lost_block_before_another_frame_is_damage(tmp_path: Path) -> None:
    games = play(16)
    journal, _ = appended(tmp_path, games[:14], games[14:])
    data = journal.read_bytes()
    for begin, end in ((8, 512), (512, 1024)):
        journal.write_bytes(data[:begin] + bytes(end - begin) + data[end:])
        with pytest.raises(RunError, match=r"journal\.bin is damaged at byte 8"):
            folder(tmp_path)


def test_games_are_synced_before_they_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    games, real = play(6), os.fsync
    with folder(tmp_path) as run:
        sizes = list[int]()

        def note(file: int) -> None:
            sizes.append(os.fstat(file).st_size)
            real(file)

        monkeypatch.setattr(os, "fsync", note)
        run.append(games[0])
        run.append(*games[1:])  # games that end together wait once
        assert len(set(sizes)) == len(sizes) == 2

        def fail(file: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(RunError, match="Input/output error"):
                run.append(play(1, first=6)[0])
        assert len(run.journal) == 6
    with folder(tmp_path) as run:
        assert payloads(run.journal) == payloads(games)


class Disk(io.FileIO):
    """A file of which a write stops half-way, or the wait for the device fails; and no undoing works meanwhile."""

    broken = ""  # "write" or "fsync"

    def write(self, data: Any) -> int:
        if Disk.broken != "write":
            return super().write(data)
        if len(data) < 40:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(memoryview(data)[: len(data) // 2])

    def truncate(self, size: int | None = None) -> int:
        if Disk.broken and size is not None and size < os.fstat(self.fileno()).st_size:
            raise OSError(errno.EIO, "Input/output error")
        return super().truncate(size)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Disk]]:
    real_open, real_sync = Path.open, os.fsync

    def sync(file: int) -> None:
        if Disk.broken == "fsync":
            raise OSError(errno.EIO, "Input/output error")
        real_sync(file)

    def opened(path: Path, mode: str = "r", buffering: int = -1, **more: Any) -> Any:
        return Disk(path, mode) if buffering == 0 else real_open(path, mode, buffering, **more)

    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(os, "fsync", sync)
    yield Disk
    Disk.broken = ""


@pytest.mark.parametrize("broken", ["write", "fsync"])
def test_games_are_appended_again_after_a_failed_append(broken: str, disk: type[Disk], tmp_path: Path) -> None:
    """As a loop does on its way out: the games that it could not write, and those that came since."""
    games = play(4)
    with folder(tmp_path) as run:
        run.append(*games[:2])
        disk.broken = broken
        with pytest.raises(RunError):
            run.append(games[2])
        with pytest.raises(RunError):
            run.append(games[2])
        assert payloads(run.journal) == payloads(games[:2])
        disk.broken = ""
        run.append(*games[2:])
        assert payloads(run.journal) == payloads(games)
    with folder(tmp_path) as run:
        assert payloads(run.journal) == payloads(games)
        assert run.notices == []


@pytest.mark.parametrize("broken", ["write", "fsync"])
def test_a_row_of_metrics_follows_whole_rows_after_a_failure(broken: str, disk: type[Disk], tmp_path: Path) -> None:
    rows = [{"kind": "settings", "iteration": i, "changed": {}, "seconds": 1.5} for i in range(3)]
    with folder(tmp_path) as run:
        run.append_metrics(rows[0])
        disk.broken = broken
        with pytest.raises(RunError):
            run.append_metrics(rows[1])
        disk.broken = ""
        run.append_metrics(rows[2])
        assert run.metrics() == [rows[0], *([rows[1]] if broken == "fsync" else []), rows[2]]


def test_a_game_that_is_in_the_journal_twice_counts_once(tmp_path: Path) -> None:
    games = play(3)
    journal, _ = appended(tmp_path, games)
    whole = journal.read_bytes()
    journal.write_bytes(whole + frame(*games[1:]) + frame(games[0]))
    for iteration, left in enumerate((games, games[1:]), start=1):
        with folder(tmp_path) as run:
            assert payloads(run.journal) == payloads(left)
            run.seal(iteration, {left[0].game_id})


@pytest.mark.parametrize("sealed", [{0, 1, 2}, {0, 2}])
def test_an_interrupt_in_any_line_of_sealing_costs_no_game(sealed: set[int], tmp_path: Path) -> None:
    games = sorted(play(4), key=lambda game: game.game_id)
    left, lines, passed, games_file = 0, 0, False, inspect.getfile(read_journal)

    def interrupt(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in (games_file, storage.__file__):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return interrupt

    while not passed:
        lines += 1
        left, path = lines, tmp_path / str(lines)
        with folder(path) as run:
            run.append(*games[:3])
            before = sys.gettrace()
            sys.settrace(interrupt)
            try:
                run.seal(1, sealed)
                passed = True
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(before)
            run.append(games[3])  # as on the way out
        with folder(path) as run:
            there = [*(run.sealed.read(1) if run.sealed.iterations() else []), *run.journal]
            assert sorted(game.game_id for game in there) == [game.game_id for game in games]
    assert lines > 20
