// Calls of a kernel to the scheduler that runs it: its clock, and giving way to the others.
//
// Kernels are coroutines of one thread. Each has a clock of its own, counted in cycles of the design, which moves only
// as it uses streams and memory: all else that it computes takes no time.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_EXECUTOR_H
#define WEFT_APEIRON_EXECUTOR_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#if !defined(__GNUC__)
#error "APEIRON designs are compiled by g++ or clang++ here"
#endif

namespace weft_apeiron {

// A point in time, in cycles of the design's clock.
using Cycle = std::uint64_t;

// Later than everything.
constexpr Cycle NEVER = UINT64_MAX;

// The direction of an access to a stream.
enum class Access { Read, Write };

// A kernel that can be woken.
class Task;

// Runs kernels; the running kernel calls it.
class Executor {
  public:
    virtual ~Executor() = default;

    // The running kernel's clock.
    virtual Cycle clock() const = 0;

    // It has come to a later cycle.
    virtual void advance(Cycle to) = 0;

    // It uses a stream in that cycle, which is no earlier than its clock.
    virtual void use_stream(Cycle at) = 0;

    // It computes for so many cycles behind that in which it last used a stream.
    virtual void compute(Cycle cycles) = 0;

    // Cycles between two accesses of the running kernel to one stream in one direction: its initiation interval.
    virtual Cycle interval() const = 0;

    // The running kernel, which somebody wakes by `wake`.
    virtual Task *current() = 0;

    // The running kernel waits for a stream of that name until it is woken; `at_port`: for what a port gives.
    virtual void block(const std::string &stream, Access access, bool at_port) = 0;

    // The running kernel has waited so many cycles for a stream.
    virtual void waited(const std::string &stream, Access access, Cycle cycles) = 0;

    // A kernel that waits has what it waited for.
    virtual void wake(Task *task) = 0;

    // The running kernel looks at a stream without waiting: all that can happen before its clock has happened when
    // this returns.
    virtual void settle() = 0;

    // The cycle in which the running kernel has the first of `words` words of its memory at `address`, or can write
    // it, from `from` on: at once in block RAM, later in DDR.
    virtual Cycle memory(const void *address, std::size_t words, Cycle from) = 0;

    // The running kernel does what its design does not have; does not return.
    [[noreturn]] virtual void refuse(const std::string &what) = 0;

    // The message that the running kernel has received last by that channel without a place of its own for it.
    virtual std::vector<unsigned char> &received(unsigned channel) = 0;

    // The running kernel's name.
    virtual const std::string &name() const = 0;

    // A channel of the running kernel, a message_stream_t, for HAPECOM's short forms. One that it does not have ends
    // the run when it is used.
    virtual void *channel(Access access, unsigned number) = 0;
};

// The executor of this process, for this shared object.
inline Executor *&executor()
{
    static Executor *current = nullptr;
    return current;
}

// A loop of the running kernel with `#pragma HLS pipeline II=n` begins an iteration, no earlier than `interval` cycles
// after the last. `next` is the loop's own.
inline void begin_iteration(Cycle interval, Cycle &next)
{
    Executor &kernel = *executor();
    if (kernel.clock() < next)
        kernel.advance(next);
    next = kernel.clock() + interval;
}

}  // namespace weft_apeiron

#endif
