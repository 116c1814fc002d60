/* Communicators: an id that all members agree on, and world ranks for the ranks in them. */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"

static struct handle_map communicators;
static MPI_Group world_group;
static struct {
    uintptr_t key;
    struct communicator *comm;
} recent;

uint8_t *put_id(uint8_t *at, uint64_t id)
{
    at = put_number(at, id >> 32);
    return put_number(at, id & UINT32_MAX);
}

uint64_t communicator_next_id(void)
{
    recorder_lock();
    uint64_t id = (uint64_t)(uint32_t)recorder.rank << 32 | recorder.next_id++;
    recorder_unlock();
    return id;
}

static struct communicator *new_communicator(MPI_Comm handle, uint64_t id, bool recorded)
{
    struct communicator *comm = allocate(1, sizeof *comm);
    comm->id = id;
    comm->recorded = recorded;
    comm->references = 1;
    PMPI_Comm_rank(handle, &comm->rank);
    PMPI_Comm_size(handle, &comm->size);
    return comm;
}

static void register_communicator(MPI_Comm handle, struct communicator *comm)
{
    handle_map_insert(&communicators, HANDLE_KEY(handle), (uintptr_t)comm);
}

void communicators_start(void)
{
    PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
    recorder.next_id = 1; /* rank 0's number 0 is the world */
    register_communicator(MPI_COMM_WORLD, new_communicator(MPI_COMM_WORLD, 0, true));
}

/* World ranks of the members, or NULL where one is outside the world. */
static uint32_t *translate(MPI_Comm handle, int size)
{
    MPI_Group group;
    PMPI_Comm_group(handle, &group);
    int *ranks = allocate((size_t)size, sizeof *ranks);
    int *world = allocate((size_t)size, sizeof *world);
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    PMPI_Group_translate_ranks(group, size, ranks, world_group, world);
    PMPI_Group_free(&group);
    free(ranks);
    for (int i = 0; i < size; i++)
        if (world[i] == MPI_UNDEFINED) {
            free(world);
            return NULL;
        }
    return (uint32_t *)world;
}

/* The members as runs of equal stride. */
static void record_members(const struct communicator *comm)
{
    record_computation();
    uint32_t runs = 0;
    for (int pass = 0; pass < 2; pass++) {
        uint8_t *at = NULL;
        if (pass == 1) {
            at = part_begin(3 * NUMBER_MAX + (size_t)runs * 3 * NUMBER_MAX);
            if (!at)
                return;
            at = put_id(at, comm->id);
            at = put_number(at, runs);
        }
        runs = 0;
        for (int first = 0; first < comm->size;) {
            int64_t stride = first + 1 < comm->size ? (int64_t)comm->world[first + 1] - comm->world[first] : 1;
            int next = first + 1;
            while (next < comm->size && (int64_t)comm->world[next] - comm->world[next - 1] == stride)
                next++;
            if (pass == 1) {
                at = put_number(at, comm->world[first]);
                at = put_number(at, zigzag(stride));
                at = put_number(at, (uint64_t)(next - first));
            }
            runs++;
            first = next;
        }
        if (pass == 1)
            part_commit(RECORD_COMMUNICATOR, at);
    }
}

/* The collectives in which MPICH 5 makes a communicator, as the messages of `weft run` show them. They are recorded in
 * virtual time only: on a real machine the library differs from recording to recording, and its messages are not the
 * program's. */
enum {
    CONTEXT_MASK_BYTES = 260, /* all agree on a number: a bitwise and of 65 words (MPIR_Get_contextid_sparse_group) */
    COLOUR_AND_KEY_BYTES = 8, /* from each to all others (MPIR_Comm_split_impl) */
    NEW_MEMBERS_BYTES = 4     /* from the first of the new members to the others */
};

#define WORDS ((struct elements){.bytes = 4})

static void record_agreement(const struct communicator *parent, bool splits)
{
    if (!clock_is_virtual() || !parent->recorded)
        return;
    if (splits)
        inner_collective_called(COLLECTIVE_ALLGATHER, parent, -1, COLOUR_AND_KEY_BYTES, WORDS);
    inner_collective_called(COLLECTIVE_ALLREDUCE, parent, -1, CONTEXT_MASK_BYTES,
                            (struct elements){4, DATA_INT32, REDUCTION_BAND});
}

void record_inner_duplicate(const struct communicator *comm)
{
    record_agreement(comm, false);
    inner_collective_called(COLLECTIVE_BROADCAST, comm, 0, NEW_MEMBERS_BYTES, WORDS);
}

