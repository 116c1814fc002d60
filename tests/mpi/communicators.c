/* Communicators and groups: made in every way, used after their makers are gone, between groups. */
#include "checks.h"

/* The sum of world ranks over a communicator, by a collective and by a ring of messages: both must stay inside. */
static long sum_over(MPI_Comm comm)
{
    int rank, size;
    long sum = 0, passed = world_rank, total = world_rank;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    long mine = world_rank;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
    for (int i = 1; i < size; i++) {
        MPI_Sendrecv_replace(&passed, 1, MPI_LONG, (rank + 1) % size, 1, (rank + size - 1) % size, 1, comm,
                             MPI_STATUS_IGNORE);
        total += passed;
    }
    return sum == total ? sum : -1;
}

static long sum_of_world(int first, int step)
{
    long sum = 0;
    for (int rank = first; rank < world_size; rank += step)
        sum += rank;
    return sum;
}

static void duplicates(void)
{
    MPI_Comm copy, copy_too;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_idup(copy, &copy_too, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
    int result;
    MPI_Comm_compare(MPI_COMM_WORLD, copy_too, &result);
    check(result == MPI_CONGRUENT && sum_over(copy_too) == sum_of_world(0, 1), "a copy of a copy");
    MPI_Comm_free(&copy_too);
    /* Identifiers come back: many more than a process ever has at once. */
    bool good = true;
    for (int i = 0; i < 300; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        if (i % 100 == 0)
            good &= sum_over(copy) == sum_of_world(0, 1);
        MPI_Comm_free(&copy);
    }
    check(good, "300 copies, one after the other");
}

static void splits(void)
{
    MPI_Comm part;
    int rank;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 3, -world_rank, &part);
    MPI_Comm_rank(part, &rank);
    int last = world_rank;
    while (last + 3 < world_size)
        last += 3;
    check(sum_over(part) == sum_of_world(world_rank % 3, 3) && rank == (last - world_rank) / 3,
          "split in three, in reverse order");
    MPI_Comm_free(&part);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0 ? MPI_UNDEFINED : 0, 0, &part);
    check((part == MPI_COMM_NULL) == (world_rank == 0), "split that leaves one out");
    if (part != MPI_COMM_NULL)
        MPI_Comm_free(&part);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world_rank, MPI_INFO_NULL, &part);
    check(sum_over(part) >= world_rank, "split by host");
    MPI_Comm_free(&part);
}

static void from_groups(void)
{
    MPI_Group world, evens, odds, both, none;
    int range[1][3] = {{0, world_size - 1, 2}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &evens);
    MPI_Group_difference(world, evens, &odds);
    MPI_Group_union(odds, evens, &both);
    MPI_Group_intersection(evens, odds, &none);
    int size, result, here = 0, there;
    MPI_Group_size(none, &size);
    MPI_Group_compare(world, both, &result);
    MPI_Group_translate_ranks(evens, 1, &here, both, &there);
    check(size == 0 && (result == MPI_SIMILAR || world_size == 1) && there == world_size / 2, "groups as sets");

    MPI_Group mine = world_rank % 2 ? odds : evens;
    MPI_Comm comm;
    MPI_Comm_create(MPI_COMM_WORLD, mine, &comm);
    check(sum_over(comm) == sum_of_world(world_rank % 2, 2), "communicators of disjoint groups");
    MPI_Comm_free(&comm);
    if (world_rank % 2 == 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, evens, 17, &comm);
        bool good = sum_over(comm) == sum_of_world(0, 2);
        MPI_Comm_free(&comm);
        check(good, "a communicator made by its members alone");
    } else {
        check(true, "a communicator made by its members alone");
    }
    MPI_Group_free(&world);
    MPI_Group_free(&evens);
    MPI_Group_free(&odds);
    MPI_Group_free(&both);
    MPI_Group_free(&none);
}

