"""The part that training and collecting games share: a run's life, and its self-play."""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from azpy import _core
from azpy.errors import SettingsError
from azpy.fleet.fleet import Fleet, Lineup, WorkerState
from azpy.fleet.head import open_fleet
from azpy.fleet.table import ENDLESS
from azpy.games.names import make_game, only_here
from azpy.playing.ranked_reward import RankedReward
from azpy.playing.resignation import Resignation
from azpy.playing.selfplay import check_options, rates
from azpy.runs.folder import RunFolder
from azpy.settings.run import FIXED_SETTINGS, Settings
from azpy.system import made_with
from azpy.training.budget import Budget
from azpy.training.events import Event, Finished, Noticed, Played, Started
from azpy.training.timing import TimeShares

EVENT_SECONDS = 0.2  # how often a long stage reports
NOT_ROW_EXACT = "here the model's answer to a position depends on what else is in its batch"
CANNOT_BE_DETERMINISTIC = f"the run cannot be deterministic: {NOT_ROW_EXACT}; leave out --deterministic"
_NEW = WorkerState("", False, 0, None, 0.0, 0, Counter())


@dataclass(frozen=True)
class Context:
    """What playing and learning share: the settings and the folder of a run, and what it may spend."""

    settings: Settings
    start: _core.State
    budget: Budget
    run: RunFolder
    time: TimeShares = field(default_factory=TimeShares)
    watchers: list[Callable[[Mapping[str, Any]], None]] = field(default_factory=list)  # of rows of metrics

    def note(self, row: Mapping[str, Any]) -> None:
        """One more row of metrics."""
        self.run.append_metrics(row)
        for watcher in self.watchers:
            watcher(row)


def start_of(settings: Settings) -> _core.State:
    """Where a run's games begin; refuses settings with which self-play cannot be, before anything is made."""
    if settings.workers and only_here(settings.game):
        raise SettingsError(
            f"game {settings.game!r} cannot be imported by other processes, as workers {settings.workers} needs: move "
            "it to a file such as mygame.py and import it from there"
        )
    start = make_game(settings.game)
    check_options(settings, start)
    return start


