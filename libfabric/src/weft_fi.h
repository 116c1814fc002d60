/* The libfabric provider `weft`: fabric objects over the user-space interface of a simulated rank (weft.h).
 *
 *   process ── fabric ── domain ─┬─ address vector      fi_addr_t -> rank and endpoint
 *                                ├─ completion queue  ┐
 *                                ├─ counter           ┴─ fed by weft_process_progress()
 *                                ├─ memory region
 *                                └─ endpoint ── operations under way
 *
 * A process is one rank of its job, and its endpoints are numbered, whichever domains they are of. No fi_ symbol is
 * imported: Python loads MPI libraries where a plug-in's imports cannot find them.
 *
 * Threads: a program uses a domain, and all that is opened in it, in one thread at a time (FI_THREAD_DOMAIN). What
 * domains share, the rank and all queues that its completions go to, is used between weft_process_lock() and
 * weft_process_unlock().
 */
#ifndef WEFT_FI_H
#define WEFT_FI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "newer_libfabric.h"
#include "weft.h"

#define WEFT_PROVIDER_VERSION FI_VERSION(0, 1)

#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

/* ---- The library below: libweft_client.so, preloaded by `weft run` ------------------------------------------- */

/* The functions of weft.h by the name they have in struct weft_library. */
#define WEFT_LIBRARY_FUNCTIONS(FUNCTION)                                                                       \
    FUNCTION(open, weft_open)                                                                                  \
    FUNCTION(close, weft_close)                                                                                \
    FUNCTION(number, weft_number)                                                                              \
    FUNCTION(count, weft_count)                                                                                \
    FUNCTION(clock_ps, weft_clock_ps)                                                                          \
    FUNCTION(inject_limit, weft_inject_limit)                                                                  \
    FUNCTION(send, weft_send)                                                                                  \
    FUNCTION(receive, weft_receive)                                                                            \
    FUNCTION(set_min_multi_receive, weft_set_min_multi_receive)                                                \
    FUNCTION(peek, weft_peek)                                                                                  \
    FUNCTION(cancel, weft_cancel)                                                                              \
    FUNCTION(poll, weft_poll)                                                                                  \
    FUNCTION(set_unread, weft_set_unread)                                                                      \
    FUNCTION(yield, weft_yield)                                                                                \
    FUNCTION(register_memory, weft_register)                                                                   \
    FUNCTION(unregister_memory, weft_unregister)                                                               \
    FUNCTION(write, weft_write)                                                                                \
    FUNCTION(read, weft_read)

