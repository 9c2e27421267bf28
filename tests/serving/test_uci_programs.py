"""Programs that are not ours play chess with az-engine: Stockfish, and python-chess with a clock."""

import random
import shutil
import time

import chess
import chess.engine
import pytest

from azpy.games.names import make_game
from azpy.serving.uci_positions import Positions
from running import ended
from talks import COMMAND

CHESS = [*COMMAND, "uniform:20", "--game", "chess", "--protocol", "uci"]
STOCKFISH = shutil.which("stockfish", path="/usr/games:/usr/local/bin:/usr/bin")


@pytest.mark.skipif(STOCKFISH is None, reason="Stockfish is not installed")
def test_stockfish_plays_games_with_it() -> None:
    with (
        chess.engine.SimpleEngine.popen_uci(CHESS) as engine,
        chess.engine.SimpleEngine.popen_uci(str(STOCKFISH)) as other,
    ):
        engine.configure({"Temperature": 100})
        other.configure({"Threads": 1, "Hash": 16})
        for ours in (chess.WHITE, chess.BLACK):
            board = chess.Board()
            while not board.is_game_over(claim_draw=True):
                mine = board.turn == ours
                found = (engine if mine else other).play(
                    board, chess.engine.Limit(nodes=60 if mine else 2000), game=ours, ponder=mine
                )
                assert found.move is not None
                assert found.move in board.legal_moves
                board.push(found.move)
            outcome = board.outcome(claim_draw=True)
            assert outcome is not None
            assert outcome.winner != ours, "60 simulations without a network beat no Stockfish"


@pytest.mark.skipif(STOCKFISH is None, reason="Stockfish is not installed")
def test_an_illegal_move_is_read_as_stockfish_reads_it() -> None:
    rng, positions = random.Random(6), Positions(make_game("chess"), chess960=False)
    lines, fens = list[str](), list[str]()
    for _ in range(60):
        board, moves = chess.Board(), list[str]()
        for _ in range(rng.randrange(12)):
            moves.append(rng.choice(list(board.legal_moves)).uci())
            board.push_uci(moves[-1])
        moves.insert(rng.randrange(len(moves) + 1), rng.choice(["e2e5", "a1a1", "e1g1", "h7h8q", "0000", "x"]))
        lines.append(f"startpos moves {' '.join(moves)}")
        line, _ = positions.read(lines[-1].split())
        fens.append(str(line.state).splitlines()[9])
    told = "".join(f"position {line}\nd\n" for line in lines) + "quit\n"
    said = ended([str(STOCKFISH)], told).out
    theirs = [line.removeprefix("Fen: ") for line in said.splitlines() if line.startswith("Fen: ")]
    # Stockfish names an en-passant square only where a pawn can capture.
    assert [chess.Board(fen).fen() for fen in fens] == [chess.Board(fen).fen() for fen in theirs]


@pytest.mark.parametrize(
    ("count", "seconds", "increment"), [(1, 60.0, 0.1), pytest.param(200, 3.0, 0.03, marks=pytest.mark.slow)]
)
def test_python_chess_plays_games_with_a_clock(count: int, seconds: float, increment: float) -> None:
    """az-engine plays itself; python-chess is the client, the judge of moves and of the flag."""
    with chess.engine.SimpleEngine.popen_uci(CHESS) as first, chess.engine.SimpleEngine.popen_uci(CHESS) as second:
        for engine in (first, second):
            engine.configure({"Threads": 1, "Hash": 64, "Temperature": 50, "Move Overhead": 20})
        for game in range(count):
            board, left = chess.Board(), {chess.WHITE: seconds, chess.BLACK: seconds}
            if game % 4 == 3:
                board = chess.Board.from_chess960_pos(random.Random(game).randrange(960))
            while not board.is_game_over(claim_draw=True):
                mover, white, black = board.turn, left[chess.WHITE], left[chess.BLACK]
                limit = chess.engine.Limit(
                    white_clock=white, black_clock=black, white_inc=increment, black_inc=increment, nodes=8
                )
                began = time.perf_counter()
                found = (first if mover == (game % 2 == 0) else second).play(board, limit, game=game)
                left[mover] -= time.perf_counter() - began
                assert left[mover] > 0, f"the flag fell in game {game}, ply {board.ply()}"
                left[mover] += increment
                assert found.move is not None
                assert found.move in board.legal_moves, board.fen()
                board.push(found.move)
