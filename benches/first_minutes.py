"""What a user sees in the first minutes of az-train, and how well the result plays: one row for each run.

    cd benches
    python first_minutes.py GAME... [--minutes 2,5] [--games 100] [--bound 300] [--slots 8] [--out FOLDER] [-- FLAGS]

Each GAME is trained for each number of minutes, in a new folder and without a terminal. FLAGS go to az-train, which
gets Ctrl-C after twice its minutes and two minutes more. The last checkpoint, with 100 simulations a move, then meets
plain Monte Carlo tree search with 100 and with 1,000 simulations, in --games games each. A match gets Ctrl-C after
--bound seconds. Then its score is that of the pairs that are over, and those are the shorter games: fewer --slots end
more of them in time.

- first line, first game: seconds to the first line, and to the first line on a finished game or a played iteration.
- wall: seconds until az-train ended.
- iterations, games, simulations/s: from metrics.jsonl; simulations/s is the mean over the time of self-play.
- mcts:N: the score of the checkpoint with its 95 % interval, and the games that were played.

A line of JSON follows each row. It has more digits, and the first lines of az-train, which name the settings chosen.
"""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Timer
from typing import Any

OPPONENTS = ("mcts:100", "mcts:1000")
_COLUMNS = ("game", "minutes", "first line", "first game", "wall", "iterations", "games", "simulations/s", *OPPONENTS)
_GRACE = 30.0  # seconds from Ctrl-C to the kill
_FIRST_LINES = 6
# "[0:05] iteration 1: 2000 games", "iteration 1 self-play: 3/256 games", "3 games are over".
_PLAYED = re.compile(
    r"^\[[\d:]+\] iteration \d|\b[1-9][\d,]*(/[\d,]+ games\b| games? ((is|are) )?(over|finished|played|done)\b)"
)


def run(words: list[str], bound: float) -> tuple[list[tuple[float, str]], float, int, bool]:
    """Runs a command of azpy: its lines with their seconds, its seconds, its exit code, and whether it was stopped."""
    begin, lines = time.monotonic(), list[tuple[float, str]]()
    command = [sys.executable, "-m", "azpy", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        timers = Timer(bound, child.send_signal, [signal.SIGINT]), Timer(bound + _GRACE, child.kill)
        for timer in timers:
            timer.start()
        for line in child.stdout or ():
            lines.append((time.monotonic() - begin, line.rstrip()))
        code = child.wait()
        for timer in timers:
            timer.cancel()
    seconds = time.monotonic() - begin
    return lines, seconds, code, seconds >= bound


def trained(game: str, minutes: float, out: Path, flags: list[str]) -> dict[str, Any]:
    """Trains, and gives what was seen."""
    words = ["train", game, "--minutes", f"{minutes:g}", "--out", str(out), *flags]
    lines, seconds, code, stopped = run(words, 120 * minutes + 120)
    first_game = next((at for at, line in lines if _PLAYED.search(line)), None)
    facts = {"game": game, "minutes": minutes, "flags": flags, "exit_code": code, "stopped": stopped, "wall": seconds}
    facts |= {"first_line": lines[0][0] if lines else None, "first_game": first_game}
    path = out / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    rows = [row for row in rows if row["kind"] == "iteration"]
    timed = [(row["play_seconds"], row["simulations_per_second"]) for row in rows if row.get("simulations_per_second")]
    rate = sum(took * speed for took, speed in timed) / sum(took for took, _ in timed) if timed else None
    facts |= {"iterations": len(rows), "games": sum(row["games"] for row in rows), "simulations_per_second": rate}
    said = [line for _, line in lines]
    return facts | {"first_lines": said[:_FIRST_LINES], "last_lines": said[_FIRST_LINES:][-3:] if code else []}


def met(game: str, out: Path, opponent: str, given: argparse.Namespace) -> dict[str, Any]:
    """The result of a match of the last checkpoint, as az-match says it; `problem` says why there is none."""
    if not any(out.glob("checkpoints/*/model.onnx")):
        return {"problem": "no checkpoint"}
    words = ["match", str(out), opponent, "--game", game, "--games", str(given.games), "--slots", str(given.slots)]
    lines, seconds, code, stopped = run([*words, "--json"], given.bound)
    found = [line for _, line in lines if line.startswith("{")]
    if not found:
        return {"problem": f"killed after {seconds:.0f} s" if stopped else f"exit code {code}: {lines[-1:]}"}
    kept = ("games", "score", "low", "high")
    return {name: json.loads(found[-1]).get(name) for name in kept} | {"seconds": seconds, "stopped": stopped}


def row(facts: dict[str, Any]) -> str:
    """A row of Markdown."""
    cells = [facts["game"], f"{facts['minutes']:g}"]
    cells += [_figure(facts[name], ".1f") for name in ("first_line", "first_game", "wall")]
    cells[-1] += (
        " (stopped)" if facts["stopped"] else f" (exit code {facts['exit_code']})" if facts["exit_code"] else ""
    )
    cells += [str(facts["iterations"]), f"{facts['games']:,}", _figure(facts["simulations_per_second"], ",.0f")]
    return _line(*cells, *(_score(facts[opponent]) for opponent in OPPONENTS))


def _score(match: dict[str, Any]) -> str:
    if "problem" in match:
        return str(match["problem"])
    ended = f"{match['games']} games" + (f", stopped after {match['seconds']:.0f} s" if match["stopped"] else "")
    if not match["games"]:
        return ended
    return f"{match['score']:.3f} [{match['low']:.3f}, {match['high']:.3f}] ({ended})"


def _figure(number: float | None, form: str) -> str:
    return "-" if number is None else format(number, form)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Trains, plays the matches and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="GAME", help="as az-train takes it")
    parser.add_argument("--minutes", default="2,5", help="one run for each, with commas between them")
    parser.add_argument("--games", type=int, default=100, help="of a match, an even number")
    parser.add_argument("--bound", type=float, default=300.0, help="seconds of a match")
    parser.add_argument("--slots", type=int, default=8, help="games of a match in play at a time")
    parser.add_argument("--out", type=Path, help="where the run folders are made (default: a new folder in /tmp)")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    given, flags = parser.parse_args(words[:end]), words[end + 1 :]
    # A shell starts programs in the background with Ctrl-C ignored, and their children would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    given.out = given.out or Path(tempfile.gettempdir())
    given.out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="first-minutes-", dir=given.out))
    print(_line(*_COLUMNS), _line(*["---"] * len(_COLUMNS)), sep="\n", flush=True)
    for game in given.names:
        for minutes in map(float, given.minutes.split(",")):
            out = folder / f"{re.sub(r'[^a-zA-Z0-9]+', '-', game)}-{minutes:g}"
            facts = trained(game, minutes, out, flags)
            facts |= {opponent: met(game, out, opponent, given) for opponent in OPPONENTS}
            print(row(facts), json.dumps(facts | {"folder": str(out)}), sep="\n", flush=True)


if __name__ == "__main__":
    main()
