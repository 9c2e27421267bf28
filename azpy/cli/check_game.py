"""Test the rules of a game, and show a short line of play that breaks one.

az-check-game --new my_game
az-check-game countdown:Countdown
az-check-game "hex(size=5)" --seconds 60
"""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from azpy.checks.check_game import Report, check_game
from azpy.checks.faults import Broken
from azpy.checks.new import new_game
from azpy.checks.traces import traces
from azpy.cli.common import GAME, Parser, add_number, add_setting, command, not_empty
from azpy.cli.progress import Screen
from azpy.errors import SettingsError
from azpy.runs import storage

_PLAIN_SECONDS = 10.0  # how often it says where it is, without a terminal
_MOST_NAMES = 40  # actions of a game that are shown, the last ones
_MOST_RESULTS = 8  # outcomes that are shown: with several players there are many


def _check(arguments: Sequence[str]) -> int:
    parser = Parser("az-check-game", __doc__, "docs/start/own_game.md")
    parser.add_argument("game", type=not_empty, metavar="GAME", help=GAME)
    add, _ = parser.section("Options")
    add_number(add, "--seconds", "time limit of the whole check", 30.0, kind=float, low=0, above=True)
    add_number(add, "--games", "maximum number of random games", 200, low=0)
    add_setting(add, "seed", "seed of the random games", 0)
    add("--json", action="store_true", help="print the findings as one JSON object")
    text = "also write N random games, one JSON object per line"
    add("--traces", nargs=2, metavar=("N", "FILE"), help=text)
    add, _ = parser.section("A new game")
    add("--new", action="store_true", help="write a game to start from into the new folder GAME")
    add("--rust", action="store_true", help="with --new: also write the game as a crate in Rust")
    given = parser.parse_args(arguments)
    if given.new:
        kept = ("game", "new", "rust")
        for name in (name for name, value in vars(given).items() if value != parser.get_default(name)):
            if name not in kept:
                raise SettingsError(f"--{name} does not go with --new")
        _new(given.game, given.rust)
        return 0
    if given.rust:
        raise SettingsError("--rust goes with --new")
    count, file = given.traces or ("0", "")
    if file and not re.fullmatch("[1-9][0-9]{0,8}", count):
        raise SettingsError(f"--traces {count[:40]}: expected a number of games above 0")
    number = int(count)
    with Screen() as screen:

        def show(stage: str, done: float, text: str) -> None:
            if not given.json:  # stdout is for a program
                screen.progress(stage, [text or "begun"], done, _PLAIN_SECONDS)

        report = check_game(given.game, games=given.games, seconds=given.seconds, seed=given.seed, on_progress=show)
        if number and report.failure is None:
            with storage.output(file) as out:
                for game in traces(given.game, number, given.seed):
                    out.write(json.dumps(game).encode() + b"\n")
                    show("traces", (game["game_id"] + 1) / number, f"{game['game_id'] + 1} of {number} games")
    print(json.dumps(_found(report)) if given.json else "\n".join(_text(report)), flush=True)
    return int(report.failure is not None)


def _new(name: str, rust: bool) -> None:
    spec = new_game(name, rust)
    run = f"runs/{spec.replace(':', '-')}"
    print(f"wrote {name}, a game of pawns to change into yours. Next:\n\n    cd {name}")
    print(f"    az-check-game {spec}\n    az-train {spec} --minutes 2\n    az-play {run} --game {spec}")
    if rust:
        print(f"\nIn Rust:\n\n    pip install .\n    az-check-game {name}\n    az-train {name} --minutes 2")


def _found(report: Report) -> dict[str, Any]:
    """Return a report as JSON can hold it."""
    findings = [] if report.failure is None else [("fault", report.failure)]
    findings += [("warning", warning) for warning in report.warnings]
    return {
        "game": report.game,
        "passed": report.failure is None,
        "findings": [{"kind": kind, **_as_dict(broken)} for kind, broken in findings],
        "positions": report.positions,
        "complete": report.complete,
        "games": report.games,
        "outcomes": [[outcome, count] for outcome, count in report.results.most_common()],
        "example": report.example and {**asdict(report.example[0]), "result": report.example[1]},
        "seconds": round(report.seconds, 3),
    }


