"""UGI, game after game, with OpenSpiel's rules as the referee: every move is legal there and the results are the same.

There is no client of UGI among the packages of PyPI and Debian (looked for in November 2026).
"""

import random
from collections.abc import Callable

import pytest

import azpy
from talks import talk

pyspiel = pytest.importorskip("pyspiel")

SIZE = 5  # of hex
GOS = ["go nodes 15", "go movetime 31", "go p1time 900 p2time 900", "go p1time 40 p2time 40 p1inc 1 p2inc 1"]


def _turned(name: str) -> str:
    """A name of OpenSpiel's breakthrough as it is here, where the first player begins below."""
    return "".join(str(9 - int(part)) if part.isdigit() else part for part in name.rstrip("*"))


# A game, OpenSpiel's, and how a name of OpenSpiel is written here.
GAMES: list[tuple[str, str, Callable[[str], str] | None]] = [
    ("tic_tac_toe", "tic_tac_toe", None),
    ("connect_four", "connect_four", None),
    ("othello", "othello", None),
    (f"hex(size={SIZE})", f"hex(board_size={SIZE})", None),
    ("breakthrough", "breakthrough", _turned),
]


@pytest.mark.parametrize("count", [2, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("game", "theirs", "name"), GAMES)
def test_openspiel_referees_games(game: str, theirs: str, name: Callable[[str], str] | None, count: int) -> None:
    """The engine is on one side, and random moves on the other."""
    engine, rng, rules = talk("mcts:10", game, "ugi"), random.Random(3), pyspiel.load_game(theirs)
    start, results = azpy.make_game(game), set[str]()
    for number in range(count):
        state, moves, side = rules.new_initial_state(), list[str](), rng.randrange(2)
        engine.say("uginewgame")
        while not state.is_terminal():
            mover, legal = state.current_player(), state.legal_actions()
            # Where nothing else is said, the games number their actions alike.
            named = {name(state.action_to_string(mover, one)) if name else start.action_name(one): one for one in legal}
            engine.say(f"position startpos moves {' '.join(moves)}", "query gameover", "query p1turn", "query result")
            for answer in ("false", str(mover == 0).lower(), "none"):
                assert engine.hear("response") == f"response {answer}"
            if mover == side:
                engine.say(GOS[number % 4])
                move = engine.hear("bestmove").split()[1]
                assert move in named, (game, moves)
            else:
                move = rng.choice(sorted(named))
            moves.append(move)
            state.apply_action(named[move])
        engine.say(f"position startpos moves {' '.join(moves)}", "query gameover", "query result", "go")
        assert engine.hear("response") == "response true"
        result = {1: "p1win", 0: "draw", -1: "p2win"}[int(state.returns()[0])]
        assert engine.hear("response") == f"response {result}"
        assert engine.hear("bestmove") == "bestmove (none)"
        results.add(result)
    engine.close()
    assert not [line for line in engine.heard if "error" in line]
    assert count == 2 or len(results) > 1
