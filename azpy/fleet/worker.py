"""A worker: plays the ids that it is given, and sends the games back. It owns nothing and writes no file.

Messages (`wire`) come by a queue and leave by a function, so that anything can carry them. At the other end of a
connection (`work_at`) a worker's process ends when the head says so, or when the connection closes, as it does when the
head dies, whatever the worker is doing.
"""

import hashlib
import os
import queue
import socket
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from azpy import _core
from azpy.errors import AzpyError, ModelError, RunError
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.fleet.fleet import answers_of
from azpy.fleet.wire import MOST_OF_A_HEAD, Unpacker, pack
from azpy.games.names import make_position
from azpy.playing.selfplay import open_self_play
from azpy.runs.storage import frame
from azpy.settings import Settings

__all__ = ["Inbox", "Worker", "work_at"]

_WAIT = 0.05  # seconds for a finished game; then it looks for messages
_MOST_GAMES = 64  # of a message
_PIECE = 1 << 20  # bytes read at once

Inbox = queue.SimpleQueue[tuple[dict[str, Any], bytes]]  # messages of the head, each with its bytes


def work_at(connection: socket.socket) -> bool:
    """Plays for the head at the other end of a connection; False after an error, which the head was told."""
    inbox: Inbox = queue.SimpleQueue()

    def read() -> None:
        """Moves messages to the inbox; ends the process where the head's end is closed."""
        unpacker = Unpacker(MOST_OF_A_HEAD)
        try:
            while data := connection.recv(_PIECE):
                for message in unpacker.feed(data):
                    inbox.put(message)
        except OSError:
            pass
        os._exit(0)  # a game may take long, and nobody waits for it

    def send(data: bytes) -> None:
        try:
            connection.sendall(data)
        except OSError:
            os._exit(0)  # the head is gone

    threading.Thread(target=read, daemon=True, name="azpy-inbox").start()
    return Worker(inbox, send).run()


class Worker:
    """The player at the other end of a line to the head.

    Args:
        inbox: what the head says.
        send: takes each packed message to the head.
    """

    def __init__(self, inbox: Inbox, send: Callable[[bytes], None]) -> None:
        self._inbox, self._send_bytes = inbox, send
        self._models: dict[str, bytes] = {}  # of this lineup and the one before, by sha256
        self._evaluators: dict[tuple[str | None, str], Any] = {}  # of this lineup
        self._self_play: _core.SelfPlay | None = None
        self._past = Counter[str](), Counter[str]()  # totals of the self-play of lineups before
        self._in_hand = 0  # games that were admitted and are not sent
        self._paused = False

    def run(self) -> bool:
        """Plays until the head ends it; False after an error, which the head was told."""
        do: dict[str, Callable[[Mapping[str, Any], bytes], None]] = {
            "begin": self._begin,
            "model": self._model,
            "play": self._play,
            "games": self._games,
            "pause": self._pause,
        }
        try:
            while True:
                busy = self._self_play is not None and self._in_hand > 0 and not self._paused
                try:
                    message, body = self._inbox.get(block=not busy)
                except queue.Empty:
                    self._send_games(_WAIT)
                    continue
                if message["do"] == "stop":
                    self._pause(message, body)
                    if self._self_play is not None:
                        self._self_play.close()
                    return True
                do[message["do"]](message, body)
        except Exception as error:
            # What a user can put right is a sentence; of other errors the name says more than the text.
            own = isinstance(error, AzpyError | _core.GameError | _core.EvaluatorError)
            if not own:
                traceback.print_exc()
            self._send({"said": "failed", "error": str(error) if own else f"{type(error).__name__}: {error}"})
            return False

    def _send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        self._send_bytes(pack(message, body))

    def _begin(self, message: Mapping[str, Any], _: bytes) -> None:
        self._settings = Settings(**message["settings"])
        self._start = make_position(self._settings.game)
        self._send({"said": "ready", "version": _core.__version__})

    def _model(self, message: Mapping[str, Any], body: bytes) -> None:
        if hashlib.sha256(body).hexdigest() != message["sha256"]:
            raise RunError("a model came damaged")
        self._models[message["sha256"]] = body

    def _play(self, message: Mapping[str, Any], _: bytes) -> None:
        """Begins with a lineup; in a deterministic run the games of the lineup before are let go."""
        lineup = [message["network"], *message["opponents"]]
        self._evaluators = {(one["sha256"], one["precision"]): self._evaluator(**one) for one in lineup}
        self._models = {key: data for key, data in self._models.items() if any(key == one["sha256"] for one in lineup)}
        network, *opponents = ([self._evaluators[one["sha256"], one["precision"]]] for one in lineup)
        exact = all(getattr(evaluator, "row_exact", True) for evaluator in self._evaluators.values())
        below = message["resign_below"]
        if self._self_play is not None and self._settings.deterministic:
            self._self_play.pause()  # totals do not count a round under way
            for total, last in zip(self._past, self._totals(), strict=True):
                total.update(last)
            self._self_play.close()
            self._self_play, self._in_hand = None, 0
        if self._self_play is None:
            self._self_play = open_self_play(
                self._settings, self._start, network, 0, 0, resign_below=below, opponents=opponents
            )
        else:
            self._self_play.swap(network)
            self._self_play.set_opponents(opponents)
            self._self_play.set_resign_below(below)
            self._self_play.resume()
        self._paused = False
        answers = [answers_of(evaluator) for evaluator in self._evaluators.values()]
        self._send({"said": "playing", "lineup": message["lineup"], "row_exact": exact, "answers": answers})

    def _evaluator(self, sha256: str | None, precision: str) -> Any:
        if sha256 is None:
            return _core.UniformEvaluator()
        if (sha256, precision) in self._evaluators:
            return self._evaluators[sha256, precision]
        if sha256 not in self._models:
            raise ModelError(f"no model with the SHA-256 {sha256} came")
        settings = self._settings
        options: dict[str, Any] = {"game": self._start, "precision": precision, "batch": settings.device_batch}
        return OnnxEvaluator(self._models[sha256], settings.device, **options)

    @property
    def _playing(self) -> _core.SelfPlay:
        if self._self_play is None:
            raise RuntimeError("there is no lineup yet")
        return self._self_play

    def _games(self, message: Mapping[str, Any], _: bytes) -> None:
        for first, count in message["ids"]:
            self._playing.admit(first, count)
            self._in_hand += count

    def _pause(self, message: Mapping[str, Any], _: bytes) -> None:
        if self._self_play is not None:
            self._self_play.pause()
            self._paused = True
            self._send_games(0.0)
            self._send_totals()

    def _send_games(self, seconds: float) -> None:
        """Sends the finished games, after waiting so long for the first one at most."""
        while games := self._playing.take_finished(_MOST_GAMES, seconds=seconds):
            self._in_hand -= len(games)
            self._send_totals(frame(*games))
            seconds = 0.0

    def _totals(self) -> tuple[Counter[str], Counter[str]]:
        """Stats, and pipelines together, of the present self-play."""
        return Counter(self._playing.stats), sum(map(Counter, self._playing.pipeline_stats), Counter())

    def _send_totals(self, games: bytes = b"") -> None:
        stats, pipelines = (past + now for past, now in zip(self._past, self._totals(), strict=True))
        self._send({"said": "games", "stats": stats, "pipelines": pipelines}, games)
