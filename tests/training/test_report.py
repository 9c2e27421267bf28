"""What a run says about itself: statistics against a slow reading of the records, alarms, and the page."""

import json
import math
import re
import statistics
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.games.names import make_game
from azpy.reports.advice import alarms, verdict
from azpy.reports.report import make_report
from azpy.reports.statistics import game_statistics, searched_positions
from many_players import Knapsack, Toss, TossAlone
from oracles import Countdown

Rows = list[dict[str, Any]]
GAMES = ["tic_tac_toe", "connect_four", "hex(size=4,swap=1)", "othello(size=4)", "pig", "dice_nim"]


def play(game: Any, games: int = 12, **options: Any) -> list[azpy.GameRecord]:
    evaluator = azpy.RolloutEvaluator(seed=3)
    with azpy.SelfPlay(game, evaluator, slots=4, simulations=20, games=games, seed=5, **options) as play:
        return sorted(play, key=lambda record: record.game_id)


@pytest.mark.parametrize("options", [{}, {"gumbel_actions": 4}])
@pytest.mark.parametrize("game", GAMES)
def test_positions_are_what_the_records_hold(game: str, options: dict[str, Any]) -> None:
    records = play(game, opening_plies=2, **options)
    found = searched_positions(records)
    row = 0
    for index, record in enumerate(records):
        for ply in range(len(record)):
            if not record.flags[ply] & 1:
                continue
            visits = record.visits[record.offsets[ply] : record.offsets[ply + 1]].tolist()
            priors = record.priors[record.offsets[ply] : record.offsets[ply + 1]].tolist()
            shares = record.targets[record.offsets[ply] : record.offsets[ply + 1]].tolist()
            if not options:  # with Gumbel visits say little
                assert shares == pytest.approx([visit / sum(visits) for visit in visits])
            assert (found.game[row], found.ply[row]) == (index, ply)
            assert found.value[row] == pytest.approx(record.root_values[ply])
            assert found.result[row] == (record.outcome if record.players[ply] == 0 else -record.outcome)
            assert found.choice[row] == (len(visits) > 1)
            assert found.policy_entropy[row] == pytest.approx(-sum(p * math.log(p) for p in priors), abs=1e-5)
            assert found.search_entropy[row] == pytest.approx(-sum(s * math.log(s) for s in shares if s), abs=1e-6)
            gain = sum(s * math.log(s / p) for s, p in zip(shares, priors, strict=True) if s)
            assert found.search_gain[row] == pytest.approx(gain, abs=1e-5)
            row += 1
    assert row == len(found.ply) > 0


def test_games_are_counted_as_they_are() -> None:
    records = play("tic_tac_toe")
    one = game_statistics([*records, records[0], records[0]])
    assert one["duplicates"] == pytest.approx(1 - len({r.actions.tobytes() for r in records}) / (len(records) + 2))
    assert one["mean_plies"] == pytest.approx(np.mean([len(r) for r in [*records, records[0], records[0]]]))
    won = [record for record in records if record.outcome == 1]
    lost = [record for record in records if record.outcome == -1]
    assert game_statistics(won)["first_seat_score"] == 1.0
    assert game_statistics(lost)["first_seat_score"] == 0.0
    assert game_statistics(won)["draws"] == 0.0
    capped = game_statistics(play("connect_four", max_plies=5))
    assert (capped["capped"], capped["draws"], capped["mean_plies"]) == (1.0, 1.0, 5.0)


def test_false_resignations_count_in_games_played_on() -> None:
    games = play("connect_four", games=400, resign_at=0.05)
    whole = {game.game_id: game for game in play("connect_four", games=400)}
    found = game_statistics(games, 0.05)
    assert found["resigned"] == sum(game.resigned for game in games) / len(games) > 0.5
    # The same games, played to the end: the core says who would have resigned.
    losers = [(whole[game.game_id], len(game) % 2) for game in games if game.resigned]
    wrong = sum(game.outcomes[loser] >= 0 for game, loser in losers)
    assert 0 < wrong < len(losers)
    every = game_statistics([game for game, _ in losers], 0.05)
    assert every["false_resignations"] == pytest.approx(wrong / len(losers))
    assert 0 < found["false_resignations"] < 1
    assert "false_resignations" not in game_statistics(play("connect_four", max_plies=5), 0.05)
    assert "resigned" not in game_statistics(play("connect_four"))


