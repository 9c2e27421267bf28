"""An engine with several models, games that keep their trees, stops, reports, and a budget of memory."""

import random
import threading
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.pending import Pending
from oracles import Countdown, DiceCountdown, Hashed, Held
from running import PATIENCE, at_once

STATE = azpy.make_game("connect_four")


def facts(result: azpy.SearchResult) -> list[Any]:
    """What a result says, and what it reads from the search's tree."""
    names = ("actions", "visits", "priors", "q", "target", "standard_errors")
    arrays = [getattr(result, name).tobytes() for name in names]
    return [*arrays, result.action, result.value, result.stop, result.principal_variations(20)]


def same(result: azpy.SearchResult, twin: azpy.SearchResult) -> None:
    assert facts(result) == facts(twin)


def test_an_engine_of_several_models_must_be_told_which() -> None:
    with azpy.Engine({"one": Hashed(7), "other": Hashed(7, salt=1)}) as engine:  # their answers: the last test
        assert engine.models == ["one", "other"]
        with pytest.raises(ValueError, match="say which model: one, other"):
            engine.submit(STATE)
        with pytest.raises(ValueError, match="no model third; there are: one, other"):
            engine.submit(STATE, model="third")


def test_one_model_takes_games_of_several_sizes() -> None:
    games: list[Any] = [azpy.make_game(name) for name in ("connect_four", "tic_tac_toe", "hex(size=5)")]
    games += [Countdown(14), DiceCountdown(12, roll=2)]
    with azpy.Engine(azpy.RolloutEvaluator(3), simulations=60) as engine:
        for game, pending in [(game, engine.submit(game, seed=2)) for game in games for _ in range(3)]:
            same(pending.result(PATIENCE), azpy.Search(azpy.RolloutEvaluator(3), simulations=60, seed=2).run(game))


def test_a_request_is_answered_for_the_position_of_its_time() -> None:
    evaluator = Held()
    with azpy.Engine(evaluator) as engine:
        game = engine.game(STATE, seed=1)
        first = game.search(50, standard_errors=True)
        game.play(3)
        second = game.search(50)
        game.undo()
        third = game.search(50)
        assert (game.num_played, game.state.key()) == (0, STATE.key())
        evaluator.leave.set()
        search = azpy.Search(Hashed(7), seed=1)
        same(first.result(PATIENCE), search.run(STATE, 50))
        assert second.result(PATIENCE).visits.sum() > 50, "it has the visits of the tree below the action"
        third_result = third.result(PATIENCE)
        assert third_result.visits.sum() == 100, "the tree from before the action is still there"


@pytest.mark.parametrize("options", [{}, {"actions": [1, 3, 5]}])
def test_answers_tell_the_lines_and_errors_that_were_asked_for(options: Any) -> None:
    with azpy.Engine(Hashed(7), eval_batch=1) as engine:

        def told(**wanted: Any) -> list[azpy.SearchResult]:
            """A report and the answer of a search that is the same each time."""
            reports = list[azpy.SearchResult]()
            pending = engine.game(STATE, seed=3).search(
                300, on_report=reports.append, report_every=0.0, **options, **wanted
            )
            return [pending.result(PATIENCE), reports[-1]]

        everything = told(standard_errors=True)
        assert facts(everything[0]) == facts(told(standard_errors=True, lines=None)[0])
        for count in (0, 1, 2, 100):
            answer, report = told(lines=count)
            assert answer.principal_variations(20) == everything[0].principal_variations(min(count, 20))
            assert answer.principal_variation == everything[0].principal_variation
            assert len(report.principal_variations(20)) <= count
            for result in (answer, report):
                with pytest.raises(ValueError, match="no standard_errors"):
                    _ = result.standard_errors
        for wrong in (-1, 1.5):
            with pytest.raises((TypeError, ValueError), match=r"lines|whole number"):
                engine.game(STATE).search(1, lines=wrong)  # type: ignore[arg-type]
        # An answer of `submit` has its tree, and so all that is read from it.
        assert len(engine.submit(STATE, 50, lines=1).result(PATIENCE).principal_variations(20)) > 1


def test_a_refused_move_changes_nothing() -> None:
    with azpy.Engine(Hashed(7)) as engine:
        game = engine.game(STATE)
        with pytest.raises(ValueError, match="undo"):
            game.undo()
        with pytest.raises(ValueError, match=r"^illegal action 77; legal actions are"):
            game.play(77)
        with pytest.raises(ValueError, match="actions: 9 is not legal here"):
            game.search(10, actions=[3, 9])
        with pytest.raises(ValueError, match="at least one legal action"):
            game.search(10, actions=[])
        with pytest.raises(ValueError, match="priority must be"):
            game.search(10, priority="urgent")
        with pytest.raises(ValueError, match="report_every needs on_report"):
            game.search(10, report_every=1.0)
        assert game.state.key() == STATE.key()
        same(game.search(20, standard_errors=True).result(PATIENCE), azpy.Search(Hashed(7)).run(STATE, 20))
        with pytest.raises(ValueError, match="an engine's game has kept"):
            game.search(5).result(PATIENCE).to_svg()
    with pytest.raises(RuntimeError, match="closed"):
        game.search(5)


