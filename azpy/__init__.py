"""AlphaZero for your game: a search core in Rust, and what trains, measures and serves players.

Five names to start with:

- `make_game` returns the start of a built-in game; `Game` is the base class for your own.
- `Search` searches one position, with any network or none.
- `train` trains a player from nothing, as the command `az-train` does.
- `load_run` opens a run folder, to play with its newest network.
- `match` plays two players against each other, and returns the score with its 95 % interval.

Example:
    >>> import azpy
    >>> state = azpy.make_game("connect_four")
    >>> result = azpy.Search(azpy.RolloutEvaluator(seed=1), simulations=2000).run(state)
    >>> result.action
    3

To search many positions at once, see `VectorSearch`; to answer many clients, `Engine`; to play whole games, `SelfPlay`.
`Evaluator` describes what a network must answer. `azpy.errors` has the exceptions. Docstrings write shapes in brackets:
B positions, C planes of H rows and W columns, A actions, P players, L legal actions.

Importing `azpy` loads numpy and the core, but neither torch nor onnxruntime.
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
    exploitability,
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
    "exploitability",
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
