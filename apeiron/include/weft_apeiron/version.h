// The version of what weft and programs of designs tell each other: its environment, and descriptions of designs.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_VERSION_H
#define WEFT_APEIRON_VERSION_H

#include <istream>
#include <stdexcept>
#include <string>

namespace weft_apeiron {

// The words with which both begin: those of crates/weft-apeiron/src/build.rs.
constexpr const char *VERSION = "weft-apeiron 4";

// Reads them at the beginning of what `name` names. Throws if another weft has written that.
inline void check_version(std::istream &text, const std::string &name)
{
    std::string mark, number;
    text >> mark >> number;
    if (mark + " " + number != VERSION)
        throw std::runtime_error(name + " does not begin with `" + VERSION + "`, as the headers of this program have "
                                 "it: they are of another weft; build design and programs again with "
                                 "weft apeiron build CONFIG -o FILE");
}

}  // namespace weft_apeiron

#endif
