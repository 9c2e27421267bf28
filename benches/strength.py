"""How strong a run's checkpoints are against players that are not ours.

    python benches/strength.py RUN [--games 200] [--simulations 100] [--rollouts 1000] [--last] [--search NAME=VALUE]

Connect Four: OpenSpiel's C++ MCTSBot (uct_c 2, one random rollout a simulation, solver on, a new seed each game), both
colours, no random openings: the bot's own randomness makes the games differ. Tic-tac-toe: a player that never errs and
draws among its best moves at random. Our side searches as the run's config.toml says for matches, one leaf at a time;
`--search lcb=none --search c_puct=1.5` changes an option of `azpy.Search`. Needs open_spiel (extra `dev`).
"""

import argparse
import functools
import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspiel

import azpy
from azpy.evaluators.onnx import OnnxEvaluator
from azpy.matches.arena import MatchResult, Pair
from azpy.settings.run import ABOUT, Settings, match_search
from azpy.settings.toml import read_config

Rival = Callable[[pyspiel.State], int]


def mcts_bot(game: pyspiel.Game, rollouts: int) -> Callable[[int], Rival]:
    """OpenSpiel's plain Monte Carlo tree search."""

    def make(seed: int) -> Rival:
        rollout = pyspiel.RandomRolloutEvaluator(1, seed)
        return pyspiel.MCTSBot(game, rollout, 2.0, rollouts, 1000, True, seed, False).step

    return make


def perfect(seed: int) -> Rival:
    """Any of the best moves of a small game."""

    @functools.cache
    def value(history: tuple[int, ...]) -> float:
        state = GAME.new_initial_state()
        for action in history:
            state.apply_action(action)
        if state.is_terminal():
            return float(state.returns()[0])
        values = [value((*history, action)) for action in state.legal_actions()]
        return max(values) if state.current_player() == 0 else min(values)

    rng, history_of = random.Random(seed), lambda state: tuple(state.history())

    def step(state: pyspiel.State) -> int:
        sign = 1 if state.current_player() == 0 else -1
        values = {a: sign * value((*history_of(state), a)) for a in state.legal_actions()}
        return rng.choice([action for action, found in values.items() if found == max(values.values())])

    return step


def play(
    evaluator: OnnxEvaluator,
    name: str,
    rival: Callable[[int], Rival],
    games: int,
    simulations: int,
    options: dict[str, Any],
) -> MatchResult:
    """All games side by side; the first mover alternates."""
    boards = [(azpy.make_game(name), GAME.new_initial_state(), index % 2, rival(index + 1)) for index in range(games)]
    live = list(boards)
    while live:
        mine = [board for board in live if board[1].current_player() == board[2]]
        if mine:
            states = [ours for ours, *_ in mine]
            search = azpy.VectorSearch(states, evaluator, eval_batch=1, **options)
            search.run(simulations)
            for (ours, theirs, *_), action in zip(mine, search.select_actions(0.0), strict=True):
                ours.play(int(action))
                theirs.apply_action(int(action))
        for ours, theirs, seat, other in live:
            if not theirs.is_terminal() and theirs.current_player() != seat:
                action = other(theirs)
                theirs.apply_action(action)
                ours.play(action)
        live = [board for board in live if not board[1].is_terminal()]

    points = [(1 + theirs.returns()[seat]) / 2 for _, theirs, seat, _ in boards]
    return MatchResult.of([Pair(pair, ((), ())) for pair in zip(points[::2], points[1::2], strict=True)])


def main() -> None:
    global GAME
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--game", default="connect_four", choices=["connect_four", "tic_tac_toe"])
    parser.add_argument("--games", type=int, default=200, help="an even number")
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--rollouts", type=int, default=1000)
    parser.add_argument("--search", action="append", default=[], help="NAME=VALUE, an option of azpy.Search")
    parser.add_argument("--last", action="store_true", help="the newest checkpoint only")
    given = parser.parse_args()
    GAME = pyspiel.load_game(given.game)
    rival = mcts_bot(GAME, given.rollouts) if given.game == "connect_four" else perfect
    config = read_config(given.run / "config.toml")
    options = match_search(Settings(**{name: config[name] for name in config if name in ABOUT}))
    for text in given.search:
        name, _, value = text.partition("=")
        options[name] = None if value == "none" else tomllib.loads(f"value = {value}")["value"]
    models = sorted(given.run.glob("checkpoints/*/model.onnx"))
    for model in models[-1:] if given.last else models:
        evaluator = OnnxEvaluator(model, game=azpy.make_game(given.game), threads=2)
        result = play(evaluator, given.game, rival, given.games, given.simulations, options)
        low, high = result.interval
        print(
            f"checkpoint {model.parent.name}: score {result.score:.3f} [{low:.3f}, {high:.3f}] "
            f"(+{result.wins} ={result.draws} -{result.losses})",
            flush=True,
        )


if __name__ == "__main__":
    main()
