"""az-engine speaks GTP: games of Go with other programs, and analysis."""

import io
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy.errors import SettingsWarning, warn_once
from azpy.matches.levels import Ladder, Level
from azpy.serving.gtp import Gtp
from azpy.serving.lines import Conversation
from azpy.serving.models import open_player
from go_games import random_game
from talks import PATIENCE, GtpTalk

GO_ALONE = ["komi", "fixed_handicap", "place_free_handicap", "set_free_handicap", "loadsgf", "printsgf"]
GO_ALONE += ["final_status_list", "kgs-genmove_cleanup", "kata-get-rules", "kata-set-rules", "kata-set-rule"]


@contextmanager
def talk_with(**games: str) -> Iterator[GtpTalk]:
    """A conversation with players of these names and games."""
    models = {name: open_player("uniform:20", game, 100) for name, game in games.items()}
    talk = GtpTalk(lambda conversation: Gtp(models, conversation).run())
    try:
        yield talk
    finally:
        talk.close()


@pytest.fixture
def gtp() -> Iterator[GtpTalk]:
    with talk_with(player="go(size=7)") as talk:
        yield talk


@pytest.fixture
def othello() -> Iterator[GtpTalk]:
    with talk_with(player="othello") as talk:
        yield talk


def visits(answer: str) -> int:
    """Of all moves in the last report of an answer."""
    lines = [line for line in answer.splitlines() if line.startswith("info move")]
    return sum(int(number) for number in re.findall(r"visits (\d+)", lines[-1]))


def test_every_required_command_is_there(gtp: GtpTalk) -> None:
    commands = gtp.ask("list_commands").removeprefix("= ").splitlines()
    for command in ("protocol_version", "name", "version", "known_command", "list_commands", "quit", "boardsize"):
        assert command in commands
        assert gtp.ask(f"known_command {command}") == "= true"
    assert gtp.ask("known_command nonsense") == "= false"
    assert gtp.ask("17 protocol_version") == "=17 2"
    assert gtp.ask("  name   # a comment").startswith("= azpy")
    assert gtp.ask("18 nonsense") == "?18 unknown command"


def test_a_game_goes_on_after_two_passes_and_two_stones_in_a_row(gtp: GtpTalk) -> None:
    for line in ("play b D4", "play b C3", "play w pass", "play b pass", "play w A1", "play w A2"):
        assert gtp.ask(line) == "=", line
    board = [line.split()[1:] for line in gtp.ask("showboard").splitlines()[2:]]
    assert (board[3][3], board[4][2], board[6][0], board[5][0]) == ("x", "x", "o", "o")
    assert gtp.ask("genmove b").startswith("= ")


def test_undo_leads_back_to_the_past_that_a_set_up_position_lost(gtp: GtpTalk) -> None:
    assert gtp.ask("play b D4") == "="
    game = gtp.ask("printsgf")
    for vertex in ("play b C3", "genmove b", "kata-genmove_analyze b"):
        assert gtp.ask(vertex).startswith("=")
        assert "AB[" in gtp.ask("printsgf")
        assert gtp.ask("undo") == "="
        assert gtp.ask("printsgf") == game
    assert gtp.ask("reg_genmove b").startswith("= ")
    assert gtp.ask("printsgf") == game


def test_sizes_komi_and_handicap(gtp: GtpTalk, tmp_path: Path) -> None:
    assert gtp.ask("boardsize 9") == "? unacceptable size"
    assert gtp.ask("boardsize 7") == "="
    assert gtp.ask("komi 0.5") == "="
    assert gtp.ask("komi 0.3").startswith("? unacceptable komi")
    assert gtp.ask("komi x").startswith("? syntax error")
    assert gtp.ask("fixed_handicap 1").startswith("? invalid number of stones")
    assert gtp.ask("fixed_handicap 5").startswith("? invalid number of stones")
    assert gtp.ask("fixed_handicap 4") == "= C3 E5 C5 E3"
    assert gtp.ask("undo") == "? cannot undo", "a handicap is no move"
    assert gtp.ask("fixed_handicap 2") == "? board not empty"
    text = gtp.ask("printsgf")
    assert "KM[0.5]" in text
    assert "PL[W]" in text
    assert gtp.ask("genmove w").startswith("= ")
    path = tmp_path / "game.sgf"
    path.write_text(text.removeprefix("= "))
    assert gtp.ask("clear_board") == "="
    assert gtp.ask("set_free_handicap A1 A1").startswith("? bad vertex list")
    assert gtp.ask(f"loadsgf {path}") == "="
    assert gtp.ask("final_score") == "= B+48.5"
    assert gtp.ask(f"loadsgf {tmp_path}/none").startswith("? ")


