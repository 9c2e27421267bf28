"""Slow, obvious twins of what azpy does fast, and what its tests share.

A *position* here is an `azpy.State` or an `azpy.Game`: the functions below hide the difference.
"""

import functools
import hashlib
import math
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import azpy
from azpy._core import OPTIONS
from azpy.game import value_width
from azpy.matches.arena import play_match
from azpy.matches.openings import Book
from azpy.matches.results import MatchResult, Round

Position = Any  # azpy.State | azpy.Game
Batch = tuple[NDArray[np.float32], NDArray[np.float32]]


# One face for both kinds of game.


def turn_of(position: Position) -> int:
    return int(position.turn if isinstance(position, azpy.State) else position.turn())


def observation_of(position: Position) -> NDArray[np.float32]:
    observation = position.observation() if isinstance(position, azpy.State) else position.encode()
    return np.ascontiguousarray(observation, dtype=np.float32)


def after(position: Position, *actions: int) -> Position:
    position = position.clone()
    for action in actions:
        position.play(action)
    return position


def random_positions(start: Position, count: int, seed: int, longest: int) -> list[tuple[list[int], Position]]:
    """Distinct positions at a player's turn with the actions that lead there, by random play."""
    rng, found = random.Random(seed), dict[int, tuple[list[int], Position]]()
    for _ in range(100 * count):
        position, actions = start.clone(), list[int]()
        for _ in range(rng.randint(0, longest)):
            turn = turn_of(position)
            if turn == azpy.TERMINAL:
                break
            choices = [a for a, _ in position.chance_outcomes()] if turn == azpy.CHANCE else position.legal_actions()
            actions.append(rng.choice(choices))
            position.play(actions[-1])
        if turn_of(position) in (0, 1):
            found.setdefault(position.key(), (actions, position))
        if len(found) == count:
            break
    return list(found.values())


def all_positions(start: Position) -> dict[int, tuple[list[int], Position]]:
    """Every reachable position of a small game without dice, by key, with one line of play that leads there."""
    found = {start.key(): (list[int](), start)}
    frontier = list(found.values())
    while frontier:
        actions, position = frontier.pop()
        if turn_of(position) == azpy.TERMINAL:
            continue
        for action in position.legal_actions():
            child = ([*actions, action], after(position, action))
            if found.setdefault(child[1].key(), child) is child:
                frontier.append(child)
    return found


class Clock:
    """Seconds that pass where a test says so."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


# Evaluators.


class Hashed:
    """Looks random, is fixed: logits and values are a hash of a row's bytes, the same in any batch and without ties."""

    def __init__(self, num_actions: int, salt: int = 0, network_id: int | None = None) -> None:
        self.num_actions, self.salt = num_actions, salt.to_bytes(8, "little")
        self.batches = list[int]()  # rows of each call; appending is atomic
        if network_id is not None:
            self.network_id = network_id

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
        self.batches.append(len(observations))
        size = 4 * (self.num_actions + 1)
        digests = [hashlib.shake_128(self.salt + row.tobytes()).digest(size) for row in observations]
        words = np.frombuffer(b"".join(digests), dtype="<u4").reshape(len(observations), -1)
        unit = (words >> 8).astype(np.float32) / np.float32(1 << 24)  # [0, 1) exactly, 24 bits
        return 3 * unit[:, 1:], np.float32(1.6) * unit[:, 0] - np.float32(0.8)


class Held(Hashed):
    """Waits for leave before it answers; says when it has been asked."""

    def __init__(self, num_actions: int = 7) -> None:
        super().__init__(num_actions)
        self.asked, self.leave = threading.Event(), threading.Event()

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
        self.asked.set()
        assert self.leave.wait(60)
        return super().evaluate_batch(observations)


class Constant:
    """Equal priors and one value for whoever is to move."""

    def __init__(self, num_actions: int, value: float = 0.0) -> None:
        self.num_actions, self.value = num_actions, value

    def evaluate_batch(self, observations: NDArray[np.float32]) -> Batch:
        rows = len(observations)
        return np.zeros((rows, self.num_actions), np.float32), np.full(rows, self.value, np.float32)


