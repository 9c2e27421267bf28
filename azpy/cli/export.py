"""Writes what a run has found in forms that other programs read: its games, and its model.

--npz: one row a searched position, for training elsewhere. observations float32 [N, C, H, W], legal bool [N, A],
policy_targets float32 [N, A] (shares of the visits), value_targets float32 [N] (the outcome) and root_values
float32 [N], both for the player to move, game_id int64 [N], ply int32 [N].
--jsonl: one game a line, with names, visits, priors and values.
--pgn: tags, numbered actions and results: of chess standard PGN, of other games the same form with their names.
--sgf: a folder of SGF files, one a game, for runs of Go.
--onnx: the model, compared with its checkpoint's manifest first.
--onnx-int8: its int8 twin for CPUs, made with positions of the newest games, if it says nearly the same.

Only sealed games are written, each checked against the rules first; the run may be in use. A file is replaced once
it is whole; a device or a pipe is written into, and standard output (/dev/stdout) then holds nothing else.
Exit codes: 0 done, 2 something the user can put right (one line on stderr).
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from azpy._core import ReplayBuffer
from azpy.cli.common import Parser, not_empty, run_command
from azpy.errors import ModelError, RunError, SettingsError
from azpy.runs import exports, storage
from azpy.runs.reader import StoredRun, check_rules

_TARGETS = ("npz", "jsonl", "pgn", "sgf", "onnx", "onnx_int8")
_CALIBRATION_POSITIONS = 10_000  # to draw from, at least, where there are as many


def _parser() -> Parser:
    parser = Parser("az-export", __doc__)
    parser.add_argument("run", type=not_empty, metavar="RUN", help="the run folder")
    text = "the run's game, needed if that is a Python class: reading the run then imports its module"
    parser.add_argument("--game", metavar="module:Class", help=text)
    parser.add_argument("--npz", type=not_empty, metavar="FILE", help="training arrays")
    parser.add_argument("--jsonl", type=not_empty, metavar="FILE", help="games as JSON, one a line")
    parser.add_argument("--pgn", type=not_empty, metavar="FILE", help="games as PGN")
    parser.add_argument("--sgf", type=not_empty, metavar="FOLDER", help="games of Go as SGF, a file each")
    parser.add_argument("--onnx", type=not_empty, metavar="FILE", help="the model")
    parser.add_argument(
        "--onnx-int8", type=not_empty, metavar="FILE", help="the int8 model, for CPUs with int8 instructions"
    )
    parser.add_argument("--iterations", metavar="A-B", help="games of these iterations: 3, 3-10 (default all)")
    parser.add_argument("--checkpoint", metavar="N", type=int, help="the model of this iteration (default the newest)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_command("az-export", _export, arguments)


def _export(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    targets = {name: target for name in _TARGETS if (target := getattr(options, name)) is not None}
    wants_model = bool(targets.keys() & {"onnx", "onnx_int8"})
    wants_games = bool(targets.keys() - {"onnx", "onnx_int8"})
    if not targets:
        raise SettingsError("nothing to write: give --npz, --jsonl, --pgn, --sgf, --onnx or --onnx-int8 FILE")
    if options.iterations is not None and not wants_games:
        raise SettingsError("--iterations goes with --npz, --jsonl, --pgn and --sgf")
    if options.checkpoint is not None and not wants_model:
        raise SettingsError("--checkpoint goes with --onnx and --onnx-int8")
    _check_apart(options.run, targets)
    # What is written to standard output must stay as it is.
    said = partial(print, file=sys.stderr if any(map(storage.is_stdout, targets.values())) else sys.stdout, flush=True)
    run = StoredRun(options.run, options.game)
    game = str(run.settings.game)
    if options.sgf is not None and game.partition("(")[0].strip() != "go":
        raise SettingsError(f"--sgf is for games of go; these are of {game}")
    if wants_games:
        games = _games(run, options.iterations)
        if options.npz is not None:
            rows = exports.to_npz(options.npz, run.start, games)
            said(f"{rows:,} positions of {len(games):,} games in {options.npz}")
        if options.jsonl is not None:
            said(f"{exports.to_jsonl(options.jsonl, run.start, games):,} games in {options.jsonl}")
        if options.pgn is not None:
            said(f"{exports.to_pgn(options.pgn, run.start, games, str(run.path)):,} games in {options.pgn}")
        if options.sgf is not None:
            said(f"{exports.to_sgf(options.sgf, run.start, games, str(run.path)):,} games in {options.sgf}")
    if wants_model:
        iteration = run.iteration if options.checkpoint is None else options.checkpoint
        model = run.model(iteration)
        if options.onnx is not None:
            _write(options.onnx, model)
            said(f"the model of checkpoint {iteration} in {options.onnx}")
        if options.onnx_int8 is not None:
            int8, drift = _int8_twin(run, model, iteration)
            _write(options.onnx_int8, int8)
            said(f"the int8 model of checkpoint {iteration} in {options.onnx_int8}; against fp32 {drift}")
    return 0


def _check_apart(run: str, targets: Mapping[str, str]) -> None:
    """Refuses targets that would replace the run's own files or, however they are spelled, each other."""
    flags: dict[Path, str] = {}
    at = Path(os.path.realpath(run))
    folders, files = [at / "games", at / "checkpoints"], [at / "config.toml", at / "metrics.jsonl"]
    for name, target in targets.items():
        flag, place = "--" + name.replace("_", "-"), Path(os.path.realpath(target))
        if place in files or any(folder in (place / "x" if name == "sgf" else place).parents for folder in folders):
            raise SettingsError(f"{flag} {target} is among the own files of {run}: give another place")
        of_sgf = place.suffix == ".sgf" and "sgf" in targets and place.parent == Path(os.path.realpath(targets["sgf"]))
        if other := "--sgf" if of_sgf else flags.get(place):
            raise SettingsError(f"{other} and {flag} both write {target}: give each a file of its own")
        flags[place] = flag


def _int8_twin(run: StoredRun, model: bytes, iteration: int) -> tuple[bytes, str]:
    """The twin, calibrated on the games that led to a checkpoint, and how far it is from the model."""
    from azpy.evaluators.int8 import twin_of  # loads ONNX Runtime

    buffer = ReplayBuffer(run.start, max_positions=1_000_000)
    for played in [number for number in reversed(run.iterations()) if number <= iteration]:
        for _, record in run.games([played]):
            buffer.add(record)
        if buffer.num_positions >= _CALIBRATION_POSITIONS:
            break
    if not buffer.num_positions:
        raise RunError(f"{run.path} has no sealed games to calibrate an int8 model on")
    int8, drift = twin_of(model, buffer, seed=iteration)
    if drift.too_far:
        raise ModelError(f"an int8 model of checkpoint {iteration} is too far from it: {drift.too_far}")
    return int8, str(drift)


def _write(name: str, model: bytes) -> None:
    with storage.output(name) as file:
        file.write(model)


def _games(run: StoredRun, chosen: str | None) -> exports.Games:
    """The chosen iterations' games, checked against the rules."""
    iterations: Sequence[int] = run.iterations()
    if not iterations:
        raise RunError(f"{run.path} has no sealed games yet")
    if chosen is not None:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", chosen)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise SettingsError(f"--iterations takes a number or a range such as 3-10, got {chosen!r}")
        iterations = range(int(match[1]), int(match[2] or match[1]) + 1)
    games = list(run.games(iterations))
    check_rules(run.start, (record for _, record in games))
    return games


if __name__ == "__main__":
    sys.exit(main())
