"""Other programs as players: their processes, the lines exchanged within time limits, and one process per game.

A program is ended where it breaks its protocol or the game's rules, and loses the game. The next game gets a fresh
process. Knows nothing of any protocol: `azpy/matches/protocols.py` does.
"""

import asyncio
import contextlib
import errno
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from azpy._core import State
from azpy.errors import SettingsError
from azpy.games.lines import read_action
from azpy.matches.arena import Answer, Board, Follower
from azpy.matches.query import query_text
from azpy.matches.results import Fault
from azpy.system import OWN_GROUP, kill_group

T = TypeVar("T")

MOST_SLOTS = 1024  # processes of one player at a time
_LONGEST_LINE = 1 << 16  # bytes
_KEPT_LINES, _KEPT_CHARACTERS = 2_000, 1_000  # of a transcript: its newest lines, and the start of each
_MOST_TRANSCRIPTS = 20  # files a player writes in a match
_SHOWN = 60  # characters of a program's text in a message
_EXHAUSTED = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_GRACE = 1.0  # seconds that a process gets to end by itself


class Misbehaved(Exception):  # noqa: N818  not an error of azpy
    """A program broke its protocol or the game's rules. The text goes on from the program's name."""


def shown(text: str) -> str:
    """A program's text for a message: quoted, on one line, cut if it is long."""
    return ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


