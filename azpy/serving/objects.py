"""JSON objects that come from outside, and their fields: what is wrong is said with the field's name."""

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from azpy import _core
from azpy.errors import RequestError

__all__ = ["decoded", "field", "list_of", "object_of", "one_of", "whole"]


def decoded(text: str) -> dict[str, Any]:
    """The object that a text holds.

    Raises:
        RequestError: no JSON, or not one object; a key that comes twice, a number that is none, half a character, or
            more lists and objects in each other than anyone needs.
    """
    try:
        return _core.Request(text).fields()
    except ValueError as error:
        raise RequestError(str(error)) from None


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


def whole(value: object, path: str, numbers: range) -> int:
    """The value as a whole number of a range."""
    # True is an int to Python, and no number to JSON.
    if type(value) is not int or value not in numbers:
        expected = f"a whole number from {numbers[0]} to {numbers[-1]}"
        raise RequestError(f"{path}: expected {expected}, got {reprlib.repr(value)}")
    return value


def one_of(value: object, path: str, names: Sequence[str]) -> str:
    """The value as one of some texts."""
    if not isinstance(value, str) or value not in names:
        expected = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
        raise RequestError(f"{path}: expected {expected}, got {reprlib.repr(value)}")
    return value
