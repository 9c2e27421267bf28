"""How much of a run is done: time, iterations, evaluations; the learning-rate schedule; the time for the last match.

A timed run ends on time, with its last match. It measures the cost of fitting and of matches, and keeps that much time
free when it plays.
"""

import math
import time
from collections.abc import Callable
from typing import Any

from azpy.settings import Settings

USUAL_DISTANCE = 5  # iterations between two matches of a run without an end
_SHORT_SHARE = 0.015  # of a timed run, at most, for the three short matches together
_WAY_SHARE = 0.05  # of a timed run, at most, for all matches at a distance that the user sets
_LAST_SHARE = 0.1  # and for the last match
_LEAST_RATE = 0.05
_LAST_RATE = 0.02  # of `linear`, at the end
# Of mirror descent, see `mirror_loss`, at the begin and the end of a run.
_MAGNET, _LAST_MAGNET = 0.3, 0.02
_MEASURED = (
    "match_seconds",
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
        self._measured = dict.fromkeys(_MEASURED, 0.0)
        self._thirds = -1.0  # of the run, when a match was last due: it has not begun

    def state(self) -> dict[str, Any]:
        """The state that `load` takes."""
        done = {"elapsed_seconds": self.elapsed(), "evaluations": self.evaluations, "thirds": self._thirds}
        return done | self._measured

    def load(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.advance_to(float(state["elapsed_seconds"]))
        self.evaluations = float(state["evaluations"])
        self._measured = {name: float(state[name]) for name in _MEASURED}
        self._thirds = float(state.get("thirds", -1.0))  # earlier versions did not store it

    def advance_to(self, seconds: float) -> None:
        """Count at least `seconds` as spent."""
        self._begin -= max(0.0, seconds - self.elapsed())

    def elapsed(self) -> float:
        """Seconds since the run began, without the time between its parts."""
        return self._clock() - self._begin

    def rate(self, iterations_done: float) -> float:
        """Factor of the learning rate, by the setting `schedule`, from 1 down to a twentieth.

        linear-tail: full for the first half of the run, then down in a line. linear: down in a line from the begin, to
        a fiftieth. constant: always full. A run without an end stays at full. A timed run ends, for the schedule, when
        its last match begins. `iterations_done` counts the part of the iteration at hand.
        """
        if self._settings.schedule == "constant":
            return 1.0
        if self._settings.schedule == "linear":
            return 1.0 - (1.0 - _LAST_RATE) * self.progress(iterations_done)
        return max(_LEAST_RATE, min(1.0, 2.0 * (1.0 - self.progress(iterations_done))))

    def magnet(self, iterations_done: float) -> float:
        """The magnet of mirror descent, which falls by a constant factor, for the argument of `rate`."""
        return float(_MAGNET * (_LAST_MAGNET / _MAGNET) ** self.progress(iterations_done))

    def progress(self, iterations_done: float) -> float:
        """The part of the run that is done, 1 at its end or later; 0 in a run without an end."""
        settings = self._settings
        progress = iterations_done / (settings.iterations or math.inf)
        if not settings.deterministic:
            progress = max(progress, self.elapsed() / max(self._end(), 1e-9))
            progress = max(progress, self.evaluations / (settings.total_evaluations or math.inf))
        return min(1.0, progress)

    def is_over(self, iteration: int) -> bool:
        """True when another iteration would not fit."""
        settings = self._settings
        return (
            iteration >= (settings.iterations or math.inf)
            or self.evaluations >= (settings.total_evaluations or math.inf)
            or self._end() - self.elapsed() <= 0.25 * self._measured["iteration_seconds"]
        )

    def may_play(self, positions: int) -> bool:
        """False when the time left is needed to fit this iteration's `positions`, to export and for the last match.

        Before the first fit is measured, a run keeps as much time free for fitting as has passed; without positions,
        none.
        """
        a_position = self._measured["fit_seconds_per_position"]
        unknown = positions and self._opponents and not a_position
        fit = self.elapsed() if unknown else a_position * positions
        return self._end() - self.elapsed() > self._measured["export_seconds"] + fit

    def may_fit(self) -> bool:
        """False when the time left is needed to export the model and for the last match."""
        return self._end() - self.elapsed() > self._measured["export_seconds"]

    def match_is_due(self, iteration: int) -> bool:
        """Return whether to play a match after this iteration. Each third of the run answers yes once.

        A run of one or two iterations has no thirds: it plays the last match alone.
        With `match_every`, a timed run says no when matches have had their share, or the last one needs the rest.
        """
        settings, every, timed = self._settings, self._settings.match_every, math.isfinite(self._seconds)
        if every is None and not (timed or settings.iterations or settings.total_evaluations):
            return iteration % USUAL_DISTANCE == 0
        if every is None:
            before, self._thirds = self._thirds, float(int(3 * self.progress(iteration)))
            return self._thirds > before and (settings.iterations or 3) >= 3
        if not iteration or iteration % every or not timed:
            return iteration > 0 and iteration % every == 0
        seconds, elapsed = self._seconds_of_match(settings.match_games), self.elapsed()
        return self._measured["match_seconds"] + seconds <= _WAY_SHARE * elapsed and self._end() - elapsed > seconds

    def final_match_games(self) -> int:
        """Games of the last match against each opponent: fewer if they would take more than their share."""
        games, cost = self._settings.final_match_games, self._seconds_of_match(1)
        if cost > 0 and math.isfinite(self._seconds):
            games = min(games, int(_LAST_SHARE * self._seconds / cost))
        return max(2, games - games % 2)

    def match_seconds(self, begin: float, *, last: bool) -> float:
        """Seconds left for a match that began when `elapsed` was `begin`; 0 or less ends it.

        The last match ends with the run; in a late run it still has the time that was kept free for it. A match that
        `match_every` orders has a tenth of the run at most, and the short ones have 1.5 % together. They leave the last
        match its time.
        """
        if not math.isfinite(self._seconds):
            return math.inf
        end = self._end()
        if last:
            until = max(self._seconds, begin + self._seconds - end)
        else:
            left = _SHORT_SHARE * self._seconds - self._measured["match_seconds"]
            until = min(begin + (_LAST_SHARE * self._seconds if self._settings.match_every else left), end)
        return until - self.elapsed()

    def note_iteration(
        self, seconds: float, fit_seconds: float, positions: float, games: int, export_seconds: float = 0.0
    ) -> None:
        """Note the time of an iteration.

        Args:
            seconds: of the whole iteration.
            fit_seconds: of its gradient steps.
            positions: that were fitted in them; 0: no step was taken.
            games: that were played, without those from before an interruption.
            export_seconds: to export the model, check it and have it play.
        """
        self._measured["iteration_seconds"] = seconds
        if positions:
            self._measured["fit_seconds_per_position"] = fit_seconds / positions
        self._measured["export_seconds"] = export_seconds
        if games:
            self._measured["play_seconds_per_game"] = (seconds - fit_seconds - export_seconds) / games

    def note_match(self, seconds: float, games: float) -> None:
        """Note the time of a match; `games` is the mean number against each opponent, 0 unless it met all of them."""
        self._measured["match_seconds"] += seconds
        if games:
            self._measured["match_seconds_per_game"] = seconds / games

    def _end(self) -> float:
        """The time at which the last match begins, in seconds since the run began."""
        if not math.isfinite(self._seconds) or not self._opponents:
            return self._seconds
        return self._seconds - min(_LAST_SHARE * self._seconds, self._seconds_of_match(self.final_match_games()))

    def _seconds_of_match(self, games: int) -> float:
        """As measured; before the first match, a guess."""
        settings = self._settings
        full = settings.simulations
        fast = min(settings.fast_simulations or max(1, full // 4), full)
        mean = settings.full_search_share * full + (1 - settings.full_search_share) * fast
        more = settings.simulations_in_matches / mean
        # As if opponents took as long as the network, and the network as long as in self-play.
        guess = self._measured["play_seconds_per_game"] * more * self._opponents
        share = _LAST_SHARE * self._seconds / settings.final_match_games
        return games * (self._measured["match_seconds_per_game"] or guess or share)