def test_a_free_handicap_has_as_many_stones_as_are_asked_for(gtp: GtpTalk) -> None:
    for count in (2, 9, 10, 25, 48):
        assert gtp.ask("clear_board") == "="
        points = gtp.ask(f"place_free_handicap {count}").removeprefix("= ").split()
        assert len(set(points)) == len(points) == count
        assert gtp.ask("showboard").count(" x") == count
        assert gtp.ask("undo") == "? cannot undo"
        assert gtp.ask("genmove w").startswith("= ")
    assert gtp.ask("clear_board") == "="
    for wrong in (1, 49):
        assert gtp.ask(f"place_free_handicap {wrong}").startswith("? invalid number of stones")
    assert gtp.ask("set_free_handicap A1 B7 G1") == "= A1 B7 G1"
    assert gtp.ask("place_free_handicap 2") == "? board not empty"


def test_a_new_komi_keeps_the_game_and_counts_for_earlier_positions_too(gtp: GtpTalk) -> None:
    assert gtp.ask("play b D4") == "="
    assert gtp.ask("play w C3") == "="
    assert gtp.ask("komi 0.5") == "="
    assert gtp.ask("undo") == "="
    assert gtp.ask("final_score") == "= B+48.5"
    assert gtp.ask("undo") == "="
    assert gtp.ask("final_score") == "= W+0.5"


def line_to_a_repetition() -> list[str]:
    """Moves of which superko forbids the last, and the simple rule none."""
    for seed in range(100):
        moves, strict = list[str](), azpy.make_game("go", size=9)
        for state, action in random_game(azpy.make_game("go", size=9, superko=0), seed, kos=True):
            if action < 0 or strict.is_terminal:
                break
            moves.append(f"play {'bw'[state.turn]} {state.action_name(action)}")
            if action not in strict.legal_actions():
                return moves
            strict.play(action)
    raise AssertionError("no board came back")


def test_the_ko_rule_is_the_players() -> None:
    moves = line_to_a_repetition()
    for superko, last in ((0, "="), (1, "? illegal move")):
        with talk_with(player=f"go(size=9,superko={superko})") as talk:
            assert [talk.ask(move) for move in moves] == ["="] * (len(moves) - 1) + [last]


