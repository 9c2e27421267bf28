"""az-train --collect-only: games for people who train elsewhere; no torch, nothing twice, nothing lost."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.cli.train import main
from azpy.errors import ModelError
from azpy.fleet.here import Here
from azpy.fleet.table import ENDLESS
from azpy.runs.folder import RunFolder
from azpy.runs.reader import StoredRun, check_rules
from azpy.settings import Settings
from azpy.training.collector import Collector
from azpy.training.events import Finished, Played, Saved, Started
from azpy.training.trainer import Trainer
from models import make_model
from running import program

SMALL: dict[str, Any] = {"simulations": 8, "slots": 6, "eval_batch": 2, "games_per_iteration": 15, "iterations": 2}
FLAGS = [item for name, value in SMALL.items() for item in (f"--{name.replace('_', '-')}", str(value))]


def settings(**changes: Any) -> Settings:
    return Settings(**({"game": "tic_tac_toe"} | SMALL | changes))


def collect(path: Path, model: Path | None = None, **changes: Any) -> list[Any]:
    with Collector(settings(**changes), path, model) as collector:
        return list(collector.run())


def sealed(path: Path) -> list[tuple[int, azpy.GameRecord]]:
    run = StoredRun(path)
    return list(run.games(run.sealed_iterations()))


def as_bytes(path: Path) -> list[bytes]:
    return [record.to_bytes() for _, record in sealed(path)]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(make_model(weight=0.5))
    return path


def id_of(model: Path) -> int:
    return azpy.OnnxEvaluator(model).network_id


def test_iterations_are_sealed_with_a_row_of_metrics_each(tmp_path: Path, model: Path) -> None:
    events = collect(tmp_path / "run", model)
    assert isinstance(events[0], Started)
    assert [event.iteration for event in events if isinstance(event, Saved)] == [1, 2]
    assert isinstance(events[-1], Finished)
    assert events[-1].collected == 30
    run, games = StoredRun(tmp_path / "run"), sealed(tmp_path / "run")
    check_rules(run.start, (record for _, record in games))
    assert [iteration for iteration, _ in games] == [1] * 15 + [2] * 15
    assert {network for _, record in games for network in record.networks.tolist()} == {id_of(model)}
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    counted = [(row["kind"], row["iteration"], row["games"]) for row in rows]
    assert counted == [("collected", 1, 15), ("collected", 2, 15)]
    assert all(f"{id_of(model):#018x}" in row["model"] for row in rows)
    assert not any((tmp_path / "run/checkpoints").iterdir())


@pytest.mark.parametrize("with_model", [False, True])
def test_it_loads_no_torch_and_no_onnx_runtime_without_a_model(tmp_path: Path, model: Path, with_model: bool) -> None:
    hidden = ("torch",) if with_model else ("torch", "onnx", "onnxruntime", "safetensors")
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({hidden})); from azpy.cli.train import main; sys.exit(main())"
    )
    given = ["--model", str(model)] if with_model else []
    done = program(script, "tic_tac_toe", "--collect-only", *given, *FLAGS, cwd=tmp_path)
    assert (done.code, done.errors) == (0, "")
    player = f"{model} (network {id_of(model):#018x})" if with_model else "no network: even priors and value 0"
    assert f"played with {player}" in done.out
    assert "done: 30 games in 2 iterations" in done.out


def test_the_same_command_goes_on_and_plays_no_game_twice(tmp_path: Path) -> None:
    path = tmp_path / "run"
    for stop_after in (1, 3, 5):
        with Collector(settings(iterations=4), path) as collector:
            for count, _ in enumerate(event for event in collector.run() if isinstance(event, Played | Saved)):
                if count == stop_after:
                    break
    events = collect(path, iterations=6)
    assert [event.iteration for event in events if isinstance(event, Saved)][-1] == 6
    games = sealed(path)
    # At least: an interruption keeps all games that are finished, those beyond the iteration's included.
    assert len({record.game_id for _, record in games}) == len(games) == events[-1].collected >= 90
    assert [type(event) for event in collect(path, iterations=6)] == [Started, Finished]


def test_all_ids_below_the_highest_are_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Games end out of order, and a head that died may have left gaps."""
    take, highest = Here.take, ENDLESS - 1

    def taken(fleet: Here, most: int) -> list[azpy.GameRecord]:
        found = take(fleet, most)
        assert found or fleet.self_play.in_play[0], "no id is left to play"
        return found

    monkeypatch.setattr(Here, "take", taken)
    with RunFolder(tmp_path / "run", vars(settings())) as folder:
        for number in (3, highest, 4):
            with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), first_game=number, games=1) as play:
                folder.append(next(play))
        folder.seal(1, [3])
    collect(tmp_path / "run")
    collect(tmp_path / "run", iterations=4)
    ids = [record.game_id for _, record in sealed(tmp_path / "run")]
    assert len(set(ids)) == len(ids) == 1 + 3 * 15
    assert {*range(15), highest} < set(ids)
    assert max(set(ids) - {highest}) < 100


