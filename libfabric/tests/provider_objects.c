/* Attributes that the provider offers and refuses, and its objects. */
#include "two_ranks.h"

#include <malloc.h>
#include <unistd.h>

/* As fi_freeinfo of the core does. */
void info_free(struct fi_info *info)
{
    free(info->domain_attr->name);
    free(info->fabric_attr->name);
    free(info->src_addr);
    free(info->dest_addr);
    free(info->tx_attr);
    free(info->rx_attr);
    free(info->ep_attr);
    free(info->domain_attr);
    free(info->fabric_attr);
    free(info);
}

/* Hints as a program would fill them in. */
struct hints {
    struct fi_info info;
    struct fi_tx_attr tx;
    struct fi_rx_attr rx;
    struct fi_ep_attr ep;
    struct fi_domain_attr domain;
    struct fi_fabric_attr fabric;
};

static struct hints *fresh(struct hints *hints)
{
    memset(hints, 0, sizeof *hints);
    hints->info.tx_attr = &hints->tx;
    hints->info.rx_attr = &hints->rx;
    hints->info.ep_attr = &hints->ep;
    hints->info.domain_attr = &hints->domain;
    hints->info.fabric_attr = &hints->fabric;
    hints->info.caps = FI_MSG | FI_TAGGED;
    return hints;
}

static int ask(struct side *side, const struct hints *hints)
{
    struct fi_info *info = NULL;
    int result = side->provider->getinfo(FI_VERSION(1, 18), NULL, NULL, 0, &hints->info, &info);
    if (result == 0)
        info_free(info);
    return result;
}

