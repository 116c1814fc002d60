// pipeline_test -b FILE [-n BLOCKS] [-s STAGE:INTERVAL]: a filter bank over all nodes of the machine.
//
// Stages are dealt out to the nodes in order. With -s a stage takes INTERVAL cycles for four samples instead of one:
// the slowest stage is the pace of all. The last node checks what has come against plain C++.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "../hw_hls/filter_bank.h"
#include "apeiron_host.h"
#include "apeiron_options.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/time.h>
#include <vector>

namespace {

struct Options {
    std::string bitstream;
    unsigned nblocks = 100, slow_stage = STAGES, interval = 1;
};

[[noreturn]] void usage()
{
    std::fprintf(stderr, "usage: pipeline_test -b FILE [-n BLOCKS] [-s STAGE:INTERVAL]; STAGE is 1 to 4\n");
    std::exit(2);
}

Options parse(int count, char **words)
{
    Options options;
    for (int at = 1; at + 1 < count; at += 2) {
        const std::string word = words[at];
        if (word == "-b")
            options.bitstream = words[at + 1];
        else if (word == "-n")
            options.nblocks = apeiron_number(word, words[at + 1], 1, 1000000);
        else if (word == "-s" && std::strchr(words[at + 1], ':') != nullptr) {
            const std::string both = words[at + 1];
            const size_t colon = both.find(':');
            options.slow_stage = apeiron_number("STAGE of -s", both.substr(0, colon), 1, STAGES);
            options.interval = apeiron_number("INTERVAL of -s", both.substr(colon + 1), 1, 1000000);
        } else
            usage();
    }
    if (count % 2 == 0 || options.bitstream.empty())
        usage();
    return options;
}

double microseconds(const timeval &begin, const timeval &end)
{
    return (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_usec - begin.tv_usec);
}

int32_t sample(size_t at)
{
    return (int32_t)(at * 2654435761u % 2001) - 1000;
}

}  // namespace

int main(int count, char **words)
try {
    const Options options = parse(count, words);
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(options.bitstream);
    const unsigned node = apeiron_own_node(device), nodes = apeiron_node_count(device);
    if (STAGES % nodes != 0)
        throw std::runtime_error("four stages go to one, two or four nodes; see --set topology.dims");
    const unsigned of_node = STAGES / nodes;
    const size_t nsamples = (size_t)options.nblocks * BLOCK;
    xrt::bo input(device, nsamples * sizeof(int32_t)), output(device, nsamples * sizeof(int32_t));
    for (size_t at = 0; at < nsamples; at++)
        input.map<int32_t *>()[at] = sample(at);
    input.sync(XCL_BO_SYNC_BO_TO_DEVICE);

    timeval begin, end;
    gettimeofday(&begin, nullptr);
    std::vector<xrt::run> runs;
    for (unsigned stage = node * of_node; stage < (node + 1) * of_node; stage++) {
        xrt::kernel kernel(device, design, "krnl_stage:{krnl_stage_" + std::to_string(stage + 1) + "}");
        const unsigned next = stage + 1 < STAGES ? stage + 1 : stage;
        runs.push_back(kernel(stage, options.nblocks, apeiron_coordinates(device, next / of_node), next, input, output,
                              stage + 1 == options.slow_stage ? options.interval : 1));
    }
    for (xrt::run &run : runs)
        run.wait();
    gettimeofday(&end, nullptr);
    std::fputs(apeiron_explain(device).c_str(), stdout);
    if (node + 1 < nodes)
        return 0;

    output.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
    int32_t history[STAGES][TAPS] = {};
    for (size_t at = 0; at < nsamples; at++) {
        int32_t expected = sample(at);
        for (unsigned stage = 0; stage < STAGES; stage++)
            expected = filter(stage, expected, history[stage]);
        if (output.map<int32_t *>()[at] != expected) {
            std::fprintf(stderr, "pipeline_test: sample %zu is %d, and plain C++ makes %d\n", at,
                         output.map<int32_t *>()[at], expected);
            return 1;
        }
    }
    const double elapsed = microseconds(begin, end);
    std::printf("%zu samples are right, over %u nodes: %.3f us for a block, %.1f Msamples/s\n", nsamples, nodes,
                elapsed / options.nblocks, (double)nsamples / elapsed);
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "pipeline_test: %s\n", error.what());
    return 1;
}
