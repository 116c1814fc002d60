/* Patterns of communication of MPI programs, one per run, in rounds: patterns PATTERN BYTES ROUNDS.
 *
 * compare.py runs each under `weft run --record` and replays the recording: both must take the same time.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE
#define IGNORE_ALL MPI_STATUSES_IGNORE
#define CHAR MPI_CHAR
#define SUM MPI_DOUBLE, MPI_SUM

static int rank, size, right, left, bytes, doubles, rounds, turn;
static char *out, *in;
static int *counts, *places;
static MPI_Request requests[32];
static MPI_Win window;

static void wait(void)
{
    MPI_Wait(requests, IGNORE);
}

/* ---- Point-to-point ---------------------------------------------------------------------------------------------- */

/* Even ranks send first; the last of an odd number has no partner. */
static void ping_pong(int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm))
{
    int partner = rank ^ 1;
    if (partner >= size)
        return;
    if (rank % 2 == 0)
        send(out, bytes, CHAR, partner, 0, WORLD);
    MPI_Recv(in, bytes, CHAR, partner, 0, WORLD, IGNORE);
    if (rank % 2 == 1)
        send(out, bytes, CHAR, partner, 0, WORLD);
}

static void pingpong(void) { ping_pong(MPI_Send); }
static void ssend(void) { ping_pong(MPI_Ssend); }

static void bsend(void)
{
    if (turn == 0)
        MPI_Buffer_attach(malloc(1 << 24), 1 << 24);
    ping_pong(MPI_Bsend);
}

static void issend(void)
{
    MPI_Irecv(in, bytes, CHAR, left, 0, WORLD, requests);
    MPI_Issend(out, bytes, CHAR, right, 0, WORLD, requests + 1);
    MPI_Waitall(2, requests, IGNORE_ALL);
}

static void sendrecv(void) { MPI_Sendrecv(out, bytes, CHAR, right, 0, in, bytes, CHAR, left, 0, WORLD, IGNORE); }

static void both_neighbours(void)
{
    MPI_Irecv(in, bytes, CHAR, left, 0, WORLD, requests);
    MPI_Irecv(in + bytes, bytes, CHAR, right, 1, WORLD, requests + 1);
    MPI_Isend(out, bytes, CHAR, right, 0, WORLD, requests + 2);
    MPI_Isend(out, bytes, CHAR, left, 1, WORLD, requests + 3);
}

static void waitall(void)
{
    both_neighbours();
    MPI_Waitall(4, requests, IGNORE_ALL);
}

static void waitany(void)
{
    both_neighbours();
    for (int i = 0, index; i < 4; i++)
        MPI_Waitany(4, requests, &index, IGNORE);
}

static void waitsome(void)
{
    both_neighbours();
    for (int done = 0, count, indices[4]; done < 4; done += count)
        MPI_Waitsome(4, requests, &count, indices, IGNORE_ALL);
}

static void testall(void)
{
    both_neighbours();
    for (int done = 0; !done;)
        MPI_Testall(4, requests, &done, IGNORE_ALL);
}

static void testany(void)
{
    both_neighbours();
    for (int done = 0, index, one; done < 4; done += one)
        MPI_Testany(4, requests, &index, &one, IGNORE);
}

/* More requests than MPICH looks through between two polls. */
static void many(void)
{
    for (int i = 0; i < 13; i++)
        MPI_Irecv(in, bytes, CHAR, left, i, WORLD, requests + i);
    for (int i = 0; i < 13; i++)
        MPI_Isend(out, bytes, CHAR, right, i, WORLD, requests + 13 + i);
    for (int i = 0, index; i < 26; i++)
        MPI_Waitany(26, requests, &index, IGNORE);
}

static void halo(void)
{
    int neighbours[4] = {right, left, (rank + 2) % size, (rank + size - 2) % size};
    for (int i = 0; i < 4; i++)
        MPI_Irecv(in + i * bytes, bytes, CHAR, neighbours[i], i, WORLD, requests + i);
    for (int i = 0; i < 4; i++)
        MPI_Isend(out, bytes, CHAR, neighbours[i], i ^ 1, WORLD, requests + 4 + i);
    MPI_Waitall(8, requests, IGNORE_ALL);
}

static void bandwidth(void)
{
    int partner = rank ^ 1;
    if (partner >= size)
        return;
    for (int i = 0; i < 16; i++)
        if (rank % 2 == 0)
            MPI_Isend(out, bytes, CHAR, partner, 0, WORLD, requests + i);
        else
            MPI_Irecv(in, bytes, CHAR, partner, 0, WORLD, requests + i);
    MPI_Waitall(16, requests, IGNORE_ALL);
    if (rank % 2 == 0)
        MPI_Recv(in, 4, CHAR, partner, 1, WORLD, IGNORE);
    else
        MPI_Send(out, 4, CHAR, partner, 1, WORLD);
}

static void unexpected(void)
{
    for (int i = 0; i < 8; i++)
        MPI_Isend(out, bytes, CHAR, right, i, WORLD, requests + i);
    for (int i = 7; i >= 0; i--)
        MPI_Recv(in, bytes, CHAR, left, i, WORLD, IGNORE);
    MPI_Waitall(8, requests, IGNORE_ALL);
}

