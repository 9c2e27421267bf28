"""Files of games as the world has them: what is read is what python-chess and sgfmill read, and what cannot be read is
left out with its reason."""

import gzip
import io
import random
from pathlib import Path
from typing import Any

import chess
import chess.pgn
import pytest
import zstandard
from sgfmill import sgf, sgf_moves

from azpy._core import PLAYED, GameReader
from azpy.cli import train
from azpy.games.lines import replayed
from azpy.games.notations import decoded
from azpy.runs.imports import Filters, import_games
from game_texts import CHESS, GO, LINE, sgf_game
from talks import talk_with


def pgn_game(rng: random.Random, plies: int, **tags: str) -> str:
    """A random game as python-chess writes it, with comments and a variation."""
    game, board = chess.pgn.Game(), chess.Board()
    node: Any = game
    for _ in range(plies):
        moves = list(board.legal_moves)
        if board.is_game_over(claim_draw=True) or not moves:
            break
        move = rng.choice(moves)
        if rng.random() < 0.1 and len(moves) > 1:
            node.add_variation(rng.choice([other for other in moves if other != move]), comment="aside")
            node = node.add_main_variation(move)
        else:
            node = node.add_main_variation(move)
        node.comment = "[%clk 0:01:00]" if rng.random() < 0.3 else ""
        board.push(move)
    result = board.result(claim_draw=True)
    game.headers["Result"] = result if result != "*" else rng.choice(["1-0", "0-1", "1/2-1/2"])
    game.headers.update(tags)
    return f"{game}\n\n"


def test_moves_and_results_of_pgn_are_those_of_python_chess() -> None:
    rng = random.Random(1)
    text = "".join(pgn_game(rng, rng.randrange(8, 120)) for _ in range(30))
    stream, compared = io.StringIO(text), 0
    for read in GameReader(CHESS, text):
        other = chess.pgn.read_game(stream)
        assert other is not None
        assert read.tags == dict(other.headers)
        assert read.result == other.headers["Result"]
        assert read.actions is not None, read.why
        names = [state.action_name(a) for a, state in zip(read.actions, replayed(CHESS, read.actions), strict=False)]
        assert names == [move.uci() for move in other.mainline_moves()]
        outcome = other.end().board().outcome(claim_draw=True)
        if outcome is not None and read.outcome is not None:
            assert read.outcome == {True: 1.0, False: -1.0, None: 0.0}[outcome.winner]
        compared += 1
    assert compared == 30
    assert chess.pgn.read_game(stream) is None


def test_moves_and_results_of_sgf_are_those_of_sgfmill() -> None:
    rng = random.Random(2)
    texts = []
    for _ in range(40):
        state = GO.clone()
        while not state.is_terminal and rng.random() > 0.02:
            state.play(rng.choice(state.legal_actions()))
        result = "B+R" if not state.is_terminal else ""
        texts.append(state.to_text().replace("SZ[", f"RE[{result}]SZ[" if result else "SZ[", 1))
    read = list(GameReader(GO, "\n".join(texts)))
    assert len(read) == len(texts)
    for game, text in zip(read, texts, strict=True):
        other = sgf.Sgf_game.from_string(text)
        _, plays = sgf_moves.get_setup_and_moves(other)
        points = [25 if point is None else (4 - point[0]) * 5 + point[1] for _, point in plays]
        assert game.actions == points
        winner = {"b": 1.0, "w": -1.0}[other.get_winner()]
        assert game.outcome in (None, winner)


LONG, MATE = "e4 c5 Nf3 d6 d4 cxd4 Nxd4 Nf6 Nc3 a6", "f3 e5 g4 Qh4#"
REPEATED = "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1 Ng8"
OTHER = "e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6 O-O Be7"
RATED = {"WhiteElo": "2100", "BlackElo": "2200"}


def tagged(moves: str, result: str = "1-0", **tags: str) -> str:
    lines = [f'[{name} "{value}"]' for name, value in ({"Event": "?", "Result": result} | RATED | tags).items()]
    return "\n".join([*lines, "", f"{moves} {result}", "", ""])


