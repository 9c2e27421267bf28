"""`--deterministic`: the same games and weights, bit for bit, whatever the machine has to offer."""

import os
from pathlib import Path

import pytest
import torch
from test_crashes import check_run

from azpy.learning.learner import use_threads
from starts import GAMES, Starts, command

VARIANTS = [
    ["--threads", "1", "--slots", "2", "--cache-positions", "0"],
    ["--threads", "8", "--slots", "37", "--pipelines", "3", "--cache-positions", "8"],
    ["--match-every", "1", "--match-games", "4", "--match-opening-plies", "1"],
]


@pytest.mark.parametrize(
    "game", [GAMES[0], *(pytest.param(game, marks=pytest.mark.slow) for game in (*GAMES[1:], "connect_four"))]
)
def test_the_same_seed_gives_the_same_bits_in_any_layout(starts: Starts, tmp_path: Path, game: str) -> None:
    end = starts.finish(*command(game, tmp_path / "straight", 3))
    games, weights = check_run(tmp_path / "straight", 3)
    assert f"games {games[:16]}, weights {weights[:16]}" in end.output
    for number, flags in enumerate(VARIANTS):
        starts.finish(*command(game, tmp_path / str(number), 3), *flags)
        assert check_run(tmp_path / str(number), 3) == (games, weights), flags
    other = [*command(game, tmp_path / "other", 3), "--seed", "1"]
    starts.finish(*other)
    assert games != check_run(tmp_path / "other", 3)[0]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be taken away here")
def test_one_core_gives_the_same_bits_as_all(starts: Starts, tmp_path: Path) -> None:
    two_threads = "import azpy.learning.learner as learner\nlearner.usable_cores = lambda: 2"  # tests have one else
    assert starts.run(*command(GAMES[0], tmp_path / "all", 2), before=two_threads).code == 0
    starts.finish(*command(GAMES[0], tmp_path / "one", 2), one_core=True)
    assert check_run(tmp_path / "all", 2) == check_run(tmp_path / "one", 2)


def test_only_deterministic_runs_fit_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.learning.learner.usable_cores", lambda: 2)
    assert use_threads(single=False) == 2
    assert torch.get_num_threads() == 2
    assert use_threads(single=True) == 2
    assert torch.get_num_threads() == 1


def test_speed_may_change_in_mid_run_and_the_rest_is_said(starts: Starts, tmp_path: Path) -> None:
    starts.finish(*command(GAMES[0], tmp_path / "straight", 3))
    path = tmp_path / "run"
    arguments = command(GAMES[0], path, 3)
    while not (path / "checkpoints/000001").exists():
        starts.run(*arguments, kill_at=100)
    end = starts.finish(*arguments, "--slots", "9", "--threads", "3", "--cache-positions", "0")
    assert "slots was 4, is now 9 from iteration " in end.output
    assert "cannot be reproduced with a single value" not in end.output
    assert check_run(path, 3) == check_run(tmp_path / "straight", 3)
    end = starts.finish(*command(GAMES[0], path, 4), "--simulations", "5")
    assert (
        "simulations was 4, is now 5 from iteration 4 on: its games cannot be reproduced with a single value"
        in end.output
    )
    assert (
        "iterations was 3, is now 4 from iteration 4 on: its games cannot be reproduced with a single value"
        in end.output
    )
    assert "slots was 9, is now 4 from iteration 4 on\n" in end.output
