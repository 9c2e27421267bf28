"""How a run ends: by time, by evaluations, and with its last match."""

from pathlib import Path
from typing import Any

import pytest

from azpy.runs.games import read_journal
from azpy.runs.reader import StoredRun, read_checkpoint
from azpy.training.budget import Budget
from azpy.training.events import Finished, Matched, Played, Saved
from azpy.training.generations import is_kept
from azpy.training.trainer import Trainer
from training_runs import opened_rows, run, run_until, settings


def test_the_newest_checkpoints_and_every_tenth_are_kept() -> None:
    assert [iteration for iteration in range(26) if is_kept(iteration, 25)] == [0, 10, 20, 23, 24, 25]


def test_a_fit_is_cut_short_where_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("azpy.training.budget.Budget.may_fit", lambda self: asked.append(1) or len(asked) < 3)  # type: ignore[func-returns-value]
    run(tmp_path, iterations=1, batch_size=16)
    row = next(row for row in opened_rows(tmp_path) if row["kind"] == "iteration")
    assert row["steps"] == 3 < row["positions"] * 4 / 16
    assert read_checkpoint(tmp_path / "checkpoints/000001").optimizer["steps"] == 3


def test_matches_without_time_leave_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.training.budget.Budget.match_seconds", lambda self, begin, last: 0.0)
    events = run(tmp_path, iterations=1)
    assert not any(isinstance(event, Matched) for event in events)
    assert isinstance(events[-1], Finished)
    assert "match" not in {row["kind"] for row in opened_rows(tmp_path)}


def test_the_last_match_comes_after_one_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def matches(events: list[Any]) -> list[tuple[int, int]]:
        return [(event.iteration, event.result.games) for event in events if isinstance(event, Matched)]

    changes: dict[str, Any] = {"match_every": 1, "final_match_games": 6}
    events = list[Any]()
    with Trainer(settings(iterations=2, **changes), tmp_path / "parts") as trainer:
        for event in trainer.run():
            events.append(event)
            if matches(events) == [(1, 4)] * 4:
                break
    assert matches(run(tmp_path / "parts", iterations=1, **changes)) == [(1, 6)] * 4
    assert matches(run(tmp_path / "parts", iterations=1, **changes)) == []
    # The match on the way takes the rest of the time.
    events.clear()
    monkeypatch.setattr(Budget, "is_over", lambda self, iteration: len(matches(events)) >= 4)
    with Trainer(settings(iterations=2, **changes), tmp_path / "straight") as trainer:
        for event in trainer.run():
            events.append(event)
    assert matches(events) == [(1, 4)] * 4 + [(1, 6)] * 4


def test_the_last_match_is_of_the_last_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events, answers = list[Any](), list[bool]()
    rules = {
        # The last match leaves time for another iteration.
        "left": lambda: not any(isinstance(event, Matched) for event in events),
        # Time was up when the model was made, which so has no int8; after the iteration was measured, it was not.
        "measured": lambda: answers.append(True) or len(answers) == 1,  # type: ignore[func-returns-value]
    }
    for name, is_over in rules.items():
        monkeypatch.setattr(Budget, "is_over", lambda self, iteration, rule=is_over: iteration == 1 and rule())
        events.clear()
        with Trainer(settings(match_every=1000), tmp_path / name) as trainer:
            for event in trainer.run():
                events.append(event)
                assert not isinstance(event, Saved) or event.iteration == 1
        assert {event.iteration for event in events if isinstance(event, Matched)} == {1}


def test_total_evaluations_end_a_run(tmp_path: Path) -> None:
    whole = [event for event in run(tmp_path / "a", iterations=3) if isinstance(event, Saved)]
    each = [event.metrics["evaluations"] for event in whole]
    assert all(count > 0 for count in each)
    length: dict[str, Any] = {"iterations": None, "total_evaluations": int(sum(each) * 1.5)}
    run(tmp_path / "b", iterations=1)
    saved = [event for event in run(tmp_path / "b", **length) if isinstance(event, Saved)]
    counts = [row["evaluations"] for row in opened_rows(tmp_path / "b") if row["kind"] == "iteration"]
    newest = saved[-1].iteration
    assert newest == len(counts) > 1
    assert read_checkpoint(tmp_path / f"b/checkpoints/{newest:06d}").state["budget"]["evaluations"] == sum(counts)
    assert sum(counts[:-1]) < length["total_evaluations"] <= sum(counts)
    assert not [event for event in run(tmp_path / "b", **length) if isinstance(event, Saved)]


def test_games_in_play_go_on_after_a_timed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # One pipeline, in whose rounds every game moves: of two, one can end many games before the other begins.
    options: dict[str, Any] = {"game": "connect_four", "games_per_iteration": 8, "slots": 4, "pipelines": 1}
    seen, may_play = list[Played](), [True]
    monkeypatch.setattr("azpy.training.loop.EVENT_SECONDS", 0.0)
    monkeypatch.setattr("azpy.training.budget.Budget.may_play", lambda *_: may_play[0])
    with Trainer(settings(**options, simulations=100_000), tmp_path) as trainer:
        for event in trainer.run():
            if isinstance(event, Played) and event.longest:
                seen.append(event)
                may_play[0] = False
    assert isinstance(event, Finished)
    assert (seen[0].games, event.iteration) == (0, 0)
    left = {record.game_id: record for record in read_journal(tmp_path / "games/in_play.bin")[0]}
    assert left
    run(tmp_path, **options | {"iterations": None, "minutes": 1e-9})  # nothing is played
    assert {record.game_id for record in read_journal(tmp_path / "games/in_play.bin")[0]} == left.keys()
    may_play[0] = True
    run_until(tmp_path, 2, **options)
    ended = {record.game_id: record for _, record in StoredRun(tmp_path).games([1, 2])}
    assert left.keys() <= ended.keys()
    for game, record in left.items():
        assert ended[game].actions[: len(record)].tolist() == record.actions.tolist()
