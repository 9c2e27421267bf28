"""What the object of a game in Python must keep; `_core.Walk` checks the rules of games in Rust and in Python alike."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from azpy._core import Facts, State, Walk
from azpy.checks.faults import Broken, asked


def check_object(walk: Walk, start: State, facts: Facts) -> None:
    """Raises `Broken` where the object of a game in Python breaks a rule that shows in the object alone."""
    game = walk.game_object
    if game is None:
        return
    with asked():
        for name in ("num_actions", "obs_shape", "max_plies"):
            now, first = getattr(game, name), getattr(start, name)
            if (tuple(now) if name == "obs_shape" else now) != first:
                raise Broken("attributes", f"{name} {now}", f"{first}, as at the start")
        copy = game.clone()
        check_copy(game, copy)
        if facts.turn in (0, 1):
            if not isinstance(actions := copy.legal_actions(), Sequence):
                got = " ".join(f"{type(actions).__name__} {actions!r}".split())
                raise Broken("legal-type", got[:200], "a list of whole numbers")
            one, two = copy.encode(), copy.encode()
            if one.flags.writeable and np.may_share_memory(one, two):
                raise Broken("encode-own", "the same memory when asked twice", "a new array each time")
        str(copy)
    for action in facts.playable[:64] if hasattr(game, "play_legal") else ():
        with asked(action=action):
            played, played_legal = game.clone(), game.clone()
            played.play(action)
            played_legal.play_legal(action)
            after, other = (Walk(State(each)).facts() for each in (played_legal, played))
            if after != other:
                got = f"play_legal and play lead to positions that differ in {after.differences(other)}"
                raise Broken("replay", got, "no difference")


def check_copy(game: Any, other: Any) -> None:
    """The clone of a game in Python must be another object of the same class."""
    if game is not None and game is other:
        raise Broken("clone", "the position itself", "a copy of the position")
    if type(game) is not type(other):
        raise Broken("clone", f"a {type(other).__name__}", f"a {type(game).__name__}, made by type(self)(...)")
