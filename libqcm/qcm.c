/* LibQCM over the virtual device of weft.h: see qcm.h.
 *
 *   completion, 64 bits:  63        40 39                    1 0
 *                        ┌────────────┬───────────────────────┬─┐   R: ready, as the bit of APX §3.3
 *                        │ sequence   │ length                │R│
 *                        └────────────┴───────────────────────┴─┘
 *
 * A transmission request is checked here, and becomes a descriptor of the device, which carries the completion's
 * address and path along with the packets (APX §3.3).
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "qcm.h"
#include "weft.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_BITS 39
#define SEQUENCE_SHIFT 40
#define SEQUENCE_MASK 0xFFFFFFu

/* The tag of handshakes: messages of the job's own, as a management network would carry them. */
#define HANDSHAKE_TAG 0x51434Du

/* Transmissions that may be under way at a time. */
enum { REQUESTS = 1024 };

/* A transmission request. The device names it by its id, which outlives it: a target that cannot carry out a write says
 * so after the transmission has ended. */
struct request {
    uint64_t id;
    qcm_buffer *buffer;
    bool under_way;
    bool blocking; /* its process waits for its end, and takes its error */
    int error;     /* of a blocking one, negative */
};

struct qcm {
    weft_rank *rank;
    weft_interface *queue;
    size_t under_way; /* transmissions that have not ended */
    uint64_t last;    /* id of the last request */
    int error;        /* the first error since the last flush, negative */
    qcm_buffer *buffers;
    struct request requests[REQUESTS];
};

struct qcm_buffer {
    qcm *card;
    qcm_buffer *next;
    char *memory;
    size_t length;
    enum qcm_completion path;
    enum qcm_memory kind;
    size_t under_way;
    uint64_t seen;                /* the completion that was last taken */
    volatile uint64_t completion; /* written by the card or the driver */
    uint32_t sent;                /* messages, for their sequence */
    uint64_t memory_key, completion_key;
};

int qcm_open(qcm **opened)
{
    if (!opened)
        return -EINVAL;
    qcm *card = calloc(1, sizeof *card);
    if (!card)
        return -ENOMEM;
    int status = weft_open(&card->rank);
    if (status == 0)
        status = weft_interface_allocate(card->rank, WEFT_DOMAIN_JOB, &card->queue);
    /* The card knows no memory but what the driver has registered. */
    if (status == 0)
        status = weft_interface_restrict(card->queue);
    if (status < 0) {
        free(card);
        return status;
    }
    *opened = card;
    return 0;
}

/* Peers write into a buffer no more. */
static void forget(qcm_buffer *buffer)
{
    weft_unregister(buffer->card->rank, buffer->memory_key);
    weft_unregister(buffer->card->rank, buffer->completion_key);
    free(buffer);
}

void qcm_close(qcm *card)
{
    if (!card)
        return;
    qcm_flush(card);
    while (card->buffers) {
        qcm_buffer *buffer = card->buffers;
        card->buffers = buffer->next;
        forget(buffer);
    }
    weft_interface_free(card->queue);
    weft_close(card->rank);
    free(card);
}

uint32_t qcm_number(const qcm *card)
{
    return weft_number(card->rank);
}

uint32_t qcm_count(const qcm *card)
{
    return weft_count(card->rank);
}

uint64_t qcm_clock_ps(const qcm *card)
{
    return weft_clock_ps(card->rank);
}

int qcm_register(qcm *card, void *memory, size_t length, enum qcm_completion path, qcm_buffer **registered)
{
    return qcm_register_in(card, QCM_MEMORY_MACHINE, memory, length, path, registered);
}

int qcm_register_in(qcm *card, enum qcm_memory kind, void *memory, size_t length, enum qcm_completion path,
                    qcm_buffer **registered)
{
    if (!card || !memory || !length || length >> LENGTH_BITS || !registered)
        return -EINVAL;
    if ((unsigned)path > QCM_USER_QUEUE || (unsigned)kind > QCM_MEMORY_GPU_STAGED)
        return -EINVAL;
    qcm_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return -ENOMEM;
    buffer->card = card;
    buffer->memory = memory;
    buffer->length = length;
    buffer->path = path;
    buffer->kind = kind;
    buffer->memory_key = buffer->completion_key = UINT64_MAX;
    int status = weft_register(card->rank, memory, length, WEFT_ACCESS_WRITE, &buffer->memory_key);
    if (status == 0)
        status = weft_register(card->rank, (void *)&buffer->completion, sizeof buffer->completion, WEFT_ACCESS_WRITE,
                               &buffer->completion_key);
    if (status < 0) {
        forget(buffer);
        return status;
    }
    buffer->next = card->buffers;
    card->buffers = buffer;
    *registered = buffer;
    return 0;
}

