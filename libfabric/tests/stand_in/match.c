/* Matching of messages and receives: by source and tag, in order. */
#include "stand_in.h"

static bool matches(const struct posted *posted, const struct record *record)
{
    if ((posted->flags ^ record->flags) & WEFT_TAGGED)
        return false;
    if (own_endpoint(posted->flags) != peer_endpoint(record->flags))
        return false;
    if (posted->from != WEFT_ANY_SOURCE &&
        (posted->from != record->source || peer_endpoint(posted->flags) != own_endpoint(record->flags)))
        return false;
    return !(posted->flags & WEFT_TAGGED) || !((posted->tag ^ record->tag) & ~posted->ignore);
}

static void fetch(weft_rank *rank, const struct arrival *arrival, char *to, size_t length)
{
    if (arrival->record.kind == EAGER) {
        if (length)
            memcpy(to, arrival->data, length);
        return;
    }
    int process = rank->job->members[arrival->record.source].process;
    for (size_t had = 0; had < length;) {
        struct iovec local = {to + had, length - had};
        struct iovec remote = {(char *)(uintptr_t)arrival->record.address + had, length - had};
        ssize_t part = process_vm_readv(process, &local, 1, &remote, 1, 0);
        if (part <= 0) {
            perror("stand-in: process_vm_readv");
            abort();
        }
        had += (size_t)part;
    }
}

void drop(struct arrival *arrival)
{
    free(arrival->data);
    free(arrival);
}

static void deliver(weft_rank *rank, const struct posted *posted, char *buffer, size_t room, struct arrival *arrival,
                    uint64_t more_flags)
{
    const struct record *record = &arrival->record;
    size_t length = record->length < room ? record->length : room;
    fetch(rank, arrival, buffer, length);
    acknowledge(rank, record);
    complete(rank, &(weft_completion){
                       .context = posted->context,
                       .flags = WEFT_RECEIVED | (record->flags & (WEFT_TAGGED | WEFT_DATA)) |
                                endpoints_received(record->flags) | more_flags,
                       .length = length,
                       .buffer = buffer,
                       .data = record->data,
                       .tag = record->tag,
                       .source = record->source,
                       .error = record->length > room ? EMSGSIZE : 0,
                       .overflow = record->length - length,
                   });
}

static void take_posted(weft_rank *rank, struct posted *posted)
{
    struct posted **at = &rank->posted;
    while (*at != posted)
        at = &(*at)->next;
    *at = posted->next;
    free(posted);
}

/* True: `arrival` has found a receive and is gone. */
static bool match_arrival(weft_rank *rank, struct arrival *arrival)
{
    for (struct posted *posted = rank->posted, *next; posted; posted = next) {
        next = posted->next;
        if (!matches(posted, &arrival->record))
            continue;
        if (!(posted->flags & WEFT_MULTI_RECEIVE)) {
            deliver(rank, posted, posted->buffer, posted->length, arrival, 0);
            take_posted(rank, posted);
            drop(arrival);
            return true;
        }
        size_t left = posted->length - posted->used;
        if (arrival->record.length > left && posted->used > 0) {
            complete(rank, &(weft_completion){.context = posted->context, .flags = WEFT_BUFFER_RELEASED});
            take_posted(rank, posted);
            continue;
        }
        char *buffer = posted->buffer + posted->used;
        size_t taken = arrival->record.length < left ? arrival->record.length : left;
        posted->used += (taken + 15) & ~(size_t)15;
        bool release = posted->used >= posted->length || posted->length - posted->used < posted->min_left;
        deliver(rank, posted, buffer, left, arrival, WEFT_MULTI_RECEIVE | (release ? WEFT_BUFFER_RELEASED : 0));
        if (release)
            take_posted(rank, posted);
        drop(arrival);
        return true;
    }
    return false;
}

static void keep(weft_rank *rank, struct arrival *arrival)
{
    struct arrival **last = &rank->arrivals;
    while (*last)
        last = &(*last)->next;
    *last = arrival;
}