def _as_dict(broken: Broken) -> dict[str, Any]:
    named = {name: getattr(broken, name) for name in ("rule", "holds", "got", "expected", "advice", "place")}
    lines = zip([line for line in (broken.line, broken.other) if line is not None], broken.shown, strict=True)
    return named | {"lines": [{"actions": line, **asdict(shown)} for line, shown in lines]}


def _text(report: Report) -> list[str]:
    failure = report.failure
    if failure is not None:
        lines = [f"{report.game} breaks the rule {failure.rule}: {failure.holds}", *_finding(failure)]
        return [*lines, "", f"Found after {report.seconds:.1f} s and {report.positions:,} correct positions."]
    lines = [f"{report.game} passed all checks:"]
    lines += [f"  - {line}" for line in _proved(report)]
    if report.example is not None:
        shown, result = report.example
        names = shown.names
        first = "..., " if len(names) > _MOST_NAMES else ""
        lines += ["", f"The shortest random game, of {_plies(len(names))}: {first}{', '.join(names[-_MOST_NAMES:])}"]
        lines += [
            *(f"    {row}" for row in shown.board.splitlines()),
            f"  result: {result}",
            "  Is this what your rules say?",
        ]
    for warning in report.warnings:
        lines += ["", f"Warning ({warning.rule}): usually {warning.holds}", *_finding(warning)]
    return lines


def _finding(finding: Broken) -> list[str]:
    lines = []
    for begin, shown in zip(("", "and "), finding.shown, strict=False):
        after = f"after {_plies(len(shown.names))}: {', '.join(shown.names)}" if shown.names else "at the start"
        lines += [f"  {begin}{after}", *(f"    {row}" for row in shown.board.splitlines())]
    return [*lines, f"  got:      {finding.got}", f"  expected: {finding.expected}", f"  to do:    {finding.advice}"]


def _outcome(value: float | tuple[float, ...]) -> str:
    """A number, or one number a player."""
    return f"{value:+g}" if isinstance(value, float) else f"({', '.join(f'{own:+g}' for own in value)})"


def _plies(number: int) -> str:
    return f"{number} {'ply' if number == 1 else 'plies'}"


def _proved(report: Report) -> list[str]:
    reach = "the whole game" if report.complete else f"the first {_plies(report.depth)} of all games"
    lines = [f"{report.positions:,} distinct positions; {report.lines:,} lines of play from the start: {reach}"]
    if report.games:
        shortest, longest = report.lengths or (0, 0)
        results = sorted(report.results.items(), reverse=True)
        more = ""
        if not report.zero_sum and len(results) > _MOST_RESULTS:
            results = report.results.most_common(_MOST_RESULTS)
            more = f", and {len(report.results) - _MOST_RESULTS} other outcomes"
        shown = ", ".join(f"{_outcome(value)} in {count}" for value, count in results)
        whose = "outcomes for player 0" if report.zero_sum else "outcomes"
        lines.append(f"{report.games:,} random games to the end; {whose}: {shown}{more}")
        lines.append(f"games of {shortest} to {_plies(longest)}; max_plies is {report.max_plies}")
    lines += [
        "legal actions, observations and keys are valid, and the same however a position is reached",
        "clones are independent",
        f"{report.met_again:,} positions were met again: equal keys, equal positions, equal futures",
    ]
    if report.hides:
        lines.append("a view_key says all that its player has seen and done, and the player sees nothing else")
        lines.append(report.exploitability)
    if report.symmetries:
        lines.append(f"{report.symmetries} symmetries have inverses, and games follow {report.mirrored} of them")
    if report.elsewhere:
        lines.append(f"{report.elsewhere} positions have the same key and observation in a second Python process")
    return [*lines, f"took {report.seconds:.1f} s"]


main = command("az-check-game", _check)