static void grids(void)
{
    int sides[2] = {0, 0}, periodic[2] = {1, 0}, place[2], back;
    MPI_Comm grid, row;
    MPI_Dims_create(world_size, 2, sides);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sides, periodic, 1, &grid);
    int rank;
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, place);
    MPI_Cart_rank(grid, place, &back);
    check(back == rank && sum_over(grid) == sum_of_world(0, 1), "a grid of two dimensions");
    int keep[2] = {0, 1}, size;
    MPI_Cart_sub(grid, keep, &row);
    MPI_Comm_size(row, &size);
    check(size == sides[1] && sum_over(row) >= 0, "rows of the grid");
    int from, to, got = -1;
    MPI_Cart_shift(grid, 1, 1, &from, &to);
    MPI_Sendrecv(&place[1], 1, MPI_INT, to, 2, &got, 1, MPI_INT, from, 2, grid, MPI_STATUS_IGNORE);
    check(place[1] == 0 ? from == MPI_PROC_NULL && got == -1 : got == place[1] - 1, "a shift along the rows");
    MPI_Comm_free(&row);
    MPI_Comm_free(&grid);
}

/* Everyone tells the rank at twice its number, and the one after that. */
static void graphs(void)
{
    int to[2] = {2 * world_rank % world_size, (2 * world_rank + 1) % world_size}, weights[2] = {1, 2};
    int degree = 2, in, out, weighted;
    MPI_Comm graph;
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &world_rank, &degree, to, weights, MPI_INFO_NULL, 0, &graph);
    MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
    int *sources = allocate((size_t)in * sizeof *sources), *ignored = allocate((size_t)(in + out) * sizeof *ignored);
    int *got = allocate((size_t)in * sizeof *got), destinations[2];
    MPI_Dist_graph_neighbors(graph, in, sources, ignored, out, destinations, ignored + in);
    MPI_Neighbor_allgather(&world_rank, 1, MPI_INT, got, 1, MPI_INT, graph);
    bool good = out == 2 && weighted;
    for (int i = 0; i < in; i++)
        good &= got[i] == sources[i] &&
                (2 * got[i] % world_size == world_rank || (2 * got[i] + 1) % world_size == world_rank);
    check(good, "messages along a graph");
    free(sources);
    free(ignored);
    free(got);
    MPI_Comm_free(&graph);
}

static void between_groups(void)
{
    if (world_size < 2)
        return;
    int side = world_rank % 2, theirs, got = -1;
    MPI_Comm mine, between, merged;
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &mine);
    MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, 1 - side, 33, &between);
    MPI_Comm_remote_size(between, &theirs);
    check(theirs == (world_size + side) / 2, "a communicator between groups");
    int value = world_rank;
    int root = side == 0 ? (world_rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    MPI_Bcast(side == 0 ? &value : &got, 1, MPI_INT, root, between);
    check(side == 0 || got == 0, "bcast between groups");
    long sum = 0, mine_as_long = world_rank;
    MPI_Allreduce(&mine_as_long, &sum, 1, MPI_LONG, MPI_SUM, between);
    check(sum == sum_of_world(1 - side, 2), "allreduce between groups");
    MPI_Intercomm_merge(between, side, &merged);
    check(sum_over(merged) == sum_of_world(0, 1), "groups merged");
    MPI_Comm_free(&merged);
    MPI_Comm_free(&between);
    MPI_Comm_free(&mine);
}

static int copies, deletions;

static int copy_attribute(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra;
    *(void **)out = in;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

static void attributes(void)
{
    int key, value = 5, found, *stored;
    MPI_Comm copy;
    MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, NULL);
    MPI_Comm base;
    MPI_Comm_dup(MPI_COMM_SELF, &base);
    MPI_Comm_set_attr(base, key, &value);
    MPI_Comm_dup(base, &copy);
    MPI_Comm_get_attr(copy, key, &stored, &found);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&base);
    check(found && *stored == 5 && copies == 1 && deletions == 2, "attributes follow copies");
    MPI_Comm_free_keyval(&key);
    int *limit;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
    check(found && *limit >= 32767, "the largest tag");
    int last = -1, tag = *limit;
    int other = (world_rank + 1) % world_size, before = (world_rank + world_size - 1) % world_size;
    MPI_Sendrecv(&world_rank, 1, MPI_INT, other, tag, &last, 1, MPI_INT, before, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check(last == before, "a message with the largest tag");
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    check(strcmp(name, "MPI_COMM_WORLD") == 0, "the name of the world");
}

int main(int argc, char **argv)
{
    checks_begin(&argc, &argv);
    duplicates();
    splits();
    from_groups();
    grids();
    graphs();
    between_groups();
    attributes();
    return checks_end();
}
