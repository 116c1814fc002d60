"""Checks of a test program in Python: a line each from rank 0 with the verdict of all ranks."""

import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()
size = world.Get_size()
following = (rank + 1) % size
previous = (rank - 1) % size

_comm = world.Dup()
_done = _failed = 0


def check(good: bool, name: str) -> None:
    """Reports a check, by all ranks."""
    global _done, _failed
    first = _comm.allreduce(size if good else rank, op=MPI.MIN)
    _done += 1
    _failed += first != size
    if rank == 0:
        print("ok      " + name if first == size else f"FAILED  {name} (rank {first})", flush=True)


def finish() -> None:
    """Prints the count and ends the program with the status that it deserves."""
    if rank == 0:
        print(f"{_done} checks, {_failed} failed", flush=True)
    sys.exit(1 if _failed else 0)
