#!/usr/bin/env python3
"""Checks machines with `weft machine check`, or shows them, and answers as JSON how long it took.

Usage: check_machines.py shipped|graph|show

shipped: every machine that ships, one after the other; `slowest_seconds` is that of the slowest. graph: a
graph of 10,000 switches with 16 links each, the union of eight random circles, with an endpoint at every
switch; `wall_seconds`, `proof_time_s` without the tables of distances, `build_time_s` with them,
`peak_memory_bytes`. show: `weft machine show` of machines of about two million endpoints, one of each kind;
`slowest_seconds` is that of the slowest, `slowest` which.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WEFT = Path(__file__).resolve().parent.parent / "target/release/weft"
SWITCHES = 10_000
CIRCLES = 8
# About two million endpoints each.
LARGE = {
    "torus": ["kind=torus", "dims=[128,128,128]"],
    "hypercube": ["kind=hypercube", "dimensions=21"],
    "square hypercube": ["kind=hypercube", "dimensions=20", "endpoints_per_switch=1"],
    "hyperx": ["kind=hyperx", "dims=[32,32,32]", "endpoints_per_switch=64"],
    "tree of two tiers": ["kind=tree", "down=[1024,2048]"],
    "tree of three tiers": ["kind=tree", "down=[128,128,128]"],
    "tree with a wide top": ["kind=tree", "down=[16,16,8192]"],
    "dragonfly": ["kind=dragonfly", "p=26", "a=52", "h=26"],
    "megafly": ["kind=megafly", "endpoints_per_leaf=38"],
    "slim fly": ["kind=slim-fly", "q=109"],
}


def check(*words: str) -> tuple[dict, float]:
    """The answer of a check, and its real time in seconds."""
    command = [WEFT, "machine", "check", *words, "--json"]
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    seconds = time.monotonic() - began
    if done.returncode != 0:
        sys.exit(f"exit status {done.returncode} of: weft machine check {' '.join(words)}")
    return json.loads(done.stdout), seconds


def shipped() -> dict:
    """The slowest of the machines that ship."""
    listed = subprocess.run([WEFT, "machine", "list", "--json"], stdout=subprocess.PIPE, check=True)
    seconds = {row["name"]: check(row["name"])[1] for row in json.loads(listed.stdout)["rows"]}
    slowest = max(seconds, key=seconds.get)
    return {"machines": len(seconds), "slowest": slowest, "slowest_seconds": seconds[slowest]}


def graph() -> dict:
    """A graph of many switches."""
    dice = random.Random(1)
    edges = set()
    for _ in range(CIRCLES):
        circle = list(range(SWITCHES))
        dice.shuffle(circle)
        edges |= {(min(pair), max(pair)) for pair in zip(circle, circle[1:] + circle[:1], strict=True)}
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        path = Path(folder) / "graph.edges"
        path.write_text("".join(f"s{one} s{other}\n" for one, other in sorted(edges)))
        sets = ("--set", "topology.kind=graph", "--set", f"topology.file={path}")
        answer, seconds = check("bxi3-fattree", *sets)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    times = {key: answer[key] for key in ("build_time_s", "proof_time_s")}
    return {"wall_seconds": seconds, "peak_memory_bytes": memory, **times}


def show() -> dict:
    """The slowest of large machines."""
    seconds = {}
    for name, keys in LARGE.items():
        sets = [word for key in keys for word in ("--set", f"topology.{key}")]
        began = time.monotonic()
        subprocess.run(
            [WEFT, "machine", "show", "bxi3-fattree", *sets], stdout=subprocess.DEVNULL, check=True
        )
        seconds[name] = time.monotonic() - began
    slowest = max(seconds, key=seconds.get)
    return {"seconds": seconds, "slowest": slowest, "slowest_seconds": seconds[slowest]}


if __name__ == "__main__":
    tasks = {"shipped": shipped, "graph": graph, "show": show}
    if len(sys.argv) != 2 or sys.argv[1] not in tasks:
        sys.exit(__doc__)
    print(json.dumps(tasks[sys.argv[1]]()))
