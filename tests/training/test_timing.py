"""Where a run's time goes, and what is said about it."""

import contextlib
import re
from typing import Any

import pytest

import azpy
from azpy.devices import Device
from azpy.fleet.fleet import Lineup
from azpy.fleet.here import Here
from azpy.playing import selfplay
from azpy.reports.advice import advise
from azpy.settings import Settings
from azpy.settings import run as settings
from azpy.training.timing import STAGES, TimeShares


def test_each_pipeline_says_where_its_time_went() -> None:
    with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), slots=4, simulations=5, pipelines=2, games=9) as games:
        list(games)
        lives, stats = games.pipeline_stats, games.stats
    seconds = {f"seconds_{name}" for name in ("growing", "evaluating", "waiting", "idle", "paused")}
    assert [each.keys() for each in lives] == [{"rounds", *seconds}] * 2
    assert all(value >= 0 for each in lives for value in each.values())
    assert sum(each["rounds"] for each in lives) >= stats["batches"] > 0


def test_shares_add_up() -> None:
    now = 1000.0
    shares = TimeShares(clock=lambda: now)
    with shares.stage("matches"):
        now += 10
    before = [{"seconds_growing": 5.0, "seconds_evaluating": 5.0, "seconds_waiting": 0.0}] * 2
    after = [
        {"seconds_growing": 15.0, "seconds_evaluating": 30.0, "seconds_waiting": 0.0},
        {"seconds_growing": 15.0, "seconds_evaluating": 25.0, "seconds_waiting": 5.0},
    ]
    now += 40
    shares.played(20.0, before, before)  # nothing yet
    shares.played(40.0, before, after)
    with shares.stage("fitting"):
        now += 30
    with contextlib.suppress(KeyError), shares.stage("writing"):
        now += 10
        raise KeyError  # what was spent is spent
    now += 10
    found = shares.shares()
    assert found == pytest.approx(
        {
            "share_growing": 40 * 20 / 70 / 100,
            "share_evaluating": 40 * 45 / 70 / 100,
            "share_fitting": 0.3,
            "share_exporting": 0.0,
            "share_writing": 0.1 + 40 * 5 / 70 / 100,
            "share_matches": 0.1,
            "share_other": 0.1,
        }
    )
    assert sum(found.values()) == pytest.approx(1.0)
    shares = TimeShares(clock=lambda: now)
    now += 1
    assert shares.shares() == {f"share_{name}": 0.0 for name in STAGES} | {"share_other": 1.0}


FULL = {"batch_rows": 512.0, "batch_fill": 0.9}
USUAL = {"batch_rows": 62.0, "batch_fill": 0.97}  # what the default settings make of 64 slots
SMALL = {"batch_rows": 20.0, "batch_fill": 0.9}
SPARSE = {"batch_rows": 20.0, "batch_fill": 0.4}


def spent(batches: dict[str, float], **shares: float) -> dict[str, float]:
    """The metrics of an iteration with these shares of its time."""
    return {f"share_{name}": shares.get(name, 0.0) for name in (*STAGES, "other")} | batches


