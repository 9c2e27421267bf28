"""The analysis on the board in a browser: hints, lines, values, and what is read aloud."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains

from azpy.serving.limits import CLIENT_LIMITS
from azpy.serving.models import open_model
from azpy.web.app import Bounds
from browser import NARROW, WIDE, Board, needs_browser
from models import make_model

pytest_plugins = ["browser"]
pytestmark = needs_browser


def test_hints_are_hidden_until_wanted_and_tell_lines_and_values(board: Board, address: str) -> None:
    board.open(address, "fours")
    board.click("column 4")
    assert board.all("#overlay .candidate") == []
    assert not board.one("hinted").is_displayed()
    board.one("hints").click()
    board.until(lambda: "Searched" in board.one("root").text)
    assert len(board.all("#candidates tr")) == 7
    assert len(board.all("#overlay .candidate")) == 7
    assert board.one("bars").get_attribute("aria-label").startswith("Values: ")
    colors = board.each("#bars :is(.fill, .track)", "getComputedStyle(one).backgroundColor")
    assert colors == ["rgb(36, 99, 196)", "rgb(208, 59, 47)"]  # blue, and on it red
    board.all("#candidates button")[1].click()
    assert board.all("#candidates button")[1].get_attribute("aria-pressed") == "true"
    assert "number 2" in board.one("variation_title").text
    board.all("#variation button")[0].click()
    board.until(lambda: board.one("preview").is_displayed())
    board.one("analyse").click()
    board.until(lambda: len(board.all("#graph .value")) == board.ply + 1)
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


def test_screen_reader_text_survives_search_reports(board: Board, address: str) -> None:
    """Figures change around the element with the focus; it stays in the page, and so does its text."""
    board.open(address, "go")
    board.choose("side", "all")
    board.click("C3")
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
    board.one("hints").click()  # ends the search


def test_rows_move_around_the_one_with_the_focus(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.script("document.getElementById('hinted').hidden = false")
    found = board.script(
        """
        const table = document.getElementById("candidates");
        const rows = () => [...table.rows].map((row) => row.dataset.move).join("");
        const named = (name) => table.querySelector(`[data-move="${name}"] button`);
        return import("/board/candidates.js").then(({ Candidates }) => {
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
          return [seen, isHeld, rows(), document.activeElement.textContent];
        });
        """
    )
    # The row with the focus stays in the table, behind the ten best ones. Where its move goes, another row gets it.
    assert found == [["cabdefghij", "kjihgfedbac", "bakc", "bc", "ebacd"], True, "xyz", "z"]


def is_searched(board: Board, ply: int) -> bool:
    """Whether the position after so many moves is there, with what a search says of it."""
    return board.ply == ply and "Searched" in board.one("root").text


def test_values_are_those_of_the_adviser_alone(board: Board, serve: Any, tmp_path: Path) -> None:
    """Values of another network do not count, until it advises; the game goes on."""
    for weight in (0.5, 0.9):
        (tmp_path / f"{weight}.onnx").write_bytes(make_model(weight=weight))
    models = {f"of {weight}": open_model(str(tmp_path / f"{weight}.onnx"), "tic_tac_toe", 9) for weight in (0.5, 0.9)}

    def analyzed_by() -> set[str]:
        """The networks of all positions, once every move is analyzed."""
        board.one("analyse").click()
        board.until(lambda: board.one("analysed").text == "Every move is analyzed.")
        networks = set()
        for ply in reversed(range(len(board.moves))):
            board.one("back").click()
            board.until(partial(is_searched, board, ply))
            networks.add(board.one("root").text.rpartition("network ")[2])
        board.one("last").click()
        board.settle(4)
        return networks

    # Where one search has room, a network's move goes before the advice.
    board.open(serve(models, Bounds(client=replace(CLIENT_LIMITS, searches=1))), "of 0.5")
    board.begin(side="other", player_1="of 0.9")
    board.one("hints").click()
    for _ in range(2):
        ply = board.ply
        next(iter(board.places().values())).click()
        board.settle(ply + 2)
    moves = [move.split(" ")[0] for move in board.moves]
    networks = analyzed_by()
    assert len(networks) == 1
    board.choose("adviser", "of 0.9")
    board.until(lambda: board.one("root").text.startswith("Searched"))
    assert networks.isdisjoint({board.one("root").text.rpartition("network ")[2]})
    # It has values only for positions where it moved, and for the last one.
    assert len(board.all("#graph .value")) < len(moves) + 1
    other = analyzed_by()
    assert len(other) == 1
    assert networks.isdisjoint(other)
    assert [move.split(" ")[0] for move in board.moves] == moves


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "dark"), (NARROW, "light")])
def test_the_page_is_accessible_and_never_scrolls_sideways(
    board: Board, address: str, size: tuple[int, int], scheme: str
) -> None:
    """axe-core finds nothing, by day and by night, and no width needs scrolling sideways."""
    script = pytest.importorskip("axe_playwright_python")
    axe = (Path(script.__file__).parent / "axe.min.js").read_text()
    for name in ("chess", "walls"):
        board.open(address, name, size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        board.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        board.one("hints").click()
        board.until(lambda: "Searched" in board.one("root").text)
        board.script(axe)
        # Dialogs are the same for each game, and nothing else of the page can be reached meanwhile.
        for dialog in (None, *(["new", "open_load", "open_save", "open_archive"] if name == "chess" else [])):
            if dialog is not None:
                board.unfold(dialog).click()
            found = board.script(
                "return axe.run(document.querySelector('dialog[open]') ?? document).then((found) => "
                "found.violations.map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 200))]))"
            )
            assert found == [], (name, dialog, found)
            board.script("document.querySelector('dialog[open]')?.close()")
        assert board.script("return document.documentElement.scrollWidth") <= size[0]
        if size == WIDE:  # the board takes the height of the window, with both players at its edges
            first, second = (board.one(f"side_{player}").rect for player in (0, 1))
            assert second["y"] < 50
            assert 0.9 * size[1] < first["y"] + first["height"] <= size[1]
        forced = [{"name": "forced-colors", "value": "active"}]
        board.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": forced})
        colors = "[one, one.parentElement].map((part) => getComputedStyle(part).backgroundColor)"
        for part in ("#bars .fill", ".bar .search", ".bar .policy"):
            inner, outer = board.each(part, colors)[0]
            assert inner != outer, part
        assert board.each("#overlay .candidate.best text", "getComputedStyle(one).fill")[0] == "rgb(255, 255, 255)"
        board.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        # What is wrong is said in view, wherever the page was scrolled.
        wrong = """
            scrollTo(0, document.documentElement.scrollHeight);
            document.getElementById("typed").value = "zz";
            document.getElementById("typed_form").requestSubmit();
            const { top, bottom } = document.getElementById("problem").getBoundingClientRect();
            return [scrollY > 0, top, bottom > 0];
        """
        assert board.script(wrong) == [True, 0, True]
