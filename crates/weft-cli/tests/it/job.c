/* Jobs that run well or badly, one per argument: job WHAT. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;

/* Round trips between ranks 0 and 1, and a sum over all. */
static void talk(void)
{
    static char buffer[1 << 20];
    for (int bytes = 1; bytes <= (int)sizeof buffer; bytes *= 32) {
        double began = MPI_Wtime();
        for (int round = 0; round < 4; round++) {
            if (rank == 0) {
                memset(buffer, round + 1, (size_t)bytes);
                MPI_Send(buffer, bytes, MPI_CHAR, 1, 5, MPI_COMM_WORLD);
                MPI_Recv(buffer, bytes, MPI_CHAR, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                if (buffer[bytes - 1] != round + 2)
                    MPI_Abort(MPI_COMM_WORLD, 9);
            } else if (rank == 1) {
                MPI_Recv(buffer, bytes, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                memset(buffer, buffer[bytes - 1] + 1, (size_t)bytes);
                MPI_Send(buffer, bytes, MPI_CHAR, 0, 6, MPI_COMM_WORLD);
            }
        }
        if (rank == 0)
            printf("%d bytes: %.3f us\n", bytes, (MPI_Wtime() - began) / 8 * 1e6);
    }
    int sum = 0, own = rank + 1;
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d: sum %d at %.3f us\n", rank, size, sum, (MPI_Wtime() - 1000) * 1e6);
}

/* Sums and neighbours' data: by the functions that the program is linked to, or by the library's own, which nothing
 * precedes. */
static void exchange(int own)
{
    static char mine[1 << 18], theirs[1 << 18];
    void *library = own ? dlopen("libmpi.so.12", RTLD_NOW | RTLD_NOLOAD) : RTLD_DEFAULT;
    int (*sum)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm) = dlsym(library, "MPI_Allreduce");
    int (*swap)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm,
                MPI_Status *) = dlsym(library, "MPI_Sendrecv");
    for (int bytes = 4; bytes <= (int)sizeof mine; bytes *= 4) {
        int to = (rank + bytes / 4) % size, from = (rank + size - bytes / 4 % size) % size;
        sum(mine, theirs, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        double summed = MPI_Wtime();
        swap(mine, bytes, MPI_CHAR, to, 3, theirs, bytes, MPI_CHAR, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("rank %d, %d bytes: %.6f us, %.6f us\n", rank, bytes, (summed - 1000) * 1e6, (MPI_Wtime() - 1000) * 1e6);
    }
}

/* Sends bytes that nobody else sends, of all protocols, and looks at what has come. */
static void compare(int salt)
{
    static unsigned char mine[1 << 18], theirs[1 << 18];
    for (int bytes = 4; bytes <= (int)sizeof mine; bytes *= 4) {
        memset(mine, 1 + salt + rank, sizeof mine);
        memset(theirs, 0, sizeof theirs);
        int to = (rank + 1) % size, from = (rank + size - 1) % size;
        MPI_Sendrecv(mine, bytes, MPI_CHAR, to, 3, theirs, bytes, MPI_CHAR, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (theirs[0] != 1 + salt + from || memcmp(theirs, theirs + 1, bytes - 1)) {
            printf("rank %d: %d bytes are wrong, the first is %d\n", rank, bytes, theirs[0]);
            MPI_Abort(MPI_COMM_WORLD, 9);
        }
    }
    printf("rank %d compared\n", rank);
}

/* All send and receive at once. */
static void ring(int bytes, int rounds)
{
    static char mine[1 << 16], theirs[1 << 16];
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < rounds; i++)
        MPI_Sendrecv(mine, bytes, MPI_CHAR, to, 3, theirs, bytes, MPI_CHAR, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The same, asking over and over whether it is done. */
static void tests(int bytes, int rounds)
{
    static char mine[1 << 16], theirs[1 << 16];
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < rounds; i++) {
        MPI_Request requests[2];
        int done = 0;
        MPI_Irecv(theirs, bytes, MPI_CHAR, from, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(mine, bytes, MPI_CHAR, to, 3, MPI_COMM_WORLD, &requests[1]);
        while (!done)
            MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    }
}

static void alltoall(int bytes, int rounds)
{
    char *given = calloc((size_t)size, (size_t)bytes), *taken = calloc((size_t)size, (size_t)bytes);
    for (int round = 0; round < rounds; round++)
        MPI_Alltoall(given, bytes, MPI_CHAR, taken, bytes, MPI_CHAR, MPI_COMM_WORLD);
    free(given);
    free(taken);
}

/* Both send first, above the eager threshold. */
static void deadlock(void)
{
    static char buffer[100000];
    MPI_Send(buffer, sizeof buffer, MPI_CHAR, 1 - rank, 17, MPI_COMM_WORLD);
    MPI_Recv(buffer, sizeof buffer, MPI_CHAR, 1 - rank, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* All wait for one of two messages that nobody sends. */
static void waits_for_any(void)
{
    int values[2], index;
    MPI_Request requests[2];
    for (int tag = 0; tag < 2; tag++)
        MPI_Irecv(&values[tag], 1, MPI_INT, (rank + 1) % size, 30 + tag, MPI_COMM_WORLD, &requests[tag]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
}

/* Rank 0 has many receives open. Rank 1 sends one message after the other, each when the one before has been answered.
 * Rank 0 takes them by MPI_Waitany and MPI_Waitsome. Before the last come tests in vain and a send that is complete at
 * once. */
static void many_requests(int count)
{
    enum { MOST = 200 };
    int values[MOST], index, some, indices[MOST], done;
    MPI_Request requests[MOST + 1];
    for (int kind = 0; kind < 3; kind++) {
        for (int tag = 0; rank == 0 && tag < count; tag++)
            MPI_Irecv(&values[tag], 1, MPI_INT, 1, tag, MPI_COMM_WORLD, &requests[tag]);
        for (int tag = 0; tag < count; tag++) {
            if (rank == 1) {
                MPI_Send(&tag, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
                MPI_Recv(&values[0], 0, MPI_INT, 0, count, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                continue;
            }
            if (kind == 1)
                MPI_Waitsome(count, requests, &some, indices, MPI_STATUSES_IGNORE);
            else
                MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
            if ((kind == 1 ? some != 1 || indices[0] != tag : index != tag) || values[tag] != tag)
                printf("kind %d: another one than %d\n", kind, tag);
            for (int i = 0; kind == 2 && i < 2 * count; i++)
                MPI_Testany(count, requests, &index, &done, MPI_STATUS_IGNORE);
            MPI_Isend(NULL, 0, MPI_INT, 1, count, MPI_COMM_WORLD, &requests[count]);
            MPI_Waitany(count + 1, requests, &index, MPI_STATUS_IGNORE);
            if (index != count)
                printf("kind %d: %d before the send\n", kind, index);
        }
    }
}

/* Rank 0 holds the lock that the others wait for. */
static void locks(void)
{
    int memory = 0, value = 0;
    MPI_Win window;
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    if (rank > 0)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    if (rank == 0) {
        MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_flush(0, window);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock(0, window);
    MPI_Win_free(&window);
}

/* Each puts into its right neighbour's memory, between starts and completions. */
static void neighbours(int rounds)
{
    int memory[64], mine[64] = { rank };
    MPI_Win window;
    MPI_Group all, to, from;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &right, &to);
    MPI_Group_incl(all, 1, &left, &from);
    for (int round = 0; round < rounds; round++) {
        MPI_Win_post(from, 0, window);
        MPI_Win_start(to, 0, window);
        MPI_Put(mine, 64, MPI_INT, right, 0, 64, MPI_INT, window);
        MPI_Win_complete(window);
        MPI_Win_wait(window);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Win_free(&window);
}

/* Rank 0 sends numbers much faster than rank 1 takes them. */
static void flood(int count)
{
    for (int i = 0; i < count; i++) {
        int number = i;
        if (rank == 0)
            MPI_Send(&number, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
        else if (rank == 1)
            MPI_Recv(&number, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (number != i) {
            printf("number %d came as the %dth\n", number, i);
            MPI_Abort(MPI_COMM_WORLD, 9);
        }
    }
}

/* Tests in a loop and never yields. */
static void test_loop(void)
{
    int value = rank, flag = 0;
    MPI_Request request;
    if (rank == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
        while (!flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        printf("got %d at %.3f us\n", value, (MPI_Wtime() - 1000) * 1e6);
    } else if (rank == 1) {
        usleep(100);
        MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
}

/* Blocking round trips: the time of one way. */
static void ping_pong(int bytes, int rounds)
{
    char *buffer = calloc((size_t)bytes + 1, 1);
    double began = MPI_Wtime();
    for (int half = 0; half < 2 * rounds; half++) {
        if (rank == half % 2)
            MPI_Send(buffer, bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD);
        else if (rank == 1 - half % 2)
            MPI_Recv(buffer, bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0)
        printf("%.6f\n", (MPI_Wtime() - began) / (2 * rounds) * 1e6);
    free(buffer);
}

static void allreduce(int count, int rounds)
{
    double *given = calloc((size_t)count, sizeof *given), *taken = calloc((size_t)count, sizeof *taken);
    for (int round = 0; round < rounds; round++)
        MPI_Allreduce(given, taken, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    free(given);
    free(taken);
}

/* Sleeps, which takes virtual time, and then meets the others. */
static void sleeps(void)
{
    usleep((useconds_t)(100 * (rank + 1)));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Puts into the next rank's window, and gets from it. */
static void one_sided(int bytes, int rounds)
{
    char *window, *own = calloc((size_t)bytes, 1);
    MPI_Win win;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_fence(0, win);
    for (int round = 0; round < rounds; round++) {
        MPI_Put(own, bytes, MPI_CHAR, (rank + 1) % size, 0, bytes, MPI_CHAR, win);
        MPI_Win_fence(0, win);
        MPI_Get(own, bytes, MPI_CHAR, (rank + 1) % size, 0, bytes, MPI_CHAR, win);
        MPI_Win_fence(0, win);
    }
    MPI_Win_free(&win);
    free(own);
}

/* An exchange with the next rank from one buffer, and with the one before into another. */
static void pass_on(char *given, char *taken, int bytes)
{
    MPI_Sendrecv(given, bytes, MPI_CHAR, (rank + 1) % size, 1, taken, bytes, MPI_CHAR, (rank + size - 1) % size, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Buffers everywhere: on the stack, static, between small pieces of the heap, and in mappings of their own. */
static void buffers(int rounds)
{
    enum { BYTES = 40000 };
    static char fixed[2 * BYTES];
    char on_stack[2 * BYTES];
    memset(on_stack, 1, sizeof on_stack);
    char *own = calloc(1 << 20, 1), *window;
    MPI_Win win;
    MPI_Win_create(fixed, sizeof fixed, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win allocated;
    MPI_Win_allocate(1 << 18, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &allocated);
    for (int round = 0; round < rounds; round++) {
        char *small = calloc(BYTES + 1000 * round, 1), *other = calloc(BYTES, 1);
        pass_on(on_stack + 8 * round, fixed + BYTES, BYTES - 8 * round);
        pass_on(fixed, small + 100, BYTES - 100);
        pass_on(small, own + 10000 * round, BYTES);
        pass_on(own + (1 << 19), on_stack + BYTES, BYTES);
        pass_on(own, other, BYTES);
        MPI_Allreduce(MPI_IN_PLACE, other, BYTES / 8, MPI_LONG, MPI_BOR, MPI_COMM_WORLD);
        MPI_Win_fence(0, win);
        MPI_Put(on_stack, BYTES, MPI_CHAR, (rank + 1) % size, 0, BYTES, MPI_CHAR, win);
        MPI_Get(small, BYTES, MPI_CHAR, (rank + 2) % size, BYTES, BYTES, MPI_CHAR, win);
        MPI_Win_fence(0, win);
        MPI_Win_fence(0, allocated);
        MPI_Put(own, BYTES, MPI_CHAR, (rank + 1) % size, 100000, BYTES, MPI_CHAR, allocated);
        MPI_Win_fence(0, allocated);
        free(small);
        free(other);
    }
    MPI_Win_free(&allocated);
    MPI_Win_free(&win);
    free(own);
}

/* Rank 0 puts into so many parts of rank 1's window in turn, 64 KB apart, or gets from them. */
static void spread_window(int gets, int count, int rounds)
{
    enum { BYTES = 32 << 10 };
    char *own = calloc(BYTES, 1), *window;
    MPI_Win win;
    MPI_Win_allocate((MPI_Aint)count * 2 * BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_fence(0, win);
    for (int round = 0; round < rounds; round++) {
        MPI_Aint part = (MPI_Aint)(round % count) * 2 * BYTES;
        if (rank == 0 && gets)
            MPI_Get(own, BYTES, MPI_CHAR, 1, part, BYTES, MPI_CHAR, win);
        else if (rank == 0)
            MPI_Put(own, BYTES, MPI_CHAR, 1, part, BYTES, MPI_CHAR, win);
        MPI_Win_fence(0, win);
    }
    MPI_Win_free(&win);
    free(own);
}

/* Rank 0 sends from so many buffers in turn, 64 KB apart, and rank 1 receives into as many. */
static void spread_sends(int count, int rounds)
{
    enum { BYTES = 32 << 10 };
    char *own = calloc((size_t)count, 2 * (size_t)BYTES);
    for (int round = 0; round < rounds; round++) {
        char *part = own + (size_t)(round % count) * 2 * BYTES;
        if (rank == 0)
            MPI_Send(part, BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        else
            MPI_Recv(part, BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(own);
}

/* Computes between two looks at the clock. */
static void computes(void)
{
    double began = MPI_Wtime();
    volatile double sum = 0;
    for (int i = 0; i < 50000000; i++)
        sum += i;
    printf("computed for %.6f s\n", MPI_Wtime() - began);
}

/* All test and yield in vain, more often than weft gives chances, give up, and go on. */
static void in_vain(int times)
{
    int value, flag;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, (rank + 1) % size, 9, MPI_COMM_WORLD, &request);
    for (int i = 0; i < times; i++) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        sched_yield();
    }
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A child looks at the clock for as long as it likes. */
static void forks(void)
{
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100000; i++)
            MPI_Wtime();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void *meet(void *nothing)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return nothing;
}

/* Rank 1 sleeps until rank 0 has made a file, and tells how often. */
static void sleeps_until_a_file_is_there(const char *program)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.there", program);
    if (rank == 0)
        unlink(name);
    MPI_Barrier(MPI_COMM_WORLD);
    int ms = 0;
    if (rank == 0) {
        usleep(2500);
        fclose(fopen(name, "w"));
    } else {
        for (; access(name, F_OK) != 0; ms++)
            usleep(1000);
        printf("%d ms\n", ms);
        unlink(name);
    }
}

/* A rank that says so and never gives its turn back. */
static void spins(void)
{
    printf("rank %d spins\n", rank);
    fflush(stdout);
    for (;;)
        ;
}

/* Another thread than the one that began calls MPI. */
static void threads(void)
{
    pthread_t other;
    pthread_create(&other, NULL, meet, NULL);
    pthread_join(other, NULL);
}

/* A thread of several that pass numbers around a ring, each with a tag of its own. */
static void *passes(void *its_tag)
{
    int tag = (int)(intptr_t)its_tag, left = (rank + size - 1) % size;
    for (int round = 0; round < 100; round++) {
        int sent[20] = {rank, tag, round}, got[20] = {0};
        int count = round % 2 ? 3 : 20;
        MPI_Sendrecv(sent, count, MPI_INT, (rank + 1) % size, tag, got, count, MPI_INT, left, tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (got[0] != left || got[1] != tag || got[2] != round)
            printf("rank %d, thread %d, round %d: %d %d %d\n", rank, tag, round, got[0], got[1], got[2]);
    }
    return NULL;
}

/* So does the one that began. */
static void several_threads(void)
{
    pthread_t others[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&others[i], NULL, passes, (void *)(intptr_t)(i + 1));
    passes((void *)0);
    for (int i = 0; i < 4; i++)
        pthread_join(others[i], NULL);
    printf("passed\n");
}

/* Communicators for which MPICH may open an endpoint each. Their messages have the same tag and the same source. */
enum { COMMUNICATORS = 5, TAG = 3, WORDS = 8000 };
static MPI_Comm communicators[COMMUNICATORS];

static void make_communicators(void)
{
    for (int i = 0; i < COMMUNICATORS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
}

static void check(int number, int got, int expected)
{
    if (got != expected) {
        printf("rank %d, communicator %d: %d, not %d\n", rank, number, got, expected);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Messages around the ring on one communicator, short and long, from anybody, and a sum. */
static void *uses_a_communicator(void *its_number)
{
    int number = (int)(intptr_t)its_number, left = (rank + size - 1) % size;
    MPI_Comm mine = communicators[number];
    int *sent = calloc(2 * WORDS, sizeof *sent), *got = sent + WORDS;
    for (int round = 0; round < 16; round++) {
        int words = round % 8 ? 3 : WORDS, sum;
        MPI_Request requests[2];
        sent[0] = rank, sent[1] = number, sent[2] = sent[words - 1] = round;
        MPI_Irecv(got, WORDS, MPI_INT, MPI_ANY_SOURCE, TAG, mine, &requests[0]);
        MPI_Isend(sent, words, MPI_INT, (rank + 1) % size, TAG, mine, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(number, got[0], left);
        check(number, got[1], number);
        check(number, got[words - 1], round);
        MPI_Allreduce(&sent[2], &sum, 1, MPI_INT, MPI_SUM, mine);
        check(number, sum, size * round);
    }
    free(sent);
    return NULL;
}

/* Rank 0 waits for messages on one communicator, and meanwhile has to answer what comes for the window of another. */
static void accumulates_while_the_target_waits(int number, MPI_Win window, int *memory)
{
    MPI_Comm other = communicators[(number + 1) % COMMUNICATORS];
    int one = 1, before = *memory, value;
    if (rank > 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
        MPI_Win_unlock(0, window);
        MPI_Send(&one, 1, MPI_INT, 0, TAG, other);
    } else {
        for (int i = 1; i < size; i++)
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, TAG, other, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        check(number, *memory, before + size - 1);
        MPI_Win_unlock(0, window);
    }
}

/* One thread: receives on all communicators at once, each sent to in the other order. Then a window of each. */
static void uses_communicators(void)
{
    int sent[COMMUNICATORS], got[COMMUNICATORS], left = (rank + size - 1) % size;
    MPI_Request requests[2 * COMMUNICATORS];
    make_communicators();
    for (int i = 0; i < COMMUNICATORS; i++)
        MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, TAG, communicators[i], &requests[i]);
    for (int i = COMMUNICATORS - 1; i >= 0; i--) {
        sent[i] = 100 * rank + i;
        MPI_Isend(&sent[i], 1, MPI_INT, (rank + 1) % size, TAG, communicators[i], &requests[COMMUNICATORS + i]);
    }
    MPI_Waitall(2 * COMMUNICATORS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COMMUNICATORS; i++)
        check(i, got[i], 100 * left + i);
    for (int i = 0; i < COMMUNICATORS; i++) {
        MPI_Win window;
        int *memory;
        uses_a_communicator((void *)(intptr_t)i);
        MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, communicators[i], &memory, &window);
        MPI_Win_fence(0, window);
        MPI_Put(&sent[i], 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        check(i, *memory, 100 * left + i);
        accumulates_while_the_target_waits(i, window, memory);
        MPI_Win_free(&window);
    }
    printf("passed at %.3f us\n", MPI_Wtime() * 1e6);
}

/* As many threads, one on each. */
static void threads_on_communicators(void)
{
    pthread_t threads[COMMUNICATORS];
    make_communicators();
    for (int i = 0; i < COMMUNICATORS; i++)
        pthread_create(&threads[i], NULL, uses_a_communicator, (void *)(intptr_t)i);
    for (int i = 0; i < COMMUNICATORS; i++)
        pthread_join(threads[i], NULL);
    printf("passed\n");
}

/* Much outside of region 1, and so many messages around the ring in it, twice. */
static void regions(int bytes, int rounds)
{
    usleep(2000);
    ring(bytes, rounds);
    for (int i = 0; i < 2; i++) {
        MPI_Pcontrol(1);
        usleep(10);
        ring(bytes, rounds);
        MPI_Pcontrol(0);
        ring(bytes, rounds);
        usleep(500);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "talk";
    int first = argc > 2 ? atoi(argv[2]) : 0, second = argc > 3 ? atoi(argv[3]) : 1;
    int level;
    MPI_Init_thread(&argc, &argv, strstr(what, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int value = 0;
    if (!strcmp(what, "talk"))
        talk();
    else if (!strcmp(what, "regions"))
        regions(first, second);
    else if (!strcmp(what, "exchange"))
        exchange(first);
    else if (!strcmp(what, "ring"))
        ring(first, second);
    else if (!strcmp(what, "compare"))
        compare(first);
    else if (!strcmp(what, "replaces itself")) {
        compare(0);
        MPI_Finalize();
        fflush(stdout);
        execl(argv[0], argv[0], "compare", "50", NULL);
        return 1;
    }
    else if (!strcmp(what, "ping-pong"))
        ping_pong(first, second);
    else if (!strcmp(what, "allreduce"))
        allreduce(first, second);
    else if (!strcmp(what, "sleeps"))
        sleeps();
    else if (!strcmp(what, "buffers"))
        buffers(first);
    else if (!strcmp(what, "spread puts") || !strcmp(what, "spread gets"))
        spread_window(!strcmp(what, "spread gets"), first, second);
    else if (!strcmp(what, "spread sends"))
        spread_sends(first, second);
    else if (!strcmp(what, "one-sided"))
        one_sided(first, second);
    else if (!strcmp(what, "computes"))
        computes();
    else if (!strcmp(what, "in vain"))
        in_vain(first);
    else if (!strcmp(what, "forks"))
        forks();
    else if (!strcmp(what, "threads"))
        threads();
    else if (!strcmp(what, "several threads"))
        several_threads();
    else if (!strcmp(what, "communicators"))
        uses_communicators();
    else if (!strcmp(what, "threads on communicators"))
        threads_on_communicators();
    else if (!strcmp(what, "sleeps until a file is there"))
        sleeps_until_a_file_is_there(argv[0]);
    else if (!strcmp(what, "sleeps for ever"))
        for (MPI_Barrier(MPI_COMM_WORLD); rank == 1;)
            usleep(1000);
    else if (!strcmp(what, "sleeps at the end"))
        sleep(1);
    else if (!strcmp(what, "deadlock"))
        deadlock();
    else if (!strcmp(what, "test"))
        test_loop();
    else if (!strcmp(what, "waits"))
        MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (!strcmp(what, "waits for any"))
        waits_for_any();
    else if (!strcmp(what, "many requests"))
        many_requests(first);
    else if (!strcmp(what, "locks"))
        locks();
    else if (!strcmp(what, "neighbours"))
        neighbours(first);
    else if (!strcmp(what, "tests"))
        tests(first, second);
    else if (!strcmp(what, "alltoall"))
        alltoall(first, second);
    else if (!strcmp(what, "flood"))
        flood(first);
    else if (!strcmp(what, "probes"))
        MPI_Probe((rank + 1) % size, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (rank == 1 && !strcmp(what, "exit"))
        _exit(7);
    else if (rank == 1 && !strcmp(what, "leave"))
        _exit(0);
    else if (rank == 1 && !strcmp(what, "crash"))
        raise(SIGSEGV);
    else if (rank == 1 && !strcmp(what, "abort"))
        MPI_Abort(MPI_COMM_WORLD, 5);
    else if (!strcmp(what, "aborts"))
        for (int i = 0; i < 100; i++) {
            MPI_Allreduce(&i, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            printf("rank %d, round %d\n", rank, i);
            if (rank == 1 && i == 5)
                MPI_Abort(MPI_COMM_WORLD, 6);
        }
    else if (rank == 1 && !strcmp(what, "spin"))
        spins();
    else
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