class Loop:
    """Iterations of self-play in a run folder. A subclass calls `__init__` when it is ready to go on.

    Args:
        settings: of the run.
        start: where its games begin, see `start_of`.
        budget: of the run.
        path: the run folder; made, or gone on with.
        packages: whose versions the run depends on.
        made: other facts that it depends on.
    """

    _STOPPED: ClassVar[str]  # the kind of the row of metrics that an interruption leaves

    def __init__(
        self,
        settings: Settings,
        start: _core.State,
        budget: Budget,
        path: str | os.PathLike[str],
        packages: Sequence[str],
        **made: str | int,
    ) -> None:
        self._iteration, self._under_way = 0, False
        self._last_first = contextlib.ExitStack()  # `close` ends all of it, whatever fails
        playing = RankedReward(settings, start), open_fleet(settings, start)
        run = RunFolder(path, asdict(settings), FIXED_SETTINGS, made_with(*packages) | made)
        self._last_first.callback(run.close)
        self._context = Context(settings, start, budget, run)
        self._games = Games(self._context, *playing, self._STOPPED)
        try:
            self._resume()
            if not settings.deterministic:  # there a game has the tree of each ply before
                self._games.fleet.begun = run.in_play()
            self._games.since = self._iteration
            run.note_changes(self._iteration, budget.elapsed())
            run.write_settings()
        except BaseException:
            self._last_first.close()
            raise

    @property
    def flags(self) -> Sequence[str]:
        """Of `az-train` for this run, besides the settings."""
        return self._context.run.flags

    def _resume(self) -> None:
        """Goes on from the folder's contents."""
        raise NotImplementedError

    def _resume_budget(self, row: str) -> None:
        """Counts the time and evaluations up to the last row of this kind, and of an interrupted iteration after it."""
        run, budget = self._context.run, self._context.budget
        run.trim_metrics(self._iteration)
        budget.advance_to(run.spent("seconds", row, "match", self._STOPPED))
        self._games.evaluations = max(budget.evaluations, run.spent("evaluations", self._STOPPED))

    def _begin(self) -> None:
        """From now on, an interruption leaves a row of metrics."""
        self._under_way = True
        self._context.time.restart()

    def _started(
        self, evaluators: Sequence[Any], player: str, notices: Sequence[str] = (), parameters: int | None = None
    ) -> Started:
        """The first event: `evaluators` play, in words `player`."""
        run, settings = self._context.run, self._context.settings
        notes = dict.fromkeys(note for evaluator in evaluators for note in getattr(evaluator, "notes", ()))
        every, seconds = (*run.notices, *notes, *notices), self._context.budget.elapsed()
        return Started(str(run.path), settings, self._iteration, seconds, every, player, parameters)

    def _finished(self, collected: int | None = None) -> Finished:
        """The last event; `collected` is the number of a collection's games, None for training."""
        self._under_way = False
        run, games_hash, weights_hash = self._context.run, None, None
        if self._context.settings.deterministic and collected is None:
            games_hash, weights_hash = run.games_hash(), run.weights_hash(self._iteration)
        facts = run.newest_game(), run.is_repeatable(), games_hash, weights_hash, collected, bool(run.checkpoints())
        return Finished(str(run.path), self._iteration, self._context.budget.elapsed(), *facts)

    def close(self) -> None:
        """Stops self-play and lets go of the run folder.

        In the middle of a run, its journal gets all finished games, and its metrics the time and evaluations spent.
        """
        under_way, self._under_way = self._under_way, False
        with self._last_first:
            if under_way:
                self._last_first.callback(self._games.note_stop, self._iteration)
            self._last_first.callback(self._games.close, ended=not under_way)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Games:
    """The self-play of a run.

    Args:
        context: of the run.
        ranked: the scores that its games are to beat.
        fleet: plays them.
        stopped: the kind of the row of metrics that an interruption leaves.

    Attributes:
        fleet, ranked: as given.
        resignation: when players resign.
        next_game: the least id that no sealed game has.
        evaluations: of the run before this process.
        since: the iteration before the first one of this process.
    """

    def __init__(self, context: Context, ranked: RankedReward, fleet: Fleet, stopped: str) -> None:
        self._context, self._stopped = context, stopped
        self.fleet, self.ranked, self.resignation = fleet, ranked, Resignation(context.settings.resign_below)
        self.next_game = self.since = 0
        self.evaluations = 0.0
        self._cut_short = False  # the last iteration's self-play, by the clock
        self._asked = False  # the fleet for games
        self._workers: dict[str, WorkerState] = {}  # as the last rows of metrics show them

    @property
    def how(self) -> tuple[float, float | None]:
        """How the games to come are played: the last fields of a `Lineup`."""
        return self.resignation.below, self.ranked.score_to_beat

    def note_stop(self, iteration: int) -> None:
        """The row of metrics that an interruption leaves after an iteration."""
        row = {"kind": self._stopped, "iteration": iteration, "seconds": self._context.budget.elapsed()}
        self._context.run.append_metrics(row | {"evaluations": self.evaluations})

    def close(self, *, ended: bool) -> None:
        """Ends self-play. If games are in play, the journal gets those that are finished and that it lacks."""
        run, cut_short = self._context.run, self._cut_short or not ended
        with contextlib.ExitStack() as last_first:
            if cut_short and not self._context.settings.deterministic:
                last_first.callback(lambda: run.keep_in_play(self.fleet.unfinished))
            last_first.callback(self.fleet.close, ended=ended)
            if cut_short:
                there = {record.game_id for record in run.journal}
                rest = {record.game_id: record for record in self.fleet.finish() if record.game_id not in there}
                self.evaluations += self.fleet.stats["rows"]
                if rest:
                    run.append(*rest.values())

    def play(
        self, iteration: int, metrics: dict[str, float], lineup: Lineup
    ) -> Generator[Event, None, list[_core.GameRecord]]:
        """Plays the games that an iteration lacks, seals them, and returns all of them in order of their ids.

        Where time is up before a game is over, there is nothing to seal, and none is returned.

        Args:
            iteration: in which they are played.
            metrics: the iteration's row so far; gets the figures of its games.
            lineup: who plays.
        """
        settings, run, budget = self._context.settings, self._context.run, self._context.budget
        target = settings.games_per_iteration
        if iteration in run.sealed.iterations():  # before an interruption
            games = run.sealed.read(iteration)
        else:
            ids = range(self.next_game, self.next_game + target) if settings.deterministic else None
            known = {record.game_id for record in run.journal if ids is None or record.game_id in ids}
            if len(known) < target:
                yield from self._play_missing(iteration, metrics, lineup, known)
            if not known:
                self.note_stop(iteration - 1)
                return []
            with self._context.time.stage("writing"):
                games = run.seal(iteration, ids)
            self.fleet.seal([record.game_id for record in games])
        self.next_game = max(self.next_game, *(record.game_id + 1 for record in games))
        evaluations = self.evaluations + self.fleet.stats["rows"]
        if evaluations > budget.evaluations:
            metrics["evaluations"] = round(evaluations - budget.evaluations)
            budget.evaluations = evaluations
        metrics |= {"games": len(games), "positions": sum(record.positions for record in games)}
        metrics |= self.resignation.note(games)
        self.ranked.note(games)
        return games

    def _play_missing(
        self, iteration: int, metrics: dict[str, float], lineup: Lineup, known: set[int]
    ) -> Iterator[Event]:
        """Self-play until there are enough games or time is up; adds their ids to `known`."""
        target, fleet = self._context.settings.games_per_iteration, self.fleet
        run, budget, shares = self._context.run, self._context.budget, self._context.time
        self._ask(known)
        fleet.play(lineup)
        if fleet.begun:  # now they would be games twice
            run.keep_in_play([])
        begin, reported, before, pipelines = time.monotonic(), 0.0, fleet.stats, fleet.pipeline_stats
        longest = fleet.longest
        positions = sum(record.positions for record in run.journal if record.game_id in known)
        while len(known) < target and budget.may_play(positions):
            new = fleet.take(target - len(known))
            while fleet.notices:
                yield Noticed(fleet.notices.pop(0))
            if new:
                run.append(*new)
            now = time.monotonic()
            known |= {record.game_id for record in new}
            positions += sum(record.positions for record in new)
            if now - reported > EVENT_SECONDS or len(known) == target:
                reported = now
                shares.played(now - begin, pipelines, fleet.pipeline_stats)
                metrics |= rates(before, fleet.stats, now - begin) | shares.shares()
                rows = worker_rows(self._workers, fleet.workers, now - begin)
                done, left = fleet.longest - longest, fleet.plies - fleet.longest
                soon = (now - begin) * left / done if done > 0 and left > 0 else None
                yield Played(iteration, len(known), dict(metrics), tuple(rows), fleet.longest, soon)
        fleet.pause()
        self._cut_short = len(known) < target
        seconds, workers = time.monotonic() - begin, fleet.workers
        shares.played(seconds, pipelines, fleet.pipeline_stats)
        # Names of workers begin anew with each head: `since`, the iteration before its first one, tells them apart.
        facts = {"kind": "worker", "iteration": iteration, "since": self.since, "seconds": budget.elapsed()}
        for row in worker_rows(self._workers, workers, seconds):
            self._context.note(facts | row)
        self._workers = {worker.name: worker for worker in workers}

    def _ask(self, known: set[int]) -> None:
        """Asks for the ids that no game has: in a deterministic run for those of this iteration, else for all."""
        settings, run = self._context.settings, self._context.run
        first, end, there = self.next_game, ENDLESS, [np.array([*known], np.int64)]
        if settings.deterministic:
            end = first + settings.games_per_iteration
            if end > ENDLESS:
                raise SettingsError(f"self-play cannot run with these settings: {end} games in this iteration")
        elif self._asked:
            return
        else:
            first = 0
            there += [np.array(run.sealed.ids(each), np.int64) for each in run.sealed.iterations()]
        taken = np.unique(np.concatenate(there))
        gaps = zip([first, *(taken + 1).tolist()], [*taken.tolist(), end], strict=True)
        done = [] if self._asked else list(run.journal)
        if not settings.deterministic and (sealed := run.sealed.iterations()):
            done += run.sealed.read(sealed[-1])
        self.fleet.ask([range(*gap) for gap in gaps if range(*gap)], done)
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
