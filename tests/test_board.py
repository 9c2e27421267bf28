"""The board in a browser: whole games by clicks and by keys, the analysis, what it says aloud, and what it refuses."""

import json
import os
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

import azpy
from azpy.runs.exports import game_as_dict
from azpy.serving.models import open_model
from served import process, site_of
from talks import PATIENCE
from test_replay_command import collect

BROWSER, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER.exists() and DRIVER.exists()), reason="chromium is not installed")

WIDE, NARROW = (1400, 900), (390, 844)
TOKEN = "a token of the tests"
GAMES = {
    "fours": "connect_four",
    "chess": "chess",
    "go": "go(size=5)",
    "dice": "backgammon",
    "walls": "wall_game",
    "noughts": "tic_tac_toe",
    "pawns": "hexapawn:Hexapawn",
    "rude": "test_board:Rude",
}


class Rude(azpy.Game):
    """One move ends it. Its texts and its picture try to be more than texts and a picture."""

    num_actions, obs_shape, max_plies = 1, (1, 1, 1), 1

    def __init__(self) -> None:
        self.over = False

    def turn(self) -> int:
        return azpy.TERMINAL if self.over else 0

    def legal_actions(self) -> list[int]:
        return [0]

    def play(self, action: int) -> None:
        self.over = True

    def clone(self) -> "Rude":
        copy = Rude()
        copy.over = self.over
        return copy

    def outcome(self) -> float:
        return 1.0

    def encode(self) -> Any:
        return np.zeros((1, 1, 1), np.float32)

    def key(self) -> int:
        return int(self.over)

    def action_name(self, action: int) -> str:
        return "<img/src=x/onerror=document.title='rude'>"

    def to_svg(self) -> str:
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="document.title=\'rude\'">'
            "<script>document.title = 'rude'</script><rect width='9' height='9'/></svg>"
        )


