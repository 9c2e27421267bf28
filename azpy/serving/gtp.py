"""The Go Text Protocol, version 2, for Go (Farnebäck's draft of 2002), with Leela Zero's and KataGo's analysis.

Players of this protocol go on where azpy's rules end a game (two passes, too many plies), and put two stones of a color
in a row. The stones of the board are then set up anew, as a position without a past.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import azpy
from azpy import _core
from azpy.errors import AzpyError
from azpy.games.names import make_position
from azpy.serving.clock import Clock, seconds_to_think
from azpy.serving.lines import Conversation
from azpy.serving.models import TREES_MB, Served
from azpy.serving.pending import Pending
from azpy.serving.track import Track

__all__ = ["Gtp"]

_COLORS = {"b": 0, "black": 0, "w": 1, "white": 1}
_COLUMNS = "ABCDEFGHJKLMNOPQRST"
_WITHOUT_END = 2**32 - 1  # simulations
_MOST_UNDONE = 1000  # commands
_PATIENCE = 1.0  # seconds after the end for a program that reads no answers
_LONGEST_SGF = 4 << 20  # bytes
_DEVIATIONS = 1.96  # standard errors of a lower confidence bound: 95 percent
_ANALYZE = {"lz-analyze": "lz", "analyze": "lz", "kata-analyze": "kata"}
_GENMOVE_ANALYZE = {"lz-genmove_analyze": "lz", "genmove_analyze": "lz", "kata-genmove_analyze": "kata"}


class _Refused(Exception):  # noqa: N818
    """A command that fails; its text is the answer."""


class Gtp:
    """A conversation in GTP.

    Args:
        models: players by name; the first one plays until another one is asked for.
        talk: lines in and out.
        overhead: seconds a move that pass outside of the search.
    """

    def __init__(self, models: Mapping[str, Served], talk: Conversation, overhead: float = 0.05) -> None:
        served = next(iter(models.values()))
        self._served, self._talk, self._overhead = served, talk, overhead
        self._size = served.start.obs_shape[1]
        self._komi = _parameter(served.start.game, "komi", 7.5)
        self._start, self._played = served.start, list[int]()
        self._past = deque[tuple[_core.State, list[int]]](maxlen=_MOST_UNDONE)
        self._track = Track(served, {"threads": 1, "total_memory_mb": TREES_MB})
        self._main, self._period, self._stones = 0.0, -1.0, 0  # the time settings, in seconds; -1 for none yet
        self._clocks: dict[int, Clock] = {}
        self._analysis: Pending | None = None
        self._commands: dict[str, Callable[[list[str]], str]] = {
            "protocol_version": lambda _: "2",
            "name": lambda _: f"azpy ({self._served.name})",
            "version": lambda _: azpy.__version__,
            "known_command": lambda words: str(bool(words) and words[0] in self._names()).lower(),
            "list_commands": lambda _: "\n".join(self._names()),
            "boardsize": self._boardsize,
            "clear_board": lambda _: self._clear(),
            "komi": self._set_komi,
            "play": self._play,
            "genmove": lambda words: self._genmove(words, True),
            "reg_genmove": lambda words: self._genmove(words, False),
            "undo": lambda _: self._undo(),
            "time_settings": self._time_settings,
            "time_left": self._time_left,
            "final_score": lambda _: self._score(),
            "showboard": lambda _: "\n" + str(self._state()),
            "fixed_handicap": lambda words: self._handicap(words, 9),
            "place_free_handicap": lambda words: self._handicap(words, 9),
            "set_free_handicap": lambda words: self._set_stones([self._vertex(word) for word in words]),
            "loadsgf": self._load,
            "printsgf": lambda _: self._state().to_text(),
        }

    def _names(self) -> list[str]:
        return sorted([*self._commands, *_ANALYZE, *_GENMOVE_ANALYZE, "quit"])

    def run(self) -> None:
        """Answers commands until `quit`, the end of the input, or nobody reads the answers."""
        try:
            for line in self._talk.lines():
                self._end_analysis()  # any line ends it, an empty one too
                words = line.partition("#")[0].split()
                number = words.pop(0) if words and re.fullmatch(r"[0-9]{1,9}", words[0]) else ""
                if not words:
                    continue
                name, rest = words[0], words[1:]
                if name == "quit":
                    self._talk.say(f"={number}", "")
                    return
                try:
                    if name in _ANALYZE:
                        self._analyze(number, rest, _ANALYZE[name])
                    elif name in _GENMOVE_ANALYZE:
                        self._genmove_analyze(number, rest, _GENMOVE_ANALYZE[name])
                    elif name in self._commands:
                        text = self._commands[name](rest)
                        # An empty line ends an answer, so none may stand in it.
                        text = re.sub(r"\n\s*(?=\n)", "", text.rstrip())
                        self._talk.say(f"={number} {text}".rstrip(), "")
                    else:
                        raise _Refused("unknown command")
                except Exception as error:  # of the network too: the conversation goes on
                    self._talk.say(f"?{number} {' '.join(str(error).split())[:500] or type(error).__name__}", "")
                if self._talk.gone.is_set():
                    return
        finally:
            self._talk.leave(_PATIENCE)
            self._end_analysis()
            self._track.close()

    # The board --------------------------------------------------------------------------------------------------------

    def _state(self) -> _core.State:
        state = self._start.clone()
        for action in self._played:
            state.play(action)
        return state

    def _go(self) -> _core.State:
        return make_position(f"go(size={self._size},komi={self._komi:g})")

    def _boardsize(self, words: list[str]) -> str:
        size = self._number(words)
        if size != self._size:
            raise _Refused("unacceptable size")
        return self._clear()

    def _clear(self) -> str:
        self._start, self._played, self._clocks = self._go(), [], {}
        self._past.clear()
        return ""

    def _set_komi(self, words: list[str]) -> str:
        if len(words) != 1 or not re.fullmatch(r"-?[0-9]{1,4}(\.[0-9]{0,3})?", words[0]):
            raise _Refused("syntax error: expected a number")
        komi, self._komi = self._komi, float(words[0])
        try:
            self._set_up(self._stones_of(self._state()), self._state().turn)
        except (ValueError, AzpyError):
            self._komi = komi
            raise _Refused(f"unacceptable komi: expected a half or a whole number, got {words[0]}") from None
        return ""

    def _play(self, words: list[str]) -> str:
        if len(words) != 2:
            raise _Refused("syntax error: expected a color and a vertex")
        color, name = self._color(words[0]), words[1].upper()
        before = self._start, self._played
        state = self._to_move(color)
        name = "pass" if name == "PASS" else name
        action = next((action for action in state.legal_actions() if state.action_name(action) == name), None)
        if action is None:
            self._start, self._played = before
            raise _Refused("illegal move")
        self._past.append(before)
        self._played = [*self._played, action]
        return ""

    def _undo(self) -> str:
        if not self._past:
            raise _Refused("cannot undo")
        self._start, self._played = self._past.pop()
        return ""

    def _to_move(self, color: int) -> _core.State:
        """The position with this color to move, set up anew where azpy's game is over or expects the other color."""
        state = self._state()
        if state.is_terminal or state.turn != color:
            self._set_up(self._stones_of(state), color)
            state = self._start
        return state

    def _set_up(self, stones: Mapping[int, Sequence[str]], color: int) -> None:
        """Begins at a board with these stones of each color, as SGF names its points."""
        setup = "".join(
            f"{tag}{''.join(f'[{point}]' for point in stones[player])}"
            for player, tag in ((0, "AB"), (1, "AW"))
            if stones[player]
        )
        text = f"(;GM[1]FF[4]SZ[{self._size}]KM[{self._komi:g}]{setup}PL[{'BW'[color]}])"
        self._start, self._played = _core.parse_state(self._go(), text), []

    def _stones_of(self, state: _core.State) -> dict[int, list[str]]:
        """The stones of each color, as SGF names their points."""
        rows = [line.split()[1:] for line in state.render(color=False).splitlines() if re.match(r" ?[0-9]+ ", line)]
        found: dict[int, list[str]] = {0: [], 1: []}
        for row, cells in enumerate(rows):
            for column, cell in enumerate(cells[: self._size]):
                if cell in "xo":
                    found["xo".index(cell)].append(chr(97 + column) + chr(97 + row))
        return found

    def _handicap(self, words: list[str], most: int) -> str:
        count = self._number(words)
        size, edge = self._size, 3 if self._size >= 13 else 2
        low, middle, high = edge, size // 2, size - 1 - edge
        # The order of the specification's table: corners, then the middle for odd numbers, then the sides.
        corners = [(low, high), (high, low), (high, high), (low, low)]
        sides = [(low, middle), (high, middle), (middle, low), (middle, high)]
        if size % 2 == 0 or size < 7:
            most = 4
        if not 2 <= count <= most:
            raise _Refused(f"invalid number of stones: expected 2 to {most}")
        points = [*corners, *sides][: count - (count % 2 if count > 4 else 0)]
        if count > 4 and count % 2:
            points.append((middle, middle))
        return self._set_stones(points)

    def _set_stones(self, points: Sequence[tuple[int, int]]) -> str:
        stones = self._stones_of(self._state())
        if stones[0] or stones[1]:
            raise _Refused("board not empty")
        if len(points) < 2 or len(set(points)) < len(points):
            raise _Refused("invalid vertex list: expected two stones at least, and none twice")
        before = self._start, self._played
        names = [chr(97 + column) + chr(97 + self._size - 1 - row) for column, row in points]
        self._set_up({0: names, 1: []}, 1)
        self._past.append(before)
        return " ".join(f"{_COLUMNS[column]}{row + 1}" for column, row in points)

    def _load(self, words: list[str]) -> str:
        if len(words) != 1:
            raise _Refused("syntax error: expected a file")
        path = Path(words[0])
        # A pipe or a device may never end. So may a file of the kernel, which has no size.
        if not path.is_file() or not 0 < (size := path.stat().st_size) <= _LONGEST_SGF:
            raise _Refused(f"cannot load file: expected a game, of at most {_LONGEST_SGF >> 20} MiB")
        with path.open("rb") as file:
            text = file.read(size)
        state = _core.parse_state(self._go(), text.decode("utf-8", errors="replace"))
        self._past.append((self._start, self._played))
        self._start, self._played = state, []
        return ""

    def _score(self) -> str:
        state = self._state()
        while not state.is_terminal:
            state.play(state.num_actions - 1)
        found = re.search(r"RE\[([^\]]*)\]", state.to_text())
        return found[1] if found is not None else "0"

    # Time -------------------------------------------------------------------------------------------------------------

    def _time_settings(self, words: list[str]) -> str:
        if len(words) != 3 or not all(re.fullmatch(r"[0-9]{1,7}(\.[0-9]*)?", word) for word in words):
            raise _Refused("syntax error: expected the main time, the time of a period and its stones")
        self._main, self._period, self._stones = float(words[0]), float(words[1]), int(float(words[2]))
        self._clocks = {}
        return ""

    def _time_left(self, words: list[str]) -> str:
        if len(words) != 3 or not all(re.fullmatch(r"-?[0-9]{1,7}(\.[0-9]*)?", word) for word in words[1:]):
            raise _Refused("syntax error: expected a color, seconds and stones")
        stones = int(float(words[2]))
        self._clocks[self._color(words[0])] = Clock(max(0.0, float(words[1])), moves=stones if stones > 0 else None)
        return ""

    def _seconds(self, color: int) -> float | None:
        """Seconds for a move of this color; None without a limit."""
        if self._period < 0 or (self._period > 0 and self._stones == 0):
            return None
        full = Clock(self._period, moves=self._stones) if self._main == 0 else Clock(self._main)
        clock = self._clocks.get(color, full)
        seconds = seconds_to_think(clock, self._overhead)
        if clock.moves is None and self._stones > 0:
            # A period follows the main time: its share of a move can be had in any case.
            seconds = max(seconds, min(clock.left, self._period / self._stones) - self._overhead)
        return max(0.001, seconds)

    # Searches ---------------------------------------------------------------------------------------------------------

    def _genmove(self, words: list[str], plays: bool) -> str:
        color = self._color(words[0] if len(words) == 1 else "")
        before = self._start, self._played
        state = self._to_move(color)
        result = self._search(color)
        action = state.num_actions - 1 if result.action is None else result.action
        if plays:
            self._past.append(before)
            self._played = [*self._played, action]
        else:
            self._start, self._played = before
        return state.action_name(action)

    def _search(self, color: int, tell: Callable[[_core.SearchResult], object] | None = None) -> _core.SearchResult:
        game = self._track.follow(self._start, self._played)
        seconds = self._seconds(color)
        simulations = None if seconds is not None else self._served.simulations
        return game.search(simulations, seconds=seconds, on_report=tell).result()

    def _analyze(self, number: str, words: list[str], form: str) -> None:
        state, interval, actions = self._read_analyze(words)
        game = self._track.follow(self._start, self._played)
        self._talk.say(f"={number}")
        self._analysis = game.search(
            _WITHOUT_END,
            priority="analysis",
            actions=actions,
            on_report=lambda result: self._talk.say(_info(state, result, form)),
            report_every=interval,
        )

    def _genmove_analyze(self, number: str, words: list[str], form: str) -> None:
        before = self._start, self._played
        state, _, _ = self._read_analyze(words)
        self._talk.say(f"={number}")
        try:
            result = self._search(state.turn, lambda result: self._talk.say(_info(state, result, form)))
            action = state.num_actions - 1 if result.action is None else result.action
            self._past.append(before)
            self._played = [*self._played, action]
            self._talk.say(_info(state, result, form), f"play {state.action_name(action)}")
        except Exception as error:  # the answer has begun, so it cannot become an error any more
            self._talk.say(f"info string error: {' '.join(str(error).split())[:500] or type(error).__name__}")
        finally:
            self._talk.say("")

    def _read_analyze(self, words: Sequence[str]) -> tuple[_core.State, float, list[int] | None]:
        """The position, the seconds between reports, and the actions to choose among, of an analysis."""
        rest = list(words)
        color = self._color(rest.pop(0)) if rest and rest[0].lower() in _COLORS else max(0, self._state().turn)
        interval, allowed, avoided = 1.0, set[str](), set[str]()
        if rest and re.fullmatch(r"[0-9]{1,6}", rest[0]):
            interval = int(rest.pop(0)) / 100
        while rest:
            word = rest.pop(0)
            if word == "interval" and rest and re.fullmatch(r"[0-9]{1,6}", rest[0]):
                interval = int(rest.pop(0)) / 100
            elif word in {"minmoves", "maxmoves", "ownership", "rootInfo", "pvVisits"} and rest:
                rest.pop(0)
            elif word in {"allow", "avoid"} and len(rest) >= 3:
                names = {name.upper() for name in rest[1].split(",")}
                (allowed if word == "allow" else avoided).update(names)
                del rest[:3]
            else:
                raise _Refused(f"syntax error: {word}")
        state = self._to_move(color)
        if not allowed and not avoided:
            return state, max(0.05, interval), None
        legal = {state.action_name(action).upper(): action for action in state.legal_actions()}
        chosen = [action for name, action in legal.items() if name in (allowed or legal) and name not in avoided]
        return state, max(0.05, interval), chosen or None

    def _end_analysis(self) -> None:
        analysis, self._analysis = self._analysis, None
        if analysis is not None:
            analysis.stop()
            analysis.exception()
            self._talk.say("")

    # Words ------------------------------------------------------------------------------------------------------------

    @staticmethod
    def _color(word: str) -> int:
        if word.lower() not in _COLORS:
            raise _Refused("syntax error: expected a color")
        return _COLORS[word.lower()]

    @staticmethod
    def _number(words: Sequence[str]) -> int:
        if len(words) != 1 or not re.fullmatch(r"[0-9]{1,4}", words[0]):
            raise _Refused("syntax error: expected a whole number")
        return int(words[0])

    def _vertex(self, word: str) -> tuple[int, int]:
        """Column and row of a vertex, from the bottom left."""
        found = re.fullmatch(r"([A-HJ-T])([0-9]{1,2})", word.upper())
        if found is None or _COLUMNS.index(found[1]) >= self._size or not 1 <= int(found[2]) <= self._size:
            raise _Refused(f"invalid vertex {word}")
        return _COLUMNS.index(found[1]), int(found[2]) - 1


def _parameter(game: str, name: str, otherwise: float) -> float:
    found = re.search(rf"{name}=(-?[0-9.]+)", game)
    return otherwise if found is None else float(found[1])


def _info(state: _core.State, result: _core.SearchResult, form: str) -> str:
    """The root's visited actions in one line, the most visited first."""
    places = {int(action): index for index, action in enumerate(result.actions)}
    found = []
    for order, (actions, visits, q) in enumerate(result.principal_variations(len(places))):
        index = places[actions[0]]
        error = float(result.standard_errors[index])
        shares = {
            "winrate": (q + 1) / 2,
            "prior": float(result.priors[index]),
            "lcb": max(0.0, (q + 1) / 2 - (_DEVIATIONS * error / 2 if error == error else 1.0)),
        }
        numbers = " ".join(
            f"{name} {round(10_000 * share)}" if form == "lz" else f"{name} {share:.6f}"
            for name, share in shares.items()
        )
        line = " ".join(state.action_name(action) for action in actions)
        found.append(f"info move {state.action_name(actions[0])} visits {visits} {numbers} order {order} pv {line}")
    return " ".join(found)
