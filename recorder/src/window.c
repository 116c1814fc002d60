/* One-sided communication. */
#include "recorder.h"

#include <stdlib.h>

#include "clock.h"

struct window {
    uint64_t id;
    struct communicator *comm; /* NULL: not within the world */
};

static struct handle_map windows;

/* The collectives in which MPICH 5 makes a window, before a barrier: a common key, whether all have it, and everybody's
 * address, size and unit (MPIDIG's win_init; MPIDI_OFI_mpi_win_create_hook). As with communicators, they are
 * recorded in virtual time only. */
static void record_creation(const struct communicator *comm)
{
    if (!clock_is_virtual())
        return;
    record_inner_duplicate(comm);
    inner_collective_called(COLLECTIVE_ALLREDUCE, comm, -1, 1, (struct elements){.bytes = 1});
    inner_collective_called(COLLECTIVE_ALLREDUCE, comm, -1, 4, (struct elements){.bytes = 4});
    inner_collective_called(COLLECTIVE_ALLGATHER, comm, -1, 24, (struct elements){.bytes = 1});
}

/* Not under the lock: it agrees on the window's id with a broadcast. */
void window_created(const void *base, int64_t bytes, MPI_Comm handle, MPI_Win win)
{
    recorder_lock();
    struct communicator *comm = communicator_of(handle);
    recorder_unlock();
    struct window *window = allocate(1, sizeof *window);
    if (comm) {
        if (comm->rank == 0)
            window->id = ((uint64_t)world_rank(comm, 0) << 32) | (communicator_next_id() & UINT32_MAX);
        PMPI_Bcast(&window->id, sizeof window->id, MPI_BYTE, 0, handle);
    }
    recorder_lock();
    if (comm) {
        window->comm = comm;
        comm->references++;
        record_creation(comm);
        record_computation();
        uint8_t *at = part_begin(6 * NUMBER_MAX);
        if (at) {
            at = put_id(at, window->id);
            at = put_id(at, comm->id);
            at = put_number(at, bytes > 0 ? (uint64_t)bytes : 0);
            part_commit(RECORD_WINDOW, put_address(at, base));
        }
        if (clock_is_virtual()) /* the recorder's own */
            inner_collective_called(COLLECTIVE_BROADCAST, comm, 0, sizeof window->id, (struct elements){.bytes = 1});
    }
    handle_map_insert(&windows, HANDLE_KEY(win), (uintptr_t)window);
    recorder_unlock();
}

/* The window if it is recorded; otherwise the present call is counted as unrecorded. */
static struct window *window_of(MPI_Win win)
{
    uintptr_t *found = handle_map_find(&windows, HANDLE_KEY(win));
    if (found && ((struct window *)*found)->comm)
        return (struct window *)*found;
    record_unrecorded(true);
    return NULL;
}

void window_freed(MPI_Win win)
{
    window_synchronized(SYNC_FREE, -1, win);
    uintptr_t *found = handle_map_find(&windows, HANDLE_KEY(win));
    if (!found)
        return;
    struct window *window = (struct window *)*found;
    handle_map_remove(&windows, HANDLE_KEY(win));
    if (window->comm)
        communicator_release(window->comm);
    free(window);
}

void one_sided_called(struct how how, enum one_sided kind, struct data data, int target, MPI_Win win)
{
    struct window *window = window_of(win);
    if (!window || target == MPI_PROC_NULL)
        return;
    uint8_t body[6 * NUMBER_MAX];
    uint8_t *end = put_number(body, kind);
    end = put_id(end, window->id);
    end = put_number(end, world_rank(window->comm, target));
    end = put_number(end, data.bytes);
    end = put_address(end, data.buffer);
    if (how.request) {
        request_post(how, RECORD_ONE_SIDED, body, (size_t)(end - body), NULL);
        return;
    }
    record_computation();
    uint8_t *at = part_begin(sizeof body + NUMBER_MAX);
    if (!at)
        return;
    at = put_number(at, 0); /* no request */
    for (const uint8_t *from = body; from < end; from++)
        *at++ = *from;
    part_commit(RECORD_ONE_SIDED, at);
}

static void record_sync(const struct window *window, enum window_sync kind, int target)
{
    record_computation();
    uint8_t *at = part_begin(4 * NUMBER_MAX);
    if (!at)
        return;
    at = put_number(at, kind);
    at = put_id(at, window->id);
    part_commit(RECORD_SYNC, put_number(at, target < 0 ? 0 : 1 + (uint64_t)world_rank(window->comm, target)));
}

void window_synchronized(enum window_sync kind, int target, MPI_Win win)
{
    struct window *window = window_of(win);
    if (window)
        record_sync(window, kind, target);
}

void window_group_synchronized(enum window_sync kind, MPI_Group group, MPI_Win win)
{
    struct window *window = window_of(win);
    if (!window)
        return;
    int size;
    MPI_Group all;
    PMPI_Group_size(group, &size);
    PMPI_Win_get_group(win, &all);
    for (int i = 0; i < size; i++) {
        int target;
        PMPI_Group_translate_ranks(group, 1, &i, all, &target);
        if (target != MPI_UNDEFINED)
            record_sync(window, kind, target);
    }
    PMPI_Group_free(&all);
}
