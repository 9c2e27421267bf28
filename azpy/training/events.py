"""Progress reports of a training run or a collection, as plain records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from azpy.matches.results import MatchResult
from azpy.reports.report import exploitability
from azpy.settings import Settings


class Event:
    """Any of the events below."""


@dataclass(frozen=True)
class Started(Event):
    """The run begins, or goes on after `iteration`.

    `evaluator` says which network plays and where. `parameters` is None where games are only collected. `hides` says
    whether the game hides something, so that it is learned without search.
    """

    path: str
    settings: Settings
    iteration: int
    seconds: float
    notices: tuple[str, ...]
    evaluator: str
    parameters: int | None = None
    hides: bool = False


@dataclass(frozen=True)
class Imported(Event):
    """Games were read from files, for the network to begin with.

    Of `found` games, `games` with `positions` are learned from, and `held_out` are measured on. `left_out` has the
    others and the files that were left out, by the reason in words: how many, and where the first is.
    """

    files: int
    found: int
    games: int
    positions: int
    held_out: int
    left_out: dict[str, tuple[int, str]]


@dataclass(frozen=True)
class Played(Event):
    """Self-play so far in this iteration.

    `metrics` is the iteration's row of metrics.jsonl so far. `workers` are the rows of its workers so far, see
    `worker_rows`; empty where this process plays. `longest` is the number of plies of the longest game in play,
    and 0 where other processes play.
    """

    iteration: int
    games: int
    metrics: dict[str, float]
    workers: tuple[Mapping[str, Any], ...] = ()
    longest: int = 0


@dataclass(frozen=True)
class Noticed(Event):
    """A notice for the user in one line, such as a worker's death."""

    text: str


@dataclass(frozen=True)
class Fitted(Event):
    """Fitting so far in this iteration, 0 for imported games: `taken` of `steps` steps, and the mean losses over them.

    `heads` has those of a user's network's further heads, by name. `metrics` has, now and then in iteration 0, the
    figures of the held-out games, as the row of metrics.jsonl does.
    """

    iteration: int
    taken: int
    steps: int
    policy_loss: float
    value_loss: float
    heads: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Saved(Event):
    """An iteration is done. `path` is its checkpoint, or in a collection the file of its sealed games.

    `advice` says what to change, if anything stands out.
    """

    iteration: int
    path: str
    metrics: dict[str, float]
    advice: str | None = None


@dataclass(frozen=True)
class Matched(Event):
    """A match of the newest model against one opponent."""

    iteration: int
    opponent: str
    result: MatchResult


@dataclass(frozen=True)
class Measured(Event):
    """What a best response wins against the newest player, half of it as each side, and against equal shares.

    `unit` says in what, such as "chips"; empty where it is the outcome.
    """

    iteration: int
    exploitability: float
    uniform: float
    unit: str

    def __str__(self) -> str:
        return exploitability(vars(self))


@dataclass(frozen=True)
class Finished(Event):
    """The run's budget is spent.

    `game` is the id of one of the newest games, None without any. A `repeatable` run gives the same games once more.
    The hashes (SHA-256, hexadecimal) cover all games and the last weights; only deterministic training has them.
    `collected` is the number of games of a collection, None for training. A run may have a model before its first
    iteration is done.
    """

    path: str
    iteration: int
    seconds: float
    game: int | None = None
    repeatable: bool = False
    games_hash: str | None = None
    weights_hash: str | None = None
    collected: int | None = None
    has_model: bool = False