@pytest.mark.parametrize(
    ("shares", "batches", "pipelines", "own_device", "text"),
    [
        ({"growing": 0.5, "evaluating": 0.35, "writing": 0.15}, FULL, 2, False, "writing takes long"),
        ({"growing": 0.2, "evaluating": 0.2, "fitting": 0.6}, FULL, 2, False, r"fewer --passes \(now 4\)"),
        ({"growing": 0.4, "exporting": 0.6}, FULL, 2, False, r"larger --games-per-iteration \(now 256\)"),
        ({"growing": 0.3, "evaluating": 0.3, "matches": 0.4}, FULL, 2, False, "fewer --match-games"),
        ({"growing": 0.2, "evaluating": 0.8}, SMALL, 2, False, r"more --slots \(now 128\) or a larger --eval-batch"),
        ({"growing": 0.2, "evaluating": 0.8}, SPARSE, 2, False, "less than half full.* more --slots"),
        ({"growing": 0.2, "evaluating": 0.8}, SPARSE, 2, True, "less than half full.* more --slots"),
        ({"growing": 0.2, "evaluating": 0.8}, FULL, 2, False, "most of self-play: try --precision auto, a smaller"),
        ({"growing": 0.2, "evaluating": 0.8}, USUAL, 2, False, "a smaller --network, or a GPU"),
        (
            {"growing": 0.8, "evaluating": 0.2},
            FULL,
            2,
            False,
            "growing the trees takes most of self-play: try more cores",
        ),
        ({"growing": 0.5, "evaluating": 0.5}, FULL, 1, False, "one core of 2: try --pipelines 2"),
        ({"growing": 0.2, "evaluating": 0.8}, FULL, 2, True, "trees wait for the device: try a smaller --network"),
        ({"growing": 0.1, "evaluating": 0.9}, FULL, 1, True, "trees wait for the device"),
        ({"growing": 0.8, "evaluating": 0.2}, SPARSE, 2, True, "the device waits for the trees: try more cores"),
        (
            {"growing": 0.8, "evaluating": 0.2},
            FULL,
            1,
            True,
            "the device waits while the trees grow: try --pipelines 2",
        ),
        ({"growing": 0.4, "evaluating": 0.6}, FULL, 1, True, "--pipelines 2"),
        ({"growing": 0.5, "evaluating": 0.5}, FULL, 2, False, None),
        ({"growing": 0.5, "evaluating": 0.5}, FULL, 2, True, None),
        ({"growing": 0.5, "evaluating": 0.5}, SMALL, 2, True, None),  # what a device needs is not known
        ({"growing": 0.0, "evaluating": 0.0, "fitting": 0.4, "other": 0.6}, {}, 2, False, None),  # nothing was played
    ],
)
def test_advice_names_the_bottleneck(
    shares: dict[str, float], batches: dict[str, float], pipelines: int, own_device: bool, text: str | None
) -> None:
    settings = Settings("connect_four", pipelines=pipelines, precision="fp32")
    advice = advise(settings, [spent(batches, **shares)], cores=2, own_device=own_device)
    if text is None:
        assert advice is None
    else:
        assert advice is not None
        assert re.search(text, advice), advice


@pytest.mark.parametrize("own_device", [False, True])
@pytest.mark.parametrize("game", ["countdown:Countdown", "open_spiel:breakthrough(rows=6,columns=6)", "hex(size=5)"])
def test_more_cores_are_not_advised_for_a_game_in_python(game: str, own_device: bool) -> None:
    metrics = spent(FULL, growing=0.8, evaluating=0.2)
    advice = str(advise(Settings(game, pipelines=2), [metrics], cores=2, own_device=own_device))
    assert advice.endswith("more cores") == ("hex" in game)
    assert ("write it in Rust (docs/start/own_game_rust.md)" in advice) == ("hex" not in game)


@pytest.mark.parametrize("changes", [{"precision": "int8"}, {"precision": "auto"}, {"deterministic": True}])
def test_int8_is_advised_only_where_it_may_help(changes: dict[str, Any]) -> None:
    metrics = spent(FULL, growing=0.2, evaluating=0.8)
    advice = advise(Settings("connect_four", pipelines=2, **changes), [metrics], cores=2)
    assert str(advice).endswith("takes most of self-play: try a smaller --network, or a GPU")


def test_a_deterministic_run_is_not_told_to_play_other_games() -> None:
    metrics = spent(SMALL, growing=0.2, evaluating=0.8)
    advice = advise(Settings("connect_four", deterministic=True), [metrics], cores=2)
    assert str(advice).endswith("more --slots (now 128)")
    assert "--eval-batch" not in str(advice)


