"""The `weft` command of the wheel."""

import sys

from weft._weft import main as _main


def main() -> None:
    """Runs the command."""
    sys.exit(_main(["weft", *sys.argv[1:]]))
