/* Completion queues: a growing ring per queue, filled by progress, read without ever blocking.
 *
 * A failed operation stands in the ring at its place: a read stops before it, and says -FI_EAVAIL when it is the first.
 */
#include "weft_fi.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64

static struct weft_event *event_at(struct weft_cq *cq, size_t index)
{
    return &cq->events[(cq->first + index) & (cq->capacity - 1)];
}

static bool grow(struct weft_cq *cq)
{
    size_t capacity = 2 * cq->capacity;
    struct weft_event *events = malloc(capacity * sizeof *events);
    if (!events)
        return false;
    for (size_t i = 0; i < cq->count; i++)
        events[i] = *event_at(cq, i);
    free(cq->events);
    cq->events = events;
    cq->capacity = capacity;
    cq->first = 0;
    return true;
}

void weft_cq_push(struct weft_cq *cq, const struct weft_event *event)
{
    if (cq->count == cq->capacity && !grow(cq))
        abort(); /* a lost completion is a program that waits for ever */
    *event_at(cq, cq->count++) = *event;
    cq->process->unread++;
}

/* The endpoint closes: who has sent it a message is not known any more. */
void weft_cq_forget(struct weft_cq *cq, const struct weft_endpoint *endpoint)
{
    for (size_t i = 0; i < cq->count; i++)
        if (event_at(cq, i)->endpoint == endpoint->number)
            event_at(cq, i)->endpoint = WEFT_NO_ENDPOINT;
}

static void pop(struct weft_cq *cq)
{
    cq->first = (cq->first + 1) & (cq->capacity - 1);
    cq->count--;
    cq->process->unread--;
}

static fi_addr_t source_of(const struct weft_cq *cq, const struct weft_event *event)
{
    struct weft_peer source = {.rank = event->source, .endpoint = event->source_endpoint};
    if (event->endpoint == WEFT_NO_ENDPOINT)
        return FI_ADDR_NOTAVAIL;
    return weft_av_address(cq->process->endpoints[event->endpoint]->av, source);
}

static ssize_t take(struct weft_cq *cq, void *buffer, size_t count, fi_addr_t *sources)
{
    /* The interface is polled only when the queue is empty: completions that it holds are read in no virtual time. */
    if (count == 0 || cq->count == 0)
        weft_process_progress(cq->process, cq->domain->fabric->tunables.poll_batch);
    if (cq->count == 0)
        return -FI_EAGAIN;
    if (event_at(cq, 0)->error)
        return -FI_EAVAIL;
    size_t taken = 0;
    for (; taken < count && cq->count > 0 && !event_at(cq, 0)->error; taken++) {
        const struct weft_event *event = event_at(cq, 0);
        memcpy((char *)buffer + taken * cq->entry_size, &event->entry, cq->entry_size);
        if (sources)
            sources[taken] = source_of(cq, event);
        pop(cq);
    }
    return (ssize_t)taken;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *sources)
{
    struct weft_cq *cq = CONTAINER_OF(fid, struct weft_cq, fid);
    weft_process_lock(cq->process);
    ssize_t result = take(cq, buffer, count, sources);
    weft_process_unlock(cq->process);
    return result;
}

static ssize_t cq_read(struct fid_cq *fid, void *buffer, size_t count)
{
    return cq_readfrom(fid, buffer, count, NULL);
}

static ssize_t take_error(struct weft_cq *cq, struct fi_cq_err_entry *entry)
{
    if (cq->count == 0 || !event_at(cq, 0)->error)
        return -FI_EAGAIN;
    const struct weft_event *event = event_at(cq, 0);
    entry->op_context = event->entry.op_context;
    entry->flags = event->entry.flags;
    entry->len = event->entry.len;
    entry->buf = event->entry.buf;
    entry->data = event->entry.data;
    entry->tag = event->entry.tag;
    entry->olen = event->overflow;
    entry->err = event->error;
    entry->prov_errno = event->provider_error;
    /* The entry ends here for programs built before version 1.20; src_addr means nothing in our errors. */
    entry->err_data_size = 0;
    pop(cq);
    return 1;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *entry, uint64_t flags)
{
    (void)flags;
    struct weft_cq *cq = CONTAINER_OF(fid, struct weft_cq, fid);
    weft_process_lock(cq->process);
    ssize_t result = take_error(cq, entry);
    weft_process_unlock(cq->process);
    return result;
}

