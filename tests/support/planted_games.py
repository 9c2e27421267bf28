"""Games with one mistake each, of the kinds that people make; `PLANTED` says which rule each of them breaks.

`SOUND` are games without a mistake.
"""

import itertools
import random
import sys
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import azpy

sys.path.append(str(Path(__file__).parents[2] / "examples" / "hexapawn"))

from hexapawn import Hexapawn

from sound_games import Kalah, Line, LongLine, Nim, Throws, TicTacToe

SOUND: list[type] = [Hexapawn, Line, LongLine, Nim, Throws]
PLANTED: dict[str, str] = {}  # the class -> the rule
WARNED: dict[str, str] = {}  # the class -> the rule that it only seems to break


def breaks(rule: str) -> Any:
    def note(game: type) -> type:
        PLANTED[game.__name__] = rule
        return game

    return note


def warns(rule: str) -> Any:
    def note(game: type) -> type:
        WARNED[game.__name__] = rule
        return game

    return note


# Outcomes and views.


@warns("one-sided")
class OutcomeForTheLastToPlay(Hexapawn):
    def outcome(self) -> float:
        return 1.0  # who has played last has won


@breaks("perspective")
class OutcomeForTheOneToMove(Nim):
    def outcome(self) -> float:
        return -1.0  # who would be to move has lost


@breaks("outcome")
class OutcomeInPoints(Nim):
    def outcome(self) -> float:
        return 5 * super().outcome()


@warns("one-sided")
class LossIsZero(TicTacToe):
    def outcome(self) -> float:
        return {-1: 0.5, 0: 1.0, 1: 0.0}[self.winner()]


@breaks("outcome")
class OutcomeAsABool(Line):
    def outcome(self) -> float:
        return 0.5 if self.winner() < 0 else self.winner() == 0


@warns("one-view")
class SeenByPlayerZero(LongLine):
    num_actions, obs_shape, max_plies = 12, (2, 1, 12), 12

    def __init__(self) -> None:
        self.cells = (-1,) * 12

    def winner(self) -> int:
        rows = [set(self.cells[first : first + 3]) for first in range(10)]
        return next((player for player in (0, 1) if {player} in rows), -1)

    def legal_actions(self) -> list[int]:
        return [cell for cell in range(12) if self.cells[cell] < 0]

    def encode(self) -> NDArray[np.float32]:
        return self.planes(0)


@warns("sides")
class KalahForTheOneToMove(Kalah):
    def outcome(self) -> float:
        return self.lead(self.player)  # who would go on: after the own store this is the one who has played


class KalahForTheLastToPlay(Kalah):
    def outcome(self) -> float:
        return self.lead(self.last)


class KalahAgainstTheLastToPlay(KalahForTheLastToPlay):
    """Its observation is one row of values, as flat features are, and it has none at the end."""

    obs_shape = (14, 1, 1)

    def outcome(self) -> float:
        return self.lead(1 - self.last)

    def encode(self) -> NDArray[np.float32]:
        if self.turn() == azpy.TERMINAL:
            raise RuntimeError("nobody is to move")
        return super().encode().reshape(14, 1, 1)


# Legal actions.


@breaks("legal-order")
class Unsorted(Nim):
    def legal_actions(self) -> list[int]:
        return super().legal_actions()[::-1]


@breaks("legal-twice")
class Twice(Nim):
    def legal_actions(self) -> list[int]:
        return sorted([*super().legal_actions(), super().legal_actions()[0]])


@breaks("legal-range")
class PolicyTooSmall(Nim):
    num_actions = 8


@breaks("legal-none")
class NoMoveAndNoEnd(Hexapawn):
    def turn(self) -> int:
        return azpy.TERMINAL if self.theirs & {6, 7, 8} else self.player


@breaks("legal-type")
class MaskOfActions(Line):
    def legal_actions(self) -> list[int]:
        return [cell < 0 for cell in self.cells]


@breaks("legal-type")
class LegalArray(Nim):
    def legal_actions(self) -> Any:
        return np.array(super().legal_actions())


@breaks("replay")
class StaleMask(Nim):
    mask: list[int] | None = None

    def legal_actions(self) -> list[int]:
        if self.mask is None:
            self.mask = super().legal_actions()  # and `play` does not know of it
        return self.mask


# Observations.


@breaks("encode-type")
class Float64(Nim):
    def encode(self) -> Any:
        return np.array(self.heaps, float).reshape(3, 1, 1)


