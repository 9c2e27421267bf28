"""What files say besides moves, on the board in a browser: komi, comments, marks, glyphs, names; and what goes out."""

import base64
import io
import json
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import chess
import chess.pgn
import pytest
from selenium.webdriver.common.keys import Keys
from sgfmill import sgf

from azpy.serving.models import open_model
from browser import Board, needs_browser
from served import site_of
from training_runs import collect

pytest_plugins = ["browser"]
pytestmark = needs_browser

SGF = (
    "(;GM[1]SZ[5]KM[0.5]HA[2]AB[bb][dd]PB[Ann]BR[3d]PW[Ben]RE[B+0.5]EV[Cup]DT[2026-05-01]C[A start.]"
    ";W[cc]C[Good\\] here]LB[aa:1][ee:x]TR[bb]SQ[cc]CR[dd]MA[ed](;B[];W[]TW[aa])(;B[cd]))"
)
PGN = """[Event "Open"]
[White "Ann"]
[Black "Ben"]
[Result "0-1"]
[WhiteElo "2500"]
[ECO "A00"]

{Before.} 1. f3?! {Weak [%csl Re1][%cal Rd8h4].} e5 (1... d5 $1 {Better.}) 2. g4?? Qh4# 0-1
"""


def shapes(board: Board) -> list[str]:
    return sorted(mark.get_attribute("class").removeprefix("noted ") for mark in board.all("#overlay .noted"))


def test_an_sgf_keeps_its_komi_and_all_that_it_says(board: Board, address: str, saved: Path) -> None:
    board.open(address, "go")
    assert board.load(SGF) == ""
    board.until(lambda: board.tree == ["C3", "pass", ["C2"], "pass"])
    board.until(lambda: board.one("status").text == "Black wins by 0.5.")
    sides = [board.one(f"side_{player}").text for player in (0, 1)]
    assert "Ann (3d)" in sides[0]
    assert "Ben" in sides[1]
    assert "+0.5" in sides[0]
    assert board.one("headers").text == "handicap 2 · Cup · 2026-05-01 · komi 0.5 · result B+0.5"
    board.one("first").click()
    board.until(lambda: board.one("comment").get_attribute("value") == "A start.")
    board.one("on").click()
    board.until(lambda: shapes(board) == ["circle", "cross", "label", "label", "square", "triangle"])
    assert board.one("comment").get_attribute("value") == "Good] here"
    board.one("comment").send_keys(Keys.END, "!")
    file = saved / "go_size_5_komi_7_5_superko_1.sgf"
    game = sgf.Sgf_game.from_string(board.save(file))
    root, main = game.get_root(), game.get_main_sequence()
    assert (game.get_komi(), game.get_handicap(), root.get("C")) == (0.5, 2, "A start.")
    assert [root.get(name) for name in ("PB", "PW", "RE", "EV", "DT", "BR")] == [
        *("Ann", "Ben", "B+0.5", "Cup", "2026-05-01", "3d")
    ]
    # sgfmill has rows from the bottom.
    assert (main[1].get("C"), main[1].get("LB")) == ("Good] here!", [((4, 0), "1"), ((0, 4), "x")])
    assert [main[1].get(name) for name in ("TR", "SQ", "CR", "MA")] == [{(3, 1)}, {(2, 2)}, {(1, 3)}, {(1, 4)}]
    assert len(main[1]) == 2
    board.driver.refresh()
    board.until(lambda: board.one("comment").get_attribute("value") == "Good] here!")  # the browser kept it
    # Hints search with the game's komi.
    board.one("hints").click()
    board.until(lambda: board.all("#candidates tr"))
    board.one("hints").click()


