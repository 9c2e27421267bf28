"""The common part of training and collecting: the life of a run, and its self-play."""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np

from azpy import _core
from azpy.errors import SettingsError
from azpy.fleet.fleet import Lineup, WorkerState
from azpy.fleet.head import open_fleet
from azpy.fleet.table import ENDLESS
from azpy.games.names import make_game, only_here
from azpy.playing.ranked_reward import RankedReward
from azpy.playing.selfplay import check_options, rates
from azpy.reports.report import make_report
from azpy.runs.folder import RunFolder
from azpy.settings.run import FIXED_SETTINGS, Settings, refuse_beside_hidden
from azpy.system import made_with
from azpy.training.budget import Budget
from azpy.training.events import Event, Finished, Noticed, Played, Started
from azpy.training.timing import TimeShares

EVENT_SECONDS = 0.2  # how often a long stage reports
NOT_ROW_EXACT = "the model's output for a position depends on the rest of its batch"
CANNOT_BE_DETERMINISTIC = f"the run cannot be deterministic, because {NOT_ROW_EXACT}: leave out --deterministic"
_NEW = WorkerState("", False, 0, None, 0.0, 0, Counter())


def start_of(settings: Settings) -> _core.State:
    """Return where a run's games begin.

    Raises:
        SettingsError: self-play cannot have these settings; nothing was made yet.
    """
    if settings.workers and only_here(settings.game):
        raise SettingsError(
            f"game {settings.game!r} cannot be imported by other processes, as workers {settings.workers} needs: move "
            "it to a file such as mygame.py and import it from there"
        )
    start = make_game(settings.game)
    refuse_beside_hidden(settings, start)
    check_options(settings, start)
    return start


