"""Games against earlier networks: who searches what, and that runs with them are reproducible."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy._core import FAST_SEARCH, OPPONENT
from azpy.cli.replay import main as az_replay
from azpy.cli.train import main as az_train
from azpy.errors import ModelError, RunError
from azpy.evaluators.onnx import network_id
from azpy.playing.replay_check import repeat_game
from azpy.runs import exports
from azpy.runs.reader import StoredRun
from azpy.training.events import Saved
from azpy.training.generations import is_kept, opponents_of
from azpy.training.trainer import Trainer
from oracles import Batch, Hashed
from test_selfplay import contents, play
from test_trainer import run, run_until, same_weights, settings


def opponent_of(record: azpy.GameRecord) -> tuple[int, int] | None:
    """Network and seat of the opponent, if it searched."""
    plies = np.flatnonzero(record.flags & OPPONENT)
    return (int(record.networks[plies[0]]), int(record.players[plies[0]])) if len(plies) else None


def test_each_pipeline_has_forks_of_the_opponents_too() -> None:
    class Forks(Hashed):
        forks = 0

        def fork(self) -> "Forks":
            self.forks += 1
            return Forks(9, network_id=self.network_id)

    players = [Forks(9, network_id=n) for n in (1, 2)]
    play("tic_tac_toe", players[0], 30, opponents=players[1:], opponent_share=0.5, pipelines=3)
    assert [player.forks for player in players] == [2, 2]


def test_an_exception_of_an_opponent_comes_back_as_itself() -> None:
    class Fails(Hashed):
        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            raise ZeroDivisionError("the opponent has left")

    with (
        azpy.SelfPlay("tic_tac_toe", Hashed(9), slots=8, opponents=[Fails(9)], opponent_share=0.5) as games,
        pytest.raises(ZeroDivisionError, match="the opponent has left"),
    ):
        list(games)


# Runs.


def test_an_iterations_opponents_are_checkpoints_that_are_kept() -> None:
    there, met = set[int](), set[int]()
    for iteration in range(1, 80):
        opponents = opponents_of(iteration)
        assert set(opponents) <= there - {iteration - 1}  # that one plays the other side
        assert len(opponents) == min(2, max(0, iteration - 2))
        met |= set(opponents)
        there = {checkpoint for checkpoint in {*there, iteration} if is_kept(checkpoint, iteration)}
    assert met >= {1, 10, 20, 30, 40, 50, 60}


CHANGES: dict[str, Any] = {
    "deterministic": True,
    "iterations": 4,
    "full_search_share": 0.5,
    "fast_simulations": 4,
    "surprise_weight": 0.5,
    "historical_share": 0.5,
    "temperature_plies": 4,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A deterministic run with fast searches, surprise and opponents."""
    path: Path = tmp_path_factory.mktemp("runs") / "trained"
    run(path, **CHANGES)
    return path


def id_of(path: Path, checkpoint: int) -> int:
    return network_id((path / f"checkpoints/{checkpoint:06d}/model.onnx").read_bytes())


def games_of(path: Path, iteration: int) -> Iterator[azpy.GameRecord]:
    return (record for _, record in StoredRun(path).games([iteration]))


