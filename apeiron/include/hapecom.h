// HAPECOM: messages between the kernels of an APEIRON design (TEXTAROSSA D2.8 §3, appendices A to C).
//
//   void krnl_example(<parameters>, message_stream_t message_data_in[N_INPUT_CHANNELS],
//                     message_stream_t message_data_out[N_OUTPUT_CHANNELS])
//
// A node is named by its coordinates, as in register local_coord: z << 11 | y << 6 | x. A task is named by the
// IntraNode port that its kernel is at, a channel by its number among the kernel's input channels. A send also goes
// out by the output channel of that number.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_HAPECOM_H
#define WEFT_HAPECOM_H

#include "ap_int.h"
#include "apenet_header.h"
#include "hls_stream.h"
#include <cstddef>
#include <cstring>

typedef ap_uint<128> uint128_t;

// What travels beside a word (AXI4-Stream side channels): what the header needs, and where a message ends.
struct message_side_t {
    // Where the message goes, or came for.
    uint32_t node = 0;
    uint8_t task_id = 0;
    uint16_t ch_id = 0;
    // Whether somebody has said so.
    bool is_addressed = false;
    // Bytes of the word that count (TKEEP).
    uint8_t bytes = 16;
    // The last word of its message (TLAST).
    bool last = false;
};

// A word of a message, of 128 bits, with its side channel.
struct message_word_t {
    uint128_t data;
    message_side_t side;

    message_word_t() = default;
    message_word_t(const uint128_t &word) : data(word) {}
    message_word_t(const uint128_t &word, const message_side_t &beside) : data(word), side(beside) {}
    template <typename T, weft_apeiron::IfInteger<T> = 0>
    message_word_t(T word) : data(word)
    {
    }
    operator uint128_t() const { return data; }
};

typedef hls::stream<message_word_t> message_stream_t;
typedef hls::stream<apenet_header_t> header_stream_t;

// The coordinates of a node as one number.
inline uint32_t apeiron_node(unsigned x, unsigned y = 0, unsigned z = 0)
{
    return z << 11 | y << 6 | x;
}

namespace weft_apeiron {

constexpr size_t WORD_BYTES = 16;

// Words that carry so many bytes; a message of nothing is one word of which no byte counts.
inline size_t words_of(size_t bytes) { return bytes == 0 ? 1 : (bytes + WORD_BYTES - 1) / WORD_BYTES; }

inline uint128_t load_word(const unsigned char *from, size_t bytes)
{
    uint64_t halves[2] = {0, 0};
    std::memcpy(halves, from, bytes);
    uint128_t word;
    word.set_limb(0, halves[0]);
    word.set_limb(1, halves[1]);
    return word;
}

inline void store_word(unsigned char *to, const uint128_t &word, size_t bytes)
{
    const uint64_t halves[2] = {word.limb(0), word.limb(1)};
    std::memcpy(to, halves, bytes);
}

inline message_stream_t &channel(Access access, unsigned ch_id)
{
    return *static_cast<message_stream_t *>(executor()->channel(access, ch_id));
}

}  // namespace weft_apeiron

// A kernel computes for so many cycles, in which it uses no stream: for what the model takes no time for.
inline void apeiron_compute(uint64_t cycles)
{
    weft_apeiron::Executor &kernel = *weft_apeiron::executor();
    kernel.advance(kernel.clock() + cycles);
}

// A kernel that reads or writes memory itself, `size` bytes of it, waits here for the memory's latency: none in block
// RAM. send and receive do it by themselves.
inline void apeiron_memory_access(const void *memory, size_t size)
{
    weft_apeiron::Executor &kernel = *weft_apeiron::executor();
    kernel.advance(kernel.memory(memory, weft_apeiron::words_of(size), kernel.clock()));
}

