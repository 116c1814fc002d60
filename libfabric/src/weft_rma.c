/* RDMA: writes to and reads from the registered memory of peers (fi_rma). One remote range per operation. */
#include "weft_fi.h"

#define WRITE_FLAGS                                                                                            \
    (FI_COMPLETION | FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |      \
     FI_DELIVERY_COMPLETE | WEFT_SILENT)
#define READ_FLAGS (FI_COMPLETION | FI_MORE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

/* The checks that both directions share; finds the peer. */
static int check(const struct weft_endpoint *endpoint, const struct fi_msg_rma *message, uint64_t wrong_flags,
                 size_t length, struct weft_peer *peer)
{
    if (!endpoint->enabled)
        return -FI_EOPBADSTATE;
    if (wrong_flags)
        return -FI_EBADFLAGS;
    if (message->iov_count > endpoint->transmit_iov_limit || message->rma_iov_count != 1 ||
        message->rma_iov[0].len != length)
        return -FI_EINVAL;
    *peer = weft_av_peer(endpoint->av, message->addr);
    return peer->rank == WEFT_NO_RANK ? -FI_EINVAL : 0;
}

static struct weft_operation *begin(struct weft_endpoint *endpoint, const struct fi_msg_rma *message, uint64_t flags,
                                    size_t length)
{
    struct weft_operation *operation = weft_operation_begin(endpoint);
    if (!operation)
        return NULL;
    operation->context = message->context;
    operation->length = length;
    operation->reported = weft_wants_report(endpoint->transmit_queue, endpoint->transmit_selective, flags);
    return operation;
}

static ssize_t post_write_locked(struct weft_endpoint *endpoint, const struct fi_msg_rma *message, uint64_t flags)
{
    struct weft_process *process = endpoint->process;
    size_t length = weft_iov_length(message->msg_iov, message->iov_count);
    struct weft_peer to;
    int result = check(endpoint, message, flags & ~WRITE_FLAGS, length, &to);
    if (result)
        return result;
    if (flags & FI_INJECT && length > endpoint->inject_size)
        return -FI_EMSGSIZE;
    struct weft_operation *operation = begin(endpoint, message, flags, length);
    if (!operation)
        return -FI_EAGAIN;
    operation->flags = FI_RMA | FI_WRITE;
    operation->counted = WEFT_COUNT_WRITE;
    const void *data = message->iov_count ? message->msg_iov[0].iov_base : NULL;
    /* An injected write completes too, unseen: the program learns from the counter when its target has it. */
    if (flags & FI_INJECT || message->iov_count > 1) {
        result = weft_operation_gather(operation, message->msg_iov, message->iov_count);
        data = operation->packed;
    }
    uint64_t how = WEFT_COMPLETION | (flags & FI_REMOTE_CQ_DATA ? WEFT_DATA : 0) |
                   (flags & FI_DELIVERY_COMPLETE ? WEFT_DELIVERY_COMPLETE : 0) | weft_endpoint_flags(endpoint, to);
    if (result == 0)
        result = process->library.write(process->rank, to.rank, data, length, message->rma_iov[0].addr,
                                        message->rma_iov[0].key, message->data, how, operation);
    if (result < 0)
        weft_operation_end(operation);
    return result;
}

static ssize_t post_read_locked(struct weft_endpoint *endpoint, const struct fi_msg_rma *message, uint64_t flags)
{
    struct weft_process *process = endpoint->process;
    size_t length = weft_iov_length(message->msg_iov, message->iov_count);
    struct weft_peer from;
    int result = check(endpoint, message, flags & ~READ_FLAGS, length, &from);
    if (result)
        return result;
    struct weft_operation *operation = begin(endpoint, message, flags, length);
    if (!operation)
        return -FI_EAGAIN;
    operation->flags = FI_RMA | FI_READ;
    operation->counted = WEFT_COUNT_READ;
    void *buffer = message->iov_count ? message->msg_iov[0].iov_base : NULL;
    if (message->iov_count > 1) {
        result = weft_operation_scatter_later(operation, message->msg_iov, message->iov_count);
        buffer = operation->packed;
    }
    if (result == 0)
        result = process->library.read(process->rank, from.rank, buffer, length, message->rma_iov[0].addr,
                                       message->rma_iov[0].key, WEFT_COMPLETION, operation);
    if (result < 0)
        weft_operation_end(operation);
    return result;
}

