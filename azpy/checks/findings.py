"""What a check of a game finds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from azpy.checks.faults import Line

__all__ = ["Finding", "Report"]


@dataclass(frozen=True)
class Finding:
    """A fault or a warning."""

    rule: str  # its name in `rules.RULES`
    holds: str  # the rule
    advice: str  # how to repair the game
    line: Line | None  # the actions that lead to the position; None if no single position is at fault
    other: Line | None  # a second line, if two lines contradict each other
    shown: Sequence[tuple[Sequence[str], str]]  # of each of these lines the names of its actions, and its board
    got: str  # what the game gave
    expected: str  # what the rule asks for


@dataclass
class Report:
    """What a check looked at, and what it found."""

    game: str  # the spec
    failure: Finding | None = None  # the first fault
    warnings: list[Finding] = field(default_factory=list)  # signs of mistakes that can also be right
    lines: int = 0  # of play, in the enumeration
    depth: int = 0  # the enumeration has all lines of at most this many plies
    complete: bool = False  # the enumeration has seen every position of the game
    games: int = 0  # at random, played to the end
    plies: int = 0  # of all of them
    lengths: tuple[int, int] | None = None  # of the shortest and the longest game seen
    results: Counter[float] = field(default_factory=Counter)  # games by outcome for player 0
    positions: int = 0  # different keys
    met_again: int = 0  # positions met again with a key that was known, and compared with it
    elsewhere: int = 0  # positions compared with those of another process
    searches: int = 0  # pairs of searches, with and without a cache
    symmetries: int = 0  # besides the identity
    mirrored: int = 0  # symmetries under which the games were played as well
    plies_per_second: float = 0.0  # of random play by the core
    max_plies: int = 0  # what the game says
    seconds: float = 0.0  # how long it took