// Sends `size` bytes of memory to a channel of a task, by a FIFO. Does not wait for the receiver; words go as the
// FIFO takes them. Returns the bytes sent.
inline size_t send(const void *msg, size_t size, uint32_t dest_node, unsigned task_id, unsigned ch_id,
                   message_stream_t &data_fifo_out)
{
    using namespace weft_apeiron;
    if (task_id > 15)
        executor()->refuse("sends to task " + std::to_string(task_id) + ", and `intra_dest` has 4 bits");
    if (ch_id > 65535 || dest_node > 65535)
        executor()->refuse("sends to a channel or a node of more than 16 bits");
    const unsigned char *from = static_cast<const unsigned char *>(msg);
    const size_t words = words_of(size);
    if (size > 0)
        apeiron_memory_access(msg, size);
    message_side_t side;
    side.node = dest_node;
    side.task_id = static_cast<uint8_t>(task_id);
    side.ch_id = static_cast<uint16_t>(ch_id);
    side.is_addressed = true;
    for (size_t word = 0; word < words; word++) {
        const size_t begin = word * WORD_BYTES, left = size - begin;
        side.bytes = static_cast<uint8_t>(left < WORD_BYTES ? left : WORD_BYTES);
        side.last = word + 1 == words;
        data_fifo_out.write(message_word_t(load_word(from + begin, side.bytes), side));
    }
    return size;
}

// The same by the output channel of that number among FIFOs (appendix A), or among the kernel's own (§3).
inline size_t send(const void *msg, size_t size, uint32_t dest_node, unsigned task_id, unsigned ch_id,
                   message_stream_t *data_fifo_out)
{
    return send(msg, size, dest_node, task_id, ch_id, data_fifo_out[ch_id]);
}

inline size_t send(const void *msg, size_t size, uint32_t dest_node, unsigned task_id, unsigned ch_id)
{
    return send(msg, size, dest_node, task_id, ch_id, weft_apeiron::channel(weft_apeiron::Access::Write, ch_id));
}

// Waits for the next message of a FIFO and takes it whole into memory, which must have room for `most` bytes: what is
// beyond is lost. Returns its size.
inline size_t receive(void *memory, message_stream_t &data_fifo_in, size_t most = SIZE_MAX)
{
    using namespace weft_apeiron;
    unsigned char *to = static_cast<unsigned char *>(memory);
    size_t size = 0;
    for (bool last = false; !last;) {
        const message_word_t word = data_fifo_in.read();
        const size_t room = size < most ? most - size : 0;
        store_word(to + (room > 0 ? size : 0), word.data, word.side.bytes < room ? word.side.bytes : room);
        size += word.side.bytes;
        last = word.side.last;
    }
    if (size > 0)
        apeiron_memory_access(memory, size);
    return size;
}

inline size_t receive(unsigned ch_id, void *memory, message_stream_t &data_fifo_in)
{
    (void)ch_id;
    return receive(memory, data_fifo_in);
}

inline size_t receive(unsigned ch_id, void *memory, message_stream_t *data_fifo_in)
{
    return receive(memory, data_fifo_in[ch_id]);
}

inline size_t receive(unsigned ch_id, void *memory)
{
    return receive(memory, weft_apeiron::channel(weft_apeiron::Access::Read, ch_id));
}

// As §3 prints it: takes the next message of a channel, of unknown size. `received` is where it lies until the next.
inline size_t receive(unsigned ch_id)
{
    using namespace weft_apeiron;
    message_stream_t &fifo = channel(Access::Read, ch_id);
    std::vector<unsigned char> &message = executor()->received(ch_id);
    message.clear();
    for (bool last = false; !last;) {
        const message_word_t word = fifo.read();
        message.resize(message.size() + word.side.bytes);
        store_word(message.data() + message.size() - word.side.bytes, word.data, word.side.bytes);
        last = word.side.last;
    }
    return message.size();
}

inline const void *received(unsigned ch_id)
{
    return weft_apeiron::executor()->received(ch_id).data();
}

#endif
