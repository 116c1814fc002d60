/* Two ranks over virtual interfaces: what the header says of small messages, RDMA and protection domains. */
#include "weft.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 100000, MANY = 150 };

/* What a rank tells the other of itself. */
struct names {
    weft_address open, foreign, buffer, constant, secret, word;
};

static weft_rank *rank;
static uint32_t me, peer;
static weft_interface *own, *private_one;

static void fail(int line, const char *what)
{
    fprintf(stderr, "rank %u, line %d: %s\n", me, line, what);
    exit(3);
}

#define CHECK(what) ((what) ? (void)0 : fail(__LINE__, #what))

static void wait_for(uint64_t what)
{
    weft_completion done;
    while (weft_poll(rank, &done, 1) != 1)
        weft_yield(rank);
    CHECK(!done.error && (done.flags & what));
}

/* Tells the peer something, and hears as much from it: also a barrier. */
static void exchange(const void *mine, void *theirs, size_t size)
{
    weft_receive(rank, peer, 1, 0, theirs, size, WEFT_TAGGED | WEFT_COMPLETION, NULL);
    CHECK(weft_send(rank, peer, 1, mine, size, 0, WEFT_TAGGED, NULL) == 0);
    wait_for(WEFT_RECEIVED);
}

static void meet(void)
{
    char mine = 0, theirs;
    exchange(&mine, &theirs, 1);
}

/* The end of an operation: its error. */
static int end_of(weft_interface *interface, uint64_t what, const void *context)
{
    weft_interface_completion done;
    while (weft_interface_poll(interface, &done, 1) != 1)
        weft_yield(rank);
    CHECK(done.flags == what && done.context == context);
    return done.error;
}

static ptrdiff_t receive(weft_interface *interface, void *buffer, size_t size, weft_address *from)
{
    ptrdiff_t length;
    while ((length = weft_interface_receive(interface, buffer, size, from)) == -EAGAIN)
        weft_yield(rank);
    return length;
}

static int same(weft_address a, weft_address b)
{
    return a.node == b.node && a.interface == b.interface && a.domain == b.domain;
}

static void small_messages(const struct names *theirs, const struct names *mine)
{
    unsigned char bytes[256], got[256];
    size_t limit = weft_interface_limit(own);
    CHECK(limit >= 56 && limit <= sizeof bytes);
    for (size_t size = 0; size <= limit; size += limit / 2) {
        for (uint32_t turn = 0; turn < 2; turn++) {
            memset(bytes, (int)size + 1, sizeof bytes);
            if (turn == me) {
                CHECK(weft_interface_send(own, theirs->open, bytes, size, NULL) == 0);
                continue;
            }
            weft_address from;
            memset(got, 0, sizeof got);
            CHECK(receive(own, got, sizeof got, &from) == (ptrdiff_t)size);
            CHECK(same(from, theirs->open) && memcmp(bytes, got, size) == 0 && got[size] == 0);
        }
    }
    CHECK(weft_interface_send(own, theirs->open, bytes, limit + 1, NULL) == -EMSGSIZE);
    /* More than a mailbox holds, to a process that does not look: none is lost. */
    meet();
    for (uint32_t number = 0; me == 0 && number < MANY; number++)
        CHECK(weft_interface_send(own, theirs->open, &number, sizeof number, NULL) == 0);
    meet();
    char seen[MANY] = {0};
    for (int count = 0; me == 1 && count < MANY; count++) {
        uint32_t number;
        CHECK(receive(own, &number, sizeof number, NULL) == sizeof number && number < MANY && !seen[number]++);
    }
    (void)mine;
    meet();
}

static void rdma(const struct names *theirs, unsigned char *buffer, volatile uint64_t *word)
{
    static unsigned char data[BUFFER], back[BUFFER];
    static const size_t sizes[] = {1, 64, 5000, BUFFER};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        if (me == 0) {
            for (size_t at = 0; at < size; at++)
                data[at] = (unsigned char)(at * 7 + i);
            CHECK(weft_interface_write(own, data, size, theirs->buffer, theirs->word.memory, i + 1, &data) == 0);
            CHECK(end_of(own, WEFT_WRITTEN, &data) == 0);
            memset(back, 0, size);
            CHECK(weft_interface_read(own, back, size, theirs->buffer, &back) == 0);
            CHECK(end_of(own, WEFT_READ, &back) == 0);
            CHECK(memcmp(data, back, size) == 0);
        } else {
            /* The word comes behind the data. */
            weft_interface_completion none;
            while (*word != i + 1) {
                CHECK(weft_interface_poll(own, &none, 1) == 0);
                weft_yield(rank);
            }
            for (size_t at = 0; at < size; at++)
                CHECK(buffer[at] == (unsigned char)(at * 7 + i));
        }
        meet();
    }
}

