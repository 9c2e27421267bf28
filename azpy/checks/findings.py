"""What a check of a game finds."""

from collections import Counter
from dataclasses import dataclass, field

from azpy.checks.failing_lines import Line
from azpy.checks.rules import RULES

__all__ = ["Finding", "Report"]


@dataclass(frozen=True)
class Finding:
    """A fault or a warning.

    Attributes:
        rule: the rule's name in `rules.RULES`.
        line: the actions that lead to the position. None if no single position is at fault.
        names: the names of these actions.
        board: the position as text.
        other: the names of a second line, if two lines contradict each other.
        other_board: the position after the second line.
        got: what the game gave.
        expected: what the rule asks for.
    """

    rule: str
    line: Line | None
    names: tuple[str, ...]
    board: str
    other: tuple[str, ...] | None
    other_board: str
    got: str
    expected: str

    @property
    def holds(self) -> str:
        """The rule."""
        return RULES[self.rule].holds

    @property
    def advice(self) -> str:
        """How to repair the game."""
        return RULES[self.rule].advice


@dataclass
class Report:
    """What a check looked at, and what it found.

    Attributes:
        game: the spec.
        failure: the first fault, if there is one.
        warnings: signs of mistakes that can also be right.
        lines: lines of play of the enumeration.
        depth: the enumeration has all lines of at most this many plies.
        complete: the enumeration has seen every position of the game.
        games: random games played to the end.
        plies: of all of them.
        lengths: of the shortest and the longest game seen.
        results: games by outcome for player 0.
        positions: different keys.
        met_again: positions met again with a key that was known, and compared with it.
        elsewhere: positions compared with those of another process.
        searches: pairs of searches, with and without a cache.
        mirrored: symmetries under which the games were played as well, of `symmetries` besides the identity.
        plies_per_second: of random play by the core.
        max_plies: what the game says.
        seconds: how long it took.
    """

    game: str
    failure: Finding | None = None
    warnings: list[Finding] = field(default_factory=list)
    lines: int = 0
    depth: int = 0
    complete: bool = False
    games: int = 0
    plies: int = 0
    lengths: tuple[int, int] | None = None
    results: Counter[float] = field(default_factory=Counter)
    positions: int = 0
    met_again: int = 0
    elsewhere: int = 0
    searches: int = 0
    mirrored: int = 0
    symmetries: int = 0
    plies_per_second: float = 0.0
    max_plies: int = 0
    seconds: float = 0.0
