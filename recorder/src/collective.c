/* Collectives: what each rank gives and takes, in bytes, by the table at weft_trace::op::CollectiveSizes.
 *
 * Only arguments that are significant on this rank are looked at (MPI-4.1, chapter 6): the others, and the send side
 * of MPI_IN_PLACE, may be anything. The same holds for the buffers.
 */
#include "recorder.h"

#include <string.h>

/* Bytes per member of one side; `members` 0: the collective has none there. */
struct blocks {
    uint64_t *bytes;
    int members;
};

struct sizes {
    uint64_t send, receive;
    struct elements elements;
    struct blocks send_blocks, receive_blocks;
    const void *given, *taken; /* the buffers; NULL: none */
};

/* Per thread, grown, never freed. */
static __thread struct {
    uint8_t *body;
    size_t body_capacity;
    uint64_t *bytes[2];
    int members[2];
} scratch;

enum side { SEND_SIDE, RECEIVE_SIDE };

static struct blocks blocks_for(enum side side, int members)
{
    if (members > scratch.members[side]) {
        scratch.bytes[side] = reallocate(scratch.bytes[side], (size_t)members, sizeof **scratch.bytes);
        scratch.members[side] = members;
    }
    memset(scratch.bytes[side], 0, (size_t)members * sizeof **scratch.bytes);
    return (struct blocks){scratch.bytes[side], members};
}

static int64_t count_at(struct counts counts, int index)
{
    return counts.wide ? (int64_t)counts.wide[index] : counts.narrow[index];
}

static uint64_t sum(struct blocks blocks)
{
    uint64_t total = 0;
    for (int i = 0; i < blocks.members; i++)
        total += blocks.bytes[i];
    return total;
}

/* A block per member. Types: one for all, or one each. */
static struct blocks member_blocks(enum side side, int members, struct counts counts, const MPI_Datatype *types,
                                   bool one_type)
{
    struct blocks blocks = blocks_for(side, members);
    uint64_t size = 0;
    for (int i = 0; i < members; i++) {
        int64_t count = count_at(counts, i);
        if (!one_type) {
            blocks.bytes[i] = type_bytes(count, types[i]);
        } else if (count > 0) {
            if (size == 0)
                size = type_bytes(1, types[0]);
            blocks.bytes[i] = (uint64_t)count * size;
        }
    }
    return blocks;
}

/* How the counts are written: 0 none, 1 each, 2 only those that are not 0. */
static uint8_t *put_blocks(uint8_t *at, struct blocks blocks)
{
    if (blocks.members == 0)
        return put_number(at, 0);
    uint64_t filled = 0;
    for (int i = 0; i < blocks.members; i++)
        filled += blocks.bytes[i] != 0;
    bool sparse = 2 * filled < (uint64_t)blocks.members;
    at = put_number(at, sparse ? 2 : 1);
    at = put_number(at, (uint64_t)blocks.members);
    if (sparse)
        at = put_number(at, filled);
    for (int i = 0; i < blocks.members; i++) {
        if (sparse && blocks.bytes[i] == 0)
            continue;
        if (sparse)
            at = put_number(at, (uint64_t)i);
        at = put_number(at, blocks.bytes[i]);
    }
    return at;
}

static void record_collective(struct how how, enum collective kind, const struct communicator *comm, int root,
                              const struct sizes *sizes)
{
    size_t most = (14 + 2 * ((size_t)sizes->send_blocks.members + (size_t)sizes->receive_blocks.members + 6)) *
                  NUMBER_MAX;
    if (most > scratch.body_capacity) {
        scratch.body = reallocate(scratch.body, most, 1);
        scratch.body_capacity = most;
    }
    uint8_t *at = put_number(scratch.body, kind);
    at = put_id(at, comm->id);
    at = put_number(at, root < 0 ? 0 : 1 + (uint64_t)world_rank(comm, root));
    at = put_number(at, sizes->send);
    at = put_number(at, sizes->receive);
    at = put_number(at, sizes->elements.bytes);
    at = put_number(at, sizes->elements.type);
    at = put_number(at, sizes->elements.operation);
    at = put_blocks(at, sizes->send_blocks);
    at = put_blocks(at, sizes->receive_blocks);
    at = put_address(at, sizes->given);
    at = put_address(at, sizes->taken);
    size_t size = (size_t)(at - scratch.body);
    if (how.request) {
        request_post(how, RECORD_COLLECTIVE, scratch.body, size, NULL);
        return;
    }
    record_computation();
    uint8_t *record = part_begin(NUMBER_MAX + size);
    if (!record)
        return;
    record = put_number(record, 0); /* no request: blocking */
    memcpy(record, scratch.body, size);
    part_commit(RECORD_COLLECTIVE, record + size);
}

void barrier_called(struct how how, MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (comm)
        record_collective(how, COLLECTIVE_BARRIER, comm, -1, &(struct sizes){0});
}

