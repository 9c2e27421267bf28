"""Matches of one player and of several: every seat alike, equal dice, and statistics against a slow twin."""

import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_compare import FakeTraining
from test_compare import training as training

import azpy
from azpy.cli import compare
from azpy.cli.match import main
from azpy.cli.progress import Display
from azpy.errors import SettingsError
from azpy.games.names import make_game
from azpy.matches.arena import play_rounds
from azpy.matches.openings import Book
from azpy.matches.ratings import bradley_terry, elo, expected_score
from azpy.matches.results import MatchResult, Round, told
from azpy.reports.advice import alarms
from azpy.runs.folder import RunFolder
from azpy.settings.run import Settings, match_search
from azpy.training.events import Matched
from many_players import Together, Toss, TossAlone, Trio

THREE, ALONE = "many_players:Toss", "many_players:TossAlone"


class Always:
    """Plays one action, and notes in which seats."""

    def __init__(self, action: int) -> None:
        self.action, self.seats = action, list[int]()

    def select_actions(self, states: Sequence[azpy.State], seed: int) -> list[int]:
        self.seats += [state.turn for state in states]
        return [self.action] * len(states)


def played(game: Any, a: Any, b: Any, rounds: int) -> MatchResult:
    start = azpy.State(game())
    return MatchResult(tuple(play_rounds(Book(start, 0, 1), (a, b), rounds, seed=2)), start.zero_sum)


# Seats and dice -------------------------------------------------------------------------------------------------------


def test_each_player_has_each_seat_as_often() -> None:
    high, low = Always(2), Always(0)
    won = played(Toss, high, low, 5)
    assert (won.games, won.wins, won.score, won.seat_scores) == (15, 15, 1.0, [1.0, 1.0, 1.0])
    assert sorted(high.seats) == [0] * 5 + [1] * 5 + [2] * 5
    assert sorted(low.seats) == [0] * 10 + [1] * 10 + [2] * 10
    assert (won.outcome_of(0), won.outcome_of(1)) == ((1.0, None), (-0.5, None))
    lost = played(Toss, low, high, 5)
    assert (lost.wins + lost.draws, lost.score, lost.seat_scores) == (0, 0.0, [0.0, 0.0, 0.0])
    assert won.elo + lost.elo == pytest.approx(2 * elo(0.5, 2))  # 0 Elo is a third of the wins
    assert won.elo > 500


def test_a_player_has_its_share_against_itself() -> None:
    """All games of a round have the same dice, so over all seats A wins as often as each other seat."""
    result = played(Toss, Always(1), Always(1), 20)
    assert [one.score for one in result.rounds] == pytest.approx([1 / 3] * 20)
    assert result.elo == pytest.approx(0, abs=1e-9)
    dice = [[actions[::2] for actions in one.actions] for one in result.rounds]
    assert all(len({*rolled}) == 1 for rolled in dice)
    assert len({rolled[0] for rolled in dice}) > 10
    low, high = result.interval
    assert low < 1 / 3 < high


def test_one_player_games_are_compared_by_their_scores() -> None:
    result = played(TossAlone, Always(2), Always(1), 30)
    assert (result.games, result.wins, result.is_alone) == (30, 30, True)
    assert {a - b for one in result.rounds for a, b in one.outcomes} == {0.75}
    assert result.difference == (0.75, None)
    scores = [row[0] for one in result.rounds for row in one.outcomes]
    assert len({*scores}) == 3
    mean, interval = result.outcome_of(0)
    assert mean == pytest.approx(np.mean(scores))
    assert interval is not None
    assert interval[0] < mean < interval[1]
    assert interval == pytest.approx(
        mean + np.array([-1, 1]) * 2.045 * np.std(scores, ddof=1) / math.sqrt(30), abs=1e-3
    )


def test_one_player_games_begin_with_rolls_by_chance() -> None:
    class Loaded(TossAlone):
        def chance_outcomes(self) -> list[tuple[int, float]]:
            return [(0, 0.8), (1, 0.1), (2, 0.1)]

    book = Book(azpy.State(Loaded()), 0, 1)
    dice = [book[number].actions[0] for number in range(100)]
    assert 70 <= dice.count(0) <= 90
    assert len(book) == len({*dice}) == 3


