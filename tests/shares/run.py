#!/usr/bin/env python3
"""Rates of flows under Accurate Congestion Control, against water filling: random sets through the network.

Usage: run.py [--weft PATH] [--sets N] [--pulses N] [--first SEED] [--verbose] [--set KEY=VALUE]... [NAME...]

A set is drawn from its seed: flows between random endpoints, greedy ones and ones that their rate limits,
with messages of 1 to 64 packets. `weft traffic --scenario` runs it for SETTLE pulses, which are not
counted, and for some hundred more. The payload of each flow that came in those is compared with its max-min
fair rate, which this file computes in fractions from the machine's links and routing, of which it knows by
itself. A set is right if each flow has its rate within 2 % and a message. At least 95 of 100 sets must be,
or as --least says, and all of fewer than 20. The last line of a machine has the sets that are right, and
the worst.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
PACKET = 256
PERIOD_US = 20
# Pulses until rates are to be right, as docs/src/congestion/acc.md states.
SETTLE = 40
MARGIN = Fraction(50, 1000)
TOLERANCE = Fraction(2, 100)

Link = tuple[str, ...]


class Machine(NamedTuple):
    """A machine: its words, its links by class in Gb/s of payload, and a way through it."""

    words: list[str]
    endpoints: int
    links: dict[str, Fraction]
    way: object
    # Pulses in which rates are measured: enough for some hundred messages of a flow.
    window: int
    # Classes of links on which words for credits take bandwidth: their share of what the other way carries.
    credits: Mapping[str, Fraction] = MappingProxyType({})


class Flow(NamedTuple):
    """A flow of a set: from, to, bytes of a message, Gb/s that it asks for (none: all), its way."""

    source: int
    to: int
    size: int
    demand: Fraction | None
    way: list[Link]


def spine_leaf(source: int, to: int) -> list[Link] | None:
    """The way over leaves of four and four spines: to a destination over the spine of its number, d-mod-k."""
    ends = [("endpoint", f"from {source}"), ("endpoint", f"to {to}")]
    leaf, other, spine = source // 4, to // 4, to % 4
    if leaf == other:
        return ends
    return [ends[0], ("level1", f"{leaf} up {spine}"), ("level1", f"{other} down {spine}"), ends[1]]


def ring(size: int, at: int, to: int) -> list[tuple[int, int]] | None:
    """The steps from place to place of the shorter way round; none where both are as long."""
    up = (to - at) % size
    if 2 * up == size:
        return None
    step = 1 if 2 * up < size else -1
    count = min(up, size - up)
    return [((at + step * k) % size, (at + step * (k + 1)) % size) for k in range(count)]


def exanest(source: int, to: int) -> list[Link] | None:
    """The way over one mezzanine: four boards of four endpoints, whose routers behind F1 make a ring."""
    (board, chip), (other, last) = divmod(source, 4), divmod(to, 4)
    way = [("endpoint", f"from {source}")]
    if board == other:
        way.append(("qfdb", f"{source} {to}"))
    else:
        steps = ring(4, board, other)
        if steps is None:
            return None
        way += [("qfdb", f"{source} {4 * board}")] if chip else []
        way.append(("router", f"up {board}"))
        way += [("x", f"{a} {b}") for a, b in steps]
        way.append(("router", f"down {other}"))
        way += [("qfdb", f"{4 * other} {to}")] if last else []
    return [*way, ("endpoint", f"to {to}")]


def torus(source: int, to: int) -> list[Link] | None:
    """The way over a torus of five by five: dimension by dimension."""
    (y, x), (v, u) = divmod(source, 5), divmod(to, 5)
    along_x, along_y = ring(5, x, u), ring(5, y, v)
    steps = [("default", f"{y} {a} {y} {b}") for a, b in along_x]
    steps += [("default", f"{a} {u} {b} {u}") for a, b in along_y]
    return [("endpoint", f"from {source}"), *steps, ("endpoint", f"to {to}")]


def payload(line: Fraction | int, framing: int = 0) -> Fraction:
    """Of a line's rate what is left to the payload of whole packets, with headers and footers of 32 bytes."""
    return Fraction(line) * PACKET / (PACKET + 32 + framing)


