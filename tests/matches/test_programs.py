"""Other programs as players: they play by their protocols, and lose a game where they break the rules."""

import asyncio
import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from azpy.cli.match import main
from azpy.errors import SettingsError
from azpy.games.names import make_game
from azpy.matches.arena import play_rounds
from azpy.matches.openings import Book
from azpy.matches.players import load_players, parse_player
from azpy.matches.programs import Misbehaved, Program, Transcripts
from azpy.matches.results import Round
from oracles import after
from running import az

# A program that plays the first (or the last) legal action, and misbehaves as told: in each game, or in one alone.
STAND_IN = r'''
import importlib.util, os, pathlib, sys, time, types

protocol, game, how, folder = sys.argv[1:5]
folder = pathlib.Path(folder)
(folder / f"started-{os.getpid()}").touch()
if how == "late-once" and not (folder / "done").exists():
    (folder / "done").touch()
    time.sleep(1.5)
if how == "broken-later":
    how = "broken" if (folder / "done").exists() else "good"
    (folder / "done").touch()
if how == "broken":
    sys.exit("no network here")
if how == "mute":
    time.sleep(600)
if how == "marked":  # as programs of .NET begin
    print("\ufeff", end="")

# The core alone: numpy, which the package needs, takes ten times as long to load.
azpy = types.ModuleType("azpy")
azpy.__path__ = importlib.util.find_spec("azpy").submodule_search_locations
sys.modules["azpy"] = azpy
from azpy._core import TERMINAL, make_game

start = make_game(game)
state, log, begun, ply = start.clone(), open(folder / f"log-{os.getpid()}", "w"), 0, 0


def say(*words):
    print(*words, flush=True)


def is_due():
    """Whether to misbehave now: once in a match, or always."""
    name = how.removesuffix("-once")
    if name == how:
        return name
    try:
        (folder / "done").touch(exist_ok=False)
    except FileExistsError:
        return "good"
    return name


def think():
    """The name of the move; what is wrong with it is said here."""
    name = is_due()
    if name == "dies":
        sys.exit("out of cheese")
    if name == "hangs":
        time.sleep(600)
    if name == "floods":
        say("=")
        while True:
            say("info depth 1")
    if name == "long":
        say("x" * 100_000)
    if name == "noisy":
        sys.stderr.write("thinking\n" * 100_000)
    if name == "meets":  # answers once another process thinks too
        (folder / f"thinks-{os.getpid()}").touch()
        until = time.monotonic() + 60
        while len(list(folder.glob("thinks-*"))) < 2 and time.monotonic() < until:
            time.sleep(0.01)
    if name == "illegal":
        return "A9" if protocol == "gtp" else "e2e5" if protocol == "uci" else "99"
    if name == "garbage":
        sys.stdout.buffer.write(b"\xff\xfe\x00 what?\n\n")
        return "\t\x07;--"
    if name == "resigns":
        return "resign"
    if name.startswith("line:") and ply < len(line := name.removeprefix("line:").split(",")):
        return line[ply]
    return state.action_name(state.legal_actions()[-1 if name == "last" else 0])


def gtp(words):
    global start, state
    if words[0] == "list_commands":
        known = "play\ngenmove" if how == "timeless" else "play\ngenmove\ntime_settings\ntime_left"
        return known if "go" in game else f"{known}\nset_game"
    if words[0] in ("name", "version"):
        return {"name": "Stand-in", "version": "1.0"}[words[0]]
    if words[0] == "boardsize":
        if how == "small":
            raise ValueError("unacceptable size")
        start = make_game(game.partition("(")[0], size=int(words[1]))
    if words[0] == "clear_board":
        state = start.clone()
    if words[0] in ("play", "genmove") and "bw"[state.turn] != words[1]:
        raise ValueError("not its turn")
    if words[0] == "play" and words[2] == "pass" and how == "passes-itself":
        state.play(state.legal_actions()[0])
        raise ValueError("syntax error")
    if words[0] == "play":
        if how.startswith("refuses") and is_due() == "refuses":
            raise ValueError("illegal move")
        state.play(state.parse_actions(words[2])[0])
    if words[0] == "genmove":
        name = think()
        if name == "\t\x07;--":
            say(name)
        if name in ("A9", "resign"):
            return name.lower()
        state.play(state.parse_actions(name)[0])
        return name.swapcase()
    return ""


for line in sys.stdin:
    line = line.rstrip("\n")
    log.write(line + "\n")
    log.flush()
    words = line.split()
    if words[0] == "quit":
        break
    begun += words[0] in ("boardsize", "ucinewgame", "uginewgame")
    if how == "tired" and begun == 2:
        break
    if protocol == "gtp":
        try:
            say("=", gtp(words) + "\n")
        except ValueError as error:
            say("?", f"{error}\n")
    elif words[0] == protocol:
        say("id name Stand-in 1.0\nid author nobody")
        say("option name Skill Level type spin default 20 min 0 max 20")
        say("option name Style type combo default Solid var Solid var Very Risky")
        say("option name UCI_Elo type spin default 1500 min 1000 max 2000")
        say("option name UCI_LimitStrength type check default false")
        say(f"{protocol}ok")
    elif words[0] == "isready":
        say("readyok")
    elif words[0] == "position":
        assert words[1] == "startpos", line
        state, actions = start.clone(), start.parse_actions(line.partition(" moves ")[2])
        ply = len(actions)
        for action in actions:
            state.play(action)
    elif words[0] == "go":
        say("info string nothing yet")
        say("bestmove", think(), "ponder", "nothing")
    elif words == ["query", "result"] and how != "simple":
        ends = ("p1win", "p2win", "draw")
        is_over = state.turn == TERMINAL
        end = ends[0 if state.outcome() > 0 else 1 if state.outcome() < 0 else 2] if is_over else "none"
        say("response", end if how != "differs" else "draw" if end != "draw" else "p1win")
'''
GAMES = {"gtp": "go(size=5)", "uci": "chess(max_plies=24)", "ugi": "connect_four(width=5,height=4)"}

