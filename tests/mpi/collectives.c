/* Blocking collectives: odd counts, several roots, in place, uneven blocks, operations of MPI and of the user. */
#include "checks.h"

static const int counts[] = {0, 1, 3, 17, 1000, 4097, 70001};

static int sum_of(long index)
{
    int sum = 0;
    for (int rank = 0; rank < world_size; rank++)
        sum += element(rank, index);
    return sum;
}

static bool holds_sums(const int *values, long first, long count)
{
    for (long i = 0; i < count; i++)
        if (values[i] != sum_of(first + i))
            return false;
    return true;
}

static void broadcast(int count)
{
    int root[3];
    bool good = true;
    for (int r = 0; r < roots(root); r++) {
        int *values = elements(world_rank, count);
        MPI_Bcast(values, count, MPI_INT, root[r], MPI_COMM_WORLD);
        good &= holds_elements(values, root[r], count);
        free(values);
    }
    check(good, "bcast of %d", count);
}

static void gather_and_scatter(int count)
{
    int root[3];
    bool gathered = true, scattered = true;
    for (int r = 0; r < roots(root); r++) {
        bool is_root = world_rank == root[r];
        int *mine = elements(world_rank, count);
        int *all = allocate((size_t)world_size * (size_t)count * sizeof *all);
        MPI_Gather(mine, count, MPI_INT, all, count, MPI_INT, root[r], MPI_COMM_WORLD);
        for (int rank = 0; is_root && rank < world_size; rank++)
            gathered &= holds_elements(all + (long)rank * count, rank, count);
        memset(mine, 0xff, (size_t)count * sizeof *mine);
        if (is_root)
            MPI_Scatter(all, count, MPI_INT, MPI_IN_PLACE, count, MPI_INT, root[r], MPI_COMM_WORLD);
        else
            MPI_Scatter(NULL, count, MPI_INT, mine, count, MPI_INT, root[r], MPI_COMM_WORLD);
        scattered &= holds_elements(is_root ? all + (long)world_rank * count : mine, world_rank, count);
        free(mine);
        free(all);
    }
    check(gathered, "gather of %d", count);
    check(scattered, "scatter of %d, in place at the root", count);
}

/* Blocks of rank + 1 times `unit` elements, in reverse order with gaps. */
static long blocks(int unit, int *sizes, int *places)
{
    long at = 0;
    for (int rank = world_size - 1; rank >= 0; rank--) {
        sizes[rank] = (rank + 1) * unit % 5003;
        places[rank] = (int)at;
        at += sizes[rank] + 2;
    }
    return at;
}

static void uneven_blocks(int unit)
{
    int *sizes = allocate((size_t)world_size * sizeof *sizes), *places = allocate((size_t)world_size * sizeof *places);
    long length = blocks(unit, sizes, places);
    int *all = allocate((size_t)length * sizeof *all), *mine = elements(world_rank, sizes[world_rank]);
    int root = world_size - 1;

    bool good = true;
    MPI_Allgatherv(mine, sizes[world_rank], MPI_INT, all, sizes, places, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < world_size; rank++)
        good &= holds_elements(all + places[rank], rank, sizes[rank]);
    check(good, "allgatherv of uneven blocks of %d", unit);

    memset(all, 0, (size_t)length * sizeof *all);
    MPI_Gatherv(mine, sizes[world_rank], MPI_INT, all, sizes, places, MPI_INT, root, MPI_COMM_WORLD);
    good = true;
    for (int rank = 0; world_rank == root && rank < world_size; rank++)
        good &= holds_elements(all + places[rank], rank, sizes[rank]);
    check(good, "gatherv of uneven blocks of %d", unit);

    memset(mine, 0, (size_t)sizes[world_rank] * sizeof *mine);
    MPI_Scatterv(all, sizes, places, MPI_INT, mine, sizes[world_rank], MPI_INT, root, MPI_COMM_WORLD);
    check(holds_elements(mine, world_rank, sizes[world_rank]), "scatterv of uneven blocks of %d", unit);
    free(mine);
    free(all);
    free(sizes);
    free(places);
}

