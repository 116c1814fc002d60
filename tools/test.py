#!/usr/bin/env python3
"""Runs the project's checks and tests, all of them even where one fails, and counts.

Usage: test.py [lint|all|long]

lint is the fast part of all. long has what takes too long for every change: CONTRIBUTING.md has the list.
Each check counts as one test, cargo's tests count one by one. A test that cannot run here adds a line to the
file that WEFT_SKIPPED names, and counts as skipped. The reasons come at the end, and the last line reads
`N passed, N failed, N skipped`.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / "build/venv/bin"
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
# A test that cannot run, or a part of one: `skipped: NAME: REASON`, `left out: NAME, PART: REASON`.
SKIPPED = re.compile(r"^(skipped|left out): (.*?): (.*)$")


class Check(NamedTuple):
    """A command that must exit with 0."""

    name: str
    command: list[str]


PYTHON_SOURCES = ["tools", "demo", "bench", "recorder", "rtl", "tests", "python", "studies"]

# The command is left out: its doc comments are the text of --help, which is no Markdown.
RUSTDOC = ["cargo", "doc", "--locked", "--quiet", "--no-deps", "--document-private-items"]
RUSTDOC += ["--workspace", "--exclude", "weft-cli"]

LINT = [
    Check("Rust is formatted", ["cargo", "fmt", "--all", "--check"]),
    Check("clippy", ["cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    # Links between items, private ones too, lead somewhere.
    Check("rustdoc", ["env", "RUSTDOCFLAGS=-D warnings", *RUSTDOC]),
    Check("Python is formatted", [str(VENV / "ruff"), "format", "--check", *PYTHON_SOURCES]),
    Check("ruff", [str(VENV / "ruff"), "check", *PYTHON_SOURCES]),
    Check("Python reference is current", [str(VENV / "python"), "tools/python_reference.py"]),
    Check("text", [sys.executable, "tools/check_text.py"]),
    Check("ratchets", [sys.executable, "tools/ratchets.py"]),
    Check("dependencies", [sys.executable, "tools/check_dependencies.py"]),
    Check("what a rank loads, with its oldest Rust", ["tools/check_oldest_rust.sh"]),
]

# A workspace of its own, whose wheel only `make dist` and `make test-long` build.
PYTHON_PACKAGE = [
    "cargo",
    "check",
    "--locked",
    "--manifest-path",
    "python/Cargo.toml",
    "--target-dir",
    "target",
]

TESTS = [
    Check("the Python package compiles", PYTHON_PACKAGE),
    Check("cargo test", ["cargo", "test", "--locked", "--workspace", "--no-fail-fast"]),
    Check("control words of ExaNet", [sys.executable, "tests/wire/check.py"]),
    Check("RTL", [sys.executable, "rtl/run.py", "--cycles", "20000", "check"]),
    # The dev profile: cargo test has built it.
    Check("RTL beside the model", [sys.executable, "rtl/run.py", "--profile", "dev", "random"]),
    Check("same results", [str(VENV / "python"), "tools/same.py"]),
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
        "load curves",
        [
            sys.executable,
            "tests/curves/run.py",
            "--weft",
            "target/debug/weft",
            "megafly-adversarial",
            "slim-fly-adversarial",
        ],
    ),
    Check(
        "shares",
        [
            sys.executable,
            "tests/shares/run.py",
            *["--weft", "target/debug/weft", "--first", "12", "--sets", "4"],
        ],
    ),
    Check(
        # Its links carry data both ways, and words for credits with it.
        "shares beside words for credits",
        [
            sys.executable,
            "tests/shares/run.py",
            *["--weft", "target/debug/weft", "--first", "38", "--sets", "1", "exanest"],
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
    Check(
        "replays of windows",
        [
            sys.executable,
            "tests/replays/compare.py",
            *["--weft", "target/debug/weft", "--ranks", "2,4,8", "--sizes", "6000"],
            *["--rounds", "20", "win_*"],
        ],
    ),
    Check("VEF by its rules", [sys.executable, "tests/vef/run.py", "--weft", "target/debug/weft"]),
    Check("kernels", [str(VENV / "python"), "tests/apps/run.py", "--weft", "target/debug/weft"]),
    Check("kernel of LAMMPS", [str(VENV / "python"), "tests/apps/lammps.py", "--weft", "target/debug/weft"]),
    # The other pages are run by test-long; tools/check_docs.py looks at all of them.
    Check(
        "tutorial",
        [sys.executable, "tests/book/run.py", "--weft", "target/debug/weft", "docs/src/tutorial.md"],
    ),
    Check("docs", [sys.executable, "tools/check_docs.py", "--weft", "target/debug/weft"]),
]

MACHINES = [
    "exanest",
    "apenetx-u200",
    "apenetx-u280",
    "bxi2-fattree",
    "bxi2-megafly",
    "bxi3-fattree",
    "bxi3-dragonfly",
    "bxi3-megafly",
    "carvnet-riscv --set topology.dims=[4,4]",
    "carvnet-spineleaf",
    "communication-ip --set topology.dims=[4,4]",
    "deep-msa",
    "ethernet-100g-spineleaf",
    "ib-ndr-fattree",
    "ib-qdr-fattree",
    "slingshot-dragonfly",
]
WEFT = "target/quick/weft"


def mpi_tests(machine: str, ranks: str) -> Check:
    """The MPI test programs in virtual time."""
    launch = f"{WEFT} run --quiet -m {machine} --wall-limit 10min -n {{ranks}} --"
    command = [sys.executable, "tests/mpi/run.py", "--launch", launch, "--ranks", ranks, "--timeout", "700"]
    return Check(f"MPI in virtual time on {machine}", command)


def cargo_tests(number: int) -> Check:
    """All tests of cargo again. proptest draws other cases each time; here it draws more of them."""
    command = ["env", "PROPTEST_CASES=2048", "cargo", "test", "--locked", "--workspace", "--no-fail-fast"]
    return Check(f"cargo test, round {number}", command)


def replays(machine: str, *which: str) -> Check:
    """Patterns of communication with several sizes of messages, each run and its replay."""
    command = [sys.executable, "tests/replays/compare.py", "--weft", WEFT, "--machine", machine, *which]
    return Check(" ".join(["replays on", machine, *which]), command)


HUNDRED_MILLION = [
    "cargo",
    "test",
    "--locked",
    "-p",
    "weft-nic",
    "--lib",
    "a_hundred_million",
    "--",
    "--ignored",
]

SCENARIOS_IN_FULL = ["cargo", "test", "--locked", "-p", "weft-cli", "shipped_scenarios", "--", "--ignored"]

LONG = [
    *(cargo_tests(number) for number in range(1, 5)),
    Check("10^8 packets", HUNDRED_MILLION),
    Check(
        "RTL over a million cycles",
        [sys.executable, "rtl/run.py", "--cycles", "1000000", "--pairs", "100000000", "check"],
    ),
    *(
        Check(f"RTL from state {seed}", [sys.executable, "rtl/run.py", "--seed", str(seed), "check"])
        for seed in (11, 12, 13)
    ),
    Check("RTL from an unknown state", [sys.executable, "rtl/run.py", "unknown"]),
    Check("RTL beside the model, 10^7", [sys.executable, "rtl/run.py", "--cycles", "10000000", "random"]),
    Check("synthesis of the RTL", [sys.executable, "rtl/run.py", "synthesis"]),
    Check("scenarios in full", SCENARIOS_IN_FULL),
    *(mpi_tests(machine, "1,3,8,16") for machine in MACHINES),
    replays("exanest"),
    replays("exanest", "--ranks", "2,4", "--sizes", "8,4096"),
    replays("exanest", "--ranks", "2,4,8", "--sizes", "4096,6000,8192", "win_*"),
    Check(
        "kernels at scale",
        [
            str(VENV / "python"),
            "tests/apps/lammps.py",
            "--weft",
            WEFT,
            "--ranks",
            "7,8,12,27,64",
            "--steps",
            "20",
        ],
    ),
    Check(
        "recordings scaled",
        [str(VENV / "python"), "tests/apps/lammps.py", "--weft", WEFT, "--scaled", "--steps", "20"],
    ),
    Check("validate --vary", [WEFT, "validate", "--vary", "--threads", "2"]),
    Check("load curves", [sys.executable, "tests/curves/run.py", "--weft", WEFT]),
    Check("studies", [sys.executable, "studies/book.py", "--weft", WEFT, "--check"]),
    Check("shares", [sys.executable, "tests/shares/run.py", "--weft", WEFT]),
    Check("deadlock", [sys.executable, "tests/deadlock/run.py", "--weft", WEFT, "--seconds", "120"]),
    Check("effects of values", [sys.executable, "tests/values/run.py", "--weft", WEFT]),
    Check("pages of the book", [sys.executable, "tests/book/run.py", "--weft", WEFT, "--slow"]),
    Check("import weft", [sys.executable, "tests/python/run.py"]),
    Check("page in Chromium", [sys.executable, "tests/view/run.py", "--weft", WEFT]),
    Check("MPICH's tests", [sys.executable, "tests/mpich/run.py"]),
    Check("demo", ["make", "--no-print-directory", "demo"]),
]


class Outcome(NamedTuple):
    """The tests of a check, by how they ended."""

    passed: int
    failed: int
    skipped: list[tuple[str, str]]
    left_out: list[tuple[str, str]]


def run(check: Check) -> Outcome:
    """Runs a check, its output passed through, and counts its tests."""
    with tempfile.NamedTemporaryFile("r", prefix="weft-skipped-", errors="replace") as file:
        passed, failed = run_and_count(check, {**os.environ, "WEFT_SKIPPED": file.name})
        matches = [match for line in file if (match := SKIPPED.match(line))]
    skipped = [(match[2], match[3]) for match in matches if match[1] == "skipped"]
    left_out = [(match[2], match[3]) for match in matches if match[1] == "left out"]
    # A skipped test has returned early, which cargo takes for passed.
    return Outcome(max(passed - len(skipped), 0), failed, skipped, left_out)


def run_and_count(check: Check, environment: dict[str, str]) -> tuple[int, int]:
    """Runs a check and returns how many of its tests passed and failed, those that are skipped among them."""
    print(f"== {check.name}: {' '.join(check.command)}", flush=True)
    started = time.monotonic()
    passed = failed = 0
    try:
        process = subprocess.Popen(
            check.command,
            cwd=ROOT,
            env=environment,
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


def print_reasons(what: str, tests: list[tuple[str, str]]) -> None:
    """Prints each reason with the number of its tests and the first of them."""
    by_reason = defaultdict(list)
    for name, reason in tests:
        by_reason[reason].append(name)
    for reason, names in by_reason.items():
        more = ", …" if len(names) > 3 else ""
        print(f"{what}: {len(names)}: {reason} ({', '.join(names[:3])}{more})")


def main() -> None:
    tiers = {"lint": LINT, "all": LINT + TESTS, "long": LONG}
    if len(sys.argv) != 2 or sys.argv[1] not in tiers:
        sys.exit(__doc__)
    checks = tiers[sys.argv[1]]
    outcomes = [run(check) for check in checks]
    skipped = [test for outcome in outcomes for test in outcome.skipped]
    print_reasons("skipped", skipped)
    print_reasons("left out", [part for outcome in outcomes for part in outcome.left_out])
    for check, outcome in zip(checks, outcomes, strict=True):
        if outcome.failed:
            print(f"failed: {check.name}")
    passed, failed = (sum(getattr(outcome, count) for outcome in outcomes) for count in ("passed", "failed"))
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
