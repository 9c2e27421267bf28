"""What a training run reports while it goes on. Plain records; how they are shown is the reader's affair."""

from dataclasses import dataclass

from azpy.arena import MatchResult
from azpy.settings import Settings

__all__ = ["Event", "Finished", "Fitted", "Matched", "Played", "Saved", "Started"]


@dataclass(frozen=True)
class Started:
    """The run is about to begin, or to go on after `iteration`."""

    path: str
    settings: Settings
    parameters: int
    iteration: int
    seconds: float
    notices: tuple[str, ...]


@dataclass(frozen=True)
class Played:
    """Self-play so far in this iteration; `metrics` are its row of metrics.jsonl so far."""

    iteration: int
    games: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Fitted:
    """Fitting so far in this iteration: the losses are means over the steps `taken`, out of `steps`."""

    iteration: int
    taken: int
    steps: int
    policy_loss: float
    value_loss: float


@dataclass(frozen=True)
class Saved:
    """An iteration is done and its checkpoint written."""

    iteration: int
    path: str
    metrics: dict[str, float]


@dataclass(frozen=True)
class Matched:
    """A match of the newest model against one opponent."""

    iteration: int
    opponent: str
    result: MatchResult


@dataclass(frozen=True)
class Finished:
    """The run's budget is spent.

    The hashes (SHA-256, hexadecimal) are those of all games and of the last weights; only deterministic runs have them.
    """

    path: str
    iteration: int
    seconds: float
    games_hash: str | None = None
    weights_hash: str | None = None


Event = Started | Played | Fitted | Saved | Matched | Finished
