"""UCI's options: several players, Chess960, levels, and what `info` says."""

import dataclasses
import io
import itertools
import random
import re
from collections.abc import Iterator, Sequence

import chess
import chess.engine
import numpy as np
import pytest
from numpy.typing import NDArray

from azpy.errors import SettingsError
from azpy.serving.lines import Conversation
from azpy.serving.models import Served, open_player
from azpy.serving.uci import Uci
from talks import COMMAND, Talk
from test_json_lines import client_of
from uci_talks import all_heard, answers, talk, talk_to

CHESS = [*COMMAND, "uniform:20", "--protocol", "uci", "--game"]
STARTS = [518, 356, 959, 3]  # of Chess960; in the last one castling is legal at once


# Several players --------------------------------------------------------------------------------------------------


def players(*names: str, game: str = "chess") -> dict[str, Served]:
    return {name: open_player(f"uniform:{7 + index}", game, 100) for index, name in enumerate(names)}


def test_one_player_is_not_chosen() -> None:
    engine = talk("uniform:20", "chess", "uci")
    engine.say("uci", "setoption name Model value player")
    engine.close()
    assert not [line for line in engine.heard if "Model" in line and "option name" in line]
    assert answers(engine.heard, "info string error: there is no option 'Model'")


def test_the_player_that_is_chosen_plays_from_the_next_search_on() -> None:
    engine = talk_to(players("first", "second", "third"))
    engine.say("uci")
    assert (
        engine.hear("option name Model") == "option name Model type combo default first var first var second var third"
    )
    for model, nodes in (("", 7), ("SECOND", 8), ("second", 8), ("third", 9), ("first", 7)):
        engine.say(*([f"setoption name model value {model}"] if model else []), "ucinewgame", "go")
        assert f" nodes {nodes} " in engine.hear("info depth")
        engine.hear("bestmove")
    engine.say("uci", "setoption name Model value fourth")
    assert "expected one of first, second, third, got 'fourth'" in engine.hear("info string error")
    engine.say("go infinite", "setoption name Model value second", "go")
    engine.hear("bestmove")
    assert " nodes 8 " in engine.hear("info depth"), "another engine has another tree"
    engine.close()


def test_names_of_players_never_break_the_line() -> None:
    names = ["a b", "a_b", "A B", "default", "x var y", "name\nvalue", "value", "<empty>", "\udcff", "", "min", "é"]
    engine = talk_to(players(*names))
    engine.say("uci")
    line = engine.hear("option name Model")
    words = line.removeprefix("option name Model type combo default ").split(" ")
    assert words[1::2] == ["var"] * len(names)
    labels = words[2::2]
    assert labels[:5] == ["a_b", "a_b_", "A_B__", "default_", "x_var_y"]
    assert len({label.lower() for label in labels}) == len(names)
    assert not {label.lower() for label in labels} & {
        "var",
        "default",
        "name",
        "value",
        "min",
        "max",
        "type",
        "<empty>",
    }
    for index, label in enumerate(labels):
        engine.say(f"setoption name Model value {label}", "ucinewgame", "go")
        assert f" nodes {7 + index} " in engine.hear("info depth")
    engine.close()
    assert not answers(engine.heard, "info string error")


def test_python_chess_chooses_a_player() -> None:
    more = ["--model", "weak one=uniform:3", "--model", "var=uniform:4"]
    with chess.engine.SimpleEngine.popen_uci([*CHESS, "chess", *more]) as engine:
        assert engine.options["Model"].var == ["uniform", "weak_one", "var_"]
        for name, nodes in (("weak_one", 3), ("var_", 4), ("uniform", 20)):
            engine.configure({"Model": name})
            assert engine.analyse(chess.Board(), chess.engine.Limit(depth=1), game=object())["nodes"] == nodes


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
    uci = Uci(players("one"), Conversation(io.BytesIO(), io.StringIO()))
    found = uci._limits(said, players("one")["one"].start)
    assert found == (simulations, None if seconds is None else pytest.approx(seconds))


