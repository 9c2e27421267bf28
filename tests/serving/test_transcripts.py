r"""Golden transcripts: conversations with the protocols, the server and the terminal, as plain text.

`transcripts/*.txt` has blocks with blank lines between them. Each block is one test, a conversation of its own:

    # a comment      what the user cares about; the first one names the test
    $ az-engine ...  the command, run in this process; a block without one takes that of the block before. Variables may
                     stand before it: `FAULTS=2 az-engine ...` has a network that fails twice.
    + game.sgf TEXT  write a file into the current folder; `\n` begins a line
    > LINE           send a line; `^D` ends the input, `{x*99}` is 99 times x
    < LINE           expect this line next
    > A | B  < C | D send two lines, and expect two
    ~ REGEX          expect a line that matches
    ! LINE           expect that the command does not start, with this line and exit code 2

In an expected line `…` is any text, `<n>` a number, and `<move>` a move of chess. A line that is `…` alone skips lines.
Empty lines and reports (`info depth`, `info move`, `isDuringSearch`) are skipped unless they are expected. Any other
line that comes and is not expected fails the test. Of a JSON object the given fields are compared; `"-"` says that a
field is absent, and a list that ends in `"…"` may go on. JSON lines that are expected together may come in any order.

az-serve takes `> GET /path` and `> POST /path {...}`, with headers as `"name: value"` behind the path, and `[name]` for
headers of the answer to hear. `> WS /ws` opens a WebSocket, which gets the lines that are not requests.

`AZPY_RECORD=1 pytest tests/serving/test_transcripts.py` writes what came in place of lines that were not met.
"""

import json
import os
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from azpy.cli import engine, match, play, serve
from azpy.serving.protocols import PROTOCOLS
from azpy.web import server
from talks import PATIENCE, Talk

COMMANDS: dict[str, Any] = {"az-engine": engine, "az-serve": serve, "az-play": play, "az-match": match}
PATTERNS = {"…": ".*", "<n>": r"-?\d[\d.e-]*", "<move>": "(?:[a-h][1-8]){2}[qrbn]?"}
HEARD = ("<", "~")  # kinds of lines that are expected
ON_THE_WAY = re.compile(r'info depth |info move |info string values |.*"isDuringSearch":true|$')


class Line(NamedTuple):
    """A line of a transcript: its kind is its first character."""

    file: Path
    number: int
    kind: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.file.name}:{self.number + 1}"


class Typed:
    """A terminal with az-play, and a person who types."""

    def __init__(self, words: list[str], typed: list[str], patched: pytest.MonkeyPatch) -> None:
        out, self._parts, lines = StringIO(), list[str](), iter(typed)

        class Keyboard:
            def readline(_) -> str:  # noqa: N805
                self._parts.append(out.getvalue())
                out.truncate(out.seek(0))
                return next((f"{line}\n" for line in lines if line != "^D"), "")

        with patched.context() as inner:
            inner.setattr("sys.stdin", Keyboard())
            inner.setattr("sys.stdout", out)
            assert play.main(words) == 0
        self.heard = list[str]()
        self.say("")

    def say(self, _: str) -> None:
        self.heard += self._parts.pop(0).removesuffix("> ").splitlines() if self._parts else []

    def next(self) -> str:
        assert self.heard, "nothing more came"
        return self.heard.pop(0)

    def close(self) -> None:
        pass


class Serving:
    """az-serve on the loopback, in a thread."""

    address: str
    server: server.Server

    def __init__(self, words: list[str], patched: pytest.MonkeyPatch) -> None:
        began = threading.Event()

        class Started(server.Server):
            def run(own, sockets: Any = None) -> None:  # noqa: N805
                self.server, self.address = own, "127.0.0.1:{1}".format(*sockets[0].getsockname())
                began.set()
                super().run(sockets)

        with patched.context() as inner:
            inner.setattr(server, "Server", Started)
            inner.setattr(server, "log_to_stderr", lambda: None)
            inner.setattr(serve, "HANGUP", None)
            inner.setattr(serve, "when_told_to_end", lambda _: {})
            self.thread = threading.Thread(target=serve._serve, args=(["--port", "0", *words],), daemon=True)
            self.thread.start()
            assert began.wait(PATIENCE)


