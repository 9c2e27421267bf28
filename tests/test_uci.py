"""az-engine speaks UCI and UGI: programs that are not ours play whole games with it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chess
import chess.engine
import pytest

from azpy.cli.engine import main
from azpy.errors import AzpyError
from azpy.serving.models import open_player
from azpy.serving.request import seconds_to_think
from talks import COMMAND, PATIENCE, Talk
from uci_talks import talk


@pytest.fixture
def uci() -> Iterator[Talk]:
    engine = talk("uniform:100", "chess", "uci")
    yield engine
    engine.close()


def test_python_chess_reads_its_analysis() -> None:
    with chess.engine.SimpleEngine.popen_uci(
        [*COMMAND, "uniform:50", "--game", "chess", "--protocol", "uci"]
    ) as engine:
        board = chess.Board("r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 0 1")
        lines = engine.analyse(board, chess.engine.Limit(nodes=3000), multipv=3)
        assert len(lines) == 3
        assert lines[0]["pv"][0] == chess.Move.from_uci("f3f7"), "a mate in one"
        only = engine.play(board, chess.engine.Limit(nodes=50), root_moves=[chess.Move.from_uci("a2a3")])
        assert only.move == chess.Move.from_uci("a2a3")
        with engine.analysis(board) as analysis:  # without an end
            analysis.next()
        assert engine.play(board, chess.engine.Limit(nodes=10)).move is not None


def test_it_introduces_itself_and_is_ready_in_a_search_too(uci: Talk) -> None:
    uci.say("uci")
    assert uci.hear("id name azpy")
    uci.hear("option name Move Overhead type spin default 30")
    uci.hear("uciok")
    uci.say("isready")
    uci.hear("readyok")
    uci.say("go infinite", "isready")
    uci.hear("readyok")
    assert not any(line.startswith("bestmove") for line in uci.heard)
    uci.say("stop")
    uci.hear("bestmove")


def test_an_endless_search_waits_for_stop_though_nothing_is_left_to_find(uci: Talk) -> None:
    uci.say("position fen 7k/5Q2/6K1/8/8/8/8/8 w - - 0 1", "go infinite searchmoves f7g7", "isready")
    uci.hear("readyok")
    uci.say("stop")
    assert uci.hear("bestmove").startswith("bestmove f7g7")


def test_a_ponderhit_begins_the_time(uci: Talk) -> None:
    uci.say("position startpos moves e2e4 e7e5", "go ponder movetime 50", "isready")
    uci.hear("readyok")
    assert not any(line.startswith("bestmove") for line in uci.heard)
    uci.say("ponderhit")
    uci.hear("bestmove")
    uci.say("go ponder wtime 1000 btime 1000", "stop")
    uci.hear("bestmove")


def test_games_that_our_rules_end_go_on(uci: Talk) -> None:
    there_and_back = "g1f3 g8f6 f3g1 f6g8 " * 4
    uci.say(f"position startpos moves {there_and_back} e2e4", "go nodes 10")
    board = chess.Board()
    for move in [*there_and_back.split(), "e2e4"]:
        board.push_uci(move)
    assert chess.Move.from_uci(uci.hear("bestmove").split()[1]) in board.legal_moves
    uci.say(f"position startpos moves {there_and_back}", "go nodes 10")
    assert chess.Move.from_uci(uci.hear("bestmove").split()[1]) in chess.Board().legal_moves
    uci.say("position fen 7k/5Q2/6K1/8/8/8/8/8 w - - 99 80 moves f7a7 h8g8", "go nodes 10")
    assert uci.hear("bestmove") != "bestmove (none)"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("setoption name Nothing value 3", "there is no option 'Nothing'"),
        ("setoption name Threads value many", "expected a whole number from 1 to 1024, got 'many'"),
        ("setoption name Ponder value perhaps", "expected true or false"),
        ("setoption", "expected name NAME"),
    ],
)
def test_what_cannot_be_read_is_said_and_changes_nothing(uci: Talk, line: str, error: str) -> None:
    uci.say("position startpos moves e2e4", line)
    assert error in uci.hear("info string error")
    uci.say("go nodes 5")
    board = chess.Board()
    board.push_uci("e2e4")
    assert chess.Move.from_uci(uci.hear("bestmove").split()[1]) in board.legal_moves
    uci.say("go nodes", "isready")
    assert uci.hear("bestmove") == "bestmove (none)"
    uci.hear("readyok")


def test_unknown_words_are_skipped(uci: Talk) -> None:
    uci.say("joho debug on", "", "perhaps isready", "readyok?", "isready")
    uci.hear("readyok")
    uci.hear("readyok")


def test_options_are_found_in_any_case_and_change_the_search(uci: Talk) -> None:
    uci.say("setoption name multipv value 2", "setoption name SIMULATIONS value 7", "go movetime 5000")
    line = uci.hear("info depth")
    assert "nodes 7 " in line
    assert "multipv 2" in uci.hear("info depth")
    uci.say("setoption name Hash value 32", "setoption name Temperature value 100", "go nodes 5")
    uci.hear("bestmove")


def test_a_clock_never_runs_out_and_uses_its_increment() -> None:
    for left, increment, moves in [
        (60, 0, None),
        (60, 1, None),
        (10, 0, 40),
        (1, 0, None),
        (300, 0, 1),
        (0.01, 0, None),
    ]:
        rest: float = left
        for played in range(200):
            until = None if moves is None else moves - played % moves
            seconds = seconds_to_think(rest, 0.0, increment, until)
            assert 0 < seconds <= max(rest, 0.001)
            rest += increment - seconds
            if until == 1:
                rest += left
            if rest < 0.01:
                break
        else:
            assert rest > 0
    assert seconds_to_think(100.0, 0.0) == pytest.approx(4.0)
    assert seconds_to_think(100.0, 0.0, moves=1) == pytest.approx(90.0)
    assert seconds_to_think(10.0, 0.0, increment=2.0) == pytest.approx(2.0), "at five increments it is steady"
    assert seconds_to_think(0.0, 1.0) == 0.001
    assert seconds_to_think(100.0, 0.1) < 4.0


@pytest.mark.parametrize("moves", [1, 2, 10, 25])
@pytest.mark.parametrize("share", [1.01, 1.5, 4.0, 100.0])
def test_a_clock_that_has_time_for_the_overhead_of_its_moves_never_runs_out(moves: int, share: float) -> None:
    overhead = 0.1
    left = moves * overhead * share + moves * 0.001  # a thousandth is the least that a move takes
    for still in range(moves, 0, -1):
        seconds = seconds_to_think(left, overhead, moves=still)
        assert seconds >= 0.001
        left -= seconds + overhead
        assert left > -1e-9, (still, seconds)


def test_the_command_refuses_what_it_cannot_serve(tmp_path: Path, one_line: Any) -> None:
    for arguments, said in (
        (["uniform", "--protocol", "uci", "--game", "go"], "uci is for chess, and uniform plays go: take --protocol"),
        (["uniform", "--protocol", "ugi"], "which game does 'uniform' play? give --game"),
    ):
        one_line(main, arguments, f"az-engine: {said}")
    assert "does not search" in one_line(main, ["random", "--protocol", "ugi", "--game", "hex"], "az-engine: ")
    with pytest.raises(AzpyError):
        open_player(str(tmp_path / "nothing"), "hex", 10)


def test_the_conversation_is_logged(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    done = subprocess.run(
        [*COMMAND, "uniform:9", "--protocol", "ugi", "--game", "hex(size=4)", "--log", str(log)],
        input="ugi\ngo\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    text = log.read_text(encoding="utf-8")
    assert "< go" in text
    assert "> ugiok" in text
