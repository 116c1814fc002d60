/* Several endpoints of one process: in one domain, and in one of their own. */
#include "two_ranks.h"

#include <pthread.h>

#define TAG 40

/* An endpoint beside the one that all tests share, with the peer's of the same kind. */
struct another {
    struct fid_ep *endpoint;
    struct fid_cq *cq;
    fi_addr_t own, peer;
};

/* Opens one that shares the domain, the address vector and the counter, and completes in `cq`. */
static struct another open_another(struct side *side, struct fid_cq *cq)
{
    struct another another = {.cq = cq};
    struct weft_name names[2];
    size_t length = sizeof names[0];
    EXPECT(side, fi_endpoint(side->domain, side->info, &another.endpoint, NULL) == 0);
    EXPECT(side, fi_ep_bind(another.endpoint, &side->av->fid, 0) == 0);
    EXPECT(side, fi_ep_bind(another.endpoint, &cq->fid, FI_SEND | FI_RECV | FI_SELECTIVE_COMPLETION) == 0);
    EXPECT(side, fi_ep_bind(another.endpoint, &side->counter->fid, FI_READ | FI_WRITE) == 0);
    EXPECT(side, fi_enable(another.endpoint) == 0);
    EXPECT(side, fi_getname(&another.endpoint->fid, &names[0], &length) == 0);
    EXPECT(side, names[0].rank == side->rank && names[0].endpoint != 0);
    names[1] = names[0];
    names[1].rank = !side->rank;
    fi_addr_t addresses[2];
    EXPECT(side, fi_av_insert(side->av, names, 2, addresses, 0, NULL) == 2);
    another.own = addresses[0];
    another.peer = addresses[1];
    return another;
}

static void close_another(struct side *side, struct another *another)
{
    EXPECT(side, fi_close(&another->endpoint->fid) == 0);
    EXPECT(side, fi_av_remove(side->av, &another->own, 1, 0) == 0 && fi_av_remove(side->av, &another->peer, 1, 0) == 0);
}

static void as_many_as_a_rank_has(struct side *side)
{
    struct fid_ep *endpoints[WEFT_ENDPOINTS], *reopened;
    struct weft_name name;
    size_t length = sizeof name;
    EXPECT(side, side->info->domain_attr->ep_cnt == WEFT_ENDPOINTS);
    for (int i = 1; i < WEFT_ENDPOINTS; i++) {
        EXPECT(side, fi_endpoint(side->domain, side->info, &endpoints[i], NULL) == 0);
        EXPECT(side, fi_getname(&endpoints[i]->fid, &name, &length) == 0 && name.endpoint == i);
    }
    EXPECT(side, fi_endpoint(side->domain, side->info, &endpoints[0], NULL) == -FI_ENOSPC);
    EXPECT(side, fi_close(&endpoints[3]->fid) == 0);
    EXPECT(side, fi_endpoint(side->domain, side->info, &reopened, NULL) == 0);
    EXPECT(side, fi_getname(&reopened->fid, &name, &length) == 0 && name.endpoint == 3);
    endpoints[3] = reopened;
    for (int i = 1; i < WEFT_ENDPOINTS; i++)
        EXPECT(side, fi_close(&endpoints[i]->fid) == 0);
}

