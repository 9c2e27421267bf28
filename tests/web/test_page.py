"""A page without a server (az-export --web): what is written, and that it answers as a server does."""

import gzip
import json
import os
import re
import runpy
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save

from azpy import State, _core
from azpy.cli.export import main as az_export
from azpy.errors import SettingsError
from azpy.evaluators.net import shape_of
from azpy.games.names import make_game
from azpy.learning.network import Network
from azpy.serving.models import open_model
from azpy.web import page as web_page
from azpy.web import program as web_program
from azpy.web.page import check_page, write_page
from browser import Board, needs_browser
from pages import Quiet, ask_page, ask_server, compare, files_of, hosted, needs_node, served_by, views

pytest_plugins = ["browser"]

REPOSITORY = Path(__file__).parents[2]


SOME = [(game, 25, 1) for game in ("chess", "backgammon", "connect_four_for_three", "leduc_poker")]
MANY = [pytest.param(game, 100, 2, marks=pytest.mark.slow) for game in sorted(_core.BUILT_IN)]


@needs_node
@pytest.mark.parametrize(("game", "count", "seed"), [*SOME, *MANY])
def test_the_page_answers_as_the_server_does(game: str, count: int, seed: int, tmp_path: Path) -> None:
    """The table of `test_answers.py` has each kind of query; here the program is compiled, and the games are whole."""
    compare(game, count, seed, tmp_path / "page")


@needs_node
def test_a_stopped_search_answers_before_the_others_go_on(tmp_path: Path) -> None:
    with served_by("hex(size=5)") as model:
        write_page(tmp_path / "page", model.player, None, b"")
    asked = [
        {"id": "hint", "simulations": 100_000, "priority": "ponder"},
        {"id": "move", "simulations": 1000, "priority": "play"},
        {"id": "stop", "action": "terminate", "terminateId": "hint"},
    ]
    (answers,) = ask_page(tmp_path / "page", [asked])
    assert [answer["id"] for answer in answers] == ["stop", "hint", "move"]


