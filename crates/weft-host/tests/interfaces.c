/* Two ranks over virtual interfaces: what the header says of small messages, RDMA and protection domains.
 * The argument says how many interfaces of a node have a page of RDMA channels. The job has the domains 1 and 9. */
#define _GNU_SOURCE
#include "weft.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BUFFER = 100000, MANY = 150, MORE = 20, PAGE = 4096, GROUP = 9 };

/* The addresses of a rank, which it sends to the other. */
struct names {
    weft_address open, foreign, group, buffer, constant, secret, word, stack, heap, page, edge, more[MORE];
};

static weft_rank *rank;
static uint32_t me, peer;
static weft_interface *own, *private_one, *of_group, *more[MORE];
static unsigned pages;

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

/* Sends the peer `size` bytes and receives as many from it: also a barrier. */
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

/* Operations that must be refused, and the errors that they end with. */
static void protection(const struct names *theirs)
{
    weft_address nowhere = theirs->open, nobody = theirs->open, nothing = theirs->open, end = theirs->open;
    nowhere.node = UINT32_MAX;
    nobody.interface = 60;
    nothing.memory = 16;
    end.memory = UINT64_MAX - 7;
    /* Memory that the process has not, that it may not write itself, that runs over the edge of what it has. */
    CHECK(wrote(own, nothing, 8) == EFAULT && read_of(own, nothing, 8) == EFAULT);
    CHECK(wrote(own, end, 8) == EFAULT && read_of(own, end, 8) == EFAULT && wrote(own, end, 16) == EFAULT);
    CHECK(wrote(own, theirs->constant, 8) == EFAULT && read_of(own, theirs->constant, 8) == 0);
    CHECK(wrote(own, theirs->edge, 16) == EFAULT && read_of(own, theirs->edge, 16) == EFAULT);
    CHECK(read_of(own, theirs->edge, 8) == 0);
    /* Where the word cannot be written, neither is the data. */
    CHECK(weft_interface_write(own, theirs, 8, theirs->buffer, 16, 1, &nothing) == 0);
    CHECK(end_of(own, WEFT_WRITTEN, &nothing) == EFAULT);
    /* Nor is anything read to where the process may not write itself. */
    CHECK(weft_interface_read(own, (void *)16, 8, theirs->buffer, &nothing) == 0);
    CHECK(end_of(own, WEFT_READ, &nothing) == EFAULT);
    CHECK(weft_interface_read(own, (void *)(uintptr_t)wrote, 8, theirs->buffer, &nothing) == 0);
    CHECK(end_of(own, WEFT_READ, &nothing) == EFAULT);
    /* Another protection domain reaches nothing, in either direction, and sees the refusal. */
    CHECK(sent(private_one, theirs->open) == EACCES);
    CHECK(wrote(private_one, theirs->buffer, 64) == EACCES && read_of(private_one, theirs->buffer, 64) == EACCES);
    CHECK(sent(own, theirs->foreign) == EACCES && sent(private_one, theirs->foreign) == EACCES);
    CHECK(wrote(own, theirs->secret, 8) == EACCES && read_of(own, theirs->secret, 8) == EACCES);
    CHECK(wrote(own, theirs->group, 8) == EACCES && sent(of_group, theirs->open) == EACCES);
    CHECK(sent(own, nowhere) == ENETUNREACH && wrote(own, nowhere, 8) == ENETUNREACH);
    int error = sent(own, nobody);
    CHECK(error == ENXIO || error == EACCES);
    nobody.interface = 60000;
    CHECK(sent(own, nobody) == ENXIO);
}

/* Memory of every kind is reached, of which nobody was told before: static, on the stack, on the heap, mapped. And
 * what the process changes of its mappings counts at once. */
