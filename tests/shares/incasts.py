#!/usr/bin/env python3
"""Shares of equal flows to one endpoint under each algorithm, beside the fixed point of its equations.

Usage: incasts.py [--weft PATH] [--json] [ALGORITHM...]

The first flow begins at once, the others 100 us later, so that shares are found from unequal windows. The
rate of a flow is its payload between 5 and 15 ms. README.md has the table.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
SIZE = 65536
WARM_UP_MS, MEASURED_MS = 5, 10
ALGORITHMS = ["hpcc", "swift", "nscc", "dcqcn", "ib", "acc"]
# Of a path: the machine, and where the senders and the receiver are.
STAR = ["--set", "topology.kind=star", "--set", "topology.endpoints=9"]
PATHS = {
    "short": (STAR, [1, 2, 3, 4, 5, 6, 7, 8]),
    "long": ([], [64, 65, 96, 97, 128, 129, 160, 161]),
}
# Payload of a link of 100 Gb/s: 4,096 of 4,178 bytes on the line.
LINK_GBPS = 100 * 4096 / 4178
# Of HPCC, where nothing is given: the aim, and W_AI for 20 flows in parts of bandwidth times round trip.
AIM, ADDITIVE = 0.95, (1 - 0.95) / 20


class Row(NamedTuple):
    """An incast."""

    algorithm: str
    path: str
    flows: int
    rates: list[float]

    def fairness(self) -> float:
        """Jain's index."""
        return sum(self.rates) ** 2 / (len(self.rates) * sum(rate * rate for rate in self.rates))


def fixed_point(algorithm: str, flows: int) -> float:
    """The rate of each flow in Gb/s at which the equations stand still.

    Windows that grow by steps and shrink by shares stand still where all are equal and the link is full.
    HPCC: W = W·η/U + W_AI with U = flows·W/BDP, so that U = η + flows·W_AI/BDP. ACC: C·(1 - margin).
    """
    used = {"hpcc": min(AIM + flows * ADDITIVE, 1.0), "acc": 0.95}.get(algorithm, 1.0)
    return LINK_GBPS * used / flows


def incast(weft: str, algorithm: str, path: str, flows: int) -> Row:
    """Runs one incast."""
    words, senders = PATHS[path]
    time = f'time = "{WARM_UP_MS + MEASURED_MS}ms"\nwarm_up = "{WARM_UP_MS}ms"'
    lines = ["[scenario]", 'title = "an incast"', time]
    for number, sender in enumerate(senders[:flows]):
        # Three at a time, so that there is always something to send.
        for copy in range(3):
            lines += ["[[flows]]", f'name = "{number}.{copy}"', 'role = "background"', f'from = "{sender}"']
            lines += ['to = "0"', f'size = "{SIZE}"', 'gap = "0us"', f'start = "{100 if number else 0}us"']
    with tempfile.TemporaryDirectory(prefix="weft-incasts-") as folder:
        file = Path(folder) / "incast.toml"
        file.write_text("\n".join(lines) + "\n")
        command = [weft, "traffic", "-m", "ethernet-100g-spineleaf", *words, "--scenario", str(file)]
        command += ["--congestion", algorithm, "--json", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    came = [0] * flows
    for row in json.loads(done.stdout)["rows"]:
        came[int(row["group"].split(".")[0])] += row["payload_bytes"]
    return Row(algorithm, path, flows, [payload * 8 / (MEASURED_MS * 1e6) for payload in came])


def main() -> int:
    """Runs all incasts and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weft", default=str(ROOT / "target/release/weft"), metavar="PATH")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("algorithms", nargs="*", metavar="ALGORITHM")
    options = parser.parse_args()
    unknown = set(options.algorithms) - set(ALGORITHMS)
    if unknown:
        sys.exit(f"there is no algorithm {', '.join(sorted(unknown))}; it is one of {', '.join(ALGORITHMS)}")
    rows = [
        incast(options.weft, algorithm, path, flows)
        for algorithm in options.algorithms or ALGORITHMS
        for path in PATHS
        for flows in (3, 5, 8)
    ]
    if options.json:
        told = [{**row._asdict(), "equations": fixed_point(row.algorithm, row.flows)} for row in rows]
        print(json.dumps(told, indent=2))
        return 0
    print("| congestion | path | flows | equations, Gb/s each | least | most | fairness | all |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        equations = fixed_point(row.algorithm, row.flows)
        rates = f"{min(row.rates):.1f} | {max(row.rates):.1f} | {row.fairness():.3f} | {sum(row.rates):.1f}"
        print(f"| {row.algorithm} | {row.path} | {row.flows} | {equations:.1f} | {rates} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
