"""Levels of a player in words, from "beginner" to "full strength", and how strong each is.

A player's *ladder* is its ways to play, from the weakest to the strongest, each with its Elo above the first one. The
weakest ways are the network alone: one simulation, and actions drawn by the prior to the power 1/temperature. Then
come searches with four times the simulations of the one before. `Calibration` measures the ladder of a run by matches
between neighbours, and stores it with the run. The Elo steps between the levels are equal. An *anchor*, a player whose
Elo is known, plays against the steps that are about as strong. Then the ladder counts from that Elo.
"""

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from azpy.errors import RunError
from azpy.matches.arena import MATCH_SLOTS, Follower, Player, SearchPlayer, play_rounds
from azpy.matches.openings import Book, mix
from azpy.matches.ratings import PAIR_SCORES, bradley_terry
from azpy.matches.results import MatchResult
from azpy.runs import storage
from azpy.system import lock_folder

LEVELS = ("beginner", "novice", "casual", "intermediate", "strong", "expert", "full strength")
FULL_STRENGTH = 800  # simulations, unless a player names a number
_WARM = (4.0, 2.0, 1.0)  # temperatures of the network alone
_TIMES = 4  # as many simulations as one step below
_STEP = 100.0  # Elo of a step that was not measured
LADDER = "ladder.json"  # in the run folder
_GROUP = 5  # pairs of games in play at a time; a group that is stopped does not count, see `play_match`
WARMEST = 10.0  # temperature
_MOST_SIMULATIONS = 2**32 - 1
_MOST_ELO = 1e6  # that a ladder can hold


@dataclass(frozen=True)
class Level:
    """A way to play."""

    simulations: int  # of a move, each with a tree of its own; 1 is the network alone
    temperature: float  # of the actions played, see `SearchPlayer`
    elo: float  # above the first level of the ladder, or on the scale of the ladder's anchor


@dataclass(frozen=True)
class Ladder:
    """Ways to play by their Elo: each is stronger than the one before. Without an anchor the first one is 0."""

    steps: tuple[Level, ...]
    network: str | None = None  # the hash of the model that was measured; None: nothing was, and `elo` says nothing
    iteration: int | None = None  # of that model
    anchor: str | None = None  # the player from whose known Elo the ladder counts

    def at(self, elo: float) -> Level:
        """The way to play with this Elo, or the nearest one there is; between two steps as far as `elo` is."""
        elo = min(max(elo, self.steps[0].elo), self.steps[-1].elo)
        below = max(step for step in range(len(self.steps)) if self.steps[step].elo <= elo)
        low, high = self.steps[below], self.steps[min(below + 1, len(self.steps) - 1)]
        share = (elo - low.elo) / (high.elo - low.elo) if high is not low else 0.0
        # Elo grows about as the logarithm of simulations does.
        simulations = round(low.simulations * (high.simulations / low.simulations) ** share)
        temperature = round(low.temperature + share * (high.temperature - low.temperature), 2)
        return Level(simulations, temperature, elo)

    @cached_property
    def levels(self) -> dict[str, Level]:
        """The levels by their words `LEVELS`, from the weakest to the strongest."""
        low, top = self.steps[0].elo, self.steps[-1].elo
        return {word: self.at(low + (top - low) * step / (len(LEVELS) - 1)) for step, word in enumerate(LEVELS)}

    def about(self, network: str | None) -> str:
        """A sentence on what the Elo of its levels is worth for a player with this network."""
        if self.network is None:
            return "These levels are not calibrated: az-match --calibrate RUN measures them in games of two players."
        of = "this network" if network == self.network else f"the network of iteration {self.iteration}"
        scale = f" Their Elo counts from that of {self.anchor}." if self.anchor else ""
        return f"These levels were calibrated with {of}.{scale}"


def level_word(text: str) -> str | None:
    """The level of `LEVELS` that a text names, in any case and with - or _ for a blank; None if there is none."""
    word = text.strip().lower().replace("-", " ").replace("_", " ")
    return word if word in LEVELS else None


