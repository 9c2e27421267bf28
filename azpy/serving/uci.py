"""UCI for chess, and UGI, which has UCI's shape, for every game.

One search at a time goes on in the background. `Uci.run` reads commands until `quit` or the end of the input.
Sources: the UCI specification of April 2004 (Huber, Meyer-Kahlen); UGI as CuteGames and others speak it.
"""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field

import numpy as np

import azpy
from azpy import _core
from azpy.serving.clock import Clock, seconds_to_think
from azpy.serving.lines import Conversation
from azpy.serving.models import TREES_MB, Served, chosen
from azpy.serving.pending import Pending
from azpy.serving.track import Track

__all__ = ["Uci"]

_WITHOUT_END = 2**32 - 1  # simulations
_REPORT_EVERY = 0.5  # seconds
_WORDS = {"wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "mate", "movetime"}  # each with a number
_PATIENCE = 1.0  # seconds after the end for a program that reads no answers
_LONGEST_NUMBER = 18  # digits


@dataclass(frozen=True)
class Option:
    """A setting of the protocol: a number in a range, a switch (`low` is None), or a text (`text`)."""

    default: int | bool | str
    low: int | None = None
    high: int | None = None

    def declared(self) -> str:
        """The option as `uci` lists it."""
        if isinstance(self.default, bool):
            return f"type check default {str(self.default).lower()}"
        if isinstance(self.default, str):
            return f"type string default {self.default or '<empty>'}"
        return f"type spin default {self.default} min {self.low} max {self.high}"

    def read(self, text: str) -> int | bool | str:
        """The value of a text.

        Raises:
            ValueError: a text that is no such value; says what was expected.
        """
        if isinstance(self.default, bool):
            if text.lower() not in {"true", "false"}:
                raise ValueError(f"expected true or false, got {text!r}")
            return text.lower() == "true"
        if isinstance(self.default, str):
            return "" if text == "<empty>" else text
        number = whole(text)
        if number is None or self.low is None or self.high is None or not self.low <= number <= self.high:
            raise ValueError(f"expected a whole number from {self.low} to {self.high}, got {text!r}")
        return number


def _options(served: Served) -> dict[str, Option]:
    return {
        "Threads": Option(1, 1, 1024),
        "Hash": Option(TREES_MB, 1, 1 << 20),  # MB of all trees
        "NNCacheSize": Option(200_000, 0, 1 << 28),  # answers of the network
        "Move Overhead": Option(30, 0, 60_000),  # ms
        "MultiPV": Option(1, 1, 500),
        "Ponder": Option(False),
        "Simulations": Option(0, 0, _WITHOUT_END),  # of every move, in place of its time; 0: as `go` says
        "Temperature": Option(round(100 * served.temperature), 0, 1000),  # hundredths
        "UCI_ShowWDL": Option(False),
        "VerboseMoveStats": Option(False),
        "SyzygyPath": Option(""),
        "UCI_Chess960": Option("chess960" in served.start.game and "chess960=off" not in served.start.game),
    }


def whole(text: str) -> int | None:
    """The whole number that a text is; None if it is none."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= _LONGEST_NUMBER else None


@dataclass
class Thinking:
    """A search that goes on."""

    pending: Pending
    state: _core.State  # the position searched
    held: threading.Event  # set once the answer may be given
    said: threading.Event = field(default_factory=threading.Event)  # set once it has been given
    on_hit: Callable[[], None] = lambda: None  # what `ponderhit` begins
    timer: threading.Timer | None = None


class Uci:
    """A conversation in UCI, or in UGI.

    Args:
        models: players by name; the first one plays until another one is asked for.
        talk: lines in and out.
        word: "uci" or "ugi".
    """

    def __init__(self, models: Mapping[str, Served], talk: Conversation, word: str = "uci") -> None:
        served = next(iter(models.values()))
        self._served, self._talk, self._word = served, talk, word
        self._options = _options(served)
        self._values: dict[str, int | bool | str] = {name: option.default for name, option in self._options.items()}
        self._track: Track | None = None
        self._start, self._played = served.start, list[int]()  # of the game: where it began, and what was played
        self._thinking: Thinking | None = None
        self._told_of_wdl = False
        self._commands: dict[str, Callable[[list[str]], None]] = {
            word: self._introduce,
            "isready": self._is_ready,
            "setoption": self._set_option,
            f"{word}newgame": lambda _: self._new_game(),
            "position": self._position,
            "go": self._go,
            "stop": lambda _: self._stop(),
            "ponderhit": lambda _: self._ponder_hit(),
            "debug": lambda _: None,
            "register": lambda _: None,
            "quit": lambda _: None,
        }
        if word == "ugi":
            self._commands["query"] = self._query

    def run(self) -> None:
        """Answers commands until `quit`, the end of the input, or nobody reads the answers."""
        try:
            for line in self._talk.lines():
                words = line.split()
                # Unknown words before a command are skipped, as the specification wants it.
                at = next((at for at, word in enumerate(words) if word in self._commands), None)
                if at is None:
                    continue
                name = words[at]
                if name == "quit" or self._talk.gone.is_set():
                    return
                try:
                    self._commands[name](words[at + 1 :])
                except Exception as error:  # of the network or a game too: the conversation goes on
                    self._say_error(error)
                    if name == "go":  # the other program waits for it
                        self._talk.say("bestmove (none)")
        finally:
            self._talk.leave(_PATIENCE)
            self._close()

    # Commands ---------------------------------------------------------------------------------------------------------

    def _introduce(self, _: list[str]) -> None:
        self._talk.say(
            f"id name azpy {azpy.__version__} ({self._served.name})",
            "id author the authors of azpy",
            *(f"option name {name} {option.declared()}" for name, option in self._options.items()),
            f"{self._word}ok",
        )

    def _is_ready(self, _: list[str]) -> None:
        if self._thinking is None:
            self._opened()
        self._talk.say("readyok")

    def _set_option(self, words: list[str]) -> None:
        if not words or words[0] != "name":
            raise ValueError("setoption: expected name NAME [value VALUE]")
        at = words.index("value") if "value" in words else len(words)
        given, text = " ".join(words[1:at]), " ".join(words[at + 1 :])
        name = next((name for name in self._options if name.lower() == given.lower()), None)
        if name is None:
            raise ValueError(f"there is no option {given!r}")
        try:
            value = self._options[name].read(text)
        except ValueError as error:
            raise ValueError(f"option {name}: {error}") from None
        if name in {"Threads", "Hash", "NNCacheSize"} and value != self._values[name]:
            self._finish()
            self._close()  # another engine, which the next search begins
        self._values[name] = value
        if name == "UCI_ShowWDL" and value and not self._told_of_wdl:
            self._told_of_wdl = True
            self._talk.say("info string this network has one value, and no chances of win, draw and loss")

    def _new_game(self) -> None:
        self._finish()
        if self._track is not None:
            self._track.forget()
        self._start, self._played = self._served.start, []

    def _position(self, words: list[str]) -> None:
        self._finish()
        at = words.index("moves") if "moves" in words else len(words)
        setup, moves = words[:at], words[at + 1 :]
        if setup == ["startpos"]:
            start = self._served.start
        elif len(setup) > 1 and setup[0] in {"fen", "position"}:
            start = _core.parse_state(self._served.start, " ".join(setup[1:]))
        else:
            raise ValueError("position: expected startpos or fen TEXT, and then moves MOVE ...")
        self._start, self._played = self._played_from(start, moves)

    def _go(self, words: list[str]) -> None:
        self._finish()
        numbers, flags, moves = self._read_go(words)
        game = self._opened()
        state = game.state
        if state.is_terminal:
            self._start, self._played = self._with_less_past(state), []
            game = self._opened()
            state = game.state
        if state.is_terminal or state.turn == _core.CHANCE:
            self._talk.say("info string the game is over" if state.is_terminal else "info string a roll is due")
            self._talk.say("bestmove (none)")
            return
        held = threading.Event()
        endless = bool({"infinite", "ponder"} & flags)
        if not endless:
            held.set()
        names = {state.action_name(action): action for action in state.legal_actions()}
        actions = [names[move] for move in moves if move in names] or None
        simulations, seconds = self._limits(numbers, state)
        pending = game.search(
            _WITHOUT_END if endless else simulations,
            seconds=None if endless else seconds,
            actions=actions,
            on_report=lambda result: self._talk.say(*self._info(state, result)),
            report_every=_REPORT_EVERY,
        )
        thinking = Thinking(pending, state, held)

        def hit() -> None:
            # From here on it is a search as any other: the time counts from now.
            held.set()
            if seconds is None and simulations is not None:
                pending.stop()
            elif seconds is not None:
                thinking.timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), pending.stop)
                thinking.timer.daemon = True
                thinking.timer.start()

        thinking.on_hit = hit
        self._thinking = thinking
        threading.Thread(target=self._answer, args=(thinking,), name="azpy-answer", daemon=True).start()

    def _stop(self) -> None:
        if self._thinking is not None:
            self._thinking.held.set()
            self._thinking.pending.stop()

    def _ponder_hit(self) -> None:
        if self._thinking is not None and not self._thinking.held.is_set():
            self._thinking.on_hit()

    def _query(self, words: list[str]) -> None:
        state = self._opened().state
        outcome = state.outcome() if state.is_terminal else 0.0
        answers = {
            "gameover": str(state.is_terminal).lower(),
            "p1turn": str(state.turn == 0).lower(),
            "result": "none" if not state.is_terminal else {1: "p1win", 0: "draw", -1: "p2win"}[int(np.sign(outcome))],
        }
        if not words or words[0] not in answers:
            raise ValueError(f"query: expected {', '.join(answers)}")
        self._talk.say(f"response {answers[words[0]]}")

    # Positions --------------------------------------------------------------------------------------------------------

    def _played_from(self, start: _core.State, moves: Sequence[str]) -> tuple[_core.State, list[int]]:
        """Where a line begins, and its actions.

        Where our rules end the game before the line does, the line goes on from there with less of a past.

        Raises:
            ValueError: a move that is not legal; names it.
        """
        state, played = start.clone(), list[int]()
        for number, move in enumerate(moves, 1):
            if state.is_terminal:
                start, played = self._with_less_past(state), []
                state = start.clone()
            actions = [action for action in self._offered(state) if state.action_name(action) == move]
            if not actions:
                raise ValueError(f"move {number}, {move!r}, is not legal there")
            state.play(actions[0])
            played.append(actions[0])
        return start, played

    @staticmethod
    def _offered(state: _core.State) -> list[int]:
        if state.turn == _core.CHANCE:
            return [outcome for outcome, _ in state.chance_outcomes()]
        return state.legal_actions()

    def _with_less_past(self, state: _core.State) -> _core.State:
        """A position that our rules ended by its past, such as a third repetition of chess, as if it had no past."""
        if state.game.startswith("chess"):
            fields = next(line for line in str(state).splitlines() if line.count("/") == 7).split()  # the FEN
            # No moves without progress, and nothing to repeat.
            return _core.parse_state(self._served.start, " ".join([*fields[:4], "0", "1"]))
        return state

    def _opened(self) -> _core.EngineGame:
        """The game, at the position that was asked for last. The first call opens the engine."""
        if self._track is None:
            values = self._values
            self._track = Track(
                self._served,
                {
                    "threads": values["Threads"],
                    "total_memory_mb": values["Hash"],
                    "cache_positions": values["NNCacheSize"],
                },
            )
        return self._track.follow(self._start, self._played)

    # Searches ---------------------------------------------------------------------------------------------------------

    def _read_go(self, words: list[str]) -> tuple[dict[str, int], set[str], list[str]]:
        """The numbers, the flags and the moves of a `go`."""
        numbers, flags, moves, rest = dict[str, int](), set[str](), list[str](), list(words)
        while rest:
            word = rest.pop(0)
            if word in _WORDS:
                number = whole(rest.pop(0)) if rest else None
                if number is None:
                    raise ValueError(f"go: {word} needs a whole number")
                numbers[word] = number
            elif word in {"infinite", "ponder"}:
                flags.add(word)
            elif word == "searchmoves":
                moves = rest
                rest = []
        return numbers, flags, moves

    def _limits(self, numbers: Mapping[str, int], state: _core.State) -> tuple[int | None, float | None]:
        """Simulations and seconds of a search; None for no limit."""
        if self._values["Simulations"]:
            return int(self._values["Simulations"]), None
        overhead = int(self._values["Move Overhead"]) / 1000
        simulations = min(max(1, numbers["nodes"]), _WITHOUT_END) if "nodes" in numbers else None
        mine = "wb"[state.turn]
        if "movetime" in numbers:
            return simulations, max(0.001, numbers["movetime"] / 1000 - overhead)
        if f"{mine}time" in numbers:
            left, increment = numbers[f"{mine}time"] / 1000, numbers.get(f"{mine}inc", 0) / 1000
            clock = Clock(max(0.0, left), max(0.0, increment), numbers.get("movestogo"))
            return simulations, seconds_to_think(clock, overhead)
        return simulations or self._served.simulations, None

    def _answer(self, thinking: Thinking) -> None:
        """Waits for a search, and for leave to answer; then answers."""
        try:
            result = thinking.pending.result()
            thinking.held.wait()
            lines = self._info(thinking.state, result)
            best = chosen(result, int(self._values["Temperature"]) / 100)
            line = result.principal_variation
            ponder = ""
            if len(line) > 1 and line[0] == best:
                after = thinking.state.clone()
                after.play(best)
                ponder = f" ponder {after.action_name(line[1])}" if line[1] in after.legal_actions() else ""
            self._talk.say(*lines, f"bestmove {thinking.state.action_name(best)}{ponder}")
        except CancelledError:  # by the end of the conversation: nothing is asked any more
            pass
        except BaseException as error:  # of the network or a game: the program that asks must get its line
            self._say_error(error)
            self._talk.say("bestmove (none)")
        finally:
            thinking.said.set()

    def _info(self, state: _core.State, result: _core.SearchResult) -> list[str]:
        visits = result.stats["simulations"]
        lines, count = [], int(self._values["MultiPV"])
        for number, (actions, _, q) in enumerate(result.principal_variations(count), 1):
            if number == 1 and result.action is not None and result.principal_variation:
                actions = result.principal_variation
                q = float(result.q[list(result.actions).index(result.action)])
            index = list(result.actions).index(actions[0])
            names, now = [], state.clone()
            for action in actions:
                names.append(now.action_name(action))
                now.play(action)
            score = _score(q, int(result.proofs[index]))
            lines.append(
                f"info depth {len(actions)} multipv {number} nodes {visits} score {score} pv {' '.join(names)}"
            )
        return lines

    def _finish(self) -> None:
        """Ends the search that goes on; its answer is given first."""
        thinking, self._thinking = self._thinking, None
        if thinking is not None:
            thinking.held.set()
            thinking.pending.stop()
            thinking.said.wait()
            if thinking.timer is not None:
                thinking.timer.cancel()

    def _close(self) -> None:
        track, self._track = self._track, None
        if track is not None:
            track.close()

    def _say_error(self, error: BaseException) -> None:
        self._talk.say(f"info string error: {' '.join(str(error).split())[:500] or type(error).__name__}")


def _score(q: float, proof: int) -> str:
    """A value for the player to move as UCI writes it; `proof` are the plies to a proven end, -1 for none."""
    if proof >= 0 and abs(q) > 0.999:
        return f"mate {(proof + 2) // 2 if q > 0 else -((proof + 2) // 2)}"
    # Leela Chess Zero's formula of 2019 for centipawns.
    return f"cp {round(90 * math.tan(1.5637541897 * max(-1.0, min(1.0, q))))}"
