"""The protocols of programs that azpy calls, and how a user names a program: `uci:stockfish?UCI_Elo=1500`.

- GTP: Go Text Protocol, version 2 (G. Farnebäck, 2002), for Go; with the command `set_game`, as GRhino has it, for
  Othello too.
- UCI: Universal Chess Interface (R. Huber and S. Meyer-Kahlen, 2006), for chess and Chess960.
- UGI: Universal Game Interface (kz04px/cutegames), UCI for any game. Positions are lines of play from the start, as
  `State.format_actions` writes them. Moves are the names that `State.action_name` gives.

azpy's rules decide what is legal and who wins.
"""

import re
import shlex
import shutil
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from azpy._core import State
from azpy.errors import SettingsError, did_you_mean
from azpy.matches.arena import Board
from azpy.matches.programs import Misbehaved, ProgramPlayer, ProgramProtocol, ProgramSpec, Transcripts, shown
from azpy.matches.query import parse_query
from azpy.settings.about import About

_MOST_LINES = 1_000  # of an answer of GTP, and options of a program of UCI
_LONGEST_ABOUT = 60  # characters


# The settings that azpy reads itself, with their types and ranges. All others are options of the program.
_SECONDS = About("seconds", "matches", float, low=0.001, high=86_400)
_OWN = {
    "nodes": About("nodes of a move", "matches", int, low=1, high=2**31 - 1),
    **dict.fromkeys(("movetime", "timeout", "start_timeout"), _SECONDS),
}


def parse_program(text: str) -> ProgramSpec | None:
    """The program that `text` names; None if it begins with no protocol.

    Raises:
        SettingsError: no command, a program that is not there, or a wrong setting.
    """
    match = re.fullmatch(r"(gtp|uci|ugi):(.*)", text, re.DOTALL)
    if match is None:
        return None
    command, mark, query = match[2].rpartition("?")
    try:
        spec = ProgramSpec(match[1], command.strip() if mark else query.strip())
        if mark:
            given = parse_query(query, _setting)
            own = {name: given.pop(name) for name in _OWN if name in given}
            spec = replace(spec, **own, options=given)
        _SESSIONS[spec.protocol].refuse(spec)
        _arguments(spec)
    except SettingsError as error:
        raise SettingsError(f"player {text!r}: {error}") from None
    return spec


def needs_nodes(spec: ProgramSpec) -> bool:
    """Return whether a program has neither nodes nor a time of its own, and so searches the nodes of the match."""
    return _SESSIONS[spec.protocol].takes_nodes and spec.nodes is None and spec.movetime is None


def load_program(
    spec: ProgramSpec, start: State, nodes: int, transcripts: Transcripts | None
) -> tuple[str, str, ProgramPlayer]:
    """Start a program; return its name with its settings, what it says that it is, and the player.

    A move gets `nodes` nodes if the spec limits neither nodes nor time.

    Raises:
        SettingsError: a game that the protocol is not for, or a program that does not start, does not speak the
            protocol, or refuses its options or the game.
    """
    talk = _SESSIONS[spec.protocol]
    try:
        if talk.games and start.name not in talk.games:
            raise SettingsError(f"this protocol plays {' and '.join(talk.games)}, not {start.game}")
        if needs_nodes(spec):
            spec = replace(spec, nodes=nodes)
        player = ProgramPlayer(_arguments(spec), lambda program: talk(program, spec, start), transcripts)
        about = player.probe()
    except (SettingsError, Misbehaved) as error:
        raise SettingsError(f"player '{spec}': {error}") from None
    return str(spec), "".join(c for c in about if c.isprintable())[:_LONGEST_ABOUT], player


def _arguments(spec: ProgramSpec) -> list[str]:
    try:
        words = shlex.split(spec.command)
    except ValueError as error:
        raise SettingsError(f"cannot read the command: {error}") from None
    if not words:
        raise SettingsError(f"expected a program after {spec.protocol}:, got none")
    if shutil.which(words[0]) is None:
        raise SettingsError(f"program {words[0]!r} not found in this folder or on the PATH")
    return words


def _setting(name: str, text: str) -> Any:
    if not name.isprintable() or not text.isprintable():
        raise SettingsError(f"{name!r}: expected printable characters, got {text!r}")
    return _OWN[name].checked(name, text, typed=True) if name in _OWN else text


class _Refused(Misbehaved):
    """A program of GTP answered a command with an error."""


