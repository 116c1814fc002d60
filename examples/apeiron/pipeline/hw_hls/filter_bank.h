// A filter bank: each stage filters a block of samples with four weights of its own. Kernels and host have it from
// here, so that the host checks what the kernels make.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef FILTER_BANK_H
#define FILTER_BANK_H

#include <cstdint>

const unsigned STAGES = 4, TAPS = 4, BLOCK = 256;

const int32_t WEIGHTS[STAGES][TAPS] = {{3, -1, 2, 1}, {1, 4, -2, 5}, {-3, 2, 2, 1}, {7, -5, 1, 2}};

// The next sample of a stage, whose last ones are in `history`.
inline int32_t filter(unsigned stage, int32_t sample, int32_t history[TAPS])
{
    for (unsigned tap = TAPS - 1; tap > 0; tap--)
        history[tap] = history[tap - 1];
    history[0] = sample;
    int32_t sum = 0;
    for (unsigned tap = 0; tap < TAPS; tap++)
        sum += WEIGHTS[stage][tap] * history[tap];
    return sum >> 2;
}

#endif
