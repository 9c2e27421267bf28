"""The earlier networks that play one side of some games (`historical_share`): which of them play next."""

import math
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from azpy._core import OPPONENT, GameRecord
from azpy.settings.run import Settings

__all__ = ["League", "is_kept"]

_KEEP_NEWEST, _KEEP_EVERY = 3, 10  # checkpoints that are not deleted: the newest, and every tenth
_AT_ONCE = 2  # earlier networks that play at once: each is one more call a round
_FADING = 0.9  # factor of each older iteration's games in a score: the newest network changes


def is_kept(checkpoint: int, newest: int) -> bool:
    """Whether a checkpoint is kept once the checkpoint of iteration `newest` is written."""
    return checkpoint > newest - _KEEP_NEWEST or checkpoint % _KEEP_EVERY == 0


class League:
    """Chooses the opponents of each iteration: two of the kept checkpoints.

    With `historical_choice` turn, each has its turn. With hardest they are drawn with probabilities in proportion to
    (1 - p)^2, where p is the newest network's score against the checkpoint (prioritized fictitious self-play of
    AlphaStar, Vinyals et al. 2019). p begins at 0.5, as if there were two draws. The choice depends on the seed, the
    iteration and the games of the iterations before, so a run that goes on plays the same games.

    Args:
        settings: of the run.
    """

    def __init__(self, settings: Settings) -> None:
        self._seed, self._in_turn = settings.seed, settings.historical_choice == "turn"
        self._points: dict[int, tuple[float, float]] = {}  # checkpoint -> games and the newest network's points
        self._names: dict[int, int] = {}  # network id -> checkpoint

    def choose(self, iteration: int) -> list[int]:
        """The checkpoints whose networks play one side of some of an iteration's games, ascending."""
        newest = iteration - 1  # plays the other side
        kept = [checkpoint for checkpoint in range(1, newest) if is_kept(checkpoint, newest)]
        if not kept:
            return []
        if self._in_turn:
            return sorted({kept[(iteration + turn * len(kept) // _AT_ONCE) % len(kept)] for turn in range(_AT_ONCE)})

        def place(checkpoint: int) -> float:
            # The least of -log(u) / weight is a draw by weights, without replacement (Efraimidis and Spirakis 2006).
            drawn = blake2b(f"{self._seed} {iteration} {checkpoint}".encode(), digest_size=6).digest()
            return -math.log((int.from_bytes(drawn) + 1) / 2**48) / (1 - self.score(checkpoint)) ** 2

        return sorted(sorted(kept, key=place)[:_AT_ONCE])

    def score(self, checkpoint: int) -> float:
        """The newest network's score against a checkpoint's, more than 0 and less than 1."""
        games, points = self._points.get(checkpoint, (0.0, 0.0))
        return (points + 1) / (games + 2)

    def note(self, games: Iterable[GameRecord], opponents: Mapping[int, int]) -> dict[int, tuple[int, float]]:
        """Counts an iteration's games.

        Args:
            games: of the iteration.
            opponents: its opponents: the checkpoint of each network id.

        Returns:
            For each checkpoint that played, the number of its games and the newest network's score in them.
        """
        self._names |= opponents  # games that began in the iteration before have its opponents
        found: dict[int, list[float]] = {}
        for game in games:
            theirs = np.flatnonzero(game.flags & OPPONENT)
            if len(theirs) and (name := int(game.networks[theirs[0]])) in self._names:
                outcome = game.outcome if game.players[theirs[0]] == 1 else -game.outcome
                found.setdefault(self._names[name], []).append((1 + outcome) / 2)
        faded = {checkpoint: (_FADING * n, _FADING * points) for checkpoint, (n, points) in self._points.items()}
        for checkpoint, points in found.items():
            n, before = faded.get(checkpoint, (0.0, 0.0))
            faded[checkpoint] = n + len(points), before + sum(points)
        self._points = faded
        return {checkpoint: (len(points), sum(points) / len(points)) for checkpoint, points in sorted(found.items())}

    def state(self) -> dict[str, Any]:
        """The argument of `load`."""
        return {str(checkpoint): list(figures) for checkpoint, figures in self._points.items()}

    def load(self, state: Mapping[str, Sequence[float]]) -> None:
        """Goes on from `state`."""
        self._points = {int(checkpoint): (float(n), float(points)) for checkpoint, (n, points) in state.items()}
