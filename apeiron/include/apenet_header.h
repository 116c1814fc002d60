// The header of a packet of the Communication IP: 128 bits, as TEXTAROSSA D2.8 prints it in appendix B.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APENET_HEADER_H
#define WEFT_APENET_HEADER_H

#include <cstdint>

typedef union {
    struct __attribute__((packed)) {
        unsigned long virt_chan : 5;
        unsigned long proc_id : 16;
        unsigned long dest_x : 6;
        unsigned long dest_y : 5;
        unsigned long dest_z : 5;
        unsigned long intra_dest : 4;
        unsigned long reserved : 1;
        unsigned long out_of_lattice : 1;
        unsigned long packet_type : 5;
        unsigned long packet_size : 14;
        unsigned long dest_addr : 48;
        unsigned long num_of_hops : 10;
        unsigned long edac : 8;
    } s;
    uint32_t l[4];
    uint64_t u[2];
} apenet_header_t;

static_assert(sizeof(apenet_header_t) == 16, "a header is a word of 128 bits");

namespace weft_apeiron {

// Kinds of packets, beside those of the self-test: ours, as the text gives the field no meaning. The last packet of a
// message, or the only one; and one that others of its message follow.
constexpr unsigned LAST_PACKET = 0;
constexpr unsigned MORE_FOLLOW = 2;

// `edac` makes the exclusive or of the bytes of a header zero: ours.
inline unsigned edac_of(const apenet_header_t &header)
{
    uint64_t sum = header.u[0] ^ header.u[1];
    sum ^= sum >> 32;
    sum ^= sum >> 16;
    sum ^= sum >> 8;
    return sum & 0xff;
}

}  // namespace weft_apeiron

#endif
