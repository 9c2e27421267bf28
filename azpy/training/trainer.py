"""Training: self-play, fit, export with a parity check, swap, with a match now and then, until time is up.

Self-play and fitting take turns, because on one machine they share the cores. With the setting `learner_lag` a process
of its own fits the games of one iteration while the games of the next are played. The run folder holds all that
is done; a new `Trainer` on the same folder goes on from there.
"""

import importlib.util
import math
import os
import shlex
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from azpy import _core
from azpy.errors import EXTRAS, ModelError, RunError, SettingsError, missing_to_train
from azpy.evaluators.sessions import import_onnxruntime
from azpy.games.names import must_be_typed
from azpy.learning.export import to_onnx
from azpy.learning.learner import Learner, device_of, use_threads
from azpy.learning.own import weights_in
from azpy.matches.arena import Player, RandomPlayer, SearchPlayer, mcts, play_match
from azpy.matches.openings import Book
from azpy.playing.selfplay import on_devices
from azpy.reports.report import make_report
from azpy.reports.statistics import game_statistics
from azpy.runs.imports import Filters, import_games, is_held_out, learned_from
from azpy.runs.reader import checkpoint_at, read_weights
from azpy.runs.storage import numbered
from azpy.settings.run import Settings, is_own, match_search
from azpy.settings.toml import path_argument
from azpy.training.advice import advise
from azpy.training.events import Event, Fitted, Imported, Matched, Noticed, Saved, Supervised
from azpy.training.fitting import (
    DivergedError,
    Window,
    diverged,
    fit,
    learner_of,
    load_newest,
    sampling_of,
    steps_of,
    what_to_do,
)
from azpy.training.generations import Generations, Ready, is_kept
from azpy.training.learner_process import LearnerProcess
from azpy.training.loop import EVENT_SECONDS, NOT_ROW_EXACT, Loop
from azpy.training.rehearsal import rehearse
from azpy.training.tensorboard import Board
from azpy.training.timing import TimeShares

_CLASS_ROWS = 512  # on which the means of the three predictions are measured
_MOST_MEASURED = 4096  # rows of held-out games
_MEASUREMENTS = 10  # of the fit to the imported games
_BUILDING = "TensorRT builds an engine for each network before it plays, which takes from seconds to minutes"
_UNTRAINED = "untrained"  # the network that the run's seed gives, without a gradient step
_OPPONENTS: dict[str, Callable[[], Player] | None] = {  # the weakest first; the run itself makes the untrained player
    "random": RandomPlayer,
    _UNTRAINED: None,
    "mcts-100": lambda: mcts(100),
    "mcts-1000": lambda: mcts(1000),
}


