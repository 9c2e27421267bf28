"""`az-train GAME`: trains a player from zero knowledge; the same command goes on where it stopped.

Exit codes: 0 the run is done, 2 something the user can put right (one line on stderr), 130 interrupted,
141 nobody reads the output any more.
"""

import argparse
import re
import sys
from collections.abc import Sequence

from azpy.cli.common import Parser, run_command
from azpy.cli.progress import Display
from azpy.presets import PRESETS, preset_of
from azpy.settings import ABOUT, GROUPS, KIND, About, Settings, combine, parse


def _parser() -> Parser:
    parser = Parser("az-train", __doc__)
    parser.add_argument("game", help="NAME, 'NAME(key=1,key=2)', or module:Class for a game written in Python")
    for group in GROUPS:
        section = parser.add_argument_group(group)
        if group == "run":
            section.add_argument("--out", metavar="FOLDER", help="the run folder (default runs/GAME)")
        for name, about in ABOUT.items():
            if about.group == group and name != "game":
                flag, text = "--" + name.replace("_", "-"), _help(name, about)
                if KIND[name] is bool:
                    section.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=text)
                else:
                    section.add_argument(flag, metavar=_metavar(name, about), help=text)
    parser.epilog = f"Games with defaults of their own: {', '.join(PRESETS)}; a run's config.toml holds what it uses."
    return parser


def _help(name: str, about: About) -> str:
    """What, range, default and where that comes from, in one line."""
    text = "; ".join(filter(None, (about.help, about.range)))
    default = getattr(Settings, name)
    if default is not None and default is not False:
        source = "" if about.source == "our choice" else f"; {about.source}"
        text += f" (default {default}{source})"
    return text.replace("%", "%%")


def _metavar(name: str, about: About) -> str:
    """The unit, or what kind of value it is."""
    kind = {int: "N", float: "X", str: "TEXT"}[KIND[name]]
    return (about.unit.upper() or kind) + ("|auto" if about.auto else "")


def settings_from(arguments: Sequence[str]) -> tuple[Settings, str]:
    """The settings and the run folder that a command line names.

    Raises:
        SettingsError: a flag that is unknown or out of range.
    """
    given = {name: value for name, value in vars(_parser().parse_args(arguments)).items() if value is not None}
    out = given.pop("out", None) or "runs/" + re.sub(r"[^A-Za-z0-9_]+", "-", given["game"]).strip("-")
    given = {name: parse(name, value) if isinstance(value, str) else value for name, value in given.items()}
    return combine(preset_of(given["game"]), given), out


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
