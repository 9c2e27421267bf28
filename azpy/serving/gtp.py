"""The Go Text Protocol, version 2 (Farnebäck's draft of 2002), with Leela Zero's and KataGo's analysis.

For Go, and for Othello as gtp-rhino speaks it. `gtp_boards` has what differs between the two.
"""

import re
from collections.abc import Callable, Mapping, Sequence

import azpy
from azpy import _core
from azpy.errors import one_line
from azpy.matches.query import WARMEST
from azpy.pending import Pending
from azpy.serving.gtp_boards import COLORS, Line, Refused, board_of
from azpy.serving.gtp_time import KGS, SYSTEMS, Times
from azpy.serving.lines import Conversation
from azpy.serving.models import TREES_MB, Served, chosen, lower_bound, open_engine
from azpy.serving.track import Track

__all__ = ["Gtp"]

_WITHOUT_END = 2**32 - 1  # simulations
_ANALYZE = {"lz-analyze": "lz", "analyze": "lz", "kata-analyze": "kata"}
_GENMOVE_ANALYZE = {"lz-genmove_analyze": "lz", "genmove_analyze": "lz", "kata-genmove_analyze": "kata"}


class Gtp:
    """A conversation in GTP.

    Args:
        models: players by name; the first one plays until another one is asked for.
        talk: lines in and out.
        overhead: seconds a move that pass outside of the search.
    """

    def __init__(self, models: Mapping[str, Served], talk: Conversation, overhead: float = 0.05) -> None:
        self._models, self._talk = models, talk
        self._model = next(iter(models))  # its name
        self._simulations: int | None = None  # of every move, if the other program sets it
        self._temperature: float | None = None  # in place of the player's own
        self._board = board_of(self._served.start)
        self._track = self._opened()
        self._times = Times(overhead)
        self._analysis: Pending | None = None
        self._commands: dict[str, Callable[[list[str]], str]] = {
            "protocol_version": lambda _: "2",
            "name": lambda _: f"azpy ({self._served.name})",
            "version": lambda _: azpy.__version__,
            "known_command": lambda words: str(bool(words) and words[0] in self._names()).lower(),
            "list_commands": lambda _: "\n".join(self._names()),
            "list_games": lambda _: self._board.name,
            "set_game": self._set_game,
            "boardsize": self._boardsize,
            "clear_board": lambda _: self._clear(),
            "play": self._play,
            "genmove": lambda words: self._genmove(words, True),
            "reg_genmove": lambda words: self._genmove(words, False),
            "undo": lambda _: self._undo(),
            "time_settings": self._times.settings,
            "kgs-time_settings": lambda words: self._times.named_settings(words, KGS),
            "kata-time_settings": lambda words: self._times.named_settings(words, SYSTEMS),
            "kata-list_time_settings": lambda _: " ".join(SYSTEMS),
            "time_left": lambda words: self._times.left(_color(words[0] if words else ""), words[1:]),
            "final_score": lambda _: self._board.score(),
            "showboard": lambda _: self._board.picture(),
            "kata-list-params": lambda _: " ".join(self._parameters()),
            "kata-get-param": self._get_parameter,
            "kata-set-param": self._set_parameter,
            **self._board.commands,
        }
        if unsettled := self._board.unsettled:
            self._commands["kgs-genmove_cleanup"] = lambda words: self._cleanup(words, unsettled)

    def _names(self) -> list[str]:
        return sorted([*self._commands, *_ANALYZE, *_GENMOVE_ANALYZE, "quit"])

    @property
    def _served(self) -> Served:
        return self._models[self._model]

    def _opened(self) -> Track:
        return Track(open_engine(self._served, threads=1, total_memory_mb=TREES_MB))

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
                        raise Refused("unknown command")
                except Exception as error:  # of the network too: the next command is answered all the same
                    self._talk.say(f"?{number} {one_line(error)}", "")
                if self._talk.gone.is_set():
                    return
        finally:
            self._talk.leave()
            self._end_analysis()
            self._track.close()

    # The board --------------------------------------------------------------------------------------------------------

    def _set_game(self, words: list[str]) -> str:
        if len(words) != 1:
            raise Refused("syntax error: expected a game")
        if words[0].lower() != self._board.name.lower():
            raise Refused(f"unsupported game: this player plays {self._board.name}")
        return ""

    def _boardsize(self, words: list[str]) -> str:
        if len(words) != 1 or not re.fullmatch(r"[0-9]{1,4}", words[0]):
            raise Refused("syntax error: expected a whole number")
        if int(words[0]) != self._board.size:
            raise Refused("unacceptable size")
        return self._clear()

    def _clear(self) -> str:
        self._board.clear()
        self._times.forget()
        self._track.forget()
        return ""

    def _undo(self) -> str:
        self._board.undo()
        return ""

    def _play(self, words: list[str]) -> str:
        if len(words) != 2:
            raise Refused("syntax error: expected a color and a vertex")
        self._board.play(_color(words[0]), words[1])
        return ""

    # Parameters -------------------------------------------------------------------------------------------------------

    def _parameters(self) -> dict[str, str]:
        """KataGo's names of what can be set, and the values now."""
        simulations = self._served.simulations if self._simulations is None else self._simulations
        found = {"maxVisits": str(simulations), "chosenMoveTemperature": f"{self._warmth():g}"}
        return found if len(self._models) == 1 else {**found, "model": self._model}

    def _warmth(self) -> float:
        """The temperature of the moves that are played."""
        return self._served.temperature if self._temperature is None else self._temperature

    def _get_parameter(self, words: list[str]) -> str:
        if len(words) != 1:
            raise Refused("syntax error: expected a parameter")
        return self._parameters()[self._parameter(words[0])]

    def _set_parameter(self, words: list[str]) -> str:
        if len(words) < 2:
            raise Refused("syntax error: expected a parameter and its value")
        name, text = self._parameter(words[0]), " ".join(words[1:])
        if name == "model":
            self._change_model(text)
        elif name == "maxVisits":
            if not re.fullmatch(r"0*[1-9][0-9]{0,8}", text):
                raise Refused("maxVisits: expected a whole number of at least 1")
            self._simulations = int(text)
        else:
            if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{0,6})?", text) or float(text) > WARMEST:
                raise Refused(f"chosenMoveTemperature: expected a number from 0 to {WARMEST:g}")
            self._temperature = float(text)
        return ""

    def _parameter(self, name: str) -> str:
        if name not in self._parameters():
            raise Refused(f"unknown parameter: expected {', '.join(self._parameters())}")
        return name

    def _change_model(self, name: str) -> None:
        """Has another player go on from the present position, with a new tree."""
        if name not in self._models:
            raise Refused(f"model: expected {', '.join(self._models)}")
        if not self._board.fits(self._models[name].start):
            raise Refused(f"model: {name} plays {self._models[name].start.game}, and not the present game")
        if name != self._model:
            self._track.close()
            self._model = name
            self._track = self._opened()

    # Searches ---------------------------------------------------------------------------------------------------------

    def _genmove(self, words: list[str], plays: bool) -> str:
        color = _color(words[0] if len(words) == 1 else "")
        line = self._board.line_of(color)
        if line is None:
            return "pass"
        # Regression tests ask for the best move.
        action = chosen(self._search(line, color), self._warmth() if plays else 0)
        vertex = self._board.vertex(self._board.state(line), action)
        if plays:
            self._board.advance(line, action)
        return vertex

    def _cleanup(self, words: list[str], unsettled: Callable[[Line], list[int]]) -> str:
        """Plays on while stones of the opponent can still be taken, and passes then.

        azpy's rules call no stone dead: a search alone may pass beside dead stones where it wins with them too.
        """
        color = _color(words[0] if len(words) == 1 else "")
        line = self._board.line_of(color)
        if line is None:
            return "pass"
        state = self._board.state(line)
        action = state.num_actions - 1  # a pass
        if actions := unsettled(line):
            result = self._search(line, color, actions=actions)
            # A seki stays, where the game is won as it is and a stone there would lose it.
            if result.value >= 0 or not self._board.score().startswith("BW"[color]):
                action = chosen(result, self._warmth())
        self._board.advance(line, action)
        return self._board.vertex(state, action)

    def _search(
        self,
        line: Line,
        color: int,
        tell: Callable[[_core.SearchResult], object] | None = None,
        actions: Sequence[int] | None = None,
    ) -> _core.SearchResult:
        game = self._track.follow(self._board.start(line), line.played)
        seconds = self._times.seconds(color)
        simulations = self._served.simulations if seconds is None else None
        return game.search(
            self._simulations or simulations,
            seconds=seconds,
            actions=actions,
            on_report=tell,
            standard_errors=tell is not None,
        ).result()

    def _analyze(self, number: str, words: list[str], form: str) -> None:
        line, _, interval, actions = self._read_analyze(words)
        if line is None:
            raise Refused("cannot analyze: this color has no move")
        tell = self._teller(line, form)
        game = self._track.follow(self._board.start(line), line.played)
        self._talk.say(f"={number}")
        self._analysis = game.search(
            _WITHOUT_END,
            priority="analysis",
            actions=actions,
            on_report=tell,
            report_every=interval,
            standard_errors=True,
        )

    def _genmove_analyze(self, number: str, words: list[str], form: str) -> None:
        line, color, _, actions = self._read_analyze(words)
        self._talk.say(f"={number}")
        try:
            vertex = "pass"
            if line is not None:
                tell = self._teller(line, form)
                result = self._search(line, color, tell, actions)
                action = chosen(result, self._warmth())
                vertex = self._board.vertex(self._board.state(line), action)
                self._board.advance(line, action)
                tell(result)
            self._talk.say(f"play {vertex}", "")
        except Exception as error:  # the answer has begun, so its error stands in it
            self._talk.say(f"error: {one_line(error)}", "")

    def _teller(self, line: Line, form: str) -> Callable[[_core.SearchResult], None]:
        """Says what a search of this position knows."""
        state = self._board.state(line)

        def name(action: int) -> str:
            return self._board.vertex(state, action)

        def tell(result: _core.SearchResult) -> None:
            if info := _info(result, name, form):  # an empty line would end the answer
                self._talk.say(info)

        return tell

    def _read_analyze(self, words: Sequence[str]) -> tuple[Line | None, int, float, list[int] | None]:
        """The line, the color, the seconds between reports, and the actions to choose among, of an analysis."""
        rest = list(words)
        turn = self._board.state(self._board.line).turn
        color = _color(rest.pop(0)) if rest and rest[0].lower() in COLORS else max(0, turn)
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
                if _color(rest[0]) == color:
                    (allowed if word == "allow" else avoided).update(rest[1].upper().split(","))
                del rest[:3]
            else:
                raise Refused(f"syntax error: {word}")
        line = self._board.line_of(color)
        if line is None or not (allowed or avoided):
            return line, color, max(0.05, interval), None
        state = self._board.state(line)
        legal = {self._board.vertex(state, action).upper(): action for action in state.legal_actions()}
        chosen = [action for name, action in legal.items() if name in (allowed or legal) and name not in avoided]
        return line, color, max(0.05, interval), chosen or None

    def _end_analysis(self) -> None:
        analysis, self._analysis = self._analysis, None
        if analysis is not None:
            analysis.stop()
            error = analysis.exception()
            self._talk.say(*([f"error: {one_line(error)}"] if error is not None else []), "")


def _color(word: str) -> int:
    if word.lower() not in COLORS:
        raise Refused("syntax error: expected a color")
    return COLORS[word.lower()]


def _info(result: _core.SearchResult, name: Callable[[int], str], form: str) -> str:
    """The root's visited actions in one line, the most visited first."""
    places = {int(action): index for index, action in enumerate(result.actions)}
    bounds = [lower_bound(*pair) for pair in zip(result.q.tolist(), result.standard_errors.tolist(), strict=True)]
    found = []
    for order, (actions, visits, q) in enumerate(result.principal_variations(len(places))):
        index = places[actions[0]]
        shares = {
            "winrate": (q + 1) / 2,
            "prior": float(result.priors[index]),
            "lcb": (bounds[index] + 1) / 2,
        }
        numbers = " ".join(
            f"{word} {round(10_000 * share)}" if form == "lz" else f"{word} {share:.6f}"
            for word, share in shares.items()
        )
        line = " ".join(name(action) for action in actions)
        found.append(f"info move {name(actions[0])} visits {visits} {numbers} order {order} pv {line}")
    return " ".join(found)
