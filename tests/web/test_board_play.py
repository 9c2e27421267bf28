"""The board in a browser: how games begin and end, clocks, and what a person sees, hears and draws beside the moves."""

from functools import partial
from typing import Any

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

from azpy.serving.models import open_model
from browser import Board, needs_browser
from served import site_of

pytest_plugins = ["browser"]
pytestmark = needs_browser


def says(board: Board, words: str) -> bool:
    return bool(board.one("status").text.endswith(words))


def is_at(board: Board, ply: int) -> bool:
    return board.ply == ply


def test_go_has_handicap_komi_captured_stones_and_dead_ones(board: Board, saved: Any) -> None:
    with site_of({"go": open_model("uniform:5", "go(size=9)", 5)}) as address:
        board.open(address, "go")
        assert board.one("headers").text == "komi 7.5"
        board.choose("player_1", "")
        board.choose("handicap", "5")
        board.one("new").click()
        board.until(lambda: board.one("headers").text == "handicap 5 · komi 0.5")
        assert board.one("status").text == "White to move."
        board.settle()
        assert not {"G7", "C3", "G3", "C7", "E5"} & board.places().keys()
        board.choose("handicap", "3")
        board.one("new").click()
        board.until(lambda: board.one("headers").text == "handicap 3 · komi 0.5")
        board.settle()
        assert {"C3", "G7", "C7", "G3"} - board.places().keys() == {"C3", "G7", "C7"}
        board.enter("komi", "-3.5")
        board.choose("handicap", "")
        board.one("new").click()
        board.until(lambda: board.one("headers").text == "komi -3.5")
        # Black takes a stone. White has another one, which is as good as dead.
        moves = ";B[ba];W[aa];B[ab];W[ee];B[];W[]"
        assert board.load(f"(;SZ[9]KM[6.5]PB[Ann]BR[2d]{moves})") == ""
        board.until(lambda: board.one("status").text == "White wins by 4.5.")
        assert board.one("took_0").text == "1 captured"
        assert not board.one("took_1").is_displayed()
        assert board.one("named_0").text.endswith("Ann (2d)")
        assert not board.one("other_headers").is_displayed()  # the rank is told once
        board.one("dead").click()
        board.until(lambda: board.one("status").text == "Touch the dead stones. With these White wins by 4.5.")
        for score in ("Black wins by 74.5", "White wins by 4.5", "Black wins by 74.5"):
            board.places()["E5"].click()
            board.until(partial(says, board, f"{score}."))
        assert len(board.all("#overlay .cross")) == 1
        # Of two touches at once the first counts.
        sent = board.script(
            """
            const { send } = WebSocket.prototype;
            let sent = 0;
            WebSocket.prototype.send = function (text) {
              sent += 1;
              send.call(this, text);
            };
            for (const place of ["B9", "A8"]) document.querySelector(`[data-place=${place}]`).click();
            WebSocket.prototype.send = send;
            return sent;
            """
        )
        assert sent == 1
        board.until(lambda: board.crossed == {"B9", "E5"})
        board.one("turn").click()
        assert board.crossed == {"B9", "E5"}
        board.places()["B9"].click()
        board.until(lambda: board.crossed == {"E5"})
        board.one("turn").click()
        assert board.crossed == {"E5"}
        board.one("dead").click()
        board.until(lambda: board.one("status").text == "Black wins by 74.5, as agreed.")
        assert "RE[B+74.5]" in board.save(saved / "go.sgf")
        board.one("undo").click()
        board.until(lambda: board.one("status").text == "White wins by 4.5.")
        board.driver.get("about:blank")


def test_a_rematch_exchanges_the_sides(board: Board, address: str) -> None:
    board.open(address, "noughts")
    assert not board.one("rematch").is_displayed()
    board.one("resign").click()
    board.until(lambda: board.one("rematch").is_displayed())
    board.one("rematch").click()
    board.settle(1)
    assert [board.one(f"who_{player}").text for player in (0, 1)] == ["Network noughts", "Person"]
    assert board.one("turn").get_attribute("aria-pressed") == "true"


