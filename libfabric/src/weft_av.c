/* The address vector: from the names of endpoints to ranks of the job, with their endpoints, and back. */
#include "weft_fi.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct weft_name weft_name_of(const struct weft_process *process, struct weft_peer peer)
{
    return (struct weft_name){
        .job = process->job,
        .rank = peer.rank,
        .endpoint = (uint16_t)peer.endpoint,
        .version = WEFT_NAME_VERSION,
    };
}

/* The place of the addresses of ranks' endpoints of this number; NULL: there is none. */
static fi_addr_t **addresses_of(const struct weft_av *av, uint32_t endpoint)
{
    if (endpoint == 0)
        return (fi_addr_t **)&av->addresses;
    return av->others ? &(*av->others)[endpoint] : NULL;
}

fi_addr_t weft_av_address(const struct weft_av *av, struct weft_peer peer)
{
    if (peer.rank >= av->domain->fabric->process->count)
        return FI_ADDR_NOTAVAIL;
    fi_addr_t *const *addresses = addresses_of(av, peer.endpoint);
    return addresses && *addresses ? (*addresses)[peer.rank] : FI_ADDR_NOTAVAIL;
}

/* The endpoint that a name stands for, WEFT_NOBODY: not of this job, or none that a rank can have. */
static struct weft_peer peer_named(const struct weft_process *process, const struct weft_name *name)
{
    if (name->version != WEFT_NAME_VERSION || name->job != process->job || name->rank >= process->count ||
        name->endpoint >= WEFT_ENDPOINTS)
        return WEFT_NOBODY;
    return (struct weft_peer){.rank = name->rank, .endpoint = name->endpoint};
}

/* Makes room for the addresses of ranks' endpoints of this number; NULL: there is no memory. */
static fi_addr_t *room_for(struct weft_av *av, uint32_t endpoint)
{
    if (endpoint && !av->others && !(av->others = calloc(1, sizeof *av->others)))
        return NULL;
    fi_addr_t **addresses = addresses_of(av, endpoint);
    uint32_t ranks = av->domain->fabric->process->count;
    if (!*addresses && (*addresses = malloc(ranks * sizeof **addresses)))
        for (uint32_t i = 0; i < ranks; i++)
            (*addresses)[i] = FI_ADDR_NOTAVAIL;
    return *addresses;
}

static fi_addr_t insert_one(struct weft_av *av, struct weft_peer peer)
{
    fi_addr_t address = (fi_addr_t)peer.endpoint << 32 | peer.rank, *addresses = room_for(av, peer.endpoint);
    if (!addresses)
        return FI_ADDR_NOTAVAIL;
    if (av->type == FI_AV_TABLE) {
        if (av->count == av->capacity) {
            size_t capacity = av->capacity ? 2 * av->capacity : 32;
            struct weft_peer *peers = realloc(av->peers, capacity * sizeof *peers);
            if (!peers)
                return FI_ADDR_NOTAVAIL;
            av->peers = peers;
            av->capacity = capacity;
        }
        address = av->count;
        av->peers[av->count++] = peer;
    }
    /* An endpoint that is inserted twice is reported by its first address. */
    if (addresses[peer.rank] == FI_ADDR_NOTAVAIL)
        addresses[peer.rank] = address;
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
        struct weft_peer peer = peer_named(av->domain->fabric->process, &name);
        fi_addr_t address = peer.rank == WEFT_NO_RANK ? FI_ADDR_NOTAVAIL : insert_one(av, peer);
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
        struct weft_peer peer = weft_av_peer(av, addresses[i]);
        if (peer.rank == WEFT_NO_RANK || weft_av_address(av, peer) == FI_ADDR_NOTAVAIL)
            return -FI_EINVAL;
        if (av->type == FI_AV_TABLE)
            av->peers[addresses[i]] = WEFT_NOBODY;
        fi_addr_t *reported = &(*addresses_of(av, peer.endpoint))[peer.rank];
        if (*reported == addresses[i])
            *reported = FI_ADDR_NOTAVAIL;
    }
    return 0;
}

static int av_lookup(struct fid_av *fid, fi_addr_t address, void *name, size_t *length)
{
    struct weft_av *av = CONTAINER_OF(fid, struct weft_av, fid);
    struct weft_process *process = av->domain->fabric->process;
    struct weft_peer peer = weft_av_peer(av, address);
    if (peer.rank >= process->count) /* WEFT_NO_RANK too */
        return -FI_EINVAL;
    struct weft_name found = weft_name_of(process, peer);
    memcpy(name, &found, *length < sizeof found ? *length : sizeof found);
    *length = sizeof found;
    return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *address, char *buffer, size_t *length)
{
    (void)fid;
    struct weft_name name;
    memcpy(&name, address, sizeof name);
    int needed = snprintf(buffer, *length, "weft://%016" PRIx64 "/%" PRIu32 "/%u", name.job, name.rank, name.endpoint);
    *length = (size_t)needed + 1;
    return buffer;
}

static int av_close(struct fid *fid)
{
    struct weft_av *av = CONTAINER_OF(fid, struct weft_av, fid.fid);
    if (av->references)
        return -FI_EBUSY;
    av->domain->references--;
    free(av->peers);
    free(av->addresses);
    for (uint32_t i = 1; av->others && i < WEFT_ENDPOINTS; i++)
        free((*av->others)[i]);
    free(av->others);
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
    if (!room_for(av, 0)) {
        free(av);
        return -FI_ENOMEM;
    }
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