static void all_to_all(int count)
{
    int *out = allocate((size_t)world_size * (size_t)count * sizeof *out);
    int *in = allocate((size_t)world_size * (size_t)count * sizeof *in);
    for (int to = 0; to < world_size; to++)
        for (int i = 0; i < count; i++)
            out[(long)to * count + i] = element(world_rank, i + 3L * to);
    MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    bool good = true;
    for (int from = 0; from < world_size; from++)
        for (int i = 0; i < count; i++)
            good &= in[(long)from * count + i] == element(from, i + 3L * world_rank);
    check(good, "alltoall of %d", count);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, count, MPI_INT, MPI_COMM_WORLD);
    check(memcmp(in, out, (size_t)world_size * (size_t)count * sizeof *in) == 0, "alltoall of %d in place", count);
    free(out);
    free(in);
}

/* Rank a sends (a + b) % 5 * unit elements to rank b; with a type per peer for alltoallw. */
static void uneven_all_to_all(int unit)
{
    size_t ranks = (size_t)world_size;
    int *sizes = allocate(ranks * sizeof *sizes), *places = allocate(ranks * sizeof *places);
    int *offsets = allocate(ranks * sizeof *offsets);
    MPI_Datatype *types = allocate(ranks * sizeof *types);
    int at = 0;
    for (int peer = 0; peer < world_size; peer++) {
        sizes[peer] = (world_rank + peer) % 5 * unit;
        places[peer] = at;
        offsets[peer] = at * (int)sizeof(int);
        types[peer] = MPI_INT;
        at += sizes[peer];
    }
    int *out = allocate((size_t)at * sizeof *out), *in = allocate((size_t)at * sizeof *in);
    for (int peer = 0; peer < world_size; peer++)
        for (int i = 0; i < sizes[peer]; i++)
            out[places[peer] + i] = element(world_rank, i + peer);
    for (int which = 0; which < 2; which++) {
        memset(in, 0xff, (size_t)at * sizeof *in);
        if (which == 0)
            MPI_Alltoallv(out, sizes, places, MPI_INT, in, sizes, places, MPI_INT, MPI_COMM_WORLD);
        else
            MPI_Alltoallw(out, sizes, offsets, types, in, sizes, offsets, types, MPI_COMM_WORLD);
        bool good = true;
        for (int peer = 0; peer < world_size; peer++)
            for (int i = 0; i < sizes[peer]; i++)
                good &= in[places[peer] + i] == element(peer, i + world_rank);
        check(good, "%s of blocks of %d", which == 0 ? "alltoallv" : "alltoallw", unit);
    }
    free(out);
    free(in);
    free(sizes);
    free(places);
    free(offsets);
    free(types);
}

static void all_gather(int count)
{
    int *all = allocate((size_t)world_size * (size_t)count * sizeof *all);
    for (int i = 0; i < count; i++)
        all[(long)world_rank * count + i] = element(world_rank, i);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count, MPI_INT, MPI_COMM_WORLD);
    bool good = true;
    for (int rank = 0; rank < world_size; rank++)
        good &= holds_elements(all + (long)rank * count, rank, count);
    check(good, "allgather of %d in place", count);
    free(all);
}

