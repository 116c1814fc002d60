// pairs_test -b FILE [-n BLOCKS] [-s INTERVAL]: a filter bank whose stages are joined in pairs, a pair on each node.
//
// With -s the second stage of each pair takes INTERVAL cycles for four samples instead of one. The last node checks
// what has come against plain C++.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "../../pipeline/hw_hls/filter_bank.h"
#include "apeiron_host.h"
#include "apeiron_options.h"
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/time.h>

namespace {

struct Options {
    std::string bitstream;
    unsigned nblocks = 100, interval = 1;
};

[[noreturn]] void usage()
{
    std::fprintf(stderr, "usage: pairs_test -b FILE [-n BLOCKS] [-s INTERVAL]\n");
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
        else if (word == "-s")
            options.interval = apeiron_number(word, words[at + 1], 1, 1000000);
        else
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
    const unsigned node = apeiron_own_node(device), nodes = apeiron_node_count(device), stages = 2 * nodes;
    if (stages > STAGES)
        throw std::runtime_error("four stages go to one or two nodes; see --set topology.dims");
    const bool is_last = node + 1 == nodes;
    const size_t nsamples = (size_t)options.nblocks * BLOCK;
    xrt::bo input(device, nsamples * sizeof(int32_t)), output(device, nsamples * sizeof(int32_t));
    for (size_t at = 0; at < nsamples; at++)
        input.map<int32_t *>()[at] = sample(at);
    input.sync(XCL_BO_SYNC_BO_TO_DEVICE);

    timeval begin, end;
    gettimeofday(&begin, nullptr);
    xrt::kernel front(device, design, "krnl_front"), back(device, design, "krnl_back");
    xrt::run first = front(2 * node, options.nblocks, input);
    xrt::run second = back(2 * node + 1, options.nblocks, is_last,
                           apeiron_coordinates(device, is_last ? node : node + 1), output, options.interval);
    first.wait();
    second.wait();
    gettimeofday(&end, nullptr);
    std::fputs(apeiron_explain(device).c_str(), stdout);
    if (!is_last)
        return 0;

    output.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
    int32_t history[STAGES][TAPS] = {};
    for (size_t at = 0; at < nsamples; at++) {
        int32_t expected = sample(at);
        for (unsigned stage = 0; stage < stages; stage++)
            expected = filter(stage, expected, history[stage]);
        if (output.map<int32_t *>()[at] != expected) {
            std::fprintf(stderr, "pairs_test: sample %zu is %d, and plain C++ makes %d\n", at,
                         output.map<int32_t *>()[at], expected);
            return 1;
        }
    }
    const double elapsed = microseconds(begin, end);
    std::printf("%zu samples are right, over %u nodes: %.3f us for a block, %.1f Msamples/s\n", nsamples, nodes,
                elapsed / options.nblocks, (double)nsamples / elapsed);
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "pairs_test: %s\n", error.what());
    return 1;
}
