"""The rules of Go as KataGo's commands name them, and those that azpy plays."""

import json
from collections.abc import Mapping, Sequence

from azpy import _core
from azpy.errors import RequestError
from azpy.serving.objects import decoded

__all__ = ["Rules"]

_VALUES: dict[str, tuple[str | bool, ...]] = {
    "ko": ("SIMPLE", "POSITIONAL", "SITUATIONAL"),
    "scoring": ("AREA", "TERRITORY"),
    "tax": ("NONE", "SEKI", "ALL"),
    "suicide": (False, True),
    "hasButton": (False, True),
    "whiteHandicapBonus": ("0", "N-1", "N"),
    "friendlyPassOk": (False, True),
}
# What a name stands for in KataGo, as far as it differs from this.
_COMMON: dict[str, str | bool] = {
    "scoring": "AREA",
    "tax": "NONE",
    "suicide": False,
    "hasButton": False,
    "whiteHandicapBonus": "0",
}
_TERRITORY: dict[str, str | bool] = {"ko": "SIMPLE", "scoring": "TERRITORY", "tax": "SEKI"}
_AGA: dict[str, str | bool] = {"ko": "SITUATIONAL", "whiteHandicapBonus": "N-1"}
_NAMED: dict[str, dict[str, str | bool]] = {
    "tromp-taylor": {"ko": "POSITIONAL", "suicide": True},
    "chinese": {"ko": "SIMPLE", "whiteHandicapBonus": "N"},
    "chinese-ogs": {"ko": "POSITIONAL", "whiteHandicapBonus": "N"},
    "chinese-kgs": {"ko": "POSITIONAL", "whiteHandicapBonus": "N"},
    "japanese": _TERRITORY,
    "korean": _TERRITORY,
    "stone-scoring": {"ko": "SIMPLE", "tax": "ALL"},
    "aga": _AGA,
    "bga": _AGA,
    "new-zealand": {"ko": "SITUATIONAL", "suicide": True},
    "aga-button": {**_AGA, "hasButton": True},
}
_BONUS = "whiteHandicapBonus"


class Rules:
    """The rules of a player's game. One of them can be set: the bonus for a handicap, which no score here has.

    Without a handicap the bonus is nothing, so the named rules that have one are taken. A handicap is refused then.

    Args:
        start: a position of the game.
    """

    def __init__(self, start: _core.State) -> None:
        ko = "SIMPLE" if "superko=0" in start.game else "POSITIONAL"
        self._now: dict[str, str | bool] = {"ko": ko, **_COMMON, "friendlyPassOk": False}

    @property
    def bonus(self) -> str:
        """White's bonus for N stones of a handicap: 0, N-1 or N."""
        return str(self._now[_BONUS])

    def said(self) -> str:
        """The rules as `kata-get-rules` says them."""
        return json.dumps(self._now, separators=(",", ":"), sort_keys=True)

    def set_all(self, text: str, has_handicap: bool) -> str:
        """`kata-set-rules`: a name of rules, or an object in JSON with some of them."""
        name = text.strip().lower().replace("_", "-").replace(" ", "-")
        if name in _NAMED:
            return self._set({**_COMMON, **_NAMED[name]}, has_handicap)
        try:
            wanted = decoded(text)
        except RequestError as error:
            raise RequestError(f"expected one of {', '.join(_NAMED)}, or JSON: {error}") from None
        return self._set(wanted, has_handicap)

    def set_one(self, words: Sequence[str], has_handicap: bool) -> str:
        """`kata-set-rule`: a rule and its value."""
        if len(words) != 2:
            raise RequestError("syntax error: expected a rule and its value")
        return self._set({words[0]: words[1]}, has_handicap)

    def _set(self, wanted: Mapping[str, object], has_handicap: bool) -> str:
        bonus = self._now[_BONUS]
        for rule, given in wanted.items():
            if rule not in _VALUES:
                raise RequestError(f"unknown rule {rule[:40]!r}: expected {', '.join(_VALUES)}")
            value = next((value for value in _VALUES[rule] if str(value).lower() == str(given).lower()), None)
            if value is None:
                choices = ", ".join(_written(value) for value in _VALUES[rule])
                raise RequestError(f"rule {rule}: expected {choices}, got {str(given)[:40]!r}")
            if rule == _BONUS:
                if has_handicap and value != "0":
                    raise RequestError(f"rule {rule}: the game has a handicap, and azpy counts no bonus for it: only 0")
                bonus = value
            elif value != self._now[rule]:
                raise RequestError(f"rule {rule}: azpy plays {_written(self._now[rule])} here, not {_written(value)}")
        self._now[_BONUS] = bonus
        return ""


def _written(value: str | bool) -> str:
    return value if isinstance(value, str) else str(value).lower()
