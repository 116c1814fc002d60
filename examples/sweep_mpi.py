#!/usr/bin/env python3
"""A study over the ranks of an MPI job, through mpi4py: rank 0 collects, the others run points.

mpiexec -n 3 python -m mpi4py.futures examples/sweep_mpi.py [DIR]

Needs weft with its extra `mpi`, and an MPI.
"""

import sys

import weft
from mpi4py.futures import MPIPoolExecutor

STUDY = {
    "command": "osu",
    "seeds": 2,
    "fixed": {"benchmark": "allreduce", "machine": "exanest", "ranks": 8, "map": "random"},
    "vary": {"sizes": ["8", "1K"], "set": {"nic": {"model": ["exanet", "overheads"]}}},
}


def main() -> None:
    """Runs it, and prints the latencies of each interface."""
    output = sys.argv[1] if len(sys.argv) > 1 else None
    with MPIPoolExecutor() as executor:
        study = weft.sweep(STUDY, executor=executor, output=output)
    print(study.intervals.select("nic.model", "sizes", "seeds", "latency_us").collect())


if __name__ == "__main__":
    main()
