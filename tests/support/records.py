"""Records of self-play, and their samples by a slow replay."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import azpy
from oracles import Countdown, Hashed, Position, after, observation_of, turn_of

Sample = tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32], float]
SEARCHED = 1


GAMES: dict[str, Any] = {
    "tic_tac_toe": "tic_tac_toe",
    "connect_four": azpy.make_game("connect_four", width=5, height=4, k=3),
    "dice_nim": "dice_nim",
    "pig": "pig",
    "hex": azpy.make_game("hex", size=3, swap=1),
    "othello": azpy.make_game("othello", size=4),
    "breakthrough": azpy.make_game("breakthrough", width=3, height=4),
    "python": Countdown(12, passes=1),
}


def records(game: Any, count: int, **settings: Any) -> list[azpy.GameRecord]:
    actions = (azpy.make_game(game) if isinstance(game, str) else game).num_actions
    settings = {"slots": 8, "simulations": 24, "games": count, "opening_plies": 2, **settings}
    with azpy.SelfPlay(game, Hashed(actions), **settings) as games:
        return sorted(games, key=lambda record: record.game_id)


def start_of(game: Any) -> Position:
    return azpy.make_game(game) if isinstance(game, str) else game


def slow_samples(start: Position, record: azpy.GameRecord, weight: float, symmetries: bool) -> list[Sample]:
    """Every sample that a record can give, by playing it again."""
    samples = list[Sample]()
    for ply in range(len(record)):
        if not record.flags[ply] & SEARCHED:
            continue
        position = after(start, *record.actions[:ply].tolist())
        assert turn_of(position) == record.players[ply]
        outcome = record.outcome * (1 if record.players[ply] == 0 else -1)
        value = (1 - weight) * outcome + weight * float(record.root_values[ply])
        own = slice(record.offsets[ply], record.offsets[ply + 1])
        count = position.num_symmetries if symmetries and isinstance(position, azpy.State) else 1
        for symmetry in range(count):
            planes = observation_of(position)
            legal = np.zeros(position.num_actions, np.bool_)
            policy = np.zeros(position.num_actions, np.float32)
            for action, visits in zip(record.legal[own].tolist(), record.visits[own].tolist(), strict=True):
                if isinstance(position, azpy.State):
                    action = position.symmetric_action(symmetry, action)
                legal[action], policy[action] = True, visits
            if isinstance(position, azpy.State):
                planes = position.symmetric_observation(symmetry, planes)
            samples.append((planes, legal, policy / policy.sum(), value))
    return samples
