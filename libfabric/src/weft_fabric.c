/* The fabric: the job's simulated network, as this process sees it. */
#include "weft_fi.h"

#include <stdlib.h>

/* Calls that no object of this provider supports. */
int weft_no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid, (void)other, (void)flags;
    return -FI_ENOSYS;
}

int weft_no_control(struct fid *fid, int command, void *argument)
{
    (void)fid, (void)command, (void)argument;
    return -FI_ENOSYS;
}

int weft_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
    (void)fid, (void)name, (void)flags, (void)ops, (void)context;
    return -FI_ENOSYS;
}

static int no_passive_ep(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **endpoint, void *context)
{
    (void)fid, (void)info, (void)endpoint, (void)context;
    return -FI_ENOSYS;
}

static int no_wait_open(struct fid_fabric *fid, struct fi_wait_attr *attr, struct fid_wait **wait)
{
    (void)fid, (void)attr, (void)wait;
    return -FI_ENOSYS;
}

/* Nothing here can be waited for with a file descriptor, so there is never an obstacle to it. */
static int trywait(struct fid_fabric *fid, struct fid **fids, int count)
{
    (void)fid, (void)fids, (void)count;
    return -FI_ENOSYS;
}

static int fabric_close(struct fid *fid)
{
    struct weft_fabric *fabric = CONTAINER_OF(fid, struct weft_fabric, fid.fid);
    if (fabric->references)
        return -FI_EBUSY;
    struct weft_process *process = fabric->process;
    weft_process_lock(process);
    if (--process->fabrics == 0) {
        process->library.close(process->rank);
        process->rank = NULL;
    }
    weft_process_unlock(process);
    free(fabric);
    return 0;
}

static struct fi_ops fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = fabric_close,
    .bind = weft_no_bind,
    .control = weft_no_control,
    .ops_open = weft_no_ops_open,
};

static struct fi_ops_fabric fabric_ops = {
    .size = sizeof(struct fi_ops_fabric),
    .domain = weft_domain_open,
    .passive_ep = no_passive_ep,
    .eq_open = weft_eq_open,
    .wait_open = no_wait_open,
    .trywait = trywait,
};

int weft_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **opened, void *context)
{
    (void)attr;
    struct weft_process *process;
    int result = weft_process_join(&process);
    if (result)
        return result;
    struct weft_fabric *fabric = calloc(1, sizeof *fabric);
    if (!fabric)
        return -FI_ENOMEM;
    result = weft_tunables_read(&fabric->tunables);
    if (result) {
        free(fabric);
        return result;
    }
    fabric->fid.fid.fclass = FI_CLASS_FABRIC;
    fabric->fid.fid.context = context;
    fabric->fid.fid.ops = &fid_ops;
    fabric->fid.ops = &fabric_ops;
    fabric->process = process;
    weft_process_lock(process);
    process->fabrics++;
    weft_process_unlock(process);
    *opened = &fabric->fid;
    return 0;
}