def test_a_loaded_game_is_the_files(gtp: GtpTalk, tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    path.write_text("(;GM[1]SZ[7]KM[2]HA[2]AB[ba][fc]PL[W]C[KM[9\\]];W[aa];B[ab];W[];B[gg])")
    assert gtp.ask(f"loadsgf {path} 2") == "="
    assert gtp.ask("final_score") == "= W+1", "two stones against one, and the komi is 2"
    assert gtp.ask(f"loadsgf {path}") == "="
    board = gtp.ask("showboard")
    assert "7 . x" in board, "the stone in the corner is taken"
    assert board.splitlines()[-1].split() == ["1", *6 * ".", "x"]
    for _ in range(4):
        assert gtp.ask("undo") == "="
    assert gtp.ask("undo") == "? cannot undo", "what is set up is no move"
    assert gtp.ask("showboard").count(" x") == 2


def test_a_file_that_cannot_be_loaded_changes_nothing(gtp: GtpTalk, tmp_path: Path) -> None:
    assert gtp.ask("play b D4") == "="
    (tmp_path / "other.sgf").write_text("(;GM[1]SZ[9]KM[0.5];B[aa])")
    (tmp_path / "komi.sgf").write_text("(;GM[1]SZ[7]KM[0.3];B[aa])")
    (tmp_path / "illegal.sgf").write_text("(;GM[1]SZ[7]KM[3.5];B[aa];W[aa])")
    (tmp_path / "long.sgf").write_bytes(b" " * (1 << 21))
    for name in ("other.sgf", "komi.sgf", "illegal.sgf", "long.sgf", "none.sgf", "", "a\0b"):
        assert gtp.ask(f"loadsgf {tmp_path}/{name}").startswith("? cannot load file: "), name
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", "/proc/kmsg", tmp_path / "pipe", tmp_path):  # their end may never come
        assert gtp.ask(f"loadsgf {path}").startswith("? cannot load file: "), path
    for words in ("", "a b c", f"{tmp_path}/komi.sgf 0", f"{tmp_path}/komi.sgf x", f"{tmp_path}/komi.sgf -1"):
        assert gtp.ask(f"loadsgf {words}").startswith("? syntax error"), words
    assert gtp.ask(f"printsgf {tmp_path}/none/game.sgf").startswith("? cannot save file: ")
    assert gtp.ask("final_score") == "= B+41.5", "the komi is as it was"
    assert gtp.ask("undo") == "="
    assert gtp.ask("undo") == "? cannot undo"


# Othello --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["go(size=5)", "othello"])
def test_the_command_plays_both_games(game: str) -> None:
    command = [sys.executable, "-c", "import sys; from azpy.cli.engine import main; sys.exit(main())", "uniform:9"]
    command += ["--game", game, "--protocol", "gtp", "--model", "weak=uniform:2"]
    lines = "list_games\n1 genmove b\nkata-set-param model weak\n2 genmove w\nkata-get-param maxVisits\nquit\n"
    run = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=PATIENCE)
    expected = rf"= {game[:2]}.*\n\n=1 [A-H][1-8]\n\n=\n\n=2 [A-H][1-8]\n\n= 2\n\n=\n\n"
    assert re.fullmatch(expected, run.stdout, re.I), run.stdout


def test_othello_has_no_command_of_go(othello: GtpTalk, gtp: GtpTalk) -> None:
    both = set(othello.ask("list_commands").removeprefix("= ").splitlines())
    assert both | set(GO_ALONE) == set(gtp.ask("list_commands").removeprefix("= ").splitlines())
    for command in GO_ALONE:
        assert othello.ask(f"known_command {command}") == "= false"
        assert othello.ask(f"{command} 2") == "? unknown command"
    assert othello.ask("list_games") == "= Othello"
    assert othello.ask("set_game Othello") == "="
    assert othello.ask("set_game Go") == "? unsupported game: this player plays Othello"
    assert gtp.ask("list_games") == "= Go"
    assert gtp.ask("set_game Othello") == "? unsupported game: this player plays Go"
    assert gtp.ask("set_game").startswith("? syntax error")


def test_the_board_of_othello_is_that_of_the_network() -> None:
    with talk_with(player="othello(size=6)") as talk:
        assert talk.ask("boardsize 8") == "? unacceptable size"
        assert talk.ask("boardsize 6") == "="
        assert talk.ask("play b c2") == "="
        assert talk.ask("play w G1") == "? illegal move"


def test_out_of_turn_in_othello(othello: GtpTalk) -> None:
    assert othello.ask("play w d3") == "? illegal move"
    assert othello.ask("play b pass") == "? illegal move", "Black has moves"
    assert othello.ask("play w pass") == "? illegal move", "it is not White's turn"
    assert othello.ask("genmove w") == "= pass"
    assert othello.ask("undo") == "? cannot undo", "the pass changed nothing"
    assert othello.ask("play b D3") == "="
    assert othello.ask("genmove b") == "= pass"
    assert othello.ask("lz-analyze b") == "? cannot analyze: this color has no move"
    assert othello.ask("lz-genmove_analyze b") == "=\nplay pass"
    assert re.fullmatch("= [CE][35]", othello.ask("reg_genmove w"))
    assert othello.ask("undo") == "="
    assert othello.ask("undo") == "? cannot undo"


