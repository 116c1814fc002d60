"""NumPy arrays: messages, collectives, derived types, windows and persistent requests of mpi4py."""

import numpy as np
from checks import check, finish, following, previous, rank, size, world
from mpi4py import MPI


def values(of: int, count: int, dtype: str = "d") -> np.ndarray:
    """The array of rank `of`."""
    return ((np.arange(count) * 7 + of * 13) % 1001).astype(dtype)


for dtype in ("b", "i", "q", "f", "d", "F", "D"):
    got = np.empty(1001, dtype)
    world.Sendrecv(values(rank, 1001, dtype), following, 0, got, previous, 0)
    check(np.array_equal(got, values(previous, 1001, dtype)), f"sendrecv of type {dtype}")

for count in (0, 1, 33, 8192, 250_001):
    got = np.empty(count)
    requests = [world.Irecv(got, previous, 1), world.Isend(values(rank, count), following, 1)]
    MPI.Request.Waitall(requests)
    check(np.array_equal(got, values(previous, count)), f"isend and irecv of {count}")

    got = values(rank, count)
    world.Bcast(got, root=size - 1)
    check(np.array_equal(got, values(size - 1, count)), f"bcast of {count}")

    total = np.empty(count)
    world.Allreduce(values(rank, count), total, op=MPI.SUM)
    check(np.array_equal(total, sum(values(r, count) for r in range(size))), f"allreduce of {count}")

    every = np.empty((size, count))
    world.Allgather(values(rank, count), every)
    check(all(np.array_equal(every[r], values(r, count)) for r in range(size)), f"allgather of {count}")

counts = [(r * 3) % 7 for r in range(size)]
starts = [sum(counts[:r]) for r in range(size)]
every = np.empty(sum(counts))
world.Gatherv(values(rank, counts[rank]), [every, counts, starts, MPI.DOUBLE], root=0)
check(
    rank != 0 or np.array_equal(every, np.concatenate([values(r, counts[r]) for r in range(size)])), "gatherv"
)

square = np.arange(size * size, dtype="i").reshape(size, size) + 1000 * rank
across = np.empty_like(square)
world.Alltoall(square, across)
check(
    all(np.array_equal(across[r], np.arange(rank * size, (rank + 1) * size) + 1000 * r) for r in range(size)),
    "alltoall",
)

matrix = values(rank, 100 * 60, "i").reshape(100, 60).copy()
halo = np.zeros_like(matrix)
column = MPI.INT.Create_vector(100, 1, 60).Commit()
world.Sendrecv([matrix[:, 59:].reshape(-1).copy(), MPI.INT], following, 2, [halo, 1, column], previous, 2)
check(
    np.array_equal(halo[:, 0], values(previous, 6000, "i").reshape(100, 60)[:, 59]) and not halo[:, 1:].any(),
    "a column as a derived type",
)
column.Free()

window = MPI.Win.Allocate(8 * 500, disp_unit=8, comm=world)
memory = np.frombuffer(window.tomemory(), "d")
memory[:] = 0
window.Fence()
window.Put(values(rank, 500), following)
window.Fence()
check(np.array_equal(memory, values(previous, 500)), "put between fences")
got = np.empty(500)
window.Lock(following, MPI.LOCK_SHARED)
window.Get(got, following)
window.Unlock(following)
check(np.array_equal(got, values(rank, 500)), "get under a lock")
window.Fence()
window.Accumulate(values(rank, 500), 0, op=MPI.SUM)
window.Fence()
expected = values(size - 1, 500) + sum(values(r, 500) for r in range(size))
check(rank != 0 or np.array_equal(memory, expected), "accumulate at rank 0")
window.Free()

out, got = np.empty(77), np.empty(77)
send, receive = world.Send_init(out, following, 3), world.Recv_init(got, previous, 3)
good = True
for turn in range(4):
    out[:] = values(rank + turn, 77)
    MPI.Prequest.Startall([receive, send])
    MPI.Request.Waitall([receive, send])
    good &= np.array_equal(got, values(previous + turn, 77))
send.Free()
receive.Free()
check(good, "persistent requests, four rounds")

# Jacobi's iteration of a chain: neighbours every step, a residual of all now and then.
field = np.zeros(102)
if rank == 0:
    field[0] = 1.0
left, right = (rank - 1 if rank > 0 else MPI.PROC_NULL), (rank + 1 if rank < size - 1 else MPI.PROC_NULL)
for step in range(200):
    world.Sendrecv(field[100:101], right, 4, field[0:1], left, 4)
    world.Sendrecv(field[1:2], left, 5, field[101:102], right, 5)
    field[1:101] = 0.5 * (field[0:100] + field[2:102])
    if step % 50 == 49:
        most = world.allreduce(float(field[1:101].max()), op=MPI.MAX)
check(0.9 < most < 1.0, "Jacobi's iteration")
finish()