def test_a_pgn_keeps_its_comments_glyphs_and_headers(board: Board, address: str, saved: Path) -> None:
    board.open(address, "chess")
    assert board.load(PGN) == ""
    board.until(lambda: board.one("status").text == "Black wins by checkmate.")
    assert "Ann (2500)" in board.one("side_0").text
    assert board.one("score_1").text == "1"
    assert board.one("headers").text == "Open · result 0-1"
    assert board.rows == ["1. f3 ?! e5", "1… d5 !", "2. g4 ?? Qh4#"]
    board.one("first").click()
    board.until(lambda: board.one("comment").get_attribute("value") == "Before.")
    board.one("on").click()
    board.until(lambda: shapes(board) == ["arrow", "circle"])
    text = board.save(saved / "chess.pgn")
    ours, theirs = (chess.pgn.read_game(io.StringIO(one)) for one in (text, PGN))
    assert ours is not None
    assert theirs is not None
    assert {name: ours.headers[name] for name in theirs.headers} == dict(theirs.headers)
    assert str(ours.accept(chess.pgn.StringExporter(headers=False))) == str(
        theirs.accept(chess.pgn.StringExporter(headers=False))
    )


def is_loaded(board: Board, text: str) -> bool:
    return bool(board.one("load_text").get_attribute("value") == text)


def test_files_in_other_encodings_keep_names_and_moves(board: Board, address: str, tmp_path: Path) -> None:
    board.open(address, "go")
    board.one("open_load").click()
    for encoding, stated, letters in (
        ("utf-16", "", "表示能力ソ"),
        ("shift_jis", "", "表示能力ソ"),
        ("shift_jis", "CA[Shift_JIS]", "ソ"),
        ("big5", "", "許功蓋"),
        ("windows-1251", "CA[windows-1251]", "Иванов"),
        ("latin-1", "", "Réti"),
    ):
        text = f"(;{stated}SZ[5]PB[{letters}];B[cc];W[dd])"
        (tmp_path / "game.sgf").write_bytes(text.encode(encoding))
        board.one("load_file").send_keys(str(tmp_path / "game.sgf"))
        board.until(partial(is_loaded, board, text))
        board.script("document.getElementById('load_file').value = ''")
    board.one("load_cancel").click()


def pasted(board: Board) -> str:
    """What is on the clipboard."""
    board.one("open_load").click()
    board.one("load_text").clear()
    board.one("load_text").send_keys(Keys.CONTROL, "v")
    found = str(board.one("load_text").get_attribute("value"))
    board.one("load_text").clear()
    board.one("load_cancel").click()
    return found


MANY_PGN = """[White "Ann"] [Result "1-0"]

{[White "no tag"] 1-0 *} 1. e4 (1. d4 d5 *) 1... e5 ; 0-1
1-0

[Event "Cup"]
[White "Cat \\"C\\""]
[Black "Dan"]
1. c4 1/2-1/2[White "?"] [Black "Eve"] 1. f4 *
"""
MANY_SGF = "(;GM[1]SZ[5]PB[A\\]n]C[)(;];B[aa](;W[bb])(;W[cc]))\n(;GM[1]SZ[5]PW[Ben]RE[W+R];B[ee];W[dd])(;SZ[5];B[])"


def load_nothing(board: Board) -> str:
    """What is said of an empty text."""
    board.one("open_load").click()
    board.one("load_text").clear()
    board.all("#load_form .main")[0].click()
    board.until(lambda: "cannot" in board.one("load_said").text)
    said = str(board.one("load_said").text)
    assert "undefined" not in said
    board.one("load_cancel").click()
    return said


@pytest.mark.parametrize(
    ("game", "text", "names", "tree", "first"),
    [
        (
            *("chess", MANY_PGN),
            ["1. Ann against ?, 1-0", '2. Cat "C" against Dan, Cup', "3. ? against Eve"],
            *(["c4"], "c2c4"),
        ),
        (
            *("go", MANY_SGF),
            ["1. A]n against ?", "2. ? against Ben, W+R", "3. ? against ?"],
            *(["E1", "D2"], "E1"),
        ),
    ],
)
def test_of_a_file_of_many_games_one_is_chosen(
    game: str, text: str, names: list[str], tree: list[str], first: str, board: Board, address: str
) -> None:
    """The server refuses such a text: the page splits it, and lists the games."""
    board.open(address, game)
    assert "cannot be loaded: " in (nothing := load_nothing(board))
    board.one("open_load").click()
    board.script("document.getElementById('load_text').value = arguments[0]", text)
    board.all("#load_form .main")[0].click()
    board.until(lambda: "There are 3 games: choose one" in board.one("load_said").text)
    assert [option.text for option in board.all("#load_game option")] == names
    board.all("#load_game option")[1].click()
    board.all("#load_form .main")[0].click()
    board.until(lambda: not board.one("load").is_displayed())
    board.until(lambda: board.tree == tree)
    assert board.load(json.dumps({"nodes": [[-1, first]], "about": "one game: 1-0 * (;)"})) == ""
    board.one("open_load").click()
    assert not board.one("load_which").is_displayed()
    board.one("load_cancel").click()
    assert load_nothing(board) == nothing


