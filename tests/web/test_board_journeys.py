r"""What people do on the board in a browser, and what they see: `journeys/*.txt`, as `transcripts.py` reads them.

    $ noughts              the player of `browser.GAMES` that is chosen, or a game, which gets a server of its own
    > click e2, e4         touch places, and wait for the next position; `cat on…` is the place that begins so
    > touch e2             touch a place
    > press new            press what is named so; it may be in a part that is folded
    > pick pass            press the button with this text or title, or one that begins so
    > choose clock: 3+2    choose from a list; of the dialog of a new game, and the game on the board goes on with it
    > begin clock: 3+2     begin a new game with this choice; `begin` alone changes nothing
    > enter komi: 0.5      write into a field, and leave it; `fill` pastes a text, `add` writes behind it
    > type typed: a3       write into a field, and press Enter
    > load TEXT            load a game; `{saved}` is what was saved. `\n` begins a line there, and `\\` is a backslash
    > submit               press the button that loads
    > save game            save this choice of the dialog
    > reload               reload the page
    < status: X to move.   see this, or wait until it is there; `-` is what is not shown

What is seen is a field of `SEEN`, or the text or the value of what is named so. A redesign of the board changes this
file and `browser.py`.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.keys import Keys

from azpy.serving.models import open_model
from browser import GAMES, SHOWN, Board, needs_browser
from transcripts import HEARD, Line, blocks, is_met

pytest_plugins = ["browser"]
pytestmark = needs_browser


def told(tree: list[Any]) -> str:
    """A tree of moves, its variations in brackets."""
    return " ".join(f"({told(one)})" if isinstance(one, list) else one for one in tree)


def unescaped(text: str) -> str:
    return re.sub(r"\\(n|\\)", lambda found: "\n" if found[1] == "n" else "\\", text)


def texts(selector: str) -> Callable[["Person"], str]:
    script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText.trim()).join(', ')"
    return lambda person: str(person.board.script(script, selector))


IS_SEEN = """
    const isSeen = (one) => one.checkVisibility() && one.getClientRects().length > 0 && one.offsetHeight !== 0;
"""
UNFOLD = f"""
    {IS_SEEN}
    const one = document.getElementById(arguments[0]);
    one.closest("details")?.setAttribute("open", "");
"""
# The button with this text or title, or the first one that begins so or has it.
NAMED = f"""
    {IS_SEEN}
    const named = [...document.querySelectorAll("button")].filter((one) => isSeen(one) && !one.disabled);
    const text = (one) => one.innerText.trim() || one.title;
    const [name] = arguments;
    const tests = [(one) => one === name, (one) => one.startsWith(name), (one) => one.includes(name)];
    return tests.map((test) => named.find((one) => test(text(one)))).find(Boolean);