class Board:
    """The page as a person uses it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def one(self, id_: str) -> Any:
        return self.driver.find_element(By.ID, id_)

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return found

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(text, *arguments)

    def until(self, done: Callable[[], Any]) -> Any:
        wait = WebDriverWait(self.driver, PATIENCE / 3, 0.02, [StaleElementReferenceException])
        return wait.until(lambda _: done())

    @property
    def state(self) -> str:
        """busy, open (a person can play), or over."""
        return str(self.script("return document.getElementById('board').dataset.state"))

    @property
    def ply(self) -> int:
        return int(self.script("return document.getElementById('board').dataset.ply"))

    @property
    def moves(self) -> list[str]:
        """The moves of the main line, with what they lost."""
        found = self.script(
            "return [...document.querySelectorAll('#moves > li:not(.variation)')].map((move) => move.textContent)"
        )
        return [text.split(" ", 1)[1].strip() for text in found]

    def settle(self, ply: int = 0) -> str:
        """Waits until it is a person's turn after so many moves, or the game is over."""
        self.until(lambda: self.state != "busy" and self.ply >= ply)
        return self.state

    def choose(self, id_: str, value: str) -> None:
        Select(self.one(id_)).select_by_value(value)

    def enter(self, id_: str, text: str) -> None:
        """Types into a field, and leaves it."""
        field = self.one(id_)
        field.clear()
        field.send_keys(text, Keys.TAB)

    def open(self, address: str, name: str | None = None, size: tuple[int, int] = WIDE) -> None:
        """Opens the page in a new tab, with a player and nothing that was kept from before."""
        old = self.driver.current_window_handle
        self.driver.switch_to.new_window("tab")
        new = self.driver.current_window_handle
        self.driver.switch_to.window(old)
        self.driver.close()
        self.driver.switch_to.window(new)
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        origin = {"origin": f"http://{address}", "storageTypes": "local_storage"}
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", origin)
        self.driver.get(f"http://{address}/")
        self.until(lambda: self.one("status").text != "…")
        if name is not None:
            self.choose("model", name)
        self.settle()

    def places(self, kind: str = "") -> dict[str, Any]:
        return {place.get_attribute("data-place"): place for place in self.all(f".place{kind}")}

    def click(self, *places: str) -> None:
        """Clicks places of the picture, one after the other, and waits for what follows."""
        ply = self.ply
        for place in places:
            self.places()[place].click()
        self.settle(ply + 1)

    def press(self, box: dict[str, float]) -> None:
        """Clicks the middle of a box of the page."""
        pointer = ActionChains(self.driver)
        x, y = (int(box[start] + box[side] / 2) for start, side in (("x", "width"), ("y", "height")))
        pointer.w3c_actions.pointer_action.move_to_location(x, y).click()  # type: ignore[no-untyped-call]
        pointer.perform()

    def click_any(self, rng: random.Random) -> None:
        """Plays any move that can be clicked."""
        ply = self.ply
        (others, choices) = self.places(), self.all("#choices button")
        chosen = rng.choice([*others.values(), *choices])
        chosen.click()
        if following := list(self.places(".next").values()):
            rng.choice(following).click()
        if self.one("chooser").is_displayed():
            self.all("#chooser_names button")[0].click()
        self.settle(ply + 1)

    def load(self, text: str) -> str:
        """Loads a text; returns what is said against it."""
        self.one("open_load").click()
        self.script("document.getElementById('load_text').value = arguments[0]", text)
        self.all("#load_form .main")[0].click()
        said = self.until(lambda: not self.one("load").is_displayed() or "cannot" in self.one("load_said").text)
        refused = str(self.one("load_said").text) if self.one("load").is_displayed() else ""
        if refused:
            self.one("load_cancel").click()
        assert said
        return refused

    def errors(self) -> list[str]:
        """What the browser complains of since the last call, such as a breach of the page's policy."""
        return [one["message"] for one in self.driver.get_log("browser") if one["level"] in {"SEVERE", "WARNING"}]

    def keys(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the browser puts what is saved."""
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def driver(saved: Path) -> Iterator[Any]:
    os.environ["SE_OFFLINE"] = "true"
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(saved)})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of one player for each game."""
    folder = Path(__file__).parent
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(folder.parent / "examples" / "hexapawn")
        with site_of({name: open_model("uniform:20", game, 20) for name, game in GAMES.items()}) as found:
            yield found


@pytest.fixture
def board(driver: Any) -> Iterator[Board]:
    found = Board(driver)
    yield found
    assert found.errors() == []


def test_connect_four_against_the_network_by_clicks(board: Board, address: str) -> None:
    board.open(address, "fours")
    rng = random.Random(1)
    while board.settle() != "over":
        board.click_any(rng)
    assert "wins" in board.one("status").text or "draw" in board.one("status").text
    assert len(board.moves) == board.ply >= 7
    assert board.places() == {}


def test_chess_with_a_drag_a_cancelled_touch_and_a_promotion(board: Board, address: str) -> None:
    board.open(address, "chess")
    board.places()["e2"].click()
    assert set(board.places(".next")) == {"e3", "e4"}
    board.places()["e2"].click()  # the same place again cancels
    assert board.places(".next") == {}
    ActionChains(board.driver).drag_and_drop(board.places()["e2"], board.one("status")).perform()
    assert board.places(".next") == {}
    assert board.ply == 0
    other = board.places()["e2"].rect
    board.places()["g1"].click()
    assert set(board.places(".next")) == {"f3", "h3"}
    board.press(other)  # another piece
    assert set(board.places(".next")) == {"e3", "e4"}
    board.places()["e2"].click()
    up = -2 * board.places()["e2"].size["height"]
    ActionChains(board.driver).drag_and_drop_by_offset(board.places()["e2"], 0, up).perform()
    board.settle(2)
    assert board.moves[0] == "e4"
    assert board.ply == 2
    for text in (
        '[Event "a"]\n[Result "1-0"]\n\n1. e4 {a (comment)} e5 2. Bc4 (2. Nf3 Nc6 (2... d6)) Nc6 3. Qh5 Nf6?? $4 '
        "4. Qxf7 1-0",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1 moves e2e4 e7e5 f1c4 b8c6 d1h5 g8f6 h5f7",
    ):
        assert board.load(text) == ""
        board.until(lambda: board.moves == ["e4", "e5", "Bc4", "Nc6", "Qh5", "Nf6", "Qxf7#"])
        assert board.one("status").text == "White (player 0) wins."
    assert "after 2 moves, e4 Nf6 is not legal" in board.load("e4 e6 e4 Nf6")
    assert board.load("7k/4P1pp/8/8/8/8/8/6K1 w - - 0 1") == ""
    board.settle()
    for place in ("e7", "e8"):
        board.places()[place].click()
    names = [button.text for button in board.all("#chooser_names button")]
    assert sorted(name.split("(")[1] for name in names) == ["e7e8b)", "e7e8n)", "e7e8q)", "e7e8r)"]
    next(button for button in board.all("#chooser_names button") if "e7e8q" in button.text).click()
    board.until(lambda: board.one("status").text == "White (player 0) wins.")


def test_go_to_its_end_by_two_people_with_undo(board: Board, address: str) -> None:
    board.open(address, "go")
    board.click("C3")
    assert board.ply == 2
    board.one("undo").click()
    board.until(lambda: board.ply == 0)
    board.one("redo").click()
    board.until(lambda: board.ply == 1)
    board.one("on").click()
    board.until(lambda: board.ply == 2)
    board.choose("player_1", "")
    for place in ("B2", "D4", "B4"):
        board.click(place)
    assert board.ply == 5
    board.one("open_save").click()
    sgf = board.one("save_position").get_attribute("value")
    board.one("save_cancel").click()
    moves = board.moves
    board.one("new").click()
    board.until(lambda: board.ply == 0)
    assert board.load(sgf.replace("(;", "(;PB[a\\]b;W[aa\\]]")) == ""
    board.until(lambda: board.moves == moves)
    assert "komi 6.5" in board.load("(;SZ[5]KM[6.5];B[cc])")
    assert board.load("(;SZ[5]AB[bb][dd]KM[7.5];W[cc];B[])") == ""
    board.until(lambda: board.moves == ["C3", "pass"])
    assert board.places().keys() == {f"{column}{row}" for column in "ABCDE" for row in "12345"} - {"B4", "D2", "C3"}
    board.choose("player_1", "")
    board.click("A1")
    for _ in range(2):
        ply = board.ply
        board.all("#choices button")[0].click()
        board.settle(ply + 1)
    assert board.state == "over"
    assert "wins" in board.one("status").text


def test_backgammon_with_dice_thrown_and_entered(board: Board, address: str) -> None:
    board.open(address, "dice")
    rng = random.Random(2)
    for _ in range(4):
        board.click_any(rng)
    assert board.ply > 4
    board.choose("throws", "person")
    assert board.load("x=1:2,off:13 o=5:2,off:13 turn=x plies=7") == ""
    board.settle()
    names = [button.text for button in board.all("#choices button")]
    assert len(names) == 21
    assert names[0] == "2-1 (5.6%)"
    next(button for button in board.all("#choices button") if button.text.startswith("2-1")).click()
    board.settle(1)
    while board.state != "over":
        board.click_any(rng)
    assert board.one("status").text == "Red (player 0) wins."


def test_the_wall_game_with_walls_and_cats(board: Board, address: str) -> None:
    board.open(address, "walls")
    board.click("wall right of a8")
    assert board.moves[0] == ">a8"
    board.click("wall above h1")
    board.settle()
    assert board.ply == 4  # two actions of each player
    assert board.load("cats a8 h8 mice a1 c8 turn 2 red") == ""
    board.settle()
    for place in ("b8", "c8"):
        (cat,) = [name for name in board.places() if name.startswith("cat on")]
        board.click(cat, place)
    assert board.state == "over"
    assert board.one("status").text.startswith("Red")


def test_a_turned_board_is_clicked_dragged_and_walked_where_its_pieces_stand(board: Board, address: str) -> None:
    board.open(address, "chess")
    board.choose("player_1", "")
    frame = board.one("board").rect
    square, rim = frame["width"] / 9, frame["width"] / 18

    def box(file: str, rank: int) -> dict[str, float]:
        """A square as White sees it from the other side."""
        x, y = rim + square * (7 - "abcdefgh".index(file)), rim + square * (rank - 1)
        return {"x": frame["x"] + x, "y": frame["y"] + y, "width": square, "height": square}

    board.one("turn").click()
    assert board.one("turn").get_attribute("aria-pressed") == "true"
    assert board.one("said").get_attribute("textContent") == "The board is turned."
    board.press(box("e", 2))
    assert set(board.places(".next")) == {"e3", "e4"}
    board.press(box("e", 4))
    board.settle(1)
    up = 2 * board.places()["d7"].size["height"]
    ActionChains(board.driver).drag_and_drop_by_offset(board.places()["d7"], 0, -up).perform()
    board.settle(2)
    assert board.moves == ["e4", "d5"]
    focused = "return document.activeElement.dataset.place"
    board.script("document.querySelector('[data-place=c2]').focus()")
    board.keys(Keys.ARROW_RIGHT)
    assert board.script(focused) == "b2"
    board.keys("t")
    assert board.script(focused) == "b2"
    board.keys(Keys.ARROW_RIGHT)
    assert board.script(focused) == "c2"
    board.script("document.activeElement.blur()")
    board.keys("t")  # not on the board
    assert board.one("turn").get_attribute("aria-pressed") == "false"
    board.one("turn").click()
    board.driver.refresh()
    board.until(lambda: board.moves == ["e2e4", "d7d5"])
    assert board.one("turn").get_attribute("aria-pressed") == "true"
    board.choose("model", "fours")
    board.until(lambda: "column 1" in board.places())
    assert not board.one("turn").is_displayed()
    first, last = (board.places()[f"column {column}"].rect["x"] for column in (1, 7))
    assert first < last
    board.choose("model", "go")
    board.until(lambda: "A1" in board.places())
    board.choose("player_1", "")
    board.press(board.places()["A1"].rect)
    board.settle(1)
    assert board.moves == ["A1"]
    corner, other = (board.places()[place].rect for place in ("B1", "A2"))
    assert (corner["y"] < other["y"], corner["x"] < other["x"]) == (True, True)  # A1 is above B1 and right of it


def test_a_game_in_python_by_clicks(board: Board, address: str) -> None:
    board.open(address, "pawns")
    rng = random.Random(3)
    while board.settle() != "over":
        board.click_any(rng)
    assert "wins" in board.one("status").text


def test_a_whole_game_by_keys_alone(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.choose("player_1", "")
    focused = "return document.activeElement.dataset.place"
    board.script("document.activeElement.blur()")
    for _ in range(10):
        board.keys(Keys.TAB)
        if board.script(focused):
            break
    assert board.script(focused) is not None
    wanted = ["b2", "a1", "a2", "c2", "b1", "b3", "a3", "c1", "c3"]  # a draw
    for ply, goal in enumerate(wanted):
        for _ in range(6):
            here = board.script(focused)
            if here == goal:
                break
            column, row = ord(goal[0]) - ord(here[0]), int(goal[1]) - int(here[1])
            sideways = Keys.ARROW_RIGHT if column > 0 else Keys.ARROW_LEFT
            upwards = Keys.ARROW_UP if row > 0 else Keys.ARROW_DOWN
            board.keys(sideways if column else upwards)
            if board.script(focused) == here:  # the row holds no further place: go by rows
                board.keys(upwards if row else Keys.ARROW_UP)
        assert board.script(focused) == goal, (goal, board.script(focused))
        board.keys(Keys.ENTER)
        board.settle(ply + 1)
        said = board.one("said").get_attribute("textContent")
        assert goal in said or ply == 8, said
    assert board.one("status").text == "The game is a draw."
    assert board.one("said").get_attribute("textContent") == "The game is a draw."
    board.script("document.activeElement.blur()")
    board.keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    board.until(lambda: board.ply == 7)
    board.keys(Keys.HOME)
    board.until(lambda: board.ply == 0)
    board.keys(Keys.END)
    board.until(lambda: board.ply == 9)


def test_networks_play_each_other_until_paused(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.choose("player_0", "noughts")
    board.until(lambda: board.ply >= 2)
    board.one("pause").click()
    board.settle()
    ply = board.ply
    assert "paused" in board.one("status").text
    board.one("pause").click()
    board.until(lambda: board.ply > ply)


def test_hints_are_hidden_until_wanted_and_tell_lines_and_values(board: Board, address: str) -> None:
    board.open(address, "fours")
    board.click("column 4")
    assert board.all("#overlay .candidate") == []
    assert not board.one("hinted").is_displayed()
    board.one("hints").click()
    board.until(lambda: "Searched" in board.one("root").text)
    assert len(board.all("#candidates tr")) == 7
    assert len(board.all("#overlay .candidate")) == 7
    assert board.one("bar").get_attribute("aria-label").startswith("Value: ")
    board.all("#candidates button")[1].click()
    assert board.all("#candidates button")[1].get_attribute("aria-pressed") == "true"
    assert "number 2" in board.one("variation_title").text
    board.all("#variation button")[0].click()
    board.until(lambda: board.one("preview").is_displayed())
    board.one("analyse").click()
    board.until(lambda: len(board.all("#graph .value")) == board.ply + 1)
    board.one("tree_details").click()
    assert len(board.all("#tree > li")) == 7
    board.enter("hint_simulations", "3000")
    board.until(lambda: board.one("root").text.startswith("Searched: 30"))
    board.enter("hint_simulations", "5000000")
    first = board.until(lambda: "Searching" in board.one("root").text and board.one("root").text)

    def hold() -> str:
        """Presses a button of a table that changes meanwhile; returns the name of the one that was hit, if one was."""
        ActionChains(board.driver).release().click_and_hold(board.all("#candidates button")[2]).perform()
        return str(board.script("return document.querySelector('#candidates button:active')?.textContent ?? ''"))

    name = board.until(hold)
    board.until(lambda: "Searching" in board.one("root").text and board.one("root").text != first)
    ActionChains(board.driver).release().perform()
    board.until(lambda: [one.text for one in board.all("#candidates [aria-pressed=true]")] == [name])
    board.click("column 3")
    board.until(lambda: "Searching" in board.one("root").text)
    board.one("hints").click()
    board.until(lambda: board.all("#overlay .candidate") == [])


def test_what_is_read_aloud_stays_the_same_element_over_the_reports_of_a_search(board: Board, address: str) -> None:
    """Figures change around the element with the focus; it stays in the page, and so does its text."""
    board.open(address, "noughts")
    board.choose("player_1", "")
    board.click("b2")
    board.one("hints").click()
    board.until(lambda: "Searched" in board.one("root").text)
    board.enter("hint_simulations", "9000000")
    board.until(lambda: "Searching" in board.one("root").text)
    board.script("document.querySelectorAll('#candidates button')[2].click()")  # by no pointer; its line stays
    for selector in ("#candidates tr:nth-child(3) button", "#moves button", "#variation button"):
        board.script(
            """
            const held = document.querySelector(arguments[0]);
            held.focus();
            window.seen = { held, changes: 0, lost: 0, reports: new Set() };
            const watched = { subtree: true, childList: true, characterData: true, attributes: true };
            new MutationObserver((all) => (window.seen.changes += all.length)).observe(held, watched);
            held.addEventListener("blur", () => (window.seen.lost += 1));
            const root = document.getElementById("root");
            const report = () => window.seen.reports.add(root.textContent);
            new MutationObserver(report).observe(root, { childList: true });
            """,
            selector,
        )
        board.until(lambda: board.script("return window.seen.reports.size") >= 5)
        seen = "const { held, changes, lost } = window.seen; return [held === document.activeElement, changes, lost]"
        assert board.script(seen) == [True, 0, 0], selector


def test_rows_move_around_the_one_with_the_focus(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.script("document.getElementById('hinted').hidden = false")
    found = board.driver.execute_async_script(
        """
        const done = arguments[0];
        const table = document.getElementById("candidates");
        const rows = () => [...table.rows].map((row) => row.dataset.move).join("");
        const named = (name) => table.querySelector(`[data-move="${name}"] button`);
        import("/board/candidates.js").then(({ Candidates }) => {
          const candidates = new Candidates({ onLook: () => {}, picture: async () => "<svg/>" });
          const show = (names, isNew) => {
            const move = (name, order) => ({ move: name, order, visits: 90 - order, value: 0, prior: 0, pv: [name] });
            candidates.show([...names].map(move), (name) => name, isNew);
          };
          show("abcdefghijk", true);
          const held = named("c");
          held.focus();
          const lost = [];
          held.addEventListener("blur", () => lost.push(rows()));
          const seen = [];
          for (const names of ["cabdefghijk", "kjihgfedbac", "bakc", "bc", "ebacd"]) {
            show(names, false);
            seen.push(rows());
          }
          const isHeld = document.activeElement === held && lost.length === 0;
          show("xyz", true);
          done([seen, isHeld, rows(), document.activeElement.textContent]);
        }, (error) => done(String(error)));
        """
    )
    # The row with the focus stays in the table, behind the ten best ones. Where its move goes, another row gets it.
    assert found == [["cabdefghij", "kjihgfedbac", "bakc", "bc", "ebacd"], True, "xyz", "z"]


def test_another_move_begins_a_variation_and_the_record_can_be_saved_and_loaded(
    board: Board, address: str, saved: Path
) -> None:
    board.open(address, "noughts")
    board.choose("player_1", "")
    for place in ("b2", "a1", "c3"):
        board.click(place)
    board.one("first").click()
    board.until(lambda: board.ply == 0)
    board.click("a3")
    assert len(board.all("#moves .variation button")) == 1
    board.one("open_save").click()
    assert board.one("save_moves").get_attribute("value") == "a3"
    assert board.one("save_position").get_attribute("value") == "x../.../... o"
    board.one("save_record").click()
    file = saved / "tic_tac_toe.json"
    board.until(file.exists)
    assert json.loads(file.read_text()) == {"game": "tic_tac_toe", "start": None, "moves": ["b2", ["a3"], "a1", "c3"]}
    board.one("save_cancel").click()
    assert board.load(file.read_text()) == ""
    board.until(lambda: board.ply == 3)
    assert board.moves == ["b2", "a1", "c3"]
    assert len(board.all("#moves .variation button")) == 1
    assert board.load("b2 a1 c1") == ""
    board.until(lambda: board.moves == ["b2", "a1", "c1"])
    assert "a1" in board.load("b2 a1 a1")
    assert "cannot be loaded" in board.load("{")
    assert "plays tic_tac_toe" in board.load('{"game": "chess", "start": null, "moves": []}')
    assert board.load('{"start": null, "moves": ["b2", "b2"]}') != ""
    board.one("typed").send_keys("zz", Keys.ENTER)
    assert board.one("problem_text").text == "zz is no legal move here."
    board.one("typed").clear()
    board.one("typed").send_keys("a3", Keys.ENTER)
    board.until(lambda: board.ply == 4)
    assert board.one("problem").is_displayed() is False
    board.driver.refresh()
    board.until(lambda: board.moves == ["b2", "a1", "c1", "a3"])  # the browser kept it


def test_resigning_and_the_clock_end_a_game(board: Board, address: str) -> None:
    board.open(address, "chess")
    board.choose("clock", "5")
    assert board.one("clock_0").text.startswith(("5:00", "4:59"))
    board.one("resign").click()
    board.until(lambda: board.one("status").text == "Black (player 1) wins because the other side resigned.")
    board.driver.refresh()
    board.until(lambda: board.one("status").text == "Black (player 1) wins because the other side resigned.")
    board.one("new").click()
    board.until(lambda: board.state == "open")


def test_nothing_is_played_before_the_next_position_is_known(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.script(
        """
        const places = ["b2", "a1", "c3"].map((place) => document.querySelector(`[data-place="${place}"]`));
        for (const place of places) place.click();
        document.getElementById("resign").click();
        """
    )
    board.settle(2)
    assert board.moves[0] == "b2"
    assert len(board.moves) == 2
    assert board.state == "open"


def test_who_types_moves_can_go_on_typing(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.one("typed").send_keys("b2", Keys.ENTER)
    board.settle(2)
    assert board.script("return document.activeElement.id") == "typed"


def test_every_move_is_analyzed_and_then_says_what_it_lost(board: Board, address: str) -> None:
    board.open(address, "noughts")
    # A record, whose positions were never shown.
    assert board.load(json.dumps({"moves": ["a1", "a2", "b2", "b3", "c3"]})) == ""
    board.one("hints").click()
    board.one("analyse").click()
    board.until(lambda: board.one("said").text == "Every move is analyzed.")
    assert board.script("return document.querySelectorAll('#graph circle').length") >= 5
    assert any("\u2212" in move for move in board.moves), board.moves
    assert board.one("problem_text").text == ""


def test_texts_of_a_game_stay_texts(board: Board, address: str) -> None:
    board.open(address, "rude")
    board.one("hints").click()
    board.until(lambda: board.all("#candidates tr"))
    board.all("#choices button")[0].click()
    board.until(lambda: board.state == "over")
    assert board.moves == ["<img/src=x/onerror=document.title='rude'>"]
    assert board.driver.title == "azpy board"


def test_the_parts_without_a_page(board: Board, address: str) -> None:
    """Names within a text, rolls by probability, records with variations, and the clock."""
    board.open(address, "noughts")
    found = board.driver.execute_async_script(
        """
        const done = arguments[0];
        const parts = ["position", "game", "clock"].map((name) => import(`/board/${name}.js`));
        Promise.all(parts).then(([position, game, { Clock }]) => {
          const late = [];
          const clock = new Clock((player) => late.push(player));
          const now = performance.now.bind(performance);
          clock.reset(1);
          clock.run(0);
          for (const [minutes, player] of [[0.5, 1], [2, 1]]) {
            performance.now = () => now() + 60000 * minutes;
            if (minutes < 1) clock.run(player);
            else clock.tick();
          }
          performance.now = now;
          const action = (name, short) => ({ name, short, touches: [] });
          const names = [["take 1", "1"], ["take 12", "12"], ["e2e4", "e4"], ["d2c3", "Bxc3"], ["b2c3", "bxc3+"]];
          const shown = { actions: names.map(([name, short]) => action(name, short)), rolls: [] };
          const texts = ["take 12 x", "E4", "12 e4", "take", "e2e4e5", "bxc3", "Bxc3"];
          const rolls = [{ name: "a", probability: 0.25 }, { name: "b", probability: 0.75 }];
          const record = { start: null, moves: ["a", ["b", "c", ["d", "e"]], "f"] };
          done({
            names: texts.map((text) => position.named(shown, text)?.name),
            rolls: [0, 0.2499, 0.25, 0.999].map((share) => position.rolled(rolls, share).name),
            same: JSON.stringify(game.Game.fromObject(record).toObject()) === JSON.stringify(record),
            late,
            used: Math.round(clock.used[0] / 1000),
            box: position.boxOf('<svg width="30" height="20"><g viewBox="0 0 1 1"/></svg>'),
          });
        }, (error) => done(String(error)));
        """
    )
    assert found == {
        "names": ["take 12", "e2e4", "take 12", None, None, "b2c3", "d2c3"],
        "rolls": ["a", "a", "b", "b"],
        "same": True,
        "late": [1],
        "used": 30,
        "box": [0, 0, 30, 20],
    }


def test_a_token_is_asked_for_once(board: Board) -> None:
    with site_of({"main": open_model("uniform:5", "tic_tac_toe", 5)}, token=TOKEN) as address:
        board.driver.get(f"http://{address}/")
        board.until(lambda: board.one("login").is_displayed())
        board.one("token").send_keys("not the token", Keys.ENTER)
        board.until(lambda: board.one("login_said").text == "This is not the token.")
        board.one("token").send_keys(TOKEN, Keys.ENTER)
        board.until(lambda: board.one("connected").text == "connected")
        board.until(lambda: not board.one("login").is_displayed())
        # The browser tells of each answer 401.
        assert [error.rpartition("401")[2] for error in board.errors()] == [" (Unauthorized)"] * 2
        board.one("logout").click()
        board.until(lambda: board.one("login").is_displayed())
        assert [error.rpartition("401")[2] for error in board.errors()] == [" (Unauthorized)"]
        board.driver.get("about:blank")


def test_a_lost_connection_is_said_and_the_game_goes_on(board: Board) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    arguments = ("uniform:5", "--game", "tic_tac_toe")
    with process(*arguments, "--port", port) as (address, server):
        board.open(address)
        board.click("b2")
        server.kill()
        board.until(lambda: "lost" in board.one("connected").text)
        assert board.ply == 2
    with process(*arguments, "--port", port):
        board.until(lambda: board.one("connected").text == "connected")
        board.settle()
        moves = board.moves
        board.click(next(iter(board.places())))
        assert board.moves[:2] == moves
        assert board.ply >= 3
    with process("uniform:5", "--game", "connect_four", "--port", port):
        board.until(lambda: board.one("connected").text == "connected" and board.moves == [])
        board.settle()
        board.click(next(iter(board.places())))  # the player of this name plays another game now
        assert board.ply >= 2
        assert all("WebSocket" in error or "/about" in error for error in board.errors())
        board.driver.get("about:blank")


def test_a_server_that_was_started_again_asks_for_the_token_again(board: Board) -> None:
    with site_of({"main": open_model("uniform:5", "tic_tac_toe", 5)}, token=TOKEN) as address:
        board.driver.get(f"http://{address}/")
        board.until(lambda: board.one("login").is_displayed())
        board.one("token").send_keys(TOKEN, Keys.ENTER)
        board.until(lambda: board.one("connected").text == "connected")
        # As the end of the process does.
        board.driver.delete_all_cookies()
        port = int(address.rpartition(":")[2])
    with site_of({"main": open_model("uniform:5", "tic_tac_toe", 5)}, token=TOKEN, port=port):
        board.until(lambda: board.one("login").is_displayed())
        board.one("token").send_keys(TOKEN, Keys.ENTER)
        board.until(lambda: board.one("connected").text == "connected")
        board.errors()
        board.driver.get("about:blank")


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_nothing_is_out_of_reach(board: Board, address: str, size: tuple[int, int]) -> None:
    """axe-core finds nothing, and no width needs scrolling sideways."""
    script = pytest.importorskip("axe_playwright_python")
    axe = (Path(script.__file__).parent / "axe.min.js").read_text()
    for name in ("chess", "walls"):
        board.open(address, name, size)
        board.one("hints").click()
        board.until(lambda: "Searched" in board.one("root").text)
        board.script(axe)
        for dialog in (None, "open_load", "open_save"):
            if dialog is not None:
                board.one(dialog).click()
            found = board.driver.execute_async_script(
                "const done = arguments[0]; axe.run().then((found) => done(found.violations.map((one) => "
                "[one.id, one.nodes.map((node) => node.html.slice(0, 200))])), (error) => done(String(error)))"
            )
            assert found == [], (name, dialog, found)
            board.script("document.querySelector('dialog[open]')?.close()")
        assert board.script("return document.documentElement.scrollWidth") <= size[0]


def test_a_game_of_the_run_is_opened_with_what_was_thought(board: Board, tmp_path: Path) -> None:
    run = collect(tmp_path / "run", "tic_tac_toe", iterations=2)
    iteration, record = next(iter(run.games([2])))
    stored = game_as_dict(run.start, record)
    with site_of({"main": open_model("uniform:20", "tic_tac_toe", 20)}, run=run, renews=True) as found:
        board.open(found)
        board.one("open_archive").click()
        board.until(lambda: board.all("#archive_games button"))
        assert board.one("archive_iteration").get_attribute("value") == f"{iteration}"
        (button,) = [one for one in board.all("#archive_games button") if f"Game {record.game_id}:" in one.text]
        assert f"{len(record)} plies" in button.text
        button.click()
        board.until(lambda: not board.one("archive").is_displayed() and len(board.moves) == len(record))
        # What a move lost in value may stand behind its name.
        assert [move.split(" ")[0] for move in board.moves] == [ply["name"] for ply in stored["plies"]]
        ply = next(number for number, one in enumerate(stored["plies"]) if one["searched"])
        for _ in range(ply):
            board.one("on").click()
        best = max(stored["plies"][ply]["search"], key=lambda one: one["visits"])
        row = board.until(lambda: board.all("#candidates tr"))[0].text
        assert f"{best['visits']}" in row.split()
        assert "When the run played" in board.one("root").text
        board.one("new").click()
        board.until(lambda: board.moves == [])
    assert board.one("problem").is_displayed() is False
