/* Messages, tagged messages and RDMA between two ranks. */
#include "two_ranks.h"

static int entry_is(const struct fi_cq_tagged_entry *entry, const void *context, uint64_t flags, size_t length)
{
    return entry->op_context == context && entry->flags == flags && entry->len == length;
}

static void fill(char *buffer, size_t length, int seed)
{
    for (size_t i = 0; i < length; i++)
        buffer[i] = (char)(seed + (int)(i * 7));
}

static bool filled(const char *buffer, size_t length, int seed)
{
    for (size_t i = 0; i < length; i++)
        if (buffer[i] != (char)(seed + (int)(i * 7)))
            return false;
    return true;
}

/* ---- Messages --------------------------------------------------------------------------------------------- */

static void several_into_one_buffer(struct side *side)
{
    char room[1000], out[200];
    size_t least = 300;
    struct fi_cq_tagged_entry entry;
    struct iovec piece = {room, sizeof room};
    struct fi_msg message = {.msg_iov = &piece, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = room};
    EXPECT(side, fi_setopt(&side->endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least) == 0);
    EXPECT(side, fi_recvmsg(side->endpoint, &message, FI_MULTI_RECV | FI_COMPLETION) == 0);
    barrier(side);
    fill(out, sizeof out, 1);
    for (int i = 0; i < 4; i++) {
        /* No completion is asked for, so none may come. */
        struct iovec sent = {out, 200};
        struct fi_msg send = {.msg_iov = &sent, .iov_count = 1, .addr = side->peer, .context = out};
        POSTED(side, fi_sendmsg(side->endpoint, &send, 0));
    }
    bool released = false;
    for (int i = 0; i < 4; i++) {
        EXPECT(side, !released && complete(side, &entry, NULL, NULL) == 1);
        EXPECT(side, entry.op_context == room && entry.flags & FI_RECV && entry.flags & FI_MSG && entry.len == 200);
        EXPECT(side, (char *)entry.buf >= room && (char *)entry.buf + 200 <= room + sizeof room);
        EXPECT(side, filled(entry.buf, 200, 1));
        released = entry.flags & FI_MULTI_RECV;
    }
    if (!released) {
        EXPECT(side, complete(side, &entry, NULL, NULL) == 1);
        EXPECT(side, entry.flags == FI_MULTI_RECV && entry.op_context == room);
    }
}

void test_messages(struct side *side)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    char in[100] = {0}, out[64];
    fill(out, sizeof out, 3);
    /* Injected: the sender sees nothing, the receiver who it was. */
    EXPECT(side, fi_recv(side->endpoint, in, sizeof in, NULL, FI_ADDR_UNSPEC, in) == 0);
    POSTED(side, fi_inject(side->endpoint, out, sizeof out, side->peer));
    memset(out, 0, sizeof out);
    EXPECT(side, complete(side, &entry, &source, NULL) == 1);
    EXPECT(side, entry_is(&entry, in, FI_RECV | FI_MSG, sizeof out) && source == side->peer && filled(in, 64, 3));
    EXPECT(side, fi_inject(side->endpoint, in, sizeof in, side->peer) == -FI_EMSGSIZE);
    /* With data, and a completion for the sender. */
    EXPECT(side, fi_recv(side->endpoint, in, sizeof in, NULL, side->peer, in) == 0);
    POSTED(side, fi_senddata(side->endpoint, out, 10, NULL, UINT64_C(0xfedcba9876543210), side->peer, out));
    for (int i = 0; i < 2; i++) {
        EXPECT(side, complete(side, &entry, NULL, NULL) == 1);
        if (entry.op_context == out)
            EXPECT(side, entry.flags == (FI_SEND | FI_MSG));
        else
            EXPECT(side, entry_is(&entry, in, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA, 10) &&
                             entry.data == UINT64_C(0xfedcba9876543210));
    }
    /* Too long for the room. */
    EXPECT(side, fi_recv(side->endpoint, in, 4, NULL, side->peer, in) == 0);
    POSTED(side, fi_inject(side->endpoint, out, 20, side->peer));
    EXPECT(side, complete(side, &entry, NULL, &error) == -FI_ETRUNC && error.olen == 16 && error.op_context == in);
    several_into_one_buffer(side);
}

