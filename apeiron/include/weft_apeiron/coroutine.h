// A coroutine with a stack of its own.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_COROUTINE_H
#define WEFT_APEIRON_COROUTINE_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sys/mman.h>
#include <ucontext.h>

namespace weft_apeiron {

class Coroutine {
  public:
    // Stack of a kernel; below it lies space that nobody may touch, more than the arrays of a function have.
    static constexpr std::size_t STACK = std::size_t(1) << 20;
    static constexpr std::size_t GUARD = std::size_t(64) << 20;

    explicit Coroutine(std::function<void()> body) : body_(std::move(body))
    {
        memory_ = mmap(nullptr, GUARD + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (memory_ == MAP_FAILED ||
            mprotect(static_cast<char *>(memory_) + GUARD, STACK, PROT_READ | PROT_WRITE) != 0) {
            std::perror("weft apeiron: the stack of a kernel");
            std::exit(1);
        }
        getcontext(&own_);
        own_.uc_stack.ss_sp = static_cast<char *>(memory_) + GUARD;
        own_.uc_stack.ss_size = STACK;
        own_.uc_link = &caller_;
        const std::uintptr_t self = reinterpret_cast<std::uintptr_t>(this);
        makecontext(&own_, reinterpret_cast<void (*)()>(&Coroutine::enter), 2, static_cast<unsigned>(self >> 32),
                    static_cast<unsigned>(self));
    }

    ~Coroutine() { munmap(memory_, GUARD + STACK); }

    Coroutine(const Coroutine &) = delete;
    Coroutine &operator=(const Coroutine &) = delete;

    // Goes on until it gives way or ends.
    void resume() { swapcontext(&caller_, &own_); }

    // Gives way; called by itself.
    void give_way() { swapcontext(&own_, &caller_); }

    bool is_over() const { return is_over_; }

    // The space below its stack, of GUARD bytes: who touches it has used more than there is.
    const void *guard() const { return memory_; }

  private:
    // makecontext passes ints only.
    static void enter(unsigned high, unsigned low)
    {
        Coroutine *self = reinterpret_cast<Coroutine *>(std::uintptr_t(high) << 32 | low);
        self->body_();
        self->is_over_ = true;
    }

    std::function<void()> body_;
    void *memory_ = nullptr;
    ucontext_t own_, caller_;
    bool is_over_ = false;
};

}  // namespace weft_apeiron

#endif
