"""What a training run reports while it goes on. Plain records; how they are shown is the reader's affair."""

from dataclasses import dataclass

from azpy.matches.arena import MatchResult
from azpy.settings import Settings

__all__ = [
    "BeingBuilt",
    "Built",
    "CollectFinished",
    "CollectStarted",
    "Event",
    "Finished",
    "Fitted",
    "Matched",
    "Played",
    "Saved",
    "Sealed",
    "Started",
]


class Event:
    """Any of the events below."""


@dataclass(frozen=True)
class Started(Event):
    """The run is about to begin, or to go on after `iteration`; `evaluator` says on what the network plays."""

    path: str
    settings: Settings
    parameters: int
    iteration: int
    seconds: float
    notices: tuple[str, ...]
    evaluator: str


@dataclass(frozen=True)
class Played(Event):
    """Self-play so far in this iteration; `metrics` are its row of metrics.jsonl so far."""

    iteration: int
    games: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Fitted(Event):
    """Fitting so far in this iteration: the losses are means over the steps `taken`, out of `steps`."""

    iteration: int
    taken: int
    steps: int
    policy_loss: float
    value_loss: float


@dataclass(frozen=True)
class BeingBuilt(Event):
    """What the network of `iteration` plays with is being made, since `seconds`; the network before it plays on.

    With `waited_for`, nothing goes on until it is ready. Before anything plays that comes once, at 0 seconds, ahead of
    `Started`.
    """

    iteration: int
    seconds: float
    waited_for: bool


@dataclass(frozen=True)
class Built(Event):
    """The network of `iteration` plays from now on; to make it ready took `seconds`.

    With a `problem` it cannot play, and the network before it plays on.
    """

    iteration: int
    seconds: float
    problem: str | None = None


@dataclass(frozen=True)
class Saved(Event):
    """An iteration is done and its checkpoint written; `advice` says what to change, if anything stands out."""

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
class Finished(Event):
    """The run's budget is spent.

    `game` is the id of one of the newest games, None without any; a run that is `repeatable` is the same once more.
    The hashes (SHA-256, hexadecimal) are those of all games and of the last weights; only deterministic runs have them.
    """

    path: str
    iteration: int
    seconds: float
    game: int | None = None
    repeatable: bool = False
    games_hash: str | None = None
    weights_hash: str | None = None


@dataclass(frozen=True)
class CollectStarted(Event):
    """Games are about to be collected, or collected on after `iteration`; `player` says who plays them."""

    path: str
    settings: Settings
    player: str
    iteration: int
    seconds: float
    notices: tuple[str, ...]


@dataclass(frozen=True)
class Sealed(Event):
    """An iteration's games are complete and sealed in the file `path`."""

    iteration: int
    path: str
    metrics: dict[str, float]


@dataclass(frozen=True)
class CollectFinished(Event):
    """The budget of a collection is spent: `games` in all its iterations; the rest as in `Finished`."""

    path: str
    iteration: int
    games: int
    seconds: float
    game: int | None = None
    repeatable: bool = False
