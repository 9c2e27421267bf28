"""UCI for chess, and UGI, which has UCI's shape, for every game. One search at a time goes on in the background.

Sources: the UCI specification of April 2004 (Huber, Meyer-Kahlen); UGI as its author describes it (kz04px, cutegames).
"""

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import NamedTuple

import azpy
from azpy import _core
from azpy.errors import SettingsError, one_line
from azpy.games.lines import read_action
from azpy.matches.levels import Level
from azpy.serving.lines import Conversation
from azpy.serving.models import TREES_MB, Player, chosen
from azpy.serving.request import WITHOUT_END, Protocol, Search, SearchReport, seconds_to_think, whole
from azpy.serving.uci_positions import Positions, is_chess960

_REPORT_EVERY = 0.5  # seconds
# Words of `go`, each with a number; the clocks have the names of UGI, and those of UCI mean the same.
_NUMBERS = {"movestogo", "depth", "nodes", "mate", "movetime"}
_CLOCKS = {"wtime": "p1time", "btime": "p2time", "winc": "p1inc", "binc": "p2inc"}
_FLAGS = {"infinite", "ponder"}
# Options that reopen the engine, by their names there.
_ENGINE = {"Threads": "threads", "Hash": "total_memory_mb", "NNCacheSize": "cache_positions"}
# Options that are read without effect, with the reason.
_UNUSED = {
    "UCI_ShowWDL": "azpy's networks give one value for a position",
    "SyzygyPath": "azpy reads no tablebases",
    "VerboseMoveStats": "MultiPV tells about several moves",
    "go depth": "nodes and the clock limit a search",
    "go mate": "nodes and the clock limit a search",
    "debug": "az-engine --log FILE writes the conversation to a file",
}
_OF_LEVEL = ("Simulations", "Temperature")  # options that a level replaces
_HIGHEST_ELO = 4_000  # that programs may set
_RESERVED = {"name", "type", "default", "min", "max", "var", "value", "<empty>"}
_NO_MOVE = "bestmove (none)"


@dataclass
class _Go:
    """An unanswered `go`."""

    words: Sequence[str]
    search: Search | None = None  # None if there is no move
    may_end: threading.Event = field(default_factory=threading.Event)  # set once it may be answered
    replaced: bool = False  # by the search since `ponderhit`, which is answered in its place
    thread: threading.Thread | None = None  # gives the answer

    def stop(self) -> None:
        """Answer with what is known by now."""
        self.may_end.set()
        if self.search is not None:
            self.search.stop()


