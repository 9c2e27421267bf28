"""UCI in the wrong order, in the middle of a search and with absurd numbers: each `go` has one right `bestmove`."""

import dataclasses
import subprocess
from typing import Any

import chess
import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy.serving.models import Served
from azpy.serving.uci import _UNUSED
from azpy.serving.uci_positions import Positions
from sound_games import Nim
from talks import COMMAND, PATIENCE
from uci_talks import all_heard, answers, talk, talk_to

MATED = "position startpos moves f2f3 e7e5 g2g4 d8h4"


@pytest.mark.parametrize(
    "lines",
    [
        ["go infinite", "go nodes 5", "go movetime 1"],
        ["ponderhit", "go nodes 5", "ponderhit", "stop"],
        ["go infinite", "stop", "stop", "stop"],
        ["stop", "go nodes 5", "stop"],
        ["go ponder", "position startpos moves e2e4 e7e5", "go nodes 5"],
        ["go ponder", "ponderhit", "ponderhit", "stop", "ponderhit"],
        ["go ponder", "stop", "ponderhit"],
        ["go ponder infinite", "ponderhit", "stop"],
        ["go infinite", "ucinewgame", "go nodes 5"],
        ["go infinite", "isready", "debug on", "uci", "stop"],
        *(["go infinite", f"setoption name {option}", "go nodes 5"] for option in ("Hash value 8", "MultiPV value 3")),
        ["go infinite", "setoption name UCI_Chess960 value true", "go nodes 5"],
        ["go nodes 99999999999999999999999", "stop"],
        ["go movetime 99999999999999999999999", "stop"],
        ["go ponder movetime 999999999999999999", "ponderhit", "stop", "go movetime 100000000000000000", "stop"],
        ["go wtime 99999999999999999999 btime 9 winc 99999999999999999999 movestogo 99999999999999999999", "stop"],
        ["go wtime -100 btime -100 winc -5 binc -5 movestogo -3"],
        [
            "go wtime 0 btime 0",
            "go movetime 0",
            "go movetime -7",
            "go nodes 0",
            "go nodes -4",
            "go movestogo 0 wtime 9",
        ],
        ["go mate 3", "go depth 5", "go depth -1 nodes 3", "go searchmoves e2e5 e2e4", "go nonsense 7"],
        ["go infinite"],
        *([go, "quit"] for go in ("go infinite", "go ponder", "go nodes 4000000000")),
        ["go ponder wtime 10 btime 10"],
        ["go nodes 5"],
    ],
    ids=lambda lines: "; ".join(lines)[:60],
)
def test_every_go_has_one_legal_bestmove(lines: list[str]) -> None:
    heard = all_heard("uniform:20", "chess", "uci", *lines)
    best = answers(heard, "bestmove")
    assert len(best) == sum(line.startswith("go") for line in lines)
    first = [chess.Move.from_uci(line.split()[1]) for line in best]
    boards = [chess.Board()] * len(first)
    if "e7e5" in lines[1 % len(lines)]:
        boards[-1] = chess.Board("rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2")
    assert all(move in board.legal_moves for move, board in zip(first, boards, strict=True))
    assert not answers(heard, "info string error")
    assert len(answers(heard, "readyok")) == lines.count("isready")


def test_a_ponderhit_ends_no_infinite_search() -> None:
    for go in ("go infinite", "go ponder infinite"):
        engine = talk("uniform:20", "chess", "uci")
        engine.say(go, "isready")
        engine.hear("readyok")
        engine.say("ponderhit")
        for _ in range(2):  # the first may be from before
            engine.hear("info depth")
        assert not answers(engine.heard, "bestmove")
        engine.say("stop")
        engine.hear("bestmove")
        engine.close()


def test_a_ponderhit_searches_as_much_as_without_ponder() -> None:
    engine = talk("uniform:20", "chess", "uci")
    engine.say("go ponder nodes 60000", "ponderhit")
    nodes = 0
    while not (line := engine.hear("")).startswith("bestmove"):
        nodes = int(line.split()[line.split().index("nodes") + 1])
    assert nodes >= 60_000
    engine.close()


@pytest.mark.parametrize("go", ["go infinite", "go ponder"])
def test_without_a_move_an_endless_go_is_not_answered_before_its_end(go: str) -> None:
    engine = talk("uniform:20", "chess", "uci")
    engine.say(MATED, go, "isready")
    engine.hear("info string the game is over")
    engine.hear("readyok")
    assert not answers(engine.heard, "bestmove")
    engine.say("ponderhit" if go == "go ponder" else "stop")
    assert engine.hear("bestmove") == "bestmove (none)"
    engine.close()


