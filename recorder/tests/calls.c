/* Small MPI programs whose recordings are known: calls CASE. Each case is compared, operation by operation, with a list
 * in crates/weft-cli/tests/record.rs. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, size;
static char buffer[4096], other[4096];
static const char *folder;
#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE

static void sends(void)
{
    MPI_Request request;
    char attached[4096 + MPI_BSEND_OVERHEAD];
    if (rank == 0) {
        MPI_Send(buffer, 3, MPI_INT, 1, 1, WORLD);
        MPI_Ssend(buffer, 4, MPI_INT, 1, 2, WORLD);
        MPI_Buffer_attach(attached, sizeof attached);
        MPI_Bsend(buffer, 5, MPI_INT, 1, 3, WORLD);
        void *detached;
        int detached_size;
        MPI_Buffer_detach(&detached, &detached_size);
        MPI_Barrier(WORLD);
        MPI_Rsend(buffer, 6, MPI_INT, 1, 4, WORLD);
        MPI_Isend(buffer, 7, MPI_INT, 1, 5, WORLD, &request);
        MPI_Wait(&request, IGNORE);
        MPI_Issend(buffer, 8, MPI_INT, 1, 6, WORLD, &request);
        MPI_Wait(&request, IGNORE);
        MPI_Send(buffer, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD);
    } else {
        MPI_Recv(other, 100, MPI_INT, 0, 1, WORLD, IGNORE);
        MPI_Recv(other, 100, MPI_INT, MPI_ANY_SOURCE, 2, WORLD, IGNORE);
        MPI_Recv(other, 100, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, IGNORE);
        MPI_Irecv(other, 100, MPI_INT, 0, 4, WORLD, &request);
        MPI_Barrier(WORLD);
        MPI_Wait(&request, IGNORE);
        MPI_Irecv(other, 100, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &request);
        MPI_Wait(&request, IGNORE);
        MPI_Request null = MPI_REQUEST_NULL;
        MPI_Wait(&null, IGNORE);
        MPI_Irecv(other, 100, MPI_INT, 0, MPI_ANY_TAG, WORLD, &request);
        int done = 0;
        while (!done)
            MPI_Test(&request, &done, IGNORE);
    }
}

static void several(void)
{
    MPI_Request requests[3];
    if (rank == 0) {
        for (int i = 0; i < 3; i++)
            MPI_Isend(buffer + i, 1 + i, MPI_CHAR, 1, i, WORLD, &requests[i]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(WORLD);
        MPI_Barrier(WORLD);
        MPI_Send(buffer, 8, MPI_CHAR, 1, 8, WORLD);
        MPI_Barrier(WORLD);
        MPI_Send(buffer, 7, MPI_CHAR, 1, 7, WORLD);
    } else {
        for (int i = 0; i < 3; i++)
            MPI_Irecv(other + 10 * i, 10, MPI_CHAR, MPI_ANY_SOURCE, i, WORLD, &requests[i]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(WORLD);
        MPI_Irecv(other, 10, MPI_CHAR, 0, 7, WORLD, &requests[0]);
        MPI_Irecv(other + 10, 10, MPI_CHAR, 0, MPI_ANY_TAG, WORLD, &requests[1]);
        MPI_Barrier(WORLD);
        int index, count, indices[2];
        MPI_Waitany(2, requests, &index, IGNORE);
        MPI_Barrier(WORLD);
        MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
    }
}

static void pairs(void)
{
    int partner = 1 - rank;
    MPI_Sendrecv(buffer, 3, MPI_INT, partner, 1, other, 9, MPI_INT, partner, 1, WORLD, IGNORE);
    MPI_Sendrecv_replace(buffer, 2, MPI_INT, partner, 2, MPI_ANY_SOURCE, 2, WORLD, IGNORE);
    MPI_Sendrecv(buffer, 1, MPI_INT, partner, 3, other, 9, MPI_INT, MPI_PROC_NULL, 3, WORLD, IGNORE);
    MPI_Recv(other, 9, MPI_INT, partner, 3, WORLD, IGNORE);
}

static void probes(void)
{
    if (rank == 0) {
        for (int tag = 1; tag <= 5; tag++)
            MPI_Send(buffer, tag, MPI_INT, 1, tag, WORLD);
        return;
    }
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    int found = 0;
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status);
    MPI_Recv(other, status.MPI_TAG, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, WORLD, IGNORE);
    while (!found)
        MPI_Iprobe(0, 2, WORLD, &found, IGNORE);
    MPI_Recv(other, 2, MPI_INT, 0, 2, WORLD, IGNORE);
    MPI_Mprobe(MPI_ANY_SOURCE, 3, WORLD, &message, IGNORE);
    MPI_Mrecv(other, 3, MPI_INT, &message, IGNORE);
    for (found = 0; !found;)
        MPI_Improbe(0, 4, WORLD, &found, &message, IGNORE);
    MPI_Imrecv(other, 4, MPI_INT, &message, &request);
    MPI_Wait(&request, IGNORE);
    MPI_Recv(other, 5, MPI_INT, 0, 5, WORLD, IGNORE);
}

static void persistent(void)
{
    MPI_Request requests[2];
    if (rank == 0) {
        MPI_Send_init(buffer, 2, MPI_INT, 1, 1, WORLD, &requests[0]);
        MPI_Ssend_init(buffer, 3, MPI_INT, 1, 2, WORLD, &requests[1]);
    } else {
        MPI_Recv_init(buffer, 2, MPI_INT, MPI_ANY_SOURCE, 1, WORLD, &requests[0]);
        MPI_Recv_init(other, 3, MPI_INT, 0, 2, WORLD, &requests[1]);
    }
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], IGNORE);
    MPI_Wait(&requests[0], IGNORE); /* inactive: returns at once */
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void types(void)
{
    MPI_Datatype vector, record, resized, pair;
    MPI_Type_vector(3, 2, 5, MPI_INT, &vector);              /* 24 bytes within 48 */
    int lengths[2] = {1, 2};
    MPI_Aint places[2] = {0, 16};
    MPI_Datatype parts[2] = {MPI_CHAR, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths, places, parts, &record); /* 17 bytes */
    MPI_Type_create_resized(record, 0, 64, &resized);
    MPI_Type_contiguous(2, vector, &pair);                   /* 48 bytes */
    MPI_Datatype all[4] = {vector, record, resized, pair};
    for (int i = 0; i < 4; i++) {
        MPI_Type_commit(&all[i]);
        if (rank == 0)
            MPI_Send(buffer, 2, all[i], 1, i, WORLD);
        else
            MPI_Recv(buffer, 2, all[i], 0, i, WORLD, IGNORE);
    }
    MPI_Bcast(buffer, 1, pair, 0, WORLD);
}

