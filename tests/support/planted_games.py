"""Games with one mistake each, of the kinds that people make; `PLANTED` says which rule each of them breaks.

`SOUND` are games without a mistake. A mistake of one line stands in the table at the end. More wrong games:
test_wrong_games.py.
"""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import azpy

sys.path.append(str(Path(__file__).parents[2] / "azpy" / "checks" / "template"))

from hexapawn import Hexapawn

from small_games import Race
from sound_games import Kalah, Nim

SOUND: list[type] = [Hexapawn, Nim]
PLANTED: dict[str, str] = {}  # the class -> the rule
WARNED: dict[str, str] = {}  # the class -> the rule that it only seems to break


def noted(kind: dict[str, str], rule: str) -> Callable[[type], type]:
    def note(game: type) -> type:
        kind[game.__name__] = rule
        return game

    return note


def breaks(rule: str) -> Any:
    return noted(PLANTED, rule)


def warns(rule: str) -> Any:
    return noted(WARNED, rule)


# Outcomes and views.


class KalahAgainstTheLastToPlay(Kalah):
    """Its observation is one row of values, as flat features are, and it has none at the end."""

    obs_shape = (14, 1, 1)

    def outcome(self) -> float:
        return self.lead(1 - self.last)

    def encode(self) -> NDArray[np.float32]:
        if self.turn() == azpy.TERMINAL:
            raise RuntimeError("nobody is to move")
        return super().encode().reshape(14, 1, 1)


# Legal actions and observations.


@breaks("replay")
class StaleMask(Nim):
    mask: list[int] | None = None

    def legal_actions(self) -> list[int]:
        if self.mask is None:
            self.mask = super().legal_actions()  # and `play` does not know of it
        return self.mask


@breaks("exception")
class ForgottenCase(Nim):
    def encode(self) -> NDArray[np.float32]:
        return super().encode() if self.heaps != [0, 2, 3] else [][0]


@breaks("encode-own")
class SharedBuffer(Nim):
    buffer = np.zeros((3, 1, 1), np.float32)

    def encode(self) -> NDArray[np.float32]:
        self.buffer[:, 0, 0] = self.heaps
        return self.buffer


# Numbers that are said in turn.


class Said(azpy.Game):
    """Each says a number in turn, `max_plies` numbers in all. No number is hidden, and no game is won."""

    num_actions, obs_shape, max_plies = 2, (2, 1, 1), 40

    def __init__(self, said: tuple[int, ...] = ()) -> None:
        self.said = said

    def turn(self) -> int:
        return len(self.said) % 2 if len(self.said) < self.max_plies else azpy.TERMINAL

    def legal_actions(self) -> list[int]:
        return list(range(self.num_actions))

    def play(self, action: int) -> None:
        self.said = (*self.said, action)

    def clone(self) -> Self:
        return type(self)(self.said)

    def outcome(self) -> float:
        return 0.0

    def encode(self) -> NDArray[np.float32]:
        return np.array([len(self.said), sum(self.said)], np.float32).reshape(2, 1, 1)

    def key(self) -> int:
        return int("1" + "".join(map(str, self.said)), self.num_actions)


@breaks("key")
class KeyWithoutHistory(Said):
    """Who begins with a 1 wins. The beginning is in no board and in no key."""

    obs_shape, max_plies = (1, 1, 1), 6

    def outcome(self) -> float:
        return float(self.said[0] - self.said[1])

    def encode(self) -> NDArray[np.float32]:
        return np.full((1, 1, 1), len(self.said), np.float32)

    def key(self) -> int:
        return len(self.said)


@breaks("hidden")
class StoneScissorsPaper(Said):
    """Both choose at the same time, so player 1 does not see what player 0 has chosen."""

    num_actions, obs_shape, max_plies = 3, (1, 1, 1), 2

    def outcome(self) -> float:
        return (0.0, 1.0, -1.0)[(self.said[1] - self.said[0]) % 3]

    def encode(self) -> NDArray[np.float32]:
        return np.full((1, 1, 1), len(self.said), np.float32)


@warns("one-player")
class Patience(StoneScissorsPaper):
    def turn(self) -> int:
        return min(super().turn(), 0)

    def encode(self) -> NDArray[np.float32]:
        return np.full((1, 1, 1), self.key(), np.float32)


@warns("one-score")
class GoalOutOfReach(StoneScissorsPaper):
    num_players, max_plies = 1, 60

    def turn(self) -> int:
        return min(super().turn(), 0)

    def outcome(self) -> float:
        return 1.0 if set(self.said) == {2} else -1.0


class DeepMistake(Said):
    """The tenth 1 is one too many for `encode`. All is kept, so that no lines are alike."""

    def encode(self) -> NDArray[np.float32]:
        if sum(self.said) >= 10:
            raise RuntimeError("too many")
        return super().encode()


