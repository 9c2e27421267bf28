"""Random games of a game with all that its rules said at each ply, to compare with rules that someone else wrote."""

import hashlib
import random
from collections.abc import Iterator
from typing import Any

from azpy._core import CHANCE
from azpy.checks.elsewhere import begun, made


def traces(spec: str, games: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Play random games to the end.

    Args:
        spec: the game, as in `make_game`.
        games: how many.
        seed: of the draws. Game n is the same with any number of games.

    Yields:
        Of each game its number, its plies and its outcome, as JSON can hold them. A ply has the `player` to move (-1 at
        a chance turn), the `legal` actions or the chance `outcomes` with their probabilities, the `observation` of the
        player to move as a hash (BLAKE2b of 16 bytes over its float32), and the `action` with its `name`.
    """
    start = begun(made(spec))
    for number in range(games):
        rng = random.Random(f"{seed}/{number}")  # noqa: S311  what looks random will do
        position, plies = start.clone(), list[dict[str, Any]]()
        while not position.is_terminal:
            ply: dict[str, Any] = {"player": position.turn}
            if position.turn == CHANCE:
                ply["outcomes"] = position.chance_outcomes()
                actions, chances = map(list, zip(*ply["outcomes"], strict=True))
            else:
                actions, chances = position.legal_actions(), None
                ply["legal"] = actions
                ply["observation"] = hashlib.blake2b(position.observation().tobytes(), digest_size=16).hexdigest()
            ply["action"] = rng.choices(actions, chances)[0]
            plies.append(ply | {"name": position.action_name(ply["action"])})
            position.play(ply["action"])
        yield {"game_id": number, "plies": plies, "outcome": position.outcome()}
