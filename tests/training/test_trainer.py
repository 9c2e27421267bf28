"""The loop: it learns, it goes on where it stopped, and nothing that was finished is lost."""

import contextlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import pytest

import azpy
import sound_games
from azpy.devices import Device
from azpy.errors import ModelError, RunError, SettingsError
from azpy.evaluators.onnx import OnnxEvaluator, network_id
from azpy.learning.export import to_onnx
from azpy.learning.learner import Learner
from azpy.matches.arena import SearchPlayer
from azpy.runs.folder import RunFolder
from azpy.runs.reader import read_checkpoint
from azpy.settings.run import Settings
from azpy.settings.toml import read_config
from azpy.training.events import Finished, Fitted, Matched, Played, Saved, Started
from azpy.training.fitting import window_size
from azpy.training.generations import Generations
from azpy.training.timing import STAGES
from azpy.training.trainer import Trainer
from training_runs import SMALL, opened_rows, run, run_until, same_weights, settings, settings_from


def opened(path: Path) -> RunFolder:
    return RunFolder(path, read_config(path / "config.toml"))


def game_ids(path: Path) -> list[int]:
    with opened(path) as folder:
        return [game.game_id for i in folder.sealed.iterations() for game in folder.sealed.read(i)]


def test_a_run_reports_what_it_does(tmp_path: Path) -> None:
    events = run(tmp_path, match_every=2)
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    assert [event.iteration for event in events if isinstance(event, Saved)] == [1, 2, 3]
    assert {type(event) for event in events} == {Started, Played, Fitted, Saved, Matched, Finished}
    matches = [(event.iteration, event.opponent) for event in events if isinstance(event, Matched)]
    opponents = ["random", "untrained", "mcts-100", "mcts-1000"]
    assert matches == [(2, name) for name in opponents] + [(3, name) for name in opponents]
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows if row["kind"] == "iteration"] == [1, 2, 3]
    iterations = [row for row in rows if row["kind"] == "iteration"]
    for row in iterations:
        assert (row["games"], row["positions"] > 100, row["parity"] < 1e-4) == (20, True, True)
        assert all(0 <= row[name] <= 1 for name in ("cache_hits", "batch_fill", "draws"))
        shares = {name: share for name, share in row.items() if name.startswith("share_")}
        assert shares.keys() == {f"share_{name}" for name in (*STAGES, "other")}
        assert sum(shares.values()) == pytest.approx(1.0)
        assert row["share_fitting"] > 0
    assert iterations[0]["share_growing"] + iterations[0]["share_evaluating"] > 0
    assert iterations[0]["share_matches"] == 0 < iterations[2]["share_matches"]  # those after iteration 2
    assert iterations[1]["share_writing"] > 0  # the checkpoint of iteration 1
    assert [event.advice for event in events if isinstance(event, Saved)] == [row.get("advice") for row in iterations]
    assert "Iteration 3," in (tmp_path / "report.html").read_text()
    assert rows[0]["simulations_per_second"] > rows[0]["evaluations_per_second"] > 0
    for iteration in (1, 2, 3):
        model = tmp_path / f"checkpoints/{iteration:06d}/model.onnx"
        azpy.OnnxEvaluator(model, game=azpy.make_game("tic_tac_toe"))


def test_short_matches_show_a_curve_and_change_no_game(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"deterministic": True, "match_games": 20}
    events = run(tmp_path / "curve", match_every=None, **changes)
    matches = [(event.iteration, event.opponent, event.result.games) for event in events if isinstance(event, Matched)]
    short, last = ["mcts-100", "mcts-1000"], ["random", "untrained", "mcts-100", "mcts-1000"]
    assert matches == [(at, name, 8) for at in (0, 1, 2) for name in short] + [(3, name, 4) for name in last]
    run_until(tmp_path / "parts", 1, match_every=None, **changes)
    ends = [events[-1], run(tmp_path / "parts", match_every=None, **changes)[-1], run(tmp_path / "none", **changes)[-1]]
    assert len({(end.games_hash, end.weights_hash) for end in ends}) == 1
    assert ends[0].games_hash
    rows = [(row["iteration"], row["opponent"]) for row in opened_rows(tmp_path / "parts") if row["kind"] == "match"]
    assert rows == [(at, name) for at, name, _ in matches]


