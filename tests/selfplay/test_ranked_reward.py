"""Ranked reward: a puzzle is won or lost against the run's own recent scores, whoever plays it and whatever stops."""

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.errors import RunError, SettingsError
from azpy.fleet.examine import Examiner, RefusedError
from azpy.fleet.fleet import Lineup
from azpy.matches.arena import SearchPlayer
from azpy.matches.players import load_players, parse_player
from azpy.playing.ranked_reward import RankedReward
from azpy.playing.replay_check import repeat_game
from azpy.runs.exports import game_as_dict
from azpy.runs.imports import Filters, import_games
from azpy.runs.reader import StoredRun
from azpy.serving.models import open_model
from azpy.settings import Settings
from azpy.training.collector import Collector
from azpy.training.events import Finished
from azpy.training.trainer import Trainer
from many_players import Knapsack
from oracles import after
from training_runs import events_of

BAG = "many_players:Knapsack"
RANKED: dict[str, Any] = {"game": BAG, "network": "1x8", "ranked_reward": 0.75, "simulations": 6, "iterations": 3}
RANKED |= {"slots": 8, "eval_batch": 2, "games_per_iteration": 90, "batch_size": 64, "passes": 1.0}
RANKED |= {"match_every": 100, "final_match_games": 2, "deterministic": True}


def settings(**changes: Any) -> Settings:
    return Settings(**(RANKED | changes))


def train(path: Path, until: int | None = None, **changes: Any) -> tuple[str | None, str | None]:
    """Trains, until a checkpoint if one is given; returns the hashes of a run that has ended."""
    last = events_of(settings(**changes), path, until)[-1]
    return (last.games_hash, last.weights_hash) if isinstance(last, Finished) else (None, None)


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoredRun, tuple[str | None, str | None]]:
    """A run, and its hashes."""
    path = tmp_path_factory.mktemp("runs") / "ranked"
    hashes = train(path)
    return StoredRun(path, BAG), hashes


def games_of(run: StoredRun, iteration: int) -> list[azpy.GameRecord]:
    return [record for _, record in run.games([iteration])]


def test_an_iteration_is_to_beat_three_quarters_of_scores(ranked: tuple[StoredRun, Any]) -> None:
    run, _ = ranked
    scores, ties = list[float](), 0
    for row in run.iterations():
        to_beat = RankedReward(settings(), run.start).score_to_beat  # by random games
        if scores:
            to_beat = sorted(scores)[math.ceil(0.75 * len(scores)) - 1]
        assert to_beat is not None
        games = games_of(run, row["iteration"])
        for record in games:
            end = after(run.start, *record.actions.tolist())
            assert (record.outcome, record.score_to_beat) == (end.outcome(), to_beat)
            expected = {1.0} if record.outcome > to_beat else {-1.0} if record.outcome < to_beat else {1.0, -1.0}
            assert set(record.rewards) <= expected
            ties += len(expected) == 2
        own = [record.outcome for record in games]
        assert (row["best_score"], row["score_to_beat"]) == (max(own), to_beat)
        assert row["mean_score"] == pytest.approx(sum(own) / len(own))
        scores = [*scores, *own][-250:]
    assert ties
    assert run.score_to_beat() == to_beat
    assert game_as_dict(run.start, games[0])["score_to_beat"] == to_beat


def scored(outcomes: Iterable[float]) -> list[Any]:
    """Games of one player that are over."""
    return [SimpleNamespace(outcome=outcome) for outcome in outcomes]


def test_the_newest_250_scores_count_on_after_a_stop() -> None:
    start, scores = azpy.State(Knapsack()), [number / 400 for number in range(400)]
    straight = RankedReward(settings(ranked_reward=1.0), start)
    straight.note(scored(scores))
    assert straight.state() == scores[-250:]
    resumed = RankedReward(settings(ranked_reward=1.0), start)
    resumed.load(scores[-250:])
    resumed.note(scored([-1.0] * 60))  # the oldest go
    assert resumed.state() == scores[-190:] + [-1.0] * 60
    # The highest score is the newest but for the low ones, so it counts until 250 others have come.
    for count, to_beat in ((249, scores[-1]), (1, -1.0)):
        straight.note(scored([-1.0] * count))
        assert straight.score_to_beat == to_beat


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("scores", [[0.0, 0.0, 0.0, 1.0], [0.5, -0.5, -0.5, 0.5], [0.25] * 4, [-1.0, 0.0, 0.5, 1.0]])
def test_the_score_to_beat_is_one_that_was_reached(share: float, scores: list[float]) -> None:
    ranked = RankedReward(settings(ranked_reward=share), azpy.State(Knapsack()))
    ranked.note(scored(scores))
    reached = [score for score in scores if sum(other <= score for other in scores) >= share * len(scores)]
    assert ranked.score_to_beat == min(reached)
    assert RankedReward(settings(max_plies=1), ranked._start).score_to_beat == 0.0  # random games that are cut off


