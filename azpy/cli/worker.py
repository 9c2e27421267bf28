"""Play games for a training run, on any machine that shares its folder.

az-train connect_four --workers folder:/shared/games
az-worker /shared/games
"""

import errno
import os
import signal
import time
from collections.abc import Sequence

from azpy.cli.common import (
    GAME_OF_RUN,
    Parser,
    add_number,
    add_setting,
    command,
    drop_output,
    not_empty,
    when_told_to_end,
)
from azpy.errors import RunError
from azpy.fleet.channels.folder_worker import PATIENCE, FolderWorker


def _work(arguments: Sequence[str]) -> int:
    parser = Parser("az-worker", __doc__, "docs/guides/cluster.md")
    parser.add_argument("place", type=not_empty, metavar="FOLDER", help="shared folder that az-train uses")
    parser.add_argument("game", nargs="?", type=not_empty, metavar="GAME", help=GAME_OF_RUN)
    add, _ = parser.section("Options")
    add_setting(add, "device", "cpu, cuda, cuda:N or openvino (default: the run's)")
    add_setting(add, "slots", "games in play at once (default: the run's)")
    add_setting(add, "pipelines", "threads of self-play (default: by the device)")
    add_setting(add, "threads", "threads that grow trees (default: by the device)")
    text = "seconds without a sign of az-train before the worker ends"
    add_number(add, "--patience", text, PATIENCE, kind=float, low=0, above=True)
    given = parser.parse_args(arguments)
    names = ("device", "slots", "pipelines", "threads")
    layout = {name: value for name, value in vars(given).items() if name in names}
    if layout.get("pipelines") == "auto":  # the default
        del layout["pipelines"]
    told: list[int] = []

    def end(number: int, _: object) -> None:
        told.append(number)

    before = when_told_to_end(end) | {signal.SIGINT: signal.signal(signal.SIGINT, end)}
    try:
        _await(given.place, given.patience, told)
        if not told:
            worker = FolderWorker(given.place, given.game, layout, given.patience, _say, lambda: bool(told))
            _say(f"ends: {worker.run()}")
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    return 128 + told[0] if told else 0


def _await(place: str, patience: float, told: list[int]) -> None:
    """Waits until the folder is there: az-train makes it. It returns at once when the user ends the worker."""
    if os.path.lexists(place):
        return
    _say(f"{place} does not exist yet: waiting for az-train --workers folder:{place}")
    until = time.monotonic() + patience
    while not os.path.lexists(place) and not told:
        if time.monotonic() > until:
            raise RunError(
                f"{place} does not exist after {patience:g} seconds: give the folder that az-train --workers names"
            )
        time.sleep(0.2)


def _say(text: str) -> None:
    """Print a line for the user. A worker whose terminal is gone plays on, and says nothing more."""
    try:
        print(text, flush=True)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        drop_output()


main = command("az-worker", _work)
