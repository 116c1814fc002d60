#!/usr/bin/env python3
"""Load curves of the topologies, against the tables and pictures that the book has of them.

Usage: run.py [--weft PATH] [--write | --draw] [NAME...]

curves.toml beside this file lists them. The model is made of whole numbers, so a curve must be the same to
the last digit as its table, docs/src/curves/NAME.csv: one that is not is an error that names the row.
--write writes the tables and draws the pictures anew, docs/src/curves/NAME.svg;
--draw draws the pictures of the tables that are there, without running a curve.
"""

import argparse
import csv
import io
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BOOK = ROOT / "docs/src/curves"
COLUMNS = ["routing", "offered", "accepted", "latency_mean_ns", "latency_p99_ns", "saturated", "limit"]
# Of both axes in inches.
PICTURE_SIZE = (8.0, 3.6)


class Row(NamedTuple):
    """A point of a curve, as the table has it."""

    routing: str
    offered: str
    accepted: str
    latency_mean_ns: str
    latency_p99_ns: str
    saturated: str
    limit: str


def weft(command: list[str], words: list[str]) -> dict:
    """The answer of a command."""
    done = subprocess.run([*command, *words, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"weft {' '.join(words)}\n{done.stderr}")
    return json.loads(done.stdout)


def machine_words(curve: dict, routing: str) -> list[str]:
    """The machine with one of its routings."""
    sets = [*curve["switch"], *curve.get("sets", []), f"topology.routing={routing}"]
    return [curve["machine"], *[word for value in sets for word in ("--set", value)]]


def rows_of(command: list[str], curve: dict, routing: str) -> list[Row]:
    """Runs one routing of a curve."""
    words = [
        "traffic",
        "-m",
        *machine_words(curve, routing),
        "--pattern",
        curve["pattern"],
        "--layer",
        "fabric",
    ]
    words += ["--load", curve["loads"], "--size", curve["size"], "--time", curve["time"], "--quiet"]
    number = "{:.3f}".format
    return [
        Row(
            routing,
            number(row["offered_load"]),
            number(row["accepted_load"]),
            number(row["latency_mean_ns"]),
            number(row["latency_p99_ns"]),
            "yes" if row["saturated"] else "no",
            f"{row['limit']['part']}: {row['limit']['block']}",
        )
        for row in weft(command, words)["rows"]
    ]


def bound_of(command: list[str], curve: dict) -> float | None:
    """The channel-load bound of the first routing, where `weft machine show` has one for the pattern."""
    shown = weft(command, ["machine", "show", *machine_words(curve, curve["routings"][0])])
    bounds = {bound["pattern"]: bound["max_load"] for bound in shown["bounds"]}
    return bounds.get(curve["pattern"])


def table_of(rows: list[Row]) -> str:
    """The rows as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return text.getvalue()


def rows_in(table: Path) -> list[Row]:
    """The rows of a table of the book."""
    with table.open(newline="") as file:
        return [Row(*row) for row in list(csv.reader(file))[1:]]


def draw(curve: dict, rows: list[Row], bound: float | None, path: Path) -> None:
    """Accepted load and mean latency over the offered load, and the bound."""
    # Only who draws needs it.
    import matplotlib

    matplotlib.use("svg")
    # Text stays text, and the same curve is the same file.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "weft", "font.size": 9})
    from matplotlib import pyplot

    figure, (accepted, latency) = pyplot.subplots(1, 2, figsize=PICTURE_SIZE, layout="constrained")
    for routing, marker in zip(curve["routings"], "osD^vP", strict=False):
        points = [row for row in rows if row.routing == routing]
        offered = [float(row.offered) for row in points]
        accepted.plot(offered, [float(row.accepted) for row in points], marker=marker, ms=3, label=routing)
        stable = [row for row in points if row.saturated == "no"]
        offered = [float(row.offered) for row in stable]
        means = [float(row.latency_mean_ns) / 1000.0 for row in stable]
        latency.plot(offered, means, marker=marker, ms=3, label=routing)
    last = max(float(row.offered) for row in rows)
    accepted.plot([0, last], [0, last], color="0.8", lw=0.8, zorder=0)
    if bound is not None:
        for axis in (accepted, latency):
            axis.axvline(bound, color="k", ls="--", lw=0.8, label=f"bound of {curve['routings'][0]}")
    for axis in (accepted, latency):
        # Room above the highest point, which the axis from zero would otherwise cut.
        highest = max(axis.dataLim.ymax, 0.0) * 1.06
        axis.set(xlabel="offered load", ylim=(0, highest), xlim=(0, max(last, bound or 0) + 0.05))
    accepted.set(ylabel="accepted load")
    latency.set(ylabel="mean latency below saturation (µs)")
    accepted.legend(fontsize=8)
    figure.suptitle(curve["title"], fontsize=10)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def difference(found: str, expected: str) -> str:
    """The first line that differs."""
    pairs = zip(found.splitlines(), expected.splitlines(), strict=False)
    for number, (new, old) in enumerate(pairs, 1):
        if new != old:
            return f"line {number} is\n  {new}\nand was\n  {old}"
    return "it has more or fewer rows"


def main() -> int:
    """Runs all curves, or those that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weft", default=str(ROOT / "target/release/weft"), metavar="PATH")
    parser.add_argument("--write", action="store_true", help="write tables and pictures")
    parser.add_argument("--draw", action="store_true", help="draw the pictures of the tables that are there")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    described = tomllib.loads((HERE / "curves.toml").read_text())
    curves = [{**described["common"], **curve} for curve in described["curve"]]
    unknown = set(options.names) - {curve["name"] for curve in curves}
    if unknown:
        sys.exit(f"there is no curve {', '.join(sorted(unknown))}; curves.toml has the names")
    command, failed = [options.weft], 0
    for curve in curves:
        if options.names and curve["name"] not in options.names:
            continue
        table = BOOK / f"{curve['name']}.csv"
        if options.draw:
            draw(curve, rows_in(table), bound_of(command, curve), table.with_suffix(".svg"))
            continue
        rows = [row for routing in curve["routings"] for row in rows_of(command, curve, routing)]
        found = table_of(rows)
        if options.write:
            BOOK.mkdir(exist_ok=True)
            table.write_text(found)
            draw(curve, rows, bound_of(command, curve), table.with_suffix(".svg"))
        elif not table.exists():
            failed += 1
            print(f"{curve['name']}: {table.relative_to(ROOT)} is missing; write it with --write")
        elif found != table.read_text():
            failed += 1
            print(f"{curve['name']}: {table.relative_to(ROOT)}: {difference(found, table.read_text())}")
        print(f"{curve['name']}: {len(rows)} points")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
