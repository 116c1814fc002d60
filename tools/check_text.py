#!/usr/bin/env python3
"""Checks the text of sources and pages: width of lines, comments that lost their owner, words of comments.

    check_text.py [--report | --count | --wrap] [PATH...]

Prints each finding as `file:line: what; the mend`. With --report it also counts them by folder, and always
exits with 0. With --wrap it breaks comments in Rust that are too long, which rustfmt does not do.

width       Rust 110 columns, comments included, as rustfmt.toml has it; all else that a person writes 120.
            Exempt are lines that cannot be broken: a link alone, a table row or a heading in Markdown, code
            and output in a page's fenced blocks, the inside of a raw string. Exempt are files that are data:
            machines and their validation, results of benchmarks, snapshots, corpora, lock files.
rot         Comments that someone inserted into: a doc comment that goes on after an attribute, a comment line
            that is repeated within three lines, in C a comment that is followed by another before any code.
words       Doc comments that begin with What, Its, How many, So many, Tells, or are a clause with When or
            Where: name the thing instead. In C every comment that begins a line, in Python every docstring.
parameters  Functions in Rust with more than four parameters besides `self`: a fifth is a missing struct.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

RUST_WIDTH, WIDTH = 110, 120
MAX_PARAMETERS = 4

KINDS = ["width", "rot", "words", "parameters"]

# Written by hand and read by people; all other files are data or generated.
SUFFIXES = {".rs", ".md", ".c", ".h", ".py", ".sh", ".toml", ".3", ".7"}
NAMES = {"Makefile", ".ci/run"}
DATA = ("machines/", "validation/", "bench/runs/", "fuzz/corpus/")

# A clause with When or Where that ends before any comma is no sentence: "When the packet left."
FRAGMENT = re.compile(r"(What|Its|How many|How much|So many|So much|Tells)\b|(When|Where)\b[^,]*?\.(\s|$)")
LINK_ALONE = re.compile(r"^\s*(//[/!]?|\*|#|-|\d+\.)?\s*[<(]?(\[[^\]]*\][:(]\s*)?[<(]?[a-z]+://\S+$")


class Finding(NamedTuple):
    """A line that is to be mended."""

    path: str
    line: int
    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


Found = Iterator[tuple[int, str, str]]


def raw_string_lines(text: str) -> set[int]:
    """The numbers of the lines that lie inside a raw string, its first line not among them."""
    inside: set[int] = set()
    for match in re.finditer(r'\br(#+)"(.*?)"\1', text, re.DOTALL):
        first = text.count("\n", 0, match.start()) + 1
        inside.update(range(first + 1, first + match[0].count("\n") + 1))
    return inside


def fenced_lines(lines: list[str], prefix: str = "") -> set[int]:
    """The numbers of the lines in fenced blocks: of a page, or of the comments that begin with `prefix`."""
    inside: set[int] = set()
    open_fence = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if prefix and not text.startswith(prefix):
            open_fence = False
            continue
        if text.lstrip("/!* ").startswith("```"):
            open_fence = not open_fence
        elif open_fence:
            inside.add(number)
    return inside


def wide_lines(path: Path, text: str, lines: list[str]) -> Found:
    """Lines that are too long."""
    limit = RUST_WIDTH if path.suffix == ".rs" else WIDTH
    exempt: set[int] = set()
    if path.suffix == ".rs":
        exempt = raw_string_lines(text)
    elif path.suffix == ".md":
        exempt = fenced_lines(lines)
    for number, line in enumerate(lines, 1):
        if len(line) <= limit or number in exempt or LINK_ALONE.match(line):
            continue
        if path.suffix == ".md" and line.lstrip().startswith(("|", "#")):
            continue
        yield number, "width", f"{len(line)} columns; wrap at {limit}"


def is_prose(comment: str) -> bool:
    """Whether a comment line has too many words to be repeated on purpose."""
    return len(re.findall(r"[A-Za-z]{2,}", comment)) >= 4


def repeated_comments(path: Path, lines: list[str]) -> Found:
    """Comment lines that stand twice within three lines."""
    marks = {".rs": r"//[/!]?\s", ".py": r"#\s", ".sh": r"#\s"}
    mark = re.compile(marks.get(path.suffix, r"/?\*+\s"))
    drawings = fenced_lines(lines, "//") if path.suffix == ".rs" else set()
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not mark.match(text) or not is_prose(text) or number in drawings:
            continue
        if text in (later.strip() for later in lines[number : number + 3]):
            yield number, "rot", "the comment line is repeated below; keep one"


def split_doc_comments(lines: list[str]) -> Found:
    """Doc comments that go on after an attribute: one of the two parts belongs to another item."""
    after_doc = in_attribute = attribute = False
    depth = 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if in_attribute:
            depth += text.count("[") - text.count("]")
            in_attribute = depth > 0
        elif text.startswith("///"):
            if after_doc and attribute:
                yield number, "rot", "the doc comment goes on after an attribute; put each above its item"
            after_doc, attribute = True, False
        elif text.startswith("#[") and after_doc:
            attribute = True
            depth = text.count("[") - text.count("]")
            in_attribute = depth > 0
        else:
            after_doc = attribute = False


def stacked_comments(lines: list[str]) -> Found:
    """In C, a comment that is followed by another before any code: the first has lost its owner."""
    ended = False
    inside = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if inside:
            inside = "*/" not in text
            ended = text.endswith("*/")
            continue
        if text.startswith("/*"):
            # A rule with a heading opens a section: it explains what follows it as a whole.
            if ended and "----" not in text:
                yield number, "rot", "a comment on a comment; put each above what it explains"
            inside = "*/" not in text
            ended = text.endswith("*/") and "----" not in text
        else:
            ended = False


def fragments(path: Path, lines: list[str]) -> Found:
    """Comments that begin with a clause where a noun would do."""
    starts = {".rs": r"//[/!]\s+", ".py": r'"""'}
    start = re.compile(starts.get(path.suffix, r"/\*+\s+"))
    before = ""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        opens = start.match(text)
        if opens and not (path.suffix == ".rs" and before.startswith(("///", "//!"))):
            # The first sentence may end on the next lines.
            later = (after.strip().lstrip("/!* ") for after in lines[number : number + 2])
            sentence = " ".join([text[opens.end() :].rstrip("*/ "), *later])
            if fragment := FRAGMENT.match(sentence):
                begins = fragment[1] or fragment[2]
                yield number, "words", f"the comment begins with `{begins}`; name the thing, then why"
        before = text