@pytest.mark.parametrize(
    ("game", "reason"),
    [
        (tagged(LONG), None),
        (tagged(OTHER), "duplicate"),
        (tagged(LONG, Variant="Atomic"), "variant"),
        (tagged("Rh8+", SetUp="1", FEN="4k3/8/8/8/8/8/8/4K2R w K - 0 1"), "start"),
        (tagged("e4 e5 Ke3"), "action"),
        (tagged(f"{MATE} e4", "0-1"), "after end"),
        (tagged(LONG, "*"), "result"),
        (tagged(LONG, Termination="time forfeit"), "forfeit"),
        (tagged(MATE), "contradiction"),
        (tagged(MATE, "0-1"), None),
        (tagged("e4 e5"), "short"),
        (tagged(LONG, BlackElo="1999"), "rating"),
        (tagged(LONG, BlackElo=""), "rating"),
        *((tagged(LONG, TimeControl=control), "time") for control in ("60+0", "120+1")),
        *((tagged(LONG, TimeControl=control), None) for control in ("120+2", "600+0")),
    ],
)
def test_each_skipped_pgn_game_has_its_reason(tmp_path: Path, game: str, reason: str | None) -> None:
    path = tmp_path / "games.pgn"
    path.write_text(tagged(OTHER) + game)
    found = import_games([str(path)], CHESS, 7, Filters(2000, 180))
    assert found.left_out == ({} if reason is None else {reason: 1})
    assert (found.found, len(found.records)) == (2, 2 - (reason is not None))
    for number, record in enumerate(found.records):
        assert (record.game_id, record.seed, record.imported) == (number, 7, True)
        assert (record.flags == PLAYED).all()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (sgf_game(LINE), None),
        (sgf_game(LINE, "W+12.5"), None),
        (sgf_game(LINE, "Draw"), None),
        (sgf_game(LINE, "Void"), "result"),
        (sgf_game(LINE, ""), "result"),
        (sgf_game(LINE, "B+T"), "forfeit"),
        (sgf_game(LINE, "W+Forfeit"), "forfeit"),
        (sgf_game(LINE, size=9), "size"),
        (sgf_game(LINE).replace("7.5", "6.5"), "komi"),
        (sgf_game(LINE, extra="HA[2]AB[aa][ee]"), "start"),
        (sgf_game(LINE).replace(";B[cc]", ""), "start"),
        (sgf_game("cccc"), "action"),
        (sgf_game("----cc"), "after end"),
        (sgf_game("cc----", "B+17.5"), None),
        (sgf_game("cc----", "W+R"), "contradiction"),
        (sgf_game("ccbb"), "short"),
        (sgf_game(LINE, extra="TM[60]"), "time"),
        (sgf_game(LINE, extra="TM[60]OT[5x30 byo-yomi]"), None),
    ],
)
def test_each_skipped_sgf_game_has_its_reason(tmp_path: Path, text: str, reason: str | None) -> None:
    path = tmp_path / "one.sgf"
    path.write_text(sgf_game("aabbccddeeaebdcbdaca") + text)
    found = import_games([str(path)], GO, 0, Filters(None, 180))
    assert dict(found.left_out) == ({} if reason is None else {reason: 1})
    assert len(found.records) == 2 - (reason is not None)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.sgf", b"", "holds no game"),
        ("a.sgf", sgf_game(LINE)[:-9].encode(), "line 1: a value of B lacks its closing ]"),
        ("a.sgf", sgf_game(LINE).replace("GM[1]", "GM[2]").encode(), "GM[2] is another game"),
        ("a.sgf", bytes(range(256)) * 8, "is not text"),
        ("a.sgf", b"(" * 1_000_000, "holds no game"),
        ("a.sgf", b"(;GM[1]" * 20_000, "another game begins before the last ) of this one"),
        ("a.sgf", b"x" * 5_000_000, "holds no game"),
        ("a.pgn", b'[Result "1-0"]\n\n1. e4 1-0\n', "which are read from SGF"),
        ("a.npz", b"PK\x03\x04 and no more", "is damaged"),
        ("a.npz", None, "cannot be used: No such file"),
        ("a.sgf.gz", gzip.compress(sgf_game(LINE).encode())[:-20], "is damaged"),
        ("a.sgf.zst", zstandard.compress(sgf_game(LINE).encode())[:-20], "holds no game"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # packed bytes have the time in them
)
def test_a_bad_file_is_one_line_and_leaves_nothing(
    tmp_path: Path, one_line: Any, name: str, data: bytes | None, said: str
) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    line = one_line(train.main, ["go(size=5)", "--out", str(tmp_path / "run"), "--supervised", str(path)], "az-train: ")
    assert said in line
    assert str(path) in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("tag", "behind", "moves", "reason"),
    [
        ("1-0", "1-0", LONG, None),
        ("1-0", "0-1", LONG, "result"),
        ("0-1", "1-0", LONG, "result"),
        ("1-0", "1/2-1/2", LONG, "result"),
        ("1-0", "*", LONG, "result"),
        ("*", "1-0", LONG, "result"),
        ("White won", "1-0", LONG, "result"),
        (None, "1-0", LONG, None),
        (None, "*", LONG, "result"),
        ("1/2", "1/2-1/2", LONG, None),
        ("1/2-1/2", "½-½", LONG, None),
        ("1-0", "1\u20130", LONG, None),
        ("0-1", "0-1", MATE, None),
        ("1-0", "1-0", MATE, "contradiction"),
        ("1/2-1/2", "1/2-1/2", MATE, "contradiction"),
        (None, "1-0", MATE, "contradiction"),
        ("1/2-1/2", "1/2-1/2", REPEATED, None),
        ("1-0", "1-0", REPEATED, "contradiction"),
    ],
)
def test_a_game_with_a_contradicted_result_is_skipped(
    tmp_path: Path, tag: str | None, behind: str, moves: str, reason: str | None
) -> None:
    head = "" if tag is None else f'[Result "{tag}"]\n\n'
    (tmp_path / "a.pgn").write_text(f'[Event "?"]\n\n{OTHER} 1/2-1/2\n\n[Event "?"]\n{head}\n{moves} {behind}\n')
    found = import_games([str(tmp_path / "a.pgn")], CHESS, 0, Filters())
    assert found.left_out == ({} if reason is None else {reason: 1})
    if reason is None:
        wins = {"1-0": 1.0, "1\u20130": 1.0, "0-1": -1.0}
        assert [record.outcome for record in found.records] == [0.0, wins.get(behind, 0.0)]


