#!/usr/bin/env python3
"""Builds the MPI test programs with the MPICH of build/venv and runs them under a launcher.

The programs check themselves and print a line per check, the same lines under any launcher and any network:
natively, over the provider's stand-in, and under `weft run`.

Usage: run.py [--launch "mpiexec -n {ranks}"] [--ranks 1,2,5] [--timeout SECONDS] [PROGRAM...]
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = Path(os.environ.get("VENV", ROOT / "build/venv"))
OUT = ROOT / "build/mpi-tests"
COUNT = re.compile(r"^(\d+) checks, (\d+) failed$", re.MULTILINE)
HELPERS = {"run", "checks"}


def build(source: Path) -> list[str]:
    """The command that runs a program, built where it is C."""
    if source.suffix == ".py":
        return [str(VENV / "bin/python"), str(source)]
    program = OUT / source.stem
    newest = max(source.stat().st_mtime, (HERE / "checks.h").stat().st_mtime)
    if not program.exists() or program.stat().st_mtime < newest:
        OUT.mkdir(parents=True, exist_ok=True)
        flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([str(VENV / "bin/mpicc"), *flags, str(source), "-o", str(program)], check=True)
    return [str(program)]


def run(command: list[str], timeout: float) -> tuple[int, str]:
    """Exit status and output; a program that hangs is ended with all that it has started."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return -1, output + f"\nended after {timeout:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--launch", default=f"{VENV}/bin/mpiexec.gforker -n {{ranks}}")
    parser.add_argument("--ranks", default="1,2,5")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    sources = [path for path in sorted([*HERE.glob("*.c"), *HERE.glob("*.py")]) if path.stem not in HELPERS]
    unknown = set(arguments.programs) - {path.stem for path in sources}
    if unknown:
        sys.exit(
            f"no such program: {', '.join(sorted(unknown))}; there are: "
            + ", ".join(path.stem for path in sources)
        )
    passed = failed = 0
    for source in sources:
        if arguments.programs and source.stem not in arguments.programs:
            continue
        command = build(source)
        for ranks in arguments.ranks.split(","):
            started = time.monotonic()
            status, output = run(
                [*shlex.split(arguments.launch.format(ranks=ranks)), *command], arguments.timeout
            )
            counted = COUNT.search(output)
            wrong = [line for line in output.splitlines() if line.startswith("FAILED")]
            # A program that does not come to its end has failed once more than it says.
            bad = len(wrong) + (counted is None or (status != 0 and not wrong))
            passed += int(counted[1]) - len(wrong) if counted else 0
            failed += bad
            took = time.monotonic() - started
            print(
                f"{source.stem:24} {ranks:>3} ranks  {counted[0] if counted else 'no end':24} {took:5.1f} s",
                flush=True,
            )
            if bad:
                print("\n".join(wrong or output.splitlines()[-20:]), f"\nexit status {status}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
