#!/usr/bin/env python3
"""Compares the results of short commands with those of the last commit that changed results on purpose.

    same.py [--weft WEFT] [--keep DIR] [--write LINE | --add] [NAME...]

tests/same/commands.toml has the commands. tests/same/digests.json has the SHA-256 of what each measured: of
the rows of its JSON document, without what depends on the computer, and of each table. NAME chooses the
commands whose names contain it.

A digest is over the keys of rows and the columns of tables that digests.json lists. So one that is new
changes no digest: it is said, and `--add` keeps it, as it keeps a command that is new in commands.toml. A
result that is meant to change is kept by `--write LINE`. LINE says what changes and why; it goes to the top
of RESULTS.md with the names of the commands. `--keep DIR` leaves the results in DIR: do it with the command
of the commit before as well, and `weft compare` shows what differs.
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
import textwrap
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from pyarrow import parquet

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

# The values of one part of a result, the rows or a table: by the path of the key, or by column.
Values = dict[str, list]
# Digests of the parts of a result, and the keys or columns of each part that they are over.
Digests = dict[str, str]
Columns = dict[str, list[str]]


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

    def result(self, command: Command) -> dict[str, Values] | Failed:
        """The parts of the result that a command has now: rows, and each table by its name."""
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
            # A trace is named by its file, which lies in another folder each time.
            document = json.loads(printed.replace(str(folder), "DIR"))
            parts = {"rows": leaves(document.get("rows", document))}
            for file in sorted((folder / "out").glob("*.parquet")):
                parts[file.stem] = parquet.read_table(file).to_pydict()
            if self.keep and not command.json:
                shutil.copytree(folder / "out", self.keep / command.name.replace("/", "-"))
            return parts


def leaves(value: object, path: str = "", into: Values | None = None) -> Values:
    """All that is no object and no list in a document, by the path of its keys, in order."""
    into = {} if into is None else into
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in OF_THE_COMPUTER:
                leaves(item, f"{path}.{key}" if path else key, into)
    elif isinstance(value, list):
        for item in value:
            leaves(item, f"{path}[]", into)
    else:
        into.setdefault(path, []).append(value)
    return into


def digest(values: Values, columns: list[str]) -> str:
    """SHA-256 over the columns of a part that are listed; one that the part lacks counts as such."""
    text = json.dumps([[column, values.get(column)] for column in columns])
    return hashlib.sha256(text.encode()).hexdigest()


def columns_of(results: Iterable[dict[str, Values]]) -> Columns:
    """All keys of rows and columns of tables of these results."""
    columns: dict[str, set[str]] = {}
    for parts in results:
        for part, values in parts.items():
            columns.setdefault(part, set()).update(values)
    return {part: sorted(names) for part, names in columns.items()}


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


def machines_left_out(listed: list[Command]) -> list[str]:
    """Machines that ship, and that no command is on."""
    words = {word for command in listed for word in shlex.split(command.weft)}
    return sorted({file.stem for file in (ROOT / "machines").glob("*.toml")} - words)


def store(results: dict[str, dict[str, Values]], line: str) -> None:
    """Writes digests.json: digests, what they are over, and the line of RESULTS.md that says why."""
    columns = columns_of(results.values())
    commands = {
        name: {part: digest(values, columns[part]) for part, values in parts.items()}
        for name, parts in results.items()
    }
    stored = {"line": line, "columns": columns, "commands": commands}
    DIGESTS.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")


def tell(line: str, changed: list[str], of: int) -> None:
    """Puts an entry at the top of RESULTS.md."""
    named = "; ".join(changed[:MOST_NAMED]) + (" …" if len(changed) > MOST_NAMED else "")
    text = f"- **{datetime.date.today()}** {line} ({len(changed)} of {of} commands: {named})"
    entry = textwrap.fill(text, 118, subsequent_indent="  ", break_on_hyphens=False) + "\n"
    head, mark, entries = RESULTS.read_text().partition("<!-- entries -->\n\n")
    if not mark:
        sys.exit(f"same.py: {RESULTS.name} has no line `<!-- entries -->` with an empty line below it")
    RESULTS.write_text(head + mark + entry + entries)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft", type=Path, default=ROOT / "target/debug/weft")
    parser.add_argument("--keep", type=Path, help="a new folder for the results")
    parser.add_argument("--write", metavar="LINE", help="keep the results; LINE says what changes and why")
    parser.add_argument("--add", action="store_true", help="keep commands, keys and columns that are new")
    parser.add_argument("names", nargs="*", help="parts of names of commands; all by default")
    arguments = parser.parse_args()
    line = arguments.write
    keeps = line is not None or arguments.add
    if keeps and arguments.names:
        parser.error("--write and --add take all commands")
    if line is not None and (len(line) < SHORTEST_LINE or arguments.add):
        parser.error("--write takes a line that says what changes and why")
    if not arguments.weft.is_file():
        parser.error(f"there is no {arguments.weft}; `cargo build -p weft-cli` builds target/debug/weft")
    listed = [Command(**entry) for entry in tomllib.loads(COMMANDS.read_text())["command"]]
    chosen = arguments.names or [""]
    commands = [command for command in listed if any(name in command.name for name in chosen)]
    if not build_program():
        if keeps:
            parser.error("all commands must run, and some need the MPICH that `make test` installs")
        skip([command for command in commands if command.needs_mpi])
        commands = [command for command in commands if not command.needs_mpi]
    runner = Runner(arguments.weft.absolute(), arguments.keep)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip((each.name for each in commands), pool.map(runner.result, commands), strict=True))

    stored = json.loads(DIGESTS.read_text())
    failed = {name: result for name, result in found.items() if isinstance(result, Failed)}
    results = {name: result for name, result in found.items() if name not in failed}
    changed: dict[str, list[str]] = {}
    for name, parts in results.items():
        known = stored["commands"].get(name)
        if known is None:
            continue
        now = {part: digest(values, stored["columns"].get(part, [])) for part, values in parts.items()}
        # A table that is new is as a column that is.
        if differing := [part for part in known if known[part] != now.get(part)]:
            changed[name] = differing
    new = [f"command {name}" for name in results if name not in stored["commands"]]
    for part, columns in columns_of(results.values()).items():
        new += [f"{part}: {column}" for column in columns if column not in stored["columns"].get(part, [])]
    if keeps and not failed and (changed if line is not None else new and not changed):
        if line is not None:
            tell(line, list(changed), len(found))
        store(results, line if line is not None else stored["line"])
        print(f"kept: {len(changed)} results that differ, {len(new)} commands, keys and columns that are new")
        return 0

    for name, result in failed.items():
        print(f"{name}: {result}")
    for name, parts in changed.items():
        print(f"{name}: differs in {', '.join(parts)}")
    for name in new:
        print(f"new: {name}")
    gone = stored["commands"].keys() - {command.name for command in listed}
    complaints = [f"{name}: has digests, but is no command of {COMMANDS.name}" for name in sorted(gone)]
    complaints += [f"no command is on the machine {name}" for name in machines_left_out(listed)]
    if stored["line"] not in " ".join(RESULTS.read_text().split()):
        complaints.append(f"{RESULTS.name} lacks the reason of the last change: {stored['line']}")
    for complaint in complaints:
        print(complaint)
    print(f"{len(found)} commands, {len(changed)} differ, {len(failed)} failed, {len(new)} new")
    if changed:
        print("Is it meant? `tools/same.py --write 'what changes, and why'` keeps it, and tells RESULTS.md.")
    elif new:
        print("`tools/same.py --add` keeps what is new.")
    return 1 if changed or failed or new or complaints else 0


if __name__ == "__main__":
    sys.exit(main())
