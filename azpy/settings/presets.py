"""Settings that suit a game, all our choice: they replace the defaults, and a user's settings replace them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from azpy._core import State
from azpy.games.names import name_of
from azpy.settings.run import ABOUT, Settings, unused

# Many games with few simulations each: docs/explanation/strength.md has the runs, and search.md beside it those of
# Connect Four.
_GUMBEL: dict[str, Any] = {"simulations": 32, "gumbel_actions": 16, "passes": 2.0}
_FAST_LEARNING: dict[str, Any] = {"learning_rate": 0.008, "weight_decay": 0.1}
_LONG_GAMES = _GUMBEL | {"games_per_iteration": 128}
# Self-play hardly sees some wins in one ply, such as taking all discs of Othello early: their prior is near 0, and a
# search would not try them (docs/lab.md, 29 November 2026).
_LOOK: dict[str, Any] = {"match_lookahead": 1}
PRESETS: dict[str, dict[str, Any]] = {
    "connect_four": {
        **_FAST_LEARNING,
        "network": "4x32",
        "simulations": 16,
        "gumbel_actions": 7,
        "games_per_iteration": 512,
        "opening_plies": 16,
        "match_lookahead": 4,
        "batch_size": 128,
        "passes": 2.0,
        "optimizer": "muon",  # 0.559 [0.504, 0.614] against AdamW in equal time: docs/explanation/search.md
    },
    # Not tuned, but for the ranked reward: +0.891 after 15 minutes of a core, +0.734 without it
    # (docs/explanation/strength.md).
    "game2048": _GUMBEL | {"network": "4x32", "games_per_iteration": 32, "ranked_reward": 0.75},
    # Not tuned: these two, of three players and of one.
    "connect_four_for_three": _GUMBEL | {"network": "4x32", "opening_plies": 6},
    "peg_solitaire": _GUMBEL | {"network": "3x32"},
    "hex": _GUMBEL | {"network": "3x32+pool", "opening_plies": 4, "match_opening_plies": 2, **_LOOK},
    # Games go on after they are decided: a score of 0.62 against runs without it (docs/lab.md, "Resignation in Go").
    "go": _GUMBEL
    | _FAST_LEARNING
    | {"network": "4x48", "opening_plies": 4, "resign_at": 0.9, "match_opening_plies": 4, **_LOOK},
    "gomoku": _GUMBEL | {"network": "3x32+pool", "opening_plies": 6, "match_opening_plies": 6, **_LOOK},
    "breakthrough": _GUMBEL | {"network": "3x32+pool", "opening_plies": 6, "match_opening_plies": 6, **_LOOK},
    # It loses all discs in five plies where the other side has to pass. A c_puct of 0.8 scores 0.651 against 2.5, and
    # the default 0.583 (docs/lab.md, "c_puct in matches").
    "othello": _GUMBEL
    | {"network": "4x48", "opening_plies": 8, "match_opening_plies": 6, "match_lookahead": 5, "match_c_puct": 0.8},
    "backgammon": _GUMBEL | {"network": "3x256", "opening_plies": 4, "match_opening_plies": 4},
    "trictrac": _GUMBEL | {"network": "3x256", "opening_plies": 4, "match_opening_plies": 4},
    # With the look, self-play sees each mate in one: more games are won, and they are shorter (docs/lab.md, "Chess").
    "chess": {
        **_LONG_GAMES,
        "network": "3x32+pool",
        "opening_plies": 6,
        "match_opening_plies": 6,
        "solver": True,
        "lookahead": 1,
        **_LOOK,
    },
    "wall_game": _LONG_GAMES | {"network": "3x32+pool", "opening_plies": 4, "match_opening_plies": 4, **_LOOK},
    # The three below are plain values: nothing was tuned for these games.
    "blokus": _LONG_GAMES | {"network": "3x32", "opening_plies": 2, "match_opening_plies": 2},
    "chinese_checkers": _LONG_GAMES | {"network": "3x32", "opening_plies": 6, "match_opening_plies": 6},
    "maedn": _GUMBEL | {"network": "3x128", "opening_plies": 4, "match_opening_plies": 4},
    "tic_tac_toe": {
        "network": "2x32",
        "simulations": 50,
        "games_per_iteration": 2000,
        "temperature_plies": 6,
        "opening_plies": 2,
        "match_opening_plies": 1,
        **_LOOK,
        "window_min": 10_000,
    },
    "pig": {"network": "3x128", "games_per_iteration": 500, "match_opening_plies": 2},
    "dice_nim": {"network": "3x128", "games_per_iteration": 500, "match_opening_plies": 0},
}


def preset_of(game: str, given: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The preset of a game, whatever its parameters; empty for `module:Class` and games without a preset.

    Args:
        game: its spec.
        given: settings of the user, see `beside`.
    """
    return beside(PRESETS.get(name_of(game), {}), given)


def usual_settings(start: State) -> Settings:
    """Return the defaults with the game's preset. A model file without a run folder plays by their `match_` options."""
    return Settings(start.game, **(preset_of(start.game) if start.game_object is None else {}))


def beside(chosen: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The chosen settings that go with those of the user.

    Gumbel's are left out if one of the user's is PUCT-only or sets `gumbel_actions` to 0. So are settings that have no
    effect beside those of the user.
    """
    preset = dict(chosen)
    puct_only = any(ABOUT[name].rule == "PUCT" for name in unused({"gumbel_actions": 1, **given}))
    wants_puct = not given["gumbel_actions"] if "gumbel_actions" in given else puct_only
    if "gumbel_actions" in preset and wants_puct:
        del preset["gumbel_actions"]
        preset.pop("simulations", None)  # so few are for Gumbel
    without_effect = unused({**preset, **given})
    return {name: value for name, value in preset.items() if name not in without_effect}
