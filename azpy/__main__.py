"""`python -m azpy NAME ...` is the command az-NAME, where that is not installed."""

import sys

import azpy_cli


def main() -> int:
    """Run the command that the arguments name; return its exit code."""
    if len(sys.argv) < 2 or sys.argv[1] not in azpy_cli.COMMANDS:
        sys.exit(f"expected python -m azpy NAME ..., with a NAME of {', '.join(azpy_cli.COMMANDS)}")
    code: int = getattr(azpy_cli, f"az_{sys.argv.pop(1).replace('-', '_')}")()
    return code


if __name__ == "__main__":
    sys.exit(main())
