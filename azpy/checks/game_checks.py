"""What one position of a game must keep, and what to say where it does not.

All that a search can ask of a position are its `Facts`. Reading them checks them; a promise that is not kept is
raised as `Broken`, which names its rule in `RULES`. This module knows single positions: no lines of play, no search,
no files.
"""

import hashlib
import math
import operator
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy._core import CHANCE, TERMINAL, State
from azpy.positions import Position, turn_of

__all__ = [
    "RULES",
    "Attributes",
    "Broken",
    "Facts",
    "Look",
    "Rule",
    "array_of",
    "asked_twice",
    "cloned",
    "examine",
    "facts_of",
    "offered",
    "play",
]

# The keys of so many followers are compared, at most: evenly chosen, the same ones in equal positions.
MOST_FOLLOWERS = 64


@dataclass(frozen=True)
class Rule:
    """Something that a game must keep: what it is, and what to do where it is broken."""

    holds: str
    advice: str


RULES = {
    "attributes": Rule(
        "num_actions, obs_shape and max_plies are whole numbers above 0 and stay as they are",
        "set the three on the class, or in __init__ from the size of the board, and never change them",
    ),
    "exception": Rule("no method raises an exception", "put right the line of your file that is named above"),
    "turn": Rule(
        "turn is 0, 1, azpy.CHANCE or azpy.TERMINAL",
        "return the number of the player to move, azpy.CHANCE before a roll, azpy.TERMINAL when the game is over",
    ),
    "legal-type": Rule(
        "legal actions are a list of whole numbers", "return a list; array.tolist() makes one of an array"
    ),
    "legal-none": Rule(
        "there is a legal action at every player's turn",
        "end the game there (azpy.TERMINAL), give the turn to the other player, or add an action that passes",
    ),
    "legal-range": Rule(
        "legal actions are from 0 to num_actions - 1", "give num_actions the number of all actions there can be"
    ),
    "legal-order": Rule("legal actions ascend", "return sorted(actions)"),
    "legal-twice": Rule(
        "no legal action is there twice",
        "find out why two ways lead to one number: if they are different actions, they need different numbers",
    ),
    "chance-type": Rule(
        "chance outcomes are pairs (outcome, probability), the outcomes ascending whole numbers, the "
        "probabilities from 0 to 1",
        "return a list such as [(0, 0.5), (1, 0.5)], sorted by outcome, each outcome once",
    ),
    "chance-sum": Rule(
        "the probabilities of a roll sum to 1", "divide each by their sum, or look for an outcome that is missing"
    ),
    "outcome": Rule(
        "the outcome is a number in [-1, 1]", "return 1.0, 0.0 or -1.0, or the points divided by the most there can be"
    ),
    "encode-type": Rule(
        "an observation is a numpy array of float32 with the shape obs_shape",
        "make it with np.zeros(self.obs_shape, np.float32), or end with .astype(np.float32).reshape(self.obs_shape)",
    ),
    "encode-finite": Rule("observations are finite", "look for a division by 0"),
    "encode-own": Rule(
        "every observation is an array of its own",
        "make a new array in encode, or return a .copy() of the one that is kept",
    ),
    "key-range": Rule(
        "key is a whole number in [0, 2**128)",
        "build it from the parts of the position; hash() can be negative and is no key",
    ),
    "asking": Rule(
        "asking a position changes nothing: the same question has the same answer",
        "only play may change the position; what happens by chance belongs in chance_outcomes",
    ),
    "clone": Rule(
        "a clone is the same position, and lives its own life",
        "copy every list, set, dict and array in clone, and keep nothing that changes on the class",
    ),
    "replay": Rule(
        "the same actions lead to the same position, whoever was asked on the way",
        "make anew in play what is kept from earlier questions (a list of legal actions); use no random "
        "numbers in play",
    ),
    "start": Rule(
        "every game begins with the same position", "keep nothing that changes on the class or in the module"
    ),
    "length": Rule(
        "every game ends within max_plies, rolls counted",
        "raise max_plies to the longest game there can be; if there is none, count plies, end the game at a "
        "limit, and make "
        "the count part of key",
    ),
    "repeat": Rule(
        "no key comes twice in one game",
        "if positions can come again, the game need not end: count plies or repetitions, end the game at a "
        "limit, and make "
        "the count part of key",
    ),
    "key": Rule(
        "equal keys mean equal positions, and equal futures",
        "key must tell apart all that turn, legal_actions, encode, outcome and the plies to come depend on: "
        "every part of the "
        "board, whose turn it is, counters, history",
    ),
    "perspective": Rule(
        "what looks the same to both players is worth the same to both",
        "outcome is for player 0, whoever moves; encode is seen by the player to move. If both are so, "
        "encode leaves out "
        "something that decides the game",
    ),
    "refusal": Rule("illegal actions are refused, and change nothing", "see Game::try_play in azpy-core"),
    "symmetry": Rule(
        "each symmetry permutes actions and planes alike, and another one undoes it",
        "see num_symmetries, symmetric_action and symmetric_observation; num_symmetries 1 has none",
    ),
    "planes": Rule(
        "planes and legal actions are as the game says they are",
        "see Game::plane_divisors, most_legal_actions and action_cells; without them nothing is assumed",
    ),
    "text": Rule("a position that is written as text is read back the same", "see Game::to_text and Game::parse"),
    "process": Rule(
        "the game is the same in another process",
        "leave out hash(), id() and the order of sets: they differ from process to process",
    ),
    "core": Rule(
        "a search with a cache is the same as without, visit for visit",
        "equal keys must mean equal positions: look at key",
    ),
    # Signs of a mistake that can also be right: warnings.
    "names": Rule(
        "the legal actions of a position have different names",
        "let action_name tell them apart: people type these names",
    ),
    "one-sided": Rule(
        "either player wins now and then, whoever plays last",
        "outcome is for player 0, not for the player who moves or has moved; if one player really cannot "
        "win, all is well",
    ),
    "sides": Rule(
        "what is good for player 0 is good for it whoever moves last",
        "outcome is for player 0, not for the player who moves or has moved; if the rules give the game to the one or "
        "the other by who moves last, all is well",
    ),
    "one-view": Rule(
        "an observation shows whose turn it is, or is seen by that player",
        "give encode the planes of the player to move first, then those of the opponent; or a plane that "
        "says whose turn it is",
    ),
    "hidden": Rule(
        "an observation shows what can be won at once",
        "outcome is for player 0 and encode is seen by the player to move; or encode leaves out something that matters",
    ),
    "unfinished": Rule("random games end in good time", "give it more --seconds, or look whether the game ends at all"),
}


