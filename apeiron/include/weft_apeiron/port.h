// An IntraNode port with the streams of its kernel: words become packets, and packets words.
//
//   kernel ──► message_data_out[0..] ──► packet by packet ──► aggregator
//   kernel ◄── message_data_in[0..]  ◄── by proc_id ◄──────── dispatcher
//
// A packet is given to the aggregator in the cycle in which its first word is there, or, where a word is late, as late
// as the words then follow each other. The port holds two packets that the aggregator has not written. A packet that
// comes is known with its last word; the words before it came in the cycles before.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_PORT_H
#define WEFT_APEIRON_PORT_H

#include "../hapecom.h"
#include "design.h"
#include "dispatcher.h"
#include "kernel_entry.h"
#include "network.h"
#include <functional>
#include <memory>

namespace weft_apeiron {

// Streams before the first and behind the last of a kernel: an access is reported instead of corrupting memory.
constexpr int GUARDS = 64;

// The channels of a kernel in one direction, between guards.
template <typename Stream>
class ChannelArray {
  public:
    ChannelArray(unsigned count, const std::string &name, Access access) : all_(new Stream[count + 2 * GUARDS])
    {
        const std::string kind = access == Access::Read ? "input" : "output", own = std::to_string(count);
        for (int at = -GUARDS; at < static_cast<int>(count) + GUARDS; at++) {
            StreamControl &control = first()[at].control();
            control.set_name(name + "[" + std::to_string(at) + "]");
            control.set_depth(StreamControl::UNBOUNDED);
            if (at >= static_cast<int>(count))
                control.forbid((access == Access::Read ? "reads " : "writes ") + control.name() + ", and it has " +
                               own + " " + kind + " channels in config.yaml: raise " + kind +
                               "_channels, or use another");
            else if (at < 0)
                control.forbid((access == Access::Read ? "reads " : "writes ") + control.name() + ", and its " + own +
                               " " + kind + " channels count from 0");
        }
    }

    Stream *first() const { return all_.get() + GUARDS; }
    Stream &operator[](unsigned channel) const { return first()[channel]; }

  private:
    std::unique_ptr<Stream[]> all_;
};

// Events of a port for the Communication IP: a packet, and the cycle in which one has left the receiving FIFOs.
struct PortEvents {
    std::function<void(Packet)> post;
    std::function<void(Cycle)> leaves;
};

class Port {
  public:
    // The port of a kernel. `limit`: bytes of the largest packet.
    Port(const KernelDesign &kernel, bool has_headers, std::size_t limit, PortEvents events)
        : kernel_(kernel), has_headers_(has_headers), limit_(limit), post_(std::move(events.post)),
          data_in_(kernel.inputs, "message_data_in", Access::Read),
          data_out_(kernel.outputs, "message_data_out", Access::Write),
          header_in_(kernel.inputs, "message_hdr_in", Access::Read),
          header_out_(kernel.outputs, "message_hdr_out", Access::Write),
          dispatcher_({data_in_.first(), header_in_.first(), kernel.inputs, has_headers}, std::move(events.leaves))
    {
        for (unsigned at = 0; at < kernel.inputs; at++) {
            data_in_[at].control().set_depth(kernel.depth);
            // Header and footer of each packet: packets of a word fill both alike.
            header_in_[at].control().set_depth(2 * kernel.depth);
        }
        for (unsigned at = 0; at < kernel.outputs; at++)
            outlets_.emplace_back(new Outgoing(*this, data_out_[at], header_out_[at]));
    }

    Port(const Port &) = delete;
    Port &operator=(const Port &) = delete;

    unsigned number() const { return kernel_.port; }
    unsigned inputs() const { return kernel_.inputs; }
    unsigned outputs() const { return kernel_.outputs; }
    Channels channels()
    {
        return {data_in_.first(), data_out_.first(), header_in_.first(), header_out_.first(), nullptr};
    }

    // The aggregator has written a packet.
    void sent(Cycle at)
    {
        waiting_--;
        free_from_ = at;
        for (auto &outgoing : outlets_)
            outgoing->admit();
    }

