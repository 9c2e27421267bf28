"""Lines for az-engine that nobody should send, and what must be answered though.

`mixed` makes lines of a dialect: correct ones, correct ones with mistakes, and noise. A `Dialect` knows the correct
lines of a protocol, counts which answers are due, and checks those that come. `fuzz` sends lines to a process and
checks that every answer comes, that a known question has its known answer after each chunk, and that the memory does
not grow. A new protocol is one more class, in `DIALECTS` or in `test_engine_fuzz.py`.
"""

import json
import os
import random
import re
import select
import subprocess
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from azpy._core import LONGEST_NAME, Message
from azpy.serving.lines import LONGEST_LINE
from talks import COMMAND, PATIENCE

CHUNK = 500  # lines between two questions
MOST_GROWTH = 100  # MB between the middle and the end
NUMBERS = b"0 1 -1 2 7 -0 00 1.5 1e400 -1e400 NaN Infinity nan 1e-9 2147483648 4294967295 4294967296".split()
NUMBERS += b"9223372036854775807 -9223372036854775809 999999999999999999 1000000000000000000000".split()
NUMBERS += [b"9" * 400, b"9" * 5000, b"0x10", b"+1", b"1_000", "\u0663".encode(), "\u00b2".encode(), b"true", b"null"]
NASTY = [b"\x00", b"\r", b"\t", b"\x07", b"\x1b[2J", b"\x7f", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
NASTY += [b"\xef\xbb\xbf", b"\\", b"\\ud800", b"\\u0000", b"%s", b"{}", *(bytes([one]) for one in b"\"'{[}],:#")]
NASTY += [text.encode() for text in ("\u2028", "\u00a0", "\u200b", "\u0301", "\u202e", "\U0001f600", "\u0130", "\x85")]
LONGEST = [LONGEST_LINE - 2, LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1, 2 * LONGEST_LINE, 3 * LONGEST_LINE + 7]


def plain(raw: bytes) -> str:
    """The text that a protocol of words sees of a line."""
    text = (raw + b"\n")[:LONGEST_LINE].decode("utf-8", errors="replace")
    return "".join(one for one in text if one.isprintable() or one == "\t").strip()


class Dialect(Protocol):
    """A protocol: its correct lines, and what is due and has come.

    Attributes:
        arguments: of az-engine.
        words: of its correct lines.
        questions: how often `question` was asked.
        correct: a correct line.
        question: lines whose answers are known.
        takes: notes what is due for a line. False: the line ends the conversation or is no mistake, and is not sent.
        hears: checks a line that came.
        is_settled: whether all that is due has come.
        check: checks, once settled, that nothing came twice.
        check_question: checks that the last question has its answer.
    """

    arguments: Sequence[str]
    words: Sequence[bytes]
    questions: int = 0

    def correct(self, rng: random.Random) -> bytes: ...
    def question(self) -> list[bytes]: ...
    def takes(self, line: bytes) -> bool: ...
    def hears(self, line: str) -> None: ...
    def is_settled(self) -> bool: ...
    def check(self) -> None: ...
    def check_question(self) -> None: ...


class Words(Dialect):
    """UCI and UGI: one `bestmove` a `go`, one `readyok` an `isready`."""

    def __init__(self, word: str, game: str, moves: str, setups: Sequence[str]) -> None:
        self.word = word
        self.arguments = ["uniform:1", "--game", game, "--protocol", word]
        self.moves, self.setups = moves.split(), setups
        self.commands = {word, "isready", "setoption", f"{word}newgame", "position", "go", "stop", "ponderhit"}
        self.commands |= {"debug", "register", "quit"} | ({"query"} if word == "ugi" else set())
        self.due, self.came = Counter[str](), Counter[str]()
        self.known = self.last = ""
        said = """name value MultiPV Temperature Simulations Hash Threads Move Overhead infinite ponder searchmoves
            nodes movetime wtime btime winc binc movestogo depth mate moves startpos result gameover p1turn"""
        said = " ".join([said, *sorted(self.commands - {"quit"}), *self.moves, *setups])
        self.words = said.encode().split()

    def correct(self, rng: random.Random) -> bytes:
        kind, pick = rng.random(), rng.choice
        if kind < 0.05:
            return pick(
                [
                    "go",
                    f"go nodes {rng.randrange(1, 9)}",
                    f"go movetime {rng.randrange(3)}",
                    "go infinite",
                    f"go ponder wtime {rng.randrange(10**6)} btime 99 winc 3 binc 1",
                    f"go ponder movetime {pick([0, 1, 50, 10**9, 10**17])}",
                    f"go searchmoves {pick(self.moves)} {pick(self.moves)}",
                    "go depth 3 mate 2 movestogo 9",
                ]
            ).encode()
        if kind < 0.3:
            line = f"position {pick(self.setups)}"
            return (line + " moves " + " ".join(self.moves[: rng.randrange(len(self.moves))])).encode()
        if kind < 0.36:
            name, values = pick(
                [
                    ("MultiPV", ["1", "2", "500"]),
                    ("Temperature", ["0", "100", "1000"]),
                    ("Simulations", ["0", "1", "3"]),
                    ("UCI_ShowWDL", ["true", "false"]),
                    ("Move Overhead", ["0", "60000"]),
                    ("SyzygyPath", ["", "/dev/zero"]),
                    ("Hash", ["1", "2", "1048576"]) if rng.random() < 0.02 else ("Ponder", ["true"]),
                ]
            )
            return f"setoption name {name} value {pick(values)}".encode()
        others = ["isready", "stop", "ponderhit", f"{self.word}newgame", self.word, "debug on", "register later"]
        return str(pick([*others, "query p1turn"])).encode()

    def question(self) -> list[bytes]:
        options = {"Simulations": 0, "Temperature": 0, "MultiPV": 1, "Threads": 1}
        lines = ["stop", *(f"setoption name {name} value {value}" for name, value in options.items())]
        return [line.encode() for line in [*lines, f"{self.word}newgame", "position startpos", "go nodes 4", "isready"]]

    def takes(self, line: bytes) -> bool:
        command = next((word for word in plain(line).split() if word in self.commands), "")
        self.due[command] += 1
        return command != "quit"

    def hears(self, line: str) -> None:
        first = line.partition(" ")[0]
        assert first in {"bestmove", "readyok", "info", "id", "option", f"{self.word}ok", "response"}, line
        self.came[first] += 1
        if first == "bestmove":
            self.last = line

    def is_settled(self) -> bool:
        return self.came["bestmove"] >= self.due["go"] and self.came["readyok"] >= self.due["isready"]

    def check(self) -> None:
        for answer, command in (("bestmove", "go"), ("readyok", "isready"), (f"{self.word}ok", self.word)):
            assert self.came[answer] == self.due[command], (answer, self.came, self.due)

    def check_question(self) -> None:
        self.known = self.known or self.last
        assert self.last == self.known != "bestmove (none)"


class Gtp(Dialect):
    """GTP: each command has one answer, with its number, in its order."""

    arguments = ("uniform:1", "--game", "go(size=5)", "--protocol", "gtp")

    def __init__(self) -> None:
        self.due = deque[str]()
        self.block: list[str] = []
        self.answers = dict[str, str]()
        self.known = self.last = ""
        said = """protocol_version name version known_command list_commands boardsize 5 19 clear_board komi 7.5 play b w
            genmove reg_genmove undo time_settings time_left final_score showboard fixed_handicap set_free_handicap
            kgs-time_settings kata-time_settings none absolute byoyomi canadian fischer fischer-capped 0 -1
            kata-list_time_settings final_status_list alive dead seki kgs-genmove_cleanup kata-get-rules
            kata-set-rules chinese-kgs {"ko":"POSITIONAL"} kata-set-rule whiteHandicapBonus N place_free_handicap
            loadsgf printsgf A1 C3 E5 pass lz-analyze kata-analyze lz-genmove_analyze interval
            allow avoid minmoves kata-genmove_analyze B2,C3 /dev/zero /dev/stdin /proc/self/mem /dev/null / . .. #"""
        self.words = said.encode().split()

    def correct(self, rng: random.Random) -> bytes:
        pick, color = rng.choice, rng.choice("bw")
        vertex = f"{pick('ABCDE')}{rng.randrange(1, 6)}" if rng.random() < 0.95 else "pass"
        kind = rng.random()
        if kind < 0.45:
            line = f"play {color} {vertex}"
        elif kind < 0.5:
            analysis = pick(["lz-analyze", "kata-analyze", "analyze"])
            line = f"{pick(['', '7 '])}{analysis} {color} {pick(['5', 'interval 1', f'allow {color} {vertex} 1', ''])}"
        elif kind < 0.55:
            line = f"{pick(['genmove', 'reg_genmove', 'lz-genmove_analyze', 'kata-genmove_analyze'])} {color}"
        elif kind < 0.65:
            line = pick(["clear_board", "komi 6.5", "komi -3", "boardsize 5", "boardsize 9"])
        elif kind < 0.7:
            line = pick(["time_settings 0 1 0", "time_settings 0 0.002 1", f"time_left {color} 0.001 0"])
        elif kind < 0.75:
            systems = ["none", "byoyomi 0 0.001 3", "canadian 0 0.01 5", "fischer 0.01 0.001"]
            rules = ["kata-get-rules", "kata-set-rules chinese-kgs", "kata-set-rule whiteHandicapBonus 0"]
            line = pick([f"kgs-genmove_cleanup {color}", f"kata-time_settings {pick(systems)}", *rules])
        elif kind < 0.8:
            line = pick(["fixed_handicap 2", "place_free_handicap 3", f"set_free_handicap A1 {vertex}"])
        elif kind < 0.84:
            files = ["/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/kmsg", "pipe", "game.sgf", "."]
            line = f"loadsgf {pick(files)}"
        else:
            line = pick(
                ["undo", "showboard", "printsgf", "final_score", "name", "list_commands", "final_status_list alive"]
            )
        return (f"{rng.randrange(1000)} {line}" if rng.random() < 0.3 else line).encode()

    def question(self) -> list[bytes]:
        self.questions += 1
        lines = ["time_settings 0 1 0", "komi 7.5", "clear_board", "play b A1", f"{self.questions} showboard"]
        return [line.encode() for line in [*lines, "genmove w"]]

    def takes(self, line: bytes) -> bool:
        words = plain(line).partition("#")[0].split()
        number = words.pop(0) if words and re.fullmatch("[0-9]{1,9}", words[0]) else ""
        if not words:
            return True
        # A time that a search may take is no mistake.
        is_long = any(re.fullmatch(r"[0-9]+(\.[0-9]*)?", word) and float(word) > 0.01 for word in words[1:])
        is_long = is_long and words[0].endswith(("time_settings", "time_left")) and words[1:] != ["0", "1", "0"]
        if words[0] == "quit" or is_long:
            return False
        self.due.append(number)
        return True

    def hears(self, line: str) -> None:
        if line:
            self.block.append(line)
            return
        assert self.block, "an empty line that ends nothing"
        assert self.due, ("an answer to nothing", self.block)
        number = self.due.popleft()
        assert re.fullmatch(rf"[=?]{number}( .*)?", self.block[0]), (number, self.block)
        assert not any(line.startswith(("=", "?")) for line in self.block[1:]), self.block
        if number and self.block[0].startswith(f"={number}") and "A B C D E" in "".join(self.block):
            self.answers["showboard"] = "\n".join(self.block[1:])
        self.last = self.block[0]
        self.block = []

    def is_settled(self) -> bool:
        return not self.due

    def check(self) -> None:
        assert not self.block
        assert not self.due

    def check_question(self) -> None:
        assert re.fullmatch("= ([A-HJ][1-5]|pass)", self.last), self.last
        self.known = self.known or self.answers["showboard"]
        assert self.answers["showboard"] == self.known


class WallGame(Dialect):
    """The Wall Game's JSON lines: each request has one answer."""

    arguments = ("uniform:1", "--game", "wall_game", "--protocol", "wallgame")

    def __init__(self) -> None:
        self.due, self.came = 0, 0
        self.open, self.names = set[str](), [f"game {number}" for number in range(60)]
        self.answers = list[dict[str, Any]]()
        self.known = list[dict[str, Any]]()
        said = """{"type": "start_game_session", "evaluate_position", "apply_move", "end_game_session", "bgsId": "game",
            "botId": "bot", "config": {"variant": "classic", "boardWidth": 3, "boardHeight": 20, "initialState": {}
            "pawns": {"p1": {"cat": [0, 0], "mouse": [2, 0]}}, "walls": [{"cell": [1, 1], "orientation": "vertical"}]
            "expectedPly": 0} 1, "move": "---" "Ca1.>b2" "turn": {"playerId": 2, "actionsTaken": []}"""
        self.words = said.encode().split()

    def config(self, rng: random.Random) -> dict[str, Any]:
        variant = rng.choice(["standard", "classic", "freestyle"])
        width, height = rng.randrange(3, 6), rng.randrange(3, 6)
        goal = "home" if variant == "classic" else "mouse"
        first, second = {"cat": [0, 0], goal: [height - 1, 0]}, {"cat": [0, width - 1], goal: [height - 1, width - 1]}
        setup: dict[str, Any] = {"pawns": {"p1": first, "p2": second}, "walls": []}
        if rng.random() < 0.3:
            setup["walls"] = [{"cell": [1, 1], "orientation": rng.choice(["vertical", "horizontal"])}]
        if rng.random() < 0.3:
            setup["turn"] = {"playerId": rng.randrange(1, 3), "actionsTaken": []}
        return {"variant": variant, "boardWidth": width, "boardHeight": height, "initialState": setup}

    def correct(self, rng: random.Random) -> bytes:
        kind, request = rng.random(), dict[str, Any](bgsId=rng.choice(self.names))
        if kind < 0.25:
            request |= {"type": "start_game_session", "botId": "bot", "config": self.config(rng)}
        elif kind < 0.45:
            request |= {"type": "evaluate_position", "expectedPly": int(3 * rng.random() ** 2)}
        elif kind < 0.8:
            move = rng.choice(["---", f"C{rng.choice('abc')}{rng.randrange(1, 4)}", ">a2", "^b1", ">a1.^b2"])
            request |= {"type": "apply_move", "expectedPly": int(3 * rng.random() ** 2), "move": move}
        else:
            request["type"] = "end_game_session"
        return json.dumps(request).encode()

    def question(self) -> list[bytes]:
        self.questions += 1
        name = f"question {self.questions}"
        requests: list[dict[str, Any]] = [
            {"type": "start_game_session", "botId": "bot", "config": self.config(random.Random(1))},
            {"type": "evaluate_position", "expectedPly": 0},
            {"type": "apply_move", "expectedPly": 1, "move": "---"},
            {"type": "end_game_session"},
        ]
        # Games that mistakes have opened would fill the table.
        others = [{"type": "end_game_session", "bgsId": other} for other in sorted(self.open - set(self.names))]
        return [json.dumps(each).encode() for each in [*others, *({**each, "bgsId": name} for each in requests)]]

    def takes(self, line: bytes) -> bool:
        self.due += bool(line.strip(b" \t\r\n")) or len(line) > LONGEST_LINE
        return True

    def hears(self, line: str) -> None:
        answer = json.loads(line)
        kinds = {"game_session_started", "evaluate_response", "move_applied", "game_session_ended", "error"}
        assert answer["type"] in kinds, line
        assert isinstance(answer["bgsId"], str)
        if answer["type"] != "error":
            assert bool(answer["error"]) != answer["success"], line
        if answer["type"] in {"game_session_started", "game_session_ended"} and answer["success"]:
            (self.open.add if answer["type"] == "game_session_started" else self.open.discard)(answer["bgsId"])
        if answer["bgsId"] == f"question {self.questions}":
            self.answers.append({**answer, "bgsId": ""})
        self.came += 1

    def is_settled(self) -> bool:
        return self.came >= self.due

    def check(self) -> None:
        assert self.came == self.due

    def check_question(self) -> None:
        answers, self.answers = self.answers, []
        assert [answer["success"] for answer in answers] == [True, True, False, True], answers
        self.known = self.known or answers
        assert answers == self.known


class Json(Dialect):
    """Analysis queries: each turn has one last answer, or the whole query has one error; an action has one answer."""

    def __init__(self, game: str, moves: str, position: str) -> None:
        self.arguments = ["uniform:1", "--game", game, "--protocol", "json", "--model", "other=uniform:1?solver=true"]
        self.moves, self.position, self.is_go = moves.split(), position, game.startswith("go")
        self.number = self.due_errors = self.came_errors = 0
        self.due = dict[str, set[int | None]]()  # turns that are due by id; None stands for an action
        self.whole = set[str]()  # ids of which nothing has come
        self.known: Any = None
        self.last: Any = None
        said = """{"id": "7", "moves": ["B", "W"], [[]], "position": "analyzeTurns": [0, "seconds": 0.001,
            "simulations": "model": "other" "game": "a", "priority": -1 "reportDuringSearchEvery": 0.05, "allowMoves":
            "avoidMoves": {"player": "untilDepth": 1} "analysisPVLen": "includePolicy": true false null} "action":
            "terminate", "terminateId": "terminate_all" "turnNumbers": "show" "komi": "boardXSize": "boardYSize":
            "initialStones": "initialPlayer": "overrideSettings": {"maxTime": "reportAnalysisWinratesAs": "WHITE"}"""
        self.words = [*said.encode().split(), *moves.encode().split()]

    def correct(self, rng: random.Random) -> bytes:
        pick = rng.choice
        self.number += 1
        query: dict[str, Any] = {"id": str(self.number)}
        if rng.random() < 0.15:
            actions = "query_version query_models show terminate terminate terminate_all read write"
            query["action"] = pick(actions.split())
            query["text"] = " ".join(self.moves)
            query["nodes"] = [[-1, pick(self.moves)], [pick([-1, 0]), pick(self.moves)]]
            if query["action"] == "terminate":
                query["terminateId"] = str(self.number - rng.randrange(5))
            if rng.random() < 0.2:
                query["turnNumbers"] = [0, 1]
        count = rng.randrange(len(self.moves) + 1)
        moves: list[Any] = self.moves[:count]
        if self.is_go and rng.random() < 0.5:
            moves = [[pick("BW") if rng.random() < 0.1 else "BW"[turn % 2], name] for turn, name in enumerate(moves)]
        options: dict[str, Any] = {
            "moves": moves if rng.random() < 0.8 else " ".join(self.moves[:count]),
            "analyzeTurns": [rng.randrange(count + 1) for _ in range(rng.randrange(1, 4))],
            "simulations": rng.randrange(1, 9),
            "seconds": 0.001,
            "game": pick("abcdef"),
            "model": "other",
            "position": self.position,
            "priority": pick(["play", "analysis", "ponder", 0, -3]),
            "reportDuringSearchEvery": 0.05,
            "allowMoves": [pick(self.moves), pick(self.moves)],
            "avoidMoves": [pick(self.moves)],
            "analysisPVLen": rng.randrange(1, 9),
            "includePolicy": True,
        }
        if self.is_go:
            who = pick("BW")
            options |= {
                "komi": pick([7.5, -3, 0.5]),
                "boardXSize": pick([5, 5, 5, 7]),
                "boardYSize": 5,
                "initialStones": [["B", "A1"], ["W", "B2"]],
                "initialPlayer": who,
                "rules": pick(["chinese", "japanese", {"scoring": "AREA"}]),
                "overrideSettings": {"maxTime": 0.001, "reportAnalysisWinratesAs": pick(["BLACK", "SIDETOMOVE"])},
                "includeOwnership": True,
                "avoidMoves": [{"player": who, "moves": [pick(self.moves)], "untilDepth": 1}],
            }
        for name in options:
            if rng.random() < (0.9 if name == "moves" else 0.25):
                query[name] = options[name]
        return json.dumps(query).encode()

    def question(self) -> list[bytes]:
        self.questions += 1
        asked = {"id": f"question {self.questions}", "moves": self.moves[:2], "simulations": 7, "includePolicy": True}
        return [json.dumps(each).encode() for each in ({"id": "end", "action": "terminate_all"}, asked)]

    def takes(self, line: bytes) -> bool:
        if len(line) > LONGEST_LINE and line[LONGEST_LINE:] != b"\r":
            self.due_errors += 1
            return True
        if not line.strip(b" \t\r\n"):
            return True
        try:
            fields = Message(line.decode().strip(" \t\r\n")).fields()
        except ValueError:
            self.due_errors += 1
            return True
        identity = fields.get("id")
        if not isinstance(identity, str) or len(identity) > LONGEST_NAME:
            self.due_errors += 1
            return True
        # A tree that may be large, and is kept, is no mistake; nor is an id that is used twice.
        if identity in self.due or ("game" in fields and re.search(rb"[0-9.]{4}|[eE]\d", line.replace(b"0.001", b""))):
            return False
        moves, turns = fields.get("moves", []), fields.get("analyzeTurns")
        if turns is None:
            turns = [len(moves.split() if isinstance(moves, str) else moves if isinstance(moves, list) else [])]
        turns = [turn for turn in turns if type(turn) is int] if isinstance(turns, list) else []
        self.due[identity] = {None} if "action" in fields else set(turns)
        self.whole.add(identity)
        return True

    def hears(self, line: str) -> None:
        answer = json.loads(line, parse_constant=_never)
        if "id" not in answer:
            assert set(answer) == {"error"}, line
            self.came_errors += 1
            return
        identity, turn, is_first = answer["id"], answer.get("turnNumber"), answer["id"] in self.whole
        turns = self.due[identity]
        if not ("error" in answer or None in turns):
            self._look_at(answer)
        if answer.get("isDuringSearch"):
            assert turn in turns, line
            return
        self.whole.discard(identity)
        if turn is None or None in turns:
            assert is_first, line
            turns.clear()
        else:
            turns.remove(turn)
        if not turns:
            del self.due[identity]
        if identity == f"question {self.questions}":
            self.last = {name: answer.get(name) for name in ("error", "moveInfos", "rootInfo", "policy")}

    def _look_at(self, answer: dict[str, Any]) -> None:
        found, root = answer["moveInfos"], answer["rootInfo"]
        if "outcome" in root:
            assert not found
            return
        assert not found or answer["move"] in [one["move"] for one in found], answer
        assert [one["order"] for one in found] == [*range(len(found))], answer
        assert sum(one["visits"] for one in found) == root["visits"], answer
        assert all(one["pv"][0] == one["move"] for one in found), answer
        lowest, bound = (0, "winrate") if self.is_go else (-1, "value")
        assert all(lowest <= one.get("lcb", lowest) <= 1 and lowest <= one[bound] <= 1 for one in found), answer

    def is_settled(self) -> bool:
        return not self.due and self.came_errors >= self.due_errors

    def check(self) -> None:
        assert not self.due
        assert self.came_errors == self.due_errors

    def check_question(self) -> None:
        self.known = self.known or self.last
        assert self.last == self.known
        assert self.last["rootInfo"]["visits"] == 7


def _never(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


UCI_MOVES = "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1 f8e7 f1e1 b7b5"
UCI_SETUPS = ["startpos", "fen 8/P1k5/8/8/8/8/5K2/8 w - - 0 1", "fen 7k/5Q2/6K1/8/8/8/8/8 w - - 99 80"]
DIALECTS: dict[str, Callable[[], Dialect]] = {
    "uci": lambda: Words("uci", "chess", UCI_MOVES, UCI_SETUPS),
    "ugi": lambda: Words("ugi", "hex(size=4)", "a1 b2 c3 d4 a2 b3 c4", ["startpos", "position x"]),
    "gtp": Gtp,
    "wallgame": WallGame,
    "json": lambda: Json("go(size=5)", "C3 B2 D4 pass pass C2 A1 E5 D1", "(;GM[1]FF[4]SZ[5]KM[7.5];B[aa];W[];B[])"),
    "json chess": lambda: Json("chess", UCI_MOVES, "7k/5Q2/6K1/8/8/8/8/8 w - - 99 80"),
}


def mixed(dialect: Dialect, rng: random.Random, count: int) -> Iterator[bytes]:
    """So many lines, without the byte that ends one: correct ones, ones with mistakes, and noise."""
    for _ in range(count):
        kind = rng.random()
        if kind < 0.5:
            yield dialect.correct(rng)
        elif kind < 0.88:
            line = dialect.correct(rng)
            for _ in range(1 + int(3 * rng.random() ** 3)):
                line = _mistaken(line, dialect, rng)
            yield line.replace(b"\n", b" ")
        elif kind < 0.95:
            yield b" ".join(rng.choices([*dialect.words, rng.choice(NUMBERS), rng.choice(NASTY)], k=rng.randrange(9)))
        elif kind < 0.98:
            yield rng.randbytes(rng.randrange(60)).replace(b"\n", b"")
        elif kind < 0.9985:
            yield rng.choice([b"", b" ", b"\t\r", b"[]", b"null", b"[" * 40, b'{"a":' * 40, *NASTY])
        else:
            yield _long(dialect, rng)


def _mistaken(line: bytes, dialect: Dialect, rng: random.Random) -> bytes:
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
        return line + rng.choice([b" ", b"", b","]) + dialect.correct(rng)
    words = line.split(b" ")
    place, other = rng.randrange(len(words)), rng.randrange(len(words))
    if kind == 4:
        words[place], words[other] = words[other], words[place]
    elif kind == 5:
        words.insert(other, words[place])
    elif kind == 6:
        del words[place]
    elif kind == 7:
        words[place] = rng.choice(dialect.words)
    else:
        numbers = list(re.finditer(rb"-?[0-9]+", line))
        if not numbers:
            return line + b" " + rng.choice(NUMBERS)
        one = rng.choice(numbers)
        return line[: one.start()] + rng.choice(NUMBERS) + line[one.end() :]
    return b" ".join(words)


def _long(dialect: Dialect, rng: random.Random) -> bytes:
    """A line of about 64 KiB, or of a multiple."""
    size, line = rng.choice(LONGEST), dialect.correct(rng)
    filler = rng.choice([b"x", b" ", b"[", b'{"a":', b"a ", b"\xff", b"\x00", b'"\\u00e9", ', line + b" ", line])
    begin = rng.choice([b"", line, line + b" "])
    return (begin + filler * (size // len(filler) + 1))[:size]


def memory_mb(process: int) -> float:
    """The memory that a process has, in MB."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1024 if found is not None else 0.0


def _write(file: int, data: bytes) -> None:
    os.set_blocking(file, False)
    room = select.poll()
    room.register(file, select.POLLOUT)
    while data:
        assert room.poll(1000 * PATIENCE), "lines are not read any more"
        data = data[os.write(file, data[: 1 << 16]) :]


def fuzz(dialect: Dialect, lines: int, seed: int, folder: Path) -> None:
    """Sends so many lines to az-engine, and checks what comes."""
    rng = random.Random(seed)
    os.mkfifo(folder / "pipe")
    (folder / "game.sgf").write_text("(;GM[1]FF[4]SZ[5]KM[7.5]AB[aa]PL[W])")
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [*COMMAND, *dialect.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=folder
        ) as process,
    ):
        assert process.stdin is not None
        came, problems, is_over = threading.Condition(), list[BaseException](), threading.Event()

        def listen() -> None:
            assert process.stdout is not None
            rest = b""
            try:
                while block := os.read(process.stdout.fileno(), 1 << 16):
                    *said, rest = (rest + block).split(b"\n")
                    with came:
                        for line in said:
                            dialect.hears(line.decode())
                        came.notify_all()
                assert not rest, rest
            except BaseException as error:
                problems.append(error)
                process.kill()
            finally:
                is_over.set()
                with came:
                    came.notify_all()

        listener = threading.Thread(target=listen)
        listener.start()
        sent, amounts = list[bytes](), list[float]()
        try:
            chunks = -(-lines // CHUNK)
            for chunk in range(chunks):
                made = [*mixed(dialect, rng, min(CHUNK, lines - chunk * CHUNK))]
                with came:
                    sent = [line for line in [*made, *dialect.question()] if dialect.takes(line)]
                _write(process.stdin.fileno(), b"".join(line + b"\n" for line in sent))
                with came:
                    ended = came.wait_for(lambda: is_over.is_set() or dialect.is_settled(), PATIENCE)
                    assert ended, "an answer did not come"
                    assert not is_over.is_set(), "the process has ended"
                    dialect.check()
                    dialect.check_question()
                if chunk in (chunks // 2, chunks - 1):
                    amounts.append(memory_mb(process.pid))
            process.stdin.close()
            assert process.wait(PATIENCE) == 0
            listener.join(PATIENCE)
            assert not problems
            dialect.check()
        except (AssertionError, OSError) as error:
            (folder / "lines").write_bytes(b"".join(line + b"\n" for line in sent))
            process.kill()
            process.wait()
            errors.seek(0)
            said = errors.read()[-3000:].decode(errors="replace")
            raise AssertionError(f"{dialect!r}, seed {seed}: {error} {problems}; {folder}/lines; {said}") from error
        errors.seek(0)
        said = errors.read().decode(errors="replace")
        assert not said, said
        assert amounts[-1] - amounts[0] < MOST_GROWTH, amounts