@pytest.mark.parametrize("options", [{}, {"gumbel_actions": 3}, {"solver": True}, {"lcb": 1.0}])
def test_actions_restrict_the_root(options: dict[str, Any]) -> None:
    with azpy.Engine(Hashed(7), simulations=80, **options) as engine:
        game = engine.game(STATE)
        found = game.search(actions=[5, 1, 5], standard_errors=True).result(PATIENCE)
        assert list(found.actions) == [1, 5]
        assert found.visits.sum() == 80
        assert abs(found.priors.sum() - 1) < 1e-6
        twin = azpy.Search(Hashed(7), simulations=80, **options)
        same(found, twin.run(STATE, actions=[1, 5]))
        same(engine.submit(STATE, actions=[1, 5]).result(PATIENCE), twin.run(STATE, actions=[1, 5]))
        # The game's own tree knows nothing of it.
        assert len(game.search().result(PATIENCE).actions) == 7
    with pytest.raises(ValueError, match="give its state too"):
        twin.run(actions=[1])


def test_pondering_ends_when_its_game_is_asked() -> None:
    with azpy.Engine(Hashed(7)) as engine:
        game = engine.game(STATE)
        pondering = game.ponder()
        assert engine.submit(STATE, 200).result(PATIENCE).visits.sum() == 200
        game.play(3)
        known = pondering.result(PATIENCE)
        assert known.stop == "stopped"
        below = int(known.visits[known.actions.tolist().index(3)]) - 1
        after = game.search(10).result(PATIENCE)
        assert after.visits.sum() >= max(10, below), "what was found below the action is kept"
        pondering = game.ponder()
    assert pondering.result(PATIENCE).stop == "stopped", "a closed engine waits for nobody who ponders"
    with azpy.Engine(Hashed(7), gumbel_actions=4) as engine, pytest.raises(ValueError, match="cannot ponder"):
        engine.game(STATE).ponder()


def test_a_request_reports_until_it_is_told_to_stop() -> None:
    heard, enough = list[int](), threading.Event()

    def hear(report: azpy.SearchResult) -> None:
        heard.append(int(report.visits.sum()))
        if len(heard) >= 5 and heard[-1] > 0:
            enough.set()

    with azpy.Engine(Hashed(7)) as engine:
        pending = engine.submit(STATE, 2**32 - 1, on_report=hear, report_every=0.0)
        assert isinstance(pending, Pending)
        assert enough.wait(PATIENCE)
        pending.stop()
        found = pending.result(PATIENCE)
        until = list(heard)
        assert until == sorted(until)
        assert (found.stop, found.visits.sum() >= until[-1] > 0) == ("stopped", True)
        pending.stop()
        game = engine.game(STATE)
        first, second = game.search(2**32 - 1), game.search(20)
        first.stop()
        assert second.result(PATIENCE).visits.sum() == first.result().visits.sum() + 20


def test_a_cancelled_request_of_a_game_lets_the_next_go_on() -> None:
    with azpy.Engine(Hashed(7)) as engine:
        game = engine.game(STATE)
        first, second = game.search(2**32 - 1), game.search(20)
        assert first.cancel()
        assert second.result(PATIENCE).visits.sum() >= 20
        with pytest.raises(CancelledError):
            first.result()


def test_a_listener_that_fails_or_waits_holds_up_no_search() -> None:
    leave, heard = threading.Event(), threading.Event()

    def hear(result: azpy.SearchResult) -> None:
        heard.set()
        leave.wait(PATIENCE)

    with azpy.Engine(Hashed(7)) as engine:
        slow = engine.submit(STATE, 3000, on_report=hear, report_every=0.0)
        assert heard.wait(PATIENCE)
        before = engine.stats["rows"]
        while engine.stats["rows"] == before and engine.stats["open"]:
            pass
        leave.set()
        assert slow.result(PATIENCE).visits.sum() == 3000


