/* Entering and leaving a recorded call. Their cost is the recorder's cost. */
#include "recorder.h"

#include <string.h>

#include "clock.h"
#include "functions.h"

struct recorder recorder = {.mutex = PTHREAD_MUTEX_INITIALIZER};
__thread struct thread_state this_thread __attribute__((tls_model("initial-exec")));

static void add_computation(uint64_t from, uint64_t to)
{
    /* Renewing the clock's anchor may set it back by nanoseconds. */
    if (to > from + recorder.clock_cost_ns)
        this_thread.computed += to - from - recorder.clock_cost_ns;
}

/* The program's own virtual time includes the time that the client library has charged within calls. So the part that a
 * call takes counts as computation after it. */
static void add_virtual_computation(void)
{
    uint64_t now = clock_virtual_ns();
    add_computation(this_thread.left, now);
    this_thread.left = now;
}

void recorder_begin_time(void)
{
    if (!clock_is_virtual()) {
        this_thread.left = clock_thread_cpu_ns();
        return;
    }
    /* A replay begins after MPI_Init: each rank's first computation lasts until it returned from there. */
    this_thread.computed = clock_virtual_now_ns();
    this_thread.left = clock_virtual_ns();
}

bool recorder_enter(int function)
{
    if (!recorder.active || this_thread.inside)
        return false;
    this_thread.inside = true;
    this_thread.function = function;
    if (clock_is_virtual()) {
        add_virtual_computation();
        return true;
    }
    this_thread.entered = clock_thread_cpu_ns();
    add_computation(this_thread.left, this_thread.entered);
    return true;
}

void recorder_leave(void)
{
    if (!clock_is_virtual())
        this_thread.left = clock_thread_cpu_ns();
    this_thread.inside = false;
}

void recorder_leave_as_computation(void)
{
    /* Under `weft run` a poll is not the program's own time: a replay waits where the program polled. */
    if (!clock_is_virtual()) {
        this_thread.left = clock_thread_cpu_ns();
        add_computation(this_thread.entered, this_thread.left);
    }
    this_thread.inside = false;
}

void record_computation(void)
{
    if (this_thread.computed == 0)
        return;
    uint8_t *at = part_begin(NUMBER_MAX);
    if (at)
        part_commit(RECORD_COMPUTE, put_number(at, this_thread.computed));
    this_thread.computed = 0;
}

void record_unrecorded(bool on_communicator)
{
    static bool named[2 * FUNCTION_COUNT];
    static const char suffix[] = " on a communicator that is not within the world";
    size_t index = 2 * (size_t)this_thread.function + on_communicator;
    if (!named[index]) {
        const char *name = function_names[this_thread.function];
        size_t name_length = strlen(name);
        size_t suffix_length = on_communicator ? sizeof suffix - 1 : 0;
        uint8_t *at = part_begin(2 * NUMBER_MAX + name_length + suffix_length);
        if (!at)
            return;
        at = put_number(at, index);
        at = put_number(at, name_length + suffix_length);
        memcpy(at, name, name_length);
        memcpy(at + name_length, suffix, suffix_length);
        part_commit(RECORD_NAME, at + name_length + suffix_length);
        named[index] = true;
    }
    record_computation();
    uint8_t *at = part_begin(NUMBER_MAX);
    if (at)
        part_commit(RECORD_UNRECORDED, put_number(at, index));
}
