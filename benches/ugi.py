"""A program of UGI in a function: what `gnubg_ugi.py` and `openspiel_ugi.py` share. Azpy's rules read the moves."""

import sys
from collections.abc import Callable, Sequence

import azpy

Choose = Callable[[Sequence[int], int | None], int]  # the actions so far, and the nodes of the search if given
Result = Callable[[Sequence[int]], float]  # the actions of a game that is over, to its outcome for player 0


def serve(name: str, start: azpy.State, choose: Choose, result: Result | None = None) -> None:
    """Answers on stdin and stdout until `quit` or the end of the input."""
    actions: list[int] = []
    for line in sys.stdin:
        match line.split():
            case ["ugi"]:
                _say(f"id name {name}\nugiok")
            case ["isready"]:
                _say("readyok")
            case ["position", "startpos", *_]:
                actions = start.parse_actions(line.partition(" moves ")[2])
            case ["go", *limits]:
                nodes = int(limits[limits.index("nodes") + 1]) if "nodes" in limits else None
                state = start.clone()
                for action in actions:
                    state.play(action)
                _say(f"bestmove {state.action_name(choose(actions, nodes))}")
            case ["query", "result"] if result is not None:
                outcome = result(actions)
                _say(f"response {'p1win' if outcome > 0 else 'p2win' if outcome < 0 else 'draw'}")
            case ["quit"]:
                return


def _say(text: str) -> None:
    print(text, flush=True)
