"""Training batches are what a slow replay of the records gives."""

import numpy as np
import pytest

import azpy
from oracles import after
from records import GAMES, SEARCHED, records, slow_samples, start_of


@pytest.mark.parametrize("symmetries", [False, True])
@pytest.mark.parametrize(("weight", "share"), [(0.25, 0.6), (1.0, 1.0)])
@pytest.mark.parametrize("game", GAMES)
def test_batches_equal_a_slow_replay(game: str, weight: float, share: float, symmetries: bool) -> None:
    # Dice, openings and fast searches lie between the samples, and in some of the games a player has two turns.
    played = records(GAMES[game], 6, full_search_share=share)
    buffer = azpy.ReplayBuffer(GAMES[game])
    for record in played:
        buffer.add(record)
    start = start_of(GAMES[game])
    possible = [sample for record in played for sample in slow_samples(start, record, weight, symmetries)]
    by_planes = dict[bytes, list[int]]()
    for index, (planes, *_) in enumerate(possible):
        by_planes.setdefault(planes.tobytes(), []).append(index)

    planes, legal, policies, values = buffer.sample(2000, seed=3, root_value_weight=weight, symmetries=symmetries)
    assert planes.shape == (2000, *start.obs_shape)
    assert legal.shape == policies.shape == (2000, start.num_actions)
    assert [array.dtype for array in (planes, legal, policies, values)] == ["f4", "?", "f4", "f4"]
    drawn = set[int]()
    for row in range(2000):
        fitting = [
            index
            for index in by_planes[planes[row].tobytes()]
            if (possible[index][1] == legal[row]).all()
            and np.abs(possible[index][2] - policies[row]).max() < 2e-6
            and abs(possible[index][3] - values[row]) < 1e-6
        ]
        assert fitting, f"row {row} is no ply of these games"
        drawn |= set(fitting)
    assert len(drawn) > 0.9 * len(possible)


def test_a_buffer_counts_searched_plies_of_its_own_game() -> None:
    played = records("connect_four", 10, opening_plies=6)
    buffer = azpy.ReplayBuffer("connect_four")
    with pytest.raises(ValueError, match=r"(?i)empty|no "):
        buffer.sample(8, seed=0)
    buffer.extend(played)
    searched = sum(int((record.flags & SEARCHED).sum()) for record in played)
    assert searched < sum(len(record) for record in played)
    with pytest.raises(ValueError, match="tic_tac_toe"):
        buffer.add(records("tic_tac_toe", 1)[0])
    assert (buffer.num_games, buffer.num_positions) == (10, searched)


def test_samples_depend_on_the_seed_alone() -> None:
    buffer = azpy.ReplayBuffer("tic_tac_toe")
    for record in records("tic_tac_toe", 20):
        buffer.add(record)
    one, two, other = (buffer.sample(64, seed=seed) for seed in (1, 1, 2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (one[0] != other[0]).any()
    # Row i is the same in a batch of another size.
    few = buffer.sample(10, seed=1)
    np.testing.assert_array_equal(few[0], one[0][:10])


@pytest.mark.parametrize("game", ["connect_four", "pig", "python"])
def test_details_say_where_each_row_comes_from(game: str) -> None:
    played = {record.game_id: record for record in records(GAMES[game], 6)}
    buffer = azpy.ReplayBuffer(GAMES[game])
    buffer.extend(played.values())
    plain = buffer.sample(40, seed=3)
    *arrays, details = buffer.sample(40, seed=3, details=True)
    assert all(np.array_equal(one, other) for one, other in zip(plain, arrays, strict=True))
    rows = zip(arrays[0], details["game_ids"], details["plies"], details["states"], details["symmetries"], strict=True)
    for observation, game_id, ply, state, symmetry in rows:
        record = played[int(game_id)]
        assert record.flags[ply] & SEARCHED
        assert state.key() == after(start_of(GAMES[game]), *record.actions[:ply].tolist()).key()
        assert np.array_equal(state.symmetric_observation(int(symmetry), state.observation()), observation)
    assert len(buffer.sample(2, seed=0, imported_value_weight=0.5, details=True)) == 6


def test_every_position_is_as_likely_as_another() -> None:
    played = records("connect_four", 5, opening_plies=0)
    buffer = azpy.ReplayBuffer("connect_four")
    for record in played:
        buffer.add(record)
    rows = 200 * buffer.num_positions
    planes, *_ = buffer.sample(rows, seed=1, symmetries=False)
    stones = planes.sum(axis=(1, 2, 3)).astype(int)  # the ply, without an opening
    counts = np.bincount(stones, minlength=42)
    expected = np.zeros(42)
    for record in played:
        expected[: len(record)] += 200
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected + 1)).all()


