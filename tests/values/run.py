#!/usr/bin/env python3
"""Effects of values: doubles every number of every shipped machine, and sees which benchmarks it changes.

Usage: run.py [--weft PATH] [--machine NAME] [--page FILE]

A number that changes no figure of any benchmark, doubled or halved, must stand in without_effect.toml beside
this file with its reason, and one that stands there must change none: otherwise the test fails. A value that
is refused counts as one that acts: it is a limit. --page writes docs/generated/what-acts-on-what.md. Keys
that no shipped machine has are in features.toml, each with a command in which it acts; `--machine features`
runs these alone.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NUMBER = re.compile(r"^(\d+)(\.\d+)? ?([A-Za-z/]*)$")
# What a run takes in real time and memory is no figure.
NO_FIGURES = {"packet_hops_per_second", "build_time_s", "peak_memory_bytes"}
HEAD = """# What acts on what

Each number of each shipped machine, and the benchmarks that it changes when it is doubled, or halved where
doubling changes nothing. A value that weft refuses is a limit. Where no benchmark notices a number, its row
gives the reason. Some machines run in a smaller size.
`tests/values/run.py --page docs/generated/what-acts-on-what.md` writes this file.

"""
LOSSES = "faults=[{drop=3000, corrupt=3000}]"


class Benchmark(NamedTuple):
    """A command whose figures are compared."""

    name: str
    words: list[str]


def osu(name: str, words: str) -> Benchmark:
    """A benchmark of weft osu with few iterations."""
    return Benchmark(name, ["osu", *words.split(), "--iterations", "2", "--warm-up", "1"])


def traffic(name: str, words: str) -> Benchmark:
    """A pattern of weft traffic for a short time."""
    return Benchmark(name, ["traffic", *words.split(), "--time", "20us", "--warm-up", "10us"])


# On all machines.
COMMON = [
    osu("latency 0 B", "latency --sizes 0"),
    osu("latency 64 B", "latency --sizes 64"),
    osu("latency 64 KB", "latency --sizes 64K"),
    osu("latency on one host", "latency --ranks 2 --ppn 2 --sizes 64"),
    osu("bandwidth 64 B", "bw --sizes 64"),
    osu("bandwidth 256 KB", "bw --sizes 256K"),
    osu("both directions 256 KB", "bibw --sizes 256K"),
    osu("raw latency 32 B", "latency --layer nic --sizes 32"),
    osu("put 1 KB", "put_latency --sizes 1K"),
    osu("get 1 KB", "get_latency --sizes 1K"),
    osu("gets 1 KB", "get_bw --sizes 1K"),
    osu("fetch-and-op", "fop_latency"),
    osu("broadcast 8 KB", "bcast --ranks 8 --ppn 1 --sizes 8K"),
    osu("allreduce 64 B", "allreduce --ranks 8 --ppn 1 --sizes 64"),
    traffic("uniform load 0.3", "--pattern uniform --load 0.3"),
    traffic("incast", "--pattern incast --load 0.5"),
]
# On machines of several hosts with more than two ranks.
MANY = [
    osu("all-to-all 16 KB", "alltoall --ranks 16 --sizes 16K"),
    osu("all-to-all 64 B", "alltoall --ranks 32 --sizes 64"),
    osu("reduce to one 64 KB", "reduce --algorithm linear --ranks 32 --ppn 1 --sizes 64K"),
    osu("allreduce 512 KB", "allreduce --ranks 8 --sizes 512K"),
]
# On ExaNeSt alone.
EXANEST = [
    osu("accelerated allreduce 1 KB", "allreduce --algorithm accelerator --ranks 16 --ppn 1 --sizes 1K"),
    osu(
        "all-to-all over more pages than the TLB",
        "alltoall --ranks 16 --ppn 4 --sizes 64K --set nic.iommu.walk=1us",
    ),
    osu("first touch 64 KB", "latency --sizes 64K --set nic.iommu.faults=first-touch"),
    osu("hardware agent 64 B", "latency --sizes 64 --set nic.segmentation.agent=hardware"),
    osu("losses 64 KB", f"alltoall --ranks 8 --ppn 1 --sizes 64K --set {LOSSES.replace(' ', '')}"),
    osu(
        "dead receiver",
        'latency --from M1QAF1 --to M1QBF1 --sizes 64K --set faults=[{of="M1QBF1",drop=1000000}]',
    ),
    osu(
        "dead mailbox",
        'latency --from M1QAF1 --to M1QBF1 --sizes 0 --set faults=[{of="M1QBF1",drop=1000000}]',
    ),
    osu("allreduce 256 KB on one host", "allreduce --ranks 4 --ppn 4 --sizes 256K"),
    osu("few contexts", "reduce --algorithm linear --ranks 96 --ppn 1 --sizes 16K --set nic.rdma.contexts=8"),
]

# On caRVnet, which has the same blocks, and endpoints without names.
CARVNET = [
    osu(
        "all-to-all over more pages than the TLB",
        "alltoall --ranks 16 --ppn 4 --sizes 64K --set nic.iommu.walk=1us",
    ),
    osu("first touch 64 KB", "latency --sizes 64K --set nic.iommu.faults=first-touch"),
    osu("firmware agent 64 B", "latency --sizes 64 --set nic.segmentation.agent=firmware"),
    osu("losses 64 KB", f"alltoall --ranks 8 --ppn 1 --sizes 64K --set {LOSSES.replace(' ', '')}"),
    osu("dead receiver", 'latency --from 0 --to 4 --sizes 64K --set faults=[{of="4",drop=1000000}]'),
    osu("dead mailbox", 'latency --from 0 --to 4 --sizes 0 --set faults=[{of="4",drop=1000000}]'),
    osu("allreduce 256 KB on one host", "allreduce --ranks 4 --ppn 4 --sizes 256K"),
    osu("few contexts", "reduce --algorithm linear --ranks 16 --ppn 1 --sizes 16K --set nic.rdma.contexts=2"),
]
# On machines with the interface of Portals, whose transport repeats what is lost.
PORTALS = [
    osu("losses 64 KB", f"alltoall --ranks 8 --ppn 1 --sizes 64K --set {LOSSES.replace(' ', '')}"),
]
BXI = ["bxi2-fattree", "bxi2-megafly", "bxi3-fattree", "bxi3-dragonfly", "bxi3-megafly", "deep-msa"]
OWN = {"exanest": EXANEST, "carvnet-spineleaf": CARVNET, **dict.fromkeys(BXI, PORTALS)}
# Machines that would take too long for a thousand runs, in a size that has all their kinds of links.
SMALLER = {
    "bxi2-fattree": ["topology.k=6"],
    "bxi2-megafly": [
        *(f"topology.{key}=3" for key in ("endpoints_per_leaf", "leaves", "spines", "global_per_spine")),
        "topology.groups=4",
    ],
    "ib-ndr-fattree": ["topology.down=[4,4,8]", "topology.up=[4,4]", "topology.parallel=[1,4]"],
    "ib-qdr-fattree": ["topology.down=[4,4,2,4]", "topology.up=[4,4,2]", "topology.parallel=[1,1,2]"],
    "slingshot-dragonfly": ["topology.groups=4", "topology.p=4", "topology.a=4", "topology.h=3"],
    "ethernet-100g-spineleaf": ["topology.leaves=8", "topology.endpoints_per_leaf=4", "topology.spines=4"],
}


def benchmarks(machine: str) -> list[Benchmark]:
    """The benchmarks that a machine can run."""
    few = machine == "communication-ip"
    ranks = [] if few else MANY
    common = [case for case in COMMON if not few or "--ranks 8" not in " ".join(case.words)]
    return common + ranks + OWN.get(machine, [])


def size(machine: str) -> list[str]:
    """The arguments that make a large machine small."""
    return [word for change in SMALLER.get(machine, []) for word in ("--set", change)]


def run(weft: str, words: list[str]) -> str:
    """The figures of a command, or what it was refused or ended with."""
    done = subprocess.run(
        [weft, *words, "--json", "--quiet"], capture_output=True, text=True, cwd=ROOT, timeout=600
    )
    if not done.stdout.startswith("{"):
        return f"refused: {done.stderr[:200]}"
    answer = json.loads(done.stdout)
    rows = answer.get("rows", [])
    rows = [{key: value for key, value in row.items() if key not in NO_FIGURES} for row in rows]
    return json.dumps([answer.get("ended"), answer.get("detail"), answer.get("error"), rows])


def figures(weft: str, machine: str, change: list[str]) -> dict[str, str]:
    """The figures of all benchmarks."""
    chosen = ["-m", machine, *size(machine), *change]
    return {case.name: run(weft, [*case.words, *chosen]) for case in benchmarks(machine)}


def scaled(value: str, factor: float) -> str | None:
    """A number with its unit, times `factor`; None: it is no number, or does not change."""
    found = NUMBER.match(value)
    if not found or float(found[1] + (found[2] or "")) == 0:
        return None
    number = float(found[1] + (found[2] or "")) * factor
    if number != int(number):
        return None
    unit = found[3]
    return f"{int(number)}{' ' if unit.startswith('cycle') else ''}{unit}"


def acts_on(weft: str, machine: str, key: str, value: str, base: dict[str, str]) -> list[str] | None:
    """The benchmarks that a number changes; None: it is no number."""
    options = [text for text in (scaled(value, 2), scaled(value, 0.5)) if text]
    for text in options:
        change = ["--set", f"{key}={text}"]
        changed = figures(weft, machine, change)
        acts = [name for name, figure in changed.items() if figure != base[name]]
        if acts:
            limit = all(changed[name].startswith("refused") for name in acts)
            return (
                ["its limit"] if limit else [name for name in acts if not changed[name].startswith("refused")]
            )
    return [] if options else None


def check(weft: str, machine: str, known: dict[str, str]) -> tuple[list[str], list[str]]:
    """The table of a machine, and what is not as it is written down."""
    shown = subprocess.run(
        [weft, "machine", "show", machine, *size(machine), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    base = figures(weft, machine, [])
    for name, figure in base.items():
        if figure.startswith("refused"):
            sys.exit(f"{machine}: the benchmark `{name}` does not run: {figure}")
    rows, problems = [], []
    for entry in json.loads(shown.stdout)["values"]:
        key, value = entry["key"], entry["value"]
        acts = acts_on(weft, machine, key, value, base)
        if acts is None:
            continue
        print(f"{machine} {key}: {', '.join(acts) or 'nothing'}", flush=True)
        if not acts and key not in known:
            problems.append(f"{machine}: {key} changes nothing, and without_effect.toml has no reason")
        if acts and key in known:
            problems.append(f"{machine}: {key} acts on {acts[0]}; take it out of without_effect.toml")
        shortened = ", ".join(acts[:4]) + (f" and {len(acts) - 4} more" if len(acts) > 4 else "")
        rows.append(f"| `{key}` | {shortened or known.get(key, '?')} |")
    return rows, problems


def figure_with(weft: str, feature: dict[str, str], value: str) -> str:
    """The figures of a feature's command with that value of its key."""
    words = shlex.split(feature["command"].replace("VALUE", value))
    # A scenario says its own time.
    is_pattern = words[0] == "traffic" and "--scenario" not in words
    short = ["--time", "20us", "--warm-up", "10us"] if is_pattern else []
    return run(weft, [*words, *short])


