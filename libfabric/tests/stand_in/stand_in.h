/* A stand-in for libweft_client.so in the provider's tests: processes of one host, wall-clock time, no network.
 *
 * It implements what the provider uses of weft.h over an inbox per rank in shared memory:
 *
 *   sender ── eager: record with data ──────────> inbox ── match ── copy
 *          ── large: record with address ───────> inbox ── match ── process_vm_readv ── acknowledgement ──> sender
 *
 * The job is named by WEFT_JOB; rank and count are WEFT_RANK and WEFT_COUNT, or those of the process manager.
 */
#ifndef STAND_IN_H
#define STAND_IN_H

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* A preloaded library must show nothing but weft.h. */
#pragma GCC visibility push(default)
#include "weft.h"
#pragma GCC visibility pop

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
    size_t length, used, min_left;
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

/* The endpoints of an operation with these flags: of the process that gives them, and of its peer. */
static inline uint8_t own_endpoint(uint64_t flags)
{
    return (uint8_t)(flags >> WEFT_ENDPOINT_SHIFT);
}

static inline uint8_t peer_endpoint(uint64_t flags)
{
    return (uint8_t)(flags >> WEFT_PEER_ENDPOINT_SHIFT);
}

/* The flags of the receiver's completion that tell of them. */
static inline uint64_t endpoints_received(uint64_t sent)
{
    uint64_t to = peer_endpoint(sent), from = own_endpoint(sent);
    return to << WEFT_ENDPOINT_SHIFT | from << WEFT_PEER_ENDPOINT_SHIFT;
}

static inline bool has_endpoints(uint64_t flags)
{
    return own_endpoint(flags) < WEFT_ENDPOINTS && peer_endpoint(flags) < WEFT_ENDPOINTS;
}

static inline void *need(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* inbox.c */
bool put(struct inbox *inbox, const struct record *record, const void *data, size_t length);
void complete(weft_rank *rank, const weft_completion *completion);
void acknowledge(weft_rank *rank, const struct record *record);
void flush_pending(weft_rank *rank);
void progress(weft_rank *rank);

/* match.c */
void arrive(weft_rank *rank, const struct record *record, const char *data);
void drop(struct arrival *arrival);

#endif
