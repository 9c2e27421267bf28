"""The boards of GTP: what differs between Go and Othello.

Go has no dead stones here: every stone on the board counts.

Othello is as Debian's gtp-rhino speaks it: rows count from the top, and a pass is never a move of its own.
"""

import json
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import islice
from pathlib import Path

import azpy
from azpy import _core
from azpy._core import Line
from azpy.errors import AzpyError, RequestError
from azpy.games.notations import decoded

COLORS = {"b": 0, "black": 0, "w": 1, "white": 1}
_LONGEST_FILE = 1 << 20  # bytes
_MOST_UNDONE = 1_000  # moves: each holds the whole line before it
# KataGo's names of rules that azpy can play, and their ko. Other names stand for another rule in any case.
_NAMED_RULES = {"chinese": "SIMPLE", "chinese-kgs": "POSITIONAL", "chinese-ogs": "POSITIONAL"}
_Cells = frozenset[int]


def expect(words: Sequence[str], pattern: str, expected: str) -> None:
    """Refuse the words of a command unless they match the pattern, with one blank between two words."""
    if not re.fullmatch(pattern, " ".join(words)):
        raise RequestError(f"syntax error: expected {expected}")


class Board(ABC):
    """A game that commands change.

    Args:
        start: where the player's game begins.

    Attributes:
        name: of the game, as `list_games` says it.
        line: the position now.
        commands: those that only this game has, by name.
    """

    name: str

    def __init__(self, start: _core.State) -> None:
        self._first, self.size = start, start.obs_shape[1]
        self.line, self._past = Line(start), deque[Line](maxlen=_MOST_UNDONE)
        self.commands: dict[str, Callable[[list[str]], str]] = {}

    def fits(self, start: _core.State) -> bool:
        """Whether a player of the game that begins so can play on here."""
        return start.game == self._first.game

    def line_of(self, color: int) -> Line | None:
        """A line to the present position with this color to move; None where this color has no move."""
        return self.line if self.line.state.turn == color else None

    def clear(self) -> None:
        """Begin at the start again. `undo` does not lead back."""
        self.line = Line(self._first)
        self._past.clear()

    def play(self, color: int, vertex: str) -> None:
        """Play a move that the other program names.

        Raises:
            RequestError: an illegal move, or no vertex of this board.
        """
        line = self.line.upto(len(self.line.played))
        try:
            line.play(vertex.lower(), color)
        except ValueError:
            raise RequestError("illegal move") from None
        self._go_to(line)

    def advance(self, line: Line, action: int) -> None:
        """Play an action after a line; `undo` leads back to the position now."""
        after = line.upto(len(line.played))
        after.play(after.state.action_name(action))
        self._go_to(after)

    def _go_to(self, line: Line) -> None:
        self._past.append(self.line)
        self.line = line

    def undo(self) -> str:
        """Take the last move back.

        Raises:
            RequestError: there is none.
        """
        if not self._past:
            raise RequestError("cannot undo")
        self.line = self._past.pop()
        return ""

    def vertex(self, state: _core.State, action: int) -> str:
        """The name of an action."""
        name = state.action_name(action)
        return name if name == "pass" else name.upper()

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
        state = self.line.state
        has_passed = self.line.played[-1:] == [state.num_actions - 1] and state.turn != color
        if vertex.lower() != "pass" or not (state.is_terminal or has_passed):
            super().play(color, vertex)

    def _go_to(self, line: Line) -> None:
        if line.state.legal_actions() == [line.state.num_actions - 1]:
            line.play("pass")
        super()._go_to(line)

    def picture(self) -> str:
        state = self.line.state
        turn = "Game ended" if state.is_terminal else f"Next move: {('Black', 'White')[state.turn]}"
        return f"{turn}\n{state.render(color=False)}"

    def score(self) -> str:
        state = self.line.state
        if not state.is_terminal:
            raise RequestError("cannot score")
        discs = list(state.board().values())
        lead = discs.count("x") - discs.count("o")
        # Empty cells count for the winner.
        return "0" if lead == 0 else f"{'B' if lead > 0 else 'W'}+{abs(lead) + self.size**2 - len(discs)}"


