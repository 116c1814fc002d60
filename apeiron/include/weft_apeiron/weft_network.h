// The ports of a node of `weft apeiron run`: the Communication IP of the simulated machine, by weft.h.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_WEFT_NETWORK_H
#define WEFT_APEIRON_WEFT_NETWORK_H

#include "network.h"
#include "version.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <weft.h>

namespace weft_apeiron {

// The machine, as `weft apeiron run` describes it in the environment.
struct Surroundings {
    // Nodes along x, y and z.
    unsigned nodes[3] = {1, 1, 1};
    // Cycles from a request of a kernel to the first word of DDR.
    std::uint64_t ddr_cycles = 0;
    // Of a copy between host and card: picoseconds beside its bytes, and bits per second; 0: bytes take no time.
    std::uint64_t sync_latency = 0, sync_rate = 0;
    // Bytes of the largest packet.
    std::size_t payload = 0;
    // The design of the config.yaml that weft runs: its clock, and its kernels and streams in a word.
    std::uint64_t megahertz = 0;
    std::string kernels;

    // The time of such a copy.
    Picoseconds sync_time(std::size_t bytes) const
    {
        const unsigned __int128 bits = static_cast<unsigned __int128>(bytes) * 8 * 1000000000000;
        return sync_latency + (sync_rate == 0 ? 0 : static_cast<Picoseconds>((bits + sync_rate - 1) / sync_rate));
    }

    static Surroundings read()
    {
        const char *text = std::getenv("WEFT_APEIRON");
        if (text == nullptr)
            throw std::runtime_error("this is a program of an APEIRON design: start it by "
                                     "weft apeiron run CONFIG -- PROGRAM");
        Surroundings own;
        std::istringstream words(text);
        check_version(words, "WEFT_APEIRON of weft apeiron run");
        words >> own.nodes[0] >> own.nodes[1] >> own.nodes[2] >> own.ddr_cycles >> own.sync_latency >> own.sync_rate;
        words >> own.payload >> own.megahertz >> own.kernels;
        if (!words)
            throw std::runtime_error("WEFT_APEIRON is cut short; it is set by weft apeiron run alone");
        return own;
    }
};

class WeftNetwork : public Network {
  public:
    explicit WeftNetwork(const Surroundings &surroundings) : surroundings_(surroundings)
    {
        const int status = weft_open(&rank_);
        if (status < 0)
            throw std::runtime_error(std::string("the job of weft apeiron run: ") + std::strerror(-status));
    }

    // Takes an IntraNode port of this node.
    void open(unsigned number)
    {
        weft_interface *port = nullptr;
        const int status = weft_port_open(rank_, static_cast<std::uint16_t>(number), &port);
        if (status < 0)
            throw std::runtime_error("IntraNode port " + std::to_string(number) + " of this node: " +
                                     (status == -ENXIO ? "there is none; give weft apeiron run the config.yaml of "
                                                         "this design"
                                                       : std::strerror(-status)));
        ports_[number] = port;
        room_.resize(weft_interface_limit(port));
        own_ = weft_interface_address(port, nullptr);
    }

    // Nodes of the machine, this one, and their coordinates as register local_coord has them.
    unsigned nodes() const { return surroundings_.nodes[0] * surroundings_.nodes[1] * surroundings_.nodes[2]; }
    unsigned node() const override { return own_.node; }

    std::uint32_t coordinates(unsigned node) const
    {
        const unsigned x = node % surroundings_.nodes[0], rest = node / surroundings_.nodes[0];
        return rest / surroundings_.nodes[1] << 11 | rest % surroundings_.nodes[1] << 6 | x;
    }

    Picoseconds now() override
    {
        std::uint64_t clock = 0;
        weft_times(&clock, nullptr);
        return clock;
    }

    void pass_until(Picoseconds then) override { weft_pass_until(rank_, then); }

    bool wait_until(Picoseconds then) override { return weft_wait_until(rank_, then) == 1; }

