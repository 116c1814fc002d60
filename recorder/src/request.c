/* Requests: from the program's handle to the number in the recording. */
#include "recorder.h"

#include <stdlib.h>
#include <string.h>

struct requests requests = {.used = REQUEST_FIRST};

uint32_t request_add(MPI_Request handle)
{
    uint32_t number = requests.free;
    if (number) {
        requests.free = requests.all[number].next;
    } else {
        if (requests.used >= requests.capacity) {
            requests.capacity = requests.capacity ? 2 * requests.capacity : 256;
            requests.all = reallocate(requests.all, requests.capacity, sizeof *requests.all);
        }
        number = requests.used++;
    }
    requests.all[number] = (struct request){.last = number};
    uintptr_t *first = handle_map_find(&requests.by_handle, HANDLE_KEY(handle));
    if (first) {
        struct request *oldest = &requests.all[*first];
        requests.all[oldest->last].next = number;
        oldest->last = number;
    } else {
        handle_map_insert(&requests.by_handle, HANDLE_KEY(handle), number);
    }
    return number;
}

uint32_t request_find(MPI_Request handle)
{
    uintptr_t *first = handle_map_find(&requests.by_handle, HANDLE_KEY(handle));
    return first ? (uint32_t)*first : 0;
}

void request_unlink(MPI_Request handle)
{
    uintptr_t *first = handle_map_find(&requests.by_handle, HANDLE_KEY(handle));
    if (!first)
        return;
    struct request *oldest = &requests.all[*first];
    if (oldest->next) {
        requests.all[oldest->next].last = oldest->last;
        *first = oldest->next;
        oldest->next = 0;
    } else {
        handle_map_remove(&requests.by_handle, HANDLE_KEY(handle));
    }
}

void request_release(uint32_t number)
{
    struct request *request = &requests.all[number];
    if (request->comm)
        communicator_release(request->comm);
    free(request->body);
    *request = (struct request){.next = requests.free};
    requests.free = number;
}

/* Writes the posting record of a request that is now under way. */
static void record_post(uint32_t number, const uint8_t *body, size_t size)
{
    record_computation();
    struct request *request = &requests.all[number];
    request->active = true;
    requests.wildcards += request->wildcard;
    request->record = request->match = 0;
    uint8_t *start = part_begin(NUMBER_MAX + size);
    if (!start)
        return;
    uint8_t *at = put_number(start, number);
    memcpy(at, body, size);
    request->record = part_commit(request->tag, at + size);
    /* The tag is one byte before `start`. */
    if (request->wildcard)
        request->match = request->record + 1 + (uint64_t)(at + size - MATCH_BYTES - start);
}

void request_started(MPI_Request handle)
{
    uint32_t number = request_find(handle);
    if (number && requests.all[number].persistent)
        record_post(number, requests.all[number].body, requests.all[number].body_size);
}

void request_post(struct how how, enum record_tag tag, const uint8_t *body, size_t size,
                  struct communicator *wildcard_comm)
{
    uint32_t number = request_add(*how.request);
    struct request *request = &requests.all[number];
    request->tag = tag;
    request->wildcard = wildcard_comm != NULL;
    request->comm = wildcard_comm;
    if (wildcard_comm)
        wildcard_comm->references++;
    if (how.persistent) {
        request->persistent = true;
        request->body = allocate(size, 1);
        request->body_size = (uint32_t)size;
        memcpy(request->body, body, size);
    } else {
        record_post(number, body, size);
    }
}
