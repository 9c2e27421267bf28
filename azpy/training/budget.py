"""How much of a run is done: time, iterations, evaluations; the learning-rate schedule; the time to keep for the end.

A timed run ends on time, with its last match. So a run measures the cost of fitting and of matches, and keeps that
much time free when it plays.
"""

import math
import time
from collections.abc import Callable
from typing import Any

from azpy.settings import Settings

__all__ = ["Budget"]

# Of a timed run, at most: for the matches on the way, and for the last one.
_WAY_SHARE = 0.05
_LAST_SHARE = 0.1
_LEAST_RATE = 0.05
_RATES = (
    "fit_seconds_per_position",
    "match_seconds_per_game",
    "iteration_seconds",
    "play_seconds_per_game",
    "export_seconds",
)


class Budget:
    """Time, iterations and evaluations of one run, resumed parts included.

    Args:
        settings: of the run.
        opponents: how many the network meets in a match; 0: the run only collects games.
        clock: seconds from any moment on.

    Attributes:
        evaluations: rows that self-play asked of the network, in iterations whose games are all played.
    """

    def __init__(self, settings: Settings, opponents: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._opponents = opponents
        self._clock = clock
        self._seconds = math.inf if settings.minutes is None else settings.minutes * 60
        self._begin = clock()
        self.evaluations = 0.0
        self._match_seconds = 0.0
        self._measured = dict.fromkeys(_RATES, 0.0)

    def state(self) -> dict[str, Any]:
        """What `load` needs to go on."""
        spent = {"elapsed_seconds": self.elapsed(), "evaluations": self.evaluations}
        return spent | {"match_seconds": self._match_seconds} | self._measured

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from `state`."""
        state = dict.fromkeys((*_RATES, "evaluations"), 0.0) | state  # checkpoints of older versions lack some
        self.advance_to(float(state["elapsed_seconds"]))
        self.evaluations = float(state["evaluations"])
        self._match_seconds = float(state["match_seconds"])
        self._measured = {name: float(state[name]) for name in _RATES}

    def advance_to(self, seconds: float) -> None:
        """Counts at least `seconds` as spent."""
        self._begin -= max(0.0, seconds - self.elapsed())

    def elapsed(self) -> float:
        """Seconds since the run began, without the time between its parts."""
        return self._clock() - self._begin

    def rate(self, iterations_done: float) -> float:
        """Factor of the learning rate, by the setting `schedule`, from 1 down to a twentieth.

        linear-tail: full for the first half of the run, then down in a line. cosine: down along half a period
        (Loshchilov and Hutter 2017, without restarts). constant: always full. A run without an end stays at full.

        A timed run is at its end, for this, when the last match begins.

        Args:
            iterations_done: with the part of the iteration at hand.
        """
        total = self._settings.iterations
        training = max(self._seconds - self._final_match_seconds(), 1e-9)
        evaluations = self._settings.total_evaluations
        progress = max(
            self.elapsed() / training,
            iterations_done / total if total else 0.0,
            self.evaluations / evaluations if evaluations else 0.0,
        )
        if self._settings.deterministic:
            progress = iterations_done / total if total else 0.0
        progress = min(progress, 1.0)
        match self._settings.schedule:
            case "constant":
                return 1.0
            case "cosine":
                return _LEAST_RATE + (1.0 - _LEAST_RATE) * 0.5 * (1.0 + math.cos(math.pi * progress))
            case _:
                return max(_LEAST_RATE, min(1.0, 2.0 * (1.0 - progress)))

    def is_over(self, iteration: int) -> bool:
        """True when another iteration would not fit."""
        iterations, evaluations = self._settings.iterations, self._settings.total_evaluations
        if iterations is not None and iteration >= iterations:
            return True
        if evaluations is not None and self.evaluations >= evaluations:
            return True
        return self._left() <= 0.25 * self._measured["iteration_seconds"]

    def may_play(self, positions: int) -> bool:
        """False when what is left is needed to fit this iteration's `positions` and for what follows.

        As long as no fit was measured, a run keeps as much time free for it as has passed.
        """
        a_position = self._measured["fit_seconds_per_position"]
        fit = a_position * positions if a_position or not self._opponents else self.elapsed()
        return self._left() > self._measured["export_seconds"] + fit

    def may_fit(self) -> bool:
        """False when what is left is needed to export the model and for the last match."""
        return self._left() > self._measured["export_seconds"]

    def match_is_due(self, iteration: int) -> bool:
        """True every few iterations, unless matches have had their share of the time or the last one needs the rest."""
        if iteration % self._settings.match_every or not math.isfinite(self._seconds):
            return iteration % self._settings.match_every == 0
        seconds = self._seconds_of_match(self._settings.match_games)
        if self._match_seconds + seconds > _WAY_SHARE * self.elapsed():
            return False
        return self._left() > seconds

    def final_match_games(self) -> int:
        """Games of the last match against each opponent: fewer if they would take more than their share."""
        games, cost = self._settings.final_match_games, self._seconds_of_match(1)
        if cost > 0 and math.isfinite(self._seconds):
            games = min(games, int(_LAST_SHARE * self._seconds / cost))
        return max(2, games - games % 2)

    def match_seconds(self, begin: float, *, last: bool) -> float:
        """How long a match may go on that began when `elapsed` was `begin`; 0 or less ends it.

        The last match ends with the run, but has the time that was kept free for it where the run is late. A match on
        the way has a tenth of the run at most, and leaves the last match its time.
        """
        if not math.isfinite(self._seconds):
            return math.inf
        final = self._final_match_seconds()
        if last:
            until = max(self._seconds, begin + final)
        else:
            until = min(begin + _LAST_SHARE * self._seconds, self._seconds - final)
        return until - self.elapsed()

    def note_iteration(
        self, seconds: float, fit_seconds: float, positions: float, games: int, export_seconds: float = 0.0
    ) -> None:
        """Remembers what an iteration took.

        Args:
            seconds: all of it.
            fit_seconds: of these, gradient steps.
            export_seconds: of these, to export the model, check it and have it play.
            positions: that were fitted, as many as the steps that time allowed had.
            games: that were played; those that an interrupted iteration had already do not count.
        """
        self._measured["iteration_seconds"] = seconds
        self._measured["fit_seconds_per_position"] = fit_seconds / max(positions, 1)
        self._measured["export_seconds"] = export_seconds
        if games:
            self._measured["play_seconds_per_game"] = (seconds - fit_seconds - export_seconds) / games

    def note_match(self, seconds: float, games: float) -> None:
        """Remembers what a match took; `games` are those against each opponent, on average."""
        self._match_seconds += seconds
        self._measured["match_seconds_per_game"] = seconds / games

    def _left(self) -> float:
        """Seconds until the last match begins."""
        return self._seconds - self._final_match_seconds() - self.elapsed()

    def _final_match_seconds(self) -> float:
        if not math.isfinite(self._seconds) or not self._opponents:
            return 0.0
        return min(_LAST_SHARE * self._seconds, self._seconds_of_match(self.final_match_games()))

    def _seconds_of_match(self, games: int) -> float:
        """As it was measured; before that, a guess."""
        settings = self._settings
        full, fast = settings.simulations, settings.fast_simulations or settings.simulations // 4
        mean = settings.full_search_share * full + (1 - settings.full_search_share) * fast
        more = settings.simulations_in_matches / mean
        # As if opponents took as long as the network, and that as long as in self-play.
        guess = self._measured["play_seconds_per_game"] * more * self._opponents
        share = _LAST_SHARE * self._seconds / settings.final_match_games
        return games * (self._measured["match_seconds_per_game"] or guess or share)
