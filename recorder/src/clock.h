/* The CPU clock of the calling thread, usually without a system call.
 *
 * clock_gettime(CLOCK_THREAD_CPUTIME_ID) is a system call: 0.1 to 0.6 us, too much to pay twice per MPI call. But as
 * long as a thread is not taken off its core, its CPU clock runs with the monotonic clock, which costs some 30 ns:
 *
 *     cpu(now) = cpu(anchor) + monotonic(now) - monotonic(anchor)
 *
 * Restartable sequences show whether the thread was taken off since the anchor (Linux rseq, registered by
 * glibc 2.35 and later): the kernel sets the thread's rseq_cs to NULL when it "detects that it is preempting or
 * delivering a signal outside of the range targeted by the rseq_cs" (include/uapi/linux/rseq.h). A sequence that is
 * never entered is published in it; as long as it is still there, the anchor holds. Anything else (a switch, a
 * signal, a library that uses rseq itself) costs one system call and a new anchor, never a wrong time.
 */
#ifndef WEFT_RECORDER_CLOCK_H
#define WEFT_RECORDER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the process runs under `weft run`: the client library is loaded then, and knows the program's own time. */
bool clock_is_virtual(void);

/* The program's own part of the rank's virtual time, in nanoseconds. */
uint64_t clock_virtual_ns(void);

/* The rank's virtual clock in nanoseconds since the job began. */
uint64_t clock_virtual_now_ns(void);

/* CPU time of the calling thread in nanoseconds. Without rseq, always a system call. */
uint64_t clock_thread_cpu_ns(void);

/* The difference of two readings in a row, in nanoseconds: it is subtracted from every measured interval. */
uint32_t clock_cost_ns(void);

#endif
