"""What all commands share: help that fits on a screen, errors of one line, and exit codes."""

import argparse
import contextlib
import errno
import importlib
import inspect
import io
import os
import re
import shlex
import shutil
import signal
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn

from azpy._core import EvaluatorError, GameError, __version__
from azpy.devices import CPU, Device
from azpy.errors import AzpyError, SettingsError, SettingsWarning, did_you_mean, one_line
from azpy.games.names import is_python_class
from azpy.settings.about import About
from azpy.settings.run import ABOUT, checked, default_of
from azpy.system import ENDING, current_folder

GAME = "NAME, 'NAME(key=1,key=2)', module:Class or open_spiel:NAME"
GAME_OF_RUN = "game of the run (module:Class); required for games written in Python"
_WIDTH = 100  # of a help, at most
_FLAGS_WIDTH = 25  # of the column of flags

Add = Callable[..., Any]  # `add_argument` of a parser or of a section


class Parser(argparse.ArgumentParser):
    """A parser whose help fits on a screen, and whose errors are one line.

    Args:
        prog: the command.
        text: what the command does, in a sentence. Commands to copy follow after an empty line.
        page: the page of the documentation that says more.
    """

    def __init__(self, prog: str, text: str | None, page: str) -> None:
        # With abbreviations argparse would take --no-match for --no-match-solver.
        super().__init__(prog=prog, description=text, epilog=f"More: {page}", add_help=False, allow_abbrev=False)
        self._rare = set[argparse.Action]()
        self._positionals.title, self._optionals.title = "Arguments", "Help"
        self.add_argument("-h", "--help", action=_Help, nargs=0, help="show the most used options")
        self.add_argument("--help-all", action=_Help, nargs=0, help="show all options")
        self.add_argument(
            "--version", action="version", version=f"{prog} {__version__} (azpy)", help="show the version"
        )
        with contextlib.suppress(ImportError):
            shtab = importlib.import_module("shtab")
            shtab.add_argument_to(self, "--print-completion", help="print a completion script for this shell")

    def section(self, title: str) -> tuple[Add, Add]:
        """Begin a section of the help.

        Returns:
            Functions that add an option to the section: one that `--help` shows, and one that only `--help-all` shows.
        """
        group = self.add_argument_group(title)

        def rare(*flags: str, **options: Any) -> None:
            self._rare.add(group.add_argument(*flags, **options))

        return group.add_argument, rare

    def format_help(self, everything: bool = False) -> str:
        """Return the help, with all options or with the most used ones."""
        sentence, _, examples = inspect.cleandoc(self.description or "").partition("\n\n")
        words = [self.prog, "[OPTIONS]", *(_name(one) for one in self._actions if one.required and one.option_strings)]
        words += [f"[{_name(one)}]" if one.nargs == "?" else _name(one) for one in self._positionals._group_actions]
        parts = [
            sentence,
            f"Usage: {' '.join(words)}",
            f"Examples:\n{textwrap.indent(inspect.cleandoc(examples), '  ')}",
        ]
        arguments, flags, *sections = self._action_groups  # argparse makes the first two
        for section in (arguments, *sections, flags):
            shown = [one for one in section._group_actions if everything or one not in self._rare]
            if shown:
                parts.append("\n".join([f"{section.title}:", *(_entry(one, everything) for one in shown)]))
        return "\n\n".join([*parts, f"{self.epilog}\n"])

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the version; argparse itself would ignore a closed pipe."""
        print(message, end="", file=file)

    def error(self, message: str) -> NoReturn:
        """One line in place of the usage; the nearest known flag to an unknown one, help for a missing argument."""
        unknown = message.removeprefix("unrecognized arguments: ")
        if unknown != message and unknown.startswith("-"):
            flag = unknown.partition(" ")[0].partition("=")[0]
            message = f"{flag}: no such flag{did_you_mean(flag, self._option_string_actions)}"
        flag, refused, value = message.partition(": ignored explicit argument ")
        if refused:
            message = f"{flag}: expected no value, got {value}"
        missing = message.removeprefix("the following arguments are required: ")
        if missing != message:
            about = {str(one.metavar or one.dest): one.help for one in self._positionals._group_actions}
            about |= {flag: one.help for flag, one in self._option_string_actions.items()}
            message = "; ".join(f"{name} is missing: expected {about[name]}" for name in missing.split(", "))
        raise SettingsError(f"{message.removeprefix('argument ')} (see {self.prog} --help)")


class _Help(argparse.Action):
    """Prints the help."""

    def __call__(self, parser: Any, _: Any, __: Any, flag: str | None = None) -> None:
        """See argparse."""
        print(parser.format_help(everything=flag == "--help-all"), end="")
        parser.exit()


def _name(option: argparse.Action) -> str:
    """Return an option or an argument as a usage line has it."""
    more = "..." if option.nargs == "+" else ""
    named = option.metavar or option.dest.upper()
    value = f"{named if isinstance(named, str) else ' '.join(named)}{more}" if option.nargs != 0 else ""
    if isinstance(option, argparse.BooleanOptionalAction):
        return f"--[no-]{option.option_strings[0].removeprefix('--')}"
    return " ".join(filter(None, (", ".join(option.option_strings), value)))


def _entry(option: argparse.Action, everything: bool) -> str:
    """Return the lines of an option: its flags, help, allowed values if `everything` is shown, and default."""
    text, name = option.help or "", _name(option)
    if everything and (allowed := getattr(option, "allowed", "")):
        head, bracket, tail = text.partition(" (default: ")
        text = f"{head} [{allowed}]{bracket}{tail}"
    width = min(_WIDTH, shutil.get_terminal_size().columns) - _FLAGS_WIDTH - 2
    text = text.replace("(default: ", "(default:\u00a0")  # which wrap keeps on one line
    lines = [line.replace("\u00a0", " ") for line in textwrap.wrap(text, max(width, 20), break_on_hyphens=False)]
    if len(name) > _FLAGS_WIDTH - 2:
        lines.insert(0, "")
    return "\n".join(f"  {name if not at else '':<{_FLAGS_WIDTH}}{line}".rstrip() for at, line in enumerate(lines))


class _Checked(argparse.Action):
    """Stores what `parsed` makes of a text; `allowed` are its values in words."""

    def __init__(self, *flags: Any, parsed: Callable[[str], Any], allowed: str = "", **options: Any) -> None:
        super().__init__(*flags, **options)
        self._parsed, self.allowed = parsed, allowed

    def __call__(self, _: argparse.ArgumentParser, namespace: argparse.Namespace, text: Any, __: Any = None) -> None:
        """See argparse."""
        setattr(namespace, self.dest, self._parsed(text))


_METAVARS: dict[type, str] = {int: "N", float: "X", str: "TEXT"}
_WORDS = {None: "none", True: "on", False: "off"}  # defaults as helps show them


def add_number(add: Add, flag: str, text: str, default: float | None = None, **limits: Any) -> None:
    """Add a flag for a number, a whole one unless `kind` is float, with `limits` as `About` has them."""
    about = About(text, "run", **({"kind": int} | limits))
    parsed = partial(about.checked, flag, typed=True)
    shown = text if default is None else f"{text} (default: {default:.15g})"
    options: dict[str, Any] = {"parsed": parsed, "allowed": about.range, "metavar": _METAVARS[about.kind]}
    add(flag, action=_Checked, default=default, help=shown, **options)


def add_device(add: Add) -> None:
    """Add --device, for commands where it is not a setting of a run."""
    text = "where models run: cpu, cuda[:N], tensorrt[:N], webgpu, openvino, azpy or auto (default: cpu)"
    add("--device", action=_Checked, parsed=Device.read, metavar="DEVICE", default=CPU, help=text)


def add_setting(add: Add, name: str, text: str | None = None, default: Any = None) -> None:
    """Add the flag of a setting, which checks its value.

    Args:
        add: of a parser or a section.
        name: of the setting.
        text: the help. None takes the setting's own help, and its default in a run.
        default: None leaves the setting out of the namespace if it is not given: None is a value, typed as `none`.
    """
    flag, about = "--" + name.replace("_", "-"), ABOUT[name]
    shown = default_of(name) if text is None else default
    if shown is not None or text is None:
        word = _WORDS[shown] if shown is None or isinstance(shown, bool) else shown
        word = f"{word:.15g}" if isinstance(word, float) else word
        text = f"{text or about.help} (default: {word})"
    options: dict[str, Any] = {"default": argparse.SUPPRESS if default is None else default, "help": text}
    if about.kind is bool:
        add(flag, action=argparse.BooleanOptionalAction, **options)
    else:
        options |= {"allowed": about.range, "metavar": _METAVARS[about.kind] + ("|auto" if about.auto else "")}
        add(flag, action=_Checked, parsed=partial(checked, name, typed=True), **options)


def add_player(parser: Parser, simulations: int, several: bool = True, **options: Any) -> None:
    """Add PLAYER and the section of flags that say how it plays.

    Args:
        parser: of the command.
        simulations: the default of --simulations.
        several: whether the command takes more players, by names.
        options: of `add_argument` for PLAYER.
    """
    text = "run, checkpoint, bundled player such as go, model file, mcts:N or uniform:N"
    parser.add_argument("player", type=not_empty, metavar="PLAYER", help=text, **options)
    add, rare = parser.section("Player")
    text = "game for mcts, uniform and model files; required for Python games (default: the run's)"
    add("--game", type=not_empty, metavar="GAME", help=text)
    add_setting(add, "simulations", f"simulations per move (default: {simulations})")
    parser.set_defaults(usual=simulations)
    add_number(rare, "--temperature", "temperature of moves; 0 plays the best", 0.0, kind=float)
    add_number(rare, "--seed", "seed of moves drawn at a temperature or level (default: random)", low=0)
    add_device(add)
    if several:
        text = "add a player that clients choose by NAME"
        add("--model", action="append", type=_player, default=[], metavar="NAME=PLAYER", help=text)


def player_options(given: argparse.Namespace) -> dict[str, Any]:
    """What the flags of `add_player` say, as `open_player` takes it."""
    typed = {name: getattr(given, name) for name in ("game", "device", "temperature", "seed")}
    return typed | {"simulations": vars(given).get("simulations", given.usual)}


# Seconds: `timeout` sends SIGTERM to a process and to its group, and systemd may add SIGHUP: that is one wish to end.
_ONE_SIGNAL = 1.0
_LONGEST = 2_000  # characters of an error


def not_empty(text: str) -> str:
    """The type of an argument that may not be empty, as an unset variable of the shell is."""
    if not text:
        raise argparse.ArgumentTypeError("an empty text, expected a name")
    return text


def numbers(text: str, expected: str) -> range:
    """The numbers that an argument such as 17 or 20-29 names; `expected` begins the error."""
    match = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise SettingsError(f"{expected}, got {text[:40]!r}")
    return range(int(match[1]), int(match[2] or match[1]) + 1)


def _player(text: str) -> tuple[str, str]:
    name, _, player = text.partition("=")
    if not (name and player):
        raise argparse.ArgumentTypeError(f"expected NAME=PLAYER, got {text!r}")
    return name, player


def columns(rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """The lines of a table: columns as wide as their widest cells, each aligned as `align` says, with < or >."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    forms = [f"{{:{side}{width}}}" for side, width in zip(align, widths, strict=True)]
    return ["  ".join(forms).format(*row) for row in rows]