def test_tensorboard_shows_the_metrics_once_each(tmp_path: Path) -> None:
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run(tmp_path, iterations=1, tensorboard=True)
    run(tmp_path, iterations=2, tensorboard=True)
    curves = reading.EventAccumulator(str(tmp_path / "tensorboard"))
    curves.Reload()
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    losses = [(row["iteration"], row["policy_loss"]) for row in rows if row["kind"] == "iteration"]
    shown = [(point.step, point.value) for point in curves.Scalars("iteration/policy_loss")]
    assert [step for step, _ in shown] == [1, 2]
    assert [value for _, value in shown] == pytest.approx([loss for _, loss in losses])
    assert [point.step for point in curves.Scalars("match/random/score")] == [1, 2]
    run_until(tmp_path, 3, iterations=4, tensorboard=True)
    assert '"stopped"' in (tmp_path / "metrics.jsonl").read_text()
    curves.Reload()
    assert not [name for name in curves.Tags()["scalars"] if name.startswith("stopped")]


def test_matches_are_played_with_their_own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    class Noted(SearchPlayer):
        def __init__(self, evaluator: Any, simulations: int, **options: Any) -> None:
            asked.append({"simulations": simulations} | options)
            super().__init__(evaluator, simulations, **options)

    monkeypatch.setattr("azpy.training.matches.SearchPlayer", Noted)
    settings = {"c_puct": 1.0, "fpu": "zero", "match_c_puct": 3.0, "match_fpu": 0.5, "match_lcb": None}
    run(tmp_path, iterations=1, simulations=9, match_solver=False, **settings)
    # The newest network and the untrained one.
    search = {"simulations": 100, "c_puct": 3.0, "fpu": 0.5, "lcb": None, "solver": False, "lookahead": 0}
    assert asked == [search | {"score_to_beat": None}] * 2
    run(tmp_path / "more", iterations=1, simulations=9, match_simulations=21)
    run(tmp_path / "own", iterations=1, simulations=130)
    assert [each["simulations"] for each in asked[2:]] == [21, 21, 130, 130]
    rows = [json.loads(line) for line in (tmp_path / "more/metrics.jsonl").read_text().splitlines()]
    assert [row["simulations"] for row in rows if row["kind"] == "match"] == [21] * 4


def test_a_network_plays_once_it_has_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.training.trainer.advise", lambda *_, **__: "said")
    events = run(tmp_path, iterations=2, deterministic=True)
    # The speed of the first iteration says nothing about the others.
    assert [event.advice for event in events if isinstance(event, Saved)] == [None, "said"]
    states = [read_checkpoint(tmp_path / f"checkpoints/{iteration:06d}").state["budget"] for iteration in (1, 2)]
    assert [state["play_seconds_per_game"] > 0 for state in states] == [False, True]
    with opened(tmp_path) as folder:
        games = [folder.sealed.read(iteration) for iteration in (1, 2)]
    first, second = ({int(network) for game in each for network in game.networks} for each in games)
    assert (first, second - {0}) == ({0}, {network_id(read_checkpoint(tmp_path / "checkpoints/000001").onnx)})


def test_a_run_that_is_done_is_done(tmp_path: Path) -> None:
    run(tmp_path, iterations=1)
    before = (tmp_path / "metrics.jsonl").read_text()
    events = run(tmp_path, iterations=1)
    assert [type(event) for event in events] == [Started, Finished]
    assert (tmp_path / "metrics.jsonl").read_text() == before


def test_a_run_in_parts_goes_on_bit_for_bit(tmp_path: Path) -> None:
    # A small window, so that what is let go of must be the same too.
    changes: dict[str, Any] = {"deterministic": True, "evaluations": 8, "window_min": 150, "symmetries": False}
    run(tmp_path / "straight", **changes)
    run_until(tmp_path / "parts", 1, **changes)
    run_until(tmp_path / "parts", 2, **changes, slots=5, pipelines=1)
    run(tmp_path / "parts", **changes)
    assert same_weights(tmp_path / "straight", tmp_path / "parts", 3)
    with opened(tmp_path / "straight") as one, opened(tmp_path / "parts") as other:
        for iteration in (1, 2, 3):
            games = one.sealed.read(iteration)
            assert [game.to_bytes() for game in games] == [game.to_bytes() for game in other.sealed.read(iteration)]