static ssize_t no_sread(struct fid_cq *fid, void *buffer, size_t count, const void *condition, int timeout)
{
    (void)fid, (void)buffer, (void)count, (void)condition, (void)timeout;
    return -FI_ENOSYS;
}

static ssize_t no_sreadfrom(struct fid_cq *fid, void *buffer, size_t count, fi_addr_t *sources, const void *condition,
                            int timeout)
{
    (void)fid, (void)buffer, (void)count, (void)sources, (void)condition, (void)timeout;
    return -FI_ENOSYS;
}

static int no_signal(struct fid_cq *fid)
{
    (void)fid;
    return -FI_ENOSYS;
}

static const char *cq_strerror(struct fid_cq *fid, int provider_error, const void *data, char *buffer, size_t length)
{
    (void)fid, (void)data;
    const char *text = strerror(provider_error);
    if (buffer && length > 0) {
        strncpy(buffer, text, length - 1);
        buffer[length - 1] = 0;
    }
    return text;
}

static int cq_close(struct fid *fid)
{
    struct weft_cq *cq = CONTAINER_OF(fid, struct weft_cq, fid.fid);
    if (cq->references)
        return -FI_EBUSY;
    weft_process_lock(cq->process);
    cq->process->unread -= cq->count;
    weft_process_unlock(cq->process);
    cq->domain->references--;
    free(cq->events);
    free(cq);
    return 0;
}

static int cq_control(struct fid *fid, int command, void *argument)
{
    (void)fid;
    if (command != FI_GETWAITOBJ)
        return -FI_ENOSYS;
    *(enum fi_wait_obj *)argument = FI_WAIT_NONE;
    return 0;
}

static struct fi_ops fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = cq_close,
    .bind = weft_no_bind,
    .control = cq_control,
    .ops_open = weft_no_ops_open,
};

static struct fi_ops_cq cq_ops = {
    .size = sizeof(struct fi_ops_cq),
    .read = cq_read,
    .readfrom = cq_readfrom,
    .readerr = cq_readerr,
    .sread = no_sread,
    .sreadfrom = no_sreadfrom,
    .signal = no_signal,
    .strerror = cq_strerror,
};

static size_t entry_size(enum fi_cq_format format)
{
    switch (format) {
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_CONTEXT:
        return sizeof(struct fi_cq_entry);
    case FI_CQ_FORMAT_MSG:
        return sizeof(struct fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
        return sizeof(struct fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
        return sizeof(struct fi_cq_tagged_entry);
    }
    return 0;
}

int weft_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **opened, void *context)
{
    enum fi_cq_format format = attr ? attr->format : FI_CQ_FORMAT_UNSPEC;
    if (attr && (attr->wait_obj != FI_WAIT_NONE || attr->flags & ~FI_AFFINITY))
        return -FI_ENOSYS;
    if (entry_size(format) == 0)
        return -FI_EINVAL;
    struct weft_cq *cq = calloc(1, sizeof *cq);
    if (!cq)
        return -FI_ENOMEM;
    cq->capacity = FIRST_CAPACITY;
    cq->events = malloc(cq->capacity * sizeof *cq->events);
    if (!cq->events) {
        free(cq);
        return -FI_ENOMEM;
    }
    cq->domain = CONTAINER_OF(fid, struct weft_domain, fid);
    cq->process = cq->domain->fabric->process;
    cq->entry_size = entry_size(format);
    if (attr && format == FI_CQ_FORMAT_UNSPEC)
        attr->format = FI_CQ_FORMAT_CONTEXT;
    cq->domain->references++;
    cq->fid.fid.fclass = FI_CLASS_CQ;
    cq->fid.fid.context = context;
    cq->fid.fid.ops = &fid_ops;
    cq->fid.ops = &cq_ops;
    *opened = &cq->fid;
    return 0;
}
