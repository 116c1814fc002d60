// hls::stream: a FIFO between kernels, or within one.
//
// A word takes a cycle on its way; a stream takes and gives one word per cycle. Without a depth it has two places, as
// Vitis HLS gives it.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_HLS_STREAM_H
#define WEFT_HLS_STREAM_H

#include "weft_apeiron/message_word.h"
#include "weft_apeiron/stream_control.h"
#include <deque>
#include <string>

namespace hls {

template <typename T, int DEPTH = 0>
class stream;

template <typename T>
class stream<T, 0> {
  public:
    using value_type = T;
    // A word as it holds it: of 128 bits, with the side channel of messages.
    using word_type = typename weft_apeiron::StreamWord<T>::type;

    stream() : control_("stream", 2) {}
    explicit stream(const char *name) : control_(name, 2) {}
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;

    // Blocking accesses.
    word_type read()
    {
        control_.read();
        return take();
    }

    template <typename U>
    void read(U &head)
    {
        head = read();
    }

    void write(const word_type &tail)
    {
        control_.write();
        put(tail);
    }

    template <typename U>
    void operator>>(U &head)
    {
        read(head);
    }

    void operator<<(const word_type &tail) { write(tail); }

    // Accesses that do not wait: whether they have found a word, or a place.
    template <typename U>
    bool read_nb(U &head)
    {
        if (!control_.try_read())
            return false;
        head = take();
        return true;
    }

    bool write_nb(const word_type &tail)
    {
        if (!control_.try_write())
            return false;
        put(tail);
        return true;
    }

    bool empty() { return !control_.has_word(); }
    bool full() { return !control_.has_place(); }

    // Words in it, and places for them.
    std::size_t size() const { return words_.size(); }
    std::size_t capacity() const { return control_.depth(); }

    // As `#pragma HLS stream depth=n` says.
    void set_depth(std::size_t depth)
    {
        if (depth == 0 && weft_apeiron::executor() != nullptr)
            weft_apeiron::executor()->refuse("gives stream " + control_.name() +
                                             " a depth of 0; a FIFO holds one word or more");
        control_.set_depth(depth);
    }
    void set_name(const char *name) { control_.set_name(name); }

    // For whoever joins streams to ports: the timing, a word that comes from outside, and one that goes there.
    weft_apeiron::StreamControl &control() { return control_; }
    const weft_apeiron::StreamControl &control() const { return control_; }

    void arrive(const word_type &word, weft_apeiron::Cycle visible)
    {
        words_.push_back(word);
        control_.arrive(visible);
    }

    word_type leave()
    {
        control_.leave();
        return take();
    }

  private:
    word_type take()
    {
        word_type word = words_.front();
        words_.pop_front();
        return word;
    }

    void put(const word_type &word)
    {
        words_.push_back(word);
        control_.hand_over(weft_apeiron::executor()->clock());
    }

    weft_apeiron::StreamControl control_;
    std::deque<word_type> words_;
};

template <typename T, int DEPTH>
class stream : public stream<T, 0> {
    static_assert(DEPTH > 0, "a stream holds one word or more");

  public:
    stream() { this->set_depth(DEPTH); }
    explicit stream(const char *name) : stream<T, 0>(name) { this->set_depth(DEPTH); }
};

}  // namespace hls

namespace weft_apeiron {

// A stream whose depth is set; of an array, that of each.
template <typename S>
struct WithDepth {
    static void set(S &stream, std::size_t depth) { stream.set_depth(depth); }
};

template <typename S, std::size_t COUNT>
struct WithDepth<S[COUNT]> {
    static void set(S (&streams)[COUNT], std::size_t depth)
    {
        for (S &stream : streams)
            WithDepth<S>::set(stream, depth);
    }
};

// Streams that a function is given have the depth that their owner gives them.
template <typename S>
struct WithDepth<S *> {
    static void set(S *, std::size_t) {}
};

// As `#pragma HLS stream variable=s depth=n` says.
template <typename S>
void set_depth(S &streams, std::size_t depth)
{
    WithDepth<S>::set(streams, depth);
}

}  // namespace weft_apeiron

#endif
