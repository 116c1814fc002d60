/* The endpoint: this rank's side of communication. The endpoints of a process are numbered; a message goes from one to
 * another, and matches receives there alone. */
#include "weft_fi.h"

#include <stdlib.h>
#include <string.h>

/* ---- Binding and enabling ------------------------------------------------------------------------------ */

static int bind_av(struct weft_endpoint *endpoint, struct fid *fid, uint64_t flags)
{
    struct weft_av *av = CONTAINER_OF(fid, struct weft_av, fid.fid);
    if (flags)
        return -FI_EBADFLAGS;
    if (endpoint->av || av->domain != endpoint->domain)
        return -FI_EINVAL;
    endpoint->av = av;
    av->references++;
    return 0;
}

static int bind_cq(struct weft_endpoint *endpoint, struct fid *fid, uint64_t flags)
{
    struct weft_cq *cq = CONTAINER_OF(fid, struct weft_cq, fid.fid);
    if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) || !(flags & (FI_TRANSMIT | FI_RECV)))
        return -FI_EBADFLAGS;
    if ((flags & FI_TRANSMIT && endpoint->transmit_queue) || (flags & FI_RECV && endpoint->receive_queue) ||
        cq->domain != endpoint->domain)
        return -FI_EINVAL;
    bool selective = flags & FI_SELECTIVE_COMPLETION;
    if (flags & FI_TRANSMIT) {
        endpoint->transmit_queue = cq;
        endpoint->transmit_selective = selective;
        cq->references++;
    }
    if (flags & FI_RECV) {
        endpoint->receive_queue = cq;
        endpoint->receive_selective = selective;
        cq->references++;
    }
    return 0;
}

static int bind_counter(struct weft_endpoint *endpoint, struct fid *fid, uint64_t flags)
{
    static const uint64_t events[WEFT_COUNTED] = {
        [WEFT_COUNT_SEND] = FI_SEND,
        [WEFT_COUNT_RECEIVE] = FI_RECV,
        [WEFT_COUNT_READ] = FI_READ,
        [WEFT_COUNT_WRITE] = FI_WRITE,
    };
    struct weft_counter *counter = CONTAINER_OF(fid, struct weft_counter, fid.fid);
    /* Accesses of peers to this rank's memory are not counted: FI_RMA_EVENT is not offered. */
    if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE))
        return -FI_ENOSYS;
    if (flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE) || !flags)
        return -FI_EBADFLAGS;
    for (int i = 0; i < WEFT_COUNTED; i++)
        if (flags & events[i] && (endpoint->counters[i] || counter->domain != endpoint->domain))
            return -FI_EINVAL;
    for (int i = 0; i < WEFT_COUNTED; i++)
        if (flags & events[i]) {
            endpoint->counters[i] = counter;
            counter->references++;
        }
    return 0;
}

static int endpoint_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    struct weft_endpoint *endpoint = CONTAINER_OF(fid, struct weft_endpoint, fid.fid);
    if (endpoint->enabled)
        return -FI_EOPBADSTATE;
    switch (other->fclass) {
    case FI_CLASS_AV:
        return bind_av(endpoint, other, flags);
    case FI_CLASS_CQ:
        return bind_cq(endpoint, other, flags);
    case FI_CLASS_CNTR:
        return bind_counter(endpoint, other, flags);
    case FI_CLASS_EQ:
        return 0; /* endpoints without connections have no events */
    default:
        return -FI_ENOSYS;
    }
}

static int enable(struct weft_endpoint *endpoint)
{
    if (!endpoint->av)
        return -FI_ENOAV;
    if (!endpoint->transmit_queue && !endpoint->counters[WEFT_COUNT_SEND])
        return -FI_ENOCQ;
    if (!endpoint->receive_queue && !endpoint->counters[WEFT_COUNT_RECEIVE])
        return -FI_ENOCQ;
    weft_process_lock(endpoint->process);
    endpoint->process->enabled += !endpoint->enabled;
    endpoint->enabled = true;
    weft_process_unlock(endpoint->process);
    return 0;
}

/* The default flags are kept by direction, so a program asks for those of one. */
static bool names_one_direction(uint64_t flags)
{
    return !(flags & FI_TRANSMIT) != !(flags & FI_RECV);
}

