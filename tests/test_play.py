"""az-play in the terminal, and the board that it opens."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from azpy.cli.play import main
from azpy.errors import pip_install
from azpy.serving.models import open_model
from served import site_of
from talks import PATIENCE
from test_onnx import make_model
from test_replay_command import collect

COMMAND = [sys.executable, "-c", "from azpy.cli.play import main; raise SystemExit(main())"]


def play(*arguments: str, lines: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*COMMAND, *arguments, "--terminal"], input=lines, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_a_game_in_the_terminal_is_played_to_its_end() -> None:
    code, said, wrong = play("uniform:500", "--game", "tic_tac_toe", lines="a1\nb1\nc1\na2\nb2\nc2\na3\nb3\nc3\nquit\n")
    assert (code, wrong) == (0, "")
    assert re.search("(X|O) wins by 3 in a row|Draw by a full board", said)


def test_two_people_undo_and_ask() -> None:
    lines = "1 nonsense\nmoves\n1 2\nundo\nmoves\nhint\nlevel 5\nlevel x\n"
    lines += f"level {'9' * 5_000}\nhelp\nswitch\ntext\nnew\nquit\n"
    code, said, wrong = play("uniform:9", "--game", "connect_four", "--side", "both", lines=lines)
    assert (code, wrong) == (0, "")
    assert "'nonsense' is not legal there" in said
    assert said.count("1 2 3 4 5 6 7\n> ") >= 2  # the line with an illegal move changes nothing
    assert "visits  value" in said
    assert said.count("level must be ") == 2


def test_dice_are_rolled_or_named_in_the_game_that_is_played() -> None:
    lines = "dice 4 x\nroll\nroll\nhold\ndice x\nnew\nroll\nquit\n"
    code, said, _ = play("uniform:9", "--game", "pig", "--side", "both", lines=lines)
    assert code == 0
    named, later = said.split("x is no roll here")
    assert "roll: 4" in named
    assert "roll: " in later


def test_a_roll_is_not_taken_back() -> None:
    code, said, _ = play("uniform:9", "--game", "backgammon", "--side", "both", lines="undo\nquit\n")
    assert code == 0
    assert said.count("roll: ") == 1
    assert "there is nothing to take back" in said


def test_without_a_display_it_is_the_terminal() -> None:
    done = subprocess.run(
        [*COMMAND, "uniform:9", "--game", "hex(size=4)"],
        input="a1\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert "no display is there" in done.stdout


def test_the_board_is_served_until_it_is_stopped() -> None:
    server = subprocess.Popen(
        [*COMMAND, "uniform:9", "--game", "pig", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
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


def test_the_games_of_a_run_can_be_looked_at(tmp_path: Path) -> None:
    run = collect(tmp_path / "run", "tic_tac_toe", iterations=2)
    with site_of({"main": open_model("uniform:9", "tic_tac_toe", 9)}, run=run) as address:
        found = httpx.get(f"http://{address}/games").json()
        assert (found["iterations"], found["iteration"]) == ([1, 2], 2)
        one = found["games"][0]
        game = httpx.get(f"http://{address}/games/{one['game_id']}").json()
        assert (len(game["plies"]), game["outcome"]) == (one["length"], one["outcome"])
        searched = [ply for ply in game["plies"] if ply["searched"]]
        assert all({"name", "visits", "prior"} <= set(move) for ply in searched for move in ply["search"])
        assert httpx.get(f"http://{address}/games?iteration=1").json()["iteration"] == 1
        assert httpx.get(f"http://{address}/games?iteration=9").status_code == 404
        assert httpx.get(f"http://{address}/games?iteration=x").status_code == 400
        assert httpx.get(f"http://{address}/games/123456").status_code == 404


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
    with site_of({"main": model}) as address:
        refused = httpx.post(f"http://{address}/query", json={"id": "1", "action": "renew"})
        assert refused.status_code == 400


@pytest.mark.parametrize("package", ["uvicorn", "websockets"])
def test_without_the_packages_of_the_board_it_says_what_to_install(package: str) -> None:
    script = f"import sys; sys.modules['{package}'] = None; from azpy.cli.play import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "uniform:9", "--game", "pig"]
    done = subprocess.run([*command, "--no-browser"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    problem = f"{package} is not installed: {pip_install('serve')}; or give --terminal"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"az-play: {problem}\n")
    done = subprocess.run(
        [*command, "--terminal"], input="quit\n", capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["uniform"], "which game does 'uniform' play? give --game"),
        (["uniform", "--game", "pig", "--port", "-1"], "--port must be at least 0, got -1"),
        (["uniform", "--game", "pig", "--temperature", "11"], "--temperature must be from 0 to 10, got 11"),
        (["uniform", "--game", "pig", "--simulations", "0"], "simulations"),
        (["nowhere"], "there is no such file or folder"),
    ],
)
def test_what_cannot_be_played_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--terminal"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert said in output.err
    assert output.err.count("\n") == 1
