"""Files of games that are packed or broken: what can be read is read, and the rest is left out."""

import bz2
import gzip
import io
import os
import random
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from azpy.cli import progress
from azpy.errors import MissingPackageError, RunError
from azpy.runs import packed
from azpy.runs.folder import RunFolder
from azpy.runs.games import sealed_in
from azpy.runs.imports import FILE_REASONS, REASONS, Filters, import_games
from azpy.training import events
from game_texts import CHESS, GO, LINE, selfplay, sgf_game

SKIPPED = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"  # a frame to skip, as pzstd writes it


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.sgf", lambda data: data),
        ("a.SGF.GZ", gzip.compress),
        ("a.sgf.gz", lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:])),
        ("a.sgf.zst", zstandard.compress),
        ("a.sgf.zst", lambda data: SKIPPED + zstandard.compress(data[:100]) + SKIPPED + zstandard.compress(data[100:])),
    ],
)
def test_packed_files_are_read_as_plain_ones(tmp_path: Path, name: str, pack: Any) -> None:
    data = "\n".join(sgf_game(LINE[shift:] + LINE[:shift]) for shift in (0, 4, 8)).encode()
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / name).write_bytes(pack(data))
    (tmp_path / "plain.sgf").write_bytes(data)
    expected = import_games([str(tmp_path / "plain.sgf")], GO, 0, Filters())
    assert len(expected.records) == 3
    for path in (folder, folder / name):
        found = import_games([str(path)], GO, 0, Filters())
        assert [game.to_bytes() for game in found.records] == [game.to_bytes() for game in expected.records]
        assert (found.files, found.files_left_out) == (1, {})
    assert [entry.name for entry in tmp_path.iterdir()] in (["files", "plain.sgf"], ["plain.sgf", "files"])
    assert [entry.name for entry in folder.iterdir()] == [name]


def test_a_file_unpacks_to_no_more_than_the_bound(tmp_path: Path) -> None:
    path, zeros, most = tmp_path / "a", bytes(40 << 16), 1 << 20
    for pack in (gzip.compress, zstandard.compress):
        path.write_bytes(pack(zeros))
        with pytest.raises(RunError, match=r"unpacks to more than 1,048,576 bytes: split it"):
            packed.read_packed(path, most)
        path.write_bytes(pack(zeros[:most]))
        assert packed.read_packed(path, most) == zeros[:most]
    path.write_bytes(zeros)
    with pytest.raises(RunError, match=r"has 2,621,440 bytes, expected 1,048,576 at most: split it"):
        packed.read_packed(path, most)


def archives() -> dict[str, bytes]:
    """By the ends of their names."""
    whole, game = {"zip": io.BytesIO(), "tar": io.BytesIO()}, sgf_game(LINE)
    with zipfile.ZipFile(whole["zip"], "w") as archive:
        archive.writestr("a.sgf", game)
    with tarfile.open(fileobj=whole["tar"], mode="w") as tar:
        member = tarfile.TarInfo("a.sgf")
        member.size = len(game)
        tar.addfile(member, io.BytesIO(game.encode()))
    found = {end: stream.getvalue() for end, stream in whole.items()}
    return found | {"tgz": gzip.compress(found["tar"]), "sgf.bz2": bz2.compress(game.encode())}


def test_archives_are_not_unpacked(tmp_path: Path) -> None:
    for end, data in archives().items():
        path = tmp_path / f"a.{end}"
        path.write_bytes(data)
        with pytest.raises(RunError, match=rf"a\.{end} is an archive: unpack it, and give the files"):
            import_games([str(path)], GO, 0, Filters())


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_sealed_games_packed_by_other_methods_are_refused(method: int, tmp_path: Path) -> None:
    """Python unpacks all of such a member at once, however little is asked for."""
    sealed = tmp_path / "a.npz"
    why = "is damaged, or packed by a method whose size cannot be bounded: replace it with a copy packed by deflate"
    with RunFolder(tmp_path / "run", {"game": "go(size=5)"}) as run:
        run.sealed.write(1, selfplay())
        with zipfile.ZipFile(run.sealed.path(1)) as archive, zipfile.ZipFile(sealed, "w", method) as copy:
            for member in archive.namelist():
                copy.writestr(member, archive.read(member))
        run.sealed.path(1).write_bytes(sealed.read_bytes())
        for read in (run.sealed.read, run.sealed.ids, lambda _: sealed_in(sealed, 1 << 30)):
            with pytest.raises(RunError, match=rf"\.npz {why}$"):
                read(1)


def test_a_pipe_is_refused_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.sgf", "a.npz", "a.pgn.gz"):
        os.mkfifo(tmp_path / name)
    real = Path.open

    def opened(path: Path, *given: Any) -> Any:
        assert not path.is_fifo(), "to open a pipe that nobody writes into waits for ever"
        return real(path, *given)

    monkeypatch.setattr(Path, "open", opened)
    for given in [[tmp_path], sorted(tmp_path.iterdir())]:
        with pytest.raises(RunError, match=r"3 files .*a\.npz is not a regular file"):
            import_games([str(path) for path in given], GO, 0, Filters())


