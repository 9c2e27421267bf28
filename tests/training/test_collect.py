"""az-train --collect-only: games for people who train elsewhere; no torch, nothing twice, nothing lost."""

import json
import os
import shlex
import subprocess
import sys
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


def test_without_a_model_the_search_plays_alone(tmp_path: Path) -> None:
    collect(tmp_path / "run")
    for _, record in sealed(tmp_path / "run"):
        assert not record.networks.any()
        begin, end = record.offsets[0], record.offsets[1]
        assert record.priors[begin:end] == pytest.approx(1 / 9)


def test_it_needs_no_torch_and_without_a_model_no_onnx_runtime(tmp_path: Path) -> None:
    hidden = ("torch", "onnx", "onnxruntime", "safetensors")
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({hidden}))\n"
        "from azpy.cli.train import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "tic_tac_toe", "--collect-only", *FLAGS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "played by no network: even priors and value 0" in done.stdout
    assert "done: 30 games in 2 iterations" in done.stdout


def test_with_a_model_it_loads_no_torch(tmp_path: Path, model: Path) -> None:
    script = "import sys; sys.modules['torch'] = None\nfrom azpy.cli.train import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "tic_tac_toe", "--collect-only", "--model", str(model), *FLAGS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"played by {model} (network {id_of(model):#018x})" in done.stdout


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


def test_ids_that_no_game_has_are_played_and_no_other(tmp_path: Path) -> None:
    # Games end out of order: a head that died may have left gaps.
    with RunFolder(tmp_path / "run", vars(settings())) as folder:
        for iteration, game in ((1, 9), (2, 3)):
            folder.append(game_with_id(game))
            folder.seal(iteration)
    collect(tmp_path / "run", iterations=4)
    ids = [record.game_id for _, record in sealed(tmp_path / "run")]
    assert len(set(ids)) == len(ids)
    assert set(range(15)) <= set(ids)


def game_with_id(number: int) -> azpy.GameRecord:
    with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), first_game=number, games=1) as play:
        return next(play)


