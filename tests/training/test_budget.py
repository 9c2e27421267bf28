"""How much of a run is done: by the clock, by iterations, by evaluations; and what is kept free for the end."""

import json
from typing import Any

import pytest

from azpy.settings import Settings
from azpy.training.budget import Budget
from oracles import Clock


def settings(**given: Any) -> Settings:
    return Settings("tic_tac_toe", **given)


def test_a_timed_run_keeps_time_free_for_its_end() -> None:
    clock = Clock()
    budget = Budget(
        settings(minutes=10.0, iterations=None, match_every=5, final_match_games=200), opponents=3, clock=clock
    )
    assert not budget.is_over(0)
    clock.now += 20
    budget.note_iteration(seconds=20.0, fit_seconds=8.0, positions=4000, games=500)
    clock.now += 10
    budget.note_match(seconds=10.0, games=100)
    assert budget.final_match_games() == 200
    clock.now = 1000 + 600 - 20 - 8 - 1  # the last match takes 20 s, fitting 4,000 positions 8 s
    assert budget.may_play(4000)
    clock.now += 2
    assert not budget.may_play(4000)
    assert budget.may_play(3000)
    clock.now = 1000 + 600 - 24
    assert budget.is_over(9)
    budget.note_match(seconds=100.0, games=100)
    assert budget.final_match_games() == 60  # a tenth of the run


def test_before_a_match_was_measured_self_play_says_what_it_takes() -> None:
    clock = Clock()
    changes: dict[str, Any] = {"simulations": 16, "match_simulations": 80, "match_games": 20, "final_match_games": 100}
    budget = Budget(settings(minutes=1.0, iterations=None, match_every=1, **changes), opponents=3, clock=clock)
    clock.now += 10
    budget.note_iteration(seconds=10.0, fit_seconds=5.5, positions=1000, games=500)
    # 9 ms a game of self-play, five times the simulations, three opponents: 0.135 s a game. A tenth of the run is 6 s.
    assert budget.final_match_games() == 44
    assert not budget.match_is_due(1)  # its 2.7 s are more than a twentieth of 10
    clock.now = 1000 + 60 - 6 - 1
    assert budget.may_play(0)
    clock.now += 2
    assert not budget.may_play(0)
    # An iteration whose games were there says nothing of what they took.
    budget.note_iteration(seconds=2.0, fit_seconds=1.5, positions=1000, games=0)
    assert budget.final_match_games() == 44
    # A quarter of full searches, and fast ones of a quarter of the simulations: 0.31 of a game in full.
    fewer = Budget(settings(minutes=1.0, iterations=None, full_search_share=0.25, **changes), opponents=3, clock=clock)
    fewer.note_iteration(seconds=10.0, fit_seconds=5.5, positions=1000, games=500)
    assert fewer.final_match_games() == 18
    restored = Budget(settings(minutes=1.0, iterations=None, **changes), opponents=3, clock=clock)
    restored.load(json.loads(json.dumps(budget.state())))
    assert restored.final_match_games() == 44
    old = {name: value for name, value in budget.state().items() if name != "play_seconds_per_game"}
    restored.load(old)  # of a version that did not measure it
    assert restored.final_match_games() == 100


def test_an_iteration_is_cut_short_so_that_the_end_is_on_time() -> None:
    clock = Clock()
    budget = Budget(settings(minutes=10.0, iterations=None, final_match_games=20), opponents=3, clock=clock)
    clock.now += 269  # nothing was fitted yet: as much time as has passed is kept free, and 60 s for the last match
    assert budget.may_play(1)
    clock.now += 2
    assert not budget.may_play(1)
    clock.now = 1000 + 539
    assert budget.may_fit()
    clock.now += 2
    assert not budget.may_fit()
    budget.note_iteration(seconds=300.0, fit_seconds=100.0, positions=1000, games=100, export_seconds=7.0)
    budget.note_match(seconds=60.0, games=20)
    clock.now = 1000 + 600 - 60 - 8  # the model takes 7 s
    assert budget.may_fit()
    assert not budget.may_play(20)
    clock.now += 2
    assert not budget.may_fit()


def test_matches_end_with_the_run() -> None:
    clock = Clock()
    budget = Budget(settings(minutes=10.0, iterations=None, final_match_games=20), opponents=3, clock=clock)
    clock.now += 500
    begin = budget.elapsed()
    assert budget.match_seconds(begin, last=False) == pytest.approx(40)  # the last match has 60 s
    assert budget.match_seconds(begin, last=True) == pytest.approx(100)
    clock.now += 90
    assert budget.match_seconds(begin, last=True) == pytest.approx(10)
    late = budget.elapsed()  # what was kept free for the last match is its own, even where the run is late
    assert budget.match_seconds(late, last=True) == pytest.approx(60)
    clock.now += 61
    assert budget.match_seconds(late, last=True) < 0
    clock.now = 1000 + 330
    assert budget.match_seconds(300.0, last=False) == pytest.approx(30)  # of a tenth of the run
    endless = Budget(settings(iterations=3), opponents=3, clock=clock)
    assert endless.match_seconds(0.0, last=False) == endless.match_seconds(0.0, last=True) == float("inf")


