// xrt::kernel, xrt::run and xrt::ip: kernels of a design, their runs, and the registers of the Communication IP.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_XRT_KERNEL_H
#define WEFT_XRT_KERNEL_H

#include "xrt_bo.h"

namespace xrt {

class kernel {
  public:
    kernel(const device &of, const uuid &, const std::string &name) : card_(of.card()), unit_(&card_->find(name)) {}

    // The memory of a parameter: a card has one here.
    memory_group group_id(int) const { return 0; }

    template <typename... A>
    class run operator()(const A &...arguments);

  private:
    friend class run;
    std::shared_ptr<weft_apeiron::Card> card_;
    weft_apeiron::Card::Unit *unit_;
};

class run {
  public:
    explicit run(const kernel &of) : kernel_(of) {}

    template <typename T, weft_apeiron::IfInteger<T> = 0>
    void set_arg(unsigned place, T value)
    {
        argument(place).kind = weft_apeiron::Argument::Kind::Integer;
        argument(place).integer = static_cast<std::int64_t>(value);
    }

    void set_arg(unsigned place, double value)
    {
        argument(place).kind = weft_apeiron::Argument::Kind::Real;
        argument(place).real = value;
    }

    void set_arg(unsigned place, const bo &buffer)
    {
        argument(place).kind = weft_apeiron::Argument::Kind::Buffer;
        argument(place).buffer = buffer.device_memory();
        buffers_.push_back(buffer);
    }

    void start()
    {
        kernel_.card_->start(*kernel_.unit_, arguments_);
        task_ = kernel_.unit_->task;
    }

    // Until the kernel is over.
    void wait()
    {
        if (!task_)
            throw std::runtime_error("a run that has not been started; call start first");
        kernel_.card_->scheduler().run(*task_);
    }

  private:
    weft_apeiron::Argument &argument(unsigned place)
    {
        if (arguments_.size() <= place)
            arguments_.resize(place + 1);
        return arguments_[place];
    }

    kernel kernel_;
    std::vector<weft_apeiron::Argument> arguments_;
    // They stay as long as the kernel may use them.
    std::vector<bo> buffers_;
    std::shared_ptr<weft_apeiron::Task> task_;
};

template <typename... A>
run kernel::operator()(const A &...arguments)
{
    run own(*this);
    unsigned place = 0;
    const int all[] = {0, (own.set_arg(place++, arguments), 0)...};
    (void)all;
    own.start();
    return own;
}

// The registers of the Communication IP of this node. It is named as in vpp_linker.cfg.
class ip {
  public:
    ip(const device &of, const uuid &, const std::string &name) : card_(of.card())
    {
        if (name.find(card_->design().switch_name) == std::string::npos)
            throw std::runtime_error("the design has no IP " + name + "; the Communication IP is " +
                                     card_->design().switch_name);
    }

    std::uint32_t read_register(std::uint32_t offset) const { return card_->network().read_register(offset); }
    void write_register(std::uint32_t offset, std::uint32_t value) { card_->network().write_register(offset, value); }

  private:
    std::shared_ptr<weft_apeiron::Card> card_;
};

}  // namespace xrt

#endif
