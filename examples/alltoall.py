#!/usr/bin/env python3
"""All-to-all in virtual time: each rank sends every other a block, for blocks of growing size.

    weft run -m ib-ndr-fattree -n 16 -- python3 examples/alltoall.py

It needs mpi4py over MPICH, as `make` installs it into build/venv. Sizes of blocks in bytes may follow:

    weft run -m bxi2-fattree -n 8 -- python3 examples/alltoall.py 64 4096

Rank 0 prints the virtual time of one MPI_Alltoall for each size: from a barrier on, the longest of all ranks,
as the mean of the rounds. Every rank checks every byte that it receives. A wrong one ends the program with
status 1.
"""

import argparse
import sys

from mpi4py import MPI

ROUNDS = 3


def block(source: int, target: int, size: int) -> bytes:
    """The block that one rank sends another: its bytes differ by sender, receiver and place."""
    first = (31 * source + 17 * target) % 251
    run = bytes((first + place) % 251 for place in range(251))
    return (run * (size // 251 + 1))[:size]


def exchange(world: MPI.Comm, size: int) -> tuple[float, bool]:
    """The mean time of an all-to-all in seconds, and whether this rank got what the others sent it."""
    rank, ranks = world.Get_rank(), world.Get_size()
    sent = bytearray(b"".join(block(rank, target, size) for target in range(ranks)))
    expected = b"".join(block(source, rank, size) for source in range(ranks))
    time, good = 0.0, True
    for _ in range(ROUNDS):
        received = bytearray(len(sent))
        world.Barrier()
        began = MPI.Wtime()
        world.Alltoall([sent, size, MPI.BYTE], [received, size, MPI.BYTE])
        time += MPI.Wtime() - began
        good = good and received == expected
    return time / ROUNDS, good


def main() -> None:
    """Runs all sizes, and prints a line for each from rank 0."""
    parser = argparse.ArgumentParser(description="MPI_Alltoall in virtual time")
    parser.add_argument("sizes", nargs="*", type=int, help="bytes of a block; 8 to 32768 where none is given")
    sizes = parser.parse_args().sizes or [8, 64, 512, 4096, 32768]
    world = MPI.COMM_WORLD
    if world.Get_rank() == 0:
        print(f"{world.Get_size()} ranks\nbytes per block  virtual time (us)  contents", flush=True)
    all_good = True
    for size in sizes:
        time, good = exchange(world, size)
        longest = world.allreduce(time, op=MPI.MAX)
        good = world.allreduce(good, op=MPI.LAND)
        all_good = all_good and good
        if world.Get_rank() == 0:
            print(f"{size:15}  {longest * 1e6:17.3f}  {'right' if good else 'WRONG'}", flush=True)
    sys.exit(0 if all_good else 1)


if __name__ == "__main__":
    main()
