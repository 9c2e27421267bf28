"""Looks at a shared folder as a worker would before it plays there; `az-doctor --workers PLACE` prints the findings."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from azpy import _core
from azpy.errors import AzpyError, RunError
from azpy.fleet.channels.files import Files
from azpy.fleet.channels.folder_worker import settings_at_folder
from azpy.fleet.fleet import answers_of, digest_of_run
from azpy.fleet.wire import MOST_OF_A_HEAD, PROTOCOL, in_words
from azpy.fleet.worker import open_network
from azpy.games.names import make_game, must_be_typed
from azpy.runs.storage import TEMPORARY
from azpy.settings import Settings
from azpy.settings.toml import path_argument

_WATCH_SECONDS = 10.0  # for a count of the head: a network file system may show an old one for a while
_LOOK = 0.2  # seconds between two looks


class Finding(NamedTuple):
    """One line on the folder."""

    name: str  # what was looked at
    text: str  # what was found
    advice: str = ""  # what to do, if anything
    is_fault: bool = False  # no worker of this machine can play there


def inspect_place(
    path: str, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep
) -> Iterator[Finding]:
    """Looks at the folder; nothing is left there, and no game in Python is imported.

    Yields:
        The findings. After a fault there may be fewer, because nothing more can be looked at.
    """
    if not Path(path).is_dir():
        yield Finding("folder", f"{path} is no folder here", "mount it, or make it on the machine of az-train", True)
        return
    yield (trial := _try_out(path))
    if trial.is_fault:
        return
    if not os.path.lexists(Path(path) / "head"):
        yield Finding("az-train", "was never here", f"start az-train GAME --workers folder:{path_argument(path)}")
        return
    try:
        yield from _look_at_run(Files(path, make=False, parts=False), clock, sleep)
    except (AzpyError, OSError, ValueError) as error:
        yield Finding("az-train", f"its file head cannot be read: {error}", "start az-train again", True)


def _try_out(path: str) -> Finding:
    """Writes and reads in a folder of its own within the folder."""
    try:
        with tempfile.TemporaryDirectory(prefix=f"{TEMPORARY}doctor-", dir=path, ignore_cleanup_errors=True) as trial:
            place, data = Files(trial, make=True), os.urandom(1 << 16)
            place.write("", "head", data)
            if place.read("", "head", len(data)) != data:
                return Finding("folder", "a file has other bytes than were written", "use another disk", True)
    except (OSError, AzpyError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        return Finding("folder", f"it cannot be written: {reason}", "let this user write there, and make room", True)
    return Finding("folder", "it can be written and read")


def _look_at_run(place: Files, clock: Callable[[], float], sleep: Callable[[float], object]) -> Iterator[Finding]:
    if place.is_there("", "stop"):
        yield Finding("stop", "the file stop is there, so workers end at once", f"delete {place.path / 'stop'}", True)
    head = place.said("", "head")
    if head.get("ended"):
        yield Finding("az-train", "its run has ended", "start az-train again; workers may start before it")
    elif _counts(place, head, clock, sleep):
        yield Finding("az-train", "is there: its counter moves")
    else:
        text = "start az-train again, or see whether this is the same folder on its machine"
        yield Finding("az-train", f"its counter stood still for {_WATCH_SECONDS:.0f} seconds", text)
    version, protocol = head.get("version"), head.get("protocol")
    if (version, protocol) != (_core.__version__, PROTOCOL):
        text = f"az-train is of azpy {version} with protocol {protocol}, here is {_core.__version__} with {PROTOCOL}"
        yield Finding("azpy", text, "install the same azpy on both machines", True)
        return
    yield Finding("azpy", f"{version}, as here")
    try:
        settings = Settings(**head["settings"])
        same = digest_of_run(settings) == head.get("run")
        typed = must_be_typed(settings.game)
        if not typed:
            make_game(settings.game)
    except (KeyError, TypeError, AzpyError, _core.GameError) as error:
        yield Finding("game", f"the run cannot be read: {error}", "install the same azpy on both machines", True)
        return
    if not same:
        yield Finding("game", "this azpy plays the run by other rules", "install the same azpy on both machines", True)
        return
    start = f"az-worker {path_argument(str(place.path))}"
    text = f"start a worker with: {start} {path_argument(settings.game)}" if typed else f"start a worker with: {start}"
    yield Finding("game", settings.game, text)
    yield _compare_bits(place, head, settings)


def _counts(
    place: Files, head: Mapping[str, Any], clock: Callable[[], float], sleep: Callable[[float], object]
) -> bool:
    """Whether the head's counter moves while this looks."""
    begin = clock()
    while clock() - begin < _WATCH_SECONDS:
        sleep(_LOOK)
        try:
            now = place.said("", "head")
        except (OSError, ValueError):
            continue
        if now.get("beat") != head.get("beat"):
            return True
    return False


def _compare_bits(place: Files, head: Mapping[str, Any], settings: Settings) -> Finding:
    """Whether the run's network answers here as it does in the head, where this matters."""
    if not settings.deterministic:
        return Finding("bits", "need not be equal: the run is not deterministic")
    if must_be_typed(settings.game):
        return Finding("bits", "not compared: az-doctor imports no game in Python; az-train compares them itself")
    lineup = head.get("lineup")
    if not isinstance(lineup, dict) or "answers" not in lineup:
        return Finding("bits", "not compared: az-train plays nothing yet", "look again when it does")
    if lineup.get("network") is None:
        return Finding("bits", "nothing to compare: no network plays", "look again after the first iteration")
    try:
        model = place.read("networks", lineup["network"], MOST_OF_A_HEAD)
        mine, start = settings_at_folder(settings, {}), make_game(settings.game)
        evaluator = open_network(mine, start, lineup["network"], lineup["precision"], model)
        row_exact, answers = evaluator.row_exact, answers_of(evaluator)
    except (FileNotFoundError, RunError):
        return Finding("bits", "not compared: the network's file is not there or is damaged", "look again")
    except Exception as error:  # a file of the folder may say anything
        return Finding("bits", f"the run's network does not play here: {in_words(error)[0]}", "see az-doctor", True)
    if not row_exact:
        text = "the network's answer to a position depends on what else is in its batch"
        return Finding("bits", text, "a deterministic run needs workers on CPUs like that of az-train", True)
    if answers != lineup["answers"]:
        text = "have workers on the same kind of CPU with the same ONNX Runtime, or --no-deterministic"
        return Finding("bits", "the run's network gives other bits here than in az-train", text, True)
    return Finding("bits", "are those of az-train, in the network's answers")