def test_a_turn_adds_seconds_and_begins_a_period_anew(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.script("const now = performance.now(); performance.now = () => now")
    board.choose("player_1", "")
    board.choose("clock", "3+2")
    board.click("b2")
    board.until(lambda: [board.one(f"clock_{player}").text for player in (0, 1)] == ["3:02", "3:00"])
    found = board.driver.execute_async_script(
        """
        const done = arguments[0];
        import("/board/clock.js").then(({ Clock, rulesOf }) => {
          const clock = new Clock(() => {});
          clock.reset(rulesOf("1/3x10"), [59000, 75000]);
          const seen = clock.used.map((used) => clock.text(used));
          for (const player of [0, 1]) clock.endTurn(player);
          done([...seen, ...clock.used, clock.text(90000), rulesOf("")]);
        }, (error) => done(String(error)));
        """
    )
    assert found == ["0:01", "0:05 (1)", 59000, 70000, "0:00 (0)", None]


def test_chess_by_the_rook_at_the_square_with_arrows_and_the_wheel(board: Board, address: str) -> None:
    board.open(address, "chess")
    board.choose("player_1", "")
    assert board.load("e4 d5 exd5 Qxd5 Nf3 Nc6 Be2 Nf6") == ""
    board.until(lambda: board.ply == 8)
    board.settle()
    assert [board.one(f"took_{player}").get_attribute("aria-label") for player in (0, 1)] == [
        "captured: p",
        "captured: P",
    ]
    board.click("e1", "h1")
    assert board.moves[-1] == "O-O"
    for ply, way in ((8, -100), (7, -100), (8, 100)):
        origin = ScrollOrigin.from_element(board.one("board"))
        ActionChains(board.driver).scroll_from_origin(origin, 0, way).perform()
        board.until(partial(is_at, board, ply))
    board.settle()
    draw = """
        for (const [kind, place] of [["pointerdown", arguments[0]], ["pointerup", arguments[1]]]) {
          const { x, y, width, height } = document.querySelector(`[data-place=${place}]`).getBoundingClientRect();
          const at = { clientX: x + width / 2, clientY: y + height / 2 };
          document.getElementById("board").dispatchEvent(new PointerEvent(kind, { button: 2, ...at }));
        }
    """
    for places in (("h1", "b1"), ("d2", "d2"), ("h1", "b1"), ("b1", "h1")):
        board.script(draw, *places)
    marks = [mark.get_attribute("class") for mark in board.all("#overlay .noted")]
    assert marks == ["noted circle", "noted arrow"]  # the same one again takes it away
    board.one("back").click()
    board.until(lambda: board.ply == 7 and board.all("#overlay .noted") == [])
    board.one("on").click()
    board.until(lambda: board.ply == 8 and len(board.all("#overlay .noted")) == 2)
    assert board.load("7k/P5pp/8/8/8/8/8/6K1 w - - 0 1") == ""
    board.settle()
    square = board.places()["a7"].rect
    for place in ("a7", "a8"):
        board.places()[place].click()
    chooser = board.one("chooser").rect
    assert abs(chooser["y"] - square["y"]) < 2
    assert chooser["x"] <= square["x"] + square["width"] / 2 <= chooser["x"] + chooser["width"]
    board.one("chooser_cancel").click()


def test_chess960_castles_by_the_rook_alone(board: Board) -> None:
    with site_of({"chess": open_model("uniform:5", "chess(chess960=0)", 5)}) as address:
        board.open(address, "chess")
        board.choose("player_1", "")
        assert board.load("4k3/8/8/8/8/8/8/4K1R1 w K - 0 1") == ""
        board.settle()
        board.places()["e1"].click()
        assert board.places(".next").keys() == {"d1", "d2", "e2", "f1", "f2", "g1"}
        assert board.load("4k3/8/8/8/8/8/8/5K1R w K - 0 1") == ""
        board.settle()
        board.click("f1", "h1")
        assert board.moves == ["O-O"]
        board.driver.get("about:blank")


def test_a_look_and_sounds_are_chosen_and_kept(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.script(
        """
        window.heard = 0;
        const part = () => ({ connect: (next) => next, start: () => (window.heard += 1), stop() {}, frequency: {},
          gain: { setValueAtTime() {}, exponentialRampToValueAtTime() {} } });
        window.AudioContext = class { currentTime = 0; createOscillator = part; createGain = part; };
        """
    )
    board.choose("player_1", "")
    board.click("b2")
    assert board.script("return window.heard") == 0
    board.choose("sounds", "on")
    board.click("a1")
    assert board.script("return window.heard") == 1
    board.one("back").click()
    board.until(lambda: board.ply == 1)
    assert board.script("return window.heard") == 1
    board.choose("game", "chess")
    picture = board.one("picture")
    board.until(lambda: "8fa5b5" in picture.get_attribute("src"))
    board.choose("look", "wood")
    board.until(lambda: "b58a5f" in picture.get_attribute("src") and "8fa5b5" not in picture.get_attribute("src"))
    board.choose("look", "geometric")
    board.until(lambda: picture.get_attribute("src").count("M20%206L31%2024L26%2033H14L9%2024Z") == 4)  # bishops
    board.one("turn").click()
    assert picture.get_attribute("src").count("M20%206L31%2024L26%2033H14L9%2024Z") == 4
    board.choose("look", "wood")
    board.driver.refresh()
    board.until(lambda: board.state == "open")
    assert "b58a5f" in board.one("picture").get_attribute("src")
    assert board.one("sounds").get_attribute("value") == "on"
