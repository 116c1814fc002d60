#!/usr/bin/env python3
"""Random machines that the deadlock proof passes, under random load: none of them may ever stand still.

Usage: run.py [--weft PATH] [--seconds N] [--seed N] [--log FILE] [SEED...]

Each case is drawn from its seed: a small machine of any family with any routing, buffers of a packet or a
few, any switch, and a load. `weft machine check` must pass it, or print a circle; where it passes, `weft
traffic --check` must end at the horizon or with all messages delivered. Any other end is an error, printed
with the commands. --seconds is the time of new cases; those named by SEED are run again instead. --log adds
a line for each minute, and one at the end: cases, processor time.
"""

import argparse
import json
import random
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
DETOURS = ["valiant", "ugal-l", "ugal-g"]
ON_GRAPHS = ["shortest-path", "ecmp", "spray", "round-robin", "multipath", "adaptive", *DETOURS]
ON_TREES = ["d-mod-k", "up-down", "ecmp", "adaptive", "round-robin", "multipath"]
PATTERNS = ["uniform", "uniform", "permutation", "tornado", "adversarial", "hotspot", "incast", "all-to-all"]
# Processor time of one command. Most cases take less than a second, `--check` of an incast up to a minute.
MAX_SECONDS = 300


class Case(NamedTuple):
    """A machine and a load, as arguments of the command."""

    family: str
    machine: list[str]
    load: list[str]


def ring_sizes(dice: random.Random) -> dict:
    """A torus or mesh."""
    dims = [dice.randint(2, 8) for _ in range(dice.randint(1, 3))]
    while len(dims) > 1 and product(dims) > 64:
        dims.pop()
    return {"dims": dims, "endpoints_per_switch": dice.randint(1, 3)}


def product(numbers: list[int]) -> int:
    """The product of all."""
    result = 1
    for number in numbers:
        result *= number
    return result


def torus(dice: random.Random) -> dict:
    """A torus, with or without datelines."""
    routed = {"routing": "dimension-order", "datelines": dice.random() < 0.8}
    return {"kind": "torus", **ring_sizes(dice), **routed}


def mesh(dice: random.Random) -> dict:
    """A mesh."""
    return {"kind": "mesh", **ring_sizes(dice), "routing": "dimension-order"}


def exanest(dice: random.Random) -> dict:
    """The ExaNeSt rack."""
    return {"kind": "exanest", "mezzanines": dice.choice([1, 2, 4, 8]), "datelines": dice.random() < 0.8}