@breaks("encode-type")
class Flat(Nim):
    def encode(self) -> NDArray[np.float32]:
        return super().encode().ravel()


@breaks("encode-finite")
class DividedByNothing(Nim):
    def encode(self) -> NDArray[np.float32]:
        with np.errstate(all="ignore"):
            return super().encode() / np.float32(self.heaps[0])


@breaks("encode-own")
class SharedBuffer(Nim):
    buffer = np.zeros((3, 1, 1), np.float32)

    def encode(self) -> NDArray[np.float32]:
        self.buffer[:, 0, 0] = self.heaps
        return self.buffer


# Keys.


@breaks("key")
class KeyWithoutTurn(Nim):
    def key(self) -> int:
        return super().key() // 2


@breaks("key")
class KeyWithoutHistory(azpy.Game):
    """Each says a number three times; who begins with a 1 wins. The beginning is in no board and in no key."""

    num_actions, obs_shape, max_plies = 2, (1, 1, 1), 6

    def __init__(self) -> None:
        self.said: list[int] = []

    def turn(self) -> int:
        return len(self.said) % 2 if len(self.said) < 6 else azpy.TERMINAL

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> None:
        self.said.append(action)

    def clone(self) -> Self:
        copy = type(self)()
        copy.said = list(self.said)
        return copy

    def outcome(self) -> float:
        return float(self.said[0] - self.said[1])

    def encode(self) -> NDArray[np.float32]:
        return np.full((1, 1, 1), len(self.said), np.float32)

    def key(self) -> int:
        return len(self.said)


@breaks("key-range")
class NegativeKey(Nim):
    def key(self) -> int:
        return -1 - super().key()


@breaks("process")
class HashedKey(Nim):
    def key(self) -> int:
        return hash(f"{self.heaps} {self.player}") % 2**64


@breaks("clone")
class KeyOfTheObject(Nim):
    def key(self) -> int:
        return id(self)


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
    """A draw after six plies, which no observation counts."""

    max_plies, plies = 6, 0

    def turn(self) -> int:
        return self.player if self.plies < 6 else azpy.TERMINAL

    def play(self, action: int) -> None:
        super().play(action)
        self.plies += 1

    def clone(self) -> Self:
        copy = super().clone()
        copy.plies = self.plies
        return copy

    def key(self) -> int:
        return 7 * super().key() + self.plies


SOUND.append(Counted)


@warns("hidden")
class CountedInSecret(Counted):
    """Its end is not that of max_plies."""

    max_plies = 7


# What players do not see, and who plays.


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

    def seen(self) -> tuple[int, ...]:
        return (self.cards[len(self.said) % 2],)

    def encode(self) -> NDArray[np.float32]:
        planes = [float(card in self.seen()) for card in range(3)] + [float(1 + said) for said in self.said]
        return np.array(planes + [0.0] * (6 - len(planes)), np.float32).reshape(6, 1, 1)

    def key(self) -> int:
        said = int("1" + "".join(map(str, self.said)), 2)
        return 7 * said + (1 + self.deals.index(self.cards) if self.cards else 0)


@warns("hidden")
class KuhnForNothing(Kuhn):
    """No action wins, but each player sees another card next."""

    def outcome(self) -> float:
        return 0.0


@breaks("hidden")
class StoneScissorsPaper(azpy.Game):
    """Both choose at the same time, so player 1 does not see what player 0 has chosen."""

    num_actions, obs_shape, max_plies = 3, (1, 1, 1), 2

    def __init__(self, said: tuple[int, ...] = ()) -> None:
        self.said = said

    def turn(self) -> int:
        return len(self.said) if len(self.said) < 2 else azpy.TERMINAL

    def legal_actions(self) -> list[int]:
        return [0, 1, 2]

    def play(self, action: int) -> None:
        self.said = (*self.said, action)

    def clone(self) -> Self:
        return type(self)(self.said)

    def outcome(self) -> float:
        return (0.0, 1.0, -1.0)[(self.said[1] - self.said[0]) % 3]

    def encode(self) -> NDArray[np.float32]:
        return np.full((1, 1, 1), len(self.said), np.float32)

    def key(self) -> int:
        return int("1" + "".join(map(str, self.said)), 4)


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
        return 0 if len(self.said) < 60 else azpy.TERMINAL

    def outcome(self) -> float:
        return 1.0 if set(self.said) == {2} else -1.0


