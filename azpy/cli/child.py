"""Run a worker process that az-train starts."""

import os
import signal
import sys

from azpy.fleet.channels.pipe import talk
from azpy.fleet.worker import Worker
from azpy.system import ENDING, inherited_socket


def main(number: str) -> None:
    """Works at the other end of a socket that this process inherited."""
    # These are for the parent, which takes what its children have finished and then ends them. SLURM and systemd send
    # them to all processes at once.
    for each in (signal.SIGINT, *ENDING):
        signal.signal(each, signal.SIG_IGN)
    with inherited_socket(number) as connection:
        done = Worker(*talk(connection)).run()
    os._exit(0 if done else 1)  # as all commands: taking ONNX Runtime or torch down takes a second


if __name__ == "__main__":
    main(sys.argv[1])
