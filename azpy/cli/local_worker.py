"""A worker process of az-train, which starts it; nobody else has a use for it."""

import os
import signal
import socket
import sys

from azpy.fleet.worker import work_at


def main(descriptor: int) -> None:
    """Plays at the other end of a socket that this process inherited."""
    # Ctrl-C is for the head, which ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as connection:
        done = work_at(connection)
    os._exit(0 if done else 1)  # as all commands: taking ONNX Runtime down takes a second


if __name__ == "__main__":
    main(int(sys.argv[1]))
