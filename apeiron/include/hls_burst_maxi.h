// Not here: bursts by hand.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#error "weft apeiron has no hls_burst_maxi.h (bursts by hand); see the list in docs/src/commands/apeiron.md"
