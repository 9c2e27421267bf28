"""Settings written after a name, as in a URL: `runs/a?c_puct=1&simulations=200`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from azpy import _core
from azpy.errors import SettingsError, did_you_mean
from azpy.matches.levels import LEVELS, WARMEST, level_word
from azpy.settings.run import ABOUT

# Keys of a player's query: its level, how warm it plays, and options of `Search`.
SEARCH_KEYS = (
    "simulations",
    "level",
    "temperature",
    *(name for name, row in _core.OPTIONS.items() if row["group"] == "search"),
)


def parse_query(text: str, parse: Callable[[str, str], Any]) -> dict[str, Any]:
    """The values of `key=value&key=value`; `parse` gives the value of a key and a text.

    Raises:
        SettingsError: a part without `=`, a key that comes twice, or a value that `parse` refuses.
    """
    found: dict[str, Any] = {}
    for part in text.split("&"):
        key, mark, value = part.partition("=")
        if not mark:
            raise SettingsError(f"expected key=value, got {part!r}")
        if key in found:
            raise SettingsError(f"{key} is given twice")
        found[key] = parse(key, value)
    return found


def parse_search(text: str) -> dict[str, Any]:
    """The options of a player's search that a query gives, `simulations` and `temperature` among them.

    A `level` that is a word of `LEVELS` stays; a number is one of simulations.

    Raises:
        SettingsError: see `parse_query`; an unknown key or a bad value.
    """
    found = parse_query(text, _search_value)
    if "level" in found:  # as in az-play
        level = found.pop("level")
        if "simulations" in found:
            raise SettingsError(
                "level and simulations exclude each other, because a level sets the simulations: give one of them"
            )
        if isinstance(level, str) and "temperature" in found:
            raise SettingsError(
                f"level and temperature exclude each other, because {level} sets the temperature: give one of them"
            )
        found["level" if isinstance(level, str) else "simulations"] = level
    return found


def query_text(values: Mapping[str, Any]) -> str:
    """The query that gives these values, with its `?`; empty if there are none."""
    texts = [f"{key}={_text(value)}" for key, value in values.items()]
    return "?" + "&".join(texts) if texts else ""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _search_value(key: str, text: str) -> Any:
    if key not in SEARCH_KEYS:
        hint = did_you_mean(key, SEARCH_KEYS) or f"; expected one of {', '.join(SEARCH_KEYS)}"
        raise SettingsError(f"{key}: not a setting of a player's search{hint}")
    if key == "temperature":
        return replace(ABOUT[key], high=WARMEST).checked(key, text, typed=True)
    if key == "level" and not text.strip().lstrip("+-").isdecimal():
        if (word := level_word(text)) is None:
            raise SettingsError(f"level: expected {', '.join(LEVELS)} or a number of simulations, got {text!r}")
        return word
    return replace(ABOUT["simulations" if key == "level" else key], auto=False).checked(key, text, typed=True)
