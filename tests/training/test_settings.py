"""Settings: what is said of each holds, what cannot be is refused in words, and what a run used reads back."""

import dataclasses
import json
import math
import random
import re
import shlex
import sys
import tomllib
import typing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy._core import OPTIONS
from azpy.cli.train import _parser, main
from azpy.errors import RunError, SettingsError, SettingsWarning
from azpy.runs.folder import RunFolder
from azpy.runs.reader import StoredRun
from azpy.settings.choosing import choose
from azpy.settings.presets import PRESETS, preset_of
from azpy.settings.run import (
    ABOUT,
    FIXED_SETTINGS,
    GROUPS,
    SAME_GAMES_SETTINGS,
    Settings,
    auto_eval_batch,
    checked,
    combine,
    default_of,
    unused,
)
from azpy.settings.toml import path_argument, read_config, repeat_command, to_toml
from azpy.system import made_with
from oracles import another
from training_runs import settings_from

NAMES = [field.name for field in dataclasses.fields(Settings)]
NUMBERS = [name for name in NAMES if ABOUT[name].kind in (int, float)]
TRAINING = Path(__file__).parents[2] / "docs/guides/training.md"
PAGE = Path(__file__).parents[2] / "docs/reference/settings.md"


def random_value(name: str, rng: random.Random) -> Any:
    about, kind = ABOUT[name], ABOUT[name].kind
    if kind is bool:
        return rng.random() < 0.5
    if about.words and (kind is str or rng.random() < 0.3):
        return rng.choice(about.words)
    if name == "device":
        return rng.choice(["cpu", "cuda", "cuda:1", "tensorrt", "openvino", "auto"])
    if name == "devices":
        return rng.choice([None, "0", "0,1", "5,3,1"])
    if kind is str:
        return "".join(rng.choices("ax5(=,) \"'\\#\n\t\x7fé😀", k=rng.randrange(1, 12)))
    if getattr(Settings, name, 0) is None and rng.random() < 0.5:
        return None
    high = min(about.high, 10.0 ** rng.randrange(1, 12) + about.low)
    if kind is float:
        return high - (high - about.low) * rng.random() * rng.choice([1.0, 1e-9])  # never `low` itself
    number = rng.randint(int(about.low), int(high))
    return number + number % 2 if about.even else number


def random_settings(rng: random.Random) -> dict[str, Any]:
    chosen = {name: random_value(name, rng) for name in NAMES}
    chosen["pipelines"] = rng.randint(1, min(chosen["slots"], 256))
    chosen["gumbel_actions"] = rng.choice([0, 7])
    chosen |= {name: getattr(Settings, name) for name in unused(chosen)}
    if chosen["deterministic"]:
        chosen |= {"minutes": None, "total_evaluations": None, "device": "cpu"}
    several = len((chosen["devices"] or "").split(","))
    if chosen["device"] in ("cpu", "cuda:1", "openvino") or chosen["slots"] < several * chosen["pipelines"]:
        chosen["devices"] = None
    if chosen["device"].startswith("tensorrt"):
        chosen["workers"] = 0
    possible = {"cpu": ["fp32", "int8", "auto"], "auto": ["fp32"], "openvino": ["fp32", "bf16", "auto"]}.get(
        chosen["device"], ["fp32", "fp16"]
    )
    chosen["precision"] = "fp32" if chosen["deterministic"] else rng.choice(possible)
    if chosen["precision"] == "bf16" and isinstance(chosen["workers"], str):
        chosen["workers"] = 0
    if chosen["deterministic"]:
        chosen["training_precision"] = "fp32"
        chosen["iterations"] = chosen["iterations"] or 3
    return chosen


def flags(settings: dict[str, Any]) -> list[str]:
    """The command line that gives them."""
    given = []
    for name, value in settings.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            given.append(flag if value else flag.replace("--", "--no-", 1))
        elif name != "game":
            given.append(f"{flag}={'none' if value is None else value}")
    return given


def test_type_checkers_know_each_option_as_the_core_takes_it() -> None:
    hints = typing.get_type_hints(Settings)
    for name, row in OPTIONS.items():
        kind = row["kind"] | str if row["words"] else row["kind"]
        assert hints[name] == (kind | None if row["optional"] else kind), name


