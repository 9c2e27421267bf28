"""What a run says about itself: statistics against a slow reading of the records, alarms, and the page."""

import base64
import math
import statistics
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import azpy
from azpy.games.names import make_game
from azpy.reports.advice import alarms
from azpy.reports.report import make_report
from azpy.reports.statistics import calibration, game_statistics, searched_positions
from many_players import Knapsack, Toss, TossAlone
from oracles import Countdown

Rows = list[dict[str, Any]]
GAMES = ["tic_tac_toe", "connect_four", "hex(size=4,swap=1)", "othello(size=4)", "pig", "dice_nim"]


def written(*given: Any, drawn: bool = False) -> str:
    """A page; drawing its charts takes longer than all else."""
    with pytest.MonkeyPatch.context() as patched:
        if not drawn:
            patched.setattr("azpy.reports.report._charts", lambda *_: [])
        return make_report(*given)


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


def test_of_one_player_scores_are_shown_as_the_game_pays_them() -> None:
    records = play(Knapsack(), score_to_beat=-0.25)
    scores = [record.outcome for record in records]
    found = game_statistics(records)
    assert not {"draws", "first_seat_score"} & found.keys()
    assert (found["best_score"], found["score_to_beat"]) == (max(scores), -0.25)
    assert found["mean_score"] == pytest.approx(np.mean(scores))
    assert set(searched_positions(records).result.tolist()) == {1.0, -1.0}
    row = {"kind": "iteration", "iteration": 1, "games": 12, "positions": 72, "seconds": 1.0}
    page = make_report("bag", {}, [row | found], records, azpy.State(Knapsack()))
    assert 'alt="Scores"' in page
    assert 'alt="Outcomes"' not in page
    assert f"in the end {records[0].outcome:+.2f}, to beat -0.25" in page


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


def test_an_exact_value_lies_on_the_diagonal() -> None:
    positions = searched_positions(play("connect_four", games=30))
    table = calibration(positions)
    assert table[:, 2].sum() == len(positions.value)
    assert (np.diff(table[:, 0]) > 0).all()
    perfect = calibration(type(positions)(**(vars(positions) | {"value": positions.result})))
    assert perfect[:, 0] == pytest.approx(perfect[:, 1])


def iterations(count: int = 3, **values: float) -> Rows:
    usual = {"value_spread": 0.4, "explained_variance": 0.2, "draws": 0.1}
    usual |= {"search_gain": 0.1, "duplicates": 0.0, "first_seat_score": 0.6}
    return [{"kind": "iteration", "iteration": i + 1} | usual | values for i in range(count)]


def one_player(**values: float) -> Rows:
    """Nobody draws a game alone, so such rows do not say how many are drawn."""
    return [{name: value for name, value in row.items() if name != "draws"} for row in iterations(3, **values)]


def match(iteration: int, score: float, opponent: str = "mcts-100") -> dict[str, Any]:
    row = {"kind": "match", "iteration": iteration, "opponent": opponent, "score": score}
    return row | {"low": score - 0.05, "high": score + 0.05}


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (iterations(value_spread=0.01), "Value collapse"),
        (one_player(value_spread=0.01), "Value collapse"),
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


class Page(HTMLParser):
    """Checks that tags close, and collects what the page would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.pictures: dict[str, str] = {}  # what stands for each -> where it is from
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag == "img":
            picture = dict(attrs)
            self.pictures[picture["alt"] or ""] = picture["src"] or ""
        if tag not in ("meta", "img", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(
    game: str, records: list[azpy.GameRecord], rows: Rows, start: azpy.State | None = None, *, drawn: bool = False
) -> Page:
    start, settings = start or make_game(game), {"game": game, "minutes": None, "c_puct": 1.5}
    return Page(written(f"{game}: a <run>", settings, rows, records, start, drawn=drawn))


@pytest.mark.parametrize("game", ["tic_tac_toe", "pig"])
def test_the_page_needs_nothing_else_and_shows_positions(game: str) -> None:
    records = play(game)
    row = {"games": 12, "positions": 90, "seconds": 30.0, "policy_loss": 1.0, "value_loss": 0.5}
    rows = [dict(r) | row | game_statistics(records) for r in iterations(2)]
    page = page_of(game, records, [*rows, match(2, 0.7)], drawn=True)
    assert page.sources
    assert all(source.startswith("data:") for source in page.sources)
    assert "a <run>" in page.text
    assert "0.70 [0.65, 0.75] against mcts-100" in page.text
    assert "No alarms" in page.text
    assert page.text.count("to move: value") == 6
    assert "minutesNone" not in page.text


@pytest.mark.parametrize(
    ("game", "facts", "texts"),
    [
        (Toss, {}, ["0.33 is even", "0.70 [0.65, 0.75] against random", "in the end +1.00", "what seat 0 scores"]),
        (TossAlone, {"other_outcome": 0.1}, ["Mean scores on the same games", "0.70 [0.65, 0.75], and random 0.10"]),
    ],
)
def test_a_page_says_whose_scores_it_shows(game: Any, facts: Any, texts: list[str]) -> None:
    start, row = azpy.State(game()), match(2, 0.7, "random") | {"players": game.num_players, "wins": 3, "losses": 1}
    with azpy.SelfPlay(start, azpy.UniformEvaluator(), slots=2, pipelines=1, simulations=4, games=20) as games:
        records = list(games)
    page = page_of("toss", records, [row | facts, row | facts | {"opponent": "mcts-100"}], start, drawn=True)
    assert [text for text in texts if text not in page.text] == []


def test_a_page_shows_the_position_before_the_action() -> None:
    record = play("connect_four", games=1)[0]
    page = page_of("connect_four", [record], [])
    ply = int(page.text.split("ply ")[1].split(",")[0])
    state = azpy.make_game("connect_four")
    for action in record.actions[:ply].tolist():
        state.play(action)
    assert base64.b64decode(page.pictures[str(state)].partition("base64,")[2]).decode() == state.to_svg()


def test_a_position_of_a_game_in_python_is_a_picture_of_its_text() -> None:
    start = azpy.State(Countdown(6))
    with azpy.SelfPlay(start, azpy.UniformEvaluator(), slots=2, simulations=4, games=2) as games:
        records = list(games)
    page = page_of("countdown", records, [], start)
    drawn = {text: picture for text, picture in page.pictures.items() if "Countdown(key=" in text}
    assert drawn
    for text, picture in drawn.items():
        assert text in base64.b64decode(picture.partition("base64,")[2]).decode()


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        ("<script>alert(1)</script></pre>", "<script>alert(1)</script></pre>"),
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
    page = written("a run", {}, [], records, start)
    assert page.encode()
    assert "<script" not in page
    assert text in " ".join(Page(page).pictures)


def test_a_page_can_be_made_before_anything_is_known() -> None:
    assert "No iteration is done yet" in page_of("tic_tac_toe", [], []).text