class Uci(Protocol):
    """A conversation in UCI, or in UGI, as `word` says.

    Raises:
        SettingsError: in UGI, players of different games.
    """

    def __init__(self, models: Mapping[str, Player], talk: Conversation, word: str = "uci") -> None:
        super().__init__(models, talk)
        player = self._player
        for name, other in models.items():
            if word == "ugi" and other.start.game != player.start.game:
                problem = f"{self._model} plays {player.start.game}, and {name} plays {other.start.game}"
                raise SettingsError(f"--model: ugi is for one game at a time; {problem}")
        self._word, self._labels = word, _labels(models)
        self._clocks = set(_CLOCKS)
        if word == "ugi":
            players = range(1, player.start.num_players + 1)
            self._clocks |= {f"p{player}{kind}" for player in players for kind in ("time", "inc")}
        self._options = _options(player, word, list(self._labels))
        top = math.ceil(max(model.ladder.steps[-1].elo for model in models.values()))
        # Programs refuse a number outside the range themselves. Above a player's Elo it plays at full strength.
        low = math.floor(min(0.0, *(model.ladder.steps[0].elo for model in models.values())))
        self._options["UCI_Elo"] = _number(top, low, max(top, _HIGHEST_ELO))
        self._values: dict[str, int | str] = {name: option.default for name, option in self._options.items()}
        self._positions = self._positions_of(player)
        self._go: _Go | None = None
        self._said = list[str]()  # the words of the position, kept for a change of player
        self._refused: str | None = None  # why the last `position` was refused
        self._told = set[str]()  # the keys of `_UNUSED` that were reported
        self._set_position(["startpos"])
        self._commands: dict[str, Callable[[list[str]], None]] = {
            word: self._introduce,
            "isready": self._is_ready,
            "setoption": self._set_option,
            f"{word}newgame": self._new_game,
            "position": self._read_position,
            "go": self._begin,
            "stop": self._stop,
            "ponderhit": self._ponder_hit,
            "debug": lambda words: self._tell_unused("debug") if words == ["on"] else None,
            "register": lambda _: None,
            "quit": lambda _: None,
        }
        if word == "ugi":
            self._commands["query"] = self._query

    def _take(self, line: str) -> bool:
        words = line.split()
        # Skip unknown words before a command, as the specification says.
        at = next((at for at, word in enumerate(words) if word in self._commands), None)
        if at is None:
            return True
        try:
            self._commands[words[at]](words[at + 1 :])
        except Exception as error:  # errors of the network or a user's game too: the conversation continues
            self._say_error(error)
        return words[at] != "quit"

    def _say_error(self, error: BaseException) -> None:
        self._talk.say(f"info string error: {one_line(error)}")

    def _introduce(self, _: list[str]) -> None:
        self._talk.say(
            f"id name azpy {azpy.__version__} ({one_line(self._player.name)})",
            "id author the authors of azpy",
            *(f"option name {name} {option.declared}" for name, option in self._options.items()),
            f"{self._word}ok",
        )

    def _is_ready(self, _: list[str]) -> None:
        try:
            if self._go is None:
                self._game()
        except Exception as error:  # the next `go` reports it again; without an answer a program would wait forever
            self._say_error(error)
        self._talk.say("readyok")

    def _set_option(self, words: list[str]) -> None:
        if not words or words[0] != "name":
            raise ValueError("setoption: expected name NAME [value VALUE]")
        at = words.index("value") if "value" in words else len(words)
        given, text = " ".join(words[1:at]), " ".join(words[at + 1 :])
        name = next((name for name in self._options if name.lower() == given.lower()), None)
        if name is None:
            raise ValueError(f"unknown option {given!r}")
        try:
            value = self._options[name].read(text)
        except ValueError as error:
            raise ValueError(f"option {name}: {error}") from None
        if isinstance(value, int) and value != whole(text):
            self._talk.say(f"info string option {name}: {text[:20]} is out of range, so it is {value}")
        if name == "UCI_LimitStrength" and value == "true":
            self._talk.say(f"info string {self._player.ladder.about(self._player.network)}")
        if value == self._values[name]:
            return
        if name in _ENGINE or name in {"Model", "UCI_Chess960"}:
            self._finish()
        if name == "Model":
            model = self._labels[str(value)]
            positions = self._positions_of(self._models[model])
            self._line, _ = positions.read(self._said)
            self._model, self._positions = model, positions
        self._values[name] = value
        if name in _ENGINE or name == "Model":
            self._close()  # the next search opens another engine
        if name == "UCI_Chess960":
            self._positions = self._positions_of(self._player)
        if value != self._options[name].default:
            self._tell_unused(name)
        self._tell_of_level(name)

    def _tell_unused(self, name: str) -> None:
        """Say once that something does nothing, if it is one of `_UNUSED`."""
        if name in _UNUSED and name not in self._told:
            self._told.add(name)
            self._talk.say(f"info string {name} has no effect: {_UNUSED[name]}")

    def _tell_of_level(self, name: str) -> None:
        """Report an option without effect: because a level plays, or because of the player."""
        if self._level is None:
            return
        for other in _OF_LEVEL:
            is_set = self._values[other] != self._options[other].default
            if is_set and name in {other, "UCI_LimitStrength"}:
                self._talk.say(f"info string {other} has no effect while UCI_LimitStrength is true")
        elo, top = int(self._values["UCI_Elo"]), math.ceil(self._player.ladder.steps[-1].elo)
        if name in {"UCI_Elo", "UCI_LimitStrength", "Model"} and elo > top:
            self._talk.say(f"info string UCI_Elo: {elo} is beyond this player's {top}, so it plays at full strength")

    def _engine_options(self) -> dict[str, int]:
        return {ours: int(self._values[name]) for name, ours in _ENGINE.items()}

    def _positions_of(self, player: Player) -> Positions:
        return Positions(player.start, self._values["UCI_Chess960"] == "true" if self._word == "uci" else None)

    def _new_game(self, _: list[str]) -> None:
        self._finish()
        self._forget()
        self._set_position(["startpos"])

    def _read_position(self, words: list[str]) -> None:
        self._finish()
        if problem := self._set_position(words):
            raise ValueError(problem)

    def _set_position(self, words: list[str]) -> str | None:
        """Read the words of a `position`; return what is wrong with its first illegal move."""
        try:
            self._line, problem = self._positions.read(words)
        except Exception as error:  # of a user's game too
            self._refused = one_line(error)
            raise
        self._said, self._refused = words, None
        return problem

    def _game(self) -> _core.EngineGame:
        """The game, at the position that was asked for last.

        Raises:
            ValueError: that position was refused.
        """
        if self._refused is not None:
            raise ValueError(f"no position is set, because the last one was refused: {self._refused}")
        return self._follow(self._line.start, self._line.played)

    def _query(self, words: list[str]) -> None:
        state = self._game().state
        players, each = range(state.num_players), state.outcomes() if state.is_terminal else ()
        best = [player for player in players if each and each[player] == max(each)]
        asked_of = players[:1] if state.zero_sum else players  # with two players one number is enough
        answers = {"gameover": str(state.is_terminal).lower()}
        answers |= {f"p{player + 1}turn": str(state.turn == player).lower() for player in asked_of}
        if len(players) > 1:
            answers["result"] = f"p{best[0] + 1}win" if len(best) == 1 else "draw" if best else "none"
        if not state.zero_sum:
            answers["outcomes"] = " ".join(f"{own:g}" for own in each) or "none"
        if not words or words[0] not in answers:
            raise ValueError(f"query: expected {', '.join(answers)}")
        self._talk.say(f"response {answers[words[0]]}")

    def _begin(self, words: Sequence[str]) -> None:
        """Begin the search of a `go`."""
        self._finish()
        go = _Go(words)
        try:
            go.search = self._begun(words)
        except Exception as error:
            self._say_error(error)
        if not _FLAGS.intersection(words):
            go.may_end.set()
            if go.search is None:
                self._talk.say(_NO_MOVE)
                return
        go.thread = threading.Thread(target=self._answer, args=(go,), name="azpy-answer", daemon=True)
        go.thread.start()
        self._go = go

    def _stop(self, _: list[str]) -> None:
        if self._go is not None:
            self._go.stop()

    def _ponder_hit(self, _: list[str]) -> None:
        """End the search on the opponent's time, and start a usual one from the same tree."""
        go = self._go
        if go is None or go.may_end.is_set() or "infinite" in go.words:
            return
        go.replaced = True
        self._begin([word for word in go.words if word != "ponder"])

    def _finish(self) -> None:
        """End the search that goes on; its answer is given first."""
        go, self._go = self._go, None
        if go is not None and go.thread is not None:
            go.stop()
            go.thread.join()

    def _begun(self, words: Sequence[str]) -> Search | None:
        """Begin the search of a `go`; None if there is no move."""
        numbers, moves = self._read_go(words)
        if self._line.state.name == "chess":
            self._line.go_on()
        state = self._game().state
        if state.is_terminal or state.turn == _core.CHANCE:
            self._talk.say("info string the game is over" if state.is_terminal else "info string a roll is due")
            return None
        simulations, seconds = (WITHOUT_END, None) if _FLAGS.intersection(words) else self._limits(numbers, state)
        for word in ("depth", "mate"):
            if word in numbers:
                self._tell_unused(f"go {word}")
        actions = None
        if moves is not None:
            found = {move: read_action(state, move) for move in moves}
            actions = [action for action in found.values() if action is not None]
            if not actions:
                raise ValueError("go searchmoves: expected at least one legal move")
            if illegal := ", ".join(repr(move) for move, action in found.items() if action is None):
                self._talk.say(f"info string go searchmoves: ignored illegal moves: {illegal[:200]}")
        return self._search(
            self._line.start,
            self._line.played,
            lambda report: self._talk.say(*self._info(report)),
            anew=self._level is not None,
            simulations=simulations,
            seconds=seconds,
            actions=actions,
            report_every=_REPORT_EVERY,
            lines=int(self._values["MultiPV"]),
        )

    @property
    def _level(self) -> Level | None:
        """The level that is asked for."""
        is_limited = self._values["UCI_LimitStrength"] == "true"
        return self._player.ladder.at(int(self._values["UCI_Elo"])) if is_limited else None

    def _read_go(self, words: Sequence[str]) -> tuple[dict[str, int], list[str] | None]:
        """The numbers of a `go`, and the moves behind `searchmoves`; None without this word."""
        numbers, moves, are_moves = dict[str, int](), list[str](), False
        rest = iter(words)
        for word in rest:
            is_number = word in _NUMBERS or word in self._clocks
            if is_number:
                number = whole(next(rest, ""))
                if number is None:
                    raise ValueError(f"go: {word} needs a whole number")
                numbers[_CLOCKS.get(word, word)] = number
            if is_number or word in _FLAGS or word == "searchmoves":
                are_moves = word == "searchmoves"
            elif are_moves:
                moves.append(word)
        return numbers, moves if "searchmoves" in words else None

    def _limits(self, numbers: Mapping[str, int], state: _core.State) -> tuple[int | None, float | None]:
        """Simulations and seconds of a search; None for no limit."""
        level, overhead = self._level, int(self._values["Move Overhead"]) / 1000
        if self._values["Simulations"] and level is None:
            return int(self._values["Simulations"]), None
        mine, seconds = f"p{state.turn + 1}", None
        if "movetime" in numbers:
            seconds = max(0.001, numbers["movetime"] / 1000 - overhead)
        elif f"{mine}time" in numbers:
            left, increment = (max(0.0, numbers.get(f"{mine}{kind}", 0) / 1000) for kind in ("time", "inc"))
            seconds = seconds_to_think(left, overhead, increment, numbers.get("movestogo"))
        simulations = self._player.simulations if seconds is None else None
        if "nodes" in numbers:
            simulations = min(max(1, numbers["nodes"]), WITHOUT_END)
        if level is not None:
            simulations = min(level.simulations, simulations or WITHOUT_END)
        return simulations, seconds

    def _answer(self, go: _Go) -> None:
        """Wait for a search, and for permission to answer; then answer."""
        lines = [_NO_MOVE]
        try:
            if go.search is not None:
                answer = go.search.answer()
                lines = [*self._info(answer), self._best(answer)]
        except CancelledError:  # the conversation has ended
            return
        except BaseException as error:  # an error of the network or a game: the program must still get its line
            self._say_error(error)
        go.may_end.wait()
        if not go.replaced:
            self._talk.say(*lines)

    def _best(self, report: SearchReport) -> str:
        level = self._level
        temperature = int(self._values["Temperature"]) / 100 if level is None else level.temperature
        best = chosen(self._player, report.state, report.result, temperature)
        expected, ponder = report.result.principal_variation[:2], ""
        if len(expected) > 1 and expected[0] == best:
            ponder = f" ponder {self._positions.line(report.state, expected)[1]}"
        return f"bestmove {self._positions.name(report.state, best)}{ponder}"

    def _info(self, report: SearchReport) -> list[str]:
        """The lines with the results of a search."""
        result, milliseconds = report.result, int(1000 * report.seconds)
        visits = result.stats["simulations"]
        pace = f"nodes {visits} nps {1000 * visits // max(1, milliseconds)}"
        if self._values["NNCacheSize"] and self._engine is not None:
            pace += f" hashfull {int(1000 * self._engine.stats['cache_fill'])}"
        places = {int(action): index for index, action in enumerate(result.actions)}
        found = report.lines(int(self._values["MultiPV"]))
        # A kept tree may have lines longer than this search's depth.
        deepest = max([result.stats["depth"], *(len(actions) for actions, _, _ in found)])
        lines = []
        for number, (actions, _, q) in enumerate(found, 1):
            score = _score(q, int(result.proofs[places[actions[0]]]), report.state.num_players)
            names = " ".join(self._positions.line(report.state, actions))
            depth = f"depth {len(actions)} seldepth {deepest} multipv {number}"
            lines.append(f"info {depth} score {score} {pace} time {milliseconds} pv {names}")
        if not report.state.zero_sum:
            lines.append(f"info string values {' '.join(f'{value:.3f}' for value in result.values)}")
        return lines


