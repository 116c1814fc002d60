#!/usr/bin/env python3
"""Runs what the book shows: the commands of its console blocks, and its programs in Python.

    run.py --weft WEFT [--slow] [--python PYTHON] [PAGE...]

Each page has a folder of its own, in which its blocks follow each other. A command must end with status 0,
and print what the page shows below it; a line `…` stands for any number of lines. Blocks of TOML and JSON
must be readable. A comment above a block changes that:

    <!-- file: NAME -->      the block is written to this file, which later commands read
    <!-- fails: STATUS -->   the last command ends with this status, and its error counts as printed
    <!-- before: COMMAND --> what the reader is taken to have already: this is run first
    <!-- needs: FILE -->     not run where this file of the tree is not there, such as one that tools build
    <!-- slow -->            takes more than a few seconds: run with --slow alone
    <!-- not run: WHY -->    not run, for this reason

With --python the Python blocks alone are run, by an interpreter that has `import weft`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "docs/src"
# What commands of the pages name, from the root of the tree.
BESIDE = ["bench", "build", "demo", "examples", "include", "machines", "scenarios", "target", "tests"]
BESIDE += ["validation"]
BLOCK = re.compile(r"((?:^<!-- [^\n]* -->\n)*)^```([^\n]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
# The last lines of a run, which hold the speed of this computer: pages do not show them.
ENDING = re.compile(r"\n*^finished: .*\n(?:results in .*\n?)?\Z", re.MULTILINE)
MARK = re.compile(r"<!-- (file|fails|before|needs|slow|not run)(?:: (.*?))? -->")
# Seconds that a command may take. Those of a block without a mark should take few.
PATIENCE, SLOW_PATIENCE = 60, 900


class Block(NamedTuple):
    """A block of code, with the marks above it."""

    language: str
    text: str
    marks: dict[str, str]

    @property
    def kind(self) -> str:
        """The way it is treated: run, slow, python, read, shown or not run."""
        if "not run" in self.marks:
            return "not run"
        if "needs" in self.marks and not (ROOT / self.marks["needs"]).exists():
            return "without what it needs"
        if "file" in self.marks or self.language in ("toml", "json"):
            return "read"
        if self.language == "python":
            return "python"
        if self.language in ("console", "sh"):
            return "slow" if "slow" in self.marks else "run"
        return "shown"


class Command(NamedTuple):
    """A command, and the lines that the page shows below it."""

    words: str
    shown: list[str]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page."""
    found = BLOCK.findall(page.read_text())
    return [Block(language, text, dict(MARK.findall(marks))) for marks, language, text in found]


def commands(block: Block) -> list[Command]:
    """The commands of a block. One of `sh` is a single script."""
    before = block.marks.get("before")
    found = [Command(before, [])] if before else []
    if block.language == "sh":
        return [*found, Command(block.text, [])]
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ "), []))
        elif found:
            found[-1].shown.append(line.rstrip())
    return found


