"""How a game begins, how a line is played unasked, and the same in another process with other hashes of text."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from azpy._core import State, Walk
from azpy.checks.alike import plain
from azpy.checks.faults import Broken
from azpy.games.names import is_python_class, make_game, python_game

_SECONDS = 60.0


def made(spec: str) -> Any:
    """The game of a spec: an azpy.Game or a State."""
    return python_game(spec) if is_python_class(spec) else make_game(spec)


def begun(game: Any) -> State:
    """The start of a game; `Broken` if the game lacks an attribute, or its copy is none."""
    try:
        state = State(game)
    except AttributeError as error:
        if error.name in ("num_actions", "obs_shape", "max_plies"):
            raise Broken("attributes", f"AttributeError: {error}", f"an attribute {error.name}") from error
        raise
    if state.game_object is not None and not isinstance(game, State):
        check_copy(game, state.game_object)
    return state


def check_copy(game: Any, other: Any) -> None:
    """The clone of a game in Python must be another object of the same class."""
    if game is not None and game is other:
        raise Broken("clone", "the position itself", "a copy of the position")
    if type(game) is not type(other):
        raise Broken("clone", f"a {type(other).__name__}", f"a {type(game).__name__}, made by type(self)(...)")


def unasked(start: State, line: Sequence[int]) -> State:
    """The position after a line, without any question on the way."""
    position = start.clone()
    for action in line:
        position._play(action)
    return position


def facts_elsewhere(spec: str, lines: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """The facts after each line, from another process; `Broken` if the process gives no answers."""
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", "from azpy.checks.elsewhere import answer; answer()"],
            input=json.dumps([spec, lines]),
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
        return list(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.CalledProcessError as error:
        got = (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]
    except (subprocess.TimeoutExpired, OSError, ValueError, IndexError) as error:
        got = f"{type(error).__name__}: {error}"
    raise Broken("process", f"no answers: {got}", f"those to {len(lines)} lines of play")


def answer() -> None:
    """The other process: reads a spec and lines of play, and writes the facts after each line, as JSON."""
    spec, lines = json.load(sys.stdin)
    start = begun(made(spec))
    answers = [plain(Walk(unasked(start, line)).facts()) for line in lines]
    sys.stdout.write(json.dumps(answers) + "\n")
