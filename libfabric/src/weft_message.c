/* Messages: posts of sends and receives, and the untagged calls (fi_msg). The tagged calls are in weft_tagged.c. */
#include "weft_fi.h"

#include <errno.h>

/* Whether an operation stands in the queue when it has succeeded. */
bool weft_wants_report(const struct weft_cq *queue, bool selective, uint64_t flags)
{
    return queue && !(flags & WEFT_SILENT) && (!selective || flags & FI_COMPLETION);
}

#define SEND_FLAGS                                                                                             \
    (FI_COMPLETION | FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |      \
     FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | WEFT_SILENT)
#define RECEIVE_FLAGS (FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD)

static ssize_t post_send(struct weft_endpoint *endpoint, uint64_t space, const struct fi_msg_tagged *message,
                         uint64_t flags)
{
    struct weft_process *process = endpoint->process;
    if (!endpoint->enabled)
        return -FI_EOPBADSTATE;
    if (flags & ~SEND_FLAGS)
        return -FI_EBADFLAGS;
    if (message->iov_count > endpoint->transmit_iov_limit)
        return -FI_EINVAL;
    struct weft_peer to = weft_av_peer(endpoint->av, message->addr);
    if (to.rank == WEFT_NO_RANK)
        return -FI_EINVAL;
    space |= weft_endpoint_flags(endpoint, to);
    size_t length = weft_iov_length(message->msg_iov, message->iov_count);
    if (flags & FI_INJECT && length > endpoint->inject_size)
        return -FI_EMSGSIZE;
    const void *data = message->iov_count ? message->msg_iov[0].iov_base : NULL;
    bool reported = weft_wants_report(endpoint->transmit_queue, endpoint->transmit_selective, flags);
    space |= flags & FI_REMOTE_CQ_DATA ? WEFT_DATA : 0;
    if (flags & FI_INJECT && !reported && !endpoint->counters[WEFT_COUNT_SEND] && message->iov_count <= 1)
        return process->library.send(process->rank, to.rank, message->tag, data, length, message->data,
                                     space | WEFT_INJECT, NULL);

    struct weft_operation *operation = weft_operation_begin(endpoint);
    if (!operation)
        return -FI_EAGAIN;
    operation->context = message->context;
    operation->flags = FI_SEND | (space & WEFT_TAGGED ? FI_TAGGED : FI_MSG);
    operation->counted = WEFT_COUNT_SEND;
    operation->reported = reported;
    operation->length = length;
    int result = 0;
    if (flags & FI_INJECT || message->iov_count > 1) {
        result = weft_operation_gather(operation, message->msg_iov, message->iov_count);
        data = operation->packed;
    }
    /* MPICH asks for delivery of every message, and must not wait for its match: an eager one may lie unexpected. */
    space |= flags & FI_DELIVERY_COMPLETE ? WEFT_DELIVERY_COMPLETE : 0;
    space |= flags & FI_MATCH_COMPLETE ? WEFT_MATCH_COMPLETE : 0;
    if (result == 0)
        result = process->library.send(process->rank, to.rank, message->tag, data, length, message->data,
                                       space | WEFT_COMPLETION, operation);
    if (result < 0)
        weft_operation_end(operation);
    return result;
}

ssize_t weft_post_send(struct weft_endpoint *endpoint, uint64_t space, const struct fi_msg_tagged *message,
                       uint64_t flags)
{
    weft_process_lock(endpoint->process);
    ssize_t result = post_send(endpoint, space, message, flags);
    weft_process_unlock(endpoint->process);
    return result;
}

/* ---- Receives ----------------------------------------------------------------------------------------- */

static struct weft_operation *find_claimed(struct weft_endpoint *endpoint, const void *context)
{
    struct weft_operation *operation = endpoint->active;
    while (operation && !(operation->claimed && operation->context == context))
        operation = operation->next;
    return operation;
}