struct weft_library {
#define FUNCTION(field, symbol) __typeof__(symbol) *field;
    WEFT_LIBRARY_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* ---- Objects ------------------------------------------------------------------------------------------ */

/* Settings from the environment, FI_WEFT_<NAME>; weft_init.c has the table. */
struct weft_tunables {
    size_t inject_size; /* bytes; at most what the interface carries */
    size_t iov_limit;   /* buffers per message, gathered and scattered by the provider */
    size_t poll_batch;  /* completions taken per poll of the interface */
};

/* This process's side of its job. There is one, in weft_init.c: the program is one rank. */
struct weft_process {
    struct weft_library library;
    weft_rank *rank; /* NULL until the first getinfo under `weft run` */
    uint32_t number, count; /* of the rank, and of ranks */
    uint64_t job;
    unsigned fabrics; /* open */
    struct weft_endpoint *endpoints[WEFT_ENDPOINTS];
    unsigned enabled; /* of the endpoints */
    size_t unread;    /* events in all completion queues */
    bool told_unread; /* whether the library has been told that there are some */
    _Atomic uint32_t next_ticket, serving; /* of weft_process_lock() */
};

/* The address of an endpoint, as fi_getname gives and fi_av_insert takes it. */
struct weft_name {
    uint64_t job;
    uint32_t rank;
    uint16_t endpoint;
    uint16_t version; /* WEFT_NAME_VERSION */
};

#define WEFT_NAME_VERSION 2

/* An endpoint of a rank. */
struct weft_peer {
    uint32_t rank; /* WEFT_NO_RANK: there is none */
    uint32_t endpoint;
};
#define WEFT_ADDRESS_FORMAT (0x80000000u | 0x7ef7u) /* a format of this provider's own */

struct weft_fabric {
    struct fid_fabric fid;
    struct weft_process *process;
    struct weft_tunables tunables;
    unsigned references;
};

struct weft_domain {
    struct fid_domain fid;
    struct weft_fabric *fabric;
    bool chooses_keys; /* FI_MR_PROV_KEY, FI_MR_BASIC: the key asked for means nothing */
    unsigned references;
};

struct weft_memory {
    struct fid_mr fid;
    struct weft_domain *domain;
    bool registered; /* peers may reach it */
};

struct weft_av {
    struct fid_av fid;
    struct weft_domain *domain;
    enum fi_av_type type;
    unsigned references;
    struct weft_peer *peers; /* FI_AV_TABLE: by index; WEFT_NO_RANK where removed */
    size_t count, capacity;
    fi_addr_t *addresses; /* of first endpoints, by rank, for the sources of messages */
    fi_addr_t *(*others)[WEFT_ENDPOINTS]; /* the same of all others, by endpoint; NULL: none is there */
};

#define WEFT_NO_RANK WEFT_ANY_SOURCE
#define WEFT_NO_ENDPOINT UINT16_MAX

/* A completion as it waits to be read. */
struct weft_event {
    struct fi_cq_tagged_entry entry; /* all formats are prefixes of this one */
    uint32_t source;
    uint16_t source_endpoint;
    uint16_t endpoint; /* where it has been received; WEFT_NO_ENDPOINT: nowhere, or it has been closed */
    int error; /* positive FI_ error, 0: none */
    int provider_error;
    size_t overflow;
};

struct weft_cq {
    struct fid_cq fid;
    struct weft_domain *domain;
    struct weft_process *process;
    size_t entry_size;
    struct weft_event *events; /* a ring that grows: completions are never lost */
    size_t capacity, first, count;
    unsigned references;
};

struct weft_counter {
    struct fid_cntr fid;
    struct weft_domain *domain;
    bool counts_bytes;
    uint64_t value, errors;
    unsigned references;
};

/* The kinds of operation that an endpoint counts. */
enum weft_counted { WEFT_COUNT_SEND, WEFT_COUNT_RECEIVE, WEFT_COUNT_READ, WEFT_COUNT_WRITE, WEFT_COUNTED };

struct weft_endpoint {
    struct fid_ep fid;
    struct weft_domain *domain;
    struct weft_process *process;
    uint32_t number; /* of the process's */
    uint64_t caps;
    uint64_t transmit_flags, receive_flags; /* of calls without flags */
    size_t inject_size, transmit_iov_limit, receive_iov_limit;
    size_t min_multi_receive;
    bool enabled;
    struct weft_av *av;
    struct weft_cq *transmit_queue, *receive_queue;
    bool transmit_selective, receive_selective;
    struct weft_counter *counters[WEFT_COUNTED];
    struct weft_operation *active; /* posted and not complete */
    struct weft_operation *unused;
};

/* An operation from its post to its completion: the context that libweft is given. */
struct weft_operation {
    struct weft_operation *previous, *next;
    struct weft_endpoint *endpoint; /* NULL: it has been closed */
    void *context;                  /* the program's */
    uint64_t flags;                 /* FI_SEND | FI_TAGGED, ...: as reported */
    enum weft_counted counted;
    bool reported; /* in the queue; else in the counter only */
    bool multi_receive;
    bool claimed;  /* FI_PEEK | FI_CLAIM has found it, its receive is still to come */
    size_t length; /* bytes asked for */
    char *packed;  /* a copy of the data: of injected and gathered sends, of receives to be scattered */
    struct iovec *pieces; /* where `packed` goes on receipt */
    size_t piece_count;
};

/* ---- Functions, by file ------------------------------------------------------------------------------- */

static inline struct weft_endpoint *weft_endpoint_of(struct fid_ep *fid)
{
    return CONTAINER_OF(fid, struct weft_endpoint, fid);
}

/* weft_init.c */
extern struct fi_provider weft_provider;
int weft_process_join(struct weft_process **process);
int weft_tunables_read(struct weft_tunables *tunables);
void weft_log(enum fi_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void weft_process_lock(struct weft_process *process);
void weft_process_unlock(struct weft_process *process);

/* weft_attr.c */
int weft_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                 struct fi_info **info);

/* weft_fabric.c */
int weft_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int weft_no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int weft_no_control(struct fid *fid, int command, void *argument);
int weft_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* weft_domain.c */
int weft_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);

