"""`az-export RUN --card FOLDER`: a player to publish, as a folder.

The folder is a run folder with one checkpoint, and without games: config.toml, the iterations and matches of
metrics.jsonl, ladder.json if the levels were measured, and of the checkpoint model.onnx and model.safetensors, but not
the optimizer. So every command plays it as it plays the run. README.md begins with the fields that Hugging Face reads.
"""

import hashlib
import json
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from azpy.errors import SettingsError
from azpy.evaluators.onnx import network_id
from azpy.games.names import must_be_typed, name_of
from azpy.matches.levels import FULL_STRENGTH, LADDER, ladder_of
from azpy.reports.report import Rows, summary
from azpy.runs import storage
from azpy.runs.reader import StoredRun, read_metrics
from azpy.settings.run import function_flags
from azpy.settings.toml import path_argument, repeat_command, to_toml

_PUBLISHED = ("model.onnx", "model.safetensors")


def write_card(run: StoredRun, iteration: int, folder: str, license_name: str) -> None:
    """Writes the folder, whole or not at all.

    Args:
        run: whose player it is.
        iteration: of the checkpoint.
        folder: is made.
        license_name: of the weights, as Hugging Face calls the license.

    Raises:
        SettingsError: no name of a license, or a folder whose name cannot be printed, or that is in the run's.
        RunError: something of this name is there, or it cannot be written; no such checkpoint, or a damaged one.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", license_name):
        raise SettingsError(f"--license takes a name such as apache-2.0 or cc-by-4.0, got {license_name[:40]!r}")
    if not must_be_typed(run.settings.game) and run.start.hides:
        raise SettingsError(f"--card: {run.settings.game} hides something, and a card describes a player that searches")
    place, checkpoint = Path(os.path.realpath(folder)), f"checkpoints/{iteration:06d}"
    called = place.name
    if not called.isprintable():  # it stands in README.md
        raise SettingsError(f"--card takes a folder whose name can be printed, got {called!a}")
    if place.is_relative_to(os.path.realpath(run.path)):
        raise SettingsError(f"--card takes a folder outside of the run, which keeps its own files in {run.path}")
    parts = {name: run.model(iteration, name) for name in _PUBLISHED}
    manifest = {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()}
    # The format is that of this version, which writes the file anew.
    kept = ((name, fact) for name, fact in run.made_with.items() if name != "format")
    made_with = {name: fact for name, fact in kept if isinstance(fact, str | int)}
    rows = [
        row
        for row in read_metrics(run.path / "metrics.jsonl")[0]
        if row["kind"] in ("iteration", "match") and row["iteration"] <= iteration
    ]
    files = {f"{checkpoint}/{name}": data for name, data in parts.items()}
    files[f"{checkpoint}/manifest.json"] = (json.dumps(manifest, indent=1) + "\n").encode()
    files["config.toml"] = to_toml(vars(run.settings), made_with, called).encode()
    files["metrics.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    if levels := _levels(run, parts["model.onnx"]):
        files[LADDER] = storage.read_regular(run.path / LADDER)
    about = {"name": called, "checkpoint": checkpoint, "license": license_name, "levels": levels}
    files["README.md"] = _readme(about, run, made_with, rows).encode()
    with storage.output_folder(folder) as new:
        for name, data in files.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            storage.write_synced(new / name, data)


def _levels(run: StoredRun, model: bytes) -> str:
    """The section about the measured levels; empty if nobody measured them."""
    ladder = ladder_of(run.path, FULL_STRENGTH, has_model=True)
    if ladder.network is None:
        return ""
    rows = (
        f"| {word} | {level.elo:.0f} | {level.simulations} | {level.temperature:g} |\n"
        for word, level in ladder.levels.items()
    )
    return _LEVELS.format(about=ladder.about(f"{network_id(model):016x}"), rows="".join(rows))


_LEVELS = """
## Levels

{about} `?level=casual` after the player's name plays at one.

| level | Elo above the first | simulations a move | temperature |
|---|---|---|---|
{rows}"""

_README = """---
license: "{license}"
library_name: azpy
pipeline_tag: reinforcement-learning
tags:
- azpy
- alphazero
- self-play
- {tag}
---

# {name}

A network that plays `{game}` with a tree search, as AlphaZero does. [azpy](https://github.com/azpy/azpy) trained it.

## Play

With azpy and its extras `cpu` and `serve`:

    {play}
    {match}

`az-serve` and `az-engine` take this folder too. In Python, `azpy.load_run({load}).evaluator` is the network.{code}

## Strength

{strength}
{levels}
## Training

The network is `{network}`. The run was made with {versions}. A run with its settings, and one that begins with this
network:

    {again}
    {further}

## Files

| file | content |
|---|---|
| `config.toml` | the settings of the run |
| `metrics.jsonl` | figures of its iterations and matches, an object a line |
| `{checkpoint}/model.onnx` | the network: takes `observations`, gives policy and values |
| `{checkpoint}/model.safetensors` | its weights |
"""


_SCORES = """

A score is a share of wins, with draws as half of one, or the mean result of one player alone. Its 95 % interval is in
brackets. The network had {simulations} simulations a move."""


def _readme(facts: Mapping[str, str], run: StoredRun, made_with: Mapping[str, Any], rows: Rows) -> str:
    """The text of README.md; `facts` are the checkpoint, the folder's name, the license and the levels."""
    settings, game, name = run.settings, run.settings.game, facts["name"]
    path, functions = path_argument(name), function_flags(vars(settings))
    coded = must_be_typed(game)
    typed = ["--game", game] if coded else []
    further = ["az-train", *typed[1:], "--config", f"{path}/config.toml", *functions, "--init", path]
    matches = [row for row in rows if row["kind"] == "match"]
    scores = _SCORES.format(simulations=matches[-1].get("simulations", "some")) if matches else ""
    versions = [f"{package} {version}" for package, version in made_with.items() if package != "run_id"]
    return _README.format(
        **facts,
        game=game,
        tag=json.dumps(name_of(game).rpartition(":")[2]),
        play=shlex.join(["az-play", path, *typed]),
        match=shlex.join(["az-match", path, "mcts:1000", *typed]),
        load=", ".join(map(repr, [path, *typed[1:]])),
        code=f"\nThe game `{game}` is code of its own, which has to be where these commands run." if coded else "",
        strength=summary(rows) + scores,
        network=settings.network,
        versions=", ".join(versions) or "versions that it does not name",
        again=repeat_command(name, game, functions),
        further=shlex.join([*further, "--out", f"{path}-further"]),
    )
