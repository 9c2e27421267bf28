"""The loop: self-play -> fit -> export with a parity check -> swap, with a match now and then, until time is up.

Each iteration plays games with the newest model, seals them, takes gradient steps on a window of recent positions,
checks the exported model against the network, saves a checkpoint and hands the model to self-play. Self-play and
fitting take turns: on one machine they would only take cores from each other. Where a model takes long to make ready
(TensorRT), the one before it begins the next iteration, and hands over in its midst.

`Trainer.run` yields events and decides nothing about how they are shown. What is done is in the run folder; a new
`Trainer` on the same folder goes on from there.
"""

import contextlib
import importlib.util
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self

from azpy import _core
from azpy.devices import parse_devices
from azpy.errors import EXTRAS, DeviceError, missing_to_train
from azpy.evaluators.onnx import OnnxEvaluator, import_onnxruntime
from azpy.learning.learner import Learner, use_threads
from azpy.learning.network import to_onnx
from azpy.machine import made_with
from azpy.matches.arena import Player, RandomPlayer, SearchPlayer, mcts, play_match
from azpy.playing.resignation import Resignation
from azpy.playing.selfplay import (
    EVENT_SECONDS,
    ids_of_iteration,
    known_ids,
    on_devices,
    open_self_play,
    play_on,
    player_of,
    take_rest,
)
from azpy.positions import make_position
from azpy.reports.report import make_report
from azpy.reports.statistics import game_statistics
from azpy.runs.folder import RunFolder
from azpy.settings.run import FIXED_SETTINGS, Settings, match_search
from azpy.training.advice import advise, typical
from azpy.training.budget import Budget
from azpy.training.events import BeingBuilt, Built, Event, Finished, Fitted, Matched, Played, Saved, Started
from azpy.training.generations import NOT_ROW_EXACT, Lineup
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


