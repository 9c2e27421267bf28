"""Lines of play that a game fails at, and how a shorter one is found. Knows nothing of what fails."""

import contextlib
import time
from collections.abc import Callable

from azpy.checks.game_checks import Broken
from azpy.checks.perspective import Line

__all__ = ["Failed", "NoLine", "shrink"]

_SHRINK_SECONDS = 5.0


class Failed(Exception):  # noqa: N818  what is wrong is the game
    """A broken promise and where; `other` is the second line of a pair."""

    def __init__(self, line: Line, broken: Broken, other: Line | None = None) -> None:
        super().__init__(str(broken))
        self.line = line if broken.action is None else (*line, broken.action)
        self.broken, self.other = broken, other
        self.plies = len(self.line) + len(other or ())
        broken.action = None


class NoLine(Exception):  # noqa: N818  nothing is wrong, but where the line was legal before
    """Actions that cannot be played one after the other: the one at `ply` is not offered."""

    def __init__(self, ply: int) -> None:
        super().__init__(ply)
        self.ply = ply


def shrink(failed: Failed, fails: Callable[[tuple[Line, ...]], Failed | None]) -> Failed:
    """Leaves out ever smaller parts of a line, as long as it still fails: Zeller's delta debugging (2002).

    Of a pair of lines it leaves out the same part of both, or a part of one.
    """
    until = time.monotonic() + _SHRINK_SECONDS
    size = max(1, len(failed.line) // 2)
    while size:
        begin, shorter = 0, False
        while begin < max(len(failed.line), len(failed.other or ())):
            lines: tuple[Line, ...] = (failed.line, *(() if failed.other is None else (failed.other,)))
            cut = tuple(line[:begin] + line[begin + size :] for line in lines)
            tries = [cut] if failed.other is None else [cut, (cut[0], lines[1]), (lines[0], cut[-1])]
            if time.monotonic() > until:
                return failed
            found = None
            for attempt in tries:
                if attempt != lines and found is None:
                    with contextlib.suppress(NoLine):
                        found = fails(attempt)
            if found is None or found.plies >= failed.plies:  # a fault of a follower has one more
                begin += 1
            else:
                failed, shorter = found, True
        if not shorter:
            size //= 2
    return failed
