/* The access domain, and the memory that peers may reach through it.
 *
 * Peers name memory by key and virtual address, as the interfaces that are simulated do: FI_MR_VIRT_ADDR. They reach
 * it by any endpoint of the process, so that keys are those of the process: two domains cannot have the same.
 */
#include "weft_fi.h"

#include <errno.h>
#include <stdlib.h>

/* ---- Memory regions ----------------------------------------------------------------------------------- */

static int memory_close(struct fid *fid)
{
    struct weft_memory *memory = CONTAINER_OF(fid, struct weft_memory, fid.fid);
    struct weft_process *process = memory->domain->fabric->process;
    int result = 0;
    if (memory->registered) {
        weft_process_lock(process);
        result = process->library.unregister_memory(process->rank, memory->fid.key);
        weft_process_unlock(process);
    }
    memory->domain->references--;
    free(memory);
    return result;
}

/* FI_MR_ENDPOINT is not asked for, but programs that offer it may bind and enable all the same. */
static int memory_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid, (void)flags;
    return other->fclass == FI_CLASS_EP ? 0 : -FI_ENOSYS;
}

static int memory_control(struct fid *fid, int command, void *argument)
{
    (void)fid, (void)argument;
    return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops memory_ops = {
    .size = sizeof(struct fi_ops),
    .close = memory_close,
    .bind = memory_bind,
    .control = memory_control,
    .ops_open = weft_no_ops_open,
};

static int memory_open(struct fid *fid, const struct iovec *piece, uint64_t access, uint64_t key, uint64_t flags,
                       void *context, struct fid_mr **opened)
{
    if (flags)
        return -FI_EBADFLAGS;
    if (fid->fclass != FI_CLASS_DOMAIN)
        return -FI_EINVAL;
    struct weft_domain *domain = CONTAINER_OF(fid, struct weft_domain, fid.fid);
    struct weft_process *process = domain->fabric->process;
    struct weft_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return -FI_ENOMEM;
    if (domain->chooses_keys)
        key = UINT64_MAX;
    uint64_t peers = 0;
    peers |= access & FI_REMOTE_READ ? WEFT_ACCESS_READ : 0;
    peers |= access & FI_REMOTE_WRITE ? WEFT_ACCESS_WRITE : 0;
    /* Memory for this process's own operations needs no registration. */
    if (peers) {
        weft_process_lock(process);
        int result = process->library.register_memory(process->rank, piece->iov_base, piece->iov_len, peers, &key);
        weft_process_unlock(process);
        if (result < 0) {
            free(memory);
            return result == -EEXIST ? -FI_ENOKEY : result;
        }
        memory->registered = true;
    }
    memory->domain = domain;
    domain->references++;
    memory->fid.fid.fclass = FI_CLASS_MR;
    memory->fid.fid.context = context;
    memory->fid.fid.ops = &memory_ops;
    memory->fid.mem_desc = memory;
    memory->fid.key = key;
    *opened = &memory->fid;
    return 0;
}

static int memory_register(struct fid *fid, const void *buffer, size_t length, uint64_t access, uint64_t offset,
                           uint64_t key, uint64_t flags, struct fid_mr **memory, void *context)
{
    (void)offset; /* reserved */
    struct iovec piece = {(void *)(uintptr_t)buffer, length};
    return memory_open(fid, &piece, access, key, flags, context, memory);
}

static int memory_register_pieces(struct fid *fid, const struct iovec *pieces, size_t count, uint64_t access,
                                  uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **memory, void *context)
{
    (void)offset;
    return count == 1 ? memory_open(fid, pieces, access, key, flags, context, memory) : -FI_EINVAL;
}

static int memory_register_attributes(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
                                      struct fid_mr **memory)
{
    if (attr->iov_count != 1)
        return -FI_EINVAL;
    return memory_open(fid, attr->mr_iov, attr->access, attr->requested_key, flags, attr->context, memory);
}

static struct fi_ops_mr memory_registration_ops = {
    .size = sizeof(struct fi_ops_mr),
    .reg = memory_register,
    .regv = memory_register_pieces,
    .regattr = memory_register_attributes,
};

/* ---- The domain --------------------------------------------------------------------------------------- */

static int no_scalable_ep(struct fid_domain *fid, struct fi_info *info, struct fid_ep **endpoint, void *context)
{
    (void)fid, (void)info, (void)endpoint, (void)context;
    return -FI_ENOSYS;
}

static int no_poll_open(struct fid_domain *fid, struct fi_poll_attr *attr, struct fid_poll **poll)
{
    (void)fid, (void)attr, (void)poll;
    return -FI_ENOSYS;
}

static int no_stx_ctx(struct fid_domain *fid, struct fi_tx_attr *attr, struct fid_stx **transmit, void *context)
{
    (void)fid, (void)attr, (void)transmit, (void)context;
    return -FI_ENOSYS;
}

static int no_srx_ctx(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **receive, void *context)
{
    (void)fid, (void)attr, (void)receive, (void)context;
    return -FI_ENOSYS;
}

static int no_query_atomic(struct fid_domain *fid, enum fi_datatype type, enum fi_op operation,
                           struct fi_atomic_attr *attr, uint64_t flags)
{
    (void)fid, (void)type, (void)operation, (void)attr, (void)flags;
    return -FI_EOPNOTSUPP;
}

static int no_query_collective(struct fid_domain *fid, enum fi_collective_op collective,
                               struct fi_collective_attr *attr, uint64_t flags)
{
    (void)fid, (void)collective, (void)attr, (void)flags;
    return -FI_ENOSYS;
}

static int domain_close(struct fid *fid)
{
    struct weft_domain *domain = CONTAINER_OF(fid, struct weft_domain, fid.fid);
    if (domain->references)
        return -FI_EBUSY;
    weft_process_lock(domain->fabric->process);
    domain->fabric->references--;
    weft_process_unlock(domain->fabric->process);
    free(domain);
    return 0;
}

static struct fi_ops fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = domain_close,
    .bind = weft_no_bind,
    .control = weft_no_control,
    .ops_open = weft_no_ops_open,
};

static struct fi_ops_domain domain_ops = {
    .size = sizeof(struct fi_ops_domain),
    .av_open = weft_av_open,
    .cq_open = weft_cq_open,
    .endpoint = weft_endpoint_open,
    .scalable_ep = no_scalable_ep,
    .cntr_open = weft_counter_open,
    .poll_open = no_poll_open,
    .stx_ctx = no_stx_ctx,
    .srx_ctx = no_srx_ctx,
    .query_atomic = no_query_atomic,
    .query_collective = no_query_collective,
};

int weft_domain_open(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **opened, void *context)
{
    struct weft_fabric *fabric = CONTAINER_OF(fid, struct weft_fabric, fid);
    struct weft_domain *domain = calloc(1, sizeof *domain);
    if (!domain)
        return -FI_ENOMEM;
    domain->fabric = fabric;
    domain->chooses_keys = info->domain_attr && info->domain_attr->mr_mode & (WEFT_MR_BASIC | FI_MR_PROV_KEY);
    domain->fid.fid.fclass = FI_CLASS_DOMAIN;
    domain->fid.fid.context = context;
    domain->fid.fid.ops = &fid_ops;
    domain->fid.ops = &domain_ops;
    domain->fid.mr = &memory_registration_ops;
    weft_process_lock(fabric->process);
    fabric->references++;
    weft_process_unlock(fabric->process);
    *opened = &domain->fid;
    return 0;
}