class Program:
    """A process that is talked to in lines of text. No shell reads the command. A line that comes is at most 64 KiB.

    Raises:
        Misbehaved: the program cannot be started.
        SettingsError: the system allows no more processes or files.
    """

    def __init__(self, transport: asyncio.SubprocessTransport, streams: SubprocessStreamProtocol) -> None:
        self._transport, self._process = transport, Process(transport, streams, asyncio.get_running_loop())
        pipes: Any = streams.stdin, streams.stdout, streams.stderr
        self._input, self._output, self._errors = pipes
        self._began = time.monotonic()
        self._transcript: deque[tuple[float, str, str]] = deque(maxlen=_KEPT_LINES)
        self._asked, self._seconds, self._deadline, self._complaint = "", 0.0, 0.0, ""
        self._complaints = asyncio.create_task(self._hear_complaints())

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        """See `Program`."""
        loop = asyncio.get_running_loop()
        try:
            # This is asyncio.create_subprocess_exec with access to the transport, which must be closed.
            return cls(
                *await loop.subprocess_exec(
                    lambda: SubprocessStreamProtocol(_LONGEST_LINE, loop), *command, **OWN_GROUP
                )
            )
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in _EXHAUSTED:  # the system is at fault, not the program
                problem = f"cannot start another {command[0]}, {error.strerror}: give fewer --slots"
                raise SettingsError(problem) from error
            raise Misbehaved(f"does not start: {error}") from error

    def send(self, line: str, seconds: float) -> None:
        """Send a line without a wait; the program must answer within so many seconds from now."""
        self._asked, self._seconds, self._deadline = line, seconds, time.monotonic() + seconds
        self._note(">", line)
        self._input.write(line.encode() + b"\n")

    async def read(self) -> str:
        """The next line of the program, without blanks at its end.

        Raises:
            Misbehaved: the program ended, is late, or writes a line that is too long.
        """
        try:
            line = await asyncio.wait_for(self._output.readline(), max(0.0, self._deadline - time.monotonic()))
        except TimeoutError:
            raise Misbehaved(f"does not answer {shown(self._asked)} in {self._seconds:g} s") from None
        except ValueError:
            raise Misbehaved(f"writes a line of more than {_LONGEST_LINE} bytes") from None
        if not line:
            raise Misbehaved(await self._end())
        text: str = line.decode("utf-8-sig", errors="replace").rstrip()
        self._note("<", text)
        return text

    async def close(self, grace: float = 0.0) -> None:
        """End the process and what it started; with `grace` it is told to quit, and has that many seconds to do so."""
        if grace:
            self._input.write(b"quit\n")
            self._input.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), grace)
        if self.is_running:
            kill_group(self._process)
        # asyncio waits for the pipes to end, and something that the program started may hold them open. The transport
        # comes last: it would take the exit status that asyncio's watcher waits for, which then prints a warning.
        for number in range(3):
            if (pipe := self._transport.get_pipe_transport(number)) is not None:
                pipe.close()
        await self._process.wait()
        self._transport.close()
        await self._complaints

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.returncode is None

    def transcript(self) -> str:
        """The newest lines: ">" was sent, "<" came, "!" came on the standard error. Seconds count from the start."""
        return "".join(f"{seconds:9.3f} {mark} {text}\n" for seconds, mark, text in self._transcript)

    async def _hear_complaints(self) -> None:
        """Read the standard error."""
        while data := await self._errors.read(_LONGEST_LINE):
            for line in data.decode(errors="replace").splitlines():
                self._complaint = line.strip() or self._complaint
                self._note("!", line)

    async def _end(self) -> str:
        """Say how the program ended."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(self._process.wait(), asyncio.shield(self._complaints)), _GRACE)
        code = self._process.returncode
        how = "closes its output" if code is None else f"ends with exit status {code}"
        if code is not None and code < 0:
            how = f"ends by signal {-code}"
        said = f"; its last line on stderr: {shown(self._complaint)}" if self._complaint else ""
        return f"{how} instead of answering {shown(self._asked)}{said}"

    def _note(self, mark: str, text: str) -> None:
        self._transcript.append((time.monotonic() - self._began, mark, text[:_KEPT_CHARACTERS]))


@dataclass(frozen=True)
class ProgramSpec:
    """A program as the user named it; nothing is started yet."""

    protocol: str
    command: str  # as typed, without the settings
    nodes: int | None = None  # a move
    movetime: float | None = None  # seconds a move
    timeout: float = 60.0  # seconds for an answer, beside `movetime`; then the game is lost
    start_timeout: float = 60.0  # seconds until it is ready
    options: Mapping[str, str] | None = None  # its own

    def __str__(self) -> str:
        own = {"nodes": self.nodes, "movetime": self.movetime, "timeout": self.timeout}
        given = {name: value for name, value in own.items() if value != getattr(ProgramSpec, name)}
        return f"{self.protocol}:{self.command}{query_text({**(self.options or {}), **given})}"


class ProgramProtocol(ABC):
    """The protocol by which azpy plays with a program. All methods may raise `Misbehaved`."""

    games: tuple[str, ...] = ()  # that the protocol is for, by name; none for any game
    takes_nodes = False  # whether a move can be limited by nodes

    def __init__(self, program: Program, spec: ProgramSpec, start: State) -> None:
        self.program, self.spec, self.about = program, spec, ""  # `about`: what it says that it is, after `open`
        self.start, self.usual = start, start  # where the game in play begins, and where games do
        self._followed: list[tuple[int, str]] = []  # the player and the name of each action so far
        self._state = start.clone()

    @classmethod  # noqa: B027  most protocols have them all
    def refuse(cls, spec: ProgramSpec) -> None:
        """Refuse settings that the protocol does not have."""

    @abstractmethod
    async def open(self) -> None:
        """Wait until the program is there, and set its options. Called once, first."""

    async def begin(self, start: State | None = None) -> None:
        """Begin a new game; `start` is where it begins, the game's usual start where it is left out."""
        self.start = self.usual if start is None else start
        self._followed, self._state = [], self.start.clone()

    @abstractmethod
    async def choose(self, game: Board) -> int | None:
        """The program's legal action in a game that is at its turn; None if it resigns."""

    async def finish(self, game: Board) -> str | None:
        """What the program got wrong about a finished game, if anything. The text follows the program's name."""
        return None

    @property
    def set_up(self) -> str:
        """The position where the game in play begins, as the game writes it; empty at the usual start."""
        return "" if self.start.key() == self.usual.key() else self.start.to_text().strip()

    def follow(self, actions: Sequence[int]) -> list[tuple[int, str]]:
        """The player and name of each action that the program has not been told yet."""
        known = len(self._followed)
        for action in actions[known:]:
            self._followed.append((self._state.turn, self._state.action_name(action)))
            self._state.play(action)
        return self._followed[known:]

    def legal(self, state: State, name: str) -> int:
        """The legal action of a name."""
        action = read_action(state, name)
        if action is None:
            raise Misbehaved(f"plays {shown(name)}, which is not legal")
        return action

    @property
    def move_seconds(self) -> float:
        """The time in which a move must be there."""
        return self.spec.timeout + (self.spec.movetime or 0.0)


