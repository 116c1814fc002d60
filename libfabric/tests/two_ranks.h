/* Shared by the tests of the provider: two ranks, their objects, and checks. */
#ifndef TWO_RANKS_H
#define TWO_RANKS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_fi.h"

/* One of two ranks, opened as a program would: through the provider's operations, without libfabric's core. */
struct side {
    unsigned rank;
    struct fi_provider *provider;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_cntr *counter; /* of writes and reads */
    struct fid_ep *endpoint;
    fi_addr_t own, peer;
    int failed;
};

#define EXPECT(side, condition) expect(side, condition, #condition, __FILE__, __LINE__)

static inline void expect(struct side *side, bool good, const char *text, const char *file, int line)
{
    if (good)
        return;
    side->failed++;
    printf("FAILED  rank %u, %s:%d: %s\n", side->rank, strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, text);
    fflush(stdout);
}

/* Waits for one completion in a queue: 1, or the negative of its error. */
static inline int complete_in(struct fid_cq *cq, struct fi_cq_tagged_entry *entry, fi_addr_t *source,
                              struct fi_cq_err_entry *error)
{
    ssize_t result;
    while ((result = fi_cq_readfrom(cq, entry, 1, source)) == -FI_EAGAIN)
        ;
    if (result != -FI_EAVAIL)
        return (int)result;
    struct fi_cq_err_entry own = {0};
    if (!error)
        error = &own;
    *error = (struct fi_cq_err_entry){0};
    return fi_cq_readerr(cq, error, 0) == 1 ? -error->err : -FI_EOTHER;
}

static inline int complete(struct side *side, struct fi_cq_tagged_entry *entry, fi_addr_t *source,
                           struct fi_cq_err_entry *error)
{
    return complete_in(side->cq, entry, source, error);
}

/* A post that the interface has no room for is tried again while it makes progress. */
#define POSTED(side, call)                                                                                     \
    do {                                                                                                       \
        ssize_t posted;                                                                                        \
        while ((posted = (call)) == -FI_EAGAIN)                                                                \
            fi_cq_read((side)->cq, NULL, 0);                                                                   \
        EXPECT(side, posted == 0);                                                                             \
    } while (0)

#define TAG_OF_BARRIER UINT64_C(0xba881e8)

/* A barrier of the two ranks. */
static inline void barrier(struct side *side)
{
    char in = 0, out = 'b';
    struct fi_cq_tagged_entry entry;
    fi_trecv(side->endpoint, &in, 1, NULL, side->peer, TAG_OF_BARRIER, 0, &in);
    while (fi_tinject(side->endpoint, &out, 1, side->peer, TAG_OF_BARRIER) == -FI_EAGAIN)
        fi_cq_read(side->cq, NULL, 0);
    EXPECT(side, complete(side, &entry, NULL, NULL) == 1 && entry.op_context == &in);
}

void info_free(struct fi_info *info);
void test_info(struct side *side);
void test_objects(struct side *side);
void test_messages(struct side *side);
void test_tagged(struct side *side);
void test_rma(struct side *side);
void test_endpoints(struct side *side);

#endif
