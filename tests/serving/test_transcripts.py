"""Conversations with the protocols, the server and the terminal go as written (`tests/support/transcripts.py`)."""

import os
import re
import shlex
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from io import StringIO
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from azpy.cli import engine, match, play, serve
from azpy.serving.models import PlayerEngine, open_model
from azpy.serving.protocols import PROTOCOLS
from azpy.web import server
from talks import PATIENCE, Talk
from transcripts import HEARD, ON_THE_WAY, Line, blocks, is_met, meets

COMMANDS: dict[str, Any] = {"az-engine": engine, "az-serve": serve, "az-play": play, "az-match": match}


class Typed:
    """A terminal with az-play, and a person who types."""

    def __init__(self, words: list[str], typed: list[str], patched: pytest.MonkeyPatch) -> None:
        out, self._parts, lines = StringIO(), list[str](), iter(typed)

        def readline() -> str:
            self._parts.append(out.getvalue())
            out.truncate(out.seek(0))
            return next((f"{line}\n" for line in lines if line != "^D"), "")

        with patched.context() as inner:
            inner.setattr("sys.stdin", SimpleNamespace(readline=readline))
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


class Browser:
    """A client of az-serve, which keeps cookies."""

    def __init__(self, address: str) -> None:
        self.heard, self._sockets, self._address, self._stack = list[str](), list[Any](), address, ExitStack()
        self._client = self._stack.enter_context(httpx.Client(base_url=f"http://{address}", timeout=PATIENCE))

    def say(self, line: str) -> None:
        if line.startswith("TCP "):
            self.heard.append(self._raw(line[4:].replace("{host}", self._address)))
            return
        found = re.fullmatch(r'([A-Z]+) (/\S*)((?: "[^"]*")*)(?: \[(.*?)\])?(?: (.*))?', line)
        if found is None:
            self._sockets[-1].send(line)
            return
        method, path, quoted, wanted, body = found.groups()
        names = wanted.split(", ") if wanted else []
        headers = dict(each.split(": ", 1) for each in re.findall('"(.*?)"', quoted))
        if method == "WS":
            try:
                opened = connect(f"ws://{self._address}{path}", additional_headers=headers)
                self._sockets.append(self._stack.enter_context(opened))
                assert opened.response is not None
                self.heard += [f"{name}: {opened.response.headers.get(name, '-')}" for name in names] + ["101"]
            except InvalidStatus as error:
                self.heard.append(str(error.response.status_code))
            return
        json_type = {} if body is None else {"content-type": "application/json"}
        content = body and body.encode().replace(rb"\xff", b"\xff")
        answer = self._client.request(method, path, content=content, headers={**json_type, **headers})
        self.heard += [f"{name}: {answer.headers.get(name, '-')}" for name in names]
        first, *rest = answer.text.splitlines() or [""]
        self.heard += [f"{answer.status_code} {first}", *rest]

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
        for name, one in models.items() if faults else ():
            models[name] = replace(one, evaluator=Failing(one.start.num_actions, faults))
        super().__init__(lambda talk: PROTOCOLS[given.protocol].open(models, talk).run())

    def say(self, *lines: str) -> None:
        if lines == ("^D",):
            self._write.close()
        else:
            super().say(*lines)


class Servers(dict[str, str]):
    """Addresses of az-serve on the loopback by its command: conversations share them."""

    def __init__(self) -> None:
        self.running = list[tuple[server.Server, threading.Thread]]()

    def start(self, key: str, words: list[str], patched: pytest.MonkeyPatch) -> None:
        began, found = threading.Event(), list[server.Server]()

        class Started(server.Server):
            def run(own, sockets: Any = None) -> None:  # noqa: N805
                self[key] = "127.0.0.1:{1}".format(*sockets[0].getsockname())
                found.append(own)
                began.set()
                super().run(sockets)

        def opened(*player: Any, **options: Any) -> PlayerEngine:
            model = open_model(*player, **options)
            if faults := int(os.environ.get("FAULTS", 0)):
                model.engine.load("main", Failing(model.player.start.num_actions, faults))
            return model

        with patched.context() as inner:
            inner.setattr(server, "Server", Started)
            inner.setattr(serve, "open_model", opened)
            inner.setattr(server, "log_to_stderr", lambda: None)
            inner.setattr(serve, "HANGUP", None)
            inner.setattr(serve, "when_told_to_end", lambda _: {})
            thread = threading.Thread(target=serve._serve, args=(["--port", "0", *words],), daemon=True)
            thread.start()
            assert began.wait(PATIENCE)
        self.running.append((found[0], thread))


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    found = Servers()
    yield found
    for one, _ in found.running:
        one.should_exit = True
    for _, thread in found.running:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def start(words: list[str], typed: list[str], servers: Servers, patched: pytest.MonkeyPatch) -> Any:
    key = shlex.join(words)
    while "=" in words[0]:
        patched.setenv(*words.pop(0).split("=", 1))
    command, *words = words
    if command == "az-play":
        return Typed(words, typed, patched)
    if command == "az-engine":
        return Program(words, int(os.environ.get("FAULTS", 0)))
    if key not in servers:
        servers.start(key, words, patched)
    return Browser(servers[key])


def refused(words: list[str], line: Line, patched: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command that does not start; a protocol that refuses its players does so beside its conversation."""
    patched.setattr(engine, "Conversation", Mock())
    patched.setattr(engine, "_listen", Mock())
    capsys.readouterr()
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
    block: list[Line],
    servers: Servers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("AZPY_TOKEN", "FAULTS"):
        monkeypatch.delenv(name, raising=False)
    talk: Any = None
    words, typed = list[str](), [line.text for line in block if line.kind == ">"]
    for are_heard, lines in groupby(block, lambda line: line.kind in HEARD):
        if are_heard:
            talk = talk or start(words, typed, servers, monkeypatch)
            listen(talk, list(lines))
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
