/* The provider's attributes, and its answer to fi_getinfo.
 *
 * A hint that asks for more than is offered gets no answer (-FI_ENODATA), never a promise that is not kept.
 */
#include "weft_fi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- The offer ------------------------------------------------------------------------------------------- */

#define PRIMARY_CAPS (FI_MSG | FI_TAGGED | FI_RMA)
#define MESSAGE_MODIFIERS (FI_SEND | FI_RECV)
#define RMA_MODIFIERS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define TRANSMIT_CAPS (PRIMARY_CAPS | FI_SEND | FI_READ | FI_WRITE)
#define RECEIVE_CAPS                                                                                           \
    (PRIMARY_CAPS | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE)
#define DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define ALL_CAPS (TRANSMIT_CAPS | RECEIVE_CAPS | DOMAIN_CAPS)
/* Given whether asked for or not. FI_DIRECTED_RECV changes what a receive means, so it is not among them. */
#define FREE_CAPS (FI_MULTI_RECV | FI_SOURCE | DOMAIN_CAPS)

#define TRANSMIT_OP_FLAGS                                                                                      \
    (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define RECEIVE_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

#define MESSAGE_ORDER FI_ORDER_SAS
#define PROTOCOL (0x80000000u | 0x7ef7u) /* of this provider's own */
#define QUEUE_SIZE 1024                  /* a hint: posts wait for the interface, queues grow */
#define TAG_FORMAT 0xaaaaaaaaaaaaaaaau   /* all 64 bits */

/* Peers are named by virtual address, of memory that exists when it is registered. */
#define NEEDED_MR_MODE (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED)

/* ---- Checks of hints ------------------------------------------------------------------------------------- */

static bool registration_fits(int mode, uint64_t caps)
{
    if (!(caps & (FI_REMOTE_READ | FI_REMOTE_WRITE)) || mode & WEFT_MR_BASIC)
        return true;
    return (mode & NEEDED_MR_MODE) == NEEDED_MR_MODE;
}

/* The capabilities that fulfil the hints. Where they name no way to communicate, all that they leave room for. */
static uint64_t caps_for(const struct fi_info *hints)
{
    bool registers = !hints || !hints->domain_attr || registration_fits(hints->domain_attr->mr_mode, ALL_CAPS);
    uint64_t caps = hints ? hints->caps : 0;
    if (caps == 0)
        caps = FI_DIRECTED_RECV;
    if (!(caps & PRIMARY_CAPS))
        caps |= registers ? PRIMARY_CAPS : FI_MSG | FI_TAGGED;
    if (caps & (FI_MSG | FI_TAGGED) && !(caps & MESSAGE_MODIFIERS))
        caps |= MESSAGE_MODIFIERS;
    if (caps & FI_RMA && !(caps & RMA_MODIFIERS))
        caps |= RMA_MODIFIERS;
    return caps | FREE_CAPS;
}

static bool transmit_fits(const struct fi_tx_attr *hints, size_t inject_size, size_t iov_limit)
{
    return !(hints->caps & ~TRANSMIT_CAPS & ~FREE_CAPS) && !(hints->op_flags & ~TRANSMIT_OP_FLAGS) &&
           !(hints->msg_order & ~MESSAGE_ORDER) && hints->comp_order == 0 && hints->inject_size <= inject_size &&
           hints->iov_limit <= iov_limit && hints->rma_iov_limit <= 1;
}

static bool receive_fits(const struct fi_rx_attr *hints, size_t iov_limit)
{
    return !(hints->caps & ~RECEIVE_CAPS & ~FREE_CAPS) && !(hints->op_flags & ~RECEIVE_OP_FLAGS) &&
           !(hints->msg_order & ~MESSAGE_ORDER) && hints->comp_order == 0 && hints->iov_limit <= iov_limit;
}

static bool endpoint_fits(const struct fi_ep_attr *hints)
{
    return (hints->type == FI_EP_UNSPEC || hints->type == FI_EP_RDM) &&
           (hints->protocol == FI_PROTO_UNSPEC || hints->protocol == PROTOCOL) && hints->tx_ctx_cnt <= 1 &&
           hints->rx_ctx_cnt <= 1 && hints->msg_prefix_size == 0 && hints->auth_key_size == 0 &&
           hints->max_order_raw_size == 0 && hints->max_order_war_size == 0 && hints->max_order_waw_size == 0;
}

static bool domain_fits(const struct fi_domain_attr *hints)
{
    return (hints->threading == FI_THREAD_UNSPEC || hints->threading == FI_THREAD_DOMAIN) &&
           (hints->control_progress == FI_PROGRESS_UNSPEC || hints->control_progress == FI_PROGRESS_MANUAL ||
            hints->control_progress == FI_PROGRESS_AUTO) &&
           (hints->data_progress == FI_PROGRESS_UNSPEC || hints->data_progress == FI_PROGRESS_MANUAL) &&
           (hints->av_type == FI_AV_UNSPEC || hints->av_type == FI_AV_MAP || hints->av_type == FI_AV_TABLE) &&
           !(hints->caps & ~DOMAIN_CAPS) && hints->cq_data_size <= sizeof(uint64_t) &&
           hints->mr_key_size <= sizeof(uint64_t) && hints->max_ep_stx_ctx == 0 && hints->max_ep_srx_ctx == 0 &&
           hints->auth_key_size == 0 && hints->mr_iov_limit <= 1;
}

static bool name_fits(const char *hint)
{
    return !hint || !strcasecmp(hint, weft_provider.name);
}

/* The part of the hints that asks for more than is offered, NULL: none does. */
static const char *misfit(const struct fi_info *hints, size_t inject_size, size_t iov_limit)
{
    if (!hints)
        return NULL;
    /* FI_MR_LOCAL and the mode bits are the program's offers: none is needed. */
    if (hints->caps & ~ALL_CAPS)
        return "caps";
    if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != WEFT_ADDRESS_FORMAT)
        return "addr_format";
    if (hints->tx_attr && !transmit_fits(hints->tx_attr, inject_size, iov_limit))
        return "tx_attr";
    if (hints->rx_attr && !receive_fits(hints->rx_attr, iov_limit))
        return "rx_attr";
    if (hints->ep_attr && !endpoint_fits(hints->ep_attr))
        return "ep_attr";
    if (hints->domain_attr && !domain_fits(hints->domain_attr))
        return "domain_attr";
    if (hints->domain_attr && !registration_fits(hints->domain_attr->mr_mode, caps_for(hints)))
        return "domain_attr->mr_mode";
    if (!name_fits(hints->domain_attr ? hints->domain_attr->name : NULL))
        return "domain_attr->name";
    if (!name_fits(hints->fabric_attr ? hints->fabric_attr->name : NULL))
        return "fabric_attr->name";
    return NULL;
}