# Interfaces that keep flows apart: behind others a flow that may send waits for one that may not. They start
# messages at once: where each takes 140 ns, a source of small ones cannot ask for its share.
OVERHEADS = ["--set", "nic.model=overheads", "--set", "nic.message_send=1ns", "--set", "congestion.kind=acc"]
# Switches keep flows apart too: D1.4 §8.1 has input and output buffers. In inputs alone packets wait for
# others that go elsewhere. A packet from a slow link waits for a fast one until its tail will follow without
# a gap: where it goes at once (`bubble`), it occupies the fast link for as long as the slow one, and packets
# that wait get a turn after each such packet, and no more.
COMBINED = ["--set", "switch.kind=combined-input-output", "--set", "switch.speedup=1"]
COMBINED += ["--set", "switch.faster_link=delay"]
LARGE = ["--set", "switch.buffer=64K", "--set", "switch.output_buffer=64K"]
# 64b66b leaves 64 of 66 bits; BXIv2 adds a word of 8 bytes to a packet, ExaNet's outer links 99 bytes.
CODED = Fraction(64, 66)
MACHINES = {
    "carvnet-spineleaf": Machine(
        ["-m", "carvnet-spineleaf", "--set", "topology.routing=d-mod-k", *OVERHEADS],
        16,
        {"endpoint": payload(Fraction(1024, 10)), "level1": payload(100, 8)},
        spine_leaf,
        100,
    ),
    "exanest": Machine(
        ["-m", "exanest", "--set", "topology.mezzanines=1", *COMBINED, *LARGE, *OVERHEADS],
        16,
        {
            "endpoint": payload(Fraction(192, 10)),
            "qfdb": payload(16 * CODED),
            "router": payload(Fraction(192, 10)),
            "x": payload(10 * CODED, 99),
        },
        exanest,
        400,
        {"qfdb": Fraction(16, 288), "x": Fraction(16, 288 + 99)},
    ),
    "torus": Machine(
        ["-m", "carvnet-riscv", "--set", "topology.dims=[5,5]", "--set", "nic.message_gap=0ns", *OVERHEADS],
        25,
        {"endpoint": payload(Fraction(1024, 10)), "default": payload(100, 8)},
        torus,
        100,
    ),
}


def draw(machine: Machine, seed: int) -> list[Flow]:
    """The flows of a set."""
    dice = random.Random(seed)
    slowest = min(machine.links.values())
    wanted, limited = dice.randint(2, 12), dice.choice([0.0, 0.25, 0.5, 0.5])
    flows: list[Flow] = []
    # Few destinations, so that flows meet.
    everywhere = range(machine.endpoints)
    targets = dice.sample(everywhere, dice.randint(1, 4))
    pairs = sum(
        source != to and machine.way(source, to) is not None for source in everywhere for to in targets
    )
    while len(flows) < min(wanted, pairs):
        source, to = dice.choice(everywhere), dice.choice(targets)
        way = machine.way(source, to) if source != to else None
        if way is None or any((flow.source, flow.to) == (source, to) for flow in flows):
            continue
        size = PACKET * dice.choice([1, 2, 4, 8, 16, 32, 64])
        share = Fraction(dice.randint(50, 500), 1000) if dice.random() < limited else None
        demand = None if share is None else Fraction(round(share * slowest * 1000), 1000)
        flows.append(Flow(source, to, size, demand, way))
    return flows


def opposite(link: Link) -> Link:
    """The other direction of a link between two places."""
    name, ends = link
    return (name, " ".join(reversed(ends.split())))


def max_min_fair(machine: Machine, flows: list[Flow]) -> list[Fraction]:
    """Max-min fair rates, where credits for the other direction take of a link what its rates ask for."""
    rates = [Fraction(0)] * len(flows)
    # What they take is less than a tenth: each round is that much nearer.
    for _ in range(12 if machine.credits else 1):
        taken: dict[Link, Fraction] = {}
        for flow, rate in zip(flows, rates, strict=True):
            for link in flow.way:
                if share := machine.credits.get(link[0]):
                    taken[opposite(link)] = taken.get(opposite(link), Fraction(0)) + share * rate
        rates = [rate.limit_denominator(10**9) for rate in water_filling(machine, flows, taken)]
    return rates


def water_filling(machine: Machine, flows: list[Flow], taken: dict[Link, Fraction]) -> list[Fraction]:
    """The level rises for all until a link, of which something is taken, or a demand stops some."""
    rates: dict[int, Fraction] = {}
    while len(rates) < len(flows):
        level_of: dict[Link, Fraction] = {}
        for link in {link for flow in flows for link in flow.way}:
            over = [number for number, flow in enumerate(flows) if link in flow.way]
            left = machine.links[link[0]] * (1 - MARGIN) - taken.get(link, 0)
            left -= sum(rates.get(number, 0) for number in over)
            open_ones = [number for number in over if number not in rates]
            if open_ones:
                level_of[link] = left / len(open_ones)
        levels = {}
        for number, flow in enumerate(flows):
            if number not in rates:
                bounds = [level_of[link] for link in flow.way]
                levels[number] = min(bounds if flow.demand is None else [*bounds, flow.demand])
        least = min(levels.values())
        rates |= {number: level for number, level in levels.items() if level == least}
    return [rates[number] for number in range(len(flows))]


