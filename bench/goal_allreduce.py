#!/usr/bin/env python3
"""Runs an allreduce of 8 B in GOAL under weft or LogGOPSim, and answers with its speed, as JSON.

It goes by recursive doubling. The file is written once for each number of ranks, in binary, as LogGOPSim
reads it: build/allreduce-RANKS.bin. Both programs read it and run it in one process and one thread; the rate
is of all messages, by the processor time from the start of the program to its end.

Without a program, the file is written and its name printed.
"""

import argparse
import json
import os
import resource
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WEFT = HERE.parent / "target/release/weft"

# Sends and receives of 8 B, with tag 0, on core 0.
BYTES = 8
SEND, RECEIVE = 1, 2
NODE = struct.Struct("<IbIQIBBIIII")


def block(rank: int, rounds: int) -> bytes:
    """The graph of a rank: a send and a receive in each round, after the receive of the round before."""
    nodes, dependants, listed = [], [], 0
    for number in range(rounds):
        partner, last = rank ^ (1 << number), number == rounds - 1
        waits_for, following = int(number > 0), [] if last else [2 * number + 2, 2 * number + 3]
        nodes.append(NODE.pack(waits_for, SEND, partner, BYTES, 0, 0, 0, 0, listed, 0, listed))
        count = len(following)
        nodes.append(NODE.pack(waits_for, RECEIVE, partner, BYTES, 0, 0, 0, count, listed, 0, listed + count))
        listed += count
        dependants += following
    head = struct.pack("<IIII", len(nodes), 2, 0, 1)
    return head + b"".join(nodes) + struct.pack(f"<{listed}I", *dependants)


def write(ranks: int) -> Path:
    """Writes the file, if it is not there."""
    path = HERE.parent / f"build/allreduce-{ranks}.bin"
    if path.exists():
        return path
    path.parent.mkdir(exist_ok=True)
    rounds = ranks.bit_length() - 1
    length = len(block(0, rounds))
    begin = 4 + 2 + 16 * ranks
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as file:
        file.write(struct.pack("<QIBB", 4223, ranks, 0, 0))
        for rank in range(ranks):
            file.write(struct.pack("<QQ", begin + rank * length, begin + (rank + 1) * length))
        for rank in range(ranks):
            file.write(block(rank, rounds))
    unfinished.rename(path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", nargs="?", choices=["weft", "LogGOPSim"])
    parser.add_argument("--ranks", type=int, default=65_536, help="a power of two")
    parser.add_argument("--weft", default=WEFT)
    options = parser.parse_args()
    ranks = options.ranks
    if ranks < 2 or ranks & (ranks - 1):
        sys.exit("bench: --ranks must be a power of two")
    path = write(ranks)
    if options.program is None:
        print(path)
        return
    # Costs of neither are the other's: what is compared is the speed of the same graph.
    # A torus of as many hosts; on the ideal network its links are not there.
    half = (ranks.bit_length() - 1) // 2
    dims = f"topology.dims=[{ranks >> half},{1 << half}]"
    ideal = [
        "-m",
        "communication-ip",
        "--set",
        dims,
        "--set",
        "fabric.kind=ideal",
        "--set",
        "nic.model=overheads",
    ]
    commands = {
        "weft": [options.weft, "replay", *ideal, path, "--threads", "1", "--quiet", "--json"],
        "LogGOPSim": ["LogGOPSim", "-f", path, "-b"],
    }
    environment = os.environ | {"LC_ALL": "C"}
    ran = subprocess.run(commands[options.program], capture_output=True, text=True, env=environment)
    if ran.returncode != 0:
        sys.exit(f"bench: {options.program} ended with {ran.returncode}: {(ran.stdout + ran.stderr)[-2000:]}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime
    messages = ranks * (ranks.bit_length() - 1)
    answer = {"messages_per_second": messages / seconds, "cpu_seconds": seconds, "messages": messages}
    print(json.dumps(answer | {"peak_memory_bytes": used.ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
