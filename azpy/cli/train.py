"""`az-train GAME`: trains a player from zero knowledge; the same command goes on where it stopped.

Exit codes: 0 the run is done, 2 something the user can put right (one line on stderr), 130 interrupted,
141 nobody reads the output any more.
"""

import dataclasses
import re
import sys
from collections.abc import Sequence
from typing import Any

from azpy.cli.common import Parser, run_command
from azpy.cli.progress import Display
from azpy.errors import SettingsError
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


def _parser() -> Parser:
    parser = Parser("az-train", __doc__)

    def add(flag: str, text: str, **options: Any) -> None:
        default = getattr(Settings, flag.removeprefix("--").replace("-", "_"), None)
        suffix = "" if default is None or default is False else f" (default {default})"
        parser.add_argument(flag, help=(text + suffix).replace("%", "%%"), **options)

    parser.add_argument("game", help="NAME, 'NAME(key=1,key=2)', or module:Class for a game written in Python")
    parser.add_argument("--out", metavar="FOLDER", help="the run folder (default runs/GAME)")
    add("--minutes", "length of the whole run, parts before an interruption included", type=float)
    add("--iterations", "iterations of the whole run; without it and --minutes: until interrupted", type=int)
    add("--network", "blocks x channels of the residual net, or layers x width for flat features", metavar="BxC")
    add("--eval-batch", "leaves of one tree in a call of the network", metavar="N|auto")
    add("--simulations", "simulations a move, in self-play and in matches", type=int)
    add("--slots", "games in play, over all pipelines", type=int)
    add("--pipelines", "threads of self-play", type=int)
    add("--threads", "threads that grow the trees (default one a core)", type=int)
    add("--games-per-iteration", "self-play games between two generations", type=int)
    add("--match-every", "iterations between two matches", type=int, metavar="ITERATIONS")
    add("--match-games", "games of a match against each opponent", type=int)
    add("--learning-rate", "peak learning rate", type=float)
    add("--seed", "fixes weights, games and batches", type=int)
    add("--deterministic", "the same seed gives the same run, bit for bit", action="store_true", default=None)
    # The rest as `Settings` describes them.
    described = dict(re.findall(r"^ +(\w+): (.+)$", Settings.__doc__ or "", re.MULTILINE))
    listed = {action.dest for action in parser._actions}
    for field in dataclasses.fields(Settings):
        if field.name not in listed:
            text = described.get(field.name, "").removesuffix(".")
            add("--" + field.name.replace("_", "-"), text, type=type(field.default), metavar="N")
    parser.epilog = f"Games with defaults of their own: {', '.join(PRESETS)}; a run's config.toml holds what it uses."
    return parser


def settings_from(arguments: Sequence[str]) -> tuple[Settings, str]:
    """The settings and the run folder that a command line names.

    Raises:
        SettingsError: a flag that is unknown or out of range.
    """
    given = {name: value for name, value in vars(_parser().parse_args(arguments)).items() if value is not None}
    name = given["game"].partition("(")[0].strip()  # module:Class is no preset's name
    out = given.pop("out", None) or "runs/" + re.sub(r"[^A-Za-z0-9_]+", "-", given["game"]).strip("-")
    chosen = PRESETS.get(name, {}) | given
    eval_batch = chosen.pop("eval_batch", Settings.eval_batch)
    if eval_batch == "auto":
        slots, pipelines = chosen.get("slots", Settings.slots), chosen.get("pipelines", Settings.pipelines)
        chosen["eval_batch"] = auto_eval_batch(slots, pipelines)
    else:
        try:
            chosen["eval_batch"] = int(eval_batch)
        except ValueError:
            raise SettingsError(f"eval_batch must be a whole number or auto, got {eval_batch!r}") from None
    return Settings(**chosen), out


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_command(
        "az-train", _train, arguments, stopped="stopped; every finished game is saved. Go on with: {command}"
    )


def _train(arguments: Sequence[str]) -> int:
    settings, out = settings_from(arguments)
    display = Display()
    from azpy.trainer import Trainer  # after the arguments: torch takes seconds to load

    with Trainer(settings, out) as trainer, display:
        for event in trainer.run():
            display.show(event)
    return 0


if __name__ == "__main__":
    sys.exit(main())
