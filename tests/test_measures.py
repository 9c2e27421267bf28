"""The programs in benches/: errors of solved positions, losses of games not learned from, the games they play."""

import importlib.util
import json
import math
import random
import sys
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from oracles import after

BENCHES = Path(__file__).parent.parent / "benches"


@cache
def bench(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def minimax(state: Any) -> float:
    """The value for the player to move."""
    if state.is_terminal:
        return float(state.outcome() * (1 - 2 * state.turn)) if state.turn >= 0 else math.nan
    return max(worth(state, action) for action in state.legal_actions())


def worth(state: Any, action: int) -> float:
    """What an action is worth for the player who takes it."""
    then = after(state, action)
    return float(then.outcome() * (1 - 2 * state.turn)) if then.is_terminal else -minimax(then)


def test_the_solver_s_values_are_those_of_minimax() -> None:
    pytest.importorskip("bitbully", reason="the solver of benches/solved.py is not installed")
    solver, draw, checked = bench("solved").Solver(), random.Random(3), 0
    while checked < 60:
        state, line = azpy.make_game("connect_four"), list[int]()
        while not state.is_terminal and len(line) < 33:
            line.append(draw.choice(state.legal_actions()))
            state.play(line[-1])
        if state.is_terminal:
            continue
        legal = state.legal_actions()
        expected = tuple(worth(state, action) if action in legal else None for action in range(7))
        assert solver.values(line) == expected, line
        checked += 1


class Planted:
    """Values of a position that need no solver: the action that is the number of plies, modulo 7, is best."""

    def values(self, actions: list[int]) -> tuple[int | None, ...]:
        legal = after(azpy.make_game("connect_four"), *actions).legal_actions()
        return tuple((1 if action == len(actions) % 7 else 0) if action in legal else None for action in range(7))


def test_positions_are_those_of_the_seed_and_each_can_be_got_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    solved = bench("solved")
    monkeypatch.setattr(solved, "Solver", Planted)
    positions = solved.positions_in(tmp_path / "one.json", 80, 5)
    assert solved.positions_in(tmp_path / "one.json", 80, 5) == positions == solved.positions_in(tmp_path / "b", 80, 5)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "b").read_bytes()
    assert positions != solved.positions_in(tmp_path / "c", 80, 6)
    with pytest.raises(SystemExit, match="holds 80 positions of seed 5"):
        solved.positions_in(tmp_path / "one.json", 80, 6)
    groups = solved.groups(positions)
    assert {group: len(indices) for group, indices in groups.items()} == {
        group: 80 if group == "all" else 10 if "plies" in group else 40 for group in groups
    }
    assert len(groups) == 11
    keys = {solved.replayed_to(position.actions).key() for position in positions}
    assert len(keys) == 80
    assert all(position.can_err and position.values == Planted().values(position.actions) for position in positions)


def test_errors_are_the_actions_that_give_the_value_away() -> None:
    solved = bench("solved")
    values = [(1, 1, 0, -1), (None, 0, -1, 0), (-1, 0, -1, None), (1, -1, -1, -1)]
    positions = [solved.Position("games", (), value) for value in values]
    assert [position.keeping for position in positions] == [{0, 1}, {1, 3}, {1}, {0}]
    for chosen, errors, only in [((0, 1, 1, 0), 0, 0), ((1, 3, 0, 0), 1, 1), ((2, 2, 1, 3), 3, 1)]:
        counted = solved.count_errors(positions, chosen)
        assert (counted.positions, counted.errors, counted.only, counted.only_errors) == (4, errors, 2, only)
        assert counted.share == errors / 4


class Favourite:
    """Answers that prefer one column."""

    def __init__(self, column: int) -> None:
        self._logits = np.eye(7, dtype=np.float32)[column]

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return np.tile(self._logits, (len(observations), 1)), np.zeros(len(observations), np.float32)


def test_the_table_is_of_the_prior_and_of_searches_in_the_same_positions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from azpy.matches.arena import SearchPlayer
    from azpy.matches.players import Entrant

    solved, network = bench("solved"), cast(Any, Favourite(2))
    monkeypatch.setattr(solved, "Solver", Planted)
    monkeypatch.setattr(
        solved,
        "load_players",
        lambda specs, *_: [
            Entrant("planted", spec.simulations, SearchPlayer(network, spec.simulations), network) for spec in specs
        ],
    )
    file = str(tmp_path / "file.json")
    command = ["solved", "mcts", "--positions", file, "--count", "80", "--simulations", "1", "3"]
    monkeypatch.setattr(sys, "argv", command)
    solved.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[-5:] == ["prior", "1", "simulations", "3", "simulations"]
    assert len(lines) == 2 + 11 + 1
    monkeypatch.setattr(sys, "argv", [*command, "--json"])
    solved.main()
    (found,) = json.loads(capsys.readouterr().out)
    positions = solved.positions_in(tmp_path / "file.json", 80, 0)
    for column in ("prior", "1 simulations"):  # with one simulation the prior chooses
        wrong = 0
        for position in positions:
            legal = [action for action, value in enumerate(position.values) if value is not None]
            wrong += (2 if 2 in legal else legal[0]) not in position.keeping
        assert found["errors"][column]["all"]["errors"] == wrong


