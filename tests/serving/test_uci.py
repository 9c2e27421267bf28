"""UCI and UGI beside python-chess, with clocks, networks and games that fail. transcripts/uci.txt has conversations."""

import dataclasses
import io
import itertools
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chess
import chess.engine
import numpy as np
import pytest
from numpy.typing import NDArray
from test_json_lines import client_of

import azpy
from azpy.errors import SettingsError
from azpy.serving.lines import Conversation
from azpy.serving.models import Player, open_player
from azpy.serving.request import seconds_to_think
from azpy.serving.uci import Uci
from running import ended
from sound_games import Nim
from talks import COMMAND, talk, talk_to

CHESS = [*COMMAND, "uniform:20", "--protocol", "uci", "--game"]
STARTS = [518, 356, 959, 3]  # of Chess960; in the last one castling is legal at once


def test_python_chess_reads_its_analysis() -> None:
    with chess.engine.SimpleEngine.popen_uci(
        [*CHESS, "chess", "--model", "weak one=uniform:3", "--model", "var=uniform:4"]
    ) as engine:
        assert engine.options["Model"].var == ["uniform", "weak_one", "var_"]
        engine.configure({"Model": "weak_one"})
        assert engine.analyse(chess.Board(), chess.engine.Limit(depth=1), game=object())["nodes"] == 3
        engine.configure({"Model": "uniform"})
        board = chess.Board("r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 0 1")
        lines = engine.analyse(board, chess.engine.Limit(nodes=3000), multipv=3)
        assert len(lines) == 3
        assert lines[0]["pv"][0] == chess.Move.from_uci("f3f7"), "a mate in one"
        only = engine.play(board, chess.engine.Limit(nodes=50), root_moves=[chess.Move.from_uci("a2a3")])
        assert only.move == chess.Move.from_uci("a2a3")
        with engine.analysis(board) as analysis:  # without an end
            analysis.next()
        assert engine.play(board, chess.engine.Limit(nodes=10)).move is not None