# PUCT, as a textbook has it.

Answer = tuple[dict[int, float], float]


class Answers:
    """An evaluator's priors over the legal actions and its value, one position at a time.

    The priors come from a search without simulations: the softmax is compared with numpy's in a test of its own, and
    here its last bit must not matter.
    """

    def __init__(self, evaluator: Any) -> None:
        self.evaluator, self.search = evaluator, azpy.Search(evaluator, simulations=0, eval_batch=1)
        self.known = dict[int, Answer]()

    def __call__(self, position: Position) -> Answer:
        key = position.key()
        if key not in self.known:
            result = self.search.run(position)
            _, values = self.evaluator.evaluate_batch(observation_of(position)[None])
            priors = dict(zip(result.actions.tolist(), result.priors.tolist(), strict=True))
            self.known[key] = priors, float(values[0])
        return self.known[key]


@dataclass
class Node:
    position: Position
    visits: int = 0
    total: float = 0.0  # of the values, for player 0
    own: float = 0.0  # its own evaluation, for player 0
    priors: dict[int, float] = field(default_factory=dict)
    children: dict[int, "Node"] = field(default_factory=dict)

    def child(self, action: int) -> "Node":
        if action not in self.children:
            self.children[action] = Node(after(self.position, action))
        return self.children[action]

    def visits_of(self, action: int) -> int:
        return self.children[action].visits if action in self.children else 0


@dataclass
class Puct:
    """`Q + c P sqrt(N) / (1 + n)`, one leaf at a time; N counts the node's own evaluation."""

    answers: Callable[[Position], Answer]
    c_puct: float = 1.5
    c_puct_base: float | None = None
    fpu: str | float = "zero"
    roll: Callable[[Position], int] | None = None

    def run(self, position: Position, simulations: int) -> list[int]:
        """Visits of the legal actions."""
        root = Node(position)
        for _ in range(simulations + 1):  # the first one evaluates the root
            self.simulate(root)
        return [root.visits_of(action) for action in position.legal_actions()]

    def simulate(self, node: Node) -> float:
        turn = turn_of(node.position)
        if turn == azpy.TERMINAL:
            value = float(node.position.outcome())
        elif turn == azpy.CHANCE:
            assert self.roll is not None
            value = self.simulate(node.child(self.roll(node.position)))
        elif not node.priors:
            node.priors, value = self.answers(node.position)
            node.own = value = value if turn == 0 else -value
        else:
            value = self.simulate(node.child(self.select(node, 1 if turn == 0 else -1)))
        node.visits += 1
        node.total += value
        return value

    def select(self, node: Node, sign: int) -> int:
        c, fpu = self.c_puct, 0.0
        if self.c_puct_base is not None:
            c += math.log((1 + node.visits + self.c_puct_base) / self.c_puct_base)
        if self.fpu != "zero":
            fpu = sign * node.total / node.visits
        if isinstance(self.fpu, float):
            tried = 0.0
            for action in sorted(node.children):  # one by one: from Python 3.12 on `sum` rounds better than a loop
                tried += node.priors[action]
            fpu -= self.fpu * math.sqrt(tried)
        scores = dict[int, float]()
        for action, prior in node.priors.items():
            child = node.children.get(action)
            q, n = (sign * child.total / child.visits, child.visits) if child else (fpu, 0)
            scores[action] = q + c * math.sqrt(node.visits) * prior / (1 + n)
        return max(scores, key=scores.__getitem__)  # the first of equals: the lowest action


# Exact play.


class Solver:
    """Exact values by plain recursion, for games small enough; dice are averaged."""

    def __init__(self) -> None:
        self.known = dict[int, float]()

    def value(self, position: Position) -> float:
        """For player 0."""
        key = position.key()
        if key not in self.known:
            turn = turn_of(position)
            if turn == azpy.TERMINAL:
                self.known[key] = position.outcome()
            elif turn == azpy.CHANCE:
                outcomes = position.chance_outcomes()
                self.known[key] = sum(p * self.value(after(position, o)) for o, p in outcomes)
            else:
                best = max(self.actions(position).values())
                self.known[key] = best if turn == 0 else -best
        return self.known[key]

    def actions(self, position: Position) -> dict[int, float]:
        """Values of the legal actions for the player to move."""
        sign = 1 if turn_of(position) == 0 else -1
        return {a: sign * self.value(after(position, a)) for a in position.legal_actions()}


