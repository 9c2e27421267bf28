r"""Golden transcripts: conversations with the protocols, the server and the terminal, as plain text.

`tests/serving/transcripts/*.txt` has blocks with blank lines between them. Each block is one test, a conversation:

    # a comment      what the user cares about; the first one names the test
    $ az-engine ...  the command, run in this process; a block without one takes that of the block before. Variables may
                     stand before it: `FAULTS=2 az-engine ...` has a network that fails twice.
    + game.sgf TEXT  write a file into the current folder; `\n` begins a line
    = NAME TEXT      `{NAME}` in the lines below stands for this text, in all blocks of the file
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
headers of the answer to hear. `> WS /ws` opens a WebSocket, which gets the lines that are not requests. `> TCP TEXT`
sends the bytes of a text with Python's escapes, where `{host}` is the address, and hears all that comes as one line.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FOLDER = Path(__file__).parents[1] / "serving/transcripts"
PATTERNS = {"…": ".*", "<n>": r"-?\d[\d.e-]*", "<move>": "(?:[a-h][1-8]){2}[qrbn]?"}
HEARD = ("<", "~")  # kinds of lines that are expected
ON_THE_WAY = re.compile(r'info depth |info move |info string values |.*"isDuringSearch":true|$')


class Line(NamedTuple):
    """A line of a transcript: its kind is its first character."""

    place: str
    kind: str
    text: str


def blocks(folder: Path = FOLDER) -> Iterator[tuple[str, list[Line]]]:
    """The conversations of a folder by name, each with its command."""
    for file in sorted(folder.glob("*.txt")):
        names, command, block = dict[str, str](), list[Line](), list[Line]()
        for number, text in enumerate([*file.read_text("utf-8").splitlines(), ""], 1):
            place = f"{file.name}:{number}"
            for name, value in names.items():
                text = text.replace(f"{{{name}}}", value)
            if text.startswith("= "):
                name, _, value = text[2:].partition(" ")
                names[name] = value
            elif sent := re.fullmatch(r"(> .*?)(?:  +([<~] .*))?", text):
                for each in filter(None, sent.groups()):
                    block += [Line(place, each[0], part) for part in each[2:].split(" | ")]
            elif text:
                block.append(Line(place, text[0], text[2:]))
            else:
                starts = [line for line in block if line.kind == "$"]
                if len(block) > len(starts):
                    title = next((line.text for line in block if line.kind == "#"), place)
                    yield f"{file.stem}: {title}", block if starts else [*command, *block]
                command, block = starts[-1:] or command, []


def sent(*commands: str) -> list[str]:
    """All lines that are sent to commands which have these words."""
    found = list[str]()
    for _, block in blocks():
        if any(line.kind == "$" and set(commands) <= {*line.text.split()} for line in block):
            found += [line.text for line in block if line.kind == ">"]
    return found


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


def _parsed(text: str) -> tuple[str, Any]:
    """The status of HTTP before an object of JSON, and the object; else the text itself."""
    found = re.fullmatch(r"(\d{3} |)(\{.*)", text)
    with suppress(ValueError):
        return (found[1], json.loads(found[2])) if found else ("", text.rstrip())
    return "", text.rstrip()


def is_met(line: Line, came: str) -> bool:
    """Whether a line that came is the one that is expected."""
    if line.kind == "~":
        return re.fullmatch(line.text, came) is not None
    (status, wanted), (came_status, found) = _parsed(line.text), _parsed(came)
    if isinstance(wanted, str):
        return meets(wanted, came.rstrip())
    return status == came_status and meets(wanted, found)
