"""az-play in the terminal, and the board that it opens."""

import io
import json
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import chess
import chess.pgn
import httpx
import pytest
from websockets.sync.client import connect

import azpy
from azpy.cli import play
from azpy.cli.play import main
from azpy.cli.terminal_view import captured
from azpy.errors import SettingsWarning, pip_install, warn_once
from azpy.serving.models import open_model
from azpy.web.server import listening
from models import make_model
from running import az, ended, program
from served import free_port, site_of
from talks import PATIENCE, answer_to

Typed = Callable[..., str]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Types lines into az-play in the terminal, in this process; gives what it said."""

    def typed(game: str, *lines: str, side: str = "both", colors: bool = False) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*lines, "quit", ""])))
        monkeypatch.setattr("sys.stdout.isatty", lambda: colors)
        assert main(["uniform:5", "--game", game, "--side", side, "--terminal"]) == 0
        return capsys.readouterr().out

    return typed


@pytest.mark.parametrize(("game", "at_first"), [("chess", 16), ("go(size=5)", 0), ("breakthrough", 16)])
def test_captured_men_match_the_moves(game: str, at_first: int) -> None:
    rng, start = random.Random(3), azpy.make_game(game)
    state, actions, taken = start.clone(), list[int](), (Counter[str](), Counter[str]())
    board, men = chess.Board(), [at_first] * 2
    while not state.is_terminal and len(actions) < 120:
        action, mover = rng.choice(state.legal_actions()), state.turn
        if game == "chess":
            move = chess.Move.from_uci(state.action_name(action))
            if board.is_capture(move):
                piece = board.piece_at(move.to_square) or chess.Piece(chess.PAWN, not board.turn)  # en passant
                taken[mover][piece.symbol()] += 1
            board.push(move)
        elif not at_first:
            men[mover] += state.action_name(action) != "pass"
        state.play(action)
        actions.append(action)
    if game == "chess":
        told = ["".join(sorted(men.elements(), key=lambda man: "qrbnp".index(man.lower()))) for men in taken]
    else:  # what was there, and is not
        there = Counter(state.board().values())
        told = [str(men[1] - there["o"]), str(men[0] - there["x"])]
    names = [name[:1].upper() + name[1:] for name in start.side_names or ()]
    assert all(count not in ("", "0") for count in told)
    assert captured(start, actions) == f"{names[0]} {told[0]}, {names[1]} {told[1]}"


def test_a_terminal_has_colors(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    said = typed("tic_tac_toe", "a1", "b2", colors=True)
    x, o = "\x1b[1;31mx\x1b[0m", "\x1b[1;34mo\x1b[0m"
    assert f". {o} .\n{x} . .\n" in said
    assert "\x1b[1;34mO\x1b[0m to move" in said
    assert "\x1b" not in typed("tic_tac_toe", "a1", "b2")
    for name, value in {"NO_COLOR": "1", "TERM": "dumb"}.items():
        with monkeypatch.context() as other:
            other.setenv(name, value)
            assert "\x1b" not in typed("tic_tac_toe", "a1", "b2", colors=True)


def test_piped_text_may_begin_with_a_byte_order_mark(typed: Typed) -> None:
    assert "last move: X a1\n" in typed("tic_tac_toe", "\ufeffa1")


def test_a_game_is_saved_and_goes_on_in_another_game(typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "a game.pgn"
    said = typed("chess", "e4", f"save {file}", "undo", f"save {file}", "resign", f"save {file}", side="first")
    assert said.count(f"saved to {file}") == 3
    text = file.read_text()
    game = chess.pgn.read_game(io.StringIO(text))
    assert game is not None
    assert (game.headers["White"], game.headers["Black"], game.headers["Result"]) == ("person", "uniform", "0-1")
    assert "{Black wins by resignation}" in text
    today = f"{datetime.now().astimezone():%Y.%m.%d}"
    facts = [game.headers[name] for name in ("Date", "TimeControl", "Termination")]
    assert facts == [today, "-", "normal"]
    file.write_text('[Event "Club"]\n[White "Ann"]\n[Result "0-1"]\n\n1. e4 {!} (1. d4 d5) e5 2. Nf3 0-1')
    typed("chess", f"load {file}", "Nc6", f"save {tmp_path}/b.pgn", side="first")
    game = chess.pgn.read_game(io.StringIO((tmp_path / "b.pgn").read_text()))
    assert game is not None
    assert [game.headers[name] for name in ("Event", "White", "Black", "Result")] == ["Club", "Ann", "person", "*"]
    assert game.headers["Date"] == "????.??.??"  # nobody knows when the game of the file was played
    assert [move.uci() for move in game.mainline_moves()][:4] == ["e2e4", "e7e5", "g1f3", "b8c6"]


@pytest.mark.parametrize("game", ["backgammon", "wall_game", "hexapawn:Hexapawn"])
def test_the_board_and_the_terminal_write_one_record(game: str, typed: Typed, tmp_path: Path) -> None:
    file, state = tmp_path / "game.json", azpy.make_game(game)
    moves = [state.action_name(action) for action in state.legal_actions()[:1]]  # backgammon has a roll there
    said = typed(game, *moves, f"save {file}", f"load {file}", f"save {tmp_path}/game.pgn")
    assert "is saved to a file that ends in .json, got 'game.pgn'" in said
    record = json.loads(file.read_text())
    assert len(record["nodes"]) == 1
    asked = {"id": "1", "action": "read", "position": record["position"], "nodes": record["nodes"]}
    read = answer_to(state, asked)
    assert [node[:4] for node in read["nodes"]] == record["nodes"]
    state.play(state.parse_actions(record["nodes"][0][1])[0])
    assert said.count(f"\n{state}\n") == 2


def test_without_a_display_it_is_the_terminal() -> None:
    bare = {"PATH": "", "PYTHONPATH": ":".join(sys.path)}
    done = ended(az("play", "uniform:9", "--game", "hex(size=4)"), "a1\n", env=bare)
    assert done.code == 0, done.errors
    assert "no display found" in done.out


def test_the_board_is_served_until_it_is_stopped() -> None:
    command = az("play", "uniform:9", "--game", "pig", "--no-browser")
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    found = re.search(r"plays pig at (http://127\.0\.0\.1:[0-9]+/)", server.stdout.readline())
    assert found is not None
    page = httpx.get(found[1])
    assert page.headers["content-type"].startswith("text/html")
    assert httpx.get(f"{found[1]}about").json()["renews"] is True
    assert httpx.get(f"{found[1]}games").status_code == 404
    server.send_signal(signal.SIGINT)
    _, wrong = server.communicate(timeout=PATIENCE)
    assert "Traceback" not in wrong


def test_the_board_has_the_same_port_at_each_start(monkeypatch: pytest.MonkeyPatch) -> None:
    used, free = (listening("127.0.0.1", free_port()) for _ in range(2))
    first, second = sorted(place.getsockname()[1] for place in (used, free))
    monkeypatch.setattr(play, "_PORT", first)
    monkeypatch.setattr(play, "_PORTS", second - first + 1)
    with used, free, play._free_place(listening) as place:
        assert place.getsockname()[1] not in {first, second}
    for _ in range(2):  # a start, and another one after its end
        with play._free_place(listening) as place:
            assert place.getsockname()[1] == first
    monkeypatch.setattr(play, "_board", lambda *given: given[3])
    start = ["uniform:2", "--game", "pig", "--no-browser"]
    assert [play._play([*start, *more]) for more in ([], ["--port", "0"], ["--port", "9"])] == [None, 0, 9]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--terminal", "--port", "9"], "--port has no effect in the terminal"),
        (["--no-browser", "--side", "second"], "--side has no effect on the board"),
        (["--terminal", "--device", "azpy"], "--device azpy has no effect: uniform:2 does not use a network"),
        (["--terminal", "--simulations", "200"], "--simulations has no effect: each player has its own"),
    ],
)
def test_a_flag_without_effect_warns(flags: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    warn_once.cache_clear()
    monkeypatch.setattr(play, "_board", lambda *_: 0)
    monkeypatch.setattr("azpy.cli.play.Terminal.run", lambda _: 0)
    with pytest.warns(SettingsWarning, match=said):
        assert play._play(["uniform:2", "--game", "pig", *flags]) == 0


def test_the_newest_model_of_a_run_is_taken_when_a_game_begins(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(make_model(weight=0.5))
    model = open_model(str(path), "tic_tac_toe", 9)
    with site_of({"main": model}, renews=True) as address, connect(f"ws://{address}/ws") as web:
        for weight, changed in ((None, False), (0.9, True), (None, False)):
            if weight is not None:
                path.write_bytes(make_model(weight=weight))
            web.send(json.dumps({"id": "new", "action": "renew"}))
            answer = json.loads(web.recv(PATIENCE))
            assert answer["changed"] is changed
        web.send(json.dumps({"id": "1"}))
        assert json.loads(web.recv(PATIENCE))["rootInfo"]["network"] == answer["network"]


@pytest.mark.parametrize("package", ["uvicorn", "websockets"])
def test_without_the_board_s_packages_it_says_what_to_install(package: str) -> None:
    script = f"import sys; sys.modules['{package}'] = None; from azpy.cli.play import main; sys.exit(main())"
    problem = f"{package} is not installed: {pip_install('serve')}; or give --terminal"
    board, terminal = (program(script, "uniform:9", "--game", "pig", how) for how in ("--no-browser", "--terminal"))
    assert board == (2, "", f"az-play: {problem}\n")
    assert terminal.code == 0, terminal.errors
