"""The part that training and collecting games share: an iteration's self-play, and an interruption."""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np

from azpy import _core
from azpy.errors import SettingsError
from azpy.fleet.fleet import Fleet, Lineup, WorkerState
from azpy.fleet.head import open_fleet
from azpy.fleet.table import ENDLESS
from azpy.games.names import make_game
from azpy.playing.ranked_reward import RankedReward
from azpy.playing.resignation import Resignation
from azpy.playing.selfplay import check_options, rates
from azpy.runs.folder import RunFolder
from azpy.settings.run import FIXED_SETTINGS, Settings, only_here_in
from azpy.system import made_with
from azpy.training.budget import Budget
from azpy.training.events import Event, Finished, Noticed, Played, Started
from azpy.training.timing import TimeShares

EVENT_SECONDS = 0.2  # how often a long stage reports
NOT_ROW_EXACT = "here the model's answer to a position depends on what else is in its batch"
CANNOT_BE_DETERMINISTIC = f"the run cannot be deterministic: {NOT_ROW_EXACT}; leave out --deterministic"
_NEW = WorkerState("", False, 0, None, 0.0, 0, Counter())


class Loop:
    """Iterations of self-play in a run folder. A subclass calls `_open` when it is ready to go on.

    Args:
        settings: of the run.
        opponents: how many the network meets in a match; 0: the run only collects games.
    """

    _STOPPED: ClassVar[str]  # the kind of the row of metrics that an interruption leaves

    def __init__(self, settings: Settings, opponents: int) -> None:
        for needs in ("workers", "learner_lag"):
            name = only_here_in(vars(settings), learner=needs == "learner_lag")
            if name and getattr(settings, needs):
                raise SettingsError(
                    f"{name} {getattr(settings, name)!r} cannot be imported by other processes, as {needs} "
                    f"{getattr(settings, needs)} needs: move it to a file such as my{name}.py and import it from there"
                )
        self._settings = settings
        self._budget = Budget(settings, opponents)
        self._start = make_game(settings.game)
        check_options(settings, self._start)
        self._resignation = Resignation(settings.resign_below)
        self._ranked = RankedReward(settings, self._start)
        self._time = TimeShares()
        self._iteration = self._next_game = 0
        self._fleet: Fleet = open_fleet(settings, self._start)
        self._cut_short = False  # the last iteration's self-play, by the clock
        self._asked = False  # the fleet for games
        self._evaluations = 0.0  # of the run before this process
        self._workers: dict[str, WorkerState] = {}  # as the last rows of metrics show them
        self._under_way = False
        self._last_first = contextlib.ExitStack()  # `close` ends all of it, whatever fails

    def _open(self, path: str | os.PathLike[str], packages: Sequence[str], **made: str | int) -> None:
        self._run = RunFolder(path, asdict(self._settings), FIXED_SETTINGS, made_with(*packages) | made)
        self._last_first.callback(self._run.close)
        try:
            self._resume()
            if not self._settings.deterministic:  # there a game has the tree of each ply before
                self._fleet.begun = self._run.in_play()
            self._since = self._iteration
            self._run.note_changes(self._iteration, self._budget.elapsed())
            self._run.write_settings()
        except BaseException:
            self._last_first.close()
            raise

    @property
    def flags(self) -> Sequence[str]:
        """Of `az-train` for this run, besides the settings."""
        return self._run.flags

    def _resume(self) -> None:
        """Goes on from the folder's contents."""
        raise NotImplementedError

    def _resume_budget(self, row: str) -> None:
        """Counts the time and evaluations up to the last row of this kind, and of an interrupted iteration after it."""
        self._run.trim_metrics(self._iteration)
        self._budget.advance_to(self._run.spent("seconds", row, "match", self._STOPPED))
        self._evaluations = max(self._budget.evaluations, self._run.spent("evaluations", self._STOPPED))

    def _started(
        self, evaluators: Sequence[Any], player: str, notices: Sequence[str] = (), parameters: int | None = None
    ) -> Started:
        """The first event: `evaluators` play, in words `player`."""
        notes = dict.fromkeys(note for evaluator in evaluators for note in getattr(evaluator, "notes", ()))
        every, seconds = (*self._run.notices, *notes, *notices), self._budget.elapsed()
        return Started(str(self._run.path), self._settings, self._iteration, seconds, every, player, parameters)

    def _finished(self, collected: int | None = None) -> Finished:
        """The last event; `collected` is the number of a collection's games, None for training."""
        self._under_way = False
        run, games_hash, weights_hash = self._run, None, None
        if self._settings.deterministic and collected is None:
            games_hash, weights_hash = run.games_hash(), run.weights_hash(self._iteration)
        facts = run.newest_game(), run.is_repeatable(), games_hash, weights_hash, collected, bool(run.checkpoints())
        return Finished(str(run.path), self._iteration, self._budget.elapsed(), *facts)

    def close(self) -> None:
        """Stops self-play and lets go of the run folder.

        In the middle of a run, its journal gets all finished games, and its metrics the time and evaluations spent.
        """
        under_way, self._under_way = self._under_way, False
        with self._last_first:
            if under_way:
                self._last_first.callback(self._note_stop)
            if (under_way or self._cut_short) and not self._settings.deterministic:
                self._last_first.callback(lambda: self._run.keep_in_play(self._fleet.unfinished))
            self._last_first.callback(self._fleet.close, ended=not under_way)
            if under_way or self._cut_short:
                self._last_first.callback(self._keep_rest)

    def _note(self, row: Mapping[str, Any]) -> None:
        """One more row of metrics."""
        self._run.append_metrics(row)

    def _note_stop(self) -> None:
        row = {"kind": self._STOPPED, "iteration": self._iteration, "seconds": self._budget.elapsed()}
        self._run.append_metrics(row | {"evaluations": self._evaluations})

    def _keep_rest(self) -> None:
        """Ends self-play, and journals the finished games that the journal lacks."""
        there = {record.game_id for record in self._run.journal}
        rest = {record.game_id: record for record in self._fleet.finish() if record.game_id not in there}
        self._evaluations += self._fleet.stats["rows"]
        if rest:
            self._run.append(*rest.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _play(
        self, iteration: int, metrics: dict[str, float], lineup: Lineup
    ) -> Generator[Event, None, list[_core.GameRecord]]:
        """Plays the games that an iteration lacks, seals them, and returns all of them in order of their ids.

        Where time is up before a game is over, there is nothing to seal, and none is returned.

        Args:
            iteration: in which they are played.
            metrics: the iteration's row so far; gets the figures of its games.
            lineup: who plays.
        """
        target = self._settings.games_per_iteration
        if iteration in self._run.sealed.iterations():  # before an interruption
            games = self._run.sealed.read(iteration)
        else:
            ids = range(self._next_game, self._next_game + target) if self._settings.deterministic else None
            known = {record.game_id for record in self._run.journal if ids is None or record.game_id in ids}
            if len(known) < target:
                yield from self._play_missing(iteration, metrics, lineup, known)
            if not known:
                self._note_stop()
                return []
            with self._time.stage("writing"):
                games = self._run.seal(iteration, ids)
            self._fleet.seal([record.game_id for record in games])
        self._next_game = max(self._next_game, *(record.game_id + 1 for record in games))
        evaluations = self._evaluations + self._fleet.stats["rows"]
        if evaluations > self._budget.evaluations:
            metrics["evaluations"] = round(evaluations - self._budget.evaluations)
            self._budget.evaluations = evaluations
        metrics |= {"games": len(games), "positions": sum(record.positions for record in games)}
        metrics |= self._resignation.note(games)
        self._ranked.note(games)
        return games

    def _play_missing(
        self, iteration: int, metrics: dict[str, float], lineup: Lineup, known: set[int]
    ) -> Iterator[Event]:
        """Self-play until there are enough games or time is up; adds their ids to `known`."""
        target, fleet = self._settings.games_per_iteration, self._fleet
        self._ask(known)
        fleet.play(lineup)
        if self._fleet.begun:  # now they would be games twice
            self._run.keep_in_play([])
        begin, reported, before, pipelines = time.monotonic(), 0.0, fleet.stats, fleet.pipeline_stats
        longest = fleet.longest
        positions = sum(record.positions for record in self._run.journal if record.game_id in known)
        while len(known) < target and self._budget.may_play(positions):
            new = fleet.take(target - len(known))
            while fleet.notices:
                yield Noticed(fleet.notices.pop(0))
            if new:
                self._run.append(*new)
            now = time.monotonic()
            known |= {record.game_id for record in new}
            positions += sum(record.positions for record in new)
            if now - reported > EVENT_SECONDS or len(known) == target:
                reported = now
                self._time.played(now - begin, pipelines, fleet.pipeline_stats)
                metrics |= rates(before, fleet.stats, now - begin) | self._time.shares()
                rows = worker_rows(self._workers, fleet.workers, now - begin)
                done, left = fleet.longest - longest, fleet.plies - fleet.longest
                soon = (now - begin) * left / done if done > 0 and left > 0 else None
                yield Played(iteration, len(known), dict(metrics), tuple(rows), fleet.longest, soon)
        fleet.pause()
        self._cut_short = len(known) < target
        seconds, workers = time.monotonic() - begin, fleet.workers
        self._time.played(seconds, pipelines, fleet.pipeline_stats)
        # Names of workers begin anew with each head: `since`, the iteration before its first one, tells them apart.
        facts = {"kind": "worker", "iteration": iteration, "since": self._since, "seconds": self._budget.elapsed()}
        for row in worker_rows(self._workers, workers, seconds):
            self._note(facts | row)
        self._workers = {worker.name: worker for worker in workers}

    def _ask(self, known: set[int]) -> None:
        """Asks for the ids that no game has: in a deterministic run for those of this iteration, else for all."""
        first, end, there = self._next_game, ENDLESS, [np.array([*known], np.int64)]
        if self._settings.deterministic:
            end = first + self._settings.games_per_iteration
            if end > ENDLESS:
                raise SettingsError(f"self-play cannot run with these settings: {end} games in this iteration")
        elif self._asked:
            return
        else:
            first = 0
            there += [np.array(self._run.sealed.ids(each), np.int64) for each in self._run.sealed.iterations()]
        taken = np.unique(np.concatenate(there))
        gaps = zip([first, *(taken + 1).tolist()], [*taken.tolist(), end], strict=True)
        done = [] if self._asked else list(self._run.journal)
        if not self._settings.deterministic and (sealed := self._run.sealed.iterations()):
            done += self._run.sealed.read(sealed[-1])
        self._fleet.ask([range(*gap) for gap in gaps if range(*gap)], done)
        self._asked = True


def worker_rows(
    before: Mapping[str, WorkerState], after: Sequence[WorkerState], seconds: float
) -> list[dict[str, Any]]:
    """One row for each worker that is alive, or did something between two looks at the fleet.

    Args:
        before: the states at the first look, by name.
        after: the states at the second look.
        seconds: of play in between.

    Returns:
        Rows with `worker` (its name), `alive`, `held`, `behind`, `silent` (see `WorkerState`), and what happened in
        between: `games` that counted, `evaluations`, `evaluations_per_second` and `batch_fill` (None without an
        evaluation).
    """
    rows = []
    for now in after:
        then = before.get(now.name, _NEW)
        speed = rates(then.stats, now.stats, seconds)
        row = {"worker": now.name, "alive": now.alive, "held": now.held, "behind": now.behind, "silent": now.silent}
        row |= {name: speed[name] for name in ("evaluations", "evaluations_per_second")}
        row |= {"games": now.games - then.games, "batch_fill": speed["batch_fill"] if speed["evaluations"] else None}
        if now.alive or row["games"] or row["evaluations"]:
            rows.append(row)
    return rows
