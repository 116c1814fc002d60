"""The `weft` command of the wheel."""

import sys

from weft import _libraries
from weft._weft import main as _main


def main() -> None:
    """Runs the command. Its own name comes first: `weft sweep` starts it again for each point."""
    _libraries.name_them()
    sys.exit(_main(sys.argv))


if __name__ == "__main__":
    main()
