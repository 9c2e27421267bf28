"""A learner in a process of its own, which fits the games of one iteration while the games of the next are played.

The trainer says what is fitted and gets the weights back; it alone writes the run folder. The process reads the sealed
games. It holds nothing that the trainer does not have, so either of them can be killed at any time: another process
begins with the trainer's weights and does the same steps again. Messages are those of `azpy/fleet/wire.py`.

The trainer says, `do`:

    fit     games (their folder), settings, taken (before), steps, iteration, seen, iterations (sealed), budget,
            opponents; see `fit`, `Window` and `Budget`. The bytes are the weights and the optimizer's state, or nothing
            where the process has them.

The process says, `said`:

    alive   nothing else: it takes in games, which takes long where the window is large
    step    iteration, taken, steps, policy_loss, value_loss; at most a hundred times a fit and each half minute
    fitted  the same after the last step, and seconds; the bytes are as above
    failed  error: in words, and diverged: whether it is a `DivergedError`; the last message

The trainer does not read before it has played its games, and a socket holds few messages. Where it has no room, the
process leaves out `alive` and `step` and works on.
"""

import contextlib
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from azpy.errors import RunError
from azpy.fleet.channels.pipe import CLOSED_SECONDS, PIECE, Child
from azpy.fleet.wire import MOST_OF_A_HEAD, Inbox, Send, Unpacker, in_words, pack
from azpy.games.names import make_game
from azpy.learning.learner import Learner, use_threads
from azpy.runs.reader import safetensors
from azpy.runs.storage import SealedGames
from azpy.settings.run import Settings
from azpy.training.budget import Budget
from azpy.training.events import Event, Fitted, Noticed
from azpy.training.fitting import DivergedError, Window, fit, learner_of

_REPORTS = 100  # of a fit
_MOST_DEATHS = 3  # so many without a fit in between end the run
_SILENT_SECONDS = 600.0  # in which the process neither reads nor says anything: it hangs
_ALIVE_SECONDS = 30.0  # after which the process says something while it works


