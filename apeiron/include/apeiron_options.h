// Numbers among the options of host programs.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_OPTIONS_H
#define WEFT_APEIRON_OPTIONS_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// The value of an option, which is a whole number from `least` to `most`. Another ends the program with status 2, and
// is told with its option and what is expected.
inline uint32_t apeiron_number(const std::string &option, const std::string &value, uint32_t least, uint32_t most)
{
    char *end = nullptr;
    const unsigned long long number = std::strtoull(value.c_str(), &end, 10);
    // strtoull takes spaces, signs and nothing at all; a number that is too large is its largest.
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || number < least || number > most) {
        std::fprintf(stderr, "%s: `%s` was given; expected a whole number from %u to %u\n", option.c_str(),
                     value.c_str(), least, most);
        std::exit(2);
    }
    return static_cast<uint32_t>(number);
}

#endif
