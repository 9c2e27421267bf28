"""Backgammon is OpenSpiel's: positions after turns, rolls, outcomes. Endings are exact."""

import random
import re
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
