"""Simulations that grow over the run: a game searches as its iteration says, whoever plays it and whatever stops."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import azpy
from azpy._core import SEARCHED
from azpy.cli.replay import main as az_replay
from azpy.errors import SettingsError
from azpy.fleet.examine import Examiner, RefusedError
from azpy.fleet.fleet import Lineup
from azpy.games.names import make_game
from azpy.playing.replay_check import repeat_game
from azpy.runs.exports import game_as_dict
from azpy.runs.folder import RunFolder
from azpy.runs.reader import StoredRun
from azpy.settings import Settings
from azpy.training.budget import Budget
from azpy.training.collector import Collector
from azpy.training.events import Finished, Saved
from azpy.training.trainer import Trainer
from oracles import Clock

GROWING: dict[str, Any] = {"game": "tic_tac_toe", "network": "1x8", "simulations_start": 2, "simulations": 16}
GROWING |= {"full_search_share": 0.5, "slots": 8, "eval_batch": 2, "games_per_iteration": 20, "iterations": 3}
GROWING |= {"batch_size": 16, "passes": 1.0, "match_every": 100, "final_match_games": 2, "deterministic": True}
GROWING |= {"tree_reuse": False}  # so that visits are simulations
NUMBERS = {1: 2, 2: 4, 3: 8}  # 2 * 8^(0 / 3), 2 * 8^(1 / 3), 2 * 8^(2 / 3)


def settings(**changes: Any) -> Settings:
    return Settings(**(GROWING | changes))


def train_until(settings: Settings, path: Path, until: int | None) -> tuple[str | None, str | None]:
    """Trains, until a checkpoint if one is given; returns the hashes of a run that has ended."""
    with Trainer(settings, path) as trainer:
        for event in trainer.run():
            if isinstance(event, Saved) and event.iteration == until:
                break
            if isinstance(event, Finished):
                return event.games_hash, event.weights_hash
    return None, None


def train(path: Path, until: int | None = None, **changes: Any) -> tuple[str | None, str | None]:
    return train_until(settings(**changes), path, until)


def games_of(path: Path, iteration: int) -> list[azpy.GameRecord]:
    return [record for _, record in StoredRun(path).games([iteration])]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str | None, str | None]]:
    """A run, and its hashes."""
    path = tmp_path_factory.mktemp("runs") / "grown"
    return path, train(path)


def test_the_games_of_an_iteration_have_its_number_of_simulations(grown: tuple[Path, Any]) -> None:
    path, _ = grown
    with RunFolder(path, {}) as run:
        rows = {row["iteration"]: row for row in run.metrics() if row["kind"] == "iteration"}
    for iteration, number in NUMBERS.items():
        samples = 0
        for record in games_of(path, iteration):
            assert record.simulations == number
            assert azpy.GameRecord.from_bytes(record.to_bytes()).simulations == number
            for ply in np.flatnonzero(record.flags & SEARCHED).tolist():
                assert record.visits[record.offsets[ply] : record.offsets[ply + 1]].sum() == number
                samples += 1
        assert samples > 20
        assert rows[iteration]["simulations"] == number


def test_a_run_that_goes_on_and_workers_and_layouts_play_the_same_games(
    grown: tuple[Path, Any], tmp_path: Path
) -> None:
    _, hashes = grown
    parts = tmp_path / "parts"
    for iteration in (1, 2):
        train(parts, iteration, slots=3)
    with Trainer(settings(), parts) as trainer:  # goes away in the middle of an iteration
        events = trainer.run()
        next(events)
        next(events)
    assert train(parts, slots=5, pipelines=1, threads=1) == hashes
    assert train(tmp_path / "workers", workers=2) == hashes
    assert train(tmp_path / "other", simulations_start=3) != hashes


@pytest.mark.slow
def test_it_grows_beside_a_learner_of_its_own_process(tmp_path: Path) -> None:
    hashes = train(tmp_path / "whole", learner_lag=1)
    train(tmp_path / "parts", 2, learner_lag=1)
    assert train(tmp_path / "parts", learner_lag=1, workers=1) == hashes
    for iteration, number in NUMBERS.items():
        assert {record.simulations for record in games_of(tmp_path / "whole", iteration)} == {number}


def test_each_game_repeats_with_the_simulations_that_it_had(
    grown: tuple[Path, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = grown
    run = StoredRun(path)
    for iteration in NUMBERS:
        for record in games_of(path, iteration)[:4]:
            comparison = repeat_game(run, record)
            assert (comparison.difference, comparison.whole) == (None, True)
    record = games_of(path, 2)[0]
    assert az_replay([str(path), str(record.game_id), "--check"]) == 0
    assert "the same, bit for bit" in capsys.readouterr().out
    assert game_as_dict(run.start, record)["simulations"] == NUMBERS[2]
    # A record that names another number is another game.
    data = bytearray(record.to_bytes())
    at = 4 + 4 + len(record.game) + 8 + 8 + 3 + 4
    assert data[at : at + 4] == NUMBERS[2].to_bytes(4, "little")
    data[at] = 3
    assert repeat_game(run, azpy.GameRecord.from_bytes(bytes(data))).difference is not None


def test_games_in_play_keep_their_number_and_repeat(tmp_path: Path) -> None:
    # More games than may wait to be fetched, so that some are in play at each change.
    changes = {"deterministic": False, "games_per_iteration": 100, "slots": 64}
    train(tmp_path, **changes)
    run, carried = StoredRun(tmp_path), 0
    for iteration in NUMBERS:
        for record in games_of(tmp_path, iteration):
            assert record.simulations in [number for i, number in NUMBERS.items() if i <= iteration]
            carried += record.simulations != NUMBERS[iteration]
    assert carried > 0
    saved, repeated = _networks(tmp_path), 0
    for record in sorted(games_of(tmp_path, 3), key=lambda game: game.simulations or 0):  # those carried over first
        if len(set(record.networks[record.flags > 0].tolist())) == 1 and record.networks[-1] in saved and repeated < 20:
            assert repeat_game(run, record).difference is None
            repeated += 1


def _networks(path: Path) -> set[int]:
    models = [azpy.OnnxEvaluator(path / f"checkpoints/{i:06d}/model.onnx", game=StoredRun(path).start) for i in NUMBERS]
    return {model.network_id for model in models}


def test_a_collection_grows_too(tmp_path: Path) -> None:
    with Collector(settings(), tmp_path) as collector:
        list(collector.run())
    for iteration, number in NUMBERS.items():
        assert {record.simulations for record in games_of(tmp_path, iteration)} == {number}


def test_without_the_setting_no_record_and_no_row_has_a_number(tmp_path: Path) -> None:
    train(tmp_path, simulations_start=None, iterations=1)
    assert {record.simulations for record in games_of(tmp_path, 1)} == {None}
    with RunFolder(tmp_path, {}) as run:
        assert not [row for row in run.metrics() if row["kind"] == "iteration" and "simulations" in row]


def test_the_number_follows_the_share_of_the_run_that_is_done() -> None:
    clock = Clock()

    def budget(first: int | None, **length: Any) -> Budget:
        given = {"iterations": None, "deterministic": False, "simulations_start": first, "simulations": 64} | length
        return Budget(settings(**given), opponents=0, clock=clock)

    by_iterations = budget(4, iterations=4)
    assert [by_iterations.simulations(iteration) for iteration in (1, 2, 3, 4, 9)] == [4, 8, 16, 32, 64]
    by_evaluations = budget(1, total_evaluations=1000)
    found = []
    for by_evaluations.evaluations in (0, 500, 999, 5000):
        found.append(by_evaluations.simulations(7))
    assert found == [1, 8, 64, 64]
    by_time = budget(4, minutes=1.0)
    assert by_time.simulations(1) == 4
    clock.now += 30
    assert by_time.simulations(1) == 16
    again = budget(4, minutes=1.0)
    again.load(by_time.state())
    assert again.simulations(1) == 16
    # The length that ends the run first counts; in a deterministic run no other than that of iterations can.
    assert budget(4, iterations=2, minutes=60.0).simulations(2) == 16
    assert budget(None, iterations=4).simulations(3) is None
    assert budget(64, iterations=4).simulations(1) == 64


def test_a_match_costs_what_games_with_so_few_simulations_say() -> None:
    clock = Clock()
    options: dict[str, Any] = {"deterministic": False, "iterations": None, "minutes": 10.0, "full_search_share": 1.0}
    budgets = [Budget(settings(**options), opponents=1, clock=clock) for _ in range(2)]
    clock.now += 10
    for budget, simulations in zip(budgets, (4.0, 0.0), strict=True):
        budget.note_iteration(10.0, 0.0, 100, 10, simulations=simulations)
    # Games of 1 s with 4 and with 16 simulations: games with 100 take 25 s and 6.25 s.
    assert [budget._seconds_of_match(1) for budget in budgets] == [25.0, 6.25]
    again = Budget(settings(**options), opponents=1, clock=clock)
    again.load(budgets[0].state())
    assert again._seconds_of_match(1) == 25.0
    # No fast search has more than a full one of its game.
    fast = Budget(settings(**options | {"full_search_share": 0.5, "fast_simulations": 12}), opponents=1, clock=clock)
    fast.load(budgets[0].state())
    assert fast._seconds_of_match(1) == 25.0


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"simulations_start": 17}, "simulations must be at least simulations_start, 17, got 16"),
        ({"iterations": None}, "simulations_start needs the run's length: give iterations, minutes or total"),
        ({"simulations_start": 0}, "simulations_start must be at least 1, got 0"),
    ],
)
def test_settings_that_cannot_grow_are_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        settings(**changes)


def test_a_worker_s_game_with_another_number_is_refused() -> None:
    def game(simulations: int | None) -> azpy.GameRecord:
        with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), slots=2, games=0, simulations=8) as play:
            if simulations is not None:
                play.set_simulations(simulations)
            play.admit(0, 1)
            return next(play)

    def lineup(simulations: int | None) -> Lineup:
        return Lineup([azpy.UniformEvaluator()], simulations=simulations)

    for deterministic in (True, False):
        examiner = Examiner(settings(deterministic=deterministic), make_game("tic_tac_toe"))
        examiner.play(lineup(2))
        examiner.look_at(game(2))
        # The time may have given the head before another number; what it gave out is still there.
        for wrong in (3, None) if deterministic else (1, 17, None):
            with pytest.raises(RefusedError, match=f"game 0 has {wrong} simulations a move, which no game has"):
                examiner.look_at(game(wrong))
        if not deterministic:
            examiner.look_at(game(3))
        examiner.play(lineup(4))
        examiner.look_at(game(4))
        if deterministic:
            with pytest.raises(RefusedError, match="has 2 simulations"):
                examiner.look_at(game(2))
        else:
            examiner.look_at(game(2))  # it was under way at the change
