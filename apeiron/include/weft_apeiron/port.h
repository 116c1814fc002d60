// An IntraNode port with the streams of its kernel: words become packets, and packets words.
//
//   kernel ──► message_data_out[0..] ──► packet by packet ──► aggregator
//   kernel ◄── message_data_in[0..]  ◄── by proc_id ◄──────── dispatcher
//
// A packet is given to the aggregator in the cycle in which its first word is there, or, where a word is late, as late
// as the words then follow each other. The port holds two packets that the aggregator has not written. A packet that
// comes is with its kernel when its last word is; the words before it came in the cycles before.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_PORT_H
#define WEFT_APEIRON_PORT_H

#include "../hapecom.h"
#include "design.h"
#include "kernel_entry.h"
#include "network.h"
#include <functional>
#include <memory>

namespace weft_apeiron {

// Streams behind the last of a kernel, an access to which is reported instead of corrupting memory.
constexpr unsigned GUARDS = 64;

class Port {
  public:
    using Post = std::function<void(Packet)>;

    // The port of a kernel, which gives packets to `post`. `limit`: bytes of the largest.
    Port(const KernelDesign &kernel, bool has_headers, std::size_t limit, Post post)
        : kernel_(kernel), has_headers_(has_headers), limit_(limit), post_(std::move(post)),
          data_in_(array<message_stream_t>(kernel.inputs, "message_data_in", "reads", "input")),
          data_out_(array<message_stream_t>(kernel.outputs, "message_data_out", "writes", "output")),
          header_in_(array<header_stream_t>(kernel.inputs, "message_hdr_in", "reads", "input")),
          header_out_(array<header_stream_t>(kernel.outputs, "message_hdr_out", "writes", "output"))
    {
        for (unsigned at = 0; at < kernel.inputs; at++) {
            data_in_[at].control().come_from_port();
            header_in_[at].control().come_from_port();
        }
        for (unsigned at = 0; at < kernel.outputs; at++)
            outlets_.emplace_back(new Outgoing(*this, data_out_[at], header_out_[at]));
    }

    Port(const Port &) = delete;
    Port &operator=(const Port &) = delete;

    unsigned number() const { return kernel_.port; }
    unsigned inputs() const { return kernel_.inputs; }
    unsigned outputs() const { return kernel_.outputs; }
    Channels channels() { return {data_in_.get(), data_out_.get(), header_in_.get(), header_out_.get(), nullptr}; }

    // The aggregator has written a packet.
    void sent(Cycle at)
    {
        waiting_--;
        free_from_ = at;
        for (auto &outgoing : outlets_)
            outgoing->admit();
    }

    // A packet has come, with its last word in that cycle. Returns what is wrong with it, or nothing.
    std::string arrived(const Packet &packet, Cycle last)
    {
        const unsigned channel = packet.header.s.proc_id;
        if (channel >= kernel_.inputs)
            return "a message has come for channel " + std::to_string(channel) + ", and kernel " + kernel_.name +
                   " has " + std::to_string(kernel_.inputs) +
                   " input channels: raise its input_channels in config.yaml, or send to another";
        const std::size_t size = packet.payload.size(), words = words_of(size);
        const Cycle before = words < last ? last - words : 0;
        if (has_headers_)
            header_in_[channel].arrive(packet.header, before);
        for (std::size_t word = 0; word < words && (size > 0 || !has_headers_); word++) {
            const std::size_t begin = word * WORD_BYTES, left = size - begin;
            message_side_t side;
            side.task_id = static_cast<uint8_t>(packet.header.s.intra_dest);
            side.ch_id = static_cast<uint16_t>(channel);
            side.bytes = static_cast<uint8_t>(left < WORD_BYTES ? left : WORD_BYTES);
            side.last = word + 1 == words && packet.header.s.packet_type == LAST_PACKET;
            data_in_[channel].arrive(
                message_word_t(load_word(packet.payload.data() + begin, side.bytes), side), before + 1 + word);
        }
        if (has_headers_) {
            apenet_header_t footer = {};
            footer.l[1] = static_cast<uint32_t>(words);
            header_in_[channel].arrive(footer, last);
        }
        return std::string();
    }

  private:
    // Packets that a port takes before the aggregator has written the first: the one that it writes, and the next.
    static constexpr unsigned AHEAD = 2;

    // Whoever takes the words of a stream by calling a member of `Outgoing`.
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
            packet_.payload.resize(size + word.side.bytes);
            store_word(packet_.payload.data() + size, word.data, word.side.bytes);
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
            if (envelopes_++ == 0) {
                packet_.header = written;
                if (written.s.packet_size > port_.limit_)
                    executor()->refuse("writes a header with a packet_size of " +
                                       std::to_string(written.s.packet_size) + ", and a packet has at most " +
                                       std::to_string(port_.limit_) + " bytes");
                follow(at, 0);
            } else {
                // The footer comes behind all words.
                const std::size_t words = (packet_.header.s.packet_size + WORD_BYTES - 1) / WORD_BYTES;
                follow(at, words + 1);
            }
            end_if_whole();
        }

        void end_if_whole()
        {
            const std::size_t size = packet_.header.s.packet_size;
            if (envelopes_ < 2 || words_ < (size + WORD_BYTES - 1) / WORD_BYTES)
                return;
            packet_.payload.resize(size);
            post();
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

    template <typename Stream>
    std::unique_ptr<Stream[]> array(unsigned count, const std::string &name, const char *does, const char *kind)
    {
        std::unique_ptr<Stream[]> streams(new Stream[count + GUARDS]);
        for (unsigned at = 0; at < count + GUARDS; at++) {
            StreamControl &control = streams[at].control();
            control.set_name(name + "[" + std::to_string(at) + "]");
            control.set_depth(StreamControl::UNBOUNDED);
            if (at >= count)
                control.forbid(std::string(does) + " " + control.name() + ", and it has " + std::to_string(count) +
                               " " + kind + " channels in config.yaml: raise " + kind + "_channels, or use another");
        }
        return streams;
    }

    KernelDesign kernel_;
    bool has_headers_;
    std::size_t limit_;
    Post post_;
    std::unique_ptr<message_stream_t[]> data_in_, data_out_;
    std::unique_ptr<header_stream_t[]> header_in_, header_out_;
    std::vector<std::unique_ptr<Outgoing>> outlets_;
    // Packets that the aggregator has not written.
    unsigned waiting_ = 0;
    // Since when there is room for one more.
    Cycle free_from_ = 0;
};

}  // namespace weft_apeiron

#endif
