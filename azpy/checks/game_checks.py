"""What one position of a game must keep.

All that a search can ask of a position are its `Facts`. Reading them checks them; a promise that is not kept is
raised as `Broken`, which names its rule in `RULES`. This module knows single positions: no lines of play, no search,
no files.
"""

import hashlib
import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy._core import CHANCE, TERMINAL, GameError, State, parse_state

__all__ = [
    "Broken",
    "Facts",
    "Look",
    "Mirrors",
    "array_of",
    "asked_twice",
    "broken_by",
    "check_action_cells",
    "check_copy",
    "check_planes",
    "check_refusals",
    "check_text",
    "cloned",
    "examine",
    "facts_of",
    "offered",
    "play",
    "short",
]

# The keys of so many followers are compared, at most: evenly chosen, the same ones in equal positions.
MOST_FOLLOWERS = 64
_TRIED = 6  # illegal actions in a position


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
                found.append(f"{name} ({short(mine)} and {short(theirs)})" if shown else name)
        return ", ".join(found)

    @property
    def playable(self) -> tuple[int, ...]:
        """The actions, and the outcomes that can come."""
        if self.turn != CHANCE:
            return self.actions
        return tuple(action for action, chance in zip(self.actions, self.chances, strict=True) if chance > 0)


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


def facts_of(state: State) -> Facts:
    """The facts of a position, each checked by itself.

    Raises:
        Broken: a method raised an exception or gave what it must not.
    """
    turn = _asked(lambda: state.turn)
    actions, chances, observation, outcome = tuple[int, ...](), tuple[float, ...](), b"", None
    if turn == CHANCE:
        pairs = _asked(state.chance_outcomes)
        actions, chances = tuple(action for action, _ in pairs), tuple(chance for _, chance in pairs)
        if not pairs or list(actions) != sorted(set(actions)) or any(not 0 <= chance <= 1 for chance in chances):
            raise Broken("chance-type", short(pairs), "outcomes ascending, with probabilities from 0 to 1, not empty")
        if abs(math.fsum(chances) - 1) > 1e-4:
            raise Broken("chance-sum", f"{math.fsum(chances):.6g} as the sum of {short(chances)}", "1")
    elif turn == TERMINAL:
        outcome = _asked(state.outcome)
        if not -1 <= outcome <= 1:
            raise Broken("outcome", str(outcome), "a number from -1 to 1, for player 0")
    else:
        actions = _legal(state)
        # -0.0 is 0.0 to everyone.
        observation = hashlib.blake2b((array_of(state) + np.float32(0)).tobytes(), digest_size=16).digest()
    return Facts(turn, actions, chances, observation, outcome, _asked(state.key))


def asked_twice(state: State) -> Facts:
    """The facts of a position, which must be the same when asked for again."""
    facts = facts_of(state)
    _same("asking", facts, facts_of(state), "the same position asked twice differs in")
    return facts


def offered(state: State) -> tuple[int, ...]:
    """The actions that can be played: legal ones, or outcomes of a roll."""
    return tuple(_asked(state.legal_actions)) or tuple(a for a, chance in _asked(state.chance_outcomes) if chance > 0)


