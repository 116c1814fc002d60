// The first stage of a pair: takes blocks from the pair before it, or from memory, and gives words of four samples to
// the second stage.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "four_samples.h"
#include "hapecom.h"

extern "C" void krnl_front(unsigned stage, unsigned nblocks, const int32_t *input,
                           hls::stream<four_samples_t> &samples_out,
                           message_stream_t message_data_in[N_INPUT_CHANNELS],
                           message_stream_t message_data_out[N_OUTPUT_CHANNELS])
{
    (void)message_data_out;
    int32_t history[TAPS] = {};
    static four_samples_t words[WORDS];
    for (unsigned block = 0; block < nblocks; block++) {
        if (stage == 0)
            std::memcpy(words, input + block * BLOCK, sizeof words);
        else
            receive(0u, words, message_data_in);
        for (unsigned at = 0; at < WORDS; at++) {
#pragma HLS pipeline II=1
            four_samples_t word = words[at];
            for (int32_t &sample : word.sample)
                sample = filter(stage, sample, history);
            samples_out.write(word);
        }
    }
}