def test_the_network_learns_wins_and_losses(ranked: tuple[StoredRun, Any]) -> None:
    run, _ = ranked
    buffer = azpy.ReplayBuffer(run.start)
    records = {record.game_id: record for iteration in (1, 2, 3) for record in games_of(run, iteration)}
    buffer.extend(records.values())
    *_, values, details = buffer.sample(64, seed=1, details=True)
    expected = [records[game].rewards[0] for game in details["game_ids"].tolist()]
    assert values.tolist() == expected
    assert set(expected) == {-1.0, 1.0}


def test_parts_and_workers_play_the_same_games(ranked: tuple[StoredRun, Any], tmp_path: Path) -> None:
    _, hashes = ranked
    parts = tmp_path / "parts"
    train(parts, 1)
    train(parts, 2, slots=3, pipelines=1)
    with Trainer(settings(), parts) as trainer:  # goes away in the middle of an iteration
        events = trainer.run()
        next(events)
        next(events)
    assert train(parts) == hashes
    assert train(tmp_path / "workers", workers=2) == hashes
    assert train(tmp_path / "other", ranked_reward=0.25) != hashes
    with pytest.raises(RunError, match=r"ranked_reward 0\.75, now 0\.0"):
        train(parts, ranked_reward=0.0)


def test_each_game_repeats_with_the_score_that_it_was_to_beat(ranked: tuple[StoredRun, Any]) -> None:
    run, _ = ranked
    for iteration in (1, 2, 3):
        for record in games_of(run, iteration)[:5]:
            comparison = repeat_game(run, record)
            assert (comparison.difference, comparison.whole) == (None, True)
    # A record that names another score is another game.
    data = bytearray(record.to_bytes())
    at = 4 + 4 + len(record.game) + 8 + 8 + 3 + 4
    data[at : at + 4] = b"\0\0\x80\xbf"  # -1
    other = azpy.GameRecord.from_bytes(bytes(data))
    assert other.score_to_beat == -1
    assert repeat_game(run, other).difference is not None


def test_games_are_collected_against_their_own_scores_too(tmp_path: Path) -> None:
    found = []
    for until in ([2], [1, 2]):
        path = tmp_path / str(len(until))
        for iterations in until:
            events_of(settings(iterations=iterations), path, kind=Collector)
        run = StoredRun(path, BAG)
        found.append([record.to_bytes() for iteration in (1, 2) for record in games_of(run, iteration)])
    assert found[0] == found[1]
    assert len({record.score_to_beat for iteration in (1, 2) for record in games_of(run, iteration)}) == 2