def command(prog: str, function: Callable[[Sequence[str]], int], stopped: str = "stopped") -> partial[int]:
    """The `main` of a command, see `run_command`."""
    return partial(run_command, prog, function, stopped=stopped)


def run_command(
    prog: str, command: Callable[[Sequence[str]], int], arguments: Sequence[str] | None = None, stopped: str = "stopped"
) -> int:
    """Runs a command, a function of its arguments that returns the exit code; returns the exit code.

    The signals of `ENDING` do what Ctrl-C does, with exit codes of their own, for commands without handlers. After any
    of them this function prints `stopped`, with the command line in place of `{command}`; nothing for an empty text.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:
        print(f"{prog}: stdout is closed: let it go to a file, or to {os.devnull}", file=sys.stderr)
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may hold any bytes
    _import_games_from_here(given)
    with _ending_as_ctrl_c() as came:
        try:
            code = _run(prog, command, given, stopped, came)
            sys.stdout.flush()
            return 128 + came[0] if came and code == 130 else code
        except BrokenPipeError:  # such as `| head`
            drop_output()
            return 141
        except OSError as error:
            is_gone = bool(came) and error.errno == errno.EIO  # the terminal, which SIGHUP said
            if not is_gone and error.errno not in (errno.ENOSPC, errno.EDQUOT):  # files of a run raise `RunError`
                raise
        drop_output()
        if is_gone:
            return 128 + came[0]
        with contextlib.suppress(OSError):
            print(f"{prog}: no space left for what it prints: free some and run again", file=sys.stderr, flush=True)
        return 2


def when_told_to_end(handler: Callable[[int, Any], object]) -> dict[int, Any]:
    """Set the handler of the signals of `ENDING`, and return the handlers before.

    Ignored signals stay ignored, as `nohup` has SIGHUP.
    """
    before: dict[int, Any] = {number: signal.getsignal(number) for number in ENDING}
    for number, old in before.items():
        if old is not signal.SIG_IGN:
            signal.signal(number, handler)
    return before


@contextlib.contextmanager
def _ending_as_ctrl_c() -> Iterator[list[int]]:
    """Have the signals of `ENDING` raise what Ctrl-C raises; give those that came.

    It takes a handler: without one the kernel keeps SIGTERM from process 1, the command of a container.
    """
    came: list[int] = []
    first = 0.0

    def stop(number: int, _: object) -> None:
        nonlocal first
        came.append(number)
        first = first or time.monotonic()
        if len(came) == 1 or time.monotonic() - first >= _ONE_SIGNAL:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = when_told_to_end(stop)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _import_games_from_here(given: Sequence[str]) -> None:
    """Makes Python look in the current folder first, if the user typed a Python class or function."""
    specs = [part for argument in given for part in re.split("[=&]", argument)]
    if any(re.fullmatch(r"[\w.]+:[^\W\d]\w*", one) and is_python_class(one) for one in specs):
        here = current_folder()
        sys.path[:0] = [str(here)] if here is not None and str(here) not in sys.path else []


def drop_output() -> None:
    """Drop what is printed from now on, and what Python would write at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(prog: str, command: Callable[[Sequence[str]], int], given: list[str], stopped: str, came: list[int]) -> int:
    try:
        with warnings.catch_warnings():
            # A build of ONNX Runtime for GPUs warns of missing libraries that it may not need.
            warnings.filterwarnings("ignore", module="onnxruntime")
            warnings.showwarning = partial(_show_warning, prog, warnings.showwarning)
            return command(given)
    except SystemExit as error:  # argparse has printed its help or the version
        return int(error.code or 0)
    except (AzpyError, GameError, EvaluatorError) as error:
        if not came:  # a package that was interrupted while it was loaded says that it is damaged
            _complain(prog, error)
            return 2
    except OSError as error:
        what = f"{error.filename} cannot be used: {error.strerror}"
        if error.errno == errno.ENOENT and current_folder() is None:
            what = "the current folder was deleted: change to another one"
        elif error.errno != errno.ENAMETOOLONG:
            raise
        _complain(prog, what)
        return 2
    except BaseException as error:
        if not was_interrupted(error):
            raise
    if stopped:
        print(stopped.replace("{command}", shlex.join([prog, *given])), flush=True)
    return 130


def _complain(prog: str, what: object) -> None:
    print(f"{prog}: {one_line(what, _LONGEST)}", file=sys.stderr, flush=True)


def _show_warning(
    prog: str, otherwise: Callable[..., object], message: Warning | str, category: type[Warning], *rest: Any
) -> None:
    """Shows azpy's own warnings in one line, others as usual."""
    if issubclass(category, SettingsWarning):
        _complain(prog, message)
    else:
        otherwise(message, category, *rest)


def was_interrupted(error: BaseException | None) -> bool:
    """Return whether Ctrl-C or a signal is the cause of an error: torch's exporter raises an error of its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
