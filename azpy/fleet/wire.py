"""Messages between the head and a worker: a JSON object and some bytes, each after its length.

    length of the JSON: uint32 | length of the bytes: uint32 | JSON | bytes          (numbers little-endian)

The head says (key `do`):

    begin   settings, version: of the worker's part of the run; the first message
    play    lineup (a number), network (SHA-256 or null), precision, score_to_beat (a number or null),
            answers (in a deterministic run, of the network in the head); the bytes are the network's file, or nothing
            where the worker has it
    games   ids: [[first, count], ...]
    pause
    stop    error (in words, if the worker did something wrong): send what is finished, and end

The worker says (key `said`):

    games   the answer to `play`, and whatever is finished: the bytes are a frame of the journal, or nothing. lineup
            (its number), run, plays (digests of the run's rules and of the lineup), row_exact, answers (a digest of
            the network's answers to fixed rows), slots, stats, pipelines (totals since the worker began)
    failed  error: in words; the last message

A side that gets anything else ends the connection. azpy pickles nothing. Ray carries the object and the bytes as they
are, by its own means.
"""

import json
import queue
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from azpy import _core
from azpy.errors import AzpyError

Inbox = queue.SimpleQueue[tuple[dict[str, Any], bytes]]  # messages, each with its bytes
Send = Callable[[Mapping[str, Any], bytes], None]

PROTOCOL = 7  # of the messages; the head and a worker have the same one
_LENGTHS = struct.Struct("<II")
_MOST_JSON = 1 << 22  # bytes
MOST_OF_A_HEAD = (1 << 31) - 1  # bytes of a message: a model
# Bytes of a message: the games that ended together. A game of Go on 19 x 19 points can have 4 MB.
MOST_OF_A_WORKER = 1 << 26
MOST_OF_A_PART = MOST_OF_A_WORKER // 2  # bytes of games after which a worker begins another message


def pack(message: Mapping[str, Any], body: bytes = b"") -> bytes:
    """One message."""
    text = json.dumps(message).encode()
    return _LENGTHS.pack(len(text), len(body)) + text + body


def as_object(data: bytes | bytearray) -> dict[str, Any]:
    """A JSON object; a `ValueError` for anything else."""
    try:
        found = json.loads(data)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")
    return found


class Unpacker:
    """Puts messages together from the pieces in which they come.

    Args:
        most: bytes of one message besides its JSON.
    """

    def __init__(self, most: int) -> None:
        self._most, self._buffer = most, bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
        """The messages that are whole with these bytes.

        Raises:
            ValueError: something that is no message, or one that is too long.
        """
        self._buffer += data
        while len(self._buffer) >= _LENGTHS.size:
            text, body = _LENGTHS.unpack_from(self._buffer)
            if text > _MOST_JSON or body > self._most:
                most = f"{_MOST_JSON} and {self._most}"
                raise ValueError(f"a message of {text} and {body} bytes, expected {most} at most")
            begin, end = _LENGTHS.size + text, _LENGTHS.size + text + body
            if len(self._buffer) < end:
                return
            message = as_object(self._buffer[_LENGTHS.size : begin])
            whole = bytes(self._buffer[begin:end])
            del self._buffer[:end]
            yield message, whole


def unpack(data: bytes, most: int) -> tuple[dict[str, Any], bytes]:
    """The one message that the bytes are, or a `ValueError`; see `Unpacker`."""
    unpacker = Unpacker(most)
    messages = list(unpacker.feed(data))
    if len(messages) != 1 or unpacker._buffer:
        raise ValueError(f"expected one whole message, got {len(messages)} and a part of one")
    return messages[0]


def in_words(error: Exception) -> tuple[str, bool]:
    """An error as a child or a worker tells it, and whether a user can put it right.

    An error that a user can put right is a sentence; of other errors the name says more than the text.
    """
    own = isinstance(error, AzpyError | _core.GameError | _core.EvaluatorError)
    return (str(error) if own else f"{type(error).__name__}: {error}"), own
