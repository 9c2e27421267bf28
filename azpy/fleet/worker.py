"""A worker: plays the ids that it is given, and sends the games back. It writes nothing of the run.

Messages (`wire`) come by a queue and leave by a function, so that anything can carry them (`channels`).
"""

import hashlib
import queue
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from azpy import _core
from azpy.errors import RunError
from azpy.evaluators.choice import open_generation
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.fleet.examine import MOST_BYTES
from azpy.fleet.fleet import answers_of, digest_of_lineup, digest_of_run
from azpy.fleet.wire import MOST_OF_A_PART, Inbox, Send, in_words
from azpy.games.names import make_game
from azpy.playing.selfplay import open_self_play
from azpy.runs.games import frame
from azpy.settings import Settings
from azpy.settings.run import is_own

_MOST_GAMES = 64  # that are taken at once
_WAIT = 0.05  # seconds for a finished game; then it looks for messages
# A message costs the head and this process about as much as ten games, on cores that may all play (November 2026). So
# finished games wait for others, for so long or for so many.
GATHER = 0.1, 8


class Worker:
    """The player at the other end of a line to the head.

    Args:
        inbox, send: what the head says, and what takes each message to the head, with its bytes.
        mine: this worker's own settings, from those that the head sends.
        gather: seconds that finished games wait for others at most, and how many go together at most.
        clock: seconds from any moment on.

    Attributes:
        error: after `run`, the error that ended it.
    """

    def __init__(
        self,
        inbox: Inbox,
        send: Send,
        mine: Callable[[Settings], Settings] = lambda settings: settings,
        gather: tuple[float, float] = GATHER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inbox, self._send, self._mine, self._gather, self._clock = inbox, send, mine, gather, clock
        self.error: Exception | None = None
        self._sent, self._pace = clock(), 0.0  # when games were sent last; seconds between two games
        self._network: tuple[str | None, str] | None = None  # SHA-256 and precision of the network that plays
        self._evaluator: Any = None
        self._self_play: _core.SelfPlay | None = None
        self._past = Counter[str](), Counter[str]()  # totals of the self-play of lineups before
        self._in_hand, self._paused = 0, False  # games that were admitted and that nobody has taken
        self._facts: dict[str, Any] = {"said": "games"}  # of each message

    def run(self) -> bool:
        """Play until the head ends it; False after an error, which the head was told."""
        do = {"begin": self._begin, "play": self._play, "games": self._admit, "pause": self._pause}
        try:
            while True:
                gather = self._gather_seconds()
                try:
                    message, body = self._inbox.get(block=gather > 0 or not self._busy, timeout=gather or None)
                except queue.Empty:
                    self._send_games(0.0 if gather else _WAIT)
                    continue
                if message["do"] == "stop":
                    if self._self_play is not None:
                        self._pause(message, body)
                    return True
                do[message["do"]](message, body)
        except Exception as error:
            self.error = error
            text, own = in_words(error)
            if not own:
                traceback.print_exc()
            self._send({"said": "failed", "error": text}, b"")
            return False
        finally:
            self._close()

    @property
    def _busy(self) -> bool:
        """Whether games are in play."""
        return self._self_play is not None and self._in_hand > 0 and not self._paused

    def _gather_seconds(self) -> float:
        """For how long finished games wait for others: no slot may run out of games until new ids come."""
        spare = self._in_hand - self._settings.slots if self._busy else 0
        seconds, games = self._gather
        return min(seconds, min(games, max(spare, 0) / 2) * self._pace)

    def _begin(self, message: Mapping[str, Any], _: bytes) -> None:
        if message["version"] != _core.__version__:
            raise RunError(
                f"az-train runs azpy {message['version']}, this worker {_core.__version__}: install the same version"
            )
        settings = Settings(**message["settings"])
        self._facts["run"] = digest_of_run(settings)
        self._settings = self._mine(settings)
        self._start = make_game(settings.game)
        self._facts["slots"] = self._settings.slots

    def _play(self, message: Mapping[str, Any], model: bytes) -> None:
        """Begin with a lineup; in a deterministic run the games of the lineup before are let go."""
        if self._network != (network := (message["network"], message["precision"])):
            self._evaluator, self._network = open_lineup(self._settings, self._start, *network, model), network
            if self._settings.all_devices[0].kind == "auto":  # chooses once
                self._settings = replace(self._settings, device=getattr(self._evaluator, "device", "auto"))
        if self._settings.deterministic:
            self._close()
        if self._self_play is None:
            self._self_play = open_self_play(self._settings, self._start, [self._evaluator])
        else:
            self._self_play.swap([self._evaluator])
        if (score := message["score_to_beat"]) is not None:
            self._self_play.set_score_to_beat(score)
        self._self_play.resume()
        self._paused = False
        evaluator = self._evaluator
        self._facts |= {"lineup": message["lineup"], "plays": digest_of_lineup(message)}
        self._facts |= {"row_exact": getattr(evaluator, "row_exact", True), "answers": answers_of(evaluator)}
        self._say()

    def _admit(self, message: Mapping[str, Any], _: bytes) -> None:
        if self._self_play is None:
            raise RuntimeError("no lineup has arrived yet")
        for first, count in message["ids"]:
            self._self_play.admit(first, count)
            self._in_hand += count

    def _pause(self, _: Mapping[str, Any], __: bytes) -> None:
        """Hold self-play. Totals do not count a round under way, so they are whole afterwards."""
        if self._self_play is not None:
            self._self_play.pause()
            self._paused = True
        self._send_games(0.0)
        self._say()

    def _send_games(self, seconds: float) -> None:
        """Send the finished games, after waiting so long for the first one at most."""
        while self._self_play is not None and (games := self._self_play.take_finished(_MOST_GAMES, seconds=seconds)):
            self._in_hand -= len(games)
            now = self._clock()
            self._pace, self._sent = (now - self._sent) / len(games), now
            for part in _in_parts(games):
                self._say(frame(*part))
            seconds = 0.0

    def _say(self, games: bytes = b"") -> None:
        self._send(self._facts | dict(zip(("stats", "pipelines"), self._totals(), strict=True)), games)

    def _totals(self) -> tuple[Counter[str], Counter[str]]:
        """The totals of self-play since the worker began, and those of all its pipelines together."""
        stats, pipelines = self._past
        if self._self_play is None:
            return stats, pipelines
        return stats + Counter(self._self_play.stats), sum(map(Counter, self._self_play.pipeline_stats), pipelines)

    def _close(self) -> None:
        """End self-play, and let its games go."""
        if self._self_play is not None:
            self._self_play.pause()
            self._past = self._totals()
            self._self_play.close()
            self._self_play, self._in_hand = None, 0


def open_lineup(settings: Settings, start: _core.State, sha256: str | None, precision: str, model: bytes) -> Any:
    """A lineup's network, as a worker with these settings plays it; a `RunError` if the file's bytes are other ones."""
    if sha256 is None:
        return _core.UniformEvaluator()
    if hashlib.sha256(model).hexdigest() != sha256:
        raise RunError("a model arrived damaged")
    options: dict[str, Any] = {"game": start, "precision": precision, "batch": settings.device_batch}
    if is_own(settings.network):  # its function is the head's: a worker runs code of the game alone
        return OnnxEvaluator(model, settings.all_devices[0], **options)
    return open_generation(model, settings.all_devices[0], settings, **options)


def _in_parts(games: Iterable[_core.GameRecord]) -> Iterator[list[_core.GameRecord]]:
    """Finished games in parts that the head takes as one message each; a `RunError` if a game is too long for that."""
    part, size = list[_core.GameRecord](), 0
    for game in games:
        length = len(game.to_bytes())
        if length > MOST_BYTES:
            raise RunError(
                f"game {game.game_id} has {length:,} bytes, expected {MOST_BYTES:,} at most: workers cannot "
                "send it, so use --workers 0"
            )
        if part and size + length > MOST_OF_A_PART:
            yield part
            part, size = [], 0
        part.append(game)
        size += length
    if part:
        yield part
