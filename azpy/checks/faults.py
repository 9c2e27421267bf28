"""A broken rule with the line of play that shows it, and the search for a shorter line."""

import contextlib
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as File

from azpy._core import GameError
from azpy.checks.rules import RULES

_SHRINK_SECONDS = 5.0

Line = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """The first plies of a game. Positions of one game share the list of actions, which may grow."""

    actions: Sequence[int]
    plies: int

    @property
    def line(self) -> Line:
        """The actions that lead to the position."""
        return tuple(self.actions[: self.plies])


@dataclass(frozen=True)
class Shown:
    """A line of play as people read it."""

    names: list[str]  # of its actions
    before: str | None  # the board before the last action; None without an action
    board: str  # after it, or the last board that the game can show


class Broken(Exception):  # noqa: N818  the game is wrong, not azpy
    """A rule that a game breaks, or seems to break.

    Attributes:
        rule: the rule's name in `RULES`, which give it in words (`holds`), and `advice`.
        got: what the game gave.
        expected: what the rule asks for.
        line: the actions that lead to the position. None before it is known, and if no single position is at fault.
        other: a second line, if two lines contradict each other.
        action: None, or the rule is broken in the position after this action.
        place: FILE:LINE of the game's code that raised an exception. None for other rules.
        shown: each line as people read it.
    """

    def __init__(
        self,
        rule: str,
        got: str,
        expected: str,
        line: Line | None = None,
        other: Line | None = None,
        action: int | None = None,
    ) -> None:
        super().__init__(f"{rule}: got {got}, expected {expected}")
        self.rule, self.got, self.expected = rule, got, expected
        self.holds, self.advice = RULES[rule]
        self.line, self.other, self.action = line, other, action
        self.place: str | None = None
        self.shown: list[Shown] = []

    @property
    def plies(self) -> int:
        """The length of its lines."""
        return len(self.line or ()) + len(self.other or ())


class Gone(Broken):
    """The game no longer offers an action that it offered before. While a line is shortened this says nothing."""


@contextlib.contextmanager
def asked(line: Line | None = None, action: int | None = None) -> Iterator[None]:
    """Turn an exception of the game into `Broken`. The position that is asked comes after `line`, then `action`."""
    try:
        yield
    except (Exception, SystemExit) as error:
        broken = error if isinstance(error, Broken) else broken_by(error)
        broken.action = action if broken.action is None else broken.action
        if broken.line is None and line is not None:
            broken.line = line if broken.action is None else (*line, broken.action)
        raise broken from None


def broken_by(error: BaseException) -> Broken:
    """The rule that an exception of the game breaks."""
    if isinstance(error, GameError) and hasattr(error, "rule"):
        rule, got, expected = (getattr(error, part) for part in ("rule", "got", "expected"))
        cause, action = error.__cause__, getattr(error, "action", None)
        if cause is None:
            other = getattr(error, "other", None)
            return Broken(rule, got, expected, other=None if other is None else tuple(other), action=action)
        below = broken_by(cause)
        if rule == "exception":
            below.action = action
            return below
        return Broken(rule, f"{got}: it gives {below.got} now", expected, action=action)
    here = str(File(__file__).parent)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(here)]
    where = f" ({File(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    called = f"{frames[0].name}() raised " if frames else ""
    broken = Broken("exception", f"{called}{type(error).__name__}: {error}{where}", "an answer")
    broken.place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    return broken


def shrink(broken: Broken, fails: Callable[[tuple[Line, ...]], Broken | None]) -> Broken:
    """Leave out ever smaller parts of a line while it still fails (delta debugging, Zeller and Hildebrandt 2002).

    Of two lines it leaves out the same part of both, or a part of one. `fails` says how shorter lines fail.
    """
    until = time.monotonic() + _SHRINK_SECONDS
    size = max(1, len(broken.line or ()) // 2)
    while size:
        begin, shorter = 0, False
        while begin < max(map(len, lines := [line for line in (broken.line, broken.other) if line is not None])):
            cut = tuple(line[:begin] + line[begin + size :] for line in lines)
            found = None
            # dict.fromkeys: one attempt for equal lines.
            for attempt in dict.fromkeys([cut, (cut[0], *lines[1:]), (*lines[:-1], cut[-1])]):
                if time.monotonic() > until:
                    return broken
                if attempt != tuple(lines) and found is None:
                    found = fails(attempt)
            if found is None or found.plies >= broken.plies:  # a fault after one more action is no shorter
                begin += 1
            else:
                broken, shorter = found, True
        if not shorter:
            size //= 2
    return broken
