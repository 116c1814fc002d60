#!/usr/bin/env python3
"""Memory and time for each endpoint of a Megafly, by flows and by packets: a permutation of 1 MB.

Usage: flow_scale.py [--largest GROUPS] [--packets GROUPS] [--plot FILE.svg] [--page FILE.md] [--weft PATH]

Groups have 1,024 endpoints; the largest machine has 1,025 of them. Prints a table, and draws it on request.
Packets are measured up to so many groups: 8 take about half an hour. With --page nothing is measured: the
figures are those of the table of that page.
"""

import argparse
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PER_GROUP = 1024
GROUPS = [2, 9, 65, 1025]


def measure(weft: Path, groups: int, kind: str) -> dict:
    """Bytes and seconds of processor time for each endpoint of a run."""
    sizes = ["endpoints_per_leaf=32", "leaves=32", "spines=32", "global_per_spine=32", f"groups={groups}"]
    sets = [f"topology.{size}" for size in sizes] + [f"fabric.kind={kind}"]
    command = [weft, "traffic", "-m", "bxi3-megafly", *(word for one in sets for word in ("--set", one))]
    command += ["--pattern", "permutation", "--size", "1M", "--messages", "1", "--threads", "1"]
    before = os.times()
    answer = json.loads(
        subprocess.run([*command, "--quiet", "--json"], check=True, stdout=subprocess.PIPE).stdout
    )
    after = os.times()
    endpoints = PER_GROUP * groups
    seconds = after.children_user - before.children_user
    return {
        "kind": kind,
        "endpoints": endpoints,
        "bytes": answer["peak_memory_bytes"] / endpoints,
        "microseconds": 1e6 * seconds / endpoints,
    }


def of_page(page: Path) -> list[dict]:
    """The figures of a page's table of endpoints, then bytes and time by flows, then by packets."""
    rows = []
    lines = iter(page.read_text().splitlines())
    next(line for line in lines if line.startswith("| endpoints |"))
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")]
        for kind, (held, time) in (("flow", cells[1:3]), ("packet", cells[3:5])):
            if held:
                row = {"kind": kind, "endpoints": int(cells[0])}
                rows.append({**row, "bytes": float(held), "microseconds": float(time)})
    return rows


def plot(rows: list[dict], file: str) -> None:
    """Draws both measures over the number of endpoints."""
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "flow_scale"
    _, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    labels = {"bytes": "memory for each endpoint (B)", "microseconds": "CPU time for each endpoint (µs)"}
    for axis, (key, label) in zip(axes, labels.items(), strict=True):
        for kind in ("flow", "packet"):
            own = [row for row in rows if row["kind"] == kind]
            axis.loglog([row["endpoints"] for row in own], [row[key] for row in own], marker="o", label=kind)
        axis.set(xlabel="endpoints", ylabel=label)
        axis.legend()
    plt.savefig(file, metadata={"Date": None})


def main() -> None:
    """Measures, prints and draws."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--largest", type=int, default=65, metavar="GROUPS")
    parser.add_argument("--packets", type=int, default=2, metavar="GROUPS")
    parser.add_argument("--plot", metavar="FILE")
    parser.add_argument("--page", type=Path, metavar="FILE")
    parser.add_argument("--weft", type=Path, default=ROOT / "target/release/weft")
    own = parser.parse_args()
    if own.page:
        if not own.plot:
            parser.error("--page wants --plot FILE.svg: its table is printed already")
        plot(of_page(own.page), own.plot)
        return
    rows = []
    print(f"{'':8}{'endpoints':>12}{'B each':>12}{'µs each':>12}")
    for kind, most in (("flow", own.largest), ("packet", own.packets)):
        for groups in (groups for groups in GROUPS if groups <= most):
            row = measure(own.weft, groups, kind)
            print(
                f"{kind:8}{row['endpoints']:12,}{row['bytes']:12,.0f}{row['microseconds']:12,.1f}", flush=True
            )
            rows.append(row)
    if own.plot:
        plot(rows, own.plot)


if __name__ == "__main__":
    main()