def test_passes_of_othello_are_implied_and_may_be_told(othello: GtpTalk) -> None:
    rng, passes = random.Random(2), 0
    state, told = azpy.make_game("othello"), False
    while not state.is_terminal:
        action = rng.choice(state.legal_actions())
        name, color = state.action_name(action), "bw"[state.turn]
        state.play(action)
        if name == "pass":
            passes += 1
            told = not told
            board = othello.ask("showboard")
            assert othello.ask(f"reg_genmove {color}") == "= pass"
            assert othello.ask(f"play {color} pass") == "="
            assert othello.ask("showboard") == board
            continue
        assert othello.ask("final_score") == "? cannot score"
        assert othello.ask(f"play {color} {name}") == "="
    assert passes
    assert othello.ask("final_score") == "= B+6"
    assert othello.ask("showboard").startswith("= Game ended")
    for color in "bw":
        assert othello.ask(f"genmove {color}") == "= pass"
        assert othello.ask(f"play {color} pass") == "="


def test_empty_cells_of_othello_are_the_winners(othello: GtpTalk) -> None:
    # The shortest game that ends with no disc of White's: nine discs.
    for index, name in enumerate(("e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5", "c5")):
        assert othello.ask(f"play {'bw'[index % 2]} {name}") == "=", name
    assert othello.ask("final_score") == "= B+64"


def test_an_analysis_of_othello_names_cells(othello: GtpTalk) -> None:
    othello.say("kata-analyze b 5")
    assert othello.next() == "="
    assert set(re.findall(r"move (\S+)", othello.hear("info move"))) <= {"D3", "C4", "F5", "E6"}
    othello.say("lz-analyze b interval 5 allow b d3 1")
    assert othello.hear("=") == "="
    assert set(re.findall(r"move (\S+)", othello.hear("info move"))) == {"D3"}
    othello.say("kata-genmove_analyze b")
    assert othello.hear("=") == "="
    assert othello.hear("play ") in {"play D3", "play C4", "play F5", "play E6"}
    assert othello.next() == ""
    assert othello.ask("undo") == "="


# Parameters -----------------------------------------------------------------------------------------------------------


def test_parameters_say_how_a_move_is_chosen(gtp: GtpTalk) -> None:
    assert gtp.ask("kata-list-params") == "= maxVisits chosenMoveTemperature level"
    assert gtp.ask("kata-get-param maxVisits") == "= 20"
    assert gtp.ask("kata-get-param chosenMoveTemperature") == "= 0"
    assert visits(gtp.ask("kata-genmove_analyze b")) == 20
    assert gtp.ask("kata-set-param maxVisits 70") == "="
    assert gtp.ask("kata-get-param maxVisits") == "= 70"
    assert gtp.ask("clear_board") == "="
    assert gtp.ask("time_settings 1000 0 0") == "="
    assert visits(gtp.ask("kata-genmove_analyze b")) == 70, "with a clock too; and a new game has a new tree"
    assert gtp.ask("clear_board") == "="
    best = gtp.ask("reg_genmove b")
    assert gtp.ask("kata-set-param chosenMoveTemperature 10") == "="
    assert gtp.ask("kata-get-param chosenMoveTemperature") == "= 10"
    found = set[str]()
    while len(found) < 5:  # of 50 moves that are played about as often
        found.add(gtp.ask("genmove b"))
        assert gtp.ask("undo") == "="
        assert gtp.ask("reg_genmove b") == best, "no draw in a regression test"
    assert gtp.ask("kata-set-param chosenMoveTemperature 0") == "="
    for _ in range(5):
        assert gtp.ask("genmove b") == best
        assert gtp.ask("undo") == "="


