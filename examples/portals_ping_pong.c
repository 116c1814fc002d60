/* Two ranks over Portals 4, without MPI: round trips of puts that a match list takes, a put that came before its entry,
 * gets, a fetch-atomic sum, and a triggered put that answers without its program. Prints virtual times.
 *
 *   cc -O2 -Iinclude examples/portals_ping_pong.c -Ltarget/quick/deps -lportals -lweft_client \
 *      -Wl,-rpath,$PWD/target/quick/deps -o build/examples/portals_ping_pong
 *   target/quick/weft run -m bxi3-fattree -n 2 -- build/examples/portals_ping_pong
 *
 * The processes find each other by PMI-1, the protocol of `weft run`.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "portals4.h"
#include "weft.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 200, LARGEST = 1 << 18 };

static weft_rank *rank;
static int pmi;

static void check(int status, const char *what)
{
    if (status != PTL_OK) {
        fprintf(stderr, "%s: return code %d\n", what, status);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

/* Asks the process manager one line, and returns its answer, which stays until the next question. */
static const char *ask(const char *question)
{
    static char answer[4096];
    size_t length = 0;
    if (write(pmi, question, strlen(question)) < 0)
        exit(1);
    while (length < sizeof answer - 1 && read(pmi, answer + length, 1) == 1 && answer[length] != '\n')
        ++length;
    answer[length] = 0;
    return answer;
}

/* The value of a field of an answer. */
static const char *field(const char *answer, const char *name)
{
    static char value[1024];
    char wanted[64];
    snprintf(wanted, sizeof wanted, " %s=", name);
    const char *found = strstr(answer, wanted);
    if (!found || sscanf(found + strlen(wanted), "%1023s", value) != 1) {
        fprintf(stderr, "PMI: no %s in '%s'\n", name, answer);
        exit(1);
    }
    return value;
}

static double now_ns(void)
{
    return (double)weft_clock_ps(rank) / 1e3;
}

static ptl_event_t wait_event(ptl_handle_eq_t queue, ptl_event_kind_t type)
{
    ptl_event_t event;
    CHECK(PtlEQWait(queue, &event));
    if (event.type != type || event.ni_fail_type != PTL_NI_OK) {
        fprintf(stderr, "event %d with outcome %d, not %d\n", (int)event.type, (int)event.ni_fail_type, (int)type);
        exit(1);
    }
    return event;
}

