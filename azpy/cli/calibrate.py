"""`az-match --calibrate RUN`: measures the levels of a run's player, and stores them with the run."""

import argparse
import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from azpy.cli.common import columns
from azpy.cli.progress import Screen
from azpy.errors import SettingsError
from azpy.game import players_of
from azpy.games.names import make_game
from azpy.matches.arena import MATCH_SLOTS, games_of
from azpy.matches.levels import FULL_STRENGTH, Anchor, Calibration, Ladder, Level, Step, alone, ladder_of
from azpy.matches.openings import Book
from azpy.matches.players import Spec, game_of, load_players, parse_player, slots_for, warn_of_unused
from azpy.matches.programs import Transcripts
from azpy.runs.reader import StoredRun
from azpy.serving.models import Player, open_player

CALIBRATION_GAMES = 100
MINUTES = 10.0
SIMULATIONS = 100  # of players without a number
_ANCHOR_NODES = 100_000  # a move of a program without its own: so many that its UCI_Elo limits it, and they do not
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
    until, wanted, stopped = time.monotonic() + 60 * minutes, calibration.played + calibration.left(pairs), False
    with Screen(given.json) as display:
        display.line(f"{run}: {len(steps)} steps, {2 * pairs} games each against the step below, {minutes:g} minutes")
        if given.anchor is not None:
            display.line(f"then {2 * pairs} games of {given.anchor} against the steps that are about as strong")
        if calibration.played:
            display.line(f"resuming after {2 * calibration.played} games")
        try:
            for step, against in calibration.play(pairs, lambda: until - time.monotonic()):
                left = max(0.0, until - time.monotonic()) / 60
                figures = [f"{2 * calibration.played}/{2 * wanted} games", f"{left:.1f} minutes left"]
                display.progress(f"{_way(step)} against {against}", figures, calibration.played / wanted)
        except KeyboardInterrupt:
            stopped = True
    ladder, is_whole = ladder_of(run, simulations, has_model=True), not calibration.left(pairs)
    anchor = None if calibration.anchor is None else asdict(calibration.anchor)
    found = {"steps": [asdict(step) for step in steps], "anchor": anchor, "interrupted": stopped, "complete": is_whole}
    found["levels"] = {name: asdict(level) for name, level in ladder.levels.items()} if ladder.network else None
    lines = _report(steps, calibration.anchor, ladder, served.network, is_whole)
    print(json.dumps(found) if given.json else "\n".join(lines), flush=True)
    return 130 if stopped else 0


def _run(given: argparse.Namespace) -> tuple[Path, int]:
    """The run, and the simulations of full strength."""
    for name in _NOT_FOR_IT:
        if getattr(given, name):
            raise SettingsError(f"--{name.replace('_', '-')} does not belong to --calibrate")
    if "simulations" in given and given.anchor is None:
        raise SettingsError("--simulations does not belong to --calibrate: give RUN@N for N at full strength")
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
    served, anchor = open_player(str(run), given.game, simulations, given.device), None
    if given.anchor is not None:
        spec = parse_player(given.anchor)
        elo, nodes = _elo_of(spec, given), _ANCHOR_NODES
        warn_of_unused([spec], vars(given), searches=spec.program is None)
        if spec.program is None:
            nodes = vars(given).get("simulations", SIMULATIONS)
        (entrant,) = load_players([spec], start, nodes, given.device, Transcripts(None))
        anchor = entrant.player, given.anchor, elo
    stored = StoredRun(run)
    plies = stored.settings.match_opening_plies if given.opening_plies is None else given.opening_plies
    facts = {"game": stored.settings.game, "iteration": stored.iteration, "network": served.network}
    facts |= {"seed": given.seed, "opening_plies": plies}
    book = Book(start, plies, given.seed)
    slots = MATCH_SLOTS if anchor is None else slots_for(anchor[0])
    return Calibration(run, served.evaluator, served.options, book, simulations, facts, anchor, slots), served, pairs


def _elo_of(anchor: Spec, given: argparse.Namespace) -> float:
    """The known Elo of an anchor."""
    if given.anchor_elo is not None:
        return float(given.anchor_elo)
    options = {} if anchor.program is None else anchor.program.options or {}
    elo = next((text for name, text in options.items() if name.lower() == "uci_elo"), "")
    if not re.fullmatch(r"\d{1,4}", elo):
        raise SettingsError(f"how strong is {given.anchor}? give --anchor-elo N, or UCI_Elo=N among its settings")
    return float(elo)


def _report(
    steps: Sequence[Step], anchor: Anchor | None, ladder: Ladder, network: str | None, is_whole: bool
) -> list[str]:
    """The lines of the result."""
    lines = [] if is_whole else ["not all games are played yet: run the same command again to continue"]
    if any(step.elo is None for step in steps):
        return [*lines, "some steps have no games yet, so the levels are not used"]
    rows = [["step", "Elo", "95 % interval", "games"]]
    rated = [(_way(step), step.elo, step.low, step.high, sum(step.pairs)) for step in steps]
    if anchor is not None:
        rated.append((anchor.player, anchor.above, anchor.low, anchor.high, sum(map(sum, anchor.pairs))))
    for name, *figures, pairs in rated:
        elo, low, high = (f"{figure:.0f}" if figure is not None else None for figure in figures)
        rows.append([name, elo or "?", f"{low or '-inf'} to {high or '+inf'}", str(2 * pairs)])
    if anchor is not None and not anchor.is_bounded:
        lines.append(f"the games of {anchor.player} do not bound its strength, so it does not set the scale")
    first, zero = _way(ladder.steps[0]), min(step.elo or 0.0 for step in steps)
    lines += [*columns(rows, "<>>>"), ""]
    counted = f"it has {zero:.0f} Elo in the table above and {ladder.steps[0].elo:.0f} Elo in the table below"
    lines.append(f"levels start at the weakest step, {first}: {counted}")
    rows = [["level", "Elo", "simulations", "temperature"]]
    for name, level in ladder.levels.items():
        rows.append([name, f"{level.elo:.0f}", str(level.simulations), f"{level.temperature:.2f}"])
    return [*lines, *columns(rows, "<>>>"), ladder.about(network)]


def _way(step: Step | Level) -> str:
    what = f"{step.simulations} simulations" if step.simulations > 1 else "the network alone"
    return f"{what}, temperature {step.temperature:g}" if step.temperature else what