static int wrote(weft_interface *from, weft_address to, size_t size)
{
    static unsigned char data[BUFFER + 8];
    memset(data, 0xee, sizeof data);
    CHECK(weft_interface_write(from, data, size, to, 0, 0, &to) == 0);
    return end_of(from, WEFT_WRITTEN, &to);
}

static int read_of(weft_interface *by, weft_address from, size_t size)
{
    static unsigned char data[BUFFER + 8];
    memset(data, 0, sizeof data);
    CHECK(weft_interface_read(by, data, size, from, &from) == 0);
    int error = end_of(by, WEFT_READ, &from);
    for (size_t at = 0; error && at < size; at++)
        CHECK(data[at] == 0);
    return error;
}

static int sent(weft_interface *by, weft_address to)
{
    CHECK(weft_interface_send(by, to, "x", 1, &to) == 0);
    return end_of(by, WEFT_SENT, &to);
}

/* What must not go through, and what is told of it. */
static void protection(const struct names *theirs)
{
    weft_address beyond = theirs->buffer, nowhere = theirs->open, nobody = theirs->open;
    beyond.memory += BUFFER - 7;
    nowhere.node = UINT32_MAX;
    nobody.interface = 40;
    CHECK(wrote(own, beyond, 8) == EACCES && read_of(own, beyond, 8) == EACCES);
    CHECK(wrote(own, theirs->constant, 8) == EACCES && read_of(own, theirs->constant, 8) == 0);
    CHECK(wrote(own, theirs->secret, 8) == EACCES && read_of(own, theirs->secret, 8) == EACCES);
    /* Another protection domain reaches nothing, in either direction, and sees the refusal. */
    CHECK(sent(private_one, theirs->open) == EACCES);
    CHECK(wrote(private_one, theirs->buffer, 64) == EACCES && read_of(private_one, theirs->buffer, 64) == EACCES);
    CHECK(sent(own, theirs->foreign) == EACCES && sent(private_one, theirs->foreign) == EACCES);
    CHECK(sent(own, nowhere) == ENETUNREACH && wrote(own, nowhere, 8) == ENETUNREACH);
    int error = sent(own, nobody);
    CHECK(error == ENXIO || error == EACCES);
    nobody.interface = 60000;
    CHECK(sent(own, nobody) == ENXIO);
}

int main(void)
{
    static unsigned char buffer[BUFFER], constant[64], secret[64];
    static uint64_t word;
    if (weft_open(&rank))
        return 2;
    me = weft_number(rank), peer = 1 - me;
    CHECK(weft_interface_allocate(rank, 2, &own) == -EINVAL);
    CHECK(weft_interface_allocate(rank, 0, &own) == 0);
    CHECK(weft_interface_allocate(rank, WEFT_INTERFACE_PRIVATE, &private_one) == 0);
    uint64_t share;
    CHECK(weft_interface_share(own, buffer, sizeof buffer, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE, &share) == 0);
    CHECK(weft_interface_share(own, &word, sizeof word, WEFT_ACCESS_WRITE, NULL) == 0);
    CHECK(weft_interface_share(own, constant, sizeof constant, WEFT_ACCESS_READ, NULL) == 0);
    /* Reachable for the process's own domain alone. */
    CHECK(weft_interface_share(private_one, secret, sizeof secret, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE, NULL) == 0);
    struct names mine, theirs;
    memset(&mine, 0, sizeof mine);
    mine.open = weft_interface_address(own, NULL);
    mine.foreign = weft_interface_address(private_one, NULL);
    mine.buffer = weft_interface_address(own, buffer);
    mine.constant = weft_interface_address(own, constant);
    mine.secret = weft_interface_address(private_one, secret);
    mine.word = weft_interface_address(own, &word);
    CHECK(mine.open.domain != mine.foreign.domain && mine.open.interface != mine.foreign.interface);
    exchange(&mine, &theirs, sizeof mine);
    CHECK(mine.open.domain == theirs.open.domain && mine.foreign.domain != theirs.foreign.domain);

    small_messages(&theirs, &mine);
    rdma(&theirs, buffer, &word);
    memset(buffer, 1, sizeof buffer);
    meet();
    protection(&theirs);
    meet();
    for (size_t at = 0; at < sizeof buffer; at++)
        CHECK(buffer[at] == 1);
    for (size_t at = 0; at < sizeof secret; at++)
        CHECK(secret[at] == 0 && constant[at] == 0);

    meet();
    CHECK(weft_interface_unshare(own, share) == 0 && weft_interface_unshare(own, share) == -ENOENT);
    meet();
    CHECK(wrote(own, theirs.buffer, 8) == EACCES);
    meet();
    if (me == 1)
        weft_interface_free(own);
    meet();
    if (me == 0) {
        int error = sent(own, theirs.open);
        CHECK(error == ENXIO || error == EACCES);
        printf("all at %lu ps\n", (unsigned long)weft_clock_ps(rank));
    }
    meet();
    weft_close(rank);
    return 0;
}