"""


class Person:
    """Who does and sees what a journey has."""

    def __init__(self, board: Board, saved: Path) -> None:
        self.board, self._folder, self.saved, self.refusal = board, saved, "", ""

    def do(self, text: str) -> None:
        board = self.board
        assert self.refusal == "", self.refusal
        verb, _, rest = text.partition(" ")
        name, _, value = rest.partition(":")
        if verb in {"click", "touch"}:
            board.settle()
            ply = board.ply
            for place in rest.split(", "):
                self._place(place).click()
            if verb == "click":
                board.settle(ply + 1)
        elif verb == "press":
            board.wait(SHOWN)  # what is shown then may move the buttons
            board.until(lambda: board.script(f"{UNFOLD} return isSeen(one) && !one.disabled && one", rest)).click()
        elif verb == "pick":
            board.until(lambda: board.script(NAMED, rest)).click()
        elif verb == "choose":
            board.choose(name, value.strip())
            board.settle()
        elif verb == "begin":
            board.begin(**({name: value.strip()} if name else {}))
        elif verb == "enter":
            board.enter(name, value.strip())
        elif verb == "type":
            board.unfold(name).clear()
            board.one(name).send_keys(value.strip(), Keys.ENTER)
        elif verb == "add":
            board.one(name).send_keys(Keys.END, value.strip())
        elif verb == "fill":
            board.script("document.getElementById(arguments[0]).value = arguments[1]", name, unescaped(value.strip()))
        elif verb == "submit":
            board.all("#load_form .main")[0].click()
        elif verb == "load":
            self.refusal = board.load(unescaped(rest).replace("{saved}", self.saved))
        elif verb == "save":
            self.saved = board.save(self._folder, rest)
        else:
            assert text == "reload", text
            board.driver.refresh()
            board.until(lambda: board.one("status").text != "…" and board.state != "busy")

    def sees(self, field: str, wanted: Line) -> bool:
        return is_met(wanted, self.value(field))

    def value(self, field: str) -> str:
        if field == "refusal":
            refusal, self.refusal = self.refusal, ""
            return refusal
        if field in SEEN:
            return SEEN[field](self)
        told = "one.matches('input, select, textarea') ? one.value : one.innerText"
        text = self.board.script(f"{UNFOLD} return isSeen(one) ? {told} : '-'", field.replace(" ", "_"))
        return str(text).strip().replace("\N{MINUS SIGN}", "-")

    def _place(self, name: str) -> Any:
        found = self.board.places()
        if name.endswith("…"):
            (name,) = [each for each in found if each.startswith(name[:-1])]
        return found[name]


SEEN: dict[str, Callable[[Person], str]] = {
    "state": lambda person: person.board.state,
    "ply": lambda person: str(person.board.ply),
    "moves": lambda person: " ".join(person.board.moves).replace("\N{MINUS SIGN}", "-"),
    "rows": lambda person: " / ".join(person.board.rows),
    "tree": lambda person: told(person.board.tree),
    "free": lambda person: " ".join(sorted(person.board.places())),
    "offered": lambda person: " ".join(sorted(person.board.places(".next"))),
    "marked": lambda person: str(len(person.board.all("#board .last"))),
    "crossed": lambda person: " ".join(sorted(person.board.crossed)),
    "buttons": texts("#choices button"),
    "notes": lambda person: " ".join(
        sorted(one.get_attribute("class").removeprefix("noted ") for one in person.board.all("#overlay .noted"))
    ),
    "names": lambda person: " ".join(sorted(person.board.each("#names option", "one.value"))),
    "games": texts("#load_game option"),
    "pieces": lambda person: " ".join(
        str(one.get_attribute("aria-label")) for one in person.board.all("#pieces button") if one.is_displayed()
    ),
    "games before": texts("#games_before button"),
    "values": lambda person: texts("#bars .told")(person).replace("\N{MINUS SIGN}", "-"),
    "turned": lambda person: str(person.board.one("turn").get_attribute("aria-pressed")),
    "focus": lambda person: str(person.board.script("return document.activeElement.id")),
    "saved": lambda person: person.saved.strip(),
}


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=title) for title, block in blocks(Path(__file__).parent / "journeys")]
)
def test_a_journey_goes_as_written(block: list[Line], board: Board, address: str, saved: Path, serve: Any) -> None:
    person = Person(board, saved)
    for line in block:
        if line.kind == "$":
            if line.text in GAMES:
                board.open(address, line.text)
            else:
                name = line.text.partition("(")[0]
                board.open(serve({name: open_model("uniform:5?solver=true", line.text, 5)}), name)
        elif line.kind == ">":
            try:
                person.do(line.text)
            except TimeoutException as error:
                raise AssertionError(f"{line.place}: {line.text!r} came to no end: {error.msg}") from error
        for part in line.text.split(" | ") if line.kind in HEARD else ():
            field, _, wanted = part.partition(":")
            try:
                board.until(partial(person.sees, field, line._replace(text=wanted.strip())))
            except TimeoutException:
                saw = person.value(field)
                raise AssertionError(f"{line.place}: expected {part!r}, saw {saw!r}") from None
    assert person.refusal == ""
