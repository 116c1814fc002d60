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

typedef hls::stream<uint128_t> message_stream_t;
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

inline std::string sender_of(const message_side_t &side)
{
    return "task " + std::to_string(side.from_task) + " of node " + std::to_string(side.from_node);
}

// Reads the words of the next message, and hands each over with the bytes before it. Returns the message's size.
// Packets of two senders alternate in a channel, as the dispatcher knows channels and no messages: words of another
// sender end the run.
template <typename Take>
size_t read_message(message_stream_t &fifo, Take take)
{
    message_word_t word = fifo.read();
    const message_side_t first = word.side;
    size_t size = 0;
    for (;;) {
        take(size, word);
        size += word.side.bytes;
        if (word.side.last)
            return size;
        word = fifo.read();
        if (word.side.from_node != first.from_node || word.side.from_task != first.from_task)
            executor()->refuse("receives from " + fifo.control().name() + " a message of several packets from " +
                               sender_of(first) + ", and amid it a packet from " + sender_of(word.side) +
                               ": give each sender a channel of its own, send messages of one packet, or use the "
                               "prototype with headers");
    }
}

}  // namespace weft_apeiron

// A kernel computes for so many cycles, in which it uses no stream: for what the model takes no time for. They follow
// the cycle of its last access.
inline void apeiron_compute(uint64_t cycles)
{
    weft_apeiron::executor()->compute(cycles);
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
    const size_t size = read_message(data_fifo_in, [=](size_t before, const message_word_t &word) {
        const size_t room = before < most ? most - before : 0;
        store_word(to + (room > 0 ? before : 0), word, word.side.bytes < room ? word.side.bytes : room);
    });
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
    return read_message(fifo, [&message](size_t before, const message_word_t &word) {
        message.resize(before + word.side.bytes);
        store_word(message.data() + before, word, word.side.bytes);
    });
}

inline const void *received(unsigned ch_id)
{
    return weft_apeiron::executor()->received(ch_id).data();
}

#endif