/* weft_eq.c */
int weft_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);

/* weft_av.c */
int weft_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
struct weft_name weft_name_of(const struct weft_process *process, struct weft_peer peer);
fi_addr_t weft_av_address(const struct weft_av *av, struct weft_peer peer);

#define WEFT_NOBODY ((struct weft_peer){.rank = WEFT_NO_RANK})

/* The endpoint behind an address, WEFT_NOBODY if there is none. */
static inline struct weft_peer weft_av_peer(const struct weft_av *av, fi_addr_t address)
{
    if (av->type == FI_AV_TABLE)
        return address < av->count ? av->peers[address] : WEFT_NOBODY;
    struct weft_peer peer = {.rank = (uint32_t)address, .endpoint = (uint32_t)(address >> 32)};
    return peer.endpoint < WEFT_ENDPOINTS ? peer : WEFT_NOBODY;
}

/* The first endpoint of this process. */
static inline struct weft_peer weft_first_endpoint(const struct weft_process *process)
{
    return (struct weft_peer){.rank = process->number};
}

/* weft_cq.c */
int weft_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
void weft_cq_push(struct weft_cq *cq, const struct weft_event *event);
void weft_cq_forget(struct weft_cq *cq, const struct weft_endpoint *endpoint);

/* weft_counter.c */
int weft_counter_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **counter, void *context);

/* weft_endpoint.c */
int weft_endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **endpoint, void *context);

/* weft_operation.c */
struct weft_operation *weft_operation_begin(struct weft_endpoint *endpoint);
void weft_operation_end(struct weft_operation *operation);
int weft_operation_gather(struct weft_operation *operation, const struct iovec *pieces, size_t count);
int weft_operation_scatter_later(struct weft_operation *operation, const struct iovec *pieces, size_t count);
void weft_process_progress(struct weft_process *process, size_t batch);
void weft_endpoint_forget(struct weft_endpoint *endpoint);

/* The flags for the library that say from which endpoint to which an operation goes. */
static inline uint64_t weft_endpoint_flags(const struct weft_endpoint *endpoint, struct weft_peer peer)
{
    return (uint64_t)endpoint->number << WEFT_ENDPOINT_SHIFT | (uint64_t)peer.endpoint << WEFT_PEER_ENDPOINT_SHIFT;
}

/* The endpoint of the peer that a completion tells of. */
static inline uint16_t weft_source_endpoint(const weft_completion *completion)
{
    return (uint8_t)(completion->flags >> WEFT_PEER_ENDPOINT_SHIFT);
}

/* Bytes in all. */
static inline size_t weft_iov_length(const struct iovec *pieces, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += pieces[i].iov_len;
    return length;
}

/* Of a post: never reported in a queue, as fi_inject promises. */
#define WEFT_SILENT (UINT64_C(1) << 60)

static inline uint64_t weft_inject_flags(const struct weft_endpoint *endpoint)
{
    return FI_INJECT | WEFT_SILENT | (endpoint->transmit_flags & FI_DELIVERY_COMPLETE);
}

/* weft_message.c; `space` is WEFT_TAGGED or 0 */
bool weft_wants_report(const struct weft_cq *queue, bool selective, uint64_t flags);
extern struct fi_ops_msg weft_message_ops;
ssize_t weft_post_send(struct weft_endpoint *endpoint, uint64_t space, const struct fi_msg_tagged *message,
                       uint64_t flags);
ssize_t weft_post_receive(struct weft_endpoint *endpoint, uint64_t space, const struct fi_msg_tagged *message,
                          uint64_t flags);

/* weft_tagged.c */
extern struct fi_ops_tagged weft_tagged_ops;

/* weft_rma.c */
extern struct fi_ops_rma weft_rma_ops;

/* weft_atomic.c */
extern struct fi_ops_atomic weft_atomic_ops;

#endif
