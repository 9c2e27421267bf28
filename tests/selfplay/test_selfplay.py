"""Self-play: whole games, each once, the same for any layout of the work."""

import itertools
import threading
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy._core import OPTIONS
from azpy.playing.selfplay import open_self_play
from azpy.settings.run import ABOUT, Settings
from oracles import Answers, Batch, Countdown, Hashed, after, another, turn_of
from records import GAMES, SEARCHED, start_of

MIXED = 2
STARTS: dict[str, Any] = GAMES | {"python": Countdown(14, turns=2)}


def play(game: Any, evaluator: Any, count: int, **settings: Any) -> list[azpy.GameRecord]:
    """The games in the order of their ids."""
    with azpy.SelfPlay(game, evaluator, **{"slots": 8, "simulations": 20, "games": count, **settings}) as games:
        return sorted(games, key=lambda record: record.game_id)


def contents(records: Iterable[azpy.GameRecord]) -> list[bytes]:
    return [record.to_bytes() for record in records]


def test_a_bad_range_of_ids_is_refused() -> None:
    with azpy.SelfPlay("pig", azpy.UniformEvaluator(), slots=2, simulations=1, games=0) as games:
        for first, n, text in ((-1, 1, "first must be at least 0"), (0, -1, "n must be at least 0"), (9, 2**64, "n m")):
            with pytest.raises(ValueError, match=text):
                games.admit(first, n)
        with pytest.raises(ValueError, match=r"seconds must be in \[0, 1000000\], got -1"):
            games.take_finished(seconds=-1)
    with pytest.raises(ValueError, match="closed"):
        games.admit(0, 1)
    with (
        azpy.SelfPlay("pig", azpy.UniformEvaluator(), slots=2, simulations=1) as games,
        pytest.raises(ValueError, match="self-play without an end plays every id"),
    ):
        games.admit(0, 1)


def test_finished_games_are_waited_for() -> None:
    with azpy.SelfPlay("pig", azpy.UniformEvaluator(), slots=2, simulations=1, games=3) as games:
        found = list[azpy.GameRecord]()
        while len(found) < 3:  # a minute is more than a game takes
            taken = games.take_finished(2, seconds=60)
            assert 1 <= len(taken) <= 2
            found += taken
        assert games.take_finished(seconds=60) == []  # none is left to wait for
        games.pause()
        games.admit(9, 1)
        assert games.take_finished(seconds=0.01) == []


@pytest.mark.parametrize("game", STARTS)
def test_records_replay_to_their_outcomes(game: str) -> None:
    start = start_of(STARTS[game])
    records = play(STARTS[game], Hashed(start.num_actions), 30, opening_plies=3, seed=5)
    assert [record.game_id for record in records] == list(range(30))
    for record in records:
        position = start.clone()
        for ply, (action, player) in enumerate(zip(record.actions.tolist(), record.players.tolist(), strict=True)):
            turn = turn_of(position)
            own = slice(record.offsets[ply], record.offsets[ply + 1])
            if turn == azpy.CHANCE:
                assert player == -1
                assert action in [outcome for outcome, _ in position.chance_outcomes()]
            else:
                assert player == turn
                assert action in position.legal_actions()
            if record.flags[ply] & SEARCHED:
                assert record.legal[own].tolist() == position.legal_actions()
                assert record.visits[own].sum() >= 20
                assert record.visits[own][record.legal[own].tolist().index(action)] > 0
                assert abs(record.root_values[ply]) <= 1
            else:
                assert own.start == own.stop
                assert player == -1 or ply < 3
                assert (record.root_values[ply], record.networks[ply]) == (0, 0)
            position.play(action)
        assert turn_of(position) == azpy.TERMINAL
        assert record.outcome == position.outcome()
        assert not record.capped
    assert len({record.actions.tobytes() for record in records}) > 15  # games differ


def test_recorded_priors_are_those_without_noise() -> None:
    evaluator = Hashed(9)
    answers, start = Answers(evaluator), azpy.make_game("tic_tac_toe")
    for record in play("tic_tac_toe", evaluator, 5, root_noise=(0.5, 0.5)):
        for ply in range(len(record)):
            priors, _ = answers(after(start, *record.actions[:ply].tolist()))
            assert record.priors[record.offsets[ply] : record.offsets[ply + 1]].tolist() == list(priors.values())


LAYOUTS: list[dict[str, Any]] = [
    {"threads": 1, "pipelines": 1, "slots": 1, "cache_positions": 0},
    {"threads": 2, "pipelines": 1, "slots": 5},
    {"threads": 4, "pipelines": 2, "slots": 16},
    {"threads": 8, "pipelines": 3, "slots": 7, "cache_positions": 0},
    {"threads": 2, "pipelines": 2, "slots": 64, "cache_positions": 16},
]