@pytest.mark.parametrize("game", ["connect_four", "pig", "python"])
def test_a_window_that_moved_on_draws_its_games_alone(game: str) -> None:
    played, moved = records(GAMES[game], 40), azpy.ReplayBuffer(GAMES[game])
    for begin, size in ((0, 10**6), (10, 60), (20, 25), (30, 40)):  # smaller, and larger again
        moved.resize(size)
        moved.extend(played[begin : begin + 10])
    kept = played[-moved.num_games :]
    positions = [record.positions for record in kept]
    assert sum(positions[1:]) < 40 <= sum(positions) == moved.num_positions
    anew = azpy.ReplayBuffer(GAMES[game], max_positions=moved.num_positions)
    for record in kept:
        anew.add(record)
    for seed in range(3):
        draws = (buffer.sample(200, seed=seed, root_value_weight=0.25) for buffer in (moved, anew))
        for one, other in zip(*draws, strict=True):
            assert one.tobytes() == other.tobytes()


def test_a_resized_buffer_lets_go_of_the_games_beyond() -> None:
    buffer, played = azpy.ReplayBuffer("tic_tac_toe"), records("tic_tac_toe", 20)
    buffer.extend(record for record in played)  # any iterable
    positions = [record.positions for record in played]
    exact = sum(positions[-7:])
    for size, games in ((exact + 1, 8), (exact, 7), (10**6, 7), (1, 1)):
        buffer.resize(size)
        assert (buffer.num_games, buffer.num_positions) == (games, sum(positions[-games:]))


def test_a_game_against_the_rules_leaves_its_batch_out() -> None:
    won, *others = sorted(records("tic_tac_toe", 4), key=lambda record: record.outcome == 0)
    outcome = np.float32(won.outcome).tobytes()
    wrong = azpy.GameRecord.from_bytes(won.to_bytes().replace(outcome, np.float32(-won.outcome).tobytes(), 1))
    buffer = azpy.ReplayBuffer("tic_tac_toe")
    buffer.add(won)
    with pytest.raises(ValueError, match=f"game {won.game_id} breaks the rules: its outcome"):
        buffer.extend([others[0], wrong, others[1]])
    assert buffer.num_games == 1


@pytest.mark.parametrize("game", GAMES)
def test_records_survive_being_written_and_read(game: str) -> None:
    for record in records(GAMES[game], 8):
        again = azpy.GameRecord.from_bytes(record.to_bytes())
        assert again.to_bytes() == record.to_bytes()
        for name in ("actions", "players", "flags", "root_values", "networks", "offsets", "legal", "visits", "priors"):
            np.testing.assert_array_equal(getattr(again, name), getattr(record, name))
        for name in ("game", "game_id", "seed", "outcome", "capped", "resigned"):
            assert getattr(again, name) == getattr(record, name)


def test_rows_in_order_are_each_position_once_the_oldest_game_first() -> None:
    buffer = azpy.ReplayBuffer("tic_tac_toe")
    with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), slots=2, simulations=4, games=5, seed=1) as games:
        records = sorted(games, key=lambda record: record.game_id)
    buffer.extend(records)
    rows = buffer.num_positions
    details = buffer.sample(rows + 3, seed=9, in_order=True, symmetries=False, details=True)[-1]
    found = list(zip(details["game_ids"].tolist(), details["plies"].tolist(), strict=True))
    expected = [(record.game_id, ply) for record in records for ply in range(len(record))]
    assert found == [*expected, *expected[:3]]
