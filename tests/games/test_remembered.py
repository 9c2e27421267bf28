"""What Python said of a position of a game that hides something is remembered, and nothing else is."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from numpy.typing import NDArray

import azpy
from azpy import _core
from oracles import Hashed
from planted_games import Kuhn, SeenKuhn

PLENTY = 256 << 20


@pytest.fixture(autouse=True)
def _plenty() -> Iterator[None]:
    yield
    _core.remember_at_most(PLENTY)


QUESTIONS = ("turn", "legal_actions", "chance_outcomes", "outcome", "encode", "view_key")


def noted(question: str) -> Any:
    """The method of `SeenKuhn` after a call of `note`."""

    def method(game: Any, *arguments: Any) -> Any:
        game.note(" ".join((question, *map(str, arguments))))
        return getattr(SeenKuhn, question)(game, *arguments)

    return method


class Once(Exception):  # noqa: N818
    """Raised on purpose."""


class Asked(SeenKuhn):
    """Counts what it is asked, and fails where it is told to: once."""

    game = "SeenKuhn"
    counts: ClassVar[Counter[str]] = Counter()
    fails: ClassVar[set[str]] = set()

    def note(self, question: str) -> None:
        """Counts a question about a position."""
        self.counts[f"{question} {self.cards} {self.said}"] += 1
        if question in self.fails and self.said:
            self.fails.remove(question)
            raise Once(question)

    turn, legal_actions, chance_outcomes, outcome, encode, view_key = map(noted, QUESTIONS)

    def play(self, action: int) -> None:
        if "play" in self.fails:
            self.note("play")
        super().play(action)


@pytest.fixture
def start() -> azpy.State:
    """A fresh game: only its start was asked."""
    state = azpy.State(Asked())
    Asked.counts.clear()
    Asked.fails.clear()
    return state


def played(start: Any, **options: Any) -> list[bytes]:
    """The records of some games."""
    defaults: dict[str, Any] = {"slots": 8, "pipelines": 1, "games": 60, "seed": 3, "cache_positions": 0}
    with azpy.SelfPlay(start, Hashed(2), **(defaults | options)) as games:
        return [record.to_bytes() for record in sorted(games, key=lambda record: record.game_id)]


def learned(start: Any, records: list[bytes]) -> list[NDArray[Any]]:
    """A batch of all positions of the records."""
    buffer = azpy.ReplayBuffer(start)
    buffer.extend(map(azpy.GameRecord.from_bytes, records))
    return [*buffer.sample(buffer.num_positions, seed=1, in_order=True)]


def measured(start: Any) -> tuple[int, int, float]:
    game = _core.Exploitability(start)
    return game.positions, game.views, game.of(Hashed(2))


def test_a_position_is_asked_each_question_once(start: azpy.State) -> None:
    records = played(start)
    learned(start.clone(), records)
    measured(start)
    assert len(Asked.counts) > 100
    # Each of the three asks whether the game hides anything, before it remembers.
    again = {asked: count for asked, count in Asked.counts.items() if count > 1}
    assert set(again) <= {"view_key 0 () ()"}, again


def test_states_and_checks_ask_the_rules_again(start: azpy.State) -> None:
    played(start)
    Asked.counts.clear()
    for count in (1, 2):
        state = start.clone()
        state.play(0)
        assert (state.turn, state.legal_actions(), state.hides) == (0, [0, 1], True)
        assert Asked.counts["chance_outcomes () ()"] >= count
        assert Asked.counts["legal_actions (0, 1) ()"] >= count
    fickle = azpy.State(Fickle())
    played(fickle)
    walk = _core.Walk(fickle)
    walk.play(0)
    with pytest.raises(azpy.GameError, match="replay"):
        walk.look()


class Fickle(SeenKuhn):
    """Deals another first card than the action says, and another one each time."""

    dealt: ClassVar[int] = 0

    def play(self, action: int) -> None:
        Fickle.dealt += 1
        super().play((action + Fickle.dealt) % 6 if not self.cards else action)


# Positions take some 500 bytes: room for none, for a few, for most, and for all of the 55.
@pytest.mark.parametrize("room", [0, 3000, 20_000])
def test_a_full_memory_changes_no_game_batch_or_exploitability(room: int) -> None:
    expected = played(SeenKuhn())
    batch, exploitability = learned(SeenKuhn(), expected), measured(SeenKuhn())
    _core.remember_at_most(room)
    for options in ({}, {"slots": 3}, {"pipelines": 3}):
        start = azpy.State(SeenKuhn())
        assert played(start, **options) == expected
        assert played(start, **options) == expected
    for mine, theirs in zip(learned(start, expected), batch, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert measured(start) == exploitability == measured(SeenKuhn())


def test_positions_beyond_the_room_are_asked_each_time() -> None:
    _core.remember_at_most(3000)
    start = azpy.State(Asked())
    Asked.counts.clear()
    played(start)
    turns = Counter(count > 1 for asked, count in Asked.counts.items() if asked.startswith("turn"))
    assert 0 < turns[False] < 10 < turns[True]


@pytest.mark.parametrize("question", ["turn", "legal_actions", "play", "outcome", "encode", "view_key 0"])
def test_an_answer_that_failed_is_not_remembered(start: azpy.State, question: str) -> None:
    Asked.fails.add(question)
    uses: list[Callable[[], object]] = [lambda: played(start), lambda: measured(start)]
    with pytest.raises(Once, match=question):
        uses[question == "outcome"]()
    assert not Asked.fails
    assert played(start) == played(SeenKuhn())
    assert measured(start) == measured(SeenKuhn())


class Owned(SeenKuhn):
    """Breaks where two threads ask one object, as a game would that writes down what it found."""

    owner: int | None = None

    turn, legal_actions, chance_outcomes, outcome, encode, view_key = map(noted, QUESTIONS)

    def note(self, question: str) -> None:
        """Notes the thread that asks."""
        self.owner = self.owner or threading.get_ident()
        assert self.owner == threading.get_ident()
        if question == "chance_outcomes":
            time.sleep(0.01)  # the other pipelines come here too


def test_no_two_threads_ask_one_object() -> None:
    assert len(played(Owned(), pipelines=4, slots=4)) == 60


class Copied(Kuhn):
    """Kuhn poker whose view says None: it hides nothing."""

    turns: ClassVar[int] = 0

    def turn(self) -> int:
        Copied.turns += 1
        return super().turn()

    def view_key(self, player: int) -> Any:
        """See `azpy.Game`."""

    def clone(self) -> Self:
        return type(self)(self.cards, self.said)


def test_a_game_that_hides_nothing_is_asked_as_before() -> None:
    counts = []
    for _ in range(2):
        Copied.turns = 0
        played(Copied(), simulations=8)
        counts.append(Copied.turns)
    assert counts[0] == counts[1] > 1000
