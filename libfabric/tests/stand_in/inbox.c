/* Inboxes in shared memory, and the completions that wait to be polled. */
#include "stand_in.h"

bool put(struct inbox *inbox, const struct record *record, const void *data, size_t length)
{
    uint32_t size = (uint32_t)((sizeof *record + length + 7) & ~(size_t)7);
    while (atomic_flag_test_and_set_explicit(&inbox->lock, memory_order_acquire))
        sched_yield();
    uint64_t tail = inbox->tail;
    uint64_t room = INBOX_BYTES - (tail - inbox->head);
    uint64_t to_end = INBOX_BYTES - tail % INBOX_BYTES;
    bool wraps = to_end < size;
    bool fits = room >= (wraps ? to_end : 0) + size;
    if (fits) {
        if (wraps) {
            uint32_t skip[2] = {(uint32_t)to_end, SKIP};
            memcpy(inbox->bytes + tail % INBOX_BYTES, skip, sizeof skip);
            tail += to_end;
        }
        char *at = inbox->bytes + tail % INBOX_BYTES;
        memcpy(at, record, sizeof *record);
        memcpy(at, &size, sizeof size);
        if (length)
            memcpy(at + sizeof *record, data, length);
        inbox->tail = tail + size;
    }
    atomic_flag_clear_explicit(&inbox->lock, memory_order_release);
    return fits;
}

void complete(weft_rank *rank, const weft_completion *completion)
{
    struct done *done = need(malloc(sizeof *done));
    done->next = NULL;
    done->completion = *completion;
    *rank->last_done = done;
    rank->last_done = &done->next;
}

void flush_pending(weft_rank *rank)
{
    while (rank->pending && put(&rank->job->members[rank->pending->to].inbox, &rank->pending->record, NULL, 0)) {
        struct pending *sent = rank->pending;
        rank->pending = sent->next;
        free(sent);
    }
}

void acknowledge(weft_rank *rank, const struct record *record)
{
    if (!record->completes)
        return;
    struct pending *pending = need(malloc(sizeof *pending));
    pending->next = NULL;
    pending->to = record->source;
    pending->record = (struct record){.kind = ACKNOWLEDGEMENT, .source = rank->number, .context = record->context};
    struct pending **last = &rank->pending;
    while (*last)
        last = &(*last)->next;
    *last = pending;
    flush_pending(rank);
}

void progress(weft_rank *rank)
{
    struct inbox *inbox = &rank->job->members[rank->number].inbox;
    flush_pending(rank);
    uint64_t head = inbox->head, tail = inbox->tail;
    while (head < tail) {
        const char *at = inbox->bytes + head % INBOX_BYTES;
        uint32_t size[2];
        memcpy(size, at, sizeof size);
        if (size[1] != SKIP) {
            struct record record;
            memcpy(&record, at, sizeof record);
            arrive(rank, &record, at + sizeof record);
        }
        head += size[0];
        inbox->head = head;
    }
}
