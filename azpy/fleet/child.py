"""A process of azpy's own, at the other end of a pair of sockets: a worker, or the learner's process.

It ends when the connection closes, as it does when its parent dies, whatever it is doing.
"""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from azpy import _core
from azpy.errors import AzpyError
from azpy.fleet.wire import MOST_OF_A_HEAD, Unpacker

__all__ = ["CLOSED_SECONDS", "PIECE", "Child", "Inbox", "in_words", "talk"]

CLOSED_SECONDS = 5.0  # for a process to end that has closed its socket
PIECE = 1 << 20  # bytes read at once
_COMMAND = (sys.executable, "-P", "-m", "azpy.cli.child")  # what it is, and the number of its socket

Inbox = queue.SimpleQueue[tuple[dict[str, Any], bytes]]  # messages of the parent, each with its bytes


class Child:
    """The parent's side.

    Args:
        kind: "worker" or "learner", see `azpy/cli/child.py`.

    Attributes:
        socket: the connection to the process.
        process: the process.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, kind: str) -> None:
        self.socket, theirs = socket.socketpair()
        with theirs:
            # The parent's own path of modules: a game's module is found in the same place.
            modules = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
            self.process = subprocess.Popen(  # noqa: S603 - this Python, and a module from here
                [*_COMMAND, kind, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": modules},
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a game prints is no output of the parent
                process_group=0,  # Ctrl-C in a terminal is for the parent
            )

    def end(self, seconds: float = 0.0) -> str:
        """Kills the process if it does not end by itself in so long, and says how it ended."""
        self.socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.process.kill()  # nothing, if it has ended
        code = self.process.wait()
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def talk(connection: socket.socket) -> tuple[Inbox, Callable[[bytes], None]]:
    """The child's side: the messages that come, and a function that sends.

    The process ends where the parent's end is closed: with exit code 0, as the parent is gone. It ends with exit code 1
    and a traceback where messages cannot be read or sent for another reason.
    """
    inbox: Inbox = queue.SimpleQueue()

    def read() -> None:
        unpacker = Unpacker(MOST_OF_A_HEAD)
        with _ending():
            while data := connection.recv(PIECE):
                for message in unpacker.feed(data):
                    inbox.put(message)
            os._exit(0)  # the work may take long, and nobody waits for it

    def send(data: bytes) -> None:
        with _ending():
            connection.sendall(data)

    threading.Thread(target=read, daemon=True, name="azpy-inbox").start()
    return inbox, send


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    """Ends the process at once where the line to its parent breaks, in whichever thread."""
    try:
        yield
    except ConnectionError:  # the parent is gone
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def in_words(error: Exception) -> tuple[str, bool]:
    """An error as a child or a worker tells it, and whether a user can put it right.

    An error that a user can put right is a sentence; of other errors the name says more than the text.
    """
    own = isinstance(error, AzpyError | _core.GameError | _core.EvaluatorError)
    return (str(error) if own else f"{type(error).__name__}: {error}"), own