def test_games_that_take_long_leave_time_to_train() -> None:
    clock = Clock()
    budget = Budget(settings(minutes=10.0, iterations=None), opponents=4, clock=clock)
    clock.now += 300
    budget.note_iteration(seconds=300.0, fit_seconds=1.0, positions=100, games=1)  # a match would take hours
    assert not budget.is_over(1)
    assert budget.match_seconds(500.0, last=True) == pytest.approx(300)
    clock.now += 290
    assert budget.match_seconds(590.0, last=True) == pytest.approx(60)  # a tenth of the run, and no more


def test_matches_on_the_way_take_no_more_than_their_share() -> None:
    clock = Clock()
    budget = Budget(settings(minutes=100.0, iterations=None, match_every=5, match_games=40), opponents=3, clock=clock)
    budget.note_match(seconds=20.0, games=40)
    clock.now += 799
    assert not budget.match_is_due(10)
    clock.now += 2  # 40 s, with the next, are a twentieth of that
    assert budget.match_is_due(10)
    assert not budget.match_is_due(11)


def test_a_match_on_the_way_leaves_time_for_the_last_one() -> None:
    clock = Clock()
    budget = Budget(
        settings(minutes=20.0, iterations=None, match_every=5, match_games=40, final_match_games=80),
        opponents=3,
        clock=clock,
    )
    budget.note_match(seconds=20.0, games=40)
    clock.now = 1000 + 1200 - 20 - 40 - 1  # 40 games take 20 s
    assert budget.match_is_due(10)
    clock.now += 2
    assert not budget.match_is_due(10)
    endless = Budget(settings(iterations=None, match_every=5), opponents=3, clock=clock)
    endless.note_match(seconds=10**6, games=40)
    assert endless.match_is_due(10)


def test_elapsed_time_goes_on_over_an_interruption() -> None:
    clock = Clock()
    first = Budget(settings(minutes=10.0, iterations=None), opponents=3, clock=clock)
    clock.now += 90
    state = json.loads(json.dumps(first.state()))
    clock.now += 10_000
    second = Budget(settings(minutes=10.0, iterations=None), opponents=3, clock=clock)
    second.load(state)
    clock.now += 10
    assert second.elapsed() == pytest.approx(100)
    second.advance_to(50)
    assert second.elapsed() == pytest.approx(100)


def test_the_learning_rate_falls_in_the_second_half() -> None:
    clock = Clock()
    budget = Budget(settings(iterations=10), opponents=3, clock=clock)
    assert [budget.rate(done) for done in (0, 5, 7.5, 10)] == pytest.approx([1, 1, 0.5, 0.05])
    timed = Budget(settings(iterations=None, minutes=1.0), opponents=3, clock=clock)
    clock.now += 40.5  # the last match keeps a tenth free: three quarters of the rest
    assert timed.rate(3) == pytest.approx(0.5)
    clock.now += 13.5
    assert not timed.may_play(0)
    assert timed.rate(3) == 0.05
    endless = Budget(settings(iterations=None), opponents=3, clock=clock)
    clock.now += 10**6
    assert endless.rate(1000) == 1
    assert not endless.is_over(1000)


def test_evaluations_end_a_run_and_lower_the_learning_rate() -> None:
    budget = Budget(settings(iterations=None, total_evaluations=1000), opponents=3)
    assert (budget.rate(0), budget.is_over(0)) == (1.0, False)
    budget.evaluations += 750
    assert budget.rate(3) == pytest.approx(0.5)
    state = json.loads(json.dumps(budget.state()))
    again = Budget(settings(iterations=None, total_evaluations=1000), opponents=3)
    again.load(state)
    again.evaluations += 249
    assert not again.is_over(4)
    again.evaluations += 1
    assert again.is_over(5)
    assert again.rate(5) == 0.05


def test_a_collection_keeps_no_time_for_fitting_and_matches() -> None:
    clock = Clock()
    budget = Budget(settings(minutes=10.0, iterations=None), opponents=0, clock=clock)
    clock.now += 599
    assert budget.may_play(1000)
    assert not budget.is_over(3)
    clock.now += 1
    assert not budget.may_play(1)
    assert budget.is_over(3)
