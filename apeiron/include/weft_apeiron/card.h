// The card of a node with a design in it: what the XRT-like interface of host programs stands on.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_CARD_H
#define WEFT_APEIRON_CARD_H

#include "scheduler.h"
#include "weft_network.h"
#include <dlfcn.h>

namespace weft_apeiron {

class Card {
  public:
    // A kernel of the design.
    struct Unit {
        KernelDesign design;
        const KernelTable *table;
        Port *port;
        std::shared_ptr<Task> task;
    };

    Card() : surroundings_(Surroundings::read()), network_(surroundings_) {}

    // Configures the card with a design.
    void load(const std::string &path)
    {
        if (scheduler_)
            throw std::runtime_error("the card has a design already; a card is configured once here");
        design_ = Design::read(path);
        DdrCosts ddr;
        ddr.latency = surroundings_.ddr_cycles;
        scheduler_.reset(new Scheduler(network_, Clock(design_.megahertz), ddr, design_.payload));
        for (const KernelDesign &kernel : design_.kernels) {
            network_.open(kernel.port);
            const KernelTable *table = load_code(kernel);
            units_.push_back({kernel, table, &scheduler_->add(kernel, table->has_headers, design_.payload), nullptr});
        }
    }

    WeftNetwork &network() { return network_; }
    const Design &design() const { return design_; }

    Scheduler &scheduler()
    {
        if (!scheduler_)
            throw std::runtime_error("the card has no design; load one with device.load_xclbin");
        return *scheduler_;
    }

    // The kernel that XRT names so: `krnl_1`, or `krnl:{krnl_1}`.
    Unit &find(const std::string &name)
    {
        const std::size_t open = name.find('{'), close = name.find('}');
        const std::string own = open != std::string::npos && close != std::string::npos
                                    ? name.substr(open + 1, close - open - 1)
                                    : name.substr(name.find(':') + 1);
        std::string all;
        for (Unit &unit : units_) {
            if (unit.design.name == own)
                return unit;
            all += (all.empty() ? "" : ", ") + unit.design.name;
        }
        throw std::runtime_error("the design has no kernel " + own + "; it has " + all);
    }

    // Starts a kernel.
    void start(Unit &unit, const std::vector<Argument> &arguments)
    {
        if (unit.task && !unit.task->is_over())
            throw std::runtime_error("kernel " + unit.design.name + " runs already; wait for its run first");
        if (arguments.size() != unit.table->parameters)
            throw std::runtime_error("kernel " + unit.design.name + " takes " +
                                     std::to_string(unit.table->parameters) + " arguments before its streams, and " +
                                     std::to_string(arguments.size()) + " are given");
        for (std::size_t at = 0; at < arguments.size(); at++)
            if (unit.table->takes_buffer[at] != (arguments[at].kind == Argument::Kind::Buffer))
                throw std::runtime_error("argument " + std::to_string(at) + " of kernel " + unit.design.name +
                                         (unit.table->takes_buffer[at] ? " is a buffer" : " is a number"));
        const Channels channels = unit.port->channels();
        const auto call = unit.table->call;
        unit.task = scheduler().start(unit.design, [=] { call(arguments.data(), channels); });
    }

    // What each kernel has waited for in its last run: the one that waits least is the limit of all.
    std::string explain() const
    {
        std::string text;
        for (const Unit &unit : units_) {
            if (!unit.task)
                continue;
            const Task &task = *unit.task;
            const double all = static_cast<double>(task.clock - task.began + 1);
            text += "kernel " + task.name + ": " + std::to_string(task.clock - task.began + 1) + " cycles";
            for (const auto &waited : task.waited) {
                char share[32];
                std::snprintf(share, sizeof share, "%.1f %%", 100 * static_cast<double>(waited.second) / all);
                text += ", " + std::string(share) + " until it " + waited.first;
            }
            text += "\n";
        }
        return text;
    }

  private:
    static const KernelTable *load_code(const KernelDesign &kernel)
    {
        void *code = dlopen(kernel.code.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (code == nullptr)
            throw std::runtime_error("kernel " + kernel.name + ": " + dlerror());
        using Entry = const KernelTable *(*)();
        const Entry entry = reinterpret_cast<Entry>(dlsym(code, "weft_apeiron_kernel"));
        if (entry == nullptr)
            throw std::runtime_error("kernel " + kernel.name + ": " + kernel.code +
                                     " is no kernel of weft apeiron build");
        const KernelTable *table = entry();
        table->join(executor());
        return table;
    }

    Surroundings surroundings_;
    WeftNetwork network_;
    Design design_;
    std::unique_ptr<Scheduler> scheduler_;
    std::vector<Unit> units_;
};

}  // namespace weft_apeiron

#endif