def test_two_who_play_together_have_equal_outcomes() -> None:
    result = azpy.match("random", "random", game="many_players:Together", games=10)
    assert (result.score, result.counts) == (0.5, (0, 0, 5, 0, 0))
    assert result.outcome_of(0) == result.outcome_of(1)
    assert result.outcome_of(0)[0] == pytest.approx(np.mean([row[0] for one in result.rounds for row in one.outcomes]))


# Statistics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("players", [1, 2, 3, 4, 6])
def test_the_figures_of_a_result_are_those_of_a_slow_count(players: int) -> None:
    rng, rows = np.random.default_rng(players), max(2, players)
    games = 1 if players == 1 else players
    outcomes = rng.choice([-1.0, -0.5, 0.5, 1.0], size=(50, games, rows))
    rounds = tuple(Round(tuple(map(tuple, each.tolist())), ((),) * games) for each in outcomes)
    result = MatchResult(rounds, zero_sum=False)
    shares = [
        [Fraction(int(row[0] == max(row)), sum(x == max(row) for x in row)) for row in one.outcomes] for one in rounds
    ]
    scores = [sum(each) / len(each) for each in shares]
    assert result.score == pytest.approx(float(sum(scores) / 50))
    assert [one.score for one in rounds] == pytest.approx([float(score) for score in scores])
    steps = len(result.counts) - 1
    assert [sum(score == Fraction(step, steps) for score in scores) for step in range(steps + 1)] == [*result.counts]
    assert sum(result.counts) == 50
    flat = [share for each in shares for share in each]
    assert (result.wins, result.losses) == (flat.count(Fraction(1)), flat.count(Fraction(0)))
    assert result.wins + result.draws + result.losses == result.games == len(flat)
    assert result.seat_scores == pytest.approx(
        [float(sum(each[seat] for each in shares) / 50) for seat in range(games)]
    )
    low, high = result.interval
    deviation = np.std([float(score) for score in scores]) / math.sqrt(50)
    assert (low, high) == pytest.approx((result.score - 2 * deviation, result.score + 2 * deviation), abs=0.02)
    own = [row[0] for one in rounds for row in one.outcomes]
    others = [x for one in rounds for row in one.outcomes for x in row[1:]]
    assert (result.outcome_of(0)[0], result.outcome_of(1)[0]) == pytest.approx((np.mean(own), np.mean(others)))
    assert result.difference[0] == pytest.approx(np.mean(own) - np.mean(others))


def test_ratings_of_three_players_are_the_most_likely_ones() -> None:
    truth, rng = [0.0, 120.0, 300.0], np.random.default_rng(2)
    matches = list[tuple[int, int, list[int]]]()
    for i in range(3):
        for j in {0, 1, 2} - {i}:
            wins = rng.binomial(3, expected_score(truth[i] - truth[j], 2), size=150)
            matches.append((i, j, np.bincount(6 * wins, minlength=19).tolist()))
    ratings = bradley_terry(3, matches, copies=2)
    assert all(one.low <= value <= one.high for one, value in zip(ratings[1:], truth[1:], strict=True))

    def likelihood(elos: list[float]) -> float:
        total = 0.0
        for i, j, counts in matches:
            score = sum(n * step / 18 for step, n in enumerate(counts))
            strengths = [10 ** (elos[k] / 400) for k in (i, j)]
            wins = strengths[0] / (strengths[0] + 2 * strengths[1])
            total += score * math.log(wins) + (sum(counts) - score) * math.log(1 - wins)
        return total

    found = [one.elo for one in ratings]
    for player in (1, 2):
        for step in (-1, 1):
            other = [value + step * (index == player) for index, value in enumerate(found)]
            assert likelihood(other) < likelihood(found)


# az-match, az-train, az-compare, the report ---------------------------------------------------------------------------