def test_a_level_is_simulations_and_a_temperature(gtp: GtpTalk) -> None:
    assert gtp.ask("kata-get-param level") == "= none"
    assert gtp.ask("kata-set-param level full strength").startswith("= These levels are not calibrated")
    assert gtp.ask("kata-get-param level") == "= full strength"
    assert gtp.ask("kata-get-param maxVisits") == "= 20"
    assert gtp.ask("kata-set-param level Beginner").startswith("= ")
    assert gtp.ask("kata-get-param maxVisits") == "= 1"
    assert visits(gtp.ask("kata-genmove_analyze b")) == 1
    assert visits(gtp.ask("kata-genmove_analyze w")) == 1
    assert gtp.ask("kata-set-param level weak").startswith("? level: expected none, beginner, ")
    assert gtp.ask("kata-set-param maxVisits 30") == "="
    assert gtp.ask("kata-get-param level") == "= none"
    assert gtp.ask("kata-get-param maxVisits") == "= 30"


def test_the_temperature_of_moves_is_that_of_the_level() -> None:
    ladder = Ladder((Level(1, 3.0, 0.0), Level(64, 0.0, 600.0)), "00ff", 7)
    served = replace(open_player("uniform:20", "go(size=5)", 100), ladder=ladder)
    gtp = GtpTalk(lambda conversation: Gtp({"player": served}, conversation).run())
    for level, temperature in (("none", 0), ("beginner", 3), ("casual", 2)):
        assert gtp.ask(f"kata-set-param level {level}") == "="
        assert gtp.ask("kata-get-param chosenMoveTemperature") == f"= {temperature}"
    gtp.close()


def test_bad_parameters_change_nothing(gtp: GtpTalk) -> None:
    for words in ("maxVisits 0", "maxVisits -1", "maxVisits 1e3", "maxVisits 9999999999", "maxVisits 1 2"):
        assert gtp.ask(f"kata-set-param {words}").startswith("? maxVisits: expected"), words
    for value in ("-1", "nan", "inf", "11", "1e1", "", "x"):
        assert gtp.ask(f"kata-set-param chosenMoveTemperature {value}").startswith("? "), value
    for words in ("", "maxVisits", "model player", "numSearchThreads 4"):
        assert gtp.ask(f"kata-set-param {words}").startswith("? "), words
    for words in ("", "model", "nothing", "maxVisits maxVisits"):
        assert gtp.ask(f"kata-get-param {words}").startswith("? "), words
    assert gtp.ask("kata-get-param maxVisits") == "= 20"
    assert gtp.ask("kata-get-param chosenMoveTemperature") == "= 0"


def test_another_player_goes_on_with_a_tree_of_its_own() -> None:
    games = {"first": "go(size=7)", "second one": "go(size=7,komi=0.5)"}
    with talk_with(**games, small="go(size=5)", simple="go(size=7,superko=0)", cells="othello") as talk:
        assert talk.ask("kata-list-params") == "= maxVisits chosenMoveTemperature level model"
        assert talk.ask("kata-get-param model") == "= first"
        assert talk.ask("play b D4") == "="
        assert talk.ask("kata-set-param maxVisits 300") == "="
        assert talk.ask("reg_genmove w").startswith("= ")
        for name in ("small", "simple", "cells"):
            assert re.match(f"[?] model: {name} plays .*, and not the present game", change(talk, name))
        assert change(talk, "third").startswith("? model: expected first, second one, small")
        assert talk.ask("kata-set-param maxVisits 10") == "="
        assert visits(talk.ask("kata-genmove_analyze w")) >= 300, "the tree is kept"
        assert talk.ask("undo") == "="
        assert change(talk, "second one") == "="
        assert talk.ask("kata-get-param model") == "= second one"
        assert visits(talk.ask("kata-genmove_analyze w")) == 10, "the tree is new"
        assert talk.ask("undo") == "="
        assert talk.ask("final_score") == "= B+41.5", "the game and its komi stay"


def change(talk: GtpTalk, model: str) -> str:
    return talk.ask(f"kata-set-param model {model}")