/* ---- The answer ------------------------------------------------------------------------------------------- */

static void info_free(struct fi_info *info)
{
    if (info->domain_attr)
        free(info->domain_attr->name);
    if (info->fabric_attr)
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

/* The core copies and frees it, so every part is allocated on its own, by the newest layout. */
static struct fi_info *info_allocate(void)
{
    struct fi_info *info = calloc(1, sizeof *info);
    if (!info)
        return NULL;
    info->tx_attr = calloc(1, sizeof *info->tx_attr);
    info->rx_attr = calloc(1, sizeof *info->rx_attr);
    info->ep_attr = calloc(1, sizeof *info->ep_attr);
    info->domain_attr = calloc(1, sizeof(union weft_domain_attr));
    info->fabric_attr = calloc(1, sizeof *info->fabric_attr);
    info->src_addr = calloc(1, sizeof(struct weft_name));
    if (info->domain_attr)
        info->domain_attr->name = strdup(weft_provider.name);
    if (info->fabric_attr)
        info->fabric_attr->name = strdup(weft_provider.name);
    if (info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr && info->domain_attr->name &&
        info->fabric_attr && info->fabric_attr->name && info->src_addr)
        return info;
    info_free(info);
    return NULL;
}

/* The value that was asked for, which has been found to fit; the standard one where none was. */
static uint64_t or_else(uint64_t asked, uint64_t standard)
{
    return asked ? asked : standard;
}

static void fill(struct fi_info *info, const struct weft_process *process, size_t inject_size,
                 const struct fi_info *hints)
{
    static const struct fi_tx_attr no_tx;
    static const struct fi_rx_attr no_rx;
    static const struct fi_domain_attr no_domain;
    const struct fi_tx_attr *tx = hints && hints->tx_attr ? hints->tx_attr : &no_tx;
    const struct fi_rx_attr *rx = hints && hints->rx_attr ? hints->rx_attr : &no_rx;
    const struct fi_domain_attr *domain = hints && hints->domain_attr ? hints->domain_attr : &no_domain;
    struct weft_name name = weft_name_of(process, weft_first_endpoint(process));

    info->caps = caps_for(hints);
    info->addr_format = WEFT_ADDRESS_FORMAT;
    info->src_addrlen = sizeof name;
    memcpy(info->src_addr, &name, sizeof name);

    info->tx_attr->caps = info->caps & TRANSMIT_CAPS;
    info->tx_attr->op_flags = tx->op_flags;
    info->tx_attr->msg_order = MESSAGE_ORDER;
    info->tx_attr->inject_size = inject_size;
    info->tx_attr->size = or_else(tx->size, QUEUE_SIZE);
    /* Gathering copies: a program that does not ask for it packs its data itself, once. */
    info->tx_attr->iov_limit = or_else(tx->iov_limit, 1);
    info->tx_attr->rma_iov_limit = 1;

    info->rx_attr->caps = info->caps & RECEIVE_CAPS;
    info->rx_attr->op_flags = rx->op_flags;
    info->rx_attr->msg_order = MESSAGE_ORDER;
    info->rx_attr->total_buffered_recv = rx->total_buffered_recv;
    info->rx_attr->size = or_else(rx->size, QUEUE_SIZE);
    info->rx_attr->iov_limit = or_else(rx->iov_limit, 1);

    info->ep_attr->type = FI_EP_RDM;
    info->ep_attr->protocol = PROTOCOL;
    info->ep_attr->protocol_version = 1;
    info->ep_attr->max_msg_size = SIZE_MAX >> 1;
    info->ep_attr->mem_tag_format =
        or_else(hints && hints->ep_attr ? hints->ep_attr->mem_tag_format : 0, TAG_FORMAT);
    info->ep_attr->tx_ctx_cnt = 1;
    info->ep_attr->rx_ctx_cnt = 1;

    info->domain_attr->threading = FI_THREAD_DOMAIN;
    info->domain_attr->control_progress = (enum fi_progress)or_else(domain->control_progress, FI_PROGRESS_MANUAL);
    info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    info->domain_attr->resource_mgmt = FI_RM_ENABLED;
    info->domain_attr->av_type = (enum fi_av_type)or_else(domain->av_type, FI_AV_TABLE);
    if (info->caps & (FI_REMOTE_READ | FI_REMOTE_WRITE))
        info->domain_attr->mr_mode = domain->mr_mode & WEFT_MR_BASIC ? WEFT_MR_BASIC : NEEDED_MR_MODE;
    info->domain_attr->mr_key_size = sizeof(uint64_t);
    info->domain_attr->cq_data_size = sizeof(uint64_t);
    info->domain_attr->cq_cnt = 64;
    info->domain_attr->ep_cnt = WEFT_ENDPOINTS;
    info->domain_attr->tx_ctx_cnt = WEFT_ENDPOINTS;
    info->domain_attr->rx_ctx_cnt = WEFT_ENDPOINTS;
    info->domain_attr->max_ep_tx_ctx = 1;
    info->domain_attr->max_ep_rx_ctx = 1;
    info->domain_attr->cntr_cnt = 64;
    info->domain_attr->mr_iov_limit = 1;
    info->domain_attr->mr_cnt = 65536;
    info->domain_attr->caps = DOMAIN_CAPS;
    union weft_domain_attr *attr = (union weft_domain_attr *)info->domain_attr;
    attr->newest.max_cntr_value = UINT64_MAX;
    attr->newest.max_err_cntr_value = UINT64_MAX;
}

/* `node` is the number of a rank: of this one with FI_SOURCE, of the one to talk to without. */
static int resolve(struct fi_info *info, const struct weft_process *process, const char *node, const char *service,
                   uint64_t flags, const struct fi_info *hints)
{
    if (service)
        return -FI_ENODATA;
    const void *given = hints && !node ? hints->dest_addr : NULL;
    if (!node && !given)
        return 0;
    struct weft_name name = weft_name_of(process, weft_first_endpoint(process));
    if (node) {
        char *end;
        unsigned long number = strtoul(node, &end, 10);
        if (*node < '0' || *node > '9' || *end || number >= process->count)
            return -FI_ENODATA;
        if (flags & FI_SOURCE)
            return number == name.rank ? 0 : -FI_ENODATA;
        name.rank = (uint32_t)number;
    } else if (hints->dest_addrlen == sizeof name) {
        memcpy(&name, given, sizeof name);
    } else {
        return -FI_ENODATA;
    }
    info->dest_addr = malloc(sizeof name);
    if (!info->dest_addr)
        return -FI_ENOMEM;
    memcpy(info->dest_addr, &name, sizeof name);
    info->dest_addrlen = sizeof name;
    return 0;
}

int weft_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                 struct fi_info **answer)
{
    struct weft_process *process;
    struct weft_tunables tunables;
    if (FI_VERSION_LT(WEFT_API_VERSION, version))
        return -FI_ENOSYS;
    int result = weft_process_join(&process);
    if (result == 0)
        result = weft_tunables_read(&tunables);
    if (result)
        return result;
    size_t inject_size = process->library.inject_limit(process->rank);
    if (tunables.inject_size < inject_size)
        inject_size = tunables.inject_size;
    const char *part = misfit(hints, inject_size, tunables.iov_limit);
    if (part) {
        weft_log(FI_LOG_INFO, "the hints ask in %s for more than the provider offers: man fi_weft", part);
        return -FI_ENODATA;
    }
    struct fi_info *info = info_allocate();
    if (!info)
        return -FI_ENOMEM;
    fill(info, process, inject_size, hints);
    result = resolve(info, process, node, service, flags, hints);
    if (result) {
        info_free(info);
        return result;
    }
    *answer = info;
    return 0;
}