class Broken(Exception):  # noqa: N818  what is wrong is the game
    """A promise that a game did not keep.

    Attributes:
        rule: its name in `RULES`.
        got: what came.
        expected: what should have come.
        action: where it is the position after one more action.
    """

    def __init__(self, rule: str, got: str, expected: str) -> None:
        super().__init__(f"{rule}: got {got}, expected {expected}")
        self.rule, self.got, self.expected = rule, got, expected
        self.action: int | None = None


@dataclass(frozen=True)
class Facts:
    """All that a search can ask of a position.

    Attributes:
        turn: 0, 1, `CHANCE` or `TERMINAL`.
        actions: the legal actions, or the outcomes of the roll.
        chances: the probabilities of a roll's outcomes.
        observation: a hash of the array's bytes; empty but at a player's turn.
        outcome: for player 0, at the end.
        key: the position's number.
    """

    turn: int
    actions: tuple[int, ...]
    chances: tuple[float, ...]
    observation: bytes
    outcome: float | None
    key: int

    def differences(self, other: "Facts") -> str:
        """The facts that are not the same, in words."""
        found = []
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if mine != theirs:
                name = {"actions": "legal actions" if self.turn >= 0 else "chance outcomes"}.get(field.name, field.name)
                shown = field.name != "observation"
                found.append(f"{name} ({_short(mine)} and {_short(theirs)})" if shown else name)
        return ", ".join(found)

    @property
    def playable(self) -> tuple[int, ...]:
        """The actions, and the outcomes that can come."""
        if self.turn != CHANCE:
            return self.actions
        return tuple(action for action, chance in zip(self.actions, self.chances, strict=True) if chance > 0)


