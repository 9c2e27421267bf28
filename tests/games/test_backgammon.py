"""Backgammon is OpenSpiel's: positions after turns, rolls, outcomes. Ids are GNU Backgammon's, endings are exact."""

import base64
import os
import random
import re
import shutil
import subprocess
from collections import defaultdict
from typing import Any

import pytest

import azpy
from oracles import Solver, after

pyspiel = pytest.importorskip("pyspiel")

BAR = 100  # OpenSpiel's place of that name
PLIES = 65_535  # no game is drawn by its length


def board_of(state: azpy.State) -> str:
    """The checkers as the notation has them."""
    return " ".join(state.to_text().split()[:2])


def their_board(state: Any) -> str:
    """The same from OpenSpiel, whose places 0 to 23 run as player 0 does."""
    sides = []
    for player in (0, 1):
        counts = [("bar", state.board(player, BAR))]
        counts += [(str(n), state.board(player, 24 - n if player == 0 else n - 1)) for n in range(24, 0, -1)]
        counts.append(("off", 15 - sum(count for _, count in counts)))
        sides.append(",".join(f"{name}:{count}" for name, count in counts if count))
    return f"x={sides[0]} o={sides[1]}"


def their_rolls(state: Any) -> dict[str, list[tuple[int, float]]]:
    """OpenSpiel's outcomes by our names of rolls: some versions tell 3-1 from 1-3, all of them who begins."""
    rolls = defaultdict[str, list[tuple[int, float]]](list)
    for outcome, probability in state.chance_outcomes():
        match = re.search(r"roll: (\d)(\d)", text := state.action_to_string(-1, outcome))
        assert match, text
        # Player 0 begins here: of the opening rolls those are taken, each twice as likely.
        if "starts" not in text or "X starts" in text:
            rolls["-".join(sorted(match.groups(), reverse=True))].append(
                (outcome, probability * (1 + ("starts" in text)))
            )
    return rolls


def our_ends(rolled: azpy.State, mover: int) -> dict[str, azpy.State]:
    """The positions at the end of a turn, by board; each is reached by one line."""
    ends, going = dict[str, azpy.State](), [rolled]
    while going:
        state = going.pop()
        if state.turn == mover:
            going += [after(state, action) for action in state.legal_actions()]
        else:
            board = board_of(state)
            assert board not in ends, f"two lines lead to {board}"
            ends[board] = state
    return ends


def their_ends(rolled: Any, mover: int) -> dict[str, Any]:
    ends, going, seen = dict[str, Any](), [rolled], set[str]()
    while going:
        state = going.pop()
        if state.current_player() != mover:
            ends[their_board(state)] = state
            continue
        for action in state.legal_actions():
            child = state.child(action)
            # The second half of a double; it does not matter how the first one came about.
            key = f"{child.current_player()} {their_board(child)}"
            if key not in seen:
                seen.add(key)
                going.append(child)
    return ends


def play_both(scoring: str, gammons: int, seed: int) -> tuple[int, float]:
    """A random game in both programs, turn by turn: how many positions were compared, and the outcome."""
    rng, compared, mover = random.Random(seed), 0, 0
    state = azpy.make_game("backgammon", gammons=gammons, max_plies=PLIES)
    theirs = pyspiel.load_game(f"backgammon(scoring_type={scoring})").new_initial_state()
    while not theirs.is_terminal():
        assert (state.turn, theirs.current_player()) == (azpy.CHANCE, -1)
        ours_by_name = {state.action_name(outcome): p for outcome, p in state.chance_outcomes()}
        rolls = their_rolls(theirs)
        assert ours_by_name == pytest.approx({name: sum(p for _, p in same) for name, same in rolls.items()})
        outcome = rng.choice([outcome for outcome, _ in state.chance_outcomes()])
        theirs.apply_action(rolls[state.action_name(outcome)][0][0])
        state.play(outcome)
        ours, found = our_ends(state, mover), their_ends(theirs, mover)
        assert ours.keys() == found.keys(), f"{state}\n{theirs}"
        compared += len(ours)
        board = rng.choice(sorted(ours))
        state, theirs, mover = ours[board], found[board], 1 - mover
    assert state.is_terminal
    assert state.outcome() * (3 if gammons else 1) == pytest.approx(theirs.returns()[0])
    return compared, abs(theirs.returns()[0])


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 21))])
@pytest.mark.parametrize(("scoring", "gammons"), [("full_scoring", 1), ("winloss_scoring", 0)])
def test_turns_end_where_openspiels_do(scoring: str, gammons: int, part: int) -> None:
    games = [play_both(scoring, gammons, 10 * part + n) for n in range(10 if part else 2)]
    assert sum(compared for compared, _ in games) > 1000
    assert {outcome for _, outcome in games} <= ({1, 2, 3} if gammons else {1})