class _Gtp(ProgramProtocol):
    """Go Text Protocol: the program keeps the game, and azpy sends it each action of the other players."""

    games = ("go", "othello")

    @classmethod
    def refuse(cls, spec: ProgramSpec) -> None:
        named = [*(spec.options or {}), *(["nodes"] if spec.nodes is not None else [])]
        if named:
            raise SettingsError(
                f"GTP does not have options such as {named[0]}: put it among the program's own arguments"
            )
        if spec.movetime is not None and spec.movetime != int(spec.movetime):
            raise SettingsError(f"GTP needs movetime in whole seconds, got {spec.movetime:g}")

    async def open(self) -> None:
        self._commands = set((await self._ask("list_commands", self.spec.start_timeout)).split())
        self.about = f"{await self._ask('name')} {await self._ask('version')}"
        if self.spec.movetime is not None and "time_settings" not in self._commands:
            raise Misbehaved("does not support time_settings: leave movetime out")
        if self._is_othello:
            if "set_game" not in self._commands:
                raise Misbehaved("does not support set_game, so it plays only Go")
            await self._ask("set_game Othello")

    async def begin(self, start: State | None = None) -> None:
        await super().begin(start)
        options = self.start.params
        await self._ask(f"boardsize {options['size']}")
        await self._ask("clear_board")
        if not self._is_othello:
            await self._ask(f"komi {options['komi']}")
        if self.spec.movetime is not None:  # no main time, and so many seconds for each stone
            await self._ask(f"time_settings 0 {self.spec.movetime:.0f} 1")
        if self.set_up:  # of Go: a book of Othello has lines of play only
            for vertex, mark in self.start.board().items():
                await self._ask(f"play {'b' if mark == 'x' else 'w'} {vertex}")

    async def choose(self, game: Board) -> int | None:
        for player, name in self.follow(game.actions):
            try:
                await self._ask(f"play {'bw'[player]} {name}")
            except _Refused:  # GRhino passes by itself and has no command for it: a pass in Othello is forced
                if not (self._is_othello and name == "pass"):
                    raise
        colour = "bw"[game.state.turn]
        if self.spec.movetime is not None and "time_left" in self._commands:
            await self._ask(f"time_left {colour} {self.spec.movetime:.0f} 1")
        vertex = (await self._ask(f"genmove {colour}", self.move_seconds)).upper()
        if vertex == "RESIGN":
            return None
        action = self.legal(game.state, vertex.lower() if self._is_othello or vertex == "PASS" else vertex)
        self.follow([*game.actions, action])  # the program has played it
        return action

    @property
    def _is_othello(self) -> bool:
        return self.start.name == "othello"

    async def _ask(self, command: str, seconds: float | None = None) -> str:
        """The program's answer to a command, without its mark."""
        self.program.send(command, self.spec.timeout if seconds is None else seconds)
        while not (line := await self.program.read()):
            pass
        match = re.match(r"([=?])\d*\s*(.*)", line)
        if match is None:
            raise Misbehaved(f"answers {shown(line)} to {shown(command)}, expected a line that begins with = or ?")
        lines = [match[2]]
        while line := await self.program.read():
            lines.append(line)
            if len(lines) > _MOST_LINES:
                raise Misbehaved(f"answers more than {_MOST_LINES} lines to {shown(command)}")
        text = "\n".join(lines).strip()
        if match[1] == "?":
            raise _Refused(f"refuses {shown(command)}: {shown(text)}")
        return text


