"""A worker at a shared folder: claims tasks, plays them, and leaves results there. See `place.py` and `folder.py`."""

import contextlib
import hashlib
import os
import random
import socket
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from azpy import _core
from azpy._core import GameRecord
from azpy.errors import RunError
from azpy.fleet.child import in_words
from azpy.fleet.folder import digest_of_lineup, digest_of_run
from azpy.fleet.place import MOST_SAID, PROTOCOL, Place, Pulse, Sign, as_object, new_name, seal
from azpy.fleet.player import Player, in_parts
from azpy.fleet.wire import MOST_OF_A_HEAD, pack
from azpy.games.names import refuse_untyped
from azpy.runs.storage import frame
from azpy.settings import Settings
from azpy.settings.run import auto_pipelines

__all__ = ["PATIENCE", "Guest", "settings_of_guest"]

PATIENCE = 600.0  # seconds without a sign of the head
_LOOK = 0.2  # seconds between two looks at what the head says
_WAIT = 0.05  # seconds for a finished game
_RESULT_SECONDS = 2.0  # between two results, unless no task is left
_MOST_UNREAD = 4  # results in the folder; then the worker waits
_SAY_SECONDS = 60.0  # between two lines
_MOST_NETWORKS = 4  # that are kept


class Guest:
    """One worker at a shared folder.

    Args:
        path: of the folder.
        game: that the user typed; a run's game in Python is imported only if it is this one.
        layout: settings of this worker in place of the run's: `slots`, `pipelines`, `threads`, `device`.
        patience: seconds without a sign of the head, after which the worker ends.
        say: takes each line for the user.
        asked_to_end: whether the user or the system wants the worker to end.
        clock: seconds from any moment on.
        sleep: waits for so many seconds.

    Raises:
        RunError: no such folder.
    """

    def __init__(
        self,
        path: str,
        game: str | None = None,
        layout: Mapping[str, Any] | None = None,
        patience: float = PATIENCE,
        say: Callable[[str], object] = print,
        asked_to_end: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._path, self._game, self._layout, self._patience = path, game, dict(layout or {}), patience
        self._say, self._asked_to_end, self._clock, self._sleep = say, asked_to_end, clock, sleep
        self.key = new_name()
        self._place = Place(path, make=False)
        self._sign = Sign(self._place, "workers", self.key)
        self._head, self._pulse, self._looked = dict[str, Any](), Pulse(clock), -1e9
        self._first_beat: tuple[Any, Any] | None = None  # epoch and count of a head when it was first seen
        self._player: Player | None = None
        self._epoch, self._run, self._lineup = "", "", dict[str, Any]()
        self._checked: dict[str, Any] = {}  # what the head checks
        self._networks: dict[str, bytes] = {}
        self._finished: list[GameRecord] = []  # not in the folder yet
        self._stuck = False  # the last result could not be written
        self._unread: list[str] = []  # results in the folder
        self._sent, self._sent_at, self._said_at, self._games = 0, -1e9, clock(), 0

    def run(self) -> str:
        """Plays until the run ends, the user ends it, or the head is silent for too long; returns why.

        Raises:
            AzpyError: this worker cannot play in the run, or nobody is there to play for.
        """
        why, failed = "", True
        try:
            self._say(f"worker {self.key} waits at {self._path} for az-train")
            while not (why := self._step()):
                pass
            failed = False
            return why
        except Exception as error:
            why, own = in_words(error)
            if not own:
                traceback.print_exc()
                raise RunError(why) from error
            failed = not isinstance(error, RunError)
            raise
        finally:
            if self._player is not None:
                self._player.pause()
                with contextlib.suppress(OSError, RunError):
                    while games := self._player.finished(0.0):
                        self._finished += games
                    self._send()
                self._player.close()
            self._sign.close(ended=why or "it was interrupted", failed=failed, in_hand=0)
            self._place.close()

    def _step(self) -> str:
        """One turn; returns why the worker ends, or an empty text."""
        if self._asked_to_end():
            return "it was told to end"
        if self._clock() - self._looked >= _LOOK:
            self._looked = self._clock()
            if why := self._look():
                return why
        player = self._player
        if player is None or player.paused:
            self._sleep(_LOOK)
            return ""
        self._unread = [name for name in self._unread if self._place.is_there("results", name)]
        if len(self._unread) >= _MOST_UNREAD:
            self._sleep(_WAIT)
        elif self._stuck:
            self._try_to_send()
        else:
            self._claim(player)
            if player.busy:
                self._finished += player.finished(_WAIT)
            else:
                self._sleep(_WAIT)
            due = self._clock() - self._sent_at >= _RESULT_SECONDS or not player.in_hand
            if self._finished and due:
                self._try_to_send()
        self._sign.note(in_hand=player.in_hand, **player.totals())
        if self._clock() - self._said_at >= _SAY_SECONDS:
            self._said_at = self._clock()
            self._say(f"{self._games:,} games, {player.totals()['stats']['rows']:,.0f} evaluations")
        return ""

    # What the head says

    def _look(self) -> str:
        if self._place.is_there("", "stop"):
            return f"{self._path}/stop is there"
        with contextlib.suppress(OSError, ValueError):
            self._head = as_object(self._place.read("", "head", MOST_SAID))
        head = self._head
        self._pulse.note((head.get("epoch"), head.get("beat")))
        if self._pulse.silent > self._patience:
            raise RunError(
                f"no sign of az-train at {self._path} for {self._patience:.0f} seconds: start it again with --workers "
                f"folder:{self._path}, and then this worker"
            )
        if not head or "lineup" not in head:
            return ""
        if head["epoch"] != self._epoch:
            if head.get("ended") or self._is_old(head):
                return ""
            self._begin(head)
        if self.key in head["refused"]:
            raise RunError(f"az-train refused this worker: {head['refused'][self.key]}")
        if head["ended"]:
            return "the run has ended"
        player = self._player
        if player is None:
            return ""
        if head["lineup"]["number"] != self._lineup.get("number"):
            self._play(player, head["lineup"])
        if head["paused"] and not player.paused:
            player.pause()
            while games := player.finished(0.0):
                self._finished += games
            self._try_to_send()
            self._sign.note(**player.totals())
        elif player.paused and not head["paused"]:
            player.resume()
        return ""

    def _is_old(self, head: Mapping[str, Any]) -> bool:
        """Whether a head that this worker has not met may be dead: its counter has not changed yet."""
        if self._first_beat is None or self._first_beat[0] != head["epoch"]:
            self._first_beat = head["epoch"], head["beat"]
        return bool(self._first_beat[1] == head["beat"])

    def _begin(self, head: Mapping[str, Any]) -> None:
        """Begins with a head; the games of the head before that are in play are let go."""
        if self._player is not None:
            self._try_to_send()
            self._player.close()
        if (found := (head.get("protocol"), head.get("version"))) != (PROTOCOL, _core.__version__):
            raise RunError(
                f"az-train at {self._path} is of azpy {found[1]} with protocol {found[0]}, this worker of "
                f"{_core.__version__} with protocol {PROTOCOL}: install the same azpy"
            )
        settings = Settings(**head["settings"])
        refuse_untyped(settings.game, self._game, self._path, "playing", "GAME {} on the command line")
        run = digest_of_run(settings)
        mine = settings_of_guest(settings, self._layout)
        slots, device = mine.slots, mine.device
        self._player = Player(mine, self._network)
        self._epoch, self._run, self._lineup, self._finished = head["epoch"], run, {}, []
        self._tell(epoch=self._epoch, host=socket.gethostname(), pid=os.getpid(), slots=slots, lineup=0)
        self._sign.note(version=_core.__version__, in_hand=0, **self._player.totals())
        self._say(f"plays {settings.game}, {slots} games at once on {device}")

    def _play(self, player: Player, lineup: dict[str, Any]) -> None:
        if self._finished:  # of the lineup before
            self._try_to_send()
        try:
            self._checked = player.play(lineup)
        except (FileNotFoundError, _DamagedError) as error:  # a newer lineup is near, or the file will be
            self._sign.note(trouble=f"a network cannot be read: {error}")
            return
        named = {one["sha256"] for one in (lineup["network"], *lineup["opponents"])}
        for sha256 in [old for old in self._networks if old not in named][
            : max(0, len(self._networks) - _MOST_NETWORKS)
        ]:
            del self._networks[sha256]
        self._lineup = lineup
        if self._head["settings"]["deterministic"]:
            self._finished = []  # copies of games that are done; two lineups later the head would refuse them
        self._tell(lineup=lineup["number"], in_hand=player.in_hand, trouble="")

    def _tell(self, **facts: Any) -> None:
        """Tells the head; what cannot be written now is written with a later count."""
        with contextlib.suppress(OSError):
            self._sign.say(**facts)

    def _network(self, sha256: str) -> bytes:
        if sha256 not in self._networks:
            try:
                data = self._place.read("networks", sha256, MOST_OF_A_HEAD)
            except ValueError as error:
                raise _DamagedError(str(error)) from error
            if hashlib.sha256(data).hexdigest() != sha256:
                raise _DamagedError(f"networks/{sha256} is damaged")
            self._networks[sha256] = data
        return self._networks[sha256]

    # Tasks and results

    def _claim(self, player: Player) -> None:
        """Takes a task if little is left to begin with."""
        if not self._lineup or player.in_hand >= self._slots + self._slots // 2:
            return
        names = [name for name in self._place.names("open") if name.startswith(self._epoch)]
        names = [name for name in names if name.count("-") == 1 or name.endswith(self.key)]
        random.shuffle(names)  # others look at the same time
        for name in names:
            try:
                task = as_object(self._place.read("open", name, MOST_SAID))
            except (OSError, ValueError):
                continue
            if task["lineup"] != self._lineup["number"] and self._head["settings"]["deterministic"]:
                continue
            if self._place.claim(name, self.key):
                player.admit(task["ids"])
                return

    @property
    def _slots(self) -> int:
        return int(self._layout.get("slots", self._head["settings"]["slots"]))

    def _try_to_send(self) -> None:
        """Sends what is finished; a full disk may get room again."""
        try:
            self._send()
            self._stuck = False
        except OSError as error:
            self._stuck = True
            self._sign.note(trouble=f"a result cannot be written: {error.strerror or error}")
            self._say(f"a result cannot be written, trying again: {error.strerror or error}")
            self._sleep(1.0)

    def _send(self) -> None:
        if not self._finished or self._player is None or not self._lineup:
            return
        facts = {"epoch": self._epoch, "run": self._run, "lineup": digest_of_lineup(self._lineup), **self._checked}
        for part in in_parts(self._finished):
            name = f"{self.key}-{self._sent:08d}"
            self._place.write("results", name, seal(pack(facts | self._player.totals(), frame(*part))))
            self._sent, self._sent_at, self._games = self._sent + 1, self._clock(), self._games + len(part)
            self._unread.append(name)
            self._finished = self._finished[len(part) :]


def settings_of_guest(settings: Settings, layout: Mapping[str, Any]) -> Settings:
    """A run's settings as one worker plays by them; `layout` has the worker's own."""
    slots, device = layout.get("slots", settings.slots), layout.get("device", settings.device_names[0])
    mine = {"slots": slots, "device": device, "pipelines": auto_pipelines(slots, device), "threads": None}
    mine |= {"workers": 0, "devices": None, "precision": "fp32"}  # each network comes with its own
    return replace(settings, **mine | dict(layout))


class _DamagedError(Exception):
    """A network's file that is not what its name says."""
