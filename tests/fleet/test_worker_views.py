"""What a user sees of workers: rows of metrics and the live view."""

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from test_fleet import SMALL, settings, train

from azpy.cli.progress import Display, live_bar, worker_lines
from azpy.fleet.fleet import WorkerState
from azpy.runs.folder import RunFolder
from azpy.training.collector import Collector
from azpy.training.events import Fitted, Played
from azpy.training.loop import worker_rows

Rows = list[dict[str, Any]]


def state(name: str = "worker 1", *, alive: bool = True, games: int = 0, rows: float = 0) -> WorkerState:
    stats = Counter[str]({"rows": rows, "batches": rows / 10, "rows_capacity": rows * 2})
    return WorkerState(name, alive, 3, 0, 1.5, games, stats)


# Rows of metrics


def test_a_row_counts_what_happened_since_the_last() -> None:
    (row,) = worker_rows({"worker 1": state(games=5, rows=100.0)}, [state(games=9, rows=300.0)], 10.0)
    now = {"worker": "worker 1", "alive": True, "held": 3, "behind": 0, "silent": 1.5}
    since = {"games": 4, "evaluations": 200.0, "evaluations_per_second": 20.0, "batch_fill": 0.5}
    assert row == now | since


def test_a_gone_worker_has_a_row_only_if_it_played() -> None:
    last, other = state(alive=False, games=5, rows=100.0), state("worker 2")
    assert [row["worker"] for row in worker_rows({}, [last, other], 1.0)] == ["worker 1", "worker 2"]
    (row,) = worker_rows({"worker 1": last}, [last, other], 1.0)
    assert (row["worker"], row["evaluations"], row["batch_fill"]) == ("worker 2", 0, None)


def worker_rows_of(path: Path) -> Rows:
    with RunFolder(path, {}) as run:
        return [row for row in run.metrics() if row["kind"] == "worker"]


def test_a_run_writes_a_row_for_each_worker_and_iteration(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(tmp_path, workers=2, iterations=2, tensorboard=True)
    first = worker_rows_of(tmp_path)
    train(tmp_path, workers=2, iterations=3, tensorboard=True)  # another head, whose workers have the same names
    rows = worker_rows_of(tmp_path)
    assert rows[: len(first)] == first
    assert len({(row["iteration"], row["worker"]) for row in rows}) == len(rows)
    assert {(row["iteration"], row["since"]) for row in rows} == {(1, 0), (2, 0), (3, 2)}
    assert {row["worker"] for row in rows} <= {"worker 1", "worker 2"}  # one may come after all games are played
    for iteration in (1, 2, 3):
        of = [row for row in rows if row["iteration"] == iteration]
        assert sum(row["games"] for row in of) == SMALL["games_per_iteration"]
    assert all(0 < row["batch_fill"] <= 1 for row in rows if row["evaluations"])
    assert all(row["behind"] in (0, 1, None) and row["silent"] >= 0 for row in rows)
    curves = EventAccumulator(str(tmp_path / "tensorboard"))
    curves.Reload()
    for name in {row["worker"] for row in rows}:
        points = [(point.step, point.value) for point in curves.Scalars(f"worker/{name.replace(' ', '_')}/games")]
        assert points == [(row["iteration"], row["games"]) for row in rows if row["worker"] == name]


def test_a_collection_writes_rows_of_workers_too(tmp_path: Path) -> None:
    for workers in (1, 0):
        with Collector(settings(workers=workers, iterations=2), tmp_path / str(workers)) as run:
            list(run.run())
    assert [row["iteration"] for row in worker_rows_of(tmp_path / "1")] == [1, 2]
    assert worker_rows_of(tmp_path / "0") == []


def row(iteration: int, worker: str, since: int = 0, **figures: Any) -> dict[str, Any]:
    usual = {"games": 10, "batch_fill": 0.5, "behind": 0, "silent": 0.5, "alive": True, "held": 2}
    usual |= {"evaluations": 500.0, "evaluations_per_second": 50.0, "seconds": 60.0 * iteration}
    facts = {"kind": "worker", "iteration": iteration, "since": since, "worker": worker}
    return facts | usual | figures


def test_rows_of_an_iteration_that_is_done_again_go_away(tmp_path: Path) -> None:
    with RunFolder(tmp_path, {}) as run:
        for iteration in (1, 2, 3):
            run.append_metrics(row(iteration, "worker 1"))
        run.trim_metrics(2)
        assert [row["iteration"] for row in run.metrics()] == [1, 2]


@pytest.mark.parametrize(("workers", "lines"), [(0, 0), (1, 1), (2, 3), (8, 9), (9, 9), (100, 9)])
def test_the_live_view_has_a_line_a_worker_and_a_sum(workers: int, lines: int) -> None:
    rows = [row(1, f"worker {w}", silent=float(w)) for w in range(1, workers + 1)]
    found = worker_lines([*rows, row(1, "gone", alive=False)])
    assert len(found) == lines
    assert not any("gone" in line for line in found)
    if workers:
        text = "  worker 1: 10 games, 50 evaluations/s, batches 50% full, 0 networks behind, silent for 1 s"
        assert found[0] == text
    if workers > 1:
        assert f"all {workers} workers: {10 * workers:,} games, {50 * workers:,} evaluations/s" in found[-1]
        assert found[-1].endswith(f"silent for {workers} s")


def test_lines_of_workers_stand_below_the_bar_and_are_cut() -> None:
    console = Console(width=60, force_terminal=True, file=io.StringIO(), color_system=None)
    display, live = Display(), live_bar(console)
    display._live, display._games = live, 512
    rows = tuple(row(1, f"worker {w}", behind=None, batch_fill=None) for w in (1, 2))

    def shown() -> list[str]:
        with console.capture() as found:
            console.print(live.get_renderable())
        return found.get().splitlines()

    display.show(Played(1, 100, {}, rows))
    bar, *below = shown()
    assert bar.startswith("iteration 1 self-play")
    assert [line[:20] for line in below] == ["  worker 1: 10 games", "  worker 2: 10 games", "  all 2 workers: 20 "]
    assert below[-1].endswith("…")
    assert all(len(line) <= 60 for line in below)
    display.show(Fitted(1, 5, 10, 1.0, 0.5))
    assert len(shown()) == 1


def test_without_a_terminal_workers_have_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    display = Display()
    display._games, display._printed = 512, -1e9
    display.show(Played(1, 100, {}, (row(1, "worker 1"),)))
    assert capsys.readouterr().out == "iteration 1 self-play: 100/512 games\n"