class _Interface(ProgramProtocol):
    """The common part of UCI and UGI: azpy sends the whole game before each search."""

    takes_nodes = True
    word = ""

    async def open(self) -> None:
        options: dict[str, str] = {}
        for line in await self._until(self.word, f"{self.word}ok", self.spec.start_timeout):
            if line.startswith("id name "):
                self.about = line.removeprefix("id name ").strip()
            elif (match := re.match(r"option\s+name\s+(.+?)\s+(type\s.*)", line)) and len(options) < _MOST_LINES:
                options[match[1]] = match[2]
        for name, value in self._wanted(options).items():
            self.program.send(f"setoption name {_option(name, value, options)} value {value}", self.spec.timeout)
        await self._until("isready", "readyok", self.spec.start_timeout)

    async def begin(self, start: State | None = None) -> None:
        await super().begin(start)
        self.program.send(f"{self.word}newgame", self.spec.timeout)
        await self._until("isready", "readyok", self.spec.timeout)

    async def choose(self, game: Board) -> int | None:
        self.program.send(self.position(game.actions), self.spec.timeout)
        limits = f" nodes {self.spec.nodes}" if self.spec.nodes is not None else ""
        limits += f" movetime {max(1, round(1000 * self.spec.movetime))}" if self.spec.movetime is not None else ""
        line = (await self._until(f"go{limits}", "bestmove", self.move_seconds))[-1]
        return self.legal(game.state, line.removeprefix("bestmove").partition(" ponder ")[0].strip())

    @abstractmethod
    def position(self, actions: Sequence[int]) -> str:
        """The command for the position after these actions."""

    def _wanted(self, options: Mapping[str, str]) -> dict[str, str]:
        """The options to be set; `options` are those that the program has."""
        return dict(self.spec.options or {})

    async def _until(self, command: str, word: str, seconds: float) -> list[str]:
        """Send a command; return the first lines of the answer, and its last one, which begins with `word`."""
        self.program.send(command, seconds)
        lines: list[str] = []
        while True:
            line = (await self.program.read()).strip()
            if len(lines) < _MOST_LINES or line.split()[:1] == [word]:
                lines.append(line)
            if line.split()[:1] == [word]:
                return lines


def _option(name: str, value: str, options: Mapping[str, str]) -> str:
    """The name as the program writes it, after a check of the value: programs ignore wrong values in silence."""
    known = {one.lower(): one for one in options}
    if name.lower() not in known:
        raise Misbehaved(f"does not have the option {name!r}{did_you_mean(name, options)}")
    name = known[name.lower()]
    row = options[name].split()
    kind = row[1] if len(row) > 1 else ""
    bounds = {word: text for word, text in pairwise(row) if word in ("min", "max")}
    expected = ""
    if kind == "check" and value not in ("true", "false"):
        expected = "true or false"
    elif kind == "spin":
        try:
            fits = int(bounds.get("min", value)) <= int(value) <= int(bounds.get("max", value))
        except ValueError:
            fits = False
        expected = "" if fits else f"a whole number from {bounds.get('min')} to {bounds.get('max')}"
    elif kind == "combo":
        words = [word.strip() for word in options[name].split(" var ")[1:]]
        expected = "" if value in words else f"one of {', '.join(words)}"
    if expected:
        raise Misbehaved(f"needs {expected} for its option {name!r}, got {value!r}")
    return name


class _Uci(_Interface):
    """Universal Chess Interface."""

    games, word = ("chess",), "uci"

    def position(self, actions: Sequence[int]) -> str:
        self.follow(actions)
        start = f"fen {self.start.to_text()}" if self._is_960 or self.set_up else "startpos"
        moves = "".join(f" {name}" for _, name in self._followed)
        return f"position {start}{f' moves{moves}' if moves else ''}"

    @property
    def _is_960(self) -> bool:
        return self.start.params.get("chess960", "off") != "off"

    def _wanted(self, options: Mapping[str, str]) -> dict[str, str]:
        """An Elo counts only with UCI_LimitStrength, and castling is written by the rules of the game."""
        wanted = super()._wanted(options)
        given = {name.lower() for name in wanted}
        if "uci_elo" in given and "uci_limitstrength" not in given and "UCI_LimitStrength" in options:
            wanted["UCI_LimitStrength"] = "true"
        return wanted | ({"UCI_Chess960": "true"} if self._is_960 else {})


class _Ugi(_Interface):
    """Universal Game Interface."""

    word = "ugi"

    def position(self, actions: Sequence[int]) -> str:
        start = f"position fen {self.set_up}" if self.set_up else "position startpos"
        return f"{start} moves {self.start.format_actions(actions)}" if actions else start

    async def finish(self, game: Board) -> str | None:
        """The result that the program sees, if it differs from ours."""
        if not game.state.is_terminal:
            return None
        self.program.send(self.position(game.actions), self.spec.timeout)
        self.program.send("query result", self.spec.timeout)
        outcome = game.state.outcome()
        ours = "p1win" if outcome > 0 else "p2win" if outcome < 0 else "draw"
        # A program that supports the query answers it before readyok.
        for line in await self._until("isready", "readyok", self.spec.timeout):
            if line.startswith("response ") and (theirs := line.removeprefix("response ").strip()) != ours:
                return f"reports {shown(theirs)}, but the result by the rules is {ours}"
        return None


_SESSIONS: dict[str, type[_Gtp] | type[_Uci] | type[_Ugi]] = {"gtp": _Gtp, "uci": _Uci, "ugi": _Ugi}
