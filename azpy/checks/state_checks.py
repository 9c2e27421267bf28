"""What only games in Rust have and must keep: refusals, symmetries, a notation, planes as bytes.

Positions are those of `azpy.State`. The same checks stand in Rust for the games that ship with azpy
(rust/games/tests/conformance.rs); here they are for everyone's. Knows no search and no files.
"""

import numpy as np

from azpy._core import CHANCE, State, parse_state
from azpy.checks.game_checks import Broken, Facts, array_of, facts_of

__all__ = ["Mirrors", "check_planes", "check_refusals", "check_text"]

_TRIED = 6  # illegal actions in a position


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
