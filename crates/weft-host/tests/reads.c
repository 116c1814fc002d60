/* Two ranks over weft.h: rank 0 reads from rank 1, `reads` times at once, and prints when the last data was there. */
#include "weft.h"
#include <stdio.h>
#include <stdlib.h>

enum { READS = 8, BYTES = 1000 };

static weft_rank *rank;

static int next(void)
{
    weft_completion done;
    while (weft_poll(rank, &done, 1) != 1)
        weft_yield(rank);
    return done.error;
}

int main(int count, char **words)
{
    int reads = count > 1 ? atoi(words[1]) : 0;
    if (reads < 1 || reads > READS)
        return 1;
    static char memory[READS][BYTES];
    if (weft_open(&rank))
        return 2;
    uint32_t me = weft_number(rank), peer = 1 - me;
    uint64_t key = 1, own = (uint64_t)(uintptr_t)memory, base;
    if (weft_register(rank, memory, sizeof memory, WEFT_ACCESS_READ, &key))
        return 3;
    weft_send(rank, peer, 1, &own, sizeof own, 0, WEFT_TAGGED | WEFT_INJECT, NULL);
    weft_receive(rank, peer, 1, 0, &base, sizeof base, WEFT_TAGGED | WEFT_COMPLETION, NULL);
    if (next())
        return 4;
    if (me == 0) {
        uint64_t began = weft_clock_ps(rank);
        for (int i = 0; i < reads; i++)
            if (weft_read(rank, peer, memory[i], BYTES, base + i * BYTES, 1, WEFT_COMPLETION, NULL))
                return 5;
        for (int i = 0; i < reads; i++)
            if (next())
                return 6;
        printf("%lu", (unsigned long)(weft_clock_ps(rank) - began));
    }
    weft_send(rank, peer, 2, &own, sizeof own, 0, WEFT_TAGGED | WEFT_INJECT, NULL);
    weft_receive(rank, peer, 2, 0, &base, sizeof base, WEFT_TAGGED | WEFT_COMPLETION, NULL);
    return next() ? 7 : 0;
}