# GNU Backgammon, where it is installed (Debian: gnubg); a program under the GPL, run as a program of its own.

GNUBG = shutil.which("gnubg", path=os.environ.get("PATH", "") + os.pathsep + "/usr/games")
SET_UP = """set player 0 human
set player 1 human
set automatic game off
set automatic roll off
new game
set turn 0
"""


def counts_of(state: azpy.State) -> list[list[int]]:
    """By player, from the own side: checkers on points 1 to 24 and on the bar."""
    sides = []
    for word in state.to_text().split()[:2]:
        places = dict(part.split(":") for part in word[2:].split(","))
        sides.append([int(places.get(name, 0)) for name in [*map(str, range(1, 25)), "bar"]])
    return sides


def position_id(own: list[int], other: list[int]) -> str:
    """As GNU Backgammon's manual has it: unary counts with a zero after each place, in 10 bytes."""
    bits = "".join("1" * count + "0" for count in [*other, *own]).ljust(80, "0")
    return base64.b64encode(bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, 80, 8))).decode().rstrip("=")


def before_rolls(games: int) -> list[azpy.State]:
    """Positions of random games where a player is to roll."""
    found = []
    for seed in range(games):
        rng, state = random.Random(seed), azpy.make_game("backgammon")
        while not state.is_terminal:
            if state.turn == azpy.CHANCE:
                found.append(state.clone())
                state.play(rng.choice(state.chance_outcomes())[0])
            else:
                state.play(rng.choice(state.legal_actions()))
    return found


# Ids of other programs ------------------------------------------------------------------------------------------------


def words_of(sides: list[list[int]], mover: int, dice: list[int]) -> str:
    """A position in azpy's own notation."""
    written = []
    for side in sides:
        names = [*map(str, range(1, 25)), "bar"]
        counts = [*zip(names, side, strict=True), ("off", 15 - sum(side))]
        written.append(",".join(f"{name}:{count}" for name, count in counts if count))
    roll = f" roll={max(dice)}-{min(dice)}" if any(dice) else ""
    return f"x={written[0]} o={written[1]} turn={'xo'[mover]}{roll}"


def expected_of(sides: list[list[int]], mover: int, dice: list[int]) -> azpy.State:
    """The position, after the pass that azpy plays by itself where no checker can move."""
    before = azpy.parse_state("backgammon", words_of(sides, mover, [0, 0]))
    if any(dice):
        names = {before.action_name(outcome): outcome for outcome, _ in before.chance_outcomes()}
        before.play(names[f"{max(dice)}-{min(dice)}"])
    if before.turn in (0, 1):
        return azpy.parse_state("backgammon", words_of(sides, mover, dice))
    return azpy.parse_state("backgammon", words_of(sides, 1 - mover if any(dice) else mover, [0, 0]))


def match_id(mover: int, dice: list[int], rng: random.Random) -> str:
    """A match id with a cube, a score and a length that change nothing."""
    fields = [(rng.randrange(7), 4), (rng.choice([0, 1, 3]), 2), (1 - mover, 1), (rng.randrange(2), 1), (1, 3)]
    fields += [(1 - mover, 1), (0, 1), (0, 2), (dice[0], 3), (dice[1], 3), (rng.randrange(30), 15)]
    fields += [(rng.randrange(9), 15), (rng.randrange(9), 15), (0, 6)]
    bits = "".join(f"{value:0{count}b}"[::-1] for value, count in fields)
    return base64.b64encode(int(bits[::-1], 2).to_bytes(9, "little")).decode()


