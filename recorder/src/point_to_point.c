/* Sends, receives and probes. */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

#define BODY_MAX (8 * NUMBER_MAX + MATCH_BYTES)

uint64_t type_bytes(int64_t count, MPI_Datatype type)
{
    if (count <= 0)
        return 0;
    MPI_Count size;
#if MPI_VERSION >= 4
    PMPI_Type_size_c(type, &size);
#else
    PMPI_Type_size_x(type, &size);
#endif
    return size > 0 ? (uint64_t)count * (uint64_t)size : 0;
}

static uint8_t *put_send(uint8_t *at, const struct communicator *comm, enum send_mode mode, struct data data, int to,
                         int tag)
{
    at = put_number(at, world_rank(comm, to));
    at = put_number(at, zigzag(tag));
    at = put_id(at, comm->id);
    at = put_number(at, data.bytes);
    at = put_number(at, mode);
    return put_address(at, data.buffer);
}

/* Behind a wildcard receive's body: source and tag of the message that matched it. */
static void put_match(uint8_t *at, uint32_t source, int tag)
{
    for (int byte = 0; byte < 4; byte++) {
        at[byte] = (uint8_t)(source >> (8 * byte));
        at[4 + byte] = (uint8_t)((uint32_t)tag >> (8 * byte));
    }
}

static bool is_wildcard(int from, int tag)
{
    return from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG;
}

static uint8_t *put_receive(uint8_t *at, const struct communicator *comm, struct data data, int from, int tag)
{
    at = put_number(at, from == MPI_ANY_SOURCE ? 0 : 1 + (uint64_t)world_rank(comm, from));
    at = put_number(at, tag == MPI_ANY_TAG ? 0 : 1 + zigzag(tag));
    at = put_id(at, comm->id);
    at = put_number(at, data.bytes);
    at = put_address(at, data.buffer);
    if (is_wildcard(from, tag)) {
        memset(at, 0xFF, MATCH_BYTES);
        at += MATCH_BYTES;
    }
    return at;
}

void send_posted(struct how how, enum send_mode mode, struct data data, int to, int tag, MPI_Comm handle)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm || to == MPI_PROC_NULL)
        return;
    if (how.request) {
        uint8_t body[BODY_MAX];
        request_post(how, RECORD_ISEND, body, (size_t)(put_send(body, comm, mode, data, to, tag) - body), NULL);
        return;
    }
    record_computation();
    uint8_t *at = part_begin(BODY_MAX);
    if (at)
        part_commit(RECORD_SEND, put_send(at, comm, mode, data, to, tag));
}

void receive_posted(struct how how, struct data data, int from, int tag, MPI_Comm handle, const MPI_Status *status)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm || from == MPI_PROC_NULL)
        return;
    if (how.request) {
        uint8_t body[BODY_MAX];
        size_t size = (size_t)(put_receive(body, comm, data, from, tag) - body);
        request_post(how, RECORD_IRECEIVE, body, size, is_wildcard(from, tag) ? comm : NULL);
        return;
    }
    record_computation();
    uint8_t *at = part_begin(BODY_MAX);
    if (!at)
        return;
    uint8_t *end = put_receive(at, comm, data, from, tag);
    if (is_wildcard(from, tag))
        put_match(end - MATCH_BYTES, world_rank(comm, status->MPI_SOURCE), status->MPI_TAG);
    part_commit(RECORD_RECEIVE, end);
}

void sendrecv_done(struct data sent, int to, int send_tag, struct data received, int from, int receive_tag,
                   MPI_Comm handle, const MPI_Status *status)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm)
        return;
    if (to == MPI_PROC_NULL || from == MPI_PROC_NULL) {
        send_posted(BLOCKING, MODE_STANDARD, sent, to, send_tag, handle);
        receive_posted(BLOCKING, received, from, receive_tag, handle, status);
        return;
    }
    record_computation();
    uint8_t *at = part_begin(BODY_MAX);
    if (!at)
        return;
    uint8_t *end = put_receive(put_number(at, REQUEST_RECEIVE_INSIDE), comm, received, from, receive_tag);
    if (is_wildcard(from, receive_tag))
        put_match(end - MATCH_BYTES, world_rank(comm, status->MPI_SOURCE), status->MPI_TAG);
    part_commit(RECORD_IRECEIVE, end);
    if (!(at = part_begin(BODY_MAX)))
        return;
    at = put_number(at, REQUEST_SEND_INSIDE);
    part_commit(RECORD_ISEND, put_send(at, comm, MODE_STANDARD, sent, to, send_tag));
    if (!(at = part_begin(3 * NUMBER_MAX)))
        return;
    at = put_number(at, 2);
    at = put_number(at, REQUEST_RECEIVE_INSIDE);
    part_commit(RECORD_WAITALL, put_number(at, REQUEST_SEND_INSIDE));
}

void probe_found(enum record_tag tag, MPI_Comm handle, const MPI_Status *status)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm || status->MPI_SOURCE == MPI_PROC_NULL)
        return;
    record_computation();
    uint8_t *at = part_begin(4 * NUMBER_MAX);
    if (!at)
        return;
    at = put_number(at, world_rank(comm, status->MPI_SOURCE));
    at = put_number(at, zigzag(status->MPI_TAG));
    part_commit(tag, put_id(at, comm->id));
}

/* A message that a matching probe took out of the queue. */
struct message {
    struct communicator *comm;
    MPI_Comm handle;
    int from, tag;  /* what was probed for */
    MPI_Status status;
};
static struct handle_map messages;

void message_found(enum record_tag how, MPI_Comm handle, int from, int tag, const MPI_Status *status,
                   MPI_Message message)
{
    struct communicator *comm = communicator_of(handle);
    if (!comm || message == MPI_MESSAGE_NO_PROC)
        return;
    probe_found(how, handle, status);
    struct message *found = allocate(1, sizeof *found);
    *found = (struct message){comm, handle, from, tag, *status};
    comm->references++;
    handle_map_insert(&messages, HANDLE_KEY(message), (uintptr_t)found);
}

void message_received(struct how how, struct data data, MPI_Message message)
{
    uintptr_t *slot = handle_map_find(&messages, HANDLE_KEY(message));
    if (!slot) {
        if (message != MPI_MESSAGE_NO_PROC)
            record_unrecorded(true);
        return;
    }
    struct message *found = (struct message *)*slot;
    handle_map_remove(&messages, HANDLE_KEY(message));
    if (how.request) {
        /* The match is known: no need to wait for the completion. */
        uint8_t body[BODY_MAX];
        uint8_t *end = put_receive(body, found->comm, data, found->from, found->tag);
        if (is_wildcard(found->from, found->tag))
            put_match(end - MATCH_BYTES, world_rank(found->comm, found->status.MPI_SOURCE), found->status.MPI_TAG);
        request_post(how, RECORD_IRECEIVE, body, (size_t)(end - body), NULL);
    } else {
        receive_posted(how, data, found->from, found->tag, found->handle, &found->status);
    }
    communicator_release(found->comm);
    free(found);
}
