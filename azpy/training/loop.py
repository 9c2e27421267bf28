"""The part that training and collecting games share: an iteration's self-play, and an interruption."""

import contextlib
import os
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Self

from azpy import _core
from azpy.games.names import make_position
from azpy.machine import made_with
from azpy.playing.resignation import Resignation
from azpy.playing.selfplay import ids_of_iteration, known_ids, open_self_play, play_on, player_of, take_rest
from azpy.runs.folder import RunFolder
from azpy.settings.run import FIXED_SETTINGS, Settings
from azpy.training.budget import Budget
from azpy.training.events import Event, Played
from azpy.training.timing import TimeShares

__all__ = ["Loop"]


class Loop:
    """Iterations of self-play in a run folder. A subclass calls `_open` when it is ready to go on.

    Args:
        settings: of the run.
        opponents: how many the network meets in a match; 0: the run only collects games.
    """

    _STOPPED: ClassVar[str]  # the kind of the row of metrics that an interruption leaves

    def __init__(self, settings: Settings, opponents: int) -> None:
        self._settings = settings
        self._budget = Budget(settings, opponents)
        self._start = make_position(settings.game)
        self._resignation = Resignation(settings.resign_below)
        self._time = TimeShares()
        self._iteration = self._next_game = 0
        self._evaluations = 0.0  # of the iteration in play, parts before an interruption included
        self._counted = 0.0  # rows of `_self_play` that are in these, or in those of earlier iterations
        self._self_play: _core.SelfPlay | None = None
        self._playing: Sequence[Any] = ()  # the evaluators that `_self_play` has, one a device
        self._taken: Sequence[_core.GameRecord] = ()  # games that are on their way to the journal
        self._under_way = False
        self._last_first = contextlib.ExitStack()  # `close` ends all of it, whatever fails

    def _open(
        self, path: str | os.PathLike[str], packages: Sequence[str], flags: Sequence[str] = (), **made: str | int
    ) -> None:
        self._run = RunFolder(path, asdict(self._settings), FIXED_SETTINGS, made_with(*packages) | made, flags)
        self._last_first.callback(self._run.close)
        try:
            self._resume()
            deterministic = self._settings.deterministic
            self._run.note_changes(self._iteration, self._budget.elapsed(), deterministic=deterministic)
            self._run.write_settings()
        except BaseException:
            self._last_first.close()
            raise

    def _resume(self) -> None:
        """Goes on from the folder's contents."""
        raise NotImplementedError

    def _resume_budget(self, row: str) -> None:
        """Counts the time and evaluations up to the last row of this kind, and of an interrupted iteration after it."""
        self._run.trim_metrics(self._iteration)
        self._budget.advance_to(self._run.spent("seconds", row, "match", self._STOPPED))
        self._evaluations = max(0.0, self._run.spent("evaluations", self._STOPPED) - self._budget.evaluations)

    def _players(self, iteration: int) -> tuple[Sequence[Any], Sequence[Any]]:
        """The evaluators that play the iteration, one a device, and the earlier networks they play against."""
        raise NotImplementedError

    def _change_over(self) -> Iterator[Event]:
        """Called now and then while games are played."""
        return iter(())

    def close(self) -> None:
        """Stops self-play and lets go of the run folder.

        In the middle of a run, its journal gets all finished games, and its metrics the time and evaluations spent.
        """
        play, self._self_play = self._self_play, None
        under_way, self._under_way = self._under_way, False
        with self._last_first:
            if under_way:
                self._last_first.callback(self._note_stop)
            if play is not None:
                self._last_first.callback(play.close)
            if play is not None and under_way:
                self._last_first.callback(self._keep_rest, play)

    def _note_stop(self) -> None:
        evaluations = self._budget.evaluations + self._evaluations
        row = {"kind": self._STOPPED, "iteration": self._iteration, "seconds": self._budget.elapsed()}
        self._run.append_metrics(row | {"evaluations": evaluations})

    def _keep_rest(self, play: _core.SelfPlay) -> None:
        there = {record.game_id for record in self._run.journal}
        if left := [record for record in self._taken if record.game_id not in there]:
            self._run.append(*left)
        take_rest(play, known_ids(self._settings, self._next_game, self._run.journal), self._run.append)
        self._count_rows(play)

    def _count_rows(self, play: _core.SelfPlay) -> None:
        rows = play.stats["rows"]
        self._evaluations += rows - self._counted
        self._counted = rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _play(self, iteration: int, metrics: dict[str, float]) -> Generator[Event, None, list[_core.GameRecord]]:
        """Plays the games that an iteration lacks, seals them, and returns all of them in order of their ids."""
        settings = self._settings
        if iteration in self._run.sealed.iterations():  # before an interruption
            games = self._run.sealed.read(iteration)
        else:
            known = known_ids(settings, self._next_game, self._run.journal)
            if len(known) < settings.games_per_iteration:
                yield from self._play_missing(iteration, known, metrics)
            with self._time.stage("writing"):
                games = self._run.seal(iteration, ids_of_iteration(settings, self._next_game))
        self._next_game = max(self._next_game, *(record.game_id + 1 for record in games))
        if self._evaluations:
            metrics["evaluations"] = round(self._evaluations)
            self._budget.evaluations += self._evaluations
            self._evaluations = 0.0
        metrics |= {"games": len(games), "positions": sum(record.positions for record in games)}
        metrics |= self._resignation.note(games)
        if self._self_play is not None:
            self._self_play.set_resign_below(self._resignation.below)
        return games

    def _play_missing(self, iteration: int, known: set[int], metrics: dict[str, float]) -> Iterator[Event]:
        """Self-play until there are enough games or, with one game at least, time is up."""
        settings = self._settings
        evaluators, opponents = self._players(iteration)
        if self._self_play is None:  # lasts for the whole run, in a deterministic run for this iteration
            later = [i for i in self._run.sealed.iterations() if i > iteration and not settings.deterministic]
            ids = [game for i in later for game in self._run.sealed.ids(i)]  # of a run that lost this iteration's games
            first = max([self._next_game, *(game + 1 for game in ids)])
            below, player = self._resignation.below, player_of(evaluators)
            self._self_play = open_self_play(
                settings, self._start, player, first, known, resign_below=below, opponents=opponents
            )
            self._counted = 0.0
        elif evaluators is not self._playing:
            self._self_play.swap(evaluators)
        self._playing, play = evaluators, self._self_play
        play.resume()
        begin, pipelines = time.monotonic(), play.pipeline_stats
        positions = sum(record.positions for record in self._run.journal if record.game_id in known)

        def keep(*records: _core.GameRecord) -> None:
            nonlocal positions
            self._taken = records
            self._run.append(*records)
            self._taken = ()
            positions += sum(record.positions for record in records)

        target = settings.games_per_iteration
        for found in play_on(play, known, target, keep, lambda: self._budget.may_play(positions)):
            self._time.played(time.monotonic() - begin, pipelines, play.pipeline_stats)
            metrics |= found | self._time.shares()
            yield Played(iteration, len(known), dict(metrics))
            yield from self._change_over()
        play.pause()
        self._time.played(time.monotonic() - begin, pipelines, play.pipeline_stats)
        self._count_rows(play)
        if settings.deterministic:
            play.close()
            self._self_play = None
