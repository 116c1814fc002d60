#define _GNU_SOURCE
#include "clock.h"

#include <features.h>
#include <time.h>

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35) && (defined(__x86_64__) || defined(__aarch64__))
#define HAVE_RSEQ 1
#include <stddef.h>
#include <sys/rseq.h>
#endif

#pragma GCC visibility push(default)
#include "weft.h"
#pragma GCC visibility pop
#pragma weak weft_times

bool clock_is_virtual(void)
{
    return weft_times != NULL;
}

uint64_t clock_virtual_ns(void)
{
    uint64_t program_ps = 0;
    weft_times(NULL, &program_ps);
    return program_ps / 1000;
}

uint64_t clock_virtual_now_ns(void)
{
    uint64_t clock_ps = 0;
    weft_times(&clock_ps, NULL);
    return clock_ps / 1000;
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef HAVE_RSEQ

/* The sequence that is published but never entered: one instruction after a return. The kernel demands that the
 * address to go to on an abort follows the signature that glibc registered. */
#define STRINGIFY(x) #x
#define STRING(x) STRINGIFY(x)
__asm__(".pushsection .text\n"
        ".balign 16\n"
        "weft_never_entered:\n"
        "    nop\n"
        "weft_never_entered_end:\n"
        "    .long " STRING(RSEQ_SIG) "\n"
        "weft_never_aborted:\n"
        "    nop\n"
        ".popsection\n");
extern const char weft_never_entered[] __attribute__((visibility("hidden")));
extern const char weft_never_entered_end[] __attribute__((visibility("hidden")));
extern const char weft_never_aborted[] __attribute__((visibility("hidden")));

static struct rseq_cs published;

__attribute__((constructor)) static void fill_published(void)
{
    published.version = 0;
    published.flags = 0;
    published.start_ip = (uintptr_t)weft_never_entered;
    published.post_commit_offset = (uint64_t)(weft_never_entered_end - weft_never_entered);
    published.abort_ip = (uintptr_t)weft_never_aborted;
}

/* Interrupts, and a virtual machine's stolen time, count for the monotonic clock only: old anchors are renewed. */
#define ANCHOR_AGE_NS 1000000u

static __thread struct {
    uint64_t cpu;
    uint64_t monotonic;
} anchor __attribute__((tls_model("initial-exec")));

static volatile uint64_t *sequence_slot(void)
{
    struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    return (volatile uint64_t *)&area->rseq_cs;
}

uint64_t clock_thread_cpu_ns(void)
{
    if (__rseq_size == 0)
        return read_clock(CLOCK_THREAD_CPUTIME_ID);
    volatile uint64_t *slot = sequence_slot();
    uint64_t now = read_clock(CLOCK_MONOTONIC);
    if (*slot == (uintptr_t)&published && now - anchor.monotonic < ANCHOR_AGE_NS)
        return anchor.cpu + (now - anchor.monotonic);
    *slot = (uintptr_t)&published;
    /* A switch between the two readings withdraws the sequence: the next call sees it and sets a new anchor. */
    anchor.monotonic = read_clock(CLOCK_MONOTONIC);
    anchor.cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
    return anchor.cpu;
}

#else

uint64_t clock_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

#endif

uint32_t clock_cost_ns(void)
{
    if (clock_is_virtual())
        return 0;
    uint64_t least = UINT32_MAX;
    for (int i = 0; i < 100; i++) {
        uint64_t first = clock_thread_cpu_ns();
        uint64_t second = clock_thread_cpu_ns();
        if (second - first < least)
            least = second - first;
    }
    return (uint32_t)least;
}