protocols = pytest.mark.parametrize("protocol", GAMES)
# The pipe to a program is the same for all protocols.
one_protocol = pytest.mark.parametrize(
    "protocol", ["ugi", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gtp", "uci"))]
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    (tmp_path / "notes").mkdir()
    return tmp_path


def spec(folder: Path, protocol: str, how: str, settings: str = "") -> str:
    words = [sys.executable, str(folder / "stand_in.py"), protocol, GAMES[protocol], how, str(folder / "notes")]
    return f"{protocol}:{shlex.join(words)}?start_timeout=60&{settings or 'timeout=60'}"


def play(
    folder: Path, protocol: str, how: str, settings: str = "", pairs: int = 2, slots: int = 2, other: str = "random"
) -> list[Round]:
    start = make_game(GAMES[protocol])
    parsed = [parse_player(spec(folder, protocol, how, settings)), parse_player(other)]
    a, b = load_players(parsed, start, 1, transcripts=Transcripts(folder / "transcripts"))
    book = Book(make_game(GAMES[protocol]), 2, 0)
    return list(play_rounds(book, (a.player, b.player), pairs, 0, slots))


def started(folder: Path) -> list[int]:
    return [int(path.name.partition("-")[2]) for path in (folder / "notes").glob("started-*")]


def commands(folder: Path) -> list[str]:
    return [line for path in (folder / "notes").glob("log-*") for line in path.read_text().splitlines()]


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


# Playing


@protocols
def test_a_program_plays_both_seats_of_each_opening_to_its_end(protocol: str, folder: Path) -> None:
    pairs = play(folder, protocol, "good", pairs=3, slots=4)
    assert [pair.faults for pair in pairs] == [((), ())] * 3
    for pair in pairs:
        for seat, (actions, points) in enumerate(zip(pair.actions, pair.points, strict=True)):
            state = make_game(GAMES[protocol])
            for ply, action in enumerate(actions):
                if ply >= 2 and state.turn == seat:
                    assert action == state.legal_actions()[0]
                state.play(action)
            assert state.is_terminal
            assert points == (1 + (1 - 2 * seat) * state.outcome()) / 2
    assert all(is_gone(process) for process in started(folder))


@protocols
def test_a_process_plays_one_game_after_another(protocol: str, folder: Path) -> None:
    play(folder, protocol, "good", pairs=4, slots=2)
    assert len(started(folder)) == 3  # one to look at, and one for each game in play
    begins = {"gtp": "clear_board", "uci": "ucinewgame", "ugi": "uginewgame"}[protocol]
    assert commands(folder).count(begins) == 1 + 8


@one_protocol
def test_programs_of_several_games_think_at_the_same_time(protocol: str, folder: Path) -> None:
    play(folder, protocol, "meets", pairs=2, slots=4)
    assert len(list((folder / "notes").glob("thinks-*"))) >= 2
    assert not (folder / "transcripts").exists()


def test_two_programs_play_each_other(folder: Path) -> None:
    pairs = play(folder, "ugi", "good", other=spec(folder, "ugi", "illegal-once"))
    assert [len(pair.faults[0]) for pair in pairs] == [0, 0]
    assert sum(len(pair.faults[1]) for pair in pairs) == 1
    assert sum(pair.points.count(1.0) for pair in pairs) >= 1


@pytest.mark.parametrize("game", ["pig", "wall_game", "hex(size=4,swap=1)", "backgammon"])
def test_ugi_is_for_any_game(game: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dice and names with blanks too: the program reads each line of play, and sees our result."""
    monkeypatch.setitem(GAMES, "ugi", game)
    [pair] = play(folder, "ugi", "good", pairs=1)
    assert pair.faults == ((), ())
    assert "query result" in commands(folder)


CASTLING = "e2e4,e7e5,g1f3,g8f6,f1c4,f8c5,e1h1,e8h8"
PROMOTION = "h2h4,g7g5,h4g5,h7h6,g5h6,a7a6,h6h7,a6a5,h7g8{}"


@pytest.mark.parametrize("protocol", ["uci", "ugi"])
@pytest.mark.parametrize(
    ("line", "played"),
    [
        (CASTLING, "O-O"),
        ("d2d4,d7d5,c1f4,c8f5,b1c3,b8c6,d1d2,d8d7,e1a1,e8a8", "O-O-O"),
        (PROMOTION.format("Q"), "hxg8=Q"),
        (PROMOTION.format("N"), "hxg8=N"),
    ],
)
def test_a_program_may_write_castling_and_promotions_otherwise(
    protocol: str, line: str, played: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GAMES, protocol, GAMES["uci"])
    start, plies = make_game(GAMES["uci"]), line.count(",")
    players = [parse_player(spec(folder, protocol, f"line:{line}")) for _ in range(2)]
    a, b = load_players(players, start, 1, transcripts=Transcripts(folder / "transcripts"))
    [pair] = play_rounds(Book(start, 0, 0), (a.player, b.player), 1, 0, 1)
    assert pair.faults == ((), ())
    for actions in pair.actions:
        assert after(start, *actions[:plies]).short_name(actions[plies]) == played


def test_a_program_of_gtp_is_told_the_rules_and_the_time(folder: Path) -> None:
    play(folder, "gtp", "good", "movetime=2&timeout=60", pairs=1)
    said = commands(folder)
    assert {"boardsize 5", "komi 7.5", "time_settings 0 2 1", "time_left b 2 1", "genmove w"} <= set(said)
    assert not any(line.startswith("go") for line in said)


@pytest.mark.parametrize("how", ["good", "passes-itself"])
def test_gtp_programs_play_othello_and_may_refuse_a_pass(
    how: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GAMES, "gtp", "othello(size=6)")
    pairs = play(folder, "gtp", how, pairs=3)
    assert [pair.faults for pair in pairs] == [((), ())] * 3
    assert all(is_over("gtp", actions) for pair in pairs for actions in pair.actions)
    said = commands(folder)
    assert {"set_game Othello", "boardsize 6"} <= set(said)
    assert any(re.fullmatch("play [bw] pass", line) for line in said)
    assert not any(line.startswith("komi") for line in said)


@pytest.mark.parametrize("protocol", ["uci", "ugi"])
def test_a_program_is_given_its_options_and_limits(protocol: str, folder: Path) -> None:
    options = "skill level=3&Style=Very Risky&UCI_Elo=1200"
    play(folder, protocol, "good", f"{options}&nodes=7&movetime=0.25&timeout=60", pairs=1)
    said = set(commands(folder))
    set_options = {f"setoption name {text}" for text in ("Skill Level value 3", "Style value Very Risky")}
    assert {*set_options, "go nodes 7 movetime 250"} <= said
    assert ("setoption name UCI_LimitStrength value true" in said) == (protocol == "uci")


def test_nodes_are_the_simulations_of_the_match_unless_given(folder: Path) -> None:
    start = make_game(GAMES["uci"])
    texts = [spec(folder, "uci", "good", given) for given in ("timeout=60", "nodes=3", "movetime=1")]
    entrants = load_players([parse_player(text) for text in texts], start, 55)
    told = [str(entrant).rpartition("notes")[2] for entrant in entrants]
    assert told == [f"?{limit} (Stand-in 1.0)" for limit in ("nodes=55", "nodes=3", "movetime=1")]
    assert all(is_gone(process) for process in started(folder))


def test_a_program_that_resigns_loses_without_a_fault(folder: Path) -> None:
    pairs = play(folder, "gtp", "resigns")
    assert [(pair.points, pair.faults) for pair in pairs] == [((0.0, 0.0), ((), ()))] * 2


# Misbehaving

ENDS = {
    "dies": "ends with exit status 1 instead of answering '{go}'; its last line on stderr: 'out of cheese'",
    "illegal": "which is not legal",
    "garbage": "",
    "long": "writes a line of more than 65536 bytes",
}
GO = {"gtp": "genmove ", "uci": "go nodes 1", "ugi": "go nodes 1"}


@pytest.mark.parametrize(
    ("protocol", "how"),
    [
        pytest.param(name, how, marks=pytest.mark.slow if name != "ugi" and how in ("dies", "long") else ())
        for name in GAMES
        for how in ENDS
    ],
)
def test_a_program_that_misbehaves_loses_that_game_alone(protocol: str, how: str, folder: Path) -> None:
    pairs = play(folder, protocol, f"{how}-once")
    faults = [fault for pair in pairs for fault in pair.faults[0]]
    assert [fault.forfeit for fault in faults] == [True]
    assert all(part in faults[0].text for part in ENDS[how].partition("{go}")[::2])
    assert all(pair.faults[1] == () for pair in pairs)
    if how == "garbage":
        expected = r"answers '\ufffd\ufffd\x00 what?' to 'genmove" if protocol == "gtp" else r"plays '\x07;--', which"
        assert expected in faults[0].text
    [path] = (folder / "transcripts").iterdir()
    assert str(path) == faults[0].transcript
    text = path.read_text()
    assert faults[0].text in text
    assert f"> {GO[protocol]}" in text
    over = [is_over(protocol, actions) for pair in pairs for actions in pair.actions]
    assert over.count(False) == 1
    broken = over.index(False)
    assert pairs[broken // 2].points[broken % 2] == 0.0
    assert len(started(folder)) == 4  # one to look at, two, and a fresh one
    assert all(is_gone(process) for process in started(folder))


def is_over(protocol: str, actions: Sequence[int]) -> bool:
    return bool(after(make_game(GAMES[protocol]), *actions).is_terminal)


@pytest.mark.parametrize(
    ("protocol", "how"),
    [
        pytest.param(name, how, marks=pytest.mark.slow if (name == "ugi") == (how == "floods") else ())
        for name in GAMES
        for how in ("hangs", "floods")
    ],
)
def test_a_program_that_gives_no_answer_loses_in_time(protocol: str, how: str, folder: Path) -> None:
    pairs = play(folder, protocol, f"{how}-once", "timeout=1")
    [fault] = [fault for pair in pairs for fault in pair.faults[0]]
    assert fault.forfeit
    if (protocol, how) == ("gtp", "floods"):
        assert fault.text.startswith("answers more than 1000 lines to 'genmove ")
    else:
        assert fault.text.startswith(f"does not answer '{GO[protocol]}")
        assert fault.text.endswith(" in 1 s")
    assert all(is_gone(process) for process in started(folder))


@one_protocol
def test_a_program_may_take_its_time_to_start(protocol: str, folder: Path) -> None:
    pairs = play(folder, protocol, "late-once", "timeout=1", pairs=1)
    assert pairs[0].faults == ((), ())


@protocols
@pytest.mark.parametrize("how", ["marked", "noisy-once"])
def test_a_program_may_start_with_a_mark_and_fill_stderr(how: str, protocol: str, folder: Path) -> None:
    [pair] = play(folder, protocol, how, pairs=1)
    assert pair.faults == ((), ())


@one_protocol
def test_a_process_may_be_good_for_one_game_only(protocol: str, folder: Path) -> None:
    pairs = play(folder, protocol, "tired")
    assert [pair.faults for pair in pairs] == [((), ())] * 2
    assert len(started(folder)) == 1 + 4
    assert all(is_gone(process) for process in started(folder))


def test_a_program_that_starts_no_more_loses_the_other_games(folder: Path) -> None:
    pairs = play(folder, "ugi", "broken-later")
    assert [pair.points for pair in pairs] == [(0.0, 0.0)] * 2
    for fault in pairs[0].faults[0] + pairs[1].faults[0]:
        assert fault.forfeit
        assert "exit status 1 instead of answering 'ugi'; its last line on stderr: 'no network here'" in fault.text


def test_a_full_machine_forfeits_no_game(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = make_game(GAMES["ugi"])
    a, b = load_players([parse_player(spec(folder, "ugi", "good")), parse_player("random")], start, 1)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(subprocess, "Popen", full)
    with pytest.raises(SettingsError, match=r"cannot start another .*, Too many open files: give fewer --slots"):
        list(play_rounds(Book(make_game(GAMES["ugi"]), 2, 0), (a.player, b.player), 1, 0))


def test_a_program_that_refuses_a_legal_move_loses(folder: Path) -> None:
    pairs = play(folder, "gtp", "refuses-once")
    [fault] = [fault for pair in pairs for fault in pair.faults[0]]
    assert fault.text.startswith("refuses 'play ")
    assert fault.text.endswith("': 'illegal move'")


def test_a_program_that_sees_another_result_only_is_named(folder: Path) -> None:
    pairs = play(folder, "ugi", "differs", pairs=1)
    assert [fault.forfeit for fault in pairs[0].faults[0]] == [False, False]
    assert all(fault.text.startswith("reports ") for fault in pairs[0].faults[0])
    assert pairs[0].points == play(folder, "ugi", "good", pairs=1)[0].points
    assert play(folder, "ugi", "simple", pairs=1)[0].faults == ((), ())  # it knows no queries


def test_transcripts_are_few_and_none_is_overwritten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.matches.programs._MOST_TRANSCRIPTS", 2)
    for _ in range(2):
        [pair, other] = play(folder, "ugi", "illegal", pairs=2)
        faults = pair.faults[0] + other.faults[0]
        assert [fault.forfeit for fault in faults] == [True] * 4
        assert sum(fault.transcript is None for fault in faults) == 2
    assert len(list((folder / "transcripts").iterdir())) == 4
    (folder / "transcripts-are-a-file").touch()
    assert Transcripts(folder / "transcripts-are-a-file").write("name", "text").startswith("none: ")


# The pipe


def talk(script: str, line: str, seconds: float, wanted: int) -> tuple[list[str], str, str]:
    """What a program in Python answers to a line, why it gives no further answer, and the transcript."""

    async def spoken() -> tuple[list[str], str, str]:
        program = await Program.start([sys.executable, "-c", script])
        program.send(line, seconds)
        lines = [await program.read() for _ in range(wanted)]
        with pytest.raises(Misbehaved) as caught:
            await program.read()
        await program.close()
        assert not program.is_running
        return lines, str(caught.value), program.transcript()

    return asyncio.run(spoken())


def test_a_program_that_does_not_read_blocks_no_other() -> None:
    _, problem, _ = talk("import time; time.sleep(600)", "x" * 10_000_000, 0.3, 0)
    assert re.fullmatch(r"does not answer 'x+\.\.\.' in 0.3 s", problem)


def test_a_long_line_reaches_a_program_that_reads() -> None:
    lines, problem, _ = talk("print(len(input()))", "x" * 10_000_000, 60, 1)
    assert lines == ["10000000"]
    assert problem.startswith("ends with exit status 0")


def test_a_last_line_without_an_end_counts_and_a_signal_is_named() -> None:
    script = "import os; input(); os.write(1, b'a\\r\\nlast'); os.kill(os.getpid(), 9)"
    lines, problem, transcript = talk(script, "go", 60, 2)
    assert lines == ["a", "last"]
    assert problem == "ends by signal 9 instead of answering 'go'"
    assert transcript.count("\n") == 3


@pytest.mark.skipif(sys.platform == "win32", reason="asyncio polls there")
def test_the_exit_status_of_a_killed_program_is_left_to_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(_: object) -> None:
        pytest.fail("asyncio would warn of an unknown child process")

    async def killed() -> None:
        program = await Program.start([sys.executable, "-S", "-c", "input()"])
        monkeypatch.setattr(subprocess.Popen, "poll", taken)
        await program.close()
        assert not program.is_running

    asyncio.run(killed())


# The command


@pytest.mark.parametrize(
    ("player", "game", "text"),
    [
        ("gtp:", "go", "expected a program after gtp:, got none"),
        ("gtp:no-such-program --x", "go", "program 'no-such-program' not found in this folder or on the PATH"),
        ("gtp:python 'x", "go", "cannot read the command: No closing quotation"),
        ("{gtp}?nodes=5", "go", "GTP does not have options such as nodes: put it among the program's own arguments"),
        ("{gtp}?level=5", "go", "GTP does not have options such as level"),
        ("{gtp}?movetime=0.5", "go", "GTP needs movetime in whole seconds, got 0.5"),
        ("{gtp}", "chess", "this protocol plays go and othello, not chess"),
        ("{gtp}", "othello", "does not support set_game, so it plays only Go"),
        ("{gtp small}", "go", "refuses 'boardsize 9': 'unacceptable size'"),
        ("{gtp timeless}?movetime=1", "go", "does not support time_settings: leave movetime out"),
        ("{gtp broken}", "go", "exit status 1 instead of answering 'list_commands'; its last line on stderr: 'no n"),
        ("{uci mute}?start_timeout=0.3", "chess", "does not answer 'uci' in 0.3 s"),
        ("{uci}?nodes=many", "chess", "nodes must be a whole number, got 'many'"),
        ("{uci}?Skil Level=3", "chess", "does not have the option 'Skil Level'; did you mean Skill Level?"),
        ("{uci}?Skill Level=21", "chess", "a whole number from 0 to 20 for its option 'Skill Level', got '21'"),
        ("{uci}?Style=Odd", "chess", "one of Solid, Very Risky for its option 'Style', got 'Odd'"),
        ("{uci}?UCI_LimitStrength=1", "chess", "true or false for its option 'UCI_LimitStrength', got '1'"),
        ("{uci}?Style=a\nquit", "chess", "'Style': expected printable characters, got 'a\\nquit'"),
        ("{uci}", "chess(chess960=5)", "does not have the option 'UCI_Chess960'"),
    ],
)
def test_a_program_that_cannot_play_is_refused_before_the_match(
    player: str, game: str, text: str, folder: Path, one_line: Any
) -> None:
    if player.startswith("{"):
        words, _, settings = player[1:].partition("}")
        protocol, _, how = words.partition(" ")
        player = spec(folder, protocol, how or "good").partition("?")[0] + settings
    assert text in one_line(main, [player, "random", "--game", game], "az-match: player ")
    assert all(is_gone(process) for process in started(folder))


def test_a_path_that_looks_like_a_program_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gtp:model.onnx").touch()
    assert parse_player("gtp:model.onnx").model == Path("gtp:model.onnx")
    with pytest.raises(SettingsError, match="or gtp:, uci: or ugi: and a program"):
        parse_player("gnugo")


def test_the_result_names_the_program_and_the_transcript(folder: Path, printed: Any, one_line: Any) -> None:
    command = ["random", spec(folder, "ugi", "illegal-once"), "--game", GAMES["ugi"], "--games", "4"]
    command += ["--transcripts", str(folder / "here"), "--slots", "2"]
    lines = printed(main, command).splitlines()
    assert "B is ugi:" in lines[0]
    assert "?nodes=100 (Stand-in 1.0)" in lines[0]
    assert lines[1].startswith("ugi:")  # as soon as it happens
    transcript = folder / "here" / f"{Path(sys.executable).name}-1.txt"
    said = f"lost 1 game by rule: it plays '99', which is not legal (transcript {transcript})"
    assert lines[1].endswith(said)
    assert lines[-1] == f"B {said}"
    (folder / "notes/done").unlink()
    report = json.loads(printed(main, [*command, "--json"]))
    assert report["forfeits"] == [0, 1]
    [[], [fault]] = report["faults"]
    assert fault["text"] == "plays '99', which is not legal"
    assert Path(fault["transcript"]).read_text().count("bestmove 99") == 1
    one_line(main, [*command, "--slots", "1"], "az-match: --slots must be at least 2, got 1\n")


def test_ctrl_c_ends_a_program_that_thinks(folder: Path) -> None:
    player, game = spec(folder, "ugi", "hangs"), GAMES["ugi"]
    command = az("match", player, "random", "--game", game)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as match:
        until = time.monotonic() + 60
        while not any(line.startswith("go ") for line in commands(folder)):
            assert time.monotonic() < until
            time.sleep(0.01)
        match.send_signal(signal.SIGINT)
        output, _ = match.communicate(timeout=60)
    assert match.returncode == 130
    assert output.splitlines()[-1] == "stopped before the first pair of games was over"
    assert all(is_gone(process) for process in started(folder))
