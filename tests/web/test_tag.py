"""A player in other people's pages and programs: <azpy-board>, and the class Player without a board."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from azpy.games.names import make_game
from azpy.web.page import write_page
from browser import Board, needs_browser
from pages import NODE, files_of, hosted, needs_node, served_by
from running import ended

pytest_plugins = ["browser"]

TRIO = "connect_four_for_three"
EXAMPLES = Path(__file__).parents[2] / "examples/web"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples and two players."""
    folder = tmp_path_factory.mktemp("site")
    games = {"player": "connect_four", "noughts": "tic_tac_toe", "dice": "pig(target=10)", "trio": TRIO}
    for name, game in games.items():
        with served_by(game) as model:
            write_page(folder / name, model.player, None, b"")
    for example in EXAMPLES.iterdir():
        shutil.copy(example, folder)
    return folder


def in_node(folder: Path, program: str) -> Any:
    """What a module prints as JSON. It ends by itself."""
    assert NODE is not None
    (folder / "program.mjs").write_text(program)
    done = ended([NODE, "program.mjs"], cwd=folder)
    assert done.code == 0, done.errors
    return json.loads(done.out)


@needs_node
@pytest.mark.parametrize("name", ["player", "noughts", "dice"])
def test_a_player_plays_whole_games_in_node(name: str, site: Path) -> None:
    done = ended([str(NODE), "node_game.mjs", name], cwd=site)
    assert done.code == 0, done.errors
    moves, result = done.out.splitlines()
    state = make_game({"player": "connect_four", "noughts": "tic_tac_toe", "dice": "pig(target=10)"}[name])
    for move in moves.split(" "):
        state.play(state.parse_actions(move)[0])
    assert state.is_terminal
    assert result == state.result_text()


@needs_node
def test_a_player_describes_positions_and_refuses_what_it_cannot_play(site: Path) -> None:
    trio, moves = make_game(TRIO), list[str]()
    while not trio.is_terminal:
        moves.append(trio.action_name(trio.legal_actions()[0]))
        trio.play(trio.legal_actions()[0])
    found = in_node(
        site,
        """
        import { Player } from "./noughts/azpy.js";
        import { Player as Trio } from "./trio/azpy.js";
        const player = await Player.load();
        const refused = (promise) => promise.then(() => null, (error) => error.message);
        const over = ["a3", "a2", "b3", "b2", "c3"];
        console.log(JSON.stringify({
          game: player.game,
          levels: player.levels,
          win: await player.choose(["a3", "a2", "b3", "b2"], { simulations: 200 }),
          start: await player.look([]),
          end: await player.look(over),
          over: await refused(player.choose(over)),
          illegal: await refused(player.choose(["a3", "a3"])),
          half: await refused(player.choose(["\\ud83d"])),
          level: await refused(player.choose([], { level: "grandmaster" })),
          trio: await (await Trio.load()).look("MOVES".split(" ")),
          missing: await refused(Player.load("nothing")),
          closed: (player.close(), await refused(player.choose([]))),
        }));
        """.replace("MOVES", " ".join(moves)),
    )
    assert (found["game"], found["levels"][0], found["levels"][-1]) == ("tic_tac_toe", "beginner", "full strength")
    assert found["win"] == "c3"
    state = make_game("tic_tac_toe")
    assert (found["start"]["player"], found["start"]["outcome"]) == (0, None)
    assert found["start"]["moves"] == [state.action_name(action) for action in state.legal_actions()]
    assert (found["end"]["outcome"], found["end"]["moves"]) == (1, [])
    assert found["over"] == "the game is over: there is no move to choose"
    assert "a3" in found["illegal"]
    assert "\ufffd" in found["half"]
    assert found["level"].startswith("level: expected one of beginner, ")
    assert "nothing/azpy.json" in found["missing"]
    assert found["closed"] == "the player was closed"
    assert (found["trio"]["outcome"], found["trio"]["result"]) == (list(trio.outcome()), trio.result_text())


