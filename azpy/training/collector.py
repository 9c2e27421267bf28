"""Self-play alone: games of a model, or of no network, sealed an iteration at a time. It needs no torch.

A user may train elsewhere and replace the model's file: the new model plays from the next iteration on.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from azpy import _core
from azpy.devices import CPU, Device
from azpy.errors import ModelError, RunError, SettingsError
from azpy.evaluators.onnx import OnnxEvaluator, model_bytes, network_id
from azpy.fleet.fleet import Lineup
from azpy.playing.selfplay import on_devices
from azpy.settings.run import Settings
from azpy.settings.toml import path_argument
from azpy.training.budget import Budget
from azpy.training.events import Event, Saved
from azpy.training.loop import CANNOT_BE_DETERMINISTIC, Loop, start_of


class Collector(Loop):
    """One collection of games on one machine.

    Args:
        settings: of the run; those about learning and matches have no effect.
        path: the run folder; made, or gone on with.
        model: of ONNX, see `OnnxEvaluator`; None: every leaf has even priors and value 0.

    Raises:
        RunError: the folder is in use, damaged, of another run, or of one that trains.
        SettingsError: no such game, or a `precision`.
        ModelError: the model is missing, damaged, or does not fit the game.
        MissingPackageError: a model was given and onnxruntime is not installed.
    """

    _STOPPED = "stopped_collecting"

    def __init__(
        self, settings: Settings, path: str | os.PathLike[str], model: str | os.PathLike[str] | None = None
    ) -> None:
        if settings.precision not in {"fp32", "auto"}:
            raise SettingsError(
                "precision applies to training, which checks each generation in it; a collection plays the given "
                "model, in fp32 unless it is an int8 model (az-export RUN --onnx-int8 FILE makes one)"
            )
        budget, start = Budget(settings, opponents=0), start_of(settings)
        if start.hides:
            raise SettingsError(
                f"{start.game} hides something, and learns from each network's own games: leave --collect-only out"
            )
        self._model = model
        self._evaluators: Sequence[Any] = [_core.UniformEvaluator()]  # one a device
        self._data: bytes | None = None  # the model
        self._played = 0
        self._take_model(settings, start)
        super().__init__(settings, start, budget, path, ["numpy"] if model is None else ["numpy", "onnxruntime"])

    def _resume(self) -> None:
        folder = self.folder
        folder.flags = ["--collect-only", *([] if self._model is None else ["--model", path_argument(self._model)])]
        sealed = folder.sealed.iterations()
        if folder.checkpoints() or 0 in sealed:
            raise RunError(f"{folder.path} holds a training run: choose another folder to collect games in")
        self.iteration = sealed[-1] if sealed else 0
        ids = [game for iteration in sealed for game in folder.sealed.ids(iteration)]
        self._played, self.next_game = len(ids), max(ids, default=-1) + 1
        if self.settings.ranked_reward:
            for iteration in sealed:
                self.ranked.note(folder.sealed.read(iteration))
        collected = [row for row in folder.metrics() if row["kind"] == "collected" and row["iteration"] in sealed]
        self.budget.evaluations = sum(row.get("evaluations", 0.0) for row in collected)
        self._resume_budget("collected")

    def run(self) -> Iterator[Event]:
        """Play until the budget is spent; every finished iteration leaves its sealed games and a row of metrics.

        Yields:
            The events, in order. An interruption at any point loses at most the games in play, once `close` is called.

        Raises:
            ModelError: the model's file was replaced by one that cannot play this game.
        """
        self._under_way = True
        self.time.restart()
        yield self._begin(self._evaluators, self._player())
        while not self.budget.is_over(self.iteration):
            self._take_model(self.settings, self.start)
            metrics = dict[str, float]()
            devices = [Device.read(getattr(each, "device", CPU)) for each in self._evaluators]
            lineup = Lineup(self._evaluators, self._data, score_to_beat=self.ranked.score_to_beat, devices=devices)
            games = yield from self._play(metrics, lineup)
            if not games:
                break
            self._played += len(games)
            self.iteration += 1
            metrics["seconds"] = self.budget.elapsed()
            self.time.restart()
            self.note({"kind": "collected", "iteration": self.iteration, "model": self._player()} | metrics)
            yield Saved(self.iteration, str(self.folder.sealed.path(self.iteration)), metrics)
        yield self._finish(self._played)

    def _take_model(self, settings: Settings, start: _core.State) -> None:
        """Open the model's file if it holds another model than before."""
        if self._model is None:
            return
        _, data = model_bytes(self._model)  # once: the file may change meanwhile
        if getattr(self._evaluators[0], "network_id", None) == network_id(data):
            return
        try:
            options: dict[str, Any] = {"game": start, "batch": settings.device_batch}
            evaluators = [OnnxEvaluator(data, device, **options) for device in settings.all_devices]
        except ModelError as error:  # of bytes it only says "model"
            raise ModelError(f"{os.fspath(self._model)}: {error}") from error
        if settings.deterministic and not all(evaluator.row_exact for evaluator in evaluators):
            raise ModelError(CANNOT_BE_DETERMINISTIC)
        self._evaluators, self._data = evaluators, data

    def _player(self) -> str:
        if self._model is None:
            return "no network: even priors and value 0"
        network, device = self._evaluators[0].network_id, on_devices(self._evaluators)
        return f"{os.fspath(self._model)} (network {network:#018x}) on {device}"
