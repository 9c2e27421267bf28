"""The interface between a run's loop and the players of its games, on this machine or elsewhere."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from azpy import _core
from azpy._core import GameRecord
from azpy.devices import CPU, Device
from azpy.fleet.wire import PROTOCOL
from azpy.settings import Settings
from azpy.settings.run import ABOUT

HOW = ("precision", "score_to_beat")  # of a `Lineup`, besides its network
_ROWS = 64  # whose answers two machines compare


@dataclass(frozen=True)
class Lineup:
    """The current player: a network, opened in this process and as a file for other processes."""

    evaluators: Sequence[Any]  # of the network, one a device
    model: bytes | None = None  # the network's file; None: even priors and value 0
    precision: str = "fp32"  # in which it plays
    score_to_beat: float | None = None  # of the games to come, see `RankedReward`
    devices: Sequence[Device] = (CPU,)  # of the run's networks, also where none plays yet

    @property
    def ids(self) -> set[int]:
        """The networks that stored plies may name; 0 stands for no network."""
        return {0, *(getattr(evaluator, "network_id", 0) for evaluator in self.evaluators)}


@dataclass(frozen=True)
class WorkerState:
    """The state of one worker, for users."""

    name: str
    alive: bool  # whether it may still play
    held: int  # games that it plays or is about to
    behind: int | None  # how many lineups its newest one is behind the run's; None: it plays none yet
    silent: float  # seconds since it gave a heartbeat
    games: int  # of it that counted, since the head began
    stats: Counter[str]  # its own totals since then, see `SelfPlay.stats`


class Fleet(Protocol):
    """The players of a run. One thread calls all methods.

    A fleet plays the ids that are asked for and gives each game back once. It keeps nothing that the run needs: a fleet
    that dies costs the games in play. The caller has written down what `take` gave when it calls `take` again, so a
    fleet that confirms results to far workers does it then.
    """

    notices: list[str]  # notices for the user, such as a worker's death; the caller removes them
    begun: Sequence[GameRecord] = ()  # games of another process that go on in this one; set it before `play`
    unfinished: Sequence[GameRecord] = ()  # after `close`, this process's games in play as far as they came

    def ask(self, ids: Sequence[range], done: Sequence[GameRecord]) -> None:
        """Ask for games, before `play` begins with them.

        Args:
            ids: ascending, and above all that were asked for before.
            done: games that are on the disk, those of the journal and, in a free run, of the last iteration.
        """

    def seal(self, ids: Sequence[int]) -> None:
        """Take note that an iteration's games are sealed."""

    def play(self, lineup: Lineup) -> None:
        """Have this lineup play from now on, and end a pause.

        In a deterministic run all games of the lineup before are done. In another run, games under way go on: each ply
        names the network that searched it.
        """

    def take(self, most: int) -> list[GameRecord]:
        """New finished games, `most` at most. Waits for the first one, a fraction of a second at most.

        Raises:
            AzpyError: the run cannot go on.
        """

    def pause(self) -> None:
        """Hold all players. They may still finish the round that they are in."""

    def finish(self) -> list[GameRecord]:
        """End all play. Return the finished games that were not taken, and those of the last `take` once more."""

    def close(self, *, ended: bool = True) -> None:
        """End all play at once. Nothing is left: no thread, no process.

        Args:
            ended: whether the run is over. If not, far workers wait for the process that goes on with it.
        """

    @property
    def stats(self) -> Counter[str]:
        """Totals of all players; see `SelfPlay.stats`."""

    @property
    def pipeline_stats(self) -> Sequence[Counter[str]]:
        """Where the time of the pipelines went; see `SelfPlay.pipeline_stats`."""

    @property
    def longest(self) -> int:
        """Plies of the longest game in play; 0 where that is not known."""
        return 0

    @property
    def workers(self) -> Sequence[WorkerState]:
        """The workers, and those that ended last; none where this process plays."""
        return ()


def digest_of(record: GameRecord) -> bytes:
    """Tell games with other bytes apart."""
    return hashlib.blake2b(record.to_bytes(), digest_size=16).digest()


def answers_of(evaluator: Any) -> str | None:
    """A digest of a network's answers to some rows, equal where all bits are; None for an evaluator without a shape."""
    if getattr(evaluator, "obs_shape", None) is None:
        return None
    rows = np.random.default_rng(0).integers(0, 2, (_ROWS, *evaluator.obs_shape)).astype(np.float32)
    logits, values = evaluator.evaluate_batch(rows)
    return hashlib.sha256(logits.tobytes() + values.tobytes()).hexdigest()


def digest_of_run(settings: Settings) -> str:
    """Tell runs apart whose games differ by more than their networks."""
    names = [name for name, about in ABOUT.items() if about.group in ("search", "self-play") and not about.same_games]
    facts = {name: getattr(settings, name) for name in ("game", "seed", "deterministic", *names)}
    return _digest(facts | {"version": _core.__version__, "protocol": PROTOCOL})


def digest_of_lineup(message: Mapping[str, Any]) -> str:
    """Tell lineups apart by who plays, and how they search; `message` is that of `play`."""
    return _digest({name: message[name] for name in ("network", *HOW)})


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
