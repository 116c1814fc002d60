// xrt::bo: a buffer in the card's DDR, with its copy in the host.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_XRT_BO_H
#define WEFT_XRT_BO_H

#include "xrt_device.h"
#include <cstring>

enum xclBOSyncDirection { XCL_BO_SYNC_BO_TO_DEVICE, XCL_BO_SYNC_BO_FROM_DEVICE };

namespace xrt {

using memory_group = int;

class bo {
  public:
    bo(const device &of, std::size_t size, memory_group group = 0) : memory_(std::make_shared<Memory>(of.card(), size))
    {
        (void)group;
    }

    std::size_t size() const { return memory_->host.size(); }

    // The host's copy.
    template <typename T>
    T map()
    {
        return reinterpret_cast<T>(memory_->host.data());
    }

    void write(const void *from, std::size_t size, std::size_t seek) { std::memcpy(at(size, seek), from, size); }
    void write(const void *from) { write(from, size(), 0); }
    void read(void *to, std::size_t size, std::size_t skip) { std::memcpy(to, at(size, skip), size); }
    void read(void *to) { read(to, size(), 0); }

    // Copies it to the card, or back, which takes the machine's `nic.sync`.
    void sync(xclBOSyncDirection direction, std::size_t size, std::size_t offset)
    {
        unsigned char *host = at(size, offset), *card = memory_->card.data() + offset;
        memory_->on->sync(size);
        std::memcpy(direction == XCL_BO_SYNC_BO_TO_DEVICE ? card : host,
                    direction == XCL_BO_SYNC_BO_TO_DEVICE ? host : card, size);
    }
    void sync(xclBOSyncDirection direction) { sync(direction, size(), 0); }

    // The card's copy, as kernels find it.
    void *device_memory() const { return memory_->card.data(); }

  private:
    struct Memory {
        Memory(std::shared_ptr<weft_apeiron::Card> of, std::size_t size) : on(std::move(of)), host(size), card(size)
        {
            on->scheduler().add_ddr(card.data(), size);
        }
        ~Memory() { on->scheduler().remove_ddr(card.data()); }
        std::shared_ptr<weft_apeiron::Card> on;
        std::vector<unsigned char> host, card;
    };

    unsigned char *at(std::size_t size, std::size_t offset)
    {
        if (offset > this->size() || size > this->size() - offset)
            throw std::runtime_error("a buffer of " + std::to_string(this->size()) + " bytes has no " +
                                     std::to_string(size) + " from " + std::to_string(offset) + " on");
        return memory_->host.data() + offset;
    }

    std::shared_ptr<Memory> memory_;
};

}  // namespace xrt

#endif