class _Go(Board):
    """A game of Go that continues where azpy's rules end it, and allows two stones of a color in a row.

    The stones of the board are then set up anew, as a position without a past. After too many plies the later half of
    them still counts for ko.
    """

    name = "Go"

    def __init__(self, start: _core.State) -> None:
        super().__init__(start)
        self._komi = float(start.params["komi"])
        self._played_rules: dict[str, str | bool] = {
            "ko": "POSITIONAL" if start.params["superko"] else "SIMPLE",
            "scoring": "AREA",
            "tax": "NONE",
            "suicide": False,
            "hasButton": False,
            "whiteHandicapBonus": "0",
            "friendlyPassOk": False,
        }
        self.commands = {
            "komi": self._set_komi,
            "fixed_handicap": self._fixed_handicap,
            "place_free_handicap": self._free_handicap,
            "set_free_handicap": self._set_handicap,
            "loadsgf": self._load,
            "printsgf": self._print,
            "final_status_list": self._status_list,
            "kata-get-rules": lambda _: json.dumps(self._played_rules, separators=(",", ":"), sort_keys=True),
            "kata-set-rules": self._set_rules,
            "kata-set-rule": self._set_rule,
        }

    def fits(self, start: _core.State) -> bool:
        same = {"komi": 0.0}
        return start.name == "go" and start.params | same == self._first.params | same

    def _rules(self, komi: float) -> _core.State:
        """The empty board with a komi."""
        return azpy.make_game("go", **(self._first.params | {"komi": komi}))

    def clear(self) -> None:
        super().clear()
        self.line = self._with_komi(self.line)

    def undo(self) -> str:
        super().undo()
        self.line = self._with_komi(self.line)
        return ""

    def _with_komi(self, line: Line) -> Line:
        """The line with the komi of now, which counts for earlier positions too."""
        if line.start.params["komi"] == self._komi:
            return line
        text = re.sub(r"KM\[[^]]*\]", f"KM[{self._komi:.1f}]", line.start.to_text())
        with_komi = Line(_core.parse_state(self._rules(self._komi), text))
        for action in line.played:
            with_komi.play(with_komi.state.action_name(action))
        return with_komi

    def line_of(self, color: int) -> Line:
        line = self.line.upto(len(self.line.played))
        line.go_on(color)
        return line

    def picture(self) -> str:
        return "\n" + self.line.state.render(color=False)

    def score(self) -> str:
        state = self.line.state
        while not state.is_terminal:
            state.play(state.num_actions - 1)
        found = re.search(r"RE\[([^\]]*)\]", state.to_text())
        return "0" if found is None else found[1]

    def _cells(self, state: _core.State) -> list[set[int]]:
        """The stones of each color as cells, which are the actions that put them there."""
        board, cells = state.board(), range(self.size**2)
        return [{cell for cell in cells if board.get(state.action_name(cell)) == own} for own in "xo"]

    def _status_list(self, words: list[str]) -> str:
        """Vertices of the stones of a status, a chain a line. By azpy's rules each stone on the board is alive."""
        expect(words, "alive|dead|seki", "alive, dead or seki")
        state, found = self.line.state, list[_Cells]()
        if words == ["alive"]:
            found = [chain for stones in self._cells(state) for chain in chains(stones, self.size)]
        return "\n".join(" ".join(state.action_name(cell) for cell in sorted(chain)) for chain in found)

    def _set_komi(self, words: list[str]) -> str:
        expect(words, r"-?[0-9]{1,4}(\.[0-9]{0,3})?", "a number")
        try:
            self._rules(float(words[0]))
        except (ValueError, AzpyError):
            raise RequestError(f"unacceptable komi: expected a half or a whole number, got {words[0]}") from None
        self._komi = float(words[0])
        self.line = self._with_komi(self.line)
        return ""

    def _set_rules(self, words: list[str]) -> str:
        """`kata-set-rules`: a name of rules, or an object in JSON with some of them. No command changes a rule."""
        text = " ".join(words)
        name = re.sub("[_ ]", "-", text.lower())
        if name in _NAMED_RULES:
            return self._check_rules({"ko": _NAMED_RULES[name]})
        try:
            wanted = json.loads(text)
        except ValueError:
            wanted = None
        if not isinstance(wanted, dict):
            names, played = ", ".join(_NAMED_RULES), self.commands["kata-get-rules"]([])
            raise RequestError(f"azpy plays {played}: expected {names}, or an object in JSON with these rules")
        return self._check_rules(wanted)

    def _set_rule(self, words: list[str]) -> str:
        expect(words, r"\S+ \S+", "a rule and its value")
        return self._check_rules({words[0]: words[1]})

    def _check_rules(self, wanted: Mapping[str, object]) -> str:
        """Refuse each rule that azpy does not play."""
        for rule, given in wanted.items():
            if rule not in self._played_rules:
                raise RequestError(f"unknown rule {rule[:40]!r}: expected {', '.join(self._played_rules)}")
            played, asked = (json.dumps(value).strip('"') for value in (self._played_rules[rule], given))
            if asked.lower() != played.lower():
                raise RequestError(f"rule {rule}: azpy plays {played} here, not {asked[:40]}")
        return ""

    def _fixed_handicap(self, words: list[str]) -> str:
        most = len(self._star_points(9))
        return self._set_stones(self._star_points(_stones(words, most)))

    def _free_handicap(self, words: list[str]) -> str:
        count = _stones(words, self.size**2 - 1)
        points = self._star_points(min(count, 9))
        # More stones than star points stand apart from each other first.
        others = (cell for cell in range(self.size**2) if cell not in points)
        points += sorted(others, key=lambda cell: sum(divmod(cell, self.size)) % 2)
        return self._set_stones(points[:count])

    def _set_handicap(self, words: list[str]) -> str:
        cells = {self._first.action_name(cell): cell for cell in range(self.size**2)}
        if wrong := [word for word in words if word.upper() not in cells]:
            raise RequestError(f"bad vertex list: {wrong[0]} is not a vertex of this board")
        points = [cells[word.upper()] for word in words]
        if not 2 <= len(set(points)) == len(points) < self.size**2:
            raise RequestError("bad vertex list: expected two stones at least, none twice, and an empty point")
        return self._set_stones(points)

    def _star_points(self, count: int) -> list[int]:
        """The points of a fixed handicap in the order of the specification's table; fewer on small and even boards."""
        size, edge = self.size, 3 if self.size >= 13 else 2
        low, middle, high = edge, size // 2, size - 1 - edge
        corners = [(low, low), (high, high), (low, high), (high, low)]
        sides = [(low, middle), (high, middle), (middle, low), (middle, high)]
        most = 0 if size < 7 else 9 if size % 2 and size >= 9 else 4
        points, count = [*corners, *sides], min(count, most)
        if count > 4 and count % 2:
            points.insert(count - 1, (middle, middle))
        return [(size - 1 - row) * size + column for column, row in points[:count]]

    def _set_stones(self, points: Sequence[int]) -> str:
        """Begin a game with these stones of Black. They are no moves, so `undo` does not take them back."""
        if self.line.state.board():
            raise RequestError("board not empty")
        stones = "".join(f"[{chr(97 + cell % self.size)}{chr(97 + cell // self.size)}]" for cell in points)
        text = f"(;GM[1]FF[4]SZ[{self.size}]KM[{self._komi:.1f}]AB{stones}PL[W])"
        self.clear()
        self.line = Line(_core.parse_state(self._rules(self._komi), text))
        return " ".join(self._first.action_name(cell) for cell in points)

    def _load(self, words: list[str]) -> str:
        """Replay a file's game, with the file's komi, up to the move whose number is given."""
        expect(words, r"\S+( 0*[1-9][0-9]{0,5})?", "a file and the number of a move, counted from 1")
        try:
            text, plies = _read(Path(words[0])), None if len(words) == 1 else int(words[1]) - 1
            position = _core.parse_state(self._rules(self._komi), text, plies=plies)
            komi = float(position.params["komi"])
            rules = self._rules(komi)
            for written in islice(_core.GameReader(rules, text), 1):
                if written.unfit == "komi":  # the komi of the rules stands in for one that they cannot have
                    raise ValueError(f"KM[{written.tags['KM']}] is not a komi: expected a half or a whole number")
            game = rules.read_variations(position.to_text())
        except (OSError, ValueError, AzpyError) as error:
            raise RequestError(f"cannot load file: {error}") from None
        self.clear()
        self._komi, self.line = komi, Line(game.start)
        for action in game.start.parse_actions(" ".join(name for _, name, _ in game.moves)):
            self.advance(self.line, action)
        return ""

    def _print(self, words: list[str]) -> str:
        """The game as SGF: the answer, or a file where one is named."""
        expect(words, r"\S*", "a file")
        text = self.line.state.to_text()
        if not words:
            return text
        path = Path(words[0])
        if path.exists() and not path.is_file():
            raise RequestError(f"cannot save file: {path} is not a file")
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise RequestError(f"cannot save file: {error}") from None
        return ""