def _ways(simulations: int, has_model: bool) -> list[tuple[int, float]]:
    """Simulations and temperature of each step; `simulations` are those of full strength."""
    counts, count = list[int](), 1
    while 2 * count <= simulations:
        counts.append(count)
        count *= _TIMES
    warm = [(1, temperature) for temperature in _WARM if has_model]  # without a network the prior is even
    return [*warm, *((count, 0.0) for count in (*counts, simulations))]


def plain_ladder(simulations: int, has_model: bool) -> Ladder:
    """The ladder of a player that was not calibrated; `simulations` are those of full strength."""
    ways = _ways(simulations, has_model)
    return Ladder(tuple(Level(*way, elo=_STEP * step) for step, way in enumerate(ways)))


def ladder_of(run: Path | None, simulations: int, has_model: bool) -> Ladder:
    """Return the ladder that is stored with a run, up to so many simulations; without one that of `plain_ladder`.

    Raises:
        RunError: the stored ladder cannot be read.
    """
    facts, steps, anchor = ({}, [], None) if run is None else _read(run / LADDER)
    if not steps or any(step.elo is None for step in steps):
        return plain_ladder(simulations, has_model)
    kept = list[Level]()
    # Leave out each step that is at least as strong as a step with more simulations.
    for step in reversed(steps):
        if not kept or float(step.elo or 0) < kept[0].elo:
            kept.insert(0, Level(step.simulations, step.temperature, float(step.elo or 0)))
    zero, counts_from = kept[0].elo, None
    if anchor is not None and anchor.above is not None and anchor.is_bounded:
        zero, counts_from = anchor.above - anchor.elo, anchor.player
    kept = [replace(step, elo=step.elo - zero) for step in kept]
    ladder = Ladder(tuple(kept), str(facts["network"]), int(facts["iteration"]), counts_from)
    within = [step for step in kept if step.simulations <= simulations]
    if not within:
        within = [replace(kept[0], simulations=simulations)]
    elif len(within) < len(kept) and within[-1].simulations < simulations:
        low, high = within[-1], kept[len(within)]
        share = math.log(simulations / low.simulations) / math.log(high.simulations / low.simulations)
        within.append(replace(ladder.at(low.elo + share * (high.elo - low.elo)), simulations=simulations))
    return replace(ladder, steps=tuple(within))


@dataclass
class Step:
    """A step of a ladder as it is stored."""

    simulations: int
    temperature: float
    pairs: list[int]  # of games against the step before, with each of `PAIR_SCORES`; all 0 in the first step
    elo: float | None = None  # above the first step; None before all steps have played
    low: float | None = None  # the 95 % interval of `elo`; None where nothing bounds it
    high: float | None = None


