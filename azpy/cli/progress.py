"""Shows a training run: one line an iteration and a match, and on a terminal a live line below them."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from azpy.cli.common import columns
from azpy.settings import Settings
from azpy.settings.toml import path_argument
from azpy.training import events
from azpy.training.timing import STAGES

_BAR_WIDTH = 12
_MOST_WORKERS = 8  # that have a line of their own
PLAIN_SECONDS = 30.0  # how often a long stage prints a line without a terminal
_STAGE_NAMES = {"growing": "trees", "evaluating": "network"}


class Screen:
    """Lines that stay, and on a terminal a live one below them; with `quiet` nothing."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = live_bar() if sys.stdout.isatty() and not quiet else None
        self._printed = time.monotonic()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def line(self, text: str) -> None:
        """Prints a line that stays."""
        self._printed = time.monotonic()
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
        elif not self._quiet:
            print(text, flush=True)

    def is_due(self, live: float, plain: float = PLAIN_SECONDS) -> bool:
        """Whether it shows something, and the last line is older than `live` seconds on a terminal, else `plain`."""
        return not self._quiet and time.monotonic() - self._printed >= (plain if self._live is None else live)

    def progress(
        self, label: str, figures: Sequence[str], done: float, every: float = PLAIN_SECONDS, below: Sequence[str] = ()
    ) -> None:
        """Updates the live line. Without a terminal, prints a line if the last one is older than `every` seconds.

        The live line has the label, a bar with the share that is done, and as many of the figures as fit, the first
        ones first. The lines `below` stand under it, cut to the terminal's width.
        """
        if self._live is None:
            if self.is_due(0.0, every):
                self.line(f"{label}: {', '.join(figures)}" if label else ", ".join(figures))
            return
        room = self._live.console.width - _BAR_WIDTH - 2  # a space between columns
        if len(label) > room:
            label = f"{label[: room - 1]}…"
        fits = [count for count in range(len(figures) + 1) if len(label) + len(", ".join(figures[:count])) <= room]
        text = ", ".join(figures[: fits[-1]])
        self._live.below = list(below)
        self._live.update(self._live.task_ids[0], description=label, completed=done, text=text)
        self._printed = time.monotonic()


