"""A game that hides something in the terminal: the person sees what a client of az-serve is told, and nothing else."""

import json
from collections.abc import Callable
from typing import Any

from azpy import _core
from azpy._core import Line
from azpy.cli.terminal import path_of
from azpy.cli.terminal_view import sides_of
from azpy.errors import AzpyError, RequestError, SettingsError
from azpy.games.game_files import ending_of, game_text
from azpy.games.notations import side_name
from azpy.runs import storage
from azpy.serving.models import PlayerEngine
from azpy.serving.queries import Session

_HELP = """\
NAME          play this action
moves         the legal actions
new           begin a new game, with the newest model
switch SIDE   begin a new game on this side: first, second, ...; switch alone takes the next side
save FILE     write the game, once it is over: .json
quit          end"""
_REFUSED = ("hint", "undo", "resign", "level", "dice", "text", "load")


class HiddenTerminal:
    """A conversation with one person, who plays one side.

    Args:
        model: who plays the other sides.
        people: the person's side.

    Raises:
        SettingsError: no side, or several: people at one screen would see each other's cards.
    """

    def __init__(self, model: PlayerEngine, people: set[int]) -> None:
        self._model, self._start = model, model.player.start
        self._said = list[str]()
        self._session = Session({"main": model}, lambda response: self._said.append(response.line))
        self._seen: dict[str, Any] = {}
        self._sit(people, SettingsError)
        self._commands: dict[str, Callable[[str], object]] = {
            "help": lambda _: print(_HELP),
            "moves": lambda _: print(*self._seen["actions"]),
            "new": lambda _: self._begin(),
            "switch": self._switch,
            "save": self._save,
            **dict.fromkeys(_REFUSED, self._refuse),
        }

    def run(self) -> int:
        """Plays until the person ends it; returns the exit code."""
        self._begin()
        while True:
            try:
                line = input("> ").strip()
            except EOFError:
                print()
                return 0
            if line in ("quit", "exit"):
                return 0
            word, _, rest = line.partition(" ")
            try:
                if word in self._commands and line not in self._seen["actions"]:
                    self._commands[word](rest.strip())
                elif line:
                    self._ask(action="play", move=line)
            except (AzpyError, ValueError) as error:
                print(error)

    def _ask(self, **message: Any) -> None:
        """Send a message, and show what the person sees then."""
        self._session.take(_core.Message(json.dumps({"id": "1", **message})))
        self._session.wait()
        seen = json.loads(self._said.pop())
        if "error" in seen:
            raise RequestError(f"{seen['error']} (help lists the commands)")
        self._seen = seen
        print(f"\n{seen['view']}\n")
        if seen["result"] is None:
            print(f"{side_name(self._start, self._side)} (you) to move: {', '.join(seen['actions'])}", flush=True)
        else:
            print(f"played: {' '.join(seen['moves'])}\n{seen['result']} - new, switch, save FILE or quit", flush=True)

    def _sit(self, people: set[int], problem: type[AzpyError]) -> None:
        if len(people) != 1:
            why = "others at this screen would see the same cards"
            raise problem(f"one person plays {self._start.game}, because {why}: give one side, such as first")
        (self._side,) = people

    def _begin(self) -> None:
        try:
            if self._model.renew():
                print("a newer model was loaded")
        except AzpyError as error:
            print(error)
        print(f"{self._model.player.name}; you play {side_name(self._start, self._side)}; type help for the commands")
        self._ask(action="deal", side=self._side)

    def _switch(self, words: str) -> None:
        following = {(self._side + 1) % self._start.num_players}
        self._sit(sides_of(words, self._start) if words else following, RequestError)
        self._begin()

    def _save(self, name: str) -> None:
        if self._seen["result"] is None:
            raise RequestError("the record of a game names what it hides: save it once it is over")
        path, line = path_of(name, "save"), Line(self._start)
        ending = ending_of(self._start.game, path.name)
        if path.exists():
            raise RequestError(f"{path} is there already: give another name")
        for move in self._seen["moves"]:
            line.play(move)
        served = self._model.player
        players = ["person" if side == self._side else served.name for side in range(self._start.num_players)]
        end = line.state.outcome(), "rules"
        with storage.output(path) as file:
            file.write(game_text(ending, served.start, line.start, line.played, players, {}, end).encode())
        print(f"saved to {path}")

    def _refuse(self, _: str) -> None:
        words = f"{', '.join(_REFUSED[:-1])} and {_REFUSED[-1]}"
        raise RequestError(f"{words} are not there in {self._start.game}, which hides something (help lists commands)")
