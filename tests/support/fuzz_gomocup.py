"""Lines of Gomocup's protocol that nobody should send, and what must be answered though; see `fuzz_lines`."""

import random
import re

from fuzz_lines import Dialect, plain


class Gomocup(Dialect):
    """Gomocup's protocol: each command has one line, but INFO and the lines of a BOARD."""

    arguments = ("uniform:1", "--game", "gomoku(size=6)", "--protocol", "gomocup")
    commands = frozenset(["START", "RECTSTART", "RESTART", "BEGIN", "TURN", "TAKEBACK", "INFO", "ABOUT"])

    def __init__(self) -> None:
        self.due, self.came, self.in_board = 0, 0, False
        self.last = list[str]()
        said = """START RECTSTART RESTART BEGIN TURN TAKEBACK BOARD DONE INFO ABOUT SWAP2BOARD PLAY 6 6,6 15 0,0 5,5 1,2
            1,2,1 3,4,2 0,0,3 timeout_turn timeout_match time_left max_memory rule game_type evaluate folder 0 1 ,"""
        self.words = said.encode().split()

    def correct(self, rng: random.Random) -> bytes:
        pick, cell = rng.choice, f"{rng.randrange(6)},{rng.randrange(6)}"
        kind = rng.random()
        if kind < 0.4:
            line = f"TURN {cell}"
        elif kind < 0.6:
            line = pick(["START 6", "RECTSTART 6,6", "RESTART", "BEGIN", "ABOUT", "START 15"])
        elif kind < 0.7:
            line = f"TAKEBACK {cell}"
        elif kind < 0.9:
            line = pick(["BOARD", "DONE", "DONE", f"{cell},1", f"{cell},2", f"{cell},2"])
        else:
            limit = pick(["timeout_turn 0", "timeout_match 0", "time_left 9", "game_type 1", "rule 0", "rule 1"])
            line = f"INFO {limit if rng.random() < 0.99 else 'max_memory 83886080'}"
        return line.encode()

    def question(self) -> list[bytes]:
        lines = ["ABOUT", "INFO rule 0", "INFO timeout_match 0", "INFO timeout_turn 0", "START 6", "BOARD", "0,0,1"]
        return [line.encode() for line in [*lines, "5,5,2", "DONE"]]

    def takes(self, line: bytes) -> bool:
        text = plain(line)
        word, rest = [*text.split(None, 1), "", ""][:2]
        word = word.upper()
        # A time that a search may take is no mistake; nor is a line that ends the conversation.
        is_long = word == "INFO" and "time" in rest.lower() and re.search("[1-9][0-9]", rest)
        if text.upper() == "END" or is_long:
            return False
        if self.in_board and word not in self.commands:
            self.due += word == "DONE"
            self.in_board = word != "DONE"
            return True
        self.in_board = word == "BOARD"
        # What is wrong with an INFO is a message, and no answer.
        self.due += bool(text) and word not in {"BOARD", "INFO"}
        return True

    def hears(self, line: str) -> None:
        assert re.match("OK$|[0-5],[0-5]$|ERROR .|UNKNOWN .|MESSAGE .|name=.azpy", line), line
        if not line.startswith("MESSAGE"):
            self.came += 1
            self.last.append(line)

    def is_settled(self) -> bool:
        return self.came >= self.due

    def check(self) -> None:
        assert self.came == self.due

    def check_question(self) -> None:
        assert self.last[-3].startswith('name="azpy"'), self.last[-3:]
        assert self.last[-2] == "OK"
        assert re.fullmatch("[0-5],[0-5]", self.last[-1])
        assert self.last[-1] not in {"0,0", "5,5"}
        self.last = []
