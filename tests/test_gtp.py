"""az-engine speaks GTP: games of Go with other programs, and analysis."""

import dataclasses
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.serving.gtp import Gtp
from azpy.serving.lines import LONGEST_LINE, Conversation
from azpy.serving.models import open_player
from talks import PATIENCE, Talk


class Gui(Talk):
    """A program that asks one command after the other."""

    def ask(self, command: str) -> str:
        """The whole answer to a command, `=` or `?` included."""
        self.say(command)
        lines = [self.next()]
        while line := self.next():
            lines.append(line)
        return "\n".join(lines)

    def next(self) -> str:
        with self.arrived:
            assert self.arrived.wait_for(lambda: bool(self.heard), PATIENCE), "nothing came"
            return self.heard.pop(0)


@pytest.fixture
def gtp() -> Iterator[Gui]:
    served = open_player("uniform:20", "go(size=7)", 100)
    gui = Gui(lambda conversation: Gtp({"player": served}, conversation).run())
    yield gui
    gui.close()


def test_every_required_command_is_there(gtp: Gui) -> None:
    commands = gtp.ask("list_commands").removeprefix("= ").splitlines()
    for command in ("protocol_version", "name", "version", "known_command", "list_commands", "quit", "boardsize"):
        assert command in commands
        assert gtp.ask(f"known_command {command}") == "= true"
    assert gtp.ask("known_command nonsense") == "= false"
    assert gtp.ask("17 protocol_version") == "=17 2"
    assert gtp.ask("  name   # a comment").startswith("= azpy")
    assert gtp.ask("18 nonsense") == "?18 unknown command"


def test_whole_games_are_legal_and_their_score_is_ours(gtp: Gui) -> None:
    rng = random.Random(1)
    for game in range(3):
        assert gtp.ask("clear_board") == "="
        state = azpy.make_game("go", size=7)
        while not state.is_terminal:
            legal = {state.action_name(action): action for action in state.legal_actions()}
            color = "bw"[state.turn]
            if state.turn == game % 2:
                vertex = gtp.ask(f"genmove {color}").removeprefix("= ")
            else:
                vertex = rng.choice(sorted(legal))
                assert gtp.ask(f"play {color} {vertex.lower()}") == "="
            state.play(legal[vertex])
        found = re.search(r"RE\[(.*?)\]", state.to_text())
        assert found is not None
        assert gtp.ask("final_score") == f"= {found[1]}"


def test_undo_and_illegal_moves(gtp: Gui) -> None:
    assert gtp.ask("play b D4") == "="
    assert gtp.ask("play w D4") == "? illegal move"
    assert gtp.ask("play w Z9") == "? illegal move"
    assert gtp.ask("play white") == "? syntax error: expected a color and a vertex"
    assert gtp.ask("play green D4") == "? syntax error: expected a color"
    before = gtp.ask("showboard")
    assert gtp.ask("genmove w").startswith("= ")
    assert gtp.ask("undo") == "="
    assert gtp.ask("showboard") == before
    assert gtp.ask("undo") == "="
    assert gtp.ask("undo") == "? cannot undo"


def test_a_game_goes_on_after_two_passes_and_two_stones_in_a_row(gtp: Gui) -> None:
    for line in ("play b D4", "play b C3", "play w pass", "play b pass", "play w A1", "play w A2"):
        assert gtp.ask(line) == "=", line
    board = [line.split()[1:] for line in gtp.ask("showboard").splitlines()[2:]]
    assert (board[3][3], board[4][2], board[6][0], board[5][0]) == ("x", "x", "o", "o")
    assert gtp.ask("genmove b").startswith("= ")


def test_sizes_komi_and_handicap(gtp: Gui, tmp_path: Path) -> None:
    assert gtp.ask("boardsize 9") == "? unacceptable size"
    assert gtp.ask("boardsize 7") == "="
    assert gtp.ask("komi 0.5") == "="
    assert gtp.ask("komi 0.3").startswith("? unacceptable komi")
    assert gtp.ask("komi x").startswith("? syntax error")
    assert gtp.ask("fixed_handicap 1").startswith("? invalid number of stones")
    assert gtp.ask("fixed_handicap 5") == "= C5 E3 E5 C3 D4"
    assert gtp.ask("fixed_handicap 2") == "? board not empty"
    text = gtp.ask("printsgf")
    assert "KM[0.5]" in text
    assert "PL[W]" in text
    assert gtp.ask("genmove w").startswith("= ")
    path = tmp_path / "game.sgf"
    path.write_text(text.removeprefix("= "))
    assert gtp.ask("clear_board") == "="
    assert gtp.ask("set_free_handicap A1 A1").startswith("? invalid vertex list")
    assert gtp.ask(f"loadsgf {path}") == "="
    assert gtp.ask("final_score") == "= B+48.5"
    assert gtp.ask(f"loadsgf {tmp_path}/none").startswith("? ")