def test_help_shows_every_setting_with_its_range_and_default(printed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.cli.common._WIDTH", 1000)
    monkeypatch.setenv("COLUMNS", "1000")
    shown = printed(main, ["--help-all"])
    places = [shown.index(f"\n{group.capitalize()}:\n") for group in GROUPS]
    assert places == sorted(places)
    entries = [" ".join(entry.split()) for entry in re.split(r"\n  (?=--)", shown)]
    lines = {entry.split()[0].replace("--[no-]", "--"): entry for entry in entries}
    words = {None: "none", True: "on", False: "off"}
    for name in NAMES[1:]:
        about, default = ABOUT[name], default_of(name)
        assert about.source
        allowed = f"[{about.range}] " if about.range else ""
        said = words[default] if default is None or about.kind is bool else default
        said = f"{said:.15g}" if isinstance(said, float) else said
        line = lines["--" + name.replace("_", "-")]
        assert f" {about.help} {allowed}(default: {said})" in line
        assert len(about.help.split()) <= 12


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"slots": 1}, "slots must be at least the 2 pipelines, got 1"),
        ({"workers": 2, "device": "tensorrt"}, "workers play on the CPU or on CUDA"),
        ({"device": "azpy"}, "openvino or auto to train, got 'azpy'"),
        ({"deterministic": True, "total_evaluations": 9}, "depend on the cache: give iterations"),
        ({"deterministic": True, "device": "cuda"}, "a deterministic run needs device cpu, got 'cuda'"),
        ({"deterministic": True, "training_precision": "bf16"}, "a deterministic run trains in fp32"),
        ({"deterministic": True, "device": "openvino"}, "a deterministic run needs device cpu, got 'openvino'"),
        ({"deterministic": True, "minutes": 1.0}, "cannot stop by the clock: give iterations"),
        ({"precision": "int8", "device": "cuda"}, "precision int8 needs device cpu, got 'cuda'"),
        ({"precision": "int8", "device": "openvino"}, "precision int8 needs device cpu, got 'openvino'"),
        ({"precision": "fp8"}, "precision must be fp32 or int8 or auto or fp16"),
        ({"precision": "fp16"}, "precision fp16 needs CUDA or TensorRT: CPU has fp32, int8, auto"),
        ({"precision": "fp16", "device": "auto"}, "precision fp16 needs CUDA or TensorRT: WebGPU has fp32"),
        ({"precision": "fp16", "device": "webgpu"}, "precision fp16 needs CUDA or TensorRT: WebGPU has fp32"),
        ({"precision": "fp16", "device": "openvino"}, "precision fp16 needs CUDA or TensorRT: OpenVINO has fp32, bf16"),
        ({"precision": "bf16"}, "precision bf16 needs OpenVINO: CPU has fp32, int8, auto"),
        (
            {"precision": "bf16", "device": "openvino", "workers": "ray"},
            "workers ray may be on machines without bf16: give precision auto or fp32",
        ),
        ({"devices": "0,1", "device": "openvino"}, "devices 0,1 needs device cuda, tensorrt or auto, got 'openvino'"),
        ({"devices": "0,1"}, "devices 0,1 needs device cuda, tensorrt or auto, got 'cpu'"),
        ({"devices": "0,1", "device": "cuda:1"}, "devices 0,1 needs device cuda, tensorrt or auto, got 'cuda:1'"),
        *(
            ({"devices": given, "device": "cuda"}, f"devices must name each GPU once, got '{given}'")
            for given in ("0,0", "1,01")
        ),
        *(
            ({"devices": given, "device": "cuda"}, f"devices must be numbers of GPUs, such as 0,1, got '{given}'")
            for given in ("0,", "", "0;1", "0,-1")
        ),
        ({"network": "1x8+conv", "batch_size": 1}, "batch_size must be at least 2"),
        ({"early_stop": True, "solver": True}, "early_stop does not go with solver: leave one"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        Settings("pig", **settings)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_in_its_range(name: str) -> None:
    about = ABOUT[name]
    fits: dict[str, Any] = {"game": "pig", "pipelines": 1, "slots": 256}
    fits |= {"gumbel_actions": 4} if about.rule == "Gumbel" else {}
    fits |= {about.needs: True} if about.needs else {}
    edges = [(about.low, not about.above), (about.low - 1, False)]
    if about.high < math.inf:
        edges += [(about.high, True), (about.high + 1, False)]
    if about.even:
        edges += [(about.low + 1, False)]
    for value, good in edges:
        if good:
            assert getattr(Settings(**(fits | {name: value})), name) == value
        else:
            with pytest.raises(SettingsError, match=rf"{name} must be .*, got {value}\b"):
                Settings(**(fits | {name: value}))


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("simulations", "100", "simulations must be a whole number, got '100'"),
        ("simulations", True, "simulations must be a whole number, got True"),
        ("learning_rate", "fast", "learning_rate must be a number, got 'fast'"),
        ("learning_rate", [0.1], "learning_rate must be a number, got [0.1]"),
        ("learning_rate", math.nan, "learning_rate must be a finite number, got nan"),
        ("learning_rate", 10**400, f"learning_rate must be a finite number, got 1{99 * '0'}…"),
        ("deterministic", 1, "deterministic must be true or false, got 1"),
        ("network", 64, "network must be text, got 64"),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: Any, text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings(**({"game": "pig"} | {name: value}))
    assert str(refused.value) == text
    (tmp_path / "run.toml").write_text(f"{name} = {json.dumps(value).lower()}")
    with pytest.raises(SettingsError) as refused:
        read_config(tmp_path / "run.toml")
    assert str(refused.value) == f"{tmp_path / 'run.toml'}: {text}"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("simulations", "many", "a whole number, got 'many'"),
        ("simulations", "1__0", "a whole number, got '1__0'"),
        ("simulations", "9" * 40, f"at most 4294967295, got {'9' * 40}"),
        ("simulations", "-" + "9" * 400, f"at least 1, got -{'9' * 99}…"),
        ("c_puct", "-1", "at least 0, got -1"),
        ("c_puct", "1_.5", "a number, got '1_.5'"),
        ("deterministic", "True", "true or false, got 'True'"),
        ("fpu", "prent", "zero or parent or a number, got 'prent'"),
    ],
)
def test_a_typed_value_is_refused_as_it_was_typed(name: str, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        checked(name, text, typed=True)
    assert str(refused.value) == f"{name} must be {said}"


def test_the_name_of_a_file_may_hold_any_bytes() -> None:
    settings = Settings("pig", init="there/\udcff", workers=checked("workers", "folder:\udcff", typed=True))
    assert (settings.init, settings.workers) == ("there/\udcff", "folder:\udcff")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("learning_rte = 0.1", "learning_rte: unknown setting; did you mean learning_rate?"),
        ("learning-rate = 0.1", "learning-rate: unknown setting; did you mean learning_rate?"),
        ("[learning]\nlearning_rate = 0.1", "learning: unknown setting; did you mean"),
        ("c_puct = -1", "c_puct must be at least 0, got -1"),
        ('slots = "auto"', "slots must be a whole number, got 'auto'"),
        ("c_puct", "is not valid TOML: "),
        ("c_puct = " + 20_000 * "[", "is not valid TOML: "),
    ],
)
def test_a_bad_settings_file_is_refused(text: str, error: str, tmp_path: Path, one_line: Any) -> None:
    (tmp_path / "run.toml").write_text(text)
    file = str(tmp_path / "run.toml")
    assert error in one_line(main, ["pig", "--config", file], f"az-train: {file}")