static void probe(void)
{
    MPI_Isend(out, bytes, CHAR, right, 0, WORLD, requests);
    MPI_Probe(left, 0, WORLD, IGNORE);
    MPI_Recv(in, bytes, CHAR, left, 0, WORLD, IGNORE);
    wait();
}

static void iprobe(void)
{
    MPI_Isend(out, bytes, CHAR, right, 0, WORLD, requests);
    for (int there = 0; !there;)
        MPI_Iprobe(left, 0, WORLD, &there, IGNORE);
    MPI_Recv(in, bytes, CHAR, left, 0, WORLD, IGNORE);
    wait();
}

static void master(void)
{
    if (rank != 0) {
        MPI_Send(out, bytes, CHAR, 0, 0, WORLD);
        MPI_Recv(in, bytes, CHAR, 0, 1, WORLD, IGNORE);
        return;
    }
    for (int i = 1; i < size; i++) {
        MPI_Status status;
        MPI_Recv(in, bytes, CHAR, MPI_ANY_SOURCE, 0, WORLD, &status);
        MPI_Send(out, bytes, CHAR, status.MPI_SOURCE, 1, WORLD);
    }
}

static void persistent(void)
{
    if (turn == 0) {
        MPI_Send_init(out, bytes, CHAR, right, 0, WORLD, requests);
        MPI_Recv_init(in, bytes, CHAR, left, 0, WORLD, requests + 1);
    }
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, IGNORE_ALL);
}