/* Looks for a message without receiving it. A message that is found is reported in the queue as a receive would be. */
static ssize_t peek(struct weft_endpoint *endpoint, uint64_t space, const struct fi_msg_tagged *message,
                    uint32_t from, uint64_t flags)
{
    struct weft_process *process = endpoint->process;
    struct weft_operation *operation = weft_operation_begin(endpoint);
    if (!operation)
        return -FI_EAGAIN;
    operation->context = message->context;
    operation->counted = WEFT_COUNT_RECEIVE;
    if (flags & FI_CLAIM)
        space |= WEFT_CLAIM;
    if (flags & FI_DISCARD)
        space |= WEFT_DISCARD;
    weft_completion found = {0};
    int result = process->library.peek(process->rank, from, message->tag, message->ignore, space, operation, &found);
    struct weft_event event = {
        .entry = {.op_context = message->context, .flags = FI_RECV | FI_TAGGED, .tag = message->tag},
        .source = WEFT_NO_RANK,
        .endpoint = (uint16_t)endpoint->number,
        .error = FI_ENOMSG,
        .provider_error = ENOMSG,
    };
    if (result > 0) {
        event.entry.len = found.length;
        event.entry.tag = found.tag;
        event.entry.data = found.data;
        event.entry.flags |= found.flags & WEFT_DATA ? FI_REMOTE_CQ_DATA : 0;
        event.source = found.source;
        event.source_endpoint = weft_source_endpoint(&found);
        event.error = event.provider_error = 0;
    }
    if (result > 0 && flags & FI_CLAIM && !(flags & FI_DISCARD))
        operation->claimed = true;
    else
        weft_operation_end(operation);
    if (result < 0)
        return result;
    weft_cq_push(endpoint->receive_queue, &event);
    return 0;
}

static ssize_t post_receive(struct weft_endpoint *endpoint, uint64_t space, const struct fi_msg_tagged *message,
                            uint64_t flags)
{
    struct weft_process *process = endpoint->process;
    if (!endpoint->enabled)
        return -FI_EOPBADSTATE;
    if (flags & ~RECEIVE_FLAGS)
        return -FI_EBADFLAGS;
    struct weft_peer from = {.rank = WEFT_ANY_SOURCE};
    if (message->addr != FI_ADDR_UNSPEC && endpoint->caps & FI_DIRECTED_RECV) {
        from = weft_av_peer(endpoint->av, message->addr);
        if (from.rank == WEFT_NO_RANK)
            return -FI_EINVAL;
    }
    space |= weft_endpoint_flags(endpoint, from);
    if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) {
        if (!(space & WEFT_TAGGED) || !endpoint->receive_queue || !(flags & (FI_PEEK | FI_CLAIM)))
            return -FI_EBADFLAGS;
        if (flags & FI_PEEK)
            return peek(endpoint, space, message, from.rank, flags);
    }
    if (message->iov_count > endpoint->receive_iov_limit)
        return -FI_EINVAL;

    struct weft_operation *operation;
    if (flags & FI_CLAIM) {
        if (!(operation = find_claimed(endpoint, message->context)))
            return -FI_ENOMSG;
        space |= WEFT_CLAIM | (flags & FI_DISCARD ? WEFT_DISCARD : 0);
    } else if (!(operation = weft_operation_begin(endpoint))) {
        return -FI_EAGAIN;
    }
    operation->context = message->context;
    operation->flags = FI_RECV | (space & WEFT_TAGGED ? FI_TAGGED : FI_MSG);
    operation->counted = WEFT_COUNT_RECEIVE;
    operation->reported = weft_wants_report(endpoint->receive_queue, endpoint->receive_selective, flags);
    operation->length = weft_iov_length(message->msg_iov, message->iov_count);
    void *buffer = message->iov_count ? message->msg_iov[0].iov_base : NULL;
    int result = 0;
    if (flags & FI_MULTI_RECV) {
        operation->multi_receive = true;
        space |= WEFT_MULTI_RECEIVE;
        if (message->iov_count != 1)
            result = -FI_EINVAL;
        process->library.set_min_multi_receive(process->rank, endpoint->min_multi_receive);
    } else if (message->iov_count > 1) {
        result = weft_operation_scatter_later(operation, message->msg_iov, message->iov_count);
        buffer = operation->packed;
    }
    if (result == 0)
        result = process->library.receive(process->rank, from.rank, message->tag, message->ignore, buffer,
                                          operation->length, space | WEFT_COMPLETION, operation);
    if (result == 0)
        operation->claimed = false;
    else if (!operation->claimed)
        weft_operation_end(operation);
    return result;
}

