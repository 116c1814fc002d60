/* Two ranks over virtual interfaces of the network interface, without MPI: round trips of small messages from
 * packetizer to mailbox, then RDMA writes whose notification the other side waits for. Prints virtual times. An
 * argument is the protection domain in which they meet, one of those that `weft run --pdid` gives the job.
 *
 *   cc -O2 -Iinclude examples/interface_ping_pong.c -Ltarget/quick/deps -lweft_client -o build/interface_ping_pong
 *   target/quick/weft run -m exanest -n 2 --ppn 1 -- build/interface_ping_pong
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "weft.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 1000, TRANSFERS = 10, LARGEST = 1 << 20 };

/* The addresses that each rank sends to the other before it begins. */
struct hello {
    weft_address mailbox, buffer, word;
};

static weft_rank *rank;
static weft_interface *interface;

static void check(int status, const char *what)
{
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-status));
        exit(1);
    }
}

/* The next small message. A poll that finds none lets virtual time go on. The yield says that there is nothing else to
 * do. */
static void receive(void *bytes, size_t size)
{
    ptrdiff_t length;
    while ((length = weft_interface_receive(interface, bytes, size, NULL)) == -EAGAIN)
        weft_yield(rank);
    check((int)length, "weft_interface_receive");
}

/* Waits until the peer's RDMA has put `value` there. */
static void wait_for(volatile uint64_t *word, uint64_t value)
{
    weft_interface_completion ended;
    while (*word != value)
        if (weft_interface_poll(interface, &ended, 1) == 0)
            weft_yield(rank);
        else
            check(-ended.error, "an RDMA write");
}

/* Writes `size` bytes of `data`, all of the last byte of `turn`, with `turn` as the notification behind them. */
static void write_to(const struct hello *peer, char *data, size_t size, uint64_t turn)
{
    weft_interface_completion ended;
    memset(data, (int)turn, size);
    check(weft_interface_write(interface, data, size, peer->buffer, peer->word.memory, turn, NULL),
          "weft_interface_write");
    while (weft_interface_poll(interface, &ended, 1) != 1)
        weft_yield(rank);
    check(-ended.error, "an RDMA write");
}

/* Addresses go by a message of the runtime: the interface alone knows no ranks. */
static struct hello introduce(const struct hello *own, uint32_t peer)
{
    struct hello theirs;
    weft_completion done;
    check(weft_receive(rank, peer, 0, 0, &theirs, sizeof theirs, WEFT_TAGGED | WEFT_COMPLETION, NULL), "weft_receive");
    check(weft_send(rank, peer, 0, own, sizeof *own, 0, WEFT_TAGGED, NULL), "weft_send");
    while (weft_poll(rank, &done, 1) != 1)
        weft_yield(rank);
    return theirs;
}

int main(int count, char **arguments)
{
    static char buffer[LARGEST], data[LARGEST];
    static uint64_t word;
    int status = weft_open(&rank);
    if (status < 0) {
        fprintf(stderr, "start this by `weft run -m exanest -n 2 -- %s`\n", "interface_ping_pong");
        return 2;
    }
    uint32_t me = weft_number(rank);
    if (weft_count(rank) != 2) {
        fprintf(stderr, "this is for two ranks: -n 2\n");
        return 2;
    }
    char *end = "";
    uint32_t domain = count == 2 ? (uint32_t)strtoul(arguments[1], &end, 10) : WEFT_DOMAIN_JOB;
    if (*end) {
        fprintf(stderr, "`%s` is no protection domain; write one that `weft run --pdid` gives\n", arguments[1]);
        return 2;
    }
    check(weft_interface_allocate(rank, domain, &interface), "weft_interface_allocate");
    /* Nothing is registered: the peer reaches all memory of this process by its address. */
    struct hello own = {weft_interface_address(interface, NULL), weft_interface_address(interface, buffer),
                        weft_interface_address(interface, &word)};
    struct hello peer = introduce(&own, 1 - me);

    /* The last look at the clock takes time, too, which is none of the messages'. */
    uint64_t look = weft_clock_ps(rank);
    look = weft_clock_ps(rank) - look;
    uint64_t began = weft_clock_ps(rank);
    for (int round = 0; round < ROUNDS; round++) {
        if (me == 0)
            check(weft_interface_send(interface, peer.mailbox, data, 8, NULL), "weft_interface_send");
        receive(buffer, sizeof buffer);
        if (me == 1)
            check(weft_interface_send(interface, peer.mailbox, data, 8, NULL), "weft_interface_send");
    }
    if (me == 0)
        printf("small message of 8 bytes: %.1f ns one way\n",
               (double)(weft_clock_ps(rank) - began - look) / ROUNDS / 2e3);

    uint64_t turn = 0;
    for (size_t size = 64; size <= LARGEST; size *= 16) {
        for (int round = 0; round <= TRANSFERS; round++) {
            /* The first round walks the page tables of pages that are new to the interface, and does not count. */
            if (round == 1)
                began = weft_clock_ps(rank);
            for (uint32_t half = 0; half < 2; half++) {
                turn++;
                if (half == me) {
                    write_to(&peer, data, size, turn);
                    continue;
                }
                wait_for(&word, turn);
                if (buffer[0] != (char)turn || buffer[size - 1] != (char)turn) {
                    fprintf(stderr, "rank %" PRIu32 " got other data than was written\n", me);
                    return 1;
                }
            }
        }
        if (me == 0)
            printf("RDMA write of %zu bytes: %.3f us one way\n", size,
                   (double)(weft_clock_ps(rank) - began - look) / TRANSFERS / 2e6);
    }
    weft_interface_free(interface);
    weft_close(rank);
    return 0;
}
