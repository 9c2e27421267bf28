"""The file that az-match --save fills: each game once it is over, in its notation or as a line of JSON."""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from azpy._core import Notation, State, notation_of
from azpy.errors import RunError, SettingsError
from azpy.games.notations import line_of, result_of, tags_of, tags_of_players, tags_of_today, written
from azpy.matches.arena import Board
from azpy.runs import storage
from azpy.system import lock


class SavedGames(AbstractContextManager["SavedGames"]):
    """Appends games to a file, which is made if it is missing. Locks the file while it is open.

    Args:
        path: the file; its name ends in .jsonl, or in .pgn for chess and .sgf for Go.
        start: where games usually begin.
        seed: of the match.
        timed: whether a player has a time for its moves.

    Raises:
        SettingsError: a name that ends otherwise.
        RunError: a file that cannot be written, or that another process appends to.
    """

    def __init__(self, path: Path, start: State, seed: int, *, timed: bool = False) -> None:
        self._path, self._usual, self._seed, self._timed = path, start, seed, timed
        notation = notation_of(start.game)
        forms = {".jsonl": None} | ({} if notation is None else {f".{notation.name}": notation})
        suffix = path.suffix.lower()
        if suffix not in forms:
            ends = " or ".join(forms)
            raise SettingsError(f"games of {start.game} are saved to a file that ends in {ends}, got {path}")
        self._notation = forms[suffix]
        with storage.disk_errors(path):
            storage.check_regular(path)
            self._file = path.open("a+b", buffering=0)
            try:
                lock(self._file.fileno())
                # A power cut may have torn the last game: the next one begins on a line of its own.
                if not storage.ends_a_line(self._file):
                    storage.append(self._file, b"\n")
            except BaseException as error:
                self._file.close()
                if isinstance(error, BlockingIOError):
                    raise RunError(f"{path} is in use by another process: give another file") from None
                raise

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, boards: Sequence[Board], *names: str) -> None:
        """Append games of players A, B and so on, by their names: all the games or, with an error, none."""
        text = ""
        for board in boards:
            players = [names[player] for player in board.seats]
            text += self._json(board, players) if (form := self._notation) is None else self._text(form, board, players)
        with storage.disk_errors(self._path):
            storage.append(self._file, text.encode())

    def _json(self, board: Board, players: Sequence[str]) -> str:
        moves = [name for _, name in line_of(board.start, board.actions)]
        set_up = board.start.key() != self._usual.key()
        game: dict[str, Any] = {"game": board.start.game, "seed": self._seed, "number": board.number}
        game |= {"players": players, "position": board.start.to_text() if set_up else None}
        game |= {"opening": moves[: board.opening], "moves": moves[board.opening :]}
        outcome, end = _outcome(board), _end(board)
        game |= {"outcome": outcome, "result": result_of(board.state, outcome, end), "ended": end}
        game["faults"] = [[fault.text for fault in board.faults[player]] for player in board.seats]
        return json.dumps(game, allow_nan=False) + "\n"

    def _text(self, notation: Notation, board: Board, players: Sequence[str]) -> str:
        """A game as PGN or SGF."""
        number = f"{board.number // 2 + 1}.{board.number % 2 + 1}"
        tags = tags_of_players(notation, players) | tags_of_today(notation, timed=self._timed)
        outcome, end = _outcome(board), _end(board)
        tags |= tags_of(notation, "az-match", number, outcome, end)
        return written(notation, board.start, board.actions, tags, result_of(board.state, outcome, end)) + "\n"


def _outcome(board: Board) -> Any:
    """As `State.outcome` gives it."""
    each = board.outcomes()
    return each[0] + 0.0 if board.start.zero_sum or len(each) == 1 else each  # no -0.0


def _end(board: Board) -> str:
    """How a game ended: "rules", "resigned", or "fault" where a program lost it by what it did wrong."""
    if board.loser is None:
        return "rules"
    return "fault" if any(fault.forfeit for fault in board.faults[board.loser]) else "resigned"