def test_a_page_is_its_own_files_and_asks_no_other_host(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    with served_by("hex(size=5)") as model:
        sizes = write_page(folder, model.player, None, b"")
    there = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    assert there == sizes
    names = {name.removeprefix(f"{files_of(folder).name}/") for name in there}
    assert {"index.html", "about", "player.json", "board/azpy.wasm.gz", "board/worker.js"} <= names
    assert (folder / "index.html").read_text().count("""content="default-src 'none'; """) == 1
    assert "weights.safetensors" not in names
    for name in there:
        if name.endswith((".html", ".js", ".css")):
            text = (folder / name).read_text(encoding="utf-8")
            assert not (name.endswith(".js") and re.search(r"^\s*//", text, re.MULTILINE)), name
            assert re.sub(r"http://www\.w3\.org/\S+", "", text).count("://") == 0, name
    player = json.loads((files_of(folder) / "player.json").read_text())
    assert player["about"]["game"] == model.player.start.game


def test_a_text_that_looks_like_a_comment_stays() -> None:
    kept = "const a = `\n// text\n/** too */\n`;\nlet b = `a\\`\n// of b\n`; // behind\n"
    gone = "  // a `comment`\n/** of\n * ` lines\n */\n"
    assert web_page.without_comments((gone + kept + gone).encode()) == kept.encode()


@needs_node
@pytest.mark.parametrize("name", ["pool", "pig"])
def test_the_page_of_a_run_has_its_network(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile(Path(__file__).parents[1] / f"data/{name}.zip") as archive:
        archive.extractall()
    assert az_export([name, "--web", "site"]) == 0
    queries: list[dict[str, Any]] = [
        {"id": "1", "simulations": 1, "includePolicy": True},
        {"id": "2", "game": "a"},
        {"id": "3", "level": "casual"},
    ]
    with closing(open_model(name, None, 200)) as model:
        pages, servers = ask_page(Path("site"), queries), ask_server(model, queries)
    for (page,), (server,) in zip(pages, servers, strict=True):
        assert page["rootInfo"]["network"] == server["rootInfo"]["network"]
        assert page["rootInfo"]["visits"] == server["rootInfo"]["visits"]
        for one, other in zip(page["moveInfos"], server["moveInfos"], strict=True):
            assert one["prior"] == pytest.approx(other["prior"], abs=2e-5)
            assert one["value"] == pytest.approx(other["value"], abs=2e-5)
    assert pages[0][0]["policy"] == pytest.approx(servers[0][0]["policy"], abs=2e-5)


def test_a_page_that_cannot_be_written_is_one_line(
    tmp_path: Path, one_line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(Path(__file__).parents[1] / "data/pool.zip") as archive:
        archive.extractall(tmp_path)
    run = str(tmp_path / "pool")
    assert "exists: give a new folder" in one_line(az_export, [run, "--web", str(tmp_path)], "az-export: ")
    assert "belongs to the run" in one_line(az_export, [run, "--web", f"{run}/games"], "az-export: ")
    monkeypatch.setattr(web_page, "_PROGRAM", "no.wasm.gz")
    said = one_line(az_export, [run, "--web", str(tmp_path / "new")], "az-export: ")
    assert "this installation lacks azpy/web/board/no.wasm.gz" in said


@pytest.mark.parametrize(
    ("game", "said"),
    [
        ("hexapawn:Hexapawn", "it is written in Python, which a page cannot run"),
        ("open_spiel:tic_tac_toe", "a page without a server plays these games: backgammon, "),
    ],
)
def test_a_game_that_a_page_cannot_play_is_refused(game: str, said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        check_page(game)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Makes a program of a shell script; the machine has no others."""
    if sys.platform == "win32":
        pytest.skip("the tools are shell scripts")
    (tools := tmp_path / "tools").mkdir()
    monkeypatch.setenv("PATH", str(tools))
    for name in ("AZPY_WASM_TOOLS", "RUSTC"):
        monkeypatch.delenv(name, raising=False)

    def made(name: str, script: str) -> None:
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)

    return made


def test_a_crate_makes_a_page_of_the_game_of_this_core_alone(
    tool: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"list_games": lambda: {"pawns": {}}, "__version__": "1.2.3", "__name__": "azpy_with_pawns"}
    monkeypatch.setattr(web_page, "_core", SimpleNamespace(BUILT_IN=_core.BUILT_IN, **own))

    def tell(version: str, library: str) -> None:
        """Has cargo describe a crate with this version of azpy, which makes this library."""
        kinds = [{"name": library, "crate_types": ["cdylib"]}]
        packages = [{"name": "pawns", "version": "0.1.0", "id": "own", "targets": kinds}]
        packages += [{"name": "azpy-own", "version": version, "id": "azpy-own", "targets": []}]
        tool("cargo", f"echo '{json.dumps({'packages': packages, 'resolve': {'root': 'own'}})}'")

    def refused(said: str, game: str = "pawns", crate: Path | None = tmp_path) -> None:
        with pytest.raises(SettingsError, match=re.escape(said)):
            check_page(game, crate)

    (tmp_path / "Cargo.toml").write_text("[package]")
    tool("rustc", f"echo '{tmp_path}'")
    tell("1.2.3", "azpy_with_pawns")
    check_page("pawns(width=4)", tmp_path)
    refused("--web: pawns is a game of your own: give --crate PATH, the folder of its crate", crate=None)
    refused("--crate is for a game of your own, and chess ships with azpy", game="chess")
    refused("it is written in Python, which a page cannot run", game="mine:Pawns")
    tell("1.2.4", "azpy_with_pawns")
    refused("its Cargo.toml has azpy-own 1.2.4, but this is azpy 1.2.3")
    tell("1.2.3", "azpy_with_others")
    refused("it builds azpy_with_others, but pawns belongs to azpy_with_pawns")
    tool("cargo", "exit 1")
    refused("cargo cannot read it: ")
    tool("rustc", f"echo '{tmp_path}/nothing'")
    refused("Rust's standard library for WebAssembly is not installed: run `rustup target add wasm32-unknown-unknown`")
    (tmp_path / "tools/cargo").unlink()
    refused(
        "cargo is not installed: install Rust (https://rustup.rs), then run `rustup target add wasm32-unknown-unknown`"
    )
    (tmp_path / "Cargo.toml").unlink()
    refused("Cargo.toml not found: give the folder of the crate that has pawns")


def test_the_folders_of_a_machine_stay_out_of_a_program(
    tool: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path.resolve()
    own, cargo_home, sysroot = root / "games/pawns", root / "mirror/cargo", root / "rust/stable"
    own.mkdir(parents=True)
    folders = {"pawns": own, "rules": root / "rules", "azpy-own": root / "azpy/rust/own", "serde": cargo_home / "serde"}
    packages = [
        {"name": name, "version": "0.1.0", "manifest_path": str(folder / "Cargo.toml")}
        for name, folder in folders.items()
    ]
    said, flags = json.dumps({"packages": packages, "target_directory": str(root / "built")}), root / "flags"
    build = f'printf %s "$CARGO_ENCODED_RUSTFLAGS" > "{flags}"; exit 1'
    tool("cargo", f"case $1 in metadata) echo '{said}' ;; *) {build} ;; esac")
    tool("rustc", f'echo "{sysroot}"')
    monkeypatch.setenv("CARGO_HOME", str(cargo_home))
    assert web_program.compiled(own) == "see the output of cargo above"
    remapped = [flag.split("=")[1:] for flag in flags.read_text().split("\x1f") if flag.startswith("--remap")]
    for path, told in [
        (own / "src/lib.rs", "/crate/src/lib.rs"),
        (root / "rules/src/lib.rs", "/rules-0.1.0/src/lib.rs"),
        (root / "azpy/rust/own/src/lib.rs", "/azpy-own-0.1.0/src/lib.rs"),
        (cargo_home / "serde/src/de.rs", "/cargo/serde/src/de.rs"),
        (sysroot / "lib/rustlib/src/core.rs", "/rust/lib/rustlib/src/core.rs"),
        (root / "built/wasm32/out/made.rs", "/target/wasm32/out/made.rs"),
        (Path.home() / "games/src/lib.rs", "/home/games/src/lib.rs"),
    ]:
        # Of several that fit rustc takes the last one.
        fits = [name + str(path).removeprefix(before) for before, name in remapped if str(path).startswith(before)]
        assert fits[-1:] == [told]


@pytest.mark.skipif(not (REPOSITORY / "rust/web").exists(), reason="needs the source tree")
def test_the_program_was_built_of_these_sources() -> None:
    build = runpy.run_path(str(REPOSITORY / "rust/web/build.py"))
    program = gzip.decompress(build["PROGRAM"].read_bytes())
    built_of = build["section"](build["hash_of_sources"]())
    assert program.endswith(built_of), "the program is of other sources: run `make wasm`, and commit what it writes"


@needs_browser
@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("board/azpy.wasm.gz", b"no program", "WebAssembly"),
        ("board/azpy.wasm.gz", None, "azpy.wasm.gz is missing: the host answered 404"),
        ("weights.safetensors", None, "weights.safetensors is missing: the host answered 404"),
        ("player.json", None, "player.json is missing: the host answered 404"),
        ("board/worker.js", None, ""),
    ],
)
def test_a_page_that_lacks_a_file_says_so_in_one_sentence(
    file: str, content: bytes | None, said: str, board: Board, tmp_path: Path
) -> None:
    start = make_game("tic_tac_toe")
    network = Network.of(start, "2x8+pool").eval()
    with served_by("tic_tac_toe") as model:
        write_page(tmp_path / "page", model.player, shape_of(start, "2x8+pool"), save(network.state_dict()))
    place = files_of(tmp_path / "page") / file
    place.unlink()
    if content is not None:
        place.write_bytes(content)
    with hosted(tmp_path, asked := Counter[str]()) as host:
        board.driver.get(f"http://127.0.0.1:{host.server_port}/page/")
        board.until(lambda: board.one("connected").text.endswith("This page cannot play."))
        problem = board.one("problem_text").text
        assert said in problem
        assert problem.startswith("This page cannot play")
        assert problem.endswith("Reload it, or have it exported again.")
        assert board.one("status").text == "This page cannot play."
        assert asked[f"/{place.relative_to(tmp_path)}"] <= 2  # the host notes an answer 404 twice
        assert [error for error in board.errors() if "404" not in error] == []
        board.driver.get("about:blank")


@needs_browser
def test_a_page_exported_again_is_not_mixed_with_the_one_before(board: Board, tmp_path: Path) -> None:
    # A host that says nothing of caching but when files changed: browsers then keep old files for a while.
    class Keeps(Quiet):
        def end_headers(self) -> None:
            if not self.path.endswith("/"):
                self.send_header("Cache-Control", "max-age=3600")
            super().end_headers()

    start, pages = make_game("tic_tac_toe"), {"old": -1.0, "new": 1.0}
    shape, observations = shape_of(start, "2x8+pool"), start.observation()[None]
    for name, bias in pages.items():
        network = Network.of(start, "2x8+pool").eval()
        with torch.no_grad():
            [*network.value.parameters()][-1].fill_(bias)
        weights = save(network.state_dict())
        net = _core.Net(json.dumps(shape), weights)
        pages[name] = float(net.evaluate(observations)[1][0])
        with served_by("tic_tac_toe") as model:
            write_page(
                tmp_path / name, replace(model.player, evaluator=SimpleNamespace(network_id=net.id)), shape, weights
            )
    assert pages["new"] - pages["old"] > 0.1
    # The host looks at whole seconds, and both pages may be of the same one.
    later = (tmp_path / "old/index.html").stat().st_mtime + 9
    os.utime(tmp_path / "new/index.html", (later, later))
    with hosted(tmp_path, Counter(), Keeps) as host:
        for name, value in pages.items():
            (tmp_path / name).rename(tmp_path / "page")
            board.open(f"127.0.0.1:{host.server_port}/page")
            board.script(
                """
                const field = document.getElementById("hint_simulations");
                field.value = "1";
                field.dispatchEvent(new Event("change"));
                document.getElementById("hints").click();
                """
            )
            found = board.until(lambda: re.search(r"Searched: 1 visits, value (\S+) ", board.one("root").text))
            (move,) = board.each("#candidates tr:first-child td:nth-of-type(3) span", "one.textContent")
            mean, of_move = (float(text.replace("\u2212", "-")) for text in (found[1], move))
            # The value of a search of one visit is the mean of the network's own value and the visit's.
            assert abs(2 * mean - of_move - value) < 0.03
            (tmp_path / "page").rename(tmp_path / name)
        board.driver.get("about:blank")


QUICK = ["dice_nim", "connect_four_for_three(width=4,height=3,k=3)"]
HIDING = [game for game in _core.BUILT_IN if make_game(game).hides]
VARIANTS = ["blokus(players=4)", "chess(chess960=518)", "chinese_checkers(players=3)", "hex(swap=1)"]
VARIANTS += ["maedn(players=4)", "peg_solitaire(board=triangle)", "wall_game(variant=freestyle)"]


def moves_kept(board: Board) -> list[str]:
    """The moves of the game on the board, by the long names with which the browser keeps them."""
    kept = json.loads(board.script("return sessionStorage.getItem('azpy board game')"))
    return [name for _, name, *_ in kept["record"]["nodes"]]


def play_on(state: State, name: str) -> None:
    """Plays a move or a roll by its name."""
    actions = state.legal_actions() or [outcome for outcome, _ in state.chance_outcomes()]
    (action,) = [one for one in actions if state.action_name(one) == name]
    state.play(action)


def goes_on(clicked: list[str], touches: list[str]) -> bool:
    """Whether a move begins with these clicks: its places in turn, or a piece and any of several cells it covers."""
    covers = len(touches) > 2 and len(clicked) == 2 and clicked[0] == touches[0] and clicked[1] in touches
    return covers or clicked == touches[: len(clicked)]


@needs_browser
@pytest.mark.parametrize(
    "game",
    [
        *QUICK,
        *(
            pytest.param(game, marks=pytest.mark.slow)
            for game in sorted({*_core.BUILT_IN, *VARIANTS} - {*QUICK, *HIDING})
        ),
    ],
)
def test_people_play_to_the_end_on_a_page_of_a_static_host(game: str, board: Board, tmp_path: Path) -> None:
    with served_by(game) as model:
        write_page(tmp_path / "a/page", model.player, None, b"")
    state, known, rng = make_game(game), 0, Random(1)
    with hosted(tmp_path, Counter()) as host:
        board.driver.get(f"http://127.0.0.1:{host.server_port}/a/page/")
        board.until(lambda: board.one("connected").text == "plays in this browser")
        host.shutdown()  # all that the page needs is there
        board.settle()
        board.choose("strength", "beginner")
        board.script("const wait = window.setTimeout; window.setTimeout = (act) => wait(act)")  # a network's pace
        while board.settle() == "open":
            for name in (names := moves_kept(board))[known:]:
                play_on(state, name)
            legal = [(one, [place for place, _ in state.touches(one)]) for one in state.legal_actions()]
            assert board.places().keys() == {touches[0] for _, touches in legal if touches}
            buttons = [state.short_name(one) for one, touches in legal if not touches]
            assert sum(button.is_displayed() for button in board.all("#choices button")) == len(buttons)
            clicked, name = board.click_any(rng), moves_kept(board)[len(names)]
            touches_of = {state.action_name(one): touches or [state.short_name(one)] for one, touches in legal}
            # Each click leaves fewer moves, and the page plays a move once it is the only one.
            left = [
                {move for move, touches in touches_of.items() if goes_on(clicked[: count + 1], touches)}
                for count in range(len(clicked))
            ]
            assert name in left[-1]
            assert len(left[-1]) == 1 or len(clicked) == min(len(touches_of[name]), 2)
            assert all(len(moves) > 1 for moves in left[:-1])
            play_on(state, name)
            known = len(names) + 1
        for name in moves_kept(board)[known:]:
            play_on(state, name)
        assert state.is_terminal
        assert board.one("status").text == f"{state.result_text()}."
        assert board.places() == {}
        assert board.all("#choices button") == []
        assert not board.one("problem").is_displayed()
        assert board.errors() == []
        board.driver.get("about:blank")


@needs_browser
@pytest.mark.parametrize("game", [HIDING[0], *(pytest.param(one, marks=pytest.mark.slow) for one in HIDING[1:])])
def test_people_play_hidden_games_on_an_exported_page(game: str, board: Board, tmp_path: Path) -> None:
    with served_by(game) as model:
        write_page(tmp_path / "page", model.player, None, b"")
    seen_now = """
        const text = (id) => document.getElementById(id).textContent;
        const actions = [...document.querySelectorAll("#deal_actions button")].map((one) => one.textContent);
        const [view, status] = [text("view"), text("deal_status")];
        return { view, actions, result: status === "Your move." ? null : status.replace(/[.]$/, "") };
    """
    rng = Random(1)
    with hosted(tmp_path, Counter()) as host:
        board.driver.get(f"http://127.0.0.1:{host.server_port}/page/")
        board.until(lambda: board.one("connected").text == "plays in this browser")
        host.shutdown()
        for number, side in enumerate([0, 1] * 3):
            if number > 0:  # the page begins the first game by itself
                board.script("document.getElementById('deal_side').value = arguments[0]", side)
                board.one("deal_new").click()
            board.until(lambda: board.all("#deal_actions button"))
            seen = [board.script(seen_now)]
            while seen[-1]["result"] is None:
                rng.choice(board.all("#deal_actions button")).click()
                board.until(lambda: board.one("deal_status").text != "…")
                seen.append(board.script(seen_now))
            moves = board.one("deal_played").text.removeprefix("Played: ").split(", ")
            assert seen == [*views(game, side, moves)]
        assert not board.one("problem").is_displayed()
        assert board.errors() == []
        board.driver.get("about:blank")
