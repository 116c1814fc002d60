/* Where libfabric's core comes in: fi_prov_ini, the functions of libweft_client.so, tunables, messages to the user. */
#include "weft_fi.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct weft_process process;

/* Shown as FI_LOG_LEVEL asks, as the messages of the core are. */
void weft_log(enum fi_log_level level, const char *format, ...)
{
    static const char *const names[] = {"warn", "trace", "info", "debug"};
    const char *wanted = getenv("FI_LOG_LEVEL");
    size_t most = 0;
    while (wanted && most < sizeof names / sizeof *names && strcasecmp(wanted, names[most]))
        most++;
    if (!wanted || most == sizeof names / sizeof *names || (size_t)level > most)
        return;
    va_list arguments;
    va_start(arguments, format);
    fputs("libfabric:weft: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

/* The preloaded libweft_client.so. It is not linked, so that the provider can lie in any libfabric's folder. */
static bool find_library(struct weft_library *library)
{
#define FUNCTION(field, symbol)                                                                                \
    if (!(library->field = (__typeof__(symbol) *)dlsym(RTLD_DEFAULT, #symbol))) {                              \
        weft_log(FI_LOG_WARN, "%s is not loaded here: start the program with `weft run`", #symbol);            \
        return false;                                                                                          \
    }
    WEFT_LIBRARY_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return true;
}

/* FNV-1a of the job's name. It distinguishes jobs, should a name of one reach the address vector of another. */
static uint64_t job_id(void)
{
    uint64_t hash = 0xcbf29ce484222325u;
    const char *name = getenv("WEFT_JOB");
    for (const char *at = name ? name : ""; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return hash;
}

/* -FI_ENODATA: not under weft. */
int weft_process_join(struct weft_process **joined)
{
    if (!process.rank) {
        if (!find_library(&process.library))
            return -FI_ENODATA;
        int result = process.library.open(&process.rank);
        if (result < 0) {
            process.rank = NULL;
            weft_log(FI_LOG_WARN, "this process is no rank of a job: weft_open says: %s", strerror(-result));
            return -FI_ENODATA;
        }
        process.number = process.library.number(process.rank);
        process.count = process.library.count(process.rank);
        process.job = job_id();
    }
    *joined = &process;
    return 0;
}

/* ---- Threads ------------------------------------------------------------------------------------------------- */

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* Threads come in the order in which they ask. A thread that polls in a loop would keep all others out otherwise: it
 * gives its core away only within the lock, where its rank waits for its turn. And the C library's sched_yield is a
 * rank's word that it waits. */
void weft_process_lock(struct weft_process *owner)
{
    uint32_t ticket = atomic_fetch_add(&owner->next_ticket, 1), serving;
    while ((serving = atomic_load(&owner->serving)) != ticket)
        futex(&owner->serving, FUTEX_WAIT, serving);
}

void weft_process_unlock(struct weft_process *owner)
{
    uint32_t next = atomic_fetch_add(&owner->serving, 1) + 1;
    if (atomic_load(&owner->next_ticket) != next)
        futex(&owner->serving, FUTEX_WAKE, INT_MAX);
}

/* ---- Tunables ------------------------------------------------------------------------------------------------ */

static const struct tunable {
    const char *name;
    size_t offset;
    size_t standard, least, most;
    const char *help;
} tunables[] = {
    {"FI_WEFT_INJECT_SIZE", offsetof(struct weft_tunables, inject_size), SIZE_MAX, 0, SIZE_MAX,
     "largest injected message in bytes; never more than the interface carries"},
    {"FI_WEFT_IOV_LIMIT", offsetof(struct weft_tunables, iov_limit), 8, 1, 1024,
     "most buffers of one message, gathered and scattered by the provider"},
    {"FI_WEFT_POLL_BATCH", offsetof(struct weft_tunables, poll_batch), 16, 1, 64,
     "most completions taken per poll of the interface"},
};

/* The environment is read here and not by fi_param_get, which would have to be imported. */
int weft_tunables_read(struct weft_tunables *values)
{
    for (size_t i = 0; i < sizeof tunables / sizeof *tunables; i++) {
        const struct tunable *tunable = &tunables[i];
        size_t *value = (size_t *)((char *)values + tunable->offset);
        const char *text = getenv(tunable->name);
        *value = tunable->standard;
        if (!text)
            continue;
        char *end;
        errno = 0;
        unsigned long long number = strtoull(text, &end, 10);
        if (errno || end == text || *end || *text == '-' || number < tunable->least || number > tunable->most) {
            fprintf(stderr, "weft: %s=%s: want a number from %zu to %zu (%s)\n", tunable->name, text, tunable->least,
                    tunable->most, tunable->help);
            return -FI_EINVAL;
        }
        *value = number;
    }
    return 0;
}

static void cleanup(void)
{
    /* The rank has left with the last fabric. A process that dies before that is noticed by its exit. */
}

struct fi_provider weft_provider = {
    .name = "weft",
    .version = WEFT_PROVIDER_VERSION,
    .fi_version = WEFT_API_VERSION,
    .getinfo = weft_getinfo,
    .fabric = weft_fabric_open,
    .cleanup = cleanup,
};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
    return &weft_provider;
}
