#!/usr/bin/env python3
"""Runs the project's checks and tests, all of them even where one fails, and counts.

Usage: test.py [lint|all]

Each check counts as one test, cargo's tests count one by one. The last line reads `N passed, N failed`.
"""

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / "build/venv/bin"
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")


class Check(NamedTuple):
    """A command that must exit with 0."""

    name: str
    command: list[str]


PYTHON_SOURCES = ["tools", "demo", "bench/run.py", "tests/mpi", "tests/replays"]

LINT = [
    Check("Rust is formatted", ["cargo", "fmt", "--all", "--check"]),
    Check("clippy", ["cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    Check("Python is formatted", [str(VENV / "ruff"), "format", "--check", *PYTHON_SOURCES]),
    Check("ruff", [str(VENV / "ruff"), "check", *PYTHON_SOURCES]),
    Check("licences and duplicates", [sys.executable, "tools/check_dependencies.py"]),
]

TESTS = [
    Check("cargo test", ["cargo", "test", "--locked", "--workspace", "--no-fail-fast"]),
    Check("recorder", ["make", "-C", "recorder", "check"]),
    Check("provider", ["make", "-C", "libfabric", "check"]),
    Check(
        "MPI in virtual time",
        [
            sys.executable,
            "tests/mpi/run.py",
            "--launch",
            "target/debug/weft run --quiet -m exanest --wall-limit 2min -n {ranks} --",
            "--ranks",
            "2,5",
        ],
    ),
    Check(
        "replays",
        [
            sys.executable,
            "tests/replays/compare.py",
            *[
                "--weft",
                "target/debug/weft",
                "--ranks",
                "6",
                "--ppn",
                "2",
                "--sizes",
                "1000",
                "--rounds",
                "20",
            ],
        ],
    ),
    Check("docs", [sys.executable, "tools/check_docs.py"]),
]


def run(check: Check) -> tuple[int, int]:
    """Runs a check, its output passed through, and returns how many tests passed and failed."""
    print(f"== {check.name}: {' '.join(check.command)}", flush=True)
    started = time.monotonic()
    passed = failed = 0
    try:
        process = subprocess.Popen(
            check.command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        print(f"== {check.name}: FAILED ({error})\n", flush=True)
        return 0, 1
    for line in process.stdout:
        sys.stdout.write(line)
        if result := CARGO_RESULT.match(line):
            passed += int(result[1])
            failed += int(result[2])
    status = process.wait()
    # A check without tests of its own is one; so is a build error, where no test could fail.
    if status != 0 and failed == 0:
        failed = 1
    elif status == 0 and passed == 0:
        passed = 1
    verdict = "ok" if status == 0 else f"FAILED (exit status {status})"
    print(f"== {check.name}: {verdict}, {time.monotonic() - started:.0f} s\n", flush=True)
    return passed, failed


def main() -> None:
    if sys.argv[1:] not in (["lint"], ["all"]):
        sys.exit(__doc__)
    checks = LINT if sys.argv[1] == "lint" else LINT + TESTS
    counts = [run(check) for check in checks]
    for check, (_, failed) in zip(checks, counts, strict=True):
        if failed:
            print(f"failed: {check.name}")
    passed, failed = (sum(column) for column in zip(*counts, strict=True))
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
