"""az-train as a user meets it: one clear line for what is wrong, and nothing lost."""

import argparse
import errno
import importlib.util
import io
import itertools
import os
import re
import shlex
import signal
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import azpy
import azpy_cli
from azpy.cli.common import Parser, run_command
from azpy.cli.progress import Display, Screen, live_bar
from azpy.cli.train import _say_next, main
from azpy.settings.run import Settings, combine
from azpy.training.events import Finished, Matched, Played, Saved
from azpy.training.timing import STAGES
from oracles import pairs_of
from running import az, ended, program
from starts import Starts
from training_runs import settings_from

LONG = "x" * 300  # no file can have this name
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
TINY = [
    *("--network", "1x8", "--simulations", "8", "--slots", "8", "--eval-batch", "2"),
    *("--games-per-iteration", "10"),
]
TRAINED = [*TINY, "--final-match-games", "2"]


def test_a_small_run_prints_what_a_user_needs(starts: Starts, tmp_path: Path) -> None:
    done = starts.finish("tic_tac_toe", *TRAINED, "--iterations", "2", folder=tmp_path)
    assert done.errors == ""
    output = done.output.replace(os.sep, "/")
    for text in (
        "run folder runs/tic_tac_toe",
        "2 pipelines x 4 games · batches of 8 positions (2 leaves per game) · 8 simulations per move",
        "plays on CPU, fp32, 1 thread per batch, at first without a network · trains on cpu",
        "iteration 1: 10 games",
        "simulations/s",
        "evaluations/s",
        "% full",
        "cache hits",
        "time: ",
        "fitting ",
        "policy loss",
        "value loss",
        "against random",
        "against untrained",
        "against mcts-1000",
        "done: 2 iterations",
    ):
        assert text in output
    assert re.sub(r"(az-replay \S+) \d+", r"\1 N", output).splitlines()[-6:] == [
        "to play: az-play runs/tic_tac_toe",
        "report: runs/tic_tac_toe/report.html",
        "to train longer: az-train tic_tac_toe --out runs/tic_tac_toe --iterations=4",
        "to look at a game: az-replay runs/tic_tac_toe N",
        "to play a match: az-match runs/tic_tac_toe mcts:1000",
        "to export the model: az-export runs/tic_tac_toe --onnx tic_tac_toe.onnx",
    ]
    assert "to repeat this run" not in output + (tmp_path / "runs/tic_tac_toe/config.toml").read_text()
    assert "\x1b" not in output


def test_each_advice_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"seconds": 1.0, "games": 1.0, "positions": 9.0, "steps": 5.0, "policy_loss": 1.0, "value_loss": 1.0}
    row |= {f"share_{name}": 0.0 for name in (*STAGES, "other")} | {"share_growing": 0.25, "share_matches": 0.5}
    with Display() as display:
        for advice in ("do this", "do this", "do that", None, "do that"):
            display.show(Saved(1, "folder", row, advice))
    lines = capsys.readouterr().out.splitlines()
    shown = [line.strip() for line in lines if "advice" in line]
    assert shown == ["advice: do this", "advice: do that"]
    assert lines[0].endswith(" · time: trees 25%, matches 50%")


@pytest.mark.parametrize(
    ("width", "figures"),
    [
        (160, "100/512 games, 0.75 against mcts-1000, 41,234 simulations/s, 31,234 evaluations/s, batches 98% full"),
        (80, "100/512 games, 0.75 against mcts-1000"),
        (60, "100/512 games"),
        (36, ""),
    ],
)
def test_a_narrow_terminal_keeps_label_and_bar(width: int, figures: str) -> None:
    console = Console(width=width, force_terminal=True, file=io.StringIO(), color_system=None)
    display = Display()
    display._live, display._games = live_bar(console), 512
    metrics = {"simulations_per_second": 41234.0, "evaluations_per_second": 31234.0, "batch_fill": 0.98}
    metrics |= {"cache_hits": 0.16} | {f"share_{name}": 0.1 for name in STAGES}
    display.show(Matched(10, "mcts-1000", pairs_of((1.0, 1.0), (1.0, -1.0))))
    display.show(Played(12, 100, metrics))
    with console.capture() as shown:
        console.print(display._live.get_renderable())
    (line,) = shown.get().splitlines()
    assert re.fullmatch(rf"iteration 12 self-play [━╸╺ ]{{12}} {re.escape(figures)}.*", line.ljust(36)), line
    assert line.endswith(figures) or width == 160
    assert len(line) <= width