ssize_t weft_post_receive(struct weft_endpoint *endpoint, uint64_t space, const struct fi_msg_tagged *message,
                          uint64_t flags)
{
    weft_process_lock(endpoint->process);
    ssize_t result = post_receive(endpoint, space, message, flags);
    weft_process_unlock(endpoint->process);
    return result;
}

/* ---- The calls of fi_msg ------------------------------------------------------------------------------- */

static ssize_t receive_pieces(struct fid_ep *fid, const struct iovec *pieces, void **descriptors, size_t count,
                              fi_addr_t from, void *context)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    (void)descriptors;
    struct fi_msg_tagged message = {.msg_iov = pieces, .iov_count = count, .addr = from, .context = context};
    return weft_post_receive(endpoint, 0, &message, endpoint->receive_flags);
}

static ssize_t receive(struct fid_ep *fid, void *buffer, size_t length, void *descriptor, fi_addr_t from,
                       void *context)
{
    (void)descriptor;
    struct iovec piece = {buffer, length};
    return receive_pieces(fid, &piece, NULL, 1, from, context);
}

static ssize_t receive_message(struct fid_ep *fid, const struct fi_msg *message, uint64_t flags)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    struct fi_msg_tagged tagged = {
        .msg_iov = message->msg_iov,
        .iov_count = message->iov_count,
        .addr = message->addr,
        .context = message->context,
    };
    return weft_post_receive(endpoint, 0, &tagged, flags);
}

static ssize_t send_pieces(struct fid_ep *fid, const struct iovec *pieces, void **descriptors, size_t count,
                           fi_addr_t to, void *context)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    (void)descriptors;
    struct fi_msg_tagged message = {.msg_iov = pieces, .iov_count = count, .addr = to, .context = context};
    return weft_post_send(endpoint, 0, &message, endpoint->transmit_flags);
}

static ssize_t send_buffer(struct fid_ep *fid, const void *buffer, size_t length, void *descriptor, fi_addr_t to,
                           void *context)
{
    (void)descriptor;
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    return send_pieces(fid, &piece, NULL, 1, to, context);
}

static ssize_t send_message(struct fid_ep *fid, const struct fi_msg *message, uint64_t flags)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    struct fi_msg_tagged tagged = {
        .msg_iov = message->msg_iov,
        .iov_count = message->iov_count,
        .addr = message->addr,
        .context = message->context,
        .data = message->data,
    };
    return weft_post_send(endpoint, 0, &tagged, flags);
}

static ssize_t inject(struct fid_ep *fid, const void *buffer, size_t length, fi_addr_t to)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    struct fi_msg_tagged message = {.msg_iov = &piece, .iov_count = 1, .addr = to};
    return weft_post_send(endpoint, 0, &message, weft_inject_flags(endpoint));
}

static ssize_t send_data(struct fid_ep *fid, const void *buffer, size_t length, void *descriptor, uint64_t data,
                         fi_addr_t to, void *context)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    (void)descriptor;
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    struct fi_msg_tagged message = {
        .msg_iov = &piece, .iov_count = 1, .addr = to, .context = context, .data = data};
    return weft_post_send(endpoint, 0, &message, endpoint->transmit_flags | FI_REMOTE_CQ_DATA);
}

static ssize_t inject_data(struct fid_ep *fid, const void *buffer, size_t length, uint64_t data, fi_addr_t to)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    struct fi_msg_tagged message = {.msg_iov = &piece, .iov_count = 1, .addr = to, .data = data};
    return weft_post_send(endpoint, 0, &message, weft_inject_flags(endpoint) | FI_REMOTE_CQ_DATA);
}

struct fi_ops_msg weft_message_ops = {
    .size = sizeof(struct fi_ops_msg),
    .recv = receive,
    .recvv = receive_pieces,
    .recvmsg = receive_message,
    .send = send_buffer,
    .sendv = send_pieces,
    .sendmsg = send_message,
    .inject = inject,
    .senddata = send_data,
    .injectdata = inject_data,
};
