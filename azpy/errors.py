"""Errors that end a command with one clear line. They know nothing of games, files or models.

Everything a user can put right (a wrong name, a damaged file, a full disk) is an `AzpyError`; anything else
that escapes azpy is a bug.
"""

import difflib
from collections.abc import Iterable

__all__ = ["AzpyError", "MissingPackageError", "ModelError", "RunError", "SettingsError", "did_you_mean"]


class AzpyError(Exception):
    """Base of the errors below: its text is one line that says what came and what was expected."""


class ModelError(AzpyError, ValueError):
    """A model that is missing, damaged, does not fit the game, or differs from the network it was exported from."""


class RunError(AzpyError, RuntimeError):
    """A run folder that is in use, damaged, holds another run, or cannot be written."""


class SettingsError(AzpyError, ValueError):
    """A setting outside its range, or settings that contradict each other."""


class MissingPackageError(AzpyError, ImportError):
    """An optional package that is not installed; the text holds the `pip install` line that brings it."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest known one, or nothing if none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
