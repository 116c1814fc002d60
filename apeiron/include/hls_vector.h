// Not here: hls::vector.
//
// SPDX-License-Identifier: Apache-2.0 OR MIT
#error "weft apeiron has no hls_vector.h (hls::vector); see the list in docs/src/commands/apeiron.md"