class Display(Screen):
    """Prints the events of a training run or a collection; with `quiet` nothing."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet)
        self._games, self._strength, self._advice, self._sooner = 0, list[str](), set[str](), ""
        self._certificate = ""

    def show(self, event: events.Event) -> None:
        """Shows one event."""
        match event:
            case events.Started():
                self._begin(event)
            case events.Played():
                text = f"{event.games}/{self._games} games{self._wait(event)}"
                text = ", ".join(filter(None, (text, _rates(event.metrics), _shares(event.metrics))))
                share, workers = event.games / self._games, worker_lines(event.workers)
                self._status(f"iteration {event.iteration} self-play", text, share, workers)
            case events.Noticed():
                self.line(f"  {event.text}")
            case events.Fitted(metrics=None):
                stage = f"iteration {event.iteration}" if event.iteration else "imported games"
                text = f"{event.taken:,}/{event.steps:,} steps, {_losses(event.policy_loss, event.value_loss)}"
                self._status(f"{stage} fit", text, event.taken / event.steps)
            case events.Imported():
                self.line(_table(event))
            case events.Fitted():
                text = f"{_losses(event.policy_loss, event.value_loss)}{_held_out(event.metrics or {})}"
                self.line(f"  imported games: step {event.taken:,} of {event.steps:,}, {text}")
            case events.Saved() if "steps" not in event.metrics:  # a collection
                self.line(f"{_played(event)} · sealed in {event.path}")
            case events.Saved():
                row = event.metrics
                losses = _losses(row["policy_loss"], row["value_loss"]) if row["steps"] else "no steps"
                self.line(" · ".join(filter(None, (_played(event), losses, _shares(row)))))
                if event.advice and event.advice not in self._advice:
                    self._advice.add(event.advice)
                    self.line(f"  advice: {event.advice}")
            case events.Matched():
                result, other = event.result, event.opponent
                is_shared = result.copies > 1 and not result.is_alone
                against = f", {result.share(other)}" if is_shared else f" against {other}"
                self.line(f"  strength after iteration {event.iteration}: {result}{against}")
                self._strength = [f"{result.figures()['score']:.2f} against {other}"]
            case events.Measured():
                self.line(f"  iteration {event.iteration}: {event}")
                self._strength, self._certificate = [f"exploitability {event.exploitability:.3f}"], str(event)
            case events.Finished(collected=int()):
                self.line(
                    f"done: {event.collected:,} games in {_many(event.iteration, 'iteration')}, {_clock(event.seconds)}"
                )
            case events.Finished():
                model = f"model in {event.path}/checkpoints/{event.iteration:06d}/model.onnx"
                sooner = self._sooner and f", or {self._sooner}"
                none = f"no model yet, because no iteration is done: give the run more time{sooner}"
                done = f"{_many(event.iteration, 'iteration')} in {_clock(event.seconds)}"
                self.line(f"done: {done}, {model if event.iteration or event.has_model else none}")
                if event.games_hash and event.weights_hash:
                    games, weights = event.games_hash[:16], event.weights_hash[:16]
                    self.line(f"hashes, the same for equal runs: games {games}, weights {weights}")
                if self._certificate:
                    self.line(self._certificate)

    def _begin(self, event: events.Started) -> None:
        settings, player, notices = event.settings, f"played with {event.evaluator}", event.notices
        if event.parameters is not None:
            player = f"network {settings.network} ({event.parameters:,} parameters)"
            notices = (f"plays on {event.evaluator}", *notices)
        self._games = settings.games_per_iteration
        self._sooner = f"fewer --simulations (now {settings.simulations}) or fewer --slots (now {settings.slots})"
        slots = settings.device_batch // settings.eval_batch
        each = f" on each of GPUs {settings.devices}" if settings.devices else ""
        workers = _workers(settings.workers)
        self.line(f"{settings.game}: {player}, run folder {event.path}, {_budget(settings)}")
        self.line(
            f"{_many(settings.pipelines, 'pipeline')} x {_many(slots, 'game')}{each}{workers} · batches of "
            f"{_many(settings.device_batch, 'position')} ({_many(settings.eval_batch, 'leaf', 'leaves')} per game) · "
            f"{'no search' if event.hides else _many(settings.simulations, 'simulation') + ' per move'}"
        )
        for notice in notices:
            self.line(notice)
        if event.iteration:
            self.line(f"resuming after iteration {event.iteration} ({_clock(event.seconds)} done)")

    def _wait(self, event: events.Played) -> str:
        """While no game is over: how far the longest one is, and how to shorten that."""
        if event.games or not event.longest:
            return ""
        return f", the longest has {event.longest} plies; sooner with {self._sooner}"

    def _status(self, stage: str, text: str, done: float, below: Sequence[str] = ()) -> None:
        first, *others = text.split(", ")
        self.progress(stage, [first, *(self._strength if self._live else []), *others], done, below=below)


def live_bar(console: Any = None) -> Any:
    """A bar in one line that rich redraws in place, with lines `below`. See `Screen.progress`."""
    from rich.progress import BarColumn, Progress, TextColumn  # takes a tenth of a second
    from rich.text import Text

    class Bar(Progress):
        below: Sequence[str] = ()

        def get_renderables(self) -> Iterator[Any]:
            yield from super().get_renderables()
            for line in self.below:
                yield Text(line, no_wrap=True, overflow="ellipsis")

    # Names hold brackets, which are no markup here.
    label, text = (TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[text]"))
    columns = (label, BarColumn(_BAR_WIDTH), text)
    live = Bar(*columns, console=console, transient=True)
    live.add_task("starting", total=1.0, text="")
    return live


def worker_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each of the first workers that are alive, and one for all together if there are several.

    Args:
        rows: of the workers, see `worker_rows`.
    """
    living = [row for row in rows if row["alive"]]
    lines = [
        f"{row['worker']}: {row['games']:,} games, {row['evaluations_per_second']:,.0f} evaluations/s"
        + ("" if row["batch_fill"] is None else f", batches {row['batch_fill']:.0%} full")
        + ("" if row["behind"] is None else f", {row['behind']} networks behind")
        + f", silent for {row['silent']:.0f} s"
        for row in living[:_MOST_WORKERS]
    ]
    if len(living) > 1:
        games, speed = (sum(row[name] for row in living) for name in ("games", "evaluations_per_second"))
        behind, silent = max(row["behind"] or 0 for row in living), max(row["silent"] for row in living)
        text = f"all {len(living)} workers: {games:,} games, {speed:,.0f} evaluations/s"
        lines.append(f"{text}, at most {behind} networks behind, at most silent for {silent:.0f} s")
    return [f"  {line}" for line in lines]


