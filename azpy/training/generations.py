"""The networks that play in a run, and their precision.

A model other than the exported float32 model is first compared with it on positions of the run's own games
(`azpy/evaluators/drift.py`). On TensorRT an engine is built for each network before it plays.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from torch.nn import Module

from azpy import _core
from azpy.devices import Device
from azpy.errors import DeviceError, ModelError
from azpy.evaluators.choice import half_precision, open_generation
from azpy.evaluators.drift import Drift, drift, rows_to_compare
from azpy.evaluators.int8 import LEAST_TIMES_AS_FAST, calibration, times_as_fast, to_int8
from azpy.evaluators.onnx import network_id
from azpy.evaluators.protocol import CheckedEvaluator
from azpy.fleet.fleet import Lineup
from azpy.learning.export import PARITY_TOLERANCE, check_parity, to_onnx
from azpy.runs.folder import RunFolder
from azpy.settings import Settings
from azpy.training.loop import CANNOT_BE_DETERMINISTIC

_PARITY_ROWS = 64
_TF32_TOLERANCE = 2e-2  # NVIDIA's libraries may keep 10 bits of a number
_KEEP_NEWEST, _KEEP_EVERY = 3, 10  # checkpoints that are not deleted: the newest, and every tenth


def is_kept(checkpoint: int, newest: int) -> bool:
    """Whether a checkpoint is kept once the checkpoint of iteration `newest` is written."""
    return checkpoint > newest - _KEEP_NEWEST or checkpoint % _KEEP_EVERY == 0


class Ready(NamedTuple):
    """A model that may play."""

    evaluators: list[CheckedEvaluator]  # one a device; none if the model cannot play
    checks: dict[str, float]  # figures of its checks
    precision: str = "fp32"  # in which it plays
    refused: str = ""  # why it does not play in the precision of the settings
    int8: bytes | None = None  # the int8 model's file, if that plays


class Generations:
    """The networks that play in a run. All attributes are written by the thread that calls.

    Attributes:
        ready: the network that plays; without evaluators until `publish` or `reopen`.
        model: the newest network's file, in float32. Empty at first. Set `model` and the `int8` of `ready` before
            `reopen`.
        on_tensorrt: whether networks play on TensorRT, which takes from seconds to minutes to build an engine for each.
    """

    def __init__(self, settings: Settings, start: _core.State, run: RunFolder) -> None:
        self._settings, self._start, self._run = settings, start, run
        self._devices, self._batch = settings.all_devices, settings.device_batch
        self._engines = run.path / "engines"  # the user's cache would keep an engine of every generation
        self.on_tensorrt = self._devices[0].kind == "tensorrt"
        self._faster: bool | None = None  # with precision auto: whether int8 is faster here
        self.ready = Ready([], {})
        self.model = b""

    def lineup(self, score_to_beat: float | None) -> Lineup:
        """The network of `ready`, and how its games are played."""
        ready = self.ready
        return Lineup(ready.evaluators, ready.int8 or self.model, ready.precision, score_to_beat, self._devices)

    def publish(
        self, network: Module, iteration: int = 0, buffer: _core.ReplayBuffer | None = None, *, last: bool = False
    ) -> dict[str, float]:
        """Export a network, check the model against it, and have it play; return figures of the checks.

        Args:
            network: the newest.
            iteration: in which it was fitted, 0 before the first.
            buffer: games to check the model on, if there are any.
            last: the network will play no games, so it gets no int8 model. A deterministic run still makes one, so that
                it plays the same games if it goes on.
        """
        self.model = to_onnx(network)
        self.ready = self._checked(network, iteration, buffer)
        if buffer is not None and (self._settings.deterministic or not last):
            self.ready = self._with_int8(self.ready, None, iteration, buffer)
        return self.ready.checks

    def reopen(self, network: Module, iteration: int, buffer: _core.ReplayBuffer | None) -> None:
        """Have a checkpoint's `model`, or the int8 model in `ready`, play after its checks on games in `buffer`.

        The device or the precision may have changed since the checkpoint.
        """
        int8 = self.ready.int8
        self.ready = self._checked(network, iteration, buffer)
        if buffer is not None:
            self.ready = self._with_int8(self.ready, int8, iteration, buffer)
            if self.ready.int8 is not None and int8 is None:
                # Before it plays, so that its games can be repeated.
                self._run.add_int8(iteration, self.ready.int8)

    def evaluator_for_matches(self, model: bytes, threads: int) -> CheckedEvaluator:
        """A model in float32; on CUDA in place of TensorRT, whose engine takes longer than a match."""
        return self._opened(model, self._devices[0].without_tensorrt, threads=threads)

    def prune_engines(self) -> None:
        """Delete the TensorRT engines of networks that no longer play."""
        kept = {network_id(self.model, precision) for precision in ("fp32", self.reduced)}
        for file in self._engines.glob("azpy-*"):  # their names hold the network's id
            if not any(f"{one:016x}" in file.name for one in kept):
                file.unlink(missing_ok=True)

    def _with_int8(self, ready: Ready, int8: bytes | None, iteration: int, buffer: _core.ReplayBuffer) -> Ready:
        """The int8 model in place of `ready` if it is wanted and passes its check, else `ready` and the reason.

        `int8` is its file, None to make it from `model`. Self-play is paused meanwhile: its threads would slow the
        timing.
        """
        if not self._wants_int8:
            return ready
        exact, positions = ready.evaluators[0], rows_to_compare(buffer, iteration)
        try:
            int8 = to_int8(self.model, calibration(buffer, iteration)) if int8 is None else int8
            evaluators = self._open(int8, self._devices)
        except ModelError as error:  # a layer cannot be quantized, or there is no space for its files
            if self._settings.deterministic:  # the error may not repeat, and then the games would differ
                raise
            return ready._replace(refused=f"int8 is not possible for this network: {error}")
        found = drift(exact, evaluators[0], *positions)
        ready.checks.update(_figures("int8", found))
        if found.too_far:
            return ready._replace(refused=f"the int8 model differs too much from it: {found.too_far}")
        if self._settings.precision == "auto" and self._faster is None:  # later networks have the same size
            times = times_as_fast(exact, evaluators[0], positions[0][: self._batch])
            ready.checks["int8_times_as_fast"] = times
            self._faster = times >= LEAST_TIMES_AS_FAST
        return ready if self._faster is False else ready._replace(evaluators=evaluators, int8=int8)

    def _checked(self, network: Module, iteration: int, buffer: _core.ReplayBuffer | None) -> Ready:
        """`model` in the precision of the settings if it says nearly the same as fp32 on games, else in fp32."""
        if buffer is None:
            rng = np.random.default_rng(self._settings.seed)
            observations = rng.integers(0, 2, (_PARITY_ROWS, *self._start.obs_shape)).astype(np.float32)
        else:
            observations, *_ = buffer.sample(_PARITY_ROWS, seed=iteration)
        # "auto" chooses a device first: `reduced` depends on it.
        chosen = self._open(self.model, self._devices) if self._devices[0].kind == "auto" else []
        precision, refused, checks = self.reduced, "", dict[str, float]()
        if buffer is not None and precision != "fp32":
            exact = self._opened(self.model, self._devices[0].without_tensorrt, batch=self._batch)
            checks["parity"] = check_parity(network, exact, observations, _tolerance(exact))
            try:
                evaluators = self._open(self.model, self._devices, precision)
                for evaluator, first in zip(evaluators, chosen, strict=False):
                    evaluator.notes = first.notes
                found = drift(exact, evaluators[0], *rows_to_compare(buffer, iteration))
                checks |= _figures(precision, found)
                if not found.too_far:
                    return Ready(evaluators, checks, precision)
                refused = f"{precision} differs too much from it: {found.too_far}"
            except (ModelError, DeviceError) as error:  # numbers are too large, or there is no kernel
                refused = f"{precision} is not possible for this network: {error}"
        evaluators = chosen or self._open(self.model, self._devices)
        checks["parity"] = check_parity(network, evaluators[0], observations, _tolerance(evaluators[0]))
        return Ready(evaluators, checks, refused=refused)

    def _open(self, model: bytes, devices: Sequence[Device], precision: str = "fp32") -> list[CheckedEvaluator]:
        """An evaluator on each of the devices."""
        options: dict[str, Any] = {"precision": precision, "cache_dir": self._engines, "batch": self._batch}
        evaluators = [self._opened(model, device, **options) for device in devices]
        if self._devices[0].kind == "auto":
            self._devices = tuple(Device.read(evaluator.device) for evaluator in evaluators)  # "auto" chooses once
        for evaluator in evaluators:
            if self._settings.deterministic and not evaluator.row_exact:
                raise ModelError(CANNOT_BE_DETERMINISTIC)
        return evaluators

    def _opened(self, model: bytes, device: Device, **options: Any) -> CheckedEvaluator:
        return open_generation(model, device, self._settings, game=self._start, **options)

    @property
    def _wants_int8(self) -> bool:
        if self._settings.precision != "auto":
            return self._settings.precision == "int8"
        return self._devices[0].kind == "cpu" and not self._settings.deterministic and self._faster is not False

    @property
    def reduced(self) -> str:
        """The precision in which the settings ask for the float32 model."""
        return half_precision(self._settings, self._devices)


def _tolerance(evaluator: CheckedEvaluator) -> float:
    on_nvidia = Device.read(evaluator.device).kind in ("cuda", "tensorrt")
    return _TF32_TOLERANCE if on_nvidia else PARITY_TOLERANCE


def _figures(precision: str, found: Drift) -> dict[str, float]:
    return {f"{precision}_{name}": value for name, value in asdict(found).items()}