def test_of_one_player_scores_are_shown_as_the_game_pays_them() -> None:
    records = play(Knapsack(), score_to_beat=-0.25)
    scores = [record.outcome for record in records]
    found = game_statistics(records)
    assert not {"draws", "first_seat_score"} & found.keys()
    assert (found["best_score"], found["score_to_beat"]) == (max(scores), -0.25)
    assert found["mean_score"] == pytest.approx(np.mean(scores))
    assert set(searched_positions(records).result.tolist()) == {1.0, -1.0}
    row = {"kind": "iteration", "iteration": 1, "games": 12, "positions": 72, "seconds": 1.0}
    page = make_report("bag", {"game": "bag"}, [row | found], records, azpy.State(Knapsack()))
    assert 'aria-label="Scores"' in page
    assert 'aria-label="Outcomes"' not in page
    assert "score to beat" in page


def test_games_without_a_search_have_no_search_statistics() -> None:
    records = play("tic_tac_toe", opening_plies=40, games=40)
    unsearched = [record for record in records if not (record.flags & 1).any()]
    assert unsearched
    found = game_statistics(unsearched)
    assert not {"search_gain", "value_spread", "explained_variance"} & found.keys()
    assert found["mean_plies"] > 0


def test_values_explain_the_variance_of_outcomes() -> None:
    records = play("connect_four", games=30)
    pairs = [
        (value, record.outcome if player == 0 else -record.outcome)
        for record in records
        for value, player, flags in zip(record.root_values, record.players, record.flags, strict=True)
        if flags & 1
    ]
    errors = [result - value for value, result in pairs]
    explained = 1 - statistics.pvariance(errors) / statistics.pvariance([result for _, result in pairs])
    assert game_statistics(records)["explained_variance"] == pytest.approx(explained)
    assert 0 < explained < 1
    drawn = [record for record in play("tic_tac_toe", games=30) if record.outcome == 0]
    assert "explained_variance" not in game_statistics(drawn)


def iterations(count: int = 3, **values: float | None) -> Rows:
    usual: dict[str, float | None] = {"value_spread": 0.4, "explained_variance": 0.2, "draws": 0.1}
    usual |= {"search_gain": 0.1, "duplicates": 0.0, "first_seat_score": 0.6}
    known = {name: value for name, value in (usual | values).items() if value is not None}
    return [{"kind": "iteration", "iteration": i + 1} | known for i in range(count)]


def match(iteration: int, score: float, opponent: str = "mcts-100") -> dict[str, Any]:
    row = {"kind": "match", "iteration": iteration, "opponent": opponent, "score": score}
    return row | {"low": score - 0.05, "high": score + 0.05}


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (iterations(value_spread=0.01), "Value collapse"),
        (iterations(value_spread=0.01, draws=None), "Value collapse"),  # games of one player have no draws
        (iterations(explained_variance=-0.2), "value misleads"),
        (iterations(draws=1.0), "All draws"),
        (iterations(draws=1.0, value_spread=0.0), "All draws"),
        (
            iterations(draws=0.9, predicted_draws=0.97),
            "The value predicts draws: 97% on average, although only 90% of the games",
        ),
        (iterations(search_gain=0.0005), "no longer moves"),
        (iterations(duplicates=0.5), "Duplicate"),
        (iterations(first_seat_score=1.0), "Seat 0 always wins"),
        (iterations(first_seat_score=0.0), "Seat 0 always loses"),
        ([match(5, 0.9), match(10, 0.5)], "Weaker"),
        ([match(12, 0.5, "random")], "random player"),
    ],
)
def test_each_sign_has_its_sentence(rows: Rows, word: str) -> None:
    found = alarms(rows)
    assert len(found) == 1
    assert word in found[0]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        iterations(),
        iterations(2, draws=1.0),  # two iterations are no sign yet
        iterations(draws=1.0, value_spread=0.0)[:2] + iterations(1),  # it is over
        iterations(draws=0.95, explained_variance=-0.3),
        iterations(draws=0.9, predicted_draws=0.9, value_spread=0.1),
        [{"kind": "iteration", "iteration": i} for i in range(5)],  # rows of a version that counted less
        [match(5, 0.5), match(10, 0.52), match(15, 0.48)],
        [match(2, 0.5, "random")],
    ],
)
def test_a_healthy_run_has_no_alarm(rows: Rows) -> None:
    assert alarms(rows) == []


