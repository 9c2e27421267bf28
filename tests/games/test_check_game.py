"""az-check-game finds the mistakes that people make, names them, and says nothing of games that have none."""

import random
import re
from typing import Any

import pytest

import azpy
import planted_games
import sound_games
from azpy.checks.check_game import check_game
from azpy.checks.faults import Broken
from azpy.checks.perspective import Perspective
from azpy.checks.rules import RULES
from azpy.cli.check_game import main
from azpy.errors import SettingsError
from azpy.games.names import make_game
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


@pytest.mark.parametrize("name", planted_games.PLANTED)
def test_every_planted_mistake_is_found_and_named(name: str) -> None:
    failure = check_game(f"planted_games:{name}", games=20, seconds=20).failure
    assert failure is not None
    assert failure.rule == planted_games.PLANTED[name], failure
    for text in (failure.got, failure.expected, failure.advice):
        assert text
        assert "\n" not in text
    if name == "OutcomeAsABool":
        assert failure.got in ("True", "False")
        assert failure.expected == "a number in [-1, 1]: 1.0 if player 0 won, -1.0 if player 0 lost, 0.0 for a draw"
        assert "return 1.0 if player 0 won, -1.0 if player 0 lost and 0.0 for a draw" in failure.advice
        assert "False is a draw" in failure.advice


@pytest.mark.parametrize("name", planted_games.WARNED)
def test_what_may_be_a_mistake_is_a_warning(name: str, few_lines: None) -> None:
    report = check_game(f"planted_games:{name}", games=60, seconds=20)
    assert report.failure is None, report.failure
    assert [warning.rule for warning in report.warnings] == [planted_games.WARNED[name]]


@pytest.mark.parametrize("name", [game.__name__ for game in planted_games.SOUND])
def test_sound_games_in_python_pass(name: str) -> None:
    report = check_game(f"planted_games:{name}", games=60, seconds=20)
    assert report.failure is None, report.failure
    assert report.warnings == []
    assert report.complete
    assert report.games == 60
    assert report.elsewhere >= 10


# rust/games/tests/all/conformance.rs has the rules of all of them; here no warning may be false.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in ("hex", "pig") else pytest.mark.slow) for name in azpy.list_games()],
)
def test_every_game_that_ships_with_azpy_passes(name: str, few_lines: None) -> None:
    report = check_game(SMALL.get(name, name), games=10, seconds=5)
    assert report.failure is None, report.failure
    assert report.warnings == []
    assert report.games > 0
    assert report.lines > 10


def signs_of(start: Any, games: int) -> Broken | None:
    """The warning of an outcome in the wrong view after random games."""
    perspective, rng = Perspective(), random.Random(1)
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
    return next((warning for warning in perspective.warnings() if warning.rule == "sides"), None)


class ForTheLastToPlay:
    """A game whose outcome is for the player who has moved last."""

    def __init__(self, state: azpy.State, last: int = 0) -> None:
        self.state, self.last = state, last

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)

    def turn(self) -> int:
        return self.state.turn

    def encode(self) -> Any:
        return self.state.observation()

    def clone(self) -> "ForTheLastToPlay":
        return ForTheLastToPlay(self.state.clone(), self.last)

    def play(self, action: int) -> None:
        self.last = self.state.turn if self.state.turn >= 0 else self.last
        self.state.play(action)

    def outcome(self) -> float:
        return float(self.state.outcome() * (1 - 2 * self.last))


@pytest.mark.parametrize("game", ["othello", "go(size=5)", "go(size=7)"])
def test_an_outcome_for_the_last_to_play_is_told_from_one_for_player_0(game: str) -> None:
    state: Any = make_game(game)
    assert signs_of(state, 200) is None
    warned = signs_of(ForTheLastToPlay(state), 200)
    assert warned is not None
    assert warned.rule == "sides"
    assert re.search(r"random games that end with .* of player 0 \(correlation [+-]0\.", warned.got)


def test_where_whoever_moves_last_wins_an_outcome_for_the_last_to_play_is_one_sided() -> None:
    rng, sound, planted = random.Random(1), Perspective(), Perspective()
    for _ in range(60):
        position, last = make_game("wall_game(variant=classic,width=4,height=4)"), 0
        while not position.is_terminal:
            last = position.turn
            position.play(rng.choice(position.legal_actions()))
        for perspective, start in ((sound, position), (planted, ForTheLastToPlay(position, last))):
            perspective.end(start.outcome())
    assert sound.warnings() == []
    assert [warning.rule for warning in planted.warnings()] == ["one-sided"]


