/* From MPI_Init to the end of the process. */
#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "functions.h"

/* The directory of the parts. Unset: nothing is recorded. */
#define PARTS_VARIABLE "WEFT_RECORD_PARTS"

#ifdef OPEN_MPI
struct openmpi_handles openmpi_handles;

static void find_openmpi_handles(void)
{
    openmpi_handles.comm_world = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
    openmpi_handles.comm_self = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_self");
    openmpi_handles.comm_null = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_null");
    openmpi_handles.group_null = dlsym(RTLD_DEFAULT, "ompi_mpi_group_null");
    openmpi_handles.request_null = dlsym(RTLD_DEFAULT, "ompi_request_null");
    openmpi_handles.message_no_proc = dlsym(RTLD_DEFAULT, "ompi_message_no_proc");
    openmpi_handles.byte = dlsym(RTLD_DEFAULT, "ompi_mpi_byte");
}
#endif

static int promote(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    const char *name = strrchr(object->dlpi_name, '/');
    name = name ? name + 1 : object->dlpi_name;
    if (strncmp(name, "libmpi.so", 9) == 0 || strncmp(name, "libmpi_abi.so", 13) == 0 ||
        strncmp(name, "libmpich.so", 11) == 0)
        dlopen(object->dlpi_name, RTLD_NOLOAD | RTLD_GLOBAL | RTLD_LAZY);
    return 0;
}

/* Before the first PMPI call: Python modules load the MPI library for themselves only, where the recorder's PMPI
 * symbols are not looked for. */
static void find_library(void)
{
    if (!dlsym(RTLD_DEFAULT, "PMPI_Init"))
        dl_iterate_phdr(promote, NULL);
#ifdef OPEN_MPI
    find_openmpi_handles();
    bool other = openmpi_handles.comm_world == NULL;
#else
    bool other = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != NULL;
#endif
    if (other) {
        fputs("weft record: the recorder that is loaded was built for another MPI than the program's; name the right "
              "one with `weft record --mpi`\n",
              stderr);
        exit(2);
    }
}

static void close_at_exit(void)
{
    part_close(END_EXIT);
}

static uint32_t level_number(int level)
{
    return level == MPI_THREAD_MULTIPLE ? 3 : level == MPI_THREAD_SERIALIZED ? 2 : level == MPI_THREAD_FUNNELED ? 1 : 0;
}

/* Whether all ranks take part in recording: together or not at all, since recording broadcasts ids. Asking would take
 * virtual time. So under `weft run`, which has one program per folder, a rank without a part takes part and writes
 * nothing. */
static bool all_open(char opened)
{
    if (clock_is_virtual())
        return true;
    char *all = allocate((size_t)recorder.size, 1);
    PMPI_Allgather(&opened, 1, MPI_BYTE, all, 1, MPI_BYTE, MPI_COMM_WORLD);
    bool all_opened = memchr(all, 0, (size_t)recorder.size) == NULL;
    free(all);
    return all_opened;
}

/* MPI is up: the recording begins. */
static void start(void)
{
    const char *directory = getenv(PARTS_VARIABLE);
    if (!directory)
        return;
    int level, length, version, subversion;
    static char library[MPI_MAX_LIBRARY_VERSION_STRING];
    PMPI_Comm_rank(MPI_COMM_WORLD, &recorder.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &recorder.size);
    PMPI_Query_thread(&level);
    PMPI_Get_library_version(library, &length);
    PMPI_Get_version(&version, &subversion);
    recorder.threaded = level == MPI_THREAD_MULTIPLE;
    recorder.clock_cost_ns = clock_cost_ns();
    struct part_header header = {
        .rank = (uint32_t)recorder.rank,
        .size = (uint32_t)recorder.size,
        .clock_cost_ns = recorder.clock_cost_ns,
        .thread_level = level_number(level),
        .mpi_version = {(uint32_t)version, (uint32_t)subversion},
        .library = library,
    };
    /* All or none: a rank that records takes part in broadcasts that the others must know of. */
    if (!all_open(part_open(directory, &header)))
        return;
    communicators_start();
    reductions_start();
    atexit(close_at_exit);
    recorder_begin_time();
    recorder.active = true;
}

int MPI_Init(int *argc, char ***argv)
{
    find_library();
    int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS)
        start();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    find_library();
    int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS)
        start();
    return result;
}

int MPI_Finalize(void)
{
    if (!recorder_enter(F_MPI_Finalize))
        return PMPI_Finalize();
    recorder_lock();
    record_computation();
    recorder.active = false;
    part_close(END_FINALIZE);
    recorder_unlock();
    return PMPI_Finalize();
}

int MPI_Abort(MPI_Comm comm, int code)
{
    if (recorder_enter(F_MPI_Abort)) {
        recorder_lock();
        record_computation();
        recorder.active = false;
        part_close(END_ABORT);
        recorder_unlock();
    }
    return PMPI_Abort(comm, code);
}

int MPI_Pcontrol(const int level, ...)
{
    /* MPI defines no meaning for the arguments after the level: they are ignored. */
    if (!recorder_enter(F_MPI_Pcontrol))
        return PMPI_Pcontrol(level);
    int result = PMPI_Pcontrol(level);
    char text[32];
    size_t length = (size_t)snprintf(text, sizeof text, "pcontrol %d", level);
    recorder_lock();
    record_computation();
    uint8_t *at = part_begin(NUMBER_MAX + sizeof text);
    if (at) {
        at = put_number(at, length);
        memcpy(at, text, length);
        part_commit(RECORD_MARKER, at + length);
    }
    recorder_unlock();
    recorder_leave();
    return result;
}
