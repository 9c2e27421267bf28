"""The board in a browser, for the tests of several files: the page, its server, and a game whose texts are rude.

A call of the browser takes 10 ms of processor time, a click 135 ms and a new page a second. So each step here is one
script where it can be, waits look ever less often, and only what a journey presses is clicked as a person does.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import (
    JavascriptException,
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from azpy.serving.models import open_model
from oracles import Countdown
from served import site_of
from talks import PATIENCE

BROWSER, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
needs_browser = pytest.mark.skipif(not (BROWSER.exists() and DRIVER.exists()), reason="chromium is not installed")

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
    "rude": "browser:Rude",
    "three": "many_players:Colors",
    "alone": "many_players:Knapsack",
}

# Chooses from a list, by the value or by the text. Lists of the dialog of a new game are chosen there: then the game on
# the board goes on, if there is one.
CHOOSE = """
    const press = (id) => document.getElementById(id).click();
    const choose = (id, value) => {
      const [list, setup] = [document.getElementById(id), document.getElementById("setup")];
      const asks = setup.contains(list) && !setup.open;
      if (asks) press("new");
      list.value = [...list.options].find((one) => [one.value, one.text].includes(value)).value;
      list.dispatchEvent(new Event("change", { bubbles: true }));
      if (asks) press(document.getElementById("keep").checkVisibility() ? "keep" : "start");
      return asks;
    };