def test_each_player_has_its_own_simulations_and_temperature() -> None:
    served = open_player("uniform:20", "othello", 100)
    models = {"strong": served, "weak": replace(served, simulations=3, temperature=0.5)}
    talk = GtpTalk(lambda conversation: Gtp(models, conversation).run())
    try:
        assert change(talk, "weak") == "="
        assert talk.ask("kata-get-param maxVisits") == "= 3"
        assert talk.ask("kata-get-param chosenMoveTemperature") == "= 0.5"
        assert visits(talk.ask("kata-genmove_analyze b")) == 3
        assert talk.ask("kata-set-param chosenMoveTemperature 2") == "="
        assert change(talk, "strong") == "="
        assert talk.ask("kata-get-param maxVisits") == "= 20"
        assert talk.ask("kata-get-param chosenMoveTemperature") == "= 2"
    finally:
        talk.close()


# Faults ---------------------------------------------------------------------------------------------------------------


def test_a_network_that_fails_costs_its_command_alone() -> None:
    class Faulty:
        """A network that fails as long as it is told to."""

        fails = True

        def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            if self.fails:
                raise RuntimeError("out of memory\nand more")
            return np.zeros((len(observations), 65), np.float32), np.zeros(len(observations), np.float32)

    faulty = Faulty()
    served = replace(open_player("uniform:20", "othello", 100), evaluator=faulty)
    talk = GtpTalk(lambda conversation: Gtp({"player": served}, conversation).run())
    try:
        assert talk.ask("genmove b") == "? out of memory and more"
        assert talk.ask("lz-genmove_analyze b") == "=\nerror: out of memory and more"
        assert talk.ask("undo") == "? cannot undo"
        talk.say("kata-analyze b", "")
        assert [talk.next() for _ in range(3)] == ["=", "error: out of memory and more", ""]
        faulty.fails = False
        assert talk.ask("genmove b").startswith("= ")
    finally:
        talk.close()


BAD = [
    ("nonsense", "unknown command"),
    ("PLAY b D4", "unknown command"),
    ("play", "syntax error"),
    ("play b", "syntax error"),
    ("play b A1 A2", "syntax error"),
    ("play x A1", "syntax error"),
    ("play b I1", "illegal move"),
    ("play b A0", "illegal move"),
    ("play b A8", "illegal move"),
    ("play b A99999999999999999999", "illegal move"),
    ("play b resign", "illegal move"),
    ("play b \u0661", "illegal move"),
    ("genmove", "syntax error"),
    ("genmove b w", "syntax error"),
    ("genmove \u2022", "syntax error"),
    ("boardsize", "syntax error"),
    ("boardsize -7", "syntax error"),
    ("boardsize 7.0", "syntax error"),
    ("boardsize \u0667", "syntax error"),
    ("boardsize 26", "unacceptable size"),
    ("time_settings", "syntax error"),
    ("time_settings 1 2", "syntax error"),
    ("time_settings nan 0 0", "syntax error"),
    ("time_settings 1e400 0 0", "syntax error"),
    ("time_left b 1", "syntax error"),
    ("time_left x 1 1", "syntax error"),
    ("lz-analyze b nonsense", "syntax error"),
    ("kata-analyze allow b", "syntax error"),
    ("kata-analyze allow b C3 x", "syntax error: expected a number of moves, got x"),
    ("kata-analyze avoid b A1,Z9 1", "syntax error: Z9 is no vertex of this board"),
    ("kata-genmove_analyze b ownership 1", "syntax error: ownership"),
    ("kata-analyze minmoves x", "syntax error: minmoves"),
    ("kata-analyze movesOwnership true", "syntax error: movesOwnership"),
    ("lz-genmove_analyze b interval x", "syntax error"),
    ("set_game", "syntax error"),
]
BAD_IN_GO = [
    ("komi", "syntax error"),
    ("komi nan", "syntax error"),
    ("komi 1e9", "syntax error"),
    ("komi 9999", "unacceptable komi"),
    ("fixed_handicap", "syntax error"),
    ("fixed_handicap 2", "board not empty"),
    ("place_free_handicap x", "syntax error"),
    ("set_free_handicap", "bad vertex list"),
    ("set_free_handicap A1", "bad vertex list"),
    ("set_free_handicap A1 pass", "bad vertex list"),
    ("set_free_handicap A1 A8", "bad vertex list"),
    ("set_free_handicap A1 A2", "board not empty"),
    ("printsgf a b", "syntax error"),
]