def test_words_after_searchmoves_are_read() -> None:
    engine = talk("uniform:20", "chess", "uci")
    engine.say("go searchmoves e2e4 a2a3 nodes 5")
    words = engine.hear("info depth").split()
    assert words[words.index("nodes") + 1] in {"1", "2", "3", "4", "5"}
    assert engine.hear("bestmove").split()[1] in {"e2e4", "a2a3"}
    engine.close()
    engine = talk("uniform:20", "chess", "uci")
    engine.say("go searchmoves e2e4 infinite", "isready")
    engine.hear("readyok")
    assert not answers(engine.heard, "bestmove")
    engine.close()


@pytest.mark.parametrize("go", ["go searchmoves", "go searchmoves e2e5 nodes 5", "go infinite searchmoves e2e5 e7e5"])
def test_searchmoves_without_a_legal_move_has_no_move(go: str) -> None:
    heard = all_heard("uniform:20", "chess", "uci", go, "go nodes 5 searchmoves e2e5 e2e4")
    assert answers(heard, "info string", "bestmove")[:2] == [
        "info string error: go searchmoves: expected one legal move at least",
        "bestmove (none)",
    ]
    assert answers(heard, "info string go") == ["info string go searchmoves: left out what is not legal here: 'e2e5'"]
    assert answers(heard, "bestmove")[1].startswith("bestmove e2e4")


def test_what_has_no_effect_is_said_once() -> None:
    unused = [name for name in _UNUSED if name[:3] in {"UCI", "Syz", "Ver"}]
    values = [f"setoption name {name} value {'x' if name == 'SyzygyPath' else 'true'}" for name in unused]
    said = ["go depth 3", "go mate 2", "debug on", *values]
    heard = all_heard("uniform:20", "chess", "uci", *said, *said, "debug off")
    assert len(answers(heard, "bestmove")) == 4
    assert sorted(answers(heard, "info string")) == sorted(
        f"info string {name} has no effect: {why}" for name, why in _UNUSED.items()
    )


@pytest.mark.parametrize("fen", ["8/8/8/8/8/8/8/8 w - - 0 1", "4k3/8/8/8/8/8/8/R3K3 w - - x 1", "4k3 w - - 0 1"])
def test_what_is_no_position_is_still_refused(fen: str) -> None:
    assert answers(all_heard("uniform:20", "chess", "uci", f"position fen {fen}"), "info string error")


REFUSED = [
    "position",
    "position fen",
    "position fen nonsense",
    "position fen 8/8/8/8/8/8/8/8 w - - 0 1",
    "position fen nonsense moves e2e4",
    "position startpos e2e4",
]


@pytest.mark.parametrize("line", REFUSED)
def test_after_a_position_that_was_refused_there_is_no_move_until_one_is_read(line: str) -> None:
    engine = talk("uniform:20", "chess", "uci")
    engine.say("position startpos moves e2e4", line)
    why = engine.hear("info string error: ").removeprefix("info string error: ")
    for go in ("go nodes 5", "go", "go movetime 1"):
        for asked, answer in (("isready", "readyok"), (go, "bestmove (none)")):
            engine.say(asked)
            assert engine.hear("") == f"info string error: there is no position, as the last one was refused: {why}"
            assert engine.hear("") == answer
    for position, moves in (("position startpos moves e2e4", "78"), (line, ""), ("ucinewgame", "12")):
        engine.say(position, "go nodes 5")
        best = engine.hear("bestmove").split()[1]
        assert best[1] in moves if moves else best == "(none)"
    engine.close()


def test_a_refused_position_of_ugi_has_no_move_and_no_result() -> None:
    queries = ["query gameover", "query p1turn", "query result", "go"]
    heard = all_heard("uniform:20", "connect_four", "ugi", "position startpos", "position here", *queries)
    assert not answers(heard, "response")
    assert answers(heard, "bestmove") == ["bestmove (none)"]
    assert len(answers(heard, "info string error")) == 1 + len(queries)


def test_an_illegal_move_leaves_the_last_legal_position() -> None:
    for moves, board in (
        ("e2e5", chess.Board()),
        ("e2e4 e7e5 e4e5 g8f6", chess.Board("rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2")),
        ("e2e4 0000", chess.Board("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1")),
    ):
        engine = talk("uniform:20", "chess", "uci")
        engine.say("position startpos moves d2d4 d7d5 c2c4", f"position startpos moves {moves}")
        assert "is not legal there" in engine.hear("info string error")
        # Of each position all legal moves are searched, one after the other.
        for move in board.legal_moves:
            engine.say(f"go nodes 2 searchmoves {move.uci()}")
            assert engine.hear("bestmove").split()[1] == move.uci()
        engine.close()


