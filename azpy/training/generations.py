"""The networks that play in a run: which, in which precision, and whether they may.

What is not the exported float32 model says nearly the same on positions of the run's own games before it plays
(`parity.py`). What takes long to make ready, a TensorRT engine, or what need not be waited for, an int8 twin, is made
in a thread while the model before plays on. Knows nothing of games that are played, or of how networks learn.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy.errors import DeviceError, ModelError, RunError
from azpy.evaluators.drift import drift, held_out
from azpy.evaluators.int8 import LEAST_TIMES_AS_FAST, calibration, times_as_fast, to_int8
from azpy.evaluators.onnx import OnnxEvaluator, network_id
from azpy.learning.network import PARITY_TOLERANCE, Network, check_parity, to_onnx
from azpy.positions import Position
from azpy.runs.folder import RunFolder
from azpy.runs.reader import read_player
from azpy.settings import Settings
from azpy.training.building import Building

__all__ = ["Lineup"]

_PARITY_ROWS = 64
_TENSORRT_TOLERANCE = 2e-2  # its layers may use TF32, which keeps 10 bits of a number, whatever is asked of it
NOT_ROW_EXACT = "here the model's answer to a position depends on what else is in its batch"


class _Ready(NamedTuple):
    """A model that may play.

    Attributes:
        evaluators: one a device; none where what plays goes on playing.
        checks: what its checks found.
        precision: in which it plays.
        refused: why not in the one that is wanted.
        int8: the twin's file, where that is what plays.
    """

    evaluators: list[OnnxEvaluator]
    checks: dict[str, float]
    precision: str
    refused: str
    int8: bytes | None = None


class Lineup:
    """What plays in a run.

    Args:
        settings: of the run.
        start: where its games start.
        run: where engines, twins and earlier networks lie.
        swap: called with the evaluators, one a device, whenever others play from now on.

    Attributes:
        evaluators: what plays, one a device; none until `publish` or `reopen`.
        model: the newest network's file, in float32; it may not play yet. Set for `reopen`.
        int8: its twin's, where that plays.
        building: what is to play next, where it is being made.
        earlier: networks of earlier iterations that play one side of some games, one a device, by checkpoint.
    """

    def __init__(
        self, settings: Settings, start: Position, run: RunFolder, swap: Callable[[Sequence[OnnxEvaluator]], None]
    ) -> None:
        self._settings, self._start, self._run, self._swap = settings, start, run, swap
        self._devices = settings.device_names
        self._precision = "fp32"  # of what plays on a GPU
        self._faster: bool | None = None  # whether int8 is, where it is to be taken if it is
        self._refused = self._twin_refused = ""
        self._newest = 0
        self.evaluators: list[OnnxEvaluator] = []
        self.model: bytes | None = None
        self.int8: bytes | None = None
        self.building: Building[_Ready] | None = None
        self.earlier: dict[int, list[OnnxEvaluator]] = {}

    @property
    def refused(self) -> str:
        """Why fp32 plays where something else is wanted, or ""."""
        return self._refused or ("" if self.int8 is not None else self._twin_refused)

    @property
    def needs_games(self) -> bool:
        """Whether what plays is checked on games."""
        return self._reduced != "fp32" or self._wants_int8

    @property
    def on_tensorrt(self) -> bool:
        """Whether networks play on TensorRT, which takes long to make each ready."""
        return self._settings.device.startswith("tensorrt")

    @property
    def on_cpu(self) -> bool:
        """Whether networks play on the CPU."""
        return self._devices[0] == "cpu"

    @property
    def to_come(self) -> str:
        """What is wanted and does not play yet, in words, or ""."""
        if self._reduced != self._precision:
            return f" ({self._reduced} once it passes its check)"
        if self._wants_int8 and self.int8 is None:
            faster = " and is faster here" if self._settings.precision == "auto" else ""
            return f" (int8 once a twin of it passes its check{faster})"
        return ""

    def publish(
        self, network: Network, iteration: int = 0, buffer: _core.ReplayBuffer | None = None, *, last: bool = False
    ) -> dict[str, float]:
        """Exports a network, checks the model against it, and has it play.

        A TensorRT engine is only begun here, once something plays that can play on, and so is an int8 twin but in
        deterministic runs: `take` does the rest.

        Args:
            network: the newest.
            iteration: that it was fitted in, 0 before the first.
            buffer: games to check it on, if there are any.
            last: it is to play no games, so that it needs no twin; deterministic runs may go on, and make one.

        Returns:
            What the checks found.
        """
        model = to_onnx(network)
        if buffer is None:
            observations, positions = self._some_observations(), None
        else:
            observations, *_ = buffer.sample(_PARITY_ROWS, seed=iteration)
            positions = held_out(buffer, iteration) if self._reduced != "fp32" else None
        self.model, self._newest = model, iteration
        if self.on_tensorrt and self.evaluators:
            as_it_is = copy.deepcopy(network)
            self.building = Building(iteration, lambda: self._open_checked(model, as_it_is, observations, positions))
            return {}
        ready = self._open_checked(model, network, observations, positions)
        self._play(ready)
        if last and not self._settings.deterministic:
            return ready.checks
        return ready.checks | self._begin_twin(iteration, buffer)

    def reopen(self, network: Network, int8: bytes | None, iteration: int, buffer: _core.ReplayBuffer | None) -> None:
        """Has a checkpoint's `model` play, with its checks: the device or the precision may be another than before.

        Args:
            network: of the checkpoint.
            int8: its twin's, if there is one.
            iteration: of the checkpoint.
            buffer: games to check it on, if there are any and it is to play.
        """
        self._newest = iteration
        model, observations = self.model or b"", self._some_observations()
        positions = held_out(buffer, iteration) if buffer is not None and self._reduced != "fp32" else None
        try:
            ready = self._open_checked(model, network, observations, positions)
        except DeviceError as error:
            if not self.on_tensorrt:
                raise
            # As in a run that was not interrupted: a later network may have an engine.
            self._run.notices.append(f"no engine, so that CUDA plays until another network has one: {error}")
            ready = self._open_checked(model, network, observations, positions, on_cuda=True)
        self._play(ready)
        if buffer is not None and self._wants_int8 and int8 is not None:
            self._play(self._checked_twin(lambda: int8, held_out(buffer, iteration)))
        elif buffer is not None:
            self._begin_twin(iteration, buffer)

    def take(self) -> dict[str, float]:
        """Has what was being made play, once it is ready.

        Returns:
            What its checks found.

        Raises:
            DeviceError: it cannot be had; what plays plays on, and nothing is being made any more.
        """
        building, self.building = self.building, None
        if building is None:
            return {}
        ready = building.take()
        if building.iteration == self._newest:  # else it took longer than to play and to fit, and would be a step back
            self._play(ready)
        return ready.checks

    def choose_opponents(self, chosen: Sequence[int]) -> bool:
        """Opens the networks of these checkpoints, as far as they are there, and lets go of others.

        Returns:
            Whether they are others than before.

        Raises:
            RunError: one is not there, and a deterministic run would go on with other games.
        """
        there = self._run.checkpoints()
        for missing in [checkpoint for checkpoint in chosen if checkpoint not in there]:
            if self._settings.deterministic:
                raise RunError(
                    f"{self._run.path} has no checkpoint {missing} any more: without its network the games of a "
                    "deterministic run with historical_share are others"
                )
        before, self.earlier = self.earlier, {}
        for checkpoint in chosen:
            if checkpoint in before:
                self.earlier[checkpoint] = before[checkpoint]
            elif checkpoint in there:
                model = read_player(self._run.path / f"checkpoints/{checkpoint:06d}")
                # An engine for each would take longer than they play.
                self.earlier[checkpoint] = self._open(model, on_cuda=True)
        return self.earlier.keys() != before.keys()

    def evaluator_for_matches(self, model: bytes, threads: int) -> OnnxEvaluator:
        """A model in float32. On CUDA even where TensorRT plays: what has no engine can still be measured."""
        return OnnxEvaluator(model, self._cuda_devices[0], game=self._start, threads=threads)

    def prune_engines(self) -> None:
        """Deletes TensorRT's engines of networks that play no more."""
        if not self.on_tensorrt or self.model is None:
            return
        kept = {evaluator.network_id for evaluator in self.evaluators}
        kept |= {network_id(self.model, precision) for precision in ("fp32", self._reduced)}
        for file in self._engines.glob("azpy-*"):  # their names hold the network's id
            if not any(f"{one:016x}" in file.name for one in kept):
                file.unlink(missing_ok=True)

    def _play(self, ready: _Ready) -> None:
        if not ready.evaluators:
            self._twin_refused = ready.refused
            return
        if ready.int8 is None:
            self._refused = ready.refused  # that of a twin stands until one plays
        else:
            self._twin_refused = ""
            # First, so that every network that plays is there for whoever repeats the games. A checkpoint that is yet
            # to be written will have the twin.
            self._run.add_twin(self._newest, ready.int8)
        self.evaluators, self._precision, self.int8 = ready.evaluators, ready.precision, ready.int8
        self._swap(self.evaluators)

    def _begin_twin(self, iteration: int, buffer: _core.ReplayBuffer | None) -> dict[str, float]:
        """Begins an int8 twin of the model that plays, if one is wanted; in deterministic runs waits for it, too.

        Returns:
            What its checks found, where it was waited for.
        """
        if not self._wants_int8 or buffer is None:
            return {}
        if self.building is not None:
            self._twin_refused = "an int8 model takes longer to make than an iteration: play more games in each"
            return {}
        model, to_calibrate, to_check = self.model or b"", calibration(buffer, iteration), held_out(buffer, iteration)

        def make() -> _Ready:
            return self._checked_twin(lambda: to_int8(model, to_calibrate), to_check)

        if not self._settings.deterministic:
            self.building = Building(iteration, make)
            return {}
        ready = make()
        self._play(ready)
        return ready.checks

    def _checked_twin(
        self, make: Callable[[], bytes], positions: tuple[NDArray[np.float32], NDArray[np.bool_]]
    ) -> _Ready:
        """A twin that may play instead of the model that does, or none and why not."""
        exact = self.evaluators[0]
        try:
            twin = make()
            evaluators = self._open(twin)
        except ModelError as error:  # a layer that cannot be quantized, no space for its files
            if self._settings.deterministic:  # what may be so once would make other games
                raise
            return _Ready([], {}, "fp32", f"int8 does not do: {error}")
        found = drift(exact, evaluators[0], *positions)
        checks = {"int8_policy": found.policy, "int8_value": found.value, "int8_agreement": found.agreement}
        if found.too_far:
            return _Ready([], checks, "fp32", f"the int8 model is too far from it: {found.too_far}")
        if self._settings.precision == "auto" and self._faster is None:  # the next one's network is as large
            times = times_as_fast(exact, evaluators[0], positions[0][: self._settings.device_batch])
            checks["int8_times_as_fast"] = times
            self._faster = times >= LEAST_TIMES_AS_FAST
        if self._faster is False:
            return _Ready([], checks, "fp32", "")
        return _Ready(evaluators, checks, "fp32", "", twin)

    def _open_checked(
        self,
        model: bytes,
        network: Network,
        observations: NDArray[np.float32],
        positions: tuple[NDArray[np.float32], NDArray[np.bool_]] | None,
        *,
        on_cuda: bool = False,
    ) -> _Ready:
        """`_open` in the precision that is wanted, if that says nearly what fp32 says on `positions`, else in fp32."""
        precision, refused, checks = self._reduced, "", dict[str, float]()
        if positions is not None:
            exact = OnnxEvaluator(model, self._cuda_devices[0], game=self._start)
            checks["parity"] = check_parity(network, exact, observations)
            try:
                evaluators = self._open(model, precision, on_cuda=on_cuda)
                found = drift(exact, evaluators[0], *positions)
                for name in ("policy", "value", "agreement"):
                    checks[f"{precision}_{name}"] = getattr(found, name)
                refused = f"{precision} is too far from it: {found.too_far}" if found.too_far else ""
            except (ModelError, DeviceError) as error:  # numbers that are too large; no kernel for it
                refused = f"{precision} does not do: {error}"
            if not refused:
                return _Ready(evaluators, checks, precision, "")
        evaluators = self._open(model, on_cuda=on_cuda)
        tolerance = _TENSORRT_TOLERANCE if self.on_tensorrt and not on_cuda else PARITY_TOLERANCE
        checks["parity"] = check_parity(network, evaluators[0], observations, tolerance)
        return _Ready(evaluators, checks, "fp32", refused)

    def _open(self, model: bytes, precision: str = "fp32", *, on_cuda: bool = False) -> list[OnnxEvaluator]:
        """An evaluator on each of the devices; with `on_cuda`, of `_cuda_devices`."""
        devices = self._cuda_devices if on_cuda else self._devices
        options: Mapping[str, Any] = {"game": self._start, "precision": precision, "cache_dir": self._engines}
        evaluators = [OnnxEvaluator(model, device, **options) for device in devices]
        if "auto" in self._devices:
            self._devices = tuple(evaluator.device for evaluator in evaluators)  # "auto" chooses once
        for evaluator in evaluators:
            if self._settings.deterministic and not evaluator.row_exact:
                raise ModelError(f"a deterministic run cannot be: {NOT_ROW_EXACT}")
        return evaluators

    def _some_observations(self) -> NDArray[np.float32]:
        rng = np.random.default_rng(self._settings.seed)
        # Ones and zeros: planes that travel as bytes hold nothing in between.
        return rng.integers(0, 2, (_PARITY_ROWS, *self._start.obs_shape)).astype(np.float32)

    @property
    def _wants_int8(self) -> bool:
        if self._settings.precision != "auto":
            return self._settings.precision == "int8"
        return self.on_cpu and not self._settings.deterministic and self._faster is not False

    @property
    def _reduced(self) -> str:
        """The precision that is wanted on a GPU."""
        return "fp32" if self._settings.precision in {"int8", "auto"} else self._settings.precision

    @property
    def _cuda_devices(self) -> tuple[str, ...]:
        """The devices, with CUDA in place of TensorRT: for what is not worth an engine, or cannot have one."""
        return tuple(device.replace("tensorrt", "cuda") for device in self._devices)

    @property
    def _engines(self) -> Path:
        """Where TensorRT keeps the engines of this run; each generation would leave one in a cache for all."""
        return self._run.path / "engines"
