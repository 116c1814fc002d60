#!/usr/bin/env python3
"""Runs and records an MPI program with the `weft` command of a wheel, whose environment has MPICH.

libraries.py
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import weft

ROOT = Path(__file__).resolve().parents[2]
BINARIES = Path(sys.executable).parent
LIBRARIES = Path(weft.__file__).parent / "lib"
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{BINARIES}:{os.environ['PATH']}",
    "LD_LIBRARY_PATH": f"{BINARIES.parent / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}",
}


def call(*words: object, status: int = 0) -> str:
    """The output of a command, which must end with this status."""
    done = subprocess.run(list(map(str, words)), env=ENVIRONMENT, text=True, stdout=subprocess.PIPE)
    assert done.returncode == status, (words, done.returncode)
    return done.stdout


def missing() -> dict[str, str]:
    """The findings of `weft doctor` that are missing, with their mend."""
    done = subprocess.run(
        [BINARIES / "weft", "doctor", "--json"], env=ENVIRONMENT, text=True, stdout=subprocess.PIPE
    )
    return {row["what"]: row["mend"] for row in json.loads(done.stdout)["rows"] if not row["found"]}


def main() -> None:
    """Catches a wheel without libraries that could be built, and a doctor that does not mend it."""
    with tempfile.TemporaryDirectory() as folder:
        program, trace = Path(folder, "ping_pong"), Path(folder, "trace.weft")
        call(BINARIES / "mpicc", "-O1", ROOT / "demo/ping_pong.c", "-o", program)
        found = missing()
        assert "libraries of ranks" not in found and "recorder for MPICH" not in found, found
        machine = ["-m", "exanest", "-n", 2, "--ppn", 1, "--quiet"]
        call(BINARIES / "weft", "run", *machine, "-o", Path(folder, "run"), "--", program)
        calls = weft.open(Path(folder, "run")).calls.collect()
        assert {"MPI_Send", "MPI_Recv"} <= set(calls["operation"]), calls
        call(BINARIES / "weft", "record", "-o", trace, "--", BINARIES / "mpiexec", "-n", 2, program)
        assert weft.replay(trace, "exanest").summary["ranks"][0] == 2
        for library, what, words in [
            ("libweft-fi.so", "libraries of ranks", ["libfabric-dev", "pip install"]),
            ("libweft-record-mpich.so", "recorder for MPICH", ["pip install mpich", "--no-deps"]),
        ]:
            file = LIBRARIES / library
            aside = file.rename(file.with_suffix(".aside"))
            mend = missing()[what]
            aside.rename(file)
            assert all(word in mend for word in words), mend
    print("libraries of the wheel: ok")


if __name__ == "__main__":
    main()