def test_a_deterministic_collection_is_the_same_in_any_layout(tmp_path: Path, model: Path) -> None:
    straight = tmp_path / "straight"
    collect(straight, model, deterministic=True)
    collect(tmp_path / "other", model, deterministic=True, slots=3, pipelines=1)
    with Collector(settings(deterministic=True), tmp_path / "parts", model) as collector:
        for event in collector.run():
            if isinstance(event, Played) and event.iteration == 2:
                break
    collect(tmp_path / "parts", model, deterministic=True)
    command = (straight / "config.toml").read_text().splitlines()[1].removeprefix("#   ")
    assert main(shlex.split(command)[1:]) == 0  # in a folder beside it
    others = [as_bytes(tmp_path / name) for name in ("other", "parts", "straight-again")]
    assert others == [as_bytes(straight)] * 3
    assert [record.game_id for _, record in sealed(straight)] == list(range(30))


@pytest.mark.parametrize("deterministic", [False, True])
def test_each_iteration_is_played_by_the_model_of_its_time(deterministic: bool, tmp_path: Path, model: Path) -> None:
    old, new = id_of(model), make_model(weight=1.5)
    # More games than may wait to be fetched when the model is exchanged.
    chosen = settings(iterations=3, games_per_iteration=100, deterministic=deterministic)
    with Collector(chosen, tmp_path / "run", model) as collector:
        for event in collector.run():
            if isinstance(event, Saved) and event.iteration == 1:
                (tmp_path / "new").write_bytes(new)
                (tmp_path / "new").rename(model)
    played = [[record.networks.tolist() for i, record in sealed(tmp_path / "run") if i == n] for n in (1, 2, 3)]
    networks = [{network for game in games for network in game} for games in played]
    assert networks[0] == {old}
    assert id_of(model) in networks[1]
    # Games that were in play when the model was exchanged are ended by the new one, some of them after iteration 2.
    assert {game[-1] for game in played[2]} == {id_of(model)}
    assert not deterministic or networks[1:] == [{id_of(model)}, {id_of(model)}]


