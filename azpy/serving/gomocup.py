"""Gomocup's protocol for Gomoku (the Piskvork protocol, version 2 of its description by Petr Lastovicka).

A command in capitals a line; each has one line of answer but INFO and END. A coordinate is `x,y`, both from 0, and 0,0
is the top left corner.
"""

import re
from collections.abc import Callable, Mapping

import azpy
from azpy import _core
from azpy.errors import RequestError, SettingsError, one_line
from azpy.serving.lines import Conversation
from azpy.serving.models import TREES_MB, Player, chosen
from azpy.serving.request import Protocol, seconds_to_think, whole

_ROW = 5
_OVERHEAD = 0.05  # seconds a move that pass outside of the search
_RULES = {0: "freestyle", 1: "exactly five", 2: "a continuous game", 4: "renju", 8: "caro"}  # bits of INFO rule
_NEEDLESS = {"game_type", "folder", "evaluate"}  # INFO that a player may ignore
_LIMITS = ("timeout_turn", "timeout_match", "time_left", "max_memory")  # INFO: three of milliseconds, and bytes


class Gomocup(Protocol):
    """A conversation in Gomocup's protocol, which has no word for another player.

    Raises:
        SettingsError: several players, or a game in which another number in a row than five wins.
    """

    def __init__(self, models: Mapping[str, Player], talk: Conversation) -> None:
        super().__init__(models, talk)
        if len(models) > 1:
            raise SettingsError(f"--model: gomocup cannot ask for another player than {self._model}")
        if re.search(rf"\bk=(?!{_ROW}\b)", self._player.start.game):
            raise SettingsError(f"gomocup is for five in a row, but {self._model} plays {self._player.start.game}")
        self._size = self._player.start.obs_shape[1]
        self._played: list[int] = []
        self._limits: dict[str, int] = {}
        self._rule = 0
        self._board: list[str] | None = None  # the lines of a BOARD whose DONE has not come
        self._commands: dict[str, Callable[[str], str]] = {
            "START": self._start,
            "RECTSTART": self._start,
            "RESTART": lambda _: self._begin(),
            "BEGIN": self._open,
            "TURN": lambda text: self._move([*self._played, self._cell(text)]),
            "TAKEBACK": self._take_back,
            "INFO": self._info,
            "ABOUT": self._about,
        }

    def _take(self, line: str) -> bool:
        if line.upper() == "END":
            return False
        try:
            answer = self._answer(line)
        except Exception as error:  # errors of the network too: the conversation continues
            answer = f"ERROR {one_line(error)}"
        if answer:
            self._talk.say(answer)
        return True

    def _answer(self, line: str) -> str:
        """The answer to a line; empty for none."""
        word, rest = [*line.split(None, 1), "", ""][:2]
        word = word.upper()
        if self._board is not None and word not in self._commands:
            if word != "DONE":
                # More lines than cells are wrong, so do not keep them.
                self._board += [line] if line and len(self._board) <= self._size**2 else []
                return ""
            lines, self._board = self._board, None
            return self._set_up(lines)
        # A command instead of DONE ends this BOARD without an answer.
        self._board = [] if word == "BOARD" else None
        if word in self._commands:
            return self._commands[word](rest)
        return f"UNKNOWN {line[:60]}" if line and word != "BOARD" else ""

    def _about(self, _: str) -> str:
        return f'name="azpy", version="{azpy.__version__}", author="the authors of azpy", country="", www=""'

    def _start(self, text: str) -> str:
        found = re.fullmatch(r"([0-9]{1,4})(?:\s*,\s*([0-9]{1,4}))?", text)
        if found is None:
            raise RequestError(f"expected the size of the board, got {text[:40]!r}")
        if {int(number) for number in found.groups() if number is not None} != {self._size}:
            raise RequestError(f"unsupported size {text}: this player plays on {self._size} x {self._size}")
        return self._begin()

    def _begin(self) -> str:
        """Begin another game."""
        self._check_rule()
        self._forget()
        self._opened()  # open the engine here, because a move's clock would already run
        self._played = []
        self._limits.pop("time_left", None)
        return "OK"

    def _set_up(self, lines: list[str]) -> str:
        """BOARD: the stones x,y,1 of this player and x,y,2 of the other one, in the order in which they were played."""
        stones: dict[str, list[int]] = {"1": [], "2": []}
        for line in lines:
            cell, comma, whose = line.rpartition(",")
            if not comma or whose.strip() not in stones:
                raise RequestError(f"BOARD: expected x,y,1 or x,y,2, got {line[:40]!r}")
            stones[whose.strip()].append(self._cell(cell))
        own, other = stones.values()
        if len(other) - len(own) not in (0, 1):
            problem = f"{len(own)} own stones and {len(other)} of the opponent"
            raise RequestError(f"BOARD: {problem}, expected as many, or one more of the opponent")
        first, second = (own, other) if len(own) == len(other) else (other, own)
        # The order of the two players' stones does not matter to the rules.
        played = [cell for pair in zip(first, [*second, -1], strict=False) for cell in pair if cell >= 0]
        return self._move(played)

    def _open(self, _: str) -> str:
        if self._played:
            raise RequestError(
                f"BEGIN needs an empty board, and the board has {len(self._played)} stones: send RESTART"
            )
        return self._move([])

    def _take_back(self, text: str) -> str:
        cell = self._cell(text)
        if not self._played or self._played[-1] != cell:
            last = f"the last stone is at {self._name(self._played[-1])}" if self._played else "the board is empty"
            raise RequestError(f"{text[:40]} cannot be taken back: {last}")
        self._played.pop()
        return "OK"

    def _state(self, played: list[int]) -> _core.State:
        """The position after these stones.

        Raises:
            RequestError: a stone on another one, or one after the end of the game.
        """
        state = self._player.start.clone()
        for cell in played:
            if state.is_terminal:
                raise RequestError(f"the game is over before the stone at {self._name(cell)}")
            if cell not in state.legal_actions():
                raise RequestError(f"there is a stone at {self._name(cell)} already")
            state.play(cell)
        return state

    def _cell(self, text: str) -> int:
        found = re.fullmatch(r"\s*([0-9]{1,4})\s*,\s*([0-9]{1,4})\s*", text)
        if found is None or max(column := int(found[1]), row := int(found[2])) >= self._size:
            raise RequestError(f"expected x,y from 0,0 to {self._size - 1},{self._size - 1}, got {text[:40]!r}")
        return row * self._size + column

    def _name(self, cell: int) -> str:
        return f"{cell % self._size},{cell // self._size}"

    def _move(self, played: list[int]) -> str:
        """The player's own stone after these, which are on the board then."""
        self._check_rule()
        if self._state(played).is_terminal:
            self._played = played
            raise RequestError("the game is over: send RESTART or START")
        seconds = self._seconds()
        simulations = self._player.simulations if seconds is None else None
        answer = self._search(self._player.start, played, simulations=simulations, seconds=seconds).answer()
        action = chosen(self._player, answer.state, answer.result)
        self._played = [*played, action]
        return self._name(action)

    def _seconds(self) -> float | None:
        """Seconds for a move; None without a limit."""
        found = list[float]()
        if (turn := self._limits.get("timeout_turn")) is not None:
            # 0 means to move at once.
            found.append(turn / 1000 - _OVERHEAD)
        if match := self._limits.get("timeout_match", 0):
            found.append(seconds_to_think(self._limits.get("time_left", match) / 1000, _OVERHEAD))
        return max(0.001, min(found)) if found else None

    def _info(self, text: str) -> str:
        """Read INFO, which has no answer: errors and options without effect become a MESSAGE."""
        key, _, value = text.partition(" ")
        key, value = key.lower(), value.strip()
        if key != "rule" and key not in _LIMITS:
            return "" if key in _NEEDLESS else f"MESSAGE INFO {key[:40]} has no effect"
        if (number := whole(value)) is None:
            return f"MESSAGE INFO {key}: expected a whole number, got {value[:40]!r}"
        if key == "rule":
            self._rule = number
            return f"MESSAGE {self._rule_problem()}" if number else ""
        before, self._limits[key] = self._limits.get(key), max(0, number)
        if key == "max_memory" and before != self._limits[key] and self._engine is not None:
            self._close()
            try:
                self._opened()
            except Exception as error:  # the next move reports it again
                return f"MESSAGE {one_line(error)}"
        return ""

    def _check_rule(self) -> None:
        if self._rule:
            raise RequestError(self._rule_problem())

    def _rule_problem(self) -> str:
        names = [name for bit, name in _RULES.items() if bit & self._rule] or ["unknown"]
        return f"rule {self._rule} ({', '.join(names)}) is not played here: azpy plays rule 0, freestyle"

    def _engine_options(self) -> dict[str, int]:
        memory = self._limits.get("max_memory", 0)
        return {"threads": 1, "total_memory_mb": min(TREES_MB, max(1, memory >> 20)) if memory else TREES_MB}
