"""Whole games by GTP with other programs: GNU Go and gtp-rhino; and sgfmill's boards as a judge."""

import shutil
import subprocess
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy.serving.models import open_player
from talks import GtpTalk, talk_with

GNUGO, RHINO = (shutil.which(name) or shutil.which(name, path="/usr/games") for name in ("gnugo", "gtp-rhino"))
GNUGO_RULES = ["--mode", "gtp", "--chinese-rules", "--positional-superko", "--forbid-suicide"]
GNUGO_RULES += ["--level", "1", "--never-resign"]

needs_gnugo = pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed")
needs_rhino = pytest.mark.skipif(RHINO is None, reason="gtp-rhino is not installed")


class Other:
    """Another program that speaks GTP."""

    def __init__(self, *command: str) -> None:
        pipe = subprocess.PIPE
        self._process: Any = subprocess.Popen(command, text=True, bufsize=1, stdin=pipe, stdout=pipe)

    def ask(self, command: str) -> str:
        """The whole answer to a command, `=` or `?` included. gtp-rhino ends some with two empty lines."""
        self._process.stdin.write(f"{command}\n")
        lines = list[str]()
        for line in self._process.stdout:
            if line.strip():
                lines.append(line.rstrip())
            elif lines:
                return "\n".join(lines)
        raise AssertionError(f"ended at {command!r}")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def our_engine(game: str) -> AbstractContextManager[GtpTalk]:
    # At temperature 0.5 no two games are the same.
    return talk_with(player=open_player("uniform:6", game, 1, temperature=0.5))


def program(*command: str | None) -> AbstractContextManager[Other]:
    return closing(Other(*map(str, command)))


def cells(talk: GtpTalk | Other) -> list[str]:
    """The cells of a board, row by row, in the marks of azpy."""
    rows = [line.split() for line in talk.ask("showboard").lower().splitlines()]
    return [mark for row in rows if row[0].isdigit() for mark in row[1:]]


def say(talk: GtpTalk | Other, command: str) -> str:
    """What a command that must be obeyed is answered with."""
    answer = talk.ask(command)
    assert answer.startswith("="), (command, answer)
    return answer[1:].strip()


# Go -------------------------------------------------------------------------------------------------------------------


