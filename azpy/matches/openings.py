"""Openings of a match: drawn by chance, no two alike as long as the game has others; or of a file.

The core reads what a file holds: PGN and EPD for chess, SGF for Go, lines of play for every game.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from azpy import _core
from azpy.errors import RunError, SettingsError
from azpy.game import Game
from azpy.games.lines import roll
from azpy.games.notations import decoded
from azpy.runs import packed, storage

__all__ = ["Book", "Opening", "draw_at_random", "mix", "read_openings"]

_TRIES = 200  # draws in a row that bring nothing new before the game is taken to have no more openings
_MOST_BYTES = 1 << 24  # of a file of openings: a few hundred thousand lines
_MOST_NAMED = 3  # bad lines that an error names


def draw_at_random(position: _core.State, rng: np.random.Generator) -> int:
    """Picks evenly among the legal actions."""
    return int(rng.choice(position.legal_actions()))


def mix(*keys: int) -> int:
    """A 63-bit seed for a stream of its own."""
    return int(np.random.SeedSequence(keys).generate_state(1, np.uint64)[0] >> np.uint64(1))


class Opening(NamedTuple):
    """A position at a player's turn, and the actions that led to it, dice included.

    Attributes:
        position: where the match begins.
        actions: from `start` to `position`.
        start: a position without a past: the game's start, or one that a file sets up.
    """

    position: _core.State
    actions: tuple[int, ...]
    start: _core.State


class Book:
    """Openings by number: `book[n]` is always the same one, made when it is first asked for.

    Openings lead to different positions. Once `_TRIES` draws in a row bring no new opening, the openings repeat in the
    same order. If all games end within `plies`, the book halves its `plies`.

    `start` makes a start position. `plies` are random actions of players before the match begins; dice are not counted.
    `seed` fixes the openings. If `openings` are given, as by `read_openings`, the book has these and draws none.

    Example:
        >>> from azpy.games.names import make_position
        >>> book = Book(lambda: make_position("tic_tac_toe"), plies=1, seed=0)
        >>> len({book[n].actions for n in range(100)}), len(book)
        (9, 9)
    """

    def __init__(
        self, start: Callable[[], _core.State | Game], plies: int, seed: int, openings: Sequence[Opening] = ()
    ) -> None:
        self.plies = _checked(plies)
        self._start, self._seed = start, seed
        self._keys: set[int] = set()
        self._openings = list(openings)
        self._drawn = 0
        self._complete = bool(openings)

    def __len__(self) -> int:
        """Distinct openings so far."""
        return len(self._openings)

    def __getitem__(self, number: int) -> Opening:
        """The opening of pair `number`.

        Raises:
            SettingsError: the game is over before it begins.
        """
        while number >= len(self._openings) and not self._complete:
            self._grow()
        return self._openings[number % len(self._openings)]

    def _grow(self) -> None:
        for _ in range(_TRIES):
            opening = self._one()
            if not opening.position.is_terminal and (key := opening.position.key()) not in self._keys:
                self._keys.add(key)
                self._openings.append(opening)
                return
        if self._openings:
            self._complete = True
        elif self.plies:
            self.plies //= 2
        else:
            raise SettingsError("the game is over before it begins: there is nothing to play a match of")

    def _one(self) -> Opening:
        rng = np.random.default_rng(mix(self._seed, 0, self._drawn))
        self._drawn += 1
        start = _core.State(self._start())
        position = start.clone()
        actions = roll(position, rng)
        for _ in range(self.plies):
            if position.is_terminal:
                break
            action = draw_at_random(position, rng)
            position.play(action)
            actions += [action, *roll(position, rng)]
        return Opening(position, tuple(actions), start)


def read_openings(
    path: Path, start: _core.State, seed: int, plies: int | None = None, most: int | None = None
) -> tuple[list[Opening], int]:
    """The openings of a file, in its order, and how many more lead to positions of earlier ones and are left out.

    The name's end says what the file holds: `.pgn` and `.epd` for chess (of a game its main line, or a position a
    line), `.sgf` for Go. Any other file has a line of play a line, as `State.parse_actions` reads it; `#` begins a
    remark. Blank lines are passed over. Dice that are due after a line are rolled. The file may be packed (`.gz`,
    `.bz2`, `.zst`).

    Args:
        path: the file.
        start: where the game begins.
        seed: fixes the dice.
        plies: the most actions of players that are taken from a line; None for all. What is wrong with a game of PGN
            or SGF after them does no harm.
        most: so many openings are enough: the rest of the file is not looked at; None for all.

    Raises:
        SettingsError: a name whose end is for another game; bad lines, by their numbers; or no opening.
        RunError: a file that cannot be read.
    """
    plies = None if plies is None else _checked(plies)
    notation, suffix = _core.notation_of(start.game), packed.suffix_of(path.name)
    form = {".pgn": "pgn", ".epd": "pgn", ".sgf": "sgf"}.get(suffix)
    if form is not None and (notation is None or notation.name != form):
        raise SettingsError(f"{path} holds no openings of {start.game}: give lines of play in a file of another name")
    found, bad, repeated, keys = list[Opening](), list[str](), 0, set[int]()
    text = _text_of(path)
    is_games = suffix in (".pgn", ".sgf")
    entries = _games(path, start, text, plies) if is_games else _lines(start, text, suffix == ".epd")
    for number, (line, read) in enumerate(entries):
        try:
            opening = _opening(*read(), plies, mix(seed, 0, number))
        except ValueError as error:
            bad.append(f"line {line}: {error}")
            continue
        if (key := opening.position.key()) in keys:
            repeated += 1
            continue
        keys.add(key)
        found.append(opening)
        if len(found) == most:
            break
    if bad:
        more = f"; and {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
        raise SettingsError(f"{path}: {'; '.join(bad[:_MOST_NAMED])}{more}: put that right, or take it out")
    if not found:
        raise SettingsError(f"{path} holds no opening")
    return found, repeated


_Entry = tuple[int, Callable[[], tuple[_core.State, Sequence[int]]]]  # its line, and what reads its start and actions


def _lines(start: _core.State, text: str, is_epd: bool) -> Iterator[_Entry]:
    for number, line in enumerate(text.split("\n"), start=1):
        if (words := line.strip()) and not words.startswith("#"):
            yield number, partial(_epd if is_epd else _line, start, words)


def _line(start: _core.State, text: str) -> tuple[_core.State, Sequence[int]]:
    return start, start.parse_actions(text)


def _epd(start: _core.State, text: str) -> tuple[_core.State, Sequence[int]]:
    if text.split()[0].count("/") != 7:  # or a line of moves
        raise ValueError(f"expected a position in EPD or FEN, got {text!r}")
    return _core.parse_state(start, text), ()


def _games(path: Path, start: _core.State, text: str, plies: int | None) -> Iterator[_Entry]:
    try:
        for game in _core.GameReader(start, text):
            yield game.line, partial(_main_line, start, game, plies)
    except ValueError as error:
        raise SettingsError(f"{path}: {error}; put that right, or take it out") from error


def _main_line(start: _core.State, game: _core.WrittenGame, plies: int | None) -> tuple[_core.State, Sequence[int]]:
    if game.actions is not None:
        return start, game.actions
    if game.unfit in ("action", "after end") and plies is not None and len(game.before) >= plies:
        return start, game.before
    if game.unfit != "start":
        raise ValueError(game.why or f"the game is unfit: {game.unfit}")
    read = start.read_variations(game.text)  # a position that is set up
    position, actions = read.start.clone(), list[int]()
    for index, (before, name, _) in enumerate(read.moves):
        if before != index - 1:  # the main line is over
            break
        actions += position.parse_actions(name)
        position.play(actions[-1])
    return read.start, actions


def _opening(start: _core.State, line: Sequence[int], plies: int | None, dice: int) -> Opening:
    position, actions = start.clone(), list[int]()
    for action in line:
        if plies is not None and position.turn != _core.CHANCE:
            if not plies:
                break
            plies -= 1
        position.play(action)
        actions.append(action)
    actions += roll(position, np.random.default_rng(dice))
    if position.is_terminal:
        raise ValueError("the game is over at the end of this opening")
    return Opening(position, tuple(actions), start)


def _text_of(path: Path) -> str:
    with storage.disk_errors(path):
        storage.check_regular(path)
        if (size := path.stat().st_size) > _MOST_BYTES:
            raise SettingsError(f"{path} has {size:,} bytes, expected {_MOST_BYTES:,} at most: give a part of it")
    files = [data for _, data in packed.files_in(path, (), _MOST_BYTES)]
    if len(files) != 1:
        raise SettingsError(f"{path} is an archive, expected a file of openings: unpack it")
    if isinstance(files[0], RunError):
        raise files[0]
    if "\0" in (text := decoded(files[0])):
        raise SettingsError(f"{path} is no text: unpack it")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _checked(plies: int) -> int:
    if plies < 0:
        raise SettingsError(f"opening_plies must be at least 0, got {plies}")
    return plies