class Browser:
    """A client of az-serve, which keeps cookies."""

    def __init__(self, address: str) -> None:
        self.heard, self._sockets, self._address, self._stack = list[str](), list[Any](), address, ExitStack()
        self._client = self._stack.enter_context(httpx.Client(base_url=f"http://{address}", timeout=PATIENCE))

    def say(self, line: str) -> None:
        found = re.fullmatch(r'([A-Z]+) (/\S*)((?: "[^"]*")*)(?: \[(.*?)\])?(?: (.*))?', line)
        if found is None:
            self._sockets[-1].send(line)
            return
        method, path, quoted, wanted, body = found.groups()
        headers = dict(each.split(": ", 1) for each in re.findall('"(.*?)"', quoted))
        if method == "WS":
            try:
                opened = connect(f"ws://{self._address}{path}", additional_headers=headers)
                self._sockets.append(self._stack.enter_context(opened))
                self.heard.append("101")
            except InvalidStatus as error:
                self.heard.append(str(error.response.status_code))
            return
        json_type = {} if body is None else {"content-type": "application/json"}
        content = body and body.encode().replace(rb"\xff", b"\xff")
        answer = self._client.request(method, path, content=content, headers={**json_type, **headers})
        self.heard += [f"{name}: {answer.headers.get(name, '-')}" for name in (wanted or "").split(", ") if name]
        first, *rest = answer.text.splitlines() or [""]
        self.heard += [f"{answer.status_code} {first}", *rest]

    def next(self) -> str:
        if not self.heard:
            try:
                return str(self._sockets[-1].recv(PATIENCE))
            except ConnectionClosed as closed:
                return f"closed {closed.rcvd.code if closed.rcvd else ''}"
        return self.heard.pop(0)

    def close(self) -> None:
        self._stack.close()