@dataclass(frozen=True)
class Attributes:
    """What stays the same in a game."""

    num_actions: int
    obs_shape: tuple[int, ...]
    max_plies: int

    @classmethod
    def of(cls, position: Position) -> "Attributes":
        """Those of a position, checked."""
        num_actions, max_plies = (_positive(position, name) for name in ("num_actions", "max_plies"))
        shape = _attribute(position, "obs_shape")
        try:
            sizes = tuple(operator.index(size) for size in shape)
        except TypeError:
            sizes = ()
        if len(sizes) != 3 or min(sizes) < 1:
            raise Broken("attributes", f"obs_shape {_short(shape)}", "(C, H, W), three whole numbers above 0")
        return cls(num_actions, sizes, max_plies)


@dataclass(frozen=True)
class Look:
    """What was seen of a position.

    Attributes:
        facts: its facts.
        followers: the key after each action, of `MOST_FOLLOWERS` at most.
        ends: action -> the outcome for the player to move, for those of them that end the game.
    """

    facts: Facts
    followers: tuple[tuple[int, int], ...]
    ends: dict[int, float]


def facts_of(position: Position) -> Facts:
    """The facts of a position, each checked by itself.

    Raises:
        Broken: a method raised an exception or gave what it must not.
    """
    turn = _turn(position)
    actions, chances, observation, outcome = tuple[int, ...](), tuple[float, ...](), b"", None
    if turn == CHANCE:
        actions, chances = _chances(position)
    elif turn == TERMINAL:
        outcome = _outcome(position)
    else:
        actions = _legal(position)
        array = array_of(position)
        # -0.0 is 0.0 to everyone.
        observation = hashlib.blake2b((array + np.float32(0)).tobytes(), digest_size=16).digest()
    return Facts(turn, actions, chances, observation, outcome, _key(position))


def asked_twice(position: Position) -> Facts:
    """The facts of a position, which must be the same when asked for again."""
    facts = facts_of(position)
    _same("asking", facts, facts_of(position), "the same position asked twice differs in")
    return facts


def offered(position: Position) -> tuple[int, ...]:
    """The actions that can be played: legal ones, or outcomes of a roll."""
    turn = _turn(position)
    if turn == CHANCE:
        return tuple(outcome for outcome, chance in zip(*_chances(position), strict=True) if chance > 0)
    return () if turn == TERMINAL else _legal(position)


def examine(position: Position, attributes: Attributes) -> Look:
    """Looks at a position from all sides; it is left as it was, if the game is right.

    Raises:
        Broken: what the game does not keep.
    """
    facts = asked_twice(position)
    if Attributes.of(position) != attributes:
        raise Broken("attributes", str(Attributes.of(position)), f"{attributes}, as at the start")
    if facts.turn in (0, 1):
        first, second = array_of(position), array_of(position)
        if first.flags.writeable and np.may_share_memory(first, second):
            raise Broken("encode-own", "the same memory when asked twice", "a new array each time")
    _ask(position, "__str__")
    _same("clone", facts, facts_of(cloned(position)), "a clone differs from its original in")
    followers, ends = list[tuple[int, int]](), dict[int, float]()
    try:
        for action in _some(facts.playable):
            after = cloned(position)
            play(after, action)
            key, turn = _key(after), _turn(after)
            if hasattr(position, "play_legal"):
                searched = cloned(position)
                _ask(searched, "play_legal", action)
                _same(
                    "replay",
                    facts_of(after),
                    facts_of(searched),
                    "play and play_legal lead to positions that differ in",
                )
            if key == facts.key:
                raise Broken("repeat", f"the same key before and after {_named(position, action)}", "another key")
            followers.append((action, key))
            if turn == TERMINAL and facts.turn in (0, 1):
                ends[action] = _outcome(after) * (1 if facts.turn == 0 else -1)
    except Broken as broken:
        _unchanged(facts, position, "playing on a clone changed the original")  # which explains whatever else is wrong
        broken.action = action
        raise
    _unchanged(facts, position, "playing on a clone changed the original")
    if facts.playable:
        original = cloned(position)
        kept = cloned(original)
        play(original, facts.playable[-1])
        _unchanged(facts, kept, "playing on changed a clone made before")
    return Look(facts, tuple(followers), ends)


