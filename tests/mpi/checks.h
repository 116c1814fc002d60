/* Checks of a test program: a line each from rank 0 with the verdict of all ranks, in the same order in every run.
 *
 *   int main(int argc, char **argv)
 *   {
 *       checks_begin(&argc, &argv);
 *       check(sum == 10, "sum of %d", count);   // by all ranks
 *       return checks_end();
 *   }
 */
#ifndef CHECKS_H
#define CHECKS_H

#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm checks_comm;
static int world_rank, world_size;
static int checks_done, checks_failed;

static inline void checks_begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &checks_comm);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
}

__attribute__((format(printf, 2, 3))) static inline void check(bool good, const char *format, ...)
{
    int mine = good ? INT_MAX : world_rank, first;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, checks_comm);
    checks_done++;
    checks_failed += first != INT_MAX;
    if (world_rank != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    printf(first == INT_MAX ? "ok      " : "FAILED  ");
    vprintf(format, arguments);
    if (first != INT_MAX)
        printf(" (rank %d)", first);
    printf("\n");
    va_end(arguments);
}

/* The exit status of the program. */
static inline int checks_end(void)
{
    if (world_rank == 0)
        printf("%d checks, %d failed\n", checks_done, checks_failed);
    MPI_Comm_free(&checks_comm);
    MPI_Finalize();
    return checks_failed != 0;
}

static inline void *allocate(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory) {
        fprintf(stderr, "out of memory: %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return memory;
}

/* The value of element `index` of rank `rank`, small enough to be summed over ranks. */
static inline int element(int rank, long index)
{
    return (int)((rank * 131 + index * 17 + 5) % 9973);
}

static inline int *elements(int rank, long count)
{
    int *values = allocate((size_t)count * sizeof *values);
    for (long i = 0; i < count; i++)
        values[i] = element(rank, i);
    return values;
}

static inline bool holds_elements(const int *values, int rank, long count)
{
    for (long i = 0; i < count; i++)
        if (values[i] != element(rank, i))
            return false;
    return true;
}

/* The roots to try: first, last, and one between. */
static inline int roots(int found[3])
{
    int count = 0;
    found[count++] = 0;
    if (world_size > 1)
        found[count++] = world_size - 1;
    if (world_size > 2)
        found[count++] = world_size / 2;
    return count;
}

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

#endif