class Once:
    """An evaluator of chess that fails `times` times."""

    def __init__(self, times: int) -> None:
        self.left = times

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self.left -= 1
        if self.left >= 0:
            raise RuntimeError("no device")
        return np.zeros((len(observations), 4672), np.float32), np.zeros(len(observations), np.float32)


@pytest.mark.parametrize("go", ["go infinite", "go ponder", "go ponder infinite", "go infinite nodes"])
@pytest.mark.parametrize("why", ["position", "evaluator", "engine"])
def test_an_error_in_an_endless_go_is_said_at_once_and_answered_at_its_end(go: str, why: str) -> None:
    own = {"c_puct": -1.0} if why == "engine" else {}
    player = served(azpy.make_game("chess"), **own)
    if why == "evaluator":
        player = dataclasses.replace(player, evaluator=Once(10**9))
    engine = talk_to({"own": player})
    if why == "position":
        engine.say("position nowhere")
        engine.hear("info string error")
    for end in ("stop", "position startpos", "go nodes", "ponderhit" if go == "go ponder" else "stop"):
        engine.say(go)
        engine.hear("info string error")
        for _ in range(3):
            engine.say("isready")
            engine.hear("readyok")
        assert not answers(engine.heard, "bestmove")
        if "infinite" in go:
            engine.say("ponderhit", "isready")
            engine.hear("readyok")
            assert not answers(engine.heard, "bestmove")
        engine.say(end)
        assert engine.hear("bestmove") == "bestmove (none)"
        if end == "go nodes":
            assert engine.hear("bestmove") == "bestmove (none)"
        if end.startswith("position") and why == "position":
            engine.say("position nowhere")
            engine.hear("info string error")
    engine.close()
    assert not answers(engine.heard, "bestmove")


def test_a_search_after_ponderhit_answers_though_the_one_before_failed() -> None:
    engine = talk_to({"own": dataclasses.replace(served(azpy.make_game("chess")), evaluator=Once(1))})
    engine.say("go ponder nodes 5")
    engine.hear("info string error: no device")
    engine.say("ponderhit")
    assert chess.Move.from_uci(engine.hear("bestmove").split()[1]) in chess.Board().legal_moves
    engine.close()


@pytest.mark.parametrize(("go", "end"), [("go infinite", "quit\n"), ("go nodes 4000000000", "")])
def test_the_end_of_the_input_ends_the_process_with_a_move(go: str, end: str) -> None:
    done = subprocess.run(
        [*COMMAND, "uniform:50", "--game", "chess", "--protocol", "uci"],
        input=f"position startpos moves e2e4\n{go}\n{end}",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    best = done.stdout.splitlines()[-1].split()
    assert best[0] == "bestmove"
    assert chess.Move.from_uci(best[1]).uci()[1] in "78"


def served(start: Any, **options: Any) -> Served:
    return Served(
        "own", azpy.State(start) if isinstance(start, azpy.Game) else start, azpy.UniformEvaluator(), 20, options, False
    )


def test_isready_is_answered_though_the_engine_does_not_open() -> None:
    engine = talk_to({"own": served(azpy.make_game("chess"), c_puct=-1.0)})
    engine.say("isready", "go", "isready")
    engine.close()
    assert [line.split()[0] for line in engine.heard] == ["info", "readyok", "info", "bestmove", "info", "readyok"]
    assert answers(engine.heard, "bestmove") == ["bestmove (none)"]


class Failing(Nim):
    """Raises what azpy knows nothing of, once the last heap is empty."""

    def legal_actions(self) -> list[int]:
        if self.heaps[2] == 0:
            raise RuntimeError("the heap is lost")
        return super().legal_actions()


def test_a_game_that_fails_ends_no_conversation() -> None:
    engine = talk_to({"own": served(Failing())}, "ugi")
    names = [azpy.State(Nim()).action_name(action) for action in (8, 0)]
    engine.say(f"position startpos moves {' '.join(names)}", "go", "position startpos moves", "isready")
    assert "the heap is lost" in engine.hear("info string error")
    engine.hear("bestmove")
    engine.hear("readyok")
    engine.close()


@pytest.mark.parametrize("chess960", [None, False])
def test_moves_have_uci_s_names_in_any_case_and_are_no_san(chess960: bool | None) -> None:
    positions = Positions(azpy.make_game("chess"), chess960)
    for words in ("startpos moves e4", "fen 4k3/8/8/8/8/2p5/1P1B4/4K3 w - - 0 1 moves Bxc3", "startpos moves O-O"):
        line, problem = positions.read(words.split())
        assert line.played == []
        assert "move 1" in (problem or "")
    line, problem = positions.read(["startpos", "moves", "E2E4", "e7e5", "G1F3"])
    assert (len(line.played), problem) == (3, None)
