// The timing of a stream: when each word can be read, and when each place is free.
//
//   writer ──► ▤▤▤▤ (visible in the next cycle) ──► reader
//   one word per cycle and direction; a place is free in the cycle after its word was read
//
// A port is the other end of a stream that leaves its kernel or comes to it: an outlet or an inlet.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_STREAM_CONTROL_H
#define WEFT_APEIRON_STREAM_CONTROL_H

#include "executor.h"
#include <deque>

namespace weft_apeiron {

// The receiver of words of a stream that leaves its kernel.
class Outlet {
  public:
    virtual ~Outlet() = default;

    // The cycle from which it takes the next word; NEVER: the writer waits, and is woken.
    virtual Cycle admits() = 0;

    // A word has been written in that cycle, and lies in the stream.
    virtual void written(Cycle at) = 0;
};

// The source of words of a stream that comes to its kernel.
class Inlet {
  public:
    virtual ~Inlet() = default;

    // The kernel has taken a word: the stream has a place again.
    virtual void taken() = 0;
};

class StreamControl {
  public:
    // A place for any number of words.
    static constexpr std::size_t UNBOUNDED = 0;

    explicit StreamControl(std::string name, std::size_t depth) : name_(std::move(name))
    {
        set_depth(depth);
    }

    const std::string &name() const { return name_; }
    void set_name(std::string name) { name_ = std::move(name); }
    std::size_t depth() const { return depth_; }

    // Of an empty stream, before it is used.
    void set_depth(std::size_t depth)
    {
        depth_ = depth;
        unused_ = depth;
        free_.clear();
    }

    // Words go there from now on.
    void lead_to(Outlet *outlet) { outlet_ = outlet; }

    // Words come from there.
    void come_from(Inlet *inlet) { inlet_ = inlet; }

    // It joins two kernels, by their names: one writes it, the other reads it.
    void join(std::string writer, std::string reader)
    {
        of_writer_ = std::move(writer);
        of_reader_ = std::move(reader);
    }

    // A stream that its kernel does not have: an access is reported with this text.
    void forbid(std::string why) { forbidden_ = std::move(why); }

    // Waits for a place, and takes it.
    void write()
    {
        Executor &kernel = begin(Access::Write);
        while (place() == NEVER)
            wait(kernel, writer_, Access::Write);
        finish_write(kernel, place());
    }

    // The same if there is a place now.
    bool try_write()
    {
        Executor &kernel = begin(Access::Write);
        if (!is_there(kernel, &StreamControl::place, next_write_))
            return false;
        finish_write(kernel, place());
        return true;
    }

    // Waits for a word, and takes it.
    void read()
    {
        Executor &kernel = begin(Access::Read);
        while (visible_.empty())
            wait(kernel, reader_, Access::Read);
        finish_read(kernel);
    }

    // The same if there is one now.
    bool try_read()
    {
        Executor &kernel = begin(Access::Read);
        if (!is_there(kernel, &StreamControl::word, next_read_))
            return false;
        finish_read(kernel);
        return true;
    }

    // Whether a word can be read now.
    bool has_word()
    {
        Executor &kernel = begin(Access::Read);
        return is_there(kernel, &StreamControl::word, next_read_);
    }

    // Whether one can be written now.
    bool has_place()
    {
        Executor &kernel = begin(Access::Write);
        return is_there(kernel, &StreamControl::place, next_write_);
    }

    // Hands the word that has just been written to the outlet, if there is one.
    void hand_over(Cycle at)
    {
        if (outlet_ != nullptr)
            outlet_->written(at);
    }

    // From when on there is a place; NEVER: nobody has made room.
    Cycle place() const
    {
        if (outlet_ != nullptr)
            return outlet_->admits();
        if (depth_ == UNBOUNDED || unused_ > 0)
            return 0;
        return free_.empty() ? NEVER : free_.front();
    }

    // An inlet puts a word into a place, which can be read from a cycle on.
    void arrive(Cycle visible)
    {
        take_place();
        visible_.push_back(visible);
        wake(reader_);
    }

