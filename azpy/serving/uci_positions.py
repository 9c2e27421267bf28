"""How UCI and UGI write the positions and moves of a game: Chess960, castling, and moves by azpy's names."""

import contextlib
from collections.abc import Sequence

import azpy
from azpy import _core
from azpy.games.lines import read_action

_STANDARD = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
# Castling where king and rooks begin as in standard chess: as Chess960 writes it, and as standard chess does.
_STEPS = {"e1h1": "e1g1", "e1a1": "e1c1", "e8h8": "e8g8", "e8a8": "e8c8"}
_TAKES = {steps: takes for takes, steps in _STEPS.items()}


class Positions:
    """Reads and writes the positions and moves of one player's game.

    With `chess960` the positions of Chess960 that standard chess does not have are of another game for a player of
    standard chess: its planes and actions have the same shapes, but the network never learned the castling there.

    Args:
        start: where the player's game begins.
        chess960: how UCI writes castling: as the king's step onto its rook, or as two steps. None is UGI, where moves
            have azpy's own names.
    """

    def __init__(self, start: _core.State, chess960: bool | None) -> None:
        self._chess960, self._starts, self._begin = chess960, [start], start
        if chess960 is not None and is_chess960(start):
            self._begin = _core.parse_state(start, _STANDARD)
        elif chess960:
            self._starts.append(azpy.make_game("chess", **(start.params | {"chess960": 518})))

    def read(self, words: Sequence[str]) -> tuple[_core.Line, str | None]:
        """The line of a `position` up to an illegal move, and what is wrong with that move.

        Raises:
            ValueError: words that are no position.
        """
        at = words.index("moves") if "moves" in words else len(words)
        setup, moves = words[:at], words[at + 1 :]
        if list(setup) == ["startpos"]:
            start = self._begin
        elif len(setup) > 1 and setup[0] in {"fen", "position"}:
            start = self._parsed(" ".join(setup[1:]))
        else:
            raise ValueError("position: expected startpos or fen TEXT, and then moves MOVE ...")
        line = _core.Line(start)
        for number, move in enumerate(moves, 1):
            if start.name == "chess":
                line.go_on()  # behind an end that only our rules know
            state = line.state
            action = read_action(state, move)
            if action is None:
                return line, f"move {number}, {move!r}, is not legal there: the position before it is used"
            line.play(state.action_name(action))
        return line, None

    def name(self, state: _core.State, action: int) -> str:
        """What the other program calls an action that is legal there."""
        name, takes = state.action_name(action), is_chess960(state)
        if self._chess960 in (None, takes) or not state.short_name(action).startswith("O-O"):
            return name
        return (_STEPS if takes else _TAKES).get(name, name)

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


def is_chess960(state: _core.State) -> bool:
    """Whether it is a game of chess with the castling of Chess960."""
    return state.params.get("chess960", "off") != "off"
