// Runs the kernels of a node in virtual time.
//
//   earliest kernel ──► runs until it waits for a stream ──► packets, by their times ──► ports
//   ports ──► words of streams, room for packets ──► kernels that wait for them
//         ◄── room in receiving FIFOs, by the times at which packets leave them ── streams
//
// The next kernel is the one with the smallest clock, of equal ones the first by name. Before a kernel runs, everything
// that can reach the node's ports up to its clock has.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_SCHEDULER_H
#define WEFT_APEIRON_SCHEDULER_H

#include "faults.h"
#include "port.h"
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <unistd.h>

namespace weft_apeiron {

// The memory of kernels beside block RAM.
struct DdrCosts {
    // Cycles from a request to its first word.
    Cycle latency = 0;
};

// Waits of a kernel for a stream.
using WaitedFor = std::pair<Access, std::string>;

// The time of a kernel, in cycles: all of it, and what it has waited for each stream.
struct KernelTimes {
    Cycle all = 0;
    std::map<WaitedFor, Cycle> waited;

    void add(const KernelTimes &other)
    {
        all += other.all;
        for (const auto &wait : other.waited)
            waited[wait.first] += wait.second;
    }
};

// A kernel that the host has started.
class Task {
  public:
    Task(std::string name, Cycle interval, Port *port, std::function<void()> body)
        : name(std::move(name)), interval(interval), port(port), coroutine(std::move(body))
    {
    }

    std::string name;
    Cycle interval;
    // NULL: it is at none.
    Port *port;
    Coroutine coroutine;
    // The cycle in which it was started, and the one that it has come to.
    Cycle began = 0, clock = 0;
    // Its last act in the cycle of its clock: it used a stream; did nothing, as it has computed up to there; or did
    // something else.
    enum class Does { Stream, Nothing, Other } does = Does::Other;
    // Cycles that it has waited for each stream.
    std::map<WaitedFor, Cycle> waited;
    // The stream that it waits for while `waits`.
    std::string stream;
    Access access = Access::Read;
    bool waits = false, waits_at_port = false;
    // It looks at a stream, and goes on when all before its clock has happened.
    bool looks = false;
    // By channel, the message that it has received last without a place of its own for it.
    std::map<unsigned, std::vector<unsigned char>> received;

    bool is_over() const { return coroutine.is_over(); }

    // The cycle behind all that it has done.
    Cycle ends() const { return does == Does::Nothing ? clock : clock + 1; }

    // Its times up to `now`: one that waits has waited until then.
    KernelTimes times(Cycle now) const
    {
        KernelTimes times{ends() - began, waited};
        if (!is_over() && waits && now > ends()) {
            times.waited[{access, stream}] += now - ends();
            times.all += now - ends();
        }
        return times;
    }
};

class Scheduler : public Executor {
  public:
    Scheduler(Network &network, Clock clock, DdrCosts ddr, std::size_t payload)
        : network_(network), clock_(clock), ddr_(ddr), packet_words_(words_of(payload))
    {
        executor() = this;
        Faults::handle_signals();
    }

    ~Scheduler() override { executor() = nullptr; }

    Scheduler(const Scheduler &) = delete;
    Scheduler &operator=(const Scheduler &) = delete;

    const Clock &design_clock() const { return clock_; }

    // The port of a kernel.
    Port &add(const KernelDesign &kernel, bool has_headers, std::size_t payload)
    {
        const unsigned port = kernel.port;
        auto post = [this](Packet packet) { this->post(std::move(packet)); };
        auto leaves = [this, port](Cycle at) { this->leave(port, at); };
        ports_[port].reset(new Port(kernel, has_headers, payload, {post, leaves}));
        return *ports_[kernel.port];
    }

    // Starts a kernel now.
    std::shared_ptr<Task> start(const KernelDesign &kernel, std::function<void()> body)
    {
        Port *port = kernel.has_port ? ports_.at(kernel.port).get() : nullptr;
        std::shared_ptr<Task> task(new Task(kernel.name, kernel.cycles, port, Faults::guarded(std::move(body))));
        task->began = task->clock = clock_.at_or_after(network_.now());
        const auto by_name = [](const std::shared_ptr<Task> &one, const std::shared_ptr<Task> &other) {
            return one->name < other->name;
        };
        tasks_.insert(std::upper_bound(tasks_.begin(), tasks_.end(), task, by_name), task);
        return task;
    }

    // Kernels run until that one is over: the host waits. The node's time is then that of its end.
    void run(const Task &task)
    {
        while (!task.is_over())
            step(NEVER, &task);
        // What it has sent leaves in its time.
        run_until(std::max(network_.now(), clock_.edge(task.ends())));
    }