_BOARDS: dict[str, type[Board]] = {"go": _Go, "othello": _Othello}


def board_of(start: _core.State) -> Board:
    """The board of the game that begins so: Go or Othello."""
    return _BOARDS[start.name](start)


def _stones(words: Sequence[str], most: int) -> int:
    """A number of handicap stones."""
    expect(words, "[0-9]{1,4}", "a whole number")
    if most == 0:
        raise RequestError("invalid number of stones: this board has no fixed handicap")
    if not 2 <= int(words[0]) <= most:
        raise RequestError(f"invalid number of stones: expected 2 to {most}")
    return int(words[0])


def _read(path: Path) -> str:
    """The text of a file. A device or a pipe, whose end may never come, is refused; so is a file without a size."""
    if not path.is_file() or not 0 < (size := path.stat().st_size) <= _LONGEST_FILE:
        raise RequestError(f"{path} is not a file of at most {_LONGEST_FILE >> 20} MiB")
    with path.open("rb") as file:
        return decoded(file.read(size))


def chains(cells: Set[int], size: int) -> list[_Cells]:
    """The connected parts of a set of cells, row * size + column from the top left, by their first cells."""
    found, rest = list[_Cells](), set(cells)
    for cell in sorted(cells):
        if cell not in rest:
            continue
        part, waiting = {cell}, [cell]
        while waiting:
            new = (_beside(waiting.pop(), size) & rest) - part
            part |= new
            waiting += new
        rest -= part
        found.append(frozenset(part))
    return found


def _beside(cell: int, size: int) -> set[int]:
    row, column = divmod(cell, size)
    near = ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
    return {y * size + x for y, x in near if 0 <= y < size and 0 <= x < size}
