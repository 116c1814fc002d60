/* Counters of completed operations, or of their bytes. */
#include "weft_fi.h"

#include <stdlib.h>

/* Makes progress, and reads both values. */
static void progress(const struct weft_counter *counter, uint64_t *value, uint64_t *errors)
{
    struct weft_fabric *fabric = counter->domain->fabric;
    weft_process_lock(fabric->process);
    weft_process_progress(fabric->process, fabric->tunables.poll_batch);
    *value = counter->value;
    *errors = counter->errors;
    weft_process_unlock(fabric->process);
}

static uint64_t counter_read(struct fid_cntr *fid)
{
    uint64_t value, errors;
    progress(CONTAINER_OF(fid, struct weft_counter, fid), &value, &errors);
    return value;
}

static uint64_t counter_readerr(struct fid_cntr *fid)
{
    uint64_t value, errors;
    progress(CONTAINER_OF(fid, struct weft_counter, fid), &value, &errors);
    return errors;
}

/* Changes one of the two: by `value` from what it is, or from 0. */
static int change(struct weft_counter *counter, uint64_t *number, uint64_t value, bool from_zero)
{
    struct weft_process *process = counter->domain->fabric->process;
    weft_process_lock(process);
    *number = from_zero ? value : *number + value;
    weft_process_unlock(process);
    return 0;
}

static int counter_add(struct fid_cntr *fid, uint64_t value)
{
    struct weft_counter *counter = CONTAINER_OF(fid, struct weft_counter, fid);
    return change(counter, &counter->value, value, false);
}

static int counter_set(struct fid_cntr *fid, uint64_t value)
{
    struct weft_counter *counter = CONTAINER_OF(fid, struct weft_counter, fid);
    return change(counter, &counter->value, value, true);
}

static int counter_adderr(struct fid_cntr *fid, uint64_t value)
{
    struct weft_counter *counter = CONTAINER_OF(fid, struct weft_counter, fid);
    return change(counter, &counter->errors, value, false);
}

static int counter_seterr(struct fid_cntr *fid, uint64_t value)
{
    struct weft_counter *counter = CONTAINER_OF(fid, struct weft_counter, fid);
    return change(counter, &counter->errors, value, true);
}

static uint64_t clock_ps(struct weft_process *process)
{
    weft_process_lock(process);
    uint64_t now = process->library.clock_ps(process->rank);
    weft_process_unlock(process);
    return now;
}

static void yield(struct weft_process *process)
{
    weft_process_lock(process);
    process->library.yield(process->rank);
    weft_process_unlock(process);
}

/* `timeout` is in milliseconds of virtual time, as all that the program sees; below 0: none. */
static int counter_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
    struct weft_counter *counter = CONTAINER_OF(fid, struct weft_counter, fid);
    struct weft_process *process = counter->domain->fabric->process;
    uint64_t value, errors, errors_before = counter->errors;
    uint64_t end = timeout < 0 ? UINT64_MAX : clock_ps(process) + (uint64_t)timeout * 1000000000u;
    for (;;) {
        progress(counter, &value, &errors);
        if (value >= threshold)
            return 0;
        if (errors != errors_before)
            return -FI_EAVAIL;
        if (timeout >= 0 && clock_ps(process) >= end)
            return -FI_ETIMEDOUT;
        /* Only a wait without end may sleep until something comes. */
        if (timeout < 0)
            yield(process);
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
