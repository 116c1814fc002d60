// Calls of host programs beside XRT: the place of their node, and the registers of its switch.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef WEFT_APEIRON_HOST_H
#define WEFT_APEIRON_HOST_H

#include "xrt/xrt_bo.h"
#include "xrt/xrt_device.h"
#include "xrt/xrt_kernel.h"

// Registers of the Communication IP. The document's copy lacks the table with their addresses: these are weft's.
enum apeiron_register : uint32_t {
    APEIRON_RESET = 0x00,
    APEIRON_LOCAL_COORD = 0x04,
    APEIRON_THRESHOLD = 0x08,
    APEIRON_CREDIT = 0x0c,
    // The packet generator, its consumer and the performance counter (D2.8 §2).
    APEIRON_TEST_PACKETS = 0x40,
    APEIRON_TEST_SIZE = 0x44,
    APEIRON_TEST_DEST_X = 0x48,
    APEIRON_TEST_START = 0x4c,
    APEIRON_TEST_STATUS = 0x50,
    APEIRON_TEST_RECEIVED = 0x54,
    APEIRON_TEST_WRONG = 0x58,
    // The lower and the upper 32 bits.
    APEIRON_TEST_CYCLES = 0x5c,
    APEIRON_TEST_CYCLES_HIGH = 0x60,
    APEIRON_TEST_PATTERN = 0x64,
    APEIRON_TEST_OUTSIDE = 0x68,
    // The header of the last packet: four words, the lowest first.
    APEIRON_TEST_HEADER = 0x70,
};

// Nodes of the machine, and the number of this one, whose design has been loaded.
inline unsigned apeiron_node_count(const xrt::device &device) { return device.card()->network().nodes(); }
inline unsigned apeiron_own_node(const xrt::device &device) { return device.card()->network().node(); }

// The coordinates of a node: z << 11 | y << 6 | x.
inline uint32_t apeiron_coordinates(const xrt::device &device, unsigned node)
{
    return device.card()->network().coordinates(node);
}

// The waits of this node's kernels in their last runs, a line each: they tell which kernel, or which FIFO, is the limit
// of a design.
inline std::string apeiron_explain(const xrt::device &device) { return device.card()->explain(); }

#endif
