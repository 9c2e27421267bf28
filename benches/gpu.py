"""Evaluation at the speed of the device: evaluators and self-play over what the device does with the same model alone.

    python benches/gpu.py [--device auto] [--rows 512] [--seconds 0.4] [--repeats 3] [--minutes 8] [--json FILE]

A line for each evaluator and precision:

- ceiling: rows a second of the model alone, batch after batch from memory of the device (on a CPU: of one core), and
  its share of what the device reaches in a large matrix product of the same precision, measured here too
- alone: rows a second through `evaluate_batch` from memory of the host, one caller, over the ceiling
- self-play with 1, 2 and 3 pipelines, cache off: rows a second, over the ceiling, and in brackets the share of the time
  in which the GPU was busy (nvidia-smi)
- parity: how far its answers are from those of fp32 on positions of random games: KL in nats, values, same best action

What is on one line took turns, and each figure is a median. All of it takes less than --minutes: what does not fit is
named. Without a GPU (--device cpu) the same table is made of small networks, in about a minute. Needs torch and onnx
(extra `train`).
"""

import argparse
import json
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from onnxruntime import OrtValue
from torch.utils.flop_counter import FlopCounterMode

from azpy._core import State
from azpy.devices import BUCKETS
from azpy.errors import AzpyError
from azpy.evaluators.drift import drift
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.protocol import first_line
from azpy.evaluators.torch import TorchEvaluator
from azpy.games.lines import roll
from azpy.games.names import make_position
from azpy.learning.export import to_onnx
from azpy.learning.network import Network
from azpy.playing import benchmarks
from azpy.playing.benchmarks import Figure

GOALS = {"evaluations_per_second": 280_000, "busy": 0.97}  # in self-play, of 20x128 in the Wall Game
LEAVES, SIMULATIONS, PARITY_ROWS = 8, 200, 256
PRECISIONS = ("fp16", "bf16", "tf32", "fp32")
# Game, network, precisions.
SETS = {
    "gpu": [("wall_game(width=8,height=8)", "20x128", PRECISIONS), ("chess", "20x256", ("fp16",))],
    "cpu": [("wall_game(width=8,height=8)", "2x32", PRECISIONS), ("chess", "1x32", ("fp32",))],
}
# A turn of self-play; how busy the GPU is, is looked at in its second half: nvidia-smi looks back up to 1 s.
LONGER = 2.5
CHAINED = 8  # batches of the ceiling between two looks at the clock
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    game: str
    network: str
    evaluator: str  # onnx or torch
    precision: str

    @property
    def name(self) -> str:
        return f"{self.game} {self.network} {self.evaluator} {self.precision}"


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    device: str
    rows: int
    pipelines: tuple[int, ...]
    seconds: float
    repeats: int
    matrix: int  # rows and columns of the matrices whose product is the device's peak


@dataclass
class Subject:
    """A game and a network with opinions, and what both say in fp32."""

    game: str
    spec: str
    start: State = field(init=False)
    network: Network = field(init=False)
    model: bytes = field(init=False)
    flops: float = field(init=False)  # of a row
    observations: NDArray[np.float32] = field(init=False)
    legal: NDArray[np.bool_] = field(init=False)
    truth: "Said | None" = None

    def __post_init__(self) -> None:
        self.start = make_position(self.game)
        self.network = opinionated(Network.of(self.start, self.spec)).eval()
        self.model = to_onnx(self.network)
        with FlopCounterMode(display=False) as counter, torch.inference_mode():
            self.network(torch.zeros(1, *self.network.obs_shape))
        self.flops = counter.get_total_flops()
        self.observations, self.legal = positions(self.start, PARITY_ROWS)


class Said:
    """What an evaluator said of the positions that parity is measured on."""

    def __init__(self, evaluator: Any, observations: NDArray[np.float32]) -> None:
        self._answers = evaluator.evaluate_batch(observations)

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Any:
        return self._answers


def opinionated(network: Network) -> Network:
    """An untrained network says nearly nothing: blocks that do something, and logits worth comparing."""
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d) and not module.weight.any():
                module.weight.fill_(0.3)
        for head in (network.policy, network.value):
            last: Any = [module for module in head.modules() if hasattr(module, "weight")][-1]
            last.weight.mul_(30.0)
    return network