def examine(state: State) -> Look:
    """Looks at a position from all sides; it is left as it was, if the game is right.

    Raises:
        Broken: what the game does not keep.
    """
    facts, game = asked_twice(state), state.game_object
    if game is not None:
        _check_python(state, facts)
    _same("clone", facts, facts_of(cloned(state)), "a clone differs from its original in")
    followers, ends = list[tuple[int, int]](), dict[int, float]()
    try:
        for action in _some(facts.playable):
            after = cloned(state)
            play(after, action)
            key, turn = _asked(after.key), _asked(partial(getattr, after, "turn"))
            if hasattr(game, "play_legal"):  # which is what `State` plays
                other = _asked(game.clone)
                _asked(partial(other.play, action))
                what = "play_legal and play lead to positions that differ in"
                _same("replay", facts_of(after), facts_of(State(other)), what)
            if key == facts.key:
                raise Broken("repeat", f"the same key before and after {state.action_name(action)}", "another key")
            followers.append((action, key))
            if turn == TERMINAL and facts.turn in (0, 1):
                ends[action] = _asked(after.outcome) * (1 if facts.turn == 0 else -1)
    except Broken as broken:
        _unchanged(facts, state, "playing on a clone changed the original")  # which explains whatever else is wrong
        broken.action = action
        raise
    _unchanged(facts, state, "playing on a clone changed the original")
    if facts.playable:
        original = cloned(state)
        kept = cloned(original)
        play(original, facts.playable[-1])
        _unchanged(facts, kept, "playing on changed a clone made before")
    return Look(facts, tuple(followers), ends)


def _check_python(state: State, facts: Facts) -> None:
    """What shows in the object of a game in Python alone."""
    game = state.game_object
    for name in ("num_actions", "obs_shape", "max_plies"):
        now, first = getattr(game, name), getattr(state, name)
        if (tuple(now) if name == "obs_shape" else now) != first:
            raise Broken("attributes", f"{name} {now}", f"{first}, as at the start")
    if facts.turn in (0, 1):
        if not isinstance(actions := _asked(game.legal_actions), Sequence):
            raise Broken("legal-type", f"{type(actions).__name__} {short(actions)}", "a list of whole numbers")
        one, two = _asked(game.encode), _asked(game.encode)
        if one.flags.writeable and np.may_share_memory(one, two):
            raise Broken("encode-own", "the same memory when asked twice", "a new array each time")
    _asked(lambda: str(game))


def cloned(state: State) -> State:
    """A clone, which is another object."""
    copy: State = _asked(state.clone)
    check_copy(state.game_object, copy.game_object)
    return copy


def check_copy(game: Any, other: Any) -> None:
    """The clone of a game in Python is another object of the same class."""
    if game is not None and game is other:
        raise Broken("clone", "the position itself", "a copy of the position")
    if type(game) is not type(other):
        raise Broken("clone", f"a {type(other).__name__}", f"a {type(game).__name__}, made by type(self)(...)")


def play(state: State, action: int) -> None:
    """Plays an action that the game offered."""
    _asked(lambda: state._play(action))


def array_of(state: State) -> NDArray[np.float32]:
    """The observation [C, H, W] of a player's turn, checked."""
    array: NDArray[np.float32] = _asked(state.observation)
    if not np.isfinite(array).all():
        raise Broken("encode-finite", f"the number {array[~np.isfinite(array)][0]}", "finite numbers")
    return array


def _legal(state: State) -> tuple[int, ...]:
    actions, count = _asked(state.legal_actions), state.num_actions
    if not actions:
        raise Broken("legal-none", "no legal action", f"at least one, as it is the turn of player {state.turn}")
    if actions[-1] >= count:
        raise Broken("legal-range", f"action {actions[-1]}", f"actions from 0 to {count - 1}")
    if sorted(set(actions)) != actions:
        rule = "legal-order" if len(set(actions)) == len(actions) else "legal-twice"
        raise Broken(rule, short(actions), f"each once, ascending: {short(sorted(set(actions)))}")
    return tuple(actions)


def _asked(question: Callable[[], Any]) -> Any:
    """The answer of a game; what it raises is a broken promise."""
    try:
        return question()
    except (Exception, SystemExit) as error:
        raise broken_by(error) from error


def broken_by(error: BaseException) -> Broken:
    """The promise that a game did not keep: its core says which, or it is an exception with a line of a file."""
    if isinstance(error, GameError) and (rule := getattr(error, "rule", None)):
        return Broken(rule, *(getattr(error, part) for part in ("got", "expected")))
    here = str(Path(__file__).parent)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(here)]
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    called = f"{frames[0].name}() raised " if frames else ""
    return Broken("exception", f"{called}{type(error).__name__}: {error}{where}", "an answer")


