// The card of a node with a design in it: what the XRT-like interface of host programs stands on.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_CARD_H
#define WEFT_APEIRON_CARD_H

#include "scheduler.h"
#include "weft_network.h"
#include <cxxabi.h>
#include <dlfcn.h>

namespace weft_apeiron {

class Card {
  public:
    // A kernel of the design.
    struct Unit {
        KernelDesign design;
        const KernelTable *table;
        // NULL: it is at none.
        Port *port;
        // Streams that join it to other kernels, by the places of its parameters.
        std::vector<void *> joined;
        // Its run, and the times of those before.
        std::shared_ptr<Task> task;
        KernelTimes before;

        KernelTimes times(Cycle now) const
        {
            KernelTimes times = before;
            if (task)
                times.add(task->times(now));
            return times;
        }
    };

    Card() : surroundings_(Surroundings::read()), network_(surroundings_)
    {
        own() = this;
        // A program that calls exit does not come to the end of its card.
        std::atexit([] {
            Faults::check_that_no_kernel_exits();
            if (own() != nullptr)
                own()->tell_of_kernels();
        });
    }

    ~Card()
    {
        tell_of_kernels();
        own() = nullptr;
    }

    Card(const Card &) = delete;
    Card &operator=(const Card &) = delete;

    // Configures the card with a design.
    void load(const std::string &path)
    {
        if (scheduler_)
            throw std::runtime_error("the card has a design already; a card is configured once here");
        design_ = Design::read(path);
        check_design(path);
        DdrCosts ddr;
        ddr.latency = surroundings_.ddr_cycles;
        scheduler_.reset(new Scheduler(network_, Clock(design_.megahertz), ddr, surroundings_.payload));
        for (KernelDesign &kernel : design_.kernels) {
            if (kernel.depth == 0)
                kernel.depth = words_of(surroundings_.payload);
            if (kernel.has_port)
                network_.open(kernel.port);
            const KernelTable *table = load_code(kernel);
            Port *port =
                kernel.has_port ? &scheduler_->add(kernel, table->has_headers, surroundings_.payload) : nullptr;
            units_.push_back({kernel, table, port, std::vector<void *>(table->count), nullptr, {}});
        }
        for (const StreamDesign &stream : design_.streams)
            join(stream);
        check_joined();
    }

    // The host copies so many bytes to the card or back; kernels run meanwhile.
    void sync(std::size_t bytes)
    {
        Scheduler &own = scheduler();
        own.run_until(own.now() + surroundings_.sync_time(bytes));
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
        check_arguments(unit, arguments);
        Channels channels = unit.port != nullptr ? unit.port->channels() : Channels();
        channels.joined = unit.joined.data();
        const auto call = unit.table->call;
        if (unit.task)
            unit.before.add(unit.task->times(now()));
        unit.task = scheduler().start(unit.design, [=] { call(arguments.data(), channels); });
    }

    // The waits of each kernel, a line each: the one that waits least is the limit of all.
    std::string explain()
    {
        std::string text;
        for (const Unit &unit : units_) {
            const KernelTimes times = unit.times(now());
            if (times.all == 0)
                continue;
            text += "kernel " + unit.design.name + ": " + std::to_string(times.all) + " cycles";
            for (const auto &waited : times.waited)
                text += ", " + share_of(waited.second, times.all) + " until it " +
                        (waited.first.first == Access::Read ? "reads " : "writes ") + waited.first.second;
            for (const auto &full : fulls(unit, times.all))
                text += "; " + full.first + " is full for " + share_of(full.second, times.all);
            text += "\n";
        }
        return text;
    }

  private:
    // The card of this program: a node has one.
    static Card *&own()
    {
        static Card *card = nullptr;
        return card;
    }

    // The node's time in cycles.
    Cycle now() { return scheduler().design_clock().at_or_after(network_.now()); }

    static std::string share_of(Cycle part, Cycle all)
    {
        char share[32];
        std::snprintf(share, sizeof share, "%.1f %%", 100 * static_cast<double>(part) / static_cast<double>(all));
        return share;
    }

    // Cycles for which packets have waited for room in the input channels of a kernel, where they have: of its time no
    // more than all.
    std::vector<std::pair<std::string, Cycle>> fulls(const Unit &unit, Cycle all)
    {
        std::vector<std::pair<std::string, Cycle>> found;
        for (unsigned channel = 0; unit.port != nullptr && channel < unit.design.inputs; channel++)
            if (const Cycle held = unit.port->dispatcher().held(channel, now()))
                found.emplace_back(unit.port->input_name(channel), std::min(held, all));
        return found;
    }

    // Refuses a design that was built from another config.yaml than weft runs.
    void check_design(const std::string &path) const
    {
        const std::string mend = "; build it again: weft apeiron build CONFIG -o " + path;
        if (design_.megahertz != surroundings_.megahertz)
            throw std::runtime_error(path + " was built for freq: " + std::to_string(design_.megahertz) +
                                     ", and the config.yaml of weft apeiron run has freq: " +
                                     std::to_string(surroundings_.megahertz) + mend);
        if (design_.of != surroundings_.kernels)
            throw std::runtime_error(path + " was built from other kernels or streams than the config.yaml of weft "
                                            "apeiron run has" + mend);
    }

