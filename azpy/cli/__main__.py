"""`python -m azpy.cli NAME ...` is the command az-NAME, where that is not installed."""

import importlib
import sys

if __name__ == "__main__":
    sys.exit(importlib.import_module(f"azpy.cli.{sys.argv.pop(1)}").main())
