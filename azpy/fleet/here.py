"""The players of a run in this process."""

from collections import Counter
from collections.abc import Sequence

from azpy import _core
from azpy.fleet.fleet import Fleet, Lineup
from azpy.fleet.table import ENDLESS
from azpy.playing.selfplay import open_self_play, usual_plies
from azpy.settings import Settings

_WAIT = 0.2  # seconds for the first game


class Here(Fleet):
    """Self-play in the threads of this process; see `Fleet`.

    Raises:
        SettingsError: `play` refuses settings that self-play refuses.
    """

    def __init__(self, settings: Settings, start: _core.State) -> None:
        self.notices: list[str] = []
        self._settings, self._start, self._asked = settings, start, list[range]()  # not admitted yet
        self._evaluators: Sequence[object] = ()  # that play
        self._self_play: _core.SelfPlay | None = None
        self._taken: Sequence[_core.GameRecord] = ()  # last; an interrupt may come before the caller has them

    @property
    def self_play(self) -> _core.SelfPlay:
        """It is there after the first `play`."""
        if self._self_play is None:
            raise RuntimeError("no lineup was given yet")
        return self._self_play

    def ask(self, ids: Sequence[range], done: Sequence[_core.GameRecord]) -> None:
        """See `Fleet`."""
        self._asked += ids

    def seal(self, ids: Sequence[int]) -> None:
        """See `Fleet`."""

    def play(self, lineup: Lineup) -> None:
        """See `Fleet`."""
        if self._self_play is None:
            stagger = 0 if self._settings.deterministic else usual_plies(self._start, self._settings)
            played, on = lineup.evaluators, lineup.devices[0]
            self._self_play = open_self_play(self._settings, self._start, played, on=on, stagger=stagger)
            self._self_play.go_on(self.begun)
        elif lineup.evaluators is not self._evaluators:
            self._self_play.swap(lineup.evaluators)
        self._evaluators = lineup.evaluators
        if (score := lineup.score_to_beat) is not None:
            self._self_play.set_score_to_beat(score)
        for ids in self._asked:
            self._self_play.admit(ids.start, len(ids))
        self._asked.clear()
        self._self_play.resume()

    def take(self, most: int) -> list[_core.GameRecord]:
        """See `Fleet`."""
        self._taken = self.self_play.take_finished(min(most, ENDLESS), seconds=_WAIT)
        return list(self._taken)

    def pause(self) -> None:
        """See `Fleet`."""
        self.self_play.pause()

    def finish(self) -> list[_core.GameRecord]:
        """See `Fleet`."""
        if self._self_play is None:
            return []
        self._self_play.pause()
        return [*self._taken, *self._self_play.take_finished()]

    def close(self, *, ended: bool = True) -> None:
        """See `Fleet`."""
        self.unfinished = self.begun
        if self._self_play is not None:
            self._self_play.close()
            self.unfinished = self._self_play.unfinished

    @property
    def stats(self) -> Counter[str]:
        """See `Fleet`."""
        return Counter() if self._self_play is None else Counter(self._self_play.stats)

    @property
    def pipeline_stats(self) -> list[Counter[str]]:
        """See `Fleet`."""
        return [] if self._self_play is None else [Counter(each) for each in self._self_play.pipeline_stats]

    @property
    def longest(self) -> int:
        """See `Fleet`."""
        return 0 if self._self_play is None else self._self_play.in_play[1]
