/* Two ranks over weft.h: round trips of the size in argv[1], and a check of every byte. */
#include "weft.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 100 };

static weft_rank *rank;

static weft_completion wait_for(uint64_t what)
{
    weft_completion done;
    for (;;) {
        if (weft_poll(rank, &done, 1) == 1) {
            if (done.error || !(done.flags & what)) {
                fprintf(stderr, "unexpected completion: flags %lx error %d\n", (unsigned long)done.flags, done.error);
                exit(3);
            }
            return done;
        }
        weft_yield(rank);
    }
}

int main(int argc, char **argv)
{
    size_t size = argc > 1 ? strtoul(argv[1], NULL, 0) : 8;
    if (weft_open(&rank))
        return 2;
    uint32_t me = weft_number(rank), peer = 1 - me;
    unsigned char *buffer = malloc(size + 1);
    uint64_t began = weft_clock_ps(rank);
    for (int round = 0; round < ROUNDS; round++) {
        for (int half = 0; half < 2; half++) {
            if ((half == 0) == (me == 0)) {
                memset(buffer, round + half, size);
                weft_send(rank, peer, 7 + round, buffer, size, 0, WEFT_TAGGED | WEFT_COMPLETION, NULL);
                wait_for(WEFT_SENT);
            } else {
                memset(buffer, 0, size);
                weft_receive(rank, peer, 7 + round, 0, buffer, size, WEFT_TAGGED | WEFT_COMPLETION, NULL);
                weft_completion done = wait_for(WEFT_RECEIVED);
                if (done.length != size || done.source != peer)
                    return 4;
                for (size_t i = 0; i < size; i++)
                    if (buffer[i] != (unsigned char)(round + half))
                        return 5;
            }
        }
    }
    if (me == 0)
        printf("%zu bytes: %lu ps per round trip\n", size,
               (unsigned long)((weft_clock_ps(rank) - began) / ROUNDS));
    return 0;
}