def test_command_line_beats_file_beats_preset_beats_default(tmp_path: Path) -> None:
    rng, file = random.Random(7), tmp_path / "run.toml"
    depending = ("pipelines", "minutes", "total_evaluations")
    names = [name for name in NAMES if ABOUT[name].kind is not str and name not in depending]
    for _ in range(200):
        in_file, typed = ({name: random_value(name, rng) for name in names if rng.random() < 0.5} for _ in range(2))
        in_file = {name: value for name, value in in_file.items() if value is not None} | {"pipelines": 1}
        for layer in (in_file, typed):  # those of PUCT that go together
            for name in [
                name for name in layer if ABOUT[name].rule == "Gumbel" or ABOUT[name].without or ABOUT[name].needs
            ]:
                del layer[name]
            layer.pop("gumbel_actions", None)
        file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in in_file.items()))
        settings, _ = settings_from(["tic_tac_toe", "--config", str(file), *flags(typed)])
        preset = preset_of("tic_tac_toe", in_file | typed)  # without what has no effect beside the others
        for name in NAMES[1:]:
            layout = Settings if settings.deterministic else settings
            default = vars(Settings) | {"eval_batch": auto_eval_batch(layout.slots, layout.pipelines)}
            layer = next((layer for layer in (typed, in_file, preset) if name in layer), default)
            assert getattr(settings, name) == layer[name], name


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_settings_may_begin_with_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "run.toml").write_text('game = "pig"\r\nseed = 3\r\n', encoding)
    assert read_config(tmp_path / "run.toml") == {"game": "pig", "seed": 3}


