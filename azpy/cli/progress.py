"""Shows a training run: one line an iteration and a match, and on a terminal a live line below them."""

import sys
import time
from types import TracebackType
from typing import Any, Self

from azpy.events import Event, Finished, Fitted, Matched, Played, Saved, Started
from azpy.settings import Settings

_PLAIN_SECONDS = 30.0  # how often a long stage says so where there is no terminal


class Display:
    """Prints the trainer's events."""

    def __init__(self) -> None:
        self._live = live_bar() if sys.stdout.isatty() else None
        self._printed = time.monotonic()
        self._games = 0
        self._strength = ""

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, event: Event) -> None:
        """Shows one event."""
        match event:
            case Started():
                self._start(event)
            case Played():
                text = f"{event.games}/{self._games} games, {_rates(event.metrics)}"
                self._status(f"iteration {event.iteration} self-play", text, event.games / self._games)
            case Fitted():
                losses = f"policy loss {event.policy_loss:.3f}, value loss {event.value_loss:.3f}"
                text = f"{event.taken}/{event.steps} steps, {losses}"
                self._status(f"iteration {event.iteration} fit", text, event.taken / event.steps)
            case Saved():
                self._line(_summary(event))
            case Matched():
                self._line(f"  strength after iteration {event.iteration}: {event.result} against {event.opponent}")
                self._strength = f", {event.result.score:.2f} against {event.opponent}"
            case Finished():
                done = f"{event.iteration} iterations in {_clock(event.seconds)}"
                model = f"model in {event.path}/checkpoints/{event.iteration:06d}/model.onnx"
                self._line(f"done: {done}, {model if event.iteration else 'no model yet'}")
                if event.games_hash and event.weights_hash:
                    games, weights = event.games_hash[:16], event.weights_hash[:16]
                    self._line(f"equal for equal runs: hash of the games {games}, of the weights {weights}")

    def _start(self, event: Started) -> None:
        settings = event.settings
        self._games = settings.games_per_iteration
        slots = settings.device_batch // settings.eval_batch
        self._line(
            f"{settings.game}: network {settings.network} ({event.parameters:,} parameters), run folder {event.path}, "
            f"{_budget(settings)}"
        )
        self._line(
            f"eval batch {settings.eval_batch} x {slots} slots per pipeline = device batch {settings.device_batch} "
            f"({settings.pipelines} pipelines), {settings.simulations} simulations a move"
        )
        for notice in event.notices:
            self._line(notice)
        if event.iteration:
            self._line(f"going on after iteration {event.iteration}, {_clock(event.seconds)} done")

    def _line(self, text: str) -> None:
        self._printed = time.monotonic()
        if self._live is None:
            print(text, flush=True)
        else:
            self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _status(self, stage: str, text: str, done: float) -> None:
        if self._live is not None:
            task = self._live.task_ids[0]
            self._live.update(task, description=stage, completed=done, text=text + self._strength)
        elif time.monotonic() - self._printed > _PLAIN_SECONDS:
            self._line(f"{stage}: {text}")


def live_bar() -> Any:
    """A one-line bar that rich redraws in place, or None without rich."""
    try:
        from rich.progress import BarColumn, Progress, TextColumn
    except ImportError:
        return None
    columns = (TextColumn("{task.description}"), BarColumn(20), TextColumn("{task.fields[text]}"))
    live = Progress(*columns, transient=True)
    live.add_task("starting", total=1.0, text="")
    return live


def _summary(event: Saved) -> str:
    row = event.metrics
    rates = f", {_rates(row)}" if "simulations_per_second" in row else ""
    return (
        f"[{_clock(row['seconds'])}] iteration {event.iteration}: {row['games']} games, {row['positions']:,} positions"
        f"{rates}, policy loss {row['policy_loss']:.3f}, value loss {row['value_loss']:.3f}"
    )


def _rates(row: dict[str, float]) -> str:
    return (
        f"{row['simulations_per_second']:,.0f} simulations/s, {row['evaluations_per_second']:,.0f} evaluations/s, "
        f"batches {row['batch_fill']:.0%} full, cache hits {row['cache_hits']:.0%}"
    )


def _budget(settings: Settings) -> str:
    parts = [f"{settings.minutes:g} minutes"] if settings.minutes is not None else []
    parts += [f"{settings.iterations} iterations"] if settings.iterations is not None else []
    return " or ".join(parts) or "until interrupted"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
