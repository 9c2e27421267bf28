"""`python -m azpy.cli NAME ...` is the command az-NAME, where that is not installed."""

import importlib
import sys

# Each az-NAME of pyproject.toml.
_NAMES = ["bench", "check-game", "compare", "doctor", "engine", "export", "match", "play", "replay", "serve"]
_NAMES += ["train", "worker"]


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in _NAMES:
        sys.exit(f"expected python -m azpy.cli NAME ..., with a NAME of {', '.join(_NAMES)}")
    sys.exit(importlib.import_module(f"azpy.cli.{sys.argv.pop(1).replace('-', '_')}").main())
