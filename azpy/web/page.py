"""A page without a server: the board, a player, and the program that answers in place of the server.

The program is `board/azpy.wasm.gz`, which `make wasm` builds of rust/web, or of a crate with a game of one's own.
docs/guides/board.md says how the page is served.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

import azpy
from azpy import _core
from azpy.errors import SettingsError
from azpy.games.names import is_python_class, name_of
from azpy.runs import storage
from azpy.serving.limits import CLIENT_LIMITS
from azpy.serving.models import Player
from azpy.serving.queries import about
from azpy.web import program

_PROGRAM = "azpy.wasm.gz"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
"""The page's content security policy, as the server sends it."""
# The other files that WebAssembly needs, and their places in the page.
_WITH_PROGRAM = (
    "script-src 'self'",
    "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; manifest-src 'self'",
)
_HEAD = '<meta charset="utf-8">'
# The description that a server would send. The page asks for it first.
_ABOUT = {"version": azpy.__version__, "run": None, "renews": False, "token": False, "local": True}
# The comments of a script, a fifth of the board's files; and texts between backticks, as group 1, which may look so.
_COMMENTS = re.compile(rb"(`(?:\\[\s\S]|[^`\\])*`)|^[ \t]*(?://.*|/\*\*(?:(?!\*/)[\s\S])*\*/[ \t]*)\n", re.MULTILINE)
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
"""Media types of the page's files, by what their names end with."""


def assets() -> dict[str, bytes]:
    """The page's own files by name: index.html, and those of its folder `board`."""
    found = (files("azpy.web") / "board").iterdir()
    return {file.name: file.read_bytes() for file in found if file.name.rpartition(".")[2] in TYPES}


def without_comments(script: bytes) -> bytes:
    """Return a script without the comments that have lines of their own."""
    return _COMMENTS.sub(rb"\1", script)


def check_page(game: str, crate: Path | None = None) -> None:
    """Raise a `SettingsError` if a game cannot be played on a page without a server.

    Args:
        game: see `make_game`.
        crate: the folder of the crate that has the game, for a game of one's own.
    """
    if name_of(game) in _core.BUILT_IN:
        if crate is not None:
            raise SettingsError(f"--crate is for a game of your own, and {game} ships with azpy: leave --crate out")
        if not (files("azpy.web") / "board" / _PROGRAM).is_file():
            raise SettingsError(
                f"--web: this installation lacks azpy/web/board/{_PROGRAM}, the program of such pages: install azpy "
                "from a wheel, or run `make wasm` in its source tree"
            )
    elif is_python_class(game):
        _refuse(
            game,
            "it is written in Python, which a page cannot run: docs/start/own_game_rust.md shows how to use Rust",
        )
    elif name_of(game) not in _core.list_games():
        _refuse(game, f"a page without a server plays these games: {', '.join(_core.BUILT_IN)}")
    elif crate is None:
        raise SettingsError(f"--web: {game} is a game of your own: give --crate PATH, the folder of its crate")
    else:
        _check_crate(game, crate)


def _refuse(game: str, why: str) -> NoReturn:
    raise SettingsError(
        f"--web: {game} cannot be played in the browser without a server. {why}. az-play and az-serve play it"
    )


def _check_crate(game: str, crate: Path) -> None:
    """Refuse a crate that does not build a program for this core's games."""
    if not (crate / "Cargo.toml").is_file():
        raise SettingsError(f"--crate {crate}: Cargo.toml not found: give the folder of the crate that has {game}")
    if lacks := program.missing(crate):
        raise SettingsError(f"--crate cannot compile {game} to WebAssembly. {lacks}")
    said = program.described(crate)
    if isinstance(said, str):
        raise SettingsError(f"--crate {crate}: cargo cannot read it: {said}")
    # The page's scripts and its program must be of one version of azpy.
    versions = {package["name"]: package["version"] for package in said["packages"]}
    if versions.get("azpy-own") != _core.__version__:
        has = f"azpy-own {versions['azpy-own']}" if "azpy-own" in versions else "no crate azpy-own"
        raise SettingsError(
            f"--crate {crate}: its Cargo.toml has {has}, but this is azpy {_core.__version__}: name azpy's crates "
            "of this version there, see docs/start/own_game_rust.md"
        )
    targets = [one["targets"] for one in said["packages"] if one["id"] == said["resolve"]["root"]]
    names = [target["name"] for each in targets for target in each if "cdylib" in target["crate_types"]]
    core = _core.__name__.rpartition(".")[2]
    if core not in names:
        raise SettingsError(
            f"--crate {crate}: it builds {' and '.join(names) or 'no library'}, but {game} belongs to {core}: give "
            "the folder of that crate"
        )


