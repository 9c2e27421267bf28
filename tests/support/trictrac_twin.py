"""Trictrac once more, slow and obvious: every line of steps is written down, and the rules throw lines away.

A side is a tuple of 26 numbers. Entry f counts the checkers on field f, entry 25 the checkers off; entry 0 stays 0.
Each side is numbered from its own talon. `facing` turns the opponent's side into the numbers of the player to move.
"""

from dataclasses import dataclass, field

START = (0, 15, *[0] * 24)
SMALL, BIG, RETURN = range(1, 7), range(7, 13), range(19, 25)
JANS = (SMALL, BIG, RETURN)
CORNER, HIS_CORNER = 12, 13
POWER, HOLD, LEAVE = 48, 49, 50
ROLLS = [(high, low) for high in range(2, 7) for low in range(1, high)]
ROLLS = sorted(ROLLS, key=lambda roll: (roll[1], roll[0])) + [(die, die) for die in range(1, 7)]

Side = tuple[int, ...]
Steps = tuple[tuple[int, int], ...]  # (field, die) each; by power: both checkers, on 0


@dataclass(frozen=True)
class Play:
    """Some steps, the side after them, and how many of them were overflows."""

    steps: Steps
    end: Side
    overflows: int = 0

    @property
    def dice(self) -> int:
        return len(self.steps)

    def actions(self, high: int) -> tuple[int, ...]:
        if self.steps[0][0] == 0:
            return (POWER,)
        return tuple(place - 1 if die == high else 24 + place - 1 for place, die in self.steps)


def facing(side: Side) -> Side:
    """A side in the numbers of the other player."""
    return (0, *side[24:0:-1], side[25])


def on(side: Side, place: int) -> int:
    return side[place] if 1 <= place <= 24 else 0


def is_full(side: Side, jan: range) -> bool:
    return all(side[place] >= 2 for place in jan)


def can_fill(side: Side, jan: range) -> bool:
    """Whether a side can still fill its own small or big jan: no checker goes back."""
    return all(sum(side[1 : last + 1]) >= 2 * number for number, last in enumerate(jan, start=1))


def is_home(side: Side) -> bool:
    return not any(side[1:19])


def step(own: Side, other: Side, place: int, die: int) -> tuple[Side, bool] | None:
    """The side after one step, and whether the step was an overflow; None if it is not possible."""
    if own[place] == 0:
        return None
    to, overflow = place + die, False
    if to <= 24:
        if other[to]:
            return None
    else:
        if not is_home(own):
            return None
        overflow = to > 25
        if overflow and any(own[1:place]):
            return None
    after = list(own)
    after[place] -= 1
    after[min(to, 25)] += 1
    return tuple(after), overflow


def may_end(own: Side, other: Side) -> bool:
    """Whether a turn may end so."""
    his = facing(other)
    if own[CORNER] == 1 or own[HIS_CORNER]:
        return False
    if any(own[13:19]) and can_fill(his, BIG):
        return False
    return not (any(own[19:25]) and can_fill(his, SMALL))


def by_power(own: Side, other: Side, dice: tuple[int, int]) -> Play | None:
    def stand(corner: int) -> bool:
        places = [corner - die for die in dice]
        return all(on(own, place) >= places.count(place) for place in places)

    if own[12] or other[12] or own[13] or other[13] or not stand(13) or stand(12):
        return None
    after = list(own)
    for die in dice:
        after[13 - die] -= 1
        after[12] += 1
    return Play(((0, dice[0]), (0, dice[1])), tuple(after))


def all_plays(own: Side, other: Side, dice: tuple[int, int]) -> list[Play]:
    """Everything that can be stepped with one die and with two, if the turn may end there."""
    found = []
    for first_die, second_die in {dice, dice[::-1]}:
        for first in range(1, 25):
            half = step(own, other, first, first_die)
            if half is None:
                continue
            found.append(Play(((first, first_die),), half[0], half[1]))
            for second in range(1, 25):
                whole = step(half[0], other, second, second_die)
                if whole is not None:
                    found.append(Play(((first, first_die), (second, second_die)), whole[0], half[1] + whole[1]))
    power = by_power(own, other, dice)
    if power is not None:
        found.append(power)
    return [play for play in found if may_end(play.end, other)]


def two_filters(own: Side, other: Side, dice: tuple[int, int]) -> list[Play]:
    """Most dice, of one die the higher; then the fewest overflows."""
    plays = all_plays(own, other, dice)
    if not plays:
        return []
    most = max(play.dice for play in plays)
    plays = [play for play in plays if play.dice == most]
    if most == 1:
        highest = max(play.steps[0][1] for play in plays)
        plays = [play for play in plays if play.steps[0][1] == highest]
    fewest = min(play.overflows for play in plays)
    return [play for play in plays if play.overflows == fewest]


def legal_plays(own: Side, other: Side, dice: tuple[int, int]) -> list[Play]:
    plays = two_filters(own, other, dice)
    exits = [play for play in plays if not any(play.end[1:25])]
    fulls = [play for play in plays if any(is_full(play.end, jan) for jan in JANS)]
    return exits or fulls or plays


