/* The MPI recorder: declarations that its files share.
 *
 *   program ── MPI_X ──> wrapper ── PMPI_X ──> the MPI library
 *                          │
 *      generated from      │   enter     computation since the last call: the thread's CPU clock
 *      calls.table, or     │   record    communicators, requests, windows ──> part file
 *      completion.c,       │   leave     the clock again: time inside MPI is nobody's computation
 *      lifetime.c          ▼
 *
 * The library is inert in a process that never initializes MPI (mpiexec, shells, Python before mpi4py).
 */
#ifndef WEFT_RECORDER_H
#define WEFT_RECORDER_H

/* MPI's names are all that the library shows; some headers do not say that they are to be seen. */
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "handle_map.h"
#include "part.h"

#ifdef OPEN_MPI
#include "openmpi_handles.h"
#endif

/* ---- Entering and leaving (recorder.c) ------------------------------------------------------------------------- */

struct communicator;

struct recorder {
    bool active;    /* between MPI_Init and MPI_Finalize, with a part to write to */
    bool threaded;  /* MPI_THREAD_MULTIPLE: several threads may be in MPI at once */
    int rank;       /* in the world */
    int size;       /* of the world */
    uint32_t clock_cost_ns;
    uint32_t next_id; /* counts the communicators and windows whose first member is this rank */
    pthread_mutex_t mutex;
};
extern struct recorder recorder;

struct thread_state {
    bool inside;        /* MPI implementations call MPI within MPI: only the outermost call is recorded */
    int function;       /* index of the call, in functions.h */
    uint64_t left;      /* CPU clock in ns when the thread last left MPI; 0, its birth, before the first call.
                         * Under `weft run`: the program's own virtual time at the last look, in ns */
    uint64_t entered;   /* CPU clock in ns when it entered the present call; unused under `weft run` */
    uint64_t computed;  /* ns of computation not yet recorded */
};
extern __thread struct thread_state this_thread __attribute__((tls_model("initial-exec")));

/* From now on computation is measured. */
void recorder_begin_time(void);

/* True if the call is to be recorded; then `recorder_leave` or `recorder_leave_as_computation` must follow. */
bool recorder_enter(int function);
void recorder_leave(void);
/* After a failed test or probe: the program polled, so the time in the call was its own. */
void recorder_leave_as_computation(void);

static inline void recorder_lock(void)
{
    if (recorder.threaded)
        pthread_mutex_lock(&recorder.mutex);
}

static inline void recorder_unlock(void)
{
    if (recorder.threaded)
        pthread_mutex_unlock(&recorder.mutex);
}

/* Records the computation since the last record of this thread. */
void record_computation(void);

/* Counts the present call by its name, in the part; `on_communicator`: it would have been recorded, but the
 * communicator (window) cannot be expressed in world ranks. */
void record_unrecorded(bool on_communicator);

/* ---- Communicators (communicator.c) ----------------------------------------------------------------------------- */

struct communicator {
    uint64_t id;      /* world rank of the first member << 32 | that rank's count */
    bool recorded;    /* false: inter-communicators, members outside the world */
    int rank;         /* of this process in it */
    int size;
    uint32_t *world;  /* rank -> world rank; NULL: they are equal */
    int references;
    struct neighbours {  /* of a process topology, found at the first neighbourhood collective */
        int sources, destinations;
        int *source, *destination; /* ranks in the communicator, MPI_PROC_NULL where a mesh ends */
    } *neighbours;
};

void communicators_start(void);

/* The communicator if it is recorded; otherwise NULL, and the present call is counted as unrecorded. */
struct communicator *communicator_of(MPI_Comm handle);

/* A new communicator exists: agrees on its id with a broadcast in it. Takes the lock itself. */
void communicator_created(MPI_Comm handle);
/* The same of one that all members of another have made, as they are or by colour and key. */
void communicator_created_by_all(MPI_Comm parent, MPI_Comm handle);
void communicator_split_off(MPI_Comm parent, MPI_Comm handle);
/* The same with an id agreed before (idup). */
void communicator_adopted(MPI_Comm handle, uint64_t id);
/* Under `weft run`: MPI has made a communicator of the same members for its own use. */
void record_inner_duplicate(const struct communicator *comm);
uint64_t communicator_next_id(void);
void communicator_freed(MPI_Comm handle);
void communicator_release(struct communicator *comm);

