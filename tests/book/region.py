"""A program with a region of interest, for the pages that look at one: a warm-up, then what is measured."""

from mpi4py import MPI

MPI.COMM_WORLD.allreduce(1)
MPI.Pcontrol(1)
for _ in range(3):
    MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank)
MPI.Pcontrol(0)
