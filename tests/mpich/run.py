#!/usr/bin/env python3
"""Runs MPICH's own tests (test/mpi of its source, built) under `weft run`, and counts against tcp.

A test passes where it ends with status 0 and prints "No Errors", within its time limit: that of MPICH's list,
or --timeout if that is longer. One that does not pass under weft is run again over libfabric's tcp, on one
computer but without shared memory. One that does not pass there either says nothing of weft and is left out.
failures.toml lists those that pass over tcp alone, with the reason of each; any other is an error, and so is
a listed one that passes.

With --tcp FILE every test is run over tcp, those that pass under weft too: the share is then exactly that of
what passes over tcp. The file keeps the outcomes, one line each; a test that it has is not run over tcp
again.

Usage: MPICH_TESTS=PATH run.py [--weft "COMMAND"] [--timeout SECONDS] [--keep FOLDER] [--tcp FILE]
       [FOLDER|TEST...]

CONTRIBUTING.md says how the tests are fetched and built. Nothing of MPICH is in this tree.
"""

import argparse
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VENV = Path(os.environ.get("VENV", ROOT / "build/venv"))

# Without spawn (weft starts all ranks itself), io (files, no network), perf and threads (real time).
FOLDERS = [
    "attr",
    "coll",
    "comm",
    "datatype",
    "errhan",
    "group",
    "info",
    "init",
    "mpi_t",
    "pt2pt",
    "part",
    "rma",
    "session",
    "topo",
]
FOLDERS += [
    f"errors/{folder}" for folder in ["attr", "coll", "comm", "datatype", "group", "pt2pt", "rma", "topo"]
]
REQUIRED_SHARE = 0.995
# After its limit `weft run` ends all that it has started.
SECONDS_TO_END = 30
NO_ERRORS = re.compile(r"^\s*No [Ee]rrors\s*$", re.MULTILINE)
OPTION = re.compile(r"^([A-Za-z]+)=(.*)$")


class Test(NamedTuple):
    """A line of a testlist."""

    folder: str
    program: str
    ranks: int
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    wants_failure: bool
    seconds: float

    @property
    def name(self) -> str:
        """Folder, program, ranks, arguments and environment: what tells two lines apart."""
        environment = [f"{key}={value}" for key, value in self.environment]
        return " ".join([f"{self.folder}/{self.program}", str(self.ranks), *self.arguments, *environment])


def read_list(tests: Path, folder: str) -> list[Test]:
    """The tests of a folder's list whose program was built; those that are expected to fail are left out."""
    found = []
    for line in (tests / folder / "testlist").read_text().splitlines():
        words = shlex.split(line.split("#", 1)[0])
        if len(words) < 2 or not words[1].isdigit():
            continue
        options = [match.groups() for word in words[2:] if (match := OPTION.match(word))]
        environment = tuple(tuple(value.split("=", 1)) for key, value in options if key == "env")
        arguments = tuple(value for key, value in options if key == "arg")
        seconds = max((float(value) for key, value in options if key == "timeLimit"), default=0.0)
        left_out = {"xfail", "mpiexecarg", "mem"} & {key for key, _ in options}
        wants_failure = ("resultTest", "TestStatus") in options or ("resultTest", "TestErrFatal") in options
        # Of mpiexec's own limit, not of MPI.
        left_out = left_out or (wants_failure and seconds > 0)
        if not left_out and (tests / folder / words[0]).exists():
            found.append(
                Test(folder, words[0], int(words[1]), arguments, environment, wants_failure, seconds)
            )
    return found


class Run(NamedTuple):
    """How a test is started, for how long it may take, and who keeps what it has printed."""

    fabric: str
    tests: Path
    launch: list[str]
    timeout: float
    extra: dict[str, str]
    keep: Path | None


def passes(run: Run, test: Test) -> bool:
    """Runs a test. One that hangs is ended with all that it has started."""
    timeout = max(run.timeout, test.seconds)
    paths = {"PATH": f"{VENV}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{VENV}/lib"}
    words = [word.format(ranks=test.ranks, seconds=f"{timeout:.0f}") for word in run.launch]
    command = [*words, f"./{test.program}", *test.arguments]
    status, started = None, time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=run.tests / test.folder,
            env=os.environ | paths | dict(test.environment) | run.extra,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout + SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    seconds = time.monotonic() - started
    if status is None or seconds > timeout:
        passed = False
    elif test.wants_failure:
        passed = status != 0
    else:
        passed = status == 0 and NO_ERRORS.search(text) is not None
    if run.keep:
        outcome = "passes" if passed else "fails"
        with (run.keep / "tests.tsv").open("a") as file:
            file.write(f"{outcome}\t{seconds:.1f}\t{run.fabric}\t{test.name}\n")
        name = re.sub(r"[^\w.=-]+", "_", f"{test.name} {run.fabric}")[:200]
        (run.keep / f"{name}.txt").write_text(f"{shlex.join(command)}\n{text}\nstatus {status}\n")
    return passed


