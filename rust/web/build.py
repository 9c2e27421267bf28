"""Builds the program of pages without a server: `make wasm` runs this.

It needs the standard library of the target wasm32-unknown-unknown: `rustup target add wasm32-unknown-unknown`. Where
that cannot be had, AZPY_WASM_TOOLS names a folder with Debian's packages rustc-web, libstd-rust-web-1.96,
libstd-rust-web-dev, cargo-web, rust-web-src, lld-22, libllvm22 and what they need, unpacked by `dpkg -x`; the standard
library is then built too.

The program has all games. AZPY_WASM_GAME=connect_four has it built with one game, less than half as large.

The program stands in the tree packed. Its last section is a hash of its sources, which a test compares: whoever changes
these sources builds the program anew.
"""

import gzip
import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "azpy/web/board/azpy.wasm.gz"
CRATES = ("core", "games", "net", "query", "web")
TARGET = "wasm32-unknown-unknown"


def hash_of_sources() -> str:
    """SHA-256 of all files that the program is built of, in the order of their names."""
    crates = [ROOT / "rust" / name for name in CRATES]
    sources = [Path(__file__), ROOT / "Cargo.lock", ROOT / "Cargo.toml", *(crate / "Cargo.toml" for crate in crates)]
    sources += sorted(source for crate in crates for source in (crate / "src").rglob("*.rs"))
    said = hashlib.sha256()
    for source in sources:
        said.update(source.relative_to(ROOT).as_posix().encode() + b"\0" + source.read_bytes() + b"\0")
    return said.hexdigest()


def section(text: str) -> bytes:
    """The hash as a section of a program: 0, the bytes that follow, those of its name, its name, its text."""
    content = b"\x07sources" + text.encode()
    return bytes([0, len(content)]) + content


def main() -> int:
    """Builds the program and packs it."""
    # Vectors of 128 bits: all browsers have them since 2023. Paths of this machine stay out of the program.
    home = os.environ.get("CARGO_HOME", Path.home() / ".cargo")
    flags = [
        "-Ctarget-feature=+simd128",
        "-Clink-arg=--strip-all",
        f"--remap-path-prefix={home}=/cargo",
        f"--remap-path-prefix={ROOT}=/azpy",
    ]
    environment, cargo, more = dict(os.environ), "cargo", list[str]()
    environment.pop("MAKEFLAGS", None)
    if tools := os.environ.get("AZPY_WASM_TOOLS"):
        root = Path(tools).resolve()
        cargo, more = str(root / "usr/bin/cargo"), ["-Zbuild-std=std,panic_abort"]
        flags.append(f"--remap-path-prefix={root}=/rust")
        environment |= {
            "RUSTC": str(root / "usr/bin/rustc"),
            "RUSTC_BOOTSTRAP": "1",
            "LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu"),
            "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER": str(root / "usr/bin/wasm-ld-22"),
        }
    environment["CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS"] = " ".join(flags)
    build = [cargo, "build", "--profile", "page", "--locked", "-p", "azpy-web", "--lib", "--target", TARGET, *more]
    before = hash_of_sources()
    if (code := subprocess.run(build, cwd=ROOT, env=environment, check=False).returncode) != 0:
        print("the program cannot be built: rustup target add wasm32-unknown-unknown (see rust/web/build.py)")
        return code
    target = Path(environment.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = (target / TARGET / "page/azpy_web.wasm").read_bytes() + section(before)
    # Equal programs are equal files: no name and no time in them.
    PROGRAM.write_bytes(gzip.compress(program, 9, mtime=0))
    print(f"{PROGRAM.relative_to(ROOT)}: {PROGRAM.stat().st_size:,} bytes, {len(program):,} unpacked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
