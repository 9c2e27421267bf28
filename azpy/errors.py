"""Errors that end a command with one clear line. They know nothing of games, files or models.

Everything a user can put right (a wrong name, a damaged file, a full disk) is an `AzpyError`; anything else
that escapes azpy is a bug.
"""

import difflib
import importlib
import importlib.util
import os
import re
import traceback
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path


class AzpyError(Exception):
    """Base of the errors below: its text is one line that says what came and what was expected."""


class DeviceError(AzpyError, RuntimeError):
    """A device that was asked for and cannot be used; the text says why, and what to do."""


class ModelError(AzpyError, ValueError):
    """A model that is missing, damaged, does not fit the game, or differs from the network it was exported from."""


class RequestError(AzpyError, ValueError):
    """A request from another program that cannot be served; the text names the field."""


class RunError(AzpyError, RuntimeError):
    """A run folder that is in use, damaged, holds another run, or cannot be written."""


class SettingsError(AzpyError, ValueError):
    """A setting outside its range, or settings that contradict each other."""


class SettingsWarning(UserWarning):
    """A setting that azpy leaves out, or that has no effect; what was asked for goes on."""


@cache
def warn_once(problem: str) -> None:
    """Warn of something that is given and does nothing, once in a process."""
    warnings.warn(problem, SettingsWarning, stacklevel=2)


class MissingPackageError(AzpyError, ImportError):
    """An optional package that is not installed; the text holds the `pip install` line that brings it."""


# What each extra of pyproject.toml brings, without lower bounds: pip takes the newest.
EXTRAS: dict[str, tuple[str, ...]] = {
    "cpu": ("onnxruntime",),
    "cuda": ("onnxruntime-gpu[cuda,cudnn]",),
    "tensorrt": ("onnxruntime-gpu[cuda,cudnn]", "tensorrt-cu13<11"),
    "webgpu": ("onnxruntime-ep-webgpu",),
    "openvino": ("onnxruntime-ep-openvino",),
    "openspiel": ("open_spiel",),
    "train": ("torch", "safetensors", "onnx"),
    "tensorboard": ("tensorboard",),
    "serve": ("starlette", "uvicorn<1", "h11", "websockets", "prometheus-client"),
    "ray": ("ray",),
}


def pip_install(*extras: str) -> str:
    """The command that brings what these extras of azpy bring.

    It names the packages: `azpy[extra]` would need an azpy that pip finds in an index.

    Example:
        >>> pip_install("cuda")
        'pip install "onnxruntime-gpu[cuda,cudnn]"'
    """
    packages = dict.fromkeys(package for extra in extras for package in EXTRAS[extra])
    return " ".join(["pip install", *(one if one.isidentifier() else f'"{one}"' for one in packages)])


def missing_to_train(package: str) -> MissingPackageError:
    """The error for a package that training needs.

    The `pip install` line brings ONNX Runtime where there is none, and leaves alone the one that is there: that for the
    CPU would overwrite one for a GPU.
    """
    extras = ("train",) if importlib.util.find_spec("onnxruntime") else ("cpu", "train")
    return MissingPackageError(f"{package} is not installed: {pip_install(*extras)}")


# azpy's settings and flags, and words of other programs for each.
_ELSEWHERE = {
    "batch_size": "batch bs",
    "device": "cuda gpu",
    "devices": "gpu",
    "games_per_iteration": "games",
    "learning_rate": "lr",
    "minutes": "hours time",
    "network": "arch model net",
    "init": "model",
    "out": "output",
    "passes": "epochs steps",
    "iterations": "epochs steps",
    "precision": "fp16",
    "training_precision": "fp16",
    "root_noise": "dirichlet",
    "simulations": "nodes playouts rollouts sims visits",
    "slots": "envs",
    "threads": "cpus",
    "weight_decay": "wd",
    "window_max": "replay",
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: what it is called here, the nearest known one, or nothing."""
    bare = {one.lstrip("-").replace("-", "_"): one for one in known}  # dashes make no name like another
    word = name.lstrip("-").replace("-", "_")
    near = [one for one, words in _ELSEWHERE.items() if one in bare and word.lower() in words.split()]
    near = near or difflib.get_close_matches(word, bare, n=1)
    return f"; did you mean {' or '.join(bare[one] for one in near)}?" if near else ""


def printable(text: str, instead: str = "?") -> str:
    """Return a text with `instead` in place of each character that steers a terminal or spoils a line."""
    return "".join(letter if letter.isprintable() else instead for letter in text)


def one_line(what: object, most: int = 500) -> str:
    """Return what a text or an error says: one line of limited length, without colours and control characters.

    An error without a text gives its type.
    """
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", str(what))
    words = printable(text, " ").split()
    return " ".join(words)[:most] or (type(what).__name__ if isinstance(what, BaseException) else "")


_PACKAGES = {"site-packages", "dist-packages"}
# azpy, importlib, and < for Python's frozen modules.
_NOT_OWN = ("<", f"{Path(__file__).parent}{os.sep}", f"{Path(importlib.__file__).parent}{os.sep}")


def raised(error: Exception) -> str:
    """Return the type and the text of an exception, with the last line of the user's own code that it passed."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_NOT_OWN) and _PACKAGES.isdisjoint(Path(frame.filename).parts)
    ]
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {one_line(error)}{where}"