@needs_node
def test_a_session_that_failed_says_so_once(site: Path) -> None:
    said = in_node(
        site,
        f"""
        import {{ Session }} from "./player/{files_of(site / "player").name}/board/session.js";
        const said = [];
        const session = new Session(null, (line) => said.push(line));
        session.engine = {{ ask() {{ throw new Error("no memory"); }}, said: () => [] }};
        session.ask("one");
        session.ask("another");
        console.log(JSON.stringify(said));
        """,
    )
    assert [line and json.loads(line)["error"] for line in said] == [
        "the search stopped, perhaps because the page ran out of memory: Error: no memory",
        None,
    ]


@needs_node
def test_a_search_in_node_lets_other_work_go_on_and_ends_with_its_player(site: Path) -> None:
    found = in_node(
        site,
        """
        import { Player } from "./player/azpy.js";
        const player = await Player.load();
        let turns = 0;
        const count = () => (turns++, turns < 20 ? setImmediate(count) : player.close());
        const why = player.choose([], { simulations: 10000000 }).catch((error) => error.message);
        count();
        console.log(JSON.stringify({ why: await why, turns }));
        """,
    )
    assert found == {"why": "the player was closed", "turns": 20}


@needs_node
def test_a_bot_of_boardgame_io_makes_moves(site: Path) -> None:
    found = in_node(
        site,
        """
        import { botOf } from "./boardgame_bot.mjs";
        const Bot = await botOf("player/", (name) => ({ type: "drop", args: [Number(name) - 1] }));
        console.log(JSON.stringify(await new Bot().play({ G: { moves: ["4"] }, ctx: {} }, "1")));
        """,
    )
    payload = found["action"]["payload"]
    assert (found["action"]["type"], payload["type"], payload["playerID"]) == ("MAKE_MOVE", "drop", "1")
    assert payload["args"][0] in range(7)


@needs_node
def test_npm_packs_the_player(site: Path) -> None:
    package = json.loads((site / "player/package.json").read_text())
    assert (package["name"], package["type"]) == ("azpy-connect-four", "module")
    assert set(package["files"]) == {
        *("azpy.*", "index.html", "offline.js", "app.webmanifest"),
        files_of(site / "player").name,
    }
    for name in (package["main"], package["types"]):
        assert (site / "player" / name).is_file()
    types = (site / "player/azpy.d.ts").read_text()
    assert all(f" {name}(" in types for name in ("load", "choose", "look", "close", "newGame"))


@pytest.fixture
def page(board: Board, site: Path) -> Iterator[Board]:
    """The example of a page in plain HTML."""
    with hosted(site, Counter()) as host:
        board.driver.get(f"http://127.0.0.1:{host.server_port}/page.html")
        yield board
        board.driver.get("about:blank")


def frame(page: Board, number: int = 0) -> Any:
    return page.script("return document.querySelectorAll('azpy-board')[arguments[0]].shadowRoot.lastChild", number)


@needs_browser
def test_a_person_plays_on_the_board_of_another_page(page: Board) -> None:
    driver = page.driver
    driver.switch_to.frame(page.until(lambda: frame(page)))
    page.until(lambda: page.all("#board") and page.ply == 0 and page.state == "open")
    assert not page.one("new").is_displayed()
    assert page.one("who_1").text == "azpy, casual"
    page.click("column 4")
    page.until(lambda: page.ply == 2)
    # No other page begins a new game.
    heard = "new Promise((done) => addEventListener('message', () => setTimeout(done, 100)))"
    page.script(f"postMessage({{azpy: 'new'}}, '*'); return {heard}")
    assert page.ply == 2
    driver.switch_to.default_content()
    page.until(lambda: re.fullmatch(r"Moves: 4 \d", page.one("said").text))
    fits = "const page = arguments[0]; return page.clientHeight === page.contentDocument.body.offsetHeight"
    page.until(lambda: page.script(fits, frame(page)))
    moves = page.script("return document.querySelector('azpy-board').moves")
    assert (moves[0], len(moves)) == ("4", 2)
    page.script("document.querySelector('azpy-board').newGame()")
    page.until(lambda: page.one("said").text == "Your move.")
    # A board of another page keeps nothing in the browser.
    assert page.script("return localStorage.length + sessionStorage.length") == 0