"""

# Whether the position is known.
SHOWN = "return board.dataset.state !== 'busy' || document.body.textContent.includes('is thinking')"


class Rude(Countdown):
    """One move ends it. Its texts and its picture try to be more than texts and a picture."""

    def __init__(self, heap: int = 1, player: int = 0, *, turns: int = 1) -> None:
        super().__init__(heap, player, turns=turns)

    def action_name(self, action: int) -> str:
        return "<img/src=x/onerror=document.title='rude'>"

    def to_svg(self) -> str:
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="document.title=\'rude\'">'
            "<script>document.title = 'rude'</script><rect width='9' height='9'/></svg>"
        )


class Part(WebElement):
    """An element of the page. A click goes through the browser's input, once the element is seen and not disabled."""

    def click(self) -> None:
        script = """
            const one = arguments[0];
            if (one.tagName === "OPTION") return { at: [] };
            one.scrollIntoView({ block: "nearest", behavior: "instant" });
            const { x, y, width, height } = one.getBoundingClientRect();
            const [u, v] = [x + width / 2, y + height / 2];
            const there = document.elementFromPoint(u, v);
            if (!one.contains(there) || one.disabled) return { why: [one, there].map((each) => each?.outerHTML) };
            const frame = window.frameElement?.getBoundingClientRect() ?? { x: 0, y: 0 };
            return { at: [u + frame.x, v + frame.y] }; // of the whole page
        """
        board, found = Board(self.parent), dict[str, Any]()

        def is_found() -> bool:
            found.update(board.script(script, self))
            return "at" in found

        try:
            board.until(is_found)
        except TimeoutException as error:
            raise TimeoutException(f"it cannot be clicked: {found}") from error
        if found["at"]:
            board.tap(*found["at"])
        else:  # an option of a list
            super().click()


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
        """Waits until there is something; gives it. Parts of a page that loads, or draws itself again, come later."""
        end, pause = time.monotonic() + PATIENCE, 0.01
        why: Exception | None = None
        while True:
            try:
                if found := done():
                    return found
            except (JavascriptException, NoSuchElementException, StaleElementReferenceException) as error:
                why = error
            if time.monotonic() > end:
                raise TimeoutException from why
            time.sleep(pause)
            pause = min(1.5 * pause, 0.2)

    def each(self, selector: str, what: str, *arguments: Any) -> list[Any]:
        """What a script says of each element, at one moment: the page may draw itself again between two calls."""
        script = f"return [...document.querySelectorAll(arguments[0])].map((one) => {what})"
        found: list[Any] = self.script(script, selector, *arguments)
        return found

    @property
    def state(self) -> str:
        """busy, open (a person can play), or over."""
        return str(self.script("return document.getElementById('board').dataset.state"))

    @property
    def ply(self) -> int:
        """-1 while the page has no position yet."""
        return int(self.script("return document.getElementById('board').dataset.ply ?? -1"))

    @property
    def moves(self) -> list[str]:
        """The moves of the main line, with what they lost."""
        found: list[str] = self.script(
            """
            const said = (move, part) => move.querySelector(part)?.textContent ?? "";
            const moves = [...document.querySelectorAll("#moves > li:not(.variation)")];
            return moves.map((move) => said(move, ".name") + said(move, ".loss"));
            """
        )
        return found

    @property
    def rows(self) -> list[str]:
        """The lines of the list of moves, one for each turn of several moves or pair of moves."""
        found: list[str] = self.script(
            """
            const rows = [];
            for (const move of document.querySelectorAll("#moves button")) {
              const text = [...move.children].map((part) => part.textContent).filter((part) => part !== "").join(" ");
              if (move.parentElement.className === "row") rows.push(text);
              else rows.push([rows.pop(), text].filter(Boolean).join(" "));
            }
            return rows;
            """
        )
        return found

    @property
    def tree(self) -> list[Any]:
        """The moves, where a list is a variation that stands for the move before it."""
        found: list[Any] = self.script(
            """
            const isVariation = (item) => item.className === "variation";
            const name = (item) => item.querySelector(".name").textContent;
            const told = (item) => isVariation(item) ? read(item.firstElementChild) : name(item);
            const read = (list) => [...list.children].map(told);
            return read(document.getElementById("moves"));
            """
        )
        return found

    def settle(self, ply: int = 0) -> str:
        """Waits until it is a person's turn after so many moves, or the game is over."""
        return str(
            self.wait("const { state, ply } = board.dataset; return state !== 'busy' && ply >= wanted && state", ply)
        )

    def wait(self, holds: str, wanted: Any = None) -> Any:
        """Waits without a look from outside until something holds of the board; gives it."""
        return self.driver.execute_async_script(
            f"""
            const [wanted, done] = arguments;
            const board = document.getElementById("board");
            const holds = () => {{ {holds} }};
            const look = () => {{
              const found = holds();
              if (!found) return;
              watcher.disconnect();
              done(found);
            }};
            const watcher = new MutationObserver(look);
            watcher.observe(document.body, {{ attributes: true, childList: true, characterData: true, subtree: true }});
            look();
            """,
            wanted,
        )

    def unfold(self, id_: str) -> Any:
        """An element, after what holds it was unfolded."""
        return self.script(
            """
            const one = document.getElementById(arguments[0]);
            one.closest("details")?.setAttribute("open", "");
            return one;
            """,
            id_,
        )

    def choose(self, id_: str, value: str) -> None:
        """Chooses from a list, by the value or by the text.

        Opens the dialog of a new game for its lists, and then goes on with the game on the board, if there is one.
        """
        if self.script(f"{CHOOSE} return choose(...arguments)", id_, value):
            self.wait(SHOWN)

    def enter(self, id_: str, text: str) -> None:
        """Types into a field, and leaves it."""
        field = self.unfold(id_)
        field.clear()
        field.send_keys(text, Keys.TAB)

    def begin(self, **chosen: str) -> None:
        """Begins a new game with what is chosen in its dialog, and waits for its first position."""
        self.script(
            f"""
            {CHOOSE}
            press("new");
            for (const [id, value] of Object.entries(arguments[0])) {{
              // A server of one game does not ask for it.
              if (document.getElementById(id).checkVisibility()) choose(id, value);
            }}
            press("start");
            """,
            chosen,
        )
        self.wait(SHOWN)

    def open(self, address: str, name: str | None = None, size: tuple[int, int] = WIDE) -> None:
        """Opens the page with a player, and nothing that was kept from before."""
        command = self.driver.execute_cdp_cmd
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        command("Emulation.setDeviceMetricsOverride", metrics)
        # Once the page before has kept what it has.
        source = "sessionStorage.clear(); localStorage.clear()"
        forget = command("Page.addScriptToEvaluateOnNewDocument", {"source": source})
        self.driver.get(f"http://{address}/")
        command("Page.removeScriptToEvaluateOnNewDocument", forget)
        self.wait("return document.getElementById('status').textContent !== '…'")
        if name is not None:
            self.begin(game=name)
        self.settle()

    def places(self, kind: str = "") -> dict[str, Any]:
        """The places that can be touched now, or those of a kind."""
        # One call of the browser, not one a place.
        kind = kind or ":not([aria-disabled])"
        by_name = "[...document.querySelectorAll(arguments[0])].map((place) => [place.dataset.place, place])"
        found: dict[str, Any] = self.script(f"return Object.fromEntries({by_name});", f".place{kind}")
        return found

    @property
    def crossed(self) -> set[str]:
        """The places with a cross on them."""
        found: list[str] = self.script(
            """
            const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];
            const boxes = (selector) => [...document.querySelectorAll(selector)].map((one) => [
              one.dataset.place, ...middle(one.getBoundingClientRect())]);
            const places = boxes(".place");
            return boxes("#overlay .cross").map(([, x, y]) =>
              places.find(([, u, v]) => Math.hypot(x - u, y - v) < 3)?.[0] ?? "nowhere");
            """
        )
        return set(found)

    def click(self, *places: str) -> None:
        """Clicks places of the picture, one after the other, and waits for what follows."""
        ply = self.ply
        for place in places:
            self.places()[place].click()
        self.settle(ply + 1)

    def press(self, box: dict[str, float]) -> None:
        """Clicks the middle of a box of the page."""
        self.tap(*(box[start] + box[side] / 2 for start, side in (("x", "width"), ("y", "height"))))

    def tap(self, x: float, y: float) -> None:
        """Clicks a point of the page."""
        for kind in ("mousePressed", "mouseReleased"):
            event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
            self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)

    def click_any(self, rng: random.Random) -> list[str]:
        """Plays any move that can be clicked. Returns the places that were clicked, or the text of a button."""
        ply, clicked = self.ply, list[str]()
        left = [*self.places().items(), *((button.text, button) for button in self.all("#choices button"))]
        while left:
            name, place = rng.choice(left)
            place.click()
            clicked.append(name)
            left = list(self.places(".next").items()) if self.ply == ply else []
        self.until(lambda: self.ply > ply or self.one("pieces").is_displayed())
        if self.ply == ply:
            rng.choice(self.all("#pieces button")).click()
        self.settle(ply + 1)
        return clicked

    def load(self, text: str) -> str:
        """Loads a text, and waits for its position; returns what is said against it."""
        self.script(
            """
            document.getElementById("open_load").click();
            document.getElementById("load_text").value = arguments[0];
            document.getElementById("load_form").requestSubmit();
            """,
            text,
        )
        refused = self.wait(
            """
            if (!document.getElementById("load").open) return [""];
            const said = document.getElementById("load_said").textContent;
            return said.includes("cannot") && [said];
            """
        )[0]
        if refused:
            self.script("document.getElementById('load_cancel').click()")
        else:
            self.settle()
        return str(refused)

    def save(self, folder: Path, what: str = "game") -> str:
        """What the save dialog saves into an empty folder."""
        for file in folder.iterdir():
            file.unlink(missing_ok=True)
        self.script("document.getElementById('open_save').click()")
        self.choose("save_what", what)
        self.until(lambda: self.one("save_text").get_attribute("value"))
        self.script("document.getElementById('save_file').click()")
        # The browser writes into a hidden file and into *.crdownload first.
        (file,) = self.until(lambda: [file for file in folder.glob("[!.]*") if file.suffix != ".crdownload"])
        self.script("document.getElementById('save_cancel').click()")
        return str(file.read_text())

    def errors(self) -> list[str]:
        """What the browser complains of since the last call, such as a breach of the page's policy."""
        return [one["message"] for one in self.driver.get_log("browser") if one["level"] in {"SEVERE", "WARNING"}]

    def keys(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the browser puts what is saved."""
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="session")
def driver(saved: Path) -> Iterator[Any]:
    os.environ["SE_OFFLINE"] = "true"
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(saved)})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    driver._web_element_cls = Part
    driver.set_script_timeout(PATIENCE)
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """A server of one player for each game."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(Path(__file__).parents[2] / "azpy/checks/template")
        with site_of({name: open_model("uniform:20", game, 20) for name, game in GAMES.items()}) as found:
            yield found


@pytest.fixture
def board(driver: Any) -> Iterator[Board]:
    found = Board(driver)
    yield found
    assert found.errors() == []


@pytest.fixture
def serve(board: Board) -> Iterator[Callable[..., str]]:
    """Serves players, as `site_of` does, until the test ends and the browser has left their page."""
    with ExitStack() as stack:
        yield lambda *models, **options: stack.enter_context(site_of(*models, **options))
        board.driver.get("about:blank")
