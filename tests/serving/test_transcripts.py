"""Conversations with the protocols, the server and the terminal go as written (`tests/support/transcripts.py`)."""

import os
import re
import shlex
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from azpy.cli import engine, match, play, serve
from azpy.serving.protocols import PROTOCOLS
from served import running
from talks import PATIENCE, Talk
from transcripts import HEARD, ON_THE_WAY, Line, blocks, is_met, meets

COMMANDS: dict[str, Any] = {"az-engine": engine, "az-serve": serve, "az-play": play, "az-match": match}
REPEATED = re.compile(r"\{(.)\*(\d+)\}")


class Failing:
    """A network that fails so many times, and knows nothing then."""

    def __init__(self, actions: int) -> None:
        self.actions, self.faults = actions, int(os.environ["FAULTS"])

    def evaluate_batch(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.faults -= 1
        if self.faults >= 0:
            raise RuntimeError("out of memory\nand more")
        rows = len(observations)
        return np.zeros((rows, self.actions), np.float32), np.zeros(rows, np.float32)


class Program(Talk):
    """A program that speaks a protocol with az-engine."""

    def __init__(self, words: list[str]) -> None:
        given = engine._parser().parse_args(words)
        models = engine._models(given)
        for name, one in models.items() if "FAULTS" in os.environ else ():
            models[name] = replace(one, evaluator=Failing(one.start.num_actions))
        super().__init__(lambda talk: PROTOCOLS[given.protocol].open(models, talk).run())

    def say(self, *lines: str) -> None:
        if lines == ("^D",):
            self._write.close()
        else:
            super().say(*lines)


class Typed:
    """A terminal with az-play, and a person who types."""

    def __init__(self, words: list[str], typed: list[str], patched: Any, capsys: Any) -> None:
        lines = iter(typed)

        def read(_: str) -> str:
            print("\0")
            if (line := next(lines, "^D")) == "^D":
                raise EOFError
            return line

        patched.setattr("builtins.input", read)
        assert play.main(words) == 0
        first, *self._parts = capsys.readouterr().out.split("\0\n")
        self.heard: list[str] = first.splitlines()

    def say(self, _: str) -> None:
        self.heard += self._parts.pop(0).splitlines()

    def next(self) -> str:
        assert self.heard, "nothing more came"
        return self.heard.pop(0)

    def close(self) -> None:
        pass


class Browser:
    """A client of az-serve, which keeps cookies."""

    def __init__(self, address: str) -> None:
        self.heard, self._sockets, self._address, self._stack = list[str](), list[Any](), address, ExitStack()
        self._client = self._stack.enter_context(httpx.Client(base_url=f"http://{address}", timeout=PATIENCE))
        self.close = self._stack.close

    def say(self, line: str) -> None:
        if line.startswith("TCP "):
            self.heard.append(self._raw(line[4:].replace("{host}", self._address)))
            return
        found = re.fullmatch(r'([A-Z]+) (/\S*)((?: "[^"]*")*)(?: \[(.*?)\])?(?: (.*))?', line)
        if found is None:
            self._sockets[-1].send(line)
            return
        method, path, quoted, wanted, body = found.groups()
        given = dict(each.split(": ", 1) for each in re.findall('"(.*?)"', quoted))
        answer: Any
        if method == "WS":
            try:
                opened = connect(f"ws://{self._address}{path}", additional_headers=given)
                self._sockets.append(self._stack.enter_context(opened))
                answer, lines = opened.response, ["101"]
            except InvalidStatus as error:
                answer, lines = error.response, [str(error.response.status_code)]
        else:
            json_type = {} if body is None else {"content-type": "application/json"}
            content = body and body.encode().replace(rb"\xff", b"\xff")
            said = self._client.request(method, path, content=content, headers=json_type | given)
            first, *rest = said.text.splitlines() or [""]
            answer, lines = said, [f"{said.status_code} {first}", *rest]
        self.heard += [f"{name}: {answer.headers.get(name, '-')}" for name in wanted.split(", ")] if wanted else []
        self.heard += lines

    def _raw(self, text: str) -> str:
        """What comes back for the bytes of a text until the server ends the connection, as one line."""
        host, _, port = self._address.partition(":")
        with socket.create_connection((host, int(port)), PATIENCE) as client:
            client.sendall(text.encode().decode("unicode_escape").encode("latin-1"))
            return b"".join(iter(lambda: client.recv(65536), b"")).decode().replace("\r\n", " ").replace("\n", " ")

    def next(self) -> str:
        if self.heard:
            return self.heard.pop(0)
        try:
            return str(self._sockets[-1].recv(PATIENCE))
        except ConnectionClosed as closed:
            return f"closed {closed.rcvd.code if closed.rcvd else ''}"


@pytest.fixture(scope="module")
def served() -> Iterator[Callable[[str, list[str]], str]]:
    """The address of az-serve by its command and its arguments: conversations share a server."""
    found = dict[str, str]()
    with ExitStack() as stack:

        def address(command: str, words: list[str]) -> str:
            if command not in found:
                site = serve._site(serve._settings(words), stack)
                for model in site.models.values() if "FAULTS" in os.environ else ():
                    model.engine.load("main", Failing(model.player.start.num_actions))
                found[command] = stack.enter_context(running(site))
            return found[command]

        yield address


def refused(words: list[str], line: Line, patched: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command that does not start; a protocol that refuses its players does so beside its conversation."""
    patched.setattr(engine, "Conversation", Mock())
    patched.setattr(engine, "_listen", Mock())
    assert COMMANDS[words[0]].main(words[1:]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert meets(f"{line.text}\n", said.err), f"{line.place}: {said.err}"


def listen(talk: Any, left: list[Line]) -> None:
    """Hear the lines that are expected together."""
    while left:
        if skips := left[0].text == "…":
            left = left[1:]
        if not left:
            talk.heard.clear()
            return
        met = None
        while met is None:
            came = talk.next()
            choice = left if left[0].text.startswith("{") else left[:1]
            met = next((line for line in choice if is_met(line, came)), None)
            is_skipped = skips or ON_THE_WAY.match(came)
            assert met or is_skipped, f"{left[0].place}: expected\n{left[0].text}\nbut this came:\n{came}"
        left.remove(met)


@pytest.mark.parametrize("block", [pytest.param(block, id=title) for title, block in blocks()])
def test_a_conversation_goes_as_written(
    block: list[Line], served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("AZPY_TOKEN", "FAULTS"):
        monkeypatch.delenv(name, raising=False)
    talk: Any = None
    block = [line._replace(text=REPEATED.sub(lambda found: found[1] * int(found[2]), line.text)) for line in block]
    command, words, typed = "", list[str](), [line.text for line in block if line.kind == ">"]
    for kind, lines in groupby(block, lambda line: "<" if line.kind in HEARD else line.kind):
        if kind in "<>" and talk is None:
            program, *rest = words
            if program == "az-serve":
                talk = Browser(served(command, rest))
            else:
                talk = Program(rest) if program == "az-engine" else Typed(rest, typed, monkeypatch, capsys)
        if kind == "<":
            listen(talk, list(lines))
            continue
        for line in lines:
            if kind == ">":
                talk.say(line.text)
            elif kind == "$":
                assert talk is None, "a block is one conversation"
                command, words = line.text, shlex.split(line.text)
                while "=" in words[0]:
                    monkeypatch.setenv(*words.pop(0).split("=", 1))
            elif kind == "!":
                refused(words, line, monkeypatch, capsys)
            elif kind == "+":
                name, _, text = line.text.partition(" ")
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(text.replace(r"\n", "\n").replace(r"\x1b", "\x1b"), "utf-8")
    if talk is not None:
        talk.close()
        more = [line for line in talk.heard if not ON_THE_WAY.match(line)]
        assert block[-1].text == "…" or not more, f"{block[-1].place}: more came: {more}"
