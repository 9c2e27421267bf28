"""What each technique of training brings: one of them changed at a time, for equal evaluations.

    python benches/ablation.py [--game connect_four] [--network BxC] [--out ablation/connect_four]
        [--evaluations 10000000] [--seeds 1] [--only NAME ...] [--games 400] [--table]

Every run plays and learns with the preset of the game (its network too, unless one is given) and one technique
changed, until its self-play has asked the network so often. Then its last model meets that of the run it is set
against, of the same seed, in paired games from random openings. That is a run which plans with Gumbel and 16
simulations (as the preset of Connect Four does), or, for what Gumbel has no use for (noise, fpu and the like), one with
PUCT, 100 simulations and fewer games an iteration. Runs lie in the folder --out: the same command goes on where it was
stopped, trains what is missing, and says nothing twice. `--table` prints what is there.

Evaluations are equal, fitting is not: a run with fewer simulations a move learns from more positions. The table says
how many rows both runs were fitted to. The interval is that of the match between two models. What seeds do is not in
it: compare the rows of several seeds, and mind that with one seed a difference can be the seed's.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import azpy
from azpy.arena import MatchResult, SearchPlayer, play_pairs
from azpy.config import read_config
from azpy.events import Saved
from azpy.onnx import OnnxEvaluator
from azpy.openings import Book
from azpy.positions import make_position
from azpy.presets import preset_of
from azpy.settings import Settings, match_search
from azpy.trainer import Trainer

GUMBEL, PUCT = "Gumbel, 16 simulations", "PUCT, 100 simulations"
WITH_GUMBEL: dict[str, Any] = {"gumbel_actions": 8, "simulations": 16, "games_per_iteration": 512}
WITH_PUCT: dict[str, Any] = {
    "gumbel_actions": 0,
    "simulations": 100,
    "games_per_iteration": 128,
    "temperature_plies": 12,
}
# The run that each is set against, and what differs from the preset.
TECHNIQUES: dict[str, tuple[str, dict[str, Any]]] = {
    PUCT: (GUMBEL, WITH_PUCT),
    "32 simulations": (GUMBEL, WITH_GUMBEL | {"simulations": 32}),
    "four passes": (GUMBEL, WITH_GUMBEL | {"passes": 4.0}),
    "batches of 256": (GUMBEL, WITH_GUMBEL | {"batch_size": 256, "learning_rate": 0.002}),
    "no symmetries": (GUMBEL, WITH_GUMBEL | {"symmetries": False}),
    "no random openings": (GUMBEL, WITH_GUMBEL | {"opening_plies": 0}),
    "outcome alone as value target": (GUMBEL, WITH_GUMBEL | {"root_value_weight": 0.0}),
    "constant learning rate": (GUMBEL, WITH_GUMBEL | {"schedule": "constant"}),
    "small window": (GUMBEL, WITH_GUMBEL | {"window_max": 20_000}),
    "surprise weighting": (GUMBEL, WITH_GUMBEL | {"surprise_weight": 0.5}),
    "int8": (GUMBEL, WITH_GUMBEL | {"precision": "int8"}),
    "solver": (GUMBEL, WITH_GUMBEL | {"solver": True}),
    "earlier networks": (GUMBEL, WITH_GUMBEL | {"historical_share": 0.2}),
    "no root noise": (PUCT, WITH_PUCT | {"root_noise": 0.0}),
    "no temperature": (PUCT, WITH_PUCT | {"temperature_plies": 0}),
    "eight leaves a tree": (PUCT, WITH_PUCT | {"eval_batch": 8}),
    "fpu by the parent": (PUCT, WITH_PUCT | {"fpu": 0.25}),
    "playout cap": (PUCT, WITH_PUCT | {"full_search_share": 0.25, "fast_simulations": 20}),
    "forced visits": (PUCT, WITH_PUCT | {"forced_visits": 2.0}),
    "shaped noise": (PUCT, WITH_PUCT | {"noise_shaped": True}),
    "root temperature": (PUCT, WITH_PUCT | {"root_temperature": 1.1}),
    "variance-scaled c_puct": (PUCT, WITH_PUCT | {"c_puct_stdev": 0.85}),
}


def train(run: Path, game: str, network: str | None, name: str, seed: int, evaluations: int) -> Path:
    """The last model of a run, which goes on where it was stopped."""
    changes = WITH_GUMBEL if name == GUMBEL else TECHNIQUES[name][1]
    # Its own matches say nothing here: as few as there can be.
    few = {"match_every": 1_000_000, "final_match_games": 2}
    size = {} if network is None else {"network": network}
    options = preset_of(game) | size | {"eval_batch": 1} | few | changes
    with Trainer(Settings(game, seed=seed, total_evaluations=evaluations, **options), run) as trainer:
        for event in trainer.run():
            if isinstance(event, Saved):
                print(f"{name}, seed {seed}: iteration {event.iteration}", flush=True)
    return max(run.glob("checkpoints/*/model.onnx"))


def rows_fitted(run: Path) -> int:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    batch_size = read_config(run / "config.toml")["batch_size"]
    return int(batch_size * sum(row["steps"] for row in rows if row["kind"] == "iteration"))


def match(game: str, one: Path, other: Path, games: int, seed: int) -> MatchResult:
    options = match_search(Settings)
    ours, theirs = (
        SearchPlayer(OnnxEvaluator(model, game=azpy.make_game(game), threads=2), 100, **options)
        for model in (one, other)
    )
    book = Book(lambda: make_position(game), 4, seed)
    return MatchResult.of(list(play_pairs(book, ours, theirs, games // 2, seed)))


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| technique | against | seed | score | Elo | rows fitted, of both |", "|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: (list(TECHNIQUES).index(row["name"]), row["seed"])):
        score = f"{row['score']:.3f} [{row['interval'][0]:.3f}, {row['interval'][1]:.3f}]"
        elo = f"{row['elo']:+.0f} [{row['elo_interval'][0]:+.0f}, {row['elo_interval'][1]:+.0f}]"
        fitted = " and ".join(f"{count / 1e6:.2f} M" for count in row["rows_fitted"])
        lines.append(f"| {row['name']} | {row['against']} | {row['seed']} | {score} | {elo} | {fitted} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--network", help="of all runs, by default the preset's")
    parser.add_argument("--out", type=Path, help="by default ablation/GAME")
    parser.add_argument("--evaluations", type=int, default=10_000_000)
    parser.add_argument("--seeds", type=int, default=1, help="seeds 0 to this, exclusive")
    parser.add_argument("--only", nargs="+", choices=list(TECHNIQUES))
    parser.add_argument("--games", type=int, default=400)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    out = given.out or Path("ablation") / re.sub(r"\W+", "-", given.game).strip("-")
    out.mkdir(parents=True, exist_ok=True)
    results = out / "results.jsonl"
    text = results.read_text(encoding="utf-8") if results.exists() else ""
    rows = [json.loads(line) for line in text.splitlines()]
    same = {"game": given.game, "network": given.network}
    if other := next((row for row in rows if any(row.get(name) != value for name, value in same.items())), None):
        has = " with ".join(str(other[name]) for name in same if other.get(name))
        parser.error(f"{out} has results of something else, {has}: give another folder as --out")
    if not given.table:
        done = {(row["name"], row["seed"]) for row in rows}
        names = given.only or list(TECHNIQUES)
        for seed in range(given.seeds):
            for name in [name for name in names if (name, seed) not in done]:
                against = TECHNIQUES[name][0]
                runs = {each: out / f"{each.replace(', ', '_').replace(' ', '_')}-{seed}" for each in (name, against)}
                ours, theirs = (
                    train(run, given.game, given.network, each, seed, given.evaluations) for each, run in runs.items()
                )
                result = match(given.game, ours, theirs, given.games, seed)
                row = {
                    **same,
                    "name": name,
                    "against": against,
                    "seed": seed,
                    "evaluations": given.evaluations,
                }
                row |= {"score": result.score, "interval": result.interval}
                row |= {"elo": result.elo, "elo_interval": result.elo_interval}
                row["rows_fitted"] = [rows_fitted(run) for run in runs.values()]
                rows.append(row)
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
