"""Settings that suit a game, all our choice: they replace the defaults, and a user's settings replace them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from azpy.settings.run import ABOUT, unused

__all__ = ["PRESETS", "preset_of"]

_COLUMNS = (
    "network",
    "simulations",
    "games_per_iteration",
    "temperature_plies",
    "opening_plies",
    "match_opening_plies",
)
_ROWS: dict[str, tuple[str | int | None, ...]] = {  # None: the default
    "tic_tac_toe": ("2x32", 50, 2000, 6, 2, 1),
    "hex": ("4x48", None, 128, 16, 4, 2),
    "go": ("6x64", None, 128, 16, 4, 4),
    "gomoku": ("4x48", None, 128, 12, 6, 6),
    "breakthrough": ("4x48", None, 256, 16, 6, 6),
    "othello": ("4x48", None, 128, 16, 8, 6),
    "chess": ("8x64", 200, 64, 30, 6, 6),
    "backgammon": ("3x256", None, 128, 20, 4, 4),
    "trictrac": ("3x256", None, 128, 20, 4, 4),
    "wall_game": ("6x64", 200, 128, 24, 4, 4),  # a turn is two actions, and each counts as a ply
    "pig": ("3x128", None, 500, None, None, 2),
    "dice_nim": ("3x128", None, 500, None, None, 0),
}
PRESETS: dict[str, dict[str, Any]] = {
    # benches/ablation.py compares it with PUCT and 100 simulations.
    "connect_four": {
        "network": "4x32",
        "simulations": 16,
        "gumbel_actions": 7,
        "games_per_iteration": 512,
        "opening_plies": 8,
        "batch_size": 128,
        "learning_rate": 0.0014,
        "passes": 2.0,
    }
}
for _game, _row in _ROWS.items():
    PRESETS[_game] = {name: value for name, value in zip(_COLUMNS, _row, strict=True) if value is not None}
PRESETS["tic_tac_toe"]["window_min"] = 10_000


def preset_of(game: str, given: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The preset of a game, whatever its parameters; empty for `module:Class` and games without a preset.

    Args:
        game: its spec.
        given: settings of the user. The preset leaves out Gumbel's settings if one of them is PUCT-only or sets
            `gumbel_actions` to 0, and PUCT's settings if they set `gumbel_actions`.
    """
    preset = dict(PRESETS.get(game.partition("(")[0].strip(), {}))
    if given.get("gumbel_actions"):
        return {name: value for name, value in preset.items() if ABOUT[name].rule != "PUCT"}
    wants_puct = "gumbel_actions" in given or unused({"gumbel_actions": 1, **given})
    if "gumbel_actions" in preset and wants_puct:
        del preset["gumbel_actions"], preset["simulations"]  # so few are for Gumbel
    return preset