void broadcast_called(struct how how, const void *buffer, int64_t count, MPI_Datatype type, int root, MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    uint64_t bytes = type_bytes(count, type);
    record_collective(how, COLLECTIVE_BROADCAST, comm, root,
                      &(struct sizes){.send = bytes, .receive = bytes, .given = buffer, .taken = buffer});
}

void inner_collective_called(enum collective kind, const struct communicator *comm, int root, uint64_t bytes,
                             struct elements elements)
{
    record_collective(BLOCKING, kind, comm, root,
                      &(struct sizes){.send = bytes, .receive = bytes, .elements = elements});
}

void reduction_called(struct how how, enum collective kind, const void *send, const void *receive, int64_t count,
                      struct elements elements, int root, MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    uint64_t bytes = count > 0 ? (uint64_t)count * elements.bytes : 0;
    bool takes = kind == COLLECTIVE_REDUCE ? comm->rank == root : kind != COLLECTIVE_EXSCAN || comm->rank > 0;
    record_collective(how, kind, comm, root,
                      &(struct sizes){.send = bytes,
                                      .receive = bytes,
                                      .elements = elements,
                                      .given = send,
                                      .taken = takes ? receive : NULL});
}

void reduce_scatter_called(struct how how, const void *send, const void *receive, struct counts counts,
                           MPI_Datatype type, struct elements elements, MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    struct sizes sizes = {.elements = elements, .given = send, .taken = receive};
    sizes.receive_blocks = member_blocks(RECEIVE_SIDE, comm->size, counts, &type, true);
    sizes.send = sum(sizes.receive_blocks);
    sizes.receive = sizes.receive_blocks.bytes[comm->rank];
    record_collective(how, COLLECTIVE_REDUCE_SCATTER, comm, -1, &sizes);
}

void reduce_scatter_block_called(struct how how, const void *send, const void *receive, int64_t count,
                                 struct elements elements, MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    uint64_t bytes = count > 0 ? (uint64_t)count * elements.bytes : 0;
    struct sizes sizes = {.elements = elements, .receive = bytes, .given = send, .taken = receive};
    sizes.send = sizes.receive * (uint64_t)comm->size;
    record_collective(how, COLLECTIVE_REDUCE_SCATTER_BLOCK, comm, -1, &sizes);
}

void blocks_called(struct how how, enum collective kind, const void *send, int64_t send_count, MPI_Datatype send_type,
                   const void *receive, int64_t receive_count, MPI_Datatype receive_type, int root, MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    bool use_receive;
    if (kind == COLLECTIVE_SCATTER)
        use_receive = comm->rank != root; /* the root may receive in place */
    else if (kind == COLLECTIVE_GATHER)
        use_receive = comm->rank == root; /* the root may send in place; others' receive side means nothing */
    else
        use_receive = send == MPI_IN_PLACE;
    uint64_t block = use_receive ? type_bytes(receive_count, receive_type) : type_bytes(send_count, send_type);
    bool gives = kind != COLLECTIVE_SCATTER || comm->rank == root;
    bool takes = kind != COLLECTIVE_GATHER || comm->rank == root;
    record_collective(how, kind, comm, root,
                      &(struct sizes){.send = block,
                                      .receive = block,
                                      .given = gives ? send : NULL,
                                      .taken = takes ? receive : NULL});
}

void gatherv_called(struct how how, const void *send, int64_t send_count, MPI_Datatype send_type,
                    const void *receive, struct counts receive_counts, MPI_Datatype receive_type, int root,
                    MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    struct sizes sizes = {.given = send};
    if (comm->rank == root) {
        sizes.taken = receive;
        sizes.receive_blocks = member_blocks(RECEIVE_SIDE, comm->size, receive_counts, &receive_type, true);
        sizes.receive = sum(sizes.receive_blocks);
        sizes.send = sizes.receive_blocks.bytes[root];
    }
    if (send != MPI_IN_PLACE)
        sizes.send = type_bytes(send_count, send_type);
    record_collective(how, COLLECTIVE_GATHERV, comm, root, &sizes);
}

void scatterv_called(struct how how, const void *send, struct counts send_counts, MPI_Datatype send_type,
                     const void *receive, int64_t receive_count, MPI_Datatype receive_type, int root, MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    struct sizes sizes = {.taken = receive};
    if (comm->rank == root) {
        sizes.given = send;
        sizes.send_blocks = member_blocks(SEND_SIDE, comm->size, send_counts, &send_type, true);
        sizes.send = sum(sizes.send_blocks);
        sizes.receive = sizes.send_blocks.bytes[root];
    }
    if (receive != MPI_IN_PLACE)
        sizes.receive = type_bytes(receive_count, receive_type);
    record_collective(how, COLLECTIVE_SCATTERV, comm, root, &sizes);
}

