"""Runs of games that hide something: they learn, go on, say how exploitable they are, and refuse what has no effect."""

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import azpy
from azpy.cli import train
from azpy.errors import SettingsError
from azpy.matches.players import load_players, parse_player
from azpy.runs.reader import StoredRun
from azpy.serving.models import open_player
from azpy.settings.choosing import choose
from azpy.settings.run import Settings
from azpy.training.certificate import Certificate
from azpy.training.events import Measured, Noticed
from azpy.training.sizing import sized
from azpy.training.trainer import Trainer
from training_runs import events_of, opened_rows, same_weights

SMALL: dict[str, Any] = {"game": "kuhn_poker", "network": "2x16", "games_per_iteration": 64, "iterations": 3}
SMALL |= {"networks_per_iteration": 2, "slots": 16, "deterministic": True}


def settings(**changes: Any) -> Settings:
    return choose(SMALL | changes, sizing=sized)[0]


def run(path: Path, until: int | None = None, **changes: Any) -> list[Any]:
    return events_of(settings(**changes), path, until)


def test_kuhn_poker_is_learned_to_a_tenth_of_a_chip(tmp_path: Path) -> None:
    events = run(tmp_path, network="2x64", games_per_iteration=256, networks_per_iteration=8, iterations=30)
    measured = [event for event in events if isinstance(event, Measured)]
    assert measured[-1].iteration == 30
    assert (measured[-1].unit, round(measured[-1].uniform, 3)) == ("chips", 0.458)
    assert measured[-1].exploitability < 0.1
    assert measured[0].exploitability > measured[-1].exploitability
    # The checkpoint is what was measured, and any evaluator of the run plays it.
    found = azpy.exploitability(azpy.load_run(tmp_path).evaluator, "kuhn_poker")
    assert found == pytest.approx(measured[-1].exploitability, abs=1e-5)
    rows = [row for row in opened_rows(tmp_path) if row["kind"] == "exploitability"]
    assert rows[-1]["exploitability"] == measured[-1].exploitability
    assert [row["games"] for row in opened_rows(tmp_path) if row["kind"] == "iteration"] == [256 * 8] * 30
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Exploitability" in page
    assert "uniform play" in page
    assert "it learns" in page
    assert "Duplicate" not in page


def test_one_network_plays_all_games_of_a_step(tmp_path: Path) -> None:
    run(tmp_path, deterministic=False, slots=24)
    for iteration in (1, 2, 3):
        records = [record for _, record in StoredRun(tmp_path).games([iteration])]
        assert len(records) == 64
        assert len({int(network) for record in records for network in record.networks if network}) == 1


def test_parts_and_layouts_of_a_run_end_with_the_same_weights(tmp_path: Path) -> None:
    run(tmp_path / "straight")
    run(tmp_path / "stopped", until=2)
    run(tmp_path / "stopped")
    run(tmp_path / "other", slots=7, pipelines=3, threads=2, cache_positions=0)
    for name in ("stopped", "other"):
        assert same_weights(tmp_path / "straight", tmp_path / name, 3), name


def test_the_command_ends_with_the_certificate(tmp_path: Path, printed: Any) -> None:
    flags = ["--iterations", "2", "--games-per-iteration", "64", "--networks-per-iteration", "2", "--network", "1x16"]
    lines = printed(train.main, ["leduc_poker", *flags, "--out", str(tmp_path / "run")]).splitlines()
    assert "hides something, so it is trained by mirror descent" in lines[0]
    assert any(re.fullmatch(r"exploitability \d\.\d{3} chips; uniform play 2\.374", line) for line in lines)
    assert any(line == f"to play: az-play {tmp_path}/run" for line in lines)
    assert not any("strength" in line for line in lines)
    with pytest.raises(SettingsError, match="leduc_poker hides something from its players, and a protocol or a level"):
        open_player(str(tmp_path / "run"), None, 1)
    for more, what in (("@5", "simulations, temperatures and levels"), ("?c_puct=3", "c_puct")):
        with pytest.raises(
            SettingsError, match=f"its players draw from their policies and do not search: leave out {what}"
        ):
            load_players([parse_player(f"{tmp_path / 'run'}{more}")], azpy.make_game("leduc_poker"), 1)
    written = (tmp_path / "run/config.toml").read_text("utf-8")
    assert re.search(r"^payoff_scale = 0\.\d+$", written, re.MULTILINE)