class Trainer(Loop):
    """One training run on one machine.

    Args:
        settings: of the run.
        path: the run folder; made, or gone on with.
        supervised: files and folders of games that the network learns from before self-play begins, see
            `import_games`. They are read once: the run keeps the games as those of iteration 0.

    Raises:
        RunError: the folder is in use, damaged, or of another run; a file of games is missing, damaged, or of another
            game, or the run began without these files.
        SettingsError: no such game.
        MissingPackageError: a package that training needs is not installed; nothing was made.

    Example:
        >>> with Trainer(Settings("tic_tac_toe", network="2x16", iterations=1), "runs/t") as trainer:  # doctest: +SKIP
        ...     for event in trainer.run():
        ...         print(event)
    """

    _STOPPED = "stopped"

    def __init__(self, settings: Settings, path: str | os.PathLike[str], supervised: Sequence[str] = ()) -> None:
        for package in (*EXTRAS["cpu"], *EXTRAS["train"]):
            if importlib.util.find_spec(package) is None:
                raise missing_to_train(package)
        import_onnxruntime(settings.all_devices[0].choices[-1])  # it may be there, and damaged
        super().__init__(settings, len(_OPPONENTS))
        self._match_search = match_search(settings, self._start)
        self._cores = use_threads(single=settings.deterministic)
        self._learner = learner_of(settings, self._start, here=not settings.learner_lag)
        rehearse(settings, self._start)
        self._window = Window(settings, self._start)
        self._begun_with = ""
        if settings.init is not None and not numbered(Path(path) / "checkpoints"):
            self._begun_with = f"the network begins as that of {self._begin_with(Path(settings.init))}"
        if supervised and settings.ranked_reward:
            raise SettingsError(
                "--supervised needs one way to count scores, and --ranked-reward changes it from game to game: leave "
                "out --ranked-reward or the files"
            )
        self._supervised, self._imported = list(map(path_argument, supervised)), None
        self._has_imported = False  # iteration 0 holds imported games
        if supervised and not numbered(Path(path) / "games", ".npz") and not numbered(Path(path) / "checkpoints"):
            rating, seconds = settings.supervised_min_rating, settings.supervised_min_seconds
            filters = Filters(rating, seconds, settings.score_to_beat)
            # Before the folder is made: a bad file leaves nothing behind.
            self._imported = import_games(supervised, self._start, settings.seed, filters)
            records, share = self._imported.records, settings.supervised_held_out
            if not learned_from(records, share):
                raise RunError(
                    f"all {len(records)} imported games are held out: give more files, or less than {share:g} as "
                    "--supervised-held-out"
                )
        self._board: Board | None = None
        self._said_few = False  # that there are fewer positions than a batch has
        # As many iterations as lie between two matches: advice looks at all of them.
        self._recent: deque[dict[str, float]] = deque(maxlen=settings.match_every)
        self._beside: LearnerProcess | None = None
        if settings.learner_lag:
            device_of(settings.training_device, settings.training_precision)  # refuses what is not there
            self._beside = LearnerProcess(Path(path), settings, self._learner, len(_OPPONENTS))
            self._last_first.callback(self._beside.close)
        self._open(path, ("numpy", "torch", "onnxruntime"), cores=self._cores)

    def _begin_with(self, path: Path) -> str:
        """Takes over a checkpoint's network or a file's weights; returns where they come from, and what they are."""
        if not path.exists():
            raise RunError(f"--init {path} does not exist, expected a run folder, a checkpoint or a file of weights")
        if path.is_file():
            weights = weights_in(path)
        else:
            path = checkpoint_at(path)
            weights = read_weights(path)
        try:
            said = self._learner.begin_with(weights)
        except ModelError as error:
            raise SettingsError(f"--init {self._settings.init}: {error}") from error
        if not self._learner.is_finite():
            raise SettingsError(f"--init {self._settings.init}: its network is not finite, give an earlier checkpoint")
        return f"{path}, {said}"

    def run(self) -> Iterator[Event]:
        """Trains until the budget is spent; every finished iteration leaves a checkpoint.

        Yields:
            The events, in order. An interruption at any point loses at most the games in play and the gradient steps
            since the last checkpoint, once `close` is called.
        """
        generations = self._generations
        self._under_way, self._time = True, TimeShares()
        if not generations.ready.evaluators:
            if generations.on_tensorrt:
                yield Noticed(_BUILDING)
            if not generations.model:
                generations.publish(self._learner.averaged)
                if (self._begun_with or is_own(self._settings.network)) and not self._has_imported:
                    self._save(0)  # the other run may have another network soon, and the user's function be another
            else:
                is_checked = not self._budget.is_over(self._iteration) and self._window.buffer.num_positions
                generations.reopen(self._learner.averaged, self._iteration, self._window.buffer if is_checked else None)
        evaluators, refused = generations.ready.evaluators, generations.ready.refused
        notices = [note for note in (self._begun_with, f"fp32 plays, as {refused}" if refused else "") if note]
        if not all(evaluator.row_exact for evaluator in evaluators):
            notices.append(f"{NOT_ROW_EXACT}: the same seed can give other games")
        asked, ready = self._settings.precision, generations.ready
        asked = generations.reduced if asked == "auto" else asked
        later = asked not in {"fp32", ready.precision} and ready.int8 is None
        player = f"{on_devices(evaluators)}{f' ({asked} once it passes its check)' if later else ''}, and is trained "
        if self._beside is None:
            player += f"on {self._learner.device}{' in bf16' if self._learner.precision == 'bf16' else ''}"
        else:
            player += "in a process of its own"
        parameters = sum(parameter.numel() for parameter in self._learner.averaged.parameters())
        yield self._started(evaluators, player, notices, parameters)
        try:
            yield from self._go_on()
        except DivergedError as error:
            raise DivergedError(f"{error}. {what_to_do(self._run, self._settings)}") from error
        yield self._finished()

    def _go_on(self) -> Iterator[Event]:
        """All iterations and matches until the budget is spent."""
        generations = self._generations
        if self._has_imported and not self._run.checkpoints():
            yield from self._supervise()
        over = last = False
        while not over:
            self._run.prune_checkpoints(lambda iteration: is_kept(iteration, self._iteration))
            if generations.on_tensorrt:
                generations.prune_engines()
            over = last or self._budget.is_over(self._iteration)
            if (over and self._run.checkpoints()) or (self._iteration and self._budget.match_is_due(self._iteration)):
                yield from self._match(over)
            # A match on the way can take the rest of the time. The last match may leave some.
            if not over and not self._budget.is_over(self._iteration):
                last = yield from self._iterate(self._iteration + 1)

    def _supervise(self) -> Iterator[Event]:
        """Fits the network to the imported games, which stay in the window until self-play has filled it.

        The checkpoint of iteration 0 ends this part. A part that was killed begins again.
        """
        settings, budget, generations = self._settings, self._budget, self._generations
        if self._imported is not None:
            yield self._keep_imported()
        begin, games = budget.elapsed(), self._run.sealed.read(0)
        self._next_game = len(games)
        self._window.add(games)
        known = learned_from(games, settings.supervised_held_out)
        buffer = _core.ReplayBuffer(self._start, max_positions=2**40)
        buffer.extend(known)
        unknown = _core.ReplayBuffer(self._start, max_positions=2**40)
        unknown.extend(record for record in games if is_held_out(record, settings.supervised_held_out))
        count = min(unknown.num_positions, _MOST_MEASURED)
        rows = unknown.sample(count, seed=0, symmetries=False) if count else None
        with self._time.stage("fitting"):
            steps = max(1, round(buffer.num_positions * settings.supervised_passes / settings.batch_size))
            learner = self._learner
            if self._beside is not None:  # its process has no part in it
                learner = learner_of(settings, self._start)
                learner.load(self._learner.model_arrays(), self._learner.optimizer_arrays())
            reported, step = 0.0, Fitted(0, 0, steps, 0.0, 0.0)
            measured = {-(-steps * part // _MEASUREMENTS) for part in range(1, _MEASUREMENTS)} - {steps}
            sampling = sampling_of(settings, imported=True)
            for step in fit(learner, buffer, settings, budget, 0, steps, imported=True):
                if step.taken in measured:
                    learner.set_statistics(buffer, **sampling)
                    yield self._measure_supervised(learner, step, rows)
                elif time.monotonic() - reported > EVENT_SECONDS:
                    reported = time.monotonic()
                    yield Supervised(step.taken, steps, step.policy_loss, step.value_loss)
            yield self._measure_supervised(learner, step, rows)
            if learner is not self._learner:
                self._learner.load(learner.model_arrays(), learner.optimizer_arrays())
        if step.taken < steps:
            yield Noticed(
                f"the fit of the imported games ended after {step.taken:,} of {steps:,} steps, as --minutes is over; a "
                "new --out with more --minutes fits them whole"
            )
        fitted = step.taken * settings.batch_size / settings.passes
        budget.note_iteration(0.0, budget.elapsed() - begin, fitted, 0)
        generations.publish(self._learner.averaged, 0, self._window.buffer, last=budget.is_over(0))
        self._save(0)
        self._time = TimeShares()

    def _measure_supervised(self, learner: Learner, step: Fitted, rows: Sequence[Any] | None) -> Supervised:
        """Notes the losses of the fit so far, and those on rows of held-out games."""
        metrics = {"steps": step.taken, "policy_loss": step.policy_loss, "value_loss": step.value_loss}
        if rows is not None:
            found = learner.measure(rows)
            metrics |= {f"held_out_{name}": found[name] for name in ("policy_loss", "value_loss")}
            metrics["move_match"] = found["move_match"]
            if not all(map(math.isfinite, metrics.values())):  # JSON has no such numbers
                what = ", ".join(f"{name} {value:.4g}" for name, value in metrics.items() if name != "steps")
                raise diverged(self._settings, step, what, after=True)
        metrics["seconds"] = self._budget.elapsed()
        self._note({"kind": "supervised", "iteration": 0, **metrics})
        return Supervised(step.taken, step.steps, step.policy_loss, step.value_loss, metrics)

    def _keep_imported(self) -> Imported:
        """Puts the imported games and what became of the others on the disk."""
        imported, self._imported = self._imported, None
        assert imported is not None  # noqa: S101  the caller looked
        known = learned_from(imported.records, self._settings.supervised_held_out)
        positions = sum(record.positions for record in known)
        left_out = {words: (count, first) for words, count, first in imported.reasons()}
        held_out = len(imported.records) - len(known)
        row = {"kind": "imported", "iteration": 0, "files": self._supervised, "found": imported.found}
        row |= {"games": len(known), "positions": positions, "held_out": held_out}
        row |= {"left_out": left_out, "seconds": self._budget.elapsed()}
        self._run.append_metrics(row)  # first: without the games it counts for nothing
        self._run.sealed.write(0, imported.records, imported.tags)
        return Imported(imported.files, imported.found, len(known), positions, held_out, left_out)

    def _iterate(self, iteration: int) -> Generator[Event, None, bool]:
        """Plays, fits and saves; returns whether this iteration was the last one."""
        settings, budget, generations = self._settings, self._budget, self._generations
        begin, metrics, there = budget.elapsed(), dict[str, float](), len(self._run.journal)
        if self._beside is not None and (steps := steps_of(settings, self._window)):
            sealed = [before for before in self._run.sealed.iterations() if before < iteration]
            self._beside.begin(iteration, steps, self._window, sealed, budget)
        own = budget.simulations(iteration), self._ranked.score_to_beat
        lineup = generations.lineup(self._resignation.below, *own)
        games = yield from self._play(iteration, metrics, lineup)
        if not games:
            return True
        played = len(games) - there if "play_seconds" in metrics else 0
        metrics |= game_statistics(games)
        with self._time.stage("fitting"):
            share = yield from self._learn(iteration, metrics, games)
        if self._learner.network.three_classes:
            observations, _, _, values = self._window.buffer.sample(_CLASS_ROWS, seed=iteration)[:4]
            shares = self._learner.class_shares(observations)
            metrics |= dict(zip(("predicted_wins", "predicted_draws", "predicted_losses"), shares, strict=True))
            metrics["target_draws"] = float(1 - np.abs(values).mean())
        with self._time.stage("exporting"):
            last = budget.is_over(iteration)
            metrics |= generations.publish(self._learner.averaged, iteration, self._window.buffer, last=last)
        now = budget.elapsed()
        fitting, exporting = (self._time.seconds[stage] for stage in ("fitting", "exporting"))
        fitted = share * metrics["positions"] if metrics["steps"] else 0.0
        budget.note_iteration(now - begin, fitting, fitted, played, exporting, metrics.get("simulations", 0.0))
        self._iteration = iteration
        metrics |= {"seconds": now} | self._time.shares()
        self._recent.append(metrics)
        own_device = generations.ready.evaluators[0].device != "cpu"
        advice = advise(settings, self._recent, self._cores, own_device=own_device)
        if generations.ready.refused:
            advice = f"fp32 plays, as {generations.ready.refused}" + (f"; {advice}" if advice else "")
        self._time = TimeShares()  # the checkpoint counts towards the next iteration: the row is written before it
        with self._time.stage("writing"):
            row = {"kind": "iteration", "iteration": iteration, **metrics}
            self._note(row | ({"advice": advice} if advice else {}))
            saved = self._save(iteration)
        yield Saved(iteration, str(saved), metrics, advice)
        return last

    def _save(self, iteration: int) -> Path:
        """Writes the checkpoint of an iteration; returns its folder."""
        return self._run.save_checkpoint(
            iteration,
            model=self._learner.model_arrays(),
            optimizer=self._learner.optimizer_arrays(),
            state={"iteration": iteration, "next_game": self._next_game, "positions": self._window.seen}
            | {"budget": self._budget.state(), "resignation": self._resignation.state()}
            | ({"scores": scores} if (scores := self._ranked.state()) else {}),
            onnx=self._generations.model,
            int8=self._generations.ready.int8,
        )

    def _learn(
        self, iteration: int, metrics: dict[str, float], games: Sequence[_core.GameRecord]
    ) -> Generator[Event, None, float]:
        """Adds games to the window and takes the iteration's steps; returns the share of the steps that was taken.

        With `learner_lag`, the steps are those that the learner's process began to take before the games were played.
        The first iteration then has none.
        """
        window, settings = self._window, self._settings
        if self._beside is None:
            self._take_in(games)
        due = steps_of(settings, window)
        events: Iterator[Event] = iter(())
        if due and self._beside is not None:
            events = self._beside.finish()
        elif due:
            imported = self._has_imported
            events = fit(self._learner, window.buffer, settings, self._budget, iteration, due, imported=imported)
        metrics |= {"window": window.buffer.num_positions, "steps": 0}
        share, reported = 1.0, 0.0
        fewer = 0 < window.buffer.num_positions < settings.batch_size
        if fewer and not self._said_few and (not due or iteration == settings.iterations):
            self._said_few = True
            none = "" if due else ", and this iteration takes no steps"
            yield Noticed(
                f"batch_size {settings.batch_size:,} is more than the {window.buffer.num_positions:,} positions there "
                f"are: batches repeat them{none}; a smaller --batch-size or more --games-per-iteration helps"
            )
        for event in events:
            if isinstance(event, Fitted):
                metrics |= {"steps": event.taken, "policy_loss": event.policy_loss, "value_loss": event.value_loss}
                metrics |= {f"head_{name}_loss": loss for name, loss in event.heads.items()}
                share = event.taken / event.steps
                if event.taken < event.steps and time.monotonic() - reported < EVENT_SECONDS:
                    continue
                reported = time.monotonic()
            yield event
        if self._beside is not None:
            metrics["learner_seconds"] = self._beside.seconds if due else 0.0
            self._take_in(games)
        return share

    def _take_in(self, games: Sequence[_core.GameRecord]) -> None:
        self._window.add(games)
        if not self._window.buffer.num_positions:
            raise RunError(
                f"there is nothing to learn from, no game has a searched position (games: {len(games)}): fewer opening "
                "plies, longer games or more full searches, in another folder with --out; az-check-game checks a game "
                "of your own"
            )

    def _match(self, last: bool) -> Iterator[Event]:
        """The newest model against each opponent it has not met yet, on the same openings; then writes the report."""
        with self._time.stage("matches"):
            rows = [row for row in self._run.metrics() if row["kind"] == "match"]
            rows = [row for row in rows if row["iteration"] == self._iteration]
            # The last match is played after one on the way, too. Older versions do not tell them apart.
            met = {row["opponent"] for row in rows if not (last and row.get("match") == "on the way")}
            due = [name for name in _OPPONENTS if name not in met]
            if due:
                yield from self._play_matches(due, last)
        sealed, title = self._run.sealed.iterations(), f"{self._settings.game}: {self._run.path.name}"
        games = self._run.sealed.read(sealed[-1]) if sealed else []
        page = make_report(title, asdict(self._settings), self._run.metrics(), games, self._start)
        self._run.replace("report.html", page)

    def _play_matches(self, due: Sequence[str], last: bool) -> Iterator[Event]:
        settings, begin, played = self._settings, self._budget.elapsed(), 0
        games = self._budget.final_match_games() if last else settings.match_games

        # As az-match and servers take it from the run: that of the iteration which led to this network.
        iterations = [row for row in self._run.metrics() if row["kind"] == "iteration"]
        to_beat = iterations[-1].get("score_to_beat") if iterations else self._ranked.score_to_beat

        def player(model: bytes) -> SearchPlayer:
            evaluator = self._generations.evaluator_for_matches(model, self._cores)
            search = self._match_search | {"score_to_beat": to_beat}
            return SearchPlayer(evaluator, settings.simulations_in_matches, **search)

        newest, unmet = player(self._generations.model), list[str]()
        book = Book(self._start, settings.match_opening_plies, settings.seed)
        for index, opponent in enumerate(due):
            if (make := _OPPONENTS[opponent]) is not None:
                other = make()
            else:
                other = player(to_onnx(learner_of(settings, self._start, here=False).averaged))
            share = self._budget.match_seconds(begin, last=last) / (len(due) - index)
            until = time.monotonic() + share

            def seconds_left(until: float = until) -> float:
                return until - time.monotonic()

            result = play_match(book, newest, other, games, settings.seed, seconds_left)
            if result is None:
                unmet.append(opponent)
                continue
            played += result.games
            row = {"kind": "match", "iteration": self._iteration, "opponent": opponent} | result.figures()
            row |= {"simulations": settings.simulations_in_matches, "seconds": self._budget.elapsed()}
            self._note(row if last else row | {"match": "on the way"})
            yield Matched(self._iteration, opponent, result)
        if unmet and last:
            command = shlex.join(["az-match", path_argument(self._run.path), unmet[-1].replace("-", ":")])
            typed = f" --game {shlex.quote(settings.game)}" if must_be_typed(settings.game) else ""
            round_of = {1: "a game", 2: "two games"}.get(seats := self._start.num_players, f"{seats} games")
            yield Noticed(f"no time was left for {round_of} against {', '.join(unmet)}; later: {command}{typed}")
        if len(due) == len(_OPPONENTS):
            self._budget.note_match(self._budget.elapsed() - begin, max(1.0, played / len(due)))

    def _note(self, row: Mapping[str, Any]) -> None:
        """One more row of metrics, and of the curves."""
        super()._note(row)
        if self._board is not None:
            self._board.add(row)

    def _resume(self) -> None:
        """Goes on from the newest checkpoint, if there is one."""
        self._generations = Generations(self._settings, self._start, self._run)
        checkpoint = load_newest(self._run, self._learner)
        checkpoints, sealed = self._run.checkpoints(), self._run.sealed.iterations()
        self._resume_imported(checkpoints, sealed)
        if checkpoint is not None:
            self._iteration = checkpoints[-1]
            self._generations.model, self._generations.ready = checkpoint.onnx, Ready([], {}, int8=checkpoint.int8)
            self._budget.load(checkpoint.state["budget"])
            self._resignation.load(checkpoint.state.get("resignation", self._resignation.state()))
            self._ranked.load(checkpoint.state.get("scores", []))
            seen, held = int(checkpoint.state["positions"]), [i for i in sealed if i <= self._iteration]
            self._next_game = int(checkpoint.state["next_game"])
            self._window.refill(seen, held, self._run.sealed.read)
        self._resume_budget("iteration")
        if self._settings.tensorboard:
            self._board = Board(self._run.path / "tensorboard", self._iteration)
            self._last_first.callback(self._board.close)
        done = {row["iteration"] for row in self._run.metrics() if row["kind"] == "iteration"}
        for what, there in (("games", sealed), ("metrics", done)):
            missing = [str(i) for i in range(1, self._iteration + 1) if i not in there]
            if missing:
                self._run.notices.append(f"going on without the {what} of iteration {', '.join(missing)}: not there")

    def _resume_imported(self, checkpoints: Sequence[int], sealed: Sequence[int]) -> None:
        """Goes on with the imported games of the run, if there are any."""
        if not checkpoints:
            self._run.trim_metrics(-1)  # the fit begins again, and so does an import that did not end
        rows = [row for row in self._run.metrics() if row["kind"] == "imported"]
        if 0 in sealed and self._supervised and not rows:  # metrics.jsonl was lost
            rows.append({"kind": "imported", "iteration": 0, "files": self._supervised, "seconds": 0.0})
            self._run.append_metrics(rows[0])
        if checkpoints or sealed or self._run.journal:
            began = list(map(path_argument, rows[-1].get("files", []))) if rows else []
            if self._supervised and began != self._supervised:
                how = f"with --supervised {' '.join(map(str, began))}" if began else "without --supervised"
                raise RunError(
                    f"{self._run.path} holds a run that began {how}: give the same, leave it out to go on, or choose "
                    "another folder with --out"
                )
            self._supervised = began
        changed = [name for name in self._run.changed if name.startswith("supervised_")]
        if changed and 0 in sealed:
            old, new = self._run.changed[changed[0]]
            raise RunError(
                f"{self._run.path} holds a run with {changed[0]} {old!r}, asked for {new!r} (games are imported and "
                "learned from once, before self-play): choose another folder"
            )
        if self._supervised:
            self._run.flags = ["--supervised", *self._supervised]
        self._has_imported = 0 in sealed or self._imported is not None
