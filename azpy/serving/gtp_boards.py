"""The boards of GTP: what differs between Go and Othello.

Othello is as Debian's gtp-rhino speaks it: rows count from the top, and a pass is never a move of its own.
"""

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from azpy import _core
from azpy.errors import AzpyError
from azpy.games.notations import decoded
from azpy.serving.gtp_cleanup import chains, unsettled
from azpy.serving.gtp_rules import Rules
from azpy.serving.positions import COLUMNS, empty_board, forgotten, go_board, point_of

__all__ = ["COLORS", "Board", "Line", "Refused", "board_of"]

COLORS = {"b": 0, "black": 0, "w": 1, "white": 1}
_LONGEST_FILE = 1 << 20  # bytes
_MOST_UNDONE = 1_000  # moves: each holds the whole line before it


class Refused(Exception):  # noqa: N818
    """A command that fails; its text is the answer."""


@dataclass(frozen=True)
class Line:
    """A position, and how it came about: where it began (None: at the start of the game) and what was played then."""

    start: _core.State | None = None
    played: tuple[int, ...] = ()

    def after(self, action: int) -> "Line":
        """The line with one more action."""
        return Line(self.start, (*self.played, action))


class Board(ABC):
    """A game that commands change.

    Args:
        start: where the player's game begins.

    Attributes:
        name: of the game, as `list_games` says it.
        line: the position now.
        commands: those that only this game has, by name.
        unsettled: given a line, the moves that may still take dead stones off; None in a game without dead stones.
    """

    name: str

    def __init__(self, start: _core.State) -> None:
        self._first, self.size = start, start.obs_shape[1]
        self.line, self._past = Line(), deque[Line](maxlen=_MOST_UNDONE)
        self.commands: dict[str, Callable[[list[str]], str]] = {}
        self.unsettled: Callable[[Line], list[int]] | None = None

    def fits(self, start: _core.State) -> bool:
        """Whether a player of the game that begins so can play on here."""
        return start.game == self._first.game

    def start(self, line: Line) -> _core.State:
        """Where a line begins."""
        return self._first

    def state(self, line: Line) -> _core.State:
        """The position to which a line leads."""
        state = self.start(line).clone()
        for action in line.played:
            state.play(action)
        return state

    def clear(self) -> None:
        """Begins at the start again, which nothing leads back from."""
        self.line = Line()
        self._past.clear()

    def play(self, color: int, vertex: str) -> None:
        """Plays a move that the other program names.

        Raises:
            Refused: an illegal move, or no vertex of this board.
        """
        line = self.line_of(color)
        state = None if line is None else self.state(line)
        legal = {} if state is None else {state.action_name(action).upper(): action for action in state.legal_actions()}
        if line is None or vertex.upper() not in legal:
            raise Refused("illegal move")
        self.advance(line, legal[vertex.upper()])

    def advance(self, line: Line, action: int) -> None:
        """Plays an action after a line; `undo` leads back to the position now."""
        self._past.append(self.line)
        self.line = line.after(action)

    def undo(self) -> None:
        """Takes the last move back.

        Raises:
            Refused: there is none.
        """
        if not self._past:
            raise Refused("cannot undo")
        self.line = self._past.pop()

    @abstractmethod
    def line_of(self, color: int) -> Line | None:
        """A line to the present position with this color to move; None where this color has no move."""

    @abstractmethod
    def vertex(self, state: _core.State, action: int) -> str:
        """The name of an action."""

    @abstractmethod
    def picture(self) -> str:
        """The position, for people."""

    @abstractmethod
    def score(self) -> str:
        """The winner and the lead, such as B+3.5; 0 for a draw."""


class _Othello(Board):
    """Forced passes are played at once: the color to move always has a move, or the game is over."""

    name = "Othello"

    def play(self, color: int, vertex: str) -> None:
        if vertex.lower() != "pass":
            super().play(color, vertex)
        elif not self._has_passed(color):
            raise Refused("illegal move")

    def advance(self, line: Line, action: int) -> None:
        super().advance(line, action)
        state = self.state(self.line)
        if state.legal_actions() == [state.num_actions - 1]:
            self.line = self.line.after(state.num_actions - 1)

    def _has_passed(self, color: int) -> bool:
        """Whether this color has no move in the present position."""
        state = self.state(self.line)
        return state.is_terminal or (self.line.played[-1:] == (state.num_actions - 1,) and state.turn != color)

    def line_of(self, color: int) -> Line | None:
        return self.line if self.state(self.line).turn == color else None

    def vertex(self, state: _core.State, action: int) -> str:
        name = state.action_name(action)
        return name if name == "pass" else name.upper()

    def picture(self) -> str:
        state = self.state(self.line)
        turn = "Game ended" if state.is_terminal else f"Next move: {('Black', 'White')[state.turn]}"
        return f"{turn}\n{state.render(color=False)}"

    def score(self) -> str:
        state = self.state(self.line)
        if not state.is_terminal:
            raise Refused("cannot score")
        discs = list(state.board().values())
        lead = discs.count("x") - discs.count("o")
        # Empty cells are the winner's.
        return "0" if lead == 0 else f"{'B' if lead > 0 else 'W'}+{abs(lead) + self.size**2 - len(discs)}"