#define REFUSED(side, change)                                                                                  \
    do {                                                                                                       \
        struct hints hints;                                                                                    \
        struct hints *h = fresh(&hints);                                                                       \
        change;                                                                                                \
        expect(side, ask(side, h) == -FI_ENODATA, #change " is refused", __FILE__, __LINE__);                  \
    } while (0)

#define OFFERED(side, change)                                                                                  \
    do {                                                                                                       \
        struct hints hints;                                                                                    \
        struct hints *h = fresh(&hints);                                                                       \
        change;                                                                                                \
        expect(side, ask(side, h) == 0, #change " is offered", __FILE__, __LINE__);                            \
    } while (0)

static void test_hints(struct side *side)
{
    static const uint64_t refused_caps[] = {
        FI_ATOMIC,     FI_MULTICAST, FI_COLLECTIVE, FI_RMA_EVENT, FI_TRIGGER, FI_NAMED_RX_CTX, FI_TAGGED_MULTI_RECV,
        FI_SOURCE_ERR, FI_HMEM,      FI_RMA_PMEM,   FI_SHARED_AV, FI_FENCE,   FI_AV_USER_ID,   FI_EXACT_DIRECTED_RECV,
    };
    for (size_t i = 0; i < sizeof refused_caps / sizeof *refused_caps; i++)
        REFUSED(side, h->info.caps |= refused_caps[i]);
    REFUSED(side, h->ep.type = FI_EP_MSG);
    REFUSED(side, h->ep.type = FI_EP_DGRAM);
    REFUSED(side, h->ep.tx_ctx_cnt = FI_SHARED_CONTEXT);
    REFUSED(side, h->ep.rx_ctx_cnt = 2);
    REFUSED(side, h->ep.max_order_raw_size = 1);
    REFUSED(side, h->ep.auth_key_size = 8);
    REFUSED(side, h->domain.threading = FI_THREAD_SAFE);
    REFUSED(side, h->domain.threading = FI_THREAD_ENDPOINT);
    REFUSED(side, h->domain.data_progress = FI_PROGRESS_AUTO);
    REFUSED(side, h->domain.cq_data_size = 9);
    REFUSED(side, h->domain.name = (char *)"eth0");
    REFUSED(side, h->tx.msg_order = FI_ORDER_SAS | FI_ORDER_ATOMIC_WAW);
    REFUSED(side, h->tx.inject_size = 1u << 20);
    REFUSED(side, h->tx.iov_limit = 100);
    REFUSED(side, h->tx.op_flags = FI_COMMIT_COMPLETE);
    REFUSED(side, h->rx.op_flags = FI_INJECT);
    REFUSED(side, h->info.addr_format = FI_SOCKADDR_IN);
    REFUSED(side, (h->info.caps |= FI_RMA, h->domain.mr_mode = FI_MR_ENDPOINT));

    OFFERED(side, h->info.caps = 0);
    OFFERED(side, h->ep.type = FI_EP_RDM);
    OFFERED(side, h->domain.threading = FI_THREAD_DOMAIN);
    OFFERED(side, h->domain.control_progress = FI_PROGRESS_AUTO);
    OFFERED(side, h->domain.av_type = FI_AV_MAP);
    OFFERED(side, h->domain.name = (char *)"WEFT");
    OFFERED(side, h->tx.op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION);
    OFFERED(side, h->tx.iov_limit = 8);
    OFFERED(side, (h->info.caps |= FI_RMA, h->domain.mr_mode = WEFT_MR_BASIC));
    OFFERED(side, (h->info.caps |= FI_RMA, h->domain.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_LOCAL));
    /* As Open MPI asks. */
    OFFERED(side, h->info.caps = FI_MSG | FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV);
}

void test_info(struct side *side)
{
    struct fi_info *info = NULL;
    EXPECT(side, side->provider->fi_version >= FI_VERSION(2, 6) && strcmp(side->provider->name, "weft") == 0);
    EXPECT(side, side->provider->getinfo(FI_VERSION(9, 0), NULL, NULL, 0, NULL, &info) == -FI_ENOSYS);
    EXPECT(side, side->provider->getinfo(FI_VERSION(1, 18), NULL, NULL, 0, NULL, &info) == 0);
    /* All that MPICH looks for before it gives any hints. */
    uint64_t wanted = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE;
    EXPECT(side, (info->caps & wanted) == wanted && !(info->caps & FI_ATOMIC));
    EXPECT(side, info->ep_attr->type == FI_EP_RDM && info->domain_attr->cq_data_size == 8 && info->mode == 0);
    EXPECT(side, info->domain_attr->threading == FI_THREAD_DOMAIN && info->tx_attr->msg_order == FI_ORDER_SAS);
    EXPECT(side, !info->fabric_attr->prov_name); /* the core's to fill in */
    /* Catches attributes that end where older headers end: the core of 2.6 copies 224 bytes, counter limits last. */
    uint64_t counter_limits[2];
    EXPECT(side, malloc_usable_size(info->domain_attr) >= 224);
    memcpy(counter_limits, (char *)info->domain_attr + 208, sizeof counter_limits);
    EXPECT(side, counter_limits[0] == UINT64_MAX && counter_limits[1] == UINT64_MAX);
    info_free(info);
    /* A capability that changes the meaning of receives is given only where it is asked for. */
    struct hints hints;
    EXPECT(side, side->provider->getinfo(FI_VERSION(1, 18), NULL, NULL, 0, &fresh(&hints)->info, &info) == 0);
    EXPECT(side, !(info->caps & FI_DIRECTED_RECV) && info->caps & FI_SOURCE && info->caps & FI_SEND);
    EXPECT(side, info->domain_attr->mr_mode == 0);
    info_free(info);
    EXPECT(side, side->provider->getinfo(FI_VERSION(1, 18), "7", NULL, 0, NULL, &info) == -FI_ENODATA);
    EXPECT(side, side->provider->getinfo(FI_VERSION(1, 18), "host", NULL, 0, NULL, &info) == -FI_ENODATA);
    EXPECT(side, side->provider->getinfo(FI_VERSION(1, 18), "0", "80", 0, NULL, &info) == -FI_ENODATA);
    test_hints(side);
    setenv("FI_WEFT_POLL_BATCH", "many", 1);
    FILE *standard_error = stderr;
    stderr = fopen("/dev/null", "w");
    EXPECT(side, side->provider->getinfo(FI_VERSION(1, 18), NULL, NULL, 0, NULL, &info) == -FI_EINVAL);
    fclose(stderr);
    stderr = standard_error;
    unsetenv("FI_WEFT_POLL_BATCH");
    setenv("FI_WEFT_INJECT_SIZE", "24", 1);
    EXPECT(side, side->provider->getinfo(FI_VERSION(1, 18), NULL, NULL, 0, NULL, &info) == 0);
    EXPECT(side, info->tx_attr->inject_size == 24);
    info_free(info);
    unsetenv("FI_WEFT_INJECT_SIZE");
}

static void test_address_vectors(struct side *side)
{
    for (int type = FI_AV_MAP; type <= FI_AV_TABLE; type++) {
        struct fi_av_attr attr = {.type = (enum fi_av_type)type};
        struct fid_av *av;
        struct weft_name names[5], found;
        fi_addr_t addresses[5];
        EXPECT(side, fi_av_open(side->domain, &attr, &av, NULL) == 0);
        memcpy(&names[0], side->info->dest_addr, sizeof *names);
        memcpy(&names[2], side->info->src_addr, sizeof *names);
        names[1] = names[0];
        names[1].job ^= 1; /* of another job */
        names[3] = names[4] = names[0];
        names[3].endpoint = WEFT_ENDPOINTS - 1;
        names[4].endpoint = WEFT_ENDPOINTS; /* that no rank has */
        EXPECT(side, fi_av_insert(av, names, 5, addresses, 0, NULL) == 3);
        EXPECT(side, addresses[1] == FI_ADDR_NOTAVAIL && addresses[4] == FI_ADDR_NOTAVAIL);
        if (type == FI_AV_TABLE)
            EXPECT(side, addresses[0] == 0 && addresses[2] == 1 && addresses[3] == 2);
        size_t length = sizeof found;
        EXPECT(side, fi_av_lookup(av, addresses[2], &found, &length) == 0 && length == sizeof found);
        EXPECT(side, memcmp(&found, &names[2], sizeof found) == 0);
        EXPECT(side, fi_av_lookup(av, addresses[3], &found, &length) == 0);
        EXPECT(side, memcmp(&found, &names[3], sizeof found) == 0);
        /* Values that are no address, as a program that has lost one may pass. */
        EXPECT(side, fi_av_lookup(av, FI_ADDR_NOTAVAIL, &found, &length) == -FI_EINVAL);
        EXPECT(side, fi_av_lookup(av, (fi_addr_t)WEFT_ENDPOINTS << 32, &found, &length) == -FI_EINVAL);
        char text[64], expected[64];
        length = sizeof text;
        snprintf(expected, sizeof expected, "weft://%016llx/%u/15", (unsigned long long)names[3].job, names[3].rank);
        EXPECT(side, strcmp(fi_av_straddr(av, &names[3], text, &length), expected) == 0);
        EXPECT(side, length == strlen(text) + 1);
        EXPECT(side, fi_av_remove(av, &addresses[0], 1, 0) == 0);
        EXPECT(side, fi_av_remove(av, &addresses[0], 1, 0) == -FI_EINVAL);
        EXPECT(side, fi_close(&av->fid) == 0);
    }
    struct fi_av_attr named = {.type = FI_AV_TABLE, .name = "shared"};
    struct fid_av *av;
    EXPECT(side, fi_av_open(side->domain, &named, &av, NULL) == -FI_ENOSYS);
}

static void test_refusals(struct side *side)
{
    struct fid_ep *endpoint;
    struct fid_stx *transmit;
    struct fid_cq *cq;
    struct fid_cntr *counter;
    struct fid_eq *eq;
    EXPECT(side, fi_scalable_ep(side->domain, side->info, &endpoint, NULL) == -FI_ENOSYS);
    EXPECT(side, fi_stx_context(side->domain, side->info->tx_attr, &transmit, NULL) == -FI_ENOSYS);
    EXPECT(side, fi_srx_context(side->domain, side->info->rx_attr, &endpoint, NULL) == -FI_ENOSYS);
    struct fi_cq_attr waiting = {.wait_obj = FI_WAIT_FD};
    EXPECT(side, fi_cq_open(side->domain, &waiting, &cq, NULL) == -FI_ENOSYS);
    struct fi_cntr_attr waiting_too = {.wait_obj = FI_WAIT_FD};
    EXPECT(side, fi_cntr_open(side->domain, &waiting_too, &counter, NULL) == -FI_ENOSYS);
    struct fi_cq_tagged_entry entry;
    EXPECT(side, fi_cq_sread(side->cq, &entry, 1, NULL, 0) == -FI_ENOSYS);
    EXPECT(side, fi_ep_bind(side->endpoint, &side->counter->fid, FI_REMOTE_WRITE) == -FI_EOPBADSTATE);
    size_t count = 7;
    EXPECT(side, fi_atomicvalid(side->endpoint, FI_INT32, FI_SUM, &count) == -FI_EOPNOTSUPP && count == 0);
    EXPECT(side, fi_eq_open(side->fabric, NULL, &eq, NULL) == 0);
    uint32_t event;
    EXPECT(side, fi_eq_read(eq, &event, &entry, sizeof entry, 0) == -FI_EAGAIN);
    EXPECT(side, fi_close(&eq->fid) == 0);
}

void test_objects(struct side *side)
{
    test_address_vectors(side);
    test_refusals(side);
    struct weft_name name;
    size_t length = 4, option = 0, option_size = sizeof option;
    EXPECT(side, fi_getname(&side->endpoint->fid, &name, &length) == -FI_ETOOSMALL && length == sizeof name);
    EXPECT(side, fi_getname(&side->endpoint->fid, &name, &length) == 0 && name.rank == side->rank);
    EXPECT(side, fi_getopt(&side->endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &option, &option_size) == 0);
    EXPECT(side, option == 64);
    EXPECT(side, fi_cntr_wait(side->counter, 1, 1) == -FI_ETIMEDOUT);
    EXPECT(side, fi_cntr_add(side->counter, 5) == 0 && fi_cntr_read(side->counter) == 5);
    EXPECT(side, fi_cntr_set(side->counter, 0) == 0 && fi_cntr_wait(side->counter, 0, 0) == 0);
}
