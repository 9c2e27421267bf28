"""Openings of a match: drawn by chance, no two alike as long as the game has others; or of a file.

The core reads what a file holds: PGN and EPD for chess, SGF for Go, lines of play for every game.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from azpy import _core
from azpy.errors import SettingsError
from azpy.games.game_files import main_line
from azpy.games.lines import roll
from azpy.games.notations import NAMES, decoded
from azpy.runs import packed

_TRIES = 200  # draws in a row that bring nothing new before the game is taken to have no more openings
_MOST_BYTES = 1 << 24  # of a file of openings: a few hundred thousand lines
_MOST_NAMED = 3  # bad lines that an error names


def draw_at_random(position: _core.State, rng: np.random.Generator) -> int:
    """Pick evenly among the legal actions."""
    return int(rng.choice(position.legal_actions()))


def mix(*keys: int) -> int:
    """A 63-bit seed for a stream of its own."""
    return int(np.random.SeedSequence(keys).generate_state(1, np.uint64)[0] >> np.uint64(1))


class Opening(NamedTuple):
    """A position at a player's turn, and the actions that led to it, dice included."""

    position: _core.State  # where the match begins
    actions: tuple[int, ...]  # from `start` to `position`
    start: _core.State  # a position without a past: the game's start, or one that a file sets up


class Book:
    """Openings by number: `book[n]` is always the same one, made when it is first asked for.

    Openings lead to different positions. Once `_TRIES` draws in a row bring no new opening, the openings repeat in the
    same order. If all games end within `plies`, the book halves its `plies`. Without `plies`, games of one player begin
    with each roll of their dice as often as chance has it: mean scores are those of the game.

    `start` is where a game usually begins. `plies` are random actions of players before the match begins; dice are not
    counted. `seed` fixes the openings. `read_book` makes a book that has the openings of a file and draws none.

    Attributes:
        start: as above.
        plies: as above; of a file the most that are taken of each opening, None for all.
        file: that the openings are from; None where they are drawn.
        left_out: how many openings of the file lead to positions of earlier ones.

    Example:
        >>> from azpy.games.names import make_game
        >>> book = Book(make_game("tic_tac_toe"), plies=1, seed=0)
        >>> len({book[n].actions for n in range(100)}), len(book)
        (9, 9)
    """

    def __init__(self, start: _core.State, plies: int | None, seed: int, file: Path | None = None) -> None:
        if plies is not None and plies < 0:
            raise SettingsError(f"opening_plies must be at least 0, got {plies}")
        self.plies, self.file, self.left_out = plies, file, 0
        self.start, self._seed = start, seed
        self._keys = set[int]()
        self._openings = list[Opening]()
        self._drawn = 0
        self._complete = file is not None

    def __len__(self) -> int:
        """Distinct openings so far."""
        return len(self._keys)

    def __getitem__(self, number: int) -> Opening:
        """The opening of round `number`.

        Raises:
            SettingsError: the game is over before it begins.
        """
        while number >= len(self._openings) and not self._complete:
            self._grow()
        return self._openings[number % len(self._openings)]

    def add(self, opening: Opening) -> bool:
        """Add an opening, if no earlier one leads to its position; return whether it did."""
        key = opening.position.key()
        is_drawn = self.start.num_players == 1 or self.start.hides  # equal deals come as often as they are likely
        may_repeat = is_drawn and self.plies == 0 and self.file is None
        if key in self._keys and not may_repeat:
            return False
        self._keys.add(key)
        self._openings.append(opening)
        return True

    def _grow(self) -> None:
        for _ in range(_TRIES):
            opening = self._one()
            if not opening.position.is_terminal and self.add(opening):
                return
        if self._openings:
            self._complete = True
        elif self.plies:
            self.plies //= 2
        else:
            raise SettingsError("the game is over at its start, so no match can be played")

    def _one(self) -> Opening:
        rng = np.random.default_rng(mix(self._seed, 0, self._drawn))
        self._drawn += 1
        position = self.start.clone()
        actions = roll(position, rng)
        for _ in range(self.plies or 0):
            if position.is_terminal:
                break
            action = draw_at_random(position, rng)
            position.play(action)
            actions += [action, *roll(position, rng)]
        return Opening(position, tuple(actions), self.start)


def read_book(path: Path, start: _core.State, seed: int, plies: int | None = None, most: int | None = None) -> Book:
    """A book of the openings of a file, in its order.

    The name's end says what the file holds: `.pgn` and `.epd` for chess (of a game its main line, or a position a
    line), `.sgf` for Go. Any other file has a line of play a line, as `State.parse_actions` reads it; `#` begins a
    remark. Blank lines are passed over. Dice that are due after a line are rolled. The file may be packed (`.gz`,
    `.zst`).

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
    book, bad = Book(start, plies, seed, path), list[str]()
    notation, suffix = _core.notation_of(start.game), packed.suffix_of(path.name)
    form = "pgn" if suffix == ".epd" else suffix[1:]
    if form in NAMES and (notation is None or notation.name != form):
        raise SettingsError(
            f"{path} holds no openings of {start.game}: put lines of play into a file with another ending"
        )
    for number, (line, written) in enumerate(_written(path, start, suffix)):
        try:
            opening = _opening(*_read(start, written, suffix, plies), plies, mix(seed, 0, number))
        except ValueError as error:
            bad.append(f"line {line}: {error}")
            continue
        book.left_out += not book.add(opening)
        if len(book) == most:
            break
    if bad:
        more = f"; and {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
        raise SettingsError(f"{path}: {'; '.join(bad[:_MOST_NAMED])}{more}: correct it, or remove it")
    if not len(book):
        raise SettingsError(f"{path} holds no opening")
    return book


def _written(path: Path, start: _core.State, suffix: str) -> Iterator[tuple[int, str | _core.WrittenGame]]:
    """The games or the lines of a file, each with the number of its first line."""
    if "\0" in (text := decoded(packed.read_packed(path, _MOST_BYTES))):
        raise SettingsError(f"{path} is not a text file: unpack it first")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if suffix[1:] in NAMES:
        try:
            for game in _core.GameReader(start, text):
                yield game.line, game
        except ValueError as error:
            raise SettingsError(f"{path}: {error}; correct it, or remove it") from error
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if (words := line.strip()) and not words.startswith("#"):
            yield number, words


def _read(
    start: _core.State, written: str | _core.WrittenGame, suffix: str, plies: int | None
) -> tuple[_core.State, Sequence[int]]:
    """Where an opening begins, and its actions.

    Raises:
        ValueError: what the rules do not allow, or another form.
    """
    if isinstance(written, _core.WrittenGame):
        return _main_line(start, written, plies)
    if suffix != ".epd":
        return start, start.parse_actions(written)
    if written.split()[0].count("/") != 7:  # or a line of moves
        raise ValueError(f"expected a position in EPD or FEN, got {written!r}")
    return _core.parse_state(start, written), ()


def _main_line(start: _core.State, game: _core.WrittenGame, plies: int | None) -> tuple[_core.State, Sequence[int]]:
    if game.actions is not None:
        return start, game.actions
    if game.unfit in ("action", "after end") and plies is not None and len(game.before) >= plies:
        return start, game.before
    if game.unfit != "start":
        raise ValueError(game.why or f"the game cannot be used: {game.unfit}")
    read = start.read_variations(game.text)  # a position that is set up
    return read.start, main_line(read.start, [(before, name) for before, name, _ in read.moves])


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