def test_a_label_that_is_too_long_leaves_room_for_the_bar() -> None:
    console = Console(width=60, force_terminal=True, file=io.StringIO(), color_system=None)
    screen = Screen()
    screen._live = live_bar(console)
    screen.progress("[1/9] runs/first@200 against runs/second@200: " * 2, ["4/40 games"], 0.5)
    with console.capture() as shown:
        console.print(screen._live.get_renderable())
    (line,) = shown.get().splitlines()
    assert line.startswith("[1/9] runs/first@200 against runs/second@200:… ━")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["chequers"], "unknown game 'chequers'"),
        (["tic_tac_toe", "--eval-batch", "lots"], "eval_batch must be a whole number or auto, got 'lots'"),
        (["tic_tac_toe", "--frobnicate"], "--frobnicate: no such flag (see az-train --help)"),
        (["tic_tac_toe", "--solver=true"], "--solver/--no-solver: expected no value, got 'true' (see az-train --help)"),
        (["tic_tac_toe", "--lr", "1"], "--lr: no such flag; did you mean --learning-rate?"),
        (["tic_tac_toe", "--epochs=3"], "--epochs: no such flag; did you mean --passes or --iterations?"),
        (["no_game", "--no-match"], "--no-match: no such flag; did you mean --no-match-solver?"),
        (["--config", "nowhere.toml"], "nowhere.toml cannot be read: No such file"),
        ([], "no game"),
        (
            ["tic_tac_toe", "--device", "gpu"],
            "device must be cpu, cuda, cuda:N, tensorrt, tensorrt:N, webgpu, openvino or auto to train, got",
        ),
        (["tic_tac_toe", "--device", "auto", "--deterministic"], "a deterministic run needs device cpu"),
        (["tic_tac_toe", "--out", "occupied"], "occupied is not a run folder"),
        (["tic_tac_toe", "--out", "occupied/file"], "occupied/file"),
        (["tic_tac_toe", "--out", "/proc/nowhere"], "/proc/nowhere"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_line: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "occupied").mkdir()
    (tmp_path / "occupied/file").write_text("")
    assert text in one_line(main, arguments, "az-train: ")


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_signals_save_and_say_how_to_go_on(
    starts: Starts, tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    ended = starts.run("tic_tac_toe", *TINY, folder=tmp_path, kill_when="iteration 2", kill_with=sent)
    assert (ended.code, ended.errors) == (code, "")
    first, last = ended.output.splitlines()[-2:]
    assert first == "to play: az-play runs/tic_tac_toe"
    assert last.endswith(f"Resume with: az-train tic_tac_toe {' '.join(TINY)}")
    again = starts.finish("tic_tac_toe", *TRAINED, "--iterations", "3", folder=tmp_path)
    assert "resuming after iteration" in again.output


STOPPED = """
import os, signal, sys, time
from azpy.cli.common import Parser, run_command

def command(given):
    assert os.getpid() == int(given[0]) or given[0] == "0"
    number = signal.Signals[given[1]]
    try:
        os.kill(os.getpid(), number)
        time.sleep(20)
        return 1
    finally:
        os.kill(os.getpid(), number)  # `timeout` tells the process and its group
        print("kept")

sys.exit(run_command("az-x", command))
"""


@pytest.mark.parametrize(
    ("first", "name"),
    [(["unshare", "--pid", "--fork"], "SIGTERM"), *(([], f"SIG{name}") for name in ("TERM", "HUP", "USR1", "USR2"))],
)
def test_a_signal_ends_a_command_once_with_its_code(first: list[str], name: str) -> None:
    if first and ended([*first, "true"]).code:
        pytest.skip("unshare --pid needs the rights of root")
    done = ended([*first, sys.executable, "-c", STOPPED, "1" if first else "0", name])
    assert done == (128 + signal.Signals[name], "kept\nstopped\n", "")


def test_a_terminal_that_hangs_up_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is gone, nothing can be printed."""

    def gone(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def command(_: object) -> int:
        try:
            signal.raise_signal(signal.SIGHUP)
        except KeyboardInterrupt:
            gone()
        return 0

    monkeypatch.setattr("azpy.cli.common.drop_output", lambda: None)
    assert run_command("az-x", command, []) == 129
    with pytest.raises(OSError, match="Input/output error"):  # of a disk
        run_command("az-x", gone, [])


def test_a_second_sigterm_interrupts_what_the_first_one_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.cli.common._ONE_SIGNAL", 0.0)
    reached = []

    def command(_: object) -> int:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            reached.append("saving")
            signal.raise_signal(signal.SIGTERM)
            reached.append("saved")
        return 0

    assert run_command("az-x", command, []) == 143
    assert reached == ["saving"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_handlers_stay_and_an_ignored_signal_stays_ignored(number: int) -> None:
    before = signal.getsignal(number)
    inside = []

    def look(_: object) -> int:
        inside.append(signal.getsignal(number))
        return 0

    try:
        for handler in (signal.SIG_DFL, signal.SIG_IGN):  # nohup ignores SIGHUP
            signal.signal(number, handler)
            assert run_command("az-x", look, []) == 0
            assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
    assert inside[0] is not signal.SIG_DFL
    assert inside[1] is signal.SIG_IGN


def test_a_missing_or_damaged_package_is_one_line(tmp_path: Path) -> None:
    """What is said of each damage: test_providers.py. All in one test, as torch takes seconds to load for it."""
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/onnxruntime.py").write_text("raise ImportError('libnothing.so: cannot open')")
    place = tmp_path / "here"
    place.mkdir()
    with Starts(tmp_path, modules=()) as bare:  # torch is loaded, and nothing else
        for package in ("torch", "onnx", "onnxruntime", "safetensors"):
            done = bare.run("tic_tac_toe", folder=place, before=f"import sys; sys.modules[{package!r}] = None")
            # Beside an ONNX Runtime, which may be one for a GPU, the one for the CPU must not be installed.
            first = "onnxruntime " if package == "onnxruntime" else ""
            packages = f"{first}torch safetensors onnx"
            assert done.errors == f"az-train: {package} is not installed: pip install {packages}\n"
        damaged = f"import sys; sys.path.insert(0, {str(tmp_path / 'damaged')!r})"
        done = bare.run("tic_tac_toe", folder=place, before=damaged)
        assert (done.code, done.errors.count("\n")) == (2, 1)
        assert done.errors.startswith("az-train: onnxruntime does not load: libnothing.so: cannot open; ")
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("typed", ["mygame:MyGame", "--game=games.mine:MyGame"])
def test_a_command_looks_for_a_typed_game_in_the_current_folder(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for other in ("tic_tac_toe", "open_spiel:chess", "--game=open_spiel:chess", "mcts:1000", "runs/mine:@200"):
        run_command("az-match", lambda given: 0, [other])
        assert str(tmp_path) not in sys.path
    run_command("az-match", lambda given: 0, [typed])
    assert sys.path[0] == str(tmp_path)


COMMANDS = ("bench", "check_game", "compare", "doctor", "export", "match", "replay", "train")


def test_every_command_says_its_version_without_torch() -> None:
    script = """
        import importlib, sys
        for command in sys.argv[1:]:
            assert importlib.import_module(f'azpy.cli.{command}').main(['--version']) == 0
            assert not {'torch', 'onnxruntime'} & sys.modules.keys(), command
    """
    said = "".join(f"az-{command.replace('_', '-')} {azpy.__version__} (azpy)\n" for command in COMMANDS)
    assert program(script, *COMMANDS) == (0, said, "")


@pytest.mark.parametrize(
    ("command", "arguments", "text"),
    [
        ("train", ["tic_tac_toe", "extra"], "unrecognized arguments: extra"),
        ("train", [""], "GAME: an empty text, expected a name"),
        ("train", ["tic_tac_toe", "--iterations"], "--iterations: expected one argument"),
        ("match", ["", "random"], "PLAYER: an empty text, expected a name"),
        ("match", ["mcts", "random", "--games", "x"], "--games must be a whole number, got 'x'"),
        ("match", [], "PLAYER is missing: expected run, checkpoint, model file, mcts:N"),
        ("engine", ["uniform"], "--protocol is missing: expected protocol to speak: gomocup, gtp, json"),
        ("bench", ["search", "--seconds", "soon"], "--seconds must be a number, got 'soon'"),
        ("bench", ["search", "--json", "."], ". is a folder, expected the name of a file to write"),
        ("check_game", ["tic_tac_toe", "--seed", str(10**30)], "seed must be at most 9223372036854775807, got 1000"),
        ("doctor", ["--json=3"], "--json: expected no value, got '3'"),
        ("train", ["tic_tac_toe", "--collect-only", "--out", LONG], f"{LONG}/config.toml cannot be used: "),
        ("train", ["--config", LONG], f"{LONG} cannot be "),
        ("match", ["random", LONG], f"{LONG} cannot be used: "),
    ],
    ids=itertools.count(),
)
def test_wrong_arguments_are_named_in_plain_words(command: str, arguments: list[str], text: str, one_line: Any) -> None:
    main = importlib.import_module(f"azpy.cli.{command}").main
    one_line(main, arguments, f"az-{command.replace('_', '-')}: {text}")


@pytest.mark.parametrize("name", azpy_cli.COMMANDS)
def test_a_help_fits_on_a_screen_and_help_all_shows_every_option(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parsers = list[Parser]()

    def watched(parser: Parser, *given: Any) -> Any:
        parsers.append(parser)
        return argparse.ArgumentParser.parse_args(parser, *given)

    monkeypatch.setattr(Parser, "parse_args", watched)
    main = importlib.import_module(f"azpy.cli.{name.replace('-', '_')}").main
    shown = []
    for flag in ("--help", "--help-all"):
        assert main([flag]) == 0
        shown.append(capsys.readouterr().out)
    brief, full = shown
    assert brief.count("\n") <= 45
    assert max(map(len, full.splitlines())) <= 80
    assert f"Usage: az-{name} [OPTIONS]" in brief
    parser = parsers[0]
    for line in re.findall(rf"^  (az-{name} .*)$", brief, re.MULTILINE):
        parser.parse_args(shlex.split(line)[1:])
    for option in parser._actions:
        assert option.help is not None
        assert len(option.help.partition(" (default: ")[0].split()) <= 12, option.help
    entries = " ".join(re.findall(r"^  (-.*?)(?:  .*)?$", full, re.MULTILINE))
    flags = {*re.findall(r"--?[a-z][a-z0-9-]*", entries.replace("--[no-]", "--"))}
    switches = {option for option in parser._actions if isinstance(option, argparse.BooleanOptionalAction)}
    assert flags == {
        flag for option in parser._actions for flag in option.option_strings[: -1 if option in switches else None]
    }
    for page in brief.splitlines()[-1].removeprefix("More: ").split(", "):
        assert not PYPROJECT.exists() or (PYPROJECT.parent / page).is_file()


def entered(command: str, *arguments: str, before: str = "") -> list[str]:
    """An installed command, in a process where the code `before` runs first."""
    script = f"import os, sys\n{textwrap.dedent(before)}\nfrom azpy_cli import az_{command}\nsys.exit(az_{command}())"
    return [sys.executable, "-c", script, *arguments]


# All commands are imported by one function.
@pytest.mark.parametrize(
    ("command", "module", "happens", "ends"),
    [
        ("doctor", "azpy._core", "raise KeyboardInterrupt", (130, "stopped\n", "")),
        ("train", "numpy", "raise KeyboardInterrupt", (130, "stopped\n", "")),
        ("train", "azpy.cli.common", "os.kill(os.getpid(), 15)", (143, "", "")),
    ],
)
def test_a_signal_ends_a_command_while_it_is_imported(
    command: str, module: str, happens: str, ends: tuple[int, str, str]
) -> None:
    hook = f"""
        class Interrupts:
            def find_spec(self, name, path=None, target=None):
                if name == {module!r}: {happens}
        sys.meta_path.insert(0, Interrupts())
    """
    assert ended(entered(command, before=hook)) == ends


def test_a_command_runs_atexit_functions_and_ends_at_once() -> None:
    promises = """
        import atexit
        class Torn:
            def __del__(self): print('torn down', flush=True)
        sys.torn = Torn()
        from azpy_cli import az_doctor
        atexit.register(print, 'a promise')
    """
    done = ended(entered("doctor", "--version", before=promises))
    assert done == (0, f"az-doctor {azpy.__version__} (azpy)\na promise\n", "")


@pytest.mark.skipif(not PYPROJECT.exists(), reason="needs the source tree")
def test_the_installed_commands_are_these() -> None:
    scripts = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts == {f"az-{name}": f"azpy_cli:az_{name.replace('-', '_')}" for name in azpy_cli.COMMANDS}
    for entry in scripts.values():
        module = getattr(azpy_cli, entry.partition(":")[2]).args[0]
        assert importlib.util.find_spec(f"azpy.cli.{module}") is not None
    with pytest.raises(AttributeError):
        _ = azpy_cli.az_nothing


@pytest.mark.parametrize("arguments", [["tic_tac_toe"], ["--version"]])
def test_with_stdout_closed_it_is_one_line_or_141(arguments: list[str], tmp_path: Path) -> None:
    closed = ended(["sh", "-c", 'exec "$@" >&-', "sh", *entered("train", *arguments)], cwd=tmp_path)
    assert closed == (2, "", "az-train: stdout is closed: let it go to a file, or to /dev/null\n")
    reader, writer = os.pipe()
    os.close(reader)
    unread = ended(entered("train", *arguments), cwd=tmp_path, stdout=writer)
    os.close(writer)
    assert unread == (141, "", "")
    assert list(tmp_path.iterdir()) == []


def test_untrusted_text_is_shown_on_one_plain_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    key = '"a\\u001B[2Jb\\nc\\u202Ed' + "e" * 5_000 + '" = 1\n'
    warned = 'game = "tic_tac_toe"\n{}[made_with]\nazpy = "0.0.1\\u001B[2J\\nx"\n'.format(key.replace("e", ""))
    for name, text, code in (("error", key, 2), ("warning", warned, 0)):
        Path(f"{name}.toml").write_text(text)
        assert main(["--config", f"{name}.toml", "--collect-only", *TINY, "--iterations", "1", "--out", name]) == code
        said = capsys.readouterr().err
        assert said.startswith(f"az-train: {name}.toml: ab c d")
        assert said.count("\n") == 1
        assert said.removesuffix("\n").isprintable()
        assert len(said) < 2_100


def test_names_that_are_not_utf_8_are_printed_escaped(tmp_path: Path) -> None:
    command = az("train", "tic_tac_toe", "--collect-only", *TINY, "--iterations", "1", "--out=r\udcff")
    done = ended(command, cwd=tmp_path)
    assert (done.code, done.errors) == (0, "")
    assert "run folder r\\udcff" in done.out


def test_a_run_says_how_to_repeat_it_and_the_repeat_is_the_same(
    starts: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("azpy.learning.learner.usable_cores", lambda: 1)  # as in the other process
    assert main(["tic_tac_toe", *TRAINED, "--deterministic", "--iterations", "1", "--out", "my run"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("preset for tic_tac_toe: temperature_plies 6, opening_plies 2, ")
    command = "az-train --config 'my run/config.toml' --out 'my run-again'"
    assert said.splitlines()[-1] == f"to repeat this run: {command}"
    config = (tmp_path / "my run/config.toml").read_text()
    assert f"#   {command}\n" in config
    again = starts.finish(*shlex.split(command)[1:], folder=tmp_path)  # another process
    assert "preset" not in again.output
    assert (tmp_path / "my run-again/config.toml").read_text() == config.replace("my run", "my run-again")
    for name in ("games/000001.npz", "checkpoints/000001/model.safetensors"):
        assert (tmp_path / "my run-again" / name).read_bytes() == (tmp_path / "my run" / name).read_bytes()


def commands_after(output: str) -> dict[str, list[str]]:
    """The arguments that az-train says to go on with, by what they do."""
    lines = [line.split(": ", 1) for line in output.splitlines() if re.match(r"to [a-z ]+: az-", line)]
    return {what: shlex.split(command) for what, command in lines}


@pytest.mark.parametrize(
    ("game", "folder"),
    [("tic_tac_toe", "-it's"), ("typed_heap:Heap", "random")],  # random is a player
)
def test_the_commands_that_a_run_ends_with_can_be_typed(
    game: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    from sound_games import HEAP

    (tmp_path / "typed_heap.py").write_text(HEAP)
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = ("az-train", "az-replay", "az-export", "az-match", "az-play")
    mains = {name: importlib.import_module(f"azpy.cli.{name[3:]}").main for name in names}
    assert main([game, "--collect-only", *TINY, "--iterations", "1", f"--out={folder}"]) == 0
    collected = commands_after(capsys.readouterr().out)
    steps = ["to collect more", "to look at a game", "to get training arrays", "to train on these games"]
    assert list(collected) == steps
    trained: dict[str, list[str]] = {}
    for command in collected.values():
        assert mains[command[0]](command[1:]) == 0, command
        trained = commands_after(capsys.readouterr().out) if command[0] == "az-train" else trained
    steps = ["to play", "to train longer", "to look at a game", "to play a match", "to export the model"]
    assert list(trained) == steps
    trained["to play"] += ["--terminal"]
    trained["to play a match"] += ["--games", "2"]
    monkeypatch.setattr("builtins.input", lambda _: "quit")
    for command in trained.values():
        assert mains[command[0]](command[1:]) == 0, command
    model = f"{folder}.onnx"
    left = {path.name for path in tmp_path.iterdir()} - {"typed_heap.py", "__pycache__"}
    assert left == {folder, f"{folder}.npz", model}
    assert (tmp_path / model).read_bytes() == (tmp_path / folder / "checkpoints/000004/model.onnx").read_bytes()


@pytest.mark.parametrize(
    ("game", "settings", "done", "texts"),
    [
        ("hex", {}, Finished("my runs/t", 0, 1.0, has_model=True), ["to play: az-play 'my runs/t'"]),
        ("heap:Heap", {}, Finished("t", 3, 1.0), ["to play: az-play t --game heap:Heap"]),
        ("hex", {}, Finished("runs/t", 0, 1.0), ["to train longer: az-train hex --out runs/t"]),
        ("hex", {}, Finished("runs/t", 3, 1.0, collected=9), ["to collect more: az-train hex --out runs/t"]),
        ("hex", {"minutes": 5.0}, Finished("t", 9, 301.4), ["to train longer: az-train hex --out t --minutes=10"]),
        ("hex", {"iterations": 1}, Finished("t", 3, 1.0), ["to train longer: az-train hex --out t --iterations=6"]),
        ("hex", {}, Finished("t", 3, 1.0, repeatable=True), ["to repeat this run: az-train --config t/config.toml"]),
    ],
    ids=itertools.count(),
)
def test_the_end_of_a_run_names_the_next_steps(
    game: str, settings: dict[str, Any], done: Finished, texts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    _say_next(Settings(game, **settings), done, ())
    said = capsys.readouterr().out
    for text in texts:
        assert text in said
    has_model = done.collected is None and (done.iteration > 0 or done.has_model)
    assert ("to play: " in said, "to play a match: " in said) == (has_model, has_model)


def test_a_run_without_an_iteration_says_its_model(capsys: pytest.CaptureFixture[str]) -> None:
    none = "no model yet, because no iteration is done: give the run more time"
    for has_model, said in ((False, none), (True, "model in runs/t/checkpoints/000000/model.onnx")):
        Display().show(Finished("runs/t", 0, 1.0, has_model=has_model))
        assert capsys.readouterr().out == f"done: 0 iterations in 0:01, {said}\n"


def test_list_games_shows_every_game_and_its_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-games"]) == 0
    shown = capsys.readouterr().out
    for game in azpy.list_games():
        assert re.search(rf"^{game}\b", shown, re.MULTILINE)
    preset = "network 3x128, games_per_iteration 500, match_opening_plies 2"
    assert f"pig(target=20)\n    preset: {preset}\n" in shown


def test_a_game_in_python_has_no_presets_of_its_module_s_name() -> None:
    assert settings_from(["pig:Mine"])[0] == combine({"game": "pig:Mine"})
    assert settings_from(["\u00e9t\u00e9:\u00c9t\u00e9"])[1] == "runs/\u00e9t\u00e9-\u00c9t\u00e9"


def test_no_space_for_the_output_is_one_line() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = ended(az("train", "--list-games"), stdout=full)
    assert done == (2, "", "az-train: no space left for what it prints: free some and run again\n")


@pytest.mark.parametrize("name", ["", "nosuch"])
def test_an_unknown_command_is_named(name: str) -> None:
    done = ended([sys.executable, "-m", "azpy", *name.split()])
    assert done.code == 1
    assert done.errors.startswith("expected python -m azpy NAME ..., with a NAME of bench, check-game, ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("play --help", "Usage: az-play"),
        ("match mcts random --game nowhere:Game", "no module nowhere: Python looks in the current folder (which was"),
        ("check_game --new mine", "az-check-game: mine cannot be used: No such file or directory\n"),
        ("export run --web page", "az-export: the current folder was deleted: change to another one\n"),
    ],
)
def test_a_deleted_folder_is_one_line(arguments: str, said: str, tmp_path: Path) -> None:
    here, (name, *flags) = tmp_path / "gone", arguments.split()
    here.mkdir()
    text = f"import os; os.chdir({str(here)!r}); os.rmdir({str(here)!r}); from azpy.cli.{name} import main; main()"
    done = program(text, *flags)
    assert said in done.out + done.errors
    assert done.errors.count("\n") == ("--help" not in flags)