def test_a_broken_file_is_read_or_left_out(tmp_path: Path) -> None:
    """Flipped, doubled and lost bytes: no other error, and no game that was not in it."""
    rng, path = random.Random(6), tmp_path / "a"
    good = tmp_path / "good.sgf"
    good.write_text(sgf_game(LINE))
    files = [zstandard.compress(b"(;GM[1])" * 9), gzip.compress(sgf_game(LINE).encode()), *archives().values()]
    for number in range(600):
        data = bytearray(files[number % len(files)])
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data)) if rng.random() < 0.7 else rng.randrange(min(600, len(data)))
            match rng.randrange(3):
                case 0:
                    data[at] = rng.randrange(256)
                case 1:
                    del data[at : at + rng.randrange(1, 20)]
                case _:
                    data[at:at] = data[at : at + rng.randrange(1, 20)]
        path.write_bytes(data)
        found = import_games([str(good), str(path)], GO, 0, Filters())
        assert len(found.records) >= 1
        assert all(one.isprintable() for one in found.first.values())


def test_one_bad_game_or_file_does_not_end_the_import(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    long = "e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6 O-O Be7 Re1"
    good = [f'[Event "?"]\n[Result "1-0"]\n\n{long} {last} 1-0\n\n' for last in ("b5", "d6", "O-O", "h6", "g6")]
    bad = '[Event "?"]\n[Result "1-0"]\n\n1. e4 {never closed 1-0\n\n'
    illegal = '[Event "?"]\n[Result "1-0"]\n\n1. e4 e5 2. Ke3 1-0\n\n'
    (folder / "a.pgn").write_text(good[0] + bad + good[1] + illegal + bad)
    (folder / "b.pgn.gz").write_bytes(gzip.compress(good[2].encode())[:-10])
    (folder / "c.sgf").write_text(sgf_game(LINE))
    (folder / "d.pgn").write_bytes(bytes(range(256)) * 8)
    (folder / "e.pgn").write_text("\n")
    (folder / "f.pgn").write_text(good[3])
    locked = os.geteuid() != 0  # root may read anything
    (folder / "f.pgn").chmod(0 if locked else 0o600)
    (folder / "g.pgn").write_text(good[3] + "1. e4")
    (folder / "h.npz").write_bytes(b"PK\x03\x04 and no more")
    found = import_games([str(folder)], CHESS, 0, Filters())
    assert found.left_out == {"text": 3, "action": 1} | ({} if locked else {"duplicate": 1})
    assert found.files_left_out == {"unreadable": 3 + locked, "foreign": 1, "empty": 1}
    assert (found.files, found.found, len(found.records)) == (8, 8 - locked, 3)
    assert found.first["text"] == f"{folder}/a.pgn, line 6: a comment that starts with {{ lacks its closing }}"
    assert found.first["action"].startswith(f'{folder}/a.pgn, line 16: action 3 is "Ke3", which is not among')
    assert found.first["unreadable"].startswith(f"{folder}/b.pgn.gz is damaged (Compressed file ended")
    assert found.first["foreign"] == f"{folder}/c.sgf holds no games of {CHESS.game}, which are read from PGN"
    assert found.first["empty"] == f"{folder}/e.pgn holds no game, expected PGN"
    reasons = found.reasons()
    assert [words for words, _, _ in reasons[:2]] == [REASONS["text"], REASONS["action"]]
    assert sum(count for _, count, _ in reasons) == found.left_out.total() + found.files_left_out.total()
    left_out = {words: (count, first) for words, count, first in reasons}
    table = progress._table(events.Imported(found.files, found.found, 3, 36, 0, left_out)).splitlines()
    assert len(table) == 3 + len(reasons)
    assert any(FILE_REASONS["foreign"] in line and "c.sgf" in line and " 1 " in line for line in table)
    with pytest.raises(RunError, match=r"none\.pgn cannot be used: No such file"):
        import_games([str(folder), str(tmp_path / "none.pgn")], CHESS, 0, Filters())


def test_without_zstandard_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.sgf.zst").write_bytes(zstandard.compress(sgf_game(LINE).encode()))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    with pytest.raises(MissingPackageError, match=r"a.sgf.zst is packed by Zstandard: pip install zstandard"):
        import_games([str(tmp_path / "a.sgf.zst")], GO, 0, Filters())


def test_a_file_that_would_unpack_to_too_much_is_refused(tmp_path: Path) -> None:
    path, games = tmp_path / "games.npz", selfplay()
    with RunFolder(tmp_path / "run", {"game": "go(size=5)"}) as run:
        run.sealed.write(1, games)
        sealed = run.sealed.path(1)
    with np.load(sealed) as arrays:
        whole = dict(arrays)
    size = sum(array.nbytes + 128 for array in whole.values())  # 128: a header
    assert [game.to_bytes() for game, _ in sealed_in(sealed, size)] == [game.to_bytes() for game in games]
    zeros = np.zeros(1 << 26, np.uint8)
    np.savez_compressed(path, **whole | {"more": zeros})
    assert path.stat().st_size < 1 << 20
    with pytest.raises(RunError, match=r"unpacks to 67,1[0-9,]+ bytes, expected 1,048,576 at most: split it"):
        sealed_in(path, 1 << 20)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (1 << 40,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("payload.npy", header.getvalue())
        archive.writestr("offsets.npy", b"")
    with pytest.raises(RunError, match="is damaged"):
        import_games([str(path)], GO, 0, Filters())
