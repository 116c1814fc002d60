/* Median time of MPI calls that wait for nothing, in ns: run it with and without the recorder and take the difference.
 *
 * Each sample is one call, or one pair of calls, timed with CLOCK_MONOTONIC; the cost of the clock itself is in both
 * runs and so not in the difference. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SAMPLES = 200000 };

static double samples[SAMPLES];

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, int calls)
{
    qsort(samples, SAMPLES, sizeof *samples, compare);
    printf("%s %d %.0f %.0f\n", name, calls, samples[SAMPLES / 2], samples[SAMPLES / 100 * 99]);
}

#define MEASURE(name, calls, code)                                                                                     \
    do {                                                                                                               \
        for (int sample = 0; sample < SAMPLES; sample++) {                                                             \
            double start = now_ns();                                                                                   \
            code;                                                                                                      \
            samples[sample] = now_ns() - start;                                                                        \
        }                                                                                                              \
        report(name, calls);                                                                                           \
    } while (0)

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm self = MPI_COMM_SELF;
    MPI_Request requests[2];
    int out = 1, in, flag;
    MPI_Request persistent[2];
    MPI_Send_init(&out, 1, MPI_INT, 0, 1, self, &persistent[0]);
    MPI_Recv_init(&in, 1, MPI_INT, 0, 1, self, &persistent[1]);
    MEASURE("irecv+isend+waitall", 3, {
        MPI_Irecv(&in, 1, MPI_INT, 0, 0, self, &requests[0]);
        MPI_Isend(&out, 1, MPI_INT, 0, 0, self, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    });
    MEASURE("irecv(any)+isend+waitall", 3, {
        MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, self, &requests[0]);
        MPI_Isend(&out, 1, MPI_INT, 0, 0, self, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    });
    MEASURE("sendrecv", 1, MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, self, MPI_STATUS_IGNORE));
    MEASURE("startall+waitall", 2, {
        MPI_Startall(2, persistent);
        MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
    });
    MEASURE("allreduce", 1, MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, self));
    MEASURE("barrier", 1, MPI_Barrier(self));
    MEASURE("iprobe(failed)", 1, MPI_Iprobe(0, 5, self, &flag, MPI_STATUS_IGNORE));
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
    MPI_Finalize();
    return 0;
}