# rust/core/tests/all/selfplay.rs does the same with games in Rust.
def test_no_option_makes_games_depend_on_the_layout() -> None:
    options: dict[str, Any] = {"evaluations": 15, "opening_plies": 1, "full_search_share": 0.6}
    start, evaluator = STARTS["python"], Hashed(3, network_id=9)
    found = [contents(play(start, evaluator, 40, seed=3, eval_batch=4, **options, **one)) for one in LAYOUTS]
    assert all(games == found[0] for games in found)


# How a move is searched and chosen.


@pytest.mark.parametrize("eval_batch", [1, 4])
def test_a_search_ends_with_its_last_evaluation(eval_batch: int) -> None:
    settings: dict[str, Any] = {"tree_reuse": False, "root_noise": None, "eval_batch": eval_batch}
    records = play("connect_four", Hashed(7), 6, simulations=60, evaluations=25, temperature_plies=99, **settings)
    shortened = 0
    for record in records:
        position = azpy.make_game("connect_four")
        for ply, action in enumerate(record.actions.tolist()):
            visits = record.visits[record.offsets[ply] : record.offsets[ply + 1]]
            result = azpy.Search(Hashed(7), simulations=int(visits.sum()), eval_batch=eval_batch).run(position)
            assert result.visits.tolist() == visits.tolist()
            assert result.stats["evaluations"] == 25 or (visits.sum() == 60 and result.stats["evaluations"] < 25)
            shortened += visits.sum() < 60
            position.play(action)
    assert shortened > 50


def test_the_cache_spares_evaluations_and_nothing_else() -> None:
    asked = dict[int, int]()
    for positions in (0, 100_000):
        evaluator = Hashed(9, network_id=1)
        play("tic_tac_toe", evaluator, 60, cache_positions=positions)
        asked[positions] = sum(evaluator.batches)
    assert asked[100_000] <= 4520
    assert asked[100_000] < asked[0] / 2
    with azpy.SelfPlay("tic_tac_toe", Hashed(9), slots=4, simulations=20, games=10) as games:  # without an id
        assert len(list(games)) == 10
        assert games.stats["cache_hits"] == 0


@pytest.mark.parametrize("reuse", [False, True])
def test_tree_reuse_adds_to_the_visits_of_a_move(reuse: bool) -> None:
    for record in play("connect_four", Hashed(7), 3, tree_reuse=reuse, simulations=30):
        inherited = 0
        for ply in range(len(record)):
            visits = record.visits[record.offsets[ply] : record.offsets[ply + 1]]
            assert visits.sum() == 30 + inherited
            if reuse:
                legal = record.legal[record.offsets[ply] : record.offsets[ply + 1]].tolist()
                inherited = int(visits[legal.index(record.actions[ply])]) - 1


def test_after_the_first_plies_the_most_visited_action_is_played() -> None:
    others = 0
    for record in play("connect_four", Hashed(7), 5, temperature_plies=3):
        for ply in range(len(record)):
            own = slice(record.offsets[ply], record.offsets[ply + 1])
            chosen = record.legal[own].tolist().index(record.actions[ply])
            is_best = record.visits[own][chosen] == record.visits[own].max()
            assert is_best or ply < 3
            others += not is_best
    assert others > 0


def test_statistics_add_up() -> None:
    evaluator = Hashed(7)
    with azpy.SelfPlay("connect_four", evaluator, slots=16, simulations=30, games=20, cache_positions=0) as games:
        records = list(games)
        games.pause()  # no round is under way
        stats = games.stats
    assert games.stats == stats
    searched = sum(int((record.flags & SEARCHED).sum()) for record in records)
    assert stats["games"] == 20
    assert stats["positions"] == searched
    assert stats["simulations"] == 30 * searched
    assert stats["batches"] == len(evaluator.batches)
    assert stats["rows"] == sum(evaluator.batches) <= stats["rows_capacity"]
    assert stats["evaluations"] == stats["rows"]


# Swaps.


class Known(Hashed):
    """Fails when it is asked after it was dismissed."""

    dismissed = False

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
        assert not self.dismissed, "a network was asked after it was replaced"
        time.sleep(0.0005)
        reply = super().evaluate_batch(observations)
        assert not self.dismissed, "a swap returned while the old network was at work"
        return reply


