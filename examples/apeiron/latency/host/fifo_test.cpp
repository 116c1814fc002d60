// fifo_test -b FILE [-l SIZE] [-x NODE]: a packet of the Communication IP's own generator, from a transmitting FIFO to a
// receiving one, without kernels: TEXTAROSSA D2.8 §2.1, §5.1.
//
// Registers of the IP set the size, the destination along X and the start; its performance counter has the cycles from
// the footer's writing to its reading.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "apeiron_host.h"
#include "apeiron_options.h"
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace {

[[noreturn]] void usage()
{
    std::fprintf(stderr, "usage: fifo_test -b FILE [-l SIZE] [-x NODE]\n");
    std::exit(2);
}

}  // namespace

int main(int count, char **words)
try {
    std::string bitstream;
    uint32_t size = 16, to = 0;
    for (int at = 1; at + 1 < count; at += 2) {
        const std::string word = words[at];
        if (word == "-b")
            bitstream = words[at + 1];
        else if (word == "-l")
            size = apeiron_number(word, words[at + 1], 0, 4096);
        else if (word == "-x")
            to = apeiron_number(word, words[at + 1], 0, UINT32_MAX);
        else
            usage();
    }
    if (bitstream.empty() || count % 2 == 0)
        usage();
    xrt::device device(0);
    const xrt::uuid design = device.load_xclbin(bitstream);
    xrt::ip kswitch(device, design, "TextaRossa_switch_1");
    const unsigned node = apeiron_own_node(device);
    if (to >= apeiron_node_count(device))
        throw std::runtime_error("there is no such node; see --set topology.dims");
    if (node == 0) {
        kswitch.write_register(APEIRON_RESET, 1);
        kswitch.write_register(APEIRON_TEST_PACKETS, 1);
        kswitch.write_register(APEIRON_TEST_SIZE, size);
        kswitch.write_register(APEIRON_TEST_DEST_X, to);
        kswitch.write_register(APEIRON_TEST_START, 1);
    }
    // Longer than the packet takes.
    usleep(100);
    if (node != to)
        return 0;
    const uint32_t status = kswitch.read_register(APEIRON_TEST_STATUS);
    const uint32_t cycles = kswitch.read_register(APEIRON_TEST_CYCLES);
    if (status != 0x31)
        throw std::runtime_error("the test has failed: register 20 is not 00110001");
    std::printf("Packet size: %u B TX FIFO to RX FIFO: %u cycles\n", size, cycles);
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "fifo_test: %s\n", error.what());
    return 1;
}