    void send(const Packet &packet) override
    {
        const unsigned x = packet.header.s.dest_x, y = packet.header.s.dest_y, z = packet.header.s.dest_z;
        const unsigned *all = surroundings_.nodes;
        if (x >= all[0] || y >= all[1] || z >= all[2])
            end("a packet from port " + std::to_string(packet.port) + " is for node (" + std::to_string(x) + ", " +
                std::to_string(y) + ", " + std::to_string(z) + "), and the machine has " + std::to_string(all[0]) +
                " x " + std::to_string(all[1]) + " x " + std::to_string(all[2]) + "; see --set topology.dims");
        weft_address to = own_;
        to.node = (z * all[1] + y) * all[0] + x;
        to.interface = static_cast<std::uint16_t>(packet.header.s.intra_dest);
        const int status =
            weft_port_send(ports_.at(packet.port), to, &packet.header, packet.payload.data(), packet.payload.size());
        if (status < 0)
            end("a packet from port " + std::to_string(packet.port) + ": " + std::strerror(-status));
    }

    bool take(Packet &packet) override
    {
        for (const auto &port : ports_) {
            weft_port_arrival came = {};
            const std::ptrdiff_t length =
                weft_port_take(port.second, &packet.header, room_.data(), room_.size(), &came);
            if (length == -EAGAIN)
                continue;
            if (length < 0)
                end("port " + std::to_string(port.first) + ": " + std::strerror(static_cast<int>(-length)));
            packet.payload.assign(room_.begin(), room_.begin() + length);
            packet.port = port.first;
            packet.from_node = came.from.node;
            packet.from_port = came.from.interface;
            packet.at = came.at_ps;
            // As the switches on its way have written them.
            packet.header.s.virt_chan = came.virtual_channel;
            packet.header.s.num_of_hops = came.hops;
            packet.header.s.out_of_lattice = 0;
            packet.header.s.edac = 0;
            packet.header.s.edac = edac_of(packet.header);
            return true;
        }
        return false;
    }

    void free(unsigned port) override { weft_port_free(ports_.at(port)); }

    bool take_sent(unsigned &number, Picoseconds &at) override
    {
        for (const auto &port : ports_) {
            std::uint64_t when = 0;
            const int status = weft_port_sent(port.second, &when);
            if (status < 0)
                end("a packet from port " + std::to_string(port.first) +
                    (status == -ENXIO ? " is for an IntraNode port that its node does not have open: no kernel is at "
                                        "it, or the host program there has ended, or has not loaded its design"
                                      : std::string(" has failed: ") + std::strerror(-status)));
            if (status == 0)
                continue;
            number = port.first;
            at = when;
            return true;
        }
        return false;
    }

    // Tells weft what a kernel has done with its time, at the end of the program.
    void tell_of_kernel(const std::string &kernel, std::uint32_t activity, const std::string &stream, Picoseconds time)
    {
        weft_kernel_time(rank_, kernel.c_str(), activity, stream.c_str(), time);
    }

    std::uint32_t read_register(std::uint32_t address) override
    {
        std::uint32_t value = 0;
        check_register(weft_register_read(rank_, address, &value), address, "read");
        return value;
    }

    void write_register(std::uint32_t address, std::uint32_t value) override
    {
        check_register(weft_register_write(rank_, address, value), address, "written");
    }

  private:
    static void check_register(int status, std::uint32_t address, const char *what)
    {
        if (status == 0)
            return;
        std::ostringstream told;
        told << "register 0x" << std::hex << address << " of the Communication IP cannot be " << what << ": "
             << (status == -EACCES  ? "it is only read"
                 : status == -EFAULT ? "there is none"
                 : status == -EINVAL ? "it does not take that value; docs/src/nic/communication-ip.md has those of each"
                                     : std::strerror(-status));
        throw std::runtime_error(told.str());
    }

    [[noreturn]] static void end(const std::string &what)
    {
        std::fflush(stdout);
        std::fprintf(stderr, "weft apeiron: %s\n", what.c_str());
        std::_Exit(1);
    }

    Surroundings surroundings_;
    weft_rank *rank_ = nullptr;
    std::map<unsigned, weft_interface *> ports_;
    // For the payload of a packet.
    std::vector<unsigned char> room_;
    weft_address own_ = {};
};

}  // namespace weft_apeiron

#endif
