"""A position as a page or a person needs it: the picture, and what can be played."""

from typing import Any

from azpy import _core

__all__ = ["shown"]


def shown(state: _core.State) -> dict[str, Any]:
    """What is there to see and to play.

    Returns:
        `player` (0 or 1; None at a roll and at the end), `outcome` (for player 0; None before the end), `svg`, `text`
        (None if the game has no notation of positions), `actions` (each with `name`, `short`, and `touches`: the places
        of the picture to touch one after the other, as [place, x, y, width, height] in the picture's units) and `rolls`
        (each with `name` and `probability`).
    """
    is_roll = state.turn == _core.CHANCE
    actions = [] if is_roll or state.is_terminal else state.legal_actions()
    try:
        text: str | None = state.to_text()
    except ValueError:
        text = None
    return {
        "player": state.turn if state.turn >= 0 else None,
        "outcome": state.outcome() if state.is_terminal else None,
        "svg": state.to_svg(),
        "text": text,
        "actions": [
            {
                "name": state.action_name(action),
                "short": state.short_name(action),
                "touches": [[place, *box] for place, box in state.touches(action)],
            }
            for action in actions
        ],
        "rolls": [
            {"name": state.action_name(outcome), "probability": probability}
            for outcome, probability in (state.chance_outcomes() if is_roll else [])
        ],
    }
