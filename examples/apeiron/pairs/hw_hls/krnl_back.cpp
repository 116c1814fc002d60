// The second stage of a pair: takes words of four samples from the first, and gives blocks to the next pair, or keeps
// them. It needs `interval` cycles for a word.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "four_samples.h"
#include "hapecom.h"

extern "C" void krnl_back(unsigned stage, unsigned nblocks, bool is_last, unsigned next_node, int32_t *output,
                          unsigned interval, hls::stream<four_samples_t> &samples_in,
                          message_stream_t message_data_in[N_INPUT_CHANNELS],
                          message_stream_t message_data_out[N_OUTPUT_CHANNELS])
{
    (void)message_data_in;
    int32_t history[TAPS] = {};
    static four_samples_t words[WORDS];
    for (unsigned block = 0; block < nblocks; block++) {
        for (unsigned at = 0; at < WORDS; at++) {
            words[at] = samples_in.read();
            for (int32_t &sample : words[at].sample)
                sample = filter(stage, sample, history);
            apeiron_compute(interval - 1);
        }
        if (is_last)
            std::memcpy(output + block * BLOCK, words, sizeof words);
        else
            send(words, sizeof words, next_node, 0, 0, message_data_out);
    }
}