def _played(event: events.Saved) -> str:
    row = event.metrics
    games = f"{_many(row['games'], 'game')}, {_many(row['positions'], 'position')}"
    text = f"[{_clock(row['seconds'])}] iteration {event.iteration}: {games}{_scores(row)}"
    return " · ".join(filter(None, (text, _rates(row))))


def _many(count: float, what: str, several: str = "") -> str:
    return f"{count:,.15g} {what if count == 1 else several or f'{what}s'}"


def _scores(row: dict[str, float]) -> str:
    """Of one player: what the games scored."""
    if "mean_score" not in row:
        return ""
    to_beat = f", to beat {row['score_to_beat']:+.3f}" if "score_to_beat" in row else ""
    return f", mean score {row['mean_score']:+.3f}, best {row['best_score']:+.3f}{to_beat}"


def _table(event: events.Imported) -> str:
    """What became of the games of files, one line a count."""
    rows = [(f"games in {event.files:,} files", event.found, "")]
    rows += [(f"  left out: {why}", count, f"first: {first}") for why, (count, first) in event.left_out.items()]
    rows += [("  held out, to measure on", event.held_out, "")]
    rows += [("  learned from", event.games, f"{event.positions:,} positions")]
    return "\n".join(columns([(name, f"{count:,}", more) for name, count, more in rows], "<><"))


def _losses(policy: float, value: float) -> str:
    return f"policy loss {policy:.3f}, value loss {value:.3f}"


def _held_out(row: Mapping[str, float]) -> str:
    if "move_match" not in row:
        return ""
    losses = _losses(row["held_out_policy_loss"], row["held_out_value_loss"])
    return f"; held out: {losses}, move match {row['move_match']:.1%}"


def _shares(row: dict[str, float]) -> str:
    """The stages that took a hundredth of the time or more, see `TimeShares`; empty where only games are collected."""
    parts = [(_STAGE_NAMES.get(name, name), row.get(f"share_{name}", 0.0)) for name in (*STAGES, "other")]
    text = ", ".join(f"{name} {share:.0%}" for name, share in parts if share >= 0.01)
    return f"time: {text}" if text else ""


def _rates(row: dict[str, float]) -> str:
    """The rates of self-play; nothing for an iteration whose games were all on the disk."""
    if "simulations_per_second" not in row:
        return ""
    return (
        f"{row['simulations_per_second']:,.0f} simulations/s, {row['evaluations_per_second']:,.0f} evaluations/s, "
        f"batches {row['batch_fill']:.0%} full, cache hits {row['cache_hits']:.0%}"
    )


def _budget(settings: Settings) -> str:
    lengths = {"minute": settings.minutes, "iteration": settings.iterations, "evaluation": settings.total_evaluations}
    texts = [_many(value, what) for what, value in lengths.items() if value is not None]
    return " or ".join(texts) or "until interrupted"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _workers(setting: int | str) -> str:
    """Where the games are played, if not in this process."""
    if setting == "ray":
        return " at most in each worker of Ray"
    if isinstance(setting, str):
        return f" in each worker (start one with: az-worker {path_argument(setting.removeprefix('folder:'))})"
    return f" in {setting} worker processes" if setting else ""
