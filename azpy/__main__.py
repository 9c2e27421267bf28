"""`python -m azpy NAME ...` is the command az-NAME, where that is not installed."""

import sys

from azpy.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
