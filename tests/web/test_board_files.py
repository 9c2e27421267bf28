"""What files say besides moves, on the board in a browser: komi, comments, marks, glyphs, names; and what goes out."""

import base64
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import chess
import chess.pgn
from selenium.webdriver.common.keys import Keys
from sgfmill import sgf

from azpy.serving.models import open_model
from browser import Board, needs_browser
from training_runs import collect

pytest_plugins = ["browser"]
pytestmark = needs_browser


def is_loaded(board: Board, text: str) -> bool:
    return bool(board.one("load_text").get_attribute("value") == text)


def test_files_in_other_encodings_keep_names_and_moves(board: Board, address: str, tmp_path: Path) -> None:
    board.open(address, "go")
    board.unfold("open_load").click()
    for number, (encoding, stated, letters) in enumerate(
        (
            ("utf-16", "", "表示能力ソ"),
            ("shift_jis", "CA[Shift_JIS]", "ソ"),
            ("big5", "CA[Big5]", "許功蓋"),
            ("windows-1251", "CA[windows-1251]", "Иванов"),
            ("latin-1", "", "Réti"),
        )
    ):
        text = f"(;{stated}SZ[5]PB[{letters}];B[cc];W[dd])"
        (tmp_path / f"{number}.sgf").write_bytes(text.encode(encoding))  # the page may still read the one before
        board.one("load_file").send_keys(str(tmp_path / f"{number}.sgf"))
        board.until(partial(is_loaded, board, text))
        board.script("document.getElementById('load_file').value = ''")
    board.one("load_cancel").click()


def pasted(board: Board) -> str:
    """What is on the clipboard."""
    board.unfold("open_load").click()
    board.one("load_text").clear()
    board.one("load_text").send_keys(Keys.CONTROL, "v")
    found = str(board.until(lambda: board.one("load_text").get_attribute("value")))
    board.one("load_text").clear()
    board.one("load_cancel").click()
    return found


def told(board: Board, saved: Path) -> list[str | float | None]:
    """What the saved game of Go says of itself; None for what it does not say."""
    root = sgf.Sgf_game.from_string(board.save(saved)).get_root()
    return [root.get(one) if root.has_property(one) else None for one in ("PB", "PW", "DT", "TM", "OT")]


def test_a_saved_game_of_go_names_players_and_date(board: Board, address: str, saved: Path) -> None:
    """With the day of its first move, also on a later day and after another game."""
    board.open(address, "go")
    board.choose("clock", "10/5x30")
    begun = datetime.now().astimezone() - timedelta(days=3)
    board.script("const [then] = arguments; Date.now = () => then", 1000 * begun.timestamp())
    board.click("C3")
    board.driver.refresh()
    board.until(lambda: board.moves[:1] == ["C3"])
    board.begin()
    board.until(lambda: board.moves == [])
    board.one("undo").click()
    board.until(lambda: board.moves[:1] == ["C3"])
    assert told(board, saved) == ["person", "azpy", f"{begun:%Y-%m-%d}", 600, "5x30 byo-yomi"]


def test_a_game_from_elsewhere_names_no_player_of_this_page(
    board: Board, serve: Any, saved: Path, tmp_path: Path
) -> None:
    run = collect(tmp_path / "run", "go(size=5)", iterations=1)
    board.open(serve({"go": open_model("uniform:5", "go(size=5)", 5)}, run=run), "go")
    board.choose("clock", "10/5x30")
    assert board.load("C3") == ""
    assert told(board, saved) == [None] * 5
    board.unfold("open_archive").click()
    board.until(lambda: board.all("#archive_games button"))[0].click()
    board.until(lambda: not board.one("archive").is_displayed())
    board.settle()
    assert told(board, saved) == [None] * 5


def test_a_position_of_chess_goes_out_as_fen_and_as_a_picture(board: Board, address: str, saved: Path) -> None:
    board.open(address, "chess")
    board.choose("side", "all")
    board.click("e2", "e4")
    board.click("c7", "c5")
    board.unfold("open_save").click()
    position = chess.Board()
    for move in ("e4", "c5"):
        position.push_san(move)
    fen = position.fen(en_passant="fen")
    assert chess.Board(fen).is_valid()
    names = []
    for what in ("position", "game"):
        board.choose("save_what", what)
        board.until(lambda: board.one("save_text").get_attribute("value"))
        board.one("copy_text").click()
        board.until(lambda: "clipboard" in board.one("save_said").text)
        board.one("save_cancel").click()
        names.append(pasted(board))
        board.unfold("open_save").click()
    assert names[0] == fen
    assert "1. e4 c5" in names[1]
    for what, name in (("svg", "chess.svg"), ("png", "chess.png")):
        board.choose("save_what", what)
        assert board.one("save_picture").is_displayed() == (what == "png")
        board.one("save_file").click()
        board.until((saved / name).exists)
    board.one("copy_text").click()
    board.until(lambda: "clipboard" in board.one("save_said").text)
    allowed = {"permissions": ["clipboardReadWrite"], "origin": f"http://{address}"}
    board.driver.execute_cdp_cmd("Browser.grantPermissions", allowed)
    assert board.script("return navigator.clipboard.read().then(([one]) => one.types)") == ["image/png"]
    board.one("save_cancel").click()
    assert "<svg" in (saved / "chess.svg").read_text()
    assert (saved / "chess.png").read_bytes().startswith(base64.b64decode("iVBORw0KGgo="))


def test_nothing_of_a_game_is_lost(board: Board, address: str, saved: Path) -> None:
    """Where the server refuses for once, before it answers, after a resignation, and beside another tab."""
    board.open(address, "go")
    board.choose("side", "all")
    board.choose("clock", "5")
    for place in ("C3", "C2"):
        board.click(place)
    board.unfold("comment").send_keys("of white")
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
    board.unfold("comment").send_keys("of black")
    board.script("for (const id of ['new', 'start']) document.getElementById(id).click()")
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
    assert "RE[B+R]" in board.save(saved)
    board.one("undo").click()
    board.until(lambda: board.state == "open")
    board.script("const now = performance.now.bind(performance); performance.now = () => now() + 300000")
    board.until(lambda: board.one("status").text == "Black wins on time.")
    board.one("undo").click()
    board.until(lambda: board.one("status").text == "White to move.")
    assert board.one("clock_1").text.startswith(("5:00", "4:"))
    # Another tab's game goes to those before.
    first = board.driver.current_window_handle
    board.driver.switch_to.new_window("tab")
    board.driver.get(f"http://{address}/")
    board.until(lambda: board.moves == ["C3", "C2", "D3"])
    board.begin()
    board.until(lambda: board.moves == [])
    board.click("A1")
    second = board.driver.current_window_handle
    board.driver.switch_to.window(first)
    board.until(lambda: '"A1"' in board.script("return localStorage.getItem('azpy board game')"))
    board.click("B2")
    board.unfold("open_archive").click()
    assert len(board.all("#games_before button")) == 1
    board.one("archive_cancel").click()
    board.driver.switch_to.window(second)
    board.driver.close()
    board.driver.switch_to.window(first)