def kary_tree(dice: random.Random) -> dict:
    """A k-ary n-tree."""
    k, n = dice.choice([(2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (4, 2), (5, 2)])
    return {"kind": "kary-tree", "k": k, "n": n, "routing": dice.choice(ON_TREES[:2])}


def tree(dice: random.Random) -> dict:
    """A tree of two or three levels, tapered or not, some with links in parallel."""
    down = [dice.randint(1, 4) for _ in range(dice.randint(2, 3))]
    up = [dice.randint(1, 4) for _ in down[1:]]
    parallel = [1] * len(up)
    if dice.random() < 0.4:
        parallel = [2] * len(up)
        down = [down[0], *[2 * ports for ports in down[1:]]]
        up = [2 * ports for ports in up]
    routed = {"routing": dice.choice(ON_TREES)}
    return {"kind": "tree", "down": down, "up": up, "parallel": parallel, **routed}


def spine_leaf(dice: random.Random) -> dict:
    """Leaves and spines."""
    sizes = {
        "leaves": dice.randint(2, 6),
        "spines": dice.randint(1, 4),
        "endpoints_per_leaf": dice.randint(1, 6),
    }
    return {"kind": "spine-leaf", **sizes, "routing": dice.choice(ON_TREES)}


def dragonfly(dice: random.Random) -> dict:
    """A Dragonfly, with one link per pair of groups or several."""
    p, a, h = dice.randint(1, 3), dice.randint(1, 4), dice.randint(1, 3)
    links = dice.choice([1, 1, 2, 3])
    groups = dice.randint(1, min(9, a * h // links + 1))
    sizes = {"p": p, "a": a, "h": h, "links_per_pair": links, "groups": groups}
    routed = {"routing": dice.choice(["minimal", "valiant", "ugal-l", "par", "ugal-g"])}
    return {"kind": "dragonfly", **sizes, "global": dice.choice(["palmtree", "absolute"]), **routed}


def megafly(dice: random.Random) -> dict:
    """A Megafly."""
    spines, per_spine = dice.randint(1, 3), dice.randint(1, 3)
    sizes = {"endpoints_per_leaf": dice.randint(1, 3), "leaves": dice.randint(1, 3), "spines": spines}
    sizes |= {"global_per_spine": per_spine, "groups": dice.randint(1, min(8, spines * per_spine + 1))}
    return {
        "kind": "megafly",
        **sizes,
        "routing": dice.choice(["minimal", "valiant", "ugal-l", "par", "ugal-g"]),
    }


def hyperx(dice: random.Random) -> dict:
    """A HyperX, hypercube or fully connected network."""
    routed = {
        "endpoints_per_switch": dice.randint(1, 3),
        "routing": dice.choice(["dimension-order", "ugal-l", "ugal-g"]),
    }
    return dice.choice(
        [
            {"kind": "hyperx", "dims": [dice.randint(2, 4) for _ in range(dice.randint(1, 3))], **routed},
            {"kind": "hypercube", "dimensions": dice.randint(1, 5), **routed},
            {"kind": "fully-connected", "switches": dice.randint(2, 12), **routed},
        ]
    )


def star(dice: random.Random) -> dict:
    """One switch."""
    return {"kind": "star", "endpoints": dice.randint(2, 24)}


def slim_fly(dice: random.Random) -> dict:
    """The smallest Slim Fly."""
    return {"kind": "slim-fly", "q": 5, "p": dice.randint(1, 2), "routing": dice.choice(ON_GRAPHS)}


def graph(dice: random.Random) -> dict:
    """A random connected graph; its edges take the place of its file's name."""
    switches = dice.randint(2, 14)
    edges = {(dice.randrange(number), number) for number in range(1, switches)}
    for _ in range(dice.randint(0, 2 * switches)):
        one, other = sorted(dice.sample(range(switches), 2))
        edges.add((one, other))
    lines = [f"s{one} s{other} links={dice.choice([1, 1, 1, 2])}" for one, other in sorted(edges)]
    per_switch = {"endpoints_per_switch": dice.randint(1, 3)}
    return {"kind": "graph", "file": lines, **per_switch, "routing": dice.choice(ON_GRAPHS)}


def modules(dice: random.Random) -> dict:
    """A chain or star of random modules, each two of them joined by one gateway or several."""
    lines, members = [], []
    for module in range(dice.randint(2, 4)):
        names = [f"m{module}s{number}" for number in range(dice.randint(1, 5))]
        lines += [f"{name} module=m{module} endpoints={dice.randint(1, 2)}" for name in names]
        edges = {(dice.randrange(number), number) for number in range(1, len(names))}
        for _ in range(dice.randint(0, len(names)) if len(names) > 1 else 0):
            edges.add(tuple(sorted(dice.sample(range(len(names)), 2))))
        lines += [f"{names[one]} {names[other]}" for one, other in sorted(edges)]
        if members:
            before = dice.choice(members)
            for gateway in range(dice.randint(1, 3)):
                name = f"g{module}x{gateway}"
                lines += [f"{dice.choice(before)} {name}", f"{name} {dice.choice(names)}"]
        members.append(names)
    return {"kind": "graph", "file": lines, "routing": "hierarchical"}


def table(dice: random.Random) -> dict:
    """A random graph with random ways: towards each switch a tree that grows by links in any order."""
    topology = {**graph(dice), "routing": "table"}
    joined: dict[str, list[str]] = {}
    for one, other, _ in (line.split() for line in topology["file"]):
        joined.setdefault(one, []).append(other)
        joined.setdefault(other, []).append(one)
    hops: dict[str, list[str]] = {name: [] for name in joined}
    for to in joined:
        reached = [to]
        while len(reached) < len(joined):
            via = dice.choice(reached)
            at = dice.choice(joined[via])
            if at not in reached:
                hops[at].append(f"{to}:{via}")
                reached.append(at)
    topology["file"] += [f"{name} next={','.join(entries)}" for name, entries in hops.items()]
    return topology


FAMILIES = [
    *[torus, mesh, exanest, kary_tree, tree, tree, spine_leaf, dragonfly, dragonfly, dragonfly],
    *[megafly, megafly, hyperx, hyperx, star, slim_fly, graph, graph, graph, modules, table],
]


def written(value: object) -> str:
    """A value as machine files write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def draw(seed: int, folder: Path) -> Case:
    """The case of a seed."""
    dice = random.Random(seed)
    topology = dice.choice(FAMILIES)(dice)
    family = topology["kind"]
    if family == "graph":
        path = folder / f"{seed}.edges"
        path.write_text("\n".join(topology["file"]) + "\n")
        topology["file"] = path
    sets = [f"topology.{key}={written(value)}" for key, value in topology.items()]
    payload = dice.choice([64, 256, 1024])
    # Header and footer are 48 bytes: as many whole packets, and something more or nothing.
    buffer = dice.choice([1, 1, 2, 3]) * (payload + 48) + dice.choice([0, 0, 17])
    if topology.get("routing") == "ugal-g":
        sets += [f"queue_board.interval={dice.choice([400, 1000, 5000])}ns"]
        sets += [f"queue_board.delay={dice.choice([0, 500, 3000])}ns"]
    kinds = ["input-queued", "virtual-output-queued", "output-queued", "combined-input-output"]
    kind = dice.choice(kinds)
    arbiters = ["islip", "round-robin"] if kind in kinds[1::2] else ["round-robin", "random"]
    sets += [f"packet.payload={payload}", f"switch.buffer={buffer}", f"switch.kind={kind}"]
    if kind == "combined-input-output":
        sets.append(f"switch.speedup={dice.choice([1, 1.5, 2, 3])}")
    if kind == "combined-input-output" or (kind == "output-queued" and dice.random() < 0.7):
        sets.append(f"switch.output_buffer={dice.choice([1, 2]) * (payload + 48)}")
    if kind != "output-queued":
        sets.append(f"switch.arbiter={dice.choice(arbiters)}")
    sets.append(f"switch.forwarding={dice.choice(['virtual-cut-through', 'store-and-forward'])}")
    machine = ["-m", "bxi3-fattree", *[word for value in sets for word in ("--set", value)]]
    load = ["--pattern", dice.choice(PATTERNS), "--size", str(dice.choice([64, 256, 2000, 16384]))]
    load += ["--seed", str(dice.randint(1, 1000)), "--layer", dice.choice(["nic", "fabric"])]
    if dice.random() < 0.3:
        load += ["--messages", str(dice.randint(1, 20))]
    else:
        load += ["--load", str(dice.choice([0.2, 0.5, 0.9, 1])), "--time", f"{dice.choice([20, 100, 300])}us"]
    return Case(family, machine, [*load, "--threads", str(dice.choice([1, 1, 2]))])


def limit_processor_time() -> None:
    """Ends a command that would not end: by a signal."""
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS + 5))


def answer(weft: str, words: list[str]) -> tuple[int, dict, str]:
    """The status of a command, its JSON (empty: none), and its standard error."""
    command = [weft, *words, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit_processor_time)
    try:
        return done.returncode, json.loads(done.stdout), done.stderr
    except json.JSONDecodeError:
        return done.returncode, {}, done.stderr


def outcome(weft: str, case: Case) -> tuple[str, str]:
    """How a case ended in a word, and what is wrong; empty: nothing."""
    words = ["machine", "check", *case.machine[1:]]
    status, told, errors = answer(weft, words)
    if status == 1 and told.get("deadlock_free") is False:
        return "circle", ""
    if status != 0:
        return "refused", f"weft {shlex.join(words)}\n{errors}"
    words = ["traffic", *case.machine, *case.load, "--check", "--quiet"]
    status, told, errors = answer(weft, words)
    if status < 0:
        return "hung", f"weft {shlex.join(words)}\nended by signal {-status}"
    # A pattern that this number of endpoints does not have.
    if status == 2 and errors.startswith("weft: pattern "):
        return "no such pattern", ""
    ended = told.get("ended", f"status {status}")
    if status == 0 and ended in ("finished", "horizon"):
        return ended, ""
    return ended, f"weft {shlex.join(words)}\n{errors}"


def processor_seconds() -> float:
    """Processor time of the commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weft", default="target/debug/weft")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="of the first case; by default a new one")
    parser.add_argument("--log", type=Path)
    parser.add_argument("seeds", nargs="*", type=int)
    options = parser.parse_args()
    weft = str((ROOT / options.weft).resolve())
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 40)
    ended: Counter[str] = Counter()
    failed = 0
    began = told = time.monotonic()

    def tell(line: str) -> None:
        print(line, flush=True)
        if options.log:
            with options.log.open("a") as log:
                log.write(line + "\n")

    def totals() -> str:
        ways = ", ".join(f"{count} {way}" for way, count in ended.most_common())
        cases, seconds = sum(ended.values()), processor_seconds()
        return f"{cases} cases in {seconds:.0f} s of processor time: {ways}; {failed} wrong"

    with tempfile.TemporaryDirectory(prefix="weft-deadlock-") as folder:
        for seed in options.seeds or range(first, sys.maxsize):
            if not options.seeds and time.monotonic() - began > options.seconds:
                break
            case = draw(seed, Path(folder))
            way, wrong = outcome(weft, case)
            ended[way] += 1
            if wrong:
                failed += 1
                tell(f"seed {seed}, {case.family}: {way}\n{wrong}")
            if time.monotonic() - told > 60:
                told = time.monotonic()
                tell(totals())
    tell(totals())
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
