"""The board in a browser: how games begin and end, clocks, and what a person sees and hears beside the moves."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from azpy.serving.models import open_model
from browser import NARROW, Board, needs_browser

pytest_plugins = ["browser"]
pytestmark = needs_browser


def test_a_turn_adds_seconds_and_begins_a_period_anew(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.script("const now = performance.now(); performance.now = () => now")
    board.choose("side", "all")
    board.choose("clock", "3+2")
    board.click("b2")
    board.until(lambda: [board.one(f"clock_{player}").text for player in (0, 1)] == ["3:02", "3:00"])
    found = board.script(
        """
        return import("/board/clock.js").then(({ Clock, rulesOf }) => {
          const clock = new Clock(() => {});
          clock.reset(rulesOf("1/3x10"), [59000, 75000]);
          const seen = clock.used.map((used) => clock.text(used));
          for (const player of [0, 1]) clock.endTurn(player);
          return [...seen, ...clock.used, clock.text(90000), rulesOf("")];
        });
        """
    )
    assert found == ["0:01", "0:05 (1)", 59000, 70000, "0:00 (0)", None]


def test_chess_with_captures_and_promotion(board: Board, address: str) -> None:
    board.open(address, "chess")
    board.choose("side", "all")
    assert board.load("e4 d5 exd5 Qxd5 Nf3 Nc6 Be2 Nf6") == ""
    board.until(lambda: board.ply == 8)
    board.settle()
    assert [board.one(f"took_{player}").get_attribute("aria-label") for player in (0, 1)] == [
        "captured: p",
        "captured: P",
    ]
    assert board.load("7k/P5pp/8/8/8/8/8/6K1 w - - 0 1") == ""
    board.settle()
    square = board.places()["a7"].rect
    for place in ("a7", "a8"):
        board.places()[place].click()
    board.until(lambda: board.one("pieces").is_displayed())
    pieces = board.all("#pieces button")
    assert [one.get_attribute("aria-label") for one in pieces] == ["a8=Q#", "a8=N", "a8=R#", "a8=B"]
    for row, piece in enumerate(pieces):  # on the file, from the last rank on
        assert abs(piece.rect["x"] - square["x"]) < 1
        assert abs(piece.rect["y"] - square["y"] - (row - 1) * square["height"]) < 1
    board.keys(Keys.ESCAPE)
    assert not board.one("pieces").is_displayed()
    assert board.ply == 0


MOTIONS = """
    const plain = Element.prototype.animate;
    window.motions = [];
    Element.prototype.animate = function (frames, how) {
      const [{ transform, opacity }] = frames;
      window.motions.push(`${transform ?? `fades from ${opacity}`} ${how.duration}`);
      return plain.call(this, frames, how);
    };
