"""az-check-game names the mistakes that people make, and says nothing of games that have none."""

import hashlib
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from test_wrong_games import EDITS

import azpy
import planted_games
import sound_games
from azpy.checks.check_game import check_game
from azpy.checks.faults import Broken
from azpy.checks.perspective import Perspective
from azpy.checks.rules import RULES
from azpy.checks.traces import traces
from azpy.cli.check_game import main
from azpy.games.names import make_game
from many_players import ByMover, Trio
from oracles import observation_of, turn_of

SMALL = {
    "connect_four": "connect_four(width=3,height=4,k=3)",
    "hex": "hex(size=3)",
    "othello": "othello(size=4)",
    # Games that end in time on a busy machine too.
    "chess": "chess(max_plies=30)",
    "blokus": "blokus(size=6)",
    "chinese_checkers": "chinese_checkers(max_turns=15)",
    "game2048": "game2048(size=3,target=128)",
    "go": "go(size=5)",
    "gomoku": "gomoku(size=5,k=4)",
    "breakthrough": "breakthrough(width=4,height=5)",
    "wall_game": "wall_game(width=4,height=4)",
}


@pytest.fixture
def few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all lines of play that there is time for."""
    monkeypatch.setattr("azpy.checks.check_game._MOST_LINES", 200)


def fault_of(name: str, **options: Any) -> Broken:
    failure = check_game(f"planted_games:{name}", **({"seconds": 100} | options)).failure
    assert failure is not None
    return failure


@pytest.mark.parametrize("name", planted_games.PLANTED)
def test_every_planted_mistake_is_found_and_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"planted_games:{name}", "--games", "20", "--seconds", "100", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    (finding,) = report["findings"]
    assert (finding["kind"], finding["rule"]) == ("fault", planted_games.PLANTED[name]), finding
    for part in ("holds", "got", "expected", "advice"):
        assert finding[part]
        assert "\n" not in finding[part]
    for line in finding["lines"]:
        assert len(line["actions"]) == len(line["names"])
        assert (line["before"] is None) <= (not line["actions"] or finding["rule"] in ("attributes", "exception")), line


@pytest.mark.parametrize("name", planted_games.WARNED)
def test_possible_mistakes_are_warnings(name: str, few_lines: None) -> None:
    report = check_game(f"planted_games:{name}", games=60, seconds=100)
    assert report.failure is None, report.failure
    assert [warning.rule for warning in report.warnings] == [planted_games.WARNED[name]]


# test_wrong_games.py has five more.
@pytest.mark.parametrize("name", [game.__name__ for game in planted_games.SOUND])
def test_sound_games_in_python_pass(name: str) -> None:
    report = check_game(f"planted_games:{name}", games=60, seconds=100)
    assert (report.failure, report.warnings, report.complete, report.games) == (None, [], True, 60)
    assert report.elsewhere >= 10


# rust/games/tests/all/conformance.rs has the rules of all of them; here no warning may be false.
@pytest.mark.parametrize(
    "name",
    [
        "planted_games:Kalah",  # double turns
        *(pytest.param(name, marks=() if name in ("hex", "pig") else pytest.mark.slow) for name in azpy.list_games()),
    ],
)
def test_games_that_are_right_have_no_warning(name: str, few_lines: None) -> None:
    report = check_game(SMALL.get(name, name), games=10, seconds=30)
    assert (report.failure, report.warnings) == (None, [])
    assert report.games > 0
    assert report.lines > 10


def test_every_rule_has_a_game_that_breaks_it() -> None:
    # rust/core/src/conformance.rs has games in Rust that break rules.
    broken = {*planted_games.PLANTED.values(), *planted_games.WARNED.values()}
    broken.update(rule for _, rule, *_ in EDITS if " " not in rule)
    assert broken | {"planes", "refusal", "symmetry", "text", "unfinished"} == set(RULES)


# Outcomes in the wrong view.


def warned_of(start: Any, games: int = 200) -> list[Broken]:
    """The warnings after random games."""
    state, rng = azpy.State(start), random.Random(1)
    perspective = Perspective(state.num_players, zero_sum=state.zero_sum)
    for _ in range(games):
        position = start.clone()
        while (turn := turn_of(position)) != azpy.TERMINAL:
            if turn == azpy.CHANCE:
                outcomes, chances = zip(*position.chance_outcomes(), strict=True)
                position.play(rng.choices(outcomes, chances)[0])
                continue
            perspective.watch(turn, observation_of(position))
            position.play(rng.choice(position.legal_actions()))
        try:
            final = observation_of(position)
        except Exception:
            final = None
        perspective.end(position.outcome(), final)
    return perspective.warnings()


def signs_of(start: Any) -> str | None:
    """What the warning of an outcome in the wrong view says after random games."""
    return next((warning.got for warning in warned_of(start) if warning.rule == "sides"), None)


@pytest.mark.parametrize("name", ["ForTheOneToMove", "ForTheLastToPlay", "AgainstTheLastToPlay"])
def test_an_outcome_in_the_wrong_view_is_found(name: str) -> None:
    said = signs_of(getattr(planted_games, f"Kalah{name}")())
    assert said is not None
    assert re.search(r"random games that end with .* of player 0 \(correlation [+-]0\.", said)


def test_sound_games_show_no_sign_of_a_wrong_view() -> None:
    names = ("othello", "go(size=5)", "wall_game", "wall_game(variant=classic)", "breakthrough", "pig")
    for game in (sound_games.Kalah(), *map(make_game, names)):
        assert signs_of(game) is None


def test_outcomes_of_the_wrong_players_are_found() -> None:
    for name, seconds in (("Knapsack", 20), ("Trio", 4), ("Together", 4)):
        report = check_game(f"many_players:{name}", games=20, seconds=seconds)
        assert report.failure is None, report.failure
        assert (report.complete, report.zero_sum) == (name == "Knapsack", False)
    assert not warned_of(Trio(), 120)
    warned = warned_of(ByMover(), 120)
    assert [warning.rule for warning in warned] == ["one-sided", "one-sided", "sides"]
    assert "player 0 had the highest outcome in all " in warned[-1].got


def test_a_win_in_a_line_that_was_tried_counts() -> None:
    random_games, tried = Perspective(), Perspective()
    for _ in range(100):
        random_games.end(1.0)
        tried.end(1.0, at_random=False)
    assert [warning.rule for warning in random_games.warnings()] == ["one-sided"]
    assert tried.warnings() == []
    random_games.end(-1.0, at_random=False)
    assert random_games.warnings() == []


def test_players_with_one_goal_have_different_outcomes() -> None:
    together, idle = Perspective(3, zero_sum=False), Perspective(3, zero_sum=False)
    for game in range(200):
        together.end((game / 200,) * 3)
        idle.end((0.0,) * 3)
    assert together.warnings() == []
    assert [warning.rule for warning in idle.warnings()] == ["one-score"]


# The line of play that shows a fault.


@pytest.mark.parametrize(
    ("name", "line", "options"),
    [
        ("Float64", (), {}),
        ("ForgottenCase", (0,), {}),
        ("OutcomeInPoints", (0, 4, 8), {}),
        ("ThirdPlayer", (0, 4, 7), {}),
        ("MaxPliesTooSmall", 5, {}),
        ("TwoFaults", (6,), {"games": 0}),
        ("DeepMistake", (1,) * 10, {"few": True}),
    ],
)
def test_the_line_of_play_is_the_shortest_there_is(
    name: str, line: tuple[int, ...] | int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if options.pop("few", False):  # only random games reach it
        monkeypatch.setattr("azpy.checks.check_game._MOST_LINES", 200)
    found = fault_of(name, **options).line
    assert found is not None
    assert (len(found) if isinstance(line, int) else found) == line


def test_two_lines_with_one_key_are_both_short(few_lines: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.checks.faults._SHRINK_SECONDS", 100)  # enough on a busy machine
    failure = fault_of("DeepKey", games=50)
    assert failure.rule == "key"
    assert (len(failure.line or ()), len(failure.other or ())) == (16, 16)


@pytest.mark.parametrize("seed", range(4))
def test_a_game_that_differs_on_replay_is_found(seed: int) -> None:
    assert fault_of("Moody", games=200, seed=seed).rule in {"replay", "key", "clone"}


def test_an_error_names_the_method_and_the_line_of_the_file() -> None:
    failure = fault_of("ForgottenCase", games=0)
    found = re.search(r"encode\(\) raised IndexError: .* \(planted_games.py, line (\d+)\)", failure.got)
    assert found is not None
    assert failure.place == f"{planted_games.__file__}:{found[1]}"


# Time, seeds and what is no finding.


def test_a_check_keeps_to_its_seconds() -> None:
    report = check_game("hex(size=5)", games=0, seconds=1e-9)  # the start is looked at all the same
    assert (report.failure, report.lines, report.positions) == (None, 1, 1)
    report = check_game("planted_games:Marathon", seconds=0.5)
    assert (report.failure, report.games) == (None, 0)
    assert [warning.rule for warning in report.warnings] == ["unfinished"]


def test_the_same_seed_plays_the_same_games() -> None:
    one, two, other = (check_game("planted_games:Nim", games=30, seed=seed) for seed in (1, 1, 2))
    assert (one.results, one.plies) == (two.results, two.plies) != (other.results, other.plies)


def test_ctrl_c_does_not_count_as_a_fault_of_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(game: sound_games.Nim) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(sound_games.Nim, "key", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_game("planted_games:Nim", games=0, seconds=20)


def test_games_of_openspiel_are_checked(capfd: pytest.CaptureFixture[str], few_lines: None) -> None:
    pytest.importorskip("pyspiel")
    report = check_game("open_spiel:tic_tac_toe", games=5, seconds=5)
    assert "".join(capfd.readouterr()) == ""  # OpenSpiel prints what it refuses
    assert (report.failure, report.games) == (None, 5)


# The command.


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (["planted_games:MaxPliesTooSmall"], 1, ["after 5 plies: a1-a2, ", "  a b c", "goes on after 5 plies"]),
        (
            ["planted_games:Kuhn"],
            1,
            [
                "breaks the rule hidden: encode shows everything that search uses",
                "action 0 wins at once in one and loses at once in the other",
                "  after 2 plies: 5, ",  # the cards, and a pass of player 0
                "add view_key: without it, the search uses what the player cannot know",
            ],
        ),
        (
            ["planted_games:PlayersOneAndTwo"],
            1,
            ["got:      2\n", "expected: 0 or 1 for the two players (num_players = 2), azpy.CHANCE", "(not 1 and 2)"],
        ),
        (
            ["planted_games:OutcomeAsABool", "--games", "20"],
            1,
            ["expected: a number in [-1, 1]: 1.0 if player 0 won, -1.0 if", "False would count as a draw"],
        ),
        (["tic_tac_toe", "--games", "0", "--seconds", "1"], 0, ["passed all checks"]),
        (
            ["planted_games:OneName", "--games", "5"],
            0,
            ["usually the legal actions of a position have different names"],
        ),
        (
            ["planted_games:Hexapawn", "--games", "20", "--seed", "3"],
            0,
            ["passed all checks", "from the start: the whole game", "20 random games", "in a second Python process"],
        ),
    ],
    ids=lambda value: value[0].partition(":")[2] if isinstance(value, list) and "planted" in value[0] else "",
)
def test_the_command_shows_what_it_found(
    arguments: list[str], code: int, texts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    said = capsys.readouterr().out
    for text in texts:
        assert text in said
    assert ("Warning" in said) == (arguments[0] == "planted_games:OneName")


def test_the_command_shows_a_finished_game_in_words(capsys: pytest.CaptureFixture[str], printed: Any) -> None:
    found = printed(main, ["tic_tac_toe", "--games", "30", "--seconds", "5"])
    said = found.partition("The shortest random game, of ")[2].splitlines()
    plies, _, names = said[0].partition(": ")
    position = make_game("tic_tac_toe")
    for name in names.split(", "):
        position.play(position.parse_actions(name)[0])
    assert position.is_terminal
    assert plies == f"{len(names.split(', '))} plies"
    assert [line[4:] for line in said[1:4]] == str(position).splitlines()
    assert said[4] == f"  result: {position.result_text()}"
    assert main(["pig", "--games", "1", "--seconds", "5"]) == 0  # a long one is cut
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("The shortest random game"))
    assert line.count(", ") < 45


def test_the_boards_of_a_line_are_those_of_the_game(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planted_games:DeepMistake", "--json"]) == 1
    ((line,),) = (finding["lines"] for finding in json.loads(capsys.readouterr().out)["findings"])
    state = azpy.State(planted_games.DeepMistake())
    for name, action in zip(line["names"], line["actions"], strict=True):
        before = str(state)
        assert state.action_name(action) == name
        state._play(action)
    assert (line["before"], line["board"]) == (before, str(state))


@pytest.mark.parametrize("game", ["tic_tac_toe", "pig(target=10)", "many_players:Trio"])
def test_traces_are_games_of_the_rules(game: str, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    assert main([game, "--games", "2", "--seconds", "1", "--traces", "3", str(path)]) == 0
    games = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one["game_id"] for one in games] == [0, 1, 2]
    for one in games:
        position = make_game(game)
        for ply in one["plies"]:
            assert ply["player"] == turn_of(position)
            if ply["player"] == azpy.CHANCE:
                assert [tuple(outcome) for outcome in ply["outcomes"]] == position.chance_outcomes()
            else:
                row = position.observation().tobytes()
                assert ply["legal"] == position.legal_actions()
                assert ply["observation"] == hashlib.blake2b(row, digest_size=16).hexdigest()
            assert ply["name"] == position.action_name(ply["action"])
            position.play(ply["action"])
        outcome = position.outcome()
        assert one["outcome"] == (list(outcome) if isinstance(outcome, tuple) else outcome)


def test_traces_are_drawn_by_seed_and_by_chance() -> None:
    plain = list(traces("tic_tac_toe", 3, seed=1))
    assert list(traces("tic_tac_toe", 2, seed=1)) == plain[:2]
    assert list(traces("tic_tac_toe", 3, seed=2)) != plain
    rolls = [ply for game in traces("game2048", 3) for ply in game["plies"] if ply["player"] == azpy.CHANCE]
    shares = [(dict(ply["outcomes"])[ply["action"]], max(share for _, share in ply["outcomes"])) for ply in rolls]
    fours = sum(share < most for share, most in shares) / len(rolls)
    assert 0.04 < fours < 0.16, "one tile in ten is a 4"


def test_a_wrong_game_leaves_no_traces(tmp_path: Path) -> None:
    assert main(["planted_games:ForgottenCase", "--traces", "3", str(tmp_path / "traces.jsonl")]) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nope"], "unknown game"),
        (["tic_tac_toe", "--traces", "0", "x"], "expected a number of games above 0"),
        (["tic_tac_toe", "--rust"], "--rust goes with --new"),
        (["mine", "--new", "--traces", "3", "x"], "--traces does not go with --new"),
        (["2048", "--new"], "expected small letters"),
        (["game", "--new"], "game makes a class Game, a word that the code needs: choose another name"),
        (["class", "--new"], "expected small letters"),
        (["go", "--new"], "go is the name of a game or a Python module already"),
        (["json", "--new"], "json is the name of a game or a Python module already"),
        (["planted_games:Nobody"], "does not have 'Nobody'"),
        (["tic_tac_toe", "--games", "-1"], "games must be at least 0"),
        (["tic_tac_toe", "--seconds", "0"], "--seconds must be more than 0"),
    ],
)
def test_input_that_cannot_be_checked_is_one_line(arguments: list[str], text: str, one_line: Any) -> None:
    assert text in one_line(main, arguments, "az-check-game: ")