/* ---- Tagged messages --------------------------------------------------------------------------------------- */

static ssize_t peek(struct side *side, uint64_t tag, void *context, uint64_t flags)
{
    struct fi_msg_tagged message = {.addr = FI_ADDR_UNSPEC, .tag = tag, .context = context};
    return fi_trecvmsg(side->endpoint, &message, FI_PEEK | FI_COMPLETION | flags);
}

static void peeks(struct side *side)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    struct fi_context context[2];
    char in[64] = {0}, out[64];
    EXPECT(side, peek(side, 99, &context[0], 0) == 0);
    EXPECT(side, complete(side, &entry, NULL, &error) == -FI_ENOMSG && error.op_context == &context[0]);
    for (int i = 0; i < 3; i++) {
        fill(out, sizeof out, i);
        POSTED(side, fi_tinjectdata(side->endpoint, out, 30 + (size_t)i, 7, side->peer, 50));
    }
    barrier(side);
    EXPECT(side, peek(side, 50, &context[0], 0) == 0);
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1);
    EXPECT(side, entry_is(&entry, &context[0], FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA, 30) && entry.tag == 50);
    /* The first is claimed, the second thrown away, the third received before the first. */
    EXPECT(side, peek(side, 50, &context[0], FI_CLAIM) == 0 && complete(side, &entry, NULL, NULL) == 1);
    EXPECT(side, entry.len == 30);
    EXPECT(side, peek(side, 50, &context[1], FI_DISCARD) == 0 && complete(side, &entry, NULL, NULL) == 1);
    EXPECT(side, entry.len == 31);
    EXPECT(side, fi_trecv(side->endpoint, in, sizeof in, NULL, side->peer, 50, 0, in) == 0);
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1 && entry.len == 32 && filled(in, 32, 2));
    struct iovec piece = {in, sizeof in};
    struct fi_msg_tagged claimed = {.msg_iov = &piece, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &context[1]};
    EXPECT(side, fi_trecvmsg(side->endpoint, &claimed, FI_CLAIM | FI_COMPLETION) == -FI_ENOMSG);
    claimed.context = &context[0];
    EXPECT(side, fi_trecvmsg(side->endpoint, &claimed, FI_CLAIM | FI_COMPLETION) == 0);
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1 && entry.op_context == &context[0] && entry.len == 30);
    EXPECT(side, filled(in, 30, 0));
    /* Claimed, then not wanted. */
    POSTED(side, fi_tinject(side->endpoint, out, 5, side->peer, 51));
    barrier(side);
    EXPECT(side, peek(side, 51, &context[0], FI_CLAIM) == 0 && complete(side, &entry, NULL, NULL) == 1);
    EXPECT(side, fi_trecvmsg(side->endpoint, &claimed, FI_CLAIM | FI_DISCARD | FI_COMPLETION) == 0);
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1 && entry.op_context == &context[0]);
    EXPECT(side, peek(side, 51, &context[0], 0) == 0 && complete(side, &entry, NULL, NULL) == -FI_ENOMSG);
}

static void cancels(struct side *side)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    char in[2][8] = {{0}}, out[8] = "taken";
    EXPECT(side, fi_trecv(side->endpoint, in[0], 8, NULL, FI_ADDR_UNSPEC, 60, 0, in[0]) == 0);
    EXPECT(side, fi_trecv(side->endpoint, in[1], 8, NULL, FI_ADDR_UNSPEC, 60, 0, in[1]) == 0);
    EXPECT(side, fi_cancel(&side->endpoint->fid, in[0]) == 0);
    EXPECT(side, complete(side, &entry, NULL, &error) == -FI_ECANCELED && error.op_context == in[0]);
    EXPECT(side, fi_cancel(&side->endpoint->fid, in[0]) == -FI_ENOENT);
    barrier(side);
    POSTED(side, fi_tinject(side->endpoint, out, 8, side->peer, 60));
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1 && entry.op_context == in[1] && !strcmp(in[1], "taken"));
}

