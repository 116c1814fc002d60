/* One-sided communication: windows of every kind, every synchronization, every operation. */
#include "checks.h"

enum { COUNT = 1500 };

static int previous(void)
{
    return (world_rank + world_size - 1) % world_size;
}

static int next(void)
{
    return (world_rank + 1) % world_size;
}

/* A window of `count` ints of zeroes, allocated by MPI or not. */
static MPI_Win window_of(int count, bool by_mpi, int **memory)
{
    MPI_Win window;
    MPI_Aint bytes = (MPI_Aint)count * (MPI_Aint)sizeof(int);
    if (by_mpi) {
        MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, memory, &window);
    } else {
        *memory = allocate((size_t)bytes);
        MPI_Win_create(*memory, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    }
    memset(*memory, 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    return window;
}

static void window_free(MPI_Win *window, bool by_mpi, int *memory)
{
    MPI_Win_free(window);
    if (!by_mpi)
        free(memory);
}

static void fences(bool by_mpi, int count)
{
    int *memory, *mine = elements(world_rank, count), *got = allocate((size_t)count * sizeof *got);
    MPI_Win window = window_of(2 * count, by_mpi, &memory);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    MPI_Put(mine, count, MPI_INT, next(), 0, count, MPI_INT, window);
    MPI_Win_fence(0, window);
    check(holds_elements(memory, previous(), count), "put of %d between fences", count);
    MPI_Get(got, count, MPI_INT, next(), 0, count, MPI_INT, window);
    MPI_Win_fence(0, window);
    check(holds_elements(got, world_rank, count), "get of %d between fences", count);
    /* All add to rank 0. */
    MPI_Accumulate(mine, count, MPI_INT, 0, count, count, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    bool good = true;
    for (int i = 0; world_rank == 0 && i < count; i++) {
        int sum = 0;
        for (int rank = 0; rank < world_size; rank++)
            sum += element(rank, i);
        good &= memory[count + i] == sum;
    }
    check(good, "accumulate of %d between fences", count);
    window_free(&window, by_mpi, memory);
    free(mine);
    free(got);
}

static void post_start_complete_wait(void)
{
    int *memory, *mine = elements(world_rank, COUNT);
    MPI_Win window = window_of(COUNT, true, &memory);
    MPI_Group world, to, from;
    int right = next(), left = previous();
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &right, &to);
    MPI_Group_incl(world, 1, &left, &from);
    bool good = true;
    for (int round = 0; round < 3; round++) {
        memset(memory, 0, COUNT * sizeof *memory);
        MPI_Win_post(from, 0, window);
        MPI_Win_start(to, 0, window);
        MPI_Put(mine, COUNT, MPI_INT, right, 0, COUNT, MPI_INT, window);
        MPI_Win_complete(window);
        if (round == 1) {
            int flag = 0;
            while (!flag)
                MPI_Win_test(window, &flag);
        } else {
            MPI_Win_wait(window);
        }
        good &= holds_elements(memory, left, COUNT);
    }
    check(good, "post, start, complete, wait or test");
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Group_free(&world);
    window_free(&window, true, memory);
    free(mine);
}

/* Read, change and write under a lock of one's own loses nothing. */
static void locks(void)
{
    enum { ROUNDS = 20 };
    int *memory, value;
    MPI_Win window = window_of(1, true, &memory);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_flush(0, window);
        value++;
        MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
    MPI_Win_unlock(0, window);
    check(value == ROUNDS * world_size, "a counter under exclusive locks");
    window_free(&window, true, memory);
}

static void lock_all(void)
{
    int *memory, *mine = elements(world_rank, COUNT), *got = allocate(COUNT * sizeof *got);
    MPI_Win window = window_of(world_size * COUNT, true, &memory);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    for (int rank = 0; rank < world_size; rank++)
        MPI_Put(mine, COUNT, MPI_INT, rank, (MPI_Aint)world_rank * COUNT, COUNT, MPI_INT, window);
    MPI_Win_flush_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    bool good = true;
    for (int rank = 0; rank < world_size; rank++) {
        MPI_Get(got, COUNT, MPI_INT, next(), (MPI_Aint)rank * COUNT, COUNT, MPI_INT, window);
        MPI_Win_flush_local(next(), window);
        good &= holds_elements(got, rank, COUNT);
    }
    MPI_Win_sync(window);
    for (int rank = 0; rank < world_size; rank++)
        good &= holds_elements(memory + (long)rank * COUNT, rank, COUNT);
    check(good, "puts to all and gets under one lock");
    MPI_Win_unlock_all(window);
    window_free(&window, true, memory);
    free(mine);
    free(got);
}

static void fetching(void)
{
    int *memory;
    MPI_Win window = window_of(4, true, &memory);
    enum { ROUNDS = 25 };
    bool good = true;
    int last = -1, one = 1, seen;
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Fetch_and_op(&one, &seen, MPI_INT, 0, 0, MPI_SUM, window);
        MPI_Win_flush(0, window);
        good &= seen > last;
        last = seen;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Fetch_and_op(NULL, &seen, MPI_INT, 0, 0, MPI_NO_OP, window);
    MPI_Win_flush(0, window);
    check(good && seen == ROUNDS * world_size, "fetch and add");

    /* A chain: who finds the number of the rank before puts its own. */
    int compare = world_rank, swap = world_rank + 1;
    do {
        MPI_Compare_and_swap(&swap, &compare, &seen, MPI_INT, 0, 1, window);
        MPI_Win_flush(0, window);
    } while (seen != compare);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Fetch_and_op(NULL, &seen, MPI_INT, 0, 1, MPI_NO_OP, window);
    MPI_Win_flush(0, window);
    check(seen == world_size, "compare and swap in a chain of all ranks");

    int add[2] = {3, 5}, before[2];
    MPI_Get_accumulate(add, 2, MPI_INT, before, 2, MPI_INT, next(), 2, 2, MPI_INT, MPI_SUM, window);
    MPI_Win_flush(next(), window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window);
    check(before[0] == 0 && before[1] == 0 && memory[2] == 3 && memory[3] == 5, "get accumulate");
    MPI_Win_unlock_all(window);
    window_free(&window, true, memory);
}

static void with_requests(void)
{
    int *memory, *mine = elements(world_rank, COUNT), *got = allocate(COUNT * sizeof *got);
    MPI_Win window = window_of(2 * COUNT, true, &memory);
    MPI_Request requests[2];
    MPI_Win_lock_all(0, window);
    MPI_Rput(mine, COUNT, MPI_INT, next(), 0, COUNT, MPI_INT, window, &requests[0]);
    MPI_Raccumulate(mine, COUNT, MPI_INT, next(), COUNT, COUNT, MPI_INT, MPI_REPLACE, window, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_flush(next(), window);
    MPI_Rget(got, COUNT, MPI_INT, next(), 0, COUNT, MPI_INT, window, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    bool good = holds_elements(got, world_rank, COUNT);
    memset(got, 0, COUNT * sizeof *got);
    MPI_Rget_accumulate(mine, COUNT, MPI_INT, got, COUNT, MPI_INT, next(), COUNT, COUNT, MPI_INT, MPI_NO_OP, window,
                        &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    good &= holds_elements(got, world_rank, COUNT);
    MPI_Win_unlock_all(window);
    check(good, "rput, raccumulate, rget, rget_accumulate");
    window_free(&window, true, memory);
    free(mine);
    free(got);
}

/* Columns of a matrix go to rows of the neighbour's. */
static void derived_types(int side)
{
    int *memory, *matrix = elements(world_rank, (long)side * side);
    MPI_Win window = window_of(side * side, false, &memory);
    MPI_Datatype column;
    MPI_Type_vector(side, 1, side, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Win_fence(0, window);
    for (int i = 0; i < side; i++)
        MPI_Put(matrix + i, 1, column, next(), (MPI_Aint)i * side, side, MPI_INT, window);
    MPI_Win_fence(0, window);
    bool good = true;
    for (int row = 0; row < side; row++)
        for (int i = 0; i < side; i++)
            good &= memory[row * side + i] == element(previous(), (long)i * side + row);
    check(good, "put of %d columns into rows", side);
    memset(matrix, 0, (size_t)side * (size_t)side * sizeof *matrix);
    for (int i = 0; i < side; i++)
        MPI_Get(matrix + i, 1, column, next(), (MPI_Aint)i * side, side, MPI_INT, window);
    MPI_Win_fence(0, window);
    check(holds_elements(matrix, world_rank, (long)side * side), "get of %d rows into columns", side);
    MPI_Type_free(&column);
    window_free(&window, false, memory);
    free(matrix);
}

static void dynamic(void)
{
    MPI_Win window;
    MPI_Aint here, there;
    int *memory = allocate(COUNT * sizeof *memory), *mine = elements(world_rank, COUNT);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, memory, COUNT * sizeof *memory);
    MPI_Get_address(memory, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, previous(), 0, &there, 1, MPI_AINT, next(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_fence(0, window);
    MPI_Put(mine, COUNT, MPI_INT, next(), there, COUNT, MPI_INT, window);
    MPI_Win_fence(0, window);
    check(holds_elements(memory, previous(), COUNT), "put into attached memory");
    MPI_Win_detach(window, memory);
    MPI_Win_free(&window);
    free(memory);
    free(mine);
}

/* Memory that several ranks of a host share is theirs to load and store. */
static void shared(void)
{
    MPI_Comm host;
    MPI_Win window;
    int rank, size, unit, *memory, *neighbour;
    MPI_Aint bytes;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &rank);
    MPI_Comm_size(host, &size);
    MPI_Win_allocate_shared(COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, host, &memory, &window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < COUNT; i++)
        memory[i] = element(rank, i);
    MPI_Win_fence(0, window);
    MPI_Win_shared_query(window, (rank + 1) % size, &bytes, &unit, &neighbour);
    check(bytes == COUNT * sizeof(int) && holds_elements(neighbour, (rank + 1) % size, COUNT),
          "memory shared in a host");
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Comm_free(&host);
}

int main(int argc, char **argv)
{
    checks_begin(&argc, &argv);
    for (int by_mpi = 0; by_mpi < 2; by_mpi++) {
        fences(by_mpi, 1);
        fences(by_mpi, COUNT);
        fences(by_mpi, 100003);
    }
    post_start_complete_wait();
    locks();
    lock_all();
    fetching();
    with_requests();
    derived_types(7);
    derived_types(60);
    dynamic();
    shared();
    return checks_end();
}