def test_ugi_refuses_players_of_different_games() -> None:
    models = {**players("hex", game="hex(size=5)"), **players("chess")}
    with pytest.raises(SettingsError, match=r"one game at a time; hex plays hex.* and chess plays chess"):
        Uci(models, Conversation(io.BytesIO(), io.StringIO()), "ugi")
    engine = talk_to(players("a", "b", game="hex(size=5)"), "ugi")
    engine.say("ugi", "position startpos moves a1 b2", "setoption name Model value b", "go")
    engine.hear("option name Model")
    assert " nodes 8 " in engine.hear("info depth")
    assert engine.hear("bestmove").split()[1] not in {"a1", "b2"}
    engine.close()


@pytest.mark.parametrize("word", ["uci", "ugi"])
def test_a_number_out_of_range_is_clamped_with_a_line(word: str) -> None:
    heard = all_heard("uniform:20", "chess", word, word)
    spins = re.findall(r"option name (.*) type spin default \d+ min (\d+) max (\d+)", "\n".join(heard))
    assert {"Hash", "MultiPV", "Move Overhead", "UCI_Elo"} < {name for name, _, _ in spins}
    for name, low, high in spins:
        wrong = {int(low) - 1: low, int(high) + 1: high, 10**30: high, -(10**30): low}
        heard = all_heard("uniform:20", "chess", word, *(f"setoption name {name} value {one}" for one in wrong))
        expected = [f"option {name}: {str(one)[:20]} is out of range, so it is {used}" for one, used in wrong.items()]
        assert heard == [f"info string {line}" for line in expected]


# Chess960 ---------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("game", ["chess", "chess(chess960=100)", "chess(chess960=518)"])
@pytest.mark.parametrize("chess960", [False, True])
def test_castling_is_written_as_the_option_says(game: str, chess960: bool) -> None:
    engine = talk("uniform:20", game, "uci")
    engine.say(f"setoption name UCI_Chess960 value {str(chess960).lower()}")
    for side, moves in (("w", {"e1g1": "e1h1", "e1c1": "e1a1"}), ("b", {"e8g8": "e8h8", "e8c8": "e8a8"})):
        for standard, other in moves.items():
            ours, theirs = (other, standard) if chess960 else (standard, other)
            position = f"position fen r3k2r/p6p/8/8/8/8/P6P/R3K2R {side} KQkq - 0 1"
            engine.say(position, f"go nodes 3 searchmoves {ours}")
            assert f" pv {ours}" in engine.hear("info depth")
            assert engine.hear("bestmove").split()[1] == ours
            engine.say(f"{position} moves {ours}", "go nodes 3")
            board = chess.Board(position.removeprefix("position fen "), chess960=chess960)
            board.push_uci(ours)
            assert chess.Move.from_uci(engine.hear("bestmove").split()[1]) in board.legal_moves
            # What the option does not say is understood all the same.
            engine.say(f"{position} moves {theirs}", "go nodes 3")
            assert chess.Move.from_uci(engine.hear("bestmove").split()[1]) in board.legal_moves
            engine.say(position, f"go nodes 3 searchmoves {theirs}")
            assert engine.hear("bestmove").split()[1] == ours
    engine.close()
    assert not answers(engine.heard, "info string error")


@pytest.mark.parametrize("capitals", ["q", "r", "b", "n"])
def test_promotions_in_capitals_are_understood(capitals: str) -> None:
    engine = talk("uniform:20", "chess", "uci")
    for fen, move in (("7k/P6p/8/8/8/8/8/K7 w - - 0 1", "a7a8"), ("1r5k/P7/8/8/8/8/p7/2K5 b - - 0 1", "a2a1")):
        engine.say(f"position fen {fen}", f"go nodes 3 searchmoves {move}{capitals.upper()}")
        assert engine.hear("bestmove").split()[1] == move + capitals
        board = chess.Board(fen)
        board.push_uci(move + capitals)
        for written in (move + capitals.upper(), move.upper() + capitals):
            engine.say(f"position fen {fen} moves {written}", "go nodes 3")
            assert chess.Move.from_uci(engine.hear("bestmove").split()[1]) in board.legal_moves
    engine.close()
    assert not answers(engine.heard, "info string error")


