"""UCI for chess, and UGI, which has UCI's shape, for every game.

One search at a time goes on in the background. `Uci.run` reads commands until `quit` or the end of the input.
Sources: the UCI specification of April 2004 (Huber, Meyer-Kahlen); UGI as its author describes it (kz04px, cutegames).
"""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import NamedTuple

import numpy as np

import azpy
from azpy import _core
from azpy.errors import SettingsError, one_line
from azpy.games.lines import read_action
from azpy.pending import Pending
from azpy.serving.clock import Clock, seconds_to_think
from azpy.serving.lines import Conversation
from azpy.serving.models import Served, chosen, open_engine
from azpy.serving.track import Track
from azpy.serving.uci_options import WITHOUT_END, labels_of, options_of, plain, whole
from azpy.serving.uci_positions import Positions

__all__ = ["Uci"]

_REPORT_EVERY = 0.5  # seconds
# Words of `go`, each with a number; UGI has names of its own for the clocks.
_WORDS = {"wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "mate", "movetime"}
_CLOCKS = {"p1time": "wtime", "p2time": "btime", "p1inc": "winc", "p2inc": "binc"}
_FLAGS = {"infinite", "ponder"}
_ENGINE = {"Threads", "Hash", "NNCacheSize"}  # options that need another engine


class Search(NamedTuple):
    """A search that goes on."""

    pending: Pending
    info: Callable[[_core.SearchResult], list[str]]  # the lines that tell what it has found


@dataclass
class Thinking:
    """A `go` that is to be answered."""

    state: _core.State  # the position searched
    search: Search | None  # None where there is no move
    search_on: Callable[[], Search] | None = None  # what `ponderhit` begins
    infinite: bool = False  # only `stop` ends it
    after: Search | None = None  # the search since `ponderhit`
    held: threading.Event = field(default_factory=threading.Event)  # set once the answer may be given
    said: threading.Event = field(default_factory=threading.Event)  # set once it has been given

    def stop(self) -> None:
        """Has the answer given with what is known by now."""
        self.held.set()
        for search in (self.search, self.after):
            if search is not None:
                search.pending.stop()

    def hit(self) -> None:
        """Ends the search on the opponent's time, and begins one as any other from the same tree."""
        if self.held.is_set() or self.infinite:
            return
        try:
            if self.search_on is not None:
                self.after = self.search_on()
        finally:
            if self.search is not None:
                self.search.pending.stop()
            self.held.set()


class Uci:
    """A conversation in UCI, or in UGI.

    Args:
        models: players by name; the first one plays until the option `Model` chooses another one.
        talk: lines in and out.
        word: "uci" or "ugi".

    Raises:
        SettingsError: in UGI, players of different games.
    """

    def __init__(self, models: Mapping[str, Served], talk: Conversation, word: str = "uci") -> None:
        served = next(iter(models.values()))
        for name, other in models.items():
            if word == "ugi" and other.start.game != served.start.game:
                problem = f"{next(iter(models))} plays {served.start.game}, and {name} plays {other.start.game}"
                raise SettingsError(f"--model: ugi is for one game at a time; {problem}")
        self._models, self._labels = models, labels_of(models)
        self._served, self._talk, self._word = served, talk, word
        self._options = options_of(served, word, list(self._labels))
        self._values: dict[str, int | bool | str] = {name: option.default for name, option in self._options.items()}
        self._positions = self._positions_of(served)
        self._track: Track | None = None
        self._thinking: Thinking | None = None
        self._told_of_wdl = False
        self._start, self._played, _ = self._positions.read(["startpos"])
        # The words of the position, and how they write castling: another player reads them too.
        self._said = ["startpos"], self._positions.chess960
        self._refused: str | None = None  # why the last `position` was none
        self._commands: dict[str, Callable[[list[str]], None]] = {
            word: self._introduce,
            "isready": self._is_ready,
            "setoption": self._set_option,
            f"{word}newgame": lambda _: self._new_game(),
            "position": self._read_position,
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
                except Exception as error:  # of the network or a user's game too: the conversation goes on
                    self._say_error(error)
        finally:
            self._talk.leave()
            self._finish()
            self._close()

    # Commands ---------------------------------------------------------------------------------------------------------

    def _introduce(self, _: list[str]) -> None:
        self._talk.say(
            f"id name azpy {azpy.__version__} ({plain(self._served.name)})",
            "id author the authors of azpy",
            *(f"option name {name} {option.declared()}" for name, option in self._options.items()),
            f"{self._word}ok",
        )

    def _is_ready(self, _: list[str]) -> None:
        try:
            if self._thinking is None:
                self._opened()
        except Exception as error:  # and the next `go` says it again; without an answer a program waits for ever
            self._say_error(error)
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
        if value == self._values[name]:
            return
        if name in _ENGINE or name in {"Model", "UCI_Chess960"}:
            self._finish()
        if name == "Model":
            self._choose(str(value))
        self._values[name] = value
        if name in _ENGINE or name == "Model":
            self._close()  # another engine, which the next search begins
        if name == "UCI_Chess960":
            self._positions = self._positions_of(self._served)
        if name == "UCI_ShowWDL" and not self._told_of_wdl:
            self._told_of_wdl = True
            self._talk.say("info string this network has one value, and no chances of win, draw and loss")

    def _choose(self, label: str) -> None:
        """Has another player play, at the position that was asked for last."""
        served = self._models[self._labels[label]]
        words, chess960 = self._said
        self._start, self._played, _ = Positions(served.start, chess960).read(words)
        self._served, self._positions = served, self._positions_of(served)

    def _positions_of(self, served: Served) -> Positions:
        return Positions(served.start, bool(self._values["UCI_Chess960"]) if self._word == "uci" else None)

    def _new_game(self) -> None:
        self._finish()
        if self._track is not None:
            self._track.forget()
        self._read_position(["startpos"])

    def _read_position(self, words: list[str]) -> None:
        self._finish()
        try:
            self._start, self._played, problem = self._positions.read(words)
        except Exception as error:  # of a user's game too
            self._refused = one_line(error)
            raise
        self._said, self._refused = (words, self._positions.chess960), None
        if problem is not None:
            raise ValueError(problem)

    def _go(self, words: list[str]) -> None:
        self._finish()
        flags = _FLAGS.intersection(words)
        try:
            thinking = self._begun(words, flags)
        except Exception as error:
            self._say_error(error)
            if not flags:
                self._talk.say("bestmove (none)")
                return
            thinking = Thinking(self._start, None, infinite="infinite" in flags)
        if not flags:
            thinking.held.set()
        threading.Thread(target=self._answer, args=(thinking,), name="azpy-answer", daemon=True).start()
        self._thinking = thinking

    def _begun(self, words: Sequence[str], flags: set[str]) -> Thinking:
        """What a `go` begins."""
        numbers, moves = self._read_go(words)
        game = self._opened()
        if game.state.is_terminal and game.state.name == "chess":
            self._start, self._played = game.state.without_past(), []
            game = self._opened()
        state = game.state
        if state.is_terminal or state.turn == _core.CHANCE:
            self._talk.say("info string the game is over" if state.is_terminal else "info string a roll is due")
            return Thinking(state, None, infinite="infinite" in flags)
        actions = [action for move in moves if (action := read_action(state, move)) is not None] or None

        def search(simulations: int | None, seconds: float | None) -> Search:
            info = partial(self._info, state, self._engine().engine, monotonic())
            pending = game.search(
                simulations,
                seconds=seconds,
                actions=actions,
                on_report=lambda result: self._talk.say(*info(result)),
                report_every=_REPORT_EVERY,
            )
            return Search(pending, info)

        simulations, seconds = self._limits(numbers, state)
        if not flags:
            return Thinking(state, search(simulations, seconds))
        return Thinking(
            state, search(WITHOUT_END, None), lambda: search(simulations, seconds), infinite="infinite" in flags
        )

    def _stop(self) -> None:
        if self._thinking is not None:
            self._thinking.stop()

    def _ponder_hit(self) -> None:
        if self._thinking is not None:
            self._thinking.hit()

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

    def _opened(self) -> _core.EngineGame:
        """The game, at the position that was asked for last.

        Raises:
            ValueError: that position was refused.
        """
        if self._refused is not None:
            raise ValueError(f"there is no position, as the last one was refused: {self._refused}")
        return self._engine().follow(self._start, self._played)

    def _engine(self) -> Track:
        """The engine and its game. The first call opens the engine."""
        if self._track is None:
            values = self._values
            engine = open_engine(
                self._served,
                threads=values["Threads"],
                total_memory_mb=values["Hash"],
                cache_positions=values["NNCacheSize"],
            )
            self._track = Track(engine)
        return self._track

    # Searches ---------------------------------------------------------------------------------------------------------

    def _read_go(self, words: Sequence[str]) -> tuple[dict[str, int], list[str]]:
        """The numbers and the moves of a `go`."""
        numbers, moves, rest = dict[str, int](), list[str](), list(words)
        into_moves = False
        while rest:
            word = rest.pop(0)
            if self._word == "ugi":
                word = _CLOCKS.get(word, word)
            if word in _WORDS:
                into_moves = False
                number = whole(rest.pop(0)) if rest else None
                if number is None:
                    raise ValueError(f"go: {word} needs a whole number")
                numbers[word] = number
            elif word in _FLAGS:
                into_moves = False
            elif word == "searchmoves":
                into_moves = True
            elif into_moves:
                moves.append(word)
        return numbers, moves

    def _limits(self, numbers: Mapping[str, int], state: _core.State) -> tuple[int | None, float | None]:
        """Simulations and seconds of a search; None for no limit."""
        if self._values["Simulations"]:
            return int(self._values["Simulations"]), None
        overhead = int(self._values["Move Overhead"]) / 1000
        simulations = min(max(1, numbers["nodes"]), WITHOUT_END) if "nodes" in numbers else None
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
            found = self._found(thinking.search)
            thinking.held.wait()
            if thinking.after is not None:
                found = self._found(thinking.after)
            if found is None:
                self._talk.say("bestmove (none)")
                return
            (result, lines), state = found, thinking.state
            best = chosen(result, int(self._values["Temperature"]) / 100)
            expected = result.principal_variation[:2]
            ponder = ""
            if len(expected) > 1 and expected[0] == best:
                ponder = f" ponder {self._positions.line(state, expected)[1]}"
            self._talk.say(*lines, f"bestmove {self._positions.name(state, best)}{ponder}")
        except CancelledError:  # by the end of the conversation: nothing is asked any more
            pass
        except BaseException as error:  # of the network or a game: the program that asks must get its line
            self._say_error(error)
            self._talk.say("bestmove (none)")
        finally:
            thinking.said.set()

    def _found(self, search: Search | None) -> tuple[_core.SearchResult, list[str]] | None:
        """What a search found, and its lines; None where there is none, or it failed, which is said at once."""
        try:
            return None if search is None else (result := search.pending.result(), search.info(result))
        except CancelledError:
            raise
        except BaseException as error:  # of the network or a game
            self._say_error(error)
            return None

    def _info(self, state: _core.State, engine: _core.Engine, began: float, result: _core.SearchResult) -> list[str]:
        """The lines that tell what a search of `state`, which `began` at this time, has found."""
        visits, milliseconds = result.stats["simulations"], int(1000 * (monotonic() - began))
        pace = f"nodes {visits} nps {1000 * visits // max(1, milliseconds)}"
        if self._values["NNCacheSize"]:
            pace += f" hashfull {int(1000 * engine.stats['cache_fill'])}"
        found, count = list[tuple[list[int], float]](), int(self._values["MultiPV"])
        for actions, _, q in result.principal_variations(count):
            if not found and result.action is not None and result.principal_variation:
                actions = result.principal_variation
                q = float(result.q[list(result.actions).index(result.action)])
            found.append((actions, q))
        # A kept tree has lines that this search did not reach the end of.
        deepest = max([result.stats["depth"], *(len(actions) for actions, _ in found)])
        lines = []
        for number, (actions, q) in enumerate(found, 1):
            score = _score(q, int(result.proofs[list(result.actions).index(actions[0])]))
            names = " ".join(self._positions.line(state, actions))
            depth = f"depth {len(actions)} seldepth {deepest} multipv {number}"
            lines.append(f"info {depth} score {score} {pace} time {milliseconds} pv {names}")
        return lines

    def _finish(self) -> None:
        """Ends the search that goes on; its answer is given first."""
        thinking, self._thinking = self._thinking, None
        if thinking is not None:
            thinking.stop()
            thinking.said.wait()

    def _close(self) -> None:
        track, self._track = self._track, None
        if track is not None:
            track.close()

    def _say_error(self, error: BaseException) -> None:
        self._talk.say(f"info string error: {one_line(error)}")


def _score(q: float, proof: int) -> str:
    """A value for the player to move as UCI writes it; `proof` are the plies to a proven end, -1 for none."""
    if proof >= 0 and abs(q) > 0.999:
        return f"mate {(proof + 2) // 2 if q > 0 else -((proof + 2) // 2)}"
    # Leela Chess Zero's formula of 2019 for centipawns.
    return f"cp {round(90 * math.tan(1.5637541897 * max(-1.0, min(1.0, q))))}"
