/* Counters of completed operations, or of their bytes. */
#include "weft_fi.h"

#include <stdlib.h>

static void progress(const struct weft_counter *counter)
{
    struct weft_endpoint *endpoint = counter->domain->fabric->process->endpoint;
    if (endpoint && endpoint->enabled)
        weft_endpoint_progress(endpoint);
}

static uint64_t counter_read(struct fid_cntr *fid)
{
    struct weft_counter *counter = CONTAINER_OF(fid, struct weft_counter, fid);
    progress(counter);
    return counter->value;
}

static uint64_t counter_readerr(struct fid_cntr *fid)
{
    struct weft_counter *counter = CONTAINER_OF(fid, struct weft_counter, fid);
    progress(counter);
    return counter->errors;
}

static int counter_add(struct fid_cntr *fid, uint64_t value)
{
    CONTAINER_OF(fid, struct weft_counter, fid)->value += value;
    return 0;
}

static int counter_set(struct fid_cntr *fid, uint64_t value)
{
    CONTAINER_OF(fid, struct weft_counter, fid)->value = value;
    return 0;
}

static int counter_adderr(struct fid_cntr *fid, uint64_t value)
{
    CONTAINER_OF(fid, struct weft_counter, fid)->errors += value;
    return 0;
}

static int counter_seterr(struct fid_cntr *fid, uint64_t value)
{
    CONTAINER_OF(fid, struct weft_counter, fid)->errors = value;
    return 0;
}

/* `timeout` is in milliseconds of virtual time, as all that the program sees; below 0: none. */
static int counter_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
    struct weft_counter *counter = CONTAINER_OF(fid, struct weft_counter, fid);
    struct weft_process *process = counter->domain->fabric->process;
    uint64_t errors = counter->errors;
    uint64_t end = timeout < 0 ? UINT64_MAX
                               : process->library.clock_ps(process->rank) + (uint64_t)timeout * 1000000000u;
    for (;;) {
        progress(counter);
        if (counter->value >= threshold)
            return 0;
        if (counter->errors != errors)
            return -FI_EAVAIL;
        if (timeout >= 0 && process->library.clock_ps(process->rank) >= end)
            return -FI_ETIMEDOUT;
        /* Only a wait without end may sleep until something comes. */
        if (timeout < 0)
            process->library.yield(process->rank);
    }
}

static int counter_close(struct fid *fid)
{
    struct weft_counter *counter = CONTAINER_OF(fid, struct weft_counter, fid.fid);
    if (counter->references)
        return -FI_EBUSY;
    counter->domain->references--;
    free(counter);
    return 0;
}

static struct fi_ops fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = counter_close,
    .bind = weft_no_bind,
    .control = weft_no_control,
    .ops_open = weft_no_ops_open,
};

static struct fi_ops_cntr counter_ops = {
    .size = sizeof(struct fi_ops_cntr),
    .read = counter_read,
    .readerr = counter_readerr,
    .add = counter_add,
    .set = counter_set,
    .wait = counter_wait,
    .adderr = counter_adderr,
    .seterr = counter_seterr,
};

int weft_counter_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **opened, void *context)
{
    if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC && attr->wait_obj != FI_WAIT_YIELD)
        return -FI_ENOSYS;
    if (attr && attr->flags)
        return -FI_EBADFLAGS;
    struct weft_counter *counter = calloc(1, sizeof *counter);
    if (!counter)
        return -FI_ENOMEM;
    counter->domain = CONTAINER_OF(fid, struct weft_domain, fid);
    counter->counts_bytes = attr && (int)attr->events == FI_CNTR_EVENTS_BYTES;
    counter->domain->references++;
    counter->fid.fid.fclass = FI_CLASS_CNTR;
    counter->fid.fid.context = context;
    counter->fid.fid.ops = &fid_ops;
    counter->fid.ops = &counter_ops;
    *opened = &counter->fid;
    return 0;
}
