"""The commands as they are installed. Each begins here, before anything that takes long to import.

`import azpy` takes a fifth of a second, with numpy and the core. This package is outside of it: Ctrl-C in that time is
one line too.
"""

import atexit
import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

# az-NAME is the command in the module NAME of azpy/cli.
COMMANDS = (
    *("bench", "check-game", "compare", "doctor", "engine", "export"),
    *("match", "play", "replay", "serve", "train", "worker"),
)

_codes: list[int] = []  # the exit code, once a command has returned


@atexit.register
def _leave() -> None:
    """Ends the process as it is: to take torch and ONNX Runtime down, module by module, takes a second or two.

    No promise is broken. A command closes what it opened before it returns. Python waits for all threads but daemons
    before it calls atexit functions. This function is the first that is registered, and so the last that is called:
    those of azpy's core, torch and others are done.
    """
    if _codes:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, OSError, ValueError):  # no stream, nobody reads it, closed
                stream.flush()
        os._exit(_codes[0])


def _run(module: str) -> int:
    # The command's own handler comes later. Process 1 of a container would ignore SIGTERM until then.
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    try:
        code: int = importlib.import_module(f"azpy.cli.{module}").main()
    except KeyboardInterrupt:  # while it was imported; the command itself answers what comes later
        print("stopped", flush=True)
        code = 130
    _codes.append(code)
    return code


def __getattr__(name: str) -> Callable[[], int]:
    """The entry point `az_NAME` of a command."""
    module = name.removeprefix("az_")
    if module.replace("_", "-") not in COMMANDS:
        raise AttributeError(f"module 'azpy_cli' has no attribute {name!r}")
    return partial(_run, module)
