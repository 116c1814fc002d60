/* Atomic operations are not offered. Programs call fi_atomicvalid and its like all the same: each returns an error. */
#include "weft_fi.h"

static int not_valid(struct fid_ep *fid, enum fi_datatype type, enum fi_op operation, size_t *count)
{
    (void)fid, (void)type, (void)operation;
    *count = 0;
    return -FI_EOPNOTSUPP;
}

static ssize_t no_write(struct fid_ep *fid, const void *buffer, size_t count, void *descriptor, fi_addr_t to,
                        uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op operation, void *context)
{
    (void)fid, (void)buffer, (void)count, (void)descriptor, (void)to, (void)address, (void)key, (void)type;
    (void)operation, (void)context;
    return -FI_EOPNOTSUPP;
}

static ssize_t no_writev(struct fid_ep *fid, const struct fi_ioc *pieces, void **descriptors, size_t count,
                         fi_addr_t to, uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op operation,
                         void *context)
{
    (void)fid, (void)pieces, (void)descriptors, (void)count, (void)to, (void)address, (void)key, (void)type;
    (void)operation, (void)context;
    return -FI_EOPNOTSUPP;
}

static ssize_t no_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *message, uint64_t flags)
{
    (void)fid, (void)message, (void)flags;
    return -FI_EOPNOTSUPP;
}

static ssize_t no_inject(struct fid_ep *fid, const void *buffer, size_t count, fi_addr_t to, uint64_t address,
                         uint64_t key, enum fi_datatype type, enum fi_op operation)
{
    (void)fid, (void)buffer, (void)count, (void)to, (void)address, (void)key, (void)type, (void)operation;
    return -FI_EOPNOTSUPP;
}

static ssize_t no_readwrite(struct fid_ep *fid, const void *buffer, size_t count, void *descriptor, void *result,
                            void *result_descriptor, fi_addr_t to, uint64_t address, uint64_t key,
                            enum fi_datatype type, enum fi_op operation, void *context)
{
    (void)fid, (void)buffer, (void)count, (void)descriptor, (void)result, (void)result_descriptor, (void)to;
    (void)address, (void)key, (void)type, (void)operation, (void)context;
    return -FI_EOPNOTSUPP;
}

static ssize_t no_readwritev(struct fid_ep *fid, const struct fi_ioc *pieces, void **descriptors, size_t count,
                             struct fi_ioc *results, void **result_descriptors, size_t result_count, fi_addr_t to,
                             uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op operation,
                             void *context)
{
    (void)fid, (void)pieces, (void)descriptors, (void)count, (void)results, (void)result_descriptors;
    (void)result_count, (void)to, (void)address, (void)key, (void)type, (void)operation, (void)context;
    return -FI_EOPNOTSUPP;
}

static ssize_t no_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *message, struct fi_ioc *results,
                               void **result_descriptors, size_t result_count, uint64_t flags)
{
    (void)fid, (void)message, (void)results, (void)result_descriptors, (void)result_count, (void)flags;
    return -FI_EOPNOTSUPP;
}

static ssize_t no_compwrite(struct fid_ep *fid, const void *buffer, size_t count, void *descriptor,
                            const void *compare, void *compare_descriptor, void *result, void *result_descriptor,
                            fi_addr_t to, uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op operation,
                            void *context)
{
    (void)fid, (void)buffer, (void)count, (void)descriptor, (void)compare, (void)compare_descriptor, (void)result;
    (void)result_descriptor, (void)to, (void)address, (void)key, (void)type, (void)operation, (void)context;
    return -FI_EOPNOTSUPP;
}

static ssize_t no_compwritev(struct fid_ep *fid, const struct fi_ioc *pieces, void **descriptors, size_t count,
                             const struct fi_ioc *compares, void **compare_descriptors, size_t compare_count,
                             struct fi_ioc *results, void **result_descriptors, size_t result_count, fi_addr_t to,
                             uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op operation,
                             void *context)
{
    (void)fid, (void)pieces, (void)descriptors, (void)count, (void)compares, (void)compare_descriptors;
    (void)compare_count, (void)results, (void)result_descriptors, (void)result_count, (void)to, (void)address;
    (void)key, (void)type, (void)operation, (void)context;
    return -FI_EOPNOTSUPP;
}

static ssize_t no_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *message, const struct fi_ioc *compares,
                               void **compare_descriptors, size_t compare_count, struct fi_ioc *results,
                               void **result_descriptors, size_t result_count, uint64_t flags)
{
    (void)fid, (void)message, (void)compares, (void)compare_descriptors, (void)compare_count, (void)results;
    (void)result_descriptors, (void)result_count, (void)flags;
    return -FI_EOPNOTSUPP;
}

struct fi_ops_atomic weft_atomic_ops = {
    .size = sizeof(struct fi_ops_atomic),
    .write = no_write,
    .writev = no_writev,
    .writemsg = no_writemsg,
    .inject = no_inject,
    .readwrite = no_readwrite,
    .readwritev = no_readwritev,
    .readwritemsg = no_readwritemsg,
    .compwrite = no_compwrite,
    .compwritev = no_compwritev,
    .compwritemsg = no_compwritemsg,
    .writevalid = not_valid,
    .readwritevalid = not_valid,
    .compwritevalid = not_valid,
};
