#!/usr/bin/env python3
"""Runs LAMMPS's rhodopsin benchmark, 20 steps, as a real program of 16 ranks in virtual time.

Answers as `weft run --json`.
"""

import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    lammps = Path(sysconfig.get_path("platlib")) / "lammps"
    bench = lammps / "share/lammps/bench"
    with tempfile.TemporaryDirectory() as folder:
        text = re.sub(r"^run\s+\d+", "run 20", (bench / "in.rhodo").read_text(), flags=re.MULTILINE)
        text = text.replace("data.rhodo", str(bench / "data.rhodo"))
        (Path(folder) / "in.rhodo").write_text(text)
        command = [ROOT / "target/release/weft", "run", "-m", "exanest", "-n", "16", "--ppn", "4"]
        command += ["--host", "none", "--quiet", "--json", "--"]
        command += [lammps / "lmp", "-in", "in.rhodo", "-log", "none", "-screen", "none"]
        sys.exit(subprocess.run(command, cwd=folder).returncode)


if __name__ == "__main__":
    main()