# Games in Python.


class Countdown(azpy.Game):
    """Take one or two counters (action + 1); who takes the last one wins.

    With `turns=2` a player takes twice before the other does; with `passes=1` each may pass once (action 2).
    """

    num_actions, obs_shape, max_plies = 3, (4, 1, 1), 100

    def __init__(self, heap: int, player: int = 0, *, turns: int = 1, passes: int = 0) -> None:
        self.heap, self.player, self.turns, self.left = heap, player, turns, turns
        self.passes = [passes, passes]

    def turn(self) -> int:
        return self.player if self.heap else azpy.TERMINAL

    def legal_actions(self) -> list[int]:
        return list(range(min(2, self.heap))) + [2] * (self.passes[self.player] > 0)

    def play(self, action: int) -> None:
        assert action in self.legal_actions(), action
        if action == 2:
            self.passes[self.player] -= 1
        else:
            self.heap -= action + 1
        self.left -= 1
        if self.left == 0 and self.heap:
            self.player, self.left = 1 - self.player, self.turns

    def clone(self) -> Self:
        copy = type(self)(self.heap, self.player, turns=self.turns)
        copy.left, copy.passes = self.left, list(self.passes)
        return copy

    def outcome(self) -> float:
        return 1.0 if self.player == 0 else -1.0  # the turn stays with who emptied the heap

    def encode(self) -> NDArray[np.float32]:
        mine, theirs = self.passes[self.player], self.passes[1 - self.player]
        return np.array([self.heap, self.left, mine, theirs], np.float32).reshape(4, 1, 1)

    def key(self) -> int:
        key = self.heap
        for part in (self.player, self.turns, self.left, *self.passes):
            key = 4 * key + part
        return key


class DiceCountdown(azpy.Game):
    """Roll 1, 2 or 3 (outcome + 1), take at most that many counters (action + 1); who takes the last one wins."""

    num_actions, obs_shape, max_plies = 3, (2, 1, 1), 200

    def __init__(self, heap: int, player: int = 0, roll: int = 0) -> None:
        self.heap, self.player, self.roll = heap, player, roll

    def turn(self) -> int:
        if self.heap == 0:
            return azpy.TERMINAL
        return self.player if self.roll else azpy.CHANCE

    def legal_actions(self) -> list[int]:
        return list(range(min(self.roll, self.heap)))

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(0, 0.5), (1, 0.25), (2, 0.25)]

    def play(self, action: int) -> None:
        if self.roll == 0:
            self.roll = action + 1
        else:
            assert action in self.legal_actions(), action
            self.heap, self.player, self.roll = self.heap - action - 1, 1 - self.player, 0

    def clone(self) -> Self:
        return type(self)(self.heap, self.player, self.roll)

    def outcome(self) -> float:
        return 1.0 if self.player == 1 else -1.0

    def encode(self) -> NDArray[np.float32]:
        return np.array([self.heap, self.roll], np.float32).reshape(2, 1, 1)

    def key(self) -> int:
        return (self.heap * 4 + self.roll) * 2 + self.player


class Wrapped(azpy.Game):
    """Any position seen as a game written in Python. `rolls` collects the chance outcomes taken by all its clones."""

    def __init__(self, position: Position, rolls: list[int] | None = None) -> None:
        self.position, self.rolls = position, [] if rolls is None else rolls
        self.num_actions, self.obs_shape, self.max_plies = position.num_actions, position.obs_shape, position.max_plies

    def turn(self) -> int:
        return turn_of(self.position)

    def legal_actions(self) -> list[int]:
        return list(self.position.legal_actions())

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return list(self.position.chance_outcomes())

    def play(self, action: int) -> None:
        if self.turn() == azpy.CHANCE:
            self.rolls.append(action)
        self.position.play(action)

    def clone(self) -> Self:
        return type(self)(self.position.clone(), self.rolls)

    def outcome(self) -> float:
        return float(self.position.outcome())

    def encode(self) -> NDArray[np.float32]:
        return observation_of(self.position)

    def key(self) -> int:
        return int(self.position.key())


