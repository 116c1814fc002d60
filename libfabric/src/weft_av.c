/* The address vector: from the names of endpoints to ranks of the job and back. */
#include "weft_fi.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct weft_name weft_own_name(const struct weft_process *process)
{
    return (struct weft_name){
        .job = process->job,
        .rank = process->library.number(process->rank),
        .version = WEFT_NAME_VERSION,
    };
}

fi_addr_t weft_av_address(const struct weft_av *av, uint32_t rank)
{
    const struct weft_process *process = av->domain->fabric->process;
    return rank < process->library.count(process->rank) ? av->addresses[rank] : FI_ADDR_NOTAVAIL;
}

/* The rank that a name stands for, WEFT_NO_RANK: not of this job. */
static uint32_t rank_of(const struct weft_process *process, const struct weft_name *name)
{
    if (name->version != WEFT_NAME_VERSION || name->job != process->job)
        return WEFT_NO_RANK;
    return name->rank < process->library.count(process->rank) ? name->rank : WEFT_NO_RANK;
}

static fi_addr_t insert_one(struct weft_av *av, uint32_t rank)
{
    fi_addr_t address = rank;
    if (av->type == FI_AV_TABLE) {
        if (av->count == av->capacity) {
            size_t capacity = av->capacity ? 2 * av->capacity : 64;
            uint32_t *ranks = realloc(av->ranks, capacity * sizeof *ranks);
            if (!ranks)
                return FI_ADDR_NOTAVAIL;
            av->ranks = ranks;
            av->capacity = capacity;
        }
        address = av->count;
        av->ranks[av->count++] = rank;
    }
    /* A rank that is inserted twice is reported by its first address. */
    if (av->addresses[rank] == FI_ADDR_NOTAVAIL)
        av->addresses[rank] = address;
    return address;
}

static int av_insert(struct fid_av *fid, const void *names, size_t count, fi_addr_t *addresses, uint64_t flags,
                     void *context)
{
    if (flags & ~(FI_MORE | FI_SYNC_ERR))
        return -FI_EBADFLAGS;
    struct weft_av *av = CONTAINER_OF(fid, struct weft_av, fid);
    int *errors = flags & FI_SYNC_ERR ? context : NULL;
    int inserted = 0;
    for (size_t i = 0; i < count; i++) {
        struct weft_name name;
        memcpy(&name, (const char *)names + i * sizeof name, sizeof name);
        uint32_t rank = rank_of(av->domain->fabric->process, &name);
        fi_addr_t address = rank == WEFT_NO_RANK ? FI_ADDR_NOTAVAIL : insert_one(av, rank);
        if (addresses)
            addresses[i] = address;
        if (errors)
            errors[i] = address == FI_ADDR_NOTAVAIL ? FI_EINVAL : 0;
        inserted += address != FI_ADDR_NOTAVAIL;
    }
    return inserted;
}

static int no_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *address, uint64_t flags,
                        void *context)
{
    (void)fid, (void)node, (void)service, (void)address, (void)flags, (void)context;
    return -FI_ENOSYS;
}

static int no_insertsym(struct fid_av *fid, const char *node, size_t nodes, const char *service, size_t services,
                        fi_addr_t *addresses, uint64_t flags, void *context)
{
    (void)fid, (void)node, (void)nodes, (void)service, (void)services, (void)addresses, (void)flags, (void)context;
    return -FI_ENOSYS;
}

static int av_remove(struct fid_av *fid, fi_addr_t *addresses, size_t count, uint64_t flags)
{
    if (flags)
        return -FI_EBADFLAGS;
    struct weft_av *av = CONTAINER_OF(fid, struct weft_av, fid);
    for (size_t i = 0; i < count; i++) {
        uint32_t rank = weft_av_rank(av, addresses[i]);
        if (rank == WEFT_NO_RANK || weft_av_address(av, rank) == FI_ADDR_NOTAVAIL)
            return -FI_EINVAL;
        if (av->type == FI_AV_TABLE)
            av->ranks[addresses[i]] = WEFT_NO_RANK;
        if (av->addresses[rank] == addresses[i])
            av->addresses[rank] = FI_ADDR_NOTAVAIL;
    }
    return 0;
}

static int av_lookup(struct fid_av *fid, fi_addr_t address, void *name, size_t *length)
{
    struct weft_av *av = CONTAINER_OF(fid, struct weft_av, fid);
    struct weft_process *process = av->domain->fabric->process;
    uint32_t rank = weft_av_rank(av, address);
    if (rank == WEFT_NO_RANK || rank >= process->library.count(process->rank))
        return -FI_EINVAL;
    struct weft_name found = {.job = process->job, .rank = rank, .version = WEFT_NAME_VERSION};
    memcpy(name, &found, *length < sizeof found ? *length : sizeof found);
    *length = sizeof found;
    return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *address, char *buffer, size_t *length)
{
    (void)fid;
    struct weft_name name;
    memcpy(&name, address, sizeof name);
    int needed = snprintf(buffer, *length, "weft://%016" PRIx64 "/%" PRIu32, name.job, name.rank);
    *length = (size_t)needed + 1;
    return buffer;
}

static int av_close(struct fid *fid)
{
    struct weft_av *av = CONTAINER_OF(fid, struct weft_av, fid.fid);
    if (av->references)
        return -FI_EBUSY;
    av->domain->references--;
    free(av->ranks);
    free(av->addresses);
    free(av);
    return 0;
}

static struct fi_ops fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = av_close,
    .bind = weft_no_bind,
    .control = weft_no_control,
    .ops_open = weft_no_ops_open,
};

static struct fi_ops_av av_ops = {
    .size = sizeof(struct fi_ops_av),
    .insert = av_insert,
    .insertsvc = no_insertsvc,
    .insertsym = no_insertsym,
    .remove = av_remove,
    .lookup = av_lookup,
    .straddr = av_straddr,
};

int weft_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **opened, void *context)
{
    if (attr && (attr->name || attr->flags))
        return -FI_ENOSYS; /* shared between processes; filled asynchronously */
    struct weft_av *av = calloc(1, sizeof *av);
    if (!av)
        return -FI_ENOMEM;
    av->domain = CONTAINER_OF(fid, struct weft_domain, fid);
    av->type = attr && attr->type != FI_AV_UNSPEC ? attr->type : FI_AV_TABLE;
    struct weft_process *process = av->domain->fabric->process;
    uint32_t ranks = process->library.count(process->rank);
    av->addresses = malloc(ranks * sizeof *av->addresses);
    if (!av->addresses) {
        free(av);
        return -FI_ENOMEM;
    }
    for (uint32_t i = 0; i < ranks; i++)
        av->addresses[i] = FI_ADDR_NOTAVAIL;
    if (attr)
        attr->type = av->type;
    av->domain->references++;
    av->fid.fid.fclass = FI_CLASS_AV;
    av->fid.fid.context = context;
    av->fid.fid.ops = &fid_ops;
    av->fid.ops = &av_ops;
    *opened = &av->fid;
    return 0;
}
