"""Records on the board in a browser: variations, typed moves, what is loaded and saved, and the games of a run."""

import json
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

import azpy
from azpy.runs.exports import game_as_dict
from azpy.serving.models import open_model
from browser import NARROW, Board, Rude, needs_browser
from training_runs import collect

pytest_plugins = ["browser"]
pytestmark = needs_browser


def test_two_tabs_with_one_game_keep_both_ways_on(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.choose("side", "all")
    board.click("b2")
    first = board.driver.current_window_handle
    board.script("window.open(location.href)")  # with what the tab keeps, as "Duplicate tab"
    (second,) = board.until(lambda: set(board.driver.window_handles) - {first})
    board.driver.switch_to.window(second)
    board.until(lambda: board.moves == ["b2"] and board.state == "open")
    board.click("a1")
    board.driver.switch_to.window(first)
    board.click("c3")
    board.driver.switch_to.window(second)
    board.click("a2")
    board.unfold("open_archive").click()
    board.all("#games_before button")[0].click()
    board.until(lambda: board.moves == ["b2", "c3"])
    board.driver.close()
    board.driver.switch_to.window(first)
    assert board.moves == ["b2", "c3"]


def test_a_link_shows_a_position(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.choose("side", "all")
    for place in ("b2", "a1"):
        board.click(place)
    link = board.script(
        """
        return Promise.all(["files", "kept"].map((name) => import(`/board/${name}.js`))).then(([files, kept]) =>
          files.linkTo(Object.assign(kept.restored(kept.now), { name: "tic_tac_toe" })));
        """
    )
    board.begin()
    board.until(lambda: "c3" in board.places() and board.moves == [])
    board.click("c3")
    board.driver.get("about:blank")
    for _ in range(2):
        board.driver.get(link)
        board.until(lambda: board.moves == ["b2", "a1"] and board.ply == 2)
        board.until(lambda: "#" not in board.driver.current_url)
        board.driver.refresh()
        board.until(lambda: board.moves == ["b2", "a1"])
    board.driver.get(link.replace("tic_tac_toe", "checkers"))
    board.until(lambda: "this server does not play checkers" in board.one("problem_text").text)


def reload_with(board: Board, now: Any, games: Any) -> None:
    """Reloads the page as if the browser had kept this game on the board, and this list of games."""
    command = board.driver.execute_cdp_cmd
    # Once the page before has kept what it has.
    source = f"""
        const [now, games] = {json.dumps([json.dumps(now), json.dumps(games)])};
        for (const place of [sessionStorage, localStorage]) place.setItem("azpy board game", now);
        localStorage.setItem("azpy board games", games);
    """
    keep = command("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    board.driver.refresh()
    command("Page.removeScriptToEvaluateOnNewDocument", keep)
    board.until(lambda: board.state == "open")


def test_what_is_not_a_game_is_passed_over(board: Board, address: str) -> None:
    """What a browser kept for this address may be of another program, or of an older page."""
    board.open(address, "noughts")
    board.choose("side", "all")
    board.click("b2")
    kept = json.loads(board.script("return localStorage.getItem('azpy board game')"))
    records = [{"nodes": [[-1, "b2", "b2", 0, None]]}, {"nodes": [None]}, {"notes": None}, {"tags": "x"}, {"ended": 5}]
    others = [*({"record": kept["record"] | record} for record in records), {"used": [1, 2, 3]}, {"at": 5}]
    shapes = [kept | other for other in others]
    for now in (None, 5, {"players": None}, *shapes):
        reload_with(board, now, 5)
        board.unfold("open_archive").click()
        assert board.all("#games_before button") == []
        board.one("archive_cancel").click()
    reload_with(board, None, [None, 5, {}, *shapes, kept | {"id": "another"}])
    board.unfold("open_archive").click()
    board.all("#games_before button")[-1].click()
    board.until(lambda: board.moves == ["b2"] and board.ply == 1)


def test_a_rude_record_is_refused_and_the_game_goes_on(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.choose("side", "all")
    board.click("b2")
    rude = {"toString": 5}
    for record in (
        {"ended": [[0, rude, "by magic"]]},
        {"ended": [["length", 1, "by magic"]]},
        {"ended": 5},
        {"tags": "x"},
        {"tags": [5]},
        {"tags": [["HA", rude]]},
        {"result": rude},
        {"players": [rude, "b"]},
        {"players": ["a", "b"], "ranks": [rude]},
    ):
        text = json.dumps({"game": "tic_tac_toe", "nodes": [[-1, "a1", "a1", 0]]} | record)
        assert "this JSON is not a saved game" in board.load(text), record
    assert (board.moves, board.state) == (["b2"], "open")
    assert (
        board.load('{"nodes": [[-1, "a1", "a1", 0, {"NAG": ["constructor", "1"]}]], "ended": [[0, 1, "by magic"]]}')
        == ""
    )
    assert (board.rows, board.one("status").text) == (["1. a1 $constructor !"], "X wins by magic.")


@pytest.mark.parametrize("length", [1, 70_000], ids=["WebSocket", "POST"])
def test_half_of_a_surrogate_pair_in_a_comment_survives_a_reload(board: Board, address: str, length: int) -> None:
    board.open(address, "noughts")
    board.choose("side", "all")
    board.click("b2")
    board.script(
        """
        const comment = document.getElementById("comment");
        comment.value = "\\ud83d" + "x".repeat(arguments[0]);
        comment.dispatchEvent(new Event("input"));
        """,
        length,
    )
    board.driver.refresh()
    board.until(lambda: board.moves == ["b2"] and board.state == "open")
    assert board.script("return document.getElementById('comment').value.length") == 1 + length


def test_a_saved_record_brings_back_variations_and_notes(board: Board, address: str, saved: Path) -> None:
    board.open(address, "noughts")
    board.choose("side", "all")
    board.unfold("comment").send_keys("the start")
    board.click("b2")
    board.one("comment").send_keys('a "quoted" note, \\ and two\nlines')
    board.click("a1")
    board.one("back").click()
    board.until(lambda: board.ply == 1)
    board.click("c3")
    board.one("comment").send_keys("of the variation")
    rows, record = board.rows, board.save(saved, "record")
    board.begin()
    assert board.load(record) == ""
    assert board.rows == rows
    loaded = json.loads(board.script("return localStorage.getItem('azpy board game')"))["record"]
    assert {"game": "tic_tac_toe"} | loaded == json.loads(record)
    assert all(note in record for note in ("the start", "two\\nlines", "of the variation"))


def test_a_game_without_room_leaves_the_earlier_ones(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.choose("side", "all")
    board.click("b2")
    board.begin()
    board.click("a1")
    board.script(
        """
        const set = Storage.prototype.setItem;
        Storage.prototype.setItem = function (name, text) {
          if (text.length > 5000) throw new DOMException("full", "QuotaExceededError");
          set.call(this, name, text);
        };
        const comment = document.getElementById("comment");
        comment.value = "x".repeat(6000);
        comment.dispatchEvent(new Event("input"));
        """
    )
    board.click("c3")
    kept = "return JSON.parse(localStorage.getItem('azpy board games')).map(({ at }) => at.join())"
    assert board.script(kept) == ["a1", "b2"]
    # Once there is room again it is still one game.
    board.script("document.getElementById('back').click()")
    board.until(lambda: board.ply == 1)
    board.enter("comment", "short")
    assert board.script(kept) == ["a1", "b2"]


def test_a_clock_goes_on_where_it_stood(board: Board, address: str) -> None:
    board.open(address, "noughts")
    board.choose("clock", "5")
    # A minute passes.
    board.script("const now = performance.now.bind(performance); performance.now = () => now() + 60000")
    board.until(lambda: board.one("clock_0").text.startswith("3:"))
    board.driver.refresh()
    board.until(lambda: board.one("clock_0").text.startswith("3:"))


def test_texts_of_a_game_stay_texts(board: Board, address: str) -> None:
    board.open(address, "rude", NARROW)
    board.one("hints").click()
    board.until(lambda: board.all("#candidates tr"))
    assert board.script("return document.documentElement.scrollWidth") <= NARROW[0]  # a long name in a table is broken
    board.all("#choices button")[0].click()
    board.until(lambda: board.state == "over")
    assert board.moves == ["<img/src=x/onerror=document.title='rude'>"]
    assert board.driver.title.startswith(board.one("status").text)


def test_the_parts_without_a_page(board: Board, address: str) -> None:
    """Names within a text, rolls by probability, losses, and the clock."""
    board.open(address, "noughts")
    found = board.script(
        """
        const parts = ["position", "game", "clock"].map((name) => import(`/board/${name}.js`));
        return Promise.all(parts).then(([position, game, { Clock }]) => {
          const late = [];
          const clock = new Clock((player) => late.push(player));
          const now = performance.now.bind(performance);
          clock.reset({ limit: 60000, more: 0, periods: 0, period: 0 });
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
          const texts = ["take 12 x", "E4", "12", "take", "e2e4e5", "bxc3", "Bxc3"];
          const rolls = [{ name: "a", probability: 0.25 }, { name: "b", probability: 0.75 }];
          const played = new game.Game();
          played.play("a");
          const told = (player, value, network) =>
            ({ values: [value, -value], visits: 9, answer: { rootInfo: { player, network, stop: "simulations" } } });
          played.root.learn("x", told(0, 0.5, "one"));
          const losses = ["other", "one"].map((network) => {
            played.current.learn("x", told(1, 0.25, network));
            return played.current.loss("x", 9);
          });
          losses.push(played.current.loss("x", 10)); // both searches were short
          played.know([{ name: "x", network: "new" }]);
          losses.push(played.root.values("x"));
          return {
            names: texts.map((text) => position.named(shown, text)),
            rolls: [0, 0.2499, 0.25, 0.999].map((share) => position.rolled(rolls, share).name),
            late,
            losses,
            used: Math.round(clock.used[0] / 1000),
            box: position.boxOf('<svg width="30" height="20"><g viewBox="0 0 1 1"/></svg>'),
          };
        });
        """
    )
    assert found == {
        "names": [None, "e2e4", "take 12", None, None, "b2c3", "d2c3"],
        "rolls": ["a", "a", "b", "b"],
        "late": [1],
        "losses": [None, 0.25, None, None],
        "used": 30,
        "box": [0, 0, 30, 20],
    }


def test_a_text_read_after_its_dialog_was_closed_is_not_taken(board: Board, address: str) -> None:
    board.open(address, "noughts")
    found = board.script(
        """
        return import("/board/dialogs.js").then(async ({ bindFiles }) => {
          const [load, form, text] = ["load", "load_form", "load_text"].map((id) => document.getElementById(id));
          const started = [];
          let answer;
          const connection = { ask: () => ({ answer: new Promise((resolve) => { answer = resolve; }) }) };
          const model = { name: "noughts", game: "tic_tac_toe" };
          bindFiles({ play: { connection }, settings: { model }, open: (game) => started.push(game) });
          for (const cancelled of [true, false]) {
            load.showModal();
            text.value = "b2";
            form.requestSubmit();
            if (cancelled) {
              load.close();
              document.getElementById("open_load").click();
            }
            answer({ position: null, nodes: [[null, "b2", "b2"]], leftOut: [] });
            await new Promise((resolve) => { setTimeout(resolve); });
            started.push(cancelled);
            load.close();
          }
          return started.map((one) => typeof one);
        });
        """
    )
    assert found == ["boolean", "object", "boolean"]


def test_save_writes_the_shown_position_while_the_next_one_loads(board: Board, address: str) -> None:
    board.open(address, "noughts")
    found = board.script(
        """
        return import("/board/dialogs.js").then(async ({ bindFiles }) => {
          const [save, said] = ["save", "save_said"].map((id) => document.getElementById(id));
          const current = { shown: { text: "x.." }, moves: () => [] };
          const settings = { model: { game: "tic_tac_toe", format: null }, options: { players: [] } };
          bindFiles({ play: { game: { current } }, settings, picture: () => "" });
          document.getElementById("open_save").click();
          const what = document.getElementById("save_what");
          what.value = "position";
          what.dispatchEvent(new Event("change"));
          await new Promise((resolve) => { setTimeout(resolve); });
          current.shown = null;
          HTMLAnchorElement.prototype.click = () => {};
          document.getElementById("save_file").click();
          await new Promise((resolve) => { setTimeout(resolve); });
          save.close();
          return said.textContent;
        });
        """
    )
    assert found == ""


def test_the_next_text_is_read_as_soon_as_one_was_cancelled(board: Board, address: str) -> None:
    board.open(address, "noughts")
    for wrong in ("b2 b2", "c3 c3"):
        board.script(
            """
            for (const id of ["load_cancel", "open_load"]) document.getElementById(id).click();
            document.getElementById("load_text").value = arguments[0];
            document.getElementById("load_form").requestSubmit();
            """,
            wrong,
        )
        board.wait("return document.getElementById('load_said').textContent.includes(wanted)", wrong[:2])


def test_a_game_of_the_run_opens_with_its_searches(board: Board, serve: Any, tmp_path: Path) -> None:
    run = collect(tmp_path / "run", "tic_tac_toe", iterations=2)
    iteration, record = next(iter(run.games([2])))
    stored = game_as_dict(run.start, record)
    board.open(serve({"main": open_model("uniform:20", "tic_tac_toe", 20)}, run=run, renews=True))
    board.unfold("open_archive").click()
    board.until(lambda: board.all("#archive_games button"))
    assert board.one("archive_iteration").get_attribute("value") == f"{iteration}"
    (button,) = [one for one in board.all("#archive_games button") if f"Game {record.game_id}:" in one.text]
    assert f"{len(record)} plies" in button.text
    button.click()
    board.until(lambda: not board.one("archive").is_displayed() and len(board.moves) == len(record))
    # What a move lost in value may stand behind its name.
    assert [move.split(" ")[0] for move in board.moves] == [ply["name"] for ply in stored["plies"]]
    ply = next(number for number, one in enumerate(stored["plies"]) if one["searched"])
    for step in range(ply):
        board.settle(step)
        board.one("on").click()
    best = max(stored["plies"][ply]["search"], key=lambda one: one["visits"])
    row = board.until(lambda: board.ply == ply and board.all("#candidates tr"))[0].text
    assert f"{best['visits']}" in row.split()
    assert "When the run played" in board.one("root").text
    board.begin()
    board.until(lambda: board.moves == [])
    assert board.one("problem").is_displayed() is False


def test_a_page_with_games_steps_through_each_of_them(board: Board, tmp_path: Path) -> None:
    games = [azpy.replay("tic_tac_toe", "b2 a1 c3"), azpy.replay("tic_tac_toe", "a1"), azpy.replay(Rude(), [0])]
    file = tmp_path / "games.html"
    file.write_text("".join(game.to_html() for game in games), "ascii")
    board.driver.get(file.as_uri())

    def shown(number: int) -> str:
        """What is said; the picture is that of the same position."""
        figure = board.all("figure")[number]
        said = figure.find_element("css selector", "output").text
        address = figure.find_element("css selector", "img").get_attribute("src")
        picture = games[number].pictures[int(said.split()[0])]
        assert board.script("return decodeURIComponent(arguments[0].split(',').slice(1).join(','))", address) == picture
        return str(said)

    first, back, forward, last = board.all("figure:first-of-type button")
    assert shown(0) == "3 of 3: X c3. O to move"
    assert [button.is_enabled() for button in (first, back, forward, last)] == [True, True, False, False]
    back.click()
    assert shown(0) == "2 of 3: O a1. X to move"
    first.click()
    assert shown(0) == "0 of 3. X to move"
    assert [button.is_enabled() for button in (first, back, forward, last)] == [False, False, True, True]
    forward.click()
    assert shown(0) == "1 of 3: X b2. O to move"
    assert shown(1) == "1 of 1: X a1. O to move"  # the other games stay where they are
    board.all("figure:first-of-type input")[0].send_keys(Keys.END)
    assert shown(0) == "3 of 3: X c3. O to move"
    board.all("figure:last-of-type button")[0].click()
    assert [shown(number)[0] for number in (0, 1, 2)] == ["3", "1", "0"]
    assert board.driver.title != "rude"
    loaded = board.script("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert [address for address in loaded if not address.startswith("data:")] == []
