"""The Go Text Protocol, version 2 (Farnebäck's draft of 2002), with Leela Zero's and KataGo's analysis.

For Go, and for Othello as gtp-rhino speaks it. `gtp_boards` has what differs between the two.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import azpy
from azpy._core import Line
from azpy.errors import RequestError, one_line, warn_once
from azpy.matches.levels import LEVELS, WARMEST, level_word
from azpy.serving.gtp_boards import COLORS, board_of, expect
from azpy.serving.lines import Conversation
from azpy.serving.models import Player, chosen
from azpy.serving.request import OF_THE_REST, WITHOUT_END, Protocol, Search, SearchReport, Tell, seconds_to_think

KGS = ("none", "absolute", "byoyomi", "canadian")
SYSTEMS = (*KGS, "fischer", "fischer-capped")
"""The time systems of `kata-time_settings`, as KataGo names them. KGS has the first four."""

_ANALYZE = ("lz-analyze", "analyze", "kata-analyze")
_GENMOVE_ANALYZE = ("lz-genmove_analyze", "genmove_analyze", "kata-genmove_analyze")
_LEAST_REPORT = 0.05  # seconds between reports
_DEVIATIONS = 1.96  # standard errors of a lower confidence bound: the value is above it with 97.5 percent
_ALL: dict[str, Any] = {"lines": None, "standard_errors": True}  # the options for reports of an analysis
_UNUSED = {  # options of an analysis that do nothing, and why
    "ownership": "azpy's networks do not predict ownership",
    "pvVisits": "azpy does not report the visits along a line",
}
_TIME = r"[0-9]{1,10}(\.[0-9]{0,9})?"
_LIMITS = "the main time, the increment, the most main time and the most time of a move (-1: no limit)"
_NEEDED = {  # how many times and counts a system has, how many limits, and which
    "none": (0, 0, "nothing more"),
    "absolute": (1, 0, "the main time"),
    "byoyomi": (3, 0, "the main time, the time of a period and the number of periods"),
    "canadian": (3, 0, "the main time, the time of a period and its stones"),
    "fischer": (2, 0, "the main time and the increment"),
    "fischer-capped": (2, 2, _LIMITS),
}


@dataclass
class _Analysis:
    """What the words of an analysis ask for."""

    name: str  # of the command
    line: Line | None  # None: the color cannot move
    color: int
    interval: float = 1.0  # seconds between reports
    least: int = 0  # moves to tell, also those without a visit
    most: int = 10**6  # moves to tell
    has_root: bool = False  # whether the root is told
    actions: list[int] | None = None  # to choose among; None: all


class Gtp(Protocol):
    """A conversation in GTP."""

    def __init__(self, models: Mapping[str, Player], talk: Conversation) -> None:
        super().__init__(models, talk)
        self._simulations: int | None = None  # of every move, if the other program sets it
        self._temperature: float | None = None  # in place of the player's own
        self._level: str | None = None  # a word of `LEVELS`, in place of both
        self._board, self._times = board_of(self._player.start), Times()
        self._analysis: Search | None = None
        self._opened()
        self._commands: dict[str, Callable[[list[str]], str]] = {
            "protocol_version": lambda _: "2",
            "name": lambda _: f"azpy ({self._player.name})",
            "version": lambda _: azpy.__version__,
            "known_command": lambda words: str(bool(words) and words[0] in self._names()).lower(),
            "list_commands": lambda _: "\n".join(self._names()),
            "list_games": lambda _: self._board.name,
            "set_game": self._set_game,
            "boardsize": self._set_size,
            "clear_board": lambda _: self._clear(),
            "play": self._play,
            "genmove": lambda words: self._genmove(words, True),
            "reg_genmove": lambda words: self._genmove(words, False),
            "undo": lambda _: self._board.undo(),
            "time_settings": self._times.settings,
            "kgs-time_settings": lambda words: self._times.named_settings(words, KGS),
            "kata-time_settings": lambda words: self._times.named_settings(words, SYSTEMS),
            "kata-list_time_settings": lambda _: " ".join(SYSTEMS),
            "time_left": lambda words: self._times.left(_color(words), words[1:]),
            "final_score": lambda _: self._board.score(),
            "showboard": lambda _: self._board.picture(),
            "kata-list-params": lambda _: " ".join(self._parameters()),
            "kata-get-param": self._get_parameter,
            "kata-set-param": self._set_parameter,
            **self._board.commands,
        }

    def _names(self) -> list[str]:
        return sorted([*self._commands, *_ANALYZE, *_GENMOVE_ANALYZE, "quit"])

    def _take(self, line: str) -> bool:
        self._finish()  # any line ends an analysis, an empty one too
        words = line.partition("#")[0].split()
        number = words.pop(0) if words and re.fullmatch(r"[0-9]{1,9}", words[0]) else ""
        if not words:
            return True
        name, *rest = words
        if name == "quit":
            self._talk.say(f"={number}", "")
            return False
        try:
            if name in _ANALYZE:
                self._analyze(number, rest, name)
            elif name in _GENMOVE_ANALYZE:
                self._genmove_analyze(number, rest, name)
            elif name in self._commands:
                # An empty line ends an answer, so none may stand in it.
                text = re.sub(r"\n\s*(?=\n)", "", self._commands[name](rest).rstrip())
                self._talk.say(f"={number} {text}".rstrip(), "")
            else:
                raise RequestError("unknown command")
        except Exception as error:  # errors of the network too: later commands are still answered
            self._talk.say(f"?{number} {one_line(error)}", "")
        return True

    def _set_game(self, words: list[str]) -> str:
        expect(words, r"\S+", "a game")
        if words[0].lower() != self._board.name.lower():
            raise RequestError(f"unsupported game: this player plays {self._board.name}")
        return ""

    def _set_size(self, words: list[str]) -> str:
        expect(words, "[0-9]{1,4}", "a whole number")
        if int(words[0]) != self._board.size:
            raise RequestError("unacceptable size")
        return self._clear()

    def _clear(self) -> str:
        self._board.clear()
        self._times.forget()
        self._forget()
        return ""

    def _play(self, words: list[str]) -> str:
        expect(words, r"\S+ \S+", "a color and a vertex")
        self._board.play(_color(words), words[1])
        return ""

    def _parameters(self) -> dict[str, str]:
        """KataGo's names of what can be set, and the values now."""
        found = {
            "maxVisits": str(self._visits() or self._player.simulations),
            "chosenMoveTemperature": f"{self._warmth():g}",
            "level": self._level or "none",
        }
        return found if len(self._models) == 1 else {**found, "model": self._model}

    def _visits(self) -> int | None:
        """The simulations of every move, if the other program or a level sets them."""
        return self._simulations if self._level is None else self._player.ladder.levels[self._level].simulations

    def _warmth(self) -> float:
        """The temperature of the moves that are played."""
        if self._level is not None:
            return self._player.ladder.levels[self._level].temperature
        return self._player.temperature if self._temperature is None else self._temperature

    def _get_parameter(self, words: list[str]) -> str:
        expect(words, r"\S+", "a parameter")
        return self._parameters()[self._parameter(words[0])]

    def _set_parameter(self, words: list[str]) -> str:
        expect(words, r"\S+ .+", "a parameter and its value")
        name, text = self._parameter(words[0]), " ".join(words[1:])
        if name == "model":
            self._change_model(text)
        elif name == "level":
            word = level_word(text)
            if word is None and text != "none":
                raise RequestError(f"level: expected none, {', '.join(LEVELS)}")
            self._level = word
            if word is not None and self._player.ladder.network is None:
                return self._player.ladder.about(None)
        elif name == "maxVisits":
            if not re.fullmatch(r"0*[1-9][0-9]{0,8}", text):
                raise RequestError("maxVisits: expected a whole number of at least 1")
            self._simulations, self._level = int(text), None
        else:
            if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{0,6})?", text) or float(text) > WARMEST:
                raise RequestError(f"chosenMoveTemperature: expected a number from 0 to {WARMEST:g}")
            self._temperature, self._level = float(text), None
        return ""

    def _parameter(self, name: str) -> str:
        if name not in self._parameters():
            raise RequestError(f"unknown parameter: expected {', '.join(self._parameters())}")
        return name

    def _change_model(self, name: str) -> None:
        """Have another player go on from the present position, with a new tree."""
        if name not in self._models:
            raise RequestError(f"model: expected {', '.join(self._models)}")
        if not self._board.fits(self._models[name].start):
            raise RequestError(f"model: {name} plays {self._models[name].start.game}, not the current game")
        if name != self._model:
            self._close()
            self._model = name
            self._opened()

    def _genmove(self, words: list[str], plays: bool) -> str:
        color = _color(words, alone=True)
        line = self._board.line_of(color)
        if line is None:
            return "pass"
        answer = self._think(line, color)
        # GTP's regression tests expect the best move.
        action = chosen(self._player, answer.state, answer.result, self._warmth() if plays else 0)
        if plays:
            self._board.advance(line, action)
        return self._board.vertex(answer.state, action)

    def _think(self, line: Line, color: int, tell: Tell | None = None, **options: Any) -> SearchReport:
        """The result of a search within the time of a move of this color."""
        seconds = self._times.seconds(color)
        simulations = self._visits() or (self._player.simulations if seconds is None else None)
        limits = {"simulations": simulations, "seconds": seconds} | options
        return self._search(line.start, line.played, tell, self._level is not None, **limits).answer()

    def _analyze(self, number: str, words: list[str], name: str) -> None:
        asked = self._read_analyze(words, name)
        if (line := asked.line) is None:
            raise RequestError("cannot analyze: this color has no move")
        options: dict[str, Any] = {"actions": asked.actions, "report_every": asked.interval, "priority": "analysis"}
        self._follow(line.start, line.played)  # open before the answer begins, so that an error is reported
        self._talk.say(f"={number}")
        tell = partial(self._tell, asked)
        self._analysis = self._search(line.start, line.played, tell, simulations=WITHOUT_END, **options, **_ALL)

    def _genmove_analyze(self, number: str, words: list[str], name: str) -> None:
        asked = self._read_analyze(words, name)
        options: dict[str, Any] = {"actions": asked.actions, "report_every": asked.interval}
        self._talk.say(f"={number}")
        try:
            vertex = "pass"
            if (line := asked.line) is not None:
                answer = self._think(line, asked.color, partial(self._tell, asked), **options, **_ALL)
                action = chosen(self._player, answer.state, answer.result, self._warmth())
                vertex = self._board.vertex(answer.state, action)
                self._board.advance(line, action)
                self._tell(asked, answer)
            self._talk.say(f"play {vertex}", "")
        except Exception as error:  # the answer has begun, so report the error inside it
            self._talk.say(f"error: {one_line(error)}", "")

    def _tell(self, asked: _Analysis, report: SearchReport) -> None:
        """Tell the root's visited actions in one line, as the analysis asked for them."""
        result, found, is_kata = report.result, [], asked.name.startswith("kata")
        places = {int(action): index for index, action in enumerate(result.actions)}
        told = report.lines(len(places))
        if told and len(told) < asked.least:  # actions without visits follow, by their priors
            rest = set(asked.actions or places) - {actions[0] for actions, _, _ in told}
            likely = sorted(rest & places.keys(), key=lambda action: -result.priors[places[action]])
            told += [([action], 0, result.value) for action in likely[: asked.least - len(told)]]
        for order, (actions, visits, q) in enumerate(told[: asked.most]):
            index = places[actions[0]]
            error = float(result.standard_errors[index])  # NaN: not known
            bound = max(-1.0, q - _DEVIATIONS * error) if error == error else -1.0
            shares = {"winrate": (q + 1) / 2, "prior": float(result.priors[index]), "lcb": (bound + 1) / 2}
            numbers = " ".join(
                f"{word} {share:.6f}" if is_kata else f"{word} {round(10_000 * share)}"
                for word, share in shares.items()
            )
            vertices = [self._board.vertex(report.state, action) for action in actions]
            line = " ".join(vertices)
            found.append(f"info move {vertices[0]} visits {visits} {numbers} order {order} pv {line}")
        if asked.has_root and is_kata:
            found.append(f"rootInfo visits {result.visits.sum()} winrate {(result.value + 1) / 2:.6f}")
        if found:  # an empty line would end the answer
            self._talk.say(" ".join(found))

    def _read_analyze(self, words: Sequence[str], name: str) -> _Analysis:
        """Read the words after the command `name`."""
        rest, color = list(words), max(0, self._board.line.state.turn)
        if rest and rest[0].lower() in COLORS:
            color = _color([rest.pop(0)])
        asked, named = _Analysis(name, self._board.line_of(color), color), {"allow": set[str](), "avoid": set[str]()}
        if rest and rest[0].isdecimal():
            rest.insert(0, "interval")
        while rest:
            word, value = rest.pop(0), rest[0].lower() if rest else ""
            number = int(value) if re.fullmatch("[0-9]{1,6}", value) else None
            if word in named and len(rest) >= 3:
                self._name_actions(named[word], rest[:3], color)
                del rest[:3]
                continue
            if word == "interval" and number is not None:
                asked.interval = max(_LEAST_REPORT, number / 100)
            elif word == "minmoves" and number is not None:
                asked.least = number
            elif word == "maxmoves" and number is not None:
                asked.most = number
            elif word == "rootInfo" and value in {"true", "false"}:
                asked.has_root = value == "true"
            elif word in _UNUSED and value in {"true", "false"}:
                if value == "true":
                    warn_once(f"{word} has no effect in an analysis: {_UNUSED[word]}")
            else:
                raise RequestError(f"syntax error: {word}")
            rest.pop(0)
        if asked.line is not None and any(named.values()):
            state = asked.line.state
            legal = {self._board.vertex(state, action).upper(): action for action in state.legal_actions()}
            allowed = (named["allow"] or set(legal)) - named["avoid"]
            asked.actions = [action for vertex, action in legal.items() if vertex in allowed]
            if not asked.actions:
                raise RequestError("allow, avoid: no legal move is left")
        return asked

    def _name_actions(self, found: set[str], words: Sequence[str], color: int) -> None:
        """Add the vertices of `allow` or `avoid`, if they are of the color that is analyzed."""
        state, names = self._board.line.state, words[1].upper().split(",")
        known = {self._board.vertex(state, action).upper() for action in range(state.num_actions)}
        if wrong := [name for name in names if name not in known]:
            raise RequestError(f"syntax error: {wrong[0][:20]} is not a vertex of this board")
        if not re.fullmatch("[0-9]{1,6}", words[2]):
            raise RequestError(f"syntax error: expected a number of moves, got {words[2][:20]}")
        if int(words[2]) > 1:
            warn_once("allow and avoid apply only to the first move of an analysis, not to later moves")
        if _color(words) == color:
            found.update(names)

    def _finish(self) -> None:
        analysis, self._analysis = self._analysis, None
        if analysis is None:
            return
        analysis.stop()
        try:
            analysis.answer()
        except Exception as error:  # of the network too
            self._talk.say(f"error: {one_line(error)}")
        self._talk.say("")


