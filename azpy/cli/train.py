"""`az-train GAME`: trains a player from zero knowledge; the same command goes on where it stopped.

Exit codes: 0 the run is done, 2 something the user can put right (one line on stderr), 130 interrupted.
"""

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from azpy._core import EvaluatorError, GameError
from azpy.cli.progress import Display
from azpy.errors import AzpyError, SettingsError
from azpy.settings import Settings, auto_eval_batch

# Settings that suit a game; a flag given on the command line wins.
PRESETS: dict[str, dict[str, Any]] = {
    "connect_four": {"network": "4x32", "temperature_plies": 12, "opening_plies": 4},
    "tic_tac_toe": {
        "network": "2x32",
        "simulations": 50,
        "games_per_iteration": 2000,
        "temperature_plies": 6,
        "opening_plies": 2,
        "match_opening_plies": 1,
        "window_min": 10_000,
    },
    "pig": {"network": "3x128", "games_per_iteration": 500, "match_opening_plies": 2},
    "dice_nim": {"network": "3x128", "games_per_iteration": 500, "match_opening_plies": 0},
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line instead of the usage."""
        raise SettingsError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="az-train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("game", help="NAME, 'NAME(key=1,key=2)', or module:Class for a game written in Python")
    add("--eval-batch", metavar="N|auto", help="leaves of one tree in a call of the network (default 8)")
    add("--simulations", type=int, help="simulations a move")
    add("--slots", type=int, help="games in play, over all pipelines")
    add("--pipelines", type=int, help="threads of self-play")
    add("--network", metavar="BxC", help="blocks x channels of the residual net, or layers x width for flat features")
    add("--minutes", type=float, help="length of the whole run, parts before an interruption included")
    add("--iterations", type=int, help="iterations of the whole run; without it and --minutes: until interrupted")
    add("--games-per-iteration", type=int, help="self-play games between two generations")
    add("--match-every", type=int, metavar="ITERATIONS", help="iterations between two matches")
    add("--match-games", type=int, help="games of a match against each opponent")
    add("--learning-rate", type=float, help="peak learning rate")
    add("--seed", type=int, help="fixes weights, games and batches")
    add("--deterministic", action="store_true", default=None, help="the same seed gives the same run, bit for bit")
    add("--out", metavar="FOLDER", help="the run folder (default runs/GAME)")
    return parser


def settings_from(arguments: Sequence[str]) -> tuple[Settings, str]:
    """The settings and the run folder that a command line names.

    Raises:
        SettingsError: a flag that is unknown or out of range.
    """
    given = {name: value for name, value in vars(_parser().parse_args(arguments)).items() if value is not None}
    name = re.split(r"[(:]", given["game"])[0].strip()
    out = given.pop("out", None) or "runs/" + re.sub(r"[^A-Za-z0-9_]+", "-", given["game"]).strip("-")
    chosen = PRESETS.get(name, {}) | given
    eval_batch = chosen.pop("eval_batch", "8")
    defaults = Settings("")
    if eval_batch == "auto":
        slots, pipelines = chosen.get("slots", defaults.slots), chosen.get("pipelines", defaults.pipelines)
        chosen["eval_batch"] = auto_eval_batch(slots, pipelines)
    else:
        try:
            chosen["eval_batch"] = int(eval_batch)
        except ValueError:
            raise SettingsError(f"eval_batch must be a whole number or auto, got {eval_batch!r}") from None
    return Settings(**chosen), out


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    display = Display()
    try:
        settings, out = settings_from(arguments)
        from azpy.trainer import Trainer  # after the arguments: torch takes seconds to load

        with Trainer(settings, out) as trainer, display:
            for event in trainer.run():
                display.show(event)
    except (AzpyError, GameError, EvaluatorError) as error:
        return _fail(" ".join(str(error).split()))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("torch", "onnx", "onnxscript", "onnxruntime", "safetensors"):
            raise
        return _fail(f'{error.name} is not installed: pip install "azpy[cpu,train]"')
    except KeyboardInterrupt:
        print(f"stopped; every finished game is saved. Go on with: {shlex.join(['az-train', *arguments])}", flush=True)
        return 130
    return 0


def _fail(message: str) -> int:
    print(f"az-train: {message}", file=sys.stderr, flush=True)
    return 2


if __name__ == "__main__":
    sys.exit(main())