def check_features(weft: str) -> tuple[list[str], list[str]]:
    """The table of the keys that no shipped machine has, and those that change nothing."""
    rows, problems = [], []
    for feature in tomllib.loads((HERE / "features.toml").read_text())["feature"]:
        key, value = feature["key"], feature["value"]
        base = figure_with(weft, feature, value)
        if base.startswith("refused"):
            sys.exit(f"{key}: its command does not run: {base}")
        options = [text for text in (scaled(value, 2), scaled(value, 0.5)) if text]
        changed = [text for text in options if figure_with(weft, feature, text) != base]
        print(f"{key}: {', '.join(changed) or 'nothing'}", flush=True)
        if not changed:
            problems.append(f"{key} = {value} changes nothing: {feature['command']}")
        machine = re.search(r"-m (\S+)", feature["command"])
        rows.append(f"| `{key}` | {value} | {machine[1] if machine else '?'} |")
    return rows, problems


def main() -> None:
    """Checks the machines, one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weft", default=str(ROOT / "target/quick/weft"))
    parser.add_argument("--machine")
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    known = tomllib.loads((HERE / "without_effect.toml").read_text())
    machines = [arguments.machine] if arguments.machine else [*known, "features"]
    problems, page = [], []
    if "features" in machines:
        machines.remove("features")
        rows, problems = check_features(arguments.weft)
        head = [
            "## Keys that no shipped machine has",
            "",
            "| key | from the value | acts on |",
            "|---|---|---|",
        ]
        page = [*head, *rows, ""]
    for machine in machines:
        rows, wrong = check(arguments.weft, machine, known[machine])
        problems += wrong
        page += [f"## {machine}", "", "| key | acts on |", "|---|---|", *rows, ""]
    if arguments.page:
        arguments.page.write_text(HEAD + "\n".join(page))
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