static void reductions(int count)
{
    int root[3];
    int *mine = elements(world_rank, count), *result = allocate((size_t)count * sizeof *result);
    bool good = true;
    for (int r = 0; r < roots(root); r++) {
        bool is_root = world_rank == root[r];
        memcpy(result, mine, (size_t)count * sizeof *result);
        MPI_Reduce(is_root ? MPI_IN_PLACE : mine, result, count, MPI_INT, MPI_SUM, root[r], MPI_COMM_WORLD);
        good &= !is_root || holds_sums(result, 0, count);
    }
    check(good, "reduce of %d, in place at the root", count);
    MPI_Allreduce(mine, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(holds_sums(result, 0, count), "allreduce of %d", count);

    MPI_Scan(mine, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    good = true;
    for (int i = 0; i < count; i++) {
        int sum = 0;
        for (int rank = 0; rank <= world_rank; rank++)
            sum += element(rank, i);
        good &= result[i] == sum;
    }
    check(good, "scan of %d", count);
    MPI_Exscan(mine, result, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    good = true;
    for (int i = 0; world_rank > 0 && i < count; i++) {
        int sum = 0;
        for (int rank = 0; rank < world_rank; rank++)
            sum += element(rank, i);
        good &= result[i] == sum;
    }
    check(good, "exscan of %d", count);
    free(mine);
    free(result);
}

static void reduce_scatter(int unit)
{
    int *sizes = allocate((size_t)world_size * sizeof *sizes), before = 0, total = 0;
    for (int rank = 0; rank < world_size; rank++) {
        sizes[rank] = rank % 3 * unit;
        before += rank < world_rank ? sizes[rank] : 0;
        total += sizes[rank];
    }
    int *mine = elements(world_rank, total > world_size * unit ? total : world_size * unit);
    int *result = allocate((size_t)(2 * unit) * sizeof *result);
    MPI_Reduce_scatter(mine, result, sizes, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(holds_sums(result, before, sizes[world_rank]), "reduce_scatter of blocks of %d", unit);
    MPI_Reduce_scatter_block(mine, result, unit, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(holds_sums(result, (long)world_rank * unit, unit), "reduce_scatter_block of %d", unit);
    free(sizes);
    free(mine);
    free(result);
}

static void predefined_operations(void)
{
    int mine = world_rank + 1, result, expected_and = ~0, expected_or = 0, expected_xor = 0;
    for (int rank = 0; rank < world_size; rank++) {
        expected_and &= rank + 1;
        expected_or |= rank + 1;
        expected_xor ^= rank + 1;
    }
    MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(result == world_size, "allreduce with max");
    MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_BAND, MPI_COMM_WORLD);
    check(result == expected_and, "allreduce with bitwise and");
    MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    check(result == expected_or, "allreduce with bitwise or");
    MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_BXOR, MPI_COMM_WORLD);
    check(result == expected_xor, "allreduce with bitwise exclusive or");
    int odd = world_rank % 2;
    MPI_Allreduce(&odd, &result, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    check(!result, "allreduce with logical and");
    struct {
        double value;
        int rank;
    } place = {(double)((world_rank * 7) % world_size), world_rank}, least;
    MPI_Allreduce(&place, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
    check(least.value == 0 && least.rank == 0, "allreduce with the place of the minimum");
}

/* 2x2 matrices: their product depends on the order of ranks, not on how it is bracketed. */
static void multiply(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    uint32_t(*left)[4] = in, (*right)[4] = inout;
    for (int i = 0; i < *length; i++) {
        uint32_t *a = left[i], *b = right[i];
        uint32_t product[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                               a[2] * b[1] + a[3] * b[3]};
        memcpy(b, product, sizeof product);
    }
}

static void user_operation(void)
{
    MPI_Op op;
    MPI_Datatype matrix;
    MPI_Type_contiguous(4, MPI_UINT32_T, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(multiply, 0, &op);
    enum { COUNT = 33 };
    uint32_t mine[COUNT][4], result[COUNT][4], expected[COUNT][4];
    for (int i = 0; i < COUNT; i++)
        for (int rank = world_size - 1; rank >= 0; rank--) {
            uint32_t factor[4] = {(uint32_t)rank + 1, (uint32_t)i, 1, (uint32_t)rank};
            if (rank == world_rank)
                memcpy(mine[i], factor, sizeof factor);
            int one = 1;
            if (rank == world_size - 1)
                memcpy(expected[i], factor, sizeof factor);
            else
                multiply(factor, expected[i], &one, NULL);
        }
    MPI_Allreduce(mine, result, COUNT, matrix, op, MPI_COMM_WORLD);
    check(memcmp(result, expected, sizeof result) == 0, "allreduce with an operation that does not commute");
    memset(result, 0, sizeof result);
    MPI_Reduce(mine, result, COUNT, matrix, op, world_size - 1, MPI_COMM_WORLD);
    check(world_rank != world_size - 1 || memcmp(result, expected, sizeof result) == 0,
          "reduce with an operation that does not commute");
    MPI_Op_free(&op);
    MPI_Type_free(&matrix);
}

int main(int argc, char **argv)
{
    checks_begin(&argc, &argv);
    for (int i = 0; i < 5; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    check(true, "barriers");
    for (int i = 0; i < LENGTH(counts); i++) {
        broadcast(counts[i]);
        gather_and_scatter(counts[i]);
        all_gather(counts[i]);
        all_to_all(counts[i] % 20011);
        reductions(counts[i]);
        reduce_scatter(counts[i] % 9001);
        uneven_blocks(counts[i] % 1009);
        uneven_all_to_all(counts[i] % 1009);
    }
    predefined_operations();
    user_operation();
    return checks_end();
}