    // A packet has come, with its last word in that cycle. Returns what is wrong with it, or nothing.
    std::string arrived(Packet packet, Cycle last)
    {
        const unsigned channel = packet.header.s.proc_id;
        if (channel >= kernel_.inputs)
            return "a message has come for channel " + std::to_string(channel) + ", and kernel " + kernel_.name +
                   " has " + std::to_string(kernel_.inputs) +
                   " input channels: raise its input_channels in config.yaml, or send to another";
        dispatcher_.take(std::move(packet), last);
        return std::string();
    }

    const KernelDesign &kernel() const { return kernel_; }
    const Dispatcher &dispatcher() const { return dispatcher_; }

    // Packets in its output channels that are not whole, a sentence each.
    std::vector<std::string> unfinished() const
    {
        std::vector<std::string> told;
        for (const auto &outgoing : outlets_) {
            const std::string own = outgoing->unfinished();
            if (!own.empty())
                told.push_back(own + " of kernel " + kernel_.name);
        }
        return told;
    }

    // The name of an input channel.
    const std::string &input_name(unsigned channel) const { return data_in_[channel].control().name(); }

  private:
    // Packets that a port takes before the aggregator has written the first: the one that it writes, and the next.
    static constexpr unsigned AHEAD = 2;

    // An outlet that calls members of `Outgoing`.
    template <typename Owner>
    struct Taker : Outlet {
        Taker(Owner &of, Cycle (Owner::*asks)(), void (Owner::*takes)(Cycle)) : owner(of), ask(asks), take(takes) {}
        Cycle admits() override { return (owner.*ask)(); }
        void written(Cycle at) override { (owner.*take)(at); }
        Owner &owner;
        Cycle (Owner::*ask)();
        void (Owner::*take)(Cycle);
    };

    // An output channel: collects the words of its next packet.
    class Outgoing {
      public:
        Outgoing(Port &port, message_stream_t &data, header_stream_t &headers)
            : port_(port), data_(data), headers_(headers), data_taker_(*this, &Outgoing::admits_data, &Outgoing::data),
              header_taker_(*this, &Outgoing::admits_header, &Outgoing::header)
        {
            data.control().lead_to(&data_taker_);
            headers.control().lead_to(&header_taker_);
        }

        void admit()
        {
            data_.control().admit();
            headers_.control().admit();
        }

        // The packet in it that is not whole, as a sentence; empty: there is none.
        std::string unfinished() const
        {
            const std::string &name = data_.control().name();
            if (envelopes_ > 0)
                return "a packet in " + name + " that " + lacks() + ", with a packet_size of " +
                       std::to_string(packet_.header.s.packet_size) + ",";
            if (words_ == 0)
                return std::string();
            return port_.has_headers_ ? counted(words_) + " without a header in " + name
                                      : "a packet without its last word in " + name;
        }

      private:
        // The first word of a packet waits for room in the port, the others follow it.
        Cycle admits_data()
        {
            return port_.has_headers_ || words_ > 0 ? 0 : port_.room();
        }

        Cycle admits_header() { return envelopes_ > 0 ? 0 : port_.room(); }

        // A word of data has been written.
        void data(Cycle at)
        {
            const message_word_t word = data_.leave();
            if (!port_.has_headers_ && words_ == 0)
                begin(word.side);
            const std::size_t size = packet_.payload.size();
            if (port_.has_headers_ && word.side.is_addressed)
                executor()->refuse("sends by " + data_.control().name() +
                                   ", and its prototype has header streams: write a header, the words and a footer, "
                                   "or take the prototype without them");
            packet_.payload.resize(size + word.side.bytes);
            store_word(packet_.payload.data() + size, word, word.side.bytes);
            follow(at, words_++);
            if (port_.has_headers_)
                end_if_whole();
            else if (word.side.last || packet_.payload.size() >= port_.limit_)
                end(word.side.last);
        }