def replayed(rolls: Sequence[int]) -> Callable[[Position], int]:
    """Rolls that come as they came before."""
    coming: Iterator[int] = iter(rolls)
    return lambda _: next(coming)


# Where the usual board is large: a plain recursion takes as long as there are actions.
SMALL: dict[str, dict[str, Any]] = {
    "blokus": {"size": 5},
    "breakthrough": {"width": 3, "height": 4},
    "chess": {"encoding": "az18", "max_plies": 40},
    "chinese_checkers": {"max_turns": 10},
    "game2048": {"size": 3, "target": 64},
    "go": {"size": 5},
    "gomoku": {"size": 5, "k": 4},
    "hex": {"size": 4, "swap": 1},
    "othello": {"size": 4},
    "peg_solitaire": {"board": "triangle"},
    "wall_game": {"width": 3, "height": 3},
}


@functools.cache
def game_starts() -> dict[str, Position]:
    """A start of every game in the tests that is searched and whose value is one number, dice rolled at its start."""
    starts: dict[str, Position] = {name: azpy.make_game(name, **SMALL.get(name, {})) for name in azpy.list_games()}
    starts = {name: start for name, start in starts.items() if value_width(start) == 1 and not start.hides}
    starts["connect_four 5x4, 3 in a row"] = azpy.make_game("connect_four", width=5, height=4, k=3)
    starts |= {
        "countdown": Countdown(12),
        "countdown, double turns": Countdown(13, player=1, turns=2),
        "countdown, a pass each": Countdown(11, passes=1),
        "countdown, dice": DiceCountdown(15, roll=2),
    }
    for start in starts.values():
        while turn_of(start) == azpy.CHANCE:
            start.play(start.chance_outcomes()[-1][0])
    return starts


def pairs_of(*outcomes: tuple[float, float]) -> MatchResult:
    """A match of two players by what player A got in each pair of games, first in seat 0."""
    pairs = (Round(((first, -first), (second, -second)), ((), ())) for first, second in outcomes)
    return MatchResult(tuple(pairs))


def whole_match(start: Any, a: Any, b: Any, games: int, seed: int = 0, opening_plies: int = 4) -> MatchResult:
    """A match from random openings, without an end of its time."""
    result = play_match(Book(start, opening_plies, seed), a, b, games, seed)
    assert result is not None
    return result


def another(name: str) -> Any:
    """A value of an option of the core that is not its default."""
    row = OPTIONS[name]
    if row["kind"] is bool:
        return not row["in_self_play"]
    return row["kind"]((row["low"] + min(row["high"], 58)) / 2)


def forced(games: list[Position]) -> list[tuple[Position, int]]:
    """Positions reachable from the given ones where exactly one action wins by force and the others lose."""
    solver, found, seen = Solver(), list[tuple[Position, int]](), set[int]()
    while games:
        position = games.pop()
        if position.key() in seen or turn_of(position) == azpy.TERMINAL:
            continue
        seen.add(position.key())
        chance = turn_of(position) == azpy.CHANCE
        actions = [o for o, _ in position.chance_outcomes()] if chance else position.legal_actions()
        for action in actions:
            games.append(position.clone())
            games[-1].play(action)
        if chance or len(actions) < 2:
            continue
        values = solver.actions(position)
        winning = [action for action, value in values.items() if value == 1]
        if len(winning) == 1 and sum(values.values()) == 1 - (len(values) - 1):
            found.append((position, winning[0]))
    return found


VARIANTS: dict[str, list[Position]] = {
    "plain": [Countdown(8, player) for player in (0, 1)],
    "double turns": [Countdown(10, player, turns=2) for player in (0, 1)],
    "passes": [Countdown(6, player, passes=1) for player in (0, 1)],
}
