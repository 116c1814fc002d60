// xrt::device: the card of this node.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_XRT_DEVICE_H
#define WEFT_XRT_DEVICE_H

#include "../weft_apeiron/card.h"

namespace xrt {

// A design that has been loaded.
class uuid {
  public:
    uuid() = default;
    explicit uuid(std::string name) : name_(std::move(name)) {}
    const std::string &to_string() const { return name_; }

  private:
    std::string name_;
};

class device {
  public:
    // A node has one card.
    explicit device(unsigned index = 0) : card_(std::make_shared<weft_apeiron::Card>())
    {
        if (index != 0)
            throw std::runtime_error("a node has one card here: device 0");
    }

    uuid load_xclbin(const std::string &path)
    {
        card_->load(path);
        return uuid(path);
    }

    const std::shared_ptr<weft_apeiron::Card> &card() const { return card_; }

  private:
    std::shared_ptr<weft_apeiron::Card> card_;
};

}  // namespace xrt

#endif