static inline uint32_t world_rank(const struct communicator *comm, int rank)
{
    return comm->world ? comm->world[rank] : (uint32_t)rank;
}

struct neighbours *communicator_neighbours(struct communicator *comm, MPI_Comm handle);

/* Encodes an id as rank, count. */
uint8_t *put_id(uint8_t *at, uint64_t id);

/* ---- Point-to-point (point_to_point.c) --------------------------------------------------------------------------- */

enum send_mode { MODE_STANDARD, MODE_SYNCHRONOUS, MODE_BUFFERED, MODE_READY };

/* How a recorded call completes: by itself (request NULL), by its request, or a persistent one at each start. */
struct how {
    MPI_Request *request;
    bool persistent;
};
#define BLOCKING ((struct how){0, false})
#define NONBLOCKING ((struct how){request, false})
#define PERSISTENT ((struct how){request, true})

/* Bytes of `count` elements of `type`; derived types by their size, not their extent. */
uint64_t type_bytes(int64_t count, MPI_Datatype type);

/* A buffer, and the bytes of the count and type that the program gave with it. */
struct data {
    const void *buffer;
    uint64_t bytes;
};
static inline struct data data_at(const void *buffer, int64_t count, MPI_Datatype type)
{
    return (struct data){buffer, type_bytes(count, type)};
}

/* Encodes the address of a buffer; 0: there is none. With MPI_BOTTOM the addresses are in the type. */
static inline uint8_t *put_address(uint8_t *at, const void *buffer)
{
    return put_number(at, buffer == MPI_IN_PLACE || buffer == MPI_BOTTOM ? 0 : (uintptr_t)buffer);
}

void send_posted(struct how how, enum send_mode mode, struct data data, int to, int tag, MPI_Comm comm);
/* `status` of a blocking receive has the source and the tag that a wildcard matched. */
void receive_posted(struct how how, struct data data, int from, int tag, MPI_Comm comm, const MPI_Status *status);
void sendrecv_done(struct data sent, int to, int send_tag, struct data received, int from, int receive_tag,
                   MPI_Comm comm, const MPI_Status *status);
void probe_found(enum record_tag tag, MPI_Comm comm, const MPI_Status *status);
void message_found(enum record_tag how, MPI_Comm comm, int from, int tag, const MPI_Status *status,
                   MPI_Message message);
/* The message handle is gone after the call: the caller keeps it. */
void message_received(struct how how, struct data data, MPI_Message message);

/* ---- Requests (request.c) ---------------------------------------------------------------------------------------- */

/* Numbers of requests inside blocking calls; others begin behind them. */
enum { REQUEST_SEND_INSIDE = 0, REQUEST_RECEIVE_INSIDE = 1, REQUEST_FIRST = 2 };

struct request {
    enum record_tag tag;     /* the record that posted it */
    bool active;             /* posted and not completed */
    bool persistent;
    bool wildcard;           /* a receive whose match is to be noted at completion */
    bool cancelled;          /* MPI_Cancel was called on it */
    struct communicator *comm; /* of a wildcard receive: translates the source */
    uint64_t record;         /* offset of the posting record's tag; 0: it was not written, the disk is full */
    uint64_t match;          /* offset of its place for the match, likewise */
    uint8_t *body;           /* persistent: the posting record behind the request number */
    uint32_t body_size;
    struct pending_dup *dup; /* MPI_Comm_idup */
    uint32_t next;           /* the next request with the same handle, or 0 */
    uint32_t last;           /* in the first of them: the last */
    uint32_t mark;           /* the completing call that has listed it */
};

struct requests {
    struct request *all; /* by number */
    uint32_t capacity;
    uint32_t used;
    uint32_t free;       /* first of the free list through `next`, or 0 */
    uint32_t wildcards;  /* active wildcard receives */
    uint32_t cancels;    /* active requests on which MPI_Cancel was called */
    struct handle_map by_handle;
};
extern struct requests requests;