static void pieces(struct side *side, size_t each)
{
    struct fi_cq_tagged_entry entry;
    char *out = malloc(4 * each), *in = calloc(4, each);
    fill(out, 4 * each, 9);
    struct iovec from[4], to[2] = {{in, 3 * each}, {in + 3 * each, each}};
    for (int i = 0; i < 4; i++)
        from[i] = (struct iovec){out + (size_t)i * each, each};
    EXPECT(side, fi_trecvv(side->endpoint, to, NULL, 2, side->peer, 70, 0xf, in) == 0);
    POSTED(side, fi_tsendv(side->endpoint, from, NULL, 4, side->peer, 75, out));
    for (int i = 0; i < 2; i++) {
        EXPECT(side, complete(side, &entry, NULL, NULL) == 1);
        if (entry.op_context == in)
            EXPECT(side, entry.len == 4 * each && entry.tag == 75 && filled(in, 4 * each, 9));
    }
    struct iovec too_many[9] = {{0}};
    EXPECT(side, fi_tsendv(side->endpoint, too_many, NULL, 9, side->peer, 70, NULL) == -FI_EINVAL);
    free(out);
    free(in);
}

/* A delivered message may lie unexpected, a matched one may not. */
static void levels_of_completion(struct side *side)
{
    struct fi_cq_tagged_entry entry;
    char in[20], out[20] = "here";
    struct iovec piece = {out, sizeof out};
    struct fi_msg_tagged message = {.msg_iov = &piece, .iov_count = 1, .addr = side->peer, .tag = 85, .context = out};
    POSTED(side, fi_tsendmsg(side->endpoint, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE));
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1 && entry.op_context == out);
    message.tag = 86;
    POSTED(side, fi_tsendmsg(side->endpoint, &message, FI_COMPLETION | FI_MATCH_COMPLETE));
    barrier(side); /* finds no other completion */
    EXPECT(side, fi_trecv(side->endpoint, in, sizeof in, NULL, side->peer, 85, 0, in) == 0);
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1 && entry.op_context == in && entry.tag == 85);
    barrier(side);
    EXPECT(side, fi_trecv(side->endpoint, in, sizeof in, NULL, side->peer, 86, 0, in) == 0);
    for (int i = 0; i < 2; i++)
        EXPECT(side, complete(side, &entry, NULL, NULL) == 1);
}

void test_tagged(struct side *side)
{
    struct fi_cq_tagged_entry entries[8];
    enum { MANY = 3000 };
    peeks(side);
    cancels(side);
    pieces(side, 10);
    pieces(side, 50000);
    levels_of_completion(side);
    /* More completions than the queue was made for, read eight at a time, in order. */
    static char in[MANY];
    for (int i = 0; i < MANY; i++)
        EXPECT(side, fi_trecv(side->endpoint, &in[i], 1, NULL, side->peer, 80, 0, &in[i]) == 0);
    for (int i = 0; i < MANY; i++) {
        char out = (char)i;
        POSTED(side, fi_tinject(side->endpoint, &out, 1, side->peer, 80));
    }
    bool good = true;
    for (int had = 0; had < MANY;) {
        ssize_t count = fi_cq_read(side->cq, entries, 8);
        for (ssize_t i = 0; i < count; i++, had++)
            good &= entries[i].op_context == &in[had] && in[had] == (char)had;
        EXPECT(side, count > 0 || count == -FI_EAGAIN);
    }
    EXPECT(side, good);
}

/* ---- RDMA ----------------------------------------------------------------------------------------------------- */