/* A message with the same tag from and to either endpoint: four of them, each to be told from the others. */
static void nothing_mixes(struct side *side, struct another *second)
{
    struct fid_ep *endpoints[2] = {side->endpoint, second->endpoint};
    struct fid_cq *queues[2] = {side->cq, second->cq};
    fi_addr_t peers[2] = {side->peer, second->peer}, source;
    struct fi_cq_tagged_entry entry;
    char in[2][2], out;
    /* They lie unexpected: the receives of the one endpoint find none of the other's. */
    for (int to = 0; to < 2; to++)
        for (int from = 0; from < 2; from++) {
            out = (char)('a' + 2 * to + from);
            POSTED(side, fi_tinject(endpoints[from], &out, 1, peers[to], TAG));
        }
    barrier(side);
    for (int at = 1; at >= 0; at--) {
        /* From the second first, though its message came later. */
        EXPECT(side, fi_trecv(endpoints[at], &in[at][1], 1, NULL, peers[1], TAG, 0, &in[at][1]) == 0);
        EXPECT(side, complete_in(queues[at], &entry, &source, NULL) == 1 && entry.op_context == &in[at][1]);
        EXPECT(side, in[at][1] == 'a' + 2 * at + 1 && source == peers[1]);
        EXPECT(side, fi_trecv(endpoints[at], &in[at][0], 1, NULL, FI_ADDR_UNSPEC, TAG, 0, &in[at][0]) == 0);
        EXPECT(side, complete_in(queues[at], &entry, &source, NULL) == 1 && entry.op_context == &in[at][0]);
        EXPECT(side, in[at][0] == 'a' + 2 * at && source == peers[0]);
        EXPECT(side, fi_cq_read(queues[!at], &entry, 1) == -FI_EAGAIN);
    }
    /* They are posted: a message to the one endpoint passes an older receive of the other, of any source. */
    for (int at = 0; at < 2; at++)
        EXPECT(side, fi_trecv(endpoints[at], in[at], 1, NULL, FI_ADDR_UNSPEC, TAG, 7, in[at]) == 0);
    while (fi_tinject(endpoints[0], "2", 1, peers[1], TAG) == -FI_EAGAIN)
        fi_cq_read(side->cq, NULL, 0);
    EXPECT(side, complete_in(queues[1], &entry, &source, NULL) == 1 && source == peers[0] && in[1][0] == '2');
    EXPECT(side, fi_cancel(&endpoints[1]->fid, in[0]) == -FI_ENOENT); /* the other's */
    EXPECT(side, fi_cancel(&endpoints[0]->fid, in[0]) == 0);
    EXPECT(side, complete_in(queues[0], &entry, NULL, NULL) == -FI_ECANCELED);
    /* Without a tag, and looked for. */
    POSTED(side, fi_inject(endpoints[1], "u", 1, peers[1]));
    POSTED(side, fi_tinject(endpoints[1], "t", 1, peers[1], TAG));
    barrier(side);
    struct fi_msg_tagged look = {.addr = FI_ADDR_UNSPEC, .tag = TAG, .context = &look};
    EXPECT(side, fi_trecvmsg(endpoints[0], &look, FI_PEEK | FI_COMPLETION) == 0);
    EXPECT(side, complete_in(queues[0], &entry, NULL, NULL) == -FI_ENOMSG);
    EXPECT(side, fi_trecvmsg(endpoints[1], &look, FI_PEEK | FI_DISCARD | FI_COMPLETION) == 0);
    EXPECT(side, complete_in(queues[1], &entry, &source, NULL) == 1 && source == peers[1]);
    EXPECT(side, fi_recv(endpoints[1], in[1], 1, NULL, peers[1], in[1]) == 0);
    EXPECT(side, complete_in(queues[1], &entry, &source, NULL) == 1 && in[1][0] == 'u');
    /* To this rank itself. */
    EXPECT(side, fi_trecv(endpoints[0], in[0], 1, NULL, second->own, TAG, 0, in[0]) == 0);
    POSTED(side, fi_tinject(endpoints[1], "s", 1, side->own, TAG));
    EXPECT(side, complete_in(queues[0], &entry, &source, NULL) == 1 && source == second->own && in[0][0] == 's');
}

/* Registered memory is of the domain: any endpoint reaches it, and the one that is named is told. */
static void memory_is_shared(struct side *side, struct another *second)
{
    static uint64_t memory;
    struct fid_mr *registered;
    struct fi_cq_tagged_entry entry;
    uint64_t own = (uintptr_t)&memory, there = 0, value = 17;
    EXPECT(side, fi_mr_reg(side->domain, &memory, sizeof memory, FI_REMOTE_WRITE, 0, 815, 0, &registered, NULL) == 0);
    EXPECT(side, fi_trecv(second->endpoint, &there, sizeof there, NULL, second->peer, TAG, 0, &there) == 0);
    POSTED(side, fi_tinject(second->endpoint, &own, sizeof own, second->peer, TAG));
    EXPECT(side, complete_in(second->cq, &entry, NULL, NULL) == 1);
    fi_addr_t source;
    POSTED(side, fi_inject_writedata(side->endpoint, &value, sizeof value, 4, second->peer, there, 815));
    EXPECT(side, complete_in(second->cq, &entry, &source, NULL) == 1 && source == side->peer);
    EXPECT(side, entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA) && entry.data == 4 && memory == 17);
    barrier(side);
    EXPECT(side, fi_close(&registered->fid) == 0);
}