def test_batch_dependent_rows_warn_or_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(azpy.OnnxEvaluator, "row_exact", False)
    started = run(tmp_path / "free", iterations=1)[0]
    assert ["depends on the rest of its batch" in notice for notice in started.notices] == [True]
    with pytest.raises(ModelError, match=r"the run cannot be deterministic, because .*: leave out --deterministic$"):
        run(tmp_path / "exact", iterations=1, deterministic=True)


def test_a_deterministic_iteration_is_its_own_games(tmp_path: Path) -> None:
    run(tmp_path / "straight", deterministic=True, iterations=1)
    # Games of a later iteration, in play when those of this one were lost.
    with RunFolder(tmp_path / "run", vars(settings(deterministic=True, iterations=1))) as folder:
        with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), first_game=60, games=7) as play:
            for record in play:
                folder.append(record)
        later = {record.game_id for record in folder.journal}
    run(tmp_path / "run", deterministic=True, iterations=1)
    assert game_ids(tmp_path / "run") == list(range(20))
    assert same_weights(tmp_path / "straight", tmp_path / "run", 1)
    with opened(tmp_path / "run") as folder:
        assert {record.game_id for record in folder.journal} == later == set(range(60, 67))


@pytest.mark.parametrize(
    ("game", "options", "text"),
    [
        ("tic_tac_toe", {"opening_plies": 10**9}, "none of the 3 games has a searched position"),
        ("connect_four(width=3,height=2,k=2)", {}, r"breaks the rules as they are now \(.*\): choose another folder"),
    ],
)
def test_games_to_learn_nothing_from_end_the_run(game: str, options: Any, text: str, tmp_path: Path) -> None:
    with (
        RunFolder(tmp_path, vars(settings())) as folder,
        azpy.SelfPlay(game, azpy.UniformEvaluator(), simulations=8, games=3, **options) as play,
    ):
        folder.append(*play)
        folder.seal(1)
    with pytest.raises(RunError, match=text):
        run(tmp_path)


def test_closing_lets_go_of_the_folder_if_self_play_fails(tmp_path: Path) -> None:
    fails = Mock(side_effect=RuntimeError("on purpose"))
    fleet = Mock(spec_set=["unfinished", "rest", "close"], unfinished=(), rest=fails, close=Mock(wraps=fails))
    for under_way in (False, True):
        trainer = Trainer(settings(), tmp_path)
        if under_way:
            next(trainer.run())
        trainer.fleet = fleet
        with pytest.raises(RuntimeError, match="on purpose"):
            trainer.close()
        opened(tmp_path).close()
    assert [list(called.kwargs) for called in fleet.close.call_args_list] == [["ended"], ["ended"]]


def test_a_wrong_export_does_not_get_to_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exported: list[bytes] = []

    def stale(network: Any) -> bytes:
        exported.append(to_onnx(network))
        return exported[0]

    monkeypatch.setattr("azpy.training.generations.to_onnx", stale)
    with pytest.raises(ModelError, match="differs from the network"):
        run(tmp_path)
    with opened(tmp_path) as folder:
        assert folder.checkpoints() == []
        assert folder.sealed.iterations() == [1]


def test_rows_that_depend_on_a_full_batch_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = OnnxEvaluator._evaluate

    def rounded(self: OnnxEvaluator, observations: Any) -> Any:
        logits, values = exact(self, observations)
        return logits, np.nextafter(values, np.float32(2)) if len(values) >= 96 else values

    monkeypatch.setattr(OnnxEvaluator, "_evaluate", rounded)
    for slots in (24, 23):  # 96 and 92 rows in a batch
        changes = {"deterministic": True, "slots": slots, "pipelines": 1, "eval_batch": 4, "iterations": 1}
        with pytest.raises(ModelError, match="depends on the rest") if slots == 24 else contextlib.nullcontext():
            run(tmp_path / str(slots), **changes)