class LearnerProcess:
    """The trainer's side.

    Attributes:
        seconds: that the last steps took in the process.
    """

    def __init__(self, folder: Path, settings: Settings, learner: Learner, opponents: int) -> None:
        self._run = {"games": str(folder / "games"), "settings": asdict(settings), "opponents": opponents}
        self._learner = learner
        self.seconds = 0.0
        self._task: dict[str, Any] = {}
        self._child: Child | None = None
        self._budget: Budget | None = None
        self._deaths, self._hung = 0, ""  # since the last fit; why the process is given up, if it hangs

    def begin(self, iteration: int, steps: int, window: Window, iterations: list[int], budget: Budget) -> None:
        """Has the process begin with the steps of an iteration.

        Args:
            iteration: in which they are taken.
            steps: how many, more than 0.
            window: the games to learn from.
            iterations: whose games are sealed, those of the window last.
            budget: of the run.
        """
        self._task = {"do": "fit", **self._run, "iteration": iteration, "iterations": iterations}
        self._task |= {"seen": window.seen, "steps": steps, "taken": self._learner.steps}
        self._budget = budget
        self._ask()

    def finish(self) -> Iterator[Event]:
        """Waits for the weights and takes them over.

        Yields:
            Some of the steps that `fit` yields, the last one among them, and a notice of each process that died.

        Raises:
            DivergedError: see `fit`.
            RunError: the process failed, or died three times.
        """
        while True:
            child = self._child or self._ask()
            for message, body in self._messages(child):
                if message["said"] == "alive":
                    continue
                if message["said"] == "failed":
                    if message["diverged"]:
                        raise DivergedError(message["error"])
                    raise RunError(f"the learner's process ended: {message['error']}")
                step = Fitted(*(message[name] for name in Fitted.__match_args__))
                if message["said"] == "step":
                    yield step
                    continue
                self._learner.load(*_arrays(body))
                self.seconds = message["seconds"]
                self._deaths = 0
                yield step
                return
            yield Noticed(f"the learner's process ended ({self._bury(child)}): another one does its steps again")

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _ask(self) -> Child:
        """Sends the task to the process, or to another one."""
        body = b""
        if self._child is None:
            self._child, body = Child("learner"), _bytes(self._learner)
            self._child.socket.settimeout(_SILENT_SECONDS)
        state = {} if self._budget is None else self._budget.state()  # of now
        with contextlib.suppress(OSError):  # `_messages` notices that the process is gone
            self._child.socket.sendall(pack(self._task | {"budget": state}, body))
        return self._child

    def _bury(self, child: Child) -> str:
        """Ends a process; returns how it ended."""
        how = self._hung or child.end(CLOSED_SECONDS)
        if self._hung:
            child.end()
        self._child, self._deaths, self._hung = None, self._deaths + 1, ""
        if self._deaths == _MOST_DEATHS:
            raise RunError(
                f"the learner's process died {_MOST_DEATHS} times, the last one by {how}: memory may be short; a "
                "smaller --batch-size, or a run with --learner-lag 0 in another folder, needs less"
            )
        return how

    def _messages(self, child: Child) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Yield what the process says, until it ends or hangs."""
        unpacker = Unpacker(MOST_OF_A_HEAD)
        try:
            while data := child.socket.recv(PIECE):
                yield from unpacker.feed(data)
        except TimeoutError:
            self._hung = f"no sign of life for {_SILENT_SECONDS:g} seconds"
        except OSError:  # it is gone
            pass


def serve(inbox: Inbox, send: Send, has_room: Callable[[], bool]) -> bool:
    """Fit, in the learner's process, until the trainer is gone.

    Args:
        inbox: the trainer's messages.
        send: takes each message to the trainer, and its bytes.
        has_room: whether `send` takes a small message without waiting for the trainer.

    Returns:
        False after an error, which the trainer was told.
    """
    pupil = _Pupil(send, has_room)
    try:
        while True:
            pupil.fit(*inbox.get())
    except Exception as error:
        text, own = in_words(error)
        if not own:
            traceback.print_exc()
        send({"said": "failed", "error": text, "diverged": isinstance(error, DivergedError)}, b"")
        return False


class _Pupil:
    """A learner and its window, kept from iteration to iteration."""

    def __init__(self, send: Send, has_room: Callable[[], bool] = lambda: True) -> None:
        self._send, self._has_room, self._said = send, has_room, time.monotonic()
        self._learner: Learner | None = None
        self._window: Window | None = None
        self._newest = 0  # the newest iteration in the window

    def fit(self, task: Mapping[str, Any], body: bytes) -> None:
        """Takes the steps of a `fit` message."""
        settings = Settings(**task["settings"])
        if body:
            use_threads(single=settings.deterministic)
            self._learner, self._window = learner_of(settings, make_game(settings.game)), None
            self._learner.load(*_arrays(body))
        learner = self._learner
        if learner is None or learner.steps != task["taken"]:
            raise RunError(f"the learner's process has no weights after {task['taken']} steps")
        budget = Budget(settings, task["opponents"])
        budget.load(task["budget"])
        begin = time.monotonic()
        buffer = self._games(settings, task).buffer
        told: dict[str, Any] = {}
        imported = 0 in task["iterations"]
        for step in fit(learner, buffer, settings, budget, task["iteration"], task["steps"], imported=imported):
            told = vars(step)
            is_due = step.taken * _REPORTS // step.steps > (step.taken - 1) * _REPORTS // step.steps
            self._say({"said": "step"} | told, at_once=is_due)
        self._send({"said": "fitted", "seconds": time.monotonic() - begin} | told, _bytes(learner))

    def _say(self, message: Mapping[str, Any], *, at_once: bool = False) -> None:
        """Send a message if the trainer has heard nothing for a while, and leave it out where it would have to wait."""
        if (at_once or time.monotonic() - self._said >= _ALIVE_SECONDS) and self._has_room():
            self._said = time.monotonic()
            self._send(message, b"")

    def _games(self, settings: Settings, task: Mapping[str, Any]) -> Window:
        """The window with the games of all sealed iterations of a task."""
        window, newest, sealed = self._window, task["iterations"][-1], SealedGames(Path(task["games"]), {})
        if window is None or task["iterations"][-2:-1] != [self._newest]:
            window = Window(settings, make_game(settings.game))
            window.refill(task["seen"], task["iterations"], sealed.read, lambda: self._say({"said": "alive"}))
        else:
            window.add(sealed.read(newest))
        self._window, self._newest = window, newest
        return window


def _bytes(learner: Learner) -> bytes:
    parts = {"model": learner.model_arrays(), "optimizer": learner.optimizer_arrays()}
    body = bytes(safetensors().save({f"{part}/{name}": array for part in parts for name, array in parts[part].items()}))
    if len(body) > MOST_OF_A_HEAD:
        raise RunError(
            f"the network and its optimizer have {len(body):,} bytes, and the learner's process takes "
            f"{MOST_OF_A_HEAD:,} at most: a smaller --network, or a run with --learner-lag 0 in another folder"
        )
    return body


def _arrays(body: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """What `_bytes` wrote: the arrays of `model_arrays` and of `optimizer_arrays`."""
    parts: dict[str, dict[str, NDArray[Any]]] = {"model": {}, "optimizer": {}}
    for name, array in safetensors().load(body).items():
        part, _, rest = name.partition("/")
        parts[part][rest] = array
    return parts["model"], parts["optimizer"]