class DeepKey(Said):
    """The key forgets the first numbers when there are many."""

    def key(self) -> int:
        last = int("".join(map(str, self.said[-8:])) or "0", 2)
        return super().key() if len(self.said) < 16 else (len(self.said) << 16) + last


# The end.


@breaks("repeat")
class NeverEnds(azpy.Game):
    """A counter goes to and fro between three cells."""

    num_actions, obs_shape, max_plies = 2, (3, 1, 1), 100

    def __init__(self, cell: int = 1, player: int = 0) -> None:
        self.cell, self.player = cell, player

    def turn(self) -> int:
        return self.player

    def legal_actions(self) -> list[int]:
        return [way for way in (0, 1) if 0 <= self.cell + 2 * way - 1 < 3]

    def play(self, action: int) -> None:
        self.cell, self.player = self.cell + 2 * action - 1, 1 - self.player

    def clone(self) -> Self:
        return type(self)(self.cell, self.player)

    def outcome(self) -> float:
        return 0.0

    def encode(self) -> NDArray[np.float32]:
        return np.array([self.cell == cell for cell in range(3)], np.float32).reshape(3, 1, 1)

    def key(self) -> int:
        return 2 * self.cell + self.player


class Counted(NeverEnds):
    """The end after seven plies, which no observation counts."""

    last, max_plies, plies = 7, 7, 0

    def turn(self) -> int:
        return self.player if self.plies < self.last else azpy.TERMINAL

    def play(self, action: int) -> None:
        super().play(action)
        self.plies += 1

    def clone(self) -> Self:
        copy = super().clone()
        copy.plies = self.plies
        return copy

    def outcome(self) -> float:
        return self.cell - 1.0

    def key(self) -> int:
        return 6 * self.plies + super().key()


SOUND.append(Counted)


class Marathon(Counted):
    """Ten million plies: no check sees the end."""

    last, max_plies = 10_000_000, 10_000_000


# What players do not see.


@breaks("hidden")
class Kuhn(azpy.Game):
    """Kuhn poker: one card of three each, and one bet. Action 0 passes, 1 bets."""

    num_actions, obs_shape, max_plies = 2, (6, 1, 1), 4
    deals = tuple(itertools.permutations(range(3), 2))

    def __init__(self, cards: tuple[int, ...] = (), said: tuple[int, ...] = ()) -> None:
        self.cards, self.said = cards, said

    def turn(self) -> int:
        if not self.cards:
            return azpy.CHANCE
        return azpy.TERMINAL if self.said in {(0, 0), (1, 0), (1, 1), (0, 1, 0), (0, 1, 1)} else len(self.said) % 2

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(deal, 1 / 6) for deal in range(6)]

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> None:
        if self.cards:
            self.said = (*self.said, action)
        else:
            self.cards = self.deals[action]

    def clone(self) -> Self:
        return type(self)(self.cards, self.said)

    def outcome(self) -> float:
        if self.said[-2:] == (1, 0):  # whoever passes a bet has lost
            return 0.5 if len(self.said) == 2 else -0.5
        return (1.0 if self.cards[0] > self.cards[1] else -1.0) * (1 + self.said[-1]) / 2

    def encode(self) -> NDArray[np.float32]:
        own = self.cards[len(self.said) % 2]
        planes = [float(card == own) for card in range(3)] + [float(1 + said) for said in self.said]
        return np.array(planes + [0.0] * (6 - len(planes)), np.float32).reshape(6, 1, 1)

    def key(self) -> int:
        said = int("1" + "".join(map(str, self.said)), 2)
        return 7 * said + (1 + self.deals.index(self.cards) if self.cards else 0)


class SeenKuhn(Kuhn):
    """The same, which says what each player knows."""

    def view_key(self, player: int) -> Any:
        return f"{self.cards[player:][:1]} {self.said}"


SOUND.append(SeenKuhn)


@warns("hidden")
class WonUnseen(Nim):
    """Player 1 has a rule of its own, which no observation shows."""

    def play(self, action: int) -> None:
        wins = self.player == 1 and self.heaps == [1, 1, 1] and action == 0
        super().play(action)
        if wins:
            self.heaps = [0, 0, 0]


# Copies.


@breaks("clone")
class StateOnTheClass(Nim):
    board = [1, 2, 3]  # noqa: RUF012  the mistake

    def __init__(self) -> None:
        super().__init__()
        self.heaps = self.board

    def clone(self) -> Self:
        copy = type(self)()
        copy.player = self.player
        return copy


@breaks("start")
class AnotherStart(Nim):
    count = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self.heaps[2] = 3 - next(self.count) % 2

    def clone(self) -> Self:
        copy = object.__new__(type(self))
        copy.heaps, copy.player = list(self.heaps), self.player
        return copy


# The rest.


