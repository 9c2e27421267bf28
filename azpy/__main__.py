"""`python -m azpy NAME ...` is the command az-NAME, where that is not installed."""

import sys

import azpy_cli


def main() -> int:
    """Runs the command that the arguments name; returns its exit code."""
    commands = {name[3:].replace("_", "-"): run for name, run in vars(azpy_cli).items() if name.startswith("az_")}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(f"expected python -m azpy NAME ..., with a NAME of {', '.join(commands)}")
    code: int = commands[sys.argv.pop(1)]()
    return code


if __name__ == "__main__":
    sys.exit(main())