def test_who_wins_a_line_that_was_tried_can_win() -> None:
    perspective = Perspective()
    for _ in range(100):
        perspective.end(1.0)
    assert [warning.rule for warning in perspective.warnings()] == ["one-sided"]
    perspective.end(-1.0, at_random=False)
    assert perspective.warnings() == []


def test_lines_tried_in_turn_may_all_be_won_by_one_player() -> None:
    perspective = Perspective()
    for _ in range(100):
        perspective.end(1.0, at_random=False)
    assert perspective.warnings() == []


def test_a_sound_game_of_double_turns_has_no_warning(few_lines: None) -> None:
    report = check_game("planted_games:Kalah", games=60, seconds=8)
    assert (report.failure, report.warnings) == (None, [])
    assert report.games > 0


@pytest.mark.parametrize("name", ["ForTheOneToMove", "ForTheLastToPlay", "AgainstTheLastToPlay"])
def test_whose_outcome_it_is_shows_in_kalah_too(name: str) -> None:
    warned = signs_of(getattr(planted_games, f"Kalah{name}")(), 200)
    assert warned is not None
    assert warned.rule == "sides"


def test_sound_games_show_no_such_sign() -> None:
    names = ("othello(size=6)", "wall_game", "wall_game(variant=classic)", "breakthrough", "pig")
    for game in (sound_games.Kalah(), *map(make_game, names)):
        assert signs_of(game, 200) is None


def test_the_shortest_of_two_faults_is_shown() -> None:
    failure = check_game("planted_games:TwoFaults", games=0, seconds=20).failure
    assert failure is not None
    assert failure.line == (6,)


@pytest.mark.parametrize("seed", range(4))
def test_a_game_that_is_not_the_same_when_played_again_is_found_out(seed: int) -> None:
    failure = check_game("planted_games:Moody", games=200, seconds=20, seed=seed).failure
    assert failure is not None
    assert failure.rule in {"replay", "key", "clone"}


def test_the_start_is_looked_at_in_no_time() -> None:
    report = check_game("hex(size=5)", games=0, seconds=1e-9)
    assert (report.failure, report.lines, report.positions) == (None, 1, 1)