static void self(void)
{
    MPI_Irecv(in, bytes, CHAR, rank, 0, WORLD, requests);
    MPI_Send(out, bytes, CHAR, rank, 0, WORLD);
    wait();
}

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* NAME and iNAME: the collective with these arguments, and its form that does not block. */
#define COLLECTIVE(name, function, ...)                    \
    static void name(void) { MPI_##function(__VA_ARGS__, WORLD); }

#define NON_BLOCKING(name, function, ...)                  \
    static void name(void)                                 \
    {                                                      \
        MPI_##function(__VA_ARGS__, WORLD, requests);      \
        wait();                                            \
    }

#define BLOCK out, bytes, CHAR, in, bytes, CHAR
#define VECTOR out, in, doubles, SUM
#define BLOCKS out, bytes, CHAR, in, counts, places, CHAR

COLLECTIVE(bcast, Bcast, out, bytes, CHAR, 0)
COLLECTIVE(bcast_by_turns, Bcast, out, bytes, CHAR, turn % size)
COLLECTIVE(reduce, Reduce, VECTOR, 0)
COLLECTIVE(reduce_by_turns, Reduce, VECTOR, turn % size)
COLLECTIVE(allreduce, Allreduce, VECTOR)
COLLECTIVE(gather, Gather, BLOCK, 0)
COLLECTIVE(gatherv, Gatherv, BLOCKS, 0)
COLLECTIVE(scatter, Scatter, BLOCK, 0)
COLLECTIVE(scatterv, Scatterv, out, counts, places, CHAR, in, bytes, CHAR, 0)
COLLECTIVE(allgather, Allgather, BLOCK)
COLLECTIVE(allgatherv, Allgatherv, BLOCKS)
COLLECTIVE(alltoall, Alltoall, BLOCK)
COLLECTIVE(alltoallv, Alltoallv, out, counts, places, CHAR, in, counts, places, CHAR)
COLLECTIVE(reduce_scatter, Reduce_scatter_block, VECTOR)
COLLECTIVE(scan, Scan, VECTOR)
COLLECTIVE(exscan, Exscan, VECTOR)
NON_BLOCKING(ibcast, Ibcast, out, bytes, CHAR, 0)
NON_BLOCKING(ireduce, Ireduce, VECTOR, 0)
NON_BLOCKING(iallreduce, Iallreduce, VECTOR)
NON_BLOCKING(igather, Igather, BLOCK, 0)
NON_BLOCKING(igatherv, Igatherv, BLOCKS, 0)
NON_BLOCKING(iscatter, Iscatter, BLOCK, 0)
NON_BLOCKING(iscatterv, Iscatterv, out, counts, places, CHAR, in, bytes, CHAR, 0)
NON_BLOCKING(iallgather, Iallgather, BLOCK)
NON_BLOCKING(iallgatherv, Iallgatherv, BLOCKS)
NON_BLOCKING(ialltoall, Ialltoall, BLOCK)
NON_BLOCKING(ialltoallv, Ialltoallv, out, counts, places, CHAR, in, counts, places, CHAR)
NON_BLOCKING(ireduce_scatter, Ireduce_scatter_block, VECTOR)
NON_BLOCKING(iscan, Iscan, VECTOR)
NON_BLOCKING(iexscan, Iexscan, VECTOR)

static void barrier(void) { MPI_Barrier(WORLD); }

static void ibarrier(void)
{
    MPI_Ibarrier(WORLD, requests);
    wait();
}

static void overlap(void)
{
    MPI_Iallreduce(VECTOR, WORLD, requests);
    sendrecv();
    wait();
}

static void mix(void)
{
    bcast_by_turns();
    MPI_Reduce(VECTOR, (turn + 1) % size, WORLD);
    sendrecv();
    if (turn % 5 == 0)
        MPI_Allreduce(out, in, 1, SUM, WORLD);
}

static void dup(void)
{
    MPI_Comm new;
    MPI_Comm_dup(WORLD, &new);
    MPI_Barrier(new);
    MPI_Comm_free(&new);
}

static void split(void)
{
    MPI_Comm new;
    MPI_Comm_split(WORLD, rank & 1, rank, &new);
    MPI_Allreduce(VECTOR, new);
    MPI_Comm_free(&new);
}

/* ---- One-sided --------------------------------------------------------------------------------------------------- */

static void put(void) { MPI_Put(out, bytes, CHAR, right, 0, bytes, CHAR, window); }

static void win_put(void)
{
    MPI_Win_fence(0, window);
    put();
    MPI_Win_fence(0, window);
}

static void win_accumulate(void)
{
    MPI_Win_fence(0, window);
    MPI_Accumulate(out, doubles, MPI_DOUBLE, right, 0, doubles, SUM, window);
    MPI_Win_fence(0, window);
}

static void win_lock(void)
{
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
    put();
    MPI_Win_unlock(right, window);
}

static void win_get(void)
{
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
    MPI_Get(in, bytes, CHAR, right, 0, bytes, CHAR, window);
    MPI_Win_unlock(right, window);
}

static void win_groups(void)
{
    MPI_Group world, neighbours;
    int both[2] = {left, right};
    MPI_Comm_group(WORLD, &world);
    MPI_Group_incl(world, left == right ? 1 : 2, both, &neighbours);
    MPI_Win_post(neighbours, 0, window);
    MPI_Win_start(neighbours, 0, window);
    put();
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    MPI_Group_free(&neighbours);
    MPI_Group_free(&world);
}

static void win_flush(void)
{
    if (turn == 0)
        MPI_Win_lock_all(0, window);
    put();
    MPI_Win_flush(right, window);
    if (turn == rounds - 1)
        MPI_Win_unlock_all(window);
}

static void win_count(void)
{
    long one = 1, before;
    if (turn == 0)
        MPI_Win_lock_all(0, window);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    if (turn == rounds - 1)
        MPI_Win_unlock_all(window);
}

#define PATTERNS(p)                                                                                                   \
    p(pingpong) p(ssend) p(bsend) p(issend) p(sendrecv) p(waitall) p(waitany) p(waitsome) p(testall) p(testany)       \
    p(many) p(halo) p(bandwidth) p(unexpected) p(probe) p(iprobe) p(master) p(persistent) p(self)                     \
    p(barrier) p(bcast) p(bcast_by_turns) p(reduce) p(reduce_by_turns) p(allreduce) p(gather) p(gatherv) p(scatter)   \
    p(scatterv) p(allgather) p(allgatherv) p(alltoall) p(alltoallv) p(reduce_scatter) p(scan) p(exscan)               \
    p(ibarrier) p(ibcast) p(ireduce) p(iallreduce) p(igather) p(igatherv) p(iscatter) p(iscatterv) p(iallgather)      \
    p(iallgatherv) p(ialltoall) p(ialltoallv) p(ireduce_scatter) p(iscan) p(iexscan) p(overlap) p(mix) p(dup)         \
    p(split) p(win_put) p(win_accumulate) p(win_lock) p(win_get) p(win_groups) p(win_flush) p(win_count)

#define ENTRY(name) {#name, name},
static const struct {
    const char *name;
    void (*run)(void);
} patterns[] = {PATTERNS(ENTRY)};
#define KINDS (sizeof patterns / sizeof patterns[0])

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        abort();
    return memory;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        for (size_t i = 0; i < KINDS; i++)
            puts(patterns[i].name);
        return 0;
    }
    size_t pattern = 0;
    while (pattern < KINDS && strcmp(patterns[pattern].name, argv[1]))
        pattern++;
    if (pattern == KINDS) {
        fprintf(stderr, "patterns: there is no %s\n", argv[1]);
        return 2;
    }
    bytes = atoi(argv[2]);
    rounds = atoi(argv[3]);
    doubles = bytes < 8 ? 1 : bytes / 8;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    size_t room = (size_t)(bytes + 8) * (size_t)(size + 8);
    out = allocate(room);
    in = allocate(room);
    counts = allocate((size_t)size * sizeof *counts);
    places = allocate((size_t)size * sizeof *places);
    for (int i = 0; i < size; i++) {
        counts[i] = bytes;
        places[i] = bytes * i;
    }
    int has_window = !strncmp(argv[1], "win", 3);
    if (has_window)
        MPI_Win_create(in, (MPI_Aint)room, 1, MPI_INFO_NULL, WORLD, &window);
    MPI_Barrier(WORLD);
    for (turn = 0; turn < rounds; turn++)
        patterns[pattern].run();
    if (has_window)
        MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
