#define _GNU_SOURCE
#include "part.h"
#include "handle_map.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* The mapped end of the file grows by this much at a time. */
#define WINDOW_BYTES ((size_t)1 << 20)
/* Kept free at the end of every window, so that a part says how it ends also when the file cannot grow. */
#define END_BYTES (1 + NUMBER_MAX)

static struct {
    int file;
    pid_t process; /* a forked child must not touch its parent's part */
    uint64_t window_offset;
    size_t window_size;
    uint8_t *window;
    uint64_t end; /* offset behind the last record */
    bool stopped;
} part = {.file = -1};

static void stop(const char *doing, int error)
{
    fprintf(stderr, "weft record: %s: %s; this rank's recording ends here\n", doing, strerror(error));
    part.stopped = true;
}

/* Writes the end record into the window, which has room for it. */
static void put_end(enum part_end reason)
{
    part_commit(RECORD_END, put_number(part.window + (part.end - part.window_offset) + 1, reason));
}

/* Takes the blocks of `size` bytes from `offset`: a store into a hole on a full disk would be a SIGBUS in the middle
 * of the program. Returns 0 or an error. */
static int take_blocks(uint64_t offset, size_t size)
{
    /* A file beyond the limit of its size is a signal that ends the program: ask first. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && offset + size > limit.rlim_cur)
        return EFBIG;
    return posix_fallocate(part.file, (off_t)offset, (off_t)size);
}

/* Moves the window so that at least `room` bytes behind the last record are mapped, and an end record fits behind
 * them. */
static bool move_window(size_t room)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t offset = part.end / page * page;
    size_t needed = (size_t)(part.end - offset) + room + END_BYTES;
    size_t size = needed <= WINDOW_BYTES ? WINDOW_BYTES : (needed + page - 1) / page * page;
    int error = take_blocks(offset, size);
    if (error) {
        if (part.window)
            put_end(END_NO_ROOM);
        stop("no room for the part", error);
        return false;
    }
    if (part.window)
        munmap(part.window, part.window_size);
    part.window = NULL;
    part.window_size = 0;
    void *window = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, part.file, (off_t)offset);
    if (window == MAP_FAILED) {
        stop("cannot map the part", errno);
        return false;
    }
    part.window = window;
    part.window_offset = offset;
    part.window_size = size;
    return true;
}

static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
    for (int byte = 0; byte < 4; byte++)
        *at++ = (uint8_t)(value >> (8 * byte));
    return at;
}

static uint8_t *put_text(uint8_t *at, const char *text, size_t length)
{
    at = put_u32(at, (uint32_t)length);
    memcpy(at, text, length);
    return at + length;
}

/* This process's arguments, each with a closing NUL byte. */
static size_t read_command(char *buffer, size_t size)
{
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    size_t length = 0;
    ssize_t got;
    while (length < size && (got = read(file, buffer + length, size - length)) > 0)
        length += (size_t)got;
    close(file);
    return length;
}

/* True where the part is open, or cannot be for lack of room. */
static bool open_part(const char *directory, const struct part_header *header)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/rank-%05u.part", directory, header->rank) >= sizeof path) {
        fprintf(stderr, "weft record: the path of the parts is too long: %s\n", directory);
        return false;
    }
    part.file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (part.file < 0 && (errno == ENOSPC || errno == EDQUOT)) {
        stop("no room for the part", errno);
        return true;
    }
    if (part.file < 0) {
        fprintf(stderr, "weft record: cannot create %s: %s%s\n", path, strerror(errno),
                errno == EEXIST ? "; one recording holds one MPI program, this one is not recorded" : "");
        return false;
    }
    part.process = getpid();
    static char command[1 << 16];
    size_t command_length = read_command(command, sizeof command);
    size_t library_length = strlen(header->library);
    if (!move_window(8 + 8 * 4 + 2 * 4 + library_length + command_length))
        return true;
    uint8_t *at = part.window;
    uint8_t *magic = at;
    at += 8;
    at = put_u32(at, PART_VERSION);
    at = put_u32(at, header->rank);
    at = put_u32(at, header->size);
    at = put_u32(at, (uint32_t)part.process);
    at = put_u32(at, header->clock_cost_ns);
    at = put_u32(at, header->thread_level);
    at = put_u32(at, header->mpi_version[0]);
    at = put_u32(at, header->mpi_version[1]);
    at = put_text(at, header->library, library_length);
    at = put_text(at, command, command_length);
    memcpy(magic, "weftpart", 8);
    part.end = (uint64_t)(at - part.window);
    return true;
}

bool part_open(const char *directory, const struct part_header *header)
{
    bool opened = open_part(directory, header);
    part.stopped = part.stopped || !opened;
    return opened;
}

uint8_t *part_begin(size_t most)
{
    if (__builtin_expect(part.stopped, 0))
        return NULL;
    size_t at = (size_t)(part.end - part.window_offset);
    if (__builtin_expect(at + 1 + most + END_BYTES > part.window_size, 0)) {
        if (!move_window(1 + most))
            return NULL;
        at = (size_t)(part.end - part.window_offset);
    }
    return part.window + at + 1;
}

uint64_t part_commit(enum record_tag tag, const uint8_t *end)
{
    uint64_t offset = part.end;
    uint8_t *start = part.window + (offset - part.window_offset);
    __atomic_store_n(start, (uint8_t)tag, __ATOMIC_RELEASE);
    part.end = offset + (uint64_t)(end - start);
    return offset;
}

void part_patch(uint64_t offset, const void *bytes, size_t count)
{
    if (offset == 0)
        return;
    if (part.window && offset >= part.window_offset) {
        memcpy(part.window + (offset - part.window_offset), bytes, count);
        return;
    }
    /* Outside the window: the page cache is one, so a write through the file is seen by every reader. */
    if (pwrite(part.file, bytes, count, (off_t)offset) != (ssize_t)count)
        stop("cannot complete an earlier record", errno);
}

void part_close(enum part_end reason)
{
    if (part.file < 0 || part.process != getpid())
        return;
    if (part.window && !part.stopped)
        put_end(reason);
    if (part.window)
        munmap(part.window, part.window_size);
    part.window = NULL;
    if (ftruncate(part.file, (off_t)part.end) != 0)
        fprintf(stderr, "weft record: cannot cut a part to its length: %s\n", strerror(errno));
    close(part.file);
    part.file = -1;
    part.stopped = true;
}
