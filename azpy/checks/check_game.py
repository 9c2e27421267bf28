"""Plays a game and proves what it must keep, or finds a short line of play where it does not.

First every line of play from the start, shortest first, as far as time allows: a fault that shows there is reported
by the shortest line there is. Then games at random, whose faults are shortened by leaving out actions. Then the same
positions in another process, and searches. What holds is proved for the positions that were seen, and for no others,
unless the report says that these are all.

Not tried: illegal actions in a game written in Python. An `azpy.Game` need not refuse them: azpy plays legal actions
only.
"""

import contextlib
import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from azpy import _core
from azpy._core import TERMINAL, State
from azpy.checks.failing_lines import Failed, NoLine, shrink
from azpy.checks.game_checks import (
    Broken,
    Facts,
    Look,
    Mirrors,
    array_of,
    asked_twice,
    broken_by,
    check_action_cells,
    check_copy,
    check_planes,
    check_refusals,
    check_text,
    cloned,
    examine,
    facts_of,
    offered,
    play,
)
from azpy.checks.perspective import Clash, Line, Path, Perspective, Warned, opposed
from azpy.checks.rules import RULES
from azpy.games.names import is_python_class, make_position, python_game
from azpy.games.openspiel import PREFIX

__all__ = ["Finding", "Report", "check_game"]

_MOST_LINES = 20_000  # of the enumeration
_ELSEWHERE_LINES, _ELSEWHERE_SECONDS = 300, 60.0
_SEARCHES, _SIMULATIONS = 8, 100

Progress = Callable[[str, float, str], object]


@dataclass(frozen=True)
class Finding:
    """A fault or a warning, as people can act on it.

    Attributes:
        rule: its name in `rules.RULES`.
        line: the actions that lead there; None where it is no matter of one position.
        names: what people call them.
        board: the position after them.
        other: a second line, for two that do not go together, as names.
        other_board: the position after it.
        got: what came.
        expected: what should have come.
    """

    rule: str
    line: Line | None
    names: tuple[str, ...]
    board: str
    other: tuple[str, ...] | None
    other_board: str
    got: str
    expected: str

    @property
    def holds(self) -> str:
        """What must hold."""
        return RULES[self.rule].holds

    @property
    def advice(self) -> str:
        """What to do."""
        return RULES[self.rule].advice


@dataclass
class Report:
    """What was looked at, and what was found.

    Attributes:
        game: the spec.
        failure: the first fault, if there is one.
        warnings: what may be wrong.
        lines: lines of play of the enumeration.
        depth: the plies to which the enumeration has all lines.
        complete: it has seen every position of the game.
        games: random games played to the end.
        plies: of all of them.
        lengths: of the shortest and the longest game seen.
        results: games by outcome for player 0.
        positions: different keys.
        met_again: positions met again with a key that was known, and compared with it.
        elsewhere: positions compared with those of another process.
        searches: pairs of searches, with and without a cache.
        mirrored: symmetries under which the games were played as well, of `symmetries` besides the identity.
        plies_per_second: of random play by the core.
        max_plies: what the game says.
        seconds: how long it took.
    """

    game: str
    failure: Finding | None = None
    warnings: list[Finding] = field(default_factory=list)
    lines: int = 0
    depth: int = 0
    complete: bool = False
    games: int = 0
    plies: int = 0
    lengths: tuple[int, int] | None = None
    results: Counter[float] = field(default_factory=Counter)
    positions: int = 0
    met_again: int = 0
    elsewhere: int = 0
    searches: int = 0
    mirrored: int = 0
    symmetries: int = 0
    plies_per_second: float = 0.0
    max_plies: int = 0
    seconds: float = 0.0


