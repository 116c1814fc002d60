/* Derived types: every constructor, sent as one type and received as another, at small and large sizes; packing. */
#include "checks.h"

#include <stddef.h>

enum { TAG = 21 };

static int previous(void)
{
    return (world_rank + world_size - 1) % world_size;
}

static int next(void)
{
    return (world_rank + 1) % world_size;
}

/* Sends `count` of `type` from a buffer of `extent` ints whose element i is element(rank, i) and receives them with the
 * same type into zeroes: what the type covers must have come, and nothing else may have changed. */
static void through(const char *name, MPI_Datatype type, int count, int extent)
{
    int *out = elements(world_rank, extent), *in = allocate((size_t)extent * sizeof *in);
    MPI_Type_commit(&type);
    MPI_Sendrecv(out, count, type, next(), TAG, in, count, type, previous(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    /* Which ints it covers is found by packing an index. */
    int *index = allocate((size_t)extent * sizeof *index), size, place = 0;
    for (int i = 0; i < extent; i++)
        index[i] = i;
    MPI_Pack_size(count, type, MPI_COMM_WORLD, &size);
    int *covered = allocate((size_t)size);
    MPI_Pack(index, count, type, covered, size, &place, MPI_COMM_WORLD);
    int *expected = allocate((size_t)extent * sizeof *expected);
    for (int i = 0; i < place / (int)sizeof(int); i++)
        expected[covered[i]] = element(previous(), covered[i]);
    check(memcmp(in, expected, (size_t)extent * sizeof *in) == 0, "%s, %d of them: %d bytes", name, count, place);

    /* The same, received as plain ints in the order of the type. */
    memset(in, 0, (size_t)extent * sizeof *in);
    int plain = place / (int)sizeof(int);
    int *packed = allocate((size_t)plain * sizeof *packed);
    MPI_Status status;
    int got;
    MPI_Sendrecv(out, count, type, next(), TAG, packed, plain, MPI_INT, previous(), TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &got);
    bool good = got == plain;
    for (int i = 0; i < plain; i++)
        good &= packed[i] == element(previous(), covered[i]);
    check(good, "%s, %d of them, received as ints", name, count);
    int *freed[] = {out, in, index, covered, expected, packed};
    for (int i = 0; i < LENGTH(freed); i++)
        free(freed[i]);
    MPI_Type_free(&type);
}

static void constructors(int scale)
{
    MPI_Datatype type, inner;
    int extent = 4 * 37 * scale + 200;

    MPI_Type_contiguous(7, MPI_INT, &type);
    through("contiguous", type, 3 * scale, extent);

    MPI_Type_vector(5 * scale, 3, 11, MPI_INT, &type);
    through("vector", type, 1, extent);

    MPI_Type_create_hvector(5 * scale, 2, 7 * (MPI_Aint)sizeof(int), MPI_INT, &type);
    through("hvector", type, 2, extent);

    int *lengths = allocate((size_t)(6 * scale) * sizeof *lengths);
    int *places = allocate((size_t)(6 * scale) * sizeof *places);
    MPI_Aint *byte_places = allocate((size_t)(6 * scale) * sizeof *byte_places);
    for (int i = 0; i < 6 * scale; i++) {
        lengths[i] = i % 4; /* some are empty */
        places[i] = 10 * ((i * 5) % (6 * scale)) + 1; /* not in order */
        byte_places[i] = (MPI_Aint)sizeof(int) * places[i];
    }
    MPI_Type_indexed(6 * scale, lengths, places, MPI_INT, &type);
    through("indexed", type, 1, extent);
    MPI_Type_create_hindexed(6 * scale, lengths, byte_places, MPI_INT, &type);
    through("hindexed", type, 1, extent);
    MPI_Type_create_indexed_block(6 * scale, 2, places, MPI_INT, &type);
    through("indexed block", type, 1, extent);
    free(lengths);
    free(places);
    free(byte_places);

    int whole[2] = {10 * scale, 12}, part[2] = {4 * scale, 5}, start[2] = {3, 2};
    MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_INT, &type);
    through("subarray", type, 1, extent);
    MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_FORTRAN, MPI_INT, &type);
    through("Fortran subarray", type, 1, extent);

    int global[2] = {6 * scale, 16}, spread[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
    int argument[2] = {2, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {2, 2};
    MPI_Type_create_darray(4, 1, 2, global, spread, argument, grid, MPI_ORDER_C, MPI_INT, &type);
    through("distributed array", type, 1, extent);

    MPI_Type_vector(3, 1, 2, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 9 * (MPI_Aint)sizeof(int), &type);
    MPI_Type_free(&inner);
    through("resized vector", type, 7 * scale, extent);

    MPI_Datatype column;
    MPI_Type_vector(4, 1, 3, MPI_INT, &inner);
    MPI_Type_create_hvector(2 * scale, 1, 40 * (MPI_Aint)sizeof(int), inner, &column);
    MPI_Type_contiguous(1, column, &type);
    MPI_Type_free(&inner);
    MPI_Type_free(&column);
    through("vector of vectors", type, 1, extent);
}

struct particle {
    char kind;
    double position[3];
    int id;
    float charge;
};

static void structures(int count)
{
    int lengths[] = {1, 3, 1, 1};
    MPI_Aint places[] = {offsetof(struct particle, kind), offsetof(struct particle, position),
                         offsetof(struct particle, id), offsetof(struct particle, charge)};
    MPI_Datatype members[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_FLOAT}, bare, type;
    MPI_Type_create_struct(4, lengths, places, members, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(struct particle), &type);
    MPI_Type_commit(&type);
    struct particle *out = allocate((size_t)count * sizeof *out), *in = allocate((size_t)count * sizeof *in);
    for (int i = 0; i < count; i++)
        out[i] = (struct particle){(char)(i % 100), {world_rank, i, i * 0.5}, element(world_rank, i), i * 0.25f};
    MPI_Status status;
    int got, primitives;
    MPI_Sendrecv(out, count, type, next(), TAG, in, count, type, previous(), TAG, MPI_COMM_WORLD,
                 &status);
    MPI_Get_count(&status, type, &got);
    MPI_Get_elements(&status, type, &primitives);
    bool good = got == count && primitives == 6 * count;
    for (int i = 0; i < count; i++)
        good &= in[i].kind == (char)(i % 100) && in[i].position[0] == previous() && in[i].position[1] == i &&
                in[i].position[2] == i * 0.5 && in[i].id == element(previous(), i) && in[i].charge == i * 0.25f;
    check(good, "%d structures", count);
    MPI_Bcast(out, count, type, world_size - 1, MPI_COMM_WORLD);
    good = true;
    for (int i = 0; i < count; i++)
        good &= out[i].id == element(world_size - 1, i) && out[i].position[0] == world_size - 1;
    check(good, "bcast of %d structures", count);
    free(out);
    free(in);
    MPI_Type_free(&type);
    MPI_Type_free(&bare);
}

/* Less comes than was posted: half an element is no element, but its parts count. */
static void partial(void)
{
    MPI_Datatype pair;
    int out[5] = {1, 2, 3, 4, 5}, in[8] = {0}, count, parts;
    MPI_Status status;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Sendrecv(out, 5, MPI_INT, next(), TAG, in, 4, pair, previous(), TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, pair, &count);
    MPI_Get_elements(&status, pair, &parts);
    check(count == MPI_UNDEFINED && parts == 5 && in[4] == 5 && in[5] == 0, "two and a half elements");
    MPI_Type_free(&pair);
}

static void packing(void)
{
    char buffer[400];
    int place = 0, number = 17, numbers[3] = {1, 2, 3};
    double real = 2.5;
    MPI_Pack(&number, 1, MPI_INT, buffer, sizeof buffer, &place, MPI_COMM_WORLD);
    MPI_Pack(&real, 1, MPI_DOUBLE, buffer, sizeof buffer, &place, MPI_COMM_WORLD);
    MPI_Pack(numbers, 3, MPI_INT, buffer, sizeof buffer, &place, MPI_COMM_WORLD);
    char got[400];
    MPI_Sendrecv(buffer, place, MPI_PACKED, next(), TAG, got, sizeof got, MPI_PACKED, previous(), TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    int size = place, number_too = 0, numbers_too[3] = {0};
    double real_too = 0;
    place = 0;
    MPI_Unpack(got, size, &place, &number_too, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack(got, size, &place, &real_too, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Unpack(got, size, &place, numbers_too, 3, MPI_INT, MPI_COMM_WORLD);
    check(number_too == 17 && real_too == 2.5 && numbers_too[2] == 3, "packed data");
    MPI_Aint at = 0;
    unsigned char external[8];
    MPI_Pack_external("external32", &number, 1, MPI_INT, external, sizeof external, &at);
    check(at == 4 && external[3] == 17 && external[0] == 0, "data packed as others read them");
}

int main(int argc, char **argv)
{
    checks_begin(&argc, &argv);
    constructors(1);
    constructors(50);
    constructors(2000);
    structures(1);
    structures(1000);
    structures(20000);
    partial();
    packing();
    return checks_end();
}