void arrive(weft_rank *rank, const struct record *record, const char *data)
{
    switch (record->kind) {
    case ACKNOWLEDGEMENT:
        complete(rank, &(weft_completion){.context = (void *)(uintptr_t)record->context, .flags = WEFT_SENT});
        return;
    case WRITTEN_WITH_DATA:
        complete(rank, &(weft_completion){.flags = WEFT_REMOTE_WRITE | WEFT_DATA | endpoints_received(record->flags),
                                          .length = record->length,
                                          .data = record->data,
                                          .source = record->source});
        return;
    }
    struct arrival *arrival = need(calloc(1, sizeof *arrival));
    arrival->record = *record;
    if (record->kind == EAGER) {
        arrival->data = need(malloc(record->length + 1));
        memcpy(arrival->data, data, record->length);
    }
    if (!match_arrival(rank, arrival))
        keep(rank, arrival);
}

static struct arrival *take_arrival(weft_rank *rank, struct arrival *arrival)
{
    struct arrival **at = &rank->arrivals;
    while (*at != arrival)
        at = &(*at)->next;
    *at = arrival->next;
    arrival->next = NULL;
    return arrival;
}

static int receive_claimed(weft_rank *rank, const struct posted *posted)
{
    struct arrival *arrival = rank->arrivals;
    while (arrival && !(arrival->claimed && arrival->claimer == posted->context))
        arrival = arrival->next;
    if (!arrival)
        return -ENOMSG;
    take_arrival(rank, arrival);
    if (posted->flags & WEFT_DISCARD) {
        acknowledge(rank, &arrival->record);
        complete(rank, &(weft_completion){.context = posted->context,
                                          .flags = WEFT_RECEIVED | WEFT_TAGGED,
                                          .tag = arrival->record.tag,
                                          .source = arrival->record.source});
    } else {
        deliver(rank, posted, posted->buffer, posted->length, arrival, 0);
    }
    drop(arrival);
    return 0;
}

int weft_receive(weft_rank *rank, uint32_t from, uint64_t tag, uint64_t ignore, void *buffer, size_t length,
                 uint64_t flags, void *context)
{
    struct posted posted = {
        .from = from,
        .tag = tag,
        .ignore = ignore,
        .flags = flags,
        .buffer = buffer,
        .length = length,
        .min_left = rank->min_multi_receive,
        .context = context,
    };
    if (!has_endpoints(flags))
        return -EINVAL;
    if (flags & WEFT_CLAIM)
        return receive_claimed(rank, &posted);
    struct posted *kept = need(malloc(sizeof *kept));
    *kept = posted;
    struct posted **last = &rank->posted;
    while (*last)
        last = &(*last)->next;
    *last = kept;
    for (struct arrival *arrival = rank->arrivals, *next; arrival; arrival = next) {
        next = arrival->next;
        if (arrival->claimed || !matches(&posted, &arrival->record))
            continue;
        take_arrival(rank, arrival);
        if (!match_arrival(rank, arrival))
            abort(); /* the receive that has just been posted takes it, if no earlier one does */
        if (!(flags & WEFT_MULTI_RECEIVE))
            break;
        struct posted *still = rank->posted;
        while (still && still != kept)
            still = still->next;
        if (!still)
            break;
    }
    return 0;
}

int weft_peek(weft_rank *rank, uint32_t from, uint64_t tag, uint64_t ignore, uint64_t flags, void *context,
              weft_completion *found)
{
    progress(rank);
    struct posted wanted = {.from = from, .tag = tag, .ignore = ignore, .flags = flags};
    for (struct arrival *arrival = rank->arrivals; arrival; arrival = arrival->next) {
        const struct record *record = &arrival->record;
        if (arrival->claimed || !matches(&wanted, record))
            continue;
        *found = (weft_completion){
            .context = context,
            .flags = WEFT_RECEIVED | (record->flags & (WEFT_TAGGED | WEFT_DATA)) | endpoints_received(record->flags),
            .length = record->length,
            .data = record->data,
            .tag = record->tag,
            .source = record->source,
        };
        if (flags & WEFT_DISCARD) {
            acknowledge(rank, record);
            drop(take_arrival(rank, arrival));
        } else if (flags & WEFT_CLAIM) {
            arrival->claimed = true;
            arrival->claimer = context;
        }
        return 1;
    }
    return 0;
}

int weft_cancel(weft_rank *rank, void *context)
{
    struct posted *posted = rank->posted;
    while (posted && posted->context != context)
        posted = posted->next;
    if (!posted)
        return -ENOENT;
    complete(rank, &(weft_completion){.context = context,
                                      .flags = WEFT_RECEIVED | (posted->flags & WEFT_TAGGED),
                                      .error = ECANCELED});
    take_posted(rank, posted);
    return 0;
}