def positions(start: State, count: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Observations [N, C, H, W] and legal [N, A] of random games."""
    rng = np.random.default_rng(0)
    observations, legal = list[Any](), np.zeros((count, start.num_actions), np.bool_)
    state = start.clone()
    while len(observations) < count:
        roll(state, rng)
        if state.is_terminal or rng.random() < 0.02:
            state = start.clone()
            continue
        actions = state.legal_actions()
        legal[len(observations), actions] = True
        observations.append(state.observation())
        state.play(int(rng.choice(actions)))
    return np.stack(observations), legal


@contextmanager
def tensor_float(allowed: bool) -> Iterator[None]:
    """torch's fp32 with or without TF32; ONNX Runtime is told by its precision."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def opened(case: Case, subject: Subject, scale: Scale) -> Any:
    """The evaluator of a case.

    Raises:
        AzpyError: it cannot be had here.
    """
    on_gpu = scale.device != "cpu"
    buckets = (*(bucket for bucket in BUCKETS if bucket < scale.rows), scale.rows)
    if case.evaluator == "onnx":
        return OnnxEvaluator(subject.model, scale.device, game=subject.start, buckets=buckets, precision=case.precision)
    precision = "fp32" if case.precision == "tf32" and on_gpu else case.precision
    return TorchEvaluator(subject.network, scale.device, precision=precision)


def model_alone(evaluator: Any, subject: Subject, rows: int) -> Callable[[], int]:
    """Runs the model a few times from memory of the device and returns the rows; looks inside azpy's own evaluators.

    Raises:
        AttributeError, KeyError: the evaluator looks otherwise inside.
    """
    if isinstance(evaluator, TorchEvaluator):
        tensor = torch.from_numpy(rows_of(rows, subject)).to(evaluator.device, evaluator._dtype)

        def run_torch() -> int:
            with torch.inference_mode():
                for _ in range(CHAINED):
                    evaluator._module(tensor)
            if tensor.is_cuda:
                torch.cuda.synchronize()
            return CHAINED * rows

        return run_torch
    session, (kind, _, index) = evaluator._runner._session, evaluator.device.partition(":")
    memory = "cpu" if kind == "cpu" else "cuda", int(index or 0)
    binding, dtypes = session.io_binding(), {"tensor(uint8)": np.uint8, "tensor(int32)": np.int32}
    for each in session.get_inputs():
        given = np.zeros((rows, *each.shape[1:]), dtypes.get(each.type, np.float32))
        binding.bind_ortvalue_input(each.name, OrtValue.ortvalue_from_numpy(given, *memory))
    for name in (evaluator.signature.policy, evaluator.signature.value):
        binding.bind_output(name, *memory)
    times = 1 if kind == "cpu" else CHAINED

    def run_session() -> int:  # waits for the device by itself
        for _ in range(times):
            session.run_with_iobinding(binding)
        return times * rows

    return run_session


def rows_of(count: int, subject: Subject) -> NDArray[np.float32]:
    return np.ascontiguousarray(np.resize(subject.observations, (count, *subject.network.obs_shape)))


def evaluator_alone(evaluator: Any, subject: Subject, rows: int) -> Callable[[], int]:
    """Batches from memory of the host: the evaluator's own, where it has some."""
    observations = rows_of(rows, subject)
    lent = evaluator.input_buffer(rows) if hasattr(evaluator, "input_buffer") else None
    if lent is not None:  # filled by Rust in self-play, on other cores
        lent[:] = evaluator._compact.packed(observations) if lent.dtype == np.uint8 else observations

    def run() -> int:
        evaluator.evaluate_batch(observations if lent is None else evaluator.input_buffer(rows))
        return rows

    return run


class Busy:
    """How busy the GPU is, as nvidia-smi sees it ten times a second; nothing where it cannot be asked."""

    def __init__(self, device: str) -> None:
        self._seen: list[tuple[float, float]] = []
        self._asking: subprocess.Popen[str] | None = None
        if device == "cpu" or shutil.which("nvidia-smi") is None:
            return
        gpu = torch.cuda.get_device_properties(torch.device(device)).uuid
        query = [
            "nvidia-smi",
            f"--id=GPU-{gpu}",
            "--query-gpu=utilization.gpu",
            "--format=csv,noheader,nounits",
            "-lms=100",
        ]
        self._asking = subprocess.Popen(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._asking is not None
        assert self._asking.stdout is not None
        for line in self._asking.stdout:
            if line.strip().isdigit():
                self._seen.append((time.perf_counter(), int(line) / 100))

    def share(self, begin: float, end: float) -> float | None:
        """On average between two times of `time.perf_counter`."""
        seen = [share for when, share in self._seen if begin <= when <= end]
        return statistics.fmean(seen) if seen else None

    def close(self) -> None:
        if self._asking is not None:
            self._asking.kill()
            self._asking.wait()


class Play(benchmarks.Play):
    """Self-play that goes on now and then, and how busy the GPU is meanwhile."""

    def __init__(self, subject: Subject, evaluator: Any, pipelines: int, rows: int, busy: Busy) -> None:
        self._busy = busy
        self.shares: list[float] = []
        self.filled: list[float] = []  # rows of a batch, on average
        slots = pipelines * max(1, rows // LEAVES)
        options = {"eval_batch": LEAVES, "simulations": SIMULATIONS, "cache_positions": 0}
        super().__init__(subject.start, evaluator, slots=slots, pipelines=pipelines, **options)

    def rate(self, seconds: float) -> float:
        """Rows a second over a longer turn, a batch at least."""
        begin = time.perf_counter()
        turn = self.run(LONGER * seconds)
        end = time.perf_counter()
        share = self._busy.share((begin + end) / 2, end)
        if share is not None:
            self.shares.append(share)
        self.filled.append(turn["rows"] / turn["batches"])
        return turn["rows"] / turn["seconds"]

    def close(self) -> None:
        self.__exit__()


def rate(step: Callable[[], int], seconds: float) -> float:
    """Rows a second of what counts its rows."""
    done, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds or not done:
        done += step()
    return done / spent


def matrix_peak(precision: str, scale: Scale) -> float:
    """Floating-point operations a second of a large matrix product, the best of a few."""
    one, other = (torch.rand(scale.matrix, scale.matrix, device=scale.device).to(DTYPES[precision]) for _ in range(2))
    wait = torch.cuda.synchronize if scale.device != "cpu" else lambda: None
    seconds, until = list[float](), time.perf_counter() + 0.5
    with tensor_float(precision == "tf32"):
        while len(seconds) < 2 or time.perf_counter() < until:
            wait()
            begin = time.perf_counter()
            one @ other
            wait()
            seconds.append(time.perf_counter() - begin)
    return 2 * scale.matrix**3 / min(seconds)


def measure(case: Case, subject: Subject, scale: Scale, peak: float, busy: Busy) -> dict[str, Any]:
    """A line of the table, as `Figure` gives it."""
    with tensor_float(case.precision == "tf32"):
        evaluator = opened(case, subject, scale)
        away = drift(subject.truth, evaluator, subject.observations, subject.legal)
        steps = {"alone": evaluator_alone(evaluator, subject, scale.rows)}
        note = ""
        try:
            steps["ceiling"] = model_alone(evaluator, subject, scale.rows)
        except (AttributeError, KeyError) as error:
            note = f"no ceiling, measured against itself alone: {error}"
        plays = {f"{count}": Play(subject, evaluator, count, scale.rows, busy) for count in scale.pipelines}
        try:
            runs: dict[str, list[float]] = {name: [] for name in (*steps, *plays)}
            for turn in range(scale.repeats + 1):  # the first warms up
                for name, step in steps.items():
                    runs[name].append(rate(step, scale.seconds))
                for name, play in plays.items():
                    runs[name].append(play.rate(scale.seconds))
                if not turn:
                    runs = {name: [] for name in runs}
                    for play in plays.values():
                        play.shares.clear()
                        play.filled.clear()
        finally:
            for play in plays.values():
                play.close()
    top = "ceiling" if "ceiling" in runs else "alone"
    figures = {
        name: Figure(name, "rows/s", tuple(found), top, tuple(np.divide(found, runs[top]).tolist())).row()
        for name, found in runs.items()
    }
    for name, play in plays.items():
        figures[name]["busy"] = statistics.fmean(play.shares) if play.shares else None
        figures[name]["rows_of_a_batch"] = statistics.fmean(play.filled)
    used = figures[top]["median"] * subject.flops
    return {
        "case": vars(case),
        "description": evaluator.description,
        "figures": figures,
        "of_peak": used / peak,
        "parity": vars(away),
        "note": note,
    }


HEAD = f"{'':44} {'ceiling':>9} {'of peak':>8} {'alone':>6} {'self-play with 1, 2, 3 pipelines':>54}  parity"


def line(case: Case, found: dict[str, Any]) -> str:
    """One line for people."""
    figures, away = found["figures"], found["parity"]
    cells = []
    for name in ("1", "2", "3"):
        cell = ""
        if name in figures:
            row = figures[name]
            busy = "" if row["busy"] is None else f" [{row['busy']:.0%}]"
            cell = f"{row['median']:,.0f} {row['ratio']:.0%}{busy}"
        cells.append(f"{cell:>18}")
    top = figures.get("ceiling", figures["alone"])
    note = f"  {found['note']}" if found["note"] else ""
    return (
        f"{case.name:44} {top['median']:9,.0f} {found['of_peak']:8.1%} {figures['alone']['ratio']:6.0%} "
        f"{''.join(cells)}  {away['policy']:.2g} nats, {away['value']:.2g}, {away['agreement']:.1%}{note}"
    )


def cases_of(kind: str) -> list[Case]:
    """What is measured."""
    return [
        Case(game, network, evaluator, precision)
        for game, network, precisions in SETS[kind]
        for precision in precisions
        for evaluator in ("onnx", "torch")
    ]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:N, or auto: CUDA if torch finds it")
    parser.add_argument("--rows", type=int, help="of a batch (default 512, on the CPU 64)")
    parser.add_argument("--seconds", type=float, help="of each turn (default 0.4, on the CPU 0.15)")
    parser.add_argument("--repeats", type=int, help="turns that count (default 3)")
    parser.add_argument("--minutes", type=float, default=8.0, help="of all of it at most (default 8)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    given = parser.parse_args(arguments)
    begin = time.monotonic()
    auto = "cuda" if torch.cuda.is_available() else "cpu"
    device = auto if given.device == "auto" else given.device
    on_cpu = device == "cpu"
    if on_cpu:
        torch.set_num_threads(1)  # as ONNX Runtime is given one, and pipelines the others
    scale = Scale(
        device=device,
        rows=given.rows or (64 if on_cpu else 512),
        pipelines=(1, 2) if on_cpu else (1, 2, 3),
        seconds=given.seconds or (0.15 if on_cpu else 0.4),
        repeats=given.repeats or (2 if on_cpu else 3),
        matrix=256 if on_cpu else 8192,
    )
    cases = cases_of("cpu" if on_cpu else "gpu")
    subjects = {game: Subject(game, network) for game, network in {(case.game, case.network) for case in cases}}
    machine = benchmarks.machine() | {"torch": torch.__version__}
    machine["gpu"] = None if on_cpu else torch.cuda.get_device_name(torch.device(device))
    peaks = {name: matrix_peak(name, scale) for name in DTYPES if not on_cpu or name in ("fp32", "bf16")}
    print(
        f"{machine['gpu'] or machine['cpu']}, {machine['cores']} cores, torch {machine['torch']}, "
        f"batches of {scale.rows} rows"
    )
    said = ", ".join(f"{name} {peak / 1e12:.3g}" for name, peak in peaks.items())
    print(f"large matrix products, TFLOP/s: {said}")
    print(HEAD, flush=True)
    report: dict[str, Any] = {"machine": machine, "scale": vars(scale), "peaks": peaks, "goals": GOALS}
    report["lines"], report["left_out"] = [], []
    for subject in subjects.values():
        with tensor_float(False):
            exact = TorchEvaluator(subject.network, device)
            subject.truth = Said(exact, subject.observations)
    busy, longest = Busy(device), 0.0
    try:
        for case in cases:
            subject = subjects[case.game]
            began = time.monotonic()
            try:
                if began - begin + longest > given.minutes * 60:
                    raise AzpyError("the time is up")
                found = measure(case, subject, scale, peaks.get(case.precision, peaks["fp32"]), busy)
            except AzpyError as error:
                report["left_out"].append({"case": vars(case), "why": first_line(error)})
                print(f"{case.name:44} left out: {first_line(error)}", flush=True)
                continue
            longest = max(longest, time.monotonic() - began)
            report["lines"].append(found)
            print(line(case, found), flush=True)
    finally:
        busy.close()
    plays = [row for found in report["lines"] for name, row in found["figures"].items() if name.isdigit()]
    best = max((row["median"] for row in plays), default=0.0)
    print(
        f"best self-play {best:,.0f} rows/s; the goal, 20x128 in the Wall Game: {GOALS['evaluations_per_second']:,}, "
        f"the GPU busy for {GOALS['busy']:.0%} of the time ({time.monotonic() - begin:.0f} s)"
    )
    if given.json is not None:
        given.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
