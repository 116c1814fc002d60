#!/usr/bin/env python3
"""Makes docs/src/reference/python.md of signatures and docstrings of `import weft`, or checks it.

    python_reference.py [--write]

Sources are read by griffe and never run: no wheel is needed.
"""

import argparse
import re
import sys
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/src/reference/python.md"
HEAD = """\
# The Python interface

This page lists the signatures of `import weft`. [Use weft from Python](../howto/use-python.md) shows how
to work with them. `tools/python_reference.py --write` writes the page from the docstrings in `python/weft`.
"""
# Code wider than this is broken, an argument per line.
WIDTH = 100


def text(expression: object) -> str:
    """A type or a default, without the names of modules."""
    return str(expression).removeprefix("typing.")


def parameter(one: griffe.Parameter) -> str:
    """A parameter as a signature has it."""
    stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(
        one.kind, ""
    )
    annotation = f": {text(one.annotation)}" if one.annotation is not None else ""
    # Of what takes any number of arguments, griffe has () or {} for a default.
    if stars or one.default is None:
        return f"{stars}{one.name}{annotation}"
    return (
        f"{one.name}{annotation} = {text(one.default)}" if annotation else f"{one.name}={text(one.default)}"
    )


def signature(name: str, function: griffe.Function) -> str:
    """A function's signature, broken where it is long."""
    line = one_line(name, function)
    if len(line) <= WIDTH:
        return line
    returns = f" -> {text(function.returns)}" if function.returns is not None else ""
    return "\n".join([f"{name}(", *(f"    {one}," for one in listed(function)), f"){returns}"])


def one_line(name: str, function: griffe.Function) -> str:
    """A function's signature."""
    returns = f" -> {text(function.returns)}" if function.returns is not None else ""
    return f"{name}({', '.join(listed(function))}){returns}"


def short_line(name: str, function: griffe.Function) -> str:
    """A function's signature without the types of what has a default, as cells of tables have it."""
    line = re.sub(r"(\w+): [^,()]*? = ", r"\1=", one_line(name, function))
    return line.removesuffix(" -> Operation")


def listed(function: griffe.Function) -> list[str]:
    """The parameters of a function; the object of a method is left out."""
    parameters = [one for one in function.parameters if one.name not in ("self", "cls")]
    texts = []
    for before, one in zip([None, *parameters], parameters, strict=False):
        first_keyword = one.kind is griffe.ParameterKind.keyword_only and (
            before is None or before.kind is griffe.ParameterKind.positional_or_keyword
        )
        texts += ["*"] if first_keyword else []
        texts.append(parameter(one))
    return texts


def words(of: griffe.Object | griffe.Alias) -> str:
    """A docstring, which everything public has."""
    if of.docstring is None:
        sys.exit(f"python_reference: {of.path} has no docstring; write one")
    return of.docstring.value.strip()


def in_a_cell(text: str) -> str:
    """A text in one line, as cells of tables have it."""
    return " ".join(text.split()).replace("|", "\\|")


def first_paragraph(of: griffe.Object | griffe.Alias) -> str:
    """The first paragraph of a docstring in one line."""
    return in_a_cell(words(of).split("\n\n")[0])


def public(members: griffe.Class) -> list[griffe.Object]:
    """The members of a class that are meant for others, in the order of the source."""
    return [one for name, one in members.members.items() if not name.startswith("_")]


def described_class(one: griffe.Class) -> list[str]:
    """The section of a class: constructor, values, methods."""
    lines = [f"## {one.name}", "", words(one), ""]
    if one.bases:
        lines += [f"Is also: {', '.join(f'`{text(base)}`' for base in one.bases)}.", ""]
    attributes = [member for member in public(one) if member.is_attribute and member.docstring]
    if attributes:
        lines += ["| value | type | is |", "|---|---|---|"]
        for member in attributes:
            kind = f"`{text(member.annotation)}`".replace("|", "\\|") if member.annotation is not None else ""
            lines.append(f"| `.{member.name}` | {kind} | {first_paragraph(member)} |")
        lines.append("")
    methods = [member for member in public(one) if member.is_function]
    if methods:
        lines += table_of_functions("method", [(f".{method.name}", method) for method in methods])
    return lines


def table_of_functions(title: str, functions: list[tuple[str, griffe.Function]]) -> list[str]:
    """A table with the signature and the docstring of functions, for those with little to say."""
    rows = [f"| `{in_a_cell(short_line(name, one))}` | {in_a_cell(words(one))} |" for name, one in functions]
    return [f"| {title} | does |", "|---|---|", *rows, ""]


def described_function(name: str, function: griffe.Function) -> list[str]:
    """The signature and the docstring of a function."""
    return ["```text", signature(name, function), "```", "", words(function), ""]


def page() -> str:
    """The page."""
    weft = griffe.load("weft", search_paths=[ROOT / "python"], allow_inspection=False)
    names = [str(name).strip("'\"") for name in weft.exports]
    members = {name: weft[name] for name in names}
    functions = [one for one in members.values() if one.is_function]
    operations = [one for one in functions if text(one.returns) == "Operation"]
    functions = [one for one in functions if one not in operations]
    classes = [one for one in members.values() if one.is_class]
    aliases = [one for one in members.values() if one.is_attribute]
    lines = [HEAD]
    for one in functions:
        lines += [f"## weft.{one.name}", "", *described_function(f"weft.{one.name}", one)]
    lines += ["## Operations of rank programs", "", "A rank program yields them.", ""]
    lines += table_of_functions("operation", [(f"weft.{one.name}", one) for one in operations])
    for one in classes:
        lines += described_class(one)
    for one in aliases:
        lines += [f"## {one.name}", "", "```text", text(one.value), "```", "", words(one), ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Writes the page, or compares it with the one that is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the page")
    now = page()
    if parser.parse_args().write:
        PAGE.write_text(now)
    elif not PAGE.is_file() or PAGE.read_text() != now:
        sys.exit(
            f"{PAGE.relative_to(ROOT)} is not what python/weft says: run tools/python_reference.py --write"
        )


if __name__ == "__main__":
    main()
