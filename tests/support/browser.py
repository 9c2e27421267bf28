"""The board in a browser, for the tests of several files: the page, its server, and a game whose texts are rude."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

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
        self.until(lambda: self.state != "busy" and self.ply >= ply)
        return self.state

    def unfold(self, id_: str) -> Any:
        """An element, after what holds it was unfolded."""
        self.script("document.getElementById(arguments[0]).closest('details')?.setAttribute('open', '')", id_)
        return self.one(id_)

    def choose(self, id_: str, value: str) -> None:
        """Chooses from a list, by the value or by the text.

        Opens the dialog of a new game for its lists, and then goes on with the game on the board, if there is one.
        """
        asks = self.all(f"#setup #{id_}") != [] and not self.one("setup").is_displayed()
        if asks:
            self.one("new").click()
        options = Select(self.unfold(id_)).options
        next(one for one in options if value in (one.get_attribute("value"), one.text)).click()
        if asks:
            (self.one("keep") if self.one("keep").is_displayed() else self.one("start")).click()
            self.until(lambda: self.state != "busy" or "thinking" in self.one("status").text)

    def enter(self, id_: str, text: str) -> None:
        """Types into a field, and leaves it."""
        field = self.unfold(id_)
        field.clear()
        field.send_keys(text, Keys.TAB)

    def begin(self, **chosen: str) -> None:
        """Begins a new game with what is chosen in its dialog."""
        self.one("new").click()
        for id_, value in chosen.items():
            if self.one(id_).is_displayed():  # a server of one game does not ask for it
                self.choose(id_, value)
        self.one("start").click()

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
        pointer = ActionChains(self.driver)
        x, y = (int(box[start] + box[side] / 2) for start, side in (("x", "width"), ("y", "height")))
        pointer.w3c_actions.pointer_action.move_to_location(x, y).click()  # type: ignore[no-untyped-call]
        pointer.perform()

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
        """Loads a text; returns what is said against it."""
        self.unfold("open_load").click()
        self.script("document.getElementById('load_text').value = arguments[0]", text)
        self.all("#load_form .main")[0].click()
        said = self.until(lambda: not self.one("load").is_displayed() or "cannot" in self.one("load_said").text)
        refused = str(self.one("load_said").text) if self.one("load").is_displayed() else ""
        if refused:
            self.one("load_cancel").click()
        assert said
        return refused

    def save(self, folder: Path, what: str = "game") -> str:
        """What the save dialog saves into an empty folder."""
        for file in folder.iterdir():
            file.unlink()
        self.unfold("open_save").click()
        self.choose("save_what", what)
        self.until(lambda: self.one("save_text").get_attribute("value"))
        self.one("save_file").click()
        text = self.until(lambda: next((file.read_text() for file in folder.glob("*.[!c]*")), ""))
        self.one("save_cancel").click()
        return str(text)

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
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
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
    errors = found.errors()
    driver.get("about:blank")  # a page whose server has gone complains in the next test
    assert errors == []