def cloned(position: Position) -> Position:
    """A clone, which is another object."""
    copy = _ask(position, "clone")
    if copy is position:
        raise Broken("clone", "the position itself", "a copy of the position")
    if type(copy) is not type(position):
        raise Broken("clone", f"a {type(copy).__name__}", f"a {type(position).__name__}, made by type(self)(...)")
    return copy


def play(position: Position, action: int) -> None:
    """Plays an action that the game offered."""
    _ask(position, "play", action)


def array_of(position: Position) -> NDArray[np.float32]:
    """The observation [C, H, W] of a player's turn, checked."""
    reply = _ask(position, "observation" if isinstance(position, State) else "encode")
    shape = tuple(position.obs_shape)
    expected = f"a numpy array of float32, shape {shape}"
    if not isinstance(reply, np.ndarray):
        raise Broken("encode-type", f"{type(reply).__name__} {_short(reply)}", expected)
    if reply.dtype != np.float32:
        raise Broken("encode-type", f"an array of {reply.dtype}", expected)
    if reply.shape != shape:
        raise Broken("encode-type", f"shape {reply.shape}", expected)
    if not np.isfinite(reply).all():
        raise Broken("encode-finite", f"the number {reply[~np.isfinite(reply)][0]}", "finite numbers")
    return reply


def _turn(position: Position) -> int:
    reply = _ask(position, "turn")
    turn = _whole(reply)
    if turn not in (0, 1, CHANCE, TERMINAL):
        raise Broken("turn", _short(reply), "0, 1, azpy.CHANCE or azpy.TERMINAL")
    return turn


def _legal(position: Position) -> tuple[int, ...]:
    reply = _ask(position, "legal_actions")
    actions = _list(reply)
    if actions is None:
        raise Broken("legal-type", f"{type(reply).__name__} {_short(reply)}", "a list of whole numbers")
    if not actions:
        raise Broken("legal-none", "no legal action", f"at least one, as it is the turn of player {turn_of(position)}")
    count = int(position.num_actions)
    outside = [action for action in actions if not 0 <= action < count]
    if outside:
        raise Broken("legal-range", f"action {outside[0]}", f"actions from 0 to {count - 1}, as num_actions is {count}")
    twice = [action for action in actions if actions.count(action) > 1] if len(set(actions)) < len(actions) else []
    if twice:
        raise Broken("legal-twice", f"{_short(actions)}, with {twice[0]} more than once", "each action once")
    if sorted(actions) != actions:
        raise Broken("legal-order", _short(actions), f"them ascending: {_short(sorted(actions))}")
    return tuple(actions)


def _chances(position: Position) -> tuple[tuple[int, ...], tuple[float, ...]]:
    reply = _ask(position, "chance_outcomes")
    expected = "a list of (outcome, probability)"
    try:
        pairs = [(operator.index(outcome), float(chance)) for outcome, chance in reply]
    except (TypeError, ValueError):
        raise Broken("chance-type", _short(reply), expected) from None
    outcomes, chances = tuple(outcome for outcome, _ in pairs), tuple(chance for _, chance in pairs)
    if not isinstance(reply, Sequence) or not pairs:
        raise Broken("chance-type", _short(reply), f"{expected}, not empty")
    if any(not 0 <= outcome < 2**32 for outcome in outcomes) or list(outcomes) != sorted(set(outcomes)):
        raise Broken("chance-type", f"outcomes {_short(outcomes)}", "them ascending from 0 or above, each once")
    if any(not 0 <= chance <= 1 for chance in chances):  # NaN too
        raise Broken("chance-type", f"probabilities {_short(chances)}", "them from 0 to 1")
    if abs(math.fsum(chances) - 1) > 1e-4:
        raise Broken("chance-sum", f"{math.fsum(chances):.6g} as the sum of {_short(chances)}", "1")
    return outcomes, chances


