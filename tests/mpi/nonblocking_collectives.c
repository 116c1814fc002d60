/* Non-blocking, persistent and neighbourhood collectives. */
#include "checks.h"

static const int counts[] = {1, 19, 1003, 30011};

static bool is_sum(const int *values, long first, long count)
{
    for (long i = 0; i < count; i++) {
        int sum = 0;
        for (int rank = 0; rank < world_size; rank++)
            sum += element(rank, first + i);
        if (values[i] != sum)
            return false;
    }
    return true;
}

/* All at once, waited for together. */
static void together(int count)
{
    size_t ranks = (size_t)world_size, bytes = (size_t)count * sizeof(int);
    enum { BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, BLOCK, SCAN, BARRIER, KINDS };
    MPI_Request requests[KINDS];
    int root = world_size / 2;
    bool is_root = world_rank == root;
    int *mine = elements(world_rank, (long)world_size * count);
    int *broadcast = elements(world_rank, count);
    int *gathered = allocate(ranks * bytes), *scattered = allocate(bytes), *all = allocate(ranks * bytes);
    int *exchanged = allocate(ranks * bytes), *reduced = allocate(bytes), *summed = allocate(bytes);
    int *block = allocate(bytes), *scanned = allocate(bytes);

    MPI_Ibcast(broadcast, count, MPI_INT, root, MPI_COMM_WORLD, &requests[BCAST]);
    MPI_Igather(mine, count, MPI_INT, gathered, count, MPI_INT, root, MPI_COMM_WORLD, &requests[GATHER]);
    MPI_Iscatter(mine, count, MPI_INT, scattered, count, MPI_INT, root, MPI_COMM_WORLD, &requests[SCATTER]);
    MPI_Iallgather(mine, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD, &requests[ALLGATHER]);
    MPI_Ialltoall(mine, count, MPI_INT, exchanged, count, MPI_INT, MPI_COMM_WORLD, &requests[ALLTOALL]);
    MPI_Ireduce(mine, reduced, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD, &requests[REDUCE]);
    MPI_Iallreduce(mine, summed, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[ALLREDUCE]);
    MPI_Ireduce_scatter_block(mine, block, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[BLOCK]);
    MPI_Iscan(mine, scanned, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[SCAN]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[BARRIER]);
    MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);

    check(holds_elements(broadcast, root, count), "ibcast of %d", count);
    bool good = true, good_all = true, good_exchange = true, good_scan = true;
    for (int rank = 0; rank < world_size; rank++) {
        good &= !is_root || holds_elements(gathered + (long)rank * count, rank, count);
        good_all &= holds_elements(all + (long)rank * count, rank, count);
        for (int i = 0; i < count; i++)
            good_exchange &= exchanged[(long)rank * count + i] == element(rank, (long)world_rank * count + i);
    }
    for (int i = 0; i < count; i++) {
        int most = 0;
        for (int rank = 0; rank <= world_rank; rank++)
            most = element(rank, i) > most ? element(rank, i) : most;
        good_scan &= scanned[i] == most;
    }
    check(good, "igather of %d", count);
    good = true;
    for (int i = 0; i < count; i++)
        good &= scattered[i] == element(root, (long)world_rank * count + i);
    check(good, "iscatter of %d", count);
    check(good_all, "iallgather of %d", count);
    check(good_exchange, "ialltoall of %d", count);
    check(!is_root || is_sum(reduced, 0, count), "ireduce of %d", count);
    check(is_sum(summed, 0, count), "iallreduce of %d", count);
    check(is_sum(block, (long)world_rank * count, count), "ireduce_scatter_block of %d", count);
    check(good_scan, "iscan of %d", count);
    int *freed[] = {mine, broadcast, gathered, scattered, all, exchanged, reduced, summed, block, scanned};
    for (int i = 0; i < LENGTH(freed); i++)
        free(freed[i]);
}

/* Progress by tests, while point-to-point messages pass by. */
static void tested_while_talking(void)
{
    int value = world_rank == 0 ? 4711 : 0, passed = -1, done = 0;
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    MPI_Request request;
    MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Sendrecv(&world_rank, 1, MPI_INT, right, 9, &passed, 1, MPI_INT, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (!done)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    check(value == 4711 && passed == left, "ibcast tested for while messages pass");
}

static void ten_outstanding(void)
{
    MPI_Request requests[10];
    int values[10], sums[10];
    bool good = true;
    for (int i = 0; i < 10; i++) {
        values[i] = world_rank + i;
        MPI_Iallreduce(&values[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 9; i >= 0; i--) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        good &= sums[i] == world_size * (world_size - 1) / 2 + i * world_size;
    }
    check(good, "ten iallreduce at once, waited for in reverse");
}

static void persistent(void)
{
    enum { COUNT = 777 };
    int values[COUNT], sums[COUNT];
    MPI_Request requests[2];
    bool good = true;
    MPI_Bcast_init(values, COUNT, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Allreduce_init(values, sums, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < COUNT; i++)
            values[i] = world_rank == 0 ? i + round : -1;
        for (int which = 0; which < 2; which++) {
            MPI_Start(&requests[which]);
            MPI_Wait(&requests[which], MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < COUNT; i++)
            good &= values[i] == i + round && sums[i] == world_size * (i + round);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    check(good, "persistent bcast and allreduce, four rounds");
}

static void neighbours(void)
{
    int periodic = 1, size = world_size, left, right;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Cart_shift(ring, 0, 1, &left, &right);
    enum { COUNT = 301 };
    int *mine = elements(world_rank, COUNT), got[2][COUNT], out[2][COUNT];
    MPI_Neighbor_allgather(mine, COUNT, MPI_INT, got, COUNT, MPI_INT, ring);
    check(holds_elements(got[0], left, COUNT) && holds_elements(got[1], right, COUNT), "neighbour allgather on a ring");
    for (int i = 0; i < COUNT; i++) {
        out[0][i] = element(world_rank, i) + 1; /* to the left */
        out[1][i] = element(world_rank, i) + 2;
    }
    MPI_Request request;
    MPI_Ineighbor_alltoall(out, COUNT, MPI_INT, got, COUNT, MPI_INT, ring, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bool good = true;
    for (int i = 0; i < COUNT; i++)
        good &= got[0][i] == element(left, i) + 2 && got[1][i] == element(right, i) + 1;
    /* With less than three ranks both neighbours are one, and which block is which is a matter of taste. */
    if (world_size > 2)
        check(good, "neighbour ialltoall on a ring");
    free(mine);
    MPI_Comm_free(&ring);
}

int main(int argc, char **argv)
{
    checks_begin(&argc, &argv);
    for (int i = 0; i < LENGTH(counts); i++)
        together(counts[i]);
    tested_while_talking();
    ten_outstanding();
    persistent();
    neighbours();
    return checks_end();
}