def _score(q: float, proof: int, players: int) -> str:
    """A value for the player to move as UCI writes it; `proof` are the plies to a proven end, -1 for none."""
    if proof >= 0 and abs(q) > 0.999:
        moves = (proof + players) // players  # of the player to move
        return f"mate {moves if q > 0 else -moves}"
    # Leela Chess Zero's formula of 2019 for centipawns.
    return f"cp {round(90 * math.tan(1.5637541897 * max(-1.0, min(1.0, q))))}"


class _Option(NamedTuple):
    """A setting of the protocol."""

    default: int | str
    declared: str  # as `uci` lists it
    read: Callable[[str], int | str]  # the value of a text; a ValueError says what was expected


def _number(default: int, low: int, high: int) -> _Option:
    def read(text: str) -> int:
        number = whole(text)
        if number is None:
            raise ValueError(f"expected a whole number from {low} to {high}, got {text!r}")
        return min(max(number, low), high)

    return _Option(default, f"type spin default {default} min {low} max {high}", read)


def _choice(words: Sequence[str], expected: str, declared: str) -> _Option:
    """One of some words, the first by default, in any case."""

    def read(text: str) -> str:
        for word in words:
            if word.lower() == text.lower():
                return word
        raise ValueError(f"expected {expected}, got {text!r}")

    return _Option(words[0], f"{declared} default {words[0]}", read)