static ssize_t post_write(struct weft_endpoint *endpoint, const struct fi_msg_rma *message, uint64_t flags)
{
    weft_process_lock(endpoint->process);
    ssize_t result = post_write_locked(endpoint, message, flags);
    weft_process_unlock(endpoint->process);
    return result;
}

static ssize_t post_read(struct weft_endpoint *endpoint, const struct fi_msg_rma *message, uint64_t flags)
{
    weft_process_lock(endpoint->process);
    ssize_t result = post_read_locked(endpoint, message, flags);
    weft_process_unlock(endpoint->process);
    return result;
}

/* ---- The calls of fi_rma -------------------------------------------------------------------------------- */

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *pieces, void **descriptors, size_t count,
                         fi_addr_t from, uint64_t address, uint64_t key, void *context)
{
    (void)descriptors;
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    struct fi_rma_iov remote = {address, weft_iov_length(pieces, count), key};
    struct fi_msg_rma message = {.msg_iov = pieces,
                                 .iov_count = count,
                                 .addr = from,
                                 .rma_iov = &remote,
                                 .rma_iov_count = 1,
                                 .context = context};
    return post_read(endpoint, &message, endpoint->transmit_flags & READ_FLAGS);
}

static ssize_t rma_read(struct fid_ep *fid, void *buffer, size_t length, void *descriptor, fi_addr_t from,
                        uint64_t address, uint64_t key, void *context)
{
    (void)descriptor;
    struct iovec piece = {buffer, length};
    return rma_readv(fid, &piece, NULL, 1, from, address, key, context);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *message, uint64_t flags)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    return post_read(endpoint, message, flags);
}

static ssize_t write_pieces(struct fid_ep *fid, const struct iovec *pieces, size_t count, uint64_t data, fi_addr_t to,
                            uint64_t address, uint64_t key, void *context, uint64_t flags)
{
    struct fi_rma_iov remote = {address, weft_iov_length(pieces, count), key};
    struct fi_msg_rma message = {.msg_iov = pieces,
                                 .iov_count = count,
                                 .addr = to,
                                 .rma_iov = &remote,
                                 .rma_iov_count = 1,
                                 .context = context,
                                 .data = data};
    return post_write(weft_endpoint_of(fid), &message, flags);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *pieces, void **descriptors, size_t count,
                          fi_addr_t to, uint64_t address, uint64_t key, void *context)
{
    (void)descriptors;
    uint64_t flags = weft_endpoint_of(fid)->transmit_flags & WRITE_FLAGS;
    return write_pieces(fid, pieces, count, 0, to, address, key, context, flags);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buffer, size_t length, void *descriptor, fi_addr_t to,
                         uint64_t address, uint64_t key, void *context)
{
    (void)descriptor;
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    return rma_writev(fid, &piece, NULL, 1, to, address, key, context);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *message, uint64_t flags)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    return post_write(endpoint, message, flags);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buffer, size_t length, fi_addr_t to, uint64_t address,
                          uint64_t key)
{
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    return write_pieces(fid, &piece, 1, 0, to, address, key, NULL, weft_inject_flags(weft_endpoint_of(fid)));
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buffer, size_t length, void *descriptor, uint64_t data,
                             fi_addr_t to, uint64_t address, uint64_t key, void *context)
{
    (void)descriptor;
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    uint64_t flags = (weft_endpoint_of(fid)->transmit_flags & WRITE_FLAGS) | FI_REMOTE_CQ_DATA;
    return write_pieces(fid, &piece, 1, data, to, address, key, context, flags);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buffer, size_t length, uint64_t data, fi_addr_t to,
                              uint64_t address, uint64_t key)
{
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    uint64_t flags = weft_inject_flags(weft_endpoint_of(fid)) | FI_REMOTE_CQ_DATA;
    return write_pieces(fid, &piece, 1, data, to, address, key, NULL, flags);
}

struct fi_ops_rma weft_rma_ops = {
    .size = sizeof(struct fi_ops_rma),
    .read = rma_read,
    .readv = rma_readv,
    .readmsg = rma_readmsg,
    .write = rma_write,
    .writev = rma_writev,
    .writemsg = rma_writemsg,
    .inject = rma_inject,
    .writedata = rma_writedata,
    .injectdata = rma_injectdata,
};
