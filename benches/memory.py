"""Whether a thousand searches leave memory where it was.

python benches/memory.py
"""

import resource
from pathlib import Path

import azpy


def resident() -> int:
    """Bytes of resident memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> None:
    start, seen = azpy.make_game("connect_four"), []
    for _ in range(1000):
        azpy.Search(azpy.UniformEvaluator(), simulations=2000).run(start)
        seen.append(resident())
    found = ", ".join(f"{seen[n - 1] / 2**20:.1f} MiB" for n in (100, 500, 1000))
    print(f"resident memory after 100, 500 and 1,000 searches: {found}")


if __name__ == "__main__":
    main()