@pytest.mark.parametrize("game", ["chess", "chess(chess960=100)"])
def test_a_rook_beside_the_king_is_castled_with_and_steps_of_the_king_are_steps(game: str) -> None:
    """The rooks stand on f1 and g1, so the squares of both ways to write a castling are those of other moves."""
    engine = talk("uniform:20", game, "uci")
    engine.say("setoption name UCI_Chess960 value true")
    for fen, move in [
        ("1k6/8/8/8/8/8/8/4KR2 w F - 0 1", "e1f1"),
        ("1k6/8/8/8/8/8/8/4K1R1 w G - 0 1", "e1g1"),
        ("6k1/8/8/8/8/8/8/R1K5 w A - 0 1", "c1a1"),
        ("1k6/8/8/8/8/8/8/5KR1 w - - 0 1", "f1e1"),
        ("1k6/8/8/8/8/8/8/4Q2K w - - 0 1", "e1g1"),
        ("1k6/8/8/8/8/8/8/4R2K w - - 0 1", "e1a1"),
    ]:
        engine.say(f"position fen {fen}", f"go nodes 3 searchmoves {move}")
        assert engine.hear("bestmove").split()[1] == move
        board = chess.Board(fen, chess960=True)
        board.push_uci(move)
        engine.say(f"position fen {fen} moves {move}", "go nodes 3")
        assert chess.Move.from_uci(engine.hear("bestmove").split()[1]) in board.legal_moves
    engine.close()
    assert not answers(engine.heard, "info string error")


def test_starts_of_chess960_need_the_option() -> None:
    fen = chess.Board.from_chess960_pos(100).fen()
    engine = talk("uniform:20", "chess", "uci")
    engine.say(f"position fen {fen}")
    assert "not where a standard game begins" in engine.hear("info string error")
    engine.say("setoption name UCI_Chess960 value true", f"position fen {fen}", "go nodes 3")
    move = chess.Move.from_uci(engine.hear("bestmove").split()[1])
    assert move in chess.Board(fen, chess960=True).legal_moves
    engine.close()


def test_startpos_is_the_start_of_standard_chess_for_every_player() -> None:
    engine = talk("uniform:20", "chess(chess960=100)", "uci")
    engine.say("uci", "go nodes 3", "position startpos moves e2e4 e7e5 g1f3", "go nodes 3", "ucinewgame", "go nodes 3")
    assert engine.hear("option name UCI_Chess960") == "option name UCI_Chess960 type check default true"
    board = chess.Board(chess960=True)
    assert chess.Move.from_uci(engine.hear("bestmove").split()[1]) in board.legal_moves
    for move in ("e2e4", "e7e5", "g1f3"):
        board.push_uci(move)
    assert chess.Move.from_uci(engine.hear("bestmove").split()[1]) in board.legal_moves
    assert chess.Move.from_uci(engine.hear("bestmove").split()[1]) in chess.Board().legal_moves
    engine.close()


# Levels -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def uci() -> Iterator[Talk]:
    engine = talk("uniform:100", "chess", "uci")
    yield engine
    engine.close()


@pytest.mark.parametrize("go", ["go", "go movetime 60000", "go nodes 5000", "go wtime 60000000 btime 60000000"])
def test_simulations_take_the_place_of_every_limit(uci: Talk, go: str) -> None:
    uci.say("setoption name Simulations value 13", go)
    assert " nodes 13 " in uci.hear("info depth")
    uci.say("ucinewgame", "setoption name Simulations value 0", "go nodes 9")
    assert " nodes 9 " in uci.hear("info depth")


def test_temperature_plays_other_moves_than_the_best_one(uci: Talk) -> None:
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


# What is said of a search -----------------------------------------------------------------------------------------


INFO = re.compile(
    r"info depth (?P<depth>\d+) seldepth (?P<seldepth>\d+) multipv \d+ score (?P<kind>cp|mate) (?P<score>-?\d+) "
    r"nodes (?P<nodes>\d+) nps (?P<nps>\d+) hashfull (?P<hashfull>\d+) time (?P<time>\d+) pv (?P<pv>.+)"
)