def test_az_match_names_whose_share_it_prints(printed: Any) -> None:
    command = ["mcts:20", "random", "--game", THREE, "--games", "12", "--opening-plies", "0"]
    lines = printed(main, command).splitlines()
    assert lines[1].startswith("score of A: ")
    assert "A's share of the wins against 2 copies of B, even at 0.333; 95 % intervals, from the rounds" in lines[1]
    assert [word in lines[2] for word in ("12 games: won ", "shared the win of ", "as seat 2 ")] == [True] * 3
    assert lines[3].startswith("outcome of A: ")
    found = json.loads(printed(main, [*command, "--json"]))
    result = azpy.match("mcts:20", "random", game=THREE, games=12, opening_plies=0)
    assert (found["score"], found["players"], found["rounds"]) == (result.score, 3, 4)
    assert [found[f"as_seat_{seat}"] for seat in range(3)] == [[*counts] for counts in result.seats]
    assert (found["outcome"], found["other_outcome"]) == (result.outcome_of(0)[0], result.outcome_of(1)[0])


def test_az_train_names_whose_share_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    three = MatchResult((Round(((1.0, -1.0, -1.0), (-1.0, 1.0, -1.0), (-1.0, 1.0, -1.0)), ((), (), ())),))
    alone = MatchResult((Round(((0.5, 0.0, 0.25),), ((),)),), zero_sum=False)
    for result in (three, alone):
        Display().show(Matched(4, "mcts-200", result))
    shared, single = capsys.readouterr().out.splitlines()
    assert shared.startswith("  strength after iteration 4: 0.333")
    assert shared.endswith("(+1 =0 -2), share of the wins against 2 copies of mcts-200, even at 0.333")
    assert single.endswith("against mcts-200")
    assert "share" not in single


