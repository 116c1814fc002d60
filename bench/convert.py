#!/usr/bin/env python3
"""Converts a trace of another program into weft's format, and measures it.

Usage: convert.py FORMAT [MEGABYTES]

FORMAT is goal, liballprof or ti: a ring of 16 ranks that compute, exchange messages and meet in allreduces,
written here in that format with about so many megabytes (64). The answer in JSON has the megabytes per second
of CPU time, and the peak memory of the command.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

WEFT = Path(__file__).resolve().parent.parent / "target/release/weft"
RANKS = 16
# Steps of a rank between two allreduces.
STEPS_PER_ALLREDUCE = 8


def neighbours(rank: int) -> tuple[int, int]:
    """The rank that a rank sends to, and the one that it receives from."""
    return (rank + 1) % RANKS, (rank - 1) % RANKS


def ti(rank: int, steps: int) -> Iterator[str]:
    """The lines of a rank in SimGrid's time-independent format."""
    to, source = neighbours(rank)
    yield f"{rank} init"
    for step in range(steps):
        yield f"{rank} compute {100000 + step}"
        yield f"{rank} irecv {source} {step % 7} 4096 6"
        yield f"{rank} isend {to} {step % 7} 4096 6"
        yield f"{rank} waitall 2"
        if step % STEPS_PER_ALLREDUCE == 0:
            yield f"{rank} allreduce 8 0 1"
    yield f"{rank} finalize"


def goal(rank: int, steps: int) -> Iterator[str]:
    """The lines of a rank in GOAL; an allreduce is one more exchange, for GOAL has none."""
    to, source = neighbours(rank)
    yield f"rank {rank} {{"
    last = None
    for step in range(steps):
        yield f"c{step}: calc {100 + step % 900}"
        yield f"r{step}: recv 4096b from {source} tag {step % 7}"
        yield f"s{step}: send 4096b to {to} tag {step % 7}"
        if last is not None:
            yield f"c{step} requires r{last}"
            yield f"c{step} requires s{last}"
        yield f"r{step} requires c{step}"
        yield f"s{step} requires c{step}"
        last = step
    yield "}"


def liballprof(rank: int, steps: int) -> Iterator[str]:
    """The lines of a rank as liballprof writes them."""
    to, source = neighbours(rank)
    world, now = f"0,{rank},{RANKS}", 1_000_000
    yield f"MPI_Init:-:1:2:{now}"
    yield f"MPI_Comm_rank:{now + 1}:{world}:77:{now + 2}"
    for step in range(steps):
        now += 10
        yield f"MPI_Irecv:{now}:5:4096:1,1,1:{source}:{step % 7}:{world}:1000:{now + 1}"
        yield f"MPI_Send:{now + 2}:5:4096:1,1,1:{to}:{step % 7}:{world}:{now + 3}"
        yield f"MPI_Wait:{now + 4}:1000:7:{now + 5}"
        if step % STEPS_PER_ALLREDUCE == 0:
            yield f"MPI_Allreduce:{now + 6}:5:6:1:11,8,8:3:{world}:{now + 7}"
    yield f"MPI_Finalize:{now + 10}:-"


def write(format_name: str, folder: Path, size: int) -> Path:
    """Writes a trace of about so many bytes; the file that names it."""
    lines = {"goal": goal, "liballprof": liballprof, "ti": ti}[format_name]
    probe = sum(len(line) + 1 for line in lines(RANKS - 1, 100))
    steps = max(1, size * 100 // (probe * RANKS))
    if format_name == "liballprof":
        for rank in range(RANKS):
            with (folder / f"trace-{rank}.txt").open("w") as file:
                file.writelines(f"{line}\n" for line in lines(rank, steps))
        return folder / "trace-0.txt"
    name = folder / f"trace.{format_name}"
    with name.open("w") as file:
        file.write({"goal": f"num_ranks {RANKS}\n", "ti": "# speed: 1Gf\n"}[format_name])
        for rank in range(RANKS):
            file.writelines(f"{line}\n" for line in lines(rank, steps))
    return name


def main() -> None:
    """Writes the trace, converts it, and prints the answer."""
    format_name = sys.argv[1]
    size = int(float(sys.argv[2]) * 1e6) if len(sys.argv) > 2 else 64_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace = write(format_name, folder, size)
        size = sum(file.stat().st_size for file in folder.iterdir())
        weft = os.environ.get("WEFT", WEFT)
        command = [weft, "trace", "convert", trace, "-o", folder / "out.weft", "--json"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    rate = size / 1e6 / (usage.ru_utime + usage.ru_stime)
    print(json.dumps({"megabytes_per_second": rate, "peak_memory_bytes": usage.ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