class Loop:
    """Iterations of self-play in a run folder. A subclass calls `__init__` when it is ready to go on.

    Args:
        settings, budget: of the run.
        start: where its games begin, see `start_of`.
        path: the run folder; made, or gone on with.
        packages: whose versions the run depends on.
        made: other facts that it depends on.

    Attributes:
        settings, start, budget: as given.
        folder: holds all that is done.
        time: where the time of the iteration at hand goes.
        fleet: plays the games.
        ranked: the scores that games of one player are to beat.
        iteration: the last one that is done.
        next_game: the least id that no sealed game has.
        watchers: functions that get each row of metrics.
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
        self.settings, self.start, self.budget, self.time = settings, start, budget, TimeShares()
        self.iteration = self.next_game = 0
        self.watchers: list[Callable[[Mapping[str, Any]], None]] = []
        self._evaluations = 0.0  # of the run before this process
        self._under_way = False
        self._cut_short = False  # the last iteration's self-play, by the clock
        self._asked = False  # the fleet for games
        self._so_far: Any = None  # of the iteration at hand so far: seconds of play, and the fleet's totals before it
        self._workers: dict[str, WorkerState] = {}  # as the last rows of metrics show them
        self._last_first = contextlib.ExitStack()  # `close` ends everything in it, even if one part fails
        self.ranked, self.fleet = RankedReward(settings, start), open_fleet(settings, start)
        self.folder = RunFolder(path, asdict(settings), FIXED_SETTINGS, made_with(*packages) | made)
        self._last_first.callback(self.folder.close)
        try:
            self._resume()
            if self._goes_on:  # a deterministic game needs its earlier trees, which are not stored
                self.fleet.begun = self.folder.in_play()
            self._since = self.iteration  # before the first iteration of this process
            self.folder.note_changes(self.iteration, budget.elapsed())
            self.folder.write_settings()
        except BaseException:
            self._last_first.close()
            raise

    def note(self, row: Mapping[str, Any]) -> None:
        """Add a row of metrics."""
        self.folder.append_metrics(row)
        for watcher in self.watchers:
            watcher(row)

    def write_report(self) -> None:
        """Write report.html of what is done so far."""
        folder, sealed = self.folder, self.folder.sealed.iterations()
        games = folder.sealed.read(sealed[-1]) if sealed else []
        page = make_report(str(folder.path), asdict(self.settings), folder.metrics(), games, self.start)
        folder.replace("report.html", page)

    def _resume(self) -> None:
        """Go on from the folder's contents."""
        raise NotImplementedError

    def _resume_budget(self, row: str) -> None:
        """Count the time and evaluations up to the last row of this kind, and of an interrupted iteration after it."""
        self.folder.trim_metrics(self.iteration)
        self.budget.advance_to(self.folder.spent("seconds", row, "match", self._STOPPED))
        self._evaluations = max(self.budget.evaluations, self.folder.spent("evaluations", self._STOPPED))

    def _begin(
        self, evaluators: Sequence[Any], player: str, notices: Sequence[str] = (), parameters: int | None = None
    ) -> Started:
        """The first event: `evaluators` play, in words `player`."""
        notes = dict.fromkeys(note for evaluator in evaluators for note in getattr(evaluator, "notes", ()))
        every, seconds = (*self.folder.notices, *notes, *notices), self.budget.elapsed()
        return Started(
            str(self.folder.path), self.settings, self.iteration, seconds, every, player, parameters, self.start.hides
        )

    def _finish(self, collected: int | None = None) -> Finished:
        """The last event; `collected` is the number of a collection's games, None for training."""
        self._under_way = False
        folder, games_hash, weights_hash = self.folder, None, None
        if self.settings.deterministic and collected is None:
            games_hash, weights_hash = folder.games_hash(), folder.weights_hash(self.iteration)
        facts = folder.newest_game(), folder.is_repeatable(), games_hash, weights_hash, collected
        seconds, has_model = self.budget.elapsed(), bool(folder.checkpoints())
        return Finished(str(folder.path), self.iteration, seconds, *facts, has_model)

    def close(self) -> None:
        """Stop self-play and let go of the run folder.

        In the middle of a run, its journal gets all finished games, and its metrics the time and evaluations spent.
        """
        under_way, self._under_way = self._under_way, False
        with self._last_first:
            if under_way:
                self._last_first.callback(self._note_stop)
            self._last_first.callback(self._end_play, ended=not under_way)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Self-play

    def _play(self, metrics: dict[str, float], lineup: Lineup) -> Generator[Event, None, list[_core.GameRecord]]:
        """Play the games that the next iteration lacks, seal them, and return all of them in order of their ids.

        Where time is up before a game is over, there is nothing to seal, and none is returned. The
        figures of its games are added to `metrics`, the iteration's row so far.
        """
        iteration, target = self.iteration + 1, self.settings.games_per_iteration
        folder, budget = self.folder, self.budget
        if iteration in folder.sealed.iterations():  # before an interruption
            games = folder.sealed.read(iteration)
        else:
            ids = range(self.next_game, self.next_game + target) if self._one_network else None
            known = {record.game_id for record in folder.journal if ids is None or record.game_id in ids}
            if len(known) < target:
                yield from self._play_missing(metrics, lineup, known, folder.append)
            if not known:
                self._note_stop()
                return []
            with self.time.stage("writing"):
                games = folder.seal(iteration, ids)
            self.fleet.seal([record.game_id for record in games])
        self._so_far = None
        self.next_game = max(self.next_game, *(record.game_id + 1 for record in games))
        evaluations = self._evaluations + self.fleet.stats["rows"]
        if evaluations > budget.evaluations:
            metrics["evaluations"] = round(evaluations - budget.evaluations)
            budget.evaluations = evaluations
        metrics |= {"games": len(games), "positions": sum(record.positions for record in games)}
        self.ranked.note(games)
        return games

    def _play_unstored(
        self, metrics: dict[str, float], lineup: Lineup
    ) -> Generator[Event, None, list[_core.GameRecord]]:
        """Play as many games as an iteration stores; return them in order of their ids, and store none.

        There are fewer where time is up. Arguments are those of `_play`.
        """
        games, target = list[_core.GameRecord](), self.settings.games_per_iteration
        yield from self._play_missing(metrics, lineup, set(), lambda *new: games.extend(new))
        if len(games) == target:
            self.fleet.seal([record.game_id for record in games])
            self.next_game += target
        return sorted(games, key=lambda record: record.game_id)

    def _play_missing(
        self, metrics: dict[str, float], lineup: Lineup, known: set[int], keep: Callable[..., object]
    ) -> Iterator[Event]:
        """Self-play until there are enough games or time is up; adds their ids to `known`, and has `keep` take them."""
        iteration, target = self.iteration + 1, self.settings.games_per_iteration
        fleet, folder, budget, shares = self.fleet, self.folder, self.budget, self.time
        self._ask(known)
        fleet.play(lineup)
        if fleet.begun:  # they are in play again, so forget the stored ones
            folder.keep_in_play([])
        so_far, before, pipelines = self._so_far or (0.0, fleet.stats, fleet.pipeline_stats)
        begin, reported = time.monotonic() - so_far, 0.0
        positions = sum(record.positions for record in folder.journal if record.game_id in known)
        while len(known) < target and budget.may_play(positions):
            new = fleet.take(target - len(known))
            while fleet.notices:
                yield Noticed(fleet.notices.pop(0))
            if new:
                keep(*new)
            now = time.monotonic()
            known |= {record.game_id for record in new}
            positions += sum(record.positions for record in new)
            if now - reported > EVENT_SECONDS or len(known) == target:
                reported = now
                shares.played(now - begin, pipelines, fleet.pipeline_stats)
                metrics |= rates(before, fleet.stats, now - begin) | shares.shares()
                rows = worker_rows(self._workers, fleet.workers, now - begin)
                yield Played(iteration, len(known), dict(metrics), tuple(rows), fleet.longest)
        fleet.pause()
        self._cut_short = len(known) < target
        seconds, workers = time.monotonic() - begin, fleet.workers
        self._so_far = seconds, before, pipelines
        shares.played(seconds, pipelines, fleet.pipeline_stats)
        # Names of workers begin anew with each head: `since`, the iteration before its first one, tells them apart.
        facts = {"kind": "worker", "iteration": iteration, "since": self._since, "seconds": budget.elapsed()}
        for row in worker_rows(self._workers, workers, seconds):
            self.note(facts | row)
        self._workers = {worker.name: worker for worker in workers}

    def _ask(self, known: set[int]) -> None:
        """Ask for the ids that no game has: for those of the next games where one network plays them, else for all."""
        folder, fixed = self.folder, self._one_network
        first, end, there = self.next_game, ENDLESS, [np.array([*known], np.int64)]
        if fixed:
            end = first + self.settings.games_per_iteration
            if end > ENDLESS:
                raise SettingsError(f"self-play cannot run with these settings: {end} games in this iteration")
        elif self._asked:
            return
        else:
            first = 0
            there += [np.array(folder.sealed.ids(each), np.int64) for each in folder.sealed.iterations()]
        taken = np.unique(np.concatenate(there))
        gaps = zip([first, *(taken + 1).tolist()], [*taken.tolist(), end], strict=True)
        done = [] if self._asked else list(folder.journal)
        if not fixed and (sealed := folder.sealed.iterations()):
            done += folder.sealed.read(sealed[-1])
        self.fleet.ask([range(*gap) for gap in gaps if range(*gap)], done)
        self._asked = True

    @property
    def _goes_on(self) -> bool:
        """Whether games in play go on where the run does."""
        return not self._one_network

    @property
    def _one_network(self) -> bool:
        """Whether one network plays all games of a step, from their first ply."""
        return self.settings.deterministic or self.start.hides

    def _note_stop(self) -> None:
        """The row of metrics that an interruption leaves."""
        row = {"kind": self._STOPPED, "iteration": self.iteration, "seconds": self.budget.elapsed()}
        self.folder.append_metrics(row | {"evaluations": self._evaluations})

    def _end_play(self, *, ended: bool) -> None:
        """End self-play. If games are in play, the journal gets those that are finished and that it lacks."""
        cut_short = self._cut_short or not ended
        with contextlib.ExitStack() as last_first:
            if cut_short and self._goes_on:
                last_first.callback(lambda: self.folder.keep_in_play(self.fleet.unfinished))
            last_first.callback(self.fleet.close, ended=ended)
            if cut_short and not self.start.hides:  # else their targets are of a policy that is gone
                there = {record.game_id for record in self.folder.journal}
                rest = {record.game_id: record for record in self.fleet.finish() if record.game_id not in there}
                self._evaluations += self.fleet.stats["rows"]
                if rest:
                    self.folder.append(*rest.values())


def worker_rows(
    before: Mapping[str, WorkerState], after: Sequence[WorkerState], seconds: float
) -> list[dict[str, Any]]:
    """One row for each worker that is alive or did something between two looks at the fleet.

    `before` is by name; `seconds` of play lie between the two.

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
