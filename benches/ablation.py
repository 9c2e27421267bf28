"""What each technique of training brings: Connect Four with one of them changed at a time, for equal evaluations.

    python benches/ablation.py [--out ablation] [--evaluations 10000000] [--seeds 1] [--only NAME ...] [--games 400]
        [--table]

Every run plays and learns with the preset of Connect Four, one technique off (or, where the preset leaves it off, on),
until its self-play has asked the network so often. Then its last model meets the last model of the unchanged run of
the same seed, in paired games from random openings. What Gumbel's planning has no use for (noise, fpu and the like) is
changed in a run with PUCT and 100 simulations, and meets that one. Runs lie in the folder --out: the same command goes
on where it was stopped, trains what is missing, and says nothing twice. `--table` prints what is there.

Evaluations are equal, fitting is not: a run with fewer simulations a move learns from more positions. The table says
how many rows both runs were fitted to. The interval is that of the match between two models. What seeds do is not in
it: compare the rows of several seeds, and mind that with one seed a difference can be the seed's.
"""

import argparse
import json
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

GAME = "connect_four"
UNCHANGED, PUCT = "unchanged", "PUCT, 100 simulations"
WITH_PUCT: dict[str, Any] = {"gumbel_actions": 0, "simulations": 100}
# The run that each is set against, and what differs from the preset.
TECHNIQUES: dict[str, tuple[str, dict[str, Any]]] = {
    PUCT: (UNCHANGED, WITH_PUCT),
    "32 simulations": (UNCHANGED, {"simulations": 32}),
    "four passes": (UNCHANGED, {"passes": 4.0}),
    "no symmetries": (UNCHANGED, {"symmetries": False}),
    "no random openings": (UNCHANGED, {"opening_plies": 0}),
    "outcome alone as value target": (UNCHANGED, {"root_value_weight": 0.0}),
    "constant learning rate": (UNCHANGED, {"schedule": "constant"}),
    "small window": (UNCHANGED, {"window_max": 20_000}),
    "surprise weighting": (UNCHANGED, {"surprise_weight": 0.5}),
    "solver": (UNCHANGED, {"solver": True}),
    "earlier networks": (UNCHANGED, {"historical_share": 0.2}),
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


def train(folder: Path, name: str, seed: int, evaluations: int) -> Path:
    """The last model of a run, which goes on where it was stopped."""
    changes: dict[str, Any] = {} if name == UNCHANGED else TECHNIQUES[name][1]
    options = preset_of(GAME) | {"eval_batch": 1} | changes
    # Its own matches say nothing here: as few as there can be.
    options |= {"match_every": 1_000_000, "final_match_games": 2}
    settings = Settings(GAME, seed=seed, total_evaluations=evaluations, **options)
    path = folder_of(folder, name, seed)
    with Trainer(settings, path) as trainer:
        for event in trainer.run():
            if isinstance(event, Saved):
                print(f"{name}, seed {seed}: iteration {event.iteration}", flush=True)
    return sorted(path.glob("checkpoints/*/model.onnx"))[-1]


def folder_of(folder: Path, name: str, seed: int) -> Path:
    return folder / f"{name.replace(', ', '_').replace(' ', '_')}-{seed}"


def rows_fitted(run: Path) -> int:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    batch_size = read_config(run / "config.toml")["batch_size"]
    return batch_size * sum(row["steps"] for row in rows if row["kind"] == "iteration")


def match(one: Path, other: Path, games: int, seed: int) -> MatchResult:
    players = [
        SearchPlayer(OnnxEvaluator(model, game=azpy.make_game(GAME), threads=2), 100, **match_search(Settings))
        for model in (one, other)
    ]
    book = Book(lambda: make_position(GAME), 4, seed)
    return MatchResult.of(list(play_pairs(book, *players, games // 2, seed)))


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
    parser.add_argument("--out", type=Path, default=Path("ablation"))
    parser.add_argument("--evaluations", type=int, default=10_000_000)
    parser.add_argument("--seeds", type=int, default=1, help="seeds 0 to this, exclusive")
    parser.add_argument("--only", nargs="+", choices=list(TECHNIQUES))
    parser.add_argument("--games", type=int, default=400)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    results = given.out / "results.jsonl"
    text = results.read_text(encoding="utf-8") if results.exists() else ""
    rows = [json.loads(line) for line in text.splitlines()]
    if not given.table:
        done = {(row["name"], row["seed"]) for row in rows}
        names = given.only or list(TECHNIQUES)
        for seed in range(given.seeds):
            for name in [name for name in names if (name, seed) not in done]:
                pair = (name, TECHNIQUES[name][0])
                ours, theirs = (train(given.out, each, seed, given.evaluations) for each in pair)
                result = match(ours, theirs, given.games, seed)
                row = {"name": name, "against": pair[1], "seed": seed, "evaluations": given.evaluations}
                row |= {"score": result.score, "interval": result.interval}
                row |= {"elo": result.elo, "elo_interval": result.elo_interval}
                row["rows_fitted"] = [rows_fitted(folder_of(given.out, each, seed)) for each in pair]
                rows.append(row)
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