        // A packet of a message begins.
        void begin(const message_side_t &side)
        {
            if (!side.is_addressed)
                executor()->refuse("writes a word to " + data_.control().name() +
                                   " that says nowhere where it goes; use send, or the prototype with headers");
            packet_.header.s.proc_id = side.ch_id;
            packet_.header.s.dest_x = side.node & 63;
            packet_.header.s.dest_y = side.node >> 6 & 31;
            packet_.header.s.dest_z = side.node >> 11;
            packet_.header.s.intra_dest = side.task_id;
        }

        // Its last word is there.
        void end(bool last)
        {
            packet_.header.s.packet_type = last ? LAST_PACKET : MORE_FOLLOW;
            packet_.header.s.packet_size = packet_.payload.size();
            packet_.header.s.dest_addr = offset_;
            offset_ = last ? 0 : offset_ + packet_.payload.size();
            post();
        }

        // The kernel has written a header, or a footer.
        void header(Cycle at)
        {
            const apenet_header_t written = headers_.leave();
            if (envelopes_ == 2)
                executor()->refuse("writes another header to " + headers_.control().name() +
                                   ", and the packet before it " + lacks());
            if (envelopes_++ == 0) {
                packet_.header = written;
                if (written.s.packet_size > port_.limit_)
                    executor()->refuse("writes a header with a packet_size of " +
                                       std::to_string(written.s.packet_size) + ", and a packet has at most " +
                                       std::to_string(port_.limit_) + " bytes");
                follow(at, 0);
            } else {
                // The footer comes behind all words.
                if (words_ > words())
                    executor()->refuse("writes a packet to " + data_.control().name() + " with a packet_size of " +
                                       std::to_string(packet_.header.s.packet_size) + ", and " +
                                       counted(words_ - words()) + " too many before its footer");
                follow(at, words() + 1);
            }
            end_if_whole();
        }

        void end_if_whole()
        {
            if (envelopes_ < 2 || words_ < words())
                return;
            packet_.payload.resize(packet_.header.s.packet_size);
            post();
        }

        // Words that the header of its packet announces.
        std::size_t words() const { return (packet_.header.s.packet_size + WORD_BYTES - 1) / WORD_BYTES; }

        // The words or the footer that its packet lacks, whose header is there.
        std::string lacks() const
        {
            return "lacks " + (words_ < words() ? counted(words() - words_) : std::string("its footer"));
        }

        static std::string counted(std::size_t words)
        {
            return std::to_string(words) + (words == 1 ? " word" : " words");
        }

        // The packet can begin so late that its word `place` follows in time.
        void follow(Cycle at, std::size_t place)
        {
            const Cycle begins = at > place ? at - place : 0;
            begins_ = begins > begins_ ? begins : begins_;
        }

        void post()
        {
            packet_.header.s.edac = 0;
            packet_.header.s.edac = edac_of(packet_.header);
            packet_.port = port_.number();
            // A word that is written in a cycle is there in the next.
            packet_.at = begins_ + 1;
            port_.waiting_++;
            Packet packet = std::move(packet_);
            packet_ = Packet();
            words_ = 0;
            envelopes_ = 0;
            begins_ = 0;
            port_.post_(std::move(packet));
        }

        Port &port_;
        message_stream_t &data_;
        header_stream_t &headers_;
        Taker<Outgoing> data_taker_, header_taker_;
        Packet packet_;
        // Words of data, and header and footer, that it has.
        std::size_t words_ = 0;
        unsigned envelopes_ = 0;
        // The cycle in which it can begin.
        Cycle begins_ = 0;
        // Bytes of its message before it.
        std::uint64_t offset_ = 0;
    };

    // The cycle from which the port takes another packet.
    Cycle room() const { return waiting_ < AHEAD ? free_from_ : NEVER; }

    KernelDesign kernel_;
    bool has_headers_;
    std::size_t limit_;
    std::function<void(Packet)> post_;
    ChannelArray<message_stream_t> data_in_, data_out_;
    ChannelArray<header_stream_t> header_in_, header_out_;
    Dispatcher dispatcher_;
    std::vector<std::unique_ptr<Outgoing>> outlets_;
    // Packets that the aggregator has not written.
    unsigned waiting_ = 0;
    // Since when there is room for one more.
    Cycle free_from_ = 0;
};

}  // namespace weft_apeiron

#endif
