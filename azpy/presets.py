"""Settings that suit a game, all our choice: they stand in for the defaults, and what a user gives wins over them."""

from typing import Any

__all__ = ["PRESETS", "preset_of"]

PRESETS: dict[str, dict[str, Any]] = {
    # benches/ablation.py sets it against PUCT with 100 simulations, and changes one setting at a time.
    "connect_four": {
        "network": "4x32",
        "simulations": 16,
        "match_simulations": 100,
        "gumbel_actions": 7,
        "games_per_iteration": 512,
        "temperature_plies": 12,
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


def preset_of(game: str) -> dict[str, Any]:
    """The preset of a game's spec, whatever its parameters; empty for `module:Class` and games without one."""
    return dict(PRESETS.get(game.partition("(")[0].strip(), {}))
