"""The options of UCI and UGI: what each one takes, and their values as text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from azpy.serving.models import TREES_MB, Served
from azpy.serving.uci_positions import is_chess960

__all__ = ["WITHOUT_END", "Option", "labels_of", "options_of", "plain", "whole"]

WITHOUT_END = 2**32 - 1
"""Simulations of a search that something else ends."""
_LONGEST_NUMBER = 18  # digits; a longer number counts as the largest of this length
_RESERVED = {"name", "type", "default", "min", "max", "var", "value", "<empty>"}


@dataclass(frozen=True)
class Option:
    """A setting of the protocol: a number from `low` to `high`, a switch, a text, or one of `choices`."""

    default: int | bool | str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()  # words without blanks

    def declared(self) -> str:
        """The option as `uci` lists it."""
        if self.choices:
            return f"type combo default {self.default}{''.join(f' var {choice}' for choice in self.choices)}"
        if isinstance(self.default, bool):
            return f"type check default {str(self.default).lower()}"
        if isinstance(self.default, str):
            return f"type string default {self.default or '<empty>'}"
        return f"type spin default {self.default} min {self.low} max {self.high}"

    def read(self, text: str) -> int | bool | str:
        """The value of a text.

        Raises:
            ValueError: a text that is no such value; says what was expected.
        """
        if self.choices:
            choice = next((choice for choice in self.choices if choice.lower() == text.lower()), None)
            if choice is None:
                raise ValueError(f"expected one of {', '.join(self.choices)}, got {text!r}")
            return choice
        if isinstance(self.default, bool):
            if text.lower() not in {"true", "false"}:
                raise ValueError(f"expected true or false, got {text!r}")
            return text.lower() == "true"
        if isinstance(self.default, str):
            return "" if text == "<empty>" else text
        number = whole(text)
        if number is None or self.low is None or self.high is None or not self.low <= number <= self.high:
            raise ValueError(f"expected a whole number from {self.low} to {self.high}, got {text!r}")
        return number


def options_of(served: Served, word: str, players: Sequence[str]) -> dict[str, Option]:
    """The options of a protocol, `word`, by name; `players` are the words of the players to choose among."""
    options = {
        "Threads": Option(1, 1, 1024),
        "Hash": Option(TREES_MB, 1, 1 << 20),  # MB of all trees
        "NNCacheSize": Option(200_000, 0, 1 << 28),  # answers of the network
        "Move Overhead": Option(30, 0, 60_000),  # ms
        "MultiPV": Option(1, 1, 500),
        "Ponder": Option(False),
        "Simulations": Option(0, 0, WITHOUT_END),  # of every move, in place of its time; 0: as `go` says
        "Temperature": Option(round(100 * served.temperature), 0, 1000),  # hundredths
        "UCI_ShowWDL": Option(False),
        "VerboseMoveStats": Option(False),
        "SyzygyPath": Option(""),
    }
    if word == "uci":
        options["UCI_Chess960"] = Option(is_chess960(served.start))
    if len(players) > 1:
        options["Model"] = Option(players[0], choices=tuple(players))
    return options


def whole(text: str) -> int | None:
    """The whole number that a text is; None if it is none."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        return None
    size = int(digits) if len(digits) <= _LONGEST_NUMBER else 10**_LONGEST_NUMBER
    return size if digits == text else -size


def plain(text: str) -> str:
    """A text in one line, without what cannot be written."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def labels_of(names: Iterable[str]) -> dict[str, str]:
    """The names by a word for each, without blanks: none of the protocol's, and no two alike in any case."""
    labels: dict[str, str] = {}
    for name in names:
        label = plain(name).replace(" ", "_") or "player"
        while label.lower() in _RESERVED | {known.lower() for known in labels}:
            label += "_"
        labels[label] = name
    return labels
