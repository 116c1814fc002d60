// The dispatcher of a port: writes packets that have come into the channels of its kernel.
//
//   receiving FIFOs ──► dispatcher ── by proc_id ──► message_data_in[0..], message_hdr_in[0..] ──► kernel
//
// Packets go on one after the other, a word per cycle, in the cycles in which they came or as late as the channel has
// places. While one waits for a channel that is full, those behind it wait too, for whichever channel they are. What
// waits lies in the receiving FIFOs of the Communication IP, which the switch can fill again when the last word of a
// packet has gone on.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_DISPATCHER_H
#define WEFT_APEIRON_DISPATCHER_H

#include "../hapecom.h"
#include "network.h"
#include <algorithm>
#include <deque>
#include <functional>

namespace weft_apeiron {

class Dispatcher : public Inlet {
  public:
    // The streams of the channels that it writes.
    struct Targets {
        message_stream_t *data;
        header_stream_t *headers;
        unsigned count;
        // Whether its kernel reads headers.
        bool has_headers;
    };

    // `leaves` hears of the cycle in which a packet has gone on whole.
    Dispatcher(const Targets &targets, std::function<void(Cycle)> leaves)
        : targets_(targets), leaves_(std::move(leaves)), held_(targets.count)
    {
        for (unsigned channel = 0; channel < targets.count; channel++) {
            targets.data[channel].control().come_from(this);
            targets.headers[channel].control().come_from(this);
        }
    }

    // A packet for one of its channels has come, with its last word in that cycle.
    void take(Packet packet, Cycle last)
    {
        const std::size_t size = packet.payload.size(), words = words_of(size);
        // With headers, a packet of nothing is header and footer.
        const std::size_t written = targets_.has_headers && size == 0 ? 0 : words;
        const Cycle begins = words < last ? last - words : 0;
        packets_.push_back({std::move(packet), words, written, begins, targets_.has_headers ? 0u : 1u});
        dispatch();
    }

    void taken() override { dispatch(); }

    // The stream that is full, for which a packet waits; NULL: none does.
    const StreamControl *full() const
    {
        if (packets_.empty())
            return nullptr;
        const Held &first = packets_.front();
        const bool is_word = first.done > 0 && first.done <= first.written;
        return is_word ? &targets_.data[first.channel()].control() : &targets_.headers[first.channel()].control();
    }

    // Cycles for which packets have waited until now for a channel that was full.
    Cycle held(unsigned channel, Cycle now) const
    {
        Cycle held = held_[channel];
        if (!packets_.empty() && packets_.front().channel() == channel) {
            const Held &first = packets_.front();
            const Cycle since = first.begins + std::min<Cycle>(first.done, first.words);
            held += now > since ? now - since : 0;
        }
        return held;
    }

  private:
    // Cycles of footer and header between the words of two packets.
    static constexpr Cycle BETWEEN = 2;

    // A packet that has come.
    struct Held {
        Packet packet;
        // Of its payload, and those that its channel gets.
        std::size_t words, written;
        // The cycle of its header: words follow in those behind it, and the footer comes with the last.
        Cycle begins;
        // What its channel has of it: its header, words, its footer.
        std::size_t done;

        unsigned channel() const { return packet.header.s.proc_id; }
    };

    void dispatch()
    {
        while (!packets_.empty()) {
            Held &first = packets_.front();
            if (first.begins < free_from_)
                first.begins = free_from_;
            if (!go_on(first))
                return;
            const Cycle last = first.begins + first.words;
            packets_.pop_front();
            free_from_ = last + BETWEEN;
            leaves_(last);
        }
    }

    // Writes as much of a packet as its channel has places for. Whether that was all.
    bool go_on(Held &held)
    {
        message_stream_t &data = targets_.data[held.channel()];
        header_stream_t &headers = targets_.headers[held.channel()];
        if (held.done == 0) {
            if (!has_place(held, headers.control(), 0))
                return false;
            headers.arrive(held.packet.header, held.begins);
            held.done++;
        }
        for (; held.done <= held.written; held.done++) {
            if (!has_place(held, data.control(), held.done))
                return false;
            data.arrive(word_of(held, held.done - 1), held.begins + held.done);
        }
        if (targets_.has_headers) {
            if (!has_place(held, headers.control(), held.words))
                return false;
            apenet_header_t footer = {};
            footer.l[1] = static_cast<uint32_t>(held.words);
            headers.arrive(footer, held.begins + held.words);
        }
        return true;
    }

    // Whether a channel has a place for what comes `behind` cycles after the header of a packet. Where that is late,
    // so is all that follows.
    bool has_place(Held &held, const StreamControl &stream, Cycle behind)
    {
        const Cycle place = stream.place();
        if (place == NEVER)
            return false;
        // What is written in a cycle can be read in the next.
        if (place + 1 > held.begins + behind) {
            const Cycle late = place + 1 - held.begins - behind;
            held_[held.channel()] += late;
            held.begins += late;
        }
        return true;
    }

    static message_word_t word_of(const Held &held, std::size_t number)
    {
        const std::vector<unsigned char> &payload = held.packet.payload;
        const std::size_t begin = number * WORD_BYTES, left = payload.size() - begin;
        message_side_t side;
        side.task_id = static_cast<uint8_t>(held.packet.header.s.intra_dest);
        side.ch_id = static_cast<uint16_t>(held.channel());
        side.from_node = held.packet.from_node;
        side.from_task = static_cast<uint8_t>(held.packet.from_port);
        side.bytes = static_cast<uint8_t>(left < WORD_BYTES ? left : WORD_BYTES);
        side.last = number + 1 == held.words && held.packet.header.s.packet_type == LAST_PACKET;
        return message_word_t(load_word(payload.data() + begin, side.bytes), side);
    }

    Targets targets_;
    std::function<void(Cycle)> leaves_;
    // In the order of their coming.
    std::deque<Held> packets_;
    // The first cycle in which the next may begin.
    Cycle free_from_ = 0;
    // Of each channel, cycles for which packets have waited for it.
    std::vector<Cycle> held_;
};

}  // namespace weft_apeiron

#endif
