/* Entering and leaving a recorded call; what each costs is what the recorder costs. */
#include "recorder.h"

#include <string.h>

#include "clock.h"
#include "functions.h"

struct recorder recorder = {.mutex = PTHREAD_MUTEX_INITIALIZER};
__thread struct thread thread __attribute__((tls_model("initial-exec")));

static void add_computation(uint64_t from, uint64_t to)
{
    /* Renewing the clock's anchor may set it back by nanoseconds. */
    if (to > from + recorder.clock_cost_ns)
        thread.computed += to - from - recorder.clock_cost_ns;
}

/* Virtual time of the program is told whole, that which the library below has charged within calls included; so what a call
 * takes of it belongs to what follows. */
static void add_virtual_computation(void)
{
    uint64_t now = clock_virtual_ns();
    add_computation(thread.left, now);
    thread.left = now;
}

void begin_time(void)
{
    if (!clock_is_virtual()) {
        thread.left = clock_thread_cpu_ns();
        return;
    }
    /* A replay begins with what comes after MPI_Init: each rank begins when it came back from there. */
    thread.computed = clock_virtual_now_ns();
    thread.left = clock_virtual_ns();
}

bool enter(int function)
{
    if (!recorder.active || thread.inside)
        return false;
    thread.inside = true;
    thread.function = function;
    if (clock_is_virtual()) {
        add_virtual_computation();
        return true;
    }
    thread.entered = clock_thread_cpu_ns();
    add_computation(thread.left, thread.entered);
    return true;
}

void leave(void)
{
    if (!clock_is_virtual())
        thread.left = clock_thread_cpu_ns();
    thread.inside = false;
}

void leave_as_computation(void)
{
    /* In virtual time the rank's clock says what the program took itself, and a poll is the library's: a replay waits where it
     * polled. */
    if (!clock_is_virtual()) {
        thread.left = clock_thread_cpu_ns();
        add_computation(thread.entered, thread.left);
    }
    thread.inside = false;
}

void record_computation(void)
{
    if (thread.computed == 0)
        return;
    uint8_t *at = part_begin(NUMBER_MAX);
    if (at)
        part_commit(RECORD_COMPUTE, put_number(at, thread.computed));
    thread.computed = 0;
}

void record_unrecorded(bool on_communicator)
{
    static bool named[2 * FUNCTION_COUNT];
    static const char suffix[] = " on a communicator that is not within the world";
    size_t index = 2 * (size_t)thread.function + on_communicator;
    if (!named[index]) {
        const char *name = function_names[thread.function];
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
