"""az-engine ends when it is told to, and when nobody is left to talk to."""

import contextlib
import io
import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from azpy.serving.lines import LONGEST_LINE, Conversation
from azpy.serving.wall_game import MOST_SESSIONS
from talks import COMMAND, PATIENCE

ENDLESS = "uniform:4000000000"  # a search that ends only if it is stopped
CHESS = [*COMMAND, ENDLESS, "--game", "chess", "--protocol", "uci"]
GO = [*COMMAND, ENDLESS, "--game", "go(size=7)", "--protocol", "gtp"]
WALLS = [*COMMAND, ENDLESS, "--game", "wall_game", "--protocol", "wallgame"]
JSON = [*COMMAND, "uniform:50", "--game", "hex(size=5)", "--protocol", "json"]
ASKED_AFTER = '{"id":"v","action":"query_version"}'
START = """{"type":"start_game_session","bgsId":"a","botId":"b","config":{"variant":"standard","boardWidth":5,\
"boardHeight":5,"initialState":{"pawns":{"p1":{"cat":[0,0],"mouse":[4,0]},"p2":{"cat":[0,4],"mouse":[4,4]}},\
"walls":[]}}}"""
EVALUATE = '{"type":"evaluate_position","bgsId":"a","expectedPly":0}'
# A command, lines that begin a search, and what is heard once it goes on.
SEARCHES = {
    "uci": (CHESS, ["go infinite", "isready"], "readyok"),
    "kata-analyze": (GO, ["kata-analyze b 5"], "info"),
    "genmove": (GO, ["lz-genmove_analyze b"], "info"),
    "wallgame": (WALLS, [START, EVALUATE], '{"type":"game_session_started"'),
    "json": (JSON, [f'{{"id":"1","game":"mine","simulations":{2**32 - 1}}}', ASKED_AFTER], '{"id":"v"'),
}


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[Any]:
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def begin(process: Any, lines: list[str], sign: str) -> None:
    process.stdin.write("".join(line + "\n" for line in lines))
    process.stdin.flush()
    while not process.stdout.readline().startswith(sign):
        assert process.poll() is None


@pytest.mark.parametrize("name", SEARCHES)
def test_a_killed_client_leaves_no_process(name: str) -> None:
    command, lines, sign = SEARCHES[name]
    code = f"""
        import subprocess, sys, time
        own = int(sys.argv[1])
        process = subprocess.Popen({command}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=[own])
        process.stdin.write({chr(10).join([*lines, ""])!r})
        process.stdin.flush()
        while not process.stdout.readline().startswith({sign!r}):
            assert process.poll() is None
        print("it searches", flush=True)
        time.sleep({2 * PATIENCE})
    """
    # The engine has this pipe until it ends.
    alive, own = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(own)], stdout=subprocess.PIPE, pass_fds=[own], text=True
    ) as client:
        os.close(own)
        assert client.stdout is not None
        assert client.stdout.readline() == "it searches\n"
        client.kill()
    ended, _, _ = select.select([alive], [], [], PATIENCE)
    os.close(alive)
    assert ended


@pytest.mark.parametrize("name", SEARCHES)
def test_an_engine_ends_when_its_output_is_closed(name: str) -> None:
    command, lines, sign = SEARCHES[name]
    with started(command) as process:
        begin(process, lines, sign)
        process.stdout.close()  # its input stays open
        assert process.wait(PATIENCE) == 141


@pytest.mark.parametrize(
    ("name", "moves", "number", "code"),
    [
        ("uci", 1, signal.SIGTERM, 0),
        ("uci", 1, signal.SIGHUP, 0),
        ("kata-analyze", 0, signal.SIGUSR1, 0),
        ("genmove", 0, signal.SIGUSR2, 0),
        ("json", 0, signal.SIGINT, 130),
    ],
)
def test_a_signal_ends_a_search(name: str, moves: int, number: int, code: int) -> None:
    command, lines, sign = SEARCHES[name]
    with started(command) as process:
        begin(process, lines, sign)
        process.send_signal(number)
        said, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, errors) == (code, "")
    assert said.count("bestmove") + said.count("play") == moves
    assert code == 0 or said == "", "Ctrl-C ends it at once"


GAMES = [START.replace('"a"', f'"{number}"') for number in range(MOST_SESSIONS)]
ASKED = [EVALUATE.replace('"a"', f'"{number}"') for number in range(MOST_SESSIONS)]
QUERIES = [f'{{"id":"{number}","game":"{number}","simulations":200}}' for number in range(256)]
# A command, lines that have an answer each, a last line with an answer that comes at once, and what each answer has.
WAITING = {
    "wallgame": ([*COMMAND, "uniform:400", *WALLS[-4:]], [*GAMES, *ASKED], "the last line", '"bestMove":"[^"]'),
    "json": (JSON, QUERIES, ASKED_AFTER, '"rootInfo":{[^}]*"visits":200,'),
}


