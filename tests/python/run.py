#!/usr/bin/env python3
"""Builds the wheel as `pip install .` does, into an environment of its own, and uses it.

run.py
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements.lock"
# Packages that run the notebooks of examples/.
NOTEBOOKS = ["nbclient==0.11.0", "nbformat==5.11.1", "ipykernel==7.4.0"]
# The examples of sweeps, over the executors of Dask and of mpi4py.
SWEEPS = [
    ["python", str(ROOT / "examples/sweep_dask.py")],
    ["mpiexec", "-n", "3", "python", "-m", "mpi4py.futures", str(ROOT / "examples/sweep_mpi.py")],
]


def main() -> None:
    """Installs the tree and runs smoke.py."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        binaries = Path(folder, "bin")
        pinned = [line for line in LOCK.read_text().splitlines() if line.startswith(("mpich=", "mpi4py="))]
        # Before the wheel, which has the recorder of the MPI that it finds.
        subprocess.run([binaries / "pip", "install", "--quiet", *pinned], check=True)
        wanted = [f"{ROOT}[all,dask]", *NOTEBOOKS]
        subprocess.run([binaries / "pip", "install", "--quiet", *wanted], check=True)
        subprocess.run([binaries / "python", ROOT / "tests/python/smoke.py"], check=True, cwd=folder)
        subprocess.run([binaries / "python", ROOT / "tests/python/programs.py"], check=True, cwd=folder)
        subprocess.run([binaries / "python", ROOT / "examples/rank_program.py"], check=True, cwd=folder)
        subprocess.run([binaries / "python", ROOT / "tests/python/libraries.py"], check=True, cwd=folder)
        subprocess.run([binaries / "python", ROOT / "tests/python/notebooks.py"], check=True, cwd=folder)
        blocks = [ROOT / "tests/book/run.py", "--weft", binaries / "weft", "--python", binaries / "python"]
        pages = [ROOT / "docs/src/howto" / page for page in ("use-python.md", "write-a-rank-program.md")]
        subprocess.run([binaries / "python", *blocks, *pages], check=True)
        subprocess.run([binaries / "weft", "--version"], check=True)
        for words in SWEEPS:
            command = [binaries / words[0], *words[1:]]
            path = f"{binaries}:{os.environ['PATH']}"
            subprocess.run(command, check=True, cwd=folder, env={**os.environ, "PATH": path}, timeout=300)


if __name__ == "__main__":
    main()
