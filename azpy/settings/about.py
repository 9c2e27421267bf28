"""The description of a setting: its help, type and range, and the errors for wrong values."""

import math
import typing
from dataclasses import dataclass
from typing import Any, Literal

from azpy.errors import SettingsError

Group = Literal["run", "search", "self-play", "learning", "matches"]
GROUPS: tuple[Group, ...] = typing.get_args(Group)
_NO_LIMIT = 2**32 - 1  # help and config.toml leave out a limit as high as this
_SWITCH = {"true": True, "false": False}
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


@dataclass(frozen=True)
class About:
    """The description of a setting."""

    help: str  # in a phrase
    group: Group  # where `--help` and config.toml list it
    kind: type = str  # without None and words
    optional: bool = False  # it may be None
    unit: str = ""  # what it counts
    source: str = "our choice"  # the paper, program or measurement that the default comes from
    rule: str = ""  # "PUCT" or "Gumbel": only that search looks at it
    without: tuple[str, ...] = ()  # settings that it does not go with
    needs: str | None = None  # the switch without which it has no effect
    low: float = -math.inf
    high: float = math.inf
    above: bool = False  # `low` itself is refused
    even: bool = False  # odd numbers are refused
    auto: bool = False  # the text `auto` is the default; `combine` puts a number there
    words: tuple[str, ...] = ()  # texts that stand for a number; of a text, all there are
    prefixes: tuple[str, ...] = ()  # texts that begin so stand for a number too, if more follows
    fixed: str = ""  # why a run that goes on cannot change it
    same_games: bool = False  # where a deterministic run may change it, games and weights stay the same

    @property
    def range(self) -> str:
        """The allowed values in words; empty if every value of its type is allowed."""
        parts = ["even"] if self.even else []
        if self.high < _NO_LIMIT and not self.above:
            parts.append(f"{self.low} to {self.high}")
        else:
            parts += [f"{'more than' if self.above else 'at least'} {self.low}"] if self.low > -math.inf else []
            parts += [f"at most {self.high}"] if self.high < _NO_LIMIT else []
        return " or ".join(filter(None, [*self._texts, ", ".join(parts)]))

    @property
    def _texts(self) -> list[str]:
        """The texts that stand for a number, as the user types them."""
        return [*self.words, *(f"{prefix}TEXT" for prefix in self.prefixes)]

    def _is_text(self, value: str) -> bool:
        return value in self.words or any(value.startswith(start) and value != start for start in self.prefixes)

    def checked(self, name: str, value: Any) -> Any:
        """The value as `Settings` holds it; `name` is for the error.

        Raises:
            SettingsError: a value of another type or out of range.
        """
        kind = self.kind
        if value == "none" and self.optional:  # as files say it where the default is another value
            return None
        if (value is None and self.optional) or (isinstance(value, str) and self._is_text(value)):
            return value
        fits = not (kind is str and self.words) and isinstance(value, (int, float) if kind is float else kind)
        if not fits or (isinstance(value, bool) and kind is not bool):  # True counts as 1 for Python, not here
            others = [] if kind is str and self.words else [_KINDS[kind]]
            expected = " or ".join([*self._texts, *others, *(["auto"] if self.auto else [])])
            raise SettingsError(f"{name} must be {expected}, got {value!r}")
        if kind in (bool, str):
            return value
        try:
            number = kind(value)
        except OverflowError:  # a whole number with more than 308 digits
            number = math.inf
        if kind is float and not math.isfinite(number):
            raise SettingsError(f"{name} must be a finite number, got {number}")
        if number < self.low or (self.above and number == self.low):
            raise SettingsError(f"{name} must be {'more than' if self.above else 'at least'} {self.low}, got {number}")
        if number > self.high:
            raise SettingsError(f"{name} must be at most {self.high}, got {number}")
        if self.even and number % 2:
            raise SettingsError(f"{name} must be an even number, got {number}")
        return number

    def parsed(self, name: str, text: str) -> Any:
        """The value of a text; see `checked`."""
        try:
            value: Any = _SWITCH[text] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError):  # a word, or what `checked` refuses
            value = text
        return self.checked(name, value)
