"""Trictrac is that of a slow twin: lines of steps, points, marks, positions. Examples from books hold for both."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

import azpy
from oracles import Constant, after
from trictrac_twin import HOLD, LEAVE, ROLLS, Side, Twin, facing, legal_plays, lines, points_of

TALON = "24:15"  # the other side at its talon, in the numbers of the player to move
FAR = "1:1"  # one checker of the other side that nothing meets


def side(text: str) -> Side:
    """A side from words such as 1-4:2, which are two checkers on each of the fields 1 to 4; the others are off."""
    counts = [0] * 26
    for word in text.split():
        fields, number = word.split(":")
        first, _, last = fields.partition("-")
        for place in range(int(first), int(last or first) + 1):
            counts[place] += int(number)
    counts[25] = 15 - sum(counts)
    return tuple(counts)


def words_of(counts: Side) -> str:
    parts = [f"{place}:{counts[place]}" for place in range(1, 25) if counts[place]]
    return ",".join(parts + [f"off:{counts[25]}"] * (counts[25] > 0))


def position(own: str, other: str, more: str = "", game: str = "trictrac") -> azpy.State:
    """A position before a roll of x; the other side in the numbers of x."""
    default = "" if "rolls=" in more else " rolls=1,1"
    text = f"x={words_of(side(own))} o={words_of(facing(side(other)))} turn=x {more}{default}"
    return azpy.parse_state(game, text)


def rolled(state: azpy.State, roll: tuple[int, int]) -> azpy.State:
    found: azpy.State = after(state, ROLLS.index(roll))
    return found


def numbers(state: azpy.State, word: str) -> list[int]:
    """The two numbers of a word of the notation."""
    (found,) = (part for part in state.to_text().split() if part.startswith(f"{word}="))
    return [int(number) for number in found.partition("=")[2].split(",")]


def marked(state: azpy.State, player: int) -> int:
    """The points of a player who began with none, and whose run is not broken."""
    return 6 * numbers(state, "holes")[player] + numbers(state, "points")[player]


def turn_lines(state: azpy.State) -> list[tuple[list[int], azpy.State]]:
    """All lines of actions of a turn, and where they end. Holds."""
    if state.turn not in (0, 1):
        return [([], state)]
    found, going, mover = (
        [],
        [(list[int](), after(state, HOLD) if HOLD in state.legal_actions() else state)],
        state.turn,
    )
    while going:
        line, now = going.pop()
        if now.turn != mover:
            found.append((line, now))
            continue
        going += [([*line, action], after(now, action)) for action in now.legal_actions()]
    return sorted(found, key=lambda end: end[0])


def names(state: azpy.State, line: Sequence[int]) -> str:
    if state.turn == azpy.CHANCE:
        return ""
    if HOLD in state.legal_actions():
        state = after(state, HOLD)
    return state.format_actions(line)


def judged(own: str, other: str, roll: tuple[int, int], more: str = "") -> tuple[set[str], tuple[int, int]]:
    """The lines of a roll by the names of their actions, and the points of both, agreed with the twin."""
    state = rolled(position(own, other, more), roll)
    ends = turn_lines(state)
    found = [tuple(line) for line, _ in ends if line]
    mine, his = side(own), side(other)
    assert found == lines(mine, his, roll), f"{own} / {other} {roll}"
    # Marks of x are read at once, those of o at the end, where a hole of o may have taken the points of x.
    before_o = marked(state, 0) if ends[0][0] or HOLD in state.legal_actions() else None
    points_o = marked(ends[0][1], 1)
    points = (marked(ends[0][1], 0) if before_o is None else before_o, points_o)
    number = numbers(state, "rolls")[0]
    assert points == points_of(mine, his, roll, number if "rolls=3" not in more else 4), f"{own} / {other} {roll}"
    return {names(state, line) for line in found}, points


# Number, own and other side in the numbers of the player to move, roll, the only lines (None: not asked), points.
EXAMPLES: list[tuple[str, str, str, tuple[int, int], set[str] | None, tuple[int, int] | None]] = [
    ("1a", "1:15", TALON, (3, 3), {"1/4 1/4", "1/4 4/7"}, (0, 0)),
    ("1b", "1:15", TALON, (6, 5), {"1/7 1/6"}, (0, 0)),
    ("2", "10:1 11:1", "23:2 24:13", (3, 2), {"power"}, (0, 0)),
    ("4", "1-7:2 8:1", "14:2 18:2 20-23:2 24:3", (6, 5), {"8/13 13/19"}, (4, 0)),
    ("5a", "11:5 23:1", "18:12", (5, 5), {"11/16 16/21"}, None),
    ("5b", "11:5 23:1", "18:1 24:12", (5, 5), set(), None),
    ("6", "12:3", "16:1 17:1 18:1", (3, 2), {"12/15"}, None),
    ("8", "22:1", FAR, (3, 1), {"22/23 23/off"}, (4, 0)),
    ("9a", "21:1 23:1", FAR, (6, 3), {"21/24 23/off"}, (0, 0)),
    ("9b", "20:1 23:1", FAR, (5, 3), {"20/off 23/off"}, (4, 0)),
    ("10", "1:2", "3:1 4:1 6:1", (3, 2), set(), (12, 4)),
    ("11", "1:2 9:1", "3:2 4:2 6:1", (3, 2), {"9/12 12/14"}, (0, 4)),
    ("12", "1-4:2 8:2 9:2 11:1 12:2", "13:2 15:1 16:2 17:2 18-20:1 22:1 23:2 24:2", (6, 3), None, (12, 0)),
    ("13", "1:6 7:1 8:2 9:2 11:2 12:2", "13-16:2 17-23:1", (6, 6), None, (14, 18)),
    ("16", "1:2 2-4:3 5:1 6:2", TALON, (2, 1), None, (12, 0)),
    ("17", "1:3 2:3 3-5:2 18:2 23:1", "7:2", (5, 4), {"1/6 2/6"}, (4, 0)),
    ("18", "9:2 19:3 20-24:2", "15:2", (6, 6), set(), (6, 4)),
    ("19", "18:1 19:4 20:2 21:3 22:2 23:1 24:2", FAR, (6, 5), {"18/23 19/off"}, (4, 0)),
    ("20a", "1:13 10:1 11:1", TALON, (2, 2), None, (6, 0)),
    ("20b", "1:13 10:1 11:1", "13:2", (2, 2), None, (0, 6)),
    ("21a", "1:13 12:2", TALON, (2, 1), None, (4, 0)),
    ("21b", "1:13 12:2", TALON, (1, 1), None, (6, 0)),
    ("21c", "1:13 12:2", "13:2", (2, 1), None, (0, 4)),
    ("23a", "11:2 12:2", TALON, (2, 2), None, (6, 4)),
    ("23b", "11:1 12:3", TALON, (1, 1), None, (0, 2)),
    # A jan is full after both dice or not filled: there is no spare checker for the 6 but those of the jan.
    ("half a roll", "1:2 2:2 3:2 4:2 5:3 6:1", "8-11:2", (6, 1), None, (0, 0)),
    # A helpless checker that a double does not move is worth 2 as well.
    ("helpless", "12:3", "18:1", (3, 3), {"12/15"}, (4, 2)),
]


@pytest.mark.parametrize(
    ("own", "other", "roll", "only", "points"), [e[1:] for e in EXAMPLES], ids=[e[0] for e in EXAMPLES]
)
def test_examples_of_the_rules_hold(
    own: str, other: str, roll: tuple[int, int], only: set[str] | None, points: tuple[int, int] | None
) -> None:
    found, marks = judged(own, other, roll)
    if only is not None:
        assert sorted(" ".join(sorted(name.split())) for name in found) == sorted(
            " ".join(sorted(name.split())) for name in only
        )
    if points is not None:
        assert marks == points


@pytest.mark.parametrize(
    ("own", "other", "roll", "there", "missing"),
    [
        ("1:5 7:5 8:5", TALON, (5, 5), "7/12 7/12", "power"),  # 3: the corner can be taken by effect
        ("19:2 20:3 23:2", FAR, (5, 5), "20/off 20/off", "23/off"),  # 7: only the rearmost leaves by more than it needs
        ("19:2 20:3 23:2", FAR, (5, 2), "20/off 23/off", "power"),
    ],
)
def test_listed_lines_are_legal_and_others_are_not(
    own: str, other: str, roll: tuple[int, int], there: str, missing: str
) -> None:
    found, _ = judged(own, other, roll)
    assert there in found
    assert not any(missing in name for name in found)


def test_a_jan_is_filled_from_two_fields_by_unequal_dice() -> None:
    worth = {roll: judged("1-5:3", TALON, roll)[1] for roll in ROLLS}  # 14
    assert worth == {roll: (4 if roll[0] != roll[1] and roll[0] < 6 else 0, 0) for roll in ROLLS}


def test_the_jan_of_return_is_filled_without_overflows() -> None:
    own = "17:1 18:1 19-21:3 22:1 23:1 24:2"  # 15
    worth = {roll: judged(own, FAR, roll)[1][0] for roll in ROLLS}
    assert {roll for roll, points in worth.items() if points == 0} == {(1, 1), (2, 1), (6, 5), (6, 6)}


def test_six_tables_count_at_the_third_roll_alone() -> None:
    own = "1:11 2:1 5:1 6:1 7:1"  # 22
    for rolls, points in (("2,1", 4), ("3,1", 0), ("1,1", 0)):
        assert marked(rolled(position(own, TALON, f"rolls={rolls}"), (3, 2)), 0) == points
    assert points_of(side(own), side(TALON), (3, 2), 3) == (4, 0)
    assert points_of(side(own), side(TALON), (3, 2), 4) == (0, 0)


def both_at_ten() -> azpy.State:
    """2 points for each by a roll of 4-3."""
    assert points_of(side("1:12 10:1 12:2"), side("13:2 14:2 16:1 17:1 24:9"), (4, 3)) == (2, 2)
    return position("1:12 10:1 12:2", "13:2 14:2 16:1 17:1 24:9", "points=10,10")


def values(state: azpy.State, simulations: int) -> dict[str, float]:
    """Values of the actions where everything is good for whoever is to move."""
    result = azpy.Search(Constant(51, 0.5), simulations=simulations, eval_batch=1, seed=1).run(state)
    visited = zip(result.actions.tolist(), result.visits.tolist(), result.q.tolist(), strict=True)
    return {state.action_name(action): q for action, visits, q in visited if visits}


def test_leaving_or_the_last_checker_off_rolls_again() -> None:
    choice = rolled(both_at_ten(), (4, 3))
    assert values(choice, 8)["leave"] == pytest.approx(0.5)
    assert after(choice, LEAVE, 20).turn == 0
    last = rolled(position("24:1", FAR), (3, 1))
    assert values(last, 8) == {"24/off": pytest.approx(0.5)}
    for state in (after(last, *last.legal_actions()), after(choice, LEAVE)):
        assert state.to_text().startswith("x=1:15 o=1:15 turn=x ")
    # Otherwise the other player rolls.
    turn_over = after(rolled(position("12:2 9:1", "24:15"), (2, 1)), 8)
    assert values(turn_over, 8) == {turn_over.action_name(a): pytest.approx(-0.5) for a in turn_over.legal_actions()}


# The twin.


def same(state: azpy.State, twin: Twin) -> None:
    """All that can be seen of a position."""
    assert state.to_text() == twin.text()
    assert state.is_terminal == twin.is_over
    if twin.is_over:
        assert state.outcome() == twin.outcome()
    elif twin.dice is None:
        assert state.turn == azpy.CHANCE
        assert dict(state.chance_outcomes()) == pytest.approx(dict(twin.chances()))
    else:
        assert state.turn == twin.mover
        assert state.legal_actions() == twin.legal(), state.to_text()
        np.testing.assert_array_equal(state.observation().ravel(), np.array(twin.features(), dtype=np.float32))


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 26))])
@pytest.mark.parametrize("way", ["any", "hold", "leave", "fill"])
def test_games_are_those_of_the_twin(way: str, part: int) -> None:
    plies = 0
    for seed in range(100 * part, 100 * part + (100 if part else 3)):
        holes, most = (1, 210) if seed % 3 == 2 else (12, 3000)
        rng, twin = random.Random(f"{way} {seed}"), Twin(holes, most)
        state = azpy.make_game("trictrac", holes=holes, max_plies=most)
        same(state, twin)
        while not twin.is_over:
            if twin.dice is None:
                outcomes, weights = zip(*twin.chances(), strict=True)
                action = rng.choices(outcomes, weights)[0]
            elif twin.choosing and way != "any":
                action = LEAVE if way == "leave" else HOLD
            elif way == "fill":  # steps from the rear more often, so that jans fill
                action = min(rng.sample(twin.legal(), min(2, len(twin.legal()))), key=lambda action: action % 24)
            else:
                action = rng.choice(twin.legal())
            state.play(action)
            twin.play(action)
            same(state, twin)
        plies += twin.plies
    assert plies > 200


def random_side(rng: random.Random, taken: Side, most: int) -> Side:
    """A side that no line of play needs to reach, so that what is rare in games comes up."""
    counts = [0] * 26
    places = [place for place in range(1, 25) if not taken[place] and place != 13]
    low = rng.choice([1, 1, 1, 7, 13, 17, 18, 19])
    places = [place for place in places if place >= low] or places
    for _ in range(rng.randint(1, most)):
        counts[rng.choice(places)] += 1
    if rng.random() < 0.5:
        jan = rng.choice([range(1, 7), range(7, 13), range(19, 25)])
        for place in jan:
            if not taken[place]:
                counts[place] = max(counts[place], 2) if rng.random() < 0.9 else 1
    while sum(counts) > 15 or counts[12] == 1:
        place = 12 if counts[12] == 1 else rng.choice([place for place in range(1, 25) if counts[place]])
        counts[place] -= 1
    counts[25] = 15 - sum(counts)
    return tuple(counts)


def compare_rolls(seed: int) -> int:
    """Random positions, one roll each: lines, where they end, points."""
    rng, compared = random.Random(seed), 0
    for _ in range(50):
        nothing = (0,) * 26
        other = random_side(rng, nothing, 15)
        # The other side is seen from the front: it is not on 12, and behind it as often as not.
        other = facing(other)
        own = random_side(rng, other, 15)
        roll = rng.choice(ROLLS)
        if not any(own[1:25]) or not any(other[1:25]) or other[12] or own[13] or other[13] == 1:
            continue
        text = f"x={words_of(own)} o={words_of(facing(other))} turn=x rolls=1,1"
        state = rolled(azpy.parse_state("trictrac", text), roll)
        ends = turn_lines(state)
        found = [tuple(line) for line, _ in ends if line]
        assert found == lines(own, other, roll), f"{text} {roll}"
        boards = {end.to_text().split()[0] for _, end in ends}
        exits = [play for play in legal_plays(own, other, roll) if not any(play.end[1:25])]
        if not exits:
            assert len(boards) == len(ends), f"{text} {roll}"
        mine, his = points_of(own, other, roll)
        if mine < 144 and his < 144 and numbers(state, "holes")[0] < 12:
            twin = Twin()
            twin.mark(0, mine)
            if ends[0][0] or HOLD in state.legal_actions():
                assert numbers(state, "points") == twin.points, f"{text} {roll}"
            twin.mark(1, his)
            end = ends[0][1]
            assert numbers(end, "points") == twin.points, f"{text} {roll}"
            assert numbers(end, "holes") == [min(holes, 12) for holes in twin.holes], f"{text} {roll}"
        compared += 1
    return compared


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 21))])
def test_rolls_of_any_position_are_those_of_the_twin(part: int) -> None:
    assert sum(compare_rolls(100 * part + n) for n in range(100 if part else 16)) > 400
