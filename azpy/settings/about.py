"""The description of a setting: its help, type and range, and the errors for wrong values."""

import math
import typing
from dataclasses import dataclass
from typing import Any, Literal

from azpy import _core
from azpy.errors import SettingsError

Group = Literal["run", "search", "self-play", "learning", "matches"]
GROUPS: tuple[Group, ...] = typing.get_args(Group)
_NO_LIMIT = 2**32 - 1  # help and config.toml leave out a limit as high as this


@dataclass(frozen=True)
class About:
    """The description of a setting."""

    help: str  # an imperative or a noun phrase of at most twelve words
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
    words: tuple[str, ...] = ()  # texts that stand for a number; of a text, all there are; TEXT at an end is any
    fixed: str = ""  # why a run that goes on cannot change it
    same_games: bool = False  # where a deterministic run may change it, games and weights stay the same

    @property
    def range(self) -> str:
        """The allowed values in words; empty if every value of its type is allowed."""
        if self.kind is bool:
            return ""
        parts = ["even"] if self.even else []
        if self.high < _NO_LIMIT and not self.above:
            parts.append(f"{self.low} to {self.high}")
        else:
            parts += [f"{'more than' if self.above else 'at least'} {self.low}"] if self.low > -math.inf else []
            parts += [f"at most {self.high}"] if self.high < _NO_LIMIT else []
        return " or ".join(filter(None, [*self.words, ", ".join(parts)]))

    def checked(self, name: str, value: Any, *, typed: bool = False) -> Any:
        """The value as `Settings` holds it; `auto` stays, which `combine` replaces.

        Args:
            name: for the error.
            value: of any type.
            typed: whether it is a text that the user typed for a value.

        Raises:
            SettingsError: a value of another type or out of range.
        """
        try:
            return _core.read_setting(self, name, value, typed)
        except ValueError as error:
            raise SettingsError(str(error)) from None