def test_the_command_line_beats_the_game_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('game = "pig"\nseed = 3\n')
    from_file, out = settings_from(["--config", str(tmp_path / "run.toml")])
    assert from_file == combine(preset_of("pig"), {"game": "pig", "seed": 3})
    assert out == "runs/pig"
    other, out = settings_from(["dice_nim(heap=5)", "--config", str(tmp_path / "run.toml")])
    assert other == combine(preset_of("dice_nim"), {"game": "dice_nim(heap=5)", "seed": 3})
    assert out == "runs/dice_nim-heap-5"


def test_auto_in_a_deterministic_run_depends_on_no_layout() -> None:
    for flags in ([], ["--slots", "4"], ["--slots", "300", "--pipelines", "5"], ["--threads", "1"]):
        settings, _ = settings_from(["pig", "--deterministic", *flags])
        assert settings.eval_batch == auto_eval_batch(Settings.slots, Settings.pipelines), flags
    assert settings_from(["pig", "--deterministic", "--eval-batch", "3"])[0].eval_batch == 3


@pytest.mark.parametrize(("given", "fpu"), [("zero", "zero"), ("parent", "parent"), ("0.5", 0.5), ("0", 0.0)])
def test_a_word_may_stand_for_a_number(given: str, fpu: float | str, tmp_path: Path) -> None:
    assert settings_from(["pig", "--fpu", given])[0].fpu == fpu
    (tmp_path / "run.toml").write_text(to_toml(dataclasses.asdict(Settings("pig", fpu=fpu)), {}, "runs/pig"))
    assert settings_from(["--config", str(tmp_path / "run.toml")])[0].fpu == fpu


@pytest.mark.parametrize("game", ["connect_four", "game2048"])
def test_fewer_games_an_iteration_search_as_before(game: str) -> None:
    searches = [settings_from([game, "--games-per-iteration", games])[0].eval_batch for games in ("8", "512")]
    assert searches[0] == searches[1]  # more leaves of a tree at a time would cost strength


def test_auto_stands_where_no_number_is_given(tmp_path: Path) -> None:
    assert settings_from(["pig", "--slots", "16", "--pipelines", "1"])[0].eval_batch == 4
    assert settings_from(["pig", "--slots", "4", "--pipelines", "1"])[0].eval_batch == 8  # more would cost strength
    assert settings_from(["pig", "--slots", "4", "--pipelines", "1", "--eval-batch", "16"])[0].eval_batch == 16
    (tmp_path / "run.toml").write_text('game = "pig"\neval_batch = "auto"\nslots = 32\npipelines = 2\nminutes = 3\n')
    settings, _ = settings_from(["--config", str(tmp_path / "run.toml"), "--minutes", "none"])
    assert (settings.eval_batch, settings.minutes) == (4, None)
    assert "\neval_batch = 4\n" in to_toml(dataclasses.asdict(settings), {}, "runs/pig")


def test_what_a_run_used_reads_back_to_the_same_settings(tmp_path: Path) -> None:
    rng, file = random.Random(1), tmp_path / "config.toml"
    made_with: dict[str, str | int] = {"azpy": azpy.__version__, "cores": 2}
    for _ in range(150):
        settings = Settings(**random_settings(rng))
        folder = "".join(rng.choices("a/ '\n#\udcff", k=8))
        file.write_bytes(to_toml(dataclasses.asdict(settings), made_with, folder).encode())
        assert combine(read_config(file)) == settings
        assert tomllib.loads(file.read_text("utf-8"))["made_with"] == {"format": 1} | made_with


