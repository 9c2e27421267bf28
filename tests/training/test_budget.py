"""How much of a run is done: by the clock, by iterations, by evaluations; and what is kept free for the end."""

import json
from typing import Any

import pytest

from azpy.settings import Settings
from azpy.training.budget import Budget
from oracles import Clock


def budget(clock: Clock | None = None, opponents: int = 3, **settings: Any) -> Budget:
    """The budget of a run of ten minutes that begins now, where the settings say nothing else."""
    given: dict[str, Any] = {"minutes": 10.0} | settings
    return Budget(Settings("tic_tac_toe", **given), opponents, clock or Clock())


def test_a_timed_run_keeps_time_free_for_its_end() -> None:
    clock = Clock()
    timed = budget(clock, final_match_games=200)
    assert not timed.is_over(0)
    clock.now += 20
    timed.note_iteration(seconds=20.0, fit_seconds=8.0, positions=4000, games=500)
    clock.now += 10
    timed.note_match(seconds=10.0, games=100)
    assert timed.final_match_games() == 200
    clock.now = 1000 + 600 - 20 - 8 - 1  # the last match takes 20 s, fitting 4,000 positions 8 s
    assert timed.may_play(4000)
    clock.now += 2
    assert not timed.may_play(4000)
    assert timed.may_play(3000)
    clock.now = 1000 + 600 - 24
    assert timed.is_over(9)
    timed.note_match(seconds=100.0, games=100)
    assert timed.final_match_games() == 60  # a tenth of the run


def test_self_play_says_what_the_first_match_takes() -> None:
    clock = Clock()
    changes: dict[str, Any] = {"simulations": 16, "match_simulations": 80, "match_games": 20, "minutes": 1.0}
    timed = budget(clock, match_every=1, **changes)
    clock.now += 10
    timed.note_iteration(seconds=10.0, fit_seconds=5.5, positions=1000, games=500)
    # 9 ms a game of self-play, five times the simulations, three opponents: 0.135 s a game. A tenth of the run is 6 s.
    assert timed.final_match_games() == 44
    assert not timed.match_is_due(1)  # its 2.7 s are more than a twentieth of 10
    clock.now = 1000 + 60 - 6 - 1
    assert timed.may_play(0)
    clock.now += 2
    assert not timed.may_play(0)
    # An iteration whose games were there says nothing of what they took.
    timed.note_iteration(seconds=2.0, fit_seconds=1.5, positions=1000, games=0)
    assert timed.final_match_games() == 44
    # A quarter of full searches, and fast ones of a quarter of the simulations: 0.31 of a game in full.
    fewer = budget(clock, full_search_share=0.25, **changes)
    fewer.note_iteration(seconds=10.0, fit_seconds=5.5, positions=1000, games=500)
    assert fewer.final_match_games() == 18
    restored = budget(clock, **changes)
    restored.load(json.loads(json.dumps(timed.state())))
    assert restored.final_match_games() == 44


def test_a_cut_iteration_ends_on_time() -> None:
    clock = Clock()
    timed = budget(clock, final_match_games=20)
    clock.now += 269  # nothing was fitted yet: as much time as has passed is kept free, and 60 s for the last match
    assert timed.may_play(1)
    clock.now += 2
    assert not timed.may_play(1)
    clock.now = 1000 + 539
    assert timed.may_fit()
    clock.now += 2
    assert not timed.may_fit()
    timed.note_iteration(seconds=300.0, fit_seconds=100.0, positions=1000, games=100, export_seconds=7.0)
    timed.note_match(seconds=60.0, games=20)
    clock.now = 1000 + 600 - 60 - 8  # the model takes 7 s
    assert timed.may_fit()
    assert not timed.may_play(20)
    clock.now += 2
    assert not timed.may_fit()


def test_matches_end_with_the_run() -> None:
    clock = Clock()
    timed = budget(clock, final_match_games=20, match_every=1)
    clock.now += 500
    assert timed.match_seconds(500, last=False) == pytest.approx(40)  # the last match has 60 s
    assert timed.match_seconds(500, last=True) == pytest.approx(100)
    clock.now += 90
    assert timed.match_seconds(500, last=True) == pytest.approx(10)
    # What was kept free for the last match is its own, even where the run is late.
    assert timed.match_seconds(590, last=True) == pytest.approx(60)
    clock.now += 61
    assert timed.match_seconds(590, last=True) < 0
    clock.now = 1000 + 330
    assert timed.match_seconds(300, last=False) == pytest.approx(30)  # of a tenth of the run
    short = budget(Clock())
    assert short.match_seconds(0.0, last=False) == pytest.approx(9)  # the short matches together
    short.note_match(seconds=4.0, games=0)
    assert short.match_seconds(0.0, last=False) == pytest.approx(5)
    endless = budget(clock, minutes=None, iterations=3)
    assert endless.match_seconds(0.0, last=False) == endless.match_seconds(0.0, last=True) == float("inf")