@pytest.mark.parametrize("starts", [STARTS, pytest.param(range(0, 960, 32), marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("game", ["chess", "chess(encoding=az18)", "chess(chess960=100)"])
def test_python_chess_plays_chess960_to_the_end(game: str, starts: Sequence[int]) -> None:
    castled = 0
    with chess.engine.SimpleEngine.popen_uci([*CHESS, game]) as engine:
        engine.configure({"Temperature": 100})
        for number in starts:
            board = chess.Board.from_chess960_pos(number)
            while not board.is_game_over(claim_draw=True):
                castling = [move for move in board.legal_moves if board.is_castling(move)]
                if castling:
                    found = engine.play(board, chess.engine.Limit(nodes=3), game=number, root_moves=castling[:1])
                    assert found.move == castling[0]
                    castled += 1
                else:
                    found = engine.play(board, chess.engine.Limit(nodes=6), game=number)
                assert found.move is not None
                board.push(found.move)
    assert castled > 0


# Clocks ---------------------------------------------------------------------------------------------------------------


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
def test_a_clock_with_time_for_its_overhead_never_runs_out(moves: int, share: float) -> None:
    overhead = 0.1
    left = moves * overhead * share + moves * 0.001  # a thousandth is the least that a move takes
    for still in range(moves, 0, -1):
        seconds = seconds_to_think(left, overhead, moves=still)
        assert seconds >= 0.001
        left -= seconds + overhead
        assert left > -1e-9, (still, seconds)


@pytest.mark.parametrize(
    ("said", "simulations", "seconds"),
    [
        ({}, 7, None),
        ({"nodes": 0}, 1, None),
        ({"nodes": 9, "movetime": 2_000}, 9, 1.97),  # less the overhead
        ({"movetime": 2_000, "p1time": 60_000}, None, 1.97),
        ({"p1time": 60_000, "p1inc": 1_000}, None, (60 - 25 * 0.03) / 25 + 0.8),
        ({"p1time": 60_000, "movestogo": 10}, None, 5.97),
        ({"p2time": 60_000}, 7, None),  # the other player's clock
    ],
)
def test_the_limits_of_a_search_are_those_of_its_go(
    said: dict[str, int], simulations: int | None, seconds: float | None
) -> None:
    player = open_player("uniform:7", "chess", 100)
    found = Uci({"one": player}, Conversation(io.BytesIO(), io.StringIO()))._limits(said, player.start)
    assert found == (simulations, None if seconds is None else pytest.approx(seconds))


def test_the_time_is_that_since_go(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(100.0, 2.5)
    monkeypatch.setattr("azpy.serving.request.monotonic", lambda: next(clock))
    engine = talk("uniform:20", "chess", "uci")
    for _ in range(2):
        engine.say("go nodes 50")
        assert " nodes 50 nps 20 hashfull 0 time 2500 pv " in engine.hear("info depth")
    engine.close()


# Ends and faults ------------------------------------------------------------------------------------------------------


def test_the_end_of_the_input_has_a_move_and_all_is_logged(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    for end in ("quit\n", ""):
        done = ended([*CHESS, "chess", "--log", log], f"position startpos moves e2e4\ngo nodes 4000000000\n{end}")
        assert (done.code, done.errors) == (0, "")
        best = done.out.splitlines()[-1]
        assert re.match("bestmove [a-h][78]", best)
        text = log.read_text(encoding="utf-8")
        assert "< go nodes 4000000000" in text
        assert f"> {best}" in text


def served(start: Any, **options: Any) -> Player:
    start = azpy.State(start) if isinstance(start, azpy.Game) else start
    return Player("own", start, azpy.UniformEvaluator(), 20, options, False)


def test_isready_is_answered_though_the_engine_does_not_open() -> None:
    engine = talk_to({"own": served(azpy.make_game("chess"), c_puct=-1.0)})
    engine.say("isready", "go", "isready")
    engine.close()
    assert [line.split()[0] for line in engine.heard] == ["info", "readyok", "info", "bestmove", "info", "readyok"]
    assert [line for line in engine.heard if line.startswith("bestmove")] == ["bestmove (none)"]


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


# Several players ------------------------------------------------------------------------------------------------------


def test_a_player_of_another_encoding_takes_the_position_over() -> None:
    models = {
        "az119": open_player("uniform:5", "chess", 100),
        "az18": open_player("uniform:6", "chess(encoding=az18,max_plies=60)", 100),
        "chess960": open_player("uniform:8", "chess(chess960=7)", 100),
    }
    engine = talk_to(models)
    moves = "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1g1"
    board = chess.Board()
    for move in moves.split():
        board.push_uci(move)
    engine.say(f"position startpos moves {moves}")
    for model, nodes in (("chess960", 8), ("az18", 6), ("az119", 5), ("chess960", 8)):
        engine.say(f"setoption name Model value {model}", "setoption name UCI_Chess960 value true", "go")
        assert f" nodes {nodes} " in engine.hear("info depth")
        assert chess.Move.from_uci(engine.hear("bestmove").split()[1]) in board.legal_moves
    engine.close()


def test_ugi_refuses_players_of_different_games() -> None:
    models = {name: open_player("uniform:7", game, 100) for name, game in (("a", "hex(size=5)"), ("b", "chess"))}
    with pytest.raises(SettingsError, match=r"one game at a time; a plays hex.* and b plays chess"):
        Uci(models, Conversation(io.BytesIO(), io.StringIO()), "ugi")


# What is said of a search ---------------------------------------------------------------------------------------------


def test_temperature_plays_other_moves_than_the_best_one() -> None:
    uci = talk("uniform:100", "chess", "uci")

    def moves(temperature: int) -> set[str]:
        uci.say(f"setoption name Temperature value {temperature}")
        found = set()
        for _ in range(20):
            uci.say("position fen 4k3/8/8/8/8/8/4q3/4K2R w - - 0 1", "position startpos", "ucinewgame", "go nodes 60")
            found.add(uci.hear("bestmove").split()[1])
        return found

    assert len(moves(0)) == 1
    assert len(moves(300)) > 3  # of twenty moves, with about as many visits
    assert len(moves(0)) == 1
    uci.close()


INFO = re.compile(
    r"info depth (?P<depth>\d+) seldepth (?P<seldepth>\d+) multipv \d+ score (?P<kind>cp|mate) (?P<score>-?\d+) "
    r"nodes (?P<nodes>\d+) nps (?P<nps>\d+) hashfull (?P<hashfull>\d+) time (?P<time>\d+) pv (?P<pv>.+)"
)


def test_lines_are_in_the_order_of_json_the_played_move_first() -> None:
    player, game = "mcts:20?lcb=2", "connect_four"
    ugi, client = talk(player, game, "ugi"), client_of(game, player=player)
    for lines in (1, 5, 7):
        for simulations in (20, 60, 200):
            ugi.say("uginewgame", f"setoption name MultiPV value {lines}", f"go nodes {simulations}")
            moves = list[str]()
            while (line := ugi.hear("")).startswith("info"):
                moves.append(line.partition(" pv ")[2].split()[0])
            answer = client.ask(simulations=simulations)
            assert moves == [one["move"] for one in answer["moveInfos"]][:lines]
            assert moves[0] == line.split()[1] == answer["move"]
    ugi.close()
    client.close()


class Known:
    """A uniform network whose answers are cached."""

    network_id = 7

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return np.zeros((len(observations), 4672), np.float32), np.zeros(len(observations), np.float32)


def test_hashfull_says_how_full_the_cache_is() -> None:
    player = dataclasses.replace(open_player("uniform:20", "chess", 100), evaluator=Known())

    def last_info(cache: int) -> str:
        engine, line = talk_to({"own": player}), ""
        engine.say(f"setoption name NNCacheSize value {cache}", "go nodes 1999")
        while not (said := engine.hear("")).startswith("bestmove"):
            line = said
        engine.close()
        return line

    # Of 2000 answers few are in each other's places where there is room for 10,240.
    found = INFO.fullmatch(last_info(10_000))
    assert found is not None
    assert 190 <= int(found["hashfull"]) <= 195
    assert " hashfull 1000 " in last_info(256)
    assert " hashfull " not in last_info(0)


def after(board: chess.Board, move: chess.Move) -> chess.Board:
    found = board.copy(stack=False)
    found.push(move)
    return found


def mates(board: chess.Board, moves: int) -> bool:
    """Whether the player to move can mate in so many moves, by trying all."""
    return any(is_mated(after(board, move), moves - 1) for move in board.legal_moves)


def is_mated(board: chess.Board, moves: int) -> bool:
    """Whether the opponent mates the player to move in `moves` moves, whatever that player does; 0: it is mated now."""
    if moves == 0 or not any(board.legal_moves):
        return board.is_checkmate()
    return all(mates(after(board, move), moves) for move in board.legal_moves)


@pytest.mark.parametrize("chess960", [False, True])
def test_every_line_is_legal(chess960: bool) -> None:
    engine, rng, infos = talk("uniform:20?solver=true", "chess", "uci"), random.Random(5), 0
    engine.say(f"setoption name UCI_Chess960 value {str(chess960).lower()}", "setoption name MultiPV value 6")
    for number in range(3):
        start = chess.Board.from_chess960_pos(rng.randrange(960)) if chess960 else chess.Board()
        board = start.copy()
        while not board.is_game_over(claim_draw=True) and board.ply() < 120:
            if board.ply() % 4 == number:
                engine.say(f"position fen {start.fen()} moves {' '.join(move.uci() for move in board.move_stack)}")
                engine.say("go nodes 100")
                while (line := engine.hear("")).startswith("info"):
                    found = INFO.fullmatch(line)
                    assert found, line
                    moves, now = found["pv"].split(), board.copy()
                    for move in moves:
                        now.push_uci(move)  # refuses what is not legal
                    assert len(moves) == int(found["depth"]) <= int(found["seldepth"])
                    assert int(found["nps"]) == 1000 * int(found["nodes"]) // max(1, int(found["time"]))
                    infos += 1
                now = board.copy()
                for move in line.split()[1::2]:
                    now.push_uci(move)
            board.push(rng.choice(list(board.legal_moves)))
    engine.close()
    assert infos > 300


def test_a_mate_is_reported_only_if_forced() -> None:
    engine, rng, won, lost = talk("uniform:20?solver=true", "chess", "uci"), random.Random(2), 0, 0
    engine.say("setoption name MultiPV value 3")
    while min(won, lost) < 12:
        board = chess.Board(None)
        for square, man in zip(rng.sample(range(64), 4), "KQRk", strict=True):
            board.set_piece_at(square, chess.Piece.from_symbol(man))
        board.turn = rng.random() < 0.5
        if not board.is_valid() or board.is_game_over():
            continue
        engine.say(f"position fen {board.fen()}", "go nodes 600")
        while (line := engine.hear("")).startswith("info"):
            found = INFO.fullmatch(line)
            assert found, line
            if found["kind"] == "mate" and abs(int(found["score"])) <= 2:
                position, moves = after(board, chess.Move.from_uci(found["pv"].split()[0])), int(found["score"])
                won, lost = won + (moves > 0), lost + (moves < 0)
                assert is_mated(position, moves - 1) if moves > 0 else mates(position, -moves), line
    engine.close()