def test_the_file_says_of_each_setting_what_it_is(tmp_path: Path) -> None:
    shown = Settings("pig", minutes=5)
    text = to_toml(dataclasses.asdict(shown), {}, tmp_path)
    plain = " ".join(line.removeprefix("# ") for line in text.splitlines())
    for name in NAMES:
        before, key, _ = plain.partition(f" {name} {'is not set' if getattr(shown, name) is None else '='}")
        assert key, name
        before = before[before.rindex(ABOUT[name].help) :]
        for fact in (ABOUT[name].unit, ABOUT[name].range):
            assert fact in before
        assert f"({ABOUT[name].source})" in before
    assert f"#   {repeat_command(tmp_path, 'pig')}\n" in text
    assert max(map(len, text.splitlines()[2:])) <= 100


def test_presets_are_of_games_that_exist() -> None:
    assert PRESETS.keys() <= azpy.list_games().keys()
    for game in PRESETS:
        preset = preset_of(game)
        assert "game" not in preset
        assert None not in preset.values()  # a file cannot say that a preset is not set
        settings = combine(preset, {"game": game})
        assert {name: getattr(settings, name) for name in preset} == preset
    assert preset_of("connect_four(width=5,height=4)") == PRESETS["connect_four"]
    assert preset_of("pig:Mine") == {}


@pytest.mark.parametrize("given", [{"fpu": "parent"}, {"evaluations": 50}, {"root_noise": 0.1}, {"gumbel_actions": 0}])
def test_a_preset_of_gumbel_gives_way_to_settings_of_puct(given: dict[str, Any]) -> None:
    plain = preset_of("connect_four", {"root_noise": default_of("root_noise"), "seed": 3})
    assert plain == PRESETS["connect_four"]
    assert plain["gumbel_actions"] > 0
    settings = combine(preset_of("connect_four", given), {"game": "connect_four"}, given)
    assert settings.gumbel_actions == 0
    assert settings.simulations == 100
    assert settings.network == plain["network"]


@pytest.mark.parametrize("name", [name for name in OPTIONS if OPTIONS[name]["rule"] == "PUCT"])
def test_a_puct_flag_switches_a_gumbel_preset_to_puct(name: str, tmp_path: Path) -> None:
    given = {name: another(name)}
    typed, _ = settings_from(["connect_four", *flags(given)])
    assert (typed.gumbel_actions, typed.simulations, getattr(typed, name)) == (0, 100, given[name])
    said = choose({"game": "connect_four", **given}, out=str(tmp_path))[2]
    assert said.endswith("; it leaves out simulations 16, gumbel_actions 7")


@pytest.mark.parametrize("name", [name for name in OPTIONS if OPTIONS[name]["rule"]])
def test_a_setting_of_the_other_search_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {name: another(name), "gumbel_actions": 4 if ABOUT[name].rule == "PUCT" else 0}
    with pytest.raises(SettingsError, match=f"{name} (does not go with|needs) gumbel_actions"):
        settings_from(["connect_four", *flags(given)])
    with pytest.raises(SettingsError, match=f"{name} (does not go with|needs) gumbel_actions"):
        Settings("connect_four", **given)
    assert Settings("connect_four", **given | {name: default_of(name)}).gumbel_actions == given["gumbel_actions"]


def test_a_preset_leaves_out_what_needs_a_switch_that_is_off(tmp_path: Path) -> None:
    said = choose({"game": "connect_four", "match_solver": False}, out=str(tmp_path))[2]
    assert said.endswith("; it leaves out match_lookahead 4")
    assert settings_from(["connect_four", "--no-match-solver"])[0].match_lookahead == 0
    assert (settings_from(["chess"])[0].lookahead, settings_from(["chess", "--no-solver"])[0].lookahead) == (1, 0)
    for given in ({"match_solver": False, "match_lookahead": 2}, {"lookahead": 2}):
        with pytest.raises(SettingsError, match=r"(match_)?lookahead needs (match_)?solver: give both, or leave"):
            combine(preset_of("connect_four", given), {"game": "connect_four"}, given)
    # What lacks its switch is no wish for PUCT.
    assert preset_of("connect_four", {"lookahead": 2})["gumbel_actions"] == 7


