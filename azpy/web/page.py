"""A page without a server: the board, a player, and the program that answers in place of the server.

The program is `board/azpy.wasm.gz`, which `make wasm` builds of rust/web. docs/board.md says how the page is served.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import azpy
from azpy import _core
from azpy.errors import SettingsError
from azpy.games.names import is_python_class, name_of
from azpy.runs import storage
from azpy.serving.limits import CLIENT_LIMITS
from azpy.serving.models import Served
from azpy.serving.queries import about

_PROGRAM = "azpy.wasm.gz"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
"""The page's content security policy, as the server sends it."""
# What WebAssembly needs besides, and where the page has it.
_WITH_PROGRAM = ("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'")
_HEAD = '<meta charset="utf-8">'
# What a server would say of itself. The page asks for it first.
_ABOUT = {"version": azpy.__version__, "run": None, "renews": False, "token": False, "local": True}
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
"""Media types of the page's files, by what their names end with."""


def assets() -> dict[str, bytes]:
    """The page's own files by name: index.html, and those of its folder `board`."""
    found = (files("azpy.web") / "board").iterdir()
    return {file.name: file.read_bytes() for file in found if file.name.rpartition(".")[2] in TYPES}


def check_page(game: str) -> None:
    """Raises a `SettingsError` if no page without a server can be written for a game, see `make_game`."""
    if not (files("azpy.web") / "board" / _PROGRAM).is_file():
        raise SettingsError(
            f"--web: this installation lacks azpy/web/board/{_PROGRAM}, the program of such pages: install azpy from a "
            "wheel, or run `make wasm` in its source tree"
        )
    if name_of(game) in _core.BUILT_IN:
        return
    if is_python_class(game):
        why = "it is written in Python, and the page has no Python: docs/own_game.md says how to write it in Rust"
    else:
        why = f"the page's program has these games: {', '.join(_core.BUILT_IN)}"
    raise SettingsError(f"--web: {game} cannot be played in the browser alone. {why}. az-play and az-serve play it")


def write_page(folder: Path, served: Served, network: Mapping[str, Any] | None, weights: bytes) -> dict[str, int]:
    """Writes a page on which people play `served`, whole or not at all.

    Args:
        folder: a new one.
        served: the player.
        network: what its network is, as `Net::read` of rust/net takes it; None for a player without a network.
        weights: those of the network, as a safetensors file.

    Returns:
        The bytes of each file.

    Raises:
        SettingsError: the game cannot be played there, or the program of such pages is missing.
        RunError: something of this name is there, or it cannot be written.
    """
    check_page(served.start.game)
    player = {
        "about": about("main", served, CLIENT_LIMITS),
        "temperature": served.temperature,
        "limits": vars(CLIENT_LIMITS),
        "options": served.options,
        "network": network,
    }
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY.replace(*_WITH_PROGRAM)}">'
    page = {f"board/{name}": data for name, data in assets().items()}
    page["index.html"] = page.pop("board/index.html").replace(_HEAD.encode(), f"{_HEAD}\n    {policy}".encode(), 1)
    page |= {
        f"board/{_PROGRAM}": (files("azpy.web") / "board" / _PROGRAM).read_bytes(),
        "player.json": json.dumps(player, allow_nan=False).encode(),
        "about": json.dumps(_ABOUT).encode(),
    }
    if network is not None:
        page["weights.safetensors"] = weights
    with storage.output_folder(folder) as new:
        (new / "board").mkdir()
        for name, data in page.items():
            storage.write_synced(new / name, data)
    return {name: len(data) for name, data in page.items()}
