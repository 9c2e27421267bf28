"""The program of a page without a server, compiled by cargo.

It needs the standard library of Rust's target wasm32-unknown-unknown: `rustup target add wasm32-unknown-unknown`. Where
that cannot be had, AZPY_WASM_TOOLS names a folder with Debian's packages rustc-web, libstd-rust-web-1.96,
libstd-rust-web-dev, cargo-web, rust-web-src, lld-22, libllvm22 and what they need, unpacked by `dpkg -x`; the standard
library is then built too.

Nothing of azpy is imported here: `make wasm` runs this file where azpy is not built.
"""

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

TARGET = "wasm32-unknown-unknown"
"""What Rust calls WebAssembly without anything around it."""
# Small, but for the arithmetic of networks. Search is compiled in the crate that names its games. The profile `dev` is
# the same in each workspace, so all that counts stands here.
_PROFILE = {
    "inherits": "dev",
    "opt-level": "s",
    "package.'*'.opt-level": "z",
    "package.azpy-core.opt-level": "s",
    "package.azpy-games.opt-level": "z",
    "package.azpy-net.opt-level": 3,
    "package.azpy-serve.opt-level": "z",
    "package.azpy-web.opt-level": "s",
    "lto": "fat",
    "codegen-units": 1,
    "panic": "abort",
    "debug": "none",
    "strip": True,
    "incremental": False,
    "debug-assertions": False,
    "overflow-checks": False,
}


def _tools() -> tuple[str, list[str], dict[str, str]]:
    """What to call as cargo, options of its builds, and the environment."""
    environment = dict(os.environ)
    environment.pop("MAKEFLAGS", None)
    if (tools := environment.get("AZPY_WASM_TOOLS")) is None:
        return "cargo", [], environment
    root = Path(tools).resolve()
    environment |= {
        "RUSTC": str(root / "usr/bin/rustc"),
        "RUSTC_BOOTSTRAP": "1",
        "LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu"),
        "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER": str(root / "usr/bin/wasm-ld-22"),
    }
    return str(root / "usr/bin/cargo"), ["-Zbuild-std=std,panic_abort"], environment


def missing(crate: Path) -> str:
    """What is missing on this machine to compile the crate in a folder, and what to do; empty if nothing is."""
    cargo, builds_std, environment = _tools()
    rustc = environment.get("RUSTC", "rustc")
    for tool in (cargo, rustc):
        if shutil.which(tool) is None:
            return f"{tool} is not installed: install Rust (https://rustup.rs), then run `rustup target add {TARGET}`"
    if builds_std:
        return ""
    asked = [rustc, "--print", "target-libdir", "--target", TARGET]  # there: the crate may name a toolchain
    said = subprocess.run(asked, cwd=crate, env=environment, capture_output=True, text=True, check=False)
    if said.returncode == 0 and Path(said.stdout.strip()).is_dir():
        return ""
    return f"Rust's standard library for WebAssembly is not installed: run `rustup target add {TARGET}`"


def described(crate: Path, *options: str) -> dict[str, Any] | str:
    """What cargo says of the crate in a folder, and of all that it needs (`cargo metadata`); or why it says nothing."""
    cargo, _, environment = _tools()
    command = [cargo, "metadata", "--format-version", "1", "--filter-platform", TARGET, *options]
    said = subprocess.run(command, cwd=crate, env=environment, capture_output=True, text=True, check=False)
    return json.loads(said.stdout) if said.returncode == 0 else " ".join(said.stderr.split())


def _remapped(crate: Path, said: dict[str, Any]) -> list[str]:
    """Options of rustc that keep the paths of this machine out of the program, where a panic would say them."""
    _, _, environment = _tools()
    rustc = environment.get("RUSTC", "rustc")
    sysroot = subprocess.run([rustc, "--print", "sysroot"], cwd=crate, env=environment, capture_output=True, text=True)
    cargo_home = Path(environment.get("CARGO_HOME", Path.home() / ".cargo"))
    places = {
        Path.home(): "/home",
        cargo_home: "/cargo",
        Path(environment.get("AZPY_WASM_TOOLS", "/")): "/rust",
        Path(sysroot.stdout.strip() or "/"): "/rust",
    }
    places[Path(said["target_directory"])] = "/target"
    # Crates may lie anywhere: beside this one, or in a folder of vendored ones.
    packages = {Path(one["manifest_path"]).parent: f"/{one['name']}-{one['version']}" for one in said["packages"]}
    places |= {path: name for path, name in packages.items() if cargo_home not in path.parents}
    places[crate] = "/crate"
    known = {folder: name for path, name in places.items() for folder in (path, path.resolve())}
    # The last match wins, so the innermost folder comes last.
    inner_last = sorted(known.items(), key=lambda place: len(place[0].parts))
    return [f"--remap-path-prefix={path}={name}" for path, name in inner_last if path != Path(path.anchor)]


def compiled(crate: Path, *options: str) -> bytes | str:
    """The program of the crate in a folder; or why there is none.

    Args:
        crate: the folder.
        options: more of them for `cargo build`.
    """
    cargo, more, environment = _tools()
    said = described(crate, *(option for option in options if option in ("--locked", "--offline", "--frozen")))
    if isinstance(said, str):
        return said
    # Vectors of 128 bits: all browsers have them since 2023.
    flags = ["-Ctarget-feature=+simd128", "-Clink-arg=--strip-all", *_remapped(crate.resolve(), said)]
    environment["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(flags)
    command = [cargo, "build", "--lib", "--profile", "page", "--target", TARGET, *more, *options]
    command += [f"--config=profile.page.{key}={json.dumps(value)}" for key, value in _PROFILE.items()]
    command += ["--message-format", "json-render-diagnostics"]
    done = subprocess.run(command, cwd=crate, env=environment, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        return "see the output of cargo above"
    messages = map(json.loads, done.stdout.splitlines())
    built = [name for message in messages for name in message.get("filenames", []) if name.endswith(".wasm")]
    return Path(built[-1]).read_bytes()


def packed(program: bytes) -> bytes:
    """A program as a page has it. Equal programs are equal files: no name and no time in them."""
    return gzip.compress(program, 9, mtime=0)