def test_a_run_with_everything_on_goes_on_bit_for_bit_in_another_layout(trained: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    run_until(parts, 2, **CHANGES)
    run_until(parts, 3, **CHANGES, slots=5, pipelines=1, threads=1, cache_positions=0)
    with Trainer(settings(**CHANGES), parts) as trainer:  # goes away in the middle of an iteration
        events = trainer.run()
        next(events)
        next(events)
    run(parts, **CHANGES, slots=3)
    assert same_weights(trained, parts, 4)
    for iteration in range(1, 5):
        assert contents(games_of(trained, iteration)) == contents(games_of(parts, iteration))


def test_opponents_are_the_networks_of_earlier_checkpoints(tmp_path: Path) -> None:
    ids = dict[int, int]()
    # More games than may wait to be fetched: the later ones begin after a change of opponents.
    changes = CHANGES | {"deterministic": False, "games_per_iteration": 100}
    with Trainer(settings(**changes), tmp_path) as trainer:
        for event in trainer.run():
            if isinstance(event, Saved):
                ids[id_of(tmp_path, event.iteration)] = event.iteration
    met = dict[int, set[int]]()
    for iteration in range(1, 5):
        opponents = map(opponent_of, games_of(tmp_path, iteration))
        met[iteration] = {ids[opponent[0]] for opponent in opponents if opponent}
    # Games that were in play when an iteration began have the opponents of the one before.
    assert met[1] == met[2] == set()
    assert met[3] <= {1}
    assert met[4] <= {1, 2}
    assert met[3] | met[4]
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert all(0 <= row["fast_searches"] <= 1 for row in rows if row["kind"] == "iteration")
    assert [row["opponent_games"] for row in rows if row["kind"] == "iteration"][:2] == [0, 0]


def test_games_with_opponents_repeat_bit_for_bit_as_long_as_the_models_are_there(trained: Path) -> None:
    stored, models, gone = StoredRun(trained), set[str](), 0
    assert stored.checkpoints() == [2, 3, 4]  # the opponents of iteration 4 were those of 1 and 2
    for record in [*games_of(trained, 1), *games_of(trained, 4)]:
        opponent = opponent_of(record)
        if opponent is not None and opponent[0] != id_of(trained, 2):
            with pytest.raises(
                ModelError, match=f"the model that played the game, network {opponent[0]:#018x}, is gone"
            ):
                repeat_game(stored, record)
            gone += 1
            continue
        comparison = repeat_game(stored, record)
        assert (comparison.difference, comparison.whole) == (None, True)
        models.add(comparison.model)
    assert gone > 0
    against = "the model of checkpoint 3, against the model of checkpoint 2"
    assert models == {"the untrained network", "the model of checkpoint 3", against}


def test_the_models_of_a_game_can_be_given(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = Path(shutil.copytree(trained, tmp_path / "run"))
    newest, theirs, other = (
        shutil.copy(copy / f"checkpoints/00000{i}/model.onnx", tmp_path / f"{i}") for i in (3, 2, 4)
    )
    record = next(game for game in games_of(copy, 4) if (opponent_of(game) or (0, 0))[0] == id_of(copy, 2))
    shutil.rmtree(copy / "checkpoints/000002")
    arguments = [str(copy), str(record.game_id), "--check"]
    assert az_replay(arguments) == 2
    assert "is gone" in capsys.readouterr().err
    assert az_replay([*arguments, "--model", str(theirs)]) == 0
    assert f"repeated with the model of checkpoint 3, against {theirs}" in capsys.readouterr().out
    assert az_replay([*arguments, "--model", str(theirs), "--model", str(newest)]) == 0
    with pytest.raises(ModelError, match=r"the game was played by 0x[0-9a-f]{16} and 0x[0-9a-f]{16}$"):
        repeat_game(StoredRun(copy), record, theirs, other)


def test_an_opponents_search_is_shown_as_such_and_named_in_exports(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = next(record for record in games_of(trained, 4) if opponent_of(record) and (record.flags == OPPONENT).any())
    assert az_replay([str(trained), str(record.game_id)]) == 0
    text = capsys.readouterr().out
    assert text.count("an earlier network's search, of which") == (record.flags == OPPONENT).sum()
    assert text.count("an earlier network's fast search") == (record.flags == OPPONENT | FAST_SEARCH).sum()
    _, seat = opponent_of(record) or (0, 0)
    for player in (0, 1):
        (network,) = set(record.networks[(record.players == player) & (record.flags > 0)].tolist())
        assert exports._network_name(record, player) == f"network {network:#018x}"
        assert bool(record.flags[record.players == player].max() & OPPONENT) == (player == seat)


def test_a_checkpoint_that_is_gone_ends_a_deterministic_run_and_no_other(tmp_path: Path) -> None:
    for deterministic in (True, False):
        path = tmp_path / str(deterministic)
        changes = CHANGES | {"deterministic": deterministic}
        run_until(path, 2, **changes)
        shutil.rmtree(path / "checkpoints/000001")
        if deterministic:
            with pytest.raises(RunError, match="has no checkpoint 1 any more"):
                run(path, **changes)
        else:
            assert run(path, **changes | {"iterations": 3})[-1].iteration == 3


def test_a_collection_has_no_earlier_networks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "games"
    assert az_train(["pig", "--collect-only", "--historical-share", "0.5", "--out", str(out)]) == 2
    assert "historical_share needs checkpoints, and a collection has none: leave it at 0" in capsys.readouterr().err
    assert not out.exists()
