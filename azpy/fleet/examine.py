"""Examines results of workers before they count."""

from collections.abc import Iterable

from azpy import _core
from azpy._core import GameRecord
from azpy.fleet.fleet import Lineup
from azpy.runs.games import unframe
from azpy.settings import Settings

MOST_BYTES = 1 << 24  # of a game: on 19 x 19 points one of Go can have 4 MB, and other games are far shorter


class RefusedError(ValueError):
    """A result that does not belong to this run; the text says why."""


class Examiner:
    """Checks whether games can belong to the run."""

    def __init__(self, settings: Settings, start: _core.State) -> None:
        self._settings, self._game = settings, start.game
        self._rules = _core.ReplayBuffer(start, max_positions=1)
        self._networks: set[int] = set()
        self._score_to_beat: float | None = None  # of the lineup

    def play(self, lineup: Lineup) -> None:
        """From now on games may name what the lineup names; in a deterministic run nothing else."""
        self._networks = lineup.ids if self._settings.deterministic else self._networks | lineup.ids
        self._score_to_beat = lineup.score_to_beat

    def know(self, records: Iterable[GameRecord]) -> None:
        """In a free run, games may name the networks of these too: a head before this one has had them played."""
        if not self._settings.deterministic:
            self._networks |= {int(network) for record in records for network in record.networks}

    def games_in(self, frame: bytes) -> list[GameRecord]:
        """The games of a frame, of which nothing else is known; a `RefusedError` if it is no such frame."""
        try:
            pieces = unframe(frame)
            if (longest := max(map(len, pieces), default=0)) > MOST_BYTES:
                raise ValueError(f"a game has {longest} bytes, expected at most {MOST_BYTES}")
            return list(map(GameRecord.from_bytes, pieces))
        except ValueError as error:
            raise RefusedError(f"its games cannot be read: {error}") from error

    def look_at(self, record: GameRecord) -> None:
        """Examine a game that is new.

        Raises:
            RefusedError: it is of another run, by other rules, or of a network that does not play.
        """
        for name, found, expected in (("game", record.game, self._game), ("seed", record.seed, self._settings.seed)):
            if found != expected:
                raise RefusedError(f"game {record.game_id} has {name} {found!r}, expected {expected!r}")
        if record.imported:
            raise RefusedError(
                f"game {record.game_id} is marked as imported, but workers only send games that they played"
            )
        if foreign := set(record.networks.tolist()) - self._networks:
            raise RefusedError(
                f"game {record.game_id} was played by network {foreign.pop():#018x}, which this run does not use"
            )
        # A free run has games of several scores to beat. The rules know their range.
        given, several = record.score_to_beat, self._settings.ranked_reward and not self._settings.deterministic
        if given is None if several else given != self._score_to_beat:
            raise RefusedError(f"game {record.game_id} has the score to beat {given}, which this run never gave")
        try:
            self._rules.add(record)
        except ValueError as error:
            raise RefusedError(str(error)) from error
