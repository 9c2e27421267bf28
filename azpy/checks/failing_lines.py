"""Lines of play at which a game fails, and the search for shorter ones."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from azpy.checks.game_checks import Broken

__all__ = ["Failed", "Line", "NoLine", "Path", "shrink"]

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


class Failed(Exception):  # noqa: N818  the game is wrong, not azpy
    """A broken rule and its line. `other` is the second line, if two lines contradict each other."""

    def __init__(self, line: Line, broken: Broken, other: Line | None = None) -> None:
        super().__init__(str(broken))
        self.line = line if broken.action is None else (*line, broken.action)
        self.broken, self.other = broken, other
        self.plies = len(self.line) + len(other or ())
        broken.action = None


class NoLine(Exception):  # noqa: N818  only wrong if the line was legal before
    """A line whose action at `ply` is not legal."""

    def __init__(self, ply: int) -> None:
        super().__init__(ply)
        self.ply = ply


def shrink(failed: Failed, fails: Callable[[tuple[Line, ...]], Failed | None]) -> Failed:
    """Leaves out ever smaller parts of a line while it still fails (delta debugging, Zeller and Hildebrandt 2002).

    Of two lines it leaves out the same part of both, or a part of one. `fails` says how shorter lines fail.
    """
    until = time.monotonic() + _SHRINK_SECONDS
    size = max(1, len(failed.line) // 2)
    while size:
        begin, shorter = 0, False
        while begin < max(len(failed.line), len(failed.other or ())):
            lines = (failed.line,) if failed.other is None else (failed.line, failed.other)
            cut = tuple(line[:begin] + line[begin + size :] for line in lines)
            found = None
            # dict.fromkeys: one attempt for equal lines.
            for attempt in dict.fromkeys([cut, (cut[0], *lines[1:]), (*lines[:-1], cut[-1])]):
                if time.monotonic() > until:
                    return failed
                if attempt != lines and found is None:
                    with contextlib.suppress(NoLine):
                        found = fails(attempt)
            if found is None or found.plies >= failed.plies:  # a fault after one more action is no shorter
                begin += 1
            else:
                failed, shorter = found, True
        if not shorter:
            size //= 2
    return failed