def test_games_of_several_players_have_no_ranked_reward(tmp_path: Path) -> None:
    for game, players in (("tic_tac_toe", "2 players"), ("many_players:Trio", "3 players")):
        name = game.rpartition(":")[2]
        with pytest.raises(
            SettingsError, match=f"ranked_reward 0.75 is for games of one player, but {name} has {players}"
        ):
            Trainer(settings(game=game), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(SettingsError, match="ranked_reward does not go with score_to_beat"):
        settings(score_to_beat=0.5)
    with pytest.raises(
        ValueError, match="for games of one player, but this game has 2 players: leave score_to_beat out"
    ):
        azpy.Search(azpy.UniformEvaluator(), score_to_beat=0.5).run(azpy.make_game("tic_tac_toe"))


def test_a_worker_s_game_with_another_score_is_refused() -> None:
    def game(score: float | None) -> azpy.GameRecord:
        with azpy.SelfPlay(Knapsack(), azpy.UniformEvaluator(), slots=1, pipelines=1, games=0) as play:
            if score is not None:
                play.set_score_to_beat(score)
            play.admit(0, 1)
            return next(play)

    for deterministic in (True, False):
        examiner = Examiner(settings(deterministic=deterministic), azpy.State(Knapsack()))
        examiner.play(Lineup([azpy.UniformEvaluator()], score_to_beat=0.5))
        examiner.look_at(game(0.5))
        for wrong in (0.25, None) if deterministic else (None,):
            with pytest.raises(RefusedError, match=f"game 0 has the score to beat {wrong}, which"):
                examiner.look_at(game(wrong))
    examiner.look_at(game(0.25))  # it was under way at the change
    plain = Examiner(settings(ranked_reward=0.0), azpy.State(Knapsack()))
    plain.play(Lineup([azpy.UniformEvaluator()]))
    with pytest.raises(RefusedError, match=r"game 0 has the score to beat 0\.25"):
        plain.look_at(game(0.25))


def test_imported_scores_count_as_those_of_the_run(ranked: tuple[StoredRun, Any]) -> None:
    run, _ = ranked
    played = dict[bytes, azpy.GameRecord]()
    for _, game in run.games([1, 2, 3]):
        played.setdefault(game.actions.tobytes(), game)
    kept = 0
    for to_beat in (None, -1.0, next(iter(played.values())).score_to_beat):
        games = import_games([str(run.path / "games")], run.start, 0, Filters(score_to_beat=to_beat)).records
        assert len(games) == len(played)
        for game in games:
            own = played[game.actions.tobytes()]
            assert (game.outcome, game.score_to_beat) == (own.outcome, to_beat)
            assert to_beat is not None or game.rewards == (own.outcome,)
            values = own.root_values if own.score_to_beat == to_beat else np.full(len(game), game.rewards[0])
            assert (game.root_values == np.where(own.flags != 0, values, 0)).all()
            kept += own.score_to_beat == to_beat
    assert 0 < kept < len(played)


def test_a_run_counts_imports_against_its_own_score(ranked: tuple[StoredRun, Any], tmp_path: Path) -> None:
    own = settings(ranked_reward=0.0, score_to_beat=0.25, iterations=1)
    with Trainer(own, tmp_path / "run", [str(ranked[0].path / "games")]) as trainer:
        assert trainer._lessons._imported is not None
        assert {game.score_to_beat for game in trainer._lessons._imported.records} == {0.25}


def test_a_server_searches_for_the_newest_score(ranked: tuple[StoredRun, Any]) -> None:
    run, _ = ranked
    model = open_model(str(run.path), BAG, 8)
    before, options = model.engine, model.player.options
    assert options["score_to_beat"] == run.score_to_beat()
    for score, same in ((options["score_to_beat"], True), (0.5, False)):
        changes: dict[str, Any] = {"name": f"to beat {score}", "options": {**options, "score_to_beat": score}}
        model.opened = partial(replace, model.player, evaluator=azpy.UniformEvaluator(), **changes)
        assert model.renew()
        assert (model.engine is before) == same
    assert model.engine.submit(run.start).result().value == -1  # no bag beats 0.5
    model.engine.close()
    before.close()


def test_players_of_a_run_search_for_its_score(ranked: tuple[StoredRun, Any]) -> None:
    run, _ = ranked
    for spec, iteration in ((run.path, 3), (run.path / "checkpoints/000002", 2)):
        (entrant,) = load_players([parse_player(str(spec))], run.start, 8)
        assert isinstance(entrant.player, SearchPlayer)
        assert entrant.player.options["score_to_beat"] == run.score_to_beat(iteration)
        assert run.score_to_beat(iteration) is not None


def test_a_run_s_matches_and_az_match_have_one_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    class Noted(SearchPlayer):
        def __init__(self, *given: Any, **search: Any) -> None:
            asked.append(search["score_to_beat"])
            super().__init__(*given, **search)

    monkeypatch.setattr("azpy.training.matches.SearchPlayer", Noted)
    train(tmp_path, iterations=1)
    run = StoredRun(tmp_path)
    assert set(asked) == {run.score_to_beat()}
    recent = [record.outcome for _, record in run.games([1])]
    assert run.score_to_beat() != np.quantile(recent, 0.75, method="inverted_cdf")  # of the next iteration
