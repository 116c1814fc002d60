#!/usr/bin/env python3
"""Runs the studies beside it, and writes what they found into the book.

    book.py [--weft WEFT] [--results DIR] [--check] [NAME...]

A study has a title, a table, pictures and the published figure in its file. docs/src/studies.md has a
section for each: command, first picture, table, what agrees and what does not. Studies whose names end in
`-full` are run if NAME names them: their tables go to studies/results/NAME.csv. With NAME only these studies
are run, and others are read from DIR, where they were left before.
`--check` writes nothing, and fails where the page does not say what the studies give.
"""

import argparse
import csv
import json
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUDIES = ROOT / "studies"
PAGE = ROOT / "docs/src/studies.md"
PICTURES = ROOT / "docs/src/studies"
GENERATED = "<!-- From here on this page is written by studies/book.py. -->\n"


def names() -> list[str]:
    """The studies that are run, in the order of the page."""
    found = (path.stem for path in sorted(STUDIES.glob("*.toml")))
    return [name for name in found if not name.endswith("-full")]


def weft_json(weft: Path, *words: str | Path) -> dict:
    """The JSON document of a command."""
    return json.loads(subprocess.run([weft, *words, "--json"], capture_output=True, check=True).stdout)


def paragraph(text: str, indent: str = "") -> str:
    """Lines of the width of the book."""
    return (
        textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        + "\n"
    )


def cases(results: Path, weft: Path) -> dict:
    """The table of cases, as the report has it."""
    page = results.with_suffix(".html")
    report = weft_json(weft, "report", results, "-o", page, "--force", "--quiet")["report"]
    return next(section for section in report["sections"] if section["title"] == "Cases")["tables"][0]


def table(results: Path, weft: Path) -> str:
    """The table of cases in Markdown."""
    of_cases = cases(results, weft)
    columns = of_cases["columns"]
    rule = "|".join("--:" if column["is_number"] else "---" for column in columns)
    rows = "".join(f"| {' | '.join(row)} |\n" for row in of_cases["rows"])
    return f"| {' | '.join(column['name'] for column in columns)} |\n|{rule}|\n{rows}"


def section(name: str, results: Path, weft: Path) -> str:
    """The part of the page on a study."""
    study = tomllib.loads((STUDIES / f"{name}.toml").read_text())
    published = study["published"]
    text = f"\n## {study['title']}\n\n"
    text += paragraph(f"{published['source']}. {published['shows']}")
    command = f"$ weft sweep studies/{name}.toml -o {name}\n$ weft report {name} -o {name}.html"
    text += f"\n<!-- not run: studies/book.py runs it -->\n```console\n{command}\n```\n\n"
    text += f"![{study['title']}](studies/{name}.svg)\n\n"
    text += table(results, weft)
    lines = [f"- {word}: {line}" for word in ("agrees", "differs") for line in published.get(word, [])]
    return text + "\n" + "".join(paragraph(line, "  ") for line in lines)


def run(weft: Path, name: str, into: Path) -> None:
    """Runs a study; points that were done before are not run again."""
    print(name, flush=True)
    subprocess.run([weft, "sweep", STUDIES / f"{name}.toml", "-o", into / name, "--quiet"], check=True)


def write_csv(path: Path, of_cases: dict) -> None:
    """Writes the table of a study that is too long to be run often."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([column["name"] for column in of_cases["columns"]])
        writer.writerows(of_cases["rows"])


def main() -> None:
    """Runs the studies and writes the page, or compares it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft", type=Path, default=ROOT / "target/quick/weft", help="the weft command")
    parser.add_argument("--results", type=Path, default=ROOT / "build/studies", help="where results are left")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page differs")
    parser.add_argument("names", nargs="*", help="studies that run; by default all")
    options = parser.parse_args()
    weft, text = options.weft.resolve(), ""
    options.results.mkdir(parents=True, exist_ok=True)
    for name in (name for name in options.names if name.endswith("-full")):
        run(weft, name, options.results)
        write_csv(STUDIES / f"results/{name}.csv", cases(options.results / name, weft))
    for name in names():
        results = options.results / name
        if not options.names or name in options.names:
            run(weft, name, options.results)
        text += section(name, results, weft)
        if not options.check:
            PICTURES.mkdir(exist_ok=True)
            words = ["plot", results, "-o", PICTURES / f"{name}.svg", "--force"]
            subprocess.run([weft, *words], check=True, stdout=subprocess.DEVNULL)
    head = PAGE.read_text().split(GENERATED)[0]
    if not options.check:
        PAGE.write_text(head + GENERATED + text)
    elif PAGE.read_text() != head + GENERATED + text:
        sys.exit(
            "docs/src/studies.md is not what the studies give: run studies/book.py, and look at what differs"
        )


if __name__ == "__main__":
    main()
