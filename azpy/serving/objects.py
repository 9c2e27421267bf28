"""JSON objects that come from outside, and their fields: what is wrong is said with the field's name."""

import json
import math
import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from azpy.errors import RequestError

__all__ = ["decoded", "field", "flag", "list_of", "number", "object_of", "one_of", "text", "whole"]

_DEEPEST = 32  # lists and objects in each other
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[][{}]')  # and texts, in which they do not count


def decoded(line: str) -> dict[str, Any]:
    """The object that a text holds.

    Raises:
        RequestError: no JSON, or not one object; a key that comes twice, a number that is none, half a character, or
            more lists and objects in each other than anyone needs.
    """
    # JSON's own parser would recurse as deep as the text says.
    depth = 0
    if line.count("[") + line.count("{") > _DEEPEST:
        for bracket in _BRACKETS.findall(line):
            depth += (bracket in "[{") - (bracket in "]}")
            if depth > _DEEPEST:
                raise RequestError(f"more than {_DEEPEST} lists and objects in each other")
    try:
        found = json.loads(
            line, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite, parse_int=_whole
        )
        if "\\u" in line:
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError("half a surrogate pair is no character") from None
    except (ValueError, RecursionError) as error:
        raise RequestError(f"expected one JSON object a line: {error}"[:300]) from error
    if not isinstance(found, dict):
        raise RequestError("expected one JSON object a line")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RequestError("a key comes twice")
    return found


def _no_number(word: str) -> Any:
    raise RequestError(f"{word} is no number of JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise RequestError(f"{digits[:40]} is too large a number")
    return value


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # Python takes 4,300 digits
        raise RequestError(f"{digits[:40]} is too large a number") from None


def field(fields: Mapping[str, Any], path: str) -> object:
    """The field that `path` ends with, which must be there."""
    try:
        return fields[path.rpartition(".")[2]]
    except KeyError:
        raise RequestError(f"{path} is missing") from None


def object_of(value: object, path: str) -> Mapping[str, Any]:
    """The value as an object."""
    if not isinstance(value, dict):
        raise RequestError(f"{path}: expected an object, got {reprlib.repr(value)}")
    return value


def list_of(value: object, path: str) -> list[Any]:
    """The value as a list."""
    if not isinstance(value, list):
        raise RequestError(f"{path}: expected a list, got {reprlib.repr(value)}")
    return value


def text(value: object, path: str) -> str:
    """The value as a text."""
    if not isinstance(value, str):
        raise RequestError(f"{path}: expected a text, got {reprlib.repr(value)}")
    return value


def whole(value: object, path: str, numbers: range) -> int:
    """The value as a whole number of a range."""
    # True is an int to Python, and no number to JSON.
    if type(value) is not int or value not in numbers:
        expected = f"a whole number from {numbers[0]} to {numbers[-1]}"
        raise RequestError(f"{path}: expected {expected}, got {reprlib.repr(value)}")
    return value


def number(value: object, path: str, low: float, high: float) -> float:
    """The value as a number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise RequestError(f"{path}: expected a number from {low:g} to {high:g}, got {reprlib.repr(value)}")
    return float(value)


def flag(value: object, path: str) -> bool:
    """The value as true or false."""
    if not isinstance(value, bool):
        raise RequestError(f"{path}: expected true or false, got {reprlib.repr(value)}")
    return value


def one_of(value: object, path: str, names: Sequence[str]) -> str:
    """The value as one of some texts."""
    if not isinstance(value, str) or value not in names:
        expected = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
        raise RequestError(f"{path}: expected {expected}, got {reprlib.repr(value)}")
    return value