    // An outlet takes a word out.
    void leave() { visible_.pop_front(); }

    // The outlet has a place again.
    void admit() { wake(writer_); }

  private:
    Executor &begin(Access access)
    {
        Executor *kernel = executor();
        if (!forbidden_.empty())
            kernel->refuse(forbidden_);
        // Both are message_stream_t, so that only their use shows that they are exchanged.
        if (access == Access::Write ? inlet_ != nullptr : outlet_ != nullptr)
            kernel->refuse((access == Access::Write ? "writes " : "reads ") + name_ +
                           (access == Access::Write ? ", an input" : ", an output") +
                           " channel: the prototype has those of the input before those of the output");
        const std::string &owner = access == Access::Read ? of_reader_ : of_writer_;
        if (!owner.empty() && owner != kernel->name())
            kernel->refuse((access == Access::Read ? "reads stream " : "writes stream ") + name_ + ", and " + owner +
                           " is the one that does by config.yaml");
        return *kernel;
    }

    void take_place()
    {
        if (unused_ > 0)
            unused_--;
        else if (depth_ != UNBOUNDED)
            free_.pop_front();
    }

    // From when on there is a word.
    Cycle word() const { return visible_.empty() ? NEVER : visible_.front(); }

    // Whether something is there at the kernel's clock, or in the next cycle in which it may use the stream. One that
    // looks in vain has used a cycle.
    bool is_there(Executor &kernel, Cycle (StreamControl::*from)() const, Cycle next)
    {
        if (kernel.clock() < next)
            kernel.advance(next);
        if ((this->*from)() > kernel.clock()) {
            kernel.settle();
            if ((this->*from)() > kernel.clock()) {
                kernel.advance(kernel.clock() + 1);
                return false;
            }
        }
        return true;
    }

    void wait(Executor &kernel, Task *&place, Access access)
    {
        place = kernel.current();
        kernel.block(name_, access, inlet_ != nullptr || outlet_ != nullptr);
        place = nullptr;
    }

    void wake(Task *task)
    {
        if (task != nullptr)
            executor()->wake(task);
    }

    static Cycle later(Cycle one, Cycle other) { return one < other ? other : one; }

    // The kernel uses the stream as soon as it may, and something is there. Returns when that is.
    Cycle use(Executor &kernel, Access access, Cycle there, Cycle next)
    {
        const Cycle may = later(kernel.clock(), next), at = later(may, there);
        if (at > may)
            kernel.waited(name_, access, at - may);
        kernel.use_stream(at);
        return at;
    }

    void finish_write(Executor &kernel, Cycle place)
    {
        const Cycle at = use(kernel, Access::Write, place, next_write_);
        next_write_ = at + kernel.interval();
        if (outlet_ == nullptr)
            take_place();
        visible_.push_back(at + 1);
        if (outlet_ == nullptr)
            wake(reader_);
    }

    void finish_read(Executor &kernel)
    {
        const Cycle at = use(kernel, Access::Read, visible_.front(), next_read_);
        next_read_ = at + kernel.interval();
        visible_.pop_front();
        if (depth_ != UNBOUNDED) {
            free_.push_back(at + 1);
            wake(writer_);
        }
        if (inlet_ != nullptr)
            inlet_->taken();
    }

    std::string name_;
    std::size_t depth_ = UNBOUNDED;
    // Of each word, the cycle from which it can be read.
    std::deque<Cycle> visible_;
    // Places that no word has been in.
    std::size_t unused_ = 0;
    // Of each other free place, the cycle from which it can be written.
    std::deque<Cycle> free_;
    // The first cycle in which the stream may be used again.
    Cycle next_read_ = 0, next_write_ = 0;
    Task *reader_ = nullptr, *writer_ = nullptr;
    Outlet *outlet_ = nullptr;
    Inlet *inlet_ = nullptr;
    std::string forbidden_;
    // The kernels that it joins; empty: whoever has it.
    std::string of_writer_, of_reader_;
};

}  // namespace weft_apeiron

#endif
