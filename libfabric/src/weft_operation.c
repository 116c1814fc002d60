/* Operations under way, and what becomes of them: completions are taken from the interface and handed to the queue and
 * the counter of the endpoint that each is of.
 *
 *   post ── weft_operation_begin ──> active ── weft_poll ──> event in a queue, counter + 1
 *             │ gather: data is copied now                    │ scatter: data goes to its pieces
 *             └──────────── weft_operation_end (post refused) └── weft_operation_end
 */
#include "weft_fi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PER_POLL 64

struct weft_operation *weft_operation_begin(struct weft_endpoint *endpoint)
{
    struct weft_operation *operation = endpoint->unused;
    if (operation)
        endpoint->unused = operation->next;
    else if (!(operation = malloc(sizeof *operation)))
        return NULL;
    *operation = (struct weft_operation){.endpoint = endpoint, .next = endpoint->active};
    if (endpoint->active)
        endpoint->active->previous = operation;
    endpoint->active = operation;
    return operation;
}

void weft_operation_end(struct weft_operation *operation)
{
    struct weft_endpoint *endpoint = operation->endpoint;
    free(operation->packed);
    if (!endpoint) {
        free(operation);
        return;
    }
    if (operation->previous)
        operation->previous->next = operation->next;
    else
        endpoint->active = operation->next;
    if (operation->next)
        operation->next->previous = operation->previous;
    operation->next = endpoint->unused;
    endpoint->unused = operation;
}

/* Copies the data, which the program may then change. */
int weft_operation_gather(struct weft_operation *operation, const struct iovec *pieces, size_t count)
{
    operation->packed = malloc(weft_iov_length(pieces, count) + 1);
    if (!operation->packed)
        return -FI_ENOMEM;
    char *at = operation->packed;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].iov_len)
            memcpy(at, pieces[i].iov_base, pieces[i].iov_len);
        at += pieces[i].iov_len;
    }
    return 0;
}

/* Allocates room for the data, and behind it the list of pieces that the data is scattered to on receipt. */
int weft_operation_scatter_later(struct weft_operation *operation, const struct iovec *pieces, size_t count)
{
    size_t alignment = _Alignof(struct iovec);
    size_t length = (weft_iov_length(pieces, count) + alignment) / alignment * alignment;
    operation->packed = malloc(length + count * sizeof *pieces);
    if (!operation->packed)
        return -FI_ENOMEM;
    operation->pieces = (struct iovec *)(void *)(operation->packed + length);
    operation->piece_count = count;
    memcpy(operation->pieces, pieces, count * sizeof *pieces);
    return 0;
}

static void scatter(const struct weft_operation *operation, size_t length)
{
    const char *at = operation->packed;
    for (size_t i = 0; i < operation->piece_count && length > 0; i++) {
        size_t part = operation->pieces[i].iov_len < length ? operation->pieces[i].iov_len : length;
        if (part)
            memcpy(operation->pieces[i].iov_base, at, part);
        at += part;
        length -= part;
    }
}

/* ---- Completions -------------------------------------------------------------------------------------- */

/* libfabric has numbers of its own for a few of the errors of weft.h. */
static int fabric_error(int error)
{
    switch (error) {
    case EMSGSIZE:
        return FI_ETRUNC;
    case EPIPE:
        return FI_ECONNRESET;
    default:
        return error;
    }
}

static bool is_receive(const weft_completion *completion)
{
    return completion->flags & (WEFT_RECEIVED | WEFT_REMOTE_WRITE | WEFT_BUFFER_RELEASED);
}

/* The flags in the queue entry of a finished operation. */
static uint64_t entry_flags(const struct weft_operation *operation, const weft_completion *completion)
{
    uint64_t flags = 0;
    if (operation && !(completion->flags & WEFT_BUFFER_RELEASED && !(completion->flags & WEFT_RECEIVED)))
        flags = operation->flags;
    else if (completion->flags & WEFT_REMOTE_WRITE)
        flags = FI_RMA | FI_REMOTE_WRITE;
    if (completion->flags & WEFT_DATA && is_receive(completion))
        flags |= FI_REMOTE_CQ_DATA;
    if (completion->flags & WEFT_BUFFER_RELEASED)
        flags |= FI_MULTI_RECV;
    return flags;
}