void allgatherv_called(struct how how, const void *send, int64_t send_count, MPI_Datatype send_type,
                       const void *receive, struct counts receive_counts, MPI_Datatype receive_type, MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    struct sizes sizes = {.given = send, .taken = receive};
    sizes.receive_blocks = member_blocks(RECEIVE_SIDE, comm->size, receive_counts, &receive_type, true);
    sizes.receive = sum(sizes.receive_blocks);
    sizes.send = send == MPI_IN_PLACE ? sizes.receive_blocks.bytes[comm->rank] : type_bytes(send_count, send_type);
    record_collective(how, COLLECTIVE_ALLGATHERV, comm, -1, &sizes);
}

void alltoallv_called(struct how how, const void *send, struct counts send_counts, const MPI_Datatype *send_types,
                      bool one_send_type, const void *receive, struct counts receive_counts,
                      const MPI_Datatype *receive_types, bool one_receive_type, MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    struct sizes sizes = {.given = send, .taken = receive};
    sizes.receive_blocks =
        member_blocks(RECEIVE_SIDE, comm->size, receive_counts, receive_types, one_receive_type);
    /* In place, each pair exchanges blocks of one size (MPI-4.1, 6.8). */
    sizes.send_blocks = send == MPI_IN_PLACE
                            ? sizes.receive_blocks
                            : member_blocks(SEND_SIDE, comm->size, send_counts, send_types, one_send_type);
    sizes.send = sum(sizes.send_blocks);
    sizes.receive = sum(sizes.receive_blocks);
    record_collective(how, COLLECTIVE_ALLTOALLV, comm, -1, &sizes);
}

/* ---- Neighbourhoods: a trace holds no topology, so the blocks are written per member of the communicator --------- */

static struct blocks neighbour_blocks(enum side side, const struct communicator *comm, const int *ranks, int count,
                                      const struct counts *counts, const MPI_Datatype *types, bool one_type,
                                      uint64_t block)
{
    struct blocks blocks = blocks_for(side, comm->size);
    for (int i = 0; i < count; i++)
        if (ranks[i] != MPI_PROC_NULL)
            blocks.bytes[ranks[i]] +=
                counts ? type_bytes(count_at(*counts, i), types[one_type ? 0 : i]) : block;
    return blocks;
}

void neighbor_blocks_called(struct how how, enum collective kind, const void *send, int64_t send_count,
                            MPI_Datatype send_type, const void *receive, int64_t receive_count,
                            MPI_Datatype receive_type, MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    const struct neighbours *near = communicator_neighbours(comm, handle);
    struct sizes sizes = {.send = type_bytes(send_count, send_type),
                          .receive = type_bytes(receive_count, receive_type),
                          .given = send,
                          .taken = receive};
    sizes.send_blocks =
        neighbour_blocks(SEND_SIDE, comm, near->destination, near->destinations, NULL, NULL, true, sizes.send);
    sizes.receive_blocks =
        neighbour_blocks(RECEIVE_SIDE, comm, near->source, near->sources, NULL, NULL, true, sizes.receive);
    record_collective(how, kind, comm, -1, &sizes);
}

void neighbor_allgatherv_called(struct how how, const void *send, int64_t send_count, MPI_Datatype send_type,
                                const void *receive, struct counts receive_counts, MPI_Datatype receive_type,
                                MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    const struct neighbours *near = communicator_neighbours(comm, handle);
    struct sizes sizes = {.send = type_bytes(send_count, send_type), .given = send, .taken = receive};
    sizes.send_blocks =
        neighbour_blocks(SEND_SIDE, comm, near->destination, near->destinations, NULL, NULL, true, sizes.send);
    sizes.receive_blocks = neighbour_blocks(RECEIVE_SIDE, comm, near->source, near->sources, &receive_counts,
                                            &receive_type, true, 0);
    sizes.receive = sum(sizes.receive_blocks);
    record_collective(how, COLLECTIVE_NEIGHBOR_ALLGATHERV, comm, -1, &sizes);
}

void neighbor_alltoallv_called(struct how how, const void *send, struct counts send_counts,
                               const MPI_Datatype *send_types, bool one_send_type, const void *receive,
                               struct counts receive_counts, const MPI_Datatype *receive_types, bool one_receive_type,
                               MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    const struct neighbours *near = communicator_neighbours(comm, handle);
    struct sizes sizes = {.given = send, .taken = receive};
    sizes.send_blocks = neighbour_blocks(SEND_SIDE, comm, near->destination, near->destinations, &send_counts,
                                         send_types, one_send_type, 0);
    sizes.receive_blocks = neighbour_blocks(RECEIVE_SIDE, comm, near->source, near->sources, &receive_counts,
                                            receive_types, one_receive_type, 0);
    sizes.send = sum(sizes.send_blocks);
    sizes.receive = sum(sizes.receive_blocks);
    record_collective(how, COLLECTIVE_NEIGHBOR_ALLTOALLV, comm, -1, &sizes);
}
