"""Programs that other people wrote, as players: each plays whole matches by its protocol or by a translator."""

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from azpy.cli.match import main
from running import ended

GNUGO, STOCKFISH, GRHINO, GNUBG = (
    shutil.which(name) or shutil.which(name, path="/usr/games") for name in ("gnugo", "stockfish", "gtp-rhino", "gnubg")
)
BENCHES = Path(__file__).parents[2] / "benches"


def bench(name: str) -> str:
    return shlex.join([sys.executable, str(BENCHES / name)])


def met(printed: Any, *words: str) -> dict[str, Any]:
    """The report of a match in which no game is lost by a fault."""
    report: dict[str, Any] = json.loads(printed(main, [*words, "--json"]))
    assert (report["forfeits"], report["faults"]) == ([0, 0], [[], []])
    return report


GO = f"gtp:{GNUGO} --mode gtp --level 1 --chinese-rules --forbid-suicide --capture-all-dead"
FISH = f"uci:{STOCKFISH}?Hash=1&nodes="


@pytest.mark.parametrize(
    ("program", "player", "other", "game", "games", "named"),
    [
        (GNUGO, f"{GO} --simple-ko", "mcts:20", "go(size=9,komi=7,superko=0)", 2, "(GNU Go "),
        (GNUGO, f"{GO} --positional-superko", "mcts:20", "go(size=9,komi=7,superko=1)", 2, "(GNU Go "),
        (STOCKFISH, f"{FISH}1000", f"{FISH}20", "chess", 2, "(Stockfish "),
        (STOCKFISH, f"{FISH}1000", f"{FISH}20", "chess(chess960=123)", 2, "(Stockfish "),
        (GRHINO, f"gtp:{GRHINO} --level=1", "random", "othello", 6, "(GTP GRhino "),
    ],
)
def test_a_program_plays_whole_matches(
    program: str | None, player: str, other: str, game: str, games: int, named: str, printed: Any
) -> None:
    if program is None:
        pytest.skip("it is not installed")
    report = met(printed, player, other, "--game", game, "--games", str(games))
    assert named in report["a"]
    assert report["score"] > 0.5


@pytest.mark.skipif(GNUBG is None or not BENCHES.exists(), reason="gnubg is not installed, or no source tree")
def test_gnu_backgammon_plays_whole_games(printed: Any) -> None:
    """Doubles, hits, the bar and bearing off."""
    words = ["--game", "backgammon", "--games", "6", "--opening-plies", "0"]
    report = met(printed, f"ugi:{bench('gnubg_ugi.py')} --plies 0", "random", *words)
    assert "(GNU Backgammon 1." in report["a"]
    assert report["score"] == 1.0
    assert report["outcome"] > 0.5


@pytest.mark.skipif(GNUBG is None or not BENCHES.exists(), reason="gnubg is not installed, or no source tree")
def test_gnu_backgammon_plays_the_openings_that_everybody_plays() -> None:
    """Rolls 3-1, 4-2 and 6-1, whose best plays are not in doubt."""
    lines = {"3-1": "8/5", "3-1 8/5": "6/5", "4-2": "8/4", "4-2 8/4": "6/4", "6-1": "13/7", "6-1 13/7": "8/7"}
    script = "".join(f"position startpos moves {line}\ngo\n" for line in lines)
    words = [sys.executable, str(BENCHES / "gnubg_ugi.py")]
    done = ended(words, script)
    assert done.out.splitlines() == [f"bestmove {name}" for name in lines.values()], done.errors


@pytest.mark.skipif(not BENCHES.exists(), reason="needs the source tree")
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("gnubg_ugi.py --program no-gnubg", "no program 'no-gnubg': install GNU Backgammon or give --"),
        ("gnubg_ugi.py --program true", "opens no socket"),
        ("openspiel_ugi.py --game conect_four", "conect_four"),
        ("openspiel_ugi.py --game wall_game", "OpenSpiel does not have the game"),
    ],
)
def test_translators_that_cannot_play_are_refused_first(program: str, words: str, one_line: Any) -> None:
    if program.startswith("openspiel"):
        pytest.importorskip("pyspiel")
    name, _, arguments = program.partition(" ")
    assert words in one_line(main, [f"ugi:{bench(name)} {arguments}", "random", "--game", "backgammon"], "az-match: ")


@pytest.mark.skipif(not BENCHES.exists(), reason="needs the source tree")
def test_openspiel_s_search_plays_and_can_be_played_again(printed: Any) -> None:
    pytest.importorskip("pyspiel")
    player, game = f"ugi:{bench('openspiel_ugi.py')} --game connect_four?nodes=50", ["--game", "connect_four"]
    reports = [met(printed, player, "random", *game, "--games", "6", "--slots", "4") for _ in range(2)]
    assert "(OpenSpiel 2." in reports[0]["a"]
    assert reports[0]["score"] > 0.5
    assert reports[0] == reports[1]