@needs_browser
def test_two_boards_of_one_page_play_different_games(page: Board) -> None:
    page.script(
        """
        const tag = document.createElement("azpy-board");
        for (const [name, value] of Object.entries({ src: "noughts/", side: "none", level: "50", theme: "dark" })) {
          tag.setAttribute(name, value);
        }
        tag.addEventListener("end", ({ detail }) => (tag.title = detail.moves.join(" ")));
        document.body.append(tag);
        """
    )
    moves = page.until(lambda: page.script("return document.querySelectorAll('azpy-board')[1].title"))
    state = make_game("tic_tac_toe")
    for move in moves.split(" "):
        state.play(state.parse_actions(move)[0])
    assert state.is_terminal
    assert page.script("return document.querySelector('azpy-board').moves.length") == 0
    dark = "return arguments[0].contentWindow.matchMedia('(prefers-color-scheme: dark)').matches"
    assert page.script(dark, frame(page, 1))
    ground = page.script("return getComputedStyle(arguments[0]).backgroundColor", frame(page, 1))
    assert re.fullmatch(r"rgb\(\d\d, \d\d, \d\d\)", ground)  # dark, as its text is light


@needs_browser
def test_a_board_fits_a_narrow_page_and_has_no_scroll_bar(page: Board) -> None:
    tag = "document.querySelector('azpy-board')"
    given = {"src": "noughts/", "side": "none", "level": "1"}
    attributes = f"for (const one of Object.entries(arguments[0])) {tag}.setAttribute(...one)"
    page.script(f"document.body.style.width = '200px'; {attributes}", given)
    page.until(lambda: "wins" in page.one("said").text or "draw" in page.one("said").text)
    widths = (
        f"const f = {tag}.shadowRoot.lastChild; return [f.clientWidth, f.contentDocument.documentElement.clientWidth]"
    )
    assert page.script(widths) == [200, 200]


@needs_browser
def test_people_play_all_sides_of_a_board(page: Board) -> None:
    page.script(
        """
        document.querySelector("azpy-board").setAttribute("side", "all");
        return new Promise((done) => arguments[0].addEventListener("load", () => done()));
        """,
        frame(page),
    )
    page.driver.switch_to.frame(frame(page))
    for _ in range(3):
        page.until(lambda: page.all("#board") and page.state == "open")
        page.click("column 4")
    page.until(lambda: page.ply == 3)


@needs_browser
def test_a_player_that_is_exported_again_is_found(board: Board, site: Path) -> None:
    asked = Counter[str]()
    os.utime(site / "noughts/azpy.json", (0, 0))  # browsers take so old a file from their cache, if they may
    load = "return import('/noughts/azpy.js').then(({ Player }) => Player.load()).then(({ game }) => game)"
    with hosted(site, asked) as host:
        board.driver.get(f"http://127.0.0.1:{host.server_port}/page.html")
        for count in (1, 2):
            assert board.script(load) == "tic_tac_toe"
            assert asked["/noughts/azpy.json"] == count


@needs_browser
def test_a_board_that_is_kept_plays_without_its_host(board: Board, site: Path) -> None:
    asked = Counter[str]()
    with hosted(site, asked) as host:
        address = f"http://127.0.0.1:{host.server_port}/noughts/index.html?offline"
        board.driver.get(address)
        board.until(lambda: board.all("#board") and board.state == "open")
        ready = "return navigator.serviceWorker.ready.then(({ active }) => active.state)"
        assert board.script(ready) in ("activating", "activated")
        # While there is a network, the newest page is shown.
        page = site / "noughts/index.html"
        kept = page.read_text()
        page.write_text(kept.replace("<html", "<html data-newer", 1))
        later = page.stat().st_mtime + 9  # the host looks at whole seconds
        os.utime(page, (later, later))
        board.driver.refresh()
        assert board.script("return 'newer' in document.documentElement.dataset")
        page.write_text(kept)
    board.driver.get(address)  # the host has gone
    board.until(lambda: board.all("#board") and board.state == "open" and board.ply == 0)
    board.click("b2")
    board.until(lambda: board.ply == 2)
    app = json.loads((site / "noughts/app.webmanifest").read_text())
    assert (app["name"], app["start_url"]) == ("tic_tac_toe", "index.html?offline")
    board.script("navigator.serviceWorker.getRegistrations().then((all) => all.forEach((one) => one.unregister()))")
