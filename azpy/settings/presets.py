"""Settings that suit a game, all our choice: they stand in for the defaults, and what a user gives wins over them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from azpy.settings import Settings

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


# Settings that Gumbel's planning refuses, or does not look at though someone who gives them expects it to.
_PUCT_ALONE = ("evaluations", "forced_visits", "root_temperature", "root_noise")


def preset_of(game: str, given: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The preset of a game's spec, whatever its parameters; empty for `module:Class` and games without one.

    Args:
        game: its spec.
        given: settings that a user gives. Where one of them is for PUCT alone, or they say PUCT, the
            preset does not plan with Gumbel.
    """
    preset = dict(PRESETS.get(game.partition("(")[0].strip(), {}))
    defaults = {name: getattr(Settings, name) for name in _PUCT_ALONE}
    wants_puct = any(given.get(name, default) != default for name, default in defaults.items())
    if "gumbel_actions" in preset and (wants_puct or given.get("gumbel_actions") == 0):
        del preset["gumbel_actions"], preset["simulations"]  # so few are for Gumbel
    return preset