def test_no_old_network_is_used_after_a_swap_returns() -> None:
    networks = [Known(9, salt=n, network_id=n) for n in (1, 2, 3)]
    records = list[azpy.GameRecord]()
    options: dict[str, Any] = {"slots": 12, "simulations": 20, "games": 150, "pipelines": 2, "seed": 2}
    with azpy.SelfPlay("tic_tac_toe", networks[0], **options) as games:
        with pytest.raises((TypeError, ValueError)):
            games.swap(None)
        for old, new in itertools.pairwise(networks):
            records += [next(games) for _ in range(40)]
            games.swap(new)
            old.dismissed = True
        records += games
    assert sorted(record.game_id for record in records) == list(range(150))
    assert all(network.batches for network in networks)
    alone = [dict(enumerate(contents(play("tic_tac_toe", Hashed(9, n, n), 150, seed=2)), 0)) for n in (1, 2, 3)]
    whole = [0, 0, 0]
    for record in records:
        used = record.networks.tolist()
        assert used == sorted(used)
        assert set(used) <= {1, 2, 3}
        if len(set(used)) == 1 and not (record.flags & MIXED).any():
            # All of it by one network: the game that this network plays when alone. The cache kept nothing old.
            assert record.to_bytes() == alone[used[0] - 1][record.game_id]
            whole[used[0] - 1] += 1
    assert all(whole)


def test_each_pipeline_gets_a_fork_of_its_own() -> None:
    class Forks(Hashed):
        """Not to be used from two threads."""

        def __init__(self) -> None:
            super().__init__(9)
            self.threads, self.forks = set[int](), list[Forks]()

        def fork(self) -> "Forks":
            self.forks.append(Forks())
            return self.forks[-1]

        def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
            self.threads.add(threading.get_ident())
            time.sleep(0.001)  # no pipeline plays all games before another has begun
            return super().evaluate_batch(observations)

    evaluator = Forks()
    play("tic_tac_toe", evaluator, 100, pipelines=3, slots=12)
    used = [one for one in (evaluator, *evaluator.forks) if one.batches]
    assert len(used) == 3
    assert all(len(one.threads) == 1 for one in used)


@pytest.mark.parametrize("rule", ["PUCT", "Gumbel"])
def test_every_setting_of_self_play_reaches_it(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # An option that goes with none of some others has a test of its own.
    names = {name for name, row in OPTIONS.items() if row["rule"] in ("", rule) and not row["without"]}
    options = {name: another(name) for name in names} | ({"gumbel_actions": 0} if rule == "PUCT" else {})
    asked: dict[str, Any] = {}

    def note(*_: Any, **options: Any) -> None:
        asked.update(options)

    given = Settings("connect_four", slots=9, pipelines=3, threads=5, cache_positions=77, seed=41, **options)
    monkeypatch.setattr("azpy.playing.selfplay._core.SelfPlay", note)
    open_self_play(given, azpy.make_game("connect_four"), [azpy.UniformEvaluator()], stagger=9)
    assert asked.pop("games") == 0
    assert asked.pop("stagger") == 9
    assert asked == {name: getattr(given, name) for name in asked}
    changed = {name for name in ABOUT if getattr(given, name) != getattr(Settings, name, None)} - {"game"}
    assert changed <= asked.keys()
    assert names <= asked.keys()


def test_games_that_begin_one_after_another_are_the_same_games() -> None:
    together, staggered = (
        contents(play("connect_four", Hashed(7), 12, simulations=6, seed=3, stagger=stagger)) for stagger in (0, 20)
    )
    assert staggered == together


class Slow(Hashed):
    def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
        time.sleep(0.001)
        return super().evaluate_batch(observations)


@pytest.mark.parametrize("game", ["connect_four", "python"])
def test_games_left_in_play_go_on_where_they_were(game: str) -> None:
    start = STARTS[game]
    options: dict[str, Any] = {"slots": 4, "games": 0, "seed": 3, "pipelines": 1, "full_search_share": 0.7}
    with azpy.SelfPlay(start, Slow(start_of(start).num_actions), simulations=60, **options) as games:
        games.admit(5, 4)
        while games.in_play[1] < 3:
            time.sleep(0.001)
    left = {record.game_id: record for record in games.unfinished}
    assert left
    with azpy.SelfPlay(start, Hashed(start_of(start).num_actions), simulations=6, **options) as games:
        games.go_on(list(left.values()))
        games.admit(5, 4)
        ended = {record.game_id: record for record in games}
    assert ended.keys() == {5, 6, 7, 8}
    buffer = azpy.ReplayBuffer(start)
    for game_id, begun in left.items():
        record, plies = ended[game_id], len(begun)
        assert len(record) > plies
        assert record.actions[:plies].tolist() == begun.actions.tolist()
        assert record.root_values[:plies].tolist() == begun.root_values.tolist()
        searched = [ply for ply in range(plies, len(record)) if record.flags[ply]]
        # The first search lacks the tree of the ply before it, and says so.
        assert [ply for ply in searched if record.flags[ply] & MIXED] == searched[:1]
        buffer.add(record)
    with azpy.SelfPlay("tic_tac_toe", Hashed(9), slots=1, pipelines=1, games=0, simulations=6) as games:
        games.go_on(list(left.values()))  # of another game: it begins anew
        games.admit(5, 4)
        assert next(games).game == "tic_tac_toe"
