#!/usr/bin/env python3
"""Compares the results of short commands with those of the last commit that changed results on purpose.

    same.py [--weft WEFT] [--keep DIR] [--write LINE | --add] [NAME...]

tests/same/commands.toml has the commands. tests/same/digests.json has the SHA-256 of what each measured: of
the rows of its JSON document, without what depends on the computer, and of each table. NAME chooses the
commands whose names contain it.

A change that is meant is kept by `--write LINE`. LINE says what changes and why; it goes to the top of
RESULTS.md with the names of the commands. `--add` keeps what commands measure that are new in commands.toml.
`--keep DIR` leaves the results in DIR: do it with the command of the commit before as well, and `weft
compare` shows what differs.
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
# The most commands that an entry of RESULTS.md names, and the fewest letters that say why.
MOST_NAMED = 3
SHORTEST_LINE = 20
# Keys of JSON documents, at any depth, that depend on the computer.
OF_THE_COMPUTER = {
    "build_time_s",
    "proof_time_s",
    "packet_hops_per_second",
    "peak_memory_bytes",
    "threads",
    "wall_time_s",
}

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
        """Digests of the results that a command has now."""
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


def differences(known: dict[str, Digests], found: dict[str, Digests], name: str) -> list[str]:
    """Parts of the results of a command that differ: rows, tables."""
    before, now = known.get(name, {}), found[name]
    return [part for part in sorted(before | now) if before.get(part) != now.get(part)]


def gone(known: dict[str, Digests], listed: list[Command]) -> list[str]:
    """Commands that have digests and are listed no more."""
    return sorted(known.keys() - {command.name for command in listed})


def machines_left_out(listed: list[Command]) -> list[str]:
    """Machines that ship, and that no command is on."""
    words = {word for command in listed for word in shlex.split(command.weft)}
    return sorted({file.stem for file in (ROOT / "machines").glob("*.toml")} - words)


def store(digests: dict[str, Digests], line: str) -> None:
    """Writes digests.json: the digests by command, and the line of RESULTS.md that says why."""
    DIGESTS.write_text(json.dumps({"line": line, "commands": digests}, indent=1, sort_keys=True) + "\n")


def tell(line: str, changed: list[str], of: int) -> None:
    """Puts an entry at the top of RESULTS.md."""
    named = "; ".join(changed[:MOST_NAMED]) + (" …" if len(changed) > MOST_NAMED else "")
    entry = f"- **{datetime.date.today()}** {line}\n  ({len(changed)} of {of} commands: {named})\n"
    head, mark, entries = RESULTS.read_text().partition("<!-- entries -->\n\n")
    if not mark:
        sys.exit(f"same.py: {RESULTS.name} has no line `<!-- entries -->` with an empty line below it")
    RESULTS.write_text(head + mark + entry + entries)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft", type=Path, default=ROOT / "target/debug/weft")
    parser.add_argument("--keep", type=Path, help="a new folder for the results")
    parser.add_argument("--write", metavar="LINE", help="keep the results; LINE says what changes and why")
    parser.add_argument("--add", action="store_true", help="keep the results of commands that are new")
    parser.add_argument("names", nargs="*", help="parts of names of commands; all by default")
    arguments = parser.parse_args()
    line = arguments.write
    if line is not None and (len(line) < SHORTEST_LINE or arguments.names or arguments.add):
        parser.error("--write takes all commands, and a line that says what changes and why")
    if not arguments.weft.is_file():
        parser.error(f"there is no {arguments.weft}; `cargo build -p weft-cli` builds target/debug/weft")
    listed = [Command(**entry) for entry in tomllib.loads(COMMANDS.read_text())["command"]]
    chosen = arguments.names or [""]
    commands = [command for command in listed if any(name in command.name for name in chosen)]
    if not build_program():
        if line is not None or arguments.add:
            parser.error("all commands must run, and some need the MPICH that `make test` installs")
        skip([command for command in commands if command.needs_mpi])
        commands = [command for command in commands if not command.needs_mpi]
    runner = Runner(arguments.weft.absolute(), arguments.keep)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip((each.name for each in commands), pool.map(runner.digests, commands), strict=True))

    stored = json.loads(DIGESTS.read_text())
    known = stored["commands"]
    failed = {name: result for name, result in found.items() if isinstance(result, Failed)}
    changed = {
        name: parts for name in found.keys() - failed.keys() if (parts := differences(known, found, name))
    }
    new = [name for name in changed if name not in known]
    if line is not None and not failed and changed:
        tell(line, [name for name in found if name in changed], len(found))
        store(found, line)
        print(f"{len(changed)} commands written")
        return 0
    if arguments.add and not failed and len(new) == len(changed):
        store(
            {name: known.get(name, found.get(name)) for name in (each.name for each in listed)},
            stored["line"],
        )
        print(f"{len(new)} commands added")
        return 0

    for name, result in failed.items():
        print(f"{name}: {result}")
    for name in (name for name in found if name in changed):
        print(f"{name}: " + ("is new" if name in new else f"differs in {', '.join(changed[name])}"))
    complaints = [
        f"{name}: has digests, but is no command of {COMMANDS.name}" for name in gone(known, listed)
    ]
    complaints += [f"no command is on the machine {name}" for name in machines_left_out(listed)]
    if stored["line"] not in RESULTS.read_text():
        complaints.append(f"{RESULTS.name} lacks the reason of the last change: {stored['line']}")
    for complaint in complaints:
        print(complaint)
    print(f"{len(found)} commands, {len(changed)} differ, {len(failed)} failed")
    if changed:
        print("Is it meant? `tools/same.py --write 'what changes, and why'` keeps it, and tells RESULTS.md.")
    return 1 if changed or failed or complaints else 0


if __name__ == "__main__":
    sys.exit(main())
