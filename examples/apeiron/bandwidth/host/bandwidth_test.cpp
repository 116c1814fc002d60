// bandwidth_test [--bram] [--quiet] -b FILE -l SIZE [-n PACKETS]: TEXTAROSSA D2.8 §5.2.1, appendix A.
//
// The sender of node 0 sends to the receiver of the last node, which may be the same: the loop. The clock stops when
// the acknowledgement has come.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "apeiron_host.h"
#include "apeiron_options.h"
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/time.h>

namespace {

struct Options {
    std::string bitstream;
    unsigned packet_size = 2048, npackets = 1000;
    bool bram = false, quiet = false;
};

[[noreturn]] void usage()
{
    std::fprintf(stderr, "usage: bandwidth_test [--bram] [--quiet] -b FILE -l SIZE [-n PACKETS]; SIZE is a multiple of "
                         "16 up to 4096, PACKETS at most a million\n");
    std::exit(2);
}

Options parse(int count, char **words)
{
    Options options;
    for (int at = 1; at < count; at++) {
        const std::string word = words[at];
        if (word == "--bram" || word == "--quiet") {
            (word == "--bram" ? options.bram : options.quiet) = true;
            continue;
        }
        if (at + 1 == count)
            usage();
        const char *value = words[++at];
        if (word == "-b")
            options.bitstream = value;
        else if (word == "-l")
            options.packet_size = apeiron_number(word, value, 16, 4096);
        else if (word == "-n")
            options.npackets = apeiron_number(word, value, 1, 1000000);
        else
            usage();
    }
    if (options.bitstream.empty() || options.packet_size % 16 != 0)
        usage();
    return options;
}

double seconds(const timeval &begin, const timeval &end)
{
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_usec - begin.tv_usec) * 1e-6;
}

}  // namespace

int main(int count, char **words)
try {
    const Options options = parse(count, words);
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(options.bitstream);
    const unsigned node = apeiron_own_node(device), last = apeiron_node_count(device) - 1;
    xrt::ip kswitch(device, design, "TextaRossa_switch_1");
    kswitch.write_register(APEIRON_LOCAL_COORD, apeiron_coordinates(device, node));

    // Words of 128 bits, counted.
    const size_t bytes = (size_t)options.npackets * options.packet_size;
    xrt::bo send_buffer(device, bytes), recv_buffer(device, bytes);
    for (size_t word = 0; word < bytes / 16; word++)
        send_buffer.map<uint64_t *>()[2 * word] = word;
    const uint32_t first_at = apeiron_coordinates(device, 0), last_at = apeiron_coordinates(device, last);

    xrt::kernel receiver(device, design, "krnl_receiver"), sender(device, design, "krnl_sender");
    if (node == last) {
        xrt::run run = receiver(first_at & 63, first_at >> 6 & 31, first_at >> 11, 0, options.npackets, recv_buffer,
                                options.bram);
        if (node != 0) {
            run.wait();
            return 0;
        }
    }
    if (node != 0)
        return 0;
    timeval begin, end;
    gettimeofday(&begin, nullptr);
    if (!options.bram)
        send_buffer.sync(XCL_BO_SYNC_BO_TO_DEVICE);
    xrt::run run = sender(last_at & 63, last_at >> 6 & 31, last_at >> 11, 1, options.npackets, options.packet_size,
                          send_buffer, options.bram);
    run.wait();
    if (!options.bram && last == 0)
        recv_buffer.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
    gettimeofday(&end, nullptr);

    const double elapsed = seconds(begin, end);
    if (!options.quiet)
        std::printf("%u packets to node %u in %.0f us\n", options.npackets, last, elapsed * 1e6);
    std::printf("Packet size: %u B Bandwidth: %.2f MB/s (%.2f Gb/s)\n", options.packet_size,
                (double)bytes / elapsed / 1e6, 8 * (double)bytes / elapsed / 1e9);
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "bandwidth_test: %s\n", error.what());
    return 1;
}
