// The clock of a design.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_CLOCK_H
#define WEFT_APEIRON_CLOCK_H

#include "executor.h"

namespace weft_apeiron {

// A point in virtual time, in picoseconds.
using Picoseconds = std::uint64_t;

class Clock {
  public:
    explicit Clock(std::uint64_t megahertz) : megahertz_(megahertz) {}

    // The beginning of a cycle, as the model has it: rounded up, from the count and not from a rounded period.
    Picoseconds edge(Cycle cycle) const
    {
        if (cycle == NEVER)
            return NEVER;
        const unsigned __int128 ps = static_cast<unsigned __int128>(cycle) * 1000000;
        return static_cast<Picoseconds>((ps + megahertz_ - 1) / megahertz_);
    }

    // The first cycle that begins no earlier.
    Cycle at_or_after(Picoseconds ps) const
    {
        if (ps == 0)
            return 0;
        return static_cast<Cycle>(static_cast<unsigned __int128>(ps - 1) * megahertz_ / 1000000) + 1;
    }

  private:
    std::uint64_t megahertz_;
};

}  // namespace weft_apeiron

#endif