def test_rows_of_other_kinds_are_no_iterations_and_no_matches() -> None:
    rows = [match(5, 0.9), *iterations(draws=1.0)]
    others: Rows = [{"kind": kind, "iteration": 9, "seconds": 1e6} for kind in ("collected", "settings", "stopped")]
    assert alarms([*others, *rows, *others]) == alarms(rows) != []
    row = {"games": 12, "positions": 90, "seconds": 30.0}
    rows = [dict(r) | row for r in iterations()]
    assert page_of("tic_tac_toe", [], [*rows, *others]).text == page_of("tic_tac_toe", [], rows).text


def met(opponent: str, score: float, iteration: int = 5, games: int = 40, **facts: Any) -> dict[str, Any]:
    """A row of a match without draws, whose interval is 0.1 to each side."""
    row = {"kind": "match", "iteration": iteration, "opponent": opponent, "score": score}
    row |= {"low": score - 0.1, "high": score + 0.1, "draws": 0}
    return row | {"wins": round(score * games), "losses": games - round(score * games)} | facts


def alone(opponent: str, other: float, low: float, high: float) -> dict[str, Any]:
    return met(opponent, 0.5, players=1, other_outcome=other, difference_low=low, difference_high=high)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "It is too early to tell whether it learns: no match is played yet."),
        (
            [met("random", 1.0), met("untrained", 0.775), met("mcts-1000", 0.2)],
            "It beats a random player (40-0) and an untrained network (31 of 40): it learns. "
            "It loses to plain search with 1,000 rollouts (8 of 40).",
        ),
        (
            [met("random", 1.0), met("untrained", 0.65, wins=25, draws=2, losses=13), met("mcts-100", 0.0)],
            "It beats a random player (40-0) and an untrained network (25 of 40 with 2 draws): it learns. "
            "It loses to plain search with 100 rollouts (0-40).",
        ),
        # It scores more than at first. The interval of the difference is 0.14 to each side.
        (
            [met("mcts-100", 0.35, 0), met("mcts-100", 0.5)],
            "It is level with plain search with 100 rollouts (20 of 40): it learns.",
        ),
        (
            [met("mcts-100", 0.37, 0), met("mcts-100", 0.5)],
            "(20 of 40). These matches cannot tell yet whether it learns.",
        ),
        (
            [met("mcts-100", 0.6, 0), met("mcts-100", 0.3)],
            "(12 of 40). These matches cannot tell yet whether it learns.",
        ),
        (
            [met("random", 0.9), met("untrained", 0.5)],
            "It is level with an untrained network (20 of 40). It beats a random player (36 of 40): it does not learn "
            "yet. Give it more --minutes, or run az-check-game nim.",
        ),
        ([met("untrained", 0.5, 12)], "(20 of 40): it does not learn. Give it more --minutes"),
        ([*iterations(draws=1.0), met("untrained", 0.5, 3)], "yet. Try what the warnings say."),
        # So few games, or so many draws, say nothing.
        (
            [met("untrained", 0.6, low=0.2, high=0.9)],
            "It is ahead of an untrained network (24 of 40), which may be luck. These matches cannot tell yet",
        ),
        (
            [met("untrained", 0.5, wins=9, draws=22, losses=9)],
            "with 22 draws). These matches cannot tell yet whether it",
        ),
        ([met("mcts-100", 0.1, 0)], "It has not learned from its own games yet. It loses to plain search with 100 "),
        # The newest match counts, not an opponent's last one.
        (
            [met("untrained", 0.9, 3), met("mcts-100", 0.9, 5)],
            "It beats plain search with 100 rollouts (36 of 40). These",
        ),
        # A row of another program may say no more than the score.
        ([match(5, 0.9, "untrained")], "It beats an untrained network (a score of 0.90): it learns."),
        (
            [met("random", 0.7, players=3), met("untrained", 0.45, players=3), met("mcts-100", 0.3, players=3)],
            "It beats 2 copies of a random player (28 of 40) and 2 copies of an untrained network (18 of 40): "
            "it learns. It is behind 2 copies of plain search with 100 rollouts (12 of 40), which may be luck. One "
            "win in 3 is even.",
        ),
        (
            [alone("random", -0.1, 0.5, 0.7), alone("untrained", 0.2, 0.1, 0.5), alone("mcts-100", 0.6, -0.3, 0.1)],
            "On the same games it scores +0.50, a random player -0.10, an untrained network +0.20 and plain search "
            "with 100 rollouts +0.60: it learns.",
        ),
        ([alone("untrained", 0.7, -0.4, -0.1)], "an untrained network +0.70: it does not learn yet. Give it"),
        ([alone("untrained", 0.5, -0.1, 0.1)], "These matches cannot tell yet"),
    ],
)
def test_words_say_how_strong_the_network_is_and_whether_it_learns(rows: Rows, words: str) -> None:
    newest = max((row["iteration"] for row in rows), default=0)
    rows = [{"kind": "iteration", "iteration": n} for n in range(1, newest + 1) if len(rows) < 4] + rows
    found = verdict(rows, "nim")
    assert words in found
    assert (": it learns." in found) == (": it learns." in words)