class Failing:
    """A network that fails so many times, and knows nothing then."""

    def __init__(self, actions: int, faults: int) -> None:
        self.actions, self.faults = actions, faults

    def evaluate_batch(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.faults -= 1
        if self.faults >= 0:
            raise RuntimeError("out of memory\nand more")
        rows = len(observations)
        return np.zeros((rows, self.actions), np.float32), np.zeros(rows, np.float32)


class Program(Talk):
    """A program that speaks a protocol with az-engine."""

    def __init__(self, words: list[str], faults: int) -> None:
        given = engine._parser().parse_args(words)
        models = engine._models(given)
        if faults:
            models = {
                name: replace(one, evaluator=Failing(one.start.num_actions, faults)) for name, one in models.items()
            }
        super().__init__(lambda talk: PROTOCOLS[given.protocol].open(models, talk).run())

    def say(self, *lines: str) -> None:
        if lines == ("^D",):
            self._write.close()
        else:
            super().say(*lines)


def blocks() -> Iterator[Any]:
    for file in sorted((Path(__file__).parent / "transcripts").glob("*.txt")):
        command, block = Line(file, 0, "$", ""), list[Line]()
        for number, text in enumerate([*file.read_text("utf-8").splitlines(), ""]):
            if text:
                sent = re.fullmatch(r"(> .*?)(?:  +([<~] .*))?", text)
                for each in (part for part in sent.groups() if part) if sent else ():
                    block += [Line(file, number, each[0], part) for part in each[2:].split(" | ")]
                block += [] if sent else [Line(file, number, text[0], text[2:])]
                continue
            starts = [line for line in block if line.kind == "$"]
            if len(block) > len(starts):
                title = next((line.text for line in block if line.kind == "#"), str(number))
                yield pytest.param(block if starts else [command, *block], id=f"{file.stem}: {title}")
            command, block = (starts or [command])[-1], []


def meets(expected: Any, found: Any) -> bool:
    """Whether what came is what a transcript expects."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(meets(value, found[name]) if name in found else value == "-" for name, value in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        if expected[-1:] == ["…"]:
            expected, found = expected[:-1], found[: len(expected) - 1]
        return len(expected) == len(found) and all(map(meets, expected, found))
    if isinstance(expected, str):
        parts = re.split(f"({'|'.join(PATTERNS)})", expected)
        regex = "".join(PATTERNS.get(part) or re.escape(part) for part in parts)
        return expected == "…" or (isinstance(found, str) and re.fullmatch(regex, found, re.DOTALL) is not None)
    if isinstance(expected, float | int) and isinstance(found, float | int):
        return isinstance(expected, bool) == isinstance(found, bool) and found == pytest.approx(expected, abs=1e-5)
    return expected is found


def parsed(text: str) -> tuple[str, Any]:
    """The status of HTTP before an object of JSON, and the object; else the text itself."""
    found = re.fullmatch(r"(\d{3} |)(\{.*)", text)
    with suppress(ValueError):
        return (found[1], json.loads(found[2])) if found else ("", text.rstrip())
    return "", text.rstrip()


def is_met(line: Line, came: str) -> bool:
    if line.kind == "~":
        return re.fullmatch(line.text, came) is not None
    (status, wanted), (came_status, found) = parsed(line.text), parsed(came)
    if isinstance(wanted, str):
        return meets(wanted, came.rstrip())
    return status == came_status and meets(wanted, found)


def recorded(expected: Any, found: Any) -> Any:
    """What came, as far as it was asked for."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return {name: recorded(value, found.get(name, "-")) for name, value in expected.items()}
    return expected if meets(expected, found) else found


def listen(talk: Any, expected: list[Line], came_instead: dict[Line, str]) -> None:
    """Hears the lines that are expected together."""
    left = expected
    while left:
        if skips := left[0].text == "…":
            left = left[1:]
        if not left:
            talk.heard.clear()
            return
        while True:
            came = talk.next()
            choice = left if left[0].text.startswith("{") else left[:1]
            met = next((line for line in choice if is_met(line, came)), None)
            if met is not None or not (skips or ON_THE_WAY.match(came)):
                break
        if met is None and os.environ.get("AZPY_RECORD") == "1":
            (_, wanted), (status, found) = parsed(left[0].text), parsed(came)
            is_json = isinstance(wanted, dict) and isinstance(found, dict)
            written = json.dumps(recorded(wanted, found), ensure_ascii=False, separators=(",", ":"))
            came_instead[met := left[0]] = f"{status}{written}" if is_json else came
        assert met is not None, f"{left[0].place}: expected\n{left[0].text}\nbut this came:\n{came}"
        left.remove(met)


def refused(words: list[str], line: Line, patched: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs a command that does not start; a protocol that refuses its players does so beside its conversation."""
    patched.setattr(engine, "Conversation", Mock())
    patched.setattr(engine, "_listen", Mock())
    capsys.readouterr()
    assert COMMANDS[words[0]].main(words[1:]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert meets(f"{line.text}\n", said.err), f"{line.place}: {said.err}"


def start(words: list[str], typed: list[str], servers: dict[str, Serving], patched: pytest.MonkeyPatch) -> Any:
    key = shlex.join(words)
    while "=" in words[0]:
        patched.setenv(*words.pop(0).split("=", 1))
    command, *words = words
    if command == "az-play":
        return Typed(words, typed, patched)
    if command == "az-engine":
        return Program(words, int(os.environ.get("FAULTS", 0)))
    if key not in servers:
        servers[key] = Serving(words, patched)
    return Browser(servers[key].address)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Serving]]:
    """By their commands: conversations share them."""
    found: dict[str, Serving] = {}
    yield found
    for one in found.values():
        one.server.should_exit = True
    for one in found.values():
        one.thread.join(PATIENCE)
        assert not one.thread.is_alive()


@pytest.mark.parametrize("block", list(blocks()))
def test_a_conversation_goes_as_written(
    block: list[Line],
    servers: dict[str, Serving],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("AZPY_TOKEN", "FAULTS"):
        monkeypatch.delenv(name, raising=False)
    talk: Any = None
    words, came_instead, typed = list[str](), dict[Line, str](), [line.text for line in block if line.kind == ">"]
    for are_heard, lines in groupby(block, lambda line: line.kind in HEARD):
        if are_heard:
            talk = talk or start(words, typed, servers, monkeypatch)
            listen(talk, list(lines), came_instead)
            continue
        for line in lines:
            text = re.sub(r"\{(.)\*(\d+)\}", lambda found: found[1] * int(found[2]), line.text)
            if line.kind == ">":
                talk = talk or start(words, typed, servers, monkeypatch)
                talk.say(text)
            elif line.kind == "$":
                assert talk is None, "a block is one conversation"
                words = shlex.split(line.text)
            elif line.kind == "!":
                refused(words, line, monkeypatch, capsys)
            elif line.kind == "+":
                name, _, text = text.partition(" ")
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(text.replace(r"\n", "\n").replace(r"\x1b", "\x1b"), "utf-8")
    if talk is not None:
        talk.close()
        more = [line for line in talk.heard if not ON_THE_WAY.match(line)]
        assert block[-1].text == "…" or not more, f"{block[-1].place}: more came: {more}"
    for line, came in came_instead.items():
        written = line.file.read_text("utf-8").splitlines()
        said, _, heard = re.split(r"(?:^|(?<=  ))([<~]) ", written[line.number], maxsplit=1)
        parts = heard.split(" | ") if said else [heard]
        parts[parts.index(line.text)] = came
        written[line.number] = f"{said}< {' | '.join(parts)}"
        line.file.write_text("\n".join([*written, ""]), "utf-8")
