"""Training: self-play, fit, export with a parity check, swap, with a match now and then, until time is up.

Self-play and fitting take turns, because on one machine they share the cores. With the setting `learner_lag` a process
of its own fits the games of one iteration while the games of the next are played. Where a model takes long to make
ready (TensorRT), the model before it begins the next iteration and is replaced in its course. The run folder holds all
that is done; a new `Trainer` on the same folder goes on from there.
"""

import importlib.util
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from azpy import _core
from azpy.devices import parse_devices
from azpy.errors import EXTRAS, ModelError, RunError, SettingsError, missing_to_train
from azpy.evaluators.onnx import import_onnxruntime
from azpy.fleet.fleet import Lineup
from azpy.games.names import make_position
from azpy.learning.export import to_onnx
from azpy.learning.learner import Learner, use_threads
from azpy.matches.arena import Player, RandomPlayer, SearchPlayer, mcts, play_match
from azpy.playing.selfplay import on_devices
from azpy.reports.report import make_report
from azpy.reports.statistics import game_statistics
from azpy.runs.reader import Checkpoint, checkpoint_at, read_checkpoint
from azpy.runs.storage import numbered
from azpy.settings.run import Settings, match_search
from azpy.training.advice import advise
from azpy.training.events import BeingBuilt, Built, Event, Fitted, Matched, Saved
from azpy.training.fitting import fit, learner_of
from azpy.training.generations import Generations, Ready
from azpy.training.learner_process import LearnerProcess
from azpy.training.loop import NOT_ROW_EXACT, Loop
from azpy.training.tensorboard import Board
from azpy.training.timing import TimeShares
from azpy.training.window import Window

__all__ = ["Trainer", "opponents_of"]

