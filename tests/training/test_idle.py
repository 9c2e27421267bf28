"""Settings that can do nothing in a run are said or refused before the run begins."""

import warnings
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.cli.train import main
from azpy.errors import RunError, SettingsError, SettingsWarning
from azpy.settings.choosing import warn_of_idle
from azpy.settings.run import combine
from azpy.training.collector import Collector
from azpy.training.events import Noticed
from azpy.training.trainer import Trainer
from training_runs import settings


def told(given: dict[str, Any], **how: Any) -> list[str]:
    """The warnings of a run of tic-tac-toe with these settings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_idle(combine({"game": "tic_tac_toe"}, given), given, **({"supervised": False} | how))
    return [str(each.message) for each in caught]


@pytest.mark.parametrize(
    ("given", "idle", "why", "effective"),
    [
        ({"supervised_passes": 3.0}, "supervised_passes 3.0", "it goes with --supervised", None),
        ({"supervised_min_rating": 900}, "supervised_min_rating 900", "it goes with --supervised", None),
        ({"window_min": 99, "window_max": 9}, "window_min 99", "window_max is 9", {"window_max": 100}),
        ({"match_games": 8, "iterations": 3, "match_every": 3}, "match_games 8", "orders no", {"match_every": 2}),
        ({"match_games": 8, "minutes": 3}, "match_games 8", "match_every orders no match", {"match_every": 999}),
        (
            {"final_match_games": 8},
            "final_match_games 8",
            "a run without --minutes or --iterations never reaches its last match",
            {"minutes": 1},
        ),
        ({"fast_simulations": 5}, "fast_simulations 5", "all searches are full", {"full_search_share": 0.5}),
        ({"temperature": 2.0, "temperature_plies": 0}, "temperature 2.0", "temperature_p", {"temperature_plies": 3}),
        ({"temperature_plies": 3, "temperature_final": 1.0}, "temperature_plies 3", "", {"temperature_final": 0.1}),
        ({"virtual_loss": 2.0, "eval_batch": 1}, "virtual_loss 2.0", "eval_batch is 1", {"eval_batch": 2}),
        ({"in_flight_share": 0.5, "eval_batch": 1}, "in_flight_share 0.5", "eval_batch is 1", {"eval_batch": 2}),
        ({"slots": 9, "games_per_iteration": 8, "deterministic": True}, "slots 9", "fewer", {"games_per_iteration": 9}),
    ],
)
def test_a_setting_without_effect_warns(
    given: dict[str, Any], idle: str, why: str, effective: dict[str, Any] | None
) -> None:
    (line,) = told(given)
    assert line.startswith(f"{idle} has no effect: ")
    assert why in line
    assert told(given | effective if effective else given, supervised=effective is None) == []
    with warnings.catch_warnings():  # not typed: a file or a preset has it
        warnings.simplefilter("error")
        warn_of_idle(combine({"game": "tic_tac_toe"}, given), {}, supervised=False)


def test_a_collection_says_what_waits_for_training() -> None:
    given = {"learning_rate": 0.5, "match_every": 3, "tensorboard": True, "precision": "fp32", "slots": 9}
    lines = told(given, collects=True, has_model=False)
    assert [line.partition(" ")[0] for line in lines] == ["tensorboard", "learning_rate", "match_every", "precision"]
    assert "it counts once az-train learns from this folder" in lines[0]
    assert lines[-1].endswith("no network plays without --model")
    assert len(told(given, collects=True)) == 3
    assert told(given) == []


def test_commands_and_python_warn_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "missing")
    line = "fast_simulations 5 has no effect: all searches are full: give full_search_share below 1"
    assert main(["pig", "--network", "1x8", "--fast-simulations", "5", "--init", missing, "--out", missing]) == 2
    first, last = capsys.readouterr().err.splitlines()
    assert (first, last.partition(":")[0]) == (f"az-train: {line}", "az-train")
    with pytest.warns(SettingsWarning, match=f"^{line}$"), pytest.raises(RunError):
        azpy.train("pig", network="1x8", fast_simulations=5, init=missing, out=missing)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"score_to_beat": 0.5}, "score_to_beat is for games of one player, but this game has 2 players"),
        (
            {"game": "connect_four_for_three", "resign_at": 0.9},
            "resign_at is for .*, but this game has 3 players or no zero sum",
        ),
        ({"game": "connect_four_for_three", "solver": True}, "solver and lookahead work for one player, .* 3 players"),
    ],
)
def test_options_that_a_game_cannot_have_leave_no_folder(change: dict[str, Any], text: str, tmp_path: Path) -> None:
    for kind in (Trainer, Collector):
        with pytest.raises(SettingsError, match=f"self-play cannot run with these settings: {text}"):
            kind(settings(**change), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("batch", "iterations", "text"),
    [
        (
            60_000,
            2,
            "far: batches repeat them, so this iteration takes no steps; try a smaller --batch-size or more --games",
        ),
        (600, 1, "far: batches repeat them; try a smaller --batch-size or more --games-per-iteration"),
        (64, 1, ""),
    ],
)
def test_a_batch_larger_than_the_window_warns_once(batch: int, iterations: int, text: str, tmp_path: Path) -> None:
    with Trainer(settings(batch_size=batch, iterations=iterations, passes=8.0), tmp_path) as trainer:
        lines = [event.text for event in trainer.run() if isinstance(event, Noticed)]
    lines = [line for line in lines if line.startswith(f"batch_size {batch:,} is more than the ")]
    assert len(lines) == bool(text)
    assert text in "".join(lines)