class Transcripts:
    """The files that say how programs misbehaved; in a folder of their own unless one is given."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder, self._lock = folder, threading.Lock()

    def write(self, name: str, text: str) -> str:
        """Write a file under a new name; return its path, or why it was not written."""
        with self._lock:
            try:
                if self._folder is None:
                    self._folder = Path(tempfile.mkdtemp(prefix="az-match-"))
                self._folder.mkdir(parents=True, exist_ok=True)
                number = 1
                while (path := self._folder / f"{name}-{number}.txt").exists():
                    number += 1
                path.write_text(text, encoding="utf-8")
            except OSError as error:
                return f"none: {error}"
        return str(path)


class ProgramPlayer(Follower):
    """Lets a program play, each game by a process of its own, which plays the next game too unless it misbehaved.

    `talk` makes the session of a process.
    """

    def __init__(
        self, command: Sequence[str], talk: Callable[[Program], ProgramProtocol], transcripts: Transcripts | None = None
    ) -> None:
        self._command, self._talk = list(command), talk
        self._transcripts, self._written = transcripts or Transcripts(), 0
        self._playing: dict[int, ProgramProtocol] = {}
        self._idle: list[ProgramProtocol] = []
        # Run it in its own thread: the caller may have an event loop, and must react to Ctrl-C at once.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread()

    def probe(self) -> str:
        """Start a process as for a game, and end it; return what the program says that it is.

        Raises:
            Misbehaved: the program does not start, or cannot play this game.
        """
        try:
            return self._run(self._session(-1, None)).about
        finally:
            self.close()

    def follow(self, games: Sequence[Board]) -> list[Answer]:
        """See `Follower`."""
        return self._run(self._answers(games))

    def leave(self, game: Board) -> Fault | None:
        """See `Follower`."""
        return self._run(self._leave(game)) if game.number in self._playing else None

    def close(self) -> None:
        """See `Follower`. Processes that are thinking are killed."""
        if (loop := self._loop) is None:
            return
        try:
            self._run(self._end())
        finally:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()
            self._loop = None

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work on the event loop. Ctrl-C during the wait cancels the work."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="programs", daemon=True)
            self._thread.start()
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    async def _answers(self, games: Sequence[Board]) -> list[Answer]:
        answers = [asyncio.create_task(self._answer(game)) for game in games]
        try:
            return await asyncio.gather(*answers)
        finally:  # a program failed, or the match was cancelled
            for answer in answers:
                answer.cancel()

    async def _answer(self, game: Board) -> Answer:
        try:
            return await (await self._session(game.number, game.start)).choose(game)
        except Misbehaved as error:
            return await self._fault(game.number, str(error), forfeit=True)

    async def _leave(self, game: Board) -> Fault | None:
        session = self._playing[game.number]
        try:
            problem = await session.finish(game)
        except Misbehaved as error:
            return await self._fault(game.number, str(error), forfeit=False)
        self._idle.append(self._playing.pop(game.number))
        return None if problem is None else Fault(problem, False, self._write(session.program, problem))

    async def _session(self, number: int, start: State | None) -> ProgramProtocol:
        """The session of a game that begins at `start`; at its first turn an idle process, or a fresh one."""
        if number in self._playing:
            return self._playing[number]
        if self._idle:
            session = self._playing[number] = self._idle.pop()
            try:
                await session.begin(start)
                return session
            except Misbehaved:  # it may play one game only: retry with a fresh one
                await self._playing.pop(number).program.close()
        session = self._playing[number] = self._talk(await Program.start(self._command))
        await session.open()
        await session.begin(start)
        return session

    async def _fault(self, number: int, problem: str, forfeit: bool) -> Fault:
        """End the process of a game, if it has one."""
        if (session := self._playing.pop(number, None)) is None:
            return Fault(problem, forfeit)
        transcript = self._write(session.program, problem)
        await session.program.close()
        return Fault(problem, forfeit, transcript)

    async def _end(self) -> None:
        playing, idle = self._playing, self._idle
        self._playing, self._idle = {}, []
        ends = [session.program.close() for session in playing.values()]
        await asyncio.gather(*ends, *(session.program.close(_GRACE) for session in idle))
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            for other in others:
                other.cancel()
            await asyncio.wait(others)

    def _write(self, program: Program, problem: str) -> str | None:
        self._written += 1
        if self._written > _MOST_TRANSCRIPTS:
            return None
        head = f"{' '.join(self._command)}\n{problem}\n\n"
        return self._transcripts.write(Path(self._command[0]).name, head + program.transcript())
