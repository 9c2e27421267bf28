"""`python -m azpy.cli NAME ...` is the command az-NAME, where that is not installed."""

import sys

import azpy_cli

if __name__ == "__main__":
    commands = {name[3:].replace("_", "-"): run for name, run in vars(azpy_cli).items() if name.startswith("az_")}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(f"expected python -m azpy.cli NAME ..., with a NAME of {', '.join(commands)}")
    sys.exit(commands[sys.argv.pop(1)]())
