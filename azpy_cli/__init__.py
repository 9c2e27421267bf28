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
from functools import partial

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


# See the modules of azpy/cli.
az_bench = partial(_run, "bench")
az_check_game = partial(_run, "check_game")
az_compare = partial(_run, "compare")
az_doctor = partial(_run, "doctor")
az_engine = partial(_run, "engine")
az_export = partial(_run, "export")
az_match = partial(_run, "match")
az_play = partial(_run, "play")
az_replay = partial(_run, "replay")
az_serve = partial(_run, "serve")
az_train = partial(_run, "train")
az_worker = partial(_run, "worker")
