#!/usr/bin/env python3
"""Compares runs of real programs with replays of their recordings: both must take the same virtual time.

Each pattern of patterns.c is run with messages of each size, recorded, and replayed on the same machine.
Those that are known to differ stand below; docs/src/commands/run.md says why.

Usage: compare.py [--weft PATH] [--ranks 2,4,8] [--ppn 1] [--sizes 8,512] [--rounds 100] [PATTERN...]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from itertools import product
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = ROOT / "build/venv"
PROGRAM = ROOT / "build/mpi-tests/patterns"

# Per cent by which a replay may be off.
MOST = 2.0
# Those that are known to be off by more.
KNOWN = {
    "halo": 3.0,  # 40 kB where four ranks share an interface: nanoseconds decide whose packets go first
    "ireduce": 3.0,  # as reduce
    "reduce": 3.0,  # where ranks share an interface: 8 us, once in a program of any length, not explained
    "split": 3.0,  # 8 B where four ranks share an interface: not explained
    "win_accumulate": 2.5,  # short ones on eight ranks: as the windows below
}
# Those of eight ranks whose two rings have several steady states with messages of about 4 KB: the run itself
# changes between them with a few bytes more. What decides is some 100 ns at the beginning: the first use of a
# page of MPICH's own buffers costs a walk of the page tables, and a recording does not name them.
UNSTEADY = {"win_get": 4.0, "win_groups": 9.0}
UNSTEADY_RANKS, UNSTEADY_SIZES = 8, range(3500, 4500)


def build() -> None:
    """Builds the patterns with the MPICH of build/venv, where the source is newer than the program."""
    source = HERE / "patterns.c"
    if not PROGRAM.exists() or PROGRAM.stat().st_mtime < source.stat().st_mtime:
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([VENV / "bin/mpicc", *flags, source, "-o", PROGRAM], check=True)


def allowed(pattern: str, ranks: int, size: int) -> float:
    """Per cent by which the replay of such a run may be off."""
    if ranks == UNSTEADY_RANKS and size in UNSTEADY_SIZES and pattern in UNSTEADY:
        return UNSTEADY[pattern]
    return KNOWN.get(pattern, MOST)


def document(command: list, environment: dict) -> dict:
    """The JSON that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft", default=str(ROOT / "target/release/weft"))
    parser.add_argument("--machine", default="exanest")
    parser.add_argument("--ranks", default="8", help="numbers of ranks")
    parser.add_argument("--ppn", default="1")
    parser.add_argument("--sizes", default="8,512,4096,40000")
    parser.add_argument("--rounds", default="100")
    parser.add_argument("patterns", nargs="*", help="all where none is named; win_* are those of windows")
    arguments = parser.parse_args()
    build()
    environment = dict(os.environ, LD_LIBRARY_PATH=str(VENV / "lib"))
    known = subprocess.run(
        [PROGRAM], capture_output=True, text=True, env=environment, check=True
    ).stdout.split()
    compared, off = 0, 0
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory) / "recorded.weft"
        wanted = [name for name in known if any(fnmatch(name, one) for one in arguments.patterns or ["*"])]
        cases = product(wanted, arguments.ranks.split(","), arguments.sizes.split(","))
        for pattern, ranks, size in cases:
            place = ["-m", arguments.machine, "--ppn", arguments.ppn]
            program = ["--", PROGRAM, pattern, size, arguments.rounds]
            record = ["--record", trace, "--force", "--json", "--quiet"]
            run = [arguments.weft, "run", *place, "-n", ranks, *record, *program]
            real = document(run, environment)["virtual_time_us"]
            replay = document([arguments.weft, "replay", *place, "--json", trace], environment)["rows"][0]
            ratio = 100 * (replay["run_time_us"] / real - 1)
            is_off = abs(ratio) > allowed(pattern, int(ranks), int(size))
            compared, off = compared + 1, off + is_off
            times = f"{real:12.1f} us {replay['run_time_us']:12.1f} us"
            line = f"{pattern:16} {ranks:>3} ranks {size:>8} B {times} {ratio:+7.2f} %"
            print(line + ("  <- differs" if is_off else ""), flush=True)
    print(f"{compared} compared, {off} differ")
    return 1 if off or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