@breaks("turn")
class PlayersOneAndTwo(Nim):
    def turn(self) -> int:
        turn = super().turn()
        return turn + 1 if turn >= 0 else turn


@breaks("length")
class MaxPliesTooSmall(Hexapawn):
    max_plies = 5


# Chance.


@breaks("chance-sum")
class LoadedCoin(Throws):
    def chance_outcomes(self) -> list[tuple[int, float]]:
        return [(0, 0.25), (1, 0.25)]


@breaks("chance-type")
class CoinBackwards(Throws):
    def chance_outcomes(self) -> list[tuple[int, float]]:
        return super().chance_outcomes()[::-1]


@breaks("replay")
class ChanceInPlay(Nim):
    def play(self, action: int) -> None:
        super().play(action)
        if self.heaps[1] and random.random() < 0.5:
            self.heaps[1] -= 1


# Copies.


@breaks("clone")
class AliasingClone(Nim):
    def clone(self) -> Self:
        copy = super().clone()
        copy.heaps = self.heaps
        return copy


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


@breaks("clone")
class NoCopy(Nim):
    def clone(self) -> Self:
        return self


@breaks("clone")
class ForgetfulClone(Nim):
    def clone(self) -> Self:
        copy = super().clone()
        copy.player = 0
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


@breaks("attributes")
class NoShape(Nim):
    obs_shape = (3,)  # type: ignore[assignment]


@breaks("turn")
class ThirdPlayer(Nim):
    def turn(self) -> int:
        return 2 if self.heaps == [0, 0, 1] else super().turn()


@breaks("exception")
class ForgottenCase(Nim):
    def encode(self) -> NDArray[np.float32]:
        return super().encode() if self.heaps != [0, 2, 3] else [][0]


@warns("hidden")
class WonUnseen(Nim):
    """Player 1 has a rule of its own, which no observation shows."""

    def play(self, action: int) -> None:
        wins = self.player == 1 and self.heaps == [1, 1, 1] and action == 0
        super().play(action)
        if wins:
            self.heaps = [0, 0, 0]


@warns("names")
class OneName(Nim):
    def action_name(self, action: int) -> str:
        return f"take {action % 3 + 1}"


class Marathon(azpy.Game):
    """Ten million plies: no check sees the end."""

    num_actions, obs_shape, max_plies = 2, (1, 1, 1), 10_000_000

    def __init__(self, plies: int = 0) -> None:
        self.plies = plies

    def turn(self) -> int:
        return self.plies % 2 if self.plies < self.max_plies else azpy.TERMINAL

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> None:
        self.plies += 1

    def clone(self) -> Self:
        return type(self)(self.plies)

    def outcome(self) -> float:
        return 0.0

    def encode(self) -> NDArray[np.float32]:
        return np.full((1, 1, 1), self.plies, np.float32)

    def key(self) -> int:
        return self.plies


@breaks("replay")
class OtherPlayLegal(Nim):
    """Searches play what nobody else does."""

    def play_legal(self, action: int) -> None:
        self.play(self.legal_actions()[0])


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


class DeepMistake(azpy.Game):
    """Forty times 0 or 1; the tenth 1 is one too many for `encode`. All is kept, so that no lines are alike."""

    num_actions, obs_shape, max_plies = 2, (2, 1, 1), 40

    def __init__(self, said: tuple[int, ...] = ()) -> None:
        self.said = said

    def turn(self) -> int:
        return len(self.said) % 2 if len(self.said) < 40 else azpy.TERMINAL

    def legal_actions(self) -> list[int]:
        return [0, 1]

    def play(self, action: int) -> None:
        self.said = (*self.said, action)

    def clone(self) -> Self:
        return type(self)(self.said)

    def outcome(self) -> float:
        return 0.0

    def encode(self) -> NDArray[np.float32]:
        if sum(self.said) >= 10:
            raise RuntimeError("too many")
        return np.array([len(self.said), sum(self.said)], np.float32).reshape(2, 1, 1)

    def key(self) -> int:
        return int("1" + "".join(map(str, self.said)), 2)


class DeepKey(DeepMistake):
    """The key forgets the first numbers when there are many."""

    def encode(self) -> NDArray[np.float32]:
        return np.array([len(self.said), sum(self.said)], np.float32).reshape(2, 1, 1)

    def key(self) -> int:
        last = int("".join(map(str, self.said[-8:])) or "0", 2)
        return super().key() if len(self.said) < 16 else (len(self.said) << 16) + last