static void whole_address_space(const struct names *theirs, const unsigned char *stack, const unsigned char *heap,
                                unsigned char *page)
{
    const weft_address places[] = {theirs->buffer, theirs->stack, theirs->heap, theirs->page};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        CHECK(wrote(own, places[i], 64) == 0 && read_of(own, places[i], 64) == 0);
    CHECK(wrote(of_group, theirs->group, 64) == 0);
    meet();
    for (size_t at = 0; at < 64; at++)
        CHECK(stack[at] == 0xee && heap[at] == 0xee && page[at] == 0xee);
    memset(page, 0, 64);
    CHECK(mprotect(page, PAGE, PROT_READ) == 0);
    meet();
    CHECK(wrote(own, theirs->page, 64) == EFAULT && read_of(own, theirs->page, 64) == 0);
    meet();
    CHECK(page[0] == 0 && page[63] == 0);
}

/* More interfaces than there are pages of RDMA channels: a write needs that of its initiator, a read that of the
 * interface that it reads from. */
static void many_interfaces(const struct names *theirs)
{
    for (unsigned i = 0; i < MORE; i++) {
        int error = theirs->more[i].interface < pages ? 0 : ENXIO;
        CHECK(wrote(own, theirs->more[i], 64) == 0 && read_of(own, theirs->more[i], 64) == error);
        CHECK(wrote(more[i], theirs->more[0], 64) == error);
    }
    CHECK(theirs->more[MORE - 1].interface >= 20);
}

int main(int count, char **arguments)
{
    static const unsigned char constant[64] = {1};
    static unsigned char buffer[BUFFER], secret[64];
    static uint64_t word;
    unsigned char stack[64], *heap = calloc(1, 64);
    pages = count == 2 ? (unsigned)atoi(arguments[1]) : 0;
    if (weft_open(&rank))
        return 2;
    me = weft_number(rank), peer = 1 - me;
    CHECK(weft_interface_allocate(rank, 65536, &own) == -EINVAL);
    CHECK(weft_interface_allocate(rank, 0, &own) == -EPERM);
    CHECK(weft_interface_allocate(rank, WEFT_DOMAIN_JOB, &own) == 0);
    CHECK(weft_interface_allocate(rank, WEFT_DOMAIN_PRIVATE, &private_one) == 0);
    CHECK(weft_interface_allocate(rank, GROUP, &of_group) == 0);
    struct names mine, theirs;
    memset(&mine, 0, sizeof mine);
    for (unsigned i = 0; i < MORE; i++) {
        CHECK(weft_interface_allocate(rank, 1, &more[i]) == 0);
        mine.more[i] = weft_interface_address(more[i], buffer);
    }
    unsigned char *page = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && mprotect(page + 2 * PAGE, PAGE, PROT_NONE) == 0);
    mine.open = weft_interface_address(own, NULL);
    mine.foreign = weft_interface_address(private_one, NULL);
    mine.group = weft_interface_address(of_group, buffer);
    mine.buffer = weft_interface_address(own, buffer);
    mine.constant = weft_interface_address(own, constant);
    mine.secret = weft_interface_address(private_one, secret);
    mine.word = weft_interface_address(own, &word);
    mine.stack = weft_interface_address(own, stack);
    mine.heap = weft_interface_address(own, heap);
    mine.page = weft_interface_address(own, page);
    mine.edge = weft_interface_address(own, page + 2 * PAGE - 8);
    CHECK(mine.open.domain == 1 && mine.group.domain == GROUP && mine.more[0].domain == 1);
    CHECK(mine.open.domain != mine.foreign.domain && mine.open.interface != mine.foreign.interface);
    exchange(&mine, &theirs, sizeof mine);
    CHECK(mine.open.domain == theirs.open.domain && mine.foreign.domain != theirs.foreign.domain);

    small_messages(&theirs, &mine);
    rdma(&theirs, buffer, &word);
    meet();
    whole_address_space(&theirs, stack, heap, page);
    meet();
    many_interfaces(&theirs);
    meet();
    memset(buffer, 1, sizeof buffer);
    memset(page + PAGE, 1, PAGE);
    meet();
    protection(&theirs);
    meet();
    for (size_t at = 0; at < sizeof buffer; at++)
        CHECK(buffer[at] == 1);
    for (size_t at = 0; at < sizeof secret; at++)
        CHECK(secret[at] == 0 && constant[at] == (at == 0));
    for (size_t at = PAGE; at < 2 * PAGE; at++)
        CHECK(page[at] == 1);
    free(heap);
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