def _same(rule: str, facts: Facts, others: Facts, what: str) -> None:
    if facts != others:
        raise Broken(rule, f"{what} {facts.differences(others)}", "no difference")


def _unchanged(facts: Facts, state: State, what: str) -> None:
    try:
        now = facts_of(state)
    except Broken as broken:
        raise Broken("clone", f"{what}: it gives {broken.got} now", "no difference") from None
    _same("clone", facts, now, f"{what}, in its")


def _some(actions: Sequence[int]) -> Sequence[int]:
    """At most `MOST_FOLLOWERS` of them, evenly."""
    if len(actions) <= MOST_FOLLOWERS:
        return actions
    return [actions[index * len(actions) // MOST_FOLLOWERS] for index in range(MOST_FOLLOWERS)]


def short(value: Any) -> str:
    """A value as people read it: on one line, cut where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else text[:197] + "..."


def check_action_cells(state: State) -> None:
    """`action_cells`, where a game has them, are equal groups of its actions, each of a cell of its planes."""
    cells, (_, height, width) = state.action_cells, state.obs_shape
    if cells is not None and (not cells or max(cells) >= height * width or state.num_actions % len(cells)):
        expected = f"equal groups of {state.num_actions} actions, each with one of {height} x {width} cells"
        raise Broken("planes", f"action_cells {cells}", expected)


# What only games in Rust have: refusals, a notation, planes as bytes, symmetries.


def check_refusals(state: State, facts: Facts, number: int) -> None:
    """A few actions that are not on offer, others for another `number`: refused, and nothing changed."""
    some = [(number + index * state.num_actions // _TRIED) % state.num_actions for index in range(_TRIED)]
    for action in {*some, state.num_actions, 2**32 - 1, -1}.difference(facts.actions):
        tried = state.clone()
        try:
            tried.play(action)
        except ValueError:
            if facts_of(tried) != facts:
                differences = facts.differences(facts_of(tried))
                raise Broken("refusal", f"the refused action {action} changed {differences}", "no difference") from None
        else:
            raise Broken("refusal", f"the illegal action {action} was played", "a ValueError")


def check_text(state: State, start: State) -> None:
    """The position in its game's notation, if it has one, is read back as the same."""
    try:
        text = state.to_text()
    except ValueError:
        return
    try:
        back = parse_state(start, text)
    except ValueError as error:
        raise Broken("text", f"{text!r}, which is refused: {error}", "text that can be read") from error
    facts, again = facts_of(state), facts_of(back)
    if facts != again:
        raise Broken("text", f"{text!r}, read as another position: {facts.differences(again)}", "the same position")


def check_planes(state: State) -> None:
    """The position's planes hold what `plane_divisors` says, and no more actions are legal than it says."""
    if state.turn < 0:
        return
    legal, most = len(state.legal_actions()), state.most_legal_actions
    if legal > most:
        raise Broken("planes", f"{legal} legal actions", f"at most {most}, as most_legal_actions says")
    if state.plane_divisors is None:
        return
    divisors = np.array(state.plane_divisors, np.float32)
    if len(divisors) != state.obs_shape[0] or not divisors.all():
        raise Broken("planes", f"plane_divisors {state.plane_divisors}", "a number above 0 for each plane")
    planes = array_of(state)
    divisors = divisors[:, None, None]
    numbers = np.rint(planes * divisors)
    fits = (numbers >= 0) & (numbers <= np.where(divisors > 0xFF, 0xFFFF, 0xFF)) & (numbers / divisors == planes)
    if not fits.all():
        plane, row, column = (int(index) for index in np.argwhere(~fits)[0])
        got = f"{planes[plane, row, column]} at row {row}, column {column} of plane {plane}"
        raise Broken("planes", got, f"n / {state.plane_divisors[plane]} with a whole n, as plane_divisors says")


class Mirrors:
    """The same game under every symmetry, played alongside.

    Attributes:
        symmetries: those that leave the start as it is, so that a line of play has an image.
    """

    def __init__(self, start: State) -> None:
        self.start = start
        self.symmetries: list[int] = []
        if start.num_symmetries > 1:
            _check_inverses(start)
            self.symmetries = [number for number in range(1, start.num_symmetries) if _is_own_image(start, number)]
        self.begin()

    def begin(self) -> None:
        """Goes back to the start."""
        self.twins = [self.start.clone() for _ in self.symmetries]

    def play(self, state: State, action: int) -> None:
        """Plays the images of an action that is about to be played in `state`."""
        for symmetry, twin in zip(self.symmetries, self.twins, strict=True):
            image = state.symmetric_action(symmetry, action)
            try:
                twin.play(image)
            except ValueError as error:
                got = f"the image {image} of action {action} under symmetry {symmetry} is illegal"
                raise Broken("symmetry", got, "a legal action in the image of the position") from error

    def check(self, state: State, facts: Facts) -> None:
        """Compares the position with its images."""
        for symmetry, twin in zip(self.symmetries, self.twins, strict=True):
            image, at = facts_of(twin), f"symmetry {symmetry}: "
            moved = sorted(
                (state.symmetric_action(symmetry, action), chance)
                for action, chance in zip(facts.actions, facts.chances or [0.0] * len(facts.actions), strict=True)
            )
            theirs = list(zip(image.actions, image.chances or [0.0] * len(image.actions), strict=True))
            if (facts.turn, facts.outcome) != (image.turn, image.outcome):
                raise Broken("symmetry", at + facts.differences(image), "the same turn and outcome in the image")
            if moved != theirs:
                raise Broken("symmetry", f"{at}{moved} as images of the actions", f"those of the image: {theirs}")
            if facts.turn >= 0:
                seen = state.symmetric_observation(symmetry, array_of(state))
                if not np.array_equal(seen, array_of(twin)):
                    raise Broken(
                        "symmetry", f"{at}another observation", "symmetric_observation to give that of the image"
                    )


def _check_inverses(start: State) -> None:
    """Each symmetry permutes actions and planes, another one undoes it, and no two are alike."""
    planes = np.arange(np.prod(start.obs_shape), dtype=np.float32).reshape(start.obs_shape)
    images = []
    for symmetry in range(start.num_symmetries):
        actions = [start.symmetric_action(symmetry, action) for action in range(start.num_actions)]
        if sorted(actions) != list(range(start.num_actions)):
            raise Broken("symmetry", f"symmetry {symmetry} leads two actions to one", "a permutation of the actions")
        images.append((actions, start.symmetric_observation(symmetry, planes)))
    identity = images[0]
    if identity[0] != list(range(start.num_actions)) or not np.array_equal(identity[1], planes):
        raise Broken("symmetry", "symmetry 0 moves something", "the identity")
    for symmetry, (actions, image) in enumerate(images):
        if not any(
            [other[action] for action in actions] == identity[0]
            and np.array_equal(start.symmetric_observation(number, image), planes)
            for number, (other, _) in enumerate(images)
        ):
            raise Broken("symmetry", f"no symmetry undoes symmetry {symmetry}", "an inverse for each")
        if any(actions == other and np.array_equal(image, seen) for other, seen in images[:symmetry]):
            raise Broken("symmetry", f"symmetry {symmetry} is there twice", "different symmetries")


def _is_own_image(start: State, symmetry: int) -> bool:
    """Whether a symmetry leaves the start as it is, as far as can be seen."""
    facts = facts_of(start)
    if facts.turn == CHANCE:
        return True
    images = sorted(start.symmetric_action(symmetry, action) for action in facts.actions)
    planes = array_of(start)
    return images == list(facts.actions) and np.array_equal(start.symmetric_observation(symmetry, planes), planes)
