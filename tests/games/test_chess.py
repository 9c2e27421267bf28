"""Chess against python-chess: legal moves, notation, repetitions, ends of games, and both encodings, ply by ply.

The planes and the numbers of actions have slow twins here, written from the positions that python-chess keeps.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from oracles import Constant

pytest.importorskip("chess")
import chess
import chess.pgn

PYTHON = Path(__file__).parents[2] / "docs/guides/python.md"
START = chess.STARTING_FEN
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
# Few men, so that games end in every way: mates, stalemates, too little material, fifty moves, promotions.
ENDINGS = [
    "8/P6k/8/8/8/8/p6K/8 w - - 0 1",
    "8/1P1P1k2/8/8/8/8/p1p3K1/8 b - - 0 1",
    "4k3/8/8/8/8/8/8/R3K2R w KQ - 80 60",
    "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
    "7k/8/8/8/8/8/7p/KB6 w - - 90 80",
    "k7/8/8/8/8/8/1q6/3K4 w - - 0 1",
    "8/5k2/3p4/2pP4/4K3/8/8/8 w - c6 0 40",
    "2b1k3/8/8/3nN3/8/8/8/2B1K3 w - - 40 50",
]


def squares(pieces: int, flip: bool) -> NDArray[np.float32]:
    """[8, 8], row 0 = rank 8; `flip` shows Black's side at the bottom."""
    plane = np.zeros((8, 8), np.float32)
    for square in chess.SquareSet(pieces):
        rank, file = chess.square_rank(square), chess.square_file(square)
        plane[rank if flip else 7 - rank, file] = 1
    return plane


def rights(board: chess.Board, color: bool) -> tuple[bool, bool]:
    return board.has_kingside_castling_rights(color), board.has_queenside_castling_rights(color)


def planes_az18(board: chess.Board) -> NDArray[np.float32]:
    planes = np.zeros((18, 8, 8), np.float32)
    for side, color in enumerate((chess.WHITE, chess.BLACK)):
        for piece in chess.PIECE_TYPES:
            planes[6 * side + piece - 1] = squares(board.pieces_mask(piece, color), False)
        planes[13 + 2 * side], planes[14 + 2 * side] = (np.float32(right) for right in rights(board, color))
    planes[12] = board.turn == chess.WHITE
    if board.ep_square is not None:
        planes[17] = squares(chess.BB_SQUARES[board.ep_square], False)
    return planes


def planes_az119(board: chess.Board, max_plies: int) -> NDArray[np.float32]:
    planes, mover, past = np.zeros((119, 8, 8), np.float32), board.turn, board.copy()
    flip = mover == chess.BLACK
    for back in range(8):
        for side, color in enumerate((mover, not mover)):
            for piece in chess.PIECE_TYPES:
                planes[14 * back + 6 * side + piece - 1] = squares(past.pieces_mask(piece, color), flip)
        planes[14 * back + 12] = past.is_repetition(2)
        planes[14 * back + 13] = past.is_repetition(3)
        if not past.move_stack:
            break
        past.pop()
    planes[112] = mover == chess.WHITE
    planes[113] = board.ply() / max_plies
    planes[114], planes[115] = (np.float32(right) for right in rights(board, mover))
    planes[116], planes[117] = (np.float32(right) for right in rights(board, not mover))
    planes[118] = board.halfmove_clock / 100
    return planes


DIRECTIONS = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
KNIGHTS = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]


