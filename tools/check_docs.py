#!/usr/bin/env python3
"""Checks the book, and the Markdown files at the root and in its folders.

Every relative link and its anchor resolves, every page is in SUMMARY.md once, every `weft` command
in a ```console block exists in the command itself, and all that is included from sources is there.
What a page shows below `$ weft machine … | head -N` is what that command prints.
"""

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs/src"
SUMMARY = BOOK / "SUMMARY.md"

FENCE = re.compile(r"^ {0,3}```(\w*)[^\n]*\n(.*?)^ {0,3}```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
INCLUDE = re.compile(r"\{\{#include ([^}:]+):(\w+)\}\}")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


def prose(text: str) -> str:
    """The text without its code, in which brackets mean something else."""
    return re.sub(r"`[^`\n]*`", "``", FENCE.sub("", text))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as mdBook and forges make them."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    """The addresses a page links to."""
    return [inline or reference for inline, reference in LINK.findall(prose(page.read_text()))]


def broken_links(page: Path) -> list[str]:
    """The faults in the links of a page."""
    found = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            found.append(f"the link to {link} leads nowhere")
        elif BOOK in page.parents and BOOK not in target.parents:
            found.append(f"the link to {link} leaves the book, whose pages stand alone once built")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            found.append(f"{path or page.name} has no heading for #{anchor}")
    return found


def broken_includes(page: Path) -> list[str]:
    """The parts of sources that a page includes and that are not there."""
    found = []
    for path, anchor in INCLUDE.findall(page.read_text()):
        source = page.parent / path
        marks = source.read_text() if source.is_file() else ""
        if not all(re.search(rf"// {mark}: {anchor}$", marks, re.M) for mark in ["ANCHOR", "ANCHOR_END"]):
            found.append(f"{path} has no part {anchor} to include")
    return found


def unlisted_pages() -> list[str]:
    """The faults in the table of contents."""
    listed = [(BOOK / link).resolve() for link in links(SUMMARY)]
    pages = sorted(set(BOOK.rglob("*.md")) - {SUMMARY})
    found = [f"{page.relative_to(BOOK)} is not listed" for page in pages if page not in listed]
    twice = {page for page in listed if listed.count(page) > 1}
    return found + [f"{page.relative_to(BOOK)} is listed twice" for page in sorted(twice)]


class Commands:
    """The weft command and its subcommands, asked for once per level."""

    def __init__(self, weft: Path):
        self.weft = weft
        self.known: dict[tuple[str, ...], set[str]] = {}
        self.with_arguments: set[tuple[str, ...]] = set()

    def below(self, path: tuple[str, ...]) -> set[str]:
        """The names of the subcommands after `weft path...`, as its help lists them."""
        if path not in self.known:
            answer = subprocess.run([self.weft, *path, "--help"], capture_output=True, text=True)
            section = re.search(r"^Commands:\n((?:[ \t]+.*\n|\n)*)", answer.stdout, re.MULTILINE)
            names = re.findall(r"^  (\S+)", section[1], re.MULTILINE) if section else []
            self.known[path] = set(names)
            if re.search(r"^Arguments:$", answer.stdout, re.MULTILINE):
                self.with_arguments.add(path)
        return self.known[path]

    def unknown(self, words: list[str]) -> str | None:
        """The first word that should be a command and is none."""
        path: tuple[str, ...] = ()
        for word in words:
            names = self.below(path)
            if not names or word.startswith("-"):
                return None
            if word not in names:
                # A command that has arguments of its own as well takes any word, such as `weft app NAME`.
                return None if path in self.with_arguments else " ".join(["weft", *path, word])
            path += (word,)
        return None


def commands_of(line: str) -> list[list[str]]:
    """The words of each command of a shell line, which may end in a comment."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    commands = [[]]
    for word in lexer:
        if word in (";", "&", "&&", "|", "||"):
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def unknown_commands(page: Path, commands: Commands) -> list[str]:
    """The weft commands of a page's console blocks that do not exist."""
    found = []
    for language, block in FENCE.findall(page.read_text()):
        if language != "console":
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if not line.startswith("$ "):
                continue
            for words in commands_of(line.removeprefix("$ ")):
                if words[:1] == ["weft"] and (unknown := commands.unknown(words[1:])):
                    found.append(f"there is no command `{unknown}`")
    return found


# Pages whose commands need those before them: tests/book/run.py runs and compares them.
RUN = [BOOK / "tutorial.md"]

SHOWN = re.compile(r"^\$ weft (machine [^|\n]*) \| head -(\d+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def stale_outputs(page: Path, weft: Path) -> list[str]:
    """The outputs of a page that are not what its commands print in the page's folder."""
    found = []
    for language, block in FENCE.findall(page.read_text()):
        if language != "console" or page in RUN:
            continue
        for words, lines, shown in SHOWN.findall(block):
            command = [str(weft), *shlex.split(words)]
            answer = subprocess.run(command, capture_output=True, text=True, cwd=page.parent)
            printed = [line.rstrip() for line in answer.stdout.splitlines()[: int(lines)]]
            if "\n".join(printed).rstrip() != shown.rstrip():
                found.append(f"`weft {words}` prints something else: run it, and put its output on the page")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weft", type=Path, help="the command to ask (default: built by cargo)")
    weft = parser.parse_args().weft
    if weft is None:
        subprocess.run(["cargo", "build", "--locked", "--quiet", "-p", "weft-cli"], cwd=ROOT, check=True)
        weft = ROOT / "target/debug/weft"
    weft = weft.resolve()
    commands = Commands(weft)
    if not commands.below(()):
        sys.exit(f"check_docs: {weft} --help lists no commands")

    pages = sorted(
        [*BOOK.rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *ROOT.glob("docs/generated/*.md")]
    )
    found = [f"docs/src/SUMMARY.md: {finding}" for finding in unlisted_pages()]
    for page in pages:
        wrong = broken_links(page) + broken_includes(page) + unknown_commands(page, commands)
        wrong += stale_outputs(page, weft)
        found += [f"{page.relative_to(ROOT)}: {finding}" for finding in wrong]
    print("\n".join([*found, f"{len(pages)} pages checked, {len(found)} findings"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