def xgid(sides: list[list[int]], mover: int, dice: list[int], rng: random.Random) -> str:
    board = ["-"] * 26
    for place in range(25):
        if sides[0][place]:
            board[place + 1] = chr(64 + sides[0][place])
        if sides[1][place]:
            board[24 - place] = chr(96 + sides[1][place])
    turn, rolled = ("1", "-1")[mover], "".join(map(str, dice))
    rest = [str(rng.randrange(3)) for _ in range(5)]
    return ":".join(["".join(board), str(rng.randrange(4)), rng.choice(["-1", "0", "1"]), turn, rolled, *rest])


def test_ids_are_read_as_a_slow_encoder_writes_them() -> None:
    rng, checked, passed = random.Random(4), 0, 0
    for state in before_rolls(6)[::2]:
        mover = 0 if "turn=x" in state.to_text() else 1
        sides, dice = counts_of(state), rng.choice([[0, 0], [rng.randint(1, 6), rng.randint(1, 6)]])
        expected = expected_of(sides, mover, dice)
        passed += any(dice) and expected.turn == azpy.CHANCE
        position = position_id(sides[mover], sides[1 - mover])
        ids = f"{position}:{match_id(mover, dice, rng)}"
        text = xgid(sides, mover, dice, rng)
        for each in (ids, text, f"XGID={text}"):
            read = azpy.parse_state("backgammon", each)
            assert (read.key(), read.to_text()) == (expected.key(), expected.to_text()), each
        alone = azpy.parse_state("backgammon", position)
        assert alone.key() == expected_of([sides[mover], sides[1 - mover]], 0, [0, 0]).key(), "x is to roll"
        checked += 1
    assert checked > 200
    assert passed


@pytest.mark.skipif(GNUBG is None, reason="needs gnubg")
def test_ids_are_those_of_gnu_backgammon() -> None:
    """GNU Backgammon reads an XGID, and shows the same position by its own ids."""
    rng, asked = random.Random(5), list[tuple[str, azpy.State]]()
    for state in before_rolls(4)[::5]:
        mover = 0 if "turn=x" in state.to_text() else 1
        sides, dice = counts_of(state), rng.choice([[0, 0], [rng.randint(1, 6), rng.randint(1, 6)]])
        board, *_ = xgid(sides, mover, dice, rng).split(":")
        text = f"XGID={board}:0:0:{('1', '-1')[mover]}:{dice[0]}{dice[1]}:{rng.randrange(3)}:1:0:7:10"
        asked.append((text, expected_of(sides, mover, dice)))
    commands = SET_UP + "".join(f"set xgid {text}\nshow board\n" for text, _ in asked)
    done = subprocess.run(
        [str(GNUBG), "-t", "-q", "-r"], input=commands, capture_output=True, text=True, check=True, timeout=250
    )
    shown = re.findall(r"Position ID: (\S+)\s+Match ID +: (\S+)", done.stdout)
    compared = 0
    for text, expected in asked:
        read = azpy.parse_state("backgammon", text)
        assert read.key() == expected.key(), text
        mine = {
            (one, other) for one, other in shown if azpy.parse_state("backgammon", f"{one}:{other}").key() == read.key()
        }
        compared += bool(mine)
    assert compared == len(asked) > 40, "each position is among those that it showed"


def test_who_can_bear_off_is_found_as_a_plain_recursion_says() -> None:
    rng, decided = random.Random(3), 0
    solver = Solver()
    for seed in range(40):
        places = [[rng.randint(1, 6) for _ in range(2)] for _ in range(2)]
        sides = [",".join(f"{n}:{side.count(n)}" for n in sorted(set(side))) for side in places]
        roll = f"{rng.randint(1, 6)}-{rng.randint(1, 6)}"
        state = azpy.parse_state("backgammon(gammons=0)", f"x={sides[0]},off:13 o={sides[1]},off:13 turn=x roll={roll}")
        exact = solver.actions(state)
        *worse, best = sorted(exact.values())
        if not worse or best - worse[-1] <= 0.05:
            continue
        decided += 1
        result = azpy.Search(azpy.UniformEvaluator(), simulations=20_000, eval_batch=8, seed=seed).run(state)
        assert result.action is not None
        assert exact[result.action] == best, f"{state}: {result.action} instead of {exact}"
        assert abs(result.q[result.actions.tolist().index(result.action)] - best) < 0.05
    assert decided > 3
