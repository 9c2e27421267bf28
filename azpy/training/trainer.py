"""Training: self-play, fit, export with a parity check, swap, with a match now and then, until time is up.

Self-play and fitting take turns, because on one machine they share the cores. The run folder holds all that is done; a
new `Trainer` on the same folder goes on from there.
"""

import importlib.util
import os
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from azpy import _core
from azpy.devices import ON_CPU
from azpy.errors import EXTRAS, ModelError, RunError, SettingsError, missing_to_train
from azpy.evaluators.sessions import import_onnxruntime
from azpy.fleet.fleet import Lineup
from azpy.learning.export import to_onnx
from azpy.learning.learner import Learner, use_threads
from azpy.learning.own import weights_in
from azpy.playing.selfplay import on_devices
from azpy.reports.advice import advise
from azpy.reports.statistics import game_statistics
from azpy.runs.reader import checkpoint_at, read_weights
from azpy.runs.storage import numbered
from azpy.settings.run import Settings, is_own, match_search
from azpy.system import usable_cores
from azpy.training.budget import USUAL_DISTANCE, Budget
from azpy.training.certificate import Certificate
from azpy.training.events import Event, Noticed, Saved
from azpy.training.fitting import Window, fit, learner_of, load_newest, steps_of
from azpy.training.generations import Generations, Ready, is_kept
from azpy.training.loop import EVENT_SECONDS, NOT_ROW_EXACT, Loop, start_of
from azpy.training.matches import OPPONENTS, play_matches
from azpy.training.rehearsal import rehearse
from azpy.training.supervised import Lessons, learn
from azpy.training.tensorboard import Board