def test_a_model_swap_under_load_loses_no_request() -> None:
    with azpy.Engine(Hashed(7), simulations=50) as engine:
        before = [engine.submit(STATE, seed=seed) for seed in range(60)]
        game = engine.game(STATE)
        kept = game.search()
        engine.load("main", Hashed(7, salt=1))
        after = [engine.submit(STATE, seed=seed) for seed in range(60)]
        for seed, pending in enumerate(before):
            same(pending.result(PATIENCE), azpy.Search(Hashed(7), simulations=50, seed=seed).run(STATE))
        for seed, pending in enumerate(after):
            same(pending.result(PATIENCE), azpy.Search(Hashed(7, salt=1), simulations=50, seed=seed).run(STATE))
        assert kept.result(PATIENCE).visits.sum() == 50
        # The tree of the network before is gone.
        again = game.search().result(PATIENCE)
        assert again.visits.sum() == 50
        np.testing.assert_array_equal(again.priors, azpy.Search(Hashed(7, salt=1), simulations=50).run(STATE).priors)
        assert (engine.stats["finished"], engine.stats["open"]) == (122, 0)


def test_trees_keep_to_the_budget_and_the_least_used_goes_first() -> None:
    with azpy.Engine(Hashed(7), total_memory_mb=2) as engine:
        games = [engine.game(STATE) for _ in range(8)]
        for game in games:
            game.search(2000).result(PATIENCE)
        # A tree of 2,000 simulations has about 0.4 MB.
        visits = [int(game.search(10).result(PATIENCE).visits.sum()) for game in reversed(games)]
        assert visits[0] == 2010
        assert visits[-1] == 10
        endless = engine.submit(STATE, 2**32 - 1)
        assert endless.result(PATIENCE).stop == "memory"


def test_a_close_with_a_timeout_returns_partial_results() -> None:
    engine = azpy.Engine(Hashed(7))
    pending = [engine.submit(STATE, 2**32 - 1, seed=seed) for seed in range(5)]
    game = engine.game(STATE)
    pending += [game.search(2**32 - 1), game.search(2**32 - 1)]
    engine.close(seconds=0.2)
    assert [each.result(PATIENCE).stop for each in pending] == ["stopped"] * 7
    assert engine.stats["finished"] == 7


def play_at_random(engine: azpy.Engine, evaluators: dict[str, Any], answers: int, seed: int) -> int:
    """Random load from one thread: games and single requests of all models, with stops, cancels, undo, pondering and
    priorities between them. Compares each answer with a search's of its own; how many there were."""
    rng = random.Random(seed)
    compared = 0
    while compared < answers:
        model = rng.choice(sorted(evaluators))
        state = azpy.make_game("connect_four")
        for _ in range(rng.randrange(10)):
            if not state.is_terminal:
                state.play(rng.choice(state.legal_actions()))
        noise = [engine.submit(state, 2**32 - 1, model=model, priority=rng.choice(("play", "analysis", "ponder")))]
        own = rng.randrange(1000)
        asked: list[tuple[Pending, list[Any]]] = []
        for _ in range(rng.randrange(1, 6)):
            simulations, priority = rng.randrange(120), rng.choice(("play", "analysis"))
            actions = None
            if not state.is_terminal and rng.random() < 0.2:
                actions = rng.sample(state.legal_actions(), k=rng.randrange(1, len(state.legal_actions()) + 1))
            pending = engine.submit(state, simulations, seed=own, model=model, priority=priority, actions=actions)
            twin = azpy.Search(evaluators[model], seed=own).run(state, simulations, actions=actions)
            asked.append((pending, facts(twin)))
        game, search = engine.game(state, model=model, seed=own), azpy.Search(evaluators[model], seed=own)
        search.run(state, 0)
        game.search(0)
        for _ in range(rng.randrange(6)):
            now = game.state
            if now.is_terminal:
                break
            if rng.random() < 0.3:
                # A line that is looked at and taken back leaves no trace but the number of the run.
                game.play(rng.choice(now.legal_actions()))
                game.undo()
            simulations = rng.randrange(80)
            asked.append((game.search(simulations, standard_errors=True), facts(search.run(None, simulations))))
            action = rng.choice(now.legal_actions())
            game.play(action)
            search.advance(action)
        for pending in noise:
            if rng.random() < 0.5:
                pending.cancel()
            else:
                pending.stop()
        for pending, found in asked:
            assert facts(pending.result(PATIENCE)) == found
            compared += 1
    return compared


@pytest.mark.parametrize(
    "answers", [240, pytest.param(10_000, marks=pytest.mark.slow)], ids=lambda answers: f"{answers}-answers"
)
def test_answers_under_random_load_are_those_of_searches(answers: int) -> None:
    evaluators: dict[str, Any] = {"one": Hashed(7), "other": Hashed(7, salt=1)}
    with azpy.Engine(evaluators, max_batch=24) as engine:
        works = [lambda seed=seed: play_at_random(engine, evaluators, answers // 4, seed) for seed in range(4)]
        compared = at_once(*works)
        assert sum(compared) >= answers
        assert engine.stats["failed"] == 0
    assert engine.stats["open"] == 0