/* With one queue for both; closing the one leaves the other, whose message has come meanwhile. */
static void closing_one_leaves_the_other(struct side *side)
{
    struct another second = open_another(side, side->cq);
    struct fi_cq_tagged_entry entry;
    fi_addr_t source;
    char in[2] = {0};
    EXPECT(side, fi_trecv(second.endpoint, &in[1], 1, NULL, FI_ADDR_UNSPEC, TAG, 0, &in[1]) == 0);
    EXPECT(side, fi_trecv(second.endpoint, &in[1], 1, NULL, FI_ADDR_UNSPEC, TAG, 0, &in[1]) == 0);
    EXPECT(side, fi_trecv(side->endpoint, in, 1, NULL, FI_ADDR_UNSPEC, TAG, 0, in) == 0);
    barrier(side);
    POSTED(side, fi_tinject(second.endpoint, "2", 1, second.peer, TAG));
    EXPECT(side, complete(side, &entry, &source, NULL) == 1 && entry.op_context == &in[1] && source == second.peer);
    barrier(side); /* the peer's has come before it closes */
    close_another(side, &second);
    barrier(side);
    POSTED(side, fi_tinject(side->endpoint, "1", 1, side->peer, TAG));
    EXPECT(side, complete(side, &entry, &source, NULL) == 1 && entry.op_context == in && source == side->peer);
    EXPECT(side, in[0] == '1' && in[1] == '2' && fi_cq_read(side->cq, &entry, 1) == -FI_EAGAIN);
}

/* ---- Threads ------------------------------------------------------------------------------------------------- */

#define ROUNDS 2000

/* A thread with a domain of its own: its endpoint and all that this one is bound to. */
struct worker {
    struct side side;
    pthread_t thread;
};

static void open_worker(struct side *side, struct worker *worker)
{
    struct fi_av_attr av = {.type = FI_AV_MAP};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
    struct weft_name name;
    size_t length = sizeof name;
    worker->side = (struct side){.rank = side->rank};
    EXPECT(side, fi_domain(side->fabric, side->info, &worker->side.domain, NULL) == 0);
    EXPECT(side, fi_av_open(worker->side.domain, &av, &worker->side.av, NULL) == 0);
    EXPECT(side, fi_cq_open(worker->side.domain, &cq, &worker->side.cq, NULL) == 0);
    EXPECT(side, fi_endpoint(worker->side.domain, side->info, &worker->side.endpoint, NULL) == 0);
    EXPECT(side, fi_ep_bind(worker->side.endpoint, &side->av->fid, 0) == -FI_EINVAL); /* of another domain */
    EXPECT(side, fi_ep_bind(worker->side.endpoint, &worker->side.av->fid, 0) == 0);
    EXPECT(side, fi_ep_bind(worker->side.endpoint, &worker->side.cq->fid, FI_SEND | FI_RECV) == 0);
    EXPECT(side, fi_enable(worker->side.endpoint) == 0);
    EXPECT(side, fi_getname(&worker->side.endpoint->fid, &name, &length) == 0);
    name.rank = !side->rank;
    EXPECT(side, fi_av_insert(worker->side.av, &name, 1, &worker->side.peer, 0, NULL) == 1);
}

/* Messages to and from the thread at the other rank, in order. */
static void *work(void *argument)
{
    struct side *side = &((struct worker *)argument)->side;
    struct fi_cq_tagged_entry entry;
    for (int i = 0; i < ROUNDS; i++) {
        int in = -1;
        EXPECT(side, fi_trecv(side->endpoint, &in, sizeof in, NULL, side->peer, TAG, 0, &in) == 0);
        POSTED(side, fi_tinject(side->endpoint, &i, sizeof i, side->peer, TAG));
        EXPECT(side, complete(side, &entry, NULL, NULL) == 1 && entry.op_context == &in && in == i);
    }
    return NULL;
}

/* FI_THREAD_DOMAIN lets threads call at once, each in its own domain. */
static void threads_with_domains_of_their_own(struct side *side)
{
    struct worker workers[3];
    int count = (int)(sizeof workers / sizeof *workers);
    for (int i = 0; i < count; i++)
        open_worker(side, &workers[i]);
    barrier(side);
    for (int i = 0; i < count; i++)
        EXPECT(side, pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        side->failed += workers[i].side.failed;
        EXPECT(side, fi_close(&workers[i].side.endpoint->fid) == 0);
        EXPECT(side, fi_close(&workers[i].side.cq->fid) == 0 && fi_close(&workers[i].side.av->fid) == 0);
        EXPECT(side, fi_close(&workers[i].side.domain->fid) == 0);
    }
}

void test_endpoints(struct side *side)
{
    struct fid_cq *cq;
    struct fi_cq_attr tagged = {.format = FI_CQ_FORMAT_TAGGED};
    EXPECT(side, fi_cq_open(side->domain, &tagged, &cq, NULL) == 0);
    as_many_as_a_rank_has(side);
    struct another second = open_another(side, cq);
    barrier(side);
    nothing_mixes(side, &second);
    memory_is_shared(side, &second);
    barrier(side);
    close_another(side, &second);
    EXPECT(side, fi_close(&cq->fid) == 0);
    barrier(side);
    closing_one_leaves_the_other(side);
    threads_with_domains_of_their_own(side);
}
