"""How other programs write whole games: PGN for chess, SGF for Go. The core reads and writes them."""

import contextlib
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import numpy as np

from azpy._core import Notation, State, list_games, notation_of
from azpy.errors import printable
from azpy.games.lines import replayed
from azpy.system import plain_text

_USED = [(game, found.name) for game in list_games() if (found := notation_of(game)) is not None]
# What files end in -> the games in them.
NAMES = {name: [game for game, other in _USED if other == name] for _, name in _USED}
_PGN_RESULTS = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}  # by the sign of the outcome for player 0


# Encodings that SGF's CA names and in which ASCII stays ASCII. In some of them a letter's second byte is that of "]".
_ENCODINGS = re.compile(
    r"gb.{1,8}|big5.{0,6}|s(hift)?.?jis.{0,5}|euc.?(jp|kr|cn)|cp9[0-9]{2}|(cp|windows.?)125[0-9]|koi8.[ru]|iso.?8859.?[0-9]+",
    re.IGNORECASE,
)


# Encodings in which the second byte of a letter may be that of "[", "\\" or "]", and the first bytes of usual letters.
# Not GBK: there usual letters end in no such byte, and a name in Cyrillic letters would be taken for Chinese.
_TWO_BYTES = (("cp932", 0x81, 0x9F), ("big5", 0xA4, 0xC6))


def decoded(data: bytes) -> str:
    """The text of a file of games: UTF-8, UTF-16 with its mark, as SGF's CA says, or else what it looks like.

    A file that says nothing is Shift-JIS or Big5 if most of its letters are words of these; else Latin-1. Letters
    that are not ASCII's stand only in names and comments, so that any file can be read.

    Example:
        >>> decoded("(;CA[Shift_JIS]PB[ソ]AB[aa])".encode("shift_jis"))
        '(;CA[Shift_JIS]PB[ソ]AB[aa])'
        >>> decoded("(;PB[青山一郎]C[表示能力ソ];B[aa])".encode("shift_jis"))
        '(;PB[青山一郎]C[表示能力ソ];B[aa])'
    """
    with contextlib.suppress(UnicodeDecodeError):
        return plain_text(data)
    stated = re.search(rb"CA\s*\[\s*([A-Za-z0-9_-]{1,20})\s*\]", data[:4096])
    name = "" if stated is None else stated[1].decode()
    # Files that say GB2312 have the letters of its successors.
    name = "gb18030" if name.lower().startswith("gb") else name
    if _ENCODINGS.fullmatch(name):
        with contextlib.suppress(LookupError):
            return data.decode(name, errors="replace")
    guesses = (text for usual in _TWO_BYTES if (text := _in_two_bytes(data, *usual)))
    return next(guesses, data.decode("latin-1"))


def _in_two_bytes(data: bytes, name: str, low: int, high: int) -> str:
    """The text in an encoding, if most of its letters are usual ones and many stand beside others; else nothing."""
    try:
        text = data.decode(name)
    except UnicodeDecodeError:
        return ""
    words = re.findall(r"[^\0-\x7f]+", text)
    letters = [letter.encode(name) for letter in "".join(words)]
    usual = [letter for letter in letters if len(letter) == 2 and low <= letter[0] <= high]
    beside = sum(len(word) for word in words if len(word) > 1)
    is_likely = len(usual) >= 0.8 * len(letters) and beside >= 0.5 * len(letters)
    # Without a second byte of ASCII it may be another encoding, and Latin-1 spoils no move.
    return text if is_likely and any(letter[1] < 0x80 for letter in usual) else ""


def tags_of(notation: Notation, event: str, number: str, outcome: float, end: str) -> dict[str, str]:
    """The tags of a game that say where it was played and how it ended.

    Args:
        notation: of the game.
        event: where.
        number: the game's in the event.
        outcome: for player 0.
        end: "rules", "resigned", "capped" (a bound on its length cut it off), or "fault" (a program broke the rules).
    """
    if notation.name == "pgn":
        tags = {"Event": event, "Round": number, "Result": _PGN_RESULTS[int(np.sign(outcome))]}
        return tags | {"Termination": {"capped": "unterminated", "fault": "rules infraction"}.get(end, "normal")}
    won = f"{'B' if outcome > 0 else 'W'}+"
    # A game that was counted says its score itself.
    results = {"capped": "Void", "resigned": f"{won}R", "fault": f"{won}F"}
    return {"EV": event, "RO": number} | ({"RE": results[end]} if end in results else {})


def tags_of_today(notation: Notation, *, timed: bool = False) -> dict[str, str]:
    """The tags of a game that is played now: its date, and in PGN that it has no clock, unless it is `timed`."""
    today = datetime.now().astimezone().date()
    if notation.name != "pgn":
        return {"DT": today.isoformat()}
    return {"Date": f"{today:%Y.%m.%d}"} | ({} if timed else {"TimeControl": "-"})


def result_of(state: State, outcome: Any, end: str) -> str:
    """The result of a game in words: "White wins by checkmate", "Black wins by resignation".

    Args:
        state: where the game ended.
        outcome: as `State.outcome` gives it.
        end: as for `tags_of`. Where the rules ended the game, it says how itself.
    """
    if end == "rules" and state.is_terminal:
        return state.result_text()
    if end == "capped":
        return "Unfinished"
    # An imported game may end before the rules end it.
    how = {"resigned": "by resignation", "fault": "by forfeit"}
    each = outcome if isinstance(outcome, tuple) else (outcome, -outcome)[: state.num_players]
    return state._result_words(each, how.get(end, ""))


def side_name(state: State, player: int) -> str:
    """What people call a player, as a sentence begins: "White"; "Player 0" where the game has no name."""
    name = state.side_names[player] if state.side_names else f"player {player}"
    return f"{name[:1].upper()}{name[1:]}"


def tags_of_players(notation: Notation, names: Iterable[str]) -> dict[str, str]:
    """The tags of the players' names. Names of files may hold what no text can."""
    return dict(zip(notation.players, map(printable, names), strict=True))


def written(notation: Notation, start: State, actions: Iterable[int], tags: dict[str, str], result: str) -> str:
    """A game in its notation. PGN has the result in words as its last comment; in SGF the tag RE has it all."""
    line = line_of(start, actions)
    notes = {len(line) - 1: {"C": [result]}} if notation.name == "pgn" else None
    return start.write_variations(line, tags, notes)


def line_of(start: State, actions: Iterable[int]) -> list[tuple[int, str]]:
    """A line of play as `State.write_variations` takes it; a `ValueError` for an action that rules do not allow."""
    played = [int(action) for action in actions]
    positions = zip(played, replayed(start, played), strict=False)
    return [(ply - 1, position.action_name(action)) for ply, (action, position) in enumerate(positions)]
