/* Ranks that ask a key-value store, without MPI: each puts a value, then gets it, one rank after the other. Prints how
 * long the requests took in virtual time. Arguments are the node of the store and the bytes of the value.
 *
 *   cc -O2 -Iinclude examples/service_requests.c -Ltarget/release -lweft_client -o build/service_requests
 *   target/release/weft run -m carvnet-spineleaf -n 6 --ppn 1 --scenario scenarios/store.toml -- build/service_requests
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "weft.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Virtual time that each rank has for itself. */
static const uint64_t TURN = 100000000;

static weft_rank *rank;

static void check(int status, const char *what)
{
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-status));
        exit(1);
    }
}

/* Waits for the answer: its size. */
static size_t answer(const char *what)
{
    weft_completion done;
    while (weft_poll(rank, &done, 1) != 1)
        weft_yield(rank);
    check(-done.error, what);
    return done.length;
}

int main(int count, char **words)
{
    uint32_t node = count > 1 ? (uint32_t)atoi(words[1]) : 0;
    size_t length = count > 2 ? (size_t)atol(words[2]) : 4096;
    check(weft_open(&rank), "weft_open");
    uint32_t me = weft_number(rank);
    /* The first poll enters virtual time. */
    weft_completion none;
    weft_poll(rank, &none, 1);
    while (weft_clock_ps(rank) < me * TURN)
        ;
    uint64_t begun = weft_clock_ps(rank);
    check(weft_service_put(rank, node, me, length, NULL), "weft_service_put");
    answer("put");
    uint64_t put = weft_clock_ps(rank);
    check(weft_service_get(rank, node, me, NULL), "weft_service_get");
    size_t got = answer("get");
    uint64_t end = weft_clock_ps(rank);
    printf("rank %u: put of %zu bytes %.3f us, get of %zu bytes %.3f us\n", me, length, (put - begun) / 1e6, got,
           (end - put) / 1e6);
    return 0;
}