@needs_gnugo
@pytest.mark.parametrize("times", [1, pytest.param(15, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("size", "games"), [(5, 3), (7, 1)])
def test_games_with_gnugo_have_no_illegal_move(size: int, games: int, times: int) -> None:
    """Each move is told to the other side, and either judges the other's moves."""
    with our_engine(f"go(size={size})") as ours, program(GNUGO, *GNUGO_RULES) as gnugo:
        turns = 0
        for game in range(games * times):
            for talk in (ours, gnugo):
                say(talk, f"boardsize {size}")
                say(talk, "komi 7.5")
                say(talk, "clear_board")
            passes = turn = 0
            while passes < 2:
                mover, other = (ours, gnugo) if turn % 2 == game % 2 else (gnugo, ours)
                color = "bw"[turn % 2]
                vertex = say(mover, f"genmove {color}")
                say(other, f"play {color} {vertex}")
                passes = passes + 1 if vertex.lower() == "pass" else 0
                turn += 1
            turns += turn
            board = cells(ours)
            for color, mark in (("black", "x"), ("white", "o")):
                stones = {
                    f"{'ABCDEFGHJ'[index % size]}{size - index // size}" for index, c in enumerate(board) if c == mark
                }
                assert set(say(gnugo, f"list_stones {color}").split()) == stones
        assert turns > 10 * games * times


@needs_gnugo
@pytest.mark.parametrize("size", [7, 8, 9, 11, 13])
def test_fixed_handicaps_are_those_of_gnugo(size: int) -> None:
    with our_engine(f"go(size={size})") as ours, program(GNUGO, *GNUGO_RULES) as gnugo:
        for count in range(1, 11):
            answers = []
            for talk in (ours, gnugo):
                say(talk, f"boardsize {size}")
                answers.append(talk.ask(f"fixed_handicap {count}"))
            assert answers[0][0] == answers[1][0], count
            if answers[0][0] == "=":
                assert set(answers[0].split()) == set(answers[1].split()), count


@pytest.mark.parametrize(("size", "komi"), [(5, "7.5"), (7, "0"), (5, "-3")])
def test_whole_games_are_those_of_sgfmill(size: int, komi: str, tmp_path: Path) -> None:
    boards, sgf = pytest.importorskip("sgfmill.boards"), pytest.importorskip("sgfmill.sgf")
    common, replayed = pytest.importorskip("sgfmill.common"), pytest.importorskip("sgfmill.sgf_moves")
    with our_engine(f"go(size={size})") as ours:
        say(ours, f"komi {komi}")
        board, moves = boards.Board(size), list[tuple[str, Any]]()
        # Where azpy's rules end a game, two passes or too many plies, a file has a result.
        most = azpy.make_game("go", size=size).max_plies
        while [point for _, point in moves[-2:]] != [None, None] and len(moves) < most:
            color = "bw"[len(moves) % 2]
            vertex = say(ours, f"genmove {color}")
            point = common.move_from_vertex(vertex, size)
            if point is not None:
                board.play(*point, color)
                assert board.get(*point) == color, "no suicide"
            moves.append((color, point))
            marks = {None: ".", "b": "x", "w": "o"}
            expected = [marks[board.get(row, column)] for row in reversed(range(size)) for column in range(size)]
            assert cells(ours) == expected
        lead = board.area_score() - float(komi)
        score = "0" if lead == 0 else f"{'B' if lead > 0 else 'W'}+{abs(lead):g}"
        assert say(ours, "final_score") == score
        # The SGF that az-engine writes.
        path = tmp_path / "ours.sgf"
        assert say(ours, f"printsgf {path}") == ""
        game = sgf.Sgf_game.from_bytes(path.read_bytes())
        assert (game.get_size(), game.get_komi(), game.get_root().get("RE")) == (size, float(komi), score)
        assert replayed.get_setup_and_moves(game)[1] == moves
        # The SGF that sgfmill writes, up to a move.
        game = sgf.Sgf_game(size=size)
        game.get_root().set("KM", float(komi))
        for color, point in moves:
            game.extend_main_sequence().set_move(color, point)
        path.write_bytes(game.serialise())
        say(ours, "komi 1.5")
        for number in (1, 2, len(moves) // 2, len(moves), len(moves) + 1, 10_000):
            say(ours, f"loadsgf {path} {number}")
            board = boards.Board(size)
            for color, point in moves[: number - 1]:
                if point is not None:
                    board.play(*point, color)
            expected = [marks[board.get(row, column)] for row in reversed(range(size)) for column in range(size)]
            assert cells(ours) == expected, number
        assert say(ours, "final_score") == score, "the komi is the file's"
        for _ in moves:
            say(ours, "undo")
        assert set(cells(ours)) == {"."}
        assert ours.ask("undo") == "? cannot undo"


# Othello --------------------------------------------------------------------------------------------------------------


@needs_rhino
@pytest.mark.parametrize("count", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_games_with_rhino_have_no_illegal_move_and_one_score(count: int) -> None:
    with our_engine("othello") as ours, program(RHINO, "-l", "1", "-r", "10") as rhino:
        for game in range(count):
            for talk in (ours, rhino):
                say(talk, "set_game Othello")
                say(talk, "boardsize 8")
                say(talk, "clear_board")
            passes = turn = 0
            while passes < 2:
                mover, other = (ours, rhino) if turn % 2 == game % 2 else (rhino, ours)
                color = "bw"[turn % 2]
                vertex = say(mover, f"genmove {color}")
                if vertex == "pass":
                    passes += 1
                    assert other.ask(f"genmove {color}") == "= pass"
                else:
                    passes = 0
                    say(other, f"play {color} {vertex}")
                turn += 1
            assert cells(ours) == cells(rhino)
            assert say(ours, "final_score") == say(rhino, "final_score")
