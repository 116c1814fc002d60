/* Large counts: the calls with MPI_Count, types beyond 2^31 bytes, and with --full messages beyond 2^31 bytes. */
#include "checks.h"

enum { TAG = 31 };

static int previous(void)
{
    return (world_rank + world_size - 1) % world_size;
}

static int next(void)
{
    return (world_rank + 1) % world_size;
}

static void with_wide_counts(MPI_Count count)
{
    int *out = elements(world_rank, count), *in = allocate((size_t)count * sizeof *in);
    MPI_Status status;
    MPI_Count got;
    MPI_Sendrecv_c(out, count, MPI_INT, next(), TAG, in, count, MPI_INT, previous(), TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count_c(&status, MPI_INT, &got);
    check(got == count && holds_elements(in, previous(), count), "ring of %lld ints by MPI_Count", (long long)count);
    MPI_Bcast_c(in, count, MPI_INT, world_size - 1, MPI_COMM_WORLD);
    check(holds_elements(in, (world_size - 1 + world_size - 1) % world_size, count), "bcast of %lld ints by MPI_Count",
          (long long)count);
    MPI_Allreduce_c(out, in, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    bool good = true;
    for (MPI_Count i = 0; i < count; i += 1 + i / 64) {
        int most = 0;
        for (int rank = 0; rank < world_size; rank++)
            most = element(rank, i) > most ? element(rank, i) : most;
        good &= in[i] == most;
    }
    check(good, "allreduce of %lld ints by MPI_Count", (long long)count);
    free(out);
    free(in);
}

/* Sizes that do not fit in an int are computed right; no data is moved. */
static void wide_types(void)
{
    MPI_Datatype row, square, sparse;
    MPI_Count size, lower, extent;
    int narrow;
    MPI_Type_contiguous(65536, MPI_DOUBLE, &row);
    MPI_Type_contiguous_c(65536, row, &square);
    MPI_Type_commit(&square);
    MPI_Type_size_c(square, &size);
    MPI_Type_size(square, &narrow);
    check(size == (MPI_Count)65536 * 65536 * 8 && narrow == MPI_UNDEFINED, "the size of a type of 32 GiB");
    MPI_Type_vector_c(2, 1, (MPI_Count)1 << 33, MPI_INT, &sparse);
    MPI_Type_get_extent_c(sparse, &lower, &extent);
    check(lower == 0 && extent == (((MPI_Count)1 << 33) + 1) * 4, "the extent of a type with a gap of 32 GiB");
    MPI_Type_free(&row);
    MPI_Type_free(&square);
    MPI_Type_free(&sparse);
}

/* More than 2^31 bytes in one message: as elements of a type, and as bytes. Needs 2.2 GB per rank. */
static void beyond_31_bits(void)
{
    size_t bytes = ((size_t)1 << 31) + 4099;
    bool sends = world_rank == 0, receives = world_rank == 1;
    unsigned char *data = allocate(sends || receives ? bytes : 1);
    for (size_t i = 0; sends && i < bytes; i++)
        data[i] = (unsigned char)(i / 4093 + i);
    MPI_Count got = 0;
    MPI_Status status;
    if (sends)
        MPI_Send_c(data, (MPI_Count)bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    if (receives) {
        MPI_Recv_c(data, (MPI_Count)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count_c(&status, MPI_BYTE, &got);
    }
    bool good = !receives || got == (MPI_Count)bytes;
    for (size_t i = 0; receives && i < bytes; i++)
        good &= data[i] == (unsigned char)(i / 4093 + i);
    check(good, "a message of 2^31 + 4099 bytes");
    free(data);
}

int main(int argc, char **argv)
{
    checks_begin(&argc, &argv);
    with_wide_counts(1);
    with_wide_counts(5000011);
    wide_types();
    if (argc > 1 && strcmp(argv[1], "--full") == 0)
        beyond_31_bits();
    return checks_end();
}
