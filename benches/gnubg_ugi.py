"""GNU Backgammon as a program of UGI, for az-match.

    az-match runs/backgammon "ugi:python benches/gnubg_ugi.py --plies 0" --opening-plies 0

GNU Backgammon runs as a process of its own (Debian: gnubg). It answers through its command `external`: a line is a
board as FIBS writes it, with dice; the answer is a whole turn. It plays single games for money as azpy does: no cube,
cubeless equities, gammons and backgammons count (no Jacoby rule), no noise. `go nodes N` changes nothing.

UGI asks for one checker at a time, and azpy has one line of actions for each position at the end of a turn. The program
takes the line that leads where GNU Backgammon's turn leads. So it needs `--opening-plies 0`: it cannot end a turn
that an opening began.
"""

import argparse
import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import azpy
from ugi import serve

Checkers = Counter[str]  # on each point from 1 to 24, counted from the own side, and on "bar" and "off"
Sides = tuple[Checkers, Checkers]
_NAMES = {"25": "bar", "0": "off"}  # as a turn of GNU Backgammon numbers them


class Gnubg:
    """A process of GNU Backgammon that answers questions about boards."""

    def __init__(self, program: str, plies: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "socket"))
            turns = "set evaluation chequerplay evaluation"
            commands = [f"{turns} plies {plies}", f"{turns} cubeful off", "set jacoby off", f"external {path}"]
            # Its messages are translated. It reads the user's settings and writes into the home unless told otherwise.
            self._process = subprocess.Popen(
                [program, "-t", "-q", "-r", "-s", folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, "LC_ALL": "C"},
            )
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            with contextlib.suppress(BrokenPipeError):  # it has ended: that there is no socket says so
                self._process.stdin.write("\n".join(commands) + "\n")
                self._process.stdin.flush()
            self.about, said = "", ""
            for line in self._process.stdout:
                self.about = self.about or line.strip()
                said = line.strip() or said
                if line.startswith("Waiting for a connection"):
                    break
            else:
                raise SystemExit(f"{program} opens no socket, its last words {said!r}")
            door = socket.socket(socket.AF_UNIX)
            door.connect(path)
        self._pipe = door.makefile("rw", encoding="ascii", newline="\n")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def turn(self, sides: Sides, dice: tuple[int, int]) -> Sides:
        """The position after the turn that it plays."""
        own, other = Counter(sides[0]), Counter(sides[1])
        question = _board(sides, dice)
        self._pipe.write(question + "\n")
        self._pipe.flush()
        answer = self._pipe.readline().strip()
        for move in answer.split():
            match = re.fullmatch(r"(\d+)/(\d+)\*?", move)
            if match is None:
                raise SystemExit(f"GNU Backgammon answers {answer!r} to {question}")
            place, to = (_NAMES.get(number, number) for number in match.groups())
            own[place] -= 1
            own[to] += 1
            if to != "off" and (there := str(25 - int(to))) in +other:  # a blot
                other[there] -= 1
                other["bar"] += 1
        return +own, +other


def _board(sides: Sides, dice: tuple[int, int]) -> str:
    """A board as FIBS writes it; the first side is to move. Of 0 points, a match is a game for money."""
    own, other = sides
    points = [own[str(point)] - other[str(25 - point)] for point in range(1, 25)]
    board = [-other["bar"], *points, own["bar"]]
    head, doubles, colors = [0, 0, 0], [1, 1, 1, 0], [1, -1, 0, 25]
    ends = [own["off"], other["off"], own["bar"], other["bar"], 0, 0, 0, 0]
    fields = [*head, *board, 1, *dice, 0, 0, *doubles, *colors, *ends]
    return "board:azpy:gnubg:" + ":".join(map(str, fields))


def _sides(state: azpy.State, player: int) -> Sides:
    """The checkers of the player and of the opponent, read from azpy's notation."""

    def side(name: str) -> Checkers:
        match = re.search(rf"\b{name}=(\S+)", state.to_text())
        assert match is not None, state.to_text()
        return Counter({place: int(count) for place, _, count in (one.partition(":") for one in match[1].split(","))})

    return side("xo"[player]), side("xo"[1 - player])


def _ends(state: azpy.State, player: int) -> Iterator[tuple[list[int], azpy.State]]:
    """Each line of actions to the end of the turn, and the position there."""
    if state.turn != player:
        yield [], state
        return
    for action in state.legal_actions():
        after = state.clone()
        after.play(action)
        for line, end in _ends(after, player):
            yield [action, *line], end


class Backgammon:
    def __init__(self, gnubg: Gnubg, start: azpy.State) -> None:
        self._gnubg, self._start = gnubg, start

    def choose(self, actions: Sequence[int], nodes: int | None) -> int:
        state = rolled = self._start.clone()
        for action in actions:
            is_roll = state.turn == azpy.CHANCE
            state.play(action)
            rolled = state.clone() if is_roll else rolled
        player = state.turn
        match = re.search(r"roll=(\d)-(\d)", rolled.to_text())
        assert match is not None, rolled.to_text()
        target = self._gnubg.turn(_sides(rolled, player), (int(match[1]), int(match[2])))
        for line, end in _ends(state, player):
            if _sides(end, player) == target:
                return line[0]
        raise SystemExit(f"no turn of {rolled.to_text()} leads to {target}; give az-match --opening-plies 0")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--plies", type=int, default=0, choices=range(4), help="GNU Backgammon's look-ahead")
    parser.add_argument("--program", default="gnubg", help="GNU Backgammon's own")
    given = parser.parse_args()
    program = shutil.which(given.program) or shutil.which(given.program, path="/usr/games")
    if program is None:
        raise SystemExit(f"no program {given.program!r}: install GNU Backgammon or give --program")
    gnubg = Gnubg(program, given.plies)
    try:
        start = azpy.make_game("backgammon")
        serve(f"{gnubg.about}, {given.plies} plies", start, Backgammon(gnubg, start).choose)
    finally:
        gnubg.close()


if __name__ == "__main__":
    main()