@pytest.mark.parametrize("is_signal", [False, True])
@pytest.mark.parametrize("name", WAITING)
def test_the_end_and_a_signal_answer_what_waits(name: str, is_signal: bool) -> None:
    command, lines, last, answer = WAITING[name]
    with started(command) as process:
        process.stdin.write("".join(f"{line}\n" for line in [*lines, last]))
        process.stdin.flush()
        said = ""
        while not re.search('"id":"v"|"type":"error"', said):
            said += process.stdout.readline()
        if is_signal:
            process.send_signal(signal.SIGTERM)
        else:
            process.stdin.close()
        said += process.stdout.read()
        assert process.wait(PATIENCE) == 0
    assert len(re.findall(answer, said)) == (256 if name == "json" else MOST_SESSIONS)


def test_a_second_signal_ends_it_at_once() -> None:
    with started(WALLS) as process:
        # The answer to the last line says that the one before it was read.
        begin(process, [START, EVALUATE, START.replace('"a"', '"c"')], '{"type":"game_session_started","bgsId":"c"')
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            time.sleep(0.05)  # two signals at once are one
        assert process.returncode == 128 + signal.SIGTERM
        assert process.stdout.read() == "", "the search was not waited for"


def test_a_signal_ends_it_though_its_answers_are_not_read() -> None:
    """The pipe for its answers is full, and stays open."""
    for command in ([*COMMAND, "uniform:1", "--game", "chess", "--protocol", "uci"], GO):
        with started(command) as process:
            process.stdin.write("list_commands\n" * 1000 if command == GO else "uci\n" * 1000)
            process.stdin.flush()
            process.stdout.read(1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0


def test_a_client_that_never_reads_counts_as_gone() -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb"), os.fdopen(write, "w") as sink:
        talk = Conversation(io.BytesIO(), sink)
        speaker = threading.Thread(target=talk.say, args=("x" * 10**6,))
        speaker.start()
        talk.leave(0.0)
        speaker.join(PATIENCE)
        assert not speaker.is_alive()
        assert talk.gone.is_set()
        talk.say("dropped")


def test_long_answers_arrive_whole() -> None:
    read, write = os.pipe()
    with os.fdopen(read) as source, os.fdopen(write, "w") as sink:
        talk, lines = Conversation(io.BytesIO(), sink), ["x" * 10**6, "Größe \ud800", ""]
        speaker = threading.Thread(target=talk.say, args=lines)
        speaker.start()
        assert [source.readline() for _ in lines] == ["x" * 10**6 + "\n", "Größe \\ud800\n", "\n"]
        speaker.join(PATIENCE)
        assert not talk.gone.is_set()


def lines_of(data: bytes, refuse: Callable[[str], None] | None = None) -> list[str]:
    return list(Conversation(io.BytesIO(data), io.StringIO()).lines(refuse))


def test_input_stops_once_output_is_closed() -> None:
    talk = Conversation(io.BytesIO(b"first\nsecond\n"), io.StringIO())
    lines = talk.lines()
    assert next(lines) == "first"
    talk.gone.set()
    assert list(lines) == []


def test_control_characters_in_lines_are_removed() -> None:
    assert lines_of(b" a\tb\x00\x1b \r\n\n\xef\xbb\xbfuci\xff\n\xc2\xa0c") == ["a\tb", "", "uci\ufffd", "c"]
    longest = b"x" * LONGEST_LINE
    assert lines_of(longest + b"y\nz\n") == [longest.decode(), "z"]
    assert lines_of(3 * longest) == [longest.decode()]


def test_exact_lines_come_as_they_were_sent_or_are_refused() -> None:
    refused = list[str]()
    text = "a\u00a0b\u2028\u200b\x00 \U0001f468\u200d\U0001f469"
    assert lines_of(f" {text}\t\r\nb".encode(), refused.append) == [text, "b"]
    assert lines_of(b"ab\xffc\nd\n", refused.append) == ["d"]
    assert refused == ["byte 3 of the line is not UTF-8"]
    longest = b"x" * LONGEST_LINE
    assert lines_of(longest + b"\r\n" + longest, refused.append) == [longest.decode()] * 2
    for end in (b" ", b"\xff", longest, longest + b"y"):
        assert lines_of(longest + end + b"\nd\n", refused.append) == ["d"]
        assert refused.pop() == f"a line has at most {LONGEST_LINE} bytes"
    assert len(refused) == 1
