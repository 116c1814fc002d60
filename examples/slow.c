/* Programs that are slow in one known way each, and their good twins:
 *
 *     mpicc -o slow examples/slow.c
 *     weft run -m exanest -n 8 --ppn 1 --host cpu -o out -- ./slow late-sender
 *     weft explain out
 *
 * A second argument, whatever it is, takes the twin that does the same work without the fault. Ranks sleep where a
 * program would compute: that is virtual time under any host model. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUND_US = 10000, LARGE = 2000000, SHORT = 10000, SMALL = 8, MESSAGES = 4000 };
/* Messages without an announcement, and about as long as they are on their way. */
enum { EAGER = 8000, WAY_US = 2, SWAPS = 500 };

static char mine[LARGE], theirs[LARGE];
static int rank, size, right, left;

static void compute(int us)
{
    usleep((useconds_t)us);
}

static void send(int to, int bytes)
{
    MPI_Send(mine, bytes, MPI_CHAR, to, 1, MPI_COMM_WORLD);
}

static void receive(int from, int bytes)
{
    MPI_Recv(theirs, bytes, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(int to, int from, int bytes)
{
    MPI_Sendrecv(mine, bytes, MPI_CHAR, to, 1, theirs, bytes, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Even ranks compute before they send what odd ranks wait for; or after it. */
static void late_sender(int good)
{
    if (rank % 2) {
        receive(left, SHORT);
        compute(ROUND_US);
    } else {
        if (!good)
            compute(ROUND_US);
        send(right, SHORT);
        if (good)
            compute(ROUND_US);
    }
}

/* Odd ranks compute before they receive what even ranks wait to send; or after it. */
static void late_receiver(int good)
{
    if (rank % 2 == 0) {
        send(right, SHORT);
        compute(ROUND_US);
    } else {
        if (!good)
            compute(ROUND_US);
        receive(left, SHORT);
        if (good)
            compute(ROUND_US);
    }
}

/* Ranks receive before they send, so that one message goes at a time; or all at once. */
static void serial_chain(int good)
{
    if (good) {
        exchange(right, left, LARGE);
    } else if (rank == 0) {
        send(right, LARGE);
        receive(left, LARGE);
    } else {
        receive(left, LARGE);
        send(right, LARGE);
    }
}

/* One rank computes four times as long as the others; or all compute for as long as they do on average. */
static void imbalance(int good)
{
    int longest = 4 * ROUND_US, others = ROUND_US;
    if (good)
        compute((longest + (size - 1) * others) / size);
    else
        compute(rank == 0 ? longest : others);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* In each round another rank computes, and the others wait for it; or all compute in the same round. */
static void wait_at_collective(int good)
{
    for (int round = 0; round < size; round++) {
        if (good ? round == 0 : round == rank)
            compute(ROUND_US);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* All send to rank 0; or each to its neighbour. */
static void hot_link(int good)
{
    if (good) {
        exchange(right, left, LARGE);
        return;
    }
    if (rank) {
        send(0, LARGE);
        return;
    }
    MPI_Request *requests = calloc((size_t)size, sizeof *requests);
    char *all = malloc((size_t)size * LARGE);
    for (int from = 1; from < size; from++)
        MPI_Irecv(all + (size_t)from * LARGE, LARGE, MPI_CHAR, from, 1, MPI_COMM_WORLD, &requests[from - 1]);
    MPI_Waitall(size - 1, requests, MPI_STATUSES_IGNORE);
    free(all);
    free(requests);
}

/* Even ranks send many small messages; or one with all of them. */
static void small_messages(int good)
{
    int messages = good ? 1 : MESSAGES, bytes = good ? SMALL * MESSAGES : SMALL;
    for (int message = 0; message < messages; message++) {
        if (rank % 2)
            receive(left, bytes);
        else
            send(right, bytes);
    }
}

/* Ranks compute before they exchange data with their neighbours; or begin the exchange, and compute meanwhile. That
 * helps where messages go on without calls of the program: here those of a machine whose eager messages are so large,
 * as bxi3-fattree. Larger ones are announced, and the announcement waits for a call. */
static void no_overlap(int good)
{
    for (int swap = 0; swap < SWAPS; swap++) {
        MPI_Request requests[2];
        if (!good)
            compute(WAY_US);
        MPI_Irecv(theirs, EAGER, MPI_CHAR, left, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(mine, EAGER, MPI_CHAR, right, 1, MPI_COMM_WORLD, &requests[1]);
        if (good)
            compute(WAY_US);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*program)(int);
    } PROGRAMS[] = {
        {"late-sender", late_sender},
        {"late-receiver", late_receiver},
        {"serial-chain", serial_chain},
        {"imbalance", imbalance},
        {"wait-at-collective", wait_at_collective},
        {"hot-link", hot_link},
        {"small-messages", small_messages},
        {"no-overlap", no_overlap},
    };
    const char *name = argc > 1 ? argv[1] : PROGRAMS[0].name;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2) {
        fprintf(stderr, "slow: at least two ranks are needed: weft run -n 8, or mpiexec -n 8\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    for (size_t i = 0; i < sizeof PROGRAMS / sizeof *PROGRAMS; i++) {
        if (!strcmp(name, PROGRAMS[i].name)) {
            PROGRAMS[i].program(argc > 2);
            MPI_Finalize();
            return 0;
        }
    }
    fprintf(stderr, "slow: there is no program %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 2);
}