@pytest.mark.parametrize(("clock", "told"), [("", "-"), ("3+2", "180+2"), ("10/5x30", None)])
def test_a_game_that_is_played_here_says_who_and_when(
    clock: str, told: str | None, board: Board, address: str, saved: Path
) -> None:
    board.open(address, "chess")
    board.choose("clock", clock)
    board.click("e2", "e4")
    text = board.save(saved / "chess.pgn")
    assert '[Termination "unterminated"]' in text
    board.one("resign").click()
    board.until(lambda: board.state == "over")
    game = chess.pgn.read_game(io.StringIO(board.save(saved / "chess.pgn")))
    assert game is not None
    names = ("White", "Black", "Date", "TimeControl", "Termination", "Result")
    today = f"{datetime.now().astimezone():%Y.%m.%d}"
    assert [game.headers.get(name) for name in names] == ["person", "chess", today, told, "normal", "0-1"]


def told(
    board: Board, saved: Path, *names: str, name: str = "go_size_5_komi_7_5_superko_1.sgf"
) -> list[str | float | None]:
    """What the saved game of Go says of itself; None for what it does not say."""
    root = sgf.Sgf_game.from_string(board.save(saved / name)).get_root()
    names = names or ("PB", "PW", "DT", "TM", "OT")
    return [root.get(one) if root.has_property(one) else None for one in names]


def test_a_game_of_go_that_is_played_here_says_who_and_when(board: Board, address: str, saved: Path) -> None:
    """With the day of its first move, also on a later day and after another game."""
    board.open(address, "go")
    board.choose("clock", "10/5x30")
    board.script("const now = Date.now; Date.now = () => now() - 3 * 864e5")
    board.click("C3")
    begun = datetime.now().astimezone() - timedelta(days=3)
    board.driver.refresh()
    board.until(lambda: board.moves[:1] == ["C3"])
    board.one("new").click()
    board.until(lambda: board.moves == [])
    board.one("undo").click()
    board.until(lambda: board.moves[:1] == ["C3"])
    assert told(board, saved) == ["person", "go", f"{begun:%Y-%m-%d}", 600, "5x30 byo-yomi"]


@pytest.mark.parametrize("komi", [375, -3.5])
def test_a_handicap_and_a_komi_are_written_with_who_plays(komi: float, board: Board, saved: Path) -> None:
    with site_of({"go": open_model("uniform:5", "go(size=9)", 5)}) as address:
        board.open(address, "go")
        board.choose("handicap", "2")
        board.enter("komi", f"{komi}")
        board.one("new").click()
        board.until(lambda: board.one("headers").text == f"handicap 2 · komi {komi:g}")
        today = f"{datetime.now().astimezone():%Y-%m-%d}"
        assert told(board, saved, "PB", "PW", "DT", "HA", "KM", name="go.sgf") == ["person", "go", today, 2, komi]
        board.driver.get("about:blank")


def test_a_game_that_came_from_elsewhere_says_nothing_of_players_here(
    board: Board, saved: Path, tmp_path: Path
) -> None:
    run = collect(tmp_path / "run", "go(size=5)", iterations=1)
    with site_of({"go": open_model("uniform:5", "go(size=5)", 5)}, run=run) as address:
        board.open(address, "go")
        board.choose("clock", "10/5x30")
        assert board.load("C3") == ""
        assert told(board, saved) == [None] * 5
        board.one("open_archive").click()
        board.until(lambda: board.all("#archive_games button"))
        board.all("#archive_games button")[0].click()
        board.until(lambda: not board.one("archive").is_displayed())
        board.settle()
        assert told(board, saved) == [None] * 5
        board.driver.get("about:blank")


