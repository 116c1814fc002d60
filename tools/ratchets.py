#!/usr/bin/env python3
"""Counts what is to become less in the Rust sources, and compares it with tools/ratchets.toml.

    ratchets.py [--list]

shared_type_names  Names of types that several crates have, each for a thing of its own: a reader of one crate
                   takes it for that of another. Names of a thing that a crate hands on are counted once.
tied_parameters    Functions with more than four parameters besides `self`, once those that are tuples are
                   untied: each is a missing struct.

A count that grows fails, and so does one that has become less and is not written down: it could grow back.
"""

import argparse
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

from check_text import MAX_PARAMETERS, parameters, without_text

ROOT = Path(__file__).resolve().parent.parent
RATCHETS = ROOT / "tools/ratchets.toml"

# Also inside `keys!`, `words!` and the like, which are indented once.
TYPE = re.compile(r"^(?:pub(?:\([^)]*\))? |    pub(?:\([^)]*\))? )?(?:struct|enum|trait|type) (\w+)", re.M)
FUNCTION = re.compile(r"\bfn (\w+)\s*(<[^(]*>)?\(")
TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{.*", re.M | re.S)


def sources() -> list[Path]:
    """The files of all crates, without their tests."""
    files = sorted((ROOT / "crates").glob("*/src/**/*.rs"))
    return [file for file in files if "tests" not in file.relative_to(ROOT).parts and file.stem != "tests"]


def product(file: Path) -> str:
    """The code of a file: without its tests, comments and texts."""
    return TESTS.sub("", without_text(file.read_text()))


def shared_type_names(files: list[Path]) -> list[str]:
    """Each name with the crates that have a type of it."""
    crates: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for match in TYPE.finditer(product(file)):
            crates[match[1]].add(file.relative_to(ROOT / "crates").parts[0])
    return [f"{name}: {', '.join(sorted(of))}" for name, of in sorted(crates.items()) if len(of) > 1]


def untied(parameter: str) -> int:
    """The parameters that one is: a tuple counts by its parts."""
    pattern = parameter.removeprefix("&").strip()
    if not pattern.startswith("("):
        kind = parameter.partition(":")[2].strip().removeprefix("&").removeprefix("mut ").strip()
        pattern = kind if kind.startswith("(") else ""
    return sum(map(untied, parameters(pattern[1:]))) if pattern else 1


def tied_parameters(files: list[Path]) -> list[str]:
    """Each function that hides parameters in tuples, so that it has no more than are allowed."""
    found = []
    for file in files:
        code = product(file)
        for match in FUNCTION.finditer(code):
            own = [one for one in parameters(code[match.end() :]) if not re.search(r"^&?[^:]*\bself$", one)]
            if len(own) <= MAX_PARAMETERS < sum(map(untied, own)):
                line = code.count("\n", 0, match.start()) + 1
                found.append(f"{file.relative_to(ROOT)}:{line}: {match[1]}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print what is counted")
    options = parser.parse_args()
    files = sources()
    found = {"shared_type_names": shared_type_names(files), "tied_parameters": tied_parameters(files)}
    written = tomllib.loads(RATCHETS.read_text())
    failed = False
    for name, items in found.items():
        if options.list:
            print("".join(f"{item}\n" for item in items), end="")
        print(f"{name}: {len(items)}, written {written[name]}")
        if len(items) > written[name]:
            print(f"{name} grew: `tools/ratchets.py --list` has all; give the new one another form")
            failed = True
        elif len(items) < written[name]:
            print(f"{name} fell: write {len(items)} into tools/ratchets.toml")
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
