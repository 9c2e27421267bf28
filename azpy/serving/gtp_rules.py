"""The rules of Go as KataGo's commands name them, and those that azpy plays."""

import json
from collections.abc import Mapping, Sequence

from azpy import _core
from azpy.errors import RequestError
from azpy.serving.objects import decoded

__all__ = ["Rules"]

# KataGo's names of rules that azpy can play, and their ko. Other names stand for another rule in any case.
_NAMED = {"chinese": "SIMPLE", "chinese-kgs": "POSITIONAL", "chinese-ogs": "POSITIONAL"}


class Rules:
    """The rules of a player's game, which no command changes.

    Args:
        start: a position of the game.
    """

    def __init__(self, start: _core.State) -> None:
        self._rules: dict[str, str | bool] = {
            "ko": "POSITIONAL" if start.params["superko"] else "SIMPLE",
            "scoring": "AREA",
            "tax": "NONE",
            "suicide": False,
            "hasButton": False,
            "whiteHandicapBonus": "0",
            "friendlyPassOk": False,
        }

    def said(self) -> str:
        """The rules as `kata-get-rules` says them."""
        return json.dumps(self._rules, separators=(",", ":"), sort_keys=True)

    def set_all(self, text: str) -> str:
        """`kata-set-rules`: a name of rules, or an object in JSON with some of them."""
        name = text.strip().lower().replace("_", "-").replace(" ", "-")
        if name in _NAMED:
            return self._check({"ko": _NAMED[name]})
        try:
            wanted = decoded(text)
        except RequestError as error:
            names = ", ".join(_NAMED)
            raise RequestError(
                f"azpy plays {self.said()}: expected {names}, or JSON with these rules: {error}"
            ) from None
        return self._check(wanted)

    def set_one(self, words: Sequence[str]) -> str:
        """`kata-set-rule`: a rule and its value."""
        if len(words) != 2:
            raise RequestError("syntax error: expected a rule and its value")
        return self._check({words[0]: words[1]})

    def _check(self, wanted: Mapping[str, object]) -> str:
        """Refuses each rule that azpy does not play."""
        for rule, given in wanted.items():
            if rule not in self._rules:
                raise RequestError(f"unknown rule {rule[:40]!r}: expected {', '.join(self._rules)}")
            played, asked = (json.dumps(value).strip('"') for value in (self._rules[rule], given))
            if asked.lower() != played.lower():
                raise RequestError(f"rule {rule}: azpy plays {played} here, not {asked[:40]}")
        return ""