_KEEP_NEWEST, _KEEP_EVERY = 3, 10  # checkpoints that are not deleted: the newest, and every tenth
_AT_ONCE = 2  # earlier networks that play at once: each is one more call a round
_UNTRAINED = "untrained"  # the run's own network as it was before its first gradient step
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

    Raises:
        RunError: the folder is in use, damaged, or of another run.
        SettingsError: no such game.
        MissingPackageError: a package that training needs is not installed; nothing was made.

    Example:
        >>> with Trainer(Settings("tic_tac_toe", network="2x16", iterations=1), "runs/t") as trainer:  # doctest: +SKIP
        ...     for event in trainer.run():
        ...         print(event)
    """

    _STOPPED = "stopped"

    def __init__(self, settings: Settings, path: str | os.PathLike[str]) -> None:
        for package in (*EXTRAS["cpu"], *EXTRAS["train"]):
            if importlib.util.find_spec(package) is None:
                raise missing_to_train(package)
        import_onnxruntime(parse_devices(settings.device)[-1])  # it may be there, and damaged
        super().__init__(settings, len(_OPPONENTS))
        self._cores = use_threads(single=settings.deterministic)
        self._learner = learner_of(settings, self._start, here=not settings.learner_lag)
        self._window = Window(settings, self._start)
        self._begun_with = ""
        if settings.init is not None and not numbered(Path(path) / "checkpoints"):
            checkpoint = read_checkpoint(checkpoint_at(Path(settings.init)))
            self._begun_with = f"the network begins as that of {checkpoint.path}, {self._begin_with(checkpoint)}"
        self._board: Board | None = None
        # As many iterations as lie between two matches: advice looks at all of them.
        self._recent: deque[dict[str, float]] = deque(maxlen=settings.match_every)
        self._beside: LearnerProcess | None = None
        if settings.learner_lag:
            self._beside = LearnerProcess(Path(path), settings.game, self._learner)
            self._last_first.callback(self._beside.close)
        self._open(path, ("numpy", "torch", "onnxruntime"), cores=self._cores)

    def _begin_with(self, checkpoint: Checkpoint) -> str:
        """Takes over a checkpoint's network; returns the network's spec."""
        try:
            return self._learner.begin_with(checkpoint.model)
        except ModelError as error:
            raise SettingsError(f"--init {self._settings.init}: {error}") from error

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
                yield BeingBuilt(self._iteration, 0.0, waited_for=True)
            if not generations.model:
                generations.publish(self._learner.averaged)
            else:
                is_checked = not self._budget.is_over(self._iteration) and self._window.buffer.num_positions
                generations.reopen(self._learner.averaged, self._iteration, self._window.buffer if is_checked else None)
        evaluators, refused = generations.ready.evaluators, generations.ready.refused
        notices = [note for note in (self._begun_with, f"fp32 plays, as {refused}" if refused else "") if note]
        if not all(evaluator.row_exact for evaluator in evaluators):
            notices.append(f"{NOT_ROW_EXACT}: the same seed can give other games")
        player = f"{on_devices(evaluators)}{generations.to_come}, and is trained "
        if self._beside is None:
            player += f"on {self._learner.device}{' in bf16' if self._learner.precision == 'bf16' else ''}"
        else:
            player += "in a process of its own"
        parameters = sum(parameter.numel() for parameter in self._learner.averaged.parameters())
        yield self._started(evaluators, player, notices, parameters)
        over = False
        while not over:
            self._run.prune_checkpoints(lambda iteration: _is_kept(iteration, self._iteration))
            if generations.on_tensorrt:
                generations.prune_engines()
            over = self._budget.is_over(self._iteration)
            if self._iteration and (over or self._budget.match_is_due(self._iteration)):
                yield from self._match(over)
            if not self._budget.is_over(self._iteration):  # a match on the way can take the rest of the time
                yield from self._iterate(self._iteration + 1)
        yield self._finished()

    def _iterate(self, iteration: int) -> Iterator[Event]:
        settings, budget, generations = self._settings, self._budget, self._generations
        begin, metrics, there = budget.elapsed(), dict[str, float](), len(self._run.journal)
        if settings.historical_share and iteration not in self._run.sealed.iterations():
            generations.choose_opponents(opponents_of(iteration))
        if self._beside is not None and self._window.newest:
            sealed = [before for before in self._run.sealed.iterations() if before < iteration]
            self._beside.begin(iteration, self._window, sealed, budget, len(_OPPONENTS))
        games = yield from self._play(iteration, metrics, self._lineup())
        played = len(games) - there if "play_seconds" in metrics else 0
        metrics |= game_statistics(games)
        with self._time.stage("fitting"):
            share = yield from self._learn(iteration, metrics, games)
        with self._time.stage("exporting"):
            yield from self._change_over(wait=True)  # one engine at a time
            last = budget.is_over(iteration)
            metrics |= generations.publish(self._learner.averaged, iteration, self._window.buffer, last=last)
        if generations.future is not None:
            yield BeingBuilt(iteration, 0.0, waited_for=False)
        now = budget.elapsed()
        fitting, exporting = (self._time.seconds[stage] for stage in ("fitting", "exporting"))
        budget.note_iteration(now - begin, fitting, share * metrics["positions"], played, export_seconds=exporting)
        self._iteration = iteration
        metrics |= {"fit_seconds": fitting + exporting, "seconds": now} | self._time.shares()
        self._recent.append(metrics)
        own_device = generations.ready.evaluators[0].device != "cpu"
        advice = advise(settings, self._recent, self._cores, own_device=own_device)
        if generations.ready.refused:
            advice = f"fp32 plays, as {generations.ready.refused}" + (f"; {advice}" if advice else "")
        self._time = TimeShares()  # the checkpoint counts towards the next iteration: the row is written before it
        with self._time.stage("writing"):
            row = {"kind": "iteration", "iteration": iteration, **metrics}
            self._note(row | ({"advice": advice} if advice else {}))
            saved = self._run.save_checkpoint(
                iteration,
                model=self._learner.model_arrays(),
                optimizer=self._learner.optimizer_arrays(),
                state={"iteration": iteration, "next_game": self._next_game, "positions": self._window.seen}
                | {"budget": budget.state(), "resignation": self._resignation.state()},
                onnx=generations.model,
                int8=generations.ready.int8,
            )
        yield Saved(iteration, str(saved), metrics, advice)

    def _lineup(self) -> Lineup:
        generations = self._generations
        return Lineup(generations.playing, tuple(generations.earlier.values()), self._resignation.below)

    def _learn(
        self, iteration: int, metrics: dict[str, float], games: Sequence[_core.GameRecord]
    ) -> Generator[Event, None, float]:
        """Adds games to the window and takes the iteration's steps; returns the share of the steps that was taken.

        With `learner_lag`, the steps are those that the learner's process began to take before the games were played.
        The first iteration then has none.
        """
        window, steps = self._window, iter(list[Fitted]())
        if self._beside is None:
            window.add(games)
            self._refuse_nothing(metrics)
            steps = fit(self._learner, window.buffer, self._settings, self._budget, iteration, window.newest)
        elif window.newest:
            steps = self._beside.finish()
        metrics |= {"window": window.buffer.num_positions, "steps": 0}
        share = 1.0
        for event in steps:
            yield event
            metrics |= {"steps": event.taken, "policy_loss": event.policy_loss, "value_loss": event.value_loss}
            share = event.taken / event.steps
        if self._beside is not None:
            metrics["learner_seconds"] = self._beside.seconds
            window.add(games)
            self._refuse_nothing(metrics)
        return share

    def _refuse_nothing(self, metrics: Mapping[str, float]) -> None:
        if not self._window.buffer.num_positions:
            raise RunError(
                f"there is nothing to learn from, no game has a searched position (games: {metrics['games']}): fewer "
                "opening plies, longer games or more full searches, in another folder with --out; az-check-game checks "
                "a game of your own"
            )

    def _change_over(self, *, wait: bool = False) -> Iterator[Event]:
        """Hands an engine that is ready to self-play; with `wait`, one that is being built, too."""
        generations, future = self._generations, self._generations.future
        if future is None or not (wait or future.done()):
            return
        if not future.done():
            yield BeingBuilt(generations.newest, time.monotonic() - generations.begun, waited_for=True)
        ready = generations.take(future)
        if ready.evaluators and not wait:  # in the midst of an iteration
            self._fleet.play(self._lineup())
        # A row of its own: the engine is ready in the midst of the next iteration, or after the last one.
        row = {"kind": "built", "iteration": generations.newest, "build_seconds": ready.seconds, **ready.checks}
        row |= {"problem": ready.problem} if ready.problem else {}
        row |= {"refused": generations.ready.refused} if generations.ready.refused else {}
        self._note(row | {"seconds": self._budget.elapsed()})
        yield Built(generations.newest, ready.seconds, ready.problem or None)

    def _match(self, last: bool) -> Iterator[Event]:
        """The newest model against each opponent it has not met yet, on the same openings; then writes the report."""
        yield from self._change_over(wait=True)
        with self._time.stage("matches"):
            rows = [row for row in self._run.metrics() if row["kind"] == "match"]
            rows = [row for row in rows if row["iteration"] == self._iteration]
            # The last match is played after one on the way, too. Older versions do not tell them apart.
            met = {row["opponent"] for row in rows if not (last and row.get("match") == "on the way")}
            due = [name for name in _OPPONENTS if name not in met]
            if due:
                yield from self._play_matches(due, last)
        sealed = self._run.sealed.iterations()
        page = make_report(
            f"{self._settings.game}: {self._run.path.name}",
            asdict(self._settings),
            self._run.metrics(),
            self._run.sealed.read(sealed[-1]) if sealed else [],
            self._start,
        )
        self._run.replace("report.html", page)

    def _play_matches(self, due: Sequence[str], last: bool) -> Iterator[Event]:
        settings, begin, played = self._settings, self._budget.elapsed(), 0
        games = self._budget.final_match_games() if last else settings.match_games

        def player(model: bytes) -> SearchPlayer:
            evaluator = self._generations.evaluator_for_matches(model, self._cores)
            return SearchPlayer(evaluator, settings.simulations_in_matches, **match_search(settings))

        newest = player(self._generations.model)
        for index, opponent in enumerate(due):
            if (make := _OPPONENTS[opponent]) is not None:
                other = make()
            else:
                other = player(to_onnx(Learner(self._start, settings.network, seed=settings.seed).averaged))
            share = self._budget.match_seconds(begin, last=last) / (len(due) - index)
            until = time.monotonic() + share
            options: dict[str, Any] = {"seed": settings.seed, "opening_plies": settings.match_opening_plies}
            options["seconds_left"] = lambda until=until: until - time.monotonic()
            result = play_match(lambda: make_position(settings.game), newest, other, games, **options)
            if result is None:  # there was no time for a single pair
                continue
            played += result.games
            low, high = result.interval
            row = {"kind": "match", "iteration": self._iteration, "opponent": opponent, "score": result.score}
            row |= {"low": low, "high": high, "wins": result.wins, "draws": result.draws, "losses": result.losses}
            row |= {"simulations": settings.simulations_in_matches, "seconds": self._budget.elapsed()}
            self._note(row if last else row | {"match": "on the way"})
            yield Matched(self._iteration, opponent, result)
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
        self._last_first.callback(self._generations.close)
        checkpoints, sealed = self._run.checkpoints(), self._run.sealed.iterations()
        if checkpoints:
            checkpoint = self._run.load_checkpoint(checkpoints[-1])
            self._iteration = checkpoints[-1]
            self._learner.load(checkpoint.model, checkpoint.optimizer)
            self._generations.model, self._generations.ready = checkpoint.onnx, Ready([], {}, int8=checkpoint.int8)
            self._budget.load(checkpoint.state["budget"])
            self._resignation.load(checkpoint.state.get("resignation", self._resignation.state()))
            self._next_game = int(checkpoint.state["next_game"])
            seen, held = int(checkpoint.state["positions"]), [i for i in sealed if i <= self._iteration]
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


def opponents_of(iteration: int) -> list[int]:
    """Checkpoints whose networks play one side of some of an iteration's games: two of the kept ones, in turn.

    They depend on the iteration alone, so a run that goes on plays the same games.
    """
    newest = iteration - 1  # plays the other side
    kept = [checkpoint for checkpoint in range(1, newest) if _is_kept(checkpoint, newest)]
    if not kept:
        return []
    return sorted({kept[(iteration + turn * len(kept) // _AT_ONCE) % len(kept)] for turn in range(_AT_ONCE)})


def _is_kept(checkpoint: int, newest: int) -> bool:
    """Whether a checkpoint is kept once the checkpoint of iteration `newest` is written."""
    return checkpoint > newest - _KEEP_NEWEST or checkpoint % _KEEP_EVERY == 0