def action_of(board: chess.Board, move: chess.Move, flip: bool) -> int:
    """The number of a move by its definition; `board.uci` writes castling as it is numbered."""
    move = chess.Move.from_uci(board.uci(move))
    mirror = chess.square_mirror if flip else lambda square: square
    start, end = mirror(move.from_square), mirror(move.to_square)
    file = chess.square_file(end) - chess.square_file(start)
    rank = chess.square_rank(end) - chess.square_rank(start)
    if move.promotion in (chess.KNIGHT, chess.BISHOP, chess.ROOK):
        plane = 64 + 3 * (file + 1) + [chess.KNIGHT, chess.BISHOP, chess.ROOK].index(move.promotion)
    elif (file, rank) in KNIGHTS:
        plane = 56 + KNIGHTS.index((file, rank))
    else:
        distance = max(abs(file), abs(rank))
        plane = 7 * DIRECTIONS.index((file // distance, rank // distance)) + distance - 1
    return int(start * 73 + plane)


def ending_of(board: chess.Board, max_plies: int) -> str | None:
    """How azpy says that this game has ended."""
    if board.is_checkmate():
        return f"{'Black' if board.turn == chess.WHITE else 'White'} wins by checkmate"
    draws = {
        "threefold repetition": board.is_repetition(3),
        "the fifty-move rule": board.halfmove_clock >= 100,
        "insufficient material": board.is_insufficient_material(),
        "the limit of plies": board.ply() >= max_plies,
        "stalemate": board.is_stalemate(),
    }
    assert draws["the fifty-move rule"] == board.is_fifty_moves() or board.is_stalemate()
    return next((f"Draw by {name}" for name, true in draws.items() if true), None)


def compare(board: chess.Board, state: azpy.State, max_plies: int, names: bool) -> str | None:
    """Everything about one position; returns how the game has ended."""
    drawn = str(state).splitlines()
    at = f"{board.fen()} after {[move.uci() for move in board.move_stack]}"
    letters = [str(board.piece_at(square) or ".") for square in chess.SQUARES]
    assert drawn[:8] == [f"{r + 1} {' '.join(letters[8 * r : 8 * r + 8])}" for r in range(7, -1, -1)], at
    assert drawn[9] == board.fen(en_passant="fen"), at
    ending = ending_of(board, max_plies)
    assert drawn[10:] == ([ending] if ending else []), at
    assert state.is_terminal == (ending is not None), at
    if ending is not None:
        outcome = board.outcome(claim_draw=False)
        winner = outcome.winner if outcome else None
        assert state.outcome() == {None: 0, chess.WHITE: 1, chess.BLACK: -1}[winner], at
        return ending
    assert state.turn == (0 if board.turn == chess.WHITE else 1), at
    az119 = state.obs_shape[0] == 119
    expected = planes_az119(board, max_plies) if az119 else planes_az18(board)
    np.testing.assert_array_equal(state.observation(), expected.astype(np.float32), err_msg=at)
    actions = {action_of(board, move, az119 and board.turn == chess.BLACK): move for move in board.legal_moves}
    assert state.legal_actions() == sorted(actions), at
    for action, move in actions.items():
        assert state.action_name(action) == board.uci(move), at
        if names:
            assert state.short_name(action) == board.san(move), at
    return None


def play(board: chess.Board, spec: str, seed: int, count: Counter[str], names: bool = True) -> None:
    """A random game in both; moves that lead back are preferred now and then, so that positions come again."""
    rng, start = random.Random(seed), azpy.make_game(spec)
    if board.fen() != start.fen():
        start = azpy.parse_state(start, board.fen(en_passant="fen"))
    max_plies, state, shy = start.max_plies, start.clone(), rng.random() < 0.3
    while True:
        ending = compare(board, state, max_plies, names)
        count["positions"] += 1
        if rng.random() < 0.1 or ending:
            read = azpy.parse_state(spec, state.to_text())
            assert (read.key(), str(read)) == (state.key(), str(state)), state.to_text()
            count["read back"] += 1
        if ending is not None:
            count[ending] += 1
            return
        moves = list(board.legal_moves)
        if shy and len(board.move_stack) > 1 and rng.random() < 0.8:
            last = board.move_stack[-2]
            moves = [move for move in moves if move == chess.Move(last.to_square, last.from_square)] or moves
        move = rng.choice(moves)
        state.play(action_of(board, move, state.obs_shape[0] == 119 and board.turn == chess.BLACK))
        board.push(move)


def games(seeds: range, max_plies: int) -> Iterator[tuple[chess.Board, str, int]]:
    """Standard starts, endings and Chess960 in turn, both encodings each."""
    for seed in seeds:
        encoding, kind = ("az18", "az119")[seed % 2], seed // 2 % 4
        if kind == 3:
            number = random.Random(seed).randrange(960)
            board = chess.Board.from_chess960_pos(number)
            yield board, f"chess(encoding={encoding},chess960={number},max_plies={max_plies})", seed
        else:
            fen = [START, KIWIPETE, ENDINGS[seed // 8 % len(ENDINGS)]][kind]
            # Endings are written as of up to move 80.
            yield chess.Board(fen), f"chess(encoding={encoding},max_plies={max_plies + 170 * (kind == 2)})", seed


@pytest.mark.parametrize(
    ("first", "max_plies"), [(0, 90), *(pytest.param(n, 11000, marks=pytest.mark.slow) for n in range(1000, 1400, 16))]
)
def test_games_are_python_chess_games(first: int, max_plies: int) -> None:
    count = Counter[str]()
    for board, spec, seed in games(range(first, first + 16), max_plies):
        play(board, spec, seed, count, names=first == 0 or seed % 4 < 2)
    assert count["positions"] > 800


def test_action_cells_match_the_observed_piece() -> None:
    rng = random.Random(0)
    for encoding in ("az119", "az18"):
        state = azpy.make_game("chess", encoding=encoding)
        cells = state.action_cells
        assert cells is not None
        for _ in range(60):
            if state.is_terminal:
                break
            planes = state.observation()
            own = planes[:6] if encoding == "az119" or state.turn == 0 else planes[6:12]
            for action in state.legal_actions():
                cell = cells[action // 73]
                assert own[:, cell // 8, cell % 8].sum() == 1
            state.play(rng.choice(state.legal_actions()))


def test_san_is_read_as_python_chess_reads_it() -> None:
    rng, compared = random.Random(3), 0
    for _ in range(60):
        board, state = chess.Board(rng.choice([START, KIWIPETE, *ENDINGS])), None
        state = azpy.parse_state("chess", board.fen(en_passant="fen"))
        for _ in range(30):
            if state.is_terminal:
                break
            move = rng.choice(list(board.legal_moves))
            piece = board.piece_at(move.from_square)
            assert piece is not None
            san, uci = board.san(move), board.uci(move)
            words = [san, san.rstrip("+#"), san + "!?", uci]
            if not board.is_castling(move):
                capture = "x" if board.is_capture(move) else "-"
                letter = "" if piece.piece_type == chess.PAWN else piece.symbol().upper()
                promotion = "=" + chess.piece_symbol(move.promotion).upper() if move.promotion else ""
                words.append(f"{letter}{uci[:2]}{capture}{uci[2:4]}{promotion}")
                words.append(f"{letter}{uci[:4]}{promotion.removeprefix('=')}")
            for word in words:
                action = action_of(board, move, board.turn == chess.BLACK)
                assert word in (uci, san + "!?") or board.parse_san(word) == move
                assert state.parse_actions(word) == [action], f"{word} in {board.fen()}"
                compared += 1
            state.play(action)
            board.push(move)
    assert compared > 5000


@pytest.mark.skipif(not PYTHON.exists(), reason="needs the source tree")
def test_the_evaluator_of_the_docs_proves_an_endgame(tmp_path: Path) -> None:
    text = PYTHON.read_text(encoding="utf-8")
    program = next(block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "chess.syzygy" in block)
    names: dict[str, Any] = {"np": np, "azpy": azpy}
    exec(compile(program, "docs/guides/python.md", "exec"), names)
    evaluator = names["WithTables"](Constant(azpy.make_game("chess").num_actions), str(tmp_path))
    start = azpy.parse_state("chess", "8/8/8/4k3/8/8/4K2R/8 w - - 0 1")
    assert azpy.Search(evaluator, simulations=30, solver=True).run(start).proof is None  # there are no tables

    class Tables:
        """Of king and rook against king: white wins unless the rook is lost."""

        def get_wdl(self, board: Any) -> int | None:
            lost = not board.rooks or board.is_attacked_by(False, board.rooks.bit_length() - 1)
            return None if lost else 2 if board.turn else -2

        def get_dtz(self, board: Any) -> int:
            return 20

    evaluator.tables = Tables()
    result = azpy.Search(evaluator, simulations=200, solver=True).run(start)
    assert (result.stop, result.value) == ("proven", 1.0)
    late = azpy.parse_state("chess", "8/8/8/4k3/8/8/4K2R/8 w - - 90 80")
    assert azpy.Search(evaluator, simulations=50, solver=True).run(late).proof is None  # the fifty-move rule is near