def test_a_cut_pgn_is_skipped() -> None:
    games = list(GameReader(CHESS, "1. e4 e5 1-0\n\n1. d4 d5 2. c4 1/2-"))
    assert [(game.line, game.unfit) for game in games] == [(1, None), (3, "text")]
    assert games[1].why is not None
    assert "the last game lacks a result" in games[1].why


@pytest.mark.parametrize(
    ("text", "number", "stones"),
    [
        # The root has the first move, in front of the size and the komi or behind them.
        ("(;GM[1]SZ[9]KM[6.5]B[aa];W[bb])", 1, ""),
        ("(;B[aa]GM[1]SZ[9]KM[6.5];W[bb])", 1, ""),
        ("(;B[aa]GM[1]SZ[9]KM[6.5];W[bb])", 2, "b"),
        ("(;GM[1]SZ[9]KM[6.5]AB[ee]W[aa];B[bb])", 1, "b"),
        # A color plays twice, before that move and behind it, and an illegal move behind it.
        ("(;SZ[9];B[aa];B[bb];B[cc];W[dd];B[dd])", 2, "b"),
        ("(;SZ[9];B[aa];B[bb];B[cc];W[dd];B[dd])", 3, "bb"),
        ("(;SZ[9];B[aa];B[bb];B[cc];W[dd];B[dd])", 5, "bbbw"),
        ("(;SZ[9];B[aa](;W[bb](;B[cc])(;B[dd];W[ee]))(;W[ff]))", 3, "bw"),
        ("(;SZ[9];B[aa];W[bb];AE[aa]AW[cc];B[dd])", 3, "ww"),
        ("(;SZ[9];B[aa];W[bb])", 99, "bw"),
    ],
)
def test_a_file_is_loaded_up_to_the_move_of_its_number(tmp_path: Path, text: str, number: int, stones: str) -> None:
    path = tmp_path / "game.sgf"
    path.write_text(text)
    with talk_with(player="go(size=9)") as talk:
        assert talk.ask(f"loadsgf {path} {number}") == "="
        shown = talk.ask("showboard")
    rows = [line.split()[1:10] for line in shown.splitlines() if line.strip()[:1].isdigit()]
    assert sorted(mark for row in rows for mark in row if mark in "xo") == sorted(
        stones.translate(str.maketrans("bw", "xo"))
    )


@pytest.mark.parametrize(
    "name", ["utf-8", "utf-8-sig", "utf-16", "gb2312", "gbk", "big5", "shift_jis", "euc-kr", "latin-1", "punycode"]
)
def test_names_in_any_encoding_are_read_and_spoil_no_move(name: str) -> None:
    letters = {
        "big5": "功許蓋",
        "shift_jis": "ソ表能",
        "euc-kr": "이세돌",
        "latin-1": "Günther",
        "gb2312": "朱镕基㐀",
    }.get(name, "柯洁")
    text = f"(;CA[{name}]GM[1]SZ[5]KM[7.5]PB[{letters}];B[cc];W[dd])"
    # Files that say GB2312 have letters of its successor GB18030 too.
    data = text.encode({"punycode": "utf-8", "gb2312": "gb18030"}.get(name, name))
    (game,) = GameReader(GO, decoded(data))
    assert game.actions == [12, 18]
    assert game.tags["PB"] == letters
    (game,) = GameReader(GO, decoded(text.encode("utf-8").replace(letters.encode(), b"\xff\xfe ")))
    assert game.actions == [12, 18]


@pytest.mark.parametrize(
    ("name", "letters", "is_known"),
    [
        # A name or a comment ends in the byte of a backslash, or of a bracket.
        ("shift_jis", "表示能力ソ", True),
        ("shift_jis", "人工頭脳", True),
        ("big5", "許功蓋", True),
        ("big5", "成功", True),
        ("cp949", "조훈현", False),
        ("gb18030", "古力", False),
        ("cp1251", "Иванов", False),
        ("cp1252", "“très chargé”", False),
        ("latin-1", "João Conceição é", True),
    ],
)
def test_an_encoding_that_is_not_named_spoils_no_move(name: str, letters: str, is_known: bool) -> None:
    text = f"(;GM[1]SZ[5]KM[7.5]PB[{letters}]PW[{letters}]C[{letters}];B[cc]C[{letters}];W[dd])"
    (game,) = GameReader(GO, decoded(text.encode(name)))
    assert game.actions == [12, 18]
    assert (game.tags["PB"] == letters) == is_known
