// Sends packets, and waits for the acknowledgement of all of them: TEXTAROSSA D2.8 §5.2.1, appendix A.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "hapecom.h"

extern "C" void krnl_sender(unsigned coord_x, unsigned coord_y, unsigned coord_z, unsigned task_id, unsigned npackets,
                            unsigned packet_size, const uint128_t *buffer, bool bram_usage,
                            header_stream_t message_hdr_in[N_INPUT_CHANNELS],
                            message_stream_t message_data_in[N_INPUT_CHANNELS],
                            header_stream_t message_hdr_out[N_OUTPUT_CHANNELS],
                            message_stream_t message_data_out[N_OUTPUT_CHANNELS])
{
    const unsigned nword = packet_size / sizeof(uint128_t);
    for (unsigned packet = 0; packet < npackets; packet++) {
        apenet_header_t header = {};
        header.s.dest_x = coord_x;
        header.s.dest_y = coord_y;
        header.s.dest_z = coord_z;
        header.s.intra_dest = task_id;
        header.s.packet_size = packet_size;
        message_hdr_out[0].write(header);
        if (!bram_usage)
            apeiron_memory_access(buffer, packet_size);
        for (unsigned word = 0; word < nword; word++) {
            uint128_t data = packet * nword + word;
            if (!bram_usage)
                data = buffer[packet * nword + word];
            message_data_out[0].write(data);
        }
        message_hdr_out[0].write(apenet_header_t());
    }
    // The acknowledgement: header, a word, and footer.
    message_hdr_in[0].read();
    message_data_in[0].read();
    message_hdr_in[0].read();
}
