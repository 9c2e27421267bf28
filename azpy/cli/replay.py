"""Show stored games of a run with their searches, or check that these repeat.

az-replay runs/connect_four 17
az-replay runs/connect_four 17 20-29 --check
"""

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

from azpy._core import CHANCE, GameRecord
from azpy.cli.common import GAME_OF_RUN, Parser, command, not_empty, numbers
from azpy.errors import ModelError, RunError, SettingsError
from azpy.games.lines import replayed
from azpy.playing.replay_check import ReplayCheck, repeat_game
from azpy.runs.exports import game_as_dict
from azpy.runs.reader import StoredRun, check_rules

_LEGEND = "prior: the network's policy; visits: of the search; target: the share that a network learns"


def _replay(arguments: Sequence[str]) -> int:
    parser = Parser("az-replay", __doc__, "docs/reference/commands.md")
    parser.add_argument("run", type=not_empty, metavar="RUN", help="run folder; it may be in use")
    parser.add_argument("games", metavar="NUMBER", nargs="+", help="numbers of games, such as 17 or 20-29")
    add, _ = parser.section("Options")
    add("--game", metavar="GAME", help=GAME_OF_RUN)
    add("--json", action="store_true", help="print one JSON object per game")
    add("--check", action="store_true", help="repeat the searches, and compare them bit for bit")
    text = "with --check: model of the game, if the run deleted it"
    add("--model", type=not_empty, metavar="FILE", help=text)
    options = parser.parse_args(arguments)
    if options.model and not options.check:
        raise SettingsError("--model goes with --check")
    wanted = "expected the number of a game, or a range such as 20-29"
    ranges = [numbers(text, wanted) for text in options.games]
    run, differs, unchecked, count = StoredRun(options.run, options.game), False, 0, sum(map(len, ranges))
    for game_id in chain.from_iterable(ranges):
        iteration, record = run.find_game(game_id)
        rules = None  # the objection of the rules to this game, its outcome included
        try:
            check_rules(run.start, [record])
        except RunError as error:
            rules = str(error)
        found = _game(run, record, iteration, rules, color=False if options.json else None)
        comparison = None
        if options.check:
            try:
                if rules is not None:
                    raise RunError(rules)
                comparison = repeat_game(run, record, options.model)
            except (ModelError, RunError) as error:
                if count == 1:
                    raise
                unchecked += 1  # and the others are checked
                said = f"game {game_id} cannot be checked: {error}"
                print(json.dumps({"game_id": game_id, "error": str(error)}) if options.json else said, flush=True)
                continue
            found |= {"plies": [], "check": vars(comparison)}
            differs |= comparison.difference is not None
        print(json.dumps(found) if options.json else _text(found, comparison), flush=True)
    if unchecked:
        raise RunError(f"{unchecked} of {count} games could not be checked")
    return int(differs)


def _game(
    run: StoredRun, record: GameRecord, iteration: int | None, rules: str | None, color: bool | None
) -> dict[str, Any]:
    """Everything to show, as plain values; `color` as for `State.render`."""
    found: dict[str, Any] = {"run": str(run.path), "iteration": iteration, "rules": rules or "the same outcome"}
    found |= {"num_players": record.num_players, "zero_sum": run.start.zero_sum}
    if rules is not None:  # it may not even be possible to play it
        return found | {"game_id": record.game_id, "outcome": record.outcome, "plies": []}
    found |= game_as_dict(run.start, record)
    for ply, position in enumerate(replayed(run.start, record.actions.tolist())):
        board = position.render(color)
        if ply < len(record):
            found["plies"][ply]["board"] = board
    return found | {"last_board": board, "ended_by_rules": position.is_terminal}


def _text(found: dict[str, Any], comparison: ReplayCheck | None) -> str:
    where = "in play" if found["iteration"] is None else str(found["iteration"])
    head = f"game {found['game_id']} of {found['run']}, iteration {where}"
    if found["rules"] != "the same outcome":
        each = found["outcome"] if isinstance(found["outcome"], tuple) else (found["outcome"],)
        shown = ", ".join(f"{own:g}" for own in each)
        return f"{head}: outcome {shown}\nthe stored game is wrong: {found['rules']}"
    points = ""
    if found["zero_sum"] and abs(found["outcome"]) not in (0, 1):
        points = f" ({abs(found['outcome']):g})"
    lines = [f"{head}: {found['result']}{points}"]
    ended = " where a player resigns" if found["resigned"] else " of a game cut short"
    lines[0] += f", as the rules say{'' if found['ended_by_rules'] else ended}"
    if comparison is not None:
        return "\n".join([*lines, _verdict(comparison)])
    if any("search" in row for row in found["plies"]):
        lines.append(_LEGEND)
    for row in found["plies"]:
        lines += ["", *_position(row)]
    return "\n".join([*lines, "", "the end:", found["last_board"]])


def _position(row: dict[str, Any]) -> list[str]:
    if row["player"] == CHANCE:
        return [f"ply {row['ply']}, chance:", row["board"], f"drawn {row['name']}"]
    head = f"ply {row['ply']}, player {row['player']} to move:"
    if "root_value" not in row:
        what = "played elsewhere" if row["elsewhere"] else "opening, not searched: played"
        return [head, row["board"], f"{what} {row['name']}"]
    lines = [head, row["board"], f"value {row['root_value']:+.3f} for player {row['player']}, network {row['network']}"]
    if row["mixed_networks"]:
        lines.append("the network changed during this search")
    if not row["searched"]:
        return [*lines, f"not learned from, so only this is kept: played {row['name']}"]
    width = max(6, *(len(action["name"]) for action in row["search"]))
    lines.append(f"{'action':>{width}}   prior  visits  target")
    for action in row["search"]:
        mark = "  played" if action["action"] == row["action"] else ""
        numbers = f"{action['prior']:6.3f}  {action['visits']:6d}  {action['target']:6.1%}"
        lines.append(f"{action['name']:>{width}}  {numbers}{mark}")
    return lines


def _verdict(comparison: ReplayCheck) -> str:
    plies, model, difference = comparison.plies, comparison.model, comparison.difference
    if difference is not None:
        since = "Settings, the model's runtime or azpy may have changed since"
        return f"not the same, repeated with {model}; first difference: {difference}. {since}"
    if comparison.whole:
        return f"the same, bit for bit: {plies} plies repeated with {model}"
    rest = "a new network took over there, and later plies cannot be repeated"
    return f"the same, bit for bit, up to ply {plies}, repeated with {model}: {rest}"


main = command("az-replay", _replay)
