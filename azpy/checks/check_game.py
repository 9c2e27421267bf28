"""Play a game and check its rules, or find a short line of play that breaks one.

The stages: every line of play from the start, random games, and the same positions in another process. A rule is
checked for the positions that were seen. Illegal actions are not tried in a game written in Python, because azpy plays
legal actions only.
"""

import contextlib
import pickle
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from azpy._core import TERMINAL, Exploitability, Facts, GameError, Look, State, Walk
from azpy.checks.alike import Alike, clash, digest, key_clash, observed, plain
from azpy.checks.elsewhere import begun, check_copy, facts_elsewhere, made, unasked
from azpy.checks.faults import Broken, Gone, Line, Path, Shown, asked, shrink
from azpy.checks.perspective import Perspective
from azpy.games.openspiel import PREFIX

_MOST_LINES = 20_000  # of the enumeration
_ELSEWHERE_LINES = 300
MOST_IN_PYTHON = 100_000  # positions that are counted of a game in Python, whose rules take seconds for so many
_HIDDEN = 0.1  # of the time, for what follows positions that look alike

Progress = Callable[[str, float, str], object]


@dataclass
class Report:
    """What a check examined and found."""

    game: str  # the spec
    failure: Broken | None = None  # the first fault
    warnings: list[Broken] = field(default_factory=list)  # signs of mistakes that can also be right
    lines: int = 0  # of play, in the enumeration
    depth: int = 0  # the enumeration has all lines of at most this many plies
    complete: bool = False  # the enumeration has seen every position of the game
    games: int = 0  # at random, played to the end
    plies: int = 0  # of all of them
    lengths: tuple[int, int] | None = None  # of the shortest and the longest game seen
    results: Counter[Any] = field(default_factory=Counter)  # games by outcome, as `State.outcome` gives it
    example: tuple[Shown, str] | None = None  # the shortest random game, and its result in words
    zero_sum: bool = True  # of two players
    positions: int = 0  # different keys
    met_again: int = 0  # positions met again with a key that was known, and compared with it
    elsewhere: int = 0  # positions compared with those of another process
    symmetries: int = 0  # besides the identity
    mirrored: int = 0  # symmetries under which the games were played as well
    hides: bool = False  # something from a player
    exploitability: str = ""  # whether it can be computed, in words, where something is hidden
    max_plies: int = 0  # what the game says
    seconds: float = 0.0  # how long it took


def check_game(
    spec: str, *, games: int = 200, seconds: float = 30.0, seed: int = 0, on_progress: Progress | None = None
) -> Report:
    """Check a game, for about so many seconds and with so many random games at most; `seed` is theirs.

    `spec` is as in `make_game`. `on_progress` is called now and then with the stage, the share of it that is done,
    and a text.

    Raises:
        SettingsError: no such game, or a class that cannot be imported or made.
    """
    begin = time.monotonic()
    report = Report(spec)
    checker = _Checker(spec, report, seed, on_progress or (lambda *_: None), seconds)
    try:
        checker.begin()
        checker.enumerate(begin + 0.4 * seconds)
        checker.play_random_games(games, begin + 0.9 * seconds)
        checker.compare_processes()
        checker.count_positions()
        report.example = checker.example()
    except Broken as broken:
        report.failure = checker.shown(broken)
    else:
        report.warnings = [checker.shown(warning) for warning in checker.warnings()]
    report.positions = len(checker.known)
    report.seconds = time.monotonic() - begin
    return report