def prints(printed: list[str], shown: list[str]) -> bool:
    """Whether lines are what the page shows, in which `…` stands for any number of lines."""
    pattern = "".join(r"(?:[^\n]*\n)*?" if line == "…" else re.escape(f"{line}\n") for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


class Page:
    """A page whose blocks are run in a folder."""

    def __init__(self, page: Path, folder: Path, environment: dict[str, str]):
        self.page, self.folder, self.environment = page, folder, environment
        self.found: list[str] = []
        for name in BESIDE:
            (folder / name).symlink_to(ROOT / name)
        # Graphs and the like that a page has beside it.
        for beside in page.parent.iterdir():
            if beside.is_file() and beside.suffix not in (".md", ".svg", ".csv"):
                (folder / beside.name).symlink_to(beside)

    def fault(self, what: str, words: str, answer: str = "") -> None:
        """Keeps a finding."""
        text = "".join(f"\n      {line}" for line in answer.rstrip().splitlines()[-40:])
        self.found.append(f"{self.page.relative_to(ROOT)}: {what}: {words.strip()}{text}")

    def run(self, block: Block) -> None:
        """Runs the commands of a block."""
        all_of_it = commands(block)
        for number, command in enumerate(all_of_it):
            is_last = number + 1 == len(all_of_it)
            expected = int(block.marks.get("fails", 0)) if is_last else 0
            patience = SLOW_PATIENCE if block.kind == "slow" else PATIENCE
            try:
                ended = subprocess.run(
                    ["bash", "-c", command.words],
                    cwd=self.folder,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=patience,
                )
            except subprocess.TimeoutExpired:
                self.fault(f"takes more than {patience} s", command.words)
                return
            answer = ended.stdout + (ended.stderr if expected else "")
            printed = [line.rstrip() for line in ENDING.sub("\n", answer).splitlines()]
            if ended.returncode != expected:
                self.fault(f"ends with {ended.returncode}", command.words, ended.stderr or ended.stdout)
                return
            if command.shown and not prints(printed, command.shown):
                self.fault("prints something else", command.words, answer)

    def read(self, block: Block) -> None:
        """Reads a block, and writes it where it is a file."""
        try:
            if block.language == "toml":
                tomllib.loads(block.text)
            elif block.language == "json":
                json.loads(block.text)
        except ValueError as error:
            self.fault(f"is no {block.language.upper()}: {error}", block.text.splitlines()[0])
        if name := block.marks.get("file"):
            (self.folder / name).write_text(block.text)

    def python(self, block: Block, interpreter: Path) -> None:
        """Runs a program in Python."""
        program = [interpreter, "-c", block.text]
        ended = subprocess.run(program, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        if ended.returncode != 0:
            self.fault(f"ends with {ended.returncode}", block.text.splitlines()[0], ended.stderr)


def run(page: Path, arguments: argparse.Namespace) -> tuple[list[str], Counter[str], float]:
    """Runs a page: what is wrong, its blocks by kind, and the seconds that it took."""
    started = time.monotonic()
    kinds = {"run", "slow"} if arguments.slow else {"run"}
    with tempfile.TemporaryDirectory(prefix="weft-book-") as name:
        path = f"{arguments.weft.parent}:{ROOT / 'build/venv/bin'}:{os.environ['PATH']}"
        libraries = f"{ROOT / 'build/venv/lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        environment = {**os.environ, "PATH": path, "LD_LIBRARY_PATH": libraries, "HOME": name}
        one = Page(page, Path(name), environment)
        counted: Counter[str] = Counter()
        for block in blocks(page):
            kind = block.kind
            counted[kind] += 1
            if kind == "read":
                one.read(block)
            elif kind == "python" and arguments.python:
                one.python(block, arguments.python)
            elif kind in kinds and not arguments.python:
                one.run(block)
        return one.found, counted, time.monotonic() - started


def main() -> None:
    """Runs the pages, two at a time on two cores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weft", type=Path, help="the command", required=True)
    parser.add_argument("--slow", action="store_true", help="run what is slow as well")
    parser.add_argument("--python", type=Path, help="run the Python blocks alone, by this interpreter")
    parser.add_argument("--times", action="store_true", help="print how long each page takes")
    parser.add_argument("pages", nargs="*", type=Path, help="pages, instead of all")
    arguments = parser.parse_args()
    arguments.weft = arguments.weft.resolve()
    pages = [page.resolve() for page in arguments.pages]
    pages = pages or sorted([*BOOK.rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/*.md")])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(lambda page: run(page, arguments), pages))
    total: Counter[str] = Counter()
    found = []
    for page, (wrong, counted, seconds) in zip(pages, outcomes, strict=True):
        found += wrong
        total += counted
        if arguments.times and seconds > 1:
            print(f"{seconds:6.1f} s  {page.relative_to(ROOT)}")
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(total.items()))
    print("\n".join([*found, f"{len(pages)} pages, blocks: {counts}; {len(found)} findings"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