def lines(own: Side, other: Side, dice: tuple[int, int]) -> list[tuple[int, ...]]:
    """One line of actions for each end of the turn: the least."""
    least = dict[Side, tuple[int, ...]]()
    for play in legal_plays(own, other, dice):
        actions = play.actions(dice[0])
        least[play.end] = min(actions, least.get(play.end, actions))
    return sorted(least.values())


def points_of(own: Side, other: Side, dice: tuple[int, int], roll_number: int = 1) -> tuple[int, int]:
    """What the roll is worth: points of the mover, points of the other."""
    (a, b), double = dice, dice[0] == dice[1]
    dear, cheap = (6, 4) if double else (4, 2)
    mine = his = 0
    for target in range(1, 25):
        if other[target] != 1:
            continue
        worth = cheap if 7 <= target <= 18 else dear
        ways = sum(on(own, target - die) > 0 for die in {a, b})
        rests = [other[target - die] < 2 for die in {a, b} if target - die >= 1]
        by_both = on(own, target - a - b) > 0
        if by_both and any(rests):
            ways += 1
        mine += worth * ways
        if ways == 0 and by_both:
            his += worth  # a false hit

    spare_corner = (*own[:12], own[12] - 2, *own[13:])
    places = [13 - a, 13 - b]
    if own[12] >= 2 and other[13] == 0 and all(spare_corner[place] >= places.count(place) for place in places):
        mine += dear

    plays = two_filters(own, other, dice)
    for jan in JANS:
        if is_full(own, jan):
            if not plays or any(is_full(play.end, jan) for play in plays):
                mine += dear
            continue
        filling = [play for play in plays if is_full(play.end, jan)]
        if not filling:
            continue
        missing = [place for place in jan for _ in range(2 - own[place])]
        if len(missing) > 1:
            mine += dear
            continue
        sources = set[int]()
        for play in filling:
            sources |= {place for place, die in play.steps if place + die == missing[0]}
            if play.dice == 2 and sum(play.steps[0]) == play.steps[1][0] and sum(play.steps[1]) == missing[0]:
                sources.add(play.steps[0][0])
        spares = [place for place in sources if own[place] >= (3 if place in jan else 1)]
        mine += dear * len(spares)

    off = any(not any(play.end[1:25]) for play in plays)
    if off:
        mine += dear
    out = [place for place in range(2, 25) for _ in range(own[place])]
    if own[1] == 13 and len(out) == 2:
        two_tables = {out[0] + a, out[1] + b} == {12, 13} or {out[0] + b, out[1] + a} == {12, 13}
        mezeas = out == [12, 12] and 1 in dice
        if other[13]:
            his += dear * (two_tables + mezeas)
        else:
            mine += dear * (two_tables + mezeas)
    if roll_number == 3 and own[1] == 11 and len(out) == 4 and sorted({*out, 1 + a, 1 + b}) == [2, 3, 4, 5, 6, 7]:
        mine += 4  # six tables
    if not off:
        his += 2 * (2 - (plays[0].dice if plays else 0))  # what cannot move
    return mine, his


