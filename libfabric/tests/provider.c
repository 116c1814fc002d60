/* Tests of the provider by itself: two ranks on the stand-in, and a process that is no rank.
 *
 *   provider PROVIDER.so STAND_IN.so
 */
#include "two_ranks.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fi_provider *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    struct fi_provider *(*initialize)(void) = (struct fi_provider * (*)(void)) dlsym(library, "fi_prov_ini");
    return initialize();
}

static void open_side(struct side *side)
{
    struct fi_info hints = {0}, *info;
    struct fi_tx_attr transmit = {.op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION, .iov_limit = 4};
    struct fi_rx_attr receive = {.op_flags = FI_COMPLETION, .iov_limit = 4};
    struct fi_domain_attr domain = {.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED};
    hints.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE;
    hints.tx_attr = &transmit;
    hints.rx_attr = &receive;
    hints.domain_attr = &domain;
    char peer[2] = {side->rank ? '0' : '1', 0};
    EXPECT(side, side->provider->getinfo(FI_VERSION(1, 18), peer, NULL, 0, &hints, &info) == 0);
    side->info = info;
    EXPECT(side, side->provider->fabric(info->fabric_attr, &side->fabric, NULL) == 0);
    EXPECT(side, fi_domain(side->fabric, info, &side->domain, NULL) == 0);
    struct fi_av_attr av = {.type = FI_AV_TABLE};
    EXPECT(side, fi_av_open(side->domain, &av, &side->av, NULL) == 0);
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
    EXPECT(side, fi_cq_open(side->domain, &cq, &side->cq, NULL) == 0);
    struct fi_cntr_attr counter = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
    EXPECT(side, fi_cntr_open(side->domain, &counter, &side->counter, NULL) == 0);
    EXPECT(side, fi_endpoint(side->domain, info, &side->endpoint, NULL) == 0);
    EXPECT(side, fi_enable(side->endpoint) == -FI_ENOAV);
    EXPECT(side, fi_ep_bind(side->endpoint, &side->av->fid, 0) == 0);
    EXPECT(side, fi_enable(side->endpoint) == -FI_ENOCQ);
    EXPECT(side, fi_ep_bind(side->endpoint, &side->cq->fid, FI_SEND | FI_RECV | FI_SELECTIVE_COMPLETION) == 0);
    EXPECT(side, fi_ep_bind(side->endpoint, &side->counter->fid, FI_READ | FI_WRITE) == 0);
    EXPECT(side, fi_send(side->endpoint, NULL, 0, NULL, 0, NULL) == -FI_EOPBADSTATE);
    EXPECT(side, fi_enable(side->endpoint) == 0);
    EXPECT(side, fi_av_insert(side->av, info->src_addr, 1, &side->own, 0, NULL) == 1);
    EXPECT(side, fi_av_insert(side->av, info->dest_addr, 1, &side->peer, 0, NULL) == 1);
}

/* Objects in use cannot be closed; all can in the order of a program. */
static void close_side(struct side *side)
{
    EXPECT(side, fi_close(&side->fabric->fid) == -FI_EBUSY);
    EXPECT(side, fi_close(&side->domain->fid) == -FI_EBUSY);
    EXPECT(side, fi_close(&side->cq->fid) == -FI_EBUSY);
    EXPECT(side, fi_close(&side->av->fid) == -FI_EBUSY);
    EXPECT(side, fi_close(&side->counter->fid) == -FI_EBUSY);
    EXPECT(side, fi_close(&side->endpoint->fid) == 0);
    EXPECT(side, fi_close(&side->cq->fid) == 0);
    EXPECT(side, fi_close(&side->av->fid) == 0);
    EXPECT(side, fi_close(&side->counter->fid) == 0);
    EXPECT(side, fi_close(&side->domain->fid) == 0);
    EXPECT(side, fi_close(&side->fabric->fid) == 0);
    info_free(side->info);
}

static int run_rank(const char *provider)
{
    static const struct {
        const char *name;
        void (*test)(struct side *);
    } tests[] = {
        {"attributes", test_info}, {"objects", test_objects}, {"messages", test_messages},
        {"tagged messages", test_tagged}, {"RDMA", test_rma}, {"endpoints", test_endpoints},
    };
    struct side side = {.rank = (unsigned)atoi(getenv("WEFT_RANK")), .provider = load(provider)};
    open_side(&side);
    int failed = side.failed;
    for (size_t i = 0; i < sizeof tests / sizeof *tests && !failed; i++) {
        side.failed = 0;
        tests[i].test(&side);
        barrier(&side);
        printf("%s  rank %u: %s\n", side.failed ? "FAILED" : "ok    ", side.rank, tests[i].name);
        failed += side.failed;
    }
    side.failed = 0;
    close_side(&side);
    printf("%s  rank %u: opening and closing\n", side.failed ? "FAILED" : "ok    ", side.rank);
    return failed + side.failed != 0;
}

/* Without libweft_client.so there is no information, and nothing else happens. */
static int run_alone(const char *provider)
{
    struct fi_info *info = NULL;
    int result = load(provider)->getinfo(FI_VERSION(1, 18), NULL, NULL, 0, NULL, &info);
    bool good = result == -FI_ENODATA && !info;
    printf("%s  no rank: no information\n", good ? "ok    " : "FAILED");
    return !good;
}

static int wait_for(pid_t child)
{
    int status;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s PROVIDER.so STAND_IN.so\n", argv[0]);
        return 2;
    }
    if (getenv("WEFT_RANK"))
        return run_rank(argv[1]);
    setvbuf(stdout, NULL, _IONBF, 0);
    int failed = run_alone(argv[1]);
    char job[64];
    snprintf(job, sizeof job, "/weft-provider-test-%d", (int)getpid());
    pid_t ranks[2];
    for (int i = 0; i < 2; i++) {
        ranks[i] = fork();
        if (ranks[i] == 0) {
            setenv("WEFT_JOB", job, 1);
            setenv("WEFT_COUNT", "2", 1);
            setenv("WEFT_RANK", i ? "1" : "0", 1);
            setenv("LD_PRELOAD", argv[2], 1);
            alarm(60);
            execv(argv[0], argv);
            _exit(127);
        }
    }
    failed += wait_for(ranks[0]) + wait_for(ranks[1]);
    char path[80];
    snprintf(path, sizeof path, "/dev/shm%s", job);
    unlink(path);
    return failed != 0;
}
