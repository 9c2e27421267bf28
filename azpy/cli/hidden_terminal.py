"""A game that hides something in the terminal: the person sees what a client of az-serve is told, and nothing else."""

import json
import sys
from typing import Any

from azpy import _core
from azpy.cli.terminal_view import sides_of
from azpy.errors import AzpyError, RequestError
from azpy.games.notations import side_name
from azpy.serving.models import PlayerEngine
from azpy.serving.queries import Session

_REFUSED = ("hint", "undo", "resign", "level", "dice", "text", "save", "load")
_HELP = """\
NAME          play this action
new           begin a new game, with the newest model
switch SIDE   begin a new game on this side: first, second, ...
quit          end"""


class HiddenTerminal:
    """A conversation with one person, who plays one side.

    Args:
        model: who plays the other sides.
        people: the person's side.
    """

    def __init__(self, model: PlayerEngine, people: set[int]) -> None:
        self._model, self._start = model, model.player.start
        self._said, self._seen = (said := list[str]()), dict[str, Any]()
        self._session = Session({"main": model}, lambda response: said.append(response.line))
        (self._side,) = people

    def run(self) -> int:
        """Plays until the person ends it; returns the exit code."""
        self._begin()
        while True:
            try:
                line = input("> ").removeprefix("\ufeff").strip()  # PowerShell puts a mark before piped text
            except EOFError:
                print()
                return 0
            if line in ("quit", "exit"):
                return 0
            try:
                self._do(line)
            except (AzpyError, ValueError) as error:
                print(f"{error} (help lists the commands)")

    def _do(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if line in self._seen["actions"] or word not in ("help", "new", "switch", *_REFUSED, ""):
            self._ask(action="play", move=line)
        elif word in _REFUSED:
            raise RequestError(f"{self._start.game} hides something, so there is no {word}")
        elif word == "help":
            print(_HELP)
        elif word:
            if word == "switch":
                (self._side,) = sides_of(rest, self._start)
            self._begin()

    def _ask(self, **message: Any) -> None:
        """Send a message, and show what the person sees then."""
        self._session.take(_core.Message(json.dumps({"id": "1", **message})))
        self._session.wait()
        if "error" in (seen := json.loads(self._said.pop())):
            raise RequestError(seen["error"])
        self._seen = seen
        print(f"\n{seen['view']}\n")
        if seen["result"] is None:
            print(f"{side_name(self._start, seen['side'])} (you) to move: {', '.join(seen['actions'])}", flush=True)
        else:
            print(f"played: {', '.join(seen['moves'])}\n{seen['result']} - new, switch SIDE or quit", flush=True)

    def _begin(self) -> None:
        try:
            if self._model.renew():
                print("a newer model was loaded")
        except AzpyError as error:  # the model before it plays on
            print(error, file=sys.stderr)
        print(f"{self._model.player.name}; you play {side_name(self._start, self._side)}; type help for the commands")
        self._ask(action="deal", side=self._side)
