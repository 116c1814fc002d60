#!/usr/bin/env python3
"""Builds the wheel as `pip install .` does, into an environment of its own, and uses it.

run.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Installs the tree and runs smoke.py."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        binaries = Path(folder, "bin")
        subprocess.run([binaries / "pip", "install", "--quiet", ROOT], check=True)
        subprocess.run([binaries / "python", ROOT / "tests/python/smoke.py"], check=True, cwd=folder)
        subprocess.run([binaries / "weft", "--version"], check=True)


if __name__ == "__main__":
    main()
