// A word of 128 bits with its side channel: what travels in message_stream_t, which is hls::stream<uint128_t>.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_MESSAGE_WORD_H
#define WEFT_APEIRON_MESSAGE_WORD_H

#include "../ap_int.h"

// The side channel of a word (AXI4-Stream): fields of its packet's header, and where a message ends.
struct message_side_t {
    // The destination of the message.
    uint32_t node = 0;
    uint8_t task_id = 0;
    uint16_t ch_id = 0;
    // Whether somebody has said so.
    bool is_addressed = false;
    // Bytes of the word that count (TKEEP).
    uint8_t bytes = 16;
    // The last word of its message (TLAST).
    bool last = false;
    // The node and the task that it came from. No header has them: they tell mistakes.
    uint32_t from_node = 0;
    uint8_t from_task = 0;
};

// A word of a message, with its side channel.
struct message_word_t : ap_uint<128> {
    message_side_t side;

    message_word_t() = default;
    message_word_t(const ap_uint<128> &word, const message_side_t &beside) : ap_uint<128>(word), side(beside) {}
    template <typename T, weft_apeiron::IfNumber<T> = 0>
    message_word_t(const T &word) : ap_uint<128>(word)
    {
    }
};

namespace weft_apeiron {

template <>
struct IsNumber<message_word_t> { static constexpr bool value = true; };

// The type of the words that a stream of T holds.
template <typename T>
struct StreamWord { using type = T; };
template <>
struct StreamWord<ap_uint<128>> { using type = message_word_t; };

}  // namespace weft_apeiron

#endif
