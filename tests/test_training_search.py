"""What self-play does for training: targets apart from visits, fast searches, rows drawn by surprise."""

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy._core import FAST_SEARCH, SEARCHED
from azpy.cli.replay import main as az_replay
from azpy.playing.replay_check import repeat_game
from azpy.playing.selfplay import rates
from azpy.runs import exports
from azpy.runs.reader import StoredRun
from azpy.settings import Settings
from azpy.training.collector import Collector
from oracles import Countdown, Hashed, after, observation_of
from test_replay import slow_samples
from test_selfplay import play

# Targets.

# A game of dice_nim(heap=3) as it was stored in November 2026.
FORMAT_2 = (
    "AgAAABAAAABkaWNlX25pbShoZWFwPTMpAAAAAAAAAAAEAAAAAAAAAAAAgL8E/////wQAAAAFAAAAAgAAAP8AAAAAAAAAAAAAAAAAAAAAAAABMzMz"
    "PwAAAAAAAAAAAgAAAP8AAAAAAAAAAAAAAAAAAQAAAAEBzcxMPwAAAAAAAAAAAAAAAAAAAAADAAAAAwAAAAUAAAAAAAAAAQAAAAIAAAAAAAAAAQAA"
    "AAEAAAABAAAABwAAAAEAAAAIAAAAq6qqPquqqj6rqqo+AAAAPwAAAD8="
)


def with_targets(record: azpy.GameRecord, targets: Sequence[float] | NDArray[Any]) -> azpy.GameRecord:
    """The same game with these targets [K], by the bytes of its format."""
    data = bytearray(record.to_bytes())
    data[4 + 4 + len(record.game) + 8 + 8 + 4] |= 8
    return azpy.GameRecord.from_bytes(bytes(data) + np.asarray(targets, "<f4").tobytes())


def made_up(record: azpy.GameRecord) -> NDArray[np.float32]:
    """Targets [K] that are no shares of visits."""
    rng, parts = np.random.default_rng(record.game_id), [np.zeros(0)]
    for begin, end in zip(record.offsets[:-1], record.offsets[1:], strict=True):
        parts += [rng.dirichlet(np.ones(end - begin))] if end > begin else []
    return np.concatenate(parts).astype(np.float32)


def test_targets_are_the_shares_of_the_visits_where_none_are_stored() -> None:
    for record in play("connect_four", Hashed(7), 4, opening_plies=2):
        assert len(record.targets) == len(record.visits) > 0
        for begin, end in zip(record.offsets[:-1], record.offsets[1:], strict=True):
            visits = record.visits[begin:end]
            assert record.targets[begin:end].tolist() == (visits / max(visits.sum(), 1)).astype(np.float32).tolist()
        assert record.targets.dtype == np.float32


def test_a_game_stored_before_there_were_targets_is_read() -> None:
    record = azpy.GameRecord.from_bytes(base64.b64decode(FORMAT_2))
    assert record.actions.tolist() == [2, 0, 2, 1]
    assert record.visits.tolist() == [1, 1, 7, 1, 8]
    assert record.targets.tolist() == pytest.approx([1 / 9, 1 / 9, 7 / 9, 1 / 9, 8 / 9])
    assert (record.control, record.resign_ply, record.outcome) == (True, None, -1.0)
    buffer = azpy.ReplayBuffer("dice_nim(heap=3)")
    buffer.add(record)
    assert buffer.num_positions == 2


def test_stored_targets_reach_training_and_every_export(tmp_path: Path) -> None:
    start = azpy.make_game("connect_four")
    games = [with_targets(record, made_up(record)) for record in play("connect_four", Hashed(7), 5, opening_plies=2)]
    buffer = azpy.ReplayBuffer("connect_four")
    expected = dict[bytes, list[list[float]]]()  # a position may be met in several games
    for game in games:
        assert game.targets.tobytes() == made_up(game).tobytes()
        assert azpy.GameRecord.from_bytes(game.to_bytes()).to_bytes() == game.to_bytes()
        buffer.add(game)
        for ply in np.flatnonzero(game.flags & SEARCHED):
            own, row = slice(game.offsets[ply], game.offsets[ply + 1]), np.zeros(7, np.float32)
            row[game.legal[own]] = game.targets[own]
            planes = observation_of(after(start, *game.actions[:ply].tolist()))
            expected.setdefault(planes.tobytes(), []).append(row.tolist())
    drawn, _, policies, _ = buffer.sample(300, seed=1, symmetries=False)
    for observation, policy in zip(drawn, policies, strict=True):
        assert policy.tolist() in expected[observation.tobytes()]
    exports.to_npz(tmp_path / "x.npz", start, [(1, game) for game in games])
    with np.load(tmp_path / "x.npz") as file:
        for observation, policy in zip(file["observations"], file["policy_targets"], strict=True):
            assert policy.tolist() in expected[observation.tobytes()]
    exports.to_jsonl(tmp_path / "x.jsonl", start, [(1, game) for game in games])
    for line, game in zip((tmp_path / "x.jsonl").read_text().splitlines(), games, strict=True):
        targets = [action["target"] for ply in json.loads(line)["plies"] for action in ply.get("search", [])]
        assert targets == game.targets.tolist()


