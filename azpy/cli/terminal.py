"""A game in the terminal: the person types names of actions, the player answers."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from azpy import _core
from azpy._core import Line, notation_of
from azpy.cli.terminal_view import captured, expected, last_move, named, shows_colors, sides_of
from azpy.errors import AzpyError, RequestError, printable
from azpy.game import players_of
from azpy.games.game_files import ReadGame, ending_of, game_text, read_game
from azpy.games.lines import roll
from azpy.games.notations import decoded, result_of, side_name
from azpy.matches.levels import level_word
from azpy.runs import storage
from azpy.serving.limits import NO_LIMITS
from azpy.serving.models import PlayerEngine, chosen
from azpy.settings.run import ABOUT

_SHOWN = 5  # candidates
_HELP = """\
NAME          play this action; several names play a line
moves         the legal actions
hint          what the player thinks of this position
undo          take your last move back, or your resignation
resign        give the game up
new           begin a new game, with the newest model
switch SIDES  have people play these sides: first, second, ..., all or none; switch alone changes sides
level NAME    play as strong as that: a number of simulations, or a name; level alone lists the names
dice NAME     the outcome of dice, in place of a random one: give it before the move that leads to the roll
text          the position in the game's notation
save FILE     write the game: .json for every game, as the board in the browser has it, .pgn for chess, .sgf for Go
load FILE     go on with the game of such a file, or of a file with a position; you play the side that is to move
quit          end"""
_OVER = "the game is over: new, undo, save FILE or quit"


class Terminal:
    """A conversation with one person.

    Args:
        model: who plays.
        people: the sides that are played by people, from 0 on.
    """

    def __init__(self, model: PlayerEngine, people: set[int]) -> None:
        self._model, self._people = model, set(people)
        self._game: _core.EngineGame | None = None  # it keeps its tree
        self._line = Line(model.player.start)
        self._simulations = model.player.simulations
        self._level: str | None = None  # a word of `LEVELS`, in place of the simulations
        self._rolls: list[str] = []
        self._random = np.random.default_rng()
        self._given_up: tuple[Any, str] | None = None  # the outcome as `State.outcome` has it, and how the game ended
        self._loaded: ReadGame | None = None
        self._own = set[Path]()  # files that may be replaced
        self._has_colors = shows_colors()
        self._is_shown = False
        self._commands: dict[str, Callable[[list[str]], object]] = {
            "help": lambda _: print(_HELP),
            "moves": lambda _: print(*self._names()),
            "hint": lambda _: self._hint(),
            "undo": lambda _: self._undo(),
            "new": lambda _: self._begin(),
            "switch": lambda words: self._switch(" ".join(words)),
            "level": self._set_level,
            "dice": self._rolls.extend,
            "text": lambda _: print(self._line.state.to_text()),
            "resign": lambda _: self._resign(),
            "save": lambda words: self._save(" ".join(words)),
            "load": lambda words: self._load(" ".join(words)),
        }

    def run(self) -> int:
        """Plays until the person ends it; returns the exit code."""
        self._begin()
        while True:
            self._go_on()
            try:
                words = input("> ").removeprefix("\ufeff").split()  # PowerShell puts a mark before piped text
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
        self._game = None
        self._rolls.clear()
        self._jump(Line(self._model.player.start))
        self._loaded, state = None, self._line.state
        sides = " and ".join(named(state, side, color=self._has_colors) for side in sorted(self._people)) or "neither"
        if state.num_players == 1:
            sides = "alone" if self._people else "nothing"
        strength = f"{self._simulations} simulations" if self._level is None else f"level {self._level}"
        print(f"{self._model.player.name}, {strength}; you play {sides}; type help for the commands")

    def _jump(self, line: Line) -> None:
        """Another position is there, to which no one move leads from the one before."""
        self._line, self._given_up, self._is_shown = line, None, False

    def _go(self, line: Line) -> None:
        """Moves were played."""
        self._line, self._is_shown = line, False

    @property
    def _end(self) -> tuple[Any, str] | None:
        """The outcome as `State.outcome` has it and how the game ended; None while it goes on."""
        state = self._line.state
        return (state.outcome(), "rules") if state.is_terminal else self._given_up

    def _show(self) -> None:
        """The board as it is now, unless it is shown already; below it the players, and what was played last."""
        if self._is_shown:
            return
        state, self._is_shown = self._line.state, True
        print(f"\n{state.render(color=self._has_colors)}\n")
        said = []
        if self._end is None and state.turn != _core.CHANCE:
            whose = " (you)" if state.turn in self._people else f" ({self._model.player.name})"
            if len(self._people) == state.num_players:
                whose = ""
            said.append(f"{named(state, state.turn, color=self._has_colors)}{whose} to move")
        if (last := last_move(self._line.start, self._line.played)) is not None:
            said.append(f"last move: {side_name(state, last[0])} {last[1]}")
        if taken := captured(self._line.start, self._line.played):
            said.append(f"captured: {taken}")
        if said:
            print("; ".join(said), flush=True)
        if self._end is not None:
            print(f"{result_of(state, *self._end)} - new, undo, save FILE or quit")

    def _names(self) -> list[str]:
        state = self._line.state
        return [] if state.turn < 0 else [state.action_name(action) for action in state.legal_actions()]

    def _go_on(self) -> None:
        """Plays dice and the player's moves until it is a person's turn."""
        thinker = None
        while self._end is None and (turn := self._line.state.turn) not in self._people:
            if turn == _core.CHANCE:
                self._roll()
                continue
            if turn != thinker:
                self._show()  # before the player thinks; the steps of its turn are shown together
                thinker = turn
            self._move()
        self._show()

    def _move(self) -> None:
        """The player plays one step of its turn."""
        state, line = self._line.state, self._line.upto(len(self._line.played))
        action, result = self._answer(state)
        mover = named(state, state.turn, color=self._has_colors)
        print(f"{mover} plays {state.short_name(action)}   ({expected(state, result)})")
        line.play(state.action_name(action))
        self._go(line)

    def _roll(self) -> None:
        state = self._line.state
        name = state.action_name(roll(state.clone(), self._random)[0])
        if self._rolls:
            wanted = self._rolls.pop(0)
            if wanted in {state.action_name(one) for one, _ in state.chance_outcomes()}:
                name = wanted
            else:
                print(f"{wanted} is not a possible roll here: {name} was drawn instead")
        self._line.play(name)
        self._go(self._line)
        print(f"roll: {name}")

    def _play(self, words: list[str]) -> None:
        if self._end is not None:
            raise RequestError(_OVER)
        if " ".join(words) in self._names():
            words = [" ".join(words)]
        line = self._line.upto(len(self._line.played))
        try:
            for word in words:
                line.play(word)
        except ValueError as error:
            raise RequestError(f"{error} (moves lists the legal ones, help the commands)") from error
        self._go(line)  # all of the words are legal

    def _resign(self) -> None:
        if self._end is not None:
            raise RequestError(_OVER)
        state = self._line.state
        if not state.zero_sum:
            problem = (
                f"{state.game} has {players_of(state)}, and a resignation does not score them: new starts another game"
            )
            raise RequestError(f"resign is for two players with a zero sum; {problem}")
        outcome = -1.0 if state.turn == 0 else 1.0
        self._go(self._line)
        self._given_up = outcome, "resigned"

    def _save(self, name: str) -> None:
        path = _path(name, "save")
        served, line = self._model.player, self._line
        ending = ending_of(line.start.game, path.name)
        if path.exists() and path.resolve() not in self._own:
            raise RequestError(f"{path} is there already: give another name")
        players = ["person" if side in self._people else served.name for side in range(line.start.num_players)]
        loaded = self._loaded or ReadGame(line.start, ())
        tags = dict(loaded.tags)
        players = [told or name for told, name in zip(loaded.players or players, players, strict=True)]
        if self._given_up or [*line.played] != [*loaded.actions]:  # the file tells of the game as it was
            notation = notation_of(line.start.game)
            for tag in ("" if notation is None else notation.result, "Termination"):
                tags.pop(tag, None)
        text = game_text(ending, served.start, line.start, line.played, players, tags, self._end)
        with storage.output(path) as file:
            file.write(text.encode())
        self._own.add(path.resolve())
        print(f"saved to {path}")

    def _load(self, name: str) -> None:
        path = _path(name, "load")
        most = NO_LIMITS.text_bytes
        with storage.disk_errors(path):
            storage.check_regular(path)
            with path.open("rb") as file:
                data = file.read(most + 1)
        if len(data) > most:
            raise RequestError(f"{path} is longer than {most} bytes, expected one game")
        try:
            game = read_game(self._model.player.start, decoded(data))
        except ValueError as error:
            raise RequestError(f"{path} cannot be loaded: {error}") from error
        line = Line(game.start)
        for action in game.actions:
            line.play(line.state.action_name(action))
        self._rolls.clear()
        self._jump(line)
        self._loaded = game
        yours = ""
        if len(self._people) == 1 < line.start.num_players and line.state.turn >= 0:
            self._people = {line.state.turn}
            yours = f"; you play {named(line.state, line.state.turn, color=self._has_colors)}"
        print(f"{path}: {_heading(game, line.state)}{yours}")

    def _search(self) -> _core.SearchResult:
        line, engine = self._line, self._model.engine
        self._game = (self._game or engine.game(line.start)).follow(line.start, line.played)
        return self._game.search(self._simulations).result()

    def _answer(self, state: _core.State) -> tuple[int, _core.SearchResult]:
        """The action that the player plays, and what it found."""
        served = self._model.player
        if self._level is None:
            result, temperature = self._search(), served.temperature
        else:
            level = served.ladder.levels[self._level]
            result, temperature = self._model.engine.submit(state, level.simulations).result(), level.temperature
        return chosen(served, state, result, temperature), result

    def _hint(self) -> None:
        state = self._line.state
        if self._end is not None:
            raise RequestError("the game is over")
        result = self._search()
        if not state.zero_sum:
            print(expected(state, result))
        for actions, visits, value in result.principal_variations(_SHOWN):
            print(f"{visits:8,} visits  value {value:+.2f}  {state.format_actions(actions[:8])}")

    def _undo(self) -> None:
        """Goes back to the last position in which a person chose."""
        if self._given_up is not None:
            self._given_up, self._is_shown = None, False
            return
        state, until = self._line.start.clone(), None
        for number, action in enumerate(self._line.played):
            if state.turn in self._people:
                until = number
            state.play(action)
        if until is None:
            raise RequestError("there is no move to take back")
        self._jump(self._line.upto(until))

    def _switch(self, words: str) -> None:
        state = self._line.state
        if words:
            self._people = sides_of(words, state)
        elif state.num_players == 1:
            raise RequestError(f"{state.game} has one player, so there is no side to switch to")
        elif state.num_players == 2:
            self._people = {0, 1} - self._people
        else:  # each person takes the next seat
            self._people = {(side + 1) % state.num_players for side in self._people}

    def _set_level(self, words: list[str]) -> None:
        text, ladder = " ".join(words)[:20], self._model.player.ladder
        if not words:
            for name, level in ladder.levels.items():
                elo = "" if ladder.network is None else f", Elo {level.elo:.0f}"
                print(f"{name:<14}{level.simulations:5} simulations, temperature {level.temperature:.1f}{elo}")
        elif (word := level_word(text)) is not None:
            self._level = word
        else:
            self._simulations, self._level = ABOUT["simulations"].checked("level", text, typed=True), None
            return
        print(ladder.about(self._model.player.network))


def _path(name: str, command: str) -> Path:
    if not name:
        raise RequestError(f"{command} needs the name of a file")
    return Path(name).expanduser()


def _heading(game: ReadGame, state: _core.State) -> str:
    """What a file says of the game that was loaded, and what of it is left out."""
    players = [f"{side_name(state, side)}: {name}" for side, name in enumerate(game.players) if name]
    result = [] if game.result is None else [f"result: {game.result}"]
    about = [f"{len(game.actions)} moves", *players, *result, *(f"left out: {text}" for text in game.left_out)]
    return printable("; ".join(about))  # what a file says must not steer the terminal
