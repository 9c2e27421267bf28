"""Programs that other people wrote, as players: each plays whole matches by its protocol or by a translator."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from azpy.cli.match import main

GNUGO, STOCKFISH, GRHINO, GNUBG = (
    shutil.which(name) or shutil.which(name, path="/usr/games") for name in ("gnugo", "stockfish", "gtp-rhino", "gnubg")
)
BENCHES = Path(__file__).parent.parent / "benches"


@pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed")
@pytest.mark.parametrize("superko", [0, 1])
def test_gnu_go_plays_go(superko: int, capsys: pytest.CaptureFixture[str]) -> None:
    rules = f"--chinese-rules --forbid-suicide {'--positional-superko' if superko else '--simple-ko'}"
    player = f"gtp:{GNUGO} --mode gtp --level 1 {rules} --capture-all-dead"
    game = f"go(size=9,komi=7,superko={superko})"
    assert main([player, "mcts:20", "--game", game, "--games", "4", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["a"].startswith(f"{player} (GNU Go ")
    assert (report["forfeits"], report["faults"]) == ([0, 0], [[], []])
    assert report["score"] > 0.5


@pytest.mark.skipif(STOCKFISH is None, reason="stockfish is not installed")
@pytest.mark.parametrize("game", ["chess", "chess(chess960=123)"])
def test_stockfish_plays_chess(game: str, capsys: pytest.CaptureFixture[str]) -> None:
    players = [f"uci:{STOCKFISH}?Hash=1&nodes={nodes}" for nodes in (2000, 20)]
    assert main([*players, "--game", game, "--games", "6", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["forfeits"], report["faults"]) == ([0, 0], [[], []])
    assert report["score"] > 0.5


@pytest.mark.skipif(GRHINO is None, reason="grhino is not installed")
def test_grhino_plays_othello(capsys: pytest.CaptureFixture[str]) -> None:
    player = f"gtp:{GRHINO} --level=1"
    assert main([player, "random", "--game", "othello", "--games", "20", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["a"].startswith(f"{player} (GTP GRhino ")
    assert (report["forfeits"], report["faults"]) == ([0, 0], [[], []])
    assert report["score"] > 0.5


def bench(name: str) -> str:
    return shlex.join([sys.executable, str(BENCHES / name)])


@pytest.mark.skipif(GNUBG is None or not BENCHES.exists(), reason="gnubg is not installed, or no source tree")
def test_gnu_backgammon_plays_whole_games(capsys: pytest.CaptureFixture[str]) -> None:
    """Doubles, hits, the bar and bearing off; every third opening or so ends in mid-turn."""
    player = f"ugi:{bench('gnubg_ugi.py')} --plies 0"
    assert main([player, "random", "--game", "backgammon", "--games", "20", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "(GNU Backgammon 1." in report["a"]
    assert (report["forfeits"], report["faults"], report["score"]) == ([0, 0], [[], []], 1.0)
    assert report["outcome"] > 0.5


@pytest.mark.skipif(GNUBG is None or not BENCHES.exists(), reason="gnubg is not installed, or no source tree")
def test_gnu_backgammon_plays_the_openings_that_everybody_plays() -> None:
    """Rolls 3-1, 4-2 and 6-1, whose best plays are not in doubt, and the second half of a turn that another began."""
    lines = {"3-1": "8/5", "3-1 8/5": "6/5", "4-2": "8/4", "4-2 8/4": "6/4", "6-1": "13/7", "6-1 13/7": "8/7"}
    lines["6-5 13/7"] = "13/8"  # GNU Backgammon itself plays 24/13
    script = "".join(f"position startpos moves {line}\ngo\n" for line in lines)
    words = [sys.executable, str(BENCHES / "gnubg_ugi.py")]
    done = subprocess.run(words, input=script, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [f"bestmove {name}" for name in lines.values()], done.stderr


@pytest.mark.skipif(not BENCHES.exists(), reason="needs the source tree")
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("gnubg_ugi.py --program no-gnubg", "no program 'no-gnubg': install GNU Backgammon or give --"),
        ("gnubg_ugi.py --program true", "opens no socket"),
        ("openspiel_ugi.py --game conect_four", "conect_four"),
        ("openspiel_ugi.py --game wall_game", "OpenSpiel has no game"),
    ],
)
def test_a_translator_that_cannot_play_is_refused_before_the_match(
    program: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if program.startswith("openspiel"):
        pytest.importorskip("pyspiel")
    name, _, arguments = program.partition(" ")
    assert main([f"ugi:{bench(name)} {arguments}", "random", "--game", "backgammon"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.skipif(not BENCHES.exists(), reason="needs the source tree")
@pytest.mark.parametrize("game", ["connect_four", "tic_tac_toe"])
def test_openspiel_s_search_plays_and_can_be_played_again(game: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspiel")
    player = f"ugi:{bench('openspiel_ugi.py')} --game {game}?nodes=50"
    texts = []
    for _ in range(2):
        assert main([player, "random", "--game", game, "--games", "8", "--json", "--slots", "4"]) == 0
        texts.append(capsys.readouterr().out)
    report = json.loads(texts[0])
    assert "(OpenSpiel 2." in report["a"]
    assert (report["forfeits"], report["faults"]) == ([0, 0], [[], []])
    assert report["score"] > 0.5
    assert texts[0] == texts[1]


@pytest.mark.skipif(not BENCHES.exists(), reason="needs the source tree")
def test_openspiel_s_search_with_fresh_seeds_plays_other_games_from_the_start(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("pyspiel")
    distinct = []
    for option in ("", " --fresh"):
        players = [f"ugi:{bench('openspiel_ugi.py')} --game connect_four{each}?nodes=50" for each in (option, "")]
        words = ["--game", "connect_four", "--games", "8", "--opening-plies", "0", "--json", "--slots", "4"]
        assert main([*players, *words]) == 0
        distinct.append(json.loads(capsys.readouterr().out)["distinct_games"])
    assert distinct[0] == 1
    assert distinct[1] > 2
