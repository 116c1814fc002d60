#!/usr/bin/env python3
"""Runs MPICH's own tests (test/mpi of its source, built) under `weft run`, and counts against tcp.

A test passes where it ends with status 0 and prints "No Errors". One that does not pass under weft is run
again over libfabric's tcp, on one computer but without shared memory. One that does not pass there either
says nothing of weft and is left out. failures.toml lists those that pass over tcp alone, with the reason of
each; any other is an error, and so is a listed one that passes.

Usage: MPICH_TESTS=PATH run.py [--weft "COMMAND"] [--timeout SECONDS] [FOLDER|TEST...]

CONTRIBUTING.md says how the tests are fetched and built. Nothing of MPICH is in this tree.
"""

import argparse
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
OPTION = re.compile(r"^([A-Za-z]+)=(.*)$")


class Test(NamedTuple):
    """A line of a testlist."""

    folder: str
    program: str
    ranks: int
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    wants_failure: bool

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
        left_out = {"xfail", "mpiexecarg", "mem"} & {key for key, _ in options}
        wants_failure = ("resultTest", "TestStatus") in options or ("resultTest", "TestErrFatal") in options
        if not left_out and (tests / folder / words[0]).exists():
            found.append(Test(folder, words[0], int(words[1]), arguments, environment, wants_failure))
    return found


def passes(tests: Path, test: Test, launch: list[str], timeout: float, extra: dict[str, str]) -> bool:
    """Runs a test. One that hangs is ended with all that it has started."""
    paths = {"PATH": f"{VENV}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{VENV}/lib"}
    command = [word.format(ranks=test.ranks) for word in launch] + [f"./{test.program}", *test.arguments]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=tests / test.folder,
            env=os.environ | paths | dict(test.environment) | extra,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False
        output.seek(0)
        text = output.read().decode(errors="replace")
    return status != 0 if test.wants_failure else status == 0 and "No Errors" in text


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
    parser.add_argument("--timeout", type=float, default=180, metavar="SECONDS")
    parser.add_argument("only", nargs="*", metavar="FOLDER|TEST")
    options = parser.parse_args()
    if not (given := os.environ.get("MPICH_TESTS")):
        skip("MPICH_TESTS does not name test/mpi of MPICH's source, built")
        return
    tests = Path(given)
    if not (tests / "rma/testlist").exists():
        sys.exit(f"{tests} has no rma/testlist; name test/mpi of MPICH's source, configured and built")
    weft = [*shlex.split(options.weft), "-n", "{ranks}", "--wall-limit", f"{options.timeout:.0f}s", "--"]
    tcp = [str(VENV / "bin/mpiexec"), "-n", "{ranks}"]
    known = tomllib.loads((HERE / "failures.toml").read_text())

    everything = [test for folder in FOLDERS for test in read_list(tests, folder)]
    chosen = [
        test
        for test in everything
        if not options.only or test.folder in options.only or f"{test.folder}/{test.program}" in options.only
    ]
    passed, failed, left_out, wrong = 0, [], [], []
    started = time.monotonic()
    for test in chosen:
        if passes(tests, test, weft, options.timeout + 30, {}):
            passed += 1
            if test.name in known:
                wrong.append(f"{test.name}: passes, and failures.toml lists it")
            continue
        over_tcp = {"MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp"}
        if not passes(tests, test, tcp, options.timeout, over_tcp):
            left_out.append(test.name)
            continue
        failed.append(test.name)
        print(f"fails: {test.name}: {known.get(test.name, 'not in failures.toml')}", flush=True)
        if test.name not in known:
            wrong.append(f"{test.name}: passes over tcp, not under weft")
    compared = passed + len(failed)
    share = passed / compared if compared else 0.0
    for name in left_out:
        print(f"left out, since it does not pass over tcp: {name}")
    for line in wrong:
        print(f"wrong: {line}")
    seconds = time.monotonic() - started
    print(f"{passed} of {compared} pass ({share:.1%}), {len(left_out)} left out, {seconds:.0f} s")
    sys.exit(1 if wrong or share < REQUIRED_SHARE else 0)


if __name__ == "__main__":
    main()
