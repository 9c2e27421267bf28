"""az-bench as a user meets it: figures that can be true, one clear line for what is wrong."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.cli.bench import main
from azpy.errors import warn_once
from azpy.playing import benchmarks
from azpy.playing.benchmarks import Figure
from azpy.settings.run import Settings, auto_eval_batch

TINY = ["--seconds", "0.01", "--repeats", "2"]
SMALL_PLAY = ["--slots", "8", "--simulations", "8", "--network", "1x8"]


def az_bench(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments, *TINY])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def figures(out: str, what: str) -> list[dict[str, Any]]:
    return [figure for figure in json.loads(out)["figures"] if figure["benchmark"] == what]


def test_json_on_stdout_is_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = az_bench(capsys, "search", "games", "--json", "-")
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert report.keys() == {"machine", "settings", "figures"}
    assert {"cpu", "cores", "python", "azpy", "numpy"} <= report["machine"].keys()
    assert report["machine"]["cores"] >= 1
    assert report["settings"]["seconds"] == 0.01
    for figure in report["figures"]:
        assert 0 < figure["min"] <= figure["median"] <= figure["max"]
        assert figure["min"] == min(figure["runs"])
    units = [figure["unit"] for figure in figures(out, "search")]
    assert units == ["simulations/s", "leaves/s", "bytes/simulation"]
    names = {figure["name"].partition(",")[0] for figure in figures(out, "games")}
    assert names == set(azpy.list_games())


def test_a_table_and_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    code, out, err = az_bench(capsys, "games", "--game", "tic_tac_toe", "--json", str(file))
    assert (code, err) == (0, "")
    assert "tic_tac_toe, random games" in out
    assert "plies/s" in out
    games, plies = figures(file.read_text(), "games")
    assert (games["unit"], plies["unit"]) == ("games/s", "plies/s")
    assert 5 <= plies["median"] / games["median"] <= 9


def test_a_model_is_measured_alone_and_in_self_play(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    network, export = (pytest.importorskip(f"azpy.learning.{name}") for name in ("network", "export"))
    start = azpy.make_game("tic_tac_toe")
    model = tmp_path / "model.onnx"
    model.write_bytes(export.to_onnx(network.Network(start.obs_shape, start.num_actions, "1x8")))
    given = ["--game", "tic_tac_toe", "--model", str(model), *SMALL_PLAY, "--json", "-"]
    code, out, err = az_bench(capsys, "evaluator", "selfplay", *given)
    assert (code, err) == (0, "")
    used = json.loads(out)["settings"]
    assert used["network"] == str(model)
    assert (used["slots"], used["pipelines"], used["simulations"]) == (8, 2, 8)
    assert used["eval_batch"] == auto_eval_batch(8, 2)  # as az-train plays with such slots
    alone = figures(out, "evaluator")
    assert [figure["name"] for figure in alone] == [f"batch {rows}" for rows in benchmarks.EVALUATOR_ROWS]
    assert all(0 < figure["ratio"] <= 1 for figure in alone)
    assert max(figure["ratio_max"] for figure in alone) == 1
    play = figures(out, "selfplay")
    assert [(figure["name"].partition(",")[0], figure["unit"]) for figure in play] == [
        ("the model alone", "positions/s"),
        ("the evaluator alone", "positions/s"),
        *[("self-play", unit) for unit in ("positions/s", "simulations/s", "%", "%")] * 2,
    ]
    assert all(0 < figure["median"] <= 100 for figure in play if figure["unit"] == "%")
    for figure, ceiling in zip(play[1:3], play[:2], strict=True):
        assert figure["of"] == ceiling["name"].partition(",")[0]
        assert figure["ratio_min"] > 0
        assert figure["runs"][0] / ceiling["runs"][0] <= figure["ratio_max"] + 1e-9


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["search", "--game", "go_fish"], "unknown game 'go_fish'"),
        (["selfplay", "--score-to-beat", "0.5"], "score_to_beat is for games of one player, but"),
        (
            ["selfplay", "--game", "leduc_poker", "--resign-at", "0.5"],
            "zero sum who see everything, but leduc_poker hides",
        ),
        (["speed"], "WHAT: invalid choice: 'speed' (choose from"),
        ([], "WHAT is missing: expected what to measure: search, games"),
        (["selfplay", "--slots", "1", "--pipelines", "2"], "slots must be at least the 2 pipelines, got 1"),
        (["selfplay", "--eval-batch", "0"], "eval_batch must be at least 1, got 0"),
        (["selfplay", "--eval-batch", "many"], "eval_batch must be a whole number or auto, got 'many'"),
        (["evaluator", "--model", "nowhere.onnx"], "nowhere.onnx"),
        (["games", "--repeats", "0"], "repeats must be at least 1, got 0"),
        (["games", "--seconds", "nan"], "--seconds must be a finite number, got nan"),
        (["games", "--game", "pig", "--seconds", "0.001", "--json", "no/such/file"], "no/such/file cannot be used: No"),
    ],
)
def test_bad_input_is_one_line(one_line: Any, arguments: list[str], text: str) -> None:
    assert text in one_line(main, arguments, "az-bench: ")


def test_ctrl_c_ends_quietly_even_if_a_library_raises(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            try:
                raise AttributeError("a consequence")
            except AttributeError as error:
                raise RuntimeError("cannot export") from error

    monkeypatch.setattr(benchmarks, "measure_search", interrupted)
    code, out, err = az_bench(capsys, "search")
    assert (code, err) == (130, "")
    assert out.endswith("stopped\n")
    monkeypatch.setattr(benchmarks, "measure_search", lambda *_, **__: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        main(["search"])


def test_without_torch_the_error_names_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setitem(sys.modules, "torch", None)
    for module in ("azpy.learning", "azpy.learning.export"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    code, _, err = az_bench(capsys, "evaluator")
    assert code == 2
    assert "torch is not installed" in err
    assert "or give a model with --model FILE" in err


def test_the_gpu_s_table_is_made_on_a_cpu_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = Path(__file__).parents[2] / "benches/gpu.py", tmp_path / "gpu.json"
    tiny = ["--game", "tic_tac_toe", "--network", "1x8", "--slots", "8", "--seconds", "0.01", "--repeats", "1"]
    runpy.run_path(str(path))["main"](["--device", "cpu", *tiny, "--json", str(out)])
    text, rows = capsys.readouterr().out, json.loads(out.read_text())["rows"]
    assert list(rows) == ["onnx fp32", "onnx int8, CPU", "torch fp32", "torch bf16", "torch bf16, graphs"]
    assert rows["torch fp32"]["far"] < 1e-4 < rows["torch bf16"]["far"]
    assert all(row["self_play"] > 0 and set(row["us"]) == {"8", "32", "128", "256", "512"} for row in rows.values())
    assert "torch fp16, graphs: left out: torch has no fast fp16 on the CPU" in text
    assert "torch bf16, graphs: " in text


def test_self_play_is_measured_with_the_given_options(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Settings] = []

    def note(_start: Any, _evaluator: Any, settings: Settings, **_: Any) -> list[Figure]:
        asked.append(settings)
        return [Figure("self-play", "positions/s", (1.0,))]

    monkeypatch.setattr("azpy.cli.bench._evaluators", lambda *_: (None, None))
    monkeypatch.setattr(benchmarks, "measure_self_play", note)
    given = ["--game", "tic_tac_toe", "--network", "1x8", "--gumbel-actions", "5", "--eval-batch", "2"]
    assert main(["selfplay", *given, "--json", "-"]) == 0
    assert asked == [Settings("tic_tac_toe", network="1x8", gumbel_actions=5, eval_batch=2)]
    assert json.loads(capsys.readouterr().out)["settings"]["gumbel_actions"] == 5


def test_a_flag_without_effect_warns(capsys: pytest.CaptureFixture[str]) -> None:
    warn_once.cache_clear()
    flags = ["--c-puct", "3", "--simulations", "9", "--model", "none.onnx", "--network", "1x8"]
    code, _, err = az_bench(capsys, "search", *flags)
    assert code == 0
    names = ("c-puct", "model", "network", "simulations")
    assert sorted(err.splitlines()) == [f"az-bench: --{name} has no effect on search" for name in names]


def test_self_play_is_measured_as_the_run_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Settings("connect_four", solver=True, c_puct_base=50.0, evaluations=9, full_search_share=0.25, simulations=5)
    asked: list[dict[str, Any]] = []

    def noted(start: Any, evaluator: Any, **options: Any) -> azpy.SelfPlay:
        asked.append(options)
        return azpy.SelfPlay(start, evaluator, **options)

    monkeypatch.setattr("azpy.playing.benchmarks._core.SelfPlay", noted)
    start = azpy.make_game("connect_four")
    benchmarks.measure_self_play(start, benchmarks.Zeros(start, 2**10), run, seconds=0.001, repeats=1)
    assert len(asked) == 2
    assert all(run.search_options().items() <= options.items() for options in asked)