def test_a_position_of_chess_goes_out_as_fen_and_as_a_picture(board: Board, address: str, saved: Path) -> None:
    board.open(address, "chess")
    board.choose("player_1", "")
    board.click("e2", "e4")
    board.click("c7", "c5")
    board.one("open_save").click()
    position = chess.Board()
    for move in ("e4", "c5"):
        position.push_san(move)
    assert board.one("save_position").get_attribute("value") == position.fen(en_passant="fen")
    assert chess.Board(board.one("save_position").get_attribute("value")).is_valid()
    names = []
    for id_ in ("copy_position", "copy_game"):
        board.one(id_).click()
        board.until(lambda: "clipboard" in board.one("save_said").text)
        board.one("save_cancel").click()
        names.append(pasted(board))
        board.one("open_save").click()
    assert names[0] == position.fen(en_passant="fen")
    assert "1. e4 c5" in names[1]
    for id_, name in (("save_svg", "chess.svg"), ("save_png", "chess.png")):
        board.one(id_).click()
        board.until((saved / name).exists)
    board.one("save_cancel").click()
    assert "<svg" in (saved / "chess.svg").read_text()
    assert (saved / "chess.png").read_bytes().startswith(base64.b64decode("iVBORw0KGgo="))


def test_nothing_of_a_game_is_lost(board: Board, address: str, saved: Path) -> None:
    """Where the server refuses for once, before it answers, after a resignation, and beside another tab."""
    board.open(address, "go")
    board.choose("player_1", "")
    board.choose("clock", "5")
    for place in ("C3", "C2"):
        board.click(place)
    board.one("comment").send_keys("of white")
    refuse = """
        window.sent ??= WebSocket.prototype.send;
        const [from, to] = arguments;
        WebSocket.prototype.send = function (text) { window.sent.call(this, text.replace(from, to)); };
    """
    board.script(refuse, '"show"', '"shows"')
    board.places()["D3"].click()
    board.until(lambda: "cannot be shown" in board.one("problem_text").text)
    assert (board.moves, board.ply) == (["C3", "C2", "D3"], 2)
    # While it loads, what is said of another position is not seen, and what is said is of it.
    board.script(refuse, '"id"', '"later"')
    board.one("on").click()
    assert board.one("comment").get_attribute("value") == ""
    board.one("comment").send_keys("of black")
    board.one("new").click()
    board.script("WebSocket.prototype.send = window.sent")
    board.driver.refresh()
    board.until(lambda: board.state == "open")
    board.one("undo").click()
    board.settle(3)
    assert board.moves == ["C3", "C2", "D3"]
    assert board.one("comment").get_attribute("value") == "of black"
    board.one("back").click()
    board.until(lambda: board.one("comment").get_attribute("value") == "of white")
    board.one("last").click()
    board.settle(3)
    # A lost game stays lost, and its file says so.
    board.one("resign").click()
    board.until(lambda: board.state == "over")
    board.one("back").click()
    board.settle()
    board.driver.refresh()
    board.until(lambda: board.moves == ["C3", "C2", "D3"])
    board.one("last").click()
    board.until(lambda: board.one("status").text == "Black wins by resignation.")
    assert "RE[B+R]" in board.save(saved / "go_size_5_komi_7_5_superko_1.sgf")
    board.one("undo").click()
    board.until(lambda: board.state == "open")
    board.script("const now = performance.now.bind(performance); performance.now = () => now() + 300000")
    board.until(lambda: board.one("status").text == "Black wins on time.")
    board.one("undo").click()
    board.until(lambda: board.one("status").text == "White to move.")
    assert board.one("clock_1").text.startswith(("5:00", "4:5"))
    # Another tab's game goes to those before.
    first = board.driver.current_window_handle
    board.driver.switch_to.new_window("tab")
    board.driver.get(f"http://{address}/")
    board.until(lambda: board.moves == ["C3", "C2", "D3"])
    board.one("new").click()
    board.until(lambda: board.moves == [])
    board.click("A1")
    second = board.driver.current_window_handle
    board.driver.switch_to.window(first)
    board.click("B2")
    board.one("open_archive").click()
    assert len(board.all("#games_before button")) == 1
    board.one("archive_cancel").click()
    board.driver.switch_to.window(second)
    board.driver.close()
    board.driver.switch_to.window(first)
