"""What each technique of training brings: one of them changed at a time, for equal evaluations or equal time.

    python benches/ablation.py [--game connect_four] [--network BxC] [--out ablation/connect_four]
        [--evaluations 10000000 | --minutes M] [--seeds 1] [--only NAME ...] [--games 400] [--table]

Every run plays and learns with the preset of the game (its network too, unless one is given) and one technique
changed, until its self-play has asked the network so often or, with --minutes, so long. Then its last model meets that
of the run it is set against, of the same seed, in paired games from random openings. That is a run which plans with
Gumbel and 16 simulations (as the preset of Connect Four does), or, for what Gumbel has no use for (noise, fpu and the
like), one with PUCT, 100 simulations and fewer games an iteration. `az-compare` does the same for any two settings.
Runs lie in the folder --out: the same command goes on where it was stopped and does nothing twice. `--table` prints
what is there.

Judge a technique by both. With equal evaluations fitting differs: a run with fewer simulations a move learns from more
positions. With equal time the machine must do nothing else. The table has the rows that both runs were fitted to, the
evaluations of their self-play, and their minutes. The interval of a seed is that of the match between two models. What
seeds do is not in it: with several seeds, the row `all` has the mean score and its interval over the seeds (Student's
t). With one seed a difference can be the seed's.

    python benches/ablation.py --only "32 simulations" "global pooling" --seeds 5                # equal evaluations
    python benches/ablation.py --only "32 simulations" "global pooling" --seeds 5 --minutes 20   # equal time

share a folder. `benches/solved.py` then counts the errors of its runs in solved positions of Connect Four.
"""

import argparse
import re
from functools import partial
from pathlib import Path
from typing import Any

from azpy.matches.ratings import elo, mean_interval
from azpy.settings.presets import preset_of
from azpy.settings.run import Settings
from azpy.training.comparison import Comparison
from azpy.training.events import Event, Saved