"""


def test_keys_and_swipes_slide_tiles(board: Board, serve: Any) -> None:
    board.open(serve({"tiles": open_model("uniform:5", "game2048", 5)}), "tiles", NARROW)

    def turn(shifts: dict[str, Any], act: Callable[[Any], None]) -> str:
        """Plays the first way that is offered."""
        offered, before = {button.text for button in board.all("#choices button")}, board.ply
        way = next(way for way in shifts if way in offered)
        act(shifts[way])
        board.settle(before + 2)
        assert board.moves[before] == way
        return way

    board.script(MOTIONS)
    slides = list[str]()
    while not slides:  # two tiles that merge where they lie make another tile, and nothing slides
        way = turn({"left": Keys.LEFT, "right": Keys.RIGHT, "up": Keys.UP, "down": Keys.DOWN}, board.keys)
        slides = [motion for motion in board.script("return window.motions") if motion.startswith("translate")]
    across = way in {"left", "right"}
    assert all(("(0%" in slide) != across and (", 0%" in slide) == across for slide in slides)
    board.until(lambda: board.all("#moving img") == [])
    shifts = {"left": (-90, 10), "right": (90, 10), "up": (10, -90), "down": (10, 90)}
    drag = ActionChains(board.driver).drag_and_drop_by_offset
    turn(shifts, lambda shift: drag(board.one("board"), *shift).perform())


def test_sounds_are_chosen_and_kept(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.script(
        """
        window.heard = 0;
        const part = () => ({ connect: (next) => next, start: () => (window.heard += 1), stop() {}, frequency: {},
          gain: { setValueAtTime() {}, exponentialRampToValueAtTime() {} } });
        window.AudioContext = class { currentTime = 0; createOscillator = part; createGain = part; };
        """
    )
    board.choose("side", "all")
    board.click("b2")
    assert board.script("return window.heard") == 0
    board.choose("sounds", "on")
    board.click("a1")
    assert board.script("return window.heard") == 1
    board.one("back").click()
    board.until(lambda: board.ply == 1)
    assert board.script("return window.heard") == 1
    board.driver.refresh()
    board.until(lambda: board.state == "open")
    assert board.one("sounds").get_attribute("value") == "on"


def test_men_slide_fall_flip_and_roll_where_motion_is_wanted(board: Board, address: str, serve: Any) -> None:
    board.open(address, "chess")
    board.script(MOTIONS)

    def moved() -> list[str]:
        found: list[str] = board.script("return window.motions.splice(0)")
        board.until(lambda: board.all("#moving img") == [])
        return found

    board.choose("side", "all")
    assert board.load("e4 e5 Nf3 Nf6 Be2 Be7") == ""
    board.settle(6)
    assert moved() == []
    board.click("e1", "g1")  # the rook slides, too
    assert moved() == [f"translate({way}25%, 0%) 120" for way in ("", "-")]
    board.one("turn").click()
    board.one("back").click()
    board.until(lambda: board.ply == 6)
    assert len(moved()) == 2
    board.until(lambda: board.all("#tints .last[x='160'][y='40'][width='40']"))  # e7, below its bishop
    board.begin(game="fours", side="all")
    board.click("column 4")
    (fall,) = moved()
    assert fall.startswith("translate(0%, -")
    assert fall.endswith("200")
    for game in ("noughts", "pawns"):  # a cross, and the picture of a game in Python
        board.begin(game=game, side="all")
        assert moved() == []
        board.click_any(random.Random(1))
        assert moved() == ["fades from 1 200"]
    board.begin(game="dice", side="none")
    board.until(lambda: any("rotate" in motion for motion in board.script("return window.motions")))
    board.open(serve({"discs": open_model("uniform:5", "othello", 5)}), "discs")
    board.script(MOTIONS)
    board.choose("side", "all")
    board.click(min(board.places()))
    assert sorted(moved()) == ["fades from 0 200", "scaleX(0) 120"]
    board.open(address, "fours")
    board.script(MOTIONS)
    board.choose("side", "all")
    reduced = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    board.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", reduced)
    board.click("column 4")
    assert moved() == []
    board.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_piece_of_several_cells_is_turned_and_laid_by_two_touches(board: Board, serve: Any) -> None:
    """Blokus: the piece is shaded where it would lie. The key r and a tap on the piece turn it."""
    board.open(serve({"pieces": open_model("uniform:5", "blokus(size=7)", 5)}), "pieces")
    board.choose("side", "all")

    def shaded() -> set[str]:
        boxes = board.each("#tints .chosen", "['x', 'y'].map((side) => Number(one.getAttribute(side)))")
        return {f"{'abcdefg'[int(x / 28)]}{7 - int(y / 28)}" for x, y in boxes if x < 7 * 28}

    def is_row(cells: set[str]) -> bool:
        return len({name[1] for name in cells}) == 1

    board.places()["piece I3"].click()
    assert len(shaded()) == 3
    for turn in (lambda: board.keys("r"), board.places()["piece I3"].click):
        before = shaded()
        turn()
        assert is_row(shaded()) != is_row(before)
    board.script("document.querySelector('[data-place=b6]').focus()")
    wanted = shaded()
    assert "b6" in wanted
    board.places(".next")["b6"].click()
    board.settle(1)
    assert set(board.moves[0].split(",")) == wanted
    board.places()["piece 1"].click()  # it has one place
    board.settle(2)
    assert board.all("[data-place='piece I3']") == []


def test_of_two_touches_of_dead_stones_at_once_the_first_counts(board: Board, address: str) -> None:
    board.open(address, "go")
    assert board.load("(;SZ[5]KM[6.5];B[ba];W[aa];B[ab];W[ee];B[];W[])") == ""
    board.until(lambda: board.state == "over")
    board.one("dead").click()
    board.until(lambda: board.one("status").text.startswith("Touch the dead stones."))
    board.script("for (const at of ['B5', 'E1']) document.querySelector(`[data-place=${at}]`).click()")
    board.until(lambda: board.crossed == {"B5"})


def test_a_strength_is_one_text(board: Board, address: str) -> None:
    """A trained network plays casually at first, unless somebody chose its simulations."""
    board.open(address, "noughts")
    found = board.script(
        """
        return import("/board/strength.js").then(({ limitsOf, readStrength, strengthOf, strengths, usualStrength }) => {
          const limits = { simulations: 1000, seconds: 60 };
          const model = { levels: [{ name: "casual", elo: 12 }], simulations: 200, network: "n", limits };
          const others = [{ ...model, network: null }, { ...model, simulations: 800 }, { ...model, levels: [] }];
          const texts = ["400", " 400 simulations ", "2.5s", "3 s", "0.5 seconds", "0.5", "9999", "90 s", "", "much"];
          const chosen = ["casual", "20", "5 s", "9999", ""];
          return [
            [model, ...others].map(usualStrength),
            texts.map((text) => readStrength(text, model)),
            chosen.map((text) => Object.entries(limitsOf(text, model)).flat()),
            ["1", "50", "2 s", "casual"].map(strengthOf),
            strengths(model),
          ];
        });
        """
    )
    assert found == [
        ["casual", "200", "800", "200"],
        ["400", "400", "2.5 s", "3 s", "0.5 s", "1", "1000", "60 s", "", ""],
        [["level", "casual"], *(["simulations", 20], ["seconds", 5], ["simulations", 1000], ["simulations", 200])],
        ["1 simulation", "50 simulations", "2 s", "casual"],
        [
            ["casual", "Casual (Elo 12)"],
            *(["50", "50 simulations"], ["200", "200 simulations"], ["800", "800 simulations"]),
            *(["1 s", "1 s"], ["2 s", "2 s"], ["5 s", "5 s"], ["10 s", "10 s"]),
        ],
    ]


def test_steps_stay_under_the_pointer(board: Board, address: str) -> None:
    """A second press is for the same step, though what can be done after a game goes meanwhile."""
    board.open(address, "noughts")
    board.choose("side", "all")
    assert board.load("a1 a2 b2 b3 c3") == ""
    places = partial(board.each, "#first, #back, #on, #last", "one.getBoundingClientRect().y")
    before = places()
    assert board.one("rematch").is_displayed()
    board.one("back").click()
    board.settle(4)
    assert not board.one("rematch").is_displayed()
    assert places() == before