@pytest.fixture
def never_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails where self-play would wait for ever: it has no game, and no id is left to play."""
    take = Here.take

    def taken(fleet: Here, most: int) -> list[azpy.GameRecord]:
        found = take(fleet, most)
        assert found or fleet.self_play.in_play[0], "no id is left to play"
        return found

    monkeypatch.setattr(Here, "take", taken)


@pytest.mark.usefixtures("never_idle")
def test_a_game_with_the_highest_id_leaves_ids_to_play(tmp_path: Path) -> None:
    """After such a game no id was left, in each run after it too."""
    number = ENDLESS - 1
    with RunFolder(tmp_path / "run", vars(settings())) as folder:
        folder.append(*map(game_with_id, (3, number, 4)))
    collect(tmp_path / "run")
    collect(tmp_path / "run", iterations=3)
    ids = [record.game_id for _, record in sealed(tmp_path / "run")]
    assert {3, 4, number} < set(ids)
    assert len(set(ids)) == len(ids) == 45
    assert max(set(ids) - {number}) < 100


def test_a_deterministic_collection_is_the_same_games_in_any_layout_and_in_parts(tmp_path: Path, model: Path) -> None:
    collect(tmp_path / "straight", model, deterministic=True)
    collect(tmp_path / "other", model, deterministic=True, slots=3, pipelines=1)
    with Collector(settings(deterministic=True), tmp_path / "parts", model) as collector:
        for event in collector.run():
            if isinstance(event, Played) and event.iteration == 2:
                break
    collect(tmp_path / "parts", model, deterministic=True)
    assert as_bytes(tmp_path / "straight") == as_bytes(tmp_path / "other") == as_bytes(tmp_path / "parts")
    assert [record.game_id for _, record in sealed(tmp_path / "parts")] == list(range(30))


@pytest.mark.parametrize("deterministic", [False, True])
def test_the_next_iteration_is_played_by_the_model_that_the_file_holds_then(
    deterministic: bool, tmp_path: Path, model: Path
) -> None:
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


def test_a_model_that_cannot_play_ends_it_in_one_line_and_a_good_one_goes_on(tmp_path: Path, model: Path) -> None:
    path, good = tmp_path / "run", model.read_bytes()

    def run_and_damage(data: bytes) -> None:
        with Collector(settings(iterations=9), path, model) as collector:
            for event in collector.run():
                if isinstance(event, Saved):
                    model.write_bytes(data)

    with pytest.raises(ModelError, match="is no usable ONNX model"):
        run_and_damage(good[: len(good) // 2])
    model.write_bytes(good)
    with pytest.raises(ModelError, match="does not fit the game"):
        run_and_damage(make_model(shape=("batch", 2, 3, 4)))
    model.write_bytes(good)
    assert collect(path, model, iterations=3)[-1].collected >= 45


def test_a_model_is_opened_once_for_all_devices_whatever_becomes_of_its_file(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_timed_collection_seals_what_it_has(tmp_path: Path) -> None:
    events = collect(tmp_path / "run", iterations=None, minutes=0.005, games_per_iteration=10**9)
    assert [event.iteration for event in events if isinstance(event, Saved)] == [1]
    assert events[-1].collected == len(sealed(tmp_path / "run")) > 0


def test_a_collection_ends_after_so_many_evaluations(tmp_path: Path) -> None:
    def counts(**length: Any) -> list[float]:
        events = collect(tmp_path / "run", **length)
        return [event.metrics["evaluations"] for event in events if isinstance(event, Saved)]

    # Games go on over the end of an iteration, so how many evaluations an iteration makes varies.
    first = counts(iterations=40, total_evaluations=1)
    assert len(first) == 1
    total = int(3 * first[0])
    found = first + counts(iterations=40, total_evaluations=total)
    assert sum(found[:-1]) < total <= sum(found)
    assert 1 < len(found) < 40
    assert counts(iterations=None, total_evaluations=total) == []


def test_training_can_go_on_from_collected_games_but_not_the_other_way(tmp_path: Path) -> None:
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
        (["tic_tac_toe", "--collect-only", "--model", "text.onnx"], "text.onnx: model is no usable ONNX model"),
        (["pig", "--collect-only", "--model", "model.onnx"], "model.onnx: model does not fit the game"),
        (["chequers", "--collect-only"], 'unknown game "chequers"'),
        (["tic_tac_toe", "--collect-only", "--out", "occupied"], "occupied is not empty and has no config.toml"),
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


def test_the_command_in_its_config_collects_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    collect(Path("run"), deterministic=True)
    command = Path("run/config.toml").read_text().splitlines()[1].removeprefix("#   ")
    assert main(shlex.split(command)[1:]) == 0
    assert as_bytes(Path("run-again")) == as_bytes(Path("run"))
    assert not StoredRun("run-again").checkpoints()


def test_a_changed_setting_is_said_and_stays_in_the_metrics(tmp_path: Path) -> None:
    collect(tmp_path / "run", iterations=1)
    for _ in range(2):
        collect(tmp_path / "run", simulations=16, slots=4)
    with Collector(settings(simulations=20), tmp_path / "run") as collector:
        started = next(collector.run())
    assert isinstance(started, Started)
    assert "simulations was 16, is now 20 from iteration 3 on" in started.notices
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    changes = [(row["iteration"], row["changed"]) for row in rows if row["kind"] == "settings"]
    assert changes[0] == (1, {"simulations": [8, 16], "slots": [6, 4], "iterations": [1, 2]})
    assert changes[1] == (2, {"simulations": [16, 20], "slots": [4, 6]})


def test_events_keep_the_figures_they_came_with(tmp_path: Path) -> None:
    played = [event for event in collect(tmp_path / "run") if isinstance(event, Played)]
    assert all("seconds" not in event.metrics for event in played)  # of the row, which is written later
