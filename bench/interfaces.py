#!/usr/bin/env python3
"""Counts the instructions and the time of a message over each interface, and over `overheads` on its fabric.

It counts the lines that an instruction cache of 32 KB misses as well: the code of some does not fit.

Prints the table of bench/performance.md. A run is counted at two lengths, so that the start cancels; the
messages are those between the two. CPU time is the least of some runs of half a second or longer. Each load
is one that both interfaces carry: where one is saturated, its queues grow with the time. Give names of
machines to count only these.
"""

import argparse
import json
import re
import resource
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Machine, its options, load, and that of 64 B, of which some interfaces carry less: two thirds of what they
# do. The machines of two endpoints are a torus here: a message crosses several links.
FABRICS = (
    ("bxi3-fattree", "", 0.3, 0.2),
    ("apenetx-u200", "--set topology.dims=[4,4]", 0.1, 0.05),
    ("communication-ip", "--set topology.dims=[8,8]", 0.1, 0.1),
    ("carvnet-riscv", "--set topology.dims=[4,4]", 0.05, 0.015),
    ("exanest", "", 0.02, 0.02),
)

# Size, messages to count, and the most instructions and time for each of those of `overheads`.
SIZES = (("64", 2000, 3.0), ("256", 2000, 3.0), ("4K", 500, 4 / 3), ("64K", 60, 4 / 3))


@dataclass
class Count:
    """A run, or the difference between two."""

    instructions: int
    misses: int
    messages: int

    def __sub__(self, other: "Count") -> "Count":
        return Count(
            self.instructions - other.instructions,
            self.misses - other.misses,
            self.messages - other.messages,
        )


def traffic(weft: str, options: str, us: int) -> list[str]:
    """The command for this many microseconds of traffic."""
    rest = f"traffic {options} --pattern uniform --time {us}us --warm-up 10us --threads 1 --json --quiet"
    return [weft, *shlex.split(rest)]


def length(weft: str, options: str, messages: int) -> int:
    """Microseconds of traffic, a power of two, in which at least so many messages arrive."""
    us = 1
    while True:
        answer = json.loads(subprocess.check_output(traffic(weft, options, us)))
        if answer["rows"][0]["messages"] >= messages:
            return us
        us *= 2


def count(weft: str, options: str, us: int) -> Count:
    """Runs the traffic under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        callgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        callgrind += ["--cache-sim=yes", "--I1=32768,8,64"]
        done = subprocess.run(
            callgrind + traffic(weft, options, us), capture_output=True, text=True, check=True
        )
    counts = re.search(r"Collected : ([\d ]+)", done.stderr)
    events = re.search(r"Events +: ([\w ]+)", done.stderr)
    if counts is None or events is None:
        raise SystemExit(f"callgrind printed no count:\n{done.stderr}")
    of = dict(zip(events[1].split(), map(int, counts[1].split()), strict=True))
    return Count(of["Ir"], of["I1mr"], json.loads(done.stdout)["rows"][0]["messages"])


def timed(weft: str, options: str, us: int) -> tuple[float, int]:
    """Seconds of CPU time of the traffic, and its messages."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    answer = json.loads(subprocess.check_output(traffic(weft, options, us)))
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    row = answer["rows"][0]
    # Of a short run the first messages decide.
    if took > 0.5 and row["saturated"]:
        raise SystemExit(f"{options} is saturated: lower its load in FABRICS")
    return took, row["messages"]


def time_of_message(weft: str, options: str, us: int, rounds: int) -> float:
    """Nanoseconds of CPU time of a message."""
    while timed(weft, options, us)[0] < 0.5:
        us *= 2
    runs = (timed(weft, options, us) for _ in range(rounds))
    return 1e9 * min(took / messages for took, messages in runs)


def measure(weft: str, options: str, messages: int) -> Count:
    """The difference between a run and one of three times its length."""
    us = length(weft, options, messages)
    return count(weft, options, 3 * us) - count(weft, options, us)


def main() -> None:
    """Prints a row for each machine and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("machines", nargs="*")
    parser.add_argument("--weft", default=str(ROOT / "target/release/weft"))
    parser.add_argument("--sizes", default=",".join(size for size, _, _ in SIZES))
    parser.add_argument("--rounds", type=int, default=3, help="runs whose CPU time is taken")
    arguments = parser.parse_args()
    print("| machine | size | `overheads` | blocks | ratio | ns | ns | ratio | required | lines | lines | |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    for machine, options, usual_load, small_load in FABRICS:
        if arguments.machines and machine not in arguments.machines:
            continue
        for size, messages, most in SIZES:
            if size not in arguments.sizes.split(","):
                continue
            load = small_load if size == "64" else usual_load
            work = f"-m {machine} {options} --load {load} --size {size}"
            works = [f"{work} {nic}" for nic in ("--set nic.model=overheads", "")]
            counts = [measure(arguments.weft, work, messages) for work in works]
            times = [time_of_message(arguments.weft, work, 64, arguments.rounds) for work in works]
            row = [machine, size]
            ratios = []
            for each in [[of.instructions / of.messages for of in counts], times]:
                ratios.append(each[1] / each[0])
                row += [f"{each[0]:,.0f}", f"{each[1]:,.0f}", f"{ratios[-1]:.2f}"]
            row += [f"{most:.2f}", *(f"{of.misses / of.messages:,.0f}" for of in counts)]
            row.append("" if ratios[1] <= most else "missed")
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
