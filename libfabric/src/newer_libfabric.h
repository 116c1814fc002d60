/* The newer libfabrics that load this provider, for headers as old as 1.17.
 *
 * The provider is built against the headers that are installed: Debian 12 has those of 1.17. The library that loads it
 * may be newer: the MPICH wheel carries 2.5. Between 1.17 and 2.6 no structure and no constant that the provider uses
 * has changed, but some have grown. This file has all that a newer library reads and older headers do not name.
 *
 *   fi_domain_attr    grew in 1.20, 2.0 and 2.5: the core copies all of it, so it is allocated in full (below)
 *   fi_ops_av         grew in 1.20: the core looks at `size` before it calls what may be missing
 *   fi_cq_err_entry   grew in 1.20: the program allocates it, and the provider leaves the new member alone
 *   fi_mr_attr        grew in 1.19 and 2.0: the program allocates it, and the provider reads the old members only
 *
 * All other structures that pass between library and provider have the same layout in 1.17 and 2.6.
 */
#ifndef NEWER_LIBFABRIC_H
#define NEWER_LIBFABRIC_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

/* The newest interface that the provider knows. The core passes over a provider older than the program asks for. */
#define WEFT_API_VERSION FI_VERSION(2, 6)

#define HEADERS_BEFORE(major, minor) (FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) < FI_VERSION(major, minor))

/* ---- Constants: never asked for by a library that does not know them --------------------------------------------- */

#if HEADERS_BEFORE(1, 21)
#define FI_CNTR_EVENTS_BYTES 1 /* enum fi_cntr_events: the counter counts bytes */
#endif

#if HEADERS_BEFORE(1, 22)
enum { /* options of endpoints: the largest injected message of each kind, in bytes */
    FI_OPT_INJECT_MSG_SIZE = 16,
    FI_OPT_INJECT_TAGGED_SIZE = 17,
    FI_OPT_INJECT_RMA_SIZE = 18,
};
#endif

#if HEADERS_BEFORE(2, 0)
#define FI_TAGGED_MULTI_RECV (UINT64_C(1) << 46)   /* capabilities that the provider refuses */
#define FI_EXACT_DIRECTED_RECV (UINT64_C(1) << 48)
#endif

#define WEFT_MR_BASIC 1 /* FI_MR_BASIC, whose macro warns from 2.0 on where it is used */

/* ---- fi_domain_attr ---------------------------------------------------------------------------------------------- */

/* The size of 1.17's structure, which ends with `tclass`, by the headers of any version. */
#define DOMAIN_ATTR_1_17 \
    ((offsetof(struct fi_domain_attr, tclass) + sizeof(uint32_t) + _Alignof(size_t) - 1) & -_Alignof(size_t))

union weft_domain_attr {
    struct fi_domain_attr installed;
    struct {
        _Alignas(struct fi_domain_attr) unsigned char old[DOMAIN_ATTR_1_17];
        size_t max_ep_auth_key;      /* 1.20; 0: none */
        uint32_t max_group_id;       /* 2.0; 0: no groups */
        uint64_t max_cntr_value;     /* 2.5 */
        uint64_t max_err_cntr_value; /* 2.5 */
    } newest;
};

#if HEADERS_BEFORE(1, 20)
_Static_assert(sizeof(struct fi_domain_attr) == DOMAIN_ATTR_1_17, "tclass is the last member in 1.17");
#else
_Static_assert(offsetof(struct fi_domain_attr, max_ep_auth_key) == DOMAIN_ATTR_1_17, "1.20 continues behind tclass");
#endif
_Static_assert(sizeof(((union weft_domain_attr *)0)->newest) == 224, "the size in 2.6");

#endif
