"""A page without a server: the board, a player, and the program that answers in place of the server.

The program is `board/azpy.wasm.gz`, which `make wasm` builds of rust/web. docs/board.md says how the page is served.
"""

import gzip
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

_PACKED = "azpy.wasm.gz"
# What a server would say of itself. The page asks for it first.
_ABOUT = {"version": azpy.__version__, "run": None, "renews": False, "token": False, "local": True}
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
"""Media types of the page's files, by what their names end with."""


def assets() -> dict[str, bytes]:
    """The page's own files by name: index.html, and those of its folder `board`."""
    found = (files("azpy.web") / "board").iterdir()
    return {file.name: file.read_bytes() for file in found if file.name.rpartition(".")[2] in TYPES}


def refuse_game(game: str, to_do: str = "az-play and az-serve play it") -> None:
    """Raises a `SettingsError` if a page without a server cannot play a game, see `make_game`."""
    if name_of(game) in _core.BUILT_IN:
        return
    if is_python_class(game):
        why = "it is written in Python, and the page has no Python: docs/own_game.md says how to write it in Rust"
    else:
        why = f"the page's program has these games: {', '.join(_core.BUILT_IN)}"
    raise SettingsError(f"--web: {game} cannot be played in the browser alone. {why}. {to_do}")


def write_page(folder: Path, served: Served, network: Mapping[str, Any] | None, weights: bytes) -> dict[str, int]:
    """Writes a page on which people play `served`. Its files replace those of an earlier page.

    Args:
        folder: where; it is made if it is not there.
        served: the player.
        network: what its network is, as `Net::read` of rust/net takes it; None for a player without a network.
        weights: those of the network, as a safetensors file.

    Returns:
        The bytes of each file.

    Raises:
        SettingsError: the game cannot be played there.
        RunError: a file that cannot be written.
    """
    refuse_game(served.start.game)
    program = files("azpy.web") / "board" / _PACKED
    player = {
        "about": about("main", served, CLIENT_LIMITS),
        "temperature": served.temperature,
        "limits": vars(CLIENT_LIMITS),
        "options": served.options,
        "network": network,
    }
    page = {f"board/{name}": data for name, data in assets().items() if name != "index.html"}
    page |= {
        "board/azpy.wasm": gzip.decompress(program.read_bytes()),
        "player.json": json.dumps(player, allow_nan=False).encode(),
        # What the server would say of itself; the page asks for it first.
        "about": json.dumps(
            {"version": azpy.__version__, "run": None, "renews": False, "token": False, "local": True}
        ).encode(),
        "index.html": assets()["index.html"],
    }
    if network is not None:
        page["weights.safetensors"] = weights
    with storage.disk_errors(folder):
        (folder / "board").mkdir(parents=True, exist_ok=True)
    for name, data in page.items():
        with storage.output(folder / name) as file:
            file.write(data)
    return {name: len(data) for name, data in page.items()}