def test_games_that_take_long_leave_time_to_train() -> None:
    clock = Clock()
    timed = budget(clock, opponents=4)
    clock.now += 300
    timed.note_iteration(seconds=300.0, fit_seconds=1.0, positions=100, games=1)  # a match would take hours
    assert not timed.is_over(1)
    clock.now += 290
    assert timed.match_seconds(590.0, last=True) == pytest.approx(60)  # a tenth of the run, and no more


def test_matches_on_the_way_have_their_share() -> None:
    clock = Clock()
    timed = budget(clock, minutes=20.0, match_every=5, match_games=40, final_match_games=80)
    timed.note_match(seconds=20.0, games=40)
    clock.now += 799
    assert not timed.match_is_due(10)
    clock.now += 2  # 40 s, with the next, are a twentieth of that
    assert timed.match_is_due(10)
    assert not timed.match_is_due(11)
    clock.now = 1000 + 1200 - 20 - 40 - 1  # 40 games take 20 s, and the last match 40 s
    assert timed.match_is_due(10)
    clock.now += 2
    assert not timed.match_is_due(10)
    endless = budget(clock, minutes=None, match_every=5)
    endless.note_match(seconds=10**6, games=40)
    assert endless.match_is_due(10)


def test_short_matches_come_at_the_start_and_after_each_third() -> None:
    def due(run: Budget, iterations: range) -> list[int]:
        return [iteration for iteration in iterations if run.match_is_due(iteration)]

    length: dict[str, Any] = {"minutes": None, "iterations": 20}
    assert due(budget(**length, deterministic=True), range(20)) == [0, 7, 14]
    assert due(budget(minutes=None, iterations=2), range(2)) == []
    assert due(budget(minutes=None, iterations=3), range(3)) == [0, 1, 2]
    assert due(budget(minutes=None), range(11)) == [0, 5, 10]  # without an end
    assert due(budget(**length, match_every=5), range(20)) == [5, 10, 15]
    half = budget(**length)
    assert due(half, range(11)) == [0, 7]
    state = json.loads(json.dumps(half.state()))
    for left_out, later in (((), [14]), (("thirds",), [11, 14])):
        resumed = budget(**length)
        resumed.load({name: value for name, value in state.items() if name not in left_out})
        # A state of an earlier version does not hold the thirds: its run has one match more.
        assert due(resumed, range(11, 20)) == later
    clock, seconds = Clock(), list[float]()
    timed = budget(clock)
    for _ in range(54):  # the last match keeps a tenth free
        if timed.match_is_due(3):
            seconds.append(clock.now - 1000)
        clock.now += 10
    assert seconds == [0, 180, 360]
    longer = budget(clock, minutes=20.0)
    longer.load(timed.state())
    assert not longer.match_is_due(9)
    clock.now += 240
    assert longer.match_is_due(12)


def test_elapsed_time_goes_on_over_an_interruption() -> None:
    clock = Clock()
    first = budget(clock)
    clock.now += 90
    state = json.loads(json.dumps(first.state()))
    clock.now += 10_000
    second = budget(clock)
    second.load(state)
    clock.now += 10
    assert second.elapsed() == pytest.approx(100)
    second.advance_to(50)
    assert second.elapsed() == pytest.approx(100)


def test_the_learning_rate_falls_in_the_second_half() -> None:
    clock = Clock()
    counted = budget(clock, minutes=None, iterations=10)
    assert [counted.rate(done) for done in (0, 5, 7.5, 10)] == pytest.approx([1, 1, 0.5, 0.05])
    assert budget(clock, minutes=None, iterations=10, schedule="constant").rate(10) == 1
    timed = budget(clock, minutes=1.0)
    clock.now += 40.5  # the last match keeps a tenth free: three quarters of the rest
    assert timed.rate(3) == pytest.approx(0.5)
    clock.now += 13.5
    assert not timed.may_play(0)
    assert timed.rate(3) == 0.05
    endless = budget(clock, minutes=None)
    clock.now += 10**6
    assert endless.rate(1000) == 1
    assert not endless.is_over(1000)


def test_evaluations_end_a_run_and_lower_the_learning_rate() -> None:
    first = budget(minutes=None, total_evaluations=1000)
    assert (first.rate(0), first.is_over(0)) == (1.0, False)
    first.evaluations += 750
    assert first.rate(3) == pytest.approx(0.5)
    again = budget(minutes=None, total_evaluations=1000)
    again.load(json.loads(json.dumps(first.state())))
    again.evaluations += 249
    assert not again.is_over(4)
    again.evaluations += 1
    assert again.is_over(5)
    assert again.rate(5) == 0.05


def test_a_collection_keeps_no_time_for_fitting_and_matches() -> None:
    clock = Clock()
    timed = budget(clock, opponents=0)
    clock.now += 599
    assert timed.may_play(1000)
    assert not timed.is_over(3)
    clock.now += 1
    assert not timed.may_play(1)
    assert timed.is_over(3)
