/* weft.h - the user-space interface of a rank under weft.
 *
 * A process that `weft run` has started calls weft_open() once and is a rank of its job from then on: its
 * clock is virtual, and what it sends travels over the simulated machine. All calls return 0 or a count,
 * or a negative errno. None may be called by two threads at once.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION 1

/* A rank: this process's side of the job. */
typedef struct weft_rank weft_rank;

/* Joins the job that the environment names (WEFT_JOB, the same for all its ranks, and
 * WEFT_DEVICE). -ENOENT: there is none: not under weft.
 * Does not enter virtual time: the first call that sends, receives or polls does. A second call
 * returns the same rank. */
int weft_open(weft_rank **rank);

/* Leaves. Operations that are under way are forgotten. */
void weft_close(weft_rank *rank);

/* This rank's number, and how many there are in the job. */
uint32_t weft_number(const weft_rank *rank);
uint32_t weft_count(const weft_rank *rank);

/* The virtual clock in picoseconds since the job began. */
uint64_t weft_clock_ps(const weft_rank *rank);

/* For recorders: the same clock, and how much of it the program itself has taken, that is computing by the host model of
 * `weft run`, sleeping and looking at the clock. Takes no time and needs no rank: 0 before the process is one. Either may be
 * NULL. */
void weft_times(uint64_t *clock_ps, uint64_t *program_ps);

/* The largest message that weft_send carries with WEFT_INJECT. */
size_t weft_inject_limit(const weft_rank *rank);

/* ---- Messages -------------------------------------------------------------------------------------- */

#define WEFT_ANY_SOURCE UINT32_MAX

/* Flags of operations. */
#define WEFT_TAGGED (1u << 0)            /* matched by tag; without it, a space of its own, matched by source alone */
#define WEFT_DATA (1u << 1)              /* 64 bits travel with the message into the receiver's completion */
#define WEFT_INJECT (1u << 2)            /* the buffer may be used again on return; never completes */
#define WEFT_COMPLETION (1u << 3)        /* reports a completion; without it only errors are */
#define WEFT_DELIVERY_COMPLETE (1u << 4) /* complete when the receiver has the data, not when it has left */
#define WEFT_MULTI_RECEIVE (1u << 5)     /* the buffer takes messages until less than min_multi_receive is left */
#define WEFT_CLAIM (1u << 6)             /* weft_peek: keeps the message for a receive with the same context */
#define WEFT_DISCARD (1u << 7)           /* weft_peek, and weft_receive of a claimed message: drops it */

#define WEFT_MATCH_COMPLETE (1u << 8)    /* of a message: complete when a receive has matched it (a synchronous send) */

/* What has happened; flags in weft_completion.flags beside WEFT_TAGGED, WEFT_DATA, WEFT_MULTI_RECEIVE. */
#define WEFT_SENT (1u << 16)
#define WEFT_RECEIVED (1u << 17)
#define WEFT_WRITTEN (1u << 18)
#define WEFT_READ (1u << 19)
#define WEFT_ATOMIC (1u << 20)
#define WEFT_REMOTE_WRITE (1u << 21)     /* a peer has written with WEFT_DATA into registered memory */
#define WEFT_BUFFER_RELEASED (1u << 22)  /* a multi-receive buffer is the program's again; may come alone */

typedef struct weft_completion {
    void *context;    /* as given to the operation */
    uint64_t flags;   /* WEFT_SENT, ... */
    size_t length;    /* bytes received */
    void *buffer;     /* multi-receive: where in the buffer */
    uint64_t data;    /* with WEFT_DATA */
    uint64_t tag;     /* of a tagged message */
    uint32_t source;  /* who sent it */
    int32_t error;    /* 0, or an errno: EMSGSIZE (truncated), ECANCELED, ENOMSG, EACCES, EPIPE (peer died) */
    size_t overflow;  /* bytes that did not fit, with EMSGSIZE */
} weft_completion;

/* Sends. With WEFT_INJECT `context` is not used. -EAGAIN: poll and try again. */
int weft_send(weft_rank *rank, uint32_t to, uint64_t tag, const void *buffer, size_t length, uint64_t data,
              uint64_t flags, void *context);

/* Posts a receive of a message from `from` (or WEFT_ANY_SOURCE) whose tag equals `tag` outside the bits of
 * `ignore`. */
int weft_receive(weft_rank *rank, uint32_t from, uint64_t tag, uint64_t ignore, void *buffer, size_t length,
                 uint64_t flags, void *context);

/* With multi-receive: how little must be left in a buffer before it is given back. Default 64. */
void weft_set_min_multi_receive(weft_rank *rank, size_t bytes);

/* Looks for a message that has come and no receive has matched: 1 and its description in `found`, or 0. Makes
 * progress, never blocks. */
int weft_peek(weft_rank *rank, uint32_t from, uint64_t tag, uint64_t ignore, uint64_t flags, void *context,
              weft_completion *found);

/* Cancels the receive with this context: 0 and a completion with ECANCELED follows; -ENOENT: none is posted. */
int weft_cancel(weft_rank *rank, void *context);

/* Makes progress and takes up to `count` completions, in order. An empty poll costs virtual time and may hand
 * over to others. */
ssize_t weft_poll(weft_rank *rank, weft_completion *completions, size_t count);

/* A hint that the program has nothing to do but to wait (what sched_yield says). */
void weft_yield(weft_rank *rank);

/* ---- Memory ---------------------------------------------------------------------------------------- */

#define WEFT_ACCESS_READ (1u << 0)   /* peers may read */
#define WEFT_ACCESS_WRITE (1u << 1)  /* peers may write and update */

/* Lets peers of the same protection domain reach memory. They name it by `key` and virtual address. `key` is
 * taken as given where it is not UINT64_MAX, and chosen otherwise. */
int weft_register(weft_rank *rank, void *base, size_t length, uint64_t access, uint64_t *key);
int weft_unregister(weft_rank *rank, uint64_t key);

/* RDMA write and read. `remote` is an address in the peer's virtual memory. */
int weft_write(weft_rank *rank, uint32_t to, const void *local, size_t length, uint64_t remote, uint64_t key,
               uint64_t data, uint64_t flags, void *context);
int weft_read(weft_rank *rank, uint32_t from, void *local, size_t length, uint64_t remote, uint64_t key,
              uint64_t flags, void *context);

#ifdef __cplusplus
}
#endif

#endif