def test_saved_games_have_the_players_by_their_seats(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    for game in (THREE, ALONE):
        assert main(["mcts:4", "random", "--game", game, "--games", "6", "--save", str(file), "--json"]) == 0
    saved = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(saved) == 6 + 12
    own = "mcts (4 simulations)"
    for game in saved[:6]:
        assert [game["players"].index(own), game["players"].count(own)] == [game["number"] % 3, 1]
        assert len(game["faults"]) == 3
        state = make_game(THREE)
        for name in (*game["opening"], *game["moves"]):
            state.play(*state.parse_actions(name))
        assert game["outcome"] == list(state.outcomes())
    assert any(game["outcome"] != game["outcome"][::-1] for game in saved[:6])
    assert sorted(game["players"] for game in saved[6:]) == [[own]] * 6 + [["random"]] * 6
    assert all(isinstance(game["outcome"], float) for game in saved[6:])


def test_a_round_robin_of_three_has_each_against_copies(printed: Any) -> None:
    command = ["random", "mcts:40", "uniform:2", "--round-robin", "--game", THREE, "--games", "6", "--json"]
    found = json.loads(printed(main, command))
    assert len(found["matches"]) == 6
    assert [row["games"] for row in found["ratings"]] == [12] * 3
    assert found["ratings"][0]["elo"] == 0 < found["ratings"][1]["elo"]
    table = [line for line in printed(main, command[:-1]).splitlines() if line.startswith(("1 ", "2 ", "3 "))]
    names = [row["player"] for row in found["ratings"]]
    for match in found["matches"]:
        cells = table[names.index(match["a"])].split()[-2:]
        assert f"{match['score']:.3f}" in cells


def test_one_player_s_match_and_table_have_mean_scores(printed: Any) -> None:
    command = ["mcts:30", "random", "--game", ALONE, "--games", "9", "--opening-plies", "0"]
    result = azpy.match("mcts:30", "random", game=ALONE, games=9, opening_plies=0)
    assert result.difference[0] > 0
    said = printed(main, command)
    assert (
        f"mean score of A: {told(*result.outcome_of(0))}, of B: {told(*result.outcome_of(1))} (95 % intervals)" in said
    )
    assert f"A minus B: {told(*result.difference)} (95 % interval" in said
    assert "9 games each: A did better in " in said
    assert "Elo" not in said
    rows = json.loads(printed(main, ["--round-robin", *command[:2], "mcts:2", *command[2:], "--json"]))["ratings"]
    assert [row["player"] for row in rows] == ["mcts (30 simulations)", "random", "mcts (2 simulations)"]
    assert rows[0]["score"] == result.outcome_of(0)[0]
    assert "mean score" in printed(main, ["--round-robin", *command[:2], "mcts:2", *command[2:]])


@pytest.mark.parametrize(
    ("game", "arguments", "said"),
    [
        (THREE, ["--games", "4"], "games must be a multiple of 3, got 4: each opening is played from each seat"),
        (ALONE, ["--games", "0"], "--games must be at least 1, got 0"),
        (THREE, ["--elo0", "0", "--elo1", "9"], "--elo0 and --elo1 test pairs of games between two players, and "),
        (ALONE, ["--elo0", "0", "--elo1", "9"], "has 1 player: leave them out"),
        (
            THREE,
            ["--round-robin", "mcts?solver=true"],
            "player 'mcts?solver=true': solver and lookahead are for games of",
        ),
        (THREE, ["--round-robin", "ugi:true"], "other programs can only play zero-sum games of two players, and "),
        ("many_players:Together", ["--round-robin", "ugi:true"], "has 2 players without a zero sum: gtp"),
    ],
)
def test_options_for_two_players_are_refused_by_name(
    game: str, arguments: list[str], said: str, one_line: Callable[..., str]
) -> None:
    assert said in one_line(main, [*arguments, "mcts:2", "random", "--game", game], "az-match: ")


def test_levels_and_looks_ahead_are_refused_by_name(tmp_path: Path, one_line: Callable[..., str]) -> None:
    with RunFolder(tmp_path / "run", {"game": THREE}) as run:
        run.save_checkpoint(1, model={}, optimizer={}, state={}, onnx=b"no model")
    said = one_line(main, ["--calibrate", str(tmp_path / "run"), "--game", THREE], "az-match: ")
    assert "--calibrate measures levels by pairs of games of two players with a zero sum, and " in said
    for game in (Trio, Together):
        assert match_search(Settings("x"), azpy.State(game()))["solver"] is False
        with pytest.raises(SettingsError, match="match_lookahead 4: solver and lookahead are for games of one"):
            match_search(Settings("x", match_lookahead=4), azpy.State(game()))
    assert match_search(Settings("x"), azpy.State(TossAlone()))["solver"] is True


@pytest.mark.parametrize(("game", "line"), [(THREE, "score of A 0."), (ALONE, "A minus B +")])
def test_az_compare_is_for_any_number_of_players(
    game: str, line: str, training: FakeTraining, monkeypatch: pytest.MonkeyPatch, printed: Any
) -> None:
    def fake(*_: object, seed: int, games: int, **__: object) -> MatchResult:
        assert games == (201 if game == THREE else 200)
        return azpy.match("mcts:10", "random", game=game, games=6, opening_plies=0, seed=seed)

    monkeypatch.setattr("azpy.training.comparison.match", fake)
    monkeypatch.setattr("test_compare.model", lambda *_: b"no model")
    command = [game, "passes=1", "passes=2", "--total-evaluations", "1000", "--seeds", "3"]
    last = printed(compare.main, command).splitlines()[-1]
    assert last.startswith(line)
    assert ("Elo" in last) == (game == THREE)


def test_alarms_know_what_a_share_of_several_players_is() -> None:
    def row(score: float, **facts: Any) -> dict[str, Any]:
        usual = {"kind": "match", "iteration": 12, "opponent": "random", "score": score, "low": score, "high": score}
        return usual | {"wins": 5, "losses": 5} | facts

    assert alarms([row(0.65)])
    assert not alarms([row(0.65, players=3)])
    assert "hardly beats a random player" in alarms([row(0.55, players=3)])[0]
    assert not alarms([row(0.5, players=2, wins=0, losses=0)])  # they play together
    assert alarms([row(0.1, players=1, difference_high=-0.1)])
    assert not alarms([row(0.1, players=1, difference_high=0.1)])
    weaker = [row(0.5, players=1, iteration=1), row(0.2, players=1), row(0.2, players=1, opponent="mcts-100")]
    assert len(alarms([one | {"difference_high": 1.0} for one in weaker])) == 1