def _switch(is_on: bool = False) -> _Option:
    words = ("true", "false") if is_on else ("false", "true")
    return _choice(words, "true or false", "type check")


def _options(player: Player, word: str, players: Sequence[str]) -> dict[str, _Option]:
    """The options of a protocol, `word`, by name; `players` are the words of the players to choose among."""
    options = {
        "Threads": _number(1, 1, 1024),
        "Hash": _number(TREES_MB, 1, 1 << 20),  # MB of all trees
        "NNCacheSize": _number(200_000, 0, 1 << 28),  # answers of the network
        "Move Overhead": _number(30, 0, 60_000),  # ms
        "MultiPV": _number(1, 1, 500),
        "Ponder": _switch(),
        "Simulations": _number(0, 0, WITHOUT_END),  # of every move, in place of its time; 0: as `go` says
        "Temperature": _number(round(100 * player.temperature), 0, 1000),  # hundredths
        "UCI_LimitStrength": _switch(),
        "UCI_ShowWDL": _switch(),
        "VerboseMoveStats": _switch(),
        "SyzygyPath": _Option("", "type string default <empty>", str),
    }
    if word == "uci":
        options["UCI_Chess960"] = _switch(is_chess960(player.start))
    if len(players) > 1:
        model = _choice(players, f"one of {', '.join(players)}", "type combo")
        options["Model"] = model._replace(declared=" var ".join([model.declared, *players]))
    return options


def _labels(names: Iterable[str]) -> dict[str, str]:
    """A word without blanks for each name, unique in any case and none of the protocol's words."""
    labels: dict[str, str] = {}
    for name in names:
        label = one_line(name).replace(" ", "_") or "player"
        while label.lower() in _RESERVED | {known.lower() for known in labels}:
            label += "_"
        labels[label] = name
    return labels