def test_the_figures_of_held_out_rows_equal_a_loop() -> None:
    frozen, rng = bench("frozen"), np.random.default_rng(0)
    logits = rng.normal(size=(50, 4)).astype(np.float32)
    legal = rng.random((50, 4)) < 0.7
    legal[:, 1] = True
    policies = np.where(legal, rng.random((50, 4)), 0).astype(np.float32)
    policies /= policies.sum(1, keepdims=True)
    policies[0] = [0, 1, 0, 0]
    values = rng.uniform(-1, 1, 50).astype(np.float32)
    outcomes = rng.choice([-1, 0, 1], 50).astype(np.float32)
    found = frozen.measured(logits, values, legal, policies, outcomes)
    cross, excess, top = 0.0, 0.0, 0
    for row in range(50):
        actions = np.flatnonzero(legal[row])
        priors = np.exp(logits[row, actions]) / np.exp(logits[row, actions]).sum()
        for prior, share in zip(priors.tolist(), policies[row, actions].tolist(), strict=True):
            if share > 0:
                cross -= share * math.log(prior) / 50
                excess += share * math.log(share / prior) / 50
        top += actions[priors.argmax()] == policies[row].argmax()
    assert (found["policy"], found["excess"]) == (pytest.approx(cross), pytest.approx(excess))
    assert found["top"] == top / 50
    assert found["value"] == pytest.approx(np.mean((outcomes - values) ** 2))
    assert found["explained"] == pytest.approx(1 - np.var(outcomes - values) / np.var(outcomes))
    exact = frozen.measured(logits, outcomes, legal, policies, outcomes)
    assert (exact["value"], exact["explained"]) == (0, 1)
    unknown = frozen.measured(logits, values, legal, policies, np.zeros(50, np.float32))
    assert math.isnan(unknown["explained"])


def test_held_out_rows_are_those_of_the_iterations_asked_for() -> None:
    frozen = bench("frozen")
    with azpy.SelfPlay("tic_tac_toe", azpy.UniformEvaluator(), simulations=8, games=20) as games:
        records = sorted(games, key=lambda record: record.game_id)
    run = SimpleNamespace(
        start=azpy.make_game("tic_tac_toe"),
        games=lambda iterations: ((i, record) for i in iterations for record in records[10 * i : 10 * i + 10]),
    )
    observations, legal, policies, outcomes = frozen.rows_of(run, [1], 400)
    assert (observations.shape, legal.shape, policies.shape) == ((400, *run.start.obs_shape), (400, 9), (400, 9))
    alone = azpy.ReplayBuffer(run.start)
    alone.extend(records[10:])
    there = {row.tobytes() for row in alone.sample(400, seed=0, symmetries=False)[0]}
    assert {row.tobytes() for row in observations} <= there
    assert set(outcomes.tolist()) <= {-1.0, 0.0, 1.0}
    again = frozen.rows_of(run, [1], 400)
    assert all((one == other).all() for one, other in zip((observations, outcomes), (again[0], again[3]), strict=True))


def test_fits_on_frozen_records_differ_by_the_settings_and_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from azpy.settings import Settings
    from azpy.training.collector import Collector

    frozen = bench("frozen")
    played = Settings("tic_tac_toe", simulations=8, games_per_iteration=40, iterations=3, network="1x8", batch_size=16)
    with Collector(played, tmp_path / "run") as collector:
        assert list(collector.run())
    out = tmp_path / "out"
    command = ["frozen", str(tmp_path / "run"), "", "network=2x8+pool", "root_value_weight=1"]
    command += ["--iterations", "1-2", "--held-out", "3", "--steps", "30", "--rows", "64", "--out", str(out)]
    for seeds in (1, 2, 2):  # the last finds all done
        monkeypatch.setattr(sys, "argv", [*command, "--seeds", str(seeds)])
        frozen.main()
        lines = capsys.readouterr().out.splitlines()
    assert len(out.read_text().splitlines()) == 6
    found = [json.loads(line)[1]["policy"] for line in out.read_text().splitlines()]
    assert len(set(found)) == 6
    own, other, _ = (line.split() for line in lines[-3:])
    assert own[0] == other[0] == "2"
    assert own[2] == "±0.0000"
    assert float(other[1]) == pytest.approx(np.mean(found[1::3]), abs=1e-3)


