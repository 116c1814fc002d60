// Kernels that end their program: by a fault of memory or arithmetic, abort, exit or an exception. Each is named, with
// its node.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_FAULTS_H
#define WEFT_APEIRON_FAULTS_H

#include "coroutine.h"
#include "executor.h"
#include <csignal>
#include <exception>
#include <functional>
#include <string>
#include <unistd.h>

namespace weft_apeiron {

class Faults {
  public:
    // Signals of faults end the program with the name of the running kernel from now on.
    static void handle_signals()
    {
        // The handler has a stack of its own, as the kernel's may be at its end.
        static char stack[1 << 16];
        stack_t own = {};
        own.ss_sp = stack;
        own.ss_size = sizeof stack;
        sigaltstack(&own, nullptr);
        struct sigaction action = {};
        action.sa_sigaction = &Faults::handle;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
        for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
            sigaction(signal, &action, nullptr);
    }

    // A kernel whose exceptions end the run.
    static std::function<void()> guarded(std::function<void()> body)
    {
        return [body = std::move(body)] {
            try {
                body();
            } catch (const std::exception &error) {
                executor()->refuse(std::string("throws: ") + error.what());
            } catch (...) {
                executor()->refuse("throws what is no std::exception");
            }
        };
    }

    // Resumes a kernel; until it gives way, faults are its own.
    static void resume(Coroutine &kernel, const std::string &name, unsigned node)
    {
        Running &own = running();
        own.node = node;
        own.name[name.copy(own.name, sizeof own.name - 1)] = '\0';
        own.guard = static_cast<const char *>(kernel.guard());
        own.is_there = true;
        kernel.resume();
        own.is_there = false;
    }

    // A program that exits while a kernel runs is ended by that kernel.
    static void check_that_no_kernel_exits()
    {
        if (running().is_there)
            end("calls exit, and its host program ends by it; return, or throw");
    }

  private:
    // The running kernel, as a handler finds it: a kernel that writes beyond its memory spoils what lies on the heap,
    // and not this.
    struct Running {
        bool is_there = false;
        unsigned node = 0;
        char name[256] = "";
        // The space below its stack.
        const char *guard = nullptr;
    };

    static Running &running()
    {
        static Running own;
        return own;
    }

    static void handle(int signal, siginfo_t *about, void *)
    {
        const Running &own = running();
        // A host program that aborts ends by that signal, with its own words.
        if (signal == SIGABRT && !own.is_there)
            return;
        const char *at = static_cast<const char *>(about->si_addr);
        const bool is_stack = own.is_there && (signal == SIGSEGV || signal == SIGBUS) && at >= own.guard &&
                              at < own.guard + Coroutine::GUARD;
        end(signal == SIGFPE    ? "divides by zero"
            : signal == SIGILL  ? "executes an instruction that there is not"
            : signal == SIGABRT ? "aborts: by abort, an assert, or an exception of a noexcept function"
            : is_stack          ? "uses more stack than the 1 MiB that a kernel has; make its large arrays static"
                                : "uses memory that it does not have");
    }

    // The running kernel, or the host program, has done what ends the run. Allocates nothing: handlers call it.
    [[noreturn]] static void end(const char *what)
    {
        const Running &own = running();
        char text[640];
        const int length = own.is_there ? std::snprintf(text, sizeof text, "weft apeiron: node %u: kernel %s %s\n",
                                                        own.node, own.name, what)
                                        : std::snprintf(text, sizeof text, "weft apeiron: the host program %s\n", what);
        if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0)
            _exit(2);
        _exit(1);
    }
};

}  // namespace weft_apeiron

#endif
