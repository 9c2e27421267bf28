"""Games that were played elsewhere, as records: PGN for chess, SGF for Go, and sealed games of other runs.

The core reads PGN and SGF. This module decides which games are learned from, and counts the others, and the files that
cannot be read, by the reason.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azpy import _core
from azpy._core import GameRecord, State, notation_of
from azpy.errors import RunError, one_line
from azpy.games.notations import NAMES, decoded
from azpy.runs import packed, storage
from azpy.runs.games import sealed_in

FILE_REASONS = {  # why a file is left out
    "unreadable": "a file that cannot be read",
    "foreign": "a file of another game",
    "empty": "a file without a game",
}
REASONS = {  # why a game is left out, in the order of the checks; the first reason that applies counts
    "text": "text that cannot be read",
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
_TEXTS = tuple(f".{name}" for name in NAMES)
_ARCHIVES = (".zip", ".tar", ".tgz", ".bz2", ".xz")
_MOST_BYTES = 1 << 31  # bytes of a file, and of its unpacked content
_MOST_SAID = 300  # letters on a game that is left out
_LEAST_PLIES = 10  # of a game that the rules do not end
_MOVES_OF_A_GAME = 40  # Lichess takes a game's time for that of its first 40 moves
_Game = tuple[GameRecord, dict[str, str]]  # with what its file says of it
# Tags of PGN and SGF that an export writes again.
_KEPT = (
    *("Event", "Site", "Date", "Round", "White", "Black", "WhiteElo", "BlackElo", "TimeControl"),
    *("EV", "PC", "DT", "RO", "PB", "PW", "BR", "WR"),
)
_LONGEST_TAG = 200  # letters
_PGN_RESULTS = {"1-0": 1.0, "0-1": -1.0, "1/2-1/2": 0.0}
_SGF_RESULT = re.compile(r"(?:([bw])\+(.*)|(0|draw|jigo))", re.IGNORECASE)
_FORFEITS = re.compile(r"time|forfeit|abandon|infraction|illegal|stall|death|emergency", re.IGNORECASE)


@dataclass(frozen=True)
class Filters:
    """What a user wants of imported games, and how the run counts their scores."""

    min_rating: int | None = None  # of both players, in PGN and SGF; None: all games, also without ratings
    min_seconds: int = 0  # a player has at least so long for 40 moves, where the file says it
    score_to_beat: float | None = None  # the run's own


@dataclass
class Imported:
    """Games from files, and what became of the others.

    `first` has, by the reason, the first game or file that was left out: its file and line, and what came there.
    """

    files: int = 0  # that were looked at
    records: list[GameRecord] = field(default_factory=list)  # the games to learn from, in the order of the files
    tags: list[str] = field(default_factory=list)  # of each record: a JSON object with those of `_KEPT`
    left_out: Counter[str] = field(default_factory=Counter)  # games, by their reason in `REASONS`
    files_left_out: Counter[str] = field(default_factory=Counter)  # by their reason in `FILE_REASONS`
    first: dict[str, str] = field(default_factory=dict)

    @property
    def found(self) -> int:
        """How many games the files hold."""
        return len(self.records) + self.left_out.total()

    def leave_out(self, reason: str, where: str) -> None:
        """Count a game or a file that is left out."""
        (self.files_left_out if reason in FILE_REASONS else self.left_out)[reason] += 1
        if reason not in self.first:
            self.first[reason] = one_line(RunError(where))[:_MOST_SAID]

    def reasons(self) -> list[tuple[str, int, str]]:
        """The reasons in words, each with its count and the first that was left out."""
        counts, words = self.left_out + self.files_left_out, REASONS | FILE_REASONS
        return [(text, counts[name], self.first[name]) for name, text in words.items() if counts[name]]


def import_games(paths: Sequence[str], start: State, seed: int, filters: Filters) -> Imported:
    """Read the games of files, and of the files in folders, as the games 0, 1, ... of a run.

    Args:
        paths: PGN, SGF or npz files, packed or not, and folders with such files.
        start: where the run's games begin.
        seed: of the run.
        filters: which games are left out, besides those that `REASONS` names.

    Raises:
        RunError: a path names nothing, a folder has no such file, or no game is left. It names the first file of each
            reason.
        MissingPackageError: a file is packed by Zstandard, which this Python cannot unpack.
    """
    imported, seen = Imported(), set[bytes]()
    for path in _files(paths):
        imported.files += 1
        for where, game in _games_in(path, start, filters):
            if isinstance(game, str):
                imported.leave_out(game, where)
            elif (key := _digest(game[0])) in seen:
                imported.leave_out("duplicate", where)
            else:
                seen.add(key)
                own = {"game_id": len(imported.records), "seed": seed}
                imported.records.append(game[0].as_imported(**own, score_to_beat=filters.score_to_beat))
                imported.tags.append(json.dumps(game[1], ensure_ascii=False))
    if not imported.records:
        reasons = [f"{count} with {text} (the first: {first})" for text, count, first in imported.reasons()]
        raise RunError(
            f"none of the games in {imported.files} files can be used: {'; '.join(reasons) or 'they hold no game'}; "
            "give other files or filters (--supervised-min-...)"
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
        with storage.disk_errors(path):
            if path.is_dir():
                # A run may be writing a file into the folder, or was killed while it wrote one.
                names = (entry for entry in path.iterdir() if not entry.name.startswith(storage.TEMPORARY))
                known = (*_TEXTS, *_ARCHIVES, ".npz")
                found = sorted(entry for entry in names if packed.suffix_of(entry.name) in known)
            else:
                path.stat()  # a path that the user named must exist
                found = [path]
        if not found:
            raise RunError(
                f"{path} holds no .pgn, .sgf or .npz file, packed (.gz, .zst) or not: give a folder with games, or the "
                "files"
            )
        yield from found


def _games_in(path: Path, start: State, filters: Filters) -> Iterator[tuple[str, _Game | str]]:
    """The games of a file, each with the place where it stands; of one that is left out the reason."""
    if path.suffix.lower() == ".npz" and path.is_file():  # opening a pipe would wait forever
        yield from _sealed_games(path, start)
        return
    if packed.suffix_of(path.name) in _ARCHIVES:
        yield f"{path} is an archive: unpack it, and give the files", "unreadable"
        return
    try:
        data = packed.read_packed(path, _MOST_BYTES)
    except RunError as error:
        yield str(error), "unreadable"
    else:
        yield from _games_of(str(path), data, start, filters)


def _games_of(name: str, data: bytes, start: State, filters: Filters) -> Iterator[tuple[str, _Game | str]]:
    """The games of a text."""
    written = notation_of(start.game)
    notation = written.name.upper() if written else "sealed games of azpy (.npz)"
    suffix = f".{written.name}" if written else ".npz"
    if suffix == ".npz" or (packed.suffix_of(name) in (*_TEXTS, ".npz") and packed.suffix_of(name) != suffix):
        yield f"{name} holds no games of {start.game}, which are read from {notation}", "foreign"
        return
    text = decoded(data)
    if "\0" in text:
        yield f"{name} is not text; expected {notation}", "unreadable"
        return
    count = 0
    for game in _core.GameReader(start, text):
        count += 1
        why = "" if game.why is None else f": {game.why}"
        yield f"{name}, line {game.line}{why}", _written(game, start, filters, is_sgf=suffix == ".sgf")
    if not count:
        yield f"{name} holds no game, expected {notation}", "empty"


def _written(game: _core.WrittenGame, start: State, filters: Filters, *, is_sgf: bool) -> _Game | str:
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
    return GameRecord.of_actions(start, game.actions, outcome), _kept(tags)


def _kept(tags: Mapping[str, Any]) -> dict[str, str]:
    """The tags that an export writes again; a run's file may hold anything."""
    texts = {name: text for name in _KEPT if isinstance(text := tags.get(name), str)}
    return {name: text[:_LONGEST_TAG] for name, text in texts.items() if text.strip("?.* ")}


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


def _sealed_games(path: Path, start: State) -> Iterator[tuple[str, _Game | str]]:
    try:
        records = sealed_in(path, _MOST_BYTES)
    except RunError as error:
        yield str(error), "unreadable"
        return
    if other := next((record.game for record, _ in records if record.game != start.game), None):
        yield f"{path} holds games of {other}, expected {start.game}", "foreign"
        return
    if not records:
        yield f"{path} holds no game", "empty"
    rules = _core.ReplayBuffer(start, max_positions=1)  # it checks each game
    for record, tags in records:
        yield f"{path}, game {record.game_id}", _sealed(record, tags, rules)


def _sealed(record: GameRecord, tags: Mapping[str, Any], rules: _core.ReplayBuffer) -> _Game | str:
    """A game of a run. Its searched plies hold more than the action played, so they are kept unchanged."""
    if record.capped:
        return "result"
    imported = record.as_imported(game_id=0, seed=0)
    try:
        rules.add(imported)
    except ValueError:
        return "action"
    if len(record) < _LEAST_PLIES and record.resigned:
        return "short"
    return (record, _kept(tags)) if imported.positions else "short"