class _Checker:
    def __init__(self, spec: str, report: Report, seed: int, on_progress: Progress, seconds: float) -> None:
        self.spec, self.report, self.seed, self.on_progress = spec, report, seed, on_progress
        self.game, self.seconds = made(spec), seconds
        self.start: State
        self.walk: Walk
        self.known: dict[int, tuple[Path, bytes]] = {}  # by key, with a hash of what was seen
        self.perspective = Perspective()  # of two players, until the start says otherwise
        self.warned: dict[str, Broken] = {}  # by rule
        self.shortest: Line | None = None  # of the random games
        self.opaque = False  # two different positions may look the same

    def begin(self) -> None:
        """Check the start."""
        with asked(()):
            self.start = begun(self.game)
            self.report.max_plies = self.start.max_plies
            self.report.symmetries = self.start.num_symmetries - 1
            self.report.zero_sum, self.report.hides = self.start.zero_sum, self.start.hides
            self.perspective = Perspective(self.start.num_players, zero_sum=self.start.zero_sum)
            self.walk = Walk(self.start)
            self.first = self.walk.facts()
        self.alike = Alike(self._after, self.start.max_plies, _HIDDEN * self.seconds)
        self.report.mirrored = len(self.walk.symmetries)
        self._look(self.walk, (), from_start=True)

    def enumerate(self, until: float) -> None:
        """Every line of play, shortest first; a position that was met before is not played on from."""
        queue, seen, report = deque[Line]([()]), set[bytes](), self.report
        found: Broken | None = None
        # The start is always checked, even without time.
        while queue and report.lines < _MOST_LINES and (not report.lines or time.monotonic() < until):
            line = queue.popleft()
            if found is not None and len(line) >= found.plies:
                break
            try:
                with self._shortening():
                    look = self._inspect(line)
                mark = self._mark(look)  # before the walk moves on
                self._meet(Path(line, len(line)), look)
            except Broken as broken:
                # Another line of this length may break a rule itself, while here an action after the line does.
                found = broken if found is None or broken.plies < found.plies else found
                continue
            report.lines += 1
            report.depth = len(queue[0]) - 1 if queue else len(line)
            if report.lines % 50 == 0:
                text = f"{report.lines:,} lines of play, of up to {len(line)} plies"
                self.on_progress("every line from the start", report.lines / _MOST_LINES, text)
            if mark not in seen:
                seen.add(mark)
                queue.extend((*line, action) for action in look.facts.playable)
            if look.facts.turn == TERMINAL:
                self._end(line, look.facts.outcome, at_random=False)
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
            longest = max(longest, self._play_game(number, until))
            self.on_progress("random games", (number + 1) / games, f"{number + 1} of {games} games")
        if self.report.games == 0 and games:
            got = f"no random game ended in time; the longest had {longest} plies"
            self.warned["unfinished"] = Broken("unfinished", got, f"an end within max_plies, {self.start.max_plies}")
        self._fresh_start()

    def compare_processes(self) -> None:
        """Compare the positions after some lines with those of another process, which hashes text differently."""
        if self.start.game_object is None:
            return  # a game in Rust does not depend on Python's hashes
        self.on_progress("in another process", 0.0, "")
        step = max(1, len(self.known) // _ELSEWHERE_LINES)
        lines = [path.line for path, _ in self.known.values()][::step]
        with asked(()):
            answers = facts_elsewhere(self.spec, lines)
        for line, theirs in zip(lines, answers, strict=True):
            with asked(line):
                mine = plain(Walk(unasked(self.start, line)).facts())
                if mine != theirs:
                    found = [f"{name} ({mine[name]} and {theirs[name]})" for name in mine if mine[name] != theirs[name]]
                    got = f"a position that differs from the one here in {', '.join(found)}"
                    raise Broken("process", got, "no difference")
            self.report.elsewhere += 1

    def count_positions(self) -> None:
        """Say whether the exploitability of players can be computed."""
        if not self.report.hides:
            return
        self.on_progress("all positions", 0.0, "")
        with asked(()):
            try:
                game = Exploitability(self.start, most=None if self.start.game_object is None else MOST_IN_PYTHON)
            except GameError as error:
                raise Broken("recall", str(error), "perfect recall", ()) from None
            except ValueError as error:
                self.report.exploitability = f"exploitability cannot be computed: {error}"
            else:
                text = f"exploitability can be computed: {game.positions:,} positions, {game.views:,} information sets"
                self.report.exploitability = text

    def warnings(self) -> list[Broken]:
        """The warnings."""
        hidden = [] if self.alike.warning is None else [self.alike.warning]
        return [*hidden, *self.perspective.warnings(shared=self.alike.shared), *self.warned.values()]

    def _look(self, walk: Walk, line: Line, *, from_start: bool) -> Look:
        """Check the position of a walk, which is at the end of `line`."""
        with asked(line):
            facts = walk.facts()
            _check_object(walk, self.start, facts)
            # Checking the end and some other positions of a random game is enough.
            some = facts.turn == TERMINAL or len(line).bit_count() == 1
            return walk.look(from_start=from_start or some)

    def _inspect(self, line: Line) -> Look:
        """Check the position after a line.

        Raises:
            Broken: with the part of the line that is at fault.
        """
        with asked(()):
            self.walk.restart()
        for ply, action in enumerate(line):
            with asked(line[:ply]):
                offered = self.walk.play(action)
            if not offered:
                got = f"action {action} is no longer legal after the same actions"
                raise Gone("replay", got, "the same legal actions", line[:ply])
        return self._look(self.walk, line, from_start=True)

    def _meet(self, path: Path, look: Look) -> None:
        """Compare a position with the one of the same key, and with those that look the same."""
        mark = digest(look.facts, look.followers)
        other, known = self.known.setdefault(look.facts.key, (path, mark))
        broken = None
        if other is not path:
            self.report.met_again += 1
            if mark != known and (broken := key_clash(look, self._inspect(other.line))) is not None:
                broken.line, broken.other = path.line, other.line
        if self.report.hides:  # positions that look the same go on differently: that is what is hidden
            if look.same_look is not None:
                got = f"two view_keys of player {look.facts.turn} with equal observations and equal legal actions"
                told = Broken("look", got, "another observation", path.line, tuple(look.same_look))
                self.warned.setdefault("look", told)
        else:
            broken = broken or self.alike.meet(path, look)
        if broken is not None:
            raise self._shortened_pair(broken)

    def _after(self, line: Line) -> Facts:
        """The facts after a line, without reading any position on the way."""
        with self._shortening(), asked(line):
            return Walk(unasked(self.start, line)).facts()

    def _play_game(self, number: int, until: float) -> int:
        """Play a game until its end, or until time is up; give its plies."""
        rng = random.Random(f"{self.seed}/{number}")  # noqa: S311  what looks random will do
        report, taken = self.report, list[int]()
        with asked(()):
            walk = Walk(self.start)
        while True:
            line = tuple(taken)
            with self._shortening():
                look = self._look(walk, line, from_start=False)
            facts = look.facts
            self._meet(Path(taken, len(taken)), look)
            if facts.observation is not None:
                self.perspective.watch(facts.turn, facts.observation)
            if look.shared_name is not None:
                name, count = look.shared_name
                self.warned.setdefault("names", Broken("names", f"{name!r} for {count} actions", "a name each", line))
            if facts.turn == TERMINAL:
                break
            if time.monotonic() > until:
                self.perspective.end(None)
                return len(taken)
            action = rng.choices(facts.actions, facts.chances or None)[0]
            with self._shortening(), asked(line):
                if not walk.play(action):
                    raise Broken(
                        "asking", f"action {action} is legal in the first call and not in the second", "one answer"
                    )
            taken.append(action)
        outcome = facts.outcome
        self._end(tuple(taken), outcome, walk.game_object, at_random=True)
        report.games, report.plies = report.games + 1, report.plies + len(taken)
        report.results[outcome] += 1
        if self.shortest is None or len(taken) < len(self.shortest):
            self.shortest = tuple(taken)
        return len(taken)

    def _end(self, line: Line, outcome: Any, game: Any = None, *, at_random: bool) -> None:
        """Record the end of a game; `game` is its last position, if the whole game was watched."""
        shortest, longest = self.report.lengths or (len(line), len(line))
        self.report.lengths = min(shortest, len(line)), max(longest, len(line))
        final = None
        if game is not None and not self.spec.startswith(PREFIX):  # OpenSpiel prints a warning
            with contextlib.suppress(Exception):  # a game need not have an observation at its end
                final = np.asarray(game.clone().encode(), np.float32)
        self.perspective.end(outcome, final, at_random=at_random)

    def example(self) -> tuple[Shown, str] | None:
        """Return the shortest random game, and its result in words."""
        if self.shortest is None:
            return None
        with asked(self.shortest):
            return self._shown(self.shortest), unasked(self.start, self.shortest).result_text()

    def _fresh_start(self) -> None:
        """Check that a new game starts as the first one did."""
        with asked(()):
            for start in (self.start, begun(made(self.spec))):
                facts = Walk(start).facts()
                if facts != self.first:
                    got = f"a start that differs from the first one in {self.first.differences(facts)}"
                    raise Broken("start", got, "the same start")

    def _mark(self, look: Look) -> bytes:
        """A key for the walk's position: all that it shows, and the content of a game in Python."""
        content = b""
        if (game := self.walk.game_object) is not None:
            try:
                content = pickle.dumps(game)
            except Exception:  # a game that cannot be pickled is compared by what it shows
                self.opaque = True
        return digest(look.facts, look.facts.key, look.followers, content)

    @contextlib.contextmanager
    def _shortening(self) -> Iterator[None]:
        """Shorten the line of a fault, if the line still fails without some of its actions."""

        def fails(lines: tuple[Line, ...]) -> Broken | None:
            try:
                self._inspect(lines[0])
            except Broken as shorter:
                return shorter if shorter.rule == broken.rule and not isinstance(shorter, Gone) else None
            return None

        try:
            yield
        except Broken as error:
            broken = error
            # A game that is too long has no shorter line.
            raise broken if broken.rule == "length" else shrink(broken, fails) from None

    def _shortened_pair(self, broken: Broken) -> Broken:
        """Shorter lines that clash in the same way."""

        def fails(lines: tuple[Line, ...]) -> Broken | None:
            line, other = lines
            try:
                look, theirs = self._inspect(line), self._inspect(other)
            except Broken:
                return None
            found = None
            if look.facts.key == theirs.facts.key:
                found = key_clash(look, theirs) if line != other else None
            elif observed(look.facts) == observed(theirs.facts):
                found = clash(look.facts.turn, look.ends, theirs.facts.turn, theirs.ends)
            if found is None or found.rule != broken.rule:
                return None
            found.line, found.other = lines
            return found

        return shrink(broken, fails)

    def shown(self, broken: Broken) -> Broken:
        """A fault with its lines by name, and its boards."""
        broken.shown = [self._shown(line) for line in (broken.line, broken.other) if line is not None]
        return broken

    def _shown(self, line: Line) -> Shown:
        names, position, before = list[str](), getattr(self, "start", self.game), None
        try:
            position = self.start.clone()
            for ply, action in enumerate(line, 1):
                names.append(position.action_name(action))
                before = str(position) if ply == len(line) else None
                position._play(action)
        except Exception:  # the game is broken, so showing it may fail too
            names += [str(action) for action in line[len(names) :]]
        return Shown(names, before, str(position))


def _check_object(walk: Walk, start: State, facts: Facts) -> None:
    """Raise `Broken` where the object of a game in Python breaks a rule that shows in the object alone."""
    game = walk.game_object
    if game is None:
        return
    with asked():
        for name in ("num_actions", "obs_shape", "max_plies"):
            now, first = getattr(game, name), getattr(start, name)
            if (tuple(now) if name == "obs_shape" else now) != first:
                raise Broken("attributes", f"{name} {now}", f"{first}, as at the start")
        copy = game.clone()
        check_copy(game, copy)
        if facts.turn in (0, 1):
            if not isinstance(actions := copy.legal_actions(), Sequence):
                got = " ".join(f"{type(actions).__name__} {actions!r}".split())
                raise Broken("legal-type", got[:200], "a list of whole numbers")
            one, two = copy.encode(), copy.encode()
            if one.flags.writeable and np.may_share_memory(one, two):
                raise Broken("encode-own", "the same memory from two calls", "a new array each time")
        str(copy)
    for action in facts.playable[:64] if hasattr(game, "play_legal") else ():
        with asked(action=action):
            played, played_legal = game.clone(), game.clone()
            played.play(action)
            played_legal.play_legal(action)
            after, other = (Walk(State(each)).facts() for each in (played_legal, played))
            if after != other:
                got = f"play_legal and play lead to positions that differ in {after.differences(other)}"
                raise Broken("replay", got, "no difference")