uint32_t request_add(MPI_Request handle);
/* The oldest request with this handle, or 0. MPICH gives one handle to many sends that have completed at once. */
uint32_t request_find(MPI_Request handle);
/* Takes the oldest request with this handle off the map; its number stays. */
void request_unlink(MPI_Request handle);
/* The number may be used again. */
void request_release(uint32_t number);

/* A non-blocking or persistent operation has been posted with this body (behind tag and request number). A wildcard
 * receive's match has its place in the last MATCH_BYTES of the body. */
#define MATCH_BYTES 8
void request_post(struct how how, enum record_tag tag, const uint8_t *body, size_t size,
                  struct communicator *wildcard_comm);

/* A persistent request has been started. */
void request_started(MPI_Request handle);

struct pending_dup {
    MPI_Comm *handle;   /* where the program gets the new communicator */
    uint64_t id;
    MPI_Request agreed; /* the broadcast of the id */
};
void idup_posted(MPI_Comm comm, MPI_Comm *new_comm, MPI_Request request);

/* ---- Reductions (reduction.c) ------------------------------------------------------------------------------------ */

/* One more than the place in weft_trace::DataType. */
enum data_type {
    DATA_UNKNOWN, DATA_INT8, DATA_INT16, DATA_INT32, DATA_INT64, DATA_UINT8, DATA_UINT16, DATA_UINT32, DATA_UINT64,
    DATA_FLOAT32, DATA_FLOAT64, DATA_OTHER,
};

/* One more than the place in weft_trace::ReductionOperation. */
enum reduction {
    REDUCTION_UNKNOWN, REDUCTION_MAX, REDUCTION_MIN, REDUCTION_SUM, REDUCTION_PROD, REDUCTION_LAND, REDUCTION_BAND,
    REDUCTION_LOR, REDUCTION_BOR, REDUCTION_LXOR, REDUCTION_BXOR, REDUCTION_MINLOC, REDUCTION_MAXLOC, REDUCTION_OTHER,
};

/* The elements of a collective, and what a reduction computes of them. */
struct elements {
    uint64_t bytes; /* of one; 0: not a reduction */
    enum data_type type;
    enum reduction operation;
};

/* MPI is up: its handles can be found. */
void reductions_start(void);

struct elements elements_of(MPI_Datatype type, MPI_Op op);

/* ---- Collectives (collective.c) ---------------------------------------------------------------------------------- */

/* In the order of weft_trace::op::Collective. */
enum collective {
    COLLECTIVE_BARRIER, COLLECTIVE_BROADCAST, COLLECTIVE_REDUCE, COLLECTIVE_ALLREDUCE, COLLECTIVE_GATHER,
    COLLECTIVE_GATHERV, COLLECTIVE_SCATTER, COLLECTIVE_SCATTERV, COLLECTIVE_ALLGATHER, COLLECTIVE_ALLGATHERV,
    COLLECTIVE_ALLTOALL, COLLECTIVE_ALLTOALLV, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_REDUCE_SCATTER_BLOCK,
    COLLECTIVE_SCAN, COLLECTIVE_EXSCAN, COLLECTIVE_NEIGHBOR_ALLGATHER, COLLECTIVE_NEIGHBOR_ALLGATHERV,
    COLLECTIVE_NEIGHBOR_ALLTOALL, COLLECTIVE_NEIGHBOR_ALLTOALLV,
};

/* An array of counts, of int or of MPI_Count. */
struct counts {
    const int *narrow;
    const MPI_Count *wide;
};
static inline struct counts narrow_counts(const int *counts)
{
    return (struct counts){counts, 0};
}
static inline struct counts wide_counts(const MPI_Count *counts)
{
    return (struct counts){0, counts};
}
#define COUNTS(array) _Generic((array), const int *: narrow_counts, const MPI_Count *: wide_counts)(array)