@pytest.mark.parametrize("game", ["go(size=7)", "othello"])
def test_a_command_that_fails_changes_nothing(game: str) -> None:
    with talk_with(player=game) as talk:
        first = talk.ask("genmove b").removeprefix("= ")
        board = talk.ask("showboard")
        for line, problem in [*BAD, *(BAD_IN_GO if game.startswith("go") else [])]:
            if game == "othello" and line == "play b A8":
                continue  # a cell of the board
            assert talk.ask(f"7 {line}").startswith(f"?7 {problem}"), line
            assert talk.ask("showboard") == board, line
        assert talk.ask(f"play w {first}") == "? illegal move"
        assert talk.ask("undo") == "="
        assert talk.ask("undo") == "? cannot undo"
        assert talk.ask("genmove b").startswith("= "), "no clock was set"


def test_the_first_move_of_an_analysis_is_the_one_that_is_played() -> None:
    served, less_visited = open_player("mcts:20?lcb=2", "othello", 100), 0
    gtp = GtpTalk(lambda conversation: Gtp({"player": served}, conversation).run())
    for color in "bw" * 6:
        said = gtp.ask(f"kata-genmove_analyze {color}")
        order = re.findall(r"info move (\S+) visits (\d+) .*?order (\d+)", said.splitlines()[-2])
        visits = [int(count) for _, count, _ in order]
        assert said.endswith(f"play {order[0][0]}")
        assert [int(place) for *_, place in order] == list(range(len(order)))
        assert len({vertex for vertex, *_ in order}) == len(order)
        assert visits[1:] == sorted(visits[1:], reverse=True)
        less_visited += visits[0] < max(visits)
    gtp.close()
    assert less_visited


def test_an_analysis_goes_on_until_the_next_line(gtp: GtpTalk) -> None:
    gtp.say("lz-analyze b 5")
    gtp.hear("=")
    line = gtp.hear("info move")
    found = re.match(r"info move (\S+) visits (\d+) winrate (\d+) prior (\d+) lcb (\d+) order 0 pv \1", line)
    assert found is not None, line
    gtp.say("kata-analyze interval 5 avoid b A1,A2,A3,A4,A5,A6,A7 1")
    gtp.hear("=")
    assert not re.search(r"move A\d", gtp.hear("info move"))
    gtp.say("", "kata-analyze allow b C3,C4 1 interval 5")
    gtp.hear("=")
    assert set(re.findall(r"info move (\S+)", gtp.hear("info move"))) <= {"C3", "C4"}
    gtp.say("lz-genmove_analyze b")
    gtp.hear("=")
    vertex = gtp.hear("play ").removeprefix("play ")
    assert gtp.next() == ""
    assert gtp.ask(f"play w {vertex}") == "? illegal move", "it was played"


def test_an_analysis_of_the_other_color_is_answered_once(gtp: GtpTalk) -> None:
    # White surrounds C3: black may not play there, white may.
    for vertex in ("B3", "D3", "C2", "C4"):
        assert gtp.ask(f"play w {vertex}") == "="
    assert gtp.ask("play b A1") == "="
    no_move = "?3 allow, avoid: no legal move is left"
    for command in ("kata-analyze", "lz-genmove_analyze"):
        for restriction, begins in (("allow b C3 1", no_move), ("allow w C3 1", "=3"), ("avoid b C3 1", "=3")):
            gtp.say(f"3 {command} b 5 {restriction}", "4 name")
            answers = list[str]()
            while not answers or not answers[-1].startswith("=4"):
                answers.append(gtp.next())
            assert [line for line in answers if line.startswith(("=", "?"))] == [begins, answers[-1]]
            gtp.next()


@pytest.mark.parametrize("restriction", ["allow b C3 1", "allow b C3,D4 1 avoid b D4 1"])
def test_a_generated_move_is_among_the_allowed_ones(restriction: str, gtp: GtpTalk) -> None:
    gtp.say(f"kata-genmove_analyze b 5 {restriction}")
    gtp.hear("=")
    assert gtp.hear("play ") == "play C3"