def test_ctrl_c_in_a_game_ends_the_check_and_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(game: sound_games.Nim) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(sound_games.Nim, "key", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_game("planted_games:Nim", games=0, seconds=20)


def test_an_error_of_a_game_names_the_method_and_the_line_of_the_file() -> None:
    failure = check_game("planted_games:ForgottenCase", games=0, seconds=20).failure
    assert failure is not None
    assert re.search(r"encode\(\) raised IndexError: .* \(planted_games.py, line \d+\)", failure.got)


def test_games_of_openspiel_are_checked(capfd: pytest.CaptureFixture[str], few_lines: None) -> None:
    pytest.importorskip("pyspiel")
    report = check_game("open_spiel:tic_tac_toe", games=5, seconds=5)
    assert "".join(capfd.readouterr()) == ""  # OpenSpiel prints what it refuses
    assert report.failure is None, report.failure
    assert report.games == 5


def test_every_rule_has_a_game_that_breaks_it() -> None:
    # rust/core/src/conformance.rs has games in Rust that break rules.
    planted = {*planted_games.PLANTED.values(), *planted_games.WARNED.values()}
    assert planted | {"planes", "refusal", "symmetry", "text", "unfinished"} == set(RULES)


def line_of(name: str, **given: float) -> tuple[int, ...] | None:
    report = check_game(f"planted_games:{name}", **given)  # type: ignore[arg-type]
    assert report.failure is not None
    return report.failure.line


def test_the_line_of_play_is_the_shortest_there_is() -> None:
    assert line_of("Float64") == ()
    assert line_of("ForgottenCase") == (0,)
    assert line_of("OutcomeInPoints") == (0, 4, 8)
    assert line_of("ThirdPlayer") == (0, 4, 7)
    assert len(line_of("MaxPliesTooSmall") or ()) == 5


def test_a_mistake_that_only_random_games_reach_is_shortened(few_lines: None) -> None:
    assert line_of("DeepMistake", seconds=20) == (1,) * 10


def test_two_lines_with_one_key_are_both_shown_and_both_short(few_lines: None) -> None:
    failure = check_game("planted_games:DeepKey", seconds=20, games=50).failure
    assert failure is not None
    assert failure.rule == "key"
    assert failure.line is not None
    assert failure.other is not None
    assert len(failure.line) == len(failure.other) == 16


def test_the_command_shows_actions_by_name_and_the_board(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planted_games:MaxPliesTooSmall"]) == 1
    said = capsys.readouterr().out
    assert "after 5 plies: a1-a2, " in said
    assert "  a b c" in said
    assert "goes on after 5 plies" in said


def test_the_command_shows_a_finished_game_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tic_tac_toe", "--games", "30", "--seconds", "5"]) == 0
    said = capsys.readouterr().out.partition("The shortest random game, of ")[2].splitlines()
    plies, _, names = said[0].partition(": ")
    position = make_game("tic_tac_toe")
    for name in names.split(", "):
        assert not position.is_terminal
        position.play(next(each for each in position.legal_actions() if position.action_name(each) == name))
    assert position.is_terminal
    assert plies == f"{len(names.split(', '))} plies"
    assert [line[4:] for line in said[1:4]] == str(position).splitlines()
    assert said[4] == f"  result: {position.result_text()}"
    assert main(["pig", "--games", "1", "--seconds", "5"]) == 0  # a long one is cut
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("The shortest random game"))
    assert line.count(", ") < 45
    assert main(["tic_tac_toe", "--games", "0", "--seconds", "1"]) == 0
    assert "The shortest random game" not in capsys.readouterr().out


def test_the_command_sums_up_what_was_proved(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planted_games:Hexapawn", "--games", "20", "--seed", "3"]) == 0
    said = capsys.readouterr().out
    for text in ("keeps what a game must keep", "are all there is to see", "20 random games", "in another process"):
        assert text in said
    assert "Warning" not in said


def test_warnings_are_shown_and_are_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planted_games:OneName", "--games", "5"]) == 0
    assert "Warning: it is usual that the legal actions of a position have different names" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nope"], "unknown game"),
        (["planted_games:Nobody"], "cannot be made"),
        (["tic_tac_toe", "--games", "-1"], "games must be at least 0"),
        (["tic_tac_toe", "--seconds", "0"], "--seconds must be more than 0"),
    ],
)
def test_what_cannot_be_checked_is_one_line(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert text in capsys.readouterr().err


def test_the_same_seed_plays_the_same_games() -> None:
    one, two, other = (check_game("planted_games:Nim", games=30, seed=seed) for seed in (1, 1, 2))
    assert one.results == two.results
    assert one.plies == two.plies
    assert (one.results, one.plies) != (other.results, other.plies)


def test_a_check_ends_in_the_time_it_was_given() -> None:
    report = check_game("hex(size=13)", games=10_000, seconds=0.5)
    assert report.failure is None
    assert report.seconds < 10


def test_a_game_without_an_end_in_sight_is_a_warning() -> None:
    report = check_game("planted_games:Marathon", seconds=0.5)
    assert report.failure is None
    assert [warning.rule for warning in report.warnings] == ["unfinished"]
    assert report.games == 0


def test_a_game_that_cannot_be_made_is_no_finding() -> None:
    with pytest.raises(SettingsError):
        check_game("planted_games:Missing")


def test_what_a_player_does_not_see_is_shown_by_two_lines_and_another_program_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["planted_games:Kuhn"]) == 1
    said = capsys.readouterr().out
    for text in (
        "is broken: it must hold that encode hides nothing that search knows (hidden)",
        "action 0 wins at once in one and loses at once in the other",
        "OpenSpiel has algorithms for such games",
    ):
        assert text in said
    first, other = re.findall(r"after (\d) plies: ", said)
    assert first == other == "2"  # the cards, and a pass of player 0


def test_a_player_of_another_number_is_told_what_numbers_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planted_games:PlayersOneAndTwo"]) == 1
    said = capsys.readouterr().out
    assert "got:      2\n" in said
    assert "expected: 0 or 1 for the two players (num_players = 2), azpy.CHANCE or azpy.TERMINAL" in said
    assert "(not 1 and 2)" in said