int qcm_deregister(qcm_buffer *buffer)
{
    if (!buffer)
        return -EINVAL;
    if (buffer->under_way)
        return -EBUSY;
    for (qcm_buffer **place = &buffer->card->buffers; *place; place = &(*place)->next) {
        if (*place == buffer) {
            *place = buffer->next;
            forget(buffer);
            return 0;
        }
    }
    return -EINVAL;
}

int qcm_handshake(qcm *card, uint32_t peer, const qcm_buffer *own, qcm_remote *theirs)
{
    if (!card || !own || own->card != card || !theirs)
        return -EINVAL;
    if (peer >= weft_count(card->rank))
        return -ENXIO;
    weft_address place = weft_interface_address(card->queue, own->memory);
    qcm_remote told = {
        .address = place.memory,
        .length = own->length,
        .completion = (uint64_t)(uintptr_t)&own->completion,
        .node = place.node,
        .queue = place.interface,
        .path = (uint8_t)own->path,
        .kind = (uint8_t)own->kind,
    };
    weft_completion done;
    int status = weft_receive(card->rank, peer, HANDSHAKE_TAG, 0, theirs, sizeof *theirs,
                              WEFT_TAGGED | WEFT_COMPLETION, NULL);
    if (status < 0)
        return status;
    while ((status = weft_send(card->rank, peer, HANDSHAKE_TAG, &told, sizeof told, 0, WEFT_TAGGED, NULL)) == -EAGAIN)
        weft_yield(card->rank);
    if (status < 0)
        return status;
    while (weft_poll(card->rank, &done, 1) != 1)
        weft_yield(card->rank);
    return -done.error;
}

/* Takes what the device says of transmissions. */
static void take_ends(qcm *card)
{
    weft_interface_completion ended[16];
    ptrdiff_t count = weft_interface_poll(card->queue, ended, 16);
    for (ptrdiff_t place = 0; place < count; place++) {
        uint64_t id = (uintptr_t)ended[place].context;
        struct request *request = &card->requests[id % REQUESTS];
        bool is_known = request->id == id && request->under_way;
        int *error = is_known && request->blocking ? &request->error : &card->error;
        if (ended[place].error && !*error)
            *error = -ended[place].error;
        if (!is_known)
            continue;
        request->under_way = false;
        request->buffer->under_way--;
        card->under_way--;
    }
}

int qcm_send(qcm_buffer *from, size_t offset, size_t length, const qcm_remote *to, size_t to_offset, unsigned flags)
{
    if (!from || !to || offset > from->length || length > from->length - offset)
        return -EINVAL;
    if (to_offset > to->length || length > to->length - to_offset || flags & ~QCM_BLOCKING)
        return -EINVAL;
    if (to->path > QCM_USER_QUEUE || to->kind > QCM_MEMORY_GPU_STAGED)
        return -EINVAL;
    qcm *card = from->card;
    uint64_t sequence = ++from->sent & SEQUENCE_MASK;
    uint64_t word = sequence << SEQUENCE_SHIFT | (uint64_t)length << 1 | 1;
    struct request *request = &card->requests[++card->last % REQUESTS];
    while (request->under_way) {
        take_ends(card);
        if (request->under_way)
            weft_yield(card->rank);
    }
    bool blocking = flags & QCM_BLOCKING;
    weft_address place = {.memory = to->address + to_offset, .node = to->node, .interface = to->queue, .domain = 0};
    uint32_t memories = (uint32_t)from->kind << WEFT_SOURCE_SHIFT | (uint32_t)to->kind << WEFT_TARGET_SHIFT;
    int status = weft_interface_deliver(card->queue, from->memory + offset, length, place, to->completion, word,
                                        to->path | memories | (blocking ? WEFT_ANSWERED : 0),
                                        (void *)(uintptr_t)card->last);
    if (status < 0)
        return status;
    *request = (struct request){.id = card->last, .buffer = from, .under_way = true, .blocking = blocking};
    from->under_way++;
    card->under_way++;
    while (blocking && request->under_way) {
        take_ends(card);
        if (request->under_way)
            weft_yield(card->rank);
    }
    return blocking ? request->error : 0;
}

int qcm_flush(qcm *card)
{
    while (card->under_way) {
        take_ends(card);
        if (card->under_way)
            weft_yield(card->rank);
    }
    int error = card->error;
    card->error = 0;
    return error;
}

int qcm_poll(qcm_buffer *buffer, qcm_rx_done *done)
{
    if (buffer->completion == buffer->seen) {
        /* Lets virtual time go on, and hears of ends meanwhile. */
        take_ends(buffer->card);
        weft_yield(buffer->card->rank);
        if (buffer->completion == buffer->seen)
            return 0;
    }
    buffer->seen = buffer->completion;
    if (done) {
        done->length = buffer->seen >> 1 & ((UINT64_C(1) << LENGTH_BITS) - 1);
        done->sequence = (uint32_t)(buffer->seen >> SEQUENCE_SHIFT) & SEQUENCE_MASK;
    }
    return 1;
}