def test_each_option_of_an_analysis_has_its_effect(gtp: GtpTalk) -> None:
    def told(command: str) -> str:
        gtp.say(command)
        gtp.hear("=")
        return gtp.hear("info move")

    for name in ("kata-genmove_analyze", "lz-genmove_analyze", "genmove_analyze"):  # 20 visits
        line = told(f"{name} b 99999 minmoves 40 rootInfo true")
        assert re.findall("order ([0-9]+)", line) == [str(order) for order in range(40)]
        assert re.findall("visits ([0-9]+)", line)[39] == "0"
        assert ("rootInfo visits" in line) == name.startswith("kata")
        gtp.hear("play ")
        assert gtp.next() == ""
        assert gtp.ask("undo") == "="
        assert told(f"{name} b 99999 maxmoves 2").count("info move") == 2
        gtp.hear("play ")
        assert gtp.next() == ""
        assert gtp.ask("clear_board") == "="
    for name in ("kata-analyze", "lz-analyze", "analyze"):
        found = re.findall(r"move (\S+)", told(f"{name} b 5 allow b A1,A2,A3 1 avoid b A2 1 minmoves 9"))
        assert set(found) == {"A1", "A3"}


def test_a_generated_move_is_reported_at_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Any]()
    monkeypatch.setattr(Gtp, "_search", lambda *_, **options: asked.append(options["report_every"]))
    gtp = GtpTalk(lambda conversation: Gtp({"player": open_player("uniform:9", "go(size=7)", 9)}, conversation).run())
    gtp.ask("kata-genmove_analyze b interval 25")
    gtp.ask("lz-genmove_analyze b 300")
    gtp.close()
    assert asked == [0.25, 3.0]


@pytest.mark.parametrize("option", ["ownership true", "pvVisits true", "allow b C3 5", "avoid w C3 5"])
def test_what_has_no_effect_in_an_analysis_is_warned_of(option: str) -> None:
    warn_once.cache_clear()
    said = f"kata-analyze {option}\nkata-analyze {option}\nquit\n".encode()
    with pytest.warns(SettingsWarning, match="no effect|first move of an analysis alone") as warned:
        Gtp({"player": open_player("uniform:9", "go(size=7)", 9)}, Conversation(io.BytesIO(said), io.StringIO())).run()
    assert len(warned) == 1


def test_a_search_that_visits_nothing_gives_a_move(gtp: GtpTalk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.serving.gtp.Times.seconds", lambda *_: 1e-9)
    gtp.say("7 lz-genmove_analyze b 5", "8 name")
    answer = [gtp.next() for _ in range(3)]
    assert answer[0] == "=7"
    assert answer[1].startswith("play ")
    assert answer[2] == ""
    gtp.hear("=8")


def test_moves_of_the_other_color_may_be_avoided(gtp: GtpTalk) -> None:
    gtp.say("kata-genmove_analyze b 5 allow w C3 1")
    gtp.hear("=")
    assert len(re.findall(r"info move (\S+)", gtp.hear("info move"))) > 1


def test_trees_and_undo_keep_to_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.serving.request.TREES_MB", 4)
    ended, protocols = list[str](), list[Gtp]()

    class Watched(Gtp):
        def _think(self, *given: Any, **options: Any) -> Any:
            answer = super()._think(*given, **options)
            ended.append(answer.result.stop)
            return answer

    def run(conversation: Conversation) -> None:
        protocols.append(Watched({"player": open_player("uniform:10000000", "go(size=7)", 100)}, conversation))
        protocols[0].run()

    gtp = GtpTalk(run)
    assert gtp.ask("genmove b").startswith("= ")
    assert ended == ["memory"]
    gtp.say("clear_board", *["play b pass"] * 1100, *["undo"] * 1000, "undo", "5 name")
    gtp.hear("=5")
    assert not protocols[0]._board._past
    gtp.close()