    // Kernels run until that time, at which the host goes on.
    void run_until(Picoseconds then)
    {
        while (step(then, nullptr)) {
        }
        network_.pass_until(then);
    }

    Picoseconds now() { return network_.now(); }

    // Memory of kernels that lies in DDR.
    void add_ddr(const void *address, std::size_t size) { in_ddr_[static_cast<const char *>(address)] = size; }
    void remove_ddr(const void *address) { in_ddr_.erase(static_cast<const char *>(address)); }

    // For the running kernel.
    Cycle clock() const override { return running_->clock; }

    void advance(Cycle to) override
    {
        if (to <= running_->clock)
            return;
        running_->clock = to;
        running_->does = Task::Does::Other;
    }

    void use_stream(Cycle at) override
    {
        advance(at);
        running_->does = Task::Does::Stream;
    }

    void compute(Cycle cycles) override
    {
        if (cycles == 0)
            return;
        const Cycle from = running_->clock + (running_->does == Task::Does::Stream);
        const Cycle last = clock_.at_or_after(LAST);
        if (from > last || cycles > last - from)
            refuse("computes for " + std::to_string(cycles) + " cycles, and virtual time ends after " +
                   std::to_string(last) + ": give apeiron_compute fewer");
        running_->clock = from + cycles;
        running_->does = Task::Does::Nothing;
    }

    Cycle interval() const override { return running_->interval; }

    Task *current() override { return running_; }

    void block(const std::string &stream, Access access, bool at_port) override
    {
        running_->stream = stream;
        running_->access = access;
        running_->waits = true;
        running_->waits_at_port = at_port;
        running_->coroutine.give_way();
    }

    void waited(const std::string &stream, Access access, Cycle cycles) override
    {
        running_->waited[{access, stream}] += cycles;
    }

    void wake(Task *task) override { task->waits = false; }

    void settle() override
    {
        running_->looks = true;
        running_->coroutine.give_way();
        running_->looks = false;
    }

    Cycle memory(const void *address, std::size_t words, Cycle from) override
    {
        if (!is_in_ddr(address))
            return from;
        // Kernels share the channel: one transfer after the other, each with its latency for every packet.
        const std::size_t packets = (words + packet_words_ - 1) / packet_words_;
        const Cycle first = std::max(from, ddr_free_) + ddr_.latency * packets;
        ddr_free_ = first + words;
        return first;
    }

    void refuse(const std::string &what) override
    {
        end("kernel " + (running_ ? running_->name : std::string("?")) + " " + what);
    }

    std::vector<unsigned char> &received(unsigned channel) override { return running_->received[channel]; }

    const std::string &name() const override { return running_->name; }

    void *channel(Access access, unsigned number) override
    {
        if (running_->port == nullptr)
            refuse("uses channel " + std::to_string(number) + ", and it is at no port: give it a switch_port in "
                   "config.yaml");
        const unsigned count = access == Access::Read ? running_->port->inputs() : running_->port->outputs();
        const Channels channels = running_->port->channels();
        // Those behind the last say what is wrong.
        const unsigned at = std::min(number, count);
        return access == Access::Read ? &channels.data_in[at] : &channels.data_out[at];
    }

  private:
    // The end of virtual time, so far from NEVER that sums of times do not reach it.
    static constexpr Picoseconds LAST = NEVER / 2;

    // The next thing happens, no later than `then`. Whether something has. `host`: what the host waits for.
    bool step(Picoseconds then, const Task *host)
    {
        Task *next = earliest();
        const Picoseconds ready = next != nullptr ? clock_.edge(next->clock) : NEVER;
        const Picoseconds sends = outgoing_.empty() ? NEVER : outgoing_.begin()->first;
        const Picoseconds frees = leaving_.empty() ? NEVER : leaving_.begin()->first;
        const Picoseconds acts = std::min(sends, frees), first = std::min(ready, acts);
        if (first > then || first == NEVER) {
            if (then == NEVER)
                check_that_somebody_waits_at_a_port(host);
            if (network_.now() < then && network_.wait_until(then))
                return take_arrivals();
            if (then == NEVER)
                tell_of_standstill();
            return then == NEVER;
        }
        // Something may come before that: a kernel waits for it, or FIFOs take it.
        if (network_.now() < first && (acts <= ready || waits_at_port() || next->looks)) {
            if (network_.wait_until(first))
                return take_arrivals();
        }
        if (acts <= ready) {
            act(acts, frees);
            return true;
        }
        resume(*next);
        return true;
    }

    // The first of the kernels that can go on, in the order of their clocks and names.
    Task *earliest()
    {
        Task *found = nullptr;
        for (const auto &task : tasks_)
            if (!task->waits && (found == nullptr || task->clock < found->clock))
                found = task.get();
        return found;
    }