    // The times of all kernels go to weft, for `weft explain`.
    void tell_of_kernels()
    {
        if (!scheduler_)
            return;
        const Clock &clock = scheduler_->design_clock();
        for (Unit &unit : units_) {
            const KernelTimes times = unit.times(now());
            unit.before = KernelTimes();
            unit.task.reset();
            Cycle works = times.all;
            for (const auto &waited : times.waited) {
                works -= std::min(works, waited.second);
                network_.tell_of_kernel(unit.design.name,
                                        waited.first.first == Access::Read ? WEFT_KERNEL_READS : WEFT_KERNEL_WRITES,
                                        waited.first.second, clock.edge(waited.second));
            }
            if (times.all == 0)
                continue;
            network_.tell_of_kernel(unit.design.name, WEFT_KERNEL_WORKS, "", clock.edge(works));
            for (const auto &full : fulls(unit, times.all))
                network_.tell_of_kernel(unit.design.name, WEFT_KERNEL_FULL, full.first, clock.edge(full.second));
        }
    }

    // The arguments of the host are the parameters before the channels that are no streams.
    static void check_arguments(const Unit &unit, const std::vector<Argument> &arguments)
    {
        std::size_t given = 0;
        for (unsigned at = 0; at < unit.table->count; at++) {
            const ParameterTable &parameter = unit.table->parameters[at];
            if (parameter.words != nullptr)
                continue;
            if (given < arguments.size() &&
                parameter.takes_buffer != (arguments[given].kind == Argument::Kind::Buffer))
                throw std::runtime_error("argument " + std::to_string(given) + " of kernel " + unit.design.name +
                                         (parameter.takes_buffer ? " is a buffer" : " is a number"));
            given++;
        }
        if (arguments.size() != given)
            throw std::runtime_error("kernel " + unit.design.name + " takes " + std::to_string(given) +
                                     " arguments before its streams, and " + std::to_string(arguments.size()) +
                                     " are given");
    }

    // The place of a kernel's parameter that is a stream.
    static std::size_t place_of(const Unit &unit, const std::string &parameter)
    {
        for (unsigned at = 0; at < unit.table->count; at++) {
            const ParameterTable &own = unit.table->parameters[at];
            if (own.name != nullptr && own.name == parameter && own.words != nullptr)
                return at;
        }
        throw std::runtime_error("kernel " + unit.design.name + " has no parameter hls::stream<TYPE> &" + parameter +
                                 ", which `streams` of config.yaml joins");
    }

    // Makes a stream between two kernels.
    void join(const StreamDesign &stream)
    {
        Unit &writer = find(stream.writer), &reader = find(stream.reader);
        const std::size_t written = place_of(writer, stream.written), read = place_of(reader, stream.read);
        const ParameterTable &in = writer.table->parameters[written], &out = reader.table->parameters[read];
        if (*in.words != *out.words)
            throw std::runtime_error("stream " + stream.name + " joins two types of words: " + stream.writer + "." +
                                     stream.written + " has " + plain(*in.words) + ", and " + stream.reader + "." +
                                     stream.read + " has " + plain(*out.words));
        // Streams behind the last of an array say what is wrong.
        const std::size_t guards = stream.count > 0 ? GUARDS : 1;
        JoinedStream joined = in.make(stream.count + guards);
        for (std::size_t at = 0; at < joined.controls.size(); at++) {
            StreamControl &control = *joined.controls[at];
            control.set_name(stream.count > 0 ? stream.name + "[" + std::to_string(at) + "]" : stream.name);
            control.set_depth(stream.depth);
            control.join(stream.writer, stream.reader);
            if (stream.count > 0 && at >= stream.count)
                control.forbid("uses stream " + control.name() + ", and `count` of it in config.yaml is " +
                               std::to_string(stream.count));
        }
        writer.joined[written] = reader.joined[read] = joined.stream.get();
        streams_.push_back(std::move(joined));
    }

    void check_joined() const
    {
        for (const Unit &unit : units_)
            for (unsigned at = 0; at < unit.table->count; at++)
                if (unit.table->parameters[at].words != nullptr && unit.joined[at] == nullptr)
                    throw std::runtime_error("nothing is joined to parameter " + std::to_string(at) + " of kernel " +
                                             unit.design.name + ", a stream; add it to `streams` of config.yaml");
    }

    static std::string plain(const std::type_info &type)
    {
        int status = 0;
        std::unique_ptr<char, void (*)(void *)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                     &std::free);
        return status == 0 ? name.get() : type.name();
    }

    static const KernelTable *load_code(const KernelDesign &kernel)
    {
        void *code = dlopen(kernel.code.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (code == nullptr)
            throw std::runtime_error("kernel " + kernel.name + ": " + dlerror() +
                                     "; the folder FILE.d of weft apeiron build must lie beside FILE");
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
    std::vector<JoinedStream> streams_;
};

}  // namespace weft_apeiron

#endif