def test_the_longest_line_may_be_one_of_the_kept_tree() -> None:
    engine = talk("uniform:20", "chess", "uci")
    engine.say("setoption name MultiPV value 20", "position startpos moves f2f3 e7e5 g2g4", "go nodes 3000")
    engine.hear("bestmove")
    engine.say("go nodes 1")  # a simulation of one ply: it mates
    infos = list[tuple[int, int]]()
    while (line := engine.hear("")).startswith("info"):
        found = INFO.fullmatch(line)
        assert found is not None, line
        infos.append((int(found["depth"]), int(found["seldepth"])))
    engine.close()
    longest = max(depth for depth, _ in infos)
    assert infos[0] == (1, longest)
    assert longest > 1
    assert {seldepth for _, seldepth in infos} == {longest}


def first_moves(engine: Talk) -> tuple[list[str], str]:
    """The first moves of the lines that an answer tells, and the move that is played."""
    found = list[str]()
    while (line := engine.hear("")).startswith("info"):
        found.append(line.partition(" pv ")[2].split()[0])
    return found, line.split()[1]


def test_lines_are_in_the_order_of_json_that_of_the_move_played_first() -> None:
    player, game = "mcts:20?lcb=2", "connect_four"
    ugi, client = talk(player, game, "ugi"), client_of(game, player=player)
    for lines in (1, 5, 7):
        for simulations in (20, 60, 200):
            ugi.say("uginewgame", f"setoption name MultiPV value {lines}", f"go nodes {simulations}")
            moves, played = first_moves(ugi)
            answer = client.ask(simulations=simulations)
            assert moves == [one["move"] for one in answer["moveInfos"]][:lines]
            assert moves[0] == played == answer["move"]
    ugi.close()
    client.close()
    uci = talk("uniform:20?solver=true", "chess", "uci")
    uci.say("position fen 6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", "setoption name MultiPV value 3", "go nodes 300")
    moves, played = first_moves(uci)  # a mate in one, which few simulations try
    assert moves == [played, "a1a2", "a1a3"]
    assert played == "a1a8"
    uci.close()


def test_castling_may_have_capitals() -> None:
    engine = talk("uniform:20", "chess", "uci")
    for move in ("E1G1", "E1H1"):
        engine.say("position fen 4k3/8/8/8/8/8/8/4K2R w K - 0 1", f"go nodes 5 searchmoves {move}")
        assert engine.hear("bestmove").split()[1] == "e1g1"
    engine.close()


def test_the_time_is_that_since_go(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(100.0, 2.5)
    monkeypatch.setattr("azpy.serving.request.monotonic", lambda: next(clock))
    engine = talk("uniform:20", "chess", "uci")
    for _ in range(2):
        engine.say("go nodes 50")
        assert " nodes 50 nps 20 hashfull 0 time 2500 pv " in engine.hear("info depth")
    engine.close()


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


def mates(board: chess.Board, moves: int) -> bool:
    """Whether the player to move can mate in so many moves, by trying all."""
    for move in list(board.legal_moves):
        board.push(move)
        done = board.is_checkmate() or (
            moves > 1 and not board.is_stalemate() and all(answered(board, reply, moves) for reply in board.legal_moves)
        )
        board.pop()
        if done:
            return True
    return False


def answered(board: chess.Board, reply: chess.Move, moves: int) -> bool:
    board.push(reply)
    done = mates(board, moves - 1)
    board.pop()
    return done


def is_mated(board: chess.Board, moves: int) -> bool:
    """Whether the player to move is mated in so many moves of the opponent, whatever is played."""
    return all(answered(board, move, moves + 1) for move in list(board.legal_moves))


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


def test_a_mate_is_said_only_where_it_is_forced() -> None:
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
                after = board.copy()
                after.push_uci(found["pv"].split()[0])
                moves = int(found["score"])
                if moves > 0:
                    won += 1
                    assert after.is_checkmate() or is_mated(after, moves - 1), line
                else:
                    lost += 1
                    assert mates(after, -moves), line
    engine.close()


def test_without_the_solver_nothing_is_a_mate() -> None:
    engine = talk("uniform:20?solver=false", "chess", "uci")
    engine.say("position fen 7k/5Q2/6K1/8/8/8/8/8 w - - 0 1", "setoption name MultiPV value 9", "go nodes 3000")
    engine.hear("bestmove")
    engine.say("go nodes 9")
    engine.close()
    assert answers(engine.heard, "info depth")
    assert not [line for line in engine.heard if " mate " in line]
