// Not here: words with side channels of one's own.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#error "weft apeiron has no ap_axi_sdata.h (message_stream_t has a side channel); see docs/src/commands/apeiron.md"