def without_text(source: str) -> str:
    """Rust without the inside of its comments and strings; lines stay where they are."""

    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    pattern = r"//[^\n]*|/\*.*?\*/|\br(#*)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|'(?:\\.[^']*|[^'\\])'"
    return re.sub(pattern, blank, source, flags=re.DOTALL)


def parameters(signature: str) -> list[str]:
    """The parameters of a function, from what follows its opening bracket."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(signature):
        if letter in "([{<":
            depth += 1
        elif letter in ")]}" and depth == 0:
            found.append(signature[start:at])
            break
        elif letter in ")]}" or (letter == ">" and signature[at - 1] != "-"):
            depth -= 1
        elif letter == "," and depth == 0:
            found.append(signature[start:at])
            start = at + 1
    return [parameter.strip() for parameter in found if parameter.strip()]


def long_signatures(text: str) -> Found:
    """Functions with too many parameters. A foreign interface is as its standard has it."""
    code = without_text(text)
    for match in re.finditer(r"^[^\n]*?\bfn (\w+)\s*(<[^(]*>)?\(", code, re.MULTILINE):
        blocks = list(re.finditer(r"^[^\n]*\bextern\b[^\n(]*\{$", code[: match.start()], re.MULTILINE))
        in_block = blocks and "\n}" not in code[blocks[-1].end() : match.start()]
        if in_block or re.search(r"\bextern\b", match[0]):
            continue
        own = [
            part
            for part in parameters(code[match.end() :])
            if not re.match(r"&?\s*('\w+ )?(mut )?self\b", part)
        ]
        if len(own) > MAX_PARAMETERS:
            line = code.count("\n", 0, match.end()) + 1
            yield line, "parameters", f"`{match[1]}` takes {len(own)} parameters; a fifth is a missing struct"


COMMENT = re.compile(r"^(\s*//[/!]? ?)(\s*)(- |\d+\. )?(.*)$")


def wrap_comments(text: str) -> str:
    """The source with comments broken at the limit; the rest of a line goes to the next of its paragraph."""
    lines = text.split("\n")
    untouched = raw_string_lines(text) | fenced_lines(lines, "//")
    wrapped: list[str] = []
    carried: tuple[str, str] | None = None
    for number, line in enumerate(lines, 1):
        match = COMMENT.match(line)
        if carried:
            begin, words = carried
            goes_on = (
                match and not match[3] and match[1] + match[2] == begin and re.match(r"[\w`(*\"']", match[4])
            )
            line = f"{begin}{words} {match[4]}" if goes_on else line
            if not goes_on:
                wrapped.append(begin + words)
            carried = None
            match = COMMENT.match(line)
        if match and len(line) > RUST_WIDTH and number not in untouched and not LINK_ALONE.match(line):
            cut = line.rfind(" ", 0, RUST_WIDTH + 1)
            if cut > match.start(4) and not line.lstrip("/! ").startswith("|"):
                carried = (match[1] + match[2] + " " * len(match[3] or ""), line[cut + 1 :])
                line = line[:cut]
        wrapped.append(line)
    return "\n".join(wrapped)


def sources(paths: list[str]) -> list[str]:
    """The files to check, named from the root; only those that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *paths]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    wanted = []
    for name in sorted(set(listed)):
        path = Path(name)
        by_hand = path.suffix in SUFFIXES or path.name in NAMES or name in NAMES
        if by_hand and not name.startswith(DATA) and (ROOT / name).is_file():
            wanted.append(name)
    return wanted