int main(void)
{
    const char *descriptor = getenv("PMI_FD"), *number = getenv("PMI_RANK");
    if (!descriptor || !number || weft_open(&rank) != 0) {
        fprintf(stderr, "start this by `weft run -m bxi3-fattree -n 2 -- portals_ping_pong`\n");
        return 1;
    }
    pmi = atoi(descriptor);
    int own = atoi(number), other = 1 - own;

    CHECK(PtlInit());
    ptl_handle_ni_t ni;
    ptl_ni_limits_t limits;
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits, &ni));
    ptl_process_t process, map[2];
    CHECK(PtlGetPhysId(ni, &process));

    /* Everybody tells its process, and learns the other's. */
    char line[512], space[128];
    ask("cmd=init pmi_version=1 pmi_subversion=1\n");
    snprintf(space, sizeof space, "%s", field(ask("cmd=get_my_kvsname\n"), "kvsname"));
    snprintf(line, sizeof line, "cmd=put kvsname=%s key=portals-%d value=%u,%u\n", space, own,
             (unsigned)process.phys.nid, (unsigned)process.phys.pid);
    ask(line);
    ask("cmd=barrier_in\n");
    for (int of = 0; of < 2; ++of) {
        unsigned nid, pid;
        snprintf(line, sizeof line, "cmd=get kvsname=%s key=portals-%d\n", space, of);
        if (sscanf(field(ask(line), "value"), "%u,%u", &nid, &pid) != 2)
            return 1;
        map[of].phys.nid = nid;
        map[of].phys.pid = pid;
    }
    CHECK(PtlSetMap(ni, 2, map));

    ptl_handle_eq_t events, sent;
    ptl_handle_ct_t counted;
    ptl_pt_index_t portal;
    CHECK(PtlEQAlloc(ni, 4096, &events));
    CHECK(PtlEQAlloc(ni, 4096, &sent));
    CHECK(PtlCTAlloc(ni, &counted));
    CHECK(PtlPTAlloc(ni, 0, events, 4, &portal));

    char *buffer = calloc(1, LARGEST), *space_for_all = calloc(1, LARGEST);
    ptl_md_t md = {.start = buffer, .length = LARGEST, .eq_handle = sent};
    ptl_md_t counting = {.start = buffer,
                         .length = LARGEST,
                         .options = PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_SUCCESS_DISABLE,
                         .eq_handle = PTL_EQ_NONE,
                         .ct_handle = counted};
    ptl_handle_md_t plain, gets;
    CHECK(PtlMDBind(ni, &md, &plain));
    CHECK(PtlMDBind(ni, &counting, &gets));
    ptl_process_t peer = {.rank = (ptl_rank_t)other};

    /* An entry for each number of bits, and one on the overflow list for what nobody expects. */
    ptl_me_t me = {.start = space_for_all,
                   .length = LARGEST,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id = {.rank = PTL_RANK_ANY},
                   .match_bits = 7};
    ptl_handle_me_t entry, overflow, late;
    CHECK(PtlMEAppend(ni, portal, &me, PTL_PRIORITY_LIST, NULL, &entry));
    me.ignore_bits = UINT64_MAX;
    CHECK(PtlMEAppend(ni, portal, &me, PTL_OVERFLOW_LIST, NULL, &overflow));
    me.ignore_bits = 0;
    ask("cmd=barrier_in\n");

    for (size_t size = 8; size <= LARGEST; size *= 32) {
        double begin = now_ns();
        for (int round = 0; round < ROUNDS; ++round)
            for (int turn = 0; turn < 2; ++turn) {
                if (turn == own) {
                    buffer[size - 1] = (char)round;
                    CHECK(PtlPut(plain, 0, size, PTL_NO_ACK_REQ, peer, portal, 7, 0, NULL, (ptl_hdr_data_t)round));
                    wait_event(sent, PTL_EVENT_SEND);
                } else {
                    ptl_event_t event = wait_event(events, PTL_EVENT_PUT);
                    if (event.hdr_data != (ptl_hdr_data_t)round || event.mlength != size ||
                        space_for_all[size - 1] != (char)round) {
                        fprintf(stderr, "another message than was sent\n");
                        return 1;
                    }
                }
            }
        if (own == 0)
            printf("put of %zu bytes: %.0f ns one way\n", size, (now_ns() - begin) / (2 * ROUNDS));
    }

    /* A put that comes before its entry: its header is kept. */
    if (own == 0) {
        CHECK(PtlPut(plain, 0, 100, PTL_ACK_REQ, peer, portal, 99, 0, NULL, 5));
        wait_event(sent, PTL_EVENT_SEND);
        wait_event(sent, PTL_EVENT_ACK);
        wait_event(events, PTL_EVENT_PUT);
        puts("a put before its entry was kept, and taken");
    } else {
        wait_event(events, PTL_EVENT_PUT);
        me.match_bits = 99;
        me.options |= PTL_ME_USE_ONCE;
        CHECK(PtlMEAppend(ni, portal, &me, PTL_PRIORITY_LIST, NULL, &late));
        wait_event(events, PTL_EVENT_PUT_OVERFLOW);
        wait_event(events, PTL_EVENT_AUTO_UNLINK);
        CHECK(PtlPut(plain, 0, 1, PTL_NO_ACK_REQ, peer, portal, 7, 0, NULL, 0));
        wait_event(sent, PTL_EVENT_SEND);
    }

    /* Gets, and a sum, on the memory of rank 1, which only waits. */
    if (own == 0) {
        ptl_ct_event_t count;
        double begin = now_ns();
        for (int round = 1; round <= ROUNDS; ++round) {
            CHECK(PtlGet(gets, 0, 64, peer, portal, 7, 4096, NULL));
            CHECK(PtlCTWait(counted, (ptl_size_t)round, &count));
        }
        printf("get of 64 bytes: %.0f ns there and back\n", (now_ns() - begin) / ROUNDS);
        int64_t *operand = (int64_t *)(void *)buffer;
        begin = now_ns();
        for (int round = 1; round <= ROUNDS; ++round) {
            operand[0] = 2;
            CHECK(PtlFetchAtomic(gets, 64, gets, 0, 8, peer, portal, 7, 8192, NULL, 0, PTL_SUM, PTL_INT64_T));
            CHECK(PtlCTWait(counted, (ptl_size_t)(ROUNDS + round), &count));
            if (operand[8] != 2 * (round - 1)) {
                fprintf(stderr, "the sum is %" PRId64 ", not %d\n", operand[8], 2 * (round - 1));
                return 1;
            }
        }
        printf("fetch-atomic of 8 bytes: %.0f ns there and back\n", (now_ns() - begin) / ROUNDS);
        CHECK(PtlPut(plain, 0, 1, PTL_NO_ACK_REQ, peer, portal, 7, 0, NULL, 77));
        wait_event(sent, PTL_EVENT_SEND);
    } else {
        for (int round = 0; round < ROUNDS; ++round)
            wait_event(events, PTL_EVENT_GET);
        for (int round = 0; round < ROUNDS; ++round)
            wait_event(events, PTL_EVENT_FETCH_ATOMIC);
        wait_event(events, PTL_EVENT_PUT);
    }

    /* A put that waits for a counting event, not for its program. */
    ptl_handle_ct_t trigger;
    ptl_ct_event_t one = {1, 0};
    CHECK(PtlCTAlloc(ni, &trigger));
    if (own == 0) {
        CHECK(PtlTriggeredPut(plain, 0, 16, PTL_NO_ACK_REQ, peer, portal, 7, 0, NULL, 3, trigger, 2));
        CHECK(PtlCTInc(trigger, one));
        CHECK(PtlCTInc(trigger, one));
        wait_event(sent, PTL_EVENT_SEND);
        puts("a triggered put has started at its threshold");
    } else {
        ptl_event_t event = wait_event(events, PTL_EVENT_PUT);
        if (event.hdr_data != 3)
            return 1;
    }
    ask("cmd=barrier_in\n");
    CHECK(PtlMEUnlink(entry));
    CHECK(PtlMEUnlink(overflow));
    CHECK(PtlPTFree(ni, portal));
    CHECK(PtlMDRelease(plain));
    CHECK(PtlEQFree(events));
    CHECK(PtlCTFree(counted));
    CHECK(PtlNIFini(ni));
    PtlFini();
    ask("cmd=finalize\n");
    return 0;
}
