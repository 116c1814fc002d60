"""Python objects: pickled messages and collectives of mpi4py, small and large."""

from checks import check, finish, following, previous, rank, size, world
from mpi4py import MPI

thing = {"rank": rank, "list": list(range(rank)), "text": "é" * 10, "tuple": (1.5, None, True)}
got = world.sendrecv(thing, dest=following, sendtag=1, source=previous, recvtag=1)
check(
    got["rank"] == previous and got["list"] == list(range(previous)) and got["tuple"] == (1.5, None, True),
    "sendrecv",
)

for length in (10, 5_000, 500_000):
    request = world.isend(bytes([rank % 256]) * length, dest=following, tag=2)
    got = world.recv(source=previous, tag=2)
    request.wait()
    check(got == bytes([previous % 256]) * length, f"isend and recv of {length} bytes")

status = MPI.Status()
request = world.isend(["probed"] * 100, dest=following, tag=3)
message = world.mprobe(source=MPI.ANY_SOURCE, tag=3, status=status)
got = message.recv()
request.wait()
check(got == ["probed"] * 100 and status.Get_source() == previous, "mprobe and recv")

for root in sorted({0, size - 1, size // 2}):
    got = world.bcast({"from": rank} if rank == root else None, root=root)
    check(got == {"from": root}, f"bcast from {root}")
    gathered = world.gather((rank, "x" * rank), root=root)
    check(gathered == ([(r, "x" * r) for r in range(size)] if rank == root else None), "gather")
    got = world.scatter([[r] * r for r in range(size)] if rank == root else None, root=root)
    check(got == [rank] * rank, "scatter")

check(world.allgather(rank**2) == [r**2 for r in range(size)], "allgather")
check(world.alltoall([(rank, r) for r in range(size)]) == [(r, rank) for r in range(size)], "alltoall")
check(world.allreduce([rank]) == list(range(size)), "allreduce of lists")
check(
    world.reduce({rank}, op=lambda a, b: a | b, root=0) == (set(range(size)) if rank == 0 else None),
    "reduce of sets",
)
check(world.scan(rank) == sum(range(rank + 1)), "scan")
check(world.exscan(rank) == (sum(range(rank)) if rank else None), "exscan")

part = world.Split(color=rank % 2, key=-rank)
check(part.allgather(rank) == sorted(range(rank % 2, size, 2), reverse=True), "allgather in halves")
part.Free()

big = list(range(200_000))
check(world.bcast(big if rank == 0 else None) == big, "bcast of a large list")
finish()