static int endpoint_control(struct fid *fid, int command, void *argument)
{
    struct weft_endpoint *endpoint = CONTAINER_OF(fid, struct weft_endpoint, fid.fid);
    uint64_t *flags = argument;
    switch (command) {
    case FI_ENABLE:
        return endpoint->enabled ? 0 : enable(endpoint);
    case FI_GETOPSFLAG:
        if (!names_one_direction(*flags))
            return -FI_EINVAL;
        *flags = *flags & FI_TRANSMIT ? endpoint->transmit_flags : endpoint->receive_flags;
        return 0;
    case FI_SETOPSFLAG:
        if (!names_one_direction(*flags))
            return -FI_EINVAL;
        if (*flags & FI_TRANSMIT)
            endpoint->transmit_flags = *flags & ~FI_TRANSMIT;
        else
            endpoint->receive_flags = *flags & ~FI_RECV;
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

static int endpoint_close(struct fid *fid)
{
    struct weft_endpoint *endpoint = CONTAINER_OF(fid, struct weft_endpoint, fid.fid);
    struct weft_process *process = endpoint->process;
    weft_process_lock(process);
    weft_endpoint_forget(endpoint);
    if (endpoint->receive_queue)
        weft_cq_forget(endpoint->receive_queue, endpoint);
    process->enabled -= endpoint->enabled;
    process->endpoints[endpoint->number] = NULL;
    weft_process_unlock(process);
    if (endpoint->av)
        endpoint->av->references--;
    if (endpoint->transmit_queue)
        endpoint->transmit_queue->references--;
    if (endpoint->receive_queue)
        endpoint->receive_queue->references--;
    for (int i = 0; i < WEFT_COUNTED; i++)
        if (endpoint->counters[i])
            endpoint->counters[i]->references--;
    endpoint->domain->references--;
    free(endpoint);
    return 0;
}

static struct fi_ops fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = endpoint_close,
    .bind = endpoint_bind,
    .control = endpoint_control,
    .ops_open = weft_no_ops_open,
};

/* ---- Options, cancel, names ---------------------------------------------------------------------------- */

static int cancel(struct weft_endpoint *endpoint, const void *context)
{
    for (struct weft_operation *operation = endpoint->active; operation; operation = operation->next)
        if (operation->counted == WEFT_COUNT_RECEIVE && operation->context == context && !operation->claimed)
            return endpoint->process->library.cancel(endpoint->process->rank, operation);
    return -FI_ENOENT;
}

static ssize_t endpoint_cancel(fid_t fid, void *context)
{
    struct weft_endpoint *endpoint = CONTAINER_OF(fid, struct weft_endpoint, fid.fid);
    weft_process_lock(endpoint->process);
    int result = cancel(endpoint, context);
    weft_process_unlock(endpoint->process);
    return result;
}

static int endpoint_getopt(fid_t fid, int level, int name, void *value, size_t *length)
{
    struct weft_endpoint *endpoint = CONTAINER_OF(fid, struct weft_endpoint, fid.fid);
    if (level != FI_OPT_ENDPOINT)
        return -FI_ENOPROTOOPT;
    size_t answer;
    switch (name) {
    case FI_OPT_MIN_MULTI_RECV:
        answer = endpoint->min_multi_receive;
        break;
    case FI_OPT_INJECT_MSG_SIZE:
    case FI_OPT_INJECT_TAGGED_SIZE:
    case FI_OPT_INJECT_RMA_SIZE:
        answer = endpoint->inject_size;
        break;
    default:
        return -FI_ENOPROTOOPT;
    }
    if (*length < sizeof answer)
        return -FI_ETOOSMALL;
    memcpy(value, &answer, sizeof answer);
    *length = sizeof answer;
    return 0;
}

static int endpoint_setopt(fid_t fid, int level, int name, const void *value, size_t length)
{
    struct weft_endpoint *endpoint = CONTAINER_OF(fid, struct weft_endpoint, fid.fid);
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
        return -FI_ENOPROTOOPT;
    if (length != sizeof endpoint->min_multi_receive)
        return -FI_EINVAL;
    memcpy(&endpoint->min_multi_receive, value, length);
    return 0;
}

static int no_tx_ctx(struct fid_ep *fid, int index, struct fi_tx_attr *attr, struct fid_ep **transmit, void *context)
{
    (void)fid, (void)index, (void)attr, (void)transmit, (void)context;
    return -FI_ENOSYS;
}

static int no_rx_ctx(struct fid_ep *fid, int index, struct fi_rx_attr *attr, struct fid_ep **receive, void *context)
{
    (void)fid, (void)index, (void)attr, (void)receive, (void)context;
    return -FI_ENOSYS;
}

static ssize_t no_size_left(struct fid_ep *fid)
{
    (void)fid;
    return -FI_ENOSYS;
}

static struct fi_ops_ep endpoint_ops = {
    .size = sizeof(struct fi_ops_ep),
    .cancel = endpoint_cancel,
    .getopt = endpoint_getopt,
    .setopt = endpoint_setopt,
    .tx_ctx = no_tx_ctx,
    .rx_ctx = no_rx_ctx,
    .rx_size_left = no_size_left,
    .tx_size_left = no_size_left,
};

static int endpoint_getname(fid_t fid, void *address, size_t *length)
{
    struct weft_endpoint *endpoint = CONTAINER_OF(fid, struct weft_endpoint, fid.fid);
    struct weft_peer own = {.rank = endpoint->process->number, .endpoint = endpoint->number};
    struct weft_name name = weft_name_of(endpoint->process, own);
    size_t room = *length;
    *length = sizeof name;
    memcpy(address, &name, room < sizeof name ? room : sizeof name);
    return room < sizeof name ? -FI_ETOOSMALL : 0;
}

static int no_setname(fid_t fid, void *address, size_t length)
{
    (void)fid, (void)address, (void)length;
    return -FI_ENOSYS;
}

static int no_getpeer(struct fid_ep *fid, void *address, size_t *length)
{
    (void)fid, (void)address, (void)length;
    return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *fid, const void *address, const void *parameter, size_t length)
{
    (void)fid, (void)address, (void)parameter, (void)length;
    return -FI_ENOSYS;
}

static int no_listen(struct fid_pep *fid)
{
    (void)fid;
    return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *fid, const void *parameter, size_t length)
{
    (void)fid, (void)parameter, (void)length;
    return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *fid, fid_t handle, const void *parameter, size_t length)
{
    (void)fid, (void)handle, (void)parameter, (void)length;
    return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *fid, uint64_t flags)
{
    (void)fid, (void)flags;
    return -FI_ENOSYS;
}

static int no_join(struct fid_ep *fid, const void *address, uint64_t flags, struct fid_mc **group, void *context)
{
    (void)fid, (void)address, (void)flags, (void)group, (void)context;
    return -FI_ENOSYS;
}

static struct fi_ops_cm name_ops = {
    .size = sizeof(struct fi_ops_cm),
    .setname = no_setname,
    .getname = endpoint_getname,
    .getpeer = no_getpeer,
    .connect = no_connect,
    .listen = no_listen,
    .accept = no_accept,
    .reject = no_reject,
    .shutdown = no_shutdown,
    .join = no_join,
};

/* ---- Opening ------------------------------------------------------------------------------------------- */

#define MIN_MULTI_RECEIVE 64 /* as weft.h has it */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Gives the endpoint the lowest number that is free: false: none is. */
static bool take_number(struct weft_process *process, struct weft_endpoint *endpoint)
{
    weft_process_lock(process);
    uint32_t number = 0;
    while (number < WEFT_ENDPOINTS && process->endpoints[number])
        number++;
    if (number < WEFT_ENDPOINTS)
        process->endpoints[number] = endpoint;
    weft_process_unlock(process);
    endpoint->number = number;
    return number < WEFT_ENDPOINTS;
}

int weft_endpoint_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **opened, void *context)
{
    struct weft_domain *domain = CONTAINER_OF(fid, struct weft_domain, fid);
    struct weft_process *process = domain->fabric->process;
    const struct weft_tunables *tunables = &domain->fabric->tunables;
    if (info->ep_attr && (info->ep_attr->type != FI_EP_RDM && info->ep_attr->type != FI_EP_UNSPEC))
        return -FI_EINVAL;
    if (info->ep_attr &&
        (info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT || info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT))
        return -FI_ENOSYS;
    struct weft_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return -FI_ENOMEM;
    if (!take_number(process, endpoint)) {
        free(endpoint);
        weft_log(FI_LOG_WARN, "this process has %d endpoints already, as many as a rank can have", WEFT_ENDPOINTS);
        return -FI_ENOSPC;
    }
    endpoint->domain = domain;
    endpoint->process = process;
    endpoint->caps = info->caps;
    endpoint->inject_size = least(tunables->inject_size, process->library.inject_limit(process->rank));
    endpoint->transmit_iov_limit = endpoint->receive_iov_limit = tunables->iov_limit;
    endpoint->transmit_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
    endpoint->receive_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
    endpoint->min_multi_receive = MIN_MULTI_RECEIVE;
    endpoint->fid.fid.fclass = FI_CLASS_EP;
    endpoint->fid.fid.context = context;
    endpoint->fid.fid.ops = &fid_ops;
    endpoint->fid.ops = &endpoint_ops;
    endpoint->fid.cm = &name_ops;
    endpoint->fid.msg = &weft_message_ops;
    endpoint->fid.rma = &weft_rma_ops;
    endpoint->fid.tagged = &weft_tagged_ops;
    endpoint->fid.atomic = &weft_atomic_ops;
    domain->references++;
    weft_log(FI_LOG_INFO, "rank %u opens its endpoint %u", process->number, endpoint->number);
    *opened = &endpoint->fid;
    return 0;
}