class Trainer:
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

    def __init__(self, settings: Settings, path: str | os.PathLike[str]) -> None:
        for package in (*EXTRAS["cpu"], *EXTRAS["train"]):
            if importlib.util.find_spec(package) is None:
                raise missing_to_train(package)
        import_onnxruntime(parse_devices(settings.device)[-1])  # it may be there, and damaged
        self._settings = settings
        self._budget = Budget(settings, len(_OPPONENTS))
        self._start = make_position(settings.game)
        self._cores = use_threads(single=settings.deterministic)
        self._learner = Learner.of(
            self._start,
            settings.network,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            seed=settings.seed,
            device=settings.training_device,
        )
        self._window = Window(settings.window_min, settings.window_share, settings.window_max, settings.window_growth)
        self._resignation = Resignation(settings.resign_below)
        self._iteration = 0
        self._next_game = 0
        self._self_play: _core.SelfPlay | None = None
        self._board: Board | None = None
        self._under_way = False
        self._time = TimeShares()
        # As many iterations as lie between two matches: advice looks at all of them.
        self._recent: deque[dict[str, float]] = deque(maxlen=settings.match_every)
        made = made_with("numpy", "torch", "onnxruntime") | {"cores": self._cores}
        self._run = RunFolder(path, asdict(settings), FIXED_SETTINGS, made)
        self._lineup = Lineup(settings, self._start, self._run, self._swap)
        self._twin: bytes | None = None  # of the checkpoint that is gone on from
        try:
            self._resume()
            self._run.note_changes(self._iteration, self._budget.elapsed(), deterministic=settings.deterministic)
            if settings.tensorboard:
                self._board = Board(self._run.path / "tensorboard", self._iteration)
            self._run.write_settings()
        except BaseException:
            self._run.close()
            raise

    def close(self) -> None:
        """Stops self-play and lets go of the run folder.

        In the middle of a run, its journal gets all finished games, and its metrics the time spent.
        """
        play, self._self_play = self._self_play, None
        building, self._lineup.building = self._lineup.building, None
        under_way, self._under_way = self._under_way, False
        with contextlib.ExitStack() as last_first:  # all of it is done, whatever fails
            last_first.callback(self._run.close)
            if self._board is not None:
                last_first.callback(self._board.close)
            if under_way:
                last_first.callback(self._run.note_stop, "stopped", self._iteration, self._budget.elapsed())
            if building is not None:
                last_first.callback(building.wait)
            if play is not None:
                last_first.callback(play.close)
            if play is not None and under_way:
                known = known_ids(self._settings, self._next_game, self._run.journal)
                last_first.callback(take_rest, play, known, self._run.append)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self) -> Iterator[Event]:
        """Trains until the budget is spent; every finished iteration leaves a checkpoint.

        Yields:
            What happens, in order. An interruption at any point loses at most the games in play and the gradient
            steps since the last checkpoint, once `close` is called.
        """
        parameters = sum(parameter.numel() for parameter in self._learner.averaged.parameters())
        path = str(self._run.path)
        self._under_way = True
        self._time.restart()
        lineup = self._lineup
        if not lineup.evaluators:
            if lineup.on_tensorrt:
                yield BeingBuilt(self._iteration, 0.0, waited_for=True)
            if lineup.model is None:
                lineup.publish(self._learner.averaged)
            else:
                goes_on = not self._budget.is_over(self._iteration)
                is_checked = lineup.needs_games and goes_on and self._window.positions
                buffer = self._window.buffer(self._start) if is_checked else None
                lineup.reopen(self._learner.averaged, self._twin, self._iteration, buffer)
        notices = list(self._run.notices)
        notices += dict.fromkeys(note for evaluator in lineup.evaluators for note in evaluator.notes)
        if lineup.refused:
            notices.append(f"fp32 plays, as {lineup.refused}")
        if not all(evaluator.row_exact for evaluator in lineup.evaluators):
            notices.append(f"{NOT_ROW_EXACT}: the same seed can give other games")
        yield Started(
            path,
            self._settings,
            parameters,
            self._iteration,
            self._budget.elapsed(),
            tuple(notices),
            f"{on_devices(lineup.evaluators)}{lineup.to_come}, and is trained on {self._learner.device}",
        )
        yield from self._match_if_due()  # what an interruption cut short
        while not self._budget.is_over(self._iteration):  # a match on the way may have taken the rest of the time
            yield from self._iterate(self._iteration + 1)
            yield from self._match_if_due()
        self._under_way = False
        games = self._run.games_hash() if self._settings.deterministic else None
        weights = self._run.weights_hash(self._iteration) if self._settings.deterministic else None
        game, repeatable = self._run.newest_game(), self._run.is_repeatable()
        yield Finished(path, self._iteration, self._budget.elapsed(), game, repeatable, games, weights)

    def _iterate(self, iteration: int) -> Iterator[Event]:
        begin = self._budget.elapsed()
        metrics: dict[str, float] = {}
        known = len(self._run.journal)
        played = 0
        if iteration in self._run.sealed_iterations():  # played before an interruption, but not fitted
            games = self._run.sealed_games(iteration)
        else:
            yield from self._play(iteration, metrics)
            played = len(self._run.journal) - known
            with self._time.stage("writing"):
                games = self._run.seal(iteration, ids_of_iteration(self._settings, self._next_game))
        self._budget.note_evaluations(metrics.get("evaluations", 0.0))
        self._next_game = max(self._next_game, *(record.game_id + 1 for record in games))
        positions = self._window.add(games)
        metrics |= {"games": len(games), "positions": positions, "window": self._window.positions}
        metrics |= game_statistics(games)
        metrics |= self._resignation.note(games)
        if self._self_play is not None:
            self._self_play.set_resign_below(self._resignation.below)
        fit_begin = self._budget.elapsed()
        with self._time.stage("fitting"):
            buffer = self._window.buffer(self._start)
            share = yield from self._fit(iteration, positions, buffer, metrics)
        export_begin = self._budget.elapsed()
        yield from self._export(iteration, buffer, metrics)
        now = self._budget.elapsed()
        self._budget.note_iteration(
            now - begin, export_begin - fit_begin, share * positions, played, export_seconds=now - export_begin
        )
        self._iteration = iteration
        metrics |= {"fit_seconds": now - fit_begin, "seconds": now} | self._time.shares()
        self._recent.append(metrics)
        advice = advise(self._settings, typical(self._recent), self._cores, own_device=not self._lineup.on_cpu)
        if self._lineup.refused:
            advice = f"fp32 plays, as {self._lineup.refused}" + (f"; {advice}" if advice else "")
        self._time.restart()  # the checkpoint counts towards the next iteration: the row is written before it
        with self._time.stage("writing"):
            row = {"kind": "iteration", "iteration": iteration, **metrics}
            self._note(row | ({"advice": advice} if advice else {}))
            path = self._save()
        yield Saved(iteration, path, metrics, advice)

    def _play(self, iteration: int, metrics: dict[str, float]) -> Iterator[Event]:
        """Self-play until the journal holds the iteration's games, or, with one game at least, time is up."""
        target = self._settings.games_per_iteration
        known = known_ids(self._settings, self._next_game, self._run.journal)
        positions = sum(record.positions for record in self._run.journal if record.game_id in known)
        if len(known) >= target:
            return

        def keep(record: _core.GameRecord) -> None:
            nonlocal positions
            self._run.append(record)
            positions += record.positions

        play = self._open_self_play(iteration, known)
        begin, pipelines_before = time.monotonic(), play.pipeline_stats
        for found in play_on(play, known, target, keep, lambda: self._budget.may_play(positions)):
            metrics.update(found)
            self._time.played(time.monotonic() - begin, pipelines_before, play.pipeline_stats)
            metrics.update(self._time.shares())
            yield Played(iteration, len(known), dict(metrics))
            yield from self._change_over()
        self._time.played(time.monotonic() - begin, pipelines_before, play.pipeline_stats)
        if self._settings.deterministic:
            play.close()
            self._self_play = None
        else:
            play.pause()

    def _open_self_play(self, iteration: int, known: set[int]) -> _core.SelfPlay:
        """Self-play that goes on, or, in a deterministic run, that of exactly this iteration's games."""
        self._choose_opponents(iteration)
        if self._self_play is not None:
            self._self_play.resume()
            return self._self_play
        next_game = self._next_game
        if not self._settings.deterministic:  # where an iteration lost its games, those of later ones may be there
            later = [iteration for iteration in self._run.sealed_iterations() if iteration > self._iteration]
            ids = [game for iteration in later for game in self._run.sealed_game_ids(iteration)]
            next_game = max([next_game, *(game + 1 for game in ids)])
        self._self_play = open_self_play(
            self._settings,
            self._start,
            player_of(self._lineup.evaluators),
            next_game,
            known,
            resign_below=self._resignation.below,
            opponents=list(self._lineup.earlier.values()),
        )
        return self._self_play

    def _choose_opponents(self, iteration: int) -> None:
        """Has the earlier networks of an iteration play one side of some of its games."""
        if self._settings.historical_share == 0:
            return
        others = self._lineup.choose_opponents(opponents_of(iteration))
        if self._self_play is not None and others:
            self._self_play.set_opponents(list(self._lineup.earlier.values()))

    def _swap(self, evaluators: Sequence[OnnxEvaluator]) -> None:
        if self._self_play is not None:
            self._self_play.swap(evaluators)

    def _fit(
        self, iteration: int, positions: int, buffer: _core.ReplayBuffer, metrics: dict[str, float]
    ) -> Generator[Event, None, float]:
        """Gradient steps in proportion to the new positions, fewer where time is up; returns the share taken."""
        settings = self._settings
        steps = max(1, round(positions * settings.passes / settings.batch_size))
        taken, policy, value, reported = 0, 0.0, 0.0, 0.0
        losses = self._learner.fit(
            buffer,
            steps,
            batch_size=settings.batch_size,
            root_value_weight=settings.root_value_weight,
            symmetries=settings.symmetries,
            surprise_weight=settings.surprise_weight,
            schedule=lambda done: self._budget.rate(iteration - 1 + done),
        )
        with contextlib.closing(losses):
            while taken < steps and (not taken or self._budget.may_fit()):
                loss, taken = next(losses), taken + 1
                policy += (loss.policy - policy) / taken
                value += (loss.value - value) / taken
                if time.monotonic() - reported > EVENT_SECONDS or taken == steps:
                    reported = time.monotonic()
                    yield Fitted(iteration, taken, steps, policy, value)
        metrics |= {"steps": taken, "policy_loss": policy, "value_loss": value}
        return taken / steps

    def _export(self, iteration: int, buffer: _core.ReplayBuffer, metrics: dict[str, float]) -> Iterator[Event]:
        """Has the fitted network play, once it is checked."""
        with self._time.stage("exporting"):
            yield from self._change_over(wait=self._lineup.on_tensorrt)  # one engine at a time
            last = self._budget.is_over(iteration)
            metrics |= self._lineup.publish(self._learner.averaged, iteration, buffer, last=last)
        if self._lineup.building is not None and self._lineup.on_tensorrt:
            yield BeingBuilt(iteration, 0.0, waited_for=False)

    def _change_over(self, *, wait: bool = False) -> Iterator[Event]:
        """Hands a model that is ready to self-play; with `wait`, one that is being made ready, too."""
        building = self._lineup.building
        if building is None or not (wait or building.is_done):
            return
        said = self._lineup.on_tensorrt  # an int8 twin takes about a second
        if said and not building.is_done:
            yield BeingBuilt(building.iteration, building.seconds, waited_for=True)
        building.wait()
        problem, found = None, dict[str, Any]()
        try:
            found |= self._lineup.take()
        except DeviceError as error:
            problem = str(error)
            found["problem"] = problem
        if self._lineup.refused:
            found["refused"] = self._lineup.refused
        # A row of its own: it is done in the midst of the next iteration, or after the last one.
        row = {"kind": "built", "iteration": building.iteration, "build_seconds": building.seconds, **found}
        self._note(row | {"seconds": self._budget.elapsed()})
        if said:
            yield Built(building.iteration, building.seconds, problem)

    def _match_if_due(self) -> Iterator[Event]:
        over = self._budget.is_over(self._iteration)
        if self._iteration and (over or self._budget.match_is_due(self._iteration)):
            yield from self._match(over)

    def _match(self, last: bool) -> Iterator[Event]:
        """The newest model against each opponent it has not met yet, on the same openings every time."""
        yield from self._change_over(wait=self._lineup.on_tensorrt)
        with self._time.stage("matches"):
            yield from self._play_matches(last)

    def _play_matches(self, last: bool) -> Iterator[Event]:
        settings, begin = self._settings, self._budget.elapsed()
        games = self._budget.final_match_games() if last else settings.match_games
        simulations = settings.simulations_in_matches
        player = self._player_in_matches(self._lineup.model or b"")
        rows = self._run.metrics()
        met = {row.get("opponent") for row in rows if row["kind"] == "match" and row["iteration"] == self._iteration}
        due = [name for name in _OPPONENTS if name not in met]
        played = 0
        for index, opponent in enumerate(due):
            make = _OPPONENTS[opponent]
            share = self._budget.match_seconds(begin, last=last) / (len(due) - index)
            result = play_match(
                lambda: make_position(settings.game),
                player,
                self._untrained() if make is None else make(),
                games,
                seed=settings.seed,
                opening_plies=settings.match_opening_plies,
                seconds_left=_countdown(share),
            )
            if result is None:  # there was no time for a single pair
                continue
            played += result.games
            low, high = result.interval
            row = {"kind": "match", "iteration": self._iteration, "opponent": opponent, "score": result.score}
            row |= {"low": low, "high": high, "wins": result.wins, "draws": result.draws, "losses": result.losses}
            row |= {"simulations": simulations, "seconds": self._budget.elapsed()}
            self._note(row)
            yield Matched(self._iteration, opponent, result)
        self._write_report()
        if not met:
            self._budget.note_match(self._budget.elapsed() - begin, max(1.0, played / len(due)))

    def _player_in_matches(self, model: bytes) -> SearchPlayer:
        settings, evaluator = self._settings, self._lineup.evaluator_for_matches(model, self._cores)
        return SearchPlayer(evaluator, settings.simulations_in_matches, **match_search(settings))

    def _untrained(self) -> SearchPlayer:
        learner = Learner.of(self._start, self._settings.network, seed=self._settings.seed)
        return self._player_in_matches(to_onnx(learner.averaged))

    def _note(self, row: Mapping[str, Any]) -> None:
        """One more row of metrics."""
        self._run.append_metrics(row)
        if self._board is not None:
            self._board.add(row)

    def _write_report(self) -> None:
        """The page that shows how the run goes, with the newest iteration's games."""
        settings, sealed = self._settings, self._run.sealed_iterations()
        records = self._run.sealed_games(sealed[-1]) if sealed else []
        page = make_report(
            f"{settings.game}: {self._run.path.name}",
            asdict(settings),
            self._run.metrics(),
            records,
            lambda: make_position(settings.game),
        )
        self._run.write_report(page)

    def _save(self) -> str:
        state: dict[str, Any] = {"iteration": self._iteration, "next_game": self._next_game}
        state |= {"positions": self._window.seen}
        path = self._run.save_checkpoint(
            self._iteration,
            model=self._learner.model_arrays(),
            optimizer=self._learner.optimizer_arrays(),
            state=state | {"budget": self._budget.state(), "resignation": self._resignation.state()},
            onnx=self._lineup.model or b"",
            int8=self._lineup.int8,
        )
        self._prune()
        return str(path)

    def _prune(self) -> None:
        self._run.prune_checkpoints(lambda iteration: _is_kept(iteration, self._iteration))
        self._lineup.prune_engines()

    def _resume(self) -> None:
        """Goes on from the newest checkpoint, if there is one."""
        checkpoints, sealed = self._run.checkpoints(), self._run.sealed_iterations()
        if checkpoints:
            checkpoint = self._run.load_checkpoint(checkpoints[-1])
            self._iteration = checkpoints[-1]
            self._learner.load(checkpoint.model, checkpoint.optimizer)
            self._lineup.model, self._twin = checkpoint.onnx, checkpoint.int8
            self._budget.load(checkpoint.state["budget"])
            self._resignation.load(checkpoint.state.get("resignation", self._resignation.state()))
            self._next_game = int(checkpoint.state["next_game"])
            self._refill_window(int(checkpoint.state["positions"]), [i for i in sealed if i <= self._iteration])
            self._prune()  # what a killed process had no time for
        self._run.trim_metrics(self._iteration)
        self._budget.advance_to(self._run.seconds_spent("iteration", "match", "stopped"))
        done = {row["iteration"] for row in self._run.metrics() if row["kind"] == "iteration"}
        for what, there in (("games", sealed), ("metrics", done)):
            missing = [str(i) for i in range(1, self._iteration + 1) if i not in there]
            if missing:
                self._run.notices.append(f"going on without the {what} of iteration {', '.join(missing)}: not there")

    def _refill_window(self, seen: int, sealed: list[int]) -> None:
        """The games that the window held: newest files first, until there are enough."""
        self._window.seen = seen
        held: list[list[_core.GameRecord]] = []
        positions = 0
        for iteration in reversed(sealed):
            if positions >= self._window.size:
                break
            held.append(self._run.sealed_games(iteration))
            positions += sum(record.positions for record in held[-1])
        self._window.seen = seen - positions
        self._window.add(record for records in reversed(held) for record in records)


def _countdown(seconds: float) -> Callable[[], float]:
    """Says how many of `seconds` are left, from now on."""
    until = time.monotonic() + seconds
    return lambda: until - time.monotonic()


def opponents_of(iteration: int) -> list[int]:
    """Checkpoints whose networks play one side of some of an iteration's games: two of those that are kept, in turn.

    They depend on the iteration alone, and are there whenever a run goes on with it: the same games come of it.
    """
    newest = iteration - 1  # plays the other side
    kept = [checkpoint for checkpoint in range(1, newest) if _is_kept(checkpoint, newest)]
    if not kept:
        return []
    return sorted({kept[(iteration + turn * len(kept) // _AT_ONCE) % len(kept)] for turn in range(_AT_ONCE)})


def _is_kept(checkpoint: int, newest: int) -> bool:
    """Whether a checkpoint is there once that of iteration `newest` is written."""
    return checkpoint > newest - _KEEP_NEWEST or checkpoint % _KEEP_EVERY == 0