OTHERS = {
    "Oware": "open_spiel:oware",
    "DotsAndBoxes3": "open_spiel:dots_and_boxes(num_rows=3,num_cols=3)",
    "DotsAndBoxes5": "open_spiel:dots_and_boxes(num_rows=5,num_cols=5)",
    "FiveInARow15": "gomoku",
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_six_games_have_the_rules_of_other_programs(name: str) -> None:
    if "open_spiel" in OTHERS[name]:
        pytest.importorskip("pyspiel")
    game, draw, ended = getattr(bench("six_games"), name), random.Random(1), 0
    for way in 4 * (225, 14, 15, 16):
        mine, theirs = azpy.State(game()), azpy.make_game(OTHERS[name])
        order = list(range(mine.num_actions))
        if name.startswith("Dots"):  # OpenSpiel numbers all horizontal lines first
            order.sort(key=lambda line: game().cells[line] // game().obs_shape[2] % 2)
        while not theirs.is_terminal:
            legal = mine.legal_actions()
            assert sorted(order[action] for action in theirs.legal_actions()) == legal
            assert theirs.turn == mine.turn
            # Some more often, so that stones come to stand in lines: the remainders are those of the four directions.
            nearest = sorted(legal, key=lambda cell: cell % way)
            action = draw.choice(nearest if draw.random() < 0.5 else nearest[:6])
            mine.play(action)
            theirs.play(order.index(action))
        ended += mine.is_terminal
        # OpenSpiel ends Oware where a position comes again; the seeds are shared out as after our last ply.
        assert mine.is_terminal or name == "Oware"
        if mine.is_terminal:
            assert mine.outcome() == theirs.outcome()
    assert ended > 6


def test_a_roll_of_ur_moves_captures_and_moves_again() -> None:
    game = bench("six_games").Ur()

    def play(*plies: int) -> tuple[int, int]:
        for ply in plies:
            game.play(ply)
        return game.player, game.turn()

    assert play(0) == (1, azpy.CHANCE)  # nobody can move no steps
    assert play(4, 0) == (1, azpy.CHANCE)  # a rosette moves again
    assert play(1, 4) == (0, azpy.CHANCE)
    assert play(4, 0, 1) == (0, 0)
    assert game.legal_actions() == [0, 4]
    assert play(4) == (1, azpy.CHANCE)  # takes the piece on 5
    assert [pieces[:6] for pieces in game.pieces] == [[6, 0, 0, 0, 0, 1], [7, 0, 0, 0, 0, 0]]
    game.pieces = [[6, *7 * [0], 1, *7 * [0]], [6, *5 * [0], 1, *9 * [0]]]
    assert play(2) == (1, 1)
    assert game.legal_actions() == [0]  # on the rosette 8 the other's piece is safe
    assert play(0, 0) == (1, azpy.CHANCE)
    game.pieces = [[6, *14 * [0], 1], [*14 * [0], 1, 6]]
    assert play(2) == (0, azpy.CHANCE)  # home by the exact number alone
    assert play(0, 1) == (1, 1)
    assert play(14)[1] == azpy.TERMINAL
    assert game.outcome() == -1.0


def test_kalah_moves_again_from_the_store_and_captures_opposite() -> None:
    game = bench("six_games").Kalah()
    game.play(0)
    assert (game.player, game.pits) == (0, [0, 7, 7, 7, 7, 7, 1, 6, 6, 6, 6, 6, 6, 0])
    game.play(1)
    assert (game.player, game.pits) == (1, [7, 7, 6, 6, 6, 6, 0, 0, 0, 8, 8, 8, 8, 2])
    game.pits = [1, 0, 0, 0, 0, 8, 0, 1, 0, 0, 0, 5, 0, 0]
    game.play(0)  # takes itself and the five opposite
    assert (game.player, game.pits) == (0, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 6])
    game.pits = [0, 0, 0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, 5]
    game.play(5)  # past the other's store to its own side, where it takes again
    assert (game.player, game.pits) == (1, [2, 1, 1, 1, 1, 0, 5, 0, 0, 0, 0, 0, 0, 3])
    game.player, game.pits = 0, [0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 3]
    assert game.turn() == azpy.TERMINAL
    assert game.outcome() == 1.0


def test_the_first_game_is_the_first_line_on_one_that_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first_minutes = bench("first_minutes")
    lines = ["preset for hex: games_per_iteration 256", "iteration 1 self-play: 0/256 games, 512 simulations/s"]
    for line in ("iteration 1 self-play: 3/256 games", "[1:02] iteration 1: 256 games", "12 games are over"):
        heard = [(float(at), text) for at, text in enumerate([*lines, line, "done: 0 iterations"], start=1)]
        monkeypatch.setattr(first_minutes, "run", lambda *_, heard=heard: (heard, 9.0, 0, False))
        facts = first_minutes.trained("hex", 2.0, tmp_path, [])
        assert (facts["first_line"], facts["first_game"]) == (1.0, 3.0)
        given = SimpleNamespace(games=2, slots=2, bound=1.0)
        facts |= {opponent: first_minutes.met("hex", tmp_path, opponent, given) for opponent in first_minutes.OPPONENTS}
        assert first_minutes.row(facts) == "| hex | 2 | 1.0 | 3.0 | 9.0 | 0 | 0 | - | no checkpoint | no checkpoint |"
