#!/usr/bin/env python3
"""Compares the results of short commands with those of the last commit that changed results on purpose.

    same.py [--weft WEFT] [--keep DIR] [--write LINE] [NAME...]

tests/same/commands.toml has the commands, and tests/same/digests.json the SHA-256 of what each of them measured:
of the rows of its JSON document, without what depends on the computer, and of each of its tables. NAME chooses
the commands whose names contain it.

A change that is meant is kept by `--write LINE`. LINE says what changes and why; it goes to the top of
RESULTS.md with the names of the commands. `--keep DIR` leaves the results in DIR: do it with the command of the
commit before as well, and `weft compare` shows what differs.
"""

import argparse
import datetime
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = ROOT / "tests/same/commands.toml"
DIGESTS = ROOT / "tests/same/digests.json"
RESULTS = ROOT / "RESULTS.md"
VENV = ROOT / "build/venv"
PROGRAM = ROOT / "build/same/patterns"

# Seconds that a command may take. The slowest takes a few.
PATIENCE = 120
# The most commands that an entry of RESULTS.md names.
MOST_NAMED = 6
# Keys of JSON documents, at any depth, that depend on the computer.
OF_THE_COMPUTER = {"build_time_s", "proof_time_s", "packet_hops_per_second", "peak_memory_bytes", "threads", "wall_time_s"}

# What a command measured: the digest of its rows, and of each table by its file's name.
Digests = dict[str, str]


class Command(NamedTuple):
    """A command of commands.toml, whose head says what the fields mean."""

    name: str
    weft: str
    before: str = ""
    json: bool = False

    @property
    def needs_mpi(self) -> bool:
        """Whether it runs a program that must be built with MPICH."""
        return "{patterns}" in self.weft + self.before


class Failed(Exception):
    """A command that did not end well."""


class Runner(NamedTuple):
    """The means to run commands."""

    weft: Path
    keep: Path | None

    def call(self, words: str, folder: Path) -> str:
        """Runs weft with these words; returns what it prints."""
        places = {"{dir}": folder, "{patterns}": PROGRAM}
        for name, path in places.items():
            words = words.replace(name, str(path))
        environment = dict(os.environ, LD_LIBRARY_PATH=str(VENV / "lib"))
        try:
            done = subprocess.run(
                [self.weft, *shlex.split(words)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"no end within {PATIENCE} s") from None
        if done.returncode != 0:
            raise Failed(f"exit status {done.returncode}\n{done.stderr.rstrip()}")
        return done.stdout

    def digests(self, command: Command) -> Digests | Failed:
        """What a command measures now."""
        with tempfile.TemporaryDirectory(prefix="weft-same-") as temporary:
            folder = Path(temporary)
            try:
                if command.before:
                    self.call(command.before, folder)
                # Words of a program that is run stay behind those of weft.
                words, dashes, program = command.weft.partition(" -- ")
                words += " --json" if command.json else " --json --quiet -o {dir}/out"
                printed = self.call(words + dashes + program, folder)
            except Failed as failed:
                return failed
            digests = {"rows": digest_of_rows(json.loads(printed), folder)}
            if not command.json:
                of_files = json.loads((folder / "out/performance.json").read_text())["sha256"]
                digests |= {file: sha for file, sha in of_files.items() if file.endswith(".parquet")}
                if self.keep:
                    shutil.copytree(folder / "out", self.keep / command.name.replace("/", "-"))
            return digests


def digest_of_rows(document: dict, folder: Path) -> str:
    """The digest of the rows of a document, or of all of it where it has none."""
    rows = without_the_computer(document.get("rows", document))
    # A trace is named by its file, which lies in another folder each time.
    text = json.dumps(rows, sort_keys=True).replace(str(folder), "DIR")
    return hashlib.sha256(text.encode()).hexdigest()


def without_the_computer(value: object) -> object:
    """The value without keys that depend on the computer."""
    if isinstance(value, dict):
        return {key: without_the_computer(item) for key, item in value.items() if key not in OF_THE_COMPUTER}
    if isinstance(value, list):
        return [without_the_computer(item) for item in value]
    return value


def build_program() -> bool:
    """Builds the program of the tests and the provider that it needs; whether there is an MPI for that."""
    compiler = VENV / "bin/mpicc"
    if not compiler.exists():
        return False
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, ROOT / "tests/replays/patterns.c", "-o", PROGRAM], check=True)
    for part in ("libfabric", "recorder"):
        subprocess.run(["make", "--silent", "-C", ROOT / part], check=True, stdout=subprocess.DEVNULL)
    return True


