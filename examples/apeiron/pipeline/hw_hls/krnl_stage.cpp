// A stage of the filter bank: takes blocks from the stage before it, or from memory, and gives them to the next, or
// keeps them. A word of a message has four samples; a stage needs `interval` cycles for it.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "filter_bank.h"
#include "hapecom.h"

extern "C" void krnl_stage(unsigned stage, unsigned nblocks, unsigned next_node, unsigned next_task,
                           const int32_t *input, int32_t *output, unsigned interval,
                           message_stream_t message_data_in[N_INPUT_CHANNELS],
                           message_stream_t message_data_out[N_OUTPUT_CHANNELS])
{
    int32_t history[TAPS] = {};
    static int32_t samples[BLOCK];
    for (unsigned block = 0; block < nblocks; block++) {
        if (stage == 0)
            for (unsigned at = 0; at < BLOCK; at++)
                samples[at] = input[block * BLOCK + at];
        else
            receive(0u, samples, message_data_in);
        for (unsigned at = 0; at < BLOCK; at++)
            samples[at] = filter(stage, samples[at], history);
        // Four samples at a time, beside what the streams take.
        apeiron_compute(BLOCK / 4 * (interval - 1));
        if (stage + 1 < STAGES)
            send(samples, sizeof samples, next_node, next_task, 0, message_data_out);
        else
            for (unsigned at = 0; at < BLOCK; at++)
                output[block * BLOCK + at] = samples[at];
    }
}
