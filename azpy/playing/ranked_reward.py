"""The score that a run's games of one player are to beat, where nobody knows how good a score can be.

R2 (Laterre et al. 2018): a game is won if its score beats a percentile of the run's own recent scores, and lost if it
falls short of it. So the network always learns from wins and losses, and the score to beat rises with the run. It
depends on finished games alone, never on the clock.
"""

import functools
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

from azpy._core import GameRecord, State
from azpy.errors import SettingsError
from azpy.game import players_of
from azpy.games.lines import at_random
from azpy.settings.run import Settings

_RECENT = 250  # scores, as in the paper
_RANDOM = 50  # scores of random games, until there are others


class RankedReward:
    """The recent scores of one run, if it has the setting `ranked_reward`.

    Raises:
        SettingsError: the setting, in a game of several players.
    """

    def __init__(self, settings: Settings, start: State) -> None:
        if settings.ranked_reward and start.num_players != 1:
            raise SettingsError(
                f"ranked_reward {settings.ranked_reward:g} is for games of one player, but {start.game} has "
                f"{players_of(start)}: leave it out, or give 0"
            )
        self._settings, self._start = settings, start
        self._scores = deque[float](maxlen=_RECENT)

    @property
    def score_to_beat(self) -> float | None:
        """Of the games that begin now, a float32: the least score that as many recent ones do not beat.

        Without `ranked_reward` the option `score_to_beat`; None: scores count as they are.
        """
        share, fixed = self._settings.ranked_reward, self._settings.score_to_beat
        if not share:
            return None if fixed is None else float(np.float32(fixed))
        scores = self._scores or self._random_scores
        return float(np.quantile(scores, share, method="inverted_cdf"))

    def note(self, games: Iterable[GameRecord]) -> None:
        """Take in the scores of an iteration's games."""
        if self._settings.ranked_reward:
            self._scores.extend(float(game.outcome) for game in games)

    @functools.cached_property
    def _random_scores(self) -> list[float]:
        """Scores of random games, used until there are recent scores. A game that the run would cut off counts 0."""
        rng, scores = np.random.default_rng(self._settings.seed), []
        for _ in range(_RANDOM):
            position = self._start.clone()
            deque(at_random(position, rng, self._settings.max_plies or position.max_plies), 0)
            scores.append(float(position.outcome()) if position.is_terminal else 0.0)
        return scores

    def state(self) -> list[float]:
        """The argument of `load`: the recent scores, the oldest first."""
        return list(self._scores)

    def load(self, state: Sequence[float]) -> None:
        """Go on from `state`."""
        self._scores = deque(map(float, state), _RECENT)
