"""What self-play does for training: targets apart from visits, fast searches."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_selfplay import play

import azpy
from azpy._core import FAST_SEARCH, SEARCHED
from azpy.cli.replay import main as az_replay
from azpy.playing.replay_check import repeat_game
from azpy.runs import exports
from azpy.runs.reader import StoredRun
from oracles import Hashed, after, observation_of
from training_runs import collect

# Targets.


def with_targets(record: azpy.GameRecord, targets: Sequence[float] | NDArray[Any]) -> azpy.GameRecord:
    """The same game with these targets [K], by the bytes of its format."""
    data = bytearray(record.to_bytes())
    data[4 + 4 + len(record.game) + 8 + 8] |= 8
    values = len(data) - 4 * len(record)
    return azpy.GameRecord.from_bytes(bytes(data[:values]) + np.asarray(targets, "<f4").tobytes() + data[values:])


def made_up(record: azpy.GameRecord) -> NDArray[np.float32]:
    """Targets [K] that are no shares of visits."""
    rng, parts = np.random.default_rng(record.game_id), [np.zeros(0)]
    for begin, end in zip(record.offsets[:-1], record.offsets[1:], strict=True):
        parts += [rng.dirichlet(np.ones(end - begin))] if end > begin else []
    return np.concatenate(parts).astype(np.float32)


def test_targets_are_shares_of_visits_if_none_are_stored() -> None:
    for record in play("connect_four", Hashed(7), 4, opening_plies=2):
        assert len(record.targets) == len(record.visits) > 0
        for begin, end in zip(record.offsets[:-1], record.offsets[1:], strict=True):
            visits = record.visits[begin:end]
            assert record.targets[begin:end].tolist() == (visits / max(visits.sum(), 1)).astype(np.float32).tolist()
        assert record.targets.dtype == np.float32


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


# Fast searches.


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few games with fast searches."""
    changes: dict[str, Any] = {"opening_plies": 1, "full_search_share": 0.5, "fast_simulations": 4}
    return collect(tmp_path_factory.mktemp("runs") / "run", "tic_tac_toe", games_per_iteration=20, **changes).path


def test_fast_searches_repeat_bit_for_bit(collected: Path) -> None:
    run, changes = StoredRun(collected), 0
    for _, record in run.games([1]):
        comparison = repeat_game(run, record)
        assert (comparison.difference, comparison.whole) == (None, True)
        fast = np.flatnonzero(record.flags & FAST_SEARCH)
        if not len(fast):
            continue
        data = bytearray(record.to_bytes())
        data[len(data) - 4 * (len(record) - int(fast[0]))] ^= 1
        changed = repeat_game(run, azpy.GameRecord.from_bytes(bytes(data))).difference
        assert (changed or "").startswith(f"ply {fast[0]}: root_values were ")
        changes += 1
    assert changes


def test_a_fast_search_is_shown_with_what_is_kept_of_it(collected: Path, printed: Any) -> None:
    _, record = next(found for found in StoredRun(collected).games([1]) if (found[1].flags & FAST_SEARCH).sum() > 1)
    fast = np.flatnonzero(record.flags & FAST_SEARCH)
    text = printed(az_replay, [str(collected), str(record.game_id)])
    assert text.count("not learned from, so only this is kept: played ") == len(fast)
    assert text.count(" prior  visits  target") == (record.flags & SEARCHED).sum()
    row = json.loads(printed(az_replay, [str(collected), str(record.game_id), "--json"]))["plies"][fast[0]]
    assert (row["searched"], row["fast"], row["root_value"]) == (False, True, record.root_values[fast[0]])
    assert "search" not in row


def test_a_weight_out_of_range_is_refused() -> None:
    buffer = azpy.ReplayBuffer("tic_tac_toe")
    for name in ("root_value_weight", "imported_value_weight"):
        for weight in (-0.1, 1.1, float("nan")):
            options: dict[str, Any] = {name: weight}
            with pytest.raises(ValueError, match=rf"{name} must be in \[0, 1\], got"):
                buffer.sample(8, seed=0, **options)