@dataclass
class Anchor:
    """A player whose Elo is known, and its games against the steps of a ladder, as they are stored."""

    player: str
    elo: float
    pairs: list[list[int]] = field(default_factory=list)  # of games of each step against it, see `Step`
    above: float | None = None  # its Elo above the first step; None before it has played
    low: float | None = None  # the 95 % interval of `above`; None where nothing bounds it
    high: float | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether it was seen to win and to lose, so that it can set the scale."""
        return self.low is not None and self.high is not None


@contextmanager
def alone(run: Path) -> Iterator[None]:
    """Lock out other calibrations of a run: they would play the same games and overwrite the results.

    Raises:
        RunError: another process measures the run, or the folder cannot be locked.
    """
    with storage.disk_errors(run):
        try:
            # ladder.json itself is replaced, and the run folder belongs to az-train.
            descriptor = lock_folder(run / "checkpoints")
        except BlockingIOError:
            raise RunError(f"another az-match --calibrate is measuring {run}: wait until it ends") from None
    try:
        yield
    finally:
        os.close(descriptor)


class Calibration:
    """Measures the ladder of a run's player. What was played before counts, if it was the same player.

    Args:
        run: the run's folder.
        evaluator: of the run's network.
        options: of `Search`, as az-engine and az-play have it search.
        book: the openings.
        simulations: of full strength.
        facts: game, iteration, network, seed and opening_plies: what the games depend on besides.
        anchor: a player whose Elo is known, its name, and that Elo; without one the games of a stored anchor stay.
        slots: games in play at a time.

    Raises:
        RunError: a stored ladder that cannot be read; in `play` also an anchor that breaks its protocol or the rules.

    Attributes:
        steps: from the weakest to the strongest.
        anchor: the player from whose Elo they count, if there is one.
    """

    def __init__(
        self,
        run: Path,
        evaluator: Any,
        options: dict[str, Any],
        book: Book,
        simulations: int,
        facts: dict[str, Any],
        anchor: tuple[Player | Follower, str, float] | None = None,
        slots: int = MATCH_SLOTS,
    ) -> None:
        self._path, self._book, self._facts, self._slots = run / LADDER, book, facts, slots
        ways = _ways(simulations, has_model=True)
        self._players: list[Player | Follower] = [SearchPlayer(evaluator, *way, **options) for way in ways]
        before, self.steps, self.anchor = _read(self._path)
        if before != facts:
            self.steps, self.anchor = [], None
        # With another number of simulations at full strength the first steps stay the same.
        both = zip(self.steps, ways, strict=False)
        self.steps = [step for step, way in both if (step.simulations, step.temperature) == way]
        same = len(self.steps)
        self.steps += [Step(*way, pairs=[0] * len(PAIR_SCORES)) for way in ways[same:]]
        self._is_anchored = anchor is not None
        if anchor is not None:
            player, name, elo = anchor
            self._players.append(player)
            if self.anchor is None or (self.anchor.player, self.anchor.elo) != (name, elo):
                self.anchor, same = Anchor(name, elo), 0
        if self.anchor is not None:
            self.anchor.pairs = [*self.anchor.pairs[:same], *([0] * len(PAIR_SCORES) for _ in ways[same:])]

    @property
    def played(self) -> int:
        """Pairs of games so far."""
        return sum(sum(step.pairs) for step in self.steps) + self._met

    @property
    def _met(self) -> int:
        """Pairs of games of the anchor."""
        return 0 if self.anchor is None else sum(map(sum, self.anchor.pairs))

    def left(self, pairs: int) -> int:
        """Pairs to play until each step and the anchor have so many."""
        done = [*(sum(step.pairs) for step in self.steps[1:]), *([self._met] if self._is_anchored else [])]
        return sum(max(0, pairs - each) for each in done)

    def play(self, pairs: int, seconds_left: Callable[[], float]) -> Iterator[tuple[Step, str]]:
        """Play until each step has so many pairs, or time is over. Each group of games is stored at once.

        The step with the fewest pairs goes first, so that all have about as many where time ends. Then the anchor meets
        the steps that are about as strong, until it has so many pairs too.

        Yields:
            The step that played, and against whom; what is stored is whole meanwhile.
        """
        while seconds_left() > 0 and self.left(pairs):
            index = min(range(1, len(self.steps)), key=lambda step: sum(self.steps[step].pairs), default=0)
            counts, done, other = self.steps[index].pairs, sum(self.steps[index].pairs), index - 1
            against = "the step below"
            if self.anchor is not None and (index == 0 or done >= pairs):
                index, other, done = self._nearest(), len(self.steps), self._met
                counts, against = self.anchor.pairs[index], self.anchor.player
            group, players = min(_GROUP, pairs - done), (self._players[index], self._players[other])
            seed = mix(int(self._facts["seed"]), max(index, other), done)
            rounds = play_rounds(
                self._book, players, group, seed, self._slots, first=done, may_go_on=lambda: seconds_left() > 0
            )
            found = list(rounds)
            if fault := next((fault for one in found for fault in one.faults[1]), None):
                raise RunError(f"{against} {fault.text} (transcript {fault.transcript}): these games do not count")
            if len(found) < group:
                return
            counts[:] = [sum(both) for both in zip(counts, MatchResult(tuple(found)).counts, strict=True)]
            self._rate()
            content = {**self._facts, "steps": [asdict(one) for one in self.steps]}
            content |= {} if self.anchor is None else {"anchor": asdict(self.anchor)}
            storage.write_atomically(self._path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())
            yield self.steps[index], against

    def _nearest(self) -> int:
        """The step that is about as strong as the anchor; the middle one before the anchor has played."""
        if self.anchor is None or self.anchor.above is None:
            return len(self.steps) // 2
        above = self.anchor.above
        return min(range(len(self.steps)), key=lambda step: abs((self.steps[step].elo or 0.0) - above))

    def _rate(self) -> None:
        """Give each step and the anchor its Elo, once all steps have played."""
        if not all(sum(step.pairs) for step in self.steps[1:]):
            return
        matches = [(index, index - 1, step.pairs) for index, step in enumerate(self.steps) if index]
        if self.anchor is not None:
            last = len(self.steps)
            matches += [(index, last, pairs) for index, pairs in enumerate(self.anchor.pairs) if sum(pairs)]
        ratings = bradley_terry(len(self.steps) + (self._met > 0), matches)
        ends = [[end if math.isfinite(end) else None for end in (one.low, one.high)] for one in ratings]
        for step, rating, (low, high) in zip(self.steps, ratings, ends, strict=False):
            step.elo, step.low, step.high = rating.elo, low, high
        if self.anchor is not None and self._met:
            self.anchor.above, (self.anchor.low, self.anchor.high) = ratings[-1].elo, ends[-1]


def _read(path: Path) -> tuple[dict[str, Any], list[Step], Anchor | None]:
    """What was played (game, iteration, network, seed, opening_plies) and found; empty without a file.

    Raises:
        RunError: the file cannot be read or is invalid.
    """
    try:
        if not isinstance(facts := json.loads(storage.read_regular(path)), dict):
            raise ValueError("it is not an object")
        steps, anchor = [Step(**step) for step in facts.pop("steps", [])], facts.pop("anchor", None)
        anchor = None if anchor is None else Anchor(**anchor)
        if not (steps and isinstance(facts.get("network"), str) and type(facts.get("iteration")) is int):
            raise ValueError("steps, network or iteration is missing or invalid")
        if wrong := next(filter(None, map(_wrong_in, steps)), "") or _wrong_with(anchor, len(steps)):
            raise ValueError(wrong)
        if (counts := [step.simulations for step in steps]) != sorted(counts):
            raise ValueError(
                f"its steps have {counts!r:.80} simulations, expected each to have at least as many as the one before"
            )
    except FileNotFoundError:
        return {}, [], None
    except OSError as error:
        raise storage.refused(path, error) from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        hint = f"delete it and run az-match --calibrate {path.parent} again"
        raise RunError(f"{path} is damaged: {error}; {hint}") from error
    return facts, steps, anchor


def _wrong_in(step: Step) -> str:
    """What is wrong with a step from the file; empty if nothing is."""
    if type(step.simulations) is not int or not 1 <= step.simulations <= _MOST_SIMULATIONS:
        return f"simulations is {step.simulations!r:.80}"
    if type(step.temperature) not in (int, float) or not 0 <= step.temperature <= WARMEST:
        return f"temperature is {step.temperature!r:.80}"
    return _wrong_pairs(step.pairs) or _wrong_numbers(step, "elo", "low", "high")


def _wrong_with(anchor: Anchor | None, steps: int) -> str:
    """What is wrong with the anchor from the file of so many steps; empty if nothing is."""
    if anchor is None:
        return ""
    if type(anchor.player) is not str or type(anchor.elo) not in (int, float):
        return f"the anchor is {anchor.player!r:.80} with {anchor.elo!r:.80} Elo"
    if not isinstance(anchor.pairs, list) or len(anchor.pairs) != steps:
        return f"pairs of the anchor is {anchor.pairs!r:.80}, expected a list for each of {steps} steps"
    wrong = next(filter(None, map(_wrong_pairs, anchor.pairs)), "")
    return wrong or _wrong_numbers(anchor, "elo", "above", "low", "high")


def _wrong_pairs(pairs: Any) -> str:
    are_counts = isinstance(pairs, list) and [type(count) for count in pairs] == [int] * len(PAIR_SCORES)
    return "" if are_counts and 0 <= min(pairs) <= max(pairs) <= _MOST_SIMULATIONS else f"pairs is {pairs!r:.80}"


def _wrong_numbers(of: Step | Anchor, *names: str) -> str:
    for name in names:
        value = getattr(of, name)
        if value is not None and (type(value) not in (int, float) or not abs(value) <= _MOST_ELO):
            return f"{name} is {value!r:.80}"
    return ""
