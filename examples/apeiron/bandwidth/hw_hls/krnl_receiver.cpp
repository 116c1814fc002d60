// Takes packets, checks each word, and acknowledges all of them with one packet of one word: TEXTAROSSA
// D2.8 §5.2.1, appendix A.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hapecom.h"
#include <stdexcept>

extern "C" void krnl_receiver(unsigned coord_x, unsigned coord_y, unsigned coord_z, unsigned task_id,
                              unsigned npackets, uint128_t *buffer, bool bram_usage,
                              header_stream_t message_hdr_in[N_INPUT_CHANNELS],
                              message_stream_t message_data_in[N_INPUT_CHANNELS],
                              header_stream_t message_hdr_out[N_OUTPUT_CHANNELS],
                              message_stream_t message_data_out[N_OUTPUT_CHANNELS])
{
    unsigned taken = 0;
    for (unsigned packet = 0; packet < npackets; packet++) {
        const apenet_header_t header = message_hdr_in[0].read();
        const unsigned nword = header.s.packet_size / sizeof(uint128_t);
        if (!bram_usage)
            apeiron_memory_access(buffer, header.s.packet_size);
        for (unsigned word = 0; word < nword; word++, taken++) {
            const uint128_t data = message_data_in[0].read();
            if (data != taken)
                throw std::runtime_error("another word than was sent");
            if (!bram_usage)
                buffer[taken] = data;
        }
        message_hdr_in[0].read();
    }
    apenet_header_t header = {};
    header.s.dest_x = coord_x;
    header.s.dest_y = coord_y;
    header.s.dest_z = coord_z;
    header.s.intra_dest = task_id;
    header.s.packet_size = sizeof(uint128_t);
    message_hdr_out[0].write(header);
    message_data_out[0].write(taken);
    message_hdr_out[0].write(apenet_header_t());
}