def test_a_match_in_five_iterations_is_no_reason_for_advice() -> None:
    usual = spent(USUAL, growing=0.4, evaluating=0.4, fitting=0.2)
    matched = spent(USUAL, growing=0.25, evaluating=0.25, matches=0.5) | {"kept_only": 1.0}
    settings = Settings("connect_four")
    assert "--match-games" in str(advise(settings, [matched], cores=2))
    assert advise(settings, [usual, usual, matched, usual, usual], cores=2) is None


def test_advice_agrees_with_the_iteration_beside_it() -> None:
    playing = spent(FULL, growing=0.7, evaluating=0.2, fitting=0.1)
    fitting = spent(FULL, growing=0.3, evaluating=0.07, fitting=0.63)
    settings = Settings("connect_four", pipelines=2)
    assert "growing the trees" in str(advise(settings, [playing, playing], cores=2))
    assert advise(settings, [playing, playing, fitting], cores=2) is None
    assert "growing the trees" in str(advise(settings, [fitting, fitting, playing], cores=2))
    assert "--passes" in str(advise(settings, [fitting, fitting], cores=2))
    both = spent(FULL, growing=0.05, fitting=0.55, exporting=0.4)
    assert "fitting takes more than half" in str(advise(settings, [both], cores=2))


def test_a_run_on_cuda_has_as_many_slots_as_games_an_iteration() -> None:
    def slots(**chosen: Any) -> int:
        return settings.combine({"game": "hex", "device": "cuda", **chosen}).slots

    assert slots(games_per_iteration=512) == 512
    assert slots(games_per_iteration=16) == 128
    assert slots(games_per_iteration=100_000) == 2048
    assert slots(games_per_iteration=512, slots=64) == 64
    assert slots(games_per_iteration=512, device="cpu") == 128
    assert slots(games_per_iteration=512, device="cuda", devices="0,1") == 512


def test_a_pipeline_with_its_own_core_grows_its_own_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfplay, "usable_cores", lambda: 4)
    many: list[Any] = [(4, "cpu", None, 1), (5, "cpu", None, 1), (4, "cpu", 3, 3), (4, "cuda:0", None, 1)]
    for pipelines, device, threads, expected in [*many, (3, "cpu", None, None), (3, "cuda:0", None, None)]:
        run = Settings("connect_four", pipelines=pipelines, threads=threads)
        assert selfplay.threads_of_trees(run, device) == expected
    monkeypatch.setattr(selfplay, "usable_cores", lambda: 2)
    run = Settings("connect_four", pipelines=2)
    assert selfplay.threads_of_trees(run, "cuda:0") is None  # the other pipeline waits for the GPU


def test_games_without_a_network_have_the_threads_of_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfplay, "usable_cores", lambda: 2)
    run, threads, opened = Settings("connect_four", pipelines=2), list[int | None](), selfplay._open

    def noted(*given: Any, **layout: Any) -> azpy.SelfPlay:
        threads.append(layout["threads"])
        return opened(*given, **layout)

    monkeypatch.setattr(selfplay, "_open", noted)
    for device in ("cpu", "cuda:0"):
        fleet = Here(run, azpy.make_game("connect_four"))
        fleet.play(Lineup([azpy.UniformEvaluator()], devices=[Device.read(device)]))
        fleet.close()
    assert threads == [1, None]


def test_a_network_on_the_cpu_gets_a_pipeline_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "usable_cores", lambda: 16)
    for given, expected in (
        ({}, 16),
        ({"slots": 6}, 6),
        ({"device": "auto", "devices": "0,1"}, 2),
        ({"pipelines": 3}, 3),
        ({"pipelines": "auto"}, 16),
    ):
        assert settings.combine({"game": "pig"}, given).pipelines == expected, given
    for problem, expected in (("no driver", 16), (None, 2)):
        monkeypatch.setattr(settings, "no_gpu", lambda problem=problem: problem)
        assert settings.combine({"game": "pig"}, {"device": "auto"}).pipelines == expected
    monkeypatch.setattr(settings, "usable_cores", lambda: 1)
    assert settings.combine({"game": "pig"}).pipelines == 2
