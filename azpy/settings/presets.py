"""Settings that suit a game, all our choice: they replace the defaults, and a user's settings replace them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from azpy.settings.run import ABOUT, unused

__all__ = ["PRESETS", "preset_of"]

PRESETS: dict[str, dict[str, Any]] = {
    # benches/ablation.py sets it against PUCT with 100 simulations.
    "connect_four": {
        "network": "4x32",
        "simulations": 16,
        "gumbel_actions": 7,
        "games_per_iteration": 512,
        "opening_plies": 8,
        "batch_size": 128,
        "learning_rate": 0.0014,
        "passes": 2.0,
    },
    "tic_tac_toe": {
        "network": "2x32",
        "simulations": 50,
        "games_per_iteration": 2000,
        "temperature_plies": 6,
        "opening_plies": 2,
        "match_opening_plies": 1,
        "window_min": 10_000,
    },
    "hex": {
        "network": "4x48",
        "games_per_iteration": 128,
        "temperature_plies": 16,
        "opening_plies": 4,
        "match_opening_plies": 2,
    },
    "go": {
        "network": "6x64",
        "games_per_iteration": 128,
        "temperature_plies": 16,
        "opening_plies": 4,
        "match_opening_plies": 4,
    },
    "gomoku": {
        "network": "4x48",
        "games_per_iteration": 128,
        "temperature_plies": 12,
        "opening_plies": 6,
        "match_opening_plies": 6,
    },
    "breakthrough": {
        "network": "4x48",
        "games_per_iteration": 256,
        "temperature_plies": 16,
        "opening_plies": 6,
        "match_opening_plies": 6,
    },
    "othello": {
        "network": "4x48",
        "games_per_iteration": 128,
        "temperature_plies": 16,
        "opening_plies": 8,
        "match_opening_plies": 6,
    },
    "chess": {
        "network": "8x64",
        "simulations": 200,
        "games_per_iteration": 64,
        "temperature_plies": 30,
        "opening_plies": 6,
        "match_opening_plies": 6,
    },
    "backgammon": {
        "network": "3x256",
        "games_per_iteration": 128,
        "temperature_plies": 20,
        "opening_plies": 4,
        "match_opening_plies": 4,
    },
    # A turn is two actions of one player: plies are counted in actions.
    "wall_game": {
        "network": "6x64",
        "simulations": 200,
        "games_per_iteration": 128,
        "temperature_plies": 24,
        "opening_plies": 4,
        "match_opening_plies": 4,
    },
    "pig": {"network": "3x128", "games_per_iteration": 500, "match_opening_plies": 2},
    "dice_nim": {"network": "3x128", "games_per_iteration": 500, "match_opening_plies": 0},
}


def preset_of(game: str, given: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The preset of a game's spec, whatever its parameters; empty for `module:Class` and games without one.

    Args:
        game: its spec.
        given: settings that a user gives. The preset leaves out what does not go with them: Gumbel's settings where one
            of them is for PUCT alone or sets `gumbel_actions` to 0, and PUCT's where they set `gumbel_actions`.
    """
    preset = dict(PRESETS.get(game.partition("(")[0].strip(), {}))
    if given.get("gumbel_actions"):
        return {name: value for name, value in preset.items() if ABOUT[name].rule != "PUCT"}
    wants_puct = "gumbel_actions" in given or unused({"gumbel_actions": 1, **given})
    if "gumbel_actions" in preset and wants_puct:
        del preset["gumbel_actions"], preset["simulations"]  # so few are for Gumbel
    return preset
