/* A stand-in for libweft.so in the provider's tests: processes of one host, wall-clock time, no network.
 *
 * It implements what the provider uses of weft.h over an inbox per rank in shared memory:
 *
 *   sender ── eager: record with data ──────────> inbox ── match ── copy
 *          ── large: record with address ───────> inbox ── match ── process_vm_readv ── acknowledgement ──> sender
 *
 * The job is named by WEFT_JOB; rank and count are WEFT_RANK and WEFT_COUNT, or those of the process manager.
 */
#include "weft.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MOST_RANKS 64
#define MOST_REGIONS 256
#define INBOX_BYTES (1u << 20)
#define EAGER_BYTES 8192
#define INJECT_BYTES 64

enum kind { EAGER, LARGE, ACKNOWLEDGEMENT, WRITTEN_WITH_DATA };

/* Sizes are multiples of 8; a record never wraps: the rest of the ring is skipped by one of kind SKIP. */
#define SKIP UINT32_MAX

struct record {
    uint32_t size, kind;
    uint32_t source, completes; /* the sender waits for an acknowledgement */
    uint64_t flags, tag, data, length;
    uint64_t address; /* of the sender's buffer */
    uint64_t context; /* of the sender's operation */
};

struct inbox {
    atomic_flag lock;
    _Atomic uint64_t head, tail; /* bytes ever taken, put */
    char bytes[INBOX_BYTES];
};

struct region {
    bool used;
    uint64_t key, base, length, access;
};

struct member {
    _Atomic int32_t process;
    struct region regions[MOST_REGIONS];
    struct inbox inbox;
};

struct job {
    struct member members[MOST_RANKS];
};

struct arrival {
    struct arrival *next;
    struct record record;
    bool claimed;
    void *claimer;
    char *data; /* eager */
};

struct posted {
    struct posted *next;
    uint32_t from;
    uint64_t tag, ignore, flags;
    char *buffer;
    size_t length, used;
    void *context;
};

struct pending {
    struct pending *next;
    uint32_t to;
    struct record record;
};

struct done {
    struct done *next;
    weft_completion completion;
};

struct weft_rank {
    uint32_t number, count;
    struct job *job;
    size_t min_multi_receive;
    uint64_t next_key;
    struct arrival *arrivals;
    struct posted *posted;
    struct pending *pending;
    struct done *done, **last_done;
};

static struct weft_rank this_rank;
static bool joined;

static void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* ---- Inboxes -------------------------------------------------------------------------------------------- */

static bool put(struct inbox *inbox, const struct record *record, const void *data, size_t length)
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

static void complete(weft_rank *rank, const weft_completion *completion)
{
    struct done *done = need(malloc(sizeof *done));
    done->next = NULL;
    done->completion = *completion;
    *rank->last_done = done;
    rank->last_done = &done->next;
}

static void flush_pending(weft_rank *rank)
{
    while (rank->pending && put(&rank->job->members[rank->pending->to].inbox, &rank->pending->record, NULL, 0)) {
        struct pending *sent = rank->pending;
        rank->pending = sent->next;
        free(sent);
    }
}

static void acknowledge(weft_rank *rank, const struct record *record)
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

/* ---- Matching -------------------------------------------------------------------------------------------- */

