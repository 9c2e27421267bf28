"""Positions and moves in the words of UCI and UGI."""

import contextlib
from collections.abc import Mapping, Sequence

import azpy
from azpy import _core
from azpy.games.lines import read_action

__all__ = ["Positions", "is_chess960"]

_STANDARD = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
# Castling where king and rooks begin as in standard chess: as Chess960 writes it, and as standard chess does.
_CASTLING = {"e1h1": "e1g1", "e1a1": "e1c1", "e8h8": "e8g8", "e8a8": "e8c8"}


class Positions:
    """Reads and writes the positions and moves of one player's game.

    With `chess960` the positions of Chess960 that standard chess does not have are of another game for a player of
    standard chess: its planes and actions have the same shapes, but the network never learned the castling there.

    Args:
        start: where the player's game begins.
        chess960: how UCI writes castling: as the king's step onto its rook, or as two steps. None is UGI, where moves
            have azpy's own names.

    Attributes:
        begin: what `startpos` means.
        chess960: as given.
    """

    def __init__(self, start: _core.State, chess960: bool | None) -> None:
        self._starts, self.begin, self.chess960 = [start], start, chess960
        self._castling: Mapping[str, str] = {}  # what the other program calls the castling of our name
        if chess960 is None:
            return
        learned = is_chess960(start)
        if learned:
            self.begin = _core.parse_state(start, _STANDARD)
        elif chess960:
            self._starts.append(azpy.make_game("chess", **(start.params | {"chess960": 518})))
        if learned and not chess960:
            self._castling = _CASTLING
        elif chess960 and not learned:
            self._castling = {steps: takes for takes, steps in _CASTLING.items()}

    def read(self, words: Sequence[str]) -> tuple[_core.State, list[int], str | None]:
        """Where the line of a `position` begins, its actions up to an illegal move, and what is wrong with that move.

        Where our rules end the game before the line does, the line goes on from there with less of a past.

        Raises:
            ValueError: words that are no position.
        """
        at = _moves_at(words)
        setup, moves = words[:at], words[at + 1 :]
        if list(setup) == ["startpos"]:
            start = self.begin
        elif len(setup) > 1 and setup[0] in {"fen", "position"}:
            start = self._parsed(" ".join(setup[1:]))
        else:
            raise ValueError("position: expected startpos or fen TEXT, and then moves MOVE ...")
        state, played = start.clone(), list[int]()
        for number, move in enumerate(moves, 1):
            if state.is_terminal and state.name == "chess":
                start, played = state.without_past(), []
                state = start.clone()
            action = read_action(state, move)
            if action is None:
                return start, played, f"move {number}, {move!r}, is not legal there: the position is that before it"
            state.play(action)
            played.append(action)
        return start, played, None

    def name(self, state: _core.State, action: int) -> str:
        """What the other program calls an action that is legal there."""
        name = state.action_name(action)
        other = self._castling.get(name)
        ours = other is not None and is_chess960(state) == is_chess960(self._starts[0])
        return other if other and ours and state.short_name(action).startswith("O-O") else name

    def line(self, state: _core.State, actions: Sequence[int]) -> list[str]:
        """The names of actions that are played one after the other."""
        names, now = [], state.clone()
        for action in actions:
            names.append(self.name(now, action))
            now.play(action)
        return names

    def _parsed(self, text: str) -> _core.State:
        """A position of its text, of the player's game if it can be."""
        for start in self._starts[:-1]:
            with contextlib.suppress(ValueError):
                return _core.parse_state(start, text)
        return _core.parse_state(self._starts[-1], text)


def _moves_at(words: Sequence[str]) -> int:
    """The index of the word "moves" outside the quotes of an EPD's operations; behind the last word for none."""
    quotes = [word.replace('\\"', "").count('"') for word in words]
    before, count = 0, sum(quotes)
    for at, word in enumerate(words):
        # A quote without an end holds no words.
        if word == "moves" and (before % 2 == 0 or before == count):
            return at
        before += quotes[at]
    return len(words)


def is_chess960(state: _core.State) -> bool:
    """Whether it is a game of chess with the castling of Chess960."""
    return state.params.get("chess960", "off") != "off"
