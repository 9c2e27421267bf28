"""OpenSpiel's plain Monte Carlo tree search as a program of UGI, for az-match.

    az-match runs/connect_four "ugi:python benches/openspiel_ugi.py --game connect_four?nodes=10000"

The bot is OpenSpiel's MCTSBot in C++: UCT with the weight 2, one random rollout for the value of a leaf, and its solver
on. `go nodes N` gives it N simulations (1000). Its seed follows from --seed and the moves so far, so a match can be
repeated. With --fresh each search has a random seed, so that games from one position differ. Needs open_spiel (extra
`openspiel`), and a game whose actions azpy and OpenSpiel number alike.
"""

import argparse
import secrets
import zlib
from collections.abc import Sequence
from importlib.metadata import version

import pyspiel

import azpy
from azpy.errors import SettingsError
from azpy.games.names import make_game
from ugi import serve

_UCT_C, _ROLLOUTS, _MEGABYTES = 2.0, 1, 1000


class Bot:
    def __init__(self, start: azpy.State, game: pyspiel.Game, seed: int, fresh: bool) -> None:
        self._start, self._game, self._seed, self._fresh = start, game, seed, fresh

    def choose(self, actions: Sequence[int], nodes: int | None) -> int:
        state = self._follow(actions)
        name = f"{self._seed} {self._start.format_actions(actions)}"
        seed = secrets.randbits(31) if self._fresh else zlib.crc32(name.encode()) >> 1
        rollout = pyspiel.RandomRolloutEvaluator(_ROLLOUTS, seed)
        bot = pyspiel.MCTSBot(self._game, rollout, _UCT_C, nodes or 1000, _MEGABYTES, True, seed, False)
        return int(bot.step(state))

    def outcome(self, actions: Sequence[int]) -> float:
        return float(self._follow(actions).returns()[0])

    def _follow(self, actions: Sequence[int]) -> pyspiel.State:
        state, ours = self._game.new_initial_state(), self._start.clone()
        for action in actions:
            if sorted(ours.legal_actions()) != sorted(state.legal_actions()):
                raise SystemExit(f"OpenSpiel has other actions than {self._start.game}")
            state.apply_action(action)
            ours.play(action)
        return state


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", required=True, help="as azpy names it: connect_four, open_spiel:NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="a random seed for each search")
    given = parser.parse_args()
    try:
        start, game = make_game(given.game), pyspiel.load_game(given.game.removeprefix("open_spiel:"))
    except SettingsError as error:
        raise SystemExit(str(error)) from None
    except pyspiel.SpielError:
        raise SystemExit(f"OpenSpiel does not have the game {given.game!r}") from None
    bot = Bot(start, game, given.seed, given.fresh)
    serve(f"OpenSpiel {version('open_spiel')} MCTSBot", start, bot.choose, bot.outcome)


if __name__ == "__main__":
    main()