static bool matches(const struct posted *posted, const struct record *record)
{
    if ((posted->flags ^ record->flags) & WEFT_TAGGED)
        return false;
    if (posted->from != WEFT_ANY_SOURCE && posted->from != record->source)
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

static void drop(struct arrival *arrival)
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
                       .flags = WEFT_RECEIVED | (record->flags & (WEFT_TAGGED | WEFT_DATA)) | more_flags,
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
        bool release = posted->used >= posted->length || posted->length - posted->used < rank->min_multi_receive;
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

static void arrive(weft_rank *rank, const struct record *record, const char *data)
{
    switch (record->kind) {
    case ACKNOWLEDGEMENT:
        complete(rank, &(weft_completion){.context = (void *)(uintptr_t)record->context, .flags = WEFT_SENT});
        return;
    case WRITTEN_WITH_DATA:
        complete(rank, &(weft_completion){.flags = WEFT_REMOTE_WRITE | WEFT_DATA,
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

static void progress(weft_rank *rank)
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

/* ---- weft.h ----------------------------------------------------------------------------------------------- */

static uint32_t number_from(const char *name, const char *other)
{
    const char *text = getenv(name);
    if (!text)
        text = getenv(other);
    return text ? (uint32_t)strtoul(text, NULL, 10) : UINT32_MAX;
}

int weft_open(weft_rank **rank)
{
    *rank = &this_rank;
    if (joined)
        return 0;
    const char *name = getenv("WEFT_JOB");
    this_rank.number = number_from("WEFT_RANK", "PMI_RANK");
    this_rank.count = number_from("WEFT_COUNT", "PMI_SIZE");
    if (!name || this_rank.number >= this_rank.count)
        return -ENOENT;
    if (this_rank.count > MOST_RANKS)
        return -E2BIG;
    int file = shm_open(name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct job)) != 0)
        return -errno;
    void *memory = mmap(NULL, sizeof(struct job), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return -errno;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    this_rank.job = memory;
    this_rank.job->members[this_rank.number].process = getpid();
    this_rank.min_multi_receive = 64;
    this_rank.next_key = 1u << 20;
    if (!this_rank.last_done)
        this_rank.last_done = &this_rank.done;
    joined = true;
    return 0;
}

void weft_close(weft_rank *rank)
{
    while (rank->pending) {
        flush_pending(rank);
        sched_yield();
    }
    munmap(rank->job, sizeof(struct job));
    joined = false;
}

uint32_t weft_number(const weft_rank *rank)
{
    return rank->number;
}

uint32_t weft_count(const weft_rank *rank)
{
    return rank->count;
}

uint64_t weft_clock_ps(const weft_rank *rank)
{
    (void)rank;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) * 1000u;
}

size_t weft_inject_limit(const weft_rank *rank)
{
    (void)rank;
    return INJECT_BYTES;
}

int weft_send(weft_rank *rank, uint32_t to, uint64_t tag, const void *buffer, size_t length, uint64_t data,
              uint64_t flags, void *context)
{
    if (to >= rank->count || (flags & WEFT_INJECT && length > INJECT_BYTES))
        return -EINVAL;
    bool eager = length <= EAGER_BYTES;
    struct record record = {
        .kind = eager ? EAGER : LARGE,
        .source = rank->number,
        .completes = !eager && flags & WEFT_COMPLETION,
        .flags = flags,
        .tag = tag,
        .data = data,
        .length = length,
        .address = (uintptr_t)buffer,
        .context = (uintptr_t)context,
    };
    if (!put(&rank->job->members[to].inbox, &record, buffer, eager ? length : 0))
        return -EAGAIN;
    if (eager && !(flags & WEFT_INJECT) && flags & WEFT_COMPLETION)
        complete(rank, &(weft_completion){.context = context, .flags = WEFT_SENT});
    return 0;
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
        .context = context,
    };
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

void weft_set_min_multi_receive(weft_rank *rank, size_t bytes)
{
    rank->min_multi_receive = bytes;
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
            .flags = WEFT_RECEIVED | (record->flags & (WEFT_TAGGED | WEFT_DATA)),
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

ssize_t weft_poll(weft_rank *rank, weft_completion *completions, size_t count)
{
    progress(rank);
    size_t taken = 0;
    for (; taken < count && rank->done; taken++) {
        struct done *done = rank->done;
        completions[taken] = done->completion;
        rank->done = done->next;
        if (!rank->done)
            rank->last_done = &rank->done;
        free(done);
    }
    return (ssize_t)taken;
}

void weft_yield(weft_rank *rank)
{
    (void)rank;
    sched_yield();
}

/* ---- Memory ------------------------------------------------------------------------------------------------ */

static struct region *find_region(struct member *member, uint64_t key)
{
    for (int i = 0; i < MOST_REGIONS; i++)
        if (member->regions[i].used && member->regions[i].key == key)
            return &member->regions[i];
    return NULL;
}

int weft_register(weft_rank *rank, void *base, size_t length, uint64_t access, uint64_t *key)
{
    struct member *member = &rank->job->members[rank->number];
    if (*key == UINT64_MAX)
        *key = rank->next_key++;
    else if (find_region(member, *key))
        return -EEXIST;
    for (int i = 0; i < MOST_REGIONS; i++)
        if (!member->regions[i].used) {
            member->regions[i] = (struct region){true, *key, (uintptr_t)base, length, access};
            return 0;
        }
    return -ENOMEM;
}

int weft_unregister(weft_rank *rank, uint64_t key)
{
    struct region *region = find_region(&rank->job->members[rank->number], key);
    if (!region)
        return -ENOENT;
    region->used = false;
    return 0;
}

static bool allowed(struct member *member, uint64_t key, uint64_t address, size_t length, uint64_t access)
{
    const struct region *region = find_region(member, key);
    return region && region->access & access && address >= region->base && length <= region->length &&
           address - region->base <= region->length - length;
}

static int transfer(weft_rank *rank, uint32_t peer, void *local, size_t length, uint64_t remote, bool writes)
{
    int process = rank->job->members[peer].process;
    for (size_t had = 0; had < length;) {
        struct iovec here = {(char *)local + had, length - had};
        struct iovec there = {(char *)(uintptr_t)remote + had, length - had};
        ssize_t part = writes ? process_vm_writev(process, &here, 1, &there, 1, 0)
                              : process_vm_readv(process, &here, 1, &there, 1, 0);
        if (part <= 0)
            return EFAULT;
        had += (size_t)part;
    }
    return 0;
}

int weft_write(weft_rank *rank, uint32_t to, const void *local, size_t length, uint64_t remote, uint64_t key,
               uint64_t data, uint64_t flags, void *context)
{
    if (to >= rank->count)
        return -EINVAL;
    struct member *member = &rank->job->members[to];
    int error = allowed(member, key, remote, length, WEFT_ACCESS_WRITE) ? 0 : EACCES;
    if (!error)
        error = transfer(rank, to, (void *)(uintptr_t)local, length, remote, true);
    struct record record = {.kind = WRITTEN_WITH_DATA, .source = rank->number, .data = data, .length = length};
    if (!error && flags & WEFT_DATA && !put(&member->inbox, &record, NULL, 0))
        return -EAGAIN;
    if (error || flags & WEFT_COMPLETION)
        complete(rank, &(weft_completion){.context = context, .flags = WEFT_WRITTEN, .error = error});
    return 0;
}

int weft_read(weft_rank *rank, uint32_t from, void *local, size_t length, uint64_t remote, uint64_t key,
              uint64_t flags, void *context)
{
    if (from >= rank->count)
        return -EINVAL;
    int error = allowed(&rank->job->members[from], key, remote, length, WEFT_ACCESS_READ) ? 0 : EACCES;
    if (!error)
        error = transfer(rank, from, local, length, remote, false);
    if (error || flags & WEFT_COMPLETION)
        complete(rank, &(weft_completion){.context = context, .flags = WEFT_READ, .error = error});
    return 0;
}
