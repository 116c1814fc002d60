// The IntraNode ports of a node, as its kernels use them.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_NETWORK_H
#define WEFT_APEIRON_NETWORK_H

#include "../apenet_header.h"
#include "clock.h"
#include <vector>

namespace weft_apeiron {

// A packet at a port.
struct Packet {
    // The time at which its first word is given to the aggregator, or its last word is with the kernel.
    Picoseconds at = 0;
    // The port that it leaves by, or has come to.
    unsigned port = 0;
    // Of one that has come, the node and the port that have sent it.
    unsigned from_node = 0, from_port = 0;
    apenet_header_t header = {};
    std::vector<unsigned char> payload;
};

class Network {
  public:
    virtual ~Network() = default;

    // The number of this node.
    virtual unsigned node() const = 0;

    // The node's time.
    virtual Picoseconds now() = 0;

    // The node has nothing to do with its ports until then.
    virtual void pass_until(Picoseconds then) = 0;

    // Waits until something has come or that time is reached: whether something has. NEVER: also returns, with false,
    // when nothing can come any more.
    virtual bool wait_until(Picoseconds then) = 0;

    // Gives a packet to a port now.
    virtual void send(const Packet &packet) = 0;

    // The next packet that has come. It stays in the receiving FIFOs of its port.
    virtual bool take(Packet &packet) = 0;

    // The oldest packet taken from a port leaves its receiving FIFOs now.
    virtual void free(unsigned port) = 0;

    // The next port whose aggregator has written a packet into its FIFO, and when.
    virtual bool take_sent(unsigned &port, Picoseconds &at) = 0;

    // Registers of the Communication IP. Those that refuse give the reason.
    virtual std::uint32_t read_register(std::uint32_t address) = 0;
    virtual void write_register(std::uint32_t address, std::uint32_t value) = 0;
};

}  // namespace weft_apeiron

#endif