def scenario(flows: list[Flow], rights: list[Fraction], pulses: int) -> str:
    """The set as a file. A flow that wants more than it gets is several generators without a gap, so that
    something is always there, and few messages are under way.
    """
    dice = random.Random(len(flows))
    time, warm_up = (SETTLE + pulses) * PERIOD_US, SETTLE * PERIOD_US
    lines = ["[scenario]", 'title = "a set"', f'time = "{time}us"', f'warm_up = "{warm_up}us"']
    for number, (flow, right) in enumerate(zip(flows, rights, strict=True)):
        is_limited = flow.demand is not None and flow.demand <= right
        for copy in range(1 if is_limited else 8 if flow.size < 4096 else 3):
            lines += ["[[flows]]", f'name = "{number}.{copy}"', 'role = "background"']
            lines += [f'from = "{flow.source}"', f'to = "{flow.to}"', f'size = "{flow.size}"']
            lines.append(f'start = "{dice.randint(0, 20_000)}ns"')
            lines.append(f'rate = "{round(flow.demand * 1000)}Mb/s"' if is_limited else 'gap = "0us"')
    return "\n".join(lines) + "\n"


def measured(
    command: list[str], machine: Machine, flows: list[Flow], rights: list[Fraction]
) -> list[Fraction]:
    """Gb/s of payload that came of each flow once rates are to be right."""
    text = scenario(flows, rights, machine.window)
    with tempfile.TemporaryDirectory(prefix="weft-shares-") as folder:
        path = Path(folder) / "set.toml"
        path.write_text(text)
        words = ["traffic", *machine.words, "--scenario", str(path), "--json", "--quiet"]
        done = subprocess.run([*command, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"weft {' '.join(words)}\n{done.stderr}\n{text}")
    came = [0] * len(flows)
    for row in json.loads(done.stdout)["rows"]:
        came[int(row["group"].split(".")[0])] += row["payload_bytes"]
    return [Fraction(payload * 8, machine.window * PERIOD_US * 1000) for payload in came]


def error(machine: Machine, flow: Flow, found: Fraction, right: Fraction) -> Fraction:
    """By which share a rate is wrong, beyond a message."""
    message = Fraction(flow.size * 8, machine.window * PERIOD_US * 1000)
    return max(abs(found - right) - message, Fraction(0)) / right


def try_machine(command: list[str], name: str, options: argparse.Namespace) -> bool:
    """Runs the sets of a machine."""
    machine = MACHINES[name]
    machine = machine._replace(window=options.pulses or machine.window)
    sets = [word for value in options.set for word in ("--set", value)]
    machine = machine._replace(words=[*machine.words, *sets])
    right_sets, worst = 0, (Fraction(0), "none is wrong")
    for seed in range(options.first, options.first + options.sets):
        flows = draw(machine, seed)
        rights = max_min_fair(machine, flows)
        found = measured(command, machine, flows, rights)
        rows = zip(flows, found, rights, strict=True)
        wrong = [(error(machine, flow, rate, right), flow, rate, right) for flow, rate, right in rows]
        most = max(wrong, key=lambda row: row[0])
        right_sets += most[0] <= TOLERANCE
        share, flow, rate, right = most
        asks = "all" if flow.demand is None else f"{float(flow.demand):.3f}"
        told = f"set {seed}: {flow.source} to {flow.to} in messages of {flow.size} B asks for {asks},"
        told += f" has {float(rate):.3f} Gb/s, right is {float(right):.3f}: {float(share):.1%}"
        worst = max(worst, (share, told))
        if options.verbose and share > TOLERANCE:
            print(told)
            for off, flow, rate, right in wrong:
                asks = "all" if flow.demand is None else f"{float(flow.demand):.3f}"
                rates = f"{float(rate):8.3f} for {float(right):8.3f} {float(off):6.1%}"
                print(f"    {flow.source:2} to {flow.to:2} {flow.size:6} B {asks:>7} {rates}")
    print(f"{name}: {right_sets} of {options.sets} sets within 2 % after {SETTLE} pulses; worst: {worst[1]}")
    return right_sets * 100 >= options.sets * (options.least if options.sets >= 20 else 100)


def main() -> int:
    """Runs the sets of all machines, or of those that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weft", default=str(ROOT / "target/release/weft"), metavar="PATH")
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--pulses", type=int, help="pulses in which rates are measured")
    parser.add_argument("--first", type=int, default=1, help="seed of the first set")
    parser.add_argument("--least", type=int, default=95, help="sets of 100 that must be right")
    parser.add_argument("--verbose", action="store_true", help="print the flows of sets that are wrong")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("machines", nargs="*", metavar="MACHINE")
    options = parser.parse_args()
    unknown = set(options.machines) - set(MACHINES)
    if unknown:
        sys.exit(f"there is no machine {', '.join(sorted(unknown))}; it is one of {', '.join(MACHINES)}")
    named = options.machines or list(MACHINES)
    return 0 if all([try_machine([options.weft], name, options) for name in named]) else 1


if __name__ == "__main__":
    sys.exit(main())