class Page(HTMLParser):
    """Checks that tags close, and collects what the page would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.games: list[dict[str, Any]] = []  # to step through
        self.text, self.source = "", text
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        self.games += [json.loads(value or "") for name, value in attrs if name == "data-game"]
        if tag not in ("meta", "img", "link", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(game: str, records: list[azpy.GameRecord], rows: Rows, start: azpy.State | None = None) -> Page:
    start, settings = start or make_game(game), {"game": game, "minutes": None, "c_puct": 1.5}
    return Page(make_report("runs/a <run>", settings, rows, records, start))


@pytest.mark.parametrize("game", ["tic_tac_toe", "pig"])
def test_the_page_needs_nothing_else_and_shows_a_game(game: str) -> None:
    records = play(game)
    row = {"games": 12, "positions": 90, "seconds": 30.0, "policy_loss": 1.0, "value_loss": 0.5}
    rows = [dict(r) | row | game_statistics(records) for r in iterations(2)]
    page = page_of(game, records, [*rows, match(2, 0.7)])
    assert page.sources
    assert all(source.startswith("data:") for source in page.sources)
    assert not re.search(r"url\(|@import|<script|<link", page.source)
    assert "0.70 [0.65, 0.75] against mcts-100" in page.text
    assert verdict([*rows, match(2, 0.7)], game) in page.text
    assert "az-play 'runs/a <run>'" in page.text
    assert "No alarms" in page.text
    assert page.source.count("<svg viewBox") == 6
    assert "minutesNone" not in page.text


def test_the_page_shows_the_game_that_search_changed_most_and_what_it_thought() -> None:
    records = play("connect_four")
    positions = searched_positions(records)
    game = int(positions.game[positions.search_gain.argmax()])
    page, record = page_of("connect_four", records, []), records[game]
    assert f"Game {record.game_id}Of the newest games" in page.text
    (data,) = page.games
    assert len(data["pictures"]) == len(record) + 1
    ply = int(positions.ply[positions.search_gain.argmax()])
    begin, end = record.offsets[ply : ply + 2]
    share, best = max(zip(record.targets[begin:end], range(begin, end), strict=True), key=lambda one: one[0])
    # Columns are counted from 1, as on the board.
    said = f"and prefers {record.legal[best] + 1} {share:.0%} (network {record.priors[best]:.0%})"
    assert said in data["said"][ply]


def test_the_page_of_a_game_in_python_names_it_in_its_commands() -> None:
    page = Page(make_report("runs/x", {"game": "mine:Game"}, [], [], make_game("pig")))
    assert "az-play runs/x --game mine:Game" in page.text
    assert "az-match runs/x mcts:1000 --game mine:Game" in page.text
    assert "No iteration is done yet" in page.text


@pytest.mark.parametrize("values", [[0.25, 0.5, 0.75], [-3.0, 12.0, 7.5], [0.0, 0.0, 0.0], [41.5, 41.5, 41.6]])
def test_a_curve_goes_through_its_values(values: list[float]) -> None:
    rows: Rows = [{"kind": "iteration", "iteration": 3 * n, "mean_plies": value} for n, value in enumerate(values)]
    rows = [row | {"games": 1, "positions": 1, "seconds": 1.0} for row in rows]
    chart = re.split("<figure><b>", page_of("pig", [], rows).source)[-1]
    labels = re.findall('<text x="([^"]*)" y="([^"]*)" text-anchor="(end|middle)">([-0-9.]+)</text>', chart)
    up = np.array([(float(text), float(y) - 4) for _, y, anchor, text in labels if anchor == "end"])
    across = np.array([(float(text), float(x)) for x, _, anchor, text in labels if anchor == "middle"])
    drawn = re.findall('<polyline points="([^"]*)"', chart)[0].split()
    for number, (value, point) in enumerate(zip(values, drawn, strict=True)):
        x, y = map(float, point.split(","))
        assert x == pytest.approx(np.interp(3 * number, across[:, 0], across[:, 1]), abs=0.2)
        assert y == pytest.approx(np.interp(value, up[:, 0], up[:, 1]), abs=0.2)
        assert up[0][0] <= value <= up[-1][0]
        assert 0 <= x <= 360
    assert 2 <= len(up) <= 7


@pytest.mark.parametrize(
    ("game", "facts", "texts"),
    [
        (Toss, {}, ["0.33 is even", "0.70 [0.65, 0.75] against random"]),
        (TossAlone, {"other_outcome": 0.1}, ["Mean scores on the same games", "0.70 [0.65, 0.75], and random 0.10"]),
    ],
)
def test_a_page_says_whose_scores_it_shows(game: Any, facts: Any, texts: list[str]) -> None:
    start, row = azpy.State(game()), match(2, 0.7, "random") | {"players": game.num_players, "wins": 3, "losses": 1}
    facts = facts | {"difference_low": 0.1, "difference_high": 0.2}
    with azpy.SelfPlay(start, azpy.UniformEvaluator(), slots=2, pipelines=1, simulations=4, games=20) as games:
        records = list(games)
    page = page_of("toss", records, [row | facts, row | facts | {"opponent": "mcts-100"}], start)
    assert [text for text in texts if text not in page.text] == []


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        ("<script>alert(1)</script></pre>", "&lt;script&gt;alert(1)&lt;/script&gt;&lt;/pre&gt;"),
        ("half a pair \ud800", "half a pair \ufffd"),
        (RuntimeError("no board today"), "(cannot be drawn: RuntimeError: no board today)"),
        (None, "(cannot be drawn: TypeError: "),
    ],
)
def test_a_page_can_be_made_for_any_text_of_a_game(drawn: Any, text: str) -> None:
    class Rude(Countdown):
        def __str__(self) -> str:
            if isinstance(drawn, Exception):
                raise drawn
            text: str = drawn
            return text

        def action_name(self, action: int) -> str:
            return str(self)

    start = azpy.State(Rude(6))
    with azpy.SelfPlay(start, azpy.UniformEvaluator(), slots=2, simulations=4, games=2) as games:
        records = list(games)
    page = make_report("a run", {"game": "rude"}, [], records, start)
    assert page.encode()
    assert "<script" not in page
    (data,) = Page(page).games
    assert text in "".join(data["parts"])