class _Go(Board):
    """Goes on where azpy's rules end a game (two passes, too many plies), and puts two stones of a color in a row.

    The stones of the board are then set up anew, as a position without a past. After too many plies the later half of
    them still counts for ko.
    """

    name = "Go"

    def __init__(self, start: _core.State) -> None:
        super().__init__(start)
        self._komi = float(start.params["komi"])
        self._rules_said, self.unsettled = Rules(start), self._unsettled
        self.commands = {
            "komi": self._set_komi,
            "fixed_handicap": self._fixed_handicap,
            "place_free_handicap": self._free_handicap,
            "set_free_handicap": self._set_handicap,
            "loadsgf": self._load,
            "printsgf": self._print,
            "final_status_list": self._status_list,
            "kata-get-rules": lambda _: self._rules_said.said(),
            "kata-set-rules": lambda words: self._rules_said.set_all(" ".join(words)),
            "kata-set-rule": self._rules_said.set_one,
        }

    def fits(self, start: _core.State) -> bool:
        same = {"komi": 0.0}
        return start.name == "go" and start.params | same == self._first.params | same

    def _rules(self, komi: float) -> _core.State:
        """The empty board with a komi."""
        return empty_board(self._first, komi=komi)

    def start(self, line: Line) -> _core.State:
        empty = self._rules(self._komi)
        if line.start is None:
            return empty
        board = line.start.board()
        stones = [[vertex for vertex, mark in board.items() if mark == own] for own in "xo"]
        return go_board(empty, stones, line.start.turn)

    def line_of(self, color: int) -> Line:
        state = self.state(self.line)
        if state.is_terminal:
            count = forgotten(len(self.line.played))
            earlier = self.state(Line(self.line.start, self.line.played[:count]))
            line = Line(earlier.without_past(), self.line.played[count:])
            if self.state(line).turn == color:
                return line
        return self.line if state.turn == color else Line(state.without_past(color))

    def vertex(self, state: _core.State, action: int) -> str:
        return state.action_name(action)

    def picture(self) -> str:
        return "\n" + self.state(self.line).render(color=False)

    def score(self) -> str:
        state = self.state(self.line)
        while not state.is_terminal:
            state.play(state.num_actions - 1)
        found = re.search(r"RE\[([^\]]*)\]", state.to_text())
        return "0" if found is None else found[1]

    def _unsettled(self, line: Line) -> list[int]:
        """Moves of the color to move that may still take stones of the other one; see `gtp_cleanup`."""
        state = self.state(line)
        stones = self._cells(state)
        points = unsettled(stones[state.turn], stones[1 - state.turn], self.size)
        return [action for action in state.legal_actions() if action in points]

    def _cells(self, state: _core.State) -> list[set[int]]:
        """The stones of each color as cells, which are the actions that put them there."""
        board, cells = state.board(), range(self.size**2)
        return [{cell for cell in cells if board.get(state.action_name(cell)) == own} for own in "xo"]

    def _status_list(self, words: list[str]) -> str:
        """Vertices of the stones of a status, a chain a line. By azpy's rules each stone on the board is alive."""
        if words not in (["alive"], ["dead"], ["seki"]):
            raise Refused("syntax error: expected alive, dead or seki")
        state = self.state(self.line)
        found = (
            [chain for stones in self._cells(state) for chain in chains(stones, self.size)]
            if words == ["alive"]
            else []
        )
        return "\n".join(" ".join(state.action_name(cell) for cell in sorted(chain)) for chain in found)

    def _set_komi(self, words: list[str]) -> str:
        if len(words) != 1 or not re.fullmatch(r"-?[0-9]{1,4}(\.[0-9]{0,3})?", words[0]):
            raise Refused("syntax error: expected a number")
        try:
            self._rules(float(words[0]))
        except (ValueError, AzpyError):
            raise Refused(f"unacceptable komi: expected a half or a whole number, got {words[0]}") from None
        self._komi = float(words[0])
        return ""

    # Handicaps --------------------------------------------------------------------------------------------------------

    def _fixed_handicap(self, words: list[str]) -> str:
        most = len(self._star_points(9))
        return self._set_stones(self._star_points(_stones(words, most)))

    def _free_handicap(self, words: list[str]) -> str:
        size = self.size
        count = _stones(words, size * size - 1)
        points = self._star_points(min(count, 9))
        every = [(column, row) for row in range(size) for column in range(size)]
        # More stones than star points stand apart from each other first.
        points += sorted((point for point in every if point not in points), key=lambda point: sum(point) % 2)
        return self._set_stones(points[:count])

    def _set_handicap(self, words: list[str]) -> str:
        points = [self._point(word) for word in words]
        if not 2 <= len(set(points)) == len(points) < self.size**2:
            raise Refused("bad vertex list: expected two stones at least, none twice, and an empty point")
        return self._set_stones(points)

    def _star_points(self, count: int) -> list[tuple[int, int]]:
        """The points of a fixed handicap in the order of the specification's table; fewer on small and even boards."""
        size, edge = self.size, 3 if self.size >= 13 else 2
        low, middle, high = edge, size // 2, size - 1 - edge
        corners = [(low, low), (high, high), (low, high), (high, low)]
        sides = [(low, middle), (high, middle), (middle, low), (middle, high)]
        most = 0 if size < 7 else 9 if size % 2 and size >= 9 else 4
        points, count = [*corners, *sides], min(count, most)
        if count > 4 and count % 2:
            points.insert(count - 1, (middle, middle))
        return points[:count]

    def _set_stones(self, points: Sequence[tuple[int, int]]) -> str:
        """Begins a game with these stones of Black. They are no moves, so `undo` does not take them back."""
        if self.state(self.line).board():
            raise Refused("board not empty")
        stones = [f"{COLUMNS[column]}{row + 1}" for column, row in points]
        self.clear()
        self.line = Line(go_board(self._rules(self._komi), [stones, []], 1))
        return " ".join(stones)

    def _point(self, word: str) -> tuple[int, int]:
        """Column and row of a vertex, from the bottom left."""
        point = point_of(word, self.size)
        if point is None:
            raise Refused(f"bad vertex list: {word} is no vertex of this board")
        return point

    # Files ------------------------------------------------------------------------------------------------------------

    def _load(self, words: list[str]) -> str:
        """Replays a file's game, with the file's komi, up to the move whose number is given."""
        if len(words) not in (1, 2) or (len(words) == 2 and not re.fullmatch(r"0*[1-9][0-9]{0,5}", words[1])):
            raise Refused("syntax error: expected a file and the number of a move, counted from 1")
        try:
            text, plies = _read(Path(words[0])), None if len(words) == 1 else int(words[1]) - 1
            first = next(_core.GameReader(self._first, text), None)
            stated = first and first.tags.get("KM")
            komi = float(stated) if stated else self._komi
            rules = self._rules(komi)
            game = rules.read_variations(_core.parse_state(rules, text, plies=plies).to_text())
        except (OSError, ValueError, AzpyError) as error:
            raise Refused(f"cannot load file: {error}") from None
        self.clear()
        self._komi, self.line = komi, Line(game.start)
        for action in game.start.parse_actions(" ".join(name for _, name, _ in game.moves)):
            self.advance(self.line, action)
        return ""

    def _print(self, words: list[str]) -> str:
        """The game as SGF: the answer, or a file where one is named."""
        if len(words) > 1:
            raise Refused("syntax error: expected a file")
        text = self.state(self.line).to_text()
        if not words:
            return text
        path = Path(words[0])
        if path.exists() and not path.is_file():
            raise Refused(f"cannot save file: {path} is no file")
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Refused(f"cannot save file: {error}") from None
        return ""


_BOARDS: dict[str, type[Board]] = {"go": _Go, "othello": _Othello}


def board_of(start: _core.State) -> Board:
    """The board of the game that begins so: Go or Othello."""
    return _BOARDS[start.name](start)


def _stones(words: Sequence[str], most: int) -> int:
    """A number of handicap stones."""
    if len(words) != 1 or not re.fullmatch(r"[0-9]{1,4}", words[0]):
        raise Refused("syntax error: expected a whole number")
    if most == 0:
        raise Refused("invalid number of stones: this board has no fixed handicap")
    if not 2 <= int(words[0]) <= most:
        raise Refused(f"invalid number of stones: expected 2 to {most}")
    return int(words[0])


def _read(path: Path) -> str:
    """The text of a file. A device or a pipe, whose end may never come, is refused; so is a file without a size."""
    if not path.is_file() or not 0 < (size := path.stat().st_size) <= _LONGEST_FILE:
        raise Refused(f"cannot load file: {path} is no file of at most {_LONGEST_FILE >> 20} MiB")
    with path.open("rb") as file:
        return decoded(file.read(size))