def skip(commands: list[Command]) -> None:
    """Reports commands that cannot run here, as tools/test.py counts them."""
    reason = "no MPICH in build/venv; `make test` installs it"
    lines = "".join(f"left out: same, {command.name}: {reason}\n" for command in commands)
    if file := os.environ.get("WEFT_SKIPPED"):
        with Path(file).open("a") as skipped:
            skipped.write(lines)
    else:
        sys.stderr.write(lines)


def differences(known: Digests, now: Digests) -> list[str]:
    """The names of what differs, is new or is gone."""
    return [name for name in sorted(known | now) if known.get(name) != now.get(name)]


def write(stored: dict, found: dict[str, Digests], line: str) -> None:
    """Keeps what was found, with the reason at the top of RESULTS.md."""
    changed = [name for name in found if stored["commands"].get(name) != found[name]]
    if not changed:
        sys.exit("same.py: nothing differs, so there is nothing to write")
    named = "; ".join(changed[:MOST_NAMED]) + (" …" if len(changed) > MOST_NAMED else "")
    commands = f"{len(changed)} of {len(found)} commands: {named}"
    entry = f"- **{datetime.date.today()}** {line.rstrip('.')}. ({commands})\n"
    head, mark, entries = RESULTS.read_text().partition("<!-- entries -->\n\n")
    if not mark:
        sys.exit(f"same.py: {RESULTS.name} has no line `<!-- entries -->` with an empty line below it")
    RESULTS.write_text(head + mark + entry + entries)
    of_commands = {**stored["commands"], **found}
    DIGESTS.write_text(json.dumps({"line": line, "commands": of_commands}, indent=1, sort_keys=True) + "\n")
    print(f"{len(changed)} commands written: {named}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft", type=Path, default=ROOT / "target/debug/weft")
    parser.add_argument("--keep", type=Path, help="a new folder for the results")
    parser.add_argument("--write", metavar="LINE", help="keep the results; LINE says what changes and why")
    parser.add_argument("names", nargs="*", help="parts of names of commands; all by default")
    arguments = parser.parse_args()
    if arguments.write is not None and (len(arguments.write) < 20 or arguments.names):
        parser.error("--write takes all commands, and a line that says what changes and why")
    if not arguments.weft.is_file():
        parser.error(f"there is no {arguments.weft}; `cargo build -p weft-cli` builds target/debug/weft")
    runner = Runner(arguments.weft.absolute(), arguments.keep)
    listed = [Command(**entry) for entry in tomllib.loads(COMMANDS.read_text())["command"]]
    chosen = arguments.names or [""]
    commands = [command for command in listed if any(name in command.name for name in chosen)]
    if not build_program():
        skip([command for command in commands if command.needs_mpi])
        commands = [command for command in commands if not command.needs_mpi]
    stored = json.loads(DIGESTS.read_text())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip((each.name for each in commands), pool.map(runner.digests, commands), strict=True))

    failed = {name: result for name, result in found.items() if isinstance(result, Failed)}
    for name, result in failed.items():
        print(f"{name}: {result}")
    if failed:
        return 1
    if arguments.write is not None:
        write(stored, found, arguments.write)
        return 0
    differing = 0
    for name, now in found.items():
        if parts := differences(stored["commands"].get(name, {}), now):
            differing += 1
            print(f"{name}: differs in {', '.join(parts)}")
    gone = stored["commands"].keys() - {command.name for command in listed}
    for name in sorted(gone):
        print(f"{name}: in {DIGESTS.name}, but not in {COMMANDS.name}")
    without_reason = stored["line"].rstrip(".") not in RESULTS.read_text()
    if without_reason:
        print(f"{RESULTS.name} lacks the reason of {DIGESTS.name}: {stored['line']}")
    print(f"{len(found)} commands, {differing} differ")
    if differing:
        print("Is it meant? `tools/same.py --write 'what changes, and why'` keeps it, and tells RESULTS.md.")
    return 1 if differing or gone or without_reason else 0


if __name__ == "__main__":
    sys.exit(main())