@pytest.mark.parametrize("bad", [[1.1, 0.1], [0.5, 0.502], [-0.5, 1.5], [float("nan"), 1.0], [float("inf"), 0.0]])
def test_targets_that_are_no_distribution_are_refused(bad: list[float]) -> None:
    record = play(Countdown(3), Hashed(3), 1)[0]
    targets = record.targets.copy()
    targets[:2] = bad
    with pytest.raises(ValueError, match=r"the policy target of ply 0 must be shares that sum to 1, got \["):
        azpy.ReplayBuffer(Countdown(3)).add(with_targets(record, targets))


# Fast searches.


def test_fast_searches_have_their_own_simulations_no_noise_and_are_no_samples() -> None:
    settings: dict[str, Any] = {"tree_reuse": False, "eval_batch": 1, "simulations": 24, "fast_simulations": 5}
    games = play("connect_four", Hashed(7), 30, full_search_share=0.3, root_noise=0.25, **settings)
    counts, noisy = {FAST_SEARCH: 0, SEARCHED: 0}, 0
    for record in games:
        position = azpy.make_game("connect_four")
        for ply, action in enumerate(record.actions.tolist()):
            flag = int(record.flags[ply])
            found = azpy.Search(Hashed(7), simulations=5 if flag == FAST_SEARCH else 24, eval_batch=1).run(position)
            own = slice(record.offsets[ply], record.offsets[ply + 1])
            counts[flag] += 1
            if flag == FAST_SEARCH:
                assert record.root_values[ply] == found.value
                assert own.start == own.stop
            else:
                assert record.visits[own].sum() == 24
                noisy += record.visits[own].tolist() != found.visits.tolist()
            position.play(action)
    searches = sum(counts.values())
    assert abs(counts[SEARCHED] - 0.3 * searches) < 4 * np.sqrt(0.3 * 0.7 * searches)
    assert noisy > counts[SEARCHED] / 2


def test_statistics_count_samples_and_fast_searches_apart() -> None:
    settings: dict[str, Any] = {"slots": 8, "simulations": 20, "games": 20, "full_search_share": 0.5}
    with azpy.SelfPlay("connect_four", Hashed(7), **settings) as games:
        flags = np.concatenate([record.flags for record in games])
        stats = games.stats
    fast, full = (int((flags & flag != 0).sum()) for flag in (FAST_SEARCH, SEARCHED))
    assert (stats["fast_searches"], stats["positions"], stats["searches"]) == (fast, full, fast + full)
    assert stats["simulations"] == 20 * full + 5 * fast  # a quarter, where fast_simulations is not given
    assert rates(dict.fromkeys(stats, 0.0), stats, 1.0)["fast_searches"] == pytest.approx(fast / (fast + full))


