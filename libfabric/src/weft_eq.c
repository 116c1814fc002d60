/* The event queue: always empty, as nothing but data transfer is asynchronous here. Programs open one all the same. */
#include "weft_fi.h"

#include <stdlib.h>
#include <string.h>

struct weft_eq {
    struct fid_eq fid;
    struct weft_fabric *fabric;
};

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buffer, size_t length, uint64_t flags)
{
    (void)fid, (void)event, (void)buffer, (void)length, (void)flags;
    return -FI_EAGAIN;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *entry, uint64_t flags)
{
    (void)fid, (void)entry, (void)flags;
    return -FI_EAGAIN;
}

static ssize_t no_write(struct fid_eq *fid, uint32_t event, const void *buffer, size_t length, uint64_t flags)
{
    (void)fid, (void)event, (void)buffer, (void)length, (void)flags;
    return -FI_ENOSYS;
}

static ssize_t no_sread(struct fid_eq *fid, uint32_t *event, void *buffer, size_t length, int timeout, uint64_t flags)
{
    (void)fid, (void)event, (void)buffer, (void)length, (void)timeout, (void)flags;
    return -FI_ENOSYS;
}

static const char *eq_strerror(struct fid_eq *fid, int provider_error, const void *data, char *buffer, size_t length)
{
    (void)fid, (void)data, (void)buffer, (void)length;
    return strerror(provider_error);
}

static int eq_close(struct fid *fid)
{
    struct weft_eq *eq = CONTAINER_OF(fid, struct weft_eq, fid.fid);
    eq->fabric->references--;
    free(eq);
    return 0;
}

static struct fi_ops fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = eq_close,
    .bind = weft_no_bind,
    .control = weft_no_control,
    .ops_open = weft_no_ops_open,
};

static struct fi_ops_eq eq_ops = {
    .size = sizeof(struct fi_ops_eq),
    .read = eq_read,
    .readerr = eq_readerr,
    .write = no_write,
    .sread = no_sread,
    .strerror = eq_strerror,
};

int weft_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **opened, void *context)
{
    if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
        return -FI_ENOSYS;
    struct weft_eq *eq = calloc(1, sizeof *eq);
    if (!eq)
        return -FI_ENOMEM;
    eq->fabric = CONTAINER_OF(fid, struct weft_fabric, fid);
    eq->fabric->references++;
    eq->fid.fid.fclass = FI_CLASS_EQ;
    eq->fid.fid.context = context;
    eq->fid.fid.ops = &fid_ops;
    eq->fid.ops = &eq_ops;
    *opened = &eq->fid;
    return 0;
}
