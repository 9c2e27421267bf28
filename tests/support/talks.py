"""Conversations of the tests with az-engine's protocols."""

import io
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from typing import Any, Self

import azpy
from azpy._core import Message
from azpy.serving.gtp import Gtp
from azpy.serving.limits import NO_LIMITS, Limits
from azpy.serving.lines import Conversation
from azpy.serving.models import Player, PlayerEngine, open_engine, open_player
from azpy.serving.queries import Session
from azpy.serving.uci import Uci
from running import az

PATIENCE = 60.0  # seconds; what takes longer hangs
COMMAND = az("engine")


class Talk:
    """A conversation with a protocol in this process, line by line. `run` gets the other side of it."""

    def __init__(self, run: Callable[[Conversation], None]) -> None:
        read, write = os.pipe()
        self._write: Any = os.fdopen(write, "wb")
        self.heard, self.arrived = list[str](), threading.Condition()
        outer = self

        class Sink(io.StringIO):
            def write(self, text: str) -> int:
                with outer.arrived:
                    outer.heard += text.splitlines()
                    outer.arrived.notify_all()
                return len(text)

        # A test that fails leaves the conversation open; the process ends in any case.
        self.thread = threading.Thread(target=run, args=(Conversation(os.fdopen(read, "rb"), Sink()),), daemon=True)
        self.thread.start()

    def say(self, *lines: str) -> None:
        for line in lines:
            self._write.write(line.encode() + b"\n")
        self._write.flush()

    def hear(self, first: str) -> str:
        """The next line that begins so; lines before it are dropped."""

        def there() -> int | None:
            return next((index for index, line in enumerate(self.heard) if line.startswith(first)), None)

        with self.arrived:
            assert self.arrived.wait_for(lambda: there() is not None, PATIENCE), (first, self.heard)
            index = there() or 0
            line = self.heard[index]
            del self.heard[: index + 1]
            return line

    def next(self) -> str:
        with self.arrived:
            assert self.arrived.wait_for(lambda: bool(self.heard), PATIENCE), "nothing came"
            return self.heard.pop(0)

    def close(self) -> None:
        self._write.close()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


class GtpTalk(Talk):
    """A conversation with GTP that asks one command after the other."""

    def ask(self, command: str) -> str:
        """The whole answer to a command, `=` or `?` included."""
        self.say(command)
        lines = [self.next()]
        while line := self.next():
            lines.append(line)
        return "\n".join(lines)


class JsonTalk(Talk):
    """A conversation of objects, of which one field says what an answer belongs to."""

    key = "id"

    def send(self, **fields: Any) -> None:
        self.say(json.dumps(fields))

    def receive(self, identity: str | None = None) -> dict[str, Any]:
        """The next answer, of what is named if anything is."""

        def place() -> int | None:
            found = (json.loads(line).get(self.key) for line in self.heard)
            return next((index for index, about in enumerate(found) if identity in (None, about)), None)

        with self.arrived:
            assert self.arrived.wait_for(lambda: place() is not None, PATIENCE), "nothing came"
            answer: dict[str, Any] = json.loads(self.heard.pop(place() or 0))
            return answer


def talk(player: str, game: str, word: str) -> Talk:
    """A conversation with one player in this process."""
    return talk_to({"player": open_player(player, game, 100)}, word)


def talk_to(models: Mapping[str, Player], word: str = "uci") -> Talk:
    """A conversation with several players in this process."""
    return Talk(lambda conversation: Uci(models, conversation, word).run())


def talk_with(**players: str | Player) -> AbstractContextManager[GtpTalk]:
    """A conversation by GTP with players of these names, or with uniform ones of these games."""
    models = {
        name: open_player("uniform:20", player, 100) if isinstance(player, str) else player
        for name, player in players.items()
    }
    return closing(GtpTalk(lambda conversation: Gtp(models, conversation).run()))


class Asker(Session):
    """Is asked with dicts, and keeps the answers as dicts.

    Args:
        models, limits: see `Session`.

    Attributes:
        said: the answers.
    """

    said: list[Any]
    _models: dict[str, PlayerEngine]

    def __new__(cls, models: dict[str, PlayerEngine], limits: Limits = NO_LIMITS) -> Self:
        said = list[Any]()
        self = super().__new__(cls, models, lambda answer: said.append(json.loads(answer.line)), limits)
        self.said, self._models = said, models
        return self

    def ask(self, **fields: Any) -> None:
        self.take(Message(json.dumps(fields)))


@contextmanager
def asker_of(start: azpy.State, evaluator: Any = None, **limits: Any) -> Iterator[Asker]:
    """A client of a player with an engine of its own."""
    served = replace(open_player("uniform", "tic_tac_toe", 9), start=start)
    with open_engine(served if evaluator is None else replace(served, evaluator=evaluator)) as engine:
        asker = Asker({"main": PlayerEngine(served, engine)}, replace(NO_LIMITS, **limits))
        yield asker
        asker.close()


def answer_to(start: azpy.State, message: dict[str, Any] | str | bytes, limits: Limits = NO_LIMITS) -> Any:
    """What a client of a player of this start is answered at once.

    Raises:
        ValueError: a refusal.
    """
    with asker_of(start, **vars(limits)) as asker:
        asker.take(Message(json.dumps(message) if isinstance(message, dict) else message))
        (answer,) = asker.said
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer
