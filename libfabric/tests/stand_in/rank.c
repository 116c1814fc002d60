/* The rank: joining and leaving, sending, polling. */
#include "stand_in.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static struct weft_rank this_rank;
static bool joined;

static uint32_t number_from(const char *name, const char *other)
{
    const char *text = getenv(name);
    if (!text)
        text = getenv(other);
    return text ? (uint32_t)strtoul(text, NULL, 10) : UINT32_MAX;
}

int weft_open(weft_rank **rank)
{
    *rank = &this_rank;
    if (joined)
        return 0;
    const char *name = getenv("WEFT_JOB");
    this_rank.number = number_from("WEFT_RANK", "PMI_RANK");
    this_rank.count = number_from("WEFT_COUNT", "PMI_SIZE");
    if (!name || this_rank.number >= this_rank.count)
        return -ENOENT;
    if (this_rank.count > MOST_RANKS)
        return -E2BIG;
    int file = shm_open(name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct job)) != 0)
        return -errno;
    void *memory = mmap(NULL, sizeof(struct job), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return -errno;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    this_rank.job = memory;
    this_rank.job->members[this_rank.number].process = getpid();
    this_rank.min_multi_receive = 64;
    this_rank.next_key = 1u << 20;
    if (!this_rank.last_done)
        this_rank.last_done = &this_rank.done;
    joined = true;
    return 0;
}

void weft_close(weft_rank *rank)
{
    while (rank->pending) {
        flush_pending(rank);
        sched_yield();
    }
    munmap(rank->job, sizeof(struct job));
    joined = false;
}

uint32_t weft_number(const weft_rank *rank)
{
    return rank->number;
}

uint32_t weft_count(const weft_rank *rank)
{
    return rank->count;
}

uint64_t weft_clock_ps(const weft_rank *rank)
{
    (void)rank;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) * 1000u;
}

size_t weft_inject_limit(const weft_rank *rank)
{
    (void)rank;
    return INJECT_BYTES;
}

int weft_send(weft_rank *rank, uint32_t to, uint64_t tag, const void *buffer, size_t length, uint64_t data,
              uint64_t flags, void *context)
{
    if (to >= rank->count || !has_endpoints(flags) || (flags & WEFT_INJECT && length > INJECT_BYTES))
        return -EINVAL;
    bool eager = length <= EAGER_BYTES, waits = !eager || flags & WEFT_MATCH_COMPLETE;
    struct record record = {
        .kind = eager ? EAGER : LARGE,
        .source = rank->number,
        .completes = waits && flags & WEFT_COMPLETION,
        .flags = flags,
        .tag = tag,
        .data = data,
        .length = length,
        .address = (uintptr_t)buffer,
        .context = (uintptr_t)context,
    };
    if (!put(&rank->job->members[to].inbox, &record, buffer, eager ? length : 0))
        return -EAGAIN;
    if (!waits && !(flags & WEFT_INJECT) && flags & WEFT_COMPLETION)
        complete(rank, &(weft_completion){.context = context, .flags = WEFT_SENT});
    return 0;
}

void weft_set_min_multi_receive(weft_rank *rank, size_t bytes)
{
    rank->min_multi_receive = bytes;
}

void weft_set_unread(weft_rank *rank, uint32_t unread)
{
    (void)rank, (void)unread; /* it never takes a poll for a wait */
}

ssize_t weft_poll(weft_rank *rank, weft_completion *completions, size_t count)
{
    progress(rank);
    size_t taken = 0;
    for (; taken < count && rank->done; taken++) {
        struct done *done = rank->done;
        completions[taken] = done->completion;
        rank->done = done->next;
        if (!rank->done)
            rank->last_done = &rank->done;
        free(done);
    }
    return (ssize_t)taken;
}

void weft_yield(weft_rank *rank)
{
    (void)rank;
    sched_yield();
}