GUMBEL, PUCT = "Gumbel, 16 simulations", "PUCT, 100 simulations"
WITH_GUMBEL: dict[str, Any] = {"gumbel_actions": 8, "simulations": 16, "games_per_iteration": 512, "learner_lag": 0}
WITH_PUCT: dict[str, Any] = {
    "learner_lag": 0,
    "gumbel_actions": 0,
    "simulations": 100,
    "games_per_iteration": 128,
    "temperature_plies": 12,
}
# The run that each is set against, and what differs from the preset. A network of "+pool" is the common one that pools.
TECHNIQUES: dict[str, tuple[str, dict[str, Any]]] = {
    PUCT: (GUMBEL, WITH_PUCT),
    "32 simulations": (GUMBEL, WITH_GUMBEL | {"simulations": 32}),
    "four passes": (GUMBEL, WITH_GUMBEL | {"passes": 4.0}),
    "batches of 256": (GUMBEL, WITH_GUMBEL | {"batch_size": 256}),
    "low rate, little decay": (GUMBEL, WITH_GUMBEL | {"learning_rate": 0.0014, "weight_decay": 0.0001}),
    "no symmetries": (GUMBEL, WITH_GUMBEL | {"symmetries": False}),
    "no random openings": (GUMBEL, WITH_GUMBEL | {"opening_plies": 0}),
    "outcome alone as value target": (GUMBEL, WITH_GUMBEL | {"root_value_weight": 0.0}),
    "constant learning rate": (GUMBEL, WITH_GUMBEL | {"schedule": "constant"}),
    "small window": (GUMBEL, WITH_GUMBEL | {"window_max": 20_000}),
    "surprise weighting": (GUMBEL, WITH_GUMBEL | {"surprise_weight": 0.5}),
    "lambda return as value target": (GUMBEL, WITH_GUMBEL | {"value_lambda": 0.9, "root_value_weight": 0.0}),
    "equal positions merged": (GUMBEL, WITH_GUMBEL | {"merge_positions": True}),
    "value scale 0.3": (GUMBEL, WITH_GUMBEL | {"value_scale": 0.3}),
    "value scale 1": (GUMBEL, WITH_GUMBEL | {"value_scale": 1.0}),
    "value scale 0.25, raw": (GUMBEL, WITH_GUMBEL | {"value_scale": 0.25, "gumbel_rescale": False}),
    "value scale 0.5, raw": (GUMBEL, WITH_GUMBEL | {"value_scale": 0.5, "gumbel_rescale": False}),
    "value scale 1, raw": (GUMBEL, WITH_GUMBEL | {"value_scale": 1.0, "gumbel_rescale": False}),
    "training in bf16": (GUMBEL, WITH_GUMBEL | {"training_precision": "bf16"}),
    "int8": (GUMBEL, WITH_GUMBEL | {"precision": "int8"}),
    "solver": (GUMBEL, WITH_GUMBEL | {"solver": True}),
    "look ahead": (GUMBEL, WITH_GUMBEL | {"solver": True, "lookahead": 4}),
    "earlier networks": (GUMBEL, WITH_GUMBEL | {"historical_share": 0.2}),
    "simulations from 2 to 64": (GUMBEL, WITH_GUMBEL | {"simulations_start": 2, "simulations": 64}),
    "global pooling": (GUMBEL, WITH_GUMBEL | {"network": "+pool"}),
    "learning beside play": (GUMBEL, WITH_GUMBEL | {"learner_lag": 1}),
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


def plain_network(game: str) -> str:
    """The network of a game's preset, without pooling."""
    return str(preset_of(game).get("network", Settings.network)).removesuffix("+pool")


def changes(name: str, network: str) -> dict[str, Any]:
    """What a technique changes in a run with a network."""
    changed = TECHNIQUES[name][1]
    return changed | {"network": f"{network}+pool"} if "network" in changed else changed


def over_seeds(name: str, scores: list[float]) -> str:
    """The line of all seeds of a technique."""
    low, high = mean_interval(scores) or (0.0, 1.0)
    mean = sum(scores) / len(scores)
    text = f"{mean:.3f} [{low:.3f}, {high:.3f}] | {elo(mean):+.0f} [{elo(low):+.0f}, {elo(high):+.0f}]"
    return f"| {name} | {TECHNIQUES[name][0]} | all {len(scores)} | {text} | | | |"


def table(rows: list[tuple[str, dict[str, Any]]]) -> str:
    lines = ["| technique | against | seed | score | Elo | of both: rows fitted | evaluations | minutes |"]
    lines.append("|---" * 8 + "|")
    for name, row in rows:
        score, low, high = (row[key] for key in ("score", "low", "high"))
        text = f"{score:.3f} [{low:.3f}, {high:.3f}] | {elo(score):+.0f} [{elo(low):+.0f}, {elo(high):+.0f}]"
        counts = [[f"{count / 1e6:.2f} M" for count in row[key]] for key in ("rows_fitted", "evaluations")]
        minutes = [f"{seconds / 60:.0f}" for seconds in row.get("seconds", ())]
        work = " | ".join(map(" and ".join, [*counts, minutes]))
        lines.append(f"| {name} | {TECHNIQUES[name][0]} | {row['seed']} | {text} | {work} |")
    for name in dict.fromkeys(name for name, _ in rows):
        scores = [row["score"] for other, row in rows if other == name]
        lines += [over_seeds(name, scores)] if len(scores) > 1 else []
    return "\n".join(lines)


def show(event: Event) -> None:
    if isinstance(event, Saved):
        print(event.path, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--network", help="of all runs, by default the preset's without pooling")
    parser.add_argument("--out", type=Path, help="by default ablation/GAME")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--evaluations", type=int, default=10_000_000)
    length.add_argument("--minutes", type=float, help="of each run, in place of --evaluations")
    parser.add_argument("--seeds", type=int, default=1, help="seeds 0 to this, exclusive")
    parser.add_argument("--only", nargs="+", choices=list(TECHNIQUES))
    parser.add_argument("--games", type=int, default=400)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    out = given.out or Path("ablation") / re.sub(r"\W+", "-", given.game).strip("-")
    network = given.network or plain_network(given.game)
    work = {"total_evaluations": given.evaluations} if given.minutes is None else {"minutes": given.minutes}
    comparison = Comparison(out, given.game, work, {"network": network}, given.games)
    rows = []
    for name in [name for name in TECHNIQUES if name in (given.only or TECHNIQUES)]:
        against, changed = TECHNIQUES[name][0], changes(name, network)
        base = WITH_GUMBEL if against == GUMBEL else WITH_PUCT
        for seed in range(given.seeds):
            get = comparison.stored if given.table else partial(comparison.run, show=show)
            if (row := get(changed, base, seed)) is not None:
                rows.append((name, row))
    print(table(rows))


if __name__ == "__main__":
    main()
