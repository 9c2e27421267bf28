"""A game in the terminal: the person types names of actions, the player answers."""

import sys
from collections.abc import Callable

import numpy as np

from azpy import _core
from azpy._core import Line
from azpy.errors import AzpyError, RequestError
from azpy.games.lines import roll
from azpy.serving.models import Model, chosen
from azpy.serving.track import Track
from azpy.settings.run import ABOUT

_SHOWN = 5  # candidates
_HELP = """\
NAME          play this action; several names play a line
moves         the legal actions
hint          what the player thinks of this position
undo          take your last move back
new           begin a new game, with the newest model
switch        change sides
level N       search with N simulations a move
dice NAME     the outcome of dice, in place of a random one: give it before the move that leads to the roll
text          the position in the game's notation
quit          end"""


class Terminal:
    """A conversation with one person.

    Args:
        model: who plays.
        people: the sides that are played by people, 0 and 1.
    """

    def __init__(self, model: Model, people: set[int]) -> None:
        self._model, self._people = model, set(people)
        self._track = Track(model.engine)
        self._line = Line(model.served.start)
        self._simulations = model.served.simulations
        self._rolls: list[str] = []
        self._random = np.random.default_rng()
        self._commands: dict[str, Callable[[list[str]], object]] = {
            "help": lambda _: print(_HELP),
            "moves": lambda _: print(*self._names()),
            "hint": lambda _: self._hint(),
            "undo": lambda _: self._undo(),
            "new": lambda _: self._begin(),
            "switch": lambda _: self._switch(),
            "level": self._set_level,
            "dice": self._rolls.extend,
            "text": lambda _: print(self._line.state.to_text()),
        }

    def run(self) -> int:
        """Plays until the person ends it; returns the exit code."""
        self._begin()
        while True:
            self._go_on()
            try:
                words = input("> ").split()
            except EOFError:
                print()
                return 0
            if words[:1] in (["quit"], ["exit"]):
                return 0
            if not words:
                continue
            try:
                # A game may have an action of such a name: it goes first.
                if words[0] in self._commands and words[0] not in self._names():
                    self._commands[words[0]](words[1:])
                else:
                    self._play(words)
            except (AzpyError, ValueError) as error:
                print(error)

    def _begin(self) -> None:
        try:
            if self._model.renew():
                print("a newer model was loaded")
        except AzpyError as error:
            print(error, file=sys.stderr)
        self._track.forget()
        self._rolls.clear()
        self._line = Line(self._model.served.start)
        sides = " and ".join(("first", "second")[side] for side in sorted(self._people)) or "neither"
        print(f"{self._model.served.name}, {self._simulations} simulations; you play {sides} side; help says more")
        self._show()

    def _show(self) -> None:
        print(f"\n{self._line.state.render(color=None)}\n")

    def _names(self) -> list[str]:
        state = self._line.state
        return [] if state.turn < 0 else [state.action_name(action) for action in state.legal_actions()]

    def _go_on(self) -> None:
        """Plays dice and the player's moves until it is a person's turn."""
        while not self._line.state.is_terminal:
            state = self._line.state
            if state.turn == _core.CHANCE:
                self._roll()
            elif state.turn in self._people:
                return
            else:
                result = self._search()
                name = state.action_name(chosen(result, self._model.served.temperature))
                print(f"{name}   (value {result.value:+.2f} for the player)")
                self._line.play(name)
                self._show()
        print(f"{self._line.state.result_text()} - new, undo or quit")

    def _roll(self) -> None:
        state = self._line.state
        name = state.action_name(roll(state.clone(), self._random)[0])
        if self._rolls:
            wanted = self._rolls.pop(0)
            if wanted in {state.action_name(one) for one, _ in state.chance_outcomes()}:
                name = wanted
            else:
                print(f"{wanted} is no roll here: {name} was drawn")
        self._line.play(name)
        print(f"roll: {name}")
        self._show()

    def _play(self, words: list[str]) -> None:
        if self._line.state.is_terminal:
            raise RequestError("the game is over: new, undo or quit")
        if " ".join(words) in self._names():
            words = [" ".join(words)]
        line = self._line.upto(len(self._line.played))
        for word in words:
            line.play(word)
        self._line = line  # all of the words are legal
        self._show()

    def _search(self) -> _core.SearchResult:
        return self._track.follow(self._line.start, self._line.played).search(self._simulations).result()

    def _hint(self) -> None:
        state = self._line.state
        if state.is_terminal:
            raise RequestError("the game is over")
        result = self._search()
        for actions, visits, value in result.principal_variations(_SHOWN):
            print(f"{visits:8,} visits  value {value:+.2f}  {state.format_actions(actions[:8])}")

    def _undo(self) -> None:
        """Goes back to the last position in which a person chose."""
        state, until = self._line.start.clone(), None
        for number, action in enumerate(self._line.played):
            if state.turn in self._people:
                until = number
            state.play(action)
        if until is None:
            raise RequestError("there is nothing to take back")
        self._line = self._line.upto(until)
        self._show()

    def _switch(self) -> None:
        self._people = {0, 1} - self._people

    def _set_level(self, words: list[str]) -> None:
        self._simulations = ABOUT["simulations"].parsed("level", " ".join(words)[:20])
