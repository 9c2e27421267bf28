"""The learner's process of az-train, which starts it; nobody else has a use for it."""

import os
import signal
import socket
import sys


def main(descriptor: int) -> None:
    """Fits what the other end of a socket asks for, which this process inherited."""
    from azpy.training.learner_process import serve  # takes a second

    # Ctrl-C is for the trainer, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as connection:
        done = serve(connection)
    os._exit(0 if done else 1)  # as all commands: taking torch down takes a second


if __name__ == "__main__":
    main(int(sys.argv[1]))
