// Sends packets and receives them again, or, as a pipe, sends back what it receives: TEXTAROSSA D2.8 §5.2.2,
// appendix A.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "krnl_sr.h"
#include "hapecom.h"
#include <cstring>
#include <stdexcept>

// The largest packet of the test.
static const size_t LARGEST = 4096;

extern "C" void krnl_sr(unsigned mode, unsigned coord, unsigned task_id, unsigned npackets, unsigned packet_size,
                        const unsigned char *send_buffer, unsigned char *recv_buffer, bool bram_usage,
                        message_stream_t message_data_in[N_INPUT_CHANNELS],
                        message_stream_t message_data_out[N_OUTPUT_CHANNELS])
{
    static unsigned char local_in[LARGEST], local_out[LARGEST];
    const unsigned ch_id = 0;
    if (mode == KRNL_PIPE) {
        for (unsigned packet = 0; packet < npackets; packet++) {
            receive(ch_id, local_in, message_data_in);
            send(local_in, packet_size, coord, task_id, ch_id, message_data_out);
        }
        return;
    }
    if (bram_usage) {
        // What must come back.
        for (unsigned byte = 0; byte < packet_size; byte++)
            local_out[byte] = (unsigned char)(byte * 7 + 1);
    }
    const unsigned char *memory_in = bram_usage ? local_out : send_buffer;
    unsigned char *memory_out = bram_usage ? local_in : recv_buffer;
    for (unsigned packet = 0; packet < npackets; packet++) {
        send(memory_in, packet_size, coord, task_id, ch_id, message_data_out);
        const size_t size = receive(ch_id, memory_out, message_data_in);
        if (size != packet_size || std::memcmp(memory_in, memory_out, size) != 0)
            throw std::runtime_error("another packet than it has sent");
    }
}