/* One that MPI calls by itself. `bytes` are those of the vector, or of a block. */
void inner_collective_called(enum collective kind, const struct communicator *comm, int root, uint64_t bytes,
                             struct elements elements);
void barrier_called(struct how how, MPI_Comm comm);
void broadcast_called(struct how how, const void *buffer, int64_t count, MPI_Datatype type, int root, MPI_Comm comm);
/* reduce, allreduce, scan, exscan; root -1: none */
void reduction_called(struct how how, enum collective kind, const void *send, const void *receive, int64_t count,
                      struct elements elements, int root, MPI_Comm comm);
void reduce_scatter_called(struct how how, const void *send, const void *receive, struct counts counts,
                           MPI_Datatype type, struct elements elements, MPI_Comm comm);
void reduce_scatter_block_called(struct how how, const void *send, const void *receive, int64_t count,
                                 struct elements elements, MPI_Comm comm);
/* gather, scatter, allgather, alltoall: the size of one block on the significant side */
void blocks_called(struct how how, enum collective kind, const void *send, int64_t send_count, MPI_Datatype send_type,
                   const void *receive, int64_t receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm);
void gatherv_called(struct how how, const void *send, int64_t send_count, MPI_Datatype send_type, const void *receive,
                    struct counts receive_counts, MPI_Datatype receive_type, int root, MPI_Comm comm);
void scatterv_called(struct how how, const void *send, struct counts send_counts, MPI_Datatype send_type,
                     const void *receive, int64_t receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm);
void allgatherv_called(struct how how, const void *send, int64_t send_count, MPI_Datatype send_type,
                       const void *receive, struct counts receive_counts, MPI_Datatype receive_type, MPI_Comm comm);
/* Types: one, or (w) one per member. */
void alltoallv_called(struct how how, const void *send, struct counts send_counts, const MPI_Datatype *send_types,
                      bool one_send_type, const void *receive, struct counts receive_counts,
                      const MPI_Datatype *receive_types, bool one_receive_type, MPI_Comm comm);
void neighbor_blocks_called(struct how how, enum collective kind, const void *send, int64_t send_count,
                            MPI_Datatype send_type, const void *receive, int64_t receive_count,
                            MPI_Datatype receive_type, MPI_Comm comm);
void neighbor_allgatherv_called(struct how how, const void *send, int64_t send_count, MPI_Datatype send_type,
                                const void *receive, struct counts receive_counts, MPI_Datatype receive_type,
                                MPI_Comm comm);
void neighbor_alltoallv_called(struct how how, const void *send, struct counts send_counts,
                               const MPI_Datatype *send_types, bool one_send_type, const void *receive,
                               struct counts receive_counts, const MPI_Datatype *receive_types, bool one_receive_type,
                               MPI_Comm comm);

/* ---- One-sided (window.c) ---------------------------------------------------------------------------------------- */

/* In the order of weft_trace::op::OneSided. */
enum one_sided { ONE_SIDED_PUT, ONE_SIDED_GET, ONE_SIDED_ACCUMULATE, ONE_SIDED_GET_ACCUMULATE,
                 ONE_SIDED_FETCH_AND_OP, ONE_SIDED_COMPARE_AND_SWAP };

/* In the order of weft_trace::op::WindowSync. */
enum window_sync { SYNC_FENCE, SYNC_POST, SYNC_START, SYNC_COMPLETE, SYNC_WAIT, SYNC_LOCK, SYNC_UNLOCK, SYNC_LOCK_ALL,
                   SYNC_UNLOCK_ALL, SYNC_FLUSH, SYNC_FLUSH_ALL, SYNC_FREE };

void window_created(const void *base, int64_t bytes, MPI_Comm comm, MPI_Win handle);
void window_freed(MPI_Win handle);
/* `data`: of the process's own, the result where there is one. */
void one_sided_called(struct how how, enum one_sided kind, struct data data, int target, MPI_Win win);
/* target -1: none */
void window_synchronized(enum window_sync kind, int target, MPI_Win win);
void window_group_synchronized(enum window_sync kind, MPI_Group group, MPI_Win win);

#endif