static void collectives(void)
{
    int counts[4] = {1, 2, 3, 4}, places[4] = {0, 10, 20, 30};
    int byte_places[4] = {0, 40, 80, 120};
    int to[4], from[4];
    MPI_Datatype all_types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    for (int i = 0; i < 4; i++) {
        to[i] = rank + i;
        from[i] = rank + i;
    }
    MPI_Barrier(WORLD);
    MPI_Bcast(buffer, 5, MPI_INT, 2, WORLD);
    MPI_Reduce(buffer, other, 6, MPI_DOUBLE, MPI_SUM, 1, WORLD);
    MPI_Allreduce(MPI_IN_PLACE, buffer, 7, MPI_INT, MPI_MAX, WORLD);
    MPI_Gather(rank == 3 ? MPI_IN_PLACE : buffer, 2, MPI_INT, other, 2, MPI_INT, 3, WORLD);
    MPI_Gatherv(buffer, rank + 1, MPI_INT, other, counts, places, MPI_INT, 0, WORLD);
    MPI_Scatter(buffer, 3, MPI_INT, rank == 0 ? MPI_IN_PLACE : other, 3, MPI_INT, 0, WORLD);
    MPI_Scatterv(buffer, counts, places, MPI_INT, other, rank + 1, MPI_INT, 1, WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, other, 2, MPI_INT, WORLD);
    MPI_Allgatherv(buffer, rank + 1, MPI_INT, other, counts, places, MPI_INT, WORLD);
    MPI_Alltoall(buffer, 2, MPI_INT, other, 2, MPI_INT, WORLD);
    MPI_Alltoallv(buffer, to, places, MPI_INT, other, from, places, MPI_INT, WORLD);
    MPI_Alltoallw(buffer, to, byte_places, all_types, other, from, byte_places, all_types, WORLD);
    MPI_Reduce_scatter(buffer, other, counts, MPI_INT, MPI_SUM, WORLD);
    MPI_Reduce_scatter_block(buffer, other, 2, MPI_INT, MPI_SUM, WORLD);
    MPI_Scan(buffer, other, 2, MPI_INT, MPI_SUM, WORLD);
    MPI_Exscan(buffer, other, 2, MPI_INT, MPI_SUM, WORLD);
    MPI_Request requests[3];
    MPI_Ibarrier(WORLD, &requests[0]);
    MPI_Ibcast(buffer, 5, MPI_INT, 2, WORLD, &requests[1]);
    MPI_Iallgatherv(buffer, rank + 1, MPI_INT, other, counts, places, MPI_INT, WORLD, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

static void own_operation(void *given, void *taken, int *count, MPI_Datatype *type)
{
    (void)given, (void)taken, (void)count, (void)type;
}

static void reductions(void)
{
    MPI_Op own;
    MPI_Datatype pair;
    MPI_Op_create(own_operation, 1, &own);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Allreduce(buffer, other, 3, MPI_LONG, MPI_BXOR, WORLD);
    MPI_Allreduce(buffer, other, 3, MPI_FLOAT, MPI_SUM, WORLD);
    MPI_Allreduce(buffer, other, 3, MPI_DOUBLE_PRECISION, MPI_MIN, WORLD);
    MPI_Allreduce(buffer, other, 3, MPI_UINT16_T, MPI_LAND, WORLD);
    MPI_Allreduce(buffer, other, 3, MPI_2INT, MPI_MINLOC, WORLD);
    MPI_Allreduce(buffer, other, 3, pair, own, WORLD);
    MPI_Type_free(&pair);
    MPI_Op_free(&own);
}

static void communicators(void)
{
    MPI_Comm dup, half, grid, row, later, between, some;
    int dimensions[2] = {2, 2}, periodic[2] = {1, 0}, keep[2] = {0, 1};
    MPI_Request request;
    MPI_Comm_dup(WORLD, &dup);
    MPI_Comm_split(dup, rank % 2, -rank, &half); /* 2 0 and 3 1 */
    MPI_Send(buffer, 1, MPI_INT, MPI_PROC_NULL, 0, half);
    int place;
    MPI_Comm_rank(half, &place);
    if (place == 0)
        MPI_Send(buffer, 1, MPI_INT, 1, 4, half);
    else
        MPI_Recv(other, 1, MPI_INT, MPI_ANY_SOURCE, 4, half, IGNORE);
    MPI_Cart_create(WORLD, 2, dimensions, periodic, 0, &grid);
    MPI_Neighbor_allgather(buffer, 1, MPI_INT, other, 1, MPI_INT, grid);
    MPI_Cart_sub(grid, keep, &row);
    MPI_Barrier(row);
    MPI_Comm_idup(WORLD, &later, &request);
    MPI_Wait(&request, IGNORE);
    MPI_Bcast(buffer, 1, MPI_INT, 1, later);
    MPI_Barrier(MPI_COMM_SELF);
    MPI_Group world_group, group;
    int members[2] = {3, 0};
    MPI_Comm_group(WORLD, &world_group);
    MPI_Group_incl(world_group, 2, members, &group);
    if (rank == 0 || rank == 3) {
        MPI_Comm_create_group(WORLD, group, 9, &some);
        MPI_Barrier(some);
        MPI_Comm_free(&some);
    }
    MPI_Intercomm_create(half, 0, WORLD, rank % 2 ? 2 : 3, 5, &between);
    MPI_Barrier(between);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
    MPI_Comm_free(&dup);
}

static void windows(void)
{
    MPI_Win win;
    int *memory, partner = 1 - rank, value = 1, result, compare = 0;
    MPI_Request request;
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, WORLD, &memory, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT, partner, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Get(other, 2, MPI_INT, partner, 0, 2, MPI_INT, win);
    MPI_Accumulate(&value, 1, MPI_INT, partner, 4, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Win_lock(MPI_LOCK_SHARED, partner, 0, win);
    MPI_Fetch_and_op(&value, &result, MPI_INT, partner, 5, MPI_SUM, win);
    MPI_Win_flush(partner, win);
    MPI_Compare_and_swap(&value, &compare, &result, MPI_INT, partner, 6, win);
    MPI_Win_unlock(partner, win);
    MPI_Win_lock_all(0, win);
    MPI_Rput(&value, 1, MPI_INT, partner, 7, 1, MPI_INT, win, &request);
    MPI_Wait(&request, IGNORE);
    MPI_Get_accumulate(&value, 1, MPI_INT, &result, 1, MPI_INT, partner, 8, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Group world_group, group;
    MPI_Comm_group(WORLD, &world_group);
    MPI_Group_incl(world_group, 1, &partner, &group);
    if (rank == 0) {
        MPI_Win_start(group, 0, win);
        MPI_Put(&value, 1, MPI_INT, partner, 9, 1, MPI_INT, win);
        MPI_Win_complete(win);
    } else {
        MPI_Win_post(group, 0, win);
        MPI_Win_wait(win);
    }
    MPI_Win_free(&win);
}

/* Buffers of all kinds of memory, and what is none. */
static void buffers(void)
{
    char on_stack[256] = {0};
    /* The blocks lie close behind the small buffer. Two allocations would do so only by chance: MPI libraries
       have threads that allocate at the same time. */
    char *small = calloc(1, 1008 + 200), *blocks = small + 1008, *large = calloc(1, 3 << 20);
    int partner = 1 - rank, zero = 0, length = 4;
    MPI_Request request;
    MPI_Bcast(small, 1000, MPI_CHAR, 0, WORLD);
    MPI_Allreduce(MPI_IN_PLACE, on_stack, 16, MPI_INT, MPI_SUM, WORLD);
    MPI_Bcast(large, 3 << 20, MPI_CHAR, 0, WORLD);
    MPI_Sendrecv(large + 256, 1 << 20, MPI_CHAR, partner, 1, large + (2 << 20), 1 << 20, MPI_CHAR, partner, 1, WORLD,
                 IGNORE);
    if (rank == 0)
        MPI_Send_init(on_stack + 8, 4, MPI_CHAR, 1, 2, WORLD, &request);
    else
        MPI_Recv_init(on_stack + 8, 4, MPI_CHAR, MPI_ANY_SOURCE, 2, WORLD, &request);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, IGNORE);
    }
    MPI_Request_free(&request);
    MPI_Gather(buffer, 8, MPI_CHAR, small + 500, 8, MPI_CHAR, 0, WORLD);
    MPI_Reduce(buffer + 8, small + 600, 1, MPI_INT, MPI_SUM, 1, WORLD);
    /* A block for each rank: the second lies within the buffer. */
    MPI_Alltoall(large + 512, 100, MPI_CHAR, blocks, 100, MPI_CHAR, WORLD);
    MPI_Bcast(blocks + 100, 100, MPI_CHAR, 1, WORLD);
    MPI_Scatterv(blocks, (int[]){10, 20}, (int[]){0, 10}, MPI_CHAR, rank == 0 ? MPI_IN_PLACE : small,
                 rank == 0 ? 10 : 20, MPI_CHAR, 0, WORLD);
    /* No data, and addresses that are in the type. */
    MPI_Sendrecv((void *)4711, 0, MPI_CHAR, partner, 3, NULL, 0, MPI_CHAR, partner, 3, WORLD, IGNORE);
    MPI_Aint place;
    MPI_Datatype absolute;
    MPI_Get_address(small, &place);
    MPI_Type_create_hindexed(1, &length, &place, MPI_CHAR, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Bcast(MPI_BOTTOM, 1, absolute, 0, WORLD);
    MPI_Win win;
    MPI_Win_create(large, 3 << 20, 1, MPI_INFO_NULL, WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(on_stack + 16, 4, MPI_CHAR, partner, 0, 4, MPI_CHAR, win);
    MPI_Win_fence(0, win);
    MPI_Fetch_and_op(&zero, on_stack + 20, MPI_INT, partner, 8, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    free(small), free(large);
}

static void odds(void)
{
    MPI_Request request;
    MPI_Status status;
    MPI_File file;
    MPI_Pcontrol(1);
    MPI_Irecv(other, 1, MPI_INT, MPI_ANY_SOURCE, 77, WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    char name[64];
    snprintf(name, sizeof name, "/tmp/weft-recorder-test-%d", (int)getpid());
    if (MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &file) == MPI_SUCCESS) {
        MPI_File_write(file, buffer, 4, MPI_CHAR, IGNORE);
        MPI_File_write(file, buffer, 4, MPI_CHAR, IGNORE);
        MPI_File_close(&file);
    }
    MPI_Pcontrol(0);
}

/* Calls that came with MPI-4: persistent collectives and large counts. */
static void newer(void)
{
#if MPI_VERSION >= 4
    MPI_Request request;
    MPI_Count counts[2] = {1, 2};
    MPI_Aint places[2] = {0, 10};
    MPI_Allreduce_init(buffer, other, 3, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, IGNORE);
    }
    MPI_Request_free(&request);
    if (rank == 0)
        MPI_Send_c(buffer, 5, MPI_INT, 1, 1, WORLD);
    else
        MPI_Recv_c(other, 6, MPI_INT, MPI_ANY_SOURCE, 1, WORLD, IGNORE);
    MPI_Allgatherv_c(buffer, rank + 1, MPI_INT, other, counts, places, MPI_INT, WORLD);
    MPI_Comm grid;
    int length = 2, periodic = 0;
    MPI_Cart_create(WORLD, 1, &length, &periodic, 0, &grid);
    int to[2] = {rank == 1, rank == 0}, zeros[2] = {0, 0};
    MPI_Ineighbor_alltoallv(buffer, to, zeros, MPI_INT, other, to, zeros, MPI_INT, grid, &request);
    MPI_Wait(&request, IGNORE);
#endif
}

static void killed(void)
{
    for (int i = 0; i < 3; i++)
        MPI_Barrier(WORLD);
    usleep(200000); /* the other rank has left the barrier too, on a busy machine */
    if (rank == 1)
        raise(SIGKILL);
    MPI_Recv(other, 1, MPI_INT, 1, 0, WORLD, IGNORE); /* never comes */
}

static void aborted(void)
{
    MPI_Barrier(WORLD);
    usleep(200000);
    if (rank == 0)
        MPI_Abort(WORLD, 5);
    MPI_Recv(other, 1, MPI_INT, 0, 0, WORLD, IGNORE);
}

/* Each rank makes a file in the folder of the second argument before it waits for ever. */
static void stuck(void)
{
    MPI_Barrier(WORLD);
    char name[4096];
    snprintf(name, sizeof name, "%s/stuck.%d", folder, rank);
    fclose(fopen(name, "w"));
    MPI_Recv(other, 1, MPI_INT, 1 - rank, 0, WORLD, IGNORE); /* never comes */
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Each rank computes for 200 ms of CPU time, sleeps for 500 ms and waits for the others: the first alone is
 * computation. */
static void computes(void)
{
    for (int i = 0; i < 10; i++) {
        double end = seconds(CLOCK_THREAD_CPUTIME_ID) + 0.02;
        while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
            ;
        usleep(50000);
        MPI_Barrier(WORLD);
    }
}

static void *thread_sends(void *argument)
{
    int tag = *(int *)argument;
    for (int i = 0; i < 500; i++) {
        MPI_Request request;
        if (rank == 0)
            MPI_Isend(buffer, 1, MPI_INT, 1, tag, WORLD, &request);
        else
            MPI_Irecv(other, 1, MPI_INT, MPI_ANY_SOURCE, tag, WORLD, &request);
        MPI_Wait(&request, IGNORE);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t running[2];
    int tags[2] = {1, 2};
    for (int i = 0; i < 2; i++)
        pthread_create(&running[i], NULL, thread_sends, &tags[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(running[i], NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"sends", sends}, {"several", several}, {"pairs", pairs}, {"probes", probes}, {"persistent", persistent},
        {"types", types}, {"collectives", collectives}, {"reductions", reductions},
        {"communicators", communicators}, {"windows", windows},
        {"buffers", buffers}, {"odds", odds}, {"newer", newer}, {"killed", killed}, {"aborted", aborted},
        {"stuck", stuck}, {"computes", computes}, {"threads", threads},
    };
    const char *wanted = argc > 1 ? argv[1] : "";
    folder = argc > 2 ? argv[2] : ".";
    if (strcmp(wanted, "none") == 0)
        return 7; /* never calls MPI_Init */
    int provided;
    if (strcmp(wanted, "threads") == 0)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, wanted) == 0) {
            cases[i].run();
            MPI_Finalize();
            return 0;
        }
    fprintf(stderr, "no such case: %s\n", wanted);
    MPI_Abort(WORLD, 2);
}