    bool waits_at_port() const
    {
        return std::any_of(tasks_.begin(), tasks_.end(),
                           [](const std::shared_ptr<Task> &task) { return task->waits && task->waits_at_port; });
    }

    void resume(Task &task)
    {
        running_ = &task;
        Faults::resume(task.coroutine, task.name, network_.node());
        running_ = nullptr;
        if (task.is_over())
            tasks_.erase(std::find_if(tasks_.begin(), tasks_.end(),
                                      [&task](const std::shared_ptr<Task> &own) { return own.get() == &task; }));
    }

    // The ports get what they are to have at `at`: room that is free from `frees` on goes first.
    void act(Picoseconds at, Picoseconds frees)
    {
        network_.pass_until(at);
        if (frees == at) {
            const unsigned port = leaving_.begin()->second;
            leaving_.erase(leaving_.begin());
            network_.free(port);
            return;
        }
        const Packet packet = std::move(outgoing_.begin()->second);
        outgoing_.erase(outgoing_.begin());
        network_.send(packet);
    }

    // A packet leaves the receiving FIFOs of a port in that cycle.
    void leave(unsigned port, Cycle at)
    {
        const Picoseconds then = clock_.edge(at);
        if (then <= network_.now())
            network_.free(port);
        else
            leaving_.emplace(then, port);
    }

    // A kernel has given a packet to its port, in that cycle.
    void post(Packet packet)
    {
        packet.at = clock_.edge(packet.at);
        const Picoseconds at = std::max(packet.at, network_.now());
        outgoing_.emplace(at, std::move(packet));
    }

    bool take_arrivals()
    {
        Packet packet;
        while (network_.take(packet)) {
            const Cycle at = clock_.at_or_after(packet.at);
            const auto port = ports_.find(packet.port);
            const std::string wrong = port == ports_.end()
                                          ? "a message has come for task " + std::to_string(packet.port) +
                                                ", and the design has no kernel at that port"
                                          : port->second->arrived(std::move(packet), at);
            if (!wrong.empty())
                end(wrong);
        }
        unsigned number = 0;
        Picoseconds at = 0;
        while (network_.take_sent(number, at))
            ports_.at(number)->sent(clock_.at_or_after(at));
        return true;
    }

    bool is_in_ddr(const void *address) const
    {
        const char *at = static_cast<const char *>(address);
        auto found = in_ddr_.upper_bound(at);
        return found != in_ddr_.begin() && at < (--found)->first + found->second;
    }

    // The streams that kernels wait for, as sentences.
    std::string waiting() const
    {
        std::string told;
        for (const auto &task : tasks_)
            told += "\n  kernel " + task->name + (task->access == Access::Read ? " reads " : " writes ") +
                    task->stream + (task->access == Access::Read ? ", which is empty" : ", which is full");
        for (const auto &port : ports_)
            if (const StreamControl *full = port.second->dispatcher().full())
                told += "\n  a packet waits for " + full->name() + " of kernel " + port.second->kernel().name +
                        ", which is full";
        for (const auto &port : ports_)
            for (const std::string &unfinished : port.second->unfinished())
                told += "\n  there is " + unfinished;
        return told;
    }

    void check_that_somebody_waits_at_a_port(const Task *host)
    {
        if (waits_at_port())
            return;
        end("deadlock: the host waits for kernel " + (host != nullptr ? host->name : std::string("?")) +
            ", and every kernel waits for a stream of its node:" + waiting());
    }

    // Nothing comes from the network any more: the run ends, and says that ranks wait; these are their kernels.
    void tell_of_standstill()
    {
        if (std::exchange(has_told_, true))
            return;
        std::fprintf(stderr, "weft apeiron: deadlock: the host waits, and every kernel waits for a stream:%s\n",
                     waiting().c_str());
    }

    [[noreturn]] void end(const std::string &what)
    {
        std::fflush(stdout);
        std::fprintf(stderr, "weft apeiron: node %u: %s\n", network_.node(), what.c_str());
        std::fflush(stderr);
        _exit(1);
    }

    Network &network_;
    Clock clock_;
    DdrCosts ddr_;
    std::size_t packet_words_;
    std::map<unsigned, std::unique_ptr<Port>> ports_;
    // By name.
    std::vector<std::shared_ptr<Task>> tasks_;
    Task *running_ = nullptr;
    // Packets that their ports have not got, by time; those of one time in the order in which they were written.
    std::multimap<Picoseconds, Packet> outgoing_;
    // Ports whose receiving FIFOs a packet leaves, by time.
    std::multimap<Picoseconds, unsigned> leaving_;
    std::map<const char *, std::size_t> in_ddr_;
    // From when on the channel of DDR is free.
    Cycle ddr_free_ = 0;
    bool has_told_ = false;
};

}  // namespace weft_apeiron

#endif