def test_a_preset_in_force_is_said_unless_an_error_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gumbel = "simulations 32, gumbel_actions 16, passes 2.0"
    given = {"game": "hex(size=99)", "network": "1x8", "opening_plies": 3}
    assert choose(given, out=str(tmp_path))[2] == f"preset for hex: {gumbel}, match_opening_plies 2, match_lookahead 1"
    for bad in (["hex(size=99)"], ["hex", "--network", "big"], ["hex", "--network", "nowhere:make"]):
        assert main([*bad, "--out", str(tmp_path / "run")]) == 2
        assert capsys.readouterr().out == ""


@pytest.mark.skipif(not TRAINING.exists(), reason="needs the source tree")
def test_the_file_in_the_docs_can_be_used(tmp_path: Path) -> None:
    files = re.findall(r"^```toml\n(.*?)^```", TRAINING.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert files
    for text in files:
        (tmp_path / "run.toml").write_text(text)
        combine({"game": "connect_four"}, read_config(tmp_path / "run.toml"))


@pytest.mark.skipif(not PAGE.exists(), reason="needs the source tree")
def test_the_page_of_settings_has_each_default_and_range() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| .+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name, _, _ in rows] == [*ABOUT]
    words = {"None": "none", "False": "off", "True": "on"}
    for name, default, values in rows[1:]:
        expected = str(default_of(name))
        assert default.strip("`") == words.get(expected, expected), name
        assert re.findall(r"[\d.]+", values) == re.findall(r"[\d.]+", ABOUT[name].range), name
        assert all(word.partition(":")[0] in values for word in ABOUT[name].words), name


def test_a_run_keeps_what_it_must() -> None:
    kept = {"game", "network", "seed", "deterministic", "init", "optimizer", "ranked_reward", "value_smoothing"}
    assert FIXED_SETTINGS.keys() == kept
    assert set(SAME_GAMES_SETTINGS) <= set(NAMES) - kept


def test_the_repeating_command_can_be_typed() -> None:
    typed = shlex.split(repeat_command("-dash", "mine:Mine", ["--collect-only", "--model", path_argument("-m.onnx")]))
    assert typed[:4] == ["az-train", "mine:Mine", "--config", "./-dash/config.toml"]
    assert typed[4:] == ["--collect-only", "--model", "./-m.onnx", "--out", "./-dash-again"]
    options = _parser().parse_args(typed[1:])
    assert (options.config, options.model, options.out) == ("./-dash/config.toml", "./-m.onnx", "./-dash-again")


# A run that goes on


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run's config.toml, with settings that are not those of the preset."""
    monkeypatch.chdir(tmp_path)
    settings = combine({"game": "connect_four", "network": "1x8", "simulations": 7, "seed": 5, "minutes": 3.0})
    with RunFolder("run", dataclasses.asdict(settings), {}, made_with()):
        pass
    return Path("run/config.toml")


def test_a_run_that_goes_on_keeps_its_settings(begun: Path, capsys: pytest.CaptureFixture[str]) -> None:
    so_far = combine(read_config(begun))
    assert so_far.network != preset_of("connect_four")["network"]
    for arguments in (["connect_four"], []):
        assert settings_from([*arguments, "--out", "run"]) == (so_far, "run")
    typed, _ = settings_from(["--out", "run", "--simulations", "9", "--minutes", "none"])
    changed: dict[str, Any] = {"simulations": 9, "minutes": None}
    assert typed == dataclasses.replace(so_far, **changed)
    Path("other.toml").write_text("simulations = 11\nc_puct = 2.5\n")
    given, _ = settings_from(["--out", "run", "--config", "other.toml", "--c-puct", "3"])
    changed = {"simulations": 11, "c_puct": 3.0}
    assert given == dataclasses.replace(so_far, **changed)
    fresh, _ = settings_from(["connect_four", "--out", "elsewhere"])
    assert fresh == combine(preset_of("connect_four"), {"game": "connect_four"})
    assert main(["connect_four", "--network", "2x8", "--out", "run", "--collect-only"]) == 2
    assert "network '1x8', now '2x8'" in capsys.readouterr().err


def test_a_run_that_goes_on_says_what_it_keeps(begun: Path, capsys: pytest.CaptureFixture[str], printed: Any) -> None:
    quick = ["--collect-only", "--iterations", "1", "--games-per-iteration", "1", "--simulations", "1"]
    said = printed(main, ["--out", "run", *quick])
    assert said.startswith("kept from run/config.toml: network 1x8, minutes 3.0, seed 5\n")
    begun.write_text(begun.read_text().replace('"1x8"', '"1x8\\u001B[2J"'))
    main(["--out", "run", *quick])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("writer", [azpy.__version__, "0.0.1"])
