// Not here: bursts that are asked for by hand.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#error "weft apeiron has no hls_burst_maxi.h (bursts that are asked for by hand); see the list in docs/src/commands/apeiron.md"