@dataclass
class Twin:
    """A game, by player: sides from the own talon, points, holes, whether the run is unbroken, rolls of the setting."""

    goal: int = 12
    max_plies: int = 3000
    sides: list[Side] = field(default_factory=lambda: [START, START])
    points: list[int] = field(default_factory=lambda: [0, 0])
    holes: list[int] = field(default_factory=lambda: [0, 0])
    runs: list[bool] = field(default_factory=lambda: [True, True])
    rolls: list[int] = field(default_factory=lambda: [0, 0])
    mover: int = 0
    dice: tuple[int, int] | None = None
    choosing: bool = False
    taken: tuple[int, ...] = ()  # the actions of this turn
    before: Side = START  # the mover's side before them
    owed: int = 0  # the other's points of this roll
    plies: int = 0
    first_roll: bool = True

    @property
    def is_over(self) -> bool:
        return max(self.holes) >= self.goal or self.plies >= self.max_plies

    def outcome(self) -> float:
        return float(self.holes[0] >= self.goal) - float(self.holes[1] >= self.goal)

    def own(self) -> Side:
        return self.sides[self.mover]

    def other(self) -> Side:
        return facing(self.sides[1 - self.mover])

    def chances(self) -> list[tuple[int, float]]:
        if self.first_roll:
            return [(outcome, 1 / 15) for outcome in range(15)]
        return [(outcome, (2 if outcome < 15 else 1) / 36) for outcome in range(21)]

    def legal(self) -> list[int]:
        """Outcomes of a roll, or actions."""
        if self.dice is None:
            return [outcome for outcome, _ in self.chances()]
        if self.choosing:
            return [HOLD, LEAVE]
        done = len(self.taken)
        following = [line for line in lines(self.before, self.other(), self.dice) if line[:done] == self.taken]
        return sorted({line[done] for line in following})

    def mark(self, player: int, points: int) -> bool:
        """Whether the player has won a hole by it."""
        other = 1 - player
        if points == 0:
            return False
        won, self.points[player] = divmod(self.points[player] + points, 12)
        if won == 0:
            if self.points[other]:
                self.runs[other] = False
            return False
        self.holes[player] += 2 * won - (not self.runs[player])
        self.points[other] = 0
        self.runs = [True, True]
        return True

    def play(self, action: int) -> None:
        self.plies += 1
        if self.dice is None:
            self.roll(action)
        elif action == LEAVE:
            self.points, self.runs = [0, 0], [True, True]
            self.new_setting()
            self.dice, self.choosing = None, False
        elif action == HOLD:
            self.choosing = False
            self.go_on()
        else:
            self.taken += (action,)
            end = self.line_end()
            if end is not None:
                self.sides[self.mover] = end
                self.end_turn()

    def roll(self, outcome: int) -> None:
        self.first_roll = False
        self.dice, self.taken, self.before = ROLLS[outcome], (), self.own()
        self.rolls[self.mover] += 1
        mine, self.owed = points_of(self.own(), self.other(), self.dice, self.rolls[self.mover])
        self.choosing = self.mark(self.mover, mine)
        if self.is_over and max(self.holes) >= self.goal:
            self.dice, self.choosing = None, False
        elif not self.choosing:
            self.go_on()

    def go_on(self) -> None:
        if not self.legal():
            self.end_turn()

    def line_end(self) -> Side | None:
        """Where the turn has ended, if it has."""
        assert self.dice is not None
        for play in legal_plays(self.before, self.other(), self.dice):
            if play.actions(self.dice[0]) == self.taken:
                return play.end
        return None

    def end_turn(self) -> None:
        self.mark(1 - self.mover, self.owed)
        self.dice, self.taken, self.owed = None, (), 0
        if max(self.holes) >= self.goal:
            return
        if any(self.own()[1:25]):
            self.mover = 1 - self.mover
        else:
            self.new_setting()

    def new_setting(self) -> None:
        self.sides, self.rolls = [START, START], [0, 0]

    def current(self) -> Side:
        """The mover's side now, in the middle of a turn too."""
        own = self.own()
        if self.dice is not None:
            for action in self.taken:
                stepped = step(own, self.other(), action % 24 + 1, self.dice[action // 24])
                assert stepped is not None
                own = stepped[0]
        return own

    def features(self) -> list[float]:
        """The observation of the player to move."""
        own, other, me, him = self.current(), self.other(), self.mover, 1 - self.mover
        row = []
        for side in (own, other):
            for place in range(1, 25):
                count = side[place]
                row += [float(count >= 1), float(count >= 2), float(count >= 3), max(count - 3, 0) / 12]
        row += [own[25] / 15, other[25] / 15]
        assert self.dice is not None
        left = [True, True]
        if self.taken:
            left[1 if self.dice[0] == self.dice[1] else self.taken[0] // 24] = False
        for die, there in zip(self.dice, left, strict=True):
            row += [float(there and die == number) for number in range(1, 7)]
        row.append(float(self.choosing))
        row += [float(bool(self.taken) and self.taken[0] % 24 + 1 == place) for place in range(1, 25)]
        for player in (me, him):
            row += [self.points[player] / 12, self.holes[player] / 12, float(self.runs[player])]
        his = facing(other)
        row += [float(is_full(side, jan)) for side in (own, his) for jan in JANS]
        row += [float(own[12] >= 2), float(other[13] >= 2)]
        row += [float(can_fill(side, jan)) for side in (his, own) for jan in (SMALL, BIG)]
        row += [min(self.rolls[player], 3) / 3 for player in (me, him)]
        row.append(max(0, 200 - (self.max_plies - self.plies)) / 200)
        return row

    def text(self) -> str:
        """The position in the game's notation."""
        sides = [*self.sides]
        sides[self.mover] = self.current()
        words = []
        for name, side in zip("xo", sides, strict=True):
            parts = [f"{place}:{side[place]}" for place in range(1, 25) if side[place]]
            parts += [f"off:{side[25]}"] if side[25] else []
            words.append(f"{name}={','.join(parts)}")
        words.append(f"turn={'xo'[self.mover]}")
        if self.dice is not None:
            words.append(f"roll={self.dice[0]}-{self.dice[1]}")
            if self.taken:
                which = 1 - self.taken[0] // 24
                words += [f"left={self.dice[which]}", f"first={self.taken[0] % 24 + 1}"]
        if self.choosing:
            words.append("stage=choice")

        def pair(name: str, numbers: list[int]) -> str:
            return f"{name}={numbers[0]},{numbers[1]}"

        words += [
            pair("points", self.points),
            pair("holes", [min(number, self.goal) for number in self.holes]),
            pair("runs", [int(run) for run in self.runs]),
            pair("rolls", [min(number, 3) for number in self.rolls]),
        ]
        if self.plies:
            words.append(f"plies={self.plies}")
        return " ".join(words)
