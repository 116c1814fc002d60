/* One rank's part of a recording: an append-only file, described in recorder/PARTS.md.
 *
 * The end of the file is mapped into memory, so what is recorded is in the kernel's page cache at once: a rank that
 * is killed loses nothing but the record that it was writing. A record's tag byte is stored after its body, and
 * what lies behind the last record is zero, so a reader never sees half a record.
 */
#ifndef WEFT_RECORDER_PART_H
#define WEFT_RECORDER_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PART_VERSION 3

enum record_tag {
    RECORD_NONE = 0,
    RECORD_COMPUTE = 1,
    RECORD_SEND = 2,
    RECORD_ISEND = 3,
    RECORD_RECEIVE = 4,
    RECORD_IRECEIVE = 5,
    RECORD_CANCELLED_SEND = 6,
    RECORD_CANCELLED_RECEIVE = 7,
    RECORD_WAIT = 8,
    RECORD_WAITALL = 9,
    RECORD_WAITANY = 10,
    RECORD_COLLECTIVE = 11,
    RECORD_COMMUNICATOR = 12,
    RECORD_WINDOW = 13,
    RECORD_ONE_SIDED = 14,
    RECORD_SYNC = 15,
    RECORD_MARKER = 16,
    RECORD_NAME = 17,
    RECORD_UNRECORDED = 18,
    RECORD_END = 19,
    RECORD_PROBE = 20,
    RECORD_IPROBE = 21, /* a test that has found a message */
};

/* Why a part ends. */
enum part_end { END_FINALIZE = 1, END_EXIT = 2, END_ABORT = 3, END_NO_ROOM = 4 };

struct part_header {
    uint32_t rank;
    uint32_t size;
    uint32_t clock_cost_ns;
    uint32_t thread_level; /* 0 single, 1 funneled, 2 serialized, 3 multiple */
    uint32_t mpi_version[2]; /* of the standard, such as 3, 1 */
    const char *library;   /* MPI_Get_library_version */
};

/* The longest unsigned number in a record (LEB128 of 64 bits). */
#define NUMBER_MAX 10

/* Creates DIRECTORY/rank-NNNNN.part. False, with a message on standard error, if it cannot. Without room on the disk it
 * says so, and nothing is recorded; this is true all the same, since the rank takes part in agreeing on ids. */
bool part_open(const char *directory, const struct part_header *header);

/* The place for a record's body of at most `most` bytes; NULL once recording has stopped (disk full). */
uint8_t *part_begin(size_t most);

/* Ends the record begun last: its body ends before `end`. Returns the record's offset in the file. */
uint64_t part_commit(enum record_tag tag, const uint8_t *end);

/* Overwrites bytes of an earlier record. Offset 0 stands for a record that was not written. */
void part_patch(uint64_t offset, const void *bytes, size_t count);

/* Writes the end record and cuts the file to its length. Nothing if this process has no open part. */
void part_close(enum part_end reason);

static inline uint8_t *put_number(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Signed numbers: 0, -1, 1, -2, … become 0, 1, 2, 3, … */
static inline uint64_t zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

#endif
