// A word of the stream between the stages of a pair.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef FOUR_SAMPLES_H
#define FOUR_SAMPLES_H

#include "../../pipeline/hw_hls/filter_bank.h"

struct four_samples_t {
    int32_t sample[4];
};

const unsigned WORDS = BLOCK / 4;

#endif
