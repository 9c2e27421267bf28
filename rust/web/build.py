"""Builds the program of pages without a server, with azpy's games: `make wasm` runs this.

azpy/web/program.py says what it needs. The program has all games. AZPY_WASM_GAME=connect_four has it built with one
game, less than half as large.

The program stands in the tree packed. Its last section is a hash of its sources, which a test compares: whoever changes
these sources builds the program anew.
"""

import hashlib
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "azpy/web/board/azpy.wasm.gz"
BUILD = ROOT / "azpy/web/program.py"
CRATES = ("core", "games", "module", "net", "own", "serve", "web")


def hash_of_sources() -> str:
    """SHA-256 of all files that the program is built of, in the order of their names."""
    crates = [ROOT / "rust" / name for name in CRATES]
    sources = [BUILD, ROOT / "Cargo.lock", ROOT / "Cargo.toml", *(crate / "Cargo.toml" for crate in crates)]
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
    build, before = runpy.run_path(str(BUILD)), hash_of_sources()
    if lacks := build["missing"](ROOT):
        print(f"the program cannot be built: {lacks} (see azpy/web/program.py)")
        return 1
    program = build["compiled"](ROOT, "--locked", "-p", "azpy-module")
    if isinstance(program, str):
        print(f"the program cannot be built: {program}")
        return 1
    PROGRAM.write_bytes(build["packed"](program + section(before)))
    size, unpacked = PROGRAM.stat().st_size, len(program)
    print(f"{PROGRAM.relative_to(ROOT)}: {size:,} bytes, {unpacked:,} unpacked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