def test_a_removed_setting_is_ignored_with_a_warning(
    writer: str, begun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = begun.read_text()
    old = "learner_lag = 1\n" + whole.replace(f'azpy = "{azpy.__version__}"', f'azpy = "{writer}"')
    begun.write_text(old)
    assert main(["--config", "run/config.toml", "--out", "run", "--iterations", "1", "--games-per-iteration", "1",
                 "--simulations", "1", "--collect-only"]) == 0  # fmt: skip
    text = f"run/config.toml: learner_lag is not a setting of azpy {azpy.__version__} and is ignored"
    by = " (azpy 0.0.1 wrote the file)" if writer == "0.0.1" else ""
    assert capsys.readouterr().err == f"az-train: {text}{by}\n"
    assert "learner_lag" not in begun.read_text()
    begun.write_text(old)
    with pytest.warns(SettingsWarning, match="learner_lag is not a setting"):
        assert StoredRun("run").settings.simulations == 7


@pytest.mark.parametrize("number", ["2", "'1'"])
def test_a_file_in_a_newer_format_is_refused(number: str, begun: Path, one_line: Any) -> None:
    whole = begun.read_text()
    assert tomllib.loads(whole)["made_with"]["azpy"] == azpy.__version__
    begun.write_text(whole.replace("format = 1", f"format = {number}"))
    expected = f"run/config.toml has format {number}, written by azpy {azpy.__version__}, expected a format up to 1"
    for arguments in (["--config", "run/config.toml", "--out", "x"], ["connect_four", "--out", "run"]):
        one_line(main, arguments, f"az-train: {expected}")
    for opened in (lambda: StoredRun("run"), lambda: RunFolder("run", {})):
        with pytest.raises(RunError, match="has format"):
            opened()


@pytest.mark.parametrize(
    ("name", "spec", "is_what", "flag"),
    [
        ("game", "evil:Evil", "Python class", "give GAME evil:Evil on the command line"),
        ("network", "evil:make", "Python function", "give --network evil:make"),
        ("optimizer", "evil:make", "Python function", "give --optimizer evil:make"),
    ],
)
def test_code_that_only_a_file_names_is_not_imported(
    name: str, spec: str, is_what: str, flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("evil.py").write_text("raise SystemExit('imported')")
    Path("run").mkdir()
    Path("run/config.toml").write_text(f'{name} = "{spec}"\n' + ('game = "pig"\n' * (name != "game")))
    for arguments, source in ((["--config", "run/config.toml"], "run/config.toml"), (["--out", "run"], "run")):
        assert main(arguments) == 2
        found = f"az-train: {source}'s {name} is the {is_what} {spec}, and training would import module evil: {flag}"
        assert capsys.readouterr().err == f"{found} if you trust it\n"
    assert "evil" not in sys.modules
    typed = [spec] if name == "game" else [f"--{name}", spec]
    assert getattr(settings_from([*typed, "--config", "run/config.toml"])[0], name) == spec


def test_a_setting_that_is_switched_off_is_read_back(tmp_path: Path) -> None:
    for name in OPTIONS:
        if ABOUT[name].optional:
            given = {"game": "pig", name: None}
            text = to_toml(asdict(combine(given)), {}, tmp_path)
            (tmp_path / "config.toml").write_text(text)
            assert getattr(combine(read_config(tmp_path / "config.toml")), name) is None, name


def test_options_that_an_older_run_did_not_have_are_no_changes(tmp_path: Path) -> None:
    settings = asdict(combine({"game": "pig", "gumbel_actions": 2}))
    RunFolder(tmp_path / "run", settings).close()
    file = tmp_path / "run/config.toml"
    older = [line for line in file.read_text().splitlines() if not line.startswith(("tree_reuse", "early_stop"))]
    file.write_text("c_puct = 2.5\n" + "\n".join(line for line in older if not line.startswith("c_puct =")))
    with RunFolder(tmp_path / "run", settings) as run:
        assert run.changed == {}
    with RunFolder(tmp_path / "run", settings | {"tree_reuse": not settings["tree_reuse"]}) as run:
        assert list(run.changed) == ["tree_reuse"]
