/* Persistent requests, partitioned messages, cancel, request status, generalized requests. */
#define _GNU_SOURCE
#include "checks.h"
#include <sched.h>

enum { TAG = 11, ROUNDS = 5 };

static int previous(void)
{
    return (world_rank + world_size - 1) % world_size;
}

static int next(void)
{
    return (world_rank + 1) % world_size;
}

typedef int (*initializer)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void persistent(int count)
{
    static const struct {
        const char *name;
        initializer init;
    } modes[] = {{"standard", MPI_Send_init}, {"synchronous", MPI_Ssend_init}, {"buffered", MPI_Bsend_init}};
    /* A buffered send is complete when its data are copied: those of all rounds may be waiting. */
    int room = ROUNDS * (count * (int)sizeof(int) + MPI_BSEND_OVERHEAD), detached;
    void *attached = allocate((size_t)room);
    MPI_Buffer_attach(attached, room);
    for (int m = 0; m < LENGTH(modes); m++) {
        int *out = allocate((size_t)count * sizeof *out), *in = allocate((size_t)count * sizeof *in);
        MPI_Request requests[2];
        bool good = true;
        modes[m].init(out, count, MPI_INT, next(), TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Recv_init(in, count, MPI_INT, previous(), TAG, MPI_COMM_WORLD, &requests[1]);
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < count; i++)
                out[i] = element(world_rank, i + round);
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            for (int i = 0; i < count; i++)
                good &= in[i] == element(previous(), i + round);
        }
        good &= requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL;
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
        check(good, "persistent %s send of %d, several rounds", modes[m].name, count);
        free(out);
        free(in);
    }
    MPI_Buffer_detach(&attached, &detached);
    free(attached);
}

static void persistent_by_parts(void)
{
    enum { PARTS = 8, EACH = 500 };
    int *out = allocate(PARTS * EACH * sizeof *out), *in = allocate(PARTS * EACH * sizeof *in);
    MPI_Request send, receive;
    bool good = true;
    MPI_Psend_init(out, PARTS, EACH, MPI_INT, next(), TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Precv_init(in, PARTS, EACH, MPI_INT, previous(), TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    for (int round = 0; round < 3; round++) {
        int arrived = 0;
        MPI_Start(&receive);
        MPI_Start(&send);
        for (int part = PARTS - 1; part >= 0; part--) {
            for (int i = 0; i < EACH; i++)
                out[part * EACH + i] = element(world_rank, part * EACH + i + round);
            MPI_Pready(part, send);
        }
        while (!arrived)
            MPI_Parrived(receive, PARTS / 2, &arrived);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        for (int i = 0; i < PARTS * EACH; i++)
            good &= in[i] == element(previous(), i + round);
    }
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
    check(good, "a partitioned message, three rounds");
    free(out);
    free(in);
}

static void cancel_receives(void)
{
    int values[3] = {-1, -1, -1}, cancelled[3], sent = 42;
    MPI_Request requests[3], send;
    MPI_Status status;
    for (int i = 0; i < 3; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, i == 1 ? MPI_ANY_SOURCE : previous(), TAG + i, MPI_COMM_WORLD, &requests[i]);
    /* The first is matched before it is cancelled: it completes. The others never are. */
    MPI_Isend(&sent, 1, MPI_INT, next(), TAG, MPI_COMM_WORLD, &send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    int there = 0;
    while (!there)
        MPI_Request_get_status(requests[0], &there, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) {
        MPI_Cancel(&requests[i]);
        MPI_Wait(&requests[i], &status);
        MPI_Test_cancelled(&status, &cancelled[i]);
    }
    check(!cancelled[0] && values[0] == 42, "cancel of a receive that has its message");
    check(cancelled[1] && values[1] == -1, "cancel of a receive from any source");
    check(cancelled[2] && values[2] == -1, "cancel of a receive");
    /* A cancelled receive takes nothing from those after it. */
    MPI_Irecv(&values[2], 1, MPI_INT, previous(), TAG + 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Send(&sent, 1, MPI_INT, next(), TAG + 2, MPI_COMM_WORLD);
    MPI_Wait(&requests[2], &status);
    MPI_Test_cancelled(&status, &cancelled[2]);
    check(!cancelled[2] && values[2] == 42, "a receive after a cancelled one");
}

static void many_cancelled(void)
{
    enum { MANY = 200 };
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    int values[MANY], flag;
    bool good = true;
    for (int i = 0; i < MANY; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, previous(), 100 + i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < MANY; i++)
        MPI_Cancel(&requests[(i * 7) % MANY]);
    MPI_Waitall(MANY, requests, statuses);
    for (int i = 0; i < MANY; i++) {
        MPI_Test_cancelled(&statuses[i], &flag);
        good &= flag;
    }
    check(good, "%d receives cancelled out of order", MANY);
}

static void request_status(void)
{
    int value = 0, flag = 0;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, previous(), TAG, MPI_COMM_WORLD, &request);
    MPI_Send(&world_rank, 1, MPI_INT, next(), TAG, MPI_COMM_WORLD);
    MPI_Status status;
    while (!flag)
        MPI_Request_get_status(request, &flag, &status);
    check(request != MPI_REQUEST_NULL && value == previous() && status.MPI_SOURCE == previous(),
          "the status of a request that stays");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* Freed while under way: it completes all the same. */
    MPI_Isend(&world_rank, 1, MPI_INT, next(), TAG, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Recv(&value, 1, MPI_INT, previous(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(request == MPI_REQUEST_NULL && value == previous(), "a request freed under way");
}

static int query(void *state, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_INT, *(int *)state);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int forget(void *state)
{
    *(int *)state = -1;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static void generalized(void)
{
    int state = 12, count;
    MPI_Request request;
    MPI_Status status;
    MPI_Grequest_start(query, forget, cancel, &state, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    check(count == 12 && state == -1, "a generalized request");
}

/* Every rank tests and yields in vain before it sends: whoever takes that for waiting ends in a deadlock. */
static void test_and_yield(void)
{
    int sent = 7, received = 0, done = 0;
    MPI_Request request;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(&received, 1, MPI_INT, next(), 9, MPI_COMM_WORLD, &request);
    for (int look = 0; look < 20 && !done; look++) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        sched_yield();
    }
    MPI_Send(&sent, 1, MPI_INT, previous(), 9, MPI_COMM_WORLD);
    if (!done)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(received == 7, "a send after tests and yields in vain");
}

int main(int argc, char **argv)
{
    checks_begin(&argc, &argv);
    persistent(1);
    persistent(1001);
    persistent(100003);
    persistent_by_parts();
    cancel_receives();
    many_cancelled();
    request_status();
    generalized();
    test_and_yield();
    return checks_end();
}
