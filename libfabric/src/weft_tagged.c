/* Tagged messages: the calls of fi_tagged, over the posts of weft_message.c. */
#include "weft_fi.h"

static ssize_t receive_pieces(struct fid_ep *fid, const struct iovec *pieces, void **descriptors, size_t count,
                              fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
    (void)descriptors;
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    struct fi_msg_tagged message = {
        .msg_iov = pieces, .iov_count = count, .addr = from, .tag = tag, .ignore = ignore, .context = context};
    return weft_post_receive(endpoint, WEFT_TAGGED, &message, endpoint->receive_flags & ~FI_MULTI_RECV);
}

static ssize_t receive(struct fid_ep *fid, void *buffer, size_t length, void *descriptor, fi_addr_t from, uint64_t tag,
                       uint64_t ignore, void *context)
{
    (void)descriptor;
    struct iovec piece = {buffer, length};
    return receive_pieces(fid, &piece, NULL, 1, from, tag, ignore, context);
}

static ssize_t receive_message(struct fid_ep *fid, const struct fi_msg_tagged *message, uint64_t flags)
{
    if (flags & FI_MULTI_RECV)
        return -FI_EBADFLAGS; /* FI_TAGGED_MULTI_RECV is not offered */
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    return weft_post_receive(endpoint, WEFT_TAGGED, message, flags);
}

static ssize_t send_pieces(struct fid_ep *fid, const struct iovec *pieces, void **descriptors, size_t count,
                           fi_addr_t to, uint64_t tag, void *context)
{
    (void)descriptors;
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    struct fi_msg_tagged message = {
        .msg_iov = pieces, .iov_count = count, .addr = to, .tag = tag, .context = context};
    return weft_post_send(endpoint, WEFT_TAGGED, &message, endpoint->transmit_flags);
}

static ssize_t send_buffer(struct fid_ep *fid, const void *buffer, size_t length, void *descriptor, fi_addr_t to,
                           uint64_t tag, void *context)
{
    (void)descriptor;
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    return send_pieces(fid, &piece, NULL, 1, to, tag, context);
}

static ssize_t send_message(struct fid_ep *fid, const struct fi_msg_tagged *message, uint64_t flags)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    return weft_post_send(endpoint, WEFT_TAGGED, message, flags);
}

static ssize_t inject_data(struct fid_ep *fid, const void *buffer, size_t length, uint64_t data, fi_addr_t to,
                           uint64_t tag)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    struct fi_msg_tagged message = {.msg_iov = &piece, .iov_count = 1, .addr = to, .tag = tag, .data = data};
    return weft_post_send(endpoint, WEFT_TAGGED, &message, weft_inject_flags(endpoint) | FI_REMOTE_CQ_DATA);
}

static ssize_t inject(struct fid_ep *fid, const void *buffer, size_t length, fi_addr_t to, uint64_t tag)
{
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    struct fi_msg_tagged message = {.msg_iov = &piece, .iov_count = 1, .addr = to, .tag = tag};
    return weft_post_send(endpoint, WEFT_TAGGED, &message, weft_inject_flags(endpoint));
}

static ssize_t send_data(struct fid_ep *fid, const void *buffer, size_t length, void *descriptor, uint64_t data,
                         fi_addr_t to, uint64_t tag, void *context)
{
    (void)descriptor;
    struct weft_endpoint *endpoint = weft_endpoint_of(fid);
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    struct fi_msg_tagged message = {
        .msg_iov = &piece, .iov_count = 1, .addr = to, .tag = tag, .context = context, .data = data};
    return weft_post_send(endpoint, WEFT_TAGGED, &message, endpoint->transmit_flags | FI_REMOTE_CQ_DATA);
}

struct fi_ops_tagged weft_tagged_ops = {
    .size = sizeof(struct fi_ops_tagged),
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
