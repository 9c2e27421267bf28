"""AlphaZero self-play at the speed of the hardware.

A Rust core grows many search trees at once; an evaluator answers whole batches of their leaves.

    >>> import azpy
    >>> state = azpy.make_game("tic_tac_toe")
    >>> result = azpy.Search(azpy.UniformEvaluator(), simulations=200).run(state)
    >>> int(result.visits.sum())
    200

Where to begin:

- `make_game`, `parse_state`, `State`: positions; `Game`: a game of your own.
- `Search`: one position; `VectorSearch`: many at once; `Engine`: many who ask at once; `SelfPlay`: whole games.
- `train`, `load_run`, `match`, `replay`: from zero knowledge to a player, what it learned, how strong it is.
- `Evaluator`: who answers a search's positions. `RolloutEvaluator` needs no network, `OnnxEvaluator` runs any.
- `azpy.errors`: what commands and functions raise for what a user can put right.

Importing `azpy` loads numpy and the core, never torch or onnxruntime.
"""

import importlib
from typing import TYPE_CHECKING, Any

import azpy.core_choice  # noqa: F401  which core `azpy._core` is

# isort: split
from azpy import games
from azpy._core import (
    CHANCE,
    TERMINAL,
    CoreError,
    Engine,
    EngineGame,
    EvaluatorError,
    GameError,
    GameRecord,
    ReplayBuffer,
    RolloutEvaluator,
    Search,
    SearchResult,
    SelfPlay,
    State,
    UniformEvaluator,
    VectorSearch,
    __version__,
    list_games,
    parse_state,
)
from azpy.evaluators.protocol import Evaluator
from azpy.game import Game
from azpy.games.names import make_game

if TYPE_CHECKING:
    from azpy.evaluators.choice import load_run
    from azpy.evaluators.net import NetEvaluator
    from azpy.evaluators.onnx import OnnxEvaluator
    from azpy.evaluators.torch import TorchEvaluator, export_onnx
    from azpy.matches.match import match
    from azpy.reports.game_picture import replay
    from azpy.training.train import train

__all__ = [
    "CHANCE",
    "TERMINAL",
    "CoreError",
    "Engine",
    "EngineGame",
    "Evaluator",
    "EvaluatorError",
    "Game",
    "GameError",
    "GameRecord",
    "NetEvaluator",
    "OnnxEvaluator",
    "ReplayBuffer",
    "RolloutEvaluator",
    "Search",
    "SearchResult",
    "SelfPlay",
    "State",
    "TorchEvaluator",
    "UniformEvaluator",
    "VectorSearch",
    "__version__",
    "export_onnx",
    "games",
    "list_games",
    "load_run",
    "make_game",
    "match",
    "parse_state",
    "replay",
    "train",
]


# The names that need ONNX Runtime, torch or what reads run folders are looked up when they are asked for.
_LATE = {
    "NetEvaluator": "azpy.evaluators.net",
    "OnnxEvaluator": "azpy.evaluators.onnx",
    "TorchEvaluator": "azpy.evaluators.torch",
    "export_onnx": "azpy.evaluators.torch",
    "load_run": "azpy.evaluators.choice",
    "match": "azpy.matches.match",
    "replay": "azpy.reports.game_picture",
    "train": "azpy.training.train",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'azpy' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
