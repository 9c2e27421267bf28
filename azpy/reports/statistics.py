"""Statistics of the games that a player has played, from their records alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy._core import SEARCHED, GameRecord

_OPENING_PLIES = 8  # plies that make two openings the same opening


@dataclass(frozen=True)
class Searched:
    """All searched positions [N] of some games, one game after another."""

    game: NDArray[np.int64]  # index among the records
    ply: NDArray[np.int64]
    value: NDArray[np.float64]  # of the root, for the player to move
    result: NDArray[np.float64]  # outcome for the player to move; as it is learned where there was a score to beat
    choice: NDArray[np.bool_]  # whether there was more than one legal action, and a visit
    policy_entropy: NDArray[np.float64]  # of the network's priors, in nats
    search_entropy: NDArray[np.float64]  # of the search's policy target, in nats
    search_gain: NDArray[np.float64]  # KL divergence of the policy target from the priors, in nats


def searched_positions(records: Sequence[GameRecord]) -> Searched:
    """Look at every searched position of some games."""
    plies = [np.flatnonzero(record.flags & SEARCHED) for record in records]
    pairs = list(zip(records, plies, strict=True))
    results = [np.array(record.rewards)[record.players[own]] for record, own in pairs]
    lengths = _joined([np.diff(record.offsets)[own] for record, own in pairs], np.int64)
    visits, priors, share = (
        _joined([getattr(record, name) for record in records], np.float64) for name in ("visits", "priors", "targets")
    )
    starts = np.cumsum(lengths) - lengths
    tiny = 1e-12  # the logarithm of 0 is multiplied by 0
    log_share, log_prior = np.log(np.maximum(share, tiny)), np.log(np.maximum(priors, tiny))

    def per_position(terms: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.add.reduceat(terms, starts) if len(starts) else np.zeros(0)

    return Searched(
        game=np.repeat(np.arange(len(records)), [len(own) for own in plies]),
        ply=_joined(plies, np.int64),
        value=_joined([record.root_values[own] for record, own in pairs], np.float64),
        result=_joined(results, np.float64),
        choice=(lengths > 1) & (per_position(visits) > 0),
        policy_entropy=per_position(-priors * log_prior),
        search_entropy=per_position(-share * log_share),
        search_gain=per_position(share * (log_share - log_prior)),
    )


def game_statistics(records: Sequence[GameRecord], resign_at: float = 1.0) -> dict[str, float]:
    """Numbers about a set of games.

    Args:
        records: at least one game.
        resign_at: the option of self-play.

    Returns:
        * ``draws``: share of games in which all players get 0; ``first_seat_score``: mean score of seat 0, in [0, 1].
          Of one player instead ``mean_score`` and ``best_score`` of the games, in [-1, 1], and ``score_to_beat``: the
          mean of those of the games, absent where there was none.
        * ``mean_plies``: length of a game, dice and opening plies included; ``capped``: share cut by the ply cap.
        * ``resigned``: share of games that a player gave up; absent without `resign_at`. ``false_resignations``: of the
          games that were played to the end although a player met `resign_at`, the share that this player did not lose;
          absent where there is none.
        * ``duplicates``: share of games that repeat an earlier one; ``openings``: different first 8 plies over games.
        * ``policy_entropy``, ``search_entropy``, ``search_gain``: means of those of `Searched` over the positions with
          a choice; absent where there is none.
        * ``value_spread``: standard deviation of the root values; absent where nothing was searched.
        * ``explained_variance``: share of the outcomes' variance that the root values explain: 1 for exact values, 0
          for a constant, below 0 for values that mislead. In self-play the network that searched had not learned from
          the games. Absent where nothing was searched, or where all outcomes are equal for the player to move.
    """
    outcomes = np.array([record.outcomes for record in records])
    positions = searched_positions(records)
    if outcomes.shape[1] == 1:
        statistics = {"mean_score": float(outcomes.mean()), "best_score": float(outcomes.max())}
    else:
        draws, seat = (outcomes == 0).all(1).mean(), (outcomes[:, 0].mean() + 1) / 2
        statistics = {"draws": float(draws), "first_seat_score": float(seat)}
    statistics |= {
        "mean_plies": float(np.mean([len(record) for record in records])),
        "capped": float(np.mean([record.capped for record in records])),
        "duplicates": 1.0 - len({record.actions.tobytes() for record in records}) / len(records),
        "openings": len({record.actions[:_OPENING_PLIES].tobytes() for record in records}) / len(records),
    }
    if resign_at < 1:
        statistics["resigned"] = float(np.mean([record.resigned for record in records]))
        to_the_end = [record for record in records if not record.resigned and not record.capped]
        losers = [(record, loser) for record in to_the_end if (loser := _resigning(record, resign_at)) is not None]
        if losers:
            statistics["false_resignations"] = float(np.mean([record.outcomes[loser] >= 0 for record, loser in losers]))
    if named := [score for record in records if (score := record.score_to_beat) is not None]:
        statistics["score_to_beat"] = float(np.mean(named))
    if len(positions.value):
        statistics["value_spread"] = float(positions.value.std())
        if positions.result.min() < positions.result.max():
            left = float((positions.result - positions.value).var())
            statistics["explained_variance"] = 1 - left / float(positions.result.var())
    if positions.choice.any():
        for name in ("policy_entropy", "search_entropy", "search_gain"):
            statistics[name] = float(getattr(positions, name)[positions.choice].mean())
    return statistics


def _resigning(record: GameRecord, resign_at: float) -> int | None:
    """The first player of a game of two whose last two searches gave the opponent more than `resign_at`."""
    was_lost = [False, False]
    for player, value in zip(record.players.tolist(), record.root_values.tolist(), strict=True):
        if player < 0:  # a roll
            continue
        is_lost = -value > resign_at
        if is_lost and was_lost[player]:
            return int(player)
        was_lost[player] = is_lost
    return None


def _joined(parts: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *(part.astype(dtype) for part in parts)])