@breaks("asking")
class TakenByLooking(Nim):
    def encode(self) -> NDArray[np.float32]:
        array = super().encode()
        self.heaps[2] = max(0, self.heaps[2] - 1)
        return array


@breaks("attributes")
class MovingLimit(Nim):
    def play(self, action: int) -> None:
        super().play(action)
        self.max_plies -= 1


class Moody(Nim):
    """Now and then an action less is legal after the same play."""

    plays, odd = 0, False

    def legal_actions(self) -> list[int]:
        actions = super().legal_actions()
        return actions[:-1] if self.odd and len(actions) > 1 else actions

    def play(self, action: int) -> None:
        super().play(action)
        Moody.plays += 1
        self.odd = Moody.plays % 97 == 0

    def clone(self) -> Self:
        copy = super().clone()
        copy.odd = self.odd
        return copy


class TwoFaults(Nim):
    """Taking the last counter of the third heap is at fault, and what follows taking the first one's two plies on."""

    def encode(self) -> NDArray[np.float32]:
        return super().encode() * (np.nan if self.heaps == [1, 2, 2] else 1)

    def key(self) -> int:
        return -1 if self.heaps == [0, 1, 3] else super().key()


def _with_card_alone(game: Kuhn) -> NDArray[np.float32]:
    planes = Kuhn.encode(game)
    planes[3:] = 0
    return planes


# A game, the rule that it breaks or only seems to break, the sound game, and what is there instead of something of it.
Row = tuple[str, str, type, dict[str, Any]]
BREAKING: list[Row] = [
    ("OutcomeInPoints", "outcome", Nim, {"outcome": lambda game: 5 * Nim.outcome(game)}),
    ("OutcomeAsABool", "outcome", Nim, {"outcome": lambda game: game.player == 1}),
    ("Twice", "legal-twice", Nim, {"legal_actions": lambda game: sorted(2 * Nim.legal_actions(game))}),
    ("Float64", "encode-type", Nim, {"encode": lambda game: Nim.encode(game).astype(float)}),
    ("NegativeKey", "key-range", Nim, {"key": lambda game: -1 - Nim.key(game)}),
    ("HashedKey", "process", Nim, {"key": lambda game: hash(f"{game.heaps} {game.player}") % 2**64}),
    ("PlayersOneAndTwo", "turn", Nim, {"turn": lambda game: 1 + game.player if any(game.heaps) else azpy.TERMINAL}),
    ("ThirdPlayer", "turn", Nim, {"turn": lambda game: 2 if game.heaps == [0, 0, 1] else Nim.turn(game)}),
    ("MaxPliesTooSmall", "length", Hexapawn, {"max_plies": 5}),
    ("CoinBackwards", "chance-type", Race, {"chance_outcomes": lambda game: [(1, 0.5), (0, 0.5)]}),
    (
        *("ViewWithoutThePast", "recall", SeenKuhn),
        {"view_key": lambda game, player: str(game.cards[player:][:1]), "encode": _with_card_alone},
    ),
    ("SeesAllCards", "view", SeenKuhn, {"render_view": lambda game, player: str(game.cards)}),
    ("NamesTheOtherCard", "view", SeenKuhn, {"action_name": lambda game, action: f"{action} of {game.cards}"}),
    ("ViewAsAList", "view-type", SeenKuhn, {"view_key": lambda game, player: [*game.cards]}),
    (
        "ViewAfterTheDeal",
        "view-type",
        SeenKuhn,
        {"view_key": lambda game, player: str(game.cards) if game.cards else None},
    ),
    (
        "NoViewAfterABet",
        "view-type",
        SeenKuhn,
        {"view_key": lambda game, player: None if 1 in game.said else SeenKuhn.view_key(game, player)},
    ),
    # Searches play what nobody else does.
    ("OtherPlayLegal", "replay", Nim, {"play_legal": lambda game, action: game.play(game.legal_actions()[0])}),
]
WARNING: list[Row] = [
    # Who would go on: after the own store this is the one who has played.
    ("KalahForTheOneToMove", "sides", Kalah, {"outcome": lambda game: game.lead(game.player)}),
    ("CountedInSecret", "hidden", Counted, {"max_plies": 8}),  # its end is not that of max_plies
    ("KuhnWithoutCards", "hidden", Kuhn, {"outcome": lambda game: 0.5 - game.said[-1]}),  # but each sees a card
    ("OneName", "names", Nim, {"action_name": lambda game, action: f"take {action % 3 + 1}"}),
]
for kind, table in ((PLANTED, BREAKING), (WARNED, WARNING)):
    for name, rule, sound, instead in table:
        globals()[name] = noted(kind, rule)(type(name, (sound,), instead))
KalahForTheLastToPlay = type("KalahForTheLastToPlay", (Kalah,), {"outcome": lambda game: game.lead(game.last)})