static void adopt(MPI_Comm handle, bool agreed, uint64_t id)
{
    if (handle == MPI_COMM_NULL)
        return;
    int between_groups;
    PMPI_Comm_test_inter(handle, &between_groups);
    struct communicator *comm = new_communicator(handle, 0, false);
    if (!between_groups)
        comm->world = translate(handle, comm->size);
    comm->recorded = comm->world != NULL;
    /* All members have come to the same answer: they hold the same group. */
    if (comm->recorded) {
        if (agreed) {
            comm->id = id;
        } else {
            if (comm->rank == 0)
                comm->id = communicator_next_id();
            PMPI_Bcast(&comm->id, sizeof comm->id, MPI_BYTE, 0, handle);
        }
    }
    recorder_lock();
    register_communicator(handle, comm);
    recent.comm = NULL;
    if (comm->recorded)
        record_members(comm);
    else
        record_unrecorded(true);
    if (comm->recorded && clock_is_virtual()) {
        inner_collective_called(COLLECTIVE_BROADCAST, comm, 0, NEW_MEMBERS_BYTES, WORDS);
        if (!agreed) /* the recorder's own */
            inner_collective_called(COLLECTIVE_BROADCAST, comm, 0, sizeof comm->id, (struct elements){.bytes = 1});
    }
    recorder_unlock();
}

void communicator_created(MPI_Comm handle)
{
    adopt(handle, false, 0);
}

static struct communicator *find(MPI_Comm handle)
{
    uintptr_t key = HANDLE_KEY(handle);
    if (recent.comm && recent.key == key)
        return recent.comm;
    uintptr_t *found = handle_map_find(&communicators, key);
    if (!found) {
        /* Made by a call that is not recorded, except for MPI_COMM_SELF, which has one member to agree. */
        bool self = handle == MPI_COMM_SELF;
        struct communicator *comm = new_communicator(handle, 0, self);
        if (self) {
            comm->id = (uint64_t)(uint32_t)recorder.rank << 32 | recorder.next_id++;
            comm->world = allocate(1, sizeof *comm->world);
            comm->world[0] = (uint32_t)recorder.rank;
            record_members(comm);
        }
        register_communicator(handle, comm);
        found = handle_map_find(&communicators, key);
    }
    recent.key = key;
    recent.comm = (struct communicator *)*found;
    return recent.comm;
}

static void created_from(MPI_Comm parent, bool splits, MPI_Comm handle)
{
    recorder_lock();
    record_agreement(find(parent), splits);
    recorder_unlock();
    adopt(handle, false, 0);
}

void communicator_created_by_all(MPI_Comm parent, MPI_Comm handle)
{
    created_from(parent, false, handle);
}

void communicator_split_off(MPI_Comm parent, MPI_Comm handle)
{
    created_from(parent, true, handle);
}

void communicator_adopted(MPI_Comm handle, uint64_t id)
{
    adopt(handle, true, id);
}

struct communicator *communicator_of(MPI_Comm handle)
{
    struct communicator *comm = find(handle);
    if (comm->recorded)
        return comm;
    record_unrecorded(true);
    return NULL;
}

void communicator_release(struct communicator *comm)
{
    if (--comm->references > 0)
        return;
    if (comm->neighbours) {
        free(comm->neighbours->source);
        free(comm->neighbours->destination);
        free(comm->neighbours);
    }
    free(comm->world);
    free(comm);
}

void communicator_freed(MPI_Comm handle)
{
    uintptr_t key = HANDLE_KEY(handle);
    uintptr_t *found = handle_map_find(&communicators, key);
    if (!found)
        return;
    struct communicator *comm = (struct communicator *)*found;
    recent.comm = NULL;
    handle_map_remove(&communicators, key);
    communicator_release(comm);
}

struct neighbours *communicator_neighbours(struct communicator *comm, MPI_Comm handle)
{
    if (comm->neighbours)
        return comm->neighbours;
    struct neighbours *found = allocate(1, sizeof *found);
    int topology;
    PMPI_Topo_test(handle, &topology);
    if (topology == MPI_CART) {
        int dimensions;
        PMPI_Cartdim_get(handle, &dimensions);
        found->sources = found->destinations = 2 * dimensions;
        found->source = allocate((size_t)found->sources, sizeof(int));
        found->destination = allocate((size_t)found->destinations, sizeof(int));
        for (int d = 0; d < dimensions; d++) /* MPI-4.1, 8.7: per dimension the negative, then the positive side */
            PMPI_Cart_shift(handle, d, 1, &found->source[2 * d], &found->source[2 * d + 1]);
        memcpy(found->destination, found->source, (size_t)found->sources * sizeof(int));
    } else if (topology == MPI_GRAPH) {
        PMPI_Graph_neighbors_count(handle, comm->rank, &found->sources);
        found->destinations = found->sources;
        found->source = allocate((size_t)found->sources, sizeof(int));
        found->destination = allocate((size_t)found->destinations, sizeof(int));
        PMPI_Graph_neighbors(handle, comm->rank, found->sources, found->source);
        memcpy(found->destination, found->source, (size_t)found->sources * sizeof(int));
    } else if (topology == MPI_DIST_GRAPH) {
        int weighted;
        PMPI_Dist_graph_neighbors_count(handle, &found->sources, &found->destinations, &weighted);
        found->source = allocate((size_t)found->sources, sizeof(int));
        found->destination = allocate((size_t)found->destinations, sizeof(int));
        int *weights = allocate((size_t)found->sources + (size_t)found->destinations, sizeof(int));
        PMPI_Dist_graph_neighbors(handle, found->sources, found->source, weights, found->destinations,
                                  found->destination, weights + found->sources);
        free(weights);
    }
    comm->neighbours = found;
    return found;
}
