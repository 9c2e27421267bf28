"""What each technique of training brings: Connect Four with one of them changed at a time, for equal evaluations.

    python benches/ablation.py [--out ablation] [--evaluations 10000000] [--seeds 1] [--only NAME ...] [--games 400]
        [--table]

Every run plays and learns with the preset of Connect Four, one technique off (or, where the preset leaves it off, on),
until its self-play has asked the network so often. Then its last model meets the last model of the unchanged run of
the same seed, in paired games from random openings. Runs lie in the folder --out: the same command goes on where it
was stopped, trains what is missing, and says nothing twice. `--table` prints what is there.

The interval is that of the match between two models. What seeds do is not in it: compare the rows of several seeds,
and mind that with one seed a difference can be the seed's.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import azpy
from azpy.arena import MatchResult, SearchPlayer, play_pairs
from azpy.events import Saved
from azpy.onnx import OnnxEvaluator
from azpy.openings import Book
from azpy.positions import make_position
from azpy.presets import preset_of
from azpy.settings import Settings, match_search
from azpy.trainer import Trainer

GAME, UNCHANGED = "connect_four", "unchanged"
TECHNIQUES: dict[str, dict[str, Any]] = {
    UNCHANGED: {},
    "no symmetries": {"symmetries": False},
    "no random openings": {"opening_plies": 0},
    "no root noise": {"root_noise": 0.0},
    "no temperature": {"temperature_plies": 0},
    "outcome alone as value target": {"root_value_weight": 0.0},
    "constant learning rate": {"schedule": "constant"},
    "small window": {"window_max": 20_000},
    "eight leaves a tree": {"eval_batch": 8},
    "fpu by the parent": {"fpu": 0.25},
    "playout cap": {"full_search_share": 0.25, "fast_simulations": 20},
    "forced visits": {"forced_visits": 2.0},
    "shaped noise": {"noise_shaped": True},
    "root temperature": {"root_temperature": 1.1},
    "surprise weighting": {"surprise_weight": 0.5},
    "solver": {"solver": True},
    "variance-scaled c_puct": {"c_puct_stdev": 0.85},
    "Gumbel": {"gumbel_actions": 7},
    "earlier networks": {"historical_share": 0.2},
}


def train(folder: Path, name: str, seed: int, evaluations: int) -> Path:
    """The last model of a run, which goes on where it was stopped."""
    options = preset_of(GAME) | {"eval_batch": 1} | TECHNIQUES[name]
    # Its own matches say nothing here: as few as there can be.
    options |= {"match_every": 1_000_000, "final_match_games": 2}
    settings = Settings(GAME, seed=seed, total_evaluations=evaluations, **options)
    path = folder / f"{name.replace(' ', '_')}-{seed}"
    with Trainer(settings, path) as trainer:
        for event in trainer.run():
            if isinstance(event, Saved):
                print(f"{name}, seed {seed}: iteration {event.iteration}", flush=True)
    return sorted(path.glob("checkpoints/*/model.onnx"))[-1]


def match(one: Path, other: Path, games: int, seed: int) -> MatchResult:
    players = [
        SearchPlayer(OnnxEvaluator(model, game=azpy.make_game(GAME), threads=2), 100, **match_search(Settings))
        for model in (one, other)
    ]
    book = Book(lambda: make_position(GAME), 4, seed)
    return MatchResult.of(list(play_pairs(book, *players, games // 2, seed)))


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| technique | seed | score against the unchanged run | Elo |", "|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: (row["name"], row["seed"])):
        score = f"{row['score']:.3f} [{row['interval'][0]:.3f}, {row['interval'][1]:.3f}]"
        elo = f"{row['elo']:+.0f} [{row['elo_interval'][0]:+.0f}, {row['elo_interval'][1]:+.0f}]"
        lines.append(f"| {row['name']} | {row['seed']} | {score} | {elo} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("ablation"))
    parser.add_argument("--evaluations", type=int, default=10_000_000)
    parser.add_argument("--seeds", type=int, default=1, help="seeds 0 to this, exclusive")
    parser.add_argument("--only", nargs="+", choices=[name for name in TECHNIQUES if name != UNCHANGED])
    parser.add_argument("--games", type=int, default=400)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    results = given.out / "results.jsonl"
    text = results.read_text(encoding="utf-8") if results.exists() else ""
    rows = [json.loads(line) for line in text.splitlines()]
    if not given.table:
        done = {(row["name"], row["seed"]) for row in rows}
        names = given.only or [name for name in TECHNIQUES if name != UNCHANGED]
        for seed in range(given.seeds):
            for name in [name for name in names if (name, seed) not in done]:
                unchanged = train(given.out, UNCHANGED, seed, given.evaluations)
                result = match(train(given.out, name, seed, given.evaluations), unchanged, given.games, seed)
                row = {"name": name, "seed": seed, "score": result.score, "interval": result.interval}
                row |= {"elo": result.elo, "elo_interval": result.elo_interval, "evaluations": given.evaluations}
                rows.append(row)
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