def test_a_game_too_large_to_measure_is_trained_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise ValueError("more than 1,000,000 positions")

    monkeypatch.setattr("azpy._core.Exploitability", refuse)
    events = run(tmp_path, iterations=2)
    said = [event.text for event in events if isinstance(event, Noticed)]
    assert said == ["exploitability cannot be computed: more than 1,000,000 positions"]
    assert (tmp_path / "report.html").exists()


def test_rules_in_python_are_measured_up_to_a_smaller_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.training.certificate.MOST_IN_PYTHON", 10)
    events = run(tmp_path, game="planted_games:SeenKuhn", iterations=1)
    said = [event.text for event in events if isinstance(event, Noticed)]
    assert said == ["exploitability cannot be computed: the game has more than 10 positions"]


def test_measurements_are_few_and_take_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, rows = [0.0], list[dict[str, Any]]()

    def measured(*_: Any) -> Iterator[Any]:
        clock[0] += costs
        rows.append({"kind": "exploitability", "iteration": loop.iteration})
        yield from ()

    folder = SimpleNamespace(metrics=lambda: rows)
    budget = SimpleNamespace(progress=lambda done: done / 1000, elapsed=lambda: float(loop.iteration))
    time = SimpleNamespace(stage=lambda _: contextlib.nullcontext())
    loop: Any = SimpleNamespace(iteration=0, folder=folder, budget=budget, time=time, write_report=lambda: None)
    monkeypatch.setattr(Certificate, "_measured", measured)
    monkeypatch.setattr("azpy.training.certificate.time.monotonic", lambda: clock[0])
    for seconds, most in ((0.0, 21), (9.0, 4)):
        costs = seconds
        rows.clear()
        certificate = Certificate(loop, cast("Any", None))
        for loop.iteration in range(1, 1001):
            [*certificate.measure(cast("Any", None), 1, last=False)]
        assert most - 1 <= len(rows) <= most, "of a run's steps, and of its time"
        for _ in range(2):  # a run that goes on after its end
            [*certificate.measure(cast("Any", None), 1, last=True)]
        assert [row["iteration"] for row in rows].count(1000) == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"resign_at": 0.9}, "resign_at: no effect on kuhn_poker, which hides something"),
        ({"simulations": 50}, "simulations: no effect on kuhn_poker, which hides something"),
        ({"gumbel_actions": 4, "match_games": 10}, "gumbel_actions, match_games: no effect on kuhn_poker"),
        ({"batch_size": 64, "passes": 2.0}, "batch_size, passes: no effect"),
        ({"solver": True}, "solver: no effect"),
        ({"iterations": None, "deterministic": False}, "give minutes or iterations"),
        ({"game": "tic_tac_toe", "network": "1x16"}, "networks_per_iteration 2 is for games that hide something"),
    ],
)
def test_settings_without_effect_are_refused_before_a_folder_is_made(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    with pytest.raises(SettingsError, match=re.escape(why)):
        run(tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


def test_imported_games_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="learns from its own games alone"):
        Trainer(settings(), tmp_path / "run", ["games.npz"])


def test_the_card_game_of_the_guide_is_checked_and_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Any
) -> None:
    page = Path(__file__).parents[2] / "docs/guides/hidden.md"
    if not page.exists():
        pytest.skip("needs the source tree")
    (program,) = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "cards.py").write_text(program, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    from azpy.cli import check_game

    out = printed(check_game.main, ["cards:OneCardPoker", "--seconds", "5"])
    assert "exploitability can be computed: 1,418 positions" in out, out
    assert "Warning" not in out
    flags = ["--iterations", "8", "--networks-per-iteration", "12", "--games-per-iteration", "128", "--deterministic"]
    out = printed(train.main, ["cards:OneCardPoker", *flags, "--out", "run"])
    (found,) = re.findall(r"^exploitability ([\d.]+) chips; uniform play ([\d.]+)$", out, re.M)
    assert float(found[0]) < 0.6 * float(found[1])
    assert json.loads((tmp_path / "run/checkpoints/000008/state.json").read_text())["iteration"] == 8
    sys.modules.pop("cards", None)
