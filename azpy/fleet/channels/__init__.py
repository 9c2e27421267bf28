"""Transports of messages (`wire`) between the head and its workers: pipes, a shared folder, Ray."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from azpy.devices import Device
from azpy.settings import Settings


class Message(NamedTuple):
    """A message of a worker."""

    facts: dict[str, Any]
    body: bytes
    let_go: Callable[[], object] = lambda: None  # called once the head no longer needs it


class Channel(ABC):
    """The head's end of the line to one worker, and what the head knows of this worker.

    A backend moves messages and sets the attributes of the class. All that stands in `__init__` is the head's.

    Args:
        settings: the worker's part of the run's.
    """

    where = ""  # it plays, as " on HOST"; empty on this machine
    alive = True  # until the worker has ended or cannot be reached. What it said before can still be polled
    ahead = 0.5  # games that it needs besides those that it plays, for each of them, while messages are under way
    bounded = False  # whether all such workers together hold one iteration's games at most: they choose their slots
    weight = 1.0  # how much the worker's end counts as a death, once it is closed: 1 for its own fault, 0 for none
    waits = False  # whether no answer can come yet: the worker has no place, or is out of reach for a while

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.name = ""  # for a user; no other worker of this head has it
        self.heard = 0.0  # when it last gave a heartbeat, on the head's clock
        # When it last did what the head asked for, on the same clock: answered a lineup or, where it plays the newest
        # one, finished a game. Also when the head began to ask.
        self.since = 0.0
        self.lineup = 0  # number of the newest that it plays; 0: none yet. It gets no ids before it plays the newest
        self.network: tuple[str | None, str] = (None, "")  # that it was sent last, by SHA-256 and precision
        self.slots = 1  # games that it plays at once
        self.error = ""  # its own last words
        self.stats, self.pipelines = Counter[str](), Counter[str]()  # its totals: see `SelfPlay.stats`; all pipelines
        self.games = 0  # of it that counted

    @abstractmethod
    def send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        """Queue a message. The bytes, a network, may be carried once for many workers, see `Backend.play`."""

    @abstractmethod
    def poll(self) -> Iterator[Message]:
        """What has come, without waiting. Messages that are not asked for stay for the next call.

        Raises:
            ValueError: a message is invalid.
        """

    @abstractmethod
    def close(self, why: str = "") -> str:
        """End the worker, and say how it ended; empty where the user need not know.

        Args:
            why: what it did wrong; empty if nothing.
        """


class Backend(ABC):
    """Where workers come from. One thread calls all methods.

    Attributes:
        notices: sentences for the user; the head removes them.
    """

    def __init__(self) -> None:
        self.notices: list[str] = []

    @abstractmethod
    def play(self, lineup: Mapping[str, Any], model: bytes, devices: Sequence[Device]) -> None:
        """Begin with the first lineup, and take note of each other one before workers are told of it.

        Args:
            lineup: as the message `play` has it.
            model: the file of its network; empty for none.
            devices: on which the network plays here.

        Raises:
            RunError: no worker can start.
        """

    @abstractmethod
    def look(self, seconds: float) -> Iterable[Channel]:
        """Carry messages, and return the lines to workers that are new.

        Args:
            seconds: to wait for something to come, at most.

        Raises:
            RunError: the run cannot go on.
        """

    def leftover(self) -> Iterator[Message]:
        """Messages that may still count, of workers that this head does not know or has given up."""
        return iter(())

    def finish(self) -> None:  # noqa: B027 - a backend may have nothing to end
        """From now on no worker takes the place of another one."""

    @abstractmethod
    def close(self, *, ended: bool) -> None:
        """Let go of everything. The lines are closed already.

        Args:
            ended: the run, and not only this process.
        """


def part_of(settings: Settings, **mine: Any) -> Settings:
    """A worker's part of a run's settings: its own, on one device; each network comes with its own precision."""
    return replace(settings, workers=0, devices=None, precision="fp32", **mine)
