"""Compare two training settings: train both over several seeds, then play matches.

az-compare connect_four "passes=2" "passes=4" --total-evaluations 2000000
az-compare connect_four "" "network=6x64" --minutes 10 --seeds 3
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from azpy.cli.common import GAME, Parser, add_number, add_setting, columns, command
from azpy.cli.progress import Display
from azpy.errors import SettingsError
from azpy.matches.query import parse_query
from azpy.matches.ratings import elo, mean_interval
from azpy.matches.results import told
from azpy.runs import storage
from azpy.settings.choosing import warn_of_idle
from azpy.settings.run import checked
from azpy.training.comparison import Comparison

_EQUAL = 0.01  # work that differs by no more is equal: an iteration's games are played to their ends


def _compare(arguments: Sequence[str]) -> int:
    parser = Parser("az-compare", __doc__, "docs/guides/measuring.md")
    add = parser.add_argument
    add("game", metavar="GAME", help=GAME)
    add("a", metavar="A", help='settings of side A, such as "passes=4&batch_size=256"')
    add("b", metavar="B", help='settings of side B; "" is the game\'s preset')
    add, _ = parser.section("Training")
    add_setting(add, "total_evaluations", "length of each training, in evaluations of self-play")
    add_setting(add, "minutes", "length of each training, in place of --total-evaluations")
    add_number(add, "--seeds", "train with seeds 0, 1, ... below this number", 5, low=1)
    add("--common", default="", metavar="SETTINGS", help="settings of both sides, such as network=4x32")
    add("--out", metavar="FOLDER", help="folder of the runs (default: runs/compare-GAME)")
    add, _ = parser.section("Matches")
    add_number(add, "--games", "games of A per match (default: 200, or a few more)", low=1)
    add_setting(add, "simulations", "simulations per move", 100)
    add("--json", action="store_true", help="print only the result, as JSON")
    given = parser.parse_args(arguments)
    a, b, common = (_settings(text) for text in (given.a, given.b, given.common))
    out = Path(given.out or "runs/compare-" + re.sub(r"\W+", "-", given.game).strip("-"))
    lengths = ("total_evaluations", "minutes")
    work = {name: value for name in lengths if (value := vars(given).get(name)) is not None}
    if len(work) != 1:
        raise SettingsError("give the length of each training, as --total-evaluations N or as --minutes X")
    comparison = Comparison(out, given.game, work, common, given.games, given.simulations)
    pairs = zip(*(asdict(comparison.settings(arm, 0)).items() for arm in (a, b)), strict=True)
    differ = {name: (one, other) for (name, one), (_, other) in pairs if one != other}
    for arm in (a, b):
        warn_of_idle(comparison.settings(arm, 0), common | arm, supervised=False)
    if not differ:
        raise SettingsError(f"A and B are the same settings: {given.a!r} and {given.b!r}")
    # All of it: a preset may give way to one of the settings.
    said = f"A and B differ in {', '.join(f'{name}: {one} and {other}' for name, (one, other) in differ.items())}"
    rows = []
    with ExitStack() as held, Display(quiet=given.json) as display:
        with storage.disk_errors(out):  # two would replace each other's rows
            held.callback(os.close, storage.lock_folder(out))
        display.line(said)
        for seed in range(given.seeds):
            rows.append(comparison.run(a, b, seed, display.show))
            display.line(f"seed {seed}: A scores {rows[-1]['score']:.3f}")
    is_alone = rows[0].get("players") == 1  # the rows of two players do not say it
    what, least, most = ("difference", -2.0, 2.0) if is_alone else ("score", 0.0, 1.0)
    found = [row[what] for row in rows]
    low, high = mean_interval(found, least, most) or (None, None)
    summary = {"n": len(found), what: sum(found) / len(found), "low": low, "high": high}
    text = json.dumps(summary | {"seeds": rows}) if given.json else "\n".join([said, *_table(rows, summary)])
    print(text, flush=True)
    return 0


def _settings(text: str) -> dict[str, Any]:
    try:
        return parse_query(text, partial(checked, typed=True)) if text else {}
    except SettingsError as error:
        raise SettingsError(f"settings {text!r}: {error}") from None


def _table(rows: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]) -> list[str]:
    players = int(rows[0].get("players", 2))
    what, ends, form = ("score of A", ("score", "low", "high"), ".3f")
    if players == 1:
        what, ends, form = ("A minus B", ("difference", "difference_low", "difference_high"), "+.3f")
    cells = [["seed", what, "of this match", "evaluations of A, B", "rows fitted of A, B"]]
    for row in rows:
        work = ["{:,}, {:,}".format(*row[name]) for name in ("evaluations", "rows_fitted")]
        mean, low, high = (format(row[name], form) for name in ends)
        cells.append([str(row["seed"]), mean, f"[{low}, {high}]", *work])
    lines = columns(cells, ">>>>>") + _unequal(rows)
    low, high, mean, n = summary["low"], summary["high"], summary[ends[0]], summary["n"]
    if low is None:
        return [*lines, f"{what} {mean:{form}}, n = {n}, interval unknown: give more --seeds, until scores differ"]
    text = told(mean, (low, high), form)
    if players > 1:
        of, *bounds = (elo(score, players - 1) for score in (mean, low, high))
        text += f", Elo {told(of, (bounds[0], bounds[1]), '+.0f')}"
    return [*lines, f"{what} {text} (95 % over n = {n} seeds, Student's t)"]


def _unequal(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each kind of work that one side had more of than the other, over all seeds."""
    lines = []
    for name, what in (("evaluations", "evaluations of self-play"), ("rows_fitted", "rows fitted")):
        a, b = (sum(row[name][side] for row in rows) for side in (0, 1))
        if abs(a - b) > _EQUAL * max(a, b):
            lines.append(f"unequal work: A had {a:,} {what} and B {b:,}; this may explain part of the difference")
    return lines


main = command("az-compare", _compare, stopped="stopped. Resume with: {command}")
