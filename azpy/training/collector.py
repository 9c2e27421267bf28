"""Self-play alone, for people who train elsewhere: games of a model, or of none, sealed an iteration at a time.

No gradient step, no checkpoint, no torch. When the model's file is replaced between two iterations, the next one is
played by the new model: that is how somebody else's training closes the loop.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from azpy import _core
from azpy.errors import ModelError, RunError, SettingsError
from azpy.evaluators.onnx import OnnxEvaluator, network_id
from azpy.machine import made_with
from azpy.playing.resignation import Resignation
from azpy.playing.selfplay import ids_of_iteration, known_ids, on_devices, open_self_play, play_on, player_of, take_rest
from azpy.positions import make_position
from azpy.runs.folder import RunFolder
from azpy.settings.run import FIXED_SETTINGS, Settings
from azpy.settings.toml import path_argument
from azpy.training.events import CollectEvent, CollectFinished, CollectStarted, Played, Sealed

__all__ = ["Collector"]

_UNIFORM = "no network: even priors and value 0"


class Collector:
    """One collection of games on one machine.

    Args:
        settings: of the run; those about learning and matches have no effect.
        path: the run folder; made, or gone on with.
        model: file of an ONNX model, see `OnnxEvaluator`; None: every leaf has even priors and value 0.

    Raises:
        RunError: the folder is in use, damaged, of another run, or of one that trains.
        SettingsError: no such game, `historical_share`, or a `precision`.
        ModelError: the model is missing, damaged, or does not fit the game.
        MissingPackageError: a model was given and onnxruntime is not installed.

    Example:
        >>> with Collector(
        ...     Settings("tic_tac_toe", games_per_iteration=20, iterations=1), "runs/c"
        ... ) as collector:  # doctest: +SKIP
        ...     for event in collector.run():
        ...         print(event)
    """

    def __init__(
        self, settings: Settings, path: str | os.PathLike[str], model: str | os.PathLike[str] | None = None
    ) -> None:
        if settings.historical_share:
            raise SettingsError("historical_share needs checkpoints, and a collection has none: leave it at 0")
        if settings.precision not in {"fp32", "auto"}:
            raise SettingsError(
                "precision is for training, which checks each generation in it; a collection plays the model that it "
                "is given, in fp32 if that is no int8 model (az-export RUN --onnx-int8 FILE makes one)"
            )
        self._settings = settings
        self._start = make_position(settings.game)
        self._model = model
        self._evaluators: Sequence[Any] = [_core.UniformEvaluator()]  # one a device
        self._self_play: _core.SelfPlay | None = None
        self._under_way = False
        self._resignation = Resignation(settings.resign_below)
        self._take_model()
        packages = ["numpy"] if model is None else ["numpy", "onnxruntime"]
        flags = ["--collect-only", *([] if model is None else ["--model", path_argument(model)])]
        self._run = RunFolder(path, asdict(settings), FIXED_SETTINGS, made_with(*packages), flags)
        try:
            if self._run.checkpoints():
                raise RunError(f"{path} holds a training run: choose another folder to collect games in")
            self._resume()
            self._run.write_settings()
        except BaseException:
            self._run.close()
            raise

    def _resume(self) -> None:
        sealed = self._run.sealed_iterations()
        self._iteration = sealed[-1] if sealed else 0
        ids = [game for iteration in sealed for game in self._run.sealed_game_ids(iteration)]
        self._games, self._next_game = len(ids), max(ids, default=-1) + 1
        if self._settings.resign_below > -1:
            for iteration in sealed:
                self._resignation.note(self._run.sealed_games(iteration))
        self._run.trim_metrics(self._iteration)
        self._begin = time.monotonic() - self._run.seconds_spent("collected", "stopped_collecting")
        self._run.note_changes(self._iteration, self._elapsed(), deterministic=self._settings.deterministic)

    def close(self) -> None:
        """Stops self-play and lets go of the run folder.

        In the middle of a run, its journal gets all finished games, and its metrics the time spent.
        """
        play, self._self_play = self._self_play, None
        under_way, self._under_way = self._under_way, False
        with contextlib.ExitStack() as last_first:  # all of it is done, whatever fails
            last_first.callback(self._run.close)
            if under_way:
                last_first.callback(self._run.note_stop, "stopped_collecting", self._iteration, self._elapsed())
            if play is not None:
                last_first.callback(play.close)
            if play is not None and under_way:
                known = known_ids(self._settings, self._next_game, self._run.journal)
                last_first.callback(take_rest, play, known, self._run.append)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self) -> Iterator[CollectEvent]:
        """Plays until the budget is spent; every finished iteration leaves its sealed games and a row of metrics.

        Yields:
            What happens, in order. An interruption at any point loses at most the games in play, once `close` is
            called.

        Raises:
            ModelError: the model's file was replaced by one that cannot play this game.
        """
        path = str(self._run.path)
        self._under_way = True
        notes = dict.fromkeys(note for evaluator in self._evaluators for note in getattr(evaluator, "notes", ()))
        notices = (*self._run.notices, *notes)
        yield CollectStarted(path, self._settings, self._player(), self._iteration, self._elapsed(), notices)
        while not self._is_over():
            self._take_model()
            yield from self._iterate(self._iteration + 1)
        self._under_way = False
        game, repeatable = self._run.newest_game(), self._run.is_repeatable()
        yield CollectFinished(path, self._iteration, self._games, self._elapsed(), game, repeatable)

    def _iterate(self, iteration: int) -> Iterator[CollectEvent]:
        metrics: dict[str, float] = {}
        yield from self._play(iteration, metrics)
        games = self._run.seal(iteration, ids_of_iteration(self._settings, self._next_game))
        self._next_game = max(self._next_game, *(record.game_id + 1 for record in games))
        self._iteration = iteration
        self._games += len(games)
        metrics |= self._resignation.note(games)
        if self._self_play is not None:
            self._self_play.set_resign_below(self._resignation.below)
        metrics |= {"games": len(games), "positions": sum(game.positions for game in games), "seconds": self._elapsed()}
        row = {"kind": "collected", "iteration": iteration, "model": self._player()} | metrics
        self._run.append_metrics(row)
        yield Sealed(iteration, f"{self._run.path}/games/{iteration:06d}.npz", metrics)

    def _play(self, iteration: int, metrics: dict[str, float]) -> Iterator[CollectEvent]:
        """Self-play until the journal holds the iteration's games, or, with one game at least, time is up."""
        target = self._settings.games_per_iteration
        known = known_ids(self._settings, self._next_game, self._run.journal)
        if len(known) >= target:
            return
        if self._self_play is None:
            self._self_play = open_self_play(
                self._settings,
                self._start,
                player_of(self._evaluators),
                self._next_game,
                known,
                resign_below=self._resignation.below,
            )
        play = self._self_play
        play.resume()
        for found in play_on(play, known, target, self._run.append, lambda: not self._is_time_up()):
            metrics.update(found)
            yield Played(iteration, len(known), dict(metrics))
        if self._settings.deterministic:
            play.close()
            self._self_play = None
        else:
            play.pause()

    def _take_model(self) -> None:
        """Plays with what the model's file holds now."""
        if self._model is None:
            return
        try:
            data = Path(self._model).read_bytes()  # once: another may write it meanwhile
        except OSError as error:
            raise ModelError(f"model {os.fspath(self._model)} cannot be read: {error.strerror or error}") from error
        if getattr(self._evaluators[0], "network_id", None) == network_id(data):
            return
        try:
            evaluators = [OnnxEvaluator(data, device, game=self._start) for device in self._settings.device_names]
        except ModelError as error:  # of bytes it only says "model"
            raise ModelError(f"{os.fspath(self._model)}: {error}") from error
        if self._settings.deterministic and not all(evaluator.row_exact for evaluator in evaluators):
            raise ModelError(
                "a deterministic run cannot be: here the model's answer depends on what else is in its batch"
            )
        self._evaluators = evaluators
        if self._self_play is not None:
            self._self_play.swap(evaluators)

    def _player(self) -> str:
        """Who plays, in words."""
        if self._model is None:
            return _UNIFORM
        network, device = self._evaluators[0].network_id, on_devices(self._evaluators)
        return f"{os.fspath(self._model)} (network {network:#018x}) on {device}"

    def _elapsed(self) -> float:
        """Seconds since the collection began, without the time between its parts."""
        return time.monotonic() - self._begin

    def _is_time_up(self) -> bool:
        minutes = self._settings.minutes
        return minutes is not None and self._elapsed() >= 60 * minutes

    def _is_over(self) -> bool:
        iterations = self._settings.iterations
        return (iterations is not None and self._iteration >= iterations) or self._is_time_up()