def check_game(
    spec: str, *, games: int = 200, seconds: float = 30.0, seed: int = 0, on_progress: Progress | None = None
) -> Report:
    """Checks a game.

    Args:
        spec: as in `make_position`.
        games: random games, at most.
        seconds: how long it may take, about.
        seed: of the random games.
        on_progress: called now and then with the stage, the share of it that is done, and a text.

    Raises:
        SettingsError: no such game, or a class that cannot be imported or made.
    """
    begin = time.monotonic()
    report = Report(spec)
    checker = _Checker(spec, report, seed, on_progress or (lambda *_: None))
    try:
        checker.begin()
        checker.enumerate(begin + 0.4 * seconds)
        checker.play_random_games(games, begin + 0.9 * seconds)
        checker.compare_processes()
        checker.search(begin + seconds)
    except Failed as failed:
        report.failure = checker.finding(failed.broken, failed.line, failed.other)
    else:
        report.warnings = checker.warnings()
    report.positions = len(checker.known)
    report.seconds = time.monotonic() - begin
    return report


class _Checker:
    def __init__(self, spec: str, report: Report, seed: int, on_progress: Progress) -> None:
        self.spec, self.report, self.seed, self.on_progress = spec, report, seed, on_progress
        self.game = self._made()
        self.start: State
        self.known: dict[int, tuple[Path, bytes]] = {}  # by key, with a hash of what was seen
        self.perspective = Perspective()
        self.visited: list[Path] = []
        self.unnamed: Warned | None = None
        self.unfinished: Warned | None = None
        self.mirrors: Mirrors | None = None
        self.opaque = False  # whether two positions may look the same and not be

    def _made(self) -> Any:
        return python_game(self.spec) if is_python_class(self.spec) else make_position(self.spec)

    def begun(self, game: Any) -> State:
        """The start."""
        try:
            state = State(game)
        except Exception as error:
            if isinstance(error, AttributeError) and error.name in ("num_actions", "obs_shape", "max_plies"):
                raise Broken("attributes", f"{type(error).__name__}: {error}", f"an attribute {error.name}") from error
            raise broken_by(error) from error
        if state.game_object is not None and not isinstance(game, State):
            check_copy(game, state.game_object)
        return state

    # The stages.

    def begin(self) -> None:
        """What must hold before a game is played."""
        try:
            self.start = self.begun(self.game)
            self.report.max_plies = self.start.max_plies
            self.first = asked_twice(self.start)
            examine(self.start)
            if self.start.game_object is None:
                self.mirrors = Mirrors(self.start)
                self.report.mirrored = len(self.mirrors.symmetries)
                self.report.symmetries = self.start.num_symmetries - 1
        except Broken as broken:
            raise Failed((), broken) from None

    def enumerate(self, until: float) -> None:
        """Every line of play, shortest first; a position that was met before is not played on from."""
        queue, seen, report = deque[Line]([()]), set[bytes](), self.report
        found: Failed | None = None
        # The start is looked at whatever the time.
        while queue and report.lines < _MOST_LINES and (not report.lines or time.monotonic() < until):
            line = queue.popleft()
            if found is not None and len(line) >= found.plies:
                break
            try:
                look = self._visit(line)
            except Failed as failed:
                # Another line of this length may be at fault itself, where this one is by what follows it.
                found = failed if found is None or failed.plies < found.plies else found
                continue
            report.lines += 1
            report.depth = len(queue[0]) - 1 if queue else len(line)
            if report.lines % 50 == 0:
                text = f"{report.lines:,} lines of play, of up to {len(line)} plies"
                self.on_progress("every line from the start", report.lines / _MOST_LINES, text)
            mark = self._mark(line, look.facts)
            if mark not in seen:
                seen.add(mark)
                queue.extend((*line, action) for action in look.facts.playable)
            if look.facts.turn == TERMINAL:
                self._end(line, look.facts.outcome or 0.0)
        if found is not None:
            raise found
        report.complete = not queue and not self.opaque
        self._fresh_start()

    def play_random_games(self, games: int, until: float) -> None:
        """Games at random, each position looked at from all sides."""
        longest = 0
        for number in range(games):
            if time.monotonic() > until:
                break
            length = self._play_game(number, until)
            longest = max(longest, abs(length))
            self.on_progress("random games", (number + 1) / games, f"{number + 1} of {games} games")
        if self.report.games == 0 and games:
            got = f"no random game ended in the time there was; the longest had {longest} plies"
            self.unfinished = Warned("unfinished", got, f"an end within max_plies, {self.start.max_plies}")
        self._fresh_start()

    def compare_processes(self) -> None:
        """The positions after some lines, asked in another process where text hashes otherwise."""
        if self.start.game_object is None:
            return  # nothing of Python's is in it
        self.on_progress("in another process", 0.0, "")
        step = max(1, len(self.visited) // _ELSEWHERE_LINES)
        lines = sorted({path.line for path in self.visited[::step]}, key=len)
        for line, theirs in zip(lines, self._elsewhere(lines), strict=True):
            mine = facts_of(self._replayed(line))
            if _plain(mine) != theirs:
                turn, actions, chances, observation, outcome, key = theirs
                other = Facts(turn, tuple(actions), tuple(chances), bytes.fromhex(observation), outcome, int(key))
                got = f"a position that differs from the one here in {mine.differences(other)}"
                raise Failed(line, Broken("process", got, "no difference"))
            self.report.elsewhere += 1

    def search(self, until: float) -> None:
        """Searches by the core, with a cache and without: a key that is wrong shows as other visits."""
        rng = random.Random(f"searches {self.seed}")  # noqa: S311  what looks random will do
        paths = [path for path, _ in self.known.values()]
        for number, path in enumerate([*paths[:2], *rng.sample(paths, min(len(paths), _SEARCHES))]):
            self.on_progress("searches", number / (_SEARCHES + 2), "")
            line = path.line
            position = self._replayed(line)
            if facts_of(position).turn not in (0, 1):
                continue
            if self.report.searches and time.monotonic() > until:
                break
            try:
                plain, cached = (
                    _core.Search(
                        _Any(self.start.num_actions),
                        simulations=_SIMULATIONS,
                        eval_batch=2,
                        cache_positions=size,
                        seed=number,
                    )
                    .run(position)
                    .visits.tolist()
                    for size in (0, 10_000)
                )
            except Exception as error:
                got = f"{type(error).__name__}: {error}"
                raise Failed(line, Broken("core", got, f"a search of {_SIMULATIONS} simulations")) from error
            if plain != cached:
                got = f"visits {plain} without a cache and {cached} with one"
                raise Failed(line, Broken("core", got, "the same visits"))
            self.report.searches += 1
        if self.report.games == 0:
            return  # a game may take for ever
        begin, games, plies = time.monotonic(), 1, 0
        while (spent := time.monotonic() - begin) < 0.2:
            plies += _core.random_playouts(self.start, games, self.seed + games)
            games *= 2
        self.report.plies_per_second = plies / spent

    def warnings(self) -> list[Finding]:
        """What may be wrong."""
        found = [warned for warned in (self.unnamed, self.unfinished) if warned is not None]
        return [
            self.finding(Broken(warned.rule, warned.got, warned.expected), warned.line, warned.other)
            for warned in [*found, *self.perspective.warnings()]
        ]

    # One position.

    def _visit(self, line: Line) -> Look:
        """The position after a line, looked at from all sides and compared with those known."""
        try:
            look = self._inspect_again(line)
        except Failed as failed:
            raise self._shortened(failed) from None
        self._meet(Path(line, len(line)), look)
        return look

    def _inspect(self, line: Line) -> Look:
        """The position after a line, reached on three ways and looked at by itself.

        Raises:
            Failed: with the part of the line that is at fault.
            NoLine: the game does not offer these actions.
        """
        ply, keys = 0, dict[int, int]()
        try:
            walked = cloned(self.start)
            by_clone = walked
            for ply, action in enumerate(line):
                facts = facts_of(walked)
                if action not in facts.playable:
                    raise NoLine(ply)
                keys[facts.key] = ply
                by_clone = cloned(walked)
                play(by_clone, action)
                play(walked, action)
            ply = len(line)
            facts = asked_twice(walked)
            self._same_way(facts, self._replayed(line), "asked before every ply and never asked")
            self._same_way(facts, by_clone, "played on and on a clone of the position before")
            self._check_end(line, facts, keys)
            look = examine(walked)
            check_action_cells(walked)
            if walked.game_object is None:
                check_refusals(walked, facts, len(line))
                check_text(walked, self.start)
                check_planes(walked)
        except Broken as broken:
            raise Failed(line[:ply], broken) from None
        return look

    def _inspect_again(self, line: Line) -> Look:
        """The same of a line that the game has offered before."""
        try:
            return self._inspect(line)
        except NoLine as gone:
            got = f"action {line[gone.ply]} is not legal after the same actions as before, when it was"
            raise Failed(line[: gone.ply], Broken("replay", got, "the same legal actions")) from None

    def _meet(self, path: Path, look: Look) -> None:
        """Compares a position with the one of the same key, and with those that look the same."""
        self.visited.append(path)
        mark = hashlib.blake2b(repr((look.facts, look.followers)).encode(), digest_size=16).digest()
        other, known = self.known.setdefault(look.facts.key, (path, mark))
        try:
            if other is not path:
                self.report.met_again += 1
                if mark != known and (broken := _key_clash(look, self._inspect_again(other.line))) is not None:
                    raise Clash(broken, other.line)
            self.perspective.meet(path, look)
        except Clash as clash:
            raise self._shortened_pair(Failed(path.line, clash.broken, clash.other)) from None

    def _same_way(self, facts: Facts, other: State, how: str) -> None:
        others = facts_of(other)
        if facts != others:
            got = f"two positions after the same actions, {how}: they differ in {facts.differences(others)}"
            raise Broken("replay", got, "the same position")

    def _check_end(self, line: Line, facts: Facts, keys: dict[int, int]) -> None:
        """The game comes to its end: no position twice, no ply too many."""
        if facts.key in keys:
            got = f"the key {facts.key} after {keys[facts.key]} plies and again after {len(line)}"
            raise Broken("repeat", got, "every key once in a game")
        most = self.start.max_plies
        if facts.turn != TERMINAL and len(line) >= most:
            raise Broken("length", f"a game that goes on after {most} plies{self._how_long(line)}", "its end by then")

    def _how_long(self, line: Line) -> str:
        """How a game goes on that is too long already."""
        position, until = self._replayed(line), time.monotonic() + 2
        rng = random.Random(self.seed)  # noqa: S311  what looks random will do
        plies, most = len(line), 10 * len(line) + 1000
        while (facts := facts_of(position)).turn != TERMINAL:
            if plies >= most or time.monotonic() > until:
                return f", and still after {plies}"
            play(position, rng.choice(facts.playable))
            plies += 1
        return f"; at random it ended after {plies}"

    # Games.

    def _play_game(self, number: int, until: float) -> int:
        """Plays a game; gives its plies, negative where time was up before its end."""
        rng = random.Random(f"{self.seed}/{number}")  # noqa: S311  what looks random will do
        report = self.report
        taken, keys, passed = list[int](), dict[int, int](), list[Facts]()
        position = cloned(self.start)
        expected: Facts | None = None
        mirrors = self.mirrors
        if mirrors is not None:
            mirrors.begin()
        while True:
            line = tuple(taken)
            try:
                look = examine(position)
                facts = look.facts
                if expected is not None and facts != expected:
                    self._same_way(facts, self._replayed(line), "played on and from the start")
                    got = f"a position that differs from the same one on a clone in {facts.differences(expected)}"
                    raise Broken("replay", got, "no difference")
                self._check_end(line, facts, keys)
                if position.game_object is None:
                    check_refusals(position, facts, len(line))
                    check_text(position, self.start)
                    check_planes(position)
                if mirrors is not None:
                    mirrors.check(position, facts)
            except Broken as broken:
                raise self._shortened(Failed(line, broken)) from None
            self._meet(Path(taken, len(taken)), look)
            self._watch(position, line, facts)
            keys[facts.key] = len(line)
            passed.append(facts)
            if facts.turn == TERMINAL:
                break
            if time.monotonic() > until:
                self.perspective.end(None, 0.0)
                return -len(taken)
            action = rng.choices(facts.actions, facts.chances or None)[0]
            try:
                after = cloned(position)
                play(after, action)
                expected = facts_of(after)
                if mirrors is not None:
                    mirrors.play(position, action)
                play(position, action)
            except Broken as broken:
                raise self._shortened(Failed((*line, action), broken)) from None
            taken.append(action)
        # The same game without a question, to its end and to a ply before.
        for length in {len(taken), rng.randint(0, len(taken))}:
            line = tuple(taken[:length])
            try:
                self._same_way(passed[length], self._replayed(line), "asked before every ply and never asked")
            except Broken as broken:
                raise self._shortened(Failed(line, broken)) from None
        self._end(tuple(taken), passed[-1].outcome or 0.0, position)
        report.games, report.plies = report.games + 1, report.plies + len(taken)
        report.results[passed[-1].outcome or 0.0] += 1
        return len(taken)

    def _watch(self, position: State, line: Line, facts: Facts) -> None:
        """What is no fault by itself: views and names."""
        if facts.turn not in (0, 1):
            return
        self.perspective.watch(facts.turn, array_of(position))
        if self.unnamed is None:
            names = [position.action_name(action) for action in facts.actions]
            if len(set(names)) < len(names):
                name = Counter(names).most_common(1)[0][0]
                self.unnamed = Warned("names", f"{name!r} for {names.count(name)} actions", "a name each", line)

    def _end(self, line: Line, outcome: float, end: State | None = None) -> None:
        """Takes the end of a game, with its last position where the whole game was watched."""
        shortest, longest = self.report.lengths or (len(line), len(line))
        self.report.lengths = min(shortest, len(line)), max(longest, len(line))
        position, last = self._replayed(()), None
        for action in line:
            turn = facts_of(position).turn
            last = turn if turn in (0, 1) else last
            play(position, action)
        final = None
        game = None if end is None else end.game_object
        if game is not None and not self.spec.startswith(PREFIX):  # OpenSpiel prints its complaint
            with contextlib.suppress(Exception):  # nobody else asks for an observation there: a game need not have one
                final = np.asarray(game.clone().encode(), np.float32)
        self.perspective.end(last, outcome, final)

    def _fresh_start(self) -> None:
        """A new game is the first one again."""
        try:
            for start in (self.start, self.begun(self._made())):
                facts = facts_of(start)
                if facts != self.first:
                    got = f"a start that differs from the first one in {self.first.differences(facts)}"
                    raise Broken("start", got, "the same start")
        except Broken as broken:
            raise Failed((), broken) from None

    def _replayed(self, line: Line) -> State:
        """The position after a line that is not asked anything on the way."""
        position = cloned(self.start)
        for action in line:
            play(position, action)
        return position

    def _mark(self, line: Line, facts: Facts) -> bytes:
        """Tells positions apart that only look alike: all there is to see, and what a game in Python is made of."""
        position = self._replayed(line)
        text = f"{_plain(facts)}\n{position}".encode()
        if position.game_object is not None:
            try:
                text += pickle.dumps(position.game_object)
            except Exception:  # S110: what cannot be pickled is told apart by what there is to see
                self.opaque = True
        return hashlib.blake2b(text, digest_size=16).digest()

    # Another process.

    def _elsewhere(self, lines: Sequence[Line]) -> list[Any]:
        """The facts after each line, by a process of its own."""
        hash_seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        program = "from azpy.checks.check_game import answer_elsewhere; answer_elsewhere()"
        try:
            done = subprocess.run(  # noqa: S603  this Python, with a program of ours
                [sys.executable, "-c", program],
                input=json.dumps([self.spec, lines]),
                env=environment,
                capture_output=True,
                text=True,
                timeout=_ELSEWHERE_SECONDS,
                check=True,
            )
            return list(json.loads(done.stdout.splitlines()[-1]))
        except subprocess.CalledProcessError as error:
            got = (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]
        except (subprocess.TimeoutExpired, OSError, ValueError, IndexError) as error:
            got = f"{type(error).__name__}: {error}"
        raise Failed((), Broken("process", f"no answers: {got}", f"those to {len(lines)} lines of play"))

    # Shorter lines.

    def _shortened(self, failed: Failed) -> Failed:
        """A shorter line with the same fault, if leaving out actions finds one."""

        def fails(lines: tuple[Line, ...]) -> Failed | None:
            try:
                self._inspect(lines[0])
            except Failed as other:
                return other if other.broken.rule == failed.broken.rule else None
            return None

        # A game that is too long has no shorter line.
        return failed if failed.broken.rule == "length" else shrink(failed, fails)

    def _shortened_pair(self, failed: Failed) -> Failed:
        """Shorter lines that clash in the same way."""

        def fails(lines: tuple[Line, ...]) -> Failed | None:
            line, other = lines
            try:
                if failed.broken.rule == "key" and self._key_after(line) != self._key_after(other):
                    return None  # most candidates, and soon seen
                look, theirs = self._inspect(line), self._inspect(other)
            except Failed:
                return None
            if failed.broken.rule == "key":
                if line == other or look.facts.key != theirs.facts.key or (broken := _key_clash(look, theirs)) is None:
                    return None
                return Failed(line, broken, other)
            alike = (look.facts.observation, look.facts.actions) == (theirs.facts.observation, theirs.facts.actions)
            if not alike or {look.facts.turn, theirs.facts.turn} != {0, 1} or opposed(look.ends, theirs.ends) is None:
                return None
            return Failed(line, failed.broken, other)

        return shrink(failed, fails)

    def _key_after(self, line: Line) -> int:
        """The key after actions that may not be possible."""
        position = cloned(self.start)
        try:
            for ply, action in enumerate(line):
                if action not in offered(position):
                    raise NoLine(ply)
                play(position, action)
            return facts_of(position).key
        except Broken as broken:
            raise Failed(line, broken) from None

    # For people.

    def finding(self, broken: Broken, line: Line | None, other: Line | None = None) -> Finding:
        """A fault with its lines by name, and its boards."""
        names, board = self._shown(line or ())
        others, other_board = self._shown(other) if other is not None else (None, "")
        board = board if line is not None else ""
        return Finding(broken.rule, line, names, board, others, other_board, broken.got, broken.expected)

    def _shown(self, line: Line) -> tuple[tuple[str, ...], str]:
        """A line by name, and the last board that can be shown."""
        names, position = list[str](), getattr(self, "start", self.game)
        try:
            position = cloned(self.start)
            for action in line:
                names.append(position.action_name(action))
                position._play(action)
        except Exception:  # a fault of the game is why it is shown
            names += [str(action) for action in line[len(names) :]]
        return tuple(names), str(position)


class _Any:
    """Answers that depend on every value of a row, and on nothing else: no two observations are alike to it."""

    network_id = 0x617A7079  # any number: there is one network

    def __init__(self, num_actions: int) -> None:
        self._actions = np.arange(1, num_actions + 1)

    def evaluate_batch(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logits [B, A] and values [B]."""
        rows = observations.reshape(len(observations), -1).astype(np.float64)
        weights = np.sin(np.arange(1, rows.shape[1] + 1))
        # Row by row: the bits of a row must not depend on its place in a batch.
        sums = [float(np.dot(row, weights)) for row in rows]
        logits = np.stack([np.sin(total * self._actions) for total in sums])
        return logits.astype(np.float32), np.sin(7 * np.array(sums)).astype(np.float32) / 2


def _key_clash(look: Look, other: Look) -> Broken | None:
    """What is not the same in two positions of one key; None if nothing is."""
    difference = None
    if look.facts != other.facts:
        difference = f"they differ in {look.facts.differences(other.facts)}"
    else:
        for (action, key), (_, theirs) in zip(look.followers, other.followers, strict=True):
            if key != theirs:
                difference = f"after action {action} in both, their keys are {key} and {theirs}"
    return None if difference is None else Broken("key", f"one key for two positions: {difference}", "two keys")


def _plain(facts: Facts) -> list[Any]:
    """As JSON gives it back."""
    observation, key = facts.observation.hex(), str(facts.key)
    return [facts.turn, list(facts.actions), list(facts.chances), observation, facts.outcome, key]


def answer_elsewhere() -> None:
    """The other process: reads a game and lines of play, and writes the facts after each, as JSON."""
    spec, lines = json.load(sys.stdin)
    checker = _Checker(spec, Report(spec), 0, lambda *_: None)
    checker.start = checker.begun(checker.game)
    answers = [_plain(facts_of(checker._replayed(tuple(line)))) for line in lines]
    sys.stdout.write(json.dumps(answers) + "\n")
