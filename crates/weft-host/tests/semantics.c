/* Two ranks over weft.h: what a library above relies on, beside messages that arrive. */
#include "weft.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static weft_rank *rank;
static uint32_t me, peer;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %u, line %d: %s\n", me, __LINE__, #condition);                   \
            exit(9);                                                                               \
        }                                                                                          \
    } while (0)

static weft_completion next(void)
{
    weft_completion done;
    while (weft_poll(rank, &done, 1) != 1)
        weft_yield(rank);
    return done;
}

static void nothing_more(void)
{
    weft_completion done;
    for (int i = 0; i < 20; i++)
        CHECK(weft_poll(rank, &done, 1) == 0);
}

/* Both come here before either goes on. */
static void meet(uint64_t tag)
{
    char in, out = 1;
    CHECK(weft_send(rank, peer, tag, &out, 1, 0, WEFT_TAGGED | WEFT_INJECT, NULL) == 0);
    CHECK(weft_receive(rank, peer, tag, 0, &in, 1, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
    CHECK(next().flags & WEFT_RECEIVED);
}

static void keys(void)
{
    static char memory[64];
    uint64_t key = 5, same = 5, any = UINT64_MAX;
    CHECK(weft_register(rank, memory, sizeof memory, WEFT_ACCESS_WRITE, &key) == 0);
    CHECK(weft_register(rank, memory, sizeof memory, WEFT_ACCESS_WRITE, &same) == -EEXIST);
    CHECK(weft_register(rank, memory, sizeof memory, WEFT_ACCESS_WRITE, &any) == 0 && any != 5);
    CHECK(weft_unregister(rank, 5) == 0 && weft_unregister(rank, any) == 0);
    CHECK(weft_register(rank, memory, sizeof memory, WEFT_ACCESS_WRITE, &key) == 0);
    CHECK(weft_unregister(rank, 5) == 0);
}

/* A synchronous send completes when its receive is posted, a delivered one may lie unexpected. */
static void completions_of_sends(void)
{
    char byte = 3;
    if (me == 0) {
        CHECK(weft_send(rank, peer, 1, &byte, 1, 0, WEFT_TAGGED | WEFT_COMPLETION | WEFT_DELIVERY_COMPLETE, NULL) == 0);
        CHECK(next().flags & WEFT_SENT);
        CHECK(weft_send(rank, peer, 2, &byte, 1, 0, WEFT_TAGGED | WEFT_COMPLETION | WEFT_MATCH_COMPLETE, NULL) == 0);
        nothing_more();
        CHECK(weft_send(rank, peer, 3, &byte, 1, 0, WEFT_TAGGED | WEFT_INJECT, NULL) == 0);
        CHECK(next().flags & WEFT_SENT);
    } else {
        for (uint64_t tag = 3; tag > 0; tag--) {
            CHECK(weft_receive(rank, peer, tag, 0, &byte, 1, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
            weft_completion done = next();
            CHECK(done.tag == tag && done.context == NULL);
        }
    }
    nothing_more();
    /* To itself. */
    uint64_t flags = WEFT_TAGGED | WEFT_COMPLETION | WEFT_MATCH_COMPLETE | WEFT_DATA;
    CHECK(weft_send(rank, me, 4, &byte, 1, 77, flags, &byte) == 0);
    nothing_more();
    char got = 0;
    CHECK(weft_receive(rank, me, 4, 0, &got, 1, WEFT_TAGGED | WEFT_COMPLETION, &got) == 0);
    int sent = 0, received = 0;
    for (int i = 0; i < 2; i++) {
        weft_completion done = next();
        if (done.flags & WEFT_SENT)
            sent += done.context == &byte;
        else
            received += done.context == &got && done.data == 77 && done.source == me;
    }
    CHECK(sent == 1 && received == 1 && got == byte);
}

static void claims_and_cancels(void)
{
    int contexts[2];
    char text[8] = {0};
    weft_completion found;
    if (me == 0) {
        CHECK(weft_send(rank, peer, 20, "first", 6, 0, WEFT_TAGGED | WEFT_INJECT, NULL) == 0);
        CHECK(weft_send(rank, peer, 20, "second", 7, 0, WEFT_TAGGED | WEFT_INJECT, NULL) == 0);
    } else {
        for (int i = 0; i < 2; i++)
            while (!weft_peek(rank, peer, 20, 0, WEFT_TAGGED | WEFT_CLAIM, &contexts[i], &found))
                ;
        CHECK(found.length == 7);
        CHECK(weft_receive(rank, peer, 20, 0, text, 8, WEFT_TAGGED | WEFT_CLAIM | WEFT_COMPLETION, &contexts[1]) == 0);
        CHECK(next().context == &contexts[1] && !strcmp(text, "second"));
        CHECK(weft_receive(rank, peer, 20, 0, text, 8, WEFT_TAGGED | WEFT_CLAIM | WEFT_COMPLETION, &contexts[0]) == 0);
        CHECK(next().context == &contexts[0] && !strcmp(text, "first"));
        CHECK(weft_receive(rank, peer, 20, 0, text, 8, WEFT_TAGGED | WEFT_CLAIM, &contexts[0]) == -ENOENT);
    }
    CHECK(weft_receive(rank, peer, 21, 0, text, 8, WEFT_TAGGED | WEFT_COMPLETION, contexts) == 0);
    CHECK(weft_cancel(rank, contexts) == 0 && weft_cancel(rank, contexts) == -ENOENT);
    weft_completion done = next();
    CHECK(done.error == ECANCELED && done.context == contexts);
    nothing_more();
}

/* A multi-receive buffer is given back when it is full, and no message is cut. */
static void multi_receive(void)
{
    enum { MESSAGES = 10, LENGTH = 100 };
    static _Alignas(16) char buffer[4 * 112], second[10 * 112];
    char text[LENGTH] = {0};
    meet(30);
    if (me == 0) {
        for (int i = 0; i < MESSAGES; i++) {
            text[0] = (char)i;
            CHECK(weft_send(rank, peer, 0, text, LENGTH, 0, WEFT_INJECT, NULL) == 0);
        }
    } else {
        weft_set_min_multi_receive(rank, LENGTH);
        uint64_t flags = WEFT_MULTI_RECEIVE | WEFT_COMPLETION;
        CHECK(weft_receive(rank, WEFT_ANY_SOURCE, 0, 0, buffer, sizeof buffer, flags, buffer) == 0);
        CHECK(weft_receive(rank, WEFT_ANY_SOURCE, 0, 0, second, sizeof second, flags, second) == 0);
        int released = 0;
        for (int i = 0; i < MESSAGES;) {
            weft_completion done = next();
            CHECK(done.error == 0);
            if (done.flags & WEFT_MULTI_RECEIVE) {
                CHECK(done.length == LENGTH && *(char *)done.buffer == i);
                i++;
            }
            /* It comes alone: there is no message behind it. */
            CHECK(!(done.flags & WEFT_BUFFER_RELEASED) || !(done.flags & WEFT_RECEIVED));
            released += (done.flags & WEFT_BUFFER_RELEASED) != 0;
        }
        CHECK(released == 1 && weft_cancel(rank, second) == 0 && next().error == ECANCELED);
    }
    meet(31);
}

/* Closing a rank: its open operations touch no buffer, injected messages arrive, and it can be opened again. */
static void close_and_open(void)
{
    static char stays[5000], large[5000];
    memset(large, 7, sizeof large);
    meet(40);
    if (me == 0) {
        CHECK(weft_receive(rank, peer, 41, 0, stays, sizeof stays, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
        CHECK(weft_send(rank, peer, 42, large, 4000, 0, WEFT_TAGGED | WEFT_INJECT, NULL) == 0);
        weft_close(rank);
        CHECK(weft_open(&rank) == 0 && weft_number(rank) == 0);
        meet(43);
        nothing_more();
        for (size_t i = 0; i < sizeof stays; i++)
            CHECK(stays[i] == 0);
        CHECK(weft_receive(rank, peer, 41, 0, stays, sizeof stays, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
        CHECK(next().length == sizeof large && stays[4999] == 7);
    } else {
        CHECK(weft_receive(rank, peer, 42, 0, stays, sizeof stays, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
        CHECK(next().length == 4000 && stays[3999] == 7);
        meet(43);
        CHECK(weft_send(rank, peer, 41, large, sizeof large, 0, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
        CHECK(next().flags & WEFT_SENT);
    }
    meet(44);
}

/* RDMA reaches what is registered, and nothing else. */
static void remote_memory(void)
{
    static char window[3][20000], source[20000];
    memset(source, 9, sizeof source);
    uint64_t key = 1;
    CHECK(weft_register(rank, window[1], sizeof window[1], WEFT_ACCESS_WRITE | WEFT_ACCESS_READ, &key) == 0);
    uint64_t own = (uint64_t)(uintptr_t)window[1], base;
    CHECK(weft_send(rank, peer, 50, &own, sizeof own, 0, WEFT_TAGGED | WEFT_INJECT, NULL) == 0);
    CHECK(weft_receive(rank, peer, 50, 0, &base, sizeof base, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
    CHECK(next().length == sizeof base);
    if (me == 0) {
        CHECK(weft_write(rank, peer, source, sizeof source, base, 1, 0, WEFT_COMPLETION, NULL) == 0);
        weft_completion written = next();
        CHECK(written.flags == WEFT_WRITTEN && written.error == 0);
        CHECK(weft_write(rank, peer, source, 8, base - 8, 1, 0, 0, source) == 0);
        weft_completion refused = next();
        CHECK(refused.error == EACCES && refused.context == source);
        CHECK(weft_write(rank, peer, source, 8, base, 2, 0, 0, NULL) == 0 && next().error == EACCES);
        CHECK(weft_read(rank, peer, window[0], sizeof source, base, 1, WEFT_COMPLETION, NULL) == 0);
        weft_completion read = next();
        CHECK(read.flags == WEFT_READ && read.error == 0 && !memcmp(window[0], source, sizeof source));
        CHECK(weft_write(rank, peer, source, 8, base, 1, 99, WEFT_DATA | WEFT_INJECT, NULL) == 0);
    } else {
        weft_completion done = next();
        CHECK(done.flags & WEFT_REMOTE_WRITE && done.data == 99 && done.source == 0 && done.length == 8);
        CHECK(!memcmp(window[1], source, sizeof source) && !window[0][19999] && !window[2][0]);
    }
    meet(51);
    nothing_more();
    CHECK(weft_unregister(rank, 1) == 0);
}

/* A rank that sends more than its outbox holds has several turns before it looks into its inbox. */
static void many_at_once(void)
{
    enum { MESSAGES = 1000 };
    meet(60);
    for (int i = 0; i < MESSAGES; i++)
        CHECK(weft_send(rank, peer, 61, &i, sizeof i, 0, WEFT_TAGGED | WEFT_INJECT, NULL) == 0);
    for (int i = 0, got = -1; i < MESSAGES; i++) {
        CHECK(weft_receive(rank, peer, 61, 0, &got, sizeof got, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
        CHECK(next().flags & WEFT_RECEIVED && got == i);
    }
    meet(62);
}

static uint64_t between(uint64_t own, uint64_t of_peer)
{
    return own << WEFT_ENDPOINT_SHIFT | of_peer << WEFT_PEER_ENDPOINT_SHIFT;
}

/* Messages of one tag between two endpoints of each rank, short and announced: none meets a receive that is posted at
 * another, or wants another source. */
static void endpoints(void)
{
    enum { FIRST = 0, LAST = WEFT_ENDPOINTS - 1, LONG = 100000 };
    static char out[2][2][LONG], in[2][2][LONG];
    uint64_t flags = WEFT_TAGGED | WEFT_COMPLETION, number[2] = {FIRST, LAST};
    size_t lengths[2] = {10, LONG};
    for (int each = 0; each < 2; each++) {
        meet(70);
        for (int to = 0; to < 2; to++)
            for (int from = 0; from < 2; from++) {
                memset(out[to][from], 1 + 2 * to + from, LONG);
                uint64_t way = between(number[from], number[to]);
                CHECK(weft_send(rank, peer, 71, out[to][from], lengths[each], 0, flags | way, NULL) == 0);
            }
        /* A message is found at its endpoint alone. */
        weft_completion found;
        while (!weft_peek(rank, peer, 71, 0, WEFT_TAGGED | between(LAST, LAST), NULL, &found))
            ;
        CHECK(found.length == lengths[each] && found.flags >> WEFT_ENDPOINT_SHIFT == (LAST | LAST << 8));
        CHECK(!weft_peek(rank, peer, 71, 0, WEFT_TAGGED | between(1, LAST), NULL, &found));
        /* From the last endpoint first; then from any. */
        for (int at = 0; at < 2; at++)
            for (int from = 1; from >= 0; from--) {
                uint32_t source = from ? peer : WEFT_ANY_SOURCE;
                uint64_t way = between(number[at], from ? LAST : 3);
                CHECK(weft_receive(rank, source, 71, 0, in[at][from], LONG, flags | way, in[at][from]) == 0);
            }
        for (int sent = 0, received = 0; sent + received < 8;) {
            weft_completion done = next();
            sent += (done.flags & WEFT_SENT) != 0;
            if (!(done.flags & WEFT_RECEIVED))
                continue;
            received++;
            char *got = done.context;
            uint64_t at = got >= in[1][0], from = got == in[at][1];
            CHECK(done.length == lengths[each] && done.source == peer && got[0] == (char)(1 + 2 * at + from));
            CHECK(got[done.length - 1] == got[0]);
            CHECK(done.flags >> WEFT_ENDPOINT_SHIFT == (number[at] | number[from] << 8));
        }
        nothing_more();
    }
    /* No rank has more. */
    char byte = 0;
    uint64_t key = UINT64_MAX, wrong[] = {between(WEFT_ENDPOINTS, 0), between(0, WEFT_ENDPOINTS), between(255, 255)};
    CHECK(weft_register(rank, &byte, 1, WEFT_ACCESS_WRITE, &key) == 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weft_completion found;
        CHECK(weft_send(rank, peer, 1, &byte, 1, 0, flags | wrong[i], NULL) == -EINVAL);
        CHECK(weft_receive(rank, peer, 1, 0, &byte, 1, flags | wrong[i], NULL) == -EINVAL);
        CHECK(weft_peek(rank, peer, 1, 0, WEFT_TAGGED | wrong[i], NULL, &found) == -EINVAL);
        CHECK(weft_write(rank, peer, &byte, 1, 64, key, 0, wrong[i], NULL) == -EINVAL);
        CHECK(weft_read(rank, peer, &byte, 1, 64, key, wrong[i], NULL) == -EINVAL);
    }
    CHECK(weft_unregister(rank, key) == 0);
    nothing_more();
}

/* A write with data is told at the endpoint that it names. */
static void written_at_an_endpoint(void)
{
    static uint64_t word;
    uint64_t key = 7, own = (uintptr_t)&word, there = 0;
    CHECK(weft_register(rank, &word, sizeof word, WEFT_ACCESS_WRITE, &key) == 0);
    CHECK(weft_send(rank, peer, 80, &own, sizeof own, 0, WEFT_TAGGED | WEFT_INJECT, NULL) == 0);
    CHECK(weft_receive(rank, peer, 80, 0, &there, sizeof there, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
    CHECK(next().length == sizeof there);
    CHECK(weft_write(rank, peer, &own, sizeof own, there, key, 5, WEFT_DATA | WEFT_INJECT | between(3, 9), NULL) == 0);
    weft_completion done = next();
    CHECK(done.flags & WEFT_REMOTE_WRITE && done.data == 5 && done.flags >> WEFT_ENDPOINT_SHIFT == (9 | 3 << 8));
    meet(81);
    CHECK(weft_unregister(rank, key) == 0);
}

/* How little is left in a buffer is that of its post. */
static void multi_receive_at_an_endpoint(void)
{
    static char few[1000], many[1000];
    uint64_t flags = WEFT_MULTI_RECEIVE | WEFT_COMPLETION;
    weft_set_min_multi_receive(rank, 900);
    CHECK(weft_receive(rank, WEFT_ANY_SOURCE, 0, 0, few, sizeof few, flags | between(4, 0), few) == 0);
    weft_set_min_multi_receive(rank, 64);
    CHECK(weft_receive(rank, WEFT_ANY_SOURCE, 0, 0, many, sizeof many, flags | between(5, 0), many) == 0);
    meet(90);
    for (uint64_t to = 4; to < 6; to++)
        CHECK(weft_send(rank, peer, 0, few, 200, 0, WEFT_INJECT | between(0, to), NULL) == 0);
    for (int i = 0; i < 3; i++) {
        weft_completion done = next();
        CHECK(done.flags & WEFT_BUFFER_RELEASED ? done.context == few : done.length == 200);
    }
    CHECK(weft_cancel(rank, few) == -ENOENT && weft_cancel(rank, many) == 0 && next().error == ECANCELED);
    meet(91);
}

/* A rank polls and yields in vain for a message that is sent a millisecond later. It waits, unless its library keeps
 * completions that the program has not read. */
static void unread_completions(void)
{
    for (uint32_t unread = 0; unread < 2; unread++) {
        char byte = 0;
        weft_completion done;
        meet(100);
        if (me == 1) {
            for (uint64_t end = weft_clock_ps(rank) + 1000000000; weft_clock_ps(rank) < end;)
                CHECK(weft_poll(rank, &done, 1) == 0);
            CHECK(weft_send(rank, peer, 101, &byte, 1, 0, WEFT_TAGGED | WEFT_INJECT, NULL) == 0);
        } else {
            CHECK(weft_receive(rank, peer, 101, 0, &byte, 1, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
            uint64_t began = weft_clock_ps(rank);
            weft_set_unread(rank, unread);
            int found = 0;
            for (int i = 0; i < 10 && !found; i++) {
                found = weft_poll(rank, &done, 1) == 1;
                weft_yield(rank);
            }
            uint64_t took = weft_clock_ps(rank) - began;
            CHECK(unread ? !found && took < 100000000 : found && took > 900000000);
            weft_set_unread(rank, 0);
            CHECK(found || next().flags & WEFT_RECEIVED);
        }
        meet(102);
    }
}

int main(void)
{
    if (weft_open(&rank))
        return 2;
    me = weft_number(rank);
    peer = 1 - me;
    keys();
    completions_of_sends();
    claims_and_cancels();
    multi_receive();
    close_and_open();
    remote_memory();
    many_at_once();
    endpoints();
    written_at_an_endpoint();
    multi_receive_at_an_endpoint();
    unread_completions();
    if (me == 0)
        printf("all at %llu ps\n", (unsigned long long)weft_clock_ps(rank));
    return 0;
}