def findings(name: str) -> list[Finding]:
    """All findings in a file, in the order of its lines."""
    path = Path(name)
    text = (ROOT / name).read_text()
    lines = text.split("\n")
    found = [*wide_lines(path, text, lines)]
    if path.suffix in {".rs", ".c", ".h", ".py", ".sh"}:
        found += [*repeated_comments(path, lines), *fragments(path, lines)]
    if path.suffix in {".c", ".h"}:
        found += stacked_comments(lines)
    if path.suffix == ".rs":
        found += [*split_doc_comments(lines), *long_signatures(text)]
    return [Finding(name, *finding) for finding in sorted(found)]


def count_by_folder(found: list[Finding]) -> str:
    """A table of how many findings of each kind are in each crate or folder."""
    counts: dict[str, Counter] = {}
    for finding in found:
        parts = finding.path.split("/")
        folder = "/".join(parts[:2] if parts[0] == "crates" else parts[:1] if len(parts) > 1 else ["."])
        counts.setdefault(folder, Counter())[finding.kind] += 1
    rows = [f"{'':24}" + "".join(f"{kind:>12}" for kind in KINDS)]
    for folder, count in sorted(counts.items()):
        rows.append(f"{folder:24}" + "".join(f"{count[kind]:12}" for kind in KINDS))
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--report", action="store_true", help="count by folder, and exit with 0")
    parser.add_argument("--count", action="store_true", help="as --report, without the findings themselves")
    parser.add_argument("--wrap", action="store_true", help="break long comments in Rust")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (default: all)")
    options = parser.parse_args()
    names = sources([str(Path(path).resolve().relative_to(ROOT)) for path in options.paths])
    if options.wrap:
        for path in (ROOT / name for name in names if name.endswith(".rs")):
            path.write_text(wrap_comments(path.read_text()))
    found = [finding for name in names for finding in findings(name)]
    counts = Counter(finding.kind for finding in found)
    if not options.count:
        print("".join(f"{finding}\n" for finding in found), end="")
    if options.report or options.count:
        print(count_by_folder(found))
    totals = ", ".join(f"{kind} {counts[kind]}" for kind in KINDS)
    print(f"{len(names)} files checked: {totals}")
    sys.exit(1 if found and not options.report and not options.count else 0)


if __name__ == "__main__":
    main()
