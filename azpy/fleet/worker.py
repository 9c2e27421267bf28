"""A worker: plays the ids that it is given, and sends the games back. It owns nothing and writes no file.

Messages (`wire`) come by a queue and leave by a function, so that anything can carry them.
"""

import hashlib
import queue
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from azpy import _core
from azpy.errors import ModelError, RunError
from azpy.fleet.child import Inbox, in_words
from azpy.fleet.player import Player, in_parts
from azpy.fleet.wire import pack
from azpy.runs.storage import frame
from azpy.settings import Settings

__all__ = ["Worker"]

_WAIT = 0.05  # seconds for a finished game; then it looks for messages
# A message costs the head and this process about as much as ten games, on cores that may all play (November 2026). So
# finished games wait for others, for so long or for so many.
_GATHER_SECONDS, _GATHER_GAMES = 0.1, 8


class Worker:
    """The player at the other end of a line to the head.

    Args:
        inbox: what the head says.
        send: takes each packed message to the head.
        clock: seconds from any moment on.
    """

    def __init__(
        self, inbox: Inbox, send: Callable[[bytes], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inbox, self._send_bytes, self._clock = inbox, send, clock
        self._sent, self._pace = clock(), 0.0  # when games were sent last; seconds between two games
        self._models: dict[str, bytes] = {}  # of this lineup and the one before, by sha256

    def run(self) -> bool:
        """Plays until the head ends it; False after an error, which the head was told."""
        do: dict[str, Callable[[Mapping[str, Any], bytes], None]] = {
            "model": self._model,
            "play": self._play,
            "games": lambda message, _: self._player.admit(message["ids"]),
            "pause": self._pause,
        }
        try:
            self._begin(self._inbox.get()[0])
            while True:
                gather = self._gather_seconds()
                try:
                    message, body = self._inbox.get(block=gather > 0 or not self._player.busy, timeout=gather or None)
                except queue.Empty:
                    self._send_games(0.0 if gather else _WAIT)
                    continue
                if message["do"] == "stop":
                    self._pause(message, body)
                    self._player.close()
                    return True
                do[message["do"]](message, body)
        except Exception as error:
            text, own = in_words(error)
            if not own:
                traceback.print_exc()
            self._send({"said": "failed", "error": text})
            return False

    def _gather_seconds(self) -> float:
        """For how long finished games wait for others: no slot may run out of games meanwhile."""
        spare = self._player.in_hand - self._slots if self._player.busy else 0
        return min(_GATHER_SECONDS, min(_GATHER_GAMES, max(spare, 0)) * self._pace)

    def _send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        self._send_bytes(pack(message, body))

    def _begin(self, message: Mapping[str, Any]) -> None:
        settings = Settings(**message["settings"])
        self._player, self._slots = Player(settings, self._model_of), settings.slots
        self._send({"said": "ready", "version": _core.__version__})

    def _model(self, message: Mapping[str, Any], body: bytes) -> None:
        if hashlib.sha256(body).hexdigest() != message["sha256"]:
            raise RunError("a model came damaged")
        self._models[message["sha256"]] = body

    def _model_of(self, sha256: str) -> bytes:
        if sha256 not in self._models:
            raise ModelError(f"no model with the SHA-256 {sha256} came")
        return self._models[sha256]

    def _play(self, message: Mapping[str, Any], _: bytes) -> None:
        checked = self._player.play(message)
        kept = {one["sha256"] for one in (message["network"], *message["opponents"])}
        self._models = {key: data for key, data in self._models.items() if key in kept}
        self._send({"said": "playing", "lineup": message["lineup"], **checked})

    def _pause(self, _: Mapping[str, Any], __: bytes) -> None:
        self._player.pause()
        self._send_games(0.0)
        self._send({"said": "games", **self._player.totals()})

    def _send_games(self, seconds: float) -> None:
        """Sends the finished games, after waiting so long for the first one at most."""
        while games := self._player.finished(seconds):
            now = self._clock()
            self._pace, self._sent = (now - self._sent) / len(games), now
            for part in in_parts(games):
                self._send({"said": "games", **self._player.totals()}, frame(*part))
            seconds = 0.0