def _program(crate: Path | None) -> bytes:
    """The program with azpy's games, or that of a crate."""
    if crate is None:
        return (files("azpy.web") / "board" / _PROGRAM).read_bytes()
    if isinstance(made := program.compiled(crate), str):
        raise SettingsError(f"--crate {crate} cannot be compiled to WebAssembly: {made}")
    return program.packed(made)


def _around(player: Player, version: str, names: list[str]) -> dict[str, bytes]:
    """The files beside azpy.js: where the player is, types, what npm packs, and what a phone installs."""
    name = player.start.name
    package = {
        "name": f"azpy-{re.sub('[^a-z0-9]+', '-', name)}",
        "version": _core.__version__,
        "type": "module",
        "main": "azpy.js",
        "types": "azpy.d.ts",
        "files": ["azpy.*", "index.html", "offline.js", "app.webmanifest", version],
    }
    icon = {"src": f"{version}/board/icon.svg", "sizes": "any", "type": "image/svg+xml"}
    app = {"name": name, "start_url": "index.html?offline", "display": "standalone", "icons": [icon]}
    return {
        "azpy.json": json.dumps({"files": version, "all": [*names, "app.webmanifest"]}).encode(),
        "app.webmanifest": json.dumps(app).encode(),
        "azpy.d.ts": (files("azpy.web") / "board" / "azpy.d.ts").read_bytes(),
        "package.json": json.dumps(package, indent=2).encode(),
    }


def write_page(
    folder: Path, player: Player, network: Mapping[str, Any] | None, weights: bytes, crate: Path | None = None
) -> dict[str, int]:
    """Write a page on which people play with `player`, whole or not at all.

    All files but index.html, azpy.js and those beside it are in a folder that is named by their content. So a browser
    that kept files of an older page of the same address does not take them for files of this one.

    Args:
        folder: a new one.
        player: the player, of a game that `check_page` lets pass.
        network: what its network is, as `Net::read` of rust/net takes it; None for a player without a network.
        weights: those of the network, as a safetensors file.
        crate: the folder of the crate that has the game, for a game of one's own: it is compiled, which takes minutes.

    Returns:
        The bytes of each file.

    Raises:
        SettingsError: the crate cannot be compiled.
        RunError: something of this name is there, or it cannot be written.
    """
    described = {
        "about": about("main", player, CLIENT_LIMITS),
        "temperature": player.temperature,
        "limits": vars(CLIENT_LIMITS),
        "options": player.options,
        "network": network,
    }
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY.replace(*_WITH_PROGRAM)}">'
    page = {
        f"board/{name}": without_comments(data) if name.endswith(".js") else data for name, data in assets().items()
    }
    around = {name: page.pop(f"board/{name}") for name in ("azpy.js", "offline.js")}
    head = f'{_HEAD}\n    {policy}\n    <link rel="manifest" href="app.webmanifest">'
    index = page.pop("board/index.html").replace(_HEAD.encode(), head.encode(), 1)
    page |= {"player.json": json.dumps(described, allow_nan=False).encode(), "about": json.dumps(_ABOUT).encode()}
    if network is not None:
        page["weights.safetensors"] = weights
    with storage.output_folder(folder) as new:
        page[f"board/{_PROGRAM}"] = _program(crate)
        content = hashlib.sha256()
        for name, data in sorted(page.items()):
            content.update(f"{name} {len(data)} ".encode() + data)
        version = content.hexdigest()[:16]
        page = {f"{version}/{name}": data for name, data in page.items()}
        page["index.html"] = index.replace(b'"board/', f'"{version}/board/'.encode())
        # Browsers keep the player anew only where this script differs.
        page |= around | {"offline.js": f'const VERSION = "{version}";\n'.encode() + around["offline.js"]}
        page |= _around(player, version, [*page])
        (new / version / "board").mkdir(parents=True)
        for name, data in page.items():
            storage.write_synced(new / name, data)
    return {name: len(data) for name, data in page.items()}