def test_an_analysis_goes_on_until_the_next_line(gtp: Gui) -> None:
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


def test_an_analysis_of_the_other_color_is_answered_once(gtp: Gui) -> None:
    # White surrounds C3: black may not play there, white may.
    for vertex in ("B3", "D3", "C2", "C4"):
        assert gtp.ask(f"play w {vertex}") == "="
    assert gtp.ask("play b A1") == "="
    for command in ("kata-analyze b 5 allow b C3 9", "lz-genmove_analyze b 5 allow b C3 9"):
        gtp.say(f"3 {command}", "4 name")
        answers = list[str]()
        while not answers or not answers[-1].startswith("=4"):
            answers.append(gtp.next())
        assert [line for line in answers if line.startswith(("=", "?"))] == ["=3", answers[-1]]
        gtp.next()


def test_trees_and_undo_keep_to_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.serving.gtp.TREES_MB", 4)
    ended, protocols = list[str](), list[Gtp]()

    class Watched(Gtp):
        def _search(self, *given: Any) -> Any:
            result = super()._search(*given)
            ended.append(result.stop)
            return result

    def run(conversation: Conversation) -> None:
        protocols.append(Watched({"player": open_player("uniform:10000000", "go(size=7)", 100)}, conversation))
        protocols[0].run()

    gtp = Gui(run)
    assert gtp.ask("genmove b").startswith("= ")
    assert ended == ["memory"]
    gtp.say("clear_board", *["play b pass"] * 1100, *["undo"] * 1000, "undo", "5 name")
    gtp.hear("=5")
    assert not protocols[0]._past
    gtp.close()


def test_an_exception_of_the_network_ends_no_conversation() -> None:
    class Odd(Exception):  # noqa: N818
        pass

    class Fails:
        def evaluate_batch(self, observations: object) -> object:
            raise Odd

    served = dataclasses.replace(open_player("uniform:9", "go(size=7)", 100), evaluator=Fails())
    gtp = Gui(lambda conversation: Gtp({"player": served}, conversation).run())
    assert gtp.ask("genmove b") == "? Odd"
    assert gtp.ask("kata-genmove_analyze b") == "=\ninfo string error: Odd"
    gtp.say("3 kata-analyze b", "", "4 undo")
    assert gtp.hear("=3") == "=3"
    assert gtp.hear("?4") == "?4 cannot undo"
    gtp.close()


def test_only_files_that_end_are_loaded(gtp: Gui, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long.sgf").write_bytes(b"(;GM[1]SZ[7])" + b" " * (4 << 20))
    for path in ("/dev/zero", "/proc/kmsg", tmp_path / "pipe", tmp_path, tmp_path / "long.sgf", tmp_path / "none"):
        assert gtp.ask(f"loadsgf {path}").startswith("? cannot load file"), path


def test_time_is_kept(gtp: Gui) -> None:
    assert gtp.ask("time_settings 1 0 0") == "="
    assert gtp.ask("time_left b 0 0") == "="
    assert gtp.ask("genmove b").startswith("= ")
    assert gtp.ask("time_settings 0 1 20") == "="
    assert gtp.ask("genmove w").startswith("= ")
    assert gtp.ask("time_left b x 0").startswith("? syntax error")
    assert gtp.ask("time_settings 0 1 0") == "=", "no limit"
    assert gtp.ask("genmove b").startswith("= ")


@pytest.mark.parametrize("seed", range(3))
def test_random_lines_never_end_the_conversation(gtp: Gui, seed: int) -> None:
    rng = random.Random(seed)
    words = ["play", "genmove", "b", "w", "D4", "pass", "undo", "komi", "-3", "7.5", "boardsize", "lz-analyze", "1"]
    words += ["fixed_handicap", "3", "\x07", "é", "#", "loadsgf", "/", "time_left", "clear_board", "nan", "9" * 40]
    for _ in range(150):
        gtp.say(" ".join(rng.choice(words) for _ in range(rng.randrange(6))))
    gtp.say("x" * (2 * LONGEST_LINE), "clear_board", "4242 name")
    assert gtp.hear("=4242").startswith("=4242 azpy")
