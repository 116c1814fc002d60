/* Messages between two ranks and among all: modes of sending, sizes around every threshold, wildcards, order. */
#include "checks.h"

enum { TAG = 3 };

/* Around the limits of injection, of eager sending and of segments, and beyond. */
static const int sizes[] = {0,    1,    7,     8,     63,    64,    65,    255,    1023,  4096,
                            8191, 8192, 8193,  16383, 16384, 16385, 65535, 65537,  262147, 1048579};

static unsigned char *bytes(int seed, int count)
{
    unsigned char *buffer = allocate((size_t)count);
    for (int i = 0; i < count; i++)
        buffer[i] = (unsigned char)(seed * 37 + i * 11 + i / 251);
    return buffer;
}

static bool holds_bytes(const unsigned char *buffer, int seed, int count)
{
    for (int i = 0; i < count; i++)
        if (buffer[i] != (unsigned char)(seed * 37 + i * 11 + i / 251))
            return false;
    return true;
}

static void ring_of(int size)
{
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    unsigned char *out = bytes(world_rank, size), *in = allocate((size_t)size);
    MPI_Status status;
    int count;
    MPI_Sendrecv(out, size, MPI_BYTE, right, TAG, in, size, MPI_BYTE, left, TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    check(holds_bytes(in, left, size) && count == size && status.MPI_SOURCE == left && status.MPI_TAG == TAG,
          "ring of %d bytes", size);
    MPI_Sendrecv_replace(out, size, MPI_BYTE, right, TAG, left, TAG, MPI_COMM_WORLD, &status);
    check(holds_bytes(out, left, size), "ring of %d bytes in one buffer", size);
    free(out);
    free(in);
}

typedef int (*sender)(const void *, int, MPI_Datatype, int, int, MPI_Comm);

/* Even ranks send to the next odd one; a ready send follows the word that its receive is posted. */
static void modes(int size)
{
    static const struct {
        const char *name;
        sender send;
    } modes[] = {{"standard", MPI_Send}, {"synchronous", MPI_Ssend}, {"buffered", MPI_Bsend}, {"ready", MPI_Rsend}};
    bool sends = world_rank % 2 == 0 && world_rank + 1 < world_size, receives = world_rank % 2 == 1;
    int room = size + MPI_BSEND_OVERHEAD, detached;
    void *buffer = allocate((size_t)room);
    MPI_Buffer_attach(buffer, room);
    for (int m = 0; m < LENGTH(modes); m++) {
        unsigned char *data = sends ? bytes(m, size) : allocate((size_t)size);
        bool good = true;
        if (sends) {
            MPI_Recv(NULL, 0, MPI_BYTE, world_rank + 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            modes[m].send(data, size, MPI_BYTE, world_rank + 1, TAG, MPI_COMM_WORLD);
        } else if (receives) {
            MPI_Request request;
            MPI_Irecv(data, size, MPI_BYTE, world_rank - 1, TAG, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, world_rank - 1, TAG + 1, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            good = holds_bytes(data, m, size);
        }
        check(good, "%s send of %d bytes", modes[m].name, size);
        free(data);
    }
    MPI_Buffer_detach(&buffer, &detached);
    free(buffer);
}

/* All send to rank 0, which takes any source, then any tag, then both. */
static void wildcards(void)
{
    enum { ROUNDS = 12 };
    for (int which = 0; which < 3; which++) {
        bool good = true;
        int *seen = allocate((size_t)world_size * sizeof *seen);
        for (int round = 0; world_rank != 0 && round < ROUNDS; round++) {
            int message[2] = {world_rank, round};
            MPI_Send(message, 2, MPI_INT, 0, round, MPI_COMM_WORLD);
        }
        for (int i = 0; world_rank == 0 && i < ROUNDS * (world_size - 1); i++) {
            int message[2];
            int source = which == 1 ? 1 + i / ROUNDS : MPI_ANY_SOURCE;
            int tag = which == 0 ? i / (world_size - 1) : MPI_ANY_TAG;
            MPI_Status status;
            MPI_Recv(message, 2, MPI_INT, source, tag, MPI_COMM_WORLD, &status);
            good &= status.MPI_SOURCE == message[0] && status.MPI_TAG == message[1];
            good &= message[1] == seen[message[0]]++; /* messages of one sender do not overtake */
        }
        for (int rank = 1; world_rank == 0 && rank < world_size; rank++)
            good &= seen[rank] == ROUNDS;
        free(seen);
        check(good, "receives from any %s", which == 0 ? "source" : which == 1 ? "tag" : "source and tag");
    }
}

/* Many messages before any receive, taken in the reverse order of tags. */
static void unexpected(int size)
{
    enum { MESSAGES = 100 };
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    MPI_Request requests[MESSAGES];
    unsigned char *out[MESSAGES], *in = allocate((size_t)size);
    bool good = true;
    for (int i = 0; i < MESSAGES; i++) {
        out[i] = bytes(world_rank + i, size);
        MPI_Isend(out[i], size, MPI_BYTE, right, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = MESSAGES - 1; i >= 0; i--) {
        MPI_Recv(in, size, MPI_BYTE, left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        good &= holds_bytes(in, left + i, size);
    }
    MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MESSAGES; i++)
        free(out[i]);
    free(in);
    check(good, "%d unexpected messages of %d bytes", MESSAGES, size);
}

/* Small messages must not overtake a large one of the same tag. */
static void order(void)
{
    static const int lengths[] = {300000, 1, 20000, 0, 100000, 64, 9000};
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    MPI_Request requests[LENGTH(lengths)];
    unsigned char *out = bytes(world_rank, 300000), *in = allocate(300000);
    bool good = true;
    for (int i = 0; i < LENGTH(lengths); i++)
        MPI_Isend(out, lengths[i], MPI_BYTE, right, TAG, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < LENGTH(lengths); i++) {
        MPI_Status status;
        int count;
        MPI_Recv(in, 300000, MPI_BYTE, left, TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        good &= count == lengths[i] && holds_bytes(in, left, count);
    }
    MPI_Waitall(LENGTH(lengths), requests, MPI_STATUSES_IGNORE);
    free(out);
    free(in);
    check(good, "large and small messages of one tag stay in order");
}

static void waits(void)
{
    enum { MESSAGES = 16, SIZE = 20000 };
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    for (int which = 0; which < 5; which++) {
        MPI_Request requests[2 * MESSAGES];
        unsigned char *out[MESSAGES], *in[MESSAGES];
        for (int i = 0; i < MESSAGES; i++) {
            int size = i % 2 ? SIZE : 10;
            out[i] = bytes(i, size);
            in[i] = allocate(SIZE);
            MPI_Irecv(in[i], SIZE, MPI_BYTE, left, i, MPI_COMM_WORLD, &requests[i]);
            MPI_Isend(out[i], size, MPI_BYTE, right, i, MPI_COMM_WORLD, &requests[MESSAGES + i]);
        }
        int left_over = 2 * MESSAGES, indices[2 * MESSAGES], count, flag = 0;
        while (left_over > 0) {
            switch (which) {
            case 0:
                MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
                left_over = 0;
                break;
            case 1:
                MPI_Waitany(2 * MESSAGES, requests, indices, MPI_STATUS_IGNORE);
                left_over--;
                break;
            case 2:
                MPI_Waitsome(2 * MESSAGES, requests, &count, indices, MPI_STATUSES_IGNORE);
                left_over -= count;
                break;
            case 3:
                MPI_Testall(2 * MESSAGES, requests, &flag, MPI_STATUSES_IGNORE);
                left_over = flag ? 0 : left_over;
                break;
            default:
                MPI_Testany(2 * MESSAGES, requests, indices, &flag, MPI_STATUS_IGNORE);
                left_over -= flag;
            }
        }
        bool good = true;
        for (int i = 0; i < MESSAGES; i++) {
            good &= holds_bytes(in[i], i, i % 2 ? SIZE : 10);
            good &= requests[i] == MPI_REQUEST_NULL && requests[MESSAGES + i] == MPI_REQUEST_NULL;
            free(in[i]);
            free(out[i]);
        }
        static const char *const names[] = {"waitall", "waitany", "waitsome", "testall", "testany"};
        check(good, "%s", names[which]);
    }
}

static void to_nobody_and_to_oneself(void)
{
    int value = 7, got = 0;
    MPI_Status status;
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
    check(got == 0 && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG, "no process");
    for (int size = 4; size < 1000000; size *= 100) {
        unsigned char *out = bytes(size, size), *in = allocate((size_t)size);
        MPI_Request request;
        MPI_Irecv(in, size, MPI_BYTE, world_rank, TAG, MPI_COMM_WORLD, &request);
        MPI_Send(out, size, MPI_BYTE, world_rank, TAG, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(holds_bytes(in, size, size), "%d bytes to oneself", size);
        free(out);
        free(in);
    }
}

static void truncation(void)
{
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int size = 40; size < 100000; size *= 50) {
        unsigned char *out = bytes(1, size), *in = allocate((size_t)size);
        MPI_Request request;
        MPI_Isend(out, size, MPI_BYTE, right, TAG, MPI_COMM_WORLD, &request);
        int class = MPI_SUCCESS, error = MPI_Recv(in, size / 2, MPI_BYTE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (error)
            MPI_Error_class(error, &class);
        check(class == MPI_ERR_TRUNCATE && in[size / 2] == 0, "a message of %d bytes into half the room", size);
        free(out);
        free(in);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void time_passes(void)
{
    double start = MPI_Wtime(), last = start, now = start;
    bool good = MPI_Wtick() > 0;
    while (now < start + 0.001) {
        now = MPI_Wtime();
        good &= now >= last;
        last = now;
    }
    check(good, "a loop over MPI_Wtime ends");
}

int main(int argc, char **argv)
{
    checks_begin(&argc, &argv);
    for (int i = 0; i < LENGTH(sizes); i++)
        ring_of(sizes[i]);
    modes(5);
    modes(5000);
    modes(500000);
    wildcards();
    unexpected(5);
    unexpected(3000);
    unexpected(30000);
    order();
    waits();
    to_nobody_and_to_oneself();
    truncation();
    time_passes();
    return checks_end();
}
