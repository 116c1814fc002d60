/* The computation of reductions: the predefined operations and types of MPI, as a part has them. Whatever is not here
 * is one that the program has made, or a type that is no plain number. */
#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>

/* Types are told apart by their kind and their size: MPI_LONG has another size elsewhere. */
enum number_kind { SIGNED, UNSIGNED, FLOATING };

/* As in openmpi_handles.h: Open MPI's handles are variables of its library, looked up at MPI_Init. */
struct named {
    uintptr_t key; /* of the handle */
    unsigned number;
#ifdef OPEN_MPI
    const char *symbol;
#endif
};
#ifdef OPEN_MPI
#define NAMED(handle, variable, number) {0, number, "ompi_mpi_" #variable},
#else
#define NAMED(handle, variable, number) {HANDLE_KEY(handle), number},
#endif

static struct named operations[] = {
    NAMED(MPI_MAX, op_max, REDUCTION_MAX)
    NAMED(MPI_MIN, op_min, REDUCTION_MIN)
    NAMED(MPI_SUM, op_sum, REDUCTION_SUM)
    NAMED(MPI_PROD, op_prod, REDUCTION_PROD)
    NAMED(MPI_LAND, op_land, REDUCTION_LAND)
    NAMED(MPI_BAND, op_band, REDUCTION_BAND)
    NAMED(MPI_LOR, op_lor, REDUCTION_LOR)
    NAMED(MPI_BOR, op_bor, REDUCTION_BOR)
    NAMED(MPI_LXOR, op_lxor, REDUCTION_LXOR)
    NAMED(MPI_BXOR, op_bxor, REDUCTION_BXOR)
    NAMED(MPI_MINLOC, op_minloc, REDUCTION_MINLOC)
    NAMED(MPI_MAXLOC, op_maxloc, REDUCTION_MAXLOC)
};

static struct named types[] = {
    NAMED(MPI_DOUBLE, double, FLOATING)
    NAMED(MPI_INT, int, SIGNED)
    NAMED(MPI_FLOAT, float, FLOATING)
    NAMED(MPI_LONG, long, SIGNED)
    NAMED(MPI_LONG_LONG, long_long_int, SIGNED)
    NAMED(MPI_UNSIGNED, unsigned, UNSIGNED)
    NAMED(MPI_UNSIGNED_LONG, unsigned_long, UNSIGNED)
    NAMED(MPI_UNSIGNED_LONG_LONG, unsigned_long_long, UNSIGNED)
    NAMED(MPI_SHORT, short, SIGNED)
    NAMED(MPI_UNSIGNED_SHORT, unsigned_short, UNSIGNED)
    NAMED(MPI_SIGNED_CHAR, signed_char, SIGNED)
    NAMED(MPI_UNSIGNED_CHAR, unsigned_char, UNSIGNED)
    NAMED(MPI_INT8_T, int8_t, SIGNED)
    NAMED(MPI_INT16_T, int16_t, SIGNED)
    NAMED(MPI_INT32_T, int32_t, SIGNED)
    NAMED(MPI_INT64_T, int64_t, SIGNED)
    NAMED(MPI_UINT8_T, uint8_t, UNSIGNED)
    NAMED(MPI_UINT16_T, uint16_t, UNSIGNED)
    NAMED(MPI_UINT32_T, uint32_t, UNSIGNED)
    NAMED(MPI_UINT64_T, uint64_t, UNSIGNED)
    NAMED(MPI_AINT, aint, SIGNED)
    NAMED(MPI_OFFSET, offset, SIGNED)
    NAMED(MPI_COUNT, count, SIGNED)
    NAMED(MPI_INTEGER, integer, SIGNED)
    NAMED(MPI_INTEGER1, integer1, SIGNED)
    NAMED(MPI_INTEGER2, integer2, SIGNED)
    NAMED(MPI_INTEGER4, integer4, SIGNED)
    NAMED(MPI_INTEGER8, integer8, SIGNED)
    NAMED(MPI_REAL, real, FLOATING)
    NAMED(MPI_REAL4, real4, FLOATING)
    NAMED(MPI_REAL8, real8, FLOATING)
    NAMED(MPI_DOUBLE_PRECISION, dblprec, FLOATING)
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

void reductions_start(void)
{
#ifdef OPEN_MPI
    for (size_t i = 0; i < LENGTH(operations); i++)
        operations[i].key = (uintptr_t)dlsym(RTLD_DEFAULT, operations[i].symbol);
    for (size_t i = 0; i < LENGTH(types); i++)
        types[i].key = (uintptr_t)dlsym(RTLD_DEFAULT, types[i].symbol);
#endif
}

static const struct named *find(const struct named *all, size_t length, uintptr_t key)
{
    for (size_t i = 0; i < length; i++)
        if (all[i].key == key)
            return &all[i];
    return NULL;
}

static enum data_type data_type_of(enum number_kind kind, uint64_t bytes)
{
    static const enum data_type types[][4] = {
        [SIGNED] = {DATA_INT8, DATA_INT16, DATA_INT32, DATA_INT64},
        [UNSIGNED] = {DATA_UINT8, DATA_UINT16, DATA_UINT32, DATA_UINT64},
        [FLOATING] = {DATA_OTHER, DATA_OTHER, DATA_FLOAT32, DATA_FLOAT64},
    };
    switch (bytes) {
    case 1: return types[kind][0];
    case 2: return types[kind][1];
    case 4: return types[kind][2];
    case 8: return types[kind][3];
    default: return DATA_OTHER;
    }
}

struct elements elements_of(MPI_Datatype type, MPI_Op op)
{
    struct elements elements = {type_bytes(1, type), DATA_OTHER, REDUCTION_OTHER};
    const struct named *known = find(types, LENGTH(types), HANDLE_KEY(type));
    if (known)
        elements.type = data_type_of(known->number, elements.bytes);
    known = find(operations, LENGTH(operations), HANDLE_KEY(op));
    if (known)
        elements.operation = known->number;
    return elements;
}
