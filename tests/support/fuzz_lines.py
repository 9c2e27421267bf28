"""Lines for az-engine that nobody should send, and what must be answered though.

`mixed` takes the lines of the transcripts of a protocol (`transcripts.py`): as they are, with mistakes, and noise. A
`Dialect` says which answers are due. `fuzz` sends lines to a process and checks that every answer comes, that a known
question has its known answer after each chunk, and that the memory does not grow.
"""

import json
import os
import random
import re
import select
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azpy._core import Message
from azpy.serving.lines import LONGEST_LINE
from talks import COMMAND, PATIENCE
from transcripts import sent

CHUNK = 500  # lines between two questions
MOST_GROWTH = 100  # MB between the middle and the end
NUMBERS = b"0 1 -1 2 7 -0 00 1.5 1e400 -1e400 NaN Infinity nan 1e-9 2147483648 4294967295 4294967296".split()
NUMBERS += b"9223372036854775807 -9223372036854775809 999999999999999999 1000000000000000000000".split()
NUMBERS += [b"9" * 400, b"9" * 5000, b"0x10", b"+1", b"1_000", "\u0663".encode(), "\u00b2".encode(), b"true", b"null"]
NASTY = [b"\x00", b"\r", b"\t", b"\x07", b"\x1b[2J", b"\x7f", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
NASTY += [b"\xef\xbb\xbf", b"\\", b"\\ud800", b"\\u0000", b"%s", b"{}", *(bytes([one]) for one in b"\"'{[}],:#")]
NASTY += [text.encode() for text in ("\u2028", "\u00a0", "\u200b", "\u0301", "\u202e", "\U0001f600", "\u0130", "\x85")]
LONGEST = [LONGEST_LINE - 2, LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1, 2 * LONGEST_LINE, 3 * LONGEST_LINE + 7]


@dataclass
class Dialect:
    """A protocol.

    Attributes:
        arguments: of az-engine.
        question: lines whose last answers are known.
        known: what is known of these answers, as the group of a regular expression.
        due: the answers that are due for a line, by any words; None for a line that is not sent, as it ends the
            conversation or may search for long.
        came: which of the answers a line is; "" for none.
        warning: a regular expression of what az-engine says once, of options that have no effect.
    """

    arguments: Sequence[str]
    question: Sequence[str]
    known: str
    due: Callable[[bytes], Sequence[str] | None]
    came: Callable[[str], str]
    warning: str = "(?!)"


def words_of(raw: bytes) -> list[str]:
    """The words that a protocol of words sees in a line."""
    text = (raw + b"\n")[:LONGEST_LINE].decode("utf-8", errors="replace")
    return "".join(one for one in text if one.isprintable() or one == "\t").split()


# UCI and UGI: one `bestmove` a `go`, one `readyok` an `isready`.
READY = {"go": "bestmove", "isready": "readyok", "uci": "uciok", "ugi": "ugiok"}
OTHERS = {"quit", "setoption", "position", "stop", "ponderhit", "debug", "register", "ucinewgame", "uginewgame"}


def due_in_uci(word: str) -> Callable[[bytes], Sequence[str] | None]:
    known = {"go", "isready", word} | OTHERS | ({"query"} if word == "ugi" else set())

    def due(line: bytes) -> Sequence[str] | None:
        command = next((each for each in words_of(line) if each in known), "")
        has_memory = re.search(rb"(?i)hash|cache|threads", line) and command == "setoption"
        return None if command == "quit" or has_memory else [READY[command]] if command in READY else []

    return due


def due_in_gtp(line: bytes) -> Sequence[str] | None:
    words = " ".join(words_of(line)).partition("#")[0].split()
    if words and re.fullmatch("[0-9]{1,9}", words[0]):
        words.pop(0)
    is_long = ["quit", "time_settings", "time_left", "maxVisits", "boardsize"]
    return None if any(each in word for word in words for each in is_long) else ["answer"] * bool(words)


class Gomocup:
    """One line a command, but INFO and the lines of a BOARD."""

    commands = frozenset(["START", "RECTSTART", "RESTART", "BEGIN", "TURN", "TAKEBACK", "INFO", "ABOUT"])
    in_board = False

    def due(self, line: bytes) -> Sequence[str] | None:
        word, *rest = [word.upper() for word in words_of(line)] or [""]
        if word == "END" or (word == "INFO" and re.search("TIME|MEMORY", " ".join(rest))):
            return None
        if self.in_board and word not in self.commands:
            self.in_board = word != "DONE"
            return [] if self.in_board else ["answer"]
        self.in_board = word == "BOARD"
        return [] if word in {"", "BOARD", "INFO"} else ["answer"]  # what is wrong with an INFO is a message


def due_in_json(line: bytes) -> Sequence[str] | None:
    """One answer a line; a query of several turns is not sent, nor one that could keep a large tree."""
    is_empty = not line.strip(b" \t\r\n") and len(line) <= LONGEST_LINE
    try:
        fields = Message(line.decode().strip(" \t\r\n")).fields()
    except ValueError:
        fields = {}
    is_large = "game" in fields and re.search(rb"[0-9.]{4}|[eE]\d", line)
    return None if "analyzeTurns" in fields or is_large else ["answer"] * (not is_empty)


def due_in_wall_game(line: bytes) -> Sequence[str] | None:
    """One answer a line; games that mistakes open would fill the table."""
    is_other = b"start_game_session" in line and not re.search(rb'"bgsId": ?"(a|question)"', line)
    is_empty = not line.strip(b" \t\r\n") and len(line) <= LONGEST_LINE
    return None if is_other else ["answer"] * (not is_empty)


def json_of(game: str, moves: str) -> Dialect:
    question = ['{"id":"end","action":"terminate_all"}']
    question.append(json.dumps({"id": "question", "moves": moves, "simulations": 7, "includePolicy": True}))
    known = r'\{"id":"question".*("moveInfos":.*)"rootInfo":.*"visits":7.*'
    arguments = ["uniform:1", "--game", game, "--protocol", "json", "--model", "other=uniform:1?solver=true"]
    return Dialect(
        arguments, question, known, due_in_json, lambda line: "" if '"isDuringSearch":true' in line else "answer"
    )


OPTIONS = ("Simulations 0", "Temperature 0", "MultiPV 1", "UCI_LimitStrength false", "UCI_Chess960 false")
GTP = "time_settings 0 1 0|kata-set-param level none|kata-set-param maxVisits 1|kata-set-param chosenMoveTemperature 0"
START = next(line for line in sent("wallgame") if '"start_game_session"' in line)
QUESTION = [{"type": "end_game_session"}, None, {"type": "evaluate_position", "expectedPly": 0}]


def uci_of(word: str, game: str) -> Dialect:
    question = ["stop", *(f"setoption name {each.replace(' ', ' value ')}" for each in OPTIONS)]
    question += [f"{word}newgame", "position startpos", "go nodes 4", "isready"]
    arguments = ["uniform:1", "--game", game, "--protocol", word]

    def came(line: str) -> str:
        first = line.split(" ")[0]
        return first if first in {f"{word}ok", "bestmove", "readyok"} else ""

    return Dialect(arguments, question, "(bestmove (?!.none).*)", due_in_uci(word), came)


DIALECTS: dict[str, Callable[[], Dialect]] = {
    "uci": lambda: uci_of("uci", "chess"),
    "ugi": lambda: uci_of("ugi", "hex(size=4)"),
    "gtp": lambda: Dialect(
        ["uniform:1", "--game", "go(size=7)", "--protocol", "gtp"],
        [*GTP.split("|"), "komi 7.5", "clear_board", "play b A1", "genmove w"],
        "(= ([A-HJ][1-7]|pass))",
        due_in_gtp,
        lambda line: "answer" if line[:1] in {"=", "?"} else "",
        "az-engine: (allow and avoid apply only|(ownership|pvVisits) has no effect in an analysis).*",
    ),
    "gomocup": lambda: Dialect(
        ["uniform:1", "--game", "gomoku(size=7)", "--protocol", "gomocup"],
        ["ABOUT", "INFO rule 0", "START 7", "BOARD", "0,0,1", "5,5,2", "DONE"],
        "([0-6],[0-6])",
        Gomocup().due,
        lambda line: "" if line.startswith("MESSAGE") else "answer",
    ),
    "wallgame": lambda: Dialect(
        ["uniform:1", "--game", "wall_game", "--protocol", "wallgame"],
        [json.dumps({**json.loads(START), **(each or {}), "bgsId": "question"}) for each in QUESTION],
        r'(\{"bestMove".*"bgsId":"question","success":true.*)',
        due_in_wall_game,
        lambda line: "answer",
    ),
    "json": lambda: json_of("go(size=7)", "C3 B2 D4 pass"),
    "json chess": lambda: json_of("chess", "e2e4 e7e5 g1f3"),
}


def mixed(lines: Sequence[bytes], rng: random.Random) -> Iterator[bytes]:
    """Lines without the byte that ends one: as they are, with mistakes, and noise."""
    while True:
        kind, line = rng.random(), rng.choice(lines)
        if kind < 0.5:
            yield line
        elif kind < 0.93:
            for _ in range(1 + int(3 * rng.random() ** 3)):
                line = mistaken(line, lines, rng)
            yield line.replace(b"\n", b" ")
        elif kind < 0.98:
            yield rng.randbytes(rng.randrange(60)).replace(b"\n", b"")
        elif kind < 0.9985:
            yield rng.choice([b"", b" ", b"\t\r", b"[]", b"null", b"[" * 40, b'{"a":' * 40, *NASTY])
        else:  # about 64 KiB, or a multiple
            filler = rng.choice([b"x", b" ", b"[", b'{"a":', b"a ", b"\xff", b"\x00", b'"\\u00e9", ', line + b" "])
            size = rng.choice(LONGEST)
            yield (rng.choice([b"", line, line + b" "]) + filler * (size // len(filler) + 1))[:size]


def mistaken(line: bytes, lines: Sequence[bytes], rng: random.Random) -> bytes:
    """The line with one mistake."""
    kind, at = rng.randrange(9), rng.randrange(len(line) + 1)
    if kind == 0 and line:
        at = min(at, len(line) - 1)
        return line[:at] + bytes([line[at] ^ (1 << rng.randrange(8))]) + line[at + 1 :]
    if kind == 1:
        return line[:at] + rng.choice(NASTY) + line[at:]
    if kind == 2:
        return line[:at]
    if kind == 3:
        return line + rng.choice([b" ", b"", b","]) + rng.choice(lines)
    numbers = list(re.finditer(rb"-?[0-9]+", line))
    if kind == 4 and numbers:
        one = rng.choice(numbers)
        return line[: one.start()] + rng.choice(NUMBERS) + line[one.end() :]
    words = re.split(rb"([ ,:])", line)
    place, other = rng.randrange(len(words)), rng.randrange(len(words))
    if kind == 5:
        words[place], words[other] = words[other], words[place]
    elif kind == 6:
        words.insert(other, words[place])
    elif kind == 7:
        del words[place]
    else:
        words[place] = rng.choice(rng.choice(lines).split() or [b""])
    return b"".join(words)


def memory_mb(process: int) -> float:
    """The memory that a process has, in MB."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _write(file: int, data: bytes) -> None:
    os.set_blocking(file, False)
    room = select.poll()
    room.register(file, select.POLLOUT)
    while data:
        assert room.poll(1000 * PATIENCE), "lines are not read any more"
        data = data[os.write(file, data[: 1 << 16]) :]


def fuzz(protocol: str, count: int, seed: int, folder: Path) -> None:
    """Sends so many lines to az-engine, and checks what comes."""
    dialect, lines = DIALECTS[protocol](), [line.encode() for line in sent(protocol.split()[0])]
    os.mkfifo(folder / "pipe")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen([*COMMAND, *dialect.arguments], stderr=errors, cwd=folder, **pipes) as process,
    ):
        assert process.stdin is not None
        arrived, is_over, left, answers = threading.Condition(), threading.Event(), Counter[str](), list[str]()

        def listen() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                with arrived:
                    text = line.decode().rstrip("\n")
                    left[dialect.came(text)] -= 1
                    if found := re.fullmatch(dialect.known, text):
                        answers.append(found[1])
                    arrived.notify_all()
            is_over.set()
            with arrived:
                arrived.notify_all()

        listener = threading.Thread(target=listen)
        listener.start()
        batch, amounts, known, made = list[bytes](), list[float](), list[str](), mixed(lines, random.Random(seed))
        try:
            for chunk in range(-(-count // CHUNK)):
                batch = [next(made) for _ in range(CHUNK)] + [line.encode() for line in dialect.question]
                due = [dialect.due(line) for line in batch]
                batch = [line for line, each in zip(batch, due, strict=True) if each is not None]
                with arrived:
                    left.update(word for each in due for word in each or ())
                    left[""] = 0
                _write(process.stdin.fileno(), b"".join(line + b"\n" for line in batch))

                def is_settled() -> bool:
                    return is_over.is_set() or not any(word and number > 0 for word, number in left.items())

                with arrived:
                    assert arrived.wait_for(is_settled, PATIENCE), f"an answer did not come: {left}"
                    assert not is_over.is_set(), "the process has ended"
                    assert all(number == 0 for word, number in left.items() if word), f"too many answers came: {left}"
                    assert answers, "the question has no answer"
                    known.append(answers[-1])
                    assert known[0] == known[-1]
                    answers.clear()
                if chunk % 100 == 0:
                    amounts.append(memory_mb(process.pid))
            amounts.append(memory_mb(process.pid))
            process.stdin.close()
            assert process.wait(PATIENCE) == 0
            listener.join(PATIENCE)
        except (AssertionError, OSError) as error:
            (folder / "lines").write_bytes(b"".join(line + b"\n" for line in batch))
            process.kill()
            process.wait()
            errors.seek(0)
            said = errors.read()[-3000:].decode(errors="replace")
            raise AssertionError(f"{protocol}, seed {seed}: {error}; {folder}/lines; {said}") from error
        errors.seek(0)
        said = errors.read().decode(errors="replace")
        warnings = said.splitlines()
        assert all(re.fullmatch(dialect.warning, line) for line in warnings), said
        assert len({*warnings}) == len(warnings), said
        assert amounts[-1] - amounts[len(amounts) // 2] < MOST_GROWTH, amounts
