"""Games of one player and of several: searched, played, learned; and refused by name where azpy has two in mind."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import azpy
from azpy.errors import ModelError, SettingsError
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.evaluators.torch import TorchEvaluator
from azpy.learning.export import check_parity, to_onnx
from azpy.learning.learner import Learner
from azpy.learning.network import Network
from azpy.runs.exports import game_as_dict, to_npz
from azpy.training.train import train
from many_players import Colors, Knapsack, Together, Toss, Trio
from oracles import Batch, after


class Seats:
    """Says a different value for each seat in turn order, and likes low actions."""

    def __init__(self, actions: int, values: list[float]) -> None:
        self.actions, self.values = actions, np.array(values, np.float32)

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
        rows = len(observations)
        return np.tile(-np.arange(self.actions, dtype=np.float32), (rows, 1)), np.tile(self.values, (rows, 1))


def test_a_state_tells_its_players_and_what_each_gets() -> None:
    trio, bag, together, two = (
        azpy.State(game) for game in (Trio(), Knapsack(), Together(), azpy.make_game("tic_tac_toe"))
    )
    assert [state.num_players for state in (trio, bag, together, two)] == [3, 1, 2, 2]
    assert [state.zero_sum for state in (trio, bag, together, two)] == [False, False, False, True]
    trio = after(trio, 0, 4, 8, 1, 5, 9, 2)
    assert (trio.turn, trio.outcome(), trio.outcomes()) == (azpy.TERMINAL, (1.0, -0.5, -0.5), (1.0, -0.5, -0.5))
    bag = after(bag, 0, 1, 0, 1, 0, 1)
    assert bag.outcome() == bag.outcomes()[0] == pytest.approx(2 * 25 / 52 - 1)
    together = after(together, 0, 1, 2)
    assert together.outcome() == together.outcomes() == pytest.approx((13 / 16, 13 / 16))
    two = after(two, 0, 3, 1, 4, 2)
    assert (two.outcome(), two.outcomes()) == (1.0, (1.0, -1.0))
    zero = after(azpy.State(Zero()), 0, 1, 2)
    assert (zero.zero_sum, zero.outcome()) == (True, 0.25)


def test_a_game_in_python_may_name_its_players() -> None:
    assert azpy.State(Colors()).side_names == ("red", "blue", "green")
    assert azpy.State(Trio()).side_names is None
    wrong: tuple[Any, ...] = (("red", "blue"), "rgb", ("red", "blue", 3), ("red", "blue", " "))
    for names in wrong:
        game = Colors()
        game.side_names = names
        with pytest.raises(azpy.GameError, match=r"Colors.side_names must be .* num_players = 3, got "):
            azpy.State(game)


def test_a_game_says_its_rules_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in azpy.list_games():
        rules = azpy.make_game(name).rules
        assert re.fullmatch(r"[^{}]{20,119}\.", rules), (name, rules)
    assert "5 in a row" in azpy.make_game("connect_four", k=5).rules
    assert azpy.State(Colors()).rules == ""
    monkeypatch.setattr(Colors, "rules", "Take a number.")
    assert azpy.State(Colors()).rules == "Take a number."


class Zero(Together):
    """Two numbers whose sum is 0 are one number."""

    zero_sum = True

    def outcome(self) -> list[float]:
        """The first player wins."""
        return [0.25, -0.25]


@pytest.mark.parametrize(
    ("base", "attribute", "value", "said"),
    [
        (Trio, "num_players", 7, "num_players must be a whole number from 1 to 6, got 7"),
        (Trio, "num_players", 2.5, "num_players must be a whole number from 1 to 6, got 2.5"),
        (Trio, "zero_sum", "no", "zero_sum must be True or False, got no"),
        (Trio, "turn", lambda self: 3, "0 to 2 for the 3 players (num_players = 3), azpy.CHANCE"),
        (Trio, "outcome", lambda self: 1.0, "a list of 3 numbers in [-1, 1], one for each player, player 0 first"),
        (Trio, "outcome", lambda self: [1.0, -1.0], "gave [1.0, -1.0], expected a list of 3 numbers"),
        (Trio, "outcome", lambda self: [1.0, -1.0, 1.5], "3 numbers in [-1, 1]"),
        (Trio, "outcome", lambda self: [True, False, False], "3 numbers in [-1, 1]"),
        (Knapsack, "outcome", lambda self: [0.5, 0.5], "expected a score in [-1, 1]"),
        (Zero, "outcome", lambda self: [0.5, 0.5], "two numbers in [-1, 1] whose sum is 0, or zero_sum = False"),
    ],
)
def test_attributes_that_do_not_fit_the_players_are_refused(base: Any, attribute: str, value: Any, said: str) -> None:
    def played() -> None:
        state = azpy.State(type("Wrong", (base,), {attribute: value})())
        while state.turn != azpy.TERMINAL:
            state.play(state.legal_actions()[0])
        state.outcome()

    with pytest.raises(azpy.GameError) as caught:
        played()
    assert said in str(caught.value)


def test_values_are_in_turn_order_from_the_player_to_move() -> None:
    evaluator = Seats(16, [0.5, -0.25, 0.125])
    for plies in range(3):
        state = after(azpy.State(Trio()), *range(plies))
        found = azpy.Search(evaluator, simulations=0).run(state)
        assert found.value == found.values[plies] == 0.5
        assert found.values.tolist() == np.roll([0.5, -0.25, 0.125], plies).tolist()
    with pytest.raises(azpy.EvaluatorError, match=r"got shape \[1, 2\], expected .* shape \[1, 3\]"):
        azpy.Search(Seats(16, [0.5, 0.5]), simulations=1).run(Trio())
    with pytest.raises(azpy.EvaluatorError, match=r"value 1.5 in row 0"):
        azpy.Search(Seats(16, [0.5, 0.5, 1.5]), simulations=1).run(Trio())


def test_the_best_score_of_one_player_is_proven() -> None:
    best = max(after(azpy.State(Knapsack()), *taken).outcome() for taken in itertools.product((0, 1), repeat=6))
    result = azpy.Search(azpy.UniformEvaluator(), simulations=2000, solver=True).run(Knapsack())
    assert (result.stop, result.proof) == ("proven", 6)
    assert result.value == pytest.approx(best)
    assert after(azpy.State(Knapsack()), *result.principal_variation).outcome() == pytest.approx(best)
    for game in (Trio(), Together()):
        with pytest.raises(ValueError, match=r"this game has [23] players: leave out solver and lookahead"):
            azpy.Search(azpy.UniformEvaluator(), simulations=10, solver=True).run(game)


@pytest.mark.parametrize("game", [Trio, Knapsack, Together])
def test_games_keep_a_number_for_each_player(game: Any, tmp_path: Path) -> None:
    players, actions = game.num_players, game.num_actions
    evaluator = Seats(actions, [0.5, -0.25, 0.125][:players])
    start = azpy.State(game())
    with azpy.SelfPlay(game(), evaluator, slots=2, pipelines=1, simulations=12, games=6, seed=3) as play:
        records = list(play)
    buffer = azpy.ReplayBuffer(game())
    buffer.extend(records)
    for record in records:
        assert azpy.GameRecord.from_bytes(record.to_bytes()).to_bytes() == record.to_bytes()
        end = after(start, *record.actions.tolist())
        assert (record.outcome, record.outcomes, record.num_players) == (end.outcome(), end.outcomes(), players)
        own = record.player_values[np.arange(len(record)), record.players]
        assert own.tolist() == record.root_values.tolist()
        told = game_as_dict(start, record)
        assert told["outcome"] == end.outcome()
        assert [ply["root_values"] for ply in told["plies"]] == record.player_values.tolist()
    observations, _, _, values = buffer.sample(8, seed=1, symmetries=False)
    *_, details = buffer.sample(8, seed=1, symmetries=False, details=True)
    assert values.shape == ((8,) if players == 1 else (8, players))
    by_id = {record.game_id: record for record in records}
    for row, (game_id, ply) in enumerate(zip(details["game_ids"], details["plies"], strict=True)):
        record = by_id[int(game_id)]
        expected = np.roll(record.outcomes, -int(record.players[ply]))
        np.testing.assert_allclose(values[row], expected if players > 1 else expected[0], rtol=1e-6)
        np.testing.assert_array_equal(observations[row], details["states"][row].observation())
    rows = to_npz(tmp_path / "rows.npz", start, [(1, record) for record in records])
    with np.load(tmp_path / "rows.npz") as arrays:
        assert arrays["value_targets"].shape == ((rows,) if players == 1 else (rows, players))
        first = by_id[int(arrays["game_id"][0])]
        assert arrays["value_targets"][0].ravel().tolist() == pytest.approx(np.roll(first.outcomes, -first.players[0]))


def test_pictures_and_an_engine_know_all_players() -> None:
    result = azpy.Search(azpy.UniformEvaluator(), simulations=300, eval_batch=1).run(Trio())
    assert all(f"player {player} to move" in result.to_svg(300) for player in range(3))
    with azpy.Engine(Seats(16, [0.5, -0.25, 0.125]), simulations=30) as engine:
        assert engine.submit(Trio()).result().values.shape == (3,)


def test_a_network_says_a_value_for_each_player_as_onnx_too() -> None:
    start, rows = azpy.State(Trio()), np.random.default_rng(0).random((5, 3, 4, 4), np.float32)
    network = Network.of(start, "1x16").eval()
    model = OnnxEvaluator(to_onnx(network), game=start)
    assert check_parity(network, model, rows) < 1e-5
    plain = TorchEvaluator(network, game=start)
    for evaluator in (model, plain):
        result = azpy.Search(evaluator, simulations=30).run(start)
        assert result.visits.sum() == 30
        assert result.values.shape == (3,)
    assert plain.evaluate_batch(rows)[1].shape == model.evaluate_batch(rows)[1].shape == (5, 3)
    assert model.row_exact
    with pytest.raises(ModelError, match="it gives 3 numbers as the value of a position, expected 1"):
        OnnxEvaluator(to_onnx(network), game=azpy.State(Two()))
    with pytest.raises(SettingsError, match="this game has 3 players: leave out \\+wdl"):
        Network.of(start, "1x16+wdl")
    assert Network.of(azpy.State(Knapsack()), "1x16").num_values == 1


class Two(Trio):
    """A game of two with the shapes of `Trio`."""

    num_players = 2


def test_a_learner_fits_the_values_of_all_players() -> None:
    with azpy.SelfPlay(Trio(), azpy.UniformEvaluator(), slots=8, pipelines=1, simulations=8, games=30) as play:
        records = list(play)
    buffer = azpy.ReplayBuffer(Trio())
    buffer.extend(records)
    for weight in (1.0, 3.0):
        learner = Learner(azpy.State(Trio()), "1x16", learning_rate=2e-2, decisive_weight=weight)
        losses = [each.value for each in learner.fit(buffer, 30, batch_size=32)]
        assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
        rows = buffer.sample(32, seed=9)
        measured = learner.measure(rows)
        with torch.no_grad():
            values = learner.averaged(torch.from_numpy(rows[0]))[1].numpy()
        assert measured["value_loss"] == pytest.approx(float(((values - rows[3]) ** 2).mean()), rel=1e-4)


def test_a_run_of_three_players_trains_plays_matches_and_goes_on(tmp_path: Path) -> None:
    options: dict[str, Any] = {"simulations": 8, "games_per_iteration": 24, "slots": 8, "network": "1x16"}
    options |= {"match_opening_plies": 0, "final_match_games": 12, "match_simulations": 30}
    for iterations in (1, 2):
        run = train(Toss, iterations=iterations, out=str(tmp_path / "run"), **options)
    run.start.play(0)  # the first die
    result = azpy.Search(run.evaluator, simulations=20).run(run.start)
    assert result.values.shape == (3,)
    rows = run.matches()
    assert [row["iteration"] for row in rows] == [1] * 4 + [2] * 4
    for row in rows:
        assert (row["players"], row["wins"] + row["draws"] + row["losses"]) == (3, 12)
        assert 0 <= row["low"] <= row["score"] <= row["high"] <= 1
        assert -1 <= row["outcome_low"] <= row["outcome"] <= row["outcome_high"] <= 1
    [against_random] = [row for row in rows if row["opponent"] == "random" and row["iteration"] == 2]
    assert against_random["score"] > 0.5  # of three
    assert against_random["outcome"] > against_random["other_outcome"]
    assert (tmp_path / "run" / "report.html").exists()
