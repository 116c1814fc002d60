// latency_test [--bram] [--quiet] -b FILE -l SIZE -n N -i PORT: TEXTAROSSA D2.8 §5.2.2, appendices A and C.
//
// Packets go from port 0 of node 0 to a port of the last node, which sends them back: to port 0 of a machine of one
// node they cross once, as the local loop does. What is printed is half of the time of a packet, as in the document.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "../hw_hls/krnl_sr.h"
#include "apeiron_host.h"
#include "apeiron_options.h"
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/time.h>

namespace {

struct Options {
    std::string bitstream;
    unsigned packet_size = 16, npackets = 1000, port = 0;
    bool bram = false, quiet = false;
};

[[noreturn]] void usage()
{
    std::fprintf(stderr, "usage: latency_test [--bram] [--quiet] -b FILE -l SIZE -n PACKETS -i PORT; SIZE is at most "
                         "4096\n");
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
            options.packet_size = apeiron_number(word, value, 0, 4096);
        else if (word == "-n")
            options.npackets = apeiron_number(word, value, 1, UINT32_MAX);
        else if (word == "-i")
            options.port = apeiron_number(word, value, 0, 1);
        else
            usage();
    }
    if (options.bitstream.empty())
        usage();
    return options;
}

double microseconds(const timeval &begin, const timeval &end)
{
    return (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_usec - begin.tv_usec);
}

}  // namespace

int main(int count, char **words)
try {
    const Options options = parse(count, words);
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(options.bitstream);

    xrt::ip kswitch(device, design, "TextaRossa_switch_1");
    const unsigned node = apeiron_own_node(device), last = apeiron_node_count(device) - 1;
    kswitch.write_register(APEIRON_RESET, 1);
    kswitch.write_register(APEIRON_LOCAL_COORD, apeiron_coordinates(device, node));
    kswitch.write_register(APEIRON_THRESHOLD, 8);

    const bool is_loop = last == 0 && options.port == 0;
    const char *names[] = {"krnl_sr:{krnl_sr_1}", "krnl_sr:{krnl_sr_2}"};
    xrt::kernel initiator(device, design, names[0]), responder(device, design, names[options.port]);
    xrt::bo send_buffer(device, options.packet_size), recv_buffer(device, options.packet_size);

    if (node == last && !is_loop) {
        xrt::run pipe = responder((unsigned)KRNL_PIPE, apeiron_coordinates(device, 0), 0, options.npackets,
                                  options.packet_size, send_buffer, recv_buffer, true);
        if (node != 0)
            pipe.wait();
    }
    if (node != 0)
        return 0;

    for (unsigned byte = 0; byte < options.packet_size; byte++)
        send_buffer.map<unsigned char *>()[byte] = (unsigned char)(byte * 3 + 5);
    timeval begin, end;
    gettimeofday(&begin, nullptr);
    if (!options.bram)
        send_buffer.sync(XCL_BO_SYNC_BO_TO_DEVICE);
    xrt::run run = initiator((unsigned)KRNL_SEND_RECEIVE, apeiron_coordinates(device, last), options.port,
                             options.npackets, options.packet_size, send_buffer, recv_buffer, options.bram);
    run.wait();
    if (!options.bram)
        recv_buffer.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
    gettimeofday(&end, nullptr);

    const double elapsed = microseconds(begin, end);
    if (!options.quiet)
        std::printf("%u packets from port 0 to port %u of node %u in %.0f us\n", options.npackets, options.port, last,
                    elapsed);
    std::printf("Packet size: %u B Latency: %.3f us\n", options.packet_size, elapsed / 2 / options.npackets);
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "latency_test: %s\n", error.what());
    return 1;
}
