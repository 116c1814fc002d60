/* Two processes over LibQCM: round trips through registered buffers, with the completions of one path. Prints virtual
 * times.
 *
 *   make examples
 *   target/quick/weft run -m apenetx-u280 -n 2 --ppn 1 -- build/examples/qcm_ping_pong --completion kernel
 *
 * --completion PATH  machine, kernel, remapped, direct or user-queue; default machine
 * --memory KIND,KIND  of the buffers that are sent from and received into: machine, host, gpu-direct or gpu-staged;
 *                    default machine
 * --blocking         waits for the end of each transmission
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "qcm.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20, LARGEST = 1 << 20 };

static const char *const PATHS[] = {"machine", "kernel", "remapped", "direct", "user-queue"};

static void check(int status, const char *what)
{
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(-status));
        exit(1);
    }
}

static const char *const KINDS[] = {"machine", "host", "gpu-direct", "gpu-staged"};

/* The kinds of memory of a pair of names, "gpu-direct,host". */
static void kinds_of(char *names, enum qcm_memory kinds[2])
{
    char *comma = strchr(names, ',');
    if (comma)
        *comma = '\0';
    const char *const each[2] = {names, comma ? comma + 1 : ""};
    for (int place = 0; place < 2; place++) {
        int kind = QCM_MEMORY_MACHINE;
        while (kind <= QCM_MEMORY_GPU_STAGED && strcmp(each[place], KINDS[kind]) != 0)
            kind++;
        if (kind > QCM_MEMORY_GPU_STAGED) {
            fprintf(stderr, "--memory: write two of machine, host, gpu-direct and gpu-staged, as gpu-direct,host\n");
            exit(2);
        }
        kinds[place] = (enum qcm_memory)kind;
    }
}

/* The path of that name. */
static enum qcm_completion path_of(const char *name)
{
    for (int path = QCM_MACHINE; path <= QCM_USER_QUEUE; path++)
        if (strcmp(name, PATHS[path]) == 0)
            return (enum qcm_completion)path;
    fprintf(stderr, "--completion %s: write machine, kernel, remapped, direct or user-queue\n", name);
    exit(2);
}

/* Waits for the next message to a buffer, and checks it. */
static void receive(qcm_buffer *buffer, const unsigned char *data, size_t length, unsigned char expected)
{
    qcm_rx_done done;
    while (qcm_poll(buffer, &done) == 0)
        ;
    if (done.length != length || (length && (data[0] != expected || data[length - 1] != expected))) {
        fprintf(stderr, "other data than was sent: %" PRIu64 " bytes\n", done.length);
        exit(1);
    }
}

int main(int count, char **arguments)
{
    static unsigned char out[LARGEST], in[LARGEST];
    enum qcm_completion path = QCM_MACHINE;
    enum qcm_memory kinds[2] = {QCM_MEMORY_MACHINE, QCM_MEMORY_MACHINE};
    unsigned flags = 0;
    for (int place = 1; place < count; place++) {
        if (strcmp(arguments[place], "--completion") == 0 && place + 1 < count)
            path = path_of(arguments[++place]);
        else if (strcmp(arguments[place], "--memory") == 0 && place + 1 < count)
            kinds_of(arguments[++place], kinds);
        else if (strcmp(arguments[place], "--blocking") == 0)
            flags = QCM_BLOCKING;
        else {
            fprintf(stderr, "usage: qcm_ping_pong [--completion PATH] [--memory KIND,KIND] [--blocking]\n");
            return 2;
        }
    }
    qcm *card;
    qcm_buffer *source, *target;
    qcm_remote theirs;
    if (qcm_open(&card) < 0) {
        fprintf(stderr, "start this by `weft run -m apenetx-u280 -n 2 --ppn 1 -- qcm_ping_pong`\n");
        return 2;
    }
    if (qcm_count(card) != 2) {
        fprintf(stderr, "this is for two processes: -n 2\n");
        return 2;
    }
    uint32_t me = qcm_number(card);
    check(qcm_register_in(card, kinds[0], out, sizeof out, QCM_MACHINE, &source), "qcm_register_in");
    check(qcm_register_in(card, kinds[1], in, sizeof in, path, &target), "qcm_register_in");
    check(qcm_handshake(card, 1 - me, target, &theirs), "qcm_handshake");
    if (me == 0)
        printf("completions: %s\n", PATHS[path]);
    unsigned char round = 0;
    for (size_t size = 8; size <= LARGEST; size *= 8) {
        uint64_t began = qcm_clock_ps(card);
        for (int turn = 0; turn < ROUNDS; turn++) {
            round++;
            memset(out, round, size);
            if (me == 0)
                check(qcm_send(source, 0, size, &theirs, 0, flags), "qcm_send");
            receive(target, in, size, round);
            if (me == 1)
                check(qcm_send(source, 0, size, &theirs, 0, flags), "qcm_send");
            check(qcm_flush(card), "qcm_flush");
        }
        if (me == 0)
            printf("%7zu bytes: %8.3f us one way\n", size, (double)(qcm_clock_ps(card) - began) / ROUNDS / 2e6);
    }
    check(qcm_deregister(source), "qcm_deregister");
    check(qcm_deregister(target), "qcm_deregister");
    qcm_close(card);
    return 0;
}