_CLASS_ROWS = 512  # on which the means of the three predictions are measured
# Statistics that are useful in games that hide something. Repeated games are normal there, and are not counted.
_TOLD_GAMES = 128  # enough for the means of an iteration that takes a second
_TOLD = ("draws", "first_seat_score", "mean_plies", "capped", "policy_entropy")
_BUILDING = "TensorRT builds an engine for each network before it plays, which takes from seconds to minutes"


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
        start = start_of(settings)
        budget = Budget(settings, 0 if start.hides else len(OPPONENTS))
        # The small steps of a game that hides something take longer on several threads, which wait for each other.
        self._cores = use_threads(single=settings.deterministic or start.hides)
        match_search(settings, start)  # raises for settings that the run's matches cannot use
        self._learner = learner_of(settings, start)
        rehearse(settings, start)
        self._window = Window(settings, start)
        self._begun_with = ""
        if settings.init is not None and not numbered(Path(path) / "checkpoints"):
            self._begun_with = f"the network begins as that of {_begin_with(self._learner, Path(settings.init))}"
        if start.hides and settings.minutes is None and settings.iterations is None:
            raise SettingsError(
                f"{start.game} hides something, and what it learns follows the length of the run: give minutes or "
                "iterations"
            )
        if start.hides and supervised:
            raise SettingsError(f"supervised: {start.game} hides something, and learns from its own games alone")
        self._lessons = Lessons(settings, start, path, supervised)
        self._certificate = Certificate(self, self._learner) if start.hides else None
        self._said_few = False  # whether the notice about a small window was given
        # Advice looks at all iterations between two matches.
        self._recent: deque[dict[str, float]] = deque(maxlen=settings.match_every or USUAL_DISTANCE)
        super().__init__(settings, start, budget, path, ("numpy", "torch", "onnxruntime"), cores=self._cores)

    def run(self) -> Iterator[Event]:
        """Train until the budget is spent; every finished iteration leaves a checkpoint.

        Yields:
            The events, in order. An interruption at any point loses at most the games in play and the gradient steps
            since the last checkpoint, once `close` is called.
        """
        self._under_way = True
        self.time.restart()
        yield from self._open()
        if self._lessons.are_there and not self.folder.checkpoints():
            yield from self._supervise()
        over = last = False
        while not over:
            self.folder.prune_checkpoints(lambda iteration: is_kept(iteration, self.iteration))
            if self._generations.on_tensorrt:
                self._generations.prune_engines()
            over = last or self.budget.is_over(self.iteration)
            if self._certificate is not None:
                yield from self._certificate.measure(self._generations, self._cores, last=over)
            elif self.folder.checkpoints() if over else self.budget.match_is_due(self.iteration):
                yield from play_matches(self, self._generations, self._cores, last=over)
            # A match during the run can use up the time. The last match may leave some.
            if not over and not self.budget.is_over(self.iteration):
                last = yield from self._iterate()
        yield self._finish()

    def _open(self) -> Iterator[Event]:
        """Have the newest network play, and say how."""
        generations, settings = self._generations, self.settings
        if generations.on_tensorrt:
            yield Noticed(_BUILDING)
        if self.start.hides:
            generations.publish(self._learner.newest, self.iteration)
        elif generations.model:  # of a checkpoint
            is_checked = not self.budget.is_over(self.iteration) and self._window.buffer.num_positions
            generations.reopen(self._learner.averaged, self.iteration, self._window.buffer if is_checked else None)
        else:
            generations.publish(self._learner.averaged)
            if (self._begun_with or is_own(settings.network)) and not self._lessons.are_there:
                self._save()  # the other run may train on, and the user's function may change
        ready = generations.ready
        notices = [self._begun_with] if self._begun_with else []
        if ready.refused:
            notices.append(f"playing in fp32: {ready.refused}")
        if not all(evaluator.row_exact for evaluator in ready.evaluators):
            notices.append(f"{NOT_ROW_EXACT}: the same seed can give other games")
        asked = generations.reduced if settings.precision == "auto" else settings.precision
        later = asked not in {"fp32", ready.precision} and ready.int8 is None
        player = on_devices(ready.evaluators) + (f" ({asked} once it passes its check)" if later else "")
        player += ", at first without a network" if self._knows_nothing and not self._lessons.are_there else ""
        bf16 = " in bf16" if self._learner.precision == "bf16" else ""
        player += f" · trains on {self._learner.device}{bf16}"
        parameters = sum(parameter.numel() for parameter in self._learner.averaged.parameters())
        yield self._begin(ready.evaluators, player, notices, parameters)

    def _supervise(self) -> Iterator[Event]:
        """Fit the network to the imported games, which stay in the window until self-play has filled it.

        The checkpoint of iteration 0 ends this part. A part that was killed begins again.
        """
        yield from self._lessons.keep(self)
        games = self.folder.sealed.read(0)
        self.next_game = len(games)
        self._window.add(games)
        with self.time.stage("fitting"):
            yield from learn(self, games, self._learner)
        last = self.budget.is_over(0)
        self._generations.publish(self._learner.averaged, 0, self._window.buffer, last=last)
        self._save()
        self.time.restart()

    def _iterate(self) -> Generator[Event, None, bool]:
        """Plays, fits and saves the next iteration; returns whether it was the last one."""
        generations, budget, iteration = self._generations, self.budget, self.iteration + 1
        begin, metrics, there = budget.elapsed(), dict[str, float](), len(self.folder.journal)
        unstored = yield from self._practise(metrics)
        with_network = not self._knows_nothing
        games = yield from self._play(metrics, self._lineup(self.ranked.score_to_beat))
        if not games:
            return True
        # Games without a network say nothing about how long the later ones take.
        played = len(games) - there if with_network and "play_seconds" in metrics else 0
        if self.start.hides:
            found = game_statistics(games[:_TOLD_GAMES])
            metrics |= {name: found[name] for name in _TOLD if name in found}
        else:
            metrics |= game_statistics(games, self.settings.resign_at)
        with self.time.stage("fitting"):
            share = yield from self._learn(metrics, games, self.settings.networks_per_iteration - 1)
        if unstored:
            metrics["games"] += len(unstored)
            metrics["positions"] += sum(unstored)
            played += len(unstored)
        if self._learner.network.three_classes:
            observations, _, _, values = self._window.buffer.sample(_CLASS_ROWS, seed=iteration)[:4]
            shares = self._learner.class_shares(observations)
            metrics |= dict(zip(("predicted_wins", "predicted_draws", "predicted_losses"), shares, strict=True))
            metrics["target_draws"] = float(1 - np.abs(values).mean())
        with self.time.stage("exporting"):
            last = budget.is_over(iteration)
            metrics |= generations.publish(self._player, iteration, self._window.buffer, last=last)
        now = budget.elapsed()
        fitting, exporting = (self.time.seconds[stage] for stage in ("fitting", "exporting"))
        fitted = share * metrics["positions"] if metrics["steps"] else 0.0
        budget.note_iteration(now - begin, fitting, fitted, played, exporting)
        self.iteration = iteration
        metrics |= {"seconds": now} | self.time.shares()
        own_device = generations.ready.evaluators[0].device not in ON_CPU
        advice = None
        if with_network and not self.start.hides:  # there `sized` chose the settings
            self._recent.append(metrics)
            advice = advise(self.settings, self._recent, usable_cores(), own_device=own_device)
        if generations.ready.refused:
            advice = f"playing in fp32: {generations.ready.refused}" + (f"; {advice}" if advice else "")
        self.time.restart()  # the checkpoint counts towards the next iteration: the row is written before it
        with self.time.stage("writing"):
            row = {"kind": "iteration", "iteration": iteration, **metrics}
            self.note(row | ({"advice": advice} if advice else {}))
            saved = self._save()
        yield Saved(iteration, str(saved), metrics, advice)
        return last

    def _practise(self, metrics: dict[str, float]) -> Generator[Event, None, list[int]]:
        """Have the iteration's networks but the last play and learn; return the positions of each of their games.

        Where time is up, the networks that are left do not play.
        """
        done = list[int]()
        for part in range(self.settings.networks_per_iteration - 1):
            games = yield from self._play_unstored(metrics, self._lineup(None))
            if len(games) < self.settings.games_per_iteration:
                if games:  # time is up: they are those of the last network, which `_play` seals
                    self.folder.append(*games)
                break
            with self.time.stage("fitting"):
                yield from self._learn(metrics, games, part)
            with self.time.stage("exporting"):
                self._generations.publish(self._player, self.iteration + 1, self._window.buffer)
            done += [record.positions for record in games]
        return done

    @property
    def _knows_nothing(self) -> bool:
        """Whether the network has its first weights. A user's function may have made trained ones."""
        settings = self.settings
        return not (self._learner.steps or settings.init or is_own(settings.network))

    def _lineup(self, score_to_beat: float | None) -> Lineup:
        """Return the lineup of the next games.

        Before the first step it has no network: an untrained one would slow the games and add nothing.
        """
        lineup = self._generations.lineup(score_to_beat)
        if self._knows_nothing:
            return replace(lineup, evaluators=[_core.UniformEvaluator()] * len(lineup.evaluators), model=None)
        return lineup

    @property
    def _player(self) -> Any:
        """The network that plays on: of a game that hides something the newest, else the one with averaged weights."""
        return self._learner.newest if self.start.hides else self._learner.averaged

    def _save(self) -> Path:
        """Write the checkpoint of the iteration that is done; return its folder."""
        state: dict[str, Any] = {"iteration": self.iteration, "next_game": self.next_game}
        state |= {"positions": self._window.seen, "budget": self.budget.state()}
        if scores := self.ranked.state():
            state["scores"] = scores
        return self.folder.save_checkpoint(
            self.iteration,
            model=self._learner.model_arrays(),
            optimizer=self._learner.optimizer_arrays(),
            state=state,
            onnx=to_onnx(self._learner.averaged) if self.start.hides else self._generations.model,
            int8=self._generations.ready.int8,
        )

    def _learn(
        self, metrics: dict[str, float], games: Sequence[_core.GameRecord], part: int = 0
    ) -> Generator[Event, None, float]:
        """Add games to the window and take the iteration's steps; return the share of the steps that was taken.

        Of a game that hides something one step on all positions of the games. `part` is that of `fit`.
        """
        window, settings, iteration, so_far = self._window, self.settings, self.iteration + 1, metrics.get("steps", 0)
        window.add(games)
        if not window.buffer.num_positions:
            raise RunError(
                f"none of the {len(games)} games has a searched position to learn from: give fewer opening plies, "
                "longer games or more full searches, and another folder with --out; az-check-game tests a game "
                "of your own"
            )
        due = 1 if self.start.hides else steps_of(settings, window)
        metrics |= {"window": window.buffer.num_positions, "steps": so_far}
        share, reported = 1.0, 0.0
        fewer = window.buffer.num_positions < settings.batch_size and not self.start.hides
        if fewer and not self._said_few and (not due or iteration == settings.iterations):
            self._said_few = True
            none = "" if due else ", so this iteration takes no steps"
            yield Noticed(
                f"batch_size {settings.batch_size:,} is more than the {window.buffer.num_positions:,} positions so "
                f"far: batches repeat them{none}; try a smaller --batch-size or more --games-per-iteration"
            )
        options: dict[str, Any] = {"imported": self._lessons.are_there, "part": part}
        for step in fit(self, self._learner, window.buffer, iteration, due, **options) if due else ():
            metrics |= {"steps": so_far + step.taken, "policy_loss": step.policy_loss, "value_loss": step.value_loss}
            metrics |= {f"head_{name}_loss": loss for name, loss in step.heads.items()}
            share = step.taken / step.steps
            if step.taken == step.steps or time.monotonic() - reported >= EVENT_SECONDS:
                reported = time.monotonic()
                yield step
        return share

    def _resume(self) -> None:
        """Go on from the newest checkpoint, if there is one."""
        folder = self.folder
        self._generations = Generations(self.settings, self.start, folder)
        checkpoint = load_newest(folder, self._learner)
        self._lessons.resume(folder)
        sealed = folder.sealed.iterations()
        if checkpoint is not None:
            self.iteration, self.next_game = folder.checkpoints()[-1], int(checkpoint.state["next_game"])
            self._generations.model, self._generations.ready = checkpoint.onnx, Ready([], {}, int8=checkpoint.int8)
            self.budget.load(checkpoint.state["budget"])
            self.ranked.load(checkpoint.state.get("scores", []))
            held = [iteration for iteration in sealed if iteration <= self.iteration]
            self._window.refill(int(checkpoint.state["positions"]), held, folder.sealed.read)
        self._resume_budget("iteration")
        if self.settings.tensorboard:
            board = Board(folder.path / "tensorboard", self.iteration)
            self._last_first.callback(board.close)
            self.watchers.append(board.add)
        done = {row["iteration"] for row in folder.metrics() if row["kind"] == "iteration"}
        for what, there in (("games", sealed), ("metrics", done)):
            missing = [str(i) for i in range(1, self.iteration + 1) if i not in there]
            if missing:
                folder.notices.append(
                    f"continuing without the {what} of iteration {', '.join(missing)}, which are missing"
                )


def _begin_with(learner: Learner, path: Path) -> str:
    """Take over a checkpoint's network or a file's weights; return where they come from, and what they are."""
    given = f"--init {path}"
    if not path.exists():
        raise RunError(f"{given} does not exist, expected a run folder, a checkpoint or a file of weights")
    if path.is_file():
        weights = weights_in(path)
    else:
        path = checkpoint_at(path)
        weights = read_weights(path)
    try:
        said = learner.begin_with(weights)
    except ModelError as error:
        raise SettingsError(f"{given}: {error}") from error
    if not learner.is_finite():
        raise SettingsError(f"{given}: its weights are not finite: give an earlier checkpoint")
    return f"{path}, {said}"
