/* Probes: blocking and not, by name and wildcard, with and without taking the message out of the queue. */
#include "checks.h"

static const int sizes[] = {0, 3, 60, 5000, 50000, 500000};

static int previous(void)
{
    return (world_rank + world_size - 1) % world_size;
}

static int next(void)
{
    return (world_rank + 1) % world_size;
}

/* The size is not known before. */
static void sized_by_probe(int count, bool blocking)
{
    int *out = elements(world_rank, count), probed = -1, flag = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Isend(out, count, MPI_INT, next(), 5, MPI_COMM_WORLD, &request);
    if (blocking)
        MPI_Probe(previous(), 5, MPI_COMM_WORLD, &status);
    while (!blocking && !flag)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    MPI_Get_count(&status, MPI_INT, &probed);
    int *in = allocate((size_t)probed * sizeof *in);
    MPI_Recv(in, probed, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(probed == count && status.MPI_SOURCE == previous() && status.MPI_TAG == 5 &&
              holds_elements(in, previous(), count),
          "%d elements found by %s", count, blocking ? "probe" : "iprobe for anything");
    free(in);
    free(out);
    MPI_Barrier(MPI_COMM_WORLD); /* the wildcard must not find the next round's */
}

/* A message that is taken out by mprobe is not found by a later receive. */
static void matched(int count, bool blocking)
{
    int *first = elements(world_rank, count), *second = elements(world_rank + 1000, count), flag = 0, probed;
    int *in = allocate((size_t)count * sizeof *in), *in_too = allocate((size_t)count * sizeof *in);
    MPI_Request requests[2], received;
    MPI_Message message;
    MPI_Status status;
    MPI_Isend(first, count, MPI_INT, next(), 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(second, count, MPI_INT, next(), 6, MPI_COMM_WORLD, &requests[1]);
    if (blocking)
        MPI_Mprobe(previous(), 6, MPI_COMM_WORLD, &message, &status);
    while (!blocking && !flag)
        MPI_Improbe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &flag, &message, &status);
    MPI_Get_count(&status, MPI_INT, &probed);
    MPI_Recv(in_too, count, MPI_INT, previous(), 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (blocking) {
        MPI_Mrecv(in, count, MPI_INT, &message, MPI_STATUS_IGNORE);
    } else {
        MPI_Imrecv(in, count, MPI_INT, &message, &received);
        MPI_Wait(&received, MPI_STATUS_IGNORE);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(probed == count && holds_elements(in, previous(), count) &&
              holds_elements(in_too, previous() + 1000, count) && message == MPI_MESSAGE_NULL,
          "%d elements taken by %s", count, blocking ? "mprobe" : "improbe");
    free(first);
    free(second);
    free(in);
    free(in_too);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void nothing_there(void)
{
    int flag = 1, flag_too = 1;
    MPI_Message message;
    for (int i = 0; i < 20; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Improbe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag_too, &message, MPI_STATUS_IGNORE);
    check(!flag && !flag_too && message == MPI_MESSAGE_NULL, "probes for what nobody sends");
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    check(message == MPI_MESSAGE_NO_PROC, "mprobe of no process");
    MPI_Mrecv(NULL, 0, MPI_INT, &message, MPI_STATUS_IGNORE);
}

/* A probe tells messages of other communicators apart. */
static void other_communicator(void)
{
    MPI_Comm other;
    int value = -1, flag = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Request request;
    MPI_Status status;
    MPI_Isend(&world_rank, 1, MPI_INT, next(), 7, other, &request);
    MPI_Probe(previous(), 7, other, &status);
    MPI_Iprobe(previous(), 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Recv(&value, 1, MPI_INT, previous(), 7, other, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(!flag && value == previous(), "a probe in another communicator");
    MPI_Comm_free(&other);
}

/* Rank 0 hands out work to whoever answers first: the pattern that probes are made for. */
static void farm(void)
{
    enum { TASKS = 40, WORK = 1, STOP = 2 };
    long sum = 0;
    if (world_rank == 0) {
        int given = 0, stopped = 0;
        while (stopped < world_size - 1) {
            MPI_Status status;
            int answer, word = given < TASKS ? given : 0;
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Recv(&answer, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            sum += answer;
            MPI_Send(&word, 1, MPI_INT, status.MPI_SOURCE, given < TASKS ? WORK : STOP, MPI_COMM_WORLD);
            stopped += given >= TASKS;
            given += given < TASKS;
        }
    } else {
        int answer = 0;
        for (;;) {
            MPI_Status status;
            int task;
            MPI_Send(&answer, 1, MPI_INT, 0, WORK, MPI_COMM_WORLD);
            MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_TAG == STOP)
                break;
            answer = task * task;
        }
    }
    long expected = 0;
    for (long i = 0; i < TASKS; i++)
        expected += i * i;
    check(world_rank != 0 || world_size == 1 || sum == expected, "a farm of workers");
}

int main(int argc, char **argv)
{
    checks_begin(&argc, &argv);
    for (int i = 0; i < LENGTH(sizes); i++)
        for (int blocking = 0; blocking < 2; blocking++) {
            sized_by_probe(sizes[i], blocking);
            matched(sizes[i], blocking);
        }
    nothing_there();
    other_communicator();
    farm();
    return checks_end();
}