def test_training_and_statistics_see_full_searches_alone() -> None:
    games = play("connect_four", Hashed(7), 10, full_search_share=0.4, opening_plies=2)
    buffer, start = azpy.ReplayBuffer("connect_four"), azpy.make_game("connect_four")
    for record in games:
        buffer.add(record)
    samples = [sample for record in games for sample in slow_samples(start, record, 0.5, symmetries=False)]
    assert buffer.num_positions == len(samples) == sum(int((record.flags & SEARCHED).sum()) for record in games)
    possible = dict[bytes, list[float]]()
    for planes, _, _, value in samples:
        possible.setdefault(planes.tobytes(), []).append(value)
    drawn, _, _, values = buffer.sample(500, seed=1, root_value_weight=0.5, symmetries=False)
    for planes, value in zip(drawn, values, strict=True):
        assert min(abs(value - other) for other in possible[planes.tobytes()]) < 1e-6


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few games with fast searches."""
    path: Path = tmp_path_factory.mktemp("runs") / "run"
    settings = Settings(
        "tic_tac_toe", simulations=16, slots=4, games_per_iteration=20, iterations=1, opening_plies=1,
        full_search_share=0.5, fast_simulations=4,
    )  # fmt: skip
    with Collector(settings, path) as collector:
        list(collector.run())
    return path


def test_fast_searches_repeat_bit_for_bit_and_a_difference_is_seen(collected: Path) -> None:
    run = StoredRun(collected)
    for _, record in run.games([1]):
        comparison = repeat_game(run, record)
        assert (comparison.difference, comparison.whole) == (None, True)
        fast = np.flatnonzero(record.flags & FAST_SEARCH)
        if not len(fast):
            continue
        data = bytearray(record.to_bytes())
        data[4 + 4 + len(record.game) + 8 + 8 + 4 + 1 + 4 + 8 + 18 * int(fast[0]) + 6] ^= 1
        changed = repeat_game(run, azpy.GameRecord.from_bytes(bytes(data))).difference
        assert (changed or "").startswith(f"ply {fast[0]}: root_values were ")


def test_a_fast_search_is_shown_with_what_is_kept_of_it(collected: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, record = next(found for found in StoredRun(collected).games([1]) if (found[1].flags & FAST_SEARCH).sum() > 1)
    fast = np.flatnonzero(record.flags & FAST_SEARCH)
    assert az_replay([str(collected), str(record.game_id)]) == 0
    text = capsys.readouterr().out
    assert text.count("a fast search, of which only this is kept: played ") == len(fast)
    assert text.count(" prior  visits  target") == (record.flags & SEARCHED).sum()
    assert az_replay([str(collected), str(record.game_id), "--ply", str(fast[0]), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["plies"]
    assert (row["searched"], row["fast"], row["root_value"]) == (False, True, record.root_values[fast[0]])
    assert "search" not in row


# Surprise.


def divergence(record: azpy.GameRecord, ply: int) -> float:
    """KL of a ply's target from its priors."""
    own = slice(record.offsets[ply], record.offsets[ply + 1])
    target, prior = record.targets[own].astype(np.float64), record.priors[own].astype(np.float64)
    tried = target > 0
    return float((target[tried] * np.log(target[tried] / prior[tried])).sum())


def as_played(record: azpy.GameRecord) -> azpy.GameRecord:
    return record


def as_made_up(record: azpy.GameRecord) -> azpy.GameRecord:
    return with_targets(record, made_up(record))


def unsurprising(record: azpy.GameRecord) -> azpy.GameRecord:
    return with_targets(record, record.priors)


@pytest.mark.parametrize("change", [as_played, as_made_up, unsurprising])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_rows_are_drawn_as_often_as_their_surprise_says(
    weight: float, change: Callable[[azpy.GameRecord], azpy.GameRecord]
) -> None:
    games = [change(record) for record in play("connect_four", Hashed(7), 6, full_search_share=0.7)]
    buffer, start = azpy.ReplayBuffer("connect_four"), azpy.make_game("connect_four")
    chance = dict[bytes, float]()
    for record in games:
        buffer.add(record)
        plies = np.flatnonzero(record.flags & SEARCHED).tolist()
        surprises = np.array([divergence(record, ply) for ply in plies])
        by_surprise = surprises / surprises.sum() if surprises.sum() > 1e-4 else np.full(len(plies), 1 / len(plies))
        for ply, share in zip(plies, (1 - weight) / len(plies) + weight * by_surprise, strict=True):
            key = observation_of(after(start, *record.actions[:ply].tolist())).tobytes()
            chance[key] = chance.get(key, 0.0) + len(plies) * share
    rows = 200 * buffer.num_positions
    planes, *_ = buffer.sample(rows, seed=1, symmetries=False, surprise_weight=weight)
    counts = dict.fromkeys(chance, 0)
    for row in planes:
        counts[row.tobytes()] += 1
    expected = 200 * np.array(list(chance.values()))
    assert (np.abs(np.array(list(counts.values())) - expected) < 6 * np.sqrt(expected + 1)).all()
    assert expected.sum() == pytest.approx(rows)


def test_a_row_depends_on_the_seed_and_its_number_alone_with_surprise_too() -> None:
    buffer = azpy.ReplayBuffer("tic_tac_toe")
    for record in play("tic_tac_toe", Hashed(9), 20):
        buffer.add(record)
    many, few, uniform = (
        buffer.sample(rows, seed=1, surprise_weight=weight) for rows, weight in ((64, 0.5), (10, 0.5), (64, 0.0))
    )
    for whole, part in zip(many, few, strict=True):
        np.testing.assert_array_equal(whole[:10], part)
    for drawn, default in zip(uniform, buffer.sample(64, seed=1), strict=True):
        np.testing.assert_array_equal(drawn, default)
    assert (many[0] != uniform[0]).any()


def test_a_weight_out_of_range_is_refused() -> None:
    buffer = azpy.ReplayBuffer("tic_tac_toe")
    for weight in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"surprise_weight must be in \[0, 1\], got"):
            buffer.sample(8, seed=0, surprise_weight=weight)
