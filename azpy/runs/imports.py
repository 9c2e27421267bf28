"""Games that were played elsewhere, as records: PGN for chess, SGF for Go, and sealed games of other runs.

The core reads PGN and SGF. This module decides which games are learned from, and counts the others by the reason.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from azpy import _core
from azpy._core import GameRecord, State
from azpy.errors import RunError
from azpy.games.notations import notation_of
from azpy.runs import storage

__all__ = ["REASONS", "Filters", "Imported", "import_games", "is_held_out", "learned_from"]

REASONS = {  # why a game is left out, in the order in which a game is asked; the first reason counts
    "variant": "another variant",
    "start": "a set-up position",
    "size": "another board size",
    "komi": "another komi",
    "action": "an illegal move",
    "after end": "moves after the rules end it",
    "result": "no or unknown result",
    "forfeit": "won by forfeit or on time",
    "contradiction": "a result that the rules contradict",
    "short": "too short",
    "rating": "a rating below the bound, or none",
    "time": "too little time to think",
    "duplicate": "the same moves as an earlier game",
}
_SUFFIXES = (".pgn", ".sgf", ".npz")
_MOST_BYTES = 1 << 31  # of a file, which is read whole; and of the arrays in it
_LEAST_PLIES = 10  # of a game that the rules do not end
_MOVES_OF_A_GAME = 40  # Lichess takes a game's time for that of its first 40 moves
_PGN_RESULTS = {"1-0": 1.0, "0-1": -1.0, "1/2-1/2": 0.0}
_SGF_RESULT = re.compile(r"(?:([bw])\+(.*)|(0|draw|jigo))", re.IGNORECASE)
_FORFEITS = re.compile(r"time|forfeit|abandon|infraction|illegal|stall|death|emergency", re.IGNORECASE)


@dataclass(frozen=True)
class Filters:
    """What a user wants of imported games.

    Attributes:
        min_rating: in PGN and SGF both players' ratings are at least this; None: all games, also without ratings.
        min_seconds: a player has at least so long for 40 moves, where the file says it.
    """

    min_rating: int | None = None
    min_seconds: int = 0


@dataclass
class Imported:
    """Games from files, and what became of the others.

    Attributes:
        files: how many were read.
        found: games in them.
        records: the games to learn from, in the order of the files.
        left_out: how many games were left out, by their reason in `REASONS`.
    """

    files: int = 0
    found: int = 0
    records: list[GameRecord] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def import_games(paths: Sequence[str], start: State, seed: int, filters: Filters) -> Imported:
    """Reads the games of files, and of the files in folders, as the games 0, 1, ... of a run.

    Args:
        paths: PGN, SGF or npz files, and folders with such files.
        start: where the run's games begin.
        seed: of the run.
        filters: which games are left out, besides those that `REASONS` names.

    Raises:
        RunError: a file is missing, damaged, or of another game; or no game is left. It names the file.
    """
    imported, seen = Imported(), set[bytes]()
    for path in _files(paths):
        imported.files += 1
        for game in _games_of(path, start, filters):
            imported.found += 1
            if isinstance(game, str):
                imported.left_out[game] += 1
            elif (key := _digest(game)) in seen:
                imported.left_out["duplicate"] += 1
            else:
                seen.add(key)
                imported.records.append(game.as_imported(game_id=len(imported.records), seed=seed))
    if not imported.records:
        reasons = [f"{count} with {REASONS[reason]}" for reason, count in imported.left_out.most_common()]
        raise RunError(
            f"no game of {imported.files} files can be learned from: {', '.join(reasons) or 'there is none'}; "
            "give other files, or other filters (--supervised-min-...)"
        )
    return imported


def is_held_out(record: GameRecord, share: float) -> bool:
    """Whether a game is measured on and not learned from: by a hash of its moves, whatever else is imported."""
    return int.from_bytes(_digest(record)[:8], "big") < share * 2**64


def learned_from(games: Sequence[GameRecord], share: float) -> list[GameRecord]:
    """The games without the imported ones that are held out."""
    return [record for record in games if not (record.imported and is_held_out(record, share))]


def _digest(record: GameRecord) -> bytes:
    return hashlib.sha256(record.actions.astype("<i4").tobytes()).digest()


def _files(paths: Sequence[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if path.is_dir():
            with storage.disk_errors(path):
                # The folder may be one of a run that writes a file at the moment, or was killed while it did.
                names = (entry for entry in path.iterdir() if not entry.name.startswith(storage.TEMPORARY))
                found = sorted(entry for entry in names if entry.suffix.lower() in _SUFFIXES)
            if not found:
                raise RunError(f"{path} has no .pgn, .sgf or .npz file: give a folder with games, or the files")
            yield from found
        else:
            yield path


def _games_of(path: Path, start: State, filters: Filters) -> Iterator[GameRecord | str]:
    """The games of a file; in the place of one that is left out, the reason."""
    try:
        if path.exists() and not path.is_file():
            raise RunError(f"{path} is not a regular file: give a file of games")
        if (size := path.stat().st_size) > _MOST_BYTES:
            raise RunError(f"{path} has {size:,} bytes, expected {_MOST_BYTES:,} at most: split it")
        data = path.read_bytes()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}") from error
    if data.startswith(b"PK\x03\x04"):
        rules = _core.ReplayBuffer(start, max_positions=1)  # it checks each game
        yield from (_sealed(record, rules) for record in _records_in(path, start))
        return
    written = notation_of(start.game)
    notation = written.name.upper() if written else "sealed games of azpy (.npz)"
    suffix = f".{written.name}" if written else ".npz"
    if suffix == ".npz" or (path.suffix.lower() in _SUFFIXES and path.suffix.lower() != suffix):
        raise RunError(f"{path} holds no games of {start.game}, which are read from {notation}: leave it out")
    if b"\0" in data:
        raise RunError(f"{path} is no text, expected {notation}: unpack it, or leave it out")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # as older files are; only names have such letters
    count = 0
    try:
        for game in _core.GameReader(start, text):
            count += 1
            yield _written(game, start, filters, is_sgf=suffix == ".sgf")
    except ValueError as error:
        raise RunError(f"{path} cannot be read as {notation}: {error}; put that right, or leave it out") from error
    if not count:
        raise RunError(f"{path} holds no game, expected {notation}: leave it out")


def _written(game: _core.WrittenGame, start: State, filters: Filters, *, is_sgf: bool) -> GameRecord | str:
    if game.unfit is not None or game.actions is None:
        return game.unfit or "action"
    tags = game.tags
    outcome, forfeit = _sgf_result(tags) if is_sgf else _pgn_result(tags, game.result)
    if outcome is None:
        return "result"
    if forfeit:
        return "forfeit"
    if game.outcome is not None and game.outcome != outcome:
        return "contradiction"
    if game.outcome is None and len(game.actions) < _LEAST_PLIES:
        return "short"
    ratings = [_rating(tags.get(name, "")) for name in (("BR", "WR") if is_sgf else ("WhiteElo", "BlackElo"))]
    least = filters.min_rating
    if least is not None and any(rating is None or rating < least for rating in ratings):
        return "rating"
    seconds = _sgf_seconds(tags) if is_sgf else _pgn_seconds(tags.get("TimeControl", ""))
    if seconds is not None and seconds < filters.min_seconds:
        return "time"
    return GameRecord.of_actions(start, game.actions, outcome)


def _pgn_result(tags: Mapping[str, str], behind: str | None) -> tuple[float | None, bool]:
    """The outcome, None if it is not known, and whether it was decided otherwise than on the board."""
    said = {result for result in (tags.get("Result"), behind) if result is not None}
    how = tags.get("Termination", "")
    known = len(said) == 1 and how.lower() != "unterminated"
    return _PGN_RESULTS.get(said.pop()) if known else None, bool(_FORFEITS.search(how))


def _sgf_result(tags: Mapping[str, str]) -> tuple[float | None, bool]:
    found = _SGF_RESULT.fullmatch(tags.get("RE", "").strip())
    if found is None:
        return None, False
    if found[3] is not None:
        return 0.0, False
    how = found[2].strip().lower()
    return (1.0 if found[1].lower() == "b" else -1.0), how in ("t", "time", "f", "forfeit")


def _rating(text: str) -> int | None:
    """A rating in points; a rank in Go, such as 3d, is none."""
    found = re.fullmatch(r"([0-9]{1,5})\??", text.strip())
    return int(found[1]) if found else None


def _pgn_seconds(text: str) -> float | None:
    """Seconds a player has for 40 moves, by PGN's TimeControl; None where it does not say."""
    found = re.fullmatch(r"(?:([0-9]+)/)?([0-9.]+)(?:\+([0-9.]+))?", text.partition(":")[0].strip())
    try:
        if found is None:
            return None
        seconds = float(found[2]) * (_MOVES_OF_A_GAME / max(1, int(found[1])) if found[1] else 1)
        return seconds + _MOVES_OF_A_GAME * float(found[3] or 0)
    except ValueError:
        return None


def _sgf_seconds(tags: Mapping[str, str]) -> float | None:
    """Seconds a player has, by SGF's TM; None where it does not say, or there is overtime."""
    try:
        return None if tags.get("OT", "").strip() not in ("", "none", "None") else float(tags["TM"])
    except (KeyError, ValueError):
        return None


def _records_in(path: Path, start: State) -> list[GameRecord]:
    records = storage.sealed_in(path, _MOST_BYTES)
    if other := next((record.game for record in records if record.game != start.game), None):
        raise RunError(f"{path} holds games of {other}, expected {start.game}: leave it out")
    if not records:
        raise RunError(f"{path} holds no game: leave it out")
    return records


def _sealed(record: GameRecord, rules: _core.ReplayBuffer) -> GameRecord | str:
    """A game of a run: its searched plies say more than the action played, so they stay as they are."""
    if record.capped:
        return "result"
    imported = record.as_imported(game_id=0, seed=0)
    try:
        rules.add(imported)
    except ValueError:
        return "action"
    if len(record) < _LEAST_PLIES and record.resigned:
        return "short"
    return imported if imported.positions else "short"
