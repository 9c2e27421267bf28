"""`az-match --calibrate RUN`: measures the levels of a run's player, and stores them with the run."""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from azpy.cli.common import columns
from azpy.cli.progress import Screen
from azpy.errors import SettingsError
from azpy.game import players_of
from azpy.games.names import make_game
from azpy.matches.arena import games_of
from azpy.matches.levels import FULL_STRENGTH, Calibration, Ladder, Level, Step, alone, ladder_of
from azpy.matches.openings import Book
from azpy.matches.players import game_of, parse_player
from azpy.runs.reader import StoredRun
from azpy.serving.models import Player, open_player

CALIBRATION_GAMES = 100
MINUTES = 10.0
_NOT_FOR_IT = ("round_robin", "checkpoints", "book", "save", "slots", "transcripts", "elo0", "elo1")


def calibrate(given: argparse.Namespace) -> int:
    """Plays the matches of the ladder, and shows what they found; returns the exit code.

    Raises:
        AzpyError: no run folder, another calibration of it, or a ladder that cannot be read or written.
    """
    run, simulations = _run(given)
    with alone(run):
        return _measure(given, run, simulations)


def _measure(given: argparse.Namespace, run: Path, simulations: int) -> int:
    calibration, served, pairs = _begin(given, run, simulations)
    steps, minutes = calibration.steps, MINUTES if given.minutes is None else given.minutes
    until, wanted, stopped = time.monotonic() + 60 * minutes, pairs * (len(steps) - 1), False
    with Screen(given.json) as display:
        display.line(f"{run}: {len(steps)} steps, {2 * pairs} games each against the step below, {minutes:g} minutes")
        if calibration.played:
            display.line(f"resuming after {2 * calibration.played} games")
        try:
            for step in calibration.play(pairs, lambda: until - time.monotonic()):
                left = max(0.0, until - time.monotonic()) / 60
                figures = [f"{2 * calibration.played}/{2 * wanted} games", f"{left:.1f} minutes left"]
                share = min(1.0, calibration.played / max(1, wanted))
                display.progress(f"{_way(step)} against the step below", figures, share)
        except KeyboardInterrupt:
            stopped = True
    ladder = ladder_of(run, simulations, has_model=True)
    is_whole = all(sum(step.pairs) >= pairs for step in steps[1:])
    found = {"steps": [asdict(step) for step in steps], "interrupted": stopped, "complete": is_whole}
    found["levels"] = {name: asdict(level) for name, level in ladder.levels.items()} if ladder.network else None
    print(json.dumps(found) if given.json else "\n".join(_report(steps, ladder, served.network, is_whole)), flush=True)
    return 130 if stopped else 0


def _run(given: argparse.Namespace) -> tuple[Path, int]:
    """The run, and the simulations of full strength."""
    for name in _NOT_FOR_IT:
        if getattr(given, name):
            raise SettingsError(f"--{name.replace('_', '-')} does not belong to --calibrate")
    if len(given.players) != 1:
        raise SettingsError(f"--calibrate takes one run folder, got {len(given.players)} players")
    [text] = given.players
    spec = parse_player(text)
    folder = Path(text if Path(text).exists() else text.rpartition("@")[0])
    if spec.run is None or not (folder / "config.toml").is_file():
        raise SettingsError(
            f"--calibrate takes a run folder, or RUN@N for N simulations at full strength; got {text!r}"
        )
    return spec.run, spec.simulations or FULL_STRENGTH


def _begin(given: argparse.Namespace, run: Path, simulations: int) -> tuple[Calibration, Player, int]:
    """The calibration, the player that is measured, and how many pairs of games each step has."""
    start = make_game(game_of([parse_player(str(run))], given.game, "--game {}"))
    if not start.zero_sum:
        raise SettingsError(
            f"--calibrate measures levels by pairs of games of two players with a zero sum, and {start.game} has "
            f"{players_of(start)}: az-match RUN@50 RUN@200 compares two numbers of simulations"
        )
    pairs = games_of(start, given.games, CALIBRATION_GAMES) // 2
    served = open_player(str(run), given.game, simulations, given.device)
    stored = StoredRun(run)
    plies = stored.settings.match_opening_plies if given.opening_plies is None else given.opening_plies
    facts = {"game": stored.settings.game, "iteration": stored.iteration, "network": served.network}
    facts |= {"seed": given.seed, "opening_plies": plies}
    book = Book(start, plies, given.seed)
    return Calibration(run, served.evaluator, served.options, book, simulations, facts), served, pairs


def _report(steps: Sequence[Step], ladder: Ladder, network: str | None, is_whole: bool) -> list[str]:
    """The lines of the result."""
    lines = [] if is_whole else ["not all games are played yet: run the same command again to continue"]
    if any(step.elo is None for step in steps):
        return [*lines, "some steps have no games yet, so the levels are not used"]
    rows = [["step", "Elo", "95 % interval", "games"]]
    for step in steps:
        low, high = (f"{end:.0f}" if end is not None else None for end in (step.low, step.high))
        interval = f"{low or '-inf'} to {high or '+inf'}"
        rows.append([_way(step), f"{step.elo:.0f}", interval, str(2 * sum(step.pairs))])
    first, zero = _way(ladder.steps[0]), min(step.elo or 0.0 for step in steps)
    lines += [*columns(rows, "<>>>"), ""]
    lines += [f"levels start at the weakest step, {first}: its {zero:.0f} Elo above is 0 Elo below"]
    rows = [["level", "Elo", "simulations", "temperature"]]
    for name, level in ladder.levels.items():
        rows.append([name, f"{level.elo:.0f}", str(level.simulations), f"{level.temperature:.2f}"])
    return [*lines, *columns(rows, "<>>>"), ladder.about(network)]


def _way(step: Step | Level) -> str:
    what = f"{step.simulations} simulations" if step.simulations > 1 else "the network alone"
    return f"{what}, temperature {step.temperature:g}" if step.temperature else what