def test_training_makes_a_player_that_beats_the_untrained_one(tmp_path: Path) -> None:
    changes = {"games_per_iteration": 100, "iterations": 6, "simulations": 25, "final_match_games": 60}
    events = run(tmp_path, **changes)
    losses = [
        event.metrics["policy_loss"] + event.metrics["value_loss"] for event in events if isinstance(event, Saved)
    ]
    assert losses[-1] < losses[0]
    scores = {event.opponent: event.result.score for event in events if isinstance(event, Matched)}
    assert scores["random"] > 0.85
    assert scores["untrained"] > 0.55


def test_the_untrained_player_has_the_first_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[bytes] = []
    make = Generations.evaluator_for_matches

    def noted(self: Generations, model: bytes, threads: int) -> Any:
        met.append(model)
        return make(self, model, threads)

    monkeypatch.setattr(Generations, "evaluator_for_matches", noted)
    run(tmp_path / "run", iterations=1)
    run(tmp_path / "run", iterations=2)  # in a trainer that goes on
    start = azpy.make_game("tic_tac_toe")
    begun = to_onnx(Learner(start, settings().network, seed=settings().seed).averaged)
    newest = [(tmp_path / f"run/checkpoints/{i:06d}/model.onnx").read_bytes() for i in (1, 2)]
    assert met == [newest[0], begun, newest[1], begun]


def test_an_option_self_play_refuses_is_a_settings_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="self-play cannot run with these settings"):
        run(tmp_path, deterministic=True, games_per_iteration=2**70)