class OverTcp:
    """Outcomes over tcp: those that a file has from an earlier run, and those that are found now."""

    def __init__(self, run: Run, file: Path | None) -> None:
        self.run = run
        self.file = file
        self.outcomes: dict[str, bool] = {}
        if file and file.exists():
            for line in file.read_text().splitlines():
                outcome, name = line.split("\t")
                self.outcomes[name] = outcome == "passes"

    def passes(self, test: Test) -> bool:
        """Whether a test passes; it is run where no outcome is kept."""
        if test.name not in self.outcomes:
            self.outcomes[test.name] = passes(self.run, test)
            if self.file:
                outcome = "passes" if self.outcomes[test.name] else "fails"
                with self.file.open("a") as file:
                    file.write(f"{outcome}\t{test.name}\n")
        return self.outcomes[test.name]


def skip(reason: str) -> None:
    """Says that nothing was run, to people and to tools/test.py."""
    line = f"skipped: MPICH's tests: {reason}"
    print(line)
    if path := os.environ.get("WEFT_SKIPPED"):
        with Path(path).open("a") as file:
            file.write(line + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weft", default=f"{ROOT}/target/quick/weft run --quiet -m exanest")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS")
    parser.add_argument("only", nargs="*", metavar="FOLDER|TEST")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="here goes what each test has printed")
    parser.add_argument("--tcp", type=Path, metavar="FILE", help="outcomes over tcp are kept here")
    options = parser.parse_args()
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    if not (given := os.environ.get("MPICH_TESTS")):
        skip("MPICH_TESTS does not name test/mpi of MPICH's source, built")
        return
    tests = Path(given)
    if not (tests / "rma/testlist").exists():
        sys.exit(f"{tests} has no rma/testlist; name test/mpi of MPICH's source, configured and built")
    weft = [*shlex.split(options.weft), "-n", "{ranks}", "--wall-limit", "{seconds}s", "--"]
    tcp = [str(VENV / "bin/mpiexec"), "-n", "{ranks}"]
    no_shared_memory = {"MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp"}
    under_weft = Run("weft", tests, weft, options.timeout, {}, options.keep)
    over_tcp = OverTcp(Run("tcp", tests, tcp, options.timeout, no_shared_memory, options.keep), options.tcp)
    known = tomllib.loads((HERE / "failures.toml").read_text())

    everything = [test for folder in FOLDERS for test in read_list(tests, folder)]
    chosen = [
        test
        for test in everything
        if not options.only or test.folder in options.only or f"{test.folder}/{test.program}" in options.only
    ]
    passed, failed, left_out, wrong = [], [], [], []
    started = time.monotonic()
    for test in chosen:
        if passes(under_weft, test):
            passed.append(test)
            if test.name in known:
                wrong.append(f"{test.name}: passes, and failures.toml lists it")
            continue
        if not over_tcp.passes(test):
            left_out.append(test.name)
            continue
        failed.append(test.name)
        print(f"fails: {test.name}: {known.get(test.name, 'not in failures.toml')}", flush=True)
        if test.name not in known:
            wrong.append(f"{test.name}: passes over tcp, not under weft")
    weft_alone = [test.name for test in passed if options.tcp and not over_tcp.passes(test)]
    passed_both = len(passed) - len(weft_alone)
    compared = passed_both + len(failed)
    share = passed_both / compared if compared else 0.0
    for name in left_out:
        print(f"left out, since it does not pass over tcp: {name}")
    for name in weft_alone:
        print(f"left out, since it passes under weft alone: {name}")
    for line in wrong:
        print(f"wrong: {line}")
    seconds = time.monotonic() - started
    left_out += weft_alone
    # Rounded down: a share that is too small must not look like one that is not.
    percent = math.floor(share * 10000) / 100
    print(
        f"{passed_both} of {compared} that pass over tcp pass under weft: {percent:.2f} %, and"
        f" {REQUIRED_SHARE:.1%} is required; {len(left_out)} left out, {seconds:.0f} s"
    )
    sys.exit(1 if wrong or share < REQUIRED_SHARE else 0)


if __name__ == "__main__":
    main()
