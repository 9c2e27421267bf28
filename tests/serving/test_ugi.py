"""UGI, game after game, with OpenSpiel's rules as the referee: every move is legal there and the results are the same.

There is no client of UGI among the packages of PyPI and Debian (looked for in November 2026).
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

import azpy
from talks import Talk, talk

pyspiel = pytest.importorskip("pyspiel")

SIZE = 5  # of hex


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


def names_of(state: Any, name: Callable[[str], str] | None, ours: list[str]) -> dict[str, int]:
    """OpenSpiel's legal actions by the name that they have here; `ours` are the names of our game's actions."""
    player = state.current_player()
    if name is None:  # the games number their actions alike
        return {ours[action]: action for action in state.legal_actions()}
    return {name(state.action_to_string(player, action)): action for action in state.legal_actions()}


def play(engine: Talk, game: str, theirs: Any, name: Callable[[str], str] | None, rng: random.Random, go: str) -> str:
    """Plays a game: the engine on one side, random moves on the other; OpenSpiel has the rules. Returns the result."""
    state, moves, ours = theirs.new_initial_state(), list[str](), all_names(game)
    engine.say("uginewgame")
    side = rng.randrange(2)
    while not state.is_terminal():
        legal = names_of(state, name, ours)
        engine.say(f"position startpos moves {' '.join(moves)}", "query gameover", "query p1turn", "query result")
        assert engine.hear("response") == "response false"
        assert engine.hear("response") == f"response {str(state.current_player() == 0).lower()}"
        assert engine.hear("response") == "response none"
        if state.current_player() == side:
            engine.say(go)
            move = engine.hear("bestmove").split()[1]
            assert move in legal, (game, moves)
        else:
            move = rng.choice(sorted(legal))
        moves.append(move)
        state.apply_action(legal[move])
    engine.say(f"position startpos moves {' '.join(moves)}", "query gameover", "query result", "go")
    assert engine.hear("response") == "response true"
    result = {1: "p1win", 0: "draw", -1: "p2win"}[int(state.returns()[0])]
    assert engine.hear("response") == f"response {result}"
    assert engine.hear("bestmove") == "bestmove (none)"
    return result


def all_names(game: str) -> list[str]:
    """The names of all actions, whether legal or not."""
    start = azpy.make_game(game)
    return [start.action_name(action) for action in range(start.num_actions)]


@pytest.mark.parametrize("count", [2, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("game", "theirs", "name"), GAMES)
def test_openspiel_referees_games(game: str, theirs: str, name: Callable[[str], str] | None, count: int) -> None:
    engine, rng, rules = talk("mcts:10", game, "ugi"), random.Random(3), pyspiel.load_game(theirs)
    gos = ["go nodes 15", "go movetime 31", "go p1time 900 p2time 900", "go p1time 40 p2time 40 p1inc 1 p2inc 1"]
    results = {play(engine, game, rules, name, rng, gos[number % 4]) for number in range(count)}
    engine.close()
    assert not [line for line in engine.heard if "error" in line]
    assert count == 2 or len(results) > 1