struct region {
    uint64_t address, key;
};

void test_rma(struct side *side)
{
    enum { SIZE = 100000 };
    static char memory[SIZE];
    char *local = malloc(SIZE);
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    struct fid_mr *registered;
    EXPECT(side, fi_mr_reg(side->domain, memory, SIZE, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 4711, 0, &registered,
                           NULL) == 0);
    EXPECT(side, fi_mr_key(registered) == 4711);
    struct fid_mr *twice;
    EXPECT(side, fi_mr_reg(side->domain, memory, 1, FI_REMOTE_READ, 0, 4711, 0, &twice, NULL) == -FI_ENOKEY);
    struct region own = {(uintptr_t)memory, fi_mr_key(registered)}, peer;
    EXPECT(side, fi_trecv(side->endpoint, &peer, sizeof peer, NULL, side->peer, 90, 0, &peer) == 0);
    POSTED(side, fi_tinject(side->endpoint, &own, sizeof own, side->peer, 90));
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1);

    fill(local, SIZE, 5);
    fi_cntr_set(side->counter, 0);
    POSTED(side, fi_write(side->endpoint, local, SIZE, NULL, side->peer, peer.address, peer.key, local));
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1 && entry.op_context == local);
    EXPECT(side, entry.flags == (FI_RMA | FI_WRITE) && fi_cntr_read(side->counter) == 1);
    barrier(side);
    EXPECT(side, filled(memory, SIZE, 5));
    memset(local, 0, SIZE);
    struct iovec halves[2] = {{local, SIZE / 4}, {local + SIZE / 4, SIZE / 4}};
    POSTED(side, fi_readv(side->endpoint, halves, NULL, 2, side->peer, peer.address, peer.key, halves));
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1 && entry.flags == (FI_RMA | FI_READ));
    EXPECT(side, filled(local, SIZE / 2, 5) && fi_cntr_read(side->counter) == 2);
    barrier(side);

    /* Injected writes are counted and not reported. */
    for (int i = 0; i < 10; i++) {
        char value = (char)(100 + i);
        POSTED(side, fi_inject_write(side->endpoint, &value, 1, side->peer, peer.address + (uint64_t)i, peer.key));
    }
    EXPECT(side, fi_cntr_wait(side->counter, 12, -1) == 0);
    EXPECT(side, fi_cq_read(side->cq, &entry, 1) == -FI_EAGAIN);
    barrier(side);
    EXPECT(side, memory[0] == 100 && memory[9] == 109);

    /* A write with data is seen by its target. */
    struct iovec piece = {local, 50};
    struct fi_rma_iov remote = {peer.address + 1000, 50, peer.key};
    struct fi_msg_rma message = {.msg_iov = &piece,
                                 .iov_count = 1,
                                 .addr = side->peer,
                                 .rma_iov = &remote,
                                 .rma_iov_count = 1,
                                 .data = 321};
    POSTED(side, fi_writemsg(side->endpoint, &message, FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE));
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1);
    EXPECT(side, entry_is(&entry, NULL, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, 50) && entry.data == 321);
    EXPECT(side, fi_cntr_read(side->counter) == 13);
    barrier(side);

    /* Accesses by wrong keys or to wrong places change nothing and fail. */
    EXPECT(side, fi_write(side->endpoint, local, 8, NULL, side->peer, peer.address, peer.key + 1, local) == 0);
    EXPECT(side, complete(side, &entry, NULL, &error) == -FI_EACCES && error.op_context == local);
    EXPECT(side, fi_read(side->endpoint, local, 8, NULL, side->peer, peer.address + SIZE - 4, peer.key, local) == 0);
    EXPECT(side, complete(side, &entry, NULL, &error) == -FI_EACCES && fi_cntr_readerr(side->counter) == 2);
    fi_cntr_seterr(side->counter, 0);
    barrier(side);
    EXPECT(side, fi_close(&registered->fid) == 0);
    free(local);
}