def _outcome(position: Position) -> float:
    reply = _ask(position, "outcome")
    try:
        value = math.nan if isinstance(reply, str | bytes) else float(reply)
    except (TypeError, ValueError):
        value = math.nan
    if not -1 <= value <= 1:
        raise Broken("outcome", _short(reply), "a number from -1 to 1, for player 0")
    return value


def _key(position: Position) -> int:
    reply = _ask(position, "key")
    key = _whole(reply)
    if key is None or not 0 <= key < 2**128:
        raise Broken("key-range", _short(reply), "a whole number in [0, 2**128)")
    return key


def _ask(position: Position, method: str, *arguments: Any) -> Any:
    """Calls a method; an exception of the game's is a broken promise, with the line of the file it came from."""
    try:
        if method == "turn":
            return turn_of(position)
        return getattr(position, method)(*arguments)
    except (Exception, SystemExit) as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
        where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
        called = f"{method}({', '.join(map(str, arguments))})"
        raise Broken("exception", f"{called} raised {type(error).__name__}: {error}{where}", "an answer") from error


def _same(rule: str, facts: Facts, others: Facts, what: str) -> None:
    if facts != others:
        raise Broken(rule, f"{what} {facts.differences(others)}", "no difference")


def _unchanged(facts: Facts, position: Position, what: str) -> None:
    try:
        now = facts_of(position)
    except Broken as broken:
        raise Broken("clone", f"{what}: it gives {broken.got} now", "no difference") from None
    _same("clone", facts, now, f"{what}, in its")


def _some(actions: Sequence[int]) -> Sequence[int]:
    """At most `MOST_FOLLOWERS` of them, evenly."""
    if len(actions) <= MOST_FOLLOWERS:
        return actions
    return [actions[index * len(actions) // MOST_FOLLOWERS] for index in range(MOST_FOLLOWERS)]


def _named(position: Position, action: int) -> str:
    try:
        return str(position.action_name(action))
    except Exception:
        return str(action)


def _attribute(position: Position, name: str) -> Any:
    try:
        return getattr(position, name)
    except Exception as error:
        raise Broken("attributes", f"{type(error).__name__}: {error}", f"an attribute {name}") from error


def _positive(position: Position, name: str) -> int:
    value = _attribute(position, name)
    number = _whole(value)
    if number is None or number < 1:
        raise Broken("attributes", f"{name} {_short(value)}", "a whole number above 0")
    return number


def _whole(value: Any) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        return None


def _list(reply: Any) -> list[int] | None:
    """As the core reads it: a sequence (an array is none) of whole numbers."""
    if not isinstance(reply, Sequence) or isinstance(reply, str | bytes):
        return None
    numbers = [_whole(item) for item in reply]
    return None if None in numbers else [number for number in numbers if number is not None]


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else text[:197] + "..."


def check_action_cells(game: Any) -> None:
    """`action_cells`, where a game has them, are equal groups of its actions, each of a cell of its planes."""
    cells: Any = getattr(game, "action_cells", None)
    if cells is None:
        return
    _, height, width = game.obs_shape
    most = height * width
    whole = isinstance(cells, Sequence) and all(isinstance(cell, int) and 0 <= cell < most for cell in cells)
    if not whole or not cells or game.num_actions % len(cells):
        expected = f"equal groups of {game.num_actions} actions, each with one of {height} x {width} cells"
        raise Broken("planes", f"action_cells {cells}", expected)