static void count_completion(struct weft_endpoint *endpoint, const struct weft_operation *operation,
                             const weft_completion *completion)
{
    struct weft_counter *counter = endpoint->counters[operation->counted];
    if (!counter)
        return;
    if (completion->error)
        counter->errors++;
    else if (operation->counted == WEFT_COUNT_RECEIVE && !(completion->flags & WEFT_RECEIVED))
        return; /* it reports a free buffer, no message */
    else if (counter->counts_bytes)
        counter->value += operation->counted == WEFT_COUNT_RECEIVE ? completion->length : operation->length;
    else
        counter->value++;
}

static void report_completion(struct weft_process *process, const weft_completion *completion)
{
    struct weft_operation *operation = completion->context;
    uint8_t number = (uint8_t)(completion->flags >> WEFT_ENDPOINT_SHIFT);
    struct weft_endpoint *endpoint = operation ? operation->endpoint : process->endpoints[number];
    if (!endpoint) {
        if (operation)
            weft_operation_end(operation); /* of an endpoint that has been closed since */
        return;
    }
    bool received = operation ? operation->counted == WEFT_COUNT_RECEIVE : is_receive(completion);
    if (operation) {
        if (operation->pieces)
            scatter(operation, operation->counted == WEFT_COUNT_READ ? operation->length : completion->length);
        count_completion(endpoint, operation, completion);
    }
    struct weft_cq *queue = received ? endpoint->receive_queue : endpoint->transmit_queue;
    /* Errors, freed buffers and data from a peer's write are reported even where no completion was asked for. */
    bool reported = !operation || operation->reported || completion->error ||
                    completion->flags & WEFT_BUFFER_RELEASED;
    if (queue && reported) {
        struct weft_event event = {
            .entry =
                {
                    .op_context = operation ? operation->context : NULL,
                    .flags = entry_flags(operation, completion),
                    .len = received ? completion->length : 0,
                    .buf = received ? completion->buffer : NULL,
                    .data = completion->data,
                    .tag = completion->tag,
                },
            .source = completion->source,
            .source_endpoint = weft_source_endpoint(completion),
            .endpoint = received ? (uint16_t)endpoint->number : WEFT_NO_ENDPOINT,
            .error = fabric_error(completion->error),
            .provider_error = completion->error,
            .overflow = completion->overflow,
        };
        weft_cq_push(queue, &event);
    }
    /* A multi-receive buffer stays posted until it is given back. */
    bool stays = operation && operation->multi_receive && !(completion->flags & WEFT_BUFFER_RELEASED) &&
                 completion->error != ECANCELED;
    if (operation && !stays)
        weft_operation_end(operation);
}

/* Polls the interface, once an endpoint is enabled. */
void weft_process_progress(struct weft_process *process, size_t batch)
{
    weft_completion completions[MOST_PER_POLL];
    if (!process->enabled)
        return;
    /* A program that polls one of several queues does not wait while another has something to read. */
    if (process->told_unread != (process->unread > 0)) {
        process->told_unread = process->unread > 0;
        process->library.set_unread(process->rank, process->told_unread);
    }
    ssize_t count = process->library.poll(process->rank, completions, batch);
    for (ssize_t i = 0; i < count; i++)
        report_completion(process, &completions[i]);
}

/* The endpoint closes: posted receives are cancelled, and later completions are ignored. */
void weft_endpoint_forget(struct weft_endpoint *endpoint)
{
    while (endpoint->active) {
        struct weft_operation *operation = endpoint->active;
        endpoint->active = operation->next;
        operation->endpoint = NULL;
        if (operation->claimed)
            weft_operation_end(operation); /* its receive was never posted */
        else if (operation->counted == WEFT_COUNT_RECEIVE)
            endpoint->process->library.cancel(endpoint->process->rank, operation);
    }
    while (endpoint->unused) {
        struct weft_operation *operation = endpoint->unused;
        endpoint->unused = operation->next;
        free(operation);
    }
}