def test_rows_are_those_that_the_settings_ask_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = list[dict[str, Any]]()

    class Noting:
        def __init__(self, start: azpy.State, **options: Any) -> None:
            self._inner = azpy.ReplayBuffer(start, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def sample(self, rows: int, **options: Any) -> Any:
            drawn.append(options)
            return self._inner.sample(rows, **options)

    monkeypatch.setattr("azpy._core.ReplayBuffer", Noting)
    asked: dict[str, Any] = {"root_value_weight": 0.0, "symmetries": False}
    run(tmp_path / "run", iterations=1, **asked)
    assert all(asked.items() <= options.items() for options in drawn if "root_value_weight" in options)
    assert any("root_value_weight" in options for options in drawn)


def test_the_window_grows_by_its_settings() -> None:
    chosen = settings(window_min=1000, window_share=0.4, window_max=50_000)
    assert [window_size(chosen, seen) for seen in (10, 1000, 16_000, 10**7)] == [1000, 1000, 6400, 50_000]


def test_a_position_is_drawn_as_often_as_asked(tmp_path: Path) -> None:
    run(tmp_path, iterations=7, games_per_iteration=2, batch_size=64, passes=2.0)
    rows = [row for row in map(json.loads, (tmp_path / "metrics.jsonl").open()) if row["kind"] == "iteration"]
    learned = sum(row["positions"] for row in rows)
    assert sum(row["steps"] for row in rows) == round(learned * 2 / 64)
    assert 0 in {row["steps"] for row in rows}


def test_every_setting_is_in_the_folder(tmp_path: Path) -> None:
    run_until(tmp_path, 1)
    assert Settings(**read_config(tmp_path / "config.toml")) == settings()
    made_with = tomllib.loads((tmp_path / "config.toml").read_text())["made_with"]
    assert made_with["numpy"] == np.__version__
    assert made_with.keys() == {"format", "azpy", "python", "numpy", "torch", "onnxruntime", "cores", "run_id"}


def test_a_run_may_go_on_on_another_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` chooses once, says why, and is free to change when a run goes on."""
    asked: list[str] = []

    class Noted(azpy.OnnxEvaluator):
        def __init__(self, model: Any, device: Device, **options: Any) -> None:
            asked.append(str(device))
            super().__init__(model, device, **options)

    monkeypatch.setattr("azpy.evaluators.choice.OnnxEvaluator", Noted)
    run(tmp_path, iterations=1, precision="fp32")  # int8 plays where it is faster, and that differs from time to time
    assert set(asked) == {"cpu"}
    asked.clear()
    started = run(tmp_path, iterations=2, device="auto", precision="fp32")[0]
    device = asked[1]
    assert asked[0] == "auto"
    assert device in {"cpu", "cuda:0", "webgpu"}
    assert set(asked[1:]) == {device}
    assert isinstance(started, Started)
    if device == "cpu":
        assert started.evaluator.startswith("CPU, fp32")
        assert sum(notice.startswith("CUDA cannot be used: ") for notice in started.notices) == 1


class Pruned(Exception):  # noqa: N818
    """As Optuna's `TrialPruned`: an exception that is no error of azpy."""


def test_a_run_from_python_goes_on_as_the_command_does(tmp_path: Path) -> None:
    given = {name: value for name, value in (SMALL | {"iterations": 2}).items() if name != "game"}
    path, rows = str(tmp_path / "run"), list[dict[str, Any]]()

    def prune(row: dict[str, Any]) -> None:
        rows.append(row)
        raise Pruned

    with pytest.raises(Pruned):
        azpy.train("tic_tac_toe", out=path, on_iteration=prune, **given)
    stopped = azpy.load_run(path)
    assert [row["iteration"] for row in stopped.iterations()] == [1]
    flags = [text for name, value in given.items() for text in ("--" + name.replace("_", "-"), str(value))]
    assert stopped.settings == settings_from(["tic_tac_toe", *flags])[0]
    with opened(tmp_path / "run") as folder:  # nobody holds it
        assert folder.metrics()[-1]["kind"] == "stopped"
    run = azpy.train("tic_tac_toe", out=path, on_iteration=rows.append)
    assert [row["iteration"] for row in rows] == [1, 2]
    shown = [{name: row[name] for name in row if name not in ("kind", "advice")} for row in run.iterations()]
    assert shown == rows
    assert {row["opponent"] for row in run.matches()} >= {"random", "mcts-1000"}
    assert azpy.Search(run.evaluator, simulations=20).run(run.start).action is not None


def test_a_class_of_a_module_can_be_trained(tmp_path: Path) -> None:
    class Inside(sound_games.Nim):
        pass

    short: dict[str, Any] = {**SMALL, "games_per_iteration": 4, "out": str(tmp_path / "run")}
    del short["game"]
    run = azpy.train(sound_games.Nim, **short, on_iteration=lambda row: row["iteration"] == 1)
    assert (run.checkpoints(), run.matches()) == ([1], [])
    assert (run.settings.game, run.start.num_actions) == ("sound_games:Nim", 9)
    for game, why in ((Inside, "defined inside a function"), (3, "expected a game's name or a class")):
        with pytest.raises(SettingsError, match=why):
            azpy.train(cast("Any", game), **short)
    with pytest.raises(SettingsError, match=r"simulation: unknown setting; did you mean simulations\?"):
        azpy.train("tic_tac_toe", simulation=3)
    with pytest.raises(SettingsError, match="network must be"):
        azpy.train("tic_tac_toe", network=3)


def test_the_docs_explain_every_figure_of_a_run(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs/reference/formats.md"
    if not page.exists():
        pytest.skip("needs the source tree")
    section = page.read_text("utf-8").partition("### The figures of metrics.jsonl")[2].partition("\n### ")[0]
    for kind in ("iteration", "match"):
        table = section.partition(f"\n`{kind}`,")[2].partition("\n\n")[2].partition("\n\n")[0]
        named = {name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])}
        run(tmp_path / "run", precision="int8", match_every=1, iterations=2)
        rows = [row for row in opened_rows(tmp_path / "run") if row["kind"] == kind]
        assert rows
        assert {name for row in rows for name in row} - {"kind", "iteration", "seconds"} <= named


def test_a_value_of_three_classes_plays_in_int8(tmp_path: Path) -> None:
    changes = {"network": "2x16+wdl", "value_smoothing": 0.15, "decisive_weight": 3.0}
    run(tmp_path / "run", **changes, precision="int8", iterations=2)
    assert read_checkpoint(tmp_path / "run/checkpoints/000001").int8 is not None
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    for row in (row for row in rows if row["kind"] == "iteration"):
        assert sum(row[f"predicted_{what}"] for what in ("wins", "draws", "losses")) == pytest.approx(1, abs=1e-5)
        assert 0 <= row["target_draws"] <= 1
    of_run, exported = azpy.TorchEvaluator(tmp_path / "run"), azpy.OnnxEvaluator(tmp_path / "run")
    row = azpy.make_game("tic_tac_toe").observation()[None]
    assert of_run.evaluate_batch(row)[1] == pytest.approx(exported.evaluate_batch(row)[1], abs=1e-5)