def test_a_model_that_cannot_play_ends_the_collection(tmp_path: Path, model: Path) -> None:
    path, good = tmp_path / "run", model.read_bytes()
    for bad, text in (
        (good[: len(good) // 2], "is not a usable ONNX"),
        (make_model(shape=("batch", 2, 3, 4)), "not fit"),
    ):
        with Collector(settings(iterations=9), path, model) as collector:
            events = collector.run()
            while not isinstance(next(events), Saved):
                pass
            model.write_bytes(bad)
            with pytest.raises(ModelError, match=text):
                list(events)
        model.write_bytes(good)
    assert collect(path, model, iterations=3)[-1].collected >= 45


def test_a_model_is_opened_once_for_all_devices(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[int]()

    class Noted(azpy.OnnxEvaluator):
        def __init__(self, data: bytes, device: str, **options: Any) -> None:
            super().__init__(data, "cpu", **options)
            self.notes = ("CUDA cannot be used: no driver",)
            opened.append(self.network_id)
            if len(opened) < 9:  # as another program does, again and again
                model.write_bytes(make_model(weight=1.0 + len(opened)))

    monkeypatch.setattr("azpy.training.collector.OnnxEvaluator", Noted)
    first = id_of(model)
    with Collector(settings(device="cuda", devices="0,1"), tmp_path / "run", model) as collector:
        assert opened == [first, first]
        started = next(collector.run())
    assert isinstance(started, Started)
    assert started.notices == ("CUDA cannot be used: no driver",)
    opened[:] = [0] * 9
    collect(tmp_path / "other", model, iterations=3)
    assert len(opened) == 10  # and not for each iteration


def test_time_and_evaluations_end_a_collection(tmp_path: Path) -> None:
    events = collect(tmp_path / "timed", iterations=None, minutes=0.005, games_per_iteration=10**9)
    assert [event.iteration for event in events if isinstance(event, Saved)] == [1]
    assert events[-1].collected == len(sealed(tmp_path / "timed")) > 0

    def counts(total: int) -> list[float]:
        events = collect(tmp_path / "run", iterations=40, total_evaluations=total)
        return [event.metrics["evaluations"] for event in events if isinstance(event, Saved)]

    # Games go on over the end of an iteration, so how many evaluations an iteration makes varies.
    first = counts(1)
    assert len(first) == 1
    total = int(3 * first[0])
    found = first + counts(total)
    assert sum(found[:-1]) < total <= sum(found)
    assert 1 < len(found) < 40
    assert counts(total) == []


def test_training_goes_on_from_collected_games_and_not_back(tmp_path: Path) -> None:
    path = tmp_path / "run"
    chosen: dict[str, Any] = {"network": "1x8", "final_match_games": 2}
    collect(path, **chosen)
    before, metrics = as_bytes(path), path / "metrics.jsonl"
    rows = [json.loads(line) | {"seconds": 1e6} for line in metrics.read_text().splitlines()]
    metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Trainer(settings(**chosen), path) as trainer:
        events = list(trainer.run())
    assert isinstance(events[0], Started)
    assert events[0].seconds < 1e5  # those of collecting are not of training
    kept = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [row for row in kept if row["kind"] == "collected"] == rows
    assert [event.iteration for event in events if isinstance(event, Saved)] == [1, 2]
    assert not [event for event in events if isinstance(event, Played)]
    assert as_bytes(path) == before
    out = ["--network", "1x8", "--out", str(path)]
    assert main(["tic_tac_toe", "--collect-only", *FLAGS, *out]) == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["tic_tac_toe", "--model", "model.onnx"], "--model goes with --collect-only"),
        (["tic_tac_toe", "--collect-only", "--model", "none.onnx"], "none.onnx cannot be read"),
        (["tic_tac_toe", "--collect-only", "--model", "text.onnx"], "text.onnx: model is not a usable ONNX model"),
        (["pig", "--collect-only", "--model", "model.onnx"], "model.onnx: model does not fit the game"),
        (["tic_tac_toe", "--out="], "--out is empty: give a folder, or leave it out for runs/GAME"),
        (["chequers", "--collect-only"], "unknown game 'chequers'"),
        (["tic_tac_toe", "--collect-only", "--out", "occupied"], "occupied is not a run folder"),
    ],
)
def test_bad_input_is_one_line_and_makes_nothing(
    arguments: list[str], text: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_line: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.onnx").write_text("not a model")
    Path("occupied").mkdir()
    Path("occupied/file").write_text("")
    before = sorted(os.walk("."))
    assert text in one_line(main, arguments, "az-train: ")
    assert sorted(os.walk(".")) == before
    assert model.exists()