def _color(words: Sequence[str], alone: bool = False) -> int:
    """The color that the words begin with."""
    if not words or (alone and len(words) > 1) or words[0].lower() not in COLORS:
        raise RequestError("syntax error: expected a color")
    return COLORS[words[0].lower()]


@dataclass(frozen=True)
class _System:
    """A time system; in seconds."""

    main: float
    period: float = 0.0  # the time of a period that follows the main time
    moves: int = 0  # of a period; 0 for a system without periods
    counts_periods: bool = False  # whether the stones of `time_left` are periods that are left, as in byo-yomi
    increment: float = 0.0  # added after each move
    most_left: float = math.inf  # time beyond it is lost after a move
    most_of_a_move: float = math.inf


class Times:
    """The clocks, as the other program reports them.

    Args:
        overhead: seconds a move that pass outside of the search.
    """

    def __init__(self, overhead: float = 0.05) -> None:
        self._overhead = overhead
        self._system: _System | None = None  # None: no limit
        self._told: dict[int, tuple[float, int]] = {}  # by color: seconds, and stones or periods

    def forget(self) -> None:
        """Fill both clocks again."""
        self._told = {}

    def settings(self, words: Sequence[str]) -> str:
        """`time_settings`: the main time, the time of a period and its stones."""
        main, period, stones = _numbers(words, "canadian")
        is_limited = period == 0 or stones >= 1
        return self._begin(_System(main, period, int(stones) if period > 0 else 0) if is_limited else None)

    def named_settings(self, words: Sequence[str], systems: Sequence[str]) -> str:
        """`kgs-time_settings` and `kata-time_settings`: a time system and its numbers."""
        kind = words[0].lower() if words else ""
        if kind not in systems:
            raise RequestError(f"syntax error: expected {', '.join(systems)}, and its numbers")
        numbers = _numbers(words[1:], kind, f"{kind} and ")
        if kind == "none":
            return self._begin(None)
        if kind in {"byoyomi", "canadian"}:
            main, period, count = numbers
            if count < 1 or count != int(count):
                raise RequestError(f"syntax error: expected {kind} and {_NEEDED[kind][2]}, at least 1 of them")
            is_byoyomi = kind == "byoyomi"
            return self._begin(_System(main, period, 1 if is_byoyomi else int(count), is_byoyomi))
        main, increment, *limits = (*numbers, *(0.0, -1.0, -1.0)[len(numbers) - 1 :])
        most_left, most_of_a_move = (limit if limit >= 0 else math.inf for limit in limits)
        if most_left < main:
            raise RequestError(f"the main time is {main:g} s, more than the most main time of {most_left:g} s")
        return self._begin(_System(main, increment=increment, most_left=most_left, most_of_a_move=most_of_a_move))

    def _begin(self, system: _System | None) -> str:
        self._system = system
        self.forget()
        return ""

    def left(self, color: int, words: Sequence[str]) -> str:
        """`time_left`: seconds, and the stones or periods that are left; 0 of them in the main time."""
        expect(words, f"-?{_TIME} -?{_TIME}", "a color, seconds and stones")
        self._told[color] = max(0.0, float(words[0])), int(float(words[1]))
        return ""

    def seconds(self, color: int) -> float | None:
        """Seconds for a move of this color, at least a thousandth; None without a limit."""
        system = self._system
        if system is None:
            return None
        full = (system.period, system.moves) if system.main == 0 and system.moves else (system.main, 0)
        left, stones = self._told.get(color, full)
        # Servers that cannot send an increment send a period of one stone, with the whole clock as its rest.
        in_period = stones > 0 and left <= system.period
        # A byo-yomi period is full again after each move within it.
        moves = (1 if system.counts_periods else stones) if in_period else None
        seconds = seconds_to_think(left, self._overhead, system.increment, moves)
        if system.moves and not in_period:
            # A period follows the main time, so each move may take at least its share of one.
            seconds = max(seconds, seconds_to_think(system.period, self._overhead, moves=system.moves))
        # Use the time that would be lost after the move.
        seconds = max(seconds, min(left + system.increment - system.most_left, OF_THE_REST * left))
        return max(0.001, min(seconds, system.most_of_a_move - self._overhead))


def _numbers(words: Sequence[str], kind: str, before: str = "") -> list[float]:
    """The numbers of a time system. A limit may be below 0."""
    count, limits, needed = _NEEDED[kind]
    expect(words, " ".join([_TIME] * count + [f"-?{_TIME}"] * limits), f"{before}{needed}")
    return [float(word) for word in words]
